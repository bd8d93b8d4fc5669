// SPDX-License-Identifier: GPL-2.0
/*
 * The side that connects the rails of a session.
 *
 * The initiator asks for tokens over the control channel and connects each data queue
 * pair with one. A token is good for one queue pair of one rail, once (admit.c). What fails
 * is tried again after a pause, which grows up to some seconds, and with new tokens.
 * How often a rail found no way is counted, for who gives up those that are not the
 * first of their device (ways.c).
 *
 * Locking: rails, tokens, and what is owed to whom, under peer->lock. Connecting waits
 * outside of it, with the queue pair in peer->connecting, so that others can abort it.
 *
 * Lifetime: only the worker takes rails out of the table, and all but the answers to what
 * was asked is done by the worker, so a rail stays while it is connected.
 *
 * Context: process; answers come from the control channel, and only set down what they say.
 */
#include <linux/slab.h>
#include "session.h"

#define RMP_RAIL_BACKOFF_MIN	msecs_to_jiffies(100)
#define RMP_RAIL_BACKOFF_MAX	msecs_to_jiffies(5000)

/* All else, such as a device that has no room for a queue pair, or an attempt that was given
 * up, says nothing about the way between the two devices.
 */
static bool error_is_of_way(int error)
{
	switch (error) {
	case -EADDRNOTAVAIL:
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
		return true;
	}
	return false;
}

static void rail_failed(struct rmp_rail *rail, int error)
{
	if (error_is_of_way(error)) {
		rail->failures++;
		rail->error = error;
	}
	rail->backoff = clamp(rail->backoff * 2, RMP_RAIL_BACKOFF_MIN,
			      RMP_RAIL_BACKOFF_MAX);
	rail->next_try = jiffies + rail->backoff;
	rail->tokens = 0;
	rail->requested = false;
}

/* Connects one queue pair with a token; by the worker. */
static int rail_connect_qp(struct rmp_session *s, struct rmp_rail *rail, u32 qp)
{
	struct rmp_wire_req req = {
		.kind = RMP_WIRE_DATA,
		.rail = rail->index,
		.qp = qp,
	};
	struct rmp_peer *peer = s->peer;
	struct rmp_conn *conn;
	int ret;

	conn = rmp_peer_ops->qp_create(rail, qp);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	mutex_lock(&peer->lock);
	rmp_fence_watch(s, rail->index, conn);
	memcpy(req.token, rail->token[qp], sizeof(req.token));
	rail->tokens &= ~BIT(qp);
	peer->connecting = conn;
	if (peer->removed || READ_ONCE(s->broken) || READ_ONCE(s->overdue))
		rmp_conn_abort(conn);
	mutex_unlock(&peer->lock);

	ret = rmp_conn_connect(conn, &rail->local, &rail->remote, &req,
			       RMP_RAIL_TIMEOUT);
	mutex_lock(&peer->lock);
	peer->connecting = NULL;
	mutex_unlock(&peer->lock);
	if (!ret && !rmp_rail_enter(s, rail, qp, conn))
		ret = -ECANCELED;
	if (ret) {
		rmp_rail_tell_lost(s, rail, qp, conn);
		rmp_rail_end_qp(s, rail, conn);
	}
	return ret;
}

static void rail_request_tokens(struct rmp_session *s, struct rmp_rail *rail)
{
	struct rmp_msg *msg;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg) {
		/* It is tried again as if there was no answer; and none is to be dropped. */
		mutex_lock(&s->peer->lock);
		if (s->owed[rail->index])
			s->owed[rail->index]--;
		mutex_unlock(&s->peer->lock);
		return;
	}
	msg->type = RMP_MSG_RAIL_REQUEST;
	msg->rail_request.rail = rail->index;
	msg->rail_request.sender_dev = rail->dev->index;
	msg->rail_request.receiver_dev = rail->remote_dev;
	msg->rail_request.nr_qps = rail->nr_qps;
	rmp_session_send(s, msg);
	kfree(msg);
}

