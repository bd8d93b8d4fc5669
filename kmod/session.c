// SPDX-License-Identifier: GPL-2.0
/*
 * The connection to a peer: made by either side, one at a time.
 *
 * The worker of a peer (one delayed work item) connects when somebody wants the
 * peer, looks after the session while it lives, and tears it down when it is
 * broken. A request that comes in is accepted in the work item it came with.
 * When both sides connect at once, the request of the node with the smaller
 * uuid goes first; the other is rejected as crossed and comes again if needed.
 * A request from a peer that seems connected never replaces the session: the
 * old one is probed first, and the new request told to come again, so that a
 * stranger cannot evict a living peer and a restarted peer is let in soon.
 *
 * Life: HELLO and DEVICES go both ways (greet.c); with both received the session is live.
 * Then rails are built and segments opened. BYE, an error of the channel, or a
 * probe without an answer break it: rmp_session_break() notes that, from any
 * context, and kicks the worker, which alone tears down.
 *
 * Locking and order: session.h.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include "rsegment.h"
#include "session.h"

static unsigned int rmp_connect_timeout = 3000;
module_param_named(connect_timeout_ms, rmp_connect_timeout, uint, 0644);
MODULE_PARM_DESC(connect_timeout_ms, "one attempt to connect, ms (default 3000)");

static unsigned int rmp_keepalive = 5000;
module_param_named(keepalive_ms, rmp_keepalive, uint, 0644);
MODULE_PARM_DESC(keepalive_ms, "probe a silent peer after so many ms; it is lost when it does not answer in as many again (default 5000)");

#define RMP_BACKOFF_MIN		msecs_to_jiffies(100)
#define RMP_BACKOFF_MAX		msecs_to_jiffies(2000)
#define RMP_PROBE_TIME		msecs_to_jiffies(1000)
/* For so many keepalive times an entry that accept=any made stays without a
 * connection.
 */
#define RMP_DYNAMIC_STAY	10

static unsigned long connect_timeout(void)
{
	return msecs_to_jiffies(clamp(rmp_connect_timeout, 100U, 60000U));
}

static unsigned long keepalive_time(void)
{
	return msecs_to_jiffies(clamp(rmp_keepalive, 500U, 600000U));
}

/* ---------------------------------------------------------------- sending */

struct rmp_msg *rmp_session_new_msg(struct rmp_session *s, u8 type)
{
	struct rmp_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);

	if (msg)
		msg->type = type;
	else
		rmp_session_break(s, -ENOMEM, RMPOOL_REASON_NONE);
	return msg;
}

int rmp_session_send(struct rmp_session *s, const struct rmp_msg *msg)
{
	return rmp_control_send(&s->ctl, msg);
}

static void session_send_small(struct rmp_session *s, u8 type, u64 id)
{
	struct rmp_msg *msg;

	msg = rmp_session_new_msg(s, type);
	if (!msg)
		return;
	msg->probe.id = id;
	rmp_session_send(s, msg);
	kfree(msg);
}

/* peer->lock held. */
static void session_probe(struct rmp_session *s, unsigned long timeout)
{
	if (s->probing) {
		/* Who is in a hurry does not wait for a patient one. */
		if (time_before(jiffies + timeout, s->probe_deadline)) {
			s->probe_deadline = jiffies + timeout;
			rmp_peer_kick(s->peer);
		}
		return;
	}
	s->probing = true;
	s->probe_id++;
	s->probe_deadline = jiffies + timeout;
	session_send_small(s, RMP_MSG_PROBE, s->probe_id);
	rmp_peer_kick(s->peer);
}

/* --------------------------------------------------------------- receiving */

