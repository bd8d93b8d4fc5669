# SPDX-License-Identifier: MIT
# vm: timeout=300 long=1200 level=all test=long
#
# Memory is taken back while a process of the peer puts and gets, by calls and by the end
# of its process. Its requests end, and nothing of them comes afterwards. Another process
# there, which uses another segment, does not notice, also when the peer gets so little
# time that its queue pairs are closed.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

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
	barrier over "$(amount 200 200 1000)"
	kill $x $y
	wait $y
	same "no request to the other segment failed" 0 $?
	wait $x
	same "requests ended as they may" 0 $?
	tail -n 2 "$TMP/y" "$TMP/x"
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
echo "cut off $(cut_off) times"
barrier over
check "one ends" talk_end x
check "the other ends" talk_end y
check "all pins are given back" wait_until 20 pins_are "$pins"
