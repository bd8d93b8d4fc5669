// SPDX-License-Identifier: GPL-2.0
/*
 * The queue to one peer: cutting slices when there is room, and accounting for
 * those that ended.
 *
 * A turn takes the first request of the highest class that can go on, lets the
 * scheduler choose rail and queue pair, cuts one slice, and so on, up to
 * RMP_TURN slices; then it posts what it cut, one chain per queue pair. Turns
 * run in whichever context made room or brought work: the submitter, and the
 * completion handler, which leaves what is too much for it to a work item.
 *
 * A request whose rails have no room waits for these, and for nothing else, while other rails
 * have room (lanes.c).
 *
 * A request that no rail reaches, or whose region is suspect (watch.c), is
 * parked, so that it does not stand before others; if none ever will reach it (route.c),
 * it ends. Whoever makes a way, or may have made one, says so by rmp_flow_kick(): what
 * is parked is then queued again. So is a request whose keys the peer has replaced
 * (renew.c), while slices of it are in flight with the old ones: the last of these queues
 * it again.
 *
 * What was on a queue pair that died comes back to its request in pieces
 * (repeat.c), and goes before the rest of it.
 *
 * The sweep ends requests that are overdue or cannot go on: it runs at the
 * earliest deadline, and when a region was revoked or a session ended.
 *
 * Locking: flow->lock (BH) guards everything of a flow and its requests. It is
 * one lock per peer, taken once per turn; see docs/design.md for why there is
 * not one per rail. Requests are ended, and all that calls out is done, without
 * it.
 *
 * Lifetime: of the peer. A request has references on all it uses (flow.h), so a
 * flow with requests has a peer.
 */
#include <linux/slab.h>
#include "repeat.h"
#include "slice.h"
#include "staging.h"

/* ----------------------------------------------------------------- requests */

bool rmp_flow_idle(struct rmp_request *req)
{
	if (req->inflight || req->left || !list_empty(&req->pieces))
		return false;
	/* What it got may be in pages that the owner let go of meanwhile: who finds
	 * that out kicks us.
	 */
	if (!req->status && req->op == RMPOOL_OP_GET &&
	    rmp_region_suspect(req->region) && !READ_ONCE(req->region->dead))
		return false;
	if (!list_empty(&req->queue))
		list_del_init(&req->queue);
	list_del_init(&req->active);
	return true;
}

bool rmp_flow_stop(struct rmp_request *req, s32 status)
{
	lockdep_assert_held(&req->flow->lock);
	if (list_empty(&req->active))
		return false;		/* somebody else is ending it */
	if (!req->status)
		req->status = status;
	req->left = 0;
	rmp_repeat_stop(req);
	if (!list_empty(&req->queue))
		list_del_init(&req->queue);
	return rmp_flow_idle(req);
}

bool rmp_flow_abandon(struct rmp_request *req, s32 status)
{
	/* Part of it broke with the connection. */
	if (status == -ENOTCONN && !list_empty(&req->pieces))
		status = -ECONNRESET;
	/* What is with a device now is not kept either, should it fail there. */
	req->abandoned = true;
	rmp_repeat_drop(req);
	return rmp_flow_stop(req, status);
}

/* The end of a session takes all keys as well, but after all its rails. */
s32 rmp_flow_blocked(const struct rmp_request *req)
{
	u32 access = req->op == RMPOOL_OP_PUT ? RMPOOL_ACCESS_REMOTE_WRITE :
						RMPOOL_ACCESS_REMOTE_READ;

	if (READ_ONCE(req->region->dead) || rmp_region_stale(req->region))
		return -ESTALE;
	/* It was allowed when the request came. */
	if (access & ~READ_ONCE(req->rr->access))
		return -EACCES;
	if (READ_ONCE(req->rr->revoked) || READ_ONCE(req->rr->stale))
		return rmp_sched_any(&req->flow->sched, ~0U) ? -ESTALE :
							       -ENOTCONN;
	return 0;
}

static void flow_note_deadline(struct rmp_flow *flow, unsigned long deadline)
{
	if (time_before(deadline, flow->next_deadline)) {
		flow->next_deadline = deadline;
		mod_delayed_work(rmp_wq, &flow->sweep,
				 max((long)(deadline - jiffies), 0L));
	}
}

