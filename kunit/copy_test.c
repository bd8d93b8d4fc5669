// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/copy.c: bytes to and from pages of another process, whatever their place
 * in them, and what comes in between. The address space is played: which pages are
 * there, how many are had at once, and what happens when they were just looked up.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/vmalloc.h>
#include "suite.h"
#include "compat.h"
#include "copy.h"

static bool play_mmget(struct mm_struct *mm);
static bool play_trylock(struct mm_struct *mm);
static long play_pin_of(struct mm_struct *mm, unsigned long addr, unsigned long nr,
			unsigned int flags, struct page **pages);
static int play_pin(unsigned long addr, int nr, unsigned int flags, struct page **pages);
static int play_get_fast(unsigned long addr, int nr, unsigned int flags,
			 struct page **pages);
static void play_put(struct page *page);
static void play_unpin(struct page **pages, unsigned long nr);
static void play_unpin_dirty(struct page **pages, unsigned long nr, bool dirty);

#define mmget_not_zero			play_mmget
#define mmput(mm)			((void)(mm))
#define mmap_read_lock(mm)		((void)(mm))
#define mmap_read_trylock		play_trylock
#define mmap_read_unlock(mm)		((void)(mm))
#define rmp_pin_pages_of		play_pin_of
#define pin_user_pages_fast		play_pin
#define get_user_pages_fast_only	play_get_fast
#define put_page			play_put
#define unpin_user_pages		play_unpin
#define unpin_user_pages_dirty_lock	play_unpin_dirty
#include "copy.c"

#define BASE		0x7000000UL
#define PAGES		50UL
#define SIZE		(PAGES * PAGE_SIZE)

static struct {
	u8 *memory;		/* of the owner, by vmalloc() */
	u8 *ours;
	bool no_mm;
	bool locked;		/* mmap_lock, for writing */
	unsigned long hole;	/* page that is not there, from 1 */
	unsigned long at_once;	/* pages that are had with one call, 0: all */
	long error;		/* of a call */
	unsigned long close_at;	/* page with which the gate is closed, from 1 */
	struct rmp_gate gate;
	unsigned int flags;	/* of the last call */
	bool fast;		/* that call takes no lock */
	long held;
	unsigned long dirty;
} world;

static bool play_mmget(struct mm_struct *mm)
{
	return !world.no_mm;
}

static bool play_trylock(struct mm_struct *mm)
{
	return !world.locked;
}

static long play_pin_of(struct mm_struct *mm, unsigned long addr, unsigned long nr,
			unsigned int flags, struct page **pages)
{
	unsigned long first = (addr - BASE) >> PAGE_SHIFT, n;

	world.flags = flags;
	if (world.error)
		return world.error;
	if (world.at_once)
		nr = min(nr, world.at_once);
	for (n = 0; n < nr && first + n < PAGES && first + n + 1 != world.hole; n++) {
		pages[n] = vmalloc_to_page(world.memory + (first + n) * PAGE_SIZE);
		if (first + n + 1 == world.close_at)
			rmp_gate_close(&world.gate, -ESTALE);
	}
	world.held += n;
	return n ?: -EFAULT;
}

static int play_pin(unsigned long addr, int nr, unsigned int flags, struct page **pages)
{
	world.fast = false;
	return play_pin_of(NULL, addr, nr, flags, pages);
}

static int play_get_fast(unsigned long addr, int nr, unsigned int flags,
			 struct page **pages)
{
	world.fast = true;
	return max(play_pin_of(NULL, addr, nr, flags, pages), 0L);
}

static void play_put(struct page *page)
{
	world.held--;
}

static void play_unpin(struct page **pages, unsigned long nr)
{
	world.held -= nr;
}

static void play_unpin_dirty(struct page **pages, unsigned long nr, bool dirty)
{
	world.held -= nr;
	world.dirty += dirty ? nr : 0;
}

static int copy_init(struct kunit *test)
{
	suite_case(test);
	memset(&world, 0, sizeof(world));
	rmp_gate_init(&world.gate);
	world.memory = vzalloc(SIZE);
	world.ours = vmalloc(SIZE);
	KUNIT_ASSERT_NOT_NULL(test, world.memory);
	KUNIT_ASSERT_NOT_NULL(test, world.ours);
	random_bytes(world.ours, SIZE);
	return 0;
}

static void copy_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, world.held, 0);
	vfree(world.memory);
	vfree(world.ours);
}

static int out(u64 from, u64 length)
{
	return rmp_copy_out(NULL, BASE + from, world.ours + from, length, &world.gate);
}

/* The owner has our bytes there, and none around it. */
static bool only(u64 from, u64 to)
{
	return !memcmp(world.memory + from, world.ours + from, to - from) &&
	       (!from || !memchr_inv(world.memory, 0, from)) &&
	       (to == SIZE || !memchr_inv(world.memory + to, 0, SIZE - to));
}

