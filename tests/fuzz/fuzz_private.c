// SPDX-License-Identifier: MIT
/*
 * Private data of connect requests and replies, kmod/private.c: what is taken gives
 * the same bytes when it is encoded again, with nothing but zero behind it, and
 * a refusal writes nothing but the version.
 */
#include "fuzz.h"
#include "private.c"

static bool zero_behind(const uint8_t *buf, size_t from, size_t size)
{
	for (; from < size; from++) {
		if (buf[from])
			return false;
	}
	return true;
}

/* @version: where it is in @out, which is untouched otherwise. */
static void refused(int ret, const uint8_t *buf, const void *out, size_t size,
		    size_t version)
{
	uint8_t untouched[sizeof(struct rmp_wire_req)];

	must(ret == -EPROTO || ret == -EPROTONOSUPPORT || ret == -EBADMSG);
	must(size <= sizeof(untouched));
	memset(untouched, 0xa5, sizeof(untouched));
	if (ret == -EPROTONOSUPPORT)
		untouched[version] = buf[3];
	must(!memcmp(out, untouched, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *buf = exact_copy(data, size);
	struct rmp_wire_reply reply;
	struct rmp_wire_req req;
	uint8_t again[RMP_WIRE_REQ_MAX];
	int ret, len;

	memset(&req, 0xa5, sizeof(req));
	ret = rmp_wire_get_req(buf, size, &req);
	if (ret) {
		refused(ret, buf, &req, sizeof(req),
			offsetof(struct rmp_wire_req, version));
	} else {
		len = rmp_wire_put_req(again, sizeof(again), &req);
		must(len > 0 && (size_t)len <= size);
		must(!memcmp(again, buf, (size_t)len));
		must(zero_behind(buf, (size_t)len, size));
	}

	memset(&reply, 0xa5, sizeof(reply));
	ret = rmp_wire_get_reply(buf, size, &reply);
	if (ret) {
		refused(ret, buf, &reply, sizeof(reply),
			offsetof(struct rmp_wire_reply, version));
	} else {
		len = rmp_wire_put_reply(again, RMP_WIRE_REPLY_MAX, &reply);
		must(len > 0 && (size_t)len <= size);
		must(!memcmp(again, buf, (size_t)len));
		must(zero_behind(buf, (size_t)len, size));
	}
	free(buf);
	return 0;
}
