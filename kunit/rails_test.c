// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/rails.c, dial.c, admit.c and dying.c: which devices are paired, tokens and
 * their use, queue pairs that fail and come again, or are slow to go, what either side is
 * told of them, devices that come, go and change, on either side. The rooms around it are
 * the real ones, what they stand on is played (peer_world.h).
 */
#include "peer_world.h"

#define MS(n)	msecs_to_jiffies(n)

/* -------------------------------------------------------- we are who connects */

/* One rail for each device here, in order, with the next device there. */
static void test_pairs(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg;

	device_come(2);
	go_live(test, peer, 2);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 0));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 1));
	KUNIT_EXPECT_EQ(test, rail_of(peer, 0)->remote_dev, 5);
	KUNIT_EXPECT_EQ(test, rail_of(peer, 1)->remote_dev, 6);
	/* The speed of the slower side, the port of the peer. */
	KUNIT_EXPECT_EQ(test, rail_of(peer, 0)->speed_mbps, 50000);
	KUNIT_EXPECT_EQ(test, rmp_endpoint_port(&rail_of(peer, 0)->remote),
			RMP_WIRE_PORT);
	/* There are no more devices there. */
	KUNIT_EXPECT_NULL(test, rail_of(peer, 2));
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
	KUNIT_EXPECT_EQ(test, msg.rail_request.sender_dev, 0);
	KUNIT_EXPECT_EQ(test, msg.rail_request.receiver_dev, 5);
	KUNIT_EXPECT_EQ(test, msg.rail_request.nr_qps, 2);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	/* A third one comes. */
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 2));
	KUNIT_EXPECT_EQ(test, rail_of(peer, 2)->remote_dev, 7);
}

/* Ports without an address, or of another family, make no rail. */
static void test_no_pair(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg = {
		.type = RMP_MSG_DEVICES,
		.devices = {
			.nr = 1,
			.dev[0] = { .index = 1, .mtu = 5, .family = 6,
				    .addr = { 0xfd, [15] = 1 } },
		},
	};

	world.port[1].why = "no link";
	go_live(test, peer, 0);
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 0));
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_EXPECT_NOT_NULL(test, rail_of(peer, 0));
	KUNIT_EXPECT_NULL(test, rail_of(peer, 1));
	/* Its link comes up. */
	world.port[1].why = NULL;
	rmp_peer_device_changed(world.dev[1]);
	world_settle(test);
	KUNIT_EXPECT_NOT_NULL(test, rail_of(peer, 1));
	check_peer(test, peer);
}

/* Refused, or not answered: asked again with pauses of 100 ms to 5 s. */
static void test_tokens_refused(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	unsigned long pause = MS(100);
	struct rmp_rail *rail;
	int i;

	go_live(test, peer, 1);
	rail = rail_of(peer, 0);
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 0,
						 RMP_REJECT_RESOURCES), 0);
		KUNIT_EXPECT_EQ(test, rail->backoff, pause);
		world_advance(test, pause - 1);
		KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
		world_advance(test, 1);
		pause = min(pause * 2, MS(5000));
		answer_probe(test, peer);
		/* It lives, but for the rail. */
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 3, 1, 0), 0);
	}
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_EQ(test, rail->backoff, 0);
	check_peer(test, peer);
	/* What nobody asked for changes nothing. */
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
}

static void test_tokens_unanswered(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_live(test, peer, 1);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	world_advance_ms(test, 2900);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	world_advance_ms(test, 300);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	check_peer(test, peer);
}

/* It may give fewer than were asked for. */
static void test_fewer_tokens(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_live(test, peer, 1);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 1, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.data_connects), 1);
	/* And more than that are not made use of. */
	forget_sent();
	world_advance_ms(test, 4000);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
}

static void test_connect_fails(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rail *rail;

	go_live(test, peer, 2);
	forget_sent();
	rail = rail_of(peer, 0);
	world.result = -ECONNREFUSED;
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world.result = 0;
	/* The rest of the tokens is of no use: they belong together. */
	KUNIT_EXPECT_EQ(test, atomic_read(&world.data_connects), 1);
	KUNIT_EXPECT_EQ(test, rail->tokens, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	/* The other rail does not wait for it. */
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 1, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	world_advance_ms(test, 200);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);
}

