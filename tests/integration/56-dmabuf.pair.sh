# SPDX-License-Identifier: MIT
# vm: timeout=300 kernels=6.12,test
#
# dma-bufs: got and put by the other host and by their own, byte by byte and beside them;
# devices go and come.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

if [ ! -c /dev/udmabuf ]; then
	skip "dma-bufs" "this kernel is built without udmabuf"
	exit 0
fi
if [ "$VM" = b ]; then
	echo 2 >/proc/sys/vm/nr_hugepages
fi
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
check_lines "dma-buf" dmabuf "$VM"
if [ "$VM" = b ]; then
	echo 0 >/proc/sys/vm/nr_hugepages
fi
