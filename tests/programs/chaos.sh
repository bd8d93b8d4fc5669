# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For suites that break things under load: . "$RMPOOL_TREE/tests/programs/chaos.sh"
# after the guest's lib.sh. VM a says what is done, b does its part when told (obey).
#
# A run is: run_begins, faults, run_ends. Both VMs have a host (memhost) and a load
# (load.c) on the other's host, so the load goes both ways. It must outlive all faults
# and go on after them; when it has ended, all that was taken must have been given back,
# and the module unloads.
. "$RMPOOL_TREE/tests/programs/steps.sh"
. "$RMPOOL_TREE/tests/programs/talk.sh"

RANDOM=$((RMPOOL_SEED % 32768))
life=1 asked=0 loads=0

# ---- here and there ---------------------------------------------------------

# b: does what a says, until "obey_end".
obey()
{
	local n=0 command

	while :; do
		n=$((n + 1))
		command=$(vmctl get "ask$VM_LIFE.$n" 900) || return 1
		[ "$command" != "obey_end " ] || return 0
		eval "$command"
		vmctl put "answer$VM_LIFE.$n" $?
	done
}

ask()		# COMMAND...
{
	asked=$((asked + 1))
	vmctl put "ask$life.$asked" "$(printf '%q ' "$@")"
}

answered()
{
	[ "$(vmctl get "answer$life.$asked" 300)" = 0 ]
}

there()		# COMMAND...
{
	ask "$@"
	answered
}

on()		# VM COMMAND...
{
	if [ "$1" = "$VM" ]; then
		"${@:2}"
	else
		there "${@:2}"
	fi
}

# On both at the same time.
both()		# COMMAND...
{
	local status=0

	ask "$@"
	"$@" || status=1
	answered || status=1
	return $status
}

