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
#include <limits.h>
#include <time.h>

#include "cm_link.h"
#include "numbers.h"

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

static int patience_ms(double usual)
{
	return (int)(patience(usual) * 1e3);
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
	check(is_down(&first, patience_ms(20)) && is_down(&second, patience_ms(20)),
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
		/* What is wrong is found when it is looked at. */
		broken += is_down(&l, patience_ms(2));
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
