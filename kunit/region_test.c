// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/region.c, memory.c and attach.c: look-up against a model, what fails on
 * the way gives everything back, unregistering waits for requests, which
 * regions are mapped on which devices, whoever comes first, and other keys for what
 * peers were told of (rekey.c). What they call is played by region_world.h; page sizes
 * and limits of devices: pages_test.c.
 */
#include <linux/sched/task.h>
#include "region_world.h"

static void device_come(struct kunit *test, u32 index, u32 chunk_pages)
{
	rmp_region_device_added(device_make(test, index, chunk_pages));
}

static struct rmp_region *find(u64 addr, u64 length, u32 access)
{
	struct rmp_region *region;

	down_read(&world.mem.lock);
	region = rmp_region_find(&world.mem, addr, length, access);
	up_read(&world.mem.lock);
	return region;
}

static void test_refused(struct kunit *test)
{
	static const struct {
		u64 addr, length;
		u32 access;
		int error;
		u32 reason;
	} bad[] = {
		{ BASE, 0, 0, -EINVAL, RMPOOL_REASON_LENGTH_ZERO },
		{ BASE, 1, 1U << 3, -EINVAL, 0 },
		{ BASE, 1, ~0U, -EINVAL, 0 },
		{ BASE, ~0ULL, 0, -EINVAL, RMPOOL_REASON_RANGE_WRAPS },
		{ ~0ULL, 1, 0, -EINVAL, RMPOOL_REASON_RANGE_WRAPS },
		{ ~0ULL, ~0ULL, 0, -EINVAL, RMPOOL_REASON_RANGE_WRAPS },
		{ 1ULL << 63, 1, 0, -EFAULT, RMPOOL_REASON_UNMAPPED },
		{ BASE, 1ULL << 62, 0, -EFAULT, RMPOOL_REASON_UNMAPPED },
	};
	struct rmpool_region_add arg;
	u32 handle, i;

	device_come(test, 0, 16);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg = (struct rmpool_region_add){
			.addr = bad[i].addr, .length = bad[i].length,
			.access = bad[i].access,
		};
		KUNIT_EXPECT_EQ(test, rmp_region_add(&world.mem, &arg, NULL),
				bad[i].error);
		KUNIT_EXPECT_EQ(test, arg.error.reason, bad[i].reason);
	}
	KUNIT_EXPECT_EQ(test, world.calls, 0);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, ~0U), -ENOENT);
	/* No device, no region. */
	device_go(0);
	KUNIT_EXPECT_EQ(test, region_add(BASE, 1, 0, &handle), -ENODEV);
}

/* Each call on the way fails once. Nothing stays of it, and then it works. */
static void test_unwinding(struct kunit *test)
{
	struct rmpool_region_add arg;
	unsigned int n;
	int ret = -1;

	device_come(test, 0, 2);
	device_come(test, 3, 4);
	for (n = 1; ret; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		arg = (struct rmpool_region_add){
			.addr = BASE + 5, .length = 10 * PAGE_SIZE,
			.access = RMPOOL_ACCESS_ALL,
			.offset = RMPOOL_OFFSET_NEXT,
		};
		world.calls = 0;
		world.fail_at = n;
		ret = rmp_region_add(&world.mem, &arg, &world.segment);
		if (!ret)
			break;
		KUNIT_EXPECT_EQ(test, world.calls, n);
		KUNIT_EXPECT_EQ(test, world.charged, 0);
		KUNIT_EXPECT_EQ(test, world.pinned, 0);
		KUNIT_EXPECT_EQ(test, world.watched, 0);
		KUNIT_EXPECT_EQ(test, world.mrs, 0);
		KUNIT_EXPECT_EQ(test, kref_read(&world.segment.ref), 1);
		KUNIT_EXPECT_TRUE(test, xa_empty(&world.mem.handles));
		KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE + 5, 1, 0)), -EFAULT);
	}
	/* Charge, watch, kind, pin, three for each of 6 chunks and one for all of them on two
	 * devices, segment.
	 */
	KUNIT_EXPECT_EQ(test, n, 4 + 2 * (3 * 6 + 1) + 1 + 1);
	KUNIT_EXPECT_EQ(test, world.charged, 11);
	KUNIT_EXPECT_EQ(test, world.pinned, 11);
	KUNIT_EXPECT_EQ(test, world.mrs, 12);
	KUNIT_EXPECT_EQ(test, kref_read(&world.segment.ref), 2);
	KUNIT_EXPECT_EQ(test, arg.offset, world.last_offset);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, arg.handle), 0);
	KUNIT_EXPECT_EQ(test, world.revoked, 1);
}

/* The model: a list of regions, looked through from end to end. */

