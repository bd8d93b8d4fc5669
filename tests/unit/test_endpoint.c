// SOURCES: kmod/endpoint.c
// SPDX-License-Identifier: MIT
/*
 * Tests of kmod/endpoint.c: what is written parses back to the same host and
 * port, a text without version is v1, another version is refused by name, and
 * malformed texts are refused without a trace in the output.
 *
 * The random part prints its seed; RMPOOL_SEED=n repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "endpoint.h"

#define FUZZ_ROUNDS	300000

static u64 random_state;

static u32 below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (u32)((random_state >> 20) % n);
}

/* Parses from memory of exactly the right size; checks what always holds. */
static int parse(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_storage untouched;
	char *exact = strdup(text);
	const char *why = NULL;
	int ret;

	assert_non_null(exact);
	memset(addr, 0xa5, sizeof(*addr));
	untouched = *addr;
	ret = rmp_endpoint_parse(exact, addr, &why);
	if (ret) {
		assert_true(ret == -EINVAL || ret == -EPROTONOSUPPORT);
		assert_non_null(why);
		assert_memory_equal(addr, &untouched, sizeof(*addr));
	} else {
		assert_true(rmp_endpoint_port(addr) > 0);
	}
	free(exact);
	return ret;
}

static void assert_parses(const char *text, const char *as)
{
	struct sockaddr_storage addr, again;
	char buf[RMP_ENDPOINT_MAX];
	int len;

	if (parse(text, &addr))
		fail_msg("refused: %s", text);
	len = rmp_endpoint_format(buf, sizeof(buf), &addr);
	assert_int_equal(len, strlen(as));
	assert_string_equal(buf, as);
	assert_int_equal(parse(buf, &again), 0);
	assert_memory_equal(&addr, &again, sizeof(addr));
	assert_true(rmp_endpoint_equal(&addr, &again));
}

static void assert_refused(const char *text, int error, const char *word)
{
	struct sockaddr_storage addr;
	const char *why = "";
	int ret = parse(text, &addr);

	if (ret != error)
		fail_msg("%d instead of %d: %s", ret, error, text);
	rmp_endpoint_parse(text, &addr, &why);
	if (!strstr(why, word))
		fail_msg("no \"%s\" in \"%s\": %s", word, why, text);
}

static struct sockaddr_storage addr_of(const char *text)
{
	struct sockaddr_storage addr;

	if (parse(text, &addr))
		fail_msg("refused: %s", text);
	return addr;
}

/* T001: what is advertised parses back to the same host and port. */
static void test_round_trip(void **state)
{
	(void)state;
	assert_parses("v1:10.0.0.1:13579", "v1:10.0.0.1:13579");
	assert_parses("v1:0.0.0.0:1", "v1:0.0.0.0:1");
	assert_parses("v1:255.255.255.255:65535", "v1:255.255.255.255:65535");
	assert_parses("v1:[::]:13579", "v1:[::]:13579");
	assert_parses("v1:[::1]:13579", "v1:[::1]:13579");
	assert_parses("v1:[2001:DB8:0:0:0:0:0:A]:80", "v1:[2001:db8::a]:80");
	assert_parses("v1:[1:2:3:4:5:6:7:8]:80", "v1:[1:2:3:4:5:6:7:8]:80");
	assert_parses("v1:[1::]:80", "v1:[1::]:80");
	assert_parses("v1:[::ffff:10.0.0.1]:80", "v1:[::ffff:10.0.0.1]:80");
	assert_parses("v1:[64:ff9b::10.0.0.1]:80", "v1:[64:ff9b::a00:1]:80");
	assert_parses("v1:[fe80::1]:80", "v1:[fe80::1]:80");
	assert_parses("v1:[fe80::1%3]:80", "v1:[fe80::1%3]:80");
	assert_parses("v1:[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff%2147483647]:65535",
		      "v1:[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff%2147483647]:65535");
}

