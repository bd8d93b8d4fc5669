# SPDX-License-Identifier: MIT
# vm: timeout=300 6.1=all test=long
#
# Memory of each kind: registered, got and put by the other host and by its own, byte by
# byte and beside it.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

disk()
{
	truncate -s 32M image && mkfs.ext4 -q image && mount -t ext4 -o loop image ext4
}

cd "$TMP" || exit 1
if [ "$VM" = b ]; then
	mkdir ext4 huge
	echo 8 >/proc/sys/vm/nr_hugepages
	check "hugetlbfs" mount -t hugetlbfs -o pagesize=2M huge huge
	# The test kernel has none.
	if modprobe -a loop ext4; then
		check "a disk" disk
	fi
fi
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
if [ -n "${gigantic-}" ]; then
	check "a page of 1 GiB" \
		grep -qx 1 /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
fi
check_lines "kinds" kinds "$VM" ${gigantic:+"$gigantic"}
if [ "$VM" = b ]; then
	umount huge
	! mountpoint -q ext4 || umount ext4
	echo 0 >/proc/sys/vm/nr_hugepages
fi
