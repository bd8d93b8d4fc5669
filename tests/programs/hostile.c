// SPDX-License-Identifier: MIT
// LIBS: -lrdmacm -libverbs
/*
 * A peer that means harm. It knows docs/wire.md, is in the peer table, and sends
 * what it likes: private data, control messages with changed bytes, lengths and
 * counts, out of order and in floods, credits that are lies, keys of segments that
 * it does not have; connections that are left half open or broken off.
 *
 *	hostile HOST PORT SEED ROUNDS [FIRST]
 *
 * Each round is one connection or a few, and follows from SEED and its number
 * alone: FIRST and 1 for ROUNDS repeats one. To be run while the victim tries to
 * open segments of this peer, so that there is somebody to lie to.
 *
 * Prints "ok NAME" and "not ok NAME: WHY" for what can be seen from here: who keeps
 * to the protocol is heard, who does not is cut off. What the victim's log, memory
 * and other peers say is for the suite.
 */
#include <limits.h>
#include <signal.h>

#include "hostile_messages.h"
#include "numbers.h"

/* What a round is. @good: it went on as long as it wanted; @refused: it was cut off
 * or rejected.
 */
enum { PRIVATE, HALF_OPEN, SILENT, CLEAN, DIRTY, FLOOD, RAILS, KEYHOLE, ROUNDS };

static struct {
	const char *name;
	unsigned int good, refused;
} rounds[ROUNDS] = {
	{ "private data", 0, 0 }, { "half open", 0, 0 }, { "no HELLO", 0, 0 },
	{ "by the rules", 0, 0 }, { "changed", 0, 0 }, { "flood", 0, 0 },
	{ "rails", 0, 0 }, { "keys", 0, 0 },
};

static unsigned int got[TYPES], rejects[16], shut_out, keys_asked;
static uint64_t seed;

/* ---------------------------------------------------------- what they say */

/* Rails go to the device that the control connection goes to. */
static void note_device(const struct link *l, const uint8_t *body)
{
	const struct sockaddr_in *to = (void *)rdma_get_peer_addr(l->id);

	for (uint32_t i = 0; i < get32(body) && i < 32; i++)
		if (!memcmp(body + 12 + 24UL * i, &to->sin_addr, 4))
			their_device = body[4 + 24UL * i];
}

static void answer(struct random *r, struct link *l, const uint8_t *m, bool lie)
{
	switch (m[5]) {
	case PROBE:
		memmove(l->out + 16, m + 16, 8);
		send_message(l, PROBE_ACK, 8);
		break;
	case DEVICES:
		note_device(l, m + 16);
		break;
	case SEGMENT_INFO:
		if (!get32(m + 20))
			their_segment = get32(m + 24);
		break;
	case SEGMENT_OPEN:
		their_cookie = get32(m + 16);
		make_body(r, l, SEGMENT_INFO, l->out + 16);
		put32(l->out + 16, their_cookie);
		put32(l->out + 20, chance(r, 90) ? 0 : (uint32_t)number(r));
		send_message(l, SEGMENT_INFO, 32);
		sent[SEGMENT_INFO]++;
		break;
	case KEYS_GET: {
		size_t n = lie ? make_keys(r, l->out + 16) : make_true_keys(l->out + 16);

		keys_asked++;
		memcpy(l->out + 16, m + 16, 4);
		for (uint32_t k = lie ? below(r, 3) : 0; k; k--)
			put64(l->out + 48 + 8UL * below(r, 5), number(r));
		send_message(l, KEYS, n);
		sent[KEYS]++;
		break;
	}
	case QP_FENCE:
		if (chance(r, 50)) {
			memmove(l->out + 16, m + 20, 4);
			send_message(l, QP_FENCED, 4);
		}
		break;
	case REVOKE:
	case REKEY:
	case WITHDRAWN:
		if (chance(r, 80)) {
			memmove(l->out + 16, m + 16, 16);
			send_message(l, REVOKE_ACK, 16);
		}
	}
}

