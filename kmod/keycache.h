/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The keys of one segment of a peer, by offset. Look-ups run under RCU and
 * take a reference of the region found; changes (begin, add, commit, remove,
 * clear) sleep and are serialised by the caller.
 */
#ifndef RMP_KEYCACHE_H
#define RMP_KEYCACHE_H

#include <linux/maple_tree.h>
#include <linux/refcount.h>
#include <linux/xarray.h>
#include "rmpool.h"
#include "wire.h"

/* Most keys (chunk x device) kept for one remote segment, and most regions: as
 * many as one file can have.
 */
#define RMP_KEYS_MAX		BIT(22)
#define RMP_RREGIONS_MAX	BIT(20)

/**
 * struct rmp_rkeys - all keys of one region, replaced as a whole
 * @rcu: freed after a grace period
 * @devices: bit mask of the peer's devices that have keys here
 * @usable: of those, the ones that were not dropped since
 * @keys: the region's nr_chunks per device, devices in ascending order; 0 where a
 *	device does not have the chunk
 */
struct rmp_rkeys {
	struct rcu_head rcu;
	u32 devices;
	u32 usable;
	u32 keys[];
};

/**
 * struct rmp_rregion - a region of a peer
 * @ref: the cache and every request that uses it; @released is called when the
 *	last is given back (any context, must not sleep) and then owns it and
 *	calls rmp_rregion_free()
 * @id: unique at the peer
 * @offset: in the segment
 * @length: bytes
 * @access: RMPOOL_ACCESS_REMOTE_*, as it was told last (READ_ONCE/WRITE_ONCE)
 * @iova: device address of the first byte there
 * @iova_base: device address of the first chunk there
 * @chunk_shift: chunk of device address x: (x - iova_base) >> chunk_shift
 * @nr_chunks: how many
 * @revoked: no new slice may use it (READ_ONCE/WRITE_ONCE)
 * @stale: neither, but it stays: its owner let go of the memory (likewise)
 * @next: the same region with other keys, which took its place in the cache, or NULL;
 *	set once (acquire/release). Referenced: what uses this one may go over to it
 * @rkeys: its keys, or NULL: not reachable; see rmp_rregion_remote()
 * @released: see @ref
 * @owner: for @released
 */
struct rmp_rregion {
	refcount_t ref;
	u64 id;
	u64 offset;
	u64 length;
	u32 access;
	u64 iova;
	u64 iova_base;
	u32 chunk_shift;
	u32 nr_chunks;
	bool revoked;
	bool stale;
	struct rmp_rregion *next;
	struct rmp_rkeys __rcu *rkeys;
	void (*released)(struct rmp_rregion *rr);
	void *owner;
	struct rcu_head rcu;
	struct list_head node;		/* for the owner, after removal */
};

/**
 * struct rmp_keycache - the regions of one remote segment
 * @tree: the regions by offset; RCU look-up
 * @by_id: the same regions by id
 * @nr_regions: how many
 * @nr_keys: held by them, at most RMP_KEYS_MAX
 * @size: end of the last region
 * @changes: of what rmp_keycache_list() tells, so far
 * @released: given to each region
 * @owner: given to each region
 * @cur: region whose runs are coming in, or NULL
 * @cur_new: whether it is not in @tree and @by_id yet
 * @cur_stale: whether it is told to be stale
 * @cur_access: what it is told to allow
 * @cur_keys: its keys so far, or NULL
 * @cur_filled: keys there are of the last device in @cur_keys
 */
struct rmp_keycache {
	struct maple_tree tree;
	struct xarray by_id;
	u32 nr_regions;
	u64 nr_keys;
	u64 size;
	u64 changes;
	void (*released)(struct rmp_rregion *rr);
	void *owner;
	/* the rest belongs to keycache.c */
	struct rmp_rregion *cur;
	bool cur_new;
	bool cur_stale;
	u32 cur_access;
	struct rmp_rkeys *cur_keys;
	u32 cur_filled;
};

void rmp_keycache_init(struct rmp_keycache *kc,
		       void (*released)(struct rmp_rregion *rr), void *owner);
