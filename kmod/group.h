/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_GROUP_H
#define RMP_GROUP_H

#include "rmpool.h"

/* Trust groups at a time, the default one among them. */
#define RMP_GROUPS_MAX		16
/* The one of peers that are put in no other; always there. */
#define RMP_GROUP_DEFAULT	0
#define RMP_GROUP_DEFAULT_NAME	"default"

/* For a new peer: the index of the group with that name, which is made if there is none;
 * -ENOSPC: there are too many.
 */
int rmp_group_join(const char *name);
/* True: that was its last peer. Then nobody joins it any more, nor begins to use it, and
 * the caller has one use of it, to be given back when nothing is left of it.
 */
bool rmp_group_leave(u32 group);
/* What belongs to a group keeps its index from meaning another one. False: it has no peer
 * any more.
 */
bool rmp_group_use(u32 group);
void rmp_group_unuse(u32 group);
/* Stays as it is as long as the group has a peer, or is used. */
const char *rmp_group_name(u32 group);

#endif /* RMP_GROUP_H */
