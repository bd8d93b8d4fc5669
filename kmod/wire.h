/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Encoding and decoding of what goes between nodes: the control messages, and
 * what they share with the private data of RDMA CM requests (private.h). Pure:
 * wire.c also compiles in user space (with wire_user.h in place of the kernel's
 * headers), where it is unit-tested and fuzzed. Everything decoded is hostile:
 * lengths, counts and enumerations are checked here, meaning is checked by the
 * caller.
 *
 * On the wire all numbers are little-endian. A message is a header (magic,
 * version, type, total length, sequence number, credits) and a body; unknown
 * types are reported as such and skipped by the caller, other versions refused.
 * docs/wire.md has the offsets.
 *
 * No state, no locks, no allocation: any context. Texts and reserved bytes have
 * one form only: zero behind the end.
 */
#ifndef RMP_WIRE_H
#define RMP_WIRE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/rmpool.h>
#else
#include "wire_user.h"
#endif

#define RMP_WIRE_MAGIC		0x4c504d52	/* "RMPL" */
#define RMP_WIRE_VERSION	1
#define RMP_WIRE_PORT		13579
/* Size of a control message, header included; every receive buffer's size. */
#define RMP_WIRE_MSG_MAX	4096
#define RMP_WIRE_UUID		16
#define RMP_WIRE_TOKEN		16
#define RMP_WIRE_DEVICES_MAX	32
#define RMP_WIRE_RAILS_MAX	32
#define RMP_WIRE_QPS_MAX	16
/* Chunks of a region are 1 << shift bytes. */
#define RMP_WIRE_SHIFT_MIN	12
#define RMP_WIRE_SHIFT_MAX	40

/* Why a connect request was rejected. */
enum rmp_wire_reject {
	RMP_REJECT_VERSION = 1,		/* @version of the reply: what is spoken */
	RMP_REJECT_MALFORMED = 2,
	RMP_REJECT_NOT_TRUSTED = 3,	/* not in the peer table */
	RMP_REJECT_SELF = 4,		/* the request came from this very node */
	RMP_REJECT_CROSSED = 5,		/* our own request to you goes first */
	RMP_REJECT_RETRY = 6,		/* come again: an old connection is probed */
	RMP_REJECT_TOKEN = 7,		/* data QP without a good token, or from elsewhere */
	RMP_REJECT_NO_PEER = 8,		/* data QP without a control connection */
	RMP_REJECT_RESOURCES = 9,
	RMP_REJECT_IN_USE = 10,		/* that peer is connected and alive */
	RMP_REJECT_CLOSING = 11,
};

#define RMP_REJECT_LAST		RMP_REJECT_CLOSING

/* Of enum ib_mtu, which user space does not have: 256 to 4096 bytes. */
static inline bool rmp_wire_mtu_ok(u8 mtu)
{
	return mtu >= 1 && mtu <= 5;
}

enum rmp_wire_type {
	RMP_MSG_HELLO = 1,
	RMP_MSG_DEVICES = 2,
	RMP_MSG_RAIL_REQUEST = 3,
	RMP_MSG_RAIL_TOKENS = 4,
	RMP_MSG_SEGMENT_OPEN = 5,
	RMP_MSG_SEGMENT_INFO = 6,
	RMP_MSG_SEGMENT_CLOSE = 7,
	RMP_MSG_KEYS_GET = 8,
	RMP_MSG_KEYS = 9,
	RMP_MSG_KEYS_CHANGED = 10,
	RMP_MSG_REVOKE = 11,
	RMP_MSG_REVOKE_ACK = 12,
	RMP_MSG_PROBE = 13,
	RMP_MSG_PROBE_ACK = 14,
	RMP_MSG_CREDIT = 15,		/* only the header's credits */
	RMP_MSG_BYE = 16,
	RMP_MSG_RAIL_LOST = 17,
	RMP_MSG_QP_FENCE = 18,
	RMP_MSG_QP_FENCED = 19,
	RMP_MSG_REKEY = 20,
	RMP_MSG_WITHDRAWN = 21,
	RMP_MSG_RAIL_WANTED = 22,
};

/* Longest endpoint text with its NUL: v1:[IPv6%scope]:port. */
#define RMP_WIRE_ENDPOINT_MAX	80

