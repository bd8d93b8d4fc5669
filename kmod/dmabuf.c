// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of dma-bufs: memory that an exporter lends by a file descriptor, often the
 * driver of a GPU that of its device.
 *
 * How a device reaches it depends on the device:
 * - One that does DMA is attached to the buffer. The exporter pins it and tells
 *   where that device finds it: in memory, or on another device of the bus. From
 *   those addresses its MRs are made, as from those of memory.
 * - A software device copies with the processor. For all of them together, the
 *   exporter maps the buffer into the kernel, and the pages behind that mapping are
 *   taken as those of the owner's memory are. What is not memory has none. The
 *   first device is attached meanwhile, as some exporters keep a buffer in
 *   its place only as long as somebody is. One that moves its buffers all the same,
 *   unless they are pinned for a device that does DMA, cannot be reached so.
 * A device that cannot reach it is left out if there are others.
 *
 * What an exporter says is looked at before it is used: there must be enough of it,
 * in whole pages, and the pages must be memory.
 *
 * A buffer that is pinned, or attached where none can be, stays where it is. An
 * exporter whose device goes may have to take it back all the same, and tells that
 * by move_notify(): then the region is stale at once, and soon afterwards no
 * device reaches it any more (rmp_region_lost()).
 *
 * Locking: the reservation of a buffer is held around what dma-buf.c asks it for,
 * and by the exporter around move_notify(). It is taken within rmp_late_lock of
 * attach.c, and only watch_lock of the file is taken within it. All else has one
 * writer, the one who may change the mappings of the region.
 *
 * Lifetime: a region has a reference of its buffer until no device reaches that; the
 * descriptor is needed no longer than the call. A link belongs to the mapping of the
 * region on its device, and is gone before the region is.
 */
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>
#include "compat.h"
#include "dmabuf.h"
#include "watch.h"

RMP_IMPORT_NS(DMA_BUF);

/* Pages looked at without a chance for others: tens of microseconds. */
#define RMP_DMABUF_STEP	1024

/**
 * struct rmp_dmabuf - the buffer of a region
 * @buf: referenced
 * @attach: of the first software device, when the region has pages
 * @dev: of that attachment, referenced
 * @map: where it is in the kernel, when the region has pages
 * @dir: what processors do with it, when the region has pages
 */
struct rmp_dmabuf {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct device *dev;
	struct iosys_map map;
	enum dma_data_direction dir;
};

/* What the exporter, or what it says, makes impossible. */
static int dmabuf_refused(int err, struct rmpool_error *error)
{
	if (err == -EINTR || err == -ERESTARTSYS)
		return -EINTR;
	if (err == -ENOMEM)
		return err;
	memset(error, 0, sizeof(*error));
	error->reason = RMPOOL_REASON_DMABUF_REFUSED;
	error->need = -err;
	return -EOPNOTSUPP;
}

/* ------------------------------------------------------------- software devices */

/* The memory at an address of the kernel, or NULL: it is none. */
static struct page *dmabuf_page(void *at)
{
	struct page *page;

	if (is_vmalloc_addr(at))
		page = vmalloc_to_page(at);
	else
		page = virt_addr_valid(at) ? virt_to_page(at) : NULL;
	if (!page || !pfn_valid(page_to_pfn(page)) || is_zone_device_page(page))
		return NULL;
	return page;
}

/* Some exporters (udmabuf as of 6.12) map the first page of a huge one wherever one
 * of its pages should be. Then, and else seldom, the first is there without the
 * second behind it.
 */
static bool dmabuf_misplaced(struct page *page, struct page *next)
{
	return PageHead(page) && next != page + 1;
}

/* All pages of a region, out of the mapping of the whole buffer. */
static int dmabuf_look(struct rmp_region *region, struct page **pages,
		       struct rmpool_error *error)
{
	const struct iosys_map *map = &region->dmabuf->map;
	u64 at = region->start & PAGE_MASK;
	u64 end = region->dmabuf->buf->size;
	struct page *page, *next = NULL;
	unsigned long i;

	if (map->is_iomem || !PAGE_ALIGNED(map->vaddr))
		goto err_pages;
	for (i = 0; i < region->nr_pages; i++, at += PAGE_SIZE) {
		page = next ?: dmabuf_page(map->vaddr + at);
		next = at + PAGE_SIZE < end ?
		       dmabuf_page(map->vaddr + at + PAGE_SIZE) : NULL;
		if (!page || dmabuf_misplaced(page, next))
			goto err_pages;
		pages[i] = page;
		if (!(i % RMP_DMABUF_STEP))
			cond_resched();
	}
	return 0;

err_pages:
	memset(error, 0, sizeof(*error));
	error->reason = RMPOOL_REASON_DMABUF_PAGES;
	error->need = at;
	return -EOPNOTSUPP;
}

