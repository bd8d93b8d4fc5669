// SPDX-License-Identifier: GPL-2.0
/*
 * Which device of the peer each of ours gets a rail to: one in the same subnet,
 * if there is any, else by order; each of either side once. Rails that are needed besides
 * (ways.c) are not counted. By the worker of the initiator, under peer->lock; keeps
 * nothing.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include "session.h"

static sa_family_t wire_family(const struct rmp_wire_device *w)
{
	return w->family == 4 ? AF_INET : AF_INET6;
}

static bool same_subnet4(struct net_device *ndev, const u8 *addr)
{
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;
	__be32 a;

	if (!in_dev)
		return false;
	memcpy(&a, addr, sizeof(a));
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		if (inet_ifa_match(a, ifa))
			return true;
	}
	return false;
}

static bool same_subnet6(struct net_device *ndev, const u8 *addr)
{
	struct inet6_dev *idev = __in6_dev_get(ndev);
	const struct inet6_ifaddr *ifa;
	struct in6_addr a;

	if (!idev)
		return false;
	memcpy(&a, addr, sizeof(a));
	list_for_each_entry_rcu(ifa, &idev->addr_list, if_list) {
		if (ipv6_prefix_equal(&a, &ifa->addr, ifa->prefix_len))
			return true;
	}
	return false;
}

static bool same_subnet(const char *netdev, const struct rmp_wire_device *w)
{
	struct net_device *ndev;
	bool same = false;

	rcu_read_lock();
	ndev = dev_get_by_name_rcu(&init_net, netdev);
	if (ndev)
		same = w->family == 4 ? same_subnet4(ndev, w->addr) :
					same_subnet6(ndev, w->addr);
	rcu_read_unlock();
	return same;
}

/* peer->lock held: does the rail of another device use this one of the peer? */
static bool remote_in_use(struct rmp_session *s, u32 remote_dev)
{
	u32 i;

	for (i = 0; i < RMP_RAILS_MAX; i++) {
		if (s->rails[i] && !s->rails[i]->extra &&
		    s->rails[i]->remote_dev == remote_dev)
			return true;
	}
	return false;
}

/* peer->lock held. One rail for each local device that has none. False: there may be
 * more, but one could not be made.
 */
static bool rails_pair(struct rmp_session *s, bool by_subnet)
{
	u32 i, k;

	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		struct rmp_device *dev;
		struct rmp_port port;
		int ret;

		cond_resched();
		if (s->rails[i] && !s->rails[i]->extra)
			continue;
		dev = rmp_device_get(i);
		if (!dev)
			continue;
		ret = rmp_device_usable_port(dev, &port);
		rmp_device_put(dev);
		if (ret || !port.addr.ss_family)
			continue;
		for (k = 0; k < s->devices.nr; k++) {
			const struct rmp_wire_device *w = &s->devices.dev[k];

			if (wire_family(w) != port.addr.ss_family)
				continue;
			if (by_subnet && !same_subnet(port.netdev, w))
				continue;
			if (remote_in_use(s, w->index))
				continue;
			/* Its place is taken: that one is made again elsewhere. */
			if (s->rails[i]) {
				s->rails[i]->going = true;
				return false;
			}
			if (!rmp_rail_create(s, i, i, w, rmp_qps))
				return false;
			break;
		}
	}
	return true;
}

bool rmp_rails_pair(struct rmp_session *s)
{
	return rails_pair(s, true) && rails_pair(s, false);
}

int rmp_rails_join(struct rmp_session *s, u32 local, u32 remote)
{
	const struct rmp_wire_device *w = rmp_rails_remote(s, remote);
	struct rmp_device *dev;
	struct rmp_port port;
	u32 i;
	int ret;

	dev = rmp_device_get(local);
	if (!dev)
		return -ENODEV;
	ret = rmp_device_usable_port(dev, &port);
	rmp_device_put(dev);
	/* Its link, or its address, may come yet. */
	if (ret || !port.addr.ss_family || !w)
		return -EAGAIN;
	if (wire_family(w) != port.addr.ss_family)
		return -EAFNOSUPPORT;
	/* From the end, where devices seldom have their first one; never in the place
	 * of its own device, by which the peer knows the first one.
	 */
	for (i = RMP_RAILS_MAX; i--;) {
		if (i != local && !s->rails[i])
			return rmp_rail_create(s, i, local, w, rmp_qps) ? 0 : -ENOMEM;
	}
	return -ENOSPC;
}
