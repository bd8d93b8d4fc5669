// SPDX-License-Identifier: MIT
/*
 * ioctl_abuse: every ioctl of /dev/rmpool with what no sane program gives it.
 *
 * What all calls have in common (pointers, sizes, directions, fields that must
 * be zero) is driven by the table in calls.h; what values mean, by a list for
 * each call. Nothing may succeed that should not, nothing may be left pinned.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"
#include "report.h"

#define PAGE	4096UL
/* The largest size that an ioctl number can tell. */
#define SIZE_LIMIT ((1U << _IOC_SIZEBITS) - 1)
#define CANARY	0xa5

static int fd;
static uint8_t *page;		/* one page, an inaccessible one behind it */
static uint8_t *wide;		/* room for SIZE_LIMIT, and more */

static int call_fd(int file, unsigned int cmd, void *arg)
{
	return ioctl(file, cmd, arg) < 0 ? errno : 0;
}

static int call(unsigned int cmd, void *arg)
{
	return call_fd(fd, cmd, arg);
}

static unsigned int resized(unsigned int cmd, unsigned int size)
{
	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

/*
 * Fills in an argument that is well formed and does no more than fail with what
 * is returned here, or do nothing. The file has a ring and the segment "t".
 */
static int benign(const struct call *c, void *to)
{
	union {
		struct rmpool_ring_setup ring;
		struct rmpool_segment_create create;
		struct rmpool_region_add add;
		struct rmpool_segment_open open;
		struct rmpool_submit submit;
		struct rmpool_submit_sync sync;
		struct rmpool_region_add_many add_many;
		struct rmpool_region_del_many del_many;
		struct rmpool_wait wait;
		struct rmpool_handle handle;
	} arg;
	int result = ENOENT;

	memset(&arg, 0, sizeof(arg));
	switch (c->cmd) {
	case RMPOOL_IOC_INFO:
	case RMPOOL_IOC_CANCEL:
		result = 0;
		break;
	case RMPOOL_IOC_RING_SETUP:
		arg.ring.entries = 64;
		arg.ring.eventfd = -1;
		result = EBUSY;
		break;
	case RMPOOL_IOC_SEGMENT_CREATE:
		strcpy(arg.create.name, "t");
		result = EEXIST;
		break;
	case RMPOOL_IOC_REGION_ADD:
		arg.add.addr = PAGE;
		arg.add.length = PAGE;
		result = EFAULT;
		break;
	case RMPOOL_IOC_SEGMENT_OPEN:
		strcpy(arg.open.node, "nobody");
		strcpy(arg.open.name, "nothing");
		break;
	case RMPOOL_IOC_SUBMIT:
		arg.submit.nr = 1;
		result = EFAULT;
		break;
	case RMPOOL_IOC_SUBMIT_SYNC:
		arg.sync.nr = 1;
		result = EFAULT;
		break;
	case RMPOOL_IOC_REGION_ADD_MANY:
		arg.add_many.nr = 1;
		arg.add_many.size = sizeof(struct rmpool_region_add);
		result = EFAULT;
		break;
	case RMPOOL_IOC_REGION_DEL_MANY:
		arg.del_many.nr = 1;
		result = EFAULT;
		break;
	case RMPOOL_IOC_WAIT:
		arg.wait.min = 1;
		result = ETIME;
		break;
	}
	memcpy(to, &arg, _IOC_SIZE(c->cmd) < sizeof(arg) ?
			 _IOC_SIZE(c->cmd) : sizeof(arg));
	return result;
}

static uint64_t pinned_bytes(void)
{
	struct rmpool_info info = { .abi_version = 0 };

	if (call(RMPOOL_IOC_INFO, &info))
		give_up("INFO: %s", strerror(errno));
	return info.pinned;
}

/* ------------------------------------------------------- what all have in common */

static void test_pointers(const struct call *c)
{
	static const uintptr_t bad[] = {
		0, 1, PAGE - 1, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000,
		0xffff800000000000, 0xffffffff81000000, 0xfffffffffffff000,
		UINTPTR_MAX - 7, UINTPTR_MAX,
	};
	struct test t = { .name = c->name };
	unsigned int size = _IOC_SIZE(c->cmd);
	char name[64];
	size_t i;
	int ret, want;

	snprintf(name, sizeof(name), "%s: pointers", c->name);
	t.name = name;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ret = call(c->cmd, (void *)bad[i]);
		expect(&t, ret == EFAULT, "%s at 0x%zx", strerror(ret), bad[i]);
	}
	/* whole, at the very end of memory; then with its last byte beyond */
	for (i = 0; i < 8; i++) {
		want = benign(c, page + PAGE - size - i);
		ret = call(c->cmd, page + PAGE - size - i);
		expect(&t, ret == want, "misaligned by %zu: %s", i,
		       strerror(ret));
	}
	benign(c, wide);
	memcpy(page + PAGE - size + 1, wide, size - 1);
	ret = call(c->cmd, page + PAGE - size + 1);
	expect(&t, ret == EFAULT, "half beyond memory: %s", strerror(ret));

	benign(c, page);
	mprotect(page, PAGE, PROT_READ);
	ret = call(c->cmd, page);
	expect(&t, ret == EFAULT, "read-only: %s", strerror(ret));
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	test_end(&t);
}

static void test_numbers(const struct call *c)
{
	static const unsigned int dirs[] = { _IOC_NONE, _IOC_READ, _IOC_WRITE };
	unsigned int size = _IOC_SIZE(c->cmd), nr = _IOC_NR(c->cmd), i;
	struct test t = { .name = c->name };
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "%s: direction and type", c->name);
	t.name = name;
	for (i = 0; i < 3; i++) {
		benign(c, wide);
		ret = call(_IOC(dirs[i], RMPOOL_IOC_MAGIC, nr, size), wide);
		expect(&t, ret == ENOTTY, "direction %u: %s", dirs[i],
		       strerror(ret));
	}
	ret = call(_IOC(_IOC_READ | _IOC_WRITE, RMPOOL_IOC_MAGIC, nr, 0), wide);
	expect(&t, ret == ENOTTY, "size 0: %s", strerror(ret));
	ret = call(_IOC(_IOC_READ | _IOC_WRITE, RMPOOL_IOC_MAGIC ^ 1, nr, size),
		   wide);
	expect(&t, ret == ENOTTY, "other type: %s", strerror(ret));
	test_end(&t);
}

