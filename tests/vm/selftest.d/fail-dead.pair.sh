# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
ok "begins"
[ "$VM" = a ] || read -r <>/run/never
vmctl qmp b kill
