/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rooms that know peers share among themselves: peer.c (the table), standing.c
 * (how one stands, for callers), plug.c (devices that go or change), session.c (the
 * connection), greet.c (how it begins), rails.c (data paths), dial.c (connects them),
 * admit.c (lets them in), pairing.c (between which devices), ways.c (which more of them are
 * needed), fence.c (queue pairs that died), dying.c (those that are being destroyed),
 * export.c (our segments as a peer sees them), revoke.c (what a peer has to let go of),
 * rsegment.c, fetch.c and letgo.c (its segments as we see them, see fetch.h) and node.c.
 *
 * A peer has at most one session, made by either side. Everything that takes
 * time is done by one delayed work item per peer, the worker, which never runs
 * twice at once: connecting, building rails, cutting off who keeps memory that is
 * unregistered, tearing down. Other contexts only note what they saw and kick it.
 *
 * Locks, outer to inner: the table's mutex, peer->lock (mutex: session pointer,
 * state, rails, tokens), peer->rseg_lock (mutex: remote segments); control.c's
 * and the data rooms' spinlocks, peer->dying_lock, and peer->ways.lock within these.
 * s->export_lock is taken inside the locks of our segments, and never together with
 * peer->lock. None is held while waiting for a peer.
 */
#ifndef RMP_SESSION_H
#define RMP_SESSION_H

#include "control.h"
#include "listen.h"
#include "peer.h"

struct rmp_revocation;

/**
 * struct rmp_session - one connected life of a peer
 * @ref: peer->session, and whoever uses it without peer->lock
 * @peer: referenced
 * @ctl: its control channel
 * @initiator: we connected; we also connect the data queue pairs
 * @broken: to be torn down by the worker; any context may set it, through
 *	rmp_session_break()
 * @closing: the worker tears it down (under peer->lock)
 * @got_hello: likewise @got_devices; both: the session is @live
 * @uuid: of the peer
 * @devices: what the peer told last; @told_devices: their indexes, of rails.c when a message
 *	of them comes
 * @pair_again: something changed that may let more devices have a rail; under peer->lock
 * @rails: by index; under peer->lock
 * @owed: answers that the peer owes, by place in @rails; likewise
 * @stale: the first of these: to who had the place before, or asked before a cut
 * @next_rail: which one is driven first; the worker's
 * @ends: data queue pairs (&struct rmp_conn) that the peer may write through, in use
 *	or not; under peer->lock
 * @accepting: data queue pairs that are being let in, of admit.c; under peer->lock
 * @cutting: none is let in, since all of them are being closed; under peer->lock
 * @exports: of &struct rmp_export, by id of the segment; under @export_lock
 * @revokes: of &struct rmp_revocation, by the id told; under @export_lock
 * @withdrawn: exports that the peer lost its right to, on their way out; likewise
 * @acks: revocations of the peer that are not acknowledged yet
 * @revoke_work: looks at those that were not answered; with the next three, of revoke.c
 * @revoke_at: jiffies when it is to do so, while it is pending; under @export_lock
 * @overdue: the worker is to cut the peer off
 * @mute: it was cut off, and gets no time until it shows that it reads what is sent
 */
struct rmp_session {
	struct kref ref;
	struct rmp_peer *peer;
	struct rmp_control ctl;
	bool initiator;
	bool broken;
	bool closing;
	bool got_hello;
	bool got_devices;
	bool live;
	bool pair_again;
	u8 uuid[RMP_WIRE_UUID];
	int error;
	u32 reason;
	unsigned long deadline;
	bool probing;
	u64 probe_id;
	unsigned long probe_deadline;
	unsigned long answered;
	struct rmp_msg_devices devices;
	u32 told_devices;
	struct rmp_rail *rails[RMP_RAILS_MAX];
	u32 owed[RMP_RAILS_MAX];
	u32 stale[RMP_RAILS_MAX];
	u32 next_rail;
	struct list_head ends;
	struct list_head accepting;
	bool cutting;

