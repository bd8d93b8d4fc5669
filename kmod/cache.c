// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that are made for requests whose memory nobody registered, and are kept for
 * the next ones.
 *
 * Each covers the whole pages of the request that it was made for, is made as any
 * other (so it is charged, and watched), and is never published. It has a handle,
 * which nobody is told and no call takes. Those that requests may use are in a tree
 * by address and in a list by last use; what a later and larger one covers leaves
 * both.
 *
 * A file may have cache_mib of them, those counted that are being made or given up.
 * For room, the least recently used ones go; those that requests use never do. Who
 * finds no room nor anything to give up waits for requests to end. Nobody makes one
 * that somebody else is just making.
 *
 * A region whose memory the owner let go of leaves when watch.c knows, or when the
 * next request meets it. One that is suspect is waited for: it may well be what is
 * wanted, and must not be used if it is not.
 *
 * Locking: rmp_cache.lock, outer to rmp_memory.lock. Nothing is pinned and nobody is
 * waited for under it. Regions in the tree have the reference of the file. Waiters read
 * rmp_cache.changes under the lock before they look at anything, and wait until it
 * is another.
 *
 * Lifetime: of the file's struct rmp_memory. Requests count in rmp_region.users, as
 * references are also held by who only looks at a region.
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include "cache.h"
#include "region.h"

static unsigned long rmp_cache_mib = 256;
module_param_named(cache_mib, rmp_cache_mib, ulong, 0644);
MODULE_PARM_DESC(cache_mib,
		 "Most MiB of one open file that are registered for requests on memory that is not (0: such requests fail; default 256)");

/* Of all files, also of those that were closed. */
static atomic64_t rmp_cache_bytes;
static atomic64_t rmp_cache_total[RMP_CACHE_COUNTS];

/**
 * struct rmp_cache_want - what a request needs
 * @node: in rmp_cache.making, while it is being made
 * @start: first byte, of a page
 * @last: last byte, of a page
 * @access: RMPOOL_ACCESS_*
 */
struct rmp_cache_want {
	struct list_head node;
	u64 start;
	u64 last;
	u32 access;
};

static u64 cache_limit(void)
{
	return min_t(u64, READ_ONCE(rmp_cache_mib), S64_MAX >> 20) << 20;
}

static u64 want_bytes(const struct rmp_cache_want *want)
{
	return want->last - want->start + 1;
}

/* False when there is no such range. @length is not 0. */
static bool want_init(struct rmp_cache_want *want, u64 addr, u64 length,
		      u32 access)
{
	if (length > S64_MAX || addr > U64_MAX - length)
		return false;
	want->start = addr & PAGE_MASK;
	want->last = (addr + length - 1) | ~PAGE_MASK;
	want->access = access;
	return true;
}

static void cache_count(struct rmp_cache *cache, enum rmp_cache_count what)
{
	cache->counts[what]++;
	atomic64_inc(&rmp_cache_total[what]);
}

static void cache_changed(struct rmp_cache *cache)
{
	/* Ordered before the look at who waits by that itself. */
	atomic_inc(&cache->changes);
	if (wq_has_sleeper(&cache->wait))
		wake_up_all(&cache->wait);
}

/* Out of the tree: no request finds it any more, and the last that uses it ends it. */
static void cache_take(struct rmp_cache *cache, struct rmp_region *region)
{
	lockdep_assert_held(&cache->lock);
	interval_tree_remove(&region->node, &cache->tree);
	list_del_init(&region->cache_node);
	if (!atomic_read(&region->users)) {
		region->leaving = true;
		cache->leaving += region->length;
		WRITE_ONCE(region->dead, true);
	}
	rmp_region_forget(region);
}

/* Gives regions up that no request uses, until @bytes are on their way. False when
 * nothing is.
 */
