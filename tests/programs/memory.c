// SPDX-License-Identifier: MIT
/*
 * memory: registering memory on one machine.
 *
 *	memory regions		as root
 *	memory limit BYTES	as an ordinary user whose RLIMIT_MEMLOCK is BYTES
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)

static struct rmpool *pool;
static long at_rest;		/* pages that are pinned when nothing is registered here */

static uint8_t *anonymous(size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return map;
}

static int add(void *addr, size_t length, uint32_t access, uint32_t *region)
{
	return rmpool_register(pool, addr, length, access, 0, 0, region, NULL);
}

static uint64_t pinned_bytes(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info.pinned;
}

/* Pins of the machine may be given back a moment after the memory is. */
static bool pins_return(long before)
{
	double end = now() + patience(20);

	if (geteuid())
		return true;	/* the count is not exact: VmPin must do */
	while (pinned_pages() != before) {
		if (now() > end)
			return false;
		pause_ms(1);
	}
	return true;
}

struct seen {
	uint64_t length;
	uint32_t nr, chunks, devices;
};

static int see_region(const struct rmpool_nl_region *r, void *arg)
{
	struct seen *seen = arg;

	if (r->owner_pid != (uint32_t)getpid())
		return 0;
	seen->nr++;
	seen->length = r->length;
	seen->chunks = r->chunks;
	seen->devices = r->devices;
	return 0;
}

static int count_device(const struct rmpool_nl_device *d, void *arg)
{
	*(uint32_t *)arg += d->usable;
	return 0;
}

static void test_two_devices(struct rmpool_nl *nl)
{
	struct test t = { .name = "more than 512 pages, two devices, one charge" };
	const size_t length = 4 * MIB + 3 * PAGE;	/* touches 1,028 pages */
	struct seen seen = { .nr = 0 };
	uint8_t *memory = anonymous(length + 2 * PAGE);
	const long before = at_rest;
	uint32_t region, devices = 0;
	int ret;

	rmpool_nl_devices(nl, count_device, &devices);
	expect(&t, devices == 2, "%u usable devices", devices);
	ret = add(memory + 100, length, RMPOOL_ACCESS_ALL, &region);
	if (!expect(&t, !ret, "%s", rmpool_error()))
		return;
	rmpool_nl_regions(nl, see_region, &seen);
	expect(&t, seen.nr == 1 && seen.length == length, "%u regions of %llu",
	       seen.nr, (unsigned long long)seen.length);
	expect(&t, seen.devices == 2 && seen.chunks > 1,
	       "%u devices, %u chunks", seen.devices, seen.chunks);
	expect(&t, status_value("VmPin") == 1028L * 4, "VmPin is %ld kB",
	       status_value("VmPin"));
	expect(&t, pinned_bytes() == 1028 * PAGE, "pinned: %llu",
	       (unsigned long long)pinned_bytes());
	expect(&t, pinned_pages() - before == 1028, "%ld pages pinned",
	       pinned_pages() - before);
	ret = rmpool_unregister(pool, region);
	expect(&t, !ret, "%s", rmpool_error());
	expect(&t, !status_value("VmPin") && pins_return(before),
	       "%ld kB, %ld pages left", status_value("VmPin"),
	       pinned_pages() - before);
	munmap(memory, length + 2 * PAGE);
	test_end(&t);
}

static void test_hole(int prot)
{
	struct test t = {
		.name = prot < 0 ? "a hole: EFAULT, nothing pinned" :
			prot == PROT_NONE ? "PROT_NONE within: EFAULT" :
			"a read-only page within, to write: EFAULT",
	};
	const size_t hole = 700;
	uint8_t *memory = anonymous(1100 * PAGE);
	const long before = at_rest;
	uint32_t region = 77;
	int ret;

	memset(memory, 1, 1100 * PAGE);
	if (prot < 0)
		munmap(memory + hole * PAGE, PAGE);
	else
		mprotect(memory + hole * PAGE, PAGE, prot);
	ret = add(memory + 9, 1090 * PAGE, RMPOOL_ACCESS_ALL, &region);
	expect(&t, ret == -EFAULT, "returned %d", ret);
	expect(&t, rmpool_error_detail()->reason == RMPOOL_REASON_UNMAPPED,
	       "%s", rmpool_error());
	expect(&t, rmpool_error_detail()->need / PAGE ==
	       (uintptr_t)memory / PAGE + hole, "fault at 0x%llx, not page %zu",
	       (unsigned long long)rmpool_error_detail()->need, hole);
	expect(&t, region == 77, "handle %u", region);
	expect(&t, !status_value("VmPin") && !pinned_bytes() &&
	       pins_return(before), "%ld kB, %ld pages left",
	       status_value("VmPin"), pinned_pages() - before);
	munmap(memory, 1100 * PAGE);
	test_end(&t);
}

