// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/sched.c: a small simulation of rails that complete what they are
 * given at their own speed, the limits of queue pairs, and every choice against
 * a model that compares all there is.
 */
#include "suite.h"
#include "sched.c"

#define MIB	1048576ULL
#define ALL	(~0U)

static struct rmp_sched sched;
static struct rmp_sched_rail rails[RMP_SCHED_RAILS];
static struct rmp_sched_qp qps[RMP_SCHED_RAILS][RMP_SCHED_QPS];

static int reset(struct kunit *test)
{
	memset(&sched, 0, sizeof(sched));
	memset(rails, 0, sizeof(rails));
	memset(qps, 0, sizeof(qps));
	return suite_case(test);
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

static void expect_between(struct kunit *test, u64 value, u64 least, u64 most)
{
	KUNIT_EXPECT_GE(test, value, least);
	KUNIT_EXPECT_LE(test, value, most);
}

static void test_nothing_up(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, place(ALL, 1, NULL), -1);
	KUNIT_ASSERT_FALSE(test, rmp_sched_any(&sched, ALL));
	rail_up(31, 1, 1, 1, MIB);
	KUNIT_ASSERT_TRUE(test, rmp_sched_any(&sched, ALL));
	KUNIT_ASSERT_FALSE(test, rmp_sched_any(&sched, ALL >> 1));
	KUNIT_ASSERT_EQ(test, place(ALL >> 1, 1, NULL), -1);
	KUNIT_ASSERT_EQ(test, rmp_sched_room(&sched), 1U << 31);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, NULL), 31);
	KUNIT_ASSERT_EQ(test, rmp_sched_room(&sched), 0);
	finish(31, 0, 1);
	KUNIT_ASSERT_EQ(test, rmp_sched_room(&sched), 1U << 31);
}

