// SPDX-License-Identifier: MIT
/*
 * Netlink messages: reading the attributes of the family.
 *
 * No sockets here, and no state. All attributes have one number space, so one
 * table of rules serves all messages; it is checked before anything is read.
 */
#include "netlink.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

/* The attributes of one message or nest, by number. */
struct table {
	const struct nlattr *attr[RMPOOL_A_MAX + 1];
};

/* What each attribute must be; those not named here are not looked at. */
static const struct {
	enum mnl_attr_data_type type;
	uint16_t length;		/* of binary ones */
} rules[RMPOOL_A_MAX + 1] = {
#define U8	{ MNL_TYPE_U8, 0 }
#define U32	{ MNL_TYPE_U32, 0 }
#define U64	{ MNL_TYPE_U64, 0 }
#define TEXT	{ MNL_TYPE_NUL_STRING, 0 }
#define BYTES	{ MNL_TYPE_BINARY, 16 }
	[RMPOOL_A_EVENT] = U32,
	[RMPOOL_A_NODE_NAME] = TEXT,
	[RMPOOL_A_NODE_UUID] = BYTES,
	[RMPOOL_A_NODE_LISTEN] = TEXT,
	[RMPOOL_A_NODE_ADVERTISE] = TEXT,
	[RMPOOL_A_NODE_ACCEPT_ANY] = U8,
	[RMPOOL_A_NODE_VERSION] = TEXT,
	[RMPOOL_A_NODE_ABI] = U32,
	[RMPOOL_A_DEVICE_INDEX] = U32,
	[RMPOOL_A_DEVICE_NAME] = TEXT,
	[RMPOOL_A_DEVICE_PORT] = U32,
	[RMPOOL_A_DEVICE_STATE] = U32,
	[RMPOOL_A_DEVICE_GID] = BYTES,
	[RMPOOL_A_DEVICE_GID_INDEX] = U32,
	[RMPOOL_A_DEVICE_ADDRESS] = TEXT,
	[RMPOOL_A_DEVICE_NETDEV] = TEXT,
	[RMPOOL_A_DEVICE_NUMA] = U32,
	[RMPOOL_A_DEVICE_MTU] = U32,
	[RMPOOL_A_DEVICE_SPEED] = U64,
	[RMPOOL_A_DEVICE_MAX_MSG] = U64,
	[RMPOOL_A_DEVICE_CHUNK] = U64,
	[RMPOOL_A_DEVICE_MAX_MR] = U64,
	[RMPOOL_A_DEVICE_MRS] = U64,
	[RMPOOL_A_DEVICE_USABLE] = U8,
	[RMPOOL_A_DEVICE_PAGES] = U64,
	[RMPOOL_A_DEVICE_MAX_PAGES] = U64,
	[RMPOOL_A_DEVICE_PAGE_SIZES] = U64,
	[RMPOOL_A_DEVICE_ORDERING] = U32,
	[RMPOOL_A_REGION_MRS] = U64,
	[RMPOOL_A_REGION_PAGES] = U64,
	[RMPOOL_A_DEVICE_WHY] = TEXT,
	[RMPOOL_A_PEER_NAME] = TEXT,
	[RMPOOL_A_PEER_ENDPOINT] = TEXT,
	[RMPOOL_A_PEER_STATE] = U32,
	[RMPOOL_A_PEER_UUID] = BYTES,
	[RMPOOL_A_PEER_REASON] = U32,
	[RMPOOL_A_PEER_ERROR] = U32,
	[RMPOOL_A_PEER_RAIL] = { MNL_TYPE_NESTED, 0 },
	[RMPOOL_A_PEER_DYNAMIC] = { MNL_TYPE_FLAG, 0 },
	[RMPOOL_A_PEER_REMOTE_NAME] = TEXT,
	[RMPOOL_A_PEER_GROUP] = TEXT,
	[RMPOOL_A_RAIL_INDEX] = U32,
	[RMPOOL_A_RAIL_STATE] = U32,
	[RMPOOL_A_RAIL_LOCAL] = TEXT,
	[RMPOOL_A_RAIL_LOCAL_ADDRESS] = TEXT,
	[RMPOOL_A_RAIL_REMOTE_ADDRESS] = TEXT,
	[RMPOOL_A_RAIL_QPS] = U32,
	[RMPOOL_A_RAIL_PUT_BYTES] = U64,
	[RMPOOL_A_RAIL_GET_BYTES] = U64,
	[RMPOOL_A_RAIL_SLICES] = U64,
	[RMPOOL_A_RAIL_ERRORS] = U64,
	[RMPOOL_A_RAIL_OUTSTANDING] = U64,
	[RMPOOL_A_SEGMENT_NAME] = TEXT,
	[RMPOOL_A_SEGMENT_ID] = U32,
	[RMPOOL_A_SEGMENT_GENERATION] = U64,
	[RMPOOL_A_SEGMENT_REGIONS] = U32,
	[RMPOOL_A_SEGMENT_SIZE] = U64,
	[RMPOOL_A_OWNER_PID] = U32,
	[RMPOOL_A_OWNER_UID] = U32,
	[RMPOOL_A_REGION_ID] = U64,
	[RMPOOL_A_REGION_OFFSET] = U64,
	[RMPOOL_A_REGION_LENGTH] = U64,
	[RMPOOL_A_REGION_ACCESS] = U32,
	[RMPOOL_A_REGION_CHUNKS] = U32,
	[RMPOOL_A_REGION_DEVICES] = U32,
	[RMPOOL_A_REGION_STATE] = U32,
	[RMPOOL_A_REGION_DMABUF] = { MNL_TYPE_FLAG, 0 },
	[RMPOOL_A_REGION_CACHED] = { MNL_TYPE_FLAG, 0 },
	[RMPOOL_A_REGION_PERCENT] = U32,
	[RMPOOL_A_SEGMENT_RESTRICTED] = { MNL_TYPE_FLAG, 0 },
	[RMPOOL_A_SEGMENT_ALLOW] = { MNL_TYPE_NESTED, 0 },
	[RMPOOL_A_ALLOW_PEER] = TEXT,
	[RMPOOL_A_ALLOW_ACCESS] = U32,
	[RMPOOL_A_NODE_CACHE_BYTES] = U64,
	[RMPOOL_A_NODE_CACHE_HITS] = U64,
	[RMPOOL_A_NODE_CACHE_MISSES] = U64,
	[RMPOOL_A_NODE_CACHE_EVICTIONS] = U64,
	[RMPOOL_A_NODE_CACHE_INVALIDATIONS] = U64,
	[RMPOOL_A_NODE_STAGING_POOL] = U64,
	[RMPOOL_A_NODE_STAGING_REQUESTS] = U64,
	[RMPOOL_A_NODE_STAGING_BYTES] = U64,
	[RMPOOL_A_NODE_STAGING_FALLBACKS] = U64,
#undef U8
#undef U32
#undef U64
#undef TEXT
#undef BYTES
};

