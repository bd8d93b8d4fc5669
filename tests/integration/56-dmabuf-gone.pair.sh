# SPDX-License-Identifier: MIT
# vm: timeout=420 kernels=6.12,test level=all test=long
#
# dma-bufs that lose what stood behind them while the other host uses them: descriptors,
# file, devices, region, process.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

if [ ! -c /dev/udmabuf ]; then
	skip "dma-bufs" "this kernel is built without udmabuf"
	exit 0
fi
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
check_lines "dma-buf" dmabuf_gone "$VM"