static void test_out(struct kunit *test)
{
	u64 from, length;
	u32 i;

	for (i = 0; i < 300; i++) {
		from = below(SIZE);
		length = 1 + below(i % 2 ? SIZE - from : min_t(u64, SIZE - from, 9000));
		world.at_once = below(20);
		memset(world.memory, 0, SIZE);
		world.dirty = 0;
		KUNIT_EXPECT_EQ(test, out(from, length), 0);
		KUNIT_EXPECT_TRUE(test, only(from, from + length));
		KUNIT_EXPECT_EQ(test, world.flags, FOLL_WRITE);
		KUNIT_EXPECT_EQ(test, world.dirty, ((from + length - 1) >> PAGE_SHIFT) -
						   (from >> PAGE_SHIFT) + 1);
		KUNIT_EXPECT_EQ(test, world.held, 0);
	}
}

/* It ends at once, and what was written is what was allowed by then. */
static void test_out_ends(struct kunit *test)
{
	world.hole = 30;
	KUNIT_EXPECT_EQ(test, out(5, SIZE - 5), -EFAULT);
	KUNIT_EXPECT_TRUE(test, only(5, 29 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, out(29 * PAGE_SIZE, 1), -EFAULT);
	world.hole = 0;
	world.error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, out(0, 1), -ENOMEM);
	world.error = 0;
	world.no_mm = true;
	KUNIT_EXPECT_EQ(test, out(0, 1), -ECANCELED);
	world.no_mm = false;

	/* Pages that are held already are not written any more. */
	memset(world.memory, 0, SIZE);
	world.at_once = 4;
	world.close_at = 10;
	KUNIT_EXPECT_EQ(test, out(0, SIZE), -ESTALE);
	KUNIT_EXPECT_TRUE(test, only(0, 8 * PAGE_SIZE));
	/* And that is the word, also if they are gone. */
	rmp_gate_close(&world.gate, -ECANCELED);
	world.hole = 1;
	KUNIT_EXPECT_EQ(test, out(0, 1), -ESTALE);
	world.hole = 0;
	KUNIT_EXPECT_EQ(test, out(0, 1), -ESTALE);
}

static void test_in(struct kunit *test)
{
	u64 from, length;
	u32 i;

	random_bytes(world.memory, SIZE);
	for (i = 0; i < 300; i++) {
		from = below(SIZE);
		length = 1 + below(SIZE - from);
		world.at_once = below(20);
		memset(world.ours, 0, SIZE);
		KUNIT_EXPECT_EQ(test, rmp_copy_in_beside(NULL, world.ours, BASE + from, length),
				0);
		KUNIT_EXPECT_TRUE(test, same_bytes(world.ours, world.memory + from, length));
		KUNIT_EXPECT_TRUE(test, length == SIZE ||
				  !memchr_inv(world.ours + length, 0, SIZE - length));
		KUNIT_EXPECT_EQ(test, world.flags, FOLL_NOFAULT);
		KUNIT_EXPECT_EQ(test, world.held, 0);
	}
	world.hole = 3;
	KUNIT_EXPECT_EQ(test, rmp_copy_in_beside(NULL, world.ours, BASE, SIZE), -EAGAIN);
	KUNIT_EXPECT_EQ(test, rmp_copy_in_beside(NULL, world.ours, BASE, 2 * PAGE_SIZE), 0);
	/* Somebody changes the address space, and may take long. */
	world.locked = true;
	KUNIT_EXPECT_EQ(test, rmp_copy_in_beside(NULL, world.ours, BASE, 2 * PAGE_SIZE),
			-EAGAIN);
}

/* Looks at each page, and changes none. */
static void test_probe(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 20; i++) {
		world.at_once = i;
		KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE + 5, SIZE - 5, true, true), 0);
		KUNIT_EXPECT_EQ(test, world.flags, FOLL_WRITE);
		KUNIT_EXPECT_FALSE(test, world.fast);
		KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE + 5, SIZE - 5, true, false), 0);
		KUNIT_EXPECT_EQ(test, world.flags, FOLL_WRITE);
		KUNIT_EXPECT_TRUE(test, world.fast);
	}
	for (i = 1; i <= PAGES; i++) {
		world.hole = i;
		KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE + 5, SIZE - 5, true, true), -EFAULT);
		KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE + 5, SIZE - 5, true, false), -EAGAIN);
		if (i > 1)
			KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE + 5, (i - 1) * PAGE_SIZE - 5,
							     true, true), 0);
	}
	world.error = -EINTR;
	KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE, 1, true, true), -EINTR);
	KUNIT_EXPECT_EQ(test, rmp_copy_probe(BASE, 1, true, false), -EAGAIN);
	/* Nobody's addresses. */
	KUNIT_EXPECT_EQ(test, rmp_copy_probe(~0ULL, 1, true, true), -EFAULT);
	KUNIT_EXPECT_EQ(test, rmp_copy_probe(~0ULL - 10, 100, false, true), -EFAULT);
	KUNIT_EXPECT_EQ(test, world.dirty, 0);
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(test_out),
	KUNIT_CASE(test_out_ends),
	KUNIT_CASE(test_in),
	KUNIT_CASE(test_probe),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "rmp_copy",
	.suite_init = suite_begin,
	.init = copy_init,
	.exit = copy_exit,
	.test_cases = copy_cases,
};

kunit_test_suites(&copy_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's copies of memory of processes");
MODULE_LICENSE("GPL");
