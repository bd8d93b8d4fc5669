# SPDX-License-Identifier: MIT
# vm: timeout=600 level=long kernels=6.1,6.12 mem=3072
#
# How fast single puts are from memory that was registered before, that was registered
# for them and is kept so, that is copied, and that is registered each time, also without
# rmpool.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

mib=64 rounds=21 port=7471
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	serve place --size ${mib}M
	putspeed serve $port $mib >"$TMP/verbs" &
	verbs=$!
	check "verbs listen" wait_until 20 says listening "$TMP/verbs"
	barrier served
	barrier over 550
	# It has ended, unless the other side failed.
	kill "$verbs" 2>/dev/null
	kill "$server"
	wait "$server" "$verbs"
	exit
fi

barrier served
putspeed b/place "$PEER_IP0" $port $mib "$rounds" >"$TMP/speeds" || exit 1
echo "MiB/s, median of $rounds"
awk 'BEGIN { printf "%10s %12s %12s %12s %12s %12s\n", "bytes", "registered", "cached", "copied",
		    "each time", "verbs" }
	{ printf "%10s %12s %12s %12s %12s %12s\n", $1, $2, $3, $4, $5, $6 }' "$TMP/speeds"

# Bounds are wide: these are single puts on emulated processors.
while read -r bytes registered cached copied each verbs <&3; do
	ratio "$bytes bytes: kept as good as registered" '>=' 0.75 "$cached" "$registered"
	ratio "$bytes bytes: not slower than ibv_reg_mr each time" '>=' 0.9 "$cached" "$verbs"
	# What is copied by default, against what would be done else.
	[ "$bytes" -gt 65536 ] && continue
	ratio "$bytes bytes: copied not slower than registered each time" '>=' 1 "$copied" "$each"
	ratio "$bytes bytes: copied not slower than ibv_reg_mr each time" '>=' 0.9 "$copied" "$verbs"
done 3<"$TMP/speeds"
same "sizes" 8 "$(wc -l <"$TMP/speeds")"
barrier over
