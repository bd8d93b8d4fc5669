// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/mapping.c, capacity.c, cut.c and deal.c, with attach.c: page sizes and
 * chunks for each layout of memory, and what happens when devices have no room. Each page
 * list is compared with the memory, page by page.
 */
#include "region_world.h"

#define MIB		(1024UL * 1024)
#define HUGE		(2 * MIB)
#define ALL_SIZES	(~0xfffULL)
/* Where a huge page begins. */
#define HUGE_BASE	(1024 * MIB)

/* Huge pages: what is in each is in a row, and they are not. */
static u64 huge(u64 addr, unsigned long i)
{
	return ((addr >> PAGE_SHIFT) + i) % (HUGE / PAGE_SIZE);
}

/* Runs of 16 pages at most, each at some place. */
static u64 runs(u64 addr, unsigned long i)
{
	u64 page = (addr >> PAGE_SHIFT) + i;

	return (page / 16 * 7 * 16 + page % 16) % WORLD_PAGES;
}

/* Huge pages with a page in between that is not from there. */
static u64 broken(u64 addr, unsigned long i)
{
	return i % 1000 == 999 ? 0 : huge(addr, i);
}

static u64 (*const layouts[])(u64 addr, unsigned long i) = {
	scattered, huge, runs, broken,
};

static struct rmp_device *device_with(struct kunit *test, u32 index, u32 pages,
				      u64 sizes)
{
	struct rmp_device *dev;

	world.ibdev[index]->attrs.page_size_cap = sizes;
	dev = device_make(test, index, pages);
	rmp_region_device_added(dev);
	return dev;
}

static struct rmp_region *region_of(u32 handle)
{
	return xa_load(&world.mem.handles, handle);
}

/* All memory regions of one device: they say where the bytes are, and have no
 * more of them than the region has.
 */
static void check_mapping(struct kunit *test, const struct rmp_region *region,
			  u32 index, u32 *found)
{
	const struct rmp_mapping *map = region->maps[index];
	u64 pages = 0, mrs = 0, i, iova, at;
	const struct rmp_piece *p;
	struct rmp_piece piece;
	u32 chunk;

	for (chunk = 0; chunk < map->nr_chunks; chunk++) {
		const struct rmp_chunk *c = &map->chunks[chunk];
		const struct played_mr *mr;

		KUNIT_ASSERT_EQ(test, c->ready, !!c->mr);
		KUNIT_ASSERT_EQ(test, c->ready, !!c->pages);
		if (!c->mr)
			continue;
		found[chunk]++;
		mr = container_of(c->mr, struct played_mr, mr);
		mrs++;
		pages += mr->nr;
		KUNIT_ASSERT_TRUE(test, mr->valid);
		KUNIT_ASSERT_EQ(test, mr->nr, mr->max);
		KUNIT_ASSERT_EQ(test, mr->nr, c->pages);
		KUNIT_ASSERT_LE(test, mr->nr, map->dev->chunk_pages);
		KUNIT_ASSERT_NE(test, mr->mr.page_size & map->dev->page_sizes, 0);
		p = &piece;
		rmp_chunk_piece(region, chunk, &piece);
		KUNIT_ASSERT_EQ(test, mr->mr.iova, p->start);
		KUNIT_ASSERT_EQ(test, mr->mr.length, p->length);
		if (world.iommu)
			continue;
		for (i = 0; i < p->nr; i++) {
			iova = (p->start & PAGE_MASK) + i * PAGE_SIZE;
			at = mr->page[iova / mr->mr.page_size -
				      mr->mr.iova / mr->mr.page_size] +
			     iova % mr->mr.page_size;
			KUNIT_ASSERT_EQ(test, at,
					page_to_phys(region->pages[p->first + i]));
		}
	}
	KUNIT_ASSERT_EQ(test, map->mrs, mrs);
	KUNIT_ASSERT_EQ(test, map->pages, pages);
}

/* The same for all devices; each chunk is on @least of them or more. */
static void check_region(struct kunit *test, const struct rmp_region *region,
			 u32 least)
{
	u64 length = 0;
	struct rmp_piece piece;
	u32 *found, i;

	found = kcalloc(region->nr_chunks, sizeof(*found), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, found);
	for (i = 0; i < DEVICES; i++) {
		if (region->maps[i])
			check_mapping(test, region, i, found);
	}
	for (i = 0; i < region->nr_chunks; i++) {
		KUNIT_EXPECT_GE(test, found[i], least);
		rmp_chunk_piece(region, i, &piece);
		length += piece.length;
	}
	/* Exactly the bytes asked for. */
	KUNIT_EXPECT_EQ(test, length, region->length);
	rmp_chunk_piece(region, 0, &piece);
	KUNIT_EXPECT_EQ(test, piece.start, region->iova);
	KUNIT_EXPECT_EQ(test, piece.first, 0);
	kfree(found);
}

