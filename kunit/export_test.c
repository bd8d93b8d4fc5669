// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/export.c and segment.c: our segments, and what another node sees
 * of them: names, and keys page by page while regions come and go; how they are taken
 * back: revoke_test.c. The rooms around them are the real ones, what they stand on is played
 * (peer_world.h); regions are just their description.
 */
#include "peer_world.h"
#include "segment_acts.h"

static struct rmp_peer *other_node(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);

	go_passive(test, peer, 1, 1);
	forget_sent();
	return peer;
}

/* ------------------------------------------------------ what the other node asks */

static void ask_close(struct kunit *test, struct rmp_peer *peer, u32 segment)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_SEGMENT_CLOSE, .segment.segment = segment,
	};

	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
}

/* Asks for one page of regions up to @to and takes it in, as fetch.c does. @wrong: whether
 * it did not fit what came before.
 */
static struct rmp_msg_keys ask_page_to(struct kunit *test, struct rmp_peer *peer,
				       u32 segment,
				       const struct rmp_wire_cursor *from, u64 to,
				       struct rmp_keycache *kc, bool *wrong)
{
	static struct rmp_msg msg;
	struct rmp_wire_keys run;
	size_t pos = 0;
	int ret = 0;

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_KEYS_GET;
	msg.keys_get.segment = segment;
	msg.keys_get.from = *from;
	msg.keys_get.to = to;
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	memset(&msg, 0, sizeof(msg));
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS, &msg));
	KUNIT_EXPECT_EQ(test, msg.keys.segment, segment);
	while (!ret && rmp_keys_next(world.keys, world.keys_len, &pos, &run) > 0)
		ret = rmp_keycache_add(kc, &run);
	if (!ret && msg.keys.last)
		ret = rmp_keycache_commit(kc);
	*wrong = ret;
	return msg.keys;
}

static struct rmp_msg_keys ask_page(struct kunit *test, struct rmp_peer *peer,
				    u32 segment,
				    const struct rmp_wire_cursor *from,
				    struct rmp_keycache *kc, bool *wrong)
{
	return ask_page_to(test, peer, segment, from, U64_MAX, kc, wrong);
}

static void rregion_released(struct rmp_rregion *rr)
{
	rmp_rregion_free(rr);
}

/* What the other node then knows of a region. */
static void expect_known(struct kunit *test, struct rmp_keycache *kc,
			 const struct rmp_region *region)
{
	struct rmp_rregion *rr;
	u64 iova, pos, left;
	u32 rkey, device;

	rr = rmp_keycache_find(kc, region->offset, region->length,
			       RMPOOL_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rr->id, region->id);
	for (device = 0; device < 2; device++) {
		for (pos = 0; pos < region->length; pos += left) {
			u32 chunk = (77 + pos) >> 21;

			left = rmp_rregion_remote(rr, device, pos, &iova, &rkey);
			KUNIT_ASSERT_GT(test, left, 0);
			KUNIT_ASSERT_EQ(test, iova, region->iova + pos);
			KUNIT_ASSERT_EQ(test, rkey,
					rmp_region_rkey(region, 0, device, chunk));
		}
	}
	rmp_rregion_put(rr);
}

/* ------------------------------------------------------------------ the cases */

static void test_names(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *a, *b;
	char name[RMPOOL_NAME_MAX] = {};
	u32 i;

	a = publish(test, "a");
	b = publish(test, "b");
	KUNIT_EXPECT_NE(test, a->id, b->id);
	name[0] = 'a';
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_segment_create(name)), -EEXIST);
	name[0] = '/';
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_segment_create(name)), -EINVAL);
	name[0] = '\0';
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_segment_create(name)), -EINVAL);
	name[5] = 'x';
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_segment_create(name)), -EINVAL);
	memset(name, 'x', sizeof(name));
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_segment_create(name)), -EINVAL);
	for (i = 1; i < 256; i++) {
		bool good = isascii(i) && (isalnum(i) || strchr("._:@-", i));

		memset(name, 0, sizeof(name));
		name[0] = (char)i;
		KUNIT_EXPECT_EQ_MSG(test, rmp_name_valid(name), good, "%u", i);
	}

	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "none").status,
			RMPOOL_REASON_SEGMENT_UNKNOWN);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "").status,
			RMPOOL_REASON_SEGMENT_UNKNOWN);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "a").segment, a->id);
	/* Once more is the same. */
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "a").segment, a->id);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 1);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "b").segment, b->id);
	ask_close(test, peer, b->id);
	ask_close(test, peer, b->id);
	ask_close(test, peer, 12345);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 1);
	unpublish(a);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "a").status,
			RMPOOL_REASON_SEGMENT_UNKNOWN);
	unpublish(b);
	check_peer(test, peer);
}

