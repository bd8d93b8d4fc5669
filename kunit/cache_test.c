// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/cache.c: which requests find what was made for others, what goes for
 * room and in which order, what stays since it is used, whoever waits for whom. What
 * regions are made of is played by region_world.h.
 */
#include "region_world.h"

#define MIB		((u64)SZ_1M)
#define QUARTER		((u64)SZ_256K)
#define TO_WRITE	RMPOOL_ACCESS_LOCAL_WRITE

/* The world counts without locks: one region ends after the other, and nobody looks
 * meanwhile.
 */
static int cache_init(struct kunit *test)
{
	int ret = region_init(test);

	if (ret)
		return ret;
	destroy_workqueue(rmp_release_wq);
	rmp_release_wq = alloc_ordered_workqueue("rmp_cache_test", 0);
	KUNIT_ASSERT_NOT_NULL(test, rmp_release_wq);
	rmp_cache_mib = 1;
	rmp_region_device_added(device_make(test, 0, 512));
	return 0;
}

static void ended(void)
{
	flush_workqueue(rmp_release_wq);
}

static struct rmp_region *look(u64 addr, u64 length, u32 access)
{
	return rmp_cache_find(&world.mem, addr, length, access);
}

static struct rmp_region *add_within(u64 addr, u64 length, u32 access,
				     unsigned long timeout,
				     struct rmpool_error *error)
{
	struct rmp_region *region;

	ended();
	region = rmp_cache_add(&world.mem, addr, length, access, timeout, error);
	ended();
	return region;
}

static struct rmp_region *add(struct kunit *test, u64 addr, u64 length, u32 access)
{
	struct rmpool_error error;
	struct rmp_region *region;

	region = add_within(addr, length, access, PATIENCE, &error);
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	return region;
}

static void done(struct rmp_region *region)
{
	rmp_cache_unuse(region);
	rmp_region_put(region);
	ended();
}

static void add_idle(struct kunit *test, u64 addr, u64 length, u32 access)
{
	done(add(test, addr, length, access));
}

/* Whether one is there; it counts as used. */
static bool there(u64 addr, u64 length, u32 access)
{
	struct rmp_region *region = look(addr, length, access);

	if (region)
		done(region);
	return region;
}

static u64 count(enum rmp_cache_count what)
{
	struct rmp_cache_stats stats;

	rmp_cache_stats(&world.mem, &stats);
	return stats.counts[what];
}

static u64 bytes(void)
{
	struct rmp_cache_stats stats;

	rmp_cache_stats(&world.mem, &stats);
	return stats.bytes;
}

static void test_hits(struct kunit *test)
{
	struct rmp_region *region, *again;
	u32 handle;

	/* What the owner registered is found by others. */
	KUNIT_ASSERT_EQ(test, region_add(BASE, PAGE_SIZE, 0, &handle), 0);
	KUNIT_EXPECT_NULL(test, look(BASE, 1, 0));
	KUNIT_EXPECT_EQ(test, bytes(), 0);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	region = add(test, BASE + 5, PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, region->addr, BASE);
	KUNIT_EXPECT_EQ(test, region->length, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, region->access, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 2);
	KUNIT_EXPECT_EQ(test, bytes(), 2 * PAGE_SIZE);
	/* All of its pages, for what it allows, and nothing else. */
	again = look(BASE, 2 * PAGE_SIZE, 0);
	KUNIT_EXPECT_PTR_EQ(test, again, region);
	done(again);
	KUNIT_EXPECT_TRUE(test, there(BASE + 2 * PAGE_SIZE - 1, 1, 0));
	KUNIT_EXPECT_NULL(test, look(BASE, 1, TO_WRITE));
	KUNIT_EXPECT_NULL(test, look(BASE - 1, 2, 0));
	KUNIT_EXPECT_NULL(test, look(BASE + 1, 2 * PAGE_SIZE, 0));
	KUNIT_EXPECT_NULL(test, look(BASE, ~0ULL, 0));
	KUNIT_EXPECT_NULL(test, look(BASE + 5, ~0ULL, 0));
	KUNIT_EXPECT_NULL(test, look(~0ULL, 1, 0));
	KUNIT_EXPECT_NULL(test, look(~0ULL, ~0ULL, 0));
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_HITS), 2);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_MISSES), 1);
	done(region);
	/* Kept, and the owner cannot name it, by address or by handle. */
	KUNIT_EXPECT_EQ(test, world.pinned, 2);
	down_read(&world.mem.lock);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_region_find(&world.mem, BASE, 1, 0)),
			-EFAULT);
	up_read(&world.mem.lock);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, region->handle), -ENOENT);
	KUNIT_EXPECT_TRUE(test, there(BASE, 1, 0));
	/* Someone else had made it meanwhile. */
	add_idle(test, BASE + 7, 1, 0);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_MISSES), 1);
}

