// SPDX-License-Identifier: GPL-2.0
/*
 * Which regions are mapped on which devices.
 *
 * Chunks have the same borders on all devices, since peers are told keys by chunk.
 * They are as large as the memory allows: where huge pages lie behind all of a
 * region, the page list of an MR covers much. Should a device see it otherwise,
 * by its IOMMU, or find no room for long page lists, all is undone, and done with
 * chunks for small pages (cut.c). Where not all devices have room for all chunks, these
 * are dealt to them (deal.c).
 *
 * Regions and devices come and go at any time, and mapping takes long, so no lock
 * can be held over it. Two rules make each pair of a device and a region meet:
 * - A device that comes is first entered in rmp_map_devices, then all regions that
 *   are attached are walked; a region is first marked as attached, then the
 *   devices are looked for that came meanwhile.
 * - A mapping is published when its device is still entered and the place is
 *   still empty, else its maker destroys it. A device that goes is first
 *   struck, then all its mappings are taken back.
 * When a device goes, chunks that only it had are dealt to others; if that was
 * before the region was attached, by its maker.
 *
 * A device that cannot have a region at all, for the sake of order or since it does not
 * reach the dma-buf, does without it if there are others.
 *
 * All of that is done for the default trust group when a region is made, and in the same
 * way, in the same chunks, for each other group that turns out to need it (reach.c).
 *
 * Locking: rmp_map_lock guards rmp_map_devices and rmp_region.attached, and
 * the maps[] of a region and its groups change under it only. It is a spinlock and a
 * leaf. Who adds to the mappings of an attached region, or destroys one, holds
 * rmp_late_lock: the device events, serialised by device.c, a maker that has to catch up
 * with them, reach.c, and rekey.c, which puts mappings with other keys in the place of
 * those that are there.
 *
 * Lifetime: readers of maps[] in any context use RCU. A mapping that is taken
 * back from a live region is destroyed a grace period later, with a reference
 * to the region, so that the pages stay until no device reaches them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include "attach.h"
#include "capacity.h"
#include "mapping.h"
#include "segment.h"

static DEFINE_SPINLOCK(rmp_map_lock);
static DEFINE_MUTEX(rmp_late_lock);
static struct rmp_device *rmp_map_devices[RMP_DEVICES_MAX];

static struct rmp_mapping *rmp_map_take_out(struct rmp_mapping **maps, u32 index)
{
	struct rmp_mapping *map;

	spin_lock(&rmp_map_lock);
	map = maps[index];
	WRITE_ONCE(maps[index], NULL);
	spin_unlock(&rmp_map_lock);
	return map;
}

void rmp_map_take(struct rmp_region *region, u32 group, u32 index,
		  struct list_head *taken)
{
	struct rmp_mapping **maps = rmp_region_maps(region, group);
	struct rmp_mapping *map = maps ? rmp_map_take_out(maps, index) : NULL;

	if (!map)
		return;
	kref_get(&region->ref);
	map->region = region;
	list_add_tail(&map->node, taken);
}

/* For all groups. */
static void rmp_maps_take(struct rmp_region *region, u32 index,
			  struct list_head *taken)
{
	u32 group;

	for (group = 0; group < RMP_GROUPS_MAX; group++)
		rmp_map_take(region, group, index, taken);
}

/* Whether a device that comes is to have a region for a group. rmp_late_lock is held, or
 * it is the default group.
 */
static bool rmp_region_wants(const struct rmp_region *region, u32 group)
{
	struct rmp_maps *others;

	if (group == RMP_GROUP_DEFAULT)
		return true;
	others = rmp_region_others(region, group);
	return others && others->wanted;
}

/* Largest chunk that all devices can do, as a shift; 0 when there is no device. */
static u32 rmp_map_chunk_shift(u32 page_shift)
{
	u32 shift = 0;
	u32 i, can;

	spin_lock(&rmp_map_lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!rmp_map_devices[i])
			continue;
		can = rmp_capacity_chunk_shift(rmp_map_devices[i], page_shift);
		if (!shift || can < shift)
			shift = can;
	}
	spin_unlock(&rmp_map_lock);
	return shift;
}

static int rmp_region_no_device(struct rmpool_error *error)
{
	error->reason = RMPOOL_REASON_NO_DEVICE;
	return -ENODEV;
}

/* Cuts a pinned region into chunks; @small: as if all pages were small. */
static int rmp_region_cut(struct rmp_region *region, bool small,
			  struct rmpool_error *error)
{
	u32 shift;

	rmp_cut_measure(region, small);
	shift = rmp_map_chunk_shift(region->page_shift);
	if (!shift)
		return rmp_region_no_device(error);
	return rmp_cut_chunks(region, shift);
}

