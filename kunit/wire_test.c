// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/wire.c: layouts as docs/wire.md tells them, round trips, and
 * hostile input. There is one form only for every content, so whatever the
 * decoder takes must give the same bytes when it is encoded again: that, and
 * that the output is untouched when it refuses, is checked for all input.
 */
#include "suite.h"
#include "wire.c"

#define HEADER		16
#define RUNS		48
#define RUN		52
#define RANDOM_ROUNDS	many(5000, 300000)

static const u8 types[] = {
	RMP_MSG_HELLO, RMP_MSG_DEVICES, RMP_MSG_RAIL_REQUEST,
	RMP_MSG_RAIL_TOKENS, RMP_MSG_SEGMENT_OPEN, RMP_MSG_SEGMENT_INFO,
	RMP_MSG_SEGMENT_CLOSE, RMP_MSG_KEYS_GET, RMP_MSG_KEYS,
	RMP_MSG_KEYS_CHANGED, RMP_MSG_REVOKE, RMP_MSG_REVOKE_ACK,
	RMP_MSG_PROBE, RMP_MSG_PROBE_ACK, RMP_MSG_CREDIT, RMP_MSG_BYE,
	RMP_MSG_RAIL_LOST, RMP_MSG_QP_FENCE, RMP_MSG_QP_FENCED, RMP_MSG_REKEY,
	RMP_MSG_WITHDRAWN, RMP_MSG_RAIL_WANTED,
};

#define NR_TYPES	ARRAY_SIZE(types)

static void random_text(char *text, size_t size)
{
	size_t len = below((u32)size);
	size_t i;

	memset(text, 0, size);
	for (i = 0; i < len; i++)
		text[i] = (char)('!' + below('~' - '!' + 1));
}

static struct rmp_wire_cursor random_cursor(void)
{
	return (struct rmp_wire_cursor){
		.region = next_random() | 1,
		.device = below(RMP_WIRE_DEVICES_MAX),
		.chunk = below(0x80000000U),
	};
}

static struct rmp_wire_range random_range(void)
{
	struct rmp_wire_range range = RMP_RANGE_NONE;
	u32 nr = 1 + below(3);

	while (nr--) {
		u64 at = next_random();

		rmp_range_add(&range, at, at);
	}
	return range;
}

/* A well-formed message of any type but KEYS. */
static void random_msg(struct rmp_msg *msg, u8 type)
{
	u32 i;

	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->seq = (u32)next_random();
	msg->credits = (u8)below(256);
	switch (type) {
	case RMP_MSG_HELLO:
		random_bytes(msg->hello.uuid, sizeof(msg->hello.uuid));
		random_text(msg->hello.name, sizeof(msg->hello.name));
		random_text(msg->hello.endpoint, sizeof(msg->hello.endpoint));
		msg->hello.features = next_random();
		break;
	case RMP_MSG_DEVICES:
		msg->devices.nr = below(RMP_WIRE_DEVICES_MAX + 1);
		for (i = 0; i < msg->devices.nr; i++) {
			struct rmp_wire_device *dev = &msg->devices.dev[i];

			dev->index = (u8)(RMP_WIRE_DEVICES_MAX - 1 - i);
			dev->mtu = (u8)(1 + below(5));
			dev->family = below(2) ? 4 : 6;
			dev->read_limit = (u8)below(256);
			dev->speed_mbps = (u32)next_random();
			random_bytes(dev->addr, dev->family == 4 ? 4 : 16);
		}
		break;
	case RMP_MSG_RAIL_REQUEST:
		msg->rail_request.rail = (u8)below(32);
		msg->rail_request.sender_dev = (u8)below(32);
		msg->rail_request.receiver_dev = (u8)below(32);
		msg->rail_request.nr_qps = (u8)(1 + below(16));
		break;
	case RMP_MSG_RAIL_TOKENS:
		msg->rail_tokens.rail = (u8)below(32);
		msg->rail_tokens.status = below(4) ? 0 : (u8)(1 + below(11));
		if (!msg->rail_tokens.status)
			msg->rail_tokens.nr = (u8)(1 + below(16));
		random_bytes(msg->rail_tokens.token,
			     msg->rail_tokens.nr * (size_t)RMP_WIRE_TOKEN);
		break;
	case RMP_MSG_RAIL_WANTED:
		msg->rail_wanted.sender_dev = (u8)below(32);
		msg->rail_wanted.receiver_dev = (u8)below(32);
		msg->rail_wanted.none = (u8)below(2);
		break;
	case RMP_MSG_RAIL_LOST:
		msg->rail_lost.rail = (u8)below(32);
		msg->rail_lost.qp = (u8)below(16);
		msg->rail_lost.qpn = (u32)next_random() | 1;
		break;
	case RMP_MSG_QP_FENCE:
		msg->qp_fence.rail = (u8)below(32);
		msg->qp_fence.qp = (u8)below(16);
		msg->qp_fence.id = (u32)next_random();
		msg->qp_fence.qpn = (u32)next_random() | 1;
		msg->qp_fence.peer_qpn = (u32)next_random() | 1;
		break;
	case RMP_MSG_QP_FENCED:
		msg->qp_fenced.id = (u32)next_random();
		break;
	case RMP_MSG_SEGMENT_OPEN:
		msg->segment_open.cookie = (u32)next_random();
		random_text(msg->segment_open.name,
			    sizeof(msg->segment_open.name));
		break;
	case RMP_MSG_SEGMENT_INFO:
		msg->segment_info.cookie = (u32)next_random();
		msg->segment_info.status = below(2) ? 0 : below(64);
		msg->segment_info.segment = (u32)next_random() | 1;
		msg->segment_info.nr_regions = (u32)next_random();
		msg->segment_info.generation = next_random();
		msg->segment_info.size = next_random();
		break;
	case RMP_MSG_KEYS_CHANGED:
		msg->segment.range = random_range();
		msg->segment.generation = next_random();
		msg->segment.segment = (u32)next_random() | 1;
		break;
	case RMP_MSG_SEGMENT_CLOSE:
		msg->segment.segment = (u32)next_random() | 1;
		break;
	case RMP_MSG_KEYS_GET:
		msg->keys_get.segment = (u32)next_random() | 1;
		if (below(2))
			msg->keys_get.from = random_cursor();
		msg->keys_get.to = below(2) ? ~0ULL : msg->keys_get.from.region;
		break;
	case RMP_MSG_REVOKE:
	case RMP_MSG_REVOKE_ACK:
		msg->revoke.id = (u32)next_random();
		msg->revoke.segment = (u32)next_random() | 1;
		msg->revoke.region = next_random();
		break;
	case RMP_MSG_REKEY:
	case RMP_MSG_WITHDRAWN:
		msg->revoke.id = (u32)next_random();
		msg->revoke.segment = (u32)next_random() | 1;
		msg->revoke.region = type == RMP_MSG_REKEY ? next_random() | 1 : 0;
		break;
	case RMP_MSG_PROBE:
	case RMP_MSG_PROBE_ACK:
		msg->probe.id = next_random();
		break;
	}
}

