# SPDX-License-Identifier: MIT
# vm: timeout=300 long=1200 level=all test=long
#
# Memory is taken back while a process of the peer puts and gets, by calls and by the end
# of its process. Its requests end, and nothing of them comes afterwards. Another process
# there, which uses another segment, does not notice, also when the peer gets so little
# time that its queue pairs are closed: once for sure, since its answers come too late.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

# What a sends arrives so much later.
late()		# MS
{
	local rail

	for rail in 0 1; do
		tc qdisc change dev data$rail root netem delay "${1}ms" limit 100000 ||
			not_ok "late by $1 ms" "rail $rail"
	done
}

# Now: a card loses what is sent while it gets one, and soft-RoCE its queue pair 1 with that.
if [ "$VM" = a ]; then
	for rail in 0 1; do
		check "rail $rail can be slowed down" \
			tc qdisc add dev data$rail root netem delay 0ms limit 100000
	done
fi
# With much on its way, an acknowledgement may be later than the 0.5 s that it gets.
parameter ack_timeout 20
qps=$(queue_pairs)
barrier slow
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = a ]; then
	barrier served
	withdraw user b/y 8 strict >"$TMP/y" 2>&1 &
	y=$!
	withdraw user b/x 8 loose >"$TMP/x" 2>&1 &
	x=$!
	check "one is used" wait_until 60 says using "$TMP/x"
	check "the other is used" wait_until 60 says using "$TMP/y"
	barrier used
	vmctl get late "$(amount 200 200 1000)"
	late 150
	vmctl put is.late yes
	vmctl get in.time 100
	late 0
	barrier over 60
	kill $x $y
	wait $y
	same "no request to the other segment failed" 0 $?
	wait $x
	same "requests ended as they may" 0 $?
	tail -n 2 "$TMP/y" "$TMP/x"
	barrier end 60
	rmpool peer del b
	wait_until 30 queue_pairs_at_most "$qps"
	barrier gone 60
	for rail in 0 1; do
		tc qdisc del dev data$rail root
	done
	exit
fi

# What the process that has the memory says is good.
says_ok()	# WORD...
{
	local answer

	answer=$(talk_ask x "$@")
	[ "$answer" = ok ] || { echo "$1: $answer"; return 1; }
}

take_back()
{
	local word ms pins

	says_ok busy || return 1
	read -r word ms pins <<<"$(talk_ask x withdraw)"
	echo "unregistered after $ms ms, VmPin $pins"
	# All of it is free when the call returns, and nothing comes later.
	[ "$word" = ok ] && [ "$pins" = 0 ] && says_ok stays 300 && says_ok publish
}

kill_owner()
{
	says_ok busy || return 1
	kill -9 "${TALK_PID[x]}"
	talk_end x 2>/dev/null
	wait_until 15 pins_are "$pins_y" || return 1
	talk_start x withdraw host x 8
	[ "$(talk_hear x)" = ok ]
}

again_and_again()	# TIMES COMMAND
{
	local i

	for ((i = 0; i < $1; i++)); do
		"$2" || return 1
	done
}

cut_off()
{
	kernel_log | grep -c "does not let go of memory"
}

pins=$(pinned_pages)
talk_start y withdraw host y 8
same "published" ok "$(talk_hear y)"
pins_y=$(pinned_pages)
talk_start x withdraw host x 8
same "published" ok "$(talk_hear x)"
barrier served
barrier used 100

parameter revoke_wait_ms 60000
check "taken back" again_and_again "$(amount 3 4 40)" take_back
check "its process killed" again_and_again "$(amount 2 2 20)" kill_owner
same "nobody was cut off" 0 "$(cut_off)"
parameter revoke_wait_ms 100
check "taken back, at short notice" again_and_again "$(amount 2 3 20)" take_back
check "its process killed, at short notice" again_and_again "$(amount 1 1 20)" kill_owner
before=$(cut_off)
echo "cut off $before times"
# Its answer is not there in time, whatever it does.
vmctl put late yes
vmctl get is.late 60
check "taken back from one that is slow" take_back
check "who is cut off" test "$(cut_off)" -gt "$before"
vmctl put in.time yes
barrier over 60
check "one ends" talk_end x
check "the other ends" talk_end y
check "all pins are given back" wait_until 20 pins_are "$pins"
barrier end 60
rmpool peer del a
wait_until 30 queue_pairs_at_most "$qps"
barrier gone 60
