/* SPDX-License-Identifier: MIT */
/*
 * Puts or gets one after another through a few registered buffers, so that
 * files and network work at the same time. Buffers go around: the caller takes
 * the next free one, submits it, and gets them back in the same order.
 */
#ifndef RMPOOL_TOOL_PIPELINE_H
#define RMPOOL_TOOL_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmpool.h>

enum { PIPELINE_SLOTS = 4 };

struct slot {
	char *memory;
	uint64_t offset;	/* in the segment */
	size_t length;
	bool done;
	struct rmpool_completion end;
};

struct pipeline {
	struct rmpool *pool;
	uint32_t segment;	/* opened */
	uint8_t op;		/* RMPOOL_OP_* */
	uint32_t timeout_ms;	/* of one request, 0: the module's default */
	void *memory;
	size_t buffer;		/* bytes of one slot */
	uint32_t region;
	struct slot slots[PIPELINE_SLOTS];
	unsigned int first;	/* oldest in flight */
	unsigned int used;	/* in flight */
};

/*
 * Makes ring and buffers, of the fields pool, segment, op and timeout_ms.
 * @total: bytes to move, UINT64_MAX if not known. Where little memory may be
 * locked it makes do with little. 0 or a negative errno of the library.
 */
int pipeline_open(struct pipeline *pipe, uint64_t total);
/* The next free slot, or NULL when all are in flight. */
struct slot *pipeline_free_slot(struct pipeline *pipe);
/* Submit that one, its offset and length filled in. */
int pipeline_submit(struct pipeline *pipe);
/*
 * Wait for the oldest, which must exist. -EINTR when the tool is to end, else
 * the library's error; how the request ended is in slot->end.
 */
int pipeline_oldest(struct pipeline *pipe, struct slot **oldest);
/* Whether that would not wait: the oldest, if there is one, has ended. */
bool pipeline_ready(struct pipeline *pipe);
/* Done with the oldest: it is free again. */
void pipeline_release(struct pipeline *pipe);
/* Ends what is in flight, waiting for a short time, and gives all back. */
void pipeline_close(struct pipeline *pipe);

/*
 * How many bytes from @offset on lie in one region that allows @access, which
 * is RMPOOL_ACCESS_REMOTE_READ or _WRITE; else 0 and why, as an errno in
 * *@number: ERANGE (past the end), ENXIO (a hole), EACCES.
 */
uint64_t region_span(const struct rmpool_region_desc *regions, uint32_t nr,
		     uint64_t offset, uint32_t access, int *number);
/* The first offset of a range where that is 0, or where the range ends. */
uint64_t region_reach(const struct rmpool_region_desc *regions, uint32_t nr,
		      uint64_t offset, uint64_t length, uint32_t access, int *number);

#endif
