// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/flow.c, lanes.c, route.c, repeat.c, renew.c and qp.c: requests become slices,
 * slices are posted and end, also with their queue pair, and then are posted again, but not too
 * early, nor with keys that were replaced; and each request ends once, with what moved.
 * The scheduler and the slicer are the real ones, queue pairs are played (flow_world.h).
 */
#include "flow_world.h"

/* No request here is copied: see the suite "staging". */
u64 rmp_stage_rest(const struct rmp_stage *stage, u64 pos, u64 rest)
{
	return rest;
}

bool rmp_stage_arrived(struct rmp_request *req, u64 iova, u32 length)
{
	return false;
}

void rmp_stage_stop(struct rmp_stage *stage)
{
}

void rmp_stage_end(struct rmp_stage *stage)
{
}

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

/* The first MiB is on devices that the first rail is between, the rest is on the first
 * device here and the second one there. What is before a border of chunks is not held up
 * by what is behind it.
 */
static struct asked *ask_dealt(struct kunit *test)
{
	struct asked *a = ask(test, 3 * MIB, RMPOOL_CLASS_NORMAL);

	a->region.iova = 0;
	a->region.chunk_shift = 21;
	a->rr.iova = 0;
	a->rr.chunk_shift = 20;
	world.no_local = ~1U;
	world.no_remote = ~(1U << 8);
	world.split = MIB;
	world.no_remote_behind = ~(1U << 9);
	submit(a);
	return a;
}

static void dealt_no_more(void)
{
	world.no_local = 0;
	world.no_remote = 0;
	world.split = 0;
}

/* Devices that have the bytes at both ends, and no rail between them: the request waits
 * while there may be one, and is refused when there can be none.
 */
static void test_no_rail(struct kunit *test)
{
	struct asked *a, *b;
	int ways;

	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	a = ask_dealt(test);
	KUNIT_EXPECT_EQ(test, a->posted, MIB);
	KUNIT_EXPECT_EQ(test, world.ways, 1);
	KUNIT_EXPECT_EQ(test, world.way_local, 1U << 0);
	KUNIT_EXPECT_EQ(test, world.way_remote, 1U << 9);
	/* It is known while the first slice is on its way. */
	world.no_way = true;
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	finish_all();
	check_ended(test, a, -ENETUNREACH);
	KUNIT_EXPECT_EQ(test, a->moved, MIB);
	KUNIT_EXPECT_FALSE(test, a->unknown);

	/* One there that had it may be back. */
	world.no_remote = ~(1U << 9);
	world.away = true;
	a = ask_now(test, 100, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	world.away = false;
	rmp_flow_kick(world.flow);
	let_sweep_run();
	check_ended(test, a, -ENETUNREACH);
	/* The next one is refused in the call that submits it, others go on. */
	b = ask_now(test, 100, RMPOOL_CLASS_HIGH);
	check_ended(test, b, -ENETUNREACH);
	KUNIT_EXPECT_EQ(test, b->moved, 0);
	world.no_local = ~(1U << 1);
	b = ask_now(test, 5 * MIB, RMPOOL_CLASS_BULK);
	finish_all();
	check_ended(test, b, 0);

	/* What no device has, on either side, may come again; nor is it known
	 * what can be when no rail is up.
	 */
	ways = world.ways;
	world.no_local = ~0U;
	a = ask_now(test, 100, RMPOOL_CLASS_NORMAL);
	dealt_no_more();
	world.no_remote = ~0U;
	b = ask_now(test, 100, RMPOOL_CLASS_NORMAL);
	rail_down(0);
	rail_down(1);
	world.no_local = ~1U;
	world.no_remote = ~(1U << 9);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, world.ways, ways);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	KUNIT_EXPECT_EQ(test, b->ended, 0);
	dealt_no_more();
	rail_up(test, 1, 1);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, 0);
}

static s64 slices_of(u32 rail)
{
	return atomic64_read(&world.rail[rail].slices);
}

/* A rail that was made for such bytes carries these, and others only when no other rail
 * is up.
 */
