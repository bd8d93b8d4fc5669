# SPDX-License-Identifier: MIT
# vm: timeout=300 6.1=all test=long
#
# Arenas of registered memory: what they pin and when, their limits, that puts and
# gets of their buffers move the right bytes, and what an allocation costs.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	talk_start host memhost packets packets 1
	same "published" published "$(talk_hear host)"
	barrier ready
	barrier moved 120
	same "puts out of an arena: all bytes right, none around" ok "$(talk_ask host check 1 2)"
	check "host ends" talk_end host
else
	barrier ready
	check "puts out of an arena, gets into it" arena move b/packets packets 2
	barrier moved

	check_lines "arena" arena memory

	# An ordinary user who may open the device.
	groupadd --system rmpool-test && chgrp rmpool-test /dev/rmpool &&
		chmod 660 /dev/rmpool || exit 1
	check_lines "arena" prlimit --memlock=$((3 << 20)):$((3 << 20)) \
		setpriv --reuid=nobody --regid=nogroup --groups=rmpool-test \
		--inh-caps=-all --bounding-set=-all arena limit
	groupdel rmpool-test

	check "what allocations cost" arena time
fi
