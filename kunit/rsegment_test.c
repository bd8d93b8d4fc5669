// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/rsegment.c, fetch.c and letgo.c: a segment of the other node as we see it, from
 * asking for it by name to letting go of its keys. The rooms around it are the
 * real ones, what they stand on is played (peer_world.h).
 */
#include "peer_world.h"

#define MS(n)	msecs_to_jiffies(n)
#define PIECE	(2ULL << 20)	/* length of the regions there, one chunk each */

/* -------------------------------------------------------- the other node says */

static void say_info(struct kunit *test, struct rmp_peer *peer, u32 cookie,
		     u32 status, u32 segment)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_SEGMENT_INFO,
		.segment_info = { .cookie = cookie, .status = status,
				  .segment = segment, .nr_regions = 1 },
	};

	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
}

static u32 key_of(u64 region, u32 device)
{
	return (u32)region << 8 | device;
}

/* Regions @first to @last, number n at n times PIECE, reached through device 5.
 * Unless @more, these are all.
 */
static int say_keys(struct kunit *test, struct rmp_peer *peer, u32 segment,
		    u64 first, u64 last, bool more)
{
	struct rmp_msg_keys keys = { .segment = segment, .last = !more };
	void *buf = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	struct rmp_keys_writer w;
	int ret;
	u64 n;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, rmp_keys_begin(&w, buf, RMP_WIRE_MSG_MAX), 0);
	for (n = first; n <= last; n++) {
		struct rmp_wire_keys run = {
			.region = n, .offset = n * PIECE, .length = PIECE,
			.iova = 1ULL << 40, .iova_base = 1ULL << 40,
			.access = RMPOOL_ACCESS_REMOTE_READ,
			.chunk_shift = 21, .device = 5,
		};

		KUNIT_EXPECT_GT(test, rmp_keys_open(&w, &run), 0);
		rmp_keys_add(&w, key_of(n, 5));
	}
	if (more)
		keys.next = (struct rmp_wire_cursor){ .region = last * PIECE };
	ret = rmp_keys_end(&w, 0, &keys);
	KUNIT_EXPECT_GT(test, ret, 0);
	if (ret > 0)
		ret = say_raw(test, peer, buf, ret);
	kfree(buf);
	return ret;
}

static int say_taken(struct kunit *test, struct rmp_peer *peer, u8 type, u32 id,
		     u32 segment, u64 region)
{
	struct rmp_msg msg = {
		.type = type,
		.revoke = { .id = id, .segment = segment, .region = region },
	};

	return say(test, peer, &msg);
}

static int say_revoke(struct kunit *test, struct rmp_peer *peer, u32 id,
		      u32 segment, u64 region)
{
	return say_taken(test, peer, RMP_MSG_REVOKE, id, segment, region);
}

static int say_changed_between(struct kunit *test, struct rmp_peer *peer, u32 segment,
			       u64 from, u64 to)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_KEYS_CHANGED,
		.segment = { .segment = segment, .range = { from, to } },
	};

	return say(test, peer, &msg);
}

static int say_changed(struct kunit *test, struct rmp_peer *peer, u32 segment)
{
	return say_changed_between(test, peer, segment, 0, U64_MAX);
}

/* ------------------------------------------------------------- and is asked */

static void ask_open(struct kunit *test, struct caller *c, const char *segment)
{
	memset(c, 0, sizeof(*c));
	c->call = call_open;
	strscpy(c->node, "b", sizeof(c->node));
	strscpy(c->segment, segment, sizeof(c->segment));
	c->timeout = MS(20000);
	caller_start(test, c);
}

/* The cookie of the question for that name. */
static u32 asked_for(struct kunit *test, const char *name)
{
	static struct rmp_msg msg;

	until(test, was_sent(RMP_MSG_SEGMENT_OPEN, &msg));
	KUNIT_EXPECT_STREQ(test, msg.segment_open.name, name);
	return msg.segment_open.cookie;
}

static struct rmp_msg_keys_get asked_keys(struct kunit *test)
{
	static struct rmp_msg msg;

	memset(&msg, 0, sizeof(msg));
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_KEYS_GET, &msg));
	return msg.keys_get;
}

