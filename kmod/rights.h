/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_RIGHTS_H
#define RMP_RIGHTS_H

#include <linux/rmpool.h>
#include "pure.h"

/* All that a peer can be allowed. */
#define RMP_RIGHTS_ALL	(RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE)

/**
 * struct rmp_right - what one peer may do
 * @peer: its name in the peer table, NUL-terminated, or "*": who is not named
 * @access: RMPOOL_ACCESS_REMOTE_*; 0: nothing
 */
struct rmp_right {
	char peer[RMPOOL_NAME_MAX];
	u32 access;
};

/**
 * struct rmp_rights - who may open a segment; does not change once it is in use
 * @nr: of @of
 * @of: each name once, in any order
 *
 * Where there is none at all (NULL), everybody may do everything.
 */
struct rmp_rights {
	u32 nr;
	struct rmp_right of[];
};

/* What @peer may do; "" is somebody whom no list names. */
u32 rmp_rights_of(const struct rmp_rights *rights, const char *peer);
/* What anybody at all may not do any more when @to takes the place of @from. */
u32 rmp_rights_lost(const struct rmp_rights *from, const struct rmp_rights *to);
/* Index of the first entry whose name an earlier one has, or rights->nr. */
u32 rmp_rights_twice(const struct rmp_rights *rights);

#endif /* RMP_RIGHTS_H */
