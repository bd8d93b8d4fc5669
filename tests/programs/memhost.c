// SPDX-License-Identifier: MIT
/*
 * The side that is put to and got from: memhost SEGMENT LAYOUT [SEED]
 *
 * With a seed all memory has its pattern before it is published.
 *
 * Publishes one region, says "published", and then answers each line of its
 * input with one line, "ok ..." or "bad ...":
 *
 *   fill SEED                    writes the pattern to all memory
 *   check GAPS PLACES [N]        compares all of it: gaps and guards with one
 *                                seed, places with the other; place N counts as gap
 *   around GAPS                  compares only gaps and guards
 *   await GAPS PLACES [N]        the same, again and again, for a minute at most
 *   add                          registers one more region; answers its offset
 */

#include <rmpool.h>
#include "clock.h"
#include "numbers.h"
#include "pattern.h"

#define ADDED_LENGTH	70001ULL
#define AWAIT_SECONDS	60

struct host {
	struct rmpool *pool;
	struct layout layout;
	uint8_t *memory;	/* guard, region, guard */
	uint64_t total;
	uint32_t segment;
};

static void need(int result)
{
	if (result < 0)
		die("%s", rmpool_error());
}

/* Offset in the segment of memory[0], were it registered. */
#define FIRST	(SEGMENT_BASE - GUARD)

/* @n: seed of gaps, seed of places (0: may be anything), which place counts as gap. */
static bool check(const struct host *h, const long long *n, char *why, size_t size)
{
	uint64_t gaps = (uint64_t)n[0], places = (uint64_t)n[1];
	uint64_t pos = FIRST;
	char what[40];
	uint32_t i;

	for (i = 0; i < h->layout.nr; i++) {
		const struct place *p = &h->layout.places[i];

		if (i == n[2])
			continue;
		snprintf(what, sizeof(what), "before place %u", i);
		if (!pattern_check(h->memory + (pos - FIRST), p->offset - pos, gaps, pos,
				   what, why, size))
			return false;
		snprintf(what, sizeof(what), "place %u", i);
		if (places &&
		    !pattern_check(h->memory + (p->offset - FIRST), p->length, places,
				   p->offset, what, why, size))
			return false;
		pos = p->offset + p->length;
	}
	return pattern_check(h->memory + (pos - FIRST), h->total - (pos - FIRST), gaps, pos,
			     "behind the last place", why, size);
}

static void add_region(const struct host *h)
{
	uint8_t *mem = need_memory(mmap(NULL, ADDED_LENGTH, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	uint64_t offset;
	uint32_t region;

	need(rmpool_register(h->pool, mem, ADDED_LENGTH, RMPOOL_ACCESS_ALL, h->segment,
			     RMPOOL_OFFSET_NEXT, &region, &offset));
	printf("ok %llu\n", (unsigned long long)offset);
}

static void answer(const struct host *h, const char *line)
{
	char why[128] = "";
	long long n[3] = { 0, 0, NO_PLACE };
	double end;
	bool good;

	if (!strncmp(line, "fill ", 5) && numbers(line + 5, n, 1) == 1) {
		pattern_fill(h->memory, h->total, (uint64_t)n[0], FIRST);
		puts("ok");
	} else if ((!strncmp(line, "check ", 6) && numbers(line + 6, n, 3) >= 2) ||
		   (!strncmp(line, "around ", 7) && numbers(line + 7, n, 1) == 1)) {
		good = check(h, n, why, sizeof(why));
		printf("%s%s\n", good ? "ok" : "bad ", why);
	} else if (!strncmp(line, "await ", 6) && numbers(line + 6, n, 3) >= 2) {
		end = now() + AWAIT_SECONDS;
		do
			good = check(h, n, why, sizeof(why));
		while (!good && now() < end);
		printf("%s%s\n", good ? "ok" : "bad ", good ? "" : why);
	} else if (!strcmp(line, "add\n")) {
		add_region(h);
	} else {
		printf("bad command %s", line);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct host h = { .pool = NULL };
	uint32_t region;
	char line[128];

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: memhost SEGMENT LAYOUT [SEED]\n");
		return 2;
	}
	h.layout = layout_named(argv[2]);
	h.total = GUARD + h.layout.length + GUARD;
	h.memory = need_memory(mmap(NULL, h.total, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (argc == 4)
		pattern_fill(h.memory, h.total, argument(argv[3], 0, ~0ULL), FIRST);
	need(rmpool_open(&h.pool, NULL, 0));
	need(rmpool_publish(h.pool, argv[1], &h.segment));
	need(rmpool_register(h.pool, h.memory + GUARD, h.layout.length, RMPOOL_ACCESS_ALL,
			     h.segment, SEGMENT_BASE, &region, NULL));
	puts("published");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		answer(&h, line);
	rmpool_close(h.pool);
	return 0;
}