static void test_extra_rail(struct kunit *test)
{
	struct asked *a, *b;
	s64 slices;

	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	a = ask_dealt(test);
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	KUNIT_EXPECT_EQ(test, a->moved, MIB);
	rail_between(test, 2, 1, 0, 9, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	slices = slices_of(2);
	KUNIT_EXPECT_GT(test, slices, 0);

	dealt_no_more();
	b = ask_now(test, 40 * MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, b, 0);
	KUNIT_EXPECT_EQ(test, slices_of(2), slices);
	rail_down(0);
	rail_down(1);
	b = ask_now(test, 5 * MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, b, 0);
	KUNIT_EXPECT_GT(test, slices_of(2), slices);

	/* Another one in the same place, for all. */
	rail_down(2);
	rail_up(test, 2, 1);
	rail_up(test, 1, 1);
	slices = slices_of(2);
	b = ask_now(test, 40 * MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, b, 0);
	KUNIT_EXPECT_GT(test, slices_of(2), slices);
}

/* Breaks a queue pair: all that was posted on it fails. */
static void break_qp(u32 rail, u32 index, enum ib_wc_status status)
{
	proceed(qp_of(rail, index), status);
	while (proceed(qp_of(rail, index), IB_WC_SUCCESS))
		;
	flush_workqueue(rmp_wq);
}

/* A queue pair fails in the middle: what was on it goes on elsewhere, and nothing is
 * posted there any more.
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
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, world.failed_qps, 1);
	KUNIT_EXPECT_NULL(test, world.flow->sched.rails[0]);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	rail_down(0);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, 0);
	/* Who asks is told that it did not go smoothly. */
	KUNIT_EXPECT_EQ(test, a->req.wc_status, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_GT(test, a->req.attempts, 0);
	KUNIT_EXPECT_EQ(test, b->req.attempts, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&world.rail[0].errors),
			atomic64_read(&world.rail[0].slices));
}

static void test_statuses(struct kunit *test)
{
	static const struct {
		enum ib_wc_status wc;
		s32 status;
		bool again;
	} ends[] = {
		{ IB_WC_REM_ACCESS_ERR, -EREMOTEIO, false },
		{ IB_WC_REM_INV_REQ_ERR, -EREMOTEIO, false },
		{ IB_WC_REM_OP_ERR, -EREMOTEIO, false },
		{ IB_WC_RETRY_EXC_ERR, -ECONNRESET, true },
		{ IB_WC_RNR_RETRY_EXC_ERR, -ECONNRESET, true },
		{ IB_WC_WR_FLUSH_ERR, -ECONNRESET, true },
		{ IB_WC_RESP_TIMEOUT_ERR, -ECONNRESET, true },
		{ IB_WC_LOC_PROT_ERR, -EIO, false },
		{ IB_WC_LOC_LEN_ERR, -EIO, false },
		{ IB_WC_LOC_QP_OP_ERR, -EIO, true },
		{ IB_WC_GENERAL_ERR, -EIO, true },
	};
	struct asked *a;
	u32 i;

	rmp_max_failover = 0;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		rail_up(test, 0, 1);
		a = ask_now(test, 10, RMPOOL_CLASS_NORMAL);
		KUNIT_EXPECT_TRUE(test, proceed(qp_of(0, 0), ends[i].wc));
		while (proceed(qp_of(0, 0), IB_WC_SUCCESS))
			;
		check_ended(test, a, ends[i].status);
		KUNIT_EXPECT_EQ(test, a->req.wc_status, ends[i].wc);
		rail_down(0);
	}
	/* What says something about the slice itself fails it at once. */
	rmp_max_failover = 4;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		rail_up(test, 0, 1);
		a = ask_now(test, 10, RMPOOL_CLASS_NORMAL);
		break_qp(0, 0, ends[i].wc);
		KUNIT_EXPECT_EQ(test, a->ended, !ends[i].again);
		rail_down(0);
		rail_up(test, 0, 1);
		rmp_flow_kick(world.flow);
		let_sweep_run();
		finish_all();
		check_ended(test, a, ends[i].again ? 0 : ends[i].status);
		KUNIT_EXPECT_EQ(test, !!a->req.attempts, ends[i].again);
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
		/* What it did not take as well, once it is known to be drained. */
		rail_up(test, 2, 1);
		rail_down(0);
		rail_down(1);
		let_sweep_run();
		finish_all();
		check_ended(test, a, 0);
		rail_down(2);
	}
}

/* ------------------------------------------------------------ posted again */

/* Of as many slices as it has MiB. */
static struct asked *ask_plain(struct kunit *test, u32 mib, u8 op)
{
	struct asked *a = ask(test, mib * MIB, RMPOOL_CLASS_NORMAL);

	a->region.chunk_shift = 30;
	a->rr.chunk_shift = 30;
	a->req.op = op;
	return a;
}

/* One request, all of which is on a queue pair that broke; another rail is up. */
static struct asked *ask_and_break(struct kunit *test, u8 op)
{
	struct asked *a = ask_plain(test, 3, op);

