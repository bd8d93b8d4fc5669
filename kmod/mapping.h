/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_MAPPING_H
#define RMP_MAPPING_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include "region.h"

/* Part of the region room. */

/**
 * struct rmp_chunk - one chunk on one device
 * @mr: its memory region
 * @sgt: its DMA addresses; kept only where unmapping needs them
 * @lkey: for local use
 * @rkey: for peers, 0 without remote access
 */
struct rmp_chunk {
	struct ib_mr *mr;
	struct sg_table sgt;
	u32 lkey;
	u32 rkey;
};

/**
 * struct rmp_mapping - a region on one device
 * @dev: referenced
 * @region: referenced only while @node is in a list
 * @node: used by region.c
 * @dir: of DMA
 * @nr_chunks: how many there are
 * @chunks: by index
 */
struct rmp_mapping {
	struct rmp_device *dev;
	struct rmp_region *region;
	struct list_head node;
	enum dma_data_direction dir;
	u32 nr_chunks;
	struct rmp_chunk chunks[];
};

/* Maps a pinned region whole; ERR_PTR: -ENODEV when the device goes, -EINTR
 * when @owner says that the owner waits for it and a signal is pending,
 * -EOPNOTSUPP when its chunks are too large for the device, -ENOMEM (with
 * @error, if a limit was met), or what the device says. Sleeps.
 */
struct rmp_mapping *rmp_mapping_create(struct rmp_region *region,
				       struct rmp_device *dev, bool owner,
				       struct rmpool_error *error);
/* Returns when the device cannot reach the memory any more; false: it may. */
bool rmp_mapping_destroy(struct rmp_mapping *map);

#endif /* RMP_MAPPING_H */
