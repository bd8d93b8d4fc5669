// SPDX-License-Identifier: GPL-2.0
/*
 * The data paths of a session.
 *
 * The initiator of a session pairs its devices with those the peer told
 * (pairing.c): one rail for each local device, and those that somebody needs besides
 * (ways.c). It connects their queue pairs (dial.c), and the other side lets them in
 * (admit.c). When a queue pair fails, on either side, the worker takes it down and tells
 * the peer its number, whose worker does the same with the other end (fence.c); and the
 * initiator connects it anew. It is destroyed meanwhile (dying.c). A peer that does not let
 * go of memory loses all of them (revoke.c), and all tokens.
 *
 * Locking: rails and tokens under peer->lock. Queue pairs are entered into
 * rail->conns and started when they are up, and taken out before they are
 * drained, which happens outside of the lock.
 *
 * Lifetime: a rail is referenced by the session's table, by a connection being
 * accepted on it, and by those of it that are being destroyed. Its device reference goes
 * with it, so a rail of a device that is removed is taken out as soon as its queue pairs
 * are drained.
 *
 * Context: process; what waits is done by the worker, but for queue pairs that are let in.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include "rsegment.h"
#include "session.h"

unsigned int rmp_qps = 2;
module_param_named(qps, rmp_qps, uint, 0644);
MODULE_PARM_DESC(qps, "queue pairs per rail, 1 to 16 (default 2)");

/* ---------------------------------------------------------- rails themselves */

static void rail_release(struct kref *ref)
{
	struct rmp_rail *rail = container_of(ref, struct rmp_rail, ref);

	rmp_device_put(rail->dev);
	kfree(rail);
}

void rmp_rail_hold(struct rmp_rail *rail)
{
	kref_get(&rail->ref);
}

void rmp_rail_put(struct rmp_rail *rail)
{
	kref_put(&rail->ref, rail_release);
}

const struct rmp_wire_device *rmp_rails_remote(const struct rmp_session *s, u32 index)
{
	u32 i;

	for (i = 0; i < s->devices.nr; i++) {
		if (s->devices.dev[i].index == index)
			return &s->devices.dev[i];
	}
	return NULL;
}

void rmp_rails_address(const struct rmp_wire_device *w, u16 port,
		       struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (w->family == 4) {
		addr->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)addr)->sin_addr, w->addr, 4);
	} else {
		addr->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)addr)->sin6_addr, w->addr, 16);
	}
	rmp_endpoint_set_port(addr, port);
}

struct rmp_rail *rmp_rail_create(struct rmp_session *s, u32 index, u32 local_dev,
				 const struct rmp_wire_device *remote, u32 nr_qps)
{
	struct rmp_device *dev;
	struct rmp_rail *rail;
	struct rmp_port port;

	dev = rmp_device_get(local_dev);
	if (!dev)
		return NULL;
	rail = kzalloc(sizeof(*rail), GFP_KERNEL);
	if (!rail || rmp_device_usable_port(dev, &port)) {
		kfree(rail);
		rmp_device_put(dev);
		return NULL;
	}
	kref_init(&rail->ref);
	rail->peer = s->peer;
	rail->flow = s->peer->flow;
	rail->dev = dev;
	rail->index = index;
	rail->port_num = port.num;
	rail->remote_dev = remote->index;
	/* The place of the first one of each is the index of its device where it is made. */
	rail->extra = index != (s->initiator ? local_dev : remote->index);
	rail->local = port.addr;
	rmp_rails_address(remote, rmp_endpoint_port(&s->peer->addr), &rail->remote);
	rail->speed_mbps = max_t(u32, 1, min_t(u64, port.speed_mbps,
					       remote->speed_mbps));
	rail->nr_qps = clamp_t(u32, nr_qps, 1, RMP_QPS_MAX);
	rail->next_try = jiffies;
	rail->made = jiffies;
	/* It had no link for a while: it is waited for as if it had stayed. */
	rail->was_up = rmp_ways_been(s->peer, local_dev, remote->index);
	s->rails[index] = rail;
	return rail;
}

u32 rmp_rails_up(struct rmp_session *s)
{
	u32 i, q, nr = 0;

	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (!s->rails[i])
			continue;
		for (q = 0; q < s->rails[i]->nr_qps; q++)
			nr += s->rails[i]->conns[q] &&
			      rmp_conn_up(s->rails[i]->conns[q]);
	}
	return nr;
}

/* peer->lock held. */
static void rails_update_state(struct rmp_session *s)
{
	if (s->live && !s->closing)
		rmp_peer_set_state(s->peer, rmp_rails_up(s) ?
				   RMPOOL_PEER_READY : RMPOOL_PEER_CONNECTED);
}

/* A packet that is larger than the link takes is lost, and the next attempt with
 * it, as often as the device tries: for ever with soft-RoCE.
 */
static bool conn_fits(const struct rmp_rail *rail, const struct rmp_conn *conn)
{
	struct rmp_port port;

	return !rmp_device_port(rail->dev, rail->port_num, &port) &&
	       conn->mtu <= port.mtu;
}