static void test_content(void **state)
{
	struct sockaddr_storage addr = addr_of("10.1.2.3:4660");
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	(void)state;
	assert_int_equal(addr.ss_family, AF_INET);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0x0a010203);
	assert_int_equal(ntohs(in->sin_port), 4660);
	assert_int_equal(rmp_endpoint_port(&addr), 4660);
	rmp_endpoint_set_port(&addr, 5);
	assert_int_equal(ntohs(in->sin_port), 5);

	addr = addr_of("v1:[fe80::0102%7]:4660");
	assert_int_equal(addr.ss_family, AF_INET6);
	assert_int_equal(in6->sin6_addr.s6_addr[0], 0xfe);
	assert_int_equal(in6->sin6_addr.s6_addr[14], 1);
	assert_int_equal(in6->sin6_addr.s6_addr[15], 2);
	assert_int_equal(in6->sin6_scope_id, 7);
	assert_int_equal(rmp_endpoint_port(&addr), 4660);
	rmp_endpoint_set_port(&addr, 6);
	assert_int_equal(rmp_endpoint_port(&addr), 6);
}

/* T002: a record without version counts as version 1. */
static void test_no_version(void **state)
{
	(void)state;
	assert_parses("10.0.0.1:13579", "v1:10.0.0.1:13579");
	assert_parses("[2001:db8::1]:13579", "v1:[2001:db8::1]:13579");
	assert_parses("[fe80::1%12]:1", "v1:[fe80::1%12]:1");
}

