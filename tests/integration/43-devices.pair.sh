# SPDX-License-Identifier: MIT
# vm: timeout=400 test=long
#
# Devices, addresses, processes and modules come and go in any order.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

# The address that was chosen for a device.
has_address()	# RDMA-DEVICE ADDRESS
{
	device_line "$1" | grep -q " $2 .*yes"
}

no_address()	# RDMA-DEVICE
{
	device_line "$1" | grep -q "no: no IP address"
}

has_gid()	# RDMA-DEVICE GID
{
	device_line "$1" | grep -q "$2"
}

address_is()	# RAIL ADDRESS
{
	ip -4 addr flush dev "data$1"
	ip addr add "$2/24" dev "data$1"
	wait_until 10 has_address "rxe$1" "$2"
}

address_back()	# RAIL
{
	address_is "$1" "$(rail_address "$VM_NUMBER" "$1")"
}

# For the suites that come after this one.
addresses_back()
{
	address_back 0
	address_back 1
}

# The module first, then the devices.
module_unload
rxe_del 0
rxe_del 1
check "load without devices" module_load
check "no device" grep -q "no RDMA device" <(rmpool device 2>&1)
check_fails "nothing is registered without one" "no usable RDMA device" \
	rmpool serve --size 4K nowhere
rxe_add 0
rxe_add 1
check "devices come later" wait_until 10 device_usable rxe1
check "the routable IPv4 address is chosen" wait_until 10 has_address rxe1 "$IP1"
check "with its GID" wait_until 10 has_gid rxe0 "::ffff:$IP0"
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"

if [ "$VM" = b ]; then
	serve mem --size 16M
	barrier served
	barrier ready 200

	# Under load, with a region registered and a peer connected.
	within 15 "a device goes" rxe_del 1
	check "it is not listed" test -z "$(device_line rxe1)"
	barrier gone1
	barrier went1 200
	check "it comes back" rxe_add 1
	barrier back1
	barrier came1 200

	within 15 "the device of the control connection goes" rxe_del 0
	vmctl put gone0 yes
	barrier went0 200
	check "it comes back" rxe_add 0
	barrier back0
	barrier came0 200

	# A device without an address, and what address is taken.
	rxe_del 1
	ip addr flush dev data1
	rxe_add 1
	check "without an address: not usable" wait_until 10 no_address rxe1
	ip addr add "$IP1/24" dev data1
	check "the address comes later" wait_until 10 has_address rxe1 "$IP1"
	ip addr add "$IP61/64" dev data1 nodad
	ip addr add "fe80::77:$VM_NUMBER/64" dev data1 nodad
	vmctl put address yes
	barrier addressed 200
	check "172.16 is as good" address_is 1 172.16.5.2
	check "100.64 is as good" address_is 1 100.64.5.2
	check "back to the first" address_back 1
	barrier addresses

	# The process ends, and another one publishes the same.
	for round in 1 2 3; do
		vmctl get "seen$((round - 1))" 200
		crash "$server"
		head -c 16M /dev/zero | tr '\0' "\\$((100 + round))" >"$TMP/pattern"
		serve mem --file "$TMP/pattern"
		vmctl put "served$round" yes
	done
	vmctl get seen3 200

	# The module ends: another life of this node.
	kill "$server"
	wait "$server"
	check "unload" module_unload
	check "load" module_load
	check "peer add" rmpool peer add a "v1:$PEER_IP0:13579"
	serve mem --size 16M
	barrier reloaded 200
	barrier six 200

	rmpool peer del a
	ip -4 addr flush dev data0
	ip -4 addr flush dev data1
	check "an IPv6 address is taken" wait_until 10 has_address rxe0 "fd77::$VM_NUMBER"
	check "peer add with IPv6" rmpool peer add a "v1:[$PEER_IP60]:13579"
	barrier flushed 200
	barrier sixed 200
	kill "$server"
	wait "$server"
	addresses_back
	exit
fi

barrier served
steps_start
step_gives "open" OK open b/mem 30000
step_gives "put and get" OK verify 1000 5000000 30000
check "two rails" wait_until 20 rails_are b 2
# Beyond what verify compares.
steps stream b/mem 9000000 65536 8 >"$TMP/stream" 2>&1 &
stream=$!
check "stream" wait_until 30 says streaming "$TMP/stream"
barrier ready
barrier gone1
step_gives "put over the other rail" OK verify 1000 100000 20000
kill $stream 2>/dev/null
wait $stream
check "each put of the stream has an end" test $? -le 1
cat "$TMP/stream"
check "one rail" wait_until 20 rails_are b 1
barrier went1
barrier back1
check "two rails again" wait_until 30 rails_are b 2
step_gives "put and get" OK verify 1000 8000000 30000
check "the new rail carries data" grep -q "rxe1.* put [1-9]" <(rails b)
barrier came1

vmctl get gone0 200
step put 0 65536 3000
barrier went0
barrier back0
step_gives "the handle is good when the device is back" OK verify 1000 5000000 40000
check "two rails again" wait_until 40 rails_are b 2

# The same here: our own regions.
within 15 "a device goes here" rxe_del 1
step_gives "put over the other rail" OK verify 1000 100000 30000
rxe_add 1
check "two rails again" wait_until 30 rails_are b 2
within 15 "the device of the control connection goes here" rxe_del 0
rxe_add 0
step_gives "put and get" OK verify 1000 5000000 40000
check "two rails again" wait_until 40 rails_are b 2
barrier came0

vmctl get address 200
check "two rails with the new address" wait_until 30 rails_are b 2
barrier addressed
barrier addresses 200
step_gives "put and get" OK verify 0 100000 30000
qps=$(queue_pairs)
vmctl put seen0 yes
for round in 1 2 3; do
	vmctl get "served$round" 200
	step fill 7
	step_gives "round $round: the old handle is dead" ESTALE put 0 4096 20000
	step_gives "round $round: open at the first try" OK open b/mem 10000
	step_gives "round $round: nothing was put there" OK peek 0 16777216 $((8#$((100 + round)))) 30000
	vmctl put "seen$round" yes
done
check "no more queue pairs than before" wait_until 30 queue_pairs_at_most "$qps"

barrier reloaded 200
step_gives "the old life is gone" "ESTALE|ENOTCONN" put 0 4096 20000
step_gives "open in the new life" OK open b/mem 10000
step_took "at once" 0 8000
step_gives "put and get" OK verify 1000 100000 20000
steps_end
barrier six

rmpool peer del b
ip -4 addr flush dev data0
ip -4 addr flush dev data1
check "an IPv6 address is taken" wait_until 10 has_address rxe0 "fd77::$VM_NUMBER"
check "peer add with IPv6" rmpool peer add b6 "v1:[$PEER_IP60]:13579"
barrier flushed
steps_start
step_gives "open by IPv6" OK open b6/mem 30000
step_gives "put and get by IPv6" OK verify 1000 5000000 30000
check "two rails by IPv6" wait_until 20 rails_are b6 2
rmpool peer list
steps_end
check "the log stays quiet about devices" test "$(kernel_log | grep -c 'rmpool: rxe')" -le 1
barrier sixed
addresses_back
