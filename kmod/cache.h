/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CACHE_H
#define RMP_CACHE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/wait.h>

struct rmp_memory;
struct rmp_region;
struct rmpool_error;

/* Part of the region room. */

/* What is counted. */
enum rmp_cache_count {
	RMP_CACHE_HITS,
	RMP_CACHE_MISSES,
	RMP_CACHE_EVICTIONS,
	RMP_CACHE_INVALIDATIONS,
	RMP_CACHE_COUNTS
};

/**
 * struct rmp_cache - regions that were made for requests of one file
 * @lock: guards all but @changes
 * @tree: of &struct rmp_region.node, by address
 * @lru: of &struct rmp_region.cache_node, the least recently used first
 * @making: those that are being made
 * @bytes: pinned or being pinned, also of regions that are not in the tree any more
 * @leaving: of those, what will not be pinned any more in a moment
 * @counts: by enum rmp_cache_count
 * @changes: how often something changed that one may wait for
 * @wait: for that
 */
struct rmp_cache {
	struct mutex lock;	/* see above */
	struct rb_root_cached tree;
	struct list_head lru;
	struct list_head making;
	u64 bytes;
	u64 leaving;
	u64 counts[RMP_CACHE_COUNTS];
	atomic_t changes;
	wait_queue_head_t wait;
};

/**
 * struct rmp_cache_stats - what a cache holds and what became of it
 * @limit: bytes of one file, at most; 0: off
 * @bytes: pinned
 * @counts: by enum rmp_cache_count
 */
struct rmp_cache_stats {
	u64 limit;
	u64 bytes;
	u64 counts[RMP_CACHE_COUNTS];
};

void rmp_cache_init(struct rmp_cache *cache);
void rmp_cache_exit(struct rmp_cache *cache);

/**
 * rmp_cache_find - the region that was made for such a request
 * @mem: regions of the file
 * @addr: first byte
 * @length: bytes, not 0
 * @access: RMPOOL_ACCESS_LOCAL_WRITE when it will be written, else 0
 *
 * Returns a referenced region, for rmp_cache_unuse() and rmp_region_put(), or NULL
 * when there is none that can be used at once. Sleeps, but not for long.
 */
struct rmp_region *rmp_cache_find(struct rmp_memory *mem, u64 addr, u64 length,
				  u32 access);

/**
 * rmp_cache_add - the same, and makes it if there is none
 * @mem: see rmp_cache_find()
 * @addr: see there
 * @length: see there
 * @access: see there
 * @timeout: jiffies to wait for room, and for what others do
 * @error: out: the reason, if there is one
 *
 * Pins memory; process context of the owner. Returns a region as above or
 * ERR_PTR: -EOPNOTSUPP (the cache is off, or memory of that kind), -ENOMEM,
 * -ETIMEDOUT, -EINTR, or what rmp_region_add() has.
 */
struct rmp_region *rmp_cache_add(struct rmp_memory *mem, u64 addr, u64 length,
				 u32 access, unsigned long timeout,
				 struct rmpool_error *error);

/* A request is done with a region that it got here; before it puts it. Any context. */
void rmp_cache_unuse(struct rmp_region *region);

/* For who met a limit: gives up to @bytes of regions up that no request uses, and
 * waits for some of them. False when there are none. Sleeps.
 */
bool rmp_cache_reclaim(struct rmp_memory *mem, u64 bytes);

/* The file ends: all of them become regions like any other. No calls of the owner
 * run any more.
 */
void rmp_cache_end(struct rmp_memory *mem);

/* By region.c: it is active again, or stale; it is not pinned any more. Sleep. */
void rmp_cache_settled(struct rmp_region *region);
void rmp_cache_released(struct rmp_region *region);

/* Of one file; of all that there are or were. */
void rmp_cache_stats(struct rmp_memory *mem, struct rmp_cache_stats *stats);
void rmp_cache_totals(struct rmp_cache_stats *stats);

#endif /* RMP_CACHE_H */
