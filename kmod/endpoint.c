// SPDX-License-Identifier: GPL-2.0
/*
 * The text form of an endpoint, v1:<host>:<port>, and comparisons of addresses.
 *
 * The address literals themselves are left to the kernel's in4_pton() and
 * in6_pton(), in user space to inet_pton(). The kernel's take more than the
 * other does (leading zeros, a colon as the end, a "::" that stands for no
 * group), so strict_v4() and strict_v6() refuse those forms first, and both
 * builds agree. The scope of a link-local address is an interface number:
 * names belong to a network namespace, and nothing here knows of one.
 *
 * Pure: no state, no locks, no allocation, any context.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#endif
#include "endpoint.h"

/* Longest host text: an IPv6 address, '%', ten digits and the NUL. */
#define HOST_MAX	(INET6_ADDRSTRLEN + 11)

#ifdef __KERNEL__
static bool parse_v4(const char *text, void *dst)
{
	return in4_pton(text, -1, dst, -1, NULL);
}

static bool parse_v6(const char *text, void *dst)
{
	return in6_pton(text, -1, dst, -1, NULL);
}

static void format_v4(char *buf, size_t size, const struct in_addr *addr)
{
	snprintf(buf, size, "%pI4", addr);
}

static void format_v6(char *buf, size_t size, const struct in6_addr *addr)
{
	snprintf(buf, size, "%pI6c", addr);
}
#else
static bool parse_v4(const char *text, void *dst)
{
	return inet_pton(AF_INET, text, dst) == 1;
}

static bool parse_v6(const char *text, void *dst)
{
	return inet_pton(AF_INET6, text, dst) == 1;
}

static void format_v4(char *buf, size_t size, const struct in_addr *addr)
{
	inet_ntop(AF_INET, addr, buf, (socklen_t)size);
}

static void format_v6(char *buf, size_t size, const struct in6_addr *addr)
{
	inet_ntop(AF_INET6, addr, buf, (socklen_t)size);
}
#endif

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_xdigit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Digits only, no leading zero, at most @max: no sign, no blank, no octal. */
static bool parse_number(const char *text, u32 max, u32 *number)
{
	u64 n = 0;

	if (!is_digit(*text) || (*text == '0' && text[1]))
		return false;
	for (; *text; text++) {
		if (!is_digit(*text))
			return false;
		n = n * 10 + (u64)(*text - '0');
		if (n > max)
			return false;
	}
	*number = (u32)n;
	return true;
}

/* Four numbers without leading zeros; their range is left to the library. */
static bool strict_v4(const char *text)
{
	int numbers = 1;
	int digits = 0;

	for (; *text; text++) {
		if (*text == '.') {
			if (!digits)
				return false;
			numbers++;
			digits = 0;
			continue;
		}
		if (!is_digit(*text) || (digits && text[-digits] == '0'))
			return false;
		if (++digits > 3)
			return false;
	}
	return digits && numbers == 4;
}

/* Eight groups, or fewer and one "::"; the last two may be an IPv4 address. */
static bool strict_v6(const char *text)
{
	const char *p = text;
	bool gap = false;
	int groups = 0;

	if (*p == ':' && p[1] != ':')
		return false;
	while (*p) {
		const char *group = p;

		if (*p == ':') {
			/* At the start, or behind the colon of a group. */
			if (gap)
				return false;
			gap = true;
			p += p == text ? 2 : 1;
			continue;
		}
		while (is_xdigit(*p))
			p++;
		if (*p == '.') {
			if (!strict_v4(group))
				return false;
			groups += 2;
			break;
		}
		if (p == group || p - group > 4)
			return false;
		groups++;
		if (!*p)
			break;
		if (*p++ != ':' || !*p)
			return false;
	}
	return gap ? groups < 8 : groups == 8;
}

static bool link_local(const struct in6_addr *addr)
{
	return addr->s6_addr[0] == 0xfe && (addr->s6_addr[1] & 0xc0) == 0x80;
}

static const char *parse_host_v4(const char *host, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	in->sin_family = AF_INET;
	if (!strict_v4(host) || !parse_v4(host, &in->sin_addr))
		return "the host is not an IPv4 address, or an IPv6 address in brackets";
	return NULL;
}

static const char *parse_host_v6(char *host, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	char *scope = strchr(host, '%');
	u32 number = 0;

	if (scope) {
		*scope = '\0';
		if (!parse_number(scope + 1, 0x7fffffff, &number) || !number)
			return "the scope is not an interface number";
	}
	in6->sin6_family = AF_INET6;
	if (!strict_v6(host) || !parse_v6(host, &in6->sin6_addr))
		return "not an IPv6 address in the brackets";
	if (number && !link_local(&in6->sin6_addr))
		return "only a link-local address has a scope";
	in6->sin6_scope_id = number;
	return NULL;
}

/* Takes the version off; *@text is what stands behind it. */
static int parse_version(const char **text, const char **why)
{
	const char *p = *text;

	if (*p != 'v')
		return 0;
	while (is_digit(*++p))
		;
	if (*p != ':' || p == *text + 1) {
		*why = "the version is not v and a number";
		return -EINVAL;
	}
	if (p != *text + 2 || p[-1] != '1') {
		*why = "unknown version of an endpoint, only v1 is known";
		return -EPROTONOSUPPORT;
	}
	*text = p + 1;
	return 0;
}

