# SPDX-License-Identifier: MIT
# vm: kernels=test module=0 rxe=0 level=all timeout=900 mem=3072
#
# The KUnit suites, a module each.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

run_suite()	# MODULE
{
	local ko=$1 name=${1##*/} deps lines

	deps=$(modinfo -F depends "$ko")
	# shellcheck disable=SC2086 # a list of names
	[ -z "$deps" ] || modprobe -a ${deps//,/ } || return 1
	lines=$(kernel_log | wc -l)
	insmod "$ko" seed="$RMPOOL_SEED" || return 1
	kernel_log | tail -n +$((lines + 1)) | tee "$TMP/log" |
		"$RMPOOL_TREE/tests/vm/guest/ktap"
	grep -o 'rmp_[a-z_]*: seed=.*' "$TMP/log"
	rmmod "${name%.ko}"
}

found=
for ko in "$RMPOOL_BUILD/kmod-$KVER/kunit"/*.ko; do
	[ -e "$ko" ] || continue
	found=1
	name=${ko##*/rmp_}
	check_lines "${name%_test.ko}" run_suite "$ko"
done
[ -n "$found" ] || not_ok "suites are built" "none for $KVER (make kunit KDIR=...)"
