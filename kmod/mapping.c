// SPDX-License-Identifier: GPL-2.0
/*
 * A region on one device: DMA addresses and fast-registration MRs.
 *
 * Each chunk has a scatter table and an MR of its own. The page array is cut
 * into chunks before it is mapped: ib_map_mr_sg() stops short of the end when
 * an entry of the table is larger than the MR. After that the MR gets its
 * address in the iova space of the region, which is the same on all devices
 * and does not tell where the memory is in the process.
 *
 * Relaxed ordering is not asked for: devices that have it set it by themselves
 * in MRs of this kind, and may refuse a request that names it. On iWARP the
 * target of a read would need remote write access as well.
 *
 * Locking: none. A mapping has one user until it is published, and one again
 * when it is taken back; in between it does not change.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "mapping.h"
#include "segment.h"

/* MRs registered with one call. */
#define RMP_MAPPING_STEP	64U

static int rmp_mapping_access(const struct rmp_region *region)
{
	int access = 0;

	if (region->access & (RMPOOL_ACCESS_LOCAL_WRITE |
			      RMPOOL_ACCESS_REMOTE_WRITE))
		access |= IB_ACCESS_LOCAL_WRITE;
	/* Nobody is told the keys of a region that is not published. */
	if (!region->segment || READ_ONCE(region->segment->dead))
		return access;
	if (region->access & RMPOOL_ACCESS_REMOTE_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (region->access & RMPOOL_ACCESS_REMOTE_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE;
	return access;
}

static int rmp_chunk_map(struct rmp_mapping *map, struct rmp_region *region,
			 u32 index)
{
	struct rmp_chunk *chunk = &map->chunks[index];
	struct ib_device *ibdev = map->dev->ibdev;
	unsigned long first, nr;
	u64 base, start, end;
	struct ib_mr *mr;
	int err, n;

	base = region->iova_base + ((u64)index << region->chunk_shift);
	start = max(base, region->iova);
	end = min(base + (1ULL << region->chunk_shift),
		  region->iova + region->length);
	first = (unsigned long)index << (region->chunk_shift - PAGE_SHIFT);
	nr = min(1UL << (region->chunk_shift - PAGE_SHIFT),
		 region->nr_pages - first);

	err = sg_alloc_table_from_pages_segment(&chunk->sgt,
						region->pages + first, nr,
						start - base, end - start,
						ib_dma_max_seg_size(ibdev),
						GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(ibdev, &chunk->sgt, map->dir, 0);
	if (err)
		goto err_table;

	mr = ib_alloc_mr(map->dev->data_pd, IB_MR_TYPE_MEM_REG, nr);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto err_unmap;
	}
	n = ib_map_mr_sg(mr, chunk->sgt.sgl, chunk->sgt.nents, NULL, PAGE_SIZE);
	if (n != (int)chunk->sgt.nents || mr->length != end - start) {
		err = n < 0 ? n : -EIO;
		goto err_mr;
	}
	mr->iova = start;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	chunk->mr = mr;

	/* Nothing is to be unmapped: tens of bytes per page for nothing. */
	if (ib_uses_virt_dma(ibdev))
		sg_free_table(&chunk->sgt);
	return 0;

err_mr:
	ib_dereg_mr(mr);
err_unmap:
	ib_dma_unmap_sgtable_attrs(ibdev, &chunk->sgt, map->dir, 0);
err_table:
	sg_free_table(&chunk->sgt);
	return err;
}

static bool rmp_chunk_unmap(struct rmp_mapping *map, struct rmp_chunk *chunk)
{
	struct ib_device *ibdev = map->dev->ibdev;

	/* The table stays, too: the device may still use its addresses. */
	if (ib_dereg_mr(chunk->mr))
		return false;
	if (!ib_uses_virt_dma(ibdev)) {
		ib_dma_unmap_sgtable_attrs(ibdev, &chunk->sgt, map->dir, 0);
		sg_free_table(&chunk->sgt);
	}
	return true;
}

static int rmp_mapping_step(struct rmp_mapping *map, struct rmp_region *region,
			    u32 first, u32 nr, int access, bool owner)
{
	struct ib_mr *mrs[RMP_MAPPING_STEP];
	struct rmp_chunk *chunk;
	int err;
	u32 i;

	for (i = 0; i < nr; i++) {
		cond_resched();
		if (READ_ONCE(map->dev->going))
			return -ENODEV;
		if (owner && signal_pending(current))
			return -EINTR;
		err = rmp_chunk_map(map, region, first + i);
		if (err)
			return err;
		mrs[i] = map->chunks[first + i].mr;
	}
	err = rmp_device_reg_mrs(map->dev, mrs, nr, access);
	if (err)
		return err;

	for (i = 0; i < nr; i++) {
		chunk = &map->chunks[first + i];
		chunk->lkey = chunk->mr->lkey;
		if (access & (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE))
			chunk->rkey = chunk->mr->rkey;
	}
	return 0;
}

static int rmp_mapping_reserve(struct rmp_device *dev, u32 nr,
			       struct rmpool_error *error)
{
	int max = dev->ibdev->attrs.max_mr;
	s64 used = atomic64_read(&dev->mrs);

	/* As with the charge: what does not fit must not refuse what does. */
	do {
		if (max > 0 && used + nr > max) {
			error->reason = RMPOOL_REASON_DEVICE_MRS;
			error->limit = max;
			error->used = used;
			error->need = nr;
			return -ENOMEM;
		}
	} while (!atomic64_try_cmpxchg(&dev->mrs, &used, used + nr));
	return 0;
}

bool rmp_mapping_destroy(struct rmp_mapping *map)
{
	bool safe = true;
	u32 i;

	for (i = 0; i < map->nr_chunks; i++) {
		if (map->chunks[i].mr && !rmp_chunk_unmap(map, &map->chunks[i]))
			safe = false;
		cond_resched();
	}
	if (!safe)
		pr_warn_ratelimited("%s: memory regions could not be freed\n",
				    dev_name(&map->dev->ibdev->dev));
	atomic64_sub(map->nr_chunks, &map->dev->mrs);
	rmp_device_put(map->dev);
	kvfree(map);
	return safe;
}

struct rmp_mapping *rmp_mapping_create(struct rmp_region *region,
				       struct rmp_device *dev, bool owner,
				       struct rmpool_error *error)
{
	int access = rmp_mapping_access(region);
	struct rmp_mapping *map;
	u32 i, n;
	int err;

	if (1UL << (region->chunk_shift - PAGE_SHIFT) > dev->chunk_pages)
		return ERR_PTR(-EOPNOTSUPP);

	map = kvzalloc(struct_size(map, chunks, region->nr_chunks),
		       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!map)
		return ERR_PTR(-ENOMEM);
	err = rmp_mapping_reserve(dev, region->nr_chunks, error);
	if (err) {
		kvfree(map);
		return ERR_PTR(err);
	}
	rmp_device_hold(dev);
	map->dev = dev;
	map->dir = access & IB_ACCESS_LOCAL_WRITE ? DMA_BIDIRECTIONAL :
						    DMA_TO_DEVICE;
	map->nr_chunks = region->nr_chunks;

	for (i = 0; i < map->nr_chunks; i += n) {
		n = min(map->nr_chunks - i, RMP_MAPPING_STEP);
		err = rmp_mapping_step(map, region, i, n, access, owner);
		if (err) {
			if (!rmp_mapping_destroy(map))
				region->stuck = true;
			return ERR_PTR(err);
		}
	}
	return map;
}
