// SPDX-License-Identifier: MIT
/*
 * long: registrations that take seconds.
 *
 *	long one MIB		one of them; says "done"
 *	long ends MIB		signals end the process in the middle of it
 *	long batch MIB		a signal in the middle of a call for many
 *	long two MIB		two of them at the same time, of two threads
 *	long beside MIB ROUNDS	medians in s of one alone, and of the longer of two at the
 *				same time
 *	long move NODE/SEGMENT	puts and gets again and again; says "opened", answers each
 *				line of its input with "ok N", N rounds were done, or with
 *				"bad WHY"
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "big.h"
#include "clock.h"
#include "pattern.h"
#include "report.h"

#define PAGE	4096UL
#define PIECE	(2 * MIB + 4097)	/* of move */
#define TRIES	5
#define PATIENCE 20			/* seconds */

static struct rmpool *pool;

static void pool_open(void)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
}

static size_t size_of(const char *mib)
{
	return argument(mib, 64, 1 << 20) / 64 * 64 * MIB;
}

/* ----------------------------------------------------------------- what others see */

struct seen {
	pid_t pid;
	uint32_t nr;		/* regions of it */
	uint32_t making;	/* of those, being registered */
	uint64_t id[2];
	uint32_t percent[2];
};

static int see(const struct rmpool_nl_region *r, void *arg)
{
	struct seen *seen = arg;

	if (r->owner_pid != (uint32_t)seen->pid)
		return 0;
	seen->making += r->state == RMPOOL_REGION_STATE_REGISTERING;
	if (seen->nr < 2) {
		seen->id[seen->nr] = r->id;
		seen->percent[seen->nr] = r->percent;
	}
	seen->nr++;
	return 0;
}

static struct seen look(struct rmpool_nl *nl, pid_t pid)
{
	struct seen seen = { .pid = pid };

	if (rmpool_nl_regions(nl, see, &seen))
		give_up("%s", rmpool_error());
	return seen;
}

static int count_mrs(const struct rmpool_nl_device *device, void *arg)
{
	*(uint64_t *)arg += device->mrs;
	return 0;
}

static uint64_t device_mrs(struct rmpool_nl *nl)
{
	uint64_t mrs = 0;

	if (rmpool_nl_devices(nl, count_mrs, &mrs))
		give_up("%s", rmpool_error());
	return mrs;
}

static struct rmpool_nl *nl_open(void)
{
	struct rmpool_nl *nl;

	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	return nl;
}

/* Soon, at least. */
static bool all_gone(struct rmpool_nl *nl, pid_t pid, long pins, uint64_t mrs)
{
	double end = now() + patience(PATIENCE);

	while (pinned_pages() != pins || look(nl, pid).nr || device_mrs(nl) != mrs) {
		if (now() > end)
			return false;
		pause_ms(5);
	}
	return true;
}

/* ------------------------------------------------------------------------ one, two */

static void one(size_t size)
{
	uint8_t *at = big_map(size);
	double began = now();
	uint32_t region;

	pool_open();
	if (rmpool_register(pool, at, size, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL) ||
	    rmpool_unregister(pool, region))
		give_up("%s", rmpool_error());
	printf("done in %.2f s\n", now() - began);
	rmpool_close(pool);
}

struct registration {
	uint8_t *at;
	size_t size;
	uint32_t region;
	atomic_int result;	/* 1: not yet */
};

static void *register_it(void *arg)
{
	struct registration *r = arg;

	atomic_store(&r->result, rmpool_register(pool, r->at, r->size, RMPOOL_ACCESS_ALL, 0, 0,
						 &r->region, NULL));
	return NULL;
}

