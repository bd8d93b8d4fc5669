// SPDX-License-Identifier: MIT
/*
 * Opening the pool, memory, and segments: what the library passes to the
 * module, and what it makes of the answers.
 */
#include "fake_module.h"

/* ------------------------------------------------------------------ opening */

static int not_a_pool(unsigned long command, void *arg)
{
	(void)command;
	(void)arg;
	return -ENOTTY;
}

static int newer_module(unsigned long command, void *arg)
{
	answer_info(command, arg);
	((struct rmpool_info *)arg)->abi_version = RMPOOL_ABI_VERSION + 1;
	return 0;
}

static unsigned int open_files(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void opens_and_closes(void **state)
{
	struct rmpool *pool;
	unsigned int before = open_files();

	(void)state;
	pool = open_pool();
	assert_int_equal(open_files(), before + 1);
	assert_true(fcntl(rmpool_fd(pool), F_GETFD) & FD_CLOEXEC);
	rmpool_close(pool);
	rmpool_close(NULL);
	assert_int_equal(open_files(), before);
}

static void tells_why_it_cannot_open(void **state)
{
	unsigned int before = open_files();
	struct rmpool *pool = (void *)1;

	(void)state;
	answer = answer_info;
	assert_int_equal(rmpool_open(&pool, "/nonexistent/rmpool", 0), -ENOENT);
	assert_null(pool);
	says("modprobe rmpool");
	says("/nonexistent/rmpool");
	assert_int_equal(rmpool_open(&pool, path, 1), -EINVAL);
	says("flags");

	answer = not_a_pool;
	assert_int_equal(rmpool_open(&pool, path, 0), -ENOTTY);
	says("not the device of rmpool");
	answer = newer_module;
	assert_int_equal(rmpool_open(&pool, path, 0), -EPROTONOSUPPORT);
	says("interface version 2, this library needs 1");
	assert_null(pool);
	assert_int_equal(open_files(), before);
}

static void names_the_group(void **state)
{
	char file[] = "/tmp/rmpool-test-XXXXXX";
	struct rmpool *pool;
	int fd = mkstemp(file);
	int ret;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0660), 0);
	close(fd);
	answer = answer_info;
	if (geteuid() == 0) {
		/* Root may open everything: become somebody else for a moment. */
		assert_int_equal(chown(file, 0, 0), 0);
		assert_int_equal(setegid(65534), 0);
		assert_int_equal(seteuid(65534), 0);
		ret = rmpool_open(&pool, file, 0);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(chown(file, 0, 1), 0);
		assert_int_equal(seteuid(65534), 0);
		says("it is for root, mode 0660: install the udev rule");
		assert_int_equal(rmpool_open(&pool, file, 0), -EACCES);
		says("it is for group daemon, mode 0660: add the user");
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setegid(0), 0);
		assert_int_equal(ret, -EACCES);
	} else {
		assert_int_equal(chmod(file, 0), 0);
		assert_int_equal(rmpool_open(&pool, file, 0), -EACCES);
		says("it is for root, mode 0000");
	}
	unlink(file);
}

static void info_fits_old_and_new_programs(void **state)
{
	struct {
		struct rmpool_info info;
		char more[64];
	} large;
	struct rmpool_info info;
	struct rmpool *pool = open_pool();

	(void)state;
	assert_int_equal(rmpool_info(pool, &info, sizeof(info)), 0);
	assert_string_equal(info.node_name, "alpha");
	assert_string_equal(info.module_version, "1.2.3");

	memset(&large, 0xff, sizeof(large));
	assert_int_equal(rmpool_info(pool, &large.info, sizeof(large)), 0);
	assert_string_equal(large.info.module_version, "1.2.3");
	for (size_t i = 0; i < sizeof(large.more); i++)
		assert_int_equal(large.more[i], 0);

	memset(&info, 0xff, sizeof(info));
	assert_int_equal(rmpool_info(pool, &info, 8), 0);
	assert_int_equal(info.abi_version, RMPOOL_ABI_VERSION);
	assert_int_equal(info.nr_peers, UINT32_MAX);
	rmpool_close(pool);
}

/* ------------------------------------------------------- segments, regions */

