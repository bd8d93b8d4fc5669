// SPDX-License-Identifier: MIT
/*
 * ioctl_fuzz: random calls that are almost right, from several threads, on
 * files that they share and that are opened and closed all the time. What it
 * proves is in the kernel log, and that the pool still works afterwards.
 *
 *	ioctl_fuzz SEED CALLS [NODE SEGMENT]
 *
 * The same seed makes the same calls in each thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "calls.h"
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define THREADS	4
#define FILES	4
#define ARENA	(16UL << 20)

static const char *node = "nobody", *segment = "nothing";
static _Atomic int files[FILES];
static uint8_t *arena;
static uint64_t seed;
static unsigned long nr_calls;
static pthread_t threads[THREADS];
static atomic_int running;
static atomic_ulong results[2];		/* failed, succeeded */

struct random {
	uint64_t state;
};

static uint64_t any(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1d;
}

static uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)(any(r) >> 32) % n;
}

static bool chance(struct random *r, uint32_t percent)
{
	return below(r, 100) < percent;
}

/* A number of the kind that programs are wrong about. */
static uint64_t number(struct random *r)
{
	static const uint64_t some[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 255, 4095, 4096, 4097, 65535, 65536,
		1U << 20, INT32_MAX, 1ULL << 31, UINT32_MAX, 1ULL << 32,
		1ULL << 47, INT64_MAX, 1ULL << 63, UINT64_MAX, UINT64_MAX - 4095,
	};

	if (chance(r, 10))
		return any(r);
	return some[below(r, sizeof(some) / sizeof(some[0]))];
}

static uint64_t address(struct random *r)
{
	if (chance(r, 6))
		return number(r);
	return (uintptr_t)arena + below(r, (uint32_t)ARENA);
}

static uint64_t length(struct random *r)
{
	return chance(r, 8) ? number(r) : below(r, 300000);
}

static uint32_t handle(struct random *r)
{
	return chance(r, 8) ? (uint32_t)number(r) : below(r, 12);
}

/* Waits end by themselves, or by the signals of main(). */
static int64_t timeout(struct random *r)
{
	return chance(r, 20) ? (int64_t)number(r) : (int64_t)below(r, 20000000);
}

static uint32_t flags(struct random *r)
{
	return chance(r, 4) ? (uint32_t)number(r) : 0;
}

static void make_requests(struct random *r, struct rmpool_request *to, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		memset(&to[i], 0, sizeof(to[i]));
		to[i].cookie = below(r, 8);
		to[i].local_addr = address(r);
		to[i].length = length(r);
		to[i].offset = chance(r, 8) ? number(r) : below(r, 1 << 20);
		to[i].segment = handle(r);
		to[i].op = (uint8_t)(1 + below(r, chance(r, 4) ? 255 : 2));
		to[i].prio = (uint8_t)below(r, chance(r, 4) ? 255 : 3);
		to[i].flags = (uint16_t)flags(r);
		to[i].timeout_ms = chance(r, 10) ? (uint32_t)number(r) : 1000;
	}
}

