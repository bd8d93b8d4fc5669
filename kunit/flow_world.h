/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The world of flow.c, lanes.c, route.c, repeat.c, renew.c and qp.c: the queue pairs of devices,
 * regions on both sides, the peer that answers for its ends, and who is told that a
 * request has ended.
 * The test says what completes, in which way and when. Each work request is looked at:
 * that it stays in one chunk on both sides and uses the keys of its rail; that the bytes
 * of a request are posted once each, not counting those that failed; and that what
 * failed is not posted again as long as anything of it may still be on its way.
 */
#ifndef RMP_FLOW_WORLD_H
#define RMP_FLOW_WORLD_H

#include "suite.h"
#include "flow.c"
#include "lanes.c"
#include "route.c"
#include "repeat.c"
#include "renew.c"
#include "qp.c"
#include "sched.c"
#include "slice.c"

#define RAILS		3
/* The peer's trust group: whatever is asked for is asked for it. */
#define PLAYED_GROUP	3
#define KIB		1024ULL
#define MIB		(1024 * KIB)

struct workqueue_struct *rmp_wq;

/* A queue pair of a device, with what was posted and has not completed. */
struct played_qp {
	struct ib_qp ibqp;
	struct ib_send_wr *wr[256];
	u32 first, nr;
	u32 unsignalled;
	bool broken;
};

/* A request with what the test knows of it. */
struct asked {
	struct rmp_request req;
	struct rmp_region region;
	struct rmp_rregion rr;
	struct rmp_rregion renewed;
	u64 from;		/* where its bytes begin in its region */
	u64 length;
	u64 posted;
	u64 tiles;		/* see tile() */
	u64 moved;
	int ended;
	int reported;
	s32 status;
	u64 bytes;
	bool unknown;
	u32 elsewhere;		/* devices that do not have its memory */
};

static struct {
	int wrong;		/* work requests; how often, and where first */
	int wrong_line;
	struct ib_device ibdev;
	struct rmp_device *dev[RAILS];
	struct rmp_rail rail[RAILS];
	struct rmp_conn *conn[RAILS][2];
	struct rmp_flow *flow;
	u32 no_local;		/* devices that do not have the memory mapped */
	/* the same for one region */
	u32 (*no_local_of)(const struct rmp_region *region);
	u32 looks;		/* how often devices were asked for local memory */
	u32 no_remote;
	u64 split;		/* not 0: from that byte of a remote region on, instead: */
	u32 no_remote_behind;
	bool no_way;		/* what may become a way: nothing */
	bool away;		/* a device of the peer that had the memory is not told */
	int ways;		/* how often that was asked, and for which devices */
	u32 way_local;
	u32 way_remote;
	int used;		/* mappings */
	struct rmp_domain domain;
	int fail_post;		/* which work request is not taken, from 1 */
	int failed_qps;
	/* looks at a slice when it is posted, and when it has succeeded */
	void (*look)(struct rmp_slice *slice, bool done);
	struct asked *ended[8192];
	u32 nr_ended;
	spinlock_t lock;	/* of all below, and of what is counted in struct asked */
	bool silent;		/* the peer does not answer for its ends */
	DECLARE_BITMAP(fenced, 8192);	/* those that it answered for */
	struct {
		struct asked *a;
		u64 from, to;
		u32 fence;
	} late[1024];		/* bytes that may still be on their way */
	u32 nr_late;
	u32 unfenced[1024];	/* dead queue pairs that it was not asked about yet */
	u32 nr_unfenced;
} world;

/* ---------------------------------------------------------- what is played */

/* Said with locks held, so only counted. */
#define must(condition) \
do { \
	if (!(condition) && !world.wrong++) \
		world.wrong_line = __LINE__; \
} while (0)

static inline struct asked *asked_of(struct rmp_request *req)
{
	return container_of(req, struct asked, req);
}

void rmp_request_report(struct rmp_request *req, s32 status, bool unknown,
			u64 bytes)
{
	struct asked *a = asked_of(req);

	if (unknown && req->stage)
		rmp_stage_stop(req->stage);
	a->reported++;
	a->status = status;
	a->unknown = unknown;
	a->bytes = bytes;
}

