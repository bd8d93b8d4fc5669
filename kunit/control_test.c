// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/control.c: two channels that are connected with each other. The
 * wire between them is the test, which carries a message when it likes to. A
 * message that finds no buffer at the other end would be a broken promise of
 * credits; nothing is lost, nothing changes its order, and nobody waits for
 * ever, whatever both send.
 */
#include <linux/wait.h>
#include "suite.h"
#undef pr_fmt
#include "control.c"
#include "wire.c"

#define WIRE	128

struct workqueue_struct *rmp_wq;

struct posted {
	struct ib_cqe *cqe;
	void *mem;
	u32 len;
	u8 data[RMP_WIRE_MSG_MAX];	/* of a send, as it was posted */
};

/* One end. */
struct side {
	struct rmp_control ctl;
	struct rmp_device dev;
	struct ib_device ibdev;
	struct ib_qp qp;
	struct ib_pd pd;
	spinlock_t lock;	/* of what is posted */
	struct posted *sends;
	struct posted *recvs;
	u32 first_send, nr_sends;
	u32 first_recv, nr_recvs;
	u64 sent;		/* probes; the next one's id */
	u64 got;		/* the id that the next one must have */
	u64 wrong;
	int broken;
	int refuse;		/* what the next message is answered with */
	bool slow;		/* messages are not handled for now */
	wait_queue_head_t wait;
};

static struct side *ends[2];

/* ---------------------------------------------------------- what is played */

static struct side *side_of(struct ib_qp *qp)
{
	return container_of(qp, struct side, qp);
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct side *s = side_of(qp);
	struct posted *p;
	int ret = -ENOMEM;

	spin_lock_bh(&s->lock);
	if (s->nr_sends < WIRE) {
		p = &s->sends[(s->first_send + s->nr_sends++) % WIRE];
		p->cqe = wr->wr_cqe;
		p->len = wr->sg_list->length;
		memcpy(p->data, (void *)(uintptr_t)wr->sg_list->addr, p->len);
		ret = 0;
	}
	spin_unlock_bh(&s->lock);
	return ret;
}

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct side *s = side_of(qp);
	struct posted *p;
	int ret = -ENOMEM;

	spin_lock_bh(&s->lock);
	if (s->nr_recvs < WIRE) {
		p = &s->recvs[(s->first_recv + s->nr_recvs++) % WIRE];
		p->cqe = wr->wr_cqe;
		p->mem = (void *)(uintptr_t)wr->sg_list->addr;
		p->len = wr->sg_list->length;
		ret = 0;
	}
	spin_unlock_bh(&s->lock);
	return ret;
}

static struct posted *take(struct side *s, bool send)
{
	struct posted *p = NULL;

	spin_lock_bh(&s->lock);
	if (send && s->nr_sends) {
		p = &s->sends[s->first_send++ % WIRE];
		s->nr_sends--;
	} else if (!send && s->nr_recvs) {
		p = &s->recvs[s->first_recv++ % WIRE];
		s->nr_recvs--;
	}
	spin_unlock_bh(&s->lock);
	return p;
}

static void complete_one(struct posted *p, enum ib_wc_status status, u32 len)
{
	struct ib_wc wc = {
		.wr_cqe = p->cqe, .status = status, .byte_len = len,
	};

	p->cqe->done(NULL, &wc);
}

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops, int access)
{
	memset(conn, 0, sizeof(*conn));
	conn->ops = ops;
}

int rmp_conn_create_qp(struct rmp_conn *conn, struct ib_pd *pd, u32 send_wr,
		       u32 recv_wr, enum ib_poll_context ctx, int cqe_hint)
{
	struct side *s = container_of(conn, struct side, ctl.conn);

	conn->qp = &s->qp;
	return 0;
}

void rmp_conn_destroy(struct rmp_conn *conn)
{
	struct side *s = container_of(conn, struct side, ctl.conn);
	struct posted *p;

	while ((p = take(s, true)))
		complete_one(p, IB_WC_WR_FLUSH_ERR, 0);
	while ((p = take(s, false)))
		complete_one(p, IB_WC_WR_FLUSH_ERR, 0);
	rmp_device_put(conn->dev);
	conn->dev = NULL;
}

