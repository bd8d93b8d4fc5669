#!/bin/sh
# SPDX-License-Identifier: MIT
#
# dkms.sh install VERSION SRCDIR [KVER]   sources to SRCDIR, built for each
#	kernel that has headers (or for KVER only)
# dkms.sh remove VERSION SRCDIR           leaves nothing
set -eu

action=$1 version=$2 target=$3/rmpool-$2
cd "$(dirname "$0")/.."

forget()
{
	if [ -n "$(dkms status -m rmpool -v "$version" 2>/dev/null)" ]; then
		dkms remove -m rmpool -v "$version" --all
	fi
	rm -rf "$target"
}

case $action in
remove)
	forget
	;;
install)
	forget
	install -d "$target"
	cp -r Kbuild dkms.conf kmod uapi LICENSES "$target/"
	find "$target" ! -type d ! -name '*.[ch]' ! -name Kbuild ! -name dkms.conf \
		! -path '*/LICENSES/*' -delete
	find "$target" -name '*.mod.c' -delete
	dkms add -m rmpool -v "$version"
	kernels=${4:-}
	if [ -z "$kernels" ]; then
		for build in /lib/modules/*/build; do
			[ -e "$build/Makefile" ] && kernels="$kernels $(basename "$(dirname "$build")")"
		done
	fi
	if [ -z "$kernels" ]; then
		echo "no kernel has headers: the module is registered, DKMS builds it when they come" >&2
	fi
	for kver in $kernels; do
		dkms build -m rmpool -v "$version" -k "$kver"
		dkms install -m rmpool -v "$version" -k "$kver"
	done
	dkms status -m rmpool -v "$version"
	;;
*)
	sed -n '3,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
