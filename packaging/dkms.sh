#!/bin/sh
# SPDX-License-Identifier: MIT
#
# dkms.sh build VERSION SRCDIR [KVER]     sources to SRCDIR, registered, built for
#	each kernel that has headers (or for KVER only)
# dkms.sh install VERSION SRCDIR [KVER]   the same, and installed
# dkms.sh remove VERSION SRCDIR           leaves nothing
#
# RMPOOL_DKMS_OPTIONS are options for each call of dkms (other directories).
set -eu

run_dkms()
{
	action=$1
	shift
	# shellcheck disable=SC2086 # options
	dkms "$action" ${RMPOOL_DKMS_OPTIONS-} -m rmpool -v "$version" "$@"
}

forget()
{
	if [ -n "$(run_dkms status 2>/dev/null)" ]; then
		run_dkms remove --all
	fi
	rm -rf "$target"
}

add()
{
	install -d "$target"
	cp -r Kbuild dkms.conf kmod uapi LICENSES "$target/"
	# What is not a source: objects of a build in place.
	find "$target" ! -type d ! -path '*/LICENSES/*' ! -name Kbuild ! -name dkms.conf \
		\( ! -name '*.[ch]' -o -name '*.mod.c' \) -delete
	run_dkms add
}

kernels()
{
	for build in /lib/modules/*/build; do
		if [ -e "$build/Makefile" ]; then
			basename "$(dirname "$build")"
		fi
	done
}

what=${1-}
case $what in
build | install | remove) ;;
*)
	sed -n '4,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
version=$2 target=$3/rmpool-$2
cd "$(dirname "$0")/.."

forget
[ "$what" != remove ] || exit 0
add
list=${4:-$(kernels)}
if [ -z "$list" ]; then
	echo "No kernel has headers: the module is registered, DKMS builds it when they come." >&2
fi
for kver in $list; do
	run_dkms build -k "$kver"
	[ "$what" = build ] || run_dkms install -k "$kver"
done
run_dkms status
