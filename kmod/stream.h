/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fields of a message, moved one after the other between a buffer and variables:
 * the same calls write them and read them. Integers are little endian.
 *
 * Pure: no state but the caller's, no locks, any context. Errors add up in @bad,
 * to be looked at once. Also compiled in user space, see wire_user.h.
 */
#ifndef RMP_STREAM_H
#define RMP_STREAM_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include "wire_user.h"
#endif

/**
 * struct stream - a position in a buffer that is written or read
 * @pos: next byte; not written to unless @put
 * @end: end of the buffer
 * @put: to the wire, else from it
 * @bad: out of bytes, or a reserved byte is not zero
 */
struct stream {
	u8 *pos;
	u8 *end;
	bool put;
	bool bad;
};

static inline void move_bytes(struct stream *s, void *value, size_t size)
{
	if (s->bad || (size_t)(s->end - s->pos) < size) {
		s->bad = true;
		return;
	}
	if (s->put)
		memcpy(s->pos, value, size);
	else
		memcpy(value, s->pos, size);
	s->pos += size;
}

static inline void move_u8(struct stream *s, u8 *value)
{
	move_bytes(s, value, sizeof(*value));
}

static inline void move_u16(struct stream *s, u16 *value)
{
	__le16 le = cpu_to_le16(*value);

	move_bytes(s, &le, sizeof(le));
	*value = le16_to_cpu(le);
}

static inline void move_u32(struct stream *s, u32 *value)
{
	__le32 le = cpu_to_le32(*value);

	move_bytes(s, &le, sizeof(le));
	*value = le32_to_cpu(le);
}

static inline void move_u64(struct stream *s, u64 *value)
{
	__le64 le = cpu_to_le64(*value);

	move_bytes(s, &le, sizeof(le));
	*value = le64_to_cpu(le);
}

/* Reserved bytes. */
static inline void move_zero(struct stream *s, size_t size)
{
	u8 zero;

	while (size--) {
		zero = 0;
		move_u8(s, &zero);
		if (zero)
			s->bad = true;
	}
}

static inline bool all_zero(const void *mem, size_t len)
{
	const u8 *p = mem;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static inline struct stream stream_put(void *buf, size_t size)
{
	return (struct stream){ .pos = buf, .end = (u8 *)buf + size, .put = true };
}

static inline struct stream stream_get(const void *buf, size_t size)
{
	return (struct stream){ .pos = (u8 *)buf, .end = (u8 *)buf + size };
}

#endif /* RMP_STREAM_H */
