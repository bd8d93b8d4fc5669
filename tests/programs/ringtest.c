// SPDX-License-Identifier: MIT
/*
 * The completion ring as a program sees it: ringtest NODE/SEGMENT. All in one
 * ring of eight entries; prints what it has shown, a line each.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "pattern.h"

#define ENTRIES		8
#define TIMEOUT_MS	30000
#define SIZE		65536

static struct rmpool *pool;
static uint32_t segment;
static uint8_t *memory;
static uint64_t next_cookie = 1000;	/* of the next request */
static uint64_t unread_cookie = 1000;	/* all below were taken */

static void is(int got, int wanted, const char *what)
{
	if (got != wanted)
		die("%s: %d instead of %d (%s)", what, got, wanted,
		    got < 0 ? rmpool_error() : "");
}

static int readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret = poll(&p, 1, timeout_ms);

	if (ret < 0 || (ret && p.revents != POLLIN))
		die("poll: %d, events %#x", ret, (unsigned int)p.revents);
	return ret;
}

/* Submits @nr; @accepted of them must be taken, or the call fail with that. */
static void submit(uint32_t nr, int accepted, const char *what)
{
	struct rmpool_request r[64];
	uint32_t i;

	for (i = 0; i < nr; i++)
		rmpool_prepare_put(&r[i], segment, SEGMENT_BASE + i * 1000ULL, memory + (size_t)i * 1000,
				   100 + (next_cookie + i) % 800, next_cookie + i);
	is(rmpool_submit(pool, r, nr), accepted, what);
	if (accepted > 0)
		next_cookie += (uint64_t)accepted;
}

/*
 * Takes @nr completions that must be there; each request since the last time
 * ends once. Between the two rails they come in any order.
 */
static void take(int nr, const char *what)
{
	struct rmpool_completion c[ENTRIES + 1];
	bool seen[ENTRIES] = { false };
	int i;

	is(rmpool_poll(pool, c, ENTRIES + 1), nr, what);
	for (i = 0; i < nr; i++) {
		uint64_t k = c[i].cookie - unread_cookie;

		if (k >= (uint64_t)nr || seen[k])
			die("%s: cookie %llu", what, (unsigned long long)c[i].cookie);
		seen[k] = true;
		if (c[i].status || c[i].bytes != 100 + c[i].cookie % 800 || c[i].flags ||
		    c[i].wc_status || c[i].attempts || c[i].rail > 1 ||
		    c[i].elapsed_us > TIMEOUT_MS * 1000U)
			die("%s: cookie %llu: status %d, %llu bytes, flags %#x, rail %u, %u us",
			    what, (unsigned long long)c[i].cookie, c[i].status,
			    (unsigned long long)c[i].bytes, c[i].flags, c[i].rail,
			    c[i].elapsed_us);
	}
	unread_cookie += (uint64_t)nr;
}

static void no_ring(void)
{
	struct rmpool_completion c;
	struct rmpool_request r;

	rmpool_prepare_put(&r, segment, SEGMENT_BASE, memory, 1, 0);
	is(rmpool_submit(pool, &r, 1), -ENXIO, "submit without a ring");
	is(rmpool_wait(pool, 1, 0), -ENXIO, "wait without a ring");
	is(rmpool_poll(pool, &c, 1), -ENXIO, "poll without a ring");
	is(rmpool_ring(pool, 4, -1), -EINVAL, "ring of 4");
	is(rmpool_ring(pool, 9, -1), -EINVAL, "ring of 9");
	is(rmpool_ring(pool, 2 * RMPOOL_RING_MAX, -1), -EINVAL, "ring of 131072");
	is(rmpool_ring(pool, ENTRIES, 12345), -EBADF, "ring with a bad eventfd");
	puts("no ring: refused");
}

static void empty(int fd, int event)
{
	double start = now();

	is(rmpool_ring(pool, ENTRIES, -1), -EBUSY, "second ring");
	is(readable(fd, 0), 0, "poll of an empty ring");
	is(readable(event, 0), 0, "eventfd before all");
	is(rmpool_wait(pool, 1, 0), -ETIME, "look at an empty ring");
	is(rmpool_wait(pool, 0, 0), -EINVAL, "wait for 0");
	is(rmpool_wait(pool, ENTRIES + 1, 0), -EINVAL, "wait for 9");
	is(rmpool_wait(pool, 1, 50), -ETIME, "wait in vain");
	if (now() - start < 0.050)
		die("50 ms were only %.6f s", now() - start);
	take(0, "empty");
	puts("empty: nothing to read, time-out kept");
}

