# SPDX-License-Identifier: MIT
# vm: timeout=300 level=long kernels=6.1,6.12
#
# How much two registrations at the same time hinder each other on two processors.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

read -r alone both < <(long beside 512 9)
echo "512 MiB: $alone s alone, $both s beside another"
ratio "two at the same time take at most 1.3 times one" '<=' 1.3 "$both" "$alone"
