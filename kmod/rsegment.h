/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_RSEGMENT_H
#define RMP_RSEGMENT_H

#include "peer.h"

/**
 * struct rmp_rseg - a segment of a peer, opened by at least one file here
 *
 * One per peer and name, shared by all files. It outlives sessions: after a
 * reconnect its keys are fetched anew. Opaque outside of its rooms (fetch.h).
 */
struct rmp_rseg;

/**
 * rmp_rseg_open - find or open a segment of a peer, connecting if need be
 * @node: entry of the peer table
 * @name: of the segment
 * @timeout: jiffies, MAX_SCHEDULE_TIMEOUT for no limit
 * @out: referenced
 * @err: reason when it fails
 *
 * Sleeps, interruptible. Errors as RMPOOL_IOC_SEGMENT_OPEN.
 */
int rmp_rseg_open(const char *node, const char *name, long timeout,
		  struct rmp_rseg **out, struct rmpool_error *err);
void rmp_rseg_get(struct rmp_rseg *rseg);
void rmp_rseg_put(struct rmp_rseg *rseg);
/* The peer it is of; alive as long as the caller's reference. */
struct rmp_peer *rmp_rseg_peer(struct rmp_rseg *rseg);

/**
 * rmp_rseg_find - region that covers a range
 *
 * Any context, no lock. As rmp_keycache_find(), and -EAGAIN when keys are not
 * there now but may come (reconnecting, or the peer said they changed), and
 * -ESTALE when the segment is gone.
 */
struct rmp_rregion *rmp_rseg_find(struct rmp_rseg *rseg, u64 offset, u64 length,
				  u32 access);
/* The same from process context: after -EAGAIN or -ENXIO it asks the peer
 * (once for -ENXIO) and waits, interruptible, for up to @timeout jiffies.
 * -ENOTCONN when the peer could not be reached, -EINTR, -ETIMEDOUT.
 */
struct rmp_rregion *rmp_rseg_find_wait(struct rmp_rseg *rseg, u64 offset,
				       u64 length, u32 access, long timeout);

/* What the ABI shows: regions, as rmp_keycache_list(), counts, end, generation. */
u32 rmp_rseg_list(struct rmp_rseg *rseg, u64 *at, u32 first,
		  struct rmpool_region_desc *desc, u32 nr, u32 *total,
		  u64 *size, u64 *generation);

#endif /* RMP_RSEGMENT_H */
