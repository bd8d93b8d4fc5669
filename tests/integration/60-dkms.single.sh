# SPDX-License-Identifier: MIT
# vm: timeout=240 udev=1 module=0 kernels=6.1,6.12
#
# The module as DKMS installs it, for all kernels of one machine, and who may
# open the device. DKMS compiled it on the host ("make dkms-build", from the
# same sources, by packaging/dkms.sh): a compiler is too slow in a VM.
. "$RMPOOL_TREE/tests/vm/guest/lib.sh"

cd "$RMPOOL_TREE" || exit 1
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
kernels=$(for k in /lib/modules/*/build/Makefile; do k=${k%/build/*}; echo "${k##*/}"; done)

# depmod, which DKMS calls each time, reads all modules of a kernel: leave it those
# that rmpool needs. It takes minutes here to read thousands.
few_modules()	# KERNEL
{
	local dir=/lib/modules/$1/kernel keep=$TMP/modules.$1 file

	modprobe -S "$1" -a --show-depends rdma_cm rdma_rxe |
		awk '$1 == "insmod" { print $2 }' | sort -u >"$keep"
	mkdir "$keep.d"
	while read -r file; do
		mkdir -p "$keep.d/$(dirname "${file#"$dir"/}")"
		cp "$file" "$keep.d/${file#"$dir"/}"
	done <"$keep"
	mount -t tmpfs modules "$dir" && cp -r "$keep.d/." "$dir/" && depmod "$1"
}
for k in $kernels; do
	few_modules "$k" || exit 1
done

# Everything of rmpool in the system.
traces()
{
	find /usr/src /var/lib/dkms -maxdepth 1 -name '*rmpool*' | sort
	find /lib/modules /usr/lib/udev /usr/lib/sysusers.d /etc/udev \
		-name '*rmpool*' 2>/dev/null | sort
	getent group rmpool
	dkms status rmpool
	ls /dev/rmpool /sys/module/rmpool 2>/dev/null
}
before=$(traces)
same "nothing of rmpool at first" "" "$before"

dkms()
{
	command dkms "$@" 2>&1
}

cp -r "$RMPOOL_BUILD/dkms/src/rmpool-$version" /usr/src/
check "by hand: dkms add" dkms add -m rmpool -v "$version"
for k in $kernels; do
	cp -r "$RMPOOL_BUILD/dkms/tree/rmpool/$version/$k" "/var/lib/dkms/rmpool/$version/"
done
for k in $kernels; do
	check "by hand: built for $k" grep -q "$k, x86_64: built" <(dkms status rmpool)
	check "by hand: dkms install -k $k" dkms install -m rmpool -v "$version" -k "$k"
	same "by hand: for $k, not for another" "$k" \
		"$(modinfo -k "$k" -F vermagic rmpool | cut -d' ' -f1)"
	check "by hand: dkms uninstall -k $k" dkms uninstall -m rmpool -v "$version" -k "$k"
	check_fails "by hand: $k has none now" "not found" modinfo -k "$k" rmpool
done

built()
{
	find /var/lib/dkms/rmpool -name rmpool.ko\* -o -name make.log | sort | xargs ls -l --full-time
}
first=$(built)
check "make dkms-install" make dkms-install
same "what was built is not built again" "$first" "$(built)"
for k in $kernels; do
	check "installed for $k" grep -q "$k, x86_64: installed" <(dkms status rmpool)
	same "$k finds it" "/lib/modules/$k/updates/dkms/rmpool.ko" \
		"$(modinfo -k "$k" -F filename rmpool | sed 's/\.[xg]z$//')"
done

check_fails "no rule asks for the running kernel" "" \
	grep -n 'uname' dkms.conf Kbuild packaging/dkms.sh

# The device.
device()
{
	stat -c '%a %U %G' /dev/rmpool 2>/dev/null
}
device_is()
{
	[ "$(device)" = "$1" ]
}

check "modprobe rmpool" modprobe rmpool
same "the running kernel has what DKMS built" "$(modinfo -F srcversion rmpool)" \
	"$(cat /sys/module/rmpool/srcversion)"
wait_until 10 device_is "660 root rmpool"
same "/dev/rmpool by the udev rule" "660 root rmpool" "$(device)"
check "usable" grep -q "$version" <(rmpool info)
check_fails "an outsider is told the group" "group rmpool" \
	setpriv --reuid=nobody --regid=nogroup --clear-groups rmpool info
check "a member may use it" \
	setpriv --reuid=nobody --regid=nogroup --groups=rmpool rmpool info

mkdir -p /etc/udev/rules.d
echo 'KERNEL=="rmpool", MODE="0600", GROUP="root"' >/etc/udev/rules.d/61-rmpool-local.rules
udevadm control --reload && udevadm trigger --sysname-match=rmpool --action=change
wait_until 10 device_is "600 root root"
same "a rule of the administrator overrides it" "600 root root" "$(device)"
rm /etc/udev/rules.d/61-rmpool-local.rules

check "rmmod" rmmod rmpool
check "/dev/rmpool goes with it" wait_until 10 test ! -e /dev/rmpool
check_fails "no script makes the node" "" grep -rlw mknod Makefile packaging tools

# The first RDMA device brings it.
udevadm control --reload
rxe_del 0 && rxe_add 0
check "an RDMA device loads it" wait_until 20 device_is "660 root rmpool"
module_unload

# A kernel that is too old is no error, and takes one line.
old=/lib/modules/5.10.0-0-old
mkdir -p $old/build && touch $old/build/Makefile
check "an old kernel" make dkms-install KVER=5.10.0-0-old
out=$(make dkms-install KVER=5.10.0-0-old 2>&1)
same "one line about it" 1 "$(grep -c '5.10.0-0-old' <<<"$out")"
check "which says why" grep -q "not built for 5.10.0-0-old: needs Linux 6.1" <<<"$out"
rm -r $old

check "make dkms-remove" make dkms-remove
same "nothing is left" "$before" "$(traces)"

for k in $kernels; do
	umount "/lib/modules/$k/kernel"
done
