/* SPDX-License-Identifier: MIT */
/*
 * The messages of a peer that means harm: by the rules of docs/wire.md, and with
 * something changed in them. For hostile.c.
 */
#ifndef HOSTILE_MESSAGES_H
#define HOSTILE_MESSAGES_H

#include "cm_link.h"
#include "fuzz.h"

enum {
	SEGMENT_OPEN = 5,
	SEGMENT_INFO = 6,
	SEGMENT_CLOSE = 7,
	KEYS_GET = 8,
	KEYS = 9,
	KEYS_CHANGED = 10,
	REVOKE = 11,
	REVOKE_ACK = 12,
	CREDIT = 15,
	BYE = 16,
	RAIL_LOST = 17,
	QP_FENCE = 18,
	QP_FENCED = 19,
	REKEY = 20,
	WITHDRAWN = 21,
	RAIL_WANTED = 22,
	TYPES = 24,	/* with one that nobody knows */
};

/* What was sent by type, and what the other side told. */
static unsigned int sent[TYPES];
static uint32_t their_segment = 1, their_cookie, their_device;

/* The last data queue pair that was connected. */
static uint32_t their_rail, my_qpn = 1, peer_qpn = 1;

static inline void put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

/* The last offset of a range that begins with @begin. */
static inline void put_to(struct random *r, uint8_t *at, uint64_t begin)
{
	uint64_t to = chance(r, 50) ? begin + below(r, 1 << 22) : UINT64_MAX;

	put64(at, to < begin ? UINT64_MAX : to);
}

static inline uint32_t small(struct random *r)
{
	return chance(r, 50) ? their_segment : 1 + below(r, 4);
}

/* One run of keys; returns its length. */
static inline size_t make_run(struct random *r, uint8_t *at)
{
	uint8_t shift = (uint8_t)(12 + below(r, 10));
	uint64_t length = 1 + below(r, 1 << 20), base = (uint64_t)below(r, 1 << 20) << 12;
	uint64_t chunks = ((length - 1) >> shift) + 1;
	uint16_t nr = (uint16_t)(chunks < 200 ? chunks : 200);

	put64(at, 1 + below(r, 3));
	put64(at + 8, (uint64_t)below(r, 4) << 20);
	put64(at + 16, length);
	put64(at + 24, base);
	put64(at + 32, base);
	put32(at + 40, below(r, 4) * 2);
	put32(at + 44, 0);
	memcpy(at + 48, &nr, 2);
	at[50] = shift;
	at[51] = 0;
	noise(r, at + 52, 4UL * nr);
	return 52 + 4U * nr;
}

static inline size_t make_keys(struct random *r, uint8_t *body)
{
	uint32_t nr = 1 + below(r, 4);
	size_t at = 32;

	memset(body, 0, 32);
	put32(body, small(r));
	body[4] = (uint8_t)nr;
	body[6] = chance(r, 80);
	put64(body + 8, below(r, 10));
	if (!body[6])
		put64(body + 16, 1 + below(r, 1 << 20));
	while (nr--)
		at += make_run(r, body + at);
	return at;
}

/* All keys of a segment of one region, the same each time: what runs by chance say
 * may contradict what others said.
 */
static inline size_t make_true_keys(uint8_t *body)
{
	uint8_t *at = body + 32;
	uint16_t nr = 1;

	memset(body, 0, 32 + 56);
	body[4] = 1;
	body[6] = 1;
	put64(at, 1);
	put64(at + 16, 65536);
	put64(at + 24, 2 << 20);
	put64(at + 32, 2 << 20);
	put32(at + 40, 6);
	memcpy(at + 48, &nr, 2);
	at[50] = 16;
	put32(at + 52, 4711);
	return 32 + 56;
}

static inline size_t make_devices(struct random *r, const struct link *l, uint8_t *body)
{
	const struct sockaddr_in *me = (void *)rdma_get_local_addr(l->id);
	uint32_t nr = below(r, 5);

	memset(body, 0, 4 + 24 * 5);
	put32(body, nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint8_t *at = body + 4 + 24UL * i;

		at[0] = (uint8_t)i;
		at[1] = (uint8_t)(1 + below(r, 5));
		at[2] = 4;
		at[3] = (uint8_t)below(r, 200);
		put32(at + 4, (uint32_t)number(r));
		if (i)
			noise(r, at + 8, 4);
		else
			memcpy(at + 8, &me->sin_addr, 4);
	}
	return 4 + 24 * nr;
}

