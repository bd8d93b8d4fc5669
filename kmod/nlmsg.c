// SPDX-License-Identifier: GPL-2.0
/*
 * What a node, a port, a peer, a segment and a region look like in messages of
 * the netlink family. Replies, dumps and events of a thing look the same; an
 * event has RMPOOL_A_EVENT in front.
 *
 * Contexts and locking: those of the caller; nothing here is kept. A message
 * that does not fit is taken back whole, so that a dump can repeat it in the
 * next buffer.
 */
#include <linux/pid.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include "capacity.h"
#include "nlmsg.h"

static void *rmp_nl_begin(const struct rmp_nl_msg *msg)
{
	void *hdr;

	hdr = genlmsg_put(msg->skb, msg->portid, msg->seq, &rmp_nl_family,
			  msg->flags, msg->cmd);
	if (hdr && msg->event &&
	    nla_put_u32(msg->skb, RMPOOL_A_EVENT, msg->event)) {
		genlmsg_cancel(msg->skb, hdr);
		return NULL;
	}
	return hdr;
}

static int rmp_nl_end(const struct rmp_nl_msg *msg, void *hdr, bool full)
{
	if (full) {
		genlmsg_cancel(msg->skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(msg->skb, hdr);
	return 0;
}

static int rmp_nl_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, RMPOOL_A_PAD);
}

/* Addresses that are not known (ss_family 0) and empty texts are left out. */
static int rmp_nl_put_endpoint(struct sk_buff *skb, int attr,
			       const struct sockaddr_storage *addr)
{
	char text[RMP_ENDPOINT_MAX];

	if (!addr->ss_family ||
	    rmp_endpoint_format(text, sizeof(text), addr) < 0)
		return 0;
	return nla_put_string(skb, attr, text);
}

static int rmp_nl_put_host(struct sk_buff *skb, int attr,
			   const struct sockaddr_storage *addr)
{
	char text[RMP_ENDPOINT_MAX];

	if (!addr->ss_family ||
	    rmp_endpoint_format_host(text, sizeof(text), addr) < 0)
		return 0;
	return nla_put_string(skb, attr, text);
}

static int rmp_nl_put_text(struct sk_buff *skb, int attr, const char *text)
{
	return text && *text ? nla_put_string(skb, attr, text) : 0;
}

static int rmp_nl_put_owner(struct sk_buff *skb, struct pid *pid, kuid_t uid)
{
	return nla_put_u32(skb, RMPOOL_A_OWNER_PID, pid_nr(pid)) ?:
	       nla_put_u32(skb, RMPOOL_A_OWNER_UID,
			   from_kuid_munged(&init_user_ns, uid));
}

static int rmp_nl_put_cache(struct sk_buff *skb)
{
	struct rmp_cache_stats stats;

	rmp_cache_totals(&stats);
	return rmp_nl_put_u64(skb, RMPOOL_A_NODE_CACHE_BYTES, stats.bytes) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_CACHE_HITS,
			      stats.counts[RMP_CACHE_HITS]) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_CACHE_MISSES,
			      stats.counts[RMP_CACHE_MISSES]) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_CACHE_EVICTIONS,
			      stats.counts[RMP_CACHE_EVICTIONS]) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_CACHE_INVALIDATIONS,
			      stats.counts[RMP_CACHE_INVALIDATIONS]);
}

static int rmp_nl_put_staging(struct sk_buff *skb)
{
	struct rmp_staging_stats stats;

	rmp_staging_totals(&stats);
	return rmp_nl_put_u64(skb, RMPOOL_A_NODE_STAGING_POOL, stats.pool) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_STAGING_REQUESTS,
			      stats.counts[RMP_STAGING_REQUESTS]) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_STAGING_BYTES,
			      stats.counts[RMP_STAGING_BYTES]) ?:
	       rmp_nl_put_u64(skb, RMPOOL_A_NODE_STAGING_FALLBACKS,
			      stats.counts[RMP_STAGING_FALLBACKS]);
}

