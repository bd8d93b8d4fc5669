// SPDX-License-Identifier: GPL-2.0
/*
 * Rails that are made since somebody needs them.
 *
 * pairing.c gives each device one rail at most. Memory that is on some devices only, since
 * a device had no room for all of it or does not reach it, may lie so that none of these
 * rails is between a device that has it here and one that has it at the peer. Then the
 * flow asks for one between these (rmp_peer_way()). The side that connects makes it, in a
 * place of the table that no device has for its first rail; the other side asks that one
 * (RAIL_WANTED). For other memory such a rail is only used when no other is up.
 *
 * Where there can be none, or where one that never was up fails RMP_WAYS_TRIES times and
 * for RMP_WAYS_TIME, both sides note that: requests that have no other way are refused, until
 * devices change, or RMP_WAYS_REST is over, and then the first one that comes has it tried
 * again. What a host cannot do just now is no failure of a way. So it is with the first rail
 * of a device, which is tried for ever all the same, and ends that when it comes up. For a
 * rail that was up once requests wait, and for a device that has no link or no address just
 * now.
 *
 * Only who connects knows what fails, and what it has given up or made elsewhere; so the
 * other side asks about each rail that it does not see up just now.
 *
 * Locking: peer->ways.lock, a leaf, for what the flow looks at under its own lock. What is
 * done to rails is done under peer->lock, by the worker.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "session.h"

/* Attempts to connect a rail that never was up, and time for them: some fail at once, while
 * an address or a route is just coming.
 */
#define RMP_WAYS_TRIES		2
#define RMP_WAYS_TIME		(5 * HZ)
/* So long is not tried again what failed. */
#define RMP_WAYS_REST		(30 * HZ)

/* ------------------------------------------------------- with ways->lock held */

static void ways_expire(struct rmp_ways *ways)
{
	if (!ways->refuses || time_before(jiffies, ways->forget))
		return;
	ways->refuses = false;
	memset(ways->none, 0, sizeof(ways->none));
}

/* It is there, or nobody needs it. */
static void ways_settled(struct rmp_ways *ways, u32 local, u32 remote)
{
	ways->wanted[local] &= ~BIT(remote);
	ways->asked[local] &= ~BIT(remote);
}

/* True if that was not known. */
static bool ways_note_none(struct rmp_ways *ways, u32 local, u32 remote)
{
	bool known;

	ways_expire(ways);
	known = ways->none[local] & BIT(remote);
	if (!ways->refuses)
		ways->forget = jiffies + RMP_WAYS_REST;
	ways->refuses = true;
	ways->none[local] |= BIT(remote);
	ways_settled(ways, local, remote);
	return !known;
}

/* All but what the table has and had. */
static void ways_clear(struct rmp_ways *ways)
{
	ways->refuses = false;
	memset(ways->none, 0, sizeof(ways->none));
	memset(ways->later, 0, sizeof(ways->later));
	memset(ways->wanted, 0, sizeof(ways->wanted));
	memset(ways->asked, 0, sizeof(ways->asked));
}

/* ------------------------------------------------------------- for the flow */

bool rmp_peer_way(struct rmp_peer *peer, u32 local, u32 remote)
{
	struct rmp_ways *ways = &peer->ways;
	bool way = false, kick = false;
	u32 i, left;

	spin_lock_bh(&ways->lock);
	ways_expire(ways);
	/* It comes up, perhaps. */
	for (i = 0; i < RMP_DEVICES_MAX && !way; i++)
		way = local & BIT(i) &&
		      remote & (ways->joined[i] | ways->wanted[i]);
	/* One that can be tried, the next when it fails. */
	for (i = 0; i < RMP_DEVICES_MAX && !way; i++) {
		left = local & BIT(i) ?
		       remote & ~(ways->none[i] | ways->later[i]) : 0;
		if (!left)
			continue;
		ways->wanted[i] |= BIT(__ffs(left));
		way = true;
		kick = true;
	}
	/* One that cannot be tried now. */
	for (i = 0; i < RMP_DEVICES_MAX && !way; i++)
		way = local & BIT(i) && remote & ways->later[i];
	spin_unlock_bh(&ways->lock);
	if (kick)
		rmp_peer_kick(peer);
	return way;
}

/* ------------------------------------------------------------------ messages */

static void ways_tell(struct rmp_session *s, u32 local, u32 remote, bool none)
{
	struct rmp_msg *msg;

	msg = rmp_session_new_msg(s, RMP_MSG_RAIL_WANTED);
	if (!msg)
		return;
	msg->rail_wanted.sender_dev = local;
	msg->rail_wanted.receiver_dev = remote;
	msg->rail_wanted.none = none;
	rmp_session_send(s, msg);
	kfree(msg);
}

/* peer->lock held. Says why requests will fail, which only have an errno for it. Who did not
 * connect does not know more.
 */
