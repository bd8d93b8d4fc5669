// SPDX-License-Identifier: MIT
/*
 * rules: what rmpool_register(3) promises about rights, overlaps, duplicates, places in
 * segments and the ends of them, sentence by sentence. Host b registers, host a sees.
 *
 *	rules a|b
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "far.h"

#define PAGE	4096UL
#define SIZE	10001UL		/* of most regions */
#define ROOM	50000UL		/* of the buffers for requests */
#define MAPPING	(8 * PAGE)	/* in which a region is */
#define LEAD	1001UL		/* bytes before it */
#define PATIENCE 20		/* seconds */
#define LOCAL	RMPOOL_ACCESS_LOCAL_WRITE
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define WRITE	RMPOOL_ACCESS_REMOTE_WRITE
#define ALL	RMPOOL_ACCESS_ALL
#define RIGHTS	(ALL + 1)	/* every set of them */
#define SMALLS	4

/* Where b has what in its segment. */
enum {
	SMALL = RIGHTS,		/* the first of SMALLS that are not whole pages */
	FIRST_HALF = SMALL + SMALLS,
	TO_READ,		/* the same memory as the next one */
	TO_WRITE,
	PLACES,
	SECOND_HALF = PLACES,	/* right behind the first; no place of its own */
};

static const uint64_t small_sizes[SMALLS] = { 1, 2, PAGE - 1, PAGE + 1 };

static struct rmpool *pool;

static int add(void *addr, uint64_t length, uint32_t access, uint32_t segment, uint64_t offset,
	       uint32_t *region)
{
	return rmpool_register(pool, addr, length, access, segment, offset, region, NULL);
}

static uint32_t must_add(void *addr, uint64_t length, uint32_t access, uint32_t segment,
			 uint64_t offset)
{
	uint32_t region;

	if (add(addr, length, access, segment, offset, &region))
		give_up("%s", rmpool_error());
	return region;
}

static void must_del(struct test *t, uint32_t region)
{
	expect(t, !rmpool_unregister(pool, region), "%s", rmpool_error());
}

static long pinned_kb(void)
{
	return status_value("VmPin");
}

static void wanted(struct test *t, const char *what, int want, int got)
{
	expect(t, got == want, "%s: %s, not %s", what, rmpool_status_text(got),
	       rmpool_status_text(want));
}

/* ------------------------------------------------------------- who has the memory */

static struct {
	uint32_t segment;
	uint8_t *at[PLACES];
	uint32_t region[PLACES];
	uint32_t buffer;	/* opened segment of a: ROOM bytes */
} b;

static int put(const void *from, uint64_t length)
{
	return rmpool_put(pool, b.buffer, 0, from, length, LIMIT);
}

static int get(void *to, uint64_t length)
{
	return rmpool_get(pool, b.buffer, 0, to, length, LIMIT);
}

static uint64_t length_of(uint32_t which)
{
	return which >= SMALL && which < SMALL + SMALLS ? small_sizes[which - SMALL] : SIZE;
}

static uint32_t access_of(uint32_t which)
{
	if (which < RIGHTS)
		return which;
	return which == TO_READ ? READ : ALL;
}

/* In the middle of a page or two that nothing else is in. */
static void publish_all(void)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		if (i == TO_WRITE) {
			b.at[i] = b.at[TO_READ];
		} else {
			b.at[i] = anonymous(MAPPING) + LEAD;
			memset(b.at[i] - LEAD, 0x5a, MAPPING);
		}
		pattern_fill(b.at[i], length_of(i), seed_of(FIRST, i), 0);
		b.region[i] = must_add(b.at[i], length_of(i), access_of(i), b.segment, PLACE(i));
	}
	/* Both of one mapping, and without a gap in the segment. */
	must_add(b.at[FIRST_HALF] + SIZE, SIZE, ALL, b.segment, PLACE(FIRST_HALF) + SIZE);
	pattern_fill(b.at[FIRST_HALF] + SIZE, SIZE, seed_of(FIRST, SECOND_HALF), 0);
}

