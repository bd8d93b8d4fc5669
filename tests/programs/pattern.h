/* SPDX-License-Identifier: MIT */
/*
 * What the test programs of the data path agree on: the bytes that stand at an
 * offset of a segment, and lists of places in it.
 *
 * The host has one region, at an odd address and from the odd offset SEGMENT_BASE
 * of its segment on, with memory around it that nobody may write. In a layout,
 * places follow each other with gaps between them, at odd offsets; what is put
 * to a place is the pattern of a seed, what stands in the gaps that of another.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SEGMENT_BASE	12345ULL	/* where the region begins */
#define GUARD		4173ULL		/* bytes before and behind it */
#define GAP		1013ULL		/* at least, between two places */
#define NO_PLACE	(~0U)
#define MIB		(1ULL << 20)

/* Of layout "chaos" (load.c): so many places for each thread in each area. */
#define CHAOS_AREAS	4U
#define CHAOS_THREADS	8U
#define CHAOS_PLACES	6U
#define CHAOS_LENGTH	32749ULL
#define HOST_SEED	1	/* of all that nobody has put to */

struct place {
	uint64_t offset;	/* in the segment */
	uint64_t length;
};

struct layout {
	struct place *places;
	uint32_t nr;
	uint64_t length;	/* of the region */
};

/* Says why, and ends the program. */
__attribute__((format(printf, 1, 2), noreturn))
static inline void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t x = (index + 1) * 0x9e3779b97f4a7c15ULL ^ seed * 0xd6e8feb86659fd93ULL;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 29;
}

/* The bytes that seed @seed has from offset @pos on. */
static inline void pattern_fill(void *mem, uint64_t length, uint64_t seed, uint64_t pos)
{
	uint8_t *p = mem;

	while (length) {
		uint64_t word = pattern_word(seed, pos / 8), skip = pos % 8;
		uint64_t n = 8 - skip < length ? 8 - skip : length;

		memcpy(p, (uint8_t *)&word + skip, n);
		p += n;
		pos += n;
		length -= n;
	}
}

/* Compares all of them; on a difference says where, in @why. */
static inline bool pattern_check(const void *mem, uint64_t length, uint64_t seed,
				 uint64_t pos, const char *what, char *why, size_t size)
{
	const uint8_t *p = mem;
	uint64_t i = 0;

	while (i < length) {
		uint64_t word = pattern_word(seed, (pos + i) / 8), skip = (pos + i) % 8;
		uint64_t n = 8 - skip < length - i ? 8 - skip : length - i, k;

		for (k = 0; memcmp(p + i, (uint8_t *)&word + skip, n) && k < n; k++)
			if (p[i + k] != ((uint8_t *)&word)[skip + k]) {
				snprintf(why, size, "%s: byte %llu of %llu is wrong", what,
					 (unsigned long long)i + k,
					 (unsigned long long)length);
				return false;
			}
		i += n;
	}
	return true;
}

static inline void *need_memory(void *mem)
{
	if (!mem || mem == MAP_FAILED)
		die("out of memory");
	return mem;
}

static inline void layout_add(struct layout *l, uint64_t length)
{
	uint64_t end = SEGMENT_BASE;

	if (l->nr)
		end = l->places[l->nr - 1].offset + l->places[l->nr - 1].length;
	l->places = need_memory(realloc(l->places, (l->nr + 1) * sizeof(*l->places)));
	l->places[l->nr].offset = (end + GAP) | 1;
	l->places[l->nr].length = length;
	l->length = l->places[l->nr].offset + length + GAP - SEGMENT_BASE;
	l->nr++;
}

static inline void layout_many(struct layout *l, uint32_t nr, uint64_t length)
{
	while (nr--)
		layout_add(l, length);
}

static inline struct layout layout_named(const char *name)
{
	static const uint64_t sizes[] = {
		0, 1, 4095, 4096, 4097, 65537, 2 * MIB - 1, 2 * MIB + 1, 40 * MIB,
	};
	/* Around whole packets of 1024 and 4096 bytes. */
	static const uint64_t packets[] = {
		1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097,
		65535, 65536, 65537, 2 * MIB + 1,
	};
	struct layout l = { .nr = 0 };
	size_t i;

	if (!strcmp(name, "sizes")) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			layout_add(&l, sizes[i]);
	} else if (!strcmp(name, "packets")) {
		for (i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
			layout_add(&l, packets[i]);
	} else if (!strcmp(name, "batch")) {
		layout_many(&l, 4096, 509);
	} else if (!strcmp(name, "many")) {
		layout_many(&l, 10000, 512);
	} else if (!strcmp(name, "chaos")) {
		layout_many(&l, CHAOS_AREAS * CHAOS_THREADS * CHAOS_PLACES, CHAOS_LENGTH);
	} else if (!strcmp(name, "slots")) {
		layout_many(&l, 32, 700);
	} else {
		die("no layout %s", name);
	}
	return l;
}

#endif /* PATTERN_H */
