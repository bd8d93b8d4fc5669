# SPDX-License-Identifier: MIT
# vm: timeout=180 6.1=all test=long
#
# What users and the node may register: limits that are counted over processes, told
# before they are met, and not got around by another user ID, a child or a second file.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# As a user whom the tests of the program do not have.
as_user()	# COMMAND...
{
	prlimit --memlock=$((3 << 20)):$((3 << 20)) setpriv --reuid=60003 --regid=nogroup \
		--groups="$group" --inh-caps=-all --bounding-set=-all "$@"
}

# Limit and use of the user and of the node, and the memory lock limit.
limits()	# COMMAND-PREFIX...
{
	"$@" rmpool -j info | python3 -c 'import json, sys
limits = json.load(sys.stdin)["limits"]
print(*(limits[name] for name in ("user_bytes", "user_bytes_used", "node_bytes",
	"node_bytes_used", "memlock_bytes")))'
}

nothing_is_used()
{
	[ "$(limits as_user)" = "4194304 0 16777216 0 3145728" ]
}

cd "$TMP" || exit 1
group=$(stat -c %g /dev/rmpool)
chmod 660 /dev/rmpool
before=$(pinned_pages)

check_lines "user" users user
check_lines "node" users node
check_lines "locked" users locked
check_lines "ends" users ends
check_lines "crowd" users crowd
check "pins are given back" wait_until 15 pins_are "$before"

# The tool tells all three before anybody meets one, to whoever may use the device.
parameter max_user_mib 4
parameter max_pinned_mib 16
told=$(as_user rmpool info)
for line in "memlock .*3145728 bytes (3 MiB), RLIMIT_MEMLOCK" \
	"user .*4194304 bytes (4 MiB), 0 bytes in use, parameter max_user_mib" \
	"node .*16777216 bytes (16 MiB), 0 bytes in use, parameter max_pinned_mib"; do
	check "rmpool info: ${line%% *}" grep -q "$line" <<<"$told"
done
check "the same as JSON" nothing_is_used
serve mine --size 1M
same "what others use is the node's, not the user's" "4194304 0 16777216 1048576 3145728" \
	"$(limits as_user)"
same "and root's own" "4194304 1048576 16777216 1048576 None" "$(limits)"
kill "$server"
wait "$server"
check "which ends with him" wait_until 15 nothing_is_used
check_fails "the tool names all three numbers of RLIMIT_MEMLOCK" \
	"RLIMIT_MEMLOCK is 3 MiB, 0 bytes of it in use, 4 MiB needed" \
	as_user rmpool serve --size 4M x
