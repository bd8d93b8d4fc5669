/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_PEER_H
#define RMP_PEER_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rmpool_netlink.h>
#include "cm.h"
#include "endpoint.h"
#include "group.h"
#include "keycache.h"

struct rmp_flow;
struct rmp_peer;
struct rmp_session;

/**
 * struct rmp_rail - one local port and one remote port, with queue pairs
 * @peer: alive as long as the rail
 * @dev: referenced; as long as the rail exists
 * @index: below RMP_RAILS_MAX, the same on both sides of a session
 * @port_num: port of @dev
 * @remote_dev: index of the device at the peer, for keys
 * @local: IP address of the local port
 * @remote: IP address of the remote port
 * @extra: made since memory is on these devices alone (ways.c): for others, it is only
 *	used when no other rail is up
 * @speed_mbps: of the slower side
 * @nr_qps: how many there are to be
 * @conns: queue pairs; entries are set and cleared by rails.c and admit.c only
 * @flow: of the data rooms, the peer's
 * @put_bytes: moved by this node; likewise the others
 * @outstanding: bytes posted and not completed, for display
 *
 * Exists while the session does. Before it is freed every queue pair of it was
 * destroyed (&struct rmp_peer_ops.qp_destroy), which may be after it left the session's
 * table.
 */
struct rmp_rail {
	struct rmp_peer *peer;
	struct rmp_flow *flow;
	struct rmp_device *dev;
	u32 index;
	u32 port_num;
	u32 remote_dev;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	bool extra;
	u32 speed_mbps;
	u32 nr_qps;
	struct rmp_conn *conns[RMP_QPS_MAX];
	atomic64_t put_bytes;
	atomic64_t get_bytes;
	atomic64_t slices;
	atomic64_t errors;
	atomic64_t outstanding;
	/* of rails.c, dial.c and admit.c, under the peer's lock */
	struct kref ref;
	bool going;
	bool was_up;
	unsigned long made;
	u32 failures;		/* attempts that found no way */
	int error;		/* of the last of these */
	bool requested;
	unsigned long next_try;
	unsigned long backoff;
	u32 tokens;
	u8 token[RMP_QPS_MAX][RMP_WIRE_TOKEN];
	/* of dying.c, under the peer's dying_lock: queue pairs being destroyed or let in */
	u32 dying;
	struct list_head dying_node;
};

/**
 * struct rmp_peer_ops - the data rooms, as seen by peer.c; all may sleep
 * @flow_create: once per peer
 * @flow_destroy: once, when no rail and no request is left
 * @flow_kick: something changed: regions were revoked, the session ended, or
 *	there may be a new way: a queue pair, a key, a region on a device. What
 *	can no longer be posted is to be failed, what had no way is to be looked
 *	at again. Must not wait.
 * @qp_create: an object with an initialised &struct rmp_conn whose setup makes
 *	a data QP for @rail; not connected yet
 * @qp_start: it is connected: post on it. Must not wait.
 * @qp_drain: post no more, disconnect, wait for all work requests. Also for one that
 *	was never started. What it carried and did not move is kept, to be posted again.
 *	After that no packet of the peer is taken by it
 * @qp_destroy: after that: free. May wait long for the device
 * @qp_fenced: no packet of a queue pair that is, or was, known by @fence of its
 *	connection can write at the peer any more. The peer says so, of any number
 * @event: the peer is new, has changed its state, or is gone
 * @group_gone: the last peer of a trust group is gone, and all that it used; the use of the
 *	group that rmp_group_leave() left is to be given back
 */
struct rmp_peer_ops {
	struct rmp_flow *(*flow_create)(struct rmp_peer *peer);
	void (*flow_destroy)(struct rmp_flow *flow);
	void (*flow_kick)(struct rmp_flow *flow);
	struct rmp_conn *(*qp_create)(struct rmp_rail *rail, u32 index);
	void (*qp_start)(struct rmp_conn *conn);
	void (*qp_drain)(struct rmp_conn *conn);
	void (*qp_destroy)(struct rmp_conn *conn);
	void (*qp_fenced)(struct rmp_flow *flow, u32 fence);
	void (*event)(struct rmp_peer *peer, u32 event);
	void (*group_gone)(u32 group);
};

