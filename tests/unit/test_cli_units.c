// SPDX-License-Identifier: MIT
/*
 * The pure parts of the command line tool: numbers and words, the parser of
 * options, the line of progress.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "args.h"
#include "output.h"
#include "pipeline.h"
#include "progress.h"
#include "units.h"

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 }, { "1", 1 }, { "010", 10 }, { "4095", 4095 }, { "4K", 4096 },
		{ "4k", 4096 }, { "4KiB", 4096 }, { "1M", 1 << 20 }, { "3G", 3ULL << 30 },
		{ "2T", 2ULL << 40 }, { "0x10", 16 }, { "0X1f", 31 }, { "0x1B", 27 },
		{ "0x10K", 16384 }, { "18446744073709551615", UINT64_MAX },
		{ "16777215T", 16777215ULL << 40 },
	};
	static const char *const bad[] = {
		"", " 1", "-1", "+1", "K", "0x", "0xg", "1.5M", "1KB", "1Kib", "1X", "1KK",
		"1 K", "18446744073709551616", "16777216T", "1K ", "0x-1", "all", "1e3",
	};
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(parse_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bytes = 77;
		if (!parse_size(bad[i], &bytes))
			fail_msg("'%s' was taken for %llu bytes", bad[i],
				 (unsigned long long)bytes);
		assert_int_equal(bytes, 77);
	}
	/* The one mistake that people make says what to write. */
	assert_non_null(strstr(parse_size("1KB", &bytes), "KiB"));
}

static void test_seconds(void **state)
{
	static const char *const bad[] = {
		"", "0", "0.0001", "-1", "x", "1s", "nan", "inf", "0x10", "1e99", "2200000", " 1",
	};
	size_t i;
	int ms;

	(void)state;
	assert_null(parse_seconds("2", &ms));
	assert_int_equal(ms, 2000);
	assert_null(parse_seconds("0.25", &ms));
	assert_int_equal(ms, 250);
	assert_null(parse_seconds("none", &ms));
	assert_int_equal(ms, -1);
	assert_null(parse_seconds("2147483", &ms));
	assert_int_equal(ms, 2147483000);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!parse_seconds(bad[i], &ms))
			fail_msg("'%s' was taken for %d ms", bad[i], ms);
	}
}

static void test_formats(void **state)
{
	static const uint8_t uuid[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
					  0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0xff };
	char text[UNITS_TEXT_MAX];

	(void)state;
	assert_string_equal(format_bytes(text, sizeof(text), 0), "0 bytes");
	assert_string_equal(format_bytes(text, sizeof(text), 1), "1 byte");
	assert_string_equal(format_bytes(text, sizeof(text), 1023), "1023 bytes");
	assert_string_equal(format_bytes(text, sizeof(text), 1024), "1 KiB");
	assert_string_equal(format_bytes(text, sizeof(text), 1536), "1.5 KiB");
	assert_string_equal(format_bytes(text, sizeof(text), 8 << 20), "8 MiB");
	assert_string_equal(format_bytes(text, sizeof(text), UINT64_MAX), "16.0 EiB");
	assert_string_equal(format_exact(text, sizeof(text), 1000), "1000 bytes");
	assert_string_equal(format_exact(text, sizeof(text), 5 << 20),
			    "5242880 bytes (5 MiB)");
	assert_string_equal(format_rate(text, sizeof(text), 48.254e6), "48.25 MB/s");
	assert_string_equal(format_rate(text, sizeof(text), 12345e6), "12345.0 MB/s");
	assert_string_equal(format_rate(text, sizeof(text), 1234), "0.0012 MB/s");
	assert_string_equal(format_duration(text, sizeof(text), 9.4), "0:09");
	assert_string_equal(format_duration(text, sizeof(text), 750), "12:30");
	assert_string_equal(format_duration(text, sizeof(text), 3723), "1:02:03");
	assert_string_equal(format_duration(text, sizeof(text), 1e18), "--:--");
	assert_string_equal(format_uuid(text, sizeof(text), uuid),
			    "01234567-89ab-cdef-1011-1213141516ff");
	assert_string_equal(format_access(RMPOOL_ACCESS_ALL), "read, write");
	assert_string_equal(format_access(RMPOOL_ACCESS_REMOTE_READ), "read");
	assert_string_equal(format_access(RMPOOL_ACCESS_LOCAL_WRITE), "none");
}

