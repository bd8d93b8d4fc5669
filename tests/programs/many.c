// SPDX-License-Identifier: MIT
/*
 * many: very many regions of one process, and very large ones that are cut short.
 *
 *	many regions N		what one costs among 1,000, 10,000 and N; then N are let
 *				go of by calls, by the end of the process, by SIGKILL
 *	many limit N		N is the limit of regions: one more is refused
 *	many lookup N NODE/SEGMENT
 *				what it costs to find one of 1,000, 10,000 and N
 *	many interrupt MIB	registering is ended by a signal, at several moments
 *	many progress MIB	others see how far it is
 *
 * Regions are of one page each.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "big.h"
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define BATCH	1000U
#define SAMPLE	500U		/* registered one by one to see what one costs */
#define PIECE	50U		/* of them; the fastest counts, a machine may stand still */

static struct rmpool *pool;
static uint8_t *memory;		/* a page for each region, and for the sample */
static uint32_t *handles;

static void pool_open(void)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
}

static uint64_t pinned_bytes(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info.pinned;
}

static void room_for(uint32_t nr)
{
	size_t size = (nr + SAMPLE) * PAGE;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	handles = calloc(nr + SAMPLE, sizeof(*handles));
	if (memory == MAP_FAILED || !handles)
		give_up("no memory for %u pages", nr);
}

/* Pages @from to @to, by calls for many; returns what one took, in the fastest of the calls
 * of the second half.
 */
static double register_pages(uint32_t from, uint32_t to, uint32_t access)
{
	static struct rmpool_region_add adds[BATCH];
	const uint32_t middle = from + (to - from) / 2;
	double best = 1e9, began, took;

	while (from < to) {
		uint32_t nr = to - from, i;
		int ret;

		if (nr > BATCH)
			nr = BATCH;
		for (i = 0; i < nr; i++)
			rmpool_prepare_region(&adds[i], memory + (from + i) * PAGE, PAGE,
					      access, 0, 0);
		began = now();
		ret = rmpool_register_many(pool, adds, nr, sizeof(adds[0]));
		took = (now() - began) / nr;
		if (from + nr > middle && took < best)
			best = took;
		if (ret != (int)nr)
			give_up("%d of %u: %s", ret, nr, rmpool_error());
		for (i = 0; i < nr; i++) {
			if (adds[i].status)
				give_up("page %u: %s", from + i, rmpool_error());
			handles[from + i] = adds[i].handle;
		}
		from += nr;
	}
	return best;
}

/* Returns how long that took. */
static double unregister_pages(uint32_t from, uint32_t to)
{
	double began = now();

	while (from < to) {
		uint32_t nr = to - from < RMPOOL_BATCH_MAX ? to - from : RMPOOL_BATCH_MAX;
		int ret = rmpool_unregister_many(pool, handles + from, nr, NULL);

		if (ret)
			give_up("%d of %u: %s", ret, nr, rmpool_error());
		from += nr;
	}
	return now() - began;
}

static void add_one(uint32_t i)
{
	if (rmpool_register(pool, memory + i * PAGE, PAGE, RMPOOL_ACCESS_ALL, 0, 0, &handles[i],
			    NULL))
		give_up("%s", rmpool_error());
}

static void del_one(uint32_t i)
{
	if (rmpool_unregister(pool, handles[i]))
		give_up("%s", rmpool_error());
}

/* What one of so many takes, each by a call of its own, in the fastest piece of them. */
static double each_of(uint32_t from, void (*call)(uint32_t i))
{
	double best = 1e9, began, took;
	uint32_t i, k;

	for (i = from; i < from + SAMPLE; i += PIECE) {
		began = now();
		for (k = i; k < i + PIECE; k++)
			call(k);
		took = (now() - began) / PIECE;
		if (took < best)
			best = took;
	}
	return best;
}

/* What the next regions cost, each by a call of its own: to register, and to
 * unregister. In seconds.
 */
static void sample(uint32_t have, double *add, double *del)
{
	*add = each_of(have, add_one);
	*del = each_of(have, del_one);
}

static bool pins_return(long before, double seconds)
{
	double end = now() + patience(seconds);

	while (pinned_pages() != before) {
		if (now() > end)
			return false;
		pause_ms(5);
	}
	return true;
}

struct seen {
	pid_t pid;
	uint32_t nr;
};

