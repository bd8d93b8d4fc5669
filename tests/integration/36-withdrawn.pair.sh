# SPDX-License-Identifier: MIT
# vm: timeout=300 long=1200 level=all test=long
#
# Memory is taken back while a process of the peer puts and gets, by calls and by the end
# of its process. Its requests end, and nothing of them comes afterwards. Other processes
# that use these queue pairs do not notice: one there, with another segment, and one here,
# with a segment of the peer. Nor do they when the peer stays silent and its queue pairs
# are closed.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

# Now: a card loses what is sent while it gets one, and soft-RoCE its queue pair 1 with that.
[ "$VM" = b ] || tc qdisc add dev data0 clsact
barrier filters
# The session must outlive that one host does not hear the other for as long as a step below
# takes: by default it would be three seconds, until the control channel's queue pair fails.
peers_wait_long
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

silences=$(amount 3 3 30)

if [ "$VM" = a ]; then
	# The control channel is the first queue pair that the connection manager made here:
	# what comes for it gets lost. (What is lost on its way out, soft-RoCE notices.)
	control_is_deaf()
	{
		local qp

		qp=$(rdma -j resource show cm_id | python3 -c '
import json, sys
print(min(c["lqpn"] for c in json.load(sys.stdin)
          if c["state"] == "CONNECT" and c["ifname"] == "rxe0"))') &&
			# Behind the headers of IPv4 and UDP, the second word of the BTH.
			tc filter add dev data0 ingress protocol ip u32 \
				match u32 "$qp" 0xffffff at 32 action drop
	}

	talk_start z withdraw host z 8
	same "published" ok "$(talk_hear z)"
	barrier published
	barrier served
	withdraw user b/y 8 strict >"$TMP/y" 2>&1 &
	y=$!
	withdraw user b/x 8 loose >"$TMP/x" 2>&1 &
	x=$!
	check "one is used" wait_until 60 says using "$TMP/x"
	check "the other is used" wait_until 60 says using "$TMP/y"
	barrier used
	for ((i = 0; i < silences; i++)); do
		vmctl get "deaf$i" 200
		control_is_deaf || not_ok "the control channel hears nothing" "no filter"
		barrier "deaf$i"
		barrier "hearing$i" 100
		tc filter del dev data0 ingress
	done
	barrier silences 100
	kill $x $y
	wait $y
	same "no request to the other segment failed" 0 $?
	wait $x
	same "requests ended as they may" 0 $?
	tail -n 2 "$TMP/y" "$TMP/x"
	check "the peer's ends" talk_end z
	barrier over
	exit
fi

# What the process that has the memory says is good.
says_ok()	# WORD...
{
	local answer

	answer=$(talk_ask x "$@")
	[ "$answer" = ok ] || { echo "$1: $answer"; return 1; }
}

# All of it is free when the call returns.
withdraw_all()
{
	local word ms pins

	read -r word ms pins <<<"$(talk_ask x withdraw)"
	echo "unregistered after $ms ms, VmPin $pins"
	[ "$word" = ok ] && [ "$pins" = 0 ]
}

owner_dies()
{
	kill -9 "${TALK_PID[x]}"
	talk_end x 2>/dev/null
	wait_until 25 pins_are "$pins_y"
}

new_owner()
{
	talk_start x withdraw host x 8
	[ "$(talk_hear x)" = ok ]
}

# Nothing comes later.
take_back()
{
	says_ok busy && withdraw_all && says_ok stays 300 && says_ok publish
}

kill_owner()
{
	says_ok busy && owner_dies && new_owner
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

# A peer that hears nothing: it is cut off, and comes again when it hears.
silence=0
cut()		# COMMAND
{
	local before status

	before=$(cut_off)
	says_ok busy || return 1
	vmctl put "deaf$silence" yes
	barrier "deaf$silence"
	"$1"
	status=$?
	barrier "hearing$silence"
	silence=$((silence + 1))
	echo "cut off $(($(cut_off) - before)) times"
	[ $status = 0 ] && [ "$(cut_off)" -gt "$before" ]
}

cut_and_take_back()
{
	cut withdraw_all && says_ok stays 300 && says_ok publish
}

cut_and_kill_owner()
{
	cut owner_dies && new_owner
}

pins=$(pinned_pages)
barrier published
withdraw user a/z 8 strict >"$TMP/z" 2>&1 &
z=$!
check "the peer's is used" wait_until 60 says using "$TMP/z"
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
parameter revoke_wait_ms $((500 * VM_SLOW))
check "taken back from a silent peer" \
	again_and_again $((silences - silences / 3)) cut_and_take_back
check "its process killed, the peer is silent" \
	again_and_again $((silences / 3)) cut_and_kill_owner
kill $z
wait $z
same "no request to the peer's segment failed" 0 $?
tail -n 2 "$TMP/z"
barrier silences
barrier over 60
check "one ends" talk_end x
check "the other ends" talk_end y
check "all pins are given back" wait_until 20 pins_are "$pins"
