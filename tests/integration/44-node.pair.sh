# SPDX-License-Identifier: MIT
# vm: timeout=240 test=long
#
# Settings of the node, and the events.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

if [ "$VM" = b ]; then
	rmpool peer add a "v1:$PEER_IP0:13579"
	serve mem --size 1M
	barrier start
	barrier moved 180
	rmpool peer del a
	rmpool peer add a "v1:$PEER_IP0:14000"
	steps_start
	step_gives "a peer that is let in, at the new port" OK open a/open 30000
	step_gives "and puts" OK verify 0 4096 20000
	# It is ready at the other end as long as it is in the table here.
	barrier listed 90
	steps_end
	rmpool peer del a
	rmpool peer add a "v1:$PEER_IP0:13579"
	check_fails "nobody is at the old port" "nobody listens" \
		rmpool get -t 2 a/open 1 "$TMP/file"
	barrier end 120
	kill $server
	wait $server
	exit
fi

barrier start
node()		# KEY
{
	rmpool node | awk -v key="$1" '$1 == key { print $2 }'
}

rping_listens()	# PORT
{
	rdma resource show cm_id | grep -q "LISTEN.*$1"
}

event()		# PATTERN
{
	wait_until 15 says "$1" "$TMP/events" || { cat "$TMP/events"; return 1; }
}

rmpool monitor >"$TMP/events" &
monitor=$!
check "monitor" event "monitoring node"

rmpool peer add b "v1:$PEER_IP0:13579"
check "event: peer new" event "peer b new"
check "get" rmpool get -t 30 b/mem 4096 "$TMP/file"
check "event: peer changed" event "peer b changed: ready"
serve open --size 64K
check "event: segment new" event "segment open new"
check "event: segment changed" event "segment open changed"
serve short --size 64K
crash $server
check "event: segment of a killed process gone" event "segment short gone"
server=$(pgrep -f "serve open")
serve mine --size 64K
kill $server
wait $server
check "event: segment gone" event "segment mine gone"
rmpool peer del b
check "event: peer gone" event "peer b gone"

# What is refused, and why.
listen=$(node listen)
check_fails "another version" "version" rmpool node set "listen=v2:$IP0:14000"
check_fails "another version of a peer" "version" rmpool peer add x "v2:$PEER_IP0:14000"
check_fails "advertise loopback" "loopback" rmpool node set advertise=v1:127.0.0.1:13579
check_fails "advertise loopback, IPv6" "loopback" rmpool node set "advertise=v1:[::1]:13579"
check_fails "advertise every address" "any address" rmpool node set advertise=v1:0.0.0.0:13579
check_fails "peer at loopback" "loopback" rmpool peer add x v1:127.0.0.1:13579
check_fails "an address of another host" "not of this host" \
	rmpool node set listen=v1:10.77.0.77:13579
check_fails "accept what?" "accept" rmpool node set accept=some
check_fails "a bad name" "name" rmpool node set "name=a b"
rping -s -a "$IP0" -p 14001 >/dev/null 2>&1 &
rping=$!
check "somebody listens at a port" wait_until 20 rping_listens 14001
check_fails "a port in use" "in use" rmpool node set "listen=v1:$IP0:14001"
kill $rping
wait $rping 2>/dev/null
same "it listens as before" "$listen" "$(node listen)"
check "loopback, if it is meant" rmpool node set --allow-loopback advertise=v1:127.0.0.1:13579
same "advertised" "v1:127.0.0.1:13579" "$(node advertise)"

# What is set.
check "name" rmpool node set name=alpha
check "event: node changed" event "node alpha changed"
check "listen elsewhere" rmpool node set "listen=v1:$IP0:14000" \
	advertise=v1:192.0.2.7:14000 accept=any
same "listens" "v1:$IP0:14000" "$(node listen)"
same "advertises another address" "v1:192.0.2.7:14000" "$(node advertise)"
barrier moved
check "the peer that came is listed" wait_until 40 peer_is "$PEER_IP0" ready
barrier listed 90
barrier end 90
first=
for n in 1 2; do
	check "a port of its own choice" rmpool node set "listen=v1:$IP0:0"
	[ "$(node listen)" != "$first" ] || not_ok "port $n" "the same again: $first"
	first=$(node listen)
	case $first in
	*:0 | '') not_ok "the port is told" "$first" ;;
	*) ok "the port is told" ;;
	esac
done
kill $monitor
wait $monitor
kill "$(pgrep -f 'serve open')"
wait_until 10 eval '! pgrep -f "serve open"' >/dev/null

# At load time.
module_unload
rping -s -p 13579 >/dev/null 2>&1 &
rping=$!
check "somebody listens at our port" wait_until 20 rping_listens 13579
check_fails "load when the port is taken" "in use" module_load
check "the log names the port" grep -q "cannot listen at .*13579" <(kernel_log)
kill $rping
wait $rping 2>/dev/null
check "load" module_load port=0
same "the name of the host, with a choice of port" "$(cat /proc/sys/kernel/hostname)" "$(node node)"
