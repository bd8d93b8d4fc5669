// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open a segment, and with what access: a list of names. The entry with the name
 * of a peer counts, else the one with "*", else the peer may do nothing.
 *
 * Pure: no locks, no memory, any context. Lists are short (RMPOOL_ALLOW_MAX), so they
 * are read from end to end.
 */
#include "rights.h"

static const struct rmp_right *rights_find(const struct rmp_rights *rights,
					   const char *name)
{
	u32 i;

	for (i = 0; i < rights->nr; i++) {
		if (!strcmp(rights->of[i].peer, name))
			return &rights->of[i];
	}
	return NULL;
}

u32 rmp_rights_of(const struct rmp_rights *rights, const char *peer)
{
	const struct rmp_right *right;

	if (!rights)
		return RMP_RIGHTS_ALL;
	right = rights_find(rights, peer);
	if (!right)
		right = rights_find(rights, "*");
	return right ? right->access : 0;
}

/* What those who are named in @names lose. */
static u32 lost_by(const struct rmp_rights *names, const struct rmp_rights *from,
		   const struct rmp_rights *to)
{
	u32 i, lost = 0;

	for (i = 0; names && i < names->nr; i++)
		lost |= rmp_rights_of(from, names->of[i].peer) &
			~rmp_rights_of(to, names->of[i].peer);
	return lost;
}

u32 rmp_rights_lost(const struct rmp_rights *from, const struct rmp_rights *to)
{
	/* All whom neither names are alike. */
	return lost_by(from, from, to) | lost_by(to, from, to) |
	       (rmp_rights_of(from, "") & ~rmp_rights_of(to, ""));
}

u32 rmp_rights_twice(const struct rmp_rights *rights)
{
	u32 i;

	for (i = 0; i < rights->nr; i++) {
		if (rights_find(rights, rights->of[i].peer) != &rights->of[i])
			break;
	}
	return i;
}
