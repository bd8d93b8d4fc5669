// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/ways.c, with pairing.c and rails.c: rails between devices that have none
 * and need one, made by whichever side connects, for either; those that cannot be, and
 * for how long that is believed. The rooms around it are the real ones, what they stand on
 * is played (peer_world.h); the test is the flow that asks.
 */
#include "peer_world.h"

/* The place of the first rail that is made so. */
#define FIRST	(RMP_RAILS_MAX - 1)

static u32 rails_there(struct rmp_peer *peer)
{
	u32 i, nr = 0;

	for (i = 0; i < RMP_RAILS_MAX; i++)
		nr += !!rail_of(peer, i);
	return nr;
}

/* The flow asks; and whatever comes of it happens. */
static bool way(struct kunit *test, struct rmp_peer *peer, u32 local, u32 remote)
{
	bool may = rmp_peer_way(peer, local, remote);

	world_settle(test);
	return may;
}

static int say_wanted(struct kunit *test, struct rmp_peer *peer, u8 theirs, u8 ours,
		      bool none)
{
	return say(test, peer, &(struct rmp_msg){
		.type = RMP_MSG_RAIL_WANTED,
		.rail_wanted = { .sender_dev = theirs, .receiver_dev = ours,
				 .none = none },
	});
}

static void expect_wanted(struct kunit *test, u32 ours, u32 theirs, u32 none)
{
	struct rmp_msg msg = {};

	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_WANTED, &msg));
	KUNIT_EXPECT_EQ(test, msg.rail_wanted.sender_dev, ours);
	KUNIT_EXPECT_EQ(test, msg.rail_wanted.receiver_dev, theirs);
	KUNIT_EXPECT_EQ(test, msg.rail_wanted.none, none);
}

/* Each second it is answered what is asked for a rail. */
static void try_rail(struct kunit *test, struct rmp_peer *peer, u8 rail, u8 status,
		     u32 seconds)
{
	for (; seconds; seconds--) {
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, rail, status ? 0 : 2, status),
				0);
		world_advance_ms(test, 1000);
	}
}

/* Connecting a rail fails, as often and as long as it is tried. */
static void fail_rail(struct kunit *test, struct rmp_peer *peer, u8 rail)
{
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, rail));
	world.result = -EHOSTUNREACH;
	try_rail(test, peer, rail, 0, 10);
	world.result = 0;
	for (i = 0; i < RMP_WAYS_TRIES; i++)
		KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
}

/* Time goes by, and the peer lives. */
static void wait_s(struct kunit *test, struct rmp_peer *peer, u32 seconds)
{
	for (; seconds; seconds--) {
		world_advance_ms(test, 1000);
		/* About a rail that there is not. */
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 3, 1, 0), 0);
	}
}

/* ------------------------------------------------------ we are who connects */

static void test_made(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rail *rail;
	struct rmp_msg msg;

	go_ready(test, peer, 2);
	forget_sent();
	/* There is one, up or not. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(5)));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0) | BIT(1), BIT(6)));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	KUNIT_EXPECT_FALSE(test, rail_of(peer, 0)->extra);

	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	rail = rail_of(peer, FIRST);
	KUNIT_ASSERT_NOT_NULL(test, rail);
	KUNIT_EXPECT_TRUE(test, rail->extra);
	KUNIT_EXPECT_EQ(test, rail->dev->index, 0);
	KUNIT_EXPECT_EQ(test, rail->remote_dev, 6);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
	KUNIT_EXPECT_EQ(test, msg.rail_request.rail, FIRST);
	KUNIT_EXPECT_EQ(test, msg.rail_request.sender_dev, 0);
	KUNIT_EXPECT_EQ(test, msg.rail_request.receiver_dev, 6);
	/* Once, however often it is asked for. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6) | BIT(9)));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 3);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, FIRST, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 6);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	check_peer(test, peer);

	/* It was up: it is connected again for ever, as others are. */
	world.result = -EHOSTUNREACH;
	mutex_lock(&peer->lock);
	rmp_peer_qp_failed(rail, rail->conns[0]);
	rmp_peer_qp_failed(rail, rail->conns[1]);
	mutex_unlock(&peer->lock);
	try_rail(test, peer, FIRST, 0, 30);
	KUNIT_ASSERT_PTR_EQ(test, rail_of(peer, FIRST), rail);
	KUNIT_EXPECT_GE(test, rail->failures, RMP_WAYS_TRIES);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.result = 0;
	check_peer(test, peer);

	/* The device there goes, and with it the rail; the first ones stay. */
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 1);
	check_peer(test, peer);
}

