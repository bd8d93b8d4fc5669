// SPDX-License-Identifier: MIT
/*
 * kinds: registers memory of each kind on host b. Host a gets and puts all of it, and
 * what is beside it; then b uses it for puts and gets of its own.
 *
 *	kinds a|b [gigantic]	that: with a page of 1 GiB
 *
 * b finds file systems in ext4 and huge (hugetlbfs) of its current directory, which
 * itself is in tmpfs; without the first one, plain files are in tmpfs as well.
 */
#include <errno.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "barrier.h"
#include "far.h"

#define PAGE	4096UL
#define HUGE	(2 * MIB)
#define SIZE	(2 * HUGE)	/* of most mappings */
#define LENGTH	300001UL	/* of each region: over the border of two huge pages */
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define ALL	RMPOOL_ACCESS_ALL

enum {
	PRIVATE,
	TRANSPARENT,
	SHARED,
	MEMFD,
	DEV_SHM,
	HUGE_PRIVATE,
	HUGE_FILE,
	GIGANTIC,
	FILE_PRIVATE,
	/* the rest is mapped and registered to be read */
	PROTECTED,
	TMPFS_READ,
	FILE_READ,
	FILE_PRIVATE_READ,
	KINDS,
	TO_READ = PROTECTED
};

static const char *const names[KINDS] = {
	"private anonymous", "transparent huge pages", "shared anonymous", "memfd", "/dev/shm",
	"private huge pages of 2 MiB", "hugetlbfs file", "huge page of 1 GiB",
	"private file",
	"read-only anonymous", "read-only file in tmpfs", "read-only shared file",
	"read-only private file",
};

static bool gigantic;

static struct rmpool *pool;

static uint32_t add(void *addr, size_t length, uint32_t access, uint32_t segment,
		    uint64_t offset)
{
	uint32_t region;

	if (rmpool_register(pool, addr, length, access, segment, offset, &region, NULL))
		give_up("%s", rmpool_error());
	return region;
}

/* ------------------------------------------------------------- memory of each kind */

static struct kind {
	uint8_t *at;		/* the region, in the middle of its mapping; NULL: none */
	uint8_t *other;		/* the same bytes of the file, mapped shared, or NULL */
	off_t pos;		/* where in the file */
	int fd;
	uint32_t region;
} kinds[KINDS];

/* A file of the file system on a disk if there is one. */
static int plain_file(size_t size)
{
	return file_in(is_of("ext4", EXT4_SUPER_MAGIC) ? "ext4" : ".", size);
}

static uint8_t *transparent(void)
{
	uint8_t *at = anonymous(SIZE + HUGE);
	long before = vmstat("thp_fault_alloc");

	at += (HUGE - (uintptr_t)at % HUGE) % HUGE;
	madvise(at, SIZE, MADV_HUGEPAGE);
	memset(at, 1, SIZE);
	return before >= 0 && vmstat("thp_fault_alloc") >= before + 2 ? at : NULL;
}

/* The mapping, or NULL with the reason why there is none. */
static uint8_t *make(uint32_t which, size_t *size, const char **why)
{
	const int rw = PROT_READ | PROT_WRITE, huge = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	struct kind *k = &kinds[which];
	uint8_t *at;

	*size = SIZE;
	k->fd = -1;
	switch (which) {
	case TRANSPARENT:
		*why = "there were no huge pages to be had";
		return transparent();
	case SHARED:
		return map(SIZE, rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	case MEMFD:
		k->fd = memfd_create("kinds", 0);
		if (k->fd < 0 || ftruncate(k->fd, (off_t)SIZE))
			give_up("memfd: %s", strerror(errno));
		return map(SIZE, rw, MAP_SHARED, k->fd);
	case DEV_SHM:
		k->fd = file_in("/dev/shm", SIZE);
		return map(SIZE, rw, MAP_SHARED, k->fd);
	case HUGE_PRIVATE:
		*why = "this machine has none";
		return try_map(SIZE, rw, huge | (int)MAP_HUGE_2MB, -1);
	case HUGE_FILE:
		*why = "there is no hugetlbfs";
		if (!is_of("huge", HUGETLBFS_MAGIC))
			return NULL;
		k->fd = file_in("huge", SIZE);
		*why = "this machine has no huge pages";
		return try_map(SIZE, rw, MAP_SHARED, k->fd);
	case GIGANTIC:
		*why = "this machine has none";
		*size = 512 * HUGE;
		at = try_map(*size, rw, huge | (int)MAP_HUGE_1GB, -1);
		/* A child would get a copy of what is pinned, but there is one page. */
		if (at)
			madvise(at, *size, MADV_DONTFORK);
		return at;
	case FILE_PRIVATE:
		k->fd = plain_file(SIZE);
		return map(SIZE, rw, MAP_PRIVATE, k->fd);
	case TMPFS_READ:
		k->fd = file_in(".", SIZE);
		return map(SIZE, PROT_READ, MAP_SHARED, k->fd);
	case FILE_READ:
		k->fd = plain_file(SIZE);
		return map(SIZE, PROT_READ, MAP_SHARED, k->fd);
	case FILE_PRIVATE_READ:
		k->fd = plain_file(SIZE);
		return map(SIZE, PROT_READ, MAP_PRIVATE, k->fd);
	default:
		at = anonymous(SIZE);
		madvise(at, SIZE, MADV_NOHUGEPAGE);
		return at;
	}
}

static void publish(uint32_t which, uint32_t segment)
{
	const char *why = "no reason";
	struct kind *k = &kinds[which];
	uint8_t *start, *fill;
	size_t size;

	if (which == GIGANTIC && !gigantic)
		return;
	start = make(which, &size, &why);
	if (!start) {
		report_skip(names[which], why);
		return;
	}
	k->pos = (off_t)((size / 2 - LENGTH / 2) | 1);
	k->at = start + k->pos;
	fill = k->at;
	if (k->fd >= 0) {
		k->other = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd) + k->pos;
		fill = k->other;
	}
	pattern_fill(fill - GUARD, GUARD, which, 1);
	pattern_fill(fill, LENGTH, seed_of(FIRST, which), 0);
	pattern_fill(fill + LENGTH, GUARD, which, 2);
	if (which == PROTECTED && mprotect(start, size, PROT_READ))
		give_up("mprotect: %s", strerror(errno));
	k->region = add(k->at, LENGTH, which < TO_READ ? ALL : READ, segment, PLACE(which));
}