/* Keys of that range and nothing else are asked for, from the start of it. */
static void expect_asked(struct kunit *test, u64 from, u64 to)
{
	struct rmp_msg_keys_get asked = asked_keys(test);

	KUNIT_EXPECT_EQ(test, asked.segment, 7);
	KUNIT_EXPECT_EQ(test, asked.from.region, from);
	KUNIT_EXPECT_EQ(test, asked.from.device, 0);
	KUNIT_EXPECT_EQ(test, asked.from.chunk, 0);
	KUNIT_EXPECT_EQ(test, asked.to, to);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
}

static void expect_asked_all(struct kunit *test)
{
	expect_asked(test, 0, U64_MAX);
}

/* Opened, with regions 1 to @last; id 7 there. Give back with rmp_rseg_put(). */
static struct rmp_rseg *open_segment(struct kunit *test, struct rmp_peer *peer,
				     const char *name, u64 last)
{
	struct caller c;

	ask_open(test, &c, name);
	say_info(test, peer, asked_for(test, name), 0, 7);
	expect_asked_all(test);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, last, false), 0);
	KUNIT_ASSERT_EQ(test, caller_end(test, &c), 0);
	return c.rseg;
}

static void expect_found(struct kunit *test, struct rmp_rseg *rseg, u64 n)
{
	struct rmp_rregion *rr;
	u64 iova;
	u32 rkey;

	rr = rmp_rseg_find(rseg, n * PIECE, PIECE, RMPOOL_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 5, 0, &iova, &rkey), PIECE);
	KUNIT_EXPECT_EQ(test, rkey, key_of(n, 5));
	rmp_rregion_put(rr);
}

static void expect_error(struct kunit *test, struct rmp_rseg *rseg, u64 n,
			 int error)
{
	struct rmp_rregion *rr = rmp_rseg_find(rseg, n * PIECE, 1, 0);

	KUNIT_EXPECT_TRUE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, PTR_ERR(rr), error);
}

/* -------------------------------------------------------------------- opening */

/* The one who asks brings the peer up; a second one finds the keys there. */
static void test_open(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c, d;

	ask_open(test, &c, "s");
	until(test, READ_ONCE(peer->session));
	world_settle(test);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	KUNIT_EXPECT_EQ(test, asked_keys(test).segment, 7);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 3, false), 0);
	/* Keys alone do not carry data. */
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	KUNIT_ASSERT_EQ(test, caller_end(test, &c), 0);
	expect_found(test, c.rseg, 1);
	expect_found(test, c.rseg, 3);
	expect_error(test, c.rseg, 0, -ENXIO);
	expect_error(test, c.rseg, 4, -ENXIO);

	forget_sent();
	ask_open(test, &d, "s");
	KUNIT_ASSERT_EQ(test, caller_end(test, &d), 0);
	KUNIT_EXPECT_PTR_EQ(test, c.rseg, d.rseg);
	rmp_rseg_put(c.rseg);
	rmp_rseg_put(d.rseg);
	/* And so does one who comes when nobody has it open. */
	ask_open(test, &d, "s");
	KUNIT_ASSERT_EQ(test, caller_end(test, &d), 0);
	rmp_rseg_put(d.rseg);
	KUNIT_EXPECT_EQ(test, world.nr_sent, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.connects), 1);
}

/* Somebody has looked at the clock and waits for an answer: time may go on. */
static bool opener_asleep(struct rmp_peer *peer)
{
	struct rmp_rseg *rseg;
	bool asleep;

	mutex_lock(&peer->rseg_lock);
	rseg = list_first_entry_or_null(&peer->rsegs, struct rmp_rseg, node);
	asleep = rseg && wq_has_sleeper(&rseg->wait);
	mutex_unlock(&peer->rseg_lock);
	return asleep;
}

static void test_open_refused(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c;

	ask_open(test, &c, "not a name");
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -EINVAL);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_NAME_BAD);
	strscpy(c.node, "nobody", sizeof(c.node));
	memset(c.segment, 0, sizeof(c.segment));
	c.segment[0] = 's';
	caller_start(test, &c);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOENT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_PEER_UNKNOWN);

	/* Not answered, or not to an end. */
	go_ready(test, peer, 1);
	ask_open(test, &c, "s");
	asked_for(test, "s");
	world_advance_ms(test, 1000);
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	send_sig(SIGUSR1, c.task, 1);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -EINTR);
	c.timeout = MS(1000);
	caller_start(test, &c);
	until(test, opener_asleep(peer));
	world_advance_ms(test, 1100);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_SILENT);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, atomic_read(&peer->users), 1);
}

