/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of regions play: pages that are pinned and charged, address ranges
 * that are watched, memory regions and DMA mappings of devices, references of
 * segments and devices. All of it is counted, and at the end of a case nothing may
 * be left.
 */
#ifndef RMP_REGION_WORLD_H
#define RMP_REGION_WORLD_H

#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/kthread.h>
#include "suite.h"
#undef pr_fmt
#include "region.c"
#include "memory.c"
#include "cache.c"
#include "attach.c"
#include "cut.c"
#include "deal.c"
#include "rekey.c"
#include "reach.c"
#include "group.c"
#include "chunk.c"
#include "fit.c"
#include "capacity.c"

#define BASE		0x100000UL
#define DEVICES		4
/* What lies behind the regions: these pages, in any order. */
#define WORLD_ORDER	10
#define WORLD_PAGES	BIT(WORLD_ORDER)

/* A memory region as a device would have it. */
struct played_mr {
	struct ib_mr mr;
	u32 max;		/* pages asked for */
	u32 nr;			/* pages mapped */
	int access;
	bool valid;
	u64 page[];
};

/* What is played. A countdown that reaches zero makes a call fail. */
static struct {
	u32 charged;
	u32 memlock;		/* of these */
	u32 pinned;
	u32 watched;
	int changed;
	int settled;
	u32 mrs;
	u32 dma;
	u32 segment_refs;
	u32 revoked;
	bool held;		/* peers do not let go of what is revoked */
	struct rmp_region *kept;	/* the last of it, until peers_let_go() */
	struct rmp_revocation *ending;	/* what the segment has to wait for */
	u32 rekeyed;
	/* peers are asked to let go of the old keys of a region */
	void (*asked)(struct rmp_region *region);
	u32 calls;
	unsigned int fail_at;
	int fail_with;		/* instead of what the call says */
	u32 serial;
	u64 last_offset;
	bool keep_memory;	/* devices do not let go of it */
	bool iommu;		/* addresses for devices are not those of memory */
	u32 software;		/* devices that do no DMA, a mask */
	struct dma_buf *buffer;	/* that a descriptor stands for, or NULL: for none */
	/* something happens while memory regions of @dev are made */
	void (*meanwhile)(struct rmp_device *dev);
	struct page *pages;
	/* page @i of a region at @addr; which of the world's it is */
	u64 (*layout)(u64 addr, unsigned long i);
	struct rmp_device *dev[DEVICES];
	struct ib_device *ibdev[DEVICES];
	struct ib_pd pd[DEVICES][RMP_GROUPS_MAX];
	struct rmp_domain domain[DEVICES][RMP_GROUPS_MAX];
	struct rmp_memory mem;
	struct rmp_segment segment;
} world;

/* Devices are mapped, and regions released, beside each other. */
static DEFINE_SPINLOCK(played_lock);

static u32 tally(u32 *what, int by)
{
	u32 now;

	spin_lock(&played_lock);
	*what += by;
	now = *what;
	spin_unlock(&played_lock);
	return now;
}

static int may_fail(int error)
{
	if (tally(&world.calls, 1) != world.fail_at)
		return 0;
	return world.fail_with ?: error;
}

static u64 scattered(u64 addr, unsigned long i)
{
	return 2 * i % WORLD_PAGES;
}

struct rmp_user *rmp_user_get(kuid_t uid)
{
	return (struct rmp_user *)&world;
}

void rmp_user_put(struct rmp_user *user)
{
}

int rmp_charge(struct rmp_memory *mem, unsigned long nr, bool memlock,
	       struct rmpool_error *error)
{
	int ret = may_fail(-ENOMEM);

	if (!ret) {
		tally(&world.charged, nr);
		tally(&world.memlock, memlock ? nr : 0);
	}
	return ret;
}

void rmp_uncharge(struct rmp_memory *mem, unsigned long nr, bool memlock)
{
	tally(&world.charged, -nr);
	tally(&world.memlock, memlock ? -nr : 0);
}

int rmp_kind_check(unsigned long addr, unsigned long length, bool write,
		   struct rmpool_error *error)
{
	return may_fail(-EOPNOTSUPP);
}

