// SPDX-License-Identifier: GPL-2.0
/*
 * A region on one device, for one trust group: DMA addresses and fast-registration MRs.
 *
 * Each chunk has a scatter table and an MR of its own. The page array is cut
 * into chunks before it is mapped: ib_map_mr_sg() stops short of the end when
 * an entry of the table is larger than the MR. After that the MR gets its
 * address in the iova space of the region, which is the same on all devices
 * and does not tell where the memory is in the process.
 *
 * The page size of an MR is chosen when its DMA addresses are known: the largest
 * that they allow and the device has. How many pages that takes is told from
 * the memory itself before, so that room for them can be taken on all devices
 * before any work is done; without an IOMMU that is exact. With one, it may take
 * fewer or more, and then the room is put right.
 *
 * Of a dma-buf, the exporter tells the addresses for devices that do DMA (dmabuf.c),
 * for the whole region when the mapping is made; nothing is left to be mapped then.
 *
 * On iWARP the target of a read would need remote write access as well.
 *
 * Large regions are mapped on several devices at the same time, by work items that end
 * before the registration does, and when a signal is pending for its process.
 *
 * Locking: none of its own. A mapping has one writer: its maker until it is
 * published, then who holds rmp_late_lock of attach.c, and who takes it back. Ready
 * chunks do not change, readers look at @ready first.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "fit.h"
#include "capacity.h"
#include "dmabuf.h"
#include "mapping.h"
#include "segment.h"

/* MRs registered with one call. */
#define RMP_MAPPING_STEP	64U

/* From so many pages on, a millisecond and more of work, devices are mapped beside each
 * other.
 */
#define RMP_BESIDE_PAGES	1024UL

/* Where a chunk is: device addresses, and pages of the region. */
struct rmp_piece {
	u64 start;
	u64 length;
	unsigned long first;
	unsigned long nr;
};

static void rmp_chunk_piece(const struct rmp_region *region, u32 index,
			    struct rmp_piece *piece)
{
	u64 base = region->iova_base + ((u64)index << region->chunk_shift);
	u64 end = min(base + (1ULL << region->chunk_shift),
		      region->iova + region->length);

	piece->start = max(base, region->iova);
	piece->length = end - piece->start;
	piece->first = (piece->start >> PAGE_SHIFT) -
		       (region->iova >> PAGE_SHIFT);
	piece->nr = ((end - 1) >> PAGE_SHIFT) -
		    (piece->start >> PAGE_SHIFT) + 1;
}

