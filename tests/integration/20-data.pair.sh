# SPDX-License-Identifier: MIT
# vm: timeout=240 test=long
#
# Data goes to the right place and nowhere else: b has the memory and looks at
# every byte of it, a puts and gets.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

# Serves memory in the layout of that name; programs talk about it as "host".
host_starts()	# LAYOUT
{
	talk_start host memhost "$1" "$1"
	same "$1 published" published "$(talk_hear host)"
}

# For sizes around packets, and for batches with a bad request.
ways=(ring blocking ring batch)

# Nothing breaks here, and each transfer must get along with what it has.
peers_wait_long
check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	host_starts sizes
	talk_ask host fill 1
	barrier ready
	barrier put 120
	same "put: all bytes right, none around" ok "$(talk_ask host check 1 2)"
	talk_ask host fill 3
	barrier filled
	barrier got 120
	same "get changes nothing" ok "$(talk_ask host check 3 3)"
	barrier looked

	barrier refused
	same "refused requests move nothing" ok "$(talk_ask host check 3 3)"
	barrier compared
	barrier flood 120
	check "sizes host ends" talk_end host

	host_starts packets
	for n in 0 1; do
		talk_ask host fill 1
		barrier ready.$n
		barrier put.$n 60
		same "put in packets of all kinds by ${ways[n]}" ok "$(talk_ask host check 1 1$n)"
		talk_ask host fill 1$n
		barrier filled.$n
		barrier got.$n 60
	done
	check "packets host ends" talk_end host

	host_starts batch
	for n in 2 3; do
		talk_ask host fill 1
		barrier ready.$n
		barrier put.$n 60
		same "all but the bad one arrived by ${ways[n]}" \
			ok "$(talk_ask host check 1 1$n 57)"
	done
	barrier counted
	check "batch host ends" talk_end host

	host_starts many
	talk_ask host fill 1
	barrier many
	same "10,000 puts arrive unattended" ok "$(talk_ask host await 1 8)"
	barrier arrived 120
	barrier late
	vmctl put offset "$(talk_ask host add)"
	barrier end
	check "many host ends" talk_end host
else
	barrier ready
	check "put, each size" xfer put b/sizes sizes 2 blocking
	barrier put
	barrier filled
	check "get, each size" xfer get b/sizes sizes 3 ring
	barrier got
	barrier looked
	check "what is out of range is refused" xfer range b/sizes sizes
	barrier refused
	barrier compared
	check "4,096 large requests take little memory, all end" xfer flood b/sizes sizes
	barrier flood

	for n in 0 1; do
		way=${ways[n]}
		barrier ready.$n
		check "put in packets of all kinds by $way" xfer put b/packets packets 1$n "$way"
		barrier put.$n
		barrier filled.$n
		check "get in packets of all kinds by $way" xfer get b/packets packets 1$n "$way"
		check "no bytes, all ways, $n" xfer zero b/packets packets 1$n
		barrier got.$n
	done

	for n in 2 3; do
		way=${ways[n]}
		barrier ready.$n
		check "one of 4,096 is bad, by $way" xfer one-bad b/batch 1$n "$way"
		barrier put.$n
	done
	check "4,097 are too many" xfer too-many b/batch
	barrier counted

	barrier many
	talk_start many xfer unattended b/many 8
	same "10,000 submitted" submitted "$(talk_hear many)"
	barrier arrived 120
	talk_say many go on
	check "10,000 completions by one poll" talk_end many

	talk_start late xfer late b/many many
	same "segment open" opened "$(talk_hear late)"
	before=$(connected_qps)
	check "there are QPs" test -n "$before"
	barrier late
	offset=$(vmctl get offset)
	talk_say late "${offset#ok }"
	check "region added later is used at once" talk_end late
	same "by the same QPs" "$before" "$(connected_qps)"
	barrier end
fi
