// SPDX-License-Identifier: MIT
/*
 * Puts and gets of memory that nobody registered (RMPOOL_REQUEST_REGISTER).
 *
 *   regcache cases NODE/SEGMENT		that has 16 MiB or more
 *   regcache bound NODE/SEGMENT		with parameter cache_mib=4
 *   regcache memlock NODE/SEGMENT	as a user who may lock 4 MiB
 *   regcache off NODE/SEGMENT		with parameter cache_mib=0
 *   regcache hold NODE/SEGMENT		says "held" and stays
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "unregistered.h"

#define LENGTH		(MIB + 4321)

/* How many of each since @before. */
static void counted(struct test *t, const char *when, const struct rmpool_info *before,
		    uint64_t hits, uint64_t misses)
{
	struct rmpool_info after = info();

	expect(t, after.cache_hits - before->cache_hits == hits &&
	       after.cache_misses - before->cache_misses == misses,
	       "%s: %" PRIu64 " hits and %" PRIu64 " misses, not %" PRIu64 " and %" PRIu64, when,
	       (uint64_t)(after.cache_hits - before->cache_hits),
	       (uint64_t)(after.cache_misses - before->cache_misses), hits, misses);
}

/* --------------------------------------------------------------------- cases */

static void test_moves(void)
{
	struct test t = { .name = "put and get: right bytes, registered once" };
	uint8_t *from = filled(LENGTH + ODD, 1), *to = map(LENGTH + 2 * PAGE);
	struct rmpool_info before = info();
	long pins = status_value("VmPin");
	int i;

	expect(&t, rmpool_put(pool, segment, 0, from + ODD, LENGTH, TIMEOUT_MS) == -EFAULT,
	       "without the flag: %s", rmpool_error());
	counted(&t, "without the flag", &before, 0, 0);
	for (i = 0; i < 3; i++) {
		expect(&t, !put(0, from + ODD, LENGTH), "put: %s", rmpool_error());
		expect(&t, !get(0, to + ODD, LENGTH), "get: %s", rmpool_error());
		counted(&t, "round", &before, 2 * (uint64_t)i, 2);
		expect(&t, !memcmp(to + ODD, from + ODD, LENGTH), "other bytes, round %d", i);
		expect(&t, !to[ODD - 1] && !to[ODD + LENGTH], "bytes beside, round %d", i);
		memset(to, 0, LENGTH + 2 * PAGE);
	}
	arrived(&t, "put", 0, LENGTH, 1, ODD);
	/* Pages that the request has, and no others. */
	expect(&t, info().cache_bytes - before.cache_bytes == 2 * (MIB + 2 * PAGE),
	       "%" PRIu64 " bytes", (uint64_t)(info().cache_bytes - before.cache_bytes));
	expect(&t, status_value("VmPin") - pins == 2 * (long)(MIB + 2 * PAGE) / 1024,
	       "VmPin grew by %ld kB", status_value("VmPin") - pins);
	/* A part of it, and one for which it may only be read. */
	expect(&t, !put(0, from + ODD + 1000, 1000), "part: %s", rmpool_error());
	counted(&t, "part", &before, 5, 2);
	expect(&t, !get(0, from + ODD, 1000), "get into it: %s", rmpool_error());
	counted(&t, "get into it", &before, 5, 3);
	/* Kept, but still not for those who do not ask for it. */
	expect(&t, rmpool_put(pool, segment, 0, from + ODD, LENGTH, TIMEOUT_MS) == -EFAULT,
	       "without the flag, afterwards: %s", rmpool_error());
	munmap(from, LENGTH + ODD);
	munmap(to, LENGTH + 2 * PAGE);
	test_end(&t);
}

