/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_PIN_H
#define RMP_PIN_H

#include "region.h"

/* Part of the region room. */

/* What a user has pinned; NULL: no memory. One for all who ask for the same. */
struct rmp_user *rmp_user_get(kuid_t uid);
void rmp_user_put(struct rmp_user *user);
/* Pieces for copies that a user has, under the lock of staging.c. */
u32 *rmp_user_staged(struct rmp_user *user);

/* Charges @nr pages to the user and the node and, if @memlock, to the owner's
 * RLIMIT_MEMLOCK; all or nothing. -ENOMEM with the limit in @error.
 */
int rmp_charge(struct rmp_memory *mem, unsigned long nr, bool memlock,
	       struct rmpool_error *error);
void rmp_uncharge(struct rmp_memory *mem, unsigned long nr, bool memlock);

/**
 * struct rmp_pinned - limits of pinned memory and what is in use, in bytes
 * @user: by the user of a file
 * @user_limit: of each user, U64_MAX: none
 * @node: by all
 * @node_limit: of the node, U64_MAX: none
 */
struct rmp_pinned {
	u64 user;
	u64 user_limit;
	u64 node;
	u64 node_limit;
};

void rmp_pinned_get(const struct rmp_memory *mem, struct rmp_pinned *pinned);

/* Whether memory of the caller is of a kind that can be pinned for long, for writing
 * as well if @write. -EOPNOTSUPP if not, -EFAULT if some of it is missing, each with
 * reason and address in @error; -EINTR.
 */
int rmp_kind_check(unsigned long addr, unsigned long length, bool write,
		   struct rmpool_error *error);

/* Pins @nr pages of the caller from @addr (page aligned) on, for long. What was
 * pinned is counted in @pinned, also when it fails; @bad is the address where.
 */
int rmp_pin(unsigned long addr, unsigned long nr, bool write,
	    struct page **pages, unsigned long *pinned, u64 *bad);
void rmp_unpin(struct page **pages, unsigned long nr, bool dirty);

#endif /* RMP_PIN_H */
