# SPDX-License-Identifier: MIT
# vm: udev=1 module=0 rxe=0 timeout=600
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

# In place of depmod, which would read all modules of the kernel: its results,
# from the host with the module, or the kernel's own without.
cp -a /lib/modules/"$KVER"/modules.* "$TMP/"
cat >/usr/local/sbin/depmod <<EOF
#!/bin/sh
if ls /lib/modules/$KVER/updates/dkms/rmpool.ko* >/dev/null 2>&1; then
	cp $RMPOOL_BUILD/dkms/index/$KVER/modules.* /lib/modules/$KVER/
else
	cp $TMP/modules.* /lib/modules/$KVER/
fi
EOF
chmod +x /usr/local/sbin/depmod

# Only the compilation is taken from the host. The overlay goes with the VM.
traces()
{
	find /var/lib/dkms /usr/src /usr/lib/udev/rules.d /usr/lib/sysusers.d -maxdepth 1 -name '*rmpool*'
	find /lib/modules/*/updates -name '*rmpool*' 2>/dev/null
}

before=$(traces)
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
same "nothing is left" "$before" "$(traces)"
check_fails "the group is gone" "" getent group rmpool
check_fails "modprobe finds nothing" "not found" modprobe rmpool
