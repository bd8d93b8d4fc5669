/* SPDX-License-Identifier: MIT */
/*
 * For test programs: numbers out of arguments, lines of input and files of /proc.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An argument, from @min to @max: all of it is a number, or the program ends. */
static inline unsigned long long argument(const char *text, unsigned long long min,
					  unsigned long long max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || end == text || value < min || value > max) {
		fprintf(stderr, "%s: not a number from %llu to %llu\n", text, min, max);
		exit(2);
	}
	return value;
}

/* Up to @max numbers with blanks between them; returns how many there are, and
 * leaves the rest of @to as it is.
 */
static inline int numbers(const char *text, long long *to, int max)
{
	long long value;
	char *end;
	int n;

	for (n = 0; n < max; n++) {
		errno = 0;
		value = strtoll(text, &end, 0);
		if (errno || end == text)
			break;
		to[n] = value;
		text = end;
	}
	return n;
}

/* Whether this is the line of @name, "NAME: value" or "NAME value". */
static inline bool named_value(const char *line, const char *name, long *value)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) || (line[n] != ':' && line[n] != ' '))
		return false;
	*value = strtol(line + n + 1, NULL, 10);
	return true;
}

#endif /* NUMBERS_H */
