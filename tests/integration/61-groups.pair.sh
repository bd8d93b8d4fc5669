# SPDX-License-Identifier: MIT
# vm: timeout=240 6.1=all test=all
#
# Trust groups: a peer in one has PDs and memory regions of its own here, for what it has
# opened and what is moved from and to it; they come and go with it, with devices, and when
# it is put in another group.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# The PDs of rmpool on a device: two, and one for each group that is not the default one.
pds_are()	# RDMA-DEVICE NUMBER
{
	rdma -j resource show pd | python3 -c '
import json, sys
sys.exit(sum(p["ifname"] == sys.argv[1] and "rmpool" in p.get("comm", "")
             for p in json.load(sys.stdin)) != int(sys.argv[2]))' "$@"
}

# Memory regions of a segment, those of all groups.
mrs()		# SEGMENT
{
	rmpool -j region list | python3 -c '
import json, sys
print(sum(r["memory_regions"] for r in json.load(sys.stdin)["regions"]
          if r["segment"] == sys.argv[1]))' "$1"
}

mrs_are()	# SEGMENT NUMBER
{
	[ "$(mrs "$1")" = "$2" ]
}

group_of()	# PEER
{
	rmpool -j peer list | python3 -c '
import json, sys
print(*(p["group"] for p in json.load(sys.stdin)["peers"] if p["name"] == sys.argv[1]))' "$1"
}

if [ "$VM" = b ]; then
	check "no group but the default one" pds_are rxe0 2
	check_fails "a group that begins with @" "trust group" \
		rmpool peer add x v1:10.77.0.90:13579 --group @x
	check_fails "a peer that begins with @" "does not begin with @" \
		rmpool peer add @x v1:10.77.0.90:13579
	for ((i = 1; i <= 15; i++)); do
		rmpool -q peer add "g$i" "v1:10.77.0.$((90 + i)):13579" --group "g$i" ||
			not_ok "15 groups" "number $i"
	done
	check_fails "one too many" "16 trust groups" \
		rmpool peer add x v1:10.77.0.90:13579 --group more
	check "one more peer of one that is there" \
		rmpool peer add x v1:10.77.0.90:13579 --group g3
	same "it is shown" g3 "$(group_of x)"
	check_fails "another group for it" "is in the table" \
		rmpool peer add x v1:10.77.0.90:13579 --group g4
	for peer in x g{1..15}; do
		rmpool -q peer del "$peer" || not_ok "peer del" "$peer"
	done
	check "groups go with their peers" \
		wait_until 10 rmpool -q peer add a "v1:$PEER_IP0:13579" --group lab
	steps_start
	step_gives "publish" OK publish mem 4194304
	one=$(mrs mem)
	check "a group that nobody uses has no PD" pds_are rxe0 2
	barrier published
	barrier opened 60
	check "mapped for both groups" wait_until 10 mrs_are mem $((2 * one))
	check "a PD for the group" wait_until 10 pds_are rxe0 3
	check "and on the other device" wait_until 10 pds_are rxe1 3
	step_gives "publish what is opened later" OK publish other 1048576
	step_gives "open the peer's" OK open a/back 20000
	step_gives "put and get there" OK verify 0 1048576 20000
	barrier both

	step_gives "allow the group" OK allow mem @lab:rw
	barrier allowed
	barrier allowed-seen 60
	step_gives "allow another" OK allow mem @other:rw
	barrier denied
	barrier denied-seen 60
	step_gives "allow everybody" OK allow mem everybody
	barrier everybody
	barrier everybody-seen 60

	# A device goes, with what each group has on it, and comes back.
	check "a device goes" rxe_del 1
	barrier gone
	barrier gone-seen 60
	check "it comes back" rxe_add 1
	check "with the PD of the group" wait_until 20 pds_are rxe1 3
	check "and its memory regions" wait_until 10 mrs_are mem $((2 * one))
	barrier back
	barrier back-seen 60

	# In another group, by del and add. What is open keeps the old one.
	step_gives "close" OK close
	check "peer del" rmpool peer del a
	check "nothing of the group is left" wait_until 10 mrs_are mem "$one"
	check "nor its PD" wait_until 10 pds_are rxe0 2
	check "peer add to another group" rmpool peer add a "v1:$PEER_IP0:13579" --group other
	barrier moved
	barrier moved-seen 60
	check "mapped for that" wait_until 10 mrs_are mem $((2 * one))
	check "peer del" rmpool peer del a
	check "peer add to the default group" rmpool peer add a "v1:$PEER_IP0:13579"
	same "it is shown" default "$(group_of a)"
	barrier default
	barrier default-seen 60
	check "mapped once" wait_until 10 mrs_are mem "$one"
	check "no PD more" wait_until 10 pds_are rxe0 2
	barrier end
	steps_end
	exit
fi

# The group that the peer is in here is this node's own affair.
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579" --group elsewhere
steps_start
step_gives "publish" OK publish back 1048576
barrier published 60
step_gives "open" OK open b/mem 20000
step_gives "put and get" OK verify 0 4194304 20000
barrier opened
barrier both 60
step_gives "close" OK close
step_gives "what was published later" OK open b/other 20000
step_gives "put and get" OK verify 0 1048576 20000
step_gives "close" OK close
barrier allowed 60
step_gives "open, as one of the group" OK open b/mem 20000
step_gives "put and get" OK verify 0 1048576 20000
barrier allowed-seen
barrier denied 60
step_gives "not as one of another" EACCES get 0 10 20000
barrier denied-seen
barrier everybody 60
step_gives "close" OK close
step_gives "open again" OK open b/mem 20000
step_gives "put and get" OK verify 0 1048576 20000
barrier everybody-seen
barrier gone 60
step_again 30 "put and get with one device less" verify 0 1048576 10000
barrier gone-seen
barrier back 60
step_again 30 "put and get with both again" verify 0 1048576 10000
barrier back-seen
for now in moved default; do
	barrier $now 60
	step_again 10 "$now: close" close
	step_again 30 "$now: open" open b/mem 10000
	step_gives "$now: put and get" OK verify 0 4194304 20000
	barrier $now-seen
done
barrier end
steps_end
