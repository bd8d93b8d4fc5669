// SPDX-License-Identifier: MIT
/*
 * What is read out of the messages of the netlink family: every attribute,
 * what is absent, what is unknown, and what is damaged.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "netlink.h"
#include "datagram.h"

static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8,
				  9, 10, 11, 12, 13, 14, 15, 16 };

static void reads_the_family(void **state)
{
	struct datagram d = { .length = 0 };
	size_t groups, entry;
	uint16_t family, id = FAMILY;
	uint32_t group;

	(void)state;
	begin_genl(&d, CTRL_CMD_NEWFAMILY);
	add_text(&d, CTRL_ATTR_FAMILY_NAME, "rmpool");
	add_attr(&d, CTRL_ATTR_FAMILY_ID, &id, sizeof(id));
	groups = begin_nest(&d, CTRL_ATTR_MCAST_GROUPS);
	entry = begin_nest(&d, 1);
	add_u32(&d, CTRL_ATTR_MCAST_GRP_ID, 5);
	add_text(&d, CTRL_ATTR_MCAST_GRP_NAME, "other");
	end_nest(&d, entry);
	entry = begin_nest(&d, 2);
	add_u32(&d, CTRL_ATTR_MCAST_GRP_ID, 6);
	add_text(&d, CTRL_ATTR_MCAST_GRP_NAME, RMPOOL_GENL_EVENTS);
	end_nest(&d, entry);
	end_nest(&d, groups);
	assert_int_equal(rmpl_nl_parse_family(message(&d), &family, &group), 0);
	assert_int_equal(family, FAMILY);
	assert_int_equal(group, 6);

	d.length = 0;
	begin_genl(&d, CTRL_CMD_NEWFAMILY);
	add_text(&d, CTRL_ATTR_FAMILY_NAME, "rmpool");
	assert_int_equal(rmpl_nl_parse_family(message(&d), &family, &group),
			 -EBADMSG);
}

static void reads_the_node(void **state)
{
	struct datagram d = { .length = 0 };
	struct rmpool_nl_node node;

	(void)state;
	begin_genl(&d, RMPOOL_CMD_NODE_GET);
	add_text(&d, RMPOOL_A_NODE_NAME, "alpha");
	add_attr(&d, RMPOOL_A_NODE_UUID, uuid, 16);
	add_text(&d, RMPOOL_A_NODE_LISTEN, "v1:[::]:13579");
	add_text(&d, RMPOOL_A_NODE_ADVERTISE, "v1:10.0.0.1:13579");
	add_u8(&d, RMPOOL_A_NODE_ACCEPT_ANY, 1);
	add_text(&d, RMPOOL_A_NODE_VERSION, "0.1.0");
	add_u32(&d, RMPOOL_A_NODE_ABI, 1);
	add_u64(&d, RMPOOL_A_NODE_CACHE_BYTES, 1ull << 33);
	add_u64(&d, RMPOOL_A_NODE_CACHE_HITS, 1ull << 34);
	add_u64(&d, RMPOOL_A_NODE_CACHE_MISSES, 3);
	add_u64(&d, RMPOOL_A_NODE_CACHE_EVICTIONS, 2);
	add_u64(&d, RMPOOL_A_NODE_CACHE_INVALIDATIONS, 1);
	add_u64(&d, RMPOOL_A_NODE_STAGING_POOL, 1ull << 35);
	add_u64(&d, RMPOOL_A_NODE_STAGING_REQUESTS, 4);
	add_u64(&d, RMPOOL_A_NODE_STAGING_BYTES, 1ull << 36);
	add_u64(&d, RMPOOL_A_NODE_STAGING_FALLBACKS, 5);
	add_u64(&d, RMPOOL_A_MAX + 1, 42);		/* of a newer module */
	add_u64(&d, 0x3fff, 42);
	assert_int_equal(rmpl_nl_parse_node(message(&d), &node), 0);
	assert_string_equal(node.name, "alpha");
	assert_memory_equal(node.uuid, uuid, 16);
	assert_string_equal(node.listen, "v1:[::]:13579");
	assert_string_equal(node.advertise, "v1:10.0.0.1:13579");
	assert_string_equal(node.version, "0.1.0");
	assert_int_equal(node.abi, 1);
	assert_int_equal(node.accept_any, 1);
	assert_int_equal(node.cache_bytes, 1ull << 33);
	assert_int_equal(node.cache_hits, 1ull << 34);
	assert_int_equal(node.cache_misses, 3);
	assert_int_equal(node.cache_evictions, 2);
	assert_int_equal(node.cache_invalidations, 1);
	assert_int_equal(node.staging_pool, 1ull << 35);
	assert_int_equal(node.staging_requests, 4);
	assert_int_equal(node.staging_bytes, 1ull << 36);
	assert_int_equal(node.staging_fallbacks, 5);

	/* what is absent is empty, never NULL */
	d.length = 0;
	begin_genl(&d, RMPOOL_CMD_NODE_GET);
	assert_int_equal(rmpl_nl_parse_node(message(&d), &node), 0);
	assert_string_equal(node.name, "");
	assert_string_equal(node.listen, "");
	assert_string_equal(node.version, "");
	assert_null(node.uuid);
}

