# SPDX-License-Identifier: MIT
# vm: level=all 6.1=long timeout=400 long=7200
#
# A peer that is in the table and means harm, while another one is served: it comes
# from rail 1, the other one over rail 0, and both are VM a. The victim tries to open
# segments of it all the time: over connections that it made, since what listens at
# its address is the honest one. RMPOOL_SEED repeats a run.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"
. "$RMPOOL_TREE/tests/programs/steps.sh"

rounds=$(amount 24 24 5000)
limit=$(amount 300 300 7100)
evil1=10.77.1.1			# VM a on rail 1
victim1=10.77.1.2

available()
{
	awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo
}

# What the worst moment is like, until the file is gone.
watch_while_there()	# FILE
{
	local least most=0 now

	least=$(available)
	while [ -e "$1" ]; do
		now=$(available)
		[ "$now" -ge "$least" ] || least=$now
		now=$(queue_pairs)
		[ "$now" -le "$most" ] || most=$now
		echo "$least $most" >"$1.worst"
		sleep 0.1	# pace
	done
}

# Somebody who wants something from the one who means harm.
ask_while_there()	# FILE
{
	while [ -e "$1" ]; do
		sleep 0.1	# pace: without a connection it ends at once
		timeout $((2 * VM_SLOW)) rmpool put -q "$1.data" evil/any+1000 >/dev/null 2>&1
		timeout $((2 * VM_SLOW)) rmpool get -q evil/other 100 "$1.got" >/dev/null 2>&1
	done
}

log_lines()
{
	kernel_log | grep -c "rmpool: "
}

at_most()	# NAME MOST NUMBER
{
	if [ "$3" -le "$2" ]; then
		ok "$1"
	else
		not_ok "$1" "$3, and $2 is the most"
	fi
}

# Who is served keeps its queue pairs, also when a machine stands still for some seconds.
[ "$VM_SLOW" -gt 1 ] || parameter ack_timeout 18
barrier patient

if [ "$VM" = b ]; then
	pins=$(pinned_pages)
	check "the honest one" rmpool peer add a "v1:$PEER_IP0:13579"
	check "the other one" rmpool peer add evil "v1:$evil1:13579"
	serve mem --size 4M
	barrier served
	barrier honest 200
	qps=$(queue_pairs)
	began=$SECONDS
	memory=$(available)
	head -c 5000 /dev/urandom >"$TMP/attack.data"
	: >"$TMP/attack"
	watch_while_there "$TMP/attack" &
	background=$!
	ask_while_there "$TMP/attack" &
	background+=" $!"
	barrier attack
	barrier attacked $((limit + 60))
	rm "$TMP/attack"
	# shellcheck disable=SC2086 # words
	wait $background
	read -r least most <"$TMP/attack.worst"
	echo "memory $memory, at least $least MiB; queue pairs $qps, at most $most;" \
		"$(log_lines) lines in $((SECONDS - began)) s"
	kernel_log | grep "rmpool: " | sed 's/^[^:]*: //; s/:[0-9]* / /; s/[0-9]* callbacks/N callbacks/' |
		sort | uniq -c | sort -rn | head -n 20
	# 32 rails of 16 queue pairs are what a peer may have.
	at_most "queue pairs are bounded" $((qps + 512 + 8)) "$most"
	at_most "memory is bounded" 256 $((memory - least))
	# Ten of a kind in five seconds, and there are not many kinds.
	at_most "the log is bounded" $((60 * ((SECONDS - began) / 5 + 2))) "$(log_lines)"
	rmpool peer del evil
	check "its queue pairs are gone" wait_until 60 queue_pairs_at_most "$qps"
	barrier after
	barrier end 200
	check "serve ends well" kill "$server"
	wait "$server"
	rmpool peer del a
	check "all pins are given back" wait_until 30 pins_are "$pins"
	exit
fi

# Both directions, over and over: the honest one.
there_and_back()
{
	rmpool put -q "$TMP/file" "b/mem+$1" && rmpool get -q "b/mem+$1" 100001 "$TMP/back" &&
		cmp "$TMP/file" "$TMP/back"
}

serve_while_there()	# FILE
{
	local n=0 bad=0

	while [ -e "$1" ]; do
		n=$((n + 1))
		there_and_back $((n * 4099 % 3000000)) >>"$1.log" 2>&1 || bad=$((bad + 1))
		echo "$n $bad" >"$1.count"
	done
}

head -c 100001 /dev/urandom >"$TMP/file"
barrier served
check "peer add" rmpool peer add b "v1:$PEER_IP0:13579"
check "before" there_and_back 0
check "both rails" wait_until 20 rails_are b 2
barrier honest
barrier attack
: >"$TMP/honest"
serve_while_there "$TMP/honest" &
honest=$!
began=$SECONDS
check_lines "hostile" timeout $((limit * VM_SLOW)) hostile "$victim1" 13579 "$RMPOOL_SEED" "$rounds"
echo "$rounds rounds in $((SECONDS - began)) s"
# In the middle of whatever it does.
for ((i = 0; i < 3; i++)); do
	timeout -s KILL $((1 + i)) hostile "$victim1" 13579 "$RMPOOL_SEED" 1000 $((rounds + i)) >/dev/null
done
rm "$TMP/honest"
wait $honest
read -r n bad <"$TMP/honest.count"
echo "the honest one: $n times, $bad failed"
tail -n 5 "$TMP/honest.log"
same "the honest one is served all the time" 0 "$bad"
barrier attacked
barrier after 200
check "afterwards" there_and_back 12345
check "both rails are up" wait_until 30 rails_are b 2
rmpool peer del b
barrier end
