/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_RING_H
#define RMP_RING_H

#include <linux/poll.h>
#include <linux/rmpool.h>

struct rmp_ring;
struct vm_area_struct;

/* Allocates a ring as asked for; fills in the output fields. */
struct rmp_ring *rmp_ring_create(struct rmpool_ring_setup *arg);
void rmp_ring_destroy(struct rmp_ring *ring);
int rmp_ring_mmap(struct rmp_ring *ring, struct vm_area_struct *vma);
__poll_t rmp_ring_poll(struct rmp_ring *ring, struct file *file,
		       struct poll_table_struct *wait);
int rmp_ring_wait(struct rmp_ring *ring, struct rmpool_wait *arg);

/* Reserves slots for up to @nr completions; returns how many there are. */
u32 rmp_ring_reserve(struct rmp_ring *ring, u32 nr);
/* Gives back what was reserved and will not be used. */
void rmp_ring_unreserve(struct rmp_ring *ring, u32 nr);
/* Uses one reserved slot. Any context but hard interrupt. */
void rmp_ring_complete(struct rmp_ring *ring,
		       const struct rmpool_completion *entry);
u32 rmp_ring_entries(const struct rmp_ring *ring);

#endif /* RMP_RING_H */