#define SPACE		3000
#define REGIONS		60

struct known {
	u64 addr, length;	/* length 0: there is none */
	u32 access;
	u32 handle;
};

static int model_find(const struct known *known, u64 addr, u64 length, u32 access)
{
	bool begins = false, covered = false;
	u32 i;

	for (i = 0; i < REGIONS; i++) {
		const struct known *k = &known[i];

		if (!k->length || addr < k->addr || addr >= k->addr + k->length)
			continue;
		begins = true;
		if (addr + length > k->addr + k->length)
			continue;
		covered = true;
		if (!(access & ~k->access))
			return 0;
	}
	return covered ? -EACCES : begins ? -ERANGE : -EFAULT;
}

static void test_random(struct kunit *test)
{
	struct rmp_region *region;
	struct known *known, *k;
	u64 addr, length;
	u32 access, n;
	int want;

	known = kunit_kcalloc(test, REGIONS, sizeof(*known), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, known);
	device_come(test, 1, 1);
	for (n = 0; n < 20000; n++) {
		k = &known[below(REGIONS)];
		switch (below(8)) {
		case 0:		/* regions of a file may overlap, or be the same */
			if (k->length)
				break;
			k->addr = BASE + below(SPACE);
			k->length = 1 + below(below(10) ? 200 : SPACE);
			k->access = (u32)below(RMPOOL_ACCESS_ALL + 1);
			KUNIT_ASSERT_EQ(test, region_add(k->addr, k->length,
							 k->access, &k->handle),
					0);
			/* Who lets peers write may write. */
			if (k->access & RMPOOL_ACCESS_REMOTE_WRITE)
				k->access |= RMPOOL_ACCESS_LOCAL_WRITE;
			break;
		case 1:
			if (!k->length || !below(3))
				break;
			KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem,
							     k->handle), 0);
			k->length = 0;
			break;
		default:
			addr = BASE + below(SPACE + 200);
			length = below(below(4) ? 40 : SPACE);
			access = below(2) ? RMPOOL_ACCESS_LOCAL_WRITE : 0;
			want = model_find(known, addr, length, access);
			region = find(addr, length, access);
			if (want) {
				KUNIT_ASSERT_TRUE(test, IS_ERR(region));
				KUNIT_ASSERT_EQ(test, PTR_ERR(region), want);
				break;
			}
			KUNIT_ASSERT_FALSE(test, IS_ERR(region));
			KUNIT_ASSERT_GE(test, addr, region->addr);
			KUNIT_ASSERT_LE(test, addr + length,
					region->addr + region->length);
			KUNIT_ASSERT_EQ(test, access & ~region->access, 0);
			KUNIT_ASSERT_FALSE(test, region->dead);
			rmp_region_put(region);
		}
	}
}

static void test_ends_of_space(struct kunit *test)
{
	u64 end = TASK_SIZE;
	u32 handle;

	device_come(test, 0, 1);
	KUNIT_ASSERT_EQ(test, region_add(0, 1, 0, &handle), 0);
	KUNIT_ASSERT_EQ(test, region_add(end - 1, 1, 0, &handle), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(0, 2, 0)), -ERANGE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(1, 0, 0)), -EFAULT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(end - 1, 2, 0)), -ERANGE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(end - 1, ~0ULL, 0)), -ERANGE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(~0ULL, 1, 0)), -EFAULT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(~0ULL, ~0ULL, 0)), -EFAULT);
	rmp_region_put(find(end - 1, 1, 0));
	rmp_region_put(find(0, 0, 0));
}

/* Where a byte is for a device: chunk by chunk, from any first byte. */
static void test_chunks(struct kunit *test)
{
	static const u32 firsts[] = { 0, 1, 4095, 4096, 8191 };
	struct rmp_region *region;
	u64 iova, left, pos;
	u32 lkey, handle, i;

	device_come(test, 2, 2);
	for (i = 0; i < ARRAY_SIZE(firsts); i++) {
		u64 length = 5 * PAGE_SIZE, in_page = firsts[i] % PAGE_SIZE;

		KUNIT_ASSERT_EQ(test, region_add(BASE + firsts[i], length, 0,
						 &handle), 0);
		region = find(BASE + firsts[i], length, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(region));
		KUNIT_EXPECT_EQ(test, region->chunk_shift, PAGE_SHIFT + 1);
		for (pos = 0; pos < length; pos += 1 + below(300)) {
			u64 chunk = (in_page + pos) / (2 * PAGE_SIZE);
			u64 end = (chunk + 1) * 2 * PAGE_SIZE - in_page;

			left = rmp_region_local(region, 0, 2, pos, &iova, &lkey);
			KUNIT_ASSERT_EQ(test, left, min(end, length) - pos);
			KUNIT_ASSERT_EQ(test, lkey,
					region->maps[2]->chunks[chunk].mr->lkey);
			KUNIT_ASSERT_EQ(test, iova, region->iova + pos);
			/* Not published: nobody is told. */
			KUNIT_ASSERT_EQ(test, rmp_region_rkey(region, 0, 2, chunk),
					0);
		}
		KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 2, length, &iova,
						       &lkey), 0);
		KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 1, 0, &iova,
						       &lkey), 0);
		KUNIT_EXPECT_EQ(test, rmp_region_rkey(region, 0, 2,
						      region->nr_chunks), 0);
		rmp_region_put(region);
		KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	}
}