# Sets a variable to one of the words. Not by what it prints: a subshell has a RANDOM
# of its own, which no seed repeats.
pick()		# VARIABLE WORD...
{
	local variable=$1

	shift $((1 + RANDOM % ($# - 1)))
	printf -v "$variable" %s "$1"
}

# Lets a random time pass: faults come at random moments.
moment()	# MOST-MILLISECONDS
{
	local ms=$((RANDOM * $1 / 32768))

	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# ---- host and load ----------------------------------------------------------

host_starts()
{
	talk_start host memhost "$VM" chaos 1
	[ "$(talk_hear host)" = published ] || { not_ok "the host starts" "it does not"; return 1; }
}

load_starts()
{
	loads=$((loads + 1)) goes=0 turns=0
	load "$PEER/$PEER" $((loads % 4)) $((RMPOOL_SEED + VM_NUMBER * 1000 + loads)) \
		$((30 * VM_SLOW)) >"$TMP/load" 2>&1 &
	load=$!
	load_says loading || { not_ok "the load starts" "$(tail -n 3 "$TMP/load")"; return 1; }
}

load_says_or_ended()	# TEXT
{
	says "$1" "$TMP/load" || ! kill -0 "$load"
}

load_says()	# TEXT
{
	wait_until 120 load_says_or_ended "$1" && says "$1" "$TMP/load"
}

load_goes()
{
	goes=$((goes + 1))
	kill -USR1 "$load"
	load_says "going $goes" || { tail -n 3 "$TMP/load"; return 1; }
}

# From now on no request may fail, or any may again.
load_is()	# strict|lenient
{
	turns=$((turns + 1))
	kill -USR2 "$load"
	load_says "$1 $turns" || { tail -n 3 "$TMP/load"; return 1; }
}

# While what breaks is of rail 1: the session runs over rail 0, which carries all.
spared()	# RAIL strict|lenient
{
	[ "$1" = 1 ] || return 0
	both load_is "$2" && return 0
	not_ok "$run: no request fails while a rail is up" "see the logs"
	exit 1
}

load_ends()
{
	kill -TERM "$load"
	wait "$load"
	status=$?
	tail -n 3 "$TMP/load"
	return $status
}

# Kills at once, and the process must be gone soon, whatever it had in flight.
dies()		# PID
{
	local began=$SECONDS

	crash "$1"
	[ $((SECONDS - began)) -le $((15 * VM_SLOW)) ] ||
		not_ok "a killed process is gone" "after $((SECONDS - began)) s"
}

host_dies()
{
	dies "${TALK_PID[host]}"
	talk_end host
	return 0
}

load_dies()
{
	kill -0 "$load" || { not_ok "the load lives" "$(tail -n 3 "$TMP/load")"; return 1; }
	dies "$load"
}

# ---- faults; on the VM that has them -----------------------------------------

device_here()	# RAIL MILLISECONDS
{
	local began=$SECONDS

	rxe_del "$1"
	[ $((SECONDS - began)) -le $((30 * VM_SLOW)) ] ||
		not_ok "a device goes" "after $((SECONDS - began)) s"
	moment "$2"
	rxe_add "$1"
}

# What this VM sends over a rail gets lost, as in a switch: no link goes down, and nobody
# is told.
loses()		# RAIL yes|no
{
	local address=PEER_IP$1

	if [ "$2" = yes ]; then
		ip neigh replace "${!address}" lladdr 02:00:00:00:00:66 dev "data$1" nud permanent
	else
		ip neigh del "${!address}" dev "data$1"
	fi
}

# ---- what is taken ----------------------------------------------------------

# Of all devices, whatever number they have now.
resources()
{
	rdma resource show | sed 's/^[0-9]*: //' | sort
}

# Areas of vmalloc() that the module has.
areas()
{
	grep -c '\[rmpool\]' /proc/vmallocinfo
}

resources_are()	# TEXT
{
	[ "$(resources)" = "$1" ]
}

areas_are()	# NUMBER
{
	[ "$(areas)" = "$1" ]
}

# Bytes in kmalloc()'s caches, without what processors and nodes keep for later.
kmalloc_bytes()
{
	local cache

	for cache in /sys/kernel/slab/kmalloc-*; do
		echo 1 >"$cache/shrink"
	done
	awk '/^kmalloc-/ { n += $2 * $4 } END { printf "%d\n", n }' /proc/slabinfo
}

# ---- a run ------------------------------------------------------------------

# Small slices and chunks, so that most requests take several on both rails. What a suite
# breaks is to be noticed soon, but not what a machine that stands still for some seconds
# looks like: the one rail that is up must carry all then.
chaos_load()
{
	module_load max_slice=8192 max_chunk_pages=64 ack_timeout=$((VM_SLOW > 1 ? 19 : 18)) \
		keepalive_ms=$((5000 + 1000 * VM_SLOW))
}

begin_here()
{
	# Addresses of IPv6 outlive a link that goes down.
	echo 1 >/proc/sys/net/ipv6/conf/all/keep_addr_on_down
	chaos_load && wait_until 30 device_usable rxe0 && wait_until 30 device_usable rxe1 ||
		return 1
	run_pins=$(pinned_pages) run_resources=$(resources) run_areas=$(areas)
	rmpool peer add "$PEER" "v1:$PEER_IP0:13579"
}

run_begins()	# NAME
{
	run=$1 began=$SECONDS
	if both begin_here && both host_starts && both load_starts; then
		ok "$run: load both ways"
	else
		not_ok "$run: load both ways" "it does not begin"
		exit 1
	fi
}

# After a fault: as before it.
all_well()
{
	wait_until 60 rails_are "$PEER" 2 ||
		{ echo "not two rails"; rmpool peer list; return 1; }
	load_goes
}

goes_on()
{
	both all_well && return 0
	not_ok "$run: the load goes on" "see the logs"
	exit 1
}

end_load_here()	# NAME
{
	check "$1: goes on, and all it reads is right" load_ends
	same "$1: memory around places is untouched" ok "$(talk_ask host around 1)"
}

fill_here()
{
	[ "$(talk_ask host fill 1)" = ok ]
}

put_here()	# NAME
{
	check "$1: puts without an error" xfer put "$PEER/$PEER" chaos $((RMPOOL_SEED + VM_NUMBER)) ring
}

look_here()	# NAME
{
	same "$1: all bytes put are there" \
		ok "$(talk_ask host check 1 $((RMPOOL_SEED + 3 - VM_NUMBER)))"
	check "$1: the host ends" talk_end host
	rmpool peer del "$PEER"
}

end_here()	# NAME
{
	check "$1: pins are given back" wait_until 30 pins_are "$run_pins" || pinned_pages
	check "$1: RDMA resources are as before" wait_until 30 resources_are "$run_resources" ||
		{ echo "$run_resources"; echo "now:"; rdma resource show; rdma resource show qp; }
	check "$1: areas of vmalloc() are as before" wait_until 30 areas_are "$run_areas" ||
		grep '\[rmpool\]' /proc/vmallocinfo
	check "$1: module unloads" wait_until 25 try_rmmod
	kmalloc=$(kmalloc_bytes)
	echo "$1: $kmalloc bytes of kmalloc()"
	if [ -n "$first_kmalloc" ]; then
		check "$1: no memory lost" test $((kmalloc - first_kmalloc)) -lt $((512 << 10))
	fi
	: "${first_kmalloc:=$kmalloc}"
}

run_ends()
{
	goes_on
	both end_load_here "$run"
	both fill_here
	both put_here "$run"
	both look_here "$run"
	both end_here "$run"
	echo "$run: $((SECONDS - began)) s"
}