static void test_sizes(const struct call *c)
{
	static const unsigned int extra[] = { 1, 7, 8, 64, 1000, PAGE };
	unsigned int size = _IOC_SIZE(c->cmd), s, i, at;
	unsigned int first = (unsigned int)first_size(c->cmd);
	struct test t = { .name = c->name };
	char name[64];
	int ret, want;

	snprintf(name, sizeof(name), "%s: sizes", c->name);
	t.name = name;
	/* Smaller than the first version: refused, and nothing is written. */
	for (s = 1; s < first; s++) {
		memset(wide, 0, size);
		benign(c, wide);
		memset(wide + s, CANARY, size);
		ret = call(resized(c->cmd, s), wide);
		expect(&t, ret == EINVAL, "size %u: %s", s, strerror(ret));
		for (i = s; i < s + size; i++)
			expect(&t, wide[i] == CANARY,
			       "size %u: byte %u written", s, i);
	}
	/* An earlier version: taken, and no more than that is written. */
	for (s = first; s < size; s++) {
		memset(wide, 0, size);
		want = benign(c, wide);
		memset(wide + s, CANARY, size);
		ret = call(resized(c->cmd, s), wide);
		expect(&t, ret == want, "size %u: %s", s, strerror(ret));
		for (i = s; i < s + size; i++)
			expect(&t, wide[i] == CANARY,
			       "size %u: byte %u written", s, i);
	}
	/* Larger: zeros are taken and stay, others are refused. */
	for (i = 0; i < 7; i++) {
		s = i < 6 ? size + extra[i] : SIZE_LIMIT;
		memset(wide, 0, s);
		want = benign(c, wide);
		ret = call(resized(c->cmd, s), wide);
		expect(&t, ret == want, "size %u: %s", s, strerror(ret));
		for (at = size; at < s; at++)
			expect(&t, !wide[at], "size %u: byte %u written", s, at);
		for (at = size; at < s; at += s - size > 1 ? s - size - 1 : 1) {
			benign(c, wide);
			wide[at] = 1;
			ret = call(resized(c->cmd, s), wide);
			expect(&t, ret == E2BIG, "size %u, byte %u set: %s", s,
			       at, strerror(ret));
			wide[at] = 0;
		}
	}
	/* Larger, and the tail is not there. */
	benign(c, page + PAGE - size);
	ret = call(resized(c->cmd, size + 8), page + PAGE - size);
	expect(&t, ret == EFAULT, "no tail: %s", strerror(ret));
	test_end(&t);
}

static void test_zero_fields(const struct call *c)
{
	struct test t = { .name = c->name };
	uint8_t *arg = wide;
	unsigned int bit, i;
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "%s: flags and reserved fields", c->name);
	t.name = name;
	for (i = 0; i < ZERO_FIELDS_MAX && c->zero[i].size; i++) {
		for (bit = 0; bit < c->zero[i].size * 8; bit++) {
			if (bit < 32 && c->zero[i].allowed & 1U << bit)
				continue;
			memset(arg, 0, _IOC_SIZE(c->cmd));
			benign(c, arg);
			arg[c->zero[i].offset + bit / 8] |=
				(uint8_t)(1U << bit % 8);
			ret = call(c->cmd, arg);
			expect(&t, ret == EINVAL, "bit %u at offset %zu: %s",
			       bit, c->zero[i].offset, strerror(ret));
		}
	}
	test_end(&t);
}

/* What the caller left in an output field is not told as an answer. */
static void test_error_field(const struct call *c)
{
	struct test t = { .name = c->name };
	struct rmpool_error error;
	char name[64];

	if (c->error < 0)
		return;
	snprintf(name, sizeof(name), "%s: error is an answer", c->name);
	t.name = name;
	benign(c, wide);
	/* with a flag that is refused before anything is looked at */
	wide[c->zero[0].offset] = 0x80;
	memset(wide + c->error, 0xee, sizeof(error));
	call(c->cmd, wide);
	memcpy(&error, wide + c->error, sizeof(error));
	expect(&t, !error.reason && !error.reserved && !error.limit &&
	       !error.used && !error.need, "reason 0x%x", error.reason);
	test_end(&t);
}

/* The module knows these numbers and no others. */
static void test_table(void)
{
	struct test t = { .name = "the table of this test is complete" };
	unsigned int nr, i;
	int ret;
	bool known;

	for (nr = 0; nr < 256; nr++) {
		known = false;
		for (i = 0; i < NR_CALLS; i++)
			known |= _IOC_NR(calls[i].cmd) == nr;
		ret = call(_IOC(_IOC_READ | _IOC_WRITE, RMPOOL_IOC_MAGIC, nr,
				4), NULL);
		expect(&t, ret == (known ? EINVAL : ENOTTY), "number %u: %s",
		       nr, strerror(ret));
	}
	test_end(&t);
}

/* --------------------------------------------------------- what values mean */

