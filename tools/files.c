// SPDX-License-Identifier: MIT
/*
 * Files read and written whole; see files.h. A struct new_file lives from
 * begin to commit or abort.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "files.h"
#include "interrupt.h"

ssize_t read_full(int fd, void *buffer, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got;

		if (interrupted())
			return -EINTR;
		got = read(fd, (char *)buffer + done, length - done);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			break;
		if (got > 0)
			done += (size_t)got;
	}
	return (ssize_t)done;
}

int write_full(int fd, const void *buffer, size_t length)
{
	const char *at = buffer;

	while (length) {
		ssize_t written;

		if (interrupted())
			return -EINTR;
		written = write(fd, at, length);
		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			at += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

/* Beside the target, because a rename must not cross file systems. */
static char *temporary_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	char *name;

	return asprintf(&name, "%.*s.rmpool-XXXXXX", folder, path) < 0 ? NULL : name;
}

static int open_temporary(struct new_file *file, mode_t mode)
{
	int error;

	file->temporary = temporary_name(file->path);
	if (!file->temporary)
		return -ENOMEM;
	file->fd = mkostemp(file->temporary, O_CLOEXEC);
	if (file->fd < 0) {
		error = -errno;
		goto out_free;
	}
	if (!fchmod(file->fd, mode))
		return 0;
	error = -errno;
	close(file->fd);
	unlink(file->temporary);
out_free:
	free(file->temporary);
	return error;
}

int new_file_begin(struct new_file *file, const char *path)
{
	struct stat there;
	mode_t mode;
	int error;

	file->temporary = NULL;
	file->path = NULL;
	if (!strcmp(path, "-")) {
		file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
		return file->fd < 0 ? -errno : 0;
	}
	if (!stat(path, &there)) {
		if (!S_ISREG(there.st_mode)) {
			file->fd = open(path, O_WRONLY | O_CLOEXEC);
			return file->fd < 0 ? -errno : 0;
		}
		/* What may not be written is not to be replaced either. */
		if (access(path, W_OK))
			return -errno;
		/* A link stays a link. */
		file->path = realpath(path, NULL);
		mode = there.st_mode & 0777;
	} else if (errno == ENOENT) {
		mode = umask(0);
		umask(mode);
		mode = 0666 & ~mode;
		file->path = strdup(path);
	} else {
		return -errno;
	}
	if (!file->path)
		return -errno;
	error = open_temporary(file, mode);
	if (error)
		free(file->path);
	return error;
}

static void forget(struct new_file *file)
{
	free(file->temporary);
	free(file->path);
	file->temporary = NULL;
	file->path = NULL;
	file->fd = -1;
}

int new_file_commit(struct new_file *file)
{
	int error = 0;

	/* Some file systems say only now that there was no room. */
	if (file->temporary && fsync(file->fd) && errno != EINVAL)
		error = -errno;
	if (close(file->fd) && !error)
		error = -errno;
	if (file->temporary) {
		if (!error && rename(file->temporary, file->path))
			error = -errno;
		if (error)
			unlink(file->temporary);
	}
	forget(file);
	return error;
}

void new_file_abort(struct new_file *file)
{
	close(file->fd);
	if (file->temporary)
		unlink(file->temporary);
	forget(file);
}