/* What does not come up is given up, both sides know, and the next one is tried. */
static void test_fails(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	int kicks;

	go_ready(test, peer, 2);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6) | BIT(7)));
	kicks = atomic_read(&world.kicks);
	fail_rail(test, peer, FIRST);
	KUNIT_EXPECT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	expect_wanted(test, 0, 6, 1);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	check_peer(test, peer);

	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6) | BIT(7)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->remote_dev, 7);
	fail_rail(test, peer, FIRST);
	expect_wanted(test, 0, 7, 1);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6) | BIT(7)));
	/* Asked by the other side, the answer is there. */
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 0, false), 0);
	expect_wanted(test, 0, 6, 1);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	/* What has another way has it. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(5) | BIT(6)));

	/* It is tried again after a while, or when devices change. */
	wait_s(test, peer, 31);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	fail_rail(test, peer, FIRST);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6)));
	rmp_peer_device_changed(world.dev[0]);
	world_settle(test);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	fail_rail(test, peer, FIRST);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, FIRST, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 6);
	check_peer(test, peer);
}

/* Addresses of two families cannot be connected; a device without a link may have one
 * later, one that is gone is nobody's need.
 */
static void test_cannot(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg = {
		.type = RMP_MSG_DEVICES,
		.devices = {
			.nr = 2,
			.dev[0] = { .index = 5, .mtu = 5, .family = 4,
				    .speed_mbps = 1, .addr = { 10, 0, 0, 50 } },
			.dev[1] = { .index = 6, .mtu = 5, .family = 6,
				    .addr = { 0xfd, [15] = 1 } },
		},
	};
	int kicks;

	go_ready(test, peer, 1);
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 1);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	wait_s(test, peer, 4);
	/* They have just come, and may have others soon. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	wait_s(test, peer, 2);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(1), BIT(6)));
	expect_wanted(test, 1, 6, 1);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 1);
	/* Here one is missing since each device has one at most. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(5) | BIT(6)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->remote_dev, 5);
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->dev->index, 1);

	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	forget_sent();
	world.port[0].why = "no link";
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_NULL(test, rail_of(peer, FIRST - 1));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.port[0].why = NULL;
	kicks = atomic_read(&world.kicks);
	rmp_peer_device_changed(world.dev[0]);
	world_settle(test);
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST - 1));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST - 1)->remote_dev, 6);

	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(20), BIT(6)));
	KUNIT_EXPECT_EQ(test, peer->ways.wanted[20], 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	check_peer(test, peer);
}

/* The table is full at some time. */
static void test_full(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg = { .type = RMP_MSG_DEVICES, .devices.nr = 32 };
	u32 i;

	for (i = 0; i < 32; i++)
		msg.devices.dev[i] = (struct rmp_wire_device){
			.index = i, .mtu = 5, .family = 4, .read_limit = 8,
			.speed_mbps = 50000, .addr = { 10, 0, 0, 50 + i },
		};
	go_live(test, peer, 0);
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	for (i = 2; i < 32; i++)
		KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(i)));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 32);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(1)));
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(1)));
	expect_wanted(test, 0, 1, 1);
	/* A device comes: the place for its first rail is given back. */
	device_come(2);
	rmp_peer_device_changed(world.dev[2]);
	world_advance_ms(test, 200);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 2));
	KUNIT_EXPECT_FALSE(test, rail_of(peer, 2)->extra);
	KUNIT_EXPECT_EQ(test, rail_of(peer, 2)->dev->index, 2);
	KUNIT_EXPECT_EQ(test, rail_of(peer, 2)->remote_dev, 2);
	check_peer(test, peer);
}

/* The other side asks, and may not say what is ours to say. */
static void test_asked_for(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	forget_sent();
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 5, 0, false), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 5, 1, false), 0);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->dev->index, 1);
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->remote_dev, 5);
	/* Devices that there are not. */
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 5, 31, false), 0);
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 31, 0, false), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 3);
	fail_rail(test, peer, FIRST);
	expect_wanted(test, 1, 5, 1);
	check_peer(test, peer);
	/* A session ends for that. */
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 5, 1, true), -EPROTO);
	KUNIT_EXPECT_NULL(test, peer->session);
	/* Nothing of it is left for the next session. */
	KUNIT_EXPECT_EQ(test, peer->ways.none[1], 0);
	KUNIT_EXPECT_EQ(test, peer->ways.wanted[0], 0);
	KUNIT_EXPECT_EQ(test, peer->ways.joined[0], 0);
}

