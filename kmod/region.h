/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REGION_H
#define RMP_REGION_H

#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mmu_notifier.h>
#include <linux/rmpool_netlink.h>
#include <linux/rwsem.h>
#include <linux/xarray.h>
#include "cache.h"
#include "device.h"
#include "staging.h"

struct rmp_segment;
struct rmp_dmabuf;
struct rmp_mapping;
struct rmp_maps;
struct rmp_revocation;
struct rmp_user;

/* Most regions of one file, whatever the parameter max_regions says. */
#define RMP_REGIONS_MAX		BIT(20)

/**
 * struct rmp_memory - the regions of one open file
 * @mm: whose memory it is (mmgrab'ed)
 * @lock: guards @tree; taken for writing to add and remove, for reading by
 *	look-ups
 * @tree: of &struct rmp_region.node, by address
 * @handles: regions by handle, those of @cache as well
 * @cache: those that were made for requests
 * @staged: by enum rmp_staging_count
 * @pinned_pages: charged by this file
 * @pid: of the opener, for dumps
 * @uid: of the opener
 * @user: what that user has pinned; referenced
 * @watch_lock: guards the states of the regions, and @watch_list
 * @watch_list: regions to be looked at by @watch_work
 * @watch_work: see watch.c
 */
struct rmp_memory {
	struct mm_struct *mm;
	struct rw_semaphore lock;
	struct rb_root_cached tree;
	struct xarray handles;
	struct rmp_cache cache;
	atomic64_t staged[RMP_STAGING_COUNTS];
	atomic64_t pinned_pages;
	struct pid *pid;
	kuid_t uid;
	struct rmp_user *user;
	/* the rest belongs to watch.c, region.c and memory.c */
	spinlock_t watch_lock;	/* see above */
	struct list_head watch_list;
	struct work_struct watch_work;
	atomic_t nr;
};

/**
 * struct rmp_region - a pinned range of a process's memory, or of a dma-buf
 * @ref: whoever may touch its pages or MRs; each request in flight has one.
 *	The last one queues the release to process context.
 * @mem: the file's; lives as long as any region of it
 * @id: unique while loaded
 * @handle: of the file
 * @node: in the tree of its file, or of its cache: first and last byte
 * @addr: first byte, user address; of a dma-buf, what requests call it
 * @length: bytes
 * @access: RMPOOL_ACCESS_*
 * @strict: relaxed ordering is not wanted
 * @dmabuf: what it is a range of (dmabuf.c), or NULL: memory of the owner
 * @cached: made for a request, see cache.c; the owner does not know of it
 * @own: memory of the module, by vmalloc(), or NULL; nobody's in the sense of @mem
 * @dead: no new slice may use it (READ_ONCE/WRITE_ONCE)
 * @state: enum rmpool_region_state, see watch.c; read it with
 *	rmp_region_suspect() and rmp_region_stale()
 * @iova: address of the first byte for the device
 * @chunk_shift: chunks are 1 << chunk_shift bytes: the chunk of device address
 *	x is (x - iova_base) >> chunk_shift
 * @iova_base: device address of the start of the first chunk, page aligned; the
 *	first byte of the region is somewhere in that chunk
 * @nr_chunks: how many there are
 * @segment: where it is published (referenced), or NULL; does not change, but
 *	once the segment is dead the region counts as a local one
 * @offset: in the segment
 * @told: its keys may be with peers; under the lock of the segment
 * @groups: that its maker has mapped it for, or tried to, until it is published; a mask
 * @others: of the trust groups but the default one that it is, or was, mapped for
 *	(reach.c); changed with release order
 * @maps: for the default group, per device slot; set with release order once valid, cleared
 *	only when the device is removed, after all queue pairs of the device were drained, when
 *	the buffer is taken back, or when its keys are replaced (rekey.c).
 *	Each has all chunks, or, when a device has no room for all, some: then
 *	each chunk is on one device at least
 */
