// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/peer.c, standing.c, session.c and greet.c: the table of peers, and one
 * connection to each, whoever makes it. The other rooms that know peers are the real ones as
 * well; what they stand on is played (peer_world.h).
 */
#include "peer_world.h"

#define MS(n)	msecs_to_jiffies(n)

/* ---------------------------------------------------------------- the table */

static int names(struct rmp_peer *peer, void *arg)
{
	strlcat(arg, peer->name, 32);
	return 0;
}

static int stop_at_c(struct rmp_peer *peer, void *arg)
{
	strlcat(arg, peer->name, 32);
	return strcmp(peer->name, "c") ? 0 : -EINTR;
}

static void test_table(struct kunit *test)
{
	struct sockaddr_storage addr = address(3), port = address(3);
	struct rmp_peer_info *info;
	char text[32] = "";

	peer_make(test, "c", 3);
	peer_make(test, "a", 1);
	peer_make(test, "d", 4);
	peer_make(test, "b", 2);
	KUNIT_EXPECT_EQ(test, rmp_peer_count(), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.events[RMPOOL_EVENT_NEW]), 4);
	KUNIT_EXPECT_EQ(test, rmp_peer_walk("", names, text), 0);
	KUNIT_EXPECT_STREQ(test, text, "abcd");
	text[0] = '\0';
	KUNIT_EXPECT_EQ(test, rmp_peer_walk("a", stop_at_c, text), -EINTR);
	KUNIT_EXPECT_STREQ(test, text, "bc");

	/* A name once, an endpoint once; another port is another endpoint. */
	KUNIT_EXPECT_EQ(test, rmp_peer_add("x", &addr, NULL), -EEXIST);
	addr = address(9);
	KUNIT_EXPECT_EQ(test, rmp_peer_add("c", &addr, NULL), -EEXIST);
	rmp_endpoint_set_port(&port, 1);
	KUNIT_EXPECT_EQ(test, rmp_peer_add("x", &port, NULL), 0);
	KUNIT_EXPECT_EQ(test, rmp_peer_count(), 5);
	/* What is not added leaves no group behind. */
	KUNIT_EXPECT_EQ(test, rmp_peer_add("x", &addr, "g"), -EEXIST);
	until(test, atomic_read(&world.groups_gone) == 1);

	info = kunit_kzalloc(test, sizeof(*info), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, info);
	rmp_peer_info(world.peers[0], info);
	KUNIT_EXPECT_STREQ(test, info->name, "c");
	KUNIT_EXPECT_STREQ(test, info->group, "default");
	KUNIT_EXPECT_EQ(test, info->state, RMPOOL_PEER_IDLE);
	KUNIT_EXPECT_FALSE(test, info->has_uuid);
	KUNIT_EXPECT_EQ(test, info->nr_rails, 0);

	KUNIT_EXPECT_EQ(test, rmp_peer_del("c"), 0);
	KUNIT_EXPECT_EQ(test, rmp_peer_del("c"), -ENOENT);
	KUNIT_EXPECT_NULL(test, rmp_peer_find("c"));
	KUNIT_EXPECT_EQ(test, rmp_peer_count(), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.events[RMPOOL_EVENT_GONE]), 1);
	/* Nobody wanted any of them. */
	world_advance_ms(test, 60000);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 0);
}

/* -------------------------------------------------------------- connecting */

static void test_connect(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct sockaddr_storage addr = address(1);
	struct rmp_peer_info *info;

	go_connected(test, peer);
	KUNIT_EXPECT_TRUE(test, rmp_endpoint_equal(&world.dst, &addr));
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTING);
	/* HELLO goes first, and the devices are told. */
	KUNIT_ASSERT_EQ(test, world.nr_sent, 2);
	KUNIT_EXPECT_EQ(test, world.sent[0].msg.type, RMP_MSG_HELLO);
	KUNIT_EXPECT_EQ(test, world.sent[0].msg.hello.uuid[0], HERE);
	KUNIT_EXPECT_STREQ(test, world.sent[0].msg.hello.name, "here");
	KUNIT_EXPECT_EQ(test, world.sent[1].msg.type, RMP_MSG_DEVICES);
	KUNIT_EXPECT_EQ(test, world.sent[1].msg.devices.nr, 2);
	KUNIT_EXPECT_NULL(test, rmp_session_get(peer));

	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTING);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 0), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	check_peer(test, peer);
	info = kunit_kzalloc(test, sizeof(*info), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, info);
	rmp_peer_info(peer, info);
	KUNIT_EXPECT_STREQ(test, info->remote_name, "there");
	KUNIT_EXPECT_TRUE(test, info->has_uuid);
	KUNIT_EXPECT_EQ(test, info->uuid[15], 1);

	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 1, 1, 0), 0);
	world_advance_ms(test, 20);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.started), 1);
	check_peer(test, peer);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
}

