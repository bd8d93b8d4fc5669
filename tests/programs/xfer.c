// SPDX-License-Identifier: MIT
/*
 * The side that puts and gets. Each command is a test, with what it compares in
 * the comment on its function; it says "xfer: WHY" and exits 1 if something is
 * not as it must be.
 *
 *   xfer put|get NODE/SEGMENT LAYOUT SEED blocking|batch|ring
 *   xfer range NODE/SEGMENT LAYOUT
 *   xfer one-bad NODE/SEGMENT SEED batch|ring
 *   xfer too-many NODE/SEGMENT
 *   xfer zero NODE/SEGMENT LAYOUT SEED
 *   xfer flood NODE/SEGMENT LAYOUT
 *   xfer balance NODE/SEGMENT LAYOUT
 *   xfer hold NODE/SEGMENT LAYOUT
 *   xfer unattended NODE/SEGMENT SEED
 *   xfer late NODE/SEGMENT LAYOUT
 *   xfer threads NODE/SEGMENT SEED COUNT
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rmpool.h>
#include "clock.h"
#include "numbers.h"
#include "pattern.h"

#define TIMEOUT_MS	60000
#define LOCAL_SEED	99		/* of local gaps */
#define LEAD		57		/* odd, and not that of the host */
#define LOCAL_GAP	771

static int need(int result, const char *what)
{
	if (result < 0)
		die("%s: %s", what, rmpool_error());
	return result;
}

/* ------------------------------------------------------------ local memory */

/*
 * One registered region at an odd address, with a copy of each place of a
 * layout, in its order but with other gaps, so that both sides lie differently.
 */
struct local {
	struct rmpool *pool;
	uint32_t segment;
	struct layout layout;
	uint8_t *memory;	/* page aligned; the region begins LEAD behind */
	uint64_t total;
	uint64_t *at;		/* index in memory of each place */
	uint32_t region;
};

static struct local open_all(const char *address, const char *layout)
{
	struct local l = { .layout = layout_named(layout) };
	uint64_t pos = LEAD;
	uint32_t i;

	l.at = need_memory(calloc(l.layout.nr, sizeof(*l.at)));
	for (i = 0; i < l.layout.nr; i++) {
		pos += LOCAL_GAP + i % 3;
		l.at[i] = pos;
		pos += l.layout.places[i].length;
	}
	/* Room for the whole remote region as well. */
	if (pos < LEAD + l.layout.length)
		pos = LEAD + l.layout.length;
	l.total = pos + LOCAL_GAP;
	l.memory = need_memory(mmap(NULL, l.total, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	pattern_fill(l.memory, l.total, LOCAL_SEED, 0);
	need(rmpool_open(&l.pool, NULL, 0), "open");
	need(rmpool_register(l.pool, l.memory + LEAD, pos - LEAD, RMPOOL_ACCESS_LOCAL_WRITE,
			     0, 0, &l.region, NULL), "register");
	need(rmpool_segment_open(l.pool, address, NULL, TIMEOUT_MS, &l.segment, NULL),
	     "open segment");
	return l;
}

static void fill_places(const struct local *l, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < l->layout.nr; i++)
		pattern_fill(l->memory + l->at[i], l->layout.places[i].length, seed,
			     l->layout.places[i].offset);
}

/* All local bytes: places have @seed, all others are as they were. */
static void check_local(const struct local *l, uint64_t seed, uint32_t except)
{
	uint64_t pos = 0;
	char why[128], what[40];
	uint32_t i;

	for (i = 0; i < l->layout.nr; i++) {
		if (i == except)
			continue;
		snprintf(what, sizeof(what), "local, before place %u", i);
		if (!pattern_check(l->memory + pos, l->at[i] - pos, LOCAL_SEED, pos, what,
				   why, sizeof(why)))
			die("%s", why);
		snprintf(what, sizeof(what), "local, place %u", i);
		if (!pattern_check(l->memory + l->at[i], l->layout.places[i].length, seed,
				   l->layout.places[i].offset, what, why, sizeof(why)))
			die("%s", why);
		pos = l->at[i] + l->layout.places[i].length;
	}
	if (!pattern_check(l->memory + pos, l->total - pos, LOCAL_SEED, pos,
			   "local, behind the last place", why, sizeof(why)))
		die("%s", why);
}

static void check_untouched(const struct local *l)
{
	char why[128];

	if (!pattern_check(l->memory, l->total, LOCAL_SEED, 0, "local", why, sizeof(why)))
		die("%s", why);
}

/* ---------------------------------------------------------------- requests */

static struct rmpool_request *requests(const struct local *l, bool put)
{
	struct rmpool_request *r = need_memory(calloc(l->layout.nr, sizeof(*r)));
	uint32_t i;