static struct rmp_wire_keys random_run(void)
{
	return (struct rmp_wire_keys){
		.region = next_random(),
		.offset = next_random(),
		.length = next_random(),
		.iova = next_random(),
		.iova_base = next_random(),
		.access = below(4) << 1,
		.chunk_shift = (u8)(12 + below(29)),
		.device = (u8)below(RMP_WIRE_DEVICES_MAX),
		.first = below(0x80000000U),
	};
}

/* A KEYS message with up to @most runs; returns its length. */
static int random_keys(struct kunit *test, u8 *buf, size_t size, u32 most)
{
	struct rmp_keys_writer w;
	struct rmp_msg_keys keys = {
		.segment = (u32)next_random() | 1,
		.generation = next_random(),
	};
	u32 nr_runs = 1 + below(most);
	u32 room, nr;

	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, size), 0);
	while (nr_runs--) {
		struct rmp_wire_keys run = random_run();

		nr = below(4) ? 1 + below(40) : 0;
		if (!nr)
			run.first = 0;
		room = rmp_keys_open(&w, &run);
		if (!room)
			break;
		while (nr-- && room--)
			rmp_keys_add(&w, (u32)next_random());
	}
	keys.last = (u8)below(2);
	if (!keys.last)
		keys.next = random_cursor();
	return rmp_keys_end(&w, (u32)next_random(), &keys);
}

static int random_encoded(struct kunit *test, u8 *buf, size_t size, u8 type)
{
	struct rmp_msg msg;
	int len;

	if (type == RMP_MSG_KEYS)
		return random_keys(test, buf, size, 12);
	random_msg(&msg, type);
	len = rmp_wire_encode(buf, size, &msg);
	KUNIT_ASSERT_TRUE(test, len >= HEADER);
	return len;
}

/* Builds a decoded message anew. */
static int encode_again(struct kunit *test, u8 *again, size_t size, const u8 *buf, size_t len,
			const struct rmp_msg *msg)
{
	struct rmp_keys_writer w;
	struct rmp_wire_keys run;
	size_t pos = 0;
	u32 runs = 0;
	int ret;
	u32 i;

	if (msg->type != RMP_MSG_KEYS)
		return rmp_wire_encode(again, size, msg);
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, again, size), 0);
	while ((ret = rmp_keys_next(buf, len, &pos, &run)) == 1) {
		runs++;
		/* What was read fits. */
		KUNIT_ASSERT_GE(test, rmp_keys_open(&w, &run), run.nr);
		for (i = 0; i < run.nr; i++)
			rmp_keys_add(&w, rmp_keys_rkey(&run, i));
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_ASSERT_EQ(test, pos, len);
	KUNIT_ASSERT_EQ(test, runs, msg->keys.nr_runs);
	ret = rmp_keys_end(&w, msg->seq, &msg->keys);
	if (ret > 0)
		rmp_wire_set_credits(again, msg->credits);
	return ret;
}

/*
 * Decodes from memory of exactly the right size, so that the sanitizer sees
 * each byte too many, and checks what holds for any input.
 */
static int decode_checked(struct kunit *test, const u8 *buf, size_t len)
{
	static u8 again[RMP_WIRE_MSG_MAX];
	u8 *exact = kmalloc(len ? len : 1, GFP_KERNEL);
	struct rmp_msg msg, untouched;
	int ret, len_again;

	KUNIT_ASSERT_NOT_NULL(test, exact);
	if (len)
		memcpy(exact, buf, len);
	memset(&msg, 0xa5, sizeof(msg));
	memset(&untouched, 0xa5, sizeof(untouched));
	ret = rmp_wire_decode(exact, len, &msg);
	switch (ret) {
	case 0:
		len_again = encode_again(test, again, sizeof(again), exact, len, &msg);
		KUNIT_ASSERT_EQ(test, len_again, len);
		ASSERT_SAME(test, again, exact, len);
		break;
	case -ENOMSG:
		KUNIT_ASSERT_EQ(test, msg.type, exact[5]);
		KUNIT_ASSERT_EQ(test, msg.credits, exact[12]);
		untouched.type = msg.type;
		untouched.credits = msg.credits;
		untouched.seq = msg.seq;
		ASSERT_SAME(test, &msg, &untouched, sizeof(msg));
		break;
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EBADMSG:
		ASSERT_SAME(test, &msg, &untouched, sizeof(msg));
		break;
	default:
		KUNIT_FAIL(test, "decoding returned %d", ret);
	}
	kfree(exact);
	return ret;
}

static void set_length(u8 *buf, size_t len)
{
	buf[6] = (u8)len;
	buf[7] = (u8)(len >> 8);
}

