/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The world of the rooms that know peers: peer.c, standing.c, plug.c, session.c, greet.c,
 * rails.c, dial.c, admit.c, pairing.c, ways.c, fence.c, dying.c, rsegment.c, fetch.c, letgo.c,
 * export.c, revoke.c, segment.c and revocation.c are the real ones, what they stand on is
 * played here: connections, control channels, devices, the node, the data rooms. The test is
 * the other node: it answers connects, hands in requests and messages, and looks at what was
 * sent. All that goes over the wire is encoded and decoded.
 *
 * The gate holds up who connects or accepts, until the test lets them go on, the
 * attempt is given up, or its time is over; and who destroys a queue pair, as a device may.
 *
 * Static stubs of KUnit would not do here: they count for the test's own
 * thread, and the workers run on a workqueue.
 */
#ifndef RMP_PEER_WORLD_H
#define RMP_PEER_WORLD_H

#include <linux/kthread.h>
#include "suite.h"
#include "peer_clock.h"

#undef pr_fmt
#include "peer.c"
#include "standing.c"
#include "plug.c"
#include "session.c"
#include "greet.c"
#include "rails.c"
#include "dial.c"
#include "admit.c"
#include "pairing.c"
#include "ways.c"
#include "fence.c"
#include "dying.c"
#include "rsegment.c"
#include "fetch.c"
#include "letgo.c"
#include "export.c"
#include "revoke.c"
#include "segment.c"
#include "revocation.c"
#include "rights.c"
#include "group.c"
#include "keycache.c"
#include "wire.c"
#include "endpoint.c"

struct workqueue_struct *rmp_wq;
struct workqueue_struct *rmp_peers_wq;
uuid_t rmp_uuid;

#define WORLD_DEVICES	3
#define WORLD_SENT	512

struct world_sent {
	struct rmp_control *ctl;
	struct rmp_msg msg;
};

static struct {
	spinlock_t lock;	/* of sent and gated */
	struct world_sent sent[WORLD_SENT];
	u32 nr_sent;
	u8 keys[RMP_WIRE_MSG_MAX];	/* the last KEYS, as it was sent */
	size_t keys_len;

	/* How connecting ends; the gate. */
	bool hold;
	bool hold_accept;
	int result;
	u32 reason;
	u8 uuid[RMP_WIRE_UUID];	/* who answers */
	wait_queue_head_t gate;
	struct world_gated {
		struct rmp_conn *conn;
		const bool *hold;
		unsigned long end;
	} gated[8];		/* work items that stand there */
	atomic_t connects;	/* of the control channel */
	atomic_t data_connects;
	atomic_t accepts;
	struct sockaddr_storage dst;

	struct rmp_device *dev[WORLD_DEVICES];
	struct ib_device *ibdev;
	struct rmp_port port[WORLD_DEVICES];
	u32 control_dev;

	bool accept_any;
	struct rmp_peer *peers[16];	/* references of the test */
	u32 nr_peers;
	atomic_t flows;
	atomic_t qps;
	atomic_t started;
	atomic_t numbers;	/* of queue pairs */
	atomic_t destroyed;
	atomic_t fences;	/* numbers of queue pairs for the data rooms */
	u32 fenced[16];		/* those that they were told of */
	u32 nr_fenced;
	void (*draining)(struct rmp_conn *conn);	/* what happens meanwhile, once */
	atomic_t kicks;
	atomic_t events[4];
	atomic_t reached;
	atomic_t groups_gone;
} world;

/* ------------------------------------------------------------- connections */

enum { CONN_NEW, CONN_WAITS, CONN_UP, CONN_LOST, CONN_ABORTED };

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops, int access)
{
	memset(conn, 0, sizeof(*conn));
	conn->ops = ops;
	init_waitqueue_head(&conn->wait);
}

static bool gate_open(struct rmp_conn *conn, const bool *hold)
{
	return !READ_ONCE(*hold) || READ_ONCE(conn->state) == CONN_ABORTED;
}

static bool gate_shut(const struct world_gated *g)
{
	return g->conn && !gate_open(g->conn, g->hold) &&
	       time_before(READ_ONCE(clock_now), g->end);
}

static int clock_gated(void)
{
	int nr = 0, i;

	spin_lock(&world.lock);
	for (i = 0; i < ARRAY_SIZE(world.gated); i++)
		nr += gate_shut(&world.gated[i]);
	spin_unlock(&world.lock);
	return nr;
}