/* A failure in the middle: what is pinned by then is told. */
int rmp_pin(unsigned long addr, unsigned long nr, bool write, struct page **pages,
	    unsigned long *pinned, u64 *bad)
{
	int ret = may_fail(-EFAULT);
	unsigned long i;

	*pinned = ret ? nr / 2 : nr;
	*bad = addr + (*pinned << PAGE_SHIFT);
	tally(&world.pinned, *pinned);
	for (i = 0; i < *pinned; i++)
		pages[i] = world.pages + world.layout(addr, i);
	return ret;
}

void rmp_unpin(struct page **pages, unsigned long nr, bool dirty)
{
	tally(&world.pinned, -nr);
}

void rmp_watch_init(struct rmp_memory *mem)
{
}

void rmp_watch_exit(struct rmp_memory *mem)
{
}

int rmp_watch_begin(struct rmp_region *region)
{
	int ret = may_fail(-ENOMEM);

	if (!ret && !region->dmabuf) {
		region->watched = true;
		tally(&world.watched, 1);
	}
	return ret;
}

void rmp_watch_pinned(struct rmp_region *region)
{
	region->pinned = true;
}

void rmp_watch_lost(struct rmp_region *region)
{
	WRITE_ONCE(region->state, RMPOOL_REGION_STATE_STALE);
}

void rmp_watch_end(struct rmp_region *region)
{
	if (region->watched)
		tally(&world.watched, -1);
}

static bool played_virt_dma(struct ib_device *ibdev)
{
	u32 i;

	for (i = 0; i < DEVICES; i++) {
		if (world.ibdev[i] == ibdev)
			return world.software & BIT(i);
	}
	return false;
}

/* The rest of a buffer is as the kernel has it. */
static struct dma_buf *played_dma_buf_get(int fd)
{
	if (!world.buffer)
		return ERR_PTR(-EBADF);
	get_dma_buf(world.buffer);
	return world.buffer;
}

/* Addresses for the device: those of memory, or some that begin just anywhere and
 * do not jump.
 */
static int played_dma_map(struct ib_device *ibdev, struct sg_table *sgt,
			  enum dma_data_direction dir, unsigned long attrs)
{
	u64 at = 3 * (u64)SZ_1G + 5 * PAGE_SIZE;
	struct scatterlist *sg;
	int ret = may_fail(-EIO);
	int i;

	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		sg_dma_address(sg) = world.iommu ? at + sg->offset :
						   sg_phys(sg);
		sg_dma_len(sg) = sg->length;
		at += sg->offset + sg->length;
	}
	sgt->nents = sgt->orig_nents;
	/* A software device has nothing to be unmapped. */
	if (!played_virt_dma(ibdev))
		tally(&world.dma, 1);
	return 0;
}

static void played_dma_unmap(struct ib_device *ibdev, struct sg_table *sgt,
			     enum dma_data_direction dir, unsigned long attrs)
{
	tally(&world.dma, -1);
}

static struct ib_mr *played_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				     u32 pages)
{
	struct played_mr *mr;
	int ret = may_fail(-ENOMEM);

	if (ret)
		return ERR_PTR(ret);
	mr = kvzalloc(struct_size(mr, page, pages), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max = pages;
	mr->mr.device = pd->device;
	mr->mr.lkey = tally(&world.serial, 1) << 8;
	mr->mr.rkey = mr->mr.lkey;
	tally(&world.mrs, 1);
	return &mr->mr;
}

static int played_dereg_mr(struct ib_mr *ibmr)
{
	struct played_mr *mr = container_of(ibmr, struct played_mr, mr);

	tally(&world.mrs, -1);
	kvfree(mr);
	return world.keep_memory ? -EBUSY : 0;
}

/* As the RDMA core asks for it: pages begin at multiples of their size, and only
 * the first and the last may be touched in part.
 */
static int played_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sgl, int nents,
			    unsigned int *offset, unsigned int page_size)
{
	struct played_mr *mr = container_of(ibmr, struct played_mr, mr);
	u64 in_page = page_size - 1, end = 0, at;
	struct scatterlist *sg;
	int ret = may_fail(-EINVAL);
	bool joined;
	int i;

	if (ret)
		return ret;
	ibmr->page_size = page_size;
	ibmr->iova = sg_dma_address(sgl);
	for_each_sg(sgl, sg, nents, i) {
		at = sg_dma_address(sg);
		if (i && at != end && (at & in_page || end & in_page))
			return i;
		/* The rest of a page that the one before begins. */
		joined = i && at == end && end & in_page;
		end = at + sg_dma_len(sg);
		for (at &= ~in_page; at < end; at += page_size, joined = false) {
			if (joined)
				continue;
			if (mr->nr == mr->max)
				return i;
			mr->page[mr->nr++] = at;
		}
		ibmr->length += sg_dma_len(sg);
	}
	return nents;
}