/* Regions before devices, devices before regions, and both gone again. */
static void test_devices(struct kunit *test)
{
	struct rmp_region *a, *b;
	u64 iova;
	u32 key, handle;

	device_come(test, 0, 4);
	KUNIT_ASSERT_EQ(test, region_add(BASE, 100, 0, &handle), 0);
	a = find(BASE, 100, 0);
	device_come(test, 1, 4);
	KUNIT_EXPECT_NE(test, rmp_region_local(a, 0, 1, 0, &iova, &key), 0);
	KUNIT_ASSERT_EQ(test, region_add(2 * BASE, 100, 0, &handle), 0);
	b = find(2 * BASE, 100, 0);
	KUNIT_EXPECT_NE(test, rmp_region_local(b, 0, 0, 0, &iova, &key), 0);
	KUNIT_EXPECT_NE(test, rmp_region_local(b, 0, 1, 0, &iova, &key), 0);
	KUNIT_EXPECT_EQ(test, world.mrs, 4);

	device_go(0);
	KUNIT_EXPECT_EQ(test, rmp_region_local(a, 0, 0, 0, &iova, &key), 0);
	KUNIT_EXPECT_NE(test, rmp_region_local(a, 0, 1, 0, &iova, &key), 0);
	KUNIT_EXPECT_EQ(test, world.mrs, 2);
	/* Another one in its place, on which nothing can be mapped. */
	world.calls = 0;
	world.fail_at = 1;
	device_come(test, 0, 4);
	KUNIT_EXPECT_EQ(test, rmp_region_local(a, 0, 0, 0, &iova, &key), 0);
	KUNIT_EXPECT_NE(test, rmp_region_local(b, 0, 0, 0, &iova, &key), 0);
	device_go(0);
	device_go(1);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
	/* Regions stay, and are mapped when there is a device again. */
	device_come(test, 3, 4);
	KUNIT_EXPECT_NE(test, rmp_region_local(a, 0, 3, 0, &iova, &key), 0);
	rmp_region_put(a);
	rmp_region_put(b);
}

/* Pages that a device may still reach are not given back to anyone. */
static void test_stuck(struct kunit *test)
{
	u32 handle;

	device_come(test, 0, 1);
	KUNIT_ASSERT_EQ(test, region_add(BASE, PAGE_SIZE, 0, &handle), 0);
	world.keep_memory = true;
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	world.keep_memory = false;
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
	KUNIT_EXPECT_EQ(test, world.charged, 0);
	KUNIT_EXPECT_EQ(test, world.dma, 1);
	KUNIT_EXPECT_EQ(test, world.domain[0][0].users, 1);
	world.pinned = 0;
	world.dma = 0;
	world.domain[0][0].users = 0;
}

/* What a driver that is full says is not taken for a device that goes. */
static void test_full_driver(struct kunit *test)
{
	u32 handle, n, full = 0;
	int ret = -1;

	device_come(test, 0, 1);
	world.fail_with = -EAGAIN;
	for (n = 1; ret; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		world.calls = 0;
		world.fail_at = n;
		ret = region_add(BASE, 3 * PAGE_SIZE, 0, &handle);
		KUNIT_EXPECT_NE(test, ret, -ENODEV);
		full += ret == -ENOMEM;
	}
	/* Three for each of three chunks, and one for all of them. */
	KUNIT_EXPECT_EQ(test, full, 10);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, handle), 0);
}

struct deletion {
	u32 handle;
	int result;
	struct completion done;
};

static int delete(void *arg)
{
	struct deletion *d = arg;

	allow_signal(SIGKILL);
	d->result = rmp_region_del(&world.mem, d->handle);
	kthread_complete_and_exit(&d->done, 0);
}

