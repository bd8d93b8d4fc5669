// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA devices of this node: which there are, their protection domains,
 * and what their ports look like.
 *
 * A device takes a slot when the RDMA core shows it, and is announced to the
 * other rooms (the added event) when it can register memory, that is when one
 * of its ports has an address. Both orders work: the module before the device,
 * the device before its address. Everything that may take time runs in one
 * work item per device, which any port event queues; the RDMA core calls the
 * event handlers under locks that reading a port would need.
 *
 * Locking: rmp_event_lock serialises the events to the other rooms and guards
 * @announced; it is held while they are told, sleeping. rmp_slot_lock
 * guards the slots, rmp_device.port_lock the snapshots; both are leaves.
 *
 * Lifetime: the slot has one reference, which the removal gives back. The
 * removal waits for the last one, since the RDMA core lets the ib_device go
 * when it returns.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include "device.h"
#include "capacity.h"
#include "domain.h"
#include "port.h"
#include "regqp.h"

/* How long to wait before a device that has an address, and still cannot
 * register memory, is tried again.
 */
#define RMP_DEVICE_RETRY	(5 * HZ)

static DEFINE_MUTEX(rmp_event_lock);
static DEFINE_SPINLOCK(rmp_slot_lock);
static struct rmp_device *rmp_slots[RMP_DEVICES_MAX];
static const struct rmp_device_ops *rmp_ops;

static void rmp_device_release(struct kref *ref)
{
	struct rmp_device *dev = container_of(ref, struct rmp_device, ref);

	/* Who removes it waits for that, and frees it. */
	complete(&dev->released);
}

void rmp_device_hold(struct rmp_device *dev)
{
	kref_get(&dev->ref);
}

void rmp_device_put(struct rmp_device *dev)
{
	kref_put(&dev->ref, rmp_device_release);
}

struct rmp_device *rmp_device_get(u32 index)
{
	struct rmp_device *dev;

	if (index >= RMP_DEVICES_MAX)
		return NULL;
	index = array_index_nospec(index, RMP_DEVICES_MAX);

	spin_lock_bh(&rmp_slot_lock);
	dev = rmp_slots[index];
	if (dev)
		rmp_device_hold(dev);
	spin_unlock_bh(&rmp_slot_lock);
	return dev;
}

struct rmp_device *rmp_device_find(const struct ib_device *ibdev)
{
	struct rmp_device *dev = NULL;
	u32 i;

	spin_lock_bh(&rmp_slot_lock);
	for (i = 0; i < RMP_DEVICES_MAX && !dev; i++) {
		if (rmp_slots[i] && rmp_slots[i]->ibdev == ibdev)
			dev = rmp_slots[i];
	}
	if (dev)
		rmp_device_hold(dev);
	spin_unlock_bh(&rmp_slot_lock);
	return dev;
}

static int rmp_device_take_slot(struct rmp_device *dev)
{
	int err = -ENOSPC;
	u32 i;

	spin_lock_bh(&rmp_slot_lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (rmp_slots[i])
			continue;
		dev->index = i;
		rmp_slots[i] = dev;
		err = 0;
		break;
	}
	spin_unlock_bh(&rmp_slot_lock);
	return err;
}

static void rmp_device_drop_slot(struct rmp_device *dev)
{
	spin_lock_bh(&rmp_slot_lock);
	rmp_slots[dev->index] = NULL;
	spin_unlock_bh(&rmp_slot_lock);
}

int rmp_device_port(struct rmp_device *dev, u32 num, struct rmp_port *port)
{
	if (!num || num > dev->nr_ports)
		return -ENOENT;
	num = array_index_nospec(num - 1, dev->nr_ports);

	spin_lock_bh(&dev->port_lock);
	*port = dev->ports[num];
	spin_unlock_bh(&dev->port_lock);
	return 0;
}

int rmp_device_usable_port(struct rmp_device *dev, struct rmp_port *port)
{
	u32 i;

	for (i = 1; !rmp_device_port(dev, i, port); i++) {
		if (!port->why)
			return 0;
	}
	return -ENOENT;
}

