// SPDX-License-Identifier: GPL-2.0
/*
 * The trust groups: which there are. Peers of one group share the protection domains of
 * all devices, so the keys of a group are of no use to peers of another.
 *
 * A group is known by its index in a small table, which is in use as long as it has a
 * peer, or anything that was made for it is left (domain.c).
 *
 * Locking: rmp_groups_lock, a leaf. Any context that may not be an interrupt.
 */
#include <linux/spinlock.h>
#include <linux/string.h>
#include "group.h"

/**
 * struct rmp_group - one of them
 * @name: of it, while it is in use
 * @peers: entries of the peer table; 0: nobody finds it by its name
 * @users: what else there is of it
 */
struct rmp_group {
	char name[RMPOOL_NAME_MAX];
	u32 peers;
	u32 users;
};

static DEFINE_SPINLOCK(rmp_groups_lock);
static struct rmp_group rmp_groups[RMP_GROUPS_MAX] = {
	/* One that stays. */
	[RMP_GROUP_DEFAULT] = { .name = RMP_GROUP_DEFAULT_NAME, .peers = 1 },
};

int rmp_group_join(const char *name)
{
	int i, group = -ENOSPC;

	spin_lock(&rmp_groups_lock);
	for (i = RMP_GROUPS_MAX - 1; i >= 0; i--) {
		struct rmp_group *g = &rmp_groups[i];

		if (g->peers && !strcmp(g->name, name)) {
			group = i;
			break;
		}
		if (!g->peers && !g->users)
			group = i;
	}
	if (group >= 0 && !rmp_groups[group].peers++)
		strscpy(rmp_groups[group].name, name, RMPOOL_NAME_MAX);
	spin_unlock(&rmp_groups_lock);
	return group;
}

bool rmp_group_leave(u32 group)
{
	bool last;

	spin_lock(&rmp_groups_lock);
	last = !--rmp_groups[group].peers;
	if (last)
		rmp_groups[group].users++;
	spin_unlock(&rmp_groups_lock);
	return last;
}

bool rmp_group_use(u32 group)
{
	bool there;

	spin_lock(&rmp_groups_lock);
	there = rmp_groups[group].peers;
	if (there)
		rmp_groups[group].users++;
	spin_unlock(&rmp_groups_lock);
	return there;
}

void rmp_group_unuse(u32 group)
{
	spin_lock(&rmp_groups_lock);
	rmp_groups[group].users--;
	spin_unlock(&rmp_groups_lock);
}

const char *rmp_group_name(u32 group)
{
	return rmp_groups[group].name;
}
