/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_SEGMENT_H
#define RMP_SEGMENT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include "region.h"
#include "revocation.h"
#include "rights.h"

/* Published segments of one file. */
#define RMP_SEGMENTS_MAX	1024

/**
 * struct rmp_segment - a published segment
 * @ref: the file's handle, each region, each subscriber
 * @id: unique while loaded, never 0
 * @name: unique on this node while @dead is false
 * @lock: guards all below; may be held while sleeping; taken before nothing
 *	else but region.c's and the subscriber's own locks
 * @dead: deleted: its name is free again, subscribers were told
 * @generation: counts changes of its regions
 * @regions: &struct rmp_region by offset (one range each)
 * @nr_regions: how many
 * @size: end of the last region
 * @subscribers: of &struct rmp_subscriber.node
 * @ending: once @dead: who has to let go of all of it, or NULL
 * @rights: who may open it; NULL: everybody
 * @opens: subscribers of each trust group
 * @groups: those of which there are any, but the default one; a mask (READ_ONCE)
 * @reach: maps its regions for those, by &struct rmp_segment_ops.reach
 * @pid: of the owner, for dumps
 * @uid: of the owner
 * @changing: one change of rights after the other; outer to @lock
 */
struct rmp_segment {
	struct kref ref;
	u32 id;
	char name[RMPOOL_NAME_MAX];
	struct mutex lock;	/* of all below */
	bool dead;
	u64 generation;
	struct maple_tree regions;
	u32 nr_regions;
	u64 size;
	struct list_head subscribers;
	struct rmp_revocation *ending;
	struct rmp_rights *rights;
	u32 opens[RMP_GROUPS_MAX];
	u32 groups;
	struct work_struct reach;
	struct pid *pid;
	kuid_t uid;
	struct mutex changing;	/* of rights */
	/* the rest belongs to segment.c */
	struct rhash_head by_name;
};

/**
 * struct rmp_subscriber - a peer that holds keys of a segment
 *
 * Embedded in the control room's object, which owns it.
 *
 * @peer: its name; set before it subscribes
 * @group: its trust group; likewise
 * @right: RMPOOL_ACCESS_REMOTE_*; 0: it has lost its right, was told so, and is told
 *	nothing more
 */
struct rmp_subscriber {
	struct list_head node;
	struct rmp_segment *segment;
	const char *peer;
	u32 group;
	u32 right;
};

/**
 * struct rmp_segment_ops - told by segment.c
 * @changed: regions between two offsets (the second one included) were added, or are
 *	stale, or have other keys: peers may fetch these
 * @revoke: the peer must let go of region @region_id (0: of all) and then
 *	rmp_revocation_answer(@rev) is to be called, once, also when the peer
 *	is lost, or was cut off since it did not let go until @rev->due: when
 *	nothing of it can reach memory here any more
 * @rekey: the keys of region @region_id are void, others are there to be fetched, and the
 *	peer must end what is in flight with them; or, with 0, it may not use the segment
 *	any more. @rev as for @revoke
 * @event: the segment is new, changed or gone (RMPOOL_EVENT_*)
 * @reach: peers of another trust group have it open: its regions are to be mapped for all
 *	that do. Called without locks, by a work item
 *
 * The others are called with @segment->lock held, may sleep briefly, and must not
 * wait for a peer.
 */
struct rmp_segment_ops {
	void (*changed)(struct rmp_subscriber *sub, u64 from, u64 to);
	void (*revoke)(struct rmp_subscriber *sub, u64 region_id,
		       struct rmp_revocation *rev);
	void (*rekey)(struct rmp_subscriber *sub, u64 region_id,
		      struct rmp_revocation *rev);
	void (*event)(struct rmp_segment *segment, u32 event);
	void (*reach)(struct rmp_segment *segment);
};

int rmp_segment_init(const struct rmp_segment_ops *ops);
void rmp_segment_exit(void);

/* Whether a name of a node or segment is well formed: NUL-terminated within
 * RMPOOL_NAME_MAX, not empty, of the alphabet that the ABI names, all zero
 * behind the NUL.
 */
bool rmp_name_valid(const char name[RMPOOL_NAME_MAX]);

/* Publishes; -EEXIST when the name is taken, -EINVAL when it is not valid. The
 * reference is the file's.
 */
struct rmp_segment *rmp_segment_create(const char *name);
/* Takes the name away and revokes all keys; regions become local ones. Does
 * not wait; the caller may wait for the revocation with rmp_revocation_wait(), or
 * gives it back. NULL is returned when nobody has to be waited for. Keeps the
 * reference.
 */
struct rmp_revocation *rmp_segment_delete(struct rmp_segment *segment);
/* By region.c: what a deleted segment has to wait for, once; then the caller's. */
struct rmp_revocation *rmp_segment_ending(struct rmp_segment *segment);
void rmp_segment_put(struct rmp_segment *segment);

/* By region.c. Offset is a value or RMPOOL_OFFSET_NEXT, and is set to the one
 * taken; -EEXIST, -ESTALE (deleted), -EINVAL (wraps); -EAGAIN: peers of groups have it
 * open that are not in region->groups.
 */
int rmp_segment_insert(struct rmp_segment *segment, struct rmp_region *region,
		       u64 *offset);
/* Takes a region out and asks the subscribers to let go of it. Does not wait: a
 * reference of the region is kept until all did, or were cut off; also when it went
 * with its segment before.
 */
void rmp_segment_remove(struct rmp_segment *segment, struct rmp_region *region);

/* By allow.c, with @changing held. Puts @rights, which is the segment's then, in the place
 * of those there are. *@lost: what somebody may not do any more. *@rev: to be waited for,
 * or NULL: peers that may not use the segment at all any more. -ENOENT (deleted).
 */
int rmp_segment_set_rights(struct rmp_segment *segment, struct rmp_rights *rights,
			   u32 *lost, struct rmp_revocation **rev);
/* By rekey.c: up to @nr regions from offset *@from on that allow any of @access and
 * whose keys were told since this was asked last; referenced. *@from is where to go on.
 */
u32 rmp_segment_told(struct rmp_segment *segment, u32 access, u64 *from,
		     struct rmp_region **regions, u32 nr);
/* By rekey.c: the keys of a region are others now. Subscribers are to let go of the old
 * ones. NULL is returned when nobody has to be waited for. If the region was revoked
 * meanwhile, that is to be waited for, and others may do so as well.
 */
struct rmp_revocation *rmp_segment_rekey(struct rmp_segment *segment,
					 struct rmp_region *region);

/* By reach.c: the first region from offset *@from on, referenced, or NULL. *@from is where
 * to go on, *@groups those that have the segment open.
 */
struct rmp_region *rmp_segment_next(struct rmp_segment *segment, u64 *from,
				    u32 *groups);

/* Something that peers are told of a region, or, with NULL, of all, is different. */
void rmp_segment_changed(struct rmp_segment *segment, const struct rmp_region *region);
/* A device came or went, and with it keys of all regions. */
void rmp_segments_changed(void);

/* By export.c. Finds by name and adds @sub, whose peer and group are set; -ENOENT,
 * -EACCES.
 */
int rmp_segment_subscribe(const char *name, struct rmp_subscriber *sub);
void rmp_segment_unsubscribe(struct rmp_subscriber *sub);

/* Calls @fn with the lock of each segment held, in order of id, from @from. */
int rmp_segment_walk(u32 from, int (*fn)(struct rmp_segment *segment, void *arg),
		     void *arg);

#endif /* RMP_SEGMENT_H */
