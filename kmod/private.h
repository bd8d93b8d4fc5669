/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private data: what goes with the connect request of each connection, and with the
 * answer to it. Pure and hostile as the messages are, see wire.h.
 */
#ifndef RMP_PRIVATE_H
#define RMP_PRIVATE_H

#include "wire.h"

/* Of a request on InfiniBand and RoCE there are 56 bytes. */
#define RMP_WIRE_REQ_MAX	56
#define RMP_WIRE_REPLY_MAX	32

/* What a connection is for. */
enum rmp_wire_kind {
	RMP_WIRE_CONTROL = 1,
	RMP_WIRE_DATA = 2,
};

/* Private data of a connect request. */
struct rmp_wire_req {
	u8 kind;			/* enum rmp_wire_kind */
	u8 version;
	u8 mtu;				/* enum ib_mtu of the sender's port */
	u8 rail;			/* data: index told in RAIL_REQUEST */
	u8 qp;				/* data: index in the rail */
	u32 attempt;			/* counts up with each request of a node */
	u8 uuid[RMP_WIRE_UUID];
	u8 token[RMP_WIRE_TOKEN];	/* data */
};

/* Private data of an accept (reject = 0) or a reject. */
struct rmp_wire_reply {
	u8 version;
	u8 reject;			/* enum rmp_wire_reject */
	u8 mtu;				/* accept: what both sides are to use */
	u8 uuid[RMP_WIRE_UUID];
};

/* put returns the encoded length, get 0; or a negative errno: -EPROTO (magic),
 * -EPROTONOSUPPORT (version; only @version is filled in), -EMSGSIZE (@size too
 * small), -EBADMSG (the rest). @version is ignored by put. Decoders accept
 * trailing zero bytes (InfiniBand pads private data), and write nothing on
 * other errors.
 */
int rmp_wire_put_req(void *buf, size_t size, const struct rmp_wire_req *req);
int rmp_wire_get_req(const void *buf, size_t len, struct rmp_wire_req *req);
int rmp_wire_put_reply(void *buf, size_t size, const struct rmp_wire_reply *r);
int rmp_wire_get_reply(const void *buf, size_t len, struct rmp_wire_reply *r);

#endif /* RMP_PRIVATE_H */