/* Which places overlap is checked; where the next one is, told. */
static void places(void)
{
	const uint64_t first = PLACE(0), last = PLACE(FIRST_HALF) + 2 * SIZE;
	const struct {
		uint64_t from, length;
	} taken[] = {
		{ first, 1 }, { first - 1, 2 }, { first + SIZE - 1, 1 },
		{ first - 1, SIZE + 2 }, { first + 1, 1 }, { last - 1, SIZE },
		{ PLACE(FIRST_HALF) + SIZE - 1, 2 },
	};
	struct test t = { .name = "places in a segment do not overlap, beside is free" };
	struct test next = { .name = "the next free place is told" };
	uint64_t placed = 1, end = PLACE(TO_WRITE) + SIZE;
	uint8_t *at = anonymous(8 * PAGE);
	long before = pinned_kb();
	uint32_t region = 77;
	int ret;

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		ret = add(at, taken[i].length, ALL, b.segment, taken[i].from, &region);
		expect(&t, ret == -EEXIST && region == 77 &&
		       rmpool_error_detail()->reason == RMPOOL_REASON_OFFSET_TAKEN &&
		       rmpool_error_detail()->need == taken[i].from,
		       "%llu bytes at %llu: %d, region %u", (unsigned long long)taken[i].length,
		       (unsigned long long)taken[i].from, ret, region);
	}
	expect(&t, pinned_kb() == before, "VmPin is %ld kB", pinned_kb());
	must_del(&t, must_add(at, 1, ALL, b.segment, first - 1));
	must_del(&t, must_add(at, 1, ALL, b.segment, first + SIZE));
	ret = add(at, 1, ALL, 0, 1, &region);
	expect(&t, ret == -EINVAL, "an offset without a segment: %d", ret);
	/* A place is not taken by what failed there. */
	munmap(at + 7 * PAGE, PAGE);
	ret = add(at, 8 * PAGE, ALL, b.segment, PLACE(PLACES), &region);
	expect(&t, ret == -EFAULT && region == 77, "a hole: %d", ret);
	ret = add(at, 7 * PAGE, ALL, b.segment, PLACE(PLACES), &region);
	expect(&t, !ret, "the same place afterwards: %s", rmpool_error());
	if (!ret)
		must_del(&t, region);
	test_end(&t);

	ret = rmpool_register(pool, at, PAGE + 1, READ, b.segment, RMPOOL_OFFSET_NEXT, &region,
			      &placed);
	expect(&next, !ret && placed == (end + PAGE - 1) / PAGE * PAGE, "%d: %llu", ret,
	       (unsigned long long)placed);
	if (!ret)
		must_del(&next, region);
	ret = add(at, PAGE, READ, b.segment, RMPOOL_OFFSET_NEXT, &region);
	expect(&next, !ret, "not told: %s", rmpool_error());
	if (!ret)
		must_del(&next, region);
	test_end(&next);
	munmap(at, 8 * PAGE);
}