static void reads_a_device(void **state)
{
	struct rmpool_nl_device device;
	struct datagram d = { .length = 0 };

	(void)state;
	begin_genl(&d, RMPOOL_CMD_DEVICE_GET);
	add_u32(&d, RMPOOL_A_DEVICE_INDEX, 3);
	add_text(&d, RMPOOL_A_DEVICE_NAME, "rxe0");
	add_u32(&d, RMPOOL_A_DEVICE_PORT, 1);
	add_u32(&d, RMPOOL_A_DEVICE_STATE, 4);
	add_attr(&d, RMPOOL_A_DEVICE_GID, uuid, 16);
	add_u32(&d, RMPOOL_A_DEVICE_GID_INDEX, 2);
	add_text(&d, RMPOOL_A_DEVICE_ADDRESS, "10.0.0.1");
	add_text(&d, RMPOOL_A_DEVICE_NETDEV, "eth0");
	add_u32(&d, RMPOOL_A_DEVICE_NUMA, 1);
	add_u32(&d, RMPOOL_A_DEVICE_MTU, 4096);
	add_u64(&d, RMPOOL_A_DEVICE_SPEED, 100000);
	add_u64(&d, RMPOOL_A_DEVICE_MAX_MSG, 1u << 31);
	add_u64(&d, RMPOOL_A_DEVICE_CHUNK, 2 << 20);
	add_u64(&d, RMPOOL_A_DEVICE_MAX_MR, 8192);
	add_u64(&d, RMPOOL_A_DEVICE_MRS, 12);
	add_u64(&d, RMPOOL_A_DEVICE_PAGES, 1ull << 33);
	add_u64(&d, RMPOOL_A_DEVICE_MAX_PAGES, 1ull << 34);
	add_u64(&d, RMPOOL_A_DEVICE_PAGE_SIZES, 0x40201000);
	add_u32(&d, RMPOOL_A_DEVICE_ORDERING, RMPOOL_ORDERING_FORCED);
	add_u8(&d, RMPOOL_A_DEVICE_USABLE, 1);
	add_text(&d, RMPOOL_A_DEVICE_WHY, "because");
	assert_int_equal(rmpl_nl_parse_device(message(&d), &device), 0);
	assert_int_equal(device.index, 3);
	assert_string_equal(device.name, "rxe0");
	assert_int_equal(device.port, 1);
	assert_int_equal(device.state, 4);
	assert_memory_equal(device.gid, uuid, 16);
	assert_int_equal(device.gid_index, 2);
	assert_string_equal(device.address, "10.0.0.1");
	assert_string_equal(device.netdev, "eth0");
	assert_int_equal(device.numa, 1);
	assert_int_equal(device.mtu, 4096);
	assert_int_equal(device.speed, 100000);
	assert_int_equal(device.max_msg, 1u << 31);
	assert_int_equal(device.chunk, 2 << 20);
	assert_int_equal(device.max_mr, 8192);
	assert_int_equal(device.mrs, 12);
	assert_int_equal(device.pages, 1ull << 33);
	assert_int_equal(device.max_pages, 1ull << 34);
	assert_int_equal(device.page_sizes, 0x40201000);
	assert_int_equal(device.ordering, RMPOOL_ORDERING_FORCED);
	assert_int_equal(device.usable, 1);
	assert_string_equal(device.why, "because");

	d.length = 0;
	begin_genl(&d, RMPOOL_CMD_DEVICE_GET);
	assert_int_equal(rmpl_nl_parse_device(message(&d), &device), 0);
	assert_int_equal(device.numa, -1);
	assert_null(device.gid);
}

