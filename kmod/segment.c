// SPDX-License-Identifier: GPL-2.0
/*
 * Segments: names under which files publish regions, and the peers that hold
 * keys of them.
 *
 * A segment maps offsets to regions. Peers that opened it are its subscribers:
 * they are told between which offsets regions were added or have become stale, and
 * asked to let go of keys before regions end: by a revocation, which counts their
 * answers (revocation.c).
 *
 * A segment may have a list of who may open it (rights.c). When it is changed, those that
 * lose their right are told and go; that they know keys is for rekey.c to see to.
 *
 * Locking: rmp_segment.lock guards what is in the segment; its holders may
 * sleep in other rooms. rmp_segment_lock guards both tables (name, id); it may
 * be taken inside the other, and nothing is taken inside it.
 *
 * Lifetime: both tables hold only live segments, so a reference can be taken
 * there. Deleting takes a segment out of them and leaves it to its holders:
 * the file, regions, subscribers.
 *
 * Context: process, sleeps.
 */
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rhashtable.h>
#include <linux/rmpool_netlink.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "segment.h"

static DEFINE_MUTEX(rmp_segment_lock);
static DEFINE_XARRAY_ALLOC1(rmp_segment_ids);
static u32 rmp_segment_next_id;
static struct rhashtable rmp_segment_names;
static const struct rmp_segment_ops *rmp_segment_ops;
/* One after the other, since mapping is; and not behind messages, which must not be behind
 * it.
 */
static struct workqueue_struct *rmp_reach_wq;

static const struct rhashtable_params rmp_segment_params = {
	.key_len = RMPOOL_NAME_MAX,
	.key_offset = offsetof(struct rmp_segment, name),
	.head_offset = offsetof(struct rmp_segment, by_name),
	.automatic_shrinking = true,
};

bool rmp_name_valid(const char name[RMPOOL_NAME_MAX])
{
	size_t len = strnlen(name, RMPOOL_NAME_MAX);
	size_t i;

	if (!len || len == RMPOOL_NAME_MAX)
		return false;
	for (i = 0; i < len; i++) {
		/* isalnum() knows Latin-1, too */
		if (!isascii(name[i]) ||
		    (!isalnum(name[i]) && !strchr("._:@-", name[i])))
			return false;
	}
	return !memchr_inv(name + len, 0, RMPOOL_NAME_MAX - len);
}

/* Asks all subscribers about a region, or about all, which are @nr then; NULL when all
 * had answered on the spot. @keep: the region does not end before they did.
 */
static struct rmp_revocation *rmp_segment_ask(struct rmp_segment *segment,
					      struct rmp_region *region, u32 nr,
					      rmp_ask_fn ask, bool keep)
{
	struct rmp_subscriber *sub;
	struct rmp_revocation *rev;

	lockdep_assert_held(&segment->lock);
	if (list_empty(&segment->subscribers))
		return NULL;
	rev = rmp_revocation_begin(nr);
	if (keep)
		rmp_revocation_keep(rev, region);
	list_for_each_entry(sub, &segment->subscribers, node) {
		if (sub->right)
			rmp_revocation_ask(rev, sub, region ? region->id : 0,
					   ask);
		cond_resched();
	}
	return rmp_revocation_asked(rev);
}

/* They are to let go of a region, or of all. */
static struct rmp_revocation *rmp_segment_revoke(struct rmp_segment *segment,
						 struct rmp_region *region, u32 nr)
{
	return rmp_segment_ask(segment, region, nr, rmp_segment_ops->revoke,
			       region);
}

/* Subscribers may fetch keys anew, of regions from one offset to another. */
static void rmp_segment_tell(struct rmp_segment *segment, u64 from, u64 to)
{
	struct rmp_subscriber *sub;

	lockdep_assert_held(&segment->lock);
	segment->generation++;
	list_for_each_entry(sub, &segment->subscribers, node) {
		if (sub->right)
			rmp_segment_ops->changed(sub, from, to);
		cond_resched();
	}
}

