// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/keycache.c: regions come in run by run, are found by offset, are
 * replaced and revoked; hostile runs are refused and leave the cache as it was;
 * readers run beside changes (in the kernel), allocations fail (on the host).
 *
 * Each test has a cache of its own (test->priv). The key of a chunk is made
 * from region, device and chunk, so a wrong one is seen.
 */
#include "suite.h"
#ifdef __KERNEL__
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/vmalloc.h>
#endif
#include "keycache.c"
#include "wire.c"		/* rmp_keys_rkey() */

#define REMOTE	(RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE)
/* Geometry of most regions here: chunks of 4 KiB, first byte in the middle. */
#define SHIFT	12
#define CHUNK	BIT(SHIFT)
#define BASE	0x7f0000000000ULL
#define LEAD	0x123

struct cache {
	struct rmp_keycache kc;
	atomic_t released;
};

static void count_released(struct rmp_rregion *rr)
{
	struct cache *c = rr->owner;

	atomic_inc(&c->released);
	rmp_rregion_free(rr);
}

static int cache_init(struct kunit *test)
{
	struct cache *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	rmp_keycache_init(&c->kc, count_released, c);
	test->priv = c;
	return suite_case(test);
}

static void cache_exit(struct kunit *test)
{
	struct cache *c = test->priv;

	if (!c)
		return;
	rmp_keycache_destroy(&c->kc);
	/* What is still read after it was freed is to be seen in this test. */
	rcu_barrier();
}

static u32 key_of(u64 region, u32 device, u32 chunk)
{
	return (u32)region * 0x01000193 + device * 0x10001 + chunk;
}

static u32 chunks_of(u64 length)
{
	return ((LEAD + length - 1) >> SHIFT) + 1;
}

static struct rmp_wire_keys a_run(u64 region, u64 offset, u64 length)
{
	return (struct rmp_wire_keys){
		.region = region,
		.offset = offset,
		.length = length,
		.iova = BASE + LEAD,
		.iova_base = BASE,
		.access = REMOTE,
		.chunk_shift = SHIFT,
	};
}

/* Adds chunks @first to @first + @nr - 1 on a device. */
static int add(struct rmp_keycache *kc, const struct rmp_wire_keys *like,
	       u32 device, u32 first, u32 nr)
{
	struct rmp_wire_keys run = *like;
	__le32 *rkeys = NULL;
	int ret;
	u32 i;

	if (nr) {
		rkeys = kvmalloc_array(nr, sizeof(*rkeys), GFP_KERNEL);
		if (!rkeys)
			return -ENOMEM;
	}
	for (i = 0; i < nr; i++)
		rkeys[i] = cpu_to_le32(key_of(run.region, device, first + i));
	run.device = device;
	run.first = first;
	run.nr = nr;
	run.rkeys = (const u8 *)rkeys;
	ret = rmp_keycache_add(kc, &run);
	kvfree(rkeys);
	return ret;
}

/* A whole region on devices 0 to @devices - 1. */
static int add_region(struct rmp_keycache *kc, u64 region, u64 offset,
		      u64 length, u32 devices)
{
	struct rmp_wire_keys run = a_run(region, offset, length);
	u32 device;
	int ret;

	for (device = 0; device < devices; device++) {
		ret = add(kc, &run, device, 0, chunks_of(length));
		if (ret)
			return ret;
	}
	return devices ? 0 : add(kc, &run, 0, 0, 0);
}

static void expect_found(struct kunit *test, u64 offset, u64 length, u64 region)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr = rmp_keycache_find(&c->kc, offset, length, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rr->id, region);
	rmp_rregion_put(rr);
}

static void expect_error(struct kunit *test, u64 offset, u64 length, u32 access,
			 int error)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr;

	rr = rmp_keycache_find(&c->kc, offset, length, access);
	KUNIT_EXPECT_TRUE(test, IS_ERR(rr));
	if (IS_ERR(rr))
		KUNIT_EXPECT_EQ(test, (int)PTR_ERR(rr), error);
	else
		rmp_rregion_put(rr);
}

static void test_find(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(2, 30000, 10000);

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 10000, 10000, 1), 0);
	run.access = RMPOOL_ACCESS_REMOTE_READ;
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, chunks_of(10000)), 0);
	/* The second is not complete before the end is known. */
	expect_found(test, 10000, 1, 1);
	expect_error(test, 30000, 1, 0, -ENXIO);
	KUNIT_EXPECT_EQ(test, c->kc.size, 20000);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, c->kc.size, 40000);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 2);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 2 * chunks_of(10000));

	expect_found(test, 10000, 10000, 1);
	expect_found(test, 19999, 1, 1);
	expect_found(test, 30000, 10000, 2);
	expect_found(test, 39999, 0, 2);
	/* Nothing at all fits at the end of a region, and one byte does not. */
	expect_found(test, 20000, 0, 1);
	expect_found(test, 40000, 0, 2);
	expect_error(test, 20000, 1, 0, -ENXIO);
	expect_error(test, 20001, 0, 0, -ENXIO);
	expect_error(test, 9999, 1, 0, -ENXIO);
	expect_error(test, 9999, 0, 0, -ENXIO);
	expect_error(test, 0, 0, 0, -ENXIO);
	expect_error(test, U64_MAX, 0, 0, -ENXIO);
	expect_error(test, U64_MAX, U64_MAX, 0, -ENXIO);
	expect_error(test, 19999, 2, 0, -ERANGE);
	expect_error(test, 10000, 10001, 0, -ERANGE);
	expect_error(test, 10001, U64_MAX, 0, -ERANGE);
	expect_error(test, 30000, 1, RMPOOL_ACCESS_REMOTE_WRITE, -EACCES);
	expect_found(test, 30000, 1, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 0);
}