/* The owner writes: to the memory, or to the file behind it. */
static void change(uint32_t which)
{
	uint64_t seed = seed_of(CHANGED, which);
	struct kind *k = &kinds[which];
	uint8_t *page = k->at - (uintptr_t)k->at % PAGE, *bytes;

	switch (which) {
	case MEMFD:
	case DEV_SHM:
	case HUGE_FILE:
		pattern_fill(k->other, LENGTH, seed, 0);
		break;
	case PROTECTED:
		if (mprotect(page, LENGTH + PAGE, PROT_READ | PROT_WRITE))
			give_up("mprotect: %s", strerror(errno));
		pattern_fill(k->at, LENGTH, seed, 0);
		if (mprotect(page, LENGTH + PAGE, PROT_READ))
			give_up("mprotect: %s", strerror(errno));
		break;
	case TMPFS_READ:
	case FILE_READ:
	case FILE_PRIVATE_READ:
		bytes = need_memory(malloc(LENGTH));
		pattern_fill(bytes, LENGTH, seed, 0);
		if (pwrite(k->fd, bytes, LENGTH, k->pos) != (ssize_t)LENGTH)
			give_up("%s: %s", names[which], strerror(errno));
		free(bytes);
		break;
	default:
		pattern_fill(k->at, LENGTH, seed, 0);
		break;
	}
}

/* What is registered of a private file is a copy that was made then. */
static uint32_t in_memory(uint32_t stage, uint32_t which)
{
	if (which == FILE_PRIVATE_READ || (which >= TO_READ && stage == PUT))
		return FIRST;
	return which >= TO_READ && stage == GOT ? CHANGED : stage;
}

static uint32_t in_file(uint32_t stage, uint32_t which)
{
	if (which == FILE_PRIVATE)
		return FIRST;
	if (which == FILE_PRIVATE_READ)
		return stage >= CHANGED ? CHANGED : FIRST;
	return in_memory(stage, which);
}

static void expect_seen(struct test *t, uint32_t stage, uint32_t which)
{
	uint64_t seed = seed_of(in_memory(stage, which), which);
	const struct kind *k = &kinds[which];
	uint8_t *bytes;
	char why[128];
	int status;
	pid_t child;

	expect_pattern(t, k->at, LENGTH, seed, 0, "memory");
	expect_pattern(t, k->at - GUARD, GUARD, which, 1, "before it");
	expect_pattern(t, k->at + LENGTH, GUARD, which, 2, "behind it");
	if (which == SHARED) {
		child = fork();
		if (!child)
			_exit(pattern_check(k->at, LENGTH, seed, 0, "child", why,
					    sizeof(why)) ? 0 : 1);
		expect(t, child > 0 && waitpid(child, &status, 0) == child && !status,
		       "a child sees other bytes");
	}
	if (k->fd < 0)
		return;
	seed = seed_of(in_file(stage, which), which);
	expect_pattern(t, k->other, LENGTH, seed, 0, "file, mapped again");
	expect_pattern(t, k->other - GUARD, GUARD, which, 1, "file, before it");
	expect_pattern(t, k->other + LENGTH, GUARD, which, 2, "file, behind it");
	bytes = need_memory(malloc(LENGTH));
	expect(t, pread(k->fd, bytes, LENGTH, k->pos) == (ssize_t)LENGTH, "read: %s",
	       strerror(errno));
	expect_pattern(t, bytes, LENGTH, seed, 0, "file, read");
	free(bytes);
}

/* -------------------------------------------------------------- b's own puts and gets */

static struct {
	uint32_t segment;	/* of a, with LENGTH + 2 bytes */
	uint8_t *bytes;		/* registered */
} buffer;

