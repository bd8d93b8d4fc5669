// SPDX-License-Identifier: MIT
/*
 * SHA-256 of memory; see digest.h. The child is made by posix_spawn() and not
 * by fork(): fork() would copy memory that devices have pinned.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "digest.h"
#include "interrupt.h"

/* Small enough that a signal is seen soon. */
enum { PIECE = 1 << 20 };

static int start_child(pid_t *child, int in, int out)
{
	static char name[] = "sha256sum";
	char *const argv[] = { name, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, pipes;
	int error;

	error = posix_spawn_file_actions_init(&files);
	if (error)
		return -error;
	error = posix_spawnattr_init(&attributes);
	if (error)
		goto out_files;
	sigemptyset(&none);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	error = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!error)
		error = posix_spawnattr_setsigmask(&attributes, &none);
	if (!error)
		error = posix_spawnattr_setsigdefault(&attributes, &pipes);
	if (!error)
		error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
						 POSIX_SPAWN_SETSIGDEF);
	if (!error)
		error = posix_spawnp(child, name, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
out_files:
	posix_spawn_file_actions_destroy(&files);
	return -error;
}

static int feed(int to, const char *memory, size_t length)
{
	while (length) {
		ssize_t written;

		if (interrupted())
			return -EINTR;
		written = write(to, memory, length < PIECE ? length : PIECE);
		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			memory += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

static int read_digest(int from, char text[DIGEST_TEXT_MAX])
{
	size_t used = 0, i;

	while (used < DIGEST_TEXT_MAX - 1) {
		ssize_t got = read(from, text + used, DIGEST_TEXT_MAX - 1 - used);

		if (got < 0 && errno == EINTR && !interrupted())
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -EPIPE;
		used += (size_t)got;
	}
	text[used] = 0;
	for (i = 0; i < used; i++) {
		if (!isxdigit((unsigned char)text[i]))
			return -EPROTO;
	}
	return 0;
}

int digest_memory(const void *memory, size_t length, char text[DIGEST_TEXT_MAX])
{
	int in[2], out[2];
	pid_t child = -1;
	int error;

	if (pipe2(in, O_CLOEXEC))
		return -errno;
	if (pipe2(out, O_CLOEXEC)) {
		error = -errno;
		goto out_in;
	}
	error = start_child(&child, in[0], out[1]);
	if (error)
		goto out_out;
	close(in[0]);
	close(out[1]);
	error = feed(in[1], memory, length);
	close(in[1]);
	if (!error)
		error = read_digest(out[0], text);
	close(out[0]);
	/* With its input closed it ends by itself. */
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return error;

out_out:
	close(out[0]);
	close(out[1]);
out_in:
	close(in[0]);
	close(in[1]);
	return error;
}
