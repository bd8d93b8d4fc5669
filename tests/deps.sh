#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs what building and testing rmpool needs on Debian 12, as root or
# through sudo. Does nothing, quickly, when nothing is missing.
#
#	deps.sh                install, and look for newer kernels
#	deps.sh --if-missing   only if something is missing
#	deps.sh --lint         also the tools of make lint
#	deps.sh --test-kernel  also what building the test kernel needs
set -eu

if_missing=
lint=
test_kernel=
for arg; do
	case $arg in
	--if-missing) if_missing=1 ;;
	--lint) lint=1 ;;
	--test-kernel) test_kernel=1 ;;
	*)
		echo "deps.sh: $arg is not known" >&2
		exit 2
		;;
	esac
done

packages='build-essential make gcc clang libclang-rt-dev python3 python3-yaml
	qemu-system-x86 busybox-static kmod xz-utils udev
	dkms strace pkg-config
	libmnl-dev libjansson-dev libcmocka-dev libbsd-dev
	perftest rdma-core rdmacm-utils ibverbs-utils libibverbs-dev librdmacm-dev
	iproute2 procps iputils-ping groff-base e2fsprogs'
if [ -n "$lint" ]; then
	packages="$packages linux-source-6.12 sparse clang-tidy cppcheck shellcheck codespell
		pyflakes3"
fi
if [ -n "$test_kernel" ]; then
	packages="$packages linux-source-6.12 flex bison bc libelf-dev"
fi

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for p in $packages; do
	installed "$p" || missing="$missing $p"
done

# A kernel of each series, with its headers. Not cloud: it has no RDMA.
have_kernel()
{
	for image in /boot/vmlinuz-"$1".*-amd64; do
		version=${image#/boot/vmlinuz-}
		case $version in *-cloud-* | *-rt-* | *'*'*) continue ;; esac
		[ -e "/lib/modules/$version/build/Makefile" ] && return 0
	done
	return 1
}

kernels=
for series in 6.1 6.12; do
	if [ -z "$if_missing" ] || ! have_kernel $series; then
		kernels="$kernels $series"
	fi
done
[ -n "$missing$kernels" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "deps.sh: to install$missing$kernels, run this as root" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q

# Point versions leave the mirrors after some weeks: take the newest there is.
newest()
{
	apt-cache search --names-only "^linux-image-$1\$" | cut -d' ' -f1 | sort -V | tail -n 1
}

for series in $kernels; do
	case $series in
	6.1) image=$(newest '6\.1\.0-[0-9]+-amd64') ;;
	*) image=$(newest '6\.12\.[0-9.]+\+deb12-amd64') ;;
	esac
	if [ -z "$image" ]; then
		have_kernel "$series" && continue
		echo "deps.sh: apt offers no kernel $series" >&2
		exit 1
	fi
	missing="$missing $image linux-headers-${image#linux-image-}"
done

# shellcheck disable=SC2086 # a list
$as_root apt-get install -q -y --no-install-recommends $missing
