// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family "rmpool": settings of the node, the peer table,
 * dumps of devices, peers, segments and regions, and events. What there is to
 * say is described in linux/rmpool_netlink.h and docs/rmpool.yaml; a unit test
 * compares the two with the tables at the end of this file.
 *
 * Contexts: commands and dumps run in the process that sends or receives; a
 * dump goes on in whoever calls recvmsg(), so what its caller may see is
 * decided once, in the start callback, and kept in the callback's context.
 * Events run in the context of the room that tells of them and may sleep.
 *
 * Locking: the family runs its operations in parallel: a command may take as
 * long as a connection needs to close, and must not hold up other families.
 * rmp_nl_set_lock makes read, change and write of the settings one step.
 * rmp_nl_gate is held for reading while an event is sent and for writing to
 * close the door, since other rooms still tell of events when this one is gone
 * and the number of the multicast group may then be another family's. It is
 * taken below the locks of the rooms that tell of events. Dumps hold no lock
 * and no reference from one message to the next, only a position.
 *
 * Lifetime: a running dump holds a reference of the module, commands are
 * waited for when the family is unregistered.
 */
#include <linux/cred.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "netlink.h"
#include "nlmsg.h"

/* Place of the group in rmp_nl_groups. */
#define RMP_NL_EVENTS	0

static DEFINE_MUTEX(rmp_nl_set_lock);
static DECLARE_RWSEM(rmp_nl_gate);
static bool rmp_nl_open;

/* Sets the text of an error. NL_SET_ERR_MSG() takes literals only. */
static int rmp_nl_error(struct genl_info *info, int attr, int err,
			const char *text)
{
	if (info->extack) {
		info->extack->_msg = text;
		NL_SET_BAD_ATTR(info->extack, info->attrs[attr]);
	}
	return err;
}

static int rmp_nl_get_name(struct genl_info *info, int attr,
			   char name[RMPOOL_NAME_MAX])
{
	char text[RMPOOL_NAME_MAX];

	/* Fills with zeros; what is behind a first NUL comes along, and is
	 * refused below.
	 */
	nla_strscpy(text, info->attrs[attr], sizeof(text));
	if (!rmp_name_valid(text))
		return rmp_nl_error(info, attr, -EINVAL,
			"a name is 1 to 63 letters, digits or ._:@-");
	memcpy(name, text, sizeof(text));
	return 0;
}

/* "@" and the name of a group stand for it among names of peers (rights.c). */
static int rmp_nl_get_peer_name(struct genl_info *info, char name[RMPOOL_NAME_MAX])
{
	int err = rmp_nl_get_name(info, RMPOOL_A_PEER_NAME, name);

	if (err || *name != '@')
		return err;
	return rmp_nl_error(info, RMPOOL_A_PEER_NAME, -EINVAL,
			    "the name of a peer does not begin with @");
}

static int rmp_nl_get_group(struct genl_info *info, char name[RMPOOL_NAME_MAX])
{
	if (!info->attrs[RMPOOL_A_PEER_GROUP]) {
		strscpy_pad(name, RMP_GROUP_DEFAULT_NAME, RMPOOL_NAME_MAX);
		return 0;
	}
	if (rmp_nl_get_name(info, RMPOOL_A_PEER_GROUP, name) || *name == '@' ||
	    strlen(name) > RMPOOL_NAME_MAX - 2)
		return rmp_nl_error(info, RMPOOL_A_PEER_GROUP, -EINVAL,
			"a trust group is 1 to 62 letters, digits or ._:@-, the first no @");
	return 0;
}

static int rmp_nl_get_endpoint(struct genl_info *info, int attr,
			       struct sockaddr_storage *addr)
{
	const char *why = "malformed endpoint";
	struct sockaddr_storage result = {};
	char text[RMP_ENDPOINT_MAX];
	bool choose = false;
	size_t length;
	int err;

