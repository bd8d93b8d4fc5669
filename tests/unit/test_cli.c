// SPDX-License-Identifier: MIT
/*
 * The command line tool from outside: what it prints for help, lists, changes,
 * events and errors, as text and as JSON, and its exit codes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli_fake.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("not JSON: %s in %s", error.text, text);
	return root;
}

static const char *const all_commands[] = {
	"info", "device", "node show", "node set", "peer list", "peer add", "peer del",
	"segment list", "region list", "serve", "put", "get", "monitor", "version", NULL,
};

static void test_help(void **state)
{
	char copy[32], *second;
	struct result *result;
	int i;

	(void)state;
	/* Neither help nor versions may depend on the module, or speak of it. */
	fake->absent = true;
	result = tool_run("--help");
	assert_int_equal(result->code, 0);
	assert_string_equal(result->err, "");
	for (i = 0; all_commands[i]; i++)
		assert_has(result->out, all_commands[i]);
	for (i = 0; all_commands[i]; i++) {
		snprintf(copy, sizeof(copy), "%s", all_commands[i]);
		second = strchr(copy, ' ');
		if (second)
			*second++ = 0;
		result = tool_run(copy, second ? second : "--help", "--help");
		assert_int_equal(result->code, 0);
		assert_string_equal(result->err, "");
		assert_has(result->out, "Usage: rmpool ");
		assert_has(result->out, all_commands[i]);
		assert_has(result->out, "--json");
	}
	result = tool_run("help", "put");
	assert_has(result->out, "Usage: rmpool put FILE NODE/SEGMENT[+OFFSET]");
	result = tool_run("--version");
	assert_string_equal(result->out, "rmpool 0.1.0\n");
	result = tool_run("version");
	assert_int_equal(result->code, 0);
	assert_has(result->out, "not loaded");
	assert_string_equal(result->err, "");
}

static void test_usage(void **state)
{
	struct result *result;

	(void)state;
	assert_int_equal(tool_run_words(-1, (const char *const[]){ NULL })->code, 2);
	result = tool_run("pear");
	assert_int_equal(result->code, 2);
	assert_string_equal(result->err, "rmpool: pear: unknown command; did you mean peer?\n");
	result = tool_run("peer", "lst");
	assert_string_equal(result->err,
			    "rmpool: peer: unknown command lst; did you mean list?\n");
	result = tool_run("serve", "x", "--sise", "3");
	assert_int_equal(result->code, 2);
	assert_string_equal(result->err,
			    "rmpool: serve: unknown option --sise; did you mean --size?\n");
	result = tool_run("put", "file");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "FILE NODE/SEGMENT[+OFFSET]");
	result = tool_run("put", "file", "b/kv", "more");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "more is one operand too many");
	assert_int_equal(tool_run("get", "bkv", "1", "f")->code, 2);
	assert_int_equal(tool_run("get", "b/kv+x", "1", "f")->code, 2);
	assert_int_equal(tool_run("get", "b/kv", "1KB", "f")->code, 2);
	assert_int_equal(tool_run("get", "b/kv", "1", "-", "-j")->code, 2);
	assert_int_equal(tool_run("serve", "x")->code, 2);
	result = tool_run("node", "set", "nme=x");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "did you mean name?");
	assert_int_equal(tool_run("node", "set", "accept=maybe")->code, 2);
	assert_int_equal(tool_run("node", "set", "name")->code, 2);
	assert_int_equal(tool_run("peer", "add", "b", "nonsense:")->code, 2);
	assert_int_equal(fake->opened, 0);
}

/* Each of these fails, and says so in JSON. */
static void test_json_errors(void **state)
{
	static const struct {
		const char *words[6];
		int code;
		bool absent;
	} runs[] = {
		{ { "-j" }, 2, false },
		{ { "-j", "pear" }, 2, false },
		{ { "put", "--json", "x" }, 2, false },
		{ { "-qj", "--nonsense" }, 2, false },
		{ { "info", "-j" }, 3, true },
		{ { "device", "-j" }, 3, true },
		{ { "peer", "-j" }, 3, true },
		{ { "monitor", "-j" }, 3, true },
		{ { "serve", "x", "-s", "1", "-j" }, 3, true },
		{ { "get", "-j", "b/kv", "1", "/tmp/never-made" }, 3, true },
		{ { "put", "-j", "/etc/passwd", "silent/kv" }, 5, false },
		{ { "put", "-j", "/etc/passwd", "stranger/kv" }, 4, false },
		{ { "put", "-j", "/etc/passwd", "nobody/kv" }, 1, false },
		{ { "put", "-j", "/no/such/\377/file", "b/kv" }, 1, false },
		{ { "put", "-j", "/etc", "b/kv" }, 1, false },
		{ { "peer", "del", "x", "-j" }, 1, false },
	};
	struct result *result;
	json_t *root, *error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		fake->absent = runs[i].absent;
		result = tool_run_words(-1, runs[i].words);
		assert_int_equal(result->code, runs[i].code);
		root = parse(result->out);
		error = json_object_get(root, "error");
		assert_non_null(json_string_value(json_object_get(error, "what")));
		assert_non_null(json_string_value(json_object_get(error, "why")));
		assert_int_equal(json_integer_value(json_object_get(error, "exit_code")),
				 runs[i].code);
		json_decref(root);
		assert_has(result->err, "rmpool: ");
	}
	assert_int_equal(fake->opened, 0);
}

