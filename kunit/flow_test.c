// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/flow.c and qp.c: requests become slices, slices are posted and
 * end, and each request ends once, with what moved. The scheduler and the
 * slicer are the real ones, queue pairs are played (flow_world.h).
 */
#include "flow_world.h"

static void test_lengths(struct kunit *test)
{
	static const u64 lengths[] = {
		1, 4095, 64 * KIB, MIB - 1, MIB + 1, 40 * MIB, 200 * MIB,
	};
	struct asked *a[ARRAY_SIZE(lengths)];
	u32 i;

	rail_up(test, 0, 2);
	rail_up(test, 1, 2);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		a[i] = ask_now(test, lengths[i], RMPOOL_CLASS_NORMAL);
	finish_evenly();
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		check_ended(test, a[i], 0);
	/* Both carried a good part. */
	for (i = 0; i < 2; i++) {
		u64 bytes = atomic64_read(&world.rail[i].put_bytes) +
			    atomic64_read(&world.rail[i].get_bytes);

		KUNIT_EXPECT_GT(test, bytes, 241 * MIB * 4 / 10);
		KUNIT_EXPECT_LT(test, bytes, 243 * MIB * 6 / 10);
	}
}

static u32 place_of(struct kunit *test, const struct asked *a)
{
	u32 i;

	for (i = 0; i < world.nr_ended && world.ended[i] != a; i++)
		;
	KUNIT_EXPECT_LT(test, i, world.nr_ended);
	return i;
}

/* A higher class goes first whenever there is room; within one, who came first.
 * That holds across files, which the flow does not know.
 */
static void test_classes(struct kunit *test)
{
	static const u8 classes[] = {
		RMPOOL_CLASS_BULK, RMPOOL_CLASS_NORMAL, RMPOOL_CLASS_HIGH,
	};
	struct asked *a[3][10], *first;
	u32 class, i;

	rail_up(test, 0, 1);
	/* Takes all the room there is. */
	first = ask_now(test, 40 * MIB, RMPOOL_CLASS_BULK);
	for (i = 0; i < 10; i++) {
		for (class = 0; class < 3; class++)
			a[class][i] = ask_now(test, 100, classes[class]);
	}
	KUNIT_EXPECT_EQ(test, a[2][0]->posted, 0);
	finish_all();
	for (class = 0; class < 3; class++) {
		for (i = 0; i < 10; i++)
			check_ended(test, a[class][i], 0);
		for (i = 1; i < 10; i++)
			KUNIT_EXPECT_GT(test, place_of(test, a[class][i]),
					place_of(test, a[class][i - 1]));
	}
	KUNIT_EXPECT_LT(test, place_of(test, a[2][9]), place_of(test, a[1][0]));
	KUNIT_EXPECT_LT(test, place_of(test, a[1][9]), place_of(test, first));
	KUNIT_EXPECT_LT(test, place_of(test, first), place_of(test, a[0][0]));
}

/* One that no rail reaches does not stand before others, and goes on when there
 * is a way, on whichever side it was missing.
 */
static void test_no_way(struct kunit *test)
{
	struct asked *a, *b, *c;
	s64 slices;

	rail_up(test, 0, 1);
	world.no_remote = BIT(8);
	a = ask_now(test, 3 * MIB, RMPOOL_CLASS_HIGH);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	world.no_remote = 0;
	b = ask_now(test, 3 * MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_GT(test, b->posted, 0);
	finish_all();
	check_ended(test, b, 0);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);

	/* The first device cannot, the second can. */
	slices = atomic64_read(&world.rail[0].slices);
	world.no_local = BIT(0);
	c = ask_now(test, 100, RMPOOL_CLASS_HIGH);
	KUNIT_EXPECT_EQ(test, c->posted, 0);
	rail_up(test, 1, 1);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, c, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&world.rail[0].slices), slices);
}

/* A queue pair fails in the middle: the requests that had slices there fail, the
 * others go on elsewhere, and nothing is posted there any more.
 */
