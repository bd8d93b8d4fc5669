/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_WATCH_H
#define RMP_WATCH_H

#include "region.h"

/* Part of the region room. */

void rmp_watch_init(struct rmp_memory *mem);
/* With no region left. */
void rmp_watch_exit(struct rmp_memory *mem);

/* Before the region is pinned: sees all that happens to its range from here on.
 * Owner's process.
 */
int rmp_watch_begin(struct rmp_region *region);
/* Its pages are there: what happened meanwhile, or happens, is acted on. */
void rmp_watch_pinned(struct rmp_region *region);
/* Its exporter takes the buffer back: it is stale. Any context but in interrupts. */
void rmp_watch_lost(struct rmp_region *region);
/* When the last reference is gone, also when it was never begun. Sleeps. */
void rmp_watch_end(struct rmp_region *region);

/* By region.c: a region that was suspect is active again or stale, or one that was
 * active is stale. Process context.
 */
void rmp_region_settled(struct rmp_region *region);
/* By region.c, after some of those: what waits for them goes on, or ends. */
void rmp_regions_settled(void);

#endif /* RMP_WATCH_H */
