// SPDX-License-Identifier: MIT
/*
 * Control messages of kmod/wire.c: any bytes, and the same with a header that
 * admits them, so that bodies are reached without luck. Whatever is taken must
 * give the same bytes when it is encoded again, and a refusal writes nothing
 * but what it says.
 */
#include "fuzz.h"
#include "wire.c"

static void walk_keys(const uint8_t *buf, size_t len)
{
	struct rmp_wire_keys run;
	size_t pos = 0;
	u32 i;
	int ret;

	while ((ret = rmp_keys_next(buf, len, &pos, &run)) == 1) {
		for (i = 0; i < run.nr; i++)
			rmp_keys_rkey(&run, i);
	}
	must(ret == 0 || ret == -EBADMSG);
}

static int encode_again(uint8_t *again, const uint8_t *buf, size_t len,
			const struct rmp_msg *msg)
{
	struct rmp_keys_writer w;
	struct rmp_wire_keys run;
	size_t pos = 0;
	u32 runs = 0, i;
	int ret;

	if (msg->type != RMP_MSG_KEYS)
		return rmp_wire_encode(again, RMP_WIRE_MSG_MAX, msg);
	must(!rmp_keys_begin(&w, again, RMP_WIRE_MSG_MAX));
	while ((ret = rmp_keys_next(buf, len, &pos, &run)) == 1) {
		runs++;
		must(rmp_keys_open(&w, &run) >= run.nr);
		for (i = 0; i < run.nr; i++)
			rmp_keys_add(&w, rmp_keys_rkey(&run, i));
	}
	must(!ret && pos == len && runs == msg->keys.nr_runs);
	ret = rmp_keys_end(&w, msg->seq, &msg->keys);
	rmp_wire_set_credits(again, msg->credits);
	return ret;
}

static void decode(const uint8_t *data, size_t size)
{
	uint8_t *buf = exact_copy(data, size);
	uint8_t again[RMP_WIRE_MSG_MAX];
	struct rmp_msg msg, untouched;
	int ret;

	memset(&msg, 0xa5, sizeof(msg));
	memset(&untouched, 0xa5, sizeof(untouched));
	ret = rmp_wire_decode(buf, size, &msg);
	if (!ret) {
		must(encode_again(again, buf, size, &msg) == (int)size);
		must(!memcmp(again, buf, size));
	} else {
		must(ret == -EPROTO || ret == -EPROTONOSUPPORT ||
		     ret == -EBADMSG || ret == -ENOMSG);
		if (ret == -ENOMSG) {
			must(msg.type == buf[5]);
			untouched.type = msg.type;
			untouched.seq = msg.seq;
			untouched.credits = msg.credits;
		}
		must(same_bytes(&msg, &untouched, sizeof(msg)));
	}
	walk_keys(buf, size);
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t magic[] = { 'R', 'M', 'P', 'L' };
	uint8_t *admitted;

	decode(data, size);
	if (size < HEADER_SIZE || size > RMP_WIRE_MSG_MAX)
		return 0;
	admitted = exact_copy(data, size);
	memcpy(admitted, magic, sizeof(magic));
	admitted[4] = RMP_WIRE_VERSION;
	admitted[6] = (uint8_t)size;
	admitted[7] = (uint8_t)(size >> 8);
	memset(admitted + 13, 0, 3);
	decode(admitted, size);
	free(admitted);
	return 0;
}
