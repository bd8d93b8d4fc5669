// SPDX-License-Identifier: MIT
/*
 * Arenas of registered memory.
 *
 *   arena memory                       what is pinned, and when
 *   arena limit                        as a user who may lock 3 MiB
 *   arena move NODE/SEGMENT LAYOUT SEED
 *                                      puts a pattern out of an arena, gets it back
 *                                      into other memory of it, and compares
 *   arena time                         prints nanoseconds for each allocation
 */
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "pattern.h"
#include "report.h"

#define STEP		(2 * MIB)
#define GIB		(1024 * MIB)
#define TIMEOUT_MS	60000

static struct rmpool *pool;

static struct rmpool_arena *create(uint64_t size, uint64_t step)
{
	const struct rmpool_arena_options options = { .size = size, .step = step };
	struct rmpool_arena *arena;

	if (rmpool_arena_create(pool, &options, &arena))
		give_up("%s", rmpool_error());
	return arena;
}

static void *allocate(struct rmpool_arena *arena, uint64_t length, uint64_t align)
{
	void *memory;

	if (rmpool_arena_alloc(arena, length, align, &memory))
		give_up("%s", rmpool_error());
	return memory;
}

static uint64_t pinned(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info.pinned;
}

static uint64_t fallbacks(struct rmpool_arena *arena)
{
	struct rmpool_arena_info info;

	rmpool_arena_info(arena, &info);
	return info.fallbacks;
}

static bool pins(struct test *t, const char *when, uint64_t bytes)
{
	uint64_t is = pinned();

	return expect(t, is == bytes, "%s: %" PRIu64 " bytes are pinned, not %" PRIu64,
		      when, is, bytes);
}

/* ------------------------------------------------------------------ memory */

/* An arena of more than the machine has: it costs what was given out. */
static void grows(void)
{
	struct test t = { .name = "memory is pinned step by step" };
	struct rmpool_arena *arena = create(64 * GIB, 0);
	long before = status_value("VmSize");

	pins(&t, "created", 0);
	allocate(arena, 4096, 4096);
	pins(&t, "first", 16 * MIB);
	allocate(arena, 16 * MIB - 4096, 1);
	pins(&t, "full step", 16 * MIB);
	allocate(arena, 1, 1);
	pins(&t, "next step", 32 * MIB);
	rmpool_arena_reset(arena);
	pins(&t, "reset", 32 * MIB);
	allocate(arena, 4096, 4096);
	pins(&t, "first again", 32 * MIB);
	allocate(arena, 16 * MIB + 1, 1);
	pins(&t, "outside", 48 * MIB + 4096);
	rmpool_arena_reset(arena);
	pins(&t, "outside, reset", 32 * MIB);
	allocate(arena, 17 * MIB, 1);
	rmpool_arena_destroy(arena);
	pins(&t, "destroyed", 0);
	expect(&t, status_value("VmSize") <= before - (long)(64 * GIB / 1024),
	       "address space is left");
	test_end(&t);
}

static long huge_kib(void)
{
	return file_value("/proc/self/smaps_rollup", "AnonHugePages");
}

static void uses_huge_pages(void)
{
	struct test t = { .name = "huge pages" };
	struct rmpool_arena *arena;
	char mode[64] = "";
	long before = huge_kib(), after;
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");

	if (f) {
		if (!fgets(mode, sizeof(mode), f))
			mode[0] = '\0';
		fclose(f);
	}
	if (!mode[0] || strstr(mode, "[never]")) {
		report_skip(t.name, "the kernel has none");
		return;
	}
	arena = create(64 * MIB, 0);
	memset(allocate(arena, 16 * MIB, 1), 1, 16 * MIB);
	after = huge_kib();
	printf("%ld of %llu KiB are huge pages\n", after - before, 16 * MIB / 1024);
	/* All but what the machine had in small pieces only. */
	expect(&t, after - before >= 2048, "%ld KiB before, %ld after", before, after);
	rmpool_arena_destroy(arena);
	test_end(&t);
}

/* ------------------------------------------------------------------- limit */

/* An ordinary user who may lock 3 MiB: one step, and 1 MiB more. */
static void meets_limit(void)
{
	struct test t = { .name = "RLIMIT_MEMLOCK" };
	struct rmpool_arena *arena = create(64 * MIB, STEP);
	struct rmpool_arena_info before, after;
	void *memory = NULL;
	int ret;

	allocate(arena, STEP - MIB / 2, 1);
	pins(&t, "first step", STEP);
	rmpool_arena_info(arena, &before);
	ret = rmpool_arena_alloc(arena, MIB + 1, 1, &memory);
	expect(&t, ret == -ENOMEM && !memory && strstr(rmpool_error(), "RLIMIT_MEMLOCK is 3 MiB"),
	       "more than is left: %d, %s", ret, rmpool_error());
	pins(&t, "refused", STEP);
	rmpool_arena_info(arena, &after);
	expect(&t, !memcmp(&before, &after, sizeof(before)), "the refusal changed the arena");

	allocate(arena, MIB, 1);
	pins(&t, "by itself", STEP + MIB);
	expect(&t, fallbacks(arena) == 1, "%" PRIu64 " fallbacks", fallbacks(arena));
	allocate(arena, MIB / 2, 1);
	pins(&t, "in the rest", STEP + MIB);
	expect(&t, fallbacks(arena) == 1, "%" PRIu64 " fallbacks", fallbacks(arena));
	ret = rmpool_arena_alloc(arena, 1, 1, &memory);
	expect(&t, ret == -ENOMEM && !memory, "nothing left: %d", ret);
	rmpool_arena_destroy(arena);
	pins(&t, "destroyed", 0);
	test_end(&t);
}

