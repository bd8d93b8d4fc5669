/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CM_H
#define RMP_CM_H

#include <linux/wait.h>
#include <rdma/rdma_cm.h>
#include "device.h"
#include "wire.h"

struct rmp_conn;

/**
 * struct rmp_conn_ops - what the owner of a connection does
 * @setup: the device is known (@conn->dev): create CQ and QP with
 *	rmp_conn_create_qp(). Process context.
 * @lost: an established connection broke. Called once at most, from CM
 *	context: may queue work, nothing more.
 */
struct rmp_conn_ops {
	int (*setup)(struct rmp_conn *conn);
	void (*lost)(struct rmp_conn *conn);
};

/**
 * struct rmp_conn - one cm_id with its queue pair
 * @ops: of the owner
 * @dev: referenced, from setup to rmp_conn_destroy()
 * @port_num: port on @dev
 * @cq: made by rmp_conn_create_qp(), used by this QP only
 * @qp: ditto
 * @mtu: path MTU, the smaller of both ends' active ones
 * @access: IB_ACCESS_* that the peer has through @qp
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
	/* the rest belongs to cm.c */
	struct rdma_cm_id *id;
	wait_queue_head_t wait;
	u32 state;
	int error;
	u32 reason;
	bool fresh;
	struct rmp_wire_reply reply;
};

void rmp_conn_init(struct rmp_conn *conn, const struct rmp_conn_ops *ops,
		   int access);

/* From setup: allocates a CQ of @send_wr + @recv_wr + 2 entries and the QP.
 * @cqe_hint chooses the completion vector.
 */
int rmp_conn_create_qp(struct rmp_conn *conn, struct ib_pd *pd, u32 send_wr,
		       u32 recv_wr, enum ib_poll_context ctx, int cqe_hint);

/* Puts the QP in error and tells the peer; completions with errors follow. */
void rmp_conn_disconnect(struct rmp_conn *conn);
/* Disconnects, waits until every work request has completed, frees all. May be
 * called in any state, also when never connected; not from a handler.
 */
void rmp_conn_destroy(struct rmp_conn *conn);

#endif /* RMP_CM_H */
