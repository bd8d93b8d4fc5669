# SPDX-License-Identifier: MIT
# vm: timeout=420 long=2400 level=all test=long
#
# Very many regions of one process, all of them let go of at once.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

check_lines "stale" stale many "$(amount 3000 20000 100000)"
