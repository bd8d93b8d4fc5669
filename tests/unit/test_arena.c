// SPDX-License-Identifier: MIT
/*
 * The arena: what it registers and when, where buffers lie, errors. Each buffer
 * is written to, and must lie within one of the regions that the module has.
 */
#include "fake_memory.h"

static char *allocate(struct rmpool_arena *arena, size_t length, size_t align)
{
	void *memory = NULL;

	errno = 77;
	assert_int_equal(rmpool_arena_alloc(arena, length, align, &memory), 0);
	assert_int_equal(errno, 77);
	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % (align ? align : 64), 0);
	assert_int_not_equal(region_of(memory, length), 0);
	for (size_t i = 0; i < length; i += PAGE)
		assert_int_equal(((char *)memory)[i], 0);
	memset(memory, 0xa5, length);
	return memory;
}

/* An allocation that fails changes nothing. */
static void refuses(struct rmpool_arena *arena, size_t length, size_t align,
		    int err)
{
	const struct rmpool_arena_info before = info_of(arena);
	struct rmpool_arena_info after;
	uint32_t live_before = live;
	void *memory = &memory;

	errno = 77;
	assert_int_equal(rmpool_arena_alloc(arena, length, align, &memory),
			 -err);
	assert_int_equal(errno, 77);
	assert_ptr_equal(memory, &memory);
	assert_int_equal(live, live_before);
	after = info_of(arena);
	assert_memory_equal(&before, &after, sizeof(before));
}

/* Reserved, but not for use. */
static bool out_of_reach(const void *memory)
{
	ssize_t n = pwrite(memory_file, memory, 1, 0);

	return n < 0 && errno == EFAULT;
}

static size_t resident(const void *memory, size_t length)
{
	static unsigned char in[65536];
	size_t n = 0;

	assert_true(length / PAGE <= sizeof(in));
	assert_int_equal(mincore((void *)(uintptr_t)memory, length, in), 0);
	for (size_t i = 0; i < length / PAGE; i++)
		n += in[i] & 1;
	return n * PAGE;
}

/* ------------------------------------------------------------------- tests */

static void says_what_it_cannot_create(void **state)
{
	static const struct {
		struct rmpool_arena_options options;
		int err;
		const char *text;
	} all[] = {
		{ { .size = 0 }, EINVAL, "the length is 0" },
		{ { .size = 1, .step = PAGE / 2 }, EINVAL, "power of two" },
		{ { .size = 1, .step = 3 * PAGE }, EINVAL, "power of two" },
		{ { .size = 1, .reserved[5] = 1 }, EINVAL, "reserved" },
		{ { .size = 1ULL << 60 }, ENOMEM, "cannot reserve 1 EiB" },
		{ { .size = 1, .step = 1ULL << 62 }, ENOMEM, "cannot reserve" },
		{ { .size = 1, .step = 1ULL << 63 }, ENOMEM, "cannot reserve" },
		{ { .size = UINT64_MAX }, ENOMEM, "cannot reserve" },
		{ { .size = UINT64_MAX, .step = PAGE }, ENOMEM, "cannot reserve" },
		{ { .size = SIZE_MAX / 2, .step = 1ULL << 62 }, ENOMEM,
		  "cannot reserve" },
	};
	struct rmpool_arena *arena;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		arena = (void *)&arena;
		errno = 77;
		assert_int_equal(rmpool_arena_create(opened, &all[i].options,
						     &arena), -all[i].err);
		assert_int_equal(errno, 77);
		assert_null(arena);
		says(all[i].text);
	}
	assert_int_equal(calls, 0);
	rmpool_arena_destroy(NULL);
}

static void rounds_up_to_whole_steps(void **state)
{
	struct rmpool_arena *arena = create(1, 0);

	(void)state;
	assert_int_equal(info_of(arena).step, 16 * MIB);
	assert_int_equal(info_of(arena).size, 16 * MIB);
	rmpool_arena_destroy(arena);
	arena = create(STEP + 1, STEP);
	assert_int_equal(info_of(arena).size, 2 * STEP);
	rmpool_arena_destroy(arena);
	arena = create(2 * STEP, STEP);
	assert_int_equal(info_of(arena).size, 2 * STEP);
	rmpool_arena_destroy(arena);
	assert_int_equal(calls, 0);
}