static void add_peer(struct datagram *d, uint8_t command, uint32_t nr_rails)
{
	begin_genl(d, command);
	add_text(d, RMPOOL_A_PEER_NAME, "beta");
	add_text(d, RMPOOL_A_PEER_ENDPOINT, "v1:10.0.0.2:13579");
	add_u32(d, RMPOOL_A_PEER_STATE, RMPOOL_PEER_READY);
	for (uint32_t i = 0; i < nr_rails; i++) {
		size_t nest = begin_nest(d, RMPOOL_A_PEER_RAIL);

		add_u32(d, RMPOOL_A_RAIL_INDEX, i);
		add_u32(d, RMPOOL_A_RAIL_STATE, RMPOOL_RAIL_UP);
		add_text(d, RMPOOL_A_RAIL_LOCAL, "rxe0/1");
		add_text(d, RMPOOL_A_RAIL_LOCAL_ADDRESS, "10.0.0.1");
		add_text(d, RMPOOL_A_RAIL_REMOTE_ADDRESS, "10.0.0.2");
		add_u32(d, RMPOOL_A_RAIL_QPS, 2);
		add_u64(d, RMPOOL_A_RAIL_PUT_BYTES, 100 + i);
		add_u64(d, RMPOOL_A_RAIL_GET_BYTES, 200 + i);
		add_u64(d, RMPOOL_A_RAIL_SLICES, 300 + i);
		add_u64(d, RMPOOL_A_RAIL_ERRORS, 400 + i);
		add_u64(d, RMPOOL_A_RAIL_OUTSTANDING, 500 + i);
		end_nest(d, nest);
		/* rails are few, but nothing says that they stand together */
		if (i == 0)
			add_attr(d, RMPOOL_A_PEER_UUID, uuid, 16);
	}
	add_u32(d, RMPOOL_A_PEER_REASON, RMPOOL_REASON_REFUSED);
	add_u32(d, RMPOOL_A_PEER_ERROR, (uint32_t)-ECONNREFUSED);
	add_attr(d, RMPOOL_A_PEER_DYNAMIC, "", 0);
	add_text(d, RMPOOL_A_PEER_REMOTE_NAME, "b2");
}

static void reads_a_peer(void **state)
{
	struct rmpl_rails rails = { .room = 0 };
	const struct rmpool_nl_rail *rail;
	struct rmpool_nl_peer peer;
	static const uint32_t numbers[] = { 2, 0, 9, 1 };

	(void)state;
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		struct datagram d = { .length = 0 };
		uint32_t i = 0;

		add_peer(&d, RMPOOL_CMD_PEER_GET, numbers[n]);
		assert_int_equal(rmpl_nl_parse_peer(message(&d), &peer, &rails),
				 0);
		assert_string_equal(peer.name, "beta");
		assert_string_equal(peer.endpoint, "v1:10.0.0.2:13579");
		assert_string_equal(peer.remote_name, "b2");
		assert_int_equal(peer.state, RMPOOL_PEER_READY);
		assert_int_equal(peer.reason, RMPOOL_REASON_REFUSED);
		assert_int_equal(peer.error, -ECONNREFUSED);
		assert_int_equal(peer.dynamic, 1);
		assert_int_equal(peer.nr_rails, numbers[n]);
		if (numbers[n])
			assert_memory_equal(peer.uuid, uuid, 16);
		for (rail = peer.rails; rail; rail = rail->next, i++) {
			assert_int_equal(rail->index, i);
			assert_int_equal(rail->state, RMPOOL_RAIL_UP);
			assert_string_equal(rail->local, "rxe0/1");
			assert_string_equal(rail->local_address, "10.0.0.1");
			assert_string_equal(rail->remote_address, "10.0.0.2");
			assert_int_equal(rail->qps, 2);
			assert_int_equal(rail->put_bytes, 100 + i);
			assert_int_equal(rail->get_bytes, 200 + i);
			assert_int_equal(rail->slices, 300 + i);
			assert_int_equal(rail->errors, 400 + i);
			assert_int_equal(rail->outstanding, 500 + i);
		}
		assert_int_equal(i, numbers[n]);
	}
	free(rails.array);
}