static void test_ends_of_space(struct kunit *test)
{
	struct cache *c = test->priv;

	/* One byte at 0 is a special case of the tree. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 1, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 0, 1, 1);
	expect_found(test, 1, 0, 1);
	expect_error(test, 1, 1, 0, -ENXIO);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, U64_MAX, U64_MAX - 1, 1, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, U64_MAX - 1, 1, U64_MAX);
	KUNIT_EXPECT_EQ(test, c->kc.size, U64_MAX);
	rmp_rregion_put(rmp_keycache_remove(&c->kc, U64_MAX));
	KUNIT_EXPECT_EQ(test, c->kc.size, 1);
	rmp_rregion_put(rmp_keycache_remove(&c->kc, 1));
	KUNIT_EXPECT_EQ(test, c->kc.size, 0);
	expect_error(test, 0, 1, 0, -ENXIO);
}

static void test_remote(struct kunit *test)
{
	struct cache *c = test->priv;
	const u64 length = 5 * CHUNK;	/* six chunks, since it begins inside */
	struct rmp_wire_keys run = a_run(7, 0, length);
	struct rmp_rregion *rr;
	u64 pos, iova, left;
	u32 rkey;

	/* In pieces, and with devices left out. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 3, 0, 1), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 3, 1, 4), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 3, 5, 1), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 31, 0, 6), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, length, REMOTE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));

	for (pos = 0; pos < length; pos++) {
		u32 chunk = (LEAD + pos) >> SHIFT;
		u64 want = min_t(u64, (chunk + 1) * CHUNK - LEAD - pos,
				 length - pos);

		left = rmp_rregion_remote(rr, 3, pos, &iova, &rkey);
		if (left != want || iova != BASE + LEAD + pos ||
		    rkey != key_of(7, 3, chunk))
			KUNIT_FAIL(test, "wrong at %llu on device 3", pos);
		left = rmp_rregion_remote(rr, 31, pos, &iova, &rkey);
		if (left != want || iova != BASE + LEAD + pos ||
		    rkey != key_of(7, 31, chunk))
			KUNIT_FAIL(test, "wrong at %llu on device 31", pos);
	}
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 30, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 32, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, U32_MAX, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 3, length, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 3, U64_MAX, &iova, &rkey), 0);
	rmp_rregion_put(rr);
}

static void test_huge_chunk(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 3ULL << 40);
	struct rmp_rregion *rr;
	u64 iova;
	u32 rkey;

	/* To the last address there is, in the largest chunks. */
	run.chunk_shift = RMP_WIRE_SHIFT_MAX;
	run.iova_base = 0 - (3ULL << 40) - CHUNK;
	run.iova = U64_MAX - (3ULL << 40);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 4), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, 3ULL << 40, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey),
			(1ULL << 40) - CHUNK + 1);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 0, (3ULL << 40) - 1, &iova,
						 &rkey), 1);
	KUNIT_EXPECT_EQ(test, iova, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 0, 3));
	rmp_rregion_put(rr);
}

static void test_no_keys(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr;
	u64 iova;
	u32 rkey;
	u32 i;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 100, 0), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, 100, REMOTE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	for (i = 0; i < RMP_WIRE_DEVICES_MAX; i++)
		KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, i, 0, &iova, &rkey),
				0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
	/* Keys are nothing that a program sees. */
	KUNIT_EXPECT_EQ(test, c->kc.changes, 1);
	rmp_rregion_put(rr);
}

/* A stale region keeps its place and says why it cannot be reached. */
static void test_stale(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 100);
	struct rmpool_region_desc desc[2];
	struct rmp_rregion *rr;
	u64 iova, at = 0;
	u32 rkey;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 100, 2), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 4096, 100, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, 100, REMOTE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 1, 0, &iova, &rkey), 0);

	run.access |= RMP_WIRE_STALE;
	rmp_keycache_begin(&c->kc);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 0), 0);
	KUNIT_EXPECT_FALSE(test, rr->stale);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 4096, 100, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_TRUE(test, rr->stale);
	KUNIT_EXPECT_EQ(test, c->kc.changes, 3);
	KUNIT_EXPECT_EQ(test, rr->access, REMOTE);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 1, 0, &iova, &rkey), 0);
	expect_error(test, 0, 1, REMOTE, -ESTALE);
	expect_error(test, 0, 101, REMOTE, -ERANGE);
	expect_found(test, 4096, 100, 2);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, chunks_of(100));
	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 0, desc, 2), 2);
	KUNIT_EXPECT_EQ(test, desc[0].flags, RMPOOL_REGION_DESC_STALE);
	KUNIT_EXPECT_EQ(test, desc[1].flags, 0);

	/* It stays so, however often it is told, and nothing else is believed. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 0, 1), -EBADMSG);
	KUNIT_EXPECT_EQ(test, add_region(&c->kc, 1, 0, 100, 1), -EBADMSG);
	expect_error(test, 0, 1, REMOTE, -ESTALE);
	/* Nor that it is half so. */
	run = a_run(2, 4096, 100);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 4096, 100, 1), 0);
	run.access |= RMP_WIRE_STALE;
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 0, 0), -EBADMSG);
	expect_found(test, 4096, 100, 2);

	KUNIT_EXPECT_EQ(test, c->kc.changes, 3);

	/* Until it is revoked. One that was never known otherwise is known, too. */
	rmp_rregion_put(rmp_keycache_remove(&c->kc, 1));
	KUNIT_EXPECT_EQ(test, c->kc.changes, 4);
	expect_error(test, 0, 1, REMOTE, -ENXIO);
	rmp_rregion_put(rr);
	run = a_run(3, 0, 100);
	run.access |= RMP_WIRE_STALE;
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_error(test, 0, 1, REMOTE, -ESTALE);
}