/* Of 64 MiB, only what is given out is registered, and has memory. */
static void takes_memory_step_by_step(void **state)
{
	struct rmpool_arena *arena = create(64 * MIB, STEP);
	char *first = allocate(arena, 1, 0);

	(void)state;
	assert_int_equal(live, 1);
	assert_int_equal(info_of(arena).registered, STEP);
	assert_int_equal(info_of(arena).used, 1);
	assert_int_equal(resident(first, 64 * MIB), STEP);

	assert_ptr_equal(allocate(arena, 100, 1), first + 1);
	assert_ptr_equal(allocate(arena, 100, 0), first + 128);
	assert_int_equal(calls, 1);
	assert_int_equal(info_of(arena).used, 228);

	/* exactly to the border, then over it */
	assert_ptr_equal(allocate(arena, STEP - 228, 1), first + 228);
	assert_int_equal(live, 1);
	assert_ptr_equal(allocate(arena, 1, 1), first + STEP);
	assert_int_equal(live, 2);
	assert_int_equal(resident(first, 64 * MIB), 2 * STEP);

	/* a whole step, behind a gap, in one region */
	assert_ptr_equal(allocate(arena, STEP, 1), first + 2 * STEP);
	assert_int_equal(live, 3);
	assert_ptr_equal(allocate(arena, STEP - 1, 2), first + 3 * STEP);
	assert_ptr_equal(allocate(arena, 2, 1), first + 4 * STEP);
	assert_int_equal(info_of(arena).used, 4 * STEP + 2);
	assert_int_equal(info_of(arena).registered, 5 * STEP);
	assert_int_equal(info_of(arena).fallbacks, 0);
	assert_int_equal(calls, 5);

	rmpool_arena_destroy(arena);
	for (size_t at = 0; at < 64 * MIB; at += STEP)
		assert_false(is_mapped(first + at));
}

static void aligns_to_each_power_of_two(void **state)
{
	static const size_t lengths[] = { 1, 63, 64, 65, PAGE + 1, STEP, STEP + 1 };
	struct rmpool_arena *arena = create(64 * MIB, STEP);
	uint64_t fallbacks = 0;

	(void)state;
	for (size_t align = 1; align <= 1UL << 32; align *= 2) {
		allocate(arena, 1, 1);	/* an odd place to begin from */
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			allocate(arena, lengths[i], align);
		/* outside: all that is aligned to more than a step, and what is longer */
		fallbacks += align > STEP ? 7 : 1;
		assert_int_equal(info_of(arena).fallbacks, fallbacks);
	}
	rmpool_arena_destroy(arena);
}

static void refuses_what_cannot_be(void **state)
{
	static const struct {
		size_t length, align;
	} sizes[] = {
		{ SIZE_MAX, 1 }, { SIZE_MAX - PAGE + 1, 1 }, { SIZE_MAX - PAGE, 1 },
		{ SIZE_MAX - PAGE, 2 * MIB }, { SIZE_MAX / 2, SIZE_MAX / 2 + 1 },
		{ SIZE_MAX / 2 + 2, SIZE_MAX / 2 + 1 }, { 1, SIZE_MAX / 2 + 1 },
	};
	struct rmpool_arena *arena = create(MIB, STEP);

	(void)state;
	refuses(arena, 0, 64, EINVAL);
	assert_int_equal(rmpool_error_detail()->reason,
			 RMPOOL_REASON_LENGTH_ZERO);
	refuses(arena, 1, 3, EINVAL);
	says("not a power of two");
	refuses(arena, 1, SIZE_MAX, EINVAL);
	allocate(arena, 1, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		refuses(arena, sizes[i].length, sizes[i].align, ENOMEM);
		says("cannot allocate");
		says("of an arena");
	}
	assert_int_equal(calls, 1);
	rmpool_arena_destroy(arena);
}

/* Full, too long: a registration of its own, of exactly these bytes. */
static void falls_back(void **state)
{
	struct rmpool_arena *arena = create(2 * STEP, STEP);
	char *first = allocate(arena, 1, 1), *own, *large;
	struct rmpool_arena_info info;
	struct range range;

	(void)state;
	large = allocate(arena, STEP + 1, 1);
	range = regions[region_of(large, STEP + 1)];
	assert_int_equal(range.addr, (uintptr_t)large);
	assert_int_equal(range.length, STEP + 1);
	info = info_of(arena);
	assert_int_equal(info.used, 1);
	assert_int_equal(info.registered, STEP);
	assert_int_equal(info.fallbacks, 1);
	assert_int_equal(info.fallback_bytes, STEP + PAGE);

	assert_ptr_equal(allocate(arena, STEP, 1), first + STEP);
	own = allocate(arena, 1, 1);
	assert_true(own < first || own >= first + 2 * STEP);
	info = info_of(arena);
	assert_int_equal(info.used, info.size);
	assert_int_equal(info.fallbacks, 2);
	assert_int_equal(info.fallback_bytes, STEP + 2 * PAGE);
	assert_int_equal(live, 4);

	/* two registrations that are whole huge pages, where there are some */
	assert_int_equal((uintptr_t)allocate(arena, 2 * MIB, 1) % (2 * MIB), 0);
	assert_int_equal((uintptr_t)allocate(arena, 3 * MIB, 1) % (2 * MIB), 0);

	rmpool_arena_destroy(arena);
	assert_int_equal(live, 0);
	assert_false(is_mapped(first));
	assert_false(is_mapped(own));
	assert_false(is_mapped(large));
	assert_false(is_mapped(large + STEP));
}

