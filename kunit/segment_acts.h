/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What suites of our segments do: publish, take back, and be the other node that has
 * them open. After peer_world.h.
 */
#ifndef RMP_SEGMENT_ACTS_H
#define RMP_SEGMENT_ACTS_H

static inline struct rmp_segment *publish(struct kunit *test, const char *text)
{
	char name[RMPOOL_NAME_MAX] = {};
	struct rmp_segment *segment;

	strscpy(name, text, sizeof(name));
	segment = rmp_segment_create(name);
	KUNIT_ASSERT_FALSE(test, IS_ERR(segment));
	return segment;
}

static inline void unpublish(struct rmp_segment *segment)
{
	struct rmp_revocation *rev = rmp_segment_delete(segment);

	if (rev)
		rmp_revocation_put(rev);
	rmp_segment_put(segment);
}

/* A region of @chunks chunks of 2 MiB; one reference is the test's. */
static inline void region_make(struct rmp_region *region, u64 id, u32 chunks)
{
	memset(region, 0, sizeof(*region));
	kref_init(&region->ref);
	region->id = id;
	region->chunk_shift = 21;
	region->nr_chunks = chunks;
	region->iova_base = 1ULL << 40;
	region->iova = region->iova_base + 77;
	region->length = ((u64)chunks << 21) - 77;
	region->access = RMPOOL_ACCESS_ALL;
}

/* Peers have not let go of it. */
static inline bool is_kept(const struct rmp_region *region)
{
	return kref_read(&region->ref) > 1;
}

static inline int insert_at(struct rmp_segment *segment, struct rmp_region *region,
			    u64 offset)
{
	return rmp_segment_insert(segment, region, &offset);
}

/* Opens; what was answered. */
static inline struct rmp_msg_segment_info ask_open(struct kunit *test,
						   struct rmp_peer *peer,
						   const char *name)
{
	static struct rmp_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.type = RMP_MSG_SEGMENT_OPEN;
	msg.segment_open.cookie = 4711;
	strscpy(msg.segment_open.name, name, sizeof(msg.segment_open.name));
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
	memset(&msg, 0, sizeof(msg));
	KUNIT_EXPECT_TRUE(test, was_sent(RMP_MSG_SEGMENT_INFO, &msg));
	KUNIT_EXPECT_EQ(test, msg.segment_info.cookie, 4711);
	return msg.segment_info;
}

static inline int say_ack(struct kunit *test, struct rmp_peer *peer, u32 id)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_REVOKE_ACK, .revoke = { .id = id, .segment = 1 },
	};

	return say(test, peer, &msg);
}

/* It lets go of all that it was asked for; of how much that is. */
static inline u32 let_go_of_all(struct kunit *test, struct rmp_peer *peer)
{
	static struct rmp_msg msg;
	u32 nr = 0;

	for (; was_sent(RMP_MSG_REVOKE, &msg); nr++)
		KUNIT_EXPECT_EQ(test, say_ack(test, peer, msg.revoke.id), 0);
	return nr;
}

#endif /* RMP_SEGMENT_ACTS_H */
