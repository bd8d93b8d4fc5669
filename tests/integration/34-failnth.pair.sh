# SPDX-License-Identifier: MIT
# vm: level=all all=1800 long=6000 kernels=test alone=1 append=slab_debug=U module=0 shortage=1
#
# Allocations that fail, at every place of every operation, in both roles: the caller
# gets an error or what it asked for, the same again works, and nothing is left. See
# failnth.c. RMPOOL_SEED repeats a run.
#
# shellcheck disable=SC2086 # lists of operations
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/leaks.sh"

# An attempt to connect has as long as all else here.
module_load "connect_timeout_ms=$((3000 * VM_SLOW))" || exit 1

# Operations of one process by itself, those with a peer, and what the peer sees of them.
alone="open ring publish unpublish register unregister peer node lists"
both="connect segment list withdraw extend sync async cached staged"

if [ "$VM" = b ]; then
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	failnth serve >"$TMP/ready" &
	server=$!
	wait_until 30 grep -q ready "$TMP/ready" || not_ok "failnth serve" "not ready"
	barrier served
	# The first connection leaves what stays as it is.
	barrier warm 300
	settle
	before=$settled
	barrier state
	barrier end 6000
	kill -0 $server || not_ok "failnth serve" "has ended"
	state_again "nothing is left behind" "$before"
	kill $server
	wait $server
	exit 0
fi

# Each so manieth allocation, or so many places for faults in a row.
sweep()		# WHERE FAULT ALL LONG OPERATION...
{
	local where=$1 fault=$2 step

	step=$(amount 0 "$3" "$4")
	shift 4
	check_lines "$fault $where" \
		failnth run "$PEER_IP0" "$where" "$fault" "$step" "$RMPOOL_SEED" "$@"
	state_again "$fault $where ($*): nothing is left behind" "$before"
}

barrier served
check_lines "without faults" failnth run "$PEER_IP0" here task 100000 0 $alone $both
barrier warm
barrier state 300
settle
before=$settled
echo "seed $RMPOOL_SEED"
sweep here task 211 1 $alone $both
sweep here slab 523 1 $alone
sweep here slab 1297 1 $both
sweep here page 211 1 $alone $both
sweep here slabs 2 100 $alone $both
sweep here pages 2 50 $alone $both
sweep there slab 1297 1 $both
sweep there page 211 1 $both
sweep there slabs 2 50 $both
sweep there pages 2 50 $both
barrier end
