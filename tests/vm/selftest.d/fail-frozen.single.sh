# SPDX-License-Identifier: MIT
# vm: timeout=15 module=0 rxe=0
#
# The VM stands still, so its own time limit never comes: the host's does.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ok "before"
vmctl qmp a stop
