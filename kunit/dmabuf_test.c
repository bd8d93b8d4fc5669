// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/dmabuf.c, with what mapping.c and attach.c do for it. The dma-buf core
 * is the kernel's own; the exporter is played, and with it what devices find where.
 */
#include <linux/delay.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/vmalloc.h>
#include "region_world.h"

#define ALL_SIZES	(~0xfffULL)
/* The name of a region, which has nothing to do with places in the buffer. */
#define NAME		0xfff0000000000123ULL

/* The exporter. Page i of its buffer is page @layout of the world. */
static struct {
	u32 pages;
	u32 longest;		/* pages in an entry of its tables */
	u32 refused;		/* devices, a mask: attached, but not mapped */
	int refused_with;
	u32 too_short;		/* pages that its tables have less */
	u32 shift;		/* bytes that addresses are beside those of pages */
	bool iomem;
	int error;		/* of attach() */
	struct page *compound;	/* of huge pages: the first one is mapped instead */
	int attached, pinned, mapped, vmapped, accessed;
	int exported, released;
} exporter;

static struct page *page_of(u64 i)
{
	if (exporter.compound)
		return exporter.compound + i;
	return world.pages + world.layout(0, i);
}

static struct device played_device[DEVICES];

static int play_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	int ret = exporter.error ?: may_fail(-EBUSY);

	if (!ret)
		exporter.attached++;
	return ret;
}

static void play_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	exporter.attached--;
}

static int play_pin(struct dma_buf_attachment *attach)
{
	int ret = may_fail(-EBUSY);

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!ret)
		exporter.pinned++;
	return ret;
}

static void play_unpin(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	exporter.pinned--;
}

static struct sg_table *play_map(struct dma_buf_attachment *attach,
				 enum dma_data_direction dir)
{
	u32 nr = exporter.pages - exporter.too_short, i, n, entries = 0;
	u32 index = attach->dev - played_device;
	int ret = may_fail(-ENXIO);
	struct scatterlist *sg;
	struct sg_table *sgt;

	if (exporter.refused & BIT(index))
		ret = exporter.refused_with;
	if (ret)
		return ERR_PTR(ret);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	/* More than there will be; those at the end are of nothing. */
	if (sg_alloc_table(sgt, nr, GFP_KERNEL)) {
		kfree(sgt);
		return ERR_PTR(-ENOMEM);
	}
	sg = sgt->sgl;
	for (i = 0; i < nr; i += n, entries++) {
		for (n = 1; i + n < nr && n < exporter.longest; n++) {
			if (page_of(i + n) != page_of(i) + n)
				break;
		}
		sg_dma_address(sg) = page_to_phys(page_of(i)) + exporter.shift;
		sg_dma_len(sg) = n * PAGE_SIZE;
		sg = sg_next(sg);
	}
	sgt->nents = entries;
	exporter.mapped++;
	return sgt;
}

static void play_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
	sg_free_table(sgt);
	kfree(sgt);
	exporter.mapped--;
}

static int play_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct page **pages;
	void *at;
	u32 i;

	if (exporter.iomem) {
		iosys_map_set_vaddr_iomem(map, (void __iomem __force *)
					  page_address(world.pages));
		exporter.vmapped++;
		return 0;
	}
	pages = kvmalloc_array(exporter.pages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < exporter.pages; i++)
		pages[i] = exporter.compound ?: page_of(i);
	at = vmap(pages, exporter.pages, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!at)
		return -ENOMEM;
	iosys_map_set_vaddr(map, at);
	exporter.vmapped++;
	return 0;
}

static void play_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	if (!map->is_iomem)
		vunmap(map->vaddr);
	exporter.vmapped--;
}

static int play_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	int ret = may_fail(-EIO);

	if (!ret)
		exporter.accessed++;
	return ret;
}

static int play_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	exporter.accessed--;
	return 0;
}

static void play_release(struct dma_buf *buf)
{
	exporter.released++;
}

static const struct dma_buf_ops still_ops = {
	.attach = play_attach,
	.detach = play_detach,
	.map_dma_buf = play_map,
	.unmap_dma_buf = play_unmap,
	.vmap = play_vmap,
	.vunmap = play_vunmap,
	.begin_cpu_access = play_begin,
	.end_cpu_access = play_end,
	.release = play_release,
};

