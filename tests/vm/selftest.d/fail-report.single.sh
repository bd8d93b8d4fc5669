# SPDX-License-Identifier: MIT
# vm: timeout=60 module=0 rxe=0 kernels=test
#
# Real mistakes in the kernel, that only the test kernel sees.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
modprobe lkdtm
provoked()	# MISTAKE REPORT
{
	echo "$1" >/sys/kernel/debug/provoke-crash/DIRECT
	kernel_log | grep -q "$2"
}
check "KASAN sees freed memory" provoked READ_AFTER_FREE "KASAN: slab-use-after-free"
check "KASAN sees the end of vmalloc" provoked VMALLOC_LINEAR_OVERFLOW "KASAN: vmalloc-out-of-bounds"
check "UBSAN sees the end of an array" provoked ARRAY_BOUNDS "UBSAN: array-index-out-of-bounds"