static int publish(unsigned long command, void *arg)
{
	struct rmpool_segment_create *create = arg;

	assert_int_equal(command, RMPOOL_IOC_SEGMENT_CREATE);
	assert_int_equal(create->flags, 0);
	assert_int_equal(create->handle, 0);
	for (size_t i = strlen(create->name); i < sizeof(create->name); i++)
		assert_int_equal(create->name[i], 0);
	if (!strcmp(create->name, "taken")) {
		create->error.reason = RMPOOL_REASON_NAME_TAKEN;
		return -EEXIST;
	}
	create->handle = 7;
	return 0;
}

static void publishes(void **state)
{
	struct rmpool *pool = open_pool();
	uint32_t segment = 0;
	char name[65];

	(void)state;
	answer = publish;
	assert_int_equal(rmpool_publish(pool, "data", &segment), 0);
	assert_int_equal(segment, 7);
	segment = 1;
	assert_int_equal(rmpool_publish(pool, "taken", &segment), -EEXIST);
	assert_int_equal(segment, 1);
	assert_string_equal(rmpool_error(),
			    "cannot publish segment 'taken': the name is in use on this node");

	/* 63 characters fit; neither 64 nor none reach the module */
	memset(name, 'n', 64);
	name[63] = '\0';
	assert_int_equal(rmpool_publish(pool, name, &segment), 0);
	calls = 0;
	name[63] = 'n';
	name[64] = '\0';
	assert_int_equal(rmpool_publish(pool, name, &segment), -EINVAL);
	assert_int_equal(rmpool_error_detail()->reason, RMPOOL_REASON_NAME_BAD);
	says("1 to 63 characters");
	assert_int_equal(rmpool_publish(pool, "", &segment), -EINVAL);
	assert_int_equal(calls, 0);
	rmpool_close(pool);
}

static struct rmpool_region_add seen_add;
static int add_error;
static struct rmpool_error add_detail;

static int add_region(unsigned long command, void *arg)
{
	struct rmpool_region_add *add = arg;

	assert_int_equal(command, RMPOOL_IOC_REGION_ADD);
	seen_add = *add;
	add->error = add_detail;
	if (add_error)
		return -add_error;
	add->handle = 9;
	add->offset = 8192;
	return 0;
}

static struct rmpool_segment_allow seen_allow;
static int allow_error;

static int allow_segment(unsigned long command, void *arg)
{
	struct rmpool_segment_allow *allow = arg;

	assert_int_equal(command, RMPOOL_IOC_SEGMENT_ALLOW);
	seen_allow = *allow;
	allow->rekeyed = 5;
	allow->lost = 2;
	allow->error.need = 1;
	return -allow_error;
}

static void says_who_may_open(void **state)
{
	struct rmpool_allow_entry entries[2];
	struct rmpool *pool = open_pool();
	static const int errors[] = { ENOENT, EEXIST, EINVAL, ENOSPC, E2BIG };
	static const char *const texts[] = {
		"no published segment has that handle", "entry 1 of the list names a peer",
		"entry 1 of the list is malformed", "2 of 5 regions found no room", "who may open",
	};

	(void)state;
	answer = allow_segment;
	allow_error = 0;
	assert_int_equal(rmpool_segment_allow(pool, 7, NULL, 3), 5);
	assert_int_equal(seen_allow.flags | seen_allow.nr, 0);
	assert_int_equal(seen_allow.handle, 7);
	assert_int_equal(rmpool_segment_allow(pool, 7, entries, 0), 5);
	assert_int_equal(seen_allow.flags, RMPOOL_ALLOW_LIST);
	assert_int_equal(rmpool_segment_allow(pool, 7, entries, 2), 5);
	assert_int_equal(seen_allow.nr, 2);
	assert_int_equal(seen_allow.size, sizeof(entries[0]));
	assert_int_equal(seen_allow.entries, (uintptr_t)entries);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		allow_error = errors[i];
		assert_int_equal(rmpool_segment_allow(pool, 7, entries, 2), -errors[i]);
		says(texts[i]);
	}
	rmpool_close(pool);
}

