// SPDX-License-Identifier: MIT
/*
 * The reader of the completion ring, against a ring in plain memory that a
 * writer fills as the kernel does.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"

#define ENTRIES 16

struct fake {
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
	_Alignas(64) struct rmpool_completion entries[ENTRIES];
};

static const struct rmpool_ring_setup setup = {
	.entries = ENTRIES,
	.head_offset = offsetof(struct fake, head),
	.tail_offset = offsetof(struct fake, tail),
	.entries_offset = offsetof(struct fake, entries),
	.mmap_size = sizeof(struct fake),
};

/* Write one completion as the kernel does; false when the ring is full. */
static bool write_one(struct fake *fake, uint64_t cookie)
{
	uint32_t tail = atomic_load_explicit(&fake->tail, memory_order_relaxed);
	struct rmpool_completion *entry = &fake->entries[tail & (ENTRIES - 1)];

	if (tail - atomic_load_explicit(&fake->head, memory_order_acquire) ==
	    ENTRIES)
		return false;
	entry->cookie = cookie;
	entry->bytes = ~cookie;
	atomic_store_explicit(&fake->tail, tail + 1, memory_order_release);
	return true;
}

static void fills_and_empties(uint32_t start)
{
	struct rmpool_completion out[ENTRIES + 1];
	struct fake fake = { .head = start, .tail = start };
	uint64_t written = 0, read = 0;
	struct rmpl_ring ring;
	int n;

	assert_int_equal(rmpl_ring_init(&ring, &fake, &setup), 0);
	assert_int_equal(rmpl_ring_unread(&ring), 0);
	assert_int_equal(rmpl_ring_take(&ring, out, ENTRIES), 0);

	/* Amounts that do not divide the size, so that every index is a start. */
	for (uint32_t round = 0; round < 5 * ENTRIES; round++) {
		uint32_t amount = round % ENTRIES + 1;

		for (uint32_t i = 0; i < amount; i++)
			assert_true(write_one(&fake, written++));
		assert_int_equal(rmpl_ring_unread(&ring), amount);
		assert_int_equal(rmpl_ring_take(&ring, out, 0), 0);
		n = rmpl_ring_take(&ring, out, 3);
		assert_int_equal(n, amount < 3 ? amount : 3);
		n += rmpl_ring_take(&ring, out + n, ENTRIES);
		assert_int_equal(n, amount);
		for (int i = 0; i < n; i++, read++) {
			assert_int_equal(out[i].cookie, read);
			assert_int_equal(out[i].bytes, ~read);
		}
		assert_int_equal(fake.head, fake.tail);
		assert_int_equal(rmpl_ring_take(&ring, out, 1), 0);
	}

	/* Full: not one more, and all of it is taken at once. */
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(write_one(&fake, i));
	assert_false(write_one(&fake, 99));
	assert_int_equal(rmpl_ring_unread(&ring), ENTRIES);
	assert_int_equal(rmpl_ring_take(&ring, out, ENTRIES + 1), ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(out[i].cookie, i);
	rmpl_ring_destroy(&ring);
}

static void works_from_zero(void **state)
{
	(void)state;
	fills_and_empties(0);
}

/* The counters pass 2^32 in the first rounds. */
static void works_across_the_wrap(void **state)
{
	(void)state;
	for (uint32_t before = 1; before <= ENTRIES + 1; before++)
		fills_and_empties(0u - before);
}

static void survives_broken_counters(void **state)
{
	struct rmpool_completion out[ENTRIES];
	struct fake fake = { .head = 0, .tail = 0 };
	struct rmpl_ring ring;

	(void)state;
	assert_int_equal(rmpl_ring_init(&ring, &fake, &setup), 0);
	/* The tail is out of reach: nothing is read, nothing is moved. */
	atomic_store(&fake.tail, ENTRIES + 1);
	assert_int_equal(rmpl_ring_unread(&ring), ENTRIES);
	assert_int_equal(rmpl_ring_take(&ring, out, ENTRIES), -EIO);
	assert_int_equal(fake.head, 0);
	atomic_store(&fake.tail, 0u - 1);
	assert_int_equal(rmpl_ring_take(&ring, out, ENTRIES), -EIO);

	/* The shared head was written over: our own counts. */
	atomic_store(&fake.tail, 2);
	atomic_store(&fake.head, 77);
	assert_int_equal(rmpl_ring_take(&ring, out, ENTRIES), 2);
	assert_int_equal(fake.head, 2);
	rmpl_ring_destroy(&ring);
}

static void refuses_wrong_descriptions(void **state)
{
	struct fake fake = { .head = 0 };
	struct rmpool_ring_setup s;
	struct rmpl_ring ring;

	(void)state;
#define REFUSED(field, value) do { \
	s = setup; \
	s.field = (value); \
	assert_int_equal(rmpl_ring_init(&ring, &fake, &s), -EPROTO); \
} while (0)
	REFUSED(entries, 0);
	REFUSED(entries, RMPOOL_RING_MIN / 2);
	REFUSED(entries, ENTRIES - 1);
	REFUSED(entries, ENTRIES * 2);		/* longer than the mapping */
	REFUSED(entries, RMPOOL_RING_MAX * 2);
	REFUSED(head_offset, 1);
	REFUSED(head_offset, sizeof(struct fake));
	REFUSED(tail_offset, 66);
	REFUSED(tail_offset, 0xfffffffc);
	REFUSED(entries_offset, offsetof(struct fake, entries) + 4);
	REFUSED(entries_offset, offsetof(struct fake, entries) + 8);
	REFUSED(mmap_size, sizeof(struct fake) - 1);
	REFUSED(mmap_size, 0);
#undef REFUSED
}

