# SPDX-License-Identifier: MIT
# vm: timeout=240 6.1=all test=long
#
# A process that becomes another program: what it had registered is given back at once,
# and peers are told, whether its descriptor is kept or not, also in the middle of a
# registration.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

regions_here()
{
	rmpool -j region list | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["regions"]))'
}

no_regions()
{
	[ "$(regions_here)" = 0 ]
}

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
pins=$(pinned_pages)

for way in open closed busy; do
	if [ "$VM" = b ]; then
		talk_start host execs host "$way" "$way"
		same "$way: published" published "$(talk_hear host)"
		barrier "$way-published"
		barrier "$way-opened" 100
		same "$way: it is another program, and has nothing" after "$(talk_ask host exec)"
		check "$way: its pins are given back while it lives" wait_until 15 pins_are "$pins"
		check "$way: no region is listed" wait_until 15 no_regions
		barrier "$way-gone" 100
		same "$way: the name is free again" published "$(talk_ask host again)"
		barrier "$way-again"
		barrier "$way-seen" 100
		check "$way: ends well" talk_end host
	else
		barrier "$way-published" 100
		execs peer "b/$way" >"$TMP/$way" &
		getter=$!
		check "$way: opened" wait_until 60 says opened "$TMP/$way"
		barrier "$way-opened"
		wait $getter
		check_lines "$way" cat "$TMP/$way"
		barrier "$way-gone" 100
		barrier "$way-again" 100
		check "$way: what is there now can be had" \
			rmpool get -q "b/$way" 300001 "$TMP/new"
		barrier "$way-seen"
	fi
done
check "all pins are given back" wait_until 15 pins_are "$pins"
