# SPDX-License-Identifier: MIT
# vm: timeout=120
#
# The main road, with the tool: a file goes into the memory of the other host
# and comes back the same, over both rails.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

check "device listed" grep -q rxe0 <(rmpool device)
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	rmpool serve mem --size 16M > "$TMP/ready" &
	server=$!
	wait_until 20 grep -q mem "$TMP/ready"
	check "segment listed" grep -q mem <(rmpool segment list)
	barrier served
	barrier transferred 90
	kill $server
	check "serve ends well" wait $server
else
	head -c 9000001 /dev/urandom > "$TMP/file"
	barrier served
	check "put" rmpool put "$TMP/file" b/mem+12345
	check "get" rmpool get b/mem+12345 9000001 "$TMP/back"
	check "the same bytes" cmp "$TMP/file" "$TMP/back"
	rmpool peer list
	rmpool -j peer list
	barrier transferred
fi
