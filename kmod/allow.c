// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open a segment, as its owner says it: reading the list, putting it in the place
 * of the one before, and taking back what it does not allow any more.
 *
 * Peers that lose all they could do with the segment are told, and each region whose keys
 * are with peers, and that somebody may not reach any more in a way that it could, gets
 * other ones (rekey.c). Both have the time of a revocation to end what is in flight, and
 * are waited for together. Peers that stay silent are cut off.
 *
 * Context: process context of the owner. Locking: segment->changing from the list to the
 * end, so that lists come one after the other, and each call returns when what its own
 * list withdrew is gone. It is held while peers are waited for, and only by the owner.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "allow.h"
#include "rekey.h"
#include "transfer.h"

/* What each entry has had from the beginning. */
#define RMP_ALLOW_ENTRY_MIN	sizeof(struct rmpool_allow_entry)

static int entry_check(const struct rmpool_allow_entry *entry,
		       struct rmpool_error *error)
{
	static const char everybody[RMPOOL_NAME_MAX] = "*";

	/* "@" alone names no group. */
	if ((!rmp_name_valid(entry->peer) &&
	     memcmp(entry->peer, everybody, sizeof(everybody))) ||
	    !strcmp(entry->peer, "@")) {
		error->reason = RMPOOL_REASON_NAME_BAD;
		return -EINVAL;
	}
	return entry->reserved || entry->access & ~RMP_RIGHTS_ALL ? -EINVAL : 0;
}

/* The caller's list; NULL: none, ERR_PTR with @error. */
static struct rmp_rights *rights_read(const struct rmpool_segment_allow *arg,
				      struct rmpool_error *error)
{
	struct rmpool_allow_entry entry;
	struct rmp_rights *rights;
	int ret;
	u32 i;

	if (!(arg->flags & RMPOOL_ALLOW_LIST))
		return NULL;
	rights = kzalloc(struct_size(rights, of, arg->nr), GFP_KERNEL_ACCOUNT);
	if (!rights)
		return ERR_PTR(-ENOMEM);
	rights->nr = arg->nr;
	for (i = 0; i < arg->nr; i++) {
		memset(&entry, 0, sizeof(entry));
		ret = copy_struct_from_user(&entry, sizeof(entry),
					    u64_to_user_ptr(arg->entries +
							    (u64)i * arg->size),
					    arg->size);
		if (!ret)
			ret = entry_check(&entry, error);
		if (ret)
			goto err_entry;
		memcpy(rights->of[i].peer, entry.peer, sizeof(entry.peer));
		rights->of[i].access = entry.access;
	}
	i = rmp_rights_twice(rights);
	if (i == rights->nr)
		return rights;
	error->reason = RMPOOL_REASON_NAME_TAKEN;
	ret = -EEXIST;

err_entry:
	error->need = i;
	kfree(rights);
	return ERR_PTR(ret);
}

int rmp_segment_allow(struct rmp_segment *segment, struct rmp_rights *rights,
		      struct rmpool_segment_allow *arg)
{
	struct rmp_revocation *rev;
	struct rmp_rekeyed done;
	u32 lost;
	int ret;

	if (mutex_lock_killable(&segment->changing)) {
		kfree(rights);
		return -EINTR;
	}
	ret = rmp_segment_set_rights(segment, rights, &lost, &rev);
	if (ret) {
		kfree(rights);
		goto out;
	}
	ret = rmp_segment_rekey_all(segment, lost, rev, &done);
	/* There may be no region at all. */
	if (rev && !rmp_revocation_wait(rev, true))
		ret = -EINTR;
	arg->rekeyed = done.regions;
	arg->lost = done.lost;
	arg->error = done.error;
	if (!ret && done.lost)
		ret = -ENOSPC;
out:
	mutex_unlock(&segment->changing);
	return ret;
}

int rmp_allow(struct rmp_file *file, struct rmpool_segment_allow *arg)
{
	struct rmp_segment *segment;
	struct rmp_rights *rights;
	int ret;

	arg->rekeyed = 0;
	arg->lost = 0;
	memset(&arg->error, 0, sizeof(arg->error));
	if (arg->flags & ~RMPOOL_ALLOW_LIST ||
	    (arg->nr && !(arg->flags & RMPOOL_ALLOW_LIST)) ||
	    (arg->nr && arg->size < RMP_ALLOW_ENTRY_MIN))
		return -EINVAL;
	if (arg->nr > RMPOOL_ALLOW_MAX) {
		arg->error.reason = RMPOOL_REASON_BATCH;
		arg->error.limit = RMPOOL_ALLOW_MAX;
		arg->error.need = arg->nr;
		return -E2BIG;
	}
	/* No structure is larger: bytes to be looked at for being zero. */
	if (arg->size > PAGE_SIZE)
		return -E2BIG;

	down_read(&file->handles);
	segment = xa_load(&file->segments, arg->handle);
	if (segment)
		kref_get(&segment->ref);
	up_read(&file->handles);
	if (!segment)
		return -ENOENT;
	rights = rights_read(arg, &arg->error);
	ret = IS_ERR(rights) ? PTR_ERR(rights) :
			       rmp_segment_allow(segment, rights, arg);
	rmp_segment_put(segment);
	return ret;
}