/* What is at the address now is what moves. */
static void test_remapped(void)
{
	static const char *const hows[] = { "munmap", "MADV_DONTNEED", "mremap", "mmap over it" };
	struct test t = { .name = "other memory at the same address: its bytes" };
	struct rmpool_info before = info();
	uint8_t *at = filled(LENGTH, 10), *other;
	unsigned int i;

	for (i = 0; i < sizeof(hows) / sizeof(hows[0]) && !t.failed; i++) {
		expect(&t, !put(0, at, LENGTH), "%s: put: %s", hows[i], rmpool_error());
		switch (i) {
		case 0:
			munmap(at, LENGTH);
			break;
		case 1:
			madvise(at, LENGTH, MADV_DONTNEED);
			break;
		case 2:
			other = need_memory(mremap(at, LENGTH, LENGTH,
						   MREMAP_MAYMOVE | MREMAP_FIXED, map(LENGTH)));
			munmap(other, LENGTH);
			break;
		default:
			break;
		}
		if (i != 1)
			at = map_over(at, LENGTH);
		pattern_fill(at, LENGTH, 11 + i, 0);
		expect(&t, !put(0, at, LENGTH), "%s: put again: %s", hows[i], rmpool_error());
		arrived(&t, hows[i], 0, LENGTH, 11 + i, 0);
		/* And the other way round. */
		memset(at, 0, LENGTH);
		expect(&t, !get(0, at, LENGTH), "%s: get: %s", hows[i], rmpool_error());
		expect(&t, !memcmp(at, mirror, LENGTH), "%s: other bytes were got", hows[i]);
	}
	expect(&t, info().cache_invalidations - before.cache_invalidations >= i,
	       "%" PRIu64 " invalidations",
	       (uint64_t)(info().cache_invalidations - before.cache_invalidations));
	munmap(at, LENGTH);
	test_end(&t);
}

/* What takes no page away takes no registration away either. */
static void test_stays(void)
{
	struct test t = { .name = "fork, mprotect: stays registered, parent's bytes move" };
	uint8_t *at = filled(LENGTH, 20);
	struct rmpool_info before;
	int status = 0;
	pid_t child;

	expect(&t, !put(0, at, LENGTH), "put: %s", rmpool_error());
	before = info();
	child = fork();
	if (!child) {
		pattern_fill(at, LENGTH, 22, 0);
		_exit(put(0, at, LENGTH) == -EPERM ? 0 : 1);
	}
	pattern_fill(at, LENGTH, 21, 0);
	expect(&t, !put(0, at, LENGTH), "put beside the child: %s", rmpool_error());
	expect(&t, child > 0 && waitpid(child, &status, 0) == child && !status,
	       "the child could put: %d", status);
	arrived(&t, "fork", 0, LENGTH, 21, 0);
	if (mprotect(at, LENGTH, PROT_READ) || mprotect(at, LENGTH, PROT_READ | PROT_WRITE))
		give_up("mprotect: %s", strerror(errno));
	pattern_fill(at, LENGTH, 23, 0);
	expect(&t, !put(0, at, LENGTH), "put after mprotect: %s", rmpool_error());
	arrived(&t, "mprotect", 0, LENGTH, 23, 0);
	counted(&t, "both", &before, 2, 0);
	munmap(at, LENGTH);
	test_end(&t);
}

static void test_read_only(void)
{
	struct test t = { .name = "read-only mapping: source of a put, no target of a get" };
	int fd = memfd_create("regcache", 0);
	uint8_t *at, *shared;
	char address[32];

	if (fd < 0 || ftruncate(fd, SPACE))
		give_up("memfd: %s", strerror(errno));
	shared = need_memory(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	pattern_fill(shared, LENGTH, 30, 0);
	at = need_memory(mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0));
	expect(&t, !put(0, at + 5, LENGTH - 5), "put: %s", rmpool_error());
	arrived(&t, "put", 0, LENGTH - 5, 30, 5);
	snprintf(address, sizeof(address), "0x%" PRIxPTR, (uintptr_t)(at + 5));
	expect(&t, get(MIB, at + 5, LENGTH - 5) == -EFAULT &&
	       strstr(rmpool_error(), address), "get: %s", rmpool_error());
	expect(&t, rmpool_error_detail()->reason == RMPOOL_REASON_UNMAPPED, "reason: %u",
	       rmpool_error_detail()->reason);
	expect(&t, !put(0, at + 5, LENGTH - 5), "put again: %s", rmpool_error());
	munmap(at, LENGTH);
	munmap(shared, LENGTH);
	close(fd);
	test_end(&t);
}