static void test_round_trip(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	struct rmp_msg in, out;
	size_t t;
	int i, len;

	for (t = 0; t < NR_TYPES; t++) {
		if (types[t] == RMP_MSG_KEYS)
			continue;
		for (i = 0; i < 200; i++) {
			random_msg(&in, types[t]);
			len = rmp_wire_encode(buf, sizeof(buf), &in);
			KUNIT_ASSERT_TRUE(test, len >= HEADER);
			KUNIT_ASSERT_EQ(test, rmp_wire_decode(buf, (size_t)len, &out), 0);
			ASSERT_SAME(test, &in, &out, sizeof(in));
			KUNIT_ASSERT_EQ(test, decode_checked(test, buf, (size_t)len), 0);
		}
	}
}

static void test_header_layout(struct kunit *test)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_PROBE,
		.credits = 0x12,
		.seq = 0x3456789a,
		.probe.id = 0x1122334455667788,
	};
	u8 buf[64];

	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 8);
	ASSERT_SAME(test, buf, "RMPL", 4);
	ASSERT_AT(test, buf, 4, 1, RMP_WIRE_VERSION);
	ASSERT_AT(test, buf, 5, 1, RMP_MSG_PROBE);
	ASSERT_AT(test, buf, 6, 2, HEADER + 8);
	ASSERT_AT(test, buf, 8, 4, 0x3456789a);
	ASSERT_AT(test, buf, 12, 1, 0x12);
	ASSERT_AT(test, buf, 13, 3, 0);
	ASSERT_AT(test, buf, 16, 8, 0x1122334455667788);
	rmp_wire_set_credits(buf, 0x77);
	ASSERT_AT(test, buf, 8, 8, 0x000000773456789a);
	KUNIT_ASSERT_EQ(test, rmp_wire_decode(buf, HEADER + 8, &msg), 0);
	KUNIT_ASSERT_EQ(test, msg.credits, 0x77);
}

static void test_hello_layout(struct kunit *test)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_HELLO,
		.hello = {
			.uuid = { 1, [15] = 16 },
			.name = "node",
			.endpoint = "v1:10.0.0.1:13579",
			.features = 0x8000000000000001,
		},
	};
	u8 buf[512];

	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 168);
	ASSERT_AT(test, buf, 16, 1, 1);
	ASSERT_AT(test, buf, 31, 1, 16);
	ASSERT_AT(test, buf, 32, 8, 0x8000000000000001);
	KUNIT_ASSERT_STREQ(test, (char *)buf + 40, "node");
	KUNIT_ASSERT_STREQ(test, (char *)buf + 104, "v1:10.0.0.1:13579");
}

static void test_devices_layout(struct kunit *test)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_DEVICES,
		.devices = {
			.nr = 2,
			.dev[0] = { .index = 3, .mtu = 5, .family = 4,
				    .read_limit = 16, .speed_mbps = 100000,
				    .addr = { 10, 0, 0, 1 } },
			.dev[1] = { .index = 1, .mtu = 3, .family = 6,
				    .read_limit = 1, .speed_mbps = 7,
				    .addr = { 0xfe, 0x80, [15] = 9 } },
		},
	};
	u8 buf[512];

	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg),
			HEADER + 4 + 2 * 24);
	ASSERT_AT(test, buf, 16, 4, 2);
	ASSERT_AT(test, buf, 20, 4, 0x10040503);
	ASSERT_AT(test, buf, 24, 4, 100000);
	ASSERT_AT(test, buf, 28, 4, 0x0100000a);
	ASSERT_AT(test, buf, 32, 8, 0);
	ASSERT_AT(test, buf, 44, 4, 0x01060301);
	ASSERT_AT(test, buf, 48, 4, 7);
	ASSERT_AT(test, buf, 52, 2, 0x80fe);
	ASSERT_AT(test, buf, 67, 1, 9);
}

