// SPDX-License-Identifier: MIT
/*
 * A process that uses segments of peers step by step, as a suite tells it.
 *
 *	steps run
 * reads commands from standard input and answers each with one line: the name
 * of the error or OK, how many milliseconds it took, and a text.
 *
 *	open NODE/SEGMENT MS	put OFFSET LENGTH MS	get OFFSET LENGTH MS
 *	fill BYTE		peek OFFSET LENGTH BYTE MS
 *	verify OFFSET LENGTH MS	close
 *	publish NAME LENGTH	allow NAME everybody	allow NAME ENTRY...
 *	paint NAME BYTE		painted NAME OFFSET LENGTH BYTE
 *				what is published is filled, and looked at, here
 *	start NUMBER LENGTH MS	puts through the ring, not waited for
 *	wait MIN MS		drain MS	cancel
 *	interrupt COMMAND...	the same, while SIGINT comes again and again
 *
 *	steps stream NODE/SEGMENT OFFSET LENGTH DEPTH
 * keeps DEPTH puts in flight, says "streaming" when all are, and ends with
 * SIGTERM, or with the first put that fails. Then it waits for all others and
 * prints what became of them. Exits 0 if all went well, 1 if some failed, and
 * 2 if some did not end.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rmpool.h>
#include "clock.h"
#include "numbers.h"

enum {
	MEMORY = 16 << 20,
	RING = 1024,
	STATUSES = 8,
	PUBLISHED = 4,
};

static struct rmpool *pool;
static uint8_t *memory;
static uint32_t segment;
static uint8_t pattern = 1;
static volatile sig_atomic_t ended;
static char note[64];		/* of a step, in place of the library's words */

/* What this process gives to others. */
static struct {
	char name[RMPOOL_NAME_MAX];
	uint32_t segment;
	uint8_t *memory;
	size_t length;
} published[PUBLISHED];

/* What became of requests that went through the ring. */
static struct {
	uint32_t waiting;
	struct {
		int status;
		uint32_t nr;
	} seen[STATUSES];
	uint32_t longest_us;
	uint32_t shortest_us;
} tally;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static const char *error_name(int error)
{
	const char *name = error ? strerrorname_np(-error) : "OK";

	return name ? name : "?";
}

static int setup(size_t length)
{
	uint32_t region;
	int ret;

	memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	memset(memory, pattern, length);
	ret = rmpool_open(&pool, NULL, 0);
	if (!ret)
		ret = rmpool_ring(pool, RING, -1);
	if (!ret)
		ret = rmpool_register(pool, memory, length,
				      RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region,
				      NULL);
	if (ret)
		fprintf(stderr, "steps: %s\n", rmpool_error());
	return ret;
}

static int start(uint32_t nr, uint64_t offset, uint64_t length, uint32_t ms)
{
	struct rmpool_request req;
	int ret;

	for (uint32_t i = 0; i < nr; i++) {
		rmpool_prepare_put(&req, segment, offset, memory, length, i);
		req.timeout_ms = ms;
		ret = rmpool_submit(pool, &req, 1);
		if (ret < 0)
			return ret;
		tally.waiting += (uint32_t)ret;
	}
	return 0;
}

static void count(const struct rmpool_completion *c)
{
	int i;

	tally.waiting--;
	if (c->elapsed_us > tally.longest_us)
		tally.longest_us = c->elapsed_us;
	if (c->elapsed_us < tally.shortest_us || !tally.shortest_us)
		tally.shortest_us = c->elapsed_us;
	for (i = 0; i < STATUSES - 1; i++)
		if (!tally.seen[i].nr || tally.seen[i].status == c->status)
			break;
	tally.seen[i].status = c->status;
	tally.seen[i].nr++;
}

/* Takes what is there. Returns the first status that was not 0. */
static int collect(void)
{
	struct rmpool_completion c[64];
	int n, status = 0;

	while ((n = rmpool_poll(pool, c, 64)) > 0)
		for (int i = 0; i < n; i++) {
			count(&c[i]);
			if (!status)
				status = c[i].status;
		}
	return n < 0 ? n : status;
}

/* Until all have ended; -ETIME when some have not after @seconds. */
static int drain(double seconds)
{
	double end = now() + seconds;

	while (collect(), tally.waiting) {
		double left = end - now();

		if (left <= 0)
			return -ETIME;
		rmpool_wait(pool, 1, (int)(left * 1e3) + 1);
	}
	return 0;
}