static void rmp_segment_free(struct kref *ref)
{
	struct rmp_segment *segment = container_of(ref, struct rmp_segment, ref);

	WARN_ON(!segment->dead || segment->nr_regions);
	if (segment->ending)
		rmp_revocation_put(segment->ending);
	mtree_destroy(&segment->regions);
	mutex_destroy(&segment->lock);
	mutex_destroy(&segment->changing);
	kfree(segment->rights);
	put_pid(segment->pid);
	kfree(segment);
}

void rmp_segment_put(struct rmp_segment *segment)
{
	kref_put(&segment->ref, rmp_segment_free);
}

static int rmp_segment_enter(struct rmp_segment *segment)
{
	int err;

	mutex_lock(&rmp_segment_lock);
	err = xa_alloc_cyclic(&rmp_segment_ids, &segment->id, segment,
			      xa_limit_31b, &rmp_segment_next_id,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0)
		goto out;
	err = rhashtable_lookup_insert_fast(&rmp_segment_names,
					    &segment->by_name,
					    rmp_segment_params);
	if (err)
		xa_erase(&rmp_segment_ids, segment->id);
out:
	mutex_unlock(&rmp_segment_lock);
	return err;
}

static void rmp_segment_reach_work(struct work_struct *work)
{
	struct rmp_segment *segment = container_of(work, struct rmp_segment, reach);

	rmp_segment_ops->reach(segment);
	rmp_segment_put(segment);
}

/* A subscriber of a trust group came or went. */
static void rmp_segment_count(struct rmp_segment *segment, u32 group, int by)
{
	u32 groups = segment->groups & ~BIT(group);

	lockdep_assert_held(&segment->lock);
	segment->opens[group] += by;
	if (group == RMP_GROUP_DEFAULT)
		return;
	if (segment->opens[group])
		groups |= BIT(group);
	if (groups & ~segment->groups) {
		kref_get(&segment->ref);
		if (!queue_work(rmp_reach_wq, &segment->reach))
			rmp_segment_put(segment);
	}
	WRITE_ONCE(segment->groups, groups);
}

struct rmp_segment *rmp_segment_create(const char *name)
{
	struct rmp_segment *segment;
	int err;

	if (!rmp_name_valid(name))
		return ERR_PTR(-EINVAL);
	segment = kzalloc(sizeof(*segment), GFP_KERNEL_ACCOUNT);
	if (!segment)
		return ERR_PTR(-ENOMEM);

	kref_init(&segment->ref);
	strscpy(segment->name, name, sizeof(segment->name));
	mutex_init(&segment->lock);
	mutex_init(&segment->changing);
	mt_init_flags(&segment->regions, 0);
	INIT_LIST_HEAD(&segment->subscribers);
	INIT_WORK(&segment->reach, rmp_segment_reach_work);
	segment->pid = get_pid(task_tgid(current));
	segment->uid = current_uid();

	/* Held, so that nobody is faster than the news. */
	mutex_lock(&segment->lock);
	err = rmp_segment_enter(segment);
	if (!err)
		rmp_segment_ops->event(segment, RMPOOL_EVENT_NEW);
	else
		segment->dead = true;
	mutex_unlock(&segment->lock);
	if (err) {
		rmp_segment_put(segment);
		return ERR_PTR(err);
	}
	return segment;
}

/* Must not fail: an entry left behind would outlive the region. */
static void rmp_segment_take_out(struct rmp_segment *segment,
				 const struct rmp_region *region)
{
	mtree_store_range(&segment->regions, region->offset,
			  region->offset + region->length - 1, NULL,
			  GFP_KERNEL | __GFP_NOFAIL);
}

