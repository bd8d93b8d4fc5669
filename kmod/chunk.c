// SPDX-License-Identifier: GPL-2.0
/*
 * How the chunks of a region are found on a device: what slices and keys are made from.
 *
 * Locking: none. attach.c publishes mappings with release order and frees them a grace
 * period after it took them back; chunks of a published mapping become ready later on,
 * with release order as well. A slice keeps the mapping that it uses (users). Any
 * context.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "mapping.h"

struct rmp_maps *rmp_region_others(const struct rmp_region *region, u32 group)
{
	struct rmp_maps *others;

	/* Pairs with the release in reach.c. Few, and most often none. */
	for (others = smp_load_acquire(&region->others); others;
	     others = others->next) {
		if (others->group == group)
			break;
	}
	return others;
}

struct rmp_mapping **rmp_region_maps(const struct rmp_region *region, u32 group)
{
	struct rmp_maps *others;

	if (group == RMP_GROUP_DEFAULT)
		return (struct rmp_mapping **)region->maps;
	others = rmp_region_others(region, group);
	return others ? others->maps : NULL;
}

/* RCU is held. */
static struct rmp_mapping *rmp_region_map_of(const struct rmp_region *region,
					     u32 group, u32 dev_index)
{
	struct rmp_mapping **maps = rmp_region_maps(region, group);

	/* Pairs with the release in rmp_map_publish(). */
	return maps ? smp_load_acquire(&maps[dev_index]) : NULL;
}

/* A chunk of a mapping, if both are there; RCU is held. */
static const struct rmp_chunk *rmp_map_chunk(const struct rmp_mapping *map,
					     u64 chunk)
{
	if (!map || chunk >= map->nr_chunks)
		return NULL;
	/* Pairs with the release in rmp_mapping_fill(). */
	if (!smp_load_acquire(&map->chunks[chunk].ready))
		return NULL;
	return &map->chunks[chunk];
}

/* As rmp_region_use(); @map may be NULL. */
static u64 rmp_chunk_local(const struct rmp_region *region, u32 group, u32 dev_index,
			   u64 pos, u64 *iova, u32 *lkey, struct rmp_mapping **map)
{
	u64 at = region->iova + pos;
	u64 index = (at - region->iova_base) >> region->chunk_shift;
	u64 end = region->iova_base + ((index + 1) << region->chunk_shift);
	struct rmp_mapping *found;
	const struct rmp_chunk *chunk;
	u64 left = 0;

	rcu_read_lock();
	found = rmp_region_map_of(region, group, dev_index);
	chunk = pos < region->length ? rmp_map_chunk(found, index) : NULL;
	if (chunk) {
		*iova = at;
		*lkey = chunk->lkey;
		left = min(end - at, region->length - pos);
		/* Nobody replaces keys that no peer is told of. */
		if (map && region->segment) {
			atomic_inc(&found->users);
			*map = found;
		}
	}
	rcu_read_unlock();
	return left;
}

u64 rmp_region_local(const struct rmp_region *region, u32 group, u32 dev_index,
		     u64 pos, u64 *iova, u32 *lkey)
{
	return rmp_chunk_local(region, group, dev_index, pos, iova, lkey, NULL);
}

u64 rmp_region_use(const struct rmp_region *region, u32 group, u32 dev_index,
		   u64 pos, u64 *iova, u32 *lkey, struct rmp_mapping **map)
{
	*map = NULL;
	return rmp_chunk_local(region, group, dev_index, pos, iova, lkey, map);
}

bool rmp_region_reached(const struct rmp_region *region, u32 group)
{
	struct rmp_mapping **maps;
	u32 i;

	/* For that one it is mapped as soon as there is a device, or not at all. */
	if (group == RMP_GROUP_DEFAULT)
		return true;
	maps = rmp_region_maps(region, group);
	for (i = 0; maps && i < RMP_DEVICES_MAX; i++) {
		if (READ_ONCE(maps[i]))
			return true;
	}
	return false;
}

void rmp_region_unuse(struct rmp_mapping *map)
{
	int left;

	if (!map)
		return;
	left = atomic_dec_return(&map->users);
	/* Its maker's is left, who may be waiting for that, and free it just now. */
	if (left == 1)
		wake_up_var(&map->users);
	else if (!left)
		kvfree_rcu(map, rcu);
}

u32 rmp_region_rkey(const struct rmp_region *region, u32 group, u32 dev_index,
		    u32 chunk)
{
	const struct rmp_chunk *found;
	u32 rkey;

	rcu_read_lock();
	found = rmp_map_chunk(rmp_region_map_of(region, group, dev_index), chunk);
	rkey = found ? found->rkey : 0;
	rcu_read_unlock();
	return rkey;
}

bool rmp_region_has_rkeys(const struct rmp_region *region, u32 group, u32 dev_index)
{
	const struct rmp_mapping *map;
	bool has;

	rcu_read_lock();
	map = rmp_region_map_of(region, group, dev_index);
	has = map && map->access & (IB_ACCESS_REMOTE_READ |
				    IB_ACCESS_REMOTE_WRITE);
	rcu_read_unlock();
	return has;
}

void rmp_region_usage(const struct rmp_region *region,
		      struct rmp_region_usage *usage)
{
	const struct rmp_mapping *map;
	struct rmp_mapping **maps;
	u32 i, group, devices = 0;

	memset(usage, 0, sizeof(*usage));
	rcu_read_lock();
	for (group = 0; group < RMP_GROUPS_MAX; group++) {
		maps = rmp_region_maps(region, group);
		for (i = 0; maps && i < RMP_DEVICES_MAX; i++) {
			map = READ_ONCE(maps[i]);
			if (!map)
				continue;
			devices |= BIT(i);
			usage->mrs += READ_ONCE(map->mrs);
			usage->pages += READ_ONCE(map->pages);
		}
	}
	rcu_read_unlock();
	usage->devices = hweight32(devices);
}
