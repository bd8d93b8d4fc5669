/* SPDX-License-Identifier: MIT */
/*
 * As much of KUnit's interface as the suites of pure files use, for programs on
 * the host: a suite becomes a program that prints TAP. An argument selects the
 * cases with that text in their name.
 */
#ifndef RMP_HOST_KUNIT_H
#define RMP_HOST_KUNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire_user.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

/* Told of one case, the rest is only counted. */
#define KUNIT_TOLD_MAX	20

struct kunit_memory {
	struct kunit_memory *next;
	max_align_t data[];
};

struct kunit {
	const char *name;
	void *priv;
	unsigned int failures;
	struct kunit_memory *memory;
	jmp_buf stop;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(function)	{ .run_case = (function), .name = #function }

#define pr_info(...)		printf("# " __VA_ARGS__)
#define kunit_info(test, fmt, ...) \
	printf("# %s: " fmt "\n", (test)->name, ##__VA_ARGS__)

#define GFP_KERNEL		0
#define kmalloc(size, gfp)	malloc(size)
#define kstrdup(text, gfp)	strdup(text)
#define kfree(mem)		free(mem)

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	struct kunit_memory *m = calloc(1, sizeof(*m) + size);

	(void)gfp;
	if (!m)
		return NULL;
	m->next = test->memory;
	test->memory = m;
	return m->data;
}

__attribute__((format(printf, 5, 6)))
static inline void kunit_failed(struct kunit *test, bool stop, const char *file,
				int line, const char *fmt, ...)
{
	va_list args;

	if (test->failures++ < KUNIT_TOLD_MAX) {
		printf("# %s: %s at %s:%d\n#     ", test->name,
		       stop ? "ASSERTION FAILED" : "EXPECTATION FAILED", file, line);
		va_start(args, fmt);
		vprintf(fmt, args);
		va_end(args);
		putchar('\n');
	}
}

/* The jump is here, so that analyzers see that nothing follows. */
#define KUNIT_CHECK(test, halt, condition, ...) \
do { \
	if (!(condition)) { \
		kunit_failed(test, halt, __FILE__, __LINE__, __VA_ARGS__); \
		if (halt) \
			longjmp((test)->stop, 1); \
	} \
} while (0)

#define KUNIT_COMPARE(test, stop, left, op, right) \
do { \
	const typeof(left) left_ = (left); \
	const typeof(right) right_ = (right); \
	KUNIT_CHECK(test, stop, left_ op right_, \
		    "%s " #op " %s, but they are %lld and %lld", \
		    #left, #right, (long long)left_, (long long)right_); \
} while (0)

#define KUNIT_COMPARE_PTR(test, stop, left, op, right) \
do { \
	const void *left_ = (left); \
	const void *right_ = (right); \
	KUNIT_CHECK(test, stop, left_ op right_, \
		    "%s " #op " %s, but they are %p and %p", \
		    #left, #right, left_, right_); \
} while (0)

#define KUNIT_COMPARE_STR(test, stop, left, right) \
do { \
	const char *left_ = (left); \
	const char *right_ = (right); \
	KUNIT_CHECK(test, stop, !strcmp(left_, right_), \
		    "%s == %s, but they are \"%s\" and \"%s\"", \
		    #left, #right, left_, right_); \
} while (0)

#define KUNIT_EXPECT_EQ(test, l, r)	KUNIT_COMPARE(test, false, l, ==, r)
#define KUNIT_EXPECT_NE(test, l, r)	KUNIT_COMPARE(test, false, l, !=, r)
#define KUNIT_EXPECT_LT(test, l, r)	KUNIT_COMPARE(test, false, l, <, r)
#define KUNIT_EXPECT_LE(test, l, r)	KUNIT_COMPARE(test, false, l, <=, r)
#define KUNIT_EXPECT_GT(test, l, r)	KUNIT_COMPARE(test, false, l, >, r)
#define KUNIT_EXPECT_GE(test, l, r)	KUNIT_COMPARE(test, false, l, >=, r)
#define KUNIT_EXPECT_TRUE(test, c)	KUNIT_CHECK(test, false, c, "%s", #c)
#define KUNIT_EXPECT_FALSE(test, c)	KUNIT_CHECK(test, false, !(c), "not %s", #c)
#define KUNIT_EXPECT_STREQ(test, l, r)	KUNIT_COMPARE_STR(test, false, l, r)
#define KUNIT_EXPECT_NULL(test, p)	KUNIT_COMPARE_PTR(test, false, p, ==, NULL)
#define KUNIT_EXPECT_NOT_NULL(test, p)	KUNIT_COMPARE_PTR(test, false, p, !=, NULL)
#define KUNIT_EXPECT_PTR_EQ(test, l, r)	KUNIT_COMPARE_PTR(test, false, l, ==, r)

#define KUNIT_ASSERT_EQ(test, l, r)	KUNIT_COMPARE(test, true, l, ==, r)
#define KUNIT_ASSERT_NE(test, l, r)	KUNIT_COMPARE(test, true, l, !=, r)
#define KUNIT_ASSERT_LT(test, l, r)	KUNIT_COMPARE(test, true, l, <, r)
#define KUNIT_ASSERT_LE(test, l, r)	KUNIT_COMPARE(test, true, l, <=, r)
#define KUNIT_ASSERT_GT(test, l, r)	KUNIT_COMPARE(test, true, l, >, r)
#define KUNIT_ASSERT_GE(test, l, r)	KUNIT_COMPARE(test, true, l, >=, r)
#define KUNIT_ASSERT_TRUE(test, c)	KUNIT_CHECK(test, true, c, "%s", #c)
#define KUNIT_ASSERT_FALSE(test, c)	KUNIT_CHECK(test, true, !(c), "not %s", #c)
#define KUNIT_ASSERT_STREQ(test, l, r)	KUNIT_COMPARE_STR(test, true, l, r)
#define KUNIT_ASSERT_NULL(test, p)	KUNIT_COMPARE_PTR(test, true, p, ==, NULL)
#define KUNIT_ASSERT_NOT_NULL(test, p)	KUNIT_COMPARE_PTR(test, true, p, !=, NULL)
#define KUNIT_ASSERT_PTR_EQ(test, l, r)	KUNIT_COMPARE_PTR(test, true, l, ==, r)

#define KUNIT_FAIL(test, ...) \
	kunit_failed(test, false, __FILE__, __LINE__, __VA_ARGS__)

static inline void kunit_run(struct kunit_suite *suite, struct kunit *test,
			     void (*run_case)(struct kunit *test))
{
	struct kunit_memory *m, *next;

	if (!setjmp(test->stop)) {
		if (suite->init && suite->init(test))
			kunit_failed(test, true, suite->name, 0, "init");
		run_case(test);
	}
	if (!setjmp(test->stop) && suite->exit)
		suite->exit(test);
	for (m = test->memory; m; m = next) {
		next = m->next;
		free(m);
	}
}

static inline int kunit_main(struct kunit_suite *suite, const char *filter)
{
	struct kunit_case *c;
	unsigned int number = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (suite->suite_init && suite->suite_init(suite)) {
		printf("not ok 1 %s\n", suite->name);
		return 1;
	}
	for (c = suite->test_cases; c->run_case; c++) {
		struct kunit test = { .name = c->name };

		if (filter && !strstr(c->name, filter))
			continue;
		kunit_run(suite, &test, c->run_case);
		if (test.failures > KUNIT_TOLD_MAX)
			printf("# %s: %u failures\n", c->name, test.failures);
		printf("%sok %u %s\n", test.failures ? "not " : "", ++number, c->name);
		failed += !!test.failures;
	}
	if (suite->suite_exit)
		suite->suite_exit(suite);
	printf("1..%u\n", number);
	return failed || !number;
}

#define kunit_test_suites(suite) \
	int main(int argc, char **argv) \
	{ \
		return kunit_main(suite, argc > 1 ? argv[1] : NULL); \
	}

#define MODULE_DESCRIPTION(text)	struct kunit
#define MODULE_LICENSE(text)		struct kunit

#endif /* RMP_HOST_KUNIT_H */
