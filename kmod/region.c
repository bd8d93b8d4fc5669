// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: pinned ranges of a process's memory, registered on every device.
 *
 * A region is made whole or not at all: charged, watched (watch.c), its kind
 * looked at (kind.c), pinned, mapped on each device (attach.c), put in its segment, and
 * last made findable in its file. When the owner lets go of its pages it becomes
 * stale: it stays, with its pages, until it is unregistered, but nothing more is
 * moved. Of a dma-buf, the pages are its exporter's, who pins them (dmabuf.c). It
 * ends the other way round: not found any more, taken out of its segment, its keys
 * revoked at the peers (memory.c has how that begins), and, when the last reference is
 * gone, unmapped (which waits until no device can reach it), unpinned and uncharged.
 *
 * What cache.c has made for requests are regions as well, which their owner cannot name.
 *
 * Lifetime: one reference belongs to the file (from the moment the region is
 * findable; to rmp_region_add() before), one to each request in flight, short
 * ones to walkers, and one to a revocation (revocation.c) that peers have not
 * answered yet. The last may be dropped in any context: it queues
 * rmp_region_release() on a queue of its own, so that it is never behind work
 * items that wait for it. A region holds its segment and may use its
 * struct rmp_memory, which outlives its regions.
 *
 * Locking: rmp_memory.lock guards the tree and the handles of a file. A handle
 * is reserved before and filled under it. The table of all regions is read under
 * RCU, taking a reference if there is one to take.
 *
 * Everything here may meet 100,000 regions of a file and more: no step is
 * longer than a few regions without a chance to reschedule.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>
#include "attach.h"
#include "dmabuf.h"
#include "pin.h"
#include "region.h"
#include "segment.h"
#include "watch.h"

/* Ids are indexes of an xarray. */
static_assert(sizeof(unsigned long) == sizeof(u64));

static unsigned int rmp_max_regions = RMP_REGIONS_MAX;
module_param_named(max_regions, rmp_max_regions, uint, 0644);
MODULE_PARM_DESC(max_regions, "most regions of one open file, up to 1048576 (default 1048576)");

/* All regions of the node, by id. */
static DEFINE_XARRAY(rmp_regions);
static atomic64_t rmp_last_id;

static struct workqueue_struct *rmp_release_wq;
static const struct rmp_region_ops *rmp_region_ops;

/* The last reference is gone: nobody posts to it or looks at it. */
static void rmp_region_release(struct work_struct *work)
{
	struct rmp_region *region = container_of(work, struct rmp_region,
						 release);
	struct rmp_memory *mem = region->mem;

	rmp_watch_end(region);
	rmp_region_detach(region);
	/* Rather lose memory than let a device write into someone else's. */
	if (!region->stuck) {
		rmp_unpin(region->pages, region->nr_pinned,
			  region->access & (RMPOOL_ACCESS_LOCAL_WRITE |
					    RMPOOL_ACCESS_REMOTE_WRITE));
		rmp_dmabuf_put(region);
		vfree(region->own);
	}
	kvfree(region->pages);
	if (!region->own) {
		rmp_uncharge(mem, region->nr_pages, !region->dmabuf);
		atomic64_sub(region->nr_pages, &mem->pinned_pages);
	}
	if (region->segment)
		rmp_segment_put(region->segment);
	rmp_cache_released(region);

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

int rmp_region_wait_gone(struct rmp_memory *mem, u64 id)
{
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

	err = rmp_kind_check(region->addr, region->length, write, error);
	if (err)
		return err;

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
	bool dmabuf = arg->flags & RMPOOL_REGION_DMABUF;
	u64 end;

	if (arg->access & ~RMPOOL_ACCESS_ALL ||
	    arg->flags & ~(RMPOOL_REGION_STRICT_ORDER | RMPOOL_REGION_DMABUF) ||
	    (!dmabuf && (arg->dmabuf_fd || arg->dmabuf_offset)))
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
	/* Of a buffer, it is a name. */
	if (!dmabuf && end > TASK_SIZE) {
		error->reason = RMPOOL_REASON_UNMAPPED;
		error->need = max_t(u64, arg->addr, TASK_SIZE);
		return -EFAULT;
	}
	return 0;
}

/* Nothing yet but an id, which is not in the table; the reference is the caller's. */
static struct rmp_region *rmp_region_new(struct rmp_memory *mem)
{
	struct rmp_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);

	if (!region)
		return NULL;
	kref_init(&region->ref);
	INIT_WORK(&region->release, rmp_region_release);
	INIT_LIST_HEAD(&region->revoke_node);
	INIT_LIST_HEAD(&region->cache_node);
	region->id = atomic64_inc_return(&rmp_last_id);
	region->mem = mem;
	return region;
}

