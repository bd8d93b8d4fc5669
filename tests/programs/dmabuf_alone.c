// SPDX-License-Identifier: MIT
/*
 * dmabuf_alone: dma-bufs on one host: what is refused, and who keeps a buffer how long.
 * Where udmabuf makes none, only the first of it.
 */
#include <signal.h>
#include <sys/wait.h>

#include <rmpool.h>
#include "clock.h"
#include "dmabuf.h"
#include "kinds.h"
#include "udmabuf.h"

#define PAGE	4096UL
#define SIZE	(2UL << 20)	/* of each buffer */
#define START	5003UL		/* of a region, in its buffer */
#define LENGTH	600001UL	/* of a region */
#define ALL	RMPOOL_ACCESS_ALL
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define PATIENCE 60		/* seconds */

static struct rmpool *pool;

static void refused(struct test *t, int fd, uint64_t start, uint64_t addr, uint64_t length,
		    int err, uint32_t reason)
{
	const struct rmpool_error *why = rmpool_error_detail();
	uint32_t region = 77;
	int ret;

	ret = rmpool_register_dmabuf(pool, fd, start, (void *)(uintptr_t)addr, length, READ, 0, 0,
				     0, &region, NULL);
	expect(t, ret == err && why->reason == reason && region == 77,
	       "%llu bytes of %d at %llu: %d, reason %u", (unsigned long long)length, fd,
	       (unsigned long long)start, ret, why->reason);
}

static void refuse_descriptors(void)
{
	struct test t = { .name = "descriptors of something else" };
	int memory = udmabuf_memory(SIZE, 0), closed = dup(memory);

	close(closed);
	refused(&t, -1, 0, PAGE, PAGE, -EBADF, RMPOOL_REASON_DMABUF_FD);
	refused(&t, closed, 0, PAGE, PAGE, -EBADF, RMPOOL_REASON_DMABUF_FD);
	refused(&t, memory, 0, PAGE, PAGE, -EINVAL, RMPOOL_REASON_DMABUF_FD);
	refused(&t, rmpool_fd(pool), 0, PAGE, PAGE, -EINVAL, RMPOOL_REASON_DMABUF_FD);
	refused(&t, STDOUT_FILENO, 0, PAGE, PAGE, -EINVAL, RMPOOL_REASON_DMABUF_FD);
	expect(&t, strstr(rmpool_error(), "is not one of a dma-buf") != NULL, "the text is: %s",
	       rmpool_error());
	close(memory);
	test_end(&t);
}

static void refuse_ranges(void)
{
	const uint32_t beyond = RMPOOL_REASON_DMABUF_RANGE;
	const uint64_t top = UINT64_MAX;
	struct test t = { .name = "ranges that are not in the buffer" };
	int fd = udmabuf_new(SIZE, 0, NULL);
	struct rmpool_info info;

	refused(&t, fd, SIZE, PAGE, 1, -ERANGE, beyond);
	expect(&t, rmpool_error_detail()->limit == SIZE && rmpool_error_detail()->need == SIZE + 1,
	       "%llu of %llu", (unsigned long long)rmpool_error_detail()->need,
	       (unsigned long long)rmpool_error_detail()->limit);
	refused(&t, fd, 0, PAGE, SIZE + 1, -ERANGE, beyond);
	refused(&t, fd, 1, PAGE, SIZE, -ERANGE, beyond);
	refused(&t, fd, SIZE - 1, PAGE, 2, -ERANGE, beyond);
	refused(&t, fd, SIZE + PAGE, PAGE, PAGE, -ERANGE, beyond);
	refused(&t, fd, 0, PAGE, top - PAGE, -ERANGE, beyond);
	refused(&t, fd, PAGE, PAGE, 1ULL << 63, -ERANGE, beyond);
	refused(&t, fd, top, PAGE, 1, -ERANGE, beyond);
	refused(&t, fd, top, PAGE, PAGE, -ERANGE, beyond);
	refused(&t, fd, top - PAGE + 1, PAGE, PAGE, -ERANGE, beyond);
	refused(&t, fd, top - PAGE + 2, PAGE, PAGE, -ERANGE, beyond);
	refused(&t, fd, 0, PAGE, 0, -EINVAL, RMPOOL_REASON_LENGTH_ZERO);
	refused(&t, fd, 0, top, 1, -EINVAL, RMPOOL_REASON_RANGE_WRAPS);
	refused(&t, fd, 0, top - PAGE + 1, PAGE, -EINVAL, RMPOOL_REASON_RANGE_WRAPS);
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&t, !info.pinned && !info.user_pinned && !see_regions().nr, "%llu bytes are left",
	       (unsigned long long)info.user_pinned);
	close(fd);
	test_end(&t);
}

