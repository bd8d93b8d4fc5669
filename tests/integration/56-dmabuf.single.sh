# SPDX-License-Identifier: MIT
# vm: timeout=180
#
# dma-bufs: what is refused, and who keeps a buffer how long.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

check_lines "dma-buf" dmabuf_alone