/* Takes what has come, for @ms at most; false: it is over. */
static bool listen_for(struct random *r, struct link *l, double ms, bool lie)
{
	double end = now() + ms / 1000;
	uint8_t message[MESSAGE];
	struct ibv_wc wc;

	do {
		int n = ibv_poll_cq(l->id->recv_cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			return false;
		if (!n) {
			if (is_down(l, 1))
				return false;
			continue;
		}
		memcpy(message, (void *)(uintptr_t)wc.wr_id, MESSAGE);
		if (rdma_post_recv(l->id, (void *)(uintptr_t)wc.wr_id,
				   (void *)(uintptr_t)wc.wr_id, MESSAGE, l->mr))
			return false;
		l->give++;
		got[message[5] < TYPES ? message[5] : 0]++;
		answer(r, l, message, lie);
	} while (now() < end);
	return true;
}

/* In one of the ways in which a connection ends. */
static void end_link(struct random *r, struct link *l)
{
	/* RESET could not be followed by rdma_disconnect(). */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (l->id && l->up && chance(r, 30))
		ibv_modify_qp(l->id->qp, &attr, IBV_QP_STATE);
	if (l->up && chance(r, 20))
		poll(NULL, 0, (int)below(r, 200));
	hang_up(l);
}

/* A control connection, greeted. */
static bool come_in(struct link *l, bool greeted)
{
	if (!dial_control(l)) {
		printf("# shut out: %s\n", l->why);
		shut_out++;
		hang_up(l);
		return false;
	}
	return !greeted || greet(l);
}

/* ----------------------------------------------------------------- rounds */

static bool round_private(struct random *r)
{
	uint8_t data[56] = { 0 };
	size_t length = REQUEST;
	struct link l;
	bool in;

	fill_request(data, chance(r, 50) ? KIND_DATA : KIND_CONTROL);
	noise(r, data + 32, data[2] == KIND_DATA ? 16 : 0);
	switch (below(r, 4)) {
	case 0:
		noise(r, data, sizeof(data));
		length = below(r, sizeof(data) + 1);
		break;
	case 1:
		length = below(r, sizeof(data) + 1);
		break;
	case 2:
		for (uint32_t n = below(r, 4); n; n--)
			data[below(r, REQUEST)] ^= (uint8_t)(1U << below(r, 8));
		break;
	}
	in = dial(&l, data, length);
	if (!in)
		rejects[l.rejected > 0 && l.rejected < 16 ? l.rejected : 0]++;
	end_link(r, &l);
	return in;
}

/* The answer to a request is not taken; the victim waits for the third message. */
static void half_open(struct random *r, struct rdma_event_channel *c, struct rdma_addrinfo *ai)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param param = {
		.private_data_len = REQUEST, .responder_resources = (uint8_t)below(r, 5),
		.initiator_depth = (uint8_t)below(r, 5), .retry_count = 5, .rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint8_t data[REQUEST];

	fill_request(data, KIND_CONTROL);
	if (chance(r, 30))
		noise(r, data + 16, 16);
	param.private_data = data;
	if (rdma_create_id(c, &id, NULL, RDMA_PS_TCP))
		return;
	if (rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 2000) ||
	    rdma_get_cm_event(c, &event) || rdma_ack_cm_event(event) ||
	    rdma_resolve_route(id, 2000) ||
	    rdma_get_cm_event(c, &event) || rdma_ack_cm_event(event) ||
	    rdma_create_qp(id, NULL, &attr))
		goto out;
	if (!rdma_connect(id, &param) && chance(r, 80))
		poll(NULL, 0, (int)below(r, chance(r, 10) ? 4000 : 300));
	rdma_destroy_qp(id);
out:
	rdma_destroy_id(id);
}

static bool round_half_open(struct random *r)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_event_channel *c = rdma_create_event_channel();

	if (!c || rdma_getaddrinfo(host, port, &hints, &ai))
		give_up("no address");
	for (uint32_t n = 1 + below(r, 4); n; n--)
		half_open(r, c, ai);
	rdma_freeaddrinfo(ai);
	rdma_destroy_event_channel(c);
	return true;
}

/* Not HELLO first, or nothing at all. */
static bool round_silent(struct random *r)
{
	struct link l;
	bool in;

	if (!come_in(&l, false))
		return false;
	in = true;
	if (chance(r, 60))
		in = send_type(r, &l, (uint8_t)(3 + below(r, TYPES - 3)));
	in = in && !is_down(&l, (int)below(r, 300));
	end_link(r, &l);
	return in;
}

