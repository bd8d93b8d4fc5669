/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the data rooms share: transfer.c (what users ask for), flow.c (the
 * queue to one peer), lanes.c (what waits for some rails), route.c (what no rail reaches),
 * repeat.c (what is to be posted again), renew.c (with which keys) and qp.c (posting).
 */
#ifndef RMP_FLOW_H
#define RMP_FLOW_H

#include "qp.h"
#include "sched.h"
#include "transfer.h"

/* Slices cut in one turn. */
#define RMP_TURN		32
/* Turns that one takes before it leaves the rest to a work item. */
#define RMP_TURNS		128
/* Requests of one list looked at before the lock is dropped. */
#define RMP_SWEEP		64
/* Sets of rails that requests wait for while others have room. */
#define RMP_LANES		16

struct rmp_batch;
struct rmp_hold;

/**
 * struct rmp_request - one put or get, as a cursor
 * @active: in the flow's list of all its requests; flow->lock
 * @queue: in a queue of the flow, in a lane, or parked, while there is something to cut;
 *	flow->lock
 * @file_node: in the file's list; file->lock
 * @done_node: for whoever ends it
 * @file: referenced
 * @peer: referenced, and so @flow lives
 * @region: referenced
 * @rr: referenced; another takes its place when its keys are replaced, and one that
 *	stands for none when it was taken back and nothing is posted; flow->lock
 * @stage: where its bytes are copied through, or NULL; then @region is the pool's
 * @batch: of a synchronous submit, referenced, or NULL; @index: in it
 * @local_pos: offset in @region of what is left; likewise @remote_pos
 * @left: not cut yet
 * @ticket: who of a class goes first; 0: before all others; flow->lock
 * @bytes: known to be moved
 * @pieces: what dead queue pairs carried, see repeat.h; flow->lock
 * @inflight: slices with a queue pair, and who else holds it: pieces that are being
 *	copied, a copier who will add to it, a report on its way
 * @posted: of those, slices, from when they are cut
 * @attempts: slices that were posted again
 * @status: 0 or the first error
 * @deadline: jiffies
 * @reported: its completion was, or is just being, delivered
 * @abandoned: nothing is waited for but what is with a device
 * @marker: no request but a place in a list, of who walks it
 *
 * Belongs to its flow until it is neither queued nor has slices in flight or
 * pieces; whoever finds that, under flow->lock, takes it off the flow's lists and then
 * ends it, once, with rmp_request_end().
 */
struct rmp_request {
	struct list_head active;
	struct list_head queue;
	struct list_head file_node;
	struct list_head done_node;
	struct rmp_file *file;
	struct rmp_peer *peer;
	struct rmp_flow *flow;
	struct rmp_region *region;
	struct rmp_rregion *rr;
	struct rmp_stage *stage;
	struct rmp_batch *batch;
	struct list_head pieces;
	u32 index;
	u32 inflight;
	u32 posted;
	u64 local_pos;
	u64 remote_pos;
	u64 left;
	u64 ticket;
	u64 bytes;
	u64 cookie;
	ktime_t start;
	unsigned long deadline;
	u32 rail;
	s32 status;
	u8 op;
	u8 prio;
	u8 wc_status;
	u8 attempts;
	bool reported;
	bool abandoned;
	bool marker;
};

/**
 * struct rmp_lane - requests that wait for room on some rails
 * @rails: those, by index; all: it is to be found out
 * @wait: the requests, by class and ticket
 */
struct rmp_lane {
	u32 rails;
	struct list_head wait[RMP_CLASSES];
};

/**
 * struct rmp_flow - all that is under way to one peer
 * @lock: guards all below, and the schedule state of rails and queue pairs
 * @queue: requests with something to cut, by class
 * @parked: those of them that no rail reached when they were looked at
 * @lanes: those of them whose rails had no room when others had
 * @nr_lanes: from there on none is used
 * @next_ticket: of requests, from 1
 * @active: all requests
 * @holds: of queue pairs, and of dead ones with pieces
 * @next_hold: number of the last one made
 * @nr_pieces: of all requests
 * @sched: rails and queue pairs that are up
 * @extra: of the rails, by index, those for what no other reaches
 * @next_deadline: the earliest, or later
 * @sweep: ends what is overdue or cannot go on
 * @turns: goes on with turns that became too many for one context
 * @peer: whose it is
 * @group: trust group of the peer
 */
struct rmp_flow {
	spinlock_t lock;	/* see above */
	struct list_head queue[RMP_CLASSES];
	struct list_head parked[RMP_CLASSES];
	struct rmp_lane lanes[RMP_LANES];
	u32 nr_lanes;
	u64 next_ticket;
	struct list_head active;
	struct list_head holds;
	u32 next_hold;
	u32 nr_pieces;
	struct rmp_sched sched;
	struct rmp_sched_rail rails[RMP_SCHED_RAILS];
	u32 extra;
	unsigned long next_deadline;
	struct delayed_work sweep;
	struct work_struct turns;
	struct rmp_peer *peer;
	u32 group;
};

struct rmp_qp;

/**
 * struct rmp_slice - what one work request moves
 * @node: in the QP's list of free ones, its chain, or those posted
 * @pos: of its first byte in the local region
 * @tries: how often these bytes were posted before
 * @map: of the local region, which stays while this is with the device; NULL: it does so
 *	by itself
 */
struct rmp_slice {
	struct list_head node;
	struct rmp_qp *qp;
	struct rmp_request *req;
	u64 pos;
	struct rmp_mapping *map;
	u32 len;
	u32 tries;
	struct ib_cqe cqe;
	struct ib_sge sge;
	struct ib_rdma_wr wr;
};