	struct mutex export_lock;	/* exports, revokes and their counts */
	struct xarray exports;
	struct xarray revokes;
	u32 nr_exports;
	u32 nr_revokes;
	u32 next_revoke;
	struct list_head withdrawn;
	struct work_struct changed_work;
	atomic_t acks;
	struct delayed_work revoke_work;
	unsigned long revoke_at;
	bool overdue;
	bool mute;
};

/**
 * struct rmp_ways - between which devices rails are, and are needed (ways.c)
 * @lock: guards all of it; a leaf
 * @joined: by device here, which of the peer's a rail leads to that is up, or that is waited
 *	for without asking
 * @wanted: likewise, to which one is to be made
 * @asked: of those, for which the other side was asked
 * @later: to which one was wanted, but a device has no link or no address now; until something
 *	happens to one
 * @none: to which there can be none, as it seems
 * @been: to which one was up in this session, between the addresses of now as far as is known
 * @refuses: there is any of these
 * @forget: jiffies when they are forgotten
 * @changed: jiffies when something last happened to a device (READ_ONCE/WRITE_ONCE)
 */
struct rmp_ways {
	spinlock_t lock;	/* see above */
	u32 joined[RMP_DEVICES_MAX];
	u32 wanted[RMP_DEVICES_MAX];
	u32 asked[RMP_DEVICES_MAX];
	u32 later[RMP_DEVICES_MAX];
	u32 none[RMP_DEVICES_MAX];
	u32 been[RMP_DEVICES_MAX];
	bool refuses;
	unsigned long forget;
	unsigned long changed;
};

/**
 * struct rmp_peer - one entry of the peer table
 * @ref: the table, its worker's session, remote segments, callers
 * @users: remote segments and waiters: the worker keeps a connection for them
 * @group: trust group; does not change
 * @failures: counts failed attempts, so that a waiter sees a new one
 * @seen: jiffies when it last was connected, or asked to be
 * @begun: runs of the worker, under @lock; @ended: those that are over, which wakes
 *	@wait
 * @leaving: a device that is removed waits for the worker, a run of it after that with
 *	number @leaving_since; under @lock. One is removed at a time
 * @closing: off the table: sees to the end; then @closed. Meanwhile @closing_node is in a
 *	list of peer.c
 * @dying: rails (&struct rmp_rail) with queue pairs that are being destroyed or let in,
 *	those that left the session's table as well; under @dying_lock. When there is no
 *	session, none
 */
struct rmp_peer {
	struct kref ref;
	struct list_head node;
	char name[RMPOOL_NAME_MAX];
	struct sockaddr_storage addr;
	bool dynamic;
	u32 group;
	struct rmp_flow *flow;
	struct rmp_ways ways;
	atomic_t users;

	struct mutex lock;		/* session pointer, state, rails, tokens */
	wait_queue_head_t wait;
	u32 state;
	bool removed;
	bool incoming;
	unsigned long seen;
	u32 failures;
	int error;
	u32 reason;
	bool has_uuid;
	u8 uuid[RMP_WIRE_UUID];
	char remote_name[RMPOOL_NAME_MAX];
	struct rmp_session *session;
	struct rmp_conn *connecting;
	unsigned long backoff;
	unsigned long next_try;
	bool changed;
	struct delayed_work work;	/* only the last put cancels it */
	u32 begun;
	u32 ended;
	bool leaving;
	u32 leaving_since;
	struct work_struct closing;
	struct list_head closing_node;
	struct completion closed;
	struct work_struct free_work;

	spinlock_t dying_lock;		/* the next, and how many each has */
	struct list_head dying;

	struct mutex rseg_lock;		/* remote segments */
	struct list_head rsegs;
	u32 next_cookie;
};

/* peer.c */
extern const struct rmp_peer_ops *rmp_peer_ops;
void rmp_peer_kick(struct rmp_peer *peer);
/* By address of a connect request; makes a dynamic one under accept=any. Else
 * -EACCES; or why it could not be made.
 */
