// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/slice.c, against a model that looks at every byte: which bytes
 * share a chunk on both sides. Slices must cover a request once, in order, never
 * cross a border, and be as long as the borders and the limit allow.
 */
#include "suite.h"
#include "slice.c"

#define GIB		1073741824ULL

/* The chunk that byte @pos of a span is in, told without any arithmetic that
 * slice.c uses.
 */
static u64 chunk_of(const struct rmp_span *span, u64 pos)
{
	u64 size = 1, n;

	for (n = 0; n < span->shift; n++)
		size += size;
	return (span->lead + pos) / size;
}

/* Cuts all of it and compares each slice with the model. Returns how many. */
static u64 check_request(struct kunit *test, const struct rmp_span *local,
			 const struct rmp_span *remote, u64 from, u64 length,
			 u32 max)
{
	u64 pos = from, left = length, nr = 0;

	while (left) {
		u32 len = rmp_slice_length(left, rmp_span_rest(local, pos),
					   rmp_span_rest(remote, pos), max);
		u64 want = 1;

		while (want < left && want < max &&
		       chunk_of(local, pos + want) == chunk_of(local, pos) &&
		       chunk_of(remote, pos + want) == chunk_of(remote, pos))
			want++;
		KUNIT_ASSERT_EQ(test, len, want);
		pos += len;
		left -= len;
		nr++;
	}
	KUNIT_ASSERT_EQ(test, pos, from + length);
	return nr;
}

static void test_random_layouts(struct kunit *test)
{
	u32 n;

	for (n = 0; n < many(2000, 50000); n++) {
		struct rmp_span local, remote;
		u64 from, length, nr;
		u32 max;

		local.shift = (u32)below(9);
		remote.shift = (u32)below(9);
		local.lead = below(1ULL << local.shift);
		remote.lead = below(1ULL << remote.shift);
		local.length = 1 + below(700);
		remote.length = local.length;
		max = 1 + (u32)below(300);
		from = below(local.length);
		length = 1 + below(local.length - from);
		check_request(test, &local, &remote, from, length, max);
		nr = check_request(test, &local, &remote, 0, local.length, max);
		KUNIT_ASSERT_EQ(test, rmp_slice_count(&local, &remote, max), nr);
	}
}

/* Each lead against each, over three chunks of both sides. */
static void test_all_borders(struct kunit *test)
{
	struct rmp_span local, remote;
	u32 a, b;

	for (a = 0; a <= 4; a++) {
		for (b = 0; b <= 4; b++) {
			local.shift = a;
			remote.shift = b;
			local.length = 3ULL << (a > b ? a : b);
			remote.length = local.length;
			for (local.lead = 0; local.lead < 1ULL << a;
			     local.lead++) {
				for (remote.lead = 0; remote.lead < 1ULL << b;
				     remote.lead++)
					check_request(test, &local, &remote, 0,
						      local.length, 7);
			}
		}
	}
}

static void test_ends(struct kunit *test)
{
	struct rmp_span span = { .lead = 5, .length = 100, .shift = 6 };

	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 0), 59);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 58), 1);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 59), 41);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 99), 1);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 100), 0);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 101), 0);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, ~0ULL), 0);
}

static void test_nothing_and_one_byte(struct kunit *test)
{
	struct rmp_span one = { .lead = 4095, .length = 1, .shift = 12 };
	struct rmp_span none = { .lead = 0, .length = 0, .shift = 12 };

	KUNIT_EXPECT_EQ(test, rmp_slice_length(0, 4096, 4096, 1U << 20), 0);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(9, 0, 4096, 1U << 20), 0);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(9, 4096, 0, 1U << 20), 0);
	KUNIT_EXPECT_EQ(test, rmp_slice_count(&none, &none, 1U << 20), 0);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(1, 4096, 4096, 1U << 20), 1);
	KUNIT_EXPECT_EQ(test, rmp_slice_count(&one, &one, 1U << 20), 1);
	/* A side that is shorter than it should be ends it, not hangs it. */
	KUNIT_EXPECT_EQ(test, rmp_slice_count(&one, &none, 1U << 20), 0);
}

/* Lengths that do not fit in 32 bits must not be cut off. */
static void test_no_truncation(struct kunit *test)
{
	const u32 mib = 1U << 20;

	KUNIT_EXPECT_EQ(test, rmp_slice_length(4 * GIB, 4 * GIB, 4 * GIB, mib),
			mib);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(4 * GIB + 1, 1ULL << 40,
					       1ULL << 40, 1U << 30), 1U << 30);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(~0ULL, ~0ULL, ~0ULL, ~0U), ~0U);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(~0ULL, 4 * GIB + 3, ~0ULL, ~0U),
			~0U);
	/* A border nearer than the end, but not than its lower 32 bits. */
	KUNIT_EXPECT_EQ(test, rmp_slice_length(4 * GIB + 16, 100, 4 * GIB, mib),
			100);
	KUNIT_EXPECT_EQ(test, rmp_slice_length(4 * GIB + 16, 4 * GIB, 100, mib),
			100);
}