static void test_qp_dies(struct kunit *test)
{
	struct asked *a, *b;

	rail_up(test, 0, 1);
	a = ask_now(test, 100 * MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_GT(test, a->posted, 0);
	KUNIT_EXPECT_LT(test, a->posted, 100 * MIB);
	b = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	rail_up(test, 1, 1);
	KUNIT_EXPECT_TRUE(test, proceed(qp_of(0, 0), IB_WC_RETRY_EXC_ERR));
	KUNIT_EXPECT_GE(test, world.failed_qps, 1);
	KUNIT_EXPECT_NULL(test, world.flow->sched.rails[0]);
	/* It is not over before the last slice is. */
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	while (proceed(qp_of(0, 0), IB_WC_SUCCESS))
		;
	flush_workqueue(rmp_wq);
	check_ended(test, a, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, a->req.wc_status, IB_WC_RETRY_EXC_ERR);
	rail_down(0);
	finish_all();
	check_ended(test, b, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&world.rail[0].errors),
			atomic64_read(&world.rail[0].slices));
}

static void test_statuses(struct kunit *test)
{
	static const struct {
		enum ib_wc_status wc;
		s32 status;
	} ends[] = {
		{ IB_WC_REM_ACCESS_ERR, -EREMOTEIO },
		{ IB_WC_REM_INV_REQ_ERR, -EREMOTEIO },
		{ IB_WC_REM_OP_ERR, -EREMOTEIO },
		{ IB_WC_RETRY_EXC_ERR, -ECONNRESET },
		{ IB_WC_RNR_RETRY_EXC_ERR, -ECONNRESET },
		{ IB_WC_WR_FLUSH_ERR, -ECONNRESET },
		{ IB_WC_RESP_TIMEOUT_ERR, -ECONNRESET },
		{ IB_WC_LOC_PROT_ERR, -EIO },
		{ IB_WC_GENERAL_ERR, -EIO },
	};
	struct asked *a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		rail_up(test, 0, 1);
		a = ask_now(test, 10, RMPOOL_CLASS_NORMAL);
		KUNIT_EXPECT_TRUE(test, proceed(qp_of(0, 0), ends[i].wc));
		while (proceed(qp_of(0, 0), IB_WC_SUCCESS))
			;
		check_ended(test, a, ends[i].status);
		rail_down(0);
	}
}

/* The device does not take a work request, somewhere in a chain. */
static void test_post_fails(struct kunit *test)
{
	struct asked *a, *b;
	int at;

	for (at = 1; at <= 5; at++) {
		world.failed_qps = 0;
		rail_up(test, 0, 1);
		rail_up(test, 1, 1);
		world.fail_post = at;
		a = ask(test, 6 * MIB, RMPOOL_CLASS_NORMAL);
		a->region.chunk_shift = 30;
		a->rr.chunk_shift = 30;
		submit(a);
		world.fail_post = 0;
		let_sweep_run();
		KUNIT_EXPECT_EQ(test, world.failed_qps, 1);
		/* Others go by the other rail. */
		b = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
		finish_all();
		check_ended(test, b, 0);
		rail_down(0);
		rail_down(1);
		flush_workqueue(rmp_wq);
		KUNIT_EXPECT_EQ(test, a->ended, 1);
		KUNIT_EXPECT_EQ(test, a->status, -ECONNRESET);
	}
}

/* Overdue: what is queued ends, what is in flight is reported at once, as not
 * known, and ends later.
 */
static void test_deadline(struct kunit *test)
{
	struct asked *flies = ask(test, 8 * MIB, RMPOOL_CLASS_NORMAL);
	struct asked *waits = ask(test, MIB, RMPOOL_CLASS_NORMAL);
	struct asked *later = ask(test, MIB, RMPOOL_CLASS_NORMAL);

	rail_up(test, 0, 1);
	flies->req.deadline = jiffies + HZ / 10;
	waits->req.deadline = jiffies + HZ / 10;
	submit(flies);
	submit(waits);
	submit(later);
	KUNIT_EXPECT_EQ(test, waits->posted, 0);
	while (time_before_eq(jiffies, flies->req.deadline))
		schedule_timeout_uninterruptible(1);
	let_sweep_run();
	check_ended(test, waits, -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, waits->unknown);
	KUNIT_EXPECT_EQ(test, flies->ended, 0);
	KUNIT_EXPECT_EQ(test, flies->reported, 1);
	KUNIT_EXPECT_EQ(test, flies->status, -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, flies->unknown);
	/* Nothing more of it is posted. */
	finish_all();
	KUNIT_EXPECT_EQ(test, flies->ended, 1);
	KUNIT_EXPECT_EQ(test, flies->reported, 1);
	KUNIT_EXPECT_LT(test, flies->posted, 8 * MIB);
	check_ended(test, later, 0);
}