static int see(const struct rmpool_nl_region *r, void *arg)
{
	struct seen *seen = arg;

	seen->nr += r->owner_pid == (uint32_t)seen->pid;
	return 0;
}

static uint32_t regions_of(pid_t pid)
{
	struct seen seen = { .pid = pid };
	struct rmpool_nl *nl;

	if (rmpool_nl_open(&nl) || rmpool_nl_regions(nl, see, &seen))
		give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
	return seen.nr;
}

/* 1,000, 10,000 and the number asked for, as far as they are smaller. */
static int sizes_up_to(uint32_t nr, uint32_t sizes[3])
{
	int n = 0;

	for (uint32_t size = 1000; size <= 10000 && size < nr; size *= 10)
		sizes[n++] = size;
	sizes[n++] = nr;
	return n;
}

/* ------------------------------------------------------------------ what it costs */

static void test_costs(uint32_t nr)
{
	struct test flat = { .name = "one costs the same among many" };
	struct test gone = { .name = "all are registered, listed, and let go of" };
	double add[3], del[3], batch[3], took;
	long before = pinned_pages();
	uint32_t sizes[3], have = 0;
	int n = sizes_up_to(nr, sizes), i;

	pool_open();
	room_for(nr);
	for (i = 0; i < n; i++) {
		batch[i] = register_pages(have, sizes[i], RMPOOL_ACCESS_ALL);
		have = sizes[i];
		sample(have, &add[i], &del[i]);
	}
	printf("%10s %14s %14s %14s  (ns for each region)\n", "regions", "by 1,000", "one by one",
	       "unregister");
	for (i = 0; i < n; i++) {
		printf("%10u %14.0f %14.0f %14.0f\n", sizes[i], batch[i] * 1e9, add[i] * 1e9,
		       del[i] * 1e9);
		expect(&flat, add[i] < 4 * add[0] && del[i] < 4 * del[0] &&
		       batch[i] < 4 * batch[0], "%u regions: %.0f, %.0f, %.0f ns", sizes[i],
		       batch[i] * 1e9, add[i] * 1e9, del[i] * 1e9);
	}
	test_end(&flat);

	expect(&gone, regions_of(getpid()) == nr && pinned_bytes() == nr * PAGE,
	       "%u regions of %u, %llu bytes", regions_of(getpid()), nr,
	       (unsigned long long)pinned_bytes());
	took = unregister_pages(0, nr);
	printf("%u regions unregistered in %.2f s, %.0f ns each\n", nr, took, took * 1e9 / nr);
	expect(&gone, !pinned_bytes() && !status_value("VmPin") && !regions_of(getpid()),
	       "%llu bytes left", (unsigned long long)pinned_bytes());
	expect(&gone, pins_return(before, 20), "%ld pages left", pinned_pages() - before);
	test_end(&gone);
	rmpool_close(pool);
	munmap(memory, (nr + SAMPLE) * PAGE);
	free(handles);
}

/* A process that has them ends; all is given back within seconds. */
static void test_end_of_process(uint32_t nr, bool killed)
{
	struct test t = { .name = killed ? "kill -9 lets go of all" : "exit lets go of all" };
	double began, gone, freed;
	long before = pinned_pages();
	int ready[2], go[2], status = 0;
	char byte = 0;
	pid_t pid;

	if (pipe(ready) || pipe(go))
		give_up("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		pool_open();
		room_for(nr);
		register_pages(0, nr, RMPOOL_ACCESS_ALL);
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(3);
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		give_up("the child did not register");
	expect(&t, pinned_pages() - before == (long)nr && regions_of(pid) == nr,
	       "%ld pages pinned, %u regions", pinned_pages() - before, regions_of(pid));
	began = now();
	if (killed ? kill(pid, SIGKILL) : write(go[1], &byte, 1) != 1)
		give_up("the child cannot be ended: %s", strerror(errno));
	waitpid(pid, &status, 0);
	gone = now() - began;
	expect(&t, killed ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status),
	       "status 0x%x", status);
	expect(&t, pins_return(before, 30), "%ld pages left", pinned_pages() - before);
	freed = now() - began;
	expect(&t, !regions_of(pid), "%u regions left", regions_of(pid));
	expect(&t, gone < patience(10), "the process was there for %.2f s", gone);
	printf("%u regions: the process is gone after %.2f s, their pages after %.2f s\n", nr, gone,
	       freed);
	close(ready[0]);
	close(go[1]);
	test_end(&t);
}

