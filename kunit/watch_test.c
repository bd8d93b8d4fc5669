// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/watch.c: what becomes of a region with each event of its owner's
 * address space. That address space is played: which pages are where, and what
 * happens while somebody looks.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include "suite.h"
#include "compat.h"
#include "watch.h"

static int play_insert(struct mmu_interval_notifier *watch, struct mm_struct *mm,
		       unsigned long start, unsigned long length,
		       const struct mmu_interval_notifier_ops *ops);
static void play_remove(struct mmu_interval_notifier *watch);
static unsigned long play_read_begin(struct mmu_interval_notifier *watch);
static bool play_mmget(struct mm_struct *mm);
static long play_get_pages(struct mm_struct *mm, unsigned long addr,
			   unsigned long nr, struct page **pages);
static void play_put_page(struct page *page);

#define mmu_interval_notifier_insert	play_insert
#define mmu_interval_notifier_remove	play_remove
#define mmu_interval_read_begin		play_read_begin
#define mmget_not_zero			play_mmget
#define mmput(mm)			((void)(mm))
#define mmap_read_lock(mm)		((void)(mm))
#define mmap_read_unlock(mm)		((void)(mm))
#define rmp_get_pages			play_get_pages
#define put_page			play_put_page
#include "watch.c"

#define BASE		0x7000000UL
#define PAGES		200

static struct {
	struct rmp_memory mem;
	struct rmp_region region;
	struct page *pages[PAGES];	/* of the region */
	struct page *there[PAGES];	/* at its addresses; NULL: none */
	struct page *other;
	struct address_space mapping;
	unsigned long seq;
	unsigned long start, length;	/* watched */
	bool inserted;
	bool no_mm;
	int refs;			/* of pages that were looked at */
	unsigned long looked_from, looked_to;
	u32 during;			/* how often something comes while one looks */
	u32 looks;
	int settled;
	int told;			/* after some of those */
	int ended;
} world;

static int play_insert(struct mmu_interval_notifier *watch, struct mm_struct *mm,
		       unsigned long start, unsigned long length,
		       const struct mmu_interval_notifier_ops *ops)
{
	world.start = start;
	world.length = length;
	world.inserted = true;
	watch->ops = ops;
	watch->invalidate_seq = 1;
	return 0;
}

static void play_remove(struct mmu_interval_notifier *watch)
{
	world.inserted = false;
}

static unsigned long play_read_begin(struct mmu_interval_notifier *watch)
{
	return watch->invalidate_seq;
}

static bool play_mmget(struct mm_struct *mm)
{
	return !world.no_mm;
}

/* Something happens to pages @from to @to of the region. */
static void happen(enum mmu_notifier_event event, long from, long to)
{
	struct mmu_notifier_range range = {
		.event = event,
		.start = BASE + from * (long)PAGE_SIZE,
		.end = BASE + to * (long)PAGE_SIZE,
	};

	world.seq += 2;
	world.region.watch.ops->invalidate(&world.region.watch, &range, world.seq);
}

static long play_get_pages(struct mm_struct *mm, unsigned long addr,
			   unsigned long nr, struct page **pages)
{
	unsigned long first = (addr - BASE) >> PAGE_SHIFT, i;

	world.looks++;
	world.looked_from = min(world.looked_from, first);
	world.looked_to = max(world.looked_to, first + nr);
	if (world.during) {
		world.during--;
		happen(MMU_NOTIFY_CLEAR, (long)first, (long)first + 1);
	}
	/* Up to what is not there, and seldom all at once. */
	for (i = 0; i < nr && world.there[first + i]; i++)
		pages[i] = world.there[first + i];
	if (i > 2)
		i = 1 + below(i);
	world.refs += (int)i;
	return i ? (long)i : -EFAULT;
}

static void play_put_page(struct page *page)
{
	world.refs--;
}

static void region_released(struct kref *ref)
{
	world.ended++;
}

void rmp_region_put(struct rmp_region *region)
{
	kref_put(&region->ref, region_released);
}

void rmp_region_settled(struct rmp_region *region)
{
	world.settled++;
}

void rmp_regions_settled(void)
{
	world.told++;
}

/* The test */

static void region_begin(struct kunit *test, bool pinned)
{
	struct rmp_region *region = &world.region;

	memset(region, 0, sizeof(*region));
	kref_init(&region->ref);
	region->mem = &world.mem;
	region->addr = BASE + 5;
	region->length = PAGES * PAGE_SIZE - 9;
	region->pages = world.pages;
	region->nr_pages = PAGES;
	memcpy(world.there, world.pages, sizeof(world.pages));
	world.looked_from = PAGES;
	world.looked_to = 0;
	world.looks = 0;
	world.settled = 0;
	world.told = 0;
	KUNIT_ASSERT_EQ(test, rmp_watch_begin(region), 0);
	KUNIT_EXPECT_TRUE(test, world.inserted);
	if (pinned)
		rmp_watch_pinned(region);
}

static void region_end(struct kunit *test)
{
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, kref_read(&world.region.ref), 1);
	rmp_watch_end(&world.region);
	KUNIT_EXPECT_FALSE(test, world.inserted);
	KUNIT_EXPECT_EQ(test, world.refs, 0);
}

