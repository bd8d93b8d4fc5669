// SOURCES: kmod/slice.c
// SPDX-License-Identifier: MIT
/*
 * Tests of kmod/slice.c against a model that looks at every byte: which bytes
 * share a chunk on both sides. Slices must cover a request once, in order, never
 * cross a border, and be as long as the borders and the limit allow.
 *
 * The random part prints its seed; RMPOOL_SEED=n repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "slice.h"

#define GIB		(1ULL << 30)
#define ROUNDS		20000

static u64 seed;
static u64 random_state;

static u64 next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* From 0 to @n - 1. */
static u64 below(u64 n)
{
	return (next_random() >> 8) % n;
}

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
static u64 check_request(const struct rmp_span *local,
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
		assert_int_equal(len, want);
		pos += len;
		left -= len;
		nr++;
	}
	assert_int_equal(pos, from + length);
	return nr;
}

static void random_layouts(void **state)
{
	u32 n;

	(void)state;
	for (n = 0; n < ROUNDS; n++) {
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
		check_request(&local, &remote, from, length, max);
		nr = check_request(&local, &remote, 0, local.length, max);
		assert_int_equal(rmp_slice_count(&local, &remote, max), nr);
	}
}

/* Each lead against each, over three chunks of both sides. */
static void all_borders(void **state)
{
	struct rmp_span local, remote;
	u32 a, b;

	(void)state;
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
					check_request(&local, &remote, 0,
						      local.length, 7);
			}
		}
	}
}

static void ends(void **state)
{
	struct rmp_span span = { .lead = 5, .length = 100, .shift = 6 };

	(void)state;
	assert_int_equal(rmp_span_rest(&span, 0), 59);
	assert_int_equal(rmp_span_rest(&span, 58), 1);
	assert_int_equal(rmp_span_rest(&span, 59), 41);
	assert_int_equal(rmp_span_rest(&span, 99), 1);
	assert_int_equal(rmp_span_rest(&span, 100), 0);
	assert_int_equal(rmp_span_rest(&span, 101), 0);
	assert_int_equal(rmp_span_rest(&span, UINT64_MAX), 0);
}

static void nothing_and_one_byte(void **state)
{
	struct rmp_span one = { .lead = 4095, .length = 1, .shift = 12 };
	struct rmp_span none = { .lead = 0, .length = 0, .shift = 12 };

	(void)state;
	assert_int_equal(rmp_slice_length(0, 4096, 4096, 1U << 20), 0);
	assert_int_equal(rmp_slice_length(9, 0, 4096, 1U << 20), 0);
	assert_int_equal(rmp_slice_length(9, 4096, 0, 1U << 20), 0);
	assert_int_equal(rmp_slice_count(&none, &none, 1U << 20), 0);
	assert_int_equal(rmp_slice_length(1, 4096, 4096, 1U << 20), 1);
	assert_int_equal(rmp_slice_count(&one, &one, 1U << 20), 1);
	/* A side that is shorter than it should be ends it, not hangs it. */
	assert_int_equal(rmp_slice_count(&one, &none, 1U << 20), 0);
}

/* Lengths that do not fit in 32 bits must not be cut off. */
static void no_truncation(void **state)
{
	(void)state;
	assert_int_equal(rmp_slice_length(4 * GIB, 4 * GIB, 4 * GIB, 1U << 20),
			 1U << 20);
	assert_int_equal(rmp_slice_length(4 * GIB + 1, 1ULL << 40, 1ULL << 40,
					  1U << 30), 1U << 30);
	assert_int_equal(rmp_slice_length(UINT64_MAX, UINT64_MAX, UINT64_MAX,
					  UINT32_MAX), UINT32_MAX);
	assert_int_equal(rmp_slice_length(UINT64_MAX, 4 * GIB + 3, UINT64_MAX,
					  UINT32_MAX), UINT32_MAX);
	/* A border nearer than the end, but not than its lower 32 bits. */
	assert_int_equal(rmp_slice_length(4 * GIB + 16, 100, 4 * GIB, 1U << 20),
			 100);
	assert_int_equal(rmp_slice_length(4 * GIB + 16, 4 * GIB, 100, 1U << 20),
			 100);
}

/* 16 GiB at odd addresses, in chunks of 2 MiB and of 1 GiB. */
static void sixteen_gib(void **state)
{
	struct rmp_span local = {
		.lead = 100, .length = 16 * GIB, .shift = 21,
	};
	struct rmp_span remote = {
		.lead = 777777, .length = 16 * GIB, .shift = 30,
	};
	u64 pos = 0, nr = 0, in_chunks = 0;
	u32 max = 1U << 20;

	(void)state;
	while (pos < 16 * GIB) {
		u32 len = rmp_slice_length(16 * GIB - pos,
					   rmp_span_rest(&local, pos),
					   rmp_span_rest(&remote, pos), max);
		u64 last = pos + len - 1;

		assert_in_range(len, 1, max);
		assert_true(chunk_of(&local, pos) == chunk_of(&local, last));
		assert_true(chunk_of(&remote, pos) == chunk_of(&remote, last));
		/* It ends for a reason: the limit, a border, or the end. */
		assert_true(len == max || last + 1 == 16 * GIB ||
			    chunk_of(&local, last + 1) !=
			    chunk_of(&local, last) ||
			    chunk_of(&remote, last + 1) !=
			    chunk_of(&remote, last));
		pos += len;
		nr++;
	}
	assert_true(pos == 16 * GIB);
	assert_int_equal(rmp_slice_count(&local, &remote, max), nr);
	/* Two in each of 8192 local chunks, one for the 100 bytes behind them, and
	 * at most one more for each remote border.
	 */
	in_chunks = 2 * 8192 + 1;
	assert_in_range(nr, in_chunks, in_chunks + 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(nothing_and_one_byte),
		cmocka_unit_test(no_truncation),
		cmocka_unit_test(all_borders),
		cmocka_unit_test(random_layouts),
		cmocka_unit_test(sixteen_gib),
	};
	const char *text = getenv("RMPOOL_SEED");

	seed = text ? strtoull(text, NULL, 0) : (u64)time(NULL);
	random_state = seed * 2654435761U + 88172645463325252ULL;
	print_message("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
