# SPDX-License-Identifier: MIT
# vm: timeout=240
#
# Data goes to the right place and nowhere else: b has the memory and looks at
# every byte of it, a puts and gets.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

# Starts memhost SEGMENT LAYOUT; its answers come from ask.
host()
{
	coproc HOST { exec memhost "$@"; }
	host=$HOST_PID
	read -r -t 30 word <&"${HOST[0]}"
	same "$1 published" published "$word"
}

ask()
{
	echo "$*" >&"${HOST[1]}"
	read -r -t 90 word <&"${HOST[0]}"
	echo "$word"
}

host_ends()
{
	exec {HOST[1]}>&-
	wait "$host"
}

check "peer add" rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
barrier peers

if [ "$VM" = b ]; then
	host sizes sizes
	ask fill 1 >/dev/null
	barrier ready
	barrier put 120
	same "put: all bytes right, none around" ok "$(ask check 1 2)"
	ask fill 3 >/dev/null
	barrier filled
	barrier got 120
	same "get changes nothing" ok "$(ask check 3 3)"
	barrier looked

	barrier refused
	same "refused requests move nothing" ok "$(ask check 3 3)"
	barrier flood 60
	check "sizes host ends" host_ends

	host packets packets
	for seed in 4 5; do
		ask fill 1 >/dev/null
		barrier ready.$seed
		barrier put.$seed 60
		same "put in packets of all kinds, $seed" ok "$(ask check 1 $seed)"
		ask fill $seed >/dev/null
		barrier filled.$seed
		barrier got.$seed 60
	done
	check "packets host ends" host_ends

	host batch batch
	for seed in 6 7; do
		ask fill 1 >/dev/null
		barrier ready.$seed
		barrier put.$seed 60
		same "all but the bad one arrived, $seed" ok "$(ask check 1 $seed 57)"
	done
	check "batch host ends" host_ends

	host many many
	ask fill 1 >/dev/null
	barrier many
	same "10,000 puts arrive unattended" ok "$(ask await 1 8)"
	barrier arrived 120
	barrier late
	vmctl put offset "$(ask add)"
	barrier end
	check "many host ends" host_ends
else
	barrier ready
	check "put, each size" xfer put b/sizes sizes 2 blocking
	barrier put
	barrier filled
	check "get, each size" xfer get b/sizes sizes 3 blocking
	barrier got
	barrier looked
	check "what is out of range is refused" xfer range b/sizes sizes
	barrier refused
	check "4,096 large requests take little memory, all end" xfer flood b/sizes sizes
	barrier flood

	for seed in 4 5; do
		[ $seed = 4 ] && way=ring || way=batch
		barrier ready.$seed
		check "put in packets of all kinds by $way" xfer put b/packets packets $seed $way
		barrier put.$seed
		barrier filled.$seed
		check "get in packets of all kinds by $way" xfer get b/packets packets $seed $way
		check "no bytes by $way" xfer zero b/packets packets $seed
		barrier got.$seed
	done

	for seed in 6 7; do
		[ $seed = 6 ] && way=ring || way=batch
		barrier ready.$seed
		check "one of 4,096 is bad, by $way" xfer one-bad b/batch $seed $way
		barrier put.$seed
	done
	check "4,097 are too many" xfer too-many b/batch

	barrier many
	coproc XFER { exec xfer unattended b/many 8; }
	pid=$XFER_PID
	read -r -t 60 word <&"${XFER[0]}"
	same "10,000 submitted" submitted "$word"
	barrier arrived 120
	echo >&"${XFER[1]}"
	check "10,000 completions by one poll" wait "$pid"

	coproc XFER { exec xfer late b/many many; }
	pid=$XFER_PID
	read -r -t 60 word <&"${XFER[0]}"
	same "opened" opened "$word"
	before=$(rdma resource show qp | grep -o 'lqpn [0-9]*' | sort)
	barrier late
	word=$(vmctl get offset)
	echo "${word#ok }" >&"${XFER[1]}"
	check "region added later is used at once" wait "$pid"
	same "by the same QPs" "$before" "$(rdma resource show qp | grep -o 'lqpn [0-9]*' | sort)"
	barrier end
fi