struct rmp_msg_hello {
	u8 uuid[RMP_WIRE_UUID];
	char name[RMPOOL_NAME_MAX];
	char endpoint[RMP_WIRE_ENDPOINT_MAX];	/* where the sender listens */
	u64 features;				/* none defined */
};

struct rmp_wire_device {
	u8 index;		/* below RMP_WIRE_DEVICES_MAX */
	u8 mtu;			/* enum ib_mtu */
	u8 family;		/* 4 or 6; @addr has 4 or 16 bytes in use */
	u8 read_limit;		/* RDMA reads in flight per QP */
	u32 speed_mbps;
	u8 addr[16];
};

struct rmp_msg_devices {
	u32 nr;
	struct rmp_wire_device dev[RMP_WIRE_DEVICES_MAX];
};

struct rmp_msg_rail_request {
	u8 rail;		/* index chosen by the sender, below 32 */
	u8 sender_dev;
	u8 receiver_dev;
	u8 nr_qps;		/* 1 to RMP_WIRE_QPS_MAX */
};

struct rmp_msg_rail_tokens {
	u8 rail;
	u8 status;		/* 0, or enum rmp_wire_reject */
	u8 nr;			/* tokens; may be fewer than asked for */
	u8 token[RMP_WIRE_QPS_MAX][RMP_WIRE_TOKEN];
};

/* Who did not connect wants a rail between two devices; or who did says that there can be
 * none.
 */
struct rmp_msg_rail_wanted {
	u8 sender_dev;
	u8 receiver_dev;
	u8 none;		/* 1: from who connected */
};

/* The sender took a queue pair of a rail down that carried nothing. */
struct rmp_msg_rail_lost {
	u8 rail;
	u8 qp;			/* index in the rail */
	u32 qpn;		/* its number at the sender, not 0 */
};

/* The sender took a queue pair of a rail down: the receiver is to do so as well, and to
 * tell when nothing that was sent on it can arrive any more.
 */
struct rmp_msg_qp_fence {
	u8 rail;
	u8 qp;			/* index in the rail */
	u32 id;			/* comes back in QP_FENCED */
	u32 qpn;		/* its number at the sender, not 0 */
	u32 peer_qpn;		/* at the receiver, not 0 */
};

struct rmp_msg_qp_fenced {
	u32 id;			/* of the QP_FENCE */
};

struct rmp_msg_segment_open {
	u32 cookie;		/* comes back in SEGMENT_INFO */
	char name[RMPOOL_NAME_MAX];
};

struct rmp_msg_segment_info {
	u32 cookie;
	u32 status;		/* 0, or enum rmpool_reason */
	u32 segment;		/* id at the sender of this message */
	u32 nr_regions;
	u64 generation;
	u64 size;
};

/* Offsets of a segment, both of them in it; none when @from is above @to. */
struct rmp_wire_range {
	u64 from;
	u64 to;
};

#define RMP_RANGE_ALL	((struct rmp_wire_range){ .to = ~0ULL })
#define RMP_RANGE_NONE	((struct rmp_wire_range){ .from = ~0ULL })

static inline bool rmp_range_any(const struct rmp_wire_range *range)
{
	return range->from <= range->to;
}

/* To the smallest range with both in it. */
static inline void rmp_range_add(struct rmp_wire_range *range, u64 from, u64 to)
{
	if (range->from > from)
		range->from = from;
	if (range->to < to)
		range->to = to;
}

struct rmp_msg_segment {	/* SEGMENT_CLOSE, KEYS_CHANGED (+ the other two) */
	u32 segment;
	u64 generation;
	struct rmp_wire_range range;	/* not none */
};

/* Where a walk over a segment's keys begins or goes on. */
struct rmp_wire_cursor {
	u64 region;		/* its offset, or from where on to look for one */
	u32 device;
	u32 chunk;
};

struct rmp_msg_keys_get {
	u32 segment;
	struct rmp_wire_cursor from;
	u64 to;			/* last offset that is asked for, not before @from */
};

/* A bit of rmp_wire_keys.access beside the rights: the owner let go of the memory;
 * there are no keys of it, nor will be.
 */
#define RMP_WIRE_STALE		0x8U

/* A run of keys: chunks @first to @first + @nr - 1 of a region on a device. The
 * runs of a region follow each other by device and then by chunk, both upwards.
 */
