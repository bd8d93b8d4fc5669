// SPDX-License-Identifier: GPL-2.0
/*
 * The life of an open file: from open() to the end of what it had.
 *
 * Lifetime: the open file has a reference, its teardown one, and each request one. The
 * teardown comes once, with release() or with the end of the address space, whichever is
 * first: a descriptor that was inherited or passed on can be kept as long as one
 * likes, and must not keep the memory of who is gone. It ends what is queued,
 * marks the regions dead, and leaves the rest, which may have to wait for peers,
 * to a work item; it does not wait itself.
 *
 * Locking: none. The work item meets no call: the owner has none left, and others are
 * refused. Context: process; rmp_file_put() any.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/slab.h>
#include "file.h"
#include "ring.h"
#include "segment.h"
#include "transfer.h"

/* For teardowns only: many at once may wait for peers, whose answers come by
 * work items of the common queue.
 */
static struct workqueue_struct *rmp_close_wq;
static atomic_t rmp_files = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(rmp_files_wait);

static void file_free_work(struct work_struct *work)
{
	struct rmp_file *file = container_of(work, struct rmp_file, work);

	rmp_ring_destroy(file->ring);
	rmp_memory_destroy(&file->mem);
	xa_destroy(&file->segments);
	xa_destroy(&file->opens);
	mutex_destroy(&file->setup);
	kfree(file);
	if (atomic_dec_and_test(&rmp_files))
		wake_up_all(&rmp_files_wait);
}

static void file_release(struct kref *ref)
{
	struct rmp_file *file = container_of(ref, struct rmp_file, ref);

	/* The teardown has run: it held a reference. */
	INIT_WORK(&file->work, file_free_work);
	queue_work(rmp_close_wq, &file->work);
}

void rmp_file_put(struct rmp_file *file)
{
	kref_put(&file->ref, file_release);
}

/* What may take time when a file ends. */
static void file_teardown_work(struct work_struct *work)
{
	struct rmp_file *file = container_of(work, struct rmp_file, work);
	struct rmp_revocation *rev;
	struct rmp_segment *segment;
	struct rmp_rseg *rseg;
	unsigned long handle;

	mmu_interval_notifier_remove(&file->owner);
	/* Peers are asked once for all of a segment; its regions wait for them. */
	xa_for_each(&file->segments, handle, segment) {
		rev = rmp_segment_delete(segment);
		if (rev)
			rmp_revocation_put(rev);
		cond_resched();
	}
	rmp_region_del_all(&file->mem);
	xa_for_each(&file->segments, handle, segment) {
		rmp_segment_put(segment);
		cond_resched();
	}
	xa_for_each(&file->opens, handle, rseg) {
		rmp_rseg_put(rseg);
		cond_resched();
	}
	rmp_file_put(file);
}

void rmp_file_end(struct rmp_file *file)
{
	if (atomic_xchg(&file->ended, 1))
		return;
	rmp_transfer_kill(file);
	rmp_memory_kill(&file->mem);
	INIT_WORK(&file->work, file_teardown_work);
	queue_work(rmp_close_wq, &file->work);
}

static bool owner_changed(struct mmu_interval_notifier *owner,
			  const struct mmu_notifier_range *range,
			  unsigned long seq)
{
	if (range->event == MMU_NOTIFY_RELEASE)
		rmp_file_end(container_of(owner, struct rmp_file, owner));
	return true;
}

static const struct mmu_interval_notifier_ops owner_ops = {
	.invalidate = owner_changed,
};

/* The end of an address space is told whatever the interval: one that is nobody's
 * memory is disturbed by nothing else.
 */
static int owner_watch(struct rmp_file *file)
{
	int ret = mmu_interval_notifier_insert(&file->owner, current->mm, 0,
					       PAGE_SIZE, &owner_ops);

	/* The first one of an address space can be interrupted. */
	return ret == -EINTR ? -ERESTARTNOINTR : ret;
}

struct rmp_file *rmp_file_make(void)
{
	struct rmp_file *file;
	int ret;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	ret = rmp_memory_init(&file->mem, current->mm);
	if (ret) {
		kfree(file);
		return ERR_PTR(ret);
	}
	kref_init(&file->ref);
	xa_init_flags(&file->segments, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&file->opens, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	init_rwsem(&file->handles);
	spin_lock_init(&file->lock);
	INIT_LIST_HEAD(&file->requests);
	mutex_init(&file->setup);
	ret = owner_watch(file);
	if (ret) {
		mutex_destroy(&file->setup);
		rmp_memory_destroy(&file->mem);
		kfree(file);
		return ERR_PTR(ret);
	}
	kref_get(&file->ref);	/* one is the teardown's */
	atomic_inc(&rmp_files);
	return file;
}

int rmp_files_init(void)
{
	rmp_close_wq = alloc_workqueue("rmpool_close", WQ_UNBOUND, 0);
	return rmp_close_wq ? 0 : -ENOMEM;
}

void rmp_files_exit(void)
{
	wait_event(rmp_files_wait, !atomic_read(&rmp_files));
	destroy_workqueue(rmp_close_wq);
}
