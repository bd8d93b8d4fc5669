// SPDX-License-Identifier: MIT
/*
 * many_published: a segment of very many regions, and the end of its process.
 *
 *	many_published host N NAME	publishes it, says "ready", and waits for its death;
 *					for each SIGUSR1 it registers one more region behind
 *					the others and says "more" and its number
 *	many_published peer N NODE/SEGMENT
 *					opens it, gets from its last region, says
 *					"opened", and gets until that is gone
 *	many_published get I NODE/SEGMENT
 *					opens it, and gets from region I
 *
 * Regions are of one page each, and the page tells which one it is.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define BATCH	1000U
#define MORE	64U

static struct rmpool *pool;

static void register_all(struct rmpool_region_add *adds, uint32_t nr)
{
	int ret = rmpool_register_many(pool, adds, nr, sizeof(*adds));
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (ret != (int)nr || adds[i].status)
			give_up("%s", rmpool_error());
}

static void host(uint32_t nr, const char *name)
{
	static struct rmpool_region_add adds[BATCH];
	uint32_t segment, i;
	uint8_t *memory, *at;
	sigset_t more;
	int sig;

	sigemptyset(&more);
	sigaddset(&more, SIGUSR1);
	sigprocmask(SIG_BLOCK, &more, NULL);
	memory = mmap(NULL, (nr + MORE) * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		give_up("no memory for %u pages", nr);
	if (rmpool_publish(pool, name, &segment))
		give_up("%s", rmpool_error());
	for (i = 0; i < nr + MORE; i++) {
		/* From here on one by one. */
		if (i == nr) {
			puts("ready");
			fflush(stdout);
		}
		while (i >= nr && sigwait(&more, &sig))
			;
		at = memory + i * PAGE;
		memcpy(at, &i, sizeof(i));
		rmpool_prepare_region(&adds[i % BATCH], at, PAGE, RMPOOL_ACCESS_REMOTE_READ,
				      segment, i * PAGE);
		if (i >= nr) {
			register_all(&adds[i % BATCH], 1);
			printf("more %u\n", i);
			fflush(stdout);
		} else if (i % BATCH == BATCH - 1 || i == nr - 1) {
			register_all(adds, i % BATCH + 1);
		}
	}
	give_up("no more than %u", MORE);
}

/* With a page to get into. */
static uint8_t *open_it(const char *name, uint32_t *segment, struct rmpool_segment_info *info)
{
	uint32_t region;
	uint8_t *page;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED ||
	    rmpool_register(pool, page, PAGE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL) ||
	    rmpool_segment_open(pool, name, NULL, 300000, segment, info))
		give_up("%s", rmpool_error());
	return page;
}

static void get_one(uint32_t i, const char *name)
{
	struct rmpool_segment_info info;
	uint32_t segment, seen;
	uint8_t *page = open_it(name, &segment, &info);

	if (rmpool_get(pool, segment, i * PAGE, page, PAGE, 60000))
		give_up("region %u: %s", i, rmpool_error());
	memcpy(&seen, page, sizeof(seen));
	if (seen != i)
		give_up("region %u has page %u", i, seen);
}

static void peer(uint32_t nr, const char *name)
{
	struct test t = { .name = "a segment of many regions goes with its process" };
	struct rmpool_segment_info info;
	uint32_t segment, seen;
	uint8_t *page = open_it(name, &segment, &info);
	double end;
	int ret;

	expect(&t, info.nr_regions == nr, "%u regions", info.nr_regions);
	ret = rmpool_get(pool, segment, (nr - 1) * PAGE, page, PAGE, 60000);
	memcpy(&seen, page, sizeof(seen));
	expect(&t, !ret && seen == nr - 1, "page %u: %s", seen, rmpool_error());
	puts("opened");
	fflush(stdout);
	end = now() + patience(200);
	while (!ret && now() < end)
		ret = rmpool_get(pool, segment, (nr - 1) * PAGE, page, PAGE, 60000);
	expect(&t, ret == -ESTALE, "at the end: %s", ret ? rmpool_error() : "still there");
	test_end(&t);
}

int main(int argc, char **argv)
{
	uint32_t nr;

	if (argc != 4)
		give_up("many_published host N NAME | peer N NODE/SEGMENT | get I NODE/SEGMENT");
	nr = (uint32_t)argument(argv[2], 1, 1000000);
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (!strcmp(argv[1], "host"))
		host(nr, argv[3]);
	else if (!strcmp(argv[1], "peer"))
		peer(nr, argv[3]);
	else if (!strcmp(argv[1], "get"))
		get_one(nr, argv[3]);
	else
		give_up("%s: neither host, peer nor get", argv[1]);
	return report_failed != 0;
}
