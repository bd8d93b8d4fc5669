// SPDX-License-Identifier: GPL-2.0
/*
 * Pinning and charging user memory.
 *
 * A page is pinned once and charged once per region, however many devices it
 * is mapped on. The charge goes to the pinned_vm of the owner's address space,
 * as for other RDMA memory, so that VmPin shows it; the caller keeps that
 * mm_struct (mmgrab) until the charge is taken back, which may be long after
 * the address space itself is gone.
 *
 * Context: charging and pinning need the owner's process; giving back needs
 * just one that may sleep. No state, no locks of its own. All loops go in
 * steps that are short enough to let others run in between.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "compat.h"
#include "pin.h"

/* Pages of one step: tens of microseconds. */
#define RMP_PIN_STEP	256UL

int rmp_charge(struct mm_struct *mm, unsigned long nr,
	       struct rmpool_error *error)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK);
	s64 used = atomic64_read(&mm->pinned_vm);

	/* What does not fit is not charged for a moment either: another thread's
	 * region, which does, would be refused in it.
	 */
	do {
		if (used + nr > limit >> PAGE_SHIFT && !capable(CAP_IPC_LOCK)) {
			error->reason = RMPOOL_REASON_MEMLOCK;
			error->limit = limit;
			error->used = (u64)used << PAGE_SHIFT;
			error->need = (u64)nr << PAGE_SHIFT;
			return -ENOMEM;
		}
	} while (!atomic64_try_cmpxchg(&mm->pinned_vm, &used, used + nr));
	return 0;
}

void rmp_uncharge(struct mm_struct *mm, unsigned long nr)
{
	atomic64_sub(nr, &mm->pinned_vm);
}

int rmp_pin(unsigned long addr, unsigned long nr, bool write,
	    struct page **pages, unsigned long *pinned, u64 *bad)
{
	unsigned long at;
	long n;

	for (*pinned = 0; *pinned < nr; *pinned += n) {
		if (signal_pending(current))
			return -EINTR;
		at = addr + (*pinned << PAGE_SHIFT);
		n = min(nr - *pinned, RMP_PIN_STEP);
		if (write)
			n = pin_user_pages_fast(at, n,
						FOLL_LONGTERM | FOLL_WRITE,
						pages + *pinned);
		else
			n = rmp_pin_for_read(at, n, pages + *pinned);
		if (n <= 0) {
			*bad = at;
			if (n == -ENOMEM || n == -EINTR)
				return n;
			return n == -ERESTARTSYS ? -EINTR : -EFAULT;
		}
		cond_resched();
	}
	return 0;
}

void rmp_unpin(struct page **pages, unsigned long nr, bool dirty)
{
	unsigned long n;

	for (; nr; nr -= n, pages += n) {
		n = min(nr, RMP_PIN_STEP);
		unpin_user_pages_dirty_lock(pages, n, dirty);
		cond_resched();
	}
}
