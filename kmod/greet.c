// SPDX-License-Identifier: GPL-2.0
/*
 * How two nodes make themselves known to each other: who they are (HELLO), and which devices
 * they have (DEVICES).
 *
 * HELLO is the first message of either side and comes once. Its sender must be who
 * the connection was made with, and must not be known by another name already. DEVICES comes
 * behind it, and again whenever devices change; the first one makes the session live.
 *
 * Locking: what was heard is put down under peer->lock. DEVICES is made and sent under it,
 * so that the last one that is sent tells what was seen last.
 *
 * Lifetime: the caller has a reference of the session, and the control channel lives.
 *
 * Context: process; messages come from the control channel, one at a time. Nothing waits for
 * the peer.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "segment.h"
#include "session.h"

/* ---------------------------------------------------------------- sending */

void rmp_session_send_hello(struct rmp_session *s)
{
	struct rmp_node node;
	struct rmp_msg *msg;

	msg = rmp_session_new_msg(s, RMP_MSG_HELLO);
	if (!msg)
		return;
	rmp_node_get(&node);
	memcpy(msg->hello.uuid, &rmp_uuid, sizeof(msg->hello.uuid));
	strscpy(msg->hello.name, node.name, sizeof(msg->hello.name));
	if (node.advertise.ss_family)
		rmp_endpoint_format(msg->hello.endpoint,
				    sizeof(msg->hello.endpoint),
				    &node.advertise);
	rmp_session_send(s, msg);
	kfree(msg);
}

static bool device_to_wire(u32 index, struct rmp_wire_device *w)
{
	struct rmp_device *dev;
	struct rmp_port port;
	bool ok = false;

	dev = rmp_device_get(index);
	if (!dev)
		return false;
	if (rmp_device_usable_port(dev, &port))
		goto out;
	memset(w, 0, sizeof(*w));
	w->index = index;
	w->mtu = port.mtu;
	w->read_limit = dev->read_limit;
	w->speed_mbps = min_t(u64, port.speed_mbps, U32_MAX);
	if (port.addr.ss_family == AF_INET) {
		w->family = 4;
		memcpy(w->addr,
		       &((struct sockaddr_in *)&port.addr)->sin_addr, 4);
		ok = true;
	} else if (port.addr.ss_family == AF_INET6) {
		w->family = 6;
		memcpy(w->addr,
		       &((struct sockaddr_in6 *)&port.addr)->sin6_addr, 16);
		ok = true;
	}
out:
	rmp_device_put(dev);
	return ok;
}

void rmp_session_send_devices(struct rmp_session *s)
{
	struct rmp_msg *msg;
	u32 i;

	msg = rmp_session_new_msg(s, RMP_MSG_DEVICES);
	if (!msg)
		return;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (device_to_wire(i, &msg->devices.dev[msg->devices.nr]))
			msg->devices.nr++;
	}
	rmp_session_send(s, msg);
	kfree(msg);
}

/* --------------------------------------------------------------- receiving */

int rmp_session_hello(struct rmp_session *s, const struct rmp_msg_hello *m)
{
	struct rmp_peer *peer = s->peer, *other;

	if (s->got_hello || memcmp(m->uuid, s->uuid, sizeof(s->uuid)) ||
	    !rmp_name_valid(m->name))
		return -EPROTO;
	other = rmp_peer_find_uuid(m->uuid);
	if (other && other != peer) {
		pr_warn_ratelimited("peer %s: that node is connected as peer %s already\n",
				    peer->name, other->name);
		rmp_peer_put(other);
		rmp_session_break(s, -EADDRINUSE, RMPOOL_REASON_IDENTITY);
		return 0;
	}
	if (other)
		rmp_peer_put(other);
	mutex_lock(&peer->lock);
	s->got_hello = true;
	peer->has_uuid = true;
	memcpy(peer->uuid, m->uuid, sizeof(peer->uuid));
	memcpy(peer->remote_name, m->name, sizeof(peer->remote_name));
	rmp_peer_unlock(peer);
	return 0;
}

int rmp_session_devices(struct rmp_session *s, const struct rmp_msg_devices *m)
{
	struct rmp_peer *peer = s->peer;
	bool first;

	if (!s->got_hello)
		return -EPROTO;
	mutex_lock(&peer->lock);
	first = !s->live;
	s->devices = *m;
	s->got_devices = true;
	s->live = true;
	s->pair_again = true;
	if (first && !s->closing) {
		peer->error = 0;
		peer->reason = 0;
		peer->backoff = 0;
		rmp_peer_set_state(peer, RMPOOL_PEER_CONNECTED);
	}
	rmp_peer_unlock(peer);
	rmp_rails_devices(s);
	if (first)
		rmp_rseg_session_up(s);
	rmp_peer_kick(peer);
	return 0;
}