static void ways_log(struct rmp_session *s, u32 local, u32 remote, int error)
{
	const struct rmp_wire_device *w = rmp_rails_remote(s, remote);
	struct rmp_device *dev = rmp_device_get(local);
	struct sockaddr_storage addr = {};
	char why[24] = "as it says";

	if (w)
		rmp_rails_address(w, 0, &addr);
	if (s->initiator)
		snprintf(why, sizeof(why), "error %d", error);
	pr_warn_ratelimited("peer %s: no rail from %s to %pISc (device %u there), %s: requests fail that have no other way\n",
			    s->peer->name,
			    dev ? dev->ibdev->name : "a device that is gone",
			    &addr, remote, why);
	if (dev)
		rmp_device_put(dev);
}

/* peer->lock held. True if that was not known. */
static bool ways_refuse(struct rmp_session *s, u32 local, u32 remote, int error)
{
	struct rmp_ways *ways = &s->peer->ways;
	bool news;

	spin_lock_bh(&ways->lock);
	news = ways_note_none(ways, local, remote);
	spin_unlock_bh(&ways->lock);
	if (news)
		ways_log(s, local, remote, error);
	if (s->initiator)
		ways_tell(s, local, remote, true);
	return news;
}

/* The other side wants one. */
static void ways_asked(struct rmp_session *s, u32 local, u32 remote)
{
	struct rmp_ways *ways = &s->peer->ways;
	bool none;

	spin_lock_bh(&ways->lock);
	ways_expire(ways);
	none = ways->none[local] & BIT(remote);
	if (!none)
		ways->wanted[local] |= BIT(remote);
	spin_unlock_bh(&ways->lock);
	if (none)
		ways_tell(s, local, remote, true);
	else
		rmp_peer_kick(s->peer);
}

/* It has given one up: what there is of it here goes. */
static void ways_told_none(struct rmp_session *s, u32 local, u32 remote)
{
	struct rmp_peer *peer = s->peer;
	bool news;
	u32 i;

	mutex_lock(&peer->lock);
	news = ways_refuse(s, local, remote, -EHOSTUNREACH);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = s->rails[i];

		if (rail && rail->extra && !rail->going &&
		    rail->dev->index == local && rail->remote_dev == remote) {
			rail->going = true;
			news = true;
		}
	}
	mutex_unlock(&peer->lock);
	/* A peer that says it over and over has nobody look at all requests for that. */
	if (!news)
		return;
	/* When that is out of the table, the flow looks again. */
	rmp_peer_kick(peer);
	rmp_peer_ops->flow_kick(peer->flow);
}

int rmp_ways_message(struct rmp_session *s, const struct rmp_msg_rail_wanted *m)
{
	if (m->none == s->initiator)
		return -EPROTO;
	if (s->initiator)
		ways_asked(s, m->receiver_dev, m->sender_dev);
	else
		ways_told_none(s, m->receiver_dev, m->sender_dev);
	return 0;
}

/* ------------------------------------------------------------- by the worker */

/* On the side that connects: as it seems, there can be none. */
static bool ways_failed(const struct rmp_rail *rail)
{
	return !rail->was_up && rail->failures >= RMP_WAYS_TRIES &&
	       time_after_eq(jiffies, rail->made + RMP_WAYS_TIME);
}

void rmp_ways_give_up(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	u32 i;

	if (!s->initiator)
		return;
	mutex_lock(&peer->lock);
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		struct rmp_rail *rail = s->rails[i];

		if (!rail || rail->going || !rail->extra || !ways_failed(rail))
			continue;
		rail->going = true;
		ways_refuse(s, rail->dev->index, rail->remote_dev,
			    rail->error);
	}
	mutex_unlock(&peer->lock);
}

/* peer->lock held, as for those below. */
static const struct rmp_rail *ways_rail(struct rmp_session *s, u32 local, u32 remote)
{
	u32 i;

	for (i = 0; i < RMP_RAILS_MAX; i++) {
		const struct rmp_rail *rail = s->rails[i];

		if (rail && !rail->going && rail->dev->index == local &&
		    rail->remote_dev == remote)
			return rail;
	}
	return NULL;
}

/* Worth waiting for, as far as this side knows. What is down on the side that did not connect
 * may have left the table of the other one, also when it was up once.
 */
static bool ways_hopeful(const struct rmp_session *s, const struct rmp_rail *rail)
{
	u32 i;

	if (s->initiator)
		return !ways_failed(rail);
	for (i = 0; i < RMP_QPS_MAX; i++) {
		if (rail->conns[i] && rmp_conn_up(rail->conns[i]))
			return true;
	}
	return false;
}

static void ways_drop(struct rmp_ways *ways, u32 local, u32 remote)
{
	spin_lock_bh(&ways->lock);
	ways_settled(ways, local, remote);
	spin_unlock_bh(&ways->lock);
}

/* Makes one, or has it made. False: not now, but perhaps in a moment. @look: set when there
 * can be none, or not soon: the flow is to look for another one.
 */
