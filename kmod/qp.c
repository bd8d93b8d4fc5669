// SPDX-License-Identifier: GPL-2.0
/*
 * Data queue pairs: posting slices in chains and seeing them end.
 *
 * Slices are preallocated, one for each work request that fits. A turn of the
 * flow puts them on qp->chain; whoever ran it then posts the chain with one
 * ib_post_send(), under qp->post_lock, which makes the order of qp->posted that
 * of the send queue. Only the last of a chain and every 16th are signalled: a
 * completion stands for all posted before it. On an error the rest come back
 * one by one, flushed; the queue pair is taken out of the schedule at the first
 * of them and destroyed by the owner of the rail. What they carried is kept to be
 * posted again (repeat.c).
 *
 * Context: posting from process context and from the completion handler
 * (softirq). post_lock and flow->lock disable bottom halves, which soft-RoCE on
 * 6.1 also needs to run its transmit tasklet at once.
 *
 * Lifetime: made by rmp_qp_create(), ended by rmp_qp_drain(), which takes it out
 * of the schedule, waits for those who are about to post, disconnects and drains
 * (every slice ends), and freed by rmp_qp_destroy(). A turn that has put slices on
 * the chain holds a reference until they are posted.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "domain.h"
#include "repeat.h"

static unsigned int rmp_qp_depth = 128;
module_param_named(qp_depth, rmp_qp_depth, uint, 0444);
MODULE_PARM_DESC(qp_depth, "work requests in flight per queue pair, 16 to 4096 (default 128)");

static unsigned int rmp_qp_window = 8U << 20;
module_param_named(qp_window, rmp_qp_window, uint, 0444);
MODULE_PARM_DESC(qp_window, "bytes in flight per queue pair before no further slice is posted (default 8388608)");

static unsigned int rmp_max_slice = 1U << 20;
module_param_named(max_slice, rmp_max_slice, uint, 0444);
MODULE_PARM_DESC(max_slice, "most bytes in one work request, 4096 to 1073741824 (default 1048576)");

#define RMP_SIGNAL_EVERY	16

static struct rmp_qp *to_qp(struct rmp_conn *conn)
{
	return container_of(conn, struct rmp_qp, conn);
}

static void qp_put(struct rmp_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->unused);
}

/* Out of the schedule; what is posted ends by itself. */
static void qp_stop(struct rmp_qp *qp)
{
	struct rmp_flow *flow = qp->flow;
	struct rmp_sched_rail *r = &flow->rails[qp->rail->index];
	bool others = false;
	u32 i;

	spin_lock_bh(&flow->lock);
	if (qp->up) {
		qp->up = false;
		/* Its successor may be there already. */
		if (r->qps[qp->index] == &qp->s)
			r->qps[qp->index] = NULL;
		for (i = 0; i < RMP_SCHED_QPS; i++)
			others |= !!r->qps[i];
		if (!others) {
			flow->sched.rails[qp->rail->index] = NULL;
			rmp_lanes_changed(flow);
		}
	}
	spin_unlock_bh(&flow->lock);
}

static void qp_failed(struct rmp_qp *qp)
{
	qp_stop(qp);
	rmp_peer_qp_failed(qp->rail, &qp->conn);
}

/* ---------------------------------------------------------------- posting */

struct rmp_slice *rmp_qp_slice(struct rmp_qp *qp)
{
	struct rmp_slice *slice;

	slice = list_first_entry_or_null(&qp->free, struct rmp_slice, node);
	if (slice)
		list_move_tail(&slice->node, &qp->chain);
	return slice;
}

/* qp->post_lock held. Afterwards @failed has what the queue pair did not take. */
static void qp_post_chain(struct rmp_qp *qp, struct list_head *chain,
			  struct list_head *failed)
{
	const struct ib_send_wr *bad = NULL;
	struct rmp_slice *slice, *prev = NULL, *first;
	LIST_HEAD(taken);
	u32 nr = 0;
	int ret;