int rmp_domain_reg_mrs(struct rmp_domain *domain, struct ib_mr **mrs, u32 nr,
		       int access)
{
	int ret = may_fail(-EIO);
	struct played_mr *mr;
	u32 i;

	if (world.meanwhile)
		world.meanwhile(domain->dev);
	for (i = 0; i < nr && !ret; i++) {
		mr = container_of(mrs[i], struct played_mr, mr);
		mr->access = access;
		mr->valid = true;
	}
	return ret;
}

#define ib_alloc_mr			played_alloc_mr
#define ib_dereg_mr			played_dereg_mr
#define ib_map_mr_sg			played_map_mr_sg
#define ib_dma_map_sgtable_attrs	played_dma_map
#define ib_dma_unmap_sgtable_attrs	played_dma_unmap
#define ib_uses_virt_dma		played_virt_dma
#define dma_buf_get			played_dma_buf_get
#include "dmabuf.c"
#include "mapping.c"

/* As in domain.c, without what the device makes. */
struct rmp_domain *rmp_domain_get(struct rmp_device *dev, u32 group)
{
	int ret = group == RMP_GROUP_DEFAULT ? 0 : may_fail(-ENOMEM);
	struct rmp_domain *domain = &world.domain[dev->index][group];

	if (ret)
		return ERR_PTR(ret);
	if (tally(&domain->users, 1) == 1) {
		domain->dev = dev;
		domain->group = group;
		domain->pd = &world.pd[dev->index][group];
		domain->pd->device = dev->ibdev;
	}
	return domain;
}

void rmp_domain_put(struct rmp_domain *domain)
{
	tally(&domain->users, -1);
}

void rmp_device_hold(struct rmp_device *dev)
{
	kref_get(&dev->ref);
}

static void device_released(struct kref *ref)
{
	kfree(container_of(ref, struct rmp_device, ref));
}

void rmp_device_put(struct rmp_device *dev)
{
	kref_put(&dev->ref, device_released);
}

/* The region takes its reference itself; only the last one would end here. */
void rmp_segment_put(struct rmp_segment *segment)
{
	tally(&world.segment_refs, -1);
	refcount_dec(&segment->ref.refcount);
}

int rmp_segment_insert(struct rmp_segment *segment, struct rmp_region *region,
		       u64 *offset)
{
	int ret;

	if (segment->groups & ~region->groups)
		return -EAGAIN;
	ret = may_fail(-EEXIST);
	if (!ret) {
		world.last_offset += 1 << 20;
		*offset = world.last_offset;
		region->offset = *offset;
	}
	return ret;
}

void rmp_segment_remove(struct rmp_segment *segment, struct rmp_region *region)
{
	tally(&world.revoked, 1);
	if (!world.held)
		return;
	kref_get(&region->ref);
	/* Pairs with the look of the test at it. */
	smp_store_release(&world.kept, region);
}

u32 rmp_segment_told(struct rmp_segment *segment, u32 access, u64 *from,
		     struct rmp_region **regions, u32 nr)
{
	struct rmp_region *region;
	unsigned long handle;
	u32 n = 0;

	xa_for_each(&world.mem.handles, handle, region) {
		if (n == nr || !region->told || !(region->access & access))
			continue;
		kref_get(&region->ref);
		region->told = false;
		regions[n++] = region;
	}
	return n;
}

struct rmp_region *rmp_segment_next(struct rmp_segment *segment, u64 *from,
				    u32 *groups)
{
	struct rmp_region *region;
	unsigned long handle = *from;

	*groups = segment->groups;
	region = xa_find(&world.mem.handles, &handle, ULONG_MAX, XA_PRESENT);
	if (!region)
		return NULL;
	kref_get(&region->ref);
	*from = handle + 1;
	return region;
}

struct rmp_revocation *rmp_segment_rekey(struct rmp_segment *segment,
					 struct rmp_region *region)
{
	tally(&world.rekeyed, 1);
	if (world.asked)
		world.asked(region);
	return NULL;
}

