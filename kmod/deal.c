// SPDX-License-Identifier: GPL-2.0
/*
 * Which chunks of a region find room on which devices.
 *
 * Each device gets all chunks of a region if all devices have room for that. Else
 * the chunks are dealt to them in turn, each to one that has room.
 *
 * Locking: none of its own; limits of devices have theirs (capacity.c). No mapping of the
 * region is destroyed meanwhile: the caller holds rmp_maps_lock(), or none is published
 * yet. Context: process; sleeps.
 */
#include <linux/sched.h>
#include <linux/string.h>
#include "mapping.h"

/* Whether a device has a chunk. */
static bool rmp_region_covered(const struct rmp_region *region, u32 group, u32 chunk)
{
	struct rmp_mapping **maps = rmp_region_maps(region, group);
	const struct rmp_mapping *map;
	u32 i;

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		map = READ_ONCE(maps[i]);
		if (map && READ_ONCE(map->chunks[chunk].ready))
			return true;
	}
	return false;
}

int rmp_maps_deal(struct rmp_region *region, u32 group,
		  struct rmp_mapping **maps, struct rmpool_error *error)
{
	u32 next = 0, chunk, i, index;

	for (chunk = 0; chunk < region->nr_chunks; chunk++) {
		cond_resched();
		if (rmp_region_covered(region, group, chunk))
			continue;
		for (i = 0; i < RMP_DEVICES_MAX; i++) {
			index = (next + i) % RMP_DEVICES_MAX;
			if (maps[index] &&
			    !rmp_mapping_reserve(maps[index], region, chunk,
						 error))
				break;
		}
		if (i == RMP_DEVICES_MAX)
			return -ENOMEM;
		next = index + 1;
	}
	return 0;
}

int rmp_maps_reserve(struct rmp_region *region, u32 group,
		     struct rmp_mapping **maps, struct rmpool_error *error)
{
	struct rmpool_error last;
	u32 i, nr = 0;
	int err = 0;

	for (i = 0; i < RMP_DEVICES_MAX; i++)
		nr += !!maps[i];
	for (i = 0; i < RMP_DEVICES_MAX && !err; i++) {
		if (maps[i])
			err = rmp_mapping_reserve_all(maps[i], region, error);
	}
	/* Only for want of room, and if there is a choice. */
	if (!err || err != -ENOMEM || nr < 2)
		return err;

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (maps[i])
			rmp_mapping_trim(maps[i]);
	}
	region->spread = true;
	/* The word of the first is the one that tells what all of it needs. */
	err = rmp_maps_deal(region, group, maps, &last);
	if (!err)
		memset(error, 0, sizeof(*error));
	return err;
}