/* The body of a message that may be sent; returns its length. */
static inline size_t make_body(struct random *r, const struct link *l, uint8_t type, uint8_t *body)
{
	static const char *const names[] = { "mem", "none", "mem.1", "-" };
	uint64_t begin = 0;

	memset(body, 0, 256);
	switch (type) {
	case HELLO:
		memcpy(body, uuid, 16);
		memcpy(body + 24, "hostile", 8);
		return 168;
	case DEVICES:
		return make_devices(r, l, body);
	case RAIL_REQUEST:
		body[0] = (uint8_t)below(r, 32);
		body[1] = (uint8_t)below(r, 3);
		body[2] = (uint8_t)(chance(r, 70) ? their_device : below(r, 32));
		body[3] = (uint8_t)(1 + below(r, 16));
		return 4;
	case RAIL_TOKENS:
		body[0] = (uint8_t)below(r, 32);
		body[2] = (uint8_t)(1 + below(r, 16));
		return 4 + 16U * body[2];
	case RAIL_WANTED:
		body[0] = (uint8_t)below(r, 3);
		body[1] = (uint8_t)(chance(r, 70) ? their_device : below(r, 32));
		body[2] = 1;
		return 4;
	case RAIL_LOST:
		body[0] = (uint8_t)below(r, 32);
		body[1] = (uint8_t)below(r, 16);
		put32(body + 4, 1 + below(r, 1 << 24));
		return 8;
	case QP_FENCE:
		/* About its own, or by chance about those of others. */
		body[0] = (uint8_t)(chance(r, 50) ? their_rail : below(r, 32));
		body[1] = (uint8_t)below(r, 16);
		put32(body + 4, (uint32_t)any(r));
		put32(body + 8, chance(r, 50) ? my_qpn : 1 + below(r, 1 << 24));
		put32(body + 12, chance(r, 50) ? peer_qpn : 1 + below(r, 64));
		return 16;
	case QP_FENCED:
		put32(body, chance(r, 80) ? below(r, 100) : (uint32_t)any(r));
		return 4;
	case SEGMENT_OPEN:
		put32(body, (uint32_t)any(r));
		snprintf((char *)body + 4, 64, "%s", names[below(r, 4)]);
		return 68;
	case SEGMENT_INFO:
		put32(body, chance(r, 70) ? their_cookie : below(r, 20));
		put32(body + 4, chance(r, 80) ? 0 : (uint32_t)number(r));
		put32(body + 8, 1 + below(r, 3));
		put32(body + 12, (uint32_t)number(r));
		put64(body + 16, number(r));
		put64(body + 24, number(r));
		return 32;
	case SEGMENT_CLOSE:
		put32(body, small(r));
		return 4;
	case KEYS_GET:
		put32(body, small(r));
		if (chance(r, 50)) {
			begin = number(r);
			put64(body + 4, begin);
			put32(body + 12, below(r, 32));
			put32(body + 16, (uint32_t)number(r) & INT32_MAX);
		}
		put_to(r, body + 20, begin);
		return 28;
	case KEYS:
		return make_keys(r, body);
	case KEYS_CHANGED:
		put32(body, small(r));
		put64(body + 4, any(r));
		begin = chance(r, 50) ? number(r) : (uint64_t)below(r, 4) << 20;
		put64(body + 12, begin);
		put_to(r, body + 20, begin);
		return 28;
	case REVOKE:
	case REVOKE_ACK:
		put32(body, below(r, 10));
		put32(body + 4, small(r));
		put64(body + 8, below(r, 4));
		return 16;
	case REKEY:
	case WITHDRAWN:
		put32(body, below(r, 10));
		put32(body + 4, small(r));
		put64(body + 8, type == REKEY ? 1 + below(r, 3) : 0);
		return 16;
	case PROBE:
	case PROBE_ACK:
		put64(body, any(r));
		return 8;
	}
	return 0;
}

static inline bool send_type(struct random *r, struct link *l, uint8_t type)
{
	size_t length = make_body(r, l, type, l->out + 16);

	sent[type < TYPES ? type : 0]++;
	return send_message(l, type, length);
}

/* More than there may be, and a length to match. */
static inline size_t make_many(struct random *r, uint8_t type, uint8_t *body)
{
	uint32_t nr;

	noise(r, body, MESSAGE - 16);
	switch (type) {
	case DEVICES:
		nr = 33 + below(r, 137);
		put32(body, nr);
		for (uint32_t i = 0; i < nr; i++) {
			uint8_t *at = body + 4 + 24UL * i;

			at[0] = (uint8_t)(chance(r, 50) ? i : i % 32);
			at[1] = 3;
			at[2] = 6;
		}
		return 4 + 24 * nr;
	case RAIL_TOKENS:
		nr = 17 + below(r, 200);
		memset(body, 0, 4);
		body[2] = (uint8_t)nr;
		return 4 + 16 * nr;
	}
	return below(r, MESSAGE - 16);
}

/* A message by the rules with something changed in it. */
static inline bool send_changed(struct random *r, struct link *l)
{
	uint8_t type = (uint8_t)(1 + below(r, TYPES - 1)), *body = l->out + 16;
	size_t length = make_body(r, l, type, body);
	size_t total = 16 + length, told, at;
	uint64_t v = number(r);

	sent[type]++;
	switch (below(r, 6)) {
	case 0:		/* bytes of the body */
		for (uint32_t n = 1 + below(r, 4); n && length; n--)
			body[below(r, (uint32_t)length)] = (uint8_t)any(r);
		break;
	case 1:		/* a number in it */
		at = length > 8 ? below(r, (uint32_t)length - 7) & ~3U : 0;
		memcpy(body + at, &v, length - at < 8 ? length - at : 8);
		break;
	case 2:		/* cut off, or too long */
		total = 1 + below(r, chance(r, 50) ? (uint32_t)total : MESSAGE);
		break;
	case 3:		/* nothing but noise behind the header */
		total = 16 + below(r, MESSAGE - 16);
		noise(r, body, total - 16);
		break;
	case 4:
		if (chance(r, 70))
			type = chance(r, 70) ? DEVICES : RAIL_TOKENS;
		total = 16 + make_many(r, type, body);
		break;
	}
	told = total;
	if (chance(r, 15))
		told = (uint16_t)number(r);
	memset(l->out, 0, 16);
	put32(l->out, MAGIC);
	l->out[4] = 1;
	l->out[5] = type;
	l->out[6] = (uint8_t)told;
	l->out[7] = (uint8_t)(told >> 8);
	l->out[12] = (uint8_t)(chance(r, 70) ? l->give : any(r));
	l->give = 0;
	if (chance(r, 15))
		l->out[below(r, 16)] ^= (uint8_t)(1U << below(r, 8));
	return send_raw(l, total);
}

#endif /* HOSTILE_MESSAGES_H */
