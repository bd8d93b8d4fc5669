# SPDX-License-Identifier: MIT
# vm: timeout=300 level=all 6.1=long test=long append=numa=fake=2
#
# Memory of a NUMA node that the kernel would like to have on another one: by NUMA
# balancing, by compaction, or since it is asked to.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

if [ ! -d /sys/devices/system/node/node1 ]; then
	skip "NUMA nodes" "this kernel has no fake ones"
	exit 0
fi
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
check_lines "nodes" nodes "$VM"