int rmp_nl_fill_node(const struct rmp_nl_msg *msg)
{
	struct sk_buff *skb = msg->skb;
	struct rmp_node node = {};
	void *hdr;

	rmp_node_get(&node);
	hdr = rmp_nl_begin(msg);
	if (!hdr)
		return -EMSGSIZE;
	return rmp_nl_end(msg, hdr,
		nla_put_string(skb, RMPOOL_A_NODE_NAME, node.name) ||
		nla_put(skb, RMPOOL_A_NODE_UUID, sizeof(rmp_uuid), &rmp_uuid) ||
		rmp_nl_put_endpoint(skb, RMPOOL_A_NODE_LISTEN, &node.listen) ||
		rmp_nl_put_endpoint(skb, RMPOOL_A_NODE_ADVERTISE,
				    &node.advertise) ||
		nla_put_u8(skb, RMPOOL_A_NODE_ACCEPT_ANY, node.accept_any) ||
		nla_put_string(skb, RMPOOL_A_NODE_VERSION, RMPOOL_VERSION) ||
		nla_put_u32(skb, RMPOOL_A_NODE_ABI, RMPOOL_ABI_VERSION) ||
		rmp_nl_put_cache(skb) ||
		rmp_nl_put_staging(skb));
}

int rmp_nl_fill_device(const struct rmp_nl_msg *msg, struct rmp_device *dev,
		       const struct rmp_port *port)
{
	struct sk_buff *skb = msg->skb;
	u64 pages = rmp_capacity_pages();
	u64 mrs = rmp_capacity_mrs(dev);
	char name[IB_DEVICE_NAME_MAX];
	void *hdr;

	/* A copy: it may be renamed at any time. */
	strscpy(name, dev->ibdev->name, sizeof(name));
	hdr = rmp_nl_begin(msg);
	if (!hdr)
		return -EMSGSIZE;
	return rmp_nl_end(msg, hdr,
		nla_put_u32(skb, RMPOOL_A_DEVICE_INDEX, dev->index) ||
		nla_put_string(skb, RMPOOL_A_DEVICE_NAME, name) ||
		nla_put_u32(skb, RMPOOL_A_DEVICE_PORT, port->num) ||
		nla_put_u32(skb, RMPOOL_A_DEVICE_STATE, port->state) ||
		(port->has_gid &&
		 (nla_put(skb, RMPOOL_A_DEVICE_GID, sizeof(port->gid),
			  &port->gid) ||
		  nla_put_u32(skb, RMPOOL_A_DEVICE_GID_INDEX,
			      port->gid_index))) ||
		rmp_nl_put_host(skb, RMPOOL_A_DEVICE_ADDRESS, &port->addr) ||
		rmp_nl_put_text(skb, RMPOOL_A_DEVICE_NETDEV, port->netdev) ||
		nla_put_s32(skb, RMPOOL_A_DEVICE_NUMA, dev->node) ||
		nla_put_u32(skb, RMPOOL_A_DEVICE_MTU,
			    max(ib_mtu_enum_to_int(port->mtu), 0)) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_SPEED, port->speed_mbps) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_MAX_MSG, port->max_msg) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_CHUNK,
			       (u64)dev->chunk_pages << PAGE_SHIFT) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_MAX_MR,
			       mrs == U64_MAX ? 0 : mrs) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_MRS,
			       READ_ONCE(dev->mrs)) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_MAX_PAGES,
			       pages == U64_MAX ? 0 : pages) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_PAGES,
			       READ_ONCE(dev->pages)) ||
		rmp_nl_put_u64(skb, RMPOOL_A_DEVICE_PAGE_SIZES,
			       dev->page_sizes) ||
		nla_put_u32(skb, RMPOOL_A_DEVICE_ORDERING,
			    rmp_capacity_ordering(dev)) ||
		nla_put_u8(skb, RMPOOL_A_DEVICE_USABLE, !port->why) ||
		rmp_nl_put_text(skb, RMPOOL_A_DEVICE_WHY, port->why));
}

size_t rmp_nl_peer_size(u32 nr_rails)
{
	size_t rail = nla_total_size(0) +
		      3 * nla_total_size(sizeof(u32)) +
		      nla_total_size(sizeof_field(struct rmp_rail_info, local)) +
		      2 * nla_total_size(RMP_ENDPOINT_MAX) +
		      5 * nla_total_size_64bit(sizeof(u64));
	size_t peer = 4 * nla_total_size(sizeof(u32)) + /* with the event */
		      3 * nla_total_size(RMPOOL_NAME_MAX) +
		      nla_total_size(RMP_ENDPOINT_MAX) +
		      nla_total_size(sizeof_field(struct rmp_peer_info, uuid)) +
		      nla_total_size(0);

	return nlmsg_total_size(genlmsg_total_size(peer + nr_rails * rail));
}