	for (i = 0; i < l->layout.nr; i++) {
		const struct place *p = &l->layout.places[i];

		rmpool_prepare_put(&r[i], l->segment, p->offset, l->memory + l->at[i],
				   p->length, i);
		r[i].timeout_ms = TIMEOUT_MS;
		if (!put)
			r[i].op = RMPOOL_OP_GET;
	}
	return r;
}

/* A completion says all about a request that went well, and nothing else. */
static void check_done(const struct rmpool_completion *c, const struct rmpool_request *r,
		       double since)
{
	unsigned long long cookie = c->cookie;

	if (c->cookie != r->cookie)
		die("cookie %llu instead of %llu", cookie, (unsigned long long)r->cookie);
	if (c->status)
		die("request %llu: status %d, %s, verbs status %u", cookie, c->status,
		    rmpool_status_text(c->status), c->wc_status);
	if (c->bytes != r->length)
		die("request %llu: %llu bytes instead of %llu", cookie,
		    (unsigned long long)c->bytes, (unsigned long long)r->length);
	if (c->flags || c->wc_status || c->attempts)
		die("request %llu: flags %#x, verbs status %u, attempts %u", cookie, c->flags,
		    c->wc_status, c->attempts);
	if (r->length ? c->rail > 1 : c->rail != RMPOOL_RAIL_NONE)
		die("request %llu: rail %u", cookie, c->rail);
	if (c->elapsed_us / 1e6 > now() - since + 0.001)
		die("request %llu: took %u us, more than has passed", cookie, c->elapsed_us);
	if (r->length >= MIB && !c->elapsed_us)
		die("request %llu: took no time", cookie);
}

/* Submits all, a part at a time where the ring is too small. */
static void submit_all(struct rmpool *pool, const struct rmpool_request *r, uint32_t nr)
{
	uint32_t done = 0;
	int n;

	while (done < nr) {
		uint32_t part = nr - done;

		if (part > RMPOOL_BATCH_MAX)
			part = RMPOOL_BATCH_MAX;
		n = need(rmpool_submit(pool, r + done, part), "submit");
		if (!n || (uint32_t)n > part)
			die("submit of %u took %d", part, n);
		done += (uint32_t)n;
	}
}

/* Takes @nr completions, one for each cookie from 0 on, in order of cookies. */
static void take_all(struct rmpool *pool, struct rmpool_completion *sorted, uint32_t nr)
{
	bool *seen = need_memory(calloc(nr, sizeof(*seen)));
	struct rmpool_completion c[64];
	uint32_t taken = 0;
	int n, i;

	while (taken < nr) {
		need(rmpool_wait(pool, 1, TIMEOUT_MS), "wait");
		n = need(rmpool_poll(pool, c, 64), "poll");
		for (i = 0; i < n; i++) {
			if (c[i].cookie >= nr)
				die("unknown cookie %llu", (unsigned long long)c[i].cookie);
			if (seen[c[i].cookie])
				die("cookie %llu ended twice", (unsigned long long)c[i].cookie);
			seen[c[i].cookie] = true;
			sorted[c[i].cookie] = c[i];
		}
		taken += (uint32_t)n;
	}
	if (rmpool_wait(pool, 1, 0) != -ETIME || rmpool_poll(pool, c, 64))
		die("more completions than requests");
	free(seen);
}

static void run_ring(const struct local *l, const struct rmpool_request *r, uint32_t nr,
		     struct rmpool_completion *results)
{
	need(rmpool_ring(l->pool, RMPOOL_BATCH_MAX, -1), "ring");
	submit_all(l->pool, r, nr);
	take_all(l->pool, results, nr);
}

/* put, get: each place by one request; all bytes on this side are compared. */
static void move(char **args, bool put)
{
	struct local l = open_all(args[0], args[1]);
	struct rmpool_request *r = requests(&l, put);
	uint64_t seed = strtoull(args[2], NULL, 0);
	struct rmpool_completion *results;
	double start = now();
	uint32_t i;
	int ret;

	results = need_memory(calloc(l.layout.nr, sizeof(*results)));
	if (put)
		fill_places(&l, seed);
	if (!strcmp(args[3], "blocking")) {
		for (i = 0; i < l.layout.nr; i++) {
			const struct place *p = &l.layout.places[i];
			uint8_t *mem = l.memory + l.at[i];

			ret = put ? rmpool_put(l.pool, l.segment, p->offset, mem, p->length,
					       TIMEOUT_MS) :
				    rmpool_get(l.pool, l.segment, p->offset, mem, p->length,
					       TIMEOUT_MS);
			need(ret, put ? "put" : "get");
		}
	} else {
		if (!strcmp(args[3], "batch")) {
			ret = need(rmpool_transfer(l.pool, r, l.layout.nr, results, TIMEOUT_MS),
				   "transfer");
			if (ret)
				die("transfer says that %d failed", ret);
		} else {
			run_ring(&l, r, l.layout.nr, results);
		}
		for (i = 0; i < l.layout.nr; i++)
			check_done(&results[i], &r[i], start);
	}
	check_local(&l, seed, NO_PLACE);
	free(results);
	free(r);
	rmpool_close(l.pool);
}

/* ------------------------------------------------------------------- errors */

/* One request that must end with @status, with nothing moved. */
static void refused(const struct local *l, const char *what, uint8_t op, const void *addr,
		    uint64_t length, uint64_t offset, int status)
{
	struct rmpool_completion c;
	struct rmpool_request r;
	int ret;

	rmpool_prepare_put(&r, l->segment, offset, addr, length, 7);
	r.op = op;
	ret = need(rmpool_transfer(l->pool, &r, 1, &c, TIMEOUT_MS), what);
	if (ret != 1 || c.status != status || c.bytes || c.flags || c.cookie != 7)
		die("%s: %d failed, status %d (%s) instead of %d, %llu bytes, flags %#x", what,
		    ret, c.status, rmpool_status_text(c.status), status,
		    (unsigned long long)c.bytes, c.flags);
}

/*
 * range: requests that do not lie in the regions are refused, put and get, and
 * local memory stays as it was (the host looks after its own).
 */
static void range(char **args)
{
	struct local l = open_all(args[0], args[1]);
	uint64_t end = SEGMENT_BASE + l.layout.length;
	const uint8_t *mem = l.memory + LEAD;
	uint64_t length = l.layout.length;
	uint8_t op;

	for (op = RMPOOL_OP_PUT; op <= RMPOOL_OP_GET; op++) {
		refused(&l, "4 GiB", op, mem, 1ULL << 32, SEGMENT_BASE, -ERANGE);
		refused(&l, "4 GiB + 16", op, mem, (1ULL << 32) + 16, SEGMENT_BASE, -ERANGE);
		refused(&l, "5 GiB", op, mem, 5ULL << 30, SEGMENT_BASE, -ERANGE);
		refused(&l, "2^63", op, mem, 1ULL << 63, SEGMENT_BASE, -ERANGE);
		refused(&l, "2^64 - 1", op, mem, ~0ULL, SEGMENT_BASE, -ERANGE);
		/* A length that brings the sum back to where it began. */
		refused(&l, "wraps to the start", op, mem + 16, 0 - 16ULL, SEGMENT_BASE + 16,
			-ERANGE);
		refused(&l, "one byte too many", op, mem, 2, end - 1, -ERANGE);
		refused(&l, "all and one more", op, mem, length, SEGMENT_BASE + 1, -ERANGE);
		refused(&l, "at the end", op, mem, 1, end, -ENXIO);
		refused(&l, "before the region", op, mem, 1, SEGMENT_BASE - 1, -ENXIO);
		refused(&l, "last offset", op, mem, 1, ~0ULL, -ENXIO);
		refused(&l, "local address below", op, mem - 1, 1, SEGMENT_BASE, -EFAULT);
		refused(&l, "no address", op, NULL, 1, SEGMENT_BASE, -EFAULT);
		refused(&l, "last address", op, (void *)~0UL, 2, SEGMENT_BASE, -EFAULT);
		refused(&l, "local end", op,
			l.memory + l.total - LOCAL_GAP - 1, 2, SEGMENT_BASE, -ERANGE);
		refused(&l, "behind the local end", op,
			l.memory + l.total - LOCAL_GAP, 1, SEGMENT_BASE, -EFAULT);
	}
	check_untouched(&l);
	rmpool_close(l.pool);
}

#define BAD		57

/*
 * one-bad: 4,096 requests in one call, one of them out of range: that one is
 * told so, all others are done.
 */
static void one_bad(char **args)
{
	struct local l = open_all(args[0], "batch");
	struct rmpool_request *r = requests(&l, true);
	uint64_t seed = strtoull(args[1], NULL, 0);
	struct rmpool_completion *results;
	double start = now();
	uint32_t i;
	int ret;

	results = need_memory(calloc(l.layout.nr, sizeof(*results)));
	fill_places(&l, seed);
	r[BAD].offset = SEGMENT_BASE + l.layout.length - 100;
	if (!strcmp(args[2], "batch")) {
		ret = need(rmpool_transfer(l.pool, r, l.layout.nr, results, TIMEOUT_MS),
			   "transfer");
		if (ret != 1)
			die("transfer says that %d failed", ret);
	} else {
		need(rmpool_ring(l.pool, RMPOOL_BATCH_MAX, -1), "ring");
		ret = need(rmpool_submit(l.pool, r, l.layout.nr), "submit");
		if (ret != RMPOOL_BATCH_MAX)
			die("submit took %d", ret);
		take_all(l.pool, results, l.layout.nr);
	}
	for (i = 0; i < l.layout.nr; i++)
		if (i != BAD)
			check_done(&results[i], &r[i], start);
	if (results[BAD].cookie != BAD || results[BAD].status != -ERANGE ||
	    results[BAD].bytes || results[BAD].rail != RMPOOL_RAIL_NONE)
		die("the bad one: status %d, %llu bytes, rail %u", results[BAD].status,
		    (unsigned long long)results[BAD].bytes, results[BAD].rail);
	check_local(&l, seed, NO_PLACE);
	rmpool_close(l.pool);
}

static void says_limit(int ret, const char *what)
{
	if (ret != -E2BIG)
		die("%s of 4097: %d", what, ret);
	if (!strstr(rmpool_error(), "4096"))
		die("%s: no limit in '%s'", what, rmpool_error());
	if (rmpool_error_detail()->limit != RMPOOL_BATCH_MAX ||
	    rmpool_error_detail()->reason != RMPOOL_REASON_BATCH)
		die("%s: no limit in the detail", what);
	printf("%s\n", rmpool_error());
}

/* too-many: 4,097 requests are refused, with the limit, and none is begun. */
static void too_many(char **args)
{
	struct local l = open_all(args[0], "batch");
	uint32_t nr = RMPOOL_BATCH_MAX + 1, i;
	struct rmpool_completion *results;
	struct rmpool_completion c;
	struct rmpool_request *r;
	struct rmpool_info info;

	r = need_memory(calloc(nr, sizeof(*r)));
	results = need_memory(calloc(nr, sizeof(*results)));
	for (i = 0; i < nr; i++)
		rmpool_prepare_get(&r[i], l.segment, SEGMENT_BASE, l.memory + LEAD, 100, i);
	need(rmpool_info(l.pool, &info, sizeof(info)), "info");
	if (info.batch_max != RMPOOL_BATCH_MAX)
		die("info tells %u", info.batch_max);
	need(rmpool_ring(l.pool, 8192, -1), "ring");
	says_limit(rmpool_submit(l.pool, r, nr), "submit");
	says_limit(rmpool_transfer(l.pool, r, nr, results, TIMEOUT_MS), "transfer");
	if (rmpool_wait(l.pool, 1, 100) != -ETIME || rmpool_poll(l.pool, &c, 1))
		die("there is a completion");
	check_untouched(&l);
	rmpool_close(l.pool);
}

/*
 * zero: no bytes, with addresses of all kinds, alone and between others, by
 * either way: done, nothing moved.
 */
static void zero(char **args)
{
	struct local l = open_all(args[0], args[1]);
	uint64_t seed = strtoull(args[2], NULL, 0);
	uint64_t end = SEGMENT_BASE + l.layout.length;
	struct rmpool_completion results[12], again[12];
	struct rmpool_request r[12];
	char why[128];
	double start;
	uint32_t i;

	/* The host's memory has the pattern of @seed all over. */
	for (i = 0; i < 12; i += 6) {
		uint8_t op = i ? RMPOOL_OP_GET : RMPOOL_OP_PUT;
		uint32_t k;

		rmpool_prepare_put(&r[i], l.segment, SEGMENT_BASE, l.memory + LEAD, 0, i);
		rmpool_prepare_put(&r[i + 1], l.segment, SEGMENT_BASE, NULL, 0, i + 1);
		rmpool_prepare_put(&r[i + 2], l.segment, end, l.memory + LEAD, 0, i + 2);
		rmpool_prepare_put(&r[i + 3], l.segment, ~0ULL, (void *)~0UL, 0, i + 3);
		for (k = i; k < i + 4; k++)
			r[k].op = op;
		rmpool_prepare_get(&r[i + 4], l.segment, SEGMENT_BASE + i * 700ULL,
				   l.memory + LEAD + i * 700ULL, 4096, i + 4);
		rmpool_prepare_get(&r[i + 5], l.segment, end - 1, l.memory + LEAD + 9000 + i, 1,
				   i + 5);
	}
	/* Those with bytes between those without. */
	start = now();
	if (need(rmpool_put(l.pool, l.segment, SEGMENT_BASE, l.memory + LEAD, 0, TIMEOUT_MS),
		 "put") ||
	    need(rmpool_get(l.pool, l.segment, end, NULL, 0, TIMEOUT_MS), "get"))
		die("a blocking one does not say 0");
	if (need(rmpool_transfer(l.pool, r, 12, results, TIMEOUT_MS), "transfer"))
		die("one of the batch failed");
	run_ring(&l, r, 12, again);
	for (i = 0; i < 12; i++) {
		check_done(&results[i], &r[i], start);
		check_done(&again[i], &r[i], start);
	}
	for (i = 0; i < 12; i += 6)
		if (!pattern_check(l.memory + LEAD + i * 700ULL, 4096, seed, SEGMENT_BASE + i * 700ULL,
				   "beside no bytes", why, sizeof(why)))
			die("%s", why);
	rmpool_close(l.pool);
}

/* -------------------------------------------------------------------- much */

static long mem_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (named_value(line, "MemAvailable", &kib))
			break;
	if (f)
		fclose(f);
	if (kib < 0)
		die("no MemAvailable");
	return kib;
}

