// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/charge.c: what processes of users are given of three limits, in any
 * order, against a model of the counts; whoever is refused is charged nothing anywhere.
 * Limits and rights of processes are played.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "suite.h"

static unsigned long play_rlimit(unsigned int limit);
static bool play_capable(int cap);

#define rlimit(limit)	play_rlimit(limit)
#define capable(cap)	play_capable(cap)
#include "charge.c"

#define USERS		3
#define PROCESSES	6		/* of user i % USERS */
#define MIB_PAGES	(BIT(20) >> PAGE_SHIFT)

static struct {
	struct rmp_memory mem[PROCESSES];
	unsigned long memlock;		/* of the one that asks */
	bool able;
} world;

static unsigned long play_rlimit(unsigned int limit)
{
	return limit == RLIMIT_MEMLOCK ? world.memlock : 0;
}

static bool play_capable(int cap)
{
	return cap == CAP_IPC_LOCK && world.able;
}

static kuid_t uid_of(u32 process)
{
	return KUIDT_INIT(1000 + process % USERS);
}

static int charge_init(struct kunit *test)
{
	u32 i;

	memset(&world, 0, sizeof(world));
	world.memlock = RLIM_INFINITY;
	max_user_mib = 0;
	max_pinned_mib = 0;
	for (i = 0; i < PROCESSES; i++) {
		world.mem[i].mm = kunit_kzalloc(test, sizeof(struct mm_struct), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, world.mem[i].mm);
		world.mem[i].user = rmp_user_get(uid_of(i));
		KUNIT_ASSERT_NOT_NULL(test, world.mem[i].user);
	}
	return suite_case(test);
}

static void charge_exit(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, rmp_pinned_pages, 0);
	for (i = 0; i < PROCESSES; i++) {
		if (!world.mem[i].user)
			continue;
		KUNIT_EXPECT_EQ(test, world.mem[i].user->pages, 0);
		rmp_user_put(world.mem[i].user);
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&rmp_users));
}

static s64 pinned_vm(u32 process)
{
	return atomic64_read(&world.mem[process].mm->pinned_vm);
}

/* Charged, or refused with that reason; then with its numbers, in pages. */
static void expect_error(struct kunit *test, u32 process, unsigned long nr, bool memlock,
			 u32 reason, u64 limit, u64 used)
{
	struct rmp_memory *mem = &world.mem[process];
	u64 user = mem->user->pages, node = rmp_pinned_pages;
	struct rmpool_error error = {};
	s64 vm = pinned_vm(process);

	KUNIT_EXPECT_EQ(test, rmp_charge(mem, nr, memlock, &error), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.reason, reason);
	KUNIT_EXPECT_EQ(test, error.limit, limit << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, error.used, used << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, error.need, (u64)nr << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, mem->user->pages, user);
	KUNIT_EXPECT_EQ(test, rmp_pinned_pages, node);
	KUNIT_EXPECT_EQ(test, pinned_vm(process), vm);
}

static void must_charge(struct kunit *test, u32 process, unsigned long nr, bool memlock)
{
	struct rmpool_error error = {};

	KUNIT_EXPECT_EQ(test, rmp_charge(&world.mem[process], nr, memlock, &error), 0);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
}

static void uncharge(u32 process, unsigned long nr, bool memlock)
{
	rmp_uncharge(&world.mem[process], nr, memlock);
}

static void test_users(struct kunit *test)
{
	const u32 user = RMPOOL_REASON_USER_PINNED;
	struct rmp_pinned pinned;

	KUNIT_EXPECT_PTR_EQ(test, world.mem[0].user, world.mem[USERS].user);
	KUNIT_EXPECT_PTR_NE(test, world.mem[0].user, world.mem[1].user);

	max_user_mib = 1;
	must_charge(test, 0, MIB_PAGES - 1, true);
	expect_error(test, USERS, 2, true, user, MIB_PAGES, MIB_PAGES - 1);
	must_charge(test, USERS, 1, true);
	expect_error(test, 0, 1, true, user, MIB_PAGES, MIB_PAGES);
	must_charge(test, 1, MIB_PAGES, true);
	rmp_pinned_get(&world.mem[1], &pinned);
	KUNIT_EXPECT_EQ(test, pinned.user, BIT(20));
	KUNIT_EXPECT_EQ(test, pinned.user_limit, BIT(20));
	KUNIT_EXPECT_EQ(test, pinned.node, 2 * BIT(20));
	KUNIT_EXPECT_EQ(test, pinned.node_limit, U64_MAX);

	uncharge(1, MIB_PAGES, true);
	expect_error(test, USERS, 1, true, user, MIB_PAGES, MIB_PAGES);
	uncharge(0, MIB_PAGES - 1, true);
	/* A limit below what is in use counts for what comes. */
	must_charge(test, USERS, 5, true);
	max_user_mib = 0;
	must_charge(test, USERS, 3 * MIB_PAGES, true);
	max_user_mib = 2;
	expect_error(test, USERS, 1, true, user, 2 * MIB_PAGES, 3 * MIB_PAGES + 6);
	uncharge(USERS, 3 * MIB_PAGES + 6, true);
}

