// SPDX-License-Identifier: MIT
/*
 * attack: an unprivileged program that means harm, one way of it in each run.
 *
 *	attack kinds			memory that is no ordinary memory
 *	attack limit			threads race for the last page of RLIMIT_MEMLOCK
 *	attack undo			results that cannot be written
 *	attack names			two processes race for one name
 *	attack opens NUMBER		so many open files
 *	attack kept			descriptors that outlive their address space
 *	attack storm NODE SEGMENT SECONDS SEED
 *					processes full of threads, killed at any moment
 *	attack flood NODE SEGMENT	all that fits into 8 queues, then kill -9
 *	attack signals NODE SEGMENT	a signal each millisecond
 *	attack ring NODE SEGMENT	a reader that writes all over its ring
 *	attack flap NAME		publishes and withdraws until it is killed
 *	attack chase NODE NAME SECONDS	puts to what flaps
 *	attack publish PREFIX NUMBER	that many segments, until it is killed
 *	attack visit NODE PREFIX NUMBER	opens and closes each of them
 *
 * What it proves is that it ends, what the others see meanwhile, and what is left:
 * pins, log, module.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <linux/rmpool.h>
#include "clock.h"
#include "numbers.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define SECOND	1000000000LL

/* 0 or a negative errno. */
static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static int device(int flags)
{
	int fd = open(RMPOOL_DEVICE_PATH, O_RDWR | flags);

	if (fd < 0)
		give_up("open: %s", strerror(errno));
	return fd;
}

static void *map(size_t size, int prot, int flags, int fd)
{
	return mmap(NULL, size, prot, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}

static void *memory(size_t size)
{
	void *m = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);

	if (m == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return m;
}

static int add(int fd, const void *addr, size_t length, uint32_t access, uint32_t segment,
	       uint32_t *region)
{
	struct rmpool_region_add a = {
		.addr = (uintptr_t)addr, .length = length, .access = access, .segment = segment,
	};
	int ret = call(fd, RMPOOL_IOC_REGION_ADD, &a);

	*region = a.handle;
	return ret;
}

static int handle_call(int fd, unsigned long cmd, uint32_t handle)
{
	struct rmpool_handle h = { .handle = handle };

	return call(fd, cmd, &h);
}

static int del(int fd, uint32_t region)
{
	return handle_call(fd, RMPOOL_IOC_REGION_DEL, region);
}

static int create(int fd, const char *name, uint32_t *segment)
{
	struct rmpool_segment_create c = { .flags = 0 };
	int ret;

	snprintf(c.name, sizeof(c.name), "%s", name);
	ret = call(fd, RMPOOL_IOC_SEGMENT_CREATE, &c);
	*segment = c.handle;
	return ret;
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
	int ret = open_segment(fd, node, name, 30 * SECOND, &segment);

	if (ret)
		give_up("%s/%s: %s", node, name, strerror(-ret));
	return segment;
}

struct ring {
	struct rmpool_ring_setup setup;
	uint8_t *map;
	_Atomic uint32_t *head;
};

static struct ring ring_of(int fd, uint32_t entries)
{
	struct ring r = { .setup = { .entries = entries, .eventfd = -1 } };

	if (call(fd, RMPOOL_IOC_RING_SETUP, &r.setup))
		give_up("RING_SETUP: %s", strerror(errno));
	r.map = map(r.setup.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	if (r.map == MAP_FAILED)
		give_up("ring: %s", strerror(errno));
	r.head = (void *)(r.map + r.setup.head_offset);
	return r;
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

/* What a process whose memory is not pinned any more shows; it may take a moment. */
static bool unpinned(void)
{
	for (int i = 0; i < 5000 && status_value("VmPin"); i++)
		pause_ms(1);
	return !status_value("VmPin");
}

/* ---------------------------------------------------------------- local attacks */

/* One kind of memory; @wanted: errno, or -1 if any end will do. */
static void try_kind(int fd, const char *name, void *addr, size_t length, uint32_t access,
		     int wanted)
{
	struct test t = { .name = name };
	uint32_t region;
	int ret;

	if (addr == MAP_FAILED || !addr) {
		report_skip(name, "there is no such memory here");
		return;
	}
	ret = add(fd, addr, length, access, 0, &region);
	expect(&t, wanted < 0 || ret == -wanted, "%s", strerror(-ret));
	if (!ret)
		expect(&t, !del(fd, region), "it does not go");
	expect(&t, unpinned(), "%ld kB pinned", status_value("VmPin"));
	test_end(&t);
}

static void *mapping_named(const char *name)
{
	char line[256];
	unsigned long start = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, name)) {
			start = strtoul(line, NULL, 16);
			break;
		}
	}
	if (f)
		fclose(f);
	return (void *)start;
}