/* The largest chunks that a peer may have, and addresses at the end of all. */
static void test_largest_chunks(struct kunit *test)
{
	struct rmp_span span = {
		.lead = (1ULL << 40) - 1, .length = 3ULL << 40, .shift = 40,
	};

	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 0), 1);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, 1), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, (1ULL << 40) + 1),
			1ULL << 40);
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, (2ULL << 40) + 1),
			(1ULL << 40) - 1);
	span.lead = 0;
	span.length = ~0ULL;
	KUNIT_EXPECT_EQ(test, rmp_span_rest(&span, ~0ULL - 1), 1);
}

/* The slice at @pos of a request for all of it, too large to look at every byte:
 * it stays in its chunks, and ends for a reason, the limit, a border, or the end.
 */
static u32 check_slice(struct kunit *test, const struct rmp_span *local,
		       const struct rmp_span *remote, u64 pos, u32 max)
{
	u64 left = local->length - pos;
	u32 len = rmp_slice_length(left, rmp_span_rest(local, pos),
				   rmp_span_rest(remote, pos), max);
	u64 last = pos + len - 1;

	KUNIT_ASSERT_GT(test, len, 0);
	KUNIT_ASSERT_LE(test, len, max);
	KUNIT_ASSERT_LE(test, len, left);
	KUNIT_ASSERT_EQ(test, chunk_of(local, pos), chunk_of(local, last));
	KUNIT_ASSERT_EQ(test, chunk_of(remote, pos), chunk_of(remote, last));
	KUNIT_ASSERT_TRUE(test, len == max || len == left ||
			  chunk_of(local, last + 1) != chunk_of(local, last) ||
			  chunk_of(remote, last + 1) != chunk_of(remote, last));
	return len;
}

/* Around the first borders of @at. */
static void check_around(struct kunit *test, const struct rmp_span *at,
			 const struct rmp_span *local,
			 const struct rmp_span *remote, u32 max)
{
	u64 border, pos;
	u32 n;

	for (n = 1; n <= 3; n++) {
		border = ((u64)n << at->shift) - at->lead;
		for (pos = border - 1; pos <= border + 1; pos++) {
			if (pos < local->length)
				check_slice(test, local, remote, pos, max);
		}
	}
}

/* Chunks of each size that a segment may have, against each, from the beginning
 * of a chunk, its end, and between.
 */
static void test_chunk_layouts(struct kunit *test)
{
	static const u32 limits[] = { 4096, 1U << 20, 1U << 30 };
	struct rmp_span local, remote;
	u32 a, b, i, max;

	for (a = 12; a <= 40; a += many(4, 1)) {
		for (b = 12; b <= 40; b += many(4, 1)) {
			local.shift = a;
			remote.shift = b;
			local.length = 3ULL << (a > b ? a : b);
			remote.length = local.length;
			for (i = 0; i < 9; i++) {
				const u64 leads[2][3] = {
					{ 0, (1ULL << a) - 1, below(1ULL << a) },
					{ 0, (1ULL << b) - 1, below(1ULL << b) },
				};

				local.lead = leads[0][i % 3];
				remote.lead = leads[1][i / 3];
				max = limits[below(3)];
				check_around(test, &local, &local, &remote, max);
				check_around(test, &remote, &local, &remote, max);
			}
		}
	}
}

/* 16 GiB at odd addresses; one side's chunks are @shift bits, the other's 1 GiB. */
static void sixteen_gib(struct kunit *test, u32 shift)
{
	struct rmp_span local = {
		.lead = 100, .length = 16 * GIB, .shift = shift,
	};
	struct rmp_span remote = {
		.lead = 777777, .length = 16 * GIB, .shift = 30,
	};
	u64 pos = 0, nr = 0, pieces;
	u32 max = 1U << 20;

	while (pos < 16 * GIB) {
		u32 len = check_slice(test, &local, &remote, pos, max);

		pos += len;
		nr++;
	}
	KUNIT_ASSERT_EQ(test, pos, 16 * GIB);
	KUNIT_EXPECT_EQ(test, rmp_slice_count(&local, &remote, max), nr);
	/* As many as the limit makes of each local chunk, one for the 100 bytes
	 * behind them, and at most one more for each remote border.
	 */
	pieces = (16 * GIB >> shift) * (1ULL << shift > max ?
					(1ULL << shift) / max : 1) + 1;
	KUNIT_EXPECT_GE(test, nr, pieces);
	KUNIT_EXPECT_LE(test, nr, pieces + 16);
}

static void test_sixteen_gib(struct kunit *test)
{
	sixteen_gib(test, 21);
	/* Four million slices, where that is a matter of a second. */
	sixteen_gib(test, many(18, 12));
}

static struct kunit_case slice_cases[] = {
	KUNIT_CASE(test_ends),
	KUNIT_CASE(test_nothing_and_one_byte),
	KUNIT_CASE(test_no_truncation),
	KUNIT_CASE(test_largest_chunks),
	KUNIT_CASE(test_all_borders),
	KUNIT_CASE(test_random_layouts),
	KUNIT_CASE(test_chunk_layouts),
	KUNIT_CASE(test_sixteen_gib),
	{}
};

static struct kunit_suite slice_suite = {
	.name = "rmp_slice",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = slice_cases,
};

kunit_test_suites(&slice_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's slicer");
MODULE_LICENSE("GPL");