#define FLOOD_KIB	(12L * 1024)

/*
 * flood: 4,096 requests, each of the whole region, in one call. They take little
 * memory; cancelled, each ends once, those in flight with what they moved.
 */
static void flood(char **args)
{
	struct local l = open_all(args[0], args[1]);
	struct rmpool_completion *results;
	struct rmpool_request *r;
	uint32_t nr = RMPOOL_BATCH_MAX, i, cancelled = 0, done = 0;
	long before, during;
	double start;
	int ret, n;

	r = need_memory(calloc(nr, sizeof(*r)));
	results = need_memory(malloc(nr * sizeof(*results)));
	memset(results, 0xff, nr * sizeof(*results));
	for (i = 0; i < nr; i++) {
		rmpool_prepare_put(&r[i], l.segment, SEGMENT_BASE, l.memory + LEAD,
				   l.layout.length, i);
		r[i].timeout_ms = 600000;
	}
	need(rmpool_ring(l.pool, nr, -1), "ring");
	need(rmpool_put(l.pool, l.segment, SEGMENT_BASE, l.memory + LEAD, 1, TIMEOUT_MS), "put");
	before = mem_available();
	start = now();
	ret = need(rmpool_submit(l.pool, r, nr), "submit");
	if (ret != (int)nr)
		die("submit took %d", ret);
	during = mem_available();
	printf("%u requests of %llu bytes took %ld KiB, submitted in %.3f s\n", nr,
	       (unsigned long long)l.layout.length, before - during, now() - start);
	if (before - during > FLOOD_KIB)
		die("%ld KiB for %u requests", before - during, nr);

	n = need(rmpool_cancel_all(l.pool), "cancel");
	take_all(l.pool, results, nr);
	for (i = 0; i < nr; i++) {
		const struct rmpool_completion *c = &results[i];

		if (c->status == -ECANCELED && c->bytes <= l.layout.length)
			cancelled++;
		else if (!c->status && c->bytes == l.layout.length)
			done++;
		else
			die("request %u: status %d, %llu bytes", i, c->status,
			    (unsigned long long)c->bytes);
	}
	printf("%u cancelled, %u done, after %.3f s\n", cancelled, done, now() - start);
	if (cancelled != (uint32_t)n)
		die("cancel said %d, but %u ended so", n, cancelled);
	/* All goes on as before. */
	need(rmpool_put(l.pool, l.segment, SEGMENT_BASE, l.memory + LEAD, 4096, TIMEOUT_MS),
	     "put afterwards");
	rmpool_close(l.pool);
}

