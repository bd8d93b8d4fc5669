// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/ring.c: slots are reserved and used, counters wrap, the ring is
 * full and is not written beyond that, and a reader that lies about what it has
 * read harms only itself. The process is played by the test, which writes to
 * the shared area as a process would.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include "suite.h"
#include "ring.c"

static struct rmp_ring *make_ring(struct kunit *test, u32 entries)
{
	struct rmpool_ring_setup arg = { .entries = entries, .eventfd = -1 };
	struct rmp_ring *ring = rmp_ring_create(&arg);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ring));
	test->priv = ring;
	return ring;
}

static void ring_exit(struct kunit *test)
{
	rmp_ring_destroy(test->priv);
}

static void complete_one(struct rmp_ring *ring, u64 cookie)
{
	struct rmpool_completion c = { .cookie = cookie, .bytes = ~cookie };

	rmp_ring_complete(ring, &c);
}

/* What a process does: reads an entry, then gives its place back. */
static u64 read_one(struct kunit *test, struct rmp_ring *ring)
{
	u32 head = READ_ONCE(*ring->head);
	struct rmpool_completion *c = &ring->entries[head & ring->mask];
	u64 cookie;

	/* Pairs with the release of the kernel: entry before counter. */
	KUNIT_ASSERT_NE(test, head, smp_load_acquire(ring->shared_tail));
	cookie = c->cookie;
	KUNIT_ASSERT_EQ(test, c->bytes, ~cookie);
	/* Its place may be used once the entry was read. */
	smp_store_release(ring->head, head + 1);
	return cookie;
}

static void test_setup(struct kunit *test)
{
	static const u32 bad[] = {
		0, 1, RMPOOL_RING_MIN / 2, RMPOOL_RING_MIN + 1, 1000,
		RMPOOL_RING_MAX + 1, RMPOOL_RING_MAX * 2, 1U << 31, ~0U,
	};
	struct rmpool_ring_setup arg = { .eventfd = -1 };
	struct rmp_ring *ring;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.entries = bad[i];
		memset(&arg.error, 0, sizeof(arg.error));
		KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_ring_create(&arg)), -EINVAL);
		KUNIT_EXPECT_EQ(test, arg.error.reason, RMPOOL_REASON_RING);
		KUNIT_EXPECT_EQ(test, arg.error.limit, RMPOOL_RING_MAX);
		KUNIT_EXPECT_EQ(test, arg.error.need, bad[i]);
	}
	arg.entries = RMPOOL_RING_MIN;
	arg.eventfd = 1 << 30;
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_ring_create(&arg)), -EBADF);
	arg.eventfd = -1;
	for (i = RMPOOL_RING_MIN; i <= RMPOOL_RING_MAX; i *= 2) {
		arg.entries = i;
		ring = rmp_ring_create(&arg);
		KUNIT_ASSERT_FALSE(test, IS_ERR(ring));
		KUNIT_EXPECT_EQ(test, rmp_ring_entries(ring), i);
		KUNIT_EXPECT_EQ(test, arg.mmap_offset, 0);
		/* All of it lies in the mapping, and the counters apart. */
		KUNIT_EXPECT_EQ(test, arg.mmap_size % PAGE_SIZE, 0);
		KUNIT_EXPECT_GE(test, arg.mmap_size, arg.entries_offset +
				i * sizeof(struct rmpool_completion));
		KUNIT_EXPECT_GE(test, arg.tail_offset, arg.head_offset + 64);
		KUNIT_EXPECT_GE(test, arg.entries_offset, arg.tail_offset + 64);
		KUNIT_EXPECT_EQ(test, *ring->head, 0);
		KUNIT_EXPECT_EQ(test, *ring->shared_tail, 0);
		rmp_ring_destroy(ring);
	}
	rmp_ring_destroy(NULL);
}

static void test_reserve(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 8);
	u64 i;

	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 0), 0);
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 3), 3);
	KUNIT_EXPECT_FALSE(test, rmp_ring_poll(ring, NULL, NULL));
	/* A part is given when not all fits, and nothing when nothing does. */
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 4096), 5);
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 1), 0);
	rmp_ring_unreserve(ring, 2);
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, ~0U), 2);
	for (i = 0; i < 8; i++)
		complete_one(ring, i);
	/* What was completed keeps its place until it is read. */
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 1), 0);
	KUNIT_EXPECT_TRUE(test, rmp_ring_poll(ring, NULL, NULL));
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, read_one(test, ring), i);
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 5);
	rmp_ring_unreserve(ring, 5);
	for (; i < 8; i++)
		KUNIT_EXPECT_EQ(test, read_one(test, ring), i);
	KUNIT_EXPECT_FALSE(test, rmp_ring_poll(ring, NULL, NULL));
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 9), 8);
}

