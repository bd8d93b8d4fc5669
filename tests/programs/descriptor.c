// SPDX-License-Identifier: MIT
/*
 * descriptor: a descriptor of /dev/rmpool in hands that did not open it, its
 * mapping in all wrong ways, and 32-bit callers.
 *
 *	descriptor		the tests
 *	descriptor FD		checks FD in a program that replaced the opener
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "clock.h"
#include "numbers.h"
#include "report.h"

#define PAGE	4096UL

/* Not the file's: every call but INFO is refused. Tells what was not, or NULL. */
static const char *foreign(int fd)
{
	static char why[128];
	uint8_t arg[1024];
	size_t i;
	int ret, want;
	void *map;

	for (i = 0; i < NR_CALLS; i++) {
		memset(arg, 0, sizeof(arg));
		ret = ioctl(fd, calls[i].cmd, arg) ? errno : 0;
		want = calls[i].cmd == RMPOOL_IOC_INFO ? 0 : EPERM;
		if (ret != want) {
			snprintf(why, sizeof(why), "%s: %s", calls[i].name,
				 strerror(ret));
			return why;
		}
	}
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED || errno != EPERM)
		return "mmap is not refused";
	return close(fd) ? "close fails" : NULL;
}

/* Waits for a child that exits with 0 if all was well. */
static int child_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		give_up("waitpid: %s", strerror(errno));
	return status;
}

static int open_ring(struct rmpool_ring_setup *ring)
{
	int fd = open(RMPOOL_DEVICE_PATH, O_RDWR);

	if (fd < 0)
		give_up("open: %s", strerror(errno));
	memset(ring, 0, sizeof(*ring));
	ring->entries = 64;
	ring->eventfd = -1;
	if (ioctl(fd, RMPOOL_IOC_RING_SETUP, ring))
		give_up("RING_SETUP: %s", strerror(errno));
	return fd;
}

/* It is still the opener's. */
static bool usable(int fd)
{
	struct rmpool_wait wait = { .min = 1 };

	return ioctl(fd, RMPOOL_IOC_WAIT, &wait) < 0 && errno == ETIME;
}

static void test_fork(void)
{
	struct test t = { .name = "inherited by fork: EPERM" };
	struct rmpool_ring_setup ring;
	int fd = open_ring(&ring);
	const char *why;
	pid_t pid = fork();

	if (!pid) {
		why = foreign(fd);
		if (why)
			fprintf(stderr, "%s\n", why);
		_exit(why ? 1 : 0);
	}
	expect(&t, !child_status(pid), "see the log");
	expect(&t, usable(fd), "the opener lost it: %s", strerror(errno));
	close(fd);
	test_end(&t);
}

static void test_exec(const char *self)
{
	struct test t = { .name = "kept over exec: EPERM" };
	struct rmpool_ring_setup ring;
	char number[16];
	pid_t pid = fork();
	int fd;

	if (!pid) {
		fd = open_ring(&ring);
		snprintf(number, sizeof(number), "%d", fd);
		execl(self, self, number, NULL);
		_exit(9);
	}
	expect(&t, !child_status(pid), "see the log");
	test_end(&t);
}