/* One slice at a time: nothing is ever in flight, so only ties decide. */
static void test_ties_rotate(struct kunit *test)
{
	u32 count[RMP_SCHED_RAILS] = { 0 };
	int i, rail;
	u32 qp;

	rail_up(0, 100, 2, 128, 8 * MIB);
	rail_up(3, 100, 2, 128, 8 * MIB);
	rail_up(31, 100, 2, 128, 8 * MIB);
	for (i = 0; i < 300; i++) {
		rail = place(ALL, MIB, &qp);
		KUNIT_ASSERT_TRUE(test, rail >= 0);
		count[rail]++;
		finish((u32)rail, qp, MIB);
	}
	KUNIT_ASSERT_EQ(test, count[0], 100);
	KUNIT_ASSERT_EQ(test, count[3], 100);
	KUNIT_ASSERT_EQ(test, count[31], 100);
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
static u64 share(struct kunit *test, u64 total, u32 slice, u32 a, u32 b)
{
	static struct flying flying[1024];
	u64 moved[2] = { 0 }, placed = 0;
	u32 nr = 0, tick, i, n;

	for (tick = 0; moved[0] + moved[1] < total; tick++) {
		u32 turn = tick % (a + b) < a ? 0 : 1;

		while (placed < total) {
			u32 qp;
			int rail = place(ALL, slice, &qp);

			if (rail < 0)
				break;
			KUNIT_ASSERT_LT(test, nr, ARRAY_SIZE(flying));
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
	KUNIT_ASSERT_EQ(test, rails[0].bytes, 0);
	KUNIT_ASSERT_EQ(test, rails[1].bytes, 0);
	return moved[0] * 100 / total;
}

/* Two like rails with the defaults carry 40 to 60 % of 64 MiB in 1 MiB slices,
 * also when one happens to be a good deal faster.
 */
static void test_two_rails_share(struct kunit *test)
{
	rail_up(0, 25000, 2, 128, 8 * MIB);
	rail_up(1, 25000, 2, 128, 8 * MIB);
	expect_between(test, share(test, 64ULL * MIB, MIB, 1, 1), 48, 52);
	reset(test);
	rail_up(0, 25000, 2, 128, 8 * MIB);
	rail_up(1, 25000, 2, 128, 8 * MIB);
	expect_between(test, share(test, 64ULL * MIB, MIB, 3, 2), 48, 60);
}

/* What is in flight goes by the speed. */
static void test_weights(struct kunit *test)
{
	u32 i;

	rail_up(0, 100000, 2, 128, 64ULL * MIB);
	rail_up(1, 25000, 2, 128, 64ULL * MIB);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_TRUE(test, place(ALL, 65536, NULL) >= 0);
	expect_between(test, rails[0].bytes / 65536, 79, 81);
	KUNIT_ASSERT_EQ(test, rails[0].bytes + rails[1].bytes, 100 * 65536);
}

/* Large numbers must not wrap when they are weighed. */
static void test_weights_large(struct kunit *test)
{
	rail_up(0, 800000, 1, 128, ~0ULL);
	rail_up(1, 800000, 1, 128, ~0ULL);
	rails[0].bytes = 16ULL * ~0U;
	rails[1].bytes = 16ULL * ~0U - 1;
	KUNIT_ASSERT_EQ(test, place(ALL, 1, NULL), 1);
}

static void test_fewest_requests(struct kunit *test)
{
	u32 qp, q, i;

	rail_up(2, 1, 4, 128, 8 * MIB);
	for (i = 0; i < 40; i++)
		KUNIT_ASSERT_EQ(test, place(ALL, 100 + i, &qp), 2);
	for (q = 0; q < 4; q++)
		KUNIT_ASSERT_EQ(test, qps[2][q].used, 10);
	finish(2, 3, 103);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, &qp), 2);
	KUNIT_ASSERT_EQ(test, qp, 3);
}

static void test_depth_and_window(struct kunit *test)
{
	u32 qp, nr;

	rail_up(0, 1, 2, 16, 8 * MIB);
	for (nr = 0; place(ALL, 64, &qp) >= 0; nr++)
		;
	KUNIT_ASSERT_EQ(test, nr, 32);
	finish(0, 1, 64);
	KUNIT_ASSERT_EQ(test, place(ALL, 64, &qp), 0);
	KUNIT_ASSERT_EQ(test, qp, 1);
	KUNIT_ASSERT_EQ(test, place(ALL, 64, &qp), -1);

	reset(test);
	rail_up(0, 1, 1, 128, 8 * MIB);
	for (nr = 0; place(ALL, MIB, &qp) >= 0; nr++)
		;
	KUNIT_ASSERT_EQ(test, nr, 8);

	/* One slice always goes, however small the window is. */
	reset(test);
	rail_up(0, 1, 1, 128, 4096);
	KUNIT_ASSERT_EQ(test, place(ALL, MIB, &qp), 0);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, &qp), -1);
	finish(0, 0, MIB);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, &qp), 0);
}

/* A full rail is passed over, not waited for. */
static void test_full_rail(struct kunit *test)
{
	rail_up(0, 1000, 1, 2, 8 * MIB);
	rail_up(1, 1, 1, 128, 8 * MIB);
	KUNIT_ASSERT_EQ(test, place(1U << 0, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, place(1U << 0, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, NULL), 1);
	KUNIT_ASSERT_EQ(test, place(ALL, 1, NULL), 1);
	KUNIT_ASSERT_EQ(test, place(1U << 0, 1, NULL), -1);
}

static void test_rail_down(struct kunit *test)
{
	u32 qp, i;

	rail_up(0, 1, 2, 128, 8 * MIB);
	rail_up(1, 1, 2, 128, 8 * MIB);
	KUNIT_ASSERT_EQ(test, place(1U << 0, MIB, &qp), 0);
	sched.rails[0] = NULL;
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, place(ALL, MIB, NULL), 1);
	KUNIT_ASSERT_EQ(test, place(1U << 0, MIB, NULL), -1);
	/* What it carried is given back after it went. */
	finish(0, qp, MIB);
	KUNIT_ASSERT_EQ(test, rails[0].bytes, 0);

	/* One of the two queue pairs fails. */
	rails[1].qps[0] = NULL;
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, place(ALL, MIB, &qp), 1);
		KUNIT_ASSERT_EQ(test, qp, 1);
	}
}

