// SPDX-License-Identifier: MIT
/*
 * put and get of the command line tool: every byte, the bytes around, pieces
 * cut at borders of regions, and what is left after errors and signals.
 */
#include <errno.h>
#include <fcntl.h>
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

enum { READ_WRITE = RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE };

/* A byte that tells its place, with no period of a power of two. */
static unsigned char pattern(size_t index, unsigned int seed)
{
	return (unsigned char)((index * 2654435761U >> 13) + index % 251 + seed);
}

static void write_file(const char *path, size_t length, unsigned int seed)
{
	FILE *file = fopen(path, "w");
	size_t i;

	assert_non_null(file);
	for (i = 0; i < length; i++)
		putc(pattern(i, seed), file);
	assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *path, const unsigned char *bytes, size_t length)
{
	struct stat stat_now;
	unsigned char *now = malloc(length + 1);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_size, length);
	assert_int_equal(fread(now, 1, length, file), length);
	assert_memory_equal(now, bytes, length);
	fclose(file);
	free(now);
}

static const size_t lengths[] = {
	0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 262144, 262145, (1 << 20) - 1,
	(16 << 20) + 1, (20 << 20) + 3,
};

enum { NR_LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void put_and_look(size_t length, uint64_t offset)
{
	struct result *result;
	char place[64];
	size_t i;

	memset(fake->memory, 0xee, sizeof(fake->memory));
	write_file(source, length, (unsigned int)offset);
	snprintf(place, sizeof(place), "b/kv+%llu", (unsigned long long)offset);
	result = tool_run("put", source, place);
	assert_string_equal(result->err, "");
	assert_int_equal(result->code, 0);
	for (i = 0; i < sizeof(fake->memory); i++) {
		unsigned char want = i < offset || i >= offset + length ? 0xee :
				     pattern(i - offset, (unsigned int)offset);

		if (fake->memory[i] != want)
			fail_msg("%zu bytes at %s: byte %zu is wrong", length, place, i);
	}
}

static void test_put(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NR_LENGTHS; i++)
		put_and_look(lengths[i], i % 2 ? 77777 : 0);
	put_and_look(FAKE_MEMORY, 0);
}

static void test_get(void **state)
{
	char place[64], length[32];
	struct result *result;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fake->memory); i++)
		fake->memory[i] = pattern(i, 5);
	for (i = 0; i < NR_LENGTHS; i++) {
		uint64_t offset = i % 2 ? 0 : 12345;

		snprintf(place, sizeof(place), "b/kv+%llu", (unsigned long long)offset);
		snprintf(length, sizeof(length), "%zu", lengths[i]);
		result = tool_run("get", place, length, target);
		assert_string_equal(result->err, "");
		assert_int_equal(result->code, 0);
		assert_file(target, fake->memory + offset, lengths[i]);
	}
	result = tool_run("get", "b/kv+0x100", "all", target);
	assert_int_equal(result->code, 0);
	assert_file(target, fake->memory + 256, FAKE_MEMORY - 256);
	assert_has(result->out, "get 25165568 bytes (24.0 MiB) from b/kv+0x100 in ");
	assert_has(result->out, " MB/s\n");
}

static void test_works_at_the_same_time(void **state)
{
	(void)state;
	put_and_look(20 << 20, 0);
	assert_in_range(fake->most_in_flight, 2, 4);
	fake->most_in_flight = 0;
	assert_int_equal(tool_run("get", "b/kv", "all", target)->code, 0);
	assert_in_range(fake->most_in_flight, 2, 4);
	/* Whatever order they end in. */
	fake->newest_first = true;
	put_and_look((20 << 20) + 5, 3);
	assert_int_equal(tool_run("get", "b/kv", "all", target)->code, 0);
	assert_file(target, fake->memory, FAKE_MEMORY);
}

static void test_regions(void **state)
{
	(void)state;
	fake->nr_regions = 4;
	fake->regions[0] = (struct rmpool_region_desc){ 0, 1001, READ_WRITE, 0 };
	fake->regions[1] = (struct rmpool_region_desc){ 1001, 70000, READ_WRITE, 0 };
	fake->regions[2] = (struct rmpool_region_desc){ 71001, 1, READ_WRITE, 0 };
	fake->regions[3] = (struct rmpool_region_desc){ 71002, 9000000, READ_WRITE, 0 };
	/* The pool itself refuses a request across a border. */
	put_and_look(9000000, 500);
	assert_int_equal(tool_run("get", "b/kv+999", "100000", target)->code, 0);
	assert_file(target, fake->memory + 999, 100000);
}

