/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all rooms of the module share: sizes, the identity of this node, and
 * the workqueues for control work.
 */
#ifndef RMP_RMPOOL_H
#define RMP_RMPOOL_H

#include <linux/types.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <linux/rmpool.h>

/* Devices of one node; also the devices a peer may tell us of. */
#define RMP_DEVICES_MAX		32
/* Rails of one peer. */
#define RMP_RAILS_MAX		32
/* Queue pairs of one rail. */
#define RMP_QPS_MAX		16
/* Scheduling classes. */
#define RMP_CLASSES		3

/* Messages, sweeps, late devices: sleeps, but never waits for a peer, nor for
 * another work item of this queue.
 */
extern struct workqueue_struct *rmp_wq;
/* Workers of peers and connect requests: may wait seconds for a peer. So many at
 * once may do so that nothing else should be behind them.
 */
extern struct workqueue_struct *rmp_peers_wq;

/* Whether @need more than @used would be more than @limit, which may have been lowered
 * below what is used. Then it says so in @error, all in one unit.
 */
static inline bool rmp_limit_met(u64 limit, u64 used, u64 need, u32 reason,
				 struct rmpool_error *error)
{
	if (need <= limit && used <= limit - need)
		return false;
	error->reason = reason;
	error->limit = limit;
	error->used = used;
	error->need = need;
	return true;
}

/* Identity of this life of the node. */
extern uuid_t rmp_uuid;

#endif /* RMP_RMPOOL_H */