	world.silent = true;
	rail_up(test, 0, 1);
	submit(a);
	KUNIT_EXPECT_EQ(test, a->posted, 3 * MIB);
	rail_up(test, 1, 1);
	break_qp(0, 0, IB_WC_WR_FLUSH_ERR);
	let_sweep_run();
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	return a;
}

/* A get waits for what was posted here, and no longer. */
static void test_get_again(struct kunit *test)
{
	struct asked *a = ask_and_break(test, RMPOOL_OP_GET);

	qp_down(0, 0);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	KUNIT_EXPECT_EQ(test, a->req.attempts, 3);
}

/* A put waits for the peer as well, whichever comes first. */
static void test_put_again(struct kunit *test)
{
	struct asked *a = ask_and_break(test, RMPOOL_OP_PUT), *b;
	u32 fence;

	qp_down(0, 0);
	let_sweep_run();
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	/* Nobody has to wait for it. */
	b = ask_now(test, MIB, RMPOOL_CLASS_NORMAL);
	finish_all();
	check_ended(test, b, 0);
	/* Answers that nobody waits for, and the right one. */
	say_fenced(4711, true);
	say_fenced(0, true);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	say_all_fenced();
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	rail_down(1);

	a = ask_and_break(test, RMPOOL_OP_PUT);
	fence = world.conn[0][0]->fence;
	say_fenced(fence, false);
	say_fenced(fence, false);
	let_sweep_run();
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	qp_down(0, 0);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
}

/* The peer never says so: the put is reported at its deadline, as unknown, and is over
 * then. After the word came, it is not unknown.
 */
static void test_no_fence(struct kunit *test)
{
	struct asked *a;
	int known;

	for (known = 0; known < 2; known++) {
		a = ask_and_break(test, RMPOOL_OP_PUT);
		qp_down(0, 0);
		/* No way for it, so that it does not just succeed. */
		rail_down(1);
		if (known)
			say_all_fenced();
		let_sweep_run();
		KUNIT_EXPECT_EQ(test, a->ended, 0);
		a->req.deadline = jiffies;
		rmp_flow_kick(world.flow);
		let_sweep_run();
		check_ended(test, a, -ETIMEDOUT);
		KUNIT_EXPECT_EQ(test, a->unknown, !known);
		say_all_fenced();
	}
}

/* A cancelled put is over when nothing of it can come any more; who cannot wait is told
 * that it is unknown. A get is over at once.
 */
static void test_cancel_held(struct kunit *test)
{
	struct asked *a = ask_and_break(test, RMPOOL_OP_PUT);
	bool idle;

	qp_down(0, 0);
	spin_lock_bh(&world.flow->lock);
	KUNIT_EXPECT_FALSE(test, rmp_flow_stop(&a->req, -ECANCELED));
	spin_unlock_bh(&world.flow->lock);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	say_all_fenced();
	check_ended(test, a, -ECANCELED);
	KUNIT_EXPECT_FALSE(test, a->unknown);
	rail_down(1);

	a = ask_and_break(test, RMPOOL_OP_PUT);
	qp_down(0, 0);
	spin_lock_bh(&world.flow->lock);
	KUNIT_EXPECT_FALSE(test, rmp_flow_stop(&a->req, -ECANCELED));
	a->req.reported = true;
	a->req.inflight++;
	spin_unlock_bh(&world.flow->lock);
	/* As it comes just then. */
	say_all_fenced();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	rmp_flow_report_early(world.flow, &a->req);
	check_ended(test, a, -ECANCELED);
	KUNIT_EXPECT_TRUE(test, a->unknown);
	rail_down(1);

	a = ask_and_break(test, RMPOOL_OP_GET);
	spin_lock_bh(&world.flow->lock);
	idle = rmp_flow_stop(&a->req, -ECANCELED);
	spin_unlock_bh(&world.flow->lock);
	KUNIT_EXPECT_TRUE(test, idle);
	rmp_request_end(&a->req);
	check_ended(test, a, -ECANCELED);
	rail_down(1);

	/* Cancelled while it is with the device, which then breaks. */
	world.silent = true;
	a = ask(test, MIB, RMPOOL_CLASS_NORMAL);
	a->req.op = RMPOOL_OP_PUT;
	qp_down(0, 0);
	rail_up(test, 0, 1);
	submit(a);
	spin_lock_bh(&world.flow->lock);
	KUNIT_EXPECT_FALSE(test, rmp_flow_stop(&a->req, -ECANCELED));
	spin_unlock_bh(&world.flow->lock);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	qp_down(0, 0);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	say_all_fenced();
	check_ended(test, a, -ECANCELED);
	KUNIT_EXPECT_EQ(test, a->req.attempts, 0);
}