void rmp_request_end(struct rmp_request *req)
{
	struct asked *a = asked_of(req);

	if (!req->reported)
		rmp_request_report(req, req->status, false, req->bytes);
	a->ended++;
	if (req->stage)
		rmp_stage_end(req->stage);
	world.ended[world.nr_ended++ % ARRAY_SIZE(world.ended)] = a;
}

void rmp_request_end_list(struct list_head *done)
{
	struct rmp_request *req, *next;

	list_for_each_entry_safe(req, next, done, done_node)
		rmp_request_end(req);
}

/* Both sides are told by iova 0 and a lead in the first chunk. */
static inline u64 rest_of(u64 lead, u64 length, u32 shift, u64 pos)
{
	u64 at = lead + pos;

	return min(((at >> shift) + 1) << shift, lead + length) - at;
}

u64 rmp_region_local(const struct rmp_region *region, u32 group, u32 dev_index,
		     u64 pos, u64 *iova, u32 *lkey)
{
	u32 none = world.no_local;

	must(group == PLAYED_GROUP);
	if (world.no_local_of)
		none |= world.no_local_of(region);
	world.looks++;
	if (none & BIT(dev_index))
		return 0;
	*iova = region->iova + pos;
	*lkey = dev_index << 24 | (u32)((region->iova + pos) >>
					region->chunk_shift);
	return rest_of(region->iova, region->length, region->chunk_shift, pos);
}

u64 rmp_region_use(const struct rmp_region *region, u32 group, u32 dev_index,
		   u64 pos, u64 *iova, u32 *lkey, struct rmp_mapping **map)
{
	u64 left = rmp_region_local(region, group, dev_index, pos, iova, lkey);

	/* Never looked into. */
	*map = left ? (struct rmp_mapping *)&world : NULL;
	world.used += !!*map;
	return left;
}

void rmp_region_unuse(struct rmp_mapping *map)
{
	world.used -= !!map;
}

void rmp_rregion_hold(struct rmp_rregion *rr)
{
	refcount_inc(&rr->ref);
}

/* The cache keeps its own for good. */
void rmp_rregion_put(struct rmp_rregion *rr)
{
	must(!refcount_dec_and_test(&rr->ref));
}

u64 rmp_rregion_remote(const struct rmp_rregion *rr, u32 device, u64 pos,
		       u64 *iova, u32 *rkey)
{
	u32 none = world.split && pos >= world.split ? world.no_remote_behind :
						       world.no_remote;

	if (none & BIT(device))
		return 0;
	*iova = rr->iova + pos;
	*rkey = device << 24 | (u32)((rr->iova + pos) >> rr->chunk_shift);
	return rest_of(rr->iova, rr->length, rr->chunk_shift, pos);
}

bool rmp_rregion_away(const struct rmp_rregion *rr)
{
	return world.away;
}

bool rmp_peer_way(struct rmp_peer *peer, u32 local, u32 remote)
{
	world.ways++;
	world.way_local = local;
	world.way_remote = remote;
	return !world.no_way;
}

static inline struct played_qp *played(struct rmp_qp *qp)
{
	return container_of(qp->conn.qp, struct played_qp, ibqp);
}

/* Parts that cover a range once each add up to tile(end) - tile(start), in
 * whatever order they come; other parts would have to be very lucky.
 */
static inline u64 tile(u64 at)
{
	at = (at + 1) * 0x9e3779b97f4a7c15ULL;
	at = (at ^ at >> 32) * 0xd6e8feb86659fd93ULL;
	return at ^ at >> 29;
}

static inline u64 slice_at(const struct rmp_slice *slice)
{
	const struct asked *a = asked_of(slice->req);

	return slice->sge.addr - a->req.region->iova - a->from;
}

/* It failed: what it carried may arrive all the same, later. */
static inline void note_late(struct rmp_slice *slice)
{
	struct asked *a = asked_of(slice->req);
	u64 at = slice_at(slice);

	spin_lock_bh(&world.lock);
	a->posted -= slice->len;
	a->tiles -= tile(at + slice->len) - tile(at);
	if (world.nr_late < ARRAY_SIZE(world.late)) {
		world.late[world.nr_late].a = a;
		world.late[world.nr_late].from = at;
		world.late[world.nr_late].to = at + slice->len;
		world.late[world.nr_late++].fence = slice->qp->conn.fence;
	} else {
		must(false);
	}
	spin_unlock_bh(&world.lock);
}

