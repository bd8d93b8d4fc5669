# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For suites that look for what was left behind, exactly:
#	. "$RMPOOL_TREE/tests/programs/leaks.sh"
# after the guest's lib.sh. The kernel must know who allocated what: append=slab_debug=U.

# A line for each place below functions of the module where memory was allocated that is
# not free, with how much of it. What KASAN keeps for a while after it was freed is given
# back first. Not counted: neighbours and routes, which the network keeps for later, and the
# nodes of other modules' tables (soft-RoCE's objects, rdma_cm's ports, what rdma lists):
# how many these have for the same number of objects depends on what numbers they got. An
# area of vmalloc() shows by its array of pages, for the kernel frees areas when it likes.
objects()
{
	local cache

	# Those that the module and what is below it use; to do it for all takes minutes.
	for cache in /sys/kernel/slab/{kmalloc-*,maple_node,radix_tree_node,rmp_request}; do
		echo 1 >"$cache/shrink"
		cat "/sys/kernel/debug/slab/${cache##*/}/alloc_traces"
	done | awk '
		function told()
		{
			if (place && stack ~ /\[rmpool\]/ &&
			    stack !~ /neigh_|ip_route_|ip6_route_|fib_/ &&
			    !(is_node && table !~ /\[rmpool\]/))
				nr[place] += n
			place = stack = table = ""
		}
		/^ *[0-9]+ [^ ]/ { told(); n = $1; place = $2; sub(/\/.*/, "", place)
			is_node = place ~ /^(xas|radix_tree_node)_alloc/; next }
		place && NF && !table && !/^[ \t]*_*(kmem_cache_|xas_|xa_|radix_tree_|idr_|ida_)/ {
			table = $0 }
		place && NF { stack = stack " " $0
			if (/\[rmpool\]/ && !index(place, "<")) {
				sub(/\/.*/, "", $1)
				place = place "<" $1
			} }
		END {
			told()
			for (place in nr)
				print nr[place], place
		}' | sort -k 2
}

# All that must be as it was.
state()
{
	echo "pinned: $(pinned_pages)"
	rdma resource show | sed 's/^[0-9]*: //'
	objects
}

state_is()	# STATE
{
	[ "$(state)" = "$1" ]
}

state_stays()
{
	local last=$settled

	settled=$(state)
	[ "$settled" = "$last" ]
}

# The state in $settled, once two looks give the same: queue pairs and files go a moment after
# who had them, and what was still going would be missing later.
settle()
{
	settled=
	wait_until 60 state_stays || not_ok "what there is stays the same" "it changes all the time"
}

# One test.
state_again()	# NAME STATE
{
	if wait_until 30 state_is "$2"; then
		ok "$1"
	else
		not_ok "$1" "$(diff <(echo "$2") <(state) | grep '^[<>]' | tr '\n' ' ')"
	fi
}
