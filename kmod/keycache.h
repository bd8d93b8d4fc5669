/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The keys of one segment of a peer, by offset. Look-ups run under RCU and
 * take a reference of the region found; changes are serialised by the caller.
 */
#ifndef RMP_KEYCACHE_H
#define RMP_KEYCACHE_H

#include <linux/maple_tree.h>
#include <linux/refcount.h>
#include <linux/xarray.h>
#include "rmpool.h"
#include "wire.h"

/* Most keys (chunk x device) kept for one remote segment. */
#define RMP_KEYS_MAX		BIT(22)

/**
 * struct rmp_rregion - a region of a peer
 * @ref: the cache and every request that uses it; @released is called when the
 *	last is given back (any context, must not sleep) and then owns it and
 *	calls rmp_rregion_free()
 * @id: unique at the peer
 * @offset: in the segment
 * @length: bytes
 * @access: RMPOOL_ACCESS_REMOTE_*
 * @iova: device address of the first byte there
 * @iova_base: device address of the first chunk there
 * @chunk_shift: chunk of device address x: (x - iova_base) >> chunk_shift
 * @nr_chunks: how many
 * @revoked: no new slice may use it (READ_ONCE/WRITE_ONCE)
 * @complete: all keys of it were received; before that look-ups skip it
 * @rkeys: by device index of the peer; NULL: not reachable through it
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
	u32 *rkeys[RMP_WIRE_DEVICES_MAX];
	void (*released)(struct rmp_rregion *rr);
	void *owner;
	struct rcu_head rcu;
	struct list_head node;		/* for the owner, after removal */
	/* the rest belongs to keycache.c */
	u64 keys_wanted;
	u32 filled[RMP_WIRE_DEVICES_MAX];
};

/**
 * struct rmp_keycache - the regions of one remote segment
 * @tree: complete regions by offset; RCU look-up
 * @by_id: all regions by id, incomplete ones too
 * @nr_regions: in @tree
 * @nr_keys: held, at most RMP_KEYS_MAX
 * @size: end of the last region in @tree
 */
struct rmp_keycache {
	struct maple_tree tree;
	struct xarray by_id;
	u32 nr_regions;
	u64 nr_keys;
	u64 size;
	void (*released)(struct rmp_rregion *rr);
	void *owner;
};

void rmp_keycache_init(struct rmp_keycache *kc,
		       void (*released)(struct rmp_rregion *rr), void *owner);
/* Takes all regions out, marks them revoked, gives the cache's references back. */
void rmp_keycache_clear(struct rmp_keycache *kc);
void rmp_keycache_destroy(struct rmp_keycache *kc);

/**
 * rmp_keycache_add - take in one run of keys
 *
 * Regions become findable as soon as all keys of all devices that the peer
 * named for them are there: the peer sends the runs of one region one after
 * another, so a region is complete when a run of another region, or the end,
 * follows: call rmp_keycache_commit() at the end of the walk. A walk may be
 * repeated: keys of a region that is complete replace those it has, and keys on
 * a device it had none for are added.
 *
 * -EBADMSG (contradicts what is known, overlaps another region, bad geometry),
 * -ENOSPC (too many keys), -ENOMEM. The cache stays usable.
 */
int rmp_keycache_add(struct rmp_keycache *kc, const struct rmp_wire_keys *run);
int rmp_keycache_commit(struct rmp_keycache *kc);
/* Marks one region revoked and takes it out; returns it with the cache's
 * reference (give it back with rmp_rregion_put()), or NULL.
 */
struct rmp_rregion *rmp_keycache_remove(struct rmp_keycache *kc, u64 id);
/* Device @device of the peer is gone: nothing is reached through it until its
 * keys are told anew.
 */
void rmp_keycache_drop_device(struct rmp_keycache *kc, u32 device);

/**
 * rmp_keycache_find - region that covers a range
 *
 * Any context, no lock. A referenced region, or ERR_PTR: -ENXIO (no region at
 * @offset), -ERANGE (ends outside of it), -EACCES (@access is not granted).
 * @length may be 0: then @offset must be within a region or at its end.
 */
struct rmp_rregion *rmp_keycache_find(struct rmp_keycache *kc, u64 offset,
				      u64 length, u32 access);
void rmp_rregion_put(struct rmp_rregion *rr);
/* Frees after a grace period. */
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
 * when it has no key on that device.
 */
u64 rmp_rregion_remote(const struct rmp_rregion *rr, u32 device, u64 pos,
		       u64 *iova, u32 *rkey);

/* Copies up to @nr descriptors from the @first on, in order of offset. */
u32 rmp_keycache_list(struct rmp_keycache *kc, u32 first,
		      struct rmpool_region_desc *desc, u32 nr);

#endif /* RMP_KEYCACHE_H */
