// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/staging.c: requests that are copied, over the real flow (flow_world.h).
 * The memory of owners is played, and so is who copies it: which pages are missing, what
 * fails, and what is unmapped meanwhile. Each byte that a device reads, and each that an
 * owner gets, is compared.
 */
#include <linux/mmu_notifier.h>
#include <linux/vmalloc.h>

static int play_insert(struct mmu_interval_notifier *watch, struct mm_struct *mm,
		       unsigned long start, unsigned long length,
		       const struct mmu_interval_notifier_ops *ops);
static void play_remove(struct mmu_interval_notifier *watch);

#define mmu_interval_notifier_insert	play_insert
#define mmu_interval_notifier_remove	play_remove
#define mmu_interval_read_begin(watch)	((void)(watch))
#include "flow_world.h"
#undef pr_fmt
#include "staging.c"

#define PIECE		RMP_STAGING_PIECE
#define LONGEST		(20 * PIECE + 77)

/* Beside the world of the flow. Addresses of owners are those of @memory. */
static struct {
	struct rmp_file file[2];
	u32 share[2];
	u8 *memory;
	atomic_t watched;
	struct rmp_stage *seen;		/* the one that was watched last */
	bool whole;			/* no piece is cut */
	int insert_fails;
	int add_fails;
	int adds;
	bool missing;			/* pages, until somebody waits for them */
	u64 bad;			/* address that was told */
	atomic_t copies;		/* of owners and of those who help */
	int copy_fails;			/* which of them, from 1 */
	bool in_waits;			/* once, until somebody helps */
	bool helped;
	bool out_fails;
	bool out_waits;			/* until @go */
	struct completion out_began;
	struct completion go;
	atomic_t beside;
} owner;

/* ------------------------------------------------------------------ what is played */

static int play_insert(struct mmu_interval_notifier *watch, struct mm_struct *mm,
		       unsigned long start, unsigned long length,
		       const struct mmu_interval_notifier_ops *ops)
{
	if (owner.insert_fails)
		return owner.insert_fails;
	watch->ops = ops;
	owner.seen = container_of(watch, struct rmp_stage, watch);
	atomic_inc(&owner.watched);
	return 0;
}

static void play_remove(struct mmu_interval_notifier *watch)
{
	atomic_dec(&owner.watched);
}

u32 *rmp_user_staged(struct rmp_user *user)
{
	return (u32 *)user;
}

static void file_never(struct kref *ref)
{
}

void rmp_file_put(struct rmp_file *file)
{
	kref_put(&file->ref, file_never);
}

struct rmp_region *rmp_region_add_own(struct rmp_memory *mem, void *base, u64 length)
{
	struct rmp_region *region;

	owner.adds++;
	region = owner.add_fails ? NULL : kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region) {
		vfree(base);
		return ERR_PTR(owner.add_fails ?: -ENOMEM);
	}
	kref_init(&region->ref);
	region->own = base;
	region->length = length;
	region->iova = SZ_2M;
	region->chunk_shift = 18;
	return region;
}

void rmp_region_del_own(struct rmp_region *region)
{
	vfree(region->own);
	kfree(region);
}

void rmp_gate_init(struct rmp_gate *gate)
{
	spin_lock_init(&gate->lock);
	gate->closed = 0;
}

void rmp_gate_close(struct rmp_gate *gate, s32 why)
{
	spin_lock(&gate->lock);
	if (!gate->closed)
		gate->closed = why;
	spin_unlock(&gate->lock);
}

static bool copy_fails(void)
{
	return atomic_inc_return(&owner.copies) == owner.copy_fails;
}

int rmp_copy_probe(u64 addr, u64 length, bool write, bool fault)
{
	if (owner.missing && !fault)
		return -EAGAIN;
	return copy_fails() ? -EFAULT : 0;
}

u64 rmp_copy_in(void *to, u64 addr, u64 length, bool fault)
{
	if ((owner.missing && !fault) || copy_fails())
		return length;
	if (owner.in_waits) {
		owner.helped = wait_for_completion_timeout(&owner.go, PATIENCE);
		owner.in_waits = false;
	}
	memcpy(to, (void *)(uintptr_t)addr, length);
	return 0;
}

