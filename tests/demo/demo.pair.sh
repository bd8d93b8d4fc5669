# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# vm: timeout=900
#
# The part of the demo that runs in the VMs. Works on b, tells on a: lines that
# begin with "@demo " are for tests/demo/run, which shows and judges them.
#
# DEMO_BREAK, from there, makes something go wrong: "byte" alters one byte in
# the memory of b after the put, "rail" takes away a device of b.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

# The largest kernel image there is: that of 6.1 has less than 8 MiB.
FILE=$(find /boot -maxdepth 1 -name 'vmlinuz-*' -printf '%s %p\n' | sort -n | tail -n 1)
FILE=${FILE#* }
SIZE=$(stat -c %s "$FILE")
SECONDS_EACH=2
PERFTEST_UNTIL=130	# seconds after the start, on machines that are very slow

tell()		# KEY TEXT
{
	printf '@demo %s\n' "$*"
}

shown()		# COMMAND...: tells it with what it prints
{
	local out status

	tell command "$*"
	out=$("$@" 2>&1)
	status=$?
	while read -r line; do
		[ -z "$line" ] || tell output "$line"
	done <<<"$out"
	[ $status = 0 ] || echo "exit status $status" >&2
	return $status
}

step()		# NAME COMMAND...: one that must succeed, else the demo ends
{
	local name=$1 status

	shift
	"$@" 2>"$TMP/stderr"
	status=$?
	cat "$TMP/stderr"
	if [ $status != 0 ]; then
		not_ok "$name" "$(tail -n 1 "$TMP/stderr")"
		exit 0
	fi
	ok "$name"
}

digest()	# FILE
{
	local sum

	sum=$(sha256sum "$1") && echo "${sum%% *}"
}

listening()
{
	[ -n "$(ss -Hltn 'sport = :18515')" ] && [ -n "$(ss -Hltn 'sport = :18516')" ]
}

# ib_write_bw or ib_read_bw on one rail, like rmpool: as many queue pairs, up to
# 32 requests posted at once, 0.5 s to an acknowledgement (its default of 67 ms
# is too short for busy emulated machines, which then send all again).
# ITERATIONS and DEPTH are for each queue pair; perftest shows nothing unless the
# list divides the iterations.
perftest()	# PROGRAM SIZE DEPTH ITERATIONS RAIL [HOST]
{
	local own=IP$5 list=$(($3 < 32 ? $3 : 32))

	# shellcheck disable=SC2086 # HOST may be missing
	timeout 20 "$1" -F -u 17 -d "rxe$5" -x "$(gid_index "rxe$5" "${!own}")" -p $((18515 + $5)) \
		-s "$2" -q 2 -t "$3" -n "$4" -l $list ${6-}
}

# The average in MB/s (perftest counts MiB); fails when there is none.
perftest_average()	# FILE
{
	awk '$1 ~ /^[0-9]+$/ && NF >= 5 { v = $4 }
		END { if (v + 0 <= 0) exit 1; printf "%.1f\n", v * 1.048576 }' "$1"
}

# ---- b: does what a asks ---------------------------------------------------

if [ "$VM" = b ]; then
	[ "$DEMO_BREAK" != rail ] || rxe_del 1
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	rmpool serve demo --size "$SIZE" >"$TMP/demo" &
	serve=$!
	head -c 8M /dev/zero | tr '\0' '\245' >"$TMP/filled"
	rmpool serve speed --file "$TMP/filled" >"$TMP/speed" &
	serve_speed=$!
	if ! wait_until 60 grep -q ready "$TMP/demo" ||
	   ! wait_until 60 grep -q ready "$TMP/speed"; then
		not_ok "serve" "$(cat "$TMP/demo" "$TMP/speed")"
	fi
	vmctl put ready "$(head -n 1 "$TMP/demo")"
	for ((n = 0; ; n++)); do
		read -r what arguments <<<"$(vmctl get "ask.$n" 300)"
		case $what in
		digest)
			kill -USR1 $serve
			wait_until 90 grep -q /demo$ "$TMP/demo"
			vmctl put digest "$(awk '/\/demo$/ { print $1 }' "$TMP/demo")"
			;;
		ib_*)
			# shellcheck disable=SC2086 # three words
			perftest "$what" $arguments 0 >"$TMP/rail0" 2>&1 &
			first=$!
			# shellcheck disable=SC2086
			perftest "$what" $arguments 1 >"$TMP/rail1" 2>&1 &
			second=$!
			wait_until 15 listening || echo "$what: does not listen"
			vmctl put "answer.$n" ready
			wait $first $second
			cat "$TMP/rail0" "$TMP/rail1"
			;;
		*)
			break
			;;
		esac
	done
	[ "$DEMO_BREAK" != rail ] || rxe_add 1
	kill $serve $serve_speed
	check "serve ends well" wait $serve $serve_speed
	exit
