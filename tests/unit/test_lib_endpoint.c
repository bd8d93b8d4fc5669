// SPDX-License-Identifier: MIT
/*
 * Endpoints and addresses of segments: what is accepted, what is refused and
 * with which error, and that what is written is read back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include <rmpool.h>

#define BOTH (RMPOOL_ENDPOINT_LOOPBACK | RMPOOL_ENDPOINT_LISTEN)

static void accepts(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port, family;
		unsigned int flags;
		const char *formatted;	/* NULL: as text */
	} good[] = {
		{ "v1:10.0.0.1:13579", "10.0.0.1", 13579, AF_INET, 0, NULL },
		/* without a version it counts as version 1 */
		{ "10.0.0.1:13579", "10.0.0.1", 13579, AF_INET, 0,
		  "v1:10.0.0.1:13579" },
		{ "v1:10.0.0.1:1", "10.0.0.1", 1, AF_INET, 0, NULL },
		{ "v1:223.255.255.255:65535", "223.255.255.255", 65535, AF_INET,
		  0, NULL },
		{ "v1:[fd00::7]:99", "fd00::7", 99, AF_INET6, 0, NULL },
		{ "[FD00:0:0:0:0:0:0:7]:99", "fd00::7", 99, AF_INET6, 0,
		  "v1:[fd00::7]:99" },
		{ "v1:[fe80::1%3]:99", "fe80::1%3", 99, AF_INET6, 0, NULL },
		{ "v1:[::ffff:10.0.0.1]:5", "::ffff:10.0.0.1", 5, AF_INET6, 0,
		  NULL },
		{ "v1:127.0.0.1:5", "127.0.0.1", 5, AF_INET,
		  RMPOOL_ENDPOINT_LOOPBACK, NULL },
		{ "v1:[::1]:5", "::1", 5, AF_INET6, RMPOOL_ENDPOINT_LOOPBACK,
		  NULL },
		{ "v1:0.0.0.0:5", "0.0.0.0", 5, AF_INET, RMPOOL_ENDPOINT_LISTEN,
		  NULL },
		{ "v1:[::]:5", "::", 5, AF_INET6, RMPOOL_ENDPOINT_LISTEN, NULL },
		{ "v1:host-7.example.org:5", "host-7.example.org", 5, AF_UNSPEC,
		  0, NULL },
		{ "vm1:5", "vm1", 5, AF_UNSPEC, 0, "v1:vm1:5" },
		/* a host whose name looks like a version */
		{ "v1:v2:5", "v2", 5, AF_UNSPEC, 0, NULL },
	};
	struct rmpool_endpoint e, again;
	char text[RMPOOL_ENDPOINT_MAX];
	const char *expect;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		print_message("%s\n", good[i].text);
		assert_int_equal(rmpool_endpoint_parse(good[i].text,
						       good[i].flags, &e), 0);
		assert_string_equal(e.host, good[i].host);
		assert_int_equal(e.port, good[i].port);
		assert_int_equal(e.family, good[i].family);

		expect = good[i].formatted ? good[i].formatted : good[i].text;
		assert_int_equal(rmpool_endpoint_format(&e, text, sizeof(text)),
				 strlen(expect));
		assert_string_equal(text, expect);
		assert_int_equal(rmpool_endpoint_parse(text, good[i].flags,
						       &again), 0);
		assert_memory_equal(&e, &again, sizeof(e));
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *says;
	} bad[] = {
		{ "", EINVAL, "no colon" },
		{ "v1:", EINVAL, "no colon" },
		{ ":", EINVAL, "host is empty" },
		{ ":13579", EINVAL, "host is empty" },
		{ "v1::13579", EINVAL, "host is empty" },
		{ "[]:13579", EINVAL, "host is empty" },
		{ "10.0.0.1", EINVAL, "no colon" },
		{ "v1:10.0.0.1", EINVAL, "no colon" },
		{ "v1:13579", EINVAL, "no colon" },
		{ "[fd00::7]", EINVAL, "no colon" },
		{ "[fd00::7]13579", EINVAL, "no colon" },
		{ "10.0.0.1:", EINVAL, "port" },
		{ "v1:10.0.0.1:", EINVAL, "port" },
		{ "10.0.0.1:0", EINVAL, "port" },
		{ "10.0.0.1:00", EINVAL, "port" },
		{ "10.0.0.1:080", EINVAL, "port" },
		{ "10.0.0.1:65536", EINVAL, "port" },
		{ "10.0.0.1:4294967297", EINVAL, "port" },
		{ "10.0.0.1:99999999999999999999999", EINVAL, "port" },
		{ "10.0.0.1:-1", EINVAL, "port" },
		{ "10.0.0.1:+1", EINVAL, "port" },
		{ "10.0.0.1:0x10", EINVAL, "port" },
		{ "10.0.0.1:http", EINVAL, "port" },
		{ "10.0.0.1:13579 ", EINVAL, "port" },
		{ "10.0.0.1: 13579", EINVAL, "port" },
		{ "10.0.0.1:13579\n", EINVAL, "port" },
		{ " 10.0.0.1:13579", EINVAL, "neither" },
		{ "10.0.0.1 :13579", EINVAL, "neither" },
		{ "v1: 10.0.0.1:13579", EINVAL, "neither" },
		{ "10.0.0.1:13579:1", EINVAL, "more than one colon" },
		{ "fd00::7:13579", EINVAL, "brackets" },
		{ "V1:10.0.0.1:13579", EINVAL, "more than one colon" },
		{ "[fd00::7:13579", EINVAL, "closing bracket" },
		{ "[10.0.0.1]:13579", EINVAL, "IPv6" },
		{ "[host]:13579", EINVAL, "IPv6" },
		{ "[fd00::7::1]:13579", EINVAL, "IPv6" },
		{ "[fd00::7%3]:13579", EINVAL, "scope" },
		{ "[fe80::1%eth0]:13579", EINVAL, "scope" },
		{ "[fe80::1%]:13579", EINVAL, "scope" },
		{ "[fe80::1%0]:13579", EINVAL, "scope" },
		{ "[fe80::1%2147483648]:13579", EINVAL, "scope" },
		{ "10.0.1:13579", EINVAL, "not an IPv4 address" },
		{ "10.0.0.256:13579", EINVAL, "not an IPv4 address" },
		{ "10.0.0.01:13579", EINVAL, "not an IPv4 address" },
		{ "1234:13579", EINVAL, "not an IPv4 address" },
		{ "-host:13579", EINVAL, "neither" },
		{ "ho/st:13579", EINVAL, "neither" },
		{ "v2:10.0.0.1:13579", EPROTONOSUPPORT, "version v2 is not" },
		{ "v0:10.0.0.1:13579", EPROTONOSUPPORT, "version v0 is not" },
		{ "v01:10.0.0.1:13579", EPROTONOSUPPORT, "version v01 is not" },
		{ "v11:10.0.0.1:13579", EPROTONOSUPPORT, "version v11 is not" },
		{ "v2:13579", EPROTONOSUPPORT, "version v2 is not" },
		{ "127.0.0.1:13579", EADDRNOTAVAIL, "loopback" },
		{ "127.255.0.9:13579", EADDRNOTAVAIL, "loopback" },
		{ "[::1]:13579", EADDRNOTAVAIL, "loopback" },
		{ "[::ffff:127.0.0.1]:13579", EADDRNOTAVAIL, "loopback" },
		{ "0.0.0.0:13579", EADDRNOTAVAIL, "any address" },
		{ "[::]:13579", EADDRNOTAVAIL, "any address" },
		{ "[::ffff:0.0.0.0]:13579", EADDRNOTAVAIL, "any address" },
		{ "224.0.0.1:13579", EADDRNOTAVAIL, "multicast" },
		{ "255.255.255.255:13579", EADDRNOTAVAIL, "broadcast" },
		{ "[ff02::1]:13579", EADDRNOTAVAIL, "multicast" },
	};
	struct rmpool_endpoint e, before;

	(void)state;
	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(&e, &before, sizeof(e));
		print_message("'%s'\n", bad[i].text);
		assert_int_equal(rmpool_endpoint_parse(bad[i].text, 0, &e),
				 -bad[i].err);
		assert_non_null(strstr(rmpool_error(), bad[i].says));
		assert_memory_equal(&e, &before, sizeof(e));
	}
}