struct rmp_peer *rmp_peer_find_host(const struct sockaddr_storage *addr);
/* By the worker of a dynamic one: takes it out of the table if nobody uses it and
 * it has not been connected for @idle jiffies. Returns how many are left, 0: look
 * again when something happens.
 */
unsigned long rmp_peer_reclaim(struct rmp_peer *peer, unsigned long idle);
/* With a live session of that uuid; referenced. */
struct rmp_peer *rmp_peer_find_uuid(const u8 uuid[RMP_WIRE_UUID]);
/* peer->lock held; wakes waiters. */
void rmp_peer_set_state(struct rmp_peer *peer, u32 state);
/* Drops peer->lock and, if the state was set under it, tells listeners. */
void rmp_peer_unlock(struct rmp_peer *peer);
/* Returns when the worker, which was kicked, has run from its begin to its end, after
 * @begun was read in peer->begun.
 */
void rmp_peer_has_run(struct rmp_peer *peer, u32 begun);
/* Those that were deleted may have queue pairs on any device until their end: returns
 * when that has come for all there are.
 */
void rmp_peers_wait_closing(void);

/* standing.c: waits, interruptible, until the peer is ready to carry data. */
int rmp_peer_wait_ready(struct rmp_peer *peer, unsigned long deadline,
			bool forever, struct rmpool_error *err);

/* session.c */
void rmp_session_worker(struct work_struct *work);
void rmp_session_incoming(struct rmp_cm_request *req);
void rmp_session_break(struct rmp_session *s, int error, u32 reason);
/* The peer's live session, referenced, or NULL. */
struct rmp_session *rmp_session_get(struct rmp_peer *peer);
void rmp_session_put(struct rmp_session *s);
/* One that must not be left out: to be filled in, sent and freed. NULL: there is no memory
 * for it, and so the session breaks.
 */
struct rmp_msg *rmp_session_new_msg(struct rmp_session *s, u8 type);
int rmp_session_send(struct rmp_session *s, const struct rmp_msg *msg);

/* greet.c */
/* Before the session is the peer's, so that it is the first message. */
void rmp_session_send_hello(struct rmp_session *s);
/* peer->lock held: the devices of now, at the begin and whenever they change. */
void rmp_session_send_devices(struct rmp_session *s);
/* What the peer sent of these. */
int rmp_session_hello(struct rmp_session *s, const struct rmp_msg_hello *m);
int rmp_session_devices(struct rmp_session *s, const struct rmp_msg_devices *m);

/* rails.c */
extern unsigned int rmp_qps;
void rmp_rails_lost(struct rmp_session *s, const struct rmp_msg_rail_lost *m);
void rmp_rails_devices(struct rmp_session *s);
/* By the worker: removes what failed, connects what is missing; returns
 * jiffies until it wants to be called again, 0: no need.
 */
unsigned long rmp_rails_maintain(struct rmp_session *s);
/* By the worker: closes all queue pairs; they are drained and gone when it returns, and so are
 * those that died before. What connects new ones is told to the peer after it began.
 */
void rmp_rails_cut(struct rmp_session *s);
/* By the worker, of a session that is closing: all queue pairs are drained when the first
 * returns, and gone, with all rails, when the second does, which may take a driver long.
 */
void rmp_rails_close(struct rmp_session *s);
void rmp_rails_destroy(struct rmp_session *s);
/* Marks what uses the device; the worker removes it. True if there is any. */
bool rmp_rails_device_removed(struct rmp_session *s, struct rmp_device *dev);
/* peer->lock held: the device may have another address or MTU now. */
void rmp_rails_device_changed(struct rmp_session *s, struct rmp_device *dev);
/* peer->lock held: queue pairs that carry data. */
u32 rmp_rails_up(struct rmp_session *s);

/* peer->lock held; NULL: the device cannot carry one. */
struct rmp_rail *rmp_rail_create(struct rmp_session *s, u32 index, u32 local_dev,
				 const struct rmp_wire_device *remote, u32 nr_qps);