/* What a failed call leaves cannot be used for anything. */
static void test_failed_handles(void)
{
	struct test t = { .name = "1,000 failed registrations leave nothing" };
	void *memory = mmap(NULL, 64 * PAGE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rmpool_completion result;
	struct rmpool_request request;
	const long before = at_rest;
	uint32_t region = 0;
	int i, ret;

	for (i = 0; i < 1000; i++) {
		ret = add(memory, 64 * PAGE, i & 1 ? RMPOOL_ACCESS_ALL : 0,
			  &region);
		expect(&t, ret == -EFAULT && !region, "%d: %d, handle %u", i,
		       ret, region);
		ret = rmpool_unregister(pool, 1);
		expect(&t, ret == -ENOENT, "unregister: %d", ret);
	}
	rmpool_prepare_put(&request, 1, 0, memory, PAGE, 5);
	ret = rmpool_transfer(pool, &request, 1, &result, 1000);
	expect(&t, ret == 1 && result.status == -EBADF, "put: %d, %d", ret,
	       result.status);
	expect(&t, !pinned_bytes() && pins_return(before), "%ld pages left",
	       pinned_pages() - before);
	/* A handle is free again after each failure. */
	munmap(memory, 64 * PAGE);
	memory = anonymous(PAGE);
	ret = add(memory, PAGE, 0, &region);
	expect(&t, !ret && region == 1, "%d, handle %u", ret, region);
	rmpool_unregister(pool, region);
	munmap(memory, PAGE);
	test_end(&t);
}

static void test_read_only_file(void)
{
	static const char *const name = "memory.file";
	struct test t = { .name = "read-only file: to read yes, to write no" };
	int flags[] = { MAP_SHARED, MAP_PRIVATE }, fd, i, ret;
	static const uint32_t writes[] = {
		RMPOOL_ACCESS_LOCAL_WRITE, RMPOOL_ACCESS_REMOTE_WRITE,
		RMPOOL_ACCESS_ALL,
	};
	uint32_t region;
	uint8_t *map;
	size_t k;

	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, MIB))
		give_up("%s: %s", name, strerror(errno));
	close(fd);
	fd = open(name, O_RDONLY);
	for (i = 0; i < 2; i++) {
		map = mmap(NULL, MIB, PROT_READ, flags[i], fd, 0);
		if (map == MAP_FAILED)
			give_up("mmap: %s", strerror(errno));
		ret = add(map, MIB, RMPOOL_ACCESS_REMOTE_READ, &region);
		expect(&t, !ret, "%d: %s", i, rmpool_error());
		if (!ret)
			rmpool_unregister(pool, region);
		for (k = 0; k < 3; k++) {
			ret = add(map, MIB, writes[k], &region);
			expect(&t, ret == -EFAULT, "%d, access %u: %d", i,
			       writes[k], ret);
		}
		munmap(map, MIB);
	}
	close(fd);
	unlink(name);
	expect(&t, !pinned_bytes(), "pins left");
	test_end(&t);
}

/* ------------------------------------------------------------------- threads */

#define THREADS	8
#define ROUNDS	1000
#define ARENA	(64 * MIB)
#define HELD	8

static uint8_t *arena;
static atomic_int thread_errors;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *register_at_random(void *arg)
{
	uint64_t state = 0x9e3779b97f4a7c15 * ((uintptr_t)arg + 1);
	uint32_t held[HELD] = { 0 };
	size_t at, length;
	int i, k;

	for (i = 0; i < ROUNDS; i++) {
		k = (int)(next_random(&state) % HELD);
		if (held[k] && rmpool_unregister(pool, held[k]))
			atomic_fetch_add(&thread_errors, 1);
		held[k] = 0;
		at = next_random(&state) % ARENA;
		length = 1 + next_random(&state) % (128UL * 1024);
		if (length > ARENA - at)
			length = ARENA - at;
		if (add(arena + at, length, (uint32_t)next_random(&state) & 7,
			&held[k])) {
			fprintf(stderr, "%s\n", rmpool_error());
			atomic_fetch_add(&thread_errors, 1);
			held[k] = 0;
		}
	}
	for (k = 0; k < HELD; k++) {
		if (held[k] && rmpool_unregister(pool, held[k]))
			atomic_fetch_add(&thread_errors, 1);
	}
	return NULL;
}

