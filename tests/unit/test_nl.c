// SPDX-License-Identifier: MIT
/*
 * The calls of the netlink part, over sockets of the test's own: this program
 * has libmnl's socket functions itself. What is sent is handed to kernel(),
 * which queues the datagrams that come back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "netlink.h"
#include "datagram.h"

struct mnl_socket {
	bool events;
};

/* What the next reads of a socket give: a datagram or an errno. */
struct queue {
	struct {
		struct datagram d;
		int err;
	} item[32];
	unsigned int head, tail;
};

static struct queue replies, events;
static unsigned int sockets, memberships, sent;
static int open_errno, join_errno;

static void (*kernel)(const struct nlmsghdr *request);

static struct datagram *next(struct queue *q)
{
	struct datagram *d = &q->item[q->tail % 32].d;

	assert_true(q->tail - q->head < 32);
	q->item[q->tail % 32].err = 0;
	q->tail++;
	d->length = 0;
	return d;
}

static void queue_errno(struct queue *q, int err)
{
	next(q);
	q->item[(q->tail - 1) % 32].err = err;
}

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	struct mnl_socket *socket;

	assert_int_equal(bus, NETLINK_GENERIC);
	assert_true(flags & SOCK_CLOEXEC);
	if (open_errno) {
		errno = open_errno;
		return NULL;
	}
	socket = calloc(1, sizeof(*socket));
	assert_non_null(socket);
	socket->events = flags & SOCK_NONBLOCK;
	sockets++;
	return socket;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl;
	assert_int_equal(groups, 0);
	assert_int_equal(pid, MNL_SOCKET_AUTOPID);
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf,
			  socklen_t len)
{
	if (type != NETLINK_ADD_MEMBERSHIP)
		return 0;
	assert_true(nl->events);
	assert_int_equal(len, sizeof(int));
	assert_int_equal(*(int *)buf, 6);
	if (join_errno) {
		errno = join_errno;
		return -1;
	}
	memberships++;
	return 0;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return PORT;
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	return nl->events ? 55 : 44;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	sockets--;
	free(nl);
	return 0;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *request,
			  size_t size)
{
	const struct nlmsghdr *nlh = request;

	assert_false(nl->events);
	assert_int_equal(nlh->nlmsg_len, size);
	sent++;
	kernel(nlh);
	return (ssize_t)size;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf,
			    size_t size)
{
	struct queue *q = nl->events ? &events : &replies;
	unsigned int at = q->head % 32;

	if (q->head == q->tail) {
		/* The real one would wait for ever. */
		assert_true(nl->events);
		errno = EAGAIN;
		return -1;
	}
	q->head++;
	if (q->item[at].err) {
		errno = q->item[at].err;
		return -1;
	}
	assert_true(size >= q->item[at].d.length);
	memcpy(buf, q->item[at].d.data, q->item[at].d.length);
	return (ssize_t)q->item[at].d.length;
}

static uint8_t command_of(const struct nlmsghdr *request)
{
	return ((const struct genlmsghdr *)(const void *)(request + 1))->cmd;
}

/* Queue the end of a reply: an errno, and the kernel's text about it. */
static void answer_error(const struct nlmsghdr *request, int err,
			 const char *text)
{
	struct nlmsgerr e = { .error = -err, .msg = *request };
	struct datagram *d = next(&replies);

	begin(d, NLMSG_ERROR, (uint16_t)(NLM_F_CAPPED |
					 (text ? NLM_F_ACK_TLVS : 0)));
	message(d)->nlmsg_seq = request->nlmsg_seq;
	add(d, &e, sizeof(e));
	if (text)
		add_text(d, NLMSGERR_ATTR_MSG, text);
}

static struct datagram *answer_genl(const struct nlmsghdr *request)
{
	struct datagram *d = next(&replies);

	begin_genl(d, command_of(request));
	message(d)->nlmsg_seq = request->nlmsg_seq;
	return d;
}

static void answer_done(const struct nlmsghdr *request)
{
	struct datagram *d = next(&replies);
	int zero = 0;

	begin(d, NLMSG_DONE, NLM_F_MULTI);
	message(d)->nlmsg_seq = request->nlmsg_seq;
	add(d, &zero, sizeof(zero));
}

