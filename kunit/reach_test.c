// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/reach.c and group.c, with attach.c and rekey.c: trust groups, and what
 * regions have for them, while devices, groups and keys come and go.
 */
#include "region_world.h"

#define BYTES	(10 * PAGE_SIZE)

static void device_come(struct kunit *test, u32 index, u32 chunk_pages)
{
	rmp_region_device_added(device_make(test, index, chunk_pages));
}

static struct rmp_region *region_make(struct kunit *test, u64 addr,
				      struct rmp_segment *segment)
{
	struct rmpool_region_add arg = {
		.addr = addr, .length = BYTES, .access = RMPOOL_ACCESS_ALL,
		.offset = segment ? RMPOOL_OFFSET_NEXT : 0,
	};

	KUNIT_ASSERT_EQ(test, rmp_region_add(&world.mem, &arg, segment), 0);
	return xa_load(&world.mem.handles, arg.handle);
}

static u32 group_make(struct kunit *test, const char *name)
{
	int group = rmp_group_join(name);

	KUNIT_ASSERT_GT(test, group, 0);
	return group;
}

static void group_go(struct kunit *test, u32 group)
{
	KUNIT_EXPECT_TRUE(test, rmp_group_leave(group));
	rmp_region_group_gone(group);
}

/* Through how many devices each byte is reached for a group: the least of all. */
static u32 reach_of(const struct rmp_region *region, u32 group)
{
	u32 least = DEVICES, n, i, key;
	u64 pos, iova;

	for (pos = 0; pos < region->length; pos += PAGE_SIZE) {
		n = 0;
		for (i = 0; i < DEVICES; i++)
			n += !!rmp_region_local(region, group, i, pos, &iova, &key);
		least = min(least, n);
	}
	return least;
}

static int reach(struct rmp_region *region, u32 group)
{
	struct rmpool_error error;

	return rmp_region_reach(region, group, &error);
}

static void test_table(struct kunit *test)
{
	char name[RMPOOL_NAME_MAX];
	int group[RMP_GROUPS_MAX];
	u32 i;

	KUNIT_EXPECT_EQ(test, rmp_group_join("default"), RMP_GROUP_DEFAULT);
	KUNIT_EXPECT_FALSE(test, rmp_group_leave(RMP_GROUP_DEFAULT));
	for (i = 1; i < RMP_GROUPS_MAX; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		group[i] = group_make(test, name);
		KUNIT_EXPECT_STREQ(test, rmp_group_name(group[i]), name);
	}
	KUNIT_EXPECT_EQ(test, rmp_group_join("more"), -ENOSPC);
	/* One more peer of one that is there. */
	KUNIT_EXPECT_EQ(test, rmp_group_join("g7"), group[7]);
	KUNIT_EXPECT_FALSE(test, rmp_group_leave(group[7]));
	/* Its place is taken as long as anything of it is left, its name is not. */
	KUNIT_EXPECT_TRUE(test, rmp_group_use(group[3]));
	KUNIT_EXPECT_TRUE(test, rmp_group_leave(group[3]));
	KUNIT_EXPECT_FALSE(test, rmp_group_use(group[3]));
	KUNIT_EXPECT_EQ(test, rmp_group_join("g3"), -ENOSPC);
	rmp_group_unuse(group[3]);
	KUNIT_EXPECT_EQ(test, rmp_group_join("g3"), -ENOSPC);
	rmp_group_unuse(group[3]);
	KUNIT_EXPECT_EQ(test, rmp_group_join("new"), group[3]);
	for (i = 1; i < RMP_GROUPS_MAX; i++) {
		KUNIT_EXPECT_TRUE(test, rmp_group_leave(group[i]));
		rmp_group_unuse(group[i]);
	}
}