/* A queue pair fails: it goes, the others stay, and a new one is made. */
static void test_qp_fails(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_conn *stays;

	go_ready(test, peer, 1);
	forget_sent();
	stays = rail_of(peer, 0)->conns[1];
	fail_qp(test, peer, 0, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 1);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	/* Tokens are asked for once in 3 s. */
	world_advance_ms(test, 3000);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_PTR_EQ(test, rail_of(peer, 0)->conns[1], stays);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.data_connects), 3);

	/* Both. The other one's new token was not used yet: it is back at once. */
	fail_qp(test, peer, 0, 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	fail_qp(test, peer, 0, 1);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.data_connects), 4);
	/* And once more: there is no way until one is back. */
	fail_qp(test, peer, 0, 1);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	check_peer(test, peer);
	world_advance_ms(test, 3000);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	check_peer(test, peer);
}

static int say_lost(struct kunit *test, struct rmp_peer *peer, u8 rail, u8 qp, u32 qpn)
{
	return say(test, peer, &(struct rmp_msg){
		.type = RMP_MSG_RAIL_LOST,
		.rail_lost = { .rail = rail, .qp = qp, .qpn = qpn },
	});
}

/* The other side is asked about a queue pair that went, by the numbers of both ends; and
 * what it tells takes ours down, unless it was another one.
 */
static void test_tells_lost(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg;
	u32 qpn, fence;

	go_ready(test, peer, 2);
	qpn = rail_of(peer, 1)->conns[1]->qpn;
	fence = rail_of(peer, 1)->conns[1]->fence;
	fail_qp(test, peer, 1, 1);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_QP_FENCE, &msg));
	KUNIT_EXPECT_EQ(test, msg.qp_fence.rail, 1);
	KUNIT_EXPECT_EQ(test, msg.qp_fence.qp, 1);
	KUNIT_EXPECT_EQ(test, msg.qp_fence.id, fence);
	KUNIT_EXPECT_EQ(test, msg.qp_fence.qpn, qpn);
	KUNIT_EXPECT_EQ(test, msg.qp_fence.peer_qpn, qpn + 1);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCE, NULL));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCED, NULL));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 3);
	/* What it answers is for the data rooms. */
	KUNIT_EXPECT_EQ(test, world.nr_fenced, 0);
	KUNIT_EXPECT_EQ(test, say(test, peer, &(struct rmp_msg){
		.type = RMP_MSG_QP_FENCED,
		.qp_fenced = { .id = fence },
	}), 0);
	KUNIT_EXPECT_EQ(test, world.nr_fenced, 1);
	KUNIT_EXPECT_EQ(test, world.fenced[0], fence);

	qpn = rail_of(peer, 0)->conns[1]->peer_qpn;
	KUNIT_EXPECT_EQ(test, say_lost(test, peer, 0, 0, qpn), 0);
	KUNIT_EXPECT_EQ(test, say_lost(test, peer, 0, 1, qpn + 1), 0);
	KUNIT_EXPECT_EQ(test, say_lost(test, peer, 0, 2, qpn), 0);
	KUNIT_EXPECT_EQ(test, say_lost(test, peer, 31, 1, qpn), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 3);
	KUNIT_EXPECT_EQ(test, say_lost(test, peer, 0, 1, qpn), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	/* Both come back. */
	world_advance_ms(test, 3000);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 1, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);
	/* Of a session that ends nothing is told. */
	forget_sent();
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_LOST, NULL));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCE, NULL));
}

static int say_fence(struct kunit *test, struct rmp_peer *peer, u8 rail, u32 id,
		     const struct rmp_conn *conn, u32 off)
{
	/* As seen from the other end. */
	return say(test, peer, &(struct rmp_msg){
		.type = RMP_MSG_QP_FENCE,
		.qp_fence = { .rail = rail, .id = id, .qpn = conn->peer_qpn,
			      .peer_qpn = conn->qpn + off },
	});
}