/* Lends the buffer to processors, mapped into the kernel. */
static int dmabuf_open(struct rmp_dmabuf *dmabuf, struct device *dev)
{
	struct dma_buf *buf = dmabuf->buf;
	int err;

	dmabuf->attach = dma_buf_attach(buf, dev);
	if (IS_ERR(dmabuf->attach))
		return PTR_ERR(dmabuf->attach);
	err = rmp_dma_buf_vmap(buf, &dmabuf->map);
	if (err)
		goto err_attach;
	err = dma_buf_begin_cpu_access(buf, dmabuf->dir);
	if (err)
		goto err_map;
	dmabuf->dev = get_device(dev);
	return 0;

err_map:
	rmp_dma_buf_vunmap(buf, &dmabuf->map);
err_attach:
	dma_buf_detach(buf, dmabuf->attach);
	return err;
}

static void dmabuf_close(struct rmp_dmabuf *dmabuf)
{
	dma_buf_end_cpu_access(dmabuf->buf, dmabuf->dir);
	rmp_dma_buf_vunmap(dmabuf->buf, &dmabuf->map);
	dma_buf_detach(dmabuf->buf, dmabuf->attach);
	put_device(dmabuf->dev);
}

static int dmabuf_find_pages(struct rmp_region *region, struct device *dev,
			     struct rmpool_error *error)
{
	struct rmp_dmabuf *dmabuf = region->dmabuf;
	struct page **pages;
	int err;

	if (region->pages)
		return 0;
	/* What can move stays only for who can be told of it. */
	if (dma_buf_is_dynamic(dmabuf->buf))
		return dmabuf_refused(-EOPNOTSUPP, error);
	pages = kvmalloc_array(region->nr_pages, sizeof(*pages),
			       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages)
		return -ENOMEM;
	dmabuf->dir = region->access & RMPOOL_ACCESS_LOCAL_WRITE ?
		      DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	err = dmabuf_open(dmabuf, dev);
	if (err) {
		err = dmabuf_refused(err, error);
		goto err_pages;
	}
	err = dmabuf_look(region, pages, error);
	if (err)
		goto err_open;
	region->pages = pages;
	return 0;

err_open:
	dmabuf_close(dmabuf);
err_pages:
	kvfree(pages);
	return err;
}

/* ----------------------------------------------------------- devices that do DMA */

/* The reservation is held. */
static void dmabuf_moves(struct dma_buf_attachment *attach)
{
	struct rmp_dmabuf_link *link = attach->importer_priv;

	/* Before it was pinned, it may. */
	if (link->sgt)
		rmp_watch_lost(link->region);
}

static const struct dma_buf_attach_ops dmabuf_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_moves,
};

/* Where the device finds each page; -EIO: the exporter does not tell of all. */
static int dmabuf_addresses(struct rmp_dmabuf_link *link, struct sg_table *sgt)
{
	const struct rmp_region *region = link->region;
	u64 start = region->start & PAGE_MASK, at = 0;
	struct scatterlist *sg;
	unsigned long nr = 0;
	u64 addr, end;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		addr = sg_dma_address(sg);
		end = at + sg_dma_len(sg);
		if (!PAGE_ALIGNED(addr) || !PAGE_ALIGNED(end))
			return -EIO;
		if (at < start) {
			addr += min(start, end) - at;
			at = min(start, end);
		}
		for (; at < end; at += PAGE_SIZE, addr += PAGE_SIZE) {
			link->addrs[nr++] = addr;
			if (nr == region->nr_pages)
				return 0;
			if (!(nr % RMP_DMABUF_STEP))
				cond_resched();
		}
	}
	return -EIO;
}

/* The buffer stays where it is from here on, and the device can reach it. */
static int dmabuf_map(struct rmp_dmabuf_link *link)
{
	struct dma_buf_attachment *attach = link->attach;
	struct dma_resv *resv = attach->dmabuf->resv;
	struct sg_table *sgt;
	long left;
	int err;

	dma_resv_lock(resv, NULL);
	err = dma_buf_pin(attach);
	if (err)
		goto err_unlock;
	sgt = dma_buf_map_attachment(attach, link->dir);
	if (IS_ERR(sgt)) {
		err = PTR_ERR(sgt);
		goto err_unpin;
	}
	/* Its bytes may still be on their way to where it is now. */
	left = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, false,
				     MAX_SCHEDULE_TIMEOUT);
	err = left < 0 ? left : dmabuf_addresses(link, sgt);
	if (err)
		goto err_unmap;
	link->sgt = sgt;
	dma_resv_unlock(resv);
	return 0;

err_unmap:
	dma_buf_unmap_attachment(attach, sgt, link->dir);
err_unpin:
	dma_buf_unpin(attach);
err_unlock:
	dma_resv_unlock(resv);
	return err;
}

static struct rmp_dmabuf_link *dmabuf_link(struct rmp_region *region,
					   struct rmp_device *dev,
					   enum dma_data_direction dir,
					   struct rmpool_error *error)
{
	struct dma_buf *buf = region->dmabuf->buf;
	struct dma_buf_attachment *attach;
	struct rmp_dmabuf_link *link;
	int err;

