// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open a segment, and with what access: a list of names. The entry with the name
 * of a peer counts, else the one with "@" and the name of its trust group, else the one with
 * "*", else the peer may do nothing.
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

static bool right_is_group(const struct rmp_right *right)
{
	return *right->peer == '@';
}

static const struct rmp_right *rights_find_group(const struct rmp_rights *rights,
						 const char *group)
{
	u32 i;

	for (i = 0; i < rights->nr; i++) {
		if (right_is_group(&rights->of[i]) &&
		    !strcmp(rights->of[i].peer + 1, group))
			return &rights->of[i];
	}
	return NULL;
}

u32 rmp_rights_of(const struct rmp_rights *rights, const char *peer,
		  const char *group)
{
	const struct rmp_right *right;

	if (!rights)
		return RMP_RIGHTS_ALL;
	right = rights_find(rights, peer);
	if (!right)
		right = rights_find_group(rights, group);
	if (!right)
		right = rights_find(rights, "*");
	return right ? right->access : 0;
}

/* What @peer may do at most, or in any case, in whichever group it is. */
static u32 rights_bound(const struct rmp_rights *rights, const char *peer, bool most)
{
	u32 i, access = rmp_rights_of(rights, peer, "");

	if (!rights || rights_find(rights, peer))
		return access;
	for (i = 0; i < rights->nr; i++) {
		if (!right_is_group(&rights->of[i]))
			continue;
		if (most)
			access |= rights->of[i].access;
		else
			access &= rights->of[i].access;
	}
	return access;
}

/* What those who are named in @names lose. */
static u32 lost_by(const struct rmp_rights *names, const struct rmp_rights *from,
		   const struct rmp_rights *to)
{
	const struct rmp_right *right;
	u32 i, lost = 0;

	for (i = 0; names && i < names->nr; i++) {
		right = &names->of[i];
		if (right_is_group(right))
			lost |= rmp_rights_of(from, "", right->peer + 1) &
				~rmp_rights_of(to, "", right->peer + 1);
		else
			lost |= rights_bound(from, right->peer, true) &
				~rights_bound(to, right->peer, false);
	}
	return lost;
}

u32 rmp_rights_lost(const struct rmp_rights *from, const struct rmp_rights *to)
{
	/* All whom neither names are alike. */
	return lost_by(from, from, to) | lost_by(to, from, to) |
	       (rmp_rights_of(from, "", "") & ~rmp_rights_of(to, "", ""));
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