static void refuses_long_hosts(void **state)
{
	struct rmpool_endpoint e;
	char text[400];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text + 253, ":1", 3);
	assert_int_equal(rmpool_endpoint_parse(text, 0, &e), 0);
	memset(text, 'a', sizeof(text));
	memcpy(text + 254, ":1", 3);
	assert_int_equal(rmpool_endpoint_parse(text, 0, &e), -EINVAL);
	assert_non_null(strstr(rmpool_error(), "too long"));
	memset(text, '1', sizeof(text));
	text[0] = '[';
	memcpy(text + 390, "]:1", 4);
	assert_int_equal(rmpool_endpoint_parse(text, 0, &e), -EINVAL);
}

static void format_checks_its_input(void **state)
{
	struct rmpool_endpoint e = { .host = "10.0.0.1", .port = 7 };
	char text[RMPOOL_ENDPOINT_MAX];

	(void)state;
	/* one byte too few for the NUL, then just enough */
	assert_int_equal(rmpool_endpoint_format(&e, text, 13), -ENOSPC);
	assert_int_equal(rmpool_endpoint_format(&e, text, 14), 13);
	assert_string_equal(text, "v1:10.0.0.1:7");
	assert_int_equal(rmpool_endpoint_format(&e, text, 0), -ENOSPC);

	e.port = 0;
	assert_int_equal(rmpool_endpoint_format(&e, text, sizeof(text)),
			 -EINVAL);
	e.port = 7;
	strcpy(e.host, "");
	assert_int_equal(rmpool_endpoint_format(&e, text, sizeof(text)),
			 -EINVAL);
	strcpy(e.host, "a b");
	assert_int_equal(rmpool_endpoint_format(&e, text, sizeof(text)),
			 -EINVAL);
	memset(e.host, 'a', sizeof(e.host));
	assert_int_equal(rmpool_endpoint_format(&e, text, sizeof(text)),
			 -EINVAL);
}