static void test_offsets(struct kunit *test)
{
	struct rmp_segment *s = publish(test, "s");
	struct rmp_region r[4];
	u64 offset;

	region_make(&r[0], 1, 1);
	region_make(&r[1], 2, 2);
	region_make(&r[2], 3, 1);
	region_make(&r[3], 4, 1);
	/* The next free offset is behind the last one, at a page. */
	offset = RMPOOL_OFFSET_NEXT;
	KUNIT_EXPECT_EQ(test, rmp_segment_insert(s, &r[0], &offset), 0);
	KUNIT_EXPECT_EQ(test, offset, 0);
	offset = RMPOOL_OFFSET_NEXT;
	KUNIT_EXPECT_EQ(test, rmp_segment_insert(s, &r[1], &offset), 0);
	KUNIT_EXPECT_EQ(test, offset, 2 << 20);
	/* Overlaps, in each way; then the ends of all space. */
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[2], 0), -EEXIST);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[2], r[0].length - 1), -EEXIST);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[2], (6 << 20) - 78), -EEXIST);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[2], (6 << 20) - 77), 0);
	KUNIT_EXPECT_EQ(test, s->size, (8 << 20) - 77 - 77);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[3], 0 - r[3].length), -EINVAL);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[3], 0 - r[3].length - 1), 0);
	KUNIT_EXPECT_EQ(test, s->size, U64_MAX);
	offset = RMPOOL_OFFSET_NEXT;
	KUNIT_EXPECT_EQ(test, rmp_segment_insert(s, &r[0], &offset), -EINVAL);
	/* Out again: each its own only, and the size follows. */
	rmp_segment_remove(s, &r[3]);
	KUNIT_EXPECT_EQ(test, s->size, (8 << 20) - 77 - 77);
	rmp_segment_remove(s, &r[3]);
	KUNIT_EXPECT_EQ(test, s->nr_regions, 3);
	/* Nobody has it open, so nobody is waited for. */
	KUNIT_EXPECT_FALSE(test, is_kept(&r[3]));
	KUNIT_EXPECT_NULL(test, rmp_segment_delete(s));
	KUNIT_EXPECT_EQ(test, s->nr_regions, 0);
	KUNIT_EXPECT_EQ(test, s->size, 0);
	rmp_segment_put(s);
}

#define REGIONS		60

struct walk {
	struct rmp_segment *segment;
	struct rmp_keycache kc;
	struct rmp_region r[REGIONS];
	bool in[REGIONS];
	bool stays[REGIONS];
	u64 id;
};

static void put_in(struct kunit *test, struct walk *w, u32 i)
{
	/* Now and then one that fills pages by itself. */
	region_make(&w->r[i], ++w->id, 1 + (u32)below(below(6) ? 30 : 3000));
	KUNIT_ASSERT_EQ(test, insert_at(w->segment, &w->r[i], (u64)i << 36), 0);
	w->in[i] = true;
}