	nla_strscpy(text, info->attrs[attr], sizeof(text));
	length = strlen(text);
	if (attr == RMPOOL_A_NODE_LISTEN && length > 2 &&
	    !strcmp(text + length - 2, ":0")) {
		/* Only here port 0 has a meaning, so the parser refuses it. */
		text[length - 1] = '1';
		choose = true;
	}
	err = rmp_endpoint_parse(text, &result, &why);
	if (err)
		return rmp_nl_error(info, attr, err, why);
	if (choose)
		rmp_endpoint_set_port(&result, 0);

	if (rmp_endpoint_is_loopback(&result) &&
	    !info->attrs[RMPOOL_A_ALLOW_LOOPBACK])
		return rmp_nl_error(info, attr, -EINVAL,
			"a loopback address reaches this host only; allow it if it is meant");
	if (rmp_endpoint_is_any(&result) && attr != RMPOOL_A_NODE_LISTEN)
		return rmp_nl_error(info, attr, -EINVAL,
			"the any address cannot be connected to");
	if (rmp_endpoint_is_group(&result))
		return rmp_nl_error(info, attr, -EINVAL,
			"a multicast or broadcast address is not one host's");
	*addr = result;
	return 0;
}

static int rmp_nl_node_get(struct sk_buff *request, struct genl_info *info)
{
	struct rmp_nl_msg msg = {
		.portid = info->snd_portid,
		.seq = info->snd_seq,
		.cmd = RMPOOL_CMD_NODE_GET,
	};
	int err;

	msg.skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg.skb)
		return -ENOMEM;
	err = rmp_nl_fill_node(&msg);
	if (err) {
		nlmsg_free(msg.skb);
		return err;
	}
	return genlmsg_reply(msg.skb, info);
}

static int rmp_nl_node_change(struct genl_info *info, struct rmp_node *node)
{
	struct nlattr **attrs = info->attrs;
	int err = 0;

	if (attrs[RMPOOL_A_NODE_NAME])
		err = rmp_nl_get_name(info, RMPOOL_A_NODE_NAME, node->name);
	if (!err && attrs[RMPOOL_A_NODE_LISTEN])
		err = rmp_nl_get_endpoint(info, RMPOOL_A_NODE_LISTEN,
					  &node->listen);
	if (!err && attrs[RMPOOL_A_NODE_ADVERTISE]) {
		/* An empty text: found out by the node itself, as at first. */
		if (!*(char *)nla_data(attrs[RMPOOL_A_NODE_ADVERTISE]))
			memset(&node->advertise, 0, sizeof(node->advertise));
		else
			err = rmp_nl_get_endpoint(info, RMPOOL_A_NODE_ADVERTISE,
						  &node->advertise);
	}
	if (!err && attrs[RMPOOL_A_NODE_ACCEPT_ANY])
		node->accept_any = nla_get_u8(attrs[RMPOOL_A_NODE_ACCEPT_ANY]);
	return err;
}

static int rmp_nl_node_set(struct sk_buff *request, struct genl_info *info)
{
	struct rmp_node node = {};
	int err;

	if (!info->attrs[RMPOOL_A_NODE_NAME] &&
	    !info->attrs[RMPOOL_A_NODE_LISTEN] &&
	    !info->attrs[RMPOOL_A_NODE_ADVERTISE] &&
	    !info->attrs[RMPOOL_A_NODE_ACCEPT_ANY]) {
		GENL_SET_ERR_MSG(info, "no setting is given");
		return -EINVAL;
	}

	mutex_lock(&rmp_nl_set_lock);
	rmp_node_settings(&node);
	err = rmp_nl_node_change(info, &node);
	if (!err) {
		err = rmp_node_set(&node);
		if (err == -EADDRINUSE)
			rmp_nl_error(info, RMPOOL_A_NODE_LISTEN, err,
				     "the listen address is in use");
		else if (err == -EADDRNOTAVAIL)
			rmp_nl_error(info, RMPOOL_A_NODE_LISTEN, err,
				     "the listen address is not of this host");
	}
	mutex_unlock(&rmp_nl_set_lock);

	if (!err)
		rmp_netlink_node_event();
	return err;
}

