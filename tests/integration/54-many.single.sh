# SPDX-License-Identifier: MIT
# vm: timeout=600 long=5400 level=all 6.1=long test=long mem=3072 module=0
#
# Very many regions of one process, up to the limit of them and beyond; and very large
# ones that a signal cuts short.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

regions=$(amount 5000 5000 100000)
lines=0

# As check_lines; lines of the kernel's log are counted.
counted()	# NAME COMMAND...
{
	local before

	before=$(kernel_log | wc -l)
	check_lines "$@"
	kernel_log | tail -n +$((before + 1))
	lines=$((lines + $(kernel_log | wc -l) - before))
}

module_load "max_regions=$((regions + 500))" || exit 1
counted "regions" many regions "$regions"
counted "large" many interrupt "$(amount 2048 2048 4096)"
check_lines "progress" many progress "$(amount 1024 1024 4096)"
module_unload && module_load "max_regions=$regions" || exit 1
counted "limit" many limit "$regions"
if [ $lines -le 5 ]; then
	ok "at most five lines in the kernel log"
else
	not_ok "at most five lines in the kernel log" "$lines"
fi