static void test_ring_values(void)
{
	static const uint32_t entries[] = {
		0, 1, 4, 7, 9, 63, 65537, 1U << 17, 1U << 31, UINT32_MAX,
		(uint32_t)INT32_MIN + 8,
	};
	struct test t = { .name = "RING_SETUP: values" };
	struct rmpool_ring_setup arg;
	struct rmpool_wait wait = { .min = 1 };
	int file = open(RMPOOL_DEVICE_PATH, O_RDWR), pipes[2], ret;
	size_t i;

	if (file < 0 || pipe(pipes))
		give_up("open: %s", strerror(errno));
	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		memset(&arg, 0, sizeof(arg));
		arg.entries = entries[i];
		arg.eventfd = -1;
		ret = call_fd(file, RMPOOL_IOC_RING_SETUP, &arg);
		expect(&t, ret == EINVAL, "%u entries: %s", entries[i],
		       strerror(ret));
		expect(&t, arg.error.reason == RMPOOL_REASON_RING &&
		       arg.error.limit == RMPOOL_RING_MAX,
		       "%u entries: reason %u", entries[i], arg.error.reason);
	}
	for (i = 0; i < 4; i++) {
		const int32_t efd[] = { -2, INT32_MIN, 9999, pipes[0] };
		const int want[] = { EINVAL, EINVAL, EBADF, EINVAL };

		memset(&arg, 0, sizeof(arg));
		arg.entries = 64;
		arg.eventfd = efd[i];
		ret = call_fd(file, RMPOOL_IOC_RING_SETUP, &arg);
		expect(&t, ret == want[i], "eventfd %d: %s", efd[i],
		       strerror(ret));
	}
	ret = call_fd(file, RMPOOL_IOC_WAIT, &wait);
	expect(&t, ret == ENXIO, "a failed set-up left a ring: %s",
	       strerror(ret));
	memset(&arg, 0, sizeof(arg));
	arg.entries = RMPOOL_RING_MAX;
	arg.eventfd = eventfd(0, 0);
	ret = call_fd(file, RMPOOL_IOC_RING_SETUP, &arg);
	expect(&t, !ret, "the largest: %s", strerror(ret));
	close(arg.eventfd);
	ret = call_fd(file, RMPOOL_IOC_RING_SETUP, &arg);
	expect(&t, ret == EBUSY, "a second ring: %s", strerror(ret));
	close(file);
	close(pipes[0]);
	close(pipes[1]);
	test_end(&t);
}

static void test_names(void)
{
	static const char *const bad[] = {
		"", "/", "a/b", "a b", "\xff", "a\n", "caf\xe9", "a\\b", "%s", "*",
	};
	struct test t = { .name = "names" };
	struct rmpool_segment_create create;
	struct rmpool_segment_open open_arg;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]) + 2; i++) {
		memset(&create, 0, sizeof(create));
		memset(&open_arg, 0, sizeof(open_arg));
		strcpy(open_arg.node, "nobody");
		if (i < sizeof(bad) / sizeof(bad[0]))
			memcpy(create.name, bad[i], strlen(bad[i]));
		else if (i & 1)
			memset(create.name, 'a', sizeof(create.name));
		else	/* something behind the end */
			memcpy(create.name, "a\0b", 3);
		memcpy(open_arg.name, create.name, sizeof(create.name));
		ret = call(RMPOOL_IOC_SEGMENT_CREATE, &create);
		expect(&t, ret == EINVAL &&
		       create.error.reason == RMPOOL_REASON_NAME_BAD,
		       "create %zu: %s", i, strerror(ret));
		ret = call(RMPOOL_IOC_SEGMENT_OPEN, &open_arg);
		expect(&t, ret == EINVAL &&
		       open_arg.error.reason == RMPOOL_REASON_NAME_BAD,
		       "open %zu: %s", i, strerror(ret));
		memset(&open_arg, 0, sizeof(open_arg));
		memcpy(open_arg.node, create.name, sizeof(create.name));
		strcpy(open_arg.name, "nothing");
		ret = call(RMPOOL_IOC_SEGMENT_OPEN, &open_arg);
		expect(&t, ret == EINVAL &&
		       open_arg.error.reason == RMPOOL_REASON_NAME_BAD,
		       "open node %zu: %s", i, strerror(ret));
	}
	for (i = 0; i < 4; i++) {
		const int64_t timeout[] = { 0, INT64_MIN, INT64_MAX, -1 };

		memset(&open_arg, 0, sizeof(open_arg));
		strcpy(open_arg.node, "nobody");
		strcpy(open_arg.name, "nothing");
		open_arg.timeout_ns = timeout[i];
		ret = call(RMPOOL_IOC_SEGMENT_OPEN, &open_arg);
		expect(&t, ret == ENOENT &&
		       open_arg.error.reason == RMPOOL_REASON_PEER_UNKNOWN,
		       "unknown peer: %s", strerror(ret));
	}
	test_end(&t);
}

static void test_handles(void)
{
	static const uint32_t bad[] = {
		0, 77, 0xffff, INT32_MAX, 1U << 31, UINT32_MAX - 1, UINT32_MAX,
	};
	static const unsigned int cmds[] = {
		RMPOOL_IOC_SEGMENT_DELETE, RMPOOL_IOC_REGION_DEL,
		RMPOOL_IOC_SEGMENT_CLOSE,
	};
	struct test t = { .name = "handles" };
	struct rmpool_segment_list list;
	size_t i, k;
	int ret;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (k = 0; k < 3; k++) {
			struct rmpool_handle h = { .handle = bad[i] };

			ret = call(cmds[k], &h);
			expect(&t, ret == ENOENT, "handle %u, call %zu: %s",
			       bad[i], k, strerror(ret));
		}
		memset(&list, 0, sizeof(list));
		list.handle = bad[i];
		list.nr = UINT32_MAX;
		list.first = UINT32_MAX;
		ret = call(RMPOOL_IOC_SEGMENT_LIST, &list);
		expect(&t, ret == ENOENT, "list %u: %s", bad[i], strerror(ret));
	}
	test_end(&t);
}