static void test_small_layouts(struct kunit *test)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_RAIL_REQUEST,
		.rail_request = { .rail = 1, .sender_dev = 2, .receiver_dev = 3,
				  .nr_qps = 4 },
	};
	u8 buf[512];

	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 4);
	ASSERT_AT(test, buf, 16, 4, 0x04030201);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_RAIL_TOKENS;
	msg.rail_tokens.rail = 31;
	msg.rail_tokens.nr = 2;
	memset(msg.rail_tokens.token, 0xee, 2UL * RMP_WIRE_TOKEN);
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 36);
	ASSERT_AT(test, buf, 16, 4, 0x0002001f);
	ASSERT_AT(test, buf, 20, 8, 0xeeeeeeeeeeeeeeee);
	ASSERT_AT(test, buf, 44, 8, 0xeeeeeeeeeeeeeeee);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_RAIL_WANTED;
	msg.rail_wanted.sender_dev = 31;
	msg.rail_wanted.receiver_dev = 7;
	msg.rail_wanted.none = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 4);
	ASSERT_AT(test, buf, 5, 1, 22);
	ASSERT_AT(test, buf, 16, 4, 0x0001071f);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_RAIL_LOST;
	msg.rail_lost.rail = 31;
	msg.rail_lost.qp = 15;
	msg.rail_lost.qpn = 0x123456;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 8);
	ASSERT_AT(test, buf, 16, 8, 0x0012345600000f1f);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_QP_FENCE;
	msg.qp_fence.rail = 31;
	msg.qp_fence.qp = 15;
	msg.qp_fence.id = 0x01020304;
	msg.qp_fence.qpn = 0x123456;
	msg.qp_fence.peer_qpn = 0x654321;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 16);
	ASSERT_AT(test, buf, 16, 8, 0x0102030400000f1f);
	ASSERT_AT(test, buf, 24, 8, 0x0065432100123456);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_QP_FENCED;
	msg.qp_fenced.id = 0x01020304;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 4);
	ASSERT_AT(test, buf, 16, 4, 0x01020304);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_SEGMENT_OPEN;
	msg.segment_open.cookie = 0x01020304;
	memcpy(msg.segment_open.name, "kv", 2);
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 68);
	ASSERT_AT(test, buf, 16, 4, 0x01020304);
	ASSERT_AT(test, buf, 20, 8, 0x766b);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_SEGMENT_INFO;
	msg.segment_info = (struct rmp_msg_segment_info){
		.cookie = 1, .status = 2, .segment = 3, .nr_regions = 4,
		.generation = 5, .size = 6,
	};
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 32);
	ASSERT_AT(test, buf, 16, 8, 0x0000000200000001);
	ASSERT_AT(test, buf, 24, 8, 0x0000000400000003);
	ASSERT_AT(test, buf, 32, 8, 5);
	ASSERT_AT(test, buf, 40, 8, 6);

	memset(&msg, 0, sizeof(msg));
	msg.segment.segment = 0xabcd;
	msg.segment.generation = 9;
	msg.type = RMP_MSG_SEGMENT_CLOSE;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 4);
	ASSERT_AT(test, buf, 16, 4, 0xabcd);
	msg.type = RMP_MSG_KEYS_CHANGED;
	msg.segment.range = (struct rmp_wire_range){ 0x10, ~0ULL };
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 28);
	ASSERT_AT(test, buf, 16, 4, 0xabcd);
	ASSERT_AT(test, buf, 20, 8, 9);
	ASSERT_AT(test, buf, 28, 8, 0x10);
	ASSERT_AT(test, buf, 36, 8, 0xffffffffffffffff);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_KEYS_GET;
	msg.keys_get.segment = 8;
	msg.keys_get.from = (struct rmp_wire_cursor){ 7, 6, 5 };
	msg.keys_get.to = 7;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 28);
	ASSERT_AT(test, buf, 16, 4, 8);
	ASSERT_AT(test, buf, 20, 8, 7);
	ASSERT_AT(test, buf, 28, 8, 0x0000000500000006);
	ASSERT_AT(test, buf, 36, 8, 7);

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_REVOKE;
	msg.revoke = (struct rmp_msg_revoke){ 1, 2, 3 };
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 16);
	ASSERT_AT(test, buf, 16, 8, 0x0000000200000001);
	ASSERT_AT(test, buf, 24, 8, 3);
	msg.type = RMP_MSG_REKEY;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 16);
	ASSERT_AT(test, buf, 5, 1, 20);
	ASSERT_AT(test, buf, 24, 8, 3);
	msg.type = RMP_MSG_WITHDRAWN;
	msg.revoke.region = 0;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 16);
	ASSERT_AT(test, buf, 5, 1, 21);

	msg.type = RMP_MSG_CREDIT;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER);
}

static void test_keys_layout(struct kunit *test)
{
	struct rmp_wire_keys run = {
		.region = 1, .offset = 2, .length = 3, .iova = 4,
		.iova_base = 5, .access = RMPOOL_ACCESS_REMOTE_READ,
		.chunk_shift = 21, .device = 9, .first = 0x01020304,
		.nr = 12345,
	};
	struct rmp_msg_keys keys = {
		.segment = 0x55, .generation = 0x66, .nr_runs = 999,
		.next = { 0x77, 8, 0x99 },
	};
	struct rmp_keys_writer w;
	struct rmp_wire_keys read;
	struct rmp_msg msg;
	static u8 buf[RMP_WIRE_MSG_MAX];
	size_t pos = 0;

	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, sizeof(buf)), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run),
			(RMP_WIRE_MSG_MAX - RUNS - RUN) / 4);
	rmp_keys_add(&w, 0xdeadbeef);
	rmp_keys_add(&w, 0x11223344);
	run.first = 0;
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run),
			(RMP_WIRE_MSG_MAX - RUNS - 2 * RUN - 8) / 4);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0x42, &keys), RUNS + 2 * RUN + 8);

	ASSERT_AT(test, buf, 5, 1, RMP_MSG_KEYS);
	ASSERT_AT(test, buf, 6, 2, RUNS + 2 * RUN + 8);
	ASSERT_AT(test, buf, 8, 4, 0x42);
	ASSERT_AT(test, buf, 16, 4, 0x55);
	ASSERT_AT(test, buf, 20, 4, 2);
	ASSERT_AT(test, buf, 24, 8, 0x66);
	ASSERT_AT(test, buf, 32, 8, 0x77);
	ASSERT_AT(test, buf, 40, 8, 0x0000009900000008);
	ASSERT_AT(test, buf, 48, 8, 1);
	ASSERT_AT(test, buf, 56, 8, 2);
	ASSERT_AT(test, buf, 64, 8, 3);
	ASSERT_AT(test, buf, 72, 8, 4);
	ASSERT_AT(test, buf, 80, 8, 5);
	ASSERT_AT(test, buf, 88, 4, RMPOOL_ACCESS_REMOTE_READ);
	ASSERT_AT(test, buf, 92, 4, 0x01020304);
	ASSERT_AT(test, buf, 96, 4, 0x09150002);
	ASSERT_AT(test, buf, 100, 8, 0x11223344deadbeef);

	KUNIT_ASSERT_EQ(test, rmp_wire_decode(buf, RUNS + 2 * RUN + 8, &msg), 0);
	KUNIT_ASSERT_EQ(test, msg.keys.nr_runs, 2);
	KUNIT_ASSERT_EQ(test, msg.keys.last, 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_next(buf, RUNS + 2 * RUN + 8, &pos, &read), 1);
	KUNIT_ASSERT_EQ(test, read.nr, 2);
	KUNIT_ASSERT_EQ(test, read.first, 0x01020304);
	KUNIT_ASSERT_EQ(test, rmp_keys_rkey(&read, 0), 0xdeadbeef);
	KUNIT_ASSERT_EQ(test, rmp_keys_rkey(&read, 1), 0x11223344);
	KUNIT_ASSERT_EQ(test, rmp_keys_next(buf, RUNS + 2 * RUN + 8, &pos, &read), 1);
	KUNIT_ASSERT_EQ(test, read.nr, 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_next(buf, RUNS + 2 * RUN + 8, &pos, &read), 0);
}