/* Both go on while the other does. False: that was not seen. */
static bool both_rise(struct rmpool_nl *nl, struct registration r[2], struct test *t)
{
	uint32_t both = 0, rises[2] = { 0 }, i;
	struct seen last = { .nr = 0 }, seen;
	pthread_t threads[2];

	for (i = 0; i < 2; i++) {
		big_forget(r[i].at, r[i].size);
		atomic_store(&r[i].result, 1);
	}
	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, register_it, &r[i]))
			give_up("no thread");
	while (atomic_load(&r[0].result) == 1 || atomic_load(&r[1].result) == 1) {
		seen = look(nl, getpid());
		if (seen.making == 2) {
			both++;
			for (i = 0; i < 2 && last.making == 2; i++) {
				expect(t, seen.id[i] == last.id[i] &&
				       seen.percent[i] >= last.percent[i],
				       "region %llu went from %u to %u %%",
				       (unsigned long long)seen.id[i], last.percent[i],
				       seen.percent[i]);
				rises[i] += seen.percent[i] > last.percent[i];
			}
		}
		last = seen;
	}
	printf("both were seen %u times, the first rose %u times, the second %u times\n", both,
	       rises[0], rises[1]);
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		expect(t, !r[i].result, "%u: %s", i, strerror(-r[i].result));
	}
	seen = look(nl, getpid());
	expect(t, seen.nr == 2 && !seen.making && seen.percent[0] == 100 &&
	       seen.percent[1] == 100, "%u regions, %u and %u %%", seen.nr, seen.percent[0],
	       seen.percent[1]);
	expect(t, status_value("VmPin") == (long)(2 * r[0].size / 1024), "VmPin is %ld kB",
	       status_value("VmPin"));
	for (i = 0; i < 2; i++)
		expect(t, r[i].result || !rmpool_unregister(pool, r[i].region), "%s",
		       rmpool_error());
	return both >= 3 && rises[0] && rises[1];
}

static void two(size_t size)
{
	struct test t = { .name = "two threads register at the same time" };
	struct registration r[2] = { { .size = size }, { .size = size } };
	struct rmpool_nl *nl = nl_open();
	uint64_t mrs = device_mrs(nl);
	long before = pinned_pages();
	int tries = 0;

	pool_open();
	for (int i = 0; i < 2; i++)
		r[i].at = big_map(size);
	while (tries < TRIES && !both_rise(nl, r, &t) && !t.failed)
		tries++;
	expect(&t, tries < TRIES, "never seen that both rise");
	expect(&t, !status_value("VmPin") && all_gone(nl, getpid(), before, mrs),
	       "VmPin is %ld kB, %ld pages stay", status_value("VmPin"),
	       pinned_pages() - before);
	rmpool_nl_close(nl);
	rmpool_close(pool);
	test_end(&t);
}

/* --------------------------------------------------------------------------- batch */

static struct {
	struct rmpool_region_add adds[3];	/* a page, much, a page */
	atomic_int result;			/* -1000: not yet */
} many;

