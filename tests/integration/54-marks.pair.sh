# SPDX-License-Identifier: MIT
# vm: timeout=300 long=1800 level=all 6.1=long test=long
#
# Memory that is registered for each put: no marks stay on the address space. And what
# registering costs among thousands of mappings.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers
if [ "$VM" = b ]; then
	serve place --size 1M
	barrier served
	barrier over "$(amount 250 250 1700)"
	kill "$server"
	wait "$server"
	exit
fi

barrier served
check_lines "marks" marks maps b/place "$(amount 1000 2000 100000)"
if [ "$RMPOOL_LEVEL" = long ]; then
	check "huge pages are there" wait_until 20 huge_pages 1
	read -r small huge < <(marks cost 1000)
	echo "64 KiB registered and unregistered: $small us of small pages, $huge us of huge ones"
	ratio "huge pages take at most twice as long" '<=' 2 "$huge" "$small"
	huge_pages 0
fi
barrier over