/* What goes wrong with one segment is of no concern to another, nor to the
 * connection.
 */
static void test_keys_fail_alone(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_session *s;
	struct rmp_rseg *good;
	struct caller c;
	struct rmp_keys_writer w;
	struct rmp_msg_keys keys = { .segment = 8, .last = 1 };
	struct rmp_wire_keys run = {
		.region = 1, .iova = 1ULL << 40, .iova_base = 1ULL << 40,
		.length = (RMP_KEYS_MAX + 1ULL) << 12, .chunk_shift = 12,
	};
	u8 *buf = kunit_kzalloc(test, RMP_WIRE_MSG_MAX, GFP_KERNEL);
	int len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	go_ready(test, peer, 1);
	s = peer->session;
	good = open_segment(test, peer, "good", 3);

	/* It has no such segment; it has too many keys in it. */
	ask_open(test, &c, "none");
	say_info(test, peer, asked_for(test, "none"),
		 RMPOOL_REASON_SEGMENT_UNKNOWN, 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOENT);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_SEGMENT_UNKNOWN);

	ask_open(test, &c, "large");
	say_info(test, peer, asked_for(test, "large"), 0, 8);
	KUNIT_EXPECT_EQ(test, asked_keys(test).segment, 8);
	KUNIT_EXPECT_EQ(test, rmp_keys_begin(&w, buf, RMP_WIRE_MSG_MAX), 0);
	KUNIT_EXPECT_GT(test, rmp_keys_open(&w, &run), 0);
	rmp_keys_add(&w, 1);
	len = rmp_keys_end(&w, 0, &keys);
	KUNIT_EXPECT_EQ(test, say_raw(test, peer, buf, len), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOSPC);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_REMOTE_KEYS);

	/* Answers to questions that nobody asked. */
	say_info(test, peer, 12345, 0, 9);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 9, 1, 1, false), 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 9, 9, false), 0);
	expect_error(test, good, 9, -ENXIO);

	KUNIT_EXPECT_PTR_EQ(test, peer->session, s);
	KUNIT_EXPECT_EQ(test, peer->state, RMPOOL_PEER_READY);
	expect_found(test, good, 2);
	rmp_rseg_put(good);
	KUNIT_EXPECT_EQ(test, atomic_read(&peer->users), 1);
}

/* Page by page; what changes meanwhile is asked for once more. */
static void test_pages(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c;

	go_ready(test, peer, 1);
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.region, 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 9, true), 0);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.region, 9 * PIECE);
	KUNIT_EXPECT_TRUE(test, caller_waits(&c));
	KUNIT_EXPECT_EQ(test, say_changed(test, peer, 7), 0);
	KUNIT_EXPECT_EQ(test, say_changed(test, peer, 7), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 10, 20, false), 0);
	KUNIT_ASSERT_EQ(test, caller_end(test, &c), 0);
	expect_found(test, c.rseg, 20);
	/* The walk that is done once more does not disturb. */
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.region, 0);
	expect_found(test, c.rseg, 1);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 25, false), 0);
	expect_found(test, c.rseg, 25);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	/* Later changes as well. */
	KUNIT_EXPECT_EQ(test, say_changed(test, peer, 7), 0);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.region, 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 26, false), 0);
	expect_found(test, c.rseg, 26);
	rmp_rseg_put(c.rseg);
}