void rmp_device_hold(struct rmp_device *dev)
{
	kref_get(&dev->ref);
}

static void device_released(struct kref *ref)
{
	WARN_ON(1);	/* the test has one */
}

void rmp_device_put(struct rmp_device *dev)
{
	kref_put(&dev->ref, device_released);
}

/* ------------------------------------------------------------------ both ends */

static int message(struct rmp_control *ctl, const struct rmp_msg *msg,
		   const void *buf, size_t len)
{
	struct side *s = container_of(ctl, struct side, ctl);

	wait_event(s->wait, !READ_ONCE(s->slow));
	if (s->refuse)
		return s->refuse;
	if (msg->type != RMP_MSG_PROBE || msg->probe.id != s->got++)
		s->wrong++;
	return 0;
}

static void broken(struct rmp_control *ctl)
{
	container_of(ctl, struct side, ctl)->broken++;
}

static const struct rmp_control_ops test_ops = {
	.message = message,
	.broken = broken,
};

static struct side *side_make(struct kunit *test)
{
	struct side *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct rmp_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->sends = kvcalloc(WIRE, sizeof(*s->sends), GFP_KERNEL);
	s->recvs = kvcalloc(WIRE, sizeof(*s->recvs), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, s->sends && s->recvs);
	spin_lock_init(&s->lock);
	init_waitqueue_head(&s->wait);
	kref_init(&s->dev.ref);
	s->dev.ibdev = &s->ibdev;
	s->dev.ctrl_pd = &s->pd;
	s->ibdev.ops.post_send = post_send;
	s->ibdev.ops.post_recv = post_recv;
	s->qp.device = &s->ibdev;
	KUNIT_ASSERT_EQ(test, rmp_control_init(&s->ctl, &test_ops), 0);
	conn = &s->ctl.conn;
	conn->mtu = IB_MTU_4096;
	rmp_device_hold(&s->dev);
	conn->dev = &s->dev;
	KUNIT_ASSERT_EQ(test, conn->ops->setup(conn), 0);
	KUNIT_ASSERT_EQ(test, conn->ops->ready(conn), 0);
	/* A message arrives whatever is done to the link later. */
	KUNIT_EXPECT_LE(test, conn->mtu, IB_MTU_1024);
	return s;
}

static int control_init(struct kunit *test)
{
	suite_case(test);
	rmp_wq = alloc_workqueue("rmp_test", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, rmp_wq);
	ends[0] = side_make(test);
	ends[1] = side_make(test);
	return 0;
}

static void control_exit(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		WRITE_ONCE(ends[i]->slow, false);
		wake_up_all(&ends[i]->wait);
		rmp_control_destroy(&ends[i]->ctl);
		KUNIT_EXPECT_EQ(test, kref_read(&ends[i]->dev.ref), 1);
		KUNIT_EXPECT_EQ(test, ends[i]->wrong, 0);
		kvfree(ends[i]->sends);
		kvfree(ends[i]->recvs);
	}
	destroy_workqueue(rmp_wq);
}

static void start_both(void)
{
	rmp_control_start(&ends[0]->ctl);
	rmp_control_start(&ends[1]->ctl);
}

static int send_probe(struct side *s)
{
	struct rmp_msg msg = { .type = RMP_MSG_PROBE, .probe.id = s->sent };
	int ret = rmp_control_send(&s->ctl, &msg);

	if (!ret)
		s->sent++;
	return ret;
}

/* Carries one message from an end to the other. False: there is none. */
static bool carry(struct kunit *test, u32 from)
{
	struct side *a = ends[from], *b = ends[1 - from];
	struct posted *p, *to;
	u32 len;

	p = take(a, true);
	if (!p)
		return false;
	to = take(b, false);
	/* What credits are for. */
	KUNIT_ASSERT_NOT_NULL(test, to);
	KUNIT_ASSERT_LE(test, p->len, to->len);
	len = p->len;
	memcpy(to->mem, p->data, len);
	complete_one(to, IB_WC_SUCCESS, len);
	complete_one(p, IB_WC_SUCCESS, 0);
	return true;
}

static void carry_all(struct kunit *test)
{
	do {
		flush_workqueue(rmp_wq);
	} while (carry(test, 0) | carry(test, 1));
	flush_workqueue(rmp_wq);
}

