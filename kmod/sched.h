/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_SCHED_H
#define RMP_SCHED_H

#include "pure.h"

#define RMP_SCHED_RAILS		32
#define RMP_SCHED_QPS		16

/**
 * struct rmp_sched_qp - a queue pair, as the scheduler sees it
 * @used: work requests that are not completed
 * @depth: most of them
 * @bytes: in flight
 * @window: no further slice when so many bytes are in flight
 */
struct rmp_sched_qp {
	u32 used;
	u32 depth;
	u64 bytes;
	u64 window;
};

/**
 * struct rmp_sched_rail - a rail, as the scheduler sees it
 * @bytes: in flight on all of its queue pairs
 * @speed: weight, not 0
 * @qps: those that are up
 */
struct rmp_sched_rail {
	u64 bytes;
	u32 speed;
	struct rmp_sched_qp *qps[RMP_SCHED_QPS];
};

/**
 * struct rmp_sched - all rails to one peer
 * @rails: those with a queue pair that is up
 * @turn: where the search begins next time, so that ties rotate
 */
struct rmp_sched {
	struct rmp_sched_rail *rails[RMP_SCHED_RAILS];
	u32 turn;
};

/**
 * rmp_sched_pick - which rail and queue pair carries the next slice
 * @sched: the rails
 * @mask: rails that may be used, bit per index
 * @rail: out
 * @qp: out
 *
 * The rail with the fewest bytes in flight for its speed, of those that have a
 * queue pair with room; then the queue pair with the fewest work requests.
 * False when there is no room anywhere.
 */
bool rmp_sched_pick(struct rmp_sched *sched, u32 mask, u32 *rail, u32 *qp);

/* The rails that have a queue pair with room, bit per index. */
u32 rmp_sched_room(const struct rmp_sched *sched);

/* Whether any rail of @mask is up, with room or not. */
bool rmp_sched_any(const struct rmp_sched *sched, u32 mask);

void rmp_sched_charge(struct rmp_sched *sched, u32 rail, u32 qp, u32 bytes);
void rmp_sched_credit(struct rmp_sched_rail *rail, struct rmp_sched_qp *qp,
		      u32 bytes);

#endif /* RMP_SCHED_H */
