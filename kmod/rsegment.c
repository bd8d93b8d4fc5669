// SPDX-License-Identifier: GPL-2.0
/*
 * Segments of peers, as files here use them: one object for each peer and name,
 * shared by all processes, so that the second one finds the keys there.
 *
 * DOWN -> OPENING (asked by name) -> FETCHING (keys, page by page) -> READY.
 * The end of a session leads back to DOWN: the keys are thrown away, and fetched
 * again when the peer is back. GONE is final: the peer has no such segment, took
 * it away, or came back with another one under that name; whoever holds a handle
 * gets ESTALE, and who opens the name anew gets a new object.
 *
 * A REVOKE takes regions out of the cache and is acknowledged when the last
 * request that uses them has ended: an rmp_ack counts these. So is a REKEY, which says
 * that the keys of a region are void: there another object takes the place of the region
 * at once, to which requests go over with what they have not posted yet (flow.c). A
 * WITHDRAWN ends the segment for us: what is not posted ends with EACCES.
 *
 * Locking: peer->rseg_lock (mutex) guards the list and everything in an rseg;
 * changes of the key cache are serialised by it. Look-ups take no lock: the
 * state is read once, the cache is safe under RCU, and a region that was revoked
 * in between is seen as such before anything is posted.
 *
 * Lifetime: users counts handles and callers. With none left the object stays
 * as a cache, and is freed with the session, or, when the list is full and a
 * place is needed, the one that was unused for longest: then the peer is told
 * (SEGMENT_CLOSE). Requests refer to regions, not to the object.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "rsegment.h"
#include "segment.h"
#include "session.h"

/* Remote segments kept for one peer. */
#define RMP_RSEGS_MAX		4096
/* Walks over the keys of a segment that may come to nothing in a row. */
#define RMP_WALKS_MAX		16

enum {
	RSEG_DOWN,
	RSEG_OPENING,
	RSEG_FETCHING,
	RSEG_READY,
	RSEG_GONE,
};

struct rmp_rseg {
	struct list_head node;
	struct rmp_peer *peer;
	u32 users;
	char name[RMPOOL_NAME_MAX];
	wait_queue_head_t wait;
	u32 state;
	u32 reason;		/* with GONE; NONE: no memory for its keys */
	u32 cookie;
	u32 id;			/* at the peer, 0: not known */
	u8 uuid[RMP_WIRE_UUID];	/* life of the peer that @id is of */
	u64 generation;
	bool fetching;
	bool again;
	bool paged;		/* not the first page of this walk */
	u32 walks;		/* that came to nothing */
	struct rmp_keycache keys;
};

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

static void ack_put(struct rmp_ack *ack)
{
	if (refcount_dec_and_test(&ack->ref))
		queue_work(rmp_wq, &ack->work);
}

static void rseg_released(struct rmp_rregion *rr)
{
	struct rmp_ack *ack = rr->owner;

	rmp_rregion_free(rr);
	if (ack)
		ack_put(ack);
}

/* ------------------------------------------------- with peer->rseg_lock held */

static void rseg_set(struct rmp_rseg *rseg, u32 state)
{
	/* Pairs with rmp_rseg_find(): READY comes after the keys. */
	smp_store_release(&rseg->state, state);
	wake_up_all(&rseg->wait);
}

static void rseg_free(struct rmp_rseg *rseg)
{
	list_del(&rseg->node);
	rmp_keycache_clear(&rseg->keys);
	rmp_keycache_destroy(&rseg->keys);
	rmp_peer_put(rseg->peer);
	kfree(rseg);
}

/* What was asked for is kept for the answer: who was interrupted in waiting for it
 * asks again, and the peer has it open.
 */
static void rseg_free_unused(struct rmp_rseg *rseg)
{
	if (!rseg->users && (rseg->state == RSEG_DOWN ||
			     rseg->state == RSEG_GONE))
		rseg_free(rseg);
}

static void rseg_gone(struct rmp_rseg *rseg, u32 reason)
{
	rseg->reason = reason;
	WRITE_ONCE(rseg->fetching, false);
	rseg_set(rseg, RSEG_GONE);
	rmp_keycache_clear(&rseg->keys);
	rseg_free_unused(rseg);
}