/* T003: an unknown version is refused, not misread. */
static void test_version(void **state)
{
	(void)state;
	assert_refused("v2:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	assert_refused("v0:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	assert_refused("v10:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	assert_refused("v11:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	assert_refused("v01:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	assert_refused("v2:", -EPROTONOSUPPORT, "version");
	assert_refused("v2:whatever comes", -EPROTONOSUPPORT, "version");
	assert_refused("v4294967297:10.0.0.1:1", -EPROTONOSUPPORT, "version");
	assert_refused("v:10.0.0.1:13579", -EINVAL, "version");
	assert_refused("v", -EINVAL, "version");
	assert_refused("v1", -EINVAL, "version");
	assert_refused("v1x:10.0.0.1:13579", -EINVAL, "version");
	assert_refused("v-1:10.0.0.1:13579", -EINVAL, "version");
	assert_refused("V1:10.0.0.1:13579", -EINVAL, "colon");
	assert_refused("v1:v1:10.0.0.1:13579", -EINVAL, "colon");
	assert_refused(" v1:10.0.0.1:13579", -EINVAL, "colon");
}

/* T006: malformed records. */
static void test_malformed(void **state)
{
	static const char * const bad_hosts[] = {
		"host", "localhost", "10.0.0", "10.0.0.1.2", "10.0.0.256",
		"10.0.0.-1", "10.0.0.01", "010.0.0.1", "10.0.0.0x1", "10..0.1",
		".10.0.0.1", "10.0.0.1.", " 10.0.0.1", "10.0.0.1 ", "0xa000001",
		"167772161", "10.0.0.1/24", "10.0.0.1\n", "1000.0.0.1", "*",
		"10.0.0.1%1", "10.0.0.1]",
	};
	static const char * const bad_v6[] = {
		":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1::",
		"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8",
		"12345::", "g::", "::1:", ":1::", "1:2:3:4:5:6:7:",
		"10.0.0.1", "::10.0.0", "::10.0.0.256", "::10.0.0.01",
		"1:2:3:4:5:6:7:10.0.0.1", "1:2:3:4:5:6::10.0.0.1",
		"::10.0.0.1:1", "::.1", "::1 ", " ::1", "::1\n", "0x1::", "-1::",
		"[::1", "::1/64", "fe80::1%", "fe80::1%eth0", "fe80::1%0",
		"fe80::1%-1", "fe80::1%01", "fe80::1%2147483648",
		"fe80::1%1%2", "fe80::1% 1", "%1", "::1%1", "2001:db8::1%1",
		"fec0::1%1", "::ffff:10.0.0.1%1",
		"0000000000000000000000000000000000000000000000000000000000::1",
	};
	char text[256];
	size_t i;

	(void)state;
	assert_refused("", -EINVAL, "colon");
	assert_refused("v1:", -EINVAL, "colon");
	assert_refused(":", -EINVAL, "empty");
	assert_refused("::", -EINVAL, "colon");
	assert_refused("10.0.0.1", -EINVAL, "colon");
	assert_refused("v1:10.0.0.1", -EINVAL, "colon");
	assert_refused(":13579", -EINVAL, "host is empty");
	assert_refused("v1::13579", -EINVAL, "host is empty");
	assert_refused("v1:[]:13579", -EINVAL, "host is empty");
	assert_refused("[]:13579", -EINVAL, "host is empty");
	assert_refused("v1:10.0.0.1:", -EINVAL, "port");
	assert_refused("v1:[::1]:", -EINVAL, "port");
	assert_refused("v1:[::1]", -EINVAL, "colon");
	assert_refused("v1:[::1]13579", -EINVAL, "colon");
	assert_refused("v1:[::1", -EINVAL, "bracket");
	assert_refused("v1:[::1:13579", -EINVAL, "bracket");
	assert_refused("v1:::1:13579", -EINVAL, "brackets");
	assert_refused("v1:2001:db8::1:13579", -EINVAL, "brackets");
	assert_refused("v1:[10.0.0.1]:13579", -EINVAL, "brackets");
	for (i = 0; i < sizeof(bad_hosts) / sizeof(bad_hosts[0]); i++) {
		snprintf(text, sizeof(text), "v1:%s:13579", bad_hosts[i]);
		assert_refused(text, -EINVAL, "host");
	}
	for (i = 0; i < sizeof(bad_v6) / sizeof(bad_v6[0]); i++) {
		snprintf(text, sizeof(text), "v1:[%s]:13579", bad_v6[i]);
		assert_refused(text, -EINVAL, "");
	}
}

static void test_port(void **state)
{
	static const char * const bad[] = {
		"0", "00", "01", "080", "65536", "99999", "100000", "065535",
		"4294967297", "18446744073709551617", "-1", "+1", " 1", "1 ",
		"0x50", "1e3", "http", "1:", "1/", "1\n", "1.0", "\t1", "1,2",
		"99999999999999999999999999999999999999999999999999999999999",
	};
	struct sockaddr_storage addr;
	char text[256];
	size_t i;
	u32 port;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "v1:10.0.0.1:%s", bad[i]);
		if (!strchr(bad[i], ':'))
			assert_refused(text, -EINVAL, "port");
		assert_int_equal(parse(text, &addr), -EINVAL);
		snprintf(text, sizeof(text), "v1:[::1]:%s", bad[i]);
		assert_refused(text, -EINVAL, "port");
	}
	for (port = 1; port <= 65535; port++) {
		snprintf(text, sizeof(text), "v1:10.0.0.1:%u", port);
		assert_int_equal(parse(text, &addr), 0);
		assert_int_equal(rmp_endpoint_port(&addr), port);
	}
}

static void test_format(void **state)
{
	struct sockaddr_storage addr = addr_of("v1:[fe80::1%3]:80");
	struct sockaddr_storage v4 = addr_of("10.0.0.1:80");
	struct sockaddr_storage none = {};
	const int len = (int)strlen("v1:[fe80::1%3]:80");
	char buf[RMP_ENDPOINT_MAX];
	int size;

	(void)state;
	for (size = 0; size < len + 2; size++) {
		char *exact = malloc((size_t)size + 1);

		assert_non_null(exact);
		exact[size] = '#';
		assert_int_equal(rmp_endpoint_format(exact, (size_t)size, &addr),
				 size > len ? len : -ENOSPC);
		assert_int_equal(exact[size], '#');
		free(exact);
	}
	assert_int_equal(rmp_endpoint_format_host(buf, sizeof(buf), &addr), 9);
	assert_string_equal(buf, "fe80::1%3");
	assert_int_equal(rmp_endpoint_format_host(buf, sizeof(buf), &v4), 8);
	assert_string_equal(buf, "10.0.0.1");
	assert_int_equal(rmp_endpoint_format_host(buf, 8, &v4), -ENOSPC);
	assert_int_equal(rmp_endpoint_format_host(buf, sizeof(buf), &none), -EINVAL);
	assert_int_equal(rmp_endpoint_format(buf, sizeof(buf), &none), -EINVAL);
	/* A port is not needed for writing: an address of a device has none. */
	rmp_endpoint_set_port(&v4, 0);
	assert_int_equal(rmp_endpoint_format(buf, sizeof(buf), &v4), 13);
	assert_string_equal(buf, "v1:10.0.0.1:0");
	assert_int_equal(rmp_endpoint_port(&none), 0);
	rmp_endpoint_set_port(&none, 1);
	assert_int_equal(rmp_endpoint_port(&none), 0);
}

static bool loopback(const char *text)
{
	struct sockaddr_storage addr = addr_of(text);

	return rmp_endpoint_is_loopback(&addr);
}

static bool group(const char *text)
{
	struct sockaddr_storage addr;
	const char *why;

	assert_int_equal(rmp_endpoint_parse(text, &addr, &why), 0);
	return rmp_endpoint_is_group(&addr);
}

static bool any(const char *text)
{
	struct sockaddr_storage addr = addr_of(text);

	return rmp_endpoint_is_any(&addr);
}

static void test_kinds(void **state)
{
	struct sockaddr_storage none = {};

	(void)state;
	assert_true(loopback("127.0.0.1:1"));
	assert_true(loopback("127.255.255.255:1"));
	assert_true(loopback("[::1]:1"));
	assert_true(loopback("[::ffff:127.0.0.1]:1"));
	assert_false(loopback("126.255.255.255:1"));
	assert_false(loopback("128.0.0.1:1"));
	assert_false(loopback("0.0.0.0:1"));
	assert_false(loopback("[::2]:1"));
	assert_false(loopback("[::7f00:1]:1"));
	assert_false(loopback("[::ffff:10.0.0.1]:1"));
	assert_false(loopback("[1::1]:1"));
	assert_false(rmp_endpoint_is_loopback(&none));

	assert_true(any("0.0.0.0:1"));
	assert_true(any("[::]:1"));
	assert_true(any("[::ffff:0.0.0.0]:1"));
	assert_false(any("0.0.0.1:1"));
	assert_false(any("[::1]:1"));
	assert_false(any("[8000::]:1"));
	assert_true(group("224.0.0.1:1"));
	assert_true(group("239.255.255.255:1"));
	assert_true(group("255.255.255.255:1"));
	assert_true(group("[ff02::1]:1"));
	assert_true(group("[::ffff:224.0.0.1]:1"));
	assert_false(group("223.255.255.255:1"));
	assert_false(group("240.0.0.1:1"));
	assert_false(group("[fe80::1]:1"));
	assert_false(rmp_endpoint_is_any(&none));
}

static bool same_host(const char *a, const char *b)
{
	struct sockaddr_storage x = addr_of(a);
	struct sockaddr_storage y = addr_of(b);
	bool same = rmp_endpoint_same_host(&x, &y);

	assert_int_equal(same, rmp_endpoint_same_host(&y, &x));
	assert_int_equal(rmp_endpoint_equal(&x, &y),
			 same && rmp_endpoint_port(&x) == rmp_endpoint_port(&y));
	return same;
}

static void test_same(void **state)
{
	struct sockaddr_storage none = {};

	(void)state;
	assert_true(same_host("10.0.0.1:1", "10.0.0.1:1"));
	assert_true(same_host("10.0.0.1:1", "v1:10.0.0.1:2"));
	assert_false(same_host("10.0.0.1:1", "10.0.0.2:1"));
	assert_true(same_host("[::ffff:10.0.0.1]:1", "10.0.0.1:1"));
	assert_true(same_host("[::ffff:a00:1]:1", "[::ffff:10.0.0.1]:2"));
	assert_false(same_host("[::10.0.0.1]:1", "10.0.0.1:1"));
	assert_true(same_host("[2001:db8::1]:1", "[2001:DB8:0::1]:1"));
	assert_false(same_host("[2001:db8::1]:1", "[2001:db8::2]:1"));
	assert_true(same_host("[fe80::1%1]:1", "[fe80::1%1]:1"));
	assert_false(same_host("[fe80::1%1]:1", "[fe80::1%2]:1"));
	assert_true(same_host("[fe80::1]:1", "[fe80::1%2]:1"));
	assert_false(rmp_endpoint_same_host(&none, &none));
	assert_false(rmp_endpoint_equal(&none, &none));
}

/* Any address that exists can be written and read back. */
static void test_all_addresses(void **state)
{
	struct sockaddr_storage addr, again;
	char buf[RMP_ENDPOINT_MAX];
	int i, n;

	(void)state;
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		memset(&addr, 0, sizeof(addr));
		if (below(3) == 0) {
			struct sockaddr_in *in = (struct sockaddr_in *)&addr;

			in->sin_family = AF_INET;
			in->sin_addr.s_addr = below(0xffffffff);
		} else {
			struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

			in6->sin6_family = AF_INET6;
			/* Runs of zero make the short forms. */
			for (n = 0; n < 16; n++)
				if (below(3))
					in6->sin6_addr.s6_addr[n] = (u8)below(256);
			if (below(4) == 0) {
				memset(&in6->sin6_addr, 0, 10);
				memset(in6->sin6_addr.s6_addr + 10, 0xff, 2);
			} else if (below(4) == 0) {
				in6->sin6_addr.s6_addr[0] = 0xfe;
				in6->sin6_addr.s6_addr[1] = 0x80;
				in6->sin6_scope_id = below(0x7fffffff) + 1;
			}
		}
		rmp_endpoint_set_port(&addr, (u16)(1 + below(65535)));
		assert_true(rmp_endpoint_format(buf, sizeof(buf), &addr) > 0);
		if (parse(buf, &again))
			fail_msg("refused: %s", buf);
		assert_memory_equal(&addr, &again, sizeof(addr));
	}
}

