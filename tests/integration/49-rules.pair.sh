# SPDX-License-Identifier: MIT
# vm: timeout=240 6.1=all test=long
#
# The rules of registering: rights one by one, overlaps, duplicates, places in segments,
# and bytes that are out of reach, for a process's own requests and those of a peer.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
pins=$(pinned_pages)
check_lines "rules" rules "$VM"
check "pins are given back" wait_until 15 pins_are "$pins"
