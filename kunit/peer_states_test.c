// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/session.c: each event in each state of a peer, and then events
 * at random. Where each leads is in the table below; what holds everywhere is
 * looked at after each; and every time all of it comes to an end afterwards,
 * with no reference left.
 */
#include "peer_world.h"

enum state {
	IDLE,		/* in the table, nobody wants it */
	BACKOFF,	/* wanted; the last attempt failed just now */
	CONNECTING,	/* wanted; our attempt stands at the gate */
	INCOMING,	/* its request stands at the gate */
	MUTE,		/* we connected, it said nothing yet */
	GREETED,	/* it said who it is */
	LIVE,		/* and which device it has; no way for data yet */
	READY,		/* one rail is up */
	PASSIVE,	/* it connected, is live, and nobody here wants it */
	PROBED,		/* ready; somebody knocked, so it was asked */
	REMOVED,
	NR_STATES
};

enum event {
	KNOCK_SAME, KNOCK_NEW, KNOCK_GREATER, KNOCK_STRANGER,
	HELLO, HELLO_OTHER, DEVICES, TOKENS, PROBE, ANSWER, BYE,
	CHANNEL_LOST, QP_LOST,
	WANTED, UNWANTED, GATE_OPENS, GATE_FAILS,
	DEVICE_GONE, OTHER_DEVICE_GONE, DEVICE_CHANGED,
	DELETED, SECOND, TWENTY_SECONDS,
	NR_EVENTS
};

static const char * const event_names[NR_EVENTS] = {
	"knock_same", "knock_new", "knock_greater", "knock_stranger",
	"hello", "hello_other", "devices", "tokens", "probe", "answer", "bye",
	"channel_lost", "qp_lost", "wanted", "unwanted", "gate_opens",
	"gate_fails", "device_gone", "other_device_gone", "device_changed",
	"deleted", "second", "twenty_seconds",
};

/*
 * Where an event leads: Idle, Connecting, Live (connected), Ready, Backoff, X
 * (removed); * any of them; - the event cannot be played there.
 */
static const char * const where[NR_STATES] = {
	/*		knocks messages lost want gate device time */
	[IDLE]		= "CCCI IIIIIII II CI II III XII",
	[BACKOFF]	= "CCCB BBBBBBB BB BB BB BBB XC*",
	[CONNECTING]	= "CCCC CCCCCCC CC CC CB BCC XC*",
	[INCOMING]	= "IIII IIIIIII II II CI -II XII",
	[MUTE]		= "CCCC CBBBCCB BC CC CC BCC XC*",
	[GREETED]	= "CCCC BBLBCCB BC CC CC BCC XC*",
	[LIVE]		= "LLLL BBLRLLB BL LL LL BLL XL*",
	[READY]		= "RRRR BBRRRRB BR RR RR BRR XR*",
	[PASSIVE]	= "LLLL IILILLI IL LL LL ILL XLI",
	[PROBED]	= "RRRR BBRRRRB BR RR RR BRR XB*",
	[REMOVED]	= "XXXX XXXXXXX XX XX XX XXX XXX",
};

static char leads_to(enum state state, enum event event)
{
	const char *p = where[state];
	int left = event;

	/* Blanks are for the eye. */
	while (*p == ' ' || left) {
		if (*p++ != ' ')
			left--;
	}
	return *p;
}

/* What becomes of one who knocks: . let in, crossed, retry, not trusted. */
static const char door[NR_STATES][5] = {
	[IDLE]		= "...n",
	[BACKOFF]	= "...n",
	[CONNECTING]	= "..cn",
	[INCOMING]	= "rrrn",
	[MUTE]		= "rrrn",
	[GREETED]	= "rrrn",
	[LIVE]		= "rrrn",
	[READY]		= "rrrn",
	[PASSIVE]	= "rrrn",
	[PROBED]	= "rrrn",
	[REMOVED]	= "nnnn",
};

static struct caller knocker;

