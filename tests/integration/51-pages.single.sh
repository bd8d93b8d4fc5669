# SPDX-License-Identifier: MIT
# vm: timeout=180 level=all test=long
#
# What memory takes on devices, and the limits that the administrator sets: pages
# of devices, memory of users and of the node, relaxed ordering.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$TMP" || exit 1

check "huge pages are there" wait_until 20 huge_pages 36
check_lines "pages" pages sizes
check "huge pages are given back" huge_pages 0

parameter max_device_mrs 3
check_lines "pages" pages dealt
check_lines "pages" pages refused
check "the limit is shown" grep -q " of 3 " <(rmpool device)
parameter max_device_mrs 0
parameter max_device_pages 10
check_fails "pages of a device" "an RDMA device may have 10 pages" rmpool serve --size 64M x
check "this limit, too" grep -q "0 of 10 " <(rmpool device)
parameter max_device_pages 0

# Both bind root. Each error names the limit, what is in use, and what was needed.
parameter max_user_mib 4
check_fails "a user's limit" \
	"one user may register 4 MiB (module parameter max_user_mib), 0 bytes of it in use, 8 MiB needed" \
	rmpool serve --size 8M x
check "rmpool info shows it" \
	grep -q "user .*4194304 bytes (4 MiB), 0 bytes in use" <(rmpool info)
rmpool serve --size 3M x >served &
server=$!
check "less than that" wait_until 20 grep -q ready served
check_fails "processes of one user share it" "3 MiB of it in use, 2 MiB needed" \
	rmpool serve --size 2M y
check "what is in use is shown" grep -q "user .*3145728 bytes (3 MiB) in use" <(rmpool info)
parameter max_user_mib 0
parameter max_pinned_mib 4
check_fails "the node's limit" "4 MiB may be registered on this node" rmpool serve --size 2M y
check "it is shown" grep -q "node .*4194304 bytes (4 MiB), 3145728 bytes" <(rmpool info)
kill -TERM $server
wait $server
rmpool serve --size 4M y >served &
server=$!
check "the node's limit, to the last page" wait_until 20 grep -q ready served
kill -TERM $server
wait $server
parameter max_pinned_mib 0
check "no limit" grep -q "node *none, 0 bytes in use" <(rmpool info)

# Software devices make nothing of it, and say so.
check "relaxed ordering" grep -q "not supported" <(rmpool device)
check_lines "pages" pages strict
