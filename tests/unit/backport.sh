#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Distributions port features of later kernels back and keep the version. Here
# the headers of 6.1 get some that rmpool looks for; what uses them must still
# compile, without a warning. Prints TAP.
set -eu

tree=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

found=
for headers in /lib/modules/6.1.*/build; do
	[ ! -f "$headers/Makefile" ] || found=$(readlink -f "$headers")
done
if [ -z "$found" ]; then
	echo "not ok 1 - headers of Linux 6.1"
	exit 1
fi
common=$(sed -n 's|^include \(/.*\)/Makefile$|\1|p' "$found/Makefile")
if [ -z "$common" ]; then
	echo "not ok 1 - headers of Debian: one tree for all, one for this kernel"
	exit 1
fi

cp -rs "$common" "$scratch/common"
cp -rP "$found" "$scratch/build"
ln -sfn "$(readlink -f "$found/scripts")" "$scratch/build/scripts"
ln -sfn "$(readlink -f "$found/tools")" "$scratch/build/tools"
echo "include $scratch/common/Makefile" >"$scratch/build/Makefile"
cd "$scratch/common/include/linux"
for header in mm eventfd dma-buf module; do
	cp --remove-destination "$common/include/linux/$header.h" .
done
python3 - <<'PY'
def edit(name, old, new):
    text = open(name).read()
    assert old in text, f"{name}: {old}"
    open(name, "w").write(text.replace(old, new, 1))

anchor = "static inline void vma_init(struct vm_area_struct *vma"
edit("mm.h", anchor, """static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

""" + anchor)
for _ in ("get_user_pages_remote", "pin_user_pages_remote"):
    edit("mm.h", "struct vm_area_struct **vmas, int *locked", "int *locked")
edit("eventfd.h", "__u64 eventfd_signal(struct eventfd_ctx *ctx, __u64 n);",
     "void eventfd_signal(struct eventfd_ctx *ctx);")
anchor = "int dma_buf_vmap(struct dma_buf *dmabuf, struct iosys_map *map);"
edit("dma-buf.h", anchor, anchor + """
int dma_buf_vmap_unlocked(struct dma_buf *dmabuf, struct iosys_map *map);
void dma_buf_vunmap_unlocked(struct dma_buf *dmabuf, struct iosys_map *map);""")
edit("module.h", "MODULE_INFO(import_ns, __stringify(ns))", "MODULE_INFO(import_ns, ns)")
PY

mkdir "$scratch/module"
cp -r "$tree/Kbuild" "$tree/dkms.conf" "$tree/uapi" "$scratch/module/"
mkdir "$scratch/module/kmod"
cp "$tree"/kmod/*.[ch] "$scratch/module/kmod/"
users=$(cd "$tree" && grep -l '"compat.h"' kmod/*.c | sed 's/c$/o/')
status=0
# shellcheck disable=SC2086 # a list of names
out=$(make -C "$scratch/build" M="$scratch/module" RMPOOL_SHOW_PROBES=1 W=1 $users 2>&1) ||
	status=$?
if [ $status = 0 ] && ! grep -q 'warning:' <<<"$out"; then
	echo "ok 1 - compiles with features ported back"
else
	echo "$out"
	echo "not ok 1 - compiles with features ported back"
fi
n=2
for feature in VM_FLAGS_SET EVENTFD_SIGNAL_ONE_ARG DMA_BUF_VMAP_UNLOCKED IMPORT_NS_STRING; do
	if grep -q "rmpool: found .*RMP_HAVE_$feature" <<<"$out"; then
		echo "ok $n - finds $feature and says so"
	else
		echo "not ok $n - finds $feature and says so"
	fi
	n=$((n + 1))
done
# What it cannot know must not be guessed: data would be wrong.
sed -i 's/gup_must_unshare/gup_must_break/' "$scratch/common/include/linux/mm.h"
# shellcheck disable=SC2086 # a list of names
if out=$(make -C "$scratch/build" M="$scratch/module" $users 2>&1); then
	echo "not ok $n - refuses a kernel that it cannot tell"
elif grep -q 'cannot tell whether' <<<"$out"; then
	echo "ok $n - refuses a kernel that it cannot tell"
else
	echo "$out"
	echo "not ok $n - refuses a kernel that it cannot tell"
fi
n=$((n + 1))
if grep -rn 'LINUX_VERSION_CODE\|KERNEL_VERSION' "$tree"/kmod "$tree/Kbuild" >&2; then
	echo "not ok $n - no test of versions"
else
	echo "ok $n - no test of versions"
fi