/* Can move its buffers, as long as they are not pinned. */
static const struct dma_buf_ops moving_ops = {
	.attach = play_attach,
	.detach = play_detach,
	.pin = play_pin,
	.unpin = play_unpin,
	.map_dma_buf = play_map,
	.unmap_dma_buf = play_unmap,
	.vmap = play_vmap,
	.vunmap = play_vunmap,
	.begin_cpu_access = play_begin,
	.end_cpu_access = play_end,
	.release = play_release,
};

static const struct dma_buf_ops mapless_ops = {
	.attach = play_attach,
	.detach = play_detach,
	.map_dma_buf = play_map,
	.unmap_dma_buf = play_unmap,
	.release = play_release,
};

/* A buffer of so many pages, in place of the one before. */
static void export_buffer(struct kunit *test, const struct dma_buf_ops *ops,
			  u32 pages)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;

	info.ops = ops;
	info.size = (size_t)pages << PAGE_SHIFT;
	info.flags = O_RDWR;
	info.priv = &exporter;
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, buf);
	if (world.buffer)
		dma_buf_put(world.buffer);
	world.buffer = buf;
	exporter.pages = pages;
	exporter.exported++;
}

static u64 in_a_row(u64 addr, unsigned long i)
{
	return i;
}

static u64 runs(u64 addr, unsigned long i)
{
	return (i / 16 * 7 * 16 + i % 16) % WORLD_PAGES;
}

static u64 (*const layouts[])(u64 addr, unsigned long i) = {
	in_a_row, runs, scattered,
};

static int dmabuf_init(struct kunit *test)
{
	memset(&exporter, 0, sizeof(exporter));
	exporter.longest = U32_MAX;
	max_device_pages = 0;
	max_device_mrs = 0;
	max_chunk_mib = 64;
	return region_init(test);
}

static void expect_given_back(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, exporter.attached, 0);
	KUNIT_EXPECT_EQ(test, exporter.pinned, 0);
	KUNIT_EXPECT_EQ(test, exporter.mapped, 0);
	KUNIT_EXPECT_EQ(test, exporter.vmapped, 0);
	KUNIT_EXPECT_EQ(test, exporter.accessed, 0);
}

static void dmabuf_exit(struct kunit *test)
{
	int i;

	region_exit(test);
	expect_given_back(test);
	if (world.buffer)
		dma_buf_put(world.buffer);
	/* Files are closed a little later. */
	for (i = 0; i < 10000 && READ_ONCE(exporter.released) < exporter.exported; i++) {
		flush_delayed_fput();
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, exporter.released, exporter.exported);
}

static struct rmp_device *device_with(struct kunit *test, u32 index, u32 pages,
				      bool software)
{
	struct rmp_device *dev;

	world.ibdev[index]->attrs.page_size_cap = ALL_SIZES;
	world.ibdev[index]->dma_device = software ? NULL : &played_device[index];
	if (software)
		world.software |= BIT(index);
	else
		world.software &= ~BIT(index);
	dev = device_make(test, index, pages);
	rmp_region_device_added(dev);
	return dev;
}

static int add_part(u64 start, u64 length, u32 access, u32 *handle,
		    struct rmpool_error *error)
{
	struct rmpool_region_add arg = {
		.addr = NAME, .length = length, .access = access,
		.flags = RMPOOL_REGION_DMABUF,
		.dmabuf_fd = 5, .dmabuf_offset = start,
	};
	int ret = rmp_region_add(&world.mem, &arg, NULL);

	*handle = arg.handle;
	*error = arg.error;
	return ret;
}

static struct rmp_region *region_of(u32 handle)
{
	return xa_load(&world.mem.handles, handle);
}

