# SPDX-License-Identifier: MIT
# vm: timeout=15 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ok "before"
exec sleep 1000
