# SPDX-License-Identifier: MIT
# vm: timeout=400 6.12=all
#
# Small puts and gets of memory that nobody registered, which are copied: right bytes
# whatever becomes of the memory meanwhile, what is counted, and what a killed process
# leaves.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	serve place --size 16M
	barrier served
	barrier over 360
	kill "$server"
	wait "$server"
	exit
fi

barrier served
pins=$(pinned_pages)
parameters=/sys/module/rmpool/parameters
same "nobody needed the pool yet" 0 \
	"$(rmpool -j info | python3 -c 'import json, sys
print(json.load(sys.stdin)["node"]["staging"]["pool"])')"
check_lines "staging" staging cases b/place
echo $((1 << 20)) >$parameters/staging_max
check_lines "1 MiB" staging long b/place
echo 0 >$parameters/staging_max
check_lines "off" staging off b/place
echo $((1 << 16)) >$parameters/staging_max

for i in 1 2 3; do
	staging busy b/place >"$TMP/busy" &
	busy=$!
	check "one is busy ($i)" wait_until 40 says busy "$TMP/busy"
	crash "$busy"
done
check "kill -9: pins are given back" wait_until 15 pins_are "$pins"
echo 0 >$parameters/cache_mib
check_lines "alone" staging alone b/place
echo 256 >$parameters/cache_mib

node_counts()
{
	rmpool -j info | python3 -c 'import json, sys
staging = json.load(sys.stdin)["node"]["staging"]
print(staging)
sys.exit(staging["pool"] != 8 << 20 or not staging["requests"] or
	 staging["bytes"] < staging["requests"])'
}
check "the node tells its counts" node_counts
rmpool -j region list >"$TMP/regions"
same "the pool is nobody's region" 0 "$(python3 -c 'import json, sys
print(len(json.load(sys.stdin)["regions"]))' <"$TMP/regions")"
barrier over