static void test_denied(void **state)
{
	struct result *result;

	(void)state;
	fake->denied = true;
	result = tool_run("put", "/etc/passwd", "b/kv");
	assert_int_equal(result->code, 4);
	assert_has(result->err, "group rmpool");
	assert_int_equal(tool_run("monitor")->code, 4);
	assert_int_equal(tool_run("node", "set", "name=x")->code, 4);
	/* What netlink shows to everybody is shown. */
	result = tool_run("info");
	assert_int_equal(result->code, 0);
	assert_has(result->out, "v1:10.77.0.1:13579");
	assert_has(result->err, "group rmpool");
	assert_int_equal(fake->opened, 0);
}

static void test_info(void **state)
{
	struct result *result;
	json_t *root;

	(void)state;
	fake->memlock = 8 << 20;
	result = tool_run("info");
	assert_int_equal(result->code, 0);
	assert_has(result->out, "8388608 bytes (8 MiB)");
	assert_has(result->out, "v1:[::]:13579");
	assert_has(result->out, "none, 0 bytes in use");
	assert_has(result->out, "(64 GiB), 0 bytes in use, parameter max_pinned_mib");
	assert_has(result->out, "off, parameter cache_mib");
	assert_has(result->out, "(8 MiB), 77 hits, 5 misses, 3 evictions, 2 invalidations");
	assert_has(result->out, "(5 MiB) of 21 requests, 4 without room, pool of 8388608 bytes");
	fake->cache_limit = 256 << 20;
	assert_has(tool_run("info")->out, "(256 MiB) registered for requests, parameter cache_mib");
	assert_null(strstr(tool_run("info")->out, "staging_max"));
	fake->staging_limit = 64 << 10;
	assert_has(tool_run("info")->out, "(64 KiB) copied for a request, parameter staging_max");
	root = parse(tool_run("info", "-j")->out);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "limits"),
							    "memlock_bytes")), 8 << 20);
	assert_true(json_is_null(json_object_get(json_object_get(root, "limits"), "user_bytes")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "limits"),
							    "node_bytes")), 64LL << 30);
	assert_true(json_is_null(json_object_get(json_object_get(root, "versions"),
						 "mismatch")));
	json_decref(root);
	fake->memlock = UINT64_MAX;
	root = parse(tool_run("info", "-j")->out);
	assert_true(json_is_null(json_object_get(json_object_get(root, "limits"),
						 "memlock_bytes")));
	json_decref(root);
}

static void test_lists(void **state)
{
	struct result *result;
	json_t *root, *peer;

	(void)state;
	result = tool_run("device");
	assert_has(result->out, "1: ::ffff:10.77.0.1");
	assert_has(result->out, "2.5 Gbit/s");
	assert_has(result->out, "no: no link");
	assert_has(result->out, "70 of 1000");
	assert_has(result->out, "forced by the driver");
	assert_has(result->out, "not supported");
	result = tool_run("peer");
	assert_has(result->out, "rail 0   rxe0/1     up          2 QPs  put 8 MiB       "
				"got 1000 bytes");
	assert_has(result->out, "0 errors  10.77.0.1 -> 10.77.0.2\n");
	assert_has(result->out, "nobody listens");
	/* A peer says what it is called; it does not rule the terminal. */
	assert_has(result->out, "b?[2Jx");
	assert_null(strchr(result->out, '\033'));
	result = tool_run("segment", "list");
	assert_has(result->out, "kv");
	assert_has(result->out, "8 MiB");
	assert_has(result->out, "may open it: b:ro  c:rw  d:wo  e:no\n");
	assert_has(result->out, "may open it: *:ro\n");
	assert_has(result->out, "nobody may open it\n");
	result = tool_run("region");
	assert_has(result->out, "0x1000");
	assert_has(result->out, "registering 62%");
	assert_has(result->out, "read, write");
	assert_has(result->out, "memory   active");
	assert_has(result->out, "dma-buf  active");

	root = parse(tool_run("-j", "peer", "list")->out);
	peer = json_array_get(json_object_get(root, "peers"), 0);
	assert_string_equal(json_string_value(json_object_get(peer, "state")), "ready");
	assert_int_equal(json_array_size(json_object_get(peer, "rails")), 2);
	json_decref(root);
	root = parse(tool_run("-j", "device")->out);
	assert_int_equal(json_array_size(json_object_get(root, "devices")), 2);
	peer = json_array_get(json_object_get(root, "devices"), 0);
	assert_int_equal(json_array_size(json_object_get(peer, "page_sizes")), 2);
	assert_string_equal(json_string_value(json_object_get(peer, "relaxed_ordering")),
			    "forced by the driver");
	json_decref(root);
	root = parse(tool_run("-j", "segment")->out);
	peer = json_object_get(root, "segments");
	assert_true(json_is_null(json_object_get(json_array_get(peer, 0), "allowed")));
	assert_int_equal(json_array_size(json_object_get(json_array_get(peer, 1), "allowed")), 5);
	assert_true(json_is_array(json_object_get(json_array_get(peer, 2), "allowed")));
	json_decref(root);
	root = parse(tool_run("-j", "region")->out);
	peer = json_array_get(json_object_get(root, "regions"), 0);
	assert_true(json_is_false(json_object_get(peer, "dmabuf")));
	peer = json_array_get(json_object_get(root, "regions"), 1);
	assert_true(json_is_true(json_object_get(peer, "dmabuf")));
	json_decref(root);
	json_decref(parse(tool_run("-j", "version")->out));
	assert_int_equal(fake->opened, 0);
}

