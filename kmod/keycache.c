// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of one segment of a peer.
 *
 * Regions come in run by run. The one that is coming in (kc->cur) and its keys
 * (kc->cur_keys) are seen by nobody until the last run of it was there; then
 * it is inserted in the tree, or, when it was known before, its keys are
 * replaced by one pointer. So a reader sees all keys of a region or none, and
 * at most one region is half done, however hostile the peer. When the peer does not
 * tell a device any more, its keys stay where they are, marked as not to be used, until
 * others take their place.
 *
 * Locking: changes are serialised by the caller and may sleep. Readers take no
 * lock: rmp_keycache_find() walks the maple tree under RCU and takes a
 * reference unless the last one is gone; rmp_rregion_remote() reads the keys
 * under RCU. The tree's own spinlock only serialises against nobody, but the
 * tree wants it.
 *
 * Lifetime: a region belongs to the cache (one reference while it is in the
 * tree) and to the requests that use it. With the last reference it goes to
 * @released, and from there to rmp_rregion_free(), which waits for RCU readers
 * that may still look at it. Old keys are freed by RCU as well.
 */
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "keycache.h"

/* Offsets and ids are 64 bits, and so must be the index of tree and xarray. */
static_assert(BITS_PER_LONG == 64);

/* Smallest page a peer may have; its iova_base is aligned to that at least. */
#define PEER_PAGE_MASK	((1ULL << RMP_WIRE_SHIFT_MIN) - 1)
/* Keys copied without a look at the scheduler. */
#define COPY_KEYS	32768

void rmp_keycache_init(struct rmp_keycache *kc,
		       void (*released)(struct rmp_rregion *rr), void *owner)
{
	memset(kc, 0, sizeof(*kc));
	mt_init_flags(&kc->tree, MT_FLAGS_USE_RCU);
	xa_init(&kc->by_id);
	kc->released = released;
	kc->owner = owner;
}

/* Keys that the region has now; for the one who changes. */
static struct rmp_rkeys *keys_of(const struct rmp_rregion *rr)
{
	return rcu_dereference_protected(rr->rkeys, true);
}

static u64 nr_keys(const struct rmp_rregion *rr, const struct rmp_rkeys *keys)
{
	return keys ? (u64)hweight32(keys->devices) * rr->nr_chunks : 0;
}

void rmp_keycache_begin(struct rmp_keycache *kc)
{
	kvfree(kc->cur_keys);
	kc->cur_keys = NULL;
	kc->cur_filled = 0;
	if (kc->cur_new)
		kfree(kc->cur);
	kc->cur = NULL;
	kc->cur_new = false;
}

/* What is wrong with the geometry of a run by itself; also counts its chunks. */
static int check_run(const struct rmp_wire_keys *run, u32 *nr_chunks)
{
	u64 end, lead, chunks;

	if (run->access & ~(RMPOOL_ACCESS_REMOTE_READ |
			    RMPOOL_ACCESS_REMOTE_WRITE | RMP_WIRE_STALE))
		return -EBADMSG;
	if (run->access & RMP_WIRE_STALE && run->nr)
		return -EBADMSG;
	if (run->chunk_shift < RMP_WIRE_SHIFT_MIN ||
	    run->chunk_shift > RMP_WIRE_SHIFT_MAX ||
	    run->device >= RMP_WIRE_DEVICES_MAX)
		return -EBADMSG;
	if (!run->length || check_add_overflow(run->offset, run->length, &end) ||
	    check_add_overflow(run->iova, run->length, &end))
		return -EBADMSG;
	/* The first byte lies in the first chunk. */
	if (run->iova_base & PEER_PAGE_MASK || run->iova < run->iova_base)
		return -EBADMSG;
	lead = run->iova - run->iova_base;
	if (lead >> run->chunk_shift)
		return -EBADMSG;
	chunks = ((lead + run->length - 1) >> run->chunk_shift) + 1;
	if (chunks > RMP_KEYS_MAX)
		return -ENOSPC;
	if (run->first > chunks || run->nr > chunks - run->first)
		return -EBADMSG;
	*nr_chunks = chunks;
	return 0;
}

static bool same_region(const struct rmp_keycache *kc,
			const struct rmp_wire_keys *run)
{
	const struct rmp_rregion *rr = kc->cur;
	u32 access = kc->cur_access | (kc->cur_stale ? RMP_WIRE_STALE : 0);

	return rr->id == run->region && rr->offset == run->offset &&
	       rr->length == run->length && access == run->access &&
	       rr->iova == run->iova && rr->iova_base == run->iova_base &&
	       rr->chunk_shift == run->chunk_shift;
}

