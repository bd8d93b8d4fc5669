// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/revoke.c: keys that peers are asked to let go of, who answers and who
 * does not; what a peer that is cut off loses and what it keeps, what others lose,
 * which is nothing, and all that may end the waiting before. The rooms around it are
 * the real ones, what they stand on is played (peer_world.h); regions are just their
 * description.
 */
#include "peer_world.h"
#include "segment_acts.h"

#define REGIONS		6
/* The parameter's default, and more than that. */
#define IN_TIME		1900
#define TOO_LATE	200

static struct rmp_region r[REGIONS];

static struct rmp_segment *publish_all(struct kunit *test)
{
	struct rmp_segment *s = publish(test, "s");
	u32 i;

	for (i = 0; i < REGIONS; i++) {
		region_make(&r[i], i + 1, 1);
		KUNIT_ASSERT_EQ(test, insert_at(s, &r[i], (u64)i << 30), 0);
	}
	return s;
}

/* Another node with queue pairs on as many devices has the segment open. */
static struct rmp_peer *subscriber(struct kunit *test, const char *name, u8 n, u32 devices)
{
	struct rmp_peer *peer = peer_make(test, name, n);

	uuid_of(world.uuid, n);
	go_ready(test, peer, devices);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").status, 0);
	forget_sent();
	return peer;
}

static u32 revokes_open(struct rmp_peer *peer)
{
	u32 nr;

	mutex_lock(&peer->session->export_lock);
	nr = peer->session->nr_revokes;
	mutex_unlock(&peer->session->export_lock);
	return nr;
}

/* Its rails come back, as after any loss. */
static void rails_again(struct kunit *test, struct rmp_peer *peer, u32 rails)
{
	struct rmp_msg msg;
	u32 i;

	world_advance_ms(test, 3000);
	for (i = 0; i < rails; i++) {
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
		KUNIT_EXPECT_EQ(test, say_tokens(test, peer, msg.rail_request.rail, 2, 0),
				0);
	}
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2 * rails);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
}

/* It is over when the other node says so, or is gone. */
static void test_answers(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	static struct rmp_msg msg;

	rmp_segment_remove(s, &r[0]);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE, &msg));
	KUNIT_EXPECT_EQ(test, msg.revoke.segment, s->id);
	KUNIT_EXPECT_EQ(test, msg.revoke.region, 1);
	/* Answers to something else, and twice to this. */
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id + 1), 0);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&r[0].ref), 1);

	/* Late, but in time. */
	rmp_segment_remove(s, &r[1]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[1]));
	KUNIT_EXPECT_EQ(test, let_go_of_all(test, peer), 1);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[1]));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);

	/* It goes, and another region with it. */
	rmp_segment_remove(s, &r[2]);
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	KUNIT_EXPECT_FALSE(test, is_kept(&r[2]));
	rmp_segment_remove(s, &r[3]);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[3]));
	unpublish(s);
}

/* A deleted segment is asked for once, whatever is done with its regions then. */
static void test_whole_segment(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *b = subscriber(test, "b", 1, 1);
	struct rmp_peer *c = subscriber(test, "c", 2, 1);
	struct rmp_revocation *rev;
	static struct rmp_msg msg;
	u32 i;

	rev = rmp_segment_delete(s);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	rmp_revocation_put(rev);
	for (i = 0; i < REGIONS - 1; i++) {
		rmp_segment_remove(s, &r[i]);
		KUNIT_EXPECT_TRUE(test, is_kept(&r[i]));
	}
	for (i = 0; was_sent(RMP_MSG_REVOKE, &msg); i++) {
		KUNIT_EXPECT_EQ(test, msg.revoke.region, 0);
		KUNIT_EXPECT_EQ(test, say_ack(test, i ? c : b, msg.revoke.id), 0);
		KUNIT_EXPECT_EQ(test, is_kept(&r[0]), !i);
	}
	KUNIT_EXPECT_EQ(test, i, 2);
	for (i = 0; i < REGIONS; i++)
		KUNIT_EXPECT_FALSE(test, is_kept(&r[i]));
	/* It is over: nothing is kept for it. */
	rmp_segment_remove(s, &r[REGIONS - 1]);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[REGIONS - 1]));
	KUNIT_EXPECT_NULL(test, rmp_segment_delete(s));
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[0], 0), -ESTALE);
	/* Who ends a file waits for it, once. */
	rev = rmp_segment_ending(s);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	KUNIT_EXPECT_NULL(test, rmp_segment_ending(s));
	rmp_segment_put(s);
}

