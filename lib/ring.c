// SPDX-License-Identifier: MIT
/*
 * The reader's side of the completion ring.
 *
 * The kernel writes entries and then the tail with release order; we load the
 * tail with acquire order, copy entries, and then store the head with release
 * order, after which the kernel may write them anew. Both counters run freely
 * and wrap at 2^32; their difference is the number of unread entries.
 *
 * Takers exclude each other by a mutex, which is not touched while the ring is
 * empty, so that a polling loop costs two loads.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

static bool fits(uint64_t offset, uint64_t length, uint64_t align, uint64_t size)
{
	return offset % align == 0 && offset <= size && length <= size - offset;
}

int rmpl_ring_init(struct rmpl_ring *ring, void *map,
		   const struct rmpool_ring_setup *setup)
{
	uint32_t entries = setup->entries;
	char *base = map;

	if (entries < RMPOOL_RING_MIN || entries > RMPOOL_RING_MAX ||
	    (entries & (entries - 1)))
		return -EPROTO;
	if (!fits(setup->head_offset, sizeof(uint32_t), _Alignof(uint32_t),
		  setup->mmap_size) ||
	    !fits(setup->tail_offset, sizeof(uint32_t), _Alignof(uint32_t),
		  setup->mmap_size) ||
	    !fits(setup->entries_offset,
		  (uint64_t)entries * sizeof(struct rmpool_completion),
		  _Alignof(struct rmpool_completion), setup->mmap_size))
		return -EPROTO;

	ring->shared_head = (void *)(base + setup->head_offset);
	ring->shared_tail = (void *)(base + setup->tail_offset);
	ring->entries = (void *)(base + setup->entries_offset);
	ring->mask = entries - 1;
	atomic_init(&ring->head, atomic_load_explicit(ring->shared_head,
						      memory_order_relaxed));
	pthread_mutex_init(&ring->lock, NULL);
	return 0;
}

void rmpl_ring_destroy(struct rmpl_ring *ring)
{
	pthread_mutex_destroy(&ring->lock);
}

uint32_t rmpl_ring_unread(const struct rmpl_ring *ring)
{
	/* The head first: read after the tail, it could be ahead of it when
	 * another thread takes entries in between. So read, it can be too far
	 * behind instead, which the limit makes harmless.
	 */
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint32_t unread = atomic_load_explicit(ring->shared_tail,
					       memory_order_acquire) - head;

	return unread <= ring->mask + 1 ? unread : ring->mask + 1;
}

int rmpl_ring_take(struct rmpl_ring *ring, struct rmpool_completion *out,
		   uint32_t max)
{
	uint32_t head, first, unread, n;

	if (!max || !rmpl_ring_unread(ring))
		return 0;

	pthread_mutex_lock(&ring->lock);
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	unread = atomic_load_explicit(ring->shared_tail, memory_order_acquire) -
		 head;
	if (unread > ring->mask + 1) {
		pthread_mutex_unlock(&ring->lock);
		return -EIO;
	}
	n = unread < max ? unread : max;
	first = ring->mask + 1 - (head & ring->mask);
	if (first > n)
		first = n;
	memcpy(out, ring->entries + (head & ring->mask), first * sizeof(*out));
	memcpy(out + first, ring->entries, (n - first) * sizeof(*out));

	atomic_store_explicit(&ring->head, head + n, memory_order_release);
	atomic_store_explicit(ring->shared_head, head + n, memory_order_release);
	pthread_mutex_unlock(&ring->lock);
	return (int)n;
}
