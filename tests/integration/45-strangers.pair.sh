# SPDX-License-Identifier: MIT
# vm: timeout=180 test=long
#
# accept=any lets a host in that is not in the table. Its entry goes some time
# after the host has, and comes again with it; entries of the table stay.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

# What stands in the table for it: name, how it came there.
entry()	# NAME
{
	rmpool -j peer list | python3 -c '
import json, sys
for peer in json.load(sys.stdin)["peers"]:
    if peer["name"] == sys.argv[1]:
        print("accepted" if peer["dynamic"] else "table")' "$1"
}

entry_gone()	# NAME
{
	[ -z "$(entry "$1")" ]
}

if [ "$VM" = b ]; then
	# Ten times that, and an entry without a connection goes.
	echo 500 >/sys/module/rmpool/parameters/keepalive_ms
	check "accept any" rmpool node set accept=any
	check "one in the table" rmpool peer add away v1:10.77.0.77:13579
	rmpool serve mem --size 1M >"$TMP/ready" &
	server=$!
	check "served" wait_until 20 grep -q mem "$TMP/ready"
	for round in first second; do
		barrier "$round.served"
		barrier "$round.put" 60
		same "$round: entry made" accepted "$(entry "$PEER_IP0")"
		barrier "$round.seen"
		check "$round: entry gone" wait_until 60 entry_gone "$PEER_IP0"
		barrier "$round.gone" 90
	done
	same "entry of the table stays" table "$(entry away)"
	kill $server
	check "serve ends well" wait $server
else
	head -c 100001 /dev/urandom >"$TMP/file"
	for round in first second; do
		barrier "$round.served"
		check "$round: peer add" rmpool peer add b "v1:$PEER_IP0:13579"
		check "$round: put" rmpool put "$TMP/file" b/mem+123
		barrier "$round.put"
		barrier "$round.seen"
		check "$round: peer del" rmpool peer del b
		barrier "$round.gone" 90
	done
fi