/* The model: everything is compared with everything. */

static bool model_room(const struct rmp_sched_qp *qp)
{
	return qp && qp->used < qp->depth && qp->bytes < qp->window;
}

/* Whether rail @i may be used and has room at all. */
static bool model_open(u32 i, u32 mask)
{
	u32 q;

	if (!sched.rails[i] || !(mask >> i & 1))
		return false;
	for (q = 0; q < RMP_SCHED_QPS; q++) {
		if (model_room(rails[i].qps[q]))
			return true;
	}
	return false;
}

static bool model_less(u32 a, u32 b)
{
	/* Twice as many bits as the scheduler takes, so that nothing wraps. */
	return (__int128)rails[a].bytes * rails[b].speed <
	       (__int128)rails[b].bytes * rails[a].speed;
}

/* Checks the choice that was made in this state; @turn is from before it. */
static void check_pick(struct kunit *test, u32 mask, u32 turn, bool found,
		       u32 rail, u32 qp)
{
	const struct rmp_sched_qp *chosen;
	u32 i, q;

	if (!found) {
		for (i = 0; i < RMP_SCHED_RAILS; i++)
			KUNIT_ASSERT_FALSE(test, model_open(i, mask));
		return;
	}
	KUNIT_ASSERT_LT(test, rail, RMP_SCHED_RAILS);
	KUNIT_ASSERT_LT(test, qp, RMP_SCHED_QPS);
	KUNIT_ASSERT_TRUE(test, model_open(rail, mask));
	chosen = rails[rail].qps[qp];
	KUNIT_ASSERT_TRUE(test, model_room(chosen));
	for (q = 0; q < RMP_SCHED_QPS; q++) {
		if (model_room(rails[rail].qps[q]))
			KUNIT_ASSERT_LE(test, chosen->used,
					rails[rail].qps[q]->used);
	}
	for (i = 0; i < RMP_SCHED_RAILS; i++) {
		u32 before_us = (i - turn) % RMP_SCHED_RAILS;
		u32 ours = (rail - turn) % RMP_SCHED_RAILS;

		if (i == rail || !model_open(i, mask))
			continue;
		KUNIT_ASSERT_FALSE(test, model_less(i, rail));
		/* Of equals, the one whose turn it is. */
		if (before_us < ours)
			KUNIT_ASSERT_TRUE(test, model_less(rail, i));
	}
	KUNIT_ASSERT_EQ(test, sched.turn, (rail + 1) % RMP_SCHED_RAILS);
}

static void random_rails(void)
{
	u32 nr = 1 + (u32)below(RMP_SCHED_RAILS), i;

	while (nr--) {
		i = (u32)below(RMP_SCHED_RAILS);
		/* Few speeds, so that there are ties. */
		rail_up(i, 1U << below(18), 1 + (u32)below(RMP_SCHED_QPS),
			1 + (u32)below(12), 1 + below(4 * MIB));
	}
	sched.turn = (u32)below(RMP_SCHED_RAILS);
}

/* Slices come and go, and rails and queue pairs with them; each choice is the
 * right one and no byte is lost or counted twice.
 */