static void test_keys_full(struct kunit *test)
{
	struct rmp_wire_keys run = { .chunk_shift = 12 };
	struct rmp_msg_keys keys = { .segment = 1, .last = 1 };
	struct rmp_keys_writer w;
	static u8 buf[RMP_WIRE_MSG_MAX + 100];
	u32 room;
	u32 n;

	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, RUNS + RUN + 3), -EMSGSIZE);
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, RUNS + RUN + 4), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run), 1);
	rmp_keys_add(&w, 1);
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0, &keys), RUNS + RUN + 4);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RUNS + RUN + 4), 0);

	/* A buffer that is larger than a message is not used up. */
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, sizeof(buf)), 0);
	room = rmp_keys_open(&w, &run);
	KUNIT_ASSERT_EQ(test, room, (RMP_WIRE_MSG_MAX - RUNS - RUN) / 4);
	for (n = 0; n < room; n++)
		rmp_keys_add(&w, n);
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0, &keys), RUNS + RUN + 4 * room);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RUNS + RUN + 4 * room), 0);

	/* One key too many is an error, not a key less. */
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, RUNS + RUN + 4), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_open(&w, &run), 1);
	rmp_keys_add(&w, 1);
	rmp_keys_add(&w, 2);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0, &keys), -EBADMSG);

	/* Keys without a run. */
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, sizeof(buf)), 0);
	rmp_keys_add(&w, 1);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0, &keys), -EBADMSG);

	/* No region at all. */
	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, sizeof(buf)), 0);
	KUNIT_ASSERT_EQ(test, rmp_keys_end(&w, 0, &keys), RUNS);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RUNS), 0);
}

static int keys_with(struct kunit *test, const struct rmp_wire_keys *run,
		     u32 nr, const struct rmp_msg_keys *keys)
{
	struct rmp_keys_writer w;
	static u8 buf[RMP_WIRE_MSG_MAX];

	KUNIT_ASSERT_EQ(test, rmp_keys_begin(&w, buf, sizeof(buf)), 0);
	if (run) {
		KUNIT_ASSERT_TRUE(test, rmp_keys_open(&w, run) >= nr);
		while (nr--)
			rmp_keys_add(&w, nr);
	}
	return rmp_keys_end(&w, 0, keys);
}

static void test_keys_refused(struct kunit *test)
{
	const struct rmp_wire_keys good = { .chunk_shift = 12, .first = 1 };
	const struct rmp_msg_keys last = { .segment = 1, .last = 1 };
	struct rmp_wire_keys run;
	struct rmp_msg_keys keys;

	KUNIT_ASSERT_TRUE(test, keys_with(test, &good, 1, &last) > 0);

#define BAD_RUN(field, value) do { \
	run = good; \
	run.field = value; \
	KUNIT_ASSERT_EQ(test, keys_with(test, &run, 1, &last), -EBADMSG); \
} while (0)
	BAD_RUN(chunk_shift, 11);
	BAD_RUN(chunk_shift, 41);
	BAD_RUN(device, 32);
	BAD_RUN(first, 0x80000000);
	BAD_RUN(access, RMPOOL_ACCESS_LOCAL_WRITE);
	BAD_RUN(access, 16);
	/* What is stale has no keys, and is told once. */
	BAD_RUN(access, RMP_WIRE_STALE);
	run = (struct rmp_wire_keys){ .chunk_shift = 12, .access = RMP_WIRE_STALE };
	KUNIT_ASSERT_TRUE(test, keys_with(test, &run, 0, &last) > 0);
	run.device = 1;
	KUNIT_ASSERT_EQ(test, keys_with(test, &run, 0, &last), -EBADMSG);
	/* A run without keys has no first one. */
	KUNIT_ASSERT_EQ(test, keys_with(test, &good, 0, &last), -EBADMSG);

#define BAD_KEYS(...) do { \
	keys = (struct rmp_msg_keys){ __VA_ARGS__ }; \
	KUNIT_ASSERT_EQ(test, keys_with(test, &good, 1, &keys), -EBADMSG); \
} while (0)
	BAD_KEYS(.segment = 0, .last = 1);
	BAD_KEYS(.segment = 1, .last = 2);
	BAD_KEYS(.segment = 1, .last = 0);
	BAD_KEYS(.segment = 1, .last = 1, .next = { 1, 0, 0 });
	BAD_KEYS(.segment = 1, .last = 0, .next = { 1, 32, 0 });
	BAD_KEYS(.segment = 1, .last = 0, .next = { 1, 0, 0x80000000 });
	/* More to come, but nothing in this one: it would go on for ever. */
	keys = (struct rmp_msg_keys){ .segment = 1, .next = { 1, 0, 0 } };
	KUNIT_ASSERT_EQ(test, keys_with(test, NULL, 0, &keys), -EBADMSG);
}

/* With a device, if it is about devices. */
static void random_full(struct rmp_msg *msg, u8 type)
{
	do {
		random_msg(msg, type);
	} while (type == RMP_MSG_DEVICES && !msg->devices.nr);
}

/* Refused, and nothing is written. */
static void encode_bad(struct kunit *test, const struct rmp_msg *msg, const char *what)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	static u8 before[RMP_WIRE_MSG_MAX];
	int ret;

	memset(buf, 0x5a, sizeof(buf));
	memset(before, 0x5a, sizeof(before));
	ret = rmp_wire_encode(buf, sizeof(buf), msg);
	if (ret != -EBADMSG)
		KUNIT_FAIL(test, "%s: %d", what, ret);
	ASSERT_SAME(test, buf, before, sizeof(buf));
}

