// SPDX-License-Identifier: MIT
/*
 * marks: what many short registrations leave in an address space, and what they cost in
 * one that is full of mappings.
 *
 *	marks maps NODE/SEGMENT N	N pieces at random places are registered, put and
 *					unregistered again
 *	marks cost ROUNDS		medians in us of registering and unregistering 64 KiB
 *					of small pages, and of huge pages, among 5,000
 *					mappings
 */
#include <errno.h>
#include <sys/mman.h>

#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define KIB	1024UL
#define MIB	(1024UL * KIB)
#define ROOM	(1024UL * MIB)		/* address space; little of it becomes memory */
#define PLACES	4096U			/* in it that are used */
#define PIECE	(2 * PAGE)
#define MAPPINGS 5000UL
#define SAMPLE	(64 * KIB)
#define HUGE	(2 * MIB)

static struct rmpool *pool;

static uint8_t *map(size_t size, int flags)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			-1, 0);

	/* cppcheck-suppress memleak ; it was not mapped */
	return at == MAP_FAILED ? NULL : at;
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int lines = 0;
	int c;

	if (!f)
		give_up("no /proc/self/maps");
	while ((c = getc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void maps(const char *name, uint32_t nr)
{
	struct test t = { .name = "registering leaves no marks on the address space" };
	uint64_t random = 88172645463325252, places = ROOM / PIECE / PLACES;
	uint8_t *room = map(ROOM, MAP_NORESERVE), *at;
	uint32_t segment, region, i;
	unsigned int before;
	long pins;
	int ret;

	if (!room || madvise(room, ROOM, MADV_NOHUGEPAGE) ||
	    rmpool_segment_open(pool, name, NULL, 60000, &segment, NULL))
		give_up("%s", rmpool_error());
	pins = pinned_pages();
	before = mappings();
	for (i = 0; i < nr && !t.failed; i++) {
		/* From one end to the other, so that neighbours are of all distances. */
		at = room + next_random(&random) % PLACES * places * PIECE;
		ret = rmpool_register(pool, at, PIECE, 0, 0, 0, &region, NULL);
		if (!expect(&t, !ret, "%u: %s", i, rmpool_error()))
			break;
		memcpy(at, &i, sizeof(i));
		ret = rmpool_put(pool, segment, i % 64 * PIECE, at, PIECE, 60000);
		expect(&t, !ret, "%u: %s", i, rmpool_error());
		ret = rmpool_unregister(pool, region);
		expect(&t, !ret, "%u: %s", i, rmpool_error());
	}
	printf("%u mappings before, %u after %u registrations\n", before, mappings(), i);
	expect(&t, mappings() <= before + 8, "%u mappings, %u before", mappings(), before);
	expect(&t, !status_value("VmPin") && pinned_pages() == pins, "%ld pages stay",
	       pinned_pages() - pins);
	test_end(&t);
	munmap(room, ROOM);
}

static int compare_times(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double median_of(uint8_t *at, unsigned int rounds, double *took)
{
	uint32_t region;
	double began;

	memset(at, 1, SAMPLE);
	for (unsigned int i = 0; i < rounds; i++) {
		began = now();
		if (rmpool_register(pool, at, SAMPLE, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL) ||
		    rmpool_unregister(pool, region))
			give_up("%s", rmpool_error());
		took[i] = now() - began;
	}
	qsort(took, rounds, sizeof(*took), compare_times);
	return took[rounds / 2] * 1e6;
}

static void cost(unsigned int rounds)
{
	uint8_t *many = map(2 * MAPPINGS * PAGE, 0), *small = map(SAMPLE, 0);
	uint8_t *huge = map(HUGE, MAP_HUGETLB);
	double *took = calloc(rounds, sizeof(*took)), first;

	if (!many || !small || !huge || !took)
		give_up("no memory: %s", strerror(errno));
	/* Rights that differ from page to page: each has a mapping of its own. */
	for (size_t i = 0; i < MAPPINGS; i += 2)
		if (mprotect(many + i * PAGE, PAGE, PROT_READ))
			give_up("mprotect: %s", strerror(errno));
	if (mappings() < MAPPINGS)
		give_up("%u mappings", mappings());
	first = median_of(small, rounds, took);
	printf("%.1f %.1f\n", first, median_of(huge, rounds, took));
	free(took);
	munmap(many, 2 * MAPPINGS * PAGE);
	munmap(small, SAMPLE);
	munmap(huge, HUGE);
}

int main(int argc, char **argv)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (argc == 4 && !strcmp(argv[1], "maps"))
		maps(argv[2], (uint32_t)argument(argv[3], 1, 10000000));
	else if (argc == 3 && !strcmp(argv[1], "cost"))
		cost((unsigned int)argument(argv[2], 1, 1000000));
	else
		give_up("marks maps NODE/SEGMENT N | cost ROUNDS");
	rmpool_close(pool);
	return report_failed != 0;
}