static void print_tally(void)
{
	printf("shortest %u ms longest %u ms", tally.shortest_us / 1000,
	       tally.longest_us / 1000);
	for (int i = 0; i < STATUSES; i++)
		if (tally.seen[i].nr)
			printf(" %s=%u", error_name(tally.seen[i].status),
			       tally.seen[i].nr);
	if (tally.waiting)
		printf(" not-ended=%u", tally.waiting);
}

static int peek(uint64_t offset, size_t length, uint8_t byte, int ms)
{
	int ret;

	memset(memory, ~byte, length);
	ret = rmpool_get(pool, segment, offset, memory, length, ms);
	for (size_t i = 0; i < length && !ret; i++)
		if (memory[i] != byte)
			ret = -EILSEQ;
	return ret;
}

static int verify(uint64_t offset, size_t length, int ms)
{
	int ret;

	pattern = (uint8_t)(pattern * 5 + 3);
	memset(memory, pattern, length);
	ret = rmpool_put(pool, segment, offset, memory, length, ms);
	return ret ? ret : peek(offset, length, pattern, ms);
}

/* SIGINT again and again: one that comes before the call would be lost. */
static void interrupt(bool on)
{
	static timer_t timer;
	static bool made;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGINT };
	struct itimerspec when = { };

	if (!made && timer_create(CLOCK_MONOTONIC, &event, &timer))
		abort();
	made = true;
	if (on) {
		when.it_value.tv_nsec = 500000000;
		when.it_interval.tv_nsec = 100000000;
	}
	timer_settime(timer, 0, &when, NULL);
}

static int publish(const char *name, size_t length)
{
	uint32_t region, i = 0;
	void *mem;
	int ret;

	while (i < PUBLISHED && published[i].segment)
		i++;
	if (i == PUBLISHED || strlen(name) >= RMPOOL_NAME_MAX)
		return -EINVAL;
	mem = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	ret = rmpool_publish(pool, name, &published[i].segment);
	if (!ret)
		ret = rmpool_register(pool, mem, length, RMPOOL_ACCESS_REMOTE_READ |
				      RMPOOL_ACCESS_REMOTE_WRITE, published[i].segment, 0,
				      &region, NULL);
	memcpy(published[i].name, name, strlen(name) + 1);
	published[i].memory = mem;
	published[i].length = length;
	return ret;
}

/* Which one that is; PUBLISHED: none. */
static uint32_t published_as(const char *name)
{
	uint32_t i = 0;

	while (i < PUBLISHED && strcmp(published[i].name, name))
		i++;
	return i;
}

static int paint(const char *name, uint8_t byte)
{
	uint32_t i = published_as(name);

	if (i == PUBLISHED)
		return -ENOENT;
	memset(published[i].memory, byte, published[i].length);
	return 0;
}

static int painted(const char *name, size_t offset, size_t length, uint8_t byte)
{
	uint32_t i = published_as(name);
	const volatile uint8_t *at;

	if (i == PUBLISHED)
		return -ENOENT;
	if (offset > published[i].length || length > published[i].length - offset)
		return -ERANGE;
	at = published[i].memory + offset;
	for (size_t k = 0; k < length; k++)
		if (at[k] != byte) {
			snprintf(note, sizeof(note), "byte %zu is %u", offset + k, at[k]);
			return -EILSEQ;
		}
	return 0;
}