int rmp_copy_in_beside(struct mm_struct *mm, void *to, u64 addr, u64 length)
{
	atomic_inc(&owner.beside);
	if (owner.in_waits)
		complete_all(&owner.go);
	if (owner.missing)
		return -EAGAIN;
	memcpy(to, (void *)(uintptr_t)addr, length);
	return 0;
}

int rmp_copy_out(struct mm_struct *mm, u64 addr, const void *from, u64 length,
		 struct rmp_gate *gate)
{
	int err;

	if (owner.out_waits) {
		complete(&owner.out_began);
		wait_for_completion(&owner.go);
	}
	if (owner.out_fails)
		return -EFAULT;
	spin_lock(&gate->lock);
	err = gate->closed;
	if (!err)
		memcpy((void *)(uintptr_t)addr, from, length);
	spin_unlock(&gate->lock);
	return err;
}

/* -------------------------------------------------------------------- the test */

/* What stands at a place of the peer's memory, and is put there. */
static u8 byte_of(u64 at)
{
	return at * 31 + (at >> 8) * 7 + 1;
}

/* A device reads what is put, and writes what is got. */
static void look_at(struct rmp_slice *slice, bool done)
{
	struct asked *a = asked_of(slice->req);
	u64 at = slice->sge.addr - pool.region->iova, i;
	u8 *bytes = pool.base + at;

	for (i = 0; i < slice->len; i++) {
		u8 byte = byte_of(at - a->from + i);

		if (done && a->req.op == RMPOOL_OP_GET)
			bytes[i] = byte;
		else if (!done && a->req.op == RMPOOL_OP_PUT)
			must(bytes[i] == byte);
	}
	/* Else nothing of it could be copied before all of it is there. */
	must((at & (PIECE - 1)) + slice->len <= PIECE);
}

static int staging_init(struct kunit *test)
{
	int ret = flow_init(test), i;

	if (ret)
		return ret;
	memset(&owner, 0, sizeof(owner));
	memset(&pool, 0, sizeof(pool));
	owner.memory = vmalloc(LONGEST);
	KUNIT_ASSERT_NOT_NULL(test, owner.memory);
	init_completion(&owner.out_began);
	init_completion(&owner.go);
	for (i = 0; i < 2; i++) {
		kref_init(&owner.file[i].ref);
		owner.file[i].mem.user = (struct rmp_user *)&owner.share[i];
	}
	for (i = 0; i < RMP_STAGING_COUNTS; i++)
		atomic64_set(&rmp_staging_total[i], 0);
	rmp_staging_max = SZ_1M;
	rmp_staging_mib = 2;
	world.look = look_at;
	return rmp_staging_init();
}

/* Nothing that it lent is missing. */
static void staging_exit(struct kunit *test)
{
	int i;

	flow_exit(test);
	flush_workqueue(rmp_staging_wq);
	KUNIT_EXPECT_EQ(test, pool.used, 0);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(pool.map, RMP_STAGING_PIECES));
	KUNIT_EXPECT_EQ(test, atomic_read(&owner.watched), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, owner.share[i], 0);
		KUNIT_EXPECT_EQ(test, kref_read(&owner.file[i].ref), 1);
	}
	rmp_staging_exit();
	vfree(owner.memory);
}

static u64 count(u32 file, enum rmp_staging_count what)
{
	struct rmp_staging_stats stats;

	rmp_staging_stats(&owner.file[file].mem, &stats);
	return stats.counts[what];
}

static struct rmp_stage *take(u32 file, struct rmp_request *req, u64 length, u8 op)
{
	return rmp_stage_take(&owner.file[file], req, (uintptr_t)owner.memory, length, op);
}

/* As transfer.c does it, but for the rest of a put. NULL: it is not copied. */
static struct asked *begin(struct kunit *test, u64 length, u8 op)
{
	struct asked *a = ask(test, length, RMPOOL_CLASS_NORMAL);
	struct rmp_stage *stage;
	u64 i;
	int err;