/* The peer may not notice by itself that a queue pair of it lost its other end: what
 * the CM says goes over the rail that fails, and one that posts nothing hears nothing.
 * This one carried nothing of ours, so no answer is needed.
 */
void rmp_rail_tell_lost(struct rmp_session *s, const struct rmp_rail *rail, u32 qp,
			const struct rmp_conn *conn)
{
	struct rmp_msg *msg;

	/* Not of one that never was connected, and not where the whole ends. */
	if (!conn->peer_qpn || READ_ONCE(s->closing))
		return;
	msg = rmp_session_new_msg(s, RMP_MSG_RAIL_LOST);
	if (!msg)
		return;
	msg->rail_lost.rail = rail->index;
	msg->rail_lost.qp = qp;
	msg->rail_lost.qpn = conn->qpn;
	rmp_session_send(s, msg);
	kfree(msg);
}

bool rmp_rail_enter(struct rmp_session *s, struct rmp_rail *rail, u32 qp,
		    struct rmp_conn *conn)
{
	struct rmp_peer *peer = s->peer;
	bool ok;

	mutex_lock(&peer->lock);
	ok = !s->closing && !s->cutting && !rail->going && !rail->conns[qp] &&
	     qp < rail->nr_qps && rmp_conn_up(conn) && conn_fits(rail, conn);
	if (ok) {
		rail->conns[qp] = conn;
		rmp_ways_up(peer, rail->dev->index, rail->remote_dev);
		/* From now on it is waited for when it is down. */
		rail->was_up = true;
		/* As soon as the lock is dropped, the worker may destroy it. */
		rmp_peer_ops->qp_start(conn);
		rails_update_state(s);
		/* With a token that it was told after all that it has to let go of. */
		WRITE_ONCE(s->mute, false);
	}
	rmp_peer_unlock(peer);
	if (ok)
		rmp_peer_ops->flow_kick(rail->flow);
	return ok;
}

void rmp_rail_end_qp(struct rmp_session *s, struct rmp_rail *rail, struct rmp_conn *conn)
{
	rmp_fence_drain(s, conn);
	rmp_dying_add(rail, conn);
}

/* Ends queue pairs that failed, or all of a rail that goes. */
static void rail_drain(struct rmp_session *s, struct rmp_rail *rail)
{
	struct rmp_conn *gone[RMP_QPS_MAX] = {};
	struct rmp_peer *peer = s->peer;
	bool found = false;
	u32 i;

	mutex_lock(&peer->lock);
	/* The peer may have told fewer tokens than last time. */
	for (i = 0; i < RMP_QPS_MAX; i++) {
		struct rmp_conn *conn = rail->conns[i];

		if (conn && (rail->going || i >= rail->nr_qps ||
			     !rmp_conn_up(conn))) {
			gone[i] = conn;
			rail->conns[i] = NULL;
			found = true;
		}
	}
	if (found)
		rails_update_state(s);
	rmp_peer_unlock(peer);
	for (i = 0; i < RMP_QPS_MAX; i++) {
		if (!gone[i])
			continue;
		rmp_conn_disconnect(gone[i]);
		rmp_fence_ask(s, rail->index, i, gone[i]);
	}
	for (i = 0; i < RMP_QPS_MAX; i++) {
		if (gone[i])
			rmp_rail_end_qp(s, rail, gone[i]);
	}
}

static void rails_drain(struct rmp_session *s)
{
	u32 i;

	/* Only the worker, which this is, takes rails out of the table. */
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = READ_ONCE(s->rails[i]);

		if (rail)
			rail_drain(s, rail);
	}
}

/* ------------------------------------------------- what changes around them */

/* peer->lock held: is the other end still what the rail was made to? Queue pairs
 * keep the address that they were connected to, so a new one needs a new rail.
 */
static bool rail_leads_to(struct rmp_session *s, const struct rmp_rail *rail)
{
	const struct rmp_wire_device *w = rmp_rails_remote(s, rail->remote_dev);
	struct sockaddr_storage addr;

	if (!w)
		return false;
	rmp_rails_address(w, rmp_endpoint_port(&rail->remote), &addr);
	return rmp_endpoint_equal(&rail->remote, &addr);
}

void rmp_rails_lost(struct rmp_session *s, const struct rmp_msg_rail_lost *m)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_conn *conn = NULL;

	mutex_lock(&peer->lock);
	if (s->rails[m->rail])
		conn = s->rails[m->rail]->conns[m->qp];
	/* Not one that came after it. */
	if (conn && conn->peer_qpn == m->qpn)
		rmp_peer_qp_failed(s->rails[m->rail], conn);
	mutex_unlock(&peer->lock);
}