static struct rmp_peer *go(struct kunit *test, enum state state)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	memset(&knocker, 0, sizeof(knocker));
	switch (state) {
	case BACKOFF:
		world.result = -ECONNREFUSED;
		want(test, peer);
		world.result = 0;
		break;
	case CONNECTING:
		world.hold = true;
		want(test, peer);
		break;
	case INCOMING:
		world.hold_accept = true;
		knocker.call = call_knock;
		knocker.timeout = 1;
		caller_start(test, &knocker);
		until(test, atomic_read(&world.accepts) == 1);
		break;
	case MUTE:
		go_connected(test, peer);
		break;
	case GREETED:
		go_connected(test, peer);
		KUNIT_EXPECT_EQ(test, say_hello(test, peer, 1), 0);
		break;
	case LIVE:
		go_live(test, peer, 1);
		break;
	case READY:
		go_ready(test, peer, 1);
		break;
	case PASSIVE:
		go_passive(test, peer, 1, 1);
		break;
	case PROBED:
		go_ready(test, peer, 1);
		KUNIT_EXPECT_EQ(test, knock(test, 1, 2), RMP_REJECT_RETRY);
		break;
	case REMOVED:
		go_live(test, peer, 1);
		KUNIT_EXPECT_EQ(test, rmp_peer_del("b"), 0);
		break;
	default:
		break;
	}
	world_settle(test);
	return peer;
}

/* The gate is open: who knocked goes on. */
static void leave(struct kunit *test)
{
	if (knocker.task)
		caller_end(test, &knocker);
	knocker.task = NULL;
	world_settle(test);
}

static void lose_channel(struct rmp_peer *peer)
{
	struct rmp_session *s = session_of(peer);

	if (!s)
		return;
	if (s->ctl.started)
		s->ctl.ops->broken(&s->ctl);
	rmp_session_put(s);
}

static void lose_qp(struct rmp_peer *peer)
{
	struct rmp_rail *rail = NULL;

	mutex_lock(&peer->lock);
	if (peer->session)
		rail = peer->session->rails[0];
	if (rail && rail->conns[0])
		rmp_peer_qp_failed(rail, rail->conns[0]);
	mutex_unlock(&peer->lock);
}

static int say_small(struct kunit *test, struct rmp_peer *peer, u8 type)
{
	struct rmp_msg msg = { .type = type };

	if (type == RMP_MSG_PROBE_ACK)
		msg.probe.id = 1;
	return say(test, peer, &msg);
}

/* Returns what became of one who knocked, or 0. */
static int happen(struct kunit *test, struct rmp_peer *peer, enum event event)
{
	switch (event) {
	case KNOCK_SAME:
		return knock(test, 1, 1);
	case KNOCK_NEW:
		return knock(test, 1, 2);
	case KNOCK_GREATER:
		return knock(test, 1, HERE + 1);
	case KNOCK_STRANGER:
		return knock(test, 9, 9);
	case HELLO:
		say_hello(test, peer, 1);
		break;
	case HELLO_OTHER:
		say_hello(test, peer, 2);
		break;
	case DEVICES:
		say_devices(test, peer, 1);
		break;
	case TOKENS:
		say_tokens(test, peer, 0, 2, 0);
		break;
	case PROBE:
		say_small(test, peer, RMP_MSG_PROBE);
		break;
	case ANSWER:
		say_small(test, peer, RMP_MSG_PROBE_ACK);
		break;
	case BYE:
		say_small(test, peer, RMP_MSG_BYE);
		break;
	case CHANNEL_LOST:
		lose_channel(peer);
		break;
	case QP_LOST:
		lose_qp(peer);
		break;
	case WANTED:
		want(test, peer);
		break;
	case UNWANTED:
		if (atomic_read(&peer->users))
			want_no_more(peer);
		break;
	case GATE_OPENS:
		let_go(test, 0, 0);
		leave(test);
		break;
	case GATE_FAILS:
		world.result = -ECONNREFUSED;
		open_gate();
		leave(test);
		world.result = 0;
		break;
	case DEVICE_GONE:
		if (world.dev[0])
			device_go(test, 0);
		break;
	case OTHER_DEVICE_GONE:
		if (world.dev[1])
			device_go(test, 1);
		break;
	case DEVICE_CHANGED:
		if (world.dev[0])
			rmp_peer_device_changed(world.dev[0]);
		break;
	case DELETED:
		rmp_peer_del("b");
		break;
	case SECOND:
		world_advance_ms(test, 1100);
		break;
	case TWENTY_SECONDS:
		world_advance_ms(test, 20000);
		break;
	default:
		break;
	}
	world_settle(test);
	return 0;
}

