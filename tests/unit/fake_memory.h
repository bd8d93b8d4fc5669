/* SPDX-License-Identifier: MIT */
/*
 * For tests of the arena: a module that keeps a list of what is registered and
 * can be made to refuse it, and an arena on top of that.
 */
#ifndef RMPOOL_TEST_FAKE_MEMORY_H
#define RMPOOL_TEST_FAKE_MEMORY_H

#include <pthread.h>

#include "fake_module.h"

#define PAGE	4096UL
#define KIB	1024UL
#define MIB	(1024UL * KIB)
#define STEP	(64 * KIB)

/* ------------------------------------------------------------- the module */

#define REGIONS_MAX	65536U

struct range {
	uintptr_t addr;
	size_t length;			/* 0: not registered any more */
};

/* By handle. Threads register at the same time. */
static struct range regions[REGIONS_MAX];
static uint32_t handles, live;
static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;

/* From so many bytes on, registering fails so. */
static size_t refuse_from = SIZE_MAX;
static int refuse_error;

static inline int add_region(struct rmpool_region_add *add)
{
	volatile char *memory = (char *)(uintptr_t)add->addr;

	if (add->access != RMPOOL_ACCESS_LOCAL_WRITE || add->segment ||
	    add->offset || add->flags || !add->length ||
	    handles + 1 == REGIONS_MAX)
		return -EINVAL;
	if (add->length >= refuse_from) {
		/* As the module may: the pages were brought in already. */
		memory[0] = 1;
		if (refuse_error == ENOMEM)
			add->error.reason = RMPOOL_REASON_MEMLOCK;
		return -refuse_error;
	}
	/* Pinning for writing, which new memory must allow; zeros stay zeros. */
	for (size_t at = 0; at < add->length; at += PAGE) {
		char byte = memory[at];

		memory[at] = byte;
	}
	add->handle = ++handles;
	regions[add->handle] = (struct range){ add->addr, add->length };
	live++;
	return 0;
}

static inline int del_region(const struct rmpool_handle *handle)
{
	if (!handle->handle || handle->handle > handles ||
	    !regions[handle->handle].length)
		return -ENOENT;
	regions[handle->handle].length = 0;
	live--;
	return 0;
}

static inline int memory_calls(unsigned long command, void *arg)
{
	int ret = -ENOTTY;

	pthread_mutex_lock(&regions_lock);
	if (command == RMPOOL_IOC_REGION_ADD)
		ret = add_region(arg);
	else if (command == RMPOOL_IOC_REGION_DEL)
		ret = del_region(arg);
	pthread_mutex_unlock(&regions_lock);
	return ret;
}

/* The handle of the one region that has all of it, 0: there is none. */
static inline uint32_t region_of(const void *memory, size_t length)
{
	uintptr_t addr = (uintptr_t)memory;
	uint32_t found = 0;

	for (uint32_t h = 1; h <= handles; h++)
		if (addr >= regions[h].addr && length <= regions[h].length &&
		    addr - regions[h].addr <= regions[h].length - length) {
			if (found)
				fail_msg("%p is registered twice", memory);
			found = h;
		}
	return found;
}

/* -------------------------------------------------------------- the arena */

static struct rmpool *opened;

static inline int begin(void **state)
{
	if (set_up(state))
		return -1;
	opened = open_pool();
	answer = memory_calls;
	handles = live = 0;
	refuse_from = SIZE_MAX;
	return 0;
}

static inline int end(void **state)
{
	assert_int_equal(live, 0);
	rmpool_close(opened);
	return tear_down(state);
}

static inline struct rmpool_arena *create(uint64_t size, uint64_t step)
{
	const struct rmpool_arena_options options = {
		.size = size, .step = step,
	};
	struct rmpool_arena *arena = NULL;

	assert_int_equal(rmpool_arena_create(opened, &options, &arena), 0);
	assert_non_null(arena);
	return arena;
}

static inline struct rmpool_arena_info info_of(struct rmpool_arena *arena)
{
	struct rmpool_arena_info info;

	memset(&info, 0xff, sizeof(info));
	rmpool_arena_info(arena, &info);
	for (size_t i = 0; i < sizeof(info.reserved) / sizeof(uint64_t); i++)
		assert_int_equal(info.reserved[i], 0);
	return info;
}

static inline bool is_mapped(const void *memory)
{
	unsigned char in;

	return !mincore((void *)((uintptr_t)memory & ~(PAGE - 1)), 1, &in);
}

#endif /* RMPOOL_TEST_FAKE_MEMORY_H */