static int rseg_send_get(struct rmp_session *s, u32 id,
			 const struct rmp_wire_cursor *from)
{
	struct rmp_msg *msg;
	int ret;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	msg->type = RMP_MSG_KEYS_GET;
	msg->keys_get.segment = id;
	if (from)
		msg->keys_get.from = *from;
	ret = rmp_session_send(s, msg);
	kfree(msg);
	return ret;
}

/* Asks for the first page. */
static int rseg_walk(struct rmp_session *s, struct rmp_rseg *rseg)
{
	rseg->paged = false;
	rmp_keycache_begin(&rseg->keys);
	return rseg_send_get(s, rseg->id, NULL);
}

/* Asks for all keys again; what is there stays in use meanwhile. */
static int rseg_refetch(struct rmp_session *s, struct rmp_rseg *rseg)
{
	int ret;

	if (rseg->fetching) {
		rseg->again = true;
		return 0;
	}
	rseg->fetching = true;
	ret = rseg_walk(s, rseg);
	if (ret)
		rseg->fetching = false;
	return ret;
}

static void rseg_send_close(struct rmp_session *s, u32 id)
{
	struct rmp_msg *msg;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return;		/* open there until the session ends */
	msg->type = RMP_MSG_SEGMENT_CLOSE;
	msg->segment.segment = id;
	rmp_session_send(s, msg);
	kfree(msg);
}

static int rseg_start(struct rmp_session *s, struct rmp_rseg *rseg)
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
	rseg_set(rseg, RSEG_OPENING);
	ret = rmp_session_send(s, msg);
	if (ret)
		rseg_set(rseg, RSEG_DOWN);
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
			rseg_gone(rseg, m->status);
		} else if (rseg->id && (rseg->id != m->segment ||
					memcmp(rseg->uuid, s->uuid,
					       sizeof(s->uuid)))) {
			rseg_gone(rseg, RMPOOL_REASON_PEER_GONE);
		} else {
			rseg->id = m->segment;
			memcpy(rseg->uuid, s->uuid, sizeof(s->uuid));
			rseg->fetching = true;
			rseg->again = false;
			rseg->walks = 0;
			rseg_set(rseg, RSEG_FETCHING);
			ret = rseg_walk(s, rseg);
		}
		break;
	}
	mutex_unlock(&peer->rseg_lock);
	return ret;
}