static void test_single_flight(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c[4] = {};
	u32 i;

	world.hold = true;
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i].call = call_ready;
		c[i].peer = peer;
		c[i].timeout = MS(20000);
		caller_start(test, &c[i]);
	}
	until(test, atomic_read(&peer->users) == ARRAY_SIZE(c));
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
	/* However often it is kicked meanwhile. */
	for (i = 0; i < 10; i++)
		rmp_peer_kick(peer);
	world_settle(test);
	let_go(test, 0, 0);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		KUNIT_EXPECT_TRUE(test, caller_waits(&c[i]));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		KUNIT_EXPECT_EQ(test, caller_end(test, &c[i]), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&peer->users), 0);
	/* The next one finds it there. */
	caller_start(test, &c[0]);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c[0]), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
}

/* How an attempt fails, and what its caller is told: at once, or when its time
 * is over, since another attempt may succeed.
 */
static void test_failures(struct kunit *test)
{
	static const struct {
		int error, told;
		bool final;
	} ways[] = {
		{ -ECONNREFUSED, -ECONNREFUSED, false },
		{ -EHOSTUNREACH, -EHOSTUNREACH, false },
		{ -ENETUNREACH, -EHOSTUNREACH, false },
		{ -EADDRNOTAVAIL, -EHOSTUNREACH, false },
		{ -ETIMEDOUT, -ETIMEDOUT, false },
		{ -ECONNRESET, -ETIMEDOUT, false },
		{ -ENOMEM, -ENOMEM, false },
		{ -EPROTO, -EPROTO, false },
		{ -EPROTONOSUPPORT, -EPROTONOSUPPORT, true },
		{ -EACCES, -EACCES, true },
		{ -ELOOP, -ELOOP, true },
		{ -EADDRINUSE, -EADDRINUSE, true },
		{ -ENODEV, -ENODEV, true },
	};
	struct rmp_peer *peer;
	struct caller c = { .call = call_ready, .timeout = MS(5000) };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		peer = peer_make(test, "b", 1);
		c.peer = peer;
		world.result = ways[i].error;
		world.reason = RMPOOL_REASON_NOT_TRUSTED;
		caller_start(test, &c);
		until(test, READ_ONCE(peer->failures));
		world_settle(test);
		if (!ways[i].final) {
			until_asleep(test, peer);
			KUNIT_EXPECT_TRUE(test, caller_waits(&c));
			KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_BACKOFF);
			world_advance_ms(test, 5000);
		}
		KUNIT_EXPECT_EQ(test, caller_end(test, &c), ways[i].told);
		KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_NOT_TRUSTED);
		check_peer(test, peer);
		KUNIT_ASSERT_EQ(test, rmp_peer_del("b"), 0);
	}
}

/* Attempts come with pauses of 100 ms to 2 s, as long as somebody wants it. */
static void test_backoff(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	unsigned long pause = MS(100);
	int nr = 1;

	world.result = -ECONNREFUSED;
	want(test, peer);
	for (; nr < 8; nr++) {
		KUNIT_ASSERT_EQ(test, atomic_read(&world.connects), nr);
		KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_BACKOFF);
		KUNIT_EXPECT_EQ(test, peer->next_try, clock_now + pause);
		world_advance(test, pause - 1);
		KUNIT_ASSERT_EQ(test, atomic_read(&world.connects), nr);
		world_advance(test, 1);
		pause = min(pause * 2, MS(2000));
	}
	/* Somebody else who wants it does not make it faster. */
	rmp_peer_kick(peer);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), nr);
	want_no_more(peer);
	world_advance_ms(test, 60000);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), nr);

	/* A success makes the next pause short again. */
	world.result = 0;
	go_live(test, peer, 1);
	KUNIT_EXPECT_EQ(test, peer->backoff, 0);
	KUNIT_EXPECT_EQ(test, peer->error, 0);
	world.result = -ECONNREFUSED;
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	KUNIT_EXPECT_EQ(test, peer->next_try, clock_now + MS(100));
}

