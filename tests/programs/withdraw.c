// SPDX-License-Identifier: MIT
/*
 * withdraw: memory that is taken back while peers use it.
 *
 *	withdraw host SEGMENT MIB [PAGES]
 * publishes it, and behind it so many pages, each a region, says "ok", and answers
 * commands with a line each:
 *	publish		registers it again, full of one pattern: "ok"
 *	refill		fills it with that while it is registered: "ok"
 *	busy		waits until somebody has put something: "ok"
 *	withdraw	unregisters all with one call, and fills it with another pattern:
 *			"ok MS KIB": how long that took, and what VmPin said afterwards
 *	stays MS	looks at it for so long, whether anything comes: "ok" or "bad ..."
 *
 *	withdraw user NODE/SEGMENT MIB strict|loose
 * puts and gets all of it again and again and compares, says "using" after the first
 * round, and ends with SIGTERM. If it is strict, no request may fail. Else they may,
 * with errors that say that the memory or the way there went, and it opens the segment
 * again; but none may get bytes that the host had there after it took the memory back.
 */
#include <errno.h>
#include <signal.h>

#include <rmpool.h>
#include "clock.h"
#include "pattern.h"
#include "report.h"

enum {
	FRESH = 1,		/* seeds: what is published */
	TAKEN = 2,		/* what the host has there afterwards */
	FIRST = 1000,		/* what users put, one for each round */
	REQUESTS = 16,		/* at once */
	PAGE = 4096,
	PAGES = 4000,		/* at most */
};

static struct rmpool *pool;
static uint8_t *memory;
static size_t size;
static volatile sig_atomic_t ended;

static void need(int result)
{
	if (result < 0)
		die("%s", rmpool_error());
}

static uint8_t *allocate(size_t length)
{
	return need_memory(mmap(NULL, length, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* -------------------------------------------------------------------- the host */

static bool still(uint64_t seed, char *why, size_t length)
{
	return pattern_check(memory, size, seed, 0, "memory", why, length);
}

/* The first is the memory, then come the pages. */
static struct rmpool_region_add regions[PAGES + 1];
static uint32_t nr_regions;

static void publish(uint32_t segment)
{
	uint32_t i;
	int ret;

	pattern_fill(memory, size, FRESH, 0);
	rmpool_prepare_region(&regions[0], memory, size, RMPOOL_ACCESS_ALL, segment, 0);
	for (i = 1; i < nr_regions; i++) {
		uint64_t at = size + (i - 1) * (uint64_t)PAGE;

		rmpool_prepare_region(&regions[i], memory + at, PAGE, RMPOOL_ACCESS_ALL, segment,
				      at);
	}
	ret = rmpool_register_many(pool, regions, nr_regions, sizeof(regions[0]));
	for (i = 0; i < nr_regions; i++)
		if (ret != (int)nr_regions || regions[i].status)
			die("%s", rmpool_error());
	puts("ok");
}

static void refill(void)
{
	pattern_fill(memory, size, FRESH, 0);
	puts("ok");
}

static void busy(void)
{
	double end = now() + patience(60);
	char why[128];

	while (still(FRESH, why, sizeof(why))) {
		if (now() > end) {
			puts("bad: nobody puts anything");
			return;
		}
		pause_ms(5);
	}
	puts("ok");
}

static void take_back(void)
{
	static uint32_t handles[PAGES + 1];
	double began;
	uint32_t i;
	long pins;

	for (i = 0; i < nr_regions; i++)
		handles[i] = regions[i].handle;
	began = now();
	if (nr_regions == 1)
		need(rmpool_unregister(pool, handles[0]));
	else
		need(rmpool_unregister_many(pool, handles, nr_regions, NULL));
	began = now() - began;
	pins = status_value("VmPin");
	pattern_fill(memory, size, TAKEN, 0);
	printf("ok %.0f %ld\n", began * 1e3, pins);
}

static void stays(double seconds)
{
	double end = now() + seconds;
	char why[128];

	do {
		if (!still(TAKEN, why, sizeof(why))) {
			printf("bad: %s\n", why);
			return;
		}
	} while (now() < end);
	puts("ok");
}

static void host(const char *name, uint32_t pages)
{
	uint32_t segment;
	char line[64];

	nr_regions = 1 + pages;
	memory = allocate(size + pages * (size_t)PAGE);
	need(rmpool_publish(pool, name, &segment));
	publish(segment);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "publish\n"))
			publish(segment);
		else if (!strcmp(line, "refill\n"))
			refill();
		else if (!strcmp(line, "busy\n"))
			busy();
		else if (!strcmp(line, "withdraw\n"))
			take_back();
		else if (!strncmp(line, "stays ", 6))
			stays((double)strtoul(line + 6, NULL, 10) / 1e3);
		else
			printf("bad command %s", line);
		fflush(stdout);
	}
}

