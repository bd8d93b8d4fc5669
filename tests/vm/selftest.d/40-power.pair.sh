# SPDX-License-Identifier: MIT
# vm: timeout=400 module=0 rxe=0
#
# a kills b in the middle of a suite and boots it again: b runs the suite anew and
# knows that, and nobody waits for what it did in its first life.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

answers()
{
	ping -c 1 -W 1 "$PEER_IP0" >/dev/null 2>&1
}

if [ "$VM" = b ]; then
	if [ "$VM_LIFE" = 1 ]; then
		: >/var/tmp/first-life
		vmctl put first "$VM_LIFE"
		vmctl barrier never 60 &
		barrier seen
		read -r <>/run/never
	fi
	same "second life" 2 "$VM_LIFE"
	check "nothing is left of the first" test ! -e /var/tmp/first-life
	vmctl put second "$VM_LIFE"
	barrier end 120
	exit
fi

same "first life" 1 "$(vmctl get first)"
check "the peer answers" wait_until 10 answers
barrier seen
check_fails "a running VM is not booted" "running" vmctl qmp b boot
check "kill" vmctl qmp b kill
if answers; then
	not_ok "a killed VM is silent" "it answers"
else
	ok "a killed VM is silent"
fi
check_fails "a dead VM is not killed" "killed before" vmctl qmp b kill
if vmctl barrier never 1; then
	not_ok "nobody is there for the first life" "a barrier opened"
else
	ok "nobody is there for the first life"
fi
check "boot" vmctl qmp b boot
same "second life of the peer" 2 "$(vmctl get second 240)"
check "it answers again" wait_until 20 answers
same "own life" 1 "$VM_LIFE"
barrier end 120
