# SPDX-License-Identifier: MIT
# vm: timeout=300
#
# Random calls, against a peer that serves memory and must not care.
# RMPOOL_SEED repeats a run.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	rmpool serve target --size 2M >"$TMP/ready" &
	server=$!
	wait_until 30 grep -q target "$TMP/ready"
	barrier served
	barrier played 250
	kill $server
	check "the peer serves on" wait $server
else
	barrier served
	check_lines "fuzz" ioctl_fuzz "$RMPOOL_SEED" 2000 b target
	barrier played
fi