/**
 * struct rmp_qp - a data queue pair
 * @conn: its connection
 * @s: schedule state; flow->lock
 * @up: may be scheduled; flow->lock
 * @free: slices not in use; flow->lock
 * @chain: slices cut and not posted; flow->lock
 * @touched: in the list of who will post @chain; flow->lock
 * @domain: of the device, for the trust group of the peer; once it is set up
 * @post_lock: guards @posted and the order of posting; outer to flow->lock
 * @posted: slices with the device, in order
 * @ref: the owner and each who is going to post
 * @hold: where what it carried waits when it has died; until it is drained
 */
struct rmp_qp {
	struct rmp_conn conn;
	struct rmp_rail *rail;
	struct rmp_flow *flow;
	u32 index;
	u32 max_slice;
	struct rmp_sched_qp s;
	bool up;
	struct list_head free;
	struct list_head chain;
	struct list_head touched;
	struct rmp_domain *domain;
	spinlock_t post_lock;	/* see above */
	struct list_head posted;
	refcount_t ref;
	struct completion unused;
	struct rmp_hold *hold;
	struct rmp_slice *slices;
};

/* transfer.c: reports, if that was not done, and frees. No lock held. */
void rmp_request_end(struct rmp_request *req);
void rmp_request_end_list(struct list_head *done);
/* transfer.c: reports early, as unknown; the request goes on. The caller has
 * set req->reported under flow->lock.
 */
void rmp_request_report(struct rmp_request *req, s32 status, bool unknown,
			u64 bytes);
/* flow.c, with flow->lock held: stops a request; true when it can be ended (it
 * is then off the flow's lists).
 */
bool rmp_flow_stop(struct rmp_request *req, s32 status);
/* The same for one whose outcome nobody can or needs to know: waits for what is with
 * a device and for nothing else. Also for one that is stopped already.
 */
bool rmp_flow_abandon(struct rmp_request *req, s32 status);
/* Likewise: takes a request of which nothing is left anywhere off the lists. */
bool rmp_flow_idle(struct rmp_request *req);
/* Likewise: why it cannot go on, or 0. */
s32 rmp_flow_blocked(const struct rmp_request *req);
/* lanes.c, likewise: the request of a class that is to be looked at, or NULL. */
struct rmp_request *rmp_lanes_next(struct rmp_flow *flow, u32 class);
/* None of @rails, which are all that can carry what is next of it, has room: it waits for that.
 * False: it stays before all others of its class, and nothing behind it can go on.
 */
bool rmp_lanes_wait(struct rmp_request *req, u32 rails);
/* A slice of it was cut: other rails may be right for what is next. */
void rmp_lanes_went_on(struct rmp_request *req);
/* Rails came or went, or what they reach is other than before. */
void rmp_lanes_changed(struct rmp_flow *flow);
void rmp_lanes_init(struct rmp_flow *flow);
/* route.c, likewise: no rail that is up reaches what is next of it, and as far as is known none
 * ever will. Else it is to wait.
 */
bool rmp_route_none(const struct rmp_request *req, u64 local_pos, u64 remote_pos);
/* renew.c, likewise. Where the peer has replaced the keys of its region, a request goes over
 * to what has the new ones. To the peer this means that nothing is in flight with the old
 * ones, so not before its slices have ended: false until then. What a dead queue pair carried
 * has ended: a packet of that which is late writes what is written once more, or finds
 * that its key is gone.
 */
bool rmp_request_renew(struct rmp_request *req);
/* The last slice with the old keys has ended: what is left goes on with the new ones, or
 * cannot, since these were taken back meanwhile. It may just wait for the peer, so it is
 * not left to who would look at it next. True: it can be ended.
 */
bool rmp_request_renewed(struct rmp_request *req);
/* A request of which nothing is posted, nor could be now, lets go of what the peer took
 * back.
 */
void rmp_request_let_go(struct rmp_request *req);
/* Reports a request that has slices in flight, or a put with pieces that are held, as
 * unknown. The caller has stopped it, set req->reported and added one to req->inflight, under
 * flow->lock.
 */
void rmp_flow_report_early(struct rmp_flow *flow, struct rmp_request *req);
/* By who holds one of req->inflight: @bytes behind the last ones can be cut now. To be
 * followed by rmp_flow_run().
 */
void rmp_flow_more(struct rmp_request *req, u64 bytes);
/* Gives that one back; @bytes were copied to where they belong, or @status says why not.
 * The request may end. No locks held.
 */
void rmp_flow_copied(struct rmp_request *req, u64 bytes, s32 status);
/* Adds requests, linked by done_node, all of this flow. */
void rmp_flow_add(struct rmp_flow *flow, struct list_head *requests);
/* One turn: cuts and posts. True when another may find something to do. */
bool rmp_flow_turn(struct rmp_flow *flow);
/* The same, as often as needed or by a work item, in process context. */
void rmp_flow_run(struct rmp_flow *flow);
/* Slices that ended, all of @qp; @status of the last, the others succeeded. */
void rmp_flow_slices_done(struct rmp_qp *qp, struct list_head *slices,
			  enum ib_wc_status status);
/* Slices that failed, all of them: takes some off the list, so that the caller
 * may let others run before it calls again for the rest.
 */
void rmp_flow_slices_failed(struct rmp_qp *qp, struct list_head *slices,
			    enum ib_wc_status status);

/* qp.c: flow->lock held: a slice for the chain; NULL when the QP has no room. */
struct rmp_slice *rmp_qp_slice(struct rmp_qp *qp);
/* Posts the chains of the queue pairs in the list. No lock held. */
void rmp_qp_post_list(struct list_head *touched);

#endif /* RMP_FLOW_H */
