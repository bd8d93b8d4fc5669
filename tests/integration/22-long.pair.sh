# SPDX-License-Identifier: MIT
# vm: timeout=300 level=all test=long
#
# Registrations that take seconds: transfers beside them, how far they are, two at the
# same time, and signals in the middle.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

# How many rounds were moved; none when one was wrong.
rounds()
{
	local word number

	read -r word number < <(talk_ask mover count)
	if [ "$word" = ok ]; then
		echo "$number"
	else
		echo "moving: $word $number" >&2
		echo 0
	fi
}

# What the tool says of two registrations, again and again: neither ever less than before
# (2 if it is), both at the same time and each in several steps (1 if that was not seen).
registrations_seen()	# FILE
{
	python3 - "$1" <<'END'
import json
import sys

text, at, lists = open(sys.argv[1]).read(), 0, []
while text[at:].strip():
    found, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
    at = len(text) - len(text[at:].lstrip()) + end
    lists.append([r for r in found["regions"] if r["state"] == "registering"])
steps = {}
for regions in lists:
    for region in regions:
        steps.setdefault(region["id"], []).append(region["percent"])
both = sum(len(regions) == 2 for regions in lists)
print(f"{len(lists)} lists, {both} with both:", steps)
if any(sorted(s) != s or s[-1] >= 100 for s in steps.values()):
    sys.exit(2)
seen = both >= 2 and len(steps) == 2 and all(len(set(s)) >= 3 for s in steps.values())
sys.exit(not seen)
END
}

register_two()
{
	local first second status=0

	long one "$mib" &
	first=$!
	long one "$mib" &
	second=$!
	while kill -0 $first || kill -0 $second; do
		rmpool -j region list
	done >"$TMP/lists" 2>/dev/null
	wait $first || status=1
	wait $second || status=1
	return $status
}

# How often the tool gets to look is luck: until it was often enough, five times at most.
two_seen_rising()
{
	local i seen

	for ((i = 0; i < 5; i++)); do
		register_two || { echo "one of two processes failed"; return 1; }
		registrations_seen "$TMP/lists"
		seen=$?
		[ $seen = 1 ] || return $seen
	done
	return 1
}

# As the kernel counts them, of each device.
memory_regions()
{
	rdma resource show | grep -o ' mr [0-9]*'
}

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
mib=$(amount 192 192 1024)

if [ "$VM" = b ]; then
	serve place --size 4M
	barrier served
	barrier moving 100
	check "registered while a peer moves data" long one "$mib"
	barrier registered 200
	barrier moved 200
	kill "$server"
	wait "$server"

	check "both of two processes are seen to rise at the same time" two_seen_rising

	check_lines "two" long two "$mib"
	check_lines "batch" long batch "$mib"
	before=$(memory_regions)
	check_lines "ends" long ends "$(amount 512 512 1024)"
	same "the kernel counts as many memory regions as before" "$before" "$(memory_regions)"
	barrier end 250
else
	barrier served
	talk_start mover long move b/place
	same "opened" opened "$(talk_hear mover)"
	before=$(rounds)
	barrier moving
	barrier registered 200
	after=$(rounds)
	check "data moved while the peer registered ($before, $after)" \
		test "$after" -gt "$before"
	check "registered here as well" long one "$mib"
	before=$after
	after=$(rounds)
	check "data moved while this host registered ($before, $after)" \
		test "$after" -gt "$before"
	check "every byte was right" talk_end mover
	barrier moved
	barrier end 250
fi