static void test_waits_for_requests(struct kunit *test)
{
	struct deletion d = { .result = -1 };
	unsigned long end = jiffies + PATIENCE;
	struct rmp_region *region, *again;
	struct task_struct *task;

	device_come(test, 0, 1);
	KUNIT_ASSERT_EQ(test, region_add(BASE, 8, 0, &d.handle), 0);
	region = find(BASE, 8, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	init_completion(&d.done);
	task = kthread_run(delete, &d, "rmp_delete");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* Not found any more, but alive as long as the request. */
	do {
		again = find(BASE, 8, 0);
		if (!IS_ERR(again))
			rmp_region_put(again);
		cond_resched();
	} while (!IS_ERR(again) && time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, PTR_ERR(again), -EFAULT);
	KUNIT_EXPECT_TRUE(test, region->dead);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&d.done, HZ / 5));
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
	rmp_region_put(region);
	wait_for_completion(&d.done);
	KUNIT_EXPECT_EQ(test, d.result, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
}

static struct rmp_region *revoked(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;
	struct rmp_region *region;

	/* Pairs with the release in rmp_segment_remove(). */
	while (!(region = smp_load_acquire(&world.kept)) && time_before(jiffies, end))
		cond_resched();
	KUNIT_ASSERT_NOT_NULL(test, region);
	return region;
}

/* Unregistering ends when peers have let go, not before. Who is killed meanwhile leaves
 * it to them: all of it happens as well.
 */
static void waits_for_peers(struct kunit *test, bool killed)
{
	struct rmpool_region_add arg = {
		.addr = BASE, .length = PAGE_SIZE, .offset = RMPOOL_OFFSET_NEXT,
		.access = RMPOOL_ACCESS_ALL,
	};
	struct deletion d = { .result = -1 };
	unsigned long end = jiffies + PATIENCE;
	struct rmp_region *region;
	struct task_struct *task;

	device_come(test, 0, 1);
	world.held = true;
	KUNIT_ASSERT_EQ(test, rmp_region_add(&world.mem, &arg, &world.segment), 0);
	d.handle = arg.handle;
	init_completion(&d.done);
	task = kthread_create(delete, &d, "rmp_delete");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	region = revoked(test);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&d.done, HZ / 5));
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE, 1, 0)), -EFAULT);
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
	KUNIT_EXPECT_EQ(test, world.mrs, 1);
	if (killed) {
		send_sig(SIGKILL, task, 1);
		wait_for_completion(&d.done);
		KUNIT_EXPECT_EQ(test, d.result, -EINTR);
		KUNIT_EXPECT_EQ(test, world.pinned, 1);
		KUNIT_EXPECT_EQ(test, world.mrs, 1);
	}
	rmp_region_put(region);
	if (!killed) {
		wait_for_completion(&d.done);
		KUNIT_EXPECT_EQ(test, d.result, 0);
		/* All is given back when it returns. */
		KUNIT_EXPECT_EQ(test, world.pinned, 0);
		KUNIT_EXPECT_EQ(test, world.charged, 0);
	}
	while (atomic_read(&world.mem.nr) && time_before(jiffies, end))
		cond_resched();
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
	put_task_struct(task);
}

static void test_waits_for_peers(struct kunit *test)
{
	waits_for_peers(test, false);
}

static void test_killed(struct kunit *test)
{
	waits_for_peers(test, true);
}

static int end_of_file(void *arg)
{
	struct deletion *d = arg;

	rmp_memory_kill(&world.mem);
	rmp_region_del_all(&world.mem);
	kthread_complete_and_exit(&d->done, 0);
}

/* The end of a file waits for peers as well, for all of a segment at once. */
static void test_end_of_file(struct kunit *test)
{
	struct rmpool_region_add arg = {
		.addr = BASE, .length = PAGE_SIZE, .offset = RMPOOL_OFFSET_NEXT,
		.access = RMPOOL_ACCESS_ALL,
	};
	struct rmp_revocation rev = {};
	struct deletion d = {};
	struct task_struct *task;
	u32 i;

	device_come(test, 0, 1);
	for (i = 0; i < 3; i++) {
		arg.offset = RMPOOL_OFFSET_NEXT;
		KUNIT_ASSERT_EQ(test, rmp_region_add(&world.mem, &arg, &world.segment), 0);
	}
	init_completion(&rev.done);
	world.ending = &rev;
	init_completion(&d.done);
	task = kthread_run(end_of_file, &d, "rmp_end");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&d.done, HZ / 5));
	KUNIT_EXPECT_EQ(test, world.pinned, 3);
	KUNIT_EXPECT_EQ(test, world.mrs, 3);
	complete_all(&rev.done);
	wait_for_completion(&d.done);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	KUNIT_EXPECT_EQ(test, world.revoked, 0);
}