static void expect_fenced(struct kunit *test, u32 id)
{
	struct rmp_msg msg = {};

	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_QP_FENCED, &msg));
	KUNIT_EXPECT_EQ(test, msg.qp_fenced.id, id);
}

static struct rmp_peer *fenced_peer;
static bool fenced_early;

/* Asked just then, twice, by a message that another work item handles. */
static void ask_while_draining(struct rmp_conn *conn)
{
	struct rmp_msg_qp_fence m = {
		.rail = conn->end_rail, .id = 7,
		.qpn = conn->peer_qpn, .peer_qpn = conn->qpn,
	};

	rmp_fence_asked(fenced_peer->session, &m);
	m.id = 8;
	rmp_fence_asked(fenced_peer->session, &m);
	/* Not yet: it may still write. */
	fenced_early = was_sent(RMP_MSG_QP_FENCED, NULL);
}

/* Asked by the other side: what is there is taken down, and the answer comes when that
 * is drained; about all else it comes at once, and nothing else happens.
 */
static void test_asked(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_conn *conn, was;

	go_ready(test, peer, 2);
	forget_sent();
	conn = rail_of(peer, 0)->conns[1];
	was = *conn;
	KUNIT_EXPECT_EQ(test, say_fence(test, peer, 1, 1, conn, 0), 0);
	expect_fenced(test, 1);
	KUNIT_EXPECT_EQ(test, say_fence(test, peer, 0, 2, conn, 1), 0);
	expect_fenced(test, 2);
	KUNIT_EXPECT_EQ(test, say_fence(test, peer, 31, 3, conn, 0), 0);
	expect_fenced(test, 3);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);

	KUNIT_EXPECT_EQ(test, say_fence(test, peer, 0, 4, conn, 0), 0);
	expect_fenced(test, 4);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 1);
	/* The other end went with it, and is asked about. */
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_QP_FENCE, NULL));
	/* Once more, now that it is gone. */
	KUNIT_EXPECT_EQ(test, say_fence(test, peer, 0, 5, &was, 0), 0);
	expect_fenced(test, 5);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCED, NULL));

	fenced_peer = peer;
	world.draining = ask_while_draining;
	fail_qp(test, peer, 1, 0);
	KUNIT_EXPECT_NULL(test, world.draining);
	KUNIT_EXPECT_FALSE(test, fenced_early);
	expect_fenced(test, 8);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCED, NULL));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	check_peer(test, peer);
	/* Nothing is said where all ends. */
	forget_sent();
	world.draining = ask_while_draining;
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	KUNIT_EXPECT_NULL(test, world.draining);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_QP_FENCED, NULL));
}

/* Its queue pairs are drained, and the session is at an end but for them. */
static bool drained(struct rmp_peer *peer)
{
	return atomic_read(&world.kicks) && wq_has_sleeper(&peer->wait);
}

/* To destroy one may take a device long. Meanwhile another takes its place, and what else
 * dies is seen to; only the end of the session waits for it.
 */
static void test_slow_to_destroy(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	u32 i;

	go_ready(test, peer, 2);
	clock_nobody_dies = true;
	fail_qp(test, peer, 0, 0);
	fail_qp(test, peer, 1, 1);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	world_advance_ms(test, 3000);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_QP_FENCE, NULL));
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, i, 2, 0), 0);
	}
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 6);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	check_peer(test, peer);

	atomic_set(&world.kicks, 0);
	want_no_more(peer);
	mutex_lock(&peer->lock);
	rmp_session_break(peer->session, -ECONNRESET, RMPOOL_REASON_PEER_GONE);
	mutex_unlock(&peer->lock);
	until(test, drained(peer));
	KUNIT_EXPECT_EQ(test, READ_ONCE(peer->state), RMPOOL_PEER_CLOSING);
	KUNIT_EXPECT_NOT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	open_gate();
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 6);
	KUNIT_EXPECT_NULL(test, peer->session);
	check_peer(test, peer);
}