static void test_least_recently_used(struct kunit *test)
{
	u64 i;

	for (i = 0; i < 4; i++)
		add_idle(test, BASE + i * QUARTER, QUARTER, 0);
	KUNIT_EXPECT_EQ(test, bytes(), MIB);
	KUNIT_EXPECT_TRUE(test, there(BASE, 1, 0));
	/* One page more costs the second, which was used longest ago. */
	add_idle(test, BASE + MIB, 1, 0);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 1);
	KUNIT_EXPECT_EQ(test, bytes(), 3 * QUARTER + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, world.pinned, bytes() >> PAGE_SHIFT);
	KUNIT_EXPECT_NULL(test, look(BASE + QUARTER, 1, 0));
	KUNIT_EXPECT_TRUE(test, there(BASE, 1, 0));
	/* All at once: the last that was used is the last to go. */
	add_idle(test, BASE + 2 * MIB, 3 * QUARTER, 0);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 4);
	KUNIT_EXPECT_TRUE(test, there(BASE, 1, 0));
	KUNIT_EXPECT_EQ(test, bytes(), MIB);
	/* Less is allowed from now on. */
	rmp_cache_mib = 0;
	KUNIT_EXPECT_NULL(test, look(BASE, 1, 0));
}

static void test_limit_of_cache(struct kunit *test)
{
	struct rmpool_error error;
	struct rmp_region *region;

	region = add_within(BASE, MIB + 1, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_CACHE);
	KUNIT_EXPECT_EQ(test, error.limit, MIB);
	KUNIT_EXPECT_EQ(test, error.need, MIB + PAGE_SIZE);
	/* With what is before and behind it in its pages. */
	region = add_within(BASE + 1, MIB, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -ENOMEM);
	region = add_within(BASE, ~0ULL, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -EFAULT);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_RANGE_WRAPS);
	region = add_within(0, ~0ULL, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -EFAULT);
	region = add_within(1ULL << 63, 1, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -EFAULT);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_UNMAPPED);
	add_idle(test, BASE, MIB, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, MIB >> PAGE_SHIFT);

	/* Off: what is kept goes with the next request. */
	rmp_cache_mib = 0;
	region = add_within(BASE, 1, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_CACHE);
	KUNIT_EXPECT_EQ(test, error.limit, 0);
	KUNIT_EXPECT_EQ(test, bytes(), 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	/* No number of them makes it wrap. */
	rmp_cache_mib = ~0UL;
	add_idle(test, BASE, 4 * MIB, 0);
	KUNIT_EXPECT_EQ(test, bytes(), 4 * MIB);
}

/* What requests use stays, whatever the limit; who wants more waits for them. */
static void test_in_use(struct kunit *test)
{
	struct rmp_region *used[4], *region;
	struct rmpool_error error;
	u64 i;

	for (i = 0; i < 4; i++)
		used[i] = add(test, BASE + i * QUARTER, QUARTER, 0);
	region = add_within(BASE + MIB, 1, 0, 2, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_CACHE);
	KUNIT_EXPECT_EQ(test, error.used, MIB);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 0);
	KUNIT_EXPECT_EQ(test, world.pinned, MIB >> PAGE_SHIFT);
	/* Who only looks at a region does not keep it. */
	kref_get(&used[2]->ref);
	region = used[2];
	done(used[2]);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(add_within(BASE + MIB, 1, 0, 2,
							 &error)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 1);
	rmp_region_put(region);
	add_idle(test, BASE + MIB, 1, 0);
	for (i = 0; i < 4; i++) {
		if (i != 2) {
			KUNIT_EXPECT_FALSE(test, used[i]->dead);
			done(used[i]);
		}
	}
}

static void test_let_go_of(struct kunit *test)
{
	struct rmp_region *old, *new;
	struct rmpool_error error;

	old = add(test, BASE, PAGE_SIZE, TO_WRITE);
	/* It may be the right one, or not: neither used nor made anew. */
	old->state = RMPOOL_REGION_STATE_SUSPECT;
	KUNIT_EXPECT_NULL(test, look(BASE, 1, 0));
	new = add_within(BASE, 1, 0, 2, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(new), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
	old->state = RMPOOL_REGION_STATE_ACTIVE;
	rmp_region_settled(old);
	KUNIT_EXPECT_TRUE(test, there(BASE, 1, 0));

	/* The next one that comes does not meet it, and does not wait for word. */
	old->state = RMPOOL_REGION_STATE_STALE;
	new = add(test, BASE, 1, 0);
	KUNIT_EXPECT_PTR_NE(test, old, new);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_INVALIDATIONS), 1);
	KUNIT_EXPECT_EQ(test, world.pinned, 2);
	rmp_region_settled(old);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_INVALIDATIONS), 1);
	/* Who uses it keeps it. */
	KUNIT_EXPECT_FALSE(test, old->dead);
	done(old);
	KUNIT_EXPECT_EQ(test, world.pinned, 1);

	/* With word of it, nobody needs to come. */
	done(new);
	new->state = RMPOOL_REGION_STATE_STALE;
	kref_get(&new->ref);
	rmp_region_settled(new);
	rmp_region_put(new);
	ended();
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_INVALIDATIONS), 2);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	KUNIT_EXPECT_EQ(test, bytes(), 0);
}

