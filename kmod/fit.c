// SPDX-License-Identifier: GPL-2.0
/*
 * Which page size suits a piece of memory. Pure: no state, no locks, any context.
 *
 * All pages of one memory region of a device have one size. A page of that size
 * begins at a multiple of it, for the device and in memory alike. So the two
 * addresses must be the same below it all along, and where memory jumps, a page
 * must begin. The first and the last page may stand out: the memory region ends
 * where its length says.
 */
#include "fit.h"

void rmp_fit_begin(struct rmp_fit *fit, u64 iova)
{
	fit->start = iova;
	fit->at = iova;
	fit->next = 0;
	fit->bars = 0;
}

void rmp_fit_add(struct rmp_fit *fit, u64 addr, u64 length)
{
	bool first = fit->at == fit->start;

	if (first || addr != fit->next) {
		fit->bars |= fit->at ^ addr;
		if (!first)
			fit->bars |= fit->at;
	}
	fit->at += length;
	fit->next = addr + length;
}

/* Number of the highest bit that is set in @x, which is not 0. */
static u32 highest(u64 x)
{
	return 63 - (u32)__builtin_clzll(x);
}

u64 rmp_fit_pages(const struct rmp_fit *fit, u32 shift)
{
	return ((fit->at - 1) >> shift) - (fit->start >> shift) + 1;
}

u32 rmp_fit_shift(const struct rmp_fit *fit, u64 sizes)
{
	u64 lowest = fit->bars & (~fit->bars + 1);
	u32 shift;

	if (lowest)
		sizes &= lowest | (lowest - 1);
	if (!sizes)
		return 0;
	/* Smaller ones are as good as long as they do not take more. */
	do {
		shift = highest(sizes);
		sizes &= ~(1ULL << shift);
	} while (sizes && rmp_fit_pages(fit, highest(sizes)) ==
			  rmp_fit_pages(fit, shift));
	return shift;
}
