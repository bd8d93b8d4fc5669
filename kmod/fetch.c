// SPDX-License-Identifier: GPL-2.0
/*
 * Segments of peers, as they are fetched: asked for by name, and then their keys, page by
 * page, when a session begins, and again when the peer says that it has a device which it
 * did not tell before: that one may only have had no link. When the peer says that regions
 * of a range of offsets are others, or somebody looks for one that is not there, the keys of
 * those alone are asked for. The states are told in rsegment.c.
 *
 * A walk over the keys of a range is begun anew when what a page tells does not fit what the
 * one before it half told, since things may have changed in between. What is asked for
 * while one is under way is walked when it is over, in one walk over all of that. Regions
 * that a peer tells outside of the range are taken like others.
 *
 * Locking, lifetime: as in rsegment.c. peer->rseg_lock is taken for each message; an
 * object may be freed by what ends it. Context: process; messages of a peer come one
 * after the other.
 */
#include <linux/slab.h>
#include "fetch.h"

/* Walks over the keys of a segment that may come to nothing in a row. */
#define RMP_WALKS_MAX		16

/* ------------------------------------- to the peer, with peer->rseg_lock held */

static int rseg_send_get(struct rmp_session *s, struct rmp_rseg *rseg,
			 const struct rmp_wire_cursor *from)
{
	struct rmp_msg *msg;
	int ret;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	msg->type = RMP_MSG_KEYS_GET;
	msg->keys_get.segment = rseg->id;
	msg->keys_get.from = *from;
	msg->keys_get.to = rseg->walk.to;
	ret = rmp_session_send(s, msg);
	kfree(msg);
	return ret;
}

/* Asks for the first page of the range. */
static int rseg_walk(struct rmp_session *s, struct rmp_rseg *rseg)
{
	struct rmp_wire_cursor from = { .region = rseg->walk.from };

	rseg->paged = false;
	rmp_keycache_begin(&rseg->keys);
	return rseg_send_get(s, rseg, &from);
}

/* Begins a walk over what is to be walked, if there is anything. */
static int rseg_go_on(struct rmp_session *s, struct rmp_rseg *rseg)
{
	bool any = rmp_range_any(&rseg->todo);
	int ret = 0;

	if (any) {
		rseg->walk = rseg->todo;
		rseg->todo = RMP_RANGE_NONE;
		ret = rseg_walk(s, rseg);
	}
	/* Pairs with rseg_walked(), as @over does: comes after what a walk brought. */
	smp_store_release(&rseg->fetching, any && !ret);
	return ret;
}

int rmp_rseg_refetch(struct rmp_session *s, struct rmp_rseg *rseg, u64 from, u64 to)
{
	rmp_range_add(&rseg->todo, from, to);
	return rseg->fetching ? 0 : rseg_go_on(s, rseg);
}

int rmp_rseg_start(struct rmp_session *s, struct rmp_rseg *rseg)
{
	struct rmp_msg *msg;
	int ret;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	msg->type = RMP_MSG_SEGMENT_OPEN;
	rseg->cookie = ++rseg->peer->next_cookie;
	msg->segment_open.cookie = rseg->cookie;
	memcpy(msg->segment_open.name, rseg->name, sizeof(rseg->name));
	rmp_rseg_set(rseg, RSEG_OPENING);
	ret = rmp_session_send(s, msg);
	if (ret)
		rmp_rseg_set(rseg, RSEG_DOWN);
	kfree(msg);
	return ret;
}

/* ------------------------------------------------------ messages of the peer */

static int rseg_info(struct rmp_session *s, const struct rmp_msg_segment_info *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;
	int ret = 0;

	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		cond_resched();
		if (rseg->state != RSEG_OPENING || rseg->cookie != m->cookie)
			continue;
		if (m->status) {
			rmp_rseg_gone(rseg, m->status);
		} else if (rseg->id && (rseg->id != m->segment ||
					memcmp(rseg->uuid, s->uuid,
					       sizeof(s->uuid)))) {
			rmp_rseg_gone(rseg, RMPOOL_REASON_PEER_GONE);
		} else {
			rseg->id = m->segment;
			memcpy(rseg->uuid, s->uuid, sizeof(s->uuid));
			rseg->todo = RMP_RANGE_ALL;
			rseg->walks = 0;
			rmp_rseg_set(rseg, RSEG_FETCHING);
			ret = rseg_go_on(s, rseg);
		}
		break;
	}
	mutex_unlock(&peer->rseg_lock);
	return ret;
}

struct rmp_rseg *rmp_rseg_by_id(struct rmp_peer *peer, u32 id)
{
	struct rmp_rseg *rseg;

	list_for_each_entry(rseg, &peer->rsegs, node) {
		cond_resched();
		if (rseg->id == id && (rseg->state == RSEG_FETCHING ||
				       rseg->state == RSEG_READY))
			return rseg;
	}
	return NULL;
}