struct rmp_region {
	struct kref ref;
	u64 id;
	u32 handle;
	struct interval_tree_node node;
	u64 addr;
	u64 length;
	u32 access;
	bool strict;
	struct rmp_dmabuf *dmabuf;
	bool cached;
	void *own;
	bool dead;
	u32 state;
	u64 iova;
	u64 iova_base;
	u32 chunk_shift;
	u32 nr_chunks;
	struct rmp_segment *segment;
	u64 offset;
	bool told;
	u32 groups;
	struct rmp_maps *others;
	struct rmp_mapping *maps[RMP_DEVICES_MAX];
	/* the rest belongs to region.c */
	struct rmp_memory *mem;
	u64 start;		/* @addr, or where it begins in the buffer */
	struct page **pages;	/* of a buffer: NULL until there is use for them */
	unsigned long nr_pages;
	unsigned long nr_pinned;
	u64 chunks_todo;	/* to be mapped, on all devices */
	atomic64_t chunks_done;
	u32 page_shift;
	bool attached;
	bool spread;
	bool stuck;
	struct work_struct release;
	struct rcu_head rcu;
	/* and this to watch.c */
	struct mmu_interval_notifier watch;
	struct list_head watch_node;
	unsigned long suspect_from;	/* pages, while suspect */
	unsigned long suspect_to;
	bool watched;
	bool pinned;
	/* and this to revocation.c */
	struct list_head revoke_node;
	struct rmp_revocation *revoked;	/* by which peers have to let go of it yet */
	/* and this to cache.c */
	struct list_head cache_node;
	atomic_t users;		/* requests that use it */
	bool counted;		/* in the bytes of the cache */
	bool leaving;
};

/**
 * struct rmp_region_ops - told by region.c
 * @settled: regions that were suspect are not any more, or have become stale:
 *	what waits for them goes on, or ends. Process context, no locks held.
 */
struct rmp_region_ops {
	void (*settled)(void);
};

/* Its pages may not be the owner's any more: to be known soon. Nothing new is
 * posted until then. Any context.
 */
static inline bool rmp_region_suspect(const struct rmp_region *region)
{
	return READ_ONCE(region->state) == RMPOOL_REGION_STATE_SUSPECT;
}

/* The owner let go of its pages; stays so until it is unregistered. */
static inline bool rmp_region_stale(const struct rmp_region *region)
{
	return READ_ONCE(region->state) == RMPOOL_REGION_STATE_STALE;
}

int rmp_region_init(const struct rmp_region_ops *ops);
void rmp_region_exit(void);

/* Most regions of one file. */
u32 rmp_regions_max(void);

/* -ENOMEM; to be destroyed, else. */
int rmp_memory_init(struct rmp_memory *mem, struct mm_struct *mm);
/* Called when the last region is gone. */
void rmp_memory_destroy(struct rmp_memory *mem);

/**
 * rmp_region_add - pin, charge, map on every device, and make findable
 * @mem: regions of the file; current->mm is @mem->mm
 * @arg: the request; @arg->handle, @arg->offset and @arg->error are set
 * @seg: referenced segment to publish it in, or NULL
 *
 * Process context of the owner. All or nothing.
 */
int rmp_region_add(struct rmp_memory *mem, struct rmpool_region_add *arg,
		   struct rmp_segment *seg);

/* By cache.c: the same, for memory of the owner that is not to be published. It has a
 * handle that nobody is told, and is found by cache.c alone. Returns the region, for
 * which the file has the reference.
 */
struct rmp_region *rmp_region_add_cached(struct rmp_memory *mem,
					 struct rmpool_region_add *arg);
/* Gives that reference back: who uses the region keeps it. */
void rmp_region_forget(struct rmp_region *region);

/* By staging.c: a region of the module, of @length bytes at @base, whole pages by
 * vmalloc(), which are the region's from here on, also when it fails. No process pays for
 * it, and who walks regions does not meet it. @mem is zeroed and has no other. Sleeps;
 * not for a process: no signal ends it.
 */
struct rmp_region *rmp_region_add_own(struct rmp_memory *mem, void *base,
				      u64 length);
/* Returns when it is gone. No request uses it. */
void rmp_region_del_own(struct rmp_region *region);

/**
 * rmp_region_del - unregister one region
 * @mem: regions of the file
 * @handle: of the region
 *
 * No new request finds it; peers that hold keys are told and get a bounded
 * time to end what is in flight, and whoever has not by then is cut off; then
 * requests in flight are waited for, the MRs go, and only then the pages are
 * unpinned and uncharged. All of that has happened when it returns. Killable: after
 * a fatal signal the rest happens in the background (-EINTR). -ENOENT when unknown.
 */
int rmp_region_del(struct rmp_memory *mem, u32 handle);

/**
 * struct rmp_region_del - one of many to be unregistered
 * @handle: of the region
 * @status: out: 0, or -ENOENT when unknown
 */
struct rmp_region_del {
	u32 handle;
	int status;
	/* the rest belongs to memory.c */
	struct rmp_region *region;
	u64 id;
};

/* The same for many, which are waited for together. 0 or -EINTR; then what has a
 * status of 0 goes in the background.
 */
int rmp_region_del_many(struct rmp_memory *mem, struct rmp_region_del *dels,
			u32 nr);

