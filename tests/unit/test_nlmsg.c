// SPDX-License-Identifier: MIT
/*
 * Netlink requests, byte by byte, and how replies are collected: whole ones,
 * those of others, and damaged ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "netlink.h"
#include "datagram.h"

/* ---------------------------------------------------------------- requests */

static void builds_requests(void **state)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct datagram expect = { .length = 0 };
	struct nlmsghdr *nlh;

	(void)state;
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_PEER_ADD, NLM_F_ACK,
			    SEQ);
	assert_int_equal(rmpl_nl_build_peer(nlh, "beta", "v1:10.0.0.2:13579",
					    "lab", true), 0);
	begin_genl(&expect, RMPOOL_CMD_PEER_ADD);
	message(&expect)->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message(&expect)->nlmsg_pid = 0;
	add_text(&expect, RMPOOL_A_PEER_NAME, "beta");
	add_text(&expect, RMPOOL_A_PEER_ENDPOINT, "v1:10.0.0.2:13579");
	add_text(&expect, RMPOOL_A_PEER_GROUP, "lab");
	add_attr(&expect, RMPOOL_A_ALLOW_LOOPBACK, "", 0);
	assert_int_equal(nlh->nlmsg_len, expect.length);
	assert_memory_equal(buffer, expect.data, expect.length);

	expect.length = 0;
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_PEER_DEL, NLM_F_ACK,
			    SEQ);
	assert_int_equal(rmpl_nl_build_peer(nlh, "beta", NULL, NULL, false), 0);
	begin_genl(&expect, RMPOOL_CMD_PEER_DEL);
	message(&expect)->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message(&expect)->nlmsg_pid = 0;
	add_text(&expect, RMPOOL_A_PEER_NAME, "beta");
	assert_int_equal(nlh->nlmsg_len, expect.length);
	assert_memory_equal(buffer, expect.data, expect.length);
}

static void builds_settings(void **state)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct rmpool_nl_settings settings = { .name = NULL };
	struct datagram expect = { .length = 0 };
	struct nlmsghdr *nlh;

	(void)state;
	/* nothing to change: no attribute */
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_NODE_SET, NLM_F_ACK,
			    SEQ);
	assert_int_equal(rmpl_nl_build_settings(nlh, &settings), 0);
	assert_int_equal(nlh->nlmsg_len, 20);

	settings = (struct rmpool_nl_settings){
		.name = "alpha", .listen = "[::]:13579",
		.advertise = "10.0.0.1:5", .accept = RMPOOL_NL_ACCEPT_TABLE,
		.allow_loopback = 1,
	};
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_NODE_SET, NLM_F_ACK,
			    SEQ);
	assert_int_equal(rmpl_nl_build_settings(nlh, &settings), 0);
	begin_genl(&expect, RMPOOL_CMD_NODE_SET);
	message(&expect)->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message(&expect)->nlmsg_pid = 0;
	add_text(&expect, RMPOOL_A_NODE_NAME, "alpha");
	add_text(&expect, RMPOOL_A_NODE_LISTEN, "[::]:13579");
	add_text(&expect, RMPOOL_A_NODE_ADVERTISE, "10.0.0.1:5");
	add_u8(&expect, RMPOOL_A_NODE_ACCEPT_ANY, 0);
	add_attr(&expect, RMPOOL_A_ALLOW_LOOPBACK, "", 0);
	assert_int_equal(nlh->nlmsg_len, expect.length);
	assert_memory_equal(buffer, expect.data, expect.length);

	/* an empty text is told, too: back to what the node finds out */
	settings = (struct rmpool_nl_settings){ .advertise = "" };
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_NODE_SET, NLM_F_ACK,
			    SEQ);
	assert_int_equal(rmpl_nl_build_settings(nlh, &settings), 0);
	assert_int_equal(nlh->nlmsg_len, 20 + 8);
}

