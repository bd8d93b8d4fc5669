/* SPDX-License-Identifier: MIT */
/*
 * For test programs that make things up: numbers that follow from a seed, and a
 * table of how each kind of call ended. A fuzzer that only ever meets the first
 * check, or never meets one, tests nothing: tally_judge() fails then.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

struct random {
	uint64_t state;
};

/* The @n-th generator of a seed. */
static inline struct random random_of(uint64_t seed, uint64_t n)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15 + n * 0xbf58476d1ce4e5b9 + 1;

	x = (x ^ (x >> 31)) * 0x94d049bb133111eb;
	x ^= x >> 29;
	return (struct random){ .state = x ? x : 1 };
}

static inline uint64_t any(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1d;
}

static inline uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)(any(r) >> 32) % n;
}

static inline bool chance(struct random *r, uint32_t percent)
{
	return below(r, 100) < percent;
}

/* A number of the kind that programs are wrong about. */
static inline uint64_t number(struct random *r)
{
	static const uint64_t some[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 255, 4095, 4096, 4097, 65535, 65536,
		1U << 20, INT32_MAX, 1ULL << 31, UINT32_MAX, 1ULL << 32,
		1ULL << 47, INT64_MAX, 1ULL << 63, UINT64_MAX, UINT64_MAX - 4095,
	};

	if (chance(r, 10))
		return any(r);
	return some[below(r, sizeof(some) / sizeof(some[0]))];
}

static inline void noise(struct random *r, void *to, size_t n)
{
	for (uint8_t *at = to; n; n--)
		*at++ = (uint8_t)(any(r) >> 56);
}

#define TALLY_ERRORS	160

struct tally {
	const char *name;
	atomic_ulong good;
	atomic_ulong refused[TALLY_ERRORS];	/* by errno */
};

/* @error: 0 or an errno. */
static inline void tally_add(struct tally *t, int error)
{
	if (!error)
		atomic_fetch_add(&t->good, 1);
	else
		atomic_fetch_add(&t->refused[error > 0 && error < TALLY_ERRORS ? error : 0], 1);
}

static inline unsigned long tally_refused(const struct tally *t)
{
	unsigned long sum = 0;

	for (int e = 0; e < TALLY_ERRORS; e++)
		sum += t->refused[e];
	return sum;
}

static inline void tally_print(const struct tally *t, size_t nr)
{
	printf("%-16s %8s %8s  by error\n", "call", "good", "refused");
	for (; nr; nr--, t++) {
		printf("%-16s %8lu %8lu ", t->name, (unsigned long)t->good, tally_refused(t));
		for (int e = 0; e < TALLY_ERRORS; e++) {
			const char *name = strerrorname_np(e);

			if (t->refused[e])
				printf(" %s %lu", name && e ? name : "other",
				       (unsigned long)t->refused[e]);
		}
		putchar('\n');
	}
	fflush(stdout);
}

/* One test: each was seen to succeed and to be refused. */
static inline void tally_judge(const struct tally *t, size_t nr)
{
	struct test judged = { .name = "each call succeeded and was refused" };

	for (; nr; nr--, t++) {
		expect(&judged, t->good, "%s never succeeded", t->name);
		expect(&judged, tally_refused(t), "%s was never refused", t->name);
	}
	test_end(&judged);
}

#endif /* FUZZ_H */