static int take(struct table *table, const struct nlattr *attr)
{
	uint16_t type = mnl_attr_get_type(attr);

	if (type > RMPOOL_A_MAX || rules[type].type == MNL_TYPE_UNSPEC)
		return 0;
	if (mnl_attr_validate(attr, rules[type].type) < 0 ||
	    mnl_attr_get_payload_len(attr) < rules[type].length)
		return -EBADMSG;
	table->attr[type] = attr;
	return 0;
}

static bool has_genl_header(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_len >= sizeof(*nlh) + sizeof(struct genlmsghdr);
}

static int read_span(struct rmpl_span span, struct table *table)
{
	const struct nlattr *attr;
	int ret = 0;

	memset(table, 0, sizeof(*table));
	while (!ret && (attr = rmpl_next_attr(&span)))
		ret = take(table, attr);
	return ret;
}

static int read_message(const struct nlmsghdr *nlh, struct table *table)
{
	if (!has_genl_header(nlh))
		return -EBADMSG;
	return read_span(rmpl_message_span(nlh, sizeof(struct genlmsghdr)), table);
}

static const char *text(const struct table *table, enum rmpool_attr type)
{
	return table->attr[type] ? mnl_attr_get_str(table->attr[type]) : "";
}

static const uint8_t *bytes(const struct table *table, enum rmpool_attr type)
{
	return table->attr[type] ? mnl_attr_get_payload(table->attr[type]) :
				   NULL;
}

