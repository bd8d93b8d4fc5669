/* SPDX-License-Identifier: MIT */
/*
 * What the files of the library share. Names begin with rmpl_, so that they do
 * not meet those of a program that is linked with the static library.
 */
#ifndef RMPOOL_INTERNAL_H
#define RMPOOL_INTERNAL_H

#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64	/* mmap offsets are 64 bits on every machine */
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmpool.h>

#ifndef RMPOOL_VERSION
#define RMPOOL_VERSION "0.1.0"
#endif

/* ---------------------------------------------------------------- error.c */

/* Room for one quantity as text. */
#define RMPL_QUANTITY_MAX 32
/* Room for a reason that is made of numbers. */
#define RMPL_WHY_MAX 160

/* Write @bytes exactly, in the largest unit that divides it: "64 MiB". */
const char *rmpl_bytes(uint64_t bytes, char text[RMPL_QUANTITY_MAX]);

/*
 * Set the error of this thread to "<format...>: <why>" and return -@err. What
 * goes for why: the reason in @detail with its numbers, where there is one;
 * else @why, if not NULL; else what the errno means.
 */
int rmpl_fail(int err, const struct rmpool_error *detail, const char *why,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ----------------------------------------------------------------- ring.c */

/*
 * The reader of a completion ring. @shared_head and @shared_tail lie in the
 * mapping; @head is what counts for us, so that a program which writes over
 * the mapping by mistake cannot make us read outside of it.
 */
struct rmpl_ring {
	_Atomic uint32_t *shared_head;
	_Atomic uint32_t *shared_tail;
	const struct rmpool_completion *entries;
	uint32_t mask;
	_Atomic uint32_t head;
	pthread_mutex_t lock;	/* one taker at a time */
};

/* @setup: as the kernel filled it in for the mapping at @map; checked here.
 * Returns 0, or -EPROTO when it does not describe a ring.
 */
int rmpl_ring_init(struct rmpl_ring *ring, void *map,
		   const struct rmpool_ring_setup *setup);
void rmpl_ring_destroy(struct rmpl_ring *ring);

/* How many completions are unread, at most as many as the ring has entries. */
uint32_t rmpl_ring_unread(const struct rmpl_ring *ring);

/* Take up to @max. Returns how many, or -EIO when the counters are broken. */
int rmpl_ring_take(struct rmpl_ring *ring, struct rmpool_completion *out,
		   uint32_t max);

/* ----------------------------------------------------------------- pool.c */

struct rmpool {
	int fd;
	pthread_mutex_t lock;		/* set-up of the ring */
	atomic_bool has_ring;		/* set last, with release */
	struct rmpl_ring ring;
	void *map;
	size_t map_size;
};

/* The only place that calls ioctl(). Returns 0 or a negative errno. */
int rmpl_ioctl(struct rmpool *pool, unsigned long command, void *argument);

/* Why an ioctl failed, where the errno alone would not tell; else NULL. */
const char *rmpl_ioctl_why(int err);

/* Milliseconds of the library to nanoseconds of the kernel. */
int64_t rmpl_timeout(int ms);

/* -------------------------------------------------------------- address.c */

/* Copy a name into a zeroed field of the ABI; false when it does not fit or is
 * empty.
 */
bool rmpl_name_copy(char field[RMPOOL_NAME_MAX], const char *name);

#endif /* RMPOOL_INTERNAL_H */
