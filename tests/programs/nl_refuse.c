// SPDX-License-Identifier: MIT
/*
 * What the module itself says to endpoints that the tool would not let pass:
 * each is refused, and nothing changes. Prints "ok NAME" or "not ok NAME: WHY".
 */
#include <errno.h>
#include <rmpool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	const char *endpoint;
	int error;
	const char *text;
} bad[] = {
	{ "no endpoint", "", EINVAL, "" },
	{ "no port", "v1:10.0.0.1", EINVAL, "" },
	{ "port 0", "v1:10.0.0.1:0", EINVAL, "" },
	{ "port 65536", "v1:10.0.0.1:65536", EINVAL, "" },
	{ "another version", "v2:10.0.0.1:13579", 0, "version" },
	{ "loopback", "v1:127.0.0.1:13579", 0, "loopback" },
	{ "loopback, IPv6", "v1:[::1]:13579", 0, "loopback" },
	{ "loopback, mapped", "v1:[::ffff:127.0.0.1]:13579", 0, "loopback" },
	{ "any address", "v1:0.0.0.0:13579", 0, "" },
	{ "any address, IPv6", "v1:[::]:13579", 0, "" },
	{ "multicast", "v1:224.0.0.1:13579", 0, "multicast" },
	{ "multicast, IPv6", "v1:[ff02::1]:13579", 0, "multicast" },
	{ "broadcast", "v1:255.255.255.255:13579", 0, "broadcast" },
	{ "IPv6 without brackets", "v1:fd00::1:13579", 0, "" },
	{ "a name", "v1:host.example:13579", 0, "" },
	{ "something behind", "v1:10.0.0.1:13579 ", 0, "" },
};

static int count(const struct rmpool_nl_peer *peer, void *arg)
{
	(void)peer;
	++*(int *)arg;
	return 0;
}

static int peers(struct rmpool_nl *nl)
{
	int n = 0;

	return rmpool_nl_peers(nl, count, &n) ? -1 : n;
}

static int tell(const char *what, size_t i, int ret, int changed)
{
	int good = ret < 0 && !changed && (!bad[i].error || ret == -bad[i].error) &&
		   strstr(rmpool_error(), bad[i].text);

	if (good)
		printf("ok %s: %s\n", what, bad[i].name);
	else
		printf("not ok %s: %s: %d, %s, %s\n", what, bad[i].name, ret, rmpool_error(),
		       changed ? "something changed" : "nothing changed");
	return !good;
}

int main(void)
{
	struct rmpool_nl_settings settings;
	struct rmpool_nl *nl;
	int before, failed = 0;

	if (rmpool_nl_open(&nl)) {
		printf("not ok open: %s\n", rmpool_error());
		return 1;
	}
	before = peers(nl);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret = rmpool_nl_peer_add(nl, "bad", bad[i].endpoint, 0);

		failed |= tell("peer add", i, ret, peers(nl) != before);
		if (!*bad[i].endpoint)
			continue;	/* it means: to be found out */
		memset(&settings, 0, sizeof(settings));
		settings.advertise = bad[i].endpoint;
		failed |= tell("node set", i, rmpool_nl_node_set(nl, &settings), 0);
	}
	rmpool_nl_close(nl);
	return failed;
}
