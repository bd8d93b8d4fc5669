// SPDX-License-Identifier: GPL-2.0
/*
 * How a peer stands, for callers: waiting until it carries data, why it does not, and what
 * is shown of it and its rails.
 *
 * Who waits is counted in peer->users, so the worker connects. The wait is over when the
 * peer is ready or removed, at its deadline, or after an attempt that failed in a way in
 * which the next one would, too.
 *
 * Locking: what is told is read under peer->lock. Who waits holds no lock and reads state
 * and failures without one; rmp_peer_set_state(), which follows each change, wakes it.
 *
 * Lifetime: the caller has a reference of the peer.
 *
 * Context: process; waiting can be interrupted, the rest only takes the lock.
 */
#include "session.h"

static bool peer_error_is_final(int error)
{
	return error == -EPROTONOSUPPORT || error == -EACCES ||
	       error == -ELOOP || error == -EADDRINUSE || error == -ENODEV;
}

static bool peer_wait_over(struct rmp_peer *peer, u32 failures)
{
	return READ_ONCE(peer->state) == RMPOOL_PEER_READY ||
	       READ_ONCE(peer->removed) ||
	       (READ_ONCE(peer->failures) != failures &&
		peer_error_is_final(READ_ONCE(peer->error)));
}

/* peer->lock held: what to tell who waited in vain. */
static int peer_wait_result(struct rmp_peer *peer, u32 failures,
			    struct rmpool_error *err)
{
	if (peer->removed) {
		err->reason = RMPOOL_REASON_PEER_UNKNOWN;
		return -ENOENT;
	}
	if (peer->state == RMPOOL_PEER_CONNECTED) {
		err->reason = RMPOOL_REASON_NO_RAIL;
		return -ETIMEDOUT;
	}
	/* Nothing failed while we waited: what is still being waited for says
	 * more than a failure of long ago.
	 */
	if (peer->failures == failures && peer->connecting) {
		err->reason = rmp_conn_waits_for(peer->connecting);
		return -ETIMEDOUT;
	}
	if (peer->failures == failures && peer->session) {
		err->reason = RMPOOL_REASON_SILENT;
		return -ETIMEDOUT;
	}
	if (!peer->error) {
		err->reason = RMPOOL_REASON_UNREACHABLE;
		return -ETIMEDOUT;
	}
	err->reason = peer->reason;
	switch (peer->error) {
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -EPROTONOSUPPORT:
	case -EACCES:
	case -ELOOP:
	case -EADDRINUSE:
	case -ENODEV:
	case -EPROTO:
	case -ENOMEM:
		return peer->error;
	case -ENETUNREACH:
	case -EADDRNOTAVAIL:
		return -EHOSTUNREACH;
	}
	return -ETIMEDOUT;
}

int rmp_peer_wait_ready(struct rmp_peer *peer, unsigned long deadline,
			bool forever, struct rmpool_error *err)
{
	u32 failures = READ_ONCE(peer->failures);
	long left, ret;

	if (READ_ONCE(peer->state) == RMPOOL_PEER_READY)
		return 0;
	atomic_inc(&peer->users);
	rmp_peer_kick(peer);
	left = forever ? MAX_SCHEDULE_TIMEOUT : (long)(deadline - jiffies);
	ret = wait_event_interruptible_timeout(peer->wait,
					       peer_wait_over(peer, failures),
					       max(left, 0L));
	atomic_dec(&peer->users);
	if (ret < 0)
		return -EINTR;
	mutex_lock(&peer->lock);
	if (peer->state == RMPOOL_PEER_READY)
		ret = 0;
	else
		ret = peer_wait_result(peer, failures, err);
	mutex_unlock(&peer->lock);
	return ret;
}

static void rail_info(const struct rmp_rail *rail, struct rmp_rail_info *info)
{
	u32 i;

	info->index = rail->index;
	snprintf(info->local, sizeof(info->local), "%s/%u",
		 rail->dev->ibdev->name, rail->port_num);
	info->local_addr = rail->local;
	info->remote_addr = rail->remote;
	for (i = 0; i < rail->nr_qps; i++) {
		if (rail->conns[i] && rmp_conn_up(rail->conns[i]))
			info->qps++;
	}
	info->state = info->qps ? RMPOOL_RAIL_UP :
		rail->requested ? RMPOOL_RAIL_CONNECTING : RMPOOL_RAIL_DOWN;
	info->put_bytes = atomic64_read(&rail->put_bytes);
	info->get_bytes = atomic64_read(&rail->get_bytes);
	info->slices = atomic64_read(&rail->slices);
	info->errors = atomic64_read(&rail->errors);
	info->outstanding = atomic64_read(&rail->outstanding);
}

/* peer->lock held. */
static void peer_info(struct rmp_peer *peer, struct rmp_peer_info *info)
{
	u32 i;

	memset(info, 0, sizeof(*info));
	strscpy(info->name, peer->name, sizeof(info->name));
	strscpy(info->remote_name, peer->remote_name,
		sizeof(info->remote_name));
	strscpy(info->group, rmp_group_name(peer->group), sizeof(info->group));
	info->addr = peer->addr;
	info->state = peer->state;
	info->dynamic = peer->dynamic;
	info->has_uuid = peer->has_uuid;
	memcpy(info->uuid, peer->uuid, sizeof(info->uuid));
	info->reason = peer->reason;
	info->error = peer->error;
	if (!peer->session)
		return;
	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (peer->session->rails[i])
			rail_info(peer->session->rails[i],
				  &info->rails[info->nr_rails++]);
	}
}

void rmp_peer_info(struct rmp_peer *peer, struct rmp_peer_info *info)
{
	mutex_lock(&peer->lock);
	peer_info(peer, info);
	mutex_unlock(&peer->lock);
}
