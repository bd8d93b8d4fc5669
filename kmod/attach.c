// SPDX-License-Identifier: GPL-2.0
/*
 * Which regions are mapped on which devices.
 *
 * Both come and go at any time, and mapping takes long, so no lock can be held
 * over it. Two rules make each pair of a device and a region meet:
 * - A device that comes is first entered in rmp_map_devices, then all regions
 *   are walked; a new region is first entered in the table of regions, then
 *   mapped on all devices.
 * - A mapping is published when its device is still entered and the place is
 *   still empty, else its maker destroys it. A device that goes is first
 *   struck, then all its mappings are taken back.
 *
 * Locking: rmp_map_lock guards rmp_map_devices, and rmp_region.maps[] changes
 * under it only. It is a spinlock and a leaf. Device events are serialised by
 * device.c.
 *
 * Lifetime: readers of maps[] in any context use RCU. A mapping that is taken
 * back from a live region is destroyed a grace period later, with a reference
 * to the region, so that the pages stay until no device reaches them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include "attach.h"
#include "mapping.h"
#include "segment.h"

static DEFINE_SPINLOCK(rmp_map_lock);
static struct rmp_device *rmp_map_devices[RMP_DEVICES_MAX];

static struct rmp_mapping *rmp_map_take(struct rmp_region *region, u32 index)
{
	struct rmp_mapping *map;

	spin_lock(&rmp_map_lock);
	map = region->maps[index];
	WRITE_ONCE(region->maps[index], NULL);
	spin_unlock(&rmp_map_lock);
	return map;
}

/* Maps a region on the device of a slot, if there is one and it is not yet. */
static int rmp_region_map_on(struct rmp_region *region, u32 index, bool owner,
			     struct rmpool_error *error)
{
	struct rmp_device *dev;
	struct rmp_mapping *map;
	int err = 0;

	spin_lock(&rmp_map_lock);
	dev = rmp_map_devices[index];
	/* Without chunks it is not pinned yet; its owner maps it then. */
	if (!dev || region->maps[index] || !region->nr_chunks)
		dev = NULL;
	else
		rmp_device_hold(dev);
	spin_unlock(&rmp_map_lock);
	if (!dev)
		return 0;

	map = rmp_mapping_create(region, dev, owner, error);
	if (IS_ERR(map)) {
		/* What fails on a device that goes is not to be blamed. */
		err = READ_ONCE(dev->going) ? 0 : PTR_ERR(map);
		goto out;
	}

	spin_lock(&rmp_map_lock);
	if (rmp_map_devices[index] == dev && !region->maps[index]) {
		/* Readers see it complete. */
		smp_store_release(&region->maps[index], map);
		map = NULL;
	}
	spin_unlock(&rmp_map_lock);
	if (map && !rmp_mapping_destroy(map))
		region->stuck = true;
out:
	rmp_device_put(dev);
	return err;
}

/* Smallest chunk of the devices, in pages; 0 when there is no device. */
static u32 rmp_map_chunk_pages(void)
{
	u32 pages = 0;
	u32 i;

	lockdep_assert_held(&rmp_map_lock);

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (!rmp_map_devices[i])
			continue;
		if (!pages || rmp_map_devices[i]->chunk_pages < pages)
			pages = rmp_map_devices[i]->chunk_pages;
	}
	return pages;
}

static int rmp_region_no_device(struct rmpool_error *error)
{
	error->reason = RMPOOL_REASON_NO_DEVICE;
	return -ENODEV;
}

/* Cuts a pinned region into chunks; from then on devices may map it. */
static int rmp_region_cut(struct rmp_region *region, struct rmpool_error *error)
{
	u64 nr = 0;
	u32 pages;

	spin_lock(&rmp_map_lock);
	pages = rmp_map_chunk_pages();
	if (pages) {
		nr = DIV_ROUND_UP(region->nr_pages, (u64)pages);
		region->chunk_shift = PAGE_SHIFT + ilog2(pages);
		if (nr <= INT_MAX)
			region->nr_chunks = nr;
	}
	spin_unlock(&rmp_map_lock);

	if (!pages)
		return rmp_region_no_device(error);
	return nr <= INT_MAX ? 0 : -ENOMEM;
}

int rmp_region_attach(struct rmp_region *region, struct rmpool_error *error)
{
	bool mapped = false;
	int err;
	u32 i;

	err = rmp_region_cut(region, error);
	if (err)
		return err;
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		err = rmp_region_map_on(region, i, true, error);
		if (err)
			return err;
	}

	spin_lock(&rmp_map_lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++)
		mapped |= !!region->maps[i];
	spin_unlock(&rmp_map_lock);
	return mapped ? 0 : rmp_region_no_device(error);
}

void rmp_region_detach(struct rmp_region *region)
{
	struct rmp_mapping *map;
	u32 i;

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		map = rmp_map_take(region, i);
		if (map && !rmp_mapping_destroy(map))
			region->stuck = true;
	}
}

u64 rmp_region_local(const struct rmp_region *region, u32 dev_index, u64 pos,
		     u64 *iova, u32 *lkey)
{
	const struct rmp_mapping *map;
	u64 at = region->iova + pos;
	u64 chunk = (at - region->iova_base) >> region->chunk_shift;
	u64 end = region->iova_base + ((chunk + 1) << region->chunk_shift);
	u64 left = 0;

	rcu_read_lock();
	/* Pairs with the release in rmp_region_map_on(). */
	map = smp_load_acquire(&region->maps[dev_index]);
	if (map && pos < region->length) {
		*iova = at;
		*lkey = map->chunks[chunk].lkey;
		left = min(end - at, region->length - pos);
	}
	rcu_read_unlock();
	return left;
}

u32 rmp_region_rkey(const struct rmp_region *region, u32 dev_index, u32 chunk)
{
	const struct rmp_mapping *map;
	u32 rkey = 0;

	rcu_read_lock();
	/* Pairs with the release in rmp_region_map_on(). */
	map = smp_load_acquire(&region->maps[dev_index]);
	if (map && chunk < region->nr_chunks)
		rkey = map->chunks[chunk].rkey;
	rcu_read_unlock();
	return rkey;
}

void rmp_region_device_added(struct rmp_device *dev)
{
	struct rmpool_error ignored;
	struct rmp_region *region;
	unsigned long id = 0;
	bool any = false;
	int err;

	rmp_device_hold(dev);
	spin_lock(&rmp_map_lock);
	rmp_map_devices[dev->index] = dev;
	spin_unlock(&rmp_map_lock);

	for (; (region = rmp_region_next(&id)); id++) {
		if (!READ_ONCE(region->dead) && !rmp_region_stale(region)) {
			err = rmp_region_map_on(region, dev->index, false,
						&ignored);
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

	spin_lock(&rmp_map_lock);
	rmp_map_devices[dev->index] = NULL;
	spin_unlock(&rmp_map_lock);
	rmp_device_put(dev);

	for (; (region = rmp_region_next(&id)); id++) {
		map = rmp_map_take(region, dev->index);
		if (map) {
			map->region = region;
			list_add_tail(&map->node, &maps);
		} else {
			rmp_region_put(region);
		}
		cond_resched();
	}
	if (list_empty(&maps))
		return;

	synchronize_rcu();
	list_for_each_entry_safe(map, next, &maps, node) {
		region = map->region;
		if (!rmp_mapping_destroy(map))
			region->stuck = true;
		rmp_region_put(region);
	}
	rmp_segments_changed();
}