static void test_nearest(void **state)
{
	static const char *const words[] = { "peer", "put", "get", "serve", "segment", "info",
					     "monitor", NULL };
	static const char *const long_options[] = { "read-only", "save", "size", NULL };

	(void)state;
	assert_string_equal(nearest_word("pear", words), "peer");
	assert_string_equal(nearest_word("srve", words), "serve");
	assert_string_equal(nearest_word("mnoitor", words), "monitor");
	assert_string_equal(nearest_word("seg", words), "segment");
	assert_string_equal(nearest_word("peers", words), "peer");
	assert_string_equal(nearest_word("readonly", long_options), "read-only");
	assert_null(nearest_word("x", words));
	assert_null(nearest_word("completely", words));
	assert_null(nearest_word("", words));
	assert_null(nearest_word("a-word-that-is-longer-than-any-option-may-be", words));
}

static bool flag, other;
static const char *text_value;
static uint64_t size_value;
static int ms_value;

static const struct option_def options[] = {
	{ "flag", 'f', OPTION_FLAG, &flag, NULL, "A flag" },
	{ "other", 'o', OPTION_FLAG, &other, NULL, "Another" },
	{ "text", 't', OPTION_TEXT, &text_value, "TEXT", "A text" },
	{ 0 },
};

static const struct option_def more_options[] = {
	{ "size", 's', OPTION_SIZE, &size_value, "SIZE", "A size" },
	{ "wait", 0, OPTION_SECONDS, &ms_value, "SECONDS", "A time" },
	{ 0 },
};

/* Reads all words; how many operands, the last one in *operand, or -1. */
static int read_words(struct args *args, const char **operand, const char *const *words)
{
	static char *argv[16];
	int argc = 1, found, nr = 0;

	flag = other = false;
	text_value = NULL;
	size_value = 0;
	ms_value = 0;
	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	args_init(args, argc, argv, options);
	args->tables[1] = more_options;
	while ((found = args_operand(args, operand)) > 0)
		nr++;
	return found < 0 ? -1 : nr;
}

#define READ(...) read_words(&args, &operand, (const char *const[]){ __VA_ARGS__, NULL })

static void test_options(void **state)
{
	const char *operand;
	struct args args;

	(void)state;
	assert_int_equal(READ("a", "--flag", "b"), 2);
	assert_true(flag);
	assert_string_equal(operand, "b");
	assert_int_equal(READ("-fo"), 0);
	assert_true(flag && other);
	assert_int_equal(READ("-fttext", "a"), 1);
	assert_string_equal(text_value, "text");
	assert_true(flag);
	assert_int_equal(READ("-t", "-x"), 0);
	assert_string_equal(text_value, "-x");
	assert_int_equal(READ("--text=a=b", "--size", "4K", "--wait=1.5"), 0);
	assert_string_equal(text_value, "a=b");
	assert_int_equal(size_value, 4096);
	assert_int_equal(ms_value, 1500);
	assert_int_equal(READ("--text="), 0);
	assert_string_equal(text_value, "");
	assert_int_equal(READ("--", "--flag", "-o"), 2);
	assert_false(flag || other);
	assert_int_equal(READ("-"), 1);
	assert_string_equal(operand, "-");
}

static void test_wrong_options(void **state)
{
	const char *operand;
	struct args args;

	(void)state;
	assert_int_equal(READ("--flga"), -1);
	assert_string_equal(args.wrong, "unknown option --flga; did you mean --flag?");
	assert_int_equal(READ("--sise=3"), -1);
	assert_string_equal(args.wrong, "unknown option --sise; did you mean --size?");
	assert_int_equal(READ("--nothing-like-it"), -1);
	assert_string_equal(args.wrong, "unknown option --nothing-like-it");
	assert_int_equal(READ("-fx"), -1);
	assert_string_equal(args.wrong, "unknown option -x");
	assert_int_equal(READ("--flag=1"), -1);
	assert_string_equal(args.wrong, "--flag takes no value");
	assert_int_equal(READ("--text"), -1);
	assert_string_equal(args.wrong, "--text needs a value: TEXT");
	assert_int_equal(READ("-s"), -1);
	assert_int_equal(READ("--size", "1KB"), -1);
	assert_non_null(strstr(args.wrong, "--size 1KB: ambiguous"));
	assert_int_equal(READ("--wait", "soon"), -1);
	assert_string_equal(args.wrong, "--wait soon: not a number of seconds");
	/* An abbreviation would become ambiguous with the next new option. */
	assert_int_equal(READ("--fla"), -1);
}

