/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CANCEL_H
#define RMP_CANCEL_H

#include <linux/types.h>

struct rmp_batch;
struct rmp_file;

/**
 * struct rmp_match - which requests of a file to end
 * @batch: those of it, or NULL
 * @cookie: those with it, if @by_cookie is set
 * @by_cookie: see there
 * @dead: those that use a region which is dead
 * @forget: those who have nobody left to hear of them: for what only waits for the
 *	peer is not waited
 * @early: report those in flight at once, as unknown
 * @status: what they end with
 * @nr: out: how many will end that way
 */
struct rmp_match {
	struct rmp_batch *batch;
	u64 cookie;
	bool by_cookie;
	bool dead;
	bool forget;
	bool early;
	s32 status;
	u32 nr;
};

/* For transfer.c. Sleeps. */
void rmp_transfer_end_early(struct rmp_file *file, struct rmp_match *m);

#endif /* RMP_CANCEL_H */
