// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: from the array that a process submits to the completion it gets.
 *
 * A batch is copied in once, in blocks. Each request is checked on the copy,
 * its local region and the remote one are looked up and referenced, and it is
 * queued to the flow of its peer; one that does not pass gets its error as its
 * completion and nothing else. If the request says so, its bytes are copied through
 * memory of the module (staging.c), or a local region is made on the way (cache.c), or is
 * mapped for the trust group of the peer (reach.c). Ring
 * slots were reserved before. A synchronous
 * batch collects its results in an rmp_batch and does not touch the ring.
 *
 * Locking: file->handles is read-held while a block is resolved, but not while
 * memory is pinned or copied or a peer is waited for. file->lock guards the list of the
 * file's requests; it is outer to flow->lock. Reports are made without locks, each
 * by the one who set req->reported or who ends the request.
 *
 * Lifetime: a request has references on its file, peer, regions and batch until
 * rmp_request_end(). A batch lives until the submitter and all requests let go,
 * so a submitter that gives up early leaves it to them.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "cancel.h"
#include "flow.h"
#include "ring.h"
#include "segment.h"
#include "staging.h"

static unsigned int rmp_request_timeout = 30000;
module_param_named(request_timeout_ms, rmp_request_timeout, uint, 0644);
MODULE_PARM_DESC(request_timeout_ms, "time-out of requests that name none, ms (default 30000)");

/* Requests copied from user space at once. */
#define RMP_BLOCK		64

struct rmp_batch {
	struct kref ref;
	atomic_t pending;	/* not reported; one more while submitting */
	atomic_t failed;
	struct completion done;
	struct rmpool_completion results[];
};

static struct kmem_cache *rmp_request_cache;

/* ------------------------------------------------------------------- reports */

static void batch_release(struct kref *ref)
{
	kvfree(container_of(ref, struct rmp_batch, ref));
}

static void batch_put(struct rmp_batch *batch)
{
	kref_put(&batch->ref, batch_release);
}

static void batch_dec(struct rmp_batch *batch)
{
	if (atomic_dec_and_test(&batch->pending))
		complete(&batch->done);
}

/* Delivers one completion to the ring or the batch. */
static void report(struct rmp_file *file, struct rmp_batch *batch, u32 index,
		   const struct rmpool_completion *c)
{
	if (batch) {
		batch->results[index] = *c;
		if (c->status)
			atomic_inc(&batch->failed);
		batch_dec(batch);
	} else {
		rmp_ring_complete(file->ring, c);
	}
}

void rmp_request_report(struct rmp_request *req, s32 status, bool unknown,
			u64 bytes)
{
	s64 us = ktime_us_delta(ktime_get(), req->start);
	struct rmpool_completion c = {
		.cookie = req->cookie,
		.bytes = bytes,
		.status = status,
		.flags = unknown ? RMPOOL_COMPLETION_UNKNOWN : 0,
		.wc_status = req->wc_status,
		.attempts = req->attempts,
		.rail = req->rail,
		.elapsed_us = clamp_t(s64, us, 0, U32_MAX),
	};

	if (unknown && req->stage)
		rmp_stage_stop(req->stage);
	report(req->file, req->batch, req->index, &c);
}

static void request_free(struct rmp_request *req)
{
	struct rmp_file *file = req->file;

	if (req->region) {
		if (req->region->cached)
			rmp_cache_unuse(req->region);
		rmp_region_put(req->region);
	}
	if (req->rr)
		rmp_rregion_put(req->rr);
	if (req->peer)
		rmp_peer_put(req->peer);
	if (req->batch)
		batch_put(req->batch);
	if (req->stage)
		rmp_stage_end(req->stage);
	kmem_cache_free(rmp_request_cache, req);
	/* With the last file gone, so may be the cache. */
	rmp_file_put(file);
}

void rmp_request_end(struct rmp_request *req)
{
	struct rmp_file *file = req->file;

	spin_lock_bh(&file->lock);
	list_del(&req->file_node);
	spin_unlock_bh(&file->lock);
	/* What it got is, or may be, in pages that the owner let go of meanwhile. */
	if (!req->status && req->op == RMPOOL_OP_GET &&
	    (rmp_region_stale(req->region) ||
	     (rmp_region_suspect(req->region) && READ_ONCE(req->region->dead))))
		req->status = -ESTALE;
	if (!req->reported)
		rmp_request_report(req, req->status, false, req->bytes);
	request_free(req);
}