/* The node's counts for all of them, and is looked at after the user's. */
static void test_node(struct kunit *test)
{
	const u32 node = RMPOOL_REASON_NODE_PINNED;
	struct rmp_pinned pinned;

	max_pinned_mib = 2;
	must_charge(test, 0, MIB_PAGES, true);
	must_charge(test, 1, MIB_PAGES - 3, false);
	expect_error(test, 2, 4, true, node, 2 * MIB_PAGES, 2 * MIB_PAGES - 3);
	must_charge(test, 2, 3, true);
	expect_error(test, 0, 1, true, node, 2 * MIB_PAGES, 2 * MIB_PAGES);
	max_user_mib = 1;
	expect_error(test, 0, 1, true, RMPOOL_REASON_USER_PINNED, MIB_PAGES, MIB_PAGES);
	expect_error(test, 2, 1, true, node, 2 * MIB_PAGES, 2 * MIB_PAGES);
	rmp_pinned_get(&world.mem[2], &pinned);
	KUNIT_EXPECT_EQ(test, pinned.user, 3 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pinned.node, 2 * BIT(20));
	KUNIT_EXPECT_EQ(test, pinned.node_limit, 2 * BIT(20));
	uncharge(0, MIB_PAGES, true);
	uncharge(1, MIB_PAGES - 3, false);
	uncharge(2, 3, true);
}

static void test_memlock(struct kunit *test)
{
	const u32 memlock = RMPOOL_REASON_MEMLOCK;
	struct rmpool_error error = {};

	world.memlock = 10 * PAGE_SIZE;
	/* By others, as ib_umem. */
	atomic64_add(4, &world.mem[0].mm->pinned_vm);
	expect_error(test, 0, 7, true, memlock, 10, 4);
	must_charge(test, 0, 6, true);
	expect_error(test, 0, 1, true, memlock, 10, 10);
	KUNIT_EXPECT_EQ(test, pinned_vm(0), 10);
	/* It is the process's: of another one, a dma-buf, one who may. */
	must_charge(test, USERS, 10, true);
	must_charge(test, 0, 100, false);
	KUNIT_EXPECT_EQ(test, pinned_vm(0), 10);
	world.able = true;
	must_charge(test, 0, 20, true);
	KUNIT_EXPECT_EQ(test, pinned_vm(0), 30);
	max_user_mib = 1;
	expect_error(test, 0, MIB_PAGES, true, RMPOOL_REASON_USER_PINNED, MIB_PAGES, 136);
	world.able = false;
	world.memlock = 0;
	expect_error(test, 0, 1, true, memlock, 0, 30);
	uncharge(0, 26, true);
	uncharge(0, 100, false);
	uncharge(USERS, 10, true);
	KUNIT_EXPECT_EQ(test, pinned_vm(0), 4);
	/* Part of a page is none; it is told as it is. */
	world.memlock = 6 * PAGE_SIZE - 1;
	must_charge(test, 0, 1, true);
	KUNIT_EXPECT_EQ(test, rmp_charge(&world.mem[0], 1, true, &error), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.limit, world.memlock);
	KUNIT_EXPECT_EQ(test, error.used, 5 * PAGE_SIZE);
	uncharge(0, 1, true);
}