static void test_progress(void **state)
{
	char line[256];

	(void)state;
	assert_string_equal(progress_line(line, sizeof(line), "put", 10000000, 40000000, 2),
			    "put  25 %  9.5 MiB of 38.1 MiB  5.00 MB/s  ETA 0:06");
	assert_string_equal(progress_line(line, sizeof(line), "get", 0, 1024, 1),
			    "get   0 %  0 bytes of 1 KiB  0.0000 MB/s  ETA --:--");
	assert_string_equal(progress_line(line, sizeof(line), "put", 1048576, 0, 1),
			    "put  1 MiB  1.05 MB/s");
}

/* An error wipes the line of progress away and stands alone. */
static void test_error_after_progress(void **state)
{
	struct progress progress = { .wanted = true, .verb = "put", .total = 8 };
	int before = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char text[512];
	size_t got;

	(void)state;
	assert_true(before >= 0);
	assert_non_null(file);
	fflush(stderr);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	progress_update(&progress, 2);
	fail_text(EXIT_FAILED, "put", "went wrong");
	fail_text(EXIT_FAILED, "put", "again");
	fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(file);
	got = fread(text, 1, sizeof(text) - 1, file);
	text[got] = 0;
	fclose(file);
	assert_ptr_equal(strstr(text, "\r\033[Kput  25 %"), text);
	assert_non_null(strstr(text, "\r\033[Krmpool: put: went wrong\nrmpool: put: again\n"));
}

static void test_regions(void **state)
{
	enum { R = RMPOOL_ACCESS_REMOTE_READ, W = RMPOOL_ACCESS_REMOTE_WRITE };
	static const struct rmpool_region_desc regions[] = {
		{ .offset = 0, .length = 100, .access = R | W },
		{ .offset = 100, .length = 50, .access = R },
		{ .offset = 200, .length = UINT64_MAX - 200, .access = R | W },
	};
	int number;

	(void)state;
	assert_int_equal(region_span(regions, 3, 0, W, &number), 100);
	assert_int_equal(region_span(regions, 3, 99, W, &number), 1);
	assert_int_equal(region_span(regions, 3, 100, R, &number), 50);
	assert_int_equal(region_span(regions, 3, 100, W, &number), 0);
	assert_int_equal(number, EACCES);
	assert_int_equal(region_span(regions, 3, 150, R, &number), 0);
	assert_int_equal(number, ENXIO);
	assert_int_equal(region_span(regions, 2, 150, R, &number), 0);
	assert_int_equal(number, ERANGE);
	assert_int_equal(region_span(regions, 3, UINT64_MAX, R, &number), 0);
	assert_int_equal(number, ERANGE);
	assert_int_equal(region_span(NULL, 0, 0, R, &number), 0);
	assert_int_equal(number, ERANGE);
	assert_int_equal(region_reach(regions, 3, 50, 100, R, &number), 150);
	assert_int_equal(number, 0);
	assert_int_equal(region_reach(regions, 3, 50, 101, R, &number), 150);
	assert_int_equal(number, ENXIO);
	assert_int_equal(region_reach(regions, 3, 50, 100, W, &number), 100);
	assert_int_equal(number, EACCES);
	/* A length that would wrap round is past the end. */
	assert_int_equal(region_reach(regions, 3, 200, UINT64_MAX, W, &number), UINT64_MAX);
	assert_int_equal(number, ERANGE);
	assert_int_equal(region_reach(regions, 3, 170, 0, W, &number), 170);
	assert_int_equal(number, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_error_after_progress),
		cmocka_unit_test(test_regions),
	};

	return cmocka_run_group_tests_name("cli_units", tests, NULL, NULL);
}