/* A full arena goes on giving out what still fits. */
static void fills_the_rest(void **state)
{
	struct rmpool_arena *arena = create(STEP, STEP);
	char *first = allocate(arena, STEP - 10, 1);

	(void)state;
	allocate(arena, 11, 1);
	assert_int_equal(info_of(arena).fallbacks, 1);
	assert_ptr_equal(allocate(arena, 10, 1), first + STEP - 10);
	assert_int_equal(info_of(arena).fallbacks, 1);
	allocate(arena, 1, 1);
	assert_int_equal(info_of(arena).fallbacks, 2);
	rmpool_arena_destroy(arena);
}

/* A step that meets a limit: what is smaller may go on alone. */
static void meets_a_limit(void **state)
{
	struct rmpool_arena *arena = create(4 * STEP, STEP);
	char *first = allocate(arena, 10, 1), *next;

	(void)state;
	refuse_from = STEP / 2;
	refuse_error = ENOMEM;
	/* what is registered needs nothing */
	assert_ptr_equal(allocate(arena, STEP - 20, 1), first + 10);
	next = allocate(arena, 20, 1);
	assert_int_equal(info_of(arena).fallbacks, 1);
	assert_true(next < first || next >= first + 4 * STEP);
	refuses(arena, STEP / 2, 1, ENOMEM);
	says("RLIMIT_MEMLOCK");
	says("cannot register 32 KiB");
	refuses(arena, STEP, 1, ENOMEM);
	refuses(arena, 2 * STEP, 1, ENOMEM);
	refuses(arena, STEP, 2 * STEP, ENOMEM);
	refuses(arena, 2 * MIB, 1, ENOMEM);
	/* and leaves no memory behind */
	assert_int_equal(resident(first, 4 * STEP), STEP);
	assert_false(out_of_reach(first + STEP - 1));
	assert_true(out_of_reach(first + STEP));

	/* it is tried again, and as if nothing had been */
	assert_ptr_equal(allocate(arena, 10, 1), first + STEP - 10);
	refuse_from = SIZE_MAX;
	assert_ptr_equal(allocate(arena, STEP, 1), first + STEP);
	assert_int_equal(info_of(arena).fallbacks, 1);
	rmpool_arena_destroy(arena);
}

/* Other errors are not for something smaller to try: one call each. */
static void passes_errors_on(void **state)
{
	static const int errors[] = { EINTR, ENODEV, EPERM, EFAULT };
	struct rmpool_arena *arena = create(4 * STEP, STEP);
	char *first;

	(void)state;
	refuse_from = 0;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		refuse_error = errors[i];
		calls = 0;
		refuses(arena, 1, 1, errors[i]);
		assert_int_equal(calls, 1);
		refuses(arena, STEP + 1, 1, errors[i]);
		assert_int_equal(calls, 2);
	}
	refuse_from = SIZE_MAX;
	first = allocate(arena, 1, 1);
	assert_int_equal(resident(first, 4 * STEP), STEP);
	rmpool_arena_destroy(arena);
}

static void begins_anew(void **state)
{
	struct rmpool_arena *arena = create(2 * STEP, STEP);
	char *first = allocate(arena, STEP, 1), *own;
	struct rmpool_arena_info info;
	void *again;

	(void)state;
	rmpool_arena_reset(arena);
	info = info_of(arena);
	assert_int_equal(info.used, 0);
	assert_int_equal(info.registered, STEP);

	for (int round = 0; round < 3; round++) {
		/* what is in it is what was in it */
		assert_int_equal(rmpool_arena_alloc(arena, 100, 1, &again), 0);
		assert_ptr_equal(again, first);
		assert_int_equal(first[99], (char)0xa5);
		assert_int_equal(rmpool_arena_alloc(arena, STEP, 1, &again), 0);
		assert_ptr_equal(again, first + STEP);
		own = allocate(arena, 2 * PAGE, 1);
		assert_int_equal(live, 3);
		assert_int_equal(info_of(arena).fallbacks, 1);
		assert_int_equal(info_of(arena).fallback_bytes, 2 * PAGE);
		rmpool_arena_reset(arena);
		assert_false(is_mapped(own));
		info = info_of(arena);
		assert_int_equal(live, 2);
		assert_int_equal(info.used, 0);
		assert_int_equal(info.registered, 2 * STEP);
		assert_int_equal(info.fallbacks, 0);
		assert_int_equal(info.fallback_bytes, 0);
	}
	/* nothing was registered twice */
	assert_int_equal(handles, 2 + 3);
	rmpool_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_what_it_cannot_create, begin, end),
		cmocka_unit_test_setup_teardown(rounds_up_to_whole_steps, begin, end),
		cmocka_unit_test_setup_teardown(takes_memory_step_by_step, begin, end),
		cmocka_unit_test_setup_teardown(aligns_to_each_power_of_two, begin, end),
		cmocka_unit_test_setup_teardown(refuses_what_cannot_be, begin, end),
		cmocka_unit_test_setup_teardown(falls_back, begin, end),
		cmocka_unit_test_setup_teardown(fills_the_rest, begin, end),
		cmocka_unit_test_setup_teardown(meets_a_limit, begin, end),
		cmocka_unit_test_setup_teardown(passes_errors_on, begin, end),
		cmocka_unit_test_setup_teardown(begins_anew, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
