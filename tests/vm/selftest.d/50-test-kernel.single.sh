# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0 kernels=test
#
# What the test kernel is for works: its checks are on, and failures come when asked for.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

debug=/sys/kernel/debug
same "lockdep is on" 1 "$(awk '/debug_locks:/ { print $2 }' /proc/lockdep_stats)"
[ -e /sys/module/kasan ] || zgrep -q '^CONFIG_KASAN=y' /proc/config.gz ||
	zgrep -q '^CONFIG_KCSAN=y' /proc/config.gz
same "KASAN or KCSAN is on" 0 $?
check "KUnit is there" test -d $debug/kunit

for kind in failslab fail_page_alloc fail_usercopy; do
	check "$kind can be set" eval "echo 0 >$debug/$kind/verbose"
done
for kind in failslab fail_page_alloc; do
	check "$kind for allocations that may wait" eval "echo N >$debug/$kind/ignore-gfp-wait"
done
check "fail_page_alloc for single pages" eval "echo 0 >$debug/fail_page_alloc/min-order"

# The first allocation may be one of a page fault, which is tried again.
open_fails()
{
	local nth

	echo text >"$TMP/file"
	for ((nth = 1; nth < 30; nth++)); do
		bash -c 'echo "$1" >/proc/self/fail-nth; read -r x <"$2"' - $nth "$TMP/file" 2>&1 |
			grep -q "Cannot allocate memory" && return 0
	done
	return 1
}
check "fail-nth makes open() fail" open_fails
