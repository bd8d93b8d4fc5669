// SPDX-License-Identifier: GPL-2.0
/*
 * Encoding and decoding of control messages.
 *
 * Each layout is described once, by a function that moves its fields through a
 * &struct stream, to the wire or from it; and each has one check (msg_ok(),
 * run_ok() and so on), applied before encoding and after decoding. So the two
 * directions cannot differ in what they hold well formed. docs/wire.md has the
 * offsets that follow from it.
 *
 * Pure: no state, no locks, no allocation, any context. Lifetime: nothing is
 * kept but the rkeys pointer of a run, which points into the caller's message.
 * Also compiled in user space, see wire_user.h.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#endif
#include "stream.h"
#include "wire.h"

/* Chunk numbers fit in 31 bits, so that adding a count cannot wrap. */
#define CHUNK_LAST	0x7fffffffU

#define HEADER_SIZE	16
#define CREDITS_AT	12
/* Where the runs of a KEYS message begin, and the size of one without rkeys. */
#define RUNS_AT		(HEADER_SIZE + 32)
#define RUN_SIZE	52
#define RKEY_SIZE	4

/* What is well formed */

/* Texts end up in logs and in terminals: visible ASCII only, without blanks. */
static bool text_ok(const char *text, size_t size)
{
	size_t len = strnlen(text, size);
	size_t i;

	if (len == size)
		return false;
	for (i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return all_zero(text + len, size - len);
}

static bool devices_ok(const struct rmp_msg_devices *m)
{
	u32 seen = 0;
	u32 i;

	if (m->nr > RMP_WIRE_DEVICES_MAX)
		return false;
	for (i = 0; i < m->nr; i++) {
		const struct rmp_wire_device *dev = &m->dev[i];

		if (dev->index >= RMP_WIRE_DEVICES_MAX || !rmp_wire_mtu_ok(dev->mtu))
			return false;
		if (seen & (1U << dev->index))
			return false;
		seen |= 1U << dev->index;
		if (dev->family != 4 && dev->family != 6)
			return false;
		if (dev->family == 4 &&
		    !all_zero(dev->addr + 4, sizeof(dev->addr) - 4))
			return false;
	}
	return true;
}

static bool tokens_ok(const struct rmp_msg_rail_tokens *m)
{
	if (m->rail >= RMP_WIRE_RAILS_MAX || m->status > RMP_REJECT_LAST)
		return false;
	if (m->status)
		return !m->nr;
	return m->nr >= 1 && m->nr <= RMP_WIRE_QPS_MAX;
}

static bool cursor_ok(const struct rmp_wire_cursor *c)
{
	return c->device < RMP_WIRE_DEVICES_MAX && c->chunk <= CHUNK_LAST;
}

static bool keys_ok(const struct rmp_msg_keys *m)
{
	bool start = !m->next.region && !m->next.device && !m->next.chunk;

	/* A walk ends, or goes on somewhere; it never starts over. */
	if (!m->segment || m->last > 1 || start != m->last)
		return false;
	return cursor_ok(&m->next) && (m->nr_runs || m->last);
}

static bool run_ok(const struct rmp_wire_keys *run)
{
	if (run->chunk_shift < RMP_WIRE_SHIFT_MIN ||
	    run->chunk_shift > RMP_WIRE_SHIFT_MAX)
		return false;
	if (run->access & ~(RMPOOL_ACCESS_REMOTE_READ |
			    RMPOOL_ACCESS_REMOTE_WRITE | RMP_WIRE_STALE))
		return false;
	if (run->access & RMP_WIRE_STALE && (run->nr || run->device))
		return false;
	if (!run->nr && run->first)
		return false;
	return run->device < RMP_WIRE_DEVICES_MAX && run->first <= CHUNK_LAST;
}

static bool msg_ok(const struct rmp_msg *msg)
{
	switch (msg->type) {
	case RMP_MSG_HELLO:
		return text_ok(msg->hello.name, sizeof(msg->hello.name)) &&
		       text_ok(msg->hello.endpoint,
			       sizeof(msg->hello.endpoint));
	case RMP_MSG_DEVICES:
		return devices_ok(&msg->devices);
	case RMP_MSG_RAIL_REQUEST:
		return msg->rail_request.rail < RMP_WIRE_RAILS_MAX &&
		       msg->rail_request.sender_dev < RMP_WIRE_DEVICES_MAX &&
		       msg->rail_request.receiver_dev < RMP_WIRE_DEVICES_MAX &&
		       msg->rail_request.nr_qps >= 1 &&
		       msg->rail_request.nr_qps <= RMP_WIRE_QPS_MAX;
	case RMP_MSG_RAIL_TOKENS:
		return tokens_ok(&msg->rail_tokens);
	case RMP_MSG_RAIL_WANTED:
		return msg->rail_wanted.sender_dev < RMP_WIRE_DEVICES_MAX &&
		       msg->rail_wanted.receiver_dev < RMP_WIRE_DEVICES_MAX &&
		       msg->rail_wanted.none <= 1;
	case RMP_MSG_RAIL_LOST:
		return msg->rail_lost.rail < RMP_WIRE_RAILS_MAX &&
		       msg->rail_lost.qp < RMP_WIRE_QPS_MAX &&
		       msg->rail_lost.qpn;
	case RMP_MSG_QP_FENCE:
		return msg->qp_fence.rail < RMP_WIRE_RAILS_MAX &&
		       msg->qp_fence.qp < RMP_WIRE_QPS_MAX &&
		       msg->qp_fence.qpn && msg->qp_fence.peer_qpn;
	case RMP_MSG_SEGMENT_OPEN:
		return text_ok(msg->segment_open.name,
			       sizeof(msg->segment_open.name));
	case RMP_MSG_SEGMENT_INFO:
		return msg->segment_info.status || msg->segment_info.segment;
	case RMP_MSG_SEGMENT_CLOSE:
		return msg->segment.segment;
	case RMP_MSG_KEYS_CHANGED:
		return msg->segment.segment && rmp_range_any(&msg->segment.range);
	case RMP_MSG_KEYS_GET:
		return msg->keys_get.segment && cursor_ok(&msg->keys_get.from) &&
		       msg->keys_get.from.region <= msg->keys_get.to;
	case RMP_MSG_KEYS:
		return keys_ok(&msg->keys);
	case RMP_MSG_REVOKE:
	case RMP_MSG_REVOKE_ACK:
		return msg->revoke.segment;
	case RMP_MSG_REKEY:
		return msg->revoke.segment && msg->revoke.region;
	case RMP_MSG_WITHDRAWN:
		return msg->revoke.segment && !msg->revoke.region;
	case RMP_MSG_PROBE:
	case RMP_MSG_PROBE_ACK:
	case RMP_MSG_QP_FENCED:
	case RMP_MSG_CREDIT:
	case RMP_MSG_BYE:
		return true;
	}
	return false;
}

/* Layouts */

static void move_header(struct stream *s, struct rmp_msg *msg, u32 *magic,
			u8 *version, u16 *length)
{
	move_u32(s, magic);
	move_u8(s, version);
	move_u8(s, &msg->type);
	move_u16(s, length);
	move_u32(s, &msg->seq);
	move_u8(s, &msg->credits);
	move_zero(s, 3);
}

static void move_hello(struct stream *s, struct rmp_msg_hello *m)
{
	move_bytes(s, m->uuid, sizeof(m->uuid));
	move_u64(s, &m->features);
	move_bytes(s, m->name, sizeof(m->name));
	move_bytes(s, m->endpoint, sizeof(m->endpoint));
}

static void move_devices(struct stream *s, struct rmp_msg_devices *m)
{
	u32 i;

	move_u32(s, &m->nr);
	if (m->nr > RMP_WIRE_DEVICES_MAX) {
		s->bad = true;
		return;
	}
	for (i = 0; i < m->nr; i++) {
		struct rmp_wire_device *dev = &m->dev[i];

		move_u8(s, &dev->index);
		move_u8(s, &dev->mtu);
		move_u8(s, &dev->family);
		move_u8(s, &dev->read_limit);
		move_u32(s, &dev->speed_mbps);
		move_bytes(s, dev->addr, sizeof(dev->addr));
	}
}

static void move_rail_request(struct stream *s, struct rmp_msg_rail_request *m)
{
	move_u8(s, &m->rail);
	move_u8(s, &m->sender_dev);
	move_u8(s, &m->receiver_dev);
	move_u8(s, &m->nr_qps);
}

static void move_rail_tokens(struct stream *s, struct rmp_msg_rail_tokens *m)
{
	u32 i;

	move_u8(s, &m->rail);
	move_u8(s, &m->status);
	move_u8(s, &m->nr);
	move_zero(s, 1);
	if (m->nr > RMP_WIRE_QPS_MAX) {
		s->bad = true;
		return;
	}
	for (i = 0; i < m->nr; i++)
		move_bytes(s, m->token[i], sizeof(m->token[i]));
}

static void move_rail_wanted(struct stream *s, struct rmp_msg_rail_wanted *m)
{
	move_u8(s, &m->sender_dev);
	move_u8(s, &m->receiver_dev);
	move_u8(s, &m->none);
	move_zero(s, 1);
}

static void move_rail_lost(struct stream *s, struct rmp_msg_rail_lost *m)
{
	move_u8(s, &m->rail);
	move_u8(s, &m->qp);
	move_zero(s, 2);
	move_u32(s, &m->qpn);
}

static void move_qp_fence(struct stream *s, struct rmp_msg_qp_fence *m)
{
	move_u8(s, &m->rail);
	move_u8(s, &m->qp);
	move_zero(s, 2);
	move_u32(s, &m->id);
	move_u32(s, &m->qpn);
	move_u32(s, &m->peer_qpn);
}

static void move_segment_open(struct stream *s, struct rmp_msg_segment_open *m)
{
	move_u32(s, &m->cookie);
	move_bytes(s, m->name, sizeof(m->name));
}

static void move_segment_info(struct stream *s, struct rmp_msg_segment_info *m)
{
	move_u32(s, &m->cookie);
	move_u32(s, &m->status);
	move_u32(s, &m->segment);
	move_u32(s, &m->nr_regions);
	move_u64(s, &m->generation);
	move_u64(s, &m->size);
}

static void move_cursor(struct stream *s, struct rmp_wire_cursor *c)
{
	move_u64(s, &c->region);
	move_u32(s, &c->device);
	move_u32(s, &c->chunk);
}

static void move_keys(struct stream *s, struct rmp_msg_keys *m)
{
	u16 nr_runs = (u16)m->nr_runs;

	move_u32(s, &m->segment);
	move_u16(s, &nr_runs);
	move_u8(s, &m->last);
	move_zero(s, 1);
	move_u64(s, &m->generation);
	move_cursor(s, &m->next);
	m->nr_runs = nr_runs;
}

/* Without the rkeys behind it. */
static void move_run(struct stream *s, struct rmp_wire_keys *run)
{
	u16 nr = (u16)run->nr;

	move_u64(s, &run->region);
	move_u64(s, &run->offset);
	move_u64(s, &run->length);
	move_u64(s, &run->iova);
	move_u64(s, &run->iova_base);
	move_u32(s, &run->access);
	move_u32(s, &run->first);
	move_u16(s, &nr);
	move_u8(s, &run->chunk_shift);
	move_u8(s, &run->device);
	run->nr = nr;
}

static void move_revoke(struct stream *s, struct rmp_msg_revoke *m)
{
	move_u32(s, &m->id);
	move_u32(s, &m->segment);
	move_u64(s, &m->region);
}

/* False when the type is unknown. */
static bool move_body(struct stream *s, struct rmp_msg *msg)
{
	switch (msg->type) {
	case RMP_MSG_HELLO:
		move_hello(s, &msg->hello);
		return true;
	case RMP_MSG_DEVICES:
		move_devices(s, &msg->devices);
		return true;
	case RMP_MSG_RAIL_REQUEST:
		move_rail_request(s, &msg->rail_request);
		return true;
	case RMP_MSG_RAIL_TOKENS:
		move_rail_tokens(s, &msg->rail_tokens);
		return true;
	case RMP_MSG_RAIL_WANTED:
		move_rail_wanted(s, &msg->rail_wanted);
		return true;
	case RMP_MSG_RAIL_LOST:
		move_rail_lost(s, &msg->rail_lost);
		return true;
	case RMP_MSG_QP_FENCE:
		move_qp_fence(s, &msg->qp_fence);
		return true;
	case RMP_MSG_QP_FENCED:
		move_u32(s, &msg->qp_fenced.id);
		return true;
	case RMP_MSG_SEGMENT_OPEN:
		move_segment_open(s, &msg->segment_open);
		return true;
	case RMP_MSG_SEGMENT_INFO:
		move_segment_info(s, &msg->segment_info);
		return true;
	case RMP_MSG_SEGMENT_CLOSE:
		move_u32(s, &msg->segment.segment);
		return true;
	case RMP_MSG_KEYS_GET:
		move_u32(s, &msg->keys_get.segment);
		move_cursor(s, &msg->keys_get.from);
		move_u64(s, &msg->keys_get.to);
		return true;
	case RMP_MSG_KEYS:
		move_keys(s, &msg->keys);
		return true;
	case RMP_MSG_KEYS_CHANGED:
		move_u32(s, &msg->segment.segment);
		move_u64(s, &msg->segment.generation);
		move_u64(s, &msg->segment.range.from);
		move_u64(s, &msg->segment.range.to);
		return true;
	case RMP_MSG_REVOKE:
	case RMP_MSG_REVOKE_ACK:
	case RMP_MSG_REKEY:
	case RMP_MSG_WITHDRAWN:
		move_revoke(s, &msg->revoke);
		return true;
	case RMP_MSG_PROBE:
	case RMP_MSG_PROBE_ACK:
		move_u64(s, &msg->probe.id);
		return true;
	case RMP_MSG_CREDIT:
	case RMP_MSG_BYE:
		return true;
	}
	return false;
}

/* Header and body, the latter with its known length @more behind it. */
static int put_msg(void *buf, size_t size, struct rmp_msg *msg, size_t more)
{
	struct stream s = stream_put(buf, size);
	u32 magic = RMP_WIRE_MAGIC;
	u8 version = RMP_WIRE_VERSION;
	u16 length = 0;
	size_t len;

	move_header(&s, msg, &magic, &version, &length);
	move_body(&s, msg);
	if (s.bad)
		return -EMSGSIZE;
	len = (size_t)(s.pos - (u8 *)buf) + more;
	/* Now that the length is known, the header once more. */
	length = (u16)len;
	s = stream_put(buf, size);
	move_header(&s, msg, &magic, &version, &length);
	return (int)len;
}

int rmp_wire_encode(void *buf, size_t size, const struct rmp_msg *msg)
{
	struct rmp_msg tmp = *msg;

	if (msg->type == RMP_MSG_KEYS || !msg_ok(msg))
		return -EBADMSG;
	return put_msg(buf, size, &tmp, 0);
}

static bool runs_ok(const void *buf, size_t len, u32 nr_runs)
{
	struct rmp_wire_keys run;
	size_t pos = 0;
	int ret;

	while ((ret = rmp_keys_next(buf, len, &pos, &run)) > 0) {
		if (!nr_runs--)
			return false;
	}
	return !ret && !nr_runs;
}

int rmp_wire_decode(const void *buf, size_t len, struct rmp_msg *msg)
{
	struct stream s = stream_get(buf, len);
	struct rmp_msg tmp = {};
	u32 magic = 0;
	u8 version = 0;
	u16 length = 0;
	bool known;

	if (len < HEADER_SIZE)
		return -EBADMSG;
	move_header(&s, &tmp, &magic, &version, &length);
	if (magic != RMP_WIRE_MAGIC)
		return -EPROTO;
	if (version != RMP_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (s.bad || length != len || len > RMP_WIRE_MSG_MAX)
		return -EBADMSG;
	known = move_body(&s, &tmp);
	if (!known) {
		msg->type = tmp.type;
		msg->seq = tmp.seq;
		msg->credits = tmp.credits;
		return -ENOMSG;
	}
	if (s.bad || !msg_ok(&tmp))
		return -EBADMSG;
	if (tmp.type == RMP_MSG_KEYS) {
		if (!runs_ok(buf, len, tmp.keys.nr_runs))
			return -EBADMSG;
	} else if (s.pos != s.end) {
		return -EBADMSG;
	}
	*msg = tmp;
	return 0;
}

void rmp_wire_set_credits(void *buf, u8 credits)
{
	((u8 *)buf)[CREDITS_AT] = credits;
}

/* Keys */

int rmp_keys_begin(struct rmp_keys_writer *w, void *buf, size_t size)
{
	if (size < RUNS_AT + RUN_SIZE + RKEY_SIZE)
		return -EMSGSIZE;
	*w = (struct rmp_keys_writer){
		.buf = buf,
		.size = size < RMP_WIRE_MSG_MAX ? size : RMP_WIRE_MSG_MAX,
		.len = RUNS_AT,
	};
	return 0;
}

/* The run that is open ends: its count is known now. */
static void close_run(struct rmp_keys_writer *w)
{
	struct rmp_wire_keys run = {};
	struct stream s;

	if (!w->nr_runs)
		return;
	s = stream_get(w->buf + w->run, RUN_SIZE);
	move_run(&s, &run);
	run.nr = (u32)((w->len - w->run - RUN_SIZE) / RKEY_SIZE);
	if (!run_ok(&run))
		w->bad = true;
	s = stream_put(w->buf + w->run, RUN_SIZE);
	move_run(&s, &run);
}

u32 rmp_keys_open(struct rmp_keys_writer *w, const struct rmp_wire_keys *run)
{
	size_t room = w->size - w->len;
	struct rmp_wire_keys tmp = *run;
	struct stream s;

	if (room < RUN_SIZE + RKEY_SIZE)
		return 0;
	close_run(w);
	w->run = w->len;
	w->nr_runs++;
	s = stream_put(w->buf + w->len, RUN_SIZE);
	move_run(&s, &tmp);
	w->len += RUN_SIZE;
	return (u32)((room - RUN_SIZE) / RKEY_SIZE);
}

void rmp_keys_add(struct rmp_keys_writer *w, u32 rkey)
{
	struct stream s = stream_put(w->buf + w->len, w->size - w->len);

	move_u32(&s, &rkey);
	if (s.bad || !w->nr_runs)
		w->bad = true;
	else
		w->len += RKEY_SIZE;
}

int rmp_keys_end(struct rmp_keys_writer *w, u32 seq,
		 const struct rmp_msg_keys *keys)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_KEYS,
		.seq = seq,
		.keys = *keys,
	};

	close_run(w);
	msg.keys.nr_runs = w->nr_runs;
	if (w->bad || !msg_ok(&msg))
		return -EBADMSG;
	return put_msg(w->buf, w->size, &msg, w->len - RUNS_AT);
}

int rmp_keys_next(const void *buf, size_t len, size_t *pos,
		  struct rmp_wire_keys *run)
{
	struct rmp_wire_keys tmp = {};
	struct stream s;

	if (!*pos)
		*pos = RUNS_AT;
	if (*pos == len)
		return 0;
	if (*pos > len)
		return -EBADMSG;
	s = stream_get((const u8 *)buf + *pos, len - *pos);
	move_run(&s, &tmp);
	if (s.bad || (size_t)(s.end - s.pos) / RKEY_SIZE < tmp.nr || !run_ok(&tmp))
		return -EBADMSG;
	tmp.rkeys = s.pos;
	*pos += RUN_SIZE + tmp.nr * (size_t)RKEY_SIZE;
	*run = tmp;
	return 1;
}

u32 rmp_keys_rkey(const struct rmp_wire_keys *run, u32 i)
{
	struct stream s = stream_get(run->rkeys + i * (size_t)RKEY_SIZE, RKEY_SIZE);
	u32 rkey = 0;

	move_u32(&s, &rkey);
	return rkey;
}