/* ------------------------------------------------------------------------ map */

/* The device of a slot, referenced, if a region is to be mapped on it for a group and is
 * not yet. @unable: why not, if that is only since it forces relaxed ordering.
 */
static struct rmp_device *rmp_map_device(const struct rmp_region *region,
					 u32 group, u32 index,
					 struct rmpool_error *unable)
{
	struct rmp_mapping **maps = rmp_region_maps(region, group);
	struct rmp_device *dev;

	spin_lock(&rmp_map_lock);
	dev = rmp_map_devices[index];
	if (dev && (maps[index] || READ_ONCE(dev->going)))
		dev = NULL;
	if (dev && region->strict && dev->ordering == RMPOOL_ORDERING_FORCED) {
		unable->reason = RMPOOL_REASON_ORDERING;
		dev = NULL;
	}
	if (dev)
		rmp_device_hold(dev);
	spin_unlock(&rmp_map_lock);
	return dev;
}

void rmp_map_drop(struct rmp_region *region, struct rmp_mapping *map)
{
	if (!rmp_mapping_destroy(map))
		region->stuck = true;
}

void rmp_maps_drop(struct list_head *taken)
{
	struct rmp_mapping *map, *next;
	struct rmp_region *region;

	lockdep_assert_held(&rmp_late_lock);

	list_for_each_entry_safe(map, next, taken, node) {
		region = map->region;
		rmp_map_drop(region, map);
		rmp_region_put(region);
	}
}

/* Publishes a mapping that was filled, or drops it: then it has an error already, its
 * device goes (-EAGAIN), or the region has one there.
 */
static int rmp_map_publish(struct rmp_region *region, struct rmp_mapping *map,
			   int err)
{
	struct rmp_mapping **maps = rmp_region_maps(region, map->domain->group);
	u32 index = map->dev->index;

	if (err) {
		rmp_map_drop(region, map);
		return err;
	}

	spin_lock(&rmp_map_lock);
	if (rmp_map_devices[index] != map->dev)
		err = -EAGAIN;
	else if (maps[index])
		err = -EEXIST;
	else
		/* Readers see it complete. */
		smp_store_release(&maps[index], map);
	spin_unlock(&rmp_map_lock);
	if (err)
		rmp_map_drop(region, map);
	return err == -EEXIST ? 0 : err;
}

/* Maps an attached region for a group on a device that came after it: all of it, or else
 * what no other device has.
 */
static int rmp_region_map_late(struct rmp_region *region, u32 group, u32 index,
			       struct task_struct *owner)
{
	struct rmp_mapping *maps[RMP_DEVICES_MAX] = {};
	struct rmpool_error ignored;
	struct rmp_mapping *map;
	struct rmp_device *dev;
	int err;

	/* A buffer that was taken back is not to be reached again. */
	if (rmp_region_stale(region))
		return 0;
	dev = rmp_map_device(region, group, index, &ignored);
	if (!dev)
		return 0;
	map = rmp_mapping_alloc(region, dev, group, &ignored);
	rmp_device_put(dev);
	if (IS_ERR(map)) {
		err = PTR_ERR(map);
		return err == -EOPNOTSUPP || err == -ENOENT ? 0 : err;
	}

	err = rmp_mapping_reserve_all(map, region, &ignored);
	if (err == -ENOMEM && region->spread) {
		maps[index] = map;
		rmp_maps_deal(region, group, maps, &ignored);
		err = map->mrs ? 0 : -ENOMEM;
	}
	if (err) {
		rmp_map_drop(region, map);
		return err;
	}
	err = rmp_mapping_fill(map, region, owner, &ignored);
	err = rmp_map_publish(region, map, err);
	return err == -EAGAIN ? 0 : err;
}

/* The same for all groups that want it; the first error. */
static int rmp_region_map_all_late(struct rmp_region *region, u32 index)
{
	int err = 0, ret;
	u32 group;

	lockdep_assert_held(&rmp_late_lock);

	for (group = 0; group < RMP_GROUPS_MAX; group++) {
		if (!rmp_region_wants(region, group))
			continue;
		ret = rmp_region_map_late(region, group, index, NULL);
		err = err ?: ret;
	}
	return err;
}

void rmp_maps_lock(void)
{
	mutex_lock(&rmp_late_lock);
}

int rmp_maps_lock_interruptible(void)
{
	return mutex_lock_interruptible(&rmp_late_lock);
}

void rmp_maps_unlock(void)
{
	mutex_unlock(&rmp_late_lock);
}

bool rmp_map_replace(struct rmp_region *region, struct rmp_mapping *old,
		     struct rmp_mapping *new)
{
	struct rmp_mapping **maps = rmp_region_maps(region, old->domain->group);
	u32 index = old->dev->index;
	bool replaced;

