// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/rmpool: open, ioctl, mmap, poll, release.
 *
 * An open file belongs to the address space that opened it: all ioctls but INFO
 * are refused to others, since they would use that memory or its handles. The
 * device may be used from any network namespace; sockets and RDMA stay in the
 * initial one.
 *
 * The file must be opened for reading and writing: one may do everything with it
 * or nothing, so whoever has less than both rights to the node has none.
 *
 * Each ioctl has one structure, which may grow at its end: it is read by the
 * rules of copy_struct_from_user() with the size that the caller's command has,
 * which is not less than that of the first version, handled, and written back
 * whether it succeeded or not. When a call made something whose handle cannot be
 * told, it is undone.
 *
 * Locking: file->handles (rwsem) guards the tables of segments. Lifetime: file.c.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "allow.h"
#include "chardev.h"
#include "pin.h"
#include "register.h"
#include "ring.h"
#include "segment.h"
#include "transfer.h"

static int rmp_open(struct inode *inode, struct file *filp)
{
	const fmode_t both = FMODE_READ | FMODE_WRITE;
	struct rmp_file *file;

	if ((filp->f_mode & both) != both)
		return -EACCES;
	if (!current->mm)	/* a kernel thread */
		return -EPERM;
	file = rmp_file_make();
	if (IS_ERR(file))
		return PTR_ERR(file);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int rmp_release(struct inode *inode, struct file *filp)
{
	struct rmp_file *file = filp->private_data;

	rmp_file_end(file);
	rmp_file_put(file);
	return 0;
}

/* --------------------------------------------------------------------- ioctls */

static int ioc_info(struct rmp_file *file, void *arg)
{
	struct rmpool_info *info = arg;
	struct rmp_staging_stats staging;
	struct rmp_cache_stats cache;
	struct rmp_pinned pinned;
	struct rmp_device *dev;
	struct rmp_port port;
	u32 i;

	memset(info, 0, sizeof(*info));
	info->abi_version = RMPOOL_ABI_VERSION;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		dev = rmp_device_get(i);
		if (!dev)
			continue;
		info->nr_devices += !rmp_device_usable_port(dev, &port);
		rmp_device_put(dev);
	}
	info->nr_peers = rmp_peer_count();
	info->batch_max = RMPOOL_BATCH_MAX;
	info->ring_max = RMPOOL_RING_MAX;
	info->regions_max = rmp_regions_max();
	info->segments_max = RMP_SEGMENTS_MAX;
	info->opens_max = RMP_OPENS_MAX;
	info->pinned = (u64)atomic64_read(&file->mem.pinned_pages) << PAGE_SHIFT;
	info->memlock = rlimit(RLIMIT_MEMLOCK);
	if (info->memlock == RLIM_INFINITY || capable(CAP_IPC_LOCK))
		info->memlock = U64_MAX;
	rmp_pinned_get(&file->mem, &pinned);
	info->user_pinned = pinned.user;
	info->user_limit = pinned.user_limit;
	info->node_pinned = pinned.node;
	info->node_limit = pinned.node_limit;
	rmp_cache_stats(&file->mem, &cache);
	info->cache_limit = cache.limit;
	info->cache_bytes = cache.bytes;
	info->cache_hits = cache.counts[RMP_CACHE_HITS];
	info->cache_misses = cache.counts[RMP_CACHE_MISSES];
	info->cache_evictions = cache.counts[RMP_CACHE_EVICTIONS];
	info->cache_invalidations = cache.counts[RMP_CACHE_INVALIDATIONS];
	rmp_staging_stats(&file->mem, &staging);
	info->staging_limit = staging.limit;
	info->staging_requests = staging.counts[RMP_STAGING_REQUESTS];
	info->staging_bytes = staging.counts[RMP_STAGING_BYTES];
	info->staging_fallbacks = staging.counts[RMP_STAGING_FALLBACKS];
	memcpy(info->uuid, &rmp_uuid, sizeof(info->uuid));
	rmp_node_name(info->node_name);
	strscpy(info->module_version, RMPOOL_VERSION,
		sizeof(info->module_version));
	return 0;
}

static int ioc_ring_setup(struct rmp_file *file, void *arg)
{
	struct rmpool_ring_setup *setup = arg;
	struct rmp_ring *ring;
	int ret = 0;

	memset(&setup->error, 0, sizeof(setup->error));
	if (setup->flags || setup->eventfd < -1)
		return -EINVAL;
	mutex_lock(&file->setup);
	if (file->ring) {
		ret = -EBUSY;
		goto out;
	}
	ring = rmp_ring_create(setup);
	if (IS_ERR(ring))
		ret = PTR_ERR(ring);
	else
		/* Pairs with the acquire loads of those who use it. */
		smp_store_release(&file->ring, ring);
out:
	mutex_unlock(&file->setup);
	return ret;
}

