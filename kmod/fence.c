// SPDX-License-Identifier: GPL-2.0
/*
 * What two nodes tell each other about queue pairs that died: QP_FENCE and QP_FENCED.
 *
 * Who takes a data queue pair down asks the peer to do the same with the other end, and
 * to say when nothing that was sent on it can arrive any more (QP_FENCE). The peer puts
 * its end in error, if it is not, and answers (QP_FENCED) when that has been drained:
 * from then on its device takes no packet for it, however late. It answers at once
 * about a queue pair that it does not have: either that went, or it never was more than
 * an attempt. A question names both ends by their numbers, so it never means a later
 * queue pair in the same place, unless devices used both numbers again: then that one
 * is lost, and the answer is still true.
 *
 * Each data queue pair of a session is in its list of ends from before it can take a
 * packet until it has been drained, wherever it is meanwhile: being connected, in use,
 * or being taken down. So what is not in the list cannot be written through.
 *
 * A peer that asks about whatever it likes loses queue pairs to itself and nothing else.
 * One that answers what is not true lets old bytes of its own memory come back.
 *
 * Locking: the list, and the marks in &struct rmp_conn, under peer->lock. Context:
 * process; draining waits for the device.
 */
#include <linux/slab.h>
#include "session.h"

void rmp_fence_watch(struct rmp_session *s, u32 rail, struct rmp_conn *conn)
{
	lockdep_assert_held(&s->peer->lock);
	conn->end_rail = rail;
	list_add_tail(&conn->end_node, &s->ends);
}

void rmp_fence_ask(struct rmp_session *s, u32 rail, u32 qp,
		   const struct rmp_conn *conn)
{
	struct rmp_msg *msg;

	/* Not about one that never was connected, and not where the whole ends. */
	if (!conn->peer_qpn || READ_ONCE(s->closing))
		return;
	msg = rmp_session_new_msg(s, RMP_MSG_QP_FENCE);
	if (!msg)
		return;
	msg->qp_fence.rail = rail;
	msg->qp_fence.qp = qp;
	msg->qp_fence.id = conn->fence;
	msg->qp_fence.qpn = conn->qpn;
	msg->qp_fence.peer_qpn = conn->peer_qpn;
	rmp_session_send(s, msg);
	kfree(msg);
}

static void fence_answer(struct rmp_session *s, u32 id)
{
	struct rmp_msg *msg;

	msg = rmp_session_new_msg(s, RMP_MSG_QP_FENCED);
	if (!msg)
		return;
	msg->qp_fenced.id = id;
	rmp_session_send(s, msg);
	kfree(msg);
}

void rmp_fence_asked(struct rmp_session *s, const struct rmp_msg_qp_fence *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_conn *conn;
	bool found = false;

	mutex_lock(&peer->lock);
	list_for_each_entry(conn, &s->ends, end_node) {
		if (conn->end_rail != m->rail ||
		    READ_ONCE(conn->qpn) != m->peer_qpn ||
		    READ_ONCE(conn->peer_qpn) != m->qpn)
			continue;
		found = true;
		/* Who takes it down answers. A second question takes the place of
		 * the first.
		 */
		conn->end_asked = true;
		conn->end_id = m->id;
		/* It may just be coming up. */
		rmp_conn_abort(conn);
		rmp_conn_set_lost(conn);
		break;
	}
	mutex_unlock(&peer->lock);
	if (found)
		rmp_peer_kick(peer);
	else
		fence_answer(s, m->id);
}

void rmp_fence_drain(struct rmp_session *s, struct rmp_conn *conn)
{
	struct rmp_peer *peer = s->peer;
	bool asked;

	rmp_peer_ops->qp_drain(conn);
	mutex_lock(&peer->lock);
	list_del(&conn->end_node);
	asked = conn->end_asked && !s->closing;
	mutex_unlock(&peer->lock);
	if (asked)
		fence_answer(s, conn->end_id);
}