static void test_passed(void)
{
	struct test t = { .name = "passed by SCM_RIGHTS: EPERM" };
	union {
		struct cmsghdr head;
		/* cppcheck-suppress unusedStructMember ; for its size */
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct rmpool_ring_setup ring;
	const char *why;
	int pair[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		give_up("socketpair: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		if (recvmsg(pair[1], &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
			_exit(8);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		why = foreign(fd);
		if (why)
			fprintf(stderr, "%s\n", why);
		_exit(why ? 1 : 0);
	}
	fd = open_ring(&ring);
	memset(&control, 0, sizeof(control));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(pair[0], &msg, 0) != 1)
		give_up("sendmsg: %s", strerror(errno));
	expect(&t, !child_status(pid), "see the log");
	expect(&t, usable(fd), "the opener lost it: %s", strerror(errno));
	close(fd);
	close(pair[0]);
	close(pair[1]);
	test_end(&t);
}

/* The opener is gone, the descriptor lives on: its memory is not pinned for ever. */
static void test_orphan(void)
{
	struct test t = { .name = "opener gone, descriptor kept: EPERM" };
	struct rmpool_region_add add = { .length = PAGE };
	struct rmpool_info info = { .abi_version = 0 };
	struct rmpool_ring_setup ring;
	const char *why;
	pid_t pid = fork(), opener;
	double end;
	void *memory;
	char byte;
	int fd;

	if (!pid) {
		fd = open_ring(&ring);
		memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		add.addr = (uintptr_t)memory;
		if (ioctl(fd, RMPOOL_IOC_REGION_ADD, &add))
			_exit(7);
		opener = getpid();
		pid = fork();
		if (pid)
			_exit(0);	/* the grandchild tells by a file */
		while (getppid() == opener)
			pause_ms(1);
		if (ioctl(fd, RMPOOL_IOC_INFO, &info))
			_exit(6);
		why = foreign(fd);
		fd = open("descriptor.orphan", O_WRONLY | O_CREAT, 0600);
		dprintf(fd, "%s\n", why ? why : "good");
		close(fd);
		rename("descriptor.orphan", "descriptor.done");
		_exit(0);
	}
	expect(&t, !child_status(pid), "the opener failed");
	end = now() + patience(30);
	while (access("descriptor.done", F_OK) && now() < end)
		pause_ms(1);
	fd = open("descriptor.done", O_RDONLY);
	byte = 0;
	expect(&t, fd >= 0 && read(fd, &byte, 1) == 1 && byte == 'g',
	       "the heir was not refused");
	close(fd);
	unlink("descriptor.done");
	test_end(&t);
}

/* ---------------------------------------------------------------------- mmap */

static int map_error(int fd, size_t size, int prot, int flags, off_t offset)
{
	/* cppcheck-suppress invalidFunctionArg ; wrong ones are the test */
	void *map = mmap(NULL, size, prot, flags, fd, offset);

	if (map == MAP_FAILED)
		return errno;
	/* cppcheck-suppress invalidFunctionArg ; a size of 0 does not come here */
	munmap(map, size);
	return 0;
}

static void test_mmap(void)
{
	struct test t = { .name = "mmap: wrong ways" };
	const int rw = PROT_READ | PROT_WRITE;
	struct rmpool_ring_setup ring;
	int fd = open(RMPOOL_DEVICE_PATH, O_RDWR), ret;
	off_t far = (off_t)1 << 62;

	ret = map_error(fd, PAGE, rw, MAP_SHARED, 0);
	expect(&t, ret == ENXIO, "without a ring: %s", strerror(ret));
	close(fd);
	fd = open_ring(&ring);
	ret = map_error(fd, ring.mmap_size + PAGE, rw, MAP_SHARED, 0);
	expect(&t, ret == EINVAL, "too long: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size * 1024, rw, MAP_SHARED, 0);
	expect(&t, ret == EINVAL, "much too long: %s", strerror(ret));
	ret = map_error(fd, 0, rw, MAP_SHARED, 0);
	expect(&t, ret == EINVAL, "empty: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, rw, MAP_SHARED, PAGE);
	expect(&t, ret == EINVAL, "other offset: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, rw, MAP_SHARED, far);
	expect(&t, ret == EINVAL, "far offset: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, rw, MAP_PRIVATE, 0);
	expect(&t, ret == EINVAL, "private: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, PROT_READ, MAP_PRIVATE, 0);
	expect(&t, ret == EINVAL, "private, to read: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, rw, MAP_SHARED, 0);
	expect(&t, !ret, "right: %s", strerror(ret));
	close(fd);

	/* a larger ring: all but one of its pages */
	fd = open(RMPOOL_DEVICE_PATH, O_RDWR);
	ring.entries = 4096;
	if (fd < 0 || ioctl(fd, RMPOOL_IOC_RING_SETUP, &ring))
		give_up("RING_SETUP: %s", strerror(errno));
	ret = map_error(fd, ring.mmap_size - PAGE, rw, MAP_SHARED, 0);
	expect(&t, ret == EINVAL, "too short: %s", strerror(ret));
	ret = map_error(fd, ring.mmap_size, rw, MAP_SHARED, 0);
	expect(&t, !ret, "a larger ring: %s", strerror(ret));
	close(fd);
	test_end(&t);
}

static void test_mapping_lives(void)
{
	struct test t = { .name = "mmap: outlives the descriptor" };
	struct rmpool_submit submit = { .nr = 8 };
	static struct rmpool_request r[8];
	struct rmpool_ring_setup ring;
	struct rmpool_completion *c;
	int fd = open_ring(&ring), i;
	unsigned char residence;
	uint8_t *map, *other;
	pid_t pid;

	map = mmap(NULL, ring.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	other = mmap(NULL, ring.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		     fd, 0);
	if (map == MAP_FAILED || other == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	submit.requests = (uintptr_t)r;
	for (i = 0; i < 8; i++)
		r[i].cookie = 1000 + (uint64_t)i;
	expect(&t, !ioctl(fd, RMPOOL_IOC_SUBMIT, &submit), "submit: %s",
	       strerror(errno));
	expect(&t, mremap(map, ring.mmap_size, 2 * ring.mmap_size,
			  MREMAP_MAYMOVE) == MAP_FAILED, "it can be enlarged");
	pid = fork();
	if (!pid)
		_exit(mincore(map, PAGE, &residence) && errno == ENOMEM ? 0 : 1);
	expect(&t, !child_status(pid), "a child has the mapping");
	close(fd);
	munmap(other, ring.mmap_size);
	c = (struct rmpool_completion *)(map + ring.entries_offset);
	for (i = 0; i < 8; i++)
		expect(&t, c[i].cookie == 1000 + (uint64_t)i &&
		       c[i].status == -EINVAL, "entry %d: %d", i, c[i].status);
	memset(map, 0xff, ring.mmap_size);
	munmap(map, ring.mmap_size);
	test_end(&t);
}

/* -------------------------------------------------------------------- 32 bit */

#ifdef __x86_64__
static sigjmp_buf no_gate;

static void on_fault(int sig)
{
	siglongjmp(no_gate, sig);
}

/* ioctl() by the gate of 32-bit programs, with their number for it. */
static int ioctl32(int fd, unsigned int cmd, void *arg)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(54), "b"((long)fd), "c"((long)cmd),
			   "d"((long)(uintptr_t)arg)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)-ret;
}

static void test_32bit(void)
{
	struct test t = { .name = "32-bit callers" };
	struct sigaction act = { .sa_handler = on_fault }, old;
	struct rmpool_info info = { .abi_version = 0 }, *low;
	struct rmpool_segment_create *create;
	struct rmpool_region_add *add;
	struct rmpool_handle *h;
	uint8_t *page;
	int fd, ret;
	size_t i;

	page = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	fd = open(RMPOOL_DEVICE_PATH, O_RDWR);
	if (page == MAP_FAILED || fd < 0)
		give_up("32 bit: %s", strerror(errno));
	sigaction(SIGSEGV, &act, &old);
	if (sigsetjmp(no_gate, 1)) {
		sigaction(SIGSEGV, &old, NULL);
		report_skip(t.name, "this kernel runs no 32-bit programs");
		goto out;
	}
	low = (void *)page;
	ret = ioctl32(fd, RMPOOL_IOC_INFO, low);
	sigaction(SIGSEGV, &old, NULL);
	if (ret == ENOSYS) {
		report_skip(t.name, "this kernel runs no 32-bit programs");
		goto out;
	}
	expect(&t, !ret, "INFO: %s", strerror(ret));
	ioctl(fd, RMPOOL_IOC_INFO, &info);
	expect(&t, !memcmp(low, &info, sizeof(info)), "INFO differs");

	for (i = 0; i < NR_CALLS; i++) {
		ret = ioctl32(fd, calls[i].cmd, NULL);
		expect(&t, ret == EFAULT, "%s, NULL: %s", calls[i].name,
		       strerror(ret));
	}
	create = (void *)page;
	memset(page, 0, PAGE);
	strcpy(create->name, "small");
	ret = ioctl32(fd, RMPOOL_IOC_SEGMENT_CREATE, create);
	expect(&t, !ret && create->handle, "SEGMENT_CREATE: %s", strerror(ret));
	add = (void *)(page + PAGE);
	add->addr = (uintptr_t)page + 2 * PAGE + 1;
	add->length = PAGE;
	add->segment = create->handle;
	add->offset = RMPOOL_OFFSET_NEXT;
	add->access = RMPOOL_ACCESS_ALL;
	ret = ioctl32(fd, RMPOOL_IOC_REGION_ADD, add);
	expect(&t, !ret && add->handle && !add->offset, "REGION_ADD: %s",
	       strerror(ret));
	h = (void *)(page + 128);
	memset(h, 0, sizeof(*h));
	h->handle = add->handle;
	ret = ioctl32(fd, RMPOOL_IOC_REGION_DEL, h);
	expect(&t, !ret, "REGION_DEL: %s", strerror(ret));
	ret = ioctl32(fd, RMPOOL_IOC_REGION_DEL, h);
	expect(&t, ret == ENOENT, "REGION_DEL twice: %s", strerror(ret));
	test_end(&t);
out:
	close(fd);
	munmap(page, 4 * PAGE);
}
#else
static void test_32bit(void)
{
	report_skip("32-bit callers", "written for x86-64 only");
}
#endif

int main(int argc, char **argv)
{
	const char *why;

	if (argc > 1) {
		why = foreign((int)argument(argv[1], 0, INT_MAX));
		if (why)
			fprintf(stderr, "%s\n", why);
		return !!why;
	}
	test_fork();
	test_exec(argv[0][0] == '/' ? argv[0] : "/proc/self/exe");
	test_passed();
	test_orphan();
	test_mmap();
	test_mapping_lives();
	test_32bit();
	return report_failed != 0;
}
