/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_STAGING_H
#define RMP_STAGING_H

#include <linux/types.h>

struct rmp_file;
struct rmp_memory;
struct rmp_region;
struct rmp_request;
struct rmp_stage;

/* What is counted. */
enum rmp_staging_count {
	RMP_STAGING_REQUESTS,	/* that were copied */
	RMP_STAGING_BYTES,	/* of those */
	RMP_STAGING_FALLBACKS,	/* small ones that found no room */
	RMP_STAGING_COUNTS
};

/**
 * struct rmp_staging_stats - what staging is for and what became of it
 * @limit: bytes of the largest request that is copied; 0: off
 * @pool: bytes of it, 0: nobody needed it yet
 * @counts: by enum rmp_staging_count
 */
struct rmp_staging_stats {
	u64 limit;
	u64 pool;
	u64 counts[RMP_STAGING_COUNTS];
};

int rmp_staging_init(void);
/* With no file open; before devices go. */
void rmp_staging_exit(void);

/* Whether a request of that length is one to be copied. */
bool rmp_staging_wants(u64 length);
/* Whether the pool is there. */
bool rmp_staging_there(void);
/* Makes it, and waits @timeout jiffies at most; false: there is none by now. Sleeps. */
bool rmp_staging_make(unsigned long timeout);

/**
 * rmp_stage_take - room for one request
 * @file: whose
 * @req: the request; refers to nothing yet
 * @addr: its memory, of the caller
 * @length: bytes, of which rmp_staging_wants() is true
 * @op: RMPOOL_OP_*
 *
 * Returns NULL, which is counted, when there is no pool, or it or the share of the user
 * is used up. Process context of the owner. To be given back by rmp_stage_end(), also
 * when the request goes another way after all.
 */
struct rmp_stage *rmp_stage_take(struct rmp_file *file, struct rmp_request *req,
				 u64 addr, u64 length, u8 op);
/* Sees to it that the memory is there, and copies the first piece of a put. Without @fault
 * it does not bring pages in: -EAGAIN, to be called again with it. 0, -EFAULT, -EINTR,
 * -ENOMEM. In the owner's call, without locks.
 */
int rmp_stage_prepare(struct rmp_stage *stage, bool fault);

/* Where the bytes are, referenced, and from which byte of that region on. */
struct rmp_region *rmp_stage_region(const struct rmp_stage *stage);
u64 rmp_stage_pos(const struct rmp_stage *stage);
/* Bytes that can be moved at once; the rest is to come by rmp_stage_fill(), for which
 * req->inflight has one more.
 */
u64 rmp_stage_ready(const struct rmp_stage *stage);

/* Copies the rest of a put whose request was queued, while the first piece is moving,
 * and adds it to the request, which may end with it. In the owner's call, without locks.
 * 0, or -EFAULT: @bad is the address.
 */
int rmp_stage_fill(struct rmp_stage *stage, u64 *bad);

/* By flow.c: how much of @rest bytes, from @pos of the region on, one slice may move. */
u64 rmp_stage_rest(const struct rmp_stage *stage, u64 pos, u64 rest);
/* By flow.c, with flow->lock held: bytes are there, at device address @iova. True: it
 * will be told by rmp_flow_copied() when they are where the owner wants them.
 */
bool rmp_stage_arrived(struct rmp_request *req, u64 iova, u32 length);
/* By transfer.c: it is reported while it goes on; nothing is written to memory of the
 * owner after this. Process context.
 */
void rmp_stage_stop(struct rmp_stage *stage);
/* The request is over: no device reaches the room any more. Any context. */
void rmp_stage_end(struct rmp_stage *stage);

/* Of one file; of all that there are or were. */
void rmp_staging_stats(struct rmp_memory *mem, struct rmp_staging_stats *stats);
void rmp_staging_totals(struct rmp_staging_stats *stats);

#endif /* RMP_STAGING_H */