/* A put that is with a device; then @stop is done with it, and its queue pair breaks. The
 * peer stays silent.
 */
static struct asked *stop_and_break(struct kunit *test,
				    bool (*stop)(struct rmp_request *req, s32 status),
				    enum ib_wc_status status)
{
	struct asked *a = ask_plain(test, 3, RMPOOL_OP_PUT);

	world.silent = true;
	rail_up(test, 0, 1);
	submit(a);
	KUNIT_EXPECT_EQ(test, a->posted, 3 * MIB);
	spin_lock_bh(&world.flow->lock);
	KUNIT_EXPECT_FALSE(test, stop(&a->req, -ECANCELED));
	spin_unlock_bh(&world.flow->lock);
	break_qp(0, 0, status);
	qp_down(0, 0);
	let_sweep_run();
	return a;
}

/* Of a file that ended nobody waits for the peer's word, whenever the queue pair dies;
 * who cancels does, however often the bytes were posted, and whatever it died of.
 */
static void test_stopped_before(struct kunit *test)
{
	static const enum ib_wc_status ends[] = {
		IB_WC_RETRY_EXC_ERR, IB_WC_REM_ACCESS_ERR,
	};
	struct asked *a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		a = stop_and_break(test, rmp_flow_abandon, ends[i]);
		check_ended(test, a, -ECANCELED);
		say_all_fenced();
		rmp_max_failover = i ? 4 : 0;
		a = stop_and_break(test, rmp_flow_stop, ends[i]);
		KUNIT_EXPECT_EQ(test, a->ended, 0);
		say_all_fenced();
		check_ended(test, a, -ECANCELED);
		KUNIT_EXPECT_FALSE(test, a->unknown);
	}
}

/* The region goes while pieces are held, here or at the peer, or the session ends:
 * nobody waits for the peer's word.
 */
static void test_held_taken_back(struct kunit *test)
{
	static const u8 ops[] = { RMPOOL_OP_PUT, RMPOOL_OP_GET };
	struct asked *a;
	u32 i, way;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (way = 0; way < 5; way++) {
			a = ask_and_break(test, ops[i]);
			if (way == 0)
				WRITE_ONCE(a->region.dead, true);
			else if (way == 1)
				WRITE_ONCE(a->region.state,
					   RMPOOL_REGION_STATE_STALE);
			else if (way == 2)
				WRITE_ONCE(a->rr.stale, true);
			else if (way == 3)
				WRITE_ONCE(a->rr.revoked, true);
			/* Before or after it is drained. */
			if (way == 4 || below(2))
				qp_down(0, 0);
			if (way == 4) {
				rail_down(1);
				WRITE_ONCE(a->rr.revoked, true);
			}
			rmp_flow_kick(world.flow);
			let_sweep_run();
			check_ended(test, a, way == 4 ? -ECONNRESET : -ESTALE);
			KUNIT_EXPECT_FALSE(test, a->unknown);
			rail_down(0);
			rail_down(1);
			say_all_fenced();
		}
	}
}

/* The same bytes are posted so often and no more; other bytes have tries of their own. */
static void test_max_failover(struct kunit *test)
{
	struct asked *a;
	u32 max, n;

	for (max = 0; max < 4; max++) {
		rmp_max_failover = max;
		rail_up(test, 0, 1);
		a = ask(test, 8 * MIB, RMPOOL_CLASS_NORMAL);
		submit(a);
		for (n = 0; n < max; n++) {
			break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
			KUNIT_EXPECT_EQ(test, a->ended, 0);
			rail_down(0);
			rail_up(test, 0, 1);
			rmp_flow_kick(world.flow);
			let_sweep_run();
		}
		if (below(2)) {
			finish_all();
			check_ended(test, a, 0);
		} else {
			break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
			check_ended(test, a, -ECONNRESET);
		}
		rail_down(0);
	}
}

/* There are too many pieces: who gets none fails, and gives back what it has. */
static void test_max_pieces(struct kunit *test)
{
	struct asked *a = ask_plain(test, 3, RMPOOL_OP_PUT);

	rail_up(test, 0, 1);
	submit(a);
	world.flow->nr_pieces = RMP_PIECES_MAX - 2;
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	check_ended(test, a, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, world.flow->nr_pieces, RMP_PIECES_MAX - 2);
	world.flow->nr_pieces = 0;
	rail_down(0);
}

