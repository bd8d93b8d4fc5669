/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: numbers that look random and can be had again, and
 * how much of something is enough.
 *
 * Suites of pure files also run on the host, with tests/unit/kernel/ in place
 * of the kernel's headers; there they do more rounds. The seed is the module's
 * parameter @seed, on the host RMPOOL_SEED; each suite says which one it has.
 * Each case begins with the same numbers, so one alone does what it does
 * between the others.
 */
#ifndef RMP_SUITE_H
#define RMP_SUITE_H

#include <kunit/test.h>

#ifdef __KERNEL__
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

static unsigned long seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is random in the tests (0: another each time)");

static inline void suite_seed(void)
{
	if (!seed)
		seed = get_random_u32();
}

/* For what another thread does, in jiffies: its processor is emulated, and may stand still
 * while others go on. KUnit gives a case 300 seconds.
 */
#define PATIENCE	(120 * HZ)
#else
#include <stdlib.h>
#include <time.h>

static unsigned long seed;

static inline void suite_seed(void)
{
	const char *given = getenv("RMPOOL_SEED");

	seed = given ? strtoul(given, NULL, 0) : (unsigned long)time(NULL);
}
#endif

/* How often: in VMs processors are emulated, and each access is checked. */
static inline u32 many(u32 kernel, u32 host)
{
#ifdef __KERNEL__
	return kernel;
#else
	return host;
#endif
}

static u64 suite_state;

/* For &struct kunit_suite. */
static inline int suite_begin(struct kunit_suite *suite)
{
	suite_seed();
	pr_info("%s: seed=%lu\n", suite->name, seed);
	return 0;
}

static inline int suite_case(struct kunit *test)
{
	/* Anything but 0. */
	suite_state = seed * 0x9e3779b97f4a7c15ULL | 1;
	return 0;
}

static inline u64 next_random(void)
{
	suite_state ^= suite_state << 13;
	suite_state ^= suite_state >> 7;
	suite_state ^= suite_state << 17;
	return suite_state;
}

/* From 0 to @n - 1, uniform enough. */
static inline u64 below(u64 n)
{
	return (next_random() >> 8) % n;
}

static inline void random_bytes(void *mem, size_t len)
{
	u8 *p = mem;

	while (len--)
		*p++ = (u8)(next_random() >> 24);
}

/* With the holes in a structure: tests fill them. */
static inline bool same_bytes(const void *a, const void *b, size_t size)
{
	return !memcmp(a, b, size);
}

#define ASSERT_SAME(test, a, b, size) \
	KUNIT_ASSERT_TRUE(test, same_bytes(a, b, size))

/* Little endian. */
static inline u64 number_at(const u8 *p, int size)
{
	u64 n = 0;

	while (size--)
		n = n << 8 | p[size];
	return n;
}

#define ASSERT_AT(test, buf, at, size, value) \
	KUNIT_ASSERT_EQ(test, number_at((buf) + (at), size), (u64)(value))

#endif /* RMP_SUITE_H */