static void test_incomplete(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 4 * CHUNK);

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 9, 1 << 20, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);

	/* A chunk is missing at the end of the walk, or before the next region. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), -EBADMSG);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, add_region(&c->kc, 2, 1 << 16, 10, 1), -EBADMSG);
	/* The first device is complete, the second is not. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 5), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 1, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), -EBADMSG);
	/* Device 1 begins before device 0 is complete. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 1, 0, 5), -EBADMSG);

	expect_error(test, 0, 1, 0, -ENXIO);
	expect_error(test, 1 << 16, 1, 0, -ENXIO);
	expect_found(test, 1 << 20, 10, 9);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 1);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 1);

	/* A walk that was given up is forgotten. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 4), 0);
	rmp_keycache_begin(&c->kc);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 0, 4 * CHUNK, 1);
}

static void test_order(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 4 * CHUNK);

	/* Not from the first chunk on. */
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 1, 4), -EBADMSG);
	/* A gap, and the same again. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 3, 2), -EBADMSG);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 1, 4), -EBADMSG);
	/* All there already. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 0, 5), -EBADMSG);
	/* Devices downwards. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 5, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 4, 0, 5), -EBADMSG);
	/* No keys, but a first one. */
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 1, 0), -EBADMSG);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
}

static void test_geometry(struct kunit *test)
{
	struct cache *c = test->priv;
	const struct rmp_wire_keys good = a_run(1, 4096, 4 * CHUNK);
	struct rmp_wire_keys run;

#define REFUSED(error, field, value) do { \
	run = good; \
	run.field = value; \
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 0, 0, 5), error); \
} while (0)
	REFUSED(-EBADMSG, length, 0);
	REFUSED(-EBADMSG, length, U64_MAX);
	REFUSED(-EBADMSG, offset, U64_MAX);
	REFUSED(-EBADMSG, offset, U64_MAX - 4 * CHUNK + 1);
	REFUSED(-EBADMSG, iova, U64_MAX);
	REFUSED(-EBADMSG, iova, BASE - 1);
	REFUSED(-EBADMSG, iova, BASE + CHUNK);
	REFUSED(-EBADMSG, iova_base, BASE + 1);
	REFUSED(-EBADMSG, iova_base, BASE + CHUNK);
	REFUSED(-EBADMSG, iova_base, 0);
	REFUSED(-EBADMSG, chunk_shift, RMP_WIRE_SHIFT_MIN - 1);
	REFUSED(-EBADMSG, chunk_shift, RMP_WIRE_SHIFT_MAX + 1);
	REFUSED(-EBADMSG, chunk_shift, 255);
	REFUSED(-EBADMSG, access, RMPOOL_ACCESS_ALL);
	REFUSED(-EBADMSG, access, BIT(31));
	REFUSED(-ENOSPC, length, (u64)RMP_KEYS_MAX * CHUNK);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, add(&c->kc, &good, RMP_WIRE_DEVICES_MAX, 0, 5),
			-EBADMSG);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &good, 0, 0, 6), -EBADMSG);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &good, 0, 6, 1), -EBADMSG);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &good, 0, U32_MAX, 5), -EBADMSG);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
}

static void test_contradiction(struct kunit *test)
{
	struct cache *c = test->priv;
	const struct rmp_wire_keys good = a_run(1, 4096, 4 * CHUNK);
	struct rmp_wire_keys run;
	int known;

	/* Within a walk; from one to the next, rights may change. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0);
	run = good;
	run.access = RMPOOL_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 1, 0, 5), -EBADMSG);

	for (known = 0; known < 2; known++) {
#define CONTRADICTS(field, value) do { \
	if (!known) \
		KUNIT_ASSERT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0); \
	run = good; \
	run.field = value; \
	KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 1, 0, 5), -EBADMSG); \
} while (0)
		CONTRADICTS(offset, 8192);
		CONTRADICTS(length, 4 * CHUNK + 1);
		CONTRADICTS(iova, BASE + LEAD + 1);
#undef CONTRADICTS
		/* Another base with the same chunks. */
		if (!known)
			KUNIT_ASSERT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0);
		run = good;
		run.iova += CHUNK;
		run.iova_base += CHUNK;
		KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 1, 0, 5), -EBADMSG);
		/* Other chunks. */
		if (!known)
			KUNIT_ASSERT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0);
		run = good;
		run.chunk_shift++;
		KUNIT_EXPECT_EQ(test, add(&c->kc, &run, 1, 0, 3), -EBADMSG);

		/* From here on the region is known; it stays as it was. */
		KUNIT_ASSERT_EQ(test, add(&c->kc, &good, 0, 0, 5), 0);
		KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
		expect_found(test, 4096, 4 * CHUNK, 1);
		KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 5);
	}
}

