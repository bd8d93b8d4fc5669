// SPDX-License-Identifier: MIT
/*
 * dmabuf_gone: dma-bufs of host b that lose what stood behind them while host a puts to
 * them and gets from them: their descriptors, the file they were made of, the devices,
 * their region, their process.
 *
 *	dmabuf_gone a|b
 *
 * The buffers are memory: udmabuf makes them of memfds.
 */
#include <signal.h>
#include <sys/wait.h>

#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "dmabuf.h"
#include "far.h"
#include "udmabuf.h"

#define PAGE	4096UL
#define SIZE	(1UL << 20)	/* of each buffer */
#define START	5003UL		/* of the region, in its buffer */
#define LENGTH	600001UL	/* of the region */
#define ALL	RMPOOL_ACCESS_ALL
#define FRESH	0xaa		/* in memory that is nobody else's any more */
#define PATIENCE 60		/* seconds */
#define DEVICES	2

enum {
	CLOSED,			/* all descriptors of it, and of its memory */
	PUNCHED,		/* its memory is cut out of its file */
	KEPT,
	UNREGISTERED,
	BUFFERS
};

static const char *const names[BUFFERS] = {
	"closed", "punched out of its file", "kept", "unregistered",
};

/* What b does, so what a has to expect. */
enum {
	CALM,			/* nothing fails */
	ROUGH,			/* devices go: requests may fail */
	CALM_AGAIN,
	LETTING_GO,		/* of UNREGISTERED */
	GONE,			/* it is */
	CHILD,			/* so will that be which a child of b has */
	DONE
};

#define CONTROL	PLACE(BUFFERS)

/* A page of b's. */
struct control {
	uint64_t phase;		/* b's, got by a */
	uint64_t round;		/* a's, put by it */
	uint64_t seen;		/* the phase that this round was in */
};

static struct rmpool *pool;

/* ------------------------------------------------------------- who has the buffers */

static struct {
	uint32_t segment;
	int fd[BUFFERS];
	int memory[BUFFERS];
	uint32_t region[BUFFERS];
	volatile struct control *control;
} b;

static void publish(uint32_t which)
{
	b.fd[which] = udmabuf_new(SIZE, 0, &b.memory[which]);
	if (b.fd[which] < 0)
		give_up("udmabuf: %s", strerror(errno));
	if (rmpool_register_dmabuf(pool, b.fd[which], START, (void *)(uintptr_t)PLACE(which),
				   LENGTH, ALL, 0, b.segment, PLACE(which), &b.region[which],
				   NULL))
		give_up("%s: %s", names[which], rmpool_error());
}

/* Waits until the other has done all of a round that began later than now. */
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

/* The other knows it before anything is done. */
static void enter(uint64_t phase)
{
	double end = now() + patience(PATIENCE * 3);

	b.control->phase = phase;
	while (b.control->seen != phase) {
		if (now() > end)
			give_up("the other host does not come to phase %llu",
				(unsigned long long)phase);
		pause_ms(1);
	}
}

static void write_all(int memory, uint8_t byte)
{
	uint8_t *bytes = malloc(SIZE);

	if (!bytes)
		give_up("no memory");
	memset(bytes, byte, SIZE);
	if (pwrite(memory, bytes, SIZE, 0) != (ssize_t)SIZE)
		give_up("write: %s", strerror(errno));
	free(bytes);
}

static void expect_all(struct test *t, int memory, uint8_t byte)
{
	uint8_t *bytes = malloc(SIZE);

	if (!bytes || pread(memory, bytes, SIZE, 0) != (ssize_t)SIZE)
		give_up("read: %s", strerror(errno));
	for (size_t i = 0; i < SIZE; i++)
		if (!expect(t, bytes[i] == byte, "byte %zu is 0x%02x", i, bytes[i]))
			break;
	free(bytes);
}

/* Whether nobody has its pages any more, soon. Nothing can be written to it then. */
static bool soon_free(int memory)
{
	double end = now() + patience(PATIENCE);

	while (fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE)) {
		if (now() > end)
			return false;
		pause_ms(20);
	}
	return true;
}

static bool on_devices(uint32_t devices)
{
	double end = now() + patience(PATIENCE);
	struct seen seen;

	do {
		seen = see_regions();
		if (seen.fewest == devices && seen.most == devices)
			return true;
		pause_ms(50);
	} while (now() < end);
	return false;
}

/* The first device stands for all software devices at the exporter. */
static void devices_go(void)
{
	struct test t = { .name = "devices go and come back, also all of them" };

	enter(ROUGH);
	device("delete rxe1");
	expect(&t, on_devices(1), "not on one device");
	let_rounds_pass();
	device("add rxe1 type rxe netdev data1");
	expect(&t, on_devices(DEVICES), "not on two devices");
	let_rounds_pass();
	device("delete rxe0");
	expect(&t, on_devices(1), "not on the other device");
	device("delete rxe1");
	expect(&t, on_devices(0), "still on a device");
	expect(&t, see_regions().nr == BUFFERS && !see_regions().state,
	       "%u regions, state %u", see_regions().nr, see_regions().state);
	device("add rxe0 type rxe netdev data0");
	device("add rxe1 type rxe netdev data1");
	expect(&t, on_devices(DEVICES), "not on two devices again");
	enter(CALM_AGAIN);
	let_rounds_pass();
	test_end(&t);
}

