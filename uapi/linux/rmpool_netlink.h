/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * rmpool - the generic netlink family "rmpool", in the initial network
 * namespace. docs/rmpool.yaml describes the same in the kernel's format for
 * netlink specifications.
 *
 * Commands that change something need CAP_NET_ADMIN; so does joining the
 * multicast group. Dumps of segments and regions show a caller without
 * CAP_NET_ADMIN only those of its own user. Errors carry a text in the
 * extended acknowledgment.
 */
#ifndef _UAPI_LINUX_RMPOOL_NETLINK_H
#define _UAPI_LINUX_RMPOOL_NETLINK_H

#define RMPOOL_GENL_NAME	"rmpool"
#define RMPOOL_GENL_VERSION	1
/* Multicast group of all events. */
#define RMPOOL_GENL_EVENTS	"events"

/**
 * enum rmpool_cmd - commands and events
 * @RMPOOL_CMD_NODE_GET: do: this node (RMPOOL_A_NODE_*)
 * @RMPOOL_CMD_NODE_SET: do: change NAME, LISTEN, ADVERTISE, ACCEPT_ANY,
 *	ALLOW_LOOPBACK; all or nothing. An empty ADVERTISE: the node finds it
 *	out by itself again
 * @RMPOOL_CMD_DEVICE_GET: dump: the RDMA devices, one message per port
 * @RMPOOL_CMD_PEER_GET: dump: the peer table, with a nest per rail
 * @RMPOOL_CMD_PEER_ADD: do: add a peer (NAME, ENDPOINT, GROUP, ALLOW_LOOPBACK);
 *	EEXIST when the name or the endpoint is taken
 * @RMPOOL_CMD_PEER_DEL: do: remove a peer (NAME), closing its connection;
 *	opened segments of it turn stale
 * @RMPOOL_CMD_SEGMENT_GET: dump: segments published on this node
 * @RMPOOL_CMD_REGION_GET: dump: regions registered on this node
 * @RMPOOL_CMD_NODE_NTF: event: the node's settings changed
 * @RMPOOL_CMD_DEVICE_NTF: event: a device port appeared, changed or went
 * @RMPOOL_CMD_PEER_NTF: event: a peer appeared, changed its state or went
 * @RMPOOL_CMD_SEGMENT_NTF: event: a local segment appeared, changed or went
 *
 * Every event carries RMPOOL_A_EVENT.
 */
enum rmpool_cmd {
	RMPOOL_CMD_UNSPEC = 0,
	RMPOOL_CMD_NODE_GET = 1,
	RMPOOL_CMD_NODE_SET = 2,
	RMPOOL_CMD_DEVICE_GET = 3,
	RMPOOL_CMD_PEER_GET = 4,
	RMPOOL_CMD_PEER_ADD = 5,
	RMPOOL_CMD_PEER_DEL = 6,
	RMPOOL_CMD_SEGMENT_GET = 7,
	RMPOOL_CMD_REGION_GET = 8,
	RMPOOL_CMD_NODE_NTF = 9,
	RMPOOL_CMD_DEVICE_NTF = 10,
	RMPOOL_CMD_PEER_NTF = 11,
	RMPOOL_CMD_SEGMENT_NTF = 12,
	__RMPOOL_CMD_MAX,
	RMPOOL_CMD_MAX = __RMPOOL_CMD_MAX - 1
};

/* RMPOOL_A_EVENT */
enum rmpool_event {
	RMPOOL_EVENT_NEW = 1,
	RMPOOL_EVENT_CHANGED = 2,
	RMPOOL_EVENT_GONE = 3,
};

/* RMPOOL_A_PEER_STATE */
enum rmpool_peer_state {
	RMPOOL_PEER_IDLE = 0,		/* in the table, not connected */
	RMPOOL_PEER_CONNECTING = 1,
	RMPOOL_PEER_CONNECTED = 2,	/* control channel is up, no rail yet */
	RMPOOL_PEER_READY = 3,		/* at least one rail is up */
	RMPOOL_PEER_BACKOFF = 4,	/* last attempt failed, will be tried again */
	RMPOOL_PEER_CLOSING = 5,
};

/* RMPOOL_A_RAIL_STATE */
enum rmpool_rail_state {
	RMPOOL_RAIL_DOWN = 0,
	RMPOOL_RAIL_CONNECTING = 1,
	RMPOOL_RAIL_UP = 2,
};

/* RMPOOL_A_REGION_STATE */
enum rmpool_region_state {
	RMPOOL_REGION_STATE_ACTIVE = 0,
	RMPOOL_REGION_STATE_SUSPECT = 1,	/* being looked at; requests wait */
	RMPOOL_REGION_STATE_STALE = 2,	/* its owner let go of the memory */
	RMPOOL_REGION_STATE_REGISTERING = 3,	/* not there yet, see RMPOOL_A_REGION_PERCENT */
};