static void test_threads(struct rmpool_nl *nl)
{
	struct test t = { .name = "8 threads register overlapping ranges" };
	struct seen seen = { .nr = 0 };
	pthread_t threads[THREADS];
	const long before = at_rest;
	uintptr_t i;

	arena = anonymous(ARENA);
	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, register_at_random,
				   (void *)i))
			give_up("no thread");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	expect(&t, !thread_errors, "%d calls failed", thread_errors);
	rmpool_nl_regions(nl, see_region, &seen);
	expect(&t, !seen.nr, "%u regions left", seen.nr);
	expect(&t, !status_value("VmPin") && !pinned_bytes() &&
	       pins_return(before), "%ld kB, %ld pages left",
	       status_value("VmPin"), pinned_pages() - before);
	munmap(arena, ARENA);
	test_end(&t);
}

/* -------------------------------------------------------------------- limits */

static void try_limit(size_t small, size_t large, size_t limit)
{
	struct test t = { .name = "RLIMIT_MEMLOCK, ordinary user" };
	uint8_t *memory = anonymous(small + large);
	const struct rmpool_error *detail;
	const long before = at_rest;
	uint32_t region, none;
	int ret;

	ret = add(memory, small, RMPOOL_ACCESS_ALL, &region);
	expect(&t, !ret, "%zu fail: %s", small, rmpool_error());
	expect(&t, status_value("VmPin") == (long)small / 1024,
	       "VmPin is %ld kB", status_value("VmPin"));
	ret = add(memory + small, large, RMPOOL_ACCESS_ALL, &none);
	detail = rmpool_error_detail();
	expect(&t, ret == -ENOMEM && detail->reason == RMPOOL_REASON_MEMLOCK &&
	       detail->limit == limit && detail->used == small &&
	       detail->need == large, "%zu: %d, reason %u", large, ret,
	       detail->reason);
	expect(&t, strstr(rmpool_error(), "RLIMIT_MEMLOCK is 64 MiB") ||
	       strstr(rmpool_error(), "RLIMIT_MEMLOCK is 50 MiB"),
	       "the text is: %s", rmpool_error());
	printf("%s\n", rmpool_error());
	expect(&t, status_value("VmPin") == (long)small / 1024 &&
	       pinned_bytes() == small, "after it, VmPin is %ld kB",
	       status_value("VmPin"));
	rmpool_unregister(pool, region);
	expect(&t, !status_value("VmPin") && pins_return(before), "pins left");
	/* to the last page, and not one more */
	ret = add(memory, limit, 0, &region);
	expect(&t, !ret, "all of it: %s", rmpool_error());
	ret = add(memory + limit, 1, 0, &none);
	expect(&t, ret == -ENOMEM, "one byte more: %d", ret);
	rmpool_unregister(pool, region);
	expect(&t, !status_value("VmPin") && pins_return(before), "pins left");
	munmap(memory, small + large);
	test_end(&t);
}

static void test_no_limit(void)
{
	struct test t = { .name = "128 MiB with CAP_IPC_LOCK" };
	uint8_t *memory = anonymous(128 * MIB);
	uint32_t region;
	int ret;

	ret = add(memory, 128 * MIB, RMPOOL_ACCESS_ALL, &region);
	expect(&t, !ret, "%s", rmpool_error());
	expect(&t, status_value("VmPin") == 128L * 1024, "VmPin is %ld kB",
	       status_value("VmPin"));
	if (!ret)
		rmpool_unregister(pool, region);
	expect(&t, !status_value("VmPin"), "pins left");
	munmap(memory, 128 * MIB);
	test_end(&t);
}

int main(int argc, char **argv)
{
	struct rmpool_nl *nl;

	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	at_rest = pinned_pages();
	if (argc == 3 && !strcmp(argv[1], "limit")) {
		size_t limit = strtoull(argv[2], NULL, 0);

		if (limit == 64 * MIB)
			try_limit(32 * MIB, 128 * MIB, limit);
		else
			try_limit(MIB, 100 * MIB + PAGE, limit);
		goto out;
	}
	if (argc != 2 || strcmp(argv[1], "regions"))
		give_up("memory regions | memory limit BYTES");
	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	test_two_devices(nl);
	test_hole(-1);
	test_hole(PROT_NONE);
	test_hole(PROT_READ);
	test_failed_handles();
	test_read_only_file();
	test_threads(nl);
	test_no_limit();
	rmpool_nl_close(nl);
out:
	rmpool_close(pool);
	return report_failed != 0;
}