/* Nothing comes any more of the gets, or also of the puts, of one queue pair. */
static inline void forget_late(u32 fence, bool puts)
{
	u32 i, n = 0;

	spin_lock_bh(&world.lock);
	for (i = 0; i < world.nr_late; i++) {
		if (world.late[i].fence == fence &&
		    (puts || world.late[i].a->req.op == RMPOOL_OP_GET))
			continue;
		world.late[n++] = world.late[i];
	}
	world.nr_late = n;
	spin_unlock_bh(&world.lock);
}

static inline void check_wr(struct rmp_qp *qp, struct rmp_slice *slice)
{
	struct asked *a = asked_of(slice->req);
	const struct rmp_region *region = a->req.region;
	const struct ib_rdma_wr *wr = &slice->wr;
	u64 local = slice->sge.addr - region->iova - a->from;
	u64 remote = wr->remote_addr - a->rr.iova;
	u32 i;

	must(local == remote);
	must(slice->len > 0 && slice->len == slice->sge.length);
	must(slice->len <= qp->max_slice);
	must(local + slice->len <= a->length);
	must(slice->sge.lkey == (qp->rail->dev->index << 24 |
		(u32)(slice->sge.addr >> region->chunk_shift)));
	must(wr->rkey == (qp->rail->remote_dev << 24 |
		(u32)(wr->remote_addr >> a->rr.chunk_shift)));
	must(slice->len <= rest_of(region->iova, region->length,
				   region->chunk_shift, a->from + local));
	must(slice->len <= rest_of(a->rr.iova, a->rr.length,
				   a->rr.chunk_shift, remote));
	must(wr->wr.opcode == (a->req.op == RMPOOL_OP_PUT ?
			       IB_WR_RDMA_WRITE : IB_WR_RDMA_READ));
	must(!a->ended);
	if (world.look)
		world.look(slice, false);
	spin_lock_bh(&world.lock);
	a->posted += slice->len;
	a->tiles += tile(local + slice->len) - tile(local);
	for (i = 0; i < world.nr_late; i++)
		must(world.late[i].a != a || local >= world.late[i].to ||
		     local + slice->len <= world.late[i].from);
	spin_unlock_bh(&world.lock);
}

static inline int post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad)
{
	struct played_qp *q = container_of(ibqp, struct played_qp, ibqp);
	struct rmp_slice *slice;

	for (; wr; wr = wr->next) {
		if (world.fail_post && !--world.fail_post) {
			*bad = wr;
			/* From here on nothing was taken. */
			for (; wr; wr = wr->next) {
				slice = container_of(wr, struct rmp_slice, wr.wr);
				check_wr(slice->qp, slice);
				note_late(slice);
			}
			return -ENOMEM;
		}
		slice = container_of(wr, struct rmp_slice, wr.wr);
		check_wr(slice->qp, slice);
		must(slice->pos == asked_of(slice->req)->from + slice_at(slice));
		must(q->nr < slice->qp->s.depth);
		q->wr[(q->first + q->nr++) % ARRAY_SIZE(q->wr)] = &slice->wr.wr;
		/* Else completions would come too late. */
		q->unsignalled = wr->send_flags & IB_SEND_SIGNALED ? 0 :
							q->unsignalled + 1;
		must(q->unsignalled < 16 && (wr->next || !q->unsignalled));
	}
	return 0;
}

static inline struct ib_send_wr *next_wr(struct played_qp *q)
{
	struct ib_send_wr *wr = q->wr[q->first++ % ARRAY_SIZE(q->wr)];

	q->nr--;
	return wr;
}

static inline void complete_wr(struct ib_send_wr *wr, enum ib_wc_status status)
{
	struct ib_wc wc = { .wr_cqe = wr->wr_cqe, .status = status };

	wr->wr_cqe->done(NULL, &wc);
}