/* The counters run through all 32 bits and over the end. */
static void test_wrap(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 8);
	u64 given = 0, read = 0;
	u32 i, n;

	ring->tail = U32_MAX - 20;
	*ring->head = U32_MAX - 20;
	*ring->shared_tail = U32_MAX - 20;
	for (i = 0; i < 20; i++) {
		n = rmp_ring_reserve(ring, 1 + i % 8);
		KUNIT_ASSERT_EQ(test, n, 1 + i % 8);
		while (n--)
			complete_one(ring, given++);
		KUNIT_ASSERT_EQ(test, *ring->shared_tail,
				U32_MAX - 20 + (u32)given);
		while (read < given)
			KUNIT_ASSERT_EQ(test, read_one(test, ring), read++);
	}
	KUNIT_EXPECT_GT(test, given, 40);
	KUNIT_EXPECT_LT(test, *ring->head, 1000);
	/* Full, just over the end. */
	ring->tail = 3;
	*ring->head = 3 - 8;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 1), 0);
	*ring->head = 3 - 7;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 2), 1);
}

/* Reserved, completed and read at random, against counters of our own. */
static void test_random(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 64);
	u64 given = 0, read = 0;
	u32 reserved = 0, want, got, n, i;

	for (i = 0; i < 15000; i++) {
		switch (below(4)) {
		case 0:
			want = (u32)below(80);
			got = rmp_ring_reserve(ring, want);
			KUNIT_ASSERT_EQ(test, got, min_t(u64, want, 64 -
							 (given - read) -
							 reserved));
			reserved += got;
			break;
		case 1:
			n = (u32)below(reserved + 1);
			rmp_ring_unreserve(ring, n);
			reserved -= n;
			break;
		case 2:
			for (n = (u32)below(reserved + 1); n; n--, reserved--)
				complete_one(ring, given++);
			break;
		default:
			for (n = (u32)below(given - read + 1); n; n--)
				KUNIT_ASSERT_EQ(test, read_one(test, ring),
						read++);
		}
		KUNIT_ASSERT_EQ(test, !!rmp_ring_poll(ring, NULL, NULL),
				given != read);
	}
	KUNIT_EXPECT_GT(test, given, 1000);
}

/* The area is the process's to write to. */
static void test_lies(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 8);
	u32 i;

	/* It has read what was never written: no slot is given for that. */
	*ring->head = 1;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 0);
	*ring->head = U32_MAX / 2;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 0);
	/* It is further behind than the ring is long. */
	*ring->head = 0U - 9;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 0);
	/* The truth again: nothing was lost by it. */
	*ring->head = 0;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 8);

	/* Our own counters are not taken from there. */
	*ring->shared_tail = 12345;
	complete_one(ring, 1);
	KUNIT_EXPECT_EQ(test, *ring->shared_tail, 1);
	KUNIT_EXPECT_EQ(test, ring->entries[0].cookie, 1);
	/* A lie while completions are on their way: the slots are there. */
	*ring->head = U32_MAX;
	for (i = 2; i <= 8; i++)
		complete_one(ring, i);
	KUNIT_EXPECT_EQ(test, *ring->shared_tail, 8);
	KUNIT_EXPECT_EQ(test, ring->reserved, 0);

	/* It says all is read, and it is not: only its own are written over. */
	*ring->head = 8;
	KUNIT_EXPECT_EQ(test, rmp_ring_reserve(ring, 8), 8);
	complete_one(ring, 9);
	KUNIT_EXPECT_EQ(test, ring->entries[0].cookie, 9);
	rmp_ring_unreserve(ring, 7);
}

/* Any value at any time: no more slots than there are, no write outside. */
static void test_random_lies(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 16);
	u32 reserved = 0, tail = 0, head, unread, got, i;

	for (i = 0; i < 15000; i++) {
		switch (below(3)) {
		case 0:
			head = tail - (u32)below(40) + 4;
			break;
		case 1:
			head = (u32)next_random();
			break;
		default:
			head = tail;
		}
		WRITE_ONCE(*ring->head, head);
		WRITE_ONCE(*ring->shared_tail, (u32)next_random());
		unread = min(tail - head, 16U);
		got = rmp_ring_reserve(ring, (u32)below(20));
		KUNIT_ASSERT_LE(test, unread + reserved + got,
				max(16U, unread + reserved));
		reserved += got;
		while (reserved && below(3)) {
			complete_one(ring, tail);
			KUNIT_ASSERT_EQ(test, ring->entries[tail & 15].cookie,
					tail);
			tail++;
			reserved--;
			KUNIT_ASSERT_EQ(test, *ring->shared_tail, tail);
		}
		KUNIT_ASSERT_EQ(test, ring->reserved, reserved);
	}
	KUNIT_EXPECT_GT(test, tail, 1000);
}