/* Every line of a table has its columns below the titles. */
static void test_table(void **state)
{
	char *out, *line, *size, *row;

	(void)state;
	out = tool_run("segment")->out;
	size = strstr(out, "SIZE");
	line = strchr(out, '\n') + 1;
	row = strstr(line, "8 MiB");
	assert_non_null(row);
	/* Numbers are set right: they end where their title ends. */
	assert_int_equal(row + strlen("8 MiB") - line, size + strlen("SIZE") - out);
}

static void test_changes(void **state)
{
	struct result *result;

	(void)state;
	result = tool_run("peer", "add", "b", "10.77.0.2:13579");
	assert_int_equal(result->code, 0);
	assert_string_equal(result->out, "peer b added at v1:10.77.0.2:13579\n");
	assert_string_equal(fake->peer_name, "b");
	assert_string_equal(fake->peer_endpoint, "v1:10.77.0.2:13579");
	assert_string_equal(fake->peer_group, "");
	result = tool_run("peer", "add", "b", "127.0.0.1:13579");
	assert_int_not_equal(result->code, 0);
	assert_has(result->err, "loopback");
	result = tool_run("-q", "peer", "add", "c", "127.0.0.1:1", "--allow-loopback");
	assert_int_equal(result->code, 0);
	assert_string_equal(result->out, "");
	assert_string_equal(fake->peer_endpoint, "v1:127.0.0.1:1");
	json_decref(parse(tool_run("peer", "add", "b", "[fd00::1]:1", "-j")->out));
	assert_string_equal(fake->peer_endpoint, "v1:[fd00::1]:1");
	tool_run("peer", "add", "b", "10.77.0.2:13579", "--group", "lab");
	assert_string_equal(fake->peer_group, "lab");
	result = tool_run("peer", "del", "b");
	assert_string_equal(result->out, "peer b removed\n");
	result = tool_run("node", "set", "name=x", "accept=any");
	assert_int_equal(result->code, 0);
	assert_string_equal(fake->set.name, "x");
	assert_int_equal(fake->set.accept, RMPOOL_NL_ACCEPT_ANY);
}

static void test_monitor(void **state)
{
	struct result *result;
	char *line, *next;
	int nr = 0;

	(void)state;
	result = tool_run("monitor", "-t", "0.05");
	assert_int_equal(result->code, 0);
	assert_has(result->out, "monitoring node a");
	assert_has(result->out, "segment kv gone: 8 MiB, 1 region, generation 2");
	assert_has(result->out, "peer b changed: ready, v1:10.77.0.2:13579, 1 of 2 rails up");
	assert_has(result->out, "device rxe1/1 new: down, not usable: no link");
	assert_has(result->out, "node a changed: listens at v1:[::]:13579, accepts table");

	result = tool_run("monitor", "-j", "-t", "0.05");
	for (line = result->out; *line; line = next + 1, nr++) {
		next = strchr(line, '\n');
		assert_non_null(next);
		*next = 0;
		json_decref(parse(line));
	}
	assert_int_equal(nr, 5);

	fake->overrun = true;
	result = tool_run("monitor", "-t", "0.05");
	assert_has(result->out, "overrun, resynced");
	assert_has(result->out, "peer gone now: backoff");
	assert_has(result->out, "segment kv now");
	/* What waited behind the overrun is older than the lists. */
	assert_null(strstr(result->out, "device rxe1/1 new"));
	assert_null(strstr(result->out, "node a changed"));
	assert_int_equal(fake->opened, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_help, setup),
		cmocka_unit_test_setup(test_usage, setup),
		cmocka_unit_test_setup(test_json_errors, setup),
		cmocka_unit_test_setup(test_denied, setup),
		cmocka_unit_test_setup(test_info, setup),
		cmocka_unit_test_setup(test_lists, setup),
		cmocka_unit_test_setup(test_table, setup),
		cmocka_unit_test_setup(test_changes, setup),
		cmocka_unit_test_setup(test_monitor, setup),
	};

	return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