static bool cache_evict(struct rmp_cache *cache, u64 bytes)
{
	struct rmp_region *region, *next;

	list_for_each_entry_safe(region, next, &cache->lru, cache_node) {
		if (cache->leaving >= bytes)
			break;
		if (!atomic_read(&region->users)) {
			cache_take(cache, region);
			cache_count(cache, RMP_CACHE_EVICTIONS);
		}
		cond_resched();
	}
	return cache->leaving;
}

/* Takes what is stale on the way. @wait: there is one that may do in a moment. */
static struct rmp_region *cache_look(struct rmp_cache *cache,
				     const struct rmp_cache_want *want,
				     bool *wait)
{
	struct interval_tree_node *node, *next;
	struct rmp_region *region;

	for (node = interval_tree_iter_first(&cache->tree, want->start,
					     want->start); node; node = next) {
		next = interval_tree_iter_next(node, want->start, want->start);
		region = container_of(node, struct rmp_region, node);
		cond_resched();
		if (node->last < want->last || want->access & ~region->access)
			continue;
		if (rmp_region_stale(region)) {
			cache_take(cache, region);
			cache_count(cache, RMP_CACHE_INVALIDATIONS);
			continue;
		}
		if (rmp_region_suspect(region)) {
			*wait = true;
			continue;
		}
		return region;
	}
	return NULL;
}

static bool cache_is_making(struct rmp_cache *cache,
			    const struct rmp_cache_want *want)
{
	struct rmp_cache_want *other;

	list_for_each_entry(other, &cache->making, node) {
		if (other->start <= want->start && other->last >= want->last &&
		    !(want->access & ~other->access))
			return true;
	}
	return false;
}

static struct rmp_region *cache_use(struct rmp_cache *cache,
				    struct rmp_region *region)
{
	kref_get(&region->ref);
	atomic_inc(&region->users);
	list_move_tail(&region->cache_node, &cache->lru);
	return region;
}

struct rmp_region *rmp_cache_find(struct rmp_memory *mem, u64 addr, u64 length,
				  u32 access)
{
	struct rmp_cache *cache = &mem->cache;
	struct rmp_cache_want want;
	struct rmp_region *region;
	bool wait = false;

	if (!cache_limit() || !want_init(&want, addr, length, access) ||
	    mutex_lock_killable(&cache->lock))
		return NULL;
	region = cache_look(cache, &want, &wait);
	if (region) {
		cache_use(cache, region);
		cache_count(cache, RMP_CACHE_HITS);
	}
	mutex_unlock(&cache->lock);
	return region;
}

static int cache_refuse(struct rmpool_error *error, u64 limit, u64 used, u64 need)
{
	error->reason = RMPOOL_REASON_CACHE;
	error->limit = limit;
	error->used = used;
	error->need = need;
	return limit ? -ENOMEM : -EOPNOTSUPP;
}

/* Finds one, or takes room for it. Returns a region, NULL: to be made by the caller,
 * or ERR_PTR(-EAGAIN): try again when @changes is another.
 */
static struct rmp_region *cache_begin(struct rmp_cache *cache,
				      struct rmp_cache_want *want, int *changes,
				      struct rmpool_error *error)
{
	u64 bytes = want_bytes(want), limit = cache_limit(), over;
	struct rmp_region *region;
	bool wait = false;

	lockdep_assert_held(&cache->lock);
	*changes = atomic_read_acquire(&cache->changes);
	if (bytes > limit) {
		if (!limit)
			cache_evict(cache, U64_MAX);
		return ERR_PTR(cache_refuse(error, limit, cache->bytes, bytes));
	}
	region = cache_look(cache, want, &wait);
	if (region) {
		cache_count(cache, RMP_CACHE_HITS);
		return cache_use(cache, region);
	}
	if (wait || cache_is_making(cache, want))
		return ERR_PTR(-EAGAIN);
	if (cache->bytes > limit - bytes) {
		over = cache->bytes - (limit - bytes);
		cache_evict(cache, over);
		cache_refuse(error, limit, cache->bytes, bytes);
		return ERR_PTR(-EAGAIN);
	}
	cache->bytes += bytes;
	atomic64_add(bytes, &rmp_cache_bytes);
	list_add(&want->node, &cache->making);
	return NULL;
}

