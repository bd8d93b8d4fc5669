/* SPDX-License-Identifier: MIT */
/*
 * Numbers and words as people write and read them. Pure functions: no output,
 * no state, no library. Parsers return NULL when the text is good, or a
 * sentence that says what is wrong with it (static, never freed).
 */
#ifndef RMPOOL_TOOL_UNITS_H
#define RMPOOL_TOOL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for every text that the functions here write. */
#define UNITS_TEXT_MAX	64

/* Bytes: decimal or 0x..., then nothing, K, M, G or T (powers of 1024, "KiB"
 * and so on are read too).
 */
const char *parse_size(const char *text, uint64_t *bytes);
/* Seconds with an optional fraction, to milliseconds; "none" is -1. */
const char *parse_seconds(const char *text, int *ms);

/* "17 bytes", "8 MiB", "12.3 MiB": powers of 1024; a whole number is exact. */
const char *format_bytes(char *text, size_t room, uint64_t bytes);
/* "17 bytes", "8388608 bytes (8 MiB)": always exact. */
const char *format_exact(char *text, size_t room, uint64_t bytes);
/* "48.3 MB/s": powers of 1000. */
const char *format_rate(char *text, size_t room, double bytes_per_second);
/* "0:09", "12:30", "1:02:03". */
const char *format_duration(char *text, size_t room, double seconds);
const char *format_uuid(char *text, size_t room, const uint8_t uuid[16]);
/* "read, write" out of RMPOOL_ACCESS_REMOTE_*, or "none". */
const char *format_access(uint32_t access);

/*
 * The candidate nearest to a mistyped word, or NULL when none is near enough
 * to be meant. @candidates ends with NULL.
 */
const char *nearest_word(const char *word, const char *const *candidates);

#endif
