// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring that a process reads without a system call.
 *
 * One area of pages, charged to the memory cgroup of who asked for it, and
 * mapped as a whole: the reader's counter and the writer's, each on a cache line
 * of its own, then the entries. A slot is reserved before a request is accepted,
 * so a completion always finds room.
 *
 * The process may write to all of the area. What the kernel relies on is kept
 * outside of it (tail, reserved); the reader's counter is read once each time
 * and, when it makes no sense, taken as "nothing was read". A process that lies
 * about it can only lose completions of its own.
 *
 * Locking: ring->lock (BH) guards tail, reserved and writing. Lifetime: of the
 * file, which every request refers to; pages live on in a mapping.
 */
#include <linux/eventfd.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "compat.h"
#include "ring.h"

/* Where things are in the mapping. */
#define RING_HEAD	0
#define RING_TAIL	128
#define RING_ENTRIES	256

struct rmp_ring {
	void *area;
	size_t size;
	u32 *head;		/* written by the process */
	u32 *shared_tail;	/* written by us, for the process to read */
	struct rmpool_completion *entries;
	u32 mask;
	spinlock_t lock;	/* of tail and reserved */
	u32 tail;
	u32 reserved;		/* accepted requests without a completion yet */
	wait_queue_head_t wait;
	struct eventfd_ctx *eventfd;
};

u32 rmp_ring_entries(const struct rmp_ring *ring)
{
	return ring->mask + 1;
}

/* What vmalloc_user() gives, but accounted; vfree() ends it. */
static void *ring_alloc(size_t size)
{
	unsigned int nr = size >> PAGE_SHIFT, n;
	struct page **pages;
	void *area = NULL;

	pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	for (n = 0; n < nr; n++) {
		pages[n] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[n])
			break;
		cond_resched();
	}
	if (n == nr)
		area = vmap(pages, nr, VM_MAP | VM_USERMAP | VM_MAP_PUT_PAGES,
			    PAGE_KERNEL);
	if (area)
		return area;	/* has the pages and their array now */
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
	return NULL;
}

struct rmp_ring *rmp_ring_create(struct rmpool_ring_setup *arg)
{
	struct rmp_ring *ring;
	int ret = -ENOMEM;

	if (arg->entries < RMPOOL_RING_MIN || arg->entries > RMPOOL_RING_MAX ||
	    !is_power_of_2(arg->entries)) {
		arg->error.reason = RMPOOL_REASON_RING;
		arg->error.limit = RMPOOL_RING_MAX;
		arg->error.need = arg->entries;
		return ERR_PTR(-EINVAL);
	}
	ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->mask = arg->entries - 1;
	ring->size = PAGE_ALIGN(RING_ENTRIES +
				arg->entries * sizeof(*ring->entries));
	spin_lock_init(&ring->lock);
	init_waitqueue_head(&ring->wait);
	if (arg->eventfd != -1) {
		ring->eventfd = eventfd_ctx_fdget(arg->eventfd);
		if (IS_ERR(ring->eventfd)) {
			ret = PTR_ERR(ring->eventfd);
			goto free;
		}
	}
	ring->area = ring_alloc(ring->size);
	if (!ring->area)
		goto put;
	ring->head = ring->area + RING_HEAD;
	ring->shared_tail = ring->area + RING_TAIL;
	ring->entries = ring->area + RING_ENTRIES;

	arg->head_offset = RING_HEAD;
	arg->tail_offset = RING_TAIL;
	arg->entries_offset = RING_ENTRIES;
	arg->mmap_offset = 0;
	arg->mmap_size = ring->size;
	return ring;

put:
	if (ring->eventfd)
		eventfd_ctx_put(ring->eventfd);
free:
	kfree(ring);
	return ERR_PTR(ret);
}

void rmp_ring_destroy(struct rmp_ring *ring)
{
	if (!ring)
		return;
	if (ring->eventfd)
		eventfd_ctx_put(ring->eventfd);
	vfree(ring->area);
	kfree(ring);
}

int rmp_ring_mmap(struct rmp_ring *ring, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != ring->size ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	/* A child of the process has no use for it. */
	rmp_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	return remap_vmalloc_range(vma, ring->area, 0);
}

/* How many completions the process has not read. ring->lock is held, or the
 * result is only a hint.
 */
static u32 ring_unread(struct rmp_ring *ring)
{
	u32 unread = READ_ONCE(ring->tail) - READ_ONCE(*ring->head);

	return min(unread, ring->mask + 1);
}

u32 rmp_ring_reserve(struct rmp_ring *ring, u32 nr)
{
	u32 busy;

	spin_lock_bh(&ring->lock);
	busy = ring_unread(ring) + ring->reserved;
	nr = busy > ring->mask ? 0 : min(nr, ring->mask + 1 - busy);
	ring->reserved += nr;
	spin_unlock_bh(&ring->lock);
	return nr;
}

void rmp_ring_unreserve(struct rmp_ring *ring, u32 nr)
{
	spin_lock_bh(&ring->lock);
	ring->reserved -= nr;
	spin_unlock_bh(&ring->lock);
}

void rmp_ring_complete(struct rmp_ring *ring,
		       const struct rmpool_completion *entry)
{
	spin_lock_bh(&ring->lock);
	ring->entries[ring->tail & ring->mask] = *entry;
	ring->reserved--;
	WRITE_ONCE(ring->tail, ring->tail + 1);
	/* Pairs with the acquire load of the process: entry before counter. */
	smp_store_release(ring->shared_tail, ring->tail);
	spin_unlock_bh(&ring->lock);
	if (wq_has_sleeper(&ring->wait))
		wake_up_all(&ring->wait);
	if (ring->eventfd)
		rmp_eventfd_signal(ring->eventfd);
}

__poll_t rmp_ring_poll(struct rmp_ring *ring, struct file *file,
		       struct poll_table_struct *wait)
{
	poll_wait(file, &ring->wait, wait);
	/* In the queue before looking; pairs with wq_has_sleeper(). */
	smp_mb();
	return ring_unread(ring) ? EPOLLIN | EPOLLRDNORM : 0;
}

int rmp_ring_wait(struct rmp_ring *ring, struct rmpool_wait *arg)
{
	ktime_t timeout = KTIME_MAX, end = 0;
	int ret = -ETIME;

	if (arg->flags || arg->reserved || !arg->min ||
	    arg->min > ring->mask + 1)
		return -EINVAL;
	if (arg->timeout_ns >= 0) {
		timeout = ns_to_ktime(arg->timeout_ns);
		end = ktime_add_safe(ktime_get(), timeout);
	}
	if (timeout)
		ret = wait_event_interruptible_hrtimeout(ring->wait,
							 ring_unread(ring) >=
							 arg->min, timeout);
	if (ret == -ERESTARTSYS)
		ret = -EINTR;
	else if (ret == -ETIME && ring_unread(ring) >= arg->min)
		ret = 0;
	arg->available = ring_unread(ring);
	if (arg->timeout_ns >= 0)
		arg->timeout_ns = max_t(s64, 0,
					ktime_to_ns(ktime_sub(end,
							      ktime_get())));
	return ret;
}