/* One page: keys of chunks from @first on of a region of two chunks. */
static int say_half(struct kunit *test, struct rmp_peer *peer, u64 region,
		    u32 device, u32 first, u32 nr, bool last)
{
	struct rmp_msg_keys keys = { .segment = 7, .last = last };
	struct rmp_wire_keys run = {
		.region = region, .offset = 0, .length = 2 * PIECE,
		.iova = 1ULL << 40, .iova_base = 1ULL << 40,
		.access = RMPOOL_ACCESS_REMOTE_READ, .chunk_shift = 21,
		.device = device, .first = first,
	};
	void *buf = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	struct rmp_keys_writer w;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, rmp_keys_begin(&w, buf, RMP_WIRE_MSG_MAX), 0);
	KUNIT_EXPECT_GT(test, rmp_keys_open(&w, &run), 0);
	while (nr--)
		rmp_keys_add(&w, key_of(region, device));
	if (!last)
		keys.next = (struct rmp_wire_cursor){
			.device = device, .chunk = first + 1,
		};
	ret = rmp_keys_end(&w, 0, &keys);
	KUNIT_EXPECT_GT(test, ret, 0);
	if (ret > 0)
		ret = say_raw(test, peer, buf, ret);
	kfree(buf);
	return ret;
}

/* A region is half told when it is taken back, and another one is there in its
 * place: the answer to what was asked goes on in the middle of that. This is
 * nobody's fault; the walk begins anew.
 */
static void test_replaced_in_a_walk(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *rr;
	struct caller c;

	go_ready(test, peer, 1);
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	asked_keys(test);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 1, 5, 0, 1, false), 0);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.chunk, 1);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 1, 7, 1), 0);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 2, 5, 1, 1, true), 0);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.chunk, 0);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 2, 5, 0, 2, true), 0);
	KUNIT_ASSERT_EQ(test, caller_end(test, &c), 0);
	rr = rmp_rseg_find(c.rseg, 0, 2 * PIECE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rr->id, 2);
	rmp_rregion_put(rr);
	/* Without a reason it is malformed. */
	KUNIT_EXPECT_EQ(test, say_changed(test, peer, 7), 0);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 2, 5, 1, 1, true), -EBADMSG);
	KUNIT_EXPECT_NULL(test, peer->session);
	rmp_rseg_put(c.rseg);
}

/* What changed between two offsets is asked for there, page by page; the rest is neither
 * asked for nor touched. What the peer tells beside that is taken, but it cannot go on there.
 */
static void test_range(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg_keys_get asked;
	struct rmp_rregion *rr[2];
	struct rmp_rseg *rseg;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 5);
	rr[0] = rmp_rseg_find(rseg, 5 * PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr[0]));
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 6 * PIECE, 8 * PIECE - 1), 0);
	expect_asked(test, 6 * PIECE, 8 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 6, 6, true), 0);
	asked = asked_keys(test);
	KUNIT_EXPECT_EQ(test, asked.from.region, 6 * PIECE);
	KUNIT_EXPECT_EQ(test, asked.to, 8 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 7, 7, false), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	expect_found(test, rseg, 1);
	expect_found(test, rseg, 6);
	expect_found(test, rseg, 7);
	rr[1] = rmp_rseg_find(rseg, 5 * PIECE, 1, 0);
	KUNIT_EXPECT_PTR_EQ(test, rr[0], rr[1]);
	KUNIT_EXPECT_FALSE(test, rr[0]->revoked);
	rmp_rregion_put(rr[0]);
	rmp_rregion_put(rr[1]);

	/* To the last offset of all, where nothing is. */
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, U64_MAX, U64_MAX), 0);
	expect_asked(test, U64_MAX, U64_MAX);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 0, false), 0);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 8 * PIECE, 9 * PIECE - 1), 0);
	expect_asked(test, 8 * PIECE, 9 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 7, 10, false), 0);
	expect_found(test, rseg, 10);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 0, PIECE), 0);
	expect_asked(test, 0, PIECE);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 2, true), -EBADMSG);
	KUNIT_EXPECT_NULL(test, peer->session);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	rmp_rseg_put(rseg);
}

static u64 shown_generation(struct rmp_rseg *rseg)
{
	u64 at = 0, size, generation;
	u32 total;

	rmp_rseg_list(rseg, &at, 0, NULL, 0, &total, &size, &generation);
	return generation;
}

/* What comes while a range is walked is walked then, in one go; and all of it when a device
 * comes, or one goes of which keys may be half told.
 */