static void test_encode_refused(struct kunit *test)
{
	struct rmp_msg msg;
	static u8 buf[RMP_WIRE_MSG_MAX];

#define BAD(mtype, field, value) do { \
	random_full(&msg, mtype); \
	msg.field = value; \
	encode_bad(test, &msg, #field " " #value); \
} while (0)
	BAD(RMP_MSG_HELLO, type, 0);
	BAD(RMP_MSG_HELLO, type, 99);
	BAD(RMP_MSG_HELLO, type, RMP_MSG_KEYS);
	BAD(RMP_MSG_HELLO, hello.name[63], 'x');
	BAD(RMP_MSG_HELLO, hello.name[0], ' ');
	BAD(RMP_MSG_HELLO, hello.name[0], '\n');
	BAD(RMP_MSG_HELLO, hello.name[0], '\x1b');
	BAD(RMP_MSG_HELLO, hello.name[0], '\x7f');
	BAD(RMP_MSG_HELLO, hello.name[0], (char)0xc3);
	BAD(RMP_MSG_HELLO, hello.endpoint[79], 'x');
	BAD(RMP_MSG_SEGMENT_OPEN, segment_open.name[63], 'x');
	BAD(RMP_MSG_DEVICES, devices.nr, 33);
	BAD(RMP_MSG_DEVICES, devices.nr, 0xffffffff);
	BAD(RMP_MSG_DEVICES, devices.dev[0].index, 32);
	BAD(RMP_MSG_DEVICES, devices.dev[0].mtu, 0);
	BAD(RMP_MSG_DEVICES, devices.dev[0].mtu, 6);
	BAD(RMP_MSG_DEVICES, devices.dev[0].family, 5);
	BAD(RMP_MSG_RAIL_REQUEST, rail_request.rail, 32);
	BAD(RMP_MSG_RAIL_REQUEST, rail_request.sender_dev, 32);
	BAD(RMP_MSG_RAIL_REQUEST, rail_request.receiver_dev, 32);
	BAD(RMP_MSG_RAIL_REQUEST, rail_request.nr_qps, 0);
	BAD(RMP_MSG_RAIL_REQUEST, rail_request.nr_qps, 17);
	BAD(RMP_MSG_RAIL_TOKENS, rail_tokens.rail, 32);
	BAD(RMP_MSG_RAIL_TOKENS, rail_tokens.status, 12);
	BAD(RMP_MSG_RAIL_TOKENS, rail_tokens.nr, 17);
	BAD(RMP_MSG_RAIL_WANTED, rail_wanted.sender_dev, 32);
	BAD(RMP_MSG_RAIL_WANTED, rail_wanted.receiver_dev, 32);
	BAD(RMP_MSG_RAIL_WANTED, rail_wanted.none, 2);
	BAD(RMP_MSG_RAIL_LOST, rail_lost.rail, 32);
	BAD(RMP_MSG_RAIL_LOST, rail_lost.qp, 16);
	BAD(RMP_MSG_RAIL_LOST, rail_lost.qpn, 0);
	BAD(RMP_MSG_QP_FENCE, qp_fence.rail, 32);
	BAD(RMP_MSG_QP_FENCE, qp_fence.qp, 16);
	BAD(RMP_MSG_QP_FENCE, qp_fence.qpn, 0);
	BAD(RMP_MSG_QP_FENCE, qp_fence.peer_qpn, 0);
	BAD(RMP_MSG_KEYS_GET, keys_get.segment, 0);
	BAD(RMP_MSG_KEYS_GET, keys_get.from.device, 32);
	BAD(RMP_MSG_KEYS_GET, keys_get.from.chunk, 0x80000000);
	BAD(RMP_MSG_KEYS_CHANGED, segment.segment, 0);
	BAD(RMP_MSG_KEYS_CHANGED, segment.range, ((struct rmp_wire_range){ 2, 1 }));
	BAD(RMP_MSG_KEYS_CHANGED, segment.range, RMP_RANGE_NONE);
	BAD(RMP_MSG_SEGMENT_CLOSE, segment.segment, 0);
	BAD(RMP_MSG_REVOKE, revoke.segment, 0);
	BAD(RMP_MSG_REVOKE_ACK, revoke.segment, 0);
	BAD(RMP_MSG_REKEY, revoke.segment, 0);
	BAD(RMP_MSG_REKEY, revoke.region, 0);
	BAD(RMP_MSG_WITHDRAWN, revoke.segment, 0);
	BAD(RMP_MSG_WITHDRAWN, revoke.region, 1);

	random_msg(&msg, RMP_MSG_SEGMENT_INFO);
	msg.segment_info.status = 0;
	msg.segment_info.segment = 0;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);
	msg.segment_info.status = RMPOOL_REASON_SEGMENT_UNKNOWN;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), HEADER + 32);

	/* Text behind the NUL. */
	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_HELLO;
	msg.hello.name[5] = 'x';
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);

	/* A refusal has no tokens, and no refusal has some. */
	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_RAIL_TOKENS;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);
	msg.rail_tokens.status = RMP_REJECT_RESOURCES;
	KUNIT_ASSERT_TRUE(test, rmp_wire_encode(buf, sizeof(buf), &msg) > 0);
	msg.rail_tokens.nr = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);

	/* The same device twice, and bytes behind an IPv4 address. */
	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_DEVICES;
	msg.devices.nr = 2;
	msg.devices.dev[0] = (struct rmp_wire_device){ 7, 5, 4, 1, 1, { 10 } };
	msg.devices.dev[1] = (struct rmp_wire_device){ 7, 5, 4, 1, 1, { 11 } };
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);
	msg.devices.dev[1].index = 8;
	KUNIT_ASSERT_TRUE(test, rmp_wire_encode(buf, sizeof(buf), &msg) > 0);
	msg.devices.dev[1].addr[4] = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_encode(buf, sizeof(buf), &msg), -EBADMSG);
}