void rmp_flow_add(struct rmp_flow *flow, struct list_head *requests)
{
	struct rmp_request *req, *next;

	spin_lock_bh(&flow->lock);
	list_for_each_entry_safe(req, next, requests, done_node) {
		list_del_init(&req->done_node);
		list_add_tail(&req->active, &flow->active);
		list_add_tail(&req->queue, &flow->queue[req->prio]);
		req->ticket = ++flow->next_ticket;
		/* The sweep of who took its region back has not met it. */
		flow_note_deadline(flow, rmp_flow_blocked(req) ? jiffies :
								req->deadline);
	}
	spin_unlock_bh(&flow->lock);
}

/* --------------------------------------------------------------------- turns */

/* Rails that reach a byte of a request on both sides. */
static u32 request_rails(struct rmp_flow *flow, const struct rmp_request *req,
			 u64 local_pos, u64 remote_pos)
{
	u32 mask = 0, i, key;
	u64 iova;

	for (i = 0; i < RMP_SCHED_RAILS; i++) {
		const struct rmp_sched_rail *r = flow->sched.rails[i];
		const struct rmp_rail *rail;
		u32 q;

		if (!r)
			continue;
		for (q = 0; !r->qps[q]; q++)
			;
		rail = container_of(r->qps[q], struct rmp_qp, s)->rail;
		if (rmp_region_local(req->region, flow->group, rail->dev->index,
				     local_pos, &iova, &key) &&
		    rmp_rregion_remote(req->rr, rail->remote_dev, remote_pos,
				       &iova, &key))
			mask |= 1U << i;
	}
	return mask;
}

/* Where it goes on, in both regions: what dead queue pairs carried comes first. */
static void request_next(const struct rmp_request *req, const struct rmp_piece *piece,
			 u64 *local_pos, u64 *remote_pos)
{
	*local_pos = piece ? piece->pos : req->local_pos;
	*remote_pos = req->remote_pos - (req->local_pos - *local_pos);
}

/* Cuts one slice of @req. False: none of @rails has room, or there is none for it. */
static bool request_cut(struct rmp_flow *flow, struct rmp_request *req,
			struct list_head *touched, u32 *rails)
{
	u64 local, remote, local_rest, remote_rest, local_pos, remote_pos, left;
	struct rmp_piece *piece = rmp_repeat_next(req);
	u32 mask = 0, rail, q, lkey, rkey;
	struct rmp_mapping *map;
	struct rmp_slice *slice;
	struct rmp_qp *qp;

	request_next(req, piece, &local_pos, &remote_pos);
	left = piece ? piece->len : req->left;
	/* Who finds out what became of it kicks us. */
	if (!rmp_region_suspect(req->region))
		mask = request_rails(flow, req, local_pos, remote_pos);
	/* The other queue pairs of a rail seldom are better than the one that died. */
	if (piece && mask & ~(1U << piece->rail))
		mask &= ~(1U << piece->rail);
	/* Else devices that have one more rail than others would carry more. */
	if (mask & ~flow->extra)
		mask &= ~flow->extra;
	*rails = mask;
	if (!mask || !rmp_sched_pick(&flow->sched, mask, &rail, &q))
		return false;
	qp = container_of(flow->sched.rails[rail]->qps[q], struct rmp_qp, s);
	local_rest = rmp_region_use(req->region, flow->group, qp->rail->dev->index,
				    local_pos, &local, &lkey, &map);
	remote_rest = rmp_rregion_remote(req->rr, qp->rail->remote_dev,
					 remote_pos, &remote, &rkey);
	/* The peer may have taken the keys of a device back since the look above. */
	if (!local_rest || !remote_rest) {
		rmp_region_unuse(map);
		*rails = 0;
		return false;
	}
	if (req->stage)
		local_rest = rmp_stage_rest(req->stage, local_pos, local_rest);
	slice = rmp_qp_slice(qp);
	if (WARN_ON_ONCE(!slice)) {
		rmp_region_unuse(map);
		*rails = 0;
		return false;
	}

	slice->req = req;
	slice->map = map;
	slice->pos = local_pos;
	slice->tries = piece ? piece->tries : 0;
	slice->len = rmp_slice_length(left, local_rest, remote_rest,
				      qp->max_slice);
	slice->sge.addr = local;
	slice->sge.length = slice->len;
	slice->sge.lkey = lkey;
	slice->wr.remote_addr = remote;
	slice->wr.rkey = rkey;
	slice->wr.wr.opcode = req->op == RMPOOL_OP_PUT ? IB_WR_RDMA_WRITE :
							 IB_WR_RDMA_READ;
	rmp_sched_charge(&flow->sched, rail, q, slice->len);
	atomic64_add(slice->len, &qp->rail->outstanding);

