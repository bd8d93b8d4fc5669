/* SPDX-License-Identifier: MIT */
/*
 * As much of the kernel as keycache.c stands on, for a program on the host: one
 * thread, red-black trees of libbsd for maple tree and xarray, RCU that frees at
 * the end of the outermost section. The Makefile makes a header of each name
 * that keycache.c includes, which includes this one.
 *
 * host_fail_after makes an allocation fail: the one after so many others.
 * host_slow makes need_resched() true.
 */
#ifndef RMP_HOST_KERNEL_H
#define RMP_HOST_KERNEL_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <bsd/sys/tree.h>
#include "wire_user.h"

/* Words */

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX
#define BITS_PER_LONG		64
#define BIT(n)			(1UL << (n))
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile typeof(x) *)&(x) = (value))
#define smp_store_release(p, value) (*(p) = (value))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define check_add_overflow(a, b, sum) __builtin_add_overflow(a, b, sum)
#define struct_size(p, member, n) \
	(sizeof(*(p)) + sizeof((p)->member[0]) * (size_t)(n))
#define hweight32(x)		((u32)__builtin_popcount(x))

#undef static_assert
#define static_assert(condition) _Static_assert(condition, #condition)

static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

#define MAX_ERRNO		4095
#define ERR_PTR(error)		((void *)(long)(error))
#define PTR_ERR(p)		((long)(p))
#define IS_ERR(p)		((unsigned long)(p) >= (unsigned long)-MAX_ERRNO)

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

/* Only their names are needed. */
typedef struct { u8 b[16]; } uuid_t;
struct workqueue_struct;

/* Scheduling */

static bool host_slow;
#define cond_resched()		do { } while (0)
#define need_resched()		host_slow

/* Memory */

typedef int gfp_t;
#ifndef GFP_KERNEL
#define GFP_KERNEL		0
#endif
#define __GFP_NOFAIL		1

static unsigned long host_fail_after = ULONG_MAX;

static inline void *host_alloc(size_t size, gfp_t gfp)
{
	if (!(gfp & __GFP_NOFAIL) && host_fail_after != ULONG_MAX &&
	    !host_fail_after--) {
		host_fail_after = ULONG_MAX;
		return NULL;
	}
	return calloc(1, size);
}

#define kzalloc(size, gfp)	host_alloc(size, gfp)
#define kvmalloc(size, gfp)	host_alloc(size, gfp)
#define kvmalloc_array(n, size, gfp) host_alloc((size_t)(n) * (size), gfp)
#define kvfree(mem)		free(mem)
#ifndef kfree
#define kfree(mem)		free(mem)
#endif

/* References */

typedef struct { unsigned int refs; } refcount_t;

static inline void refcount_set(refcount_t *r, unsigned int n)
{
	r->refs = n;
}

static inline unsigned int refcount_read(const refcount_t *r)
{
	return r->refs;
}

static inline void refcount_inc(refcount_t *r)
{
	assert(r->refs);
	r->refs++;
}

static inline bool refcount_inc_not_zero(refcount_t *r)
{
	if (!r->refs)
		return false;
	r->refs++;
	return true;
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	assert(r->refs);
	return !--r->refs;
}

typedef struct { int counter; } atomic_t;
#define atomic_inc(a)		((a)->counter++)
#define atomic_read(a)		((a)->counter)

/* RCU: what is freed in a section lives until the outermost one ends. */

struct rcu_head {
	struct rcu_head *next;
	void *memory;
};

#define __rcu
static unsigned int host_rcu_depth;
static struct rcu_head *host_rcu_waiting;

static inline void rcu_barrier(void)
{
	struct rcu_head *head;

	assert(!host_rcu_depth);
	while ((head = host_rcu_waiting)) {
		host_rcu_waiting = head->next;
		free(head->memory);
	}
}

static inline void host_free_later(struct rcu_head *head, void *memory)
{
	head->memory = memory;
	head->next = host_rcu_waiting;
	host_rcu_waiting = head;
	if (!host_rcu_depth)
		rcu_barrier();
}

static inline void rcu_read_lock(void)
{
	host_rcu_depth++;
}

static inline void rcu_read_unlock(void)
{
	assert(host_rcu_depth);
	if (!--host_rcu_depth)
		rcu_barrier();
}

#define kvfree_rcu(p, member)	host_free_later(&(p)->member, p)
#define kfree_rcu(p, member)	host_free_later(&(p)->member, p)
#define rcu_dereference(p)	(assert(host_rcu_depth), (p))
#define rcu_dereference_protected(p, condition) (p)
#define rcu_assign_pointer(p, value) ((p) = (value))
#define RCU_INIT_POINTER(p, value) ((p) = (value))

/* Both trees: ranges that do not overlap. */

struct host_entry {
	RB_ENTRY(host_entry) node;
	unsigned long first, last;
	void *value;
};

static inline int host_compare(const struct host_entry *a, const struct host_entry *b)
{
	return a->first < b->first ? -1 : a->first > b->first;
}

RB_HEAD(host_tree, host_entry);
RB_GENERATE_INTERNAL(host_tree, host_entry, node, host_compare, static inline)