static int rmp_nl_peer_add(struct sk_buff *request, struct genl_info *info)
{
	char name[RMPOOL_NAME_MAX], group[RMPOOL_NAME_MAX];
	struct sockaddr_storage addr;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RMPOOL_A_PEER_NAME) ||
	    GENL_REQ_ATTR_CHECK(info, RMPOOL_A_PEER_ENDPOINT)) {
		GENL_SET_ERR_MSG(info, "a peer needs a name and an endpoint");
		return -EINVAL;
	}
	err = rmp_nl_get_peer_name(info, name) ?:
	      rmp_nl_get_endpoint(info, RMPOOL_A_PEER_ENDPOINT, &addr) ?:
	      rmp_nl_get_group(info, group) ?:
	      rmp_peer_add(name, &addr, group);
	if (err == -EEXIST)
		GENL_SET_ERR_MSG(info, "a peer with that name or endpoint is in the table");
	else if (err == -ENOSPC)
		rmp_nl_error(info, RMPOOL_A_PEER_GROUP, err,
			     "there are 16 trust groups, and there can be no more at a time");
	return err;
}

static int rmp_nl_peer_del(struct sk_buff *request, struct genl_info *info)
{
	char name[RMPOOL_NAME_MAX];
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RMPOOL_A_PEER_NAME)) {
		GENL_SET_ERR_MSG(info, "the name of a peer is needed");
		return -EINVAL;
	}
	err = rmp_nl_get_name(info, RMPOOL_A_PEER_NAME, name) ?:
	      rmp_peer_del(name);
	if (err == -ENOENT)
		rmp_nl_error(info, RMPOOL_A_PEER_NAME, err,
			     "no peer has that name");
	else if (err == -EINTR)
		rmp_nl_error(info, RMPOOL_A_PEER_NAME, err,
			     "interrupted: the peer is off the table, its connection being closed");
	return err;
}

static void rmp_nl_dump_msg(struct rmp_nl_msg *msg, struct sk_buff *skb,
			    struct netlink_callback *cb, u8 cmd)
{
	*msg = (struct rmp_nl_msg) {
		.skb = skb,
		.portid = NETLINK_CB(cb->skb).portid,
		.seq = cb->nlh->nlmsg_seq,
		.flags = NLM_F_MULTI,
		.cmd = cmd,
	};
}

/* Position of a device dump: slot, and ports of it that are done. */
struct rmp_nl_device_dump {
	u32 index;
	u32 ports;
};

static int rmp_nl_device_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rmp_nl_device_dump *pos = (void *)cb->ctx;
	struct rmp_device *dev;
	struct rmp_nl_msg msg;
	struct rmp_port port;
	int err = 0;

	BUILD_BUG_ON(sizeof(*pos) > sizeof(cb->ctx));
	rmp_nl_dump_msg(&msg, skb, cb, RMPOOL_CMD_DEVICE_GET);
	for (; pos->index < RMP_DEVICES_MAX; pos->index++, pos->ports = 0) {
		dev = rmp_device_get(pos->index);
		if (!dev)
			continue;
		while (!rmp_device_port(dev, pos->ports + 1, &port)) {
			err = rmp_nl_fill_device(&msg, dev, &port);
			if (err)
				break;
			pos->ports++;
		}
		rmp_device_put(dev);
		if (err)
			break;
	}
	return skb->len ?: err;
}

/* A peer dump: the name to go on behind, and room for a snapshot. */
struct rmp_nl_peer_dump {
	struct rmp_nl_msg msg;
	char after[RMPOOL_NAME_MAX];
	struct rmp_peer_info info;
};

static struct rmp_nl_peer_dump **rmp_nl_peer_ctx(struct netlink_callback *cb)
{
	return (void *)cb->ctx;
}

static int rmp_nl_peer_start(struct netlink_callback *cb)
{
	struct rmp_nl_peer_dump *dump;

	dump = kzalloc(sizeof(*dump), GFP_KERNEL_ACCOUNT);
	if (!dump)
		return -ENOMEM;
	/* A peer is one message, so a buffer must hold the largest. */
	cb->min_dump_alloc = rmp_nl_peer_size(RMP_RAILS_MAX);
	*rmp_nl_peer_ctx(cb) = dump;
	return 0;
}

