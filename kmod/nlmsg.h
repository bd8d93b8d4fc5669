/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages of the netlink family, for netlink.c alone.
 */
#ifndef RMP_NLMSG_H
#define RMP_NLMSG_H

#include <net/genetlink.h>
#include "peer.h"
#include "segment.h"

extern struct genl_family rmp_nl_family;

/**
 * struct rmp_nl_msg - where a message goes, and how it is headed
 * @skb: it is put behind what is there
 * @portid: of the receiver; 0: an event
 * @seq: of the request
 * @flags: NLM_F_*
 * @cmd: enum rmpool_cmd
 * @event: enum rmpool_event, or 0 when it is none
 */
struct rmp_nl_msg {
	struct sk_buff *skb;
	u32 portid;
	u32 seq;
	int flags;
	u8 cmd;
	u32 event;
};

/* Each puts one whole message or none (-EMSGSIZE). */
int rmp_nl_fill_node(const struct rmp_nl_msg *msg);
int rmp_nl_fill_device(const struct rmp_nl_msg *msg, struct rmp_device *dev,
		       const struct rmp_port *port);
int rmp_nl_fill_peer(const struct rmp_nl_msg *msg,
		     const struct rmp_peer_info *info);
/* @segment->lock is held. */
int rmp_nl_fill_segment(const struct rmp_nl_msg *msg,
			const struct rmp_segment *segment);
int rmp_nl_fill_region(const struct rmp_nl_msg *msg,
		       const struct rmp_region *region);

/* Size of a message for a segment that @nr peers are allowed to open, at most. */
size_t rmp_nl_segment_size(u32 nr);
/* Size of a message for a peer with @nr_rails rails, at most. */
size_t rmp_nl_peer_size(u32 nr_rails);

#endif /* RMP_NLMSG_H */
