// SPDX-License-Identifier: MIT
// LIBS: -lrdmacm -libverbs
/*
 * A stranger that speaks to rmpool from user space, through librdmacm: what the
 * module must refuse, and what it must take. Written after docs/wire.md and
 * without the module's code, so that each checks the other.
 *
 *	cm_client connect HOST PORT KIND
 *		one connect request; prints "accepted", "rejected NUMBER" with
 *		the number of docs/wire.md, or "failed WHY"
 *	cm_client tokens HOST PORT
 *		acts as the initiator of a control connection, gets tokens, and
 *		connects data queue pairs with them, rightly and wrongly
 *	cm_client storm HOST PORT SEED ROUNDS
 *		sends control messages that make no sense
 *
 * The last two print lines "ok NAME" and "not ok NAME: WHY".
 */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "clock.h"
#include "numbers.h"

enum {
	MAGIC = 0x4c504d52,
	MESSAGE = 4096,
	BUFFERS = 32,
	REQUEST = 48,
	KIND_CONTROL = 1,
	KIND_DATA = 2,
	REJECT_RETRY = 6,
	REJECT_TOKEN = 7,
	REJECT_IN_USE = 10,
	HELLO = 1,
	DEVICES = 2,
	RAIL_REQUEST = 3,
	RAIL_TOKENS = 4,
	PROBE = 13,
	PROBE_ACK = 14,
};

struct link {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t *in;		/* BUFFERS of MESSAGE each */
	uint8_t *out;
	unsigned int give;	/* credits owed */
	bool up;		/* was connected */
	int rejected;		/* number, 0: was not, -1: not by rmpool */
	char why[64];
};

static const char *host, *port;
static uint8_t uuid[16];

static void check(bool good, const char *name, const char *why)
{
	if (good)
		printf("ok %s\n", name);
	else
		printf("not ok %s: %s\n", name, why);
	fflush(stdout);
}

static void put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static void random_bytes(uint8_t *at, size_t n)
{
	while (n--)
		*at++ = (uint8_t)(random() >> 8);
}

/* A good request of that kind. */
static void fill_request(uint8_t req[REQUEST], uint8_t kind)
{
	memset(req, 0, REQUEST);
	req[2] = kind;
	req[3] = 1;
	put32(req + 4, MAGIC);
	put32(req + 8, 1);
	req[12] = 3;
	memcpy(req + 16, uuid, sizeof(uuid));
}

static void hang_up(struct link *l)
{
	if (l->id) {
		/* Else no event would come, and it waits for one. */
		if (l->up)
			rdma_disconnect(l->id);
		if (l->mr)
			rdma_dereg_mr(l->mr);
		rdma_destroy_ep(l->id);
	}
	free(l->in);
	memset(l, 0, sizeof(*l));
}

static void note_reject(struct link *l)
{
	const struct rdma_cm_event *event = l->id->event;
	const uint8_t *data;

	snprintf(l->why, sizeof(l->why), "%s", strerror(errno));
	if (!event || event->event != RDMA_CM_EVENT_REJECTED)
		return;
	data = event->param.conn.private_data;
	l->rejected = -1;
	snprintf(l->why, sizeof(l->why), "rejected, status %d", event->status);
	if (data && event->param.conn.private_data_len >= 32 && !data[0] &&
	    !data[1] && data[3] == 1 && get32(data + 4) == MAGIC && data[2])
		l->rejected = data[2];
}

