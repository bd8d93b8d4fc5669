// SPDX-License-Identifier: GPL-2.0
/*
 * Connections by RDMA CM: one cm_id for each queue pair, always in the initial
 * network namespace.
 *
 * The queue pairs are managed here and not by the CM (rdma_create_qp()), since
 * the CM's choice fixes MTU and access rights: attributes come from
 * rdma_init_qp_attr(), are edited, and go to ib_modify_qp().
 *
 * Connecting and accepting are written as straight code in process context: a
 * step is started and its event awaited with a deadline of our own (the CM's
 * is about 65 s). The CM's handlers only note the event under the lock of
 * conn->wait, copy private data, and queue work; they never sleep on anything
 * of ours, so rdma_destroy_id(), which waits for them, always ends.
 *
 * Lifetime: a cm_id made here or accepted belongs to its conn and is destroyed
 * in rmp_conn_destroy(); until then the handler may use the conn, which is
 * embedded in an object of the owner. Until a connect request is accepted, its
 * cm_id is that of listen.c.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "listen.h"

static u8 rmp_ack_timeout = 17;
module_param_named(ack_timeout, rmp_ack_timeout, byte, 0644);
MODULE_PARM_DESC(ack_timeout, "RC ack time-out, 4.096 us x 2^n, 8 to 22 (default 17: 0.5 s)");

static u8 rmp_retry_count = 5;
module_param_named(retry_count, rmp_retry_count, byte, 0644);
MODULE_PARM_DESC(retry_count, "RC retries before a queue pair fails, 0 to 6 (default 5)");

enum {
	CONN_IDLE,
	CONN_ADDR,		/* address resolved */
	CONN_ROUTE,		/* route resolved */
	CONN_RESPONSE,		/* the peer accepted, we have not confirmed */
	CONN_UP,
	CONN_LOST,		/* was up */
	CONN_FAILED,		/* never was; conn->error */
};

static atomic_t rmp_attempts = ATOMIC_INIT(0);

static void conn_set(struct rmp_conn *conn, u32 state)
{
	spin_lock_bh(&conn->wait.lock);
	if (conn->state < CONN_LOST)
		conn->state = state;
	wake_up_all_locked(&conn->wait);
	spin_unlock_bh(&conn->wait.lock);
}

static void conn_fail(struct rmp_conn *conn, int error, u32 reason)
{
	spin_lock_bh(&conn->wait.lock);
	if (conn->state < CONN_UP) {
		conn->state = CONN_FAILED;
		conn->error = error;
		conn->reason = reason;
	}
	wake_up_all_locked(&conn->wait);
	spin_unlock_bh(&conn->wait.lock);
}

void rmp_conn_abort(struct rmp_conn *conn)
{
	conn_fail(conn, -ECANCELED, RMPOOL_REASON_PEER_GONE);
}

static void conn_lost(struct rmp_conn *conn)
{
	bool tell;

	spin_lock_bh(&conn->wait.lock);
	tell = conn->state == CONN_UP;
	if (tell) {
		conn->state = CONN_LOST;
	} else if (conn->state < CONN_UP) {
		conn->state = CONN_FAILED;
		conn->error = -ECONNRESET;
		conn->reason = RMPOOL_REASON_PEER_GONE;
	}
	wake_up_all_locked(&conn->wait);
	spin_unlock_bh(&conn->wait.lock);
	if (tell)
		conn->ops->lost(conn);
}

bool rmp_conn_up(const struct rmp_conn *conn)
{
	return READ_ONCE(conn->state) == CONN_UP;
}

u32 rmp_conn_waits_for(const struct rmp_conn *conn)
{
	return READ_ONCE(conn->state) < CONN_ROUTE ? RMPOOL_REASON_NO_ROUTE :
						     RMPOOL_REASON_UNREACHABLE;
}

void rmp_conn_set_lost(struct rmp_conn *conn)
{
	spin_lock_bh(&conn->wait.lock);
	if (conn->state == CONN_UP)
		conn->state = CONN_LOST;
	spin_unlock_bh(&conn->wait.lock);
}

