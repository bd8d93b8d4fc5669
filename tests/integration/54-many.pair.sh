# SPDX-License-Identifier: MIT
# vm: timeout=600 long=3600 level=all 6.1=long test=long mem=3072
#
# What it costs to find one of very many regions: requests to a segment of the other
# host, which are refused when their region is found. What it costs to register one more
# in a segment of very many that the other host has open. Then the end of its process.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

cd "$TMP" || exit 1
regions=$(amount 5000 5000 100000)
more=8
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
	counting=
	count_calls rmp_export_message && counting=1
	barrier published
	barrier opened 300
	[ -z "$counting" ] || asked=$(calls_counted)
	[ -z "$counting" ] || count_calls rmp_export_message || counting=
	for i in $(seq 0 $((more - 1))); do
		kill -USR1 "$host"
		wait_until 60 says "more $((regions + i))" "$TMP/host" ||
			not_ok "region $i more" "not registered: $(cat "$TMP/host")"
		barrier "more$i" 100
		barrier "got$i" 100
	done
	# A walk over all of them for each would be that many times as much.
	name="$more regions more: the peer does not ask for all of them each time"
	if [ -n "$counting" ]; then
		again=$(calls_counted)
		echo "asked $asked times for $regions regions, $again times for $more more"
		check "each of them is asked for" test "$again" -ge "$more"
		ratio "$name" '<=' 3 "$again" "$asked"
	else
		skip "$name" "this kernel cannot count calls"
	fi
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
	for i in $(seq 0 $((more - 1))); do
		barrier "more$i" 100
		check "region $i more" many_published get $((regions + i)) b/many
		barrier "got$i" 100
	done
	wait "$opener"
	check_lines "peer" cat "$TMP/peer"
	barrier gone 100
fi