/* What a caller is told that waited in vain, in each stage. */
static void test_silence(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c = {
		.call = call_ready, .peer = peer, .timeout = MS(1000),
	};

	/* Nothing answers. */
	world.hold = true;
	caller_start(test, &c);
	until(test, atomic_read(&world.connects) == 1);
	until_asleep(test, peer);
	world_advance_ms(test, 1000);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_SILENT);
	/* The attempt itself has 3 s. */
	KUNIT_EXPECT_EQ(test, peer->failures, 0);
	world_advance_ms(test, 2100);
	KUNIT_EXPECT_EQ(test, peer->failures, 1);
	KUNIT_EXPECT_EQ(test, peer->error, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_IDLE);

	/* It answers, and says nothing. */
	let_go(test, 0, 0);
	caller_start(test, &c);
	until(test, READ_ONCE(peer->session));
	until_asleep(test, peer);
	world_advance_ms(test, 1000);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_SILENT);
	world_advance_ms(test, 2100);
	KUNIT_EXPECT_EQ(test, peer->failures, 2);
	KUNIT_EXPECT_EQ(test, peer->reason, RMPOOL_REASON_SILENT);
	check_peer(test, peer);

	/* It says who it is, and there is no way for data. */
	world_advance_ms(test, 200);
	go_live(test, peer, 0);
	caller_start(test, &c);
	until_asleep(test, peer);
	world_advance_ms(test, 1000);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_NO_RAIL);
}

static void test_interrupted(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c = {
		.call = call_ready, .peer = peer,
		.timeout = MAX_SCHEDULE_TIMEOUT,
	};

	world.hold = true;
	caller_start(test, &c);
	until(test, atomic_read(&world.connects) == 1);
	world_advance_ms(test, 60000);
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	send_sig(SIGUSR1, c.task, 1);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -EINTR);
	KUNIT_EXPECT_EQ(test, atomic_read(&peer->users), 0);
}

static void test_delete_while_connecting(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c = {
		.call = call_ready, .peer = peer,
		.timeout = MAX_SCHEDULE_TIMEOUT,
	};

	world.hold = true;
	caller_start(test, &c);
	until(test, atomic_read(&world.connects) == 1);
	world_settle(test);
	/* It does not wait for an answer. */
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOENT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_PEER_UNKNOWN);
	check_peer(test, peer);
	world_advance_ms(test, 60000);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
}

static atomic_t kicks;

/* @timeout: until it is 0. */
static int call_kicks(struct caller *c)
{
	while (READ_ONCE(c->timeout)) {
		rmp_peer_kick(c->peer);
		atomic_inc(&kicks);
		cond_resched();
	}
	return 0;
}

/* A work item that is kicked is in no queue for a moment: who waits for its end
 * must not take that for the end.
 */
static void test_end_under_kicks(struct kunit *test)
{
	struct caller c = { .call = call_kicks };
	struct sockaddr_storage addr = address(1);
	struct rmp_peer *peer;
	int round;

	for (round = 0; round < 300; round++) {
		KUNIT_ASSERT_EQ(test, rmp_peer_add("b", &addr, NULL), 0);
		peer = rmp_peer_find("b");
		KUNIT_ASSERT_NOT_NULL(test, peer);
		want(test, peer);
		KUNIT_ASSERT_NOT_NULL(test, peer->session);
		want_no_more(peer);
		c.peer = peer;
		c.timeout = 1;
		atomic_set(&kicks, 0);
		caller_start(test, &c);
		until(test, atomic_read(&kicks));
		if (round % 2) {
			rmp_peer_device_removed(world.dev[world.control_dev]);
			KUNIT_EXPECT_NULL(test, READ_ONCE(peer->session));
		}
		KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
		KUNIT_EXPECT_NULL(test, READ_ONCE(peer->session));
		WRITE_ONCE(c.timeout, 0);
		KUNIT_EXPECT_EQ(test, caller_end(test, &c), 0);
		world_settle(test);
		rmp_peer_put(peer);
		forget_sent();
	}
}

static void test_self(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	uuid_of(world.uuid, HERE);
	want(test, peer);
	KUNIT_EXPECT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, peer->error, -ELOOP);
	KUNIT_EXPECT_EQ(test, peer->reason, RMPOOL_REASON_PEER_SELF);
	check_peer(test, peer);
}