/* Memory wherever a program has some. */
static void ordinary(void)
{
	static const uint8_t constant[PAGE] = { 1, 2, 3 };
	/* cppcheck-suppress unassignedVariable ; by its address */
	static uint8_t zeroed[3 * PAGE];
	static uint8_t set[3 * PAGE] = { 9 };
	/* cppcheck-suppress unassignedVariable ; by its address */
	uint8_t stack[3 * PAGE], *heap = malloc(3 * PAGE);
	struct {
		const char *name;
		uint8_t *at;
	} kinds[] = {
		{ "stack", stack }, { "heap", heap }, { "zeroed data", zeroed },
		{ "initialised data", set },
	};
	struct test t = { .name = "stack, heap and data are memory as any other" };
	struct test fixed = { .name = "constants: to be read" };
	uint32_t region, i;
	int ret;

	if (!heap)
		give_up("no memory");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pattern_fill(kinds[i].at, 2 * PAGE, 50 + i, 0);
		region = must_add(kinds[i].at, 2 * PAGE, ALL, 0, 0);
		wanted(&t, kinds[i].name, 0, put(kinds[i].at, 2 * PAGE));
		memset(kinds[i].at, 0, 2 * PAGE);
		wanted(&t, kinds[i].name, 0, get(kinds[i].at, 2 * PAGE));
		expect_pattern(&t, kinds[i].at, 2 * PAGE, 50 + i, 0, kinds[i].name);
		must_del(&t, region);
	}
	test_end(&t);

	ret = add((void *)(uintptr_t)constant, sizeof(constant), LOCAL, 0, 0, &region);
	expect(&fixed, ret == -EFAULT, "to be written: %d", ret);
	region = must_add((void *)(uintptr_t)constant, sizeof(constant), 0, 0, 0);
	wanted(&fixed, "put", 0, put(constant, sizeof(constant)));
	wanted(&fixed, "get", -EACCES, get((void *)(uintptr_t)constant, sizeof(constant)));
	must_del(&fixed, region);
	region = must_add(heap, sizeof(constant), LOCAL, 0, 0);
	wanted(&fixed, "get of them", 0, get(heap, sizeof(constant)));
	expect(&fixed, !memcmp(heap, constant, sizeof(constant)), "other bytes were put");
	must_del(&fixed, region);
	test_end(&fixed);
	free(heap);
}

/* What a has there to be got is what it put to the last of them. */
static void own_rights(struct test *t)
{
	uint32_t i;
	bool may;

	for (i = 0; i < RIGHTS; i++) {
		may = i & (LOCAL | WRITE);
		wanted(t, "get", may ? 0 : -EACCES, get(b.at[i], SIZE));
		expect_pattern(t, b.at[i], SIZE, may ? seed_of(PUT, ALL) : seed_of(FIRST, i), 0,
			       may ? "what was got" : "what may not be written");
	}
	for (i = 0; i < RIGHTS; i++)
		expect(t, !put(b.at[i], SIZE), "rights %u: put: %s", i, rmpool_error());
}

/* The same bytes again and again. */
static void duplicates(void)
{
	struct test t = { .name = "duplicates count up and down" };
	struct test order = { .name = "duplicates with other rights, in any order" };
	uint8_t *at = anonymous(4 * PAGE);
	long before = pinned_kb();
	uint32_t one, two, i;

	wanted(&t, "before", -EFAULT, put(at, PAGE));
	one = must_add(at, 2 * PAGE, ALL, 0, 0);
	two = must_add(at, 2 * PAGE, ALL, 0, 0);
	expect(&t, one != two, "both have handle %u", one);
	expect(&t, pinned_kb() == before + 16, "VmPin is %ld, not %ld kB", pinned_kb(),
	       before + 16);
	wanted(&t, "two", 0, put(at, 2 * PAGE));
	must_del(&t, one);
	expect(&t, pinned_kb() == before + 8, "VmPin is %ld, not %ld kB", pinned_kb(),
	       before + 8);
	wanted(&t, "one is left: put", 0, put(at, 2 * PAGE));
	wanted(&t, "one is left: get", 0, get(at, 2 * PAGE));
	wanted(&t, "the handle of the other", -ENOENT, rmpool_unregister(pool, one));
	one = must_add(at, 2 * PAGE, ALL, 0, 0);
	must_del(&t, two);
	wanted(&t, "the newer one is left", 0, put(at, 2 * PAGE));
	must_del(&t, one);
	wanted(&t, "none is left", -EFAULT, put(at, 2 * PAGE));
	expect(&t, pinned_kb() == before, "VmPin is %ld, not %ld kB", pinned_kb(), before);
	test_end(&t);

	for (i = 0; i < 2; i++) {
		one = must_add(at, PAGE, i ? LOCAL : 0, 0, 0);
		two = must_add(at, PAGE, i ? 0 : LOCAL, 0, 0);
		wanted(&order, "one of them allows it", 0, get(at, PAGE));
		must_del(&order, i ? one : two);
		wanted(&order, "the other does not", -EACCES, get(at, PAGE));
		wanted(&order, "but allows a put", 0, put(at, PAGE));
		must_del(&order, i ? two : one);
	}
	test_end(&order);
	munmap(at, 4 * PAGE);
}