/* The region is taken back on either side, or there is no session any more. */
static void test_taken_back(struct kunit *test)
{
	struct asked *a, *b, *c;

	rail_up(test, 0, 1);
	a = ask_now(test, 100 * MIB, RMPOOL_CLASS_NORMAL);
	b = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	c = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	WRITE_ONCE(a->region.dead, true);
	WRITE_ONCE(b->rr.revoked, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	check_ended(test, b, -ESTALE);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->status, -ESTALE);
	KUNIT_EXPECT_EQ(test, a->bytes, a->moved);
	KUNIT_EXPECT_LT(test, a->moved, 100 * MIB);
	check_ended(test, c, 0);

	/* One that comes with a region that is dead already. */
	a = ask(test, 10, RMPOOL_CLASS_HIGH);
	a->region.dead = true;
	submit(a);
	let_sweep_run();
	check_ended(test, a, -ESTALE);
	/* All rails are gone, then the keys: that is the end of a session. */
	rail_down(0);
	a = ask_now(test, 10, RMPOOL_CLASS_HIGH);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	WRITE_ONCE(a->rr.revoked, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	check_ended(test, a, -ENOTCONN);
}

/* Other keys at the peer: what is in flight with the old ones ends, then the request goes
 * on with the new ones. It does not hold up others meanwhile.
 */
static void test_renewed(struct kunit *test)
{
	struct asked *a, *b, *c;
	u64 posted;

	rail_up(test, 0, 1);
	a = ask_now(test, 100 * MIB, RMPOOL_CLASS_HIGH);
	posted = a->posted;
	KUNIT_EXPECT_GT(test, posted, 0);
	b = ask(test, MIB, RMPOOL_CLASS_HIGH);
	renew(a);
	renew(b);
	submit(b);
	/* Nothing of it was posted with the old ones. */
	KUNIT_EXPECT_PTR_EQ(test, b->req.rr, &b->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&b->rr.ref), 1);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->posted, posted);
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->rr);
	c = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, 0);
	check_ended(test, c, 0);
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->renewed.ref), 3);

	/* All is posted: it needs no new ones. */
	a = ask_now(test, 10, RMPOOL_CLASS_HIGH);
	renew(a);
	finish_all();
	check_ended(test, a, 0);
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->rr);
}

/* A right that goes: nothing is posted beyond it. */
static void test_right_withdrawn(struct kunit *test)
{
	struct asked *put, *get, *a;

	rail_up(test, 0, 1);
	put = ask(test, 100 * MIB, RMPOOL_CLASS_HIGH);
	put->req.op = RMPOOL_OP_PUT;
	submit(put);
	get = ask(test, MIB, RMPOOL_CLASS_HIGH);
	get->req.op = RMPOOL_OP_GET;
	WRITE_ONCE(put->rr.access, RMPOOL_ACCESS_REMOTE_READ);
	WRITE_ONCE(get->rr.access, RMPOOL_ACCESS_REMOTE_READ);
	submit(get);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, get, 0);
	KUNIT_EXPECT_EQ(test, put->ended, 1);
	KUNIT_EXPECT_EQ(test, put->status, -EACCES);
	KUNIT_EXPECT_EQ(test, put->bytes, put->moved);
	KUNIT_EXPECT_LT(test, put->moved, 100 * MIB);

	/* Queued, and then it may do nothing, as of a segment that is withdrawn. */
	a = ask(test, MIB, RMPOOL_CLASS_HIGH);
	WRITE_ONCE(a->rr.access, 0);
	WRITE_ONCE(a->rr.revoked, true);
	submit(a);
	let_sweep_run();
	check_ended(test, a, -EACCES);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	/* With other keys, and less than before. */
	a = ask(test, MIB, RMPOOL_CLASS_HIGH);
	renew(a);
	a->renewed.access = 0;
	submit(a);
	let_sweep_run();
	check_ended(test, a, -EACCES);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
}

