/* SPDX-License-Identifier: MIT */
/*
 * Files read and written whole: EINTR is retried unless a signal asked the tool
 * to end, and a new file appears under its name only when it is complete.
 */
#ifndef RMPOOL_TOOL_FILES_H
#define RMPOOL_TOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads until @length bytes or the end; returns how many, or negative errno. */
ssize_t read_full(int fd, void *buffer, size_t length);
/* 0 or a negative errno. */
int write_full(int fd, const void *buffer, size_t length);

/* A file in the making. */
struct new_file {
	int fd;
	char *path;		/* what it will be */
	char *temporary;	/* what it is until then; NULL: written in place */
};

/*
 * Begin @path ("-": standard output). What is not a regular file, such as a
 * pipe or a device, is written in place. 0 or a negative errno.
 */
int new_file_begin(struct new_file *file, const char *path);
/* Complete: give it its name. Ends it in any case. 0 or a negative errno. */
int new_file_commit(struct new_file *file);
/* Not complete: remove it. What had that name before is as it was. */
void new_file_abort(struct new_file *file);

#endif