static void test_random(struct kunit *test)
{
	static struct flying flying[RMP_SCHED_RAILS * RMP_SCHED_QPS * 12];
	u32 nr = 0, n, i, q, rail = 0, qp = 0, mask, turn, bytes, refused = 0;
	u64 sum;

	random_rails();
	for (n = 0; n < many(20000, 1000000); n++) {
		switch (below(16)) {
		case 0:		/* a rail goes or comes back */
			i = (u32)below(RMP_SCHED_RAILS);
			if (rails[i].speed)
				sched.rails[i] = sched.rails[i] ? NULL : &rails[i];
			break;
		case 1:		/* a queue pair likewise */
			i = (u32)below(RMP_SCHED_RAILS);
			q = (u32)below(RMP_SCHED_QPS);
			if (qps[i][q].depth)
				rails[i].qps[q] = rails[i].qps[q] ? NULL :
								    &qps[i][q];
			break;
		case 2 ... 7:	/* what is in flight ends, in any order */
			if (!nr)
				break;
			i = (u32)below(nr);
			finish(flying[i].rail, flying[i].qp, flying[i].bytes);
			flying[i] = flying[--nr];
			break;
		default:
			mask = below(4) ? ~0U : (u32)next_random();
			turn = sched.turn;
			bytes = 1 + (u32)below(MIB);
			if (!rmp_sched_pick(&sched, mask, &rail, &qp)) {
				check_pick(test, mask, turn, false, 0, 0);
				refused++;
				break;
			}
			check_pick(test, mask, turn, true, rail, qp);
			rmp_sched_charge(&sched, rail, qp, bytes);
			KUNIT_ASSERT_LT(test, nr, ARRAY_SIZE(flying));
			flying[nr++] = (struct flying){ rail, qp, bytes };
		}
	}
	KUNIT_EXPECT_GT(test, refused, 0);
	while (nr--)
		finish(flying[nr].rail, flying[nr].qp, flying[nr].bytes);
	for (i = 0; i < RMP_SCHED_RAILS; i++) {
		sum = rails[i].bytes;
		for (q = 0; q < RMP_SCHED_QPS; q++)
			sum += qps[i][q].bytes + qps[i][q].used;
		KUNIT_EXPECT_EQ(test, sum, 0);
	}
}

/* However slow a rail is said to be, once it is idle it is the next to get a
 * slice, so none starves beside faster ones.
 */
static void test_no_starvation(struct kunit *test)
{
	u32 count[4] = {}, oldest = 0, n, i;
	static struct flying flying[64];
	u32 nr = 0, qp;
	int rail;

	for (i = 0; i < 4; i++)
		rail_up(i, i ? 800000 : 1, 2, 16, 8 * MIB);
	for (n = 0; n < 4000; n++) {
		bool idle = !rails[0].bytes;

		rail = place(ALL, MIB, &qp);
		KUNIT_ASSERT_GE(test, rail, 0);
		/* Some other idle one may have gone first. */
		if (idle && rail)
			KUNIT_ASSERT_EQ(test, rails[rail].bytes, MIB);
		count[rail]++;
		flying[(oldest + nr++) % 64] = (struct flying){ (u32)rail, qp, MIB };
		if (nr < 24)
			continue;
		finish(flying[oldest].rail, flying[oldest].qp, MIB);
		oldest = (oldest + 1) % 64;
		nr--;
	}
	/* One slice in each round of all that are in flight; the rest is shared. */
	KUNIT_EXPECT_GE(test, count[0], 4000 / 24);
	for (i = 1; i < 4; i++)
		expect_between(test, count[i], 1150, 1350);
}

static struct kunit_case sched_cases[] = {
	KUNIT_CASE(test_nothing_up),
	KUNIT_CASE(test_ties_rotate),
	KUNIT_CASE(test_two_rails_share),
	KUNIT_CASE(test_weights),
	KUNIT_CASE(test_weights_large),
	KUNIT_CASE(test_fewest_requests),
	KUNIT_CASE(test_depth_and_window),
	KUNIT_CASE(test_full_rail),
	KUNIT_CASE(test_rail_down),
	KUNIT_CASE(test_random),
	KUNIT_CASE(test_no_starvation),
	{}
};

static struct kunit_suite sched_suite = {
	.name = "rmp_sched",
	.suite_init = suite_begin,
	.init = reset,
	.test_cases = sched_cases,
};

kunit_test_suites(&sched_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's scheduler");
MODULE_LICENSE("GPL");
