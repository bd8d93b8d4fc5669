# SPDX-License-Identifier: MIT
# vm: module=0 level=all test=long all=600 long=1500
#
# The peer loses its power under load, and boots. See tests/programs/chaos.sh.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/chaos.sh"

if [ "$VM" = b ]; then
	[ "$VM_LIFE" = 1 ] || vmctl put "booted$VM_LIFE" yes
	obey
	exit
fi

peer_is_lost()
{
	! peer_is b ready
}

run_begins "power"
for ((n = 1; n <= $(amount 1 1 5); n++)); do
	moment 1000
	check "$run: off" vmctl qmp b kill
	check "$run: the peer is lost" wait_until 60 peer_is_lost
	check "$run: on" vmctl qmp b boot
	life=$((life + 1)) asked=0
	check "$run: booted" vmctl get "booted$life" 240
	there begin_here && there host_starts && there load_starts || exit 1
	goes_on
done
run_ends
ask obey_end
