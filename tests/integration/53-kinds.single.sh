# SPDX-License-Identifier: MIT
# vm: timeout=120 6.12=all test=long
#
# Memory that cannot be registered.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

disk()
{
	truncate -s 32M image && mkfs.ext4 -q image && mount -t ext4 -o loop image ext4
}

cd "$TMP" || exit 1
mkdir ext4 ram
check "ramfs" mount -t ramfs ram ram
# The test kernel has none.
if modprobe -a loop ext4; then
	check "a disk" disk
fi
check_lines "refused" refused
umount ram
! mountpoint -q ext4 || umount ext4
