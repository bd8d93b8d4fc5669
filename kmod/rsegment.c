// SPDX-License-Identifier: GPL-2.0
/*
 * Segments of peers, as files here use them: one object for each peer and name,
 * shared by all processes, so that the second one finds the keys there.
 *
 * DOWN -> OPENING (asked by name) -> FETCHING (keys, page by page) -> READY.
 * The end of a session leads back to DOWN: the keys are thrown away, and fetched
 * again when the peer is back. GONE is final: the peer has no such segment, took
 * it away, or came back with another one under that name, or does not let us use it;
 * or its keys are too many. Whoever holds a handle gets ESTALE, or EACCES without the
 * right, and who opens the name anew gets a new object.
 *
 * What the peer says is for fetch.c, and for letgo.c when it takes something back.
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
#include "fetch.h"
#include "segment.h"

/* Remote segments kept for one peer. */
#define RMP_RSEGS_MAX		4096

/* ------------------------------------------------- with peer->rseg_lock held */

void rmp_rseg_set(struct rmp_rseg *rseg, u32 state)
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
void rmp_rseg_free_unused(struct rmp_rseg *rseg)
{
	if (!rseg->users && (rseg->state == RSEG_DOWN ||
			     rseg->state == RSEG_GONE))
		rseg_free(rseg);
}

void rmp_rseg_gone(struct rmp_rseg *rseg, u32 reason)
{
	rseg->reason = reason;
	WRITE_ONCE(rseg->fetching, false);
	rmp_rseg_set(rseg, RSEG_GONE);
	rmp_keycache_clear(&rseg->keys);
	rmp_rseg_free_unused(rseg);
}

/* --------------------------------------------------------------- for callers */

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
	rmp_keycache_init(&rseg->keys, rmp_rseg_released, NULL);
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
		rmp_rseg_free_unused(rseg);
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
				rmp_rseg_start(s, rseg);
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
	/* Pairs with rmp_rseg_set(). */
	switch (smp_load_acquire(&rseg->state)) {
	case RSEG_READY:
		return rmp_keycache_find(&rseg->keys, offset, length, access);
	case RSEG_GONE:
		return ERR_PTR(READ_ONCE(rseg->reason) ==
			       RMPOOL_REASON_NOT_ALLOWED ? -EACCES : -ESTALE);
	}
	return ERR_PTR(-EAGAIN);
}

/* So many walks are over, or there is none under way. */
static bool rseg_walked(struct rmp_rseg *rseg, u32 over)
{
	/* Pairs with rseg_go_on(): what the walk brought is found then. */
	if (!smp_load_acquire(&rseg->fetching))
		return true;
	/* Pairs with rseg_keys(), likewise. */
	return (s32)(smp_load_acquire(&rseg->over) - over) >= 0;
}

/* Asks the peer for keys between two offsets that it may have told us of too late. */
static int rseg_ask_again(struct rmp_rseg *rseg, u64 from, u64 to,
			  unsigned long deadline)
{
	struct rmp_peer *peer = rseg->peer;
	struct rmp_session *s;
	long ret = 0;
	u32 over;

	s = rmp_session_get(peer);
	if (!s)
		return -ENOTCONN;
	mutex_lock(&peer->rseg_lock);
	over = rseg->over + rseg->fetching;
	if (rseg->state == RSEG_READY) {
		/* Not with the walk that is under way, but with the one after it. */
		over++;
		ret = rmp_rseg_refetch(s, rseg, from, to);
	}
	mutex_unlock(&peer->rseg_lock);
	rmp_session_put(s);
	if (ret)
		return -ENOTCONN;
	ret = wait_event_interruptible_timeout(rseg->wait, rseg_walked(rseg, over),
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
			/* Nothing may also be moved at the end of a region. */
			ret = rseg_ask_again(rseg, offset - (offset && !length),
					     offset, deadline);
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
	*generation = rseg->keys.changes;
	mutex_unlock(&rseg->peer->rseg_lock);
	return nr;
}
