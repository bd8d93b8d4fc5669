// SPDX-License-Identifier: MIT
// LIBS: -lrdmacm -libverbs
/*
 * Peers that keep the keys they were told, and use them as they like: RDMA reads and writes
 * without any module, over data queue pairs of their own. Each has an address, a uuid and
 * a control connection of its own, and all of them share what keys they know.
 *
 *	rawkey HOST PORT
 * says "ready", reads commands from standard input, and answers each with one line:
 *
 *	join PEER ADDRESS	connects from there: "OK"
 *	keys PEER SEGMENT KEY	opens it, and keeps the key of its first bytes as KEY: "OK NUMBER",
 *				or "refused STATUS"
 *	read PEER KEY OFFSET LENGTH BYTE
 *				what is there: "same" when each byte is that one, "other"
 *	write PEER KEY OFFSET LENGTH BYTE
 *				"written"
 *	fresh PEER		closes its data queue pair, and makes another one: "OK"
 *	closed PEER		whether HOST closed it: "yes", or "no" when it did not soon
 *	deaf PEER		does not answer any more that it has let go of keys: "OK"
 *	leave PEER		closes all: "OK"
 *
 * Reads and writes say "access" when the device of HOST refuses the key, and "status NUMBER"
 * for all else that goes wrong. The queue pair is gone then, and the next one makes another.
 * KEY outlives whatever it was told by. Whoever is asked meanwhile to let go of keys says that
 * it has, at once.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "hostile_messages.h"
#include "numbers.h"

enum {
	PEERS = 8,
	KEYS_KEPT = 16,
	NAME = 32,
	WORDS = 6,
};

struct key {
	char name[NAME];
	uint64_t address;	/* of the first byte of the region */
	uint32_t rkey;
};

struct player {
	char name[NAME];	/* empty: nobody */
	uint8_t uuid[16];
	struct sockaddr_in from;
	struct link control, data;
	uint8_t device;		/* index of the one that HOST is, there */
	bool deaf;
	bool changed;		/* keys, since that was last looked at */
};

static struct player players[PEERS];
static struct key keys[KEYS_KEPT];
static char answer[128];