static void reads_who_may_open(void **state)
{
	static const struct {
		const char *text, *peer;
		uint32_t access;
	} good[] = {
		{ "b", "b", 6 }, { "b:rw", "b", 6 }, { "b:ro", "b", 2 }, { "b:wo", "b", 4 },
		{ "b:no", "b", 0 }, { "*", "*", 6 }, { "*:ro", "*", 2 }, { "10.0.0.1", "10.0.0.1", 6 },
		{ "fe80::1:ro", "fe80::1", 2 }, { "a:ro:wo", "a:ro", 4 }, { "b:r", "b:r", 6 },
		{ ":ro", ":ro", 6 },
	};
	static const char *const bad[] = {
		"", "a b", "a/b", "*a", "**", "*:", "*:xx", "b=ro",
		"0123456789012345678901234567890123456789012345678901234567890123:ro",
	};
	struct rmpool_allow_entry entry;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(rmpool_allow_parse(good[i].text, &entry), 0);
		assert_string_equal(entry.peer, good[i].peer);
		assert_int_equal(entry.access, good[i].access);
		assert_int_equal(entry.reserved, 0);
	}
	memset(&entry, 0x55, sizeof(entry));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rmpool_allow_parse(bad[i], &entry), -EINVAL);
		assert_int_equal(entry.access, 0x55555555);
	}
}

static void registers(void **state)
{
	void *addr = (void *)(uintptr_t)0x7f0000001001;
	struct rmpool *pool = open_pool();
	uint64_t placed = 0;
	uint32_t region = 0;

	(void)state;
	answer = add_region;
	assert_int_equal(rmpool_register(pool, addr, 12345, RMPOOL_ACCESS_ALL,
					 7, RMPOOL_OFFSET_NEXT, &region,
					 &placed), 0);
	assert_int_equal(region, 9);
	assert_int_equal(placed, 8192);
	assert_int_equal(seen_add.addr, 0x7f0000001001);
	assert_int_equal(seen_add.length, 12345);
	assert_int_equal(seen_add.access, RMPOOL_ACCESS_ALL);
	assert_int_equal(seen_add.segment, 7);
	assert_int_equal(seen_add.offset, RMPOOL_OFFSET_NEXT);
	assert_int_equal(seen_add.flags | (uint32_t)seen_add.dmabuf_fd |
			 seen_add.handle, 0);
	assert_int_equal(seen_add.dmabuf_offset, 0);
	assert_int_equal(seen_add.status, 0);
	assert_int_equal(rmpool_register(pool, addr, 1, 0, 0, 0, &region, NULL),
			 0);

	add_error = ENOMEM;
	add_detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_MEMLOCK,
		.limit = 64u << 20, .used = 32u << 20, .need = 128u << 20,
	};
	region = 1;
	assert_int_equal(rmpool_register(pool, addr, 128u << 20, 0, 0, 0,
					 &region, NULL), -ENOMEM);
	assert_int_equal(region, 1);
	assert_string_equal(rmpool_error(),
			    "cannot register 128 MiB at 0x7f0000001001: RLIMIT_MEMLOCK is 64 MiB, 32 MiB of it in use, 128 MiB needed; raise it with ulimit -l or give CAP_IPC_LOCK");

	add_detail.reason = RMPOOL_REASON_NONE;
	add_error = ENOENT;
	assert_int_equal(rmpool_register(pool, addr, 1, 0, 5, 0, &region, NULL),
			 -ENOENT);
	says("no published segment has that handle");
	add_error = EPERM;
	assert_int_equal(rmpool_register(pool, addr, 1, 0, 0, 0, &region, NULL),
			 -EPERM);
	says("only the process that opened");
	add_error = 0;
	rmpool_close(pool);
}