/* One that is what @like is, without keys, and in nothing yet; with @refs references. */
static struct rmp_rregion *new_region(const struct rmp_keycache *kc,
				      const struct rmp_rregion *like, int refs)
{
	struct rmp_rregion *rr = kzalloc(sizeof(*rr), GFP_KERNEL);

	if (!rr)
		return NULL;
	refcount_set(&rr->ref, refs);
	rr->id = like->id;
	rr->offset = like->offset;
	rr->length = like->length;
	rr->access = like->access;
	rr->iova = like->iova;
	rr->iova_base = like->iova_base;
	rr->chunk_shift = like->chunk_shift;
	rr->nr_chunks = like->nr_chunks;
	rr->stale = like->stale;
	rr->released = kc->released;
	rr->owner = kc->owner;
	INIT_LIST_HEAD(&rr->node);
	return rr;
}

/* The first run of a region: makes it the current one. */
static int open_region(struct rmp_keycache *kc, const struct rmp_wire_keys *run,
		       u32 nr_chunks)
{
	struct rmp_rregion *rr = xa_load(&kc->by_id, run->region);
	const struct rmp_rregion told = {
		.id = run->region,
		.offset = run->offset,
		.length = run->length,
		.access = run->access & ~RMP_WIRE_STALE,
		.iova = run->iova,
		.iova_base = run->iova_base,
		.chunk_shift = run->chunk_shift,
		.nr_chunks = nr_chunks,
	};

	kc->cur_stale = run->access & RMP_WIRE_STALE;
	kc->cur_access = told.access;
	if (rr) {
		/* What is stale stays so. */
		if (rr->stale && !kc->cur_stale)
			return -EBADMSG;
		kc->cur = rr;
		return 0;
	}
	if (kc->nr_regions >= RMP_RREGIONS_MAX)
		return -ENOSPC;
	rr = new_region(kc, &told, 1);
	if (!rr)
		return -ENOMEM;
	kc->cur = rr;
	kc->cur_new = true;
	return 0;
}

/* The first run of a device: makes room for all keys of it. */
static int open_device(struct rmp_keycache *kc, u32 device)
{
	struct rmp_rregion *rr = kc->cur;
	u64 old = nr_keys(rr, kc->cur_keys);
	u64 held = kc->nr_keys - nr_keys(rr, keys_of(rr));
	u64 wanted = old + rr->nr_chunks;
	struct rmp_rkeys *keys;
	u64 i, n;

	if (held + wanted > RMP_KEYS_MAX)
		return -ENOSPC;
	keys = kvmalloc(struct_size(keys, keys, wanted), GFP_KERNEL);
	if (!keys)
		return -ENOMEM;
	keys->devices = BIT(device);
	for (i = 0; i < old; i += n) {
		n = min_t(u64, old - i, COPY_KEYS);
		memcpy(keys->keys + i, kc->cur_keys->keys + i,
		       n * sizeof(keys->keys[0]));
		cond_resched();
	}
	if (kc->cur_keys)
		keys->devices |= kc->cur_keys->devices;
	kvfree(kc->cur_keys);
	kc->cur_keys = keys;
	kc->cur_filled = 0;
	return 0;
}

static int take_run(struct rmp_keycache *kc, const struct rmp_wire_keys *run)
{
	u32 nr_chunks;
	u32 *keys;
	u32 last;
	int ret;
	u32 i;

	ret = check_run(run, &nr_chunks);
	if (ret)
		return ret;
	if (kc->cur && kc->cur->id != run->region) {
		ret = rmp_keycache_commit(kc);
		if (ret)
			return ret;
	}
	if (!kc->cur) {
		ret = open_region(kc, run, nr_chunks);
		if (ret)
			return ret;
	}
	if (!same_region(kc, run))
		return -EBADMSG;
	if (!run->nr)
		return run->first ? -EBADMSG : 0;

	last = kc->cur_keys ? fls(kc->cur_keys->devices) - 1 : 0;
	if (!kc->cur_keys || run->device != last) {
		/* Upwards, and the device before must be complete. */
		if (kc->cur_keys && (run->device < last ||
				     kc->cur_filled != nr_chunks))
			return -EBADMSG;
		ret = open_device(kc, run->device);
		if (ret)
			return ret;
	}
	if (run->first != kc->cur_filled)
		return -EBADMSG;
	keys = kc->cur_keys->keys + nr_keys(kc->cur, kc->cur_keys) - nr_chunks;
	for (i = 0; i < run->nr; i++)
		keys[run->first + i] = rmp_keys_rkey(run, i);
	kc->cur_filled += run->nr;
	return 0;
}

int rmp_keycache_add(struct rmp_keycache *kc, const struct rmp_wire_keys *run)
{
	int ret = take_run(kc, run);

	if (ret)
		rmp_keycache_begin(kc);
	return ret;
}