/* balance: 64 MiB in puts of 1 MiB. */
static void balance(char **args)
{
	struct local l = open_all(args[0], args[1]);
	struct rmpool_completion results[64];
	struct rmpool_request r[64];
	double start = now();
	uint32_t i;

	for (i = 0; i < 64; i++)
		rmpool_prepare_put(&r[i], l.segment, SEGMENT_BASE + i % 40 * MIB,
				   l.memory + LEAD + i % 40 * MIB, MIB, i);
	run_ring(&l, r, 64, results);
	for (i = 0; i < 64; i++)
		check_done(&results[i], &r[i], start);
	rmpool_close(l.pool);
}

/* hold: a first transfer that works, "done", and then stays until its input ends. */
static void hold(char **args)
{
	struct local l = open_all(args[0], args[1]);

	need(rmpool_put(l.pool, l.segment, l.layout.places[2].offset, l.memory + l.at[2],
			l.layout.places[2].length, TIMEOUT_MS), "first put");
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	need(rmpool_get(l.pool, l.segment, l.layout.places[2].offset, l.memory + l.at[2],
			l.layout.places[2].length, TIMEOUT_MS), "last get");
	rmpool_close(l.pool);
}

/*
 * unattended: submits 10,000 requests and makes no further call before the next
 * line of its input, by when all data must be there and all completions as well.
 */