/* @rest: words, each an entry of the list. */
static int allow(const char *name, char *rest)
{
	struct rmpool_allow_entry entries[RMPOOL_ALLOW_MAX];
	uint32_t i = published_as(name), nr = 0;
	char *word, *next = NULL;
	int ret;

	if (i == PUBLISHED)
		return -ENOENT;
	if (!strcmp(rest, "everybody")) {
		ret = rmpool_segment_allow(pool, published[i].segment, NULL, 0);
	} else {
		for (word = strtok_r(rest, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
			if (nr == RMPOOL_ALLOW_MAX)
				return -E2BIG;
			ret = rmpool_allow_parse(word, &entries[nr++]);
			if (ret)
				return ret;
		}
		ret = rmpool_segment_allow(pool, published[i].segment, entries, nr);
	}
	if (ret < 0)
		return ret;
	snprintf(note, sizeof(note), "rekeyed %d", ret);
	return 0;
}

/* Ends the first word; returns what is behind it. */
static char *end_word(char *line)
{
	char *rest = line + strcspn(line, " ");

	if (*rest)
		*rest++ = 0;
	return rest;
}

static int step(char *line)
{
	long long n[4] = { 0 }, a, b, c, d;
	char *rest = end_word(line);
	uint64_t offset;
	size_t length;
	int ret;

	if (!strcmp(line, "open")) {
		numbers(end_word(rest), n, 1);
		return rmpool_segment_open(pool, rest, NULL, (int)n[0], &segment, NULL);
	}
	if (!strcmp(line, "publish")) {
		numbers(end_word(rest), n, 1);
		return n[0] > 0 ? publish(rest, (size_t)n[0]) : -EINVAL;
	}
	if (!strcmp(line, "allow")) {
		char *list = end_word(rest);

		return allow(rest, list);
	}
	if (!strcmp(line, "paint") || !strcmp(line, "painted")) {
		numbers(end_word(rest), n, 3);
		if (n[0] < 0 || n[1] < 0)
			return -EINVAL;
		if (!strcmp(line, "paint"))
			return paint(rest, (uint8_t)n[0]);
		return painted(rest, (size_t)n[0], (size_t)n[1], (uint8_t)n[2]);
	}
	numbers(rest, n, 4);
	a = n[0];
	b = n[1];
	c = n[2];
	d = n[3];
	if (a < 0 || b > MEMORY)
		return -EINVAL;
	if (!strcmp(line, "wait")) {
		ret = rmpool_wait(pool, (uint32_t)a, (int)b);
		return ret < 0 ? ret : 0;
	}
	if (b < 0)
		return -EINVAL;
	offset = (uint64_t)a;
	length = (size_t)b;
	if (!strcmp(line, "put"))
		return rmpool_put(pool, segment, offset, memory, length, (int)c);
	if (!strcmp(line, "get"))
		return rmpool_get(pool, segment, offset, memory, length, (int)c);
	if (!strcmp(line, "fill")) {
		memset(memory, (int)a, MEMORY);
		return 0;
	}
	if (!strcmp(line, "peek"))
		return peek(offset, length, (uint8_t)c, (int)d);
	if (!strcmp(line, "verify"))
		return verify(offset, length, (int)c);
	if (!strcmp(line, "close"))
		return rmpool_segment_close(pool, segment);
	if (!strcmp(line, "start")) {
		memset(&tally, 0, sizeof(tally));
		return start((uint32_t)a, 0, length, (uint32_t)c);
	}
	if (!strcmp(line, "cancel")) {
		ret = rmpool_cancel_all(pool);
		return ret < 0 ? ret : 0;
	}
	if (!strcmp(line, "drain"))
		return drain((double)a / 1e3);
	return -ENOSYS;
}

static int run_line(char *line)
{
	int ret;

	if (strncmp(line, "interrupt ", 10))
		return step(line);
	interrupt(true);
	ret = step(line + 10);
	interrupt(false);
	return ret;
}

static int run(void)
{
	char line[512];

	if (setup(MEMORY))
		return 1;
	puts("OK 0 started");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		double began = now();
		bool drained;
		int ret;

		line[strcspn(line, "\n")] = 0;
		drained = !strncmp(line, "drain", 5);
		note[0] = 0;
		ret = run_line(line);
		printf("%s %.0f ", error_name(ret), (now() - began) * 1e3);
		if (drained)
			print_tally();
		else
			printf("%s", *note ? note : ret ? rmpool_error() : "done");
		printf("\n");
		fflush(stdout);
	}
	return 0;
}

static int stream(char **argv)
{
	uint64_t offset = strtoull(argv[1], NULL, 0);
	uint64_t length = strtoull(argv[2], NULL, 0);
	uint32_t depth = (uint32_t)argument(argv[3], 1, RMPOOL_BATCH_MAX);
	int ret;

	ret = setup(length);
	if (ret)
		return 2;
	ret = rmpool_segment_open(pool, argv[0], NULL, 30000, &segment, NULL);
	if (!ret)
		ret = start(depth, offset, length, 0);
	if (ret) {
		fprintf(stderr, "steps: %s\n", rmpool_error());
		return 2;
	}
	puts("streaming");
	fflush(stdout);
	while (!ended && !ret) {
		rmpool_wait(pool, 1, 1000);
		ret = collect();
		if (!ret)
			ret = start(depth - tally.waiting, offset, length, 0);
	}
	drain(patience(20));
	print_tally();
	printf("\n");
	if (tally.waiting)
		return 2;
	for (int i = 0; i < STATUSES; i++)
		if (tally.seen[i].nr && tally.seen[i].status)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (argc == 2 && !strcmp(argv[1], "run"))
		return run();
	if (argc == 6 && !strcmp(argv[1], "stream"))
		return stream(argv + 2);
	fprintf(stderr, "usage: steps run | steps stream NODE/SEGMENT OFFSET LENGTH DEPTH\n");
	return 2;
}