/* Each byte of a region on one device: there, and where the exporter has it. */
static void check_device(struct kunit *test, u32 handle, u32 index, u64 start)
{
	struct rmp_region *region = region_of(handle);
	const struct rmp_mapping *map = region->maps[index];
	u64 pos, left, iova, at, in, found = 0;
	const struct played_mr *mr = NULL;
	u32 key, chunk;

	KUNIT_ASSERT_NOT_NULL(test, map);
	for (pos = 0; pos < region->length; pos += left) {
		left = rmp_region_local(region, 0, index, pos, &iova, &key);
		KUNIT_ASSERT_NE(test, left, 0);
		for (chunk = 0; chunk < map->nr_chunks; chunk++) {
			mr = container_of(map->chunks[chunk].mr, struct played_mr, mr);
			if (mr->mr.lkey == key)
				break;
		}
		KUNIT_ASSERT_LT(test, chunk, map->nr_chunks);
		KUNIT_ASSERT_EQ(test, mr->nr, map->chunks[chunk].pages);
		KUNIT_ASSERT_GE(test, iova, mr->mr.iova);
		KUNIT_ASSERT_LE(test, iova + left, mr->mr.iova + mr->mr.length);
		found += mr->mr.length;
		for (in = 0; in < left; in += PAGE_SIZE - offset_in_page(iova + in)) {
			at = mr->page[(iova + in) / mr->mr.page_size -
				      mr->mr.iova / mr->mr.page_size] +
			     (iova + in) % mr->mr.page_size;
			KUNIT_ASSERT_EQ(test, at,
					page_to_phys(page_of((start + pos + in) >>
							     PAGE_SHIFT)) +
					offset_in_page(start + pos + in));
		}
	}
	/* Exactly the bytes asked for. */
	KUNIT_EXPECT_EQ(test, found, region->length);
}

static void test_ranges(struct kunit *test)
{
	static const struct {
		u64 start, length;
	} bad[] = {
		{ 10 * PAGE_SIZE, 1 }, { 0, 10 * PAGE_SIZE + 1 }, { 1, 10 * PAGE_SIZE },
		{ 10 * PAGE_SIZE - 1, 2 }, { U64_MAX, 1 }, { U64_MAX - 4, 4 },
		{ U64_MAX - 4, 5 }, { U64_MAX - 4, 6 }, { U64_MAX, 0xffffffffffff },
	};
	struct rmpool_error error;
	u32 handle, i;

	device_with(test, 0, 16, false);
	KUNIT_EXPECT_EQ(test, add_part(0, 1, 0, &handle, &error), -EBADF);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_FD);
	KUNIT_EXPECT_EQ(test, error.need, 5);
	export_buffer(test, &still_ops, 10);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, add_part(bad[i].start, bad[i].length, 0, &handle,
						   &error), -ERANGE, "%u", i);
		KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_RANGE);
		KUNIT_EXPECT_EQ(test, error.limit, 10 * PAGE_SIZE);
		KUNIT_EXPECT_GT(test, error.need, error.limit);
		KUNIT_EXPECT_EQ(test, world.charged, 0);
	}
	KUNIT_EXPECT_EQ(test, add_part(10 * PAGE_SIZE - 1, 1, 0, &handle, &error), 0);
	check_device(test, handle, 0, 10 * PAGE_SIZE - 1);
	KUNIT_EXPECT_EQ(test, add_part(0, 10 * PAGE_SIZE, 0, &handle, &error), 0);
	check_device(test, handle, 0, 0);
	/* Its pages are the exporter's affair. */
	KUNIT_EXPECT_EQ(test, world.charged, 11);
	KUNIT_EXPECT_EQ(test, world.memlock, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	/* Those of a region of memory beside it are the owner's. */
	KUNIT_EXPECT_EQ(test, region_add(BASE, PAGE_SIZE, 0, &handle), 0);
	KUNIT_EXPECT_EQ(test, world.charged, 12);
	KUNIT_EXPECT_EQ(test, world.memlock, 1);
	KUNIT_EXPECT_EQ(test, world.pinned, 1);
}

