// SPDX-License-Identifier: MIT
/*
 * Endpoints as text: [v1:]<host>:<port>.
 *
 * The module reads the same form and keeps the same rules, except that it takes
 * no names. A "v", digits and a colon at the start are always a version, so a
 * host of such a name needs the prefix: "v1:v2:13579". What is formatted here
 * always carries the prefix and is read once more before it is handed out.
 */
#include "internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* An IP address of either family; scope: interface of a link-local one. */
struct ip {
	int family;
	uint32_t scope;
	union {
		struct in_addr v4;
		struct in6_addr v6;
	};
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Digits only, no leading zero, from 1 to @max. */
static bool parse_number(const char *text, uint32_t max, uint32_t *number)
{
	uint64_t n = 0;

	if (*text == '0' || !*text)
		return false;
	for (; *text; text++) {
		if (!is_digit(*text))
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > max)
			return false;
	}
	*number = (uint32_t)n;
	return true;
}

static bool mapped(const struct ip *ip)
{
	return ip->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&ip->v6);
}

/* The first of the four bytes of an IPv4 address, mapped or not. */
static const uint8_t *v4_bytes(const struct ip *ip)
{
	if (mapped(ip))
		return &ip->v6.s6_addr[12];
	return ip->family == AF_INET ? (const uint8_t *)&ip->v4 : NULL;
}

/* Why an address may not be used here, or NULL. */
static const char *unwanted(const struct ip *ip, unsigned int flags)
{
	static const uint8_t any[4], broadcast[4] = { 255, 255, 255, 255 };
	const uint8_t *v4 = v4_bytes(ip);

	if (!(flags & RMPOOL_ENDPOINT_LOOPBACK) &&
	    (v4 ? v4[0] == 127 : IN6_IS_ADDR_LOOPBACK(&ip->v6)))
		return "it is a loopback address, which other nodes cannot reach; if it is meant, allow it (--allow-loopback of the tool)";
	if (!(flags & RMPOOL_ENDPOINT_LISTEN) &&
	    (v4 ? !memcmp(v4, any, sizeof(any)) :
		  IN6_IS_ADDR_UNSPECIFIED(&ip->v6)))
		return "it stands for any address, which is good to listen at only";
	if (v4 ? (v4[0] & 0xf0) == 0xe0 || !memcmp(v4, broadcast, sizeof(broadcast)) :
		 IN6_IS_ADDR_MULTICAST(&ip->v6))
		return "it is a multicast or broadcast address, not one host's";
	return NULL;
}

static void write_host(const struct ip *ip, char host[RMPOOL_HOST_MAX])
{
	size_t n;

	inet_ntop(ip->family, &ip->v6, host, RMPOOL_HOST_MAX);
	n = strlen(host);
	if (ip->scope)
		snprintf(host + n, RMPOOL_HOST_MAX - n, "%%%u", ip->scope);
}

static const char *parse_v6(char *host, struct ip *ip)
{
	char *scope = strchr(host, '%');

	ip->family = AF_INET6;
	if (scope) {
		*scope = '\0';
		if (!parse_number(scope + 1, INT32_MAX, &ip->scope))
			return "the scope is not an interface number";
	}
	if (inet_pton(AF_INET6, host, &ip->v6) != 1)
		return "there is no IPv6 address in the brackets";
	if (ip->scope && !IN6_IS_ADDR_LINKLOCAL(&ip->v6))
		return "only a link-local address has a scope";
	return NULL;
}

/* An IPv4 address, or a name, for which the family stays AF_UNSPEC. */
static const char *parse_v4_or_name(const char *host, struct ip *ip)
{
	bool letter = false;

	if (inet_pton(AF_INET, host, &ip->v4) == 1) {
		ip->family = AF_INET;
		return NULL;
	}
	if (*host == '-' || *host == '.')
		return "the host is neither an address nor a name";
	for (const char *p = host; *p; p++) {
		if (is_letter(*p) || *p == '-' || *p == '_')
			letter = true;
		else if (!is_digit(*p) && *p != '.')
			return "the host is neither an address nor a name";
	}
	return letter ? NULL : "the host is not an IPv4 address";
}

static int fail(int err, const char *text, const char *why)
{
	return rmpl_fail(err, NULL, why, "endpoint '%.100s'", text);
}

/* Takes off the version; NULL after an error, with *@ret set. */
static const char *skip_version(const char *text, int *ret)
{
	const char *p = text;
	char why[80];

	if (*p != 'v' || !is_digit(p[1]))
		return text;
	while (is_digit(*++p))
		;
	if (*p != ':')
		return text;
	if (p - text == 2 && text[1] == '1')
		return p + 1;
	snprintf(why, sizeof(why), "version %.*s is not known, only v1 is",
		 (int)(p - text < 20 ? p - text : 20), text);
	*ret = fail(EPROTONOSUPPORT, text, why);
	return NULL;
}

int rmpool_endpoint_parse(const char *text, unsigned int flags,
			  struct rmpool_endpoint *endpoint)
{
	struct rmpool_endpoint out = { .port = 0 };
	struct ip ip = { .family = AF_UNSPEC };
	const char *host, *end, *why;
	bool brackets;
	uint32_t port;
	size_t length;
	int ret = 0;

