// SPDX-License-Identifier: GPL-2.0
/*
 * What a dead queue pair carried, until it may be posted again.
 *
 * When a queue pair dies, each slice that failed with it leaves a piece, which is an
 * offset and a length of its request. Pieces are held until they can do no harm: those
 * of gets until all that was posted on the queue pair has ended; those of puts, in
 * addition, until the peer has confirmed that its end of the queue pair takes no more
 * packets (fence.c), since one that was delayed would overwrite what is put later. Then
 * the flow cuts slices out of them as it does out of the rest of a request, on another
 * rail if there is one. Bytes that were posted max_failover times and once more fail
 * their request.
 *
 * A piece is given up, and its request with it or for what its status says, when the
 * region is gone on either side or the session has ended; and at the deadline of the
 * request, which is then reported with what is not known. Nothing of a piece is with a
 * device any more, so nobody has to wait for a held one to let go of memory.
 *
 * Locking: flow->lock guards pieces and holds. Pieces are made in softirq, from what
 * memory there is: without any, or when there are too many, the request fails.
 *
 * Lifetime: a hold is made with its queue pair and stays in the list of the flow until
 * that has been drained and no piece is left. Requests are ended without the lock.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "repeat.h"

/* Pieces of one flow: twice what all queue pairs of all rails carry as a rule. A peer
 * that kills one after the other and never answers does not get us to keep more, and
 * those of one request are given up in one step.
 */
#define RMP_PIECES_MAX	16384

static unsigned int rmp_max_failover = 4;
module_param_named(max_failover, rmp_max_failover, uint, 0644);
MODULE_PARM_DESC(max_failover, "how often a slice is posted again when its queue pair died, before its request fails; 0: never (default 4)");

/**
 * struct rmp_hold - the pieces of one queue pair
 * @node: in the flow's list
 * @id: what the peer is asked by
 * @drained: all of it has ended here
 * @fenced: nor comes anything more at the peer
 * @users: who is letting go of pieces, in steps
 * @gets: held pieces of gets
 * @puts: of puts
 */
struct rmp_hold {
	struct list_head node;
	u32 id;
	bool drained;
	bool fenced;
	u32 users;
	struct list_head gets;
	struct list_head puts;
};

/* ------------------------------------------------------- with flow->lock held */

/* Frees it once there is nothing to wait for. */
static void hold_look(struct rmp_hold *hold)
{
	if (!hold->drained || hold->users || !list_empty(&hold->gets) ||
	    !list_empty(&hold->puts))
		return;
	list_del(&hold->node);
	kfree(hold);
}

static void piece_free(struct rmp_piece *piece)
{
	struct rmp_hold *hold = piece->hold;

	piece->req->flow->nr_pieces--;
	list_del(&piece->of_req);
	if (hold) {
		list_del(&piece->of_hold);
		hold_look(hold);
	}
	kfree(piece);
}

/* Of errors that need not be of the slice's own making: soft-RoCE says LOC_QP_OP_ERR
 * when the interface takes no packet.
 */
static bool worth_repeating(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_FATAL_ERR:
	case IB_WC_GENERAL_ERR:
		return true;
	default:
		return false;
	}
}

bool rmp_repeat_keep(struct rmp_qp *qp, struct rmp_request *req,
		     const struct rmp_slice *slice, enum ib_wc_status status)
{
	bool put = req->op == RMPOOL_OP_PUT;
	bool cancelled = put && req->status == -ECANCELED;
	struct rmp_piece *piece;

	/* A put that was cancelled is not over before nothing of it can come any
	 * more. Who had its error or its report has had it, and what was given up is
	 * not waited for.
	 */
	if (req->reported || req->abandoned || (req->status && !cancelled) ||
	    rmp_flow_blocked(req))
		return false;
	if (!cancelled && (!worth_repeating(status) ||
			   slice->tries >= READ_ONCE(rmp_max_failover)))
		return false;
	/* Nobody can be asked about it. */
	if (put && !qp->conn.peer_qpn)
		return false;
	if (qp->flow->nr_pieces >= RMP_PIECES_MAX)
		return false;
	piece = kmalloc(sizeof(*piece), GFP_ATOMIC | __GFP_NOWARN);
	if (!piece)
		return false;
	qp->flow->nr_pieces++;
	piece->req = req;
	piece->hold = qp->hold;
	piece->pos = slice->pos;
	piece->len = slice->len;
	piece->tries = slice->tries + 1;
	piece->rail = qp->rail->index;
	list_add_tail(&piece->of_req, &req->pieces);
	list_add_tail(&piece->of_hold, put ? &qp->hold->puts : &qp->hold->gets);
	return true;
}