static void set_limits(unsigned long pages, unsigned long mrs)
{
	max_device_pages = pages;
	max_device_mrs = mrs;
}

static int pages_init(struct kunit *test)
{
	set_limits(0, 0);
	max_chunk_mib = 64;
	relaxed_ordering = true;
	return region_init(test);
}

static void test_huge_pages_take_few(struct kunit *test)
{
	struct rmp_region_usage small, few;
	u32 handle;

	device_with(test, 0, 512, ALL_SIZES);
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 64 * MIB, 0, &handle), 0);
	check_region(test, region_of(handle), 1);
	rmp_region_usage(region_of(handle), &small);
	KUNIT_EXPECT_EQ(test, small.mrs, 32);
	KUNIT_EXPECT_EQ(test, small.pages, 16384);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 16384);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);

	world.layout = huge;
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 64 * MIB, 0, &handle), 0);
	check_region(test, region_of(handle), 1);
	rmp_region_usage(region_of(handle), &few);
	KUNIT_EXPECT_EQ(test, few.mrs, 1);
	KUNIT_EXPECT_EQ(test, few.pages, 32);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 32);
	/* What the administrator says about chunks holds. */
	max_chunk_mib = 4;
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 64 * MIB, 0, &handle), 0);
	rmp_region_usage(region_of(handle), &few);
	KUNIT_EXPECT_EQ(test, few.mrs, 16);
	KUNIT_EXPECT_EQ(test, few.pages, 32);
}

static void test_layouts(struct kunit *test)
{
	static const u64 sizes[] = {
		0, ALL_SIZES, SZ_4K | SZ_2M | SZ_1G, 0xfffff000, SZ_4K | SZ_64K,
	};
	u32 n, i, nr, handle;
	u64 addr, length;

	for (n = 0; n < 300; n++) {
		world.layout = layouts[below(ARRAY_SIZE(layouts))];
		max_chunk_mib = 1U << below(5);
		nr = 1 + (u32)below(3);
		for (i = 0; i < nr; i++)
			device_with(test, i, 1U << below(10),
				    sizes[below(ARRAY_SIZE(sizes))]);
		addr = HUGE_BASE + below(3 * HUGE);
		if (below(2))
			addr &= PAGE_MASK;
		length = 1 + below(below(4) ? 100 * PAGE_SIZE : 5 * HUGE);
		KUNIT_ASSERT_EQ(test, region_add(addr, length, 0, &handle), 0);
		check_region(test, region_of(handle), nr);
		KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
		for (i = 0; i < nr; i++)
			device_go(i);
	}
}

/* What a device sees through an IOMMU is not what memory promised. */
static void test_iommu(struct kunit *test)
{
	u32 handle;

	world.layout = huge;
	world.iommu = true;
	device_with(test, 0, 512, ALL_SIZES);
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE + 5, 16 * MIB, 0, &handle), 0);
	KUNIT_EXPECT_EQ(test, region_of(handle)->chunk_shift, 21);
	check_region(test, region_of(handle), 1);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 4097);
}

static struct {
	struct rmp_device *first;
	struct completion second;
	bool met;
} both;

/* Whose turn is first waits for another: were one done after the other, in vain. */
static void meets(struct rmp_device *dev)
{
	struct rmp_device *first = cmpxchg(&both.first, NULL, dev);

	if (!first)
		both.met = wait_for_completion_timeout(&both.second, PATIENCE);
	else if (first != dev)
		complete_all(&both.second);
}

static void test_beside(struct kunit *test)
{
	u32 handle;

	device_with(test, 0, 512, ALL_SIZES);
	device_with(test, 1, 512, ALL_SIZES);
	both.first = NULL;
	both.met = false;
	init_completion(&both.second);
	world.meanwhile = meets;
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 8 * MIB, 0, &handle), 0);
	world.meanwhile = NULL;
	KUNIT_EXPECT_TRUE(test, both.met);
	check_region(test, region_of(handle), 2);
}

/* One call fails, then the next, and so on: nothing stays, or it worked another
 * way, with chunks for small pages.
 */