/* ---------------------------------------------------------------------- the limit */

static bool is_limit(const struct rmpool_error *error, uint32_t nr)
{
	return error->reason == RMPOOL_REASON_REGIONS && error->limit == nr &&
	       error->used == nr && error->need == 1;
}

static void test_limit(uint32_t nr)
{
	struct test t = { .name = "one beyond the limit is refused, which is named" };
	struct rmpool_region_add adds[10];
	struct rmpool_info info;
	char text[64];
	uint32_t i, region = 0;
	int ret;

	pool_open();
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&t, info.regions_max == nr, "the limit is %u", info.regions_max);
	room_for(nr);
	register_pages(0, nr, 0);

	ret = rmpool_register(pool, memory, PAGE, 0, 0, 0, &region, NULL);
	snprintf(text, sizeof(text), "one open file may have %u regions, %u in use", nr, nr);
	expect(&t, ret == -ENOMEM && !region && is_limit(rmpool_error_detail(), nr) &&
	       strstr(rmpool_error(), text), "%d: %s", ret, rmpool_error());
	printf("%s\n", rmpool_error());
	/* Very often: that must not fill the log. */
	for (i = 0; i < 1000; i++) {
		ret = rmpool_register(pool, memory, PAGE, 0, 0, 0, &region, NULL);
		expect(&t, ret == -ENOMEM, "again: %d", ret);
	}
	for (i = 0; i < 10; i++)
		rmpool_prepare_region(&adds[i], memory, PAGE, 0, 0, 0);
	expect(&t, !rmpool_unregister(pool, handles[nr / 2]), "%s", rmpool_error());
	ret = rmpool_register_many(pool, adds, 10, sizeof(adds[0]));
	expect(&t, ret == 10 && !adds[0].status && adds[0].handle == handles[nr / 2] &&
	       strstr(rmpool_error(), text), "%d, status %d, handle %u: %s", ret,
	       adds[0].status, adds[0].handle, rmpool_error());
	for (i = 1; i < 10; i++)
		expect(&t, adds[i].status == -ENOMEM && !adds[i].handle &&
		       is_limit(&adds[i].error, nr), "%u of many: %d", i, adds[i].status);
	expect(&t, pinned_bytes() == nr * PAGE, "%llu bytes pinned",
	       (unsigned long long)pinned_bytes());
	unregister_pages(0, nr);
	expect(&t, !pinned_bytes(), "%llu bytes left", (unsigned long long)pinned_bytes());
	test_end(&t);
}

/* ------------------------------------------------------------------------ look-up */

/* Seconds for each request that is looked up among @nr regions and found, and not
 * allowed: nothing more is done with it.
 */
static double look_up(uint32_t nr, uint32_t segment, struct test *t)
{
	static struct rmpool_request requests[RMPOOL_BATCH_MAX];
	static struct rmpool_completion results[RMPOOL_BATCH_MAX];
	uint64_t state = 88172645463325252;
	double best = 1e9, began;
	uint32_t i, round;

	for (i = 0; i < RMPOOL_BATCH_MAX; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		rmpool_prepare_get(&requests[i], segment, 0, memory + state % nr * PAGE, PAGE, i);
	}
	for (round = 0; round < 10; round++) {
		began = now();
		if (rmpool_transfer(pool, requests, RMPOOL_BATCH_MAX, results, 0) < 0)
			give_up("%s", rmpool_error());
		if (now() - began < best)
			best = now() - began;
	}
	for (i = 0; i < RMPOOL_BATCH_MAX; i++)
		expect(t, results[i].status == -EACCES, "among %u: %s", nr,
		       rmpool_status_text(results[i].status));
	return best / RMPOOL_BATCH_MAX;
}

