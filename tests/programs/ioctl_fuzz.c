// SPDX-License-Identifier: MIT
/*
 * ioctl_fuzz: random calls that are almost right, from several threads, on
 * files that they share and that are opened, copied and closed all the time;
 * the memory that they name is unmapped and mapped anew meanwhile, so are rings
 * and the eventfds of rings, and children inherit all of it. What it proves is
 * in the kernel log, and that the pool still works afterwards.
 *
 *	ioctl_fuzz SEED CALLS [NODE SEGMENT]
 *
 * CALLS is the sum over all threads. The same seed makes the same calls in each
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "calls.h"
#include "clock.h"
#include "fuzz.h"
#include "udmabuf.h"

#define PAGE	4096UL
#define THREADS	4
#define FILES	4
#define ARENA	(16UL << 20)
#define BUFFER	(1UL << 20)

/* A mapping of a ring; who takes it out of its place owns it. */
struct mapping {
	uint32_t *at;
	size_t size;
};

static const char *node = "nobody", *segment = "nothing";
static _Atomic int files[FILES], events[FILES];
static _Atomic(struct mapping *) mappings[FILES];
static uint8_t *arena;
static int buffer;			/* a dma-buf, or -1 */
static uint64_t seed;
static unsigned long nr_calls;		/* of one thread */
static pthread_t threads[THREADS];
static atomic_int running;
static struct tally tallies[NR_CALLS];
static atomic_ulong unknown[2];		/* numbers of no call: refused, taken */

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
		to[i].flags = (uint16_t)(flags(r) | (chance(r, 50) ? RMPOOL_REQUEST_REGISTER : 0));
		to[i].timeout_ms = chance(r, 10) ? (uint32_t)number(r) : 1000;
	}
}

