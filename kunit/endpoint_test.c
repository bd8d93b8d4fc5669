// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/endpoint.c: what is written parses back to the same host and
 * port, a text without version is v1, another version is refused by name, and
 * malformed texts are refused without a trace in the output. In the kernel it
 * runs on the kernel's parsers of addresses, on the host on those of libc.
 */
#include "suite.h"
#include "endpoint.c"

#define RANDOM_ROUNDS	many(5000, 300000)

/* Parses from memory of exactly the right size; checks what always holds. */
static int parse(struct kunit *test, const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_storage untouched;
	char *exact = kstrdup(text, GFP_KERNEL);
	const char *why = NULL;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, exact);
	memset(addr, 0xa5, sizeof(*addr));
	untouched = *addr;
	ret = rmp_endpoint_parse(exact, addr, &why);
	if (ret) {
		KUNIT_ASSERT_TRUE(test, ret == -EINVAL || ret == -EPROTONOSUPPORT);
		KUNIT_ASSERT_NOT_NULL(test, why);
		ASSERT_SAME(test, addr, &untouched, sizeof(*addr));
	} else {
		KUNIT_ASSERT_TRUE(test, rmp_endpoint_port(addr) > 0);
	}
	kfree(exact);
	return ret;
}

static void check_parses(struct kunit *test, const char *text, const char *as)
{
	struct sockaddr_storage addr, again;
	char buf[RMP_ENDPOINT_MAX];
	int len;

	if (parse(test, text, &addr)) {
		KUNIT_FAIL(test, "refused: %s", text);
		return;
	}
	len = rmp_endpoint_format(buf, sizeof(buf), &addr);
	KUNIT_ASSERT_EQ(test, len, strlen(as));
	KUNIT_ASSERT_STREQ(test, buf, as);
	KUNIT_ASSERT_EQ(test, parse(test, buf, &again), 0);
	ASSERT_SAME(test, &addr, &again, sizeof(addr));
	KUNIT_ASSERT_TRUE(test, rmp_endpoint_equal(&addr, &again));
}

static void check_refused(struct kunit *test, const char *text, int error, const char *word)
{
	struct sockaddr_storage addr;
	const char *why = "";
	int ret = parse(test, text, &addr);

	if (ret != error)
		KUNIT_FAIL(test, "%d instead of %d: %s", ret, error, text);
	rmp_endpoint_parse(text, &addr, &why);
	if (!strstr(why, word))
		KUNIT_FAIL(test, "no \"%s\" in \"%s\": %s", word, why, text);
}

static struct sockaddr_storage addr_of(struct kunit *test, const char *text)
{
	struct sockaddr_storage addr;

	if (parse(test, text, &addr)) {
		KUNIT_FAIL(test, "refused: %s", text);
		memset(&addr, 0, sizeof(addr));
	}
	return addr;
}

/* T001: what is advertised parses back to the same host and port. */
static void test_round_trip(struct kunit *test)
{
	check_parses(test, "v1:10.0.0.1:13579", "v1:10.0.0.1:13579");
	check_parses(test, "v1:0.0.0.0:1", "v1:0.0.0.0:1");
	check_parses(test, "v1:255.255.255.255:65535", "v1:255.255.255.255:65535");
	check_parses(test, "v1:[::]:13579", "v1:[::]:13579");
	check_parses(test, "v1:[::1]:13579", "v1:[::1]:13579");
	check_parses(test, "v1:[2001:DB8:0:0:0:0:0:A]:80", "v1:[2001:db8::a]:80");
	check_parses(test, "v1:[1:2:3:4:5:6:7:8]:80", "v1:[1:2:3:4:5:6:7:8]:80");
	check_parses(test, "v1:[1::]:80", "v1:[1::]:80");
	check_parses(test, "v1:[::ffff:10.0.0.1]:80", "v1:[::ffff:10.0.0.1]:80");
	check_parses(test, "v1:[64:ff9b::10.0.0.1]:80", "v1:[64:ff9b::a00:1]:80");
	check_parses(test, "v1:[fe80::1]:80", "v1:[fe80::1]:80");
	check_parses(test, "v1:[fe80::1%3]:80", "v1:[fe80::1%3]:80");
	check_parses(test, "v1:[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff%2147483647]:65535",
		     "v1:[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff%2147483647]:65535");
}