/* By the data rooms, any context: a queue pair of @rail failed; it will be
 * destroyed and made anew.
 */
void rmp_peer_qp_failed(struct rmp_rail *rail, struct rmp_conn *conn);
/* Likewise: some bytes are on the devices in the mask @local here and on those in @remote at the
 * peer, and no rail that is up is between these. True: one may come up, or is made now, and
 * the flow is kicked when there is news; false: there can be none, as far as is known.
 */
bool rmp_peer_way(struct rmp_peer *peer, u32 local, u32 remote);

int rmp_peer_init(const struct rmp_peer_ops *ops);
/* Says good-bye to all peers and closes everything. */
void rmp_peer_exit(void);

/* The peer table. @group: name of its trust group, which is made if there is none; NULL: the
 * default one. -EEXIST, -ENOSPC (too many groups), -ENOMEM.
 */
int rmp_peer_add(const char *name, const struct sockaddr_storage *addr,
		 const char *group);
/* Waits until its connections are closed; a signal ends that (-EINTR). */
int rmp_peer_del(const char *name);
struct rmp_peer *rmp_peer_find(const char *name);
void rmp_peer_hold(struct rmp_peer *peer);
void rmp_peer_put(struct rmp_peer *peer);
struct rmp_flow *rmp_peer_flow(struct rmp_peer *peer);
/* Index of its trust group. */
u32 rmp_peer_group(const struct rmp_peer *peer);
u32 rmp_peer_count(void);
/* What waits in the flow of any peer is looked at again: regions of this node can be
 * reached through other devices than before, or it is known what they are.
 */
void rmp_peer_kick_flows(void);

/**
 * struct rmp_peer_info - a snapshot for dumps
 */
struct rmp_peer_info {
	char name[RMPOOL_NAME_MAX];
	char remote_name[RMPOOL_NAME_MAX];
	char group[RMPOOL_NAME_MAX];
	struct sockaddr_storage addr;
	u32 state;			/* enum rmpool_peer_state */
	bool dynamic;
	bool has_uuid;
	u8 uuid[16];
	u32 reason;			/* of the last failure */
	int error;
	u32 nr_rails;
	struct rmp_rail_info {
		u32 index;
		u32 state;		/* enum rmpool_rail_state */
		char local[IB_DEVICE_NAME_MAX + 8];	/* device/port */
		struct sockaddr_storage local_addr;
		struct sockaddr_storage remote_addr;
		u32 qps;
		u64 put_bytes;
		u64 get_bytes;
		u64 slices;
		u64 errors;
		u64 outstanding;
	} rails[RMP_RAILS_MAX];
};

void rmp_peer_info(struct rmp_peer *peer, struct rmp_peer_info *info);
/* In order of name; calls @fn without locks, the peer is referenced. @after: ""
 * or the name to go on behind.
 */
int rmp_peer_walk(const char *after,
		  int (*fn)(struct rmp_peer *peer, void *arg), void *arg);

/* Devices came, went or changed (from main.c). */
void rmp_peer_device_removed(struct rmp_device *dev);
void rmp_peer_device_changed(struct rmp_device *dev);

/**
 * struct rmp_node - settings of this node
 * @name: what peers see
 * @listen: where the listener is bound; port 0: choose one
 * @advertise: what peers are told; ss_family 0: like @listen, and when that is
 *	the any address, the address of the first usable device
 * @accept_any: accept peers that are not in the table
 */
struct rmp_node {
	char name[RMPOOL_NAME_MAX];
	struct sockaddr_storage listen;
	struct sockaddr_storage advertise;
	bool accept_any;
};

/* @listen has the real port, @advertise is resolved as said above. */
void rmp_node_get(struct rmp_node *node);
/* @advertise as it was set: to change one setting and keep the others. */
void rmp_node_settings(struct rmp_node *node);
/* Name of this node alone, cheap. */
void rmp_node_name(char name[RMPOOL_NAME_MAX]);
/* Rebinds the listener when @listen changed (-EADDRINUSE, -EADDRNOTAVAIL ...);
 * all or nothing.
 */
int rmp_node_set(const struct rmp_node *node);

#endif /* RMP_PEER_H */