static void one(int fd, int event)
{
	uint64_t count = 0;

	submit(1, 1, "submit 1");
	is(readable(fd, TIMEOUT_MS), 1, "poll after one");
	is(readable(event, TIMEOUT_MS), 1, "eventfd after one");
	if (read(event, &count, sizeof(count)) != sizeof(count) || count != 1)
		die("eventfd counts %llu", (unsigned long long)count);
	is(rmpool_wait(pool, 1, 0), 1, "look after one");
	is(readable(fd, 0), 1, "still unread");
	take(1, "one");
	is(readable(fd, 0), 0, "read");
	is(readable(event, 0), 0, "eventfd read");
	puts("one: poll() and eventfd tell it");
}

/* Fewer than the minimum: the time-out, and what there is stays. */
static void minimum(void)
{
	double start;

	submit(2, 2, "submit 2");
	is(rmpool_wait(pool, 2, TIMEOUT_MS), 2, "wait for 2");
	start = now();
	is(rmpool_wait(pool, 3, 50), -ETIME, "wait for 3 of 2");
	if (now() - start < 0.050)
		die("50 ms were only %.6f s", now() - start);
	is(rmpool_wait(pool, 1, 0), 2, "2 are there");
	puts("minimum: waits for it, keeps what is there");
}

/* Two are unread: six of twelve fit, then none, until some are taken. */
static void full(int fd)
{
	submit(12, ENTRIES - 2, "submit 12 to 6 free entries");
	submit(1, -EAGAIN, "submit to a full ring");
	if (!strstr(rmpool_error(), "8"))
		die("no limit in '%s'", rmpool_error());
	is(rmpool_wait(pool, ENTRIES, TIMEOUT_MS), ENTRIES, "wait for all");
	/* All have ended, but none was taken. */
	submit(1, -EAGAIN, "submit to an unread ring");
	is(readable(fd, 0), 1, "poll of a full ring");
	take(ENTRIES, "full");
	submit(64, ENTRIES, "submit 64 to 8 entries");
	is(rmpool_wait(pool, ENTRIES, TIMEOUT_MS), ENTRIES, "wait for 8");
	take(ENTRIES, "partial");
	puts("full: takes what fits, then EAGAIN, loses nothing");
}

/* Around the end of the ring, from each place in it. */
static void around(void)
{
	uint32_t round, nr;

	for (round = 0; round < 40; round++) {
		nr = 1 + round % ENTRIES;
		submit(nr, (int)nr, "submit around");
		is(rmpool_wait(pool, nr, TIMEOUT_MS), (int)nr, "wait around");
		take((int)nr, "around");
	}
	puts("around: in order of the ring, from each place");
}

/* Batches that wait for no ring leave it alone. */
static void beside(void)
{
	struct rmpool_completion done;
	struct rmpool_request r;

	submit(ENTRIES, ENTRIES, "submit 8");
	rmpool_prepare_put(&r, segment, SEGMENT_BASE, memory, 77, 5);
	is(rmpool_transfer(pool, &r, 1, &done, TIMEOUT_MS), 0, "transfer beside a full ring");
	if (done.cookie != 5 || done.status || done.bytes != 77)
		die("beside: cookie %llu, status %d", (unsigned long long)done.cookie,
		    done.status);
	is(rmpool_wait(pool, ENTRIES, TIMEOUT_MS), ENTRIES, "wait for 8 beside");
	take(ENTRIES, "beside");
	puts("beside: blocking calls need no entry");
}

static void *wait_all(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)rmpool_wait(pool, ENTRIES, -1);
}

/* One that waits without limit is woken by the last of those it waits for. */
static void woken(void)
{
	pthread_t thread;
	void *ret;
	int i;

	if (pthread_create(&thread, NULL, wait_all, NULL))
		die("no thread");
	for (i = 0; i < ENTRIES; i++)
		submit(1, 1, "submit to who waits");
	pthread_join(thread, &ret);
	is((int)(intptr_t)ret, ENTRIES, "the waiting thread");
	take(ENTRIES, "woken");
	puts("woken: a waiting thread gets all");
}

static void cancel(void)
{
	is(rmpool_cancel(pool, 4711), 0, "cancel of nothing");
	is(rmpool_cancel_all(pool), 0, "cancel all of nothing");
	puts("cancel: of nothing, nothing");
}

int main(int argc, char **argv)
{
	int event = eventfd(0, EFD_NONBLOCK);
	uint32_t region;
	int fd;

	if (argc != 2 || event < 0) {
		fprintf(stderr, "usage: ringtest NODE/SEGMENT\n");
		return 2;
	}
	memory = need_memory(mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	is(rmpool_open(&pool, NULL, 0), 0, "open");
	is(rmpool_register(pool, memory, SIZE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL),
	   0, "register");
	is(rmpool_segment_open(pool, argv[1], NULL, TIMEOUT_MS, &segment, NULL), 0,
	   "open segment");
	no_ring();
	is(rmpool_ring(pool, ENTRIES, event), 0, "ring");
	fd = rmpool_fd(pool);
	empty(fd, event);
	one(fd, event);
	minimum();
	full(fd);
	around();
	beside();
	woken();
	cancel();
	rmpool_close(pool);
	return 0;
}
