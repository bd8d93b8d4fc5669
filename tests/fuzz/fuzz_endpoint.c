// SPDX-License-Identifier: MIT
/*
 * The endpoint parser of the module, kmod/endpoint.c, and that of the library,
 * lib/endpoint.c, on the same text. What the module takes reads back as the
 * same when it is written; both take the same, but for names of hosts, which
 * only the library takes, and addresses of groups, which it refuses at once; and they
 * mean the same by it.
 */
#include "fuzz.h"
#include "endpoint.c"
#include <rmpool.h>

#define FLAGS	(RMPOOL_ENDPOINT_LOOPBACK | RMPOOL_ENDPOINT_LISTEN)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_storage addr, again, untouched;
	char text[RMP_ENDPOINT_MAX], theirs[RMPOOL_ENDPOINT_MAX];
	struct rmpool_endpoint endpoint;
	const char *why = NULL;
	int ret, lib, len;
	char *exact;

	/* As C sees it, to the first NUL. */
	exact = strndup((const char *)data, size);
	must(exact);

	memset(&addr, 0xa5, sizeof(addr));
	memset(&untouched, 0xa5, sizeof(untouched));
	ret = rmp_endpoint_parse(exact, &addr, &why);
	memset(&endpoint, 0, sizeof(endpoint));
	lib = rmpool_endpoint_parse(exact, FLAGS, &endpoint);
	if (ret) {
		must(ret == -EINVAL || ret == -EPROTONOSUPPORT);
		must(why && *why);
		must(!memcmp(&addr, &untouched, sizeof(addr)));
		must(lib || endpoint.family == AF_UNSPEC);
		must((ret == -EPROTONOSUPPORT) == (lib == -EPROTONOSUPPORT));
		goto out;
	}
	must(!why);
	len = rmp_endpoint_format(text, sizeof(text), &addr);
	must(len > 0 && strlen(text) == (size_t)len);
	must(!rmp_endpoint_parse(text, &again, &why));
	must(!memcmp(&addr, &again, sizeof(addr)));
	must(rmp_endpoint_equal(&addr, &again));
	must(rmp_endpoint_format(text, (size_t)len, &addr) == -ENOSPC);
	must(rmp_endpoint_format(text, (size_t)len + 1, &addr) == len);
	rmp_endpoint_is_any(&addr);
	rmp_endpoint_is_loopback(&addr);

	/* The module asks for that where it matters: whom to listen for, whom to call. */
	if (rmp_endpoint_is_group(&addr)) {
		must(lib);
		goto out;
	}
	must(!lib && endpoint.family == addr.ss_family);
	must(endpoint.port == rmp_endpoint_port(&addr));
	must(rmpool_endpoint_format(&endpoint, theirs, sizeof(theirs)) == len);
	must(!strcmp(text, theirs));
out:
	free(exact);
	return 0;
}
