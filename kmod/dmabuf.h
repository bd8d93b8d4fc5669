/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_DMABUF_H
#define RMP_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include "region.h"

/* Part of the region room. */

struct dma_buf_attachment;

/**
 * struct rmp_dmabuf_link - the buffer of a region on a device that does DMA
 * @region: which outlives it
 * @attach: the attachment
 * @sgt: of the exporter; guarded by the reservation of the buffer. When set, the
 *	buffer is pinned and mapped for the device
 * @dir: of DMA
 * @addrs: for each page of the region, where the device finds it
 */
struct rmp_dmabuf_link {
	struct rmp_region *region;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	u64 addrs[];
};

#ifdef CONFIG_DMA_SHARED_BUFFER
/* Finds the buffer that a new region is a range of. The caller's descriptor. -EBADF,
 * -EINVAL (of something else), -ERANGE, -ENOMEM, with the reason in @error.
 */
int rmp_dmabuf_get(struct rmp_region *region,
		   const struct rmpool_region_add *arg,
		   struct rmpool_error *error);
/* When nothing reaches it any more, also for regions that have none. Sleeps. */
void rmp_dmabuf_put(struct rmp_region *region);

/**
 * rmp_dmabuf_reach - make a device reach the buffer
 * @region: of a buffer, by the one who may change its mappings
 * @dev: the device
 * @dir: of DMA
 * @error: reason, if it cannot
 *
 * Returns a link, or NULL for a software device: then @region->pages are there.
 * ERR_PTR: -EOPNOTSUPP when this device cannot reach it, -ENOMEM, -EINTR. Sleeps.
 */
struct rmp_dmabuf_link *rmp_dmabuf_reach(struct rmp_region *region,
					 struct rmp_device *dev,
					 enum dma_data_direction dir,
					 struct rmpool_error *error);
/* When the device cannot reach it any more. Sleeps. */
void rmp_dmabuf_unlink(struct rmp_dmabuf_link *link);

/* Instead, when the device may still reach it: all stays as it is, for good. Sleeps. */
void rmp_dmabuf_abandon(struct rmp_dmabuf_link *link);

/* A table with the device addresses of @length bytes, from @offset on in page
 * @first, and nothing else; entries of @max bytes at most. -ENOMEM.
 */
int rmp_dmabuf_table(const struct rmp_dmabuf_link *link, unsigned long first,
		     u32 offset, u64 length, u32 max, struct sg_table *sgt);
#else
static inline int rmp_dmabuf_get(struct rmp_region *region,
				 const struct rmpool_region_add *arg,
				 struct rmpool_error *error)
{
	error->reason = RMPOOL_REASON_DMABUF_NONE;
	return -EOPNOTSUPP;
}

static inline void rmp_dmabuf_put(struct rmp_region *region)
{
}

static inline struct rmp_dmabuf_link *
rmp_dmabuf_reach(struct rmp_region *region, struct rmp_device *dev,
		 enum dma_data_direction dir, struct rmpool_error *error)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void rmp_dmabuf_unlink(struct rmp_dmabuf_link *link)
{
}

static inline void rmp_dmabuf_abandon(struct rmp_dmabuf_link *link)
{
}

static inline int rmp_dmabuf_table(const struct rmp_dmabuf_link *link,
				   unsigned long first, u32 offset, u64 length,
				   u32 max, struct sg_table *sgt)
{
	return -EOPNOTSUPP;
}
#endif /* CONFIG_DMA_SHARED_BUFFER */

#endif /* RMP_DMABUF_H */
