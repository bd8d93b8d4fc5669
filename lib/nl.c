// SPDX-License-Identifier: MIT
/*
 * The netlink family: sockets, requests, lists and events.
 *
 * A handle has one socket for requests and, after rmpool_nl_subscribe(), one
 * for events, so that events never stand between a request and its reply. The
 * kernel answers a request while it is being sent, so reading the reply does
 * not wait for anything but the kernel itself, and is not broken off by signals.
 */
#include "netlink.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel sends up to 32 KiB at once to those who offer so much room. */
#define DATAGRAM_MAX 65536
/* How often a list that changed under way is asked for again. */
#define DUMP_TRIES 16

struct rmpool_nl {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t group;
	uint32_t seq;
	char *datagram;

	/* behind rmpool_nl_node_get() */
	struct rmpl_nl_reply node_reply;
	struct rmpool_nl_node node;

	/* behind rmpool_nl_event() */
	struct mnl_socket *events;
	char *event_datagram;
	const struct nlmsghdr *event_next;
	int event_left;
	struct rmpl_nl_event event;
};

static int open_socket(struct mnl_socket **out, int flags)
{
	struct mnl_socket *socket;
	int one = 1;
	int err;

	socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC | flags);
	if (!socket)
		return -errno;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = errno;
		mnl_socket_close(socket);
		return -err;
	}
	/* Both only make errors easier to read: a kernel without them is fine. */
	mnl_socket_setsockopt(socket, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(socket, NETLINK_CAP_ACK, &one, sizeof(one));
	*out = socket;
	return 0;
}

static const char *nl_why(int err, const struct rmpl_nl_reply *reply)
{
	if (reply->text[0])
		return reply->text;
	switch (err) {
	case EPERM:
		return "it needs CAP_NET_ADMIN";
	case EAGAIN:
		return "the list keeps changing";
	case EBADMSG:
		return "the module sent something that the library does not understand";
	case EMSGSIZE:
		return "a text is too long";
	default:
		return NULL;
	}
}

/* Send one request and collect all that comes back. 0 or a negative errno. */
static int exchange(struct rmpool_nl *nl, struct nlmsghdr *nlh,
		    struct rmpl_nl_reply *reply)
{
	ssize_t n;
	int ret;

	do {
		n = mnl_socket_sendto(nl->socket, nlh, nlh->nlmsg_len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	while (!reply->ended) {
		n = mnl_socket_recvfrom(nl->socket, nl->datagram, DATAGRAM_MAX);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		ret = rmpl_nl_collect(reply, nl->datagram, (size_t)n,
				      nlh->nlmsg_seq,
				      mnl_socket_get_portid(nl->socket));
		if (ret)
			return ret;
	}
	return -reply->err;
}

/* As exchange(), with errno left as it was. */
static int talk(struct rmpool_nl *nl, struct nlmsghdr *nlh,
		struct rmpl_nl_reply *reply)
{
	int saved = errno;
	int ret = exchange(nl, nlh, reply);

	errno = saved;
	return ret;
}

static int find_family(struct rmpool_nl *nl)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct rmpl_nl_reply reply = { .data = NULL };
	const char *why;
	int ret;

	struct nlmsghdr *nlh = rmpl_nl_begin(buffer, GENL_ID_CTRL,
					     CTRL_CMD_GETFAMILY, NLM_F_ACK,
					     ++nl->seq);
	ret = rmpl_nl_build_family(nlh);
	if (!ret)
		ret = talk(nl, nlh, &reply);
	if (!ret && !reply.length)
		ret = -EBADMSG;
	if (!ret)
		ret = rmpl_nl_parse_family((const void *)reply.data,
					   &nl->family, &nl->group);
	if (ret) {
		why = ret == -ENOENT ?
		      "there is none: the module is not loaded ('modprobe rmpool'), or this is not the initial network namespace" :
		      nl_why(-ret, &reply);
		rmpl_fail(-ret, NULL, why, "netlink family " RMPOOL_GENL_NAME);
	}
	rmpl_nl_reply_free(&reply);
	return ret;
}

int rmpool_nl_open(struct rmpool_nl **nlp)
{
	struct rmpool_nl *nl;
	int saved = errno;
	int ret;

	*nlp = NULL;
	nl = calloc(1, sizeof(*nl));
	if (!nl)
		return rmpl_fail(ENOMEM, NULL, NULL, "netlink");
	nl->datagram = malloc(DATAGRAM_MAX);
	ret = nl->datagram ? open_socket(&nl->socket, 0) : -ENOMEM;
	errno = saved;
	if (ret)
		rmpl_fail(-ret, NULL, NULL, "cannot open a netlink socket");
	else
		ret = find_family(nl);
	if (ret) {
		rmpool_nl_close(nl);
		return ret;
	}
	*nlp = nl;
	return 0;
}

void rmpool_nl_close(struct rmpool_nl *nl)
{
	if (!nl)
		return;
	if (nl->socket)
		mnl_socket_close(nl->socket);
	if (nl->events)
		mnl_socket_close(nl->events);
	rmpl_nl_reply_free(&nl->node_reply);
	free(nl->event.rails.array);
	free(nl->event.allowed.array);
	free(nl->event_datagram);
	free(nl->datagram);
	free(nl);
}

int rmpool_nl_node_get(struct rmpool_nl *nl, const struct rmpool_nl_node **node)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	int ret;

