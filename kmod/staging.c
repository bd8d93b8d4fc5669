// SPDX-License-Identifier: GPL-2.0
/*
 * Small requests on memory that nobody registered: copied to or from memory of the module
 * that is registered once.
 *
 * The pool is made when the first such request comes, as a region like any other, so
 * each device has it. It is dealt in pieces; a request takes as many in a row as it
 * needs, and is one request for the data rooms, on that region.
 *
 * A put is copied in the call that submits it, so what its owner does to the memory
 * afterwards does not matter. The first piece is copied before the request is queued; the
 * others are added to it one by one, while those before them are moving. Of a long one,
 * work items copy as well, from pages that are there. What they leave, the owner copies.
 *
 * A get is cut at borders of pieces. Each is copied by a work item when all of its bytes
 * are there, while the next are on their way; the request lives until the last is
 * done. Its memory is watched: what the owner unmaps meanwhile is not written, nor
 * what comes in its place (ESTALE). And once a request is reported, also early, nothing
 * is written any more.
 *
 * Who finds no room goes the way of cache.c and does not wait here, so nobody can be made to
 * wait by others who hold room. A user may have as much as is left: so whatever some
 * take, those who come find something. There are no more pieces than work items may run
 * at once, so that items which wait for pages of one owner do not stop those of another.
 *
 * Locking: pool.lock (BH), a leaf, guards the map and the shares of users. A put in its
 * submission has a lock of its own, a leaf as well, for who copies which piece.
 * What is missing of a get is under flow->lock.
 *
 * Lifetime: the pool stays until the module is unloaded. A stage belongs to its request,
 * and ends with it; pieces that are being copied count in req->inflight.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "copy.h"
#include "flow.h"
#include "pin.h"
#include "staging.h"

/* Most pieces; see above. */
#define RMP_STAGING_PIECES	WQ_MAX_ACTIVE
/* Least bytes of one: what is copied in the time that a hand-over to another takes. */
#define RMP_STAGING_PIECE	SZ_16K
#define RMP_STAGING_MIB_MAX	1024U
/* Pieces of a put that its owner copies alone, and how many help with more. */
#define RMP_STAGE_ALONE		4U
#define RMP_STAGE_HELPERS	3U

static unsigned int rmp_staging_max = SZ_64K;
module_param_named(staging_max, rmp_staging_max, uint, 0644);
MODULE_PARM_DESC(staging_max,
		 "Bytes of the largest request on memory that is not registered which is copied instead of registered (0: none; default 65536)");

static unsigned int rmp_staging_mib = 8;
module_param_named(staging_mib, rmp_staging_mib, uint, 0444);
MODULE_PARM_DESC(staging_mib,
		 "MiB for such copies, taken when they are first needed (0: none; at most 1024; default 8)");

/**
 * struct rmp_stage_piece - one piece of a request
 * @work: copies it to the owner, or helps to copy from there
 * @stage: of the request
 * @missing: bytes of a get that have not arrived; flow->lock
 * @copied: of a put; stage->lock
 */
struct rmp_stage_piece {
	struct work_struct work;
	struct rmp_stage *stage;
	u64 missing;
	bool copied;
};

/**
 * struct rmp_stage - the room of one request
 * @file: referenced
 * @req: owns this
 * @addr: of the owner's memory
 * @length: bytes
 * @first: its first piece in the pool
 * @nr: pieces
 * @put: or get
 * @lock: guards @next, @added and the pieces of a put
 * @next: the first piece that nobody copies yet
 * @added: pieces that the request has, or had, in its cursor
 * @uncopied: pieces of a get
 * @gate: to the owner's memory
 * @watch: of that, for a get
 * @watched: by that; set in the submission, cleared by who copied last
 * @end: to end that
 * @pieces: @nr of them
 */
struct rmp_stage {
	struct rmp_file *file;
	struct rmp_request *req;
	u64 addr;
	u64 length;
	u32 first;
	u32 nr;
	bool put;
	bool watched;
	spinlock_t lock;	/* see above */
	u32 next;
	u32 added;
	atomic_t uncopied;
	struct rmp_gate gate;
	struct mmu_interval_notifier watch;
	struct work_struct end;
	struct rmp_stage_piece pieces[];
};

