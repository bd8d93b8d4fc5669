// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a request that no rail reaches.
 *
 * It waits, while that may pass: no rail is up; the region is not on any device just now, or
 * the peer has told no key of it; a device of the peer that had it has no link, perhaps;
 * or a rail between devices that have both ends is coming up, or being made
 * (ways.c). If there can be none it is refused. That is looked
 * at for the byte that is next: what is before it may have been moved.
 *
 * Locking: flow->lock is held. Context: any. Only for what finds no rail, so what it costs
 * (a look at all devices of both sides) is not on the way of slices.
 */
#include <linux/bits.h>
#include "flow.h"

/* Devices of both sides are bits in one word. */
static_assert(RMP_DEVICES_MAX == 32 && RMP_WIRE_DEVICES_MAX == 32);

bool rmp_route_none(const struct rmp_request *req, u64 local_pos, u64 remote_pos)
{
	const struct rmp_flow *flow = req->flow;
	u32 local = 0, remote = 0, i, key;
	u64 iova;

	lockdep_assert_held(&flow->lock);
	if (rmp_region_suspect(req->region) || !rmp_sched_any(&flow->sched, ~0U))
		return false;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (rmp_region_local(req->region, flow->group, i, local_pos,
				     &iova, &key))
			local |= BIT(i);
		if (rmp_rregion_remote(req->rr, i, remote_pos, &iova, &key))
			remote |= BIT(i);
	}
	return local && remote && !rmp_peer_way(flow->peer, local, remote) &&
	       !rmp_rregion_away(req->rr);
}