static void unregister(void)
{
	struct test t = { .name = "unregistered under transfers: its memory is its file's alone" };
	double began, took;

	close(b.fd[UNREGISTERED]);
	enter(LETTING_GO);
	let_rounds_pass();
	began = now();
	expect(&t, !rmpool_unregister(pool, b.region[UNREGISTERED]), "%s", rmpool_error());
	took = now() - began;
	printf("unregistered in %.0f ms\n", took * 1e3);
	expect(&t, took < patience(20), "it took %.2f s", took);
	write_all(b.memory[UNREGISTERED], FRESH);
	enter(GONE);
	let_rounds_pass();
	expect_all(&t, b.memory[UNREGISTERED], FRESH);
	expect(&t, soon_free(b.memory[UNREGISTERED]), "the buffer is not given back");
	test_end(&t);
}

static int see_child(const struct rmpool_nl_region *region, void *arg)
{
	uint32_t *pid = arg;

	return region->owner_pid == *pid;
}

static bool regions_gone(pid_t child)
{
	double end = now() + patience(PATIENCE);
	uint32_t pid = (uint32_t)child;
	struct rmpool_nl *nl;
	int there;

	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	do
		there = rmpool_nl_regions(nl, see_child, &pid);
	while (there && now() < end);
	rmpool_nl_close(nl);
	return !there;
}

static uint64_t node_pinned(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info.node_pinned;
}

/* Who is killed is not shown any more, before peers have let go. */
static bool given_back(uint64_t before)
{
	double end = now() + patience(PATIENCE);

	while (node_pinned() != before) {
		if (now() > end)
			return false;
		pause_ms(5);
	}
	return true;
}