static void family_kernel(const struct nlmsghdr *request)
{
	struct datagram *d;
	uint16_t id = FAMILY;
	size_t groups, entry;

	assert_int_equal(request->nlmsg_type, GENL_ID_CTRL);
	assert_int_equal(command_of(request), CTRL_CMD_GETFAMILY);
	d = answer_genl(request);
	add_attr(d, CTRL_ATTR_FAMILY_ID, &id, sizeof(id));
	groups = begin_nest(d, CTRL_ATTR_MCAST_GROUPS);
	entry = begin_nest(d, 1);
	add_u32(d, CTRL_ATTR_MCAST_GRP_ID, 6);
	add_text(d, CTRL_ATTR_MCAST_GRP_NAME, RMPOOL_GENL_EVENTS);
	end_nest(d, entry);
	end_nest(d, groups);
	answer_error(request, 0, NULL);
}

static struct rmpool_nl *open_nl(void)
{
	struct rmpool_nl *nl;

	kernel = family_kernel;
	assert_int_equal(rmpool_nl_open(&nl), 0);
	assert_non_null(nl);
	return nl;
}

static int nothing_left(void **state)
{
	(void)state;
	assert_int_equal(sockets, 0);
	assert_int_equal(replies.head, replies.tail);
	open_errno = 0;
	join_errno = 0;
	return 0;
}

static void says(const char *part)
{
	if (!strstr(rmpool_error(), part))
		fail_msg("'%s' is not in '%s'", part, rmpool_error());
}

static void no_family_kernel(const struct nlmsghdr *request)
{
	answer_error(request, ENOENT, NULL);
}

static void empty_kernel(const struct nlmsghdr *request)
{
	answer_error(request, 0, NULL);
}

static void opens(void **state)
{
	struct rmpool_nl *nl;

	(void)state;
	nl = open_nl();
	assert_int_equal(sockets, 1);
	rmpool_nl_close(nl);
	rmpool_nl_close(NULL);

	kernel = no_family_kernel;
	assert_int_equal(rmpool_nl_open(&nl), -ENOENT);
	assert_null(nl);
	says("modprobe rmpool");
	says("initial network namespace");
	kernel = empty_kernel;
	assert_int_equal(rmpool_nl_open(&nl), -EBADMSG);
	open_errno = EPROTONOSUPPORT;
	assert_int_equal(rmpool_nl_open(&nl), -EPROTONOSUPPORT);
	says("cannot open a netlink socket");
}

static void node_kernel(const struct nlmsghdr *request)
{
	struct datagram *d;

	assert_int_equal(request->nlmsg_type, FAMILY);
	assert_int_equal(command_of(request), RMPOOL_CMD_NODE_GET);
	/* A signal, and the rest of an older reply, come in between. */
	queue_errno(&replies, EINTR);
	d = next(&replies);
	begin_genl(d, RMPOOL_CMD_NODE_GET);
	message(d)->nlmsg_seq = request->nlmsg_seq - 1;
	add_text(d, RMPOOL_A_NODE_NAME, "stale");
	d = answer_genl(request);
	add_text(d, RMPOOL_A_NODE_NAME, "alpha");
	answer_error(request, 0, NULL);
}

static void gets_the_node(void **state)
{
	const struct rmpool_nl_node *node;
	struct rmpool_nl *nl = open_nl();

	(void)state;
	kernel = node_kernel;
	for (int i = 0; i < 2; i++) {
		errno = 77;
		assert_int_equal(rmpool_nl_node_get(nl, &node), 0);
		assert_int_equal(errno, 77);
		assert_string_equal(node->name, "alpha");
	}
	kernel = empty_kernel;
	assert_int_equal(rmpool_nl_node_get(nl, &node), -EBADMSG);
	rmpool_nl_close(nl);
}

static const char *kernel_text;
static int kernel_err;
static uint8_t kernel_command;

static void change_kernel(const struct nlmsghdr *request)
{
	assert_int_equal(request->nlmsg_type, FAMILY);
	/* Lists end by themselves; everything else must ask for an end. */
	assert_true(request->nlmsg_flags & (NLM_F_ACK | NLM_F_DUMP));
	kernel_command = command_of(request);
	answer_error(request, kernel_err, kernel_text);
}

