// SPDX-License-Identifier: GPL-2.0
/*
 * What peers do when a device of this node changes, or goes.
 *
 * One that goes is left by all peers at once: each marks what it has there and kicks its
 * worker, which takes it down (session.c, rails.c). Then each is waited for, and those that
 * were deleted before. When that is done, no queue pair is on the device. Whether it changed
 * or went, the nodes that are connected are told which devices there are now.
 *
 * Locking: the table is walked without its lock held; what is in a peer is looked at and
 * marked under peer->lock. None is held while a worker is waited for.
 *
 * Lifetime: the device stays until the call returns. One goes at a time, so there is one
 * mark for it in a peer.
 *
 * Context: process. Who says that a device changed does not wait for peers; who says that
 * it goes waits for workers, and for the device to destroy queue pairs, which may take it
 * long.
 */
#include "session.h"

/* Has its worker let go of the device. */
static int peer_leave_device(struct rmp_peer *peer, void *arg)
{
	struct rmp_device *dev = arg;
	struct rmp_session *s;
	bool flush = false;

	mutex_lock(&peer->lock);
	s = peer->session;
	if (s) {
		if (s->ctl.conn.dev == dev) {
			rmp_session_break(s, -ENODEV,
					  RMPOOL_REASON_NO_DEVICE);
			flush = true;
		} else {
			flush = rmp_rails_device_removed(s, dev);
			rmp_session_send_devices(s);
		}
	} else if (peer->connecting && peer->connecting->dev == dev) {
		flush = true;
	}
	/* Whatever the worker connects just now: do not wait for it. */
	if (flush && peer->connecting)
		rmp_conn_abort(peer->connecting);
	peer->leaving = flush;
	peer->leaving_since = peer->begun;
	mutex_unlock(&peer->lock);
	if (flush)
		rmp_peer_kick(peer);
	return 0;
}

static int peer_left_device(struct rmp_peer *peer, void *arg)
{
	bool flush;
	u32 since;

	mutex_lock(&peer->lock);
	flush = peer->leaving;
	since = peer->leaving_since;
	peer->leaving = false;
	mutex_unlock(&peer->lock);
	if (flush)
		rmp_peer_has_run(peer, since);
	/* Those that it took down, and those of rails that went before. */
	rmp_dying_wait(peer, arg);
	return 0;
}

void rmp_peer_device_removed(struct rmp_device *dev)
{
	/* All at once, then one after the other: each may take long. */
	rmp_peer_walk("", peer_leave_device, dev);
	rmp_peer_walk("", peer_left_device, dev);
	rmp_peers_wait_closing();
}

static int peer_device_changed(struct rmp_peer *peer, void *arg)
{
	struct rmp_session *s;

	mutex_lock(&peer->lock);
	s = peer->session;
	if (s) {
		rmp_rails_device_changed(s, arg);
		s->pair_again = true;
		rmp_session_send_devices(s);
	}
	mutex_unlock(&peer->lock);
	if (s)
		rmp_peer_kick(peer);
	/* Regions may just have been mapped on it. */
	rmp_peer_ops->flow_kick(peer->flow);
	return 0;
}

void rmp_peer_device_changed(struct rmp_device *dev)
{
	rmp_node_device_changed();
	rmp_peer_walk("", peer_device_changed, dev);
}