/* What the process maps is of a device for the kernel: that way it is not memory. */
static void refuse_mapping(void)
{
	struct test t = { .name = "the mapping of a buffer, as if it was memory" };
	int fd = udmabuf_new(SIZE, 0, NULL);
	uint8_t *at = map(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	uint32_t region;
	int ret;

	ret = rmpool_register(pool, at, SIZE, READ, 0, 0, &region, NULL);
	expect(&t, ret == -EOPNOTSUPP &&
	       rmpool_error_detail()->reason == RMPOOL_REASON_DEVICE_MAPPING, "%d: %s", ret,
	       rmpool_error());
	munmap(at, SIZE);
	close(fd);
	test_end(&t);
}

/* Whether nothing has the pages of a memfd any more that is not mapped itself. */
static bool memory_free(int memory)
{
	return !fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE);
}

static bool soon_free(int memory)
{
	double end = now() + patience(PATIENCE);

	while (!memory_free(memory)) {
		if (now() > end)
			return false;
		pause_ms(20);
	}
	return true;
}

/* A region of a buffer whose descriptor is closed; its memfd stays. */
static uint32_t add_closed(struct rmpool *of, int *memory)
{
	int fd = udmabuf_new(SIZE, 0, memory);
	uint32_t region;

	if (fd < 0 || *memory < 0)
		give_up("udmabuf: %s", strerror(errno));
	if (rmpool_register_dmabuf(of, fd, START, (void *)(uintptr_t)PAGE, LENGTH, READ, 0, 0, 0,
				   &region, NULL))
		give_up("%s", rmpool_error());
	close(fd);
	return region;
}

static void hold_and_wait(int ready)
{
	static const char yes = 1;

	if (write(ready, &yes, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void lifetimes(void)
{
	struct test given = { .name = "a region keeps its buffer, and gives it back" };
	struct test end = { .name = "so does the end of the pool" };
	struct test killed = { .name = "and that of the process" };
	int memory = -1, fds[2];
	struct rmpool *of;
	uint32_t region;
	pid_t child;
	char byte;

	region = add_closed(pool, &memory);
	expect(&given, !memory_free(memory), "the buffer is gone");
	expect(&given, see_regions().nr == 1 && see_regions().length == LENGTH,
	       "it is not shown as one of a dma-buf");
	expect(&given, !rmpool_unregister(pool, region), "%s", rmpool_error());
	expect(&given, soon_free(memory), "the buffer is not given back");
	close(memory);
	test_end(&given);

	if (rmpool_open(&of, NULL, 0))
		give_up("%s", rmpool_error());
	add_closed(of, &memory);
	rmpool_close(of);
	expect(&end, soon_free(memory), "the buffer is not given back");
	close(memory);
	test_end(&end);

	memory = udmabuf_memory(SIZE, 0);
	if (pipe(fds))
		give_up("pipe: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child < 0)
		give_up("fork: %s", strerror(errno));
	if (!child) {
		struct udmabuf_create_item item = {
			.memfd = (uint32_t)memory, .size = SIZE,
		};
		int fd = udmabuf_of(&item, 1);

		if (fd < 0 || rmpool_open(&of, NULL, 0) ||
		    rmpool_register_dmabuf(of, fd, 0, NULL, SIZE, ALL, 0, 0, 0, &region, NULL))
			_exit(1);
		hold_and_wait(fds[1]);
	}
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		give_up("the child could not register");
	close(fds[0]);
	expect(&killed, !memory_free(memory), "the buffer is gone");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	expect(&killed, soon_free(memory), "the buffer is not given back");
	close(memory);
	test_end(&killed);
}

/* Names overlap as they like; each buffer is mapped once for all of its regions. */
static void many_regions(void)
{
	struct test t = { .name = "many regions of one buffer, some of one name" };
	uint32_t regions[64], i;
	int memory = -1, fd = udmabuf_new(SIZE, 0, &memory);

	for (i = 0; i < 64; i++)
		if (!expect(&t, !rmpool_register_dmabuf(pool, fd, 1000UL * i,
							(void *)(uintptr_t)(i / 2 * PAGE),
							SIZE - 64000, i % 2 ? ALL : READ, 0, 0, 0,
							&regions[i], NULL), "%s", rmpool_error()))
			break;
	close(fd);
	expect(&t, see_regions().nr == i, "%u regions, not %u", see_regions().nr, i);
	/* The last ones last: a mapping that is shared must outlive them. */
	while (i--) {
		expect(&t, i % 16 || !memory_free(memory), "the buffer is gone with region %u", i);
		expect(&t, !rmpool_unregister(pool, regions[i]), "%s", rmpool_error());
	}
	expect(&t, soon_free(memory), "the buffer is not given back");
	close(memory);
	test_end(&t);
}

int main(void)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	refuse_descriptors();
	if (udmabuf_there()) {
		refuse_ranges();
		refuse_mapping();
		lifetimes();
		many_regions();
	} else {
		report_skip("buffers", "this kernel is built without udmabuf");
	}
	rmpool_close(pool);
	return report_failed != 0;
}
