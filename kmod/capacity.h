/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CAPACITY_H
#define RMP_CAPACITY_H

#include "device.h"

/* Part of the device room; the region room asks it for room on a device. */

/* Reads what the device says it can do; the device is new. */
void rmp_capacity_init(struct rmp_device *dev);

/* Counts MRs and pages of them as used; all or nothing. -ENOMEM with the limit in
 * @error. Any context.
 */
int rmp_capacity_take(struct rmp_device *dev, u64 mrs, u64 pages,
		      struct rmpool_error *error);
void rmp_capacity_give(struct rmp_device *dev, u64 mrs, u64 pages);

/* Pages of all MRs of a device together, at most; U64_MAX: no limit. */
u64 rmp_capacity_pages(void);
/* MRs of a device, at most; U64_MAX: no limit. */
u64 rmp_capacity_mrs(const struct rmp_device *dev);
/* Largest chunk of memory whose pages are 1 << @page_shift bytes (PAGE_SIZE at
 * least), as a shift.
 */
u32 rmp_capacity_chunk_shift(const struct rmp_device *dev, u32 page_shift);
/* What a region that does not ask for strict order gets there. */
enum rmpool_ordering rmp_capacity_ordering(const struct rmp_device *dev);

#endif /* RMP_CAPACITY_H */
