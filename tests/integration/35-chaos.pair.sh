# SPDX-License-Identifier: MIT
# vm: module=0 level=all 6.1=long all=1200 long=5400
#
# Processes, rails, devices and the peer go and come again at random moments, while
# there is load both ways whose bytes are compared. See tests/programs/chaos.sh.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/chaos.sh"

who='' what='' rail=''	# that pick chooses

# ---- faults; on the VM that has them -----------------------------------------

kill_here()	# host|load|both
{
	case $1 in
	host) host_dies; host_starts ;;
	load) load_dies && load_starts ;;
	both) load_dies; host_dies; host_starts && load_starts ;;
	esac
}

# As the switch at the other end of the cable does it. See link_back(), too.
link()		# VM RAIL up|down
{
	local state=on

	[ "$3" = up ] || state=off
	vmctl qmp "$1" link "$2" "$state"
}

# What rxe of 6.12 sends by its queue pair 1 while there is no link (a connection's last
# words) puts that in error, and the device connects to nobody until it is deleted and
# added; so README says.
link_back()	# VM RAIL
{
	link "$1" "$2" up
	case $(uname -r) in
	6.1.*) ;;
	*) on "$1" device_here "$2" 1 ;;
	esac
}

peer_is_lost()
{
	! peer_is b ready
}

# The module of the peer goes, when its users have.
life_ends()
{
	check_fails "unload while it is used" "in use" rmmod rmpool
	load_dies
	host_dies
	check "unload when its users are killed" wait_until 25 try_rmmod
}

begin_again()
{
	chaos_load && rmpool peer add "$PEER" "v1:$PEER_IP0:13579" && host_starts && load_starts
}

# ---- runs; on a --------------------------------------------------------------

run_kills()
{
	run_begins "kill -9"
	kills=$(amount 2 4 50)
	for ((n = 1; n <= kills; n++)); do
		pick who a b; pick what host load both
		moment 1500
		echo "kill $n: $what on $who"
		on "$who" kill_here "$what" || exit 1
		[ $((n % 5)) != 0 ] || goes_on
	done
	goes_on
	ok "$run: $kills processes"
	run_ends
}

run_freezes()
{
	run_begins "frozen"
	for ((n = 1; n <= $(amount 1 1 10); n++)); do
		moment 1000
		vmctl qmp b stop
		moment 2000
		vmctl qmp b cont
		goes_on
		moment 1000
		vmctl qmp b stop
		wait_until 60 peer_is_lost || not_ok "$run: the peer is lost" "it is not"
		moment 2000
		vmctl qmp b cont
		goes_on
	done
	ok "$run: shortly, and until it is lost"
	run_ends
}

run_devices()
{
	run_begins "device"
	for ((n = 1; n <= $(amount 1 2 20); n++)); do
		pick who a b; pick rail 0 1
		moment 1000
		echo "device $n: rail $rail on $who"
		spared "$rail" strict
		on "$who" device_here "$rail" 3000 || not_ok "$run: comes again" "rail $rail on $who"
		goes_on
		spared "$rail" lenient
	done
	ok "$run: deleted and added"
	run_ends
}

run_links()
{
	run_begins "link"
	for ((n = 1; n <= $(amount 1 2 20); n++)); do
		pick who a b; pick rail 0 1
		moment 1000
		echo "link $n: rail $rail of $who"
		spared "$rail" strict
		link "$who" "$rail" down
		moment 10000
		link_back "$who" "$rail" || not_ok "$run: comes again" "rail $rail of $who"
		goes_on
		spared "$rail" lenient
	done
	ok "$run: down and up"
	run_ends
}

run_flaps()
{
	run_begins "flapping rail"
	spared 1 strict
	end=$((SECONDS + $(amount 10 15 120))) n=0
	while [ $SECONDS -lt $end ]; do
		pick who a b
		on "$who" loses 1 yes
		moment 3000
		# Every third time it is so until all go on over the other one.
		[ $((n++ % 3)) != 0 ] || both load_goes || not_ok "$run: the other rail carries" "see the logs"
		on "$who" loses 1 no
		moment 3000
	done
	ok "$run: $n times, and the other one carries all without an error"
	run_ends
}

run_unloads()
{
	run_begins "unload"
	for ((n = 1; n <= $(amount 1 1 10); n++)); do
		pick who a b
		moment 1000
		on "$who" life_ends || exit 1
		moment 3000
		on "$who" begin_again || exit 1
		goes_on
	done
	ok "$run: and loaded again"
	run_ends
}

if [ "$VM" = b ]; then
	obey
	exit
fi

# Some of the runs, by seed.
some()		# NUMBER
{
	mapfile -t runs < <(printf '%s\n' "${runs[@]}" |
		awk -v seed="$RMPOOL_SEED" 'BEGIN { srand(seed) } { print rand(), $1 }' |
		sort -n | head -n "$1" | cut -d ' ' -f 2)
}

# In check-all half of them, and the test kernel, where a run takes minutes, gets the
# least of one.
runs=(kills freezes devices links flaps unloads)
if [ "$RMPOOL_LEVEL" = all ] && [ "$VM_SLOW" = 1 ]; then
	some 3
elif [ "$RMPOOL_LEVEL" != long ] && [ "$VM_SLOW" != 1 ]; then
	some 1
	RMPOOL_LEVEL=check
fi
for each in "${runs[@]}"; do
	echo "seed $RMPOOL_SEED: $each"
	"run_$each"
done
ask obey_end