static void test_unwinding(struct kunit *test)
{
	static const int errors[] = { 0, -ENOMEM, -EINTR };
	u32 handle, n, e, spread, again = 0;
	int ret;

	world.layout = huge;
	device_with(test, 0, 4, ALL_SIZES);
	device_with(test, 1, 4, ALL_SIZES);
	device_with(test, 3, 8, ALL_SIZES);
	for (spread = 0; spread < 2; spread++) {
		for (e = 0; e < ARRAY_SIZE(errors); e++) {
			for (n = 1;; n++) {
				KUNIT_ASSERT_LT(test, n, 1000);
				set_limits(spread ? 4 : 0, 0);
				world.calls = 0;
				world.fail_at = n;
				world.fail_with = errors[e];
				ret = region_add(HUGE_BASE, 16 * MIB, 0, &handle);
				if (!ret)
					break;
				KUNIT_ASSERT_EQ(test, world.charged, 0);
				KUNIT_ASSERT_EQ(test, world.pinned, 0);
				KUNIT_ASSERT_EQ(test, world.mrs, 0);
				KUNIT_ASSERT_EQ(test, world.dma, 0);
				KUNIT_ASSERT_TRUE(test,
						  xa_empty(&world.mem.handles));
			}
			again += world.calls >= n;
			check_region(test, region_of(handle), spread ? 1 : 3);
			KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle),
					0);
			world.fail_at = 0;
		}
	}
	/* Those that failed for want of memory had another way. */
	KUNIT_EXPECT_GT(test, again, 0);
}

static int add_limited(u64 length, struct rmpool_error *error, u32 *handle)
{
	struct rmpool_region_add arg = { .addr = HUGE_BASE, .length = length };
	int ret = rmp_region_add(&world.mem, &arg, NULL);

	*error = arg.error;
	*handle = arg.handle;
	return ret;
}

/* How many chunks a device has of a region. */
static u64 share(u32 handle, u32 index)
{
	const struct rmp_mapping *map = region_of(handle)->maps[index];

	return map ? map->mrs : 0;
}

static void test_dealt(struct kunit *test)
{
	struct rmpool_error error;
	u32 a, b, c;
	u64 iova;
	u32 key;

	device_with(test, 0, 16, ALL_SIZES);
	device_with(test, 2, 16, ALL_SIZES);
	/* All of it on both, as long as there is room. */
	set_limits(256, 0);
	KUNIT_ASSERT_EQ(test, add_limited(128 * PAGE_SIZE, &error, &a), 0);
	check_region(test, region_of(a), 2);
	/* No room for all of it, so each chunk is on one device, in turn. */
	KUNIT_ASSERT_EQ(test, add_limited(192 * PAGE_SIZE, &error, &b), 0);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
	check_region(test, region_of(b), 1);
	KUNIT_EXPECT_EQ(test, share(b, 0), 6);
	KUNIT_EXPECT_EQ(test, share(b, 2), 6);
	KUNIT_EXPECT_NE(test, rmp_region_local(region_of(b), 0, 0, 0, &iova, &key), 0);
	KUNIT_EXPECT_EQ(test, rmp_region_local(region_of(b), 0, 2, 0, &iova, &key), 0);
	KUNIT_EXPECT_NE(test, rmp_region_local(region_of(b), 0, 2, 16 * PAGE_SIZE,
					       &iova, &key), 0);
	/* Neither can have the rest. */
	KUNIT_ASSERT_EQ(test, add_limited(65 * PAGE_SIZE, &error, &c), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DEVICE_PAGES);
	KUNIT_EXPECT_EQ(test, error.limit, 256);
	KUNIT_EXPECT_EQ(test, error.used, 128 + 96);
	KUNIT_EXPECT_EQ(test, error.need, 65);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 128 + 96);
	/* Two chunks still fit, one on each. */
	KUNIT_ASSERT_EQ(test, add_limited(64 * PAGE_SIZE, &error, &c), 0);
	check_region(test, region_of(c), 1);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 256);
	KUNIT_EXPECT_EQ(test, world.dev[2]->pages, 256);
	KUNIT_ASSERT_EQ(test, add_limited(1, &error, &c), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.need, 1);
}

