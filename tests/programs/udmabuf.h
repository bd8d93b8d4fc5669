/* SPDX-License-Identifier: MIT */
/*
 * For test programs: dma-bufs of ordinary memory, which the kernel makes of memfds
 * (udmabuf).
 */
#ifndef UDMABUF_H
#define UDMABUF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

/* Whether this kernel can make them. */
static inline bool udmabuf_there(void)
{
	return !access("/dev/udmabuf", R_OK | W_OK);
}

/* A memfd that may become one. @flags: of memfd_create(). */
static inline int udmabuf_memory(size_t size, unsigned int flags)
{
	int fd = memfd_create("dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC | flags);

	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		give_up("memfd: %s", strerror(errno));
	/* As long as they are not there, 6.12 looks for huge pages that somebody has
	 * reserved, and a kernel that checks itself (DEBUG_VM) stops without one.
	 */
	if (flags & MFD_HUGETLB)
		fallocate(fd, 0, 0, (off_t)size);
	return fd;
}

/* A dma-buf out of pieces of memfds; -1 with errno. */
static inline int udmabuf_of(const struct udmabuf_create_item *items, uint32_t nr)
{
	size_t size = nr * sizeof(*items);
	struct udmabuf_create_list *list;
	int fd = -1, maker, err;

	maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (maker < 0)
		return -1;
	list = malloc(sizeof(*list) + size);
	if (list) {
		list->flags = UDMABUF_FLAGS_CLOEXEC;
		list->count = nr;
		memcpy(list->list, items, size);
		fd = ioctl(maker, UDMABUF_CREATE_LIST, list);
	}
	err = errno;
	free(list);
	close(maker);
	errno = err;
	return fd;
}

/* A dma-buf of a memfd of its own, which is told if @memory is not NULL; -1: none. */
static inline int udmabuf_new(size_t size, unsigned int flags, int *memory)
{
	struct udmabuf_create_item item = { .size = size };
	int fd, memfd;

	if (!udmabuf_there())
		return -1;
	memfd = udmabuf_memory(size, flags);
	item.memfd = (uint32_t)memfd;
	fd = udmabuf_of(&item, 1);
	if (memory && fd >= 0)
		*memory = memfd;
	else
		close(memfd);
	return fd;
}

#endif /* UDMABUF_H */