static void test_unmapped(void)
{
	struct test t = { .name = "nothing there: EFAULT with the address" };
	uint8_t *at = filled(4 * PAGE, 40);
	char address[32];
	int ret;

	munmap(at + 2 * PAGE, 2 * PAGE);
	snprintf(address, sizeof(address), "0x%" PRIxPTR, (uintptr_t)(at + 2 * PAGE));
	ret = put(0, at + 7, 3 * PAGE);
	expect(&t, ret == -EFAULT && strstr(rmpool_error(), address), "half of it: %d, %s", ret,
	       rmpool_error());
	snprintf(address, sizeof(address), "0x%" PRIxPTR, (uintptr_t)(at + 2 * PAGE + 7));
	ret = put(0, at + 2 * PAGE + 7, 100);
	expect(&t, ret == -EFAULT && strstr(rmpool_error(), address), "all of it: %d, %s", ret,
	       rmpool_error());
	ret = put(0, (void *)UINTPTR_MAX, 1);
	expect(&t, ret == -EFAULT, "the last byte: %d", ret);
	ret = put(0, (void *)(UINTPTR_MAX - PAGE), 2 * PAGE);
	expect(&t, ret == -EFAULT, "past the end: %d", ret);
	ret = put(0, at + 7, SIZE_MAX);
	expect(&t, ret == -EFAULT || ret == -ERANGE, "very much: %d", ret);
	/* Nothing of it stays, and what is there moves. */
	expect(&t, !put(0, at + 7, 2 * PAGE - 7), "what is there: %s", rmpool_error());
	arrived(&t, "what is there", 0, 2 * PAGE - 7, 40, 7);
	munmap(at, 2 * PAGE);
	test_end(&t);
}

/* A batch in which each request has its own fate. */
static void test_mixed(void)
{
	enum { REGISTERED, CACHED, ACROSS, NO_FLAG, NOTHING, STALE, READ_ONLY, NR };
	static const int wanted[NR] = { 0, 0, 0, -EFAULT, -EFAULT, -ESTALE, 0 };
	struct test t = { .name = "a batch of all kinds: each its own result" };
	struct rmpool_completion results[NR];
	struct rmpool_request requests[NR];
	uint8_t *at[NR];
	uint32_t region[3];
	int ret, i;

	for (i = 0; i < NR; i++)
		at[i] = filled(LENGTH, 50 + (uint64_t)i);
	if (rmpool_register(pool, at[REGISTERED], LENGTH, 0, 0, 0, &region[0], NULL) ||
	    rmpool_register(pool, at[ACROSS], PAGE, 0, 0, 0, &region[1], NULL) ||
	    rmpool_register(pool, at[STALE], LENGTH, 0, 0, 0, &region[2], NULL))
		give_up("%s", rmpool_error());
	munmap(at[NOTHING], LENGTH);
	/* Registered and then let go of: its owner is to unregister it. */
	at[STALE] = map_over(at[STALE], LENGTH);
	if (mprotect(at[READ_ONLY], LENGTH, PROT_READ))
		give_up("mprotect: %s", strerror(errno));
	for (i = 0; i < NR; i++) {
		rmpool_prepare_put(&requests[i], segment, (uint64_t)i * 2 * MIB, at[i], LENGTH,
				   (uint64_t)i);
		requests[i].flags = (uint16_t)(i == NO_FLAG ? 0 : REGISTER);
	}
	ret = rmpool_transfer(pool, requests, NR, results, TIMEOUT_MS);
	expect(&t, ret == 3, "%d failed, not 3: %s", ret, rmpool_error());
	for (i = 0; i < NR && ret >= 0; i++) {
		expect(&t, results[i].status == wanted[i] && results[i].cookie == (uint64_t)i,
		       "request %d: %d, not %d", i, results[i].status, wanted[i]);
		if (!wanted[i])
			arrived(&t, "batch", (uint64_t)i * 2 * MIB, LENGTH, 50 + (uint64_t)i, 0);
	}
	for (i = 0; i < 3; i++)
		expect(&t, !rmpool_unregister(pool, region[i]), "%s", rmpool_error());
	expect(&t, !put(0, at[STALE], LENGTH), "unregistered: %s", rmpool_error());
	for (i = 0; i < NR; i++)
		munmap(at[i], LENGTH);
	test_end(&t);
}

