/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_SLICE_H
#define RMP_SLICE_H

#include "pure.h"

/**
 * struct rmp_span - how a range of memory lies in the chunks of its region
 * @lead: offset of its first byte in the chunk that holds it
 * @length: bytes
 * @shift: chunks are 1 << shift bytes
 */
struct rmp_span {
	u64 lead;
	u64 length;
	u32 shift;
};

/* Bytes from offset @pos of the span to the end of its chunk, or of the span. */
u64 rmp_span_rest(const struct rmp_span *span, u64 pos);

/* How much one work request moves: as much as is left, as both sides' chunks
 * allow and as the device and the limit on slices allow. 0 only when one of
 * them is 0.
 */
u32 rmp_slice_length(u64 left, u64 local_rest, u64 remote_rest, u32 max);

/* How many slices a request of two whole spans of the same length takes. */
u64 rmp_slice_count(const struct rmp_span *local, const struct rmp_span *remote,
		    u32 max);

#endif /* RMP_SLICE_H */
