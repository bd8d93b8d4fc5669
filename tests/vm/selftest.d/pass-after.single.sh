# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ok "a fresh boot runs what is left"