static void reads_segments_and_regions(void **state)
{
	struct rmpl_allowed allowed = { .room = 0 };
	struct rmpool_nl_segment segment;
	struct rmpool_nl_region region;
	struct datagram d = { .length = 0 };
	size_t nest;

	(void)state;
	begin_genl(&d, RMPOOL_CMD_SEGMENT_GET);
	add_text(&d, RMPOOL_A_SEGMENT_NAME, "data");
	add_u32(&d, RMPOOL_A_SEGMENT_ID, 11);
	add_u64(&d, RMPOOL_A_SEGMENT_GENERATION, 1ull << 40);
	add_u32(&d, RMPOOL_A_SEGMENT_REGIONS, 3);
	add_u64(&d, RMPOOL_A_SEGMENT_SIZE, 1ull << 41);
	add_u32(&d, RMPOOL_A_OWNER_PID, 99);
	add_u32(&d, RMPOOL_A_OWNER_UID, 1000);
	assert_int_equal(rmpl_nl_parse_segment(message(&d), &segment, &allowed), 0);
	assert_string_equal(segment.name, "data");
	assert_int_equal(segment.id, 11);
	assert_int_equal(segment.generation, 1ull << 40);
	assert_int_equal(segment.regions, 3);
	assert_int_equal(segment.size, 1ull << 41);
	assert_int_equal(segment.owner_pid, 99);
	assert_int_equal(segment.owner_uid, 1000);
	assert_int_equal(segment.restricted, 0);
	assert_int_equal(segment.nr_allowed, 0);
	assert_null(segment.allowed);

	/* who may open it */
	add_attr(&d, RMPOOL_A_SEGMENT_RESTRICTED, "", 0);
	for (uint32_t i = 0; i < 3; i++) {
		nest = begin_nest(&d, RMPOOL_A_SEGMENT_ALLOW);
		add_text(&d, RMPOOL_A_ALLOW_PEER, i ? "beta" : "*");
		add_u32(&d, RMPOOL_A_ALLOW_ACCESS, 2 * i);
		end_nest(&d, nest);
	}
	assert_int_equal(rmpl_nl_parse_segment(message(&d), &segment, &allowed), 0);
	assert_int_equal(segment.restricted, 1);
	assert_int_equal(segment.nr_allowed, 3);
	assert_string_equal(segment.allowed->peer, "*");
	assert_int_equal(segment.allowed->access, 0);
	assert_string_equal(segment.allowed->next->next->peer, "beta");
	assert_int_equal(segment.allowed->next->next->access, 4);
	assert_null(segment.allowed->next->next->next);
	free(allowed.array);

	d.length = 0;
	begin_genl(&d, RMPOOL_CMD_REGION_GET);
	add_u64(&d, RMPOOL_A_REGION_ID, 1ull << 42);
	add_u64(&d, RMPOOL_A_REGION_OFFSET, 4096);
	add_u64(&d, RMPOOL_A_REGION_LENGTH, 1ull << 33);
	add_u32(&d, RMPOOL_A_REGION_ACCESS, RMPOOL_ACCESS_REMOTE_READ);
	add_u32(&d, RMPOOL_A_REGION_CHUNKS, 4096);
	add_u32(&d, RMPOOL_A_REGION_DEVICES, 2);
	add_u64(&d, RMPOOL_A_REGION_MRS, 8192);
	add_u64(&d, RMPOOL_A_REGION_PAGES, 1ull << 35);
	add_u32(&d, RMPOOL_A_REGION_STATE, RMPOOL_REGION_STATE_STALE);
	add_attr(&d, RMPOOL_A_REGION_DMABUF, "", 0);
	add_u32(&d, RMPOOL_A_SEGMENT_ID, 11);
	add_text(&d, RMPOOL_A_SEGMENT_NAME, "data");
	add_u32(&d, RMPOOL_A_OWNER_PID, 99);
	add_u32(&d, RMPOOL_A_OWNER_UID, 1000);
	assert_int_equal(rmpl_nl_parse_region(message(&d), &region), 0);
	assert_int_equal(region.id, 1ull << 42);
	assert_int_equal(region.offset, 4096);
	assert_int_equal(region.length, 1ull << 33);
	assert_int_equal(region.access, RMPOOL_ACCESS_REMOTE_READ);
	assert_int_equal(region.chunks, 4096);
	assert_int_equal(region.devices, 2);
	assert_int_equal(region.state, RMPOOL_REGION_STATE_STALE);
	assert_int_equal(region.mrs, 8192);
	assert_int_equal(region.dmabuf, 1);
	assert_int_equal(region.pages, 1ull << 35);
	assert_int_equal(region.segment_id, 11);
	assert_string_equal(region.segment_name, "data");
	assert_int_equal(region.owner_pid, 99);
	assert_int_equal(region.owner_uid, 1000);
	assert_int_equal(region.cached, 0);
	assert_int_equal(region.percent, 100);
	add_u32(&d, RMPOOL_A_REGION_PERCENT, 62);
	add_attr(&d, RMPOOL_A_REGION_CACHED, "", 0);
	assert_int_equal(rmpl_nl_parse_region(message(&d), &region), 0);
	assert_int_equal(region.cached, 1);
	assert_int_equal(region.percent, 62);
}