void rmp_request_end_list(struct list_head *done)
{
	struct rmp_request *req, *next;

	list_for_each_entry_safe(req, next, done, done_node)
		rmp_request_end(req);
}

/* ------------------------------------------------------------------- submit */

/**
 * struct rmp_submission - one call under way
 * @file: whose
 * @batch: of a synchronous one
 * @ready: requests of @flow to be queued
 * @flow: of those, or NULL
 * @error: of the call: why the first region could not be made
 * @interrupted: a signal ended a wait
 * @given_up: segment that did not answer: do not wait for it again
 * @start: jiffies
 * @limit: jiffies from @start: all waiting together takes no longer than this, nor
 *	than the time-out of the request that waits
 */
struct rmp_submission {
	struct rmp_file *file;
	struct rmp_batch *batch;
	struct list_head ready;
	struct rmp_flow *flow;
	struct rmpool_error *error;
	bool interrupted;
	u32 given_up;
	unsigned long start;
	unsigned long limit;
};

static void submission_flush(struct rmp_submission *sub)
{
	struct rmp_peer *peer;

	if (list_empty(&sub->ready))
		return;
	/* The requests may end, and the segment be closed, before this does. */
	peer = list_first_entry(&sub->ready, struct rmp_request,
				done_node)->peer;
	rmp_peer_hold(peer);
	rmp_flow_add(sub->flow, &sub->ready);
	rmp_flow_run(sub->flow);
	rmp_peer_put(peer);
}

static bool request_malformed(const struct rmpool_request *r)
{
	u32 i, bits = r->flags & ~RMPOOL_REQUEST_REGISTER;

	for (i = 0; i < ARRAY_SIZE(r->reserved); i++)
		bits |= r->reserved[i];
	return bits || r->prio >= RMP_CLASSES ||
	       (r->op != RMPOOL_OP_PUT && r->op != RMPOOL_OP_GET);
}

static u32 request_timeout_ms(const struct rmpool_request *r)
{
	return r->timeout_ms ?: max(rmp_request_timeout, 1U);
}

/* Most jiffies from the start of the call that a request may wait. */
static unsigned long request_wait(const struct rmp_submission *sub,
				  const struct rmpool_request *r)
{
	return min(msecs_to_jiffies(request_timeout_ms(r)), sub->limit);
}

/* A region is made for the request: file->handles is given up meanwhile. */
static struct rmp_region *make_local(struct rmp_submission *sub,
				     const struct rmpool_request *r, u32 access)
{
	unsigned long spent = jiffies - sub->start, most = request_wait(sub, r);
	struct rmpool_error error;
	struct rmp_region *region;

	/* What is ready must not wait for this one, nor this one for its end. */
	up_read(&sub->file->handles);
	submission_flush(sub);
	region = rmp_cache_add(&sub->file->mem, r->local_addr, r->length, access,
			       most - min(spent, most), &error);
	down_read(&sub->file->handles);
	if (region == ERR_PTR(-EINTR)) {
		sub->interrupted = true;
		return ERR_PTR(-ECANCELED);
	}
	if (IS_ERR(region) && !sub->error->reason)
		*sub->error = error;
	return region;
}

/* The region through which the request is copied, or NULL: it is to be registered, which
 * says as well what is wrong with its memory. file->handles is given up meanwhile.
 */
static struct rmp_region *stage_local(struct rmp_submission *sub,
				      struct rmp_request *req,
				      const struct rmpool_request *r)
{
	unsigned long spent, most = request_wait(sub, r);
	struct rmp_stage *stage;
	int err = 0;

	up_read(&sub->file->handles);
	if (!rmp_staging_there()) {
		/* What is ready must not wait for this one. */
		submission_flush(sub);
		spent = jiffies - sub->start;
		rmp_staging_make(most - min(spent, most));
	}
	stage = rmp_stage_take(sub->file, req, r->local_addr, r->length, r->op);
	if (stage) {
		err = rmp_stage_prepare(stage, false);
		if (err == -EAGAIN) {
			submission_flush(sub);
			err = rmp_stage_prepare(stage, true);
		}
	}
	down_read(&sub->file->handles);
	if (stage && err)
		rmp_stage_end(stage);
	if (!stage || err)
		return NULL;
	req->stage = stage;
	return rmp_stage_region(stage);
}