/* Each once, and what is unknown is told; others stay. */
static void test_del_many(struct kunit *test)
{
	struct rmp_region_del dels[6] = {};
	struct rmp_region *region;
	u32 i;

	device_come(test, 0, 1);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, region_add(BASE + i * PAGE_SIZE, PAGE_SIZE, 0,
						 &dels[i].handle), 0);
	dels[4].handle = dels[1].handle;
	dels[5].handle = ~0U;
	KUNIT_EXPECT_EQ(test, rmp_region_del_many(&world.mem, dels + 1, 5), 0);
	for (i = 1; i < 6; i++)
		KUNIT_EXPECT_EQ(test, dels[i].status, i < 4 ? 0 : -ENOENT);
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE + PAGE_SIZE, 1, 0)), -EFAULT);
	region = find(BASE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	rmp_region_put(region);
}

static void test_limit(struct kunit *test)
{
	struct rmpool_region_add arg = { .addr = BASE, .length = 1 };
	u32 handle;

	device_come(test, 0, 1);
	rmp_max_regions = 0;
	KUNIT_EXPECT_EQ(test, rmp_regions_max(), 1);
	rmp_max_regions = ~0U;
	KUNIT_EXPECT_EQ(test, rmp_regions_max(), RMP_REGIONS_MAX);
	rmp_max_regions = 2;
	KUNIT_EXPECT_EQ(test, region_add(BASE, 1, 0, &handle), 0);
	KUNIT_EXPECT_EQ(test, region_add(BASE, 1, 0, &handle), 0);
	KUNIT_EXPECT_EQ(test, rmp_region_add(&world.mem, &arg, NULL), -ENOMEM);
	KUNIT_EXPECT_EQ(test, arg.error.reason, RMPOOL_REASON_REGIONS);
	KUNIT_EXPECT_EQ(test, arg.error.limit, 2);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	KUNIT_EXPECT_EQ(test, region_add(BASE, 1, 0, &handle), 0);
	rmp_max_regions = RMP_REGIONS_MAX;
}

/* What is stale is not used, whatever else is there, but stays until it is taken
 * back.
 */
static void test_stale(struct kunit *test)
{
	struct rmpool_region_add arg = {
		.addr = BASE, .length = 2 * PAGE_SIZE, .offset = RMPOOL_OFFSET_NEXT,
		.access = RMPOOL_ACCESS_ALL,
	};
	struct rmp_region *stale, *again;
	u32 handle;
	u64 iova;
	u32 key;

	device_come(test, 0, 4);
	KUNIT_ASSERT_EQ(test, rmp_region_add(&world.mem, &arg, &world.segment), 0);
	stale = find(BASE, 10, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(stale));
	KUNIT_EXPECT_TRUE(test, stale->pinned);
	/* One that is suspect is found: what it is will be known. */
	stale->state = RMPOOL_REGION_STATE_SUSPECT;
	again = find(BASE, 10, RMPOOL_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_PTR_EQ(test, again, stale);
	rmp_region_put(again);
	stale->state = RMPOOL_REGION_STATE_ACTIVE;
	rmp_region_settled(stale);
	rmp_regions_settled();
	KUNIT_EXPECT_EQ(test, world.settled, 1);
	KUNIT_EXPECT_EQ(test, world.changed, 0);

	stale->state = RMPOOL_REGION_STATE_STALE;
	rmp_region_settled(stale);
	rmp_regions_settled();
	KUNIT_EXPECT_EQ(test, world.settled, 2);
	KUNIT_EXPECT_EQ(test, world.changed, 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE, 10, 0)), -ESTALE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE, 3 * PAGE_SIZE, 0)), -ERANGE);
	/* Not on devices that come. */
	device_come(test, 1, 4);
	KUNIT_EXPECT_EQ(test, rmp_region_local(stale, 0, 1, 0, &iova, &key), 0);

	/* One beside it that may be read only, and then one for all. */
	KUNIT_ASSERT_EQ(test, region_add(BASE, PAGE_SIZE, 0, &handle), 0);
	again = find(BASE, 10, 0);
	KUNIT_EXPECT_PTR_NE(test, again, stale);
	KUNIT_ASSERT_FALSE(test, IS_ERR(again));
	rmp_region_put(again);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE, 10, RMPOOL_ACCESS_LOCAL_WRITE)),
			-ESTALE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(find(BASE + PAGE_SIZE, 1, 0)), -ESTALE);
	KUNIT_ASSERT_EQ(test, region_add(BASE, PAGE_SIZE, RMPOOL_ACCESS_ALL, &handle), 0);
	again = find(BASE, 10, RMPOOL_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(again));
	rmp_region_put(again);

	KUNIT_EXPECT_EQ(test, world.pinned, 4);
	rmp_region_put(stale);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, arg.handle), 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 2);
}

