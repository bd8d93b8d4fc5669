// SPDX-License-Identifier: MIT
/*
 * Puts and gets of memory that nobody registered, and which is copied.
 *
 *   staging cases NODE/SEGMENT		that has 16 MiB or more
 *   staging long NODE/SEGMENT		with parameter staging_max=1048576
 *   staging alone NODE/SEGMENT		with parameter cache_mib=0
 *   staging off NODE/SEGMENT		with parameter staging_max=0
 *   staging busy NODE/SEGMENT		says "busy" and moves bytes until it is killed
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "unregistered.h"

#define PIECE		16384UL		/* of the pool, by default */
#define LIMIT		65536UL		/* staging_max, by default */
#define RING		512U

static void take_mirror(void)
{
	uint32_t region;

	mirror = map(SPACE);
	if (rmpool_register(pool, mirror, SPACE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
}

/* How many requests were copied, and how many registered, since @before. */
static void counted(struct test *t, const char *when, const struct rmpool_info *before,
		    uint64_t copied, uint64_t bytes, uint64_t misses)
{
	struct rmpool_info after = info();
	uint64_t requests = after.staging_requests - before->staging_requests;
	uint64_t sum = after.staging_bytes - before->staging_bytes;
	uint64_t missed = after.cache_misses - before->cache_misses;

	expect(t, requests == copied && sum == bytes && missed == misses,
	       "%s: %" PRIu64 " requests of %" PRIu64 " bytes copied, %" PRIu64
	       " registered, not %" PRIu64 ", %" PRIu64 " and %" PRIu64, when, requests, sum,
	       missed, copied, bytes, misses);
}

static bool all_zero(const uint8_t *at, size_t length)
{
	return !length || (!at[0] && !memcmp(at, at + 1, length - 1));
}

/* ----------------------------------------------------------------------- cases */

static void move(struct test *t, const uint64_t *lengths, size_t nr)
{
	uint64_t most = lengths[nr - 1] + 2 * PAGE, length, lead;
	uint8_t *from = filled(most, 1), *to = map(most);
	struct rmpool_info before;
	long pins;
	size_t i;

	for (i = 0; i < nr && !t->failed; i++) {
		length = lengths[i];
		lead = i % 2 ? ODD : i % 3;
		before = info();
		pins = status_value("VmPin");
		memset(to, 0, most);
		expect(t, !put(i, from + lead, length), "put: %s", rmpool_error());
		arrived(t, "put", i, length, 1, lead);
		expect(t, !get(i, to + lead, length), "get: %s", rmpool_error());
		expect(t, !memcmp(to + lead, from + lead, length), "%" PRIu64 " bytes: others",
		       length);
		expect(t, all_zero(to, lead) && all_zero(to + lead + length, most - lead - length),
		       "%" PRIu64 " bytes: some beside", length);
		counted(t, "moved", &before, 2, 2 * length, 0);
		expect(t, status_value("VmPin") == pins, "VmPin grew by %ld kB",
		       status_value("VmPin") - pins);
	}
	munmap(from, most);
	munmap(to, most);
}

static void test_moves(void)
{
	static const uint64_t lengths[] = {
		1, 2, PAGE - 1, PAGE, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 5,
		LIMIT - 1, LIMIT,
	};
	struct test t = { .name = "put and get: right bytes, nothing registered" };

	expect(&t, info().staging_limit == LIMIT, "limit %" PRIu64,
	       (uint64_t)info().staging_limit);
	move(&t, lengths, sizeof(lengths) / sizeof(lengths[0]));
	test_end(&t);
}

static void test_border(void)
{
	struct test t = { .name = "one byte more is registered, and then serves small ones" };
	uint8_t *at = filled(LIMIT + PAGE, 2);
	struct rmpool_info before = info();

	expect(&t, rmpool_put(pool, segment, 0, at, 100, TIMEOUT_MS) == -EFAULT,
	       "without the flag: %s", rmpool_error());
	counted(&t, "without the flag", &before, 0, 0, 0);
	expect(&t, !put(0, at, LIMIT + 1), "put: %s", rmpool_error());
	counted(&t, "more", &before, 0, 0, 1);
	expect(&t, !put(0, at + 1, 1000), "put: %s", rmpool_error());
	counted(&t, "registered by now", &before, 0, 0, 1);
	expect(&t, info().cache_hits - before.cache_hits == 1, "it was not used");
	/* For a get, it may only be read. */
	expect(&t, !get(0, at + 1, 1000), "get: %s", rmpool_error());
	counted(&t, "get", &before, 1, 1000, 1);
	munmap(at, LIMIT + PAGE);
	test_end(&t);
}

/* Bad memory: the same errors as if it had been registered, and nothing moved. */
static void test_bad(void)
{
	struct test t = { .name = "nothing there, or read-only: EFAULT with the address" };
	uint8_t *at = filled(8 * PAGE, 3);
	struct rmpool_info before;
	char address[32];
	int ret;

	expect(&t, !put(0, at, 8 * PAGE), "put: %s", rmpool_error());
	before = info();
	munmap(at + 6 * PAGE, 2 * PAGE);
	pattern_fill(at, 6 * PAGE, 4, 0);
	snprintf(address, sizeof(address), "0x%" PRIxPTR, (uintptr_t)(at + 6 * PAGE));
	ret = put(0, at, 7 * PAGE);
	expect(&t, ret == -EFAULT && strstr(rmpool_error(), address), "put: %d, %s", ret,
	       rmpool_error());
	arrived(&t, "a put that failed", 0, 8 * PAGE, 3, 0);
	ret = get(0, at, 7 * PAGE);
	expect(&t, ret == -EFAULT && strstr(rmpool_error(), address), "get: %d, %s", ret,
	       rmpool_error());
	mprotect(at, PAGE, PROT_READ);
	expect(&t, get(0, at, 10) == -EFAULT, "get to what is read-only: %s", rmpool_error());
	expect(&t, !put(0, at, 10), "put from there: %s", rmpool_error());
	counted(&t, "of all that", &before, 1, 10, 3);
	ret = put(0, (void *)UINTPTR_MAX, 1);
	expect(&t, ret == -EFAULT, "the last byte: %d", ret);
	ret = get(0, (void *)(UINTPTR_MAX - PAGE), 2 * PAGE);
	expect(&t, ret == -EFAULT, "past the end: %d", ret);
	munmap(at, 6 * PAGE);
	test_end(&t);
}

/* So many completions; how many failed. */
static unsigned int complete(struct test *t, unsigned int nr, int allowed)
{
	unsigned int ended = 0, failed = 0;
	struct rmpool_completion done;

	while (ended < nr && rmpool_wait(pool, 1, TIMEOUT_MS) > 0) {
		while (rmpool_poll(pool, &done, 1) == 1) {
			ended++;
			failed += !!done.status;
			expect(t, !done.status || done.status == allowed, "request %u: %s",
			       (unsigned int)done.cookie, rmpool_status_text(done.status));
		}
	}
	expect(t, ended == nr, "%u of %u ended", ended, nr);
	return failed;
}

static int submit(struct rmpool_request *requests, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		requests[i].flags = REGISTER;
	return rmpool_submit(pool, requests, nr);
}

#define BURST	32U

/* What was there in the call is what is put, whatever comes after it. */
static void test_put_unmapped(void)
{
	struct test t = { .name = "put, and other memory there at once: the old bytes" };
	struct rmpool_request requests[BURST];
	uint8_t *at = filled(BURST * LIMIT, 5);
	struct rmpool_info before = info();
	unsigned int i;

	for (i = 0; i < BURST; i++)
		rmpool_prepare_put(&requests[i], segment, i * LIMIT, at + i * LIMIT, LIMIT, i);
	expect(&t, submit(requests, BURST) == BURST, "submit: %s", rmpool_error());
	at = map_over(at, BURST * LIMIT);
	pattern_fill(at, BURST * LIMIT, 6, 0);
	/* What found no room was registered, and is stale. */
	if (!complete(&t, BURST, -ESTALE))
		arrived(&t, "put", 0, BURST * LIMIT, 5, 0);
	expect(&t, info().staging_requests > before.staging_requests, "none was copied");
	munmap(at, BURST * LIMIT);
	test_end(&t);
}

/* Memory that comes after is not written, whatever the result is. */
static void test_get_unmapped(void)
{
	struct test t = { .name = "get, and other memory there at once: it is not written" };
	struct rmpool_request requests[BURST];
	uint8_t *at, *from = filled(BURST * LIMIT, 7);
	unsigned int i, round, failed = 0;
	char why[128] = "";

	expect(&t, !put(0, from, BURST * LIMIT), "put: %s", rmpool_error());
	for (round = 0; round < 4; round++) {
		at = map(BURST * LIMIT);
		for (i = 0; i < BURST; i++)
			rmpool_prepare_get(&requests[i], segment, i * LIMIT, at + i * LIMIT,
					   LIMIT, i);
		expect(&t, submit(requests, BURST) == BURST, "submit: %s", rmpool_error());
		at = map_over(at, BURST * LIMIT);
		pattern_fill(at, BURST * LIMIT, 8 + round, 0);
		failed += complete(&t, BURST, -ESTALE);
		expect(&t, pattern_check(at, BURST * LIMIT, 8 + round, 0, "after it", why,
					 sizeof(why)), "%s", why);
		munmap(at, BURST * LIMIT);
	}
	printf("%u of %u gets were too late\n", failed, 4 * BURST);
	munmap(from, BURST * LIMIT);
	test_end(&t);
}

/* After its completion, nothing is written, also if that came before the bytes. */
static void test_late(void)
{
	struct test t = { .name = "get that is overdue: nothing is written after its end" };
	uint8_t *at = map(LIMIT), *seen = need_memory(malloc(LIMIT)), *from = filled(LIMIT, 20);
	unsigned int i, late = 0;
	int ret;

	expect(&t, !put(0, from, LIMIT), "put: %s", rmpool_error());
	for (i = 0; i < 40 && !t.failed; i++) {
		memset(at, 0, LIMIT);
		ret = rmpool_get_flags(pool, segment, 0, at, LIMIT, REGISTER, 1);
		memcpy(seen, at, LIMIT);
		late += ret == -ETIMEDOUT;
		expect(&t, !ret || ret == -ETIMEDOUT, "get: %s", rmpool_error());
		/* What was on its way is over when this is. */
		arrived(&t, "put", 0, LIMIT, 20, 0);
		expect(&t, !memcmp(seen, at, LIMIT), "bytes came after the end");
		expect(&t, ret || !memcmp(seen, from, LIMIT), "other bytes");
	}
	printf("%u of %u gets were overdue\n", late, i);
	free(seen);
	munmap(at, LIMIT);
	munmap(from, LIMIT);
	test_end(&t);
}

/* More than the pool has: some are registered instead, and all move. */
static void test_many(void)
{
	struct test t = { .name = "a batch of more than there is room for: all move" };
	struct rmpool_request *requests = need_memory(calloc(RING, sizeof(*requests)));
	const uint64_t length = SPACE / RING;
	uint8_t *at = filled(RING * length, 9);
	struct rmpool_info before = info(), after;
	unsigned int i;

	for (i = 0; i < RING; i++)
		rmpool_prepare_put(&requests[i], segment, i * length, at + i * length, length, i);
	expect(&t, submit(requests, RING) == RING, "submit: %s", rmpool_error());
	complete(&t, RING, 0);
	after = info();
	arrived(&t, "put", 0, RING * length, 9, 0);
	for (i = 0; i < RING; i++)
		rmpool_prepare_get(&requests[i], segment, i * length, at + i * length, length, i);
	memset(at, 0, RING * length);
	expect(&t, submit(requests, RING) == RING, "submit: %s", rmpool_error());
	complete(&t, RING, 0);
	expect(&t, !memcmp(at, mirror, RING * length), "other bytes were got");
	expect(&t, after.staging_requests - before.staging_requests +
	       after.staging_fallbacks - before.staging_fallbacks +
	       after.cache_hits - before.cache_hits >= RING, "requests are not counted");
	printf("%" PRIu64 " puts copied, %" PRIu64 " without room\n",
	       (uint64_t)(after.staging_requests - before.staging_requests),
	       (uint64_t)(after.staging_fallbacks - before.staging_fallbacks));
	munmap(at, RING * length);
	free(requests);
	test_end(&t);
}

struct worker {
	pthread_t thread;
	pthread_barrier_t *all;
	uint64_t offset;
	char why[256];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t seed, length;
	uint8_t *own;
	int i;

	pthread_barrier_wait(w->all);
	for (i = 0; i < 16 && !*w->why; i++) {
		/* Of this thread alone, let go of and made again. */
		seed = 1000 * (w->offset + 1) + (uint64_t)i;
		length = 1 + seed * 7919 % LIMIT;
		own = filled(LIMIT + PAGE, seed);
		if (put(w->offset, own + i, length) || memset(own, 0, LIMIT + PAGE) != own ||
		    get(w->offset, own + i, length))
			snprintf(w->why, sizeof(w->why), "%s", rmpool_error());
		else
			pattern_check(own + i, length, seed, (uint64_t)i, "own", w->why,
				      sizeof(w->why));
		munmap(own, LIMIT + PAGE);
	}
	return NULL;
}

static void test_threads(void)
{
	struct test t = { .name = "8 threads: each its own bytes" };
	struct worker workers[THREADS];
	pthread_barrier_t all;
	unsigned int i;

	pthread_barrier_init(&all, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) { .all = &all, .offset = MIB * i };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			give_up("no thread");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		expect(&t, !*workers[i].why, "thread %u: %s", i, workers[i].why);
	}
	pthread_barrier_destroy(&all);
	test_end(&t);
}

static void cases(void)
{
	take_mirror();
	if (rmpool_ring(pool, RING, -1))
		give_up("%s", rmpool_error());
	test_moves();
	test_border();
	test_bad();
	test_put_unmapped();
	test_get_unmapped();
	test_late();
	test_many();
	test_threads();
}

/* ------------------------------------------------------------- other parameters */

static void long_ones(void)
{
	static const uint64_t lengths[] = {
		LIMIT + 1, 5 * PIECE, 11 * PIECE - 7, MIB - ODD, MIB,
	};
	struct test t = { .name = "up to 1 MiB: right bytes, nothing registered" };

	take_mirror();
	move(&t, lengths, sizeof(lengths) / sizeof(lengths[0]));
	test_end(&t);
}

static void alone(void)
{
	struct test t = { .name = "nothing may be registered: small ones move" };
	uint8_t *at = filled(LIMIT + 1, 1);
	int ret;

	take_mirror();
	expect(&t, !put(0, at, LIMIT), "put: %s", rmpool_error());
	arrived(&t, "put", 0, LIMIT, 1, 0);
	ret = put(0, at, LIMIT + 1);
	expect(&t, ret == -EOPNOTSUPP, "more: %d", ret);
	test_end(&t);
}

static void off(void)
{
	struct test t = { .name = "switched off: it is registered" };
	uint8_t *at = filled(PAGE, 1);
	struct rmpool_info before = info();

	expect(&t, !before.staging_limit, "limit %" PRIu64, (uint64_t)before.staging_limit);
	expect(&t, !put(0, at, 100), "put: %s", rmpool_error());
	counted(&t, "put", &before, 0, 0, 1);
	expect(&t, !info().staging_fallbacks, "told as one without room");
	test_end(&t);
}

static void busy(void)
{
	struct rmpool_request requests[BURST];
	uint8_t *at = filled(BURST * LIMIT, 1);
	struct test t = { .name = "busy" };
	unsigned int i;
	bool said;

	if (rmpool_ring(pool, RING, -1))
		give_up("%s", rmpool_error());
	for (said = false; !t.failed; said = true) {
		for (i = 0; i < BURST; i++) {
			if (i % 2)
				rmpool_prepare_put(&requests[i], segment, i * LIMIT,
						   at + i * LIMIT, LIMIT, i);
			else
				rmpool_prepare_get(&requests[i], segment, i * LIMIT,
						   at + i * LIMIT, LIMIT, i);
		}
		expect(&t, submit(requests, BURST) == BURST, "submit: %s", rmpool_error());
		complete(&t, BURST, 0);
		if (!said) {
			puts("busy");
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{ "cases", cases }, { "long", long_ones }, { "alone", alone }, { "off", off },
		{ "busy", busy },
	};

	return run_part(argc, argv, parts, sizeof(parts) / sizeof(parts[0]),
			"staging cases|long|alone|off|busy NODE/SEGMENT");
}