void rmp_rail_hold(struct rmp_rail *rail);
/* The last one may give the last reference of the device back. */
void rmp_rail_put(struct rmp_rail *rail);
/* A queue pair is up: enters it, unless the rail went meanwhile. */
bool rmp_rail_enter(struct rmp_session *s, struct rmp_rail *rail, u32 qp,
		    struct rmp_conn *conn);
/* One was not entered: if the peer has the other end, it is to take that down. */
void rmp_rail_tell_lost(struct rmp_session *s, const struct rmp_rail *rail, u32 qp,
			const struct rmp_conn *conn);
/* Of a queue pair that is in no table any more: drains it, and leaves the rest to others. */
void rmp_rail_end_qp(struct rmp_session *s, struct rmp_rail *rail, struct rmp_conn *conn);

/* peer->lock held: what the peer told of a device of it, or NULL. */
const struct rmp_wire_device *rmp_rails_remote(const struct rmp_session *s, u32 index);
/* Where data connections to such a device go. */
void rmp_rails_address(const struct rmp_wire_device *w, u16 port,
		       struct sockaddr_storage *addr);

/* dial.c, admit.c. Either side waits so long for a queue pair to come up. */
#define RMP_RAIL_TIMEOUT	msecs_to_jiffies(3000)

/* dial.c */
/* By the worker of the side that connects, when those that go are gone: makes rails and
 * connects what is missing; returns jiffies until it wants to be called again, 0: no need.
 */
unsigned long rmp_rails_dial(struct rmp_session *s);
int rmp_rails_tokens(struct rmp_session *s, const struct rmp_msg_rail_tokens *m);

/* admit.c */
void rmp_rails_request(struct rmp_session *s,
		       const struct rmp_msg_rail_request *m);
void rmp_rails_incoming(struct rmp_cm_request *req);
/* peer->lock held: what is being let in on @dev, or all of it when that is NULL, does not come
 * up.
 */
void rmp_rails_abort_accepting(struct rmp_session *s, const struct rmp_device *dev);

/* pairing.c; peer->lock held: makes the rails that are missing; false: not all, to be
 * tried again.
 */
bool rmp_rails_pair(struct rmp_session *s);
/* Likewise one between two devices that have none. -EAGAIN: one of them has no link or
 * no address now; -ENODEV: it is not there; -ENOMEM; or why there can be none.
 */
int rmp_rails_join(struct rmp_session *s, u32 local, u32 remote);

/* ways.c */
/* A RAIL_WANTED of the peer. */
int rmp_ways_message(struct rmp_session *s, const struct rmp_msg_rail_wanted *m);
/* By the worker: rails that were made for a need and did not come up are going now. */
void rmp_ways_give_up(struct rmp_session *s);
/* By the worker, when those that go are gone: makes what is wanted; returns jiffies until
 * it wants to be called again, 0: no need.
 */
unsigned long rmp_ways_make(struct rmp_session *s);
/* A queue pair of a rail is up. */
void rmp_ways_up(struct rmp_peer *peer, u32 local, u32 remote);
/* There was one up before, in this session. */
bool rmp_ways_been(struct rmp_peer *peer, u32 local, u32 remote);
/* One of them has another address, or is gone: that means nothing any more. @remotes: a mask. */
void rmp_ways_moved(struct rmp_peer *peer, u32 local, u32 remotes);
/* A rail is out of the table: what the other side was asked about it is asked again. */
void rmp_ways_left(struct rmp_peer *peer, u32 local, u32 remote);
/* Devices changed, and the peer knows or will soon: what could not be may be possible now, and
 * what was needed may not be needed any more.
 */
void rmp_ways_forget(struct rmp_peer *peer);
/* The session has ended. */
void rmp_ways_reset(struct rmp_peer *peer);

/* fence.c */
/* peer->lock held: a data queue pair was made, and is not connected yet. */
void rmp_fence_watch(struct rmp_session *s, u32 rail, struct rmp_conn *conn);
/* It is in error here: asks the peer to take its end down, and to say when that is
 * done; &struct rmp_peer_ops.qp_fenced is called then.
 */