/* The first rail of a device does not come up: that is told to who needs it and waits, on
 * either side; and the rail stays, and may come up after all.
 */
static void test_first_fails(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_live(test, peer, 2);
	forget_sent();
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_ASSERT_EQ(test, qps_up(peer), 2);
	/* It is just being connected. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 1, false), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.result = -EHOSTUNREACH;
	try_rail(test, peer, 1, 0, 2);
	KUNIT_EXPECT_GE(test, rail_of(peer, 1)->failures, RMP_WAYS_TRIES);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	try_rail(test, peer, 1, 0, 10);
	expect_wanted(test, 1, 6, 1);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_NOT_NULL(test, rail_of(peer, 1));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	/* Another device has it as well: one to that is made. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(5) | BIT(6)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->remote_dev, 5);
	check_peer(test, peer);

	world.result = 0;
	try_rail(test, peer, 1, 0, 10);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	/* Now it is waited for. */
	mutex_lock(&peer->lock);
	rmp_peer_qp_failed(rail_of(peer, 1), rail_of(peer, 1)->conns[0]);
	rmp_peer_qp_failed(rail_of(peer, 1), rail_of(peer, 1)->conns[1]);
	mutex_unlock(&peer->lock);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	check_peer(test, peer);
}

/* Two devices here have it, and one of these has no link: the other one's rail is made. */
static void test_other_device(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	int kicks;

	go_ready(test, peer, 2);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 2);
	forget_sent();
	world.port[0].why = "no link";
	kicks = atomic_read(&world.kicks);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0) | BIT(1), BIT(7)));
	KUNIT_EXPECT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0) | BIT(1), BIT(7)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->dev->index, 1);
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->remote_dev, 7);
	/* What only the first one has waits. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(7)));
	KUNIT_EXPECT_EQ(test, rails_there(peer), 3);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.port[0].why = NULL;
	check_peer(test, peer);
}

/* A device of the other side has no link for a while: what was up to it is waited for when
 * that is back, however long connecting it fails. What was up between other addresses is not.
 */
static void test_comes_back(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, rails_there(peer), 1);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_ASSERT_EQ(test, rails_there(peer), 2);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	forget_sent();
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	world.result = -EHOSTUNREACH;
	try_rail(test, peer, 1, 0, 20);
	KUNIT_EXPECT_GE(test, rail_of(peer, 1)->failures, RMP_WAYS_TRIES);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.result = 0;
	try_rail(test, peer, 1, 0, 10);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);

	world.port[1].addr = address(230);
	rmp_endpoint_set_port(&world.port[1].addr, 0);
	rmp_peer_device_changed(world.dev[1]);
	world_settle(test);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 1));
	KUNIT_EXPECT_FALSE(test, rail_of(peer, 1)->was_up);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	fail_rail(test, peer, 1);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	expect_wanted(test, 1, 6, 1);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(1), BIT(6)));
	check_peer(test, peer);
}

/* A place is made for other devices while the answer for those of before is on its way. */
static void test_place_again(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(7)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_EXPECT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 3), 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(7)));
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_EQ(test, rail_of(peer, FIRST)->dev->index, 1);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, FIRST, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, FIRST, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 6);
	check_peer(test, peer);
}

/* That the other side cannot just now, or does not answer, or that an attempt was given up,
 * is no reason to refuse anything.
 */
static void test_not_now(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 2);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	forget_sent();
	try_rail(test, peer, FIRST, RMP_REJECT_RESOURCES, 20);
	wait_s(test, peer, 10);
	world.result = -EAGAIN;
	try_rail(test, peer, FIRST, 0, 10);
	world.result = -ECANCELED;
	try_rail(test, peer, FIRST, 0, 10);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, FIRST));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	world.result = 0;
	try_rail(test, peer, FIRST, 0, 10);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 6);
	check_peer(test, peer);
}

/* ------------------------------------------------------- it is who connects */

static struct rmp_msg tokens;

static void ask_rail(struct kunit *test, struct rmp_peer *peer, u8 rail, u8 theirs,
		     u8 ours)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = rail, .sender_dev = theirs,
				  .receiver_dev = ours, .nr_qps = 2 },
	};

	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_TOKENS, &tokens));
	KUNIT_ASSERT_EQ(test, tokens.rail_tokens.status, 0);
}

/* One queue pair of it comes in. */
static void connect_rail(struct kunit *test, u8 rail)
{
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, rail, 0,
					 tokens.rail_tokens.token[0]), 0);
}