static bool round_talk(struct random *r, bool changed)
{
	/* What may come at any time. */
	static const uint8_t rules[] = {
		DEVICES, RAIL_REQUEST, SEGMENT_OPEN, SEGMENT_CLOSE, KEYS_GET, KEYS_CHANGED,
		REVOKE, REVOKE_ACK, PROBE, PROBE_ACK, CREDIT, RAIL_LOST, QP_FENCE, QP_FENCED,
		REKEY, WITHDRAWN, RAIL_WANTED, TYPES - 1,
	};
	uint32_t n = 1 + below(r, 60), odd = changed ? 1 + below(r, 40) : 0;
	struct link l;
	bool in;

	if (!come_in(&l, true))
		return false;
	in = listen_for(r, &l, 1, changed);
	while (in && n--) {
		if (chance(r, odd))
			in = send_changed(r, &l);
		else
			in = send_type(r, &l, rules[below(r, sizeof(rules))]);
		if (in && chance(r, 60))
			in = listen_for(r, &l, below(r, 4), changed);
	}
	in = in && listen_for(r, &l, 100, changed);
	end_link(r, &l);
	return in;
}

/* Much of the same, and nothing is read. */
static bool round_flood(struct random *r)
{
	static const uint8_t kinds[] = {
		DEVICES, RAIL_REQUEST, SEGMENT_OPEN, KEYS_GET, KEYS_CHANGED, REVOKE, REKEY, PROBE,
		CREDIT, QP_FENCE, QP_FENCED,
	};
	uint8_t kind = kinds[below(r, sizeof(kinds))];
	uint32_t n = 1 + below(r, 1500);
	bool credits = chance(r, 50);
	double end = now() + 3;
	struct link l;
	bool in;

	if (!come_in(&l, true))
		return false;
	do {
		l.give = credits ? 255 : 0;
		in = send_type(r, &l, kind);
	} while (in && --n && now() < end);
	in = in && !is_down(&l, 50);
	end_link(r, &l);
	return in;
}

static bool dial_data(struct random *r, struct link *l, const uint8_t *tokens, uint8_t rail,
		      uint32_t qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t req[REQUEST];

	fill_request(req, KIND_DATA);
	req[13] = rail;
	req[14] = (uint8_t)qp;
	memcpy(req + 32, tokens + 16UL * qp, 16);
	if (chance(r, 10))
		req[12 + below(r, 36)] ^= (uint8_t)(1U << below(r, 8));
	if (dial(l, req, sizeof(req))) {
		if (!ibv_query_qp(l->id->qp, &attr, IBV_QP_DEST_QPN, &init)) {
			their_rail = rail;
			my_qpn = l->id->qp->qp_num;
			peer_qpn = attr.dest_qp_num;
		}
		return true;
	}
	rejects[l->rejected > 0 && l->rejected < 16 ? l->rejected : 0]++;
	hang_up(l);
	return false;
}

/* Queue pairs with tokens, in any order, some of them twice, some from outside; then
 * it is somebody from whom segments can be opened, for @ms.
 */
static bool round_rails(struct random *r, double ms)
{
	uint8_t message[MESSAGE], rail = (uint8_t)below(r, 32);
	struct link l, data[4] = { };
	uint32_t nr;
	bool in;

	if (!come_in(&l, true))
		return false;
	in = listen_for(r, &l, 50, false);
	memset(l.out + 16, 0, 20);
	l.out[16] = rail;
	l.out[18] = (uint8_t)their_device;
	l.out[19] = 2;
	in = in && send_message(&l, RAIL_REQUEST, 4) && receive(&l, RAIL_TOKENS, message) &&
	     !message[17];
	nr = in ? message[18] : 0;
	for (uint32_t i = 0; i < 4 && nr; i++) {
		uint32_t qp = i < 2 ? i % nr : below(r, nr);

		if (data[i].id)
			hang_up(&data[i]);
		dial_data(r, &data[i], message + 20, rail, qp);
		/* About that one, or any. */
		if (in && chance(r, 30))
			in = send_type(r, &l, QP_FENCE);
	}
	/* Until somebody asked for keys, and a while longer. */
	if (ms > 0) {
		unsigned int asked = keys_asked;
		double end = now() + patience(5);
		bool lie = chance(r, 70);

		while (in && keys_asked == asked && now() < end)
			in = listen_for(r, &l, 100, lie);
		in = in && listen_for(r, &l, ms, lie);
	}
	if (chance(r, 50))
		end_link(r, &l);
	for (uint32_t i = 0; i < 4; i++)
		if (data[i].id)
			end_link(r, &data[i]);
	if (l.id)
		end_link(r, &l);
	return in;
}