	req->rail = qp->rail->index;
	if (piece) {
		rmp_repeat_took(piece, slice->len);
	} else {
		req->local_pos += slice->len;
		req->remote_pos += slice->len;
		req->left -= slice->len;
	}
	req->inflight++;
	req->posted++;
	if (!req->left && !rmp_repeat_next(req))
		list_del_init(&req->queue);
	if (list_empty(&qp->touched)) {
		refcount_inc(&qp->ref);
		list_add_tail(&qp->touched, touched);
	}
	return true;
}

/* No rail reaches what is next of @req: it waits, or is over. */
static void request_set_aside(struct rmp_request *req, struct list_head *done)
{
	u64 local_pos, remote_pos;

	request_next(req, rmp_repeat_next(req), &local_pos, &remote_pos);
	if (!rmp_route_none(req, local_pos, remote_pos))
		list_move_tail(&req->queue, &req->flow->parked[req->prio]);
	else if (rmp_flow_stop(req, -ENETUNREACH))
		list_add_tail(&req->done_node, done);
}

/* Fills the queue pairs from one class. False: nothing of a lower one may go on. */
static bool flow_turn_class(struct rmp_flow *flow, u32 class, u32 *budget,
			    struct list_head *touched, struct list_head *done)
{
	struct rmp_request *req;

	while (*budget) {
		u32 rails;
		s32 status;

		req = rmp_lanes_next(flow, class);
		if (!req)
			break;
		if (!rmp_request_renew(req)) {
			/* The last of its slices puts it back. */
			list_move_tail(&req->queue, &flow->parked[class]);
			--*budget;
			continue;
		}
		status = rmp_flow_blocked(req);
		if (status) {
			if (rmp_flow_abandon(req, status))
				list_add_tail(&req->done_node, done);
		} else if (request_cut(flow, req, touched, &rails)) {
			rmp_lanes_went_on(req);
		} else if (!rails) {
			request_set_aside(req, done);
		} else if (!rmp_lanes_wait(req, rails)) {
			return false;
		}
		--*budget;
	}
	return true;
}

bool rmp_flow_turn(struct rmp_flow *flow)
{
	static const u8 order[RMP_CLASSES] = {
		RMPOOL_CLASS_HIGH, RMPOOL_CLASS_NORMAL, RMPOOL_CLASS_BULK,
	};
	u32 budget = RMP_TURN, i;
	LIST_HEAD(touched);
	LIST_HEAD(done);

	spin_lock_bh(&flow->lock);
	for (i = 0; i < RMP_CLASSES; i++) {
		if (!flow_turn_class(flow, order[i], &budget, &touched, &done))
			break;
	}
	spin_unlock_bh(&flow->lock);
	rmp_qp_post_list(&touched);
	rmp_request_end_list(&done);
	return !budget;
}

void rmp_flow_run(struct rmp_flow *flow)
{
	u32 turns = 0;

	/* What the flow has is others' too: who came by is not kept for it. */
	while (rmp_flow_turn(flow)) {
		if (++turns == RMP_TURNS) {
			queue_work(rmp_wq, &flow->turns);
			break;
		}
		cond_resched();
	}
}

static void flow_turns_work(struct work_struct *work)
{
	rmp_flow_run(container_of(work, struct rmp_flow, turns));
}

/* ------------------------------------------------------------ requests in pieces */

void rmp_flow_more(struct rmp_request *req, u64 bytes)
{
	struct rmp_flow *flow = req->flow;

	spin_lock_bh(&flow->lock);
	/* Else it has ended but for who adds to it. */
	if (!req->status) {
		req->left += bytes;
		if (list_empty(&req->queue))
			list_add_tail(&req->queue, &flow->queue[req->prio]);
	}
	spin_unlock_bh(&flow->lock);
}

void rmp_flow_copied(struct rmp_request *req, u64 bytes, s32 status)
{
	struct rmp_flow *flow = req->flow;
	bool idle;

	spin_lock_bh(&flow->lock);
	req->bytes += bytes;
	req->inflight--;
	idle = status ? rmp_flow_stop(req, status) : rmp_flow_idle(req);
	spin_unlock_bh(&flow->lock);
	if (idle)
		rmp_request_end(req);
}

