# SPDX-License-Identifier: MIT
# vm: timeout=150 module=0
#
# Both rails carry real RDMA between the two VMs, each on its own card.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

my_ip=("$IP0" "$IP1")
peer_ip=("$PEER_IP0" "$PEER_IP1")

received()	# RAIL
{
	cat "/sys/class/net/data$1/statistics/rx_bytes"
}

for rail in 0 1; do
	same "rail $rail: MTU" 4200 "$(cat /sys/class/net/data$rail/mtu)"
	check "rail $rail: RDMA MTU" grep -q 'active_mtu:.*4096' <(ibv_devinfo -d rxe$rail)
	check "rail $rail: GID of the address" gid_index rxe$rail "${my_ip[rail]}"
	before=$(received $rail)
	before_other=$(received $((1 - rail)))

	if [ "$VM" = b ]; then
		rping -s -a "${my_ip[rail]}" -C 5 -S 4000 &
		server=$!
		wait_until 20 cm_listens
		barrier listens
		check "rail $rail: rping serves" wait $server
	else
		barrier listens
		check "rail $rail: rping, data compared" rping -c -a "${peer_ip[rail]}" -C 5 -V -S 4000
	fi

	# 100 times 64 KiB from a to b.
	if [ "$VM" = b ]; then
		ib_write_bw -R -d rxe$rail -s 65536 -n 100 2>&1 &
		server=$!
		wait_until 20 cm_listens
		barrier listens
		check "rail $rail: ib_write_bw serves" wait $server
		got=$(($(received $rail) - before))
		other=$(($(received $((1 - rail))) - before_other))
		if [ $got -gt 6553600 ] && [ $other -lt 65536 ]; then
			ok "rail $rail: bytes came on its card only"
		else
			not_ok "rail $rail: bytes came on its card only" "$got bytes, other card $other"
		fi
	else
		barrier listens
		check "rail $rail: ib_write_bw" ib_write_bw -R -d rxe$rail -s 65536 -n 100 "${peer_ip[rail]}"
	fi
	barrier "rail $rail"
done

# IPv6: a GID of its own, and the CM uses it.
if [ "$VM" = b ]; then
	rping -s -a "$IP61" -C 2 &
	server=$!
	wait_until 20 cm_listens
	barrier listens
	check "IPv6: rping serves" wait $server
else
	barrier listens
	check "IPv6: rping" rping -c -a "$PEER_IP61" -C 2
fi