static void use_locally(struct test *t, uint32_t which)
{
	const struct kind *k = &kinds[which];
	uint64_t seed = seed_of(in_memory(CHANGED, which), which);
	int ret;

	for (size_t i = 0; i < BESIDE; i++) {
		uint64_t from = beside_from(&beside[i], LENGTH);
		uint64_t length = beside_length(&beside[i], LENGTH);
		int wanted = beside[i].local;

		ret = rmpool_put(pool, buffer.segment, 0, k->at + from, length, LIMIT);
		expect(t, ret == wanted, "put of %llu bytes at %lld: %d",
		       (unsigned long long)length, (long long)from, ret);
		if (which >= TO_READ)
			continue;
		ret = rmpool_get(pool, buffer.segment, 0, k->at + from, length, LIMIT);
		expect(t, ret == wanted, "get of %llu bytes to %lld: %d",
		       (unsigned long long)length, (long long)from, ret);
	}
	ret = rmpool_put(pool, buffer.segment, 1, k->at, LENGTH, LIMIT);
	expect(t, !ret, "put: %s", rmpool_error());
	memset(buffer.bytes, 0, LENGTH);
	ret = rmpool_get(pool, buffer.segment, 1, buffer.bytes, LENGTH, LIMIT);
	expect(t, !ret, "get: %s", rmpool_error());
	expect_pattern(t, buffer.bytes, LENGTH, seed, 0, "what was put from it");

	pattern_fill(buffer.bytes, LENGTH, seed_of(GOT, which), 0);
	ret = rmpool_put(pool, buffer.segment, 0, buffer.bytes, LENGTH, LIMIT);
	expect(t, !ret, "put: %s", rmpool_error());
	ret = rmpool_get(pool, buffer.segment, 0, k->at, LENGTH, LIMIT);
	if (which < TO_READ)
		expect(t, !ret, "get to it: %s", rmpool_error());
	else
		expect(t, ret == -EACCES, "get to it: %d", ret);
	expect_seen(t, GOT, which);
}

static void owner(void)
{
	struct test closed = { .name = "all is given back" };
	struct test t[KINDS];
	uint32_t segment, i;

	if (rmpool_publish(pool, "kinds", &segment))
		give_up("%s", rmpool_error());
	for (i = 0; i < KINDS; i++) {
		t[i] = (struct test){ .name = names[i] };
		publish(i, segment);
	}
	barrier("published");

	barrier("put");
	for (i = 0; i < KINDS; i++) {
		if (!kinds[i].at)
			continue;
		expect_seen(&t[i], PUT, i);
		change(i);
		expect_seen(&t[i], CHANGED, i);
	}
	barrier("changed");

	barrier("got");
	if (rmpool_segment_open(pool, "a", "buffer", 60000, &buffer.segment, NULL))
		give_up("%s", rmpool_error());
	buffer.bytes = anonymous(LENGTH);
	add(buffer.bytes, LENGTH, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0);
	for (i = 0; i < KINDS; i++) {
		if (!kinds[i].at)
			continue;
		use_locally(&t[i], i);
		test_end(&t[i]);
	}
	barrier("done");

	for (i = 0; i < KINDS; i++)
		expect(&closed, !kinds[i].at || !rmpool_unregister(pool, kinds[i].region),
		       "%s: %s", names[i], rmpool_error());
	expect(&closed, status_value("VmPin") == (long)(LENGTH / PAGE + 1) * 4,
	       "VmPin is %ld kB", status_value("VmPin"));
	test_end(&closed);
}

/* ------------------------------------------------------------------- the other */

static uint64_t length_of(uint32_t which)
{
	(void)which;
	return LENGTH;
}

static void other(void)
{
	uint32_t access[KINDS] = { 0 }, i;
	struct test t[KINDS];

	far_begin(pool, LENGTH);
	barrier("published");
	far_open("kinds", access, KINDS, length_of);
	for (i = 0; i < KINDS; i++) {
		t[i] = (struct test){ .name = names[i] };
		expect(&t[i], !access[i] ||
		       !(access[i] & RMPOOL_ACCESS_REMOTE_WRITE) == (i >= TO_READ), "access %u",
		       access[i]);
		if (access[i])
			far_first_round(&t[i], i, LENGTH, access[i]);
		else if (i != GIGANTIC || gigantic)
			report_skip(names[i], "the other host has none");
	}
	barrier("put");
	barrier("changed");
	for (i = 0; i < KINDS; i++) {
		if (!access[i])
			continue;
		far_get(&t[i], i, LENGTH, seed_of(i == FILE_PRIVATE_READ ? FIRST : CHANGED, i));
		test_end(&t[i]);
	}
	barrier("got");
	barrier("done");
}

int main(int argc, char **argv)
{
	gigantic = argc == 3 && !strcmp(argv[2], "gigantic");
	if (argc != 2 + gigantic)
		give_up("kinds a|b [gigantic]");
	return two_parts(argv[1], &pool, owner, other);
}