static uint32_t u8(const struct table *table, enum rmpool_attr type)
{
	return table->attr[type] ? mnl_attr_get_u8(table->attr[type]) : 0;
}

static uint32_t u32(const struct table *table, enum rmpool_attr type)
{
	return table->attr[type] ? mnl_attr_get_u32(table->attr[type]) : 0;
}

static int32_t s32(const struct table *table, enum rmpool_attr type)
{
	uint32_t u = u32(table, type);
	int32_t s;

	memcpy(&s, &u, sizeof(s));
	return s;
}

static uint64_t u64(const struct table *table, enum rmpool_attr type)
{
	return table->attr[type] ? mnl_attr_get_u64(table->attr[type]) : 0;
}

/* The number of our multicast group, if this entry is about it, or 0. */
static uint32_t group_id(const struct nlattr *entry)
{
	struct rmpl_span span = rmpl_nest_span(entry);
	const struct nlattr *attr;
	const char *name = "";
	uint32_t id = 0;

	while ((attr = rmpl_next_attr(&span))) {
		uint16_t type = mnl_attr_get_type(attr);

		if (type == CTRL_ATTR_MCAST_GRP_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			name = mnl_attr_get_str(attr);
		if (type == CTRL_ATTR_MCAST_GRP_ID &&
		    mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			id = mnl_attr_get_u32(attr);
	}
	return strcmp(name, RMPOOL_GENL_EVENTS) ? 0 : id;
}

int rmpl_nl_parse_family(const struct nlmsghdr *nlh, uint16_t *family,
			 uint32_t *group)
{
	const struct nlattr *attr, *entry;
	struct rmpl_span span, groups;

	*family = 0;
	*group = 0;
	if (!has_genl_header(nlh))
		return -EBADMSG;
	span = rmpl_message_span(nlh, sizeof(struct genlmsghdr));
	while ((attr = rmpl_next_attr(&span))) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID) {
			if (mnl_attr_validate(attr, MNL_TYPE_U16) < 0)
				return -EBADMSG;
			*family = mnl_attr_get_u16(attr);
		}
		if (mnl_attr_get_type(attr) != CTRL_ATTR_MCAST_GROUPS)
			continue;
		groups = rmpl_nest_span(attr);
		while (!*group && (entry = rmpl_next_attr(&groups)))
			*group = group_id(entry);
	}
	return *family ? 0 : -EBADMSG;
}

int rmpl_nl_parse_node(const struct nlmsghdr *nlh, struct rmpool_nl_node *node)
{
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	*node = (struct rmpool_nl_node) {
		.name = text(&t, RMPOOL_A_NODE_NAME),
		.uuid = bytes(&t, RMPOOL_A_NODE_UUID),
		.listen = text(&t, RMPOOL_A_NODE_LISTEN),
		.advertise = text(&t, RMPOOL_A_NODE_ADVERTISE),
		.version = text(&t, RMPOOL_A_NODE_VERSION),
		.abi = u32(&t, RMPOOL_A_NODE_ABI),
		.accept_any = u8(&t, RMPOOL_A_NODE_ACCEPT_ANY),
		.cache_bytes = u64(&t, RMPOOL_A_NODE_CACHE_BYTES),
		.cache_hits = u64(&t, RMPOOL_A_NODE_CACHE_HITS),
		.cache_misses = u64(&t, RMPOOL_A_NODE_CACHE_MISSES),
		.cache_evictions = u64(&t, RMPOOL_A_NODE_CACHE_EVICTIONS),
		.cache_invalidations = u64(&t, RMPOOL_A_NODE_CACHE_INVALIDATIONS),
		.staging_pool = u64(&t, RMPOOL_A_NODE_STAGING_POOL),
		.staging_requests = u64(&t, RMPOOL_A_NODE_STAGING_REQUESTS),
		.staging_bytes = u64(&t, RMPOOL_A_NODE_STAGING_BYTES),
		.staging_fallbacks = u64(&t, RMPOOL_A_NODE_STAGING_FALLBACKS),
	};
	return 0;
}

