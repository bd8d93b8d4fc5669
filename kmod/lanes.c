// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that wait for room on their rails while other rails have room.
 *
 * Where memory is on some devices only, or what a dead queue pair carried is to take another
 * rail, a request may be for few rails, or one. If these are full it leaves the queue for a
 * lane, so that it does not stand before requests that other rails can carry. A lane has those
 * that wait for one set of rails, and is looked at again when one of these has room. So each is
 * looked at once for each time that it has to wait, however many there are.
 *
 * Who came first goes first, in each class, among all that the same rail can carry: requests
 * have tickets, lanes are in the order of these, and of all lanes with room and the queue that one
 * is next whose first ticket is the lowest. The rails that a class waits for have no room when
 * the turn comes to the next lower class, so that one gets what is left.
 *
 * What rails a request is for may change while it waits: when one comes or leaves, or whoever
 * made a way says so. Then each lane stands for all rails, until those in it were looked at.
 *
 * When there are no more lanes, what would need one ends the turn for its class and those below,
 * as it does when no rail has room.
 *
 * Locking: flow->lock is held for all of this. Context: any.
 */
#include "flow.h"

/* Places from either end that a request is looked for in. One that belongs farther in comes a bit
 * late: behind it are only those that came later.
 */
#define RMP_LANE_STEPS		32

static bool lane_used(const struct rmp_lane *lane)
{
	u32 i;

	for (i = 0; i < RMP_CLASSES; i++) {
		if (!list_empty(&lane->wait[i]))
			return true;
	}
	return false;
}

static u64 lane_ticket(const struct list_head *place)
{
	return list_entry(place, struct rmp_request, queue)->ticket;
}

/* Most belong at one of the ends: new ones, and those that are at work already. */
static void lane_join(struct rmp_lane *lane, struct rmp_request *req)
{
	struct list_head *wait = &lane->wait[req->prio];
	struct list_head *front = wait->next, *back = wait->prev;
	u32 n;

	for (n = 0; n < RMP_LANE_STEPS; n++) {
		if (back == wait || lane_ticket(back) <= req->ticket)
			break;
		/* Not at the head: @back would have come there in as many steps. */
		if (lane_ticket(front) > req->ticket) {
			back = front->prev;
			break;
		}
		back = back->prev;
		front = front->next;
	}
	list_add(&req->queue, back);
}

void rmp_lanes_init(struct rmp_flow *flow)
{
	u32 i, class;

	for (i = 0; i < RMP_LANES; i++) {
		for (class = 0; class < RMP_CLASSES; class++)
			INIT_LIST_HEAD(&flow->lanes[i].wait[class]);
	}
}

struct rmp_request *rmp_lanes_next(struct rmp_flow *flow, u32 class)
{
	struct rmp_request *next, *req;
	u32 room, i;

	lockdep_assert_held(&flow->lock);
	next = list_first_entry_or_null(&flow->queue[class], struct rmp_request,
					queue);
	while (flow->nr_lanes && !lane_used(&flow->lanes[flow->nr_lanes - 1]))
		flow->nr_lanes--;
	/* As a rule. */
	if (!flow->nr_lanes)
		return next;
	room = rmp_sched_room(&flow->sched);
	for (i = 0; i < flow->nr_lanes; i++) {
		struct rmp_lane *lane = &flow->lanes[i];

		if (!(lane->rails & room))
			continue;
		req = list_first_entry_or_null(&lane->wait[class],
					       struct rmp_request, queue);
		if (req && (!next || req->ticket < next->ticket))
			next = req;
	}
	return next;
}

bool rmp_lanes_wait(struct rmp_request *req, u32 rails)
{
	struct rmp_flow *flow = req->flow;
	struct rmp_lane *lane;
	u32 i, at = RMP_LANES;

	lockdep_assert_held(&flow->lock);
	/* Then it holds up nobody. */
	if (!rmp_sched_room(&flow->sched))
		return false;
	/* Nobody may be left in the lane that it was in: that is one more to be had. */
	list_del_init(&req->queue);
	for (i = 0; i < RMP_LANES; i++) {
		lane = &flow->lanes[i];
		if (!lane_used(lane)) {
			at = min(at, i);
		} else if (lane->rails == rails) {
			at = i;
			break;
		}
	}
	if (at == RMP_LANES) {
		/* It was the first of all that are to be looked at. */
		list_add(&req->queue, &flow->queue[req->prio]);
		return false;
	}
	lane = &flow->lanes[at];
	lane->rails = rails;
	lane_join(lane, req);
	flow->nr_lanes = max(flow->nr_lanes, at + 1);
	return true;
}

void rmp_lanes_went_on(struct rmp_request *req)
{
	struct rmp_flow *flow = req->flow;

	if (flow->nr_lanes && !list_empty(&req->queue))
		list_move(&req->queue, &flow->queue[req->prio]);
}

void rmp_lanes_changed(struct rmp_flow *flow)
{
	u32 i;

	lockdep_assert_held(&flow->lock);
	for (i = 0; i < flow->nr_lanes; i++)
		flow->lanes[i].rails = ~0U;
}