static void registers_dmabufs(void **state)
{
	void *addr = (void *)(uintptr_t)0xfff0000000000001;
	struct rmpool *pool = open_pool();
	uint64_t placed = 0;
	uint32_t region = 0;

	(void)state;
	answer = add_region;
	assert_int_equal(rmpool_register_dmabuf(pool, 5, (1ull << 40) + 1, addr, 12345,
						RMPOOL_ACCESS_REMOTE_READ,
						RMPOOL_REGION_STRICT_ORDER, 7, 4096,
						&region, &placed), 0);
	assert_int_equal(region, 9);
	assert_int_equal(placed, 8192);
	assert_int_equal(seen_add.addr, 0xfff0000000000001);
	assert_int_equal(seen_add.length, 12345);
	assert_int_equal(seen_add.access, RMPOOL_ACCESS_REMOTE_READ);
	assert_int_equal(seen_add.flags,
			 RMPOOL_REGION_DMABUF | RMPOOL_REGION_STRICT_ORDER);
	assert_int_equal(seen_add.segment, 7);
	assert_int_equal(seen_add.offset, 4096);
	assert_int_equal(seen_add.dmabuf_fd, 5);
	assert_int_equal(seen_add.dmabuf_offset, (1ull << 40) + 1);
	assert_int_equal(seen_add.handle | (uint32_t)seen_add.status, 0);
	assert_int_equal(rmpool_register_dmabuf(pool, 5, 0, addr, 1, 0, 0, 0, 0, &region,
						NULL), 0);
	assert_int_equal(seen_add.flags, RMPOOL_REGION_DMABUF);

	add_error = EBADF;
	add_detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_DMABUF_FD, .need = UINT32_MAX,
	};
	assert_int_equal(rmpool_register_dmabuf(pool, -1, 0, addr, 4096, 0, 0, 0, 0,
						&region, NULL), -EBADF);
	assert_string_equal(rmpool_error(),
			    "cannot register 4 KiB of dma-buf -1 at 0xfff0000000000001: descriptor -1 is not one of a dma-buf");
	add_detail.reason = RMPOOL_REASON_NONE;
	/* A module from before has neither the field nor the flag. */
	add_error = E2BIG;
	assert_int_equal(rmpool_register_dmabuf(pool, 5, 1, addr, 4096, 0, 0, 0, 0,
						&region, NULL), -E2BIG);
	says("older than the library");
	add_error = 0;
	rmpool_close(pool);
}

/* The array of a call for many: entry i is region 100 + i at i pages, but for those
 * that many_error() is about; many_tried of them.
 */
static struct rmpool_region_add_many seen_many;
static uint32_t many_tried;
static size_t entry_size;

static int many_error(uint32_t i)
{
	return i == 2 ? ENOENT : i == 3 ? EFAULT : 0;
}

static int add_many(unsigned long command, void *arg)
{
	struct rmpool_region_add_many *many = arg;

	assert_int_equal(command, RMPOOL_IOC_REGION_ADD_MANY);
	seen_many = *many;
	if (many->nr > RMPOOL_BATCH_MAX) {
		many->error = (struct rmpool_error){
			.reason = RMPOOL_REASON_BATCH,
			.limit = RMPOOL_BATCH_MAX, .need = many->nr,
		};
		return -E2BIG;
	}
	if (add_error)
		return -add_error;
	assert_int_equal(many->size, entry_size);
	many->tried = many->nr < many_tried ? many->nr : many_tried;
	for (uint32_t i = 0; i < many->tried; i++) {
		struct rmpool_region_add *add = (void *)(uintptr_t)
			(many->regions + (uint64_t)i * many->size);

		assert_int_equal(add->addr, 0x1000 * (i + 1));
		assert_int_equal(add->length, 4096);
		assert_int_equal(add->access, RMPOOL_ACCESS_REMOTE_READ);
		assert_int_equal(add->segment, 7);
		assert_int_equal(add->offset, RMPOOL_OFFSET_NEXT);
		add->status = -many_error(i);
		many->failed += add->status != 0;
		if (add->status == -EFAULT)
			add->error = (struct rmpool_error){
				.reason = RMPOOL_REASON_UNMAPPED,
				.need = add->addr,
			};
		else if (!add->status)
			add->handle = 100 + i;
	}
	return 0;
}

static void prepare(struct rmpool_region_add *add, uint32_t i)
{
	memset(add, 0xff, sizeof(*add));
	rmpool_prepare_region(add, (void *)(uintptr_t)(0x1000 * (i + 1)), 4096,
			      RMPOOL_ACCESS_REMOTE_READ, 7, RMPOOL_OFFSET_NEXT);
}