/* Repeated bytes take another rail where there is one, and the same where not. */
static void test_other_rail(struct kunit *test)
{
	struct asked *a = ask_plain(test, 2, RMPOOL_OP_PUT);
	struct asked *b = ask_plain(test, 3, RMPOOL_OP_PUT);
	u32 nr;

	/* Of the first, one on each queue pair; of the second, more on the other rail. */
	rail_up(test, 0, 2);
	submit(a);
	rail_up(test, 1, 1);
	submit(b);
	KUNIT_EXPECT_GE(test, played(qp_of(1, 0))->nr, 2);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	nr = played(qp_of(0, 1))->nr;
	qp_down(0, 0);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->posted, 2 * MIB);
	KUNIT_EXPECT_EQ(test, played(qp_of(0, 1))->nr, nr);
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, 0);
	rail_down(1);

	a = ask_now(test, 2 * MIB, RMPOOL_CLASS_NORMAL);
	break_qp(0, 1, IB_WC_RETRY_EXC_ERR);
	rail_down(0);
	rail_up(test, 0, 1);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
}

/* ------------------------------------------------------- rails that are full */

static u32 elsewhere_of(const struct rmp_region *region)
{
	return container_of(region, struct asked, region)->elsewhere;
}

/* Devices that do not have the memory: all but one. */
#define ONLY_A	0xfffffffe
#define ONLY_B	0xfffffffd

/* Of slices of 1 MiB, from memory that the other devices do not have. */
static struct asked *ask_on(struct kunit *test, u32 elsewhere, u64 length, u8 prio)
{
	struct asked *a = ask(test, length, prio);

	world.no_local_of = elsewhere_of;
	a->elsewhere = elsewhere;
	a->region.chunk_shift = 30;
	a->rr.chunk_shift = 30;
	submit(a);
	return a;
}

/* Requests that wait for a full rail do not keep others of their class, or of a lower one, from
 * a rail that has room, and are not overtaken on theirs.
 */
static void test_full_rail(struct kunit *test)
{
	struct asked *slow, *high, *next, *low, *b, *c, *d, *any;

	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	slow = ask_on(test, ONLY_A, 40 * MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, slow->posted, 4 * MIB);
	low = ask_on(test, ONLY_A, MIB, RMPOOL_CLASS_BULK);
	next = ask_on(test, ONLY_A, MIB, RMPOOL_CLASS_NORMAL);
	high = ask_on(test, ONLY_A, MIB, RMPOOL_CLASS_HIGH);
	b = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_HIGH);
	c = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_NORMAL);
	d = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_BULK);
	any = ask_on(test, 0, 2 * MIB, RMPOOL_CLASS_BULK);
	KUNIT_EXPECT_EQ(test, slow->posted, 4 * MIB);
	KUNIT_EXPECT_EQ(test, high->posted + next->posted + low->posted, 0);
	KUNIT_EXPECT_EQ(test, b->posted, MIB);
	KUNIT_EXPECT_EQ(test, c->posted, MIB);
	KUNIT_EXPECT_EQ(test, d->posted, MIB);
	KUNIT_EXPECT_EQ(test, any->posted, MIB);
	/* Nothing of the first rail ends: the second one is not kept waiting for that. */
	while (proceed(qp_of(1, 0), IB_WC_SUCCESS))
		flush_workqueue(rmp_wq);
	check_ended(test, b, 0);
	check_ended(test, c, 0);
	check_ended(test, d, 0);
	check_ended(test, any, 0);
	KUNIT_EXPECT_EQ(test, slow->posted, 4 * MIB);
	finish_all();
	check_ended(test, slow, 0);
	check_ended(test, high, 0);
	check_ended(test, next, 0);
	check_ended(test, low, 0);
	KUNIT_EXPECT_LT(test, place_of(test, high), place_of(test, slow));
	KUNIT_EXPECT_LT(test, place_of(test, slow), place_of(test, next));
	KUNIT_EXPECT_LT(test, place_of(test, next), place_of(test, low));
}

/* Thousands wait: what another rail carries costs no look at them, and they go on in the order in
 * which they came. Some end while they wait.
 */