/* Takes all regions out, marks them revoked, gives the cache's references back. */
void rmp_keycache_clear(struct rmp_keycache *kc);
/* The same for good. Look-ups may still run; @kc is to be freed by RCU. */
void rmp_keycache_destroy(struct rmp_keycache *kc);

/* A walk over the peer's keys starts: drops what an earlier one left half done.
 * Regions that are complete stay.
 */
void rmp_keycache_begin(struct rmp_keycache *kc);
/**
 * rmp_keycache_add - take in one run of keys
 *
 * Regions become findable as soon as all keys of all devices that the peer
 * named for them are there: the peer sends the runs of one region one after
 * another, by device and chunk, both upwards, so a region is complete when a
 * run of another region, or the end, follows: call rmp_keycache_commit() at the
 * end of the walk. When a later walk tells of a known region again, its keys
 * are replaced by those told then (devices come and go), it may allow something else,
 * and it may have become stale, for good; all else must be as it was.
 *
 * -EBADMSG (contradicts what is known, overlaps another region, bad geometry),
 * -ENOSPC (too many keys or regions), -ENOMEM. The cache stays usable, the
 * region at fault stays as it was before, and the walk is to start anew. Sleeps.
 */
int rmp_keycache_add(struct rmp_keycache *kc, const struct rmp_wire_keys *run);
int rmp_keycache_commit(struct rmp_keycache *kc);
/* Marks one region revoked and takes it out; returns it with the cache's
 * reference (give it back with rmp_rregion_put()), or NULL. Sleeps.
 */
struct rmp_rregion *rmp_keycache_remove(struct rmp_keycache *kc, u64 id);
/* The keys of one region are void: a new object takes its place, without keys until they
 * are told anew. Returns the old one with the cache's reference, or NULL when there is
 * none, or ERR_PTR(-ENOMEM). Sleeps.
 */
struct rmp_rregion *rmp_keycache_renew(struct rmp_keycache *kc, u64 id);
/* Device @device of the peer is gone: nothing is reached through it until its
 * keys are told anew.
 */
void rmp_keycache_drop_device(struct rmp_keycache *kc, u32 device);

/* Whether no request uses any of it. Stays so when nobody looks anything up. */
bool rmp_keycache_idle(struct rmp_keycache *kc);

/**
 * rmp_keycache_find - region that covers a range
 *
 * Any context, no lock. A referenced region, or ERR_PTR: -ENXIO (no region at
 * @offset), -ERANGE (ends outside of it), -EACCES (@access is not granted),
 * -ESTALE (its owner let go of the memory).
 * @length may be 0: then @offset must be within a region or at its end.
 */
struct rmp_rregion *rmp_keycache_find(struct rmp_keycache *kc, u64 offset,
				      u64 length, u32 access);
void rmp_rregion_hold(struct rmp_rregion *rr);
void rmp_rregion_put(struct rmp_rregion *rr);
/* Frees after a grace period; nobody may hold a reference. Any context. */
void rmp_rregion_free(struct rmp_rregion *rr);

/**
 * rmp_rregion_remote - how a byte of a remote region is reached
 * @rr: referenced
 * @device: index at the peer
 * @pos: offset in the region
 * @iova: out
 * @rkey: out
 *
 * Returns the bytes from @pos to the end of its chunk (or of the region), 0
 * when that has no key on that device. Any context, no lock.
 */
u64 rmp_rregion_remote(const struct rmp_rregion *rr, u32 device, u64 pos,
		       u64 *iova, u32 *rkey);

/* Whether it had keys of a device that the peer does not tell just now, which may be back with
 * them. Any context, no lock.
 */
bool rmp_rregion_away(const struct rmp_rregion *rr);

/* Copies up to @nr descriptors of the regions at offset *@at and behind, in order
 * of offset, without the @first of them. *@at is then where the next call goes
 * on. May reschedule; needs no serialisation with changes.
 */
u32 rmp_keycache_list(struct rmp_keycache *kc, u64 *at, u32 first,
		      struct rmpool_region_desc *desc, u32 nr);

#endif /* RMP_KEYCACHE_H */
