# SPDX-License-Identifier: MIT
# vm: timeout=420 test=long
#
# Registered memory that its owner lets go of, and memory to which things happen that
# look alike, under transfers of the other host.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$TMP" || exit 1
# For hugetlbfs; what there is not is skipped.
echo 8 >/proc/sys/vm/nr_hugepages
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
check_lines "stale" stale "$VM"
echo 0 >/proc/sys/vm/nr_hugepages