/* Unknown flags, and what the owner cannot do to what was made for requests. */
static void test_rules(uint32_t own)
{
	struct test t = { .name = "unknown flags are refused, handles are not told" };
	uint8_t *at = filled(PAGE, 60);
	struct rmpool_request request;
	struct rmpool_completion result;
	uint32_t handle, bit;

	for (bit = 1; bit < 16; bit++) {
		rmpool_prepare_put(&request, segment, 0, at, PAGE, 0);
		request.flags = (uint16_t)(1U << bit | REGISTER);
		expect(&t, rmpool_transfer(pool, &request, 1, &result, TIMEOUT_MS) == 1 &&
		       result.status == -EINVAL, "flag %u: %d", bit, result.status);
	}
	expect(&t, !put(0, at, PAGE), "%s", rmpool_error());
	for (handle = 0; handle < 2000; handle++) {
		if (handle != own)
			expect(&t, rmpool_unregister(pool, handle) == -ENOENT,
			       "handle %u: %s", handle, rmpool_error());
	}
	expect(&t, !put(0, at, PAGE), "%s", rmpool_error());
	/* No bytes, no memory. */
	expect(&t, !put(0, NULL, 0), "no bytes: %s", rmpool_error());
	munmap(at, PAGE);
	test_end(&t);
}

struct worker {
	pthread_t thread;
	pthread_barrier_t *all;
	uint8_t *shared, *own;
	uint64_t offset;
	char why[256];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	int i;

	pthread_barrier_wait(w->all);
	if (put(w->offset, w->shared, LENGTH)) {
		snprintf(w->why, sizeof(w->why), "shared: %s", rmpool_error());
		return NULL;
	}
	for (i = 0; i < 8 && !*w->why; i++) {
		/* Of this thread alone, let go of and made again. */
		w->own = filled(LENGTH, 100 * w->offset + (uint64_t)i);
		if (put(w->offset, w->own, LENGTH) || memset(w->own, 0, LENGTH) != w->own ||
		    get(w->offset, w->own, LENGTH))
			snprintf(w->why, sizeof(w->why), "own: %s", rmpool_error());
		else
			pattern_check(w->own, LENGTH, 100 * w->offset + (uint64_t)i, 0, "own",
				      w->why, sizeof(w->why));
		munmap(w->own, LENGTH);
	}
	return NULL;
}

static void test_threads(void)
{
	struct test t = { .name = "8 threads: one registration of what they share" };
	uint8_t *shared = filled(LENGTH, 70);
	struct worker workers[THREADS];
	struct rmpool_info before = info();
	pthread_barrier_t all;
	unsigned int i;

	pthread_barrier_init(&all, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) {
			.all = &all, .shared = shared, .offset = 2 * MIB * i,
		};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			give_up("no thread");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		expect(&t, !*workers[i].why, "thread %u: %s", i, workers[i].why);
	}
	/* For each buffer one to be read and one to be written. */
	expect(&t, info().cache_misses - before.cache_misses == 1 + THREADS * 8 * 2,
	       "%" PRIu64 " misses", (uint64_t)(info().cache_misses - before.cache_misses));
	pthread_barrier_destroy(&all);
	munmap(shared, LENGTH);
	test_end(&t);
}

