// SPDX-License-Identifier: MIT
/*
 * attack_peer: an unprivileged program that means harm, with a peer.
 *
 *	attack_peer storm NODE SEGMENT SECONDS SEED
 *					processes full of threads, killed at any moment
 *	attack_peer flood NODE SEGMENT	all that fits into 8 queues, then kill -9
 *	attack_peer signals NODE SEGMENT	a signal each millisecond
 *	attack_peer ring NODE SEGMENT	a reader that writes all over its ring
 *	attack_peer flap NAME		publishes and withdraws until it is killed
 *	attack_peer chase NODE NAME SECONDS	puts to what flaps
 *	attack_peer publish PREFIX NUMBER	that many segments, until it is killed
 *	attack_peer visit NODE PREFIX NUMBER	opens and closes each of them
 *
 * What else it proves is what the others see meanwhile, and what is left after it:
 * pins, queue pairs, log, module.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "attack.h"
#include "numbers.h"

#define SECOND	1000000000LL
#define DEATH	20		/* seconds; waiting for its requests takes a process longer */

/* In ns; that many seconds on a machine as usual. */
static int64_t patience_ns(double usual)
{
	return (int64_t)(patience(usual) * (double)SECOND);
}

static int open_segment(int fd, const char *node, const char *name, int64_t ns, uint32_t *segment)
{
	struct rmpool_segment_open o = { .timeout_ns = ns };
	int ret;

	snprintf(o.node, sizeof(o.node), "%s", node);
	snprintf(o.name, sizeof(o.name), "%s", name);
	ret = call(fd, RMPOOL_IOC_SEGMENT_OPEN, &o);
	*segment = o.handle;
	return ret;
}

static uint32_t must_open(int fd, const char *node, const char *name)
{
	uint32_t segment;
	int ret = open_segment(fd, node, name, patience_ns(30), &segment);

	if (ret)
		give_up("%s/%s: %s", node, name, strerror(-ret));
	return segment;
}

static struct rmpool_request put(uint32_t segment, const void *from, size_t length, uint64_t offset)
{
	return (struct rmpool_request) {
		.segment = segment, .op = RMPOOL_OP_PUT, .local_addr = (uintptr_t)from,
		.length = length, .offset = offset,
	};
}

static int sync_call(int fd, const struct rmpool_request *r, uint32_t nr,
		     struct rmpool_completion *c, int64_t ns)
{
	struct rmpool_submit_sync s = {
		.requests = (uintptr_t)r, .results = (uintptr_t)c, .nr = nr, .timeout_ns = ns,
	};

	return call(fd, RMPOOL_IOC_SUBMIT_SYNC, &s);
}

struct target {
	const char *node;
	const char *name;
};

#define ARENA		(4 * MIB)
#define THREADS		5

static struct {
	int fd;
	struct target target;
	uint8_t *arena;
	struct ring ring;
	atomic_uint regions[8];
	atomic_uint segments[4];
} storm;

struct random {
	uint64_t state;
};

static uint32_t below(struct random *r, uint32_t n)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)((r->state * 0x2545f4914f6cdd1d) >> 32) % n;
}

/* Mostly what is somewhere in the arena; now and then all bits set. */
static uint64_t odd(struct random *r, uint32_t n)
{
	return below(r, 20) ? below(r, n) : UINT64_MAX - below(r, 3);
}

static void storm_requests(struct random *r)
{
	static __thread struct rmpool_request q[64];
	static __thread struct rmpool_completion c[64];
	struct rmpool_submit s = { .requests = (uintptr_t)q, .nr = 1 + below(r, 64) };
	struct rmpool_cancel cancel = { .cookie = below(r, 16), .flags = below(r, 8) == 0 };
	struct rmpool_wait w = {
		.min = 1 + below(r, 4), .timeout_ns = below(r, 20) * 1000000LL,
	};
	uint32_t i;

	for (i = 0; i < s.nr; i++) {
		q[i] = put(storm.segments[below(r, 4)], storm.arena + odd(r, ARENA),
			   odd(r, below(r, 8) ? 8192 : MIB), odd(r, 2 * MIB));
		q[i].op = (uint8_t)(1 + below(r, 2));
		q[i].prio = (uint8_t)below(r, 3);
		q[i].cookie = below(r, 16);
		q[i].timeout_ms = below(r, 4) ? 1 + below(r, 300) : (uint32_t)odd(r, 1000);
	}
	switch (below(r, 4)) {
	case 0:
		sync_call(storm.fd, q, s.nr, c, below(r, 3) ? below(r, 50) * 1000000LL :
							      SECOND);
		break;
	case 1:
		call(storm.fd, RMPOOL_IOC_CANCEL, &cancel);
		break;
	case 2:
		call(storm.fd, RMPOOL_IOC_WAIT, &w);
		/* Read, or never, or told wrong. */
		*storm.ring.head += below(r, 8) ? w.available : (uint32_t)odd(r, 9);
		break;
	default:
		call(storm.fd, RMPOOL_IOC_SUBMIT, &s);
	}
}