/* @region is set last, with release order; @base, @piece and @nr do not change then. */
static struct {
	struct rmp_region *region;
	void *base;
	u32 piece;		/* bytes */
	u32 nr;			/* pieces */
	spinlock_t lock;	/* of the two below, and of the shares of users */
	DECLARE_BITMAP(map, RMP_STAGING_PIECES);
	u32 used;
	struct rmp_memory mem;	/* of @region */
	struct work_struct make;
	wait_queue_head_t wait;	/* until one more of @tries is over */
	atomic_t tries;
	bool failed;		/* the last: not again before @retry */
	unsigned long retry;
} pool;

static struct workqueue_struct *rmp_staging_wq;
/* Of all files, also of those that were closed. */
static atomic64_t rmp_staging_total[RMP_STAGING_COUNTS];

static void staging_count(struct rmp_memory *mem, enum rmp_staging_count what, u64 by)
{
	atomic64_add(by, &mem->staged[what]);
	atomic64_add(by, &rmp_staging_total[what]);
}

/* ----------------------------------------------------------------------- pool */

static u64 staging_bytes(void)
{
	return (u64)min(rmp_staging_mib, RMP_STAGING_MIB_MAX) << 20;
}

static u64 staging_limit(void)
{
	/* Nobody gets more than half. */
	return min_t(u64, READ_ONCE(rmp_staging_max), staging_bytes() / 2);
}

bool rmp_staging_wants(u64 length)
{
	return length <= staging_limit();
}

bool rmp_staging_there(void)
{
	/* Pairs with the release when it is made. */
	return smp_load_acquire(&pool.region);
}

static void pool_make(struct work_struct *work)
{
	u64 bytes = staging_bytes();
	struct rmp_region *region;
	void *base;

	if (pool.region)
		goto out;
	base = vzalloc(bytes);
	region = base ? rmp_region_add_own(&pool.mem, base, bytes) :
			ERR_PTR(-ENOMEM);
	if (IS_ERR(region)) {
		/* Without a device nothing else can be done either. */
		if (region != ERR_PTR(-ENODEV))
			pr_warn_ratelimited("no memory for copies: error %ld\n",
					    PTR_ERR(region));
		WRITE_ONCE(pool.retry, jiffies + HZ);
		WRITE_ONCE(pool.failed, true);
		goto out;
	}
	pool.base = base;
	pool.piece = max_t(u64, RMP_STAGING_PIECE,
			   roundup_pow_of_two(bytes / RMP_STAGING_PIECES));
	pool.nr = bytes / pool.piece;
	/* Who sees the region sees the rest. */
	smp_store_release(&pool.region, region);
out:
	atomic_inc(&pool.tries);
	wake_up_all(&pool.wait);
}

bool rmp_staging_make(unsigned long timeout)
{
	int tries = atomic_read(&pool.tries);

	if (rmp_staging_there())
		return true;
	/* Megabytes, and work on each device: not for each request. */
	if (READ_ONCE(pool.failed) && time_before(jiffies, READ_ONCE(pool.retry)))
		return false;
	queue_work(rmp_staging_wq, &pool.make);
	wait_event_interruptible_timeout(pool.wait,
					 atomic_read(&pool.tries) != tries,
					 timeout);
	return rmp_staging_there();
}

static bool pool_take(struct rmp_stage *stage)
{
	u32 *share = rmp_user_staged(stage->file->mem.user);
	unsigned long first = pool.nr;

	spin_lock_bh(&pool.lock);
	/* With it, he has no more than is left then. */
	if (*share + 2 * stage->nr <= pool.nr - pool.used)
		first = bitmap_find_next_zero_area(pool.map, pool.nr, 0,
						   stage->nr, 0);
	if (first < pool.nr) {
		bitmap_set(pool.map, first, stage->nr);
		*share += stage->nr;
		pool.used += stage->nr;
		stage->first = first;
	}
	spin_unlock_bh(&pool.lock);
	return first < pool.nr;
}

