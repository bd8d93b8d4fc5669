// SPDX-License-Identifier: GPL-2.0
/*
 * The regions of one open file: how requests find them, how their owner unregisters
 * them, and how all go when the file ends. How one is made and ends: region.c.
 *
 * Who unregisters a region takes it out, and gives the reference of the file back; the rest
 * happens by itself, and is only waited for: if he is killed, all of it happens as well.
 *
 * Locking: rmp_memory.lock guards the tree and the handles. Look-ups hold it for reading.
 * It is not held while peers, devices or requests are waited for.
 *
 * Lifetime: that of the file, which outlives its regions: rmp_memory_destroy() comes when
 * the last one is gone.
 *
 * Context: process, sleeps. Everything here may meet 100,000 regions of a file and more:
 * no step is longer than a few regions without a chance to reschedule.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>
#include "pin.h"
#include "region.h"
#include "segment.h"
#include "watch.h"

int rmp_memory_init(struct rmp_memory *mem, struct mm_struct *mm)
{
	init_rwsem(&mem->lock);
	mem->tree = RB_ROOT_CACHED;
	xa_init_flags(&mem->handles, XA_FLAGS_ALLOC1);
	atomic64_set(&mem->pinned_pages, 0);
	atomic_set(&mem->nr, 0);
	rmp_cache_init(&mem->cache);
	rmp_watch_init(mem);
	mem->uid = current_uid();
	mem->user = rmp_user_get(mem->uid);
	if (!mem->user)
		return -ENOMEM;
	mmgrab(mm);
	mem->mm = mm;
	mem->pid = get_pid(task_tgid(current));
	return 0;
}

void rmp_memory_destroy(struct rmp_memory *mem)
{
	WARN_ON(atomic_read(&mem->nr));
	rmp_watch_exit(mem);
	rmp_cache_exit(&mem->cache);
	xa_destroy(&mem->handles);
	put_pid(mem->pid);
	rmp_user_put(mem->user);
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
			if (err != -ESTALE)
				err = -EACCES;
			continue;
		}
		if (rmp_region_stale(region)) {
			err = -ESTALE;
			continue;
		}
		kref_get(&region->ref);
		return region;
	}
	return ERR_PTR(err);
}

void rmp_region_forget(struct rmp_region *region)
{
	struct rmp_memory *mem = region->mem;

	down_write(&mem->lock);
	xa_erase(&mem->handles, region->handle);
	up_write(&mem->lock);
	rmp_region_put(region);
}

/* Not found any more; the reference of the file is the caller's. */
static struct rmp_region *rmp_region_take(struct rmp_memory *mem, u32 handle)
{
	struct rmp_region *region;

	lockdep_assert_held_write(&mem->lock);
	/* A reserved handle reads as none and must stay reserved. */
	region = xa_load(&mem->handles, handle);
	if (!region || region->cached)
		return NULL;
	xa_erase(&mem->handles, handle);
	interval_tree_remove(&region->node, &mem->tree);
	WRITE_ONCE(region->dead, true);
	return region;
}

int rmp_region_del_many(struct rmp_memory *mem, struct rmp_region_del *dels,
			u32 nr)
{
	struct rmp_region_del *del;
	int err = 0;

	if (down_write_killable(&mem->lock))
		return -EINTR;
	for (del = dels; del < dels + nr; del++) {
		del->region = rmp_region_take(mem, del->handle);
		del->status = del->region ? 0 : -ENOENT;
	}
	up_write(&mem->lock);

	for (del = dels; del < dels + nr; del++) {
		if (!del->region)
			continue;
		del->id = del->region->id;
		/* Peers that have keys keep it for a while. */
		if (del->region->segment)
			rmp_segment_remove(del->region->segment, del->region);
		rmp_region_put(del->region);
		cond_resched();
	}
	for (del = dels; del < dels + nr && !err; del++) {
		if (del->region)
			err = rmp_region_wait_gone(mem, del->id);
	}
	return err;
}

int rmp_region_del(struct rmp_memory *mem, u32 handle)
{
	struct rmp_region_del del = { .handle = handle };
	int err = rmp_region_del_many(mem, &del, 1);

	return err ?: del.status;
}

void rmp_memory_kill(struct rmp_memory *mem)
{
	struct rmp_region *region;
	unsigned long handle;

	/* So that none is taken off the table, which would end it, meanwhile. */
	rmp_cache_end(mem);
	xa_for_each(&mem->handles, handle, region) {
		WRITE_ONCE(region->dead, true);
		cond_resched();
	}
}

void rmp_region_del_all(struct rmp_memory *mem)
{
	struct rmp_revocation *rev, *next;
	struct rmp_region *region;
	unsigned long handle;
	LIST_HEAD(revs);

	down_write(&mem->lock);
	mem->tree = RB_ROOT_CACHED;
	up_write(&mem->lock);

	/* The first region of a segment finds what to wait for, for all of them. */
	xa_for_each(&mem->handles, handle, region) {
		WRITE_ONCE(region->dead, true);
		rev = region->segment ?
		      rmp_segment_ending(region->segment) : NULL;
		if (rev)
			list_add_tail(&rev->node, &revs);
		cond_resched();
	}
	list_for_each_entry_safe(rev, next, &revs, node)
		rmp_revocation_wait(rev, false);

	xa_for_each(&mem->handles, handle, region) {
		xa_erase(&mem->handles, handle);
		rmp_region_put(region);
		cond_resched();
	}
	wait_var_event(mem, !atomic_read(&mem->nr));
}