/* -------------------------------------------------------------------- its users */

static uint32_t segment_used;
static unsigned long failed, good;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static bool may_fail_with(int error)
{
	switch (-error) {
	case ESTALE:		/* it was taken back, or its process has ended */
	case ENXIO:		/* it is not there, or not yet again */
	case EREMOTEIO:		/* it went while the request was on its way */
	case ECONNRESET:	/* and the way with it */
	case ENOTCONN:
	case ETIMEDOUT:
		return true;
	}
	return false;
}

static void open_again(const char *address)
{
	double end = now() + patience(120);

	if (segment_used)
		rmpool_segment_close(pool, segment_used);
	segment_used = 0;
	while (!ended && rmpool_segment_open(pool, address, NULL, 1000, &segment_used, NULL)) {
		if (now() > end)
			die("the segment does not come back: %s", rmpool_error());
		pause_ms(20);
	}
}

/* All of it in one batch. Returns whether all went well. */
static bool transfer(bool put, uint8_t *local, bool strict, bool *stale)
{
	struct rmpool_completion results[REQUESTS];
	struct rmpool_request requests[REQUESTS];
	size_t each = size / REQUESTS, i;
	bool well = true;
	int ret;

	for (i = 0; i < REQUESTS; i++) {
		if (put)
			rmpool_prepare_put(&requests[i], segment_used, i * each,
					   local + i * each, each, i);
		else
			rmpool_prepare_get(&requests[i], segment_used, i * each,
					   local + i * each, each, i);
		requests[i].timeout_ms = (uint32_t)(patience(30) * 1e3);
	}
	ret = rmpool_transfer(pool, requests, REQUESTS, results, -1);
	if (ended)
		return false;
	need(ret);
	for (i = 0; i < REQUESTS; i++) {
		if (!results[i].status) {
			good++;
			continue;
		}
		if (strict || !may_fail_with(results[i].status))
			die("a %s ended: %s, verbs status %u, rail %u", put ? "put" : "get",
			    rmpool_status_text(results[i].status), results[i].wc_status,
			    results[i].rail);
		failed++;
		well = false;
		*stale |= results[i].status == -ESTALE;
	}
	return well;
}

/* What the host has there when nobody may see it. */
static void must_not_be_taken(const uint8_t *in)
{
	uint64_t word;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		memcpy(&word, in + i * 8, 8);
		if (word == pattern_word(TAKEN, i))
			die("byte %zu was read after it was taken back", i * 8);
	}
}

static void user(const char *address, bool strict)
{
	struct sigaction action = { .sa_handler = on_signal };
	unsigned long rounds = 0;
	uint8_t *out, *in;
	uint32_t region;
	char why[128];

	sigaction(SIGTERM, &action, NULL);
	memory = allocate(2 * size);
	out = memory;
	in = memory + size;
	need(rmpool_register(pool, memory, 2 * size, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region,
			     NULL));
	open_again(address);
	while (!ended) {
		bool stale = false, well;

		pattern_fill(out, size, FIRST + rounds, 0);
		memset(in, 0, size);
		well = transfer(true, out, strict, &stale);
		well &= !ended && transfer(false, in, strict, &stale);
		if (ended)
			break;
		if (strict && !pattern_check(in, size, FIRST + rounds, 0, "what was got", why,
					     sizeof(why)))
			die("%s", why);
		must_not_be_taken(in);
		if (well && !rounds++) {
			puts("using");
			fflush(stdout);
		}
		if (stale)
			open_again(address);
		else if (!well)
			pause_ms(10);
	}
	printf("%lu rounds, %lu requests went well, %lu did not\n", rounds, good, failed);
}

int main(int argc, char **argv)
{
	if (argc >= 4)
		size = (size_t)argument(argv[3], 1, 1024) * MIB;
	if (argc >= 4 && rmpool_open(&pool, NULL, 0))
		die("%s", rmpool_error());
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "host"))
		host(argv[2], argc == 5 ? (uint32_t)argument(argv[4], 0, PAGES) : 0);
	else if (argc == 5 && !strcmp(argv[1], "user"))
		user(argv[2], !strcmp(argv[4], "strict"));
	else
		give_up("withdraw host SEGMENT MIB [PAGES] | user NODE/SEGMENT MIB strict|loose");
	rmpool_close(pool);
	return 0;
}
