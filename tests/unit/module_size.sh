#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The text of the module is below 200 KiB, for each kernel that it was built for: code
# and constants, without the tables that the kernel makes for its unwinder.
#
# Usage: module_size.sh BUILD_FOLDER
set -u
limit=$((200 * 1024))
status=0

for module in "$1"/kmod-*/rmpool.ko; do
	kernel=${module%/*}
	kernel=${kernel##*/kmod-}
	case $kernel in
	*-test-*)
		echo "ok text for $kernel # SKIP checks of its own make it larger"
		continue
		;;
	esac
	text=$(size -A "$module" | awk '$1 ~ /^\.([a-z]+\.)?(text|rodata)/ { n += $2 } END { print n + 0 }')
	if [ "$text" -gt 0 ] && [ "$text" -lt $limit ]; then
		echo "ok text for $kernel: $text bytes"
	else
		echo "not ok text for $kernel: $text bytes, limit $limit"
		status=1
	fi
done
exit $status