static void refuses_texts_that_do_not_fit(void **state)
{
	char buffer[RMPL_NL_REQUEST_MAX + 64] __attribute__((aligned(8)));
	struct rmpool_nl_settings settings = { .name = NULL };
	char text[2 * RMPL_NL_REQUEST_MAX];
	struct nlmsghdr *nlh;

	(void)state;
	memset(buffer, 0x5a, sizeof(buffer));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_PEER_ADD, 0, SEQ);
	assert_int_equal(rmpl_nl_build_peer(nlh, text, "e", NULL, false), -EMSGSIZE);
	assert_int_equal(rmpl_nl_build_peer(nlh, "n", text, NULL, false), -EMSGSIZE);
	assert_int_equal(rmpl_nl_build_peer(nlh, "n", "e", text, false), -EMSGSIZE);
	/* so that the flag does not fit any more */
	text[RMPL_NL_REQUEST_MAX - 64] = '\0';
	settings.name = text;
	settings.listen = "x";
	settings.advertise = "0123456789";
	settings.accept = RMPOOL_NL_ACCEPT_ANY;
	settings.allow_loopback = 1;
	for (int more = 0; more < 64; more++) {
		nlh = rmpl_nl_begin(buffer, FAMILY, RMPOOL_CMD_NODE_SET, 0, SEQ);
		rmpl_nl_build_settings(nlh, &settings);
		assert_true(nlh->nlmsg_len <= RMPL_NL_REQUEST_MAX);
		text[RMPL_NL_REQUEST_MAX - 64 + more] = 'x';
		text[RMPL_NL_REQUEST_MAX - 63 + more] = '\0';
	}
	assert_int_equal(rmpl_nl_build_settings(nlh, &settings), -EMSGSIZE);
	for (size_t i = RMPL_NL_REQUEST_MAX; i < sizeof(buffer); i++)
		assert_int_equal(buffer[i], 0x5a);
}

/* ------------------------------------------------------------------ replies */

static void collects_a_list(void **state)
{
	struct rmpl_nl_reply reply = { .data = NULL };
	const struct nlmsghdr *nlh;
	struct datagram d = { .length = 0 };
	int n = 0, left;
	int zero = 0;

	(void)state;
	/* many datagrams, and messages of other requests in between */
	for (int i = 0; i < 100; i++) {
		d.length = 0;
		begin_genl(&d, RMPOOL_CMD_PEER_GET);
		add_u32(&d, RMPOOL_A_PEER_STATE, (uint32_t)(2 * i));
		begin_genl(&d, RMPOOL_CMD_PEER_GET);
		message(&d)->nlmsg_seq = SEQ - 1;
		begin_genl(&d, RMPOOL_CMD_PEER_GET);
		message(&d)->nlmsg_pid = PORT + 1;
		begin_genl(&d, RMPOOL_CMD_PEER_GET);
		add_u32(&d, RMPOOL_A_PEER_STATE, (uint32_t)(2 * i + 1));
		assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ,
						 PORT), 0);
		assert_false(reply.ended);
	}
	d.length = 0;
	begin(&d, NLMSG_DONE, NLM_F_MULTI);
	add(&d, &zero, sizeof(zero));
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_true(reply.ended);
	assert_false(reply.interrupted);
	assert_int_equal(reply.err, 0);

	nlh = (const void *)reply.data;
	left = (int)reply.length;
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		struct rmpl_rails rails = { .room = 0 };
		struct rmpool_nl_peer peer;

		assert_int_equal(rmpl_nl_parse_peer(nlh, &peer, &rails), 0);
		assert_int_equal(peer.state, n++);
	}
	assert_int_equal(n, 200);
	rmpl_nl_reply_free(&reply);
	assert_null(reply.data);
}

static void notices_a_list_that_changed(void **state)
{
	struct rmpl_nl_reply reply = { .data = NULL };
	struct datagram d = { .length = 0 };

	(void)state;
	begin_genl(&d, RMPOOL_CMD_PEER_GET);
	message(&d)->nlmsg_flags = NLM_F_MULTI | NLM_F_DUMP_INTR;
	begin(&d, NLMSG_DONE, NLM_F_MULTI);
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_true(reply.ended);
	assert_true(reply.interrupted);
	rmpl_nl_reply_free(&reply);
}

