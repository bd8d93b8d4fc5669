# SPDX-License-Identifier: MIT
# vm: timeout=120
#
# Hosts with different MTUs use the smaller one, whoever connects, and one that
# is raised while they are connected stops nothing.
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

if [ "$VM" = a ]; then
	check "smaller MTU" set_mtu 1500
	check "devices tell 1024" wait_until 10 mtu_is 1024
else
	check "devices tell 4096" wait_until 10 mtu_is 4096
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
	check "devices tell 4096" wait_until 10 mtu_is 4096
fi
barrier larger
put_both_ways "raised" 22
check "host ends" talk_end host