static void pool_give(const struct rmp_stage *stage)
{
	u32 *share = rmp_user_staged(stage->file->mem.user);

	spin_lock_bh(&pool.lock);
	bitmap_clear(pool.map, stage->first, stage->nr);
	*share -= stage->nr;
	pool.used -= stage->nr;
	spin_unlock_bh(&pool.lock);
}

/* ---------------------------------------------------------------------- stages */

/* Where piece @i is in the request, and in the pool. */
static u64 piece_offset(u32 i)
{
	return (u64)i * pool.piece;
}

static void *piece_at(const struct rmp_stage *stage, u32 i)
{
	return pool.base + piece_offset(stage->first + i);
}

static u64 piece_bytes(const struct rmp_stage *stage, u32 i)
{
	return min_t(u64, pool.piece, stage->length - piece_offset(i));
}

struct rmp_region *rmp_stage_region(const struct rmp_stage *stage)
{
	kref_get(&pool.region->ref);
	return pool.region;
}

u64 rmp_stage_pos(const struct rmp_stage *stage)
{
	return piece_offset(stage->first);
}

u64 rmp_stage_ready(const struct rmp_stage *stage)
{
	return stage->put ? piece_bytes(stage, 0) : stage->length;
}

u64 rmp_stage_rest(const struct rmp_stage *stage, u64 pos, u64 rest)
{
	/* A power of two, as pieces are; the pool begins with one. */
	return min_t(u64, rest, pool.piece - (pos & (pool.piece - 1)));
}

static void put_help(struct work_struct *work);
static void get_piece(struct work_struct *work);

static void stage_free(struct rmp_stage *stage)
{
	struct rmp_file *file = stage->file;

	pool_give(stage);
	kfree(stage);
	rmp_file_put(file);
}

static void stage_unwatch(struct rmp_stage *stage)
{
	mmu_interval_notifier_remove(&stage->watch);
	stage->watched = false;
}

static void stage_end_work(struct work_struct *work)
{
	struct rmp_stage *stage = container_of(work, struct rmp_stage, end);

	stage_unwatch(stage);
	stage_free(stage);
}

struct rmp_stage *rmp_stage_take(struct rmp_file *file, struct rmp_request *req,
				 u64 addr, u64 length, u8 op)
{
	struct rmp_stage *stage;
	u32 nr, i;

	if (!rmp_staging_there())
		goto none;
	nr = DIV_ROUND_UP(length, pool.piece);
	stage = kzalloc(struct_size(stage, pieces, nr), GFP_KERNEL_ACCOUNT);
	if (!stage)
		goto none;
	stage->file = file;
	stage->req = req;
	stage->addr = addr;
	stage->length = length;
	stage->nr = nr;
	stage->put = op == RMPOOL_OP_PUT;
	if (!pool_take(stage)) {
		kfree(stage);
		goto none;
	}
	kref_get(&file->ref);
	spin_lock_init(&stage->lock);
	stage->next = 1;
	stage->added = 1;
	atomic_set(&stage->uncopied, nr);
	rmp_gate_init(&stage->gate);
	INIT_WORK(&stage->end, stage_end_work);
	for (i = 0; i < nr; i++) {
		INIT_WORK(&stage->pieces[i].work, stage->put ? put_help : get_piece);
		stage->pieces[i].stage = stage;
		stage->pieces[i].missing = piece_bytes(stage, i);
	}
	return stage;

none:
	staging_count(&file->mem, RMP_STAGING_FALLBACKS, 1);
	return NULL;
}

void rmp_stage_end(struct rmp_stage *stage)
{
	/* Nobody may wait for the notifier here. */
	if (stage->watched)
		queue_work(rmp_staging_wq, &stage->end);
	else
		stage_free(stage);
}

void rmp_stage_stop(struct rmp_stage *stage)
{
	rmp_gate_close(&stage->gate, -ECANCELED);
}

