# SPDX-License-Identifier: MIT
# vm: timeout=300 level=long kernels=6.1,6.12
#
# How fast memory is registered, beside ibv_reg_mr() on the same device in the same run:
# on one device, and on two.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

mib=256 rounds=31

check "huge pages are there" wait_until 20 huge_pages $((mib / 2))
rxe_del 1 || exit 1
regspeed rxe0 $mib "$rounds" >"$TMP/one" || exit 1
rxe_add 1 || exit 1
regspeed rxe0 $mib "$rounds" >"$TMP/two" || exit 1
echo 0 >/proc/sys/vm/nr_hugepages

echo "MiB/s, median of $rounds, $mib MiB"
awk 'BEGIN { printf "%-8s %8s %12s %12s %14s %14s\n", "page", "devices", "rmpool", "(back)",
		    "ibv_reg_mr", "(dereg)" }
	{ printf "%-8s %8d %12s %12s %14s %14s\n", $1, FILENAME ~ /one$/ ? 1 : 2, $2, $3, $4, $5 }
' "$TMP/one" "$TMP/two"

while read -r page rmpool _ verbs _ <&3 && read -r _ rmpool2 _ <&4; do
	# Times are the other way round than rates; medians differ by a few per cent.
	ratio "pages of $page bytes: not slower than ibv_reg_mr" '>=' 0.85 "$rmpool" "$verbs"
	ratio "pages of $page bytes: two devices take at most 1.3 times one" '<=' 1.3 \
		"$rmpool" "$rmpool2"
done 3<"$TMP/one" 4<"$TMP/two"