static void unattended(char **args)
{
	struct local l = open_all(args[0], "many");
	struct rmpool_request *r = requests(&l, true);
	uint64_t seed = strtoull(args[1], NULL, 0);
	struct rmpool_completion *c;
	bool *seen;
	int n, i;

	c = need_memory(calloc(16384, sizeof(*c)));
	seen = need_memory(calloc(l.layout.nr, sizeof(*seen)));
	fill_places(&l, seed);
	need(rmpool_ring(l.pool, 16384, -1), "ring");
	submit_all(l.pool, r, l.layout.nr);
	puts("submitted");
	fflush(stdout);
	if (getchar() == EOF)
		die("no word that all is there");
	/* The last completion may be a moment behind the last byte. */
	need(rmpool_wait(l.pool, l.layout.nr, 10000), "wait for all");
	n = need(rmpool_poll(l.pool, c, 16384), "poll");
	if (n != (int)l.layout.nr)
		die("%d completions", n);
	for (i = 0; i < n; i++) {
		if (c[i].cookie >= l.layout.nr || seen[c[i].cookie] || c[i].status ||
		    c[i].bytes != 512)
			die("completion %d: cookie %llu, status %d, %llu bytes", i,
			    (unsigned long long)c[i].cookie, c[i].status,
			    (unsigned long long)c[i].bytes);
		seen[c[i].cookie] = true;
	}
	rmpool_close(l.pool);
}

