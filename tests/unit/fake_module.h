/* SPDX-License-Identifier: MIT */
/*
 * A module for tests of the library's calls. A program that includes this has
 * an ioctl() of its own, which the library calls instead of the system's: the
 * test's answer() checks what the library passes and answers what the module
 * would. The descriptor is a memory file, so that the completion ring can
 * really be mapped.
 */
#ifndef RMPOOL_TEST_FAKE_MODULE_H
#define RMPOOL_TEST_FAKE_MODULE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "internal.h"

#define RING_PAGE 4096UL		/* where the ring is in the memory file */

static int (*answer)(unsigned long command, void *arg);
static atomic_uint calls;	/* by any thread */

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int ret;

	(void)fd;
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	calls++;
	ret = answer(request, arg);
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

static inline int answer_info(unsigned long command, void *arg)
{
	struct rmpool_info *info = arg;

	assert_int_equal(command, RMPOOL_IOC_INFO);
	info->abi_version = RMPOOL_ABI_VERSION;
	info->batch_max = RMPOOL_BATCH_MAX;
	strcpy(info->node_name, "alpha");
	strcpy(info->module_version, "1.2.3");
	return 0;
}

static int memory_file = -1;
static char path[64];

static inline struct rmpool *open_pool(void)
{
	struct rmpool *pool;

	answer = answer_info;
	assert_int_equal(rmpool_open(&pool, path, 0), 0);
	assert_non_null(pool);
	calls = 0;
	return pool;
}

static inline int set_up(void **state)
{
	(void)state;
	memory_file = memfd_create("ring", MFD_CLOEXEC);
	if (memory_file < 0 || ftruncate(memory_file, (off_t)(4 * RING_PAGE)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_file);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	close(memory_file);
	return 0;
}

static inline void says(const char *part)
{
	if (!strstr(rmpool_error(), part))
		fail_msg("'%s' is not in '%s'", part, rmpool_error());
}

#endif /* RMPOOL_TEST_FAKE_MODULE_H */