/* The rseg of an id that the peer told in this session. */
static struct rmp_rseg *rseg_by_id(struct rmp_peer *peer, u32 id)
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
	rseg = rseg_by_id(peer, m->segment);
	if (!rseg || !rseg->fetching)
		goto out;
	ret = rseg_add_runs(rseg, buf, len);
	if (!ret && m->last)
		ret = rmp_keycache_commit(&rseg->keys);
	if (ret == -ENOSPC || ret == -ENOMEM) {
		rseg_gone(rseg, ret == -ENOSPC ? RMPOOL_REASON_REMOTE_KEYS :
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
		ret = rseg_send_get(s, rseg->id, &m->next);
	} else if (!ret) {
		rseg->fetching = false;
		rseg->walks = 0;
		rseg->generation = m->generation;
		rseg_set(rseg, RSEG_READY);
		/* Keys of another device may be the way that was missing. */
		rmp_peer_ops->flow_kick(peer->flow);
		if (rseg->again) {
			rseg->again = false;
			ret = rseg_refetch(s, rseg);
		}
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
	rseg = rseg_by_id(peer, m->segment);
	if (rseg)
		ret = rseg_refetch(s, rseg);
	mutex_unlock(&peer->rseg_lock);
	return ret;
}

/* One region is to be acknowledged with @ack. */
static void rseg_revoke_one(struct rmp_rseg *rseg, u64 id, struct rmp_ack *ack)
{
	struct rmp_rregion *rr;

	rr = rmp_keycache_remove(&rseg->keys, id);
	if (!rr)
		return;
	refcount_inc(&ack->ref);
	rr->owner = ack;
	rmp_rregion_put(rr);
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
	rseg_gone(rseg, reason);
}

/* One region has other keys: what is posted with the old ones is to be acknowledged
 * with @ack.
 */
static int rseg_rekey_one(struct rmp_session *s, struct rmp_rseg *rseg, u64 id,
			  struct rmp_ack *ack)
{
	struct rmp_rregion *rr;

	rr = rmp_keycache_renew(&rseg->keys, id);
	if (IS_ERR(rr))
		return PTR_ERR(rr);
	if (rr) {
		refcount_inc(&ack->ref);
		rr->owner = ack;
		rmp_rregion_put(rr);
	}
	/* A walk under way may be past it. */
	return rseg_refetch(s, rseg);
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

/* REVOKE, REKEY and WITHDRAWN. */
static int rseg_revoke(struct rmp_session *s, u8 type,
		       const struct rmp_msg_revoke *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rseg *rseg;
	struct rmp_ack *ack;
	int ret = 0;

	ack = ack_make(s, m);
	if (IS_ERR(ack))
		return PTR_ERR(ack);

	mutex_lock(&peer->rseg_lock);
	rseg = rseg_by_id(peer, m->segment);
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
		return rseg_revoke(s, msg->type, &msg->revoke);
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
			rseg_start(s, rseg);
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
		rseg->fetching = false;
		rseg_set(rseg, RSEG_DOWN);
		rmp_keycache_clear(&rseg->keys);
		rseg_free_unused(rseg);
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
			rseg->again = true;
		cond_resched();
	}
	mutex_unlock(&peer->rseg_lock);
	/* Who was just choosing that device has other ways, perhaps. */
	rmp_peer_ops->flow_kick(peer->flow);
}

/* --------------------------------------------------------------- for callers */

/* Makes room in the list. The keys of what is given up must not be in use: the
 * peer will not ask for them back any more. Without a user, nobody begins to.
 */
static bool rseg_evict(struct rmp_peer *peer)
{
	struct rmp_session *s = rmp_session_get(peer);
	struct rmp_rseg *rseg;
	bool found = false;

	if (!s)
		return false;
	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		cond_resched();
		if (rseg->users || rseg->state != RSEG_READY ||
		    !rmp_keycache_idle(&rseg->keys))
			continue;
		rseg_send_close(s, rseg->id);
		rseg_free(rseg);
		found = true;
		break;
	}
	mutex_unlock(&peer->rseg_lock);
	rmp_session_put(s);
	return found;
}

/* A new user of the segment; makes the object when there is none. */
static struct rmp_rseg *rseg_use(struct rmp_peer *peer, const char *name,
				 struct rmpool_error *err)
{
	struct rmp_rseg *rseg, *new;
	u32 nr = 0;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&peer->rseg_lock);
	list_for_each_entry(rseg, &peer->rsegs, node) {
		cond_resched();
		nr++;
		if (rseg->state != RSEG_GONE && !strcmp(rseg->name, name)) {
			kfree(new);
			goto found;
		}
	}
	if (nr >= RMP_RSEGS_MAX) {
		mutex_unlock(&peer->rseg_lock);
		kfree(new);
		err->reason = RMPOOL_REASON_OPENS;
		err->limit = RMP_RSEGS_MAX;
		err->used = nr;
		err->need = 1;
		return ERR_PTR(-EMFILE);
	}
	rseg = new;
	rmp_peer_hold(peer);
	rseg->peer = peer;
	strscpy(rseg->name, name, sizeof(rseg->name));
	init_waitqueue_head(&rseg->wait);
	rmp_keycache_init(&rseg->keys, rseg_released, NULL);
	list_add_tail(&rseg->node, &peer->rsegs);
found:
	if (!rseg->users++)
		atomic_inc(&peer->users);
	mutex_unlock(&peer->rseg_lock);
	return rseg;
}

void rmp_rseg_get(struct rmp_rseg *rseg)
{
	mutex_lock(&rseg->peer->rseg_lock);
	rseg->users++;
	mutex_unlock(&rseg->peer->rseg_lock);
}