/* Takes out all regions, step by step: there may be very many. */
static void rmp_segment_clear(struct rmp_segment *segment)
{
	struct rmp_region *region;
	unsigned long offset = 0;

	while ((region = mt_find(&segment->regions, &offset, ULONG_MAX))) {
		rmp_segment_take_out(segment, region);
		cond_resched();
	}
	segment->nr_regions = 0;
	segment->size = 0;
}

/* End of the last region. */
static u64 rmp_segment_end(struct rmp_segment *segment)
{
	MA_STATE(mas, &segment->regions, ULONG_MAX, ULONG_MAX);
	struct rmp_region *region;
	u64 end;

	mas_lock(&mas);
	region = mas_find_rev(&mas, 0);
	end = region ? region->offset + region->length : 0;
	mas_unlock(&mas);
	return end;
}

struct rmp_revocation *rmp_segment_delete(struct rmp_segment *segment)
{
	struct rmp_revocation *rev = NULL;
	u32 nr;

	mutex_lock(&segment->lock);
	if (segment->dead)
		goto out;
	WRITE_ONCE(segment->dead, true);
	nr = segment->nr_regions;
	rmp_segment_clear(segment);
	segment->generation++;
	rev = rmp_segment_revoke(segment, NULL, nr);
	/* For who unregisters its regions before it is over. */
	if (rev) {
		kref_get(&rev->ref);
		segment->ending = rev;
	}
	rmp_segment_ops->event(segment, RMPOOL_EVENT_GONE);

	mutex_lock(&rmp_segment_lock);
	rhashtable_remove_fast(&rmp_segment_names, &segment->by_name,
			       rmp_segment_params);
	xa_erase(&rmp_segment_ids, segment->id);
	mutex_unlock(&rmp_segment_lock);
out:
	mutex_unlock(&segment->lock);
	return rev;
}

struct rmp_revocation *rmp_segment_ending(struct rmp_segment *segment)
{
	struct rmp_revocation *rev;

	mutex_lock(&segment->lock);
	rev = segment->ending;
	segment->ending = NULL;
	mutex_unlock(&segment->lock);
	return rev;
}

static int rmp_segment_place(struct rmp_segment *segment, u64 length,
			     u64 *offset, u64 *end)
{
	u64 at = *offset;

	if (at == RMPOOL_OFFSET_NEXT &&
	    check_add_overflow(segment->size, (u64)PAGE_SIZE - 1, &at))
		return -EINVAL;
	if (*offset == RMPOOL_OFFSET_NEXT)
		at &= PAGE_MASK;
	if (!length || check_add_overflow(at, length, end))
		return -EINVAL;
	*offset = at;
	return 0;
}

int rmp_segment_insert(struct rmp_segment *segment, struct rmp_region *region,
		       u64 *offset)
{
	u64 at = *offset;
	u64 end;
	int err = -ESTALE;

	mutex_lock(&segment->lock);
	if (segment->dead)
		goto out;
	err = -EAGAIN;
	if (segment->groups & ~region->groups)
		goto out;
	err = rmp_segment_place(segment, region->length, &at, &end);
	if (err)
		goto out;
	region->offset = at;
	err = mtree_insert_range(&segment->regions, at, end - 1, region,
				 GFP_KERNEL_ACCOUNT);
	if (err)
		goto out;

	*offset = at;
	segment->nr_regions++;
	segment->size = max(segment->size, end);
	rmp_segment_tell(segment, at, end - 1);
	rmp_segment_ops->event(segment, RMPOOL_EVENT_CHANGED);
out:
	mutex_unlock(&segment->lock);
	return err;
}

void rmp_segment_remove(struct rmp_segment *segment, struct rmp_region *region)
{
	struct rmp_revocation *rev;

	mutex_lock(&segment->lock);
	if (segment->dead) {
		/* It went with all others, of which perhaps not all peers let go. */
		if (segment->ending)
			rmp_revocation_keep(segment->ending, region);
	} else if (mtree_load(&segment->regions, region->offset) == region) {
		rmp_segment_take_out(segment, region);
		segment->nr_regions--;
		segment->size = rmp_segment_end(segment);
		segment->generation++;
		rev = rmp_segment_revoke(segment, region, 0);
		if (rev)
			rmp_revocation_put(rev);
		rmp_segment_ops->event(segment, RMPOOL_EVENT_CHANGED);
	}
	mutex_unlock(&segment->lock);
}