struct rmp_revocation *rmp_segment_ending(struct rmp_segment *segment)
{
	return xchg(&world.ending, NULL);
}

void rmp_revocation_put(struct rmp_revocation *rev)
{
}

bool rmp_revocation_wait(struct rmp_revocation *rev, bool killable)
{
	wait_for_completion(&rev->done);
	return true;
}

void rmp_segments_changed(void)
{
}

void rmp_segment_changed(struct rmp_segment *segment, const struct rmp_region *region)
{
	world.changed++;
}

static void settled(void)
{
	world.settled++;
}

static const struct rmp_region_ops played_ops = { .settled = settled };

/* What the cases do */

static struct rmp_device *device_make(struct kunit *test, u32 index,
				      u32 chunk_pages)
{
	struct rmp_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	kref_init(&dev->ref);
	dev->index = index;
	dev->ibdev = world.ibdev[index];
	dev->ibdev->attrs.max_fast_reg_page_list_len = chunk_pages;
	rmp_capacity_init(dev);
	world.dev[index] = dev;
	return dev;
}

static void device_go(u32 index)
{
	struct rmp_device *dev = world.dev[index];

	world.dev[index] = NULL;
	WRITE_ONCE(dev->going, true);
	rmp_region_device_removed(dev);
	rmp_device_put(dev);
}

static int region_init(struct kunit *test)
{
	int ret;
	u32 i;

	memset(&world, 0, sizeof(world));
	world.layout = scattered;
	for (i = 0; i < DEVICES; i++) {
		world.ibdev[i] = kunit_kzalloc(test, sizeof(*world.ibdev[i]),
					       GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, world.ibdev[i]);
		device_initialize(&world.ibdev[i]->dev);
	}
	world.pages = alloc_pages(GFP_KERNEL, WORLD_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, world.pages);
	kref_init(&world.segment.ref);
	ret = rmp_region_init(&played_ops);
	KUNIT_ASSERT_EQ(test, ret, 0);
	ret = rmp_rekey_init();
	KUNIT_ASSERT_EQ(test, ret, 0);
	rmp_memory_init(&world.mem, current->active_mm);
	suite_case(test);
	return 0;
}

/* Whatever a test did: at the end nothing is left. */
static void region_exit(struct kunit *test)
{
	u32 i;

	rmp_memory_kill(&world.mem);
	rmp_region_del_all(&world.mem);
	KUNIT_EXPECT_EQ(test, atomic64_read(&world.mem.pinned_pages), 0);
	rmp_memory_destroy(&world.mem);
	for (i = 0; i < DEVICES; i++) {
		if (!world.dev[i])
			continue;
		/* All room was given back. */
		KUNIT_EXPECT_EQ(test, world.dev[i]->mrs, 0);
		KUNIT_EXPECT_EQ(test, world.dev[i]->pages, 0);
		/* Ours and that of the table. */
		KUNIT_EXPECT_EQ(test, kref_read(&world.dev[i]->ref), 2);
		device_go(i);
	}
	rmp_rekey_exit();
	rmp_region_exit();
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, world.charged, 0);
	KUNIT_EXPECT_EQ(test, world.memlock, 0);
	KUNIT_EXPECT_EQ(test, world.pinned, 0);
	KUNIT_EXPECT_EQ(test, world.watched, 0);
	KUNIT_EXPECT_EQ(test, world.mrs, 0);
	KUNIT_EXPECT_EQ(test, world.dma, 0);
	for (i = 0; i < DEVICES * RMP_GROUPS_MAX && !world.keep_memory; i++)
		KUNIT_EXPECT_EQ(test, world.domain[i / RMP_GROUPS_MAX]
						  [i % RMP_GROUPS_MAX].users, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&world.segment.ref), 1);
	if (world.pages)
		__free_pages(world.pages, WORLD_ORDER);
}

static inline int region_add(u64 addr, u64 length, u32 access, u32 *handle)
{
	struct rmpool_region_add arg = {
		.addr = addr, .length = length, .access = access,
	};
	int ret = rmp_region_add(&world.mem, &arg, NULL);

	*handle = arg.handle;
	return ret;
}

#endif /* RMP_REGION_WORLD_H */