/* Each region covers what it covers; none lends another bytes or rights. */
static void overlaps(void)
{
	struct test t = { .name = "a request uses any region that covers it with the right" };
	struct test over = { .name = "none is put together out of two" };
	struct test stale = { .name = "stale ones are no hindrance, and no help" };
	uint8_t *at = anonymous(16 * PAGE);
	uint32_t first, second, third, whole;
	char why[128] = "";

	pattern_fill(at, ROOM, 7, 0);
	first = must_add(at, 30000, 0, 0, 0);
	second = must_add(at + 10000, 30000, LOCAL, 0, 0);
	third = must_add(at + 40000, 10000, LOCAL, 0, 0);
	wanted(&t, "put of all of the first", 0, put(at, 30000));
	wanted(&t, "put of all of the second", 0, put(at + 10000, 30000));
	wanted(&t, "get to the second, where the first is", 0, get(at + 12000, 18000));
	expect(&t, pattern_check(at, 10000, 7, 0, "the first", why, sizeof(why)), "%s", why);
	expect(&t, pattern_check(at + 12000, 18000, 7, 10000, "what was got", why, sizeof(why)),
	       "%s", why);
	wanted(&t, "get to the first alone", -EACCES, get(at, 5000));
	wanted(&t, "get that begins in the first alone", -EACCES, get(at + 5000, 10000));
	wanted(&t, "put of the last byte of the first", 0, put(at + 29999, 1));
	test_end(&t);

	wanted(&over, "put over the first and the second", -ERANGE, put(at + 5000, 30000));
	wanted(&over, "put over two that adjoin", -ERANGE, put(at + 39999, 2));
	expect(&over, strstr(rmpool_error(), "runs past the end of the local") != NULL,
	       "the text is: %s", rmpool_error());
	wanted(&over, "get over two that adjoin", -ERANGE, get(at + 35000, 10000));
	wanted(&over, "each byte beside the border", 0, put(at + 39999, 1));
	wanted(&over, "each byte beside the border", 0, put(at + 40000, 1));
	whole = must_add(at + 30000, 20000, 0, 0, 0);
	wanted(&over, "put, with a third that covers it", 0, put(at + 35000, 10000));
	wanted(&over, "get, which that does not allow", -EACCES, get(at + 35000, 10000));
	must_del(&over, whole);
	wanted(&over, "without it", -ERANGE, put(at + 35000, 10000));
	test_end(&over);

	/* The page that is unmapped is of the second alone, and of the new one. */
	munmap(at + 8 * PAGE, PAGE);
	/* cppcheck-suppress leakReturnValNotUsed ; it is known by its address */
	if (mmap(at + 8 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at + 8 * PAGE)
		give_up("mmap: %s", strerror(errno));
	wanted(&stale, "the second", -ESTALE, get(at + 8 * PAGE, 100));
	wanted(&stale, "all of it, though another page went", -ESTALE, put(at + 38000, 100));
	wanted(&stale, "where the first is as well", 0, put(at + 12000, 100));
	wanted(&stale, "the first allows no get", -ESTALE, get(at + 12000, 100));
	whole = must_add(at + 10000, 30000, 0, 0, 0);
	wanted(&stale, "registered anew: put", 0, put(at + 8 * PAGE, 100));
	wanted(&stale, "which allows no get either", -ESTALE, get(at + 8 * PAGE, 100));
	must_del(&stale, whole);
	wanted(&stale, "without it", -ESTALE, put(at + 8 * PAGE, 100));
	must_del(&stale, second);
	wanted(&stale, "unregistered", -EFAULT, put(at + 8 * PAGE, 100));
	must_del(&stale, first);
	must_del(&stale, third);
	test_end(&stale);
	munmap(at, 16 * PAGE);
}

/* Not one byte more, of a region of few bytes with others in the same page. */
static void own_bytes(struct test *t)
{
	for (uint32_t i = SMALL; i < SMALL + SMALLS; i++) {
		for (size_t k = 0; k < BESIDE; k++) {
			uint8_t *from = b.at[i] + beside_from(&beside[k], length_of(i));
			uint64_t length = beside_length(&beside[k], length_of(i));

			wanted(t, "put of bytes beside", beside[k].local, put(from, length));
			wanted(t, "get to bytes beside", beside[k].local, get(from, length));
		}
		wanted(t, "put of all of it", 0, put(b.at[i], length_of(i)));
		for (uint64_t k = 1; k <= LEAD; k++)
			expect(t, *(b.at[i] - k) == 0x5a &&
			       b.at[i][length_of(i) + k - 1] == 0x5a,
			       "%llu bytes: a byte %llu beside was written",
			       (unsigned long long)length_of(i), (unsigned long long)k);
	}
}

/* One call, each for itself: overlaps are as good there, and one that fails alone. */
static void batch(void)
{
	struct test t = { .name = "many by one call: the seventh of ten fails alone" };
	struct test back = { .name = "unregistered by one call, some twice" };
	struct rmpool_region_add adds[10];
	uint8_t *at = anonymous(32 * PAGE);
	long before = pinned_kb();
	uint32_t handles[12], i;
	int32_t status[12];
	int ret;

	munmap(at + 25 * PAGE, PAGE);
	for (i = 0; i < 10; i++)
		rmpool_prepare_region(&adds[i], at + i * PAGE, 2 * PAGE, ALL, 0, 0);
	rmpool_prepare_region(&adds[6], at + 24 * PAGE, 2 * PAGE, ALL, 0, 0);
	ret = rmpool_register_many(pool, adds, 10, sizeof(adds[0]));
	expect(&t, ret == 10, "%d tried: %s", ret, rmpool_error());
	for (i = 0; i < 10; i++)
		expect(&t, i == 6 ? adds[i].status == -EFAULT && !adds[i].handle &&
		       adds[i].error.reason == RMPOOL_REASON_UNMAPPED &&
		       adds[i].error.need == (uintptr_t)at + 25 * PAGE :
		       !adds[i].status && adds[i].handle, "%u: %d, handle %u", i,
		       adds[i].status, adds[i].handle);
	expect(&t, pinned_kb() == before + 9L * 8, "VmPin is %ld, not %ld kB", pinned_kb(),
	       before + 9L * 8);
	wanted(&t, "over two that overlap", -ERANGE, put(at + PAGE, 3 * PAGE));
	wanted(&t, "the one that failed", -EFAULT, put(at + 24 * PAGE, PAGE));
	test_end(&t);

	for (i = 0; i < 10; i++)
		handles[i] = adds[i].handle;
	handles[10] = handles[0];
	handles[11] = 123456;
	ret = rmpool_unregister_many(pool, handles, 12, status);
	expect(&back, ret == 3, "%d there were not", ret);
	for (i = 0; i < 12; i++)
		expect(&back, status[i] == (i == 6 || i >= 10 ? -ENOENT : 0), "%u: %d", i,
		       status[i]);
	expect(&back, pinned_kb() == before, "VmPin is %ld, not %ld kB", pinned_kb(), before);
	wanted(&back, "afterwards", -EFAULT, put(at, PAGE));
	ret = rmpool_unregister_many(pool, handles, RMPOOL_BATCH_MAX + 1, NULL);
	expect(&back, ret == -E2BIG, "too many: %d", ret);
	test_end(&back);
	munmap(at, 32 * PAGE);
}

/* The segment goes, its regions stay for their owner. */
static void unpublish(struct test *t)
{
	uint32_t region = 77, segment;
	int ret;

	expect(t, !rmpool_unpublish(pool, b.segment), "%s", rmpool_error());
	wanted(t, "put of what was published", 0, put(b.at[ALL], SIZE));
	wanted(t, "get to it", 0, get(b.at[ALL], SIZE));
	wanted(t, "rights stay", -EACCES, get(b.at[0], SIZE));
	ret = add(b.at[0], SIZE, ALL, b.segment, PLACE(PLACES), &region);
	expect(t, ret == -ENOENT && region == 77, "register in it: %d", ret);
	expect(t, rmpool_unpublish(pool, b.segment) == -ENOENT, "it is there still");
	expect(t, !rmpool_publish(pool, "rules", &segment), "the name: %s", rmpool_error());
	expect(t, !rmpool_unpublish(pool, segment), "%s", rmpool_error());
}

static void owner(void)
{
	struct test rights = { .name = "rights, by own requests" };
	struct test seen = { .name = "rights: only what was allowed was written" };
	struct test bytes = { .name = "own requests: not a byte beside a region" };
	struct test twice = { .name = "the same memory at two places" };
	struct test gone = { .name = "unpublished: regions stay, for own requests" };
	uint32_t i, added;

	if (rmpool_publish(pool, "rules", &b.segment))
		give_up("%s", rmpool_error());
	publish_all();
	places();
	barrier("published");

	barrier("moved");
	if (rmpool_segment_open(pool, "a", "buffer", 60000, &b.buffer, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < RIGHTS; i++)
		expect_pattern(&seen, b.at[i], SIZE, seed_of(i & WRITE ? PUT : FIRST, i), 0,
			       i & WRITE ? "put" : "not put");
	expect_pattern(&seen, b.at[FIRST_HALF], SIZE, seed_of(FIRST, FIRST_HALF), 0,
		       "the first of two that adjoin");
	expect_pattern(&seen, b.at[FIRST_HALF] + SIZE, SIZE, seed_of(FIRST, SECOND_HALF), 0,
		       "the second of two that adjoin");
	test_end(&seen);
	expect_pattern(&twice, b.at[TO_READ], SIZE, seed_of(PUT, TO_WRITE), 0, "put");
	own_rights(&rights);
	test_end(&rights);
	own_bytes(&bytes);
	test_end(&bytes);
	duplicates();
	overlaps();
	batch();
	ordinary();

	must_del(&twice, b.region[TO_WRITE]);
	wanted(&twice, "the other one is left", 0, put(b.at[TO_READ], SIZE));
	wanted(&twice, "with its right", -EACCES, get(b.at[TO_READ], SIZE));
	barrier("one");
	barrier("one_seen");
	must_del(&twice, b.region[TO_READ]);
	wanted(&twice, "none is left", -EFAULT, put(b.at[TO_READ], SIZE));
	test_end(&twice);
	barrier("none");
	barrier("none_seen");

	/* Each is told to peers that ask for nothing. */
	barrier("looked");
	munmap(b.at[READ] - LEAD, MAPPING);
	barrier("let_go");
	barrier("let_go_seen");
	added = must_add(b.at[ALL], SIZE, READ, b.segment, PLACE(PLACES));
	barrier("added");
	barrier("added_seen");
	must_del(&gone, added);
	barrier("deleted");
	barrier("deleted_seen");
	unpublish(&gone);
	test_end(&gone);
	barrier("unpublished");
	barrier("end");
}

/* ------------------------------------------------------------------- the other */

static int far_put_at(uint64_t offset, uint64_t length)
{
	return rmpool_put(pool, far.segment, offset, far.out, length, LIMIT);
}

static int far_get_at(uint64_t offset, uint64_t length)
{
	return rmpool_get(pool, far.segment, offset, far.in, length, LIMIT);
}

/* After each refusal comes something allowed, over the same queue pairs. */
static void other_rights(void)
{
	struct test t = { .name = "rights, by requests of a peer" };

	for (uint32_t i = 0; i < RIGHTS; i++) {
		memset(far.in, 0x5a, SIZE);
		wanted(&t, "get", i & READ ? 0 : -EACCES, far_get_at(PLACE(i), SIZE));
		if (i & READ)
			expect_pattern(&t, far.in, SIZE, seed_of(FIRST, i), 0, "got");
		else
			expect(&t, far.in[0] == 0x5a && far.in[SIZE - 1] == 0x5a,
			       "rights %u: something was got", i);
		pattern_fill(far.out, SIZE, seed_of(PUT, i), 0);
		wanted(&t, "put", i & WRITE ? 0 : -EACCES, far_put_at(PLACE(i), SIZE));
		if ((i & READ) && (i & WRITE)) {
			wanted(&t, "get again", 0, far_get_at(PLACE(i), SIZE));
			expect_pattern(&t, far.in, SIZE, seed_of(PUT, i), 0, "got again");
		}
	}
	test_end(&t);
}

/* As far_first_round(), for which one byte is too few. */
static void other_byte(struct test *t)
{
	const uint64_t at = PLACE(SMALL);

	memset(far.in, 0x5a, 2);
	wanted(t, "get of the byte", 0, far_get_at(at, 1));
	expect_pattern(t, far.in, 1, seed_of(FIRST, SMALL), 0, "the byte");
	expect(t, far.in[1] == 0x5a, "more than a byte was got");
	wanted(t, "get of one more", -ERANGE, far_get_at(at, 2));
	wanted(t, "put of one more", -ERANGE, far_put_at(at, 2));
	wanted(t, "get of the one behind", -ENXIO, far_get_at(at + 1, 1));
	wanted(t, "put of the one behind", -ENXIO, far_put_at(at + 1, 1));
	wanted(t, "get of the one before", -ENXIO, far_get_at(at - 1, 1));
	wanted(t, "put of the one before", -ENXIO, far_put_at(at - 1, 2));
}

static void other_adjoin(void)
{
	struct test t = { .name = "a request over two places that adjoin: refused" };
	const uint64_t border = PLACE(FIRST_HALF) + SIZE;

	memset(far.out, 0xee, ROOM);
	wanted(&t, "put", -ERANGE, far_put_at(border - 1, 2));
	expect(&t, strstr(rmpool_error(), "remote region") != NULL, "the text is: %s",
	       rmpool_error());
	wanted(&t, "put", -ERANGE, far_put_at(PLACE(FIRST_HALF), 2 * SIZE));
	wanted(&t, "get", -ERANGE, far_get_at(border - SIZE / 2, SIZE));
	wanted(&t, "get of the first", 0, far_get_at(PLACE(FIRST_HALF), SIZE));
	expect_pattern(&t, far.in, SIZE, seed_of(FIRST, FIRST_HALF), 0, "the first");
	wanted(&t, "get of the second", 0, far_get_at(border, SIZE));
	expect_pattern(&t, far.in, SIZE, seed_of(FIRST, SECOND_HALF), 0, "the second");
	test_end(&t);
}

/* How b's region at an offset is listed, without asking b: its flags, or -1. */
static int listed(uint64_t offset)
{
	struct rmpool_region_desc *desc;
	uint32_t nr = 0, i;
	int flags = -1;

	if (rmpool_segment_regions(pool, far.segment, &desc, &nr, NULL))
		give_up("%s", rmpool_error());
	for (i = 0; i < nr; i++)
		if (desc[i].offset == offset)
			flags = (int)desc[i].flags;
	free(desc);
	return flags;
}

static bool soon_listed(uint64_t offset, int flags)
{
	double end = now() + patience(PATIENCE);

	while (listed(offset) != flags) {
		if (now() > end)
			return false;
		pause_ms(1);
	}
	return true;
}

static void other_listens(void)
{
	struct test t = { .name = "a peer is told of changes without asking" };

	expect(&t, !listed(PLACE(READ)) && listed(PLACE(PLACES)) == -1, "before: %d and %d",
	       listed(PLACE(READ)), listed(PLACE(PLACES)));
	barrier("looked");
	barrier("let_go");
	expect(&t, soon_listed(PLACE(READ), RMPOOL_REGION_DESC_STALE), "let go of: %d",
	       listed(PLACE(READ)));
	wanted(&t, "get of what was let go of", -ESTALE, far_get_at(PLACE(READ), SIZE));
	barrier("let_go_seen");
	barrier("added");
	expect(&t, soon_listed(PLACE(PLACES), 0), "registered: %d", listed(PLACE(PLACES)));
	wanted(&t, "get of what is new", 0, far_get_at(PLACE(PLACES), SIZE));
	barrier("added_seen");
	barrier("deleted");
	/* Not soon: unregistering waited for it. */
	expect(&t, listed(PLACE(PLACES)) == -1, "unregistered: %d", listed(PLACE(PLACES)));
	barrier("deleted_seen");
	test_end(&t);
}

static void other(void)
{
	struct test bytes = { .name = "requests of a peer: not a byte beside a region" };
	struct test twice = { .name = "the same memory at two places, each with its right" };
	struct test one = { .name = "one of them unregistered: the other is there" };
	struct test gone = { .name = "unpublished: gone for peers" };
	uint32_t i;
	int ret;

	far_begin(pool, ROOM);
	barrier("published");
	if (rmpool_segment_open(pool, "b", "rules", 60000, &far.segment, NULL))
		give_up("%s", rmpool_error());
	other_rights();
	other_byte(&bytes);
	for (i = SMALL + 1; i < SMALL + SMALLS; i++)
		far_first_round(&bytes, i, length_of(i), ALL);
	test_end(&bytes);
	other_adjoin();
	pattern_fill(far.out, SIZE, seed_of(PUT, TO_WRITE), 0);
	wanted(&twice, "put where only to read", -EACCES, far_put_at(PLACE(TO_READ), SIZE));
	wanted(&twice, "put where to write", 0, far_put_at(PLACE(TO_WRITE), SIZE));
	wanted(&twice, "get where only to read", 0, far_get_at(PLACE(TO_READ), SIZE));
	expect_pattern(&twice, far.in, SIZE, seed_of(PUT, TO_WRITE), 0, "what was put");
	test_end(&twice);
	/* What b gets into what it can write: the last pattern. */
	pattern_fill(far.out, ROOM, seed_of(PUT, ALL), 0);
	barrier("moved");

	barrier("one");
	wanted(&one, "the one that is gone", -ENXIO, far_get_at(PLACE(TO_WRITE), SIZE));
	wanted(&one, "put to it", -ENXIO, far_put_at(PLACE(TO_WRITE), 1));
	wanted(&one, "the other", 0, far_get_at(PLACE(TO_READ), SIZE));
	expect_pattern(&one, far.in, SIZE, seed_of(PUT, TO_WRITE), 0, "the other");
	barrier("one_seen");
	barrier("none");
	wanted(&one, "then the other", -ENXIO, far_get_at(PLACE(TO_READ), SIZE));
	wanted(&one, "what never was unregistered", 0, far_get_at(PLACE(ALL), SIZE));
	test_end(&one);
	barrier("none_seen");
	other_listens();
	barrier("unpublished");
	wanted(&gone, "get", -ESTALE, far_get_at(PLACE(ALL), SIZE));
	wanted(&gone, "put", -ESTALE, far_put_at(PLACE(ALL), SIZE));
	ret = rmpool_segment_open(pool, "b", "rules", LIMIT, &i, NULL);
	expect(&gone, ret == -ENOENT, "opened: %d", ret);
	test_end(&gone);
	barrier("end");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		give_up("rules a|b");
	return two_parts(argv[1], &pool, owner, other);
}