static struct rmp_region *find_local(struct rmp_submission *sub,
				     struct rmp_request *req,
				     const struct rmpool_request *r)
{
	u32 access = r->op == RMPOOL_OP_GET ? RMPOOL_ACCESS_LOCAL_WRITE : 0;
	struct rmp_memory *mem = &sub->file->mem;
	struct rmp_region *region, *found;

	down_read(&mem->lock);
	region = rmp_region_find(mem, r->local_addr, r->length, access);
	up_read(&mem->lock);
	if (!(r->flags & RMPOOL_REQUEST_REGISTER) ||
	    (region != ERR_PTR(-EFAULT) && region != ERR_PTR(-ERANGE) &&
	     region != ERR_PTR(-EACCES)))
		return region;
	found = rmp_cache_find(mem, r->local_addr, r->length, access);
	if (!found && rmp_staging_wants(r->length))
		found = stage_local(sub, req, r);
	return found ?: make_local(sub, r, access);
}

/* The remote region; waits for the peer, once per call, if that may help. */
static struct rmp_rregion *find_remote(struct rmp_submission *sub,
				       struct rmp_rseg *rseg,
				       const struct rmpool_request *r)
{
	unsigned long spent = jiffies - sub->start, most = request_wait(sub, r);
	u32 access = r->op == RMPOOL_OP_PUT ? RMPOOL_ACCESS_REMOTE_WRITE :
					      RMPOOL_ACCESS_REMOTE_READ;
	struct rmp_rregion *rr;

	rr = rmp_rseg_find(rseg, r->offset, r->length, access);
	if (rr != ERR_PTR(-EAGAIN) && rr != ERR_PTR(-ENXIO))
		return rr;
	if (sub->given_up == r->segment || spent >= most)
		return rr == ERR_PTR(-EAGAIN) ? ERR_PTR(-ENOTCONN) : rr;

	/* What is ready must not wait for this one; the handle may be closed
	 * meanwhile.
	 */
	rmp_rseg_get(rseg);
	up_read(&sub->file->handles);
	submission_flush(sub);
	rr = rmp_rseg_find_wait(rseg, r->offset, r->length, access,
				most - spent);
	rmp_rseg_put(rseg);
	down_read(&sub->file->handles);
	if (IS_ERR(rr))
		sub->given_up = r->segment;
	if (rr != ERR_PTR(-EINTR))
		return rr;
	sub->interrupted = true;
	return ERR_PTR(-ECANCELED);
}

/* Maps the region for the trust group of the peer, once for both. file->handles is given up
 * meanwhile.
 */
static s32 reach_local(struct rmp_submission *sub, const struct rmp_request *req)
{
	struct rmpool_error error;
	int err;

	if (likely(rmp_region_reached(req->region, req->flow->group)))
		return 0;
	up_read(&sub->file->handles);
	submission_flush(sub);
	err = rmp_region_reach(req->region, req->flow->group, &error);
	/* Peers of the group may have been told that it has no keys. */
	if (!err && req->region->segment)
		rmp_segment_changed(req->region->segment, req->region);
	down_read(&sub->file->handles);
	if (err == -EINTR) {
		sub->interrupted = true;
		return -ECANCELED;
	}
	/* It has lost all devices just now, and waits for one as others do. */
	if (err == -ENODEV)
		return 0;
	if (err && !sub->error->reason)
		*sub->error = error;
	return err;
}

/* Fills in what a request refers to; 0 or the status of its completion. */
static s32 request_resolve(struct rmp_submission *sub, struct rmp_request *req,
			   const struct rmpool_request *r)
{
	struct rmp_region *region;
	struct rmp_rregion *rr;
	struct rmp_rseg *rseg;
	s32 status;

	if (request_malformed(r))
		return -EINVAL;
	if (!xa_load(&sub->file->opens, r->segment))
		return -EBADF;
	if (!r->length)
		return 0;

	region = find_local(sub, req, r);
	if (IS_ERR(region))
		return PTR_ERR(region);
	req->region = region;
	/* It may have been closed while the region was made. */
	rseg = xa_load(&sub->file->opens, r->segment);
	if (!rseg)
		return -EBADF;
	/* Before the wait, in which the handle may become another's: the keys
	 * of one peer must not be used with another.
	 */
	req->peer = rmp_rseg_peer(rseg);
	rmp_peer_hold(req->peer);
	req->flow = rmp_peer_flow(req->peer);
	/* May take long, in which the peer must not wait for what is used of it. */
	status = reach_local(sub, req);
	if (status)
		return status;
	rseg = xa_load(&sub->file->opens, r->segment);
	if (!rseg || rmp_rseg_peer(rseg) != req->peer)
		return -EBADF;
	rr = find_remote(sub, rseg, r);
	if (IS_ERR(rr))
		return PTR_ERR(rr);
	req->rr = rr;
	req->local_pos = req->stage ? rmp_stage_pos(req->stage) :
				      r->local_addr - region->addr;
	req->remote_pos = r->offset - rr->offset;
	return 0;
}