/* Who has very many to look for gets time for that. */
static void test_large_segment(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	struct rmp_revocation *rev;

	/* As if there were so many. */
	s->nr_regions = 100000;
	rev = rmp_segment_delete(s);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	world_advance_ms(test, IN_TIME - TOO_LATE);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	world_advance_ms(test, 2 * TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	rmp_segment_put(s);
	check_peer(test, peer);
}

/* Who comes later may have less time: that is not over only when the other one's is. */
static void test_less_time(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test), *small = publish(test, "small");
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	static struct rmp_region region;
	struct rmp_revocation *rev;

	region_make(&region, REGIONS + 1, 1);
	KUNIT_ASSERT_EQ(test, insert_at(small, &region, 0), 0);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "small").status, 0);
	s->nr_regions = 100000;
	rev = rmp_segment_delete(s);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	rmp_segment_remove(small, &region);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&region));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&region));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	rmp_segment_put(s);
	check_peer(test, peer);
	unpublish(small);
}

/* One that stays silent loses its queue pairs, and keeps its session. */
static void test_cut(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 2);
	struct rmp_session *session = peer->session;
	static struct rmp_msg msg;
	u32 i;

	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 4);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 0);
	KUNIT_EXPECT_PTR_EQ(test, peer->session, session);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	check_peer(test, peer);
	for (i = 0; was_sent(RMP_MSG_QP_FENCE, NULL); i++)
		;
	KUNIT_EXPECT_EQ(test, i, 4);

	/* Its answer comes too late, and does no harm. */
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE, &msg));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&r[0].ref), 1);
	rails_again(test, peer, 2);
	/* Now it has the usual time again. */
	rmp_segment_remove(s, &r[1]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[1]));
	KUNIT_EXPECT_EQ(test, let_go_of_all(test, peer), 1);
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 4);
	check_peer(test, peer);
	unpublish(s);
}

/* As long as a device has one of the queue pairs, drained or not, nothing is let go of; nor as
 * long as it has one that died before. A peer that is mute is cut off at once.
 */
static void test_cut_waits(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);

	clock_nobody_dies = true;
	fail_qp(test, peer, 0, 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	WRITE_ONCE(peer->session->mute, true);
	rmp_segment_remove(s, &r[0]);
	until(test, !qps_up(peer));
	until_asleep(test, peer);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	open_gate();
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 0);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
	check_peer(test, peer);
	unpublish(s);
}

/* Each for itself: who lets go is not disturbed. */
static void test_others(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *b = subscriber(test, "b", 1, 1);
	struct rmp_peer *c = subscriber(test, "c", 2, 1);
	static struct rmp_msg msg;

	rmp_segment_remove(s, &r[0]);
	/* The first subscriber is told first. */
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE, &msg));
	KUNIT_EXPECT_EQ(test, say_ack(test, b, msg.revoke.id), 0);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(b), 2);
	KUNIT_EXPECT_EQ(test, b->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, qps_up(c), 0);
	KUNIT_EXPECT_EQ(test, c->state, RMPOOL_PEER_CONNECTED);
	check_peer(test, b);
	check_peer(test, c);
	unpublish(s);
}

/* Several are open: one cut serves all. Then it gets no time, until it says something. */
static void test_several(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	static struct rmp_msg msg;

	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, 1000);
	rmp_segment_remove(s, &r[1]);
	rmp_segment_remove(s, &r[2]);
	world_advance_ms(test, 1100);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]) || is_kept(&r[1]) || is_kept(&r[2]));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 0);

	rmp_segment_remove(s, &r[3]);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[3]));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);

	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE, &msg));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	rmp_segment_remove(s, &r[4]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[4]));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[4]));
	check_peer(test, peer);
	unpublish(s);
}

/* Replaced keys and a right that is withdrawn are like any other: the cut ends them, too. */
static void test_cut_for_rights(struct kunit *test)
{
	struct rmp_rights *nobody = kzalloc(sizeof(*nobody), GFP_KERNEL);
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	struct rmp_revocation *rekey, *withdrawn;
	static struct rmp_msg msg;
	u32 lost;

	KUNIT_ASSERT_NOT_NULL(test, nobody);
	rekey = rmp_segment_rekey(s, &r[0]);
	KUNIT_ASSERT_NOT_NULL(test, rekey);
	/* It goes while that is open. */
	rmp_segment_remove(s, &r[0]);
	KUNIT_EXPECT_EQ(test, rmp_segment_set_rights(s, nobody, &lost, &withdrawn), 0);
	KUNIT_ASSERT_NOT_NULL(test, withdrawn);
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 3);
	/* Who may not use it any more is not asked again. */
	rmp_segment_remove(s, &r[1]);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[1]));
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_EXPECT_FALSE(test, completion_done(&rekey->done));
	KUNIT_EXPECT_FALSE(test, completion_done(&withdrawn->done));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_TRUE(test, completion_done(&rekey->done));
	KUNIT_EXPECT_TRUE(test, completion_done(&withdrawn->done));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_EQ(test, revokes_open(peer), 0);
	rmp_revocation_put(rekey);
	rmp_revocation_put(withdrawn);

	/* Answers that come too late. */
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REKEY, &msg));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_WITHDRAWN, &msg));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&r[0].ref), 1);
	check_peer(test, peer);
	unpublish(s);
}