static void test_range_in_a_walk(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rseg *rseg;
	u64 generation;

	go_ready(test, peer, 2);
	rseg = open_segment(test, peer, "s", 5);
	generation = shown_generation(rseg);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 6 * PIECE, 7 * PIECE - 1), 0);
	expect_asked(test, 6 * PIECE, 7 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 9 * PIECE, 10 * PIECE - 1), 0);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 8 * PIECE, 9 * PIECE - 1), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 6, 6, false), 0);
	expect_found(test, rseg, 6);
	KUNIT_EXPECT_EQ(test, shown_generation(rseg), generation + 1);
	expect_asked(test, 8 * PIECE, 10 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 8, 9, false), 0);
	expect_found(test, rseg, 9);
	KUNIT_EXPECT_EQ(test, shown_generation(rseg), generation + 3);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));

	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, PIECE, PIECE), 0);
	expect_asked(test, PIECE, PIECE);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 1, false), 0);
	expect_asked_all(test);
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, PIECE, PIECE), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 2), 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 9, false), 0);
	expect_asked_all(test);
	KUNIT_EXPECT_EQ(test, shown_generation(rseg), generation + 4);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 9, false), 0);
	/* Nothing is different that a program sees. */
	KUNIT_EXPECT_EQ(test, shown_generation(rseg), generation + 4);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 1, 7, 9), 0);
	KUNIT_EXPECT_EQ(test, shown_generation(rseg), generation + 5);
	/* And nothing of that is left. */
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, PIECE, PIECE), 0);
	expect_asked(test, PIECE, PIECE);
	rmp_rseg_put(rseg);
}

/* A walk that is begun anew is so where its range begins. */
static void test_replaced_in_a_range(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_msg_keys_get asked;
	struct rmp_rregion *rr;
	struct rmp_rseg *rseg;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 0);
	/* It began before that. */
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, PIECE, 2 * PIECE - 1), 0);
	expect_asked(test, PIECE, 2 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 1, 5, 0, 1, false), 0);
	asked = asked_keys(test);
	KUNIT_EXPECT_EQ(test, asked.from.region, 0);
	KUNIT_EXPECT_EQ(test, asked.from.chunk, 1);
	KUNIT_EXPECT_EQ(test, asked.to, 2 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 1, 7, 1), 0);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 2, 5, 1, 1, true), 0);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	expect_asked(test, PIECE, 2 * PIECE - 1);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 2, 5, 0, 2, true), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	rr = rmp_rseg_find(rseg, 0, 2 * PIECE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rr->id, 2);
	rmp_rregion_put(rr);
	rmp_rseg_put(rseg);
	check_peer(test, peer);
}

/* Who looks for a region and waits for it. */
struct finder {
	struct caller c;
	u64 offset, length;
	u64 id;
};

static int call_find(struct caller *c)
{
	struct finder *f = container_of(c, struct finder, c);
	struct rmp_rregion *rr;

	rr = rmp_rseg_find_wait(c->rseg, f->offset, f->length, 0, c->timeout);
	if (IS_ERR(rr))
		return PTR_ERR(rr);
	f->id = rr->id;
	rmp_rregion_put(rr);
	return 0;
}

static void find_start(struct kunit *test, struct finder *f, struct rmp_rseg *rseg,
		       u64 offset, u64 length)
{
	memset(f, 0, sizeof(*f));
	f->c.call = call_find;
	f->c.rseg = rseg;
	f->c.timeout = MS(20000);
	f->offset = offset;
	f->length = length;
	caller_start(test, &f->c);
	until(test, wq_has_sleeper(&rseg->wait));
}

/* Who finds no region at an offset asks about that one, and waits for that walk: not for one
 * that was under way, nor for those that come after it.
 */