	rmpl_nl_reply_free(&nl->node_reply);
	nlh = rmpl_nl_begin(buffer, nl->family, RMPOOL_CMD_NODE_GET, NLM_F_ACK,
			    ++nl->seq);
	ret = talk(nl, nlh, &nl->node_reply);
	if (!ret && !nl->node_reply.length)
		ret = -EBADMSG;
	if (!ret)
		ret = rmpl_nl_parse_node((const void *)nl->node_reply.data,
					 &nl->node);
	if (ret)
		return rmpl_fail(-ret, NULL, nl_why(-ret, &nl->node_reply),
				 "cannot ask for the node");
	*node = &nl->node;
	return 0;
}

/* Run a request that changes something. @what: its name in the error. */
static int change(struct rmpool_nl *nl, struct nlmsghdr *nlh, int built,
		  const char *what, const char *name)
{
	struct rmpl_nl_reply reply = { .data = NULL };
	int ret = built;

	if (!ret)
		ret = talk(nl, nlh, &reply);
	if (ret)
		rmpl_fail(-ret, NULL, nl_why(-ret, &reply), "cannot %s%s%.80s%s",
			  what, name ? " '" : "", name ? name : "",
			  name ? "'" : "");
	rmpl_nl_reply_free(&reply);
	return ret;
}

int rmpool_nl_node_set(struct rmpool_nl *nl,
		       const struct rmpool_nl_settings *settings)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < sizeof(settings->reserved) /
			       sizeof(settings->reserved[0]); i++)
		if (settings->reserved[i])
			return rmpl_fail(EINVAL, NULL,
					 "a reserved field is not zero",
					 "cannot change the node");
	if (settings->accept > RMPOOL_NL_ACCEPT_ANY)
		return rmpl_fail(EINVAL, NULL, "unknown value of accept",
				 "cannot change the node");
	nlh = rmpl_nl_begin(buffer, nl->family, RMPOOL_CMD_NODE_SET, NLM_F_ACK,
			    ++nl->seq);
	return change(nl, nlh, rmpl_nl_build_settings(nlh, settings),
		      "change the node", NULL);
}

int rmpool_nl_peer_add_group(struct rmpool_nl *nl, const char *name,
			     const char *endpoint, const char *group,
			     int allow_loopback)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	nlh = rmpl_nl_begin(buffer, nl->family, RMPOOL_CMD_PEER_ADD, NLM_F_ACK,
			    ++nl->seq);
	return change(nl, nlh, rmpl_nl_build_peer(nlh, name, endpoint, group,
						  allow_loopback != 0),
		      "add peer", name);
}

int rmpool_nl_peer_add(struct rmpool_nl *nl, const char *name,
		       const char *endpoint, int allow_loopback)
{
	return rmpool_nl_peer_add_group(nl, name, endpoint, NULL, allow_loopback);
}