static int count_ids(struct rmp_region *region, void *arg)
{
	u64 *last = arg;

	if (region->id <= *last)
		return -EINVAL;
	*last = region->id;
	return region->addr == 7 * BASE ? 7 : 0;
}

static void test_walk(struct kunit *test)
{
	u64 last = 0, i;
	u32 handle;

	device_come(test, 0, 1);
	KUNIT_EXPECT_EQ(test, rmp_region_walk(0, count_ids, &last), 0);
	KUNIT_EXPECT_EQ(test, last, 0);
	for (i = 1; i <= 9; i++)
		KUNIT_ASSERT_EQ(test, region_add(i * BASE, 1, 0, &handle), 0);
	/* Until it is told to stop, and from there on. */
	KUNIT_EXPECT_EQ(test, rmp_region_walk(0, count_ids, &last), 7);
	KUNIT_EXPECT_EQ(test, rmp_region_walk(last + 1, count_ids, &last), 0);
	KUNIT_EXPECT_EQ(test, last, atomic64_read(&rmp_last_id));
}

/* One of the module: on every device as others are, and nobody's. */
static void test_own(struct kunit *test)
{
	struct rmp_memory *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);
	const u64 length = 10 * PAGE_SIZE;
	struct rmp_region *region;
	u64 last = 0, iova;
	unsigned int n;
	void *base;
	u32 key;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	device_come(test, 0, 4);
	for (n = 1;; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		base = vzalloc(length);
		KUNIT_ASSERT_NOT_NULL(test, base);
		world.calls = 0;
		world.fail_at = n;
		region = rmp_region_add_own(mem, base, length);
		if (world.calls < n)
			break;
		/* Were all pages in a row, it may have gone well without that. */
		if (!IS_ERR(region))
			rmp_region_del_own(region);
		KUNIT_EXPECT_EQ(test, world.mrs, 0);
		KUNIT_EXPECT_EQ(test, world.dma, 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&mem->nr), 0);
	}
	world.fail_at = 0;
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	KUNIT_EXPECT_GT(test, n, 2);
	KUNIT_EXPECT_EQ(test, world.charged, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	KUNIT_EXPECT_EQ(test, world.watched, 0);
	KUNIT_EXPECT_EQ(test, rmp_region_walk(0, count_ids, &last), 0);
	KUNIT_EXPECT_EQ(test, last, 0);
	KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 0, length - 1, &iova, &key), 1);
	KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 3, length - 1, &iova, &key), 0);
	device_come(test, 3, 4);
	KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 3, length - 1, &iova, &key), 1);
	device_go(0);
	KUNIT_EXPECT_EQ(test, rmp_region_local(region, 0, 0, length - 1, &iova, &key), 0);
	rmp_region_del_own(region);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
}

/* A published region with keys on devices 0 (chunks of 2 pages) and 3 (of 4), told. */
static struct rmp_region *told_region(struct kunit *test, u32 access)
{
	struct rmpool_region_add arg = {
		.addr = BASE + 5, .length = 10 * PAGE_SIZE, .access = access,
		.offset = RMPOOL_OFFSET_NEXT,
	};
	struct rmp_region *region;