/* What a new one covers is not needed any more. */
static void cache_replace(struct rmp_cache *cache, struct rmp_region *region)
{
	struct interval_tree_node *node, *next;
	struct rmp_region *other;
	u64 start = region->node.start, last = region->node.last;

	for (node = interval_tree_iter_first(&cache->tree, start, last); node;
	     node = next) {
		next = interval_tree_iter_next(node, start, last);
		other = container_of(node, struct rmp_region, node);
		if (node->start >= start && node->last <= last &&
		    !(other->access & ~region->access))
			cache_take(cache, other);
		cond_resched();
	}
}

/* What became of making it. */
static void cache_finish(struct rmp_cache *cache, struct rmp_cache_want *want,
			 struct rmp_region *region)
{
	lockdep_assert_held(&cache->lock);
	list_del(&want->node);
	if (IS_ERR(region)) {
		cache->bytes -= want_bytes(want);
		atomic64_sub(want_bytes(want), &rmp_cache_bytes);
	} else {
		region->counted = true;
		cache_replace(cache, region);
		interval_tree_insert(&region->node, &cache->tree);
		list_add_tail(&region->cache_node, &cache->lru);
		cache_use(cache, region);
	}
	cache_changed(cache);
}

static struct rmp_region *cache_make(struct rmp_memory *mem,
				     const struct rmp_cache_want *want,
				     struct rmpool_error *error)
{
	struct rmpool_region_add arg = {
		.addr = want->start,
		.length = want_bytes(want),
		.access = want->access,
	};
	struct rmp_region *region;

	region = rmp_region_add_cached(mem, &arg);
	*error = arg.error;
	return region;
}

/* 0, -EINTR or -ETIMEDOUT. */
static int cache_wait(struct rmp_cache *cache, int changes, unsigned long until)
{
	unsigned long now = jiffies;
	long ret;

	/* However often something changes. */
	if (!time_before(now, until))
		return -ETIMEDOUT;
	ret = wait_event_interruptible_timeout(cache->wait,
					       atomic_read(&cache->changes) != changes,
					       until - now);
	if (ret < 0)
		return -EINTR;
	return ret ? 0 : -ETIMEDOUT;
}

/* The address that a request names, and not the page in which it lies. */
static void cache_blame(struct rmpool_error *error, u64 addr)
{
	if (error->reason == RMPOOL_REASON_UNMAPPED ||
	    error->reason == RMPOOL_REASON_DEVICE_MAPPING ||
	    error->reason == RMPOOL_REASON_FILE_MAPPING)
		error->need = max(error->need, addr);
}

struct rmp_region *rmp_cache_add(struct rmp_memory *mem, u64 addr, u64 length,
				 u32 access, unsigned long timeout,
				 struct rmpool_error *error)
{
	struct rmp_cache *cache = &mem->cache;
	unsigned long until = jiffies + timeout;
	struct rmp_cache_want want;
	struct rmp_region *region;
	bool counted = false;
	int changes, err;

	memset(error, 0, sizeof(*error));
	if (!want_init(&want, addr, length, access)) {
		error->reason = RMPOOL_REASON_RANGE_WRAPS;
		error->need = length;
		return ERR_PTR(-EFAULT);
	}

	for (;;) {
		if (mutex_lock_killable(&cache->lock))
			return ERR_PTR(-EINTR);
		region = cache_begin(cache, &want, &changes, error);
		if (!region && !counted) {
			cache_count(cache, RMP_CACHE_MISSES);
			counted = true;
		}
		mutex_unlock(&cache->lock);

		if (!region) {
			region = cache_make(mem, &want, error);
			mutex_lock(&cache->lock);
			cache_finish(cache, &want, region);
			changes = atomic_read_acquire(&cache->changes);
			/* Others' limits may have room without what is only kept. */
			if (region == ERR_PTR(-ENOMEM) &&
			    cache_evict(cache, want_bytes(&want)))
				region = ERR_PTR(-EAGAIN);
			mutex_unlock(&cache->lock);
		}
		if (region != ERR_PTR(-EAGAIN))
			break;
		err = cache_wait(cache, changes, until);
		if (err)
			return ERR_PTR(err);
		memset(error, 0, sizeof(*error));
	}
	if (IS_ERR(region))
		cache_blame(error, addr);
	return region;
}