static void test_many_wait(struct kunit *test)
{
	enum { NR = 2000 };
	struct asked *slow, *b, *gone, **a;
	u32 i, n = 0;
	bool idle;

	a = kunit_kcalloc(test, NR, sizeof(*a), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, a);
	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	slow = ask_on(test, ONLY_A, 5 * MIB, RMPOOL_CLASS_NORMAL);
	gone = ask_on(test, ONLY_A, MIB, RMPOOL_CLASS_NORMAL);
	for (i = 0; i < NR; i++)
		a[i] = ask_on(test, ONLY_A, 4 * KIB, RMPOOL_CLASS_NORMAL);
	world.looks = 0;
	b = ask_on(test, ONLY_B, 8 * MIB, RMPOOL_CLASS_NORMAL);
	while (proceed(qp_of(1, 0), IB_WC_SUCCESS))
		flush_workqueue(rmp_wq);
	check_ended(test, b, 0);
	/* Two rails for each slice, and where it is cut, and when there was no room. */
	KUNIT_EXPECT_LE(test, world.looks, 8 * 5);
	spin_lock_bh(&world.flow->lock);
	idle = rmp_flow_stop(&gone->req, -ECANCELED);
	spin_unlock_bh(&world.flow->lock);
	KUNIT_EXPECT_TRUE(test, idle);
	rmp_request_end(&gone->req);
	/* They may be for other rails, and are not. */
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a[0]->posted, 0);
	world.looks = 0;
	finish_all();
	KUNIT_EXPECT_LE(test, world.looks, NR * 10);
	check_ended(test, slow, 0);
	for (i = 0; i < NR; i++)
		check_ended(test, a[i], 0);
	for (i = 0; i < world.nr_ended && n < NR; i++)
		n += world.ended[i] == a[n];
	KUNIT_EXPECT_EQ(test, n, NR);
}

/* Of each request one half goes by one rail and the rest by the other: the first rail goes on
 * when the second is full, and what waits there was asked for first and ends first.
 */
static void test_halves(struct kunit *test)
{
	enum { NR = 100 };
	struct asked *a[NR];
	u32 i, turn;

	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	world.no_remote = ~(1U << 8);
	world.split = MIB;
	world.no_remote_behind = ~(1U << 9);
	for (i = 0; i < NR; i++) {
		a[i] = ask(test, 2 * MIB, RMPOOL_CLASS_NORMAL);
		a[i]->region.chunk_shift = 30;
		a[i]->rr.iova = 0;
		a[i]->rr.chunk_shift = 20;
		submit(a[i]);
	}
	for (turn = 0; turn < NR / 2; turn++) {
		proceed(qp_of(0, 0), IB_WC_SUCCESS);
		flush_workqueue(rmp_wq);
	}
	KUNIT_EXPECT_EQ(test, a[3]->posted, 2 * MIB);
	KUNIT_EXPECT_EQ(test, a[4]->posted, MIB);
	KUNIT_EXPECT_EQ(test, a[NR / 3]->posted, MIB);
	for (turn = 0; turn < 5 * NR; turn++) {
		proceed(qp_of((u32)below(2), 0), IB_WC_SUCCESS);
		if (!below(20))
			rmp_flow_kick(world.flow);
		let_sweep_run();
	}
	finish_all();
	for (i = 0; i < NR; i++) {
		check_ended(test, a[i], 0);
		KUNIT_EXPECT_PTR_EQ(test, world.ended[i], a[i]);
	}
	dealt_no_more();
}

/* More sets of rails are waited for than there are lanes: who would need one more holds up what
 * is behind, until there is room on its rail.
 */
static void test_no_lane(struct kunit *test)
{
	struct rmp_request *others;
	struct rmp_lane *lane;
	struct asked *slow, *b;
	u32 i;

	others = kunit_kcalloc(test, RMP_LANES, sizeof(*others), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, others);
	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	for (i = 0; i < RMP_LANES; i++) {
		lane = &world.flow->lanes[i];
		/* None that is up. */
		lane->rails = BIT(16 + i);
		list_add(&others[i].queue, &lane->wait[RMPOOL_CLASS_BULK]);
	}
	world.flow->nr_lanes = RMP_LANES;
	slow = ask_on(test, ONLY_A, 5 * MIB, RMPOOL_CLASS_NORMAL);
	b = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, slow->posted, 4 * MIB);
	KUNIT_EXPECT_EQ(test, b->posted, 0);
	proceed(qp_of(0, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, slow->posted, 5 * MIB);
	KUNIT_EXPECT_EQ(test, b->posted, MIB);
	for (i = 0; i < RMP_LANES; i++)
		list_del(&others[i].queue);
	finish_all();
	check_ended(test, slow, 0);
	check_ended(test, b, 0);
	/* They are free again. */
	slow = ask_on(test, ONLY_A, 5 * MIB, RMPOOL_CLASS_NORMAL);
	b = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, b->posted, MIB);
	KUNIT_EXPECT_EQ(test, world.flow->nr_lanes, 1);
	finish_all();
	check_ended(test, slow, 0);
	check_ended(test, b, 0);
}

/* All lanes are in use, one by a single request, whose rails may be others than before: that one
 * is free for where it belongs then.
 */