/* Takes a new snapshot; true when it differs from the one before. */
static bool rmp_device_read_port(struct rmp_device *dev, u32 num)
{
	struct rmp_port *old = &dev->ports[num - 1];
	struct rmp_port new;
	bool changed;

	/* Only changed here, and only by one at a time. */
	rmp_port_read(dev->ibdev, num, old, &new);

	spin_lock_bh(&dev->port_lock);
	changed = memcmp(old, &new, sizeof(new));
	memcpy(old, &new, sizeof(new));
	spin_unlock_bh(&dev->port_lock);
	return changed;
}

/* A software device is where its network device is. */
static int rmp_device_node(struct rmp_device *dev)
{
	int node = ibdev_to_node(dev->ibdev);
	struct net_device *ndev;
	u32 i;

	for (i = 0; i < dev->nr_ports && node == NUMA_NO_NODE; i++) {
		ndev = dev_get_by_name(&init_net, dev->ports[i].netdev);
		if (!ndev)
			continue;
		node = dev_to_node(&ndev->dev);
		dev_put(ndev);
	}
	return node;
}

static void rmp_device_announce(struct rmp_device *dev)
{
	int err;

	lockdep_assert_held(&rmp_event_lock);

	err = rmp_regqp_connect(dev->domains[RMP_GROUP_DEFAULT]);
	if (err) {
		/* No address yet: an event comes with it. */
		if (err != -ENOTCONN) {
			pr_warn_ratelimited("%s: no registration queue pair: error %d\n",
					    dev_name(&dev->ibdev->dev), err);
			queue_delayed_work(rmp_wq, &dev->refresh,
					   RMP_DEVICE_RETRY);
		}
		return;
	}
	dev->node = rmp_device_node(dev);
	dev->announced = true;
	rmp_ops->added(dev);
}

static void rmp_device_refresh(struct work_struct *work)
{
	struct rmp_device *dev = container_of(to_delayed_work(work),
					      struct rmp_device, refresh);
	u32 i;

	mutex_lock(&rmp_event_lock);
	for (i = 1; i <= dev->nr_ports; i++) {
		if (rmp_device_read_port(dev, i) && dev->announced)
			rmp_ops->changed(dev, i);
	}
	if (!dev->announced)
		rmp_device_announce(dev);
	mutex_unlock(&rmp_event_lock);
}

/* The RDMA core calls it with locks held, from its own work items. */
static void rmp_device_event(struct ib_event_handler *handler,
			     struct ib_event *event)
{
	struct rmp_device *dev = container_of(handler, struct rmp_device,
					      events);

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_GID_CHANGE:
		mod_delayed_work(rmp_wq, &dev->refresh, 0);
		break;
	default:
		break;
	}
}

/* No RDMA event tells that the MTU of a RoCE port's network device changed,
 * which both limits and widens what new queue pairs can use. Reading the port
 * takes the RTNL, which is held here: so it comes after all who are told.
 */
static int rmp_netdev_event(struct notifier_block *nb, unsigned long event,
			    void *info)
{
	u32 i;

	if (event != NETDEV_CHANGEMTU)
		return NOTIFY_DONE;
	/* A device that has lost its slot must not be queued any more. */
	spin_lock_bh(&rmp_slot_lock);
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		if (rmp_slots[i])
			mod_delayed_work(rmp_wq, &rmp_slots[i]->refresh, 0);
	}
	spin_unlock_bh(&rmp_slot_lock);
	return NOTIFY_DONE;
}

static struct notifier_block rmp_netdev_notifier = {
	.notifier_call = rmp_netdev_event,
};

/* Whether it can do what is needed at all, now or later. */
static bool rmp_device_suits(const struct ib_device *ibdev)
{
	return ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
	       ibdev->ops.alloc_mr && ibdev->ops.map_mr_sg &&
	       ibdev->attrs.max_fast_reg_page_list_len &&
	       ibdev->attrs.max_qp_rd_atom > 0 &&
	       ibdev->attrs.max_qp_init_rd_atom > 0 &&
	       ibdev->phys_port_cnt && !rdma_cap_ib_switch(ibdev);
}