static unsigned long clock_gate_due(unsigned long limit)
{
	int i;

	spin_lock(&world.lock);
	for (i = 0; i < ARRAY_SIZE(world.gated); i++) {
		if (gate_shut(&world.gated[i]) &&
		    time_before(world.gated[i].end, limit))
			limit = world.gated[i].end;
	}
	spin_unlock(&world.lock);
	return limit;
}

/* @from: who stands there, or NULL; @to: who does then. */
static void gate_note(struct rmp_conn *from, struct rmp_conn *to, const bool *hold,
		      unsigned long end)
{
	int i;

	spin_lock(&world.lock);
	for (i = 0; i < ARRAY_SIZE(world.gated); i++) {
		if (world.gated[i].conn == from) {
			world.gated[i].conn = to;
			world.gated[i].hold = hold;
			world.gated[i].end = end;
			break;
		}
	}
	spin_unlock(&world.lock);
	WARN_ON(i == ARRAY_SIZE(world.gated));
}

static int conn_make(struct rmp_conn *conn, const bool *hold, unsigned long end)
{
	bool worker = current->flags & PF_WQ_WORKER;
	long left;

	if (READ_ONCE(conn->state) == CONN_ABORTED)
		return -ECANCELED;
	cmpxchg(&conn->state, CONN_NEW, CONN_WAITS);
	if (worker)
		gate_note(NULL, conn, hold, end);
	left = clock_wait_until(world.gate, gate_open(conn, hold), end);
	if (worker)
		gate_note(conn, NULL, NULL, 0);
	if (left == 0) {
		conn->reason = RMPOOL_REASON_UNREACHABLE;
		return -ETIMEDOUT;
	}
	if (READ_ONCE(conn->state) == CONN_ABORTED)
		return -ECANCELED;
	if (world.result) {
		conn->reason = world.reason;
		return world.result;
	}
	memcpy(conn->reply.uuid, world.uuid, sizeof(conn->reply.uuid));
	conn->qpn = 2 * atomic_inc_return(&world.numbers);
	conn->peer_qpn = conn->qpn + 1;
	return cmpxchg(&conn->state, CONN_WAITS, CONN_UP) == CONN_WAITS ?
	       0 : -ECANCELED;
}

/* The control channel goes through a device, as long as there is one. */
static int conn_make_control(struct rmp_conn *conn, const bool *hold, unsigned long end)
{
	conn->dev = rmp_device_get(world.control_dev);
	if (!conn->dev) {
		conn->reason = RMPOOL_REASON_NO_DEVICE;
		return -ENODEV;
	}
	return conn_make(conn, hold, end);
}

int rmp_conn_connect(struct rmp_conn *conn, const struct sockaddr_storage *src,
		     const struct sockaddr_storage *dst,
		     struct rmp_wire_req *req, long timeout)
{
	/* Before it is counted: who sees the count may let the clock go on. */
	unsigned long end = READ_ONCE(clock_now) + timeout;

	world.dst = *dst;
	if (req->kind == RMP_WIRE_DATA) {
		atomic_inc(&world.data_connects);
		return conn_make(conn, &world.hold, end);
	}
	atomic_inc(&world.connects);
	return conn_make_control(conn, &world.hold, end);
}

/* A request that the test hands in; @result: what became of it. */
struct world_request {
	struct rmp_cm_request cm;
	int result;		/* enum rmp_wire_reject, 0 accepted, -1 open */
};

int rmp_conn_accept(struct rmp_conn *conn, struct rmp_cm_request *req,
		    long timeout)
{
	struct world_request *r = container_of(req, struct world_request, cm);
	/* As above. */
	unsigned long end = READ_ONCE(clock_now) + timeout;
	int ret;

	atomic_inc(&world.accepts);
	if (req->req.kind == RMP_WIRE_DATA)
		ret = conn_make(conn, &world.hold_accept, end);
	else
		ret = conn_make_control(conn, &world.hold_accept, end);
	r->result = ret ? RMP_REJECT_RESOURCES : 0;
	return ret;
}

void rmp_cm_reject(struct rmp_cm_request *req, enum rmp_wire_reject why,
		   bool quiet)
{
	container_of(req, struct world_request, cm)->result = why;
}