/* A handle for @entry, from 1; all or nothing. */
static int handle_alloc(struct rmp_file *file, struct xarray *table, void *entry,
			u32 max, u32 reason, u32 *handle,
			struct rmpool_error *error)
{
	int ret;

	down_write(&file->handles);
	ret = xa_alloc(table, handle, entry, XA_LIMIT(1, max),
		       GFP_KERNEL_ACCOUNT);
	up_write(&file->handles);
	if (ret == -EBUSY) {
		error->reason = reason;
		error->limit = max;
		error->used = max;
		error->need = 1;
		ret = -EMFILE;
	}
	return ret;
}

static void *handle_take(struct rmp_file *file, struct xarray *table,
			 u32 handle)
{
	void *entry;

	down_write(&file->handles);
	entry = xa_erase(table, handle);
	up_write(&file->handles);
	return entry ?: ERR_PTR(-ENOENT);
}

static int ioc_segment_create(struct rmp_file *file, void *arg)
{
	struct rmpool_segment_create *create = arg;
	struct rmp_segment *segment;
	int ret;

	create->handle = 0;
	memset(&create->error, 0, sizeof(create->error));
	if (create->flags)
		return -EINVAL;
	if (!rmp_name_valid(create->name)) {
		create->error.reason = RMPOOL_REASON_NAME_BAD;
		return -EINVAL;
	}
	segment = rmp_segment_create(create->name);
	if (segment == ERR_PTR(-EEXIST))
		create->error.reason = RMPOOL_REASON_NAME_TAKEN;
	if (IS_ERR(segment))
		return PTR_ERR(segment);
	ret = handle_alloc(file, &file->segments, segment, RMP_SEGMENTS_MAX,
			   RMPOOL_REASON_SEGMENTS, &create->handle,
			   &create->error);
	if (ret) {
		struct rmp_revocation *rev = rmp_segment_delete(segment);

		if (rev)
			rmp_revocation_put(rev);
		rmp_segment_put(segment);
	}
	return ret;
}

static int segment_delete(struct rmp_file *file, u32 handle)
{
	struct rmp_revocation *rev;
	struct rmp_segment *segment;

	segment = handle_take(file, &file->segments, handle);
	if (IS_ERR(segment))
		return PTR_ERR(segment);
	rev = rmp_segment_delete(segment);
	if (rev)
		rmp_revocation_wait(rev, true);
	rmp_segment_put(segment);
	return 0;
}

static int ioc_segment_delete(struct rmp_file *file, void *arg)
{
	struct rmpool_handle *h = arg;

	return h->flags ? -EINVAL : segment_delete(file, h->handle);
}

static int ioc_segment_allow(struct rmp_file *file, void *arg)
{
	return rmp_allow(file, arg);
}

static void undo_segment_create(struct rmp_file *file, const void *arg)
{
	const struct rmpool_segment_create *create = arg;

	segment_delete(file, create->handle);
}

static int ioc_region_add(struct rmp_file *file, void *arg)
{
	return rmp_register(file, arg);
}

static int ioc_region_add_many(struct rmp_file *file, void *arg)
{
	return rmp_register_many(file, arg);
}

static void undo_region_add(struct rmp_file *file, const void *arg)
{
	const struct rmpool_region_add *add = arg;

	rmp_unregister(file, add->handle);
}

static int ioc_region_del(struct rmp_file *file, void *arg)
{
	struct rmpool_handle *h = arg;

	return h->flags ? -EINVAL : rmp_unregister(file, h->handle);
}

static int ioc_region_del_many(struct rmp_file *file, void *arg)
{
	return rmp_unregister_many(file, arg);
}

static int ioc_segment_open(struct rmp_file *file, void *arg)
{
	struct rmpool_segment_open *open = arg;
	struct rmp_rseg *rseg;
	long timeout = MAX_SCHEDULE_TIMEOUT;
	u64 at = 0;
	int ret;

	open->handle = 0;
	memset(&open->error, 0, sizeof(open->error));
	if (open->flags || open->reserved)
		return -EINVAL;
	if (open->timeout_ns >= 0)
		timeout = min_t(u64, nsecs_to_jiffies64(open->timeout_ns),
				MAX_JIFFY_OFFSET);
	ret = rmp_rseg_open(open->node, open->name, timeout, &rseg,
			    &open->error);
	if (ret)
		return ret;
	rmp_rseg_list(rseg, &at, 0, NULL, 0, &open->nr_regions, &open->size,
		      &open->generation);
	ret = handle_alloc(file, &file->opens, rseg, RMP_OPENS_MAX,
			   RMPOOL_REASON_OPENS, &open->handle, &open->error);
	if (ret)
		rmp_rseg_put(rseg);
	return ret;
}

