# SPDX-License-Identifier: MIT
# vm: timeout=300 6.1=all test=long
#
# Memory of one host as the other sees it: written after it was registered,
# read-only, forked, unmapped, and larger than a chunk.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$TMP" || exit 1
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
check_lines "memory" peer_memory "$VM"