static void make_region(struct random *r, struct rmpool_region_add *a)
{
	a->addr = address(r);
	a->length = length(r);
	a->segment = chance(r, 50) ? 0 : handle(r);
	a->offset = chance(r, 30) ? length(r) : a->segment ? RMPOOL_OFFSET_NEXT : 0;
	a->access = below(r, 8) | flags(r);
	a->flags = flags(r);
	if (chance(r, 10)) {
		a->flags |= RMPOOL_REGION_DMABUF;
		a->dmabuf_fd = chance(r, 80) ? buffer : (int32_t)number(r);
		a->dmabuf_offset = chance(r, 10) ? number(r) : below(r, (uint32_t)BUFFER);
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
		a->eventfd = chance(r, 60) ? -1 :
			     chance(r, 90) ? atomic_load(&events[below(r, FILES)]) :
			     (int32_t)number(r);
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SEGMENT_CREATE: {
		struct rmpool_segment_create *a = at;

		snprintf(a->name, sizeof(a->name), "fuzz%u", below(r, 6));
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_REGION_ADD:
		make_region(r, at);
		break;
	case RMPOOL_IOC_REGION_ADD_MANY: {
		struct rmpool_region_add *adds = (void *)requests;
		struct rmpool_region_add_many *a = at;

		n = chance(r, 5) ? n : 1 + below(r, 4);
		memset(adds, 0, 4 * sizeof(*adds));
		for (int i = 0; i < 4; i++)
			make_region(r, &adds[i]);
		a->regions = wild ? number(r) : (uintptr_t)adds;
		a->nr = n;
		a->size = chance(r, 5) ? (uint32_t)number(r) : sizeof(*adds);
		/* Too many, or too large, is refused at once. Else what is behind the
		 * buffer would be written to, and that is the C library's.
		 */
		if (n <= RMPOOL_BATCH_MAX && a->size <= PAGE &&
		    (uint64_t)n * a->size > 12 * PAGE) {
			a->size = sizeof(*adds);
			a->nr = 4;
		}
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_REGION_DEL_MANY: {
		struct rmpool_region_del_many *a = at;
		uint32_t *handles = (void *)requests;

		for (int i = 0; i < 64; i++)
			handles[i] = chance(r, 50) ? handle(r) : below(r, 64);
		a->handles = wild ? number(r) : (uintptr_t)handles;
		a->status = chance(r, 30) ? 0 :
			    chance(r, 5) ? number(r) : (uintptr_t)done;
		a->nr = n;
		a->flags = flags(r);
		break;
	}
	case RMPOOL_IOC_SEGMENT_ALLOW: {
		struct rmpool_allow_entry *list = (void *)requests;
		struct rmpool_segment_allow *a = at;

		memset(list, 0, 8 * sizeof(*list));
		for (int i = 0; i < 8; i++) {
			snprintf(list[i].peer, sizeof(list[i].peer), "%s",
				 chance(r, 10) ? "*" : chance(r, 50) ? node : "nobody");
			if (chance(r, 60))
				list[i].peer[0] = (char)('a' + i);
			list[i].access = chance(r, 5) ? (uint32_t)number(r) : below(r, 4) << 1;
		}
		a->entries = wild ? number(r) : (uintptr_t)list;
		a->handle = handle(r);
		a->nr = chance(r, 5) ? (uint32_t)number(r) : below(r, 8);
		a->size = chance(r, 5) ? (uint32_t)number(r) : sizeof(*list);
		a->flags = flags(r) | (chance(r, 80) ? RMPOOL_ALLOW_LIST : 0);
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

/* The ring of a file, as a reader that is not to be trusted: writes to it, and
 * keeps it, or gives all or a part of it back.
 */
static void play_with_ring(struct random *r, int fd)
{
	_Atomic(struct mapping *) *place = &mappings[below(r, FILES)];
	struct mapping *m = atomic_exchange(place, NULL);

	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			abort();
		m->size = chance(r, 10) ? number(r) % (1UL << 30) :
			  PAGE * (1 + below(r, 12));
		m->at = mmap(NULL, m->size, PROT_READ | PROT_WRITE,
			     chance(r, 90) ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		if (m->at == MAP_FAILED) {
			free(m);
			return;
		}
	}
	if (chance(r, 50))
		m->at[0] = m->at[32];		/* all is read */
	else
		m->at[below(r, 64)] = (uint32_t)number(r);
	if (chance(r, 60)) {
		m = atomic_exchange(place, m);
		if (!m)
			return;
	}
	/* Nothing comes back after this: it would be SIGBUS. */
	if (chance(r, 20))
		madvise(m->at, m->size, MADV_DONTNEED);
	/* The end first, so that a part of it is there alone for a moment. */
	if (m->size > PAGE)
		munmap((uint8_t *)m->at + PAGE, m->size - PAGE);
	munmap(m->at, PAGE);
	free(m);
}

/* Takes memory away from under regions and requests. There is never a hole, in
 * which another thread's memory could come to lie.
 */
static void play_with_memory(struct random *r)
{
	uint32_t page = below(r, ARENA / PAGE - 64);
	void *at = arena + page * PAGE;
	size_t size = (1 + below(r, 64)) * PAGE;
	void *got = at;

	switch (below(r, 5)) {
	case 0:
		got = mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 1:
		madvise(at, size, MADV_DONTNEED);
		break;
	case 2:
		mprotect(at, size, PROT_READ);
		break;
	default:
		got = mmap(at, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	if (got != at)
		abort();
}

/* A child that has all files, and their rings, and no right to use them. */
static void play_with_child(struct random *r)
{
	uint32_t ms = below(r, 30);

	if (fork())
		return;
	for (int i = 0; i < FILES; i++) {
		struct rmpool_handle h = { .handle = below(r, 12) };
		struct rmpool_info info;
		int fd = atomic_load(&files[i]);
		void *ring;

		ioctl(fd, RMPOOL_IOC_INFO, &info);
		ioctl(fd, RMPOOL_IOC_REGION_DEL, &h);
		ioctl(fd, RMPOOL_IOC_SEGMENT_CLOSE, &h);
		ring = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
		if (ring != MAP_FAILED && chance(r, 50))
			munmap(ring, PAGE);
		if (chance(r, 50))
			close(fd);
	}
	pause_ms(ms);
	_exit(0);
}

/* One call in a hundred is one of these. */
static void play_with_files(struct random *r)
{
	uint32_t to = below(r, FILES);
	int fd = -1;

	switch (below(r, 8)) {
	case 0:		/* the same file twice: it ends with the last */
		fd = dup(atomic_load(&files[below(r, FILES)]));
		break;
	case 1:
		close(atomic_exchange(&events[to], eventfd(0, EFD_NONBLOCK)));
		return;
	case 2:
		play_with_child(r);
		return;
	default:
		fd = open(RMPOOL_DEVICE_PATH, O_RDWR);
	}
	/* Others may be in a call on it. */
	close(atomic_exchange(&files[to], fd));
}

static void fuzz_call(struct random *r, int fd, void *at)
{
	uint32_t which = below(r, NR_CALLS);
	const struct call *c = &calls[which];
	unsigned int cmd = c->cmd;
	int error;

	make_argument(r, c, at);
	if (chance(r, 3))
		cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), below(r, 256));
	if (chance(r, 1)) {
		cmd = (unsigned int)any(r);
		c = NULL;
	}
	error = ioctl(fd, cmd, chance(r, 2) ? (void *)address(r) : at) ? errno : 0;
	if (c)
		tally_add(&tallies[which], error);
	else
		atomic_fetch_add(&unknown[!error], 1);
}

static void *play(void *arg)
{
	struct random r = random_of(seed, (uintptr_t)arg);
	uint8_t *at = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		give_up("no memory");
	for (unsigned long i = 0; i < nr_calls; i++) {
		int fd = atomic_load(&files[below(&r, FILES)]);

		if (chance(&r, 1))
			play_with_files(&r);
		if (chance(&r, 2))
			play_with_memory(&r);
		if (chance(&r, 5)) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			poll(&p, 1, (int)below(&r, 5));
			play_with_ring(&r, fd);
		}
		fuzz_call(&r, fd, at);
	}
	munmap(at, 32 * PAGE);
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

/* All threads, and what they leave open. */
static void run_threads(void)
{
	uintptr_t i;

	/* Memory is registered for requests wherever it is: what is behind the arena is the
	 * C library's, and a get that reaches beyond its end must not write there.
	 */
	arena = mmap(NULL, ARENA + PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || mprotect(arena + ARENA, PAGE, PROT_NONE))
		give_up("no memory");
	for (i = 0; i < FILES; i++) {
		atomic_store(&files[i], open(RMPOOL_DEVICE_PATH, O_RDWR));
		atomic_store(&events[i], eventfd(0, EFD_NONBLOCK));
	}
	buffer = udmabuf_new(BUFFER, 0, NULL);
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
	for (i = 0; i < FILES; i++) {
		struct mapping *m = atomic_load(&mappings[i]);

		close(atomic_load(&files[i]));
		close(atomic_load(&events[i]));
		if (m)
			munmap(m->at, m->size);
		free(m);
	}
	if (buffer >= 0)
		close(buffer);
	/* Children are not kept, and this ends when there are none. */
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	struct test end = { .name = "random calls end" };
	struct test pins = { .name = "all pins are given back" };
	struct sigaction act = { .sa_handler = nothing };
	struct rmpool *keep;
	uint32_t opened;
	long before;
	int k;

	if (argc < 3)
		give_up("ioctl_fuzz SEED CALLS [NODE SEGMENT]");
	seed = argument(argv[1], 0, UINT64_MAX);
	nr_calls = (unsigned long)argument(argv[2], THREADS, UINT32_MAX) / THREADS;
	if (argc > 4) {
		node = argv[3];
		segment = argv[4];
	}
	printf("seed %llu, %d threads, %lu calls each\n", (unsigned long long)seed,
	       THREADS, nr_calls);
	fflush(stdout);		/* or each child has it to print as well */
	sigaction(SIGUSR1, &act, NULL);
	signal(SIGCHLD, SIG_IGN);
	for (size_t i = 0; i < NR_CALLS; i++)
		tallies[i].name = calls[i].name;
	/* Opened all the time, so that calls find it there within their time. */
	if (rmpool_open(&keep, NULL, 0) ||
	    (argc > 4 && rmpool_segment_open(keep, node, segment, 60000, &opened, NULL)))
		give_up("%s", rmpool_error());
	before = pinned_pages();
	run_threads();
	tally_print(tallies, NR_CALLS);
	printf("numbers of no call: %lu refused, %lu taken\n", unknown[0], unknown[1]);
	expect(&end, !unknown[1], "%lu numbers of no call were taken", unknown[1]);
	test_end(&end);
	tally_judge(tallies, NR_CALLS);

	for (k = 0; k < 60000 && pinned_pages() != before; k++)
		pause_ms(1);
	expect(&pins, pinned_pages() == before && !status_value("VmPin"),
	       "%ld pages, VmPin %ld kB", pinned_pages() - before,
	       status_value("VmPin"));
	test_end(&pins);
	rmpool_close(keep);
	test_afterwards();
	return report_failed != 0;
}
