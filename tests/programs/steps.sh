# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For suites that drive a process step by step (steps.c), and look at peers:
#	. "$RMPOOL_TREE/tests/programs/steps.sh"
# after the guest's lib.sh.

steps_start()
{
	coproc STEPS { exec steps run 2>&1; }
	# shellcheck disable=SC2153 # coproc sets it
	steps_pid=$STEPS_PID
	steps_in=${STEPS[1]}
	if ! read -r -t $((60 * VM_SLOW)) -u "${STEPS[0]}" step_error step_ms step_text ||
	   [ "$step_error" != OK ]; then
		not_ok "steps" "did not start"
		exit 1
	fi
}

steps_end()
{
	exec {steps_in}>&-
	wait "$steps_pid"
}

# One step; what it said is in step_error, step_ms and step_text.
step()		# COMMAND...
{
	step_error=silent step_ms=0 step_text=
	echo "$*" >&"${STEPS[1]}" &&
		read -r -t $((100 * VM_SLOW)) -u "${STEPS[0]}" step_error step_ms step_text
	echo "step $*: $step_error after $step_ms ms: $step_text"
	[ "$step_error" = OK ]
}

# One test: a step ends with an error out of a list "A|B", OK for none.
step_gives()	# NAME ERRORS COMMAND...
{
	local name=$1 wanted=$2

	shift 2
	step "$@"
	if [[ $step_error =~ ^($wanted)$ ]]; then
		ok "$name"
	else
		not_ok "$name" "$* gave $step_error after $step_ms ms: $step_text"
		return 1
	fi
}

# One test: a step that ends well within so many seconds, if it is tried again.
step_again()	# SECONDS NAME COMMAND...
{
	local most=$1 name=$2

	shift 2
	if wait_until "$most" step "$@"; then
		ok "$name"
	else
		not_ok "$name" "$* gave $step_error after $step_ms ms: $step_text"
		return 1
	fi
}

# One test: how long the last step took.
step_took()	# NAME LEAST MOST
{
	local most=$(($3 * VM_SLOW))

	if [ "$step_ms" -ge "$2" ] && [ "$step_ms" -le $most ]; then
		ok "$1"
	else
		not_ok "$1" "took $step_ms ms, not $2 to $most"
	fi
}

# One test: a command, that may fail, takes at most so long.
within()	# SECONDS NAME COMMAND...
{
	local most=$(($1 * VM_SLOW)) name=$2 began=$EPOCHREALTIME ended took status

	shift 2
	"$@"
	status=$?
	ended=$EPOCHREALTIME	# before there is a process for awk
	took=$(awk -v a="$began" -v b="$ended" 'BEGIN { print b - a }')
	if awk -v t="$took" -v m="$most" 'BEGIN { exit !(t <= m) }'; then
		ok "$name: in $most s"
	else
		not_ok "$name: in $most s" "took $took s"
	fi
	return $status
}

peer_state()	# PEER
{
	rmpool peer list | awk -v peer="$1" '$1 == peer { print $3 }'
}

peer_is()	# PEER STATE
{
	[ "$(peer_state "$1")" = "$2" ]
}

# A line of the table for each rail of a peer that is up.
rails()		# PEER
{
	rmpool peer list | awk -v peer="$1" '
		/^[^ ]/ { mine = $1 == peer }
		mine && $1 == "rail" && $4 == "up"'
}

rails_are()	# PEER NUMBER
{
	[ "$(rails "$1" | wc -l)" = "$2" ]
}

device_line()	# RDMA-DEVICE
{
	rmpool device | grep "^$1/"
}

device_usable()	# RDMA-DEVICE
{
	device_line "$1" | grep -q ' yes *$'
}

# Publishes in the background; the process is in $server.
serve()		# NAME OPTION...
{
	rmpool serve "$@" >"$TMP/served.$1" &
	# shellcheck disable=SC2034 # for the suite
	server=$!
	wait_until 60 grep -q ready "$TMP/served.$1" ||
		not_ok "serve $1" "not ready: $(cat "$TMP/served.$1")"
}

# The same as if it had crashed.
crash()		# PID
{
	kill -9 "$1"
	wait "$1" 2>/dev/null
	return 0
}

pins_are()	# PAGES
{
	[ "$(pinned_pages)" = "$1" ]
}

says()		# TEXT FILE
{
	grep -q -- "$1" "$2"
}

queue_pairs()
{
	rdma resource show qp | wc -l
}

queue_pairs_at_most()	# NUMBER
{
	[ "$(queue_pairs)" -le "$1" ]
}

# How often a function of the module was called, where the kernel can tell.
STEPS_TRACE=/sys/kernel/tracing
count_calls()	# FUNCTION
{
	[ -e $STEPS_TRACE/kprobe_events ] || mount -t tracefs nodev $STEPS_TRACE 2>/dev/null
	echo "p:rmp_calls rmpool:$1" >>$STEPS_TRACE/kprobe_events &&
		echo 1 >$STEPS_TRACE/events/kprobes/rmp_calls/enable
} 2>/dev/null

calls_counted()
{
	awk '$1 == "rmp_calls" { print $2 }' $STEPS_TRACE/kprobe_profile
	echo 0 >$STEPS_TRACE/events/kprobes/rmp_calls/enable
	echo "-:rmp_calls" >>$STEPS_TRACE/kprobe_events
}
