// SPDX-License-Identifier: MIT
/*
 * nl_fuzz: random messages to the netlink family, almost right, from several
 * threads: real names and addresses between garbage, attributes that are not
 * taken, nested, cut off or of a wrong length, any flags, headers that lie, dumps
 * that are left in the middle, sockets closed at any moment.
 *
 *	nl_fuzz SEED CALLS admin|plain PEER ENDPOINT LISTEN...
 *
 * PEER with ENDPOINT is a peer that is there and in use, and LISTEN are addresses
 * that this node may listen at. With "plain" the program must be run without
 * CAP_NET_ADMIN, and nothing that changes something may succeed. CALLS is the
 * sum over all threads; the same seed makes the same messages in each thread.
 *
 * The kernel answers before send() returns, and goes on with a dump in recv():
 * when there is nothing more to read, all answers were there.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rmpool_netlink.h>

#include "clock.h"
#include "fuzz.h"
#include "numbers.h"

#define THREADS		4
#define ROOM		65536

enum { DUMP = 1, CHANGES = 2 };

static const struct {
	const char *name;
	uint8_t cmd;
	unsigned int kind;
} commands[] = {
	{ "NODE_GET", RMPOOL_CMD_NODE_GET, 0 },
	{ "NODE_SET", RMPOOL_CMD_NODE_SET, CHANGES },
	{ "DEVICE_GET", RMPOOL_CMD_DEVICE_GET, DUMP },
	{ "PEER_GET", RMPOOL_CMD_PEER_GET, DUMP },
	{ "PEER_ADD", RMPOOL_CMD_PEER_ADD, CHANGES },
	{ "PEER_DEL", RMPOOL_CMD_PEER_DEL, CHANGES },
	{ "SEGMENT_GET", RMPOOL_CMD_SEGMENT_GET, DUMP },
	{ "REGION_GET", RMPOOL_CMD_REGION_GET, DUMP },
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static struct tally tallies[COMMANDS];
static struct tally others = { .name = "other" };
static uint64_t seed;
static unsigned long nr_calls;
static const char *peer, *endpoint;
static char **listens;
static uint32_t nr_listens;
static uint16_t family;
static atomic_int running;
static atomic_ulong events;

/* A message as it grows. */
struct message {
	uint8_t data[4096];
	uint32_t length;
};

static struct nlmsghdr *header(struct message *m)
{
	return (void *)m->data;
}

