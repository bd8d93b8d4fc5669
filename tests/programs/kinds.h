/* SPDX-License-Identifier: MIT */
/*
 * For test programs: memory of several kinds. What cannot be had ends the program, but
 * for try_map().
 */
#ifndef KINDS_H
#define KINDS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "report.h"

static inline uint8_t *try_map(size_t size, int prot, int flags, int fd)
{
	void *at = mmap(NULL, size, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	return at;
}

static inline uint8_t *map(size_t size, int prot, int flags, int fd)
{
	uint8_t *at = try_map(size, prot, flags, fd);

	if (!at)
		give_up("mmap: %s", strerror(errno));
	return at;
}

static inline uint8_t *anonymous(size_t size)
{
	return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Whether a file system of that kind is mounted there. */
static inline bool is_of(const char *dir, unsigned long magic)
{
	struct statfs s;

	return !statfs(dir, &s) && (unsigned long)s.f_type == magic;
}

/* A new file, whose name is gone. */
static inline int file_in(const char *dir, size_t size)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%s/kinds.XXXXXX", dir);
	fd = mkstemp(name);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		give_up("%s: %s", name, strerror(errno));
	unlink(name);
	return fd;
}

#endif /* KINDS_H */