static const char *name_of(const struct rmpool_nl_event *e)
{
	if (e->node)
		return e->node->name;
	if (e->device)
		return e->device->name;
	if (e->peer)
		return e->peer->name;
	return e->segment ? e->segment->name : "";
}

static void reads_events(void **state)
{
	static const struct {
		uint8_t command;
		uint32_t kind;
	} kinds[] = {
		{ RMPOOL_CMD_NODE_NTF, RMPOOL_NL_NODE },
		{ RMPOOL_CMD_DEVICE_NTF, RMPOOL_NL_DEVICE },
		{ RMPOOL_CMD_PEER_NTF, RMPOOL_NL_PEER },
		{ RMPOOL_CMD_SEGMENT_NTF, RMPOOL_NL_SEGMENT },
	};
	struct rmpl_nl_event out = { .rails = { .room = 0 } };
	const struct rmpool_nl_event *e = &out.event;
	struct datagram d;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		d.length = 0;
		begin_genl(&d, kinds[i].command);
		add_u32(&d, RMPOOL_A_EVENT, RMPOOL_EVENT_GONE);
		add_text(&d, RMPOOL_A_NODE_NAME, "a");
		add_text(&d, RMPOOL_A_DEVICE_NAME, "b");
		add_text(&d, RMPOOL_A_PEER_NAME, "c");
		add_text(&d, RMPOOL_A_SEGMENT_NAME, "d");
		assert_int_equal(rmpl_nl_parse_event(message(&d), &out), 0);
		assert_int_equal(e->kind, kinds[i].kind);
		assert_int_equal(e->change, RMPOOL_EVENT_GONE);
		assert_int_equal(e->node != NULL, i == 0);
		assert_int_equal(e->device != NULL, i == 1);
		assert_int_equal(e->peer != NULL, i == 2);
		assert_int_equal(e->segment != NULL, i == 3);
		assert_string_equal(name_of(e), i == 0 ? "a" : i == 1 ? "b" :
				    i == 2 ? "c" : "d");
	}
	d.length = 0;
	add_peer(&d, RMPOOL_CMD_PEER_NTF, 2);
	assert_int_equal(rmpl_nl_parse_event(message(&d), &out), 0);
	assert_int_equal(e->peer->nr_rails, 2);
	assert_int_equal(e->peer->rails->next->put_bytes, 101);
	free(out.rails.array);

	d.length = 0;
	begin_genl(&d, RMPOOL_CMD_MAX + 1);
	assert_int_equal(rmpl_nl_parse_event(message(&d), &out), -ENOMSG);
}

