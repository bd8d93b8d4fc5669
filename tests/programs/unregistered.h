/* SPDX-License-Identifier: MIT */
/*
 * For test programs that put and get memory which nobody registered
 * (RMPOOL_REQUEST_REGISTER): such memory, requests with the flag, what arrived, and a
 * main() with a part for each word.
 */
#ifndef UNREGISTERED_H
#define UNREGISTERED_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <rmpool.h>
#include "pattern.h"
#include "report.h"

#define PAGE		4096UL
#define SPACE		(16 * MIB)
#define ODD		1237UL		/* where buffers begin in their first page */
#define TIMEOUT_MS	60000
#define REGISTER	RMPOOL_REQUEST_REGISTER
#define THREADS		8U

static struct rmpool *pool;
static uint32_t segment;
static uint8_t *mirror;		/* registered; what is in the segment is got to it */

static inline uint8_t *map(size_t size)
{
	return need_memory(mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* New memory at that address. */
static inline uint8_t *map_over(uint8_t *at, size_t size)
{
	return need_memory(mmap(at, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

static inline uint8_t *filled(size_t size, uint64_t seed)
{
	uint8_t *at = map(size);

	pattern_fill(at, size, seed, 0);
	return at;
}

static inline int put(uint64_t offset, const void *at, size_t length)
{
	return rmpool_put_flags(pool, segment, offset, at, length, REGISTER, TIMEOUT_MS);
}

static inline int get(uint64_t offset, void *at, size_t length)
{
	return rmpool_get_flags(pool, segment, offset, at, length, REGISTER, TIMEOUT_MS);
}

static inline struct rmpool_info info(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info;
}

/* The bytes that seed @seed has from @pos on are at the peer. */
static inline void arrived(struct test *t, const char *what, uint64_t offset, uint64_t length,
		    uint64_t seed, uint64_t pos)
{
	char why[128] = "";

	memset(mirror, 0, length);
	if (expect(t, !rmpool_get(pool, segment, offset, mirror, length, TIMEOUT_MS), "%s: %s",
		   what, rmpool_error()))
		expect(t, pattern_check(mirror, length, seed, pos, what, why, sizeof(why)), "%s",
		       why);
}

/* A word of the command line, and what is done then. */
struct part {
	const char *name;
	void (*run)(void);
};

/* The program: NAME NODE/SEGMENT. */
static inline int run_part(int argc, char **argv, const struct part *parts, size_t nr,
			   const char *usage)
{
	size_t i;

	for (i = 0; argc == 3 && i < nr; i++) {
		if (strcmp(argv[1], parts[i].name))
			continue;
		if (rmpool_open(&pool, NULL, 0) ||
		    rmpool_segment_open(pool, argv[2], NULL, TIMEOUT_MS, &segment, NULL))
			give_up("%s", rmpool_error());
		parts[i].run();
		return report_failed != 0;
	}
	give_up("%s", usage);
}

#endif /* UNREGISTERED_H */