	lockdep_assert_held(&rmp_late_lock);

	spin_lock(&rmp_map_lock);
	replaced = maps[index] == old &&
		   rmp_map_devices[index] == old->dev;
	if (replaced)
		/* Readers see it complete. */
		smp_store_release(&maps[index], new);
	spin_unlock(&rmp_map_lock);
	return replaced;
}

int rmp_region_map_again(struct rmp_region *region)
{
	int err = 0;
	u32 i;

	lockdep_assert_held(&rmp_late_lock);

	for (i = 0; i < RMP_DEVICES_MAX; i++)
		err = rmp_region_map_all_late(region, i) ?: err;
	return err;
}

/* On all devices, for one group that has nothing of it. */
static int rmp_region_map(struct rmp_region *region, u32 group,
			  struct rmpool_error *error)
{
	struct rmp_mapping *maps[RMP_DEVICES_MAX] = {};
	int errs[RMP_DEVICES_MAX] = {};
	struct rmpool_error unable = {};
	struct rmp_mapping *map;
	struct rmp_device *dev;
	bool mapped = false;
	int err = 0, ret;
	u64 todo = 0;
	u32 i;

	for (i = 0; i < RMP_DEVICES_MAX && !err; i++) {
		dev = rmp_map_device(region, group, i, &unable);
		if (!dev)
			continue;
		map = rmp_mapping_alloc(region, dev, group, &unable);
		rmp_device_put(dev);
		if (!IS_ERR(map))
			maps[i] = map;
		else if (PTR_ERR(map) != -EOPNOTSUPP)
			err = PTR_ERR(map);
	}
	if (!err)
		err = rmp_maps_reserve(region, group, maps, error);

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!maps[i] || (!err && maps[i]->mrs))
			continue;
		rmp_map_drop(region, maps[i]);
		maps[i] = NULL;
	}
	if (err)
		return err;

	for (i = 0; i < RMP_DEVICES_MAX; i++)
		todo += maps[i] ? maps[i]->mrs : 0;
	/* What is done for others does not count. */
	if (group == RMP_GROUP_DEFAULT) {
		atomic64_set(&region->chunks_done, 0);
		WRITE_ONCE(region->chunks_todo, todo);
	}

	err = rmp_mappings_fill(maps, region, errs, error);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!maps[i])
			continue;
		ret = rmp_map_publish(region, maps[i], err ?: errs[i]);
		if (!ret)
			mapped = true;
		else if (ret != -EAGAIN || region->spread)
			err = err ?: ret;
	}
	if (err || mapped)
		return err;
	if (!unable.reason)
		return rmp_region_no_device(error);
	*error = unable;
	return -EOPNOTSUPP;
}

/* Chunks that no device has any more, to those that are left. */
static int rmp_region_cover(struct rmp_region *region, u32 group,
			    struct task_struct *owner)
{
	struct rmp_mapping **there = rmp_region_maps(region, group);
	struct rmp_mapping *maps[RMP_DEVICES_MAX];
	struct rmpool_error error = {};
	int err, ret;
	u32 i;

	lockdep_assert_held(&rmp_late_lock);

	if (rmp_region_stale(region))
		return 0;
	for (i = 0; i < RMP_DEVICES_MAX; i++)
		maps[i] = READ_ONCE(there[i]);
	err = rmp_maps_deal(region, group, maps, &error);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		ret = maps[i] ? rmp_mapping_fill(maps[i], region, owner,
						 &error) : 0;
		if (ret == -EINTR)
			return ret;
		err = ret ?: err;
	}
	if (err)
		pr_warn_ratelimited("region %llu is on no device in part: error %d\n",
				    region->id, err);
	return err;
}

int rmp_region_map_group(struct rmp_region *region, u32 group,
			 struct rmpool_error *error)
{
	int err;

	lockdep_assert_held(&rmp_late_lock);

	err = rmp_region_map(region, group, error);
	/* A device with some of the chunks went: the others have some already. */
	if (err == -EAGAIN)
		err = rmp_region_cover(region, group, current);
	return err;
}

/* What devices that came or went made necessary before they saw the region. */
static int rmp_region_catch_up(struct rmp_region *region)
{
	int err = 0;
	u32 i;

	if (mutex_lock_interruptible(&rmp_late_lock))
		return -EINTR;
	for (i = 0; i < RMP_DEVICES_MAX && err != -EINTR; i++)
		err = rmp_region_map_late(region, RMP_GROUP_DEFAULT, i, current);
	if (err != -EINTR && region->spread)
		err = rmp_region_cover(region, RMP_GROUP_DEFAULT, current);
	mutex_unlock(&rmp_late_lock);
	return err == -EINTR ? err : 0;
}

