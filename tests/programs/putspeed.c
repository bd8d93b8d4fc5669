// SPDX-License-Identifier: MIT
// LIBS: -lrdmacm -libverbs
/*
 * How fast single puts are, by what is done about the registration of their memory:
 *
 *   putspeed serve PORT MIB			memory for who puts by verbs
 *   putspeed NODE/SEGMENT HOST PORT MIB ROUNDS
 *
 * For each size from 4 KiB to MIB, a line with MiB/s, which are medians; all ways take
 * turns:
 *
 *	SIZE REGISTERED CACHED STAGED EACH VERBS
 *
 * REGISTERED: memory that was registered before. CACHED: memory that was not, with
 * RMPOOL_REQUEST_REGISTER, and is kept registered. STAGED: such memory that is copied, "-"
 * where a request is too long for it; parameter staging_max says which of the two, and is
 * 0 afterwards. EACH: registered for each put, and unregistered after it.
 * VERBS: the same without rmpool: ibv_reg_mr(), RDMA writes of up to 1 MiB on a queue
 * pair between the two programs, ibv_dereg_mr(). One put at a time, all wait asleep.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define MIB		(1024UL * 1024)
#define SMALLEST	4096UL
#define ROUNDS_MAX	101
#define WRITES_MAX	1024U
#define TIMEOUT_MS	60000
/* Half of the pool: no request can have more. */
#define STAGED_MOST	(4 * MIB)
#define STAGING_MAX	"/sys/module/rmpool/parameters/staging_max"

enum way { REGISTERED, CACHED, STAGED, EACH, VERBS, WAYS };

/* In the private data of the accepted connection. */
struct place {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

static struct rmpool *pool;
static uint32_t segment;
static struct rdma_cm_id *link_id;
static struct place place;

static void need(bool good, const char *what)
{
	if (!good)
		give_up("%s: %s", what, strerror(errno));
}

static void *memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	need(at != MAP_FAILED, "memory");
	return at;
}

static struct rdma_cm_id *endpoint(const char *host, const char *port, bool passive)
{
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_TCP,
		.ai_flags = passive ? RAI_PASSIVE : 0,
	}, *found;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = WRITES_MAX, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_cm_id *id;

	need(!rdma_getaddrinfo(host, port, &hints, &found), host ? host : "listen");
	need(!rdma_create_ep(&id, found, NULL, &attr), "endpoint");
	rdma_freeaddrinfo(found);
	return id;
}

/* --------------------------------------------------------------------- serve */

static void serve(const char *port, size_t size)
{
	struct rdma_cm_id *listener = endpoint(NULL, port, true), *id;
	struct rdma_conn_param param = { .responder_resources = 1 };
	struct ibv_mr *mr, *end;
	uint8_t *at = memory(size);
	struct ibv_wc wc;
	uint8_t byte;

	need(!rdma_listen(listener, 1), "listen");
	puts("listening");
	fflush(stdout);
	need(!rdma_get_request(listener, &id), "request");
	mr = rdma_reg_write(id, at, size);
	end = rdma_reg_msgs(id, &byte, 1);
	need(mr && end && !rdma_post_recv(id, NULL, &byte, 1, end), "memory regions");
	place.addr = (uint64_t)(uintptr_t)at;
	place.rkey = mr->rkey;
	param.private_data = &place;
	param.private_data_len = sizeof(place);
	need(!rdma_accept(id, &param), "accept");
	/* The other side says when it is done. */
	need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "end");
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_dereg_mr(end);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* ---------------------------------------------------------------------- puts */

static void link_up(const char *host, const char *port)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .retry_count = 6 };

	link_id = endpoint(host, port, false);
	need(!rdma_connect(link_id, &param), "connect");
	need(link_id->event->param.conn.private_data_len >= sizeof(place), "no place");
	memcpy(&place, link_id->event->param.conn.private_data, sizeof(place));
}

static void link_down(void)
{
	uint8_t byte = 0;
	struct ibv_mr *mr = rdma_reg_msgs(link_id, &byte, 1);
	struct ibv_wc wc;

	need(mr && !rdma_post_send(link_id, NULL, &byte, 1, mr, IBV_SEND_SIGNALED) &&
	     rdma_get_send_comp(link_id, &wc) == 1, "end");
	rdma_dereg_mr(mr);
	rdma_disconnect(link_id);
	rdma_destroy_ep(link_id);
}