	KUNIT_ASSERT_TRUE(test, rmp_staging_make(PATIENCE));
	for (i = 0; i < length; i++)
		owner.memory[i] = op == RMPOOL_OP_PUT ? byte_of(i) : 0;
	stage = take(0, &a->req, length, op);
	if (!stage)
		return NULL;
	err = rmp_stage_prepare(stage, false);
	if (err == -EAGAIN)
		err = rmp_stage_prepare(stage, true);
	if (err) {
		rmp_stage_end(stage);
		return NULL;
	}
	if (owner.whole)
		a->rr.iova = 0;
	a->req.op = op;
	a->req.stage = stage;
	a->req.region = pool.region;
	a->from = rmp_stage_pos(stage);
	a->req.local_pos = a->from;
	a->req.left = rmp_stage_ready(stage);
	a->req.inflight = a->req.left < length;
	submit(a);
	return a;
}

static int fill(struct asked *a, u64 length)
{
	return length > PIECE ? rmp_stage_fill(a->req.stage, &owner.bad) : 0;
}

/* Everything succeeds, and everything that came of it is over. */
static void finish(void)
{
	finish_all();
	flush_workqueue(rmp_staging_wq);
	finish_all();
	flush_workqueue(rmp_staging_wq);
}

static bool got(u64 from, u64 to)
{
	u64 i;

	for (i = from; i < to && owner.memory[i] == byte_of(i); i++)
		;
	return i == to;
}

static bool untouched(u64 from, u64 to)
{
	return from == to || !memchr_inv(owner.memory + from, 0, to - from);
}

static const u64 lengths[] = {
	1, 4096, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 4 * PIECE, 4 * PIECE + 1, LONGEST,
};

static void test_puts(struct kunit *test)
{
	struct asked *a;
	u32 i, round;

	rail_up(test, 0, 2);
	rail_up(test, 1, 1);
	for (round = 0; round < 2; round++) {
		/* The second time, only its owner can read the memory. */
		owner.missing = round;
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			a = begin(test, lengths[i], RMPOOL_OP_PUT);
			KUNIT_ASSERT_NOT_NULL(test, a);
			/* The first piece does not wait for the others. */
			KUNIT_EXPECT_EQ(test, a->posted, min_t(u64, lengths[i], PIECE));
			KUNIT_EXPECT_EQ(test, fill(a, lengths[i]), 0);
			/* What is put is what was there. */
			memset(owner.memory, 0xee, lengths[i]);
			finish();
			check_ended(test, a, 0);
		}
	}
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_REQUESTS), 2 * ARRAY_SIZE(lengths));
	KUNIT_EXPECT_EQ(test, count(1, RMP_STAGING_REQUESTS), 0);
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_FALLBACKS), 0);
}

static void test_gets(struct kunit *test)
{
	struct asked *a;
	u32 i;

	rail_up(test, 0, 2);
	rail_up(test, 1, 1);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		owner.missing = i % 2;
		a = begin(test, lengths[i], RMPOOL_OP_GET);
		KUNIT_ASSERT_NOT_NULL(test, a);
		KUNIT_EXPECT_EQ(test, a->posted, lengths[i]);
		KUNIT_EXPECT_TRUE(test, untouched(0, lengths[i]));
		finish();
		check_ended(test, a, 0);
		KUNIT_EXPECT_TRUE(test, got(0, lengths[i]));
		/* It was the copier who ended that, not another work item later. */
		KUNIT_EXPECT_EQ(test, atomic_read(&owner.watched), 0);
	}
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_REQUESTS), ARRAY_SIZE(lengths));
}