int rmp_segment_set_rights(struct rmp_segment *segment, struct rmp_rights *rights,
			   u32 *lost, struct rmp_revocation **rev)
{
	struct rmp_rights *old;
	struct rmp_subscriber *sub;
	bool some = false;

	*rev = NULL;
	mutex_lock(&segment->lock);
	if (segment->dead) {
		mutex_unlock(&segment->lock);
		return -ENOENT;
	}
	old = segment->rights;
	*lost = rmp_rights_lost(old, rights);
	segment->rights = rights;
	*rev = rmp_revocation_begin(segment->nr_regions);
	list_for_each_entry(sub, &segment->subscribers, node) {
		cond_resched();
		/* It went before, and may come again as another one only. */
		if (!sub->right)
			continue;
		sub->right = rmp_rights_of(rights, sub->peer,
					   rmp_group_name(sub->group));
		if (sub->right)
			some = true;
		else
			rmp_revocation_ask(*rev, sub, 0, rmp_segment_ops->rekey);
	}
	*rev = rmp_revocation_asked(*rev);
	/* What the others may do stands with the keys. */
	if (some)
		rmp_segment_tell(segment, 0, U64_MAX);
	rmp_segment_ops->event(segment, RMPOOL_EVENT_CHANGED);
	mutex_unlock(&segment->lock);
	kfree(old);
	return 0;
}

u32 rmp_segment_told(struct rmp_segment *segment, u32 access, u64 *from,
		     struct rmp_region **regions, u32 nr)
{
	unsigned long at = *from;
	struct rmp_region *region;
	u32 n = 0;

	mutex_lock(&segment->lock);
	/* No region begins at the last byte of all: there it is over. */
	while (n < nr && at != ULONG_MAX) {
		region = mt_find(&segment->regions, &at, ULONG_MAX);
		if (!region || !at)
			at = ULONG_MAX;
		cond_resched();
		if (!region || !region->told || !(region->access & access))
			continue;
		/* Its file has a reference as long as it is in here. */
		kref_get(&region->ref);
		region->told = false;
		regions[n++] = region;
	}
	mutex_unlock(&segment->lock);
	*from = at;
	return n;
}

struct rmp_region *rmp_segment_next(struct rmp_segment *segment, u64 *from,
				    u32 *groups)
{
	struct rmp_region *region = NULL;
	unsigned long at = *from;

	mutex_lock(&segment->lock);
	/* No region begins at the last byte of all: there it is over. */
	if (at != ULONG_MAX)
		region = mt_find(&segment->regions, &at, ULONG_MAX);
	if (region)
		kref_get(&region->ref);
	*groups = segment->groups;
	mutex_unlock(&segment->lock);
	/* Behind the very last byte it begins anew. */
	*from = region && at ? at : ULONG_MAX;
	return region;
}

/* The region was revoked, alone or with its segment: who was asked then has the same time
 * to end what is in flight.
 */
static struct rmp_revocation *rmp_segment_revoked(struct rmp_segment *segment,
						  struct rmp_region *region)
{
	struct rmp_revocation *rev;

	lockdep_assert_held(&segment->lock);
	rev = rmp_revocation_of(region);
	if (rev || !segment->ending)
		return rev;
	kref_get(&segment->ending->ref);
	return segment->ending;
}

struct rmp_revocation *rmp_segment_rekey(struct rmp_segment *segment,
					 struct rmp_region *region)
{
	struct rmp_revocation *rev;