static int conn_wait(struct rmp_conn *conn, u32 state, unsigned long deadline)
{
	long left = (long)(deadline - jiffies);
	int ret = 0;

	if (left <= 0 ||
	    !wait_event_timeout(conn->wait, READ_ONCE(conn->state) >= state,
				left)) {
		if (READ_ONCE(conn->state) < state) {
			conn->reason = rmp_conn_waits_for(conn);
			return -ETIMEDOUT;
		}
	}
	spin_lock_bh(&conn->wait.lock);
	if (conn->state == CONN_FAILED)
		ret = conn->error;
	else if (conn->state == CONN_LOST)
		ret = -ECONNRESET;
	spin_unlock_bh(&conn->wait.lock);
	return ret;
}

/* What a reject means to the one who asked. */
static void conn_rejected(struct rmp_conn *conn, struct rdma_cm_event *event)
{
	const void *data = NULL;
	u8 len = 0;

	data = rdma_consumer_reject_data(conn->id, event, &len);
	if (data && !rmp_wire_get_reply(data, len, &conn->reply)) {
		switch (conn->reply.reject) {
		case RMP_REJECT_VERSION:
			conn_fail(conn, -EPROTONOSUPPORT, RMPOOL_REASON_VERSION);
			return;
		case RMP_REJECT_NOT_TRUSTED:
			conn_fail(conn, -EACCES, RMPOOL_REASON_NOT_TRUSTED);
			return;
		case RMP_REJECT_SELF:
			conn_fail(conn, -ELOOP, RMPOOL_REASON_PEER_SELF);
			return;
		case RMP_REJECT_MALFORMED:
			conn_fail(conn, -EPROTO, RMPOOL_REASON_PROTOCOL);
			return;
		}
		conn_fail(conn, -EAGAIN, RMPOOL_REASON_REFUSED);
		return;
	}
	if (data && conn->reply.version &&
	    conn->reply.version != RMP_WIRE_VERSION) {
		conn_fail(conn, -EPROTONOSUPPORT, RMPOOL_REASON_VERSION);
		return;
	}
	conn_fail(conn, -ECONNREFUSED, RMPOOL_REASON_REFUSED);
}

/* Reads in flight, as both ends allow. None at all would stall them for ever. */
static bool conn_limit_depth(struct rmp_conn *conn, u8 responder_resources,
			     u8 initiator_depth)
{
	conn->responder_resources = min(conn->responder_resources,
					responder_resources);
	conn->initiator_depth = min(conn->initiator_depth, initiator_depth);
	return conn->responder_resources && conn->initiator_depth;
}

/* The peer accepted: what it wrote must be ours to understand. */
static bool conn_take_reply(struct rmp_conn *conn, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	int ret;

	ret = rmp_wire_get_reply(event->param.conn.private_data,
				 event->param.conn.private_data_len,
				 &conn->reply);
	if (ret == -EPROTONOSUPPORT)
		conn_fail(conn, ret, RMPOOL_REASON_VERSION);
	else if (ret < 0 || conn->reply.reject)
		conn_fail(conn, -EPROTO, RMPOOL_REASON_PROTOCOL);
	/* On iWARP the device has agreed on that by itself. */
	else if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE &&
		 !conn_limit_depth(conn, param->responder_resources,
				   param->initiator_depth))
		conn_fail(conn, -EPROTO, RMPOOL_REASON_PROTOCOL);
	else
		return true;
	return false;
}

int rmp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rmp_conn *conn;

	conn = READ_ONCE(id->context);
	if (!conn)		/* a request not yet accepted */
		return 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		conn_set(conn, CONN_ADDR);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn_set(conn, CONN_ROUTE);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (conn_take_reply(conn, event))
			conn_set(conn, CONN_RESPONSE);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* iWARP has no response event; on the passive side there is
		 * nothing to read.
		 */
		if (!conn->reply.version && !conn_take_reply(conn, event))
			break;
		conn_set(conn, CONN_UP);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		conn_fail(conn, -EHOSTUNREACH, RMPOOL_REASON_NO_ROUTE);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		conn_fail(conn, -ETIMEDOUT, RMPOOL_REASON_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn_rejected(conn, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		conn_lost(conn);
		break;
	default:
		break;
	}
	return 0;
}

/* ------------------------------------------------------------ queue pairs */

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops,
		   int access)
{
	memset(conn, 0, sizeof(*conn));
	conn->ops = ops;
	conn->access = access;
	init_waitqueue_head(&conn->wait);
}