static bool rmp_nl_put_rail(struct sk_buff *skb, const struct rmp_rail_info *rail)
{
	struct nlattr *nest = nla_nest_start(skb, RMPOOL_A_PEER_RAIL);

	if (!nest ||
	    nla_put_u32(skb, RMPOOL_A_RAIL_INDEX, rail->index) ||
	    nla_put_u32(skb, RMPOOL_A_RAIL_STATE, rail->state) ||
	    rmp_nl_put_text(skb, RMPOOL_A_RAIL_LOCAL, rail->local) ||
	    rmp_nl_put_host(skb, RMPOOL_A_RAIL_LOCAL_ADDRESS,
			    &rail->local_addr) ||
	    rmp_nl_put_host(skb, RMPOOL_A_RAIL_REMOTE_ADDRESS,
			    &rail->remote_addr) ||
	    nla_put_u32(skb, RMPOOL_A_RAIL_QPS, rail->qps) ||
	    rmp_nl_put_u64(skb, RMPOOL_A_RAIL_PUT_BYTES, rail->put_bytes) ||
	    rmp_nl_put_u64(skb, RMPOOL_A_RAIL_GET_BYTES, rail->get_bytes) ||
	    rmp_nl_put_u64(skb, RMPOOL_A_RAIL_SLICES, rail->slices) ||
	    rmp_nl_put_u64(skb, RMPOOL_A_RAIL_ERRORS, rail->errors) ||
	    rmp_nl_put_u64(skb, RMPOOL_A_RAIL_OUTSTANDING, rail->outstanding))
		return false;
	nla_nest_end(skb, nest);
	return true;
}

int rmp_nl_fill_peer(const struct rmp_nl_msg *msg,
		     const struct rmp_peer_info *info)
{
	struct sk_buff *skb = msg->skb;
	void *hdr;
	bool full;
	u32 i;

	hdr = rmp_nl_begin(msg);
	if (!hdr)
		return -EMSGSIZE;
	full = nla_put_string(skb, RMPOOL_A_PEER_NAME, info->name) ||
	       rmp_nl_put_endpoint(skb, RMPOOL_A_PEER_ENDPOINT, &info->addr) ||
	       nla_put_u32(skb, RMPOOL_A_PEER_STATE, info->state) ||
	       (info->has_uuid &&
		nla_put(skb, RMPOOL_A_PEER_UUID, sizeof(info->uuid),
			info->uuid)) ||
	       nla_put_u32(skb, RMPOOL_A_PEER_REASON, info->reason) ||
	       nla_put_s32(skb, RMPOOL_A_PEER_ERROR, info->error) ||
	       (info->dynamic && nla_put_flag(skb, RMPOOL_A_PEER_DYNAMIC)) ||
	       rmp_nl_put_text(skb, RMPOOL_A_PEER_REMOTE_NAME,
			       info->remote_name) ||
	       nla_put_string(skb, RMPOOL_A_PEER_GROUP, info->group);
	for (i = 0; i < info->nr_rails && !full; i++)
		full = !rmp_nl_put_rail(skb, &info->rails[i]);
	return rmp_nl_end(msg, hdr, full);
}

size_t rmp_nl_segment_size(u32 nr)
{
	size_t entry = nla_total_size(0) + nla_total_size(RMPOOL_NAME_MAX) +
		       nla_total_size(sizeof(u32));
	size_t segment = 5 * nla_total_size(sizeof(u32)) + /* with the event */
			 2 * nla_total_size_64bit(sizeof(u64)) +
			 nla_total_size(RMPOOL_NAME_MAX) + nla_total_size(0);

	return nlmsg_total_size(genlmsg_total_size(segment + nr * entry));
}

