#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make lint: sparse on the module for each kernel with headers, checkpatch,
# codespell and shellcheck. Prints what is wrong; exit status 1 if anything is.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

bad()
{
	echo "lint: $*" >&2
	status=1
}

for build in /lib/modules/*/build; do
	[ -e "$build/Makefile" ] || continue
	log=build/sparse.log
	mkdir -p build
	make --no-print-directory module KDIR="$build" W=1 C=2 CF=-D__CHECK_ENDIAN__ >$log 2>&1 || {
		cat $log
		bad "module for $build does not build"
	}
	! grep -E '(warning|error):' $log || bad "sparse or compiler warnings ($build)"
done

# checkpatch.pl comes with the kernel's source package.
checkpatch=build/checkpatch/checkpatch.pl
if [ ! -e $checkpatch ]; then
	for tar in /usr/src/linux-source-6.12.tar.xz /usr/src/linux-source-6.1.tar.xz; do
		[ -e "$tar" ] || continue
		mkdir -p build/checkpatch
		top=$(basename "$tar" .tar.xz)
		tar -xJf "$tar" -C build/checkpatch --strip-components=2 \
			"$top/scripts/checkpatch.pl" "$top/scripts/spelling.txt" \
			"$top/scripts/const_structs.checkpatch"
		break
	done
fi
if [ -e $checkpatch ]; then
	git ls-files 'kmod/*.[ch]' 'uapi/*.h' 'kunit/*.[ch]' | while read -r f; do
		# BIT() is for the kernel only, the headers of the ABI are not
		case $f in uapi/*) ignore=--ignore=BIT_MACRO ;; *) ignore= ;; esac
		perl $checkpatch --no-tree --strict --terse --quiet --no-summary $ignore -f "$f"
	done >build/checkpatch.log
	[ ! -s build/checkpatch.log ] || { cat build/checkpatch.log; bad "checkpatch"; }
else
	echo "lint: no kernel source package: checkpatch not run" >&2
fi

git ls-files '*.sh' '.ci/run' 'tests/vm/guest/boot' | while read -r f; do
	shellcheck -s bash -x -S warning -e SC1007,SC1010,SC1083,SC1090,SC1091,SC2034,SC2093,SC2320 "$f" || echo "$f" >&3
done 3>build/shellcheck.log
[ ! -s build/shellcheck.log ] || bad "shellcheck"

git ls-files | grep -vE '^(LICENSES/|build/)' | xargs codespell -q 3 -L ans,filp,inflight,nam,parms,seve,ue || bad "codespell"
exit $status