static void test_look_up(uint32_t nr, const char *name)
{
	struct test t = { .name = "a region is found as fast among many" };
	uint32_t sizes[3], segment, have = 0;
	int n = sizes_up_to(nr, sizes), i;
	double cost[3];

	pool_open();
	room_for(nr);
	if (rmpool_segment_open(pool, name, NULL, 60000, &segment, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < n; i++) {
		register_pages(have, sizes[i], 0);
		have = sizes[i];
		cost[i] = look_up(have, segment, &t);
		printf("%10u regions: %6.0f ns for a request that looks one up\n", have,
		       cost[i] * 1e9);
		expect(&t, cost[i] < 4 * cost[0], "%u regions: %.0f ns, not %.0f", have,
		       cost[i] * 1e9, cost[0] * 1e9);
	}
	test_end(&t);
}

/* ------------------------------------------------------------------- cut short */

static struct {
	uint8_t *at;
	size_t size;
	long at_rest;		/* pages that are pinned when it is not registered */
	atomic_int result;	/* 1: not yet */
	_Alignas(16) uint8_t stack[64 * 1024];
} big;

static void map_big(size_t mib)
{
	big.size = mib * MIB;
	big.at = big_map(big.size);
	big.at_rest = pinned_pages();
}

static void *register_big(void *unused)
{
	uint32_t region;
	int ret;

	(void)unused;
	ret = rmpool_register(pool, big.at, big.size, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL);
	if (!ret)
		rmpool_unregister(pool, region);
	atomic_store(&big.result, ret);
	return NULL;
}

/* In a process of its own that shares our memory, so that its death is that of the
 * call, and our file stays open. It has our errno as well, so it calls nothing.
 */
static int register_big_alone(void *fd)
{
	struct rmpool_region_add add = {
		.addr = (uintptr_t)big.at, .length = big.size,
		.access = RMPOOL_ACCESS_ALL,
	};

	ioctl(*(const int *)fd, RMPOOL_IOC_REGION_ADD, &add);
	atomic_store(&big.result, add.status);
	return pause();		/* until it is killed */
}

static void nothing(int sig)
{
	(void)sig;
}

/* Until it has begun and so many pages are pinned, or it has ended. */
static bool wait_for_pins(long pages)
{
	while (!pinned_bytes() || pinned_pages() < pages)
		if (atomic_load(&big.result) != 1)
			return false;
	return atomic_load(&big.result) == 1;
}

/* What they were charged for is told behind their pages. */
static bool charges_return(double seconds)
{
	double end = now() + patience(seconds);

	while (pinned_bytes() || status_value("VmPin") || regions_of(getpid())) {
		if (now() > end)
			return false;
		pause_ms(5);
	}
	return true;
}

/* @percent: how much is pinned when the signal comes; 100: while it is being mapped
 * on devices. Returns false when it was faster than that.
 */
static bool cut_short(unsigned int percent, bool killed, struct test *t)
{
	const long before = big.at_rest, pages = (long)(big.size / PAGE);
	double began, took;
	pthread_t thread;
	int status = 0, fd = rmpool_fd(pool), result;
	pid_t pid = -1;
	bool in_time;

	big_forget(big.at, big.size);
	atomic_store(&big.result, 1);
	if (killed) {
		pid = clone(register_big_alone, big.stack + sizeof(big.stack),
			    CLONE_VM | SIGCHLD, &fd);
		if (pid < 0)
			give_up("clone: %s", strerror(errno));
	} else if (pthread_create(&thread, NULL, register_big, NULL)) {
		give_up("no thread");
	}

	in_time = wait_for_pins(before + pages * percent / 100);
	began = now();
	if (killed) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	} else {
		if (in_time)
			pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
	}
	took = now() - began;
	/* The killed one does not tell any more what it got. */
	result = killed && atomic_load(&big.result) == 1 ? -EINTR : atomic_load(&big.result);
	/* Registered before it could be killed, for a process that is no more. */
	if (killed && (!result || regions_of(getpid())))
		return false;
	in_time &= result == -EINTR;
	if (in_time)
		printf("%s at %u %%: ended after %.0f ms\n", killed ? "SIGKILL" : "SIGUSR1",
		       percent, took * 1e3);
	expect(t, !result || result == -EINTR, "at %u %%: %s", percent, strerror(-result));
	/* Who is not killed gets his answer when all is given back. */
	expect(t, !in_time || took < patience(killed ? 1 : 10), "at %u %%: %.2f s", percent,
	       took);
	expect(t, pins_return(before, 20), "at %u %%: %ld pages left", percent,
	       pinned_pages() - before);
	expect(t, charges_return(20), "at %u %%: %llu bytes, %u regions left", percent,
	       (unsigned long long)pinned_bytes(), regions_of(getpid()));
	return in_time;
}

