/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_MAPPING_H
#define RMP_MAPPING_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include "domain.h"
#include "region.h"

/* Part of the region room. */

/**
 * struct rmp_chunk - one chunk on one device
 * @mr: its memory region
 * @sgt: its DMA addresses; kept only where unmapping needs them
 * @lkey: for local use
 * @rkey: for peers, 0 without remote access
 * @pages: of the MR, for which room was taken on the device; 0: the chunk is not
 *	to be on this device
 * @ready: the device can reach it, and all above stays as it is (acquire/release)
 */
struct rmp_chunk {
	struct ib_mr *mr;
	struct sg_table sgt;
	u32 lkey;
	u32 rkey;
	u32 pages;
	bool ready;
};

/**
 * struct rmp_mapping - a region on one device for one trust group, or those chunks of it
 * that found room there
 * @dev: referenced
 * @domain: of that device, for the group; used
 * @region: referenced only while @node is in a list
 * @node: used by attach.c
 * @rcu: freed after a grace period
 * @users: its maker, and each slice that uses it where keys may be replaced; freed with
 *	the last (chunk.c)
 * @access: IB_ACCESS_* of the MRs
 * @dir: of DMA
 * @attrs: of DMA
 * @link: the way to the buffer, for dma-bufs on devices that do DMA, else NULL
 * @stuck: the device may still reach memory that it should not
 * @mrs: taken on the device (READ_ONCE/WRITE_ONCE)
 * @pages: taken on the device (READ_ONCE/WRITE_ONCE)
 * @nr_chunks: of the region
 * @chunks: by index
 *
 * Made in three steps: empty; with room for chunks; filled. The last two may be
 * repeated for further chunks, also while others read the ready ones.
 */
struct rmp_mapping {
	struct rmp_device *dev;
	struct rmp_domain *domain;
	struct rmp_region *region;
	struct list_head node;
	struct rcu_head rcu;
	atomic_t users;
	int access;
	enum dma_data_direction dir;
	unsigned long attrs;
	struct rmp_dmabuf_link *link;
	bool stuck;
	u64 mrs;
	u64 pages;
	u32 nr_chunks;
	struct rmp_chunk chunks[];
};

struct rmp_fit;

/* Adds the first of @nr pages and those that lie behind it in a row; how many. */
unsigned long rmp_fit_add_pages(struct rmp_fit *fit, struct page **pages,
				unsigned long nr);

/**
 * struct rmp_maps - the mappings of a region for a trust group but the default one
 * @next: those of another group
 * @group: index of the group
 * @wanted: somebody of the group needs the region; under rmp_maps_lock()
 * @maps: as &struct rmp_region.maps
 *
 * Once a region has one it stays, as a place, until the region goes.
 */
struct rmp_maps {
	struct rmp_maps *next;
	u32 group;
	bool wanted;
	struct rmp_mapping *maps[RMP_DEVICES_MAX];
};

/* chunk.c: the place for a group, or NULL. Any context. */
struct rmp_maps *rmp_region_others(const struct rmp_region *region, u32 group);
/* Likewise: the mappings for a group, by device slot, or NULL; never for the default one. */
struct rmp_mapping **rmp_region_maps(const struct rmp_region *region, u32 group);

/* cut.c: a pinned region gets its addresses for devices, and how large the pages are that
 * all of it consists of. @small: as if all were small.
 */
void rmp_cut_measure(struct rmp_region *region, bool small);
/* And then its chunks, of 1 << @shift bytes at most. -ENOMEM: they are too many. */
int rmp_cut_chunks(struct rmp_region *region, u32 shift);

/* deal.c: takes room on all devices in @maps, by slot, for all chunks. When one of several
 * has none, chunks are dealt to them, each to one, and the region is spread. Errors as of
 * rmp_mapping_reserve(). Under rmp_maps_lock(), or nothing of the group is published.
 */
int rmp_maps_reserve(struct rmp_region *region, u32 group,
		     struct rmp_mapping **maps, struct rmpool_error *error);
/* Likewise for the chunks that no device has, in turn on those in @maps. */
int rmp_maps_deal(struct rmp_region *region, u32 group,
		  struct rmp_mapping **maps, struct rmpool_error *error);

/* An empty one for a region that was cut. -EOPNOTSUPP, with @error, when the device
 * cannot reach the dma-buf; -EINTR, -ENOENT (the group has no peer), -ENOMEM, or what the
 * device says. Sleeps.
 */
struct rmp_mapping *rmp_mapping_alloc(struct rmp_region *region,
				      struct rmp_device *dev, u32 group,
				      struct rmpool_error *error);
/* Takes room for one chunk, or for all at once. -ENOMEM with the limit in @error;
 * -E2BIG: a chunk has more pages than the device can take in one MR. May sleep.
 */
int rmp_mapping_reserve(struct rmp_mapping *map, const struct rmp_region *region,
			u32 index, struct rmpool_error *error);
int rmp_mapping_reserve_all(struct rmp_mapping *map,
			    const struct rmp_region *region,
			    struct rmpool_error *error);
/* Maps what there is room for: all of it, or nothing more than there was, and then
 * the room is given back. -EAGAIN when the device goes, -EINTR when @owner, who waits
 * for it, has a signal pending (NULL: nobody waits), -E2BIG as above, -ENOMEM (with
 * @error, if a limit was met), or what the device says. Sleeps.
 */
int rmp_mapping_fill(struct rmp_mapping *map, struct rmp_region *region,
		     struct task_struct *owner, struct rmpool_error *error);
/* The same for a new region on all devices in @maps, by slot: @errs of each. Returns the
 * first error but -EAGAIN, with @error; after it, some may not have been filled. In the
 * owner's process.
 */
int rmp_mappings_fill(struct rmp_mapping **maps, struct rmp_region *region,
		      int *errs, struct rmpool_error *error);
/* Takes back what is not ready. */
void rmp_mapping_trim(struct rmp_mapping *map);
/* Returns when the device cannot reach the memory any more; false: it may. */
bool rmp_mapping_destroy(struct rmp_mapping *map);

#endif /* RMP_MAPPING_H */