static void put_verbs(uint8_t *at, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(link_id->pd, at, size, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;
	size_t done, n;

	need(mr, "ibv_reg_mr");
	for (done = 0; done < size; done += n) {
		n = size - done < MIB ? size - done : MIB;
		need(!rdma_post_write(link_id, NULL, at + done, n, mr,
				      done + n == size ? IBV_SEND_SIGNALED : 0,
				      place.addr + done, place.rkey), "write");
	}
	need(rdma_get_send_comp(link_id, &wc) == 1, "completion");
	if (wc.status != IBV_WC_SUCCESS)
		give_up("write: %s", ibv_wc_status_str(wc.status));
	need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
}

static void staging_max(size_t most)
{
	FILE *file = fopen(STAGING_MAX, "w");

	need(file && fprintf(file, "%zu\n", most) > 0 && !fclose(file), STAGING_MAX);
}

static void put(enum way way, uint8_t *at, size_t size)
{
	uint32_t region;
	int ret = 0;

	switch (way) {
	case REGISTERED:
		ret = rmpool_put(pool, segment, 0, at, size, TIMEOUT_MS);
		break;
	case CACHED:
	case STAGED:
		ret = rmpool_put_flags(pool, segment, 0, at, size, RMPOOL_REQUEST_REGISTER,
				       TIMEOUT_MS);
		break;
	case EACH:
		ret = rmpool_register(pool, at, size, 0, 0, 0, &region, NULL);
		if (!ret)
			ret = rmpool_put(pool, segment, 0, at, size, TIMEOUT_MS);
		if (!ret)
			ret = rmpool_unregister(pool, region);
		break;
	default:
		put_verbs(at, size);
		break;
	}
	if (ret)
		give_up("%s", rmpool_error());
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(uint8_t *const *at, size_t size, unsigned int rounds)
{
	static double took[WAYS][ROUNDS_MAX];
	/* Small ones are too short for the clock's owner to be left alone. */
	size_t times = size < MIB / 4 ? MIB / 4 / size : 1;
	unsigned int i, k, way;
	double began;

	/* The first round is for caches and allocators. */
	for (i = 0; i <= rounds; i++) {
		for (way = 0; way < WAYS; way++) {
			if (way == STAGED && size > STAGED_MOST)
				continue;
			staging_max(way == STAGED ? STAGED_MOST : 0);
			began = now();
			for (k = 0; k < times; k++)
				put(way, at[way], size);
			took[way][i ? i - 1 : 0] = now() - began;
		}
	}
	printf("%zu", size);
	for (way = 0; way < WAYS; way++) {
		if (way == STAGED && size > STAGED_MOST) {
			printf(" -");
			continue;
		}
		qsort(took[way], rounds, sizeof(took[way][0]), by_value);
		printf(" %.2f", (double)(times * size) / (double)MIB / took[way][rounds / 2]);
	}
	putchar('\n');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned int rounds, way;
	uint8_t *at[WAYS];
	uint32_t region;
	size_t size, most;

	if (argc == 4 && !strcmp(argv[1], "serve")) {
		serve(argv[2], argument(argv[3], 1, WRITES_MAX) * MIB);
		return 0;
	}
	if (argc != 6)
		give_up("putspeed serve PORT MIB | putspeed NODE/SEGMENT HOST PORT MIB ROUNDS");
	most = argument(argv[4], 1, WRITES_MAX) * MIB;
	rounds = (unsigned int)argument(argv[5], 1, ROUNDS_MAX);
	if (rmpool_open(&pool, NULL, 0) ||
	    rmpool_segment_open(pool, argv[1], NULL, TIMEOUT_MS, &segment, NULL))
		give_up("%s", rmpool_error());
	link_up(argv[2], argv[3]);
	for (way = 0; way < WAYS; way++)
		at[way] = memory(most);
	if (rmpool_register(pool, at[REGISTERED], most, 0, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	for (size = SMALLEST; size <= most; size *= 4)
		measure(at, size, rounds);
	staging_max(0);
	link_down();
	rmpool_close(pool);
	return 0;
}