static void *register_many(void *unused)
{
	(void)unused;
	atomic_store(&many.result, rmpool_register_many(pool, many.adds, 3,
							sizeof(many.adds[0])));
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

/* False: it was faster than that. */
static bool interrupt_many(struct rmpool_nl *nl, size_t size, uint8_t *at, uint8_t *pages,
			   struct test *t)
{
	struct rmpool_region_add *adds = many.adds;
	struct seen seen;
	pthread_t thread;
	int ret;

	big_forget(at, size);
	rmpool_prepare_region(&adds[0], pages, PAGE, RMPOOL_ACCESS_ALL, 0, 0);
	rmpool_prepare_region(&adds[1], at, size, RMPOOL_ACCESS_ALL, 0, 0);
	rmpool_prepare_region(&adds[2], pages + PAGE, PAGE, RMPOOL_ACCESS_ALL, 0, 0);
	atomic_store(&many.result, -1000);
	if (pthread_create(&thread, NULL, register_many, NULL))
		give_up("no thread");
	do
		seen = look(nl, getpid());
	while (atomic_load(&many.result) == -1000 && !(seen.making && seen.percent[1] >= 5));
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	ret = atomic_load(&many.result);
	if (ret >= 2) {
		for (int i = 0; i < ret; i++)
			expect(t, !rmpool_unregister(pool, adds[i].handle), "%s", rmpool_error());
		return false;
	}
	expect(t, ret == 1 && !adds[0].status && adds[0].handle && !adds[1].handle &&
	       !adds[2].handle, "%d tried, handles %u, %u, %u", ret, adds[0].handle,
	       adds[1].handle, adds[2].handle);
	seen = look(nl, getpid());
	expect(t, seen.nr == 1 && !seen.making && status_value("VmPin") == 4,
	       "%u regions, VmPin is %ld kB", seen.nr, status_value("VmPin"));
	ret = rmpool_register_many(pool, adds + 2, 1, sizeof(adds[0]));
	expect(t, ret == 1 && !adds[2].status, "the last one afterwards: %s", rmpool_error());
	expect(t, !rmpool_unregister(pool, adds[0].handle) &&
	       !rmpool_unregister(pool, adds[2].handle), "%s", rmpool_error());
	return true;
}

static void batch(size_t size)
{
	struct test t = { .name = "a signal in a call for many: what is done stays, no half of one" };
	struct sigaction act = { .sa_handler = nothing };	/* no SA_RESTART */
	struct rmpool_nl *nl = nl_open();
	uint8_t *at = big_map(size), *pages;
	int tries = 0;

	sigaction(SIGUSR1, &act, NULL);
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		give_up("no memory");
	pool_open();
	while (tries < TRIES && !interrupt_many(nl, size, at, pages, &t))
		tries++;
	expect(&t, tries < TRIES, "never in time");
	expect(&t, !status_value("VmPin"), "VmPin is %ld kB", status_value("VmPin"));
	rmpool_close(pool);
	rmpool_nl_close(nl);
	test_end(&t);
}

/* --------------------------------------------------------------------------- beside */

static int compare_times(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* How long it takes until @nr registrations are done that begin together. */
static double time_of(struct registration *r, uint32_t nr)
{
	pthread_t threads[2];
	double began, took;
	uint32_t i;

	for (i = 0; i < nr; i++)
		big_forget(r[i].at, r[i].size);
	began = now();
	for (i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, register_it, &r[i]))
			give_up("no thread");
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	took = now() - began;
	for (i = 0; i < nr; i++)
		if (r[i].result || rmpool_unregister(pool, r[i].region))
			give_up("%s", rmpool_error());
	return took;
}

static void beside(size_t size, unsigned int rounds)
{
	struct registration r[2] = { { .size = size }, { .size = size } };
	double *took[2];
	uint32_t i, nr;

	pool_open();
	for (i = 0; i < 2; i++) {
		r[i].at = big_map(size);
		took[i] = calloc(rounds, sizeof(*took[i]));
		if (!took[i])
			give_up("no memory");
	}
	/* One of each is for caches and allocators. */
	for (i = 0; i <= rounds; i++)
		for (nr = 1; nr <= 2; nr++)
			took[nr - 1][i ? i - 1 : 0] = time_of(r, nr);
	for (nr = 0; nr < 2; nr++)
		qsort(took[nr], rounds, sizeof(*took[nr]), compare_times);
	printf("%.3f %.3f\n", took[0][rounds / 2], took[1][rounds / 2]);
	for (i = 0; i < 2; i++)
		free(took[i]);
	rmpool_close(pool);
}

/* ---------------------------------------------------------------------------- ends */

/* A process that registers dies of a signal when it has done so much. False: it was
 * faster than that, or did not die within a second. *@soonest: of those that died.
 */
static bool end_at(struct rmpool_nl *nl, int sig, uint32_t percent, uint8_t *at, size_t size,
		   double *soonest, struct test *t)
{
	uint64_t mrs = device_mrs(nl);
	long pins = pinned_pages();
	double began, took;
	struct seen seen;
	uint32_t region;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (!pid) {
		pool_open();
		rmpool_register(pool, at, size, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL);
		_exit(0);
	}
	do {
		seen = look(nl, pid);
		if (waitpid(pid, &status, WNOHANG) != pid)
			continue;
		expect(t, all_gone(nl, pid, pins, mrs), "something of a good one is left");
		return false;
	} while (!seen.making || seen.percent[0] < percent);

	began = now();
	kill(pid, sig);
	if (waitpid(pid, &status, 0) != pid)
		give_up("waitpid: %s", strerror(errno));
	took = now() - began;
	expect(t, WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == sig),
	       "status 0x%x", status);
	expect(t, all_gone(nl, pid, pins, mrs), "%ld pages, %u regions, %llu MRs are left",
	       pinned_pages() - pins, look(nl, pid).nr,
	       (unsigned long long)(device_mrs(nl) - mrs));
	printf("signal %d at %u %%: dead after %.0f ms, nothing left after %.0f ms\n", sig,
	       seen.percent[0], took * 1e3, (now() - began) * 1e3);
	if (!WIFSIGNALED(status))
		return false;
	if (*soonest <= 0 || took < *soonest)
		*soonest = took;
	return took < patience(1);
}

