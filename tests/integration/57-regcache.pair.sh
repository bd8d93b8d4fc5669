# SPDX-License-Identifier: MIT
# vm: timeout=400 6.12=all
#
# Puts and gets of memory that nobody registered: right bytes whatever becomes of the
# memory, what is kept registered and how much of it, and that it is all given back.
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
parameter=/sys/module/rmpool/parameters/cache_mib
# Small ones would be copied: see 62-staging.
echo 0 >/sys/module/rmpool/parameters/staging_max
check_lines "cache" regcache cases b/place
check "pins are given back" wait_until 15 pins_are "$pins"

echo 4 >$parameter
check_lines "4 MiB" regcache bound b/place
echo 0 >$parameter
check_lines "off" regcache off b/place
echo 256 >$parameter

# An ordinary user who may open the device.
groupadd --system rmpool-test && chgrp rmpool-test /dev/rmpool &&
	chmod 660 /dev/rmpool || exit 1
check_lines "limit" prlimit --memlock=$((4 << 20)):$((4 << 20)) \
	setpriv --reuid=nobody --regid=nogroup --groups=rmpool-test \
	--inh-caps=-all --bounding-set=-all regcache memlock b/place
groupdel rmpool-test

regcache hold b/place >"$TMP/hold" &
holder=$!
check "one is held" wait_until 40 says held "$TMP/hold"
rmpool -j region list >"$TMP/regions"
same "it is listed" 1 "$(python3 -c 'import json, sys
print(sum(r["cached"] and r["pid"] == int(sys.argv[1]) for r in json.load(sys.stdin)["regions"]))
	' "$holder" <"$TMP/regions")"
# 2 * (1 MiB + 4321 bytes), from the first byte of a page on.
same "and its pages are pinned" 515 $(($(pinned_pages) - pins))
crash "$holder"
check "kill -9: pins are given back" wait_until 15 pins_are "$pins"

# What is pinned now, and what was counted of all processes.
node_counts()
{
	rmpool -j info | python3 -c 'import json, sys
cache = json.load(sys.stdin)["node"]["cache"]
print(cache)
sys.exit(cache.pop("bytes") != 0 or 0 in cache.values() or len(cache) != 4)'
}
check "the node tells its counts" wait_until 10 node_counts
barrier over
