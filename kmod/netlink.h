/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_NETLINK_H
#define RMP_NETLINK_H

#include <linux/types.h>

struct rmp_device;
struct rmp_peer;
struct rmp_segment;

/* The last room to come up, since commands may run at once, and the first to
 * go. Events before and after are dropped.
 */
int rmp_netlink_init(void);
/* Waits for running commands. The module count keeps dumps away. */
void rmp_netlink_exit(void);

/* Events (RMPOOL_EVENT_*), given to multicast listeners. All may sleep. */

/* @segment->lock is held. */
void rmp_netlink_segment_event(struct rmp_segment *segment, u32 event);
/* Takes a snapshot with rmp_peer_info(). */
void rmp_netlink_peer_event(struct rmp_peer *peer, u32 event);
/* @port_num 0: one event for each port. */
void rmp_netlink_device_event(struct rmp_device *dev, u32 port_num, u32 event);
/* Settings changed. After NODE_SET this room does it itself. */
void rmp_netlink_node_event(void);

#endif /* RMP_NETLINK_H */
