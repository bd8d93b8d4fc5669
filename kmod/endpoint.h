/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The text form of an endpoint, v1:<host>:<port>. Host is an IPv4 literal or
 * an IPv6 literal in brackets (link-local ones with %number of the interface).
 * A text without a version prefix is read as v1. Pure; also built in user space.
 */
#ifndef RMP_ENDPOINT_H
#define RMP_ENDPOINT_H

#ifdef __KERNEL__
#include <linux/socket.h>
#include <linux/types.h>
#else
#include "wire_user.h"
#endif

#define RMP_ENDPOINT_MAX	80

/* Reads a text. 0, or -EINVAL (malformed), -EPROTONOSUPPORT (version). *@why is
 * set to a static text on error. Ports 1 to 65535. Nothing is written on error.
 */
int rmp_endpoint_parse(const char *text, struct sockaddr_storage *addr,
		       const char **why);
/* Writes v1:<host>:<port>; returns the length, -ENOSPC, or -EINVAL (family). */
int rmp_endpoint_format(char *buf, size_t size,
			const struct sockaddr_storage *addr);
/* Only the host part, without brackets: for addresses without a port. */
int rmp_endpoint_format_host(char *buf, size_t size,
			     const struct sockaddr_storage *addr);
bool rmp_endpoint_is_loopback(const struct sockaddr_storage *addr);
bool rmp_endpoint_is_any(const struct sockaddr_storage *addr);
/* Multicast, or the broadcast address. */
bool rmp_endpoint_is_group(const struct sockaddr_storage *addr);
/* Same host; same host and port. IPv4-mapped IPv6 equals IPv4. */
bool rmp_endpoint_same_host(const struct sockaddr_storage *a,
			    const struct sockaddr_storage *b);
bool rmp_endpoint_equal(const struct sockaddr_storage *a,
			const struct sockaddr_storage *b);
u16 rmp_endpoint_port(const struct sockaddr_storage *addr);
void rmp_endpoint_set_port(struct sockaddr_storage *addr, u16 port);

#endif /* RMP_ENDPOINT_H */