/* The same when memory regions are what is short, and on one device only. */
static void test_mrs(struct kunit *test)
{
	struct rmpool_error error;
	u32 a, b;

	device_with(test, 1, 16, ALL_SIZES);
	set_limits(0, 5);
	KUNIT_ASSERT_EQ(test, add_limited(80 * PAGE_SIZE, &error, &a), 0);
	KUNIT_ASSERT_EQ(test, add_limited(16 * PAGE_SIZE, &error, &b), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DEVICE_MRS);
	KUNIT_EXPECT_EQ(test, error.limit, 5);
	KUNIT_EXPECT_EQ(test, error.used, 5);
	KUNIT_EXPECT_EQ(test, error.need, 1);
	/* What the device says it can is a limit as well. */
	set_limits(0, 0);
	world.ibdev[1]->attrs.max_mr = 6;
	KUNIT_ASSERT_EQ(test, add_limited(16 * PAGE_SIZE, &error, &b), 0);
	KUNIT_ASSERT_EQ(test, add_limited(16 * PAGE_SIZE, &error, &b), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.limit, 6);
	device_with(test, 2, 16, ALL_SIZES);
	KUNIT_ASSERT_EQ(test, add_limited(16 * PAGE_SIZE, &error, &b), 0);
	KUNIT_EXPECT_EQ(test, share(b, 1), 0);
	KUNIT_EXPECT_EQ(test, share(b, 2), 1);
}

/* Dealt chunks go to others when their device goes, if these have room; those that
 * find none are taken up by the next device that comes.
 */
static void test_dealt_and_devices(struct kunit *test)
{
	struct rmpool_error error;
	u32 a;

	device_with(test, 0, 16, ALL_SIZES);
	device_with(test, 1, 16, ALL_SIZES);
	device_with(test, 2, 16, ALL_SIZES);
	set_limits(64, 0);
	KUNIT_ASSERT_EQ(test, add_limited(96 * PAGE_SIZE, &error, &a), 0);
	check_region(test, region_of(a), 1);
	device_go(1);
	check_region(test, region_of(a), 1);
	KUNIT_EXPECT_EQ(test, share(a, 0) + share(a, 2), 6);
	/* The last one cannot have all. */
	device_go(0);
	KUNIT_EXPECT_EQ(test, share(a, 2), 4);
	check_region(test, region_of(a), 0);
	device_with(test, 1, 16, ALL_SIZES);
	check_region(test, region_of(a), 1);
	KUNIT_EXPECT_EQ(test, share(a, 1), 2);
	/* One that has room for all gets all. */
	set_limits(0, 0);
	device_with(test, 0, 16, ALL_SIZES);
	KUNIT_EXPECT_EQ(test, share(a, 0), 6);
	device_go(1);
	device_go(2);
	check_region(test, region_of(a), 1);
}

/* The first device is taken out when its chunks are done and others are not. */
static void first_goes(struct rmp_device *dev)
{
	if (dev != world.dev[2])
		return;
	world.meanwhile = NULL;
	device_go(0);
}

/* And another one comes. */
static void first_goes_last_comes(struct rmp_device *dev)
{
	if (dev != world.dev[2])
		return;
	world.meanwhile = NULL;
	device_go(0);
	rmp_region_device_added(world.dev[3]);
}

/* A device is to go, and nobody was told yet. */
static void second_will_go(struct rmp_device *dev)
{
	world.meanwhile = NULL;
	WRITE_ONCE(world.dev[1]->going, true);
}

/* The same while a region is made: it is nobody's yet, and has all chunks when it
 * is somebody's.
 */
static void test_dealt_meanwhile(struct kunit *test)
{
	static void (*const events[])(struct rmp_device *dev) = {
		first_goes, first_goes_last_comes, second_will_go,
	};
	struct rmpool_error error;
	u32 a, i, n;

	set_limits(64, 0);
	for (n = 0; n < ARRAY_SIZE(events); n++) {
		for (i = 0; i < 3; i++)
			device_with(test, i, 16, ALL_SIZES);
		world.ibdev[3]->attrs.page_size_cap = ALL_SIZES;
		if (events[n] == first_goes_last_comes)
			device_make(test, 3, 16);
		world.meanwhile = events[n];
		KUNIT_ASSERT_EQ(test, add_limited(96 * PAGE_SIZE, &error, &a), 0);
		KUNIT_ASSERT_NULL(test, world.meanwhile);
		check_region(test, region_of(a), 1);
		KUNIT_EXPECT_NULL(test, region_of(a)->maps[events[n] ==
							   second_will_go]);
		KUNIT_EXPECT_EQ(test, share(a, 3),
				events[n] == first_goes_last_comes ? 2 : 0);
		KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, a), 0);
		for (i = 0; i < DEVICES; i++) {
			if (!world.dev[i])
				continue;
			KUNIT_EXPECT_EQ(test, world.dev[i]->pages, 0);
			device_go(i);
		}
	}
}

