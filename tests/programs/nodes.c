// SPDX-License-Identifier: MIT
/*
 * nodes: registered memory that the kernel would like to have on another NUMA node, by
 * itself or since it is asked to. It stays where it is, and registered. Host b has two
 * nodes and publishes memory of the second; host a puts and gets all the time.
 *
 *	nodes a|b
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "far.h"

#define PAGE	4096UL
#define HUGE	(2 * MIB)
#define SIZE	(256 * 1024UL)	/* of a region */
#define PAGES	(SIZE / PAGE)
#define ALL	RMPOOL_ACCESS_ALL
#define PATIENCE 60		/* seconds */
#define BALANCING "/sys/kernel/debug/sched/numa_balancing/"

enum {
	PRIVATE,
	SHARED,			/* a memfd */
	TRANSPARENT,		/* in the middle of a huge page */
	PLACES
};

static const char *const names[PLACES] = {
	"private memory", "a memfd", "a transparent huge page",
};

#define CONTROL	PLACE(PLACES)

/* A page of b's. */
struct control {
	uint64_t end;		/* b's, got by a */
	uint64_t round;		/* a's, put by it when all of a round was put */
};

static struct rmpool *pool;

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* -------------------------------------------------------------------- the owner */

static struct {
	uint8_t *at[PLACES];
	uint32_t region[PLACES];
	volatile struct control *control;
} b;

/* Where new memory comes from; -1: from anywhere. */
static void memory_from(int node)
{
	unsigned long mask = node < 0 ? 0 : 1UL << node;

	if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND,
		    node < 0 ? NULL : &mask, node < 0 ? 0 : 8 * sizeof(mask)))
		give_up("set_mempolicy: %s", strerror(errno));
}

static void addresses(uint32_t which, void *pages[PAGES])
{
	for (size_t i = 0; i < PAGES; i++)
		pages[i] = b.at[which] + i * PAGE;
}

/* How many pages are on a node. */
static size_t pages_on(uint32_t which, int node)
{
	int nodes[PAGES];
	void *pages[PAGES];
	size_t nr = 0;

	addresses(which, pages);
	if (syscall(SYS_move_pages, 0, PAGES, pages, NULL, nodes, 0))
		give_up("move_pages: %s", strerror(errno));
	for (size_t i = 0; i < PAGES; i++)
		nr += nodes[i] == node;
	return nr;
}

static uint8_t *make(uint32_t which)
{
	uint8_t *at;
	int fd;

	switch (which) {
	case SHARED:
		fd = memfd_create("nodes", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)SIZE))
			give_up("memfd: %s", strerror(errno));
		at = map(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		close(fd);
		return at;
	case TRANSPARENT:
		at = anonymous(2 * HUGE);
		at += (HUGE - (uintptr_t)at % HUGE) % HUGE;
		madvise(at, HUGE, MADV_HUGEPAGE);
		memset(at, 1, HUGE);
		return at + HUGE / 2;
	default:
		at = anonymous(SIZE);
		madvise(at, SIZE, MADV_NOHUGEPAGE);
		return at;
	}
}

/* Waits until the other has put all of a round that began later than now. */
static void let_rounds_pass(void)
{
	double end = now() + patience(PATIENCE * 2);
	uint64_t from = b.control->round;

	while (b.control->round < from + 2) {
		if (now() > end)
			give_up("the other host does nothing");
		pause_ms(1);
	}
}

/* All are registered, and none is being looked at any more. */
static int see_state(const struct rmpool_nl_region *region, void *arg)
{
	uint32_t *states = arg;

	if (region->owner_pid == (uint32_t)getpid())
		states[region->state & 3]++;
	return 0;
}

