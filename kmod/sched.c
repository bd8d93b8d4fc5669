// SPDX-License-Identifier: GPL-2.0
/*
 * Choosing the rail and the queue pair for the next slice. Pure: takes no lock;
 * the caller's lock guards all that is passed in.
 */
#include "sched.h"

static bool qp_has_room(const struct rmp_sched_qp *qp)
{
	return qp && qp->used < qp->depth && qp->bytes < qp->window;
}

/* Index of the queue pair to use, or -1. */
static int pick_qp(const struct rmp_sched_rail *rail)
{
	int best = -1;
	int i;

	for (i = 0; i < RMP_SCHED_QPS; i++) {
		const struct rmp_sched_qp *qp = rail->qps[i];

		if (!qp_has_room(qp))
			continue;
		if (best < 0 || qp->used < rail->qps[best]->used)
			best = i;
	}
	return best;
}

/* Less in flight for its speed. Bytes and speeds are far below 2^40 and 2^24. */
static bool less_loaded(const struct rmp_sched_rail *a,
			const struct rmp_sched_rail *b)
{
	return a->bytes * b->speed < b->bytes * a->speed;
}

bool rmp_sched_pick(struct rmp_sched *sched, u32 mask, u32 *rail, u32 *qp)
{
	int best = -1, best_qp = -1;
	u32 n;

	for (n = 0; n < RMP_SCHED_RAILS; n++) {
		u32 i = (sched->turn + n) % RMP_SCHED_RAILS;
		const struct rmp_sched_rail *r = sched->rails[i];
		int q;

		if (!r || !(mask & (1U << i)))
			continue;
		if (best >= 0 && !less_loaded(r, sched->rails[best]))
			continue;
		q = pick_qp(r);
		if (q < 0)
			continue;
		best = (int)i;
		best_qp = q;
	}
	if (best < 0)
		return false;
	sched->turn = ((u32)best + 1) % RMP_SCHED_RAILS;
	*rail = (u32)best;
	*qp = (u32)best_qp;
	return true;
}

u32 rmp_sched_room(const struct rmp_sched *sched)
{
	u32 room = 0, i;

	for (i = 0; i < RMP_SCHED_RAILS; i++) {
		if (sched->rails[i] && pick_qp(sched->rails[i]) >= 0)
			room |= 1U << i;
	}
	return room;
}

bool rmp_sched_any(const struct rmp_sched *sched, u32 mask)
{
	u32 i;

	for (i = 0; i < RMP_SCHED_RAILS; i++) {
		if (sched->rails[i] && mask & (1U << i))
			return true;
	}
	return false;
}

void rmp_sched_charge(struct rmp_sched *sched, u32 rail, u32 qp, u32 bytes)
{
	struct rmp_sched_rail *r = sched->rails[rail];

	r->bytes += bytes;
	r->qps[qp]->bytes += bytes;
	r->qps[qp]->used++;
}

void rmp_sched_credit(struct rmp_sched_rail *rail, struct rmp_sched_qp *qp,
		      u32 bytes)
{
	rail->bytes -= bytes;
	qp->bytes -= bytes;
	qp->used--;
}