static void refused(uint16_t type, const void *bytes, size_t length)
{
	struct datagram d = { .length = 0 };
	struct rmpool_nl_node node;

	begin_genl(&d, RMPOOL_CMD_NODE_GET);
	add_attr(&d, type, bytes, length);
	assert_int_equal(rmpl_nl_parse_node(message(&d), &node), -EBADMSG);
}

static void refuses_damaged_attributes(void **state)
{
	struct rmpool_nl_node node;
	struct rmpool_nl_peer peer;
	struct rmpl_rails rails = { .room = 0 };
	struct datagram d;
	size_t nest;

	(void)state;
	refused(RMPOOL_A_NODE_NAME, "alpha", 5);	/* no NUL */
	refused(RMPOOL_A_NODE_NAME, "", 0);
	refused(RMPOOL_A_NODE_UUID, uuid, 15);
	refused(RMPOOL_A_NODE_ABI, uuid, 3);
	refused(RMPOOL_A_NODE_ACCEPT_ANY, "", 0);
	refused(RMPOOL_A_DEVICE_SPEED, uuid, 4);

	/* inside a nest as well */
	d.length = 0;
	begin_genl(&d, RMPOOL_CMD_PEER_GET);
	nest = begin_nest(&d, RMPOOL_A_PEER_RAIL);
	add_attr(&d, RMPOOL_A_RAIL_PUT_BYTES, uuid, 4);
	end_nest(&d, nest);
	assert_int_equal(rmpl_nl_parse_peer(message(&d), &peer, &rails),
			 -EBADMSG);

	/* a message without the family's header */
	d.length = 0;
	begin(&d, FAMILY, 0);
	assert_int_equal(rmpl_nl_parse_node(message(&d), &node), -EBADMSG);
	free(rails.array);
}

/* Any length field may be wrong: whatever comes out, no byte is read outside
 * of the message. The message lies at the end of its allocation.
 */
static void stays_inside_the_message(void **state)
{
	struct rmpl_nl_event out = { .rails = { .room = 0 } };
	struct datagram d = { .length = 0 };
	char *copy;

	(void)state;
	add_peer(&d, RMPOOL_CMD_PEER_NTF, 2);
	copy = malloc(d.length);
	assert_non_null(copy);
	for (size_t at = sizeof(struct nlmsghdr); at < d.length; at++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, d.data, d.length);
			copy[at] = (char)(copy[at] ^ (1 << bit));
			rmpl_nl_parse_event((const void *)copy, &out);
		}
	}
	/* and cut off at any place */
	for (uint32_t length = sizeof(struct nlmsghdr); length <= d.length;
	     length++) {
		char *cut = malloc(length);

		assert_non_null(cut);
		memcpy(cut, d.data, length);
		((struct nlmsghdr *)(void *)cut)->nlmsg_len = length;
		rmpl_nl_parse_event((const void *)cut, &out);
		free(cut);
	}
	free(copy);
	free(out.rails.array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_family),
		cmocka_unit_test(reads_the_node),
		cmocka_unit_test(reads_a_device),
		cmocka_unit_test(reads_a_peer),
		cmocka_unit_test(reads_segments_and_regions),
		cmocka_unit_test(reads_events),
		cmocka_unit_test(refuses_damaged_attributes),
		cmocka_unit_test(stays_inside_the_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
