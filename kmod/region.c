// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: pinned ranges of a process's memory, registered on every device.
 *
 * A region is made whole or not at all: charged, pinned, mapped on each device
 * (attach.c), put in its segment, and last made findable in its file. It ends
 * the other way round: not found any more, taken out of its segment, its keys
 * revoked at the peers, and, when the last reference is gone, unmapped (which
 * waits until no device can reach it), unpinned and uncharged.
 *
 * Lifetime: one reference belongs to the file (from the moment the region is
 * findable; to rmp_region_add() before), one to each request in flight, short
 * ones to walkers. The last may be dropped in any context: it queues
 * rmp_region_release() on a queue of its own, so that it is never behind work
 * items that wait for it. A region holds its segment and may use its
 * struct rmp_memory, which outlives its regions.
 *
 * Locking: rmp_memory.lock guards the tree and the handles of a file. A handle
 * is reserved before and filled under it. Look-ups hold it for reading. The
 * table of all regions is read under RCU, taking a reference if there is one
 * to take.
 *
 * Everything here may meet 100,000 regions of a file and more: no step is
 * longer than a few regions without a chance to reschedule.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "attach.h"
#include "pin.h"
#include "region.h"
#include "segment.h"

/* Ids are indexes of an xarray. */
static_assert(sizeof(unsigned long) == sizeof(u64));

/* All regions of the node, by id. */
static DEFINE_XARRAY(rmp_regions);
static atomic64_t rmp_last_id;

static struct workqueue_struct *rmp_release_wq;

/* The last reference is gone: nobody posts to it or looks at it. */
static void rmp_region_release(struct work_struct *work)
{
	struct rmp_region *region = container_of(work, struct rmp_region,
						 release);
	struct rmp_memory *mem = region->mem;

	rmp_region_detach(region);
	/* Rather lose memory than let a device write into someone else's. */
	if (!region->stuck)
		rmp_unpin(region->pages, region->nr_pinned,
			  region->access & (RMPOOL_ACCESS_LOCAL_WRITE |
					    RMPOOL_ACCESS_REMOTE_WRITE));
	kvfree(region->pages);
	rmp_uncharge(mem->mm, region->nr_pages);
	atomic64_sub(region->nr_pages, &mem->pinned_pages);
	if (region->segment)
		rmp_segment_put(region->segment);

	xa_erase(&rmp_regions, region->id);
	kfree_rcu(region, rcu);
	/* Waiters see no region of that id, or none at all. After that, the
	 * memory object may be gone, and only its address is used.
	 */
	atomic_dec_return(&mem->nr);
	wake_up_var(mem);
}

static void rmp_region_last_put(struct kref *ref)
{
	struct rmp_region *region = container_of(ref, struct rmp_region, ref);

	queue_work(rmp_release_wq, &region->release);
}

void rmp_region_put(struct rmp_region *region)
{
	kref_put(&region->ref, rmp_region_last_put);
}

/* Gives a reference back and waits until all others are, too. */
static int rmp_region_put_and_wait(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;
	u64 id = region->id;

	rmp_region_put(region);
	return wait_var_event_killable(mem, !xa_load(&rmp_regions, id)) ?
	       -EINTR : 0;
}

struct rmp_region *rmp_region_next(unsigned long *id)
{
	struct rmp_region *region;

	rcu_read_lock();
	for (;;) {
		region = xa_find(&rmp_regions, id, ULONG_MAX, XA_PRESENT);
		if (!region || kref_get_unless_zero(&region->ref))
			break;
		(*id)++;
	}
	rcu_read_unlock();
	return region;
}

static int rmp_region_pin(struct rmp_region *region, struct rmpool_error *error)
{
	bool write = region->access & (RMPOOL_ACCESS_LOCAL_WRITE |
				       RMPOOL_ACCESS_REMOTE_WRITE);
	u64 bad = 0;
	int err;

	/* The size is the user's: no warning when it is absurd. */
	region->pages = kvmalloc_array(region->nr_pages, sizeof(struct page *),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!region->pages)
		return -ENOMEM;

	err = rmp_pin(region->addr & PAGE_MASK, region->nr_pages, write,
		      region->pages, &region->nr_pinned, &bad);
	if (err == -EFAULT) {
		error->reason = RMPOOL_REASON_UNMAPPED;
		error->need = max(bad, region->addr);
	}
	return err;
}

static int rmp_region_check(const struct rmpool_region_add *arg,
			    struct rmpool_error *error)
{
	u64 end;

	if (arg->access & ~RMPOOL_ACCESS_ALL)
		return -EINVAL;
	if (!arg->length) {
		error->reason = RMPOOL_REASON_LENGTH_ZERO;
		return -EINVAL;
	}
	if (check_add_overflow(arg->addr, arg->length, &end)) {
		error->reason = RMPOOL_REASON_RANGE_WRAPS;
		error->need = arg->length;
		return -EINVAL;
	}
	if (end > TASK_SIZE) {
		error->reason = RMPOOL_REASON_UNMAPPED;
		error->need = max_t(u64, arg->addr, TASK_SIZE);
		return -EFAULT;
	}
	return 0;
}

