// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots of ports: state, limits, and the address that peers are to use.
 *
 * A RoCE port has a table of GIDs, one for each IP address of its network
 * device and version of RoCE, and one that is made from the MAC address whether
 * there is such an IP address or not. Only version 2 can be routed, so only
 * that is taken. A routable address wins over a link-local one, IPv4 over
 * IPv6, then the one that was chosen before, then the lower index.
 *
 * Context: process, sleeps, takes the RTNL (drivers ask ethtool for the speed).
 * No state, no locks of its own.
 */
#include <linux/if.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "port.h"

/* Mbit/s of one lane, by the bit that ib_port_attr.active_speed has set. */
static const u32 rmp_lane_mbps[] = {
	2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000,
};

static u64 rmp_port_speed(const struct ib_port_attr *attr)
{
	int lanes = ib_width_enum_to_int(attr->active_width);
	int speed = fls(attr->active_speed);

	if (lanes <= 0 || !speed)
		return 0;
	speed = min_t(int, speed, ARRAY_SIZE(rmp_lane_mbps));
	return (u64)lanes * rmp_lane_mbps[speed - 1];
}

enum rmp_gid_rank {
	RMP_GID_NONE,		/* not to be used */
	RMP_GID_BARE,		/* there is no such IP address */
	RMP_GID_LINK_LOCAL,
	RMP_GID_IPV6,
	RMP_GID_IPV4,
};

static bool rmp_netdev_has_ip6(struct net_device *ndev,
			       const struct in6_addr *ip6)
{
	bool found = false;
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *idev = __in6_dev_get(ndev);
	struct inet6_ifaddr *ifa;

	if (!idev)
		return false;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifa, &idev->addr_list, if_list) {
		found = ipv6_addr_equal(&ifa->addr, ip6);
		if (found)
			break;
	}
	read_unlock_bh(&idev->lock);
#endif
	return found;
}

static enum rmp_gid_rank rmp_gid_rank(const union ib_gid *gid,
				      struct net_device *ndev)
{
	const struct in6_addr *ip6 = (const struct in6_addr *)gid;
	__be32 ip4 = ip6->s6_addr32[3];

	if (ipv6_addr_v4mapped(ip6)) {
		if (ipv4_is_zeronet(ip4) || ipv4_is_loopback(ip4) ||
		    ipv4_is_multicast(ip4) || ipv4_is_lbcast(ip4))
			return RMP_GID_NONE;
		return ipv4_is_linklocal_169(ip4) ? RMP_GID_LINK_LOCAL :
						    RMP_GID_IPV4;
	}
	if (ipv6_addr_any(ip6) || ipv6_addr_loopback(ip6) ||
	    ipv6_addr_is_multicast(ip6))
		return RMP_GID_NONE;
	if (!(ipv6_addr_type(ip6) & IPV6_ADDR_LINKLOCAL))
		return RMP_GID_IPV6;
	return rmp_netdev_has_ip6(ndev, ip6) ? RMP_GID_LINK_LOCAL :
					       RMP_GID_BARE;
}

static void rmp_port_take_gid(const struct ib_gid_attr *attr,
			      struct net_device *ndev, enum rmp_gid_rank rank,
			      struct rmp_port *port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&port->addr;

	port->has_gid = true;
	port->gid = attr->gid;
	port->gid_index = attr->index;
	strscpy_pad(port->netdev, ndev->name, sizeof(port->netdev));
	memset(&port->addr, 0, sizeof(port->addr));
	port->why = "no IP address";
	if (rank == RMP_GID_BARE)
		return;

	rdma_gid2ip((struct sockaddr *)&port->addr, &attr->gid);
	if (sin6->sin6_family == AF_INET6 && rank == RMP_GID_LINK_LOCAL)
		sin6->sin6_scope_id = ndev->ifindex;
}

/* Takes a GID if it is better than what was found before: returns how good
 * the one is that is taken now.
 */
static int rmp_port_try_gid(const struct ib_gid_attr *attr, int best,
			    const struct rmp_port *old, struct rmp_port *port)
{
	enum rmp_gid_rank rank;
	struct net_device *ndev;
	int score = 0;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return best;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(ndev))
		goto out;
	if (!net_eq(dev_net(ndev), &init_net)) {
		if (!best)
			port->why = "its network device is in another network namespace";
		goto out;
	}
	rank = rmp_gid_rank(&attr->gid, ndev);
	if (rank == RMP_GID_NONE)
		goto out;
	score = 2 * rank;
	if (old->has_gid && !memcmp(&old->gid, &attr->gid, sizeof(old->gid)))
		score++;
	if (score > best)
		rmp_port_take_gid(attr, ndev, rank, port);
out:
	rcu_read_unlock();
	return max(score, best);
}

static void rmp_port_read_roce(struct ib_device *ibdev, u32 num, int nr_gids,
			       const struct rmp_port *old,
			       struct rmp_port *port)
{
	const struct ib_gid_attr *attr;
	int best = 0;
	int i;

	port->why = "no RoCE v2 address";
	for (i = 0; i < nr_gids; i++) {
		attr = rdma_get_gid_attr(ibdev, num, i);
		if (IS_ERR(attr))
			continue;
		best = rmp_port_try_gid(attr, best, old, port);
		rdma_put_gid_attr(attr);
		cond_resched();
	}
}

static void rmp_port_read_ib(struct ib_device *ibdev, u32 num,
			     struct rmp_port *port)
{
	/* Good for regions; peers need an IP address, which IPoIB has. */
	port->has_gid = !rdma_query_gid(ibdev, num, 0, &port->gid) &&
			!rdma_is_zero_gid(&port->gid);
	port->why = "InfiniBand port without a known IP address";
}

void rmp_port_read(struct ib_device *ibdev, u32 num, const struct rmp_port *old,
		   struct rmp_port *port)
{
	struct ib_port_attr attr;

	/* Whole, with its padding: snapshots are compared as bytes. */
	memset(port, 0, sizeof(*port));
	port->num = num;
	port->state = IB_PORT_NOP;
	port->mtu = IB_MTU_256;

	if (ib_query_port(ibdev, num, &attr)) {
		port->why = "the device does not tell its state";
		return;
	}
	port->state = attr.state;
	port->mtu = attr.active_mtu;
	port->max_msg = attr.max_msg_sz;
	port->speed_mbps = rmp_port_speed(&attr);

	if (rdma_protocol_roce(ibdev, num))
		rmp_port_read_roce(ibdev, num, attr.gid_tbl_len, old, port);
	else if (rdma_protocol_ib(ibdev, num))
		rmp_port_read_ib(ibdev, num, port);
	else
		port->why = "iWARP is not supported yet";

	if (port->addr.ss_family)
		port->why = port->state == IB_PORT_ACTIVE ? NULL :
							    "the link is down";
}