/* The other node is told, and lets go of it. */
static void take_away(struct kunit *test, struct rmp_peer *peer, struct walk *w, u32 i)
{
	struct rmp_rregion *rr;

	rmp_segment_remove(w->segment, &w->r[i]);
	rr = rmp_keycache_remove(&w->kc, w->r[i].id);
	if (rr)
		rmp_rregion_put(rr);
	KUNIT_EXPECT_EQ(test, let_go_of_all(test, peer), 1);
	KUNIT_ASSERT_FALSE(test, is_kept(&w->r[i]));
	w->in[i] = false;
	w->stays[i] = false;
}

/* All keys of all regions, in pages; while the other node asks for them, regions
 * come and go, also in the place of one that was half told. What was there all
 * the time it knows exactly, once; what came it may know or not, and then
 * KEYS_CHANGED tells it to ask again. What does not fit what it knew before it
 * may see only when something changed.
 */
static void test_pages(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_wire_cursor from;
	struct rmp_msg_keys keys;
	u32 round, i, pages = 0, again = 0;
	bool wrong, changes, changed;
	struct walk *w;

	w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	w->segment = publish(test, "s");
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").segment, w->segment->id);
	/* Seldom, nothing comes in between in thirty. */
	for (round = 0; round < 30 || (!again && round < 300); round++) {
		u32 nr = (u32)below(REGIONS + 1);

		rmp_keycache_init(&w->kc, rregion_released, NULL);
		for (i = 0; i < nr; i++) {
			put_in(test, w, i);
			w->stays[i] = true;
		}
		changes = round % 2;
		changed = false;
		from = (struct rmp_wire_cursor){};
		for (;;) {
			forget_sent();
			keys = ask_page(test, peer, w->segment->id, &from,
					&w->kc, &wrong);
			pages++;
			if (wrong) {
				KUNIT_ASSERT_TRUE(test, changed);
				again++;
				rmp_keycache_begin(&w->kc);
				keys = (struct rmp_msg_keys){};
				changed = false;
				changes = false;
			} else if (keys.last) {
				break;
			}
			from = keys.next;
			if (!changes || below(2))
				continue;
			changed = true;
			i = (u32)(below(2) ? below(REGIONS) : from.region >> 36);
			if (w->in[i])
				take_away(test, peer, w, i);
			if (below(2) && !w->in[i])
				put_in(test, w, i);
		}
		KUNIT_EXPECT_EQ(test, keys.generation, w->segment->generation);
		for (i = 0; i < REGIONS; i++) {
			if (w->stays[i])
				expect_known(test, &w->kc, &w->r[i]);
		}
		for (i = 0; i < REGIONS; i++) {
			if (w->in[i])
				take_away(test, peer, w, i);
		}
		rmp_keycache_destroy(&w->kc);
		world_settle(test);
	}
	kunit_info(test, "%u pages, begun again %u times", pages, again);
	KUNIT_EXPECT_GT(test, pages, 60);
	KUNIT_EXPECT_GT(test, again, 0);
	unpublish(w->segment);
	check_peer(test, peer);
}

/* The keys that a peer is told are those of its trust group, for which the regions of what it
 * opens are mapped.
 */
static void test_group(struct kunit *test)
{
	struct sockaddr_storage addr = address(1);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_wire_cursor from = {};
	struct rmp_keycache kc;
	struct rmp_rregion *rr;
	struct rmp_region r[2];
	struct rmp_peer *peer;
	u32 rkey, other;
	bool wrong;
	u64 iova;

	KUNIT_ASSERT_EQ(test, rmp_peer_add("b", &addr, "g"), 0);
	peer = peer_keep(test, "b");
	KUNIT_ASSERT_NE(test, peer->group, RMP_GROUP_DEFAULT);
	KUNIT_EXPECT_STREQ(test, rmp_group_name(peer->group), "g");
	go_passive(test, peer, 1, 1);
	forget_sent();
	region_make(&r[0], 1, 3);
	KUNIT_ASSERT_EQ(test, insert_at(s, &r[0], 0), 0);
	KUNIT_EXPECT_EQ(test, s->groups, 0);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").segment, s->id);
	KUNIT_EXPECT_EQ(test, s->groups, BIT(peer->group));
	world_settle(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.reached), 1);

	rmp_keycache_init(&kc, rregion_released, NULL);
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, s->id, &from, &kc, &wrong).last, 1);
	rr = rmp_keycache_find(&kc, 0, 1, RMPOOL_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_NE(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, rkey, rmp_region_rkey(&r[0], peer->group, 0, 0));
	other = rmp_region_rkey(&r[0], RMP_GROUP_DEFAULT, 0, 0);
	KUNIT_EXPECT_NE(test, rkey, other);
	rmp_rregion_put(rr);
	rmp_keycache_destroy(&kc);

	/* What comes later is mapped for the group before. */
	region_make(&r[1], 2, 1);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[1], 1 << 30), -EAGAIN);
	r[1].groups = BIT(peer->group);
	KUNIT_EXPECT_EQ(test, insert_at(s, &r[1], 1 << 30), 0);
	ask_close(test, peer, s->id);
	KUNIT_EXPECT_EQ(test, s->groups, 0);
	unpublish(s);
	check_peer(test, peer);
}