static void test_overlap(struct kunit *test)
{
	struct cache *c = test->priv;
	static const struct {
		u64 offset, length;
	} bad[] = {
		{ 10000, 10000 }, { 9999, 2 }, { 19999, 1 }, { 19999, 100 },
		{ 0, 100000 }, { 15000, 1 }, { 0, 10001 },
	};
	int i;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 10000, 10000, 2), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, bad[i].offset,
						 bad[i].length, 1), 0);
		KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), -EBADMSG);
	}
	expect_found(test, 10000, 10000, 1);
	expect_error(test, 9999, 1, 0, -ENXIO);
	expect_error(test, 20000, 1, 0, -ENXIO);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 1);
	KUNIT_EXPECT_EQ(test, c->kc.size, 20000);
	KUNIT_EXPECT_NULL(test, rmp_keycache_remove(&c->kc, 2));
	/* Side by side is fine. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 0, 10000, 1), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 3, 20000, 1, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 9999, 1, 2);
	expect_found(test, 20000, 1, 3);
	/* Bytes of two regions are not one range. */
	expect_error(test, 9999, 2, 0, -ERANGE);
}

static void test_replace(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 4 * CHUNK);
	struct rmp_rregion *rr;
	u64 iova;
	u32 rkey;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 4 * CHUNK, 2), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));

	/* Device 0 is gone, device 1 stays, device 4 is new. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 1, 0, 5), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 4, 0, 5), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 4, 0, &iova, &rkey), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 1, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 1, 0));
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 4, 4 * CHUNK - 1, &iova,
						 &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 4, 4));
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 10);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 1);

	/* A walk that fails changes nothing. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 7, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), -EBADMSG);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 7, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 4, 0, &iova, &rkey), 0);

	/* All devices are gone. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 4, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
	rmp_rregion_put(rr);
}

static void test_drop_device(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr;
	u64 iova;
	u32 rkey;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 4 * CHUNK, 3), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 1 << 20, 10, 0), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	rr = rmp_keycache_find(&c->kc, 0, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	rmp_keycache_drop_device(&c->kc, 1);
	rmp_keycache_drop_device(&c->kc, 31);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 1, 0, &iova, &rkey), 0);
	/* The others keep theirs, also those behind it. */
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 0, 0));
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 2, CHUNK, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 2, 1));
	KUNIT_EXPECT_TRUE(test, rmp_rregion_away(rr));
	/* Told anew, it is back. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 4 * CHUNK, 2), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 1, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(1, 1, 0));
	KUNIT_EXPECT_FALSE(test, rmp_rregion_away(rr));
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 10);
	rmp_rregion_put(rr);
}

static void test_key_limit(struct kunit *test)
{
	struct cache *c = test->priv;
	const u32 half = RMP_KEYS_MAX / 2;
	struct rmp_wire_keys big = a_run(1, 0, half * CHUNK - LEAD);
	struct rmp_wire_keys small = a_run(2, 1ULL << 50, 1);

	KUNIT_ASSERT_EQ(test, add(&c->kc, &big, 0, 0, half), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &big, 1, 0, half), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &big, 2, 0, half), -ENOSPC);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &big, 0, 0, half), 0);
	KUNIT_ASSERT_EQ(test, add(&c->kc, &big, 1, 0, half), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, RMP_KEYS_MAX);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &small, 0, 0, 1), -ENOSPC);
	/* Without keys there is still room, and so there is to replace. */
	KUNIT_EXPECT_EQ(test, add(&c->kc, &small, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &big, 0, 0, half), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, half);
	KUNIT_EXPECT_EQ(test, add(&c->kc, &small, 0, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, half + 1);
}