/* ------------------------------------------------------------------------ puts */

static int prepare_put(struct rmp_stage *stage, bool fault)
{
	u64 n = piece_bytes(stage, 0);

	if (rmp_copy_in(piece_at(stage, 0), stage->addr, n, fault))
		return fault ? -EFAULT : -EAGAIN;
	if (n == stage->length)
		return 0;
	/* So that what cannot be read changes nothing at the peer. */
	return rmp_copy_probe(stage->addr + n, stage->length - n, false, fault);
}

/* The next piece to copy, which is the caller's then. */
static bool put_next(struct rmp_stage *stage, u32 *i)
{
	bool any;

	spin_lock(&stage->lock);
	any = stage->next < stage->nr;
	if (any)
		*i = stage->next++;
	spin_unlock(&stage->lock);
	return any;
}

/* A piece is copied: what is copied up to there, without a gap, can be moved. */
static void put_copied(struct rmp_stage *stage, u32 i)
{
	u64 bytes = 0;

	spin_lock(&stage->lock);
	stage->pieces[i].copied = true;
	while (stage->added < stage->nr && stage->pieces[stage->added].copied)
		bytes += piece_bytes(stage, stage->added++);
	spin_unlock(&stage->lock);
	if (!bytes)
		return;
	rmp_flow_more(stage->req, bytes);
	rmp_flow_run(stage->req->flow);
}

/* The owner waits for this. */
static void put_help(struct work_struct *work)
{
	struct rmp_stage *stage = container_of(work, struct rmp_stage_piece,
					       work)->stage;
	u32 i;

	while (!READ_ONCE(stage->req->status) && put_next(stage, &i)) {
		if (!rmp_copy_in_beside(stage->file->mem.mm, piece_at(stage, i),
					stage->addr + piece_offset(i),
					piece_bytes(stage, i)))
			put_copied(stage, i);
	}
}

/* @bad: where it failed. */
static int put_piece(struct rmp_stage *stage, u32 i, u64 *bad)
{
	u64 from = stage->addr + piece_offset(i), n = piece_bytes(stage, i), left;

	left = rmp_copy_in(piece_at(stage, i), from, n, true);
	if (left) {
		*bad = from + n - left;
		return -EFAULT;
	}
	put_copied(stage, i);
	return 0;
}

int rmp_stage_fill(struct rmp_stage *stage, u64 *bad)
{
	struct rmp_request *req = stage->req;
	u32 helpers, i;
	int err = 0;

	helpers = stage->nr > RMP_STAGE_ALONE ?
		  min(stage->nr - RMP_STAGE_ALONE, RMP_STAGE_HELPERS) : 0;
	for (i = 0; i < helpers; i++)
		queue_work(rmp_staging_wq, &stage->pieces[i].work);
	while (!err && !READ_ONCE(req->status) && put_next(stage, &i)) {
		err = put_piece(stage, i, bad);
		cond_resched();
	}
	/* Those that have not begun are not needed any more. */
	for (i = 0; i < helpers; i++)
		cancel_work_sync(&stage->pieces[i].work);
	/* In some, pages were not there. */
	for (i = 1; i < stage->nr && !err && !READ_ONCE(req->status); i++) {
		if (!stage->pieces[i].copied)
			err = put_piece(stage, i, bad);
		cond_resched();
	}
	rmp_flow_copied(req, 0, err);
	return err;
}

/* ------------------------------------------------------------------------ gets */

/* Called when the owner's pages are about to go, before anything else can be there. Of
 * shared huge pages, more is told than goes: a get there may fail for nothing.
 */
static bool stage_event(struct mmu_interval_notifier *watch,
			const struct mmu_notifier_range *range,
			unsigned long seq)
{
	struct rmp_stage *stage = container_of(watch, struct rmp_stage, watch);

	if (range->event == MMU_NOTIFY_UNMAP)
		rmp_gate_close(&stage->gate, -ESTALE);
	return true;
}

static const struct mmu_interval_notifier_ops stage_ops = {
	.invalidate = stage_event,
};