/* What a later one covers, with all that it allows, is not kept twice. */
static void test_replaced(struct kunit *test)
{
	struct rmp_region *used;

	add_idle(test, BASE, PAGE_SIZE, 0);
	used = add(test, BASE + PAGE_SIZE, PAGE_SIZE, 0);
	add_idle(test, BASE + 3 * PAGE_SIZE, 2 * PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 4);
	add_idle(test, BASE, 4 * PAGE_SIZE, 0);
	/* The one in use until its request ends, and what goes beyond. */
	KUNIT_EXPECT_EQ(test, world.pinned, 1 + 2 + 4);
	KUNIT_EXPECT_EQ(test, bytes(), 7 * PAGE_SIZE);
	done(used);
	KUNIT_EXPECT_EQ(test, world.pinned, 2 + 4);
	/* One to write in place of one to read, but not the other way round. */
	add_idle(test, BASE, 4 * PAGE_SIZE, TO_WRITE);
	KUNIT_EXPECT_EQ(test, world.pinned, 2 + 4);
	add_idle(test, BASE, 5 * PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 4 + 5);
	KUNIT_EXPECT_TRUE(test, there(BASE, 4 * PAGE_SIZE, TO_WRITE));
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 0);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_INVALIDATIONS), 0);
}

/* Each call on the way fails once: that request fails, and nothing stays of it. */
static void test_failures(struct kunit *test)
{
	struct rmp_region *region = NULL;
	struct rmpool_error error;
	unsigned int n;

	for (n = 1;; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		world.calls = 0;
		world.fail_at = n;
		region = add_within(BASE + 5, PAGE_SIZE, TO_WRITE, HZ, &error);
		if (!IS_ERR(region))
			break;
		KUNIT_EXPECT_EQ(test, world.calls, n);
		/* The address that was asked for, and not that of its page. */
		if (PTR_ERR(region) == -EFAULT)
			KUNIT_EXPECT_GE(test, error.need, BASE + 5);
		KUNIT_EXPECT_EQ(test, world.pinned, 0);
		KUNIT_EXPECT_EQ(test, world.mrs, 0);
		KUNIT_EXPECT_EQ(test, bytes(), 0);
		KUNIT_EXPECT_TRUE(test, list_empty(&world.mem.cache.making));
		KUNIT_EXPECT_TRUE(test, xa_empty(&world.mem.handles));
	}
	world.fail_at = 0;
	KUNIT_EXPECT_GT(test, n, 5);
	done(region);
}

/* Limits of others do not fail what would fit without that which is only kept. */
static void test_makes_room(struct kunit *test)
{
	struct rmp_region *region, *used;
	struct rmpool_error error;

	used = add(test, BASE, PAGE_SIZE, 0);
	add_idle(test, BASE + PAGE_SIZE, PAGE_SIZE, 0);
	add_idle(test, BASE + 2 * PAGE_SIZE, PAGE_SIZE, 0);
	world.calls = 0;
	world.fail_at = 1;
	add_idle(test, 2 * BASE, PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 1);
	KUNIT_EXPECT_NULL(test, look(BASE + PAGE_SIZE, 1, 0));
	/* So does who registers; what is used stays. */
	KUNIT_EXPECT_TRUE(test, rmp_cache_reclaim(&world.mem, ~0ULL));
	ended();
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
	KUNIT_EXPECT_FALSE(test, rmp_cache_reclaim(&world.mem, ~0ULL));
	/* When nothing is left to give up, it fails. */
	world.calls = 0;
	world.fail_at = 1;
	region = add_within(2 * BASE, PAGE_SIZE, 0, HZ, &error);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(region), -ENOMEM);
	world.fail_at = 0;
	done(used);
	KUNIT_EXPECT_EQ(test, bytes(), PAGE_SIZE);
}

#define THREADS		4

struct caller {
	struct task_struct *task;
	struct rmp_region *region;
	struct completion done;
};

static int call(void *arg)
{
	struct caller *c = arg;
	struct rmpool_error error;

	c->region = rmp_cache_add(&world.mem, BASE, QUARTER, 0, PATIENCE, &error);
	kthread_complete_and_exit(&c->done, 0);
}

