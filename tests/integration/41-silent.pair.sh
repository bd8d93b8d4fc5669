# SPDX-License-Identifier: MIT
# vm: timeout=300 test=long
#
# Peers that are not there, or do not answer: whoever waits gets a clear error
# within the time-out, and a signal ends every wait.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

if [ "$VM" = b ]; then
	drop="protocol ip flower ip_proto udp dst_port 4791 action drop"
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	serve mem --size 16M
	barrier served
	barrier frozen-first 200
	barrier frozen-later 200

	for rail in 0 1; do
		tc qdisc add dev data$rail clsact
		# shellcheck disable=SC2086 # words
		check "drop what comes in on rail $rail" tc filter add dev data$rail ingress $drop
	done
	vmctl put dropped yes
	barrier lost 200
	for rail in 0 1; do
		tc qdisc del dev data$rail clsact
	done
	vmctl put undropped yes
	barrier found 120

	kill $server
	wait $server
	module_unload
	vmctl put unloaded yes
	vmctl get waiting 60
	check "load" module_load accept=any
	vmctl put loaded yes
	vmctl get early 60
	serve late --size 16M
	vmctl put late yes
	barrier end 120
	kill "$server"
	wait "$server"
	exit
fi

ask()		# PEER TIMEOUT
{
	timeout $((60 * VM_SLOW)) rmpool get -t "$2" "$1/mem" 4096 "$TMP/file"
}

# All ways to wait end with a signal.
interrupts()	# WHAT
{
	# In the middle of the first one the peer may be given up, once.
	step interrupt put 0 65536 60000
	case $step_error in
	ENOTCONN | ECONNRESET) step interrupt put 0 65536 60000 ;;
	esac
	same "$1: SIGINT ends a put" EINTR "$step_error"
	step_took "$1: soon" 0 6000
	# It waits for the peer, too, when there is no connection any more.
	step interrupt start 4 65536 60000
	step_took "$1: puts through the ring do not wait for ever" 0 6000
	step_gives "$1: SIGINT ends a wait" EINTR interrupt wait 1000 -1
	step_took "$1: soon" 0 6000
	step cancel
	step_gives "$1: what was cancelled ends" OK drain 10000
}

# Puts end in time, whatever is queued before them.
overdue()	# WHAT
{
	# The loss of the peer may be noticed first.
	step_gives "$1: a put ends" "ETIMEDOUT|ENOTCONN|ECONNRESET" put 0 65536 1500
	step_took "$1: in time" 0 4000
	step_gives "$1: puts" OK start 32 4194304 1500
	step_gives "$1: all end" OK drain 20000
	case $step_text in
	*OK=*) not_ok "$1: none succeeds" "$step_text" ;;
	*ETIMEDOUT* | *ECONNRESET* | *ENOTCONN*) ok "$1: none succeeds" ;;
	*) not_ok "$1: none succeeds" "$step_text" ;;
	esac
	check "$1: in time" \
		test "$(expr "$step_text" : '.*longest \([0-9]*\)')" -le $((6000 * VM_SLOW))
}

# It is connected, and then it does not answer.
silence()	# WHAT
{
	local qps

	qps=$(queue_pairs)
	overdue "$1"
	interrupts "$1"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		step put 0 65536 300 && not_ok "$1: failing puts" "one succeeded"
	done
	check "$1: failing puts leave no queue pairs" wait_until 30 queue_pairs_at_most "$qps"
	steps_qps=$qps
}

# The tool itself, and no shell any more that ignores SIGINT, asks and sleeps.
tool_waits()	# PID
{
	[ "$(cat "/proc/$1/comm")" = rmpool ] && grep -q '^State:.*sleeping' "/proc/$1/status" &&
		[ -n "$(find "/proc/$1/fd" -lname /dev/rmpool)" ] && peer_is closed backoff
} 2>/dev/null

steps_start
barrier served

check "the other host is there" wait_until 20 ping -q -c 1 -W 1 "$PEER_IP0"
within 6 "unknown peer" check_fails "unknown peer" "not in the peer table" ask nobody 5

rmpool peer add closed "v1:$PEER_IP0:9999"
rmpool peer add nowhere "v1:10.77.0.99:13579"
rmpool peer add self "v1:$IP0:13579"
within 8 "port closed" check_fails "port closed" "nobody listens" ask closed 2
within 8 "no such host" check_fails "no such host" "no route" ask nowhere 2
within 10 "own address" check_fails "own address" "this node's own" ask self 20
step_gives "refused" ECONNREFUSED open closed/x 1000
step_took "in time" 900 4000
step_gives "port closed: SIGINT ends an open" EINTR interrupt open closed/x -1
step_took "port closed: soon" 0 6000
rmpool peer del self

# The tool, and its exit status.
env --default-signal=INT rmpool get -t none closed/mem 1 "$TMP/file" 2>"$TMP/tool" &
tool=$!
check "the tool waits" wait_until 10 tool_waits $tool
kill -INT $tool
within 6 "Ctrl-C ends the tool" wait $tool
same "with its status" 130 $?

# Not connected yet.
rmpool peer add b "v1:$PEER_IP0:13579"
vmctl qmp b stop
within 10 "frozen peer" check_fails "frozen peer" "does not answer" ask b 2
step_gives "frozen: open" ETIMEDOUT open b/mem 1500
step_took "frozen: in time" 1400 5000
step_gives "frozen: SIGINT ends an open" EINTR interrupt open b/mem -1
step_took "frozen: soon" 0 6000
vmctl qmp b cont
step_gives "open when it goes on" OK open b/mem 30000
step_gives "put when it goes on" OK verify 0 100000 20000
check "both rails" wait_until 30 rails_are b 2
barrier frozen-first

vmctl qmp b stop
silence "frozen"
vmctl qmp b cont
step_again 30 "a put works again" verify 0 100000 10000
barrier frozen-later
check "both rails are back" wait_until 30 rails_are b 2

vmctl get dropped 60
silence "dropped"
barrier lost
vmctl get undropped 60
step_again 30 "a put works again" verify 0 100000 10000
check "both rails are back" wait_until 30 rails_are b 2
check "as many queue pairs as before" wait_until 30 queue_pairs_at_most "$steps_qps"
barrier found

# We begin before the peer is there.
vmctl get unloaded 60
step open b/mem 100
steps stream b/mem 0 4096 1 >"$TMP/early" 2>&1 &
early=$!
check "waits for the peer" wait_until 20 peer_is b backoff
vmctl put waiting yes
vmctl get loaded 60
within 6 "connects when the peer's module is loaded" wait_until 30 peer_is b ready
wait $early
check "and is answered" says "no segment of that name" "$TMP/early"

# A device may take long to give queue pairs up: nobody has to wait for that.
vmctl put early yes
vmctl get late 60
step_gives "open" OK open b/late 20000
step_gives "puts" OK start 32 4194304 60000
vmctl qmp b stop
within 8 "Ctrl-C ends peer del while the peer hangs" timeout -s INT -k 60 2 rmpool peer del b
check "it is off the table" test -z "$(rmpool peer list | grep '^b ')"
vmctl qmp b cont
check "it can be added again" rmpool peer add b "v1:$PEER_IP0:13579"
steps_end
barrier end