/* What a device does next: all up to a signalled one succeed, or the first fails
 * and all behind it are flushed, one by one. False: nothing is posted.
 */
static inline bool proceed(struct rmp_qp *qp, enum ib_wc_status status)
{
	struct played_qp *q = played(qp);
	struct rmp_slice *slice;
	struct ib_send_wr *wr;

	if (!q->nr)
		return false;
	/* Done, perhaps, but nobody is told. */
	if (!q->broken && status == IB_WC_SUCCESS && q->unsignalled == q->nr)
		return false;
	if (status != IB_WC_SUCCESS)
		q->broken = true;
	if (q->broken) {
		wr = next_wr(q);
		note_late(container_of(wr, struct rmp_slice, wr.wr));
		complete_wr(wr, status == IB_WC_SUCCESS ? IB_WC_WR_FLUSH_ERR :
							  status);
		return true;
	}
	do {
		wr = next_wr(q);
		slice = container_of(wr, struct rmp_slice, wr.wr);
		asked_of(slice->req)->moved += slice->len;
		if (world.look)
			world.look(slice, true);
	} while (!(wr->send_flags & IB_SEND_SIGNALED));
	complete_wr(wr, IB_WC_SUCCESS);
	return true;
}

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops, int access)
{
	memset(conn, 0, sizeof(*conn));
	conn->ops = ops;
}

u32 rmp_peer_group(const struct rmp_peer *peer)
{
	return PLAYED_GROUP;
}

struct rmp_domain *rmp_domain_get(struct rmp_device *dev, u32 group)
{
	must(group == PLAYED_GROUP);
	world.domain.users++;
	return &world.domain;
}

void rmp_domain_put(struct rmp_domain *domain)
{
	domain->users--;
}

int rmp_conn_create_qp(struct rmp_conn *conn, struct ib_pd *pd, u32 send_wr,
		       u32 recv_wr, enum ib_poll_context ctx, int cqe_hint)
{
	struct played_qp *q = kzalloc(sizeof(*q), GFP_KERNEL);

	if (!q)
		return -ENOMEM;
	q->ibqp.device = &world.ibdev;
	conn->qp = &q->ibqp;
	return 0;
}

bool rmp_conn_up(const struct rmp_conn *conn)
{
	return conn->state;
}

void rmp_conn_set_lost(struct rmp_conn *conn)
{
	conn->state = 0;
}

/* Drains: all that was posted ends. What is unsignalled at the end was not posted
 * whole: it may have been done, and then no completion comes for it.
 */
void rmp_conn_drain(struct rmp_conn *conn)
{
	struct rmp_qp *qp = container_of(conn, struct rmp_qp, conn);
	struct played_qp *q = played(qp);
	u32 n;

	if (q->unsignalled && !q->broken && below(2)) {
		for (n = min(q->nr, q->unsignalled); n; n--) {
			q->nr--;
			note_late(container_of(q->wr[(q->first + q->nr) %
						     ARRAY_SIZE(q->wr)],
					       struct rmp_slice, wr.wr));
		}
	}
	q->broken = true;
	while (proceed(qp, IB_WC_SUCCESS))
		;
	forget_late(conn->fence, test_bit(conn->fence, world.fenced));
}

void rmp_conn_destroy(struct rmp_conn *conn)
{
	kfree(played(container_of(conn, struct rmp_qp, conn)));
}

void rmp_peer_qp_failed(struct rmp_rail *rail, struct rmp_conn *conn)
{
	world.failed_qps++;
	conn->state = 0;
}

int rmp_device_port(struct rmp_device *dev, u32 num, struct rmp_port *port)
{
	memset(port, 0, sizeof(*port));
	port->max_msg = 1U << 30;
	port->mtu = IB_MTU_4096;
	return 0;
}

/* ------------------------------------------------------------------ the test */

static inline struct rmp_qp *qp_of(u32 rail, u32 index)
{
	return container_of(world.conn[rail][index], struct rmp_qp, conn);
}