/* A suspect region holds up its own requests only, until it is known what it is. */
static void test_suspect(struct kunit *test)
{
	struct asked *a, *b, *c;

	rail_up(test, 0, 1);
	a = ask(test, MIB, RMPOOL_CLASS_HIGH);
	b = ask(test, MIB, RMPOOL_CLASS_HIGH);
	a->region.state = RMPOOL_REGION_STATE_SUSPECT;
	b->region.state = RMPOOL_REGION_STATE_SUSPECT;
	submit(a);
	submit(b);
	c = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, c, 0);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	KUNIT_EXPECT_EQ(test, b->posted, 0);
	/* Kicked for another reason, it waits on. */
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	WRITE_ONCE(a->region.state, RMPOOL_REGION_STATE_ACTIVE);
	WRITE_ONCE(b->region.state, RMPOOL_REGION_STATE_STALE);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, -ESTALE);
	KUNIT_EXPECT_EQ(test, b->posted, 0);

	/* In the middle, here and at the peer. */
	a = ask_now(test, 100 * MIB, RMPOOL_CLASS_NORMAL);
	b = ask_now(test, 100 * MIB, RMPOOL_CLASS_NORMAL);
	WRITE_ONCE(a->region.state, RMPOOL_REGION_STATE_STALE);
	WRITE_ONCE(b->rr.stale, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	KUNIT_EXPECT_EQ(test, a->status, -ESTALE);
	KUNIT_EXPECT_EQ(test, a->bytes, a->moved);
	KUNIT_EXPECT_LT(test, a->moved, 100 * MIB);
	check_ended(test, b, -ESTALE);
}

/* What a get got counts when it is known whether its region still is the owner's. */
static void test_got_while_suspect(struct kunit *test)
{
	struct asked *a[3];
	int i;

	rail_up(test, 0, 1);
	for (i = 0; i < 3; i++) {
		a[i] = ask(test, PAGE_SIZE, RMPOOL_CLASS_NORMAL);
		a[i]->req.op = RMPOOL_OP_GET;
		submit(a[i]);
		KUNIT_EXPECT_EQ(test, a[i]->posted, PAGE_SIZE);
		WRITE_ONCE(a[i]->region.state, RMPOOL_REGION_STATE_SUSPECT);
	}
	finish_all();
	rmp_flow_kick(world.flow);
	let_sweep_run();
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, a[i]->ended, 0);
	WRITE_ONCE(a[0]->region.state, RMPOOL_REGION_STATE_ACTIVE);
	WRITE_ONCE(a[1]->region.dead, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	check_ended(test, a[0], 0);
	KUNIT_EXPECT_EQ(test, a[1]->ended, 1);
	KUNIT_EXPECT_EQ(test, a[2]->ended, 0);
	/* It does not wait for ever. */
	spin_lock_bh(&world.flow->lock);
	KUNIT_EXPECT_TRUE(test, rmp_flow_stop(&a[2]->req, -ECANCELED));
	spin_unlock_bh(&world.flow->lock);
	rmp_request_end(&a[2]->req);
	check_ended(test, a[2], -ECANCELED);
}

static void test_stop(struct kunit *test)
{
	struct asked *flies, *waits;
	bool idle;

	rail_up(test, 0, 1);
	flies = ask_now(test, 4 * MIB, RMPOOL_CLASS_NORMAL);
	waits = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	spin_lock_bh(&world.flow->lock);
	idle = rmp_flow_stop(&waits->req, -ECANCELED);
	KUNIT_EXPECT_TRUE(test, idle);
	/* Who comes second has nothing to end. */
	KUNIT_EXPECT_FALSE(test, rmp_flow_stop(&waits->req, -EINTR));
	KUNIT_EXPECT_FALSE(test, rmp_flow_stop(&flies->req, -ECANCELED));
	spin_unlock_bh(&world.flow->lock);
	rmp_request_end(&waits->req);
	check_ended(test, waits, -ECANCELED);
	finish_all();
	KUNIT_EXPECT_EQ(test, flies->ended, 1);
	KUNIT_EXPECT_EQ(test, flies->status, -ECANCELED);
}