static int session_message(struct rmp_control *ctl, const struct rmp_msg *msg,
			   const void *buf, size_t len)
{
	struct rmp_session *s = container_of(ctl, struct rmp_session, ctl);

	switch (msg->type) {
	case RMP_MSG_HELLO:
		return rmp_session_hello(s, &msg->hello);
	case RMP_MSG_DEVICES:
		return rmp_session_devices(s, &msg->devices);
	case RMP_MSG_PROBE:
		session_send_small(s, RMP_MSG_PROBE_ACK, msg->probe.id);
		return 0;
	case RMP_MSG_PROBE_ACK:
		mutex_lock(&s->peer->lock);
		if (s->probing && msg->probe.id == s->probe_id) {
			s->probing = false;
			s->answered = jiffies;
		}
		mutex_unlock(&s->peer->lock);
		return 0;
	case RMP_MSG_BYE:
		rmp_session_break(s, -ECONNRESET, RMPOOL_REASON_PEER_GONE);
		return 0;
	}
	if (!s->live)
		return -EPROTO;
	switch (msg->type) {
	case RMP_MSG_RAIL_REQUEST:
		if (s->initiator)
			return -EPROTO;
		rmp_rails_request(s, &msg->rail_request);
		return 0;
	case RMP_MSG_RAIL_TOKENS:
		if (!s->initiator)
			return -EPROTO;
		return rmp_rails_tokens(s, &msg->rail_tokens);
	case RMP_MSG_RAIL_WANTED:
		return rmp_ways_message(s, &msg->rail_wanted);
	case RMP_MSG_RAIL_LOST:
		rmp_rails_lost(s, &msg->rail_lost);
		return 0;
	case RMP_MSG_QP_FENCE:
		rmp_fence_asked(s, &msg->qp_fence);
		return 0;
	case RMP_MSG_QP_FENCED:
		rmp_peer_ops->qp_fenced(s->peer->flow, msg->qp_fenced.id);
		return 0;
	case RMP_MSG_SEGMENT_OPEN:
	case RMP_MSG_SEGMENT_CLOSE:
	case RMP_MSG_KEYS_GET:
	case RMP_MSG_REVOKE_ACK:
		return rmp_export_message(s, msg);
	default:
		return rmp_rseg_message(s, msg, buf, len);
	}
}

static void session_broken(struct rmp_control *ctl)
{
	struct rmp_session *s = container_of(ctl, struct rmp_session, ctl);

	rmp_session_break(s, -ECONNRESET, RMPOOL_REASON_PEER_GONE);
}

static const struct rmp_control_ops session_ops = {
	.message = session_message,
	.broken = session_broken,
};

/* -------------------------------------------------------------- life cycle */

static struct rmp_session *session_alloc(struct rmp_peer *peer, bool initiator)
{
	struct rmp_session *s;

	s = kvzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return NULL;
	kref_init(&s->ref);
	rmp_peer_hold(peer);
	s->peer = peer;
	s->initiator = initiator;
	INIT_LIST_HEAD(&s->ends);
	INIT_LIST_HEAD(&s->accepting);
	rmp_control_init(&s->ctl, &session_ops);
	rmp_export_init(s);
	return s;
}

static void session_release(struct kref *ref)
{
	struct rmp_session *s = container_of(ref, struct rmp_session, ref);

	rmp_peer_put(s->peer);
	mutex_destroy(&s->export_lock);
	kvfree(s);
}

void rmp_session_put(struct rmp_session *s)
{
	kref_put(&s->ref, session_release);
}

struct rmp_session *rmp_session_get(struct rmp_peer *peer)
{
	struct rmp_session *s;

	mutex_lock(&peer->lock);
	s = peer->session;
	if (s && s->live && !s->closing && !READ_ONCE(s->broken))
		kref_get(&s->ref);
	else
		s = NULL;
	rmp_peer_unlock(peer);
	return s;
}

void rmp_session_break(struct rmp_session *s, int error, u32 reason)
{
	if (!READ_ONCE(s->broken)) {
		s->error = error;
		s->reason = reason;
		/* Orders error and reason before the mark. */
		smp_store_release(&s->broken, true);
	}
	rmp_peer_kick(s->peer);
}

/* peer->lock held. The control connection is up, and HELLO queued, so that it
 * goes first. As soon as the lock is dropped, the worker may tear @s down.
 */
static int session_install(struct rmp_peer *peer, struct rmp_session *s)
{
	/* Its removal has asked this peer already, or will when we are done. */
	if (READ_ONCE(s->ctl.conn.dev->going))
		return -ENODEV;
	s->deadline = jiffies + connect_timeout();
	peer->session = s;
	if (peer->state != RMPOOL_PEER_CONNECTING)
		rmp_peer_set_state(peer, RMPOOL_PEER_CONNECTING);
	/* Behind HELLO. Under the lock, so that no change is missed. */
	rmp_session_send_devices(s);
	rmp_control_start(&s->ctl);
	return 0;
}

/* peer->lock held. */
static void peer_failed(struct rmp_peer *peer, int error, u32 reason)
{
	peer->error = error;
	peer->reason = reason;
	peer->failures++;
	peer->backoff = clamp(peer->backoff * 2, RMP_BACKOFF_MIN,
			      RMP_BACKOFF_MAX);
	peer->next_try = jiffies + peer->backoff;
	rmp_peer_set_state(peer, atomic_read(&peer->users) ?
				 RMPOOL_PEER_BACKOFF : RMPOOL_PEER_IDLE);
}