static int rmp_mapping_access(const struct rmp_region *region,
			      const struct rmp_device *dev)
{
	int access = 0;

	if (region->access & (RMPOOL_ACCESS_LOCAL_WRITE |
			      RMPOOL_ACCESS_REMOTE_WRITE))
		access |= IB_ACCESS_LOCAL_WRITE;
	if (!region->strict && rmp_capacity_ordering(dev) == RMPOOL_ORDERING_ON)
		access |= IB_ACCESS_RELAXED_ORDERING;
	/* Nobody is told the keys of a region that is not published. */
	if (!region->segment || READ_ONCE(region->segment->dead))
		return access;
	if (region->access & RMPOOL_ACCESS_REMOTE_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (region->access & RMPOOL_ACCESS_REMOTE_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE;
	return access;
}

/* ----------------------------------------------------------------------- room */

/* How many of @nr pages, from the first on, are in a row. */
static unsigned long rmp_pages_run(struct page **pages, unsigned long nr)
{
	unsigned long first = page_to_pfn(pages[0]), n = 1;

	while (n < nr && page_to_pfn(pages[n]) == first + n)
		n++;
	return n;
}

unsigned long rmp_fit_add_pages(struct rmp_fit *fit, struct page **pages,
				unsigned long nr)
{
	unsigned long n = rmp_pages_run(pages, nr);

	rmp_fit_add(fit, page_to_phys(pages[0]), (u64)n << PAGE_SHIFT);
	return n;
}

/* Pages of the MR of a chunk, told from the memory. */
static u64 rmp_chunk_pages(const struct rmp_region *region, u32 index,
			   const struct rmp_mapping *map)
{
	struct rmp_piece piece;
	unsigned long i, page;
	struct rmp_fit fit;

	rmp_chunk_piece(region, index, &piece);
	rmp_fit_begin(&fit, piece.start & PAGE_MASK);
	for (i = 0; i < piece.nr;) {
		page = piece.first + i;
		if (map->link) {
			rmp_fit_add(&fit, map->link->addrs[page], PAGE_SIZE);
			i++;
		} else {
			i += rmp_fit_add_pages(&fit, region->pages + page,
					       piece.nr - i);
		}
		if (rmp_fit_at_most(&fit, PAGE_SHIFT))
			return piece.nr;
	}
	return rmp_fit_pages(&fit, rmp_fit_shift(&fit, map->dev->page_sizes));
}

/* Counts what was taken on, or is given back to, the device. */
static void rmp_mapping_count(struct rmp_mapping *map, s64 mrs, s64 pages)
{
	WRITE_ONCE(map->mrs, map->mrs + mrs);
	WRITE_ONCE(map->pages, map->pages + pages);
}

int rmp_mapping_reserve(struct rmp_mapping *map, const struct rmp_region *region,
			u32 index, struct rmpool_error *error)
{
	u64 pages = rmp_chunk_pages(region, index, map);
	int err;

	if (pages > map->dev->chunk_pages)
		return -E2BIG;
	err = rmp_capacity_take(map->dev, 1, pages, error);
	if (err)
		return err;
	map->chunks[index].pages = pages;
	rmp_mapping_count(map, 1, pages);
	return 0;
}

int rmp_mapping_reserve_all(struct rmp_mapping *map,
			    const struct rmp_region *region,
			    struct rmpool_error *error)
{
	u64 pages, all = 0;
	int err;
	u32 i;

	for (i = 0; i < map->nr_chunks; i++) {
		pages = rmp_chunk_pages(region, i, map);
		if (pages > map->dev->chunk_pages) {
			err = -E2BIG;
			goto err_pages;
		}
		map->chunks[i].pages = pages;
		all += pages;
		cond_resched();
	}
	err = rmp_capacity_take(map->dev, map->nr_chunks, all, error);
	if (err)
		goto err_pages;
	rmp_mapping_count(map, map->nr_chunks, all);
	return 0;

err_pages:
	/* Nothing was taken for any. */
	while (i--)
		map->chunks[i].pages = 0;
	return err;
}

static void rmp_chunk_give(struct rmp_mapping *map, struct rmp_chunk *chunk)
{
	rmp_capacity_give(map->dev, 1, chunk->pages);
	rmp_mapping_count(map, -1, -(s64)chunk->pages);
	chunk->pages = 0;
}

/* It takes @pages in fact. */
static int rmp_chunk_correct(struct rmp_mapping *map, struct rmp_chunk *chunk,
			     u64 pages, struct rmpool_error *error)
{
	int err;

	if (pages > map->dev->chunk_pages)
		return -E2BIG;
	if (pages > chunk->pages) {
		err = rmp_capacity_take(map->dev, 0, pages - chunk->pages, error);
		if (err)
			return err;
	} else if (pages < chunk->pages) {
		rmp_capacity_give(map->dev, 0, chunk->pages - pages);
	}
	rmp_mapping_count(map, 0, (s64)pages - chunk->pages);
	chunk->pages = pages;
	return 0;
}

/* ------------------------------------------------------------- map and unmap */

/* The page size for the DMA addresses of a chunk, as a shift; 0: none. */
static u32 rmp_chunk_fit(struct rmp_chunk *chunk, const struct rmp_piece *piece,
			 u64 sizes, u64 *pages)
{
	struct scatterlist *sg;
	struct rmp_fit fit;
	u32 shift;
	int i;

	rmp_fit_begin(&fit, piece->start);
	for_each_sgtable_dma_sg(&chunk->sgt, sg, i)
		rmp_fit_add(&fit, sg_dma_address(sg), sg_dma_len(sg));
	shift = rmp_fit_shift(&fit, sizes);
	if (shift)
		*pages = rmp_fit_pages(&fit, shift);
	return shift;
}

/* Whether the DMA addresses of chunks are to be unmapped one day. */
static bool rmp_mapping_keeps_tables(const struct rmp_mapping *map)
{
	return !map->link && !ib_uses_virt_dma(map->dev->ibdev);
}

static void rmp_chunk_dma_end(struct rmp_mapping *map, struct sg_table *sgt)
{
	if (rmp_mapping_keeps_tables(map))
		ib_dma_unmap_sgtable_attrs(map->dev->ibdev, sgt, map->dir,
					   map->attrs);
	sg_free_table(sgt);
}

/* The same as sg_alloc_table_from_pages_segment(), which looks at each page twice by calls
 * and takes a quarter of the time of an ibv_reg_mr() of the same memory with that.
 */
static int rmp_pages_table(struct page **pages, unsigned long nr, u32 offset,
			   u64 length, u32 max, struct sg_table *sgt)
{
	unsigned long most = max >> PAGE_SHIFT, i, n;
	struct scatterlist *sg;
	u32 entries = 0;
	u64 bytes;
	int err;

	for (i = 0; i < nr; i += n, entries++)
		n = rmp_pages_run(pages + i, min(nr - i, most));
	err = sg_alloc_table(sgt, entries, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	sg = sgt->sgl;
	for (i = 0; i < nr; i += n, sg = sg_next(sg)) {
		n = rmp_pages_run(pages + i, min(nr - i, most));
		bytes = min(((u64)n << PAGE_SHIFT) - offset, length);
		sg_set_page(sg, pages[i], bytes, offset);
		length -= bytes;
		offset = 0;
	}
	return 0;
}

/* The DMA addresses of a chunk, in an empty table. */
static int rmp_chunk_dma(struct rmp_mapping *map, struct rmp_region *region,
			 const struct rmp_piece *piece, struct sg_table *sgt)
{
	struct ib_device *ibdev = map->dev->ibdev;
	u32 max = ib_dma_max_seg_size(ibdev);
	int err;

	if (map->link)
		return rmp_dmabuf_table(map->link, piece->first,
					offset_in_page(piece->start),
					piece->length, max, sgt);
	err = rmp_pages_table(region->pages + piece->first, piece->nr,
			      offset_in_page(piece->start), piece->length, max,
			      sgt);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(ibdev, sgt, map->dir, map->attrs);
	if (err)
		sg_free_table(sgt);
	return err;
}

static int rmp_chunk_map(struct rmp_mapping *map, struct rmp_region *region,
			 u32 index, struct rmpool_error *error)
{
	struct rmp_chunk *chunk = &map->chunks[index];
	struct rmp_piece piece;
	struct ib_mr *mr;
	int err, n;
	u64 pages;
	u32 shift;

	rmp_chunk_piece(region, index, &piece);
	err = rmp_chunk_dma(map, region, &piece, &chunk->sgt);
	if (err)
		return err;

	shift = rmp_chunk_fit(chunk, &piece, map->dev->page_sizes, &pages);
	err = shift ? rmp_chunk_correct(map, chunk, pages, error) : -EIO;
	if (err)
		goto err_dma;
	mr = ib_alloc_mr(map->domain->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto err_dma;
	}
	n = ib_map_mr_sg(mr, chunk->sgt.sgl, chunk->sgt.nents, NULL, 1U << shift);
	if (n != (int)chunk->sgt.nents || mr->length != piece.length) {
		err = n < 0 ? n : -EIO;
		goto err_mr;
	}
	mr->iova = piece.start;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	chunk->mr = mr;

	/* Else they would be tens of bytes per page for nothing. */
	if (!rmp_mapping_keeps_tables(map))
		sg_free_table(&chunk->sgt);
	return 0;

err_mr:
	ib_dereg_mr(mr);
err_dma:
	rmp_chunk_dma_end(map, &chunk->sgt);
	return err;
}

static bool rmp_chunk_unmap(struct rmp_mapping *map, struct rmp_chunk *chunk)
{
	/* The table stays, too: the device may still use its addresses. */
	if (ib_dereg_mr(chunk->mr))
		return false;
	if (rmp_mapping_keeps_tables(map))
		rmp_chunk_dma_end(map, &chunk->sgt);
	return true;
}

/* Maps the @nr chunks in @todo and makes them ready. */
static int rmp_mapping_step(struct rmp_mapping *map, struct rmp_region *region,
			    const u32 *todo, u32 nr,
			    struct task_struct *owner,
			    struct rmpool_error *error)
{
	struct ib_mr *mrs[RMP_MAPPING_STEP];
	struct rmp_chunk *chunk;
	int err;
	u32 i;

	for (i = 0; i < nr; i++) {
		cond_resched();
		if (READ_ONCE(map->dev->going))
			return -ENODEV;
		if (owner && signal_pending(owner))
			return -EINTR;
		err = rmp_chunk_map(map, region, todo[i], error);
		if (err)
			return err;
		mrs[i] = map->chunks[todo[i]].mr;
	}
	err = rmp_domain_reg_mrs(map->domain, mrs, nr, map->access);
	if (err)
		return err;

	for (i = 0; i < nr; i++) {
		chunk = &map->chunks[todo[i]];
		chunk->lkey = chunk->mr->lkey;
		if (map->access & (IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE))
			chunk->rkey = chunk->mr->rkey;
	}
	return 0;
}

int rmp_mapping_fill(struct rmp_mapping *map, struct rmp_region *region,
		     struct task_struct *owner, struct rmpool_error *error)
{
	u32 todo[RMP_MAPPING_STEP];
	u32 i = 0, n;
	int err;

	while (i < map->nr_chunks) {
		for (n = 0; i < map->nr_chunks && n < RMP_MAPPING_STEP; i++) {
			if (map->chunks[i].pages && !map->chunks[i].mr)
				todo[n++] = i;
		}
		cond_resched();
		if (!n)
			continue;
		err = rmp_mapping_step(map, region, todo, n, owner, error);
		if (err) {
			rmp_mapping_trim(map);
			/* What fails on a device that goes is not to be blamed. */
			if (READ_ONCE(map->dev->going))
				return -EAGAIN;
			/* So say drivers that are full. */
			return err == -EAGAIN ? -ENOMEM : err;
		}
		atomic64_add(n, &region->chunks_done);
	}
	for (i = 0; i < map->nr_chunks; i++) {
		cond_resched();
		if (!map->chunks[i].mr || map->chunks[i].ready)
			continue;
		/* Pairs with the acquire loads of readers. */
		smp_store_release(&map->chunks[i].ready, true);
	}
	return 0;
}

/* One of several mappings that are filled at the same time. */
struct rmp_filling {
	struct work_struct work;
	struct rmp_mapping *map;
	struct rmp_region *region;
	struct task_struct *owner;
	struct mem_cgroup *memcg;
	struct rmpool_error error;
	int err;
};

static void rmp_filling_work(struct work_struct *work)
{
	struct rmp_filling *fill = container_of(work, struct rmp_filling, work);
	struct mem_cgroup *old = set_active_memcg(fill->memcg);

	fill->err = rmp_mapping_fill(fill->map, fill->region, fill->owner,
				     &fill->error);
	set_active_memcg(old);
}

/* The first in this process, the others beside it; what they take is the owner's. */
static void rmp_fillings_run(struct rmp_filling *fills, u32 nr)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(current->mm);
	u32 i;

	for (i = 0; i < nr; i++) {
		fills[i].owner = current;
		fills[i].memcg = memcg;
		INIT_WORK(&fills[i].work, rmp_filling_work);
		if (i)
			queue_work(system_unbound_wq, &fills[i].work);
	}
	rmp_filling_work(&fills[0].work);
	for (i = 1; i < nr; i++) {
		/* Not begun yet: this one is free. */
		if (cancel_work_sync(&fills[i].work))
			rmp_filling_work(&fills[i].work);
	}
	mem_cgroup_put(memcg);
}

static int rmp_mappings_fill_beside(struct rmp_mapping **maps,
				    struct rmp_region *region, int *errs,
				    struct rmpool_error *error)
{
	struct rmp_filling *fills, *fill;
	int err = 0;
	u32 i;

	fills = kcalloc(RMP_DEVICES_MAX, sizeof(*fills), GFP_KERNEL_ACCOUNT);
	if (!fills)
		return -ENOMEM;
	fill = fills;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!maps[i])
			continue;
		fill->region = region;
		fill->map = maps[i];
		fill++;
	}
	rmp_fillings_run(fills, fill - fills);

	fill = fills;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!maps[i])
			continue;
		errs[i] = fill->err;
		if (!err && fill->err && fill->err != -EAGAIN) {
			err = fill->err;
			*error = fill->error;
		}
		fill++;
	}
	kfree(fills);
	return err;
}

