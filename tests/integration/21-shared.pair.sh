# SPDX-License-Identifier: MIT
# vm: timeout=180 test=long
#
# Rails and QPs are there once, for all processes and threads: both rails carry
# their part, a second process needs no QP of its own, and the ring tells each
# thread about what ended.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

rails_ready()	# NUMBER
{
	[ "$(rmpool -j peer list | grep -c '"state": "up"')" = "$1" ]
}

# What rail 0 and rail 1 have carried so far.
put_bytes()
{
	rmpool -j peer list | python3 -c '
import json, sys
rails = json.load(sys.stdin)["peers"][0]["rails"]
print(*(r["put_bytes"] for r in sorted(rails, key=lambda r: r["index"])))'
}

balanced()
{
	[ $((zero * 5)) -ge $(((zero + one) * 2)) ] && [ $((one * 5)) -ge $(((zero + one) * 2)) ]
}

# Again, if need be: a rail that one host does not look after for a moment loses its share
# of the 64 MiB, but not of ten times that.
put_until_balanced()
{
	for ((mib = 64; ; mib += 64)); do
		xfer balance b/sizes sizes || return 1
		read -r zero one <<<"$(put_bytes)"
		zero=$((zero - zero_before)) one=$((one - one_before))
		balanced || [ $mib -ge 640 ] || continue
		return 0
	done
}

# Nothing breaks here, and each transfer must get along with what it has.
peers_wait_long
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	talk_start host memhost sizes sizes
	same "published" published "$(talk_hear host)"
	talk_start slots memhost slots slots
	same "slots published" published "$(talk_hear slots)"
	same "slots filled" ok "$(talk_ask slots fill 9)"
	barrier ready
	barrier end 180
	check "host ends" talk_end host
	check "slots host ends" talk_end slots
else
	barrier ready
	check "the completion ring" ringtest b/sizes

	check "both rails up" wait_until 20 rails_ready 2
	read -r zero_before one_before <<<"$(put_bytes)"
	check "64 MiB in puts of 1 MiB" put_until_balanced
	echo "rail 0: $zero, rail 1: $one"
	same "all bytes counted" $((mib << 20)) $((zero + one))
	check "each rail carries 40 to 60 %" balanced

	before=$(connected_qps)
	check "there are QPs" test -n "$before"
	talk_start first xfer hold b/sizes sizes
	same "first process transfers" "done" "$(talk_hear first)"
	talk_start second xfer hold b/sizes sizes
	same "second process transfers" "done" "$(talk_hear second)"
	same "the same QPs for two processes" "$before" "$(connected_qps)"
	check "first goes on and ends" talk_end first
	check "second goes on and ends" talk_end second
	same "the same QPs afterwards" "$before" "$(connected_qps)"

	check "threads share a ring" xfer threads b/slots 9 4000
	barrier end
fi