static int netlink_socket(void)
{
	int room = 4 << 20, on = 1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		give_up("no netlink socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	return fd;
}

static void begin(struct message *m, uint16_t type, uint16_t flags, uint8_t cmd)
{
	struct genlmsghdr *g = (void *)(m->data + NLMSG_HDRLEN);

	memset(m, 0, sizeof(*m));
	header(m)->nlmsg_type = type;
	header(m)->nlmsg_flags = flags;
	g->cmd = cmd;
	g->version = RMPOOL_GENL_VERSION;
	m->length = NLMSG_HDRLEN + GENL_HDRLEN;
}

/* Of an attribute; those of the kernel's headers are signed. */
#define ATTR		4U
#define PADDED(n)	(((n) + 3U) & ~3U)

/* Fits always: what is put into a message is small. */
static void put(struct message *m, uint16_t type, const void *data, uint32_t length)
{
	struct nlattr *a = (void *)(m->data + m->length);

	if (m->length + ATTR + PADDED(length) > sizeof(m->data))
		return;
	a->nla_type = type;
	a->nla_len = (uint16_t)(ATTR + length);
	if (length)
		memcpy(m->data + m->length + ATTR, data, length);
	m->length += ATTR + PADDED(length);
}

static void put_text(struct message *m, uint16_t type, const char *text)
{
	put(m, type, text, (uint32_t)strlen(text) + 1);
}

/* ------------------------------------------------------------- attributes */

static void put_name(struct random *r, struct message *m, uint16_t type)
{
	char text[96];

	if (type == RMPOOL_A_PEER_NAME && chance(r, 8)) {
		put_text(m, type, peer);
		return;
	}
	if (chance(r, 80)) {
		snprintf(text, sizeof(text), "fuzz%u", below(r, 8));
	} else {
		uint32_t n = below(r, sizeof(text));

		for (uint32_t i = 0; i < n; i++)
			text[i] = "abcXYZ019._:@-/ %\n\xff"[below(r, 20)];
		text[n] = 0;
	}
	put_text(m, type, text);
}

static void put_endpoint(struct random *r, struct message *m, uint16_t type)
{
	static const char *const odd[] = {
		"", "v1:", "v2:10.77.0.9:13579", "v1:127.0.0.1:13579", "v1:[::1]:13579",
		"v1:[::]:13579", "v1:0.0.0.0:13579", "v1:224.0.0.1:1", "v1:10.77.0.9:0",
		"v1:10.77.0.9:65536", "v1:[fe80::1%99]:13579", "v1:[::ffff:10.0.0.1]:1",
		"10.77.0.9:13579", "v1:[fd77:0:0:0::9", "v1:host:1", "v1:10.77.0.9:13579 ",
	};
	char text[96];

	if (type == RMPOOL_A_PEER_ENDPOINT && chance(r, 15))
		snprintf(text, sizeof(text), "%s", endpoint);
	else if (type == RMPOOL_A_NODE_LISTEN && chance(r, 60))
		snprintf(text, sizeof(text), "%s", listens[below(r, nr_listens)]);
	else if (chance(r, 70))
		snprintf(text, sizeof(text), "v1:10.77.9.%u:%u", 1 + below(r, 9),
			 13579 + below(r, 2));
	else
		snprintf(text, sizeof(text), "%s", odd[below(r, sizeof(odd) / sizeof(odd[0]))]);
	if (chance(r, 3)) {
		noise(r, text, sizeof(text));
		put(m, type, text, below(r, sizeof(text)));
		return;
	}
	put_text(m, type, text);
}

static void put_right(struct random *r, struct message *m, uint8_t cmd)
{
	uint8_t byte = (uint8_t)below(r, chance(r, 90) ? 2 : 256);

	switch (cmd) {
	case RMPOOL_CMD_NODE_SET:
		if (chance(r, 40))
			put_name(r, m, RMPOOL_A_NODE_NAME);
		if (chance(r, 20))
			put_endpoint(r, m, RMPOOL_A_NODE_LISTEN);
		if (chance(r, 20))
			put_endpoint(r, m, RMPOOL_A_NODE_ADVERTISE);
		if (chance(r, 40))
			put(m, RMPOOL_A_NODE_ACCEPT_ANY, &byte, 1);
		break;
	case RMPOOL_CMD_PEER_ADD:
		if (chance(r, 95))
			put_name(r, m, RMPOOL_A_PEER_NAME);
		if (chance(r, 95))
			put_endpoint(r, m, RMPOOL_A_PEER_ENDPOINT);
		break;
	case RMPOOL_CMD_PEER_DEL:
		if (chance(r, 95))
			put_name(r, m, RMPOOL_A_PEER_NAME);
		break;
	default:
		return;
	}
	if (cmd != RMPOOL_CMD_PEER_DEL && chance(r, 10))
		put(m, RMPOOL_A_ALLOW_LOOPBACK, NULL, 0);
}

static void put_garbage(struct random *r, struct message *m)
{
	uint16_t type = (uint16_t)below(r, RMPOOL_A_MAX + 4);
	uint8_t data[256];
	uint32_t start;

	noise(r, data, sizeof(data));
	switch (below(r, 4)) {
	case 0:		/* nested, as deep as it comes */
		start = m->length;
		put(m, type | NLA_F_NESTED, NULL, 0);
		for (uint32_t n = below(r, 4); n; n--)
			put(m, (uint16_t)(below(r, RMPOOL_A_MAX) | NLA_F_NESTED), data,
			    below(r, 16));
		((struct nlattr *)(void *)(m->data + start))->nla_len =
			(uint16_t)(m->length - start);
		break;
	case 1:
		put(m, (uint16_t)any(r), data, below(r, 64));
		break;
	case 2:		/* the length is a lie */
		start = m->length;
		put(m, type, data, below(r, sizeof(data)));
		((struct nlattr *)(void *)(m->data + start))->nla_len = (uint16_t)number(r);
		break;
	default:
		put(m, type, data, below(r, sizeof(data)));
	}
}

/* -------------------------------------------------------------- messages */

static const uint16_t odd_flags[] = {
	0, NLM_F_ROOT, NLM_F_MATCH, NLM_F_DUMP, NLM_F_ATOMIC, NLM_F_ECHO, NLM_F_MULTI,
	NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE, NLM_F_APPEND, 0xffff & ~NLM_F_DUMP, 0xffff,
};

/* Index into commands, or COMMANDS when it is none. */
static uint32_t command_of(const struct message *m)
{
	uint32_t which = 0;

	while (which < COMMANDS && commands[which].cmd != m->data[NLMSG_HDRLEN])
		which++;
	return which;
}

/* Returns which command it has come to be. */
static uint32_t make_message(struct random *r, struct message *m)
{
	uint32_t which = below(r, COMMANDS);
	uint8_t cmd = commands[which].cmd;
	uint16_t flags = NLM_F_REQUEST | NLM_F_ACK;

	if (commands[which].kind & DUMP)
		flags |= NLM_F_DUMP;
	if (chance(r, 8))
		flags ^= odd_flags[below(r, sizeof(odd_flags) / sizeof(odd_flags[0]))];
	if (chance(r, 3)) {
		begin(m, family, flags, (uint8_t)any(r));
	} else {
		begin(m, family, flags, cmd);
		put_right(r, m, cmd);
	}
	while (chance(r, 12))
		put_garbage(r, m);
	if (chance(r, 4))
		m->data[NLMSG_HDRLEN + below(r, GENL_HDRLEN)] ^= (uint8_t)(1U << below(r, 8));
	header(m)->nlmsg_len = m->length;
	if (chance(r, 3))
		header(m)->nlmsg_len = (uint32_t)number(r);
	if (chance(r, 3))	/* cut off, and told so or not */
		m->length = below(r, m->length + 1);
	else if (chance(r, 3))	/* something behind the end */
		m->length = m->length + below(r, 64) <= sizeof(m->data) ?
			    m->length + below(r, 4) : m->length;
	if (chance(r, 3) && m->length > NLMSG_HDRLEN)
		header(m)->nlmsg_len = m->length;
	return command_of(m);
}

/* Takes what is there of the answers to @seq; whether any was. */
static bool take_answers(int fd, uint32_t seq, int *error, bool all)
{
	static __thread uint8_t buffer[ROOM];
	bool answered = false;

	for (;;) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (got < 0 && errno == ENOBUFS)
			continue;
		if (got < 0)
			return answered;
		for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, (uint32_t)got);
		     h = NLMSG_NEXT(h, got)) {
			if (!h->nlmsg_seq && h->nlmsg_type == family)
				atomic_fetch_add(&events, 1);
			if (h->nlmsg_seq != seq)
				continue;
			if (!answered)
				*error = 0;
			answered = true;
			if (h->nlmsg_type == NLMSG_ERROR ||
			    (h->nlmsg_type == NLMSG_DONE && NLMSG_PAYLOAD(h, 0) >= 4))
				memcpy(error, NLMSG_DATA(h), sizeof(*error));
			if (*error < 0)
				*error = -*error;
		}
		if (!all)
			return answered;
	}
}