int rmp_mappings_fill(struct rmp_mapping **maps, struct rmp_region *region,
		      int *errs, struct rmpool_error *error)
{
	u32 i, nr = 0;
	int err = 0;

	for (i = 0; i < RMP_DEVICES_MAX; i++)
		nr += !!maps[i];
	if (nr > 1 && region->nr_pages >= RMP_BESIDE_PAGES)
		return rmp_mappings_fill_beside(maps, region, errs, error);

	for (i = 0; i < RMP_DEVICES_MAX && !err; i++) {
		if (!maps[i])
			continue;
		errs[i] = rmp_mapping_fill(maps[i], region, current, error);
		if (errs[i] != -EAGAIN)
			err = errs[i];
	}
	return err;
}

void rmp_mapping_trim(struct rmp_mapping *map)
{
	struct rmp_chunk *chunk;
	bool safe = true;
	u32 i;

	for (i = 0; i < map->nr_chunks; i++) {
		chunk = &map->chunks[i];
		cond_resched();
		if (!chunk->pages || chunk->ready)
			continue;
		if (chunk->mr && !rmp_chunk_unmap(map, chunk))
			safe = false;
		chunk->mr = NULL;
		rmp_chunk_give(map, chunk);
	}
	if (!safe) {
		map->stuck = true;
		pr_warn_ratelimited("%s: memory regions could not be freed\n",
				    dev_name(&map->dev->ibdev->dev));
	}
}

