// SPDX-License-Identifier: MIT
/*
 * How far a transfer is; see progress.h. One thread; the state is the caller's.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "output.h"
#include "progress.h"
#include "units.h"

static const double first_after = 0.5;	/* shorter ones are not worth a line */
static const double interval = 0.2;

double clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void progress_start(struct progress *progress, const char *verb, uint64_t total,
		    bool quiet)
{
	*progress = (struct progress){
		.wanted = !quiet && isatty(STDERR_FILENO),
		.verb = verb,
		.total = total,
		.start = clock_seconds(),
	};
	progress->next = progress->start + first_after;
}

const char *progress_line(char *text, size_t room, const char *verb, uint64_t done,
			  uint64_t total, double seconds)
{
	char moved[UNITS_TEXT_MAX], whole[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX];
	char left[UNITS_TEXT_MAX];
	double rate = seconds > 0 ? (double)done / seconds : 0;

	format_bytes(moved, sizeof(moved), done);
	format_rate(speed, sizeof(speed), rate);
	if (!total || done > total) {
		snprintf(text, room, "%s  %s  %s", verb, moved, speed);
		return text;
	}
	format_bytes(whole, sizeof(whole), total);
	format_duration(left, sizeof(left), rate > 0 ? (double)(total - done) / rate : 1e18);
	snprintf(text, room, "%s %3u %%  %s of %s  %s  ETA %s", verb,
		 (unsigned int)((double)done * 100 / (double)total), moved, whole,
		 speed, left);
	return text;
}

void progress_update(struct progress *progress, uint64_t done)
{
	char line[4 * UNITS_TEXT_MAX];
	double now;

	if (!progress->wanted)
		return;
	now = clock_seconds();
	if (now < progress->next)
		return;
	progress->next = now + interval;
	output.unfinished = true;
	/* Back to the start of the line, and clear what was there. */
	fprintf(stderr, "\r\033[K%s",
		progress_line(line, sizeof(line), progress->verb, done, progress->total,
			      now - progress->start));
	fflush(stderr);
}
