/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_ATTACH_H
#define RMP_ATTACH_H

#include "region.h"

/* Part of the region room. */

/* Cuts a pinned region that is in the table of regions into chunks, and maps
 * it on all devices, or, if one has no room for all of it, each chunk on one. What
 * was done when it fails is taken back by rmp_region_detach(). -ENODEV when there
 * is no device, -EOPNOTSUPP when none can do strict order or reaches the dma-buf,
 * -ESTALE when that was taken back meanwhile, -EINTR, -ENOMEM.
 */
int rmp_region_attach(struct rmp_region *region, struct rmpool_error *error);
/* Its buffer is taken back, which is stale by now: returns when no device reaches it
 * any more. Requests that are with a device fail there. Sleeps.
 */
void rmp_region_lost(struct rmp_region *region);
/* When its last reference is gone; sets @stuck if a device kept its memory. */
void rmp_region_detach(struct rmp_region *region);

/* By rekey.c and reach.c, which change the mappings of attached regions as well; mutually exclusive
 * with all others who do. Sleeps.
 */
void rmp_maps_lock(void);
/* -EINTR. */
int rmp_maps_lock_interruptible(void);
void rmp_maps_unlock(void);
/* Locked: @new, or none, takes the place of @old, if that is still there and its device
 * is not going. The caller destroys @old when readers of before are done.
 */
bool rmp_map_replace(struct rmp_region *region, struct rmp_mapping *old,
		     struct rmp_mapping *new);
/* Locked: destroys a mapping that is in no region's table. */
void rmp_map_drop(struct rmp_region *region, struct rmp_mapping *map);
/* Locked: maps a region where it is not, for all groups that want it; the first error. */
int rmp_region_map_again(struct rmp_region *region);
/* Locked: maps a region on all devices for a group that has a place in it, and is mapped on
 * none. All or nothing; errors as of rmp_region_attach(), or -ENOENT: the group has no
 * peer any more.
 */
int rmp_region_map_group(struct rmp_region *region, u32 group,
			 struct rmpool_error *error);
/* Takes the mapping for a group on a device, if any, out of the region's table: to a list,
 * with a reference of the region. To be followed by synchronize_rcu(), and then, locked,
 * by the second one, which destroys all in the list.
 */
void rmp_map_take(struct rmp_region *region, u32 group, u32 index,
		  struct list_head *taken);
void rmp_maps_drop(struct list_head *taken);

/* By region.c: the first region from @id on, referenced; @id is then where it
 * was. Regions that are still being made are among them.
 */
struct rmp_region *rmp_region_next(unsigned long *id);

#endif /* RMP_ATTACH_H */
