// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/private.c: layouts as docs/wire.md tells them, round trips, and
 * hostile input, as in wire_test.c.
 */
#include "suite.h"
#include "private.c"

static struct rmp_wire_req random_req(void)
{
	struct rmp_wire_req req = {
		.kind = below(2) ? RMP_WIRE_CONTROL : RMP_WIRE_DATA,
		.version = RMP_WIRE_VERSION,
		.mtu = (u8)(1 + below(5)),
		.attempt = (u32)next_random(),
	};

	random_bytes(req.uuid, sizeof(req.uuid));
	if (req.kind == RMP_WIRE_DATA) {
		req.rail = (u8)below(32);
		req.qp = (u8)below(16);
		random_bytes(req.token, sizeof(req.token));
	}
	return req;
}

static struct rmp_wire_reply random_reply(void)
{
	struct rmp_wire_reply r = { .version = RMP_WIRE_VERSION };

	if (below(2))
		r.reject = (u8)(1 + below(11));
	else
		r.mtu = (u8)(1 + below(5));
	random_bytes(r.uuid, sizeof(r.uuid));
	return r;
}

/* Decodes from memory of exactly the right size, and checks what holds for any input.
 * @reply: of the answer, else of the request.
 */
static int get_checked(struct kunit *test, const u8 *buf, size_t len, bool reply)
{
	u8 *exact = kmalloc(len ? len : 1, GFP_KERNEL);
	struct rmp_wire_req req, req0;
	struct rmp_wire_reply r, r0;
	u8 again[64] = {};
	int ret, put;

	KUNIT_ASSERT_NOT_NULL(test, exact);
	if (len)
		memcpy(exact, buf, len);
	memset(&req, 0xa5, sizeof(req));
	memset(&r, 0xa5, sizeof(r));
	req0 = req;
	r0 = r;
	if (reply)
		ret = rmp_wire_get_reply(exact, len, &r);
	else
		ret = rmp_wire_get_req(exact, len, &req);
	if (!ret) {
		if (reply)
			put = rmp_wire_put_reply(again, sizeof(again), &r);
		else
			put = rmp_wire_put_req(again, sizeof(again), &req);
		KUNIT_ASSERT_TRUE(test, put > 0 && put <= (int)len);
		/* Behind it there are zero bytes, in both. */
		ASSERT_SAME(test, again, exact, len < 64 ? len : 64);
	} else {
		KUNIT_ASSERT_TRUE(test, ret == -EPROTO || ret == -EPROTONOSUPPORT ||
				  ret == -EBADMSG);
		if (ret == -EPROTONOSUPPORT) {
			KUNIT_ASSERT_EQ(test, reply ? r.version : req.version,
					exact[3]);
			r0.version = r.version;
			req0.version = req.version;
		}
		ASSERT_SAME(test, &req, &req0, sizeof(req));
		ASSERT_SAME(test, &r, &r0, sizeof(r));
	}
	kfree(exact);
	return ret;
}

static void test_layout(struct kunit *test)
{
	struct rmp_wire_req req = {
		.kind = RMP_WIRE_DATA, .mtu = 5, .rail = 31, .qp = 15,
		.attempt = 0x01020304, .uuid = { 1, [15] = 2 },
		.token = { 3, [15] = 4 },
	};
	struct rmp_wire_reply r = { .mtu = 3, .uuid = { 5, [15] = 6 } };
	u8 buf[64];

	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, RMP_WIRE_REQ_MAX, &req), 48);
	ASSERT_AT(test, buf, 0, 4, 0x01020000);
	ASSERT_SAME(test, buf + 4, "RMPL", 4);
	ASSERT_AT(test, buf, 8, 4, 0x01020304);
	ASSERT_AT(test, buf, 12, 4, 0x000f1f05);
	ASSERT_AT(test, buf, 16, 1, 1);
	ASSERT_AT(test, buf, 31, 2, 0x0302);
	ASSERT_AT(test, buf, 47, 1, 4);

	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, RMP_WIRE_REPLY_MAX, &r), 32);
	ASSERT_AT(test, buf, 0, 4, 0x01000000);
	ASSERT_SAME(test, buf + 4, "RMPL", 4);
	ASSERT_AT(test, buf, 8, 8, 3);
	ASSERT_AT(test, buf, 16, 1, 5);
	ASSERT_AT(test, buf, 31, 1, 6);
}

