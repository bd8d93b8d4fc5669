# SPDX-License-Identifier: MIT
# vm: timeout=260 level=all test=long
#
# Memory that is on one device alone, at both ends: a rail between these is made if there can
# be one, and what can have none is refused. The networks of the two rails are not joined.
# Then a rail has no link for a while: what only it reaches waits.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

cd "$TMP" || exit 1

# A third device for b, in the network of the first one.
more_up()
{
	ip link add link data0 name more0 type macvlan mode bridge &&
		ip addr add 10.77.0.102/24 dev more0 && ip link set more0 up &&
		rdma link add rxe2 type rxe netdev more0 && wait_until 10 device_usable rxe2
}

third_put()
{
	rails "$PEER" | grep -q "rxe2.* put [1-9]"
}

more_down()
{
	rdma link delete rxe2
	ip link delete more0
}

devices_of_regions()	# of all that are here
{
	rmpool -j region list | python3 -c '
import json, sys
print(*(r["devices"] for r in json.load(sys.stdin)["regions"]))'
}

dealt()		# SEGMENT: each chunk of its region is on one device of two
{
	rmpool -j region list | python3 -c '
import json, sys
for r in json.load(sys.stdin)["regions"]:
    if r["segment"] == sys.argv[1]:
        sys.exit(r["devices"] != 2 or r["memory_regions"] != r["chunks"])
sys.exit(1)' "$1"
}

nothing_mapped()
{
	rmpool -j device | python3 -c '
import json, sys
sys.exit(any(d["memory_regions_used"] for d in json.load(sys.stdin)["devices"]))'
}

log_says()	# TEXT
{
	kernel_log | grep -q -- "$1"
}

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

# Each device has room for 3 of the 4 chunks that are published, and then of those that
# are put from.
parameter max_chunk_mib 1
parameter max_device_mrs 3
talk_start host pages spread "spread.$VM"
same "chunks are spread and published" published "$(talk_hear host)"
parameter max_device_mrs 5
barrier published

# One after the other: who is first connects, the other one asks it for rails.
[ "$VM" = a ] || barrier first 150
check_lines "pairs" pages pairs "$PEER/spread.$PEER"
[ "$VM" = b ] || barrier first 150
barrier second 150
check "the log names the devices" log_says "no rail from rxe[01] to 10.77.[01].[12] "
check "the two rails are up, and no other" wait_until 30 rails_are "$PEER" 2
check "the program that published ends" talk_end host
barrier refused

more=no
if [ "$VM" = b ]; then
	if modprobe macvlan; then
		more=yes
		check "a third device" more_up
		parameter max_device_mrs 3
		serve more --size 6M
		same "memory is spread over all three" 3 "$(devices_of_regions)"
	else
		skip "a third device" "no macvlan in this kernel"
	fi
	vmctl put more "$more"
	barrier more
	barrier carried 100
	if [ "$more" = yes ]; then
		check "a third rail, here too" wait_until 30 rails_are "$PEER" 3
		# Room for what the steps have, but not for all of it on each device.
		parameter max_device_mrs 9
		steps_start
		same "memory to put from is spread as well" "3 3" "$(devices_of_regions)"
		step_gives "open" OK open "$PEER/back" 30000
		step_gives "put from all three, and get" OK verify 0 6000000 30000
		check "the third one carried some of it" third_put
		steps_end
	fi
	barrier moved-back 100
	if [ "$more" = yes ]; then
		crash "$server"
		more_down
		check "it goes with the device" wait_until 20 rails_are "$PEER" 2
	fi
else
	barrier more 150
	parameter max_device_mrs 0
	if [ "$(vmctl get more)" = yes ]; then
		head -c 6M /dev/urandom >sent
		check "put where a device has no rail yet" rmpool put sent "$PEER/more"
		check "and get" rmpool get "$PEER/more" 6M received
		check "nothing is missing" cmp sent received
		check "over a third rail" rails_are "$PEER" 3
		serve back --size 6M
	fi
	barrier carried 100
	barrier moved-back 100
	[ "$(vmctl get more)" = no ] || crash "$server"
fi

# ---- no link for a while ---------------------------------------------------------

# Gets what nobody changes, again and again, until $TMP/enough is there; says how often.
keeps_getting()
{
	local n=0

	until [ -e "$TMP/enough" ]; do
		rmpool --timeout $patience get "$PEER/flap+8M" 4M "$TMP/got" && cmp sent4 "$TMP/got" ||
			return 1
		n=$((n + 1))
		echo "got $n"
	done
}

under_way()
{
	says streaming "$TMP/stream" && says "got 1" "$TMP/gets"
}

gets_end()
{
	touch "$TMP/enough"
	wait "$getter"
}

stream_ends()
{
	kill -TERM "$stream"
	wait "$stream"
}

# What only the other rail reaches: chunks are on the devices in turn.
one_of_two_moves()
{
	step put 0 4096 4000 || step put 1048576 4096 4000
}

# README says which devices are to be added anew.
link_back()
{
	vmctl qmp b link 1 on
	vmctl put link on
}

device_anew()
{
	case $(uname -r) in
	6.1.*) ;;
	*) rxe_del 1 && rxe_add 1 ;;
	esac
}

check "what was published is gone" wait_until 20 nothing_mapped
parameter max_chunk_mib 1
parameter max_device_mrs 7
# More than it takes until there is a link again.
patience=$((60 * VM_SLOW))
parameter request_timeout_ms $((1000 * patience))
serve flap --size 12M
check "memory is dealt over two devices" dealt flap
parameter max_device_mrs 0
barrier flap-published 100
check "two rails" wait_until 30 rails_are "$PEER" 2
head -c 4M /dev/urandom >sent4
check "put what is got meanwhile" rmpool put sent4 "$PEER/flap+8M"
steps_start
step_gives "open" OK open "$PEER/flap" 30000
steps stream "$PEER/flap" 4194304 4194304 2 >"$TMP/stream" 2>&1 &
stream=$!
keeps_getting >"$TMP/gets" 2>&1 &
getter=$!
check "puts and gets are under way" wait_until 30 under_way
barrier flap-under-way 100
[ "$VM" = b ] || vmctl qmp b link 1 off
check "a rail has no link" wait_until 60 rails_are "$PEER" 1
check "what the other one reaches is moved" wait_until 20 one_of_two_moves
barrier flap-down 150
if [ "$VM" = a ]; then
	link_back
else
	vmctl get link 100
	check "its device comes again" device_anew
fi
barrier flap-up 150
check "two rails again" wait_until 40 rails_are "$PEER" 2
within 20 "all bytes are moved" step_gives "put and get" OK verify 0 4194304 40000
check "no get failed meanwhile" gets_end
tail -n 3 "$TMP/gets"
check "nor did a put" stream_ends
cat "$TMP/stream"
steps_end
check "get what nobody put" rmpool get "$PEER/flap+8M" 4M received
check "it is as it was" cmp sent4 received
# The peer may be using ours.
barrier flap-over 100
crash "$server"
parameter request_timeout_ms 30000
parameter max_chunk_mib 64
barrier all-done 100