	KUNIT_ASSERT_EQ(test, rmp_region_add(&world.mem, &arg, &world.segment), 0);
	region = find(BASE + 5, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	region->told = true;
	return region;
}

#define KEYS	6	/* chunks of it, on each device */

static void keys_of(struct kunit *test, const struct rmp_region *region,
		    u32 keys[2][KEYS])
{
	u32 i, d;

	KUNIT_ASSERT_EQ(test, region->nr_chunks, KEYS);
	for (d = 0; d < 2; d++) {
		for (i = 0; i < KEYS; i++)
			keys[d][i] = rmp_region_rkey(region, 0, d * 3, i);
	}
}

/* All are there, and none is as before. */
static void expect_other_keys(struct kunit *test, const struct rmp_region *region,
			      u32 before[2][KEYS])
{
	u32 now[2][KEYS], i, d;

	keys_of(test, region, now);
	for (d = 0; d < 2; d++) {
		for (i = 0; i < KEYS; i++) {
			KUNIT_EXPECT_NE(test, now[d][i], 0);
			KUNIT_EXPECT_NE(test, now[d][i], before[d][i]);
		}
	}
}

static int rekey(struct rmp_rekeyed *done, u32 access)
{
	return rmp_segment_rekey_all(&world.segment, access, NULL, done);
}

static struct rmp_mapping *in_use;
static u32 seen_mrs;

static void both_are_there(struct rmp_region *region)
{
	seen_mrs = world.mrs;
	rmp_region_unuse(in_use);
}

static void test_rekey(struct kunit *test)
{
	u32 before[2][KEYS], mrs, lkey, new_lkey;
	struct rmp_region *region;
	struct rmp_rekeyed done;
	u64 iova;

	device_come(test, 0, 2);
	device_come(test, 3, 4);
	region = told_region(test, RMPOOL_ACCESS_REMOTE_READ);
	keys_of(test, region, before);
	mrs = world.mrs;
	/* Nothing that it allows was withdrawn. */
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_WRITE), 0);
	KUNIT_EXPECT_EQ(test, done.regions, 0);
	KUNIT_EXPECT_EQ(test, world.rekeyed, 0);

	/* What is with a device is not pulled from under it. */
	KUNIT_EXPECT_NE(test, rmp_region_use(region, 0, 0, 0, &iova, &lkey, &in_use), 0);
	KUNIT_ASSERT_NOT_NULL(test, in_use);
	world.asked = both_are_there;
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, done.regions, 1);
	KUNIT_EXPECT_EQ(test, done.lost, 0);
	KUNIT_EXPECT_EQ(test, world.rekeyed, 1);
	KUNIT_EXPECT_EQ(test, seen_mrs, 2 * mrs);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs);
	KUNIT_EXPECT_FALSE(test, region->told);
	expect_other_keys(test, region, before);
	KUNIT_EXPECT_NE(test, rmp_region_local(region, 0, 0, 0, &iova, &new_lkey), 0);
	KUNIT_EXPECT_NE(test, lkey, new_lkey);
	KUNIT_EXPECT_EQ(test, world.dev[0]->mrs, mrs / 2);
	world.asked = NULL;

	/* Once more, with one device gone. */
	keys_of(test, region, before);
	device_go(3);
	region->told = true;
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, done.lost, 0);
	KUNIT_EXPECT_NE(test, rmp_region_rkey(region, 0, 0, 0), before[0][0]);
	KUNIT_EXPECT_EQ(test, rmp_region_rkey(region, 0, 3, 0), 0);
	rmp_region_put(region);
	KUNIT_EXPECT_EQ(test, kref_read(&region->ref), 1);
}

/* Each call on the way fails once: the old keys go all the same, and what could not be
 * had beside them is had when they are gone.
 */
static void test_rekey_unwinding(struct kunit *test)
{
	struct rmp_region *region;
	struct rmp_rekeyed done;
	u32 before[2][KEYS], mrs;
	unsigned int n;

	device_come(test, 0, 2);
	device_come(test, 3, 4);
	region = told_region(test, RMPOOL_ACCESS_ALL);
	mrs = world.mrs;
	for (n = 1;; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		keys_of(test, region, before);
		region->told = true;
		world.rekeyed = 0;
		world.calls = 0;
		world.fail_at = n;
		KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_WRITE), 0);
		KUNIT_EXPECT_EQ(test, done.regions, 1);
		KUNIT_EXPECT_EQ(test, done.lost, 0);
		KUNIT_EXPECT_EQ(test, world.rekeyed, 1);
		KUNIT_EXPECT_EQ(test, world.mrs, mrs);
		expect_other_keys(test, region, before);
		if (world.calls < n)
			break;
	}
	/* Three for each of the chunks and one for all of them, on two devices. */
	KUNIT_EXPECT_EQ(test, n, 2 * (3 * KEYS + 1) + 1);
	world.fail_at = 0;
	rmp_region_put(region);
}

struct rekeying {
	struct rmp_revocation withdrawn;
	struct completion done;
	struct rmp_rekeyed rekeyed;
	int result;
};

static int rekey_slowly(void *arg)
{
	struct rekeying *r = arg;

	allow_signal(SIGKILL);
	r->result = rmp_segment_rekey_all(&world.segment, RMPOOL_ACCESS_REMOTE_READ,
					  &r->withdrawn, &r->rekeyed);
	kthread_complete_and_exit(&r->done, 0);
}

/* Who lost all of its right has not let go: the old keys stay until then, also when the
 * owner is killed meanwhile.
 */
static void rekey_waits(struct kunit *test, bool killed)
{
	struct rekeying *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	unsigned long end = jiffies + PATIENCE;
	u32 before[2][KEYS], mrs;
	struct rmp_region *region;
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, r);
	device_come(test, 0, 2);
	device_come(test, 3, 4);
	region = told_region(test, RMPOOL_ACCESS_ALL);
	keys_of(test, region, before);
	mrs = world.mrs;
	kref_init(&r->withdrawn.ref);
	init_completion(&r->withdrawn.done);
	init_completion(&r->done);
	task = kthread_create(rekey_slowly, r, "rmp_rekey");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	while (!READ_ONCE(world.rekeyed) && time_before(jiffies, end))
		cond_resched();
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&r->done, HZ / 5));
	KUNIT_EXPECT_EQ(test, world.mrs, 2 * mrs);
	if (killed) {
		send_sig(SIGKILL, task, 1);
		wait_for_completion(&r->done);
		KUNIT_EXPECT_EQ(test, r->result, -EINTR);
		KUNIT_EXPECT_EQ(test, world.mrs, 2 * mrs);
	}
	complete_all(&r->withdrawn.done);
	if (!killed) {
		wait_for_completion(&r->done);
		KUNIT_EXPECT_EQ(test, r->result, 0);
	}
	flush_workqueue(rmp_rekey_wq);
	KUNIT_EXPECT_EQ(test, r->rekeyed.regions, 1);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs);
	expect_other_keys(test, region, before);
	rmp_region_put(region);
	KUNIT_EXPECT_EQ(test, kref_read(&region->ref), 1);
	put_task_struct(task);
}

