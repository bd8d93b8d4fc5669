# SPDX-License-Identifier: MIT
# vm: timeout=100 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
same "the next suite is a first life" 1 "$VM_LIFE"
barrier both && ok "both are there"
