// SOURCES: kmod/sched.c
// SPDX-License-Identifier: MIT
/*
 * Tests of kmod/sched.c: a small simulation of rails that complete what they are
 * given at their own speed, and the limits of queue pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "sched.h"

#define MIB	(1ULL << 20)
#define ALL	(~0U)

static struct rmp_sched sched;
static struct rmp_sched_rail rails[RMP_SCHED_RAILS];
static struct rmp_sched_qp qps[RMP_SCHED_RAILS][RMP_SCHED_QPS];

static int reset(void **state)
{
	(void)state;
	memset(&sched, 0, sizeof(sched));
	memset(rails, 0, sizeof(rails));
	memset(qps, 0, sizeof(qps));
	return 0;
}

static void rail_up(u32 i, u32 speed, u32 nr_qps, u32 depth, u64 window)
{
	u32 q;

	rails[i].speed = speed;
	for (q = 0; q < nr_qps; q++) {
		qps[i][q].depth = depth;
		qps[i][q].window = window;
		rails[i].qps[q] = &qps[i][q];
	}
	sched.rails[i] = &rails[i];
}

/* Places one slice; the rail, or -1. */
static int place(u32 mask, u32 bytes, u32 *qp)
{
	u32 rail, q;

	if (!rmp_sched_pick(&sched, mask, &rail, &q))
		return -1;
	rmp_sched_charge(&sched, rail, q, bytes);
	if (qp)
		*qp = q;
	return (int)rail;
}

static void finish(u32 rail, u32 qp, u32 bytes)
{
	rmp_sched_credit(&rails[rail], &qps[rail][qp], bytes);
}

static void nothing_up(void **state)
{
	(void)state;
	assert_int_equal(place(ALL, 1, NULL), -1);
	assert_false(rmp_sched_any(&sched, ALL));
	rail_up(31, 1, 1, 1, MIB);
	assert_true(rmp_sched_any(&sched, ALL));
	assert_false(rmp_sched_any(&sched, ALL >> 1));
	assert_int_equal(place(ALL >> 1, 1, NULL), -1);
	assert_int_equal(place(ALL, 1, NULL), 31);
}

/* One slice at a time: nothing is ever in flight, so only ties decide. */
static void ties_rotate(void **state)
{
	u32 count[RMP_SCHED_RAILS] = { 0 };
	int i, rail;
	u32 qp = 0;

	(void)state;
	rail_up(0, 100, 2, 128, 8 * MIB);
	rail_up(3, 100, 2, 128, 8 * MIB);
	rail_up(31, 100, 2, 128, 8 * MIB);
	for (i = 0; i < 300; i++) {
		rail = place(ALL, MIB, &qp);
		assert_true(rail >= 0);
		count[rail]++;
		finish((u32)rail, qp, MIB);
	}
	assert_int_equal(count[0], 100);
	assert_int_equal(count[3], 100);
	assert_int_equal(count[31], 100);
}

struct flying {
	u32 rail;
	u32 qp;
	u32 bytes;
};

/* Moves @total bytes in slices of @slice; the first rail finishes work @a times
 * for each @b times that the second does. Returns the first one's share in
 * percent.
 */
static u64 share(u64 total, u32 slice, u32 a, u32 b)
{
	static struct flying flying[RMP_SCHED_RAILS * RMP_SCHED_QPS * 128];
	u64 moved[2] = { 0 }, placed = 0;
	u32 nr = 0, tick, i, n;

	for (tick = 0; moved[0] + moved[1] < total; tick++) {
		u32 turn = tick % (a + b) < a ? 0 : 1;

		while (placed < total) {
			u32 qp;
			int rail = place(ALL, slice, &qp);

			if (rail < 0)
				break;
			flying[nr].rail = (u32)rail;
			flying[nr].qp = qp;
			flying[nr++].bytes = slice;
			placed += slice;
		}
		/* The oldest of that rail ends. */
		for (i = 0; i < nr && flying[i].rail != turn; i++)
			;
		if (i == nr)
			continue;
		finish(turn, flying[i].qp, flying[i].bytes);
		moved[turn] += flying[i].bytes;
		for (n = i + 1; n < nr; n++)
			flying[n - 1] = flying[n];
		nr--;
	}
	assert_int_equal(rails[0].bytes, 0);
	assert_int_equal(rails[1].bytes, 0);
	return moved[0] * 100 / total;
}

/* Two like rails with the defaults carry 40 to 60 % of 64 MiB in 1 MiB slices,
 * also when one happens to be a good deal faster.
 */
