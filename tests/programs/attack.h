/* SPDX-License-Identifier: MIT */
/*
 * For test programs that attack: calls of /dev/rmpool without a library before
 * them, which would refuse half of it.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)

/* 0 or a negative errno. */
static inline int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static inline int device(int flags)
{
	int fd = open(RMPOOL_DEVICE_PATH, O_RDWR | flags);

	if (fd < 0)
		give_up("open: %s", strerror(errno));
	return fd;
}

static inline void *map(size_t size, int prot, int flags, int fd)
{
	return mmap(NULL, size, prot, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}

static inline void *memory(size_t size)
{
	void *m = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);

	if (m == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return m;
}

static inline int add(int fd, const void *addr, size_t length, uint32_t access, uint32_t segment,
	       uint32_t *region)
{
	struct rmpool_region_add a = {
		.addr = (uintptr_t)addr, .length = length, .access = access, .segment = segment,
		.offset = segment ? RMPOOL_OFFSET_NEXT : 0,
	};
	int ret = call(fd, RMPOOL_IOC_REGION_ADD, &a);

	*region = a.handle;
	return ret;
}

static inline int handle_call(int fd, unsigned long cmd, uint32_t handle)
{
	struct rmpool_handle h = { .handle = handle };

	return call(fd, cmd, &h);
}

static inline int del(int fd, uint32_t region)
{
	return handle_call(fd, RMPOOL_IOC_REGION_DEL, region);
}

static inline int create(int fd, const char *name, uint32_t *segment)
{
	struct rmpool_segment_create c = { .flags = 0 };
	int ret;

	snprintf(c.name, sizeof(c.name), "%s", name);
	ret = call(fd, RMPOOL_IOC_SEGMENT_CREATE, &c);
	*segment = c.handle;
	return ret;
}

struct ring {
	struct rmpool_ring_setup setup;
	uint8_t *map;
	_Atomic uint32_t *head;
};

static inline struct ring ring_of(int fd, uint32_t entries)
{
	struct ring r = { .setup = { .entries = entries, .eventfd = -1 } };

	if (call(fd, RMPOOL_IOC_RING_SETUP, &r.setup))
		give_up("RING_SETUP: %s", strerror(errno));
	r.map = map(r.setup.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	if (r.map == MAP_FAILED)
		give_up("ring: %s", strerror(errno));
	r.head = (void *)(r.map + r.setup.head_offset);
	return r;
}

/* What a process whose memory is not pinned any more shows; it may take a moment. */
static inline bool unpinned(void)
{
	double end = now() + patience(20);

	while (status_value("VmPin")) {
		if (now() > end)
			return false;
		pause_ms(1);
	}
	return true;
}

#endif /* ATTACK_H */