/* Ranges of any place and length, on devices of both kinds. */
static void test_places(struct kunit *test)
{
	u32 n, i, nr, handle, mapped, soft;
	struct rmpool_error error;
	u64 start, length, size;
	bool moving;

	for (n = 0; n < 200; n++) {
		world.layout = layouts[below(ARRAY_SIZE(layouts))];
		exporter.longest = below(3) ? U32_MAX : 1 + (u32)below(20);
		moving = below(2);
		export_buffer(test, moving ? &moving_ops : &still_ops,
			      1 + (u32)below(WORLD_PAGES));
		max_chunk_mib = 1U << below(5);
		nr = 1 + (u32)below(3);
		for (i = 0; i < nr; i++)
			device_with(test, i, 1U << below(10), below(3) == 0);
		size = (u64)exporter.pages << PAGE_SHIFT;
		start = below(size);
		length = 1 + below(size - start);
		soft = hweight32(world.software & (BIT(nr) - 1));
		mapped = nr - soft;
		/* Software devices cannot be told that a buffer moves. */
		if (moving && !mapped) {
			KUNIT_EXPECT_EQ(test, add_part(start, length, 0, &handle, &error),
					-EOPNOTSUPP);
			goto gone;
		}
		KUNIT_ASSERT_EQ(test, add_part(start, length, RMPOOL_ACCESS_LOCAL_WRITE,
					       &handle, &error), 0);
		if (moving)
			soft = 0;
		KUNIT_EXPECT_EQ(test, exporter.attached, mapped + !!soft);
		/* The core may pin it as well. */
		KUNIT_EXPECT_GE(test, exporter.pinned, moving ? mapped : 0);
		KUNIT_EXPECT_EQ(test, exporter.mapped, mapped);
		/* Once for all software devices. */
		KUNIT_EXPECT_EQ(test, exporter.vmapped, !!soft);
		KUNIT_EXPECT_EQ(test, exporter.accessed, !!soft);
		for (i = 0; i < nr; i++) {
			if (moving && world.software & BIT(i))
				KUNIT_EXPECT_NULL(test, region_of(handle)->maps[i]);
			else
				check_device(test, handle, i, start);
		}
		KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
gone:
		expect_given_back(test);
		for (i = 0; i < nr; i++)
			device_go(i);
	}
}

/* Where a buffer begins at a huge page, so do pages of memory regions. */
static void test_huge(struct kunit *test)
{
	struct rmp_region_usage usage;
	struct rmpool_error error;
	u32 handle;

	world.layout = in_a_row;
	export_buffer(test, &still_ops, WORLD_PAGES);
	device_with(test, 0, 512, false);
	KUNIT_ASSERT_EQ(test, add_part(0, SZ_4M, 0, &handle, &error), 0);
	check_device(test, handle, 0, 0);
	rmp_region_usage(region_of(handle), &usage);
	/* Chunks are for small pages. */
	KUNIT_EXPECT_EQ(test, usage.mrs, 2);
	KUNIT_EXPECT_EQ(test, usage.pages, 2);
}

/* Devices that cannot reach the buffer are left out, as long as there is one. */
static void test_unable(struct kunit *test)
{
	struct rmpool_error error;
	u32 handle;

	exporter.refused = BIT(0) | BIT(2);
	exporter.refused_with = -EOPNOTSUPP;
	export_buffer(test, &moving_ops, 10);
	device_with(test, 0, 16, false);
	KUNIT_EXPECT_EQ(test, add_part(0, 5000, 0, &handle, &error), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_REFUSED);
	KUNIT_EXPECT_EQ(test, error.need, EOPNOTSUPP);
	expect_given_back(test);
	device_with(test, 1, 16, false);
	KUNIT_ASSERT_EQ(test, add_part(0, 5000, 0, &handle, &error), 0);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
	KUNIT_EXPECT_NULL(test, region_of(handle)->maps[0]);
	check_device(test, handle, 1, 0);
	/* The same for those that come later. */
	device_with(test, 2, 16, false);
	device_with(test, 3, 16, true);
	KUNIT_EXPECT_NULL(test, region_of(handle)->maps[2]);
	KUNIT_EXPECT_NULL(test, region_of(handle)->maps[3]);
	device_go(1);
	device_go(3);
	KUNIT_EXPECT_EQ(test, exporter.attached, 0);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	/* What passes is not the device's fault. */
	exporter.refused = 0;
	exporter.error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, add_part(0, 5000, 0, &handle, &error), -ENOMEM);
	exporter.error = -ERESTARTSYS;
	KUNIT_EXPECT_EQ(test, add_part(0, 5000, 0, &handle, &error), -EINTR);
	expect_given_back(test);
	KUNIT_EXPECT_EQ(test, world.charged, 0);
}

/* For software devices, it must be memory. */
static void test_no_memory(struct kunit *test)
{
	struct rmpool_error error;
	u32 handle;

	export_buffer(test, &still_ops, 10);
	exporter.iomem = true;
	device_with(test, 0, 16, true);
	KUNIT_EXPECT_EQ(test, add_part(5000, 5000, 0, &handle, &error), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_PAGES);
	KUNIT_EXPECT_EQ(test, error.need, PAGE_SIZE);
	expect_given_back(test);
	/* Others may have it all the same. */
	device_with(test, 1, 16, false);
	KUNIT_ASSERT_EQ(test, add_part(5000, 5000, 0, &handle, &error), 0);
	KUNIT_EXPECT_NULL(test, region_of(handle)->maps[0]);
	check_device(test, handle, 1, 5000);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	device_go(1);
	/* An exporter that does not map for the kernel. */
	exporter.iomem = false;
	export_buffer(test, &mapless_ops, 10);
	KUNIT_EXPECT_EQ(test, add_part(0, 5000, 0, &handle, &error), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_REFUSED);
	KUNIT_EXPECT_EQ(test, error.need, EINVAL);
	expect_given_back(test);
}

