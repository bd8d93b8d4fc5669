# SPDX-License-Identifier: MIT
# vm: timeout=100 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
barrier both && ok "the frozen peer was thawed"
wait_until 10 grep -q 1 /sys/class/net/data0/carrier && ok "the cut rail was mended"
