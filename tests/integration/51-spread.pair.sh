# SPDX-License-Identifier: MIT
# vm: timeout=200 level=all test=long
#
# Memory that is on one device alone, at both ends: a rail between these is made if there can
# be one, and what can have none is refused. The networks of the two rails are not joined.
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

more_down()
{
	rdma link delete rxe2
	ip link delete more0
}

devices_of_region()	# of the one region here
{
	rmpool -j region list | python3 -c '
import json, sys
print(*(r["devices"] for r in json.load(sys.stdin)["regions"]))'
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
check "the two rails are up, and no other" rails_are "$PEER" 2
check "the program that published ends" talk_end host
barrier refused

more=no
if [ "$VM" = b ]; then
	if modprobe macvlan; then
		more=yes
		check "a third device" more_up
		parameter max_device_mrs 3
		serve more --size 6M
		same "memory is spread over all three" 3 "$(devices_of_region)"
	else
		skip "a third device" "no macvlan in this kernel"
	fi
	vmctl put more "$more"
	barrier more
	barrier carried 100
	if [ "$more" = yes ]; then
		check "a third rail, here too" rails_are "$PEER" 3
		crash "$server"
		more_down
		check "it goes with the device" wait_until 20 rails_are "$PEER" 2
	fi
else
	barrier more
	parameter max_device_mrs 0
	if [ "$(vmctl get more)" = yes ]; then
		head -c 6M /dev/urandom >sent
		check "put where a device has no rail yet" rmpool put sent "$PEER/more"
		check "and get" rmpool get "$PEER/more" 6M received
		check "nothing is missing" cmp sent received
		check "over a third rail" rails_are "$PEER" 3
	fi
	barrier carried 100
fi
parameter max_device_mrs 0
parameter max_chunk_mib 64
barrier all-done 100