int rmp_endpoint_parse(const char *text, struct sockaddr_storage *addr,
		       const char **why)
{
	struct sockaddr_storage tmp;
	char host[HOST_MAX];
	const char *end;
	size_t len;
	u32 port;
	int ret;

	ret = parse_version(&text, why);
	if (ret)
		return ret;
	memset(&tmp, 0, sizeof(tmp));

	*why = "no colon and port behind the host";
	if (*text == '[') {
		text++;
		end = strchr(text, ']');
		if (!end) {
			*why = "no closing bracket";
			return -EINVAL;
		}
		if (end[1] != ':')
			return -EINVAL;
	} else {
		end = strchr(text, ':');
		if (!end)
			return -EINVAL;
		if (strchr(end + 1, ':')) {
			*why = "more than one colon; an IPv6 address needs brackets";
			return -EINVAL;
		}
	}
	len = (size_t)(end - text);
	if (!len || len >= sizeof(host)) {
		*why = len ? "the host is too long" : "the host is empty";
		return -EINVAL;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	if (*end == ']') {
		*why = parse_host_v6(host, &tmp);
		end++;
	} else {
		*why = parse_host_v4(host, &tmp);
	}
	if (*why)
		return -EINVAL;

	if (!parse_number(end + 1, 65535, &port) || !port) {
		*why = "the port is not a number from 1 to 65535";
		return -EINVAL;
	}
	rmp_endpoint_set_port(&tmp, (u16)port);
	*addr = tmp;
	return 0;
}

int rmp_endpoint_format_host(char *buf, size_t size,
			     const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	char host[INET6_ADDRSTRLEN];
	int len;

	if (addr->ss_family == AF_INET) {
		format_v4(host, sizeof(host), &in->sin_addr);
		len = snprintf(buf, size, "%s", host);
	} else if (addr->ss_family == AF_INET6) {
		format_v6(host, sizeof(host), &in6->sin6_addr);
		if (in6->sin6_scope_id && link_local(&in6->sin6_addr))
			len = snprintf(buf, size, "%s%%%u", host,
				       in6->sin6_scope_id);
		else
			len = snprintf(buf, size, "%s", host);
	} else {
		return -EINVAL;
	}
	return len < 0 || (size_t)len >= size ? -ENOSPC : len;
}

int rmp_endpoint_format(char *buf, size_t size,
			const struct sockaddr_storage *addr)
{
	bool v6 = addr->ss_family == AF_INET6;
	char host[HOST_MAX];
	int len;

	len = rmp_endpoint_format_host(host, sizeof(host), addr);
	if (len < 0)
		return len;
	len = snprintf(buf, size, "v1:%s%s%s:%u", v6 ? "[" : "", host,
		       v6 ? "]" : "", rmp_endpoint_port(addr));
	return len < 0 || (size_t)len >= size ? -ENOSPC : len;
}

/* The four bytes of an IPv4 address, mapped into IPv6 or not; else NULL. */
static const u8 *v4_bytes(const struct sockaddr_storage *addr)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	const u8 *v6;

	if (addr->ss_family == AF_INET)
		return (const u8 *)&((const struct sockaddr_in *)addr)->sin_addr;
	if (addr->ss_family != AF_INET6)
		return NULL;
	v6 = ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr;
	return memcmp(v6, mapped, sizeof(mapped)) ? NULL : v6 + sizeof(mapped);
}

bool rmp_endpoint_is_loopback(const struct sockaddr_storage *addr)
{
	static const u8 loopback[16] = { [15] = 1 };
	const u8 *v4 = v4_bytes(addr);

	if (v4)
		return v4[0] == 127;
	return addr->ss_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr,
		       loopback, sizeof(loopback));
}

bool rmp_endpoint_is_any(const struct sockaddr_storage *addr)
{
	static const u8 any[16];
	const u8 *v4 = v4_bytes(addr);

	if (v4)
		return !memcmp(v4, any, 4);
	return addr->ss_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr,
		       any, sizeof(any));
}

bool rmp_endpoint_is_group(const struct sockaddr_storage *addr)
{
	static const u8 broadcast[4] = { 255, 255, 255, 255 };
	const u8 *v4 = v4_bytes(addr);

	if (v4)
		return (v4[0] & 0xf0) == 0xe0 || !memcmp(v4, broadcast, 4);
	return addr->ss_family == AF_INET6 &&
	       ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr[0] == 0xff;
}

bool rmp_endpoint_same_host(const struct sockaddr_storage *a,
			    const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const u8 *a4 = v4_bytes(a);
	const u8 *b4 = v4_bytes(b);

	if (a4 || b4)
		return a4 && b4 && !memcmp(a4, b4, 4);
	if (a->ss_family != AF_INET6 || b->ss_family != AF_INET6)
		return false;
	if (memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)))
		return false;
	/* A scope that is not known may be any. */
	return !link_local(&a6->sin6_addr) || !a6->sin6_scope_id ||
	       !b6->sin6_scope_id || a6->sin6_scope_id == b6->sin6_scope_id;
}

bool rmp_endpoint_equal(const struct sockaddr_storage *a,
			const struct sockaddr_storage *b)
{
	return rmp_endpoint_same_host(a, b) &&
	       rmp_endpoint_port(a) == rmp_endpoint_port(b);
}

u16 rmp_endpoint_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	if (addr->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	return 0;
}

void rmp_endpoint_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}