static void test_regions(uint32_t segment)
{
	const uint64_t top = 0x7ffffffff000;
	const uint64_t here = (uintptr_t)page;
	const struct {
		uint64_t addr, length, offset;
		uint32_t segment, access;
		int err;
		uint32_t reason;
	} bad[] = {
		{ here, 0, 0, 0, 0, EINVAL, RMPOOL_REASON_LENGTH_ZERO },
		{ 0, 1, 0, 0, 0, EFAULT, RMPOOL_REASON_UNMAPPED },
		{ UINT64_MAX, 1, 0, 0, 0, EINVAL, RMPOOL_REASON_RANGE_WRAPS },
		{ here, UINT64_MAX, 0, 0, 0, EINVAL,
		  RMPOOL_REASON_RANGE_WRAPS },
		{ here, UINT64_MAX - here, 0, 0, 0, EFAULT,
		  RMPOOL_REASON_UNMAPPED },
		{ here, 1ULL << 63, 0, 0, 0, EFAULT, RMPOOL_REASON_UNMAPPED },
		{ top, PAGE, 0, 0, 0, EFAULT, RMPOOL_REASON_UNMAPPED },
		{ top - 1, 2, 0, 0, 0, EFAULT, RMPOOL_REASON_UNMAPPED },
		{ 0xffff888000000000, PAGE, 0, 0, 7, EFAULT,
		  RMPOOL_REASON_UNMAPPED },
		{ 0x800000000000, PAGE, 0, 0, 0, EFAULT,
		  RMPOOL_REASON_UNMAPPED },
		{ here, PAGE + 1, 0, 0, 0, EFAULT, RMPOOL_REASON_UNMAPPED },
		{ here, PAGE, 1, 0, 0, EINVAL, 0 },
		{ here, PAGE, RMPOOL_OFFSET_NEXT, 0, 0, EINVAL, 0 },
		{ here, PAGE, 0, 99, 0, ENOENT, 0 },
		{ here, PAGE, 0, UINT32_MAX, 0, ENOENT, 0 },
		{ here, PAGE, 0, segment, 8, EINVAL, 0 },
		{ here, PAGE, 0, segment, 1U << 31, EINVAL, 0 },
		/* 0 to 63 is taken */
		{ here, PAGE, 63, segment, 0, EEXIST,
		  RMPOOL_REASON_OFFSET_TAKEN },
		{ here, PAGE, UINT64_MAX - 1, segment, 0, EINVAL,
		  RMPOOL_REASON_RANGE_WRAPS },
		{ here, PAGE, UINT64_MAX - PAGE + 1, segment, 0, EINVAL,
		  RMPOOL_REASON_RANGE_WRAPS },
	};
	struct test t = { .name = "REGION_ADD: values" };
	struct rmpool_region_add add = {
		.addr = here, .length = 64, .segment = segment,
		.access = RMPOOL_ACCESS_ALL,
	};
	struct rmpool_handle h = { .flags = 0 };
	size_t i;
	int ret;

	ret = call(RMPOOL_IOC_REGION_ADD, &add);
	expect(&t, !ret, "a good one: %s", strerror(ret));
	h.handle = add.handle;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&add, 0, sizeof(add));
		add.addr = bad[i].addr;
		add.length = bad[i].length;
		add.offset = bad[i].offset;
		add.segment = bad[i].segment;
		add.access = bad[i].access;
		ret = call(RMPOOL_IOC_REGION_ADD, &add);
		expect(&t, ret == bad[i].err && add.error.reason == bad[i].reason,
		       "%zu: %s, reason %u", i, strerror(ret),
		       add.error.reason);
		expect(&t, !add.handle, "%zu: handle %u", i, add.handle);
		expect(&t, pinned_bytes() == PAGE, "%zu: pins left", i);
	}
	/* The answer cannot be written: nothing may be registered. */
	memcpy(page, &(struct rmpool_region_add){ .addr = (uintptr_t)wide,
						  .length = PAGE },
	       sizeof(struct rmpool_region_add));
	mprotect(page, PAGE, PROT_READ);
	ret = call(RMPOOL_IOC_REGION_ADD, page);
	expect(&t, ret == EFAULT, "read-only argument: %s", strerror(ret));
	expect(&t, pinned_bytes() == PAGE, "read-only argument: registered");
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	ret = call(RMPOOL_IOC_REGION_DEL, &h);
	expect(&t, !ret, "unregister: %s", strerror(ret));
	ret = call(RMPOOL_IOC_REGION_DEL, &h);
	expect(&t, ret == ENOENT, "unregister twice: %s", strerror(ret));
	test_end(&t);
}

/* Descriptors that are none of a dma-buf; tests/programs/dmabuf.c has some that are. */
static void test_descriptors(void)
{
	const struct {
		int32_t fd;
		int err;
	} bad[] = {
		{ -1, EBADF }, { INT32_MIN, EBADF }, { INT32_MAX, EBADF }, { 987654, EBADF },
		{ fd, EINVAL }, { open("/dev/null", O_RDWR), EINVAL },
		{ open("/", O_PATH), EBADF },
	};
	struct test t = { .name = "REGION_ADD: descriptors" };
	uint32_t kind;
	size_t i;
	int ret;

	for (i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		struct rmpool_region_add add = {
			.addr = (uintptr_t)page, .length = PAGE,
			.flags = RMPOOL_REGION_DMABUF |
				 (i % 2 ? RMPOOL_REGION_STRICT_ORDER : 0),
			.dmabuf_fd = bad[i / 2].fd,
			.dmabuf_offset = i % 2 ? UINT64_MAX : 0,
		};

		ret = call(RMPOOL_IOC_REGION_ADD, &add);
		kind = add.error.reason;
		/* Of a kernel that has none, it is not even looked at. */
		if (ret == EOPNOTSUPP && kind == RMPOOL_REASON_DMABUF_NONE)
			continue;
		expect(&t, ret == bad[i / 2].err && kind == RMPOOL_REASON_DMABUF_FD &&
		       add.error.need == (uint32_t)bad[i / 2].fd && !add.handle,
		       "%d: %s, reason %u", bad[i / 2].fd, strerror(ret), kind);
		expect(&t, !pinned_bytes(), "%d: pins left", bad[i / 2].fd);
	}
	close(bad[5].fd);
	close(bad[6].fd);
	test_end(&t);
}

/* How many of the elements are regions; unregisters them. */
static uint32_t give_back(const struct rmpool_region_add *add, uint32_t nr)
{
	struct rmpool_handle h = { .flags = 0 };
	uint32_t good = 0, i;

	for (i = 0; i < nr; i++) {
		h.handle = add[i].handle;
		good += h.handle && !call(RMPOOL_IOC_REGION_DEL, &h);
	}
	return good;
}

static int add_many(void *array, uint32_t nr, uint32_t size,
		    struct rmpool_region_add_many *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->regions = (uintptr_t)array;
	arg->nr = nr;
	arg->size = size;
	arg->tried = 77;	/* not ours to tell */
	arg->failed = 77;
	return call(RMPOOL_IOC_REGION_ADD_MANY, arg);
}