/* Its own memory for each thread: an argument, and arrays behind it. */
static void make_argument(struct random *r, const struct call *c, void *at)
{
	struct rmpool_request *requests = (void *)((uint8_t *)at + PAGE);
	struct rmpool_completion *done = (void *)((uint8_t *)at + 16 * PAGE);
	uint32_t n = chance(r, 5) ? (uint32_t)number(r) : 1 + below(r, 64);
	bool wild = chance(r, 5);

	memset(at, 0, PAGE);
	switch (c->cmd) {
	case RMPOOL_IOC_RING_SETUP: {
		struct rmpool_ring_setup *a = at;

		a->entries = chance(r, 20) ? (uint32_t)number(r) :
			     8U << below(r, 8);
		a->eventfd = chance(r, 80) ? -1 : (int32_t)number(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SEGMENT_CREATE: {
		struct rmpool_segment_create *a = at;

		snprintf(a->name, sizeof(a->name), "fuzz%u", below(r, 6));
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_REGION_ADD: {
		struct rmpool_region_add *a = at;

		a->addr = address(r);
		a->length = length(r);
		a->segment = chance(r, 50) ? 0 : handle(r);
		a->offset = chance(r, 30) ? length(r) :
			    a->segment ? RMPOOL_OFFSET_NEXT : 0;
		a->access = below(r, 8) | flags(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SEGMENT_OPEN: {
		struct rmpool_segment_open *a = at;

		strncpy(a->node, chance(r, 80) ? node : "nobody",
			sizeof(a->node) - 1);
		strncpy(a->name, chance(r, 80) ? segment : "nothing",
			sizeof(a->name) - 1);
		a->timeout_ns = timeout(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SEGMENT_LIST: {
		struct rmpool_segment_list *a = at;

		a->handle = handle(r);
		a->regions = wild ? number(r) : (uintptr_t)done;
		a->first = (uint32_t)number(r);
		a->nr = n < 512 ? n : 512;
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SUBMIT: {
		struct rmpool_submit *a = at;

		make_requests(r, requests, n < 64 ? n : 64);
		a->requests = wild ? number(r) : (uintptr_t)requests;
		a->nr = n;
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SUBMIT_SYNC: {
		struct rmpool_submit_sync *a = at;

		make_requests(r, requests, n < 64 ? n : 64);
		a->requests = wild ? number(r) : (uintptr_t)requests;
		a->results = chance(r, 5) ? number(r) : (uintptr_t)done;
		a->nr = n < 64 ? n : 64;
		a->timeout_ns = timeout(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_WAIT: {
		struct rmpool_wait *a = at;

		a->min = chance(r, 10) ? (uint32_t)number(r) : 1 + below(r, 9);
		a->timeout_ns = timeout(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_CANCEL: {
		struct rmpool_cancel *a = at;

		a->cookie = below(r, 8);
		a->flags = below(r, 2) | flags(r);
		break;
	}
	default: {
		struct rmpool_handle *a = at;

		a->handle = handle(r);
		a->flags = flags(r);
	}
	}
	/* anything anywhere, now and then */
	if (chance(r, 5)) {
		uint64_t value = number(r);

		memcpy((uint8_t *)at + below(r, _IOC_SIZE(c->cmd)), &value, 8);
	}
}

/* The ring of a file, as a reader that is not to be trusted. */
static void play_with_ring(struct random *r, int fd)
{
	size_t size = chance(r, 10) ? number(r) % (1UL << 30) :
		      PAGE * (1 + below(r, 12));
	uint32_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     chance(r, 90) ? MAP_SHARED : MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		return;
	if (chance(r, 50))
		map[0] = map[32];		/* all is read */
	else
		map[below(r, 64)] = (uint32_t)number(r);
	munmap(map, size);
}

static void *play(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct random r = { .state = seed * 0x9e3779b97f4a7c15 + me + 1 };
	uint8_t *at = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long i;
	int fd, old;

	for (i = 0; i < nr_calls; i++) {
		const struct call *c = &calls[below(&r, NR_CALLS)];
		unsigned int cmd = c->cmd;
		uint32_t which = below(&r, FILES);

		fd = atomic_load(&files[which]);
		if (chance(&r, 1)) {
			old = atomic_exchange(&files[which],
					      open(RMPOOL_DEVICE_PATH, O_RDWR));
			close(old);
			continue;
		}
		if (chance(&r, 5)) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			poll(&p, 1, (int)below(&r, 5));
			play_with_ring(&r, fd);
			continue;
		}
		make_argument(&r, c, at);
		if (chance(&r, 3))
			cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd),
				   _IOC_NR(cmd), below(&r, 256));
		if (chance(&r, 1))
			cmd = (unsigned int)any(&r);
		atomic_fetch_add(&results[!ioctl(fd, cmd,
						 chance(&r, 2) ?
						 (void *)address(&r) : at)], 1);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

static void test_afterwards(void)
{
	struct test t = { .name = "the pool works afterwards" };
	struct rmpool *pool;
	uint8_t data[5000], back[5000];
	uint32_t seg, region[2];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	expect(&t, !rmpool_register(pool, data, sizeof(data), 0, 0, 0,
				    &region[0], NULL) &&
	       !rmpool_register(pool, back, sizeof(back),
				RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region[1],
				NULL), "%s", rmpool_error());
	if (strcmp(node, "nobody")) {
		expect(&t, !rmpool_segment_open(pool, node, segment, 30000,
						&seg, NULL) &&
		       !rmpool_put(pool, seg, 11, data, sizeof(data), 30000) &&
		       !rmpool_get(pool, seg, 11, back, sizeof(back), 30000),
		       "%s", rmpool_error());
		expect(&t, !memcmp(data, back, sizeof(data)), "other bytes");
	}
	rmpool_close(pool);
	test_end(&t);
}

int main(int argc, char **argv)
{
	struct test t = { .name = "random calls end" };
	struct sigaction act = { .sa_handler = nothing };
	long before = pinned_pages();
	uintptr_t i;
	int k;

	if (argc < 3)
		give_up("ioctl_fuzz SEED CALLS [NODE SEGMENT]");
	seed = strtoull(argv[1], NULL, 0);
	nr_calls = strtoul(argv[2], NULL, 0);
	if (argc > 4) {
		node = argv[3];
		segment = argv[4];
	}
	printf("seed %llu\n", (unsigned long long)seed);
	sigaction(SIGUSR1, &act, NULL);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < FILES; i++)
		atomic_store(&files[i], open(RMPOOL_DEVICE_PATH, O_RDWR));
	atomic_store(&running, THREADS);
	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, play, (void *)i))
			give_up("no thread");
	}
	/* Ends endless waits. */
	while (atomic_load(&running)) {
		pause_ms(20);
		for (i = 0; i < THREADS; i++)
			pthread_kill(threads[i], SIGUSR1);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < FILES; i++)
		close(atomic_load(&files[i]));
	printf("%lu calls failed, %lu succeeded\n", results[0], results[1]);
	expect(&t, results[1] > nr_calls / 4, "only %lu calls succeeded",
	       results[1]);
	test_end(&t);

	struct test pins = { .name = "all pins are given back" };

	for (k = 0; k < 15000 && pinned_pages() != before; k++)
		pause_ms(1);
	expect(&pins, pinned_pages() == before && !status_value("VmPin"),
	       "%ld pages, VmPin %ld kB", pinned_pages() - before,
	       status_value("VmPin"));
	test_end(&pins);
	test_afterwards();
	return report_failed != 0;
}