/* RMPOOL_A_DEVICE_ORDERING: relaxed ordering in the memory regions of a device */
enum rmpool_ordering {
	RMPOOL_ORDERING_UNSUPPORTED = 0, /* its driver drops the wish */
	RMPOOL_ORDERING_OFF = 1,	/* not asked for, by the parameter */
	RMPOOL_ORDERING_ON = 2,		/* asked for */
	RMPOOL_ORDERING_FORCED = 3,	/* its driver sets it always */
};

/**
 * enum rmpool_attr - attributes of all commands
 *
 * One number space for the family, so that a message can be printed without
 * knowing its command. Texts are NUL-terminated; addresses are texts in the
 * form v1:<host>:<port>, an IPv6 host in brackets.
 */
enum rmpool_attr {
	RMPOOL_A_UNSPEC = 0,
	RMPOOL_A_PAD = 1,
	RMPOOL_A_EVENT = 2,		/* u32, enum rmpool_event */

	RMPOOL_A_NODE_NAME = 3,		/* text, at most 63 characters */
	RMPOOL_A_NODE_UUID = 4,		/* 16 bytes */
	RMPOOL_A_NODE_LISTEN = 5,	/* text: endpoint the node listens at */
	RMPOOL_A_NODE_ADVERTISE = 6,	/* text: endpoint for peers; may differ */
	RMPOOL_A_NODE_ACCEPT_ANY = 7,	/* u8: 1: accept peers not in the table */
	RMPOOL_A_NODE_VERSION = 8,	/* text: version of the module */
	RMPOOL_A_NODE_ABI = 9,		/* u32: RMPOOL_ABI_VERSION */
	RMPOOL_A_ALLOW_LOOPBACK = 10,	/* flag: a loopback address is meant */

	RMPOOL_A_DEVICE_INDEX = 11,	/* u32: stable while loaded */
	RMPOOL_A_DEVICE_NAME = 12,	/* text: name of the RDMA device */
	RMPOOL_A_DEVICE_PORT = 13,	/* u32 */
	RMPOOL_A_DEVICE_STATE = 14,	/* u32: enum ib_port_state; 4 is active */
	RMPOOL_A_DEVICE_GID = 15,	/* 16 bytes, absent when there is none usable */
	RMPOOL_A_DEVICE_GID_INDEX = 16,	/* u32 */
	RMPOOL_A_DEVICE_ADDRESS = 17,	/* text: IP address of that GID */
	RMPOOL_A_DEVICE_NETDEV = 18,	/* text */
	RMPOOL_A_DEVICE_NUMA = 19,	/* s32, -1: unknown */
	RMPOOL_A_DEVICE_MTU = 20,	/* u32: bytes, active RDMA MTU */
	RMPOOL_A_DEVICE_SPEED = 21,	/* u64: Mbit/s */
	RMPOOL_A_DEVICE_MAX_MSG = 22,	/* u64: bytes in one message */
	RMPOOL_A_DEVICE_CHUNK = 23,	/* u64: bytes in one chunk of small pages */
	RMPOOL_A_DEVICE_MAX_MR = 24,	/* u64: memory regions it can, or may, hold */
	RMPOOL_A_DEVICE_MRS = 25,	/* u64: of those, in use by rmpool */
	RMPOOL_A_DEVICE_USABLE = 26,	/* u8 */
	RMPOOL_A_DEVICE_WHY = 27,	/* text: why it is not usable */

	RMPOOL_A_PEER_NAME = 28,	/* text */
	RMPOOL_A_PEER_ENDPOINT = 29,	/* text */
	RMPOOL_A_PEER_STATE = 30,	/* u32, enum rmpool_peer_state */
	RMPOOL_A_PEER_UUID = 31,	/* 16 bytes, once known */
	RMPOOL_A_PEER_REASON = 32,	/* u32, enum rmpool_reason of last failure */
	RMPOOL_A_PEER_ERROR = 33,	/* s32, negative errno of last failure */
	RMPOOL_A_PEER_RAIL = 34,	/* nest: RMPOOL_A_RAIL_*, one per rail */
	RMPOOL_A_PEER_DYNAMIC = 35,	/* flag: entry made by accept=any */
	RMPOOL_A_PEER_REMOTE_NAME = 36,	/* text: what the peer calls itself */