static int send_message(int fd, struct message *m, uint32_t seq)
{
	header(m)->nlmsg_seq = seq;
	return send(fd, m->data, m->length, 0) < 0 ? errno : 0;
}

static void *play(void *arg)
{
	struct random r = random_of(seed, (uintptr_t)arg);
	int fd = netlink_socket();
	struct message m;
	uint32_t seq = 1;
	int error;

	for (unsigned long i = 0; i < nr_calls; i++) {
		uint32_t which = make_message(&r, &m);

		if (chance(&r, 2)) {	/* a dump may still be going on in it */
			close(fd);
			fd = netlink_socket();
		}
		error = send_message(fd, &m, ++seq);
		/* Left in the middle: after one part, or none. */
		if (!error && chance(&r, 5)) {
			if (chance(&r, 50))
				take_answers(fd, seq, &error, false);
			continue;
		}
		if (!error && !take_answers(fd, seq, &error, true))
			continue;	/* not what the kernel answers to */
		tally_add(which < COMMANDS ? &tallies[which] : &others, error);
	}
	close(fd);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* ------------------------------------------------------- the family itself */

/* The number of the family, and of its group of events. */
static void find_family(int fd, uint32_t *group)
{
	static uint8_t buffer[ROOM];
	struct nlmsghdr *h = (void *)buffer;
	struct message m = { .length = 0 };
	bool groups = false;
	uint32_t step;
	ssize_t got;

	begin(&m, GENL_ID_CTRL, NLM_F_REQUEST, CTRL_CMD_GETFAMILY);
	put_text(&m, CTRL_ATTR_FAMILY_NAME, RMPOOL_GENL_NAME);
	header(&m)->nlmsg_len = m.length;
	if (send_message(fd, &m, 1))
		give_up("send: %s", strerror(errno));
	got = recv(fd, buffer, sizeof(buffer), 0);
	if (got < (ssize_t)(NLMSG_HDRLEN + GENL_HDRLEN) || h->nlmsg_type == NLMSG_ERROR)
		give_up("there is no family " RMPOOL_GENL_NAME);
	for (size_t at = NLMSG_HDRLEN + GENL_HDRLEN; at + ATTR <= (size_t)got; at += step) {
		struct nlattr *a = (void *)(buffer + at);

		step = PADDED(a->nla_len);
		if (step < ATTR)
			break;
		if (!groups && a->nla_type == CTRL_ATTR_FAMILY_ID)
			memcpy(&family, buffer + at + ATTR, sizeof(family));
		/* The last one: a list of groups, which has one entry. */
		if ((a->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_MCAST_GROUPS) {
			groups = true;
			step = 2 * ATTR;
		} else if (groups && a->nla_type == CTRL_ATTR_MCAST_GRP_ID) {
			memcpy(group, buffer + at + ATTR, sizeof(*group));
		}
	}
	if (!family)
		give_up("the family has no number");
}

static void judge_plain(void)
{
	struct test t = { .name = "who may change nothing gets EPERM" };

	for (size_t i = 0; i < COMMANDS; i++) {
		if (commands[i].kind & CHANGES) {
			expect(&t, !tallies[i].good, "%s succeeded", commands[i].name);
			expect(&t, tallies[i].refused[EPERM], "%s never gave EPERM",
			       commands[i].name);
		} else {
			expect(&t, tallies[i].good, "%s never succeeded", commands[i].name);
		}
	}
	test_end(&t);
}

int main(int argc, char **argv)
{
	struct test end = { .name = "random messages end" };
	struct test told = { .name = "changes are told" };
	uint32_t group = 0;
	bool plain;
	pthread_t threads[THREADS];
	int monitor, error;

	if (argc < 7)
		give_up("nl_fuzz SEED CALLS admin|plain PEER ENDPOINT LISTEN...");
	seed = argument(argv[1], 0, UINT64_MAX);
	nr_calls = (unsigned long)argument(argv[2], THREADS, UINT32_MAX) / THREADS;
	plain = !strcmp(argv[3], "plain");
	peer = argv[4];
	endpoint = argv[5];
	listens = argv + 6;
	nr_listens = (uint32_t)argc - 6;
	printf("seed %llu, %d threads, %lu messages each\n", (unsigned long long)seed, THREADS,
	       nr_calls);
	for (size_t i = 0; i < COMMANDS; i++)
		tallies[i].name = commands[i].name;

	monitor = netlink_socket();
	find_family(monitor, &group);
	error = setsockopt(monitor, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	if (!group || (!plain && error))
		give_up("group %u: %s", group, strerror(errno));
	expect(&end, !plain || (error && errno == EPERM), "joining the group: %s",
	       error ? strerror(errno) : "succeeded");
	atomic_store(&running, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, play, (void *)i))
			give_up("no thread");
	while (atomic_load(&running)) {
		pause_ms(50);
		take_answers(monitor, UINT32_MAX, &error, true);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close(monitor);
	tally_print(tallies, COMMANDS);
	tally_print(&others, 1);
	printf("%lu events\n", (unsigned long)events);
	expect(&end, !others.good, "%lu numbers of no command were taken",
	       (unsigned long)others.good);
	test_end(&end);
	if (plain) {
		judge_plain();
	} else {
		tally_judge(tallies, COMMANDS);
		expect(&told, events, "no event came");
		test_end(&told);
	}
	return report_failed != 0;
}