static void expect_kept(struct test *t)
{
	double end = now() + patience(PATIENCE);
	uint32_t states[4];
	struct rmpool_nl *nl;

	let_rounds_pass();
	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	do {
		memset(states, 0, sizeof(states));
		if (rmpool_nl_regions(nl, see_state, states))
			give_up("%s", rmpool_error());
	} while (states[RMPOOL_REGION_STATE_SUSPECT] && now() < end);
	rmpool_nl_close(nl);
	expect(t, states[RMPOOL_REGION_STATE_ACTIVE] == PLACES + 1, "%u active, %u stale",
	       states[RMPOOL_REGION_STATE_ACTIVE], states[RMPOOL_REGION_STATE_STALE]);
	for (uint32_t i = 0; i < PLACES; i++)
		expect(t, pages_on(i, 1) == PAGES, "%s: %zu of %lu pages are still there",
		       names[i], pages_on(i, 1), PAGES);
	test_end(t);
}

static void *touch(void *arg)
{
	const volatile bool *stop = arg;
	uint64_t sum = 0;

	while (!*stop) {
		for (uint32_t which = 0; which < PLACES; which++)
			for (uint64_t i = 0; i < SIZE; i += PAGE)
				sum += *(volatile uint8_t *)(b.at[which] + i);
		pause_ms(1);
	}
	return (void *)(uintptr_t)(sum & 1);
}

/* Two threads: what one alone uses is left alone where it is. */
static void balance(void)
{
	struct test t = { .name = "NUMA balancing: registered memory stays, and stays registered" };
	long before = vmstat("numa_hint_faults"), refused = vmstat("pgmigrate_fail");
	double end = now() + patience(PATIENCE);
	volatile bool stop = false;
	pthread_t thread;

	if (before < 0 || !write_text("/proc/sys/kernel/numa_balancing", "1")) {
		report_skip(t.name, "this kernel has none");
		return;
	}
	/* At once, where that can be set. */
	write_text(BALANCING "scan_delay_ms", "10");
	write_text(BALANCING "scan_period_min_ms", "50");
	if (pthread_create(&thread, NULL, touch, (void *)&stop))
		give_up("no thread");
	while (vmstat("numa_hint_faults") < before + (long)PAGES && now() < end)
		for (uint64_t i = 0; i < SIZE; i += PAGE)
			(void)*(volatile uint8_t *)(b.at[SHARED] + i);
	let_rounds_pass();
	stop = true;
	pthread_join(thread, NULL);
	write_text("/proc/sys/kernel/numa_balancing", "0");
	write_text(BALANCING "scan_delay_ms", "1000");
	write_text(BALANCING "scan_period_min_ms", "1000");
	printf("%ld faults to see who uses a page, %ld pages could not be moved\n",
	       vmstat("numa_hint_faults") - before, vmstat("pgmigrate_fail") - refused);
	expect(&t, vmstat("numa_hint_faults") >= before + (long)PAGES, "%ld faults",
	       vmstat("numa_hint_faults") - before);
	expect_kept(&t);
}

static void move_pages_away(void)
{
	struct test t = { .name = "move_pages(): the same" };
	long refused = vmstat("pgmigrate_fail");
	int nodes[PAGES] = { 0 }, status[PAGES];
	void *pages[PAGES];

	for (uint32_t i = 0; i < PLACES; i++) {
		addresses(i, pages);
		/* How many it could not move, or why none. */
		syscall(SYS_move_pages, 0, PAGES, pages, nodes, status, MPOL_MF_MOVE);
		let_rounds_pass();
	}
	expect(&t, vmstat("pgmigrate_fail") > refused, "nothing was tried");
	expect_kept(&t);
}

static void migrate_process(void)
{
	struct test t = { .name = "migrate_pages(): the same, while what is not registered moves" };
	unsigned long from = 2, to = 1;
	long moved = vmstat("pgmigrate_success"), refused = vmstat("pgmigrate_fail");
	uint8_t *free_memory;

	memory_from(1);
	free_memory = anonymous(SIZE);
	memset(free_memory, 1, SIZE);
	memory_from(-1);
	if (syscall(SYS_migrate_pages, 0, 8 * sizeof(from), &from, &to) < 0)
		give_up("migrate_pages: %s", strerror(errno));
	expect(&t, vmstat("pgmigrate_success") > moved, "nothing was moved");
	expect(&t, vmstat("pgmigrate_fail") > refused, "nothing was refused");
	munmap(free_memory, SIZE);
	expect_kept(&t);
}

