// SPDX-License-Identifier: GPL-2.0
/*
 * Data queue pairs that are being destroyed.
 *
 * To destroy a queue pair may take a device long: soft-RoCE waits for those of its packets
 * that stand in a network device which cannot send, for up to 50 s. Who takes a queue pair
 * down (rails.c) does not wait for that. It drains it, after which the peer reaches nothing
 * through it and nothing of it is with the device any more, and leaves the rest to a
 * work item of its own here. So all are destroyed beside each other, and the peer's worker
 * sees to its session, connects others, also in the same place, and finds those that die.
 * Who needs them gone waits for it: a cut (revoke.c) and the end of a session for all of the
 * peer, the removal of a device for those on it.
 *
 * A peer can make queue pairs die as often as it likes. As long as RMP_DYING_MAX in one
 * place, which is the index of a rail, are being destroyed, no others are begun there: we do
 * not connect, and give no tokens. One that is being let in counts as well, from its token
 * to where it is in use or being destroyed: else a peer that lets many of these stand could
 * have new tokens meanwhile; and who waits for a device, or for all, would miss it.
 *
 * Locking: peer->dying_lock, a leaf, guards the list of rails and how many each has.
 *
 * Lifetime: one that is being destroyed has a reference of its rail, so of the device, and
 * one of the peer. The last reference of a peer is given back before the workqueue ends.
 *
 * Context: process. The work items wait for the device and for nothing else, not for each
 * other either.
 */
#include "session.h"

static struct workqueue_struct *rmp_dying_wq;

/* peer->dying_lock held. */
static u32 dying_in_place(const struct rmp_peer *peer, u32 index)
{
	struct rmp_rail *rail;
	u32 nr = 0;

	list_for_each_entry(rail, &peer->dying, dying_node) {
		/* Rails of before may have had the same. */
		if (rail->index == index)
			nr += rail->dying;
	}
	return nr;
}

static void dying_more(struct rmp_rail *rail)
{
	struct rmp_peer *peer = rail->peer;

	spin_lock(&peer->dying_lock);
	if (!rail->dying++)
		list_add_tail(&rail->dying_node, &peer->dying);
	spin_unlock(&peer->dying_lock);
}

/* True if there were as many in its place as there may be. */
static bool dying_less(struct rmp_rail *rail)
{
	struct rmp_peer *peer = rail->peer;
	bool full;

	spin_lock(&peer->dying_lock);
	full = dying_in_place(peer, rail->index) >= RMP_DYING_MAX;
	if (!--rail->dying)
		list_del(&rail->dying_node);
	spin_unlock(&peer->dying_lock);
	return full;
}

static void dying_work(struct work_struct *work)
{
	struct rmp_conn *conn = container_of(work, struct rmp_conn, dying);
	struct rmp_rail *rail = conn->dying_of;
	struct rmp_peer *peer = rail->peer;
	bool full;

	/* @work goes with it. */
	rmp_peer_ops->qp_destroy(conn);
	full = dying_less(rail);
	rmp_rail_put(rail);
	wake_up_all(&peer->wait);
	/* Its worker may have left the place as it was. */
	if (full)
		rmp_peer_kick(peer);
	rmp_peer_put(peer);
}

void rmp_dying_add(struct rmp_rail *rail, struct rmp_conn *conn)
{
	struct rmp_peer *peer = rail->peer;

	rmp_peer_hold(peer);
	rmp_rail_hold(rail);
	conn->dying_of = rail;
	INIT_WORK(&conn->dying, dying_work);
	dying_more(rail);
	queue_work(rmp_dying_wq, &conn->dying);
}

void rmp_dying_let_in(struct rmp_rail *rail)
{
	dying_more(rail);
}

void rmp_dying_was_let_in(struct rmp_rail *rail)
{
	struct rmp_peer *peer = rail->peer;

	/* The other side asks again by itself: nobody is kicked. */
	dying_less(rail);
	wake_up_all(&peer->wait);
}

bool rmp_dying_full(struct rmp_peer *peer, u32 index)
{
	bool full;

	spin_lock(&peer->dying_lock);
	full = dying_in_place(peer, index) >= RMP_DYING_MAX;
	spin_unlock(&peer->dying_lock);
	return full;
}

static bool dying_on(struct rmp_peer *peer, const struct rmp_device *dev)
{
	struct rmp_rail *rail;
	bool any = false;

	spin_lock(&peer->dying_lock);
	list_for_each_entry(rail, &peer->dying, dying_node)
		any |= !dev || rail->dev == dev;
	spin_unlock(&peer->dying_lock);
	return any;
}

void rmp_dying_wait(struct rmp_peer *peer, const struct rmp_device *dev)
{
	wait_event(peer->wait, !dying_on(peer, dev));
}

int rmp_dying_init(void)
{
	/* So many at once, since each may stand for long. */
	rmp_dying_wq = alloc_workqueue("rmpool_dying",
				       WQ_UNBOUND | WQ_MEM_RECLAIM,
				       WQ_MAX_ACTIVE);
	return rmp_dying_wq ? 0 : -ENOMEM;
}

void rmp_dying_exit(void)
{
	destroy_workqueue(rmp_dying_wq);
}