/* Very many are not kept so: the place stays empty then. Others go on. */
static void test_too_many_dying(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;
	u32 i;

	go_ready(test, peer, 2);
	clock_nobody_dies = true;
	for (i = 1; i < RMP_DYING_MAX; i++) {
		forget_sent();
		fail_qp(test, peer, 0, 0);
		world_advance_ms(test, 3000);
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
		world_advance_ms(test, 20);
		KUNIT_ASSERT_EQ(test, qps_up(peer), 4);
	}
	forget_sent();
	fail_qp(test, peer, 0, 0);
	fail_qp(test, peer, 1, 0);
	/* This one has not asked for long. */
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
	KUNIT_EXPECT_EQ(test, msg.rail_request.rail, 1);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 1, 2, 0), 0);
	world_advance_ms(test, 4000);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 3);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 3 + RMP_DYING_MAX + 1);

	open_gate();
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 3);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
	KUNIT_EXPECT_EQ(test, msg.rail_request.rail, 0);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);
}

/* ------------------------------------------------------------------- devices */

static struct rmp_device *removed_dev;

static void test_device_goes(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg;

	go_ready(test, peer, 2);
	forget_sent();
	/* It returns when nothing uses the device any more; see device_go(). */
	device_go(test, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_DEVICES, &msg));
	KUNIT_EXPECT_EQ(test, msg.devices.nr, 1);
	/* And back. */
	device_come(1);
	rmp_peer_device_changed(world.dev[1]);
	world_settle(test);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 1));
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_DEVICES, &msg));
	KUNIT_EXPECT_EQ(test, msg.devices.nr, 2);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 1, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);
}

static int call_device_removed(struct caller *c)
{
	rmp_peer_device_removed(removed_dev);
	return 0;
}

/* What is being destroyed on it is waited for, and nothing else. */
static void test_device_goes_slowly(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c = { .call = call_device_removed };

	go_ready(test, peer, 2);
	device_come(2);
	clock_nobody_dies = true;
	fail_qp(test, peer, 0, 0);
	fail_qp(test, peer, 1, 0);
	device_go(test, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);

	removed_dev = world.dev[1];
	WRITE_ONCE(removed_dev->going, true);
	world.dev[1] = NULL;
	caller_start(test, &c);
	until(test, !rail_of(peer, 1));
	world_settle(test);
	until_asleep(test, peer);
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	/* The worker does not wait. */
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	open_gate();
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&world.destroyed), 2);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 3);
	rmp_device_put(removed_dev);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&removed_dev->released,
							    PATIENCE));
	kfree(removed_dev);
	check_peer(test, peer);
}

/* No peer has to wait for what is being destroyed of another. */
static void test_device_goes_at_once(struct kunit *test)
{
	struct rmp_peer *b = peer_make(test, "b", 1), *c = peer_make(test, "c", 2);
	struct caller caller = { .call = call_device_removed };

	go_ready(test, b, 2);
	uuid_of(world.uuid, 2);
	go_ready(test, c, 2);
	clock_nobody_dies = true;
	removed_dev = world.dev[1];
	WRITE_ONCE(removed_dev->going, true);
	world.dev[1] = NULL;
	caller_start(test, &caller);
	until(test, !rail_of(b, 1) && !rail_of(c, 1));
	KUNIT_EXPECT_TRUE(test, caller_waits(&caller));
	KUNIT_EXPECT_EQ(test, qps_up(b), 2);
	KUNIT_EXPECT_EQ(test, qps_up(c), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	open_gate();
	KUNIT_EXPECT_EQ(test, caller_end(test, &caller), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 4);
	world_settle(test);
	rmp_device_put(removed_dev);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&removed_dev->released,
							    PATIENCE));
	kfree(removed_dev);
	check_peer(test, b);
	check_peer(test, c);
}

static int call_del(struct caller *c)
{
	return rmp_peer_del("b");
}

static int call_device_removed_by_then(struct caller *c)
{
	rmp_peer_device_removed(removed_dev);
	return atomic_read(&world.destroyed);
}