/* What is there is copied while the rest is on its way. */
static void test_get_overlaps(struct kunit *test)
{
	struct asked *a;

	owner.whole = true;
	rail_up(test, 0, 1);
	rail_up(test, 1, 1);
	a = begin(test, 4 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	while (proceed(qp_of(0, 0), IB_WC_SUCCESS))
		;
	KUNIT_ASSERT_GT(test, a->moved, 0);
	KUNIT_ASSERT_LT(test, a->moved, 4 * PIECE);
	flush_workqueue(rmp_staging_wq);
	KUNIT_EXPECT_EQ(test, a->req.bytes, a->moved);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	finish();
	check_ended(test, a, 0);
	KUNIT_EXPECT_TRUE(test, got(0, 4 * PIECE));
}

/* Others help with a long put, and only with one. */
static void test_helpers(struct kunit *test)
{
	struct asked *a;
	u32 i;

	rail_up(test, 0, 2);
	a = begin(test, 4 * PIECE, RMPOOL_OP_PUT);
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_EQ(test, fill(a, 4 * PIECE), 0);
	finish();
	check_ended(test, a, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&owner.beside), 0);
	/* Which of them comes to it is chance. */
	for (i = 0; i < 50; i++) {
		a = begin(test, LONGEST, RMPOOL_OP_PUT);
		KUNIT_ASSERT_NOT_NULL(test, a);
		KUNIT_EXPECT_EQ(test, fill(a, LONGEST), 0);
		finish();
		check_ended(test, a, 0);
	}
	/* Now it is not: the owner goes on when one of them has come. */
	a = begin(test, LONGEST, RMPOOL_OP_PUT);
	KUNIT_ASSERT_NOT_NULL(test, a);
	owner.in_waits = true;
	KUNIT_EXPECT_EQ(test, fill(a, LONGEST), 0);
	KUNIT_EXPECT_TRUE(test, owner.helped);
	finish();
	check_ended(test, a, 0);
}

/* A user leaves something to others, however much he takes. */
static void test_shares(struct kunit *test)
{
	static struct rmp_stage *stage[2][RMP_STAGING_PIECES];
	struct rmp_request req = {};
	u32 nr[2] = {}, i;

	KUNIT_ASSERT_TRUE(test, rmp_staging_make(PATIENCE));
	KUNIT_ASSERT_EQ(test, pool.nr, SZ_2M / PIECE);
	KUNIT_EXPECT_TRUE(test, rmp_staging_wants(SZ_1M));
	KUNIT_EXPECT_FALSE(test, rmp_staging_wants(SZ_1M + 1));
	for (i = 0; i < 2; i++) {
		while ((stage[i][nr[i]] = take(i, &req, PIECE, RMPOOL_OP_PUT)))
			nr[i]++;
		KUNIT_EXPECT_EQ(test, count(i, RMP_STAGING_FALLBACKS), 1);
	}
	KUNIT_EXPECT_EQ(test, nr[0], pool.nr / 2);
	KUNIT_EXPECT_EQ(test, nr[1], pool.nr / 4);
	/* Every second piece of the first: enough, but not in a row. */
	for (i = 0; i < nr[0]; i += 2)
		rmp_stage_end(stage[0][i]);
	for (i = 0; i < nr[1]; i++)
		rmp_stage_end(stage[1][i]);
	KUNIT_EXPECT_NULL(test, take(1, &req, (pool.nr / 2 + 1) * PIECE, RMPOOL_OP_PUT));
	stage[1][0] = take(1, &req, pool.nr / 4 * PIECE, RMPOOL_OP_PUT);
	KUNIT_ASSERT_NOT_NULL(test, stage[1][0]);
	KUNIT_EXPECT_GE(test, stage[1][0]->first, pool.nr / 2 - 1);
	rmp_stage_end(stage[1][0]);
	for (i = 1; i < nr[0]; i += 2)
		rmp_stage_end(stage[0][i]);
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_REQUESTS), 0);
}

/* Memory that cannot be read: before anything moves, if it is known by then. */
static void test_put_fails(struct kunit *test)
{
	struct asked *a;
	int i;

	rail_up(test, 0, 1);
	/* So that each is tried once. */
	owner.missing = true;
	for (i = 1; i <= 2; i++) {
		atomic_set(&owner.copies, 0);
		owner.copy_fails = i;
		KUNIT_EXPECT_NULL(test, begin(test, 3 * PIECE, RMPOOL_OP_PUT));
	}
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_REQUESTS), 0);
	for (; i <= 4; i++) {
		atomic_set(&owner.copies, 0);
		owner.copy_fails = i;
		a = begin(test, 3 * PIECE, RMPOOL_OP_PUT);
		KUNIT_ASSERT_NOT_NULL(test, a);
		KUNIT_EXPECT_EQ(test, fill(a, 3 * PIECE), -EFAULT);
		KUNIT_EXPECT_EQ(test, owner.bad,
				(uintptr_t)owner.memory + (i - 2) * PIECE);
		finish();
		check_ended(test, a, -EFAULT);
		KUNIT_EXPECT_EQ(test, a->moved, (i - 2) * PIECE);
	}
}