static int watch_init(struct kunit *test)
{
	u32 i;

	memset(&world, 0, sizeof(world));
	world.seq = 1;
	rmp_watch_init(&world.mem);
	for (i = 0; i < PAGES; i++) {
		world.pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, world.pages[i]);
		world.pages[i]->mapping = &world.mapping;
	}
	world.other = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world.other);
	suite_case(test);
	return 0;
}

static void watch_exit(struct kunit *test)
{
	u32 i;

	rmp_watch_exit(&world.mem);
	for (i = 0; i < PAGES && world.pages[i]; i++) {
		world.pages[i]->mapping = NULL;
		__free_page(world.pages[i]);
	}
	if (world.other)
		__free_page(world.other);
}

/* Nothing has changed but what the event says: only what may not come back is lost. */
static void test_events(struct kunit *test)
{
	static const struct {
		enum mmu_notifier_event event;
		long from, to;
		u32 state;
		bool looked;
	} events[] = {
		{ MMU_NOTIFY_PROTECTION_VMA, 0, PAGES, RMPOOL_REGION_STATE_ACTIVE, false },
		{ MMU_NOTIFY_PROTECTION_PAGE, 3, 4, RMPOOL_REGION_STATE_ACTIVE, false },
		{ MMU_NOTIFY_SOFT_DIRTY, 3, 4, RMPOOL_REGION_STATE_ACTIVE, false },
		{ MMU_NOTIFY_RELEASE, -100, 1000, RMPOOL_REGION_STATE_ACTIVE, false },
		{ MMU_NOTIFY_CLEAR, 3, 5, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_CLEAR, -100, 1000, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_CLEAR, -100, 1, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_CLEAR, PAGES - 1, PAGES + 7, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_MIGRATE, 0, 1, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_EXCLUSIVE, 0, 1, RMPOOL_REGION_STATE_ACTIVE, true },
		{ MMU_NOTIFY_UNMAP, 0, 1, RMPOOL_REGION_STATE_STALE, false },
		{ MMU_NOTIFY_UNMAP, -512, PAGES + 512, RMPOOL_REGION_STATE_STALE, false },
		/* Perhaps a part of it only. */
		{ MMU_NOTIFY_UNMAP, -512, (PUD_SIZE >> PAGE_SHIFT) - 512,
		  RMPOOL_REGION_STATE_ACTIVE, true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		unsigned long from = max_t(long, events[i].from, 0);
		unsigned long to = min_t(long, events[i].to, PAGES);

		region_begin(test, true);
		KUNIT_EXPECT_EQ(test, world.start, BASE);
		KUNIT_EXPECT_EQ(test, world.length, PAGES * PAGE_SIZE);
		happen(events[i].event, events[i].from, events[i].to);
		flush_work(&world.mem.watch_work);
		KUNIT_EXPECT_EQ_MSG(test, world.region.state, events[i].state,
				    "event %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !!world.looks, events[i].looked,
				    "event %u", i);
		if (events[i].looked) {
			KUNIT_EXPECT_EQ_MSG(test, world.looked_from, from, "%u", i);
			KUNIT_EXPECT_EQ_MSG(test, world.looked_to, to, "%u", i);
		}
		KUNIT_EXPECT_EQ_MSG(test, world.settled, events[i].looked ||
				    events[i].state == RMPOOL_REGION_STATE_STALE,
				    "event %u", i);
		KUNIT_EXPECT_EQ_MSG(test, world.told, world.settled, "event %u", i);
		region_end(test);
	}
}

/* Other pages, or none, wherever they are: stale, and so it stays. */
static void test_other_pages(struct kunit *test)
{
	u32 n, i;

	for (n = 0; n < 400; n++) {
		region_begin(test, true);
		i = (u32)below(PAGES);
		switch (n % 5) {
		case 0:
			world.there[i] = world.other;
			break;
		case 1:
			world.there[i] = NULL;
			break;
		case 2:
			world.pages[i]->mapping = NULL;
			break;
		case 3:
			world.no_mm = true;
			break;
		case 4:
			/* Anonymous, and nobody has it. */
			world.pages[i]->mapping = (void *)
				((unsigned long)&world.mapping | PAGE_MAPPING_ANON);
			break;
		}
		/* What is not suspect is not looked at. */
		if (i && n % 5 != 3) {
			happen(MMU_NOTIFY_CLEAR, 0, i);
			flush_work(&world.mem.watch_work);
			KUNIT_ASSERT_EQ(test, world.region.state,
					RMPOOL_REGION_STATE_ACTIVE);
		}
		happen(MMU_NOTIFY_CLEAR, (long)i, (long)i + 1 + (long)below(9));
		KUNIT_EXPECT_NE(test, world.region.state, RMPOOL_REGION_STATE_ACTIVE);
		flush_work(&world.mem.watch_work);
		KUNIT_ASSERT_EQ(test, world.region.state, RMPOOL_REGION_STATE_STALE);

		memcpy(world.there, world.pages, sizeof(world.pages));
		world.pages[i]->mapping = &world.mapping;
		world.no_mm = false;
		world.settled = 0;
		happen(MMU_NOTIFY_CLEAR, 0, PAGES);
		happen(MMU_NOTIFY_UNMAP, 0, PAGES);
		flush_work(&world.mem.watch_work);
		KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_STALE);
		KUNIT_EXPECT_EQ(test, world.settled, 0);
		region_end(test);
	}
}

