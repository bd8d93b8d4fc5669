# SPDX-License-Identifier: MIT
# vm: timeout=240 test=long
#
# Hosts with different MTUs use the smaller one, whoever connects. One that is
# raised while they are connected stops nothing, and for one that is lowered the
# rails are made anew: packets that are too large now would be lost for ever.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

mtu_is()	# BYTES
{
	[ "$(rmpool -j device | grep -c "\"mtu_bytes\": $1,")" = 2 ]
}

set_mtu()	# BYTES
{
	ip link set data0 mtu "$1" && ip link set data1 mtu "$1"
}

# Sum of a counter of both network cards.
sent()	# bytes|packets
{
	awk '{ n += $1 } END { printf "%d\n", n }' /sys/class/net/data[01]/statistics/"tx_$1"
}

# Two rails are up, and nothing was moved by them.
rails_new()
{
	rmpool -j peer list | python3 -c '
import json, sys
rails = [rail for peer in json.load(sys.stdin)["peers"] for rail in peer["rails"]]
sys.exit(len(rails) != 2 or
         any(rail["qps"] != 2 or rail["put_bytes"] or rail["get_bytes"] for rail in rails))'
}

# Both hosts put to the other, in turns, and look.
put_both_ways()	# NAME SEED
{
	local turn

	same "$1: filled" ok "$(talk_ask host fill 1)"
	barrier "$1.filled"
	for turn in a b; do
		[ "$VM" != "$turn" ] ||
			check "$1: put" xfer put "$PEER/packets.$PEER" packets "$2" ring
		barrier "$1.$turn" 60
	done
	same "$1: all bytes right" ok "$(talk_ask host check 1 "$2")"
	barrier "$1.looked"
}

# Each transfer must get along with the queue pairs that are there.
peers_wait_long
mtu=$(cat /sys/class/net/data0/mtu)
if [ "$VM" = a ]; then
	check "smaller MTU" set_mtu 1500
	check "devices tell 1024" wait_until 30 mtu_is 1024
else
	check "devices tell 4096" wait_until 30 mtu_is 4096
fi
talk_start host memhost "packets.$VM" packets
same "published" published "$(talk_hear host)"
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
bytes=$(sent bytes)
packets=$(sent packets)
put_both_ways "1024 and 4096" 21
bytes=$(($(sent bytes) - bytes))
packets=$(($(sent packets) - packets))
echo "$bytes bytes in $packets packets"
# More than 2 MiB, so the packets that are full make the mean.
check "packets are of 1024 bytes" [ $packets -gt 2000 -a $((bytes / packets)) -lt 1200 ]
if [ "$VM" = a ]; then
	check "larger MTU while connected" set_mtu 4200
	check "devices tell 4096" wait_until 30 mtu_is 4096
fi
barrier larger
put_both_ways "raised" 22

# Connected anew, with the larger MTU, which then is lowered.
check "peer del" rmpool peer del "$PEER"
barrier deleted
check "peer add again" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier again
bytes=$(sent bytes)
packets=$(sent packets)
put_both_ways "4096" 23
bytes=$(($(sent bytes) - bytes))
packets=$(($(sent packets) - packets))
echo "$bytes bytes in $packets packets"
check "packets are larger than 1024 bytes" [ $((bytes / packets)) -gt 1200 ]
if [ "$VM" = a ]; then
	check "smaller MTU while connected" set_mtu 1500
	check "new rails" wait_until 60 rails_new
fi
barrier lowered 90
put_both_ways "lowered" 24
check "host ends" talk_end host
# As it was, for the suites that follow.
[ "$VM" != a ] || check "MTU as before" set_mtu "$mtu"