	host = skip_version(text, &ret);
	if (!host)
		return ret;

	brackets = *host == '[';
	if (brackets) {
		end = strchr(++host, ']');
		if (!end)
			return fail(EINVAL, text, "there is no closing bracket");
		if (end[1] != ':')
			return fail(EINVAL, text,
				    "there is no colon and port after the host");
	} else {
		end = strchr(host, ':');
		if (!end)
			return fail(EINVAL, text,
				    "there is no colon and port after the host");
		if (strchr(end + 1, ':'))
			return fail(EINVAL, text,
				    "it has more than one colon; an IPv6 address needs brackets");
	}
	length = (size_t)(end - host);
	if (!length)
		return fail(EINVAL, text, "the host is empty");
	if (length > 253)
		return fail(EINVAL, text, "the host is too long");
	memcpy(out.host, host, length);

	why = brackets ? parse_v6(out.host, &ip) :
			 parse_v4_or_name(out.host, &ip);
	if (why)
		return fail(EINVAL, text, why);
	if (!parse_number(end + (brackets ? 2 : 1), UINT16_MAX, &port))
		return fail(EINVAL, text,
			    "the port is not a number from 1 to 65535");
	if (ip.family != AF_UNSPEC) {
		why = unwanted(&ip, flags);
		if (why)
			return fail(EADDRNOTAVAIL, text, why);
		memset(out.host, 0, sizeof(out.host));
		write_host(&ip, out.host);
	}
	out.port = (uint16_t)port;
	out.family = (uint16_t)ip.family;
	*endpoint = out;
	return 0;
}

int rmpool_endpoint_format(const struct rmpool_endpoint *endpoint, char *text,
			   size_t size)
{
	struct rmpool_endpoint again;
	char full[RMPOOL_ENDPOINT_MAX];
	const char *format;
	int n, ret;

	if (!memchr(endpoint->host, '\0', sizeof(endpoint->host)))
		return rmpl_fail(EINVAL, NULL, "the host has no end",
				 "cannot write an endpoint");
	format = strchr(endpoint->host, ':') ? "v1:[%s]:%u" : "v1:%s:%u";
	n = snprintf(full, sizeof(full), format, endpoint->host,
		     (unsigned int)endpoint->port);
	if (n < 0 || (size_t)n >= sizeof(full))
		return rmpl_fail(EINVAL, NULL, "the host is too long",
				 "cannot write an endpoint");
	ret = rmpool_endpoint_parse(full, RMPOOL_ENDPOINT_LOOPBACK |
				    RMPOOL_ENDPOINT_LISTEN, &again);
	if (ret)
		return ret;
	if ((size_t)n >= size)
		return rmpl_fail(ENOSPC, NULL, "there is too little room",
				 "cannot write endpoint '%.100s'", full);
	memcpy(text, full, (size_t)n + 1);
	return n;
}

static bool ip_from_sockaddr(const struct sockaddr *addr, struct ip *ip)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memset(ip, 0, sizeof(*ip));
	ip->family = addr->sa_family;
	if (addr->sa_family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		ip->v4 = in.sin_addr;
		return true;
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(&in6, addr, sizeof(in6));
	ip->v6 = in6.sin6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
		ip->scope = in6.sin6_scope_id;
	return true;
}

static int fail_lookup(int code, const char *host)
{
	int err;

	switch (code) {
	case EAI_SYSTEM:
		return rmpl_fail(errno, NULL, NULL, "host '%.100s'", host);
	case EAI_MEMORY:
		err = ENOMEM;
		break;
	case EAI_AGAIN:
		err = EAGAIN;
		break;
	case EAI_NONAME:
		err = ENOENT;
		break;
	default:
		err = EIO;
		break;
	}
	return rmpl_fail(err, NULL, gai_strerror(code), "host '%.100s'", host);
}

int rmpool_endpoint_resolve(struct rmpool_endpoint *endpoint,
			    unsigned int flags)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *entry;
	const char *why = "the name has no IP address";
	int saved = errno;
	struct ip ip;
	int code, ret;

	if (endpoint->family != AF_UNSPEC)
		return 0;
	code = getaddrinfo(endpoint->host, NULL, &hints, &list);
	if (code) {
		ret = fail_lookup(code, endpoint->host);
		errno = saved;
		return ret;
	}
	errno = saved;

	/* Many systems give their own name a loopback address as well. */
	for (entry = list; entry; entry = entry->ai_next) {
		if (!ip_from_sockaddr(entry->ai_addr, &ip))
			continue;
		why = unwanted(&ip, flags);
		if (!why)
			break;
	}
	freeaddrinfo(list);
	if (!entry)
		return rmpl_fail(EADDRNOTAVAIL, NULL, why, "host '%.100s'",
				 endpoint->host);
	memset(endpoint->host, 0, sizeof(endpoint->host));
	write_host(&ip, endpoint->host);
	endpoint->family = (uint16_t)ip.family;
	return 0;
}