int rmpl_nl_parse_device(const struct nlmsghdr *nlh,
			 struct rmpool_nl_device *device)
{
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	*device = (struct rmpool_nl_device) {
		.name = text(&t, RMPOOL_A_DEVICE_NAME),
		.index = u32(&t, RMPOOL_A_DEVICE_INDEX),
		.port = u32(&t, RMPOOL_A_DEVICE_PORT),
		.state = u32(&t, RMPOOL_A_DEVICE_STATE),
		.gid_index = u32(&t, RMPOOL_A_DEVICE_GID_INDEX),
		.gid = bytes(&t, RMPOOL_A_DEVICE_GID),
		.address = text(&t, RMPOOL_A_DEVICE_ADDRESS),
		.netdev = text(&t, RMPOOL_A_DEVICE_NETDEV),
		.numa = t.attr[RMPOOL_A_DEVICE_NUMA] ?
			s32(&t, RMPOOL_A_DEVICE_NUMA) : -1,
		.mtu = u32(&t, RMPOOL_A_DEVICE_MTU),
		.speed = u64(&t, RMPOOL_A_DEVICE_SPEED),
		.max_msg = u64(&t, RMPOOL_A_DEVICE_MAX_MSG),
		.chunk = u64(&t, RMPOOL_A_DEVICE_CHUNK),
		.max_mr = u64(&t, RMPOOL_A_DEVICE_MAX_MR),
		.mrs = u64(&t, RMPOOL_A_DEVICE_MRS),
		.usable = u8(&t, RMPOOL_A_DEVICE_USABLE),
		.why = text(&t, RMPOOL_A_DEVICE_WHY),
		.pages = u64(&t, RMPOOL_A_DEVICE_PAGES),
		.max_pages = u64(&t, RMPOOL_A_DEVICE_MAX_PAGES),
		.page_sizes = u64(&t, RMPOOL_A_DEVICE_PAGE_SIZES),
		.ordering = u32(&t, RMPOOL_A_DEVICE_ORDERING),
	};
	return 0;
}

static int parse_rail(const struct nlattr *nest, struct rmpool_nl_rail *rail)
{
	struct table t;
	int ret = read_span(rmpl_nest_span(nest), &t);

	if (ret)
		return ret;
	*rail = (struct rmpool_nl_rail) {
		.index = u32(&t, RMPOOL_A_RAIL_INDEX),
		.state = u32(&t, RMPOOL_A_RAIL_STATE),
		.local = text(&t, RMPOOL_A_RAIL_LOCAL),
		.local_address = text(&t, RMPOOL_A_RAIL_LOCAL_ADDRESS),
		.remote_address = text(&t, RMPOOL_A_RAIL_REMOTE_ADDRESS),
		.qps = u32(&t, RMPOOL_A_RAIL_QPS),
		.put_bytes = u64(&t, RMPOOL_A_RAIL_PUT_BYTES),
		.get_bytes = u64(&t, RMPOOL_A_RAIL_GET_BYTES),
		.slices = u64(&t, RMPOOL_A_RAIL_SLICES),
		.errors = u64(&t, RMPOOL_A_RAIL_ERRORS),
		.outstanding = u64(&t, RMPOOL_A_RAIL_OUTSTANDING),
	};
	return 0;
}