/* ------------------------------------------------------------------ incoming */

static void test_strangers(struct kunit *test)
{
	struct rmp_peer *peer;
	u32 i;

	KUNIT_EXPECT_EQ(test, knock(test, 9, 1), RMP_REJECT_NOT_TRUSTED);
	KUNIT_EXPECT_EQ(test, rmp_peer_count(), 0);
	world.accept_any = true;
	KUNIT_EXPECT_EQ(test, knock(test, 9, 1), 0);
	peer = peer_keep(test, "10.0.0.9");
	KUNIT_EXPECT_TRUE(test, peer->dynamic);
	KUNIT_EXPECT_EQ(test, rmp_endpoint_port(&peer->addr), RMP_WIRE_PORT);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	check_peer(test, peer);

	/* When it has gone and nobody asks for it, its entry goes as well. */
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_IDLE);
	for (i = 0; i < 49; i++) {
		world_advance_ms(test, 1000);
		KUNIT_ASSERT_EQ(test, rmp_peer_count(), 1);
	}
	world_advance_ms(test, 1100);
	KUNIT_EXPECT_EQ(test, rmp_peer_count(), 0);
	KUNIT_EXPECT_TRUE(test, peer->removed);
	/* Its next life is another entry. */
	KUNIT_EXPECT_EQ(test, knock(test, 9, 1), 0);
	KUNIT_EXPECT_PTR_NE(test, peer_keep(test, "10.0.0.9"), peer);
}

/* Both connect at once: the smaller uuid goes first, on both sides. */
static void test_crossed(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	world.hold = true;
	want(test, peer);
	KUNIT_EXPECT_EQ(test, knock(test, 1, HERE + 1), RMP_REJECT_CROSSED);
	KUNIT_EXPECT_NOT_NULL(test, peer->connecting);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTING);

	/* Ours is given up, and that is no failure. */
	KUNIT_EXPECT_EQ(test, knock(test, 1, HERE - 1), 0);
	KUNIT_EXPECT_NULL(test, peer->connecting);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	KUNIT_EXPECT_FALSE(test, peer->session->initiator);
	KUNIT_EXPECT_EQ(test, peer->failures, 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTING);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, HERE - 1), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	check_peer(test, peer);
	world_advance_ms(test, 2000);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
}

static void test_two_at_the_door(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c = { .call = call_knock, .timeout = 1 };

	world.hold_accept = true;
	caller_start(test, &c);
	until(test, atomic_read(&world.accepts) == 1);
	KUNIT_EXPECT_EQ(test, knock(test, 1, 1), RMP_REJECT_RETRY);
	/* Nor do we connect while it comes in. */
	want(test, peer);
	world_advance_ms(test, 500);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 0);
	let_go(test, 0, 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), 0);
	world_settle(test);
	KUNIT_EXPECT_NOT_NULL(test, peer->session);

	/* It comes in while its entry is removed. */
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	peer = peer_make(test, "b", 1);
	world.hold_accept = true;
	caller_start(test, &c);
	until(test, atomic_read(&world.accepts) == 2);
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	let_go(test, 0, 0);
	caller_end(test, &c);
	world_settle(test);
	check_peer(test, peer);
	KUNIT_EXPECT_EQ(test, knock(test, 1, 1), RMP_REJECT_NOT_TRUSTED);
}

/* A peer that begins anew is let in once its old life does not answer. */
static void test_restart(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_session *old;

	go_ready(test, peer, 2);
	old = peer->session;
	forget_sent();
	KUNIT_EXPECT_EQ(test, knock(test, 1, 2), RMP_REJECT_RETRY);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_PROBE, NULL));
	KUNIT_EXPECT_EQ(test, knock(test, 1, 2), RMP_REJECT_RETRY);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_PROBE, NULL));
	world_advance_ms(test, 900);
	KUNIT_EXPECT_PTR_EQ(test, peer->session, old);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);

	/* Nobody wants it just now, so that only it connects. */
	want_no_more(peer);
	world_advance_ms(test, 200);
	KUNIT_EXPECT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, peer->error, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, peer->reason, RMPOOL_REASON_SILENT);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	check_peer(test, peer);
	KUNIT_EXPECT_EQ(test, knock(test, 1, 2), 0);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 2), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, peer->uuid[0], 2);
	KUNIT_EXPECT_FALSE(test, peer->session->initiator);
	check_peer(test, peer);
}