/* The regions told that have bytes between two offsets, one bit each, in @pages pages, by a
 * cursor that may be of something else.
 */
static u32 told_between(struct kunit *test, struct rmp_peer *peer, struct walk *w,
			struct rmp_wire_cursor from, u64 to, u32 *pages)
{
	struct rmp_msg_keys keys;
	u32 told = 0, i;
	bool wrong;

	rmp_keycache_init(&w->kc, rregion_released, NULL);
	*pages = 0;
	do {
		keys = ask_page_to(test, peer, w->segment->id, &from, to, &w->kc, &wrong);
		KUNIT_EXPECT_FALSE(test, wrong);
		from = keys.next;
		++*pages;
	} while (!keys.last && !wrong && *pages < 100);
	for (i = 0; i < REGIONS; i++) {
		if (!xa_load(&w->kc.by_id, w->r[i].id))
			continue;
		expect_known(test, &w->kc, &w->r[i]);
		told |= BIT(i);
	}
	KUNIT_EXPECT_EQ(test, w->kc.nr_regions, hweight32(told));
	rmp_keycache_destroy(&w->kc);
	return told;
}

/* A range of offsets: regions that have bytes in it are told as a whole, and no others. */
static void test_range(struct kunit *test)
{
	static const u32 chunks[] = { 1, 1, 3000, 1, 1 };
	struct rmp_peer *peer = other_node(test);
	struct rmp_region *r;
	struct walk *w;
	u32 i, pages;

	w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	w->segment = publish(test, "s");
	r = w->r;
	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		region_make(&r[i], i + 1, chunks[i]);
		KUNIT_ASSERT_EQ(test, insert_at(w->segment, &r[i], (u64)i << 36), 0);
	}
	ask_open(test, peer, "s");
	world_settle(test);
	forget_sent();

#define TOLD(first, last) \
	told_between(test, peer, w, (struct rmp_wire_cursor){ .region = (first) }, \
		     (last), &pages)
	KUNIT_EXPECT_EQ(test, TOLD(0, U64_MAX), 0x1f);
	KUNIT_EXPECT_EQ(test, TOLD(0, 0), 0x01);
	KUNIT_EXPECT_EQ(test, pages, 1);
	KUNIT_EXPECT_EQ(test, TOLD(r[1].offset, r[1].offset + r[1].length - 1), 0x02);
	KUNIT_EXPECT_EQ(test, pages, 1);
	/* One byte of it is enough, at each end and between. */
	KUNIT_EXPECT_EQ(test, TOLD(r[1].offset + 5, r[1].offset + 5), 0x02);
	KUNIT_EXPECT_EQ(test, TOLD(r[0].offset + r[0].length - 1, r[1].offset), 0x03);
	KUNIT_EXPECT_EQ(test, TOLD(r[0].offset + r[0].length, r[1].offset - 1), 0);
	KUNIT_EXPECT_EQ(test, pages, 1);
	KUNIT_EXPECT_EQ(test, TOLD(r[4].offset + r[4].length, U64_MAX), 0);
	KUNIT_EXPECT_EQ(test, TOLD(U64_MAX, U64_MAX), 0);
	/* Pages of one that begins before the range. */
	KUNIT_EXPECT_EQ(test, TOLD(r[2].offset + 77, r[2].offset + 77), 0x04);
	KUNIT_EXPECT_GT(test, pages, 3);
	KUNIT_EXPECT_EQ(test, TOLD(r[2].offset + 77, r[3].offset), 0x0c);