static void test_extremes(struct kunit *test)
{
	const unsigned long most = (U64_MAX >> PAGE_SHIFT) - 1;
	struct rmp_pinned pinned;

	/* More than there are bytes is no limit. */
	max_user_mib = ULONG_MAX;
	max_pinned_mib = (U64_MAX >> 20) + 1;
	rmp_pinned_get(&world.mem[0], &pinned);
	KUNIT_EXPECT_EQ(test, pinned.user_limit, U64_MAX);
	KUNIT_EXPECT_EQ(test, pinned.node_limit, U64_MAX);
	max_pinned_mib = U64_MAX >> 20;
	rmp_pinned_get(&world.mem[0], &pinned);
	KUNIT_EXPECT_EQ(test, pinned.node_limit, (U64_MAX >> 20) << 20);
	expect_error(test, 0, most, true, RMPOOL_REASON_NODE_PINNED,
		     (U64_MAX >> 20) << (20 - PAGE_SHIFT), 0);
	max_pinned_mib = 1;
	must_charge(test, 0, MIB_PAGES, true);
	expect_error(test, 1, most, true, RMPOOL_REASON_NODE_PINNED, MIB_PAGES, MIB_PAGES);
	uncharge(0, MIB_PAGES, true);
	max_pinned_mib = 0;
	world.memlock = 20 * PAGE_SIZE;
	expect_error(test, 1, most, true, RMPOOL_REASON_MEMLOCK, 20, 0);
}

/* What a limit of so many pages leaves for @need. */
static bool has_room(u64 limit, u64 used, u64 need)
{
	return !limit || used + need <= limit;
}

static void test_random(struct kunit *test)
{
	u64 locked[PROCESSES] = {}, lent[PROCESSES] = {}, user, node, limit;
	struct rmpool_error error;
	unsigned long nr;
	bool memlock, good;
	u32 i, k, n;

	for (n = 0; n < 20000; n++) {
		if (!below(50)) {
			max_user_mib = below(4);
			max_pinned_mib = below(6);
		}
		i = below(PROCESSES);
		memlock = below(3);
		nr = below(MIB_PAGES) + 1;
		if (below(2)) {
			nr = min_t(u64, nr, memlock ? locked[i] : lent[i]);
			uncharge(i, nr, memlock);
			*(memlock ? &locked[i] : &lent[i]) -= nr;
			continue;
		}
		world.able = !below(4);
		world.memlock = below(3) ? RLIM_INFINITY : below(BIT(21));
		limit = world.memlock >> PAGE_SHIFT;
		for (k = 0, user = 0, node = 0; k < PROCESSES; k++) {
			node += locked[k] + lent[k];
			if (k % USERS == i % USERS)
				user += locked[k] + lent[k];
		}
		good = has_room(max_user_mib * MIB_PAGES, user, nr) &&
		       has_room(max_pinned_mib * MIB_PAGES, node, nr) &&
		       (!memlock || world.able || locked[i] + nr <= limit);
		memset(&error, 0, sizeof(error));
		KUNIT_ASSERT_EQ(test, rmp_charge(&world.mem[i], nr, memlock, &error),
				good ? 0 : -ENOMEM);
		KUNIT_ASSERT_EQ(test, !error.reason, good);
		if (good)
			*(memlock ? &locked[i] : &lent[i]) += nr;
		KUNIT_ASSERT_EQ(test, world.mem[i].user->pages, user + (good ? nr : 0));
		KUNIT_ASSERT_EQ(test, rmp_pinned_pages, node + (good ? nr : 0));
		KUNIT_ASSERT_EQ(test, pinned_vm(i), locked[i]);
	}
	for (i = 0; i < PROCESSES; i++) {
		uncharge(i, locked[i], true);
		uncharge(i, lent[i], false);
		KUNIT_EXPECT_EQ(test, pinned_vm(i), 0);
	}
}

static struct kunit_case charge_cases[] = {
	KUNIT_CASE(test_users),
	KUNIT_CASE(test_node),
	KUNIT_CASE(test_memlock),
	KUNIT_CASE(test_extremes),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite charge_suite = {
	.name = "rmp_charge",
	.suite_init = suite_begin,
	.init = charge_init,
	.exit = charge_exit,
	.test_cases = charge_cases,
};

kunit_test_suites(&charge_suite);

MODULE_DESCRIPTION("KUnit suite of charges and their limits");
MODULE_LICENSE("GPL");
