// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that end before they are done: cancelled, of a batch that is given up, of a
 * region that is unregistered, of a file that ends.
 *
 * What is queued is not posted any more. What is posted ends by itself; it is waited
 * for, or reported at once, as unknown. So is what was on a queue pair that died and
 * waits for the peer's word that nothing of it is on its way any more (repeat.c), but
 * not by who unregisters the region or ends: no device uses the memory for it.
 *
 * Locking: file->lock, outer to flow->lock, is held while requests are looked at, in
 * steps with a marker in the list between them. Requests are ended without locks.
 * Context: process. Lifetime: see transfer.c.
 */
#include "cancel.h"
#include "flow.h"

static bool request_matches(const struct rmp_request *req,
			    const struct rmp_match *m)
{
	return (!m->batch || req->batch == m->batch) &&
	       (!m->dead || READ_ONCE(req->region->dead)) &&
	       (!m->by_cookie || (!req->batch && req->cookie == m->cookie));
}

/* file->lock held. */
static void end_one(struct rmp_request *req, struct rmp_match *m,
		    struct list_head *done, struct list_head *early)
{
	struct rmp_flow *flow = req->flow;
	bool ended, forget = m->dead || m->forget;

	spin_lock(&flow->lock);
	/* Neither being queued just now nor being ended. What has failed already
	 * keeps its status, but must not be waited for either.
	 */
	if (!list_empty(&req->active) && !req->reported &&
	    (!req->status || m->early || forget)) {
		m->nr += !req->status || m->early;
		ended = forget ? rmp_flow_abandon(req, m->status) :
				 rmp_flow_stop(req, m->status);
		if (ended) {
			list_add_tail(&req->done_node, done);
		} else if (m->early) {
			req->reported = true;
			req->inflight++;
			list_add_tail(&req->done_node, early);
		}
	}
	spin_unlock(&flow->lock);
}

void rmp_transfer_end_early(struct rmp_file *file, struct rmp_match *m)
{
	struct rmp_request marker = { .marker = true };
	struct rmp_request *req, *next;
	bool more = true;
	u32 n;

	spin_lock_bh(&file->lock);
	list_add(&marker.file_node, &file->requests);
	while (more) {
		LIST_HEAD(done);
		LIST_HEAD(early);

		for (n = 0; n < RMP_SWEEP; n++) {
			more = !list_is_last(&marker.file_node, &file->requests);
			if (!more)
				break;
			req = list_next_entry(&marker, file_node);
			list_move(&marker.file_node, &req->file_node);
			if (!req->marker && request_matches(req, m))
				end_one(req, m, &done, &early);
		}
		spin_unlock_bh(&file->lock);
		list_for_each_entry_safe(req, next, &early, done_node) {
			list_del_init(&req->done_node);
			rmp_flow_report_early(req->flow, req);
		}
		rmp_request_end_list(&done);
		cond_resched();
		spin_lock_bh(&file->lock);
	}
	list_del(&marker.file_node);
	spin_unlock_bh(&file->lock);
}

int rmp_transfer_cancel(struct rmp_file *file, struct rmpool_cancel *arg)
{
	struct rmp_match m = { .status = -ECANCELED };

	if (arg->flags & ~RMPOOL_CANCEL_ALL)
		return -EINVAL;
	m.by_cookie = !(arg->flags & RMPOOL_CANCEL_ALL);
	m.cookie = arg->cookie;
	rmp_transfer_end_early(file, &m);
	arg->cancelled = m.nr;
	return 0;
}

void rmp_transfer_cancel_dead(struct rmp_file *file)
{
	struct rmp_match m = { .status = -ESTALE, .dead = true };

	rmp_transfer_end_early(file, &m);
}

void rmp_transfer_kill(struct rmp_file *file)
{
	struct rmp_match m = { .status = -ECANCELED, .forget = true };

	rmp_transfer_end_early(file, &m);
}