#undef TOLD
	/* In the middle of what is not there. */
	KUNIT_EXPECT_EQ(test, told_between(test, peer, w, (struct rmp_wire_cursor){
			.region = r[1].offset + 1, .device = 1, .chunk = 7 },
			r[3].offset - 1, &pages), 0x06);
	unpublish(w->segment);
	check_peer(test, peer);
}

/* A region that no device reaches, or that no peer may use, is told without
 * keys; cursors that lead nowhere are no harm.
 */
static void test_bare(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_wire_cursor from = {};
	struct rmp_keycache kc;
	struct rmp_region r;
	struct rmp_rregion *rr;
	bool wrong;
	u64 iova;
	u32 rkey;

	rmp_keycache_init(&kc, rregion_released, NULL);
	region_make(&r, 1, 3);
	r.access = RMPOOL_ACCESS_LOCAL_WRITE;
	KUNIT_ASSERT_EQ(test, insert_at(s, &r, 0), 0);
	ask_open(test, peer, "s");
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, s->id, &from, &kc, &wrong).last, 1);
	KUNIT_EXPECT_FALSE(test, wrong);
	rr = rmp_keycache_find(&kc, 0, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rmp_rregion_remote(rr, 0, 0, &iova, &rkey), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_keycache_find(&kc, 0, 1,
							RMPOOL_ACCESS_REMOTE_READ)), -EACCES);
	rmp_rregion_put(rr);

	from = (struct rmp_wire_cursor){ .region = 1, .device = 31, .chunk = 9 };
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, s->id, &from, &kc, &wrong).last, 1);
	from.region = U64_MAX;
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, s->id, &from, &kc, &wrong).last, 1);
	/* A segment that it has not opened looks empty. */
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, 4321, &from, &kc, &wrong).nr_runs, 0);
	rmp_keycache_destroy(&kc);
	unpublish(s);
	check_peer(test, peer);
}

static void expect_range(struct kunit *test, const struct rmp_msg *changed, u64 from, u64 to)
{
	KUNIT_EXPECT_EQ(test, changed->segment.range.from, from);
	KUNIT_EXPECT_EQ(test, changed->segment.range.to, to);
}

/* A region that has become stale is told without keys, to who knew it and to others. */
static void test_stale(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_wire_cursor from = {};
	static struct rmp_msg msg;
	struct rmp_keycache kc, fresh;
	struct rmp_region r[2];
	bool wrong;
	u32 i;

	rmp_keycache_init(&kc, rregion_released, NULL);
	rmp_keycache_init(&fresh, rregion_released, NULL);
	for (i = 0; i < 2; i++) {
		region_make(&r[i], i + 1, 1);
		KUNIT_ASSERT_EQ(test, insert_at(s, &r[i], (u64)i << 30), 0);
	}
	ask_open(test, peer, "s");
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	world_settle(test);
	forget_sent();

	r[1].state = RMPOOL_REGION_STATE_STALE;
	rmp_segment_changed(s, &r[1]);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	KUNIT_EXPECT_EQ(test, msg.segment.generation, s->generation);
	expect_range(test, &msg, r[1].offset, r[1].offset + r[1].length - 1);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REVOKE, NULL));
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	ask_page(test, peer, s->id, &from, &fresh, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_keycache_find(&kc, 1ULL << 30, 1, 0)), -ESTALE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rmp_keycache_find(&fresh, 1ULL << 30, 1, 0)),
			-ESTALE);
	expect_known(test, &kc, &r[0]);
	expect_known(test, &fresh, &r[0]);
	rmp_keycache_destroy(&kc);
	rmp_keycache_destroy(&fresh);
	unpublish(s);
	check_peer(test, peer);
}

