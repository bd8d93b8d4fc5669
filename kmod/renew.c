// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of requests when the peer replaces the keys of a region, or takes it back.
 *
 * A request has a reference on what it knows of the region at the peer, and the peer
 * waits until all of these are gone (letgo.c). What it waits for is what is in flight,
 * and nothing else: a request that waits for the end of a dead queue pair (repeat.c), or
 * is being copied (staging.c), may do so for long, and the peer would cut us off. So
 * only slices count.
 *
 * Locking: flow->lock is held for all of this. Context: any.
 */
#include "flow.h"

bool rmp_request_renew(struct rmp_request *req)
{
	struct rmp_rregion *old, *next;

	lockdep_assert_held(&req->flow->lock);
	/* Pairs with rmp_keycache_renew(). */
	while ((next = smp_load_acquire(&req->rr->next))) {
		if (req->posted)
			return false;
		old = req->rr;
		rmp_rregion_hold(next);
		req->rr = next;
		rmp_rregion_put(old);
	}
	return true;
}

bool rmp_request_renewed(struct rmp_request *req)
{
	s32 status;

	rmp_request_renew(req);
	status = rmp_flow_blocked(req);
	if (status && (req->left || !list_empty(&req->pieces)))
		return rmp_flow_abandon(req, status);
	if (!list_empty(&req->queue))
		list_move_tail(&req->queue, &req->flow->queue[req->prio]);
	return false;
}

/* What requests have in the place of a region that the peer took back; the second, when
 * it took the right to use it.
 */
static struct rmp_rregion rmp_taken_back = {
	.ref = REFCOUNT_INIT(1),
	.access = RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE,
	.revoked = true,
};

static struct rmp_rregion rmp_withdrawn = {
	.ref = REFCOUNT_INIT(1),
	.revoked = true,
};

void rmp_request_let_go(struct rmp_request *req)
{
	struct rmp_rregion *old = req->rr;

	if (req->posted || req->left || !list_empty(&req->pieces) ||
	    !READ_ONCE(old->revoked))
		return;
	req->rr = READ_ONCE(old->access) ? &rmp_taken_back : &rmp_withdrawn;
	rmp_rregion_hold(req->rr);
	rmp_rregion_put(old);
}