int rmpool_nl_peer_del(struct rmpool_nl *nl, const char *name)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	nlh = rmpl_nl_begin(buffer, nl->family, RMPOOL_CMD_PEER_DEL, NLM_F_ACK,
			    ++nl->seq);
	return change(nl, nlh, rmpl_nl_build_peer(nlh, name, NULL, NULL, false),
		      "remove peer", name);
}

/* Receive a whole list, again when it changed while it was being sent. */
static int dump(struct rmpool_nl *nl, uint8_t command, const char *what,
		struct rmpl_nl_reply *reply)
{
	char buffer[RMPL_NL_REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	int ret = -EAGAIN;

	for (int tries = 0; ret == -EAGAIN && tries < DUMP_TRIES; tries++) {
		rmpl_nl_reply_free(reply);
		nlh = rmpl_nl_begin(buffer, nl->family, command, NLM_F_DUMP,
				    ++nl->seq);
		ret = talk(nl, nlh, reply);
		if (!ret && reply->interrupted)
			ret = -EAGAIN;
	}
	if (ret)
		rmpl_fail(-ret, NULL, nl_why(-ret, reply), "cannot list the %s",
			  what);
	return ret;
}

/* One object of a list to its callback. */
typedef int (*visit_fn)(const struct nlmsghdr *nlh, void *context);

static int list(struct rmpool_nl *nl, uint8_t command, const char *what,
		visit_fn visit, void *context)
{
	struct rmpl_nl_reply reply = { .data = NULL };
	const struct nlmsghdr *nlh;
	int left, ret;

	ret = dump(nl, command, what, &reply);
	nlh = (const void *)reply.data;
	left = (int)reply.length;
	for (; !ret && left > 0 && mnl_nlmsg_ok(nlh, left);
	     nlh = mnl_nlmsg_next(nlh, &left))
		ret = visit(nlh, context);
	rmpl_nl_reply_free(&reply);
	return ret;
}

static int fail_parse(int ret)
{
	const struct rmpl_nl_reply none = { .data = NULL };

	return rmpl_fail(-ret, NULL, nl_why(-ret, &none),
			 "cannot read a netlink message");
}

struct device_context {
	int (*cb)(const struct rmpool_nl_device *device, void *arg);
	void *arg;
};

static int visit_device(const struct nlmsghdr *nlh, void *context)
{
	struct device_context *c = context;
	struct rmpool_nl_device device;
	int ret = rmpl_nl_parse_device(nlh, &device);

	return ret ? fail_parse(ret) : c->cb(&device, c->arg);
}

int rmpool_nl_devices(struct rmpool_nl *nl,
		      int (*cb)(const struct rmpool_nl_device *, void *),
		      void *arg)
{
	struct device_context context = { cb, arg };

	return list(nl, RMPOOL_CMD_DEVICE_GET, "devices", visit_device,
		    &context);
}

struct peer_context {
	int (*cb)(const struct rmpool_nl_peer *peer, void *arg);
	void *arg;
	struct rmpl_rails rails;
};

static int visit_peer(const struct nlmsghdr *nlh, void *context)
{
	struct peer_context *c = context;
	struct rmpool_nl_peer peer;
	int ret = rmpl_nl_parse_peer(nlh, &peer, &c->rails);

	return ret ? fail_parse(ret) : c->cb(&peer, c->arg);
}

int rmpool_nl_peers(struct rmpool_nl *nl,
		    int (*cb)(const struct rmpool_nl_peer *, void *),
		    void *arg)
{
	struct peer_context context = { .cb = cb, .arg = arg };
	int ret = list(nl, RMPOOL_CMD_PEER_GET, "peers", visit_peer, &context);

	free(context.rails.array);
	return ret;
}

struct segment_context {
	int (*cb)(const struct rmpool_nl_segment *segment, void *arg);
	void *arg;
	struct rmpl_allowed allowed;
};

static int visit_segment(const struct nlmsghdr *nlh, void *context)
{
	struct segment_context *c = context;
	struct rmpool_nl_segment segment;
	int ret = rmpl_nl_parse_segment(nlh, &segment, &c->allowed);

	return ret ? fail_parse(ret) : c->cb(&segment, c->arg);
}

int rmpool_nl_segments(struct rmpool_nl *nl,
		       int (*cb)(const struct rmpool_nl_segment *, void *),
		       void *arg)
{
	struct segment_context context = { .cb = cb, .arg = arg };
	int ret = list(nl, RMPOOL_CMD_SEGMENT_GET, "segments", visit_segment,
		       &context);

	free(context.allowed.array);
	return ret;
}

struct region_context {
	int (*cb)(const struct rmpool_nl_region *region, void *arg);
	void *arg;
};

static int visit_region(const struct nlmsghdr *nlh, void *context)
{
	struct region_context *c = context;
	struct rmpool_nl_region region;
	int ret = rmpl_nl_parse_region(nlh, &region);

	return ret ? fail_parse(ret) : c->cb(&region, c->arg);
}

int rmpool_nl_regions(struct rmpool_nl *nl,
		      int (*cb)(const struct rmpool_nl_region *, void *),
		      void *arg)
{
	struct region_context context = { cb, arg };

	return list(nl, RMPOOL_CMD_REGION_GET, "regions", visit_region,
		    &context);
}

static int subscribe(struct rmpool_nl *nl)
{
	struct mnl_socket *socket = NULL;
	int group = (int)nl->group;
	int err, ret;

	if (!nl->event_datagram)
		nl->event_datagram = malloc(DATAGRAM_MAX);
	if (!nl->event_datagram)
		return -ENOMEM;
	ret = open_socket(&socket, SOCK_NONBLOCK);
	if (ret)
		return ret;
	if (mnl_socket_setsockopt(socket, NETLINK_ADD_MEMBERSHIP, &group,
				  sizeof(group)) < 0) {
		err = errno;
		mnl_socket_close(socket);
		return -err;
	}
	nl->events = socket;
	return 0;
}

int rmpool_nl_subscribe(struct rmpool_nl *nl)
{
	const struct rmpl_nl_reply none = { .data = NULL };
	int saved = errno;
	int ret = 0;

	if (!nl->events)
		ret = subscribe(nl);
	errno = saved;
	if (ret)
		return rmpl_fail(-ret, NULL, nl_why(-ret, &none),
				 "cannot subscribe to events");
	return mnl_socket_get_fd(nl->events);
}

/* Fetch the next datagram. 1, 0 when there is none, or a negative errno. */
static int receive(struct rmpool_nl *nl)
{
	int saved = errno;
	ssize_t n;
	int err;

	do {
		n = mnl_socket_recvfrom(nl->events, nl->event_datagram,
					DATAGRAM_MAX);
	} while (n < 0 && errno == EINTR);
	err = n < 0 ? errno : 0;
	errno = saved;
	if (err == EAGAIN || err == EWOULDBLOCK)
		return 0;
	if (err)
		return -err;
	nl->event_next = (const void *)nl->event_datagram;
	nl->event_left = (int)n;
	return 1;
}

int rmpool_nl_event(struct rmpool_nl *nl, const struct rmpool_nl_event **event)
{
	const struct nlmsghdr *nlh;
	int ret;

	if (!nl->events)
		return rmpl_fail(EINVAL, NULL,
				 "subscribe with rmpool_nl_subscribe() first",
				 "cannot take an event");
	for (;;) {
		while (nl->event_left > 0 &&
		       mnl_nlmsg_ok(nl->event_next, nl->event_left)) {
			nlh = nl->event_next;
			nl->event_next = mnl_nlmsg_next(nlh, &nl->event_left);
			if (nlh->nlmsg_type != nl->family)
				continue;
			ret = rmpl_nl_parse_event(nlh, &nl->event);
			if (ret == -ENOMSG)
				continue;
			if (ret)
				return fail_parse(ret);
			*event = &nl->event.event;
			return 1;
		}
		nl->event_left = 0;
		ret = receive(nl);
		if (!ret)
			return 0;
		if (ret == -ENOBUFS)
			return rmpl_fail(ENOBUFS, NULL,
					 "some were lost because they were not taken in time; list what matters again",
					 "events");
		if (ret < 0)
			return rmpl_fail(-ret, NULL, NULL,
					 "cannot take an event");
	}
}