/* Makes a new region findable. */
static int insert_region(struct rmp_keycache *kc, struct rmp_rregion *rr)
{
	int ret;

	ret = xa_insert(&kc->by_id, rr->id, rr, GFP_KERNEL);
	if (ret)
		return ret;
	ret = mtree_insert_range(&kc->tree, rr->offset,
				 rr->offset + rr->length - 1, rr, GFP_KERNEL);
	if (ret) {
		xa_erase(&kc->by_id, rr->id);
		return ret == -EEXIST ? -EBADMSG : ret;
	}
	kc->nr_regions++;
	kc->changes++;
	kc->size = max(kc->size, rr->offset + rr->length);
	return 0;
}

int rmp_keycache_commit(struct rmp_keycache *kc)
{
	struct rmp_rregion *rr = kc->cur;
	struct rmp_rkeys *old;
	int ret = 0;

	if (!rr)
		return 0;
	old = keys_of(rr);
	if (kc->cur_keys && kc->cur_filled != rr->nr_chunks) {
		ret = -EBADMSG;
		goto out;
	}
	if (kc->cur_keys)
		kc->cur_keys->usable = kc->cur_keys->devices;
	if (rr->stale != kc->cur_stale || rr->access != kc->cur_access)
		kc->changes++;
	/* Before the keys go: who finds none knows why. */
	if (kc->cur_stale)
		WRITE_ONCE(rr->stale, true);
	WRITE_ONCE(rr->access, kc->cur_access);
	rcu_assign_pointer(rr->rkeys, kc->cur_keys);
	if (kc->cur_new) {
		ret = insert_region(kc, rr);
		if (ret) {
			RCU_INIT_POINTER(rr->rkeys, NULL);
			goto out;
		}
		kc->cur_new = false;
	}
	kc->nr_keys += nr_keys(rr, kc->cur_keys);
	kc->nr_keys -= nr_keys(rr, old);
	kc->cur_keys = NULL;
	if (old)
		kvfree_rcu(old, rcu);
out:
	rmp_keycache_begin(kc);
	return ret;
}

/* End of the last region that is left. */
static u64 find_size(struct rmp_keycache *kc)
{
	MA_STATE(mas, &kc->tree, ULONG_MAX, ULONG_MAX);
	struct rmp_rregion *rr;

	/* The lock serves the tree's own checks, nothing changes it here. */
	mtree_lock(&kc->tree);
	rr = mas_prev(&mas, 0);
	mtree_unlock(&kc->tree);
	return rr ? rr->offset + rr->length : 0;
}

static void take_out(struct rmp_keycache *kc, struct rmp_rregion *rr)
{
	WRITE_ONCE(rr->revoked, true);
	xa_erase(&kc->by_id, rr->id);
	/* Must not fail: an entry left behind would outlive the region. */
	mtree_store_range(&kc->tree, rr->offset, rr->offset + rr->length - 1,
			  NULL, GFP_KERNEL | __GFP_NOFAIL);
	kc->nr_regions--;
	kc->changes++;
	kc->nr_keys -= nr_keys(rr, keys_of(rr));
}

struct rmp_rregion *rmp_keycache_remove(struct rmp_keycache *kc, u64 id)
{
	struct rmp_rregion *rr;

	if (kc->cur && kc->cur->id == id)
		rmp_keycache_begin(kc);
	rr = xa_load(&kc->by_id, id);
	if (!rr)
		return NULL;
	take_out(kc, rr);
	if (rr->offset + rr->length == kc->size)
		kc->size = find_size(kc);
	return rr;
}

struct rmp_rregion *rmp_keycache_renew(struct rmp_keycache *kc, u64 id)
{
	struct rmp_rregion *rr, *new;

	/* What is half told of it may be keys of before. */
	if (kc->cur && kc->cur->id == id)
		rmp_keycache_begin(kc);
	rr = xa_load(&kc->by_id, id);
	if (!rr)
		return NULL;
	/* The cache's reference, and that of the old one. */
	new = new_region(kc, rr, 2);
	if (!new)
		return ERR_PTR(-ENOMEM);
	/* In a place that is there already. */
	xa_store(&kc->by_id, id, new, GFP_KERNEL);
	mtree_store_range(&kc->tree, rr->offset, rr->offset + rr->length - 1,
			  new, GFP_KERNEL | __GFP_NOFAIL);
	kc->nr_keys -= nr_keys(rr, keys_of(rr));
	/* Pairs with the acquire load of who has the old one. */
	smp_store_release(&rr->next, new);
	return rr;
}

void rmp_keycache_drop_device(struct rmp_keycache *kc, u32 device)
{
	struct rmp_rregion *rr;
	struct rmp_rkeys *keys;
	unsigned long id;

	xa_for_each(&kc->by_id, id, rr) {
		keys = keys_of(rr);
		if (keys)
			WRITE_ONCE(keys->usable, keys->usable & ~BIT(device));
		cond_resched();
	}
}

