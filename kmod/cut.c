// SPDX-License-Identifier: GPL-2.0
/*
 * Into which chunks a region is cut, and which addresses its bytes have for devices: by
 * its memory, and how large a chunk may be. Which of these is on which device: deal.c.
 *
 * No state and no locks: the region is being made, and nobody but its maker looks at it.
 * Context: process; may reschedule.
 */
#include <linux/mm.h>
#include <linux/sizes.h>
#include "fit.h"
#include "mapping.h"

/* Pages looked at without a chance for others. */
#define RMP_CUT_STEP	BIT(16)

/* Device addresses are like the user's below the size of a huge page, and tell
 * nothing above it.
 */
static void rmp_region_place(struct rmp_region *region)
{
	u64 size = PMD_SIZE;

	/* Those of a buffer, like places in it: where it begins, a huge page may. */
	if (!region->dmabuf)
		size = clamp_t(u64, folio_size(page_folio(region->pages[0])),
			       PMD_SIZE, SZ_1G);
	region->iova = size + (region->start & (size - 1));
}

/* The largest pages that all of the memory consists of, as a shift. A buffer is
 * looked at by each device for itself, later: any size may be.
 */
static u32 rmp_region_page_shift(const struct rmp_region *region)
{
	struct rmp_fit fit;
	unsigned long i, n;

	if (region->dmabuf)
		return PAGE_SHIFT;
	rmp_fit_begin(&fit, region->iova & PAGE_MASK);
	for (i = 0; i < region->nr_pages; i += n) {
		n = min(region->nr_pages - i, RMP_CUT_STEP);
		n = rmp_fit_add_pages(&fit, region->pages + i, n);
		if (rmp_fit_at_most(&fit, PAGE_SHIFT))
			return PAGE_SHIFT;
		cond_resched();
	}
	return rmp_fit_shift(&fit, (2ULL * SZ_1G - 1) & PAGE_MASK);
}

void rmp_cut_measure(struct rmp_region *region, bool small)
{
	rmp_region_place(region);
	region->page_shift = small ? PAGE_SHIFT : rmp_region_page_shift(region);
}

int rmp_cut_chunks(struct rmp_region *region, u32 shift)
{
	u32 align;
	u64 nr;

	/* So that borders of chunks are borders of pages. */
	align = min(region->page_shift, shift);
	region->iova_base = round_down(region->iova, 1ULL << align);
	region->chunk_shift = shift;
	nr = ((region->iova - region->iova_base + region->length - 1) >>
	      shift) + 1;
	if (nr > INT_MAX)
		return -ENOMEM;
	region->nr_chunks = nr;
	return 0;
}