static void test_wait(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 8);
	struct rmpool_wait arg = { .min = 1, .timeout_ns = 0 };

	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -ETIME);
	KUNIT_EXPECT_EQ(test, arg.available, 0);
	arg.timeout_ns = 20 * NSEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -ETIME);
	KUNIT_EXPECT_EQ(test, arg.timeout_ns, 0);

	KUNIT_ASSERT_EQ(test, rmp_ring_reserve(ring, 2), 2);
	complete_one(ring, 1);
	/* Without a limit: it must not wait at all for what is there. */
	arg.timeout_ns = -1;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), 0);
	KUNIT_EXPECT_EQ(test, arg.available, 1);
	KUNIT_EXPECT_EQ(test, arg.timeout_ns, -1);
	arg.timeout_ns = S64_MAX;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), 0);
	KUNIT_EXPECT_GT(test, arg.timeout_ns, S64_MAX / 2);
	/* Two are asked for, one is there. */
	arg.min = 2;
	arg.timeout_ns = 1;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -ETIME);
	KUNIT_EXPECT_EQ(test, arg.available, 1);
	complete_one(ring, 2);
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), 0);
	KUNIT_EXPECT_EQ(test, arg.available, 2);

	arg.min = 0;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -EINVAL);
	arg.min = 9;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -EINVAL);
	arg.min = 1;
	arg.flags = 1;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -EINVAL);
	arg.flags = 0;
	arg.reserved = 1;
	KUNIT_EXPECT_EQ(test, rmp_ring_wait(ring, &arg), -EINVAL);
}

/* Writers beside a reader */

#define WRITERS		3
#define EACH		2000

struct writer {
	struct rmp_ring *ring;
	u64 number;
	struct completion done;
};

static int write_loop(void *arg)
{
	struct writer *w = arg;
	u64 i = 0;

	while (i < EACH) {
		u32 n = rmp_ring_reserve(w->ring, 1 + get_random_u32() % 8);

		for (; n; n--) {
			if (i < EACH)
				complete_one(w->ring, w->number << 32 | i++);
			else
				rmp_ring_unreserve(w->ring, 1);
		}
		cond_resched();
	}
	kthread_complete_and_exit(&w->done, 0);
}

/* Each completion arrives once and whole, those of one writer in its order. */
static void test_writers(struct kunit *test)
{
	struct rmp_ring *ring = make_ring(test, 16);
	struct rmpool_wait arg;
	struct writer *writers;
	u64 next[WRITERS] = {};
	u32 i, total, wrong = 0;
	u64 cookie;

	writers = kunit_kcalloc(test, WRITERS, sizeof(*writers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, writers);
	for (i = 0; i < WRITERS; i++) {
		struct task_struct *task;

		writers[i].ring = ring;
		writers[i].number = i;
		init_completion(&writers[i].done);
		task = kthread_run(write_loop, &writers[i], "rmp_writer%u", i);
		KUNIT_EXPECT_FALSE(test, IS_ERR(task));
		if (IS_ERR(task))
			complete(&writers[i].done);
	}
	for (total = 0; total < WRITERS * EACH; total++) {
		arg = (struct rmpool_wait){
			.min = 1, .timeout_ns = 60LL * NSEC_PER_SEC,
		};
		if (rmp_ring_wait(ring, &arg)) {
			KUNIT_FAIL(test, "nothing came after %u", total);
			break;
		}
		cookie = ring->entries[*ring->head & ring->mask].cookie;
		wrong += ring->entries[*ring->head & ring->mask].bytes != ~cookie;
		/* As in read_one(). */
		smp_store_release(ring->head, *ring->head + 1);
		if (cookie >> 32 < WRITERS)
			wrong += (u32)cookie != next[cookie >> 32]++;
		else
			wrong++;
	}
	for (i = 0; i < WRITERS; i++)
		wait_for_completion(&writers[i].done);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, ring->reserved, 0);
	KUNIT_EXPECT_FALSE(test, rmp_ring_poll(ring, NULL, NULL));
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(test_setup),
	KUNIT_CASE(test_reserve),
	KUNIT_CASE(test_wrap),
	KUNIT_CASE(test_random),
	KUNIT_CASE(test_lies),
	KUNIT_CASE(test_random_lies),
	KUNIT_CASE(test_wait),
	KUNIT_CASE(test_writers),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "rmp_ring",
	.suite_init = suite_begin,
	.init = suite_case,
	.exit = ring_exit,
	.test_cases = ring_cases,
};

kunit_test_suites(&ring_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's completion ring");
MODULE_LICENSE("GPL");
