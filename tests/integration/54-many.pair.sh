# SPDX-License-Identifier: MIT
# vm: timeout=400 long=2400 level=all test=long mem=3072
#
# What it costs to find one of very many regions: requests to a segment of the other
# host, which are refused when their region is found.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

cd "$TMP" || exit 1
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
if [ "$VM" = b ]; then
	serve place --size 4K
	barrier served
	barrier over "$(amount 380 380 2300)"
	kill "$server"
	wait "$server"
else
	barrier served
	check_lines "look-up" many lookup "$(amount 10000 10000 100000)" b/place
	barrier over
fi