/* late: uses a region that the host added after the segment was opened. */
static void late(char **args)
{
	struct local l = open_all(args[0], args[1]);
	char line[32], why[128];
	long long added = 0;
	uint64_t offset;

	need(rmpool_put(l.pool, l.segment, SEGMENT_BASE, l.memory + LEAD, 100, TIMEOUT_MS),
	     "put before");
	puts("opened");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || numbers(line, &added, 1) != 1)
		die("no offset");
	offset = (uint64_t)added;
	need(rmpool_put(l.pool, l.segment, offset + 1, l.memory + 5000, 65537, TIMEOUT_MS),
	     "put to the new region");
	need(rmpool_get(l.pool, l.segment, offset + 1, l.memory + 100000, 65537, TIMEOUT_MS),
	     "get from the new region");
	if (!pattern_check(l.memory + 100000, 65537, LOCAL_SEED, 5000, "new region", why,
			   sizeof(why)))
		die("%s", why);
	rmpool_close(l.pool);
}

/* ------------------------------------------------------------------ threads */

#define SLOTS		16	/* of each thread; half of the layout's places */

struct workers {
	struct local l;
	uint64_t seed;
	uint64_t count;
	/* Cookie plus one of what is under way in a slot, or 0. */
	_Atomic uint64_t busy[2 * SLOTS];
	atomic_ullong ended;
};

