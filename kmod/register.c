// SPDX-License-Identifier: GPL-2.0
/*
 * Registering and unregistering for the owner of a file: one region, or many with
 * one call.
 *
 * Many regions are registered one after the other, each with a result of its own
 * in the caller's array. An element is read once, and written back once; what was
 * registered and cannot be told is undone. They are unregistered by steps: what
 * is queued is ended, and peers and devices are waited for, once for each step.
 * Peers have a limit on revocations that they did not answer yet, so a step is far
 * below it. One that was silent in a step gets no time in the next ones (revoke.c).
 *
 * Context: process context of the owner. Locking: file->handles for the tables of
 * segments, file->mem.lock for those of regions; none is held while waiting.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "register.h"
#include "segment.h"
#include "transfer.h"

/* Regions unregistered at once. */
#define RMP_DEL_STEP		256U

static int register_one(struct rmp_file *file, struct rmpool_region_add *add)
{
	struct rmp_segment *segment = NULL;
	int ret;

	add->handle = 0;
	memset(&add->error, 0, sizeof(add->error));
	if (add->access & ~RMPOOL_ACCESS_ALL)
		return -EINVAL;
	if (add->segment) {
		down_read(&file->handles);
		segment = xa_load(&file->segments, add->segment);
		if (segment)
			kref_get(&segment->ref);
		up_read(&file->handles);
		if (!segment)
			return -ENOENT;
	} else if (add->offset) {
		return -EINVAL;
	}
	/* What is only kept for later must not stand in the way of it. */
	do
		ret = rmp_region_add(&file->mem, add, segment);
	while (ret == -ENOMEM && add->error.need <= add->error.limit &&
	       rmp_cache_reclaim(&file->mem, add->length));
	if (segment)
		rmp_segment_put(segment);
	return ret;
}

int rmp_register(struct rmp_file *file, struct rmpool_region_add *add)
{
	add->status = register_one(file, add);
	return add->status;
}

/* One element of the caller's array; 0 when it was tried and that was told. */
static int register_at(struct rmp_file *file, void __user *at, u32 usize,
		       bool *failed)
{
	struct rmpool_region_add add = {};
	int ret;

	ret = copy_struct_from_user(&add, sizeof(add), at, usize);
	if (ret)
		return ret;
	ret = rmp_register(file, &add);
	/* Not tried: it is met again by a call for the rest. */
	if (ret == -EINTR)
		return ret;
	if (copy_to_user(at, &add, min_t(u32, sizeof(add), usize))) {
		if (!ret)
			rmp_unregister(file, add.handle);
		return -EFAULT;
	}
	*failed = ret;
	return 0;
}

int rmp_register_many(struct rmp_file *file, struct rmpool_region_add_many *arg)
{
	bool failed;
	int ret;

	arg->tried = 0;
	arg->failed = 0;
	memset(&arg->error, 0, sizeof(arg->error));
	if (arg->flags || arg->reserved || arg->size < RMP_REGION_ADD_MIN)
		return -EINVAL;
	/* No structure is larger: bytes to be looked at for being zero. */
	if (arg->size > PAGE_SIZE)
		return -E2BIG;
	ret = rmp_transfer_check_nr(arg->nr, &arg->error);
	while (!ret && arg->tried < arg->nr) {
		ret = register_at(file, u64_to_user_ptr(arg->regions +
							(u64)arg->tried *
							arg->size),
				  arg->size, &failed);
		if (!ret) {
			arg->tried++;
			arg->failed += failed;
		}
		cond_resched();
	}
	/* What stopped it half-way is met again by a call for the rest. */
	return arg->tried ? 0 : ret;
}

/* No new request from here on: it would be waited for, and end perhaps only at its
 * deadline.
 */
static void end_requests(struct rmp_file *file, const struct rmp_region_del *dels,
			 u32 nr)
{
	struct rmp_region *region;
	bool any = false;
	u32 i;

	down_read(&file->mem.lock);
	for (i = 0; i < nr; i++) {
		region = xa_load(&file->mem.handles, dels[i].handle);
		if (region && !region->cached) {
			WRITE_ONCE(region->dead, true);
			any = true;
		}
	}
	up_read(&file->mem.lock);
	if (any)
		rmp_transfer_cancel_dead(file);
}

int rmp_unregister(struct rmp_file *file, u32 handle)
{
	const struct rmp_region_del del = { .handle = handle };

	end_requests(file, &del, 1);
	return rmp_region_del(&file->mem, handle);
}

/* The next step of many. */
static int unregister_step(struct rmp_file *file,
			   struct rmpool_region_del_many *arg,
			   struct rmp_region_del *dels)
{
	u32 nr = min(arg->nr - arg->tried, RMP_DEL_STEP), at = arg->tried, i;
	u32 __user *handles = u64_to_user_ptr(arg->handles);
	s32 __user *status = u64_to_user_ptr(arg->status);
	int ret;

	for (i = 0; i < nr; i++) {
		if (get_user(dels[i].handle, handles + at + i))
			return -EFAULT;
	}
	end_requests(file, dels, nr);
	ret = rmp_region_del_many(&file->mem, dels, nr);
	if (ret)
		return ret;
	arg->tried += nr;
	for (i = 0; i < nr; i++) {
		arg->failed += !!dels[i].status;
		if (status && put_user(dels[i].status, status + at + i))
			ret = -EFAULT;
	}
	return ret;
}

int rmp_unregister_many(struct rmp_file *file,
			struct rmpool_region_del_many *arg)
{
	struct rmp_region_del *dels;
	int ret;

	arg->tried = 0;
	arg->failed = 0;
	memset(&arg->error, 0, sizeof(arg->error));
	if (arg->flags)
		return -EINVAL;
	ret = rmp_transfer_check_nr(arg->nr, &arg->error);
	if (ret)
		return ret;
	dels = kmalloc_array(RMP_DEL_STEP, sizeof(*dels), GFP_KERNEL);
	if (!dels)
		return -ENOMEM;
	while (!ret && arg->tried < arg->nr) {
		ret = unregister_step(file, arg, dels);
		cond_resched();
	}
	kfree(dels);
	return ret;
}
