/* SPDX-License-Identifier: MIT */
/*
 * For test programs: much address space with little memory behind it, the same pages
 * again and again, for registrations that take long.
 */
#ifndef BIG_H
#define BIG_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

#define BIG_BEHIND	(64UL << 20)

/* @size: a multiple of BIG_BEHIND. */
static inline uint8_t *big_map(size_t size)
{
	int fd = memfd_create("big", MFD_CLOEXEC);
	uint8_t *at;
	void *got;

	at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || ftruncate(fd, (off_t)BIG_BEHIND) || at == MAP_FAILED)
		give_up("no memory: %s", strerror(errno));
	for (size_t part = 0; part < size; part += BIG_BEHIND) {
		got = mmap(at + part, BIG_BEHIND, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0);
		if (got == MAP_FAILED)
			give_up("mmap: %s", strerror(errno));
	}
	close(fd);
	return at;
}

/* Pages that are not in the page table yet are what takes longest. */
static inline void big_forget(uint8_t *at, size_t size)
{
	if (madvise(at, size, MADV_DONTNEED))
		give_up("madvise: %s", strerror(errno));
}

#endif /* BIG_H */