bool rmp_mapping_destroy(struct rmp_mapping *map)
{
	bool safe;
	u32 i;

	for (i = 0; i < map->nr_chunks; i++) {
		map->chunks[i].ready = false;
		cond_resched();
	}
	rmp_mapping_trim(map);
	safe = !map->stuck;
	/* As long as a device may use them, the exporter keeps the addresses. */
	if (map->link && safe)
		rmp_dmabuf_unlink(map->link);
	else if (map->link)
		rmp_dmabuf_abandon(map->link);
	/* Nor can the PD of an MR that is left go: it does with the device. */
	if (safe)
		rmp_domain_put(map->domain);
	rmp_device_put(map->dev);
	/* Dumps may still read its counts, and slices give it back. */
	rmp_region_unuse(map);
	return safe;
}

struct rmp_mapping *rmp_mapping_alloc(struct rmp_region *region,
				      struct rmp_device *dev, u32 group,
				      struct rmpool_error *error)
{
	struct rmp_dmabuf_link *link;
	struct rmp_mapping *map;
	int err;

	map = kvzalloc(struct_size(map, chunks, region->nr_chunks),
		       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!map)
		return ERR_PTR(-ENOMEM);
	atomic_set(&map->users, 1);
	map->access = rmp_mapping_access(region, dev);
	map->dir = map->access & IB_ACCESS_LOCAL_WRITE ? DMA_BIDIRECTIONAL :
							 DMA_TO_DEVICE;
	if (map->access & IB_ACCESS_RELAXED_ORDERING)
		map->attrs = DMA_ATTR_WEAK_ORDERING;
	map->nr_chunks = region->nr_chunks;
	map->domain = rmp_domain_get(dev, group);
	if (IS_ERR(map->domain)) {
		err = PTR_ERR(map->domain);
		goto err_free;
	}
	if (region->dmabuf) {
		link = rmp_dmabuf_reach(region, dev, map->dir, error);
		if (IS_ERR(link)) {
			err = PTR_ERR(link);
			goto err_domain;
		}
		map->link = link;
	}
	rmp_device_hold(dev);
	map->dev = dev;
	return map;

err_domain:
	rmp_domain_put(map->domain);
err_free:
	kvfree(map);
	return ERR_PTR(err);
}