struct worker {
	struct workers *all;
	uint64_t which;		/* 0 puts, 1 gets */
};

static uint32_t slot_of(uint64_t cookie)
{
	return (uint32_t)((cookie & 1) * SLOTS + (cookie >> 1) % SLOTS);
}

/* Takes what is there, whoever submitted it. */
static void reap(struct workers *w)
{
	struct rmpool_completion c[8];
	int n, i;

	n = rmpool_wait(w->l.pool, 1, 20);
	if (n < 0 && n != -ETIME)
		need(n, "wait");
	n = need(rmpool_poll(w->l.pool, c, 8), "poll");
	for (i = 0; i < n; i++) {
		uint64_t expected = c[i].cookie + 1;

		if (c[i].status || c[i].bytes != w->l.layout.places[0].length)
			die("cookie %llu: status %d, %llu bytes", (unsigned long long)c[i].cookie,
			    c[i].status, (unsigned long long)c[i].bytes);
		if (!atomic_compare_exchange_strong(&w->busy[slot_of(c[i].cookie)], &expected, 0))
			die("cookie %llu ended, but %llu is under way",
			    (unsigned long long)c[i].cookie, (unsigned long long)expected - 1);
		atomic_fetch_add(&w->ended, 1);
	}
}

static void *work(void *arg)
{
	struct worker *me = arg;
	struct workers *w = me->all;
	struct local *l = &w->l;
	struct rmpool_request r;
	char why[128];
	uint64_t n;
	int ret;

	for (n = 0; n < w->count + SLOTS; n++) {
		uint64_t cookie = n << 1 | me->which;
		uint32_t slot = slot_of(cookie);
		const struct place *p = &l->layout.places[slot];
		uint8_t *mem = l->memory + l->at[slot];

		while (atomic_load(&w->busy[slot]))
			reap(w);
		if (me->which && n >= SLOTS) {
			if (!pattern_check(mem, p->length, w->seed, p->offset, "got", why,
					   sizeof(why)))
				die("%s, at %llu", why, (unsigned long long)n);
			memset(mem, 0, p->length);
		}
		if (n >= w->count)
			continue;
		if (!me->which)
			pattern_fill(mem, p->length, n, p->offset);
		rmpool_prepare_put(&r, l->segment, p->offset, mem, p->length, cookie);
		r.op = me->which ? RMPOOL_OP_GET : RMPOOL_OP_PUT;
		atomic_store(&w->busy[slot], cookie + 1);
		while ((ret = rmpool_submit(l->pool, &r, 1)) == -EAGAIN)
			reap(w);
		need(ret, "submit");
	}
	return NULL;
}

