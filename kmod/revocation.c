// SPDX-License-Identifier: GPL-2.0
/*
 * Revocations: subscribers of a segment are to let go of keys, and all of it counts as
 * done when the last of them has.
 *
 * A revocation counts the subscribers that were asked; each answers once, also when its
 * peer is lost or cut off (revoke.c has those of one peer). It keeps the regions that
 * it is about until the last answer, so that it needs nobody who waits: who does, and
 * is killed, leaves all of it as it is.
 *
 * Locking: rmp_revocation.lock and, within it, rmp_revoked_lock are leaves. Whom to ask is
 * known under the lock of the segment, which the one who asks holds.
 *
 * Lifetime: of a region, rmp_region.revoked is set while the region is kept, and has no
 * reference of its own: the revocation is there until it has given all regions back.
 *
 * Context: process. Whoever answers last ends it, and sleeps no longer than it takes to
 * give back many regions.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include "region.h"
#include "revocation.h"

static unsigned int rmp_revoke_wait_ms = 2000;
module_param_named(revoke_wait_ms, rmp_revoke_wait_ms, uint, 0644);
MODULE_PARM_DESC(revoke_wait_ms, "how long a peer gets to let go of memory that is unregistered, or that it may not reach any more, before its queue pairs are closed, in ms, 100 to 60000 (default 2000)");

/* What a peer gets in addition for each region of a segment that goes as a whole: it has
 * to look for all of them, and there may be a million.
 */
#define RMP_REVOKE_REGION_US	20

/* rmp_region.revoked; a leaf. */
static DEFINE_SPINLOCK(rmp_revoked_lock);

unsigned long rmp_revoke_wait(void)
{
	return msecs_to_jiffies(clamp(READ_ONCE(rmp_revoke_wait_ms), 100U,
				      60000U));
}

static void rmp_revocation_free(struct kref *ref)
{
	kfree(container_of(ref, struct rmp_revocation, ref));
}

void rmp_revocation_put(struct rmp_revocation *rev)
{
	kref_put(&rev->ref, rmp_revocation_free);
}

static void rmp_region_set_revoked(struct rmp_region *region,
				   struct rmp_revocation *rev)
{
	spin_lock(&rmp_revoked_lock);
	region->revoked = rev;
	spin_unlock(&rmp_revoked_lock);
}

struct rmp_revocation *rmp_revocation_of(const struct rmp_region *region)
{
	struct rmp_revocation *rev;

	spin_lock(&rmp_revoked_lock);
	/* It is there until it ends. */
	rev = region->revoked;
	if (rev)
		kref_get(&rev->ref);
	spin_unlock(&rmp_revoked_lock);
	return rev;
}

/* The last answer: nobody has the keys any more. */
static void rmp_revocation_end(struct rmp_revocation *rev)
{
	struct rmp_region *region, *next;
	LIST_HEAD(regions);

	spin_lock(&rev->lock);
	rev->over = true;
	list_splice_init(&rev->regions, &regions);
	spin_unlock(&rev->lock);
	list_for_each_entry_safe(region, next, &regions, revoke_node) {
		rmp_region_set_revoked(region, NULL);
		rmp_region_put(region);
		cond_resched();
	}
	complete_all(&rev->done);
}

static void rmp_revocation_count(struct rmp_revocation *rev)
{
	if (atomic_dec_and_test(&rev->pending))
		rmp_revocation_end(rev);
}

void rmp_revocation_answer(struct rmp_revocation *rev)
{
	rmp_revocation_count(rev);
	rmp_revocation_put(rev);
}

void rmp_revocation_keep(struct rmp_revocation *rev, struct rmp_region *region)
{
	spin_lock(&rev->lock);
	if (!rev->over) {
		kref_get(&region->ref);
		list_add_tail(&region->revoke_node, &rev->regions);
		rmp_region_set_revoked(region, rev);
	}
	spin_unlock(&rev->lock);
}

bool rmp_revocation_wait(struct rmp_revocation *rev, bool killable)
{
	bool done = true;

	if (killable)
		done = !wait_for_completion_killable(&rev->done);
	else
		wait_for_completion(&rev->done);
	rmp_revocation_put(rev);
	return done;
}

struct rmp_revocation *rmp_revocation_begin(u32 nr)
{
	struct rmp_revocation *rev;

	/* Small, and unregistering must not fail. */
	rev = kzalloc(sizeof(*rev), GFP_KERNEL | __GFP_NOFAIL);
	kref_init(&rev->ref);
	rev->due = jiffies + rmp_revoke_wait() +
		   usecs_to_jiffies(nr * RMP_REVOKE_REGION_US);
	init_completion(&rev->done);
	INIT_LIST_HEAD(&rev->node);
	spin_lock_init(&rev->lock);
	INIT_LIST_HEAD(&rev->regions);
	/* One for the loop itself: nobody must be the last one in the middle. */
	atomic_set(&rev->pending, 1);
	return rev;
}

void rmp_revocation_ask(struct rmp_revocation *rev, struct rmp_subscriber *sub,
			u64 region_id, rmp_ask_fn ask)
{
	kref_get(&rev->ref);
	atomic_inc(&rev->pending);
	ask(sub, region_id, rev);
}

struct rmp_revocation *rmp_revocation_asked(struct rmp_revocation *rev)
{
	rmp_revocation_count(rev);
	if (!completion_done(&rev->done))
		return rev;
	rmp_revocation_put(rev);
	return NULL;
}