static void cases(void)
{
	struct test t = { .name = "closed: all is given back" };
	uint32_t own;
	double end;

	mirror = map(SPACE);
	if (rmpool_register(pool, mirror, SPACE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &own, NULL))
		give_up("%s", rmpool_error());
	test_moves();
	test_remapped();
	test_stays();
	test_read_only();
	test_unmapped();
	test_mixed();
	test_rules(own);
	test_threads();
	rmpool_close(pool);
	end = now() + patience(20);
	while (status_value("VmPin") && now() < end)
		pause_ms(1);
	expect(&t, !status_value("VmPin"), "VmPin is %ld kB", status_value("VmPin"));
	test_end(&t);
}

/* --------------------------------------------------------------------- bound */

#define BOUND	(4 * MIB)
#define BUFFERS	16U

/* Buffers of 1 MiB, of whole pages. */
static void test_evicts(uint8_t *const *at, long pins)
{
	struct test t = { .name = "no more is kept than the parameter says" };
	struct rmpool_info before = info();
	unsigned int round, i;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < BUFFERS; i++) {
			pattern_fill(at[i], MIB, round * BUFFERS + i, 0);
			expect(&t, !put(i * MIB, at[i], MIB), "put: %s", rmpool_error());
			expect(&t, info().cache_bytes <= BOUND, "%" PRIu64 " bytes",
			       (uint64_t)info().cache_bytes);
			expect(&t, status_value("VmPin") - pins <= (long)(BOUND / 1024),
			       "VmPin is %ld kB", status_value("VmPin"));
		}
	}
	/* The oldest goes, and that is the one which comes next. */
	counted(&t, "in turn", &before, 0, 2 * (uint64_t)BUFFERS);
	expect(&t, info().cache_evictions - before.cache_evictions == 2 * BUFFERS - 4,
	       "%" PRIu64 " evictions",
	       (uint64_t)(info().cache_evictions - before.cache_evictions));
	before = info();
	for (i = BUFFERS - 4; i < BUFFERS; i++)
		expect(&t, !put(i * MIB, at[i], MIB), "put: %s", rmpool_error());
	counted(&t, "the last four", &before, 4, 0);
	for (i = 0; i < BUFFERS; i++)
		arrived(&t, "put", i * MIB, MIB, BUFFERS + i, 0);
	test_end(&t);
}

/* Many at once: all end well, though few find room at the same time. */
static void test_batch(uint8_t *const *at)
{
	struct test t = { .name = "a batch of more than that: all move" };
	struct rmpool_request requests[BUFFERS];
	struct rmpool_completion done;
	unsigned int i, ended = 0;
	int ret;

	if (rmpool_ring(pool, 64, -1))
		give_up("%s", rmpool_error());
	for (i = 0; i < BUFFERS; i++) {
		pattern_fill(at[i], MIB, 200 + i, 0);
		rmpool_prepare_put(&requests[i], segment, i * MIB, at[i], MIB, i);
		requests[i].flags = REGISTER;
	}
	ret = rmpool_submit(pool, requests, BUFFERS);
	expect(&t, ret == BUFFERS, "submit: %d", ret);
	while (ended < BUFFERS && rmpool_wait(pool, 1, TIMEOUT_MS) > 0) {
		while (rmpool_poll(pool, &done, 1) == 1) {
			ended++;
			expect(&t, !done.status, "request %u: %s", (unsigned int)done.cookie,
			       rmpool_status_text(done.status));
		}
	}
	expect(&t, ended == BUFFERS, "%u ended", ended);
	for (i = 0; i < BUFFERS; i++)
		arrived(&t, "put", i * MIB, MIB, 200 + i, 0);
	expect(&t, info().cache_bytes <= BOUND, "%" PRIu64 " bytes",
	       (uint64_t)info().cache_bytes);
	test_end(&t);
}