static void test_interrupt(bool killed)
{
	static const unsigned int percents[] = { 0, 10, 50, 90, 100 };
	struct test t = {
		.name = killed ? "a large one is killed: gone at once, and its pins soon" :
				 "a signal ends a large one: EINTR, nothing is left",
	};
	struct sigaction act = { .sa_handler = nothing };	/* no SA_RESTART */
	uint32_t region;
	double end;
	size_t i;

	sigaction(SIGUSR1, &act, NULL);
	pool_open();
	for (i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		/* The end can be too fast to be met. */
		end = now() + patience(60);
		while (!t.failed && !cut_short(percents[i], killed, &t)) {
			rmpool_close(pool);
			expect(&t, pins_return(big.at_rest, 20), "%ld pages left after a miss",
			       pinned_pages() - big.at_rest);
			pool_open();
			expect(&t, now() < end, "at %u %%: never in time", percents[i]);
		}
	}
	expect(&t, !rmpool_register(pool, big.at, 4 * MIB, RMPOOL_ACCESS_ALL, 0, 0, &region,
				    NULL) && !rmpool_unregister(pool, region),
	       "afterwards: %s", rmpool_error());
	rmpool_close(pool);
	test_end(&t);
}

/* --------------------------------------------------------------- how far one is */

struct progress {
	uint32_t last;
	unsigned int steps;	/* times that it was another, below 100 */
	bool back;
	bool wrong;
};

static int see_progress(const struct rmpool_nl_region *r, void *arg)
{
	struct progress *p = arg;

	if (r->owner_pid != (uint32_t)getpid())
		return 0;
	p->back |= r->percent < p->last;
	p->wrong |= r->length != big.size || r->percent > 100 ||
		    (r->state == RMPOOL_REGION_STATE_REGISTERING) != (r->percent < 100);
	p->steps += r->percent != p->last && r->percent < 100;
	p->last = r->percent;
	return 0;
}

static void test_progress(void)
{
	struct test t = { .name = "others see how far a large registration is" };
	double end = now() + patience(60);
	struct progress p;
	struct rmpool_nl *nl;
	pthread_t thread;

	pool_open();
	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	/* Who looks may have no processor while it goes on. */
	do {
		p = (struct progress){ .last = 0 };
		big_forget(big.at, big.size);
		atomic_store(&big.result, 1);
		if (pthread_create(&thread, NULL, register_big, NULL))
			give_up("no thread");
		while (atomic_load(&big.result) == 1)
			if (rmpool_nl_regions(nl, see_progress, &p))
				give_up("%s", rmpool_error());
		pthread_join(thread, NULL);
		printf("%u steps seen, up to %u %%\n", p.steps, p.last);
		expect(&t, !big.result, "%s", strerror(-big.result));
		expect(&t, !p.back && !p.wrong, "back: %d, wrong: %d", p.back, p.wrong);
	} while (!t.failed && p.steps < 5 && now() < end);
	expect(&t, p.steps >= 5, "%u steps", p.steps);
	rmpool_nl_close(nl);
	rmpool_close(pool);
	test_end(&t);
}

int main(int argc, char **argv)
{
	const char *what = argc >= 3 ? argv[1] : "";

	if (!strcmp(what, "interrupt")) {
		map_big(argument(argv[2], 64, 1 << 20) / 64 * 64);
		test_interrupt(false);
		test_interrupt(true);
	} else if (!strcmp(what, "progress")) {
		map_big(argument(argv[2], 64, 1 << 20) / 64 * 64);
		test_progress();
	} else if (!strcmp(what, "regions")) {
		uint32_t nr = (uint32_t)argument(argv[2], 1000, 1000000);

		test_costs(nr);
		test_end_of_process(nr, false);
		test_end_of_process(nr, true);
	} else if (!strcmp(what, "limit")) {
		test_limit((uint32_t)argument(argv[2], 1000, 1000000));
	} else if (!strcmp(what, "lookup") && argc == 4) {
		test_look_up((uint32_t)argument(argv[2], 1000, 1000000), argv[3]);
	} else {
		give_up("many regions N | limit N | lookup N NODE/SEGMENT | interrupt MIB");
	}
	return report_failed != 0;
}