static void two_rails_share(void **state)
{
	rail_up(0, 25000, 2, 128, 8 * MIB);
	rail_up(1, 25000, 2, 128, 8 * MIB);
	assert_in_range(share(64ULL * MIB, MIB, 1, 1), 48, 52);
	reset(state);
	rail_up(0, 25000, 2, 128, 8 * MIB);
	rail_up(1, 25000, 2, 128, 8 * MIB);
	assert_in_range(share(64ULL * MIB, MIB, 3, 2), 48, 60);
}

/* What is in flight goes by the speed. */
static void weights(void **state)
{
	u32 i;

	(void)state;
	rail_up(0, 100000, 2, 128, 64ULL * MIB);
	rail_up(1, 25000, 2, 128, 64ULL * MIB);
	for (i = 0; i < 100; i++)
		assert_true(place(ALL, 65536, NULL) >= 0);
	assert_in_range(rails[0].bytes / 65536, 79, 81);
	assert_int_equal(rails[0].bytes + rails[1].bytes, 100 * 65536);
}

/* Large numbers must not wrap when they are weighed. */
static void weights_large(void **state)
{
	(void)state;
	rail_up(0, 800000, 1, 128, UINT64_MAX);
	rail_up(1, 800000, 1, 128, UINT64_MAX);
	rails[0].bytes = 16ULL * UINT32_MAX;
	rails[1].bytes = 16ULL * UINT32_MAX - 1;
	assert_int_equal(place(ALL, 1, NULL), 1);
}

static void fewest_requests(void **state)
{
	u32 qp, q, i;

	(void)state;
	rail_up(2, 1, 4, 128, 8 * MIB);
	for (i = 0; i < 40; i++)
		assert_int_equal(place(ALL, 100 + i, &qp), 2);
	for (q = 0; q < 4; q++)
		assert_int_equal(qps[2][q].used, 10);
	finish(2, 3, 103);
	assert_int_equal(place(ALL, 1, &qp), 2);
	assert_int_equal(qp, 3);
}

static void depth_and_window(void **state)
{
	u32 qp = 0, nr;

	(void)state;
	rail_up(0, 1, 2, 16, 8 * MIB);
	for (nr = 0; place(ALL, 64, &qp) >= 0; nr++)
		;
	assert_int_equal(nr, 32);
	finish(0, 1, 64);
	assert_int_equal(place(ALL, 64, &qp), 0);
	assert_int_equal(qp, 1);
	assert_int_equal(place(ALL, 64, &qp), -1);

	reset(state);
	rail_up(0, 1, 1, 128, 8 * MIB);
	for (nr = 0; place(ALL, MIB, &qp) >= 0; nr++)
		;
	assert_int_equal(nr, 8);

	/* One slice always goes, however small the window is. */
	reset(state);
	rail_up(0, 1, 1, 128, 4096);
	assert_int_equal(place(ALL, MIB, &qp), 0);
	assert_int_equal(place(ALL, 1, &qp), -1);
	finish(0, 0, MIB);
	assert_int_equal(place(ALL, 1, &qp), 0);
}

/* A full rail is passed over, not waited for. */
static void full_rail(void **state)
{
	(void)state;
	rail_up(0, 1000, 1, 2, 8 * MIB);
	rail_up(1, 1, 1, 128, 8 * MIB);
	assert_int_equal(place(1U << 0, 1, NULL), 0);
	assert_int_equal(place(1U << 0, 1, NULL), 0);
	assert_int_equal(place(ALL, 1, NULL), 1);
	assert_int_equal(place(ALL, 1, NULL), 1);
	assert_int_equal(place(1U << 0, 1, NULL), -1);
}

static void rail_down(void **state)
{
	u32 qp, i;

	(void)state;
	rail_up(0, 1, 2, 128, 8 * MIB);
	rail_up(1, 1, 2, 128, 8 * MIB);
	assert_int_equal(place(1U << 0, MIB, &qp), 0);
	sched.rails[0] = NULL;
	for (i = 0; i < 4; i++)
		assert_int_equal(place(ALL, MIB, NULL), 1);
	assert_int_equal(place(1U << 0, MIB, NULL), -1);
	/* What it carried is given back after it went. */
	finish(0, qp, MIB);
	assert_int_equal(rails[0].bytes, 0);

	/* One of the two queue pairs fails. */
	rails[1].qps[0] = NULL;
	for (i = 0; i < 4; i++) {
		assert_int_equal(place(ALL, MIB, &qp), 1);
		assert_int_equal(qp, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_up, reset),
		cmocka_unit_test_setup(ties_rotate, reset),
		cmocka_unit_test_setup(two_rails_share, reset),
		cmocka_unit_test_setup(weights, reset),
		cmocka_unit_test_setup(weights_large, reset),
		cmocka_unit_test_setup(fewest_requests, reset),
		cmocka_unit_test_setup(depth_and_window, reset),
		cmocka_unit_test_setup(full_rail, reset),
		cmocka_unit_test_setup(rail_down, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