void rmp_keycache_clear(struct rmp_keycache *kc)
{
	struct rmp_rregion *rr;
	unsigned long id;

	rmp_keycache_begin(kc);
	xa_for_each(&kc->by_id, id, rr) {
		take_out(kc, rr);
		rmp_rregion_put(rr);
		cond_resched();
	}
	kc->size = 0;
}

void rmp_keycache_destroy(struct rmp_keycache *kc)
{
	rmp_keycache_clear(kc);
	xa_destroy(&kc->by_id);
	mtree_destroy(&kc->tree);
}

bool rmp_keycache_idle(struct rmp_keycache *kc)
{
	struct rmp_rregion *rr;
	unsigned long id;

	xa_for_each(&kc->by_id, id, rr) {
		if (refcount_read(&rr->ref) != 1)
			return false;
		cond_resched();
	}
	return true;
}

struct rmp_rregion *rmp_keycache_find(struct rmp_keycache *kc, u64 offset,
				      u64 length, u32 access)
{
	struct rmp_rregion *rr;
	int ret = -ENXIO;

	rcu_read_lock();
	rr = mtree_load(&kc->tree, offset);
	/* Nothing may also be moved at the very end of a region. */
	if (!rr && !length && offset)
		rr = mtree_load(&kc->tree, offset - 1);
	if (rr && !READ_ONCE(rr->revoked)) {
		if (length > rr->length - (offset - rr->offset))
			ret = -ERANGE;
		else if (access & ~READ_ONCE(rr->access))
			ret = -EACCES;
		else if (READ_ONCE(rr->stale))
			ret = -ESTALE;
		else if (refcount_inc_not_zero(&rr->ref))
			ret = 0;
	}
	rcu_read_unlock();
	return ret ? ERR_PTR(ret) : rr;
}

void rmp_rregion_hold(struct rmp_rregion *rr)
{
	refcount_inc(&rr->ref);
}

void rmp_rregion_put(struct rmp_rregion *rr)
{
	struct rmp_rregion *next;

	/* Each of a chain holds the next one. */
	while (rr && refcount_dec_and_test(&rr->ref)) {
		next = rr->next;
		rr->released(rr);
		rr = next;
	}
}

void rmp_rregion_free(struct rmp_rregion *rr)
{
	struct rmp_rkeys *keys = keys_of(rr);

	/* Without a reference nobody reads keys; kvfree() might sleep here. */
	if (keys)
		kvfree_rcu(keys, rcu);
	kfree_rcu(rr, rcu);
}

u64 rmp_rregion_remote(const struct rmp_rregion *rr, u32 device, u64 pos,
		       u64 *iova, u32 *rkey)
{
	const struct rmp_rkeys *keys;
	u64 at, left;
	u32 row;

	if (device >= RMP_WIRE_DEVICES_MAX || pos >= rr->length)
		return 0;
	at = rr->iova + pos - rr->iova_base;
	rcu_read_lock();
	keys = rcu_dereference(rr->rkeys);
	if (!keys || !(READ_ONCE(keys->usable) & BIT(device))) {
		rcu_read_unlock();
		return 0;
	}
	row = hweight32(keys->devices & (BIT(device) - 1));
	*rkey = keys->keys[(u64)row * rr->nr_chunks + (at >> rr->chunk_shift)];
	rcu_read_unlock();
	/* The chunk is on other devices. */
	if (!*rkey)
		return 0;
	*iova = rr->iova + pos;
	left = (1ULL << rr->chunk_shift) - (at & ((1ULL << rr->chunk_shift) - 1));
	return min(left, rr->length - pos);
}

bool rmp_rregion_away(const struct rmp_rregion *rr)
{
	const struct rmp_rkeys *keys;
	bool away;

	rcu_read_lock();
	keys = rcu_dereference(rr->rkeys);
	away = keys && keys->devices & ~READ_ONCE(keys->usable);
	rcu_read_unlock();
	return away;
}

u32 rmp_keycache_list(struct rmp_keycache *kc, u64 *at, u32 first,
		      struct rmpool_region_desc *desc, u32 nr)
{
	MA_STATE(mas, &kc->tree, *at, *at);
	struct rmp_rregion *rr;
	u32 n = 0;

	rcu_read_lock();
	mas_for_each(&mas, rr, ULONG_MAX) {
		if (first) {
			first--;
		} else if (n < nr) {
			desc[n++] = (struct rmpool_region_desc){
				.offset = rr->offset,
				.length = rr->length,
				.access = READ_ONCE(rr->access),
				.flags = READ_ONCE(rr->stale) ?
					 RMPOOL_REGION_DESC_STALE : 0,
			};
			*at = rr->offset + rr->length;
		} else {
			break;
		}
		if (need_resched()) {
			mas_pause(&mas);
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
	return n;
}