/* A rail of a place in the table between two devices. */
static inline void rail_between(struct kunit *test, u32 i, u32 nr_qps, u32 dev,
				u32 remote_dev, bool extra)
{
	struct rmp_rail *rail = &world.rail[i];
	struct rmp_conn *conn;
	u32 q;

	rail->flow = world.flow;
	rail->dev = world.dev[dev];
	rail->dev->index = dev;
	rail->index = i;
	rail->remote_dev = remote_dev;
	rail->extra = extra;
	rail->speed_mbps = 1000;
	for (q = 0; q < nr_qps; q++) {
		conn = rmp_qp_create(rail, q);
		KUNIT_ASSERT_FALSE(test, IS_ERR(conn));
		conn->dev = rail->dev;
		KUNIT_ASSERT_EQ(test, conn->ops->setup(conn), 0);
		conn->state = 1;
		conn->peer_qpn = 77;
		world.conn[i][q] = conn;
		rmp_qp_start(conn);
	}
}

static inline void rail_up(struct kunit *test, u32 i, u32 nr_qps)
{
	rail_between(test, i, nr_qps, i, i + 8, false);
}

/* The peer says that its end of a queue pair is drained; ours may not be yet. */
static inline void say_fenced(u32 fence, bool drained)
{
	set_bit(fence, world.fenced);
	if (drained)
		forget_late(fence, true);
	rmp_hold_fenced(world.flow, fence);
}

/* Of all that it was silent about. */
static inline void say_all_fenced(void)
{
	while (world.nr_unfenced)
		say_fenced(world.unfenced[--world.nr_unfenced], true);
}

static inline void qp_down(u32 rail, u32 index)
{
	struct rmp_conn *conn = world.conn[rail][index];
	u32 fence;

	if (!conn)
		return;
	fence = conn->fence;
	world.conn[rail][index] = NULL;
	rmp_qp_drain(conn);
	rmp_qp_destroy(conn);
	if (!world.silent)
		say_fenced(fence, true);
	else if (world.nr_unfenced < ARRAY_SIZE(world.unfenced))
		world.unfenced[world.nr_unfenced++] = fence;
}

static inline void rail_down(u32 i)
{
	qp_down(i, 0);
	qp_down(i, 1);
}

static inline int flow_init(struct kunit *test)
{
	u32 i;

	suite_case(test);
	memset(&world, 0, sizeof(world));
	spin_lock_init(&world.lock);
	world.ibdev.ops.post_send = post_send;
	for (i = 0; i < RAILS; i++) {
		world.dev[i] = kunit_kzalloc(test, sizeof(**world.dev),
					     GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, world.dev[i]);
	}
	rmp_qp_depth = 16;
	rmp_qp_window = 4 * MIB;
	rmp_max_slice = 1 * MIB;
	rmp_max_failover = 4;
	rmp_wq = alloc_workqueue("rmp_test", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, rmp_wq);
	world.flow = rmp_flow_create(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(world.flow));
	return 0;
}

static inline void flow_exit(struct kunit *test)
{
	u32 i, q;

	for (i = 0; i < RAILS; i++) {
		rail_down(i);
		KUNIT_EXPECT_EQ(test, atomic64_read(&world.rail[i].outstanding),
				0);
		KUNIT_EXPECT_EQ(test, world.flow->rails[i].bytes, 0);
		for (q = 0; q < RMP_SCHED_QPS; q++)
			KUNIT_EXPECT_NULL(test, world.flow->rails[i].qps[q]);
	}
	say_all_fenced();
	flush_delayed_work(&world.flow->sweep);
	flush_workqueue(rmp_wq);
	KUNIT_EXPECT_TRUE(test, list_empty(&world.flow->holds));
	KUNIT_EXPECT_EQ(test, world.flow->nr_pieces, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&world.flow->active));
	for (i = 0; i < RMP_CLASSES; i++) {
		KUNIT_EXPECT_TRUE(test, list_empty(&world.flow->queue[i]));
		KUNIT_EXPECT_TRUE(test, list_empty(&world.flow->parked[i]));
	}
	for (i = 0; i < RMP_LANES; i++)
		KUNIT_EXPECT_FALSE(test, lane_used(&world.flow->lanes[i]));
	rmp_flow_destroy(world.flow);
	destroy_workqueue(rmp_wq);
	KUNIT_EXPECT_EQ(test, world.used, 0);
	KUNIT_EXPECT_EQ(test, world.domain.users, 0);
	KUNIT_EXPECT_EQ_MSG(test, world.wrong, 0, "first in line %d",
			    world.wrong_line);
}