/* @nr elements for a page each, of @size bytes; what is told is 0xee before. */
static void make_elements(uint8_t *array, uint32_t nr, uint32_t size)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct rmpool_region_add add = {
			.addr = (uintptr_t)wide + (i & 63) * PAGE,
			.length = PAGE, .handle = 99, .status = 99,
		};

		memset(&add.error, 0xee, sizeof(add.error));
		memset(array + (size_t)i * size, 0, size);
		memcpy(array + (size_t)i * size, &add,
		       size < sizeof(add) ? size : sizeof(add));
	}
}

static void test_add_many(uint32_t segment)
{
	static const uint32_t nrs[] = { 0, RMPOOL_BATCH_MAX + 1, 1U << 31, UINT32_MAX };
	const uint32_t size = sizeof(struct rmpool_region_add);
	const uint32_t first = (uint32_t)first_size(RMPOOL_IOC_REGION_ADD);
	const uint32_t sizes[] = { 0, 1, first - 1, (uint32_t)PAGE + 1, UINT32_MAX };
	struct test t = { .name = "REGION_ADD_MANY: values" };
	struct rmpool_region_add *add = (void *)(wide + 64 * PAGE);
	struct rmpool_region_add_many arg, *last;
	uint8_t *end = page + PAGE;
	uint32_t i;
	int ret;

	for (i = 0; i < 4; i++) {
		ret = add_many(add, nrs[i], size, &arg);
		expect(&t, ret == (i ? E2BIG : EINVAL) && !arg.tried && !arg.failed &&
		       arg.error.reason == (i ? RMPOOL_REASON_BATCH : 0U),
		       "%u elements: %s", nrs[i], strerror(ret));
	}
	make_elements((uint8_t *)add, 1, size);
	for (i = 0; i < 5; i++) {
		ret = add_many(add, 1, sizes[i], &arg);
		expect(&t, ret == (i < 3 ? EINVAL : E2BIG) && !arg.tried,
		       "elements of %u bytes: %s", sizes[i], strerror(ret));
	}

	/* Good and bad ones, each with a result of its own. */
	make_elements((uint8_t *)add, 8, size);
	add[1].length = 0;
	add[2].flags = 1U << 31;
	add[3].access = 8;
	add[4].segment = 9999;
	add[5].addr = PAGE;
	add[6].segment = segment;
	add[6].offset = RMPOOL_OFFSET_NEXT;
	ret = add_many(add, 8, size, &arg);
	expect(&t, !ret && arg.tried == 8 && arg.failed == 5,
	       "eight: %s, %u tried, %u failed", strerror(ret), arg.tried, arg.failed);
	for (i = 0; i < 8; i++) {
		static const int want[] = { 0, EINVAL, EINVAL, EINVAL, ENOENT, EFAULT, 0, 0 };
		uint32_t reason = i == 1 ? RMPOOL_REASON_LENGTH_ZERO :
				  i == 5 ? RMPOOL_REASON_UNMAPPED : 0;

		expect(&t, add[i].status == -want[i] && !add[i].handle == !!want[i] &&
		       add[i].error.reason == reason && !add[i].error.reserved,
		       "element %u: %d, handle %u, reason %u", i, add[i].status,
		       add[i].handle, add[i].error.reason);
	}
	expect(&t, add[6].offset != RMPOOL_OFFSET_NEXT && pinned_bytes() == 3 * PAGE,
	       "offset not told, or %llu bytes pinned", (unsigned long long)pinned_bytes());
	expect(&t, give_back(add, 8) == 3 && !pinned_bytes(), "pins left");

	/* Those of the first version, behind each other. */
	make_elements((uint8_t *)add, 2, first);
	ret = add_many(add, 2, first, &arg);
	expect(&t, !ret && arg.tried == 2 && !arg.failed && pinned_bytes() == 2 * PAGE,
	       "first version: %s, %u tried", strerror(ret), arg.tried);
	give_back(add, 1);
	give_back((void *)((uint8_t *)add + first), 1);

	/* Larger elements: zeros are taken and stay, others end the call. */
	make_elements((uint8_t *)add, 3, size + 8);
	*((uint8_t *)add + (size_t)3 * (size + 8) - 1) = 1;
	ret = add_many(add, 3, size + 8, &arg);
	expect(&t, !ret && arg.tried == 2 && !arg.failed && pinned_bytes() == 2 * PAGE,
	       "larger elements: %s, %u tried", strerror(ret), arg.tried);
	give_back(add, 1);
	give_back((void *)((uint8_t *)add + size + 8), 1);
	ret = add_many((uint8_t *)add + (size_t)2 * (size + 8), 1, size + 8, &arg);
	expect(&t, ret == E2BIG && !arg.tried && !pinned_bytes(),
	       "an unknown byte: %s", strerror(ret));

	/* Half of the array is there. */
	make_elements(end - (size_t)2 * size, 2, size);
	ret = add_many(end - (size_t)2 * size, 3, size, &arg);
	expect(&t, !ret && arg.tried == 2 && !arg.failed, "half an array: %s, %u tried",
	       strerror(ret), arg.tried);
	memcpy(add, end - (size_t)2 * size, (size_t)2 * size);
	expect(&t, give_back(add, 2) == 2 && !pinned_bytes(), "pins left");
	ret = add_many(end - size + 1, 2, size, &arg);
	expect(&t, ret == EFAULT && !arg.tried, "half an element: %s", strerror(ret));

	/* Results that cannot be told: undone. */
	make_elements(page, 1, size);
	mprotect(page, PAGE, PROT_READ);
	ret = add_many(page, 1, size, &arg);
	expect(&t, ret == EFAULT && !arg.tried && !pinned_bytes(),
	       "a read-only array: %s", strerror(ret));
	/* That of the call cannot: they are in the array. */
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	make_elements((uint8_t *)add, 2, size);
	last = (void *)page;
	memset(last, 0, sizeof(*last));
	last->regions = (uintptr_t)add;
	last->nr = 2;
	last->size = size;
	mprotect(page, PAGE, PROT_READ);
	ret = call(RMPOOL_IOC_REGION_ADD_MANY, last);
	expect(&t, ret == EFAULT && give_back(add, 2) == 2 && !pinned_bytes(),
	       "a read-only argument: %s", strerror(ret));
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);

	/* The most, over the same pages. */
	make_elements((uint8_t *)add, RMPOOL_BATCH_MAX, size);
	ret = add_many(add, RMPOOL_BATCH_MAX, size, &arg);
	expect(&t, !ret && arg.tried == RMPOOL_BATCH_MAX && !arg.failed,
	       "the most: %s, %u tried, %u failed", strerror(ret), arg.tried, arg.failed);
	test_end(&t);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the module writes @status */