/* ------------------------------------------------------------------ the cases */

static void test_order(struct kunit *test)
{
	u32 n, i;

	start_both();
	for (n = 0; n < 6000; n++) {
		i = (u32)below(2);
		switch (below(4)) {
		case 0:
			KUNIT_ASSERT_EQ(test, send_probe(ends[i]), 0);
			break;
		case 1:
			flush_workqueue(rmp_wq);
			break;
		default:
			carry(test, i);
		}
	}
	carry_all(test);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, ends[i]->got, ends[1 - i]->sent);
		KUNIT_EXPECT_GT(test, ends[i]->got, 500);
		KUNIT_EXPECT_EQ(test, ends[i]->broken, 0);
		KUNIT_EXPECT_EQ(test, ends[i]->ctl.backlog, 0);
	}
}

/* Both flood each other, and handle nothing for a while. */
static void test_flood(struct kunit *test)
{
	u32 round, i, n;

	start_both();
	for (round = 0; round < 8; round++) {
		/* One of them, both, or none. */
		ends[0]->slow = round & 1;
		ends[1]->slow = round & 2;
		for (n = 0; n < 200; n++) {
			for (i = 0; i < 2; i++)
				KUNIT_ASSERT_EQ(test, send_probe(ends[i]), 0);
		}
		/* As far as it goes without. */
		while (carry(test, 0) | carry(test, 1))
			;
		for (i = 0; i < 2; i++) {
			WRITE_ONCE(ends[i]->slow, false);
			wake_up_all(&ends[i]->wait);
		}
		carry_all(test);
		for (i = 0; i < 2; i++)
			KUNIT_ASSERT_EQ(test, ends[i]->got, ends[1 - i]->sent);
	}
}

/* As many messages as there are buffers at the other end, but for the last. */
static void test_credits(struct kunit *test)
{
	u32 n;

	start_both();
	ends[1]->slow = true;
	for (n = 0; n < 100; n++)
		KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	for (n = 0; carry(test, 0); n++)
		;
	KUNIT_EXPECT_EQ(test, n, RMP_CONTROL_RECV - 1);
	KUNIT_EXPECT_EQ(test, ends[0]->ctl.credits, 1);
	ends[1]->slow = false;
	wake_up_all(&ends[1]->wait);
	/* The other end has nothing to say, and gives them back all the same. */
	carry_all(test);
	KUNIT_EXPECT_EQ(test, ends[1]->got, 100);
	KUNIT_EXPECT_EQ(test, ends[1]->sent, 0);
	KUNIT_EXPECT_GE(test, ends[0]->ctl.credits, RMP_CONTROL_RECV / 2);
}

/* Messages that came before the start are handed out then. */
static void test_early(struct kunit *test)
{
	u32 n;

	rmp_control_start(&ends[0]->ctl);
	for (n = 0; n < 10; n++)
		KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	/* Queued as well, but not posted. */
	KUNIT_ASSERT_EQ(test, send_probe(ends[1]), 0);
	KUNIT_EXPECT_EQ(test, ends[1]->nr_sends, 0);
	while (carry(test, 0))
		;
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, ends[1]->got, 0);
	rmp_control_start(&ends[1]->ctl);
	carry_all(test);
	KUNIT_EXPECT_EQ(test, ends[1]->got, 10);
	KUNIT_EXPECT_EQ(test, ends[0]->got, 1);
}

/* An end that takes nothing is cut off before it costs much memory. */
static void test_backlog(struct kunit *test)
{
	u8 *large = kunit_kzalloc(test, RMP_WIRE_MSG_MAX, GFP_KERNEL);
	u32 n;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, large);
	start_both();
	for (n = 0; n < RMP_CONTROL_BACKLOG / RMP_WIRE_MSG_MAX + WIRE; n++) {
		ret = rmp_control_send_raw(&ends[0]->ctl, large,
					   RMP_WIRE_MSG_MAX);
		if (ret)
			break;
	}
	KUNIT_EXPECT_EQ(test, ret, -ENOTCONN);
	KUNIT_EXPECT_GE(test, n, RMP_CONTROL_BACKLOG / RMP_WIRE_MSG_MAX);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 1);
	KUNIT_EXPECT_LE(test, ends[0]->ctl.backlog, RMP_CONTROL_BACKLOG + 4096);
	KUNIT_EXPECT_EQ(test, send_probe(ends[0]), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 1);
}

