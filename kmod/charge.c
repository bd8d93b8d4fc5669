// SPDX-License-Identifier: GPL-2.0
/*
 * Charging pinned memory, against three limits.
 *
 * A page is charged once per region, however many devices it is mapped on. The
 * charge goes to the pinned_vm of the owner's address space, as for other RDMA
 * memory, so that VmPin shows it, and RLIMIT_MEMLOCK bounds it; the caller keeps
 * that mm_struct (mmgrab) until the charge is taken back, which may be long after
 * the address space itself is gone. Not so for dma-bufs: as for other users of these,
 * their memory is their exporter's affair. All goes also to the user who opened the
 * file and to the node: those limits are the administrator's, bind root as well, and
 * are no limits until they are set.
 *
 * Locking: rmp_pinned_lock guards users, their counts and that of the node, and is
 * held while all three limits are looked at, so what is refused by one of them
 * is not charged to another for a moment either: another thread's region, which
 * does fit, would be refused in it. A leaf.
 *
 * Lifetime: a user's entry lives as long as a file that its user opened.
 */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "pin.h"

struct rmp_user {
	struct list_head node;
	kuid_t uid;
	u32 refs;
	u64 pages;
	u32 staged;	/* staging.c's */
};

static unsigned long max_user_mib;
module_param(max_user_mib, ulong, 0644);
MODULE_PARM_DESC(max_user_mib,
		 "Most MiB that the processes of one user may have registered (0: no limit)");

static unsigned long max_pinned_mib;
module_param(max_pinned_mib, ulong, 0644);
MODULE_PARM_DESC(max_pinned_mib,
		 "Most MiB that all processes may have registered (0: no limit)");

static DEFINE_SPINLOCK(rmp_pinned_lock);
static LIST_HEAD(rmp_users);
static u64 rmp_pinned_pages;

struct rmp_user *rmp_user_get(kuid_t uid)
{
	struct rmp_user *user, *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	new->uid = uid;

	spin_lock(&rmp_pinned_lock);
	list_for_each_entry(user, &rmp_users, node) {
		if (uid_eq(user->uid, uid))
			goto out;
	}
	list_add(&new->node, &rmp_users);
	user = new;
	new = NULL;
out:
	user->refs++;
	spin_unlock(&rmp_pinned_lock);
	kfree(new);
	return user;
}

void rmp_user_put(struct rmp_user *user)
{
	bool last;

	spin_lock(&rmp_pinned_lock);
	last = !--user->refs;
	if (last)
		list_del(&user->node);
	spin_unlock(&rmp_pinned_lock);
	if (!last)
		return;
	WARN_ON_ONCE(user->pages || user->staged);
	kfree(user);
}

u32 *rmp_user_staged(struct rmp_user *user)
{
	return &user->staged;
}

/* In bytes, U64_MAX: none. */
static u64 rmp_limit(unsigned long mib)
{
	return mib && mib <= U64_MAX >> 20 ? (u64)mib << 20 : U64_MAX;
}

static bool rmp_over_memlock(struct mm_struct *mm, unsigned long nr,
			     struct rmpool_error *error)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK);
	s64 used = atomic64_read(&mm->pinned_vm);

	/* Others charge it without our lock. */
	do {
		if (used + nr > limit >> PAGE_SHIFT && !capable(CAP_IPC_LOCK)) {
			error->reason = RMPOOL_REASON_MEMLOCK;
			error->limit = limit;
			error->used = (u64)used << PAGE_SHIFT;
			error->need = (u64)nr << PAGE_SHIFT;
			return true;
		}
	} while (!atomic64_try_cmpxchg(&mm->pinned_vm, &used, used + nr));
	return false;
}

int rmp_charge(struct rmp_memory *mem, unsigned long nr, bool memlock,
	       struct rmpool_error *error)
{
	u64 need = (u64)nr << PAGE_SHIFT;
	int err = -ENOMEM;

	spin_lock(&rmp_pinned_lock);
	if (!rmp_limit_met(rmp_limit(READ_ONCE(max_user_mib)),
			   mem->user->pages << PAGE_SHIFT, need,
			   RMPOOL_REASON_USER_PINNED, error) &&
	    !rmp_limit_met(rmp_limit(READ_ONCE(max_pinned_mib)),
			   rmp_pinned_pages << PAGE_SHIFT, need,
			   RMPOOL_REASON_NODE_PINNED, error) &&
	    !(memlock && rmp_over_memlock(mem->mm, nr, error))) {
		mem->user->pages += nr;
		rmp_pinned_pages += nr;
		err = 0;
	}
	spin_unlock(&rmp_pinned_lock);
	return err;
}

void rmp_uncharge(struct rmp_memory *mem, unsigned long nr, bool memlock)
{
	spin_lock(&rmp_pinned_lock);
	mem->user->pages -= nr;
	rmp_pinned_pages -= nr;
	if (memlock)
		atomic64_sub(nr, &mem->mm->pinned_vm);
	spin_unlock(&rmp_pinned_lock);
}

void rmp_pinned_get(const struct rmp_memory *mem, struct rmp_pinned *pinned)
{
	pinned->user_limit = rmp_limit(READ_ONCE(max_user_mib));
	pinned->node_limit = rmp_limit(READ_ONCE(max_pinned_mib));
	spin_lock(&rmp_pinned_lock);
	pinned->user = mem->user->pages << PAGE_SHIFT;
	pinned->node = rmp_pinned_pages << PAGE_SHIFT;
	spin_unlock(&rmp_pinned_lock);
}