void rmp_fence_ask(struct rmp_session *s, u32 rail, u32 qp,
		   const struct rmp_conn *conn);
/* Drains it (&struct rmp_peer_ops.qp_drain), and answers if the peer asked. Once for each
 * that was watched, before it is destroyed.
 */
void rmp_fence_drain(struct rmp_session *s, struct rmp_conn *conn);
/* The peer asked. */
void rmp_fence_asked(struct rmp_session *s, const struct rmp_msg_qp_fence *m);

/* dying.c. While so many queue pairs are being destroyed, or let in, in one place, no others
 * are begun there: twice as many as there may be in use, since all of these may die at once
 * and others are to come in their place.
 */
#define RMP_DYING_MAX		(2 * RMP_QPS_MAX)
int rmp_dying_init(void);
/* When all peers are gone. */
void rmp_dying_exit(void);
/* Destroys a queue pair of @rail that has been drained, in the background; the caller does
 * not use it any more. By whoever has a reference of the rail.
 */
void rmp_dying_add(struct rmp_rail *rail, struct rmp_conn *conn);
/* One is being let in on @rail, which counts as if it was being destroyed; and it is not any
 * more: it is in use, or was handed over by rmp_dying_add(). By whoever has references of
 * the rail and of the peer.
 */
void rmp_dying_let_in(struct rmp_rail *rail);
void rmp_dying_was_let_in(struct rmp_rail *rail);
/* No more may be made for the rail with that index now. The worker is kicked when there
 * may.
 */
bool rmp_dying_full(struct rmp_peer *peer, u32 index);
/* Waits until there are none on @dev, or none at all when that is NULL, those being let in
 * included: by whoever sees to it that no new ones come.
 */
void rmp_dying_wait(struct rmp_peer *peer, const struct rmp_device *dev);

/* export.c: messages about our segments */
int rmp_export_message(struct rmp_session *s, const struct rmp_msg *msg);
void rmp_export_init(struct rmp_session *s);
void rmp_export_destroy(struct rmp_session *s);

/* revoke.c: what the peer was asked to let go of. It may leave so many unanswered: it
 * answers each when what is in flight has ended, or is cut off soon, so only one that
 * does not mean to comes near.
 */
#define RMP_REVOKES_MAX		8192
void rmp_revoke_init(struct rmp_session *s);
/* Tells the peer by REVOKE, REKEY or WITHDRAWN; from then on its answer, a cut or the end
 * of the session counts, which the caller brings about when this fails. -ENOSPC: it has
 * too many open.
 */
int rmp_revoke_send(struct rmp_session *s, u8 type, u32 segment, u64 region,
		    struct rmp_revocation *rev);
void rmp_revoke_acked(struct rmp_session *s, u32 id);
/* By the worker: cuts the peer off if it is time. */
void rmp_revoke_enforce(struct rmp_session *s);
void rmp_revoke_end(struct rmp_session *s);

/* fetch.c: messages about the peer's segments */
int rmp_rseg_message(struct rmp_session *s, const struct rmp_msg *msg,
		     const void *buf, size_t len);
void rmp_rseg_session_up(struct rmp_session *s);
void rmp_rseg_session_down(struct rmp_peer *peer);
void rmp_rseg_drop_device(struct rmp_peer *peer, u32 device);
/* A device is told that was not before: keys of it that were dropped are asked for again. */
void rmp_rseg_new_device(struct rmp_session *s);

/* node.c */
int rmp_node_init(void);
/* No request comes in after this. */
void rmp_node_exit(void);
bool rmp_node_accepts_any(void);
/* Listens again, if the listener went with its device. */
void rmp_node_device_changed(void);
/* Where to connect from: the address listened at, or ss_family 0. */
void rmp_node_source(struct sockaddr_storage *addr);

#endif /* RMP_SESSION_H */
