# SPDX-License-Identifier: MIT
# vm: timeout=420 level=all 6.1=long test=long mem=5120 append=hugepagesz=1G append=hugepages=1
#
# The same where there is a page of 1 GiB.
gigantic=gigantic
. "$RMPOOL_TREE/tests/integration/53-kinds.pair.sh"
