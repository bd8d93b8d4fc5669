#!/bin/sh
# SPDX-License-Identifier: MIT
#
# dkms.sh install VERSION SRCDIR [KVER]   sources to SRCDIR, built and installed
#	for each kernel that has headers (or for KVER only); what DKMS has built
#	from the same sources is not built again
# dkms.sh build VERSION SRCDIR [KVER]     the same without installing
# dkms.sh remove VERSION SRCDIR           leaves nothing
#
# DKMS is the command and its options: 'dkms --dkmstree ... --sourcetree SRCDIR'
# works somewhere else than in the system, and then needs no root.
set -eu

dkms=${DKMS:-dkms}
action=$1 version=$2 target=$3/rmpool-$2
cd "$(dirname "$0")/.."

forget()
{
	if [ -n "$($dkms status -m rmpool -v "$version" 2>/dev/null)" ]; then
		$dkms remove -m rmpool -v "$version" --all
	fi
	rm -rf "$target"
}

# The sources in their place; if they are others than before, nothing else.
add()
{
	stage=$(mktemp -d)
	trap 'rm -rf "$stage"' EXIT
	cp -rL Kbuild dkms.conf kmod uapi LICENSES "$stage/"
	find "$stage" ! -type d ! -name '*.[ch]' ! -name Kbuild ! -name dkms.conf \
		! -path '*/LICENSES/*' -delete
	find "$stage" -name '*.mod.c' -delete
	if ! diff -qr "$stage" "$target" >/dev/null 2>&1; then
		forget
		mkdir -p "$target"
		cp -r "$stage/." "$target/"
	fi
	if [ -z "$($dkms status -m rmpool -v "$version" 2>/dev/null)" ]; then
		$dkms add -m rmpool -v "$version"
	fi
}

case $action in
remove)
	forget
	;;
install | build)
	add
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
		status=0
		out=$($dkms build -m rmpool -v "$version" -k "$kver" 2>&1) || status=$?
		if [ $status = 77 ]; then	# BUILD_EXCLUSIVE in dkms.conf
			echo "not built for $kver: needs Linux 6.1 or later with RDMA"
			continue
		fi
		echo "$out"
		[ $status = 0 ] || exit $status
		if [ "$action" = install ]; then
			$dkms install -m rmpool -v "$version" -k "$kver"
		fi
	done
	$dkms status -m rmpool -v "$version"
	;;
*)
	sed -n '3,13s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
