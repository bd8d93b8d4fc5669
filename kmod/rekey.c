// SPDX-License-Identifier: GPL-2.0
/*
 * Other keys for regions that peers have the keys of: a right was withdrawn, and who had
 * it knows them still.
 *
 * Keys are those of memory regions of devices, so these are made anew, beside the old
 * ones, and the mapping with the new ones takes the place of the old in the region.
 * From then on nothing new is told of, or posted with, the old ones. Peers are told that
 * theirs are void (REKEY), fetch the new ones, and answer when nothing is in flight with
 * the old. Slices of this node, which use the same memory regions, end by themselves
 * (rmp_mapping.users). Then the old ones go. So nobody's requests fail.
 *
 * Where a device has no room for both, the old ones are taken out first, and new ones
 * made when these are gone: requests wait meanwhile. If that fails, too, the region
 * cannot be reached through this device any more, which is better than by somebody who
 * must not.
 *
 * Peers that stay silent are cut off (revoke.c). Those that lost all of their right are
 * not told of new keys, but the old ones stay until they have let go as well. Regions are
 * done in steps, so that not all have two mappings at a time.
 *
 * Locking: rmp_maps_lock() while mappings of a region are changed; it is not held while
 * peers or slices are waited for. Lifetime: each region of a step is referenced until
 * its old mappings are gone, which outlive the call when its process is killed: then a
 * work item waits, in a queue of its own, since others have to run for that to end.
 * Context: process.
 */
#include <linux/bitmap.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "attach.h"
#include "mapping.h"
#include "rekey.h"
#include "watch.h"

/* Regions of one step. */
#define RMP_REKEY_STEP		256

/* One step. */
struct rmp_rekeying {
	struct work_struct work;
	struct rmp_revocation *withdrawn;	/* by who lost all, or NULL */
	struct list_head old;		/* mappings, by node */
	u32 nr;
	struct rmp_region *regions[RMP_REKEY_STEP];
	/* of their old keys, or NULL; one may be that of several */
	struct rmp_revocation *revs[RMP_REKEY_STEP];
	DECLARE_BITMAP(again, RMP_REKEY_STEP);	/* to be mapped again */
};

static struct workqueue_struct *rmp_rekey_wq;

static bool rmp_map_has_keys(const struct rmp_mapping *map)
{
	return map && map->access & (IB_ACCESS_REMOTE_READ |
				     IB_ACCESS_REMOTE_WRITE);
}

/* The same chunks of a region on the same device, with other keys. */
static struct rmp_mapping *rmp_map_renew(struct rmp_region *region,
					 const struct rmp_mapping *old,
					 struct rmpool_error *error)
{
	struct rmp_mapping *map;
	int err = 0;
	u32 i;

	/* Who is killed does not wait for more than has to be done. */
	if (fatal_signal_pending(current))
		return ERR_PTR(-EINTR);
	/* A buffer that was taken back is not to be reached again. */
	if (region->dmabuf && rmp_region_stale(region))
		return ERR_PTR(-EAGAIN);
	map = rmp_mapping_alloc(region, old->dev, old->domain->group, error);
	if (IS_ERR(map))
		return map;
	for (i = 0; i < old->nr_chunks && !err; i++) {
		if (old->chunks[i].pages)
			err = rmp_mapping_reserve(map, region, i, error);
		cond_resched();
	}
	if (!err)
		err = rmp_mapping_fill(map, region, NULL, error);
	if (err) {
		rmp_map_drop(region, map);
		return ERR_PTR(err);
	}
	return map;
}

/* Locked: other keys for one trust group. */
static void rekey_switch_group(struct rmp_rekeying *step, u32 nr, u32 group,
			       struct rmpool_error *error)
{
	struct rmp_region *region = step->regions[nr];
	struct rmp_mapping **maps = rmp_region_maps(region, group);
	struct rmp_mapping *old, *new;
	struct rmpool_error why = {};
	u32 i;

	for (i = 0; maps && i < RMP_DEVICES_MAX; i++) {
		old = READ_ONCE(maps[i]);
		if (!rmp_map_has_keys(old))
			continue;
		new = rmp_map_renew(region, old, &why);
		/* What fails on a device that goes does not matter. */
		if (IS_ERR(new) && PTR_ERR(new) != -EAGAIN) {
			__set_bit(nr, step->again);
			if (!error->reason)
				*error = why;
		}
		if (IS_ERR(new))
			new = NULL;
		if (rmp_map_replace(region, old, new)) {
			old->region = region;
			list_add_tail(&old->node, &step->old);
		} else if (new) {
			/* The device goes, and with it what it has. */
			rmp_map_drop(region, new);
		}
	}
}

/* Nothing new uses the old keys of a region from here on, those of no group. */
static void rekey_switch(struct rmp_rekeying *step, u32 nr,
			 struct rmpool_error *error)
{
	u32 group;

