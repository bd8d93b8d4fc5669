// SPDX-License-Identifier: GPL-2.0
/*
 * Watching what the owner does with registered addresses.
 *
 * A region is its pinned pages. The owner may let go of them while it is
 * registered: then other pages, or none, are at its addresses, and who moves
 * bytes does not reach what he thinks. An interval notifier for each region
 * tells of it while it happens:
 * - What was unmapped is stale at once, for good.
 * - What only changes rights or is looked at more closely is not told apart from
 *   before: fork, mprotect(), NUMA balancing, soft-dirty.
 * - All else (MADV_DONTNEED, a hole punched, a page that is migrated, a huge page
 *   that is split) says that entries were cleared, not whether the same page comes
 *   back. The region is suspect: nothing new is posted, and a work item looks at
 *   which pages are there now. The same ones: it is active again. Else stale.
 *
 * To look means to fault pages in. So all pages of an active region are mapped,
 * and none can be taken away later without being told. A page that its file has
 * lost, or an anonymous one that nobody has any more, is known without that: a hole is
 * not filled again by looking, unless it is looked at in the moment when it is punched.
 *
 * A dma-buf has nothing to do with addresses of the owner: its exporter says when it
 * is taken back, and then it is stale.
 *
 * Locking: rmp_memory.watch_lock guards the state of the file's regions, their
 * suspect pages, and the list of those to be looked at. It is a leaf, taken in the
 * notifier as well, which may run under any lock of mm/ and within reclaim: there,
 * nothing is allocated and nothing waits. The state is read without it.
 *
 * Lifetime: a region is watched from before it is pinned until its last reference
 * is gone; in the list it has one of its own.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include "compat.h"
#include "watch.h"

/* Pages looked at in one step. */
#define RMP_WATCH_STEP	64UL

/* Regions looked at before those who wait for them are told. */
#define RMP_WATCH_BATCH	32U

/* watch_lock held. */
static void watch_enqueue(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;

	if (!region->pinned || !list_empty(&region->watch_node) ||
	    !kref_get_unless_zero(&region->ref))
		return;
	list_add_tail(&region->watch_node, &mem->watch_list);
	queue_work(system_unbound_wq, &mem->watch_work);
}

/* watch_lock held: pages from user address @start to @end are suspect, too. */
static void watch_suspect(struct rmp_region *region, u64 start, u64 end)
{
	u64 first = region->addr & PAGE_MASK;
	unsigned long from = 0, to = region->nr_pages;

	if (start > first)
		from = (start - first) >> PAGE_SHIFT;
	if (end < first + ((u64)to << PAGE_SHIFT))
		to = PAGE_ALIGN(end - first) >> PAGE_SHIFT;

	if (region->state == RMPOOL_REGION_STATE_SUSPECT) {
		from = min(from, region->suspect_from);
		to = max(to, region->suspect_to);
	}
	region->suspect_from = from;
	region->suspect_to = to;
	WRITE_ONCE(region->state, RMPOOL_REGION_STATE_SUSPECT);
}

static bool watch_event(struct mmu_interval_notifier *watch,
			const struct mmu_notifier_range *range,
			unsigned long seq)
{
	struct rmp_region *region = container_of(watch, struct rmp_region,
						 watch);
	struct rmp_memory *mem = region->mem;
	bool unmapped = false;

	switch (range->event) {
	case MMU_NOTIFY_PROTECTION_VMA:
	case MMU_NOTIFY_PROTECTION_PAGE:
	case MMU_NOTIFY_SOFT_DIRTY:
		return true;
	case MMU_NOTIFY_RELEASE:
		return true;	/* the end of the file, which watches as well */
	case MMU_NOTIFY_UNMAP:
		/* Of huge pages, 6.1 says so as well when they are let go of while
		 * they stay mapped; of shared ones, it tells of all that one upper
		 * page table could map, whatever part of it goes.
		 */
		unmapped = range->end - range->start < PUD_SIZE &&
			   !rmp_range_is_hugetlb(range);
		break;
	default:
		break;
	}
	if (READ_ONCE(region->dead))
		return true;

	spin_lock(&mem->watch_lock);
	mmu_interval_set_seq(watch, seq);
	if (region->state != RMPOOL_REGION_STATE_STALE) {
		if (unmapped)
			WRITE_ONCE(region->state, RMPOOL_REGION_STATE_STALE);
		else
			watch_suspect(region, range->start, range->end);
		watch_enqueue(region);
	}
	spin_unlock(&mem->watch_lock);
	return true;
}

static const struct mmu_interval_notifier_ops watch_ops = {
	.invalidate = watch_event,
};

/* Cut off from its file, in which a hole was punched, or which was truncated; or
 * unmapped for good.
 */
static bool page_lost(struct page *page)
{
	struct folio *folio = page_folio(page);
	bool moving;

	if (!folio_test_anon(folio))
		return !READ_ONCE(folio->mapping);
	/* Such a one may come back. */
	moving = folio_test_locked(folio) || folio_test_swapcache(folio);
	/* Before it is seen unmapped: it is marked so first. */
	smp_rmb();
	return !moving && !folio_mapped(folio);
}