/* Nothing may move when the range is not as it must be. */
static void refused(const char *place, const char *length, int code, const char *why)
{
	struct result *result;

	if (length)
		result = tool_run("get", place, length, target);
	else
		result = tool_run("put", source, place);
	assert_int_equal(result->code, code);
	assert_has(result->err, why);
	assert_int_equal(fake->requests, 0);
	assert_int_equal(access(target, F_OK), -1);
}

static void test_refused(void **state)
{
	(void)state;
	write_file(source, 2000, 0);
	fake->nr_regions = 3;
	fake->regions[0] = (struct rmpool_region_desc){ 0, 1000, READ_WRITE, 0 };
	fake->regions[1] = (struct rmpool_region_desc){
		2000, 1000, RMPOOL_ACCESS_REMOTE_READ, 0 };
	fake->regions[2] = (struct rmpool_region_desc){
		3000, 1000, RMPOOL_ACCESS_REMOTE_WRITE, 0 };
	refused("b/kv", NULL, 1, "the segment has no memory at offset 1000, the next begins at 2000");
	refused("b/kv+2000", NULL, 4, "peers may not write at offset 2000");
	refused("b/kv+3000", NULL, 1,
		"the segment ends at 4000: no room for 2000 bytes from offset 3000 on");
	refused("b/kv+2K", "all", 4, "peers may not read at offset 3000");
	refused("b/kv", "1001", 1, "no memory at offset 1000");
	refused("b/kv+3900", "5G", 4, "may not read at offset 3900");
	refused("b/kv+4001", "all", 1, "ends at 4000: it has no more bytes at offset 4001");
	refused("b/kv+0xffffffffffffffff", "0xffffffffffffffff", 1,
		"it has no more bytes at offset 18446744073709551615");
	refused("b/kv+4K", "0xfffffffffffffffe", 1,
		"it has no 18446744073709551614 bytes from offset 4096 on");
	refused("b/kv", "some", 2, "not a number of bytes, and not 'all'");
	refused("b/other", "1", 1, "rmpool peer add");
	refused("silent/kv", "1", 5, "did not answer");
	assert_int_equal(fake->timeout_ms, 30000);
	assert_int_equal(tool_run("get", "silent/kv", "1", target, "-t", "0.5")->code, 5);
	assert_int_equal(fake->timeout_ms, 500);
	assert_int_equal(tool_run("get", "silent/kv", "1", target, "-t", "none")->code, 5);
	assert_int_equal(fake->timeout_ms, -1);
}

static void test_little_memory_may_be_locked(void **state)
{
	struct result *result;

	(void)state;
	fake->memlock = 8 << 20;
	put_and_look(20 << 20, 1);
	assert_true(fake->longest <= 2 << 20);
	fake->memlock = 100000;
	result = tool_run("put", source, "b/kv");
	assert_int_equal(result->code, 1);
	assert_has(result->err, "RLIMIT_MEMLOCK");
}

static void test_failed_get_leaves_the_file(void **state)
{
	struct result *result;
	unsigned char before[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(before); i++)
		before[i] = pattern(i, 1);
	write_file(target, sizeof(before), 1);
	fake->fail_at = 3;
	fake->fail_status = -ETIMEDOUT;
	result = tool_run("get", "b/kv", "20M", target);
	assert_int_equal(result->code, 5);
	assert_has(result->err, "not finished in time");
	assert_file(target, before, sizeof(before));
	/* And does not make one. */
	fake->requests = 0;
	assert_int_equal(tool_run("get", "b/kv", "20M", other)->code, 5);
	assert_int_equal(access(other, F_OK), -1);
}

static void test_failed_put(void **state)
{
	struct result *result;
	json_t *root;

	(void)state;
	write_file(source, 20 << 20, 0);
	fake->fail_at = 2;
	fake->fail_status = -ESTALE;
	result = tool_run("put", source, "b/kv", "-j");
	assert_int_equal(result->code, 1);
	root = json_loads(result->out, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(json_object_get(root, "error"),
							      "errno")), "ESTALE");
	json_decref(root);
	/* What was in flight was ended before the tool was. */
	assert_int_equal(fake->in_flight, 0);
	assert_true(fake->cancelled > 0);
}

static void test_signals(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	unsigned char before[100];
	struct result *result;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(before); i++)
		before[i] = pattern(i, 1);
	write_file(source, 20 << 20, 0);
	write_file(target, sizeof(before), 1);
	for (i = 0; i < 3; i++) {
		fake->requests = 0;
		fake->hang_at = 3;
		fake->hang_signal = signals[i];
		result = tool_run("get", "b/kv", "20M", target);
		assert_int_equal(result->code, 128 + signals[i]);
		assert_has(result->err, "interrupted after 8 MiB");
		assert_file(target, before, sizeof(before));
		assert_int_equal(fake->in_flight, 0);
		fake->requests = 0;
		result = tool_run("put", source, "b/kv");
		assert_int_equal(result->code, 128 + signals[i]);
		assert_int_equal(fake->in_flight, 0);
	}
}