int rmp_rails_tokens(struct rmp_session *s, const struct rmp_msg_rail_tokens *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rail *rail;

	mutex_lock(&peer->lock);
	rail = s->rails[m->rail];
	if (s->owed[m->rail])
		s->owed[m->rail]--;
	/* The rail that asked may have been between other devices: what is connected with such
	 * a token would have their keys. Or it was cut off since: the peer may not have read
	 * yet what it has to let go of, and has to before it gets a queue pair.
	 */
	if (s->stale[m->rail]) {
		s->stale[m->rail]--;
		rail = NULL;
	}
	if (rail && rail->requested) {
		rail->requested = false;
		if (m->status || !m->nr) {
			rail_failed(rail, -EAGAIN);
		} else {
			rail->nr_qps = min_t(u32, rail->nr_qps, m->nr);
			memcpy(rail->token, m->token, sizeof(rail->token));
			rail->tokens = GENMASK(rail->nr_qps - 1, 0);
		}
	}
	mutex_unlock(&peer->lock);
	rmp_peer_kick(peer);
	return 0;
}

/* What the initiator does for one rail; jiffies until the next time, 0: none.
 * @failed: a queue pair did not connect, which may have taken long.
 */
static unsigned long rail_drive(struct rmp_session *s, struct rmp_rail *rail,
				bool *failed)
{
	struct rmp_peer *peer = s->peer;
	u32 qp, missing = 0, tokens;
	bool ask = false;
	long left;
	int ret;

	/* It is looked at again when there are less. */
	if (rmp_dying_full(peer, rail->index))
		return 0;
	mutex_lock(&peer->lock);
	for (qp = 0; qp < rail->nr_qps; qp++) {
		if (!rail->conns[qp])
			missing |= BIT(qp);
	}
	left = rail->next_try - jiffies;
	if (rail->requested && left <= 0)
		rail_failed(rail, -EAGAIN);	/* no answer in time */
	tokens = rail->tokens & missing;
	if (missing && !tokens && !rail->requested && left <= 0) {
		rail->requested = true;
		rail->next_try = jiffies + RMP_RAIL_TIMEOUT;
		s->owed[rail->index]++;
		ask = true;
	}
	left = rail->next_try - jiffies;
	mutex_unlock(&peer->lock);

	if (!missing)
		return 0;
	if (ask)
		rail_request_tokens(s, rail);
	for (qp = 0; qp < RMP_QPS_MAX && tokens; qp++) {
		if (!(tokens & BIT(qp)))
			continue;
		tokens &= ~BIT(qp);
		ret = rail_connect_qp(s, rail, qp);
		if (ret) {
			mutex_lock(&peer->lock);
			rail_failed(rail, ret);
			left = rail->next_try - jiffies;
			mutex_unlock(&peer->lock);
			*failed = true;
			break;
		}
		rail->backoff = 0;
		left = 1;
	}
	return max(left, 1L);
}

/* Only the worker takes rails out of the table, so it may walk it unlocked. */
unsigned long rmp_rails_dial(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	unsigned long next = 0, t;
	bool failed = false;
	u32 i, n;

	mutex_lock(&peer->lock);
	if (s->pair_again) {
		s->pair_again = !rmp_rails_pair(s);
		if (s->pair_again)
			next = RMP_RAIL_BACKOFF_MIN;
	}
	mutex_unlock(&peer->lock);
	t = rmp_ways_make(s);
	if (t && (!next || t < next))
		next = t;
	for (n = 0; n < RMP_RAILS_MAX; n++) {
		i = (s->next_rail + n) % RMP_RAILS_MAX;
		if (!s->rails[i] || READ_ONCE(s->broken))
			continue;
		t = rail_drive(s, s->rails[i], &failed);
		if (failed) {
			/* After seconds perhaps: look at all else first. */
			s->next_rail = i + 1;
			return 1;
		}
		if (t && (!next || t < next))
			next = t;
	}
	return next;
}