static void nothing_told(struct work_struct *work)
{
}

/* Many changes at once are told once, with the range that has all of them; what comes then
 * is told by itself.
 */
static void test_changed(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s"), *other = publish(test, "t");
	struct work_struct *work;
	static struct rmp_msg msg;
	struct rmp_region r[5];
	work_func_t tell;
	u32 i;

	ask_open(test, peer, "s");
	ask_open(test, peer, "t");
	for (i = 0; i < 5; i++)
		region_make(&r[i], i + 1, 1);
	work = &peer->session->changed_work;
	tell = work->func;
	work->func = nothing_told;
	for (i = 3; i > 0; i--)
		KUNIT_ASSERT_EQ(test, insert_at(s, &r[i], (u64)i << 30), 0);
	KUNIT_ASSERT_EQ(test, insert_at(other, &r[4], 5), 0);
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));
	work->func = tell;
	queue_work(rmp_wq, work);
	world_settle(test);
	/* In order of the segments. */
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	KUNIT_EXPECT_EQ(test, msg.segment.segment, s->id);
	KUNIT_EXPECT_EQ(test, msg.segment.generation, s->generation);
	expect_range(test, &msg, r[1].offset, r[3].offset + r[3].length - 1);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	KUNIT_EXPECT_EQ(test, msg.segment.segment, other->id);
	expect_range(test, &msg, 5, 5 + r[4].length - 1);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));

	KUNIT_ASSERT_EQ(test, insert_at(s, &r[0], 0), 0);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	expect_range(test, &msg, 0, r[0].length - 1);
	rmp_segment_changed(s, NULL);
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	expect_range(test, &msg, 0, U64_MAX);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));
	ask_close(test, peer, other->id);
	unpublish(other);

	rmp_segments_changed();
	world_settle(test);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	expect_range(test, &msg, 0, U64_MAX);
	/* Not to one who has closed it. */
	ask_close(test, peer, s->id);
	rmp_segments_changed();
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));
	unpublish(s);
}

static struct rmp_rights *list_of(struct kunit *test, const char *peer, u32 access)
{
	struct rmp_rights *rights = kzalloc(struct_size(rights, of, 1), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rights);
	rights->nr = 1;
	strscpy(rights->of[0].peer, peer, sizeof(rights->of[0].peer));
	rights->of[0].access = access;
	return rights;
}

static struct rmp_revocation *allow(struct kunit *test, struct rmp_segment *segment,
				    struct rmp_rights *rights, u32 lost)
{
	struct rmp_revocation *rev;
	u32 really;

	KUNIT_EXPECT_EQ(test, rmp_segment_set_rights(segment, rights, &really, &rev),
			0);
	KUNIT_EXPECT_EQ(test, really, lost);
	world_settle(test);
	return rev;
}

#define CAN_GET	RMPOOL_ACCESS_REMOTE_READ
#define CAN_PUT	RMPOOL_ACCESS_REMOTE_WRITE