	rmp_maps_lock();
	for (group = 0; group < RMP_GROUPS_MAX; group++)
		rekey_switch_group(step, nr, group, error);
	rmp_maps_unlock();
}

/* Asks peers for all regions of a step. */
static void rekey_ask(struct rmp_segment *segment, struct rmp_rekeying *step)
{
	u32 i;

	for (i = 0; i < step->nr; i++) {
		step->revs[i] = rmp_segment_rekey(segment, step->regions[i]);
		cond_resched();
	}
}

/* Maps what had no room beside its old mapping. */
static int rekey_again(struct rmp_region *region)
{
	int err;

	/* Unregistered meanwhile: nobody is to reach it, and nothing is lost. */
	if (READ_ONCE(region->dead))
		return 0;
	rmp_maps_lock();
	err = rmp_region_map_again(region);
	rmp_maps_unlock();
	/* Here and there, requests wait for it. */
	rmp_segment_changed(region->segment, region);
	rmp_regions_settled();
	return err;
}

/* Gives *@rev back, if there is one, once it is answered. */
static bool rekey_answered(struct rmp_revocation **rev, bool killable)
{
	if (!*rev)
		return true;
	if (!killable)
		wait_for_completion(&(*rev)->done);
	else if (wait_for_completion_killable(&(*rev)->done))
		return false;
	rmp_revocation_put(*rev);
	*rev = NULL;
	return true;
}

/* Until peers have let go, or were cut off; false: killed. */
static bool rekey_wait(struct rmp_rekeying *step, bool killable)
{
	u32 i;

	if (!rekey_answered(&step->withdrawn, killable))
		return false;
	for (i = 0; i < step->nr; i++) {
		if (!rekey_answered(&step->revs[i], killable))
			return false;
	}
	return true;
}

/* Destroys the old mappings when nothing uses them any more; ends the step, or, when
 * killed, returns false. How many regions could not be mapped again, in *@lost.
 */
static bool rekey_finish(struct rmp_rekeying *step, bool killable, u32 *lost)
{
	struct rmp_mapping *map, *next;
	u32 i;

	if (!rekey_wait(step, killable))
		return false;
	/* Who found one before it was replaced has counted itself by now. */
	synchronize_rcu();
	list_for_each_entry_safe(map, next, &step->old, node) {
		if (!killable)
			wait_var_event(&map->users,
				       atomic_read(&map->users) == 1);
		else if (wait_var_event_killable(&map->users,
						 atomic_read(&map->users) == 1))
			return false;
		list_del(&map->node);
		rmp_maps_lock();
		rmp_map_drop(map->region, map);
		rmp_maps_unlock();
	}
	for (i = 0; i < step->nr; i++) {
		if (test_bit(i, step->again) && rekey_again(step->regions[i]))
			++*lost;
		rmp_region_put(step->regions[i]);
		cond_resched();
	}
	return true;
}

static void rekey_work(struct work_struct *work)
{
	struct rmp_rekeying *step = container_of(work, struct rmp_rekeying, work);
	u32 lost = 0;

	rekey_finish(step, false, &lost);
	kfree(step);
}

int rmp_segment_rekey_all(struct rmp_segment *segment, u32 access,
			  struct rmp_revocation *withdrawn,
			  struct rmp_rekeyed *done)
{
	struct rmp_rekeying *step;
	struct rmpool_error error;
	u64 from = 0;
	int ret = 0;
	u32 i, lost;

	memset(done, 0, sizeof(*done));
	for (;;) {
		/* Small, and the right is to go whatever happens. */
		step = kzalloc(sizeof(*step), GFP_KERNEL | __GFP_NOFAIL);
		INIT_LIST_HEAD(&step->old);
		step->nr = rmp_segment_told(segment, access, &from,
					    step->regions, RMP_REKEY_STEP);
		if (!step->nr) {
			kfree(step);
			return ret;
		}
		if (withdrawn)
			kref_get(&withdrawn->ref);
		step->withdrawn = withdrawn;
		memset(&error, 0, sizeof(error));
		for (i = 0; i < step->nr; i++) {
			rekey_switch(step, i, &error);
			cond_resched();
		}
		rekey_ask(segment, step);
		done->regions += step->nr;
		lost = 0;
		if (rekey_finish(step, true, &lost)) {
			kfree(step);
		} else {
			ret = -EINTR;
			INIT_WORK(&step->work, rekey_work);
			queue_work(rmp_rekey_wq, &step->work);
		}
		if (lost && !done->lost)
			done->error = error;
		done->lost += lost;
	}
}

int rmp_rekey_init(void)
{
	rmp_rekey_wq = alloc_workqueue("rmpool_rekey", WQ_UNBOUND, 0);
	return rmp_rekey_wq ? 0 : -ENOMEM;
}

void rmp_rekey_exit(void)
{
	destroy_workqueue(rmp_rekey_wq);
}