static void test_last_lane(struct kunit *test)
{
	struct rmp_request *others;
	struct rmp_lane *lane;
	struct asked *slow, *b;
	u32 i;

	others = kunit_kcalloc(test, RMP_LANES - 1, sizeof(*others), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, others);
	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	for (i = 0; i < RMP_LANES - 1; i++) {
		lane = &world.flow->lanes[i];
		/* None that is up. */
		lane->rails = BIT(16 + i);
		list_add(&others[i].queue, &lane->wait[RMPOOL_CLASS_BULK]);
	}
	world.flow->nr_lanes = RMP_LANES - 1;
	slow = ask_on(test, ONLY_A, 5 * MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, world.flow->nr_lanes, RMP_LANES);
	lane = &world.flow->lanes[RMP_LANES - 1];
	KUNIT_EXPECT_TRUE(test, lane_used(lane));
	lane->rails = ~0U;
	b = ask_on(test, ONLY_B, MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, slow->posted, 4 * MIB);
	KUNIT_EXPECT_EQ(test, b->posted, MIB);
	KUNIT_EXPECT_TRUE(test, lane_used(lane));
	KUNIT_EXPECT_NE(test, lane->rails, ~0U);
	for (i = 0; i < RMP_LANES - 1; i++)
		list_del(&others[i].queue);
	finish_all();
	check_ended(test, slow, 0);
	check_ended(test, b, 0);
}

/* What waits for a rail takes another one when that leaves; what a dead queue pair carried waits
 * for a full rail by itself, and goes first there.
 */
static void test_wait_and_die(struct kunit *test)
{
	struct asked *slow, *a, *b;

	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	rail_between(test, 2, 1, 0, 9, true);
	slow = ask_on(test, ONLY_A, 6 * MIB, RMPOOL_CLASS_NORMAL);
	a = ask_on(test, ONLY_A, MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, a->posted, MIB);
	rail_down(0);
	let_sweep_run();
	finish_all();
	check_ended(test, slow, 0);
	check_ended(test, a, 0);
	rail_down(2);

	rail_up(test, 0, 2);
	slow = ask_on(test, ONLY_B, 40 * MIB, RMPOOL_CLASS_NORMAL);
	a = ask_on(test, 0, MIB, RMPOOL_CLASS_NORMAL);
	KUNIT_EXPECT_EQ(test, a->posted, MIB);
	KUNIT_ASSERT_EQ(test, played(qp_of(0, 0))->nr, 1);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	qp_down(0, 0);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	b = ask_on(test, 0, MIB, RMPOOL_CLASS_BULK);
	KUNIT_EXPECT_EQ(test, b->posted, MIB);
	KUNIT_EXPECT_EQ(test, played(qp_of(0, 1))->nr, 1);
	proceed(qp_of(1, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, a->posted, MIB);
	finish_all();
	check_ended(test, a, 0);
	check_ended(test, b, 0);
	check_ended(test, slow, 0);
	KUNIT_EXPECT_LT(test, place_of(test, a), place_of(test, slow));
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
	submit(flies);
	submit(waits);
	submit(later);
	KUNIT_EXPECT_EQ(test, waits->posted, 0);
	/* Whoever stands still before does not make them end too early. */
	spin_lock_bh(&world.flow->lock);
	flies->req.deadline = jiffies;
	waits->req.deadline = jiffies;
	spin_unlock_bh(&world.flow->lock);
	/* It is due by itself: nobody kicks. */
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

/* What a dead queue pair carried does not keep the old keys, whatever it waits for, nor
 * does what is only being copied.
 */
static void test_renewed_held(struct kunit *test)
{
	struct asked *a = ask_and_break(test, RMPOOL_OP_PUT);

	renew(a);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
	qp_down(0, 0);
	KUNIT_EXPECT_EQ(test, a->posted, 0);
	say_all_fenced();
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);
	rail_down(1);

	/* They are replaced while it is in flight: the last that fails lets go of them. */
	a = ask_plain(test, 3, RMPOOL_OP_PUT);
	rail_up(test, 0, 1);
	submit(a);
	rail_up(test, 1, 1);
	renew(a);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->rr);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
	qp_down(0, 0);
	say_all_fenced();
	let_sweep_run();
	finish_all();
	check_ended(test, a, 0);

	/* And then the new ones are taken back, too: nobody waits for the peer's end. */
	a = ask_plain(test, 3, RMPOOL_OP_PUT);
	rail_down(1);
	rail_up(test, 0, 1);
	submit(a);
	rail_up(test, 1, 1);
	renew(a);
	WRITE_ONCE(a->renewed.revoked, true);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	break_qp(0, 0, IB_WC_RETRY_EXC_ERR);
	check_ended(test, a, -ESTALE);
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
	rail_down(0);
	say_all_fenced();

	a = ask_plain(test, 1, RMPOOL_OP_GET);
	/* Who copies. */
	a->req.inflight = 1;
	submit(a);
	finish_all();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	renew(a);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	KUNIT_EXPECT_PTR_EQ(test, a->req.rr, &a->renewed);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
	rmp_flow_copied(&a->req, 0, 0);
	check_ended(test, a, 0);
}