/* Connects with @len bytes of private data; control: with buffers for messages. */
static bool dial(struct link *l, const uint8_t *data, size_t len)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 64, .max_recv_wr = BUFFERS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 5,
		.rnr_retry_count = 7,
	};

	memset(l, 0, sizeof(*l));
	if (rdma_getaddrinfo(host, port, &hints, &ai)) {
		snprintf(l->why, sizeof(l->why), "no address: %s",
			 strerror(errno));
		return false;
	}
	if (rdma_create_ep(&l->id, ai, NULL, &attr)) {
		snprintf(l->why, sizeof(l->why), "no endpoint: %s",
			 strerror(errno));
		l->id = NULL;
		rdma_freeaddrinfo(ai);
		return false;
	}
	rdma_freeaddrinfo(ai);
	l->in = calloc(BUFFERS + 1, MESSAGE);
	if (!l->in)
		abort();
	l->out = l->in + (size_t)BUFFERS * MESSAGE;
	l->mr = rdma_reg_msgs(l->id, l->in, (size_t)(BUFFERS + 1) * MESSAGE);
	if (!l->mr)
		abort();
	for (size_t i = 0; i < BUFFERS; i++)
		if (rdma_post_recv(l->id, l->in + i * MESSAGE,
				   l->in + i * MESSAGE, MESSAGE, l->mr))
			abort();
	l->up = !rdma_connect(l->id, &param);
	if (!l->up)
		note_reject(l);
	return l->up;
}

/* Control: comes again while an older connection is looked after. */
static bool dial_control(struct link *l)
{
	uint8_t req[REQUEST];
	double end = now() + 20;
	bool good;

	fill_request(req, KIND_CONTROL);
	while (!(good = dial(l, req, sizeof(req))) && now() < end &&
	       (l->rejected == REJECT_RETRY || l->rejected == REJECT_IN_USE)) {
		hang_up(l);
		poll(NULL, 0, 50);
	}
	return good;
}

