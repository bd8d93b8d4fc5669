#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make lint: sparse on the module for each kernel with headers, checkpatch,
# shellcheck, codespell. Prints what is wrong; exit status 1 if anything is.
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
		perl $checkpatch --no-tree --strict --terse --quiet --no-summary -f "$f"
	done >build/checkpatch.log
	[ ! -s build/checkpatch.log ] || { cat build/checkpatch.log; bad "checkpatch"; }
else
	echo "lint: no kernel source package: checkpatch not run" >&2
fi

git ls-files '*.sh' '.ci/run' 'tests/vm/guest/boot' | while read -r f; do
	shellcheck -x -S warning -e SC1090,SC1091 "$f" || echo "$f" >&3
done 3>build/shellcheck.log
[ ! -s build/shellcheck.log ] || bad "shellcheck"

git ls-files | grep -vE '^(LICENSES/|build/)' | xargs codespell -q 3 -L ue,ans,parms || bad "codespell"
exit $status