static void test_content(struct kunit *test)
{
	struct sockaddr_storage addr = addr_of(test, "10.1.2.3:4660");
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	KUNIT_ASSERT_EQ(test, addr.ss_family, AF_INET);
	KUNIT_ASSERT_EQ(test, ntohl(in->sin_addr.s_addr), 0x0a010203);
	KUNIT_ASSERT_EQ(test, ntohs(in->sin_port), 4660);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&addr), 4660);
	rmp_endpoint_set_port(&addr, 5);
	KUNIT_ASSERT_EQ(test, ntohs(in->sin_port), 5);

	addr = addr_of(test, "v1:[fe80::0102%7]:4660");
	KUNIT_ASSERT_EQ(test, addr.ss_family, AF_INET6);
	KUNIT_ASSERT_EQ(test, in6->sin6_addr.s6_addr[0], 0xfe);
	KUNIT_ASSERT_EQ(test, in6->sin6_addr.s6_addr[14], 1);
	KUNIT_ASSERT_EQ(test, in6->sin6_addr.s6_addr[15], 2);
	KUNIT_ASSERT_EQ(test, in6->sin6_scope_id, 7);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&addr), 4660);
	rmp_endpoint_set_port(&addr, 6);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&addr), 6);
}

/* T002: a record without version counts as version 1. */
static void test_no_version(struct kunit *test)
{
	check_parses(test, "10.0.0.1:13579", "v1:10.0.0.1:13579");
	check_parses(test, "[2001:db8::1]:13579", "v1:[2001:db8::1]:13579");
	check_parses(test, "[fe80::1%12]:1", "v1:[fe80::1%12]:1");
}

/* T003: an unknown version is refused, not misread. */
static void test_version(struct kunit *test)
{
	check_refused(test, "v2:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	check_refused(test, "v0:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	check_refused(test, "v10:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	check_refused(test, "v11:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	check_refused(test, "v01:10.0.0.1:13579", -EPROTONOSUPPORT, "version");
	check_refused(test, "v2:", -EPROTONOSUPPORT, "version");
	check_refused(test, "v2:whatever comes", -EPROTONOSUPPORT, "version");
	check_refused(test, "v4294967297:10.0.0.1:1", -EPROTONOSUPPORT, "version");
	check_refused(test, "v:10.0.0.1:13579", -EINVAL, "version");
	check_refused(test, "v", -EINVAL, "version");
	check_refused(test, "v1", -EINVAL, "version");
	check_refused(test, "v1x:10.0.0.1:13579", -EINVAL, "version");
	check_refused(test, "v-1:10.0.0.1:13579", -EINVAL, "version");
	check_refused(test, "V1:10.0.0.1:13579", -EINVAL, "colon");
	check_refused(test, "v1:v1:10.0.0.1:13579", -EINVAL, "colon");
	check_refused(test, " v1:10.0.0.1:13579", -EINVAL, "colon");
}

/* T006: malformed records. */
static void test_malformed(struct kunit *test)
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

	check_refused(test, "", -EINVAL, "colon");
	check_refused(test, "v1:", -EINVAL, "colon");
	check_refused(test, ":", -EINVAL, "empty");
	check_refused(test, "::", -EINVAL, "colon");
	check_refused(test, "10.0.0.1", -EINVAL, "colon");
	check_refused(test, "v1:10.0.0.1", -EINVAL, "colon");
	check_refused(test, ":13579", -EINVAL, "host is empty");
	check_refused(test, "v1::13579", -EINVAL, "host is empty");
	check_refused(test, "v1:[]:13579", -EINVAL, "host is empty");
	check_refused(test, "[]:13579", -EINVAL, "host is empty");
	check_refused(test, "v1:10.0.0.1:", -EINVAL, "port");
	check_refused(test, "v1:[::1]:", -EINVAL, "port");
	check_refused(test, "v1:[::1]", -EINVAL, "colon");
	check_refused(test, "v1:[::1]13579", -EINVAL, "colon");
	check_refused(test, "v1:[::1", -EINVAL, "bracket");
	check_refused(test, "v1:[::1:13579", -EINVAL, "bracket");
	check_refused(test, "v1:::1:13579", -EINVAL, "brackets");
	check_refused(test, "v1:2001:db8::1:13579", -EINVAL, "brackets");
	check_refused(test, "v1:[10.0.0.1]:13579", -EINVAL, "brackets");
	for (i = 0; i < ARRAY_SIZE(bad_hosts); i++) {
		snprintf(text, sizeof(text), "v1:%s:13579", bad_hosts[i]);
		check_refused(test, text, -EINVAL, "host");
	}
	for (i = 0; i < ARRAY_SIZE(bad_v6); i++) {
		snprintf(text, sizeof(text), "v1:[%s]:13579", bad_v6[i]);
		check_refused(test, text, -EINVAL, "");
	}
}

static void test_port(struct kunit *test)
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

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "v1:10.0.0.1:%s", bad[i]);
		if (!strchr(bad[i], ':'))
			check_refused(test, text, -EINVAL, "port");
		KUNIT_ASSERT_EQ(test, parse(test, text, &addr), -EINVAL);
		snprintf(text, sizeof(text), "v1:[::1]:%s", bad[i]);
		check_refused(test, text, -EINVAL, "port");
	}
	for (port = 1; port <= 65535; port++) {
		snprintf(text, sizeof(text), "v1:10.0.0.1:%u", port);
		KUNIT_ASSERT_EQ(test, parse(test, text, &addr), 0);
		KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&addr), port);
	}
}

