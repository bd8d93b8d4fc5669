/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REVOCATION_H
#define RMP_REVOCATION_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct rmp_region;
struct rmp_subscriber;

/* How long peers get to let go of keys, in jiffies; then they are cut off. */
unsigned long rmp_revoke_wait(void);

/**
 * struct rmp_revocation - peers are to let go of keys
 * @ref: who may wait, the segment that is its @ending, each subscriber that was asked
 * @due: jiffies: who has not answered by then is cut off
 * @pending: subscribers that did not answer yet
 * @done: completed by the last of them
 * @node: for the waiter, to keep several
 * @lock: guards the rest; a leaf
 * @regions: of &struct rmp_region.revoke_node: each with a reference, which the last
 *	answer gives back
 * @over: it was given
 *
 * Ends by itself, whether anybody waits or not: a peer answers, is cut off, or loses
 * its session.
 */
struct rmp_revocation {
	struct kref ref;
	unsigned long due;
	atomic_t pending;
	struct completion done;
	struct list_head node;
	spinlock_t lock;	/* of the rest */
	struct list_head regions;
	bool over;
};

/* Asks a subscriber, see &struct rmp_segment_ops. */
typedef void (*rmp_ask_fn)(struct rmp_subscriber *sub, u64 region_id,
			   struct rmp_revocation *rev);

/* By segment.c, with the lock of the segment held: begins one of @nr regions that a peer
 * has to look for, or of 0: one, which it finds at once. Does not fail. To be followed by
 * rmp_revocation_asked().
 */
struct rmp_revocation *rmp_revocation_begin(u32 nr);
/* The region does not end before it, if it is not over by then. */
void rmp_revocation_keep(struct rmp_revocation *rev, struct rmp_region *region);
/* One more has to answer: calls @ask. */
void rmp_revocation_ask(struct rmp_revocation *rev, struct rmp_subscriber *sub,
			u64 region_id, rmp_ask_fn ask);
/* All are asked. Returns @rev, or NULL, and gives it back, when they have answered on the
 * spot.
 */
struct rmp_revocation *rmp_revocation_asked(struct rmp_revocation *rev);
/* That which keeps a region, referenced, or NULL. */
struct rmp_revocation *rmp_revocation_of(const struct rmp_region *region);

/* Waits until all let go, and gives the reference back. @killable: gives up at a
 * fatal signal (false).
 */
bool rmp_revocation_wait(struct rmp_revocation *rev, bool killable);
void rmp_revocation_put(struct rmp_revocation *rev);
/* For one subscriber, which has let go. Process context. */
void rmp_revocation_answer(struct rmp_revocation *rev);

#endif /* RMP_REVOCATION_H */
