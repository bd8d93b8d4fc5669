// SPDX-License-Identifier: MIT
/*
 * dmabuf: registers ranges of dma-bufs on host b. Host a gets and puts all of them, and
 * what is beside; then b uses them for puts and gets of its own, and one of its two
 * devices goes and comes back.
 *
 *	dmabuf a|b
 *
 * The buffers are memory: udmabuf makes them of memfds.
 */
#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "dmabuf.h"
#include "far.h"
#include "udmabuf.h"

#define PAGE	4096UL
#define HUGE	(2 * MIB)
#define SIZE	HUGE		/* of each buffer */
#define START	5003UL		/* of the region, in its buffer */
#define LENGTH	600001UL	/* of the region */
#define ALL	RMPOOL_ACCESS_ALL
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define PATIENCE 60		/* seconds */
#define DEVICES	2

enum {
	OPEN,			/* descriptor kept, seen through a mapping of the buffer */
	CLOSED,			/* not kept, seen through a mapping of the memfd */
	FORGOTTEN,		/* nothing of it is kept but the region */
	WHOLE,			/* all of the buffer, to its last byte */
	PIECES,			/* of two memfds, in no order */
	TO_READ,		/* registered to be read */
	HUGE_PAGES,		/* hugetlbfs */
	BUFFERS
};

static const char *const names[BUFFERS] = {
	"open", "descriptor closed", "nothing kept but the region", "all of the buffer",
	"pieces of two memfds", "registered to be read", "huge pages",
};

static struct rmpool *pool;

static struct buffer {
	int fd;			/* or -1 */
	int memory[2];		/* memfds, or -1 */
	uint8_t *view;		/* of all of the buffer, or NULL */
	void *name;		/* of the first byte of the region */
	uint64_t start, length;
	uint32_t region;
	bool there;
} buffers[BUFFERS];

/* Addresses that are nobody's: those of half of the buffers, no process can have. */
static void *name_of(uint32_t which)
{
	uint64_t at = which % 2 ? 0xfff0000000000000ULL : 0x123456000ULL;

	return (void *)(uintptr_t)(at + 64 * MIB * which + 1234);
}

static void add_buffer(uint32_t which, uint32_t segment, uint32_t access)
{
	struct buffer *b = &buffers[which];

	b->name = name_of(which);
	if (rmpool_register_dmabuf(pool, b->fd, b->start, b->name, b->length, access, 0, segment,
				   segment ? PLACE(which) : 0, &b->region, NULL))
		give_up("%s: %s", names[which], rmpool_error());
	b->there = true;
}

/* Page i of the buffer is page 7 * i of two memfds that are taken in turn. */
static int make_pieces(struct buffer *b)
{
	static struct udmabuf_create_item items[SIZE / PAGE];
	const uint32_t nr = SIZE / PAGE;

	for (uint32_t i = 0; i < 2; i++)
		b->memory[i] = udmabuf_memory(SIZE, 0);
	for (uint32_t i = 0; i < nr; i++)
		items[i] = (struct udmabuf_create_item){
			.memfd = (uint32_t)b->memory[i % 2],
			.offset = (uint64_t)(7 * i % nr) * PAGE,
			.size = PAGE,
		};
	return udmabuf_of(items, nr);
}