/* Charged, and known by id; the reference is the caller's. */
static struct rmp_region *rmp_region_create(struct rmp_memory *mem,
					    const struct rmpool_region_add *arg,
					    struct rmp_segment *seg,
					    struct rmpool_error *error)
{
	struct rmp_region *region;
	int err;

	region = rmp_region_new(mem);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->addr = arg->addr;
	region->length = arg->length;
	region->access = arg->access;
	region->strict = arg->flags & RMPOOL_REGION_STRICT_ORDER;
	if (region->access & RMPOOL_ACCESS_REMOTE_WRITE)
		region->access |= RMPOOL_ACCESS_LOCAL_WRITE;
	region->node.start = arg->addr;
	region->node.last = arg->addr + arg->length - 1;

	region->start = arg->addr;
	if (arg->flags & RMPOOL_REGION_DMABUF) {
		region->start = arg->dmabuf_offset;
		err = rmp_dmabuf_get(region, arg, error);
		if (err)
			goto err_free;
	}
	region->nr_pages = (offset_in_page(region->start) + arg->length +
			    PAGE_SIZE - 1) >> PAGE_SHIFT;

	err = rmp_charge(mem, region->nr_pages, !region->dmabuf, error);
	if (err)
		goto err_dmabuf;
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
	rmp_uncharge(mem, region->nr_pages, !region->dmabuf);
err_dmabuf:
	rmp_dmabuf_put(region);
err_free:
	kfree(region);
	return ERR_PTR(err);
}

/* Into its segment, when it is mapped for all groups that have that open. */
static int rmp_region_insert(struct rmp_region *region, u64 *offset)
{
	struct rmp_segment *segment = region->segment;
	bool any = false;
	u32 missing;
	int err;

	do {
		missing = READ_ONCE(segment->groups) & ~region->groups;
		err = rmp_region_reach_many(region, missing, &any);
		if (err)
			return err;
		region->groups |= missing;
		err = rmp_segment_insert(segment, region, offset);
	} while (err == -EAGAIN);
	return err;
}

/* Peers learn of it, then requests find it. The handle is reserved already. */
static int rmp_region_publish(struct rmp_region *region, u32 handle,
			      struct rmpool_region_add *arg)
{
	struct rmp_memory *mem = region->mem;
	int err;

	if (region->segment) {
		err = rmp_region_insert(region, &arg->offset);
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
	if (!region->cached)
		interval_tree_insert(&region->node, &mem->tree);
	WRITE_ONCE(region->handle, handle);
	/* Cannot fail: the place was reserved. */
	xa_store(&mem->handles, handle, region, GFP_KERNEL);
	up_write(&mem->lock);
	arg->handle = handle;
	return 0;
}

u32 rmp_regions_max(void)
{
	return clamp(READ_ONCE(rmp_max_regions), 1U, (u32)RMP_REGIONS_MAX);
}

static int rmp_region_reserve(struct rmp_memory *mem, u32 *handle,
			      struct rmpool_error *error)
{
	u32 max = rmp_regions_max();
	int err;

	err = xa_alloc(&mem->handles, handle, NULL, XA_LIMIT(1, max),
		       GFP_KERNEL_ACCOUNT);
	if (err != -EBUSY)
		return err;
	error->reason = RMPOOL_REASON_REGIONS;
	error->limit = max;
	error->used = max;
	error->need = 1;
	return -ENOMEM;
}

/* All of it, or nothing. The file has the reference on what it returns. */
static struct rmp_region *rmp_region_make(struct rmp_memory *mem,
					  struct rmpool_region_add *arg,
					  struct rmp_segment *seg, bool cached)
{
	struct rmpool_error *error = &arg->error;
	struct rmp_region *region;
	u32 handle;
	u64 id;
	int err;

	memset(error, 0, sizeof(*error));
	err = rmp_region_check(arg, error);
	if (err)
		return ERR_PTR(err);

	err = rmp_region_reserve(mem, &handle, error);
	if (err)
		return ERR_PTR(err);
	region = rmp_region_create(mem, arg, seg, error);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto err_handle;
	}
	region->cached = cached;