__attribute__((format(printf, 1, 2)))
static void say(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	vsnprintf(answer, sizeof(answer), text, args);
	va_end(args);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

/* ------------------------------------------------------------ control messages */

/* What has to be answered is. */
static bool reply(struct player *p, const uint8_t *m)
{
	struct link *l = &p->control;
	uint8_t *body = l->out + 16;

	switch (m[5]) {
	case PROBE:
		memcpy(body, m + 16, 8);
		return send_message(l, PROBE_ACK, 8);
	case QP_FENCE:
		memcpy(body, m + 20, 4);
		return send_message(l, QP_FENCED, 4);
	case KEYS_CHANGED:
		p->changed = true;
		return true;
	case REVOKE:
	case REKEY:
	case WITHDRAWN:
		p->changed = true;
		if (p->deaf)
			return true;
		memcpy(body, m + 16, 16);
		return send_message(l, REVOKE_ACK, 16);
	}
	return true;
}

/* Takes one message, if there is one: its type, 0 for none, -1: it is over. */
static int take(struct player *p, uint8_t message[MESSAGE])
{
	struct link *l = &p->control;
	struct ibv_wc wc;
	void *buf;
	int n;

	if (!l->id)
		return -1;
	n = ibv_poll_cq(l->id->recv_cq, 1, &wc);
	if (!n)
		return is_down(l, 0) ? -1 : 0;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		return -1;
	buf = (void *)(uintptr_t)wc.wr_id;
	memcpy(message, buf, MESSAGE);
	if (rdma_post_recv(l->id, buf, buf, MESSAGE, l->mr))
		return -1;
	l->give++;
	if (get32(message) != MAGIC || message[4] != 1 || !reply(p, message))
		return -1;
	return message[5];
}

/* The next one of that type; @type 0: none, until keys have changed. */
static bool hear(struct player *p, uint8_t type, uint8_t message[MESSAGE])
{
	double end = now() + patience(20);
	int got;

	do {
		if (!type && p->changed)
			return true;
		got = take(p, message);
		if (got > 0 && got == type)
			return true;
		if (!got)
			pause_ms(1);
	} while (got >= 0 && now() < end);
	return false;
}

static void serve_all(void)
{
	uint8_t message[MESSAGE];

	for (int i = 0; i < PEERS; i++)
		while (players[i].control.id && take(&players[i], message) > 0)
			;
}

/* -------------------------------------------------------------------- connecting */

/* Who the next connection is of. */
static void be(const struct player *p)
{
	memcpy(uuid, p->uuid, sizeof(uuid));
	from = p->from;
}

/* A data queue pair, the only one of its rail. */
static bool connect_data(struct player *p)
{
	uint8_t message[MESSAGE], req[REQUEST];
	double end = now() + patience(20);
	struct link *l = &p->control;

	be(p);
	do {
		memset(l->out + 16, 0, 4);
		l->out[18] = p->device;
		l->out[19] = 1;
		if (!send_message(l, RAIL_REQUEST, 4) || !hear(p, RAIL_TOKENS, message)) {
			say("no tokens");
			return false;
		}
		say("no queue pair: status %u", message[17]);
		if (!message[17]) {
			fill_request(req, KIND_DATA);
			/* What the connection manager gives our end, too: with others,
			 * the ends count the packets of a read differently.
			 */
			req[12] = (uint8_t)l->id->route.path_rec->mtu;
			memcpy(req + 32, message + 20, 16);
			if (dial(&p->data, req, sizeof(req)))
				return true;
			say("no queue pair: %s, %d", p->data.why, p->data.rejected);
			hang_up(&p->data);
		}
		/* The one before may have to go first. */
		pause_ms(20);
	} while (now() < end);
	return false;
}

static bool come_in(struct player *p)
{
	const struct sockaddr_in *to;
	uint8_t message[MESSAGE];

	be(p);
	if (!dial_control(&p->control)) {
		say("no control connection: %s, %d", p->control.why, p->control.rejected);
		return false;
	}
	if (!p->control.id->route.path_rec) {
		say("no path");
		return false;
	}
	to = (const void *)rdma_get_peer_addr(p->control.id);
	if (!greet(&p->control) || !hear(p, DEVICES, message)) {
		say("no DEVICES");
		return false;
	}
	for (uint32_t i = 0; i < get32(message + 16) && i < 32; i++)
		if (!memcmp(message + 28 + 24UL * i, &to->sin_addr, 4)) {
			p->device = message[20 + 24UL * i];
			return connect_data(p);
		}
	say("no device with that address");
	return false;
}

static void leave(struct player *p)
{
	hang_up(&p->data);
	hang_up(&p->control);
	memset(p, 0, sizeof(*p));
}

static void join(struct player *p, const char *name, const char *address)
{
	snprintf(p->name, sizeof(p->name), "%s", name);
	random_bytes(p->uuid, sizeof(p->uuid));
	p->from.sin_family = AF_INET;
	if (inet_pton(AF_INET, address, &p->from.sin_addr) != 1)
		say("not an address");
	else if (come_in(p))
		say("OK");
	else
		leave(p);
}

/* -------------------------------------------------------------------------- keys */

/* The key of the first chunk of the first region, on the device of the data queue pair. */
static bool find_key(const struct player *p, const uint8_t *body, struct key *key)
{
	uint32_t nr_runs = body[4] | (uint32_t)body[5] << 8;
	const uint8_t *run = body + 32;

	for (; nr_runs; nr_runs--) {
		uint32_t nr = run[48] | (uint32_t)run[49] << 8;

		if (nr && run[51] == p->device && !get64(run + 8) && !get32(run + 44) &&
		    get32(run + 52)) {
			key->address = get64(run + 24);
			key->rkey = get32(run + 52);
			return true;
		}
		run += 52 + 4UL * nr;
	}
	return false;
}

static void get_key(struct player *p, const char *segment, struct key *key)
{
	uint8_t message[MESSAGE], *body = p->control.out + 16;
	uint32_t id;

	memset(body, 0, 68);
	snprintf((char *)body + 4, 64, "%s", segment);
	if (!send_message(&p->control, SEGMENT_OPEN, 68) ||
	    !hear(p, SEGMENT_INFO, message)) {
		say("no answer");
		return;
	}
	if (get32(message + 20)) {
		say("refused %u", get32(message + 20));
		return;
	}
	id = get32(message + 24);
	/* For its group the region may have to be mapped first. */
	do {
		p->changed = false;
		memset(body, 0, 20);
		memset(body + 20, 0xff, 8);
		put32(body, id);
		if (!send_message(&p->control, KEYS_GET, 28) || !hear(p, KEYS, message)) {
			say("no answer");
			return;
		}
		if (find_key(p, message + 16, key)) {
			say("OK 0x%08x", key->rkey);
			return;
		}
	} while (hear(p, 0, message));
	say("no keys");
}

/* ----------------------------------------------------------------- using them */

static void finish(struct player *p, enum ibv_wc_status status)
{
	if (status == IBV_WC_REM_ACCESS_ERR)
		say("access");
	else
		say("status %d: %s", status, ibv_wc_status_str(status));
	hang_up(&p->data);
}

/* What is to be read is not in the buffer before. */
static void transfer(struct player *p, const struct key *key, bool write, uint64_t offset,
		     size_t length, uint8_t byte)
{
	double end = now() + patience(20);
	struct ibv_wc wc;
	struct link *l;
	int n, ret;

	if (!p->data.id && !connect_data(p))
		return;
	l = &p->data;
	memset(l->out, write ? byte : ~byte, length);
	if (write)
		ret = rdma_post_write(l->id, NULL, l->out, length, l->mr, 0,
				      key->address + offset, key->rkey);
	else
		ret = rdma_post_read(l->id, NULL, l->out, length, l->mr, 0,
				     key->address + offset, key->rkey);
	if (ret) {
		say("not posted");
		return;
	}
	while (!(n = ibv_poll_cq(l->id->send_cq, 1, &wc)))
		if (now() > end) {
			say("silence");
			return;
		}
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		finish(p, n < 0 ? IBV_WC_GENERAL_ERR : wc.status);
		return;
	}
	say(write ? "written" : "same");
	for (size_t i = 0; i < length && !write; i++)
		if (l->out[i] != byte) {
			say("other: byte %zu is %u", i, l->out[i]);
			return;
		}
}