static void test_find(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rseg *rseg;
	struct finder f;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 5);
	find_start(test, &f, rseg, 6 * PIECE + 7, PIECE - 7);
	expect_asked(test, 6 * PIECE + 7, 6 * PIECE + 7);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 6, 6, false), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &f.c), 0);
	KUNIT_EXPECT_EQ(test, f.id, 6);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));

	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, PIECE, PIECE), 0);
	expect_asked(test, PIECE, PIECE);
	find_start(test, &f, rseg, 7 * PIECE, 1);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 1, false), 0);
	expect_asked(test, 7 * PIECE, 7 * PIECE);
	/* It looked more than once that this is not what it waits for. */
	msleep(50);
	KUNIT_EXPECT_TRUE(test, caller_waits(&f.c));
	KUNIT_EXPECT_EQ(test, say_changed_between(test, peer, 7, 2 * PIECE, 2 * PIECE), 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 7, 7, false), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &f.c), 0);
	KUNIT_EXPECT_EQ(test, f.id, 7);
	expect_asked(test, 2 * PIECE, 2 * PIECE);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 2, 2, false), 0);

	/* Nothing, at the end of a region or at the start of all. */
	find_start(test, &f, rseg, 9 * PIECE, 0);
	expect_asked(test, 9 * PIECE - 1, 9 * PIECE);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 8, 8, false), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &f.c), 0);
	KUNIT_EXPECT_EQ(test, f.id, 8);
	find_start(test, &f, rseg, 0, 0);
	expect_asked(test, 0, 0);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 0, false), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &f.c), -ENXIO);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	rmp_rseg_put(rseg);
	check_peer(test, peer);
}

/* A peer whose answers never fit is not asked for ever. */
static void test_walks_without_end(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c;
	int i;

	go_ready(test, peer, 1);
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	for (i = 0; i < 100 && peer->session; i++) {
		say_half(test, peer, 1, 5, 0, 1, false);
		say_half(test, peer, 2, 5, 1, 1, false);
		forget_sent();
	}
	KUNIT_EXPECT_EQ(test, i, RMP_WALKS_MAX + 1);
	KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOENT);
}

/* The same with a device that goes before all of its keys were told. */
static void test_device_goes_in_a_walk(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct caller c;

	go_ready(test, peer, 2);
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	asked_keys(test);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 1, 5, 0, 2, false), 0);
	asked_keys(test);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 1, 6, 0, 1, false), 0);
	asked_keys(test);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	/* What is left of the walk is nothing. */
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 0, false), 0);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, asked_keys(test).from.device, 0);
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 1, 5, 0, 2, true), 0);
	KUNIT_ASSERT_EQ(test, caller_end(test, &c), 0);
	rmp_rseg_put(c.rseg);
}

/* -------------------------------------------------------- the end of a session */

static void session_again(struct kunit *test, struct rmp_peer *peer, u8 n)
{
	uuid_of(world.uuid, n);
	world_advance_ms(test, 150);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	KUNIT_EXPECT_EQ(test, say_hello(test, peer, n), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
}

/* Keys that contradict what is known are malformed: they end the session. With
 * the next one, keys come anew, and who holds the segment goes on.
 */
static void test_session_again(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *held;
	struct rmp_rseg *rseg;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 3);
	held = rmp_rseg_find(rseg, PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	KUNIT_EXPECT_EQ(test, say_changed(test, peer, 7), 0);
	/* Another region where there is one that was not taken back. */
	KUNIT_EXPECT_EQ(test, say_half(test, peer, 9, 5, 0, 2, true), -EBADMSG);
	KUNIT_EXPECT_NULL(test, peer->session);
	expect_error(test, rseg, 1, -EAGAIN);
	KUNIT_EXPECT_TRUE(test, held->revoked);
	rmp_rregion_put(held);

	session_again(test, peer, 1);
	expect_error(test, rseg, 1, -EAGAIN);
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 3, false), 0);
	expect_found(test, rseg, 3);
	rmp_rseg_put(rseg);
}

/* The same number of another life of the peer, or another number, is another
 * segment: who holds the old one is told, who opens the name has the new one.
 */
static void test_restarted(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rseg *old, *new;
	struct caller c;

	go_ready(test, peer, 1);
	old = open_segment(test, peer, "s", 3);
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	KUNIT_EXPECT_NULL(test, peer->session);
	session_again(test, peer, 2);
	say_info(test, peer, asked_for(test, "s"), 0, 7);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	expect_error(test, old, 1, -ESTALE);

	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	new = open_segment(test, peer, "s", 2);
	KUNIT_EXPECT_PTR_NE(test, new, old);
	expect_found(test, new, 2);
	expect_error(test, old, 1, -ESTALE);
	rmp_rseg_put(old);

	/* The same life, but the segment was deleted and made anew. */
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	session_again(test, peer, 2);
	say_info(test, peer, asked_for(test, "s"), 0, 8);
	expect_error(test, new, 2, -ESTALE);
	rmp_rseg_put(new);
	/* Or it is not there at all, for one who waits. */
	KUNIT_EXPECT_EQ(test, say_tokens(test, peer, 0, 2, 0), 0);
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"),
		 RMPOOL_REASON_SEGMENT_UNKNOWN, 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -ENOENT);
}