static void be_child(int memory, int ready)
{
	struct udmabuf_create_item item = { .memfd = (uint32_t)memory, .size = SIZE };
	int fd = udmabuf_of(&item, 1);
	struct rmpool *own;
	uint32_t segment, region;

	if (fd < 0 || rmpool_open(&own, NULL, 0) || rmpool_publish(own, "child", &segment) ||
	    rmpool_register_dmabuf(own, fd, START, NULL, LENGTH, ALL, 0, segment, 0, &region,
				   NULL))
		give_up("child: %s", rmpool_error());
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void owner_dies(void)
{
	struct test t = { .name = "its process is killed under transfers: the same" };
	int memory = udmabuf_memory(SIZE, 0), fds[2];
	uint64_t before = node_pinned();
	pid_t child;
	char byte;

	if (pipe(fds))
		give_up("pipe: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child < 0)
		give_up("fork: %s", strerror(errno));
	if (!child)
		be_child(memory, fds[1]);
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		give_up("the child could not register");
	close(fds[0]);
	enter(CHILD);
	let_rounds_pass();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	expect(&t, regions_gone(child), "its region stays");
	expect(&t, given_back(before), "%llu bytes are left",
	       (unsigned long long)(node_pinned() - before));
	write_all(memory, FRESH);
	let_rounds_pass();
	enter(DONE);
	expect_all(&t, memory, FRESH);
	expect(&t, soon_free(memory), "the buffer is not given back");
	close(memory);
	test_end(&t);
}

static void owner(void)
{
	struct test punched = { .name = "punched out of its file: that has other memory now" };
	struct test closed = { .name = "all is given back" };
	struct rmpool_info info;
	uint32_t i, control;

	b.control = (struct control *)anonymous(PAGE);
	if (rmpool_publish(pool, "gone", &b.segment) ||
	    rmpool_register(pool, (void *)b.control, PAGE, ALL, b.segment, CONTROL, &control, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < BUFFERS; i++)
		publish(i);
	barrier("published");

	let_rounds_pass();
	close(b.fd[CLOSED]);
	close(b.memory[CLOSED]);
	close(b.fd[PUNCHED]);
	let_rounds_pass();
	if (fallocate(b.memory[PUNCHED], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)SIZE))
		give_up("hole: %s", strerror(errno));
	let_rounds_pass();
	expect_all(&punched, b.memory[PUNCHED], 0);
	expect(&punched, !see_regions().state, "state %u", see_regions().state);
	test_end(&punched);

	devices_go();
	unregister();
	owner_dies();
	for (i = 0; i < BUFFERS; i++)
		expect(&closed, i == UNREGISTERED || !rmpool_unregister(pool, b.region[i]),
		       "%s: %s", names[i], rmpool_error());
	close(b.fd[KEPT]);
	expect(&closed, soon_free(b.memory[KEPT]), "the one that was kept is not given back");
	expect(&closed, !rmpool_unregister(pool, control), "%s", rmpool_error());
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&closed, !info.pinned && !see_regions().nr, "%llu bytes are left",
	       (unsigned long long)info.pinned);
	test_end(&closed);
	barrier("end");
}

/* ------------------------------------------------------------------- the other */

static struct {
	uint32_t segment, child;
	struct control *control;
	uint64_t phase, round;
	unsigned long moved[DONE];	/* in each phase */
	bool late;			/* a device may still be at a request that has ended */
} a;

static int limit(void)
{
	return a.phase == ROUGH ? (int)(patience(10) * 1000) : LIMIT;
}

/* To a place and back; the first status that is not 0. */
static int exchange(struct test *t, uint32_t segment, uint64_t place, uint32_t which)
{
	uint64_t seed = seed_of((uint32_t)a.round, which);
	int ret;

	pattern_fill(far.out, LENGTH, seed, 0);
	ret = rmpool_put(pool, segment, place, far.out, LENGTH, limit());
	memset(far.in, 0, LENGTH);
	if (!ret)
		ret = rmpool_get(pool, segment, place, far.in, LENGTH, limit());
	a.late |= ret == -ETIMEDOUT;
	if (ret)
		return ret;
	a.moved[a.phase]++;
	if (a.phase != ROUGH || !a.late)
		expect_pattern(t, far.in, LENGTH, seed, 0, names[which]);
	return 0;
}

/* What may come of a device or a rail that goes. */
static bool of_device(int ret)
{
	return ret == -ECONNRESET || ret == -ENOTCONN || ret == -ETIMEDOUT ||
	       ret == -ESTALE || ret == -EREMOTEIO || ret == -ENXIO;
}

/* A round is over. */
static void end_round(struct test *t)
{
	const uint64_t at = CONTROL + offsetof(struct control, round);
	double end = now() + patience(PATIENCE);
	int ret;

	a.control->round = a.round;
	a.control->seen = a.phase;
	for (;;) {
		ret = rmpool_put(pool, a.segment, at, &a.control->round, 16, limit());
		if (!ret)
			ret = rmpool_get(pool, a.segment, CONTROL, &a.control->phase, 8, limit());
		if (!ret)
			break;
		expect(t, a.phase == ROUGH && of_device(ret), "phase %llu: %s",
		       (unsigned long long)a.phase, rmpool_error());
		if (now() > end)
			give_up("no way to the other host: %s", rmpool_error());
		pause_ms(20);
	}
	a.phase = a.control->phase;
}

static void round_of_all(struct test *t, bool rough)
{
	for (uint32_t i = 0; i < BUFFERS; i++) {
		int ret;

		if (i == UNREGISTERED && a.phase >= GONE)
			continue;
		ret = exchange(t, a.segment, PLACE(i), i);
		expect(t, !ret || (rough && of_device(ret)), "%s, phase %llu: %s", names[i],
		       (unsigned long long)a.phase, rmpool_error());
	}
}

static void other(void)
{
	struct test calm = { .name = "right bytes as long as there is a region" };
	struct test rough = { .name = "devices of the other go: right bytes or a reason" };
	struct test gone = { .name = "unregistered: ENXIO, and nothing else before" };
	struct test killed = { .name = "its process is killed: ESTALE, and nothing else before" };
	int ret = 0, left = 0;

	far_begin(pool, SIZE);
	a.control = (struct control *)anonymous(PAGE);
	if (rmpool_register(pool, a.control, PAGE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &a.child, NULL))
		give_up("%s", rmpool_error());
	barrier("published");
	if (rmpool_segment_open(pool, "b", "gone", 60000, &a.segment, NULL))
		give_up("%s", rmpool_error());
	a.child = 0;
	while (a.phase != DONE) {
		a.round++;
		switch (a.phase) {
		case ROUGH:
			round_of_all(&rough, true);
			break;
		case LETTING_GO:
		case GONE:
			ret = exchange(&gone, a.segment, PLACE(UNREGISTERED), UNREGISTERED);
			/* What was on its way when the region went learns it as it is. */
			expect(&gone, ret == -ENXIO || (a.phase != GONE &&
			       (ret == -ESTALE || (!ret && !left))),
			       "phase %llu: %s", (unsigned long long)a.phase,
			       ret ? rmpool_error() : "it is there");
			left |= ret;
			if (a.phase == GONE)
				round_of_all(&calm, false);
			break;
		case CHILD:
			if (!a.child &&
			    rmpool_segment_open(pool, "b", "child", 60000, &a.child, NULL))
				give_up("%s", rmpool_error());
			left = ret == -ESTALE ? ret : 0;
			ret = exchange(&killed, a.child, 0, KEPT);
			expect(&killed, ret == -ESTALE || (!ret && !left), "%s",
			       ret ? rmpool_error() : "it is there again");
			break;
		default:
			round_of_all(&calm, false);
			break;
		}
		end_round(&calm);
	}
	expect(&killed, ret == -ESTALE, "at the end: %d", ret);
	for (uint32_t i = 0; i < DONE; i++) {
		printf("phase %u: %lu times moved\n", i, a.moved[i]);
		expect(&calm, a.moved[i], "nothing was moved in phase %u", i);
	}
	a.round++;
	end_round(&calm);
	test_end(&calm);
	test_end(&rough);
	test_end(&gone);
	test_end(&killed);
	barrier("end");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		give_up("dmabuf_gone a|b");
	return two_parts(argv[1], &pool, owner, other);
}