static void test_json(void **state)
{
	double bytes, seconds, rate;
	json_t *root;

	(void)state;
	write_file(source, 5 << 20, 0);
	root = json_loads(tool_run("-j", "put", source, "b/kv+1M")->out, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "operation")), "put");
	assert_int_equal(json_integer_value(json_object_get(root, "offset")), 1 << 20);
	bytes = json_number_value(json_object_get(root, "bytes"));
	seconds = json_number_value(json_object_get(root, "seconds"));
	rate = json_number_value(json_object_get(root, "MB_per_s"));
	assert_true(bytes == 5 << 20);
	assert_true(seconds > 0);
	assert_true(rate * seconds * 1e6 > bytes * 0.999 && rate * seconds * 1e6 < bytes * 1.001);
	json_decref(root);
	assert_string_equal(tool_run("-q", "put", source, "b/kv")->out, "");
}

static void test_pipes(void **state)
{
	static const char *const put[] = { "put", "-", "b/kv+10", NULL };
	struct result *result;
	struct tool tool;
	int fds[2], got;

	(void)state;
	/* The child reads while we write: its length is not known before. */
	assert_int_equal(pipe(fds), 0);
	assert_true(fcntl(fds[1], F_SETFD, FD_CLOEXEC) == 0);
	assert_int_equal(write(fds[1], "hello", 5), 5);
	close(fds[1]);
	result = tool_run_words(fds[0], put);
	assert_int_equal(result->code, 0);
	close(fds[0]);
	assert_memory_equal(fake->memory + 9, "\0hello\0", 7);

	/* More than there is room for. */
	fake->regions[0].length = 12;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "hello", 5), 5);
	close(fds[1]);
	result = tool_run_words(fds[0], put);
	assert_int_equal(result->code, 1);
	assert_has(result->err, "the segment ends at 12: no room for more bytes at offset 12");
	close(fds[0]);
	/* Just as much. */
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "ab", 2), 2);
	close(fds[1]);
	assert_int_equal(tool_run_words(fds[0], put)->code, 0);
	close(fds[0]);

	result = tool_run("get", "b/kv+10", "2", "-");
	assert_int_equal(result->code, 0);
	assert_string_equal(result->out, "ab");
	assert_has(result->err, "get 2 bytes from b/kv+10");

	/* What is no regular file is written, not replaced. */
	assert_int_equal(mkfifo(other, 0600), 0);
	tool = tool_start(-1, (const char *const[]){ "get", "b/kv+10", "2", other, NULL });
	got = open(other, O_RDONLY);
	assert_true(got >= 0);
	assert_int_equal(read(got, source, 2), 2);
	assert_memory_equal(source, "ab", 2);
	close(got);
	snprintf(source, sizeof(source), "%s/source", folder);
	assert_int_equal(tool_end(tool)->code, 0);
}

static void test_target_keeps_mode_and_link(void **state)
{
	struct stat now;

	(void)state;
	write_file(other, 10, 0);
	assert_int_equal(chmod(other, 0640), 0);
	assert_int_equal(symlink("other", target), 0);
	assert_int_equal(tool_run("get", "b/kv", "20", target)->code, 0);
	assert_int_equal(lstat(target, &now), 0);
	assert_true(S_ISLNK(now.st_mode));
	assert_int_equal(stat(other, &now), 0);
	assert_int_equal(now.st_size, 20);
	assert_int_equal(now.st_mode & 0777, 0640);
	assert_int_equal(tool_run("get", "b/kv", "1", "/no/such/folder/file")->code, 1);
	assert_int_equal(tool_run("get", "b/kv", "1", folder)->code, 1);
}

static void test_full_disk(void **state)
{
	struct result *result;

	(void)state;
	result = tool_run("get", "b/kv", "20M", "/dev/full");
	assert_int_equal(result->code, 1);
	assert_has(result->err, "rmpool: /dev/full: No space left on device");
	assert_int_equal(fake->in_flight, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put, setup, teardown),
		cmocka_unit_test_setup_teardown(test_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_works_at_the_same_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_little_memory_may_be_locked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_get_leaves_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_put, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_target_keeps_mode_and_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
	};

	return cmocka_run_group_tests_name("cli_transfer", tests, make_folder, remove_folder);
}