static void registers_many(void **state)
{
	/* of a program that was built with a later header */
	struct {
		struct rmpool_region_add add;
		/* cppcheck-suppress unusedStructMember ; it makes it larger */
		uint64_t more;
	} large[5];
	struct rmpool_region_add adds[5], *first;
	struct rmpool *pool = open_pool();

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		prepare(&adds[i], i);
		prepare(&large[i].add, i);
	}
	assert_int_equal(adds[0].flags | (uint32_t)adds[0].dmabuf_fd | adds[0].handle, 0);
	assert_int_equal(adds[0].dmabuf_offset, 0);
	answer = add_many;
	many_tried = UINT32_MAX;
	entry_size = sizeof(adds[0]);
	assert_int_equal(rmpool_register_many(pool, adds, 5, sizeof(adds[0])), 5);
	assert_int_equal(seen_many.flags | seen_many.reserved | seen_many.tried |
			 seen_many.failed, 0);
	assert_int_equal(adds[0].handle, 100);
	assert_int_equal(adds[4].handle, 104);
	assert_int_equal(adds[2].status, -ENOENT);
	assert_string_equal(rmpool_error(),
			    "cannot register 4 KiB at 0x3000: no published segment has that handle");

	/* of a program that was built with the first header, and no byte more */
	entry_size = offsetof(struct rmpool_region_add, dmabuf_offset);
	first = malloc(4 * entry_size);
	assert_non_null(first);
	for (uint32_t i = 0; i < 4; i++) {
		prepare(&adds[0], i);
		memcpy((char *)first + i * entry_size, &adds[0], entry_size);
	}
	assert_int_equal(rmpool_register_many(pool, first, 4, entry_size), 4);
	says("cannot register 4 KiB at 0x3000");
	free(first);
	entry_size = sizeof(adds[0]);

	/* fewer were tried; those are all that is looked at */
	many_tried = 2;
	prepare(&adds[0], 0);
	prepare(&adds[1], 1);
	assert_int_equal(rmpool_register_many(pool, adds, 2, sizeof(adds[0])), 2);
	entry_size = sizeof(large[0]);
	many_tried = 4;
	assert_int_equal(rmpool_register_many(pool, &large[0].add, 5,
					      sizeof(large[0])), 4);
	assert_int_equal(large[3].add.error.reason, RMPOOL_REASON_UNMAPPED);
	assert_int_equal(large[4].add.status | (int)large[4].add.handle, 0);

	add_error = EINTR;
	assert_int_equal(rmpool_register_many(pool, adds, 5, sizeof(adds[0])),
			 -EINTR);
	says("cannot register 5 regions: interrupted by a signal");
	add_error = EFAULT;
	assert_int_equal(rmpool_register_many(pool, NULL, 5, sizeof(adds[0])),
			 -EFAULT);
	says("the array is not in accessible memory");
	add_error = EINVAL;
	assert_int_equal(rmpool_register_many(pool, adds, 0, sizeof(adds[0])),
			 -EINVAL);
	says("there is no region");
	add_error = ENOTTY;
	assert_int_equal(rmpool_register_many(pool, adds, 1, sizeof(adds[0])),
			 -ENOTTY);
	says("older than the library");
	add_error = 0;
	assert_int_equal(rmpool_register_many(pool, adds, 5000, sizeof(adds[0])),
			 -E2BIG);
	says("at most 4096 requests, regions or entries, these are 5000");
	calls = 0;
	assert_int_equal(rmpool_register_many(pool, adds, 1, sizeof(adds[0]) + 4), -EINVAL);
	says("the size of an entry is not valid");
	assert_int_equal(rmpool_register_many(pool, adds, 1,
					      offsetof(struct rmpool_region_add,
						       dmabuf_offset) - 1), -EINVAL);
	assert_int_equal(rmpool_register_many(pool, adds, 1, SIZE_MAX), -EINVAL);
	assert_int_equal(calls, 0);
	rmpool_close(pool);
}

/* Region 6 is unknown. */
static int del_many(unsigned long command, void *arg)
{
	struct rmpool_region_del_many *many = arg;
	const uint32_t *handles = (void *)(uintptr_t)many->handles;
	int32_t *status = (void *)(uintptr_t)many->status;

	assert_int_equal(command, RMPOOL_IOC_REGION_DEL_MANY);
	assert_int_equal(many->flags | many->tried | many->failed, 0);
	if (!many->handles)
		return -EFAULT;
	for (uint32_t i = 0; i < many->nr; i++) {
		if (status)
			status[i] = handles[i] == 6 ? -ENOENT : 0;
		many->failed += handles[i] == 6;
	}
	many->tried = many->nr;
	return 0;
}

static void unregisters_many(void **state)
{
	static const uint32_t handles[] = { 5, 6, 7, 6 };
	int32_t status[] = { 1, 1, 1, 1, 1 };
	struct rmpool *pool = open_pool();

	(void)state;
	answer = del_many;
	assert_int_equal(rmpool_unregister_many(pool, handles, 4, status), 2);
	assert_int_equal(status[0] | status[2], 0);
	assert_int_equal(status[1], -ENOENT);
	assert_int_equal(status[3], -ENOENT);
	assert_int_equal(status[4], 1);
	assert_int_equal(rmpool_unregister_many(pool, handles, 1, NULL), 0);
	assert_int_equal(rmpool_unregister_many(pool, NULL, 3, NULL), -EFAULT);
	says("cannot unregister 3 regions: the array is not");
	rmpool_close(pool);
}

