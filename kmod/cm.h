/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CM_H
#define RMP_CM_H

#include <linux/wait.h>
#include <rdma/rdma_cm.h>
#include "device.h"
#include "private.h"

struct rmp_cm_request;
struct rmp_conn;
struct rmp_rail;

/**
 * struct rmp_conn_ops - what the owner of a connection does
 * @setup: the device is known (@conn->dev): create CQ and QP with
 *	rmp_conn_create_qp(). May lower @conn->mtu. Process context.
 * @ready: optional: the QP is in INIT: post receives. Process context.
 * @lost: an established connection broke. Called once at most, from CM
 *	context: may queue work, nothing more.
 */
struct rmp_conn_ops {
	int (*setup)(struct rmp_conn *conn);
	int (*ready)(struct rmp_conn *conn);
	void (*lost)(struct rmp_conn *conn);
};

/**
 * struct rmp_conn - one cm_id with its queue pair
 * @ops: of the owner
 * @dev: referenced, from setup to rmp_conn_destroy()
 * @port_num: port on @dev
 * @cq: made by rmp_conn_create_qp(), used by this QP only
 * @qp: ditto
 * @mtu: path MTU, the smaller of what both ends can use
 * @access: IB_ACCESS_* that the peer has through @qp
 * @qpn: number of @qp; @peer_qpn: of the one at the other end, 0: not known (iWARP)
 * @fence: of data queue pairs: by what the owner is told of the peer's end of it, see
 *	&struct rmp_peer_ops.qp_fenced
 *
 * Embedded in the owner's object. The owner serialises connect, accept and
 * destroy; events come in between and only set @state under @wait.lock.
 */
struct rmp_conn {
	const struct rmp_conn_ops *ops;
	struct rmp_device *dev;
	u32 port_num;
	struct ib_cq *cq;
	struct ib_qp *qp;
	enum ib_mtu mtu;
	int access;
	u32 qpn;
	u32 peer_qpn;
	u32 fence;
	/* this belongs to fence.c */
	struct list_head end_node;
	u32 end_rail;
	bool end_asked;
	u32 end_id;
	/* this to dying.c */
	struct work_struct dying;
	struct rmp_rail *dying_of;
	/* and the rest to cm.c */
	struct rdma_cm_id *id;
	wait_queue_head_t wait;
	u32 state;
	bool used;
	int error;
	u32 reason;
	u8 responder_resources;
	u8 initiator_depth;
	struct rmp_wire_reply reply;
};

/**
 * rmp_conn_connect - connect, from process context
 * @conn: initialised
 * @src: local address to use, or NULL
 * @dst: where to
 * @req: private data; version, mtu and uuid are filled in here
 * @timeout: jiffies for the whole
 *
 * On error @conn->reason (enum rmpool_reason) and, when the peer rejected it,
 * @conn->reply.reject say why; the caller then calls rmp_conn_destroy().
 */
int rmp_conn_connect(struct rmp_conn *conn, const struct sockaddr_storage *src,
		     const struct sockaddr_storage *dst,
		     struct rmp_wire_req *req, long timeout);
/* Consumes @req. On success the connection is established. */
int rmp_conn_accept(struct rmp_conn *conn, struct rmp_cm_request *req,
		    long timeout);
/* Any context: makes a connect or accept under way return -ECANCELED. */
void rmp_conn_abort(struct rmp_conn *conn);

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops,
		   int access);

/* From setup: allocates a CQ of @send_wr + @recv_wr + 2 entries and the QP.
 * @cqe_hint chooses the completion vector.
 */
int rmp_conn_create_qp(struct rmp_conn *conn, struct ib_pd *pd, u32 send_wr,
		       u32 recv_wr, enum ib_poll_context ctx, int cqe_hint);

/* Any context: whether it is established and not known to be broken; tells that
 * it is broken, without calling lost.
 */
bool rmp_conn_up(const struct rmp_conn *conn);
/* What a connect under way waits for, as the reason if it does not come. */
u32 rmp_conn_waits_for(const struct rmp_conn *conn);
void rmp_conn_set_lost(struct rmp_conn *conn);

/* Puts the QP in error and tells the peer; completions with errors follow. */
void rmp_conn_disconnect(struct rmp_conn *conn);
/* Disconnects, and waits until every work request has completed. After that no packet
 * of the peer is taken by the QP. Not from a handler; rmp_conn_destroy() follows.
 */
void rmp_conn_drain(struct rmp_conn *conn);
/* The same, and frees all. May be called in any state, also when never connected;
 * not from a handler.
 */
void rmp_conn_destroy(struct rmp_conn *conn);

/* Of the events of a cm_id that has a conn, or none yet (context NULL). */
int rmp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

#endif /* RMP_CM_H */