static int del_many(const uint32_t *handles, int32_t *status, uint32_t nr,
		    struct rmpool_region_del_many *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->handles = (uintptr_t)handles;
	arg->status = (uintptr_t)status;
	arg->nr = nr;
	arg->tried = 77;
	arg->failed = 77;
	return call(RMPOOL_IOC_REGION_DEL_MANY, arg);
}

/* Ends what test_add_many() made last. */
static void test_del_many(void)
{
	static const uint32_t nrs[] = { 0, RMPOOL_BATCH_MAX + 1, UINT32_MAX };
	static uint32_t handles[RMPOOL_BATCH_MAX];
	static int32_t status[RMPOOL_BATCH_MAX];
	const struct rmpool_region_add *add = (void *)(wide + 64 * PAGE);
	struct test t = { .name = "REGION_DEL_MANY: values" };
	struct rmpool_region_del_many arg;
	uint32_t *end = (void *)(page + PAGE), i;
	int ret;

	for (i = 0; i < RMPOOL_BATCH_MAX; i++)
		handles[i] = add[i].handle;
	for (i = 0; i < 3; i++) {
		ret = del_many(handles, status, nrs[i], &arg);
		expect(&t, ret == (i ? E2BIG : EINVAL) && !arg.tried && !arg.failed,
		       "%u elements: %s", nrs[i], strerror(ret));
	}
	/* One twice, and what was never there. */
	memcpy(end - 4, (uint32_t[4]){ handles[0], 0, handles[0], UINT32_MAX }, 16);
	memset(status, 0x55, sizeof(status));
	ret = del_many(end - 4, status, 4, &arg);
	expect(&t, !ret && arg.tried == 4 && arg.failed == 3 && !status[0] &&
	       status[1] == -ENOENT && status[2] == -ENOENT && status[3] == -ENOENT &&
	       status[4] == 0x55555555, "unknown ones: %s, %u failed", strerror(ret),
	       arg.failed);
	end[-1] = handles[1];
	ret = del_many(end - 1, status, 2, &arg);
	expect(&t, ret == EFAULT && !arg.tried &&
	       pinned_bytes() == (RMPOOL_BATCH_MAX - 1) * PAGE,
	       "half an array: %s, %u tried", strerror(ret), arg.tried);
	ret = del_many(handles + 1, (int32_t *)end - 1, 2, &arg);
	expect(&t, ret == EFAULT && arg.tried == 2 && !arg.failed &&
	       pinned_bytes() == (RMPOOL_BATCH_MAX - 3) * PAGE,
	       "nowhere to tell: %s, %u tried", strerror(ret), arg.tried);
	ret = del_many(handles, NULL, RMPOOL_BATCH_MAX, &arg);
	expect(&t, !ret && arg.tried == RMPOOL_BATCH_MAX && arg.failed == 3 &&
	       !pinned_bytes(), "all: %s, %u failed", strerror(ret), arg.failed);
	test_end(&t);
}

static int allow(uint32_t segment, const void *entries, uint32_t nr, uint32_t size,
		 struct rmpool_segment_allow *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->entries = (uintptr_t)entries;
	arg->handle = segment;
	arg->nr = nr;
	arg->size = size;
	arg->flags = RMPOOL_ALLOW_LIST;
	arg->rekeyed = 77;
	arg->lost = 77;
	return call(RMPOOL_IOC_SEGMENT_ALLOW, arg);
}

