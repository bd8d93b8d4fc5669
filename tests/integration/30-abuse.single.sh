# SPDX-License-Identifier: MIT
# vm: timeout=180
#
# What no sane program does with /dev/rmpool: the kernel refuses it by the rules
# of the uapi header, and nothing is left behind.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

check_lines "ioctls" ioctl_abuse
cd "$TMP" && check_lines "descriptor" descriptor