static void test_passive(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	int kicks;

	go_passive(test, peer, 1, 2);
	/* Each in the place that is its device's there. */
	ask_rail(test, peer, 5, 5, 0);
	connect_rail(test, 5);
	ask_rail(test, peer, 6, 6, 1);
	KUNIT_ASSERT_EQ(test, rails_there(peer), 2);
	KUNIT_EXPECT_FALSE(test, rail_of(peer, 5)->extra);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(5)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	/* Of one that has not been up only the other side knows what becomes of it. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	expect_wanted(test, 1, 6, 0);
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 1, true), 0);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(1), BIT(6)));
	/* The first one of a device is not given up so. */
	KUNIT_EXPECT_NOT_NULL(test, rail_of(peer, 6));
	connect_rail(test, 6);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));

	/* It is asked, once, and makes it. */
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	expect_wanted(test, 0, 6, 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	rmp_peer_kick(peer);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	ask_rail(test, peer, 31, 6, 0);
	KUNIT_ASSERT_NOT_NULL(test, rail_of(peer, 31));
	KUNIT_EXPECT_TRUE(test, rail_of(peer, 31)->extra);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	check_peer(test, peer);
	/* Or it cannot. */
	kicks = atomic_read(&world.kicks);
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 0, true), 0);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 31));
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6)));
	/* What is up is not to be argued about. */
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 1, true), 0);
	KUNIT_EXPECT_NOT_NULL(test, rail_of(peer, 6));
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(1), BIT(6)));
	/* Devices change: it is asked again. */
	forget_sent();
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	expect_wanted(test, 0, 6, 0);
	check_peer(test, peer);
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 0, false), -EPROTO);
	KUNIT_EXPECT_NULL(test, peer->session);
}

/* A rail that was up is down: whether it is still in the table of the side that connects is
 * for that to say.
 */
static void test_passive_lost(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rail *rail;
	int kicks;

	go_passive(test, peer, 1, 2);
	ask_rail(test, peer, 5, 5, 0);
	connect_rail(test, 5);
	ask_rail(test, peer, 31, 6, 0);
	connect_rail(test, 31);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));

	rail = rail_of(peer, 31);
	kicks = atomic_read(&world.kicks);
	mutex_lock(&peer->lock);
	rmp_peer_qp_failed(rail, rail->conns[0]);
	mutex_unlock(&peer->lock);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	expect_wanted(test, 0, 6, 0);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	check_peer(test, peer);

	/* It has, and is back. */
	ask_rail(test, peer, 31, 6, 0);
	connect_rail(test, 31);
	KUNIT_EXPECT_PTR_EQ(test, rail_of(peer, 31), rail);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_RAIL_WANTED, NULL));
	KUNIT_EXPECT_EQ(test, peer->ways.wanted[0], 0);

	/* It has not, and has another one in that place: it is asked again. */
	mutex_lock(&peer->lock);
	rmp_peer_qp_failed(rail, rail->conns[0]);
	mutex_unlock(&peer->lock);
	world_settle(test);
	KUNIT_EXPECT_TRUE(test, way(test, peer, BIT(0), BIT(6)));
	expect_wanted(test, 0, 6, 0);
	KUNIT_EXPECT_EQ(test, say(test, peer, &(struct rmp_msg){
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = 31, .sender_dev = 5, .receiver_dev = 1,
				  .nr_qps = 2 },
	}), 0);
	KUNIT_EXPECT_NULL(test, rail_of(peer, 31));
	expect_wanted(test, 0, 6, 0);
	/* Or there can be none any more. */
	KUNIT_EXPECT_EQ(test, say_wanted(test, peer, 6, 0, true), 0);
	KUNIT_EXPECT_FALSE(test, way(test, peer, BIT(0), BIT(6)));
	check_peer(test, peer);
}

static struct kunit_case ways_cases[] = {
	KUNIT_CASE(test_made),
	KUNIT_CASE(test_fails),
	KUNIT_CASE(test_cannot),
	KUNIT_CASE(test_full),
	KUNIT_CASE(test_asked_for),
	KUNIT_CASE(test_first_fails),
	KUNIT_CASE(test_other_device),
	KUNIT_CASE(test_comes_back),
	KUNIT_CASE(test_place_again),
	KUNIT_CASE(test_not_now),
	KUNIT_CASE(test_passive),
	KUNIT_CASE(test_passive_lost),
	{}
};

static struct kunit_suite ways_suite = {
	.name = "rmp_ways",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = ways_cases,
};

kunit_test_suites(&ways_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's rails that are made as they are needed");
MODULE_LICENSE("GPL");
