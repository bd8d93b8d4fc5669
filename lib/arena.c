// SPDX-License-Identifier: MIT
/*
 * The arena: registered memory for many buffers, by a pointer that only moves
 * forward.
 *
 * Registering pins pages, and so brings them in. What is not to be used before
 * it is needed can therefore not be registered at once: the range is reserved
 * without access, and registered step by step, just before the pointer gets
 * there. Each step is a region of its own and a request lies within one region,
 * so no buffer crosses the border of a step.
 *
 * Locking: @next and @ready are all that an allocation touches as long as it
 * fits into what is registered. @ready is moved, by whole steps, under @lock,
 * which also guards the list of pieces; so one thread registers, those that
 * need the same step wait for it, and those that still fit into the last one do
 * not. @next never passes @ready, and never passes a step that could not be
 * registered: a failure leaves no gap. Memory outside of the range is mapped
 * and registered by each caller for itself, without the lock.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_STEP	((size_t)16 << 20)
#define DEFAULT_ALIGN	((size_t)64)	/* no two buffers in one cache line */
#define HUGE_PAGE	((size_t)2 << 20)

/* Something registered: a step of the range, or memory outside of it. */
struct piece {
	struct piece *next;
	char *addr;
	size_t length;			/* mapped there */
	uint32_t region;
	bool outside;
};