static void test_region_limit(struct kunit *test)
{
	struct cache *c = test->priv;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	/* Making a million would only take time. */
	c->kc.nr_regions = RMP_RREGIONS_MAX;
	KUNIT_EXPECT_EQ(test, add_region(&c->kc, 2, 100, 10, 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, add_region(&c->kc, 1, 0, 10, 1), 0);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	c->kc.nr_regions = 1;
}

static void test_remove(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr, *held;
	u64 iova;
	u32 rkey;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 10000, 1), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 10000, 10000, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	held = rmp_keycache_find(&c->kc, 10000, 10, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));

	KUNIT_EXPECT_NULL(test, rmp_keycache_remove(&c->kc, 3));
	rr = rmp_keycache_remove(&c->kc, 2);
	KUNIT_ASSERT_PTR_EQ(test, rr, held);
	KUNIT_EXPECT_TRUE(test, rr->revoked);
	KUNIT_EXPECT_NULL(test, rmp_keycache_remove(&c->kc, 2));
	expect_error(test, 10000, 10, 0, -ENXIO);
	expect_found(test, 10000, 0, 1);
	expect_found(test, 0, 10000, 1);
	KUNIT_EXPECT_EQ(test, c->kc.size, 10000);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 1);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, chunks_of(10000));

	/* The request that holds it may go on looking at it. */
	rmp_rregion_put(rr);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 0);
	KUNIT_ASSERT_NE(test, rmp_rregion_remote(held, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, key_of(2, 0, 0));
	rmp_rregion_put(held);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 1);

	/* Its place can be taken, by the same id as well. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 10000, 5, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 10000, 5, 2);

	/* Revoked while its keys come in: new ones are dropped ... */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 4, 50000, 10, 1), 0);
	KUNIT_EXPECT_NULL(test, rmp_keycache_remove(&c->kc, 4));
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_error(test, 50000, 1, 0, -ENXIO);
	/* ... and known ones go. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 10000, 5, 2), 0);
	rr = rmp_keycache_remove(&c->kc, 2);
	KUNIT_ASSERT_NOT_NULL(test, rr);
	rmp_rregion_put(rr);
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_error(test, 10000, 1, 0, -ENXIO);
	/* Others that come in do not mind. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 5, 60000, 10, 1), 0);
	rmp_rregion_put(rmp_keycache_remove(&c->kc, 1));
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 60000, 10, 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 3);
}

/* Other keys: what uses the old ones keeps them, and knows what took their place. */
static void test_renew(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(2, 10000, 10000);
	struct rmp_rregion *rr, *held, *next;
	u64 iova;
	u32 rkey;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 10000, 1), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 10000, 10000, 2), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	held = rmp_keycache_find(&c->kc, 10000, 10, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));

	KUNIT_EXPECT_NULL(test, rmp_keycache_renew(&c->kc, 3));
	rr = rmp_keycache_renew(&c->kc, 2);
	KUNIT_ASSERT_NOT_NULL(test, rr);
	KUNIT_ASSERT_PTR_EQ(test, rr, held);
	KUNIT_EXPECT_FALSE(test, held->revoked);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 2);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, chunks_of(10000));
	KUNIT_EXPECT_EQ(test, c->kc.size, 20000);
	next = rmp_keycache_find(&c->kc, 10000, 10, REMOTE);
	KUNIT_ASSERT_PTR_EQ(test, next, held->next);
	KUNIT_EXPECT_EQ(test, next->id, 2);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(next, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(held, 0, 0, &iova, &rkey), 0);

	/* It is told anew, with less access. */
	run.access = RMPOOL_ACCESS_REMOTE_READ;
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 1, 0, chunks_of(10000)), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(next, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(next, 1, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, next->access, RMPOOL_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, held->access, REMOTE);
	expect_error(test, 10000, 10, RMPOOL_ACCESS_REMOTE_WRITE, -EACCES);

	/* What is half told goes, too; and once more, in a chain. */
	KUNIT_ASSERT_EQ(test, add(&c->kc, &run, 0, 0, 1), 0);
	rmp_rregion_put(rmp_keycache_renew(&c->kc, 2));
	KUNIT_EXPECT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_NOT_NULL(test, next->next);
	rmp_rregion_put(next);
	rmp_rregion_put(rr);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 0);
	rmp_rregion_put(held);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 2);
	expect_found(test, 10000, 10000, 2);
#ifndef __KERNEL__
	host_fail_after = 0;
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_keycache_renew(&c->kc, 2)), -ENOMEM);
	expect_found(test, 10000, 10000, 2);
#endif
	rmp_rregion_put(rmp_keycache_remove(&c->kc, 2));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 3);
}

static void test_clear(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_rregion *held;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 2, 10, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 3, 20, 10, 1), 0);
	held = rmp_keycache_find(&c->kc, 5, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	/* The third is still open, and nobody knows of it. */
	rmp_keycache_clear(&c->kc);
	KUNIT_EXPECT_TRUE(test, held->revoked);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 1);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
	KUNIT_EXPECT_EQ(test, c->kc.size, 0);
	expect_error(test, 5, 1, 0, -ENXIO);
	expect_error(test, 25, 1, 0, -ENXIO);
	/* And it can be filled again. */
	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 1, 0, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	expect_found(test, 5, 1, 1);
	rmp_rregion_put(held);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), 2);
}

static void test_list(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmpool_region_desc desc[8];
	u32 i, first, n;
	u64 at = 0;

	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 0, desc, 8), 0);
	/* Told of in another order than that of the offsets. */
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, add_region(&c->kc, i + 1,
						 i * 7 % 20 * 100ULL, i + 1, 1),
				0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	for (first = 0; first < 25; first++) {
		at = 0;
		n = rmp_keycache_list(&c->kc, &at, first, desc, 8);
		KUNIT_ASSERT_EQ(test, n, first >= 20 ? 0 : min(8U, 20 - first));
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_EQ(test, desc[i].offset, (first + i) * 100);
			KUNIT_EXPECT_EQ(test, desc[i].access, REMOTE);
			KUNIT_EXPECT_EQ(test, desc[i].flags, 0);
			KUNIT_EXPECT_EQ(test, (desc[i].length - 1) * 7 % 20,
					first + i);
		}
	}
	at = 0;
	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 0, desc, 0), 0);
	/* On from where the last call ended; nothing is skipped there. */
	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 5, desc, 8), 8);
	KUNIT_EXPECT_EQ(test, desc[7].offset, 1200);
	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 0, desc, 8), 7);
	KUNIT_EXPECT_EQ(test, desc[0].offset, 1300);
	KUNIT_EXPECT_EQ(test, rmp_keycache_list(&c->kc, &at, 0, desc, 8), 0);
}