/* The first of a huge page in place of all of it: its bytes would go elsewhere. */
static void test_misplaced(struct kunit *test)
{
	struct rmpool_error error;
	u32 handle, pages;

	device_with(test, 0, 16, true);
	exporter.compound = alloc_pages(GFP_KERNEL | __GFP_COMP, 4);
	KUNIT_ASSERT_NOT_NULL(test, exporter.compound);
	for (pages = 1; pages <= 16; pages += 5) {
		export_buffer(test, &still_ops, pages);
		KUNIT_EXPECT_EQ(test, add_part(0, 1, 0, &handle, &error), -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_PAGES);
		KUNIT_EXPECT_EQ(test, error.need, 0);
		KUNIT_EXPECT_EQ(test, add_part((pages - 1) * PAGE_SIZE, 7, 0, &handle,
					       &error), -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, error.need, (pages - 1) * PAGE_SIZE);
		expect_given_back(test);
	}
	__free_pages(exporter.compound, 4);
	exporter.compound = NULL;
}

/* What an exporter says is not believed when it cannot be. */
static void test_bad_tables(struct kunit *test)
{
	struct rmpool_error error;
	u32 handle;

	export_buffer(test, &moving_ops, 10);
	device_with(test, 0, 16, false);
	exporter.too_short = 1;
	KUNIT_EXPECT_EQ(test, add_part(5, 10 * PAGE_SIZE - 5, 0, &handle, &error),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DMABUF_REFUSED);
	KUNIT_EXPECT_EQ(test, error.need, EIO);
	/* What it tells of is enough for this. */
	KUNIT_ASSERT_EQ(test, add_part(5, 9 * PAGE_SIZE - 5, 0, &handle, &error), 0);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	exporter.too_short = 0;
	exporter.shift = 512;
	KUNIT_EXPECT_EQ(test, add_part(5, 5, 0, &handle, &error), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, error.need, EIO);
	expect_given_back(test);
}

static void take_back(void)
{
	dma_resv_lock(world.buffer->resv, NULL);
	dma_buf_move_notify(world.buffer);
	dma_resv_unlock(world.buffer->resv);
}

/* The exporter takes it back: nothing reaches it soon, and nothing does again. */
static void test_lost(struct kunit *test)
{
	struct rmp_region *region, *found;
	struct rmpool_error error;
	u32 handle;

	export_buffer(test, &moving_ops, 10);
	device_with(test, 0, 16, false);
	device_with(test, 1, 16, false);
	KUNIT_ASSERT_EQ(test, add_part(5, 5000, 0, &handle, &error), 0);
	region = region_of(handle);
	KUNIT_EXPECT_EQ(test, exporter.mapped, 2);
	take_back();
	KUNIT_EXPECT_TRUE(test, rmp_region_stale(region));
	/* As the work item of watch.c does. */
	rmp_region_settled(region);
	rmp_regions_settled();
	KUNIT_EXPECT_EQ(test, world.settled, 1);
	expect_given_back(test);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
	KUNIT_EXPECT_EQ(test, world.dev[0]->mrs, 0);
	device_with(test, 2, 16, false);
	device_go(1);
	expect_given_back(test);
	down_read(&world.mem.lock);
	found = rmp_region_find(&world.mem, NAME, 1, 0);
	up_read(&world.mem.lock);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(found), -ESTALE);
	KUNIT_ASSERT_EQ(test, rmp_region_del(&world.mem, handle), 0);
}

static void take_back_once(struct rmp_device *dev)
{
	struct rmp_region *region;
	unsigned long id = 0;

	world.meanwhile = NULL;
	take_back();
	region = rmp_region_next(&id);
	rmp_region_settled(region);
	rmp_region_put(region);
}