void rmp_conn_abort(struct rmp_conn *conn)
{
	if (cmpxchg(&conn->state, CONN_WAITS, CONN_ABORTED) != CONN_WAITS)
		cmpxchg(&conn->state, CONN_NEW, CONN_ABORTED);
	wake_up_all(&world.gate);
}

bool rmp_conn_up(const struct rmp_conn *conn)
{
	return READ_ONCE(conn->state) == CONN_UP;
}

u32 rmp_conn_waits_for(const struct rmp_conn *conn)
{
	return RMPOOL_REASON_SILENT;
}

void rmp_conn_set_lost(struct rmp_conn *conn)
{
	cmpxchg(&conn->state, CONN_UP, CONN_LOST);
}

void rmp_conn_disconnect(struct rmp_conn *conn)
{
	WRITE_ONCE(conn->state, CONN_LOST);
}

void rmp_conn_destroy(struct rmp_conn *conn)
{
	if (conn->dev)
		rmp_device_put(conn->dev);
	conn->dev = NULL;
	WRITE_ONCE(conn->state, CONN_LOST);
}

int rmp_cm_init(void (*incoming)(struct rmp_cm_request *req))
{
	return incoming == rmp_session_incoming ? 0 : -EINVAL;
}

void rmp_cm_exit(void)
{
}

/* --------------------------------------------------------- control channels */

int rmp_control_init(struct rmp_control *ctl, const struct rmp_control_ops *ops)
{
	memset(ctl, 0, sizeof(*ctl));
	rmp_conn_init(&ctl->conn, NULL, 0);
	ctl->ops = ops;
	return 0;
}

void rmp_control_start(struct rmp_control *ctl)
{
	WRITE_ONCE(ctl->last_rx, jiffies);
	WRITE_ONCE(ctl->started, true);
}

int rmp_control_send_raw(struct rmp_control *ctl, const void *buf, size_t len)
{
	int ret = -ENOTCONN;

	spin_lock(&world.lock);
	if (!ctl->dead && !WARN_ON(world.nr_sent == WORLD_SENT)) {
		world.sent[world.nr_sent].ctl = ctl;
		ret = rmp_wire_decode(buf, len, &world.sent[world.nr_sent].msg);
		if (!ret && world.sent[world.nr_sent].msg.type == RMP_MSG_KEYS) {
			memcpy(world.keys, buf, len);
			world.keys_len = len;
		}
		/* What another node would refuse must not be sent. */
		if (!WARN_ON(ret))
			world.nr_sent++;
	}
	spin_unlock(&world.lock);
	return ret;
}

int rmp_control_send(struct rmp_control *ctl, const struct rmp_msg *msg)
{
	void *buf = kmalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	int ret = -ENOMEM;

	if (buf)
		ret = rmp_wire_encode(buf, RMP_WIRE_MSG_MAX, msg);
	if (!WARN_ON(ret < 0))
		ret = rmp_control_send_raw(ctl, buf, ret);
	kfree(buf);
	return ret;
}

void rmp_control_flush(struct rmp_control *ctl, long timeout)
{
}

void rmp_control_stop(struct rmp_control *ctl)
{
	WRITE_ONCE(ctl->closed, true);
}

void rmp_control_destroy(struct rmp_control *ctl)
{
	rmp_control_stop(ctl);
	spin_lock(&world.lock);
	ctl->dead = true;
	spin_unlock(&world.lock);
	rmp_conn_destroy(&ctl->conn);
}

/* ----------------------------------------------------------------- devices */

void rmp_device_hold(struct rmp_device *dev)
{
	kref_get(&dev->ref);
}

static void device_released(struct kref *ref)
{
	complete(&container_of(ref, struct rmp_device, ref)->released);
}

void rmp_device_put(struct rmp_device *dev)
{
	kref_put(&dev->ref, device_released);
}

struct rmp_device *rmp_device_get(u32 index)
{
	struct rmp_device *dev = index < WORLD_DEVICES ? world.dev[index] : NULL;

	if (!dev || READ_ONCE(dev->going))
		return NULL;
	rmp_device_hold(dev);
	return dev;
}

int rmp_device_usable_port(struct rmp_device *dev, struct rmp_port *port)
{
	*port = world.port[dev->index];
	return port->why ? -ENOENT : 0;
}

int rmp_device_port(struct rmp_device *dev, u32 num, struct rmp_port *port)
{
	*port = world.port[dev->index];
	return 0;
}