/* A queue pair that came up shows as much as an answer. */
static void test_reconnected(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);

	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	rails_again(test, peer, 1);
	rmp_segment_remove(s, &r[1]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[1]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[1]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	check_peer(test, peer);
	unpublish(s);
}

/* Tokens of before are void: who uses one may not have read what it has to let go of. */
static void test_tokens_void(struct kunit *test)
{
	struct rmp_msg ask = {
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = 0, .sender_dev = 5, .receiver_dev = 0,
				  .nr_qps = 2 },
	};
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = peer_make(test, "b", 1);
	static struct rmp_msg msg;

	go_passive(test, peer, 1, 1);
	ask_open(test, peer, "s");
	KUNIT_EXPECT_EQ(test, say(test, peer, &ask), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_TOKENS, &msg));
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 0, msg.rail_tokens.token[0]), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 1, msg.rail_tokens.token[1]),
			RMP_REJECT_TOKEN);
	KUNIT_EXPECT_EQ(test, say(test, peer, &ask), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_TOKENS, &msg));
	KUNIT_EXPECT_EQ(test, knock_data(test, 1, 0, 1, msg.rail_tokens.token[1]), 0);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 1);
	check_peer(test, peer);
	unpublish(s);
}

/* A queue pair that is just being let in could be used already: it is not forgotten.
 * @ends: the session ends, instead of a cut.
 */
static void being_let_in(struct kunit *test, bool ends)
{
	struct rmp_msg ask = {
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = 0, .sender_dev = 5, .receiver_dev = 0,
				  .nr_qps = 1 },
	};
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct knocker k = { .c.call = call_data };
	static struct rmp_msg msg;

	go_passive(test, peer, 1, 1);
	ask_open(test, peer, "s");
	KUNIT_EXPECT_EQ(test, say(test, peer, &ask), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_TOKENS, &msg));
	memcpy(k.token, msg.rail_tokens.token[0], sizeof(k.token));
	atomic_set(&world.accepts, 0);
	world.hold_accept = true;
	caller_start(test, &k.c);
	until(test, atomic_read(&world.accepts) == 1);
	rmp_segment_remove(s, &r[0]);
	if (ends)
		say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	else
		world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, caller_end(test, &k.c), RMP_REJECT_RESOURCES);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	world.hold_accept = false;
	world_settle(test);
	check_peer(test, peer);
	unpublish(s);
}

static void test_being_let_in(struct kunit *test)
{
	being_let_in(test, false);
}

static void test_being_let_in_at_the_end(struct kunit *test)
{
	being_let_in(test, true);
}

/* Tokens are on their way, from before the peer read what it has to let go of. They do not
 * bring its queue pairs back; those that it is asked for behind that do.
 */
static void test_cut_while_asked(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);

	fail_qp(test, peer, 0, 0);
	world_advance_ms(test, 3000);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME + TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	world_advance_ms(test, 1000);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(peer->session->mute));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	world_advance_ms(test, 50);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	check_peer(test, peer);
	unpublish(s);
}

/* The worker is busy with connecting, which is not waited for. */
static void test_connecting(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);

	fail_qp(test, peer, 0, 0);
	world_advance_ms(test, 3000);
	world.hold = true;
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, NULL));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	KUNIT_EXPECT_NOT_NULL(test, peer->connecting);
	/* It gives up by itself 3 s after it began. */
	rmp_segment_remove(s, &r[0]);
	world_advance_ms(test, IN_TIME);
	KUNIT_EXPECT_NOT_NULL(test, peer->connecting);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	world_advance_ms(test, TOO_LATE);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, qps_up(peer), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	let_go(test, 0, 0);
	check_peer(test, peer);
	unpublish(s);
}

/* Whatever ends the session, or takes a device of it, ends the waiting as well. */
static void test_ends(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 2);

	/* A device of a rail: the other one stays, and with it the peer's time. */
	rmp_segment_remove(s, &r[0]);
	device_go(test, 1);
	KUNIT_EXPECT_EQ(test, qps_up(peer), 2);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	/* That of the control channel. */
	device_go(test, 0);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	device_come(0);
	want_no_more(peer);
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);

	peer = subscriber(test, "c", 2, 1);
	rmp_segment_remove(s, &r[1]);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[1]));
	KUNIT_EXPECT_EQ(test, rmp_peer_del("c"), 0);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[1]));

	/* Unloading does the same to all; see world_end(). */
	peer = subscriber(test, "d", 3, 1);
	rmp_segment_remove(s, &r[2]);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[2]));
	unpublish(s);
}

