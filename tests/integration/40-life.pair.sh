# SPDX-License-Identifier: MIT
# vm: timeout=300 test=long
#
# Ends of processes: of one with puts in flight, of one whose memory is being
# written, of one whose peer does not answer. Whoever else there is goes on.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	pins=$(pinned_pages)
	serve two --size 1M
	two=$server
	pins_two=$(pinned_pages)
	serve one --size 1M
	one=$server
	barrier served
	barrier stream 200
	crash "$one"
	check "pins of the killed server are given back" wait_until 15 pins_are "$pins_two"
	serve one --size 1M
	vmctl put again yes
	barrier end 250
	kill "$server" "$two"
	wait "$server" "$two"
	check "all pins are given back" wait_until 15 pins_are "$pins"
	exit
fi

# A stream is on its way when it says so.
stream()	# NAME SEGMENT LENGTH DEPTH; the process is in $stream
{
	steps stream "b/$2" 0 "$3" "$4" >"$TMP/$1" 2>&1 &
	stream=$!
	wait_until 40 says streaming "$TMP/$1" ||
		not_ok "stream $1" "did not start: $(cat "$TMP/$1")"
}

# It must be dead at once: not in an uninterruptible wait.
killed()	# PID
{
	kill -9 "$1"
	wait "$1" 2>/dev/null
	! [ -e "/proc/$1" ]
}

barrier served
pins=$(pinned_pages)
qps=$(queue_pairs)
stream other two 65536 4
other=$stream
pins_other=$(pinned_pages)

stream victim one 1M 256
within 8 "a process with 256 puts in flight dies" killed "$stream"
check "its pins are given back" wait_until 15 pins_are "$pins_other"

exec 9<>/dev/rmpool
check_fails "unload while a file is open" "in use" rmmod rmpool
exec 9>&-

stream writer one 1M 64
barrier stream
within 20 "puts to a killed server end" wait "$stream"
result=$(tail -n 1 "$TMP/writer")
echo "writer: $result"
case $result in
*not-ended* | '') not_ok "each has an end" "$result" ;;
*ESTALE* | *EREMOTEIO* | *ECONNRESET*) ok "each has an end" ;;
*) not_ok "each has an end" "none failed: $result" ;;
esac
kill "$other"
wait "$other"
same "another segment of that peer is not disturbed" 0 $?
cat "$TMP/other"
vmctl get again 120

# A peer that hangs.
steps_start
step_gives "open" OK open b/one 20000
step_gives "put" OK verify 0 65536 20000
pins_steps=$(pinned_pages)
stream victim one 1M 64
vmctl qmp b stop
within 8 "a process dies while its peer hangs" killed "$stream"
check "its pins are given back while the peer hangs" wait_until 40 pins_are "$pins_steps"
vmctl qmp b cont
step_again 30 "put when the peer goes on" verify 0 65536 10000
steps_end
check "as many queue pairs as before, and the rails'" wait_until 30 queue_pairs_at_most $((qps + 5))

stream victim one 1M 256
kill -9 "$stream"
wait "$stream" 2>/dev/null
within 20 "unload" wait_until 18 try_rmmod
check "all pins are given back" pins_are "$pins"
barrier end 60