static void test_devices(struct kunit *test)
{
	u32 a = group_make(test, "a"), b = group_make(test, "b"), mrs;
	struct rmp_region *region, *other;

	device_come(test, 0, 2);
	region = region_make(test, BASE, NULL);
	other = region_make(test, BASE + BYTES, NULL);
	mrs = world.mrs;
	KUNIT_EXPECT_TRUE(test, rmp_region_reached(region, RMP_GROUP_DEFAULT));
	KUNIT_EXPECT_FALSE(test, rmp_region_reached(region, a));
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 0);
	KUNIT_EXPECT_EQ(test, reach(region, a), 0);
	KUNIT_EXPECT_EQ(test, reach(region, a), 0);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
	KUNIT_EXPECT_EQ(test, reach_of(region, b), 0);
	KUNIT_EXPECT_EQ(test, reach_of(other, a), 0);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs + mrs / 2);
	KUNIT_EXPECT_EQ(test, world.dev[0]->mrs, mrs + mrs / 2);
	KUNIT_EXPECT_EQ(test, world.domain[0][b].users, 0);

	/* Devices that come and go do so for all groups. */
	device_come(test, 3, 2);
	KUNIT_EXPECT_EQ(test, reach_of(region, RMP_GROUP_DEFAULT), 2);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 2);
	KUNIT_EXPECT_EQ(test, reach_of(other, a), 0);
	device_go(0);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
	device_go(3);
	KUNIT_EXPECT_FALSE(test, rmp_region_reached(region, a));
	KUNIT_EXPECT_EQ(test, reach(region, a), -ENODEV);
	device_come(test, 0, 2);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);

	/* A group that ends takes its own. */
	KUNIT_EXPECT_EQ(test, reach(region, b), 0);
	KUNIT_EXPECT_EQ(test, reach(other, b), 0);
	KUNIT_EXPECT_EQ(test, world.mrs, 2 * mrs + mrs / 2);
	group_go(test, b);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs + mrs / 2);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
	KUNIT_EXPECT_EQ(test, reach(region, b), -ENOENT);
	device_come(test, 2, 2);
	KUNIT_EXPECT_EQ(test, reach_of(region, b), 0);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 2);
	KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, region->handle), 0);
	group_go(test, a);
}

static void test_segment(struct kunit *test)
{
	u32 a = group_make(test, "a"), b = group_make(test, "b");
	struct rmp_region *before, *after;

	device_come(test, 0, 2);
	device_come(test, 1, 2);
	before = region_make(test, BASE, &world.segment);
	world.segment.groups = BIT(a) | BIT(b);
	after = region_make(test, BASE + BYTES, &world.segment);
	KUNIT_EXPECT_EQ(test, reach_of(after, a), 2);
	KUNIT_EXPECT_EQ(test, reach_of(after, b), 2);
	KUNIT_EXPECT_EQ(test, reach_of(before, a), 0);
	rmp_segment_reach(&world.segment);
	KUNIT_EXPECT_EQ(test, reach_of(before, a), 2);
	KUNIT_EXPECT_EQ(test, reach_of(before, b), 2);
	KUNIT_EXPECT_EQ(test, world.changed, 1);
	/* Nothing is new: nobody is told. */
	rmp_segment_reach(&world.segment);
	KUNIT_EXPECT_EQ(test, world.changed, 1);
	KUNIT_EXPECT_NE(test, rmp_region_rkey(before, a, 0, 0),
			rmp_region_rkey(before, b, 0, 0));
	KUNIT_EXPECT_NE(test, rmp_region_rkey(before, a, 0, 0),
			rmp_region_rkey(before, RMP_GROUP_DEFAULT, 0, 0));
	group_go(test, a);
	group_go(test, b);
	world.segment.groups = 0;
}