static int rmp_nl_peer_one(struct rmp_peer *peer, void *arg)
{
	struct rmp_nl_peer_dump *dump = arg;
	int err;

	rmp_peer_info(peer, &dump->info);
	err = rmp_nl_fill_peer(&dump->msg, &dump->info);
	if (!err)
		strscpy(dump->after, dump->info.name, sizeof(dump->after));
	return err;
}

static int rmp_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rmp_nl_peer_dump *dump = *rmp_nl_peer_ctx(cb);
	int err;

	rmp_nl_dump_msg(&dump->msg, skb, cb, RMPOOL_CMD_PEER_GET);
	err = rmp_peer_walk(dump->after, rmp_nl_peer_one, dump);
	return skb->len ?: err;
}

static int rmp_nl_peer_done(struct netlink_callback *cb)
{
	kfree(*rmp_nl_peer_ctx(cb));
	return 0;
}

/* A dump of owned things: whose may be seen, and the id to go on with. */
struct rmp_nl_owner_dump {
	struct rmp_nl_msg *msg;
	u64 next;
	kuid_t uid;
	bool all;
};

static int rmp_nl_owner_start(struct netlink_callback *cb)
{
	struct rmp_nl_owner_dump *dump = (void *)cb->ctx;

	BUILD_BUG_ON(sizeof(*dump) > sizeof(cb->ctx));
	dump->all = netlink_capable(cb->skb, CAP_NET_ADMIN);
	/* Whoever opened the socket reads the answer, and the caller may have
	 * been made to send: with two users in play, nobody's are shown.
	 */
	dump->uid = current_euid();
	if (!uid_eq(dump->uid, NETLINK_CB(cb->skb).sk->sk_uid))
		dump->uid = INVALID_UID;
	return 0;
}

static bool rmp_nl_owner_sees(const struct rmp_nl_owner_dump *dump, kuid_t owner)
{
	return dump->all || uid_eq(dump->uid, owner);
}

static int rmp_nl_segment_one(struct rmp_segment *segment, void *arg)
{
	struct rmp_nl_owner_dump *dump = arg;
	int err = 0;

	if (!segment->dead && rmp_nl_owner_sees(dump, segment->uid))
		err = rmp_nl_fill_segment(dump->msg, segment);
	if (!err)
		dump->next = (u64)segment->id + 1;
	return err;
}

static int rmp_nl_segment_start(struct netlink_callback *cb)
{
	/* A segment is one message, so a buffer must hold the largest. */
	cb->min_dump_alloc = rmp_nl_segment_size(RMPOOL_ALLOW_MAX);
	return rmp_nl_owner_start(cb);
}

static int rmp_nl_segment_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rmp_nl_owner_dump *dump = (void *)cb->ctx;
	struct rmp_nl_msg msg;
	int err = 0;

	rmp_nl_dump_msg(&msg, skb, cb, RMPOOL_CMD_SEGMENT_GET);
	dump->msg = &msg;
	/* Behind the largest id there is nothing, in particular not id 0. */
	if (dump->next <= U32_MAX)
		err = rmp_segment_walk(dump->next, rmp_nl_segment_one, dump);
	return skb->len ?: err;
}

static int rmp_nl_region_one(struct rmp_region *region, void *arg)
{
	struct rmp_nl_owner_dump *dump = arg;
	int err = 0;

	if (!READ_ONCE(region->dead) &&
	    rmp_nl_owner_sees(dump, region->mem->uid))
		err = rmp_nl_fill_region(dump->msg, region);
	if (!err)
		dump->next = region->id + 1;
	return err;
}

static int rmp_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rmp_nl_owner_dump *dump = (void *)cb->ctx;
	struct rmp_nl_msg msg;
	int err;

	rmp_nl_dump_msg(&msg, skb, cb, RMPOOL_CMD_REGION_GET);
	dump->msg = &msg;
	err = rmp_region_walk(dump->next, rmp_nl_region_one, dump);
	return skb->len ?: err;
}

