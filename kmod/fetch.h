/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rooms of remote segments share among themselves: rsegment.c (the object, and
 * those who use it), fetch.c (what the peer tells of it) and letgo.c (what the peer takes
 * back). Others know rsegment.h.
 */
#ifndef RMP_FETCH_H
#define RMP_FETCH_H

#include "rsegment.h"
#include "session.h"

enum {
	RSEG_DOWN,
	RSEG_OPENING,
	RSEG_FETCHING,
	RSEG_READY,
	RSEG_GONE,
};

struct rmp_rseg {
	struct list_head node;
	struct rmp_peer *peer;
	u32 users;
	char name[RMPOOL_NAME_MAX];
	wait_queue_head_t wait;
	u32 state;
	u32 reason;		/* with GONE; NONE: no memory for its keys */
	u32 cookie;
	u32 id;			/* at the peer, 0: not known */
	u8 uuid[RMP_WIRE_UUID];	/* life of the peer that @id is of */
	bool fetching;		/* a walk is under way (acquire/release) */
	bool paged;		/* not the first page of it */
	struct rmp_wire_range walk;	/* what it is over */
	struct rmp_wire_range todo;	/* what the next one is to be over; or none */
	u32 walks;		/* that came to nothing */
	u32 over;		/* that came to an end (likewise) */
	struct rmp_keycache keys;
};

/* All of these are called with peer->rseg_lock held, but for the last two. */

/* rsegment.c: goes over to a state, and wakes who waits for one. */
void rmp_rseg_set(struct rmp_rseg *rseg, u32 state);
/* For good, with enum rmpool_reason; frees it if nobody uses it. */
void rmp_rseg_gone(struct rmp_rseg *rseg, u32 reason);
/* Frees it if nobody uses it, and there is nothing to be kept of it. */
void rmp_rseg_free_unused(struct rmp_rseg *rseg);

/* fetch.c: asks the peer for it by its name; when that fails it is DOWN as before. */
int rmp_rseg_start(struct rmp_session *s, struct rmp_rseg *rseg);
/* Asks for keys of regions from one offset to another again, or will when the walk that is
 * under way is over; what is there stays in use meanwhile.
 */
int rmp_rseg_refetch(struct rmp_session *s, struct rmp_rseg *rseg, u64 from, u64 to);
/* The one of an id that the peer told in this session, or NULL. */
struct rmp_rseg *rmp_rseg_by_id(struct rmp_peer *peer, u32 id);

/* letgo.c: a REVOKE, REKEY or WITHDRAWN, by @type; an error ends the session. */
int rmp_rseg_revoke(struct rmp_session *s, u8 type, const struct rmp_msg_revoke *m);
/* The last use of a region of the key cache has ended. Any context. */
void rmp_rseg_released(struct rmp_rregion *rr);

#endif /* RMP_FETCH_H */
