# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
echo "<4>data0 speed is unknown, defaulting to 1000" >/dev/kmsg
ok "known noise is no failure"
echo "<4>WARNING: CPU: 0 PID: 1 at planted.c:1" >/dev/kmsg
