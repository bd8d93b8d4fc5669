# SPDX-License-Identifier: MIT
# vm: timeout=420 level=all test=long mem=5120 append=hugepagesz=1G append=hugepages=1
#
# The same where there is a page of 1 GiB.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
check "a page of 1 GiB" grep -qx 1 /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
. "$RMPOOL_TREE/tests/integration/53-kinds.pair.sh"