/* A device of the peer is gone, and with it the keys; others stay. */
static void test_remote_device_goes(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *rr;
	struct rmp_rseg *rseg;
	u64 iova;
	u32 rkey;

	go_ready(test, peer, 2);
	rseg = open_segment(test, peer, "s", 1);
	rr = rmp_rseg_find(rseg, PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 5, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 0), 0);
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 5, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	/* And back: it had no link. The peer has nothing to tell by itself. */
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	expect_asked_all(test);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 1, false), 0);
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 5, 0, &iova, &rkey), 0);
	/* The same ones once more are nothing new. */
	KUNIT_EXPECT_EQ(test, say_devices(test, peer, 1), 0);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_GET, NULL));
	rmp_rregion_put(rr);
	rmp_rseg_put(rseg);
}

/* -------------------------------------------------------------- revocations */

static void test_revoke(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *held;
	struct rmp_rseg *rseg;
	static struct rmp_msg ack;
	int kicks;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 5);
	/* Nothing is in flight there, or it is not known at all. */
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 41, 7, 2), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.id, 41);
	KUNIT_EXPECT_EQ(test, ack.revoke.segment, 7);
	KUNIT_EXPECT_EQ(test, ack.revoke.region, 2);
	expect_error(test, rseg, 2, -ENXIO);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 42, 7, 99), 0);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 43, 99, 1), 0);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));

	/* A request still uses it. */
	held = rmp_rseg_find(rseg, 3 * PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	kicks = atomic_read(&world.kicks);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 44, 7, 3), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	KUNIT_EXPECT_TRUE(test, held->revoked);
	expect_error(test, rseg, 3, -ENXIO);
	world_advance_ms(test, 3000);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	rmp_rregion_put(held);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.id, 44);

	/* All of it: the segment is gone, when the last one lets go. */
	held = rmp_rseg_find(rseg, 4 * PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 45, 7, 0), 0);
	expect_error(test, rseg, 1, -ESTALE);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	rmp_rregion_put(held);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.region, 0);
	rmp_rseg_put(rseg);
	check_peer(test, peer);
}

/* Other keys: who has a region goes on, and what it was is acknowledged when its last
 * request has gone over or ended.
 */
static void test_rekey(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *held, *next;
	struct rmp_rseg *rseg;
	static struct rmp_msg ack;
	u64 iova;
	u32 rkey;
	int kicks;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 5);
	held = rmp_rseg_find(rseg, 3 * PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	/* Nothing uses it: at once. Unknown ones likewise. */
	KUNIT_EXPECT_EQ(test, say_taken(test, peer, RMP_MSG_REKEY, 50, 7, 2), 0);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.id, 50);
	KUNIT_EXPECT_EQ(test, say_taken(test, peer, RMP_MSG_REKEY, 51, 7, 99), 0);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	KUNIT_EXPECT_EQ(test, say_taken(test, peer, RMP_MSG_REKEY, 52, 99, 1), 0);
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	/* It is there, but has no keys until they are told. */
	next = rmp_rseg_find(rseg, 2 * PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(next));
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(next, 5, 0, &iova, &rkey), 0);
	rmp_rregion_put(next);
	expect_asked(test, 2 * PIECE, 3 * PIECE - 1);
	kicks = atomic_read(&world.kicks);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 5, false), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&world.kicks), kicks);
	expect_found(test, rseg, 2);
	/* Further ones in the walk made for another: nobody knows where that is. */
	expect_asked_all(test);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 5, false), 0);

	forget_sent();
	KUNIT_EXPECT_EQ(test, say_taken(test, peer, RMP_MSG_REKEY, 53, 7, 3), 0);
	expect_asked(test, 3 * PIECE, 4 * PIECE - 1);
	KUNIT_EXPECT_FALSE(test, held->revoked);
	KUNIT_ASSERT_NOT_NULL(test, held->next);
	KUNIT_EXPECT_EQ(test, say_keys(test, peer, 7, 1, 5, false), 0);
	expect_found(test, rseg, 3);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	/* As a request does that goes over. */
	next = held->next;
	rmp_rregion_hold(next);
	rmp_rregion_put(held);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.id, 53);
	rmp_rregion_put(next);
	rmp_rseg_put(rseg);
	check_peer(test, peer);
}