/* How many nests of a type a message has; they are few, so counting them is cheap. */
static uint32_t count_nests(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *attr;
	struct rmpl_span span;
	uint32_t nr = 0;

	span = rmpl_message_span(nlh, sizeof(struct genlmsghdr));
	while ((attr = rmpl_next_attr(&span)))
		nr += mnl_attr_get_type(attr) == type;
	return nr;
}

/* Read the nests of all rails. */
static int parse_rails(const struct nlmsghdr *nlh, struct rmpool_nl_peer *peer,
		       struct rmpl_rails *rails)
{
	uint32_t nr = count_nests(nlh, RMPOOL_A_PEER_RAIL);
	const struct nlattr *attr;
	struct rmpool_nl_rail *larger;
	struct rmpl_span span;
	int ret;

	if (nr > rails->room) {
		larger = reallocarray(rails->array, nr, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		rails->array = larger;
		rails->room = nr;
	}

	nr = 0;
	span = rmpl_message_span(nlh, sizeof(struct genlmsghdr));
	while ((attr = rmpl_next_attr(&span))) {
		if (mnl_attr_get_type(attr) != RMPOOL_A_PEER_RAIL)
			continue;
		ret = parse_rail(attr, &rails->array[nr]);
		if (ret)
			return ret;
		if (nr)
			rails->array[nr - 1].next = &rails->array[nr];
		nr++;
	}
	peer->nr_rails = nr;
	peer->rails = nr ? rails->array : NULL;
	return 0;
}

int rmpl_nl_parse_peer(const struct nlmsghdr *nlh, struct rmpool_nl_peer *peer,
		       struct rmpl_rails *rails)
{
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	*peer = (struct rmpool_nl_peer) {
		.name = text(&t, RMPOOL_A_PEER_NAME),
		.endpoint = text(&t, RMPOOL_A_PEER_ENDPOINT),
		.remote_name = text(&t, RMPOOL_A_PEER_REMOTE_NAME),
		.group = text(&t, RMPOOL_A_PEER_GROUP),
		.uuid = bytes(&t, RMPOOL_A_PEER_UUID),
		.state = u32(&t, RMPOOL_A_PEER_STATE),
		.reason = u32(&t, RMPOOL_A_PEER_REASON),
		.error = s32(&t, RMPOOL_A_PEER_ERROR),
		.dynamic = t.attr[RMPOOL_A_PEER_DYNAMIC] != NULL,
	};
	return parse_rails(nlh, peer, rails);
}

static int parse_allow(const struct nlattr *nest, struct rmpool_nl_allowed *entry)
{
	struct table t;
	int ret = read_span(rmpl_nest_span(nest), &t);

	if (ret)
		return ret;
	*entry = (struct rmpool_nl_allowed) {
		.peer = text(&t, RMPOOL_A_ALLOW_PEER),
		.access = u32(&t, RMPOOL_A_ALLOW_ACCESS),
	};
	return 0;
}

/* Read the nests of all who may open a segment. */
static int parse_allowed(const struct nlmsghdr *nlh, struct rmpool_nl_segment *segment,
			 struct rmpl_allowed *allowed)
{
	uint32_t nr = count_nests(nlh, RMPOOL_A_SEGMENT_ALLOW);
	const struct nlattr *attr;
	struct rmpool_nl_allowed *larger;
	struct rmpl_span span;
	int ret;

