// SPDX-License-Identifier: MIT
/*
 * speed put|get NODE/SEGMENT SIZE DEPTH SECONDS
 *
 * Keeps DEPTH requests of SIZE bytes in flight through the completion ring, by
 * batches of at most a quarter of that, and prints the rate in MB/s (powers of
 * 1000). The bytes move between the whole of the segment and as much local
 * memory, over and over; the time is from the first submit to the last
 * completion. Memory is filled before a put, and looked at after a get: bytes
 * that did not come are an error, as is any request that fails.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include <rmpool.h>
#include "clock.h"
#include "numbers.h"

#define BATCH_MAX	32U
#define TIMEOUT_MS	30000

struct load {
	struct rmpool *pool;
	uint8_t *memory;
	uint64_t space;		/* bytes used at both ends, a multiple of size */
	uint64_t size;
	uint64_t next;		/* offset of the next request */
	uint32_t segment;
	uint32_t depth;
	bool put;
};

static int fails(int result)
{
	if (result < 0)
		fprintf(stderr, "speed: %s\n", rmpool_error());
	return result < 0;
}

/* Returns how many were accepted, or a negative errno. */
static int submit(struct load *load, uint32_t nr)
{
	struct rmpool_request requests[BATCH_MAX];
	uint64_t at = load->next;
	int accepted;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (load->put)
			rmpool_prepare_put(&requests[i], load->segment, at, load->memory + at,
					   load->size, at);
		else
			rmpool_prepare_get(&requests[i], load->segment, at, load->memory + at,
					   load->size, at);
		at += load->size;
		if (at == load->space)
			at = 0;
	}
	accepted = rmpool_submit(load->pool, requests, nr);
	if (accepted > 0)
		load->next = (load->next + (uint64_t)accepted * load->size) % load->space;
	return accepted;
}

/* Takes what is done off the ring; returns how many, or a negative errno. */
static int collect(struct load *load)
{
	struct rmpool_completion done[BATCH_MAX];
	int i, nr = rmpool_poll(load->pool, done, BATCH_MAX);

	for (i = 0; i < nr; i++) {
		if (done[i].status || done[i].bytes != load->size) {
			fprintf(stderr, "speed: a request ended: %s, %" PRIu64 " bytes\n",
				rmpool_status_text(done[i].status), (uint64_t)done[i].bytes);
			return -EIO;
		}
	}
	return nr;
}

/* Bytes moved in about @seconds, or 0; @took: until the last one was done. */
static uint64_t run(struct load *load, double seconds, double *took)
{
	uint32_t batch = load->depth / 4, pending = 0;
	double start = now();
	uint64_t moved = 0;
	int nr;

	if (batch > BATCH_MAX)
		batch = BATCH_MAX;
	if (!batch)
		batch = 1;
	do {
		bool more = now() - start < seconds;

		while (more && pending + batch <= load->depth) {
			nr = submit(load, batch);
			if (fails(nr))
				return 0;
			pending += (uint32_t)nr;
		}
		if (pending && fails(rmpool_wait(load->pool, pending < batch ? pending : batch,
						 TIMEOUT_MS)))
			return 0;
		while ((nr = collect(load)) > 0) {
			pending -= (uint32_t)nr;
			moved += (uint64_t)nr * load->size;
		}
		if (nr < 0)
			return 0;
	} while (pending || now() - start < seconds);
	*took = now() - start;
	return moved;
}

/* Every request's place got other bytes than the zeros that were there. */
static int arrived(const struct load *load, uint64_t moved)
{
	uint64_t at, end = moved < load->space ? moved : load->space;

	for (at = 0; at < end; at += load->size) {
		if (!load->memory[at] || !load->memory[at + load->size - 1]) {
			fprintf(stderr, "speed: nothing came for %" PRIu64 "\n", at);
			return 0;
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct rmpool_segment_info info;
	struct load load = { 0 };
	uint32_t region, ring = RMPOOL_RING_MIN;
	uint64_t moved;
	double seconds, took = 0;

	if (argc != 6 || (strcmp(argv[1], "put") && strcmp(argv[1], "get"))) {
		fprintf(stderr, "usage: speed put|get NODE/SEGMENT SIZE DEPTH SECONDS\n");
		return 2;
	}
	load.put = !strcmp(argv[1], "put");
	load.size = argument(argv[3], 1, 1ULL << 30);
	load.depth = (uint32_t)argument(argv[4], 1, RMPOOL_BATCH_MAX);
	seconds = (double)argument(argv[5], 1, 3600);
	while (ring < load.depth)
		ring *= 2;

	if (fails(rmpool_open(&load.pool, NULL, 0)) ||
	    fails(rmpool_segment_open(load.pool, argv[2], NULL, TIMEOUT_MS, &load.segment, &info)) ||
	    fails(rmpool_ring(load.pool, ring, -1)))
		return 1;
	load.space = info.size - info.size % load.size;
	if (!load.space) {
		fprintf(stderr, "speed: the segment is smaller than a request\n");
		return 1;
	}
	load.memory = mmap(NULL, load.space, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (load.memory == MAP_FAILED) {
		fprintf(stderr, "speed: %" PRIu64 " bytes of memory: %s\n", load.space,
			strerror(errno));
		/* cppcheck-suppress memleak ; it was not mapped */
		return 1;
	}
	if (load.put)
		memset(load.memory, 0xa5, load.space);
	if (fails(rmpool_register(load.pool, load.memory, load.space, RMPOOL_ACCESS_LOCAL_WRITE,
				  0, 0, &region, NULL)))
		return 1;
	moved = run(&load, seconds, &took);
	if (!moved || (!load.put && !arrived(&load, moved)))
		return 1;
	printf("%.1f MB/s, %.0f requests/s\n", (double)moved / took * 1e-6,
	       (double)moved / (double)load.size / took);
	rmpool_close(load.pool);
	return 0;
}