/* The channel is broken, and the worker has not seen to it yet: there are queue pairs,
 * so what is asked for now is kept until they are gone.
 */
static void test_broken(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);

	want_no_more(peer);
	mutex_lock(&peer->lock);
	spin_lock(&world.lock);
	peer->session->ctl.dead = true;
	spin_unlock(&world.lock);
	rmp_segment_remove(s, &r[0]);
	KUNIT_EXPECT_TRUE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 0);
	mutex_unlock(&peer->lock);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, is_kept(&r[0]));
	KUNIT_EXPECT_EQ(test, atomic_read(&world.destroyed), 2);
	KUNIT_EXPECT_NULL(test, peer->session);
	check_peer(test, peer);
	unpublish(s);
}

/* Kicks and events at random moments between; at the end nothing is kept. */
static void test_random(struct kunit *test)
{
	struct rmp_segment *s = publish_all(test);
	struct rmp_peer *b = subscriber(test, "b", 1, 1);
	struct rmp_peer *c = subscriber(test, "c", 2, 1);
	u32 n, i;

	for (n = 0; n < 200; n++) {
		i = (u32)below(REGIONS);
		switch (below(6)) {
		case 0:
		case 1:
			if (is_kept(&r[i]))
				break;
			/* It may be in, or out already. */
			rmp_segment_remove(s, &r[i]);
			break;
		case 2:
			if (!is_kept(&r[i]))
				insert_at(s, &r[i], (u64)i << 30);
			break;
		case 3:
			say_ack(test, below(2) ? b : c, 1 + (u32)below(20));
			break;
		case 4:
			rmp_peer_kick(below(2) ? b : c);
			break;
		case 5:
			world_advance_ms(test, (unsigned int)below(1500));
			answer_probe(test, b);
			answer_probe(test, c);
			break;
		}
		forget_sent();
	}
	world_settle(test);
	/* Nobody is kept longer than one time, once all of that is over. */
	world_advance_ms(test, IN_TIME + TOO_LATE);
	for (i = 0; i < REGIONS; i++)
		KUNIT_EXPECT_FALSE(test, is_kept(&r[i]));
	check_peer(test, b);
	check_peer(test, c);
	unpublish(s);
}

/* A peer that leaves too many unanswered loses its session, and so all keys. To
 * make all of them would only take time.
 */
static void test_too_many(struct kunit *test)
{
	enum { LEFT = 100 };
	struct rmp_segment *s = publish(test, "s");
	struct rmp_peer *peer = subscriber(test, "b", 1, 1);
	struct rmp_region *many;
	u32 i;

	many = kunit_kcalloc(test, LEFT + 10, sizeof(*many), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	want_no_more(peer);
	mutex_lock(&peer->session->export_lock);
	KUNIT_EXPECT_EQ(test, peer->session->nr_revokes, 0);
	peer->session->nr_revokes = RMP_REVOKES_MAX - LEFT;
	mutex_unlock(&peer->session->export_lock);
	for (i = 0; i < LEFT + 10 && peer->session; i++) {
		region_make(&many[i], i + 1, 1);
		KUNIT_ASSERT_EQ(test, insert_at(s, &many[i], 0), 0);
		rmp_segment_remove(s, &many[i]);
		forget_sent();
		if (i >= LEFT)
			world_settle(test);
	}
	KUNIT_EXPECT_EQ(test, i, LEFT + 1);
	KUNIT_EXPECT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, peer->reason, RMPOOL_REASON_SILENT);
	while (i--)
		KUNIT_EXPECT_FALSE(test, is_kept(&many[i]));
	unpublish(s);
	check_peer(test, peer);
}

static struct kunit_case revoke_cases[] = {
	KUNIT_CASE(test_answers),
	KUNIT_CASE(test_whole_segment),
	KUNIT_CASE(test_large_segment),
	KUNIT_CASE(test_less_time),
	KUNIT_CASE(test_cut),
	KUNIT_CASE(test_cut_waits),
	KUNIT_CASE(test_others),
	KUNIT_CASE(test_several),
	KUNIT_CASE(test_cut_for_rights),
	KUNIT_CASE(test_reconnected),
	KUNIT_CASE(test_tokens_void),
	KUNIT_CASE(test_cut_while_asked),
	KUNIT_CASE(test_being_let_in),
	KUNIT_CASE(test_being_let_in_at_the_end),
	KUNIT_CASE(test_connecting),
	KUNIT_CASE(test_ends),
	KUNIT_CASE(test_broken),
	KUNIT_CASE(test_random),
	KUNIT_CASE(test_too_many),
	{}
};

static struct kunit_suite revoke_suite = {
	.name = "rmp_revoke",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = revoke_cases,
};

kunit_test_suites(&revoke_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's revocations");
MODULE_LICENSE("GPL");
