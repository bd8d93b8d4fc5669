/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions, and nothing else.
 */
#ifndef RMP_COMPAT_H
#define RMP_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/sched.h>

/*
 * RMP_HAVE_GUP_READ_SHARES: pins for reading leave the pages of private
 * mappings shared (until 6.2). Kbuild finds out by the arguments of
 * gup_must_unshare() in linux/mm.h, which the change that ended it altered.
 */
#ifdef RMP_HAVE_GUP_READ_SHARES
/*
 * A long-term pin for reading may take a page that a private
 * mapping shares (the zero page, page cache): the next write of the owner goes
 * to a copy, and the device keeps reading the old page. Asking for the right
 * to write breaks the sharing now; shared mappings must not be asked for it.
 * What that changes for others is nothing: the mapping is private.
 */
static inline long rmp_pin_for_read(unsigned long addr, unsigned long nr,
				    struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM;
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	long ret = -EFAULT;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, addr);
	if (!vma || vma->vm_start > addr || !(vma->vm_flags & VM_READ))
		goto out;
	nr = min(nr, (vma->vm_end - addr) >> PAGE_SHIFT);
	if (is_cow_mapping(vma->vm_flags)) {
		if (vma->vm_flags & VM_WRITE)
			flags |= FOLL_WRITE;
		else if (!is_vm_hugetlb_page(vma))
			flags |= FOLL_WRITE | FOLL_FORCE;
	}
	ret = pin_user_pages(addr, nr, flags, pages, NULL);
out:
	mmap_read_unlock(mm);
	return ret;
}
#else
static inline long rmp_pin_for_read(unsigned long addr, unsigned long nr,
				    struct page **pages)
{
	return pin_user_pages_fast(addr, nr, FOLL_LONGTERM, pages);
}
#endif

/*
 * The pages that are at @addr of another process, referenced, whatever its rights
 * there; mmap_lock is held for reading. Missing ones are faulted in, as by reading;
 * -EFAULT when that cannot be done without waiting for some process.
 */
static inline long rmp_get_pages(struct mm_struct *mm, unsigned long addr,
				 unsigned long nr, struct page **pages)
{
#ifdef RMP_HAVE_GUP_REMOTE_VMAS
	return get_user_pages_remote(mm, addr, nr, FOLL_FORCE, pages, NULL,
				     NULL);
#else
	return get_user_pages_remote(mm, addr, nr, FOLL_FORCE, pages, NULL);
#endif
}

/*
 * Pins pages that are at @addr of another process, for a moment, with the rights that
 * it has there; mmap_lock is held for reading, and kept. Faults as above, unless @flags
 * say otherwise.
 */
static inline long rmp_pin_pages_of(struct mm_struct *mm, unsigned long addr,
				    unsigned long nr, unsigned int flags,
				    struct page **pages)
{
#ifdef RMP_HAVE_GUP_REMOTE_VMAS
	return pin_user_pages_remote(mm, addr, nr, flags, pages, NULL, NULL);
#else
	return pin_user_pages_remote(mm, addr, nr, flags, pages, NULL);
#endif
}

/* Whether a notifier is told of huge pages of hugetlbfs; only asked where it matters. */
static inline bool rmp_range_is_hugetlb(const struct mmu_notifier_range *range)
{
#ifdef RMP_HAVE_MMU_RANGE_VMA
	return range->vma && is_vm_hugetlb_page(range->vma);
#else
	return false;
#endif
}

#ifdef RMP_HAVE_VM_FLAGS_SET
static inline void rmp_vm_flags_set(struct vm_area_struct *vma,
				    vm_flags_t flags)
{
	vm_flags_set(vma, flags);
}
#else
static inline void rmp_vm_flags_set(struct vm_area_struct *vma,
				    vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifdef RMP_HAVE_EVENTFD_SIGNAL_ONE_ARG
static inline void rmp_eventfd_signal(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx);
}
#else
static inline void rmp_eventfd_signal(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx, 1);
}
#endif

/*
 * Both take the lock that the mapping of a dma-buf needs: that of its reservation,
 * or, where there is no choice, one of its own.
 */
#ifdef RMP_HAVE_DMA_BUF_VMAP_UNLOCKED
static inline int rmp_dma_buf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	return dma_buf_vmap_unlocked(buf, map);
}

static inline void rmp_dma_buf_vunmap(struct dma_buf *buf,
				      struct iosys_map *map)
{
	dma_buf_vunmap_unlocked(buf, map);
}
#else
static inline int rmp_dma_buf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	return dma_buf_vmap(buf, map);
}

static inline void rmp_dma_buf_vunmap(struct dma_buf *buf,
				      struct iosys_map *map)
{
	dma_buf_vunmap(buf, map);
}
#endif

/* A name space of symbols is named by a string, or by a word that becomes one. */
#ifdef RMP_HAVE_IMPORT_NS_STRING
#define RMP_IMPORT_NS(ns)	MODULE_IMPORT_NS(#ns)
#else
#define RMP_IMPORT_NS(ns)	MODULE_IMPORT_NS(ns)
#endif

#endif /* RMP_COMPAT_H */
