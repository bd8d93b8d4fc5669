// SPDX-License-Identifier: MIT
/*
 * serve of the command line tool: what it holds, what it says when, its signals
 * and what it leaves.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli_fake.h"
#include "cli_files.h"

#define SHA256_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
/* of 3 MiB of zeros */
#define SHA256_ZEROS "bbd05cf6097ac9b1f89ea29d2542c1b7b67ee46848393895f5a9e43fa1f621e5"

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

#define START(...) \
	tool_start(-1, (const char *const[]){ "serve", __VA_ARGS__, NULL })

static void test_file(void **state)
{
	struct result *result;
	struct tool tool;
	char line[256], bytes[8];
	FILE *file;

	(void)state;
	write_text(source, "abc");
	tool = START("kv", "--file", source, "--save", target);
	tool_line(tool, line, sizeof(line));
	assert_string_equal(line,
		"ready: a/kv+0, 3 bytes, peers may read and write; Ctrl-C ends");
	assert_int_equal(fake->registered, 1);
	assert_int_equal(fake->serve_access,
			 RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE);
	kill(tool.pid, SIGUSR1);
	tool_line(tool, line, sizeof(line));
	assert_string_equal(line, SHA256_ABC "  a/kv");
	kill(tool.pid, SIGUSR1);
	tool_line(tool, line, sizeof(line));
	assert_string_equal(line, SHA256_ABC "  a/kv");
	kill(tool.pid, SIGTERM);
	result = tool_end(tool);
	assert_int_equal(result->code, 0);
	assert_string_equal(result->out, "withdrawn: a/kv\n");
	assert_string_equal(result->err, "");
	file = fopen(target, "r");
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), file), 3);
	assert_memory_equal(bytes, "abc", 3);
	fclose(file);
}

static json_t *json_line(struct tool tool)
{
	char line[1024];
	json_t *root;

	tool_line(tool, line, sizeof(line));
	root = json_loads(line, 0, NULL);
	if (!root)
		fail_msg("not JSON: %s", line);
	return root;
}

static void test_json(void **state)
{
	struct tool tool;
	json_t *root;

	(void)state;
	tool = START("kv", "-j", "-s", "3M", "-o", "0x1000", "--read-only");
	root = json_line(tool);
	assert_string_equal(json_string_value(json_object_get(root, "event")), "ready");
	assert_string_equal(json_string_value(json_object_get(root, "address")), "a/kv");
	assert_int_equal(json_integer_value(json_object_get(root, "bytes")), 3 << 20);
	assert_int_equal(json_integer_value(json_object_get(root, "offset")), 4096);
	assert_int_equal(json_integer_value(json_object_get(root, "pid")), tool.pid);
	assert_int_equal(json_array_size(json_object_get(root, "access")), 1);
	json_decref(root);
	assert_int_equal(fake->serve_access, RMPOOL_ACCESS_REMOTE_READ);
	assert_int_equal(fake->serve_offset, 4096);
	kill(tool.pid, SIGUSR1);
	root = json_line(tool);
	assert_string_equal(json_string_value(json_object_get(root, "sha256")), SHA256_ZEROS);
	json_decref(root);
	kill(tool.pid, SIGINT);
	root = json_line(tool);
	assert_string_equal(json_string_value(json_object_get(root, "event")), "withdrawn");
	json_decref(root);
	assert_int_equal(tool_end(tool)->code, 0);
}

static void test_allow(void **state)
{
	struct result *result;
	struct tool tool;
	char line[256];

	(void)state;
	tool = START("kv", "-s", "4K", "--allow", "b:ro", "-a", "c:1", "--allow=*:no");
	tool_line(tool, line, sizeof(line));
	assert_has(line, "peers that are allowed may read and write");
	assert_int_equal(fake->nr_allowed, 3);
	assert_string_equal(fake->allowed[0].peer, "b");
	assert_int_equal(fake->allowed[0].access, RMPOOL_ACCESS_REMOTE_READ);
	assert_string_equal(fake->allowed[1].peer, "c:1");
	assert_int_equal(fake->allowed[1].access,
			 RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE);
	assert_string_equal(fake->allowed[2].peer, "*");
	assert_int_equal(fake->allowed[2].access, 0);
	kill(tool.pid, SIGTERM);
	assert_int_equal(tool_end(tool)->code, 0);

	result = tool_run("serve", "kv", "-s", "4K", "--allow", "b c");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "it must be the name of a peer");
	assert_int_equal(fake->opened, 0);
}

static void test_file_in_larger_memory(void **state)
{
	struct tool tool;
	char line[256];

	(void)state;
	write_text(source, "abc");
	tool = START("kv", "-f", source, "-s", "4K");
	tool_line(tool, line, sizeof(line));
	assert_has(line, "4096 bytes (4 KiB)");
	kill(tool.pid, SIGHUP);
	assert_int_equal(tool_end(tool)->code, 0);
}

static void test_wrong(void **state)
{
	struct result *result;

	(void)state;
	write_text(source, "abc");
	result = tool_run("serve", "kv", "-f", source, "-s", "2");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "larger than --size, 2 bytes");
	result = tool_run("serve", "taken", "-f", source);
	assert_int_equal(result->code, 1);
	assert_has(result->err, "in use on this node");
	result = tool_run("serve", "kv", "-f", folder);
	assert_int_equal(result->code, 1);
	result = tool_run("serve", "kv", "-f", "/no/such/file");
	assert_int_equal(result->code, 1);
	result = tool_run("serve", "kv", "-f", "/dev/zero");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "--size");
	write_text(source, "");
	result = tool_run("serve", "kv", "-f", source);
	assert_int_equal(result->code, 2);
	assert_has(result->err, "empty");
	result = tool_run("serve", "kv", "-s", "0");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "--size above 0");
	/* Not the value that stands for "the next free offset". */
	result = tool_run("serve", "kv", "-s", "1", "-o", "0xffffffffffffffff");
	assert_int_equal(result->code, 2);
	assert_has(result->err, "more than 64 bits");
	/* What cannot be saved is told before anything is published. */
	result = tool_run("serve", "kv", "-s", "1", "--save", "/no/such/file");
	assert_int_equal(result->code, 1);
	assert_has(result->err, "/no/such/file: No such file");
	result = tool_run("serve", "kv", "-s", "1", "--save", folder);
	assert_int_equal(result->code, 1);
	assert_has(result->err, "Is a directory");
	fake->memlock = 1 << 20;
	result = tool_run("serve", "kv", "-s", "2M");
	assert_int_equal(result->code, 1);
	assert_has(result->err, "RLIMIT_MEMLOCK");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_in_larger_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
	};

	return cmocka_run_group_tests_name("cli_serve", tests, make_folder, remove_folder);
}