	first = list_first_entry(chain, struct rmp_slice, node);
	list_for_each_entry(slice, chain, node) {
		bool last = list_is_last(&slice->node, chain);

		slice->wr.wr.send_flags = last || ++nr % RMP_SIGNAL_EVERY == 0 ?
					  IB_SEND_SIGNALED : 0;
		slice->wr.wr.next = NULL;
		if (prev)
			prev->wr.wr.next = &slice->wr.wr;
		prev = slice;
	}
	list_splice_tail_init(chain, &qp->posted);
	ret = ib_post_send(qp->conn.qp, &first->wr.wr, &bad);
	if (likely(!ret))
		return;

	/* From the bad one on nothing was taken. What was may have no signalled
	 * one behind it: it ends when the queue pair is drained.
	 */
	slice = bad ? container_of(bad, struct rmp_slice, wr.wr) : first;
	list_cut_before(&taken, &qp->posted, &slice->node);
	list_splice_init(&qp->posted, failed);
	list_splice(&taken, &qp->posted);
}

static void qp_post_failed(struct rmp_qp *qp, struct list_head *slices)
{
	qp_failed(qp);
	while (!list_empty(slices))
		rmp_flow_slices_failed(qp, slices, IB_WC_WR_FLUSH_ERR);
	/* No completion comes that would go on with what waits. */
	rmp_flow_kick(qp->flow);
}

void rmp_qp_post_list(struct list_head *touched)
{
	struct rmp_qp *qp, *next;
	LIST_HEAD(failed);
	LIST_HEAD(chain);

	/* Else the first queue pair's tasklet would do its whole chain, here and
	 * now, before the next queue pair gets its own.
	 */
	local_bh_disable();
	list_for_each_entry_safe(qp, next, touched, touched) {
		spin_lock_bh(&qp->post_lock);
		spin_lock(&qp->flow->lock);
		list_del_init(&qp->touched);
		list_splice_init(&qp->chain, &chain);
		spin_unlock(&qp->flow->lock);
		if (!list_empty(&chain))
			qp_post_chain(qp, &chain, &failed);
		spin_unlock_bh(&qp->post_lock);
		if (unlikely(!list_empty(&failed)))
			qp_post_failed(qp, &failed);
		qp_put(qp);
	}
	local_bh_enable();
}

/* ------------------------------------------------------------- completions */

static void qp_slice_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rmp_slice *slice = container_of(wc->wr_cqe, struct rmp_slice,
					       cqe);
	enum ib_wc_status status = wc->status;
	struct rmp_qp *qp = slice->qp;
	LIST_HEAD(done);

	spin_lock_bh(&qp->post_lock);
	list_cut_position(&done, &qp->posted, &slice->node);
	spin_unlock_bh(&qp->post_lock);
	if (unlikely(status != IB_WC_SUCCESS))
		qp_failed(qp);
	rmp_flow_slices_done(qp, &done, status);
	if (rmp_flow_turn(qp->flow))
		queue_work(rmp_wq, &qp->flow->turns);
}

/* -------------------------------------------------------------- life cycle */

static int qp_setup(struct rmp_conn *conn)
{
	struct rmp_qp *qp = to_qp(conn);
	struct rmp_port port;
	int ret;

	/* Keys of one device mean something else on another, and an address may
	 * belong to two.
	 */
	if (conn->dev != qp->rail->dev)
		return -ENODEV;
	ret = rmp_device_port(conn->dev, conn->port_num, &port);
	if (ret)
		return ret;
	if (!port.max_msg)
		return -ENODEV;
	qp->max_slice = min_t(u32, clamp(rmp_max_slice, 4096U, 1U << 30),
			      port.max_msg);
	qp->domain = rmp_domain_get(conn->dev, qp->flow->group);
	if (IS_ERR(qp->domain)) {
		ret = PTR_ERR(qp->domain);
		qp->domain = NULL;
		return ret;
	}
	return rmp_conn_create_qp(conn, qp->domain->pd, qp->s.depth, 0,
				  IB_POLL_SOFTIRQ, qp->index);
}