static void test_encode_room(struct kunit *test)
{
	static u8 full[RMP_WIRE_MSG_MAX];
	struct rmp_msg msg;
	size_t t, size;
	u8 *exact;
	int len;

	for (t = 0; t < NR_TYPES; t++) {
		if (types[t] == RMP_MSG_KEYS)
			continue;
		random_msg(&msg, types[t]);
		len = rmp_wire_encode(full, sizeof(full), &msg);
		KUNIT_ASSERT_TRUE(test, len > 0);
		for (size = 0; size <= (size_t)len; size++) {
			exact = kmalloc(size ? size : 1, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, exact);
			KUNIT_ASSERT_EQ(test, rmp_wire_encode(exact, size, &msg),
					size < (size_t)len ? -EMSGSIZE : len);
			kfree(exact);
		}
	}
}

static void test_decode_refused(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX + 1];
	struct rmp_msg msg = { .type = RMP_MSG_PROBE, .seq = 5, .credits = 6 };
	size_t len;
	int i;

	len = (size_t)rmp_wire_encode(buf, sizeof(buf), &msg);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), 0);

	for (i = 0; i < 4; i++) {
		buf[i] ^= 0x20;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EPROTO);
		buf[i] ^= 0x20;
	}
	buf[4] = RMP_WIRE_VERSION + 1;
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EPROTONOSUPPORT);
	buf[4] = 0;
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EPROTONOSUPPORT);
	buf[4] = RMP_WIRE_VERSION;
	for (i = 13; i < 16; i++) {
		buf[i] = 1;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EBADMSG);
		buf[i] = 0;
	}

	/* The length does not fit what arrived, either way. */
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len + 1), -EBADMSG);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len - 1), -EBADMSG);
	set_length(buf, len + 1);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EBADMSG);
	/* Trailing bytes, well announced. */
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len + 1), -EBADMSG);
	set_length(buf, RMP_WIRE_MSG_MAX + 1);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RMP_WIRE_MSG_MAX + 1), -EBADMSG);

	/* Unknown types are named as such, whatever is in them, up to the limit. */
	buf[5] = 99;
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RMP_WIRE_MSG_MAX + 1), -EBADMSG);
	set_length(buf, RMP_WIRE_MSG_MAX);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, RMP_WIRE_MSG_MAX), -ENOMSG);
	set_length(buf, len);
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -ENOMSG);
	buf[5] = 0;
	KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -ENOMSG);
	buf[5] = 255;
	memset(&msg, 0, sizeof(msg));
	KUNIT_ASSERT_EQ(test, rmp_wire_decode(buf, len, &msg), -ENOMSG);
	KUNIT_ASSERT_EQ(test, msg.type, 255);
	KUNIT_ASSERT_EQ(test, msg.seq, 5);
	KUNIT_ASSERT_EQ(test, msg.credits, 6);
}

/* Ranges, as they grow and as they are told: to the last offset of all, but never none. */
static void test_ranges(struct kunit *test)
{
	/* Where the first and the last offset are in the message. */
	static const struct {
		u8 type, from, to;
	} told[] = {
		{ RMP_MSG_KEYS_CHANGED, 28, 36 },
		{ RMP_MSG_KEYS_GET, 20, 36 },
	};
	struct rmp_wire_range range = RMP_RANGE_NONE;
	static u8 buf[RMP_WIRE_MSG_MAX];
	struct rmp_msg msg;
	size_t i, len;

	KUNIT_ASSERT_FALSE(test, rmp_range_any(&range));
	rmp_range_add(&range, 7, 7);
	KUNIT_ASSERT_TRUE(test, rmp_range_any(&range));
	rmp_range_add(&range, 20, 29);
	rmp_range_add(&range, 21, 22);
	KUNIT_ASSERT_EQ(test, range.from, 7);
	KUNIT_ASSERT_EQ(test, range.to, 29);
	rmp_range_add(&range, 0, ~0ULL);
	KUNIT_ASSERT_EQ(test, range.from, RMP_RANGE_ALL.from);
	KUNIT_ASSERT_EQ(test, range.to, RMP_RANGE_ALL.to);
	range = RMP_RANGE_NONE;
	rmp_range_add(&range, ~0ULL, ~0ULL);
	KUNIT_ASSERT_TRUE(test, rmp_range_any(&range));
	range = RMP_RANGE_NONE;
	rmp_range_add(&range, 0, 0);
	KUNIT_ASSERT_TRUE(test, rmp_range_any(&range));

	for (i = 0; i < ARRAY_SIZE(told); i++) {
		random_msg(&msg, told[i].type);
		len = (size_t)rmp_wire_encode(buf, sizeof(buf), &msg);
		KUNIT_ASSERT_EQ(test, len, HEADER + 28);
		memset(buf + told[i].from, 0xff, 8);
		memset(buf + told[i].to, 0xff, 8);
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), 0);
		buf[told[i].to] = 0xfe;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EBADMSG);
		memset(buf + told[i].from, 0, 8);
		memset(buf + told[i].to, 0, 8);
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), 0);
		/* Numbers, not bytes: the last one counts most. */
		buf[told[i].from] = 1;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), -EBADMSG);
		buf[told[i].to + 7] = 1;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, len), 0);
	}
}