/* Each group has other keys afterwards, also when one call on the way fails. */
static void test_rekey(struct kunit *test)
{
	u32 a = group_make(test, "a"), mrs, key[2], n;
	struct rmp_region *region;
	struct rmp_rekeyed done;

	device_come(test, 0, 2);
	region = region_make(test, BASE, &world.segment);
	KUNIT_EXPECT_EQ(test, reach(region, a), 0);
	mrs = world.mrs;
	for (n = 1;; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		key[0] = rmp_region_rkey(region, RMP_GROUP_DEFAULT, 0, 0);
		key[1] = rmp_region_rkey(region, a, 0, 0);
		region->told = true;
		world.calls = 0;
		world.fail_at = n;
		KUNIT_EXPECT_EQ(test, rmp_segment_rekey_all(&world.segment,
							    RMPOOL_ACCESS_REMOTE_READ,
							    NULL, &done), 0);
		KUNIT_EXPECT_EQ(test, done.regions, 1);
		KUNIT_EXPECT_EQ(test, done.lost, 0);
		KUNIT_EXPECT_EQ(test, world.mrs, mrs);
		KUNIT_EXPECT_EQ(test, reach_of(region, RMP_GROUP_DEFAULT), 1);
		KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
		KUNIT_EXPECT_NE(test, rmp_region_rkey(region, RMP_GROUP_DEFAULT, 0, 0),
				key[0]);
		KUNIT_EXPECT_NE(test, rmp_region_rkey(region, a, 0, 0), key[1]);
		if (world.calls < n)
			break;
	}
	world.fail_at = 0;
	group_go(test, a);
}

/* What fails leaves nothing, and can be had later. */
static void test_unwinding(struct kunit *test)
{
	u32 a = group_make(test, "a"), mrs, n;
	struct rmp_region *region;
	int ret;

	device_come(test, 0, 2);
	device_come(test, 3, 4);
	mrs = world.mrs;
	for (n = 1;; n++) {
		KUNIT_ASSERT_LT(test, n, 100);
		region = region_make(test, BASE, NULL);
		mrs = world.mrs;
		world.calls = 0;
		world.fail_at = n;
		ret = reach(region, a);
		world.fail_at = 0;
		if (!ret)
			break;
		KUNIT_EXPECT_EQ(test, world.mrs, mrs);
		KUNIT_EXPECT_FALSE(test, rmp_region_reached(region, a));
		KUNIT_EXPECT_EQ(test, world.domain[0][a].users, 0);
		KUNIT_EXPECT_EQ(test, reach_of(region, RMP_GROUP_DEFAULT), 2);
		KUNIT_EXPECT_EQ(test, reach(region, a), 0);
		KUNIT_EXPECT_EQ(test, reach_of(region, a), 2);
		KUNIT_EXPECT_EQ(test, rmp_region_del(&world.mem, region->handle), 0);
	}
	KUNIT_EXPECT_GT(test, n, 4);
	group_go(test, a);
}

/* Where no device has room for all, each chunk is on one; without room, nothing is. */
static void test_room(struct kunit *test)
{
	u32 a = group_make(test, "a"), b = group_make(test, "b"), mrs;
	struct rmpool_error error;
	struct rmp_region *region;

	device_come(test, 0, 2);
	device_come(test, 3, 2);
	region = region_make(test, BASE, NULL);
	mrs = world.mrs;
	max_device_mrs = mrs / 2 + mrs / 4 + 1;
	KUNIT_EXPECT_EQ(test, reach(region, a), 0);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
	KUNIT_EXPECT_EQ(test, reach_of(region, RMP_GROUP_DEFAULT), 2);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs + mrs / 2);
	KUNIT_EXPECT_EQ(test, rmp_region_reach(region, b, &error), -ENOMEM);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_DEVICE_MRS);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs + mrs / 2);
	max_device_mrs = 0;
	/* What only one device had is dealt to the other. */
	device_go(3);
	KUNIT_EXPECT_EQ(test, reach_of(region, a), 1);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs);
	group_go(test, a);
	group_go(test, b);
	KUNIT_EXPECT_EQ(test, world.mrs, mrs / 2);
}

static struct kunit_case reach_cases[] = {
	KUNIT_CASE(test_table),
	KUNIT_CASE(test_devices),
	KUNIT_CASE(test_segment),
	KUNIT_CASE(test_rekey),
	KUNIT_CASE(test_unwinding),
	KUNIT_CASE(test_room),
	{}
};

static struct kunit_suite reach_suite = {
	.name = "rmp_reach",
	.suite_init = suite_begin,
	.init = region_init,
	.exit = region_exit,
	.test_cases = reach_cases,
};

kunit_test_suites(&reach_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's trust groups");
MODULE_LICENSE("GPL");
