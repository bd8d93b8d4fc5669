// SPDX-License-Identifier: GPL-2.0
/*
 * Encoding and decoding of the private data of RDMA CM requests and of the answers to
 * them, in the manner of wire.c: each layout once, each check once. docs/wire.md has the
 * offsets.
 *
 * Pure: no state, no locks, no allocation, any context. Also compiled in user space, see
 * wire_user.h.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#endif
#include "private.h"
#include "stream.h"

/* 0, or that there are fewer bytes than the fields have. */
static int moved(const struct stream *s)
{
	if (!s->bad)
		return 0;
	return s->put ? -EMSGSIZE : -EBADMSG;
}

/* Private data: zero (first two bytes, for AF_IB), one byte, version, magic:
 * this much is where it is in every version.
 */
static int move_start(struct stream *s, u8 *what, u8 *version)
{
	u32 magic = RMP_WIRE_MAGIC;
	u16 zero = 0;
	int ret;

	*version = RMP_WIRE_VERSION;
	move_u16(s, &zero);
	move_u8(s, what);
	move_u8(s, version);
	move_u32(s, &magic);
	ret = moved(s);
	if (ret)
		return ret;
	if (zero || magic != RMP_WIRE_MAGIC)
		return -EPROTO;
	return *version == RMP_WIRE_VERSION ? 0 : -EPROTONOSUPPORT;
}

static int move_req(struct stream *s, struct rmp_wire_req *req)
{
	int ret = move_start(s, &req->kind, &req->version);

	if (ret)
		return ret;
	move_u32(s, &req->attempt);
	move_u8(s, &req->mtu);
	move_u8(s, &req->rail);
	move_u8(s, &req->qp);
	move_zero(s, 1);
	move_bytes(s, req->uuid, sizeof(req->uuid));
	move_bytes(s, req->token, sizeof(req->token));
	return moved(s);
}

static int move_reply(struct stream *s, struct rmp_wire_reply *r)
{
	int ret = move_start(s, &r->reject, &r->version);

	if (ret)
		return ret;
	move_u8(s, &r->mtu);
	move_zero(s, 7);
	move_bytes(s, r->uuid, sizeof(r->uuid));
	return moved(s);
}

static bool req_ok(const struct rmp_wire_req *req)
{
	if (!rmp_wire_mtu_ok(req->mtu))
		return false;
	switch (req->kind) {
	case RMP_WIRE_CONTROL:
		return !req->rail && !req->qp &&
		       all_zero(req->token, sizeof(req->token));
	case RMP_WIRE_DATA:
		return req->rail < RMP_WIRE_RAILS_MAX &&
		       req->qp < RMP_WIRE_QPS_MAX;
	}
	return false;
}

static bool reply_ok(const struct rmp_wire_reply *r)
{
	if (r->reject)
		return r->reject <= RMP_REJECT_LAST && !r->mtu;
	return rmp_wire_mtu_ok(r->mtu);
}

int rmp_wire_put_req(void *buf, size_t size, const struct rmp_wire_req *req)
{
	struct stream s = stream_put(buf, size);
	struct rmp_wire_req tmp = *req;
	int ret;

	if (!req_ok(req))
		return -EBADMSG;
	ret = move_req(&s, &tmp);
	return ret ? ret : (int)(s.pos - (u8 *)buf);
}

int rmp_wire_get_req(const void *buf, size_t len, struct rmp_wire_req *req)
{
	struct stream s = stream_get(buf, len);
	struct rmp_wire_req tmp = {};
	int ret = move_req(&s, &tmp);

	if (ret == -EPROTONOSUPPORT)
		req->version = tmp.version;
	if (ret)
		return ret;
	if (!req_ok(&tmp) || !all_zero(s.pos, (size_t)(s.end - s.pos)))
		return -EBADMSG;
	*req = tmp;
	return 0;
}

int rmp_wire_put_reply(void *buf, size_t size, const struct rmp_wire_reply *r)
{
	struct stream s = stream_put(buf, size);
	struct rmp_wire_reply tmp = *r;
	int ret;

	if (!reply_ok(r))
		return -EBADMSG;
	ret = move_reply(&s, &tmp);
	return ret ? ret : (int)(s.pos - (u8 *)buf);
}

int rmp_wire_get_reply(const void *buf, size_t len, struct rmp_wire_reply *r)
{
	struct stream s = stream_get(buf, len);
	struct rmp_wire_reply tmp = {};
	int ret = move_reply(&s, &tmp);

	if (ret == -EPROTONOSUPPORT)
		r->version = tmp.version;
	if (ret)
		return ret;
	if (!reply_ok(&tmp) || !all_zero(s.pos, (size_t)(s.end - s.pos)))
		return -EBADMSG;
	*r = tmp;
	return 0;
}