/* Nor does the peer wait for who copies when it takes the region back. What comes
 * afterwards ends for the same reason as if it had been there.
 */
static void test_taken_back_copied(struct kunit *test)
{
	struct asked *a;
	u32 way;

	rail_up(test, 0, 1);
	for (way = 0; way < 4; way++) {
		a = ask_plain(test, 1, way & 1 ? RMPOOL_OP_GET : RMPOOL_OP_PUT);
		/* Who copies. */
		a->req.inflight = 1;
		submit(a);
		if (way & 1)
			finish_all();
		if (way & 2)
			WRITE_ONCE(a->rr.access, 0);
		WRITE_ONCE(a->rr.revoked, true);
		rmp_flow_kick(world.flow);
		let_sweep_run();
		/* Not before its slice has ended. */
		KUNIT_EXPECT_EQ(test, a->req.rr == &a->rr, !(way & 1));
		finish_all();
		KUNIT_EXPECT_PTR_NE(test, a->req.rr, &a->rr);
		KUNIT_EXPECT_EQ(test, refcount_read(&a->rr.ref), 1);
		KUNIT_EXPECT_EQ(test, a->ended, 0);
		/* A put is not whole yet. */
		if (!(way & 1)) {
			rmp_flow_more(&a->req, MIB);
			rmp_flow_run(world.flow);
			KUNIT_EXPECT_EQ(test, a->req.status,
					way & 2 ? -EACCES : -ESTALE);
		}
		rmp_flow_copied(&a->req, 0, 0);
		KUNIT_EXPECT_EQ(test, a->ended, 1);
		KUNIT_EXPECT_EQ(test, a->posted, MIB);
		if (way & 1)
			check_ended(test, a, 0);
	}
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
	u32 n, i, q, up = 0, ok = 0, again = 0;

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
			if (!below(3))
				say_all_fenced();
			if (below(6))
				break;
			world.silent = below(2);
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
	world.silent = false;
	say_all_fenced();
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
		again += a[n]->req.attempts;
		if (!a[n]->status) {
			KUNIT_EXPECT_EQ(test, a[n]->posted, a[n]->length);
			KUNIT_EXPECT_EQ(test, a[n]->tiles,
					tile(a[n]->length) - tile(0));
		}
	}
	kunit_info(test, "%u of %u succeeded, %u slices were repeated", ok, NR,
		   again);
	KUNIT_EXPECT_GT(test, again, 0);
	KUNIT_EXPECT_GT(test, ok, NR / 10);
	KUNIT_EXPECT_LT(test, ok, NR);
}

static struct kunit_case flow_cases[] = {
	KUNIT_CASE(test_lengths),
	KUNIT_CASE(test_classes),
	KUNIT_CASE(test_no_way),
	KUNIT_CASE(test_no_rail),
	KUNIT_CASE(test_extra_rail),
	KUNIT_CASE(test_qp_dies),
	KUNIT_CASE(test_statuses),
	KUNIT_CASE(test_post_fails),
	KUNIT_CASE(test_get_again),
	KUNIT_CASE(test_put_again),
	KUNIT_CASE(test_no_fence),
	KUNIT_CASE(test_cancel_held),
	KUNIT_CASE(test_stopped_before),
	KUNIT_CASE(test_held_taken_back),
	KUNIT_CASE(test_max_failover),
	KUNIT_CASE(test_max_pieces),
	KUNIT_CASE(test_other_rail),
	KUNIT_CASE(test_full_rail),
	KUNIT_CASE(test_many_wait),
	KUNIT_CASE(test_halves),
	KUNIT_CASE(test_no_lane),
	KUNIT_CASE(test_last_lane),
	KUNIT_CASE(test_wait_and_die),
	KUNIT_CASE(test_deadline),
	KUNIT_CASE(test_taken_back),
	KUNIT_CASE(test_renewed),
	KUNIT_CASE(test_renewed_held),
	KUNIT_CASE(test_taken_back_copied),
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