	RMPOOL_A_RAIL_INDEX = 37,	/* u32 */
	RMPOOL_A_RAIL_STATE = 38,	/* u32, enum rmpool_rail_state */
	RMPOOL_A_RAIL_LOCAL = 39,	/* text: local device/port */
	RMPOOL_A_RAIL_LOCAL_ADDRESS = 40, /* text: IP address */
	RMPOOL_A_RAIL_REMOTE_ADDRESS = 41, /* text: IP address */
	RMPOOL_A_RAIL_QPS = 42,		/* u32: queue pairs that are up */
	RMPOOL_A_RAIL_PUT_BYTES = 43,	/* u64: put by this node */
	RMPOOL_A_RAIL_GET_BYTES = 44,	/* u64: got by this node */
	RMPOOL_A_RAIL_SLICES = 45,	/* u64: ended, well or not */
	RMPOOL_A_RAIL_ERRORS = 46,	/* u64: slices that failed */
	RMPOOL_A_RAIL_OUTSTANDING = 47,	/* u64: bytes in flight */

	RMPOOL_A_SEGMENT_NAME = 48,	/* text */
	RMPOOL_A_SEGMENT_ID = 49,	/* u32 */
	RMPOOL_A_SEGMENT_GENERATION = 50, /* u64 */
	RMPOOL_A_SEGMENT_REGIONS = 51,	/* u32 */
	RMPOOL_A_SEGMENT_SIZE = 52,	/* u64: end of the last region */
	RMPOOL_A_OWNER_PID = 53,	/* u32, as seen in the initial pid namespace */
	RMPOOL_A_OWNER_UID = 54,	/* u32 */

	RMPOOL_A_REGION_ID = 55,	/* u64 */
	RMPOOL_A_REGION_OFFSET = 56,	/* u64 */
	RMPOOL_A_REGION_LENGTH = 57,	/* u64 */
	RMPOOL_A_REGION_ACCESS = 58,	/* u32: RMPOOL_ACCESS_* */
	RMPOOL_A_REGION_CHUNKS = 59,	/* u32 */
	RMPOOL_A_REGION_DEVICES = 60,	/* u32: devices it is mapped on */

	RMPOOL_A_DEVICE_PAGES = 61,	/* u64: pages of the memory regions in use */
	RMPOOL_A_DEVICE_MAX_PAGES = 62,	/* u64: at most, 0: no limit */
	RMPOOL_A_DEVICE_PAGE_SIZES = 63, /* u64: sizes they can have, or'ed */
	RMPOOL_A_DEVICE_ORDERING = 64,	/* u32, enum rmpool_ordering */
	RMPOOL_A_REGION_MRS = 65,	/* u64: memory regions of all its devices */
	RMPOOL_A_REGION_PAGES = 66,	/* u64: pages of those */
	RMPOOL_A_REGION_STATE = 67,	/* u32, enum rmpool_region_state */
	RMPOOL_A_REGION_DMABUF = 68,	/* flag: of a dma-buf */
	RMPOOL_A_REGION_CACHED = 69,	/* flag: made for requests of its owner */

	/* registered for requests of all processes, since the module was loaded */
	RMPOOL_A_NODE_CACHE_BYTES = 70,	/* u64: now */
	RMPOOL_A_NODE_CACHE_HITS = 71,	/* u64 */
	RMPOOL_A_NODE_CACHE_MISSES = 72, /* u64 */
	RMPOOL_A_NODE_CACHE_EVICTIONS = 73, /* u64 */
	RMPOOL_A_NODE_CACHE_INVALIDATIONS = 74, /* u64 */

	RMPOOL_A_REGION_PERCENT = 75,	/* u32: how far registering it is */

	/* copied for requests of all processes, since the module was loaded */
	RMPOOL_A_NODE_STAGING_POOL = 76, /* u64: bytes of memory for that now */
	RMPOOL_A_NODE_STAGING_REQUESTS = 77, /* u64 */
	RMPOOL_A_NODE_STAGING_BYTES = 78, /* u64: of those */
	RMPOOL_A_NODE_STAGING_FALLBACKS = 79, /* u64: that found no room */
	RMPOOL_A_SEGMENT_RESTRICTED = 80, /* flag: only those who are allowed may open it */
	RMPOOL_A_SEGMENT_ALLOW = 81,	/* nest: RMPOOL_A_ALLOW_*, one for each of those */
	RMPOOL_A_ALLOW_PEER = 82,	/* text: a peer; "@" and a trust group; "*": others */
	RMPOOL_A_ALLOW_ACCESS = 83,	/* u32: RMPOOL_ACCESS_REMOTE_* */
	RMPOOL_A_PEER_GROUP = 84,	/* text: trust group, at most 62 characters */

	__RMPOOL_A_MAX,
	RMPOOL_A_MAX = __RMPOOL_A_MAX - 1
};

#endif /* _UAPI_LINUX_RMPOOL_NETLINK_H */