/* A buffer with all of its descriptors, and a view. False: there is none such. */
static bool make_buffer(uint32_t which)
{
	struct buffer *b = &buffers[which];
	const int rw = PROT_READ | PROT_WRITE;
	uint8_t *at;

	b->start = which == WHOLE ? 0 : START;
	b->length = which == WHOLE ? SIZE : LENGTH;
	b->memory[0] = b->memory[1] = -1;
	if (which == HUGE_PAGES) {
		/* Or udmabuf would be told of no memory. */
		at = try_map(HUGE, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
		if (!at)
			return false;
		memset(at, 1, HUGE);
		munmap(at, HUGE);
	}
	if (which == PIECES)
		b->fd = make_pieces(b);
	else
		b->fd = udmabuf_new(SIZE, which == HUGE_PAGES ? MFD_HUGETLB : 0, &b->memory[0]);
	if (b->fd < 0)
		give_up("%s: udmabuf: %s", names[which], strerror(errno));
	b->view = map(SIZE, rw, MAP_SHARED, which == CLOSED ? b->memory[0] : b->fd);
	return true;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Lets go of all but what the buffer stands for. */
static void let_go(uint32_t which)
{
	struct buffer *b = &buffers[which];

	if (which == OPEN)
		return;
	close_fd(&b->fd);
	close_fd(&b->memory[0]);
	close_fd(&b->memory[1]);
	if (which == FORGOTTEN) {
		munmap(b->view, SIZE);
		b->view = NULL;
	}
}

static void fill(uint32_t which, uint32_t stage)
{
	struct buffer *b = &buffers[which];

	pattern_fill(b->view + b->start, b->length, seed_of(stage, which), 0);
}

/* The rest of the buffer never changes. */
static void fill_beside(uint32_t which)
{
	struct buffer *b = &buffers[which];
	uint64_t end = b->start + b->length;

	pattern_fill(b->view, b->start, which, 0);
	pattern_fill(b->view + end, SIZE - end, which, end);
}

static void expect_seen(struct test *t, uint32_t stage, uint32_t which)
{
	struct buffer *b = &buffers[which];
	uint64_t end = b->start + b->length;

	if (!b->view)
		return;
	expect_pattern(t, b->view + b->start, b->length, seed_of(stage, which), 0,
		       "the buffer");
	expect_pattern(t, b->view, b->start, which, 0, "before the region");
	expect_pattern(t, b->view + end, SIZE - end, which, end, "behind the region");
}

/* All of them are on so many devices, at last. */
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

/* -------------------------------------------------------------- who has the buffers */

static struct {
	uint32_t segment;	/* of a */
	uint8_t *bytes;		/* registered, SIZE bytes */
} other_buffer;

static void publish(struct test *t, uint32_t which, uint32_t segment)
{
	struct buffer *b = &buffers[which];
	int ret;

	if (!make_buffer(which)) {
		report_skip(names[which], "this machine has no huge pages");
		return;
	}
	fill_beside(which);
	fill(which, FIRST);
	if (which != HUGE_PAGES) {
		add_buffer(which, segment, which == TO_READ ? READ : ALL);
		let_go(which);
		return;
	}
	/* As of 6.12, the kernel maps them wrongly for those who ask as software
	 * devices must. Then they are refused; else all is as with the others.
	 */
	b->name = name_of(which);
	ret = rmpool_register_dmabuf(pool, b->fd, b->start, b->name, b->length, ALL, 0, segment,
				     PLACE(which), &b->region, NULL);
	b->there = !ret;
	if (ret) {
		expect(t, ret == -EOPNOTSUPP &&
		       rmpool_error_detail()->reason == RMPOOL_REASON_DMABUF_PAGES,
		       "%d: %s", ret, rmpool_error());
		printf("huge pages: %s\n", rmpool_error());
		test_end(t);
		munmap(b->view, SIZE);
	}
	let_go(which);
}

/* Its own puts from a buffer to the other host, and gets to it from there. */
static void use_locally(struct test *t, uint32_t which)
{
	struct buffer *b = &buffers[which];
	uint8_t *bytes = other_buffer.bytes;
	uint64_t from, length;
	void *name = b->name;
	int ret;

	/* what the buffer holds now; to be seen without its view */
	ret = rmpool_put(pool, other_buffer.segment, 0, name, b->length, LIMIT);
	expect(t, !ret, "own put: %s", rmpool_error());
	ret = rmpool_get(pool, other_buffer.segment, 0, bytes, b->length, LIMIT);
	expect(t, !ret, "get of it: %s", rmpool_error());
	expect_pattern(t, bytes, b->length, seed_of(b->view ? CHANGED : PUT, which), 0,
		       "what was put");
	pattern_fill(bytes, b->length, seed_of(GOT, which), 0);
	ret = rmpool_put(pool, other_buffer.segment, 0, bytes, b->length, LIMIT);
	expect(t, !ret, "put: %s", rmpool_error());
	ret = rmpool_get(pool, other_buffer.segment, 0, name, b->length, LIMIT);
	if (which == TO_READ)
		expect(t, ret == -EACCES, "own get to it: %d", ret);
	else
		expect(t, !ret, "own get: %s", rmpool_error());
	for (size_t i = 0; i < BESIDE; i++) {
		from = beside_from(&beside[i], b->length);
		length = beside_length(&beside[i], b->length);
		ret = rmpool_put(pool, other_buffer.segment, 0,
				 (void *)((uintptr_t)name + from), length, LIMIT);
		expect(t, ret == beside[i].local, "own put of %llu bytes at %lld: %d",
		       (unsigned long long)length, (long long)from, ret);
	}
	expect_seen(t, which == TO_READ ? CHANGED : GOT, which);
}

static void owner(void)
{
	struct test charged = { .name = "not charged to RLIMIT_MEMLOCK, but to the user" };
	struct test devices = { .name = "a device goes and comes back" };
	struct test closed = { .name = "all is given back" };
	struct rmpool_info info;
	struct test t[BUFFERS];
	uint32_t segment, i, region;
	struct seen seen;
	uint64_t least = 0;

	if (rmpool_publish(pool, "dmabuf", &segment))
		give_up("%s", rmpool_error());
	for (i = 0; i < BUFFERS; i++) {
		t[i] = (struct test){ .name = names[i] };
		publish(&t[i], i, segment);
		least += buffers[i].there ? buffers[i].length : 0;
	}
	seen = see_regions();
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&charged, seen.length == least && seen.fewest == DEVICES && seen.most == DEVICES,
	       "%llu bytes on %u to %u devices", (unsigned long long)seen.length, seen.fewest,
	       seen.most);
	expect(&charged, status_value("VmPin") == 0, "VmPin is %ld kB", status_value("VmPin"));
	expect(&charged, info.pinned >= least && info.pinned <= least + 2 * PAGE * seen.nr &&
	       info.user_pinned >= info.pinned && info.node_pinned >= info.user_pinned,
	       "%llu bytes, the user has %llu", (unsigned long long)info.pinned,
	       (unsigned long long)info.user_pinned);
	test_end(&charged);
	barrier("published");

	barrier("put");
	for (i = 0; i < BUFFERS; i++) {
		if (!buffers[i].there || !buffers[i].view)
			continue;
		expect_seen(&t[i], i == TO_READ ? FIRST : PUT, i);
		fill(i, CHANGED);
	}
	barrier("changed");

	barrier("got");
	if (rmpool_segment_open(pool, "a", "buffer", 60000, &other_buffer.segment, NULL))
		give_up("%s", rmpool_error());
	other_buffer.bytes = anonymous(SIZE);
	if (rmpool_register(pool, other_buffer.bytes, SIZE, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0,
			    &region, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < BUFFERS; i++) {
		if (!buffers[i].there)
			continue;
		use_locally(&t[i], i);
		test_end(&t[i]);
	}
	barrier("used");

	device("delete rxe1");
	expect(&devices, on_devices(1), "not on one device");
	barrier("one");
	barrier("one_done");
	device("add rxe1 type rxe netdev data1");
	expect(&devices, on_devices(DEVICES), "not on two devices");
	barrier("two");
	barrier("two_done");
	test_end(&devices);

	if (rmpool_unregister(pool, region))
		give_up("%s", rmpool_error());
	for (i = 0; i < BUFFERS; i++)
		expect(&closed, !buffers[i].there ||
		       !rmpool_unregister(pool, buffers[i].region), "%s: %s", names[i],
		       rmpool_error());
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&closed, !see_regions().nr && !info.pinned && status_value("VmPin") == 0,
	       "%llu bytes are left", (unsigned long long)info.pinned);
	test_end(&closed);
}

/* ------------------------------------------------------------------- the other */

static uint64_t length_of(uint32_t which)
{
	return which == WHOLE ? SIZE : LENGTH;
}

static void other(void)
{
	struct test devices = { .name = "a device of the other goes and comes back" };
	uint32_t access[BUFFERS] = { 0 }, i;
	struct test t[BUFFERS];

	far_begin(pool, SIZE);
	barrier("published");
	far_open("dmabuf", access, BUFFERS, length_of);
	for (i = 0; i < BUFFERS; i++) {
		t[i] = (struct test){ .name = names[i] };
		expect(&t[i], !access[i] ||
		       !(access[i] & RMPOOL_ACCESS_REMOTE_WRITE) == (i == TO_READ), "access %u",
		       access[i]);
		if (access[i])
			far_first_round(&t[i], i, length_of(i), access[i]);
		else
			report_skip(names[i], "the other host has none");
	}
	barrier("put");
	barrier("changed");
	for (i = 0; i < BUFFERS; i++) {
		if (!access[i])
			continue;
		far_get(&t[i], i, length_of(i), seed_of(i == FORGOTTEN ? PUT : CHANGED, i));
		test_end(&t[i]);
	}
	barrier("got");
	barrier("used");

	for (uint32_t round = 0; round < 2; round++) {
		barrier(round ? "two" : "one");
		for (i = 0; i < BUFFERS; i++) {
			if (access[i])
				far_get(&devices, i, length_of(i),
					seed_of(i == TO_READ ? CHANGED : GOT, i));
		}
		barrier(round ? "two_done" : "one_done");
	}
	test_end(&devices);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		give_up("dmabuf a|b");
	return two_parts(argv[1], &pool, owner, other);
}