static int rseg_add_runs(struct rmp_rseg *rseg, const void *buf, size_t len)
{
	struct rmp_wire_keys run;
	size_t pos = 0;
	int ret;

	for (;;) {
		ret = rmp_keys_next(buf, len, &pos, &run);
		if (ret <= 0)
			return ret;
		ret = rmp_keycache_add(&rseg->keys, &run);
		if (ret)
			return ret;
		cond_resched();
	}
}

static int rseg_keys(struct rmp_session *s, const struct rmp_msg_keys *m,
		     const void *buf, size_t len)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;
	int ret = 0;

	mutex_lock(&peer->rseg_lock);
	rseg = rmp_rseg_by_id(peer, m->segment);
	if (!rseg || !rseg->fetching)
		goto out;
	ret = rseg_add_runs(rseg, buf, len);
	if (!ret && m->last)
		ret = rmp_keycache_commit(&rseg->keys);
	if (ret == -ENOSPC || ret == -ENOMEM) {
		rmp_rseg_gone(rseg, ret == -ENOSPC ? RMPOOL_REASON_REMOTE_KEYS :
						     RMPOOL_REASON_NONE);
		ret = 0;
	} else if (ret == -EBADMSG && rseg->paged &&
		   rseg->walks++ < RMP_WALKS_MAX) {
		/* Between two pages the region that was half told may have gone,
		 * or a device of it, or another one may be in its place.
		 */
		ret = rseg_walk(s, rseg);
	} else if (!ret && !m->last) {
		rseg->paged = true;
		/* Behind what was asked for there is nothing to go on with. */
		ret = m->next.region > rseg->walk.to ? -EBADMSG :
			rseg_send_get(s, rseg, &m->next);
	} else if (!ret) {
		rseg->walks = 0;
		/* Both before those are woken who wait for it. */
		smp_store_release(&rseg->over, rseg->over + 1);
		ret = rseg_go_on(s, rseg);
		rmp_rseg_set(rseg, RSEG_READY);
		/* Keys of another device may be the way that was missing. */
		rmp_peer_ops->flow_kick(peer->flow);
	}
out:
	mutex_unlock(&peer->rseg_lock);
	return ret;
}

static int rseg_changed(struct rmp_session *s, const struct rmp_msg_segment *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;
	int ret = 0;

	mutex_lock(&peer->rseg_lock);
	rseg = rmp_rseg_by_id(peer, m->segment);
	if (rseg)
		ret = rmp_rseg_refetch(s, rseg, m->range.from, m->range.to);
	mutex_unlock(&peer->rseg_lock);
	return ret;
}

int rmp_rseg_message(struct rmp_session *s, const struct rmp_msg *msg,
		     const void *buf, size_t len)
{
	switch (msg->type) {
	case RMP_MSG_SEGMENT_INFO:
		return rseg_info(s, &msg->segment_info);
	case RMP_MSG_KEYS:
		return rseg_keys(s, &msg->keys, buf, len);
	case RMP_MSG_KEYS_CHANGED:
		return rseg_changed(s, &msg->segment);
	case RMP_MSG_REVOKE:
	case RMP_MSG_REKEY:
	case RMP_MSG_WITHDRAWN:
		return rmp_rseg_revoke(s, msg->type, &msg->revoke);
	}
	return -EPROTO;
}

/* ----------------------------------------------------------- session events */

void rmp_rseg_session_up(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;

	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		if (rseg->state == RSEG_DOWN)
			rmp_rseg_start(s, rseg);
		cond_resched();
	}
	mutex_unlock(&peer->rseg_lock);
}

void rmp_rseg_session_down(struct rmp_peer *peer)
{
	struct rmp_rseg *rseg, *next;

	mutex_lock(&peer->rseg_lock);
	list_for_each_entry_safe(rseg, next, &peer->rsegs, node) {
		cond_resched();
		if (rseg->state == RSEG_GONE)
			continue;
		WRITE_ONCE(rseg->fetching, false);
		rmp_rseg_set(rseg, RSEG_DOWN);
		rmp_keycache_clear(&rseg->keys);
		rmp_rseg_free_unused(rseg);
	}
	mutex_unlock(&peer->rseg_lock);
}

void rmp_rseg_drop_device(struct rmp_peer *peer, u32 device)
{
	struct rmp_rseg *rseg;

	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		rmp_keycache_drop_device(&rseg->keys, device);
		/* What is half told may hold its keys of before. */
		if (rseg->fetching)
			rseg->todo = RMP_RANGE_ALL;
		cond_resched();
	}
	mutex_unlock(&peer->rseg_lock);
	/* Who was just choosing that device has other ways, perhaps. */
	rmp_peer_ops->flow_kick(peer->flow);
}

void rmp_rseg_new_device(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;

	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		/* If it cannot be sent the session ends, and all is fetched in the next. */
		if ((rseg->state == RSEG_FETCHING || rseg->state == RSEG_READY) &&
		    rmp_rseg_refetch(s, rseg, 0, U64_MAX) == -ENOMEM)
			rmp_session_break(s, -ENOMEM, RMPOOL_REASON_NONE);
		cond_resched();
	}
	mutex_unlock(&peer->rseg_lock);
}