	if (nr > allowed->room) {
		larger = reallocarray(allowed->array, nr, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		allowed->array = larger;
		allowed->room = nr;
	}

	nr = 0;
	span = rmpl_message_span(nlh, sizeof(struct genlmsghdr));
	while ((attr = rmpl_next_attr(&span))) {
		if (mnl_attr_get_type(attr) != RMPOOL_A_SEGMENT_ALLOW)
			continue;
		ret = parse_allow(attr, &allowed->array[nr]);
		if (ret)
			return ret;
		if (nr)
			allowed->array[nr - 1].next = &allowed->array[nr];
		nr++;
	}
	segment->nr_allowed = nr;
	segment->allowed = nr ? allowed->array : NULL;
	return 0;
}

int rmpl_nl_parse_segment(const struct nlmsghdr *nlh,
			  struct rmpool_nl_segment *segment,
			  struct rmpl_allowed *allowed)
{
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	*segment = (struct rmpool_nl_segment) {
		.name = text(&t, RMPOOL_A_SEGMENT_NAME),
		.id = u32(&t, RMPOOL_A_SEGMENT_ID),
		.regions = u32(&t, RMPOOL_A_SEGMENT_REGIONS),
		.generation = u64(&t, RMPOOL_A_SEGMENT_GENERATION),
		.size = u64(&t, RMPOOL_A_SEGMENT_SIZE),
		.owner_pid = u32(&t, RMPOOL_A_OWNER_PID),
		.owner_uid = u32(&t, RMPOOL_A_OWNER_UID),
		.restricted = t.attr[RMPOOL_A_SEGMENT_RESTRICTED] != NULL,
	};
	return parse_allowed(nlh, segment, allowed);
}

int rmpl_nl_parse_region(const struct nlmsghdr *nlh,
			 struct rmpool_nl_region *region)
{
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	*region = (struct rmpool_nl_region) {
		.id = u64(&t, RMPOOL_A_REGION_ID),
		.offset = u64(&t, RMPOOL_A_REGION_OFFSET),
		.length = u64(&t, RMPOOL_A_REGION_LENGTH),
		.access = u32(&t, RMPOOL_A_REGION_ACCESS),
		.chunks = u32(&t, RMPOOL_A_REGION_CHUNKS),
		.devices = u32(&t, RMPOOL_A_REGION_DEVICES),
		.state = u32(&t, RMPOOL_A_REGION_STATE),
		.segment_id = u32(&t, RMPOOL_A_SEGMENT_ID),
		.segment_name = text(&t, RMPOOL_A_SEGMENT_NAME),
		.owner_pid = u32(&t, RMPOOL_A_OWNER_PID),
		.owner_uid = u32(&t, RMPOOL_A_OWNER_UID),
		.mrs = u64(&t, RMPOOL_A_REGION_MRS),
		.pages = u64(&t, RMPOOL_A_REGION_PAGES),
		.dmabuf = t.attr[RMPOOL_A_REGION_DMABUF] != NULL,
		.cached = t.attr[RMPOOL_A_REGION_CACHED] != NULL,
		.percent = t.attr[RMPOOL_A_REGION_PERCENT] ?
			   u32(&t, RMPOOL_A_REGION_PERCENT) : 100,
	};
	return 0;
}

int rmpl_nl_parse_event(const struct nlmsghdr *nlh, struct rmpl_nl_event *out)
{
	const struct genlmsghdr *genl;
	struct table t;
	int ret = read_message(nlh, &t);

	if (ret)
		return ret;
	genl = mnl_nlmsg_get_payload(nlh);
	out->event = (struct rmpool_nl_event) {
		.change = u32(&t, RMPOOL_A_EVENT),
	};
	switch (genl->cmd) {
	case RMPOOL_CMD_NODE_NTF:
		out->event.kind = RMPOOL_NL_NODE;
		out->event.node = &out->node;
		return rmpl_nl_parse_node(nlh, &out->node);
	case RMPOOL_CMD_DEVICE_NTF:
		out->event.kind = RMPOOL_NL_DEVICE;
		out->event.device = &out->device;
		return rmpl_nl_parse_device(nlh, &out->device);
	case RMPOOL_CMD_PEER_NTF:
		out->event.kind = RMPOOL_NL_PEER;
		out->event.peer = &out->peer;
		return rmpl_nl_parse_peer(nlh, &out->peer, &out->rails);
	case RMPOOL_CMD_SEGMENT_NTF:
		out->event.kind = RMPOOL_NL_SEGMENT;
		out->event.segment = &out->segment;
		return rmpl_nl_parse_segment(nlh, &out->segment, &out->allowed);
	default:
		return -ENOMSG;
	}
}