static void *wait_for_eight(void *arg)
{
	struct local *l = arg;

	return (void *)(intptr_t)rmpool_wait(l->pool, 8, TIMEOUT_MS);
}

/*
 * threads: one waits while another submits. Then two at once, one that puts and
 * one that gets, in a ring that is too small for both; each takes completions of
 * either. Every request ends once, all data is right.
 */
static void threads(char **args)
{
	static struct workers w;
	struct worker each[2] = { { &w, 0 }, { &w, 1 } };
	struct rmpool_completion results[8];
	struct rmpool_request *r;
	pthread_t thread[2];
	uint64_t n;
	void *ret;
	char why[128];
	int i;

	w.l = open_all(args[0], "slots");
	w.seed = strtoull(args[1], NULL, 0);
	w.count = strtoull(args[2], NULL, 0);
	need(rmpool_ring(w.l.pool, 16, -1), "ring");

	r = requests(&w.l, false);
	if (pthread_create(&thread[0], NULL, wait_for_eight, &w.l))
		die("no thread");
	for (i = 0; i < 8; i += 2)
		submit_all(w.l.pool, r + i, 2);
	pthread_join(thread[0], &ret);
	if ((intptr_t)ret != 8)
		die("the waiting thread got %d", (int)(intptr_t)ret);
	take_all(w.l.pool, results, 8);

	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, work, &each[i]))
			die("no thread");
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	if (atomic_load(&w.ended) != 2 * w.count)
		die("%llu ended", (unsigned long long)atomic_load(&w.ended));
	/* What was put last to each slot is there. */
	for (n = w.count - SLOTS; n < w.count; n++) {
		uint32_t slot = slot_of(n << 1);
		const struct place *p = &w.l.layout.places[slot];
		uint8_t *mem = w.l.memory + w.l.at[slot];

		memset(mem, 0, p->length);
		need(rmpool_get(w.l.pool, w.l.segment, p->offset, mem, p->length, TIMEOUT_MS),
		     "get");
		if (!pattern_check(mem, p->length, n, p->offset, "put last", why, sizeof(why)))
			die("%s, of %llu", why, (unsigned long long)n);
	}
	rmpool_close(w.l.pool);
}

static void put(char **args)
{
	move(args, true);
}

static void get(char **args)
{
	move(args, false);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(char **args);
		int nr_args;
	} commands[] = {
		{ "put", put, 4 }, { "get", get, 4 }, { "range", range, 2 },
		{ "one-bad", one_bad, 3 }, { "too-many", too_many, 1 }, { "zero", zero, 3 },
		{ "flood", flood, 2 }, { "balance", balance, 2 }, { "hold", hold, 2 },
		{ "unattended", unattended, 2 }, { "late", late, 2 },
		{ "threads", threads, 3 },
	};
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc > 1 && !strcmp(argv[1], commands[i].name) &&
		    argc == commands[i].nr_args + 2) {
			commands[i].run(argv + 2);
			return 0;
		}
	fprintf(stderr, "usage: see the top of xfer.c\n");
	return 2;
}