struct rmp_piece *rmp_repeat_next(struct rmp_request *req)
{
	struct rmp_piece *piece;

	piece = list_first_entry_or_null(&req->pieces, struct rmp_piece, of_req);
	return piece && !piece->hold ? piece : NULL;
}

void rmp_repeat_took(struct rmp_piece *piece, u32 len)
{
	struct rmp_request *req = piece->req;

	if (req->attempts < U8_MAX)
		req->attempts++;
	piece->pos += len;
	piece->len -= len;
	if (!piece->len)
		piece_free(piece);
}

void rmp_repeat_stop(struct rmp_request *req)
{
	struct rmp_piece *piece, *next;

	list_for_each_entry_safe(piece, next, &req->pieces, of_req) {
		if (!piece->hold || req->op != RMPOOL_OP_PUT)
			piece_free(piece);
	}
}

void rmp_repeat_drop(struct rmp_request *req)
{
	struct rmp_piece *piece, *next;

	list_for_each_entry_safe(piece, next, &req->pieces, of_req)
		piece_free(piece);
}

/* ---------------------------------------------------------------------- holds */

/* flow->lock held: nothing can come of it any more. */
static void piece_release(struct rmp_flow *flow, struct rmp_piece *piece,
			  struct list_head *done)
{
	struct rmp_request *req = piece->req;

	list_del(&piece->of_hold);
	piece->hold = NULL;
	if (req->status) {
		piece_free(piece);
		if (!list_empty(&req->active) && rmp_flow_idle(req))
			list_add_tail(&req->done_node, done);
		return;
	}
	list_move(&piece->of_req, &req->pieces);
	/* It came before all that waits, or that a rail is full of. */
	req->ticket = 0;
	list_move(&req->queue, &flow->queue[req->prio]);
}

static struct rmp_piece *hold_next(struct rmp_hold *hold)
{
	struct list_head *list = &hold->gets;

	if (!hold->drained)
		return NULL;
	if (list_empty(list) && hold->fenced)
		list = &hold->puts;
	return list_first_entry_or_null(list, struct rmp_piece, of_hold);
}

/* Lets go of what may go, without flow->lock; hold->users counts the caller, once. True
 * when there was any.
 */
static bool hold_release(struct rmp_flow *flow, struct rmp_hold *hold)
{
	bool any = false, more;
	struct rmp_piece *piece;
	u32 n;

	do {
		LIST_HEAD(done);

		spin_lock_bh(&flow->lock);
		for (n = 0; n < RMP_SWEEP; n++) {
			piece = hold_next(hold);
			if (!piece)
				break;
			piece_release(flow, piece, &done);
			any = true;
		}
		more = n == RMP_SWEEP;
		if (!more) {
			hold->users--;
			hold_look(hold);
		}
		spin_unlock_bh(&flow->lock);
		rmp_request_end_list(&done);
		cond_resched();
	} while (more);
	return any;
}

bool rmp_hold_create(struct rmp_qp *qp)
{
	struct rmp_flow *flow = qp->flow;
	struct rmp_hold *hold;

	hold = kzalloc(sizeof(*hold), GFP_KERNEL);
	if (!hold)
		return false;
	INIT_LIST_HEAD(&hold->gets);
	INIT_LIST_HEAD(&hold->puts);
	spin_lock_bh(&flow->lock);
	hold->id = ++flow->next_hold;
	list_add_tail(&hold->node, &flow->holds);
	spin_unlock_bh(&flow->lock);
	qp->hold = hold;
	qp->conn.fence = hold->id;
	return true;
}

void rmp_hold_drained(struct rmp_qp *qp)
{
	struct rmp_flow *flow = qp->flow;
	struct rmp_hold *hold = qp->hold;

	spin_lock_bh(&flow->lock);
	qp->hold = NULL;
	hold->drained = true;
	hold->users++;
	spin_unlock_bh(&flow->lock);
	if (hold_release(flow, hold))
		rmp_flow_kick(flow);
}

void rmp_hold_fenced(struct rmp_flow *flow, u32 id)
{
	struct rmp_hold *hold, *found = NULL;

	spin_lock_bh(&flow->lock);
	list_for_each_entry(hold, &flow->holds, node) {
		if (hold->id == id) {
			found = hold;
			hold->fenced = true;
			hold->users++;
			break;
		}
	}
	spin_unlock_bh(&flow->lock);
	if (found && hold_release(flow, found))
		rmp_flow_kick(flow);
}
