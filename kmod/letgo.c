// SPDX-License-Identifier: GPL-2.0
/*
 * Letting go of what peers take back: the other side of revoke.c.
 *
 * A REVOKE takes regions out of the cache and is acknowledged when the last
 * request that uses them has ended: an rmp_ack counts these. So is a REKEY, which says
 * that the keys of a region are void: there another object takes the place of the region
 * at once, to which requests go over with what they have not posted yet (renew.c). A
 * WITHDRAWN ends the segment for us: what is not posted ends with EACCES.
 *
 * Locking: peer->rseg_lock for what is taken out of the cache; an rmp_ack has none.
 *
 * Lifetime: an rmp_ack has a reference of its session, and belongs to whoever makes it
 * and to each region it waits for. The last may be dropped in any context: a work item
 * sends the answer.
 */
#include <linux/slab.h>
#include "fetch.h"

/* A REVOKE, REKEY or WITHDRAWN to be acknowledged when all regions are let go. */
struct rmp_ack {
	refcount_t ref;
	struct rmp_session *session;
	struct rmp_msg_revoke revoke;
	struct work_struct work;
};

static void ack_work(struct work_struct *work)
{
	struct rmp_ack *ack = container_of(work, struct rmp_ack, work);
	struct rmp_msg *msg;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (msg) {
		msg->type = RMP_MSG_REVOKE_ACK;
		msg->revoke = ack->revoke;
		rmp_session_send(ack->session, msg);
		kfree(msg);
	}	/* else the peer cuts us off when its patience ends */
	atomic_dec(&ack->session->acks);
	rmp_session_put(ack->session);
	kfree(ack);
}

static struct rmp_ack *ack_make(struct rmp_session *s,
				const struct rmp_msg_revoke *m)
{
	struct rmp_ack *ack;

	/* It stops at the limit, unless it cut us off and began anew. */
	if (atomic_read(&s->acks) >= 4 * RMP_REVOKES_MAX)
		return ERR_PTR(-EPROTO);
	ack = kzalloc(sizeof(*ack), GFP_KERNEL);
	if (!ack)
		return ERR_PTR(-ENOMEM);	/* ends the session, and all use */
	refcount_set(&ack->ref, 1);
	INIT_WORK(&ack->work, ack_work);
	ack->revoke = *m;
	kref_get(&s->ref);
	ack->session = s;
	atomic_inc(&s->acks);
	return ack;
}

static void ack_put(struct rmp_ack *ack)
{
	if (refcount_dec_and_test(&ack->ref))
		queue_work(rmp_wq, &ack->work);
}

/* The last use of a region, which is out of the cache, is waited for. */
static void ack_for(struct rmp_ack *ack, struct rmp_rregion *rr)
{
	refcount_inc(&ack->ref);
	rr->owner = ack;
	rmp_rregion_put(rr);
}

void rmp_rseg_released(struct rmp_rregion *rr)
{
	struct rmp_ack *ack = rr->owner;

	rmp_rregion_free(rr);
	if (ack)
		ack_put(ack);
}

/* ------------------------------------------------- with peer->rseg_lock held */

/* One region is to be acknowledged with @ack. */
static void rseg_revoke_one(struct rmp_rseg *rseg, u64 id, struct rmp_ack *ack)
{
	struct rmp_rregion *rr;

	rr = rmp_keycache_remove(&rseg->keys, id);
	if (rr)
		ack_for(ack, rr);
}

/* All of them. */
static void rseg_revoke_all(struct rmp_rseg *rseg, u32 reason, struct rmp_ack *ack)
{
	struct rmp_rregion *rr;
	unsigned long id;

	xa_for_each(&rseg->keys.by_id, id, rr) {
		/* Before it is marked revoked: so requests end with EACCES. */
		if (reason == RMPOOL_REASON_NOT_ALLOWED)
			WRITE_ONCE(rr->access, 0);
		rseg_revoke_one(rseg, rr->id, ack);
		cond_resched();
	}
	rmp_rseg_gone(rseg, reason);
}

/* One region has other keys: what is posted with the old ones is to be acknowledged
 * with @ack.
 */
static int rseg_rekey_one(struct rmp_session *s, struct rmp_rseg *rseg, u64 id,
			  struct rmp_ack *ack)
{
	u64 from = 0, to = U64_MAX;
	struct rmp_rregion *rr;

	rr = rmp_keycache_renew(&rseg->keys, id);
	if (IS_ERR(rr))
		return PTR_ERR(rr);
	if (rr) {
		from = rr->offset;
		to = rr->offset + rr->length - 1;
		ack_for(ack, rr);
	}
	/* A walk under way may be past it; one that was just being told is anywhere. */
	return rmp_rseg_refetch(s, rseg, from, to);
}

/* ------------------------------------------------------ messages of the peer */

int rmp_rseg_revoke(struct rmp_session *s, u8 type, const struct rmp_msg_revoke *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;
	struct rmp_ack *ack;
	int ret = 0;

	ack = ack_make(s, m);
	if (IS_ERR(ack))
		return PTR_ERR(ack);

	mutex_lock(&peer->rseg_lock);
	rseg = rmp_rseg_by_id(peer, m->segment);
	if (rseg && type == RMP_MSG_REKEY)
		ret = rseg_rekey_one(s, rseg, m->region, ack);
	else if (rseg && m->region)
		rseg_revoke_one(rseg, m->region, ack);
	else if (rseg)
		rseg_revoke_all(rseg, type == RMP_MSG_WITHDRAWN ?
				      RMPOOL_REASON_NOT_ALLOWED :
				      RMPOOL_REASON_SEGMENT_UNKNOWN, ack);
	mutex_unlock(&peer->rseg_lock);

	/* What is queued and not posted gives its reference back now. */
	rmp_peer_ops->flow_kick(peer->flow);
	ack_put(ack);
	return ret;
}