static void storm_objects(struct random *r)
{
	struct rmpool_segment_list list = { .nr = 4, .regions = (uintptr_t)storm.arena };
	uint32_t handle, n = below(r, 4), m = below(r, 8);
	char name[32];

	switch (below(r, 6)) {
	case 0:
	case 1:
		if (add(storm.fd, storm.arena + below(r, ARENA), 1 + odd(r, MIB),
			below(r, 8), 0, &handle))
			break;
		handle = atomic_exchange(&storm.regions[m], handle);
		if (handle)
			del(storm.fd, handle);
		break;
	case 2:
		snprintf(name, sizeof(name), "storm.%u", below(r, 3));
		if (create(storm.fd, name, &handle))
			break;
		add(storm.fd, storm.arena, 1 + below(r, 65536), 7, handle, &m);
		add(storm.fd, storm.arena, 1 + below(r, 65536), 7, handle, &m);
		handle_call(storm.fd, RMPOOL_IOC_SEGMENT_DELETE, handle);
		del(storm.fd, m);
		break;
	case 3:
		if (open_segment(storm.fd, storm.target.node, storm.target.name,
				 below(r, 200) * 1000000LL, &handle))
			break;
		handle = atomic_exchange(&storm.segments[n], handle);
		if (handle)
			handle_call(storm.fd, RMPOOL_IOC_SEGMENT_CLOSE, handle);
		break;
	case 4:
		list.handle = storm.segments[n];
		call(storm.fd, RMPOOL_IOC_SEGMENT_LIST, &list);
		break;
	default:
		/* Handles of other threads, in use or not. */
		del(storm.fd, below(r, 20));
	}
}

