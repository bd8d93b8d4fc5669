# SPDX-License-Identifier: MIT
# vm: udev=1 module=0 rxe=0 timeout=240
#
# What an administrator gets from "make dkms-install": the module that DKMS built
# for this kernel (tests/dkms.sh on the host, so that a VM need not compile),
# loaded by its name; a device node with its own group; nothing left afterwards.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
if [ ! -d "$RMPOOL_BUILD/dkms/tree/rmpool" ]; then
	skip "DKMS" "nothing was built with it (needs root)"
	exit 0
fi

# Only the compilation is taken from the host. The overlay goes with the VM.
find /var/lib/dkms /usr/src /lib/modules /usr/lib/udev /usr/lib/sysusers.d -name '*rmpool*' |
	sort >"$TMP/before"
mkdir -p /var/lib/dkms
cp -a "$RMPOOL_BUILD/dkms/tree/rmpool" /var/lib/dkms/
cp -a "$RMPOOL_BUILD/dkms/src/rmpool-$version" /usr/src/
ln -sfn "/usr/src/rmpool-$version" "/var/lib/dkms/rmpool/$version/source"
check "dkms install" dkms install -m rmpool -v "$version" -k "$KVER"
check "udev rule and group" make install-access
check "dkms says installed" grep -q "$KVER.*installed" <(dkms status -m rmpool -v "$version")

node_is()	# MODE GROUP
{
	[ "$(stat -c '%a %G' /dev/rmpool 2>/dev/null)" = "$1 $2" ]
}

check "modprobe rmpool" modprobe rmpool
check "the node comes with its mode and group" wait_until 10 node_is 660 rmpool
same "the loaded module is the one that DKMS built" \
	"$(modinfo -F srcversion rmpool)" "$(cat /sys/module/rmpool/srcversion)"
check "it is in the directory of DKMS" grep -q /updates/dkms/ <(modinfo -F filename rmpool)
check "modprobe -r rmpool" modprobe -r rmpool
check "the node goes with the module" wait_until 10 [ ! -e /dev/rmpool ]

# The module comes by itself with the first RDMA device.
modprobe rdma_rxe
rxe_add 0
check "the first RDMA device brings the module" wait_until 10 node_is 660 rmpool
rxe_del 0
check "unloading" wait_until 10 modprobe -r rmpool rdma_rxe

check "make dkms-remove" make dkms-remove
find /var/lib/dkms /usr/src /lib/modules /usr/lib/udev /usr/lib/sysusers.d -name '*rmpool*' |
	sort >"$TMP/after"
same "nothing is left" "$(cat "$TMP/before")" "$(cat "$TMP/after")"
check_fails "the group is gone" "" getent group rmpool
check_fails "modprobe finds nothing" "not found" modprobe rmpool
