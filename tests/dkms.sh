#!/bin/bash
# SPDX-License-Identifier: MIT
#
# DKMS on the host, in directories of its own below build/dkms: one build for
# each kernel with headers, whatever kernel runs. The suites 90-dkms in the VMs
# install and load what was built here. DKMS itself insists on root.
set -u

cd "$(dirname "$0")/.." || exit 1
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
top=$PWD/build/dkms
built=$top/tree/rmpool/$version
export RMPOOL_DKMS_OPTIONS="--dkmstree $top/tree --sourcetree $top/src"
failed=0

check()		# NAME COMMAND...
{
	local name=$1

	shift
	if "$@"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		failed=1
	fi
}

if [ "$(id -u)" != 0 ]; then
	echo "ok - DKMS # SKIP needs root"
	exit 0
fi

rm -rf "$top"
mkdir -p "$top/tree" "$top/src"
check "builds for each kernel with headers" packaging/dkms.sh build "$version" "$top/src"

for kdir in /lib/modules/*/build; do
	kver=$(basename "$(dirname "$kdir")")
	[ -e "$kdir/Makefile" ] || continue
	module=$(echo "$built/$kver"/*/module/rmpool.ko*)
	log=$(echo "$built/$kver"/*/log/make.log)
	vermagic=$(modinfo -F vermagic "$module")
	check "$kver: module is for it" [ "${vermagic%% *}" = "$kver" ]
	check "$kver: module has the version of the project" \
		[ "$(modinfo -F version "$module")" = "$version" ]
	check "$kver: log says what was found in the kernel" grep -q '^rmpool: found' "$log"
	check "$kver: no warnings" [ "$(grep -cE 'warning:|redefin' "$log")" = 0 ]
	if [ ! -e "/lib/modules/$(uname -r)/build" ]; then
		check "$kver: nothing of the running kernel" [ "$(grep -cF "$(uname -r)" "$log")" = 0 ]
	fi
done

# A distribution that ported a function of 6.3 back to its 6.1 builds as well.
old=$(for k in /lib/modules/6.1.*/build; do echo "$k"; done | sort -V | tail -n 1)
common=$(sed -n 's|^include \(/.*\)/Makefile$|\1|p' "$old/Makefile" 2>/dev/null)
if [ -n "$common" ]; then
	fake=$top/backport
	mkdir -p "$fake"
	cp -rs "$common" "$fake/common"
	cp -rs "$(readlink -f "$old")" "$fake/build"
	rm "$fake/build/Makefile" "$fake/common/include/linux/mm.h"
	echo "include $fake/common/Makefile" >"$fake/build/Makefile"
	sed '/^#endif.*_LINUX_MM_H/i\
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)\
{\
	vma->vm_flags |= flags;\
}' "$common/include/linux/mm.h" >"$fake/common/include/linux/mm.h"
	cp -r "$top/src/rmpool-$version" "$fake/source"
	log=$fake/make.log
	make -C "$fake/build" M="$fake/source" RMPOOL_SHOW_PROBES=1 modules >"$log" 2>&1
	status=$?
	[ $status = 0 ] || cat "$log"
	check "a 6.1 with functions ported back: builds" [ $status = 0 ]
	check "a 6.1 with functions ported back: they are found" grep -q 'found.*VM_FLAGS_SET' "$log"
	check "a 6.1 with functions ported back: no warnings" \
		[ "$(grep -cE 'warning:|redefin' "$log")" = 0 ]
	rm -rf "$fake"
fi

# An older kernel is refused before anything is built.
text=$(dkms build --dkmstree "$top/tree" --sourcetree "$top/src" -m rmpool -v "$version" \
	-k 5.10.0-9-amd64 --kernelsourcedir "$old" 2>&1)
status=$?
check "Linux 5.10: not built" [ $status = 77 ]
check "Linux 5.10: the reason is the kernel" grep -q 'does not match this kernel' <<<"$text"
rm -rf "$built/5.10.0-9-amd64"

# Removal, in a copy: the VMs need the original.
cp -a "$top" "$top.copy"
RMPOOL_DKMS_OPTIONS="--dkmstree $top.copy/tree --sourcetree $top.copy/src"
ln -sfn "$top.copy/src/rmpool-$version" "$top.copy/tree/rmpool/$version/source"
packaging/dkms.sh remove "$version" "$top.copy/src"
left=$(find "$top.copy" -name '*rmpool*')
check "removal leaves nothing" [ -z "$left" ]
rm -rf "$top.copy"
exit $failed