fi

# ---- a ---------------------------------------------------------------------

asked=0
ask()		# WORDS...
{
	vmctl put "ask.$asked" "$*"
	asked=$((asked + 1))
}

rails_that_are_up()
{
	rmpool -j peer list | python3 -c 'import json, sys
print(sum(r["state"] == "up" for p in json.load(sys.stdin)["peers"] for r in p["rails"]))'
}

rails_up_are()	# NUMBER
{
	[ "$(rails_that_are_up)" = "$1" ]
}

# Sets RATE to the MB/s over both rails at once, or to "-": now and then perftest
# shows no figure, or 0.00. Not for a subshell: "asked" counts on.
perftest_pair()	# PROGRAM SIZE DEPTH ITERATIONS
{
	local try one two first

	RATE=-
	for try in 1 2 3; do
		[ $SECONDS -lt $PERFTEST_UNTIL ] || break
		ask "$@"
		vmctl get "answer.$((asked - 1))" 60 >/dev/null || continue
		perftest "$@" 0 "$PEER_IP0" >"$TMP/rail0" 2>&1 &
		first=$!
		perftest "$@" 1 "$PEER_IP1" >"$TMP/rail1" 2>&1
		wait $first
		if one=$(perftest_average "$TMP/rail0") && two=$(perftest_average "$TMP/rail1"); then
			RATE=$(awk "BEGIN { printf \"%.1f\", $one + $two }")
			return
		fi
		echo "$1: no figure, try $try" >&2
		cat "$TMP/rail0" "$TMP/rail1" >&2
	done
}

speed_row()	# SIZE DEPTH ITERATIONS; perftest has DEPTH / 4 for each queue pair
{
	local size=$1 depth=$2 put get write

	put=$(speed put b/speed "$size" "$depth" $SECONDS_EACH) || return
	perftest_pair ib_write_bw "$size" $((depth / 4)) "$3"
	write=$RATE
	get=$(speed get b/speed "$size" "$depth" $SECONDS_EACH) || return
	perftest_pair ib_read_bw "$size" $((depth / 4)) "$3"
	tell speed "$size $depth ${put%% *} $write ${get%% *} $RATE"
}

ready=$(vmctl get ready 150) || { not_ok "b serves memory" "no word from b"; exit 0; }

tell step "b holds $SIZE bytes of memory for others"
tell on b
tell command rmpool peer add a "v1:$IP0:13579"
tell command rmpool serve demo --size "$SIZE"
tell output "$ready"

tell step "a puts a file there, and gets it back"
tell on a
step "peer add" shown rmpool peer add b "v1:$PEER_IP0:13579"
tell sha "$(digest "$FILE") source"
# Peers are connected when they are first wanted. What is quick may be over before
# the second rail is there.
step "first get" rmpool get -q b/speed 1 "$TMP/first"
wait_until 60 rails_up_are 2
tell output "peer b is connected, rails up: $(rails_that_are_up)"
step "put" shown rmpool put "$FILE" b/demo
if [ "$DEMO_BREAK" = byte ]; then
	printf x | rmpool put -q - b/demo+123456
fi
ask digest
tell sha "$(vmctl get digest 120) memory"
step "get" shown rmpool get b/demo "$SIZE" "$TMP/back"
tell sha "$(digest "$TMP/back") returned"

tell rails "$SIZE $(rmpool -j peer list | tr -d '\n')"
[ -z "$DEMO_BREAK" ] || { ask end; exit 0; }

tell table
step "speed of 4 KiB" speed_row 4096 256 2048
step "speed of 64 KiB" speed_row 65536 128 128
step "speed of 1 MiB" speed_row 1048576 32 16
tell end
ask end