struct rmpool_arena {
	atomic_size_t next;		/* where the next buffer may begin */
	atomic_size_t ready;		/* registered from the start, whole steps */
	char *base;
	size_t size;			/* whole steps */
	size_t step;			/* a power of two */
	struct rmpool *pool;
	pthread_mutex_t lock;		/* ready is moved, pieces */
	struct piece *pieces;
	atomic_uint_fast64_t fallbacks;
	atomic_uint_fast64_t fallback_bytes;
};

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static size_t round_up(size_t n, size_t power)
{
	return (n + power - 1) & ~(power - 1);
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Address space without memory, of whole pages, at a multiple of @align, which
 * is a page at least. NULL: there is not so much.
 */
static char *reserve(size_t length, size_t align)
{
	size_t more = align - page_size(), before;
	char *map;

	if (length > SIZE_MAX - more)
		return NULL;
	map = mmap(NULL, length + more, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	before = round_up((uintptr_t)map, align) - (uintptr_t)map;
	if (before)
		munmap(map, before);
	if (more > before)
		munmap(map + before + length, more - before);
	/* cppcheck-suppress deallocret ; what is around it was */
	return map + before;
}

/*
 * Make @length reserved bytes at @addr usable and register the first @used of
 * them, by huge pages where there are any. Fills in @piece; when that fails,
 * the bytes are reserved and no more, as before.
 */
static int open_piece(const struct rmpool_arena *arena, struct piece *piece,
		      char *addr, size_t length, size_t used)
{
	char bytes[RMPL_QUANTITY_MAX];
	int ret;

	if (mprotect(addr, length, PROT_READ | PROT_WRITE))
		return rmpl_fail(ENOMEM, NULL, NULL, "cannot use %s at %p",
				 rmpl_bytes(length, bytes), (void *)addr);
	madvise(addr, length, MADV_HUGEPAGE);
	/* Written to by gets; and what was never touched must become pages of
	 * its own, not the one of zeros.
	 */
	ret = rmpool_register(arena->pool, addr, used,
			      RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &piece->region,
			      NULL);
	if (ret) {
		madvise(addr, length, MADV_DONTNEED);
		mprotect(addr, length, PROT_NONE);
		return ret;
	}
	piece->addr = addr;
	piece->length = length;
	return 0;
}

static int fail_memory(size_t length)
{
	char bytes[RMPL_QUANTITY_MAX];

	return rmpl_fail(ENOMEM, NULL, NULL, "cannot allocate %s of an arena",
			 rmpl_bytes(length, bytes));
}

/* Register the next step, unless the first @end bytes are registered by now. */
static int extend(struct rmpool_arena *arena, size_t end)
{
	struct piece *piece;
	int saved = errno;
	size_t ready;
	int ret = 0;

	pthread_mutex_lock(&arena->lock);
	ready = atomic_load_explicit(&arena->ready, memory_order_relaxed);
	if (end <= ready)
		goto out;
	piece = calloc(1, sizeof(*piece));
	if (!piece) {
		ret = fail_memory(arena->step);
		goto out;
	}
	ret = open_piece(arena, piece, arena->base + ready, arena->step,
			 arena->step);
	if (ret) {
		free(piece);
		goto out;
	}
	piece->next = arena->pieces;
	arena->pieces = piece;
	atomic_store_explicit(&arena->ready, ready + arena->step,
			      memory_order_release);
out:
	pthread_mutex_unlock(&arena->lock);
	errno = saved;
	return ret;
}

/* Memory with a registration of its own. */
static int allocate_outside(struct rmpool_arena *arena, size_t length,
			    size_t align, void **memory)
{
	size_t page = page_size(), mapped = round_up(length, page);
	struct piece *piece;
	int saved = errno;
	char *addr;
	int ret;

	if (align < page)
		align = page;
	if (align < HUGE_PAGE && length >= HUGE_PAGE)
		align = HUGE_PAGE;
	piece = calloc(1, sizeof(*piece));
	/* Rounding up what is nearly all of the address space gives 0. */
	addr = piece && mapped ? reserve(mapped, align) : NULL;
	if (!addr) {
		ret = fail_memory(length);
		goto fail;
	}
	ret = open_piece(arena, piece, addr, mapped, length);
	if (ret) {
		munmap(addr, mapped);
		goto fail;
	}
	piece->outside = true;
	pthread_mutex_lock(&arena->lock);
	piece->next = arena->pieces;
	arena->pieces = piece;
	pthread_mutex_unlock(&arena->lock);
	atomic_fetch_add_explicit(&arena->fallbacks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&arena->fallback_bytes, mapped,
				  memory_order_relaxed);
	*memory = addr;
	errno = saved;
	return 0;

fail:
	free(piece);
	errno = saved;
	return ret;
}

int rmpool_arena_alloc(struct rmpool_arena *arena, size_t length, size_t align,
		       void **memory)
{
	static const struct rmpool_error zero = {
		.reason = RMPOOL_REASON_LENGTH_ZERO,
	};
	size_t next, start, end;
	int ret;

	if (!align)
		align = DEFAULT_ALIGN;
	if (!length)
		return rmpl_fail(EINVAL, &zero, NULL,
				 "cannot allocate from an arena");
	if (!power_of_two(align))
		return rmpl_fail(EINVAL, NULL,
				 "the alignment is not a power of two",
				 "cannot allocate from an arena");
	if (length > arena->step || align > arena->step)
		return allocate_outside(arena, length, align, memory);

	next = atomic_load_explicit(&arena->next, memory_order_acquire);
	for (;;) {
		start = round_up(next, align);
		/* Do the first and the last byte lie in different steps? */
		if ((start ^ (start + length - 1)) >= arena->step)
			start = round_up(start, arena->step);
		end = start + length;
		if (end > arena->size)
			return allocate_outside(arena, length, align, memory);
		if (end > atomic_load_explicit(&arena->ready,
					       memory_order_acquire)) {
			ret = extend(arena, end);
			/* A limit, which something smaller may still meet. */
			if (ret == -ENOMEM)
				return allocate_outside(arena, length, align,
							memory);
			if (ret)
				return ret;
			next = atomic_load_explicit(&arena->next,
						    memory_order_acquire);
			continue;
		}
		/* Whoever sees the new value sees a state of ready behind it. */
		if (atomic_compare_exchange_weak_explicit(&arena->next, &next,
							  end,
							  memory_order_acq_rel,
							  memory_order_acquire))
			break;
	}
	*memory = arena->base + start;
	return 0;
}

int rmpool_arena_create(struct rmpool *pool,
			const struct rmpool_arena_options *options,
			struct rmpool_arena **arenap)
{
	static const char what[] = "cannot create an arena";
	uint64_t step = options->step ? options->step : DEFAULT_STEP;
	static const struct rmpool_error zero = {
		.reason = RMPOOL_REASON_LENGTH_ZERO,
	};
	char bytes[RMPL_QUANTITY_MAX];
	struct rmpool_arena *arena;
	int saved = errno;

	*arenap = NULL;
	for (size_t i = 0; i < sizeof(options->reserved) /
			       sizeof(options->reserved[0]); i++)
		if (options->reserved[i])
			return rmpl_fail(EINVAL, NULL,
					 "a reserved field is not zero", what);
	if (!options->size)
		return rmpl_fail(EINVAL, &zero, NULL, what);
	if (!power_of_two(step) || step < page_size())
		return rmpl_fail(EINVAL, NULL,
				 "the step is not a power of two from the page size on",
				 what);
	arena = calloc(1, sizeof(*arena));
	/* Both fit into a size_t, rounded up as well. */
	if (arena && step <= SIZE_MAX / 2 && options->size <= SIZE_MAX / 2) {
		arena->step = (size_t)step;
		arena->size = round_up((size_t)options->size, arena->step);
		arena->base = reserve(arena->size, arena->step);
	}
	errno = saved;
	if (!arena || !arena->base) {
		free(arena);
		return rmpl_fail(ENOMEM, NULL, NULL,
				 "cannot reserve %s for an arena",
				 rmpl_bytes(options->size, bytes));
	}
	arena->pool = pool;
	pthread_mutex_init(&arena->lock, NULL);
	*arenap = arena;
	return 0;
}

/*
 * Take pieces back: all, or only those outside of the range. That the module
 * fails to unregister one can only mean that the process is killed or is
 * another one after fork(); the pages are then pinned still, and unmapping them
 * does no harm.
 */
static void drop_pieces(struct rmpool_arena *arena, bool all)
{
	struct piece **at = &arena->pieces;
	struct piece *piece;

	while ((piece = *at)) {
		if (!all && !piece->outside) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		rmpool_unregister(arena->pool, piece->region);
		if (piece->outside)
			munmap(piece->addr, piece->length);
		free(piece);
	}
}

void rmpool_arena_reset(struct rmpool_arena *arena)
{
	int saved = errno;

	drop_pieces(arena, false);
	errno = saved;
	atomic_store_explicit(&arena->next, 0, memory_order_release);
	atomic_store_explicit(&arena->fallbacks, 0, memory_order_relaxed);
	atomic_store_explicit(&arena->fallback_bytes, 0, memory_order_relaxed);
}

void rmpool_arena_destroy(struct rmpool_arena *arena)
{
	int saved = errno;

	if (!arena)
		return;
	drop_pieces(arena, true);
	munmap(arena->base, arena->size);
	pthread_mutex_destroy(&arena->lock);
	free(arena);
	errno = saved;
}

void rmpool_arena_info(struct rmpool_arena *arena,
		       struct rmpool_arena_info *info)
{
	*info = (struct rmpool_arena_info){
		.size = arena->size,
		.step = arena->step,
		.used = atomic_load_explicit(&arena->next, memory_order_acquire),
		.registered = atomic_load_explicit(&arena->ready,
						   memory_order_acquire),
		.fallbacks = atomic_load_explicit(&arena->fallbacks,
						  memory_order_relaxed),
		.fallback_bytes = atomic_load_explicit(&arena->fallback_bytes,
						       memory_order_relaxed),
	};
}
