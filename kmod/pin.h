/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_PIN_H
#define RMP_PIN_H

#include "region.h"

/* Part of the region room. */

/* Charges @nr pages to RLIMIT_MEMLOCK; -ENOMEM with the limit in @error. */
int rmp_charge(struct mm_struct *mm, unsigned long nr,
	       struct rmpool_error *error);
void rmp_uncharge(struct mm_struct *mm, unsigned long nr);

/* Whether memory of the caller is of a kind that can be pinned for long, for writing
 * as well if @write. -EOPNOTSUPP if not, -EFAULT if some of it is missing, each with
 * reason and address in @error; -EINTR.
 */
int rmp_kind_check(unsigned long addr, unsigned long length, bool write,
		   struct rmpool_error *error);

/* Pins @nr pages of the caller from @addr (page aligned) on, for long. What was
 * pinned is counted in @pinned, also when it fails; @bad is the address where.
 */
int rmp_pin(unsigned long addr, unsigned long nr, bool write,
	    struct page **pages, unsigned long *pinned, u64 *bad);
void rmp_unpin(struct page **pages, unsigned long nr, bool dirty);

#endif /* RMP_PIN_H */