/* A stale region keeps the room that it has, and takes no more. */
static void test_stale(struct kunit *test)
{
	struct rmpool_error error;
	u32 a;

	device_with(test, 0, 16, ALL_SIZES);
	device_with(test, 1, 16, ALL_SIZES);
	device_with(test, 2, 16, ALL_SIZES);
	set_limits(64, 0);
	KUNIT_ASSERT_EQ(test, add_limited(96 * PAGE_SIZE, &error, &a), 0);
	region_of(a)->state = RMPOOL_REGION_STATE_STALE;
	device_go(1);
	device_with(test, 3, 16, ALL_SIZES);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 32);
	KUNIT_EXPECT_EQ(test, world.dev[2]->pages, 32);
	KUNIT_EXPECT_NULL(test, region_of(a)->maps[3]);
	check_region(test, region_of(a), 0);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, a), 0);
	KUNIT_EXPECT_EQ(test, world.dev[0]->pages, 0);
	KUNIT_EXPECT_EQ(test, world.dev[2]->pages, 0);
}

static const struct played_mr *first_mr(u32 handle, u32 index)
{
	return container_of(region_of(handle)->maps[index]->chunks[0].mr,
			    struct played_mr, mr);
}

static int add_strict(u32 *handle, struct rmpool_error *error)
{
	struct rmpool_region_add arg = {
		.addr = HUGE_BASE, .length = 1,
		.flags = RMPOOL_REGION_STRICT_ORDER,
	};
	int ret = rmp_region_add(&world.mem, &arg, NULL);

	*handle = arg.handle;
	*error = arg.error;
	return ret;
}

static void test_ordering(struct kunit *test)
{
	struct rmpool_error error;
	u32 a;

	world.ibdev[0]->ops.driver_id = RDMA_DRIVER_MLX5;
	world.ibdev[1]->ops.driver_id = RDMA_DRIVER_UNKNOWN;
	world.ibdev[2]->ops.driver_id = RDMA_DRIVER_RXE;
	device_with(test, 0, 16, ALL_SIZES);
	KUNIT_EXPECT_EQ(test, add_strict(&a, &error), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_ORDERING);
	device_with(test, 1, 16, ALL_SIZES);
	device_with(test, 2, 16, ALL_SIZES);
	KUNIT_EXPECT_EQ(test, rmp_capacity_ordering(world.dev[0]),
			RMPOOL_ORDERING_FORCED);
	KUNIT_EXPECT_EQ(test, rmp_capacity_ordering(world.dev[1]),
			RMPOOL_ORDERING_ON);
	KUNIT_EXPECT_EQ(test, rmp_capacity_ordering(world.dev[2]),
			RMPOOL_ORDERING_UNSUPPORTED);

	/* Asked for where it may be. */
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 1, 0, &a), 0);
	KUNIT_EXPECT_EQ(test, first_mr(a, 0)->access, 0);
	KUNIT_EXPECT_EQ(test, first_mr(a, 1)->access, IB_ACCESS_RELAXED_ORDERING);
	KUNIT_EXPECT_EQ(test, first_mr(a, 2)->access, 0);
	/* Not for one region, nor on devices that do it all the same. */
	KUNIT_ASSERT_EQ(test, add_strict(&a, &error), 0);
	KUNIT_EXPECT_NULL(test, region_of(a)->maps[0]);
	KUNIT_EXPECT_EQ(test, first_mr(a, 1)->access, 0);
	KUNIT_EXPECT_EQ(test, first_mr(a, 2)->access, 0);
	/* Not at all. */
	relaxed_ordering = false;
	KUNIT_EXPECT_EQ(test, rmp_capacity_ordering(world.dev[0]),
			RMPOOL_ORDERING_FORCED);
	KUNIT_EXPECT_EQ(test, rmp_capacity_ordering(world.dev[1]),
			RMPOOL_ORDERING_OFF);
	KUNIT_ASSERT_EQ(test, region_add(HUGE_BASE, 1, 0, &a), 0);
	KUNIT_EXPECT_EQ(test, first_mr(a, 1)->access, 0);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(test_huge_pages_take_few),
	KUNIT_CASE(test_layouts),
	KUNIT_CASE(test_iommu),
	KUNIT_CASE(test_beside),
	KUNIT_CASE(test_unwinding),
	KUNIT_CASE(test_dealt),
	KUNIT_CASE(test_mrs),
	KUNIT_CASE(test_dealt_and_devices),
	KUNIT_CASE(test_dealt_meanwhile),
	KUNIT_CASE(test_stale),
	KUNIT_CASE(test_ordering),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "rmp_pages",
	.suite_init = suite_begin,
	.init = pages_init,
	.exit = region_exit,
	.test_cases = pages_cases,
};

kunit_test_suites(&pages_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's page sizes and limits of devices");
MODULE_LICENSE("GPL");