static void bound(void)
{
	struct test t = { .name = "a request of more than that: ENOMEM with the limit" };
	uint8_t *at[BUFFERS], *large = filled(BOUND + PAGE, 1);
	uint32_t region;
	unsigned int i;
	long pins;

	mirror = map(SPACE);
	if (rmpool_register(pool, mirror, SPACE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	pins = status_value("VmPin");
	for (i = 0; i < BUFFERS; i++)
		at[i] = map(MIB);
	test_evicts(at, pins);
	test_batch(at);
	expect(&t, put(0, large, BOUND + 1) == -ENOMEM && strstr(rmpool_error(), "cache_mib"),
	       "put: %s", rmpool_error());
	expect(&t, rmpool_error_detail()->reason == RMPOOL_REASON_CACHE &&
	       rmpool_error_detail()->limit == BOUND &&
	       rmpool_error_detail()->need == BOUND + PAGE, "limit %" PRIu64 ", need %" PRIu64,
	       (uint64_t)rmpool_error_detail()->limit, (uint64_t)rmpool_error_detail()->need);
	expect(&t, !put(0, large, BOUND), "put of just that: %s", rmpool_error());
	arrived(&t, "put", 0, BOUND, 1, 0);
	test_end(&t);
}

/* ------------------------------------------------------------------- memlock */

static void memlock(void)
{
	struct test t = { .name = "RLIMIT_MEMLOCK: told, and not used up by what is only kept" };
	uint8_t *a = filled(3 * MIB, 1), *b = filled(3 * MIB, 2), *c = filled(3 * MIB, 3);
	uint8_t *large = filled(8 * MIB, 4);
	struct rmpool_info before = info();
	uint32_t region;
	int ret;

	ret = put(0, large, 8 * MIB);
	expect(&t, ret == -ENOMEM && strstr(rmpool_error(), "RLIMIT_MEMLOCK is 4 MiB"),
	       "8 MiB: %d, %s", ret, rmpool_error());
	expect(&t, !put(0, a, 3 * MIB), "3 MiB: %s", rmpool_error());
	expect(&t, !put(0, b, 3 * MIB), "3 MiB more: %s", rmpool_error());
	expect(&t, info().cache_evictions - before.cache_evictions == 1, "%" PRIu64 " evictions",
	       (uint64_t)(info().cache_evictions - before.cache_evictions));
	expect(&t, !rmpool_register(pool, c, 3 * MIB, 0, 0, 0, &region, NULL), "register: %s",
	       rmpool_error());
	ret = put(0, a, 3 * MIB);
	expect(&t, ret == -ENOMEM && strstr(rmpool_error(), "RLIMIT_MEMLOCK is 4 MiB"),
	       "beside what is registered: %d, %s", ret, rmpool_error());
	expect(&t, !rmpool_put(pool, segment, 0, c, 3 * MIB, TIMEOUT_MS), "registered: %s",
	       rmpool_error());
	expect(&t, !rmpool_unregister(pool, region), "%s", rmpool_error());
	expect(&t, !put(0, a, 3 * MIB), "3 MiB again: %s", rmpool_error());
	test_end(&t);
}

static void off(void)
{
	struct test t = { .name = "switched off: EOPNOTSUPP, registered memory moves" };
	uint8_t *at = filled(PAGE, 1);
	uint32_t region;
	int ret = put(0, at, PAGE);

	expect(&t, ret == -EOPNOTSUPP && strstr(rmpool_error(), "cache_mib is 0"), "%d, %s", ret,
	       rmpool_error());
	expect(&t, !status_value("VmPin"), "VmPin is %ld kB", status_value("VmPin"));
	if (rmpool_register(pool, at, PAGE, 0, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	expect(&t, !put(0, at, PAGE), "registered: %s", rmpool_error());
	test_end(&t);
}

static void hold(void)
{
	if (put(0, filled(2 * LENGTH, 1), 2 * LENGTH))
		give_up("%s", rmpool_error());
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{ "cases", cases }, { "bound", bound }, { "memlock", memlock },
		{ "off", off }, { "hold", hold },
	};

	return run_part(argc, argv, parts, sizeof(parts) / sizeof(parts[0]),
			"regcache cases|bound|memlock|off|hold NODE/SEGMENT");
}
