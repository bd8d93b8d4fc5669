# SPDX-License-Identifier: MIT
# vm: timeout=100 module=0 rxe=0
#
# b ends at once: what a waits for cannot come, and a is told so quickly. a has
# also frozen nothing that stays frozen: the harness undoes it after a suite.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

[ "$VM" = a ] || exit 0
start=$SECONDS
if barrier "not for b" 90; then
	not_ok "a barrier without the peer fails" "it opened"
else
	ok "a barrier without the peer fails"
fi
if [ $((SECONDS - start)) -lt $((80 * VM_SLOW)) ]; then
	ok "it fails as soon as the peer has ended"
else
	not_ok "it fails as soon as the peer has ended" "after $((SECONDS - start)) s"
fi
vmctl qmp b stop
vmctl qmp a link 0 off
