# SPDX-License-Identifier: MIT
# vm: timeout=300
#
# An ordinary program that means harm, on one machine: memory of all kinds, the
# last page of a limit, results without a place, names, thousands of files,
# descriptors that outlive who opened them.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# As somebody who may open the device and nothing else.
somebody()	# COMMAND...
{
	setpriv --reuid=nobody --regid=nogroup --groups="$group" --bounding-set=-all "$@"
}

attack()	# [NAME-OF-A-USER] WHAT ARG...
{
	check_lines "$1" "${@:2}"
	check "$1: no page stays pinned" wait_until 20 pins_are "$pins"
}

group=$(stat -c %g /dev/rmpool)
chmod 660 /dev/rmpool
chmod 755 "$TMP"
cd "$TMP" || exit
pins=$(pinned_pages)
echo 2 >/proc/sys/vm/nr_hugepages
attack "memory" command attack kinds
echo 0 >/proc/sys/vm/nr_hugepages
attack "limit" somebody attack limit
attack "undo" somebody attack undo
attack "names" somebody attack names
attack "kept" command attack kept
attack "files" command attack opens 2000
within 20 "unload" wait_until 18 try_rmmod
check "load" module_load
