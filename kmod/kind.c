// SPDX-License-Identifier: GPL-2.0
/*
 * Kinds of memory that can be registered, and those that cannot.
 *
 * The kernel refuses long-term pins in mappings of devices and, since some version, for
 * writing in shared mappings of files whose file system keeps account of which pages
 * are written: a device would write behind its back. It says EFAULT to both, as if
 * nothing was there. So mappings are looked at first, before any page of them is
 * faulted in, which would fill holes of a file; the answer names what is wrong, and
 * is the same on all kernels.
 *
 * That mappings change afterwards is not prevented: to be replaced, one must be
 * unmapped, which makes the region stale (watch.c); and a hole is refused here, so that
 * nothing can come to it unseen.
 *
 * Locking: mmap_lock for reading, in steps that are short enough to let others
 * in. Context: the owner's process. No state.
 */
#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "pin.h"

/* Mappings of one step: tens of microseconds. */
#define RMP_KIND_STEP	256

/* Must be told of each page that is about to be written, or keeps account of
 * which are.
 */
static bool kind_tracks_writes(struct vm_area_struct *vma)
{
	const struct vm_operations_struct *ops = vma->vm_ops;

	if (!vma->vm_file || !(vma->vm_flags & VM_SHARED))
		return false;
	return (ops && (ops->page_mkwrite || ops->pfn_mkwrite)) ||
	       mapping_can_writeback(vma->vm_file->f_mapping);
}

static enum rmpool_reason kind_refused(struct vm_area_struct *vma, bool write)
{
	if (vma->vm_flags & (VM_IO | VM_PFNMAP))
		return RMPOOL_REASON_DEVICE_MAPPING;
	/* With DAX, there is no memory but the blocks of the file. */
	if (vma_is_fsdax(vma) || (write && kind_tracks_writes(vma)))
		return RMPOOL_REASON_FILE_MAPPING;
	return RMPOOL_REASON_NONE;
}

/* Looks at mappings from @at on, which moves on to what was not looked at. */
static enum rmpool_reason kind_step(struct mm_struct *mm, unsigned long *at,
				    unsigned long end, bool write)
{
	enum rmpool_reason reason = RMPOOL_REASON_NONE;
	struct vm_area_struct *vma;
	int i;

	for (i = 0; i < RMP_KIND_STEP && *at < end; i++) {
		vma = vma_lookup(mm, *at);
		reason = vma ? kind_refused(vma, write) : RMPOOL_REASON_UNMAPPED;
		if (reason != RMPOOL_REASON_NONE)
			break;
		*at = vma->vm_end;
	}
	return reason;
}

int rmp_kind_check(unsigned long addr, unsigned long length, bool write,
		   struct rmpool_error *error)
{
	unsigned long end = addr + length, at = addr;
	struct mm_struct *mm = current->mm;
	enum rmpool_reason reason;

	while (at < end) {
		if (signal_pending(current) || mmap_read_lock_killable(mm))
			return -EINTR;
		reason = kind_step(mm, &at, end, write);
		mmap_read_unlock(mm);
		if (reason != RMPOOL_REASON_NONE) {
			error->reason = reason;
			error->need = at;
			return reason == RMPOOL_REASON_UNMAPPED ? -EFAULT :
								  -EOPNOTSUPP;
		}
		cond_resched();
	}
	return 0;
}