/* Whether an event is to be sent; when it is, rmp_nl_event_end() must follow. */
static bool rmp_nl_event_begin(void)
{
	down_read(&rmp_nl_gate);
	if (rmp_nl_open &&
	    genl_has_listeners(&rmp_nl_family, &init_net, RMP_NL_EVENTS))
		return true;
	up_read(&rmp_nl_gate);
	return false;
}

/* Sends @skb, or tells the listeners that they missed one. */
static void rmp_nl_event_end(struct sk_buff *skb, int err)
{
	if (err) {
		nlmsg_free(skb);
		genl_set_err(&rmp_nl_family, &init_net, 0, RMP_NL_EVENTS,
			     -ENOBUFS);
	} else {
		genlmsg_multicast(&rmp_nl_family, skb, 0, RMP_NL_EVENTS,
				  GFP_KERNEL);
	}
	up_read(&rmp_nl_gate);
}

void rmp_netlink_node_event(void)
{
	struct rmp_nl_msg msg = {
		.cmd = RMPOOL_CMD_NODE_NTF,
		.event = RMPOOL_EVENT_CHANGED,
	};

	if (!rmp_nl_event_begin())
		return;
	msg.skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	rmp_nl_event_end(msg.skb, msg.skb ? rmp_nl_fill_node(&msg) : -ENOMEM);
}

static void rmp_nl_port_event(struct rmp_device *dev,
			      const struct rmp_port *port, u32 event)
{
	struct rmp_nl_msg msg = {
		.cmd = RMPOOL_CMD_DEVICE_NTF,
		.event = event,
	};

	if (!rmp_nl_event_begin())
		return;
	msg.skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	rmp_nl_event_end(msg.skb, msg.skb ?
			 rmp_nl_fill_device(&msg, dev, port) : -ENOMEM);
}

void rmp_netlink_device_event(struct rmp_device *dev, u32 port_num, u32 event)
{
	struct rmp_port port;
	u32 num = port_num ?: 1;

	do {
		if (rmp_device_port(dev, num, &port))
			break;
		rmp_nl_port_event(dev, &port, event);
		num++;
	} while (!port_num);
}

void rmp_netlink_peer_event(struct rmp_peer *peer, u32 event)
{
	struct rmp_nl_msg msg = {
		.cmd = RMPOOL_CMD_PEER_NTF,
		.event = event,
	};
	struct rmp_peer_info *info;
	int err = -ENOMEM;

	if (!rmp_nl_event_begin())
		return;
	info = kzalloc(sizeof(*info), GFP_KERNEL);
	if (info) {
		rmp_peer_info(peer, info);
		msg.skb = nlmsg_new(rmp_nl_peer_size(info->nr_rails),
				    GFP_KERNEL);
		if (msg.skb)
			err = rmp_nl_fill_peer(&msg, info);
		kfree(info);
	}
	rmp_nl_event_end(msg.skb, err);
}

void rmp_netlink_segment_event(struct rmp_segment *segment, u32 event)
{
	struct rmp_nl_msg msg = {
		.cmd = RMPOOL_CMD_SEGMENT_NTF,
		.event = event,
	};

	if (!rmp_nl_event_begin())
		return;
	msg.skb = nlmsg_new(rmp_nl_segment_size(segment->rights ?
						segment->rights->nr : 0),
			    GFP_KERNEL);
	rmp_nl_event_end(msg.skb, msg.skb ?
			 rmp_nl_fill_segment(&msg, segment) : -ENOMEM);
}

static const struct nla_policy rmp_nl_node_set_policy[] = {
	[RMPOOL_A_NODE_NAME] = { .type = NLA_NUL_STRING, .len = RMPOOL_NAME_MAX - 1 },
	[RMPOOL_A_NODE_LISTEN] = { .type = NLA_NUL_STRING, .len = RMP_ENDPOINT_MAX - 1 },
	[RMPOOL_A_NODE_ADVERTISE] = { .type = NLA_NUL_STRING, .len = RMP_ENDPOINT_MAX - 1 },
	[RMPOOL_A_NODE_ACCEPT_ANY] = NLA_POLICY_MAX(NLA_U8, 1),
	[RMPOOL_A_ALLOW_LOOPBACK] = { .type = NLA_FLAG },
};