static char letter(struct rmp_peer *peer)
{
	static const char letters[] = "ICLRBX";

	return peer->removed ? 'X' : letters[peer->state];
}

static char answer(int result)
{
	switch (result) {
	case 0:
		return '.';
	case RMP_REJECT_CROSSED:
		return 'c';
	case RMP_REJECT_RETRY:
		return 'r';
	case RMP_REJECT_NOT_TRUSTED:
		return 'n';
	}
	return '?';
}

/* All events in one state, each in a world of its own. */
static void each_event(struct kunit *test, enum state state)
{
	struct rmp_peer *peer;
	enum event event;
	char to, want;
	int result;

	for (event = 0; event < NR_EVENTS; event++) {
		want = leads_to(state, event);
		if (want == '-')
			continue;
		peer = go(test, state);
		result = happen(test, peer, event);
		to = letter(peer);
		if (want != '*')
			KUNIT_EXPECT_EQ_MSG(test, to, want, "%s leads to %c",
					    event_names[event], to);
		if (event <= KNOCK_STRANGER)
			KUNIT_EXPECT_EQ_MSG(test, answer(result),
					    door[state][event], "%s: %d",
					    event_names[event], result);
		check_peer(test, peer);
		let_go(test, 0, 0);
		leave(test);
		world_end(test);
		world_begin(test);
	}
}

#define EACH_EVENT(name, state) \
static void name(struct kunit *test) \
{ \
	each_event(test, state); \
}

EACH_EVENT(test_idle, IDLE)
EACH_EVENT(test_backoff, BACKOFF)
EACH_EVENT(test_connecting, CONNECTING)
EACH_EVENT(test_incoming, INCOMING)
EACH_EVENT(test_mute, MUTE)
EACH_EVENT(test_greeted, GREETED)
EACH_EVENT(test_live, LIVE)
EACH_EVENT(test_ready, READY)
EACH_EVENT(test_passive, PASSIVE)
EACH_EVENT(test_probed, PROBED)
EACH_EVENT(test_removed, REMOVED)

/* ----------------------------------------------------- messages in each phase */

/* A message of each type that is well formed and means nothing here. */
static int say_type(struct kunit *test, struct rmp_peer *peer, u8 type)
{
	struct rmp_msg msg = { .type = type };
	struct rmp_msg_keys keys = { .segment = 77, .last = 1 };
	struct rmp_keys_writer w;
	void *buf;
	int ret;

	switch (type) {
	case RMP_MSG_HELLO:
		return say_hello(test, peer, 1);
	case RMP_MSG_DEVICES:
		return say_devices(test, peer, 1);
	case RMP_MSG_RAIL_TOKENS:
		return say_tokens(test, peer, 31, 1, 0);
	case RMP_MSG_KEYS:
		buf = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, buf);
		KUNIT_EXPECT_EQ(test, rmp_keys_begin(&w, buf, RMP_WIRE_MSG_MAX),
				0);
		ret = rmp_keys_end(&w, 1, &keys);
		ret = say_raw(test, peer, buf, ret);
		kfree(buf);
		return ret;
	case RMP_MSG_RAIL_REQUEST:
		msg.rail_request.nr_qps = 1;
		msg.rail_request.sender_dev = 31;
		break;
	case RMP_MSG_RAIL_LOST:
		msg.rail_lost.qpn = 77;
		break;
	case RMP_MSG_QP_FENCE:
		msg.qp_fence.qpn = 77;
		msg.qp_fence.peer_qpn = 77;
		break;
	case RMP_MSG_SEGMENT_OPEN:
		strscpy(msg.segment_open.name, "none", 5);
		break;
	case RMP_MSG_SEGMENT_INFO:
		msg.segment_info.segment = 77;
		break;
	case RMP_MSG_SEGMENT_CLOSE:
	case RMP_MSG_KEYS_CHANGED:
		msg.segment.segment = 77;
		break;
	case RMP_MSG_KEYS_GET:
		msg.keys_get.segment = 77;
		break;
	case RMP_MSG_REVOKE:
	case RMP_MSG_REVOKE_ACK:
		msg.revoke.segment = 77;
		break;
	case RMP_MSG_REKEY:
		msg.revoke.segment = 77;
		msg.revoke.region = 77;
		break;
	case RMP_MSG_WITHDRAWN:
		msg.revoke.segment = 77;
		break;
	}
	return say(test, peer, &msg);
}