static void test_round_trip(struct kunit *test)
{
	struct rmp_wire_reply r, r2;
	struct rmp_wire_req req, req2;
	u8 buf[256];
	int i, len;

	for (i = 0; i < 2000; i++) {
		memset(buf, 0, sizeof(buf));
		req = random_req();
		len = rmp_wire_put_req(buf, RMP_WIRE_REQ_MAX, &req);
		KUNIT_ASSERT_EQ(test, len, 48);
		/* As it arrives: padded with zero bytes, or not. */
		KUNIT_ASSERT_EQ(test, rmp_wire_get_req(buf, 48, &req2), 0);
		ASSERT_SAME(test, &req, &req2, sizeof(req));
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, 56, false), 0);
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, 255, false), 0);
		buf[48 + below(8)] = 1;
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, 56, false), -EBADMSG);

		memset(buf, 0, sizeof(buf));
		r = random_reply();
		len = rmp_wire_put_reply(buf, RMP_WIRE_REPLY_MAX, &r);
		KUNIT_ASSERT_EQ(test, len, 32);
		KUNIT_ASSERT_EQ(test, rmp_wire_get_reply(buf, 32, &r2), 0);
		ASSERT_SAME(test, &r, &r2, sizeof(r));
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, 196, true), 0);
		buf[32 + below(164)] = 1;
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, 196, true), -EBADMSG);
	}
}

static void test_refused(struct kunit *test)
{
	struct rmp_wire_reply r;
	struct rmp_wire_req req;
	u8 buf[64] = {};
	size_t cut;
	u8 byte;
	int at;
	int v;

	do
		req = random_req();
	while (req.kind != RMP_WIRE_DATA);
	for (cut = 0; cut < 48; cut++)
		KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, cut, &req), -EMSGSIZE);
	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, 48, &req), 48);
	for (cut = 0; cut < 48; cut++)
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, cut, false), -EBADMSG);
	for (at = 0; at < 56; at++) {
		byte = buf[at];
		for (v = 0; v < 256; v++) {
			int want = 0;

			if (v == byte)
				continue;
			buf[at] = (u8)v;
			if (at < 2 || (at >= 4 && at < 8))
				want = -EPROTO;
			else if (at == 3)
				want = -EPROTONOSUPPORT;
			else if (at == 12)
				want = v >= 1 && v <= 5 ? 0 : -EBADMSG;
			else if (at == 13)
				want = v < 32 ? 0 : -EBADMSG;
			else if (at == 14)
				want = v < 16 ? 0 : -EBADMSG;
			else if (at == 2 || at == 15 || at >= 48)
				want = -EBADMSG;
			KUNIT_ASSERT_EQ(test, get_checked(test, buf, 56, false), want);
		}
		buf[at] = byte;
	}

	/* What only data connections have. */
	memset(&req, 0, sizeof(req));
	req.kind = RMP_WIRE_CONTROL;
	req.mtu = 5;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, 56, &req), 48);
	req.rail = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, 56, &req), -EBADMSG);
	req.rail = 0;
	req.qp = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, 56, &req), -EBADMSG);
	req.qp = 0;
	req.token[15] = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_req(buf, 56, &req), -EBADMSG);

	/* A reply says no, or an MTU, not both and not neither. */
	memset(&r, 0, sizeof(r));
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 32, &r), -EBADMSG);
	r.mtu = 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 31, &r), -EMSGSIZE);
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 32, &r), 32);
	r.reject = RMP_REJECT_CLOSING;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 32, &r), -EBADMSG);
	r.mtu = 0;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 32, &r), 32);
	r.reject = RMP_REJECT_CLOSING + 1;
	KUNIT_ASSERT_EQ(test, rmp_wire_put_reply(buf, 32, &r), -EBADMSG);
	for (cut = 0; cut < 32; cut++)
		KUNIT_ASSERT_EQ(test, get_checked(test, buf, cut, true), -EBADMSG);

	/* The CM itself rejects with nothing, or with zero bytes. */
	memset(buf, 0, sizeof(buf));
	KUNIT_ASSERT_EQ(test, get_checked(test, buf, 0, true), -EBADMSG);
	KUNIT_ASSERT_EQ(test, get_checked(test, buf, 64, true), -EPROTO);
}

static void test_random(struct kunit *test)
{
	u8 buf[64];
	int i, n;

	for (i = 0; i < many(5000, 300000); i++) {
		bool reply = below(2);

		memset(buf, 0, sizeof(buf));
		if (reply) {
			struct rmp_wire_reply r = random_reply();

			rmp_wire_put_reply(buf, sizeof(buf), &r);
		} else {
			struct rmp_wire_req req = random_req();

			rmp_wire_put_req(buf, sizeof(buf), &req);
		}
		if (below(8) == 0)
			random_bytes(buf, sizeof(buf));
		for (n = (int)below(3); n; n--)
			buf[below(sizeof(buf))] = (u8)next_random();
		get_checked(test, buf, below(sizeof(buf) + 1), reply);
	}
}

static struct kunit_case private_cases[] = {
	KUNIT_CASE(test_layout),
	KUNIT_CASE(test_round_trip),
	KUNIT_CASE(test_refused),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite private_suite = {
	.name = "rmp_private",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = private_cases,
};

kunit_test_suites(&private_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's private data");
MODULE_LICENSE("GPL");
