/* SPDX-License-Identifier: MIT */
#ifndef RMPOOL_TOOL_DIGEST_H
#define RMPOOL_TOOL_DIGEST_H

#include <stddef.h>

/* Hexadecimal digits of SHA-256 and the final NUL. */
#define DIGEST_TEXT_MAX	65

/*
 * SHA-256 of memory, by sha256sum(1) as a child, which is kept by people who
 * know about it and is on every host. 0, or a negative errno; -EINTR when a
 * signal asked the tool to end meanwhile. SIGPIPE must be ignored.
 */
int digest_memory(const void *memory, size_t length, char text[DIGEST_TEXT_MAX]);

#endif
