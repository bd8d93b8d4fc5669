// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/fit.c, against a model that knows no arithmetic of bits: a page
 * size is possible if every byte that a page has in the range is at the place in
 * memory that the first of them says, and pages begin at multiples of their size
 * on both sides.
 */
#include "suite.h"
#include "fit.c"

/* The unit of the model: sizes and jumps are multiples of it. */
#define UNIT		4096ULL
#define UNITS		300

static u64 memory[UNITS];	/* address of each unit of the range */

static bool possible(u64 start, u32 nr, u64 size)
{
	u64 iova, page, first;
	u32 i;

	for (i = 0; i < nr; i++) {
		iova = start + i * UNIT;
		page = iova / size * size;
		if (memory[i] % size != iova % size)
			return false;
		/* The first unit of the range that this page has. */
		first = page > start ? (page - start) / UNIT : 0;
		if (memory[i] - memory[first] != (i - first) * UNIT)
			return false;
	}
	return true;
}

static u64 pages_of(u64 start, u32 nr, u64 size)
{
	u64 end = start + nr * UNIT;

	return (end + size - 1) / size - start / size;
}

static void check(struct kunit *test, u64 start, u32 nr, u64 sizes)
{
	u64 size, best = 0, fewest = ~0ULL;
	struct rmp_fit fit;
	u32 i, shift;

	rmp_fit_begin(&fit, start);
	for (i = 0; i < nr; i++)
		rmp_fit_add(&fit, memory[i], UNIT);
	shift = rmp_fit_shift(&fit, sizes);

	for (size = UNIT; size <= UNIT << 20; size *= 2) {
		if (!(sizes & size) || !possible(start, nr, size))
			continue;
		if (pages_of(start, nr, size) < fewest) {
			fewest = pages_of(start, nr, size);
			best = size;
		}
	}
	KUNIT_ASSERT_EQ(test, shift ? 1ULL << shift : 0, best);
	if (shift)
		KUNIT_ASSERT_EQ(test, rmp_fit_pages(&fit, shift), fewest);
}

static void test_random(struct kunit *test)
{
	u32 n, i, nr, run, align;
	u64 start, at = 0, sizes;

	for (n = 0; n < many(3000, 100000); n++) {
		nr = 1 + (u32)below(below(4) ? 20 : UNITS);
		start = (1 + below(1000)) * UNIT;
		align = (u32)below(9);
		for (i = 0, run = 0; i < nr; i++, at += UNIT) {
			/* Jumps are mostly where pages could begin. */
			if (!run--) {
				at = (below(1 << 12) << align) * UNIT;
				at += (start / UNIT + i) % (1U << align) * UNIT;
				if (!below(8))
					at += UNIT;
				run = (u32)below(3) * (1U << align);
				if (run)
					run -= (start / UNIT + i) % (1U << align);
			}
			memory[i] = at;
		}
		sizes = (below(2) ? next_random() : ~0ULL) & ((UNIT << 21) - 1) &
			~(UNIT - 1);
		check(test, start, nr, sizes | (below(4) ? UNIT : 0));
	}
}

/* Where the first byte is in its page does not matter, but must be the same. */
static void test_first_byte(struct kunit *test)
{
	struct rmp_fit fit;

	rmp_fit_begin(&fit, 0x200123);
	rmp_fit_add(&fit, 0x7100123, 0x1ffedd);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, 0x201000), 12);
	KUNIT_EXPECT_EQ(test, rmp_fit_pages(&fit, 12), 512);
	rmp_fit_begin(&fit, 0x200123);
	rmp_fit_add(&fit, 0x7200123, 0x1ffedd);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, 0x201000), 21);
	KUNIT_EXPECT_EQ(test, rmp_fit_pages(&fit, 21), 1);
	rmp_fit_begin(&fit, 0x200123);
	rmp_fit_add(&fit, 0x7200124, 5);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, ~0xfffULL), 0);
}

/* A page larger than needed is of no use. */
static void test_no_larger_than_needed(struct kunit *test)
{
	struct rmp_fit fit;

	rmp_fit_begin(&fit, 1ULL << 40);
	rmp_fit_add(&fit, 1ULL << 50, 1);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, ~0xfffULL), 12);
	rmp_fit_begin(&fit, 1ULL << 40);
	rmp_fit_add(&fit, 1ULL << 50, 3 * UNIT);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, ~0xfffULL), 14);
	KUNIT_EXPECT_EQ(test, rmp_fit_pages(&fit, 14), 1);
	/* Up to the ends of 64 bits. */
	rmp_fit_begin(&fit, 0);
	rmp_fit_add(&fit, 0, ~0ULL);
	KUNIT_EXPECT_EQ(test, rmp_fit_shift(&fit, 1ULL << 63 | UNIT), 63);
	KUNIT_EXPECT_EQ(test, rmp_fit_pages(&fit, 63), 2);
}

static struct kunit_case fit_cases[] = {
	KUNIT_CASE(test_random),
	KUNIT_CASE(test_first_byte),
	KUNIT_CASE(test_no_larger_than_needed),
	{}
};

static struct kunit_suite fit_suite = {
	.name = "rmp_fit",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = fit_cases,
};

kunit_test_suites(&fit_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's page sizes");
MODULE_LICENSE("GPL");
