# SPDX-License-Identifier: MIT
# vm: timeout=400 test=long level=all
#
# An ordinary program that means harm, with a peer: while devices, peers and the
# listener come and go, it is killed at any moment. The pool works afterwards, and
# nothing is left.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

MANY=4200		# more than are kept of one peer

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
pins=$(pinned_pages)
qps=$(queue_pairs)
group=$(stat -c %g /dev/rmpool)
chmod 660 /dev/rmpool
barrier peers

# Ends with the file that it is given.
while_there()	# FILE COMMAND...
{
	while [ -e "$1" ]; do
		"${@:2}" >/dev/null 2>&1
	done
}

somebody()	# COMMAND...
{
	setpriv --reuid=nobody --regid=nogroup --groups="$group" --bounding-set=-all "$@"
}

none_waits()
{
	! grep -qs '^State:.*disk sleep' /proc/[0-9]*/status
}

listens_elsewhere()	# ADDRESS
{
	rmpool node set "listen=v1:$1:13579"
	rmpool node set "listen=v1:[::]:13579" accept=any
	rmpool node set accept=table
}

peer_again()
{
	rmpool peer del b
	rmpool peer add b "v1:$PEER_IP0:13579"
	sleep 0.3		# pace, not a condition: a connection is to come up
}

device_again()
{
	rxe_del 1
	rxe_add 1
	sleep 0.3		# likewise
}

if [ "$VM" = b ]; then
	attack_peer publish many $MANY >"$TMP/many" &
	many=$!
	wait_until 120 says published "$TMP/many"
	attack_peer flap flap >"$TMP/flap" 2>&1 &
	flap=$!
	wait_until 60 says flaps "$TMP/flap"
	serve mem --size 16M
	barrier served 200
	barrier end 380
	check "the peer goes on" kill "$server" "$flap" "$many"
	wait "$server" "$flap" "$many"
	check "all pins are given back" wait_until 20 pins_are "$pins"
	rmpool peer del a
	check "no queue pair is left over" wait_until 20 queue_pairs_at_most "$qps"
	within 20 "unload" wait_until 18 try_rmmod
	check "load" module_load
	exit
fi

barrier served 200
check_lines "chase" attack_peer chase b flap 4
check_lines "signals" attack_peer signals b mem
check_lines "ring" attack_peer ring b mem
check_lines "many" attack_peer visit b many $MANY
check_lines "flood" attack_peer flood b mem

: >"$TMP/storm"
while_there "$TMP/storm" try_rmmod &
others=$!
while_there "$TMP/storm" device_again &
others+=" $!"
while_there "$TMP/storm" peer_again &
others+=" $!"
while_there "$TMP/storm" listens_elsewhere "$IP0" &
others+=" $!"
exec 9<>/dev/rmpool		# so that it is not unloaded for good
check_lines "storm" somebody attack_peer storm b mem 8 "$RMPOOL_SEED"
rm "$TMP/storm"
# shellcheck disable=SC2086 # words
wait $others
exec 9>&-
rmpool peer add b "v1:$PEER_IP0:13579" 2>/dev/null
[ -e /sys/class/infiniband/rxe1 ] || rxe_add 1
head -c 300000 /dev/urandom >"$TMP/file"
if ! check "afterwards: put" wait_until 60 rmpool put -q "$TMP/file" b/mem; then
	# Who lives on, and what its work items do.
	rmpool peer list
	rdma resource show qp
	rdma resource show cm_id
	echo t >/proc/sysrq-trigger
fi
check "afterwards: get" rmpool get -q b/mem 300000 "$TMP/back"
check "the same bytes" cmp "$TMP/file" "$TMP/back"
check "no page stays pinned" wait_until 20 pins_are "$pins"
check "nothing waits uninterruptibly" wait_until 20 none_waits
rmpool peer del b
check "no queue pair is left over" wait_until 20 queue_pairs_at_most "$qps"
within 20 "unload" wait_until 18 try_rmmod
check "load" module_load
barrier end
