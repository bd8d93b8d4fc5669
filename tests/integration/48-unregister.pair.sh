# SPDX-License-Identifier: MIT
# vm: timeout=300 long=1500 level=all test=long mem=3072
#
# Unregistering while a peer that puts does not answer any more: it ends soon after the
# peer's time is over, once for many regions, the memory is free then, and nothing comes
# when the peer is back. Who is killed while he waits is gone at once, and all is cleaned
# up. Then the end of a process with many regions.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

regions=$(amount 2000 2000 100000)
# Now: a card loses what is sent while it gets one, and soft-RoCE its queue pair 1 with that.
if [ "$VM" = a ]; then
	for rail in 0 1; do
		tc qdisc add dev data$rail clsact
	done
fi
barrier filters
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = a ]; then
	drop="protocol ip flower ip_proto udp dst_port 4791 action drop"

	# Puts are on their way until they fail.
	stream()	# NAME
	{
		steps stream b/x 0 1M 64 >"$TMP/$1" 2>&1 &
		stream=$!
		wait_until 40 says streaming "$TMP/$1" ||
			not_ok "stream $1" "did not start: $(cat "$TMP/$1")"
	}

	# We send and do not hear.
	deaf()		# NAME
	{
		local rail

		for rail in 0 1; do
			# shellcheck disable=SC2086 # words
			tc filter add dev data$rail ingress $drop ||
				not_ok "$1" "rail $rail is not deaf"
		done
		vmctl put "$1" yes
	}

	hearing()
	{
		local rail

		for rail in 0 1; do
			tc filter del dev data$rail ingress
		done
	}

	# The stream has ended, not well, and the peer can be used again.
	recovers()	# NAME
	{
		local status

		wait "$stream"
		status=$?
		cat "$TMP/$1"
		same "$1: the puts end, and some fail" 1 $status
		vmctl get "$1.again" 60
		# The connection may end in the middle of the first try.
		step_again 60 "$1: it can be opened again" open b/x 60000
		step_again 30 "$1: it works again" verify 0 100000 10000
		check "$1: both rails are back" wait_until 40 rails_are b 2
		barrier "$1.end" 100
	}

	barrier served
	steps_start
	stream deaf
	barrier deaf
	deaf deaf.now
	vmctl get deaf.over 100
	hearing
	recovers deaf
	stream frozen
	barrier frozen
	recovers frozen
	stream killed
	barrier killed
	deaf killed.now
	vmctl get killed.over 100
	hearing
	recovers killed
	steps_end

	barrier published 300
	many_published peer "$regions" b/many >"$TMP/peer" &
	opener=$!
	check "they are opened" wait_until 300 says opened "$TMP/peer"
	barrier opened
	wait "$opener"
	check_lines "peer" cat "$TMP/peer"
	exit
fi

# More regions than are unregistered in one step.
host()
{
	talk_start x withdraw host x 8 600
	same "published" ok "$(talk_hear x)"
}

# Unregisters it. The least is what the peer gets; how long a device takes then is its own.
withdraws()	# NAME MOST-MS
{
	local word ms pins least=$((1900 * VM_SLOW)) most=$(($2 * VM_SLOW))

	read -r word ms pins <<<"$(talk_ask x withdraw)"
	echo "$1: unregistered after $ms ms, VmPin $pins"
	same "$1: unregistered" ok "$word"
	check "$1: when the peer's time is over" test "${ms:-0}" -ge "$least"
	check "$1: and soon then" test "${ms:-999999}" -le "$most"
	same "$1: nothing is pinned then" 0 "$pins"
}

waits()		# PID
{
	grep -qs '^State:.*disk sleep' "/proc/$1/status"
}

killed()	# PID
{
	kill -9 "$1"
	wait "$1" 2>/dev/null
	! [ -e "/proc/$1" ]
}

pins=$(pinned_pages)
host
barrier served

barrier deaf 100
vmctl get deaf.now 60
same "deaf: puts have come" ok "$(talk_ask x busy)"
withdraws deaf 5000
kernel_log >"$TMP/log"
check "deaf: the log tells" says "peer a does not let go of memory" "$TMP/log"
vmctl put deaf.over yes
same "deaf: nothing comes afterwards" ok "$(talk_ask x stays 3000)"
same "deaf: published again" ok "$(talk_ask x publish)"
vmctl put deaf.again yes
barrier deaf.end 150
same "frozen: nobody has put anything" ok "$(talk_ask x refill)"

# What is in the network card when the peer stands still may stay there for long.
barrier frozen 100
same "frozen: puts have come" ok "$(talk_ask x busy)"
vmctl qmp a stop
withdraws frozen 60000
vmctl qmp a cont
same "frozen: nothing comes afterwards" ok "$(talk_ask x stays 3000)"
same "frozen: published again" ok "$(talk_ask x publish)"
vmctl put frozen.again yes
barrier frozen.end 150
same "killed: nobody has put anything" ok "$(talk_ask x refill)"

barrier killed 100
parameter revoke_wait_ms $((4000 * VM_SLOW))
vmctl get killed.now 60
same "killed: puts have come" ok "$(talk_ask x busy)"
talk_say x withdraw
check "killed: it waits" wait_until 5 waits "${TALK_PID[x]}"
within 1 "a process dies while it unregisters" killed "${TALK_PID[x]}"
check "its pins are given back" wait_until 30 pins_are "$pins"
vmctl put killed.over yes
talk_end x 2>/dev/null
host
vmctl put killed.again yes
barrier killed.end 150
check "host ends" talk_end x

many_published host "$regions" many >"$TMP/host" &
host=$!
check "many are published" wait_until 300 says ready "$TMP/host"
barrier published 100
barrier opened 300
counting=
count_calls rmp_export_revoke && counting=1
began=$EPOCHREALTIME
crash "$host"
check "kill -9 of a process with $regions regions: pins are given back" \
	wait_until "$(amount 10 10 60)" pins_are "$pins"
awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print "after", b - a, "s" }'
if [ -n "$counting" ]; then
	same "the peer was asked once" 1 "$(calls_counted)"
else
	skip "the peer was asked once" "this kernel cannot count calls"
fi
