// SPDX-License-Identifier: MIT
/*
 * The arena, against a module that keeps a list of what is registered and can
 * be made to refuse it. Each buffer is written to, and must lie within one of
 * the regions on that list.
 */
#include <pthread.h>

#include "fake_module.h"

#define PAGE	4096UL
#define KIB	1024UL
#define MIB	(1024UL * KIB)
#define STEP	(64 * KIB)

/* ------------------------------------------------------------- the module */

#define REGIONS_MAX	65536U

struct range {
	uintptr_t addr;
	size_t length;			/* 0: not registered any more */
};

/* By handle. Threads register at the same time. */
static struct range regions[REGIONS_MAX];
static uint32_t handles, live;
static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;

/* From so many bytes on, registering fails so. */
static size_t refuse_from = SIZE_MAX;
static int refuse_error;

static int add_region(struct rmpool_region_add *add)
{
	volatile char *memory = (char *)(uintptr_t)add->addr;

	if (add->access != RMPOOL_ACCESS_LOCAL_WRITE || add->segment ||
	    add->offset || add->flags || !add->length ||
	    handles + 1 == REGIONS_MAX)
		return -EINVAL;
	if (add->length >= refuse_from) {
		/* As the module may: the pages were brought in already. */
		memory[0] = 1;
		if (refuse_error == ENOMEM)
			add->error.reason = RMPOOL_REASON_MEMLOCK;
		return -refuse_error;
	}
	/* Pinning for writing, which new memory must allow; zeros stay zeros. */
	for (size_t at = 0; at < add->length; at += PAGE) {
		char byte = memory[at];

		memory[at] = byte;
	}
	add->handle = ++handles;
	regions[add->handle] = (struct range){ add->addr, add->length };
	live++;
	return 0;
}

static int del_region(const struct rmpool_handle *handle)
{
	if (!handle->handle || handle->handle > handles ||
	    !regions[handle->handle].length)
		return -ENOENT;
	regions[handle->handle].length = 0;
	live--;
	return 0;
}

static int memory_calls(unsigned long command, void *arg)
{
	int ret = -ENOTTY;

	pthread_mutex_lock(&regions_lock);
	if (command == RMPOOL_IOC_REGION_ADD)
		ret = add_region(arg);
	else if (command == RMPOOL_IOC_REGION_DEL)
		ret = del_region(arg);
	pthread_mutex_unlock(&regions_lock);
	return ret;
}

/* The handle of the one region that has all of it, 0: there is none. */
static uint32_t region_of(const void *memory, size_t length)
{
	uintptr_t addr = (uintptr_t)memory;
	uint32_t found = 0;

	for (uint32_t h = 1; h <= handles; h++)
		if (addr >= regions[h].addr && length <= regions[h].length &&
		    addr - regions[h].addr <= regions[h].length - length) {
			if (found)
				fail_msg("%p is registered twice", memory);
			found = h;
		}
	return found;
}

/* -------------------------------------------------------------- the arena */

static struct rmpool *opened;

static int begin(void **state)
{
	if (set_up(state))
		return -1;
	opened = open_pool();
	answer = memory_calls;
	handles = live = 0;
	refuse_from = SIZE_MAX;
	return 0;
}

static int end(void **state)
{
	assert_int_equal(live, 0);
	rmpool_close(opened);
	return tear_down(state);
}

static struct rmpool_arena *create(uint64_t size, uint64_t step)
{
	const struct rmpool_arena_options options = {
		.size = size, .step = step,
	};
	struct rmpool_arena *arena = NULL;

	assert_int_equal(rmpool_arena_create(opened, &options, &arena), 0);
	assert_non_null(arena);
	return arena;
}

static struct rmpool_arena_info info_of(struct rmpool_arena *arena)
{
	struct rmpool_arena_info info;

	memset(&info, 0xff, sizeof(info));
	rmpool_arena_info(arena, &info);
	for (size_t i = 0; i < sizeof(info.reserved) / sizeof(uint64_t); i++)
		assert_int_equal(info.reserved[i], 0);
	return info;
}

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