static void qp_lost(struct rmp_conn *conn)
{
	qp_failed(to_qp(conn));
}

static const struct rmp_conn_ops qp_conn_ops = {
	.setup = qp_setup,
	.lost = qp_lost,
};

struct rmp_conn *rmp_qp_create(struct rmp_rail *rail, u32 index)
{
	struct rmp_qp *qp;
	u32 i;

	qp = kzalloc_node(sizeof(*qp), GFP_KERNEL, rail->dev->node);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->rail = rail;
	qp->flow = rail->flow;
	qp->index = index;
	qp->s.depth = clamp(rmp_qp_depth, 16U, 4096U);
	qp->s.window = max(rmp_qp_window, 4096U);
	INIT_LIST_HEAD(&qp->free);
	INIT_LIST_HEAD(&qp->chain);
	INIT_LIST_HEAD(&qp->touched);
	INIT_LIST_HEAD(&qp->posted);
	spin_lock_init(&qp->post_lock);
	refcount_set(&qp->ref, 1);
	init_completion(&qp->unused);
	qp->slices = kvcalloc(qp->s.depth, sizeof(*qp->slices), GFP_KERNEL);
	if (!qp->slices) {
		kfree(qp);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < qp->s.depth; i++) {
		struct rmp_slice *slice = &qp->slices[i];

		slice->qp = qp;
		slice->cqe.done = qp_slice_done;
		slice->wr.wr.wr_cqe = &slice->cqe;
		slice->wr.wr.sg_list = &slice->sge;
		slice->wr.wr.num_sge = 1;
		list_add_tail(&slice->node, &qp->free);
		cond_resched();
	}
	rmp_conn_init(&qp->conn, &qp_conn_ops, IB_ACCESS_REMOTE_READ |
					       IB_ACCESS_REMOTE_WRITE);
	if (!rmp_hold_create(qp)) {
		kvfree(qp->slices);
		kfree(qp);
		return ERR_PTR(-ENOMEM);
	}
	return &qp->conn;
}

void rmp_qp_start(struct rmp_conn *conn)
{
	struct rmp_qp *qp = to_qp(conn);
	struct rmp_flow *flow = qp->flow;
	struct rmp_sched_rail *r = &flow->rails[qp->rail->index];

	spin_lock_bh(&flow->lock);
	/* It may have broken since it was connected. */
	if (rmp_conn_up(conn)) {
		qp->up = true;
		r->speed = qp->rail->speed_mbps;
		r->qps[qp->index] = &qp->s;
		flow->sched.rails[qp->rail->index] = r;
		if (qp->rail->extra)
			flow->extra |= BIT(qp->rail->index);
		else
			flow->extra &= ~BIT(qp->rail->index);
		rmp_lanes_changed(flow);
	}
	spin_unlock_bh(&flow->lock);
}

void rmp_qp_drain(struct rmp_conn *conn)
{
	struct rmp_qp *qp = to_qp(conn);

	qp_stop(qp);
	qp_put(qp);
	wait_for_completion(&qp->unused);
	rmp_conn_drain(conn);
	/* Nothing should be left; if a driver lost a completion, it ends here. */
	while (!list_empty(&qp->posted)) {
		rmp_flow_slices_failed(qp, &qp->posted, IB_WC_WR_FLUSH_ERR);
		cond_resched();
	}
	/* Before it is destroyed, which may take a driver long. */
	rmp_hold_drained(qp);
}

void rmp_qp_destroy(struct rmp_conn *conn)
{
	struct rmp_qp *qp = to_qp(conn);

	rmp_conn_destroy(conn);
	if (qp->domain)
		rmp_domain_put(qp->domain);
	kvfree(qp->slices);
	kfree(qp);
}