/* Many requests, rails that come and go, devices that fail and lose their way;
 * at the end each has ended once, and told the truth.
 */
static void test_random(struct kunit *test)
{
	enum { NR = 1200 };
	struct asked **a;
	u32 n, i, q, up = 0, ok = 0;

	a = kunit_kcalloc(test, NR, sizeof(*a), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, a);
	for (n = 0; n < NR;) {
		i = (u32)below(RAILS);
		q = (u32)below(2);
		switch (below(12)) {
		case 0 ... 2:
			a[n] = ask(test, 1 + below(below(8) ? 256 * KIB :
						   20 * MIB), (u8)below(3));
			if (!below(50))
				a[n]->req.deadline = jiffies;
			submit(a[n++]);
			break;
		case 3:
			if (!(up & BIT(i)))
				rail_up(test, i, 2);
			up |= BIT(i);
			rmp_flow_kick(world.flow);
			break;
		case 4:
			if (below(6))
				break;
			rail_down(i);
			up &= ~BIT(i);
			break;
		case 5:
			world.no_local = below(4) ? 0 : (u32)below(8);
			world.no_remote = below(4) ? 0 : (u32)below(8) << 8;
			rmp_flow_kick(world.flow);
			break;
		case 6:
			if (n && !below(8))
				WRITE_ONCE(a[below(n)]->rr.revoked, true);
			if (!n || below(4))
				break;
			i = (u32)below(n);
			if (!a[i]->rr.next)
				renew(a[i]);
			if (below(2))
				rmp_flow_kick(world.flow);
			break;
		default:
			if (up & BIT(i))
				proceed(qp_of(i, q), below(60) ? IB_WC_SUCCESS :
					IB_WC_RETRY_EXC_ERR);
		}
		if (!below(4))
			let_sweep_run();
	}
	/* Whatever was broken is made anew, and all goes to its end. */
	world.no_local = 0;
	world.no_remote = 0;
	for (i = 0; i < RAILS; i++) {
		rail_down(i);
		rail_up(test, i, 2);
	}
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	let_sweep_run();
	for (n = 0; n < NR; n++) {
		KUNIT_EXPECT_EQ(test, a[n]->ended, 1);
		KUNIT_EXPECT_EQ(test, a[n]->reported, 1);
		if (!a[n]->unknown)
			KUNIT_EXPECT_EQ(test, a[n]->bytes, a[n]->moved);
		if (!a[n]->status)
			KUNIT_EXPECT_EQ(test, a[n]->moved, a[n]->length);
		ok += !a[n]->status;
	}
	kunit_info(test, "%u of %u succeeded", ok, NR);
	KUNIT_EXPECT_GT(test, ok, NR / 10);
	KUNIT_EXPECT_LT(test, ok, NR);
}

static struct kunit_case flow_cases[] = {
	KUNIT_CASE(test_lengths),
	KUNIT_CASE(test_classes),
	KUNIT_CASE(test_no_way),
	KUNIT_CASE(test_qp_dies),
	KUNIT_CASE(test_statuses),
	KUNIT_CASE(test_post_fails),
	KUNIT_CASE(test_deadline),
	KUNIT_CASE(test_taken_back),
	KUNIT_CASE(test_renewed),
	KUNIT_CASE(test_right_withdrawn),
	KUNIT_CASE(test_suspect),
	KUNIT_CASE(test_got_while_suspect),
	KUNIT_CASE(test_stop),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite flow_suite = {
	.name = "rmp_flow",
	.suite_init = suite_begin,
	.init = flow_init,
	.exit = flow_exit,
	.test_cases = flow_cases,
};

kunit_test_suites(&flow_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's flows");
MODULE_LICENSE("GPL");