/* The mapping of another device: frames of a packet socket. */
static void *packets(void)
{
	struct tpacket_req req = {
		.tp_block_size = PAGE, .tp_block_nr = 4, .tp_frame_size = 2048, .tp_frame_nr = 8,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		return MAP_FAILED;
	return map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

/* Memory whose first touch waits for somebody who never comes. */
static void *untouched(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *m = memory(PAGE);

	reg.range.start = (uintptr_t)m;
	reg.range.len = PAGE;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		return MAP_FAILED;
	return m;
}

/* Whoever waits for such memory can be killed. */
static void test_untouched(void)
{
	struct test t = { .name = "waiting for userfaultfd: dies" };
	uint32_t region;
	double began;
	pid_t pid = fork();
	void *m;

	if (!pid) {
		m = untouched();
		if (m != MAP_FAILED)
			add(device(0), m, PAGE, RMPOOL_ACCESS_ALL, 0, &region);
		for (;;)
			pause();
	}
	pause_ms(300);
	began = now();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect(&t, now() - began < 5, "%f s", now() - began);
	test_end(&t);
}

static void test_kinds(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	const uint32_t all = RMPOOL_ACCESS_ALL;
	int fd = device(0), other = device(0), file = open("attack.file", O_RDWR | O_CREAT, 0600);
	struct ring own = ring_of(fd, 64), foreign = ring_of(other, 64);
	struct rlimit stack;
	uint32_t region;
	uint8_t *m;

	if (file < 0 || ftruncate(file, 4 * PAGE) || getrlimit(RLIMIT_STACK, &stack))
		give_up("%s", strerror(errno));
	unlink("attack.file");
	try_kind(fd, "huge pages", map(2 * MIB, rw, MAP_PRIVATE | MAP_HUGETLB, -1), 2 * MIB, all, 0);
	try_kind(fd, "huge pages, shared, to read",
		 map(2 * MIB, rw, MAP_SHARED | MAP_HUGETLB, -1), 2 * MIB, 0, 0);
	try_kind(fd, "private file", map(4 * PAGE, rw, MAP_PRIVATE, file), 4 * PAGE, all, 0);
	try_kind(fd, "behind the end of a file", map(8 * PAGE, rw, MAP_PRIVATE, file), 8 * PAGE,
		 all, EFAULT);
	try_kind(fd, "shared zeros", map(PAGE, rw, MAP_SHARED, -1), PAGE, all, 0);
	try_kind(fd, "vdso, to read", (void *)getauxval(AT_SYSINFO_EHDR), PAGE, 0, -1);
	try_kind(fd, "vdso, to write", (void *)getauxval(AT_SYSINFO_EHDR), PAGE, all, EFAULT);
	try_kind(fd, "vvar", mapping_named("[vvar]"), PAGE, 0, EFAULT);
	try_kind(fd, "vsyscall", (void *)0xffffffffff600000, PAGE, 0, EFAULT);
	try_kind(fd, "no rights", map(PAGE, PROT_NONE, MAP_PRIVATE, -1), PAGE, 0, EFAULT);
	m = mapping_named("[stack]");
	try_kind(fd, "below the stack", m - 16 * PAGE, PAGE, all, EFAULT);
	try_kind(fd, "far below the stack", m - stack.rlim_cur / 2, PAGE, 0, EFAULT);
	try_kind(fd, "packet socket", packets(), 4 * PAGE, all, -1);
	try_kind(fd, "own ring", own.map, own.setup.mmap_size, all, -1);
	try_kind(fd, "ring of another file", foreign.map, foreign.setup.mmap_size, all, -1);
	test_untouched();

	/* Its pages outlive the ring, and are not handed out to anyone. */
	if (!add(fd, foreign.map, PAGE, all, 0, &region)) {
		close(other);
		munmap(foreign.map, foreign.setup.mmap_size);
		del(fd, region);
	}
	close(fd);
}

static struct {
	int fd;
	atomic_bool stop;
	atomic_int error;
	atomic_ulong done;
	uint8_t *memory;
	size_t limit;
} race;

static void *all_of_it(void *unused)
{
	uint32_t region;
	int ret;

	while (!race.stop) {
		ret = add(race.fd, race.memory, race.limit, 0, 0, &region);
		if (!ret)
			ret = del(race.fd, region);
		if (ret)
			race.error = -ret;
		race.done++;
	}
	return unused;
}

static void *too_much(void *unused)
{
	uint32_t region;

	while (!race.stop) {
		if (add(race.fd, race.memory, race.limit + PAGE, 0, 0, &region) != -ENOMEM)
			race.error = EOVERFLOW;
	}
	return unused;
}

/* Who asks for too much takes nothing from who does not, not for a moment. */
static void test_limit(void)
{
	struct test t = { .name = "exactly RLIMIT_MEMLOCK, while others ask for more" };
	struct rlimit limit = { 64 * PAGE, 64 * PAGE };
	pthread_t threads[3];
	double end = now() + 3;
	long most = 0, pinned;
	int i;

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		give_up("setrlimit: %s", strerror(errno));
	race.fd = device(0);
	race.limit = limit.rlim_cur;
	race.memory = memory(race.limit + PAGE);
	for (i = 0; i < 3; i++) {
		if (pthread_create(&threads[i], NULL, i ? too_much : all_of_it, NULL))
			give_up("no thread");
	}
	while (now() < end) {
		pinned = status_value("VmPin");
		most = pinned > most ? pinned : most;
	}
	race.stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	expect(&t, race.done > 10, "only %lu times", race.done);
	expect(&t, !race.error, "%s", strerror(race.error));
	expect(&t, most <= (long)race.limit / 1024, "VmPin was %ld kB", most);
	expect(&t, unpinned(), "VmPin stays");
	test_end(&t);
}

/* The call is refused, and what it made is gone. */
static void test_undo(void)
{
	struct test t = { .name = "no place for the result: undone" };
	uint8_t *page = memory(PAGE);
	struct rmpool_segment_create *c = (void *)page;
	struct rmpool_region_add *a = (void *)(page + 1024);
	void *m = memory(16 * PAGE);
	int fd = device(0), i, ret;
	uint32_t handle;

	strcpy(c->name, "undone");
	a->addr = (uintptr_t)m;
	a->length = 16 * PAGE;
	mprotect(page, PAGE, PROT_READ);
	for (i = 0; i < 50; i++) {
		ret = call(fd, RMPOOL_IOC_SEGMENT_CREATE, c);
		expect(&t, ret == -EFAULT, "SEGMENT_CREATE: %s", strerror(-ret));
		ret = call(fd, RMPOOL_IOC_REGION_ADD, a);
		expect(&t, ret == -EFAULT, "REGION_ADD: %s", strerror(-ret));
	}
	expect(&t, unpinned(), "%ld kB pinned", status_value("VmPin"));
	ret = create(fd, "undone", &handle);
	expect(&t, !ret && handle == 1, "the segment is there: %s", strerror(-ret));
	ret = add(fd, m, PAGE, 0, 0, &handle);
	expect(&t, !ret && handle == 1, "handle %u: %s", handle, strerror(-ret));
	close(fd);
	test_end(&t);
}

static void test_names(void)
{
	struct test t = { .name = "two processes, one name: never both" };
	struct shared {
		atomic_int owner;
		atomic_int both;
		atomic_int wins;
		atomic_int odd;
	} *s = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, -1);
	uint32_t segment;
	pid_t pids[2];
	int i, n, fd, ret;

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		fd = device(0);
		for (n = 0; n < 3000; n++) {
			ret = create(fd, "same", &segment);
			if (ret && ret != -EEXIST)
				s->odd = -ret;
			if (ret)
				continue;
			if (atomic_exchange(&s->owner, 1))
				s->both++;
			s->wins++;
			s->owner = 0;
			if (n % 10 == 9) {	/* the end of a file gives the name back, too */
				close(fd);
				fd = device(0);
			} else {
				handle_call(fd, RMPOOL_IOC_SEGMENT_DELETE, segment);
			}
		}
		_exit(0);
	}
	for (i = 0; i < 2; i++)
		waitpid(pids[i], NULL, 0);
	expect(&t, !s->both && !s->odd, "%d times both, %s", s->both, strerror(s->odd));
	expect(&t, s->wins > 100, "only %d times at all", s->wins);
	test_end(&t);
}