/* A peer that was deleted is in no table, but has queue pairs there until its end. */
static void test_device_goes_after_peer(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller del = { .call = call_del };
	struct caller c = { .call = call_device_removed_by_then };
	u32 refs;

	go_ready(test, peer, 2);
	clock_nobody_dies = true;
	atomic_set(&world.kicks, 0);
	caller_start(test, &del);
	until(test, drained(peer));
	removed_dev = world.dev[1];
	WRITE_ONCE(removed_dev->going, true);
	world.dev[1] = NULL;
	refs = kref_read(&peer->ref);
	caller_start(test, &c);
	/* It has one while it waits. */
	until(test, !caller_waits(&c) || kref_read(&peer->ref) > refs);
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	KUNIT_EXPECT_TRUE(test, caller_waits(&del));
	open_gate();
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), 4);
	KUNIT_EXPECT_EQ(test, caller_end(test, &del), 0);
	world_settle(test);
	rmp_device_put(removed_dev);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&removed_dev->released,
							    PATIENCE));
	kfree(removed_dev);
	check_peer(test, peer);
}

/* Another address, or less room for a packet: the old rail would lead astray. */
static void test_device_changes(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	/* Nothing of importance. */
	rmp_peer_device_changed(world.dev[0]);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	world.port[0].addr = address(222);
	rmp_endpoint_set_port(&world.port[0].addr, 0);
	rmp_peer_device_changed(world.dev[0]);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 0));
	KUNIT_EXPECT_TRUE(test, rmp_endpoint_equal(&rail_of(peer, 0)->local,
						   &world.port[0].addr));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);

	rail_of(peer, 1)->conns[0]->mtu = IB_MTU_4096;
	world.port[1].mtu = IB_MTU_1024;
	rmp_peer_device_changed(world.dev[1]);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 4);
	check_peer(test, peer);
}

static void say_device_at(struct kunit *test, struct rmp_peer *peer, u8 host)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_DEVICES,
		.devices = {
			.nr = 1,
			.dev[0] = { .index = 5, .mtu = 5, .family = 4,
				    .speed_mbps = 1, .addr = { 10, 0, 0, host } },
		},
	};

	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
}

static void test_remote_device_goes(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	say_device_at(test, peer, 50);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 1));
	/* The same device somewhere else. */
	say_device_at(test, peer, 51);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 4);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 0));
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	check_peer(test, peer);
	/* None at all. */
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 0), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	check_peer(test, peer);
}

/* ------------------------------------------------------- it is who connects */

static void ask_rail(struct kunit *test, struct rmp_peer *peer, u8 rail,
		     u8 theirs, u8 ours, u8 nr_qps, struct rmp_msg *tokens)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = rail, .sender_dev = theirs,
				  .receiver_dev = ours, .nr_qps = nr_qps },
	};

	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_TOKENS, tokens));
	KUNIT_EXPECT_EQ(test, tokens->rail_tokens.rail, rail);
}

/* A token is good for its own queue pair of its own rail, once. */
static void test_tokens(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg, other;
	const struct rmp_msg_rail_tokens *t = &msg.rail_tokens;
	u8 wrong[RMP_WIRE_TOKEN] = {};

	go_passive(test, peer, 1, 2);
	/* Before one was asked for. */
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, wrong),
			RMP_REJECT_TOKEN);
	ask_rail(test, peer, 0, 5, 0, 3, &msg);
	KUNIT_ASSERT_EQ(test, t->status, 0);
	KUNIT_ASSERT_EQ(test, t->nr, 3);
	KUNIT_EXPECT_NE(test, memcmp(t->token[0], t->token[1], RMP_WIRE_TOKEN),
			0);
	ask_rail(test, peer, 1, 6, 1, 2, &other);

	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, wrong),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, t->token[1]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 1, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 2, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 3, t->token[2]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 200, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 200, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 2, 0, 0, t->token[0]),
			RMP_REJECT_NO_PEER);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	/* None of that used one up. */
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, t->token[0]), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 2, t->token[2]), 0);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 1, t->token[1]), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.started), 3);
	check_peer(test, peer);
}