/* What is missing of a put follows while it is moving. file->handles is given up
 * meanwhile.
 */
static void submission_fill(struct rmp_submission *sub, struct rmp_request *req)
{
	u64 bad;

	up_read(&sub->file->handles);
	submission_flush(sub);
	if (rmp_stage_fill(req->stage, &bad) && !sub->error->reason) {
		sub->error->reason = RMPOOL_REASON_UNMAPPED;
		sub->error->need = bad;
	}
	down_read(&sub->file->handles);
}

/* One request on its way. Whatever becomes of it, it has one completion. */
static void submit_one(struct rmp_submission *sub, struct rmp_request *req,
		       const struct rmpool_request *r, u32 index)
{
	struct rmp_file *file = sub->file;
	s32 status;
	bool more;

	memset(req, 0, sizeof(*req));
	INIT_LIST_HEAD(&req->active);
	INIT_LIST_HEAD(&req->queue);
	INIT_LIST_HEAD(&req->pieces);
	INIT_LIST_HEAD(&req->file_node);
	INIT_LIST_HEAD(&req->done_node);
	kref_get(&file->ref);
	req->file = file;
	req->batch = sub->batch;
	req->index = index;
	if (req->batch) {
		kref_get(&req->batch->ref);
		atomic_inc(&req->batch->pending);
	}
	req->cookie = r->cookie;
	req->start = ktime_get();
	req->rail = RMPOOL_RAIL_NONE;
	req->op = r->op;
	req->prio = r->prio;
	req->deadline = jiffies + msecs_to_jiffies(request_timeout_ms(r));

	status = request_resolve(sub, req, r);
	if (status || !r->length) {
		rmp_request_report(req, status, false, 0);
		request_free(req);
		return;
	}
	req->left = req->stage ? rmp_stage_ready(req->stage) : r->length;
	/* Who adds the rest holds it. */
	more = req->left < r->length;
	req->inflight = more;
	if (req->flow != sub->flow)
		submission_flush(sub);
	sub->flow = req->flow;
	spin_lock_bh(&file->lock);
	list_add_tail(&req->file_node, &file->requests);
	spin_unlock_bh(&file->lock);
	list_add_tail(&req->done_node, &sub->ready);
	if (more)
		submission_fill(sub, req);
}

/* Submits @nr requests; 0, or why only the first *@taken were. */
static int submit(struct rmp_submission *sub, u64 user, u32 nr, u32 *taken)
{
	const struct rmpool_request __user *from = u64_to_user_ptr(user);
	struct rmpool_request *block;
	void *reqs[RMP_BLOCK];
	u32 done = 0, n, i;
	int ret = 0;

	*taken = 0;
	block = kmalloc_array(RMP_BLOCK, sizeof(*block), GFP_KERNEL);
	if (!block)
		return -ENOMEM;
	while (done < nr) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		n = min_t(u32, nr - done, RMP_BLOCK);
		if (copy_from_user(block, from + done, n * sizeof(*block))) {
			ret = -EFAULT;
			break;
		}
		n = kmem_cache_alloc_bulk(rmp_request_cache, GFP_KERNEL, n, reqs);
		if (!n) {
			ret = -ENOMEM;
			break;
		}
		down_read(&sub->file->handles);
		for (i = 0; i < n; i++)
			submit_one(sub, reqs[i], &block[i], done + i);
		up_read(&sub->file->handles);
		submission_flush(sub);
		done += n;
		cond_resched();
	}
	kfree(block);
	*taken = done;
	return ret;
}

int rmp_transfer_check_nr(u32 nr, struct rmpool_error *error)
{
	if (!nr)
		return -EINVAL;
	if (nr > RMPOOL_BATCH_MAX) {
		error->reason = RMPOOL_REASON_BATCH;
		error->limit = RMPOOL_BATCH_MAX;
		error->need = nr;
		return -E2BIG;
	}
	return 0;
}

