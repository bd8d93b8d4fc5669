/* SPDX-License-Identifier: MIT */
/*
 * Netlink datagrams made by hand, for tests of what reads them. Nothing of
 * libmnl and of the library is used, so that both sides cannot be wrong alike.
 */
#ifndef RMPOOL_TEST_DATAGRAM_H
#define RMPOOL_TEST_DATAGRAM_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <string.h>

#define FAMILY 0x21
#define SEQ 7
#define PORT 4711

/* A datagram that is put together by hand. */
struct datagram {
	char data[4096] __attribute__((aligned(8)));
	size_t length;
	size_t begin;		/* of the last message */
};

static inline struct nlmsghdr *message(struct datagram *d)
{
	return (struct nlmsghdr *)(void *)(d->data + d->begin);
}

static inline void add(struct datagram *d, const void *bytes, size_t length)
{
	assert_true(d->length + length + 4 <= sizeof(d->data));
	memcpy(d->data + d->length, bytes, length);
	d->length += length;
	while (d->length % 4)
		d->data[d->length++] = 0;
	message(d)->nlmsg_len = (uint32_t)(d->length - d->begin);
}

static inline void begin(struct datagram *d, uint16_t type, uint16_t flags)
{
	const struct nlmsghdr header = {
		.nlmsg_len = sizeof(header),
		.nlmsg_type = type,
		.nlmsg_flags = flags,
		.nlmsg_seq = SEQ,
		.nlmsg_pid = PORT,
	};

	d->begin = d->length;
	add(d, &header, sizeof(header));
}

static inline void begin_genl(struct datagram *d, uint8_t command)
{
	const struct genlmsghdr header = { .cmd = command, .version = 1 };

	begin(d, FAMILY, 0);
	add(d, &header, sizeof(header));
}

static inline void add_attr(struct datagram *d, uint16_t type, const void *bytes,
		     size_t length)
{
	const uint16_t head[2] = { (uint16_t)(4 + length), type };

	add(d, head, sizeof(head));
	add(d, bytes, length);
}

static inline void add_u8(struct datagram *d, uint16_t type, uint8_t value)
{
	add_attr(d, type, &value, sizeof(value));
}

static inline void add_u32(struct datagram *d, uint16_t type, uint32_t value)
{
	add_attr(d, type, &value, sizeof(value));
}

static inline void add_u64(struct datagram *d, uint16_t type, uint64_t value)
{
	add_attr(d, type, &value, sizeof(value));
}

static inline void add_text(struct datagram *d, uint16_t type, const char *text)
{
	add_attr(d, type, text, strlen(text) + 1);
}

static inline size_t begin_nest(struct datagram *d, uint16_t type)
{
	size_t at = d->length;

	add_attr(d, (uint16_t)(type | NLA_F_NESTED), "", 0);
	return at;
}

static inline void end_nest(struct datagram *d, size_t at)
{
	uint16_t length = (uint16_t)(d->length - at);

	memcpy(d->data + at, &length, sizeof(length));
}

#endif /* RMPOOL_TEST_DATAGRAM_H */
