# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For test suites that run in a VM: . "$RMPOOL_TREE/tests/vm/guest/lib.sh"
#
# Environment of a suite: VM (a, b, ...), VM_NUMBER (1, 2, ...), VMS (all of this
# run), PEER (the other one of a pair), IP0 IP1 IP60 IP61 (own addresses on
# rail 0 and 1, IPv4 and IPv6), PEER_IP0 ... PEER_IP61, SUITE, TMP (an empty
# directory on tmpfs), RMPOOL_TREE (the source tree, read-only on the host: the
# guest writes to an overlay that goes with it), RMPOOL_BUILD, RMPOOL_LEVEL (check,
# all or long), RMPOOL_SEED (a number, the same in all VMs of a run; the run tells
# it, and with it in the host's environment the same is done again). PATH has
# build/bin first.

# ---- telling results -------------------------------------------------------

ok()		# NAME
{
	echo "ok $1"
	vmctl ok "$1"
}

# What the network, the RDMA devices and the peers look like, for the log.
network_state()
{
	ip -s link
	ip addr
	ip route
	ip neigh
	rdma link
	rdma resource
	rdma resource show qp
	rdma resource show cm_id
	[ ! -e /dev/rmpool ] || rmpool peer list
	grep -H . /sys/class/infiniband/*/ports/1/gids/[0-9] 2>/dev/null | grep -v :0000:0000:0000:0000$
}

not_ok()	# NAME WHY
{
	local again=

	echo "not ok $1: $2"
	[ ! -e "$TMP/.not_ok" ] || again=1
	: >"$TMP/.not_ok"
	vmctl not_ok "$1" "$2"
	# Once: what comes later looks as what went wrong first left it. Last: to ask
	# devices that hang takes as long as they do.
	[ -n "$again" ] || network_state
}

skip()		# NAME WHY
{
	echo "skip $1: $2"
	vmctl skip "$1" "$2"
}

# Runs a command: one test. Its output is kept in the log and, when it fails,
# its last lines are the reason. Returns what the command returned.
check()		# NAME COMMAND [ARG...]
{
	local name=$1 status out=$TMP/check.$BASHPID

	shift
	"$@" >"$out" 2>&1
	status=$?
	cat "$out"
	if [ $status = 0 ]; then
		ok "$name"
	else
		not_ok "$name" "exit $status: $(tail -n 3 "$out" | tr '\n' ' ')"
	fi
	rm -f "$out"
	return $status
}

# The same for a command that must fail, with a text in its output.
check_fails()	# NAME TEXT COMMAND [ARG...]
{
	local name=$1 text=$2 status out=$TMP/check.$BASHPID

	shift 2
	"$@" >"$out" 2>&1
	status=$?
	cat "$out"
	if [ $status = 0 ]; then
		not_ok "$name" "succeeded"
	elif [ $status -ge 124 ]; then
		not_ok "$name" "exit $status (killed or hung)"
	elif [ -n "$text" ] && ! grep -qF -- "$text" "$out"; then
		not_ok "$name" "exit $status, but without '$text': $(tail -n 3 "$out" | tr '\n' ' ')"
		status=0
	else
		ok "$name"
		rm -f "$out"
		return 0
	fi
	rm -f "$out"
	return 1
}

# A program that tells its own tests, one on each line: "ok TEST", "not ok TEST: WHY",
# "skip TEST: WHY". It must end well unless one of them failed.
check_lines()	# NAME COMMAND [ARG...]
{
	local name=$1 line told='' bad='' status=''

	shift
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$name: ${line#ok }"; told=1 ;;
		"not ok "*)
			line=${line#not ok }
			not_ok "$name: ${line%%: *}" "${line#*: }"
			told=1 bad=1
			;;
		"skip "*) line=${line#skip }; skip "$name: ${line%%: *}" "${line#*: }" ;;
		".exit "*) status=${line#.exit } ;;
		*) echo "$line" ;;
		esac
	done < <("$@" 2>&1; status=$?; echo; echo ".exit $status")
	if [ -z "$told" ] || { [ "$status" != 0 ] && [ -z "$bad" ]; }; then
		not_ok "$name" "exit $status, ${told:-no} tests told"
		return 1
	fi
	[ -z "$bad" ]
}

# Two strings that must be the same: one test.
same()		# NAME WANTED GOT
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "wanted '$2', got '$3'"
		return 1
	fi
}

# Two figures of one run: one test.
ratio()		# NAME <=|>= BOUND A B: A / B is that
{
	local ratio

	ratio=$(awk -v a="$4" -v b="$5" 'BEGIN { printf "%.2f", a / b }')
	echo "$1: $ratio"
	if awk -v r="$ratio" -v bound="$3" "BEGIN { exit !(r $2 bound) }"; then
		ok "$1"
	else
		not_ok "$1" "$ratio times"
	fi
}

# How much of something is done at this level.
amount()	# CHECK ALL LONG
{
	case $RMPOOL_LEVEL in
	check) echo "$1" ;;
	all) echo "$2" ;;
	long) echo "$3" ;;
	esac
}

# ---- waiting: always for a condition, always with a limit ------------------

# VM_SLOW is the factor for all time limits (1 but for the test kernel): vmctl's waits
# have it as well, a limit in a suite that is not one of these functions needs it.

# A pause that takes seconds shows that the machine stood still: that time is not counted,
# since what is waited for stood still as well.
wait_until()	# SECONDS COMMAND [ARG...]
{
	local end=$((SECONDS + $1 * VM_SLOW + 1)) wait_began

	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		wait_began=$SECONDS
		sleep 0.05
		[ $SECONDS -le $((wait_began + 1)) ] || end=$((end + SECONDS - wait_began))
	done
}

barrier()	# NAME [SECONDS]
{
	vmctl barrier "$@" || { echo "barrier $1: not all came" >&2; return 1; }
}

# ---- state of the machine --------------------------------------------------

parameter()	# NAME VALUE
{
	echo "$2" >"/sys/module/rmpool/parameters/$1"
}

# For peers that are added then: a machine that stands still for some seconds is no peer that
# is gone, and no dead queue pair.
peers_wait_long()
{
	parameter ack_timeout 19
	parameter keepalive_ms 30000
}

# Has the kernel reserve them; false: not all are there yet.
huge_pages()	# NUMBER
{
	echo "$1" >/proc/sys/vm/nr_hugepages
	[ "$(cat /proc/sys/vm/nr_hugepages)" -ge "$1" ]
}

# Pages under long-term pins, by everyone. Processors count for themselves until
# they are asked.
pinned_pages()
{
	local name value pages=0

	cat /proc/sys/vm/stat_refresh 2>/dev/null
	while read -r name value; do
		case $name in
		nr_foll_pin_acquired) pages=$((pages + value)) ;;
		nr_foll_pin_released) pages=$((pages - value)) ;;
		esac
	done </proc/vmstat
	echo $pages
}

# Lines of the kernel log since this suite began.
kernel_log()
{
	dmesg | awk -v start="rmpool-vm: suite $SUITE" '
		index($0, start) { n = 0; next } { line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# ---- module ----------------------------------------------------------------

# Where the module for this kernel was built.
module_file()
{
	echo "$RMPOOL_BUILD/kmod-$KVER/rmpool.ko"
}

module_needs_loaded=

# On a kernel with KCSAN, which only looks when it is told to: data races, where a function
# of the module has a part. The rest of the kernel has many, and tells of each.
watch_races()
{
	local function kcsan=/sys/kernel/debug/kcsan

	[ -e $kcsan ] || return 0
	while read -r function; do
		echo "!$function" >$kcsan
	done < <(awk '$2 ~ /[tT]/ && $4 == "[rmpool]" { print $3 }' /proc/kallsyms | sort -u)
	echo whitelist >$kcsan && echo on >$kcsan
}

module_load()	# [PARAMETER=VALUE...]
{
	local ko deps

	[ -d /sys/module/rmpool ] && return 0
	ko=$(module_file)
	[ -f "$ko" ] || { echo "$ko is not built" >&2; return 1; }
	if [ -z "$module_needs_loaded" ]; then
		deps=$(modinfo -F depends "$ko")
		# shellcheck disable=SC2086 # a list of names
		[ -z "$deps" ] || modprobe -a ${deps//,/ } || return 1
		module_needs_loaded=1
	fi
	# On a slow kernel, acknowledgements come later than the half second that queue
	# pairs wait for one, and answers later than the seconds that a peer has.
	[ "$VM_SLOW" = 1 ] || set -- ack_timeout=19 "keepalive_ms=$((5000 * VM_SLOW))" \
		"revoke_wait_ms=$((2000 * VM_SLOW))" "$@"
	insmod "$ko" "$@" && wait_until 20 [ -c /dev/rmpool ] && watch_races
}

module_unload()
{
	[ -d /sys/module/rmpool ] || return 0
	wait_until 20 try_rmmod
}

try_rmmod()
{
	rmmod rmpool 2>"${TMP:-/tmp}/rmmod.err"
}

# ---- network and rxe -------------------------------------------------------

rail_address()	# NUMBER RAIL
{
	echo "10.77.$2.$1"
}

rail_address6()	# NUMBER RAIL
{
	echo "fd77:0:0:$2::$1"
}

# The cards are told apart by their address: 52:54:00:77:RAIL:NUMBER.
rails_up()
{
	local dev rail mac commands=$'link set lo up\n'

	for dev in /sys/class/net/*; do
		read -r mac <"$dev/address"
		case $mac in
		52:54:00:77:*) ;;
		*) continue ;;
		esac
		rail=$((16#${mac:12:2}))
		commands+="link set ${dev##*/} name data$rail
			link set data$rail up
			addr add $(rail_address "$VM_NUMBER" "$rail")/24 dev data$rail
			addr add $(rail_address6 "$VM_NUMBER" "$rail")/64 dev data$rail nodad