/* Who may open a segment: nobody wants to, so nothing is to be taken back. */
static void test_allow(uint32_t segment)
{
	static const char bad[][RMPOOL_NAME_MAX] = {
		"", "a/b", "**", "* ", "*\0x", "a\0x", "\xe9",
		"0123456789012345678901234567890123456789012345678901234567890123",
	};
	struct test t = { .name = "SEGMENT_ALLOW: values" };
	const uint32_t one = sizeof(struct rmpool_allow_entry);
	struct rmpool_allow_entry *e = (void *)wide;
	struct rmpool_segment_allow arg;
	uint32_t i;
	int ret;

	memset(e, 0, (RMPOOL_ALLOW_MAX + 1) * sizeof(*e));
	for (i = 0; i <= RMPOOL_ALLOW_MAX; i++) {
		snprintf(e[i].peer, sizeof(e[i].peer), "peer%u", i);
		e[i].access = i % 4 << 1;
	}
	ret = allow(segment, e, RMPOOL_ALLOW_MAX, one, &arg);
	expect(&t, !ret && !arg.rekeyed && !arg.lost, "the most: %s", strerror(ret));
	ret = allow(segment, e, RMPOOL_ALLOW_MAX + 1, one, &arg);
	expect(&t, ret == E2BIG && arg.error.reason == RMPOOL_REASON_BATCH &&
	       arg.error.limit == RMPOOL_ALLOW_MAX, "one more: %s", strerror(ret));
	ret = allow(segment, e, UINT32_MAX, one, &arg);
	expect(&t, ret == E2BIG, "very many: %s", strerror(ret));
	ret = allow(segment, e, 2, one - 1, &arg);
	expect(&t, ret == EINVAL, "small elements: %s", strerror(ret));
	ret = allow(segment, e, 2, PAGE + 1, &arg);
	expect(&t, ret == E2BIG, "large elements: %s", strerror(ret));
	/* Larger ones of a later version: what is not known must be zero. */
	memset(e, 0, 4UL * one);
	memcpy(e[0].peer, "a", 2);
	memcpy((char *)e + one + 8, "b", 2);
	ret = allow(segment, e, 2, one + 8, &arg);
	expect(&t, !ret, "zeros behind: %s", strerror(ret));
	((uint8_t *)e)[one + 7] = 1;
	ret = allow(segment, e, 2, one + 8, &arg);
	expect(&t, ret == E2BIG && !arg.error.need, "something behind: %s", strerror(ret));

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(e, 0, 2UL * one);
		memcpy(e[0].peer, "*", 2);
		memcpy(e[1].peer, bad[i], RMPOOL_NAME_MAX);
		ret = allow(segment, e, 2, one, &arg);
		expect(&t, ret == EINVAL && arg.error.need == 1 &&
		       arg.error.reason == RMPOOL_REASON_NAME_BAD, "name %u: %s", i,
		       strerror(ret));
	}
	memset(e[1].peer, 0, sizeof(e[1].peer));
	memcpy(e[1].peer, "*", 2);
	ret = allow(segment, e, 2, one, &arg);
	expect(&t, ret == EEXIST && arg.error.need == 1 &&
	       arg.error.reason == RMPOOL_REASON_NAME_TAKEN, "twice: %s", strerror(ret));
	for (i = 0; i < 32; i++) {
		e[0].access = 1U << i;
		ret = allow(segment, e, 1, one, &arg);
		expect(&t, ret == (i == 1 || i == 2 ? 0 : EINVAL), "access 0x%x: %s",
		       e[0].access, strerror(ret));
	}
	e[0].access = 0;
	e[0].reserved = 1;
	ret = allow(segment, e, 1, one, &arg);
	expect(&t, ret == EINVAL, "reserved: %s", strerror(ret));
	e[0].reserved = 0;
	ret = allow(segment, page + PAGE - one, 2, one, &arg);
	expect(&t, ret == EINVAL || ret == EFAULT, "half an array: %s", strerror(ret));
	memcpy(page + PAGE - one, e, one);
	ret = allow(segment, page + PAGE - one, 2, one, &arg);
	expect(&t, ret == EFAULT && arg.error.need == 1, "half an array: %s", strerror(ret));
	ret = allow(segment, NULL, 0, 0, &arg);
	expect(&t, !ret, "nobody: %s", strerror(ret));
	ret = allow(segment + 1, e, 1, one, &arg);
	expect(&t, ret == ENOENT, "no such segment: %s", strerror(ret));
	memset(&arg, 0, sizeof(arg));
	arg.handle = segment;
	arg.nr = 1;
	arg.size = one;
	arg.entries = (uintptr_t)e;
	ret = call(RMPOOL_IOC_SEGMENT_ALLOW, &arg);
	expect(&t, ret == EINVAL, "entries without a list: %s", strerror(ret));
	arg.nr = 0;
	ret = call(RMPOOL_IOC_SEGMENT_ALLOW, &arg);
	expect(&t, !ret, "everybody: %s", strerror(ret));
	test_end(&t);
}

static void test_waits(void)
{
	static const struct rmpool_wait bad[] = {
		{ .min = 0 }, { .min = 65 }, { .min = UINT32_MAX },
		{ .min = 1U << 31, .timeout_ns = INT64_MAX },
	};
	struct test t = { .name = "WAIT, CANCEL: values" };
	struct rmpool_cancel cancel = { .cookie = UINT64_MAX };
	struct rmpool_wait arg;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		arg = bad[i];
		ret = call(RMPOOL_IOC_WAIT, &arg);
		expect(&t, ret == EINVAL, "min %u: %s", bad[i].min,
		       strerror(ret));
	}
	memset(&arg, 0, sizeof(arg));
	arg.min = 64;
	arg.timeout_ns = 1;
	ret = call(RMPOOL_IOC_WAIT, &arg);
	expect(&t, ret == ETIME && !arg.timeout_ns, "1 ns: %s", strerror(ret));
	ret = call(RMPOOL_IOC_CANCEL, &cancel);
	expect(&t, !ret && !cancel.cancelled, "cancel: %s", strerror(ret));
	test_end(&t);
}