static void test_format(struct kunit *test)
{
	struct sockaddr_storage addr = addr_of(test, "v1:[fe80::1%3]:80");
	struct sockaddr_storage v4 = addr_of(test, "10.0.0.1:80");
	struct sockaddr_storage none = {};
	const int len = (int)strlen("v1:[fe80::1%3]:80");
	char buf[RMP_ENDPOINT_MAX];
	int size;

	for (size = 0; size < len + 2; size++) {
		char *exact = kmalloc(size + 1, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, exact);
		exact[size] = '#';
		KUNIT_ASSERT_EQ(test, rmp_endpoint_format(exact, (size_t)size, &addr),
				size > len ? len : -ENOSPC);
		KUNIT_ASSERT_EQ(test, exact[size], '#');
		kfree(exact);
	}
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format_host(buf, sizeof(buf), &addr), 9);
	KUNIT_ASSERT_STREQ(test, buf, "fe80::1%3");
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format_host(buf, sizeof(buf), &v4), 8);
	KUNIT_ASSERT_STREQ(test, buf, "10.0.0.1");
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format_host(buf, 8, &v4), -ENOSPC);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format_host(buf, sizeof(buf), &none), -EINVAL);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format(buf, sizeof(buf), &none), -EINVAL);
	/* A port is not needed for writing: an address of a device has none. */
	rmp_endpoint_set_port(&v4, 0);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_format(buf, sizeof(buf), &v4), 13);
	KUNIT_ASSERT_STREQ(test, buf, "v1:10.0.0.1:0");
	KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&none), 0);
	rmp_endpoint_set_port(&none, 1);
	KUNIT_ASSERT_EQ(test, rmp_endpoint_port(&none), 0);
}

static bool loopback(struct kunit *test, const char *text)
{
	struct sockaddr_storage addr = addr_of(test, text);

	return rmp_endpoint_is_loopback(&addr);
}

static bool group(struct kunit *test, const char *text)
{
	struct sockaddr_storage addr = addr_of(test, text);

	return rmp_endpoint_is_group(&addr);
}

static bool any(struct kunit *test, const char *text)
{
	struct sockaddr_storage addr = addr_of(test, text);

	return rmp_endpoint_is_any(&addr);
}

static void test_kinds(struct kunit *test)
{
	struct sockaddr_storage none = {};

	KUNIT_ASSERT_TRUE(test, loopback(test, "127.0.0.1:1"));
	KUNIT_ASSERT_TRUE(test, loopback(test, "127.255.255.255:1"));
	KUNIT_ASSERT_TRUE(test, loopback(test, "[::1]:1"));
	KUNIT_ASSERT_TRUE(test, loopback(test, "[::ffff:127.0.0.1]:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "126.255.255.255:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "128.0.0.1:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "0.0.0.0:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "[::2]:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "[::7f00:1]:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "[::ffff:10.0.0.1]:1"));
	KUNIT_ASSERT_FALSE(test, loopback(test, "[1::1]:1"));
	KUNIT_ASSERT_FALSE(test, rmp_endpoint_is_loopback(&none));

	KUNIT_ASSERT_TRUE(test, any(test, "0.0.0.0:1"));
	KUNIT_ASSERT_TRUE(test, any(test, "[::]:1"));
	KUNIT_ASSERT_TRUE(test, any(test, "[::ffff:0.0.0.0]:1"));
	KUNIT_ASSERT_FALSE(test, any(test, "0.0.0.1:1"));
	KUNIT_ASSERT_FALSE(test, any(test, "[::1]:1"));
	KUNIT_ASSERT_FALSE(test, any(test, "[8000::]:1"));
	KUNIT_ASSERT_TRUE(test, group(test, "224.0.0.1:1"));
	KUNIT_ASSERT_TRUE(test, group(test, "239.255.255.255:1"));
	KUNIT_ASSERT_TRUE(test, group(test, "255.255.255.255:1"));
	KUNIT_ASSERT_TRUE(test, group(test, "[ff02::1]:1"));
	KUNIT_ASSERT_TRUE(test, group(test, "[::ffff:224.0.0.1]:1"));
	KUNIT_ASSERT_FALSE(test, group(test, "223.255.255.255:1"));
	KUNIT_ASSERT_FALSE(test, group(test, "240.0.0.1:1"));
	KUNIT_ASSERT_FALSE(test, group(test, "[fe80::1]:1"));
	KUNIT_ASSERT_FALSE(test, rmp_endpoint_is_group(&none));
	KUNIT_ASSERT_FALSE(test, rmp_endpoint_is_any(&none));
}