static unsigned long expect_command;

static int drop_handle(unsigned long command, void *arg)
{
	struct rmpool_handle *handle = arg;

	assert_int_equal(command, expect_command);
	assert_int_equal(handle->flags, 0);
	return handle->handle == 5 ? 0 : -ENOENT;
}

static void gives_back_handles(void **state)
{
	static const struct {
		int (*call)(struct rmpool *pool, uint32_t handle);
		unsigned long command;
		const char *text;
	} all[] = {
		{ rmpool_unpublish, RMPOOL_IOC_SEGMENT_DELETE,
		  "cannot unpublish segment 6: there is none with that handle" },
		{ rmpool_unregister, RMPOOL_IOC_REGION_DEL,
		  "cannot unregister region 6: there is none with that handle" },
		{ rmpool_segment_close, RMPOOL_IOC_SEGMENT_CLOSE,
		  "cannot close segment 6: there is none with that handle" },
	};
	struct rmpool *pool = open_pool();

	(void)state;
	answer = drop_handle;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		expect_command = all[i].command;
		assert_int_equal(all[i].call(pool, 5), 0);
		assert_int_equal(all[i].call(pool, 6), -ENOENT);
		assert_string_equal(rmpool_error(), all[i].text);
	}
	rmpool_close(pool);
}

static int64_t seen_timeout;
static int open_error;

static int open_segment(unsigned long command, void *arg)
{
	struct rmpool_segment_open *o = arg;

	assert_int_equal(command, RMPOOL_IOC_SEGMENT_OPEN);
	assert_string_equal(o->node, "beta");
	assert_string_equal(o->name, "data");
	assert_int_equal(o->flags, 0);
	seen_timeout = o->timeout_ns;
	if (open_error) {
		o->error.reason = open_error == ETIMEDOUT ?
			RMPOOL_REASON_UNREACHABLE : RMPOOL_REASON_PEER_UNKNOWN;
		return -open_error;
	}
	o->handle = 3;
	o->nr_regions = 2;
	o->size = 1 << 20;
	o->generation = 44;
	return 0;
}

static void opens_segments(void **state)
{
	struct rmpool_segment_info info;
	struct rmpool *pool = open_pool();
	uint32_t segment = 0;

	(void)state;
	answer = open_segment;
	memset(&info, 0xff, sizeof(info));
	assert_int_equal(rmpool_segment_open(pool, "beta", "data", 1500,
					     &segment, &info), 0);
	assert_int_equal(segment, 3);
	assert_int_equal(seen_timeout, 1500000000);
	assert_int_equal(info.size, 1 << 20);
	assert_int_equal(info.generation, 44);
	assert_int_equal(info.nr_regions, 2);
	for (size_t i = 0; i < 11; i++)
		assert_int_equal(info.reserved[i], 0);

	/* as one text, without info, without limit, with the largest limit */
	assert_int_equal(rmpool_segment_open(pool, "beta/data", NULL, -1,
					     &segment, NULL), 0);
	assert_true(seen_timeout < 0);
	assert_int_equal(rmpool_segment_open(pool, "beta", "data", INT32_MAX,
					     &segment, NULL), 0);
	assert_int_equal(seen_timeout, INT32_MAX * INT64_C(1000000));

	open_error = ETIMEDOUT;
	assert_int_equal(rmpool_segment_open(pool, "beta/data", NULL, 250,
					     &segment, NULL), -ETIMEDOUT);
	assert_string_equal(rmpool_error(),
			    "cannot open segment 'beta/data' within 250 ms: the peer does not answer the request to connect");
	open_error = ENOENT;
	assert_int_equal(rmpool_segment_open(pool, "beta", "data", 250,
					     &segment, NULL), -ENOENT);
	says("rmpool peer add");
	open_error = 0;

	calls = 0;
	assert_int_equal(rmpool_segment_open(pool, "beta", NULL, 1, &segment,
					     NULL), -EINVAL);
	says("node/segment");
	assert_int_equal(rmpool_segment_open(pool, "beta/data+5", NULL, 1,
					     &segment, NULL), -EINVAL);
	says("offset");
	assert_int_equal(rmpool_segment_open(pool, "", "data", 1, &segment,
					     NULL), -EINVAL);
	assert_int_equal(rmpool_segment_open(pool, "beta", "", 1, &segment,
					     NULL), -EINVAL);
	assert_int_equal(calls, 0);
	rmpool_close(pool);
}