int rmp_conn_create_qp(struct rmp_conn *conn, struct ib_pd *pd, u32 send_wr,
		       u32 recv_wr, enum ib_poll_context ctx, int cqe_hint)
{
	struct ib_device *ibdev = conn->dev->ibdev;
	struct ib_qp_init_attr attr = {
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		/* one more each for the drain */
		.cap.max_send_wr = send_wr + 1,
		.cap.max_recv_wr = recv_wr + 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.port_num = conn->port_num,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	cq = ib_alloc_cq(ibdev, conn, send_wr + recv_wr + 2,
			 cqe_hint % max(1, ibdev->num_comp_vectors), ctx);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(pd, &attr);
	if (IS_ERR(qp)) {
		ib_free_cq(cq);
		return PTR_ERR(qp);
	}
	conn->cq = cq;
	conn->qp = qp;
	WRITE_ONCE(conn->qpn, qp->qp_num);
	return 0;
}

static int conn_modify(struct rmp_conn *conn, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(conn->id, &attr, &mask);
	if (ret)
		return ret;
	if (mask & IB_QP_ACCESS_FLAGS)
		attr.qp_access_flags = conn->access;
	if (mask & IB_QP_DEST_QPN)
		WRITE_ONCE(conn->peer_qpn, attr.dest_qp_num);
	if (mask & IB_QP_PATH_MTU)
		attr.path_mtu = conn->mtu;
	if (mask & IB_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = 12;	/* 0.64 ms */
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = conn->responder_resources;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = conn->initiator_depth;
	return ib_modify_qp(conn->qp, &attr, mask);
}

static void conn_param(struct rmp_conn *conn, struct rdma_conn_param *param)
{
	memset(param, 0, sizeof(*param));
	param->responder_resources = conn->responder_resources;
	param->initiator_depth = conn->initiator_depth;
	param->retry_count = min_t(u8, rmp_retry_count, 6);
	param->rnr_retry_count = 6;
	param->qp_num = conn->qp->qp_num;
}

/* The device is known: take it, and what is fixed by it. */
static int conn_bind(struct rmp_conn *conn)
{
	struct rmp_port port;
	int ret;

	conn->dev = rmp_device_find(conn->id->device);
	if (!conn->dev) {
		conn->reason = RMPOOL_REASON_NO_DEVICE;
		return -ENODEV;
	}
	conn->port_num = conn->id->port_num;
	ret = rmp_device_port(conn->dev, conn->port_num, &port);
	if (ret) {
		conn->reason = RMPOOL_REASON_NO_DEVICE;
		return ret;
	}
	conn->mtu = port.mtu;
	conn->responder_resources = conn->dev->read_limit;
	conn->initiator_depth = conn->dev->read_limit;
	return conn->ops->setup(conn);
}

/* From RESET to where receives can be posted, and that. */
static int conn_to_init(struct rmp_conn *conn)
{
	int ret;

	ret = conn_modify(conn, IB_QPS_INIT);
	if (ret)
		return ret;
	conn->used = true;
	return conn->ops->ready ? conn->ops->ready(conn) : 0;
}

static bool conn_is_iwarp(struct rmp_conn *conn)
{
	return rdma_cap_iw_cm(conn->id->device, conn->port_num);
}

static int conn_to_rts(struct rmp_conn *conn)
{
	int ret;

	ret = conn_modify(conn, IB_QPS_RTR);
	if (!ret)
		ret = conn_modify(conn, IB_QPS_RTS);
	return ret;
}

/* ------------------------------------------------------------- connecting */

int rmp_conn_connect(struct rmp_conn *conn, const struct sockaddr_storage *src,
		     const struct sockaddr_storage *dst,
		     struct rmp_wire_req *req, long timeout)
{
	unsigned long deadline = jiffies + timeout;
	int ms = jiffies_to_msecs(timeout);
	struct rdma_conn_param param;
	u8 data[RMP_WIRE_REQ_MAX];
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(&init_net, rmp_cm_handler, conn, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	rdma_set_ack_timeout(id, clamp_t(u8, rmp_ack_timeout, 8, 22));

	conn->reason = RMPOOL_REASON_NO_ROUTE;
	ret = rdma_resolve_addr(id, (struct sockaddr *)src,
				(const struct sockaddr *)dst, ms);
	if (!ret)
		ret = conn_wait(conn, CONN_ADDR, deadline);
	if (!ret)
		ret = rdma_resolve_route(id, ms);
	if (!ret)
		ret = conn_wait(conn, CONN_ROUTE, deadline);
	if (ret)
		return ret;

	ret = conn_bind(conn);
	if (ret)
		return ret;
	ret = conn_to_init(conn);
	if (ret)
		return ret;

	req->version = RMP_WIRE_VERSION;
	req->mtu = conn->mtu;
	req->attempt = atomic_inc_return(&rmp_attempts);
	memcpy(req->uuid, &rmp_uuid, sizeof(req->uuid));
	ret = rmp_wire_put_req(data, sizeof(data), req);
	if (ret < 0)
		return ret;
	conn_param(conn, &param);
	param.private_data = data;
	param.private_data_len = ret;
	ret = rdma_connect(id, &param);
	if (ret)
		return ret;
	ret = conn_wait(conn, CONN_RESPONSE, deadline);
	if (ret)
		return ret;
	if (conn_is_iwarp(conn))
		return 0;

	if (conn->reply.mtu < IB_MTU_256 || conn->reply.mtu > conn->mtu) {
		conn->reason = RMPOOL_REASON_PROTOCOL;
		return -EPROTO;
	}
	conn->mtu = conn->reply.mtu;
	ret = conn_to_rts(conn);
	if (ret)
		return ret;
	rdma_lock_handler(id);
	ret = rdma_accept(id, NULL);	/* sends the third message */
	rdma_unlock_handler(id);
	if (ret)
		return ret;
	conn_set(conn, CONN_UP);
	return conn_wait(conn, CONN_UP, jiffies + 1);
}

/* -------------------------------------------------------------- accepting */

int rmp_conn_accept(struct rmp_conn *conn, struct rmp_cm_request *req,
		    long timeout)
{
	struct rmp_wire_reply reply = { .version = RMP_WIRE_VERSION };
	unsigned long deadline = jiffies + timeout;
	struct rdma_conn_param param;
	u8 data[RMP_WIRE_REPLY_MAX];
	int ret, len;

	rdma_lock_handler(req->id);
	conn->id = req->id;
	conn->id->context = conn;
	conn->reply.version = RMP_WIRE_VERSION;	/* none will come */
	rdma_unlock_handler(conn->id);
	rdma_set_ack_timeout(conn->id, clamp_t(u8, rmp_ack_timeout, 8, 22));

	ret = conn_bind(conn);
	if (ret)
		goto reject;
	conn->mtu = min_t(u32, conn->mtu, req->req.mtu);
	ret = -EPROTO;
	if (conn_limit_depth(conn, req->responder_resources,
			     req->initiator_depth))
		ret = conn_to_init(conn);
	if (!ret && !conn_is_iwarp(conn))
		ret = conn_to_rts(conn);
	if (ret)
		goto reject;

	reply.mtu = conn->mtu;
	memcpy(reply.uuid, &rmp_uuid, sizeof(reply.uuid));
	len = rmp_wire_put_reply(data, sizeof(data), &reply);
	if (len < 0) {
		ret = len;
		goto reject;
	}
	conn_param(conn, &param);
	param.private_data = data;
	param.private_data_len = len;
	rdma_lock_handler(conn->id);
	ret = rdma_accept(conn->id, &param);	/* rejects when it fails */
	rdma_unlock_handler(conn->id);
	rmp_cm_request_free(req);
	if (ret)
		return ret;
	return conn_wait(conn, CONN_UP, deadline);

reject:
	/* Take the id back, so that the request has one owner again. */
	rdma_lock_handler(req->id);
	req->id->context = NULL;
	rdma_unlock_handler(req->id);
	conn->id = NULL;
	rmp_cm_reject(req, RMP_REJECT_RESOURCES, false);
	return ret;
}

void rmp_conn_disconnect(struct rmp_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (conn->used)
		ib_modify_qp(conn->qp, &attr, IB_QP_STATE);
	if (conn->id && READ_ONCE(conn->state) >= CONN_RESPONSE)
		rdma_disconnect(conn->id);
}

void rmp_conn_drain(struct rmp_conn *conn)
{
	rmp_conn_disconnect(conn);
	if (conn->used)
		ib_drain_qp(conn->qp);
}

void rmp_conn_destroy(struct rmp_conn *conn)
{
	rmp_conn_drain(conn);
	/* No handler runs any more after this. */
	if (conn->id)
		rdma_destroy_id(conn->id);
	if (conn->qp)
		ib_destroy_qp(conn->qp);
	if (conn->cq)
		ib_free_cq(conn->cq);
	if (conn->dev)
		rmp_device_put(conn->dev);
	conn->id = NULL;
	conn->qp = NULL;
	conn->cq = NULL;
	conn->dev = NULL;
	conn->used = false;
}
