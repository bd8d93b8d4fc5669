// SPDX-License-Identifier: MIT
/*
 * The arena in many threads: no two buffers have a byte in common, each lies in
 * a region, and nothing is lost.
 */
#include "fake_memory.h"

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
		cmocka_unit_test_setup_teardown(shares_among_threads, begin, end),
		cmocka_unit_test_setup_teardown(gives_out_each_word_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
