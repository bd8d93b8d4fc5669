/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_DEVICE_H
#define RMP_DEVICE_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/rmpool_netlink.h>
#include <rdma/ib_verbs.h>
#include "group.h"
#include "rmpool.h"

struct rmp_domain;

/**
 * struct rmp_port - what is known of one port, a snapshot
 * @num: number of the port on its device
 * @state: of the port
 * @has_gid: whether there is a GID, which is enough to register memory
 * @gid: chosen: routable IPv4 or IPv6 before link-local, RoCE v2 only
 * @gid_index: where it is in the table
 * @addr: its IP address, port 0; ss_family is 0 when there is none
 * @netdev: name of the network device, or ""
 * @mtu: active MTU
 * @max_msg: bytes in one message
 * @speed_mbps: link speed
 * @why: static text: why peers cannot use the port, NULL when they can
 */
struct rmp_port {
	u32 num;
	enum ib_port_state state;
	bool has_gid;
	union ib_gid gid;
	u16 gid_index;
	struct sockaddr_storage addr;
	char netdev[IFNAMSIZ];
	enum ib_mtu mtu;
	u32 max_msg;
	u64 speed_mbps;
	const char *why;
};

/**
 * struct rmp_device - one RDMA device in use
 * @ibdev: the device
 * @index: slot, below RMP_DEVICES_MAX; kept as long as the device is there
 * @ctrl_pd: for control queue pairs, no remote access
 * @node: NUMA node or NUMA_NO_NODE
 * @chunk_pages: pages in one fast-registration MR
 * @page_sizes: that such a page can have, a mask with PAGE_SIZE and above
 * @read_limit: RDMA reads in flight per QP, as target and as initiator
 * @ordering: ON, FORCED or UNSUPPORTED; see rmp_capacity_ordering()
 * @domain_lock: of @domains
 * @domains: with the PDs of regions and data queue pairs, by trust group (domain.c)
 * @capacity_lock: of @mrs and @pages
 * @mrs: memory regions in use (READ_ONCE/WRITE_ONCE)
 * @pages: pages of those (READ_ONCE/WRITE_ONCE)
 * @going: it is being removed: begin nothing new on it (READ_ONCE)
 *
 * A reference keeps the PDs and the ib_device usable. It must be given back
 * soon after the removed event, since the removal of the ib_device waits.
 */
struct rmp_device {
	struct ib_device *ibdev;
	u32 index;
	struct ib_pd *ctrl_pd;
	int node;
	u32 chunk_pages;
	u64 page_sizes;
	u8 read_limit;
	enum rmpool_ordering ordering;
	struct mutex domain_lock;	/* see above */
	struct rmp_domain *domains[RMP_GROUPS_MAX];
	spinlock_t capacity_lock;	/* see above */
	u64 mrs;
	u64 pages;
	bool going;
	/* the rest belongs to device.c */
	struct kref ref;
	struct completion released;
	struct ib_event_handler events;
	struct delayed_work refresh;
	bool announced;
	spinlock_t port_lock;	/* of @ports */
	u32 nr_ports;
	struct rmp_port ports[];
};

/**
 * struct rmp_device_ops - told by device.c; all may sleep
 * @added: a device can be used; existing regions are to be mapped on it
 * @removed: the device goes: nothing of it may be used after the return, and
 *	all references are to be given back
 * @changed: a port's state or address changed
 *
 * The three are serialised with each other.
 */
struct rmp_device_ops {
	void (*added)(struct rmp_device *dev);
	void (*removed)(struct rmp_device *dev);
	void (*changed)(struct rmp_device *dev, u32 port_num);
};

int rmp_device_init(const struct rmp_device_ops *ops);
/* Removes all devices (the removed event comes for each). */
void rmp_device_exit(void);

/* A referenced device, or NULL when there is none or it goes. Devices that no
 * added event came for yet are among them: their ports say what is missing.
 */
struct rmp_device *rmp_device_get(u32 index);
struct rmp_device *rmp_device_find(const struct ib_device *ibdev);
void rmp_device_hold(struct rmp_device *dev);
void rmp_device_put(struct rmp_device *dev);

/* Copies what is known of port @num (from 1); -ENOENT when there is none. */
int rmp_device_port(struct rmp_device *dev, u32 num, struct rmp_port *port);
/* First port that peers can use (@why is NULL); -ENOENT when none. */
int rmp_device_usable_port(struct rmp_device *dev, struct rmp_port *port);

#endif /* RMP_DEVICE_H */
