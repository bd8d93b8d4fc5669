// SPDX-License-Identifier: MIT
/*
 * peer_memory: memory of one host as the other sees it, when it was registered
 * in ways that are easy to get wrong. Host b publishes it, host a puts and gets.
 *
 *	peer_memory a|b
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define SIZE	(4 * MIB)	/* of the small regions */
#define BIG	(100 * MIB + PAGE)
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define ALL	RMPOOL_ACCESS_ALL

/* Where b places what, in its segment. */
enum {
	UNTOUCHED,	/* private, registered to read, filled afterwards */
	ZERO_PAGES,	/* the same, but read before, so of shared zero pages */
	FILE_SHARED,	/* mapped read-only */
	FILE_PRIVATE,	/* mapped read-only */
	FORKED,		/* private memory, the owner forked and rewrote it */
	FORKED_SHM,	/* the same in /dev/shm */
	FORKED_HUGE,	/* the same where huge pages are wanted */
	UNMAPPED,	/* unmapped, something else is there now */
	SMALL_REGIONS
};

#define PLACE(which)	((uint64_t)(which) * 16 * MIB)
#define BIG_PLACE	PLACE(SMALL_REGIONS)

static struct rmpool *pool;

/* A pattern that no two places and rounds have in common. */
static void fill(uint8_t *to, size_t length, uint64_t seed)
{
	uint64_t word = seed * 0x9e3779b97f4a7c15 + 1;
	size_t i;

	for (i = 0; i < length; i++) {
		if (!(i & 7))
			word = word * 6364136223846793005 + 1442695040888963407;
		to[i] = (uint8_t)(word >> (8 * (i & 7)));
	}
}

static bool filled(const uint8_t *at, size_t length, uint64_t seed)
{
	uint8_t *want = malloc(length);
	bool same;

	fill(want, length, seed);
	same = !memcmp(at, want, length);
	free(want);
	return same;
}