static void ends(size_t size)
{
	const struct {
		int sig;
		uint32_t percent;
		const char *name;
	} cases[] = {
		{ SIGKILL, 3, "SIGKILL, soon: dead within a second, nothing is left" },
		{ SIGINT, 30, "SIGINT, while it pins: dead within a second, nothing is left" },
		{ SIGKILL, 60, "SIGKILL, while it maps: dead within a second, nothing is left" },
		{ SIGINT, 51, "SIGINT, while it maps: dead within a second, nothing is left" },
	};
	struct rmpool_nl *nl = nl_open();
	uint8_t *at = big_map(size);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test t = { .name = cases[i].name };
		double soonest = 0;
		int tries = 0;

		/* Work that does not look for signals takes its time each time, a machine
		 * that stands still does not.
		 */
		while (tries < TRIES && !t.failed &&
		       !end_at(nl, cases[i].sig, cases[i].percent, at, size, &soonest, &t))
			tries++;
		if (soonest > 0)
			expect(&t, tries < TRIES, "at %u %% it took %.2f s at least",
			       cases[i].percent, soonest);
		expect(&t, tries < TRIES, "never in time");
		test_end(&t);
	}
	rmpool_nl_close(nl);
}

/* ---------------------------------------------------------------------------- move */

static uint8_t *buffer(void)
{
	uint8_t *at = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	uint32_t region;

	if (at == MAP_FAILED ||
	    rmpool_register(pool, at, PIECE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	return at;
}

/* There and back; false: @why. */
static bool round_trip(uint32_t segment, uint8_t *out, uint8_t *in, uint64_t seed, char *why,
		       size_t size)
{
	pattern_fill(out, PIECE, seed, 0);
	memset(in, 0, PIECE);
	if (rmpool_put(pool, segment, 4099, out, PIECE, 60000) ||
	    rmpool_get(pool, segment, 4099, in, PIECE, 60000)) {
		snprintf(why, size, "%s", rmpool_error());
		return false;
	}
	return pattern_check(in, PIECE, seed, 0, "what came back", why, size);
}

static int move(const char *name)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char why[256] = "", line[64];
	uint8_t *out, *in;
	uint64_t rounds = 0;
	uint32_t segment;

	pool_open();
	if (rmpool_segment_open(pool, name, NULL, 60000, &segment, NULL))
		give_up("%s", rmpool_error());
	out = buffer();
	in = buffer();
	puts("opened");
	fflush(stdout);
	for (;;) {
		if (!*why && round_trip(segment, out, in, rounds + 1, why, sizeof(why)))
			rounds++;
		if (poll(&input, 1, *why ? -1 : 0) <= 0)
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		if (*why)
			printf("bad %s\n", why);
		else
			printf("ok %llu\n", (unsigned long long)rounds);
		fflush(stdout);
	}
	rmpool_close(pool);
	return *why != 0;
}

int main(int argc, char **argv)
{
	const char *what = argc >= 3 ? argv[1] : "";

	if (!strcmp(what, "one"))
		one(size_of(argv[2]));
	else if (!strcmp(what, "ends"))
		ends(size_of(argv[2]));
	else if (!strcmp(what, "batch"))
		batch(size_of(argv[2]));
	else if (!strcmp(what, "two"))
		two(size_of(argv[2]));
	else if (!strcmp(what, "beside") && argc == 4)
		beside(size_of(argv[2]), (unsigned int)argument(argv[3], 1, 1000));
	else if (!strcmp(what, "move"))
		return move(argv[2]);
	else
		give_up("see the top of long.c");
	return report_failed != 0;
}