/* --------------------------------------------------------------- completions */

static s32 status_of(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
		return -EREMOTEIO;
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

/* flow->lock held. */
static void slice_done(struct rmp_qp *qp, struct rmp_slice *slice,
		       enum ib_wc_status status, struct list_head *done)
{
	struct rmp_request *req = slice->req;
	bool ended;

	rmp_sched_credit(&qp->flow->rails[qp->rail->index], &qp->s, slice->len);
	rmp_region_unuse(slice->map);
	slice->map = NULL;
	slice->req = NULL;
	list_move(&slice->node, &qp->free);
	req->inflight--;
	req->posted--;
	if (status == IB_WC_SUCCESS) {
		if (!req->stage ||
		    !rmp_stage_arrived(req, slice->sge.addr, slice->len))
			req->bytes += slice->len;
	} else if (!req->wc_status) {
		req->wc_status = status;
		req->rail = qp->rail->index;
	}
	if (status == IB_WC_SUCCESS || rmp_repeat_keep(qp, req, slice, status))
		ended = !list_empty(&req->active) && rmp_flow_idle(req);
	else	/* What is not posted is not worth posting any more. */
		ended = rmp_flow_abandon(req, status_of(status));
	if (!ended && !req->posted && READ_ONCE(req->rr->next))
		ended = rmp_request_renewed(req);
	if (!ended)
		rmp_request_let_go(req);
	else
		list_add_tail(&req->done_node, done);
}

/* The first RMP_SWEEP of them: the lock is not held for thousands. */
static void slices_ended(struct rmp_qp *qp, struct list_head *slices,
			 enum ib_wc_status last, enum ib_wc_status others)
{
	struct rmp_rail *rail = qp->rail;
	u64 put = 0, get = 0, failed = 0, nr = 0, bytes = 0;
	struct rmp_slice *slice, *next;
	LIST_HEAD(done);

	spin_lock_bh(&qp->flow->lock);
	list_for_each_entry_safe(slice, next, slices, node) {
		enum ib_wc_status status = list_is_last(&slice->node, slices) ?
					   last : others;

		if (nr == RMP_SWEEP)
			break;
		nr++;
		bytes += slice->len;
		if (status != IB_WC_SUCCESS)
			failed++;
		else if (slice->req->op == RMPOOL_OP_PUT)
			put += slice->len;
		else
			get += slice->len;
		slice_done(qp, slice, status, &done);
	}
	spin_unlock_bh(&qp->flow->lock);
	atomic64_sub(bytes, &rail->outstanding);
	atomic64_add(nr, &rail->slices);
	if (put)
		atomic64_add(put, &rail->put_bytes);
	if (get)
		atomic64_add(get, &rail->get_bytes);
	if (failed)
		atomic64_add(failed, &rail->errors);
	rmp_request_end_list(&done);
}

void rmp_flow_slices_done(struct rmp_qp *qp, struct list_head *slices,
			  enum ib_wc_status status)
{
	while (!list_empty(slices))
		slices_ended(qp, slices, status, IB_WC_SUCCESS);
}

void rmp_flow_slices_failed(struct rmp_qp *qp, struct list_head *slices,
			    enum ib_wc_status status)
{
	slices_ended(qp, slices, status, status);
}

/* --------------------------------------------------------------------- sweep */

/* flow->lock held. What is to be done with one request. */
static void sweep_one(struct rmp_flow *flow, struct rmp_request *req,
		      struct list_head *done, struct list_head *early,
		      unsigned long *next)
{
	bool overdue = time_after_eq(jiffies, req->deadline);
	s32 status;

	/* What only waits for the peer (repeat.c), or is only copied (staging.c), lets go
	 * of old keys as well.
	 */
	rmp_request_renew(req);
	status = overdue ? -ETIMEDOUT : rmp_flow_blocked(req);
	if (!status ||
	    (!overdue && !req->left && list_empty(&req->pieces))) {
		/* Not overdue, and nothing more to post: it ends by itself, unless
		 * it had to wait for what its region is.
		 */
		if (rmp_flow_idle(req)) {
			list_add_tail(&req->done_node, done);
			return;
		}
		rmp_request_let_go(req);
		if (!req->reported && time_before(req->deadline, *next))
			*next = req->deadline;
		return;
	}
	if (overdue ? rmp_flow_stop(req, status) : rmp_flow_abandon(req, status)) {
		list_add_tail(&req->done_node, done);
		return;
	}
	rmp_request_let_go(req);
	if (!overdue) {
		if (!req->reported && time_before(req->deadline, *next))
			*next = req->deadline;
	} else if (!req->reported) {
		/* Slices in flight: say so now, they end when they end. So does
		 * what waits for the peer, for whom nobody waits any more. One
		 * more holds the request until it is reported.
		 */
		req->reported = true;
		req->inflight++;
		list_add_tail(&req->done_node, early);
	}
}

void rmp_flow_report_early(struct rmp_flow *flow, struct rmp_request *req)
{
	rmp_request_report(req, req->status, true, READ_ONCE(req->bytes));
	spin_lock_bh(&flow->lock);
	rmp_repeat_drop(req);
	spin_unlock_bh(&flow->lock);
	rmp_flow_copied(req, 0, 0);
}

static void sweep_report(struct rmp_flow *flow, struct list_head *early)
{
	struct rmp_request *req, *next;

	list_for_each_entry_safe(req, next, early, done_node) {
		list_del_init(&req->done_node);
		rmp_flow_report_early(flow, req);
	}
}

/* Goes over all requests in steps, with a marker in the list between them. */
static void flow_sweep_work(struct work_struct *work)
{
	struct rmp_flow *flow = container_of(to_delayed_work(work),
					     struct rmp_flow, sweep);
	unsigned long next = jiffies + MAX_JIFFY_OFFSET;
	struct rmp_request marker = { .marker = true };
	struct rmp_request *req;
	bool more = true;

	spin_lock_bh(&flow->lock);
	/* What is added from here on sets it for itself. */
	flow->next_deadline = next;
	list_add(&marker.active, &flow->active);
	while (more) {
		LIST_HEAD(done);
		LIST_HEAD(early);
		u32 n;

		for (n = 0; n < RMP_SWEEP; n++) {
			more = !list_is_last(&marker.active, &flow->active);
			if (!more)
				break;
			req = list_next_entry(&marker, active);
			list_move(&marker.active, &req->active);
			if (!req->marker)
				sweep_one(flow, req, &done, &early, &next);
		}
		spin_unlock_bh(&flow->lock);
		sweep_report(flow, &early);
		rmp_request_end_list(&done);
		cond_resched();
		spin_lock_bh(&flow->lock);
	}
	list_del(&marker.active);
	if (!list_empty(&flow->active))
		flow_note_deadline(flow, next);
	spin_unlock_bh(&flow->lock);
	rmp_flow_run(flow);
}

void rmp_flow_kick(struct rmp_flow *flow)
{
	int i;

	spin_lock_bh(&flow->lock);
	for (i = 0; i < RMP_CLASSES; i++)
		list_splice_tail_init(&flow->parked[i], &flow->queue[i]);
	rmp_lanes_changed(flow);
	/* So that no new request puts it off to its own deadline. */
	flow->next_deadline = jiffies;
	mod_delayed_work(rmp_wq, &flow->sweep, 0);
	spin_unlock_bh(&flow->lock);
}

/* ---------------------------------------------------------------- life cycle */

struct rmp_flow *rmp_flow_create(struct rmp_peer *peer)
{
	struct rmp_flow *flow;
	int i;

	flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&flow->lock);
	for (i = 0; i < RMP_CLASSES; i++) {
		INIT_LIST_HEAD(&flow->queue[i]);
		INIT_LIST_HEAD(&flow->parked[i]);
	}
	rmp_lanes_init(flow);
	INIT_LIST_HEAD(&flow->active);
	INIT_LIST_HEAD(&flow->holds);
	INIT_DELAYED_WORK(&flow->sweep, flow_sweep_work);
	INIT_WORK(&flow->turns, flow_turns_work);
	flow->next_deadline = jiffies + MAX_JIFFY_OFFSET;
	flow->peer = peer;
	flow->group = rmp_peer_group(peer);
	return flow;
}

void rmp_flow_destroy(struct rmp_flow *flow)
{
	cancel_delayed_work_sync(&flow->sweep);
	cancel_work_sync(&flow->turns);
	WARN_ON_ONCE(!list_empty(&flow->active) || !list_empty(&flow->holds));
	kfree(flow);
}