static const struct nla_policy rmp_nl_peer_add_policy[] = {
	[RMPOOL_A_ALLOW_LOOPBACK] = { .type = NLA_FLAG },
	[RMPOOL_A_PEER_NAME] = { .type = NLA_NUL_STRING, .len = RMPOOL_NAME_MAX - 1 },
	[RMPOOL_A_PEER_ENDPOINT] = { .type = NLA_NUL_STRING, .len = RMP_ENDPOINT_MAX - 1 },
	[RMPOOL_A_PEER_GROUP] = { .type = NLA_NUL_STRING, .len = RMPOOL_NAME_MAX - 1 },
};

static const struct nla_policy rmp_nl_peer_del_policy[] = {
	[RMPOOL_A_PEER_NAME] = { .type = NLA_NUL_STRING, .len = RMPOOL_NAME_MAX - 1 },
};

/* An operation without a policy takes no attribute at all. */
static const struct genl_ops rmp_nl_ops[] = {
	{
		.cmd = RMPOOL_CMD_NODE_GET,
		.doit = rmp_nl_node_get,
	},
	{
		.cmd = RMPOOL_CMD_NODE_SET,
		.doit = rmp_nl_node_set,
		.policy = rmp_nl_node_set_policy,
		.maxattr = ARRAY_SIZE(rmp_nl_node_set_policy) - 1,
		.flags = GENL_ADMIN_PERM,
	},
	{
		.cmd = RMPOOL_CMD_DEVICE_GET,
		.dumpit = rmp_nl_device_dump,
	},
	{
		.cmd = RMPOOL_CMD_PEER_GET,
		.start = rmp_nl_peer_start,
		.dumpit = rmp_nl_peer_dump,
		.done = rmp_nl_peer_done,
	},
	{
		.cmd = RMPOOL_CMD_PEER_ADD,
		.doit = rmp_nl_peer_add,
		.policy = rmp_nl_peer_add_policy,
		.maxattr = ARRAY_SIZE(rmp_nl_peer_add_policy) - 1,
		.flags = GENL_ADMIN_PERM,
	},
	{
		.cmd = RMPOOL_CMD_PEER_DEL,
		.doit = rmp_nl_peer_del,
		.policy = rmp_nl_peer_del_policy,
		.maxattr = ARRAY_SIZE(rmp_nl_peer_del_policy) - 1,
		.flags = GENL_ADMIN_PERM,
	},
	{
		.cmd = RMPOOL_CMD_SEGMENT_GET,
		.start = rmp_nl_segment_start,
		.dumpit = rmp_nl_segment_dump,
	},
	{
		.cmd = RMPOOL_CMD_REGION_GET,
		.start = rmp_nl_owner_start,
		.dumpit = rmp_nl_region_dump,
	},
};

static const struct genl_multicast_group rmp_nl_groups[] = {
	[RMP_NL_EVENTS] = {
		.name = RMPOOL_GENL_EVENTS,
		.flags = GENL_MCAST_CAP_NET_ADMIN,
	},
};

/* Without netnsok it is found in the initial network namespace only; with
 * resv_start_op left at 0 all operations are validated strictly.
 */
struct genl_family rmp_nl_family __ro_after_init = {
	.name = RMPOOL_GENL_NAME,
	.version = RMPOOL_GENL_VERSION,
	.module = THIS_MODULE,
	.parallel_ops = true,
	.ops = rmp_nl_ops,
	.n_ops = ARRAY_SIZE(rmp_nl_ops),
	.mcgrps = rmp_nl_groups,
	.n_mcgrps = ARRAY_SIZE(rmp_nl_groups),
};

int rmp_netlink_init(void)
{
	int err = genl_register_family(&rmp_nl_family);

	if (err)
		return err;
	down_write(&rmp_nl_gate);
	rmp_nl_open = true;
	up_write(&rmp_nl_gate);
	return 0;
}

void rmp_netlink_exit(void)
{
	down_write(&rmp_nl_gate);
	rmp_nl_open = false;
	up_write(&rmp_nl_gate);
	genl_unregister_family(&rmp_nl_family);
}