static void test_hostile_counts(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	int len, i;
	u32 n;

	len = random_encoded(test, buf, sizeof(buf), RMP_MSG_DEVICES);
	for (n = 0; n < 32; n++) {
		/* Never the count that is true. */
		u32 lie = 1U << n;

		if (number_at(buf + 16, 4) == lie)
			continue;
		for (i = 0; i < 4; i++)
			buf[16 + i] = (u8)(lie >> 8 * i);
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, (size_t)len), -EBADMSG);
		len = random_encoded(test, buf, sizeof(buf), RMP_MSG_DEVICES);
	}
	do
		len = random_encoded(test, buf, sizeof(buf), RMP_MSG_RAIL_TOKENS);
	while (buf[17]);
	for (n = 0; n < 256; n++) {
		u8 real = buf[18];

		buf[18] = (u8)n;
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, (size_t)len),
				n == real ? 0 : -EBADMSG);
		buf[18] = real;
	}
	len = random_keys(test, buf, sizeof(buf), 5);
	KUNIT_ASSERT_TRUE(test, len > 0);
	for (n = 0; n < 0x10000; n += n < 512 ? 1 : many(97, 1)) {
		u8 real[2] = { buf[20], buf[21] };

		buf[20] = (u8)n;
		buf[21] = (u8)(n >> 8);
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, (size_t)len),
				n == number_at(real, 2) ? 0 : -EBADMSG);
		memcpy(buf + 20, real, 2);
	}
	/* Keys of the last run that are not there, or more than told of. */
	do
		len = random_keys(test, buf, sizeof(buf), 1);
	while (!number_at(buf + 96, 2));
	for (n = 0; n < 0x10000; n += n < 512 ? 1 : many(97, 1)) {
		u8 real[2] = { buf[96], buf[97] };

		buf[96] = (u8)n;
		buf[97] = (u8)(n >> 8);
		KUNIT_ASSERT_EQ(test, decode_checked(test, buf, (size_t)len),
				n == number_at(real, 2) ? 0 : -EBADMSG);
		memcpy(buf + 96, real, 2);
	}
}

static void test_truncated(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	size_t t, cut;
	int len;

	for (t = 0; t < NR_TYPES; t++) {
		len = random_encoded(test, buf, sizeof(buf), types[t]);
		KUNIT_ASSERT_TRUE(test, len > 0);
		for (cut = 0; cut < (size_t)len; cut++) {
			set_length(buf, (size_t)len);
			KUNIT_ASSERT_EQ(test, decode_checked(test, buf, cut), -EBADMSG);
			/* The same with a header that admits it. */
			set_length(buf, cut);
			KUNIT_ASSERT_EQ(test, decode_checked(test, buf, cut), -EBADMSG);
		}
	}
}

static void test_flipped(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	size_t t, at;
	int len, bit;
	u8 byte;

	for (t = 0; t < NR_TYPES; t++) {
		len = random_encoded(test, buf, sizeof(buf), types[t]);
		KUNIT_ASSERT_TRUE(test, len > 0);
		for (at = 0; at < (size_t)len; at++) {
			byte = buf[at];
			for (bit = 0; bit < 8; bit++) {
				buf[at] = (u8)(byte ^ (1 << bit));
				decode_checked(test, buf, (size_t)len);
			}
			buf[at] = 0;
			decode_checked(test, buf, (size_t)len);
			buf[at] = 0xff;
			decode_checked(test, buf, (size_t)len);
			buf[at] = byte;
		}
	}
}

static void test_keys_next_alone(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	struct rmp_wire_keys run;
	size_t pos;
	int len, i, ret;

	/* On a message that was not decoded before it must be safe as well. */
	for (i = 0; i < (int)RANDOM_ROUNDS; i++) {
		size_t cut;
		u8 *exact;

		len = random_keys(test, buf, sizeof(buf), 4);
		KUNIT_ASSERT_TRUE(test, len > 0);
		buf[RUNS + below((u32)len - RUNS)] = (u8)next_random();
		cut = below((u32)len + 1);
		exact = kmalloc(cut ? cut : 1, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, exact);
		memcpy(exact, buf, cut);
		pos = 0;
		while ((ret = rmp_keys_next(exact, cut, &pos, &run)) == 1) {
			if (run.nr)
				rmp_keys_rkey(&run, run.nr - 1);
		}
		KUNIT_ASSERT_TRUE(test, ret == 0 || ret == -EBADMSG);
		kfree(exact);
	}
	pos = 0;
	KUNIT_ASSERT_EQ(test, rmp_keys_next(buf, 0, &pos, &run), -EBADMSG);
	pos = (size_t)-1;
	KUNIT_ASSERT_EQ(test, rmp_keys_next(buf, 100, &pos, &run), -EBADMSG);
}

/* Changes that keep a message plausible, then pure noise behind a header. */
static void test_random(struct kunit *test)
{
	static u8 buf[RMP_WIRE_MSG_MAX];
	u32 taken = 0;
	int i, n;

	for (i = 0; i < RANDOM_ROUNDS; i++) {
		u8 type = types[below(NR_TYPES)];
		size_t len = (size_t)random_encoded(test, buf, 1024, type);

		if (below(8) == 0) {
			len = HEADER + below(400);
			random_bytes(buf + HEADER, len - HEADER);
			set_length(buf, len);
		}
		for (n = (int)below(4); n; n--) {
			size_t at = below(2) ? below((u32)len) :
					       below(len < 56 ? (u32)len : 56);

			buf[at] = (u8)next_random();
		}
		if (below(4) == 0) {
			len = below((u32)len + 1);
			if (len >= HEADER && below(2))
				set_length(buf, len);
		}
		taken += decode_checked(test, buf, len) == 0;
	}
	kunit_info(test, "%u of %u messages were taken", taken,
		   (u32)RANDOM_ROUNDS);
	KUNIT_ASSERT_TRUE(test, taken > RANDOM_ROUNDS / 20 && taken < RANDOM_ROUNDS / 2);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(test_round_trip),
	KUNIT_CASE(test_header_layout),
	KUNIT_CASE(test_hello_layout),
	KUNIT_CASE(test_devices_layout),
	KUNIT_CASE(test_small_layouts),
	KUNIT_CASE(test_keys_layout),
	KUNIT_CASE(test_keys_full),
	KUNIT_CASE(test_keys_refused),
	KUNIT_CASE(test_encode_refused),
	KUNIT_CASE(test_encode_room),
	KUNIT_CASE(test_decode_refused),
	KUNIT_CASE(test_ranges),
	KUNIT_CASE(test_hostile_counts),
	KUNIT_CASE(test_truncated),
	KUNIT_CASE(test_flipped),
	KUNIT_CASE(test_keys_next_alone),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "rmp_wire",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = wire_cases,
};

kunit_test_suites(&wire_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's messages");
MODULE_LICENSE("GPL");