/* The peer has other keys for the region of a request. */
static inline void renew(struct asked *a)
{
	a->renewed = a->rr;
	refcount_set(&a->renewed.ref, 2);
	/* As rmp_keycache_renew() does. */
	smp_store_release(&a->rr.next, &a->renewed);
}

/* Not queued yet. */
static inline struct asked *ask(struct kunit *test, u64 length, u8 prio)
{
	struct asked *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, a);
	INIT_LIST_HEAD(&a->req.active);
	INIT_LIST_HEAD(&a->req.queue);
	INIT_LIST_HEAD(&a->req.pieces);
	INIT_LIST_HEAD(&a->req.done_node);
	a->length = length;
	a->region.length = length;
	a->region.iova = below(64 * KIB);
	a->region.chunk_shift = 16 + (u32)below(6);
	a->rr.length = length;
	a->rr.iova = below(64 * KIB);
	a->rr.chunk_shift = 16 + (u32)below(6);
	a->rr.access = RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE;
	refcount_set(&a->rr.ref, 2);
	a->req.flow = world.flow;
	a->req.region = &a->region;
	a->req.rr = &a->rr;
	a->req.left = length;
	a->req.prio = prio;
	a->req.op = below(2) ? RMPOOL_OP_PUT : RMPOOL_OP_GET;
	a->req.deadline = jiffies + 1000 * HZ;
	return a;
}

static inline void submit(struct asked *a)
{
	LIST_HEAD(list);

	list_add_tail(&a->req.done_node, &list);
	rmp_flow_add(world.flow, &list);
	rmp_flow_run(world.flow);
}

static inline struct asked *ask_now(struct kunit *test, u64 length, u8 prio)
{
	struct asked *a = ask(test, length, prio);

	submit(a);
	return a;
}

static inline void let_sweep_run(void)
{
	flush_delayed_work(&world.flow->sweep);
	flush_workqueue(rmp_wq);
}

/* Everything succeeds, until nothing is left. */
static inline void finish_all(void)
{
	bool any;
	u32 i, q;

	do {
		any = false;
		for (i = 0; i < RAILS; i++) {
			for (q = 0; q < 2; q++) {
				if (world.conn[i][q])
					any |= proceed(qp_of(i, q),
						       IB_WC_SUCCESS);
			}
		}
		flush_workqueue(rmp_wq);
	} while (any);
}

/* The same by devices of one speed, which finish_all() is not: there who posts
 * long chains completes more at a time.
 */
static inline void finish_evenly(void)
{
	u64 moved[RAILS];
	bool any;
	u32 n, i;

	do {
		any = false;
		for (i = 0; i < RAILS; i++)
			moved[i] = atomic64_read(&world.rail[i].put_bytes) +
				   atomic64_read(&world.rail[i].get_bytes);
		for (n = 0; n < RAILS && !any; n++) {
			u32 least = 0;

			for (i = 1; i < RAILS; i++) {
				if (moved[i] < moved[least])
					least = i;
			}
			moved[least] = U64_MAX;
			for (i = 0; i < 2; i++) {
				if (world.conn[least][i])
					any |= proceed(qp_of(least, i),
						       IB_WC_SUCCESS);
			}
		}
		flush_workqueue(rmp_wq);
	} while (any);
}

/* It ended once, was reported once, and says what is true. */
static inline void check_ended(struct kunit *test, const struct asked *a, s32 status)
{
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_EQ(test, a->status, status);
	KUNIT_EXPECT_EQ(test, a->bytes, a->moved);
	KUNIT_EXPECT_EQ(test, a->req.inflight, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&a->req.pieces));
	if (status)
		return;
	KUNIT_EXPECT_EQ(test, a->moved, a->length);
	KUNIT_EXPECT_EQ(test, a->posted, a->length);
	KUNIT_EXPECT_EQ(test, a->tiles, tile(a->length) - tile(0));
}

#endif /* RMP_FLOW_WORLD_H */
