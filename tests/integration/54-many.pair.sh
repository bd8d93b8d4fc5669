# SPDX-License-Identifier: MIT
# vm: timeout=600 long=3600 level=all 6.1=long test=long mem=3072
#
# What it costs to find one of very many regions: requests to a segment of the other
# host, which are refused when their region is found. Then the end of a process that
# published very many.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

cd "$TMP" || exit 1
regions=$(amount 5000 5000 100000)
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
if [ "$VM" = b ]; then
	serve place --size 4K
	barrier served
	barrier over "$(amount 380 380 2300)"
	kill "$server"
	wait "$server"

	pins=$(pinned_pages)
	many_published host "$regions" many >"$TMP/host" &
	host=$!
	check "many are published" wait_until 300 says ready "$TMP/host"
	barrier published
	barrier opened 300
	crash "$host"
	check "kill -9 of their process: pins are given back" wait_until 60 pins_are "$pins"
	barrier gone 100
else
	barrier served
	check_lines "look-up" many lookup "$regions" b/place
	barrier over

	barrier published 380
	many_published peer "$regions" b/many >"$TMP/peer" &
	opener=$!
	check "they are opened" wait_until 300 says opened "$TMP/peer"
	barrier opened
	wait "$opener"
	check_lines "peer" cat "$TMP/peer"
	barrier gone 100
fi
