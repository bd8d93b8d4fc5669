/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REKEY_H
#define RMP_REKEY_H

#include "segment.h"

/**
 * struct rmp_rekeyed - what became of regions that got other keys
 * @regions: how many did
 * @lost: how many of those are not on all their devices any more
 * @error: a limit that was met by the first of those
 */
struct rmp_rekeyed {
	u32 regions;
	u32 lost;
	struct rmpool_error error;
};

/**
 * rmp_segment_rekey_all - take keys back that peers have of a segment
 * @segment: referenced
 * @access: RMPOOL_ACCESS_REMOTE_*: of regions that allow any of that
 * @withdrawn: peers that lost all of their right, or NULL; remains the caller's
 * @done: out
 *
 * When it returns, no device takes keys that were told before, and who had them, or was
 * asked by @withdrawn, has ended what was in flight. Peers go on with those
 * that they are told instead. Process context; killable: then the rest happens in the
 * background, and regions may be left without keys (-EINTR).
 */
int rmp_segment_rekey_all(struct rmp_segment *segment, u32 access,
			  struct rmp_revocation *withdrawn,
			  struct rmp_rekeyed *done);

int rmp_rekey_init(void);
/* No file is left. */
void rmp_rekey_exit(void);

#endif /* RMP_REKEY_H */