/* In the kernel a bit of what the limit allows, on the host all of it. */
static void test_many(struct kunit *test)
{
	const u32 nr = many(4000, RMP_RREGIONS_MAX);
	struct cache *c = test->priv;
	u32 i, at;

	/* 7919 is prime: all offsets once, in a wild order. */
	for (i = 0; i < nr; i++) {
		at = (u32)((u64)i * 7919 % nr);
		KUNIT_ASSERT_EQ(test, add_region(&c->kc, at + 1,
						 (u64)at * CHUNK, CHUNK, 1), 0);
	}
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, nr);
	KUNIT_EXPECT_EQ(test, c->kc.size, (u64)nr * CHUNK);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 2 * (u64)nr);
	for (i = 0; i < nr; i++)
		expect_found(test, (u64)i * CHUNK, CHUNK, i + 1);
	for (i = 0; i < nr; i += 2)
		rmp_rregion_put(rmp_keycache_remove(&c->kc, i + 1));
	for (i = 0; i < nr; i++) {
		if (i & 1)
			expect_found(test, (u64)i * CHUNK, CHUNK, i + 1);
		else
			expect_error(test, (u64)i * CHUNK, 1, 0, -ENXIO);
	}
	/* From the end, so that the size is looked for each time. */
	for (i = nr - 1; i > 100; i -= 2) {
		rmp_rregion_put(rmp_keycache_remove(&c->kc, i + 1));
		KUNIT_ASSERT_EQ(test, c->kc.size, (u64)(i - 1) * CHUNK);
	}
	KUNIT_EXPECT_EQ(test, c->kc.nr_regions, 50);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->released), nr - 50);
}

/* The model: of each byte of a small segment, which region it is of. */

#define SPACE		1500
#define IDS		40

struct model {
	struct {
		u32 offset, length;	/* length 0: there is none */
		u32 access;
		u32 devices;		/* with keys */
	} of[IDS];			/* by id, 0 is not used */
	u8 owner[SPACE];
};

static bool model_free(const struct model *m, u32 offset, u32 length)
{
	u32 i;

	for (i = 0; i < length; i++) {
		if (m->owner[offset + i])
			return false;
	}
	return true;
}

static void model_set(struct model *m, u32 id, bool there)
{
	u32 i;

	for (i = 0; i < m->of[id].length; i++)
		m->owner[m->of[id].offset + i] = there ? id : 0;
	if (!there)
		m->of[id].length = 0;
}

/* Tells of a region with keys of the devices of a mask. */
static int tell_region(struct rmp_keycache *kc, const struct rmp_wire_keys *run,
		       u32 devices)
{
	u32 d;
	int ret;

	if (!devices)
		return add(kc, run, 0, 0, 0);
	for (d = 0; d < RMP_WIRE_DEVICES_MAX; d++) {
		if (!(devices >> d & 1))
			continue;
		ret = add(kc, run, d, 0, chunks_of(run->length));
		if (ret)
			return ret;
	}
	return 0;
}

static void random_tell(struct kunit *test, struct model *m)
{
	struct cache *c = test->priv;
	u32 id = 1 + (u32)below(IDS - 1);
	u32 offset, length, access, devices;
	struct rmp_wire_keys run;
	bool known = m->of[id].length, same;
	int ret, want;

	if (known && below(4)) {
		offset = m->of[id].offset;
		length = m->of[id].length;
		access = below(3) ? m->of[id].access : (u32)below(4) << 1;
	} else {
		offset = (u32)below(SPACE - 100);
		length = 1 + (u32)below(100);
		access = (u32)below(4) << 1;
	}
	devices = (u32)next_random();
	devices &= (u32)next_random();
	devices &= (u32)next_random();
	same = known && offset == m->of[id].offset &&
	       length == m->of[id].length;
	want = known ? (same ? 0 : -EBADMSG) :
	       model_free(m, offset, length) ? 0 : -EBADMSG;
	run = a_run(id, offset, length);
	run.access = access;
	ret = tell_region(&c->kc, &run, devices);
	if (!ret && !below(10)) {
		/* The walk is given up before the region is complete. */
		rmp_keycache_begin(&c->kc);
		return;
	}
	if (!ret)
		ret = rmp_keycache_commit(&c->kc);
	KUNIT_ASSERT_EQ(test, ret, want);
	if (ret)
		return;
	m->of[id].offset = offset;
	m->of[id].length = length;
	m->of[id].access = access;
	m->of[id].devices = devices;
	model_set(m, id, true);
}