static bool rmp_nl_put_right(struct sk_buff *skb, const struct rmp_right *right)
{
	struct nlattr *nest = nla_nest_start(skb, RMPOOL_A_SEGMENT_ALLOW);

	if (!nest ||
	    nla_put_string(skb, RMPOOL_A_ALLOW_PEER, right->peer) ||
	    nla_put_u32(skb, RMPOOL_A_ALLOW_ACCESS, right->access))
		return false;
	nla_nest_end(skb, nest);
	return true;
}

/* Who may open it; nothing at all: everybody. */
static bool rmp_nl_put_rights(struct sk_buff *skb, const struct rmp_rights *rights)
{
	u32 i;

	if (!rights)
		return true;
	if (nla_put_flag(skb, RMPOOL_A_SEGMENT_RESTRICTED))
		return false;
	for (i = 0; i < rights->nr; i++) {
		if (!rmp_nl_put_right(skb, &rights->of[i]))
			return false;
	}
	return true;
}

int rmp_nl_fill_segment(const struct rmp_nl_msg *msg,
			const struct rmp_segment *segment)
{
	struct sk_buff *skb = msg->skb;
	void *hdr;

	hdr = rmp_nl_begin(msg);
	if (!hdr)
		return -EMSGSIZE;
	return rmp_nl_end(msg, hdr,
		nla_put_string(skb, RMPOOL_A_SEGMENT_NAME, segment->name) ||
		nla_put_u32(skb, RMPOOL_A_SEGMENT_ID, segment->id) ||
		rmp_nl_put_u64(skb, RMPOOL_A_SEGMENT_GENERATION,
			       segment->generation) ||
		nla_put_u32(skb, RMPOOL_A_SEGMENT_REGIONS,
			    segment->nr_regions) ||
		rmp_nl_put_u64(skb, RMPOOL_A_SEGMENT_SIZE, segment->size) ||
		!rmp_nl_put_rights(skb, segment->rights) ||
		rmp_nl_put_owner(skb, segment->pid, segment->uid));
}

int rmp_nl_fill_region(const struct rmp_nl_msg *msg,
		       const struct rmp_region *region)
{
	struct rmp_segment *segment = READ_ONCE(region->segment);
	u32 percent = rmp_region_percent(region);
	bool ready = percent == 100;
	struct rmp_region_usage usage;
	struct sk_buff *skb = msg->skb;
	void *hdr;

	/* A region outlives its segment's name, as a local one. */
	if (segment && READ_ONCE(segment->dead))
		segment = NULL;
	rmp_region_usage(region, &usage);

	hdr = rmp_nl_begin(msg);
	if (!hdr)
		return -EMSGSIZE;
	return rmp_nl_end(msg, hdr,
		rmp_nl_put_u64(skb, RMPOOL_A_REGION_ID, region->id) ||
		(segment &&
		 (nla_put_string(skb, RMPOOL_A_SEGMENT_NAME, segment->name) ||
		  nla_put_u32(skb, RMPOOL_A_SEGMENT_ID, segment->id) ||
		  (ready && rmp_nl_put_u64(skb, RMPOOL_A_REGION_OFFSET,
					   READ_ONCE(region->offset))))) ||
		rmp_nl_put_u64(skb, RMPOOL_A_REGION_LENGTH, region->length) ||
		nla_put_u32(skb, RMPOOL_A_REGION_ACCESS, region->access) ||
		nla_put_u32(skb, RMPOOL_A_REGION_CHUNKS, region->nr_chunks) ||
		nla_put_u32(skb, RMPOOL_A_REGION_DEVICES, usage.devices) ||
		rmp_nl_put_u64(skb, RMPOOL_A_REGION_MRS, usage.mrs) ||
		rmp_nl_put_u64(skb, RMPOOL_A_REGION_PAGES, usage.pages) ||
		nla_put_u32(skb, RMPOOL_A_REGION_STATE,
			    ready ? READ_ONCE(region->state) :
				    RMPOOL_REGION_STATE_REGISTERING) ||
		(!ready && nla_put_u32(skb, RMPOOL_A_REGION_PERCENT, percent)) ||
		(region->dmabuf &&
		 nla_put_flag(skb, RMPOOL_A_REGION_DMABUF)) ||
		(region->cached && nla_put_flag(skb, RMPOOL_A_REGION_CACHED)) ||
		rmp_nl_put_owner(skb, region->mem->pid, region->mem->uid));
}