static void session_teardown(struct rmp_peer *peer, struct rmp_session *s)
{
	bool bye;

	mutex_lock(&peer->lock);
	s->closing = true;
	/* Pairs with rmp_session_break(): error and reason are set. */
	bye = !smp_load_acquire(&s->broken);
	rmp_peer_set_state(peer, RMPOOL_PEER_CLOSING);
	rmp_peer_unlock(peer);

	if (bye) {
		session_send_small(s, RMP_MSG_BYE, 0);
		rmp_control_flush(&s->ctl, msecs_to_jiffies(500));
	}
	rmp_control_stop(&s->ctl);
	/* Rails before keys: what is queued then sees that there is no way, not
	 * that its region is gone. So does what was on them, and is kept until then.
	 */
	rmp_rails_close(s);
	rmp_rseg_session_down(peer);
	rmp_peer_ops->flow_kick(peer->flow);
	rmp_rails_destroy(s);
	rmp_export_destroy(s);
	rmp_control_destroy(&s->ctl);

	mutex_lock(&peer->lock);
	peer->session = NULL;
	peer->seen = jiffies;
	peer_failed(peer, s->error ?: -ECONNRESET,
		    s->reason ?: RMPOOL_REASON_PEER_GONE);
	rmp_peer_unlock(peer);
	rmp_session_put(s);
}

static void session_connect(struct rmp_peer *peer)
{
	struct rmp_wire_req req = { .kind = RMP_WIRE_CONTROL };
	struct sockaddr_storage src;
	struct rmp_session *s;
	u32 reason;
	int ret;

	s = session_alloc(peer, true);
	mutex_lock(&peer->lock);
	if (peer->session || peer->incoming || peer->removed) {
		rmp_peer_unlock(peer);
		if (s)
			rmp_session_put(s);
		return;
	}
	if (!s) {
		peer_failed(peer, -ENOMEM, RMPOOL_REASON_NONE);
		rmp_peer_unlock(peer);
		return;
	}
	peer->connecting = &s->ctl.conn;
	rmp_peer_set_state(peer, RMPOOL_PEER_CONNECTING);
	rmp_peer_unlock(peer);

	rmp_node_source(&src);
	ret = rmp_conn_connect(&s->ctl.conn, src.ss_family ? &src : NULL,
			       &peer->addr, &req, connect_timeout());
	reason = s->ctl.conn.reason;
	memcpy(s->uuid, s->ctl.conn.reply.uuid, sizeof(s->uuid));
	if (!ret)
		rmp_session_send_hello(s);

	mutex_lock(&peer->lock);
	peer->connecting = NULL;
	if (!ret && (peer->session || peer->removed || peer->incoming))
		ret = -ECANCELED;
	if (!ret && !memcmp(s->uuid, &rmp_uuid, sizeof(s->uuid))) {
		ret = -ELOOP;
		reason = RMPOOL_REASON_PEER_SELF;
	}
	if (!ret)
		ret = session_install(peer, s);
	if (ret && !peer->session && !peer->incoming)
		peer_failed(peer, ret, reason);
	rmp_peer_unlock(peer);

	if (ret) {
		rmp_control_destroy(&s->ctl);
		rmp_session_put(s);
	}
}

/* Looks after a session that is not broken; returns jiffies until the next time. */
static unsigned long session_maintain(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	unsigned long idle, next, rails;

	mutex_lock(&peer->lock);
	if (!s->live && time_after(jiffies, s->deadline))
		rmp_session_break(s, -ETIMEDOUT, RMPOOL_REASON_SILENT);
	if (s->probing && time_after(jiffies, s->probe_deadline))
		rmp_session_break(s, -ETIMEDOUT, RMPOOL_REASON_SILENT);
	idle = jiffies - READ_ONCE(s->ctl.last_rx);
	if (s->live && !s->probing && idle >= keepalive_time())
		session_probe(s, keepalive_time());
	if (s->probing)
		next = s->probe_deadline + 1 - jiffies;
	else if (!s->live)
		next = s->deadline + 1 - jiffies;
	else
		next = idle < keepalive_time() ? keepalive_time() - idle : 1;
	rmp_peer_unlock(peer);

	if (s->live && !READ_ONCE(s->broken)) {
		rmp_revoke_enforce(s);
		rails = rmp_rails_maintain(s);
		if (rails)
			next = min(next, rails);
	}
	return clamp_t(long, next, 1, keepalive_time());
}

