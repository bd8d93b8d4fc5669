// SPDX-License-Identifier: GPL-2.0
/*
 * Pinning user memory, once per region, however many devices it is mapped on.
 *
 * Context: pinning needs the owner's process; giving back just one that may sleep.
 * No state, no locks of its own. All loops go in steps that are short enough to
 * let others run in between.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "compat.h"
#include "pin.h"

/* Pages of one step, as many as the kernel takes for ibv_reg_mr(): tens of microseconds. */
#define RMP_PIN_STEP	512UL

int rmp_pin(unsigned long addr, unsigned long nr, bool write,
	    struct page **pages, unsigned long *pinned, u64 *bad)
{
	unsigned long at;
	long n;

	/* Others look at how far it is. */
	*pinned = 0;
	while (*pinned < nr) {
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
		WRITE_ONCE(*pinned, *pinned + n);
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
