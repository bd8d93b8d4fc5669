#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Installing with DKMS, for each kernel of this machine that has headers: by hand,
# and by "make dkms-install" and "make dkms-remove". All that is written to the
# system goes to overlays in a mount namespace, which end with this script. What
# DKMS built is left in build/dkms/KERNEL/rmpool.ko, for a VM to load.
#
# Usage: dkms.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
if [ "$(id -u)" != 0 ]; then
	echo "ok dkms # SKIP only root may mount"
	exit 0
fi
if [ "${2:-}" != inside ]; then
	exec unshare --mount "$0" "$PWD" inside
fi

over=$(mktemp -d)
trap 'umount -R "$over"; rmdir "$over"' EXIT
mount -t tmpfs -o mode=755 over "$over" || exit 1
for dir in /usr /var /etc; do
	mkdir -p "$over$dir/upper" "$over$dir/work"
	mount -t overlay "over$dir" "$dir" \
		-o "lowerdir=$dir,upperdir=$over$dir/upper,workdir=$over$dir/work" || exit 1
done
# No udev to be told.
mount -t tmpfs -o mode=755 run /run || exit 1
# One module is enough for depmod to read, again and again: DKMS learns from its
# name how modules are compressed.
for dir in /usr/lib/modules/*/kernel; do
	module=$(find "$dir" -name 'ib_core.ko*')
	cp "$module" "$over/" && mount -t tmpfs -o mode=755 modules "$dir" &&
		mv "$over/${module##*/}" "$dir/" || exit 1
done

status=0
log=$over/log

ok()		# NAME
{
	echo "ok $1"
}

not_ok()	# NAME WHY
{
	echo "not ok $1: $2"
	status=1
}

check()		# NAME COMMAND...
{
	local name=$1

	shift
	if "$@" >"$log" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$(tail -n 5 "$log")"
	fi
}

same()		# NAME WANTED GOT
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "wanted '$2', got '$3'"
	fi
}

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
kernels=$(for k in /lib/modules/*/build/Makefile; do k=${k%/build/*}; echo "${k##*/}"; done)

# Everything of rmpool in the system.
traces()
{
	find /usr/src /var/lib/dkms -maxdepth 1 -name '*rmpool*' | sort
	find /usr/lib/modules /usr/lib/udev /usr/lib/sysusers.d /etc/udev -name '*rmpool*' | sort
	getent group rmpool
	dkms status rmpool
}

# shellcheck disable=SC2317 # check calls it
status_is()	# KERNEL STATE
{
	dkms status rmpool | grep -q "$1, x86_64: $2"
}

# The tests may run where rmpool is installed.
make dkms-remove >"$log" 2>&1
rm -f /usr/lib/modules/*/updates/rmpool.ko
same "nothing of rmpool at first" "" "$(traces)"

mkdir "/usr/src/rmpool-$version"
cp -r Kbuild dkms.conf kmod uapi LICENSES "/usr/src/rmpool-$version"
check "by hand: dkms add" dkms add -m rmpool -v "$version"
for k in $kernels; do
	check "by hand: dkms build -k $k" dkms build -m rmpool -v "$version" -k "$k"
	check "by hand: dkms install -k $k" dkms install -m rmpool -v "$version" -k "$k"
	same "by hand: for $k, not for another" "$k" \
		"$(modinfo -k "$k" -F vermagic rmpool | cut -d' ' -f1)"
	check "by hand: dkms uninstall -k $k" dkms uninstall -m rmpool -v "$version" -k "$k"
	same "by hand: $k has none now" "" "$(modinfo -k "$k" -F filename rmpool 2>/dev/null)"
done

built()
{
	find /var/lib/dkms/rmpool -name rmpool.ko\* -o -name make.log | sort | xargs ls -l --full-time
}
first=$(built)
check "make dkms-install" make dkms-install
same "what was built is not built again" "$first" "$(built)"
for k in $kernels; do
	check "installed for $k" status_is "$k" installed
	file=$(modinfo -k "$k" -F filename rmpool)
	same "$k finds it" "/lib/modules/$k/updates/dkms/rmpool.ko" "${file%.[xg]z}"
	mkdir -p "build/dkms/$k"
	case $file in
	*.xz) xz -dc "$file" >"build/dkms/$k/rmpool.ko" ;;
	*.gz) gzip -dc "$file" >"build/dkms/$k/rmpool.ko" ;;
	*) cp "$file" "build/dkms/$k/rmpool.ko" ;;
	esac
done
same "no rule asks for the running kernel" "" \
	"$(grep -n 'uname' dkms.conf Kbuild packaging/dkms.sh)"
same "no script makes a device node" "" "$(grep -rlw mknod Makefile packaging tools)"

# A kernel that is too old is no error, and takes one line.
old=/usr/lib/modules/5.10.0-0-old
mkdir -p $old/build && touch $old/build/Makefile
check "an old kernel" make -s dkms-install KVER=5.10.0-0-old
same "one line about it, which says why" \
	"not built for 5.10.0-0-old: needs Linux 6.1 or later with RDMA" \
	"$(grep 5.10.0-0-old "$log")"
rm -r $old

check "make dkms-remove" make dkms-remove
same "nothing is left" "" "$(traces)"
exit $status