static void rmp_device_free(struct rmp_device *dev)
{
	rmp_domain_end_all(dev);
	ib_dealloc_pd(dev->ctrl_pd);
	kfree(dev);
}

static struct rmp_device *rmp_device_alloc(struct ib_device *ibdev)
{
	struct rmp_device *dev;
	struct rmp_domain *domain;
	int err;

	dev = kzalloc(struct_size(dev, ports, ibdev->phys_port_cnt),
		      GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->ibdev = ibdev;
	dev->node = NUMA_NO_NODE;
	dev->nr_ports = ibdev->phys_port_cnt;
	kref_init(&dev->ref);
	init_completion(&dev->released);
	mutex_init(&dev->domain_lock);
	spin_lock_init(&dev->port_lock);
	INIT_DELAYED_WORK(&dev->refresh, rmp_device_refresh);
	INIT_IB_EVENT_HANDLER(&dev->events, ibdev, rmp_device_event);
	rmp_capacity_init(dev);

	dev->ctrl_pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(dev->ctrl_pd)) {
		err = PTR_ERR(dev->ctrl_pd);
		goto err_free;
	}
	/* One user is the device. */
	domain = rmp_domain_get(dev, RMP_GROUP_DEFAULT);
	if (IS_ERR(domain)) {
		err = PTR_ERR(domain);
		goto err_pd;
	}
	return dev;

err_pd:
	ib_dealloc_pd(dev->ctrl_pd);
err_free:
	kfree(dev);
	return ERR_PTR(err);
}

static int rmp_client_add(struct ib_device *ibdev);
static void rmp_client_remove(struct ib_device *ibdev, void *data);

static struct ib_client rmp_client = {
	.name = KBUILD_MODNAME,
	.add = rmp_client_add,
	.remove = rmp_client_remove,
};

/* Called under locks of the RDMA core: only what needs no other room. */
static int rmp_client_add(struct ib_device *ibdev)
{
	struct rmp_device *dev;
	int err;

	if (!rmp_device_suits(ibdev))
		return -EOPNOTSUPP;

	dev = rmp_device_alloc(ibdev);
	if (IS_ERR(dev)) {
		err = PTR_ERR(dev);
		goto err_out;
	}
	err = rmp_device_take_slot(dev);
	if (err)
		goto err_free;

	ib_set_client_data(ibdev, &rmp_client, dev);
	ib_register_event_handler(&dev->events);
	mod_delayed_work(rmp_wq, &dev->refresh, 0);
	return 0;

err_free:
	rmp_device_free(dev);
err_out:
	pr_warn("%s: not used: error %d\n", dev_name(&ibdev->dev), err);
	return err;
}

static void rmp_client_remove(struct ib_device *ibdev, void *data)
{
	struct rmp_device *dev = data;

	/* The order matters: end long work, no new reference, no new event,
	 * then the word.
	 */
	WRITE_ONCE(dev->going, true);
	rmp_device_drop_slot(dev);
	ib_unregister_event_handler(&dev->events);
	cancel_delayed_work_sync(&dev->refresh);

	mutex_lock(&rmp_event_lock);
	if (dev->announced)
		rmp_ops->removed(dev);
	mutex_unlock(&rmp_event_lock);

	rmp_device_put(dev);
	wait_for_completion(&dev->released);
	rmp_device_free(dev);
}

int rmp_device_init(const struct rmp_device_ops *ops)
{
	struct rmp_device *dev;
	int err;
	u32 i;

	rmp_ops = ops;
	err = register_netdevice_notifier(&rmp_netdev_notifier);
	if (err)
		return err;
	err = ib_register_client(&rmp_client);
	if (err) {
		unregister_netdevice_notifier(&rmp_netdev_notifier);
		return err;
	}

	/* Devices that are there are in use when the module is loaded. */
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		dev = rmp_device_get(i);
		if (!dev)
			continue;
		flush_delayed_work(&dev->refresh);
		rmp_device_put(dev);
	}
	return 0;
}

void rmp_device_exit(void)
{
	ib_unregister_client(&rmp_client);
	unregister_netdevice_notifier(&rmp_netdev_notifier);
}
