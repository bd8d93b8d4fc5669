# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ok "one that holds"
check "one that does not" false
check_fails "one that should fail" "text" true
same "equal" 1 2
check_lines "program" sh -c 'echo "ok a line"; exit 3'
skip "one not tried" "for a reason"