int rmp_region_attach(struct rmp_region *region, struct rmpool_error *error)
{
	bool small = false, late = false;
	int err;
	u32 i;

	for (;;) {
		err = rmp_region_cut(region, small, error);
		if (!err)
			err = rmp_region_map(region, RMP_GROUP_DEFAULT, error);
		if (err == -EAGAIN) {
			/* A device with some of the chunks went. */
		} else if (!small && region->page_shift > PAGE_SHIFT &&
			   (err == -E2BIG ||
			    (err == -ENOMEM && !error->reason))) {
			small = true;
		} else {
			break;
		}
		rmp_region_detach(region);
		region->spread = false;
		memset(error, 0, sizeof(*error));
	}
	if (err)
		return err;

	spin_lock(&rmp_map_lock);
	region->attached = true;
	for (i = 0; i < RMP_DEVICES_MAX; i++)
		late |= rmp_map_devices[i] && !region->maps[i];
	spin_unlock(&rmp_map_lock);
	/* Who took it back before that left the devices to us. */
	if (region->dmabuf && rmp_region_stale(region))
		return -ESTALE;
	return late || region->spread ? rmp_region_catch_up(region) : 0;
}

void rmp_region_lost(struct rmp_region *region)
{
	LIST_HEAD(taken);
	bool attached;
	u32 i;

	spin_lock(&rmp_map_lock);
	attached = region->attached;
	spin_unlock(&rmp_map_lock);
	if (!attached)
		return;
	mutex_lock(&rmp_late_lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++)
		rmp_maps_take(region, i, &taken);
	synchronize_rcu();
	rmp_maps_drop(&taken);
	mutex_unlock(&rmp_late_lock);
}

static void rmp_region_detach_maps(struct rmp_region *region,
				   struct rmp_mapping **maps)
{
	struct rmp_mapping *map;
	u32 i;

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		map = rmp_map_take_out(maps, i);
		if (map)
			rmp_map_drop(region, map);
	}
}

void rmp_region_detach(struct rmp_region *region)
{
	struct rmp_maps *others;

	rmp_region_detach_maps(region, region->maps);
	/* Nobody has a reference of the region to look there. */
	while ((others = region->others)) {
		rmp_region_detach_maps(region, others->maps);
		region->others = others->next;
		kfree(others);
	}
}

/* -------------------------------------------------------------- device events */

/* Whether devices that come or go matter to a region. */
static bool rmp_region_wanted(struct rmp_region *region)
{
	bool attached;

	/* Else its maker looks what became of devices when it is. */
	spin_lock(&rmp_map_lock);
	attached = region->attached;
	spin_unlock(&rmp_map_lock);
	return attached && !READ_ONCE(region->dead) && !rmp_region_stale(region);
}

void rmp_region_device_added(struct rmp_device *dev)
{
	struct rmp_region *region;
	unsigned long id = 0;
	bool any = false;
	int err;

	rmp_device_hold(dev);
	spin_lock(&rmp_map_lock);
	rmp_map_devices[dev->index] = dev;
	spin_unlock(&rmp_map_lock);

	for (; (region = rmp_region_next(&id)); id++) {
		if (rmp_region_wanted(region)) {
			mutex_lock(&rmp_late_lock);
			err = rmp_region_map_all_late(region, dev->index);
			mutex_unlock(&rmp_late_lock);
			if (err)
				pr_warn_ratelimited("%s: region %llu not mapped: error %d\n",
						    dev_name(&dev->ibdev->dev),
						    region->id, err);
			any = true;
		}
		rmp_region_put(region);
		cond_resched();
	}
	if (any)
		rmp_segments_changed();
}

void rmp_region_device_removed(struct rmp_device *dev)
{
	struct rmp_mapping *map, *next;
	struct rmp_region *region;
	unsigned long id = 0;
	LIST_HEAD(maps);
	u32 group;

	spin_lock(&rmp_map_lock);
	rmp_map_devices[dev->index] = NULL;
	spin_unlock(&rmp_map_lock);
	rmp_device_put(dev);

	for (; (region = rmp_region_next(&id)); id++) {
		rmp_maps_take(region, dev->index, &maps);
		rmp_region_put(region);
		cond_resched();
	}
	if (list_empty(&maps))
		return;

	synchronize_rcu();
	list_for_each_entry_safe(map, next, &maps, node) {
		region = map->region;
		mutex_lock(&rmp_late_lock);
		group = map->domain->group;
		rmp_map_drop(region, map);
		if (region->spread && rmp_region_wanted(region) &&
		    rmp_region_wants(region, group))
			rmp_region_cover(region, group, NULL);
		mutex_unlock(&rmp_late_lock);
		rmp_region_put(region);
	}
	rmp_segments_changed();
}