/* The queue pair fails before anything has arrived. */
static void die(void)
{
	proceed(qp_of(0, 0), IB_WC_RETRY_EXC_ERR);
	while (proceed(qp_of(0, 0), IB_WC_SUCCESS))
		;
	flush_workqueue(rmp_wq);
	flush_workqueue(rmp_staging_wq);
}

static void test_get_fails(struct kunit *test)
{
	struct asked *a;

	rail_up(test, 0, 1);
	owner.insert_fails = -ENOMEM;
	KUNIT_EXPECT_NULL(test, begin(test, PIECE, RMPOOL_OP_GET));
	owner.insert_fails = 0;
	owner.copy_fails = atomic_read(&owner.copies) + 1;
	KUNIT_EXPECT_NULL(test, begin(test, PIECE, RMPOOL_OP_GET));
	flush_workqueue(rmp_staging_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&owner.watched), 0);

	owner.out_fails = true;
	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	finish();
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_EQ(test, a->status, -EFAULT);
	KUNIT_EXPECT_EQ(test, a->bytes, 0);
	owner.out_fails = false;

	/* The queue pair dies, when nothing of it was there: another one does it. */
	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	die();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	KUNIT_EXPECT_TRUE(test, untouched(0, 3 * PIECE));
	rail_down(0);
	rail_up(test, 0, 1);
	rmp_flow_kick(world.flow);
	let_sweep_run();
	finish();
	check_ended(test, a, 0);
	KUNIT_EXPECT_TRUE(test, got(0, 3 * PIECE));

	rmp_max_failover = 0;
	memset(owner.memory, 0, 3 * PIECE);
	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	die();
	rmp_max_failover = 4;
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->status, -ECONNRESET);
	KUNIT_EXPECT_FALSE(test, memchr_inv(owner.memory, 0, 3 * PIECE));
}

static void tell(u32 event)
{
	struct mmu_notifier_range range = { .event = event };

	owner.seen->watch.ops->invalidate(&owner.seen->watch, &range, 1);
}

/* What is unmapped is not written; all else that may happen to memory does not matter. */
static void test_unmapped(struct kunit *test)
{
	struct asked *a;

	rail_up(test, 0, 1);
	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	tell(MMU_NOTIFY_CLEAR);
	tell(MMU_NOTIFY_PROTECTION_VMA);
	tell(MMU_NOTIFY_MIGRATE);
	finish();
	check_ended(test, a, 0);
	KUNIT_EXPECT_TRUE(test, got(0, 3 * PIECE));

	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	tell(MMU_NOTIFY_UNMAP);
	finish();
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->status, -ESTALE);
	KUNIT_EXPECT_EQ(test, a->bytes, 0);
	KUNIT_EXPECT_TRUE(test, untouched(0, 3 * PIECE));
}

static void overdue(struct asked *a)
{
	spin_lock_bh(&world.flow->lock);
	a->req.deadline = jiffies;
	spin_unlock_bh(&world.flow->lock);
	rmp_flow_kick(world.flow);
	let_sweep_run();
}