static void reads_the_kernels_text(void **state)
{
	struct rmpl_nl_reply reply = { .data = NULL };
	struct nlmsgerr e = { .error = -EEXIST };
	struct datagram d = { .length = 0 };
	char request[20] = { 0 };
	int error = -EPERM;

	(void)state;
	/* the request left out */
	e.msg.nlmsg_len = 36;
	begin(&d, NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS);
	add(&d, &e, sizeof(e));
	add_u32(&d, NLMSGERR_ATTR_OFFS, 20);
	add_text(&d, NLMSGERR_ATTR_MSG, "endpoint is taken by peer 'gamma'");
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_true(reply.ended);
	assert_int_equal(reply.err, EEXIST);
	assert_string_equal(reply.text, "endpoint is taken by peer 'gamma'");
	rmpl_nl_reply_free(&reply);

	/* the request comes back, its length not a multiple of 4 */
	d.length = 0;
	e.msg.nlmsg_len = sizeof(e.msg) + 18;
	begin(&d, NLMSG_ERROR, NLM_F_ACK_TLVS);
	add(&d, &e, sizeof(e));
	add(&d, request, sizeof(request));
	add_text(&d, NLMSGERR_ATTR_MSG, "no");
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_string_equal(reply.text, "no");
	rmpl_nl_reply_free(&reply);

	/* a list that fails at its end */
	d.length = 0;
	begin(&d, NLMSG_DONE, NLM_F_MULTI | NLM_F_ACK_TLVS);
	add(&d, &error, sizeof(error));
	add_text(&d, NLMSGERR_ATTR_MSG, "not for you");
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_int_equal(reply.err, EPERM);
	assert_string_equal(reply.text, "not for you");
	rmpl_nl_reply_free(&reply);

	/* without the flag, what follows is not a text */
	d.length = 0;
	e.msg.nlmsg_len = 36;
	begin(&d, NLMSG_ERROR, NLM_F_CAPPED);
	add(&d, &e, sizeof(e));
	add_text(&d, NLMSGERR_ATTR_MSG, "never");
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_string_equal(reply.text, "");
	rmpl_nl_reply_free(&reply);

	/* a success */
	d.length = 0;
	e.error = 0;
	begin(&d, NLMSG_ERROR, NLM_F_CAPPED);
	add(&d, &e, sizeof(e));
	assert_int_equal(rmpl_nl_collect(&reply, d.data, d.length, SEQ, PORT),
			 0);
	assert_true(reply.ended);
	assert_int_equal(reply.err, 0);
	rmpl_nl_reply_free(&reply);
}

/* Every prefix of a datagram, in memory that ends where it ends, so that the
 * sanitizer sees any read past it.
 */
static void survives_short_datagrams(void **state)
{
	struct nlmsgerr e = { .error = -EEXIST };
	struct datagram d = { .length = 0 };

	(void)state;
	e.msg.nlmsg_len = 0xffffffff;
	begin_genl(&d, RMPOOL_CMD_PEER_GET);
	add_text(&d, RMPOOL_A_PEER_NAME, "beta");
	begin(&d, NLMSG_ERROR, NLM_F_ACK_TLVS);
	add(&d, &e, sizeof(e));
	add_text(&d, NLMSGERR_ATTR_MSG, "x");

	for (size_t length = 0; length <= d.length; length++) {
		struct rmpl_nl_reply reply = { .data = NULL };
		char *copy = malloc(length ? length : 1);
		int ret;

		assert_non_null(copy);
		memcpy(copy, d.data, length);
		ret = rmpl_nl_collect(&reply, copy, length, SEQ, PORT);
		if (length == d.length)
			assert_true(reply.ended);
		else if (length == 0 || length == d.begin)
			assert_int_equal(ret, 0);
		else
			assert_int_equal(ret, -EBADMSG);
		rmpl_nl_reply_free(&reply);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_requests),
		cmocka_unit_test(builds_settings),
		cmocka_unit_test(refuses_texts_that_do_not_fit),
		cmocka_unit_test(collects_a_list),
		cmocka_unit_test(notices_a_list_that_changed),
		cmocka_unit_test(reads_the_kernels_text),
		cmocka_unit_test(survives_short_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
