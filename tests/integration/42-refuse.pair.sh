# SPDX-License-Identifier: MIT
# vm: timeout=300 test=long
#
# Strangers, and those who do not keep to the protocol.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# Lines about the connect requests that were rejected.
rejected()	# REASON
{
	kernel_log | grep -c "connect request from $PEER_IP0:[0-9]* rejected: $1"
}

# How long ago, in seconds, the first of them was.
since_first()
{
	local first

	first=$(kernel_log | grep -m 1 "connect request from" | sed 's/^\[ *\([0-9]*\).*/\1/')
	echo $(($(cut -d. -f1 /proc/uptime) - first))
}

# The log takes ten such lines in five seconds.
quiet_again()
{
	[ "$(since_first)" -ge 6 ]
}

if [ "$VM" = b ]; then
	serve mem --size 1M
	barrier stranger
	barrier refused
	same "a stranger: one line" 1 "$(rejected "not in the peer table")"
	rmpool peer add a "v1:$PEER_IP0:13579"
	barrier known
	barrier malformed 200
	same "another version: one line" 1 "$(rejected "another protocol version")"
	same "malformed: one line each" 3 "$(rejected "malformed private data")"
	same "no control connection: one line" 1 "$(rejected "no control connection")"
	check "the log takes more" wait_until 20 quiet_again
	barrier tokens
	barrier used 250
	same "no valid token: one line each" 3 "$(rejected "no valid token")"
	barrier end 250
	check "segment listed" grep -q mem <(rmpool segment list)
	kill $server
	check "serve ends well" wait $server
	exit
fi

try()		# NAME KIND ANSWER
{
	same "$1" "$3" "$(timeout $((60 * VM_SLOW)) cm_client connect "$PEER_IP0" 13579 "$2" 2>&1)"
}

# Passes on what a program says of its tests.
tell()		# COMMAND...
{
	local line state=1

	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*) line=${line#not ok }; not_ok "${line%%: *}" "${line#*: }" ;;
		"end "*) state=${line#end } ;;
		*) echo "$line" ;;
		esac
	done < <(timeout $((200 * VM_SLOW)) "$@" 2>&1; echo "end $?")
	same "${*:1:2} ends well" 0 "$state"
}

barrier stranger
try "a stranger" control "rejected 3"
barrier refused
barrier known
try "another version" version "rejected 1"
try "wrong magic" magic "rejected 2"
try "too short" short "rejected 2"
try "something behind the end" tail "rejected 2"
try "data without control" data "rejected 8"
barrier malformed
barrier tokens 100
tell cm_client tokens "$PEER_IP0" 13579
barrier used
try "unknown kind" kind "rejected 2"
try "no private data" empty "rejected 2"
try "noise" noise "rejected 2"
tell cm_client storm "$PEER_IP0" 13579 "$RMPOOL_SEED" 12
tell cm_client tokens "$PEER_IP0" 13579

# It works as ever for those who do.
rmpool peer add b "v1:$PEER_IP0:13579"
steps_start
step_gives "open" OK open b/mem 30000
step_gives "put and get" OK verify 0 1000000 30000
check "both rails" wait_until 20 rails_are b 2
steps_end
barrier end
