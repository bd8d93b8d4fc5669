// SPDX-License-Identifier: MIT
/*
 * Puts or gets through a few registered buffers; see pipeline.h. One thread.
 * A slot's memory is the device's from submit until its completion was seen;
 * what is unknown about a failed request ends with the region.
 */
#include <errno.h>
#include <string.h>

#include <sys/mman.h>

#include "interrupt.h"
#include "output.h"
#include "pipeline.h"
#include "progress.h"

enum {
	BUFFER_MAX = 4 << 20,
	BUFFER_MIN = 64 << 10,
	/* What a cancelled request may need to end. */
	SETTLE_MS = 2000,
};

static int add_region(struct pipeline *pipe)
{
	uint32_t access = pipe->op == RMPOOL_OP_GET ? RMPOOL_ACCESS_LOCAL_WRITE : 0;
	size_t length = pipe->buffer * PIPELINE_SLOTS;
	unsigned int i;
	void *memory;
	int error;

	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		memory = NULL;
	pipe->memory = need_memory(memory);
	error = rmpool_register(pipe->pool, pipe->memory, length, access, 0, 0,
				&pipe->region, NULL);
	if (error) {
		munmap(pipe->memory, length);
		pipe->memory = NULL;
		return error;
	}
	for (i = 0; i < PIPELINE_SLOTS; i++)
		pipe->slots[i].memory = (char *)pipe->memory + i * pipe->buffer;
	return 0;
}

int pipeline_open(struct pipeline *pipe, uint64_t total)
{
	uint64_t share = total / PIPELINE_SLOTS;
	int error;

	_Static_assert((int)PIPELINE_SLOTS <= RMPOOL_RING_MIN,
		       "the ring has room for a completion of each slot");
	error = rmpool_ring(pipe->pool, RMPOOL_RING_MIN, -1);
	if (error)
		return error;
	pipe->buffer = BUFFER_MIN;
	while (pipe->buffer < BUFFER_MAX && pipe->buffer < share)
		pipe->buffer *= 2;
	for (;;) {
		error = add_region(pipe);
		if (error != -ENOMEM || pipe->buffer == BUFFER_MIN)
			return error;
		pipe->buffer /= 2;
	}
}

struct slot *pipeline_free_slot(struct pipeline *pipe)
{
	if (pipe->used == PIPELINE_SLOTS)
		return NULL;
	return &pipe->slots[(pipe->first + pipe->used) % PIPELINE_SLOTS];
}

int pipeline_submit(struct pipeline *pipe)
{
	unsigned int index = (pipe->first + pipe->used) % PIPELINE_SLOTS;
	struct slot *slot = &pipe->slots[index];
	struct rmpool_request request;
	int accepted;

	rmpool_prepare_put(&request, pipe->segment, slot->offset, slot->memory,
			   slot->length, index);
	request.op = pipe->op;
	request.timeout_ms = pipe->timeout_ms;
	slot->done = false;
	accepted = rmpool_submit(pipe->pool, &request, 1);
	if (accepted < 0)
		return accepted;
	pipe->used++;
	return 0;
}

/* Takes what has ended. 0 or a negative errno. */
static int reap(struct pipeline *pipe)
{
	struct rmpool_completion ends[PIPELINE_SLOTS];
	int i, nr = rmpool_poll(pipe->pool, ends, PIPELINE_SLOTS);

	for (i = 0; i < nr; i++) {
		struct slot *slot = &pipe->slots[ends[i].cookie % PIPELINE_SLOTS];

		slot->end = ends[i];
		slot->done = true;
	}
	return nr < 0 ? nr : 0;
}

int pipeline_oldest(struct pipeline *pipe, struct slot **oldest)
{
	struct slot *slot = &pipe->slots[pipe->first];
	int available, error;

	for (;;) {
		if (interrupted())
			return -EINTR;
		error = reap(pipe);
		if (error)
			return error;
		if (slot->done)
			break;
		/* Ends by the time-out of the requests at the latest. */
		available = rmpool_wait(pipe->pool, 1, -1);
		if (available < 0 && available != -EINTR)
			return available;
	}
	*oldest = slot;
	return 0;
}

bool pipeline_ready(struct pipeline *pipe)
{
	/* An error comes again when the oldest is waited for. */
	return pipe->used && (reap(pipe) || pipe->slots[pipe->first].done);
}

void pipeline_release(struct pipeline *pipe)
{
	pipe->first = (pipe->first + 1) % PIPELINE_SLOTS;
	pipe->used--;
}

/*
 * A put that is still under way when we end could overwrite what somebody puts
 * there next, so wait for it, as long as a person may be kept waiting.
 */
static void settle(struct pipeline *pipe)
{
	double end = clock_seconds() + SETTLE_MS / 1000.0;
	double left;
	int available;

	rmpool_cancel_all(pipe->pool);
	while (pipe->used) {
		if (reap(pipe))
			return;
		if (pipe->slots[pipe->first].done) {
			pipeline_release(pipe);
			continue;
		}
		left = end - clock_seconds();
		if (left <= 0)
			return;
		available = rmpool_wait(pipe->pool, 1, (int)(left * 1000) + 1);
		if (available < 0)
			return;
	}
}

void pipeline_close(struct pipeline *pipe)
{
	if (!pipe->memory)
		return;
	if (pipe->used)
		settle(pipe);
	rmpool_unregister(pipe->pool, pipe->region);
	munmap(pipe->memory, pipe->buffer * PIPELINE_SLOTS);
	pipe->memory = NULL;
}

uint64_t region_span(const struct rmpool_region_desc *regions, uint32_t nr,
		     uint64_t offset, uint32_t access, int *number)
{
	uint32_t low = 0, high = nr;

	/* The first region that begins after the offset; ours is before it. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (regions[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || offset - regions[low - 1].offset >= regions[low - 1].length) {
		*number = low == nr ? ERANGE : ENXIO;
		return 0;
	}
	if (!(regions[low - 1].access & access)) {
		*number = EACCES;
		return 0;
	}
	return regions[low - 1].length - (offset - regions[low - 1].offset);
}

uint64_t region_reach(const struct rmpool_region_desc *regions, uint32_t nr,
		      uint64_t offset, uint64_t length, uint32_t access, int *number)
{
	uint64_t span;

	*number = 0;
	while (length) {
		span = region_span(regions, nr, offset, access, number);
		if (!span)
			break;
		if (span > length)
			span = length;
		offset += span;
		length -= span;
	}
	return offset;
}
