/* SPDX-License-Identifier: MIT */
/*
 * How far a transfer is: one line on standard error that is written over again
 * and again, only where that is a terminal, and only once it takes long.
 * wipe_progress() of output.h ends it; errors and warnings do that, too.
 */
#ifndef RMPOOL_TOOL_PROGRESS_H
#define RMPOOL_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool wanted;
	const char *verb;	/* "put", "get" */
	uint64_t total;		/* bytes, 0: not known */
	double start;		/* seconds of the monotonic clock */
	double next;		/* when to write again */
};

/* Seconds of the monotonic clock. */
double clock_seconds(void);

void progress_start(struct progress *progress, const char *verb, uint64_t total,
		    bool quiet);
void progress_update(struct progress *progress, uint64_t done);

/* The line itself, for a test to look at. */
const char *progress_line(char *text, size_t room, const char *verb, uint64_t done,
			  uint64_t total, double seconds);

#endif