static uint8_t *map(size_t size, int prot, int flags, int fd)
{
	void *at = mmap(NULL, size, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return at;
}

static uint8_t *anonymous(size_t size)
{
	return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static uint8_t *file(const char *name, int prot, int flags, uint64_t seed)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	uint8_t *at;

	if (fd < 0 || ftruncate(fd, (off_t)SIZE))
		give_up("%s: %s", name, strerror(errno));
	at = map(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	fill(at, SIZE, seed);
	munmap(at, SIZE);
	close(fd);
	fd = open(name, (prot & PROT_WRITE) ? O_RDWR : O_RDONLY);
	at = map(SIZE, prot, flags, fd);
	close(fd);
	unlink(name);
	return at;
}

static void add(void *addr, size_t length, uint32_t access, uint32_t segment,
		uint64_t offset, uint32_t *region)
{
	if (rmpool_register(pool, addr, length, access, segment, offset, region,
			    NULL))
		give_up("%s", rmpool_error());
}

/* --------------------------------------------------------------- the owner */

static void owner(void)
{
	struct test forked = { .name = "fork: the parent sees what is put" };
	struct test stale = { .name = "unmapped: what is there now stays" };
	struct test closed = { .name = "closed: all is given back" };
	uint8_t *at[SMALL_REGIONS], *big, *bytes;
	uint32_t segment, region;
	unsigned int sum = 0, i;
	double end;
	pid_t child;

	if (rmpool_publish(pool, "memory", &segment))
		give_up("%s", rmpool_error());
	at[UNTOUCHED] = anonymous(SIZE);
	at[ZERO_PAGES] = anonymous(SIZE);
	for (bytes = at[ZERO_PAGES]; bytes < at[ZERO_PAGES] + SIZE; bytes += PAGE)
		sum += *(volatile uint8_t *)bytes;
	at[FILE_SHARED] = file("shared", PROT_READ, MAP_SHARED, FILE_SHARED);
	at[FILE_PRIVATE] = file("private", PROT_READ, MAP_PRIVATE, FILE_PRIVATE);
	at[FORKED] = anonymous(SIZE);
	at[FORKED_SHM] = file("/dev/shm/peer_memory", PROT_READ | PROT_WRITE,
			      MAP_SHARED, 0);
	at[FORKED_HUGE] = anonymous(SIZE + 2 * MIB);
	madvise(at[FORKED_HUGE], SIZE + 2 * MIB, MADV_HUGEPAGE);
	at[UNMAPPED] = anonymous(SIZE);
	for (i = 0; i < SMALL_REGIONS; i++)
		add(at[i], SIZE, i >= FORKED ? ALL : READ, segment, PLACE(i),
		    &region);
	big = anonymous(BIG);
	memset(big, 0, BIG);
	add(big, BIG, ALL, segment, BIG_PLACE, &region);

	/* Memory is written after it was registered; fork and unmap as well. */
	fill(at[UNTOUCHED], SIZE, UNTOUCHED);
	fill(at[ZERO_PAGES], SIZE, ZERO_PAGES);
	child = fork();
	if (!child) {
		for (;;)
			pause();
	}
	for (i = FORKED; i <= FORKED_HUGE; i++)
		fill(at[i], SIZE, i);
	munmap(at[UNMAPPED], SIZE);
	at[UNMAPPED] = mmap(at[UNMAPPED], SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (at[UNMAPPED] == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	memset(at[UNMAPPED], 0xaa, SIZE);

	barrier("published");
	barrier("put");
	for (i = FORKED; i <= FORKED_HUGE; i++)
		expect(&forked, filled(at[i], SIZE, 100 + i), "region %u", i);
	test_end(&forked);
	for (i = 0; i < SIZE; i++)
		expect(&stale, at[UNMAPPED][i] == 0xaa, "byte %u is 0x%02x", i,
		       at[UNMAPPED][i]);
	test_end(&stale);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	barrier("done");
	rmpool_close(pool);
	/* What waits for peers does so in the background. */
	end = now() + patience(30);
	while (status_value("VmPin") && now() < end)
		pause_ms(1);
	expect(&closed, !status_value("VmPin"), "VmPin is %ld kB",
	       status_value("VmPin"));
	test_end(&closed);
	if (sum)
		give_up("untouched memory was not zero");
}

/* ---------------------------------------------------------------- the other */

static void test_reads(uint32_t segment, uint8_t *buffer)
{
	static const char *const names[] = {
		"read-only, untouched, filled later: right",
		"read-only, zero pages, filled later: right",
		"read-only shared file: right",
		"read-only private file: right",
		"forked, parent rewrote: new data",
		"forked, /dev/shm: new data",
		"forked, huge pages: new data",
	};
	unsigned int i;
	int ret;

	for (i = 0; i < UNMAPPED; i++) {
		struct test t = { .name = names[i] };

		memset(buffer, 0x11, SIZE);
		ret = rmpool_get(pool, segment, PLACE(i), buffer, SIZE, 60000);
		expect(&t, !ret, "%s", rmpool_error());
		expect(&t, filled(buffer, SIZE, i), "other bytes");
		test_end(&t);
	}
}

static void test_writes(uint32_t segment, uint8_t *buffer)
{
	struct test t = { .name = "put to read-only memory: EACCES" };
	struct test unmapped = { .name = "put to unmapped memory: ESTALE" };
	unsigned int i;
	int ret;

	for (i = UNTOUCHED; i <= FILE_PRIVATE; i++) {
		ret = rmpool_put(pool, segment, PLACE(i), buffer, PAGE, 60000);
		expect(&t, ret == -EACCES, "region %u: %d", i, ret);
		/* the next good one works, and soon */
		fill(buffer, SIZE, 100 + FORKED);
		ret = rmpool_put(pool, segment, PLACE(FORKED), buffer, SIZE,
				 60000);
		expect(&t, !ret, "%s", rmpool_error());
	}
	for (i = FORKED; i <= FORKED_HUGE; i++) {
		fill(buffer, SIZE, 100 + i);
		ret = rmpool_put(pool, segment, PLACE(i), buffer, SIZE, 60000);
		expect(&t, !ret, "region %u: %s", i, rmpool_error());
	}
	test_end(&t);
	memset(buffer, 0x55, SIZE);
	ret = rmpool_put(pool, segment, PLACE(UNMAPPED), buffer, SIZE, 60000);
	expect(&unmapped, ret == -ESTALE, "%d", ret);
	test_end(&unmapped);
}

static void test_read_only_source(uint32_t segment, uint8_t *buffer)
{
	struct test t = { .name = "read-only file as source of a put" };
	uint8_t *source = file("source", PROT_READ, MAP_SHARED, 55);
	uint32_t region;
	int ret;

	ret = rmpool_register(pool, source, SIZE, ALL, 0, 0, &region, NULL);
	expect(&t, ret == -EFAULT, "to write: %d", ret);
	add(source, SIZE, 0, 0, 0, &region);
	ret = rmpool_put(pool, segment, BIG_PLACE + 5, source + 1, SIZE - 1,
			 60000);
	expect(&t, !ret, "%s", rmpool_error());
	ret = rmpool_get(pool, segment, BIG_PLACE + 5, buffer, SIZE - 1, 60000);
	expect(&t, !ret, "%s", rmpool_error());
	expect(&t, !memcmp(buffer, source + 1, SIZE - 1), "other bytes");
	/* but not as the target of a get */
	ret = rmpool_get(pool, segment, BIG_PLACE, source, PAGE, 60000);
	expect(&t, ret == -EACCES, "get into it: %d", ret);
	rmpool_unregister(pool, region);
	munmap(source, SIZE);
	test_end(&t);
}

static int smallest_chunk(const struct rmpool_nl_device *d, void *arg)
{
	uint64_t *chunk = arg;

	if (d->usable && (!*chunk || d->chunk < *chunk))
		*chunk = d->chunk;
	return 0;
}

/* Chunk borders of both sides are nowhere to be seen. */
static void test_borders(uint32_t segment)
{
	struct test t = { .name = "100 MiB + 4 KiB: 1 MiB over every border" };
	uint8_t *image = anonymous(BIG), *local = anonymous(BIG + 2 * PAGE);
	uint64_t chunk = 0, at, i;
	struct rmpool_nl *nl;
	uint32_t region;
	int ret;

	if (rmpool_nl_open(&nl) || rmpool_nl_devices(nl, smallest_chunk, &chunk))
		give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
	expect(&t, chunk && chunk < BIG / 8, "chunks of %llu",
	       (unsigned long long)chunk);
	/* Borders here and there are not at the same place. */
	local += 1234;
	add(local, BIG, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region);
	ret = rmpool_get(pool, segment, BIG_PLACE, image, 1, 1000);
	expect(&t, ret == -EFAULT, "get to memory of no region: %d", ret);
	ret = rmpool_get(pool, segment, BIG_PLACE, local, BIG, 120000);
	expect(&t, !ret, "%s", rmpool_error());
	memcpy(image, local, BIG);

	for (at = chunk, i = 0; at < BIG && !t.failed; at += chunk, i++) {
		uint64_t from = at - MIB / 2, length = MIB;

		if (length > BIG - from)
			length = BIG - from;
		fill(local + from, length, 1000 + i);
		memcpy(image + from, local + from, length);
		ret = rmpool_put(pool, segment, BIG_PLACE + from, local + from,
				 length, 60000);
		expect(&t, !ret, "border %llu: %s", (unsigned long long)i,
		       rmpool_error());
		/* one byte on either side */
		local[at - 1] ^= 0xff;
		local[at] ^= 0x0f;
		image[at - 1] ^= 0xff;
		image[at] ^= 0x0f;
		ret = rmpool_put(pool, segment, BIG_PLACE + at - 1,
				 local + at - 1, 1, 60000);
		ret |= rmpool_put(pool, segment, BIG_PLACE + at, local + at, 1,
				  60000);
		expect(&t, !ret, "border %llu: %s", (unsigned long long)i,
		       rmpool_error());
	}
	/* 40 MiB over many of them, from one odd place to another */
	fill(local + 7 * MIB + 3, 40 * MIB, 7);
	memcpy(image + 11 * MIB + 1, local + 7 * MIB + 3, 40 * MIB);
	ret = rmpool_put(pool, segment, BIG_PLACE + 11 * MIB + 1,
			 local + 7 * MIB + 3, 40 * MIB, 120000);
	expect(&t, !ret, "40 MiB: %s", rmpool_error());
	memset(local, 0x22, BIG);
	ret = rmpool_get(pool, segment, BIG_PLACE, local, BIG, 120000);
	expect(&t, !ret, "all of it: %s", rmpool_error());
	for (at = 0; at < BIG && !t.failed; at++)
		expect(&t, local[at] == image[at], "byte %llu",
		       (unsigned long long)at);
	/* one byte past its end, and one at it */
	ret = rmpool_put(pool, segment, BIG_PLACE + BIG - 1, local, 2, 60000);
	expect(&t, ret == -ERANGE, "past its end: %d", ret);
	ret = rmpool_put(pool, segment, BIG_PLACE + BIG, local, 1, 60000);
	expect(&t, ret == -ENXIO, "behind its end: %d", ret);
	rmpool_unregister(pool, region);
	test_end(&t);
}

static void other(void)
{
	uint8_t *buffer = anonymous(SIZE);
	uint32_t segment, region;

	barrier("published");
	if (rmpool_segment_open(pool, "b", "memory", 60000, &segment, NULL))
		give_up("%s", rmpool_error());
	add(buffer, SIZE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region);
	test_reads(segment, buffer);
	test_writes(segment, buffer);
	barrier("put");
	test_read_only_source(segment, buffer);
	test_borders(segment);
	barrier("done");
	rmpool_close(pool);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		give_up("peer_memory a|b");
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (argv[1][0] == 'b')
		owner();
	else
		other();
	return report_failed != 0;
}