/* Charged, and known by id; the reference is the caller's. */
static struct rmp_region *rmp_region_create(struct rmp_memory *mem,
					    const struct rmpool_region_add *arg,
					    struct rmp_segment *seg,
					    struct rmpool_error *error)
{
	struct rmp_region *region;
	unsigned long in_page;
	int err;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);

	kref_init(&region->ref);
	INIT_WORK(&region->release, rmp_region_release);
	region->id = atomic64_inc_return(&rmp_last_id);
	region->mem = mem;
	region->addr = arg->addr;
	region->length = arg->length;
	region->access = arg->access;
	if (region->access & RMPOOL_ACCESS_REMOTE_WRITE)
		region->access |= RMPOOL_ACCESS_LOCAL_WRITE;
	region->node.start = arg->addr;
	region->node.last = arg->addr + arg->length - 1;

	in_page = offset_in_page(arg->addr);
	region->nr_pages = (in_page + arg->length + PAGE_SIZE - 1) >>
			   PAGE_SHIFT;
	/* Device addresses are like the user's below the size of a huge page,
	 * and tell nothing above it.
	 */
	region->iova = PMD_SIZE + (arg->addr & ~PMD_MASK);
	region->iova_base = region->iova - in_page;

	err = rmp_charge(mem->mm, region->nr_pages, error);
	if (err)
		goto err_free;
	err = xa_insert(&rmp_regions, region->id, region, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_uncharge;

	atomic64_add(region->nr_pages, &mem->pinned_pages);
	atomic_inc(&mem->nr);
	if (seg) {
		kref_get(&seg->ref);
		region->segment = seg;
	}
	return region;

err_uncharge:
	rmp_uncharge(mem->mm, region->nr_pages);
err_free:
	kfree(region);
	return ERR_PTR(err);
}

/* Peers learn of it, then requests find it. The handle is reserved already. */
static int rmp_region_publish(struct rmp_region *region, u32 handle,
			      struct rmpool_region_add *arg)
{
	struct rmp_memory *mem = region->mem;
	int err;

	if (region->segment) {
		err = rmp_segment_insert(region->segment, region, &arg->offset);
		if (err == -EEXIST)
			arg->error.reason = RMPOOL_REASON_OFFSET_TAKEN;
		else if (err == -EINVAL)
			arg->error.reason = RMPOOL_REASON_RANGE_WRAPS;
		if (err) {
			arg->error.need = arg->offset;
			return err == -ESTALE ? -ENOENT : err;
		}
	}

	down_write(&mem->lock);
	interval_tree_insert(&region->node, &mem->tree);
	WRITE_ONCE(region->handle, handle);
	/* Cannot fail: the place was reserved. */
	xa_store(&mem->handles, handle, region, GFP_KERNEL);
	up_write(&mem->lock);
	arg->handle = handle;
	return 0;
}

static int rmp_region_reserve(struct rmp_memory *mem, u32 *handle,
			      struct rmpool_error *error)
{
	int err;

	err = xa_alloc(&mem->handles, handle, NULL,
		       XA_LIMIT(1, RMP_REGIONS_MAX), GFP_KERNEL_ACCOUNT);
	if (err != -EBUSY)
		return err;
	error->reason = RMPOOL_REASON_REGIONS;
	error->limit = RMP_REGIONS_MAX;
	error->used = RMP_REGIONS_MAX;
	error->need = 1;
	return -ENOMEM;
}

int rmp_region_add(struct rmp_memory *mem, struct rmpool_region_add *arg,
		   struct rmp_segment *seg)
{
	struct rmpool_error *error = &arg->error;
	struct rmp_region *region;
	u32 handle;
	int err;

	memset(error, 0, sizeof(*error));
	err = rmp_region_check(arg, error);
	if (err)
		return err;

	err = rmp_region_reserve(mem, &handle, error);
	if (err)
		return err;
	region = rmp_region_create(mem, arg, seg, error);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto err_handle;
	}

	err = rmp_region_pin(region, error);
	if (!err)
		err = rmp_region_attach(region, error);
	if (!err)
		err = rmp_region_publish(region, handle, arg);
	if (err)
		goto err_region;
	return 0;

err_region:
	WRITE_ONCE(region->dead, true);
	/* When the caller sees the error, all is given back. */
	rmp_region_put_and_wait(region);
err_handle:
	xa_release(&mem->handles, handle);
	return err;
}

