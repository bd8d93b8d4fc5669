/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_RIGHTS_H
#define RMP_RIGHTS_H

#include <linux/rmpool.h>
#include "pure.h"

/* All that a peer can be allowed. */
#define RMP_RIGHTS_ALL	(RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE)

/**
 * struct rmp_right - what one peer may do
 * @peer: its name in the peer table, NUL-terminated; "@" and the name of a trust group: who
 *	is in that; or "*": the others
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

/* What @peer may do, who is in trust group @group; "" is somebody, or a group, whom no list
 * names.
 */
u32 rmp_rights_of(const struct rmp_rights *rights, const char *peer,
		  const char *group);
/* What anybody at all may not do any more when @to takes the place of @from. Of whom one of
 * them names and the other does not, the group is not known: whatever it may be.
 */
u32 rmp_rights_lost(const struct rmp_rights *from, const struct rmp_rights *to);
/* Index of the first entry whose name an earlier one has, or rights->nr. */
u32 rmp_rights_twice(const struct rmp_rights *rights);

#endif /* RMP_RIGHTS_H */