void rmp_rseg_put(struct rmp_rseg *rseg)
{
	struct rmp_peer *peer = rseg->peer;

	rmp_peer_hold(peer);
	mutex_lock(&peer->rseg_lock);
	if (!--rseg->users) {
		atomic_dec(&peer->users);
		list_move_tail(&rseg->node, &peer->rsegs);
		rseg_free_unused(rseg);
	}
	mutex_unlock(&peer->rseg_lock);
	rmp_peer_put(peer);
}

struct rmp_peer *rmp_rseg_peer(struct rmp_rseg *rseg)
{
	return rseg->peer;
}

static long time_left(unsigned long deadline, bool forever)
{
	if (forever)
		return MAX_SCHEDULE_TIMEOUT;
	return max((long)(deadline - jiffies), 0L);
}

static bool rseg_answered(struct rmp_rseg *rseg)
{
	u32 state = READ_ONCE(rseg->state);

	return state == RSEG_READY || state == RSEG_GONE;
}

static bool rseg_settled(struct rmp_rseg *rseg)
{
	return rseg_answered(rseg) || READ_ONCE(rseg->state) == RSEG_DOWN;
}

static long rseg_wait(struct rmp_rseg *rseg, long timeout)
{
	return wait_event_interruptible_timeout(rseg->wait, rseg_settled(rseg),
						timeout);
}

static long peer_wait_change(struct rmp_peer *peer, long timeout)
{
	return wait_event_interruptible_timeout(peer->wait,
						READ_ONCE(peer->state) !=
						RMPOOL_PEER_READY, timeout);
}

/* Brings a segment to READY: connects, asks, waits. */
static int rseg_wait_ready(struct rmp_rseg *rseg, unsigned long deadline,
			   bool forever, struct rmpool_error *err)
{
	struct rmp_peer *peer = rseg->peer;
	struct rmp_session *s;
	long ret;

	for (;;) {
		switch (READ_ONCE(rseg->state)) {
		case RSEG_READY:
			/* Keys alone do not carry data. */
			return rmp_peer_wait_ready(peer, deadline, forever, err);
		case RSEG_GONE:
			err->reason = READ_ONCE(rseg->reason);
			if (err->reason == RMPOOL_REASON_SEGMENT_UNKNOWN)
				return -ENOENT;
			if (err->reason == RMPOOL_REASON_NOT_ALLOWED)
				return -EACCES;
			if (err->reason == RMPOOL_REASON_NONE)
				return -ENOMEM;
			return err->reason == RMPOOL_REASON_PEER_GONE ?
				-ESTALE : -ENOSPC;
		}
		ret = rmp_peer_wait_ready(peer, deadline, forever, err);
		if (ret)
			return ret;
		s = rmp_session_get(peer);
		if (s) {
			mutex_lock(&peer->rseg_lock);
			/* A session that ends may be past resetting us. */
			if (rseg->state == RSEG_DOWN && !READ_ONCE(s->closing))
				rseg_start(s, rseg);
			mutex_unlock(&peer->rseg_lock);
			rmp_session_put(s);
			ret = rseg_wait(rseg, time_left(deadline, forever));
		} else {
			/* It broke just now, and the worker does not know. */
			ret = peer_wait_change(peer, HZ / 10);
		}
		if (ret < 0)
			return -EINTR;
		if (!time_left(deadline, forever) && !rseg_answered(rseg)) {
			err->reason = RMPOOL_REASON_SILENT;
			return -ETIMEDOUT;
		}
	}
}

int rmp_rseg_open(const char *node, const char *name, long timeout,
		  struct rmp_rseg **out, struct rmpool_error *err)
{
	bool forever = timeout == MAX_SCHEDULE_TIMEOUT;
	unsigned long deadline = jiffies + timeout;
	struct rmp_rseg *rseg;
	struct rmp_peer *peer;
	int ret;

