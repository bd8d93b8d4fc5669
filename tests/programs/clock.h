/* SPDX-License-Identifier: MIT */
/*
 * For test programs: the monotonic clock, and short pauses between two looks at
 * a condition.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdlib.h>
#include <time.h>

/* In seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends early with a signal. */
static inline void pause_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* How long on a machine as usual, in seconds; VM_SLOW is the factor of this one. */
static inline double patience(double usual)
{
	const char *factor = getenv("VM_SLOW");

	return factor ? usual * strtod(factor, NULL) : usual;
}

#endif /* CLOCK_H */