static void test_rekey_waits(struct kunit *test)
{
	rekey_waits(test, false);
}

static void test_rekey_killed(struct kunit *test)
{
	rekey_waits(test, true);
}

static void no_more_mrs(struct rmp_region *region)
{
	world.ibdev[3]->attrs.max_mr = 1;
}

static void dies(struct rmp_region *region)
{
	WRITE_ONCE(region->dead, true);
	no_more_mrs(region);
}

/* A device that has no room for both; and one that has none for the new ones either, which
 * does not matter when the region is unregistered.
 */
static void test_rekey_no_room(struct kunit *test)
{
	struct rmp_region *region;
	struct rmp_rekeyed done;
	u32 before[2][KEYS], changed;

	device_come(test, 0, 2);
	device_come(test, 3, 4);
	region = told_region(test, RMPOOL_ACCESS_ALL);
	keys_of(test, region, before);
	world.ibdev[3]->attrs.max_mr = KEYS + 1;
	changed = world.changed;
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, done.lost, 0);
	expect_other_keys(test, region, before);
	/* Peers and own requests learn that it is back. */
	KUNIT_EXPECT_GT(test, world.changed, changed);
	KUNIT_EXPECT_GT(test, world.settled, 0);

	keys_of(test, region, before);
	region->told = true;
	world.asked = no_more_mrs;
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, done.regions, 1);
	KUNIT_EXPECT_EQ(test, done.lost, 1);
	KUNIT_EXPECT_EQ(test, done.error.reason, RMPOOL_REASON_DEVICE_MRS);
	KUNIT_EXPECT_NULL(test, region->maps[3]);
	KUNIT_EXPECT_NE(test, rmp_region_rkey(region, 0, 0, 0), 0);
	KUNIT_EXPECT_NE(test, rmp_region_rkey(region, 0, 0, 0), before[0][0]);
	KUNIT_EXPECT_EQ(test, world.dev[3]->mrs, 0);

	world.ibdev[3]->attrs.max_mr = KEYS + 1;
	rmp_maps_lock();
	KUNIT_EXPECT_EQ(test, rmp_region_map_again(region), 0);
	rmp_maps_unlock();
	region->told = true;
	world.asked = dies;
	KUNIT_EXPECT_EQ(test, rekey(&done, RMPOOL_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, done.regions, 1);
	KUNIT_EXPECT_EQ(test, done.lost, 0);
	KUNIT_EXPECT_NULL(test, region->maps[3]);
	world.ibdev[3]->attrs.max_mr = 0;
	world.asked = NULL;
	rmp_region_put(region);
}

static struct kunit_case region_cases[] = {
	KUNIT_CASE(test_refused),
	KUNIT_CASE(test_unwinding),
	KUNIT_CASE(test_random),
	KUNIT_CASE(test_ends_of_space),
	KUNIT_CASE(test_chunks),
	KUNIT_CASE(test_devices),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_full_driver),
	KUNIT_CASE(test_waits_for_requests),
	KUNIT_CASE(test_waits_for_peers),
	KUNIT_CASE(test_killed),
	KUNIT_CASE(test_end_of_file),
	KUNIT_CASE(test_del_many),
	KUNIT_CASE(test_limit),
	KUNIT_CASE(test_stale),
	KUNIT_CASE(test_walk),
	KUNIT_CASE(test_own),
	KUNIT_CASE(test_rekey),
	KUNIT_CASE(test_rekey_unwinding),
	KUNIT_CASE(test_rekey_waits),
	KUNIT_CASE(test_rekey_killed),
	KUNIT_CASE(test_rekey_no_room),
	{}
};

static struct kunit_suite region_suite = {
	.name = "rmp_region",
	.suite_init = suite_begin,
	.init = region_init,
	.exit = region_exit,
	.test_cases = region_cases,
};

kunit_test_suites(&region_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's regions");
MODULE_LICENSE("GPL");