/* The same while it is registered. */
static void test_lost_meanwhile(struct kunit *test)
{
	struct rmpool_error error;
	u32 handle;

	export_buffer(test, &moving_ops, 10);
	device_with(test, 0, 16, false);
	device_with(test, 1, 16, false);
	world.meanwhile = take_back_once;
	KUNIT_EXPECT_EQ(test, add_part(5, 5000, 0, &handle, &error), -ESTALE);
	KUNIT_EXPECT_NULL(test, world.meanwhile);
	expect_given_back(test);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
	KUNIT_EXPECT_EQ(test, world.charged, 0);
}

/* A device does not let go of the memory: its attachment stays, and forgets the region. */
static void test_stuck(struct kunit *test)
{
	struct dma_buf_attachment *attach;
	struct rmp_dmabuf_link *link;
	struct rmpool_error error;
	struct rmp_dmabuf *dmabuf;
	struct sg_table *sgt;
	u32 handle;

	export_buffer(test, &moving_ops, 10);
	device_with(test, 0, 16, false);
	KUNIT_ASSERT_EQ(test, add_part(5, 5000, 0, &handle, &error), 0);
	dmabuf = region_of(handle)->dmabuf;
	attach = list_first_entry(&world.buffer->attachments,
				  struct dma_buf_attachment, node);
	link = attach->importer_priv;
	sgt = link->sgt;
	world.keep_memory = true;
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, handle), 0);
	world.keep_memory = false;
	KUNIT_EXPECT_EQ(test, exporter.attached, 1);
	KUNIT_EXPECT_EQ(test, exporter.mapped, 1);
	rcu_barrier();
	/* Nobody is left to be told of it. */
	take_back();
	/* In earnest all of this stays, and so do the domain and the module. */
	KUNIT_EXPECT_EQ(test, world.domain[0][0].users, 1);
	world.domain[0][0].users = 0;
	link->sgt = sgt;
	rmp_dmabuf_unlink(link);
	dma_buf_put(dmabuf->buf);
	kfree(dmabuf);
	module_put(THIS_MODULE);
	expect_given_back(test);
}

/* One call fails, then the next, and so on: nothing stays, or the device in question
 * is left out.
 */
static void test_unwinding(struct kunit *test)
{
	static const int errors[] = { 0, -ENOMEM, -EINTR, -EAGAIN };
	const struct dma_buf_ops *ops[] = { &still_ops, &moving_ops };
	u32 handle, n, e, o, fewer = 0;
	struct rmpool_error error;
	int ret;

	device_with(test, 0, 4, false);
	device_with(test, 1, 4, true);
	device_with(test, 3, 8, false);
	for (o = 0; o < ARRAY_SIZE(ops); o++) {
		export_buffer(test, ops[o], 64);
		for (e = 0; e < ARRAY_SIZE(errors); e++) {
			for (n = 1;; n++) {
				KUNIT_ASSERT_LT(test, n, 1000);
				world.calls = 0;
				world.fail_at = n;
				world.fail_with = errors[e];
				ret = add_part(77, 60 * PAGE_SIZE, 0, &handle, &error);
				if (!ret) {
					/* Without a device, or without a failure. */
					fewer += world.calls >= n;
					KUNIT_ASSERT_EQ(test,
							rmp_region_del(&world.mem, handle),
							0);
				}
				expect_given_back(test);
				KUNIT_ASSERT_EQ(test, world.charged, 0);
				KUNIT_ASSERT_EQ(test, world.mrs, 0);
				KUNIT_ASSERT_EQ(test, world.dma, 0);
				KUNIT_ASSERT_TRUE(test, xa_empty(&world.mem.handles));
				if (world.calls < n)
					break;
			}
		}
	}
	world.fail_at = 0;
	KUNIT_EXPECT_GT(test, fewer, 0);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(test_ranges),
	KUNIT_CASE(test_places),
	KUNIT_CASE(test_huge),
	KUNIT_CASE(test_unable),
	KUNIT_CASE(test_no_memory),
	KUNIT_CASE(test_misplaced),
	KUNIT_CASE(test_bad_tables),
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_lost_meanwhile),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_unwinding),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "rmp_dmabuf",
	.suite_init = suite_begin,
	.init = dmabuf_init,
	.exit = dmabuf_exit,
	.test_cases = dmabuf_cases,
};

kunit_test_suites(&dmabuf_suite);

MODULE_DESCRIPTION("KUnit suite of regions of dma-bufs");
MODULE_LICENSE("GPL");