struct rmp_wire_keys {
	u64 region;		/* id, unique at the sender */
	u64 offset;		/* in the segment */
	u64 length;
	u64 iova;		/* device address of the first byte */
	u64 iova_base;		/* device address of the first chunk */
	u32 access;		/* RMPOOL_ACCESS_REMOTE_*, RMP_WIRE_STALE */
	u8 chunk_shift;		/* RMP_WIRE_SHIFT_MIN to _MAX */
	u8 device;		/* index at the sender */
	u32 first;
	u32 nr;			/* 0: region not mapped on any device; @first 0 */
	const u8 *rkeys;	/* nr little-endian u32, in the message */
};

/* A KEYS message is written and read run by run, see below. */
struct rmp_msg_keys {
	u32 segment;
	u32 nr_runs;
	u64 generation;
	u8 last;		/* no more keys after these */
	struct rmp_wire_cursor next;	/* unless last */
};

/* REVOKE, REKEY, WITHDRAWN, and REVOKE_ACK of each with the same values */
struct rmp_msg_revoke {
	u32 id;			/* of the revocation, chosen by the sender */
	u32 segment;
	u64 region;		/* 0: all, and the segment; of REKEY not 0 */
};

struct rmp_msg_probe {		/* PROBE, PROBE_ACK */
	u64 id;
};

struct rmp_msg {
	u8 type;
	u8 credits;		/* receive buffers given back since the last message */
	u32 seq;
	union {
		struct rmp_msg_hello hello;
		struct rmp_msg_devices devices;
		struct rmp_msg_rail_request rail_request;
		struct rmp_msg_rail_tokens rail_tokens;
		struct rmp_msg_rail_wanted rail_wanted;
		struct rmp_msg_rail_lost rail_lost;
		struct rmp_msg_qp_fence qp_fence;
		struct rmp_msg_qp_fenced qp_fenced;
		struct rmp_msg_segment_open segment_open;
		struct rmp_msg_segment_info segment_info;
		struct rmp_msg_segment segment;
		struct rmp_msg_keys_get keys_get;
		struct rmp_msg_keys keys;
		struct rmp_msg_revoke revoke;
		struct rmp_msg_probe probe;
	};
};

/* Encodes all but KEYS (returns the length); decodes all (returns 0; of KEYS
 * the part before the runs). -EMSGSIZE: @size too small. -EPROTO: magic.
 * -EPROTONOSUPPORT: version. -ENOMSG: unknown type (type, seq and credits are
 * set). -EBADMSG: the rest; trailing bytes of a known type are malformed.
 * Encoding refuses what decoding would. On error @msg is untouched but as said.
 */
int rmp_wire_encode(void *buf, size_t size, const struct rmp_msg *msg);
int rmp_wire_decode(const void *buf, size_t len, struct rmp_msg *msg);

/* Sets credits in an encoded message, just before it is sent. */
void rmp_wire_set_credits(void *buf, u8 credits);

/**
 * struct rmp_keys_writer - builds a KEYS message
 *
 * begin() (-EMSGSIZE: @size is no use); then per run open(): how many rkeys
 * still fit, 0: the message is full and nothing was written; add() for each
 * rkey, which counts them (nr and rkeys of @run are ignored); then end(), which
 * returns the length, or -EBADMSG when anything before cannot be sent (bad fields
 * of a run or of @keys, more keys than fit). nr_runs of @keys is ignored.
 */
struct rmp_keys_writer {
	u8 *buf;
	size_t size;
	size_t len;
	size_t run;
	u32 nr_runs;
	bool bad;
};

int rmp_keys_begin(struct rmp_keys_writer *w, void *buf, size_t size);
u32 rmp_keys_open(struct rmp_keys_writer *w, const struct rmp_wire_keys *run);
void rmp_keys_add(struct rmp_keys_writer *w, u32 rkey);
int rmp_keys_end(struct rmp_keys_writer *w, u32 seq,
		 const struct rmp_msg_keys *keys);

/* Walks the runs of a decoded KEYS message: *pos begins as 0; 1: @run is set,
 * 0: no more, -EBADMSG. rmp_wire_decode() has checked all runs already.
 */
int rmp_keys_next(const void *buf, size_t len, size_t *pos,
		  struct rmp_wire_keys *run);
u32 rmp_keys_rkey(const struct rmp_wire_keys *run, u32 i);

#endif /* RMP_WIRE_H */
