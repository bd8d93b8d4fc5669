# SPDX-License-Identifier: MIT
# vm: timeout=300 all=900 long=7200
#
# Random calls and random netlink messages, against a peer that serves memory and
# must not care. RMPOOL_SEED repeats a run.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# In check-all the test kernel, which sees most, gets most.
if [ "$RMPOOL_LEVEL" = all ] && [ "$VM_SLOW" = 1 ]; then
	RMPOOL_LEVEL=check
fi

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	serve target --size 2M
	barrier served
	barrier played "$(amount 280 880 7100)"
	check "the peer serves on" kill "$server"
	wait "$server"
	exit
fi

# As somebody who may open the device and nothing else.
somebody()	# COMMAND...
{
	setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set=-all "$@"
}

# What may be set.
settings()
{
	rmpool -j peer list | grep -E '"(name|endpoint)":'
	# What is counted there changes by itself.
	rmpool -j node | grep -E '"(name|uuid|listen|advertise|accept)":'
}

# Data goes on meanwhile, as far as the peer is in the table.
put_while_there()	# FILE
{
	while [ -e "$1" ]; do
		rmpool put -q "$1" b/target >/dev/null 2>&1
	done
}

fuzz_netlink()	# CALLS admin|plain
{
	nl_fuzz "$RMPOOL_SEED" "$1" "$2" b "v1:$PEER_IP0:13579" "v1:[::]:13579" \
		"v1:0.0.0.0:13579" "v1:$IP0:13579" "v1:$IP1:14000" "v1:[::]:0"
}

# A line in the log has to say more than that somebody sends garbage.
log_is_quiet()	# LINES
{
	kernel_log | grep "rmpool: " | tail -n 30
	[ "$(kernel_log | grep -c "rmpool: ")" -le "$1" ]
}

barrier served 60
pins=$(pinned_pages)
qps=$(queue_pairs)
before=$(settings)
check_lines "calls" ioctl_fuzz "$RMPOOL_SEED" "$(amount 8000 20000 1000000)" b target
check_lines "netlink, plain" somebody nl_fuzz "$RMPOOL_SEED" \
	"$(amount 2000 5000 100000)" plain b "v1:$PEER_IP0:13579" "v1:[::]:13579"
same "nothing changed" "$before" "$(settings)"

head -c 100000 /dev/urandom >"$TMP/file"
put_while_there "$TMP/file" &
puts=$!
check_lines "netlink" fuzz_netlink "$(amount 2000 20000 1000000)" admin
rm "$TMP/file"
wait $puts

# As it was before.
for name in $(rmpool -j peer list | sed -n 's/.*"name": "\(.*\)".*/\1/p'); do
	rmpool peer del -- "$name"
done
check "settings" rmpool node set name=a "listen=v1:[::]:13579" advertise= accept=table
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
head -c 300001 /dev/urandom >"$TMP/file"
check "afterwards: put" wait_until 30 rmpool put -q "$TMP/file" b/target+7
check "afterwards: get" rmpool get -q b/target+7 300001 "$TMP/back"
check "the same bytes" cmp "$TMP/file" "$TMP/back"
rmpool peer del b
check "all pins are given back" wait_until 30 pins_are "$pins"
check "no queue pair is left over" wait_until 30 queue_pairs_at_most "$qps"
check "the log is quiet" log_is_quiet 40
barrier played