/* The entry with the last byte nearest to @index from above, or over it. */
static inline struct host_entry *host_at_or_after(struct host_tree *tree,
						  unsigned long index)
{
	struct host_entry *e = RB_ROOT(tree), *best = NULL;

	while (e) {
		if (e->last >= index) {
			best = e;
			e = RB_LEFT(e, node);
		} else {
			e = RB_RIGHT(e, node);
		}
	}
	return best;
}

static inline int host_insert(struct host_tree *tree, unsigned long first,
			      unsigned long last, void *value, gfp_t gfp,
			      int occupied)
{
	struct host_entry *e = host_at_or_after(tree, first);

	if (e && e->first <= last)
		return occupied;
	e = host_alloc(sizeof(*e), gfp);
	if (!e)
		return -ENOMEM;
	e->first = first;
	e->last = last;
	e->value = value;
	RB_INSERT(host_tree, tree, e);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is in the tree */
	return 0;
}

static inline void host_destroy(struct host_tree *tree)
{
	struct host_entry *e;

	while ((e = RB_ROOT(tree))) {
		RB_REMOVE(host_tree, tree, e);
		free(e);
	}
}

/* linux/maple_tree.h */

struct maple_tree {
	struct host_tree tree;
};

struct ma_state {
	struct maple_tree *tree;
	unsigned long index;
	bool over;
};

#define MT_FLAGS_USE_RCU	0
#define MA_STATE(name, mt, first, end) \
	struct ma_state name = { .tree = (mt), .index = (first) }
#define mt_init_flags(mt, flags)	RB_INIT(&(mt)->tree)
#define mtree_lock(mt)			do { } while (0)
#define mtree_unlock(mt)		do { } while (0)
#define mtree_destroy(mt)		host_destroy(&(mt)->tree)
#define mas_pause(mas)			do { } while (0)

static inline void *mtree_load(struct maple_tree *mt, unsigned long index)
{
	struct host_entry *e = host_at_or_after(&mt->tree, index);

	return e && e->first <= index ? e->value : NULL;
}

static inline int mtree_insert_range(struct maple_tree *mt, unsigned long first,
				     unsigned long last, void *value, gfp_t gfp)
{
	return host_insert(&mt->tree, first, last, value, gfp, -EEXIST);
}

/* Only for a whole entry that is there: to take it out, or to put another in its place. */
static inline int mtree_store_range(struct maple_tree *mt, unsigned long first,
				    unsigned long last, void *value, gfp_t gfp)
{
	struct host_entry *e = host_at_or_after(&mt->tree, first);

	(void)gfp;
	assert(e && e->first == first && e->last == last);
	if (value) {
		e->value = value;
		return 0;
	}
	RB_REMOVE(host_tree, &mt->tree, e);
	free(e);
	return 0;
}

/* Only from the end. */
static inline void *mas_prev(struct ma_state *mas, unsigned long least)
{
	struct host_entry *e = RB_MAX(host_tree, &mas->tree->tree);

	assert(mas->index == ULONG_MAX && !least);
	return e ? e->value : NULL;
}

static inline void *host_mas_find(struct ma_state *mas)
{
	struct host_entry *e;

	assert(host_rcu_depth);
	if (mas->over)
		return NULL;
	e = host_at_or_after(&mas->tree->tree, mas->index);
	if (!e)
		return NULL;
	mas->over = e->last == ULONG_MAX;
	mas->index = e->last + 1;
	return e->value;
}

#define mas_for_each(mas, value, end) \
	while (((value) = host_mas_find(mas)))

/* linux/xarray.h */

struct xarray {
	struct host_tree tree;
};

#define xa_init(xa)		RB_INIT(&(xa)->tree)
#define xa_destroy(xa)		host_destroy(&(xa)->tree)

static inline void *xa_load(struct xarray *xa, unsigned long index)
{
	struct host_entry *e = host_at_or_after(&xa->tree, index);

	return e && e->first == index ? e->value : NULL;
}

static inline int xa_insert(struct xarray *xa, unsigned long index, void *value,
			    gfp_t gfp)
{
	return host_insert(&xa->tree, index, index, value, gfp, -EBUSY);
}

/* Only in the place of one that is there. */
static inline void xa_store(struct xarray *xa, unsigned long index, void *value,
			    gfp_t gfp)
{
	struct host_entry *e = host_at_or_after(&xa->tree, index);

	(void)gfp;
	assert(e && e->first == index);
	e->value = value;
}

static inline void xa_erase(struct xarray *xa, unsigned long index)
{
	struct host_entry *e = host_at_or_after(&xa->tree, index);

	if (!e || e->first != index)
		return;
	RB_REMOVE(host_tree, &xa->tree, e);
	free(e);
}

static inline void *host_xa_next(struct xarray *xa, unsigned long *index)
{
	struct host_entry *e = host_at_or_after(&xa->tree, *index);

	if (!e)
		return NULL;
	*index = e->first;
	return e->value;
}

#define xa_for_each(xa, index, value) \
	for ((index) = 0; ((value) = host_xa_next(xa, &(index))); (index)++)

#endif /* RMP_HOST_KERNEL_H */
