/* SPDX-License-Identifier: MIT */
/*
 * For test programs: one line for each test, "ok NAME" or "not ok NAME: WHY",
 * which check_lines of tests/vm/guest/lib.sh turns into results.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

static int report_failed;

static inline void report_ok(const char *name)
{
	printf("ok %s\n", name);
	fflush(stdout);
}

__attribute__((format(printf, 2, 3)))
static inline void report_not_ok(const char *name, const char *why, ...)
{
	va_list args;

	report_failed++;
	printf("not ok %s: ", name);
	va_start(args, why);
	vprintf(why, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static inline void report_skip(const char *name, const char *why)
{
	printf("skip %s: %s\n", name, why);
	fflush(stdout);
}

/* One test that is made of many checks: the first that fails is its reason. */
struct test {
	const char *name;
	bool failed;
};

__attribute__((format(printf, 3, 4)))
static inline bool expect(struct test *t, bool good, const char *why, ...)
{
	va_list args;
	char text[512];

	if (good || t->failed)
		return good;
	t->failed = true;
	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	report_not_ok(t->name, "%s", text);
	return false;
}

static inline void test_end(struct test *t)
{
	if (!t->failed)
		report_ok(t->name);
}

/* What cannot be, so nothing after it makes sense. */
__attribute__((format(printf, 1, 2), noreturn))
static inline void give_up(const char *why, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, why);
	vfprintf(stderr, why, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

/* The value in a line "NAME: value" or "NAME value" of a file; -1: none. */
static inline long file_value(const char *path, const char *name)
{
	char line[256];
	long value = -1;
	FILE *f = fopen(path, "r");

	if (!f)
		give_up("no %s", path);
	while (fgets(line, sizeof(line), f))
		named_value(line, name, &value);
	fclose(f);
	return value;
}

/* In the unit that is used there. */
static inline long status_value(const char *name)
{
	return file_value("/proc/self/status", name);
}

static inline long vmstat(const char *name)
{
	return file_value("/proc/vmstat", name);
}

/* Pages under long-term pins, of the whole machine; exact for root only, who may
 * have the processors add up what they counted.
 */
static inline long pinned_pages(void)
{
	char line[128];
	long value, sum = 0;
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "r");

	if (f) {
		(void)fgetc(f);
		fclose(f);
	}
	f = fopen("/proc/vmstat", "r");
	if (!f)
		give_up("no /proc/vmstat");
	while (fgets(line, sizeof(line), f)) {
		if (named_value(line, "nr_foll_pin_acquired", &value))
			sum += value;
		else if (named_value(line, "nr_foll_pin_released", &value))
			sum -= value;
	}
	fclose(f);
	return sum;
}

#endif /* REPORT_H */