/* What the other node may do is what it is told, and follows the list. */
static void test_rights(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_wire_cursor from = {};
	struct rmp_revocation *rev;
	static struct rmp_msg msg;
	struct rmp_keycache kc;
	struct rmp_rregion *rr;
	struct rmp_region r;
	bool wrong;

	rmp_keycache_init(&kc, rregion_released, NULL);
	region_make(&r, 1, 1);
	KUNIT_ASSERT_EQ(test, insert_at(s, &r, 0), 0);
	KUNIT_EXPECT_NULL(test, allow(test, s, list_of(test, "a", CAN_GET | CAN_PUT),
				      CAN_GET | CAN_PUT));
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").status,
			RMPOOL_REASON_NOT_ALLOWED);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 0);
	/* What it has not opened looks empty. */
	KUNIT_EXPECT_EQ(test, ask_page(test, peer, s->id, &from, &kc, &wrong).nr_runs, 0);
	KUNIT_EXPECT_FALSE(test, r.told);

	KUNIT_EXPECT_NULL(test, allow(test, s, list_of(test, "b", CAN_GET), CAN_GET | CAN_PUT));
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").segment, s->id);
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	KUNIT_EXPECT_TRUE(test, r.told);
	rr = rmp_keycache_find(&kc, 0, 1, CAN_GET);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rr));
	KUNIT_EXPECT_EQ(test, rr->access, CAN_GET);

	/* More is told to who knows it; less as well. */
	forget_sent();
	KUNIT_EXPECT_NULL(test, allow(test, s, NULL, 0));
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, &msg));
	expect_range(test, &msg, 0, U64_MAX);
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	KUNIT_EXPECT_EQ(test, rr->access, CAN_GET | CAN_PUT);
	KUNIT_EXPECT_NULL(test, allow(test, s, list_of(test, "*", CAN_PUT), CAN_GET));
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_EQ(test, rr->access, CAN_PUT);

	/* Nothing any more: it is told once, and then never again. */
	rev = allow(test, s, list_of(test, "b", 0), CAN_PUT);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_WITHDRAWN, &msg));
	KUNIT_EXPECT_EQ(test, msg.revoke.segment, s->id);
	KUNIT_EXPECT_EQ(test, msg.revoke.region, 0);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&s->subscribers));
	KUNIT_EXPECT_FALSE(test, completion_done(&rev->done));
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	rmp_segments_changed();
	world_settle(test);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_KEYS_CHANGED, NULL));
	KUNIT_EXPECT_NULL(test, rmp_segment_rekey(s, &r));
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").status,
			RMPOOL_REASON_NOT_ALLOWED);

	/* And back. */
	KUNIT_EXPECT_NULL(test, allow(test, s, NULL, 0));
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").segment, s->id);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 1);
	rmp_rregion_put(rr);
	rmp_keycache_destroy(&kc);
	unpublish(s);
	check_peer(test, peer);
}

/* A right that goes and comes before the other node is told of either. */
static void test_rights_back_at_once(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_revocation *rev;
	u32 lost;

	ask_open(test, peer, "s");
	mutex_lock(&peer->session->export_lock);
	KUNIT_EXPECT_NOT_NULL(test, xa_load(&peer->session->exports, s->id));
	mutex_unlock(&peer->session->export_lock);
	KUNIT_EXPECT_EQ(test, rmp_segment_set_rights(s, list_of(test, "a", CAN_GET),
						     &lost, &rev), 0);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	/* Its export is out already, the old one perhaps still on its way out. */
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 0);
	rmp_revocation_put(rev);
	KUNIT_EXPECT_EQ(test, rmp_segment_set_rights(s, NULL, &lost, &rev), 0);
	KUNIT_EXPECT_EQ(test, lost, 0);
	KUNIT_EXPECT_NULL(test, rev);
	KUNIT_EXPECT_EQ(test, ask_open(test, peer, "s").segment, s->id);
	world_settle(test);
	KUNIT_EXPECT_EQ(test, peer->session->nr_exports, 1);
	KUNIT_EXPECT_FALSE(test, list_empty(&s->subscribers));
	unpublish(s);
	check_peer(test, peer);
}