/* Whether all suspect pages are where they were. In the owner's address space. */
static bool watch_look(struct rmp_region *region, struct mm_struct *mm,
		       unsigned long from, unsigned long to)
{
	struct page *found[RMP_WATCH_STEP];
	struct page **pages = region->pages;
	bool same = true;
	long i, n;

	for (; same && from < to; from += n) {
		if (READ_ONCE(region->dead))
			break;
		n = min(to - from, RMP_WATCH_STEP);
		for (i = 0; i < n; i++) {
			if (page_lost(pages[from + i]))
				return false;
		}
		mmap_read_lock(mm);
		n = rmp_get_pages(mm, (region->addr & PAGE_MASK) +
				  ((u64)from << PAGE_SHIFT), n, found);
		mmap_read_unlock(mm);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++) {
			same &= found[i] == pages[from + i];
			put_page(found[i]);
		}
		cond_resched();
	}
	return same;
}

/* True when it is known what the region is. */
static bool watch_settle(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;
	unsigned long from, to, seq;
	bool same = false;
	u32 state;

	/* For good. All that a dma-buf can be, and that has no notifier. */
	if (rmp_region_stale(region))
		return true;
	/* Not in the middle of a change. */
	seq = mmu_interval_read_begin(&region->watch);
	spin_lock(&mem->watch_lock);
	state = region->state;
	from = region->suspect_from;
	to = region->suspect_to;
	spin_unlock(&mem->watch_lock);
	if (state != RMPOOL_REGION_STATE_SUSPECT)
		return true;

	/* Without users all of it is gone, or just going. */
	if (mmget_not_zero(mem->mm)) {
		same = watch_look(region, mem->mm, from, to);
		mmput(mem->mm);
	}

	spin_lock(&mem->watch_lock);
	/* It is in the list again when something else came in between. */
	if (mmu_interval_read_retry(&region->watch, seq)) {
		spin_unlock(&mem->watch_lock);
		return false;
	}
	if (region->state == RMPOOL_REGION_STATE_SUSPECT)
		WRITE_ONCE(region->state, same ? RMPOOL_REGION_STATE_ACTIVE :
						 RMPOOL_REGION_STATE_STALE);
	spin_unlock(&mem->watch_lock);
	return true;
}

static void watch_work(struct work_struct *work)
{
	struct rmp_memory *mem = container_of(work, struct rmp_memory,
					      watch_work);
	struct rmp_region *region;
	unsigned int n = 0;

	for (;;) {
		spin_lock(&mem->watch_lock);
		region = list_first_entry_or_null(&mem->watch_list,
						  struct rmp_region,
						  watch_node);
		if (region)
			list_del_init(&region->watch_node);
		spin_unlock(&mem->watch_lock);
		if (n && (!region || n == RMP_WATCH_BATCH)) {
			rmp_regions_settled();
			n = 0;
		}
		if (!region)
			return;
		/* A buffer that is taken back is not the owner's to be waited for. */
		if ((region->dmabuf || !READ_ONCE(region->dead)) &&
		    watch_settle(region))
			rmp_region_settled(region);
		rmp_region_put(region);
		n++;
		cond_resched();
	}
}

int rmp_watch_begin(struct rmp_region *region)
{
	int err;

	INIT_LIST_HEAD(&region->watch_node);
	if (region->dmabuf)
		return 0;
	err = mmu_interval_notifier_insert(&region->watch, region->mem->mm,
					   region->addr & PAGE_MASK,
					   region->nr_pages << PAGE_SHIFT,
					   &watch_ops);
	if (err)
		return err;
	region->watched = true;
	/* What began before is over; of what begins now we are told. */
	mmu_interval_read_begin(&region->watch);
	return 0;
}

void rmp_watch_pinned(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;

	spin_lock(&mem->watch_lock);
	region->pinned = true;
	if (region->state != RMPOOL_REGION_STATE_ACTIVE)
		watch_enqueue(region);
	spin_unlock(&mem->watch_lock);
}

void rmp_watch_lost(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;

	spin_lock(&mem->watch_lock);
	if (region->state != RMPOOL_REGION_STATE_STALE) {
		WRITE_ONCE(region->state, RMPOOL_REGION_STATE_STALE);
		watch_enqueue(region);
	}
	spin_unlock(&mem->watch_lock);
}

void rmp_watch_end(struct rmp_region *region)
{
	if (region->watched)
		mmu_interval_notifier_remove(&region->watch);
}

void rmp_watch_init(struct rmp_memory *mem)
{
	spin_lock_init(&mem->watch_lock);
	INIT_LIST_HEAD(&mem->watch_list);
	INIT_WORK(&mem->watch_work, watch_work);
}

void rmp_watch_exit(struct rmp_memory *mem)
{
	flush_work(&mem->watch_work);
	WARN_ON(!list_empty(&mem->watch_list));
}
