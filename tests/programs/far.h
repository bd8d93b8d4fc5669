/* SPDX-License-Identifier: MIT */
/*
 * For test programs of two hosts: what host a makes of regions that b publishes, byte by
 * byte, and the words that both have for it. a has a segment "buffer" of its own, which
 * b may use as well.
 */
#ifndef FAR_H
#define FAR_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rmpool.h>
#include "kinds.h"
#include "pattern.h"
#include "report.h"

#define LIMIT		120000		/* ms */
#define AROUND		64UL		/* bytes looked at beside what was got */

/* Both odd; what is before and behind is in no region. */
#define PLACE(which)	((uint64_t)(which) * 16 * MIB + SEGMENT_BASE)

/* What stands somewhere: first, after a's put, after b's change, after b's get. */
enum { FIRST, PUT, CHANGED, GOT, STAGES };

static inline uint64_t seed_of(uint32_t stage, uint32_t which)
{
	return stage * 100 + which;
}

static inline void expect_pattern(struct test *t, const void *at, uint64_t length,
				  uint64_t seed, uint64_t pos, const char *what)
{
	char why[128] = "";

	expect(t, pattern_check(at, length, seed, pos, what, why, sizeof(why)), "%s", why);
}

/* What is beyond the first and the last byte of a region. */
struct beside {
	int64_t from;		/* from its end if @end */
	bool end;
	bool whole;		/* @more bytes more than the region has, else as many as that */
	uint64_t more;
	int remote;		/* errors, where the region is the remote one and the local one */
	int local;
};

static const struct beside beside[] = {
	{ 0, true, false, 1, -ENXIO, -EFAULT },
	{ -1, false, false, 1, -ENXIO, -EFAULT },
	{ -1, false, false, 2, -ENXIO, -EFAULT },
	{ 0, false, true, 1, -ERANGE, -ERANGE },
	{ -1, true, false, 2, -ERANGE, -ERANGE },
};

#define BESIDE	(sizeof(beside) / sizeof(beside[0]))

static inline uint64_t beside_from(const struct beside *x, uint64_t length)
{
	return (x->end ? length : 0) + (uint64_t)x->from;
}

static inline uint64_t beside_length(const struct beside *x, uint64_t length)
{
	return (x->whole ? length : 0) + x->more;
}

/* ------------------------------------------------------------------------ host a */

static struct {
	struct rmpool *pool;
	uint32_t segment;	/* of b */
	size_t size;		/* of its largest region */
	uint8_t *out, *in;	/* registered, @size + 2 bytes; b can reach @out */
} far;

static inline void far_begin(struct rmpool *pool, size_t size)
{
	const size_t all = size + 2 + 2 * AROUND;
	uint32_t mine, region;

	far.pool = pool;
	far.size = size;
	far.out = anonymous(all) + AROUND;
	far.in = anonymous(all) + AROUND;
	if (rmpool_publish(pool, "buffer", &mine) ||
	    rmpool_register(pool, far.out, size + 2, RMPOOL_ACCESS_ALL, mine, 0, &region, NULL) ||
	    rmpool_register(pool, far.in, size + 2, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region,
			    NULL))
		give_up("%s", rmpool_error());
}

/* Opens b's segment; what may be done with each of up to @nr regions that are there goes
 * to @access.
 */
static inline void far_open(const char *name, uint32_t *access, uint32_t nr,
			    uint64_t (*length_of)(uint32_t which))
{
	struct rmpool_region_desc *desc;
	uint32_t there = 0, i;

	if (rmpool_segment_open(far.pool, "b", name, 60000, &far.segment, NULL) ||
	    rmpool_segment_regions(far.pool, far.segment, &desc, &there, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < there; i++) {
		uint32_t which = (uint32_t)(desc[i].offset / (16 * MIB));

		if (which >= nr || desc[i].offset != PLACE(which) ||
		    desc[i].length != length_of(which))
			give_up("a region of %llu bytes at %llu",
				(unsigned long long)desc[i].length,
				(unsigned long long)desc[i].offset);
		access[which] = desc[i].access;
	}
	free(desc);
}

/* All of a region; nothing beside it is written. */
static inline void far_get(struct test *t, uint32_t which, uint64_t length, uint64_t seed)
{
	int ret;

	memset(far.in - AROUND, 0x5a, far.size + 2 + 2 * AROUND);
	ret = rmpool_get(far.pool, far.segment, PLACE(which), far.in + 1, length, LIMIT);
	expect(t, !ret, "get: %s", rmpool_error());
	expect_pattern(t, far.in + 1, length, seed, 0, "what was got");
	for (size_t i = 0; i <= AROUND; i++)
		expect(t, *(far.in - i) == 0x5a && far.in[length + 1 + i] == 0x5a,
		       "a byte %zu beside what was got is there", i);
}

/* Gets what is there first, puts if that is allowed, and tries all that is beside it. */
static inline void far_first_round(struct test *t, uint32_t which, uint64_t size, uint32_t access)
{
	uint64_t seed = seed_of(PUT, which), offset, length;
	bool puts = access & RMPOOL_ACCESS_REMOTE_WRITE;
	int ret;

	far_get(t, which, size, seed_of(FIRST, which));
	pattern_fill(far.out + 1, size, seed, 0);
	ret = rmpool_put(far.pool, far.segment, PLACE(which), far.out + 1, size, LIMIT);
	if (puts)
		expect(t, !ret, "put: %s", rmpool_error());
	else
		expect(t, ret == -EACCES, "put: %d", ret);
	seed = puts ? seed : seed_of(FIRST, which);
	far_get(t, which, size, seed);

	/* The last byte can be reached, and the next one cannot. */
	memset(far.in, 0x5a, 2);
	ret = rmpool_get(far.pool, far.segment, PLACE(which) + size - 1, far.in, 1, LIMIT);
	expect(t, !ret && far.in[0] == far.in[size] && far.in[1] == 0x5a, "the last byte: %d",
	       ret);
	memset(far.out, 0xee, far.size + 2);
	for (size_t i = 0; i < BESIDE; i++) {
		offset = PLACE(which) + beside_from(&beside[i], size);
		length = beside_length(&beside[i], size);
		ret = rmpool_get(far.pool, far.segment, offset, far.in, length, LIMIT);
		expect(t, ret == beside[i].remote, "get of %llu bytes at %llu: %d",
		       (unsigned long long)length, (unsigned long long)offset, ret);
		if (!puts)
			continue;
		ret = rmpool_put(far.pool, far.segment, offset, far.out, length, LIMIT);
		expect(t, ret == beside[i].remote, "put of %llu bytes at %llu: %d",
		       (unsigned long long)length, (unsigned long long)offset, ret);
	}
	far_get(t, which, size, seed);
}

#endif /* FAR_H */