/* -------------------------------------------------------------------- commands */

static struct player *player(const char *name)
{
	for (int i = 0; i < PEERS; i++)
		if (!strcmp(players[i].name, name))
			return &players[i];
	return NULL;
}

static struct key *key_of(const char *name)
{
	for (int i = 0; i < KEYS_KEPT; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static void use_key(struct player *p, char **word, int nr)
{
	struct key *key = nr == WORDS ? key_of(word[2]) : NULL;
	uint64_t offset;
	size_t length;

	if (!key) {
		say("no such key");
		return;
	}
	offset = argument(word[3], 0, MESSAGE);
	length = (size_t)argument(word[4], 1, MESSAGE);
	transfer(p, key, !strcmp(word[0], "write"), offset, length,
		 (uint8_t)argument(word[5], 0, 255));
}

static void keep_key(struct player *p, char **word, int nr)
{
	struct key *key = nr == 4 ? key_of(word[3]) : NULL, new = { };

	if (nr == 4 && !key)
		key = key_of("");
	if (!key) {
		say("no room");
		return;
	}
	get_key(p, word[2], &new);
	if (!new.rkey)
		return;
	snprintf(new.name, sizeof(new.name), "%s", word[3]);
	*key = new;
}

static void command(char **word, int nr)
{
	struct player *p = player(word[1]);

	if (!strcmp(word[0], "join") && nr == 3 && !p) {
		p = player("");
		if (p)
			join(p, word[1], word[2]);
		return;
	}
	if (!p)
		return;
	if (!strcmp(word[0], "keys")) {
		keep_key(p, word, nr);
	} else if (!strcmp(word[0], "read") || !strcmp(word[0], "write")) {
		use_key(p, word, nr);
	} else if (!strcmp(word[0], "fresh")) {
		hang_up(&p->data);
		if (connect_data(p))
			say("OK");
	} else if (!strcmp(word[0], "closed")) {
		say(p->data.id && !is_down(&p->data, (int)(patience(1) * 1000)) ? "no" : "yes");
	} else if (!strcmp(word[0], "deaf")) {
		p->deaf = true;
		say("OK");
	} else if (!strcmp(word[0], "leave")) {
		leave(p);
		say("OK");
	}
}

int main(int argc, char **argv)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	char line[256];

	if (argc != 3)
		give_up("rawkey HOST PORT");
	host = argv[1];
	port = argv[2];
	srandom((unsigned int)time(NULL));
	/* Nothing may be read that poll() does not see. */
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("ready");
	fflush(stdout);
	for (;;) {
		char *word[WORDS] = { NULL }, *next = NULL;
		int nr = 0;

		serve_all();
		if (poll(&fd, 1, 5) != 1)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		for (char *w = strtok_r(line, " \n", &next); w && nr < WORDS;
		     w = strtok_r(NULL, " \n", &next))
			word[nr++] = w;
		say("no such command");
		if (nr > 1)
			command(word, nr);
		puts(answer);
		fflush(stdout);
	}
	for (int i = 0; i < PEERS; i++)
		if (*players[i].name)
			leave(&players[i]);
	return 0;
}
