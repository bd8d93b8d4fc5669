// SPDX-License-Identifier: GPL-2.0
/*
 * Cutting requests into slices. Pure: no state, no locks, any context.
 *
 * A slice never crosses a chunk border on either side, since a chunk is what
 * one memory region of a device covers.
 */
#include "slice.h"

u64 rmp_span_rest(const struct rmp_span *span, u64 pos)
{
	u64 chunk = 1ULL << span->shift;
	u64 in_chunk, rest;

	if (pos >= span->length)
		return 0;
	in_chunk = (span->lead + pos) & (chunk - 1);
	rest = chunk - in_chunk;
	return rest < span->length - pos ? rest : span->length - pos;
}

u32 rmp_slice_length(u64 left, u64 local_rest, u64 remote_rest, u32 max)
{
	u64 len = left;

	if (local_rest < len)
		len = local_rest;
	if (remote_rest < len)
		len = remote_rest;
	return len < max ? (u32)len : max;
}

u64 rmp_slice_count(const struct rmp_span *local, const struct rmp_span *remote,
		    u32 max)
{
	u64 pos = 0, nr = 0;

	while (pos < local->length) {
		u32 len = rmp_slice_length(local->length - pos,
					   rmp_span_rest(local, pos),
					   rmp_span_rest(remote, pos), max);

		if (!len)
			break;
		pos += len;
		nr++;
	}
	return nr;
}