/* Nor is it good for another device, whose keys are others. */
static void test_tokens_elsewhere(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;
	const struct rmp_msg_rail_tokens *t = &msg.rail_tokens;

	go_passive(test, peer, 1, 2);
	ask_rail(test, peer, 0, 5, 0, 2, &msg);
	KUNIT_ASSERT_EQ(test, t->status, 0);
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 51, 1, 0, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	/* Where the control connection comes from is nothing to it. */
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 1, 1, 0, 0, t->token[0]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 50, 1, 0, 0, t->token[0]), 0);

	/* The device has another address, which it comes from before it tells. */
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 60, 1, 0, 1, t->token[1]),
			RMP_REJECT_TOKEN);
	say_device_at(test, peer, 60);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	ask_rail(test, peer, 0, 5, 0, 2, &msg);
	KUNIT_ASSERT_EQ(test, t->status, 0);
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 50, 1, 0, 1, t->token[1]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data_from(test, 60, 1, 0, 1, t->token[1]), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	check_peer(test, peer);
}

/* New tokens make the old ones void, and a new queue pair takes the old one's
 * place: the side that connects knows which are dead.
 */
static void test_tokens_anew(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg, again;

	go_passive(test, peer, 1, 1);
	ask_rail(test, peer, 0, 5, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0,
					 msg.rail_tokens.token[0]), 0);
	ask_rail(test, peer, 0, 5, 0, 2, &again);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 1,
					 msg.rail_tokens.token[1]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0,
					 again.rail_tokens.token[0]), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 1);
	/* What was on that one waits for an answer, too. */
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_QP_FENCE, NULL));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	check_peer(test, peer);
}

/* Nor does who connects get us to keep very many that are being destroyed. */
static void test_no_tokens(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;
	u32 i;

	go_passive(test, peer, 1, 2);
	clock_nobody_dies = true;
	for (i = 0; i <= RMP_DYING_MAX; i++) {
		ask_rail(test, peer, 0, 5, 0, 2, &msg);
		KUNIT_ASSERT_EQ(test, msg.rail_tokens.status, 0);
		KUNIT_ASSERT_EQ(test, knock_data(test, 1, 0, 0,
						 msg.rail_tokens.token[0]), 0);
	}
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 1 + RMP_DYING_MAX);
	ask_rail(test, peer, 0, 5, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, RMP_REJECT_RESOURCES);
	/* In another place it does. */
	ask_rail(test, peer, 1, 6, 1, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	open_gate();
	world_settle(test);
	ask_rail(test, peer, 0, 5, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 1);
	check_peer(test, peer);
}

static struct knocker knockers[RMP_QPS_MAX];

/* With the first tokens of @m; they stand at the gate then. */
static void knock_held(struct kunit *test, const struct rmp_msg_rail_tokens *m, u32 nr)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, m->status, 0);
	KUNIT_ASSERT_GE(test, m->nr, nr);
	atomic_set(&world.accepts, 0);
	WRITE_ONCE(world.hold_accept, true);
	for (i = 0; i < nr; i++) {
		struct knocker *k = &knockers[i];

		memset(k, 0, sizeof(*k));
		k->c.call = call_data;
		k->qp = i;
		memcpy(k->token, m->token[i], sizeof(k->token));
		caller_start(test, &k->c);
	}
	until(test, atomic_read(&world.accepts) == nr);
}

/* Those that it does not let come up count as well. */
static void test_no_tokens_meanwhile(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;
	u32 i;

	go_passive(test, peer, 1, 2);
	clock_nobody_dies = true;
	for (i = 0; i <= RMP_DYING_MAX - RMP_QPS_MAX; i++) {
		ask_rail(test, peer, 0, 5, 0, RMP_QPS_MAX, &msg);
		KUNIT_ASSERT_EQ(test, knock_data(test, 1, 0, 0,
						 msg.rail_tokens.token[0]), 0);
	}
	ask_rail(test, peer, 0, 5, 0, RMP_QPS_MAX, &msg);
	knock_held(test, &msg.rail_tokens, RMP_QPS_MAX);
	ask_rail(test, peer, 0, 5, 0, RMP_QPS_MAX, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, RMP_REJECT_RESOURCES);
	open_gate();
	for (i = 0; i < RMP_QPS_MAX; i++)
		KUNIT_EXPECT_EQ(test, caller_end(test, &knockers[i].c), 0);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, qps_up(peer), RMP_QPS_MAX);
	/* What is up does not. */
	ask_rail(test, peer, 0, 5, 0, RMP_QPS_MAX, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, 0);
	check_peer(test, peer);
}