static bool is_mapped(const void *memory)
{
	unsigned char in;

	return !mincore((void *)((uintptr_t)memory & ~(PAGE - 1)), 1, &in);
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

/* ------------------------------------------------------------ many threads */

#define THREADS		((size_t)8)
#define AMOUNT		3000
#define SHARED_SIZE	(8 * MIB)

struct buffer {
	unsigned char *memory;
	size_t length;
	unsigned char mark;
};

struct worker {
	struct rmpool_arena *arena;
	struct buffer *buffers;
	uint64_t random;
	pthread_barrier_t *go;
	unsigned int failed;
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static void *allocates(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(w->go);
	for (size_t i = 0; i < AMOUNT; i++) {
		struct buffer *b = &w->buffers[i];
		size_t align = 1UL << next_random(w) % 13;
		void *memory = NULL;

		/* mostly small, some nearly a step, few longer than that */
		b->length = 1 + next_random(w) % 600;
		if (i % 128 == 5)
			b->length = STEP - next_random(w) % 3000;
		if (i % 1024 == 77)
			b->length = STEP + 1;
		b->mark = (unsigned char)(next_random(w) | 1);
		if (rmpool_arena_alloc(w->arena, b->length, align, &memory) ||
		    (uintptr_t)memory % align) {
			w->failed++;
			return NULL;
		}
		b->memory = memory;
		/* nobody has been here, and nobody comes */
		for (size_t at = 0; at < b->length; at++)
			w->failed += b->memory[at] != 0;
		memset(b->memory, b->mark, b->length);
	}
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct buffer *x = a, *y = b;

	return x->memory < y->memory ? -1 : x->memory > y->memory;
}

static void shares_among_threads(void **state)
{
	struct rmpool_arena *arena = create(SHARED_SIZE, STEP);
	struct buffer *all = calloc(THREADS * AMOUNT, sizeof(*all));
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	pthread_barrier_t go;
	struct rmpool_arena_info info;
	uint64_t sum = 0;

	(void)state;
	assert_non_null(all);
	assert_int_equal(pthread_barrier_init(&go, NULL, THREADS + 1), 0);
	for (size_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.arena = arena,
			.buffers = all + i * AMOUNT,
			.random = 0x9e3779b97f4a7c15 * (i + 1),
			.go = &go,
		};
		assert_int_equal(pthread_create(&threads[i], NULL, allocates,
						&workers[i]), 0);
	}
	pthread_barrier_wait(&go);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].failed, 0);
	pthread_barrier_destroy(&go);

	qsort(all, THREADS * AMOUNT, sizeof(*all), by_address);
	for (size_t i = 0; i < THREADS * AMOUNT; i++) {
		const struct buffer *b = &all[i];

		if (i + 1 < THREADS * AMOUNT &&
		    b->length > (size_t)(all[i + 1].memory - b->memory))
			fail_msg("%zu bytes at %p reach into those at %p",
				 b->length, (void *)b->memory,
				 (void *)all[i + 1].memory);
		for (size_t at = 0; at < b->length; at++)
			if (b->memory[at] != b->mark)
				fail_msg("byte %zu of %p was written over", at,
					 (void *)b->memory);
		assert_int_not_equal(region_of(b->memory, b->length), 0);
		sum += b->length;
	}
	/* Both ways were gone: the arena is full, and steps were never lost. */
	info = info_of(arena);
	assert_int_equal(info.registered, SHARED_SIZE);
	assert_true(info.used > SHARED_SIZE - STEP);
	assert_true(info.used + info.fallback_bytes > sum);
	assert_int_equal(live, SHARED_SIZE / STEP + info.fallbacks);
	assert_true(info.fallbacks > THREADS * (AMOUNT / 1024));
	rmpool_arena_destroy(arena);
	for (size_t i = 0; i < THREADS * AMOUNT; i++)
		assert_false(is_mapped(all[i].memory));
	free(all);
}

/* Words as fast as it goes: they fill the arena, each once. */

#define WORDS_SIZE	(32 * MIB)

static void *counts_words(void *arg)
{
	struct worker *w = arg;
	void *memory;

	pthread_barrier_wait(w->go);
	for (size_t i = 0; i < WORDS_SIZE / 8 / THREADS; i++)
		if (rmpool_arena_alloc(w->arena, 8, 8, &memory) ||
		    atomic_fetch_add((_Atomic uint64_t *)memory, 1))
			w->failed++;
	return NULL;
}

static void gives_out_each_word_once(void **state)
{
	struct rmpool_arena *arena = create(WORDS_SIZE, STEP);
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct rmpool_arena_info info;
	pthread_barrier_t go;

	(void)state;
	assert_int_equal(pthread_barrier_init(&go, NULL, THREADS), 0);
	for (size_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .arena = arena, .go = &go };
		assert_int_equal(pthread_create(&threads[i], NULL, counts_words,
						&workers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].failed, 0);
	pthread_barrier_destroy(&go);
	info = info_of(arena);
	assert_int_equal(info.used, WORDS_SIZE);
	assert_int_equal(info.fallbacks, 0);
	assert_int_equal(live, WORDS_SIZE / STEP);
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
		cmocka_unit_test_setup_teardown(shares_among_threads, begin, end),
		cmocka_unit_test_setup_teardown(gives_out_each_word_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