static void test_batches(volatile uint32_t *head, const volatile uint32_t *tail,
			 const struct rmpool_completion *entries)
{
	struct test t = { .name = "SUBMIT, SUBMIT_SYNC: values" };
	struct rmpool_request *r = (void *)wide;
	static struct rmpool_completion results[RMPOOL_BATCH_MAX];
	struct rmpool_submit_sync sync;
	struct rmpool_submit submit;
	const uint32_t nrs[] = { 0, RMPOOL_BATCH_MAX + 1, 1U << 31, UINT32_MAX };
	const int want[] = { EINVAL, E2BIG, E2BIG, E2BIG };
	uint32_t i, start = *tail;
	int ret;

	for (i = 0; i < 4; i++) {
		memset(&submit, 0, sizeof(submit));
		memset(&sync, 0, sizeof(sync));
		submit.requests = sync.requests = (uintptr_t)r;
		sync.results = (uintptr_t)results;
		submit.nr = sync.nr = nrs[i];
		ret = call(RMPOOL_IOC_SUBMIT, &submit);
		expect(&t, ret == want[i], "submit %u: %s", nrs[i],
		       strerror(ret));
		ret = call(RMPOOL_IOC_SUBMIT_SYNC, &sync);
		expect(&t, ret == want[i], "sync %u: %s", nrs[i],
		       strerror(ret));
		expect(&t, !nrs[i] ||
		       (sync.error.reason == RMPOOL_REASON_BATCH &&
			submit.error.reason == RMPOOL_REASON_BATCH &&
			sync.error.limit == RMPOOL_BATCH_MAX),
		       "%u: reason %u", nrs[i], sync.error.reason);
	}

	/* Sixteen bad requests, each with a result of its own. */
	memset(r, 0, 16 * sizeof(*r));
	for (i = 0; i < 16; i++) {
		r[i].op = RMPOOL_OP_PUT;
		r[i].cookie = i;
		r[i].local_addr = (uintptr_t)page;
		r[i].length = UINT64_MAX;
	}
	r[0].op = 0;
	r[1].op = 3;
	r[2].op = 255;
	r[3].prio = 3;
	r[4].prio = 255;
	r[5].flags = RMPOOL_REQUEST_REGISTER << 1;
	r[6].flags = 0x8000 | RMPOOL_REQUEST_REGISTER;
	for (i = 0; i < 5; i++)
		r[7 + i].reserved[i] = 1U << (7 * i);
	r[12].segment = 0;
	r[13].segment = UINT32_MAX;
	r[13].flags = RMPOOL_REQUEST_REGISTER;
	r[14].length = 0;
	r[14].segment = 5;
	r[15].timeout_ms = UINT32_MAX;
	memset(&sync, 0, sizeof(sync));
	sync.requests = (uintptr_t)r;
	sync.results = (uintptr_t)results;
	sync.nr = 16;
	sync.timeout_ns = INT64_MIN;
	memset(results, CANARY, sizeof(results));
	ret = call(RMPOOL_IOC_SUBMIT_SYNC, &sync);
	expect(&t, !ret && sync.failed == 16, "sync: %s, %u failed",
	       strerror(ret), sync.failed);
	memset(&submit, 0, sizeof(submit));
	submit.requests = (uintptr_t)r;
	submit.nr = 16;
	ret = call(RMPOOL_IOC_SUBMIT, &submit);
	expect(&t, !ret && submit.accepted == 16 && *tail - start == 16,
	       "submit: %s, %u accepted, %u completions", strerror(ret),
	       submit.accepted, *tail - start);
	for (i = 0; i < 16; i++) {
		const struct rmpool_completion *c = &entries[(start + i) & 63];
		int status = i < 12 ? -EINVAL : -EBADF;

		expect(&t, c->cookie == i && c->status == status && !c->bytes &&
		       c->rail == RMPOOL_RAIL_NONE, "request %u: status %d", i,
		       c->status);
		expect(&t, results[i].cookie == i &&
		       results[i].status == status, "sync request %u: status %d",
		       i, results[i].status);
	}
	*head = *tail;

	/* Arrays that are not there, or end too early. */
	memset(&sync, 0, sizeof(sync));
	sync.requests = (uintptr_t)r;
	sync.nr = 16;
	ret = call(RMPOOL_IOC_SUBMIT_SYNC, &sync);
	expect(&t, ret == EFAULT, "no results: %s", strerror(ret));
	start = *tail;
	for (i = 0; i < 3; i++) {
		uint64_t at[] = { 8, UINT64_MAX - 63, 0xffff888000000000 };

		memset(&submit, 0, sizeof(submit));
		submit.requests = at[i];
		submit.nr = 64;
		submit.accepted = 7;	/* not ours to tell */
		ret = call(RMPOOL_IOC_SUBMIT, &submit);
		expect(&t, ret == EFAULT && !submit.accepted,
		       "requests at 0x%llx: %s", (unsigned long long)at[i],
		       strerror(ret));
	}
	expect(&t, *tail == start, "completions of nothing");
	/* No slot of the ring was lost by that: 64 more fit, and no 65th. */
	submit.requests = (uintptr_t)r;
	for (i = 0; i < 4; i++) {
		submit.nr = 16;
		submit.accepted = 0;
		ret = call(RMPOOL_IOC_SUBMIT, &submit);
		expect(&t, !ret && submit.accepted == 16, "round %u: %s", i,
		       strerror(ret));
	}
	ret = call(RMPOOL_IOC_SUBMIT, &submit);
	expect(&t, ret == EAGAIN && submit.error.reason == RMPOOL_REASON_RING,
	       "a full ring: %s", strerror(ret));

	/* A reader's counter that makes no sense loses nothing but entries. */
	for (i = 0; i < 8; i++) {
		*head = start + (1U << (4 * i)) + i;
		submit.nr = 1;
		ret = call(RMPOOL_IOC_SUBMIT, &submit);
		expect(&t, !ret || ret == EAGAIN, "head %u: %s", *head,
		       strerror(ret));
	}
	*head = *tail;
	submit.nr = 16;
	ret = call(RMPOOL_IOC_SUBMIT, &submit);
	expect(&t, !ret && submit.accepted == 16, "afterwards: %s",
	       strerror(ret));
	*head = *tail;
	test_end(&t);
}

int main(void)
{
	struct rmpool_segment_create create = { .name = "t" };
	struct rmpool_ring_setup ring = { .entries = 64, .eventfd = -1 };
	struct rmpool_wait wait = { .min = 1 };
	struct rmpool_submit submit = { .nr = 1 };
	uint8_t *map;
	size_t i;

	fd = open(RMPOOL_DEVICE_PATH, O_RDWR);
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wide = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || page == MAP_FAILED || wide == MAP_FAILED ||
	    mprotect(page + PAGE, PAGE, PROT_NONE))
		give_up("cannot begin: %s", strerror(errno));

	test_table();
	if (call(RMPOOL_IOC_WAIT, &wait) == ENXIO &&
	    call(RMPOOL_IOC_SUBMIT, &submit) == ENXIO)
		report_ok("no ring yet: ENXIO");
	else
		report_not_ok("no ring yet: ENXIO", "%s", strerror(errno));
	if (call(RMPOOL_IOC_RING_SETUP, &ring) ||
	    call(RMPOOL_IOC_SEGMENT_CREATE, &create))
		give_up("set-up: %s", strerror(errno));
	map = mmap(NULL, ring.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)ring.mmap_offset);
	if (map == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));

	for (i = 0; i < NR_CALLS; i++) {
		test_pointers(&calls[i]);
		test_numbers(&calls[i]);
		test_sizes(&calls[i]);
		if (calls[i].zero[0].size)
			test_zero_fields(&calls[i]);
		test_error_field(&calls[i]);
	}
	test_ring_values();
	test_names();
	test_handles();
	test_regions(create.handle);
	test_descriptors();
	test_add_many(create.handle);
	test_del_many();
	test_allow(create.handle);
	test_waits();
	test_batches((void *)(map + ring.head_offset),
		     (void *)(map + ring.tail_offset),
		     (void *)(map + ring.entries_offset));
	return report_failed != 0;
}
