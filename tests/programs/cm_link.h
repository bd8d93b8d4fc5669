/* SPDX-License-Identifier: MIT */
/*
 * For test programs: the other side of rmpool in user space, through librdmacm.
 * Connect requests, the control channel and its messages, written after
 * docs/wire.md and without the module's code, so that each checks the other.
 */
#ifndef CM_LINK_H
#define CM_LINK_H

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "clock.h"

enum {
	MAGIC = 0x4c504d52,
	MESSAGE = 4096,
	BUFFERS = 32,
	REQUEST = 48,
	KIND_CONTROL = 1,
	KIND_DATA = 2,
	REJECT_CROSSED = 5,
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
static struct sockaddr_in from;	/* where connections come from; family 0: any address */

static inline void check(bool good, const char *name, const char *why)
{
	if (good)
		printf("ok %s\n", name);
	else
		printf("not ok %s: %s\n", name, why);
	fflush(stdout);
}

static inline void put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static inline uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline void random_bytes(uint8_t *at, size_t n)
{
	while (n--)
		*at++ = (uint8_t)(random() >> 8);
}

/* A good request of that kind. */
static inline void fill_request(uint8_t req[REQUEST], uint8_t kind)
{
	memset(req, 0, REQUEST);
	req[2] = kind;
	req[3] = 1;
	put32(req + 4, MAGIC);
	put32(req + 8, 1);
	req[12] = 3;
	memcpy(req + 16, uuid, sizeof(uuid));
}

static inline void hang_up(struct link *l)
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

static inline void note_reject(struct link *l)
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

/* What it finds out before the other side hears of it waits for two seconds in vain; a
 * machine that stands still for these is no answer.
 */
static inline int create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *ai,
			    struct ibv_qp_init_attr *attr)
{
	double end = now() + patience(20);
	int ret;

	do
		ret = rdma_create_ep(id, ai, NULL, attr);
	while (ret && errno == ETIMEDOUT && now() < end);
	return ret;
}

/* Connects with @len bytes of private data; control: with buffers for messages. */
static inline bool dial(struct link *l, const uint8_t *data, size_t len)
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
	if (from.sin_family) {
		hints.ai_src_addr = (struct sockaddr *)&from;
		hints.ai_src_len = sizeof(from);
	}
	if (rdma_getaddrinfo(host, port, &hints, &ai)) {
		snprintf(l->why, sizeof(l->why), "no address: %s",
			 strerror(errno));
		return false;
	}
	if (create_ep(&l->id, ai, &attr)) {
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

/* Control: comes again while an older connection is looked after, or one of the other
 * side goes first.
 */
static inline bool dial_control(struct link *l)
{
	uint8_t req[REQUEST];
	double end = now() + patience(20);
	bool good;

	fill_request(req, KIND_CONTROL);
	while (!(good = dial(l, req, sizeof(req))) && now() < end &&
	       (l->rejected == REJECT_RETRY || l->rejected == REJECT_IN_USE ||
		l->rejected == REJECT_CROSSED)) {
		hang_up(l);
		poll(NULL, 0, 50);
	}
	return good;
}

/* Did the other side hang up, or does it within @ms? */
static inline bool is_down(struct link *l, int ms)
{
	struct pollfd fd = { .fd = l->id->channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static inline bool send_raw(struct link *l, size_t len)
{
	double end = now() + patience(20);
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
static inline bool send_message(struct link *l, uint8_t type, size_t body)
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
static inline bool receive(struct link *l, uint8_t type, uint8_t message[MESSAGE])
{
	double end = now() + patience(20);
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

static inline bool greet(struct link *l)
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

#endif /* CM_LINK_H */
