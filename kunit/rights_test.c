// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/rights.c: whose right counts, and what is lost from one list to the
 * next, against a model that asks each of a few peers.
 */
#include "suite.h"
#include "rights.c"

#define RO	RMPOOL_ACCESS_REMOTE_READ
#define WO	RMPOOL_ACCESS_REMOTE_WRITE
#define RW	(RO | WO)
#define PEERS	5
#define LIST	8

/* Room for a list. */
union list_of {
	struct rmp_rights rights;
	u8 room[sizeof(struct rmp_rights) + LIST * sizeof(struct rmp_right)];
};

/* The last one is in no list. */
static const char *const names[PEERS + 1] = { "a", "b", "ab", "a.b", "B", "x" };

static void add(union list_of *list, const char *peer, u32 access)
{
	struct rmp_right *right = &list->rights.of[list->rights.nr++];

	memset(right, 0, sizeof(*right));
	memcpy(right->peer, peer, strlen(peer));
	right->access = access;
}

static void test_whose(struct kunit *test)
{
	union list_of list = {};

	KUNIT_EXPECT_EQ(test, rmp_rights_of(NULL, "a", "g"), RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(NULL, "", "g"), RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "a", "g"), 0);
	add(&list, "a", RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "a", "g"), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "ab", "g"), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "A", "g"), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "", "g"), 0);
	/* The rest; a name goes before it, wherever it stands. */
	add(&list, "*", RW);
	add(&list, "b", 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "a", "g"), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "b", "g"), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "x", "g"), RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&list.rights, "", "g"), RW);
}

static void test_lost(struct kunit *test)
{
	union list_of none = {}, some = {}, more = {};

	KUNIT_EXPECT_EQ(test, rmp_rights_lost(NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(NULL, &none.rights), RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&none.rights, NULL), 0);
	add(&some, "a", RW);
	add(&more, "*", RO);
	/* One loses writing, the others win. */
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&some.rights, &more.rights), WO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&more.rights, &some.rights), RO);
	/* Named all of a sudden, and with less. */
	add(&more, "b", 0);
	none.rights.nr = 0;
	add(&none, "*", RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&none.rights, &more.rights), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&more.rights, &none.rights), 0);
}

static void test_groups(struct kunit *test)
{
	union list_of some = {}, more = {};

	add(&some, "*", RO);
	add(&some, "@g", RW);
	add(&some, "b", 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&some.rights, "a", "g"), RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&some.rights, "a", "default"), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&some.rights, "b", "g"), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(&some.rights, "g", "h"), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_of(NULL, "a", "g"), RW);
	/* Those of a group have less than the others, or as much. */
	add(&more, "*", RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&some.rights, &more.rights), WO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&more.rights, &some.rights), RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&some.rights, &some.rights), 0);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&some.rights, NULL), 0);
	/* One who was named may be in the group. */
	some.rights.nr = 0;
	more.rights.nr = 0;
	add(&some, "a", RW);
	add(&some, "@g", RO);
	add(&more, "@g", RO);
	add(&more, "*", RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_lost(&some.rights, &more.rights), WO);
}

static void test_twice(struct kunit *test)
{
	union list_of list = {};

	KUNIT_EXPECT_EQ(test, rmp_rights_twice(&list.rights), 0);
	add(&list, "a", RO);
	add(&list, "*", RO);
	add(&list, "b", RO);
	KUNIT_EXPECT_EQ(test, rmp_rights_twice(&list.rights), 3);
	add(&list, "*", RW);
	add(&list, "a", RW);
	KUNIT_EXPECT_EQ(test, rmp_rights_twice(&list.rights), 3);
}

/* Some of the names, each once, and "*" perhaps. */
static const struct rmp_rights *random_list(union list_of *list)
{
	u32 i;

	list->rights.nr = 0;
	if (!below(10))
		return NULL;
	for (i = 0; i < PEERS; i++) {
		if (below(2))
			add(list, names[i], (u32)below(4) << 1);
	}
	if (below(2))
		add(list, "*", (u32)below(4) << 1);
	return &list->rights;
}

static void test_random(struct kunit *test)
{
	union list_of a, b;
	u32 n, i, lost;

	for (n = 0; n < many(2000, 100000); n++) {
		const struct rmp_rights *from = random_list(&a);
		const struct rmp_rights *to = random_list(&b);

		lost = 0;
		for (i = 0; i <= PEERS; i++)
			lost |= rmp_rights_of(from, names[i], "g") &
				~rmp_rights_of(to, names[i], "g");
		KUNIT_ASSERT_EQ(test, rmp_rights_lost(from, to), lost);
		KUNIT_ASSERT_EQ(test, rmp_rights_lost(from, from), 0);
	}
}

static struct kunit_case rights_cases[] = {
	KUNIT_CASE(test_whose),
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_groups),
	KUNIT_CASE(test_twice),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite rights_suite = {
	.name = "rmp_rights",
	.suite_init = suite_begin,
	.init = suite_case,
	.test_cases = rights_cases,
};

kunit_test_suites(&rights_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's lists of rights");
MODULE_LICENSE("GPL");