/* Other groups have other keys. */
u32 rmp_region_rkey(const struct rmp_region *region, u32 group, u32 dev_index,
		    u32 chunk)
{
	if (!world.dev[dev_index % WORLD_DEVICES] || dev_index >= WORLD_DEVICES)
		return 0;
	return group << 28 | (u32)region->id << 16 | dev_index << 12 | (chunk + 1);
}

bool rmp_region_has_rkeys(const struct rmp_region *region, u32 group, u32 dev_index)
{
	return rmp_region_rkey(region, group, dev_index, 0);
}

/* One reference is always the test's. */
static void region_released(struct kref *ref)
{
	WARN_ON(true);
}

void rmp_region_put(struct rmp_region *region)
{
	kref_put(&region->ref, region_released);
}

/* ---------------------------------------------------------------- the node */

int rmp_node_init(void)
{
	return 0;
}

void rmp_node_exit(void)
{
}

bool rmp_node_accepts_any(void)
{
	return world.accept_any;
}

void rmp_node_device_changed(void)
{
}

void rmp_node_source(struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
}

void rmp_node_get(struct rmp_node *node)
{
	memset(node, 0, sizeof(*node));
	strscpy(node->name, "here", sizeof(node->name));
}

/* ------------------------------------------------------------ the data rooms */

struct world_qp {
	struct rmp_conn conn;
	bool started;
	bool drained;
};

static struct rmp_flow *flow_create(struct rmp_peer *peer)
{
	atomic_inc(&world.flows);
	return kzalloc(8, GFP_KERNEL);
}

static void flow_destroy(struct rmp_flow *flow)
{
	atomic_dec(&world.flows);
	kfree(flow);
}

static void flow_kick(struct rmp_flow *flow)
{
	atomic_inc(&world.kicks);
}

static struct rmp_conn *qp_create(struct rmp_rail *rail, u32 index)
{
	struct world_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);

	if (!qp)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&world.qps);
	rmp_conn_init(&qp->conn, NULL, 0);
	qp->conn.fence = atomic_inc_return(&world.fences);
	return &qp->conn;
}

static void qp_start(struct rmp_conn *conn)
{
	struct world_qp *qp = container_of(conn, struct world_qp, conn);

	WARN_ON(qp->started);
	qp->started = true;
	atomic_inc(&world.started);
}

static void qp_drain(struct rmp_conn *conn)
{
	struct world_qp *qp = container_of(conn, struct world_qp, conn);
	void (*draining)(struct rmp_conn *conn);

	WARN_ON(qp->drained);
	qp->drained = true;
	draining = xchg(&world.draining, NULL);
	rmp_conn_disconnect(conn);
	if (draining)
		draining(conn);
}

static void qp_destroy(struct rmp_conn *conn)
{
	struct world_qp *qp = container_of(conn, struct world_qp, conn);

	WARN_ON(!qp->drained);
	wait_event(world.gate, !READ_ONCE(clock_nobody_dies));
	atomic_inc(&world.destroyed);
	atomic_dec(&world.qps);
	rmp_conn_destroy(conn);
	kfree(qp);
}

static void qp_fenced(struct rmp_flow *flow, u32 fence)
{
	world.fenced[world.nr_fenced++ % ARRAY_SIZE(world.fenced)] = fence;
}

static void peer_event(struct rmp_peer *peer, u32 event)
{
	atomic_inc(&world.events[event % ARRAY_SIZE(world.events)]);
}

static void segment_event(struct rmp_segment *segment, u32 event)
{
}

static void segment_reach(struct rmp_segment *segment)
{
	atomic_inc(&world.reached);
}

static void group_gone(u32 group)
{
	atomic_inc(&world.groups_gone);
	rmp_group_unuse(group);
}

static const struct rmp_peer_ops world_peer_ops = {
	.flow_create = flow_create,
	.flow_destroy = flow_destroy,
	.flow_kick = flow_kick,
	.qp_create = qp_create,
	.qp_start = qp_start,
	.qp_drain = qp_drain,
	.qp_destroy = qp_destroy,
	.qp_fenced = qp_fenced,
	.event = peer_event,
	.group_gone = group_gone,
};

static const struct rmp_segment_ops world_segment_ops = {
	.changed = rmp_export_changed,
	.revoke = rmp_export_revoke,
	.rekey = rmp_export_rekey,
	.event = segment_event,
	.reach = segment_reach,
};

#include "peer_acts.h"

#endif /* RMP_PEER_WORLD_H */