	err = rmp_watch_begin(region);
	if (!err && !region->dmabuf)
		err = rmp_region_pin(region, error);
	if (!err)
		rmp_watch_pinned(region);
	if (!err)
		err = rmp_region_attach(region, error);
	if (!err)
		err = rmp_region_publish(region, handle, arg);
	if (err)
		goto err_region;
	return region;

err_region:
	WRITE_ONCE(region->dead, true);
	/* When the caller sees the error, all is given back. */
	id = region->id;
	rmp_region_put(region);
	rmp_region_wait_gone(mem, id);
err_handle:
	xa_release(&mem->handles, handle);
	return ERR_PTR(err);
}

int rmp_region_add(struct rmp_memory *mem, struct rmpool_region_add *arg,
		   struct rmp_segment *seg)
{
	return PTR_ERR_OR_ZERO(rmp_region_make(mem, arg, seg, false));
}

struct rmp_region *rmp_region_add_cached(struct rmp_memory *mem,
					 struct rmpool_region_add *arg)
{
	return rmp_region_make(mem, arg, NULL, true);
}

/* Not findable, so without a handle: nothing but its id refers to it. */
struct rmp_region *rmp_region_add_own(struct rmp_memory *mem, void *base,
				      u64 length)
{
	struct rmpool_error ignored = {};
	struct rmp_region *region;
	unsigned long i;
	int err;

	region = rmp_region_new(mem);
	if (!region) {
		vfree(base);
		return ERR_PTR(-ENOMEM);
	}
	INIT_LIST_HEAD(&region->watch_node);
	region->own = base;
	region->length = length;
	region->access = RMPOOL_ACCESS_LOCAL_WRITE;
	region->nr_pages = length >> PAGE_SHIFT;
	atomic_inc(&mem->nr);

	region->pages = kvmalloc_array(region->nr_pages, sizeof(struct page *),
				       GFP_KERNEL);
	for (i = 0; region->pages && i < region->nr_pages; i++)
		region->pages[i] = vmalloc_to_page(base + (i << PAGE_SHIFT));
	err = region->pages ? xa_insert(&rmp_regions, region->id, region, GFP_KERNEL) :
			      -ENOMEM;
	if (!err)
		err = rmp_region_attach(region, &ignored);
	if (!err)
		return region;
	rmp_region_del_own(region);
	return ERR_PTR(err);
}

void rmp_region_del_own(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;

	WRITE_ONCE(region->dead, true);
	rmp_region_put(region);
	wait_var_event(mem, !atomic_read(&mem->nr));
}

u32 rmp_region_percent(const struct rmp_region *region)
{
	u64 todo = READ_ONCE(region->chunks_todo);
	u64 done = atomic64_read(&region->chunks_done);
	u64 pinned = READ_ONCE(region->nr_pinned);

	/* Without a handle it is still being made. */
	if (READ_ONCE(region->handle))
		return 100;
	return (region->dmabuf ? 50 : pinned * 50 / region->nr_pages) +
	       (todo ? min(done, todo) * 49 / todo : 0);
}

int rmp_region_walk(u64 from, int (*fn)(struct rmp_region *region, void *arg),
		    void *arg)
{
	struct rmp_region *region;
	unsigned long id = from;
	int ret = 0;

	for (; !ret && (region = rmp_region_next(&id)); id++) {
		if (!region->own)
			ret = fn(region, arg);
		rmp_region_put(region);
		cond_resched();
	}
	return ret;
}

void rmp_region_settled(struct rmp_region *region)
{
	bool stale = rmp_region_stale(region);

	if (stale && region->segment && !READ_ONCE(region->dead))
		rmp_segment_changed(region->segment, region);
	if (region->cached)
		rmp_cache_settled(region);
	/* The owner's pages stay; a buffer that is taken back does not. */
	if (stale && region->dmabuf)
		rmp_region_lost(region);
}

void rmp_regions_settled(void)
{
	rmp_region_ops->settled();
}

int rmp_region_init(const struct rmp_region_ops *ops)
{
	rmp_region_ops = ops;
	rmp_release_wq = alloc_workqueue("rmpool_release", WQ_UNBOUND, 0);
	return rmp_release_wq ? 0 : -ENOMEM;
}

void rmp_region_exit(void)
{
	/* Empties it; the files are closed, so nothing comes any more. */
	destroy_workqueue(rmp_release_wq);
	WARN_ON(!xa_empty(&rmp_regions));
}