/* Before all pages are there, one waits for them. */
static void test_while_pinning(struct kunit *test)
{
	region_begin(test, false);
	happen(MMU_NOTIFY_CLEAR, 7, 8);
	happen(MMU_NOTIFY_CLEAR, 3, 4);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.looks, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&world.region.ref), 1);
	KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_SUSPECT);
	rmp_watch_pinned(&world.region);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.looked_from, 3);
	KUNIT_EXPECT_EQ(test, world.looked_to, 8);
	KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_ACTIVE);
	region_end(test);

	region_begin(test, false);
	happen(MMU_NOTIFY_UNMAP, 7, 8);
	rmp_watch_pinned(&world.region);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.settled, 1);
	KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_STALE);
	region_end(test);
}

/* Things go on while one looks. */
static void test_meanwhile(struct kunit *test)
{
	region_begin(test, true);
	world.during = 20;
	happen(MMU_NOTIFY_CLEAR, 0, 10);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.during, 0);
	KUNIT_EXPECT_GT(test, world.looks, 20);
	KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_ACTIVE);
	KUNIT_EXPECT_GE(test, world.settled, 1);
	region_end(test);
}

/* Those of a dma-buf are not watched; their exporter tells, and it is for good, also
 * while they are being unregistered.
 */
static void test_lost(struct kunit *test)
{
	struct rmp_region *region = &world.region;
	bool early;
	u32 n;

	for (n = 0; n < 3; n++) {
		early = n == 1;
		memset(region, 0, sizeof(*region));
		kref_init(&region->ref);
		region->mem = &world.mem;
		region->dmabuf = (struct rmp_dmabuf *)&world;
		world.inserted = false;
		world.settled = 0;
		world.looks = 0;
		KUNIT_ASSERT_EQ(test, rmp_watch_begin(region), 0);
		KUNIT_EXPECT_FALSE(test, world.inserted);
		if (early)
			rmp_watch_lost(region);
		flush_work(&world.mem.watch_work);
		KUNIT_EXPECT_EQ(test, world.settled, 0);
		rmp_watch_pinned(region);
		region->dead = n == 2;
		if (!early)
			rmp_watch_lost(region);
		flush_work(&world.mem.watch_work);
		KUNIT_EXPECT_EQ(test, region->state, RMPOOL_REGION_STATE_STALE);
		KUNIT_EXPECT_EQ(test, world.settled, 1);
		rmp_watch_lost(region);
		region_end(test);
		KUNIT_EXPECT_EQ(test, world.settled, 1);
		KUNIT_EXPECT_EQ(test, world.looks, 0);
	}
}

/* Regions that end are left alone, and end. */
static void test_ending(struct kunit *test)
{
	region_begin(test, true);
	world.region.dead = true;
	happen(MMU_NOTIFY_UNMAP, 0, 1);
	happen(MMU_NOTIFY_CLEAR, 0, 1);
	KUNIT_EXPECT_EQ(test, world.region.state, RMPOOL_REGION_STATE_ACTIVE);
	region_end(test);

	/* The last reference is gone, but it is still watched. */
	region_begin(test, true);
	rmp_region_put(&world.region);
	KUNIT_EXPECT_EQ(test, world.ended, 1);
	happen(MMU_NOTIFY_CLEAR, 0, 1);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.looks, 0);
	KUNIT_EXPECT_EQ(test, world.ended, 1);
	rmp_watch_end(&world.region);

	/* The last but that of the list. */
	region_begin(test, true);
	spin_lock(&world.mem.watch_lock);
	world.region.state = RMPOOL_REGION_STATE_STALE;
	watch_enqueue(&world.region);
	spin_unlock(&world.mem.watch_lock);
	rmp_region_put(&world.region);
	flush_work(&world.mem.watch_work);
	KUNIT_EXPECT_EQ(test, world.ended, 2);
	rmp_watch_end(&world.region);

	/* One that was never begun. */
	memset(&world.region, 0, sizeof(world.region));
	world.inserted = true;
	rmp_watch_end(&world.region);
	KUNIT_EXPECT_TRUE(test, world.inserted);
}

static struct kunit_case watch_cases[] = {
	KUNIT_CASE(test_events),
	KUNIT_CASE(test_other_pages),
	KUNIT_CASE(test_while_pinning),
	KUNIT_CASE(test_meanwhile),
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_ending),
	{}
};

static struct kunit_suite watch_suite = {
	.name = "rmp_watch",
	.suite_init = suite_begin,
	.init = watch_init,
	.exit = watch_exit,
	.test_cases = watch_cases,
};

kunit_test_suites(&watch_suite);

MODULE_DESCRIPTION("KUnit suite of watching registered memory");
MODULE_LICENSE("GPL");