static void compact_node(void)
{
	struct test t = { .name = "compaction of the node: the same" };
	long before = vmstat("compact_migrate_scanned");

	expect(&t, write_text("/sys/devices/system/node/node1/compact", "1"), "%s",
	       strerror(errno));
	expect(&t, vmstat("compact_migrate_scanned") > before, "nothing was looked at");
	expect_kept(&t);
}

static void owner(void)
{
	struct test t = { .name = "the bytes of the last round are there" };
	uint32_t segment, i, control;

	if (rmpool_publish(pool, "nodes", &segment))
		give_up("%s", rmpool_error());
	b.control = (struct control *)anonymous(PAGE);
	if (rmpool_register(pool, (void *)b.control, PAGE, ALL, segment, CONTROL, &control, NULL))
		give_up("%s", rmpool_error());
	memory_from(1);
	for (i = 0; i < PLACES; i++) {
		b.at[i] = make(i);
		memset(b.at[i], 1, SIZE);
	}
	memory_from(-1);
	for (i = 0; i < PLACES; i++) {
		if (pages_on(i, 1) != PAGES)
			give_up("%s is not on the second node", names[i]);
		if (rmpool_register(pool, b.at[i], SIZE, ALL, segment, PLACE(i), &b.region[i],
				    NULL))
			give_up("%s", rmpool_error());
	}
	barrier("published");

	balance();
	move_pages_away();
	migrate_process();
	compact_node();
	b.control->end = 1;
	barrier("over");
	for (i = 0; i < PLACES; i++) {
		expect_pattern(&t, b.at[i], SIZE, seed_of((uint32_t)b.control->round, i), 0,
			       names[i]);
		expect(&t, !rmpool_unregister(pool, b.region[i]), "%s", rmpool_error());
	}
	test_end(&t);
}

/* -------------------------------------------------------------------- the other */

static void other(void)
{
	struct test t = { .name = "puts and gets go on" };
	struct control *control;
	uint32_t region, i;
	int ret;

	far_begin(pool, SIZE);
	control = (struct control *)anonymous(PAGE);
	if (rmpool_register(pool, control, PAGE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	barrier("published");
	if (rmpool_segment_open(pool, "b", "nodes", 60000, &far.segment, NULL))
		give_up("%s", rmpool_error());
	while (!control->end) {
		control->round++;
		for (i = 0; i < PLACES; i++) {
			pattern_fill(far.out, SIZE, seed_of((uint32_t)control->round, i), 0);
			ret = rmpool_put(pool, far.segment, PLACE(i), far.out, SIZE, LIMIT);
			expect(&t, !ret, "put: %s: %s", names[i], rmpool_error());
			memset(far.in, 0, SIZE);
			ret = rmpool_get(pool, far.segment, PLACE(i), far.in, SIZE, LIMIT);
			expect(&t, !ret, "get: %s: %s", names[i], rmpool_error());
			expect(&t, !memcmp(far.in, far.out, SIZE), "%s: other bytes came back",
			       names[i]);
		}
		if (rmpool_put(pool, far.segment, CONTROL + offsetof(struct control, round),
			       &control->round, sizeof(control->round), LIMIT) ||
		    rmpool_get(pool, far.segment, CONTROL, &control->end, sizeof(control->end),
			       LIMIT))
			give_up("%s", rmpool_error());
	}
	test_end(&t);
	barrier("over");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		give_up("nodes a|b");
	return two_parts(argv[1], &pool, owner, other);
}