void rmp_rails_devices(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	u32 i, before = s->told_devices, gone;

	/* A device that is not told any more is gone, and with it its keys. */
	s->told_devices = 0;
	for (i = 0; i < s->devices.nr; i++)
		s->told_devices |= BIT(s->devices.dev[i].index);
	gone = before & ~s->told_devices;
	for (i = 0; i < RMP_WIRE_DEVICES_MAX; i++) {
		if (gone & BIT(i))
			rmp_rseg_drop_device(peer, i);
	}
	/* One that had no link for a while has the keys that it had. */
	if (s->told_devices & ~before)
		rmp_rseg_new_device(s);
	rmp_ways_forget(peer);
	mutex_lock(&peer->lock);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = s->rails[i];

		if (!rail || rail_leads_to(s, rail))
			continue;
		rail->going = true;
		/* Else it is not told just now, and may come back. */
		if (rmp_rails_remote(s, rail->remote_dev))
			rmp_ways_moved(peer, rail->dev->index,
				       BIT(rail->remote_dev));
	}
	mutex_unlock(&peer->lock);
}

/* peer->lock held. */
static bool rail_fits(const struct rmp_rail *rail)
{
	u32 i;

	for (i = 0; i < RMP_QPS_MAX; i++) {
		if (rail->conns[i] && !conn_fits(rail, rail->conns[i]))
			return false;
	}
	return true;
}

void rmp_rails_device_changed(struct rmp_session *s, struct rmp_device *dev)
{
	struct rmp_port port;
	u32 i;

	rmp_ways_forget(s->peer);
	/* Without an address, or a link, there is no better rail to be had. */
	if (rmp_device_usable_port(dev, &port))
		return;
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = s->rails[i];
		bool moved;

		if (!rail || rail->dev != dev)
			continue;
		moved = !rmp_endpoint_equal(&rail->local, &port.addr);
		if (moved)
			rmp_ways_moved(s->peer, dev->index, ~0U);
		if (moved || !rail_fits(rail))
			rail->going = true;
	}
}

bool rmp_rails_device_removed(struct rmp_session *s, struct rmp_device *dev)
{
	bool found = false;
	u32 i;

	rmp_ways_forget(s->peer);
	rmp_ways_moved(s->peer, dev->index, ~0U);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (s->rails[i] && s->rails[i]->dev == dev) {
			s->rails[i]->going = true;
			found = true;
		}
	}
	/* The peer may have answered already, and write. */
	rmp_rails_abort_accepting(s, dev);
	return found;
}

/* ------------------------------------------------------------ by the worker */

/* They have no queue pair any more, but for those that are being destroyed. */
static void rails_remove(struct rmp_session *s, u32 mask)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_rail *rail;
	u32 i;

	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (!(mask & BIT(i)))
			continue;
		mutex_lock(&peer->lock);
		rail = s->rails[i];
		s->rails[i] = NULL;
		s->stale[i] = s->owed[i];
		s->pair_again = true;
		if (rail)
			rmp_ways_left(peer, rail->dev->index, rail->remote_dev);
		mutex_unlock(&peer->lock);
		if (rail)
			rmp_rail_put(rail);
	}
}

unsigned long rmp_rails_maintain(struct rmp_session *s)
{
	u32 i, going = 0;

	rmp_ways_give_up(s);
	/* Before: only what is drained as one that goes has no queue pair. */
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = READ_ONCE(s->rails[i]);

		if (rail && READ_ONCE(rail->going))
			going |= BIT(i);
	}
	rails_drain(s);
	rails_remove(s, going);
	return s->initiator ? rmp_rails_dial(s) : rmp_ways_make(s);
}

/* Ends what is in flight on all queue pairs, those being let in included. No token is good
 * any more, nor is one that was asked for: the peer may answer before it reads what it was
 * told meanwhile.
 */
static void rails_disconnect(struct rmp_session *s)
{
	u32 i, q;

	lockdep_assert_held(&s->peer->lock);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = s->rails[i];

		if (!rail)
			continue;
		rail->tokens = 0;
		rail->requested = false;
		s->stale[i] = s->owed[i];
		for (q = 0; q < RMP_QPS_MAX; q++) {
			if (!rail->conns[q])
				continue;
			rmp_conn_set_lost(rail->conns[q]);
			rmp_conn_disconnect(rail->conns[q]);
		}
	}
	rmp_rails_abort_accepting(s, NULL);
}

/* Waits until all that there were are gone. None of those being let in is entered any more, and
 * no new one comes: closing, or cutting.
 */
static void rails_wait_gone(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;

	wait_event(peer->wait, list_empty(&s->accepting));
	rmp_dying_wait(peer, NULL);
	mutex_lock(&peer->lock);
	s->cutting = false;
	mutex_unlock(&peer->lock);
}

void rmp_rails_cut(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;

	mutex_lock(&peer->lock);
	s->cutting = true;
	rails_disconnect(s);
	mutex_unlock(&peer->lock);
	rails_drain(s);
	rails_wait_gone(s);
}

void rmp_rails_close(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	u32 i;

	mutex_lock(&peer->lock);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (s->rails[i])
			s->rails[i]->going = true;
	}
	rails_disconnect(s);
	mutex_unlock(&peer->lock);
	rails_drain(s);
}

void rmp_rails_destroy(struct rmp_session *s)
{
	rails_remove(s, ~0U);
	rmp_ways_reset(s->peer);
	rails_wait_gone(s);
}