static bool play(struct random *r, uint32_t kind)
{
	switch (kind) {
	case PRIVATE:
		return round_private(r);
	case HALF_OPEN:
		return round_half_open(r);
	case SILENT:
		return round_silent(r);
	case CLEAN:
		return round_talk(r, false);
	case DIRTY:
		return round_talk(r, true);
	case FLOOD:
		return round_flood(r);
	case RAILS:
		return round_rails(r, 0);
	default:
		return round_rails(r, 200 + below(r, 800));
	}
}

static void report(void)
{
	struct test t = { .name = "each connection was let in" };
	struct test rules = { .name = "who keeps to the rules is heard" };
	struct test cut = { .name = "who does not is cut off" };
	struct test met = { .name = "each kind of round was met" };

	for (int i = 0; i < ROUNDS; i++) {
		printf("%-16s %5u went on, %5u were ended\n", rounds[i].name, rounds[i].good,
		       rounds[i].refused);
		expect(&met, rounds[i].good + rounds[i].refused, "none: %s", rounds[i].name);
	}
	for (int i = 0; i < TYPES; i++)
		printf("%stype %d: %u/%u", i ? ", " : "sent/received ", i, sent[i], got[i]);
	printf("\nrejects:");
	for (int i = 0; i < 16; i++)
		if (rejects[i])
			printf(" %d: %u", i, rejects[i]);
	printf("\nasked for keys: %u\n", keys_asked);
	test_end(&met);
	expect(&t, !shut_out, "%u were not", shut_out);
	test_end(&t);
	expect(&rules, !rounds[CLEAN].refused, "%u of %u were cut off", rounds[CLEAN].refused,
	       rounds[CLEAN].good + rounds[CLEAN].refused);
	test_end(&rules);
	expect(&cut, rounds[DIRTY].refused && rounds[PRIVATE].refused, "%u changed, %u private",
	       rounds[DIRTY].refused, rounds[PRIVATE].refused);
	test_end(&cut);
}

static void one_round(unsigned int i, bool told)
{
	struct random r = random_of(seed, i);
	uint32_t kind = i % ROUNDS;
	double began = now();
	bool good;

	/* Nothing is known from rounds before. */
	their_segment = 1;
	their_cookie = 0;
	their_device = 0;
	their_rail = 0;
	my_qpn = 1;
	peer_qpn = 1;
	noise(&r, uuid, sizeof(uuid));
	good = play(&r, kind);
	rounds[kind].good += good;
	rounds[kind].refused += !good;
	if (told || now() - began > 3)
		printf("round %u, %s: %s after %.1f s\n", i, rounds[kind].name,
		       good ? "went on" : "ended", now() - began);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned int nr, first, i;

	if (argc != 5 && argc != 6)
		give_up("hostile HOST PORT SEED ROUNDS [FIRST]");
	host = argv[1];
	port = argv[2];
	seed = argument(argv[3], 0, UINT64_MAX);
	nr = (unsigned int)argument(argv[4], 1, INT_MAX);
	first = argc > 5 ? (unsigned int)argument(argv[5], 0, INT_MAX) : 0;
	printf("seed %llu, %u rounds from %u\n", (unsigned long long)seed, nr, first);
	for (i = first; i < first + nr; i++)
		one_round(i, nr <= 500);
	if (argc == 5) {
		/* In a few rounds, all that a seed changes may be allowed: more of those. */
		for (; i < nr + 50 * ROUNDS; i++)
			if ((i % ROUNDS == DIRTY || i % ROUNDS == PRIVATE) &&
			    !rounds[i % ROUNDS].refused)
				one_round(i, true);
		report();
	}
	return report_failed != 0;
}