static int stage_watch(struct rmp_stage *stage)
{
	u64 from = stage->addr & PAGE_MASK;
	int err;

	err = mmu_interval_notifier_insert(&stage->watch, stage->file->mem.mm, from,
					   PAGE_ALIGN(stage->addr + stage->length) - from,
					   &stage_ops);
	if (err)
		return err;
	stage->watched = true;
	/* What began before is over; of what begins now we are told. */
	mmu_interval_read_begin(&stage->watch);
	return 0;
}

static int prepare_get(struct rmp_stage *stage, bool fault)
{
	int err = stage->watched ? 0 : stage_watch(stage);

	return err ?: rmp_copy_probe(stage->addr, stage->length, true, fault);
}

bool rmp_stage_arrived(struct rmp_request *req, u64 iova, u32 length)
{
	struct rmp_stage *stage = req->stage;
	u64 at = iova - pool.region->iova - rmp_stage_pos(stage), end = at + length, n;
	struct rmp_stage_piece *piece;
	u32 i;

	lockdep_assert_held(&req->flow->lock);
	if (stage->put)
		return false;
	for (; at < end; at += n) {
		i = at / pool.piece;
		n = min(end, piece_offset(i + 1)) - at;
		piece = &stage->pieces[i];
		piece->missing -= n;
		/* Else nobody wants it any more. */
		if (!piece->missing && !req->status) {
			req->inflight++;
			queue_work(rmp_staging_wq, &piece->work);
		}
	}
	return true;
}

static void get_piece(struct work_struct *work)
{
	struct rmp_stage_piece *piece = container_of(work, struct rmp_stage_piece,
						     work);
	struct rmp_stage *stage = piece->stage;
	u32 i = piece - stage->pieces;
	u64 n = piece_bytes(stage, i);
	s32 err = READ_ONCE(stage->req->status);

	if (!err)
		err = rmp_copy_out(stage->file->mem.mm, stage->addr + piece_offset(i),
				   piece_at(stage, i), n, &stage->gate);
	/* After the last, nothing is left that could be written. */
	if (atomic_dec_and_test(&stage->uncopied))
		stage_unwatch(stage);
	rmp_flow_copied(stage->req, err ? 0 : n, err);
}

int rmp_stage_prepare(struct rmp_stage *stage, bool fault)
{
	int err = stage->put ? prepare_put(stage, fault) : prepare_get(stage, fault);

	if (!err) {
		staging_count(&stage->file->mem, RMP_STAGING_REQUESTS, 1);
		staging_count(&stage->file->mem, RMP_STAGING_BYTES, stage->length);
	}
	return err;
}

/* ------------------------------------------------------------------ counts, load */

void rmp_staging_totals(struct rmp_staging_stats *stats)
{
	int i;

	stats->limit = staging_limit();
	stats->pool = rmp_staging_there() ? pool.region->length : 0;
	for (i = 0; i < RMP_STAGING_COUNTS; i++)
		stats->counts[i] = atomic64_read(&rmp_staging_total[i]);
}

void rmp_staging_stats(struct rmp_memory *mem, struct rmp_staging_stats *stats)
{
	int i;

	rmp_staging_totals(stats);
	for (i = 0; i < RMP_STAGING_COUNTS; i++)
		stats->counts[i] = atomic64_read(&mem->staged[i]);
}

int rmp_staging_init(void)
{
	/* Faults pages of processes in: not for reclaim. */
	rmp_staging_wq = alloc_workqueue("rmpool_staging", WQ_UNBOUND,
					 RMP_STAGING_PIECES);
	if (!rmp_staging_wq)
		return -ENOMEM;
	spin_lock_init(&pool.lock);
	INIT_WORK(&pool.make, pool_make);
	init_waitqueue_head(&pool.wait);
	return 0;
}

void rmp_staging_exit(void)
{
	destroy_workqueue(rmp_staging_wq);
	WARN_ON(pool.used);
	if (pool.region)
		rmp_region_del_own(pool.region);
}