/* Did the other side hang up, or does it within @ms? */
static bool is_down(struct link *l, int ms)
{
	struct pollfd fd = { .fd = l->id->channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static bool send_raw(struct link *l, size_t len)
{
	double end = now() + 10;
	struct ibv_wc wc;
	int n;

	if (rdma_post_send(l->id, NULL, l->out, len, l->mr, 0))
		return false;
	/* What goes to one that has hung up may be tried for ever. */
	while (!(n = ibv_poll_cq(l->id->send_cq, 1, &wc)))
		if (now() > end || is_down(l, 0))
			return false;
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

/* The body stands at out + 16. */
static bool send_message(struct link *l, uint8_t type, size_t body)
{
	memset(l->out, 0, 16);
	put32(l->out, MAGIC);
	l->out[4] = 1;
	l->out[5] = type;
	l->out[6] = (uint8_t)(16 + body);
	l->out[7] = (uint8_t)((16 + body) >> 8);
	l->out[12] = (uint8_t)l->give;
	l->give = 0;
	return send_raw(l, 16 + body);
}

/* The next message of that type, copied; others are skipped. */
static bool receive(struct link *l, uint8_t type, uint8_t message[MESSAGE])
{
	double end = now() + 10;
	struct ibv_wc wc;

	while (now() < end) {
		uint8_t *buf;
		int n = ibv_poll_cq(l->id->recv_cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			return false;
		if (!n)
			continue;
		buf = (uint8_t *)(uintptr_t)wc.wr_id;
		memcpy(message, buf, MESSAGE);
		if (rdma_post_recv(l->id, buf, buf, MESSAGE, l->mr))
			return false;
		l->give++;
		if (get32(message) != MAGIC || message[4] != 1)
			return false;
		if (message[5] == type)
			return true;
		if (message[5] == PROBE) {
			memcpy(l->out + 16, message + 16, 8);
			send_message(l, PROBE_ACK, 8);
		}
	}
	return false;
}

static bool greet(struct link *l)
{
	const struct sockaddr_in *me = (void *)rdma_get_local_addr(l->id);
	uint8_t *body = l->out + 16;

	memset(body, 0, 168);
	memcpy(body, uuid, 16);
	memcpy(body + 24, "stranger", 9);
	memcpy(body + 88, "v1:192.0.2.1:13579", 19);
	if (!send_message(l, HELLO, 168))
		return false;
	memset(body, 0, 28);
	put32(body, 1);
	body[5] = 3;
	body[6] = 4;
	body[7] = 4;
	put32(body + 8, 1000);
	memcpy(body + 12, &me->sin_addr, 4);
	return send_message(l, DEVICES, 28);
}

/* ------------------------------------------------------------------ connect */

static int run_connect(const char *kind)
{
	uint8_t data[56] = { 0 };
	size_t len = REQUEST;
	struct link l;
	bool good;

	fill_request(data, KIND_CONTROL);
	if (!strcmp(kind, "version")) {
		data[3] = 2;
	} else if (!strcmp(kind, "magic")) {
		data[4] ^= 1;
	} else if (!strcmp(kind, "kind")) {
		data[2] = 9;
	} else if (!strcmp(kind, "tail")) {
		data[REQUEST] = 1;
		len = sizeof(data);
	} else if (!strcmp(kind, "short")) {
		len = 12;
	} else if (!strcmp(kind, "empty")) {
		len = 0;
	} else if (!strcmp(kind, "noise")) {
		random_bytes(data, sizeof(data));
		len = sizeof(data);
	} else if (!strcmp(kind, "data")) {
		data[2] = KIND_DATA;
		random_bytes(data + 32, 16);
	} else if (strcmp(kind, "control")) {
		fprintf(stderr, "cm_client: no kind %s\n", kind);
		return 2;
	}
	good = dial(&l, data, len);
	if (good)
		printf("accepted\n");
	else if (l.rejected > 0)
		printf("rejected %d\n", l.rejected);
	else
		printf("failed %s\n", l.why);
	hang_up(&l);
	return 0;
}

/* ------------------------------------------------------------------- tokens */

/* "accepted", or the number of the reject. */
static int dial_data(struct link *l, uint8_t qp, const uint8_t *token)
{
	uint8_t req[REQUEST];

	fill_request(req, KIND_DATA);
	req[14] = qp;
	if (token)
		memcpy(req + 32, token, 16);
	if (dial(l, req, sizeof(req)))
		return 0;
	return l->rejected ? l->rejected : -1;
}

static void expect(const char *name, int wanted, int got)
{
	char why[64];

	snprintf(why, sizeof(why), "wanted %d, got %d", wanted, got);
	check(wanted == got, name, why);
}

/* A control connection and the tokens of two queue pairs. */
static bool open_rail(struct link *l, uint8_t tokens[2][16])
{
	uint8_t message[MESSAGE];
	uint8_t device;

	if (!dial_control(l)) {
		check(false, "control connection", l->why);
		return false;
	}
	check(greet(l), "HELLO and DEVICES sent", "the connection broke");
	if (!receive(l, DEVICES, message) || !get32(message + 16)) {
		check(false, "DEVICES received", "none came");
		return false;
	}
	device = message[20];
	memset(l->out + 16, 0, 4);
	l->out[18] = device;
	l->out[19] = 2;
	send_message(l, RAIL_REQUEST, 4);
	if (!receive(l, RAIL_TOKENS, message)) {
		check(false, "tokens received", "none came");
		return false;
	}
	expect("tokens for two queue pairs", 2, message[17] ? -message[17] :
							      message[18]);
	memcpy(tokens, message + 20, 32);
	return true;
}

static int run_tokens(void)
{
	struct link control, first = { }, second = { }, wrong = { };
	uint8_t tokens[2][16];

	if (!open_rail(&control, tokens)) {
		hang_up(&control);
		return 1;
	}
	expect("data without a token", REJECT_TOKEN, dial_data(&wrong, 0, NULL));
	hang_up(&wrong);
	expect("data with the token of another queue pair", REJECT_TOKEN,
	       dial_data(&wrong, 0, tokens[1]));
	hang_up(&wrong);
	expect("data with a token", 0, dial_data(&first, 0, tokens[0]));
	expect("data with a used token", REJECT_TOKEN,
	       dial_data(&wrong, 0, tokens[0]));
	hang_up(&wrong);
	check(!is_down(&first, 300), "its queue pair goes on", "it went down");
	expect("data with the other token", 0, dial_data(&second, 1, tokens[1]));
	hang_up(&control);
	check(is_down(&first, 10000) && is_down(&second, 10000),
	      "data ends with the control connection", "it is up still");
	hang_up(&first);
	hang_up(&second);
	return 0;
}

/* -------------------------------------------------------------------- storm */

/* Half zero, so that some of it passes the first checks. */
static void noise(uint8_t *at, size_t n)
{
	random_bytes(at, n);
	for (size_t i = 0; i < n; i++)
		if (random() & 64)
			at[i] = (uint8_t)(random() % 4);
}

static size_t body_of(uint8_t type)
{
	static const size_t sizes[] = {
		0, 168, 4, 4, 4, 68, 32, 12, 20, 32, 12, 16, 16, 8, 8, 0, 0,
	};
	size_t n = (size_t)random() % 5;

	if (type >= sizeof(sizes) / sizeof(sizes[0]))
		return (size_t)random() % 64;
	switch (type) {
	case DEVICES:
		return 4 + 24 * n;
	case RAIL_TOKENS:
		return 4 + 16 * n;
	case 9:
		return 32 + 56 * n;
	}
	return sizes[type];
}

static bool storm_message(struct link *l)
{
	uint8_t type = (uint8_t)(1 + random() % 17);
	uint8_t *body = l->out + 16;
	size_t len = body_of(type);

	noise(body, MESSAGE - 16);
	switch (random() % 4) {
	case 0:
		noise(l->out, 16);
		return send_raw(l, 1 + (size_t)random() % MESSAGE);
	case 1:
		len = (size_t)random() % (MESSAGE - 16);
		break;
	default:
		/* What can be made to look right. */
		if (type == DEVICES || type == 9)
			put32(body, (uint32_t)(len / 24));
		if (type == 5) {
			memset(body + 4, 0, 64);
			memcpy(body + 4, random() % 2 ? "mem" : "none", 4);
		}
		if (type == 8)
			memset(body + 4, 0, 16);
		/* Ids are small numbers. */
		if (type >= 7 && type <= 12)
			put32(body + (type > 10 ? 4 : 0),
			      (uint32_t)(1 + random() % 3));
	}
	return send_message(l, type, len);
}

static int run_storm(unsigned int seed, int rounds)
{
	int broken = 0, sent = 0, refused = 0;
	char why[64];

	srandom(seed);
	for (int i = 0; i < rounds; i++) {
		struct link l;

		if (!dial_control(&l)) {
			refused++;
			hang_up(&l);
			continue;
		}
		if (i % 4)
			greet(&l);
		for (int k = 0; k < 24 && storm_message(&l); k++)
			sent++;
		broken += is_down(&l, 100);
		hang_up(&l);
	}
	snprintf(why, sizeof(why), "%d of %d rounds refused", refused, rounds);
	check(!refused, "each round was let in", why);
	snprintf(why, sizeof(why), "%d of %d", broken, rounds);
	/* Not all rounds have something that is wrong, but nearly all. */
	check(broken > rounds / 2, "nonsense ends the connection", why);
	printf("# seed %u: %d rounds, %d messages, %d ended by the module\n",
	       seed, rounds, sent, broken);
	return 0;
}

int main(int argc, char **argv)
{
	srandom((unsigned int)time(NULL));
	random_bytes(uuid, sizeof(uuid));
	if (argc >= 4) {
		host = argv[2];
		port = argv[3];
	}
	if (argc == 5 && !strcmp(argv[1], "connect"))
		return run_connect(argv[4]);
	if (argc == 4 && !strcmp(argv[1], "tokens"))
		return run_tokens();
	if (argc == 6 && !strcmp(argv[1], "storm"))
		return run_storm((unsigned int)argument(argv[4], 0, UINT_MAX),
				 (int)argument(argv[5], 1, INT_MAX));
	fprintf(stderr, "usage: cm_client connect|tokens|storm HOST PORT ...\n");
	return 2;
}