	mutex_lock(&segment->lock);
	if (mtree_load(&segment->regions, region->offset) == region) {
		segment->generation++;
		rev = rmp_segment_ask(segment, region, 0, rmp_segment_ops->rekey,
				      false);
	} else {
		rev = rmp_segment_revoked(segment, region);
	}
	mutex_unlock(&segment->lock);
	return rev;
}

int rmp_segment_subscribe(const char *name, struct rmp_subscriber *sub)
{
	struct rmp_segment *segment;
	int err = -ENOENT;

	if (!rmp_name_valid(name))
		return -ENOENT;

	mutex_lock(&rmp_segment_lock);
	segment = rhashtable_lookup_fast(&rmp_segment_names, name,
					 rmp_segment_params);
	if (segment)
		kref_get(&segment->ref);
	mutex_unlock(&rmp_segment_lock);
	if (!segment)
		return -ENOENT;

	mutex_lock(&segment->lock);
	if (!segment->dead) {
		sub->right = rmp_rights_of(segment->rights, sub->peer,
					   rmp_group_name(sub->group));
		err = sub->right ? 0 : -EACCES;
	}
	if (!err) {
		sub->segment = segment;
		list_add_tail(&sub->node, &segment->subscribers);
		rmp_segment_count(segment, sub->group, 1);
	}
	mutex_unlock(&segment->lock);
	if (err)
		rmp_segment_put(segment);
	return err;
}

void rmp_segment_unsubscribe(struct rmp_subscriber *sub)
{
	struct rmp_segment *segment = sub->segment;

	mutex_lock(&segment->lock);
	list_del_init(&sub->node);
	rmp_segment_count(segment, sub->group, -1);
	sub->segment = NULL;
	mutex_unlock(&segment->lock);
	rmp_segment_put(segment);
}

int rmp_segment_walk(u32 from, int (*fn)(struct rmp_segment *segment, void *arg),
		     void *arg)
{
	struct rmp_segment *segment;
	unsigned long id = from;
	int ret = 0;

	for (; !ret; id++) {
		mutex_lock(&rmp_segment_lock);
		segment = xa_find(&rmp_segment_ids, &id, U32_MAX, XA_PRESENT);
		if (segment)
			kref_get(&segment->ref);
		mutex_unlock(&rmp_segment_lock);
		if (!segment)
			break;

		mutex_lock(&segment->lock);
		if (!segment->dead)
			ret = fn(segment, arg);
		mutex_unlock(&segment->lock);
		rmp_segment_put(segment);
		cond_resched();
	}
	return ret;
}

static int rmp_segment_tell_all(struct rmp_segment *segment, void *arg)
{
	if (segment->nr_regions)
		rmp_segment_tell(segment, 0, U64_MAX);
	return 0;
}

void rmp_segment_changed(struct rmp_segment *segment, const struct rmp_region *region)
{
	mutex_lock(&segment->lock);
	if (!segment->dead) {
		if (region)
			rmp_segment_tell(segment, region->offset,
					 region->offset + region->length - 1);
		else
			rmp_segment_tell_all(segment, NULL);
		rmp_segment_ops->event(segment, RMPOOL_EVENT_CHANGED);
	}
	mutex_unlock(&segment->lock);
}

void rmp_segments_changed(void)
{
	rmp_segment_walk(0, rmp_segment_tell_all, NULL);
}

int rmp_segment_init(const struct rmp_segment_ops *ops)
{
	int ret;

	rmp_segment_ops = ops;
	rmp_reach_wq = alloc_workqueue("rmpool_reach", WQ_UNBOUND, 1);
	if (!rmp_reach_wq)
		return -ENOMEM;
	ret = rhashtable_init(&rmp_segment_names, &rmp_segment_params);
	if (ret)
		destroy_workqueue(rmp_reach_wq);
	return ret;
}

void rmp_segment_exit(void)
{
	destroy_workqueue(rmp_reach_wq);
	WARN_ON(!xa_empty(&rmp_segment_ids));
	rhashtable_destroy(&rmp_segment_names);
}