/**
 * rmp_region_del_all - teardown of a dead file, from a work item
 *
 * As rmp_region_del() for all regions at once. The caller has deleted the segments
 * of the file, and so each peer was asked once for all of a segment. Returns when all
 * of them are released, those too that nobody waits for any more.
 * Marking everything dead at once (without waiting) is done by
 * rmp_memory_kill(), which rmp_file_end() calls.
 */
void rmp_memory_kill(struct rmp_memory *mem);
void rmp_region_del_all(struct rmp_memory *mem);

/**
 * rmp_region_find - a region that covers a range
 * @mem: regions of the file; @mem->lock is held for reading
 * @addr: first byte
 * @length: bytes, may be 0
 * @access: RMPOOL_ACCESS_LOCAL_WRITE when it will be written, else 0
 *
 * Returns a referenced region, or ERR_PTR: -EFAULT (address in no region),
 * -ERANGE (it begins in a region and ends outside), -EACCES, -ESTALE (only stale
 * regions cover it), -EINTR (killed).
 * May reschedule.
 */
struct rmp_region *rmp_region_find(struct rmp_memory *mem, u64 addr, u64 length,
				   u32 access);
void rmp_region_put(struct rmp_region *region);
/* Waits until all references of a region are given back, by its id; -EINTR when killed. */
int rmp_region_wait_gone(struct rmp_memory *mem, u64 id);

/**
 * rmp_region_local - how a device reaches a byte of a region
 * @region: referenced
 * @group: trust group of the peer it is moved from or to
 * @dev_index: slot of the device
 * @pos: offset in the region, below its length
 * @iova: out: address for the device
 * @lkey: out
 *
 * Returns the bytes from @pos to the end of its chunk (or of the region), 0
 * when that chunk is not mapped there for that group. Any context, no lock.
 */
u64 rmp_region_local(const struct rmp_region *region, u32 group, u32 dev_index,
		     u64 pos, u64 *iova, u32 *lkey);
/* The same for a slice that is to be posted: until rmp_region_unuse(), the keys of the
 * region are not taken off the device, unless the device goes or the buffer is taken
 * back. *@map: for that, also when 0 is returned.
 */
u64 rmp_region_use(const struct rmp_region *region, u32 group, u32 dev_index,
		   u64 pos, u64 *iova, u32 *lkey, struct rmp_mapping **map);
/* Any context; NULL is allowed. */
void rmp_region_unuse(struct rmp_mapping *map);
/* Remote key of one chunk; 0 when not mapped there or no remote access. */
u32 rmp_region_rkey(const struct rmp_region *region, u32 group, u32 dev_index,
		    u32 chunk);
/* Whether any chunk has a remote key there, or may get one. */
bool rmp_region_has_rkeys(const struct rmp_region *region, u32 group, u32 dev_index);

/* Whether a region is mapped for a trust group on any device. Any context. */
bool rmp_region_reached(const struct rmp_region *region, u32 group);
/* Maps it for the group where it is not. -ESTALE, -EINTR, -ENODEV; -ENOENT: the group has
 * no peer any more; or, with @error, as when it is registered. Sleeps.
 */
int rmp_region_reach(struct rmp_region *region, u32 group,
		     struct rmpool_error *error);
/* The same for all groups in a mask, as far as it can be done; -EINTR. *@any: something
 * is mapped now that was not, and else as it was.
 */
int rmp_region_reach_many(struct rmp_region *region, u32 groups, bool *any);
/* For all regions of a segment, and the groups that have it open, by a work item of the
 * segment: the first peer of a group has opened it.
 */
void rmp_segment_reach(struct rmp_segment *segment);
/* The last peer of a group is gone, with all it used. Gives back the caller's use of it. */
void rmp_region_group_gone(u32 group);

/**
 * struct rmp_region_usage - what a region takes on devices
 * @devices: on which it is mapped, at least in part
 * @mrs: memory regions of all of them
 * @pages: of those
 */
struct rmp_region_usage {
	u32 devices;
	u64 mrs;
	u64 pages;
};

void rmp_region_usage(const struct rmp_region *region,
		      struct rmp_region_usage *usage);

/* Device events, from main.c. */
void rmp_region_device_added(struct rmp_device *dev);
void rmp_region_device_removed(struct rmp_device *dev);

/* How far a region is that is being made, in per cent: pinning is the first half, mapping
 * the second. 100 once it is registered.
 */
u32 rmp_region_percent(const struct rmp_region *region);

/* Calls @fn for each region of a process, also those being made, until it returns
 * non-zero, in order of id, beginning with id @from. Sleeps; the region is referenced
 * meanwhile.
 */
int rmp_region_walk(u64 from, int (*fn)(struct rmp_region *region, void *arg),
		    void *arg);

#endif /* RMP_REGION_H */