	if (!rmp_name_valid(node) || !rmp_name_valid(name)) {
		err->reason = RMPOOL_REASON_NAME_BAD;
		return -EINVAL;
	}
	peer = rmp_peer_find(node);
	if (!peer) {
		err->reason = RMPOOL_REASON_PEER_UNKNOWN;
		return -ENOENT;
	}
	rseg = rseg_use(peer, name, err);
	while (rseg == ERR_PTR(-EMFILE) && rseg_evict(peer)) {
		memset(err, 0, sizeof(*err));
		rseg = rseg_use(peer, name, err);
	}
	if (IS_ERR(rseg)) {
		ret = PTR_ERR(rseg);
		goto out;
	}
	ret = rseg_wait_ready(rseg, deadline, forever, err);
	if (ret)
		rmp_rseg_put(rseg);
	else
		*out = rseg;
out:
	rmp_peer_put(peer);
	return ret;
}

struct rmp_rregion *rmp_rseg_find(struct rmp_rseg *rseg, u64 offset, u64 length,
				  u32 access)
{
	/* Pairs with rseg_set(). */
	switch (smp_load_acquire(&rseg->state)) {
	case RSEG_READY:
		return rmp_keycache_find(&rseg->keys, offset, length, access);
	case RSEG_GONE:
		return ERR_PTR(READ_ONCE(rseg->reason) ==
			       RMPOOL_REASON_NOT_ALLOWED ? -EACCES : -ESTALE);
	}
	return ERR_PTR(-EAGAIN);
}

/* Asks the peer for keys it may have told us of too late. */
static int rseg_ask_again(struct rmp_rseg *rseg, unsigned long deadline)
{
	struct rmp_peer *peer = rseg->peer;
	struct rmp_session *s;
	long ret = 0;

	s = rmp_session_get(peer);
	if (!s)
		return -ENOTCONN;
	mutex_lock(&peer->rseg_lock);
	if (rseg->state == RSEG_READY)
		ret = rseg_refetch(s, rseg);
	mutex_unlock(&peer->rseg_lock);
	rmp_session_put(s);
	if (ret)
		return -ENOTCONN;
	ret = wait_event_interruptible_timeout(rseg->wait,
					       !READ_ONCE(rseg->fetching),
					       time_left(deadline, false));
	if (ret < 0)
		return -EINTR;
	return ret ? 0 : -ETIMEDOUT;
}

struct rmp_rregion *rmp_rseg_find_wait(struct rmp_rseg *rseg, u64 offset,
				       u64 length, u32 access, long timeout)
{
	unsigned long deadline = jiffies + timeout;
	struct rmpool_error err = { };
	struct rmp_rregion *rr;
	bool asked = false;
	int ret;

	for (;;) {
		rr = rmp_rseg_find(rseg, offset, length, access);
		if (rr == ERR_PTR(-EAGAIN)) {
			ret = rseg_wait_ready(rseg, deadline, false, &err);
			if (ret == -EINTR || ret == -ESTALE)
				return ERR_PTR(ret);
			if (ret == -ENOENT &&
			    err.reason == RMPOOL_REASON_SEGMENT_UNKNOWN)
				return ERR_PTR(-ESTALE);
			if (ret == -EACCES &&
			    err.reason == RMPOOL_REASON_NOT_ALLOWED)
				return ERR_PTR(ret);
			if (ret)
				return ERR_PTR(-ENOTCONN);
		} else if (rr == ERR_PTR(-ENXIO) && !asked) {
			asked = true;
			ret = rseg_ask_again(rseg, deadline);
			if (ret)
				return ERR_PTR(ret);
		} else {
			return rr;
		}
	}
}

u32 rmp_rseg_list(struct rmp_rseg *rseg, u64 *at, u32 first,
		  struct rmpool_region_desc *desc, u32 nr, u32 *total,
		  u64 *size, u64 *generation)
{
	mutex_lock(&rseg->peer->rseg_lock);
	nr = rmp_keycache_list(&rseg->keys, at, first, desc, nr);
	*total = rseg->keys.nr_regions;
	*size = rseg->keys.size;
	*generation = rseg->generation;
	mutex_unlock(&rseg->peer->rseg_lock);
	return nr;
}