"
	done
	# Two cards in one machine: answer only for the address asked.
	echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
	echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
	ip -batch - <<<"$commands"
}

rxe_active()	# NAME
{
	local state

	{ read -r state <"/sys/class/infiniband/$1/ports/1/state"; } 2>/dev/null
	[ "$state" = "4: ACTIVE" ]
}

rxe_add()	# RAIL
{
	rdma link add "rxe$1" type rxe netdev "data$1" && wait_until 30 rxe_active "rxe$1"
}

rxe_del()	# RAIL
{
	rdma link delete "rxe$1"
}

rxe_up()
{
	local rail

	modprobe -a rdma_rxe rdma_ucm ib_umad || return 1
	for ((rail = 0; rail < VM_RAILS; rail++)); do
		rxe_add "$rail" || return 1
	done
}

# The index of the GID that stands for an IPv4 address, for programs that ask
# for one (ib_write_bw -x). The first routable one of type RoCE v2.
gid_index()	# NAME IPV4
{
	local hex gid

	# shellcheck disable=SC2046,SC2086 # four numbers
	hex=$(printf '%02x%02x:%02x%02x' ${2//./ })
	for gid in /sys/class/infiniband/"$1"/ports/1/gids/*; do
		if [ "$(cat "$gid")" = "0000:0000:0000:0000:0000:ffff:$hex" ]; then
			echo "${gid##*/}"
			return 0
		fi
	done
	return 1
}

# A program that listens through the RDMA CM does so.
cm_listens()
{
	rdma resource show cm_id | grep -q LISTEN
}
