# SPDX-License-Identifier: MIT
# vm: timeout=100 module=0
#
# The channel: values, barriers, uploads, frozen peers, cut rails.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

# Values, with every awkward byte.
text=$'a b%20 "c" \\ \u00e4\nsecond line'
[ "$VM" = b ] || vmctl put text "$text"
same "value arrives whole" "$text" "$(vmctl get text)"

# A barrier opens for all at once and can be used again.
for turn in 1 2 3; do
	vmctl put "$VM$turn" here
	barrier again
	same "turn $turn: the other was there" here "$(vmctl get "$PEER$turn" 0.5)"
done

# Limits.
if vmctl get never 1; then
	not_ok "a wait for nothing ends" "it got something"
else
	ok "a wait for nothing ends"
fi

# Several processes of one VM may wait at the same time, and a killed one
# leaves the port usable.
for i in 1 2 3 4 5; do
	vmctl get "late$i" >"$TMP/late$i" &
done
vmctl get never 60 &
killed=$!
barrier waiters
kill -KILL $killed
for i in 1 2 3 4 5; do
	vmctl put "late$i" "$i"
done
wait
same "five waiters" 12345 "$(cat "$TMP"/late? | tr -d '\n')"

# Upload.
head -c 50000 /dev/urandom >"$TMP/data"
check "upload" vmctl upload data <"$TMP/data"
vmctl put "sum.$VM" "$(sha256sum <"$TMP/data")"

answers()	# IP
{
	ping -c 1 -W 1 "$1" >/dev/null 2>&1
}

# A frozen peer: silent, then alive again, and it does not know.
changes=$(cat /sys/class/net/data[01]/carrier_changes)
barrier freeze
if [ "$VM" = a ]; then
	check "peer answers" wait_until 10 answers "$PEER_IP0"
	check "freeze" vmctl qmp b stop
	if answers "$PEER_IP0"; then
		not_ok "a frozen peer is silent" "it answers"
	else
		ok "a frozen peer is silent"
	fi
	check "thaw" vmctl qmp b cont
	check "peer answers again" wait_until 10 answers "$PEER_IP0"
fi
barrier thawed
same "links of a frozen VM stay up" "$changes" "$(cat /sys/class/net/data[01]/carrier_changes)"

carrier()	# RAIL STATE
{
	[ "$(cat "/sys/class/net/data$1/carrier")" = "$2" ]
}

# A cut rail: no carrier here, the other rail lives.
if [ "$VM" = a ]; then
	vmctl qmp a link 1 off
	check "rail 1 loses its carrier" wait_until 10 carrier 1 0
	check "rail 0 keeps its own" carrier 0 1
	check "rail 0 still works" wait_until 10 answers "$PEER_IP0"
	vmctl qmp a link 1 on
	check "rail 1 is back" wait_until 10 carrier 1 1
	check "rail 1 works" wait_until 20 answers "$PEER_IP1"
fi
barrier end
