// SPDX-License-Identifier: GPL-2.0
/*
 * Regions for trust groups: all are mapped for the default group when they are made, and for
 * another one when it turns out that it needs them.
 *
 * A group needs the regions of a segment that a peer of it has open: those that are in it
 * by then are mapped by a work item of the segment, after which the peers are told that
 * there are keys; those that are added later, before they are. And it needs a region that
 * a request moves from or to a peer of it: mapped in the call that submits the request.
 *
 * What is mapped for a group stays so until the region goes, or the group, which has gone
 * when the last peer entry has, and all that used it.
 *
 * Locking: rmp_maps_lock() from the look at what is there to the end of mapping it.
 * Context: process.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "attach.h"
#include "mapping.h"
#include "segment.h"
#include "watch.h"

/* Locked: the place for a group in a region; NULL: no memory. */
static struct rmp_maps *reach_place(struct rmp_region *region, u32 group)
{
	struct rmp_maps *others = rmp_region_others(region, group);

	if (others)
		return others;
	others = kzalloc(sizeof(*others), GFP_KERNEL_ACCOUNT);
	if (!others)
		return NULL;
	others->group = group;
	others->next = region->others;
	/* Readers see it complete. */
	smp_store_release(&region->others, others);
	return others;
}

static int reach_locked(struct rmp_region *region, u32 group,
			struct rmpool_error *error)
{
	struct rmp_maps *others;

	if (rmp_region_reached(region, group))
		return 0;
	if (READ_ONCE(region->dead) || rmp_region_stale(region))
		return -ESTALE;
	others = reach_place(region, group);
	if (!others)
		return -ENOMEM;
	/* Whatever becomes of it now: devices that come try again. */
	others->wanted = true;
	return rmp_region_map_group(region, group, error);
}

int rmp_region_reach(struct rmp_region *region, u32 group,
		     struct rmpool_error *error)
{
	int err;

	memset(error, 0, sizeof(*error));
	if (rmp_region_reached(region, group))
		return 0;
	if (rmp_maps_lock_interruptible())
		return -EINTR;
	/* Who lets the last peer of a group go looks at all regions after that. */
	if (rmp_group_use(group)) {
		err = reach_locked(region, group, error);
		rmp_group_unuse(group);
	} else {
		err = -ENOENT;
	}
	rmp_maps_unlock();
	return err;
}

int rmp_region_reach_many(struct rmp_region *region, u32 groups, bool *any)
{
	struct rmpool_error error;
	u32 group;
	int err;

	/* Peers have no use for it. */
	if (!(region->access & RMP_RIGHTS_ALL))
		return 0;
	for (group = 0; group < RMP_GROUPS_MAX; group++) {
		if (!(groups & BIT(group)) || rmp_region_reached(region, group))
			continue;
		err = rmp_region_reach(region, group, &error);
		if (!err)
			*any = true;
		else if (err == -EINTR)
			return err;
		else if (err != -ESTALE && err != -ENODEV && err != -ENOENT)
			pr_warn_ratelimited("region %llu not mapped for group %s: error %d\n",
					    region->id, rmp_group_name(group), err);
	}
	return 0;
}

void rmp_segment_reach(struct rmp_segment *segment)
{
	struct rmp_region *region;
	bool any = false;
	u64 from = 0;
	u32 groups;

	while ((region = rmp_segment_next(segment, &from, &groups))) {
		rmp_region_reach_many(region, groups, &any);
		rmp_region_put(region);
		cond_resched();
	}
	if (any)
		rmp_segment_changed(segment, NULL);
}

/* Takes out what a region has for a group. */
static void reach_end(struct rmp_region *region, u32 group, struct list_head *taken)
{
	struct rmp_maps *others;
	u32 i;

	rmp_maps_lock();
	others = rmp_region_others(region, group);
	if (others)
		others->wanted = false;
	for (i = 0; i < RMP_DEVICES_MAX && others; i++)
		rmp_map_take(region, group, i, taken);
	rmp_maps_unlock();
}

void rmp_region_group_gone(u32 group)
{
	struct rmp_region *region;
	unsigned long id = 0;
	LIST_HEAD(taken);

	for (; (region = rmp_region_next(&id)); id++) {
		reach_end(region, group, &taken);
		rmp_region_put(region);
		cond_resched();
	}
	synchronize_rcu();
	rmp_maps_lock();
	rmp_maps_drop(&taken);
	rmp_maps_unlock();
	rmp_group_unuse(group);
}