	link = kvzalloc(struct_size(link, addrs, region->nr_pages),
			GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!link)
		return ERR_PTR(-ENOMEM);
	link->region = region;
	link->dir = dir;
	attach = dma_buf_dynamic_attach(buf, dev->ibdev->dma_device,
					&dmabuf_attach_ops, link);
	if (IS_ERR(attach)) {
		err = PTR_ERR(attach);
		goto err_link;
	}
	link->attach = attach;
	err = dmabuf_map(link);
	if (err)
		goto err_attach;
	return link;

err_attach:
	dma_buf_detach(buf, attach);
err_link:
	kvfree(link);
	return ERR_PTR(dmabuf_refused(err, error));
}

void rmp_dmabuf_unlink(struct rmp_dmabuf_link *link)
{
	struct dma_buf_attachment *attach = link->attach;
	struct dma_buf *buf = attach->dmabuf;

	dma_resv_lock(buf->resv, NULL);
	dma_buf_unmap_attachment(attach, link->sgt, link->dir);
	link->sgt = NULL;
	dma_buf_unpin(attach);
	dma_resv_unlock(buf->resv);
	dma_buf_detach(buf, attach);
	kvfree(link);
}

void rmp_dmabuf_abandon(struct rmp_dmabuf_link *link)
{
	struct dma_resv *resv = link->attach->dmabuf->resv;

	dma_resv_lock(resv, NULL);
	link->sgt = NULL;
	dma_resv_unlock(resv);
	/* The exporter keeps the way to dmabuf_moves(). */
	__module_get(THIS_MODULE);
}

/* How many of @nr pages from @first on are in a row, up to @max. */
static unsigned long dmabuf_run(const struct rmp_dmabuf_link *link,
				unsigned long first, unsigned long nr,
				unsigned long max)
{
	unsigned long n = 1;

	while (n < nr && n < max &&
	       link->addrs[first + n] == link->addrs[first + n - 1] + PAGE_SIZE)
		n++;
	return n;
}

int rmp_dmabuf_table(const struct rmp_dmabuf_link *link, unsigned long first,
		     u32 offset, u64 length, u32 max, struct sg_table *sgt)
{
	unsigned long nr = (offset + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	unsigned long pages = max(max >> PAGE_SHIFT, 1U), i, n;
	struct scatterlist *sg;
	u32 entries = 0;
	u64 bytes;
	int err;

	for (i = 0; i < nr; i += n, entries++)
		n = dmabuf_run(link, first + i, nr - i, pages);
	err = sg_alloc_table(sgt, entries, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	sg = sgt->sgl;
	for (i = 0; i < nr; i += n, sg = sg_next(sg)) {
		n = dmabuf_run(link, first + i, nr - i, pages);
		bytes = min(((u64)n << PAGE_SHIFT) - offset, length);
		sg_dma_address(sg) = link->addrs[first + i] + offset;
		sg_dma_len(sg) = bytes;
		length -= bytes;
		offset = 0;
	}
	return 0;
}

/* -------------------------------------------------------------------- life cycle */

struct rmp_dmabuf_link *rmp_dmabuf_reach(struct rmp_region *region,
					 struct rmp_device *dev,
					 enum dma_data_direction dir,
					 struct rmpool_error *error)
{
	if (!ib_uses_virt_dma(dev->ibdev))
		return dmabuf_link(region, dev, dir, error);
	/* No error is NULL. */
	return ERR_PTR(dmabuf_find_pages(region, &dev->ibdev->dev, error));
}

int rmp_dmabuf_get(struct rmp_region *region,
		   const struct rmpool_region_add *arg,
		   struct rmpool_error *error)
{
	struct rmp_dmabuf *dmabuf;
	struct dma_buf *buf;
	u64 end;

	buf = dma_buf_get(arg->dmabuf_fd);
	if (IS_ERR(buf)) {
		error->reason = RMPOOL_REASON_DMABUF_FD;
		error->need = (u32)arg->dmabuf_fd;
		return PTR_ERR(buf);
	}
	if (check_add_overflow(arg->dmabuf_offset, arg->length, &end))
		end = U64_MAX;
	if (end > buf->size) {
		error->reason = RMPOOL_REASON_DMABUF_RANGE;
		error->limit = buf->size;
		error->need = end;
		dma_buf_put(buf);
		return -ERANGE;
	}
	dmabuf = kzalloc(sizeof(*dmabuf), GFP_KERNEL_ACCOUNT);
	if (!dmabuf) {
		dma_buf_put(buf);
		return -ENOMEM;
	}
	dmabuf->buf = buf;
	region->dmabuf = dmabuf;
	return 0;
}

void rmp_dmabuf_put(struct rmp_region *region)
{
	struct rmp_dmabuf *dmabuf = region->dmabuf;

	if (!dmabuf)
		return;
	if (region->pages)
		dmabuf_close(dmabuf);
	dma_buf_put(dmabuf->buf);
	kfree(dmabuf);
}
