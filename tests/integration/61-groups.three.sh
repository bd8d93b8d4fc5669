# SPDX-License-Identifier: MIT
# vm: timeout=200 6.1=long test=long level=all
#
# Two peers in different trust groups use one segment at the same time: each with memory
# regions in PDs of its own group.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# How many users, memory regions and queue pairs, each PD of rmpool has on a device, the
# smallest number first.
pd_users()	# RDMA-DEVICE
{
	rdma -j resource show pd | python3 -c '
import json, sys
print(*sorted(p["users"] for p in json.load(sys.stdin)
              if p["ifname"] == sys.argv[1] and "rmpool" in p.get("comm", "")))' "$1"
}

pds_are()	# RDMA-DEVICE NUMBER
{
	[ "$(pd_users "$1" | wc -w)" = "$2" ]
}

mrs()
{
	rmpool -j region list | python3 -c '
import json, sys
print(sum(r["memory_regions"] for r in json.load(sys.stdin)["regions"]
          if r["segment"] == "mem"))'
}

mrs_are()	# NUMBER
{
	[ "$(mrs)" = "$1" ]
}

if [ "$VM" = a ]; then
	check "peer add b" rmpool peer add b "v1:$(rail_address 2 0):13579" --group red
	check "peer add c" rmpool peer add c "v1:$(rail_address 3 0):13579" --group blue
	steps_start
	# Many memory regions, also of huge pages: more than there are queue pairs.
	parameter max_chunk_mib 1
	step_gives "publish" OK publish mem 16777216
	one=$(mrs)
	barrier published
	barrier open 60
	check "mapped for three groups" wait_until 10 mrs_are $((3 * one))
	check "a PD for each, and one for control" wait_until 10 pds_are rxe0 4
	pd_users rxe0
	same "each of the groups has the memory regions" 3 "$(pd_users rxe0 | tr ' ' '\n' |
		awk -v both="$one" '$1 > both / 2' | wc -l)"
	barrier looked
	barrier used 100

	# One goes to the group of the other, which notices nothing.
	check "peer del c" rmpool peer del c
	check "what its group had is gone" wait_until 10 mrs_are $((2 * one))
	check "peer add c" rmpool peer add c "v1:$(rail_address 3 0):13579" --group red
	barrier moved
	barrier end 100
	check "mapped for two groups" wait_until 10 mrs_are $((2 * one))
	check "and one PD less" wait_until 10 pds_are rxe0 3
	steps_end
	exit
fi

# Each its half; little, since what two send at once to one is lost between three machines,
# and soft-RoCE sends all of a large slice again.
half=$(((VM_NUMBER - 2) * 2097152))
check "peer add" rmpool peer add a "v1:$(rail_address 1 0):13579"
steps_start
barrier published 60
step_gives "open" OK open a/mem 20000
step_gives "put and get" OK verify $half 131072 20000
barrier open 60
barrier looked 60
for ((i = 0; i < $(amount 3 3 20); i++)); do
	step verify $half 131072 $((20000 * VM_SLOW)) || not_ok "beside each other" "$step_error: $step_text"
done
barrier used 60
if [ "$VM" = b ]; then
	step_gives "the other does not notice" OK verify $half 131072 20000
	barrier moved 60
	step_gives "nor then" OK verify $half 131072 20000
else
	barrier moved 60
	step_again 10 "close" close
	step_again 30 "open" open a/mem 10000
	step_gives "put and get in the other group" OK verify $half 131072 20000
fi
barrier end 100
steps_end
