// SPDX-License-Identifier: GPL-2.0
/*
 * The settings of this node and its listener.
 *
 * Locking: rmp_node_lock (mutex) guards the settings and the listener. The
 * listener calls nothing here, so it is opened and closed under the lock.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/module.h>
#include <linux/utsname.h>
#include "segment.h"
#include "session.h"

static ushort rmp_port = RMP_WIRE_PORT;
module_param_named(port, rmp_port, ushort, 0444);
MODULE_PARM_DESC(port, "port to listen at, 0: choose one (default 13579)");

static char *rmp_name = "";
module_param_named(name, rmp_name, charp, 0444);
MODULE_PARM_DESC(name, "name of this node (default: the host name)");

static char *rmp_listen = "";
module_param_named(listen, rmp_listen, charp, 0444);
MODULE_PARM_DESC(listen, "endpoint to listen at, v1:host:port (default: all addresses)");

static char *rmp_accept = "table";
module_param_named(accept, rmp_accept, charp, 0444);
MODULE_PARM_DESC(accept, "who may connect: table (the peer table) or any");

static DEFINE_MUTEX(rmp_node_lock);
static struct rmp_node rmp_this_node;
static struct rmp_listener *rmp_listener;
static bool rmp_node_closed;

static void node_any(struct sockaddr_storage *addr, u16 port, bool ipv6)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = ipv6 ? AF_INET6 : AF_INET;
	rmp_endpoint_set_port(addr, port);
}

/* The address of the first usable device, for who listens at all. */
static void node_resolve_advertise(struct rmp_node *node)
{
	u16 port = rmp_endpoint_port(&node->listen);
	struct rmp_device *dev;
	struct rmp_port p;
	u32 i;

	if (node->advertise.ss_family)
		return;
	if (!rmp_endpoint_is_any(&node->listen)) {
		node->advertise = node->listen;
		return;
	}
	for (i = 0; i < RMP_DEVICES_MAX; i++) {
		int ret;

		dev = rmp_device_get(i);
		if (!dev)
			continue;
		ret = rmp_device_usable_port(dev, &p);
		rmp_device_put(dev);
		if (!ret && p.addr.ss_family) {
			node->advertise = p.addr;
			rmp_endpoint_set_port(&node->advertise, port);
			return;
		}
	}
}

void rmp_node_settings(struct rmp_node *node)
{
	mutex_lock(&rmp_node_lock);
	*node = rmp_this_node;
	mutex_unlock(&rmp_node_lock);
}

void rmp_node_get(struct rmp_node *node)
{
	rmp_node_settings(node);
	node_resolve_advertise(node);
}

void rmp_node_name(char name[RMPOOL_NAME_MAX])
{
	mutex_lock(&rmp_node_lock);
	memcpy(name, rmp_this_node.name, RMPOOL_NAME_MAX);
	mutex_unlock(&rmp_node_lock);
}

bool rmp_node_accepts_any(void)
{
	return READ_ONCE(rmp_this_node.accept_any);
}

void rmp_node_source(struct sockaddr_storage *addr)
{
	mutex_lock(&rmp_node_lock);
	*addr = rmp_this_node.listen;
	mutex_unlock(&rmp_node_lock);
	if (rmp_endpoint_is_any(addr))
		memset(addr, 0, sizeof(*addr));
	else
		rmp_endpoint_set_port(addr, 0);
}

int rmp_node_set(const struct rmp_node *node)
{
	struct sockaddr_storage listen = node->listen, old;
	int ret = 0;

	if (!rmp_name_valid(node->name))
		return -EINVAL;
	mutex_lock(&rmp_node_lock);
	if (!rmp_endpoint_equal(&listen, &rmp_this_node.listen)) {
		/* The old one goes first: both may want the same port. */
		old = rmp_this_node.listen;
		rmp_cm_unlisten(rmp_listener);
		rmp_listener = NULL;
		ret = rmp_cm_listen(&listen, &rmp_listener);
		if (ret && rmp_cm_listen(&old, &rmp_listener))
			pr_err("the listener at %pISpc could not be restored\n",
			       &old);
	}
	if (!ret) {
		rmp_this_node = *node;
		rmp_this_node.listen = listen;
	}
	mutex_unlock(&rmp_node_lock);
	return ret;
}

void rmp_node_device_changed(void)
{
	int ret = 0;

	mutex_lock(&rmp_node_lock);
	if (!rmp_node_closed && !rmp_cm_listening(rmp_listener)) {
		rmp_cm_unlisten(rmp_listener);
		rmp_listener = NULL;
		ret = rmp_cm_listen(&rmp_this_node.listen, &rmp_listener);
	}
	mutex_unlock(&rmp_node_lock);
	if (ret)
		pr_warn_ratelimited("cannot listen at %pISpc: %pe\n",
				    &rmp_this_node.listen, ERR_PTR(ret));
}

int rmp_node_init(void)
{
	struct rmp_node *node = &rmp_this_node;
	const char *why;
	int ret;

	if (*rmp_name) {
		if (strscpy(node->name, rmp_name, sizeof(node->name)) < 0) {
			pr_err("name=%s: longer than %d characters\n",
			       rmp_name, RMPOOL_NAME_MAX - 1);
			return -EINVAL;
		}
	} else {
		/* Its lock is not for modules; a name that changes right now
		 * is not valid, or just another one.
		 */
		strscpy(node->name, init_utsname()->nodename,
			sizeof(node->name));
	}
	if (!rmp_name_valid(node->name)) {
		pr_err("name \"%s\" is not usable for a node\n", node->name);
		return -EINVAL;
	}
	if (!strcmp(rmp_accept, "any")) {
		node->accept_any = true;
	} else if (strcmp(rmp_accept, "table")) {
		pr_err("accept=%s: must be table or any\n", rmp_accept);
		return -EINVAL;
	}
	if (*rmp_listen) {
		ret = rmp_endpoint_parse(rmp_listen, &node->listen, &why);
		if (ret) {
			pr_err("listen=%s: %s\n", rmp_listen, why);
			return ret;
		}
		ret = rmp_cm_listen(&node->listen, &rmp_listener);
	} else {
		/* The IPv6 any address takes IPv4 as well. */
		node_any(&node->listen, rmp_port, true);
		ret = rmp_cm_listen(&node->listen, &rmp_listener);
		/* Any other error says what is wrong; IPv4 would hide it. */
		if (ret == -EAFNOSUPPORT) {
			node_any(&node->listen, rmp_port, false);
			ret = rmp_cm_listen(&node->listen, &rmp_listener);
		}
	}
	if (ret == -EADDRINUSE)
		pr_err("cannot listen at %pISpc: port %u in use\n",
		       &node->listen, rmp_endpoint_port(&node->listen));
	else if (ret)
		pr_err("cannot listen at %pISpc: %pe\n", &node->listen,
		       ERR_PTR(ret));
	return ret;
}

void rmp_node_exit(void)
{
	mutex_lock(&rmp_node_lock);
	rmp_node_closed = true;
	rmp_cm_unlisten(rmp_listener);
	rmp_listener = NULL;
	mutex_unlock(&rmp_node_lock);
}
