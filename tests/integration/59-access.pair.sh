# SPDX-License-Identifier: MIT
# vm: timeout=300 level=all test=long
#
# Who may open a segment, and with what access: what is refused is refused before it is
# posted; a right that is withdrawn, while puts are in flight, is gone when the call
# returns, and nobody else's requests fail for it.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# The memory regions that kernel and processes have on the devices here, one in a line.
mr_numbers()
{
	rdma -j resource show mr | python3 -c '
import json, sys
for m in json.load(sys.stdin):
    print(m["ifname"], m["mrn"])' | sort
}

# The queue pairs that are connected here, one in a line.
qp_numbers()
{
	rdma -j resource show qp | python3 -c '
import json, sys
for q in json.load(sys.stdin):
    if q.get("type") == "RC" and q.get("state") == "RTS":
        print(q["ifname"], q["lqpn"])' | sort
}

# Two for each rail, the control channel, and one of each device to itself.
qps_are_up()
{
	[ "$(qp_numbers | wc -l)" -ge 7 ]
}

# What a field of "rmpool -j" is at most.
most()		# LIST FIELD [SEGMENT]
{
	rmpool -j "$1" | python3 -c '
import json, sys
print(max(x[sys.argv[2]] for x in json.load(sys.stdin)[sys.argv[1] + "s"]
          if len(sys.argv) < 4 or x["segment"] == sys.argv[3]))' "$@"
}

# Says who may, and how many regions got other keys for it.
allow()		# NAME REKEYED LIST...
{
	local name=$1 rekeyed=$2

	shift 2
	step_gives "$name" OK allow "$@" && same "$name: other keys" "rekeyed $rekeyed" "$step_text"
}

rounds=$(amount 5 10 50)

# Queue pairs must live on, also when the other machine stands still for some seconds.
parameter ack_timeout $((VM_SLOW == 1 ? 18 : 19))
barrier patient

if [ "$VM" = b ]; then
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	steps_start
	step_gives "publish" OK publish mem 4194304
	step_gives "publish another" OK publish other 1048576
	allow "before anybody knows it" 0 mem c:rw
	check "the list is shown" grep -q "may open it: c:rw" <(rmpool segment list)
	barrier others-only
	barrier others-only-seen 60
	allow "more for one, nobody loses" 0 mem a:ro c:rw
	barrier read-only
	barrier read-only-seen 60
	allow "everybody" 0 mem everybody
	barrier everybody
	barrier streaming 60

	# Somebody else loses what the peer has: it gets other keys, and goes on.
	mr_numbers >"$TMP/before"
	allow "others may not" 1 mem a:rw
	mr_numbers >"$TMP/after"
	same "no key of before is left" "$(most region memory_regions mem)" \
		"$(comm -23 "$TMP/before" "$TMP/after" | wc -l)"
	same "as many as before" "$(wc -l <"$TMP/before")" "$(wc -l <"$TMP/after")"
	for ((i = 0; i < rounds; i++)); do
		{ step allow mem everybody && step allow mem a:rw b:ro; } ||
			not_ok "again and again" "$step_error: $step_text"
	done
	# Where there is no room for both, requests wait.
	step allow mem everybody
	parameter max_device_mrs $(($(most device memory_regions_used) + 1))
	allow "no room for old and new keys" 1 mem a:rw
	parameter max_device_mrs 0
	barrier rekeyed 60
	barrier streaming-again 60
	allow "less" 1 mem a:ro
	barrier less 60
	barrier less-seen 60
	allow "nothing" 1 mem c:rw
	barrier nothing
	barrier nothing-seen 60
	allow "and back" 0 mem everybody
	barrier back
	barrier back-seen 60
	# The peer does not answer: it loses its keys all the same.
	vmctl qmp a stop
	step_gives "withdrawn from one who is silent" OK allow mem c:rw
	step_took "in time" 1500 10000
	vmctl qmp a cont
	barrier thawed 60
	barrier end 150
	steps_end
	exit
fi

check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
steps_start
barrier others-only
step_gives "not on the list" EACCES open b/mem 20000
check "and why" grep -q "does not allow this node" <<<"$step_text"
step_gives "that does not harm another segment" OK open b/other 20000
step_gives "put to it" OK verify 0 100000 20000
check "all queue pairs" wait_until 20 qps_are_up
queue_pairs=$(qp_numbers)
barrier others-only-seen

barrier read-only
step_gives "on the list" OK open b/mem 20000
step_gives "get" OK get 0 1048576 20000
step_gives "put: refused" EACCES put 0 1048576 20000
step_took "before it is posted" 0 500
step_gives "get again" OK get 0 1048576 20000
same "the queue pairs live on" "$queue_pairs" "$(qp_numbers)"
barrier read-only-seen
barrier everybody
step_again 10 "put, when it may" verify 0 1048576 20000

# Puts in flight to this segment and to another all the time.
steps stream b/mem 0 1048576 8 >"$TMP/mem" 2>&1 &
mem=$!
steps stream b/other 0 65536 8 >"$TMP/other" 2>&1 &
other=$!
check "streaming" wait_until 30 says streaming "$TMP/mem"
check "streaming beside it" wait_until 30 says streaming "$TMP/other"
barrier streaming
barrier rekeyed 120
kill $mem
check "no put fails for other keys" wait $mem
cat "$TMP/mem"
same "the queue pairs live on" "$queue_pairs" "$(qp_numbers)"

steps stream b/mem 0 1048576 8 >"$TMP/mem" 2>&1 &
mem=$!
check "streaming again" wait_until 30 says streaming "$TMP/mem"
barrier streaming-again
barrier less 60
# It ends itself, with the first that fails.
check "puts in flight end with EACCES, when less is allowed" wait_until 30 says EACCES "$TMP/mem"
wait $mem
cat "$TMP/mem"
check_fails "and with nothing else" "" grep -qE "(STALE|REMOTEIO|CONNRESET|EIO|TIMEDOUT)=" "$TMP/mem"
step_gives "get goes on" OK get 0 1048576 20000
step_gives "put: refused" EACCES put 0 10 20000
barrier less-seen
barrier nothing
step_gives "get: refused, when nothing is allowed" EACCES get 0 10 20000
step_gives "and open" EACCES open b/mem 20000
barrier nothing-seen
barrier back
step_gives "open, when it may again" OK open b/mem 20000
step_gives "put and get" OK verify 0 1048576 20000
kill $other
check "no put to the other segment fails" wait $other
cat "$TMP/other"
same "the queue pairs live on" "$queue_pairs" "$(qp_numbers)"
barrier back-seen

barrier thawed 60
step_gives "gone while it was away" "EACCES|ETIMEDOUT|ENOTCONN|ECONNRESET" get 0 10 20000
step_again 30 "the other segment is there" open b/other 10000
step_again 30 "put and get" verify 0 100000 10000
barrier end
steps_end