/* Keys that were told are replaced: which regions, and who is asked. */
static void test_rekey(struct kunit *test)
{
	struct rmp_peer *peer = other_node(test);
	struct rmp_segment *s = publish(test, "s");
	struct rmp_wire_cursor from = {};
	struct rmp_region r[5], *told[4];
	struct rmp_revocation *rev, *ending;
	static struct rmp_msg msg;
	struct rmp_keycache kc;
	bool wrong;
	u64 at = 0;
	u32 i;

	rmp_keycache_init(&kc, rregion_released, NULL);
	for (i = 0; i < 4; i++) {
		region_make(&r[i], i + 1, 1);
		r[i].access = i == 1 ? CAN_GET : CAN_GET | CAN_PUT;
		KUNIT_ASSERT_EQ(test, insert_at(s, &r[i], (u64)i << 30), 0);
	}
	/* Up to the end of all space. */
	region_make(&r[4], 5, 1);
	KUNIT_ASSERT_EQ(test, insert_at(s, &r[4], U64_MAX - r[4].length), 0);
	/* Nobody was told of any. */
	KUNIT_EXPECT_EQ(test, rmp_segment_told(s, CAN_GET | CAN_PUT, &at, told, 4), 0);
	ask_open(test, peer, "s");
	ask_page(test, peer, s->id, &from, &kc, &wrong);
	KUNIT_EXPECT_FALSE(test, wrong);
	at = 0;
	KUNIT_EXPECT_EQ(test, rmp_segment_told(s, CAN_PUT, &at, told, 2), 2);
	KUNIT_EXPECT_PTR_EQ(test, told[0], &r[0]);
	KUNIT_EXPECT_PTR_EQ(test, told[1], &r[2]);
	KUNIT_EXPECT_EQ(test, rmp_segment_told(s, CAN_PUT, &at, told, 4), 2);
	KUNIT_EXPECT_PTR_EQ(test, told[0], &r[3]);
	KUNIT_EXPECT_PTR_EQ(test, told[1], &r[4]);
	KUNIT_EXPECT_EQ(test, rmp_segment_told(s, CAN_PUT, &at, told, 4), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&r[3].ref), 2);
	at = 0;
	KUNIT_EXPECT_EQ(test, rmp_segment_told(s, CAN_GET | CAN_PUT, &at, told, 4), 1);
	KUNIT_EXPECT_PTR_EQ(test, told[0], &r[1]);

	forget_sent();
	rev = rmp_segment_rekey(s, &r[2]);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_REKEY, &msg));
	KUNIT_EXPECT_EQ(test, msg.revoke.segment, s->id);
	KUNIT_EXPECT_EQ(test, msg.revoke.region, 3);
	KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	/* One that went meanwhile: what it waits for is waited for, and nobody is asked. */
	rmp_segment_remove(s, &r[2]);
	rev = rmp_segment_rekey(s, &r[2]);
	KUNIT_ASSERT_NOT_NULL(test, rev);
	KUNIT_EXPECT_FALSE(test, was_sent(RMP_MSG_REKEY, NULL));
	KUNIT_EXPECT_FALSE(test, completion_done(&rev->done));
	KUNIT_EXPECT_EQ(test, let_go_of_all(test, peer), 1);
	KUNIT_EXPECT_TRUE(test, rmp_revocation_wait(rev, false));
	KUNIT_EXPECT_NULL(test, rmp_segment_rekey(s, &r[2]));
	/* With its segment. */
	ending = rmp_segment_delete(s);
	KUNIT_ASSERT_NOT_NULL(test, ending);
	rev = rmp_segment_rekey(s, &r[0]);
	KUNIT_EXPECT_PTR_EQ(test, rev, ending);
	KUNIT_EXPECT_EQ(test, let_go_of_all(test, peer), 1);
	rmp_revocation_put(ending);
	rmp_revocation_put(rev);
	rmp_segment_put(s);
	rmp_keycache_destroy(&kc);
	check_peer(test, peer);
}

static struct kunit_case export_cases[] = {
	KUNIT_CASE(test_names),
	KUNIT_CASE(test_offsets),
	KUNIT_CASE(test_pages),
	KUNIT_CASE(test_group),
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_bare),
	KUNIT_CASE(test_stale),
	KUNIT_CASE(test_changed),
	KUNIT_CASE(test_rights),
	KUNIT_CASE(test_rights_back_at_once),
	KUNIT_CASE(test_rekey),
	{}
};

static struct kunit_suite export_suite = {
	.name = "rmp_export",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = export_cases,
};

kunit_test_suites(&export_suite);

MODULE_DESCRIPTION("KUnit suite of rmpool's segments as peers see them");
MODULE_LICENSE("GPL");
