// SPDX-License-Identifier: MIT
/*
 * Numbers and words as people write and read them; see units.h. No state, so
 * no locking and no lifetime rules.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rmpool.h>

#include "units.h"

static const char suffixes[] = "KMGT";

const char *parse_size(const char *text, uint64_t *bytes)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	unsigned int shift = 0;
	unsigned long long value;
	const char *suffix;
	char *end;

	/* strtoull() would take blanks, signs and octal as well. */
	if (hex ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return "not a number of bytes";
	errno = 0;
	value = strtoull(digits, &end, hex ? 16 : 10);
	if (errno)
		return "larger than 64 bits";
	if (*end) {
		suffix = strchr(suffixes, toupper((unsigned char)*end));
		if (!suffix)
			return "unknown unit; K, M, G and T are known (powers of 1024)";
		if (!strcmp(end + 1, "B"))
			return "ambiguous unit; write K or KiB for 1024 bytes";
		if (end[1] && strcmp(end + 1, "iB"))
			return "unknown unit; K, M, G and T are known (powers of 1024)";
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
	}
	if (value > UINT64_MAX >> shift)
		return "larger than 64 bits";
	*bytes = (uint64_t)value << shift;
	return NULL;
}

const char *parse_seconds(const char *text, int *ms)
{
	double value;
	char *end;

	if (!strcmp(text, "none")) {
		*ms = -1;
		return NULL;
	}
	/* strtod() would take blanks, signs, hexadecimal and words as well. */
	if (!isdigit((unsigned char)*text) || strpbrk(text, "xX"))
		return "not a number of seconds";
	value = strtod(text, &end);
	if (*end)
		return "not a number of seconds";
	if (value < 0.001)
		return "less than a millisecond";
	if (value > INT_MAX / 1000)
		return "longer than 24 days; write none for no limit";
	*ms = (int)(value * 1000);
	return NULL;
}

const char *format_bytes(char *text, size_t room, uint64_t bytes)
{
	/* One more than is read: the largest number has 16 EiB. */
	static const char units[] = "KMGTPE";
	unsigned int shift = 10;
	double value;

	if (bytes < 1024) {
		snprintf(text, room, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
		return text;
	}
	while (shift < 60 && bytes >> shift >= 1024)
		shift += 10;
	value = (double)bytes / (double)(1ULL << shift);
	if (bytes & ((1ULL << shift) - 1))
		snprintf(text, room, "%.1f %ciB", value, units[shift / 10 - 1]);
	else
		snprintf(text, room, "%" PRIu64 " %ciB", bytes >> shift,
			 units[shift / 10 - 1]);
	return text;
}

const char *format_exact(char *text, size_t room, uint64_t bytes)
{
	char size[UNITS_TEXT_MAX];

	format_bytes(size, sizeof(size), bytes);
	if (bytes < 1024)
		snprintf(text, room, "%s", size);
	else
		snprintf(text, room, "%" PRIu64 " bytes (%s)", bytes, size);
	return text;
}

const char *format_rate(char *text, size_t room, double bytes_per_second)
{
	double rate = bytes_per_second / 1e6;

	/* Three digits that count, so that a slow link does not show 0. */
	if (rate >= 100)
		snprintf(text, room, "%.1f MB/s", rate);
	else if (rate >= 1)
		snprintf(text, room, "%.2f MB/s", rate);
	else
		snprintf(text, room, "%.4f MB/s", rate);
	return text;
}

const char *format_duration(char *text, size_t room, double seconds)
{
	uint64_t whole = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : UINT64_MAX;
	uint64_t hours = whole / 3600;

	if (whole == UINT64_MAX)
		snprintf(text, room, "--:--");
	else if (hours)
		snprintf(text, room, "%" PRIu64 ":%02u:%02u", hours,
			 (unsigned int)(whole / 60 % 60), (unsigned int)(whole % 60));
	else
		snprintf(text, room, "%u:%02u", (unsigned int)(whole / 60),
			 (unsigned int)(whole % 60));
	return text;
}

const char *format_uuid(char *text, size_t room, const uint8_t uuid[16])
{
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < 16 && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%02x",
					 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					 uuid[i]);
	return text;
}

const char *format_access(uint32_t access)
{
	switch (access & (RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE)) {
	case RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE:
		return "read, write";
	case RMPOOL_ACCESS_REMOTE_READ:
		return "read";
	case RMPOOL_ACCESS_REMOTE_WRITE:
		return "write";
	default:
		return "none";
	}
}

/* Letters to add, drop, replace or swap with the next to make one the other. */
static unsigned int edit_distance(const char *a, const char *b)
{
	enum { MOST = 31 };
	unsigned int rows[3][MOST + 1];
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	size_t la = strlen(a), lb = strlen(b), i, j;

	if (la > MOST || lb > MOST)
		return ~0U;
	for (j = 0; j <= lb; j++)
		last[j] = (unsigned int)j;
	memcpy(before, last, sizeof(rows[0]));
	for (i = 1; i <= la; i++) {
		now[0] = (unsigned int)i;
		for (j = 1; j <= lb; j++) {
			unsigned int best = last[j - 1] + (a[i - 1] != b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}

const char *nearest_word(const char *word, const char *const *candidates)
{
	size_t length = strlen(word);
	unsigned int best = ~0U;
	const char *found = NULL;

	for (; *candidates; candidates++) {
		unsigned int distance = edit_distance(word, *candidates);

		/* A beginning or a longer form of the word is as good as one slip. */
		if (length > 1 && (!strncmp(word, *candidates, length) ||
				   !strncmp(word, *candidates, strlen(*candidates))))
			distance = distance ? 1 : 0;
		if (distance < best) {
			best = distance;
			found = *candidates;
		}
	}
	return best <= 1 + length / 4 && best < length ? found : NULL;
}