static void storm_mappings(struct random *r)
{
	uint8_t *at = storm.arena + below(r, ARENA / PAGE) * PAGE;
	size_t length = (1 + below(r, 16)) * PAGE;
	pid_t pid;
	void *m;

	if (at + length > storm.arena + ARENA)
		return;
	switch (below(r, 6)) {
	case 0:
		m = mmap(at, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (m != at)
			_exit(1);
		break;
	case 1:
		m = mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			   storm.arena + below(r, ARENA / PAGE - 16) * PAGE);
		(void)m;
		break;
	case 2:
		mprotect(at, length, below(r, 2) ? PROT_READ : PROT_READ | PROT_WRITE);
		break;
	case 3:
		madvise(at, length, below(r, 2) ? MADV_DONTNEED : MADV_PAGEOUT);
		break;
	case 4:
		m = map(storm.ring.setup.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, storm.fd);
		if (m != MAP_FAILED) {
			mprotect(m, PAGE, PROT_READ);
			munmap((uint8_t *)m + PAGE, PAGE);
			madvise(m, PAGE, MADV_DONTNEED);
			munmap(m, storm.ring.setup.mmap_size);
		}
		break;
	default:
		pid = fork();
		if (!pid) {
			if (below(r, 2))
				execl("/bin/true", "true", NULL);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *storm_thread(void *seed)
{
	struct random r = { .state = (uintptr_t)seed | 1 };

	for (;;) {
		switch (below(&r, 8)) {
		case 0:
			storm_mappings(&r);
			break;
		case 1:
		case 2:
			storm_objects(&r);
			break;
		default:
			storm_requests(&r);
		}
	}
	return NULL;
}

/* Never returns: it is killed, closes its file or replaces itself. */
static void storm_process(uint64_t seed)
{
	struct random r = { .state = seed | 1 };
	pthread_t thread;
	uintptr_t i;

	storm.arena = memory(ARENA);
	storm.fd = device(below(&r, 2) ? O_CLOEXEC : 0);
	storm.ring = ring_of(storm.fd, 256);
	for (i = 1; i <= THREADS; i++)
		pthread_create(&thread, NULL, storm_thread, (void *)(seed * 7919 + i));
	pause_ms(below(&r, 700));
	switch (below(&r, 3)) {
	case 0:
		close(storm.fd);
		pause_ms(below(&r, 20));
		break;
	case 1:
		execl("/bin/true", "true", NULL);
	}
	_exit(0);
}

static void attack_storm(struct target target, double seconds, uint64_t seed)
{
	struct test t = { .name = "storm" };
	struct random r = { .state = seed * 2 + 1 };
	double end = now() + seconds, slowest = 0;
	unsigned int nr = 0, i;
	pid_t pids[3] = { 0 };

	printf("seed %llu\n", (unsigned long long)seed);
	storm.target = target;
	while (now() < end) {
		i = below(&r, 3);
		if (pids[i]) {
			double began = now();

			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
			slowest = now() - began > slowest ? now() - began : slowest;
		}
		nr++;
		pids[i] = fork();
		if (!pids[i])
			storm_process(seed * 100 + nr);
		pause_ms(below(&r, 300));
	}
	for (i = 0; i < 3; i++) {
		if (pids[i]) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
	}
	printf("%u processes, the slowest took %.2f s to die\n", nr, slowest);
	expect(&t, slowest < patience(DEATH), "a process took %f s to die", slowest);
	test_end(&t);
}

#define FLOOD	8
#define BATCH	4096

static void flood_process(struct target target, int tell)
{
	static struct rmpool_request q[BATCH];
	struct rmpool_submit s = { .requests = (uintptr_t)q, .nr = BATCH };
	const size_t length = 16 * MIB;
	uint32_t region, segment, i;
	uint8_t *m = memory(length);
	int fd = device(0);

	ring_of(fd, BATCH);
	segment = must_open(fd, target.node, target.name);
	if (add(fd, m, length, RMPOOL_ACCESS_LOCAL_WRITE, 0, &region))
		give_up("REGION_ADD: %s", strerror(errno));
	for (i = 0; i < BATCH; i++) {
		q[i] = put(segment, m, length, 0);
		q[i].op = (uint8_t)(1 + i % 2);
		q[i].timeout_ms = UINT32_MAX;
	}
	if (call(fd, RMPOOL_IOC_SUBMIT, &s) || s.accepted != BATCH)
		give_up("SUBMIT: %u taken", s.accepted);
	dprintf(tell, "x");
	for (;;)
		pause();
}

static void attack_flood(struct target target)
{
	struct test t = { .name = "8 x 4,096 requests of 16 MiB, kill -9" };
	pid_t pids[FLOOD];
	double began;
	char byte;
	int i, p[2];

	if (pipe(p))
		give_up("pipe: %s", strerror(errno));
	for (i = 0; i < FLOOD; i++) {
		pids[i] = fork();
		if (!pids[i])
			flood_process(target, p[1]);
	}
	for (i = 0; i < FLOOD; i++)
		expect(&t, read(p[0], &byte, 1) == 1, "process %d", i);
	pause_ms(500);
	began = now();
	for (i = 0; i < FLOOD; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < FLOOD; i++)
		waitpid(pids[i], NULL, 0);
	printf("dead after %.2f s\n", now() - began);
	expect(&t, now() - began < patience(DEATH), "dead after %f s", now() - began);
	test_end(&t);
}

static atomic_int alarms;

static void on_alarm(int sig)
{
	alarms += sig != 0;
}

/* A signal each @us from now on. */
static void signals_each(long us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Until it gives anything but EINTR; how often that came. A slow machine gets nothing done
 * from one signal to the next: after two seconds in vain, there are half as many.
 */
#define AGAIN(t, ret, expression) do { \
	double until_ = now() + patience(60), more_ = now() + 2; \
	int times_ = 0; \
	long us_ = 1000; \
	while (((ret) = (expression)) == -EINTR && now() < until_) { \
		times_++; \
		if (now() > more_ && us_ < 100000) { \
			more_ = now() + 2; \
			us_ *= 2; \
			signals_each(us_); \
		} \
	} \
	signals_each(1000); \
	expect(t, !(ret), "%s: %s after %d EINTR", #expression, strerror(-(ret)), times_); \
	printf("%s: %d EINTR, at last one each %ld us\n", #expression, times_, us_); \
} while (0)

static void attack_signals(struct target target)
{
	struct test t = { .name = "a signal each millisecond" };
	struct sigaction act = { .sa_handler = on_alarm };
	struct rmpool_completion c[4];
	struct rmpool_request q[4];
	struct rmpool_submit s = { .requests = (uintptr_t)q, .nr = 4 };
	struct rmpool_wait w = { .min = 4, .timeout_ns = -1 };
	uint32_t segment, region, i;
	uint8_t *m = memory(MIB);
	int fd = device(0), ret;
	struct ring ring = ring_of(fd, 64);

	sigaction(SIGALRM, &act, NULL);
	signals_each(1000);
	AGAIN(&t, ret, open_segment(fd, target.node, target.name, -1, &segment));
	AGAIN(&t, ret, add(fd, m, 16 * PAGE, RMPOOL_ACCESS_ALL, 0, &region));
	for (i = 0; i < 4; i++)
		q[i] = put(segment, m, 16 * PAGE, 0);
	for (i = 0; i < 50; i++) {
		ret = sync_call(fd, q, 4, c, -1);
		expect(&t, !ret || ret == -EINTR, "SUBMIT_SYNC: %s", strerror(-ret));
	}
	ret = call(fd, RMPOOL_IOC_SUBMIT, &s);
	expect(&t, !ret && s.accepted == 4, "SUBMIT: %s, %u", strerror(-ret), s.accepted);
	AGAIN(&t, ret, call(fd, RMPOOL_IOC_WAIT, &w));
	*ring.head += w.available;
	AGAIN(&t, ret, del(fd, region));
	expect(&t, alarms > 10, "only %d signals came", alarms);
	expect(&t, unpinned(), "%ld kB pinned", status_value("VmPin"));
	test_end(&t);
}

static struct {
	atomic_bool stop;
	atomic_ulong done;
} race;

static void *scribble(void *arg)
{
	const struct ring *r = arg;
	struct random random = { .state = 77 };
	uint32_t i;

	while (!race.stop) {
		for (i = 0; i < r->setup.mmap_size / 4; i++)
			((_Atomic uint32_t *)(void *)r->map)[i] = below(&random, UINT32_MAX);
		/* Half true, or nothing would be taken any more. */
		for (i = 0; i < 1000; i++)
			*r->head = (uint32_t)race.done - below(&random, 70);
	}
	return NULL;
}

static void attack_ring(struct target target)
{
	struct test t = { .name = "a ring full of lies" };
	struct rmpool_request q[64];
	struct rmpool_submit s = { .requests = (uintptr_t)q };
	struct rmpool_completion c[64];
	uint32_t segment, region, i;
	uint8_t *m = memory(MIB);
	double end = now() + 2, latest = end + patience(60);
	int fd = device(0), ret;
	struct ring ring = ring_of(fd, 64);
	pthread_t thread;

	segment = must_open(fd, target.node, target.name);
	if (add(fd, m, MIB, RMPOOL_ACCESS_ALL, 0, &region) ||
	    pthread_create(&thread, NULL, scribble, &ring))
		give_up("no thread");
	while (!t.failed && (now() < end || (race.done <= 64 && now() < latest))) {
		struct rmpool_wait w = { .min = 1 };

		for (i = 0; i < 64; i++)
			q[i] = put(segment, m, 4096, 0);
		s.nr = 64;
		ret = call(fd, RMPOOL_IOC_SUBMIT, &s);
		expect(&t, !ret || ret == -EAGAIN, "SUBMIT: %s", strerror(-ret));
		race.done += ret ? 0 : s.accepted;
		ret = call(fd, RMPOOL_IOC_WAIT, &w);
		expect(&t, (!ret || ret == -ETIME) && w.available <= 64, "WAIT: %s, %u",
		       strerror(-ret), w.available);
	}
	race.stop = true;
	pthread_join(thread, NULL);
	expect(&t, race.done > 64, "only %lu were taken", race.done);
	/* What does not go by the ring is not touched by its lies. */
	ret = sync_call(fd, q, 64, c, patience_ns(30));
	expect(&t, !ret, "SUBMIT_SYNC: %s", strerror(-ret));
	ret = del(fd, region);
	expect(&t, !ret && unpinned(), "REGION_DEL: %s", strerror(-ret));
	test_end(&t);
}

static void flap(const char *name)
{
	uint8_t *m = memory(256 * PAGE);
	uint32_t segment, regions[2];
	unsigned int n = 0;
	int fd = device(0);

	for (;;) {
		if (create(fd, name, &segment) ||
		    add(fd, m, 200 * PAGE, RMPOOL_ACCESS_ALL, segment, &regions[0]) ||
		    add(fd, m + 200 * PAGE, 17, RMPOOL_ACCESS_ALL, segment, &regions[1]))
			give_up("%s: %s", name, strerror(errno));
		if (!n)
			printf("flaps\n");
		fflush(stdout);
		pause_ms(n % 50);
		/* In any order, or all at once. */
		if (n % 3 == 0)
			handle_call(fd, RMPOOL_IOC_SEGMENT_DELETE, segment);
		if (n % 5 == 4) {
			close(fd);
			fd = device(0);
		} else {
			del(fd, regions[n % 2]);
			del(fd, regions[!(n % 2)]);
			handle_call(fd, RMPOOL_IOC_SEGMENT_DELETE, segment);
		}
		/* The name of a closed file is free when its teardown has run. */
		while (create(fd, name, &segment))
			pause_ms(1);
		handle_call(fd, RMPOOL_IOC_SEGMENT_DELETE, segment);
		n++;
	}
}

/* Keys are taken back in order: no put meets memory that is gone. */
static void attack_chase(struct target target, double seconds)
{
	struct test t = { .name = "puts to what comes and goes" };
	unsigned int opened = 0, stale = 0, good = 0, i;
	struct rmpool_completion c[16];
	struct rmpool_request q[16];
	double end = now() + seconds, latest = end + patience(60);
	uint8_t *m = memory(200 * PAGE);
	uint32_t segment, region;
	int fd = device(0), ret;

	if (add(fd, m, 200 * PAGE, RMPOOL_ACCESS_ALL, 0, &region))
		give_up("REGION_ADD: %s", strerror(errno));
	while (!t.failed && (now() < end || (!good && now() < latest))) {
		ret = open_segment(fd, target.node, target.name, patience_ns(30), &segment);
		expect(&t, !ret || ret == -ENOENT, "SEGMENT_OPEN: %s", strerror(-ret));
		if (ret)
			continue;
		opened++;
		do {
			for (i = 0; i < 16; i++)
				q[i] = put(segment, m, 1 + i * 50000, i);
			ret = sync_call(fd, q, 16, c, patience_ns(30));
			expect(&t, !ret, "SUBMIT_SYNC: %s", strerror(-ret));
			for (i = 0; i < 16; i++) {
				good += !c[i].status;
				stale += c[i].status != 0;
				expect(&t, !c[i].status || c[i].status == -ESTALE ||
				       c[i].status == -ENXIO, "put: %s", strerror(-c[i].status));
			}
		} while (!c[0].status && now() < end);
		handle_call(fd, RMPOOL_IOC_SEGMENT_CLOSE, segment);
	}
	printf("opened %u times, %u puts, %u came too late\n", opened, good, stale);
	expect(&t, opened && good, "opened %u times, %u puts", opened, good);
	test_end(&t);
}

/* A file can have 1,024 segments. */
static void publish(const char *prefix, unsigned int nr)
{
	unsigned int i;
	uint32_t segment;
	char name[64];
	int fd = -1;

	for (i = 0; i < nr; i++) {
		if (i % 1024 == 0)
			fd = device(0);
		snprintf(name, sizeof(name), "%s.%u", prefix, i);
		if (create(fd, name, &segment))
			give_up("%s: %s", name, strerror(errno));
	}
	printf("published\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void visit(const char *node, const char *prefix, unsigned int nr)
{
	struct test t = { .name = "open and close very many segments" };
	int fd = device(0), ret;
	uint32_t segment;
	unsigned int i;
	char name[64];

	for (i = 0; i < nr && !t.failed; i++) {
		snprintf(name, sizeof(name), "%s.%u", prefix, i);
		ret = open_segment(fd, node, name, patience_ns(30), &segment);
		expect(&t, !ret, "%s: %s", name, strerror(-ret));
		handle_call(fd, RMPOOL_IOC_SEGMENT_CLOSE, segment);
	}
	test_end(&t);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct target target = { argc > 3 ? argv[2] : "", argc > 3 ? argv[3] : "" };

	if (!strcmp(what, "storm") && argc == 6)
		attack_storm(target, (double)argument(argv[4], 1, 3600),
			     argument(argv[5], 0, UINT32_MAX));
	else if (!strcmp(what, "flood") && argc == 4)
		attack_flood(target);
	else if (!strcmp(what, "signals") && argc == 4)
		attack_signals(target);
	else if (!strcmp(what, "ring") && argc == 4)
		attack_ring(target);
	else if (!strcmp(what, "flap") && argc == 3)
		flap(argv[2]);
	else if (!strcmp(what, "chase") && argc == 5)
		attack_chase(target, (double)argument(argv[4], 1, 3600));
	else if (!strcmp(what, "publish") && argc == 4)
		publish(argv[2], (unsigned int)argument(argv[3], 1, 100000));
	else if (!strcmp(what, "visit") && argc == 5)
		visit(argv[2], argv[3], (unsigned int)argument(argv[4], 1, 100000));
	else
		give_up("see the source for what it can do");
	return report_failed != 0;
}
