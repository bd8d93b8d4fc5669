// SPDX-License-Identifier: MIT
/*
 * attack: an unprivileged program that means harm, on one machine.
 *
 *	attack kinds			memory that is no ordinary memory
 *	attack limit			threads race for the last page of RLIMIT_MEMLOCK
 *	attack undo			results that cannot be written
 *	attack names			two processes race for one name
 *	attack opens NUMBER		so many open files
 *	attack kept			descriptors that outlive their address space
 *
 * What else it proves is what is left after it: pins, log, module.
 */
#include <linux/if_packet.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.h"
#include "numbers.h"

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
	expect(&t, now() - began < patience(20), "%f s", now() - began);
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
	try_kind(fd, "vvar", mapping_named("[vvar]"), PAGE, 0, EOPNOTSUPP);
	try_kind(fd, "vsyscall", (void *)0xffffffffff600000, PAGE, 0, EFAULT);
	try_kind(fd, "no rights", map(PAGE, PROT_NONE, MAP_PRIVATE, -1), PAGE, 0, EFAULT);
	m = mapping_named("[stack]");
	/* Nearer to it, the kernel itself has a complaint in the log. */
	try_kind(fd, "below the stack", m - 32 * PAGE, PAGE, all, EFAULT);
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
	double end = now() + 3, latest = end + patience(60);
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
	while (now() < end || (race.done <= 10 && !race.error && now() < latest)) {
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
	const int enough = 500;
	double end = now() + patience(60);
	uint32_t segment;
	pid_t pids[2];
	int i, n = 0, fd, ret;

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		fd = device(0);
		/* Who stands still with the name makes the other one try in vain: no matter. */
		while (s->wins < enough && now() < end) {
			ret = create(fd, "same", &segment);
			if (ret && ret != -EEXIST)
				s->odd = -ret;
			if (ret)
				continue;
			if (atomic_exchange(&s->owner, 1))
				s->both++;
			s->wins++;
			s->owner = 0;
			if (++n % 10 == 0) {	/* the end of a file gives the name back, too */
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
	expect(&t, s->wins >= enough, "only %d times at all", s->wins);
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
	long before = pinned_pages(), pinned;
	int out[2], i;
	double end;
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
	end = now() + patience(20);
	while ((pinned = pinned_pages() - before) > 64 && now() < end)
		pause_ms(1);
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
			if (read(out[0], &byte, 1))
				_exit(1);
			_exit(0);
		}
		_exit(0);
	}
	waitpid(pid, &i, 0);
	expect(&heir, !i, "status %d", i);
	end = now() + patience(20);
	while (pinned_pages() != before && now() < end)
		pause_ms(1);
	expect(&heir, pinned_pages() == before, "%ld pages", pinned_pages() - before);
	close(out[1]);		/* ends the heir */
	test_end(&heir);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

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
	else
		give_up("see the source for what it can do");
	return report_failed != 0;
}
