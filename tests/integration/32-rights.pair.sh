# SPDX-License-Identifier: MIT
# vm: timeout=240 test=long
#
# From where and by whom the module may be used, what it refuses when no tool or
# library stands before it, and its parameters.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

if [ "$VM" = b ]; then
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	serve mem --size 1M
	barrier served
	barrier end 200
	kill "$server"
	wait "$server"
	exit
fi

# What may be set.
settings()
{
	rmpool -j peer list | grep -E '"(name|endpoint)":'
	rmpool -j node
}

# As somebody who may open the device and nothing else.
somebody()	# COMMAND...
{
	setpriv --reuid=nobody --regid=nogroup --groups="$group" --bounding-set=-all "$@"
}

rail_qps()
{
	rmpool -j peer list | python3 -c '
import json, sys
rails = json.load(sys.stdin)["peers"][0]["rails"]
print(*(r["qps"] for r in rails))'
}

rail_qps_are()	# TEXT
{
	[ "$(rail_qps)" = "$1" ]
}

there_and_back()	# COMMAND-PREFIX...
{
	"$@" rmpool put -q "$TMP/file" b/mem+4099 &&
		"$@" rmpool get -q b/mem+4099 "$size" "$TMP/back" &&
		cmp "$TMP/file" "$TMP/back"
}

head -c 500001 /dev/urandom >"$TMP/file"
size=500001
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
barrier served

# Any network namespace may use the device; there is no netlink family in others.
ip netns add elsewhere
check "put and get from another network namespace" there_and_back ip netns exec elsewhere
check_fails "no netlink in another network namespace" "namespace" \
	ip netns exec elsewhere rmpool peer list
ip netns del elsewhere

# Who may change the node.
group=$(stat -c %g /dev/rmpool)
chmod 660 /dev/rmpool
chmod 755 "$TMP"
cp "$TMP/file" /tmp/file && chmod 644 /tmp/file
before=$(settings)
for what in "peer add x v1:10.77.0.9:13579" "peer del b" "node set name=other" "monitor"; do
	# shellcheck disable=SC2086 # words
	check_fails "without CAP_NET_ADMIN: $what" "CAP_NET_ADMIN" somebody rmpool $what
done
same "nothing changed" "$before" "$(settings)"
check "anybody may list peers" grep -q "^b " <(somebody rmpool peer list)
serve mine --size 64K
check "root sees the segments of all" grep -q mine <(rmpool segment list)
check_fails "others see their own segments" "" grep -q mine <(somebody rmpool segment list)
check_fails "and their own regions" "" grep -q mine <(somebody rmpool region list)
check "the group may transfer" somebody rmpool put -q /tmp/file b/mem
kill "$server"
wait "$server"

# Without the tool's checks before it.
check_lines "refused by the module" nl_refuse
same "nothing changed" "$before" "$(settings)"

# The limits at work: many slices, chunks and queue pairs for little data.
rmpool peer del b
check "unload" wait_until 20 try_rmmod
check "load with parameters" module_load qps=3 max_slice=4096 qp_depth=16 \
	qp_window=16384 max_chunk_pages=8 name=alpha "listen=v1:$IP0:14321"
check "name=" grep -q "alpha" <(rmpool node)
check "listen=" grep -q "v1:$IP0:14321" <(rmpool node)
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
check "put and get" there_and_back
check "qps=3" wait_until 20 rail_qps_are "3 3"
rmpool peer del b
check "unload" wait_until 20 try_rmmod
check_fails "refused: listen=v2:..." "not supported" module_load "listen=v2:$IP0:13579"
for bad in accept=some name=a/b "name=$(head -c 64 /dev/zero | tr '\0' x)"; do
	check_fails "refused: $bad" "Invalid" module_load "$bad"
done
check "load" module_load
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
barrier end