static void resolves(void **state)
{
	struct rmpool_endpoint e;

	(void)state;
	/* an address stays what it is */
	assert_int_equal(rmpool_endpoint_parse("10.0.0.1:7", 0, &e), 0);
	assert_int_equal(rmpool_endpoint_resolve(&e, 0), 0);
	assert_string_equal(e.host, "10.0.0.1");

	/* numbers that inet_aton() would take are loopback in disguise */
	assert_int_equal(rmpool_endpoint_parse("0x7f.1:7", 0, &e), 0);
	assert_int_equal(e.family, AF_UNSPEC);
	assert_int_equal(rmpool_endpoint_resolve(&e, 0), -EADDRNOTAVAIL);
	assert_non_null(strstr(rmpool_error(), "loopback"));
	assert_int_equal(rmpool_endpoint_resolve(&e, BOTH), 0);
	assert_string_equal(e.host, "127.0.0.1");
	assert_int_equal(e.family, AF_INET);
	assert_int_equal(e.port, 7);
}

static void reads_addresses(void **state)
{
	static const struct {
		const char *text, *node, *segment;
		uint64_t offset;
	} good[] = {
		{ "alpha/data", "alpha", "data", 0 },
		{ "alpha/data+0", "alpha", "data", 0 },
		{ "a.b-c@d:1/_x", "a.b-c@d:1", "_x", 0 },
		{ "alpha/data+4096", "alpha", "data", 4096 },
		{ "alpha/data+0x1fF", "alpha", "data", 0x1ff },
		{ "alpha/data+4K", "alpha", "data", 4096 },
		{ "alpha/data+0x10M", "alpha", "data", 16u << 20 },
		{ "alpha/data+3G", "alpha", "data", 3ull << 30 },
		{ "alpha/data+2T", "alpha", "data", 2ull << 40 },
		{ "alpha/data+18446744073709551615", "alpha", "data",
		  UINT64_MAX },
	};
	static const char *const bad[] = {
		"", "/", "alpha", "alpha/", "/data", "alpha/+5", "alpha/da ta",
		"alpha/data+", "alpha/data+x", "alpha/data+0x", "alpha/data+-1",
		"alpha/data++1", "alpha/data+1k", "alpha/data+1KK",
		"alpha/data+K", "alpha/data+18446744073709551616",
		"alpha/data+16777216T", "alpha/data+0x10000000000000000",
		"alpha/data/more", "al+pha/data", "alpha/data+1 ", " alpha/data",
		/* 64 characters: one too many */
		"0123456789012345678901234567890123456789012345678901234567890123/data",
		"alpha/0123456789012345678901234567890123456789012345678901234567890123",
	};
	struct rmpool_address a, before;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		print_message("%s\n", good[i].text);
		memset(&a, 0xff, sizeof(a));
		assert_int_equal(rmpool_address_parse(good[i].text, &a), 0);
		assert_string_equal(a.node, good[i].node);
		assert_string_equal(a.segment, good[i].segment);
		assert_int_equal(a.offset, good[i].offset);
	}
	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		print_message("'%s'\n", bad[i]);
		memcpy(&a, &before, sizeof(a));
		assert_int_equal(rmpool_address_parse(bad[i], &a), -EINVAL);
		assert_memory_equal(&a, &before, sizeof(a));
	}
	/* 63 characters are allowed on both sides */
	assert_int_equal(rmpool_address_parse(
		"012345678901234567890123456789012345678901234567890123456789012/"
		"012345678901234567890123456789012345678901234567890123456789012",
		&a), 0);
	assert_int_equal(strlen(a.node), 63);
	assert_int_equal(strlen(a.segment), 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_long_hosts),
		cmocka_unit_test(format_checks_its_input),
		cmocka_unit_test(resolves),
		cmocka_unit_test(reads_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
