# SPDX-License-Identifier: MIT
# vm: timeout=240 udev=1 module=0 kernels=6.1,6.12 level=all
#
# The module that DKMS built, loaded with modprobe or by an RDMA device, and who
# may open the device. DKMS built it on the host, as tests/unit/dkms.sh shows: a
# compiler is too slow in a VM.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$RMPOOL_TREE" || exit 1
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
kernel=$(uname -r)
built=$RMPOOL_BUILD/dkms/$kernel/rmpool.ko
if [ ! -f "$built" ]; then
	skip "dkms" "DKMS built nothing for $kernel: make check T=dkms, as root"
	exit
fi

# depmod reads all modules of a kernel, which takes minutes here: leave it those
# that rmpool needs.
few_modules()
{
	local dir=/lib/modules/$kernel/kernel few=$TMP/few file

	modprobe -a --show-depends rdma_cm rdma_rxe |
		awk '$1 == "insmod" { print $2 }' | sort -u |
		while read -r file; do
			mkdir -p "$few/$(dirname "${file#"$dir"/}")"
			cp "$file" "$few/${file#"$dir"/}"
		done
	mount -t tmpfs modules "$dir" && cp -r "$few/." "$dir/"
}
check "few modules" few_modules

dest=/lib/modules/$kernel/$(sed -n 's|^DEST_MODULE_LOCATION\[0\]="/\(.*\)"$|\1|p' dkms.conf)
mkdir -p "$dest" && cp "$built" "$dest/" && depmod
check "udev rule and group" make install-access

device()
{
	stat -c '%a %U %G' /dev/rmpool 2>/dev/null
}
device_is()
{
	[ "$(device)" = "$1" ]
}

check "modprobe rmpool" modprobe rmpool
same "the running kernel has what DKMS built" "$(modinfo -F srcversion "$built")" \
	"$(cat /sys/module/rmpool/srcversion)"
wait_until 60 device_is "660 root rmpool"
same "/dev/rmpool by the udev rule" "660 root rmpool" "$(device)"
check "usable" grep -q "$version" <(rmpool info)
check_fails "an outsider is told the group" "group rmpool" \
	setpriv --reuid=nobody --regid=nogroup --clear-groups rmpool serve x --size 4K
check "a member may use it" \
	setpriv --reuid=nobody --regid=nogroup --groups=rmpool rmpool info

mkdir -p /etc/udev/rules.d
echo 'KERNEL=="rmpool", MODE="0600", GROUP="root"' >/etc/udev/rules.d/61-rmpool-local.rules
udevadm control --reload && udevadm trigger --sysname-match=rmpool --action=change
wait_until 60 device_is "600 root root"
same "a rule of the administrator overrides it" "600 root root" "$(device)"
rm /etc/udev/rules.d/61-rmpool-local.rules

check "rmmod" rmmod rmpool
check "/dev/rmpool goes with it" wait_until 60 test ! -e /dev/rmpool

# The first RDMA device brings it.
udevadm control --reload
rxe_del 0 && rxe_add 0
check "an RDMA device loads it" wait_until 60 device_is "660 root rmpool"
module_unload

# For the suites that come after this one.
rm -r "$dest" /usr/lib/udev/rules.d/60-rmpool.rules /usr/lib/sysusers.d/rmpool.conf
groupdel rmpool
umount "/lib/modules/$kernel/kernel"