static void changes(void **state)
{
	struct rmpool_nl_settings settings = { .name = "alpha" };
	struct rmpool_nl *nl = open_nl();
	char text[2000];

	(void)state;
	kernel = change_kernel;
	kernel_err = 0;
	kernel_text = NULL;
	assert_int_equal(rmpool_nl_node_set(nl, &settings), 0);
	assert_int_equal(kernel_command, RMPOOL_CMD_NODE_SET);
	assert_int_equal(rmpool_nl_peer_add(nl, "beta", "10.0.0.2:5", 0), 0);
	assert_int_equal(kernel_command, RMPOOL_CMD_PEER_ADD);
	assert_int_equal(rmpool_nl_peer_del(nl, "beta"), 0);
	assert_int_equal(kernel_command, RMPOOL_CMD_PEER_DEL);

	kernel_err = EEXIST;
	kernel_text = "the endpoint is that of peer 'gamma'";
	assert_int_equal(rmpool_nl_peer_add(nl, "beta", "10.0.0.2:5", 0),
			 -EEXIST);
	assert_string_equal(rmpool_error(),
			    "cannot add peer 'beta': the endpoint is that of peer 'gamma'");
	kernel_text = NULL;
	kernel_err = EPERM;
	assert_int_equal(rmpool_nl_peer_del(nl, "beta"), -EPERM);
	assert_string_equal(rmpool_error(),
			    "cannot remove peer 'beta': it needs CAP_NET_ADMIN");
	assert_int_equal(rmpool_nl_node_set(nl, &settings), -EPERM);
	assert_string_equal(rmpool_error(),
			    "cannot change the node: it needs CAP_NET_ADMIN");

	/* what is not sent at all */
	sent = 0;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rmpool_nl_peer_add(nl, text, "e", 0), -EMSGSIZE);
	says("too long");
	settings.accept = 3;
	assert_int_equal(rmpool_nl_node_set(nl, &settings), -EINVAL);
	settings.accept = 0;
	settings.reserved[3] = 1;
	assert_int_equal(rmpool_nl_node_set(nl, &settings), -EINVAL);
	assert_int_equal(sent, 0);
	rmpool_nl_close(nl);
}

static unsigned int interruptions;

