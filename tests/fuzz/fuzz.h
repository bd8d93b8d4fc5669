/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput();
 * what must hold for any input is said with must().
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(condition) \
do { \
	if (!(condition)) { \
		fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, \
			__LINE__, #condition); \
		abort(); \
	} \
} while (0)

/* Memory of exactly that size, so that the sanitizer sees each byte too many. */
static inline void *exact_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	must(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* With the holes in a structure: targets fill them. */
static inline int same_bytes(const void *a, const void *b, size_t size)
{
	return !memcmp(a, b, size);
}

#endif /* FUZZ_H */
