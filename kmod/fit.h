/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_FIT_H
#define RMP_FIT_H

#include "pure.h"

/**
 * struct rmp_fit - what is known of the memory behind a range of device addresses
 * @start: first device address
 * @at: where the next piece begins
 * @next: address of memory that would continue the last piece
 * @bars: a page of 2^n bytes is possible if none of the bits below n is set
 */
struct rmp_fit {
	u64 start;
	u64 at;
	u64 next;
	u64 bars;
};

void rmp_fit_begin(struct rmp_fit *fit, u64 iova);
/* The next @length bytes (not 0) are at @addr, whatever kind of address that is. */
void rmp_fit_add(struct rmp_fit *fit, u64 addr, u64 length);

/* The page size out of @sizes, a mask, that takes the fewest pages, and of those
 * that take as few the smallest; as a shift. 0 when none is possible.
 */
u32 rmp_fit_shift(const struct rmp_fit *fit, u64 sizes);
/* No page larger than 1 << @shift bytes is possible any more. */
static inline bool rmp_fit_at_most(const struct rmp_fit *fit, u32 shift)
{
	return fit->bars & ((2ULL << shift) - 1);
}

/* How many pages of 1 << @shift bytes the range touches. */
u64 rmp_fit_pages(const struct rmp_fit *fit, u32 shift);

#endif /* RMP_FIT_H */