/* -------------------------------------------------------------------- move */

static void move(const char *address, const char *name, uint64_t seed)
{
	struct layout l = layout_named(name);
	struct rmpool_arena *arena = create(2 * MIB, MIB / 8);
	struct rmpool_request *requests = need_memory(calloc(2ULL * l.nr, sizeof(*requests)));
	struct rmpool_completion *results = need_memory(calloc(l.nr, sizeof(*results)));
	uint64_t outside, both = 2ULL * l.nr;
	uint32_t segment, i;
	char why[128];

	if (rmpool_segment_open(pool, address, NULL, TIMEOUT_MS, &segment, NULL))
		die("%s", rmpool_error());
	for (i = 0; i < l.nr; i++) {
		const struct place *p = &l.places[i];
		void *from = allocate(arena, p->length, 1);
		/* as different as it can be, with gaps */
		void *to = allocate(arena, p->length, 64);

		pattern_fill(from, p->length, seed, p->offset);
		rmpool_prepare_put(&requests[i], segment, p->offset, from, p->length, i);
		rmpool_prepare_get(&requests[l.nr + i], segment, p->offset, to, p->length, i);
	}
	if (rmpool_transfer(pool, requests, l.nr, results, TIMEOUT_MS) ||
	    rmpool_transfer(pool, requests + l.nr, l.nr, results, TIMEOUT_MS))
		die("%s", rmpool_error());
	for (i = 0; i < both; i++)
		if (!pattern_check((void *)(uintptr_t)requests[i].local_addr, requests[i].length,
				   seed, requests[i].offset, "buffer", why, sizeof(why)))
			die("%u: %s", i, why);
	outside = fallbacks(arena);
	printf("%" PRIu64 " of %" PRIu64 " buffers outside of the arena\n", outside, both);
	if (!outside || outside == both)
		die("they are not on both sides of it");
	rmpool_arena_destroy(arena);
	free(requests);
	free(results);
	free(l.places);
}

/* -------------------------------------------------------------------- time */

static double allocations(struct rmpool_arena *arena, uint64_t size, uint32_t nr)
{
	double start = now();

	for (uint32_t i = 0; i < nr; i++)
		allocate(arena, size, 4096);
	return (now() - start) / nr * 1e9;
}

/* With nothing in it, or registered. */
static double mappings(uint64_t size, uint32_t nr, bool registered)
{
	void **maps = need_memory(calloc(nr, sizeof(*maps)));
	uint32_t *regions = need_memory(calloc(nr, sizeof(*regions)));
	double took, start = now();
	uint32_t i;

	for (i = 0; i < nr; i++) {
		maps[i] = need_memory(mmap(NULL, size, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		if (registered && rmpool_register(pool, maps[i], size, RMPOOL_ACCESS_LOCAL_WRITE,
						  0, 0, &regions[i], NULL))
			die("%s", rmpool_error());
	}
	took = (now() - start) / nr * 1e9;
	for (i = 0; i < nr; i++) {
		if (registered && rmpool_unregister(pool, regions[i]))
			die("%s", rmpool_error());
		munmap(maps[i], size);
	}
	free(maps);
	free(regions);
	return took;
}

static void measure(void)
{
	static const uint64_t sizes[] = { 4096, 65536, MIB };

	printf("ns for each allocation:\n%8s %12s %16s %10s %20s\n", "bytes", "arena, again",
	       "arena, first use", "mmap alone", "mmap and register");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t nr = (uint32_t)(64 * MIB / sizes[i]);
		double first, again;
		struct rmpool_arena *arena;

		if (nr > 1024)
			nr = 1024;
		arena = create(nr * sizes[i], 0);
		first = allocations(arena, sizes[i], nr);
		rmpool_arena_reset(arena);
		again = allocations(arena, sizes[i], nr);
		if (fallbacks(arena))
			die("the arena was too small");
		rmpool_arena_destroy(arena);
		printf("%8" PRIu64 " %12.0f %16.0f %10.0f %20.0f\n", sizes[i], again, first,
		       mappings(sizes[i], nr, false), mappings(sizes[i], nr, true));
	}
}

int main(int argc, char **argv)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (argc == 2 && !strcmp(argv[1], "memory")) {
		grows();
		uses_huge_pages();
	} else if (argc == 2 && !strcmp(argv[1], "limit")) {
		meets_limit();
	} else if (argc == 5 && !strcmp(argv[1], "move")) {
		move(argv[2], argv[3], argument(argv[4], 1, UINT64_MAX));
	} else if (argc == 2 && !strcmp(argv[1], "time")) {
		measure();
	} else {
		give_up("usage: arena memory|limit|time|move NODE/SEGMENT LAYOUT SEED");
	}
	rmpool_close(pool);
	return report_failed ? 1 : 0;
}