/* The bytes of a message that is on the wire, changed. */
static void spoil(u32 from, u32 at, u8 byte)
{
	struct side *s = ends[from];

	s->sends[s->first_send % WIRE].data[at] = byte;
}

static void test_hostile(struct kunit *test)
{
	struct side *s = ends[1];
	u32 n;

	start_both();
	/* More credits than there are buffers. */
	for (n = 0; n < 5; n++) {
		KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
		spoil(0, CREDITS_AT, 255);
		carry(test, 0);
		flush_workqueue(rmp_wq);
	}
	KUNIT_EXPECT_EQ(test, s->ctl.credits, RMP_CONTROL_RECV);
	KUNIT_EXPECT_EQ(test, s->broken, 0);
	/* A type of a later version is passed over, and counts. */
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	spoil(0, 5, 200);
	carry(test, 0);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, s->broken, 0);
	KUNIT_EXPECT_EQ(test, s->got, 5);
	s->got++;
	KUNIT_EXPECT_EQ(test, s->ctl.give, 6);
	/* Malformed: that is the end, and nothing behind it is handed out. */
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	spoil(0, 6, 99);
	carry(test, 0);
	carry(test, 0);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, s->broken, 1);
	KUNIT_EXPECT_EQ(test, s->got, 6);
	KUNIT_EXPECT_EQ(test, send_probe(s), -ENOTCONN);
}

/* What the owner refuses, and what the device does. */
static void test_broken(struct kunit *test)
{
	struct posted *p;

	start_both();
	ends[1]->refuse = -EPROTO;
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	carry(test, 0);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, ends[1]->broken, 1);
	p = take(ends[0], true);
	KUNIT_ASSERT_NOT_NULL(test, p);
	complete_one(p, IB_WC_RETRY_EXC_ERR, 0);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 1);
	ends[0]->ctl.conn.ops->lost(&ends[0]->ctl.conn);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 1);
	/* Nobody waits for what will not be sent. */
	rmp_control_flush(&ends[0]->ctl, MAX_SCHEDULE_TIMEOUT);
}

/* It broke before it was started: its owner is told then. */
static void test_broken_early(struct kunit *test)
{
	ends[0]->ctl.conn.ops->lost(&ends[0]->ctl.conn);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 0);
	rmp_control_start(&ends[0]->ctl);
	KUNIT_EXPECT_EQ(test, ends[0]->broken, 1);
	KUNIT_EXPECT_EQ(test, send_probe(ends[0]), -ENOTCONN);
}

static void test_flush_and_stop(struct kunit *test)
{
	u32 n;

	start_both();
	for (n = 0; n < 5; n++)
		KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	/* It is not sent yet: the wait is bounded. */
	rmp_control_flush(&ends[0]->ctl, 2);
	KUNIT_EXPECT_FALSE(test, control_is_idle(&ends[0]->ctl));
	while (carry(test, 0))
		;
	rmp_control_flush(&ends[0]->ctl, MAX_SCHEDULE_TIMEOUT);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, ends[1]->got, 5);
	rmp_control_stop(&ends[1]->ctl);
	KUNIT_ASSERT_EQ(test, send_probe(ends[0]), 0);
	carry(test, 0);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, ends[1]->got, 5);
	KUNIT_EXPECT_EQ(test, ends[1]->broken, 0);
}

static struct kunit_case control_cases[] = {
	KUNIT_CASE(test_order),
	KUNIT_CASE(test_flood),
	KUNIT_CASE(test_credits),
	KUNIT_CASE(test_early),
	KUNIT_CASE(test_backlog),
	KUNIT_CASE(test_hostile),
	KUNIT_CASE(test_broken),
	KUNIT_CASE(test_broken_early),
	KUNIT_CASE(test_flush_and_stop),
	{}
};

static struct kunit_suite control_suite = {
	.name = "rmp_control",
	.suite_init = suite_begin,
	.init = control_init,
	.exit = control_exit,
	.test_cases = control_cases,
};

kunit_test_suites(&control_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's control channels");
MODULE_LICENSE("GPL");