/* One that is just being let in on a device that goes: the peer may use it already. */
static void test_device_goes_meanwhile(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_device *dev = world.dev[1];
	static struct rmp_msg msg;

	go_passive(test, peer, 1, 2);
	ask_rail(test, peer, 0, 5, 1, 1, &msg);
	knock_held(test, &msg.rail_tokens, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 1);
	WRITE_ONCE(dev->going, true);
	world.dev[1] = NULL;
	rmp_peer_device_removed(dev);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &knockers[0].c), RMP_REJECT_RESOURCES);
	open_gate();
	world_settle(test);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	rmp_device_put(dev);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&dev->released, PATIENCE));
	kfree(dev);
	check_peer(test, peer);
}

static void test_request_refused(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;

	go_passive(test, peer, 1, 2);
	/* A device that it never told, and one that we do not have. */
	ask_rail(test, peer, 0, 9, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, RMP_REJECT_RESOURCES);
	ask_rail(test, peer, 0, 5, 20, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, RMP_REJECT_RESOURCES);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 0));

	ask_rail(test, peer, 0, 5, 0, 16, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.nr, 16);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 0));
	/* Other devices under the same number: not before the old rail is gone. */
	ask_rail(test, peer, 0, 6, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, RMP_REJECT_RESOURCES);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 0));
	ask_rail(test, peer, 0, 6, 0, 2, &msg);
	KUNIT_EXPECT_EQ(test, msg.rail_tokens.status, 0);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 0));
	KUNIT_EXPECT_EQ(test, rail_of(peer, 0)->remote_dev, 6);
	check_peer(test, peer);
}

/* Who connected does not let data queue pairs in. */
static void test_wrong_side(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	u8 token[RMP_WIRE_TOKEN];

	go_live(test, peer, 1);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	memset(token, 7, sizeof(token));
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, token),
			RMP_REJECT_NO_PEER);
	/* Nor does anybody whose session has ended. */
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, token),
			RMP_REJECT_NO_PEER);
}

static struct kunit_case rails_cases[] = {
	KUNIT_CASE(test_pairs),
	KUNIT_CASE(test_no_pair),
	KUNIT_CASE(test_tokens_refused),
	KUNIT_CASE(test_tokens_unanswered),
	KUNIT_CASE(test_fewer_tokens),
	KUNIT_CASE(test_connect_fails),
	KUNIT_CASE(test_qp_fails),
	KUNIT_CASE(test_tells_lost),
	KUNIT_CASE(test_asked),
	KUNIT_CASE(test_slow_to_destroy),
	KUNIT_CASE(test_too_many_dying),
	KUNIT_CASE(test_device_goes),
	KUNIT_CASE(test_device_goes_slowly),
	KUNIT_CASE(test_device_goes_at_once),
	KUNIT_CASE(test_device_goes_after_peer),
	KUNIT_CASE(test_device_changes),
	KUNIT_CASE(test_remote_device_goes),
	KUNIT_CASE(test_tokens),
	KUNIT_CASE(test_tokens_elsewhere),
	KUNIT_CASE(test_tokens_anew),
	KUNIT_CASE(test_no_tokens),
	KUNIT_CASE(test_no_tokens_meanwhile),
	KUNIT_CASE(test_device_goes_meanwhile),
	KUNIT_CASE(test_request_refused),
	KUNIT_CASE(test_wrong_side),
	{}
};

static struct kunit_suite rails_suite = {
	.name = "rmp_rails",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = rails_cases,
};

kunit_test_suites(&rails_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's rails");
MODULE_LICENSE("GPL");
