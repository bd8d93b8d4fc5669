// SPDX-License-Identifier: GPL-2.0
/*
 * How the chunks of a region are found on a device: what slices and keys are made from.
 *
 * Locking: none. attach.c publishes mappings with release order and frees them a grace
 * period after it took them back; chunks of a published mapping become ready later on,
 * with release order as well. Any context.
 */
#include <linux/rcupdate.h>
#include "mapping.h"

/* The chunk of a region on a device, if it is there; RCU is held. */
static const struct rmp_chunk *rmp_region_chunk(const struct rmp_region *region,
						u32 dev_index, u64 chunk)
{
	const struct rmp_mapping *map;

	/* Pairs with the release in rmp_map_publish(). */
	map = smp_load_acquire(&region->maps[dev_index]);
	if (!map || chunk >= map->nr_chunks)
		return NULL;
	/* Pairs with the release in rmp_mapping_fill(). */
	if (!smp_load_acquire(&map->chunks[chunk].ready))
		return NULL;
	return &map->chunks[chunk];
}

u64 rmp_region_local(const struct rmp_region *region, u32 dev_index, u64 pos,
		     u64 *iova, u32 *lkey)
{
	u64 at = region->iova + pos;
	u64 index = (at - region->iova_base) >> region->chunk_shift;
	u64 end = region->iova_base + ((index + 1) << region->chunk_shift);
	const struct rmp_chunk *chunk;
	u64 left = 0;

	rcu_read_lock();
	chunk = pos < region->length ?
		rmp_region_chunk(region, dev_index, index) : NULL;
	if (chunk) {
		*iova = at;
		*lkey = chunk->lkey;
		left = min(end - at, region->length - pos);
	}
	rcu_read_unlock();
	return left;
}

u32 rmp_region_rkey(const struct rmp_region *region, u32 dev_index, u32 chunk)
{
	const struct rmp_chunk *found;
	u32 rkey;

	rcu_read_lock();
	found = rmp_region_chunk(region, dev_index, chunk);
	rkey = found ? found->rkey : 0;
	rcu_read_unlock();
	return rkey;
}

bool rmp_region_has_rkeys(const struct rmp_region *region, u32 dev_index)
{
	const struct rmp_mapping *map;
	bool has;

	rcu_read_lock();
	/* Pairs with the release in rmp_map_publish(). */
	map = smp_load_acquire(&region->maps[dev_index]);
	has = map && map->access & (IB_ACCESS_REMOTE_READ |
				    IB_ACCESS_REMOTE_WRITE);
	rcu_read_unlock();
	return has;
}

void rmp_region_usage(const struct rmp_region *region,
		      struct rmp_region_usage *usage)
{
	const struct rmp_mapping *map;
	u32 i;

	memset(usage, 0, sizeof(*usage));
	rcu_read_lock();
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		/* Pairs with the release in rmp_map_publish(). */
		map = smp_load_acquire(&region->maps[i]);
		if (!map)
			continue;
		usage->devices++;
		usage->mrs += READ_ONCE(map->mrs);
		usage->pages += READ_ONCE(map->pages);
	}
	rcu_read_unlock();
}