static void random_find(struct kunit *test, const struct model *m)
{
	struct cache *c = test->priv;
	u32 offset = (u32)below(SPACE), length = (u32)below(40), id;
	u32 access = (u32)below(4) << 1, device;
	struct rmp_rregion *rr;
	u64 iova, left, pos;
	int want = 0;
	u32 rkey;

	id = m->owner[offset];
	if (!id && !length && offset)
		id = m->owner[offset - 1];
	if (!id)
		want = -ENXIO;
	else if (offset + length > m->of[id].offset + m->of[id].length)
		want = -ERANGE;
	else if (access & ~m->of[id].access)
		want = -EACCES;
	rr = rmp_keycache_find(&c->kc, offset, length, access);
	if (want) {
		KUNIT_ASSERT_TRUE(test, IS_ERR(rr));
		KUNIT_ASSERT_EQ(test, (int)PTR_ERR(rr), want);
		return;
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_ASSERT_EQ(test, rr->id, id);
	device = (u32)below(RMP_WIRE_DEVICES_MAX);
	pos = offset - m->of[id].offset;
	left = rmp_rregion_remote(rr, device, pos, &iova, &rkey);
	if (pos < m->of[id].length && m->of[id].devices >> device & 1) {
		KUNIT_ASSERT_EQ(test, left, m->of[id].length - pos);
		KUNIT_ASSERT_EQ(test, iova, BASE + LEAD + pos);
		KUNIT_ASSERT_EQ(test, rkey, key_of(id, device, 0));
	} else {
		KUNIT_ASSERT_EQ(test, left, 0);
	}
	rmp_rregion_put(rr);
}

static void test_random(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_rregion *rr;
	struct model *m;
	u32 n, id, device;
	u64 nr, keys, size;

	m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m);
	for (n = 0; n < many(10000, 300000); n++) {
		switch (below(100)) {
		case 0:
			rmp_keycache_clear(&c->kc);
			memset(m, 0, sizeof(*m));
			break;
		case 1 ... 3:
			device = (u32)below(RMP_WIRE_DEVICES_MAX);
			rmp_keycache_drop_device(&c->kc, device);
			for (id = 1; id < IDS; id++)
				m->of[id].devices &= ~(1U << device);
			break;
		case 4 ... 7:
			id = 1 + (u32)below(IDS - 1);
			rr = rmp_keycache_renew(&c->kc, id);
			KUNIT_ASSERT_EQ(test, !!rr, !!m->of[id].length);
			if (rr)
				rmp_rregion_put(rr);
			m->of[id].devices = 0;
			break;
		case 8 ... 20:
			id = 1 + (u32)below(IDS - 1);
			rr = rmp_keycache_remove(&c->kc, id);
			KUNIT_ASSERT_EQ(test, !!rr, !!m->of[id].length);
			if (rr)
				rmp_rregion_put(rr);
			model_set(m, id, false);
			break;
		case 21 ... 50:
			random_tell(test, m);
			break;
		default:
			random_find(test, m);
		}
		if (n % 16)
			continue;
		nr = 0;
		size = 0;
		for (id = 1; id < IDS; id++) {
			nr += !!m->of[id].length;
			if (m->of[id].length)
				size = max(size, (u64)m->of[id].offset +
						 m->of[id].length);
		}
		KUNIT_ASSERT_EQ(test, c->kc.nr_regions, nr);
		KUNIT_ASSERT_EQ(test, c->kc.size, size);
	}
	/* Keys of dropped devices count until their region is told anew. */
	keys = 0;
	for (id = 1; id < IDS; id++)
		keys += m->of[id].length ? hweight32(m->of[id].devices) : 0;
	KUNIT_EXPECT_GE(test, c->kc.nr_keys, keys);
	rmp_keycache_clear(&c->kc);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
}

#ifdef __KERNEL__
/* Readers beside changes */

#define READERS		3
#define SLOTS		64
#define ROUNDS		6000

struct reader {
	struct cache *c;
	struct completion done;
	bool stop;
	u64 found;
	u64 wrong;
};

static int read_loop(void *arg)
{
	struct reader *r = arg;
	struct rmp_rregion *rr;
	u64 iova, pos, left;
	u32 rkey, slot, device;

	while (!READ_ONCE(r->stop)) {
		slot = get_random_u32() % SLOTS;
		rr = rmp_keycache_find(&r->c->kc, slot * 2 * CHUNK, 2 * CHUNK, 0);
		if (IS_ERR(rr)) {
			r->wrong += PTR_ERR(rr) != -ENXIO;
			cond_resched();
			continue;
		}
		WRITE_ONCE(r->found, r->found + 1);
		r->wrong += rr->id % SLOTS != slot;
		/* One device or two, whatever was told last; never a part. */
		for (device = 0; device < 2; device++) {
			for (pos = 0; pos < rr->length; pos += left) {
				left = rmp_rregion_remote(rr, device, pos, &iova,
							  &rkey);
				if (!left)
					break;
				r->wrong += iova != BASE + LEAD + pos;
				r->wrong += rkey != key_of(rr->id, device,
							   (LEAD + pos) >> SHIFT);
			}
		}
		rmp_rregion_put(rr);
		cond_resched();
	}
	kthread_complete_and_exit(&r->done, 0);
}

/* A processor of the host may stand still while all rounds go by. */
static bool all_found(const struct reader *readers, unsigned long end)
{
	u32 i = 0;

	while (i < READERS && READ_ONCE(readers[i].found))
		i++;
	return i == READERS || time_after(jiffies, end);
}

