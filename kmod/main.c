// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading, and the wiring of rooms that must not know each other
 * by name.
 *
 * Order: what others need comes first. Users (the device node, netlink) come
 * last and go first; then peers, since their queue pairs use regions' MRs; then
 * devices, whose removal takes the MRs of regions. A device may be removed in
 * the middle of that; rmp_devices_lock makes it wait until the peers' queue pairs
 * are gone.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/module.h>
#include "chardev.h"
#include "export.h"
#include "flow.h"
#include "netlink.h"
#include "rekey.h"
#include "repeat.h"
#include "segment.h"
#include "staging.h"

struct workqueue_struct *rmp_wq;
struct workqueue_struct *rmp_peers_wq;
uuid_t rmp_uuid;

static DEFINE_MUTEX(rmp_devices_lock);

static void device_added(struct rmp_device *dev)
{
	rmp_region_device_added(dev);
	rmp_peer_device_changed(dev);
	rmp_netlink_device_event(dev, 0, RMPOOL_EVENT_NEW);
}

static void device_removed(struct rmp_device *dev)
{
	mutex_lock(&rmp_devices_lock);
	/* Queue pairs first: they use the MRs. */
	rmp_peer_device_removed(dev);
	rmp_region_device_removed(dev);
	mutex_unlock(&rmp_devices_lock);
	rmp_peer_kick_flows();
	rmp_netlink_device_event(dev, 0, RMPOOL_EVENT_GONE);
}

static void device_changed(struct rmp_device *dev, u32 port_num)
{
	rmp_peer_device_changed(dev);
	rmp_netlink_device_event(dev, port_num, RMPOOL_EVENT_CHANGED);
}

static const struct rmp_device_ops device_ops = {
	.added = device_added,
	.removed = device_removed,
	.changed = device_changed,
};

static const struct rmp_segment_ops segment_ops = {
	.changed = rmp_export_changed,
	.revoke = rmp_export_revoke,
	.rekey = rmp_export_rekey,
	.event = rmp_netlink_segment_event,
	.reach = rmp_segment_reach,
};

static const struct rmp_region_ops region_ops = {
	.settled = rmp_peer_kick_flows,
};

static const struct rmp_peer_ops peer_ops = {
	.flow_create = rmp_flow_create,
	.flow_destroy = rmp_flow_destroy,
	.flow_kick = rmp_flow_kick,
	.qp_create = rmp_qp_create,
	.qp_start = rmp_qp_start,
	.qp_drain = rmp_qp_drain,
	.qp_destroy = rmp_qp_destroy,
	.qp_fenced = rmp_hold_fenced,
	.event = rmp_netlink_peer_event,
	.group_gone = rmp_region_group_gone,
};

static void peers_exit(void)
{
	mutex_lock(&rmp_devices_lock);
	rmp_peer_exit();
	mutex_unlock(&rmp_devices_lock);
}

static int __init rmp_init(void)
{
	int ret = -ENOMEM;

	uuid_gen(&rmp_uuid);
	rmp_wq = alloc_workqueue("rmpool", WQ_UNBOUND | WQ_MEM_RECLAIM,
				 WQ_MAX_ACTIVE);
	if (!rmp_wq)
		return -ENOMEM;
	/* More at once than connect requests may wait in it (listen.c). */
	rmp_peers_wq = alloc_workqueue("rmpool_peers",
				       WQ_UNBOUND | WQ_MEM_RECLAIM,
				       WQ_MAX_ACTIVE);
	if (!rmp_peers_wq)
		goto wq;
	ret = rmp_segment_init(&segment_ops);
	if (ret)
		goto peers_wq;
	ret = rmp_region_init(&region_ops);
	if (ret)
		goto segment;
	ret = rmp_rekey_init();
	if (ret)
		goto region;
	ret = rmp_transfer_init();
	if (ret)
		goto rekey;
	ret = rmp_staging_init();
	if (ret)
		goto transfer;
	ret = rmp_peer_init(&peer_ops);
	if (ret)
		goto staging;
	ret = rmp_device_init(&device_ops);
	if (ret)
		goto peer;
	ret = rmp_chardev_init();
	if (ret)
		goto device;
	ret = rmp_netlink_init();
	if (ret)
		goto chardev;
	pr_info("version %s, node %pUb\n", RMPOOL_VERSION, &rmp_uuid);
	return 0;

chardev:
	rmp_chardev_exit();
device:
	rmp_device_exit();
peer:
	peers_exit();
staging:
	rmp_staging_exit();
transfer:
	rmp_transfer_exit();
rekey:
	rmp_rekey_exit();
region:
	rmp_region_exit();
segment:
	rmp_segment_exit();
peers_wq:
	destroy_workqueue(rmp_peers_wq);
wq:
	destroy_workqueue(rmp_wq);
	return ret;
}

static void __exit rmp_exit(void)
{
	rmp_netlink_exit();
	rmp_chardev_exit();
	/* Before devices, which it is mapped on. */
	rmp_staging_exit();
	peers_exit();
	rmp_device_exit();
	rmp_transfer_exit();
	rmp_rekey_exit();
	rmp_region_exit();
	rmp_segment_exit();
	destroy_workqueue(rmp_peers_wq);
	destroy_workqueue(rmp_wq);
	rcu_barrier();
}

module_init(rmp_init);
module_exit(rmp_exit);

MODULE_DESCRIPTION("RDMA memory pool");
MODULE_AUTHOR("rmpool developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(RMPOOL_VERSION);