/* The right to a segment is withdrawn: requests learn that, and so does who opens it. */
static void test_withdrawn(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *held, *other;
	struct rmp_rseg *rseg, *again;
	static struct rmp_msg ack;
	struct caller c;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 3);
	held = rmp_rseg_find(rseg, PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	KUNIT_EXPECT_EQ(test, say_taken(test, peer, RMP_MSG_WITHDRAWN, 60, 7, 0), 0);
	KUNIT_EXPECT_TRUE(test, held->revoked);
	KUNIT_EXPECT_EQ(test, held->access, 0);
	expect_error(test, rseg, 1, -EACCES);
	other = rmp_rseg_find_wait(rseg, PIECE, 1, 0, MS(100));
	KUNIT_EXPECT_EQ(test, PTR_ERR(other), -EACCES);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	rmp_rregion_put(held);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REVOKE_ACK, &ack));
	KUNIT_EXPECT_EQ(test, ack.revoke.id, 60);

	/* Who opens it asks the peer anew, who may have thought better of it. */
	ask_open(test, &c, "s");
	say_info(test, peer, asked_for(test, "s"), RMPOOL_REASON_NOT_ALLOWED, 0);
	KUNIT_EXPECT_EQ(test, caller_end(test, &c), -EACCES);
	KUNIT_EXPECT_EQ(test, c.err.reason, RMPOOL_REASON_NOT_ALLOWED);
	again = open_segment(test, peer, "s", 3);
	expect_found(test, again, 1);
	expect_error(test, rseg, 1, -EACCES);
	rmp_rseg_put(again);
	rmp_rseg_put(rseg);
	check_peer(test, peer);
}

/* More than it may leave unanswered. */
static void test_too_many_to_answer(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_ready(test, peer, 1);
	atomic_set(&peer->session->acks, 4 * RMP_REVOKES_MAX);
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 1, 7, 1), -EPROTO);
	want_no_more(peer);
	world_settle(test);
	KUNIT_EXPECT_NULL(test, peer->session);
}

/* The session ends before the last request does: nobody asks any more. */
static void test_revoke_and_lost(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	struct rmp_rregion *held;
	struct rmp_rseg *rseg;

	go_ready(test, peer, 1);
	rseg = open_segment(test, peer, "s", 2);
	held = rmp_rseg_find(rseg, PIECE, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held));
	KUNIT_EXPECT_EQ(test, say_revoke(test, peer, 1, 7, 1), 0);
	want_no_more(peer);
	say(test, peer, &(struct rmp_msg){ .type = RMP_MSG_BYE });
	forget_sent();
	rmp_rregion_put(held);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE_ACK, NULL));
	rmp_rseg_put(rseg);
}

static struct kunit_case rsegment_cases[] = {
	KUNIT_CASE(test_open),
	KUNIT_CASE(test_open_refused),
	KUNIT_CASE(test_keys_fail_alone),
	KUNIT_CASE(test_pages),
	KUNIT_CASE(test_replaced_in_a_walk),
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_range_in_a_walk),
	KUNIT_CASE(test_replaced_in_a_range),
	KUNIT_CASE(test_find),
	KUNIT_CASE(test_walks_without_end),
	KUNIT_CASE(test_device_goes_in_a_walk),
	KUNIT_CASE(test_session_again),
	KUNIT_CASE(test_restarted),
	KUNIT_CASE(test_remote_device_goes),
	KUNIT_CASE(test_revoke),
	KUNIT_CASE(test_revoke_and_lost),
	KUNIT_CASE(test_rekey),
	KUNIT_CASE(test_withdrawn),
	KUNIT_CASE(test_too_many_to_answer),
	{}
};

static struct kunit_suite rsegment_suite = {
	.name = "rmp_rsegment",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = rsegment_cases,
};

kunit_test_suites(&rsegment_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's segments at peers");
MODULE_LICENSE("GPL");
