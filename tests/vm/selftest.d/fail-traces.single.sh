# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ip link add left type dummy
setsid sleep 1000 &
ok "before"