/* A segment of list_total regions, told in parts of at most list_part; after
 * list_changes_at calls it changes once.
 */
static uint32_t list_total, list_part, list_calls, list_changes_at;

static int list_segment(unsigned long command, void *arg)
{
	struct rmpool_segment_list *list = arg;
	struct rmpool_region_desc *array = (void *)(uintptr_t)list->regions;
	uint32_t n;

	assert_int_equal(command, RMPOOL_IOC_SEGMENT_LIST);
	assert_int_equal(list->handle, 3);
	if (++list_calls >= list_changes_at && list_changes_at)
		list->generation = 2;
	else
		list->generation = 1;
	n = list->first < list_total ? list_total - list->first : 0;
	if (n > list->nr)
		n = list->nr;
	if (n > list_part)
		n = list_part;
	for (uint32_t i = 0; i < n; i++)
		array[i] = (struct rmpool_region_desc){
			.offset = (list->first + i) * list->generation,
			.length = 1,
		};
	list->nr = n;
	list->total = list_total;
	return 0;
}

static int list_never_still(unsigned long command, void *arg)
{
	struct rmpool_segment_list *list = arg;

	list_segment(command, arg);
	list->generation = list_calls;
	return 0;
}

static int list_nothing_more(unsigned long command, void *arg)
{
	struct rmpool_segment_list *list = arg;

	(void)command;
	list->nr = 0;
	list->total = 5;
	return 0;
}

static int list_no_segment(unsigned long command, void *arg)
{
	(void)command;
	(void)arg;
	return -ENOENT;
}

static void lists_regions(void **state)
{
	struct rmpool_region_desc *regions = (void *)1;
	struct rmpool *pool = open_pool();
	static const uint32_t totals[] = { 1, 63, 64, 65, 1000 };
	uint64_t generation;
	uint32_t nr = 99;

	(void)state;
	answer = list_segment;
	list_total = 0;
	list_part = UINT32_MAX;
	assert_int_equal(rmpool_segment_regions(pool, 3, &regions, &nr, NULL),
			 0);
	assert_null(regions);
	assert_int_equal(nr, 0);

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		/* in one piece; in small ones; and changing half way */
		for (int way = 0; way < 3; way++) {
			list_total = totals[i];
			list_part = way ? 7 : UINT32_MAX;
			list_calls = 0;
			list_changes_at = way == 2 ? totals[i] / 14 + 1 : 0;
			assert_int_equal(rmpool_segment_regions(pool, 3,
					 &regions, &nr, &generation), 0);
			assert_int_equal(nr, totals[i]);
			for (uint32_t r = 0; r < nr; r++)
				assert_int_equal(regions[r].offset,
						 r * generation);
			free(regions);
		}
	}

	regions = (void *)1;
	list_part = 7;
	answer = list_never_still;
	assert_int_equal(rmpool_segment_regions(pool, 3, &regions, &nr, NULL),
			 -EAGAIN);
	says("keep changing");
	answer = list_nothing_more;
	assert_int_equal(rmpool_segment_regions(pool, 3, &regions, &nr, NULL),
			 -EPROTO);
	answer = list_no_segment;
	assert_int_equal(rmpool_segment_regions(pool, 4, &regions, &nr, NULL),
			 -ENOENT);
	says("regions of segment 4: no opened segment has that handle");
	assert_ptr_equal(regions, (void *)1);
	rmpool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_and_closes),
		cmocka_unit_test(tells_why_it_cannot_open),
		cmocka_unit_test(names_the_group),
		cmocka_unit_test(info_fits_old_and_new_programs),
		cmocka_unit_test(publishes),
		cmocka_unit_test(says_who_may_open),
		cmocka_unit_test(reads_who_may_open),
		cmocka_unit_test(registers),
		cmocka_unit_test(registers_dmabufs),
		cmocka_unit_test(registers_many),
		cmocka_unit_test(unregisters_many),
		cmocka_unit_test(gives_back_handles),
		cmocka_unit_test(opens_segments),
		cmocka_unit_test(lists_regions),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
