// SPDX-License-Identifier: GPL-2.0
/*
 * The side that lets the queue pairs of rails in.
 *
 * Who did not connect the session makes a rail when the initiator asks for one, and gives
 * tokens for it. A token is 128 random bits, good for one queue pair of one rail, once;
 * only who reads the control channel knows it. New ones make those of before void.
 *
 * Locking: rails and tokens under peer->lock. Queue pairs that are being let in are in
 * s->accepting, so that who ends all of them does not miss any: the peer can use
 * one before it is entered into its rail.
 *
 * Lifetime: who lets one in has references of the peer, the session and the rail, and
 * counts as one that is being destroyed (dying.c): who ends all of them, or
 * those on a device, waits for it.
 *
 * Context: process. Requests of the CM come in a work item of their own each, and may wait;
 * messages come from the control channel, and do not.
 */
#include <crypto/algapi.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "session.h"

void rmp_rails_request(struct rmp_session *s,
		       const struct rmp_msg_rail_request *m)
{
	const struct rmp_wire_device *remote;
	struct rmp_peer *peer = s->peer;
	struct rmp_rail *rail;
	struct rmp_msg *msg;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return;		/* the initiator asks again */
	msg->type = RMP_MSG_RAIL_TOKENS;
	msg->rail_tokens.rail = m->rail;
	msg->rail_tokens.status = RMP_REJECT_RESOURCES;

	mutex_lock(&peer->lock);
	rail = s->rails[m->rail];
	remote = rmp_rails_remote(s, m->sender_dev);
	if (rail && (rail->dev->index != m->receiver_dev ||
		     rail->remote_dev != m->sender_dev)) {
		rail->going = true;	/* of a former device; comes again */
		rail = NULL;
	} else if (!rail && remote && !s->closing) {
		rail = rmp_rail_create(s, m->rail, m->receiver_dev, remote,
				       m->nr_qps);
	}
	/* Else the initiator asks again. */
	if (rail && !rail->going && !s->cutting &&
	    !rmp_dying_full(peer, rail->index)) {
		get_random_bytes(rail->token, sizeof(rail->token));
		rail->tokens = GENMASK(rail->nr_qps - 1, 0);
		memcpy(msg->rail_tokens.token, rail->token,
		       rail->nr_qps * RMP_WIRE_TOKEN);
		msg->rail_tokens.nr = rail->nr_qps;
		msg->rail_tokens.status = 0;
	}
	mutex_unlock(&peer->lock);
	rmp_peer_kick(peer);
	rmp_session_send(s, msg);
	kfree_sensitive(msg);
}

/* A queue pair that is being let in, of whoever does. */
struct rail_accepting {
	struct list_head node;
	struct rmp_rail *rail;
	struct rmp_conn *conn;
};

/* Finds the rail that a token was given for, and uses the token up. What is connected with
 * it has the keys of the initiator's device that the rail is of, so it has to come from
 * there: the request is not in order with what the initiator says of its devices, and may
 * be of another one that is in the same place by now. The initiator connects from the
 * address that it tells. Where it has not told that yet, it asks for tokens again.
 */
static struct rmp_rail *take_token(struct rmp_session *s,
				   const struct rmp_cm_request *cm,
				   struct rail_accepting *a)
{
	const struct rmp_wire_req *req = &cm->req;
	struct rmp_peer *peer = s->peer;
	struct rmp_rail *rail = NULL;

	if (req->rail >= RMP_RAILS_MAX || req->qp >= RMP_QPS_MAX)
		return NULL;
	mutex_lock(&peer->lock);
	if (!s->closing && !s->cutting && s->rails[req->rail])
		rail = s->rails[req->rail];
	if (rail && (rail->going || !(rail->tokens & BIT(req->qp)) ||
		     crypto_memneq(rail->token[req->qp], req->token,
				   RMP_WIRE_TOKEN) ||
		     !rmp_endpoint_same_host(&rail->remote, &cm->src)))
		rail = NULL;
	if (rail) {
		rail->tokens &= ~BIT(req->qp);
		rmp_rail_hold(rail);
		rmp_dying_let_in(rail);
		a->rail = rail;
		list_add(&a->node, &s->accepting);
	}
	mutex_unlock(&peer->lock);
	return rail;
}

static void rail_accept(struct rmp_session *s, struct rmp_rail *rail,
			struct rmp_cm_request *req, struct rail_accepting *a)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_conn *conn, *old;
	u32 qp = req->req.qp;
	int ret;

	/* The initiator knows that the old one is dead; make room. */
	mutex_lock(&peer->lock);
	old = rail->conns[qp];
	rail->conns[qp] = NULL;
	mutex_unlock(&peer->lock);
	if (old) {
		rmp_conn_disconnect(old);
		rmp_fence_ask(s, rail->index, qp, old);
		rmp_rail_end_qp(s, rail, old);
	}

	conn = rmp_peer_ops->qp_create(rail, qp);
	if (IS_ERR(conn)) {
		rmp_cm_reject(req, RMP_REJECT_RESOURCES, false);
		return;
	}
	mutex_lock(&peer->lock);
	rmp_fence_watch(s, rail->index, conn);
	a->conn = conn;
	if (s->closing || s->cutting || rail->going)
		rmp_conn_abort(conn);
	mutex_unlock(&peer->lock);
	ret = rmp_conn_accept(conn, req, RMP_RAIL_TIMEOUT);
	mutex_lock(&peer->lock);
	a->conn = NULL;
	mutex_unlock(&peer->lock);
	if (ret || !rmp_rail_enter(s, rail, qp, conn)) {
		rmp_rail_tell_lost(s, rail, qp, conn);
		rmp_rail_end_qp(s, rail, conn);
	}
}

void rmp_rails_abort_accepting(struct rmp_session *s, const struct rmp_device *dev)
{
	struct rail_accepting *a;

	lockdep_assert_held(&s->peer->lock);
	list_for_each_entry(a, &s->accepting, node) {
		if (a->conn && (!dev || a->rail->dev == dev))
			rmp_conn_abort(a->conn);
	}
}

void rmp_rails_incoming(struct rmp_cm_request *req)
{
	struct rail_accepting a = {};
	struct rmp_session *s = NULL;
	struct rmp_rail *rail = NULL;
	struct rmp_peer *peer;

	peer = rmp_peer_find_uuid(req->req.uuid);
	if (peer)
		s = rmp_session_get(peer);
	if (!s || s->initiator) {
		rmp_cm_reject(req, RMP_REJECT_NO_PEER, false);
		goto out;
	}
	rail = take_token(s, req, &a);
	if (!rail) {
		rmp_cm_reject(req, RMP_REJECT_TOKEN, false);
		goto out;
	}
	rail_accept(s, rail, req, &a);
	mutex_lock(&peer->lock);
	list_del(&a.node);
	mutex_unlock(&peer->lock);
	/* Who ends all of them, or those on a device, waits for this one. */
	rmp_dying_was_let_in(rail);
	rmp_rail_put(rail);
out:
	if (s)
		rmp_session_put(s);
	if (peer)
		rmp_peer_put(peer);
}