void rmp_session_worker(struct work_struct *work)
{
	struct rmp_peer *peer = container_of(to_delayed_work(work),
					     struct rmp_peer, work);
	struct rmp_session *s;
	unsigned long next = 0;
	bool incoming;

	/* Only this function takes peer->session away. */
	mutex_lock(&peer->lock);
	peer->begun++;
	s = peer->session;
	incoming = peer->incoming;
	rmp_peer_unlock(peer);

	if (s && (READ_ONCE(s->broken) || READ_ONCE(peer->removed))) {
		session_teardown(peer, s);
		s = NULL;
	}
	if (s) {
		next = session_maintain(s);
		if (READ_ONCE(s->broken))
			next = 1;
	} else if (incoming || READ_ONCE(peer->removed)) {
		/* Who lets it in kicks when that is over. */
	} else if (atomic_read(&peer->users)) {
		if (time_before(jiffies, peer->next_try)) {
			next = peer->next_try - jiffies;
		} else {
			session_connect(peer);
			next = 1;
		}
	} else if (peer->dynamic) {
		next = rmp_peer_reclaim(peer,
					RMP_DYNAMIC_STAY * keepalive_time());
	}
	if (next)
		queue_delayed_work(rmp_peers_wq, &peer->work, next);
	/* All that was done is seen by who waits for it. */
	smp_store_release(&peer->ended, peer->begun);
	wake_up_all(&peer->wait);
}

/* ---------------------------------------------------------------- incoming */

/* peer->lock held. 0: go on, else why not. */
static int incoming_check(struct rmp_peer *peer, struct rmp_cm_request *req)
{
	struct rmp_session *s = peer->session;

	if (peer->removed)
		return RMP_REJECT_CLOSING;
	if (peer->incoming)
		return RMP_REJECT_RETRY;
	if (s) {
		if (!s->closing && s->live && !READ_ONCE(s->broken)) {
			if (!s->probing && s->answered &&
			    time_before(jiffies, s->answered + 2 * HZ))
				return RMP_REJECT_IN_USE;
			session_probe(s, RMP_PROBE_TIME);
		}
		return RMP_REJECT_RETRY;
	}
	if (peer->connecting) {
		if (memcmp(req->req.uuid, &rmp_uuid, sizeof(rmp_uuid)) > 0)
			return RMP_REJECT_CROSSED;
		rmp_conn_abort(peer->connecting);
	}
	return 0;
}

static void incoming_control(struct rmp_cm_request *req)
{
	struct rmp_session *s = NULL;
	struct rmp_peer *peer;
	int ret, why;
	bool quiet;

	peer = rmp_peer_find_host(&req->src);
	if (IS_ERR(peer)) {
		rmp_cm_reject(req, peer == ERR_PTR(-EACCES) ?
			      RMP_REJECT_NOT_TRUSTED : RMP_REJECT_RESOURCES,
			      false);
		return;
	}
	mutex_lock(&peer->lock);
	why = incoming_check(peer, req);
	if (!why) {
		peer->incoming = true;
		peer->seen = jiffies;
	}
	rmp_peer_unlock(peer);
	if (why) {
		quiet = why == RMP_REJECT_CROSSED || why == RMP_REJECT_RETRY;
		rmp_cm_reject(req, why, quiet);
		goto out;
	}

	s = session_alloc(peer, false);
	if (s) {
		memcpy(s->uuid, req->req.uuid, sizeof(s->uuid));
		ret = rmp_conn_accept(&s->ctl.conn, req, connect_timeout());
	} else {
		ret = -ENOMEM;
		rmp_cm_reject(req, RMP_REJECT_RESOURCES, false);
	}
	if (!ret)
		rmp_session_send_hello(s);
	mutex_lock(&peer->lock);
	peer->incoming = false;
	if (!ret && (peer->session || peer->removed))
		ret = -ECANCELED;
	if (!ret)
		ret = session_install(peer, s);
	rmp_peer_unlock(peer);
	if (ret && s) {
		rmp_control_destroy(&s->ctl);
		rmp_session_put(s);
	}
	rmp_peer_kick(peer);
out:
	rmp_peer_put(peer);
}

void rmp_session_incoming(struct rmp_cm_request *req)
{
	if (req->req.kind == RMP_WIRE_DATA)
		rmp_rails_incoming(req);
	else
		incoming_control(req);
}
