// SPDX-License-Identifier: GPL-2.0
/*
 * What a device can do, as far as regions are concerned, and what it may hold.
 *
 * Every MR counts, and so does every page of its page list: cards keep both in
 * tables of their own, and some refuse all further work when those are full.
 * The parameters are the administrator's word on what a card can take; they can
 * be changed at any time and count for what is registered from then on.
 *
 * Relaxed ordering lets the PCIe bus reorder the writes of a transfer. The RDMA
 * core has the access flag, which drivers may ignore, and does not tell what they
 * make of it, so this is known by reading them: some set it in all MRs of
 * the kind that is used here and refuse to be asked, many drop the flag.
 * A driver that is not known is asked.
 *
 * Locking: rmp_device.capacity_lock guards the counts; a leaf. Dumps read them
 * without.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include "capacity.h"

/* Pages of one MR at most, whatever the device could take: its page list is made
 * in one go, in some ten microseconds.
 */
#define RMP_CHUNK_PAGES		4096U
/* Largest page: what chips have, and huge pages are not larger. */
#define RMP_PAGE_MAX		((u64)SZ_1G)
/* Responder resources travel in 8 bits, and 128 is what devices have. */
#define RMP_READ_LIMIT		128U

static unsigned int max_chunk_pages;
module_param(max_chunk_pages, uint, 0444);
MODULE_PARM_DESC(max_chunk_pages,
		 "Most pages of one memory region of a device (0: what it can, up to 4096)");

static unsigned int max_chunk_mib = 64;
module_param(max_chunk_mib, uint, 0644);
MODULE_PARM_DESC(max_chunk_mib,
		 "Most MiB that one memory region of a device covers, 1 to 1024 (default 64)");

static unsigned long max_device_pages;
module_param(max_device_pages, ulong, 0644);
MODULE_PARM_DESC(max_device_pages,
		 "Most pages of all memory regions of one device (0: no limit)");

static unsigned long max_device_mrs;
module_param(max_device_mrs, ulong, 0644);
MODULE_PARM_DESC(max_device_mrs,
		 "Most memory regions of one device (0: what it says it can)");

static bool relaxed_ordering = true;
module_param(relaxed_ordering, bool, 0644);
MODULE_PARM_DESC(relaxed_ordering,
		 "Ask devices for relaxed ordering of PCIe writes (Y)");

/* What a driver makes of relaxed ordering in MRs of fast registration. */
static enum rmpool_ordering rmp_driver_ordering(enum rdma_driver_id driver)
{
	switch (driver) {
	case RDMA_DRIVER_MLX5:
		return RMPOOL_ORDERING_FORCED;
	case RDMA_DRIVER_MLX4:
	case RDMA_DRIVER_CXGB4:
	case RDMA_DRIVER_HNS:
	case RDMA_DRIVER_IRDMA:
	case RDMA_DRIVER_BNXT_RE:
	case RDMA_DRIVER_OCRDMA:
	case RDMA_DRIVER_QEDR:
	case RDMA_DRIVER_QIB:
	case RDMA_DRIVER_HFI1:
	case RDMA_DRIVER_VMW_PVRDMA:
	case RDMA_DRIVER_ERDMA:
	case RDMA_DRIVER_RXE:
	case RDMA_DRIVER_SIW:
		return RMPOOL_ORDERING_UNSUPPORTED;
	default:
		return RMPOOL_ORDERING_ON;
	}
}

void rmp_capacity_init(struct rmp_device *dev)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	u32 pages = min_t(u32, attrs->max_fast_reg_page_list_len,
			  RMP_CHUNK_PAGES);

	if (max_chunk_pages)
		pages = min(pages, max_chunk_pages);
	spin_lock_init(&dev->capacity_lock);
	dev->chunk_pages = rounddown_pow_of_two(pages);
	/* Drivers that name no sizes can do the kernel's. */
	dev->page_sizes = (attrs->page_size_cap & (2 * RMP_PAGE_MAX - 1) &
			   PAGE_MASK) | PAGE_SIZE;
	dev->read_limit = min3((u32)attrs->max_qp_rd_atom,
			       (u32)attrs->max_qp_init_rd_atom,
			       RMP_READ_LIMIT);
	dev->ordering = rmp_driver_ordering(dev->ibdev->ops.driver_id);
}

u64 rmp_capacity_pages(void)
{
	unsigned long max = READ_ONCE(max_device_pages);

	return max ?: U64_MAX;
}

u64 rmp_capacity_mrs(const struct rmp_device *dev)
{
	unsigned long max = READ_ONCE(max_device_mrs);
	int can = dev->ibdev->attrs.max_mr;

	if (can <= 0)
		return max ?: U64_MAX;
	return max ? min_t(u64, max, can) : can;
}

u32 rmp_capacity_chunk_shift(const struct rmp_device *dev, u32 page_shift)
{
	u64 size = (u64)clamp(READ_ONCE(max_chunk_mib), 1U, 1024U) << 20;
	u64 pages = dev->page_sizes & GENMASK_ULL(page_shift, 0);
	u64 can = dev->ibdev->attrs.max_mr_size;

	if (can >= PAGE_SIZE)
		size = min(size, can);
	return min((u32)ilog2(size), (u32)ilog2(dev->chunk_pages) +
				     (u32)ilog2(pages));
}

enum rmpool_ordering rmp_capacity_ordering(const struct rmp_device *dev)
{
	if (dev->ordering == RMPOOL_ORDERING_ON && !READ_ONCE(relaxed_ordering))
		return RMPOOL_ORDERING_OFF;
	return dev->ordering;
}

int rmp_capacity_take(struct rmp_device *dev, u64 mrs, u64 pages,
		      struct rmpool_error *error)
{
	int err = 0;

	spin_lock(&dev->capacity_lock);
	if ((mrs && rmp_limit_met(rmp_capacity_mrs(dev), dev->mrs, mrs,
				  RMPOOL_REASON_DEVICE_MRS, error)) ||
	    rmp_limit_met(rmp_capacity_pages(), dev->pages, pages,
			  RMPOOL_REASON_DEVICE_PAGES, error)) {
		err = -ENOMEM;
	} else {
		WRITE_ONCE(dev->mrs, dev->mrs + mrs);
		WRITE_ONCE(dev->pages, dev->pages + pages);
	}
	spin_unlock(&dev->capacity_lock);
	return err;
}

void rmp_capacity_give(struct rmp_device *dev, u64 mrs, u64 pages)
{
	spin_lock(&dev->capacity_lock);
	WRITE_ONCE(dev->mrs, dev->mrs - mrs);
	WRITE_ONCE(dev->pages, dev->pages - pages);
	spin_unlock(&dev->capacity_lock);
}