/* A report that comes early: nothing is written after it, whatever was on its way. */
static void test_deadline(struct kunit *test)
{
	struct asked *a;

	rail_up(test, 0, 1);
	a = begin(test, 3 * PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	overdue(a);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_EQ(test, a->status, -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, a->unknown);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	finish();
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_TRUE(test, untouched(0, 3 * PIECE));

	/* It is just being copied, and pages are missing. */
	owner.out_waits = true;
	a = begin(test, PIECE, RMPOOL_OP_GET);
	KUNIT_ASSERT_NOT_NULL(test, a);
	finish_all();
	wait_for_completion(&owner.out_began);
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	overdue(a);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_TRUE(test, a->unknown);
	complete(&owner.go);
	flush_workqueue(rmp_staging_wq);
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_TRUE(test, untouched(0, PIECE));

	/* A put whose owner is not done. */
	a = begin(test, 3 * PIECE, RMPOOL_OP_PUT);
	KUNIT_ASSERT_NOT_NULL(test, a);
	overdue(a);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	finish();
	KUNIT_EXPECT_EQ(test, a->ended, 0);
	KUNIT_EXPECT_EQ(test, fill(a, 3 * PIECE), 0);
	finish();
	KUNIT_EXPECT_EQ(test, a->ended, 1);
	KUNIT_EXPECT_EQ(test, a->reported, 1);
	KUNIT_EXPECT_EQ(test, a->posted, PIECE);
}

/* Without a way to the peer it ends at its deadline, and gives its room back. */
static void test_no_way(struct kunit *test)
{
	struct asked *a[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		a[i] = begin(test, 3 * PIECE, i ? RMPOOL_OP_PUT : RMPOOL_OP_GET);
		KUNIT_ASSERT_NOT_NULL(test, a[i]);
		if (i)
			KUNIT_EXPECT_EQ(test, fill(a[i], 3 * PIECE), 0);
	}
	KUNIT_EXPECT_EQ(test, pool.used, 6);
	for (i = 0; i < 2; i++) {
		overdue(a[i]);
		check_ended(test, a[i], -ETIMEDOUT);
		KUNIT_EXPECT_FALSE(test, a[i]->unknown);
	}
}

/* A pool that cannot be made is not tried for each request. */
static void test_no_pool(struct kunit *test)
{
	struct rmp_request req = {};
	struct rmp_stage *stage;

	KUNIT_EXPECT_FALSE(test, rmp_staging_there());
	KUNIT_EXPECT_NULL(test, take(0, &req, 1, RMPOOL_OP_PUT));
	owner.add_fails = -ENODEV;
	KUNIT_EXPECT_FALSE(test, rmp_staging_make(PATIENCE));
	owner.add_fails = 0;
	pool.retry = jiffies + 1000 * HZ;
	KUNIT_EXPECT_FALSE(test, rmp_staging_make(PATIENCE));
	KUNIT_EXPECT_EQ(test, owner.adds, 1);
	pool.retry = jiffies - 1;
	KUNIT_EXPECT_TRUE(test, rmp_staging_make(PATIENCE));
	KUNIT_EXPECT_TRUE(test, rmp_staging_make(PATIENCE));
	KUNIT_EXPECT_EQ(test, owner.adds, 2);
	stage = take(0, &req, 1, RMPOOL_OP_PUT);
	KUNIT_ASSERT_NOT_NULL(test, stage);
	rmp_stage_end(stage);
	KUNIT_EXPECT_EQ(test, count(0, RMP_STAGING_FALLBACKS), 1);

	rmp_staging_max = 0;
	KUNIT_EXPECT_FALSE(test, rmp_staging_wants(1));
	rmp_staging_max = SZ_1G;
	KUNIT_EXPECT_TRUE(test, rmp_staging_wants(SZ_1M));
	rmp_staging_mib = 0;
	KUNIT_EXPECT_FALSE(test, rmp_staging_wants(1));
	rmp_staging_mib = 2;
}

static struct kunit_case staging_cases[] = {
	KUNIT_CASE(test_puts),
	KUNIT_CASE(test_gets),
	KUNIT_CASE(test_get_overlaps),
	KUNIT_CASE(test_helpers),
	KUNIT_CASE(test_shares),
	KUNIT_CASE(test_put_fails),
	KUNIT_CASE(test_get_fails),
	KUNIT_CASE(test_unmapped),
	KUNIT_CASE(test_deadline),
	KUNIT_CASE(test_no_way),
	KUNIT_CASE(test_no_pool),
	{}
};

static struct kunit_suite staging_suite = {
	.name = "rmp_staging",
	.suite_init = suite_begin,
	.init = staging_init,
	.exit = staging_exit,
	.test_cases = staging_cases,
};

kunit_test_suites(&staging_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's requests that are copied");
MODULE_LICENSE("GPL");