static bool ways_make_one(struct rmp_session *s, u32 local, u32 remote,
			  bool *look)
{
	const struct rmp_rail *rail = ways_rail(s, local, remote);
	struct rmp_ways *ways = &s->peer->ways;
	int err;

	if (rail && (s->initiator ? rail->was_up : ways_hopeful(s, rail))) {
		ways_drop(ways, local, remote);
		return true;
	}
	if (!s->initiator) {
		spin_lock_bh(&ways->lock);
		ways->asked[local] |= BIT(remote);
		spin_unlock_bh(&ways->lock);
		ways_tell(s, local, remote, false);
		return true;
	}
	/* Until it is up, or has failed. */
	if (rail && ways_hopeful(s, rail))
		return true;
	if (rail) {
		ways_refuse(s, local, remote, rail->error);
		*look = true;
		return true;
	}
	err = rmp_rails_join(s, local, remote);
	switch (err) {
	case 0:
		return true;
	case -EAGAIN:
		/* Nothing is to be done until something happens to one of the devices. */
		spin_lock_bh(&ways->lock);
		ways_settled(ways, local, remote);
		*look |= !(ways->later[local] & BIT(remote));
		ways->later[local] |= BIT(remote);
		spin_unlock_bh(&ways->lock);
		return true;
	case -ENOMEM:
		return false;
	case -EAFNOSUPPORT:
		/* One that just came has its link-local address before the other, perhaps. */
		if (time_before(jiffies, READ_ONCE(ways->changed) + RMP_WAYS_TIME))
			return false;
		break;
	case -ENODEV:
		/* What it had is elsewhere soon, or nowhere; then the flow looks again. */
		ways_drop(ways, local, remote);
		return true;
	}
	ways_refuse(s, local, remote, err);
	*look = true;
	return true;
}

/* What the table has now, for the flow; true if that is less than before. */
static bool ways_look(struct rmp_session *s)
{
	struct rmp_ways *ways = &s->peer->ways;
	u32 joined[RMP_DEVICES_MAX] = {};
	bool less = false;
	u32 i;

	for (i = 0; i < RMP_RAILS_MAX; i++) {
		const struct rmp_rail *rail = s->rails[i];

		if (rail && !rail->going && ways_hopeful(s, rail))
			joined[rail->dev->index] |= BIT(rail->remote_dev);
	}
	spin_lock_bh(&ways->lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		less |= !!(ways->joined[i] & ~joined[i]);
		ways->joined[i] = joined[i];
	}
	spin_unlock_bh(&ways->lock);
	return less;
}

unsigned long rmp_ways_make(struct rmp_session *s)
{
	struct rmp_peer *peer = s->peer;
	struct rmp_ways *ways = &peer->ways;
	bool again = false, look = false;
	u32 i, wanted;

	mutex_lock(&peer->lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		/* First those that each device has by itself. */
		if (s->initiator && s->pair_again)
			break;
		spin_lock_bh(&ways->lock);
		wanted = ways->wanted[i] & ~ways->asked[i];
		spin_unlock_bh(&ways->lock);
		for (; wanted; wanted &= wanted - 1)
			again |= !ways_make_one(s, i, __ffs(wanted), &look);
	}
	look |= ways_look(s);
	mutex_unlock(&peer->lock);
	/* There is another way, perhaps, or none. */
	if (look)
		rmp_peer_ops->flow_kick(peer->flow);
	return again ? HZ / 10 : 0;
}

void rmp_ways_up(struct rmp_peer *peer, u32 local, u32 remote)
{
	struct rmp_ways *ways = &peer->ways;

	spin_lock_bh(&ways->lock);
	ways->joined[local] |= BIT(remote);
	ways->been[local] |= BIT(remote);
	ways->none[local] &= ~BIT(remote);
	ways->later[local] &= ~BIT(remote);
	ways_settled(ways, local, remote);
	spin_unlock_bh(&ways->lock);
}

bool rmp_ways_been(struct rmp_peer *peer, u32 local, u32 remote)
{
	struct rmp_ways *ways = &peer->ways;
	bool been;

	spin_lock_bh(&ways->lock);
	been = ways->been[local] & BIT(remote);
	spin_unlock_bh(&ways->lock);
	return been;
}

void rmp_ways_moved(struct rmp_peer *peer, u32 local, u32 remotes)
{
	struct rmp_ways *ways = &peer->ways;

	spin_lock_bh(&ways->lock);
	ways->been[local] &= ~remotes;
	spin_unlock_bh(&ways->lock);
}

void rmp_ways_left(struct rmp_peer *peer, u32 local, u32 remote)
{
	struct rmp_ways *ways = &peer->ways;

	spin_lock_bh(&ways->lock);
	ways->asked[local] &= ~BIT(remote);
	spin_unlock_bh(&ways->lock);
}

void rmp_ways_forget(struct rmp_peer *peer)
{
	struct rmp_ways *ways = &peer->ways;

	spin_lock_bh(&ways->lock);
	WRITE_ONCE(ways->changed, jiffies);
	ways_clear(ways);
	spin_unlock_bh(&ways->lock);
	/* What is needed still is asked for again. */
	rmp_peer_ops->flow_kick(peer->flow);
}

void rmp_ways_reset(struct rmp_peer *peer)
{
	struct rmp_ways *ways = &peer->ways;

	spin_lock_bh(&ways->lock);
	ways_clear(ways);
	memset(ways->been, 0, sizeof(ways->been));
	memset(ways->joined, 0, sizeof(ways->joined));
	spin_unlock_bh(&ways->lock);
}