static void dump_kernel(const struct nlmsghdr *request)
{
	static const char *const names[] = { "one", "two", "three" };
	struct datagram *d;

	assert_true((request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP);
	for (uint32_t i = 0; i < 3; i++) {
		d = answer_genl(request);
		if (i == 1 && interruptions) {
			message(d)->nlmsg_flags |= NLM_F_DUMP_INTR;
			interruptions--;
		}
		add_text(d, RMPOOL_A_DEVICE_NAME, names[i]);
		add_text(d, RMPOOL_A_PEER_NAME, names[i]);
		add_text(d, RMPOOL_A_SEGMENT_NAME, names[i]);
		add_u64(d, RMPOOL_A_REGION_ID, i);
	}
	answer_done(request);
}

struct seen {
	struct rmpool_nl *nl;
	char names[64];
	int stop;
};

static int see(struct seen *seen, const char *name)
{
	size_t used = strlen(seen->names);

	snprintf(seen->names + used, sizeof(seen->names) - used, "%s ", name);
	return seen->stop && !strcmp(name, "two") ? seen->stop : 0;
}

static int see_device(const struct rmpool_nl_device *device, void *arg)
{
	return see(arg, device->name);
}

static int see_peer(const struct rmpool_nl_peer *peer, void *arg)
{
	return see(arg, peer->name);
}

static int see_segment(const struct rmpool_nl_segment *segment, void *arg)
{
	return see(arg, segment->name);
}

static int see_region(const struct rmpool_nl_region *region, void *arg)
{
	return see(arg, region->id == 0 ? "one" :
			region->id == 1 ? "two" : "three");
}

static int see_device_again(const struct rmpool_nl_device *device, void *arg)
{
	struct seen inner = { .nl = NULL };
	struct seen *outer = arg;

	assert_int_equal(rmpool_nl_segments(outer->nl, see_segment, &inner), 0);
	assert_string_equal(inner.names, "one two three ");
	return see(outer, device->name);
}

static void lists(void **state)
{
	struct rmpool_nl *nl = open_nl();
	struct seen seen;

	(void)state;
	kernel = dump_kernel;
	for (int way = 0; way < 4; way++) {
		/* to its end; and stopped by the callback */
		for (int stop = 0; stop <= 5; stop += 5) {
			int ret;

			memset(&seen, 0, sizeof(seen));
			seen.stop = stop;
			ret = way == 0 ? rmpool_nl_devices(nl, see_device, &seen) :
			      way == 1 ? rmpool_nl_peers(nl, see_peer, &seen) :
			      way == 2 ? rmpool_nl_segments(nl, see_segment, &seen) :
					 rmpool_nl_regions(nl, see_region, &seen);
			assert_int_equal(ret, stop);
			assert_string_equal(seen.names, stop ? "one two " :
							"one two three ");
		}
	}

	/* a callback may use the handle */
	memset(&seen, 0, sizeof(seen));
	seen.nl = nl;
	assert_int_equal(rmpool_nl_devices(nl, see_device_again, &seen), 0);
	assert_string_equal(seen.names, "one two three ");

	/* a list that changed is asked for again, and shown once */
	memset(&seen, 0, sizeof(seen));
	interruptions = 3;
	sent = 0;
	assert_int_equal(rmpool_nl_peers(nl, see_peer, &seen), 0);
	assert_string_equal(seen.names, "one two three ");
	assert_int_equal(sent, 4);
	/* but not for ever, and then nothing is shown */
	memset(&seen, 0, sizeof(seen));
	interruptions = 1000;
	assert_int_equal(rmpool_nl_peers(nl, see_peer, &seen), -EAGAIN);
	says("cannot list the peers: the list keeps changing");
	assert_string_equal(seen.names, "");
	interruptions = 0;

	kernel = change_kernel;
	kernel_err = EPERM;
	kernel_text = "only for those who administer";
	assert_int_equal(rmpool_nl_regions(nl, see_region, &seen), -EPERM);
	assert_string_equal(rmpool_error(),
			    "cannot list the regions: only for those who administer");
	rmpool_nl_close(nl);
}

static void takes_events(void **state)
{
	const struct rmpool_nl_event *event;
	struct rmpool_nl *nl = open_nl();
	struct datagram *d;

	(void)state;
	assert_int_equal(rmpool_nl_event(nl, &event), -EINVAL);
	join_errno = EPERM;
	assert_int_equal(rmpool_nl_subscribe(nl), -EPERM);
	assert_string_equal(rmpool_error(),
			    "cannot subscribe to events: it needs CAP_NET_ADMIN");
	assert_int_equal(sockets, 1);
	join_errno = 0;
	assert_int_equal(rmpool_nl_subscribe(nl), 55);
	assert_int_equal(rmpool_nl_subscribe(nl), 55);
	assert_int_equal(memberships, 1);
	assert_int_equal(rmpool_nl_event(nl, &event), 0);

	/* Two in one datagram, with one between them that nobody knows and one
	 * of another family; then losses; then one more.
	 */
	d = next(&events);
	begin_genl(d, RMPOOL_CMD_PEER_NTF);
	add_u32(d, RMPOOL_A_EVENT, RMPOOL_EVENT_NEW);
	add_text(d, RMPOOL_A_PEER_NAME, "beta");
	begin_genl(d, RMPOOL_CMD_MAX + 1);
	begin_genl(d, RMPOOL_CMD_PEER_NTF);
	message(d)->nlmsg_type = FAMILY + 1;
	begin_genl(d, RMPOOL_CMD_SEGMENT_NTF);
	add_u32(d, RMPOOL_A_EVENT, RMPOOL_EVENT_GONE);
	add_text(d, RMPOOL_A_SEGMENT_NAME, "data");
	queue_errno(&events, EINTR);
	queue_errno(&events, ENOBUFS);
	d = next(&events);
	begin_genl(d, RMPOOL_CMD_NODE_NTF);
	add_u32(d, RMPOOL_A_EVENT, RMPOOL_EVENT_CHANGED);
	d = next(&events);
	begin_genl(d, RMPOOL_CMD_NODE_NTF);
	add_attr(d, RMPOOL_A_EVENT, "x", 1);

	assert_int_equal(rmpool_nl_event(nl, &event), 1);
	assert_int_equal(event->kind, RMPOOL_NL_PEER);
	assert_int_equal(event->change, RMPOOL_EVENT_NEW);
	assert_string_equal(event->peer->name, "beta");
	assert_int_equal(rmpool_nl_event(nl, &event), 1);
	assert_int_equal(event->kind, RMPOOL_NL_SEGMENT);
	assert_int_equal(event->change, RMPOOL_EVENT_GONE);
	assert_string_equal(event->segment->name, "data");
	assert_int_equal(rmpool_nl_event(nl, &event), -ENOBUFS);
	says("lost");
	assert_int_equal(rmpool_nl_event(nl, &event), 1);
	assert_int_equal(event->kind, RMPOOL_NL_NODE);
	assert_int_equal(rmpool_nl_event(nl, &event), -EBADMSG);
	assert_int_equal(rmpool_nl_event(nl, &event), 0);

	/* Requests go on beside it. */
	kernel = node_kernel;
	{
		const struct rmpool_nl_node *node;

		assert_int_equal(rmpool_nl_node_get(nl, &node), 0);
	}
	rmpool_nl_close(nl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(opens, nothing_left),
		cmocka_unit_test_teardown(gets_the_node, nothing_left),
		cmocka_unit_test_teardown(changes, nothing_left),
		cmocka_unit_test_teardown(lists, nothing_left),
		cmocka_unit_test_teardown(takes_events, nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