static void test_readers(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;
	struct cache *c = test->priv;
	struct reader *readers;
	struct rmp_rregion *rr;
	u64 id_of[SLOTS] = {};
	u64 next = SLOTS;
	u32 i, slot;
	int ret = 0;

	readers = kunit_kcalloc(test, READERS, sizeof(*readers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, readers);
	for (i = 0; i < READERS; i++) {
		struct task_struct *task;

		readers[i].c = c;
		init_completion(&readers[i].done);
		task = kthread_run(read_loop, &readers[i], "rmp_reader%u", i);
		if (IS_ERR(task)) {
			complete(&readers[i].done);
			ret = PTR_ERR(task);
		}
	}
	for (i = 0; !ret && (i < ROUNDS || !all_found(readers, end)); i++) {
		slot = get_random_u32() % SLOTS;
		if (id_of[slot] && get_random_u32() % 2) {
			rr = rmp_keycache_remove(&c->kc, id_of[slot]);
			if (!rr) {
				ret = -ENOENT;
				break;
			}
			rmp_rregion_put(rr);
			id_of[slot] = 0;
		} else {
			/* A new region, or other devices for a known one. */
			if (!id_of[slot]) {
				id_of[slot] = next + slot;
				next += SLOTS;
			}
			ret = add_region(&c->kc, id_of[slot], slot * 2 * CHUNK,
					 2 * CHUNK, 1 + get_random_u32() % 2);
			if (!ret)
				ret = rmp_keycache_commit(&c->kc);
		}
		if (i % 2000 == 1999) {
			rmp_keycache_clear(&c->kc);
			memset(id_of, 0, sizeof(id_of));
		}
		cond_resched();
	}
	for (i = 0; i < READERS; i++)
		WRITE_ONCE(readers[i].stop, true);
	for (i = 0; i < READERS; i++) {
		wait_for_completion(&readers[i].done);
		KUNIT_EXPECT_EQ(test, readers[i].wrong, 0);
		KUNIT_EXPECT_GT(test, readers[i].found, 0);
	}
	KUNIT_EXPECT_EQ(test, ret, 0);
	rmp_keycache_clear(&c->kc);
	KUNIT_EXPECT_EQ(test, c->kc.nr_keys, 0);
}

#else

/* Each allocation fails once: the call says so, what was known stays, and the
 * walk can be done again.
 */
static void test_no_memory(struct kunit *test)
{
	struct cache *c = test->priv;
	struct rmp_wire_keys run = a_run(1, 0, 4 * CHUNK);
	unsigned int n, failed = 0;
	int ret = -ENOMEM;

	KUNIT_ASSERT_EQ(test, add_region(&c->kc, 9, 1 << 20, 10, 1), 0);
	KUNIT_ASSERT_EQ(test, rmp_keycache_commit(&c->kc), 0);
	for (n = 0; ret; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		host_fail_after = n;
		ret = add(&c->kc, &run, 2, 0, 5);
		if (!ret)
			ret = add(&c->kc, &run, 3, 0, 5);
		if (!ret)
			ret = rmp_keycache_commit(&c->kc);
		host_fail_after = ULONG_MAX;
		if (!ret)
			break;
		failed++;
		KUNIT_ASSERT_EQ(test, ret, -ENOMEM);
		rmp_keycache_begin(&c->kc);
		expect_error(test, 0, 1, 0, -ENXIO);
		expect_found(test, 1 << 20, 10, 9);
		KUNIT_ASSERT_EQ(test, c->kc.nr_regions, 1);
		KUNIT_ASSERT_EQ(test, c->kc.nr_keys, 1);
		KUNIT_ASSERT_EQ(test, c->kc.size, (1 << 20) + 10);
	}
	/* The region, the keys of each device, both trees; and add() itself. */
	KUNIT_EXPECT_GE(test, failed, 5);
	expect_found(test, 0, 4 * CHUNK, 1);
}

/* Listing goes on where it was when somebody else had to run. */
static void test_list_slow(struct kunit *test)
{
	host_slow = true;
	test_list(test);
	host_slow = false;
}
#endif

static struct kunit_case keycache_cases[] = {
	KUNIT_CASE(test_find),
	KUNIT_CASE(test_ends_of_space),
	KUNIT_CASE(test_remote),
	KUNIT_CASE(test_huge_chunk),
	KUNIT_CASE(test_no_keys),
	KUNIT_CASE(test_stale),
	KUNIT_CASE(test_incomplete),
	KUNIT_CASE(test_order),
	KUNIT_CASE(test_geometry),
	KUNIT_CASE(test_contradiction),
	KUNIT_CASE(test_overlap),
	KUNIT_CASE(test_replace),
	KUNIT_CASE(test_drop_device),
	KUNIT_CASE(test_key_limit),
	KUNIT_CASE(test_region_limit),
	KUNIT_CASE(test_remove),
	KUNIT_CASE(test_renew),
	KUNIT_CASE(test_clear),
	KUNIT_CASE(test_list),
	KUNIT_CASE(test_many),
	KUNIT_CASE(test_random),
#ifdef __KERNEL__
	KUNIT_CASE(test_readers),
#else
	KUNIT_CASE(test_no_memory),
	KUNIT_CASE(test_list_slow),
#endif
	{}
};

static struct kunit_suite keycache_suite = {
	.name = "rmp_keycache",
	.suite_init = suite_begin,
	.init = cache_init,
	.exit = cache_exit,
	.test_cases = keycache_cases,
};

kunit_test_suites(&keycache_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's key cache");
MODULE_LICENSE("GPL");
