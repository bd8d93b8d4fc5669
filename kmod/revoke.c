// SPDX-License-Identifier: GPL-2.0
/*
 * What a peer was asked to let go of, and what becomes of one that does not.
 *
 * A REVOKE, REKEY or WITHDRAWN is open until the peer acknowledges it, its session ends,
 * or it is cut off. It is cut off when it leaves one open for longer than it gets
 * (revoke_wait_ms): a work item of the session looks at that, and leaves the rest to the
 * worker of the peer, which closes all data queue pairs of the session (rails.c). When
 * these are drained and gone, nothing of the peer reaches memory here any more, and all
 * that was open when it began counts as acknowledged: one cut serves all. The session
 * stays, and gets new queue pairs as after any loss; what connects them comes behind
 * the message in the control channel, so who has them has read it. An answer that comes
 * late is for nothing and does no harm.
 *
 * A peer that was cut off is mute until it acknowledges something or has a queue pair
 * again: it gets no time for what it is asked meanwhile. So who unregisters much waits
 * for a dead peer once.
 *
 * Locking: s->export_lock (mutex), as in export.c. It is dropped before peer->lock is
 * taken, and before revocations are answered. @overdue and @mute are read and written
 * without a lock, where it does not matter who is first.
 *
 * Lifetime: of the session. The work item is stopped, and all that is open is
 * answered, by rmp_revoke_end(), when its queue pairs are gone and its exports are
 * not in their segments any more.
 *
 * Context: process. The work item is one of rmp_wq and does not wait for the peer; the
 * worker does, in rmp_revoke_enforce().
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "segment.h"
#include "session.h"

/* s->export_lock held: under it alone the work item is queued. That it is to be run by
 * then; it may be waiting for the time of another one, which may have had more.
 */
static void revoke_look_at(struct rmp_session *s, unsigned long when)
{
	if (delayed_work_pending(&s->revoke_work) &&
	    !time_before(when, s->revoke_at))
		return;
	s->revoke_at = when;
	mod_delayed_work(rmp_wq, &s->revoke_work,
			 max_t(long, when - jiffies, 0));
}

/* s->export_lock held. Whether one has been open for too long; if one may become so,
 * it is looked at again then.
 */
static bool revoke_due(struct rmp_session *s)
{
	unsigned long first = jiffies + rmp_revoke_wait(), id;
	struct rmp_revocation *rev;

	if (xa_empty(&s->revokes))
		return false;
	xa_for_each(&s->revokes, id, rev) {
		if (time_before(rev->due, first))
			first = rev->due;
		cond_resched();
	}
	if (time_after_eq(jiffies, first) || READ_ONCE(s->mute))
		return true;
	revoke_look_at(s, first);
	return false;
}

static void revoke_work(struct work_struct *work)
{
	struct rmp_session *s = container_of(to_delayed_work(work),
					     struct rmp_session, revoke_work);
	struct rmp_peer *peer = s->peer;
	bool due;

	mutex_lock(&s->export_lock);
	due = revoke_due(s);
	mutex_unlock(&s->export_lock);
	if (!due)
		return;
	mutex_lock(&peer->lock);
	WRITE_ONCE(s->overdue, true);
	/* Whatever the worker connects just now is not waited for. */
	if (peer->session == s && peer->connecting)
		rmp_conn_abort(peer->connecting);
	mutex_unlock(&peer->lock);
	rmp_peer_kick(peer);
}

int rmp_revoke_send(struct rmp_session *s, u8 type, u32 segment, u64 region,
		    struct rmp_revocation *rev)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_NOFAIL;
	struct rmp_msg *msg;
	int ret = -ENOMEM;
	u32 id;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	mutex_lock(&s->export_lock);
	/* All that fails ends the session, and the answer is given then, not before:
	 * until then it has queue pairs.
	 */
	do
		id = ++s->next_revoke;
	while (xa_insert(&s->revokes, id, rev, gfp));
	s->nr_revokes++;
	if (msg) {
		msg->type = type;
		msg->revoke.segment = segment;
		msg->revoke.region = region;
		msg->revoke.id = id;
		ret = rmp_session_send(s, msg);
	}
	if (!ret && s->nr_revokes > RMP_REVOKES_MAX)
		ret = -ENOSPC;
	revoke_look_at(s, READ_ONCE(s->mute) ? jiffies : rev->due);
	mutex_unlock(&s->export_lock);
	kfree(msg);
	return ret;
}

void rmp_revoke_acked(struct rmp_session *s, u32 id)
{
	struct rmp_revocation *rev;

	mutex_lock(&s->export_lock);
	rev = xa_erase(&s->revokes, id);
	if (rev)
		s->nr_revokes--;
	WRITE_ONCE(s->mute, false);
	mutex_unlock(&s->export_lock);
	if (rev)
		rmp_revocation_answer(rev);
}

/* Answers in place of the peer all that it was asked up to @last. */
static void revoke_answer(struct rmp_session *s, u32 last)
{
	struct rmp_revocation *rev;
	unsigned long id;

	do {
		id = 0;
		mutex_lock(&s->export_lock);
		rev = xa_find(&s->revokes, &id, ULONG_MAX, XA_PRESENT);
		if (rev && (s32)(last - (u32)id) < 0)
			rev = NULL;
		if (rev) {
			xa_erase(&s->revokes, id);
			s->nr_revokes--;
		}
		mutex_unlock(&s->export_lock);
		if (rev)
			rmp_revocation_answer(rev);
		cond_resched();
	} while (rev);
}

void rmp_revoke_enforce(struct rmp_session *s)
{
	bool due, first;
	u32 last;

	if (!READ_ONCE(s->overdue))
		return;
	WRITE_ONCE(s->overdue, false);
	mutex_lock(&s->export_lock);
	/* It may have answered since. */
	due = revoke_due(s);
	first = due && !READ_ONCE(s->mute);
	if (due)
		WRITE_ONCE(s->mute, true);
	last = s->next_revoke;
	mutex_unlock(&s->export_lock);
	if (!due)
		return;
	if (first)
		pr_warn_ratelimited("peer %s does not let go of memory that it may not reach any more: its queue pairs are closed\n",
				    s->peer->name);
	rmp_rails_cut(s);
	revoke_answer(s, last);
}

void rmp_revoke_init(struct rmp_session *s)
{
	xa_init(&s->revokes);
	INIT_DELAYED_WORK(&s->revoke_work, revoke_work);
}

void rmp_revoke_end(struct rmp_session *s)
{
	cancel_delayed_work_sync(&s->revoke_work);
	/* Nobody asks any more, and the peer is not heard any more. */
	revoke_answer(s, s->next_revoke);
	xa_destroy(&s->revokes);
}