/* All who want the same at once get the same. */
static void test_one_is_made(struct kunit *test)
{
	struct caller callers[THREADS] = {};
	u32 i;

	for (i = 0; i < THREADS; i++) {
		init_completion(&callers[i].done);
		callers[i].task = kthread_run(call, &callers[i], "rmp_call");
		KUNIT_ASSERT_FALSE(test, IS_ERR(callers[i].task));
	}
	for (i = 0; i < THREADS; i++)
		wait_for_completion(&callers[i].done);
	for (i = 0; i < THREADS; i++) {
		KUNIT_ASSERT_FALSE(test, IS_ERR(callers[i].region));
		KUNIT_EXPECT_PTR_EQ(test, callers[i].region, callers[0].region);
	}
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_MISSES), 1);
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_HITS), THREADS - 1);
	KUNIT_EXPECT_EQ(test, world.pinned, QUARTER >> PAGE_SHIFT);
	for (i = 0; i < THREADS; i++)
		done(callers[i].region);
}

/* A request that ends lets one go on that waits for room. */
static void test_wakes(struct kunit *test)
{
	struct caller caller = {};
	struct rmp_region *used;

	used = add(test, 2 * BASE, MIB, 0);
	init_completion(&caller.done);
	caller.task = kthread_run(call, &caller, "rmp_call");
	KUNIT_ASSERT_FALSE(test, IS_ERR(caller.task));
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&caller.done, HZ / 5));
	rmp_cache_unuse(used);
	rmp_region_put(used);
	wait_for_completion(&caller.done);
	ended();
	KUNIT_ASSERT_FALSE(test, IS_ERR(caller.region));
	KUNIT_EXPECT_EQ(test, count(RMP_CACHE_EVICTIONS), 1);
	done(caller.region);
}

#define SLOTS	8

/* At random: what is found is what was asked for, and the limit holds. */
static void test_random(struct kunit *test)
{
	struct rmp_region *slots[SLOTS] = {}, **slot, *region;
	u64 addr, length, n;
	struct rmpool_error error;
	u32 access;

	for (n = 0; n < 4000; n++) {
		slot = &slots[below(SLOTS)];
		if (*slot) {
			if (!below(10))
				(*slot)->state = RMPOOL_REGION_STATE_STALE;
			done(*slot);
			*slot = NULL;
			continue;
		}
		addr = BASE + below(2 * MIB);
		length = 1 + below(below(4) ? 5 * PAGE_SIZE : MIB / 2);
		access = below(2) ? TO_WRITE : 0;
		region = look(addr, length, access);
		if (!region)
			region = add_within(addr, length, access, 2, &error);
		KUNIT_ASSERT_LE(test, bytes(), MIB);
		KUNIT_ASSERT_EQ(test, bytes() >> PAGE_SHIFT, world.pinned);
		if (region == ERR_PTR(-ETIMEDOUT)) {
			KUNIT_ASSERT_EQ(test, error.reason, RMPOOL_REASON_CACHE);
			continue;
		}
		KUNIT_ASSERT_FALSE(test, IS_ERR(region));
		KUNIT_ASSERT_LE(test, region->addr, addr);
		KUNIT_ASSERT_GE(test, region->addr + region->length, addr + length);
		KUNIT_ASSERT_EQ(test, access & ~region->access, 0);
		KUNIT_ASSERT_EQ(test, region->state, RMPOOL_REGION_STATE_ACTIVE);
		KUNIT_ASSERT_FALSE(test, region->dead);
		*slot = region;
	}
	KUNIT_EXPECT_GT(test, count(RMP_CACHE_HITS), 0);
	KUNIT_EXPECT_GT(test, count(RMP_CACHE_EVICTIONS), 0);
	KUNIT_EXPECT_GT(test, count(RMP_CACHE_INVALIDATIONS), 0);
	for (n = 0; n < SLOTS; n++) {
		if (slots[n])
			done(slots[n]);
	}
}

static struct kunit_case cache_cases[] = {
	KUNIT_CASE(test_hits),
	KUNIT_CASE(test_least_recently_used),
	KUNIT_CASE(test_limit_of_cache),
	KUNIT_CASE(test_in_use),
	KUNIT_CASE(test_let_go_of),
	KUNIT_CASE(test_replaced),
	KUNIT_CASE(test_failures),
	KUNIT_CASE(test_makes_room),
	KUNIT_CASE(test_one_is_made),
	KUNIT_CASE(test_wakes),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite cache_suite = {
	.name = "rmp_cache",
	.suite_init = suite_begin,
	.init = cache_init,
	.exit = region_exit,
	.test_cases = cache_cases,
};

kunit_test_suite(cache_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's registrations for requests");
MODULE_LICENSE("GPL");