static bool allowed(enum state state, u8 type)
{
	switch (type) {
	case RMP_MSG_HELLO:
		return state == MUTE;
	case RMP_MSG_DEVICES:
		return state != MUTE;
	case RMP_MSG_PROBE:
	case RMP_MSG_PROBE_ACK:
	case RMP_MSG_BYE:
		return true;
	case RMP_MSG_RAIL_REQUEST:
		return state == PASSIVE;
	case RMP_MSG_RAIL_TOKENS:
	case RMP_MSG_RAIL_WANTED:	/* one that asks */
		return state == LIVE;
	default:
		return state == LIVE || state == PASSIVE;
	}
}

/* What comes too early, or from the wrong side, ends the session; what is about
 * things that are not there does not.
 */
static void test_messages(struct kunit *test)
{
	static const enum state phases[] = { MUTE, GREETED, LIVE, PASSIVE };
	struct rmp_peer *peer;
	u32 i;
	u8 t;

	for (i = 0; i < ARRAY_SIZE(phases); i++) {
		for (t = RMP_MSG_HELLO; t <= RMP_MSG_RAIL_WANTED; t++) {
			bool ok = allowed(phases[i], t);

			if (t == RMP_MSG_CREDIT)	/* control.c's own */
				continue;
			if (t > RMP_MSG_RAIL_LOST && t < RMP_MSG_REKEY)
				continue;
			peer = go(test, phases[i]);
			KUNIT_EXPECT_EQ_MSG(test, say_type(test, peer, t),
					    ok ? 0 : -EPROTO,
					    "type %u in phase %u", t, i);
			KUNIT_EXPECT_EQ(test, !!peer->session,
					ok && t != RMP_MSG_BYE);
			check_peer(test, peer);
			world_end(test);
			world_begin(test);
		}
	}
}

/* -------------------------------------------------------------------- random */

/* What brings a peer further; nothing moves. */
static enum event leads_on(const struct rmp_peer *peer)
{
	const struct rmp_session *s = peer->session;

	if (peer->connecting)
		return GATE_OPENS;
	if (!s && !below(4))
		return KNOCK_SAME;
	if (!s)
		return atomic_read(&peer->users) ? SECOND : WANTED;
	if (!s->got_hello)
		return HELLO;
	if (!s->live)
		return DEVICES;
	return s->initiator ? TOKENS : PROBE;
}

static void test_random(struct kunit *test)
{
	struct rmp_peer *peer = go(test, IDLE);
	u32 n, seen = 0;
	u64 numbers;

	for (n = 0; n < 1500; n++) {
		enum event event = (enum event)below(NR_EVENTS);

		/* Often what leads on, so that it gets somewhere. */
		if (below(2))
			event = leads_on(peer);
		world.hold = !below(4);
		if (event == UNWANTED && !atomic_read(&peer->users))
			continue;
		happen(test, peer, event);
		check_peer(test, peer);
		seen |= BIT(peer->state);
		if (!world.dev[0])
			device_come(0);
		if (!world.dev[1])
			device_come(1);
		if (peer->removed) {
			numbers = suite_state;
			world_end(test);
			world_begin(test);
			suite_state = numbers;
			peer = go(test, IDLE);
		}
		forget_sent();
	}
	/* All but CLOSING, which is never at rest. */
	KUNIT_EXPECT_EQ(test, seen | BIT(RMPOOL_PEER_CLOSING), 0x3f);
}

static struct kunit_case states_cases[] = {
	KUNIT_CASE(test_idle),
	KUNIT_CASE(test_backoff),
	KUNIT_CASE(test_connecting),
	KUNIT_CASE(test_incoming),
	KUNIT_CASE(test_mute),
	KUNIT_CASE(test_greeted),
	KUNIT_CASE(test_live),
	KUNIT_CASE(test_ready),
	KUNIT_CASE(test_passive),
	KUNIT_CASE(test_probed),
	KUNIT_CASE(test_removed),
	KUNIT_CASE(test_messages),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite states_suite = {
	.name = "rmp_peer_states",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = states_cases,
};

kunit_test_suites(&states_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's peers: events and states");
MODULE_LICENSE("GPL");