/* One writer and several takers: each completion is seen exactly once. */

#define TAKERS 3
#define AMOUNT 300000u

struct shared {
	struct fake fake;
	struct rmpl_ring ring;
	_Atomic uint32_t taken;
	_Atomic unsigned char seen[AMOUNT];
	_Atomic uint32_t wrong;
};

static void *taker(void *arg)
{
	struct rmpool_completion out[5];
	struct shared *s = arg;
	uint64_t last = 0;
	bool any = false;
	int n;

	while (s->taken < AMOUNT) {
		n = rmpl_ring_take(&s->ring, out, 5);
		if (n < 0) {
			s->wrong++;
			return NULL;
		}
		if (!n)
			sched_yield();
		for (int i = 0; i < n; i++) {
			/* Whole entries, and in order for each taker. */
			if (out[i].bytes != ~out[i].cookie ||
			    out[i].cookie >= AMOUNT ||
			    (any && out[i].cookie <= last) ||
			    s->seen[out[i].cookie]++) {
				s->wrong++;
				return NULL;
			}
			last = out[i].cookie;
			any = true;
		}
		s->taken += (uint32_t)n;
	}
	return NULL;
}

static void shares_among_threads(void **state)
{
	struct shared *s = calloc(1, sizeof(*s));
	pthread_t threads[TAKERS];

	(void)state;
	assert_non_null(s);
	/* Across the wrap as well. */
	s->fake.head = s->fake.tail = 0u - AMOUNT / 2;
	assert_int_equal(rmpl_ring_init(&s->ring, &s->fake, &setup), 0);
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, taker, s), 0);
	for (uint64_t cookie = 0; cookie < AMOUNT && !s->wrong;) {
		if (write_one(&s->fake, cookie))
			cookie++;
		else
			sched_yield();
	}
	/* A taker that gave up would keep the others waiting for ever. */
	if (s->wrong)
		s->taken = AMOUNT;
	for (int i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s->wrong, 0);
	for (uint32_t i = 0; i < AMOUNT; i++)
		assert_int_equal(s->seen[i], 1);
	rmpl_ring_destroy(&s->ring);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(works_from_zero),
		cmocka_unit_test(works_across_the_wrap),
		cmocka_unit_test(survives_broken_counters),
		cmocka_unit_test(refuses_wrong_descriptions),
		cmocka_unit_test(shares_among_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