static int segment_close(struct rmp_file *file, u32 handle)
{
	struct rmp_rseg *rseg;

	rseg = handle_take(file, &file->opens, handle);
	if (IS_ERR(rseg))
		return PTR_ERR(rseg);
	rmp_rseg_put(rseg);
	return 0;
}

static int ioc_segment_close(struct rmp_file *file, void *arg)
{
	struct rmpool_handle *h = arg;

	return h->flags ? -EINVAL : segment_close(file, h->handle);
}

static void undo_segment_open(struct rmp_file *file, const void *arg)
{
	const struct rmpool_segment_open *open = arg;

	segment_close(file, open->handle);
}

/* Descriptors copied out at once. */
#define RMP_LIST_BLOCK	128

static int ioc_segment_list(struct rmp_file *file, void *arg)
{
	struct rmpool_segment_list *list = arg;
	struct rmpool_region_desc __user *to = u64_to_user_ptr(list->regions);
	u32 room = list->nr, n, done = 0, first = list->first, total;
	struct rmpool_region_desc *desc;
	struct rmp_rseg *rseg;
	u64 size, generation, at = 0;
	int ret = 0;

	list->nr = 0;
	if (list->flags || list->reserved)
		return -EINVAL;
	desc = kmalloc_array(RMP_LIST_BLOCK, sizeof(*desc), GFP_KERNEL);
	if (!desc)
		return -ENOMEM;
	down_read(&file->handles);
	rseg = xa_load(&file->opens, list->handle);
	if (rseg)
		rmp_rseg_get(rseg);
	up_read(&file->handles);
	if (!rseg) {
		kfree(desc);
		return -ENOENT;
	}
	do {
		n = rmp_rseg_list(rseg, &at, first, desc,
				  min_t(u32, room - done, RMP_LIST_BLOCK),
				  &total, &size, &generation);
		/* Others since: the caller sees that when it asks for the rest. */
		if (done && generation != list->generation)
			break;
		list->total = total;
		list->generation = generation;
		/* The next block goes on from @at. */
		first = 0;
		if (copy_to_user(to + done, desc, n * sizeof(*desc))) {
			ret = -EFAULT;
			break;
		}
		done += n;
		cond_resched();
	} while (n && done < room && !signal_pending(current));
	list->nr = done;
	rmp_rseg_put(rseg);
	kfree(desc);
	return ret;
}

static int ioc_submit(struct rmp_file *file, void *arg)
{
	struct rmpool_submit *submit = arg;

	memset(&submit->error, 0, sizeof(submit->error));
	return rmp_transfer_submit(file, submit);
}

static int ioc_submit_sync(struct rmp_file *file, void *arg)
{
	struct rmpool_submit_sync *submit = arg;

	memset(&submit->error, 0, sizeof(submit->error));
	return rmp_transfer_submit_sync(file, submit);
}

static int ioc_wait(struct rmp_file *file, void *arg)
{
	/* Pairs with the set-up of the ring. */
	struct rmp_ring *ring = smp_load_acquire(&file->ring);

	return ring ? rmp_ring_wait(ring, arg) : -ENXIO;
}

static int ioc_cancel(struct rmp_file *file, void *arg)
{
	return rmp_transfer_cancel(file, arg);
}

/* @min: size of the first version of the structure */
struct rmp_ioctl {
	u32 cmd;
	u32 min;
	int (*handle)(struct rmp_file *file, void *arg);
	void (*undo)(struct rmp_file *file, const void *arg);
};

