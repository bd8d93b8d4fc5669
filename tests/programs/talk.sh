# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For suites that talk with test programs, line by line, while other things go
# on: . "$RMPOOL_TREE/tests/programs/talk.sh"

declare -A TALK_IN TALK_OUT TALK_PID

# Starts a program; NAME stands for it below.
talk_start()	# NAME COMMAND [ARG...]
{
	local name=$1 in out fd

	shift
	mkfifo "$TMP/$name.in" "$TMP/$name.out"
	(
		# The end of other programs' input is not to be held up by this one.
		for fd in "${TALK_IN[@]}" "${TALK_OUT[@]}"; do
			exec {fd}>&-
		done
		exec "$@"
	) <"$TMP/$name.in" >"$TMP/$name.out" &
	TALK_PID[$name]=$!
	exec {in}>"$TMP/$name.in" {out}<"$TMP/$name.out"
	TALK_IN[$name]=$in
	TALK_OUT[$name]=$out
}

# The next line it says, or nothing when it says none.
talk_hear()	# NAME
{
	local line=

	read -r -t $((120 * VM_SLOW)) line <&"${TALK_OUT[$1]}"
	echo "$line"
}

talk_say()	# NAME WORD...
{
	echo "${@:2}" >&"${TALK_IN[$1]}"
}

# Says something; what it answers.
talk_ask()	# NAME WORD...
{
	talk_say "$@"
	talk_hear "$1"
}

# Ends its input and waits for its end; its exit status.
talk_end()	# NAME
{
	local in=${TALK_IN[$1]} out=${TALK_OUT[$1]} status

	exec {in}>&-
	wait "${TALK_PID[$1]}"
	status=$?
	exec {out}<&-
	rm -f "$TMP/$1.in" "$TMP/$1.out"
	unset "TALK_IN[$1]" "TALK_OUT[$1]" "TALK_PID[$1]"
	return $status
}

# Numbers of this host's connected QPs, control ones included.
connected_qps()
{
	rdma resource show qp | grep 'type RC' | grep -o 'lqpn [0-9]*' | sort
}
