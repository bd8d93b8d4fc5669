/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REPEAT_H
#define RMP_REPEAT_H

#include "flow.h"

/**
 * struct rmp_piece - part of a request that a dead queue pair carried
 * @of_req: in the request's list; those that may be posted again come first
 * @of_hold: in a list of @hold
 * @req: whose
 * @hold: it may not be posted yet, or NULL
 * @pos: offset in the local region
 * @len: bytes
 * @tries: how often they were posted
 * @rail: where that was last
 *
 * Guarded by flow->lock, like all of a request. One for each slice that failed;
 * its request is not over before it is gone.
 */
struct rmp_piece {
	struct list_head of_req;
	struct list_head of_hold;
	struct rmp_request *req;
	struct rmp_hold *hold;
	u64 pos;
	u32 len;
	u32 tries;
	u32 rail;
};

/* Process context, no lock held. Makes the hold of a new queue pair; false: no
 * memory.
 */
bool rmp_hold_create(struct rmp_qp *qp);
/* The last slice of it has ended: what only waited for that may be posted again, or
 * is over.
 */
void rmp_hold_drained(struct rmp_qp *qp);
/* The peer's end of a queue pair can write no more; @id as in &struct rmp_conn.fence.
 * Of one that is not, or no more, known: nothing.
 */
void rmp_hold_fenced(struct rmp_flow *flow, u32 id);

/* All of the rest with flow->lock held. */

/* A slice of @qp failed, and has left req->inflight: keeps what it carried, to be
 * posted again or to wait for the fence. False: its request has failed.
 */
bool rmp_repeat_keep(struct rmp_qp *qp, struct rmp_request *req,
		     const struct rmp_slice *slice, enum ib_wc_status status);
/* A piece that may be posted, or NULL. */
struct rmp_piece *rmp_repeat_next(struct rmp_request *req);
/* @len bytes of that, from its beginning, are being posted. */
void rmp_repeat_took(struct rmp_piece *piece, u32 len);
/* Nothing of the request is to be posted any more. Stays: what may yet be written by
 * a packet that is on its way.
 */
void rmp_repeat_stop(struct rmp_request *req);
/* Nor is that waited for. */
void rmp_repeat_drop(struct rmp_request *req);

#endif /* RMP_REPEAT_H */