void rmp_cache_unuse(struct rmp_region *region)
{
	struct rmp_cache *cache = &region->mem->cache;

	atomic_dec(&region->users);
	/* Who sees the change sees that it is not used. */
	smp_mb__after_atomic();
	cache_changed(cache);
}

bool rmp_cache_reclaim(struct rmp_memory *mem, u64 bytes)
{
	struct rmp_cache *cache = &mem->cache;
	bool any;
	int changes;

	if (mutex_lock_killable(&cache->lock))
		return false;
	changes = atomic_read_acquire(&cache->changes);
	any = cache_evict(cache, bytes);
	mutex_unlock(&cache->lock);
	/* What nobody uses is on its way. */
	return any &&
	       !wait_event_interruptible(cache->wait,
					 atomic_read_acquire(&cache->changes) !=
					 changes);
}

void rmp_cache_settled(struct rmp_region *region)
{
	struct rmp_cache *cache = &region->mem->cache;

	mutex_lock(&cache->lock);
	if (!list_empty(&region->cache_node) && rmp_region_stale(region)) {
		cache_take(cache, region);
		cache_count(cache, RMP_CACHE_INVALIDATIONS);
	}
	cache_changed(cache);
	mutex_unlock(&cache->lock);
}

void rmp_cache_released(struct rmp_region *region)
{
	struct rmp_cache *cache = &region->mem->cache;

	/* One that could not be made is counted by who tried. */
	if (!region->counted)
		return;
	mutex_lock(&cache->lock);
	cache->bytes -= region->length;
	if (region->leaving)
		cache->leaving -= region->length;
	atomic64_sub(region->length, &rmp_cache_bytes);
	cache_changed(cache);
	mutex_unlock(&cache->lock);
}

void rmp_cache_end(struct rmp_memory *mem)
{
	struct rmp_cache *cache = &mem->cache;
	struct rmp_region *region, *next;

	mutex_lock(&cache->lock);
	cache->tree = RB_ROOT_CACHED;
	list_for_each_entry_safe(region, next, &cache->lru, cache_node) {
		list_del_init(&region->cache_node);
		cond_resched();
	}
	mutex_unlock(&cache->lock);
}

void rmp_cache_stats(struct rmp_memory *mem, struct rmp_cache_stats *stats)
{
	struct rmp_cache *cache = &mem->cache;

	mutex_lock(&cache->lock);
	stats->limit = cache_limit();
	stats->bytes = cache->bytes;
	memcpy(stats->counts, cache->counts, sizeof(stats->counts));
	mutex_unlock(&cache->lock);
}

void rmp_cache_totals(struct rmp_cache_stats *stats)
{
	int i;

	stats->limit = cache_limit();
	stats->bytes = atomic64_read(&rmp_cache_bytes);
	for (i = 0; i < RMP_CACHE_COUNTS; i++)
		stats->counts[i] = atomic64_read(&rmp_cache_total[i]);
}

void rmp_cache_init(struct rmp_cache *cache)
{
	mutex_init(&cache->lock);
	cache->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&cache->lru);
	INIT_LIST_HEAD(&cache->making);
	atomic_set(&cache->changes, 0);
	init_waitqueue_head(&cache->wait);
}

void rmp_cache_exit(struct rmp_cache *cache)
{
	WARN_ON(cache->bytes || !list_empty(&cache->lru));
	mutex_destroy(&cache->lock);
}