#define RMP_IOCTL_MIN(name, min, fn, undo) \
	[_IOC_NR(RMPOOL_IOC_##name)] = { RMPOOL_IOC_##name, min, fn, undo }
#define RMP_IOCTL_UNDO(name, fn, undo) \
	RMP_IOCTL_MIN(name, _IOC_SIZE(RMPOOL_IOC_##name), fn, undo)
#define RMP_IOCTL(name, fn)	RMP_IOCTL_UNDO(name, fn, NULL)
/* It has grown since, and so has REGION_ADD's. */
#define RMP_INFO_MIN		offsetof(struct rmpool_info, user_pinned)

static const struct rmp_ioctl rmp_ioctls[] = {
	RMP_IOCTL_MIN(INFO, RMP_INFO_MIN, ioc_info, NULL),
	RMP_IOCTL(RING_SETUP, ioc_ring_setup),
	RMP_IOCTL_UNDO(SEGMENT_CREATE, ioc_segment_create, undo_segment_create),
	RMP_IOCTL(SEGMENT_DELETE, ioc_segment_delete),
	RMP_IOCTL_MIN(REGION_ADD, RMP_REGION_ADD_MIN, ioc_region_add,
		      undo_region_add),
	RMP_IOCTL(REGION_DEL, ioc_region_del),
	RMP_IOCTL_UNDO(SEGMENT_OPEN, ioc_segment_open, undo_segment_open),
	RMP_IOCTL(SEGMENT_CLOSE, ioc_segment_close),
	RMP_IOCTL(SEGMENT_LIST, ioc_segment_list),
	RMP_IOCTL(SUBMIT, ioc_submit),
	RMP_IOCTL(SUBMIT_SYNC, ioc_submit_sync),
	RMP_IOCTL(WAIT, ioc_wait),
	RMP_IOCTL(CANCEL, ioc_cancel),
	/* What these made or ended is told in the arrays. */
	RMP_IOCTL(REGION_ADD_MANY, ioc_region_add_many),
	RMP_IOCTL(REGION_DEL_MANY, ioc_region_del_many),
	RMP_IOCTL(SEGMENT_ALLOW, ioc_segment_allow),
};

/* Large enough for each of the structures. */
union rmp_ioctl_arg {
	struct rmpool_info info;
	struct rmpool_ring_setup ring_setup;
	struct rmpool_segment_create segment_create;
	struct rmpool_handle handle;
	struct rmpool_region_add region_add;
	struct rmpool_segment_open segment_open;
	struct rmpool_segment_list segment_list;
	struct rmpool_submit submit;
	struct rmpool_submit_sync submit_sync;
	struct rmpool_wait wait;
	struct rmpool_cancel cancel;
	struct rmpool_region_add_many region_add_many;
	struct rmpool_region_del_many region_del_many;
	struct rmpool_segment_allow segment_allow;
};

static long rmp_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	struct rmp_file *file = filp->private_data;
	void __user *uarg = (void __user *)user;
	unsigned int nr = _IOC_NR(cmd), usize = _IOC_SIZE(cmd), ksize;
	const struct rmp_ioctl *ioc;
	union rmp_ioctl_arg arg;
	int ret;

	if (_IOC_TYPE(cmd) != RMPOOL_IOC_MAGIC || nr >= ARRAY_SIZE(rmp_ioctls) ||
	    _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) || !usize)
		return -ENOTTY;
	ioc = &rmp_ioctls[array_index_nospec(nr, ARRAY_SIZE(rmp_ioctls))];
	if (ioc->handle != ioc_info && current->mm != file->mem.mm)
		return -EPERM;
	if (usize < ioc->min)
		return -EINVAL;
	ksize = _IOC_SIZE(ioc->cmd);
	memset(&arg, 0, sizeof(arg));
	ret = copy_struct_from_user(&arg, ksize, uarg, usize);
	if (ret)
		return ret;
	ret = ioc->handle(file, &arg);
	if (copy_to_user(uarg, &arg, min(ksize, usize))) {
		if (!ret && ioc->undo)
			ioc->undo(file, &arg);
		return -EFAULT;
	}
	return ret;
}

static int rmp_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct rmp_file *file = filp->private_data;
	/* Pairs with the set-up of the ring. */
	struct rmp_ring *ring = smp_load_acquire(&file->ring);

	if (current->mm != file->mem.mm)
		return -EPERM;
	return ring ? rmp_ring_mmap(ring, vma) : -ENXIO;
}

static __poll_t rmp_poll(struct file *filp, struct poll_table_struct *wait)
{
	struct rmp_file *file = filp->private_data;
	/* Pairs with the set-up of the ring. */
	struct rmp_ring *ring = smp_load_acquire(&file->ring);

	return ring ? rmp_ring_poll(ring, filp, wait) : EPOLLERR;
}

static const struct file_operations rmp_fops = {
	.owner = THIS_MODULE,
	.open = rmp_open,
	.release = rmp_release,
	.unlocked_ioctl = rmp_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = rmp_mmap,
	.poll = rmp_poll,
};

static struct miscdevice rmp_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rmpool",
	.fops = &rmp_fops,
	.mode = 0600,		/* udev gives it to the group */
};

int rmp_chardev_init(void)
{
	int ret;

	ret = rmp_files_init();
	if (ret)
		return ret;
	ret = misc_register(&rmp_misc);
	if (ret)
		rmp_files_exit();
	return ret;
}

void rmp_chardev_exit(void)
{
	misc_deregister(&rmp_misc);
	rmp_files_exit();
}