static void test_opens(unsigned int nr)
{
	struct test t = { .name = "very many files" };
	struct rlimit limit = { nr + 100, nr + 100 };
	uint8_t *m = memory(PAGE);
	uint32_t handle;
	unsigned int i;
	char name[32];
	int fd, ret;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		give_up("setrlimit: %s", strerror(errno));
	for (i = 0; i < nr; i++) {
		struct rmpool_ring_setup ring = { .entries = 64, .eventfd = -1 };

		fd = open(RMPOOL_DEVICE_PATH, O_RDWR);
		if (!expect(&t, fd >= 0, "open %u: %s", i, strerror(errno)))
			break;
		snprintf(name, sizeof(name), "many.%u", i);
		ret = call(fd, RMPOOL_IOC_RING_SETUP, &ring);
		ret = ret ?: create(fd, name, &handle);
		ret = ret ?: add(fd, m, PAGE, RMPOOL_ACCESS_ALL, handle, &handle);
		expect(&t, !ret, "file %u: %s", i, strerror(-ret));
	}
	test_end(&t);
	/* All of them end with the process. */
}

/* Registers and replaces itself, again and again, with all descriptors kept. */
static void kept_exec(unsigned int left)
{
	uint32_t region;
	char number[16];
	int fd = device(0), ret;

	ret = add(fd, memory(64 * PAGE), 64 * PAGE, RMPOOL_ACCESS_ALL, 0, &region);
	if (ret)
		give_up("REGION_ADD: %s", strerror(-ret));
	snprintf(number, sizeof(number), "%u", left - 1);
	if (left > 1)
		execl("/proc/self/exe", "attack", "keep", number, NULL);
	printf("kept\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* Memory is pinned for an address space, and no longer than that lives. */
static void test_kept(void)
{
	struct test t = { .name = "descriptors kept over exec pin nothing" };
	struct test heir = { .name = "nor do those of an heir" };
	long before = pinned_pages(), pinned = 0;
	int out[2], i;
	char byte;
	pid_t pid;

	if (pipe(out))
		give_up("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		kept_exec(20);
	}
	close(out[1]);
	expect(&t, read(out[0], &byte, 1) == 1, "no word of it");
	close(out[0]);
	for (i = 0; i < 5000; i++) {
		pinned = pinned_pages() - before;
		if (pinned <= 64)
			break;
		pause_ms(1);
	}
	expect(&t, pinned == 64, "%ld pages, not 64", pinned);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	test_end(&t);

	if (pipe(out))
		give_up("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		uint32_t segment, region;
		int fd = device(0);

		if (create(fd, "heir", &segment) ||
		    add(fd, memory(64 * PAGE), 64 * PAGE, RMPOOL_ACCESS_ALL, segment, &region))
			_exit(1);
		if (!fork()) {
			close(out[1]);
			_exit(read(out[0], &byte, 1) != 0);
		}
		_exit(0);
	}
	waitpid(pid, &i, 0);
	expect(&heir, !i, "status %d", i);
	for (i = 0; i < 5000 && pinned_pages() != before; i++)
		pause_ms(1);
	expect(&heir, pinned_pages() == before, "%ld pages", pinned_pages() - before);
	close(out[1]);		/* ends the heir */
	test_end(&heir);
}

/* ------------------------------------------------------- attacks with a peer */

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
		if (mmap(at, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
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
	expect(&t, slowest < 5, "a process took %f s to die", slowest);
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
	expect(&t, now() - began < 5, "dead after %f s", now() - began);
	test_end(&t);
}

static atomic_int alarms;

static void on_alarm(int sig)
{
	alarms += sig != 0;
}

/* Until it gives anything but EINTR; how often that came. */
#define AGAIN(t, ret, expression) do { \
	double until_ = now() + 10; \
	int times_ = 0; \
	while (((ret) = (expression)) == -EINTR && now() < until_) \
		times_++; \
	expect(t, !(ret), "%s: %s after %d EINTR", #expression, strerror(-(ret)), times_); \
	printf("%s: %d EINTR\n", #expression, times_); \
} while (0)

static void attack_signals(struct target target)
{
	struct test t = { .name = "a signal each millisecond" };
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
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
	setitimer(ITIMER_REAL, &timer, NULL);
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

static void *scribble(void *arg)
{
	const struct ring *r = arg;
	struct random random = { .state = 77 };
	uint32_t i;

	while (!race.stop) {
		for (i = 0; i < r->setup.mmap_size / 4; i++)
			((_Atomic uint32_t *)(void *)r->map)[i] = below(&random, UINT32_MAX);
	}
	return NULL;
}

static void attack_ring(struct target target)
{
	struct test t = { .name = "a ring full of lies" };
	struct rmpool_request q[64];
	struct rmpool_submit s = { .requests = (uintptr_t)q };
	uint32_t segment, region, i, taken = 0;
	struct rmpool_completion c[64];
	uint8_t *m = memory(MIB);
	double end = now() + 2;
	int fd = device(0), ret;
	struct ring ring = ring_of(fd, 64);
	pthread_t thread;

	segment = must_open(fd, target.node, target.name);
	if (add(fd, m, MIB, RMPOOL_ACCESS_ALL, 0, &region) ||
	    pthread_create(&thread, NULL, scribble, &ring))
		give_up("no thread");
	while (now() < end) {
		struct rmpool_wait w = { .min = 1 };

		for (i = 0; i < 64; i++)
			q[i] = put(segment, m, 4096, 0);
		s.nr = 64;
		ret = call(fd, RMPOOL_IOC_SUBMIT, &s);
		expect(&t, !ret || ret == -EAGAIN, "SUBMIT: %s", strerror(-ret));
		taken += ret ? 0 : s.accepted;
		ret = call(fd, RMPOOL_IOC_WAIT, &w);
		expect(&t, (!ret || ret == -ETIME) && w.available <= 64, "WAIT: %s, %u",
		       strerror(-ret), w.available);
	}
	race.stop = true;
	pthread_join(thread, NULL);
	expect(&t, taken > 0, "nothing was taken");
	/* What does not go by the ring is not touched by its lies. */
	ret = sync_call(fd, q, 64, c, 10 * SECOND);
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
	double end = now() + seconds;
	uint8_t *m = memory(200 * PAGE);
	uint32_t segment, region;
	int fd = device(0), ret;

	if (add(fd, m, 200 * PAGE, RMPOOL_ACCESS_ALL, 0, &region))
		give_up("REGION_ADD: %s", strerror(errno));
	while (now() < end) {
		ret = open_segment(fd, target.node, target.name, SECOND, &segment);
		expect(&t, !ret || ret == -ENOENT, "SEGMENT_OPEN: %s", strerror(-ret));
		if (ret)
			continue;
		opened++;
		do {
			for (i = 0; i < 16; i++)
				q[i] = put(segment, m, 1 + i * 50000, i);
			ret = sync_call(fd, q, 16, c, 10 * SECOND);
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
		ret = open_segment(fd, node, name, 10 * SECOND, &segment);
		expect(&t, !ret, "%s: %s", name, strerror(-ret));
		handle_call(fd, RMPOOL_IOC_SEGMENT_CLOSE, segment);
	}
	test_end(&t);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct target target = { argc > 3 ? argv[2] : "", argc > 3 ? argv[3] : "" };

	if (!strcmp(what, "kinds"))
		test_kinds();
	else if (!strcmp(what, "limit"))
		test_limit();
	else if (!strcmp(what, "undo"))
		test_undo();
	else if (!strcmp(what, "names"))
		test_names();
	else if (!strcmp(what, "opens") && argc == 3)
		test_opens((unsigned int)argument(argv[2], 1, 100000));
	else if (!strcmp(what, "kept"))
		test_kept();
	else if (!strcmp(what, "keep") && argc == 3)
		kept_exec((unsigned int)argument(argv[2], 1, 1000));
	else if (!strcmp(what, "storm") && argc == 6)
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