static bool same_host(struct kunit *test, const char *a, const char *b)
{
	struct sockaddr_storage x = addr_of(test, a);
	struct sockaddr_storage y = addr_of(test, b);
	bool same = rmp_endpoint_same_host(&x, &y);

	KUNIT_ASSERT_EQ(test, same, rmp_endpoint_same_host(&y, &x));
	KUNIT_ASSERT_EQ(test, rmp_endpoint_equal(&x, &y),
			same && rmp_endpoint_port(&x) == rmp_endpoint_port(&y));
	return same;
}

static void test_same(struct kunit *test)
{
	struct sockaddr_storage none = {};

	KUNIT_ASSERT_TRUE(test, same_host(test, "10.0.0.1:1", "10.0.0.1:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "10.0.0.1:1", "v1:10.0.0.1:2"));
	KUNIT_ASSERT_FALSE(test, same_host(test, "10.0.0.1:1", "10.0.0.2:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "[::ffff:10.0.0.1]:1", "10.0.0.1:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "[::ffff:a00:1]:1", "[::ffff:10.0.0.1]:2"));
	KUNIT_ASSERT_FALSE(test, same_host(test, "[::10.0.0.1]:1", "10.0.0.1:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "[2001:db8::1]:1", "[2001:DB8:0::1]:1"));
	KUNIT_ASSERT_FALSE(test, same_host(test, "[2001:db8::1]:1", "[2001:db8::2]:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "[fe80::1%1]:1", "[fe80::1%1]:1"));
	KUNIT_ASSERT_FALSE(test, same_host(test, "[fe80::1%1]:1", "[fe80::1%2]:1"));
	KUNIT_ASSERT_TRUE(test, same_host(test, "[fe80::1]:1", "[fe80::1%2]:1"));
	KUNIT_ASSERT_FALSE(test, rmp_endpoint_same_host(&none, &none));
	KUNIT_ASSERT_FALSE(test, rmp_endpoint_equal(&none, &none));
}

/* Any address that exists can be written and read back. */
static void test_all_addresses(struct kunit *test)
{
	struct sockaddr_storage addr, again;
	char buf[RMP_ENDPOINT_MAX];
	int i, n;

	for (i = 0; i < RANDOM_ROUNDS; i++) {
		memset(&addr, 0, sizeof(addr));
		if (below(3) == 0) {
			struct sockaddr_in *in = (struct sockaddr_in *)&addr;

			in->sin_family = AF_INET;
			random_bytes(&in->sin_addr, sizeof(in->sin_addr));
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
		KUNIT_ASSERT_TRUE(test, rmp_endpoint_format(buf, sizeof(buf), &addr) > 0);
		KUNIT_ASSERT_EQ(test, parse(test, buf, &again), 0);
		ASSERT_SAME(test, &addr, &again, sizeof(addr));
	}
}

/* Nothing that is taken reads back as something else. */
static void test_random_texts(struct kunit *test)
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

	for (i = 0; i < RANDOM_ROUNDS; i++) {
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
		if (parse(test, text, &addr))
			continue;
		taken++;
		KUNIT_ASSERT_TRUE(test, rmp_endpoint_format(buf, sizeof(buf), &addr) > 0);
		KUNIT_ASSERT_EQ(test, parse(test, buf, &again), 0);
		ASSERT_SAME(test, &addr, &again, sizeof(addr));
	}
	kunit_info(test, "%u of %u texts were taken", taken,
		   (u32)RANDOM_ROUNDS);
	KUNIT_ASSERT_TRUE(test, taken > RANDOM_ROUNDS / 20);
}

static struct kunit_case endpoint_cases[] = {
	KUNIT_CASE(test_round_trip),
	KUNIT_CASE(test_content),
	KUNIT_CASE(test_no_version),
	KUNIT_CASE(test_version),
	KUNIT_CASE(test_malformed),
	KUNIT_CASE(test_port),
	KUNIT_CASE(test_format),
	KUNIT_CASE(test_kinds),
	KUNIT_CASE(test_same),
	KUNIT_CASE(test_all_addresses),
	KUNIT_CASE(test_random_texts),
	{}
};

static struct kunit_suite endpoint_suite = {
	.name = "rmp_endpoint",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = endpoint_cases,
};

kunit_test_suites(&endpoint_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's endpoint texts");
MODULE_LICENSE("GPL");