int rmp_region_del(struct rmp_memory *mem, u32 handle)
{
	struct rmp_revocation *rev = NULL;
	struct rmp_region *region;

	if (down_write_killable(&mem->lock))
		return -EINTR;
	/* A reserved handle reads as none and must stay reserved. */
	region = xa_load(&mem->handles, handle);
	if (region) {
		xa_erase(&mem->handles, handle);
		interval_tree_remove(&region->node, &mem->tree);
		WRITE_ONCE(region->dead, true);
	}
	up_write(&mem->lock);
	if (!region)
		return -ENOENT;

	if (region->segment)
		rev = rmp_segment_remove(region->segment, region);
	/* Peers that stay silent lose: their keys end with the MRs. */
	if (rev)
		rmp_revocation_wait(rev, rmp_revoke_wait(), true);
	return rmp_region_put_and_wait(region);
}

void rmp_memory_kill(struct rmp_memory *mem)
{
	struct rmp_region *region;
	unsigned long handle;

	xa_for_each(&mem->handles, handle, region) {
		WRITE_ONCE(region->dead, true);
		cond_resched();
	}
}

void rmp_region_del_all(struct rmp_memory *mem)
{
	unsigned long until = jiffies + rmp_revoke_wait();
	struct rmp_revocation *rev, *next;
	struct rmp_region *region;
	unsigned long handle, now;
	LIST_HEAD(revs);

	down_write(&mem->lock);
	mem->tree = RB_ROOT_CACHED;
	up_write(&mem->lock);

	/* The first region of a segment takes all of them out. */
	xa_for_each(&mem->handles, handle, region) {
		WRITE_ONCE(region->dead, true);
		rev = region->segment ?
		      rmp_segment_remove(region->segment, NULL) : NULL;
		if (rev)
			list_add_tail(&rev->node, &revs);
		cond_resched();
	}
	list_for_each_entry_safe(rev, next, &revs, node) {
		now = jiffies;
		rmp_revocation_wait(rev, time_before(now, until) ?
				    until - now : 0, false);
	}

	xa_for_each(&mem->handles, handle, region) {
		xa_erase(&mem->handles, handle);
		rmp_region_put(region);
		cond_resched();
	}
	wait_var_event(mem, !atomic_read(&mem->nr));
}

int rmp_memory_init(struct rmp_memory *mem, struct mm_struct *mm)
{
	init_rwsem(&mem->lock);
	mem->tree = RB_ROOT_CACHED;
	xa_init_flags(&mem->handles, XA_FLAGS_ALLOC1);
	atomic64_set(&mem->pinned_pages, 0);
	atomic_set(&mem->nr, 0);
	mmgrab(mm);
	mem->mm = mm;
	mem->pid = get_pid(task_tgid(current));
	mem->uid = current_uid();
	return 0;
}

void rmp_memory_destroy(struct rmp_memory *mem)
{
	WARN_ON(atomic_read(&mem->nr));
	xa_destroy(&mem->handles);
	put_pid(mem->pid);
	mmdrop(mem->mm);
}

struct rmp_region *rmp_region_find(struct rmp_memory *mem, u64 addr, u64 length,
				   u32 access)
{
	struct interval_tree_node *node;
	struct rmp_region *region;
	int err = -EFAULT;

	lockdep_assert_held(&mem->lock);
	if (addr > ULONG_MAX)
		return ERR_PTR(-EFAULT);

	/* One step, unless the owner registered the same bytes many times: up to a
	 * million then, which is too many for one who is killed.
	 */
	for (node = interval_tree_iter_first(&mem->tree, addr, addr); node;
	     node = interval_tree_iter_next(node, addr, addr)) {
		region = container_of(node, struct rmp_region, node);
		if (fatal_signal_pending(current))
			return ERR_PTR(-EINTR);
		cond_resched();
		if (READ_ONCE(region->dead))
			continue;
		if (length > region->length - (addr - region->addr)) {
			if (err == -EFAULT)
				err = -ERANGE;
			continue;
		}
		if (access & ~region->access) {
			err = -EACCES;
			continue;
		}
		kref_get(&region->ref);
		return region;
	}
	return ERR_PTR(err);
}

int rmp_region_walk(u64 from, int (*fn)(struct rmp_region *region, void *arg),
		    void *arg)
{
	struct rmp_region *region;
	unsigned long id = from;
	int ret = 0;

	for (; !ret && (region = rmp_region_next(&id)); id++) {
		/* Without a handle it is still being made. */
		if (READ_ONCE(region->handle))
			ret = fn(region, arg);
		rmp_region_put(region);
		cond_resched();
	}
	return ret;
}

int rmp_region_init(void)
{
	rmp_release_wq = alloc_workqueue("rmpool_release", WQ_UNBOUND, 0);
	return rmp_release_wq ? 0 : -ENOMEM;
}

void rmp_region_exit(void)
{
	/* Empties it; the files are closed, so nothing comes any more. */
	destroy_workqueue(rmp_release_wq);
	WARN_ON(!xa_empty(&rmp_regions));
}