/* Nobody gets a peer out of its place that is alive and answers. */
static void test_impostor_at_the_door(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg probe, ack = { .type = RMP_MSG_PROBE_ACK };
	struct rmp_session *s;
	int i;

	go_ready(test, peer, 2);
	s = peer->session;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, knock(test, 1, 2), RMP_REJECT_RETRY);
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_PROBE, &probe));
		/* Not the answer to this question. */
		ack.probe.id = probe.probe.id + 1;
		KUNIT_EXPECT_EQ(test, say(test, peer, &ack), 0);
		KUNIT_EXPECT_TRUE(test, s->probing);
		ack.probe.id = probe.probe.id;
		KUNIT_EXPECT_EQ(test, say(test, peer, &ack), 0);
		KUNIT_EXPECT_FALSE(test, s->probing);
		/* It is not asked again for each who knocks. */
		KUNIT_EXPECT_EQ(test, knock(test, 1, 2), RMP_REJECT_IN_USE);
		world_advance_ms(test, 1900);
		KUNIT_EXPECT_EQ(test, knock(test, 1, 1), RMP_REJECT_IN_USE);
		KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_PROBE, NULL));
		world_advance_ms(test, 200);
	}
	KUNIT_EXPECT_PTR_EQ(test, peer->session, s);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	check_peer(test, peer);
}

/* Not who it said it was when it connected. */
static void test_impostor_in_hello(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg msg = { .type = RMP_MSG_HELLO, .hello.name = "a/b" };

	go_connected(test, peer);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 2), -EPROTO);
	KUNIT_EXPECT_NULL(test, peer->session);
	KUNIT_EXPECT_FALSE(test, peer->has_uuid);
	check_peer(test, peer);
	want_no_more(peer);
	world_advance_ms(test, 5000);

	/* The same from one who came to us. */
	KUNIT_EXPECT_EQ(test, knock(test, 1, 3), 0);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), -EPROTO);
	KUNIT_EXPECT_NULL(test, peer->session);
	/* A name that could be used for something. */
	KUNIT_EXPECT_EQ(test, knock(test, 1, 3), 0);
	uuid_of(msg.hello.uuid, 3);
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), -EPROTO);
	/* Twice. */
	KUNIT_EXPECT_EQ(test, knock(test, 1, 3), 0);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 3), 0);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 3), -EPROTO);
	check_peer(test, peer);
}

/* One node under two names of the table, or one that uses another's identity. */
static void test_one_node_twice(struct kunit *test)
{
	struct rmp_peer *b = peer_make(test, "b", 1);
	struct rmp_peer *c = peer_make(test, "c", 2);

	go_ready(test, b, 1);
	go_connected(test, c);
	KUNIT_EXPECT_EQ(test, say_hello(test, c, 1), 0);
	KUNIT_EXPECT_NULL(test, c->session);
	KUNIT_EXPECT_EQ(test, c->error, -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, c->reason, RMPOOL_REASON_IDENTITY);
	KUNIT_EXPECT_FALSE(test, c->has_uuid);
	KUNIT_EXPECT_EQ(test, b->state, RMPOOL_PEER_READY);
	check_peer(test, b);
	check_peer(test, c);
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(test_table),
	KUNIT_CASE(test_connect),
	KUNIT_CASE(test_single_flight),
	KUNIT_CASE(test_failures),
	KUNIT_CASE(test_backoff),
	KUNIT_CASE(test_silence),
	KUNIT_CASE(test_interrupted),
	KUNIT_CASE(test_delete_while_connecting),
	KUNIT_CASE(test_end_under_kicks),
	KUNIT_CASE(test_self),
	KUNIT_CASE(test_strangers),
	KUNIT_CASE(test_crossed),
	KUNIT_CASE(test_two_at_the_door),
	KUNIT_CASE(test_restart),
	KUNIT_CASE(test_impostor_at_the_door),
	KUNIT_CASE(test_impostor_in_hello),
	KUNIT_CASE(test_one_node_twice),
	{}
};

static struct kunit_suite peer_suite = {
	.name = "rmp_peer",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = peer_cases,
};

kunit_test_suites(&peer_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's peers");
MODULE_LICENSE("GPL");