/* Nothing that is taken reads back as something else. */
static void test_random_texts(void **state)
{
	static const char alphabet[] = "0123456789abcdefv:.[]%:.:0 -x";
	static const char * const seeds[] = {
		"v1:10.0.0.1:13579", "10.20.30.40:1", "v1:[::1]:13579",
		"[2001:db8::1:2]:65535", "v1:[fe80::1%17]:80",
		"v1:[1:2:3:4:5:6:7:8]:9", "v1:[::ffff:10.0.0.1]:80",
		"v2:10.0.0.1:13579",
	};
	struct sockaddr_storage addr, again;
	char buf[RMP_ENDPOINT_MAX];
	u32 taken = 0;
	char text[64];
	size_t len;
	int i, n;

	(void)state;
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		snprintf(text, sizeof(text), "%s", seeds[below(8)]);
		len = strlen(text);
		for (n = (int)below(4); n; n--) {
			u32 at = below((u32)len + 1);
			char c = alphabet[below(sizeof(alphabet) - 1)];

			switch (below(3)) {
			case 0:
				if (at < len)
					text[at] = c;
				break;
			case 1:
				if (len < sizeof(text) - 1) {
					memmove(text + at + 1, text + at, len - at + 1);
					text[at] = c;
					len++;
				}
				break;
			case 2:
				if (at < len) {
					memmove(text + at, text + at + 1, len - at);
					len--;
				}
				break;
			}
		}
		if (parse(text, &addr))
			continue;
		taken++;
		assert_true(rmp_endpoint_format(buf, sizeof(buf), &addr) > 0);
		assert_int_equal(parse(buf, &again), 0);
		assert_memory_equal(&addr, &again, sizeof(addr));
	}
	print_message("random: %u of %u texts were taken\n", taken,
		      (u32)FUZZ_ROUNDS);
	assert_true(taken > FUZZ_ROUNDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_no_version),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_all_addresses),
		cmocka_unit_test(test_random_texts),
	};
	const char *given = getenv("RMPOOL_SEED");
	u64 seed = given ? strtoull(given, NULL, 0) : (u64)time(NULL);

	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	if (!random_state)
		random_state = 1;
	print_message("RMPOOL_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