int rmp_transfer_submit(struct rmp_file *file, struct rmpool_submit *arg)
{
	struct rmp_submission sub = {
		.file = file,
		.ready = LIST_HEAD_INIT(sub.ready),
		.error = &arg->error,
		.start = jiffies,
		.limit = MAX_JIFFY_OFFSET,
	};
	/* Pairs with the set-up of the ring. */
	struct rmp_ring *ring = smp_load_acquire(&file->ring);
	u32 room;
	int ret;

	arg->accepted = 0;
	if (arg->flags || arg->reserved)
		return -EINVAL;
	ret = rmp_transfer_check_nr(arg->nr, &arg->error);
	if (ret)
		return ret;
	if (!ring)
		return -ENXIO;
	room = rmp_ring_reserve(ring, arg->nr);
	if (!room) {
		arg->error.reason = RMPOOL_REASON_RING;
		arg->error.limit = rmp_ring_entries(ring);
		arg->error.used = rmp_ring_entries(ring);
		arg->error.need = arg->nr;
		return -EAGAIN;
	}
	ret = submit(&sub, arg->requests, room, &arg->accepted);
	if (arg->accepted < room)
		rmp_ring_unreserve(ring, room - arg->accepted);
	/* What stopped it half-way is met again by a call for the rest. */
	return arg->accepted ? 0 : ret;
}

/* --------------------------------------------------------------- synchronous */

/* Waits for all; 0, -EINTR or -ETIMEDOUT. */
static int batch_wait(struct rmp_batch *batch, const struct rmp_submission *sub)
{
	unsigned long spent = jiffies - sub->start;
	long ret;

	/* Nothing may be left to wait for, and yet it was cut short. */
	if (sub->interrupted)
		return -EINTR;
	ret = wait_for_completion_interruptible_timeout(&batch->done,
							spent < sub->limit ?
							sub->limit - spent : 0);
	if (ret < 0)
		return -EINTR;
	return ret ? 0 : -ETIMEDOUT;
}

int rmp_transfer_submit_sync(struct rmp_file *file,
			     struct rmpool_submit_sync *arg)
{
	struct rmp_submission sub = {
		.file = file,
		.ready = LIST_HEAD_INIT(sub.ready),
		.error = &arg->error,
		.start = jiffies,
		.limit = MAX_JIFFY_OFFSET,
	};
	struct rmp_batch *batch;
	u32 taken;
	int ret, err;

	arg->failed = 0;
	if (arg->flags || arg->reserved)
		return -EINVAL;
	ret = rmp_transfer_check_nr(arg->nr, &arg->error);
	if (ret)
		return ret;
	batch = kvzalloc(struct_size(batch, results, arg->nr),
			 GFP_KERNEL_ACCOUNT);
	if (!batch)
		return -ENOMEM;
	kref_init(&batch->ref);
	atomic_set(&batch->pending, 1);
	init_completion(&batch->done);
	sub.batch = batch;
	if (arg->timeout_ns >= 0)
		sub.limit = min_t(u64, nsecs_to_jiffies64(arg->timeout_ns) + 1,
				  MAX_JIFFY_OFFSET);
	err = submit(&sub, arg->requests, arg->nr, &taken);
	batch_dec(batch);
	ret = batch_wait(batch, &sub);
	if (ret == -EINTR || ret == -ETIMEDOUT) {
		struct rmp_match m = {
			.batch = batch,
			.early = true,
			.status = ret == -EINTR ? -ECANCELED : -ETIMEDOUT,
		};

		rmp_transfer_end_early(file, &m);
		/* What was just ending reports in a moment. */
		wait_for_completion(&batch->done);
	}
	/* A batch that could not be taken whole is not a success. */
	if (err)
		ret = err;
	arg->failed = atomic_read(&batch->failed);
	if (copy_to_user(u64_to_user_ptr(arg->results), batch->results,
			 taken * sizeof(batch->results[0])))
		ret = -EFAULT;
	batch_put(batch);
	return ret;
}

/* -------------------------------------------------------------- load, unload */

int rmp_transfer_init(void)
{
	rmp_request_cache = KMEM_CACHE(rmp_request, SLAB_ACCOUNT);
	return rmp_request_cache ? 0 : -ENOMEM;
}

void rmp_transfer_exit(void)
{
	kmem_cache_destroy(rmp_request_cache);
}
