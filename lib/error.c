// SPDX-License-Identifier: MIT
/*
 * The error of each thread: a sentence, and the numbers behind it.
 *
 * A sentence has the form "<what was tried>: <why it failed, what to do>". The
 * state is thread-local and of fixed size, so that an error can always be told,
 * lack of memory included.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
	/* cppcheck-suppress unusedStructMember ; its users are not seen */
	char text[512];
	struct rmpool_error detail;
} last;

struct reason {
	uint32_t number;
	const char *name;
	const char *text;
};

static const struct reason reasons[] = {
	{ RMPOOL_REASON_NONE, "none", "no reason given" },
	{ RMPOOL_REASON_MEMLOCK, "memlock",
	  "the limit of locked memory (RLIMIT_MEMLOCK) is reached" },
	{ RMPOOL_REASON_REGIONS, "regions",
	  "the limit of regions of one open file is reached" },
	{ RMPOOL_REASON_SEGMENTS, "segments",
	  "the limit of published segments of one open file is reached" },
	{ RMPOOL_REASON_OPENS, "opens",
	  "the limit of opened segments, of one open file or of one peer, is reached" },
	{ RMPOOL_REASON_BATCH, "batch", "too many requests, regions or entries in one call" },
	{ RMPOOL_REASON_RING, "ring",
	  "the number of ring entries is not a power of two within the limits" },
	{ RMPOOL_REASON_DEVICE_MRS, "device-mrs",
	  "an RDMA device cannot hold more memory regions" },
	{ RMPOOL_REASON_REMOTE_KEYS, "remote-keys",
	  "the remote segment has more keys than are kept for one segment" },
	{ RMPOOL_REASON_USER_PINNED, "user-pinned",
	  "the limit of memory that one user may register is reached" },
	{ RMPOOL_REASON_NODE_PINNED, "node-pinned",
	  "the limit of memory that may be registered on this node is reached" },
	{ RMPOOL_REASON_DEVICE_PAGES, "device-pages",
	  "the limit of pages of an RDMA device is reached" },
	{ RMPOOL_REASON_CACHE, "cache",
	  "the limit of memory that is registered for requests of one open file is reached" },
	{ RMPOOL_REASON_LENGTH_ZERO, "length-zero", "the length is 0" },
	{ RMPOOL_REASON_RANGE_WRAPS, "range-wraps",
	  "the range runs past the end of what 64 bits can address" },
	{ RMPOOL_REASON_UNMAPPED, "unmapped",
	  "a page is not mapped or may not be accessed so" },
	{ RMPOOL_REASON_OFFSET_TAKEN, "offset-taken",
	  "the offset overlaps a region of the segment" },
	{ RMPOOL_REASON_NAME_TAKEN, "name-taken",
	  "the name is in use on this node" },
	{ RMPOOL_REASON_NAME_BAD, "name-bad",
	  "a name is 1 to 63 characters out of letters, digits and ._:@-" },
	{ RMPOOL_REASON_NO_DEVICE, "no-device", "there is no usable RDMA device" },
	{ RMPOOL_REASON_ORDERING, "ordering",
	  "the RDMA devices force relaxed ordering" },
	{ RMPOOL_REASON_DEVICE_MAPPING, "device-mapping",
	  "what is mapped there is of a device, not memory" },
	{ RMPOOL_REASON_FILE_MAPPING, "file-mapping",
	  "the file system of a file that is mapped there does not allow it" },
	{ RMPOOL_REASON_DMABUF_FD, "dmabuf-fd",
	  "the descriptor is not one of a dma-buf" },
	{ RMPOOL_REASON_DMABUF_RANGE, "dmabuf-range",
	  "the range ends beyond the dma-buf" },
	{ RMPOOL_REASON_DMABUF_REFUSED, "dmabuf-refused",
	  "its exporter lets no RDMA device here reach the dma-buf" },
	{ RMPOOL_REASON_DMABUF_PAGES, "dmabuf-pages",
	  "the dma-buf is not memory that a software RDMA device can reach" },
	{ RMPOOL_REASON_DMABUF_NONE, "dmabuf-none",
	  "the kernel has no dma-bufs" },
	{ RMPOOL_REASON_PEER_UNKNOWN, "peer-unknown",
	  "the peer is not in the peer table" },
	{ RMPOOL_REASON_PEER_SELF, "peer-self",
	  "the address is this node's own" },
	{ RMPOOL_REASON_NO_ROUTE, "no-route",
	  "there is no route to the address of the peer" },
	{ RMPOOL_REASON_REFUSED, "refused",
	  "nobody listens at the address of the peer" },
	{ RMPOOL_REASON_UNREACHABLE, "unreachable",
	  "the peer does not answer the request to connect" },
	{ RMPOOL_REASON_SILENT, "silent",
	  "the peer is connected but did not answer in time" },
	{ RMPOOL_REASON_VERSION, "version",
	  "the peer speaks another version of the protocol" },
	{ RMPOOL_REASON_NOT_TRUSTED, "not-trusted",
	  "the peer does not have this node in its peer table" },
	{ RMPOOL_REASON_PEER_GONE, "peer-gone",
	  "the connection to the peer was lost" },
	{ RMPOOL_REASON_IDENTITY, "identity",
	  "another node answered than the one expected" },
	{ RMPOOL_REASON_NO_RAIL, "no-rail",
	  "the peer is connected, but no rail came up" },
	{ RMPOOL_REASON_SEGMENT_UNKNOWN, "segment-unknown",
	  "the peer has no segment of that name" },
	{ RMPOOL_REASON_PROTOCOL, "protocol",
	  "the peer sent something malformed" },
	{ RMPOOL_REASON_NOT_ALLOWED, "not-allowed",
	  "the peer does not allow this node to open that segment" },
};

static const struct reason *find_reason(uint32_t number)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].number == number)
			return &reasons[i];
	return NULL;
}

const char *rmpool_error(void)
{
	return last.text[0] ? last.text : "no error";
}

const struct rmpool_error *rmpool_error_detail(void)
{
	return &last.detail;
}

const char *rmpool_reason_name(uint32_t reason)
{
	const struct reason *r = find_reason(reason);

	return r ? r->name : "unknown";
}

const char *rmpool_strerror(uint32_t reason)
{
	const struct reason *r = find_reason(reason);

	return r ? r->text : "a reason that this library does not know";
}

const char *rmpool_status_text(int status)
{
	switch (-status) {
	case 0:
		return "done";
	case EINVAL:
		return "malformed request";
	case EBADF:
		return "no opened segment has that handle";
	case EFAULT:
		return "the local memory is not within one registered region, or not there";
	case ERANGE:
		return "it runs past the end of the local or the remote region";
	case ENXIO:
		return "the segment has no region at that offset";
	case EACCES:
		return "the region, or the list of who may open the segment, does not allow that access";
	case ESTALE:
		return "the region or segment is gone, or its memory was let go of";
	case ETIMEDOUT:
		return "not finished in time";
	case ECANCELED:
		return "cancelled";
	case ENOTCONN:
		return "no rail to the peer is up";
	case ENETUNREACH:
		return "no rail can be connected between the RDMA devices that have the memory here and there";
	case EREMOTEIO:
		return "the peer refused the access";
	case ECONNRESET:
		return "the connection to the peer broke";
	case EIO:
		return "input/output error of the RDMA device";
	case ENOMEM:
		return "its memory cannot be registered: a limit was met, or no memory is left";
	case EOPNOTSUPP:
		return "its memory is of a kind that cannot be registered";
	case ENODEV:
		return "no RDMA device can have its memory";
	default:
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): it is, since glibc 2.32 */
		return strerror(-status);
	}
}

const char *rmpl_bytes(uint64_t bytes, char text[RMPL_QUANTITY_MAX])
{
	static const char *const units[] = {
		"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"
	};
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, RMPL_QUANTITY_MAX, "%" PRIu64 " %s", bytes,
		 bytes == 1 && !unit ? "byte" : units[unit]);
	return text;
}

/* The first reasons are limits. Their numbers can be missing where a limit is
 * that of a peer, which tells the reason only.
 */
static bool lacks_numbers(const struct rmpool_error *e)
{
	return e->reason < RMPOOL_REASON_LENGTH_ZERO && !e->limit && !e->used &&
	       !e->need;
}

/* Explain a reason with its numbers and with what can be done about it. */
static void explain(char *out, size_t size, const struct rmpool_error *e)
{
	char limit[RMPL_QUANTITY_MAX], used[RMPL_QUANTITY_MAX], need[RMPL_QUANTITY_MAX];
	const char *text = rmpool_strerror(e->reason);

	if (lacks_numbers(e)) {
		snprintf(out, size, "%s", text);
		return;
	}
	switch (e->reason) {
	case RMPOOL_REASON_MEMLOCK:
		snprintf(out, size,
			 "RLIMIT_MEMLOCK is %s, %s of it in use, %s needed; raise it with ulimit -l or give CAP_IPC_LOCK",
			 rmpl_bytes(e->limit, limit), rmpl_bytes(e->used, used),
			 rmpl_bytes(e->need, need));
		return;
	case RMPOOL_REASON_REGIONS:
		snprintf(out, size,
			 "one open file may have %" PRIu64 " regions, %" PRIu64 " in use; unregister some or register larger ones",
			 (uint64_t)e->limit, (uint64_t)e->used);
		return;
	case RMPOOL_REASON_SEGMENTS:
		snprintf(out, size,
			 "one open file may publish %" PRIu64 " segments, %" PRIu64 " in use; unpublish some",
			 (uint64_t)e->limit, (uint64_t)e->used);
		return;
	case RMPOOL_REASON_OPENS:
		snprintf(out, size,
			 "%" PRIu64 " segments may be open, of one open file or of one peer, %" PRIu64 " in use; close some",
			 (uint64_t)e->limit, (uint64_t)e->used);
		return;
	case RMPOOL_REASON_BATCH:
		snprintf(out, size,
			 "one call takes at most %" PRIu64 " requests, regions or entries, these are %" PRIu64,
			 (uint64_t)e->limit, (uint64_t)e->need);
		return;
	case RMPOOL_REASON_RING:
		if (e->used && e->used == e->limit) {
			snprintf(out, size,
				 "the completion ring has no free entry, all %" PRIu64 " are taken; poll first",
				 (uint64_t)e->limit);
			return;
		}
		snprintf(out, size,
			 "a ring has a power of two from %u to %" PRIu64 " entries, not %" PRIu64,
			 RMPOOL_RING_MIN, (uint64_t)e->limit, (uint64_t)e->need);
		return;
	case RMPOOL_REASON_DEVICE_MRS:
		snprintf(out, size,
			 "an RDMA device has room for %" PRIu64 " memory regions of rmpool, %" PRIu64 " in use, %" PRIu64 " needed; unregister memory first",
			 (uint64_t)e->limit, (uint64_t)e->used, (uint64_t)e->need);
		return;
	case RMPOOL_REASON_USER_PINNED:
		snprintf(out, size,
			 "one user may register %s (module parameter max_user_mib), %s of it in use, %s needed",
			 rmpl_bytes(e->limit, limit), rmpl_bytes(e->used, used),
			 rmpl_bytes(e->need, need));
		return;
	case RMPOOL_REASON_NODE_PINNED:
		snprintf(out, size,
			 "%s may be registered on this node (module parameter max_pinned_mib), %s of it in use, %s needed",
			 rmpl_bytes(e->limit, limit), rmpl_bytes(e->used, used),
			 rmpl_bytes(e->need, need));
		return;
	case RMPOOL_REASON_DEVICE_PAGES:
		snprintf(out, size,
			 "an RDMA device may have %" PRIu64 " pages (module parameter max_device_pages), %" PRIu64 " in use, %" PRIu64 " needed; huge pages need fewer",
			 (uint64_t)e->limit, (uint64_t)e->used, (uint64_t)e->need);
		return;
	case RMPOOL_REASON_CACHE:
		if (!e->limit) {
			snprintf(out, size,
				 "no memory is registered for requests (module parameter cache_mib is 0); register it first");
			return;
		}
		snprintf(out, size,
			 "one open file may have %s registered for requests (module parameter cache_mib), %s of it in use, %s needed; register memory before it is used",
			 rmpl_bytes(e->limit, limit), rmpl_bytes(e->used, used),
			 rmpl_bytes(e->need, need));
		return;
	case RMPOOL_REASON_REMOTE_KEYS:
		snprintf(out, size,
			 "the remote segment needs %" PRIu64 " keys, %" PRIu64 " are kept for one segment; spread its memory over several segments",
			 (uint64_t)e->need, (uint64_t)e->limit);
		return;
	case RMPOOL_REASON_RANGE_WRAPS:
		snprintf(out, size, "%s (0x%" PRIx64 ")", text,
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_UNMAPPED:
		snprintf(out, size,
			 "the page at 0x%" PRIx64 " is not mapped or may not be accessed so",
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_DEVICE_MAPPING:
		snprintf(out, size,
			 "what is mapped at 0x%" PRIx64 " is of a device, not memory; it cannot be registered",
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_FILE_MAPPING:
		snprintf(out, size,
			 "the file system of the file at 0x%" PRIx64 " must know who writes; map it MAP_PRIVATE, register it to be read only, or use a memfd, tmpfs or hugetlbfs",
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_DMABUF_FD:
		snprintf(out, size, "descriptor %" PRId32 " is not one of a dma-buf",
			 (int32_t)e->need);
		return;
	case RMPOOL_REASON_DMABUF_RANGE:
		snprintf(out, size, "the dma-buf has %s",
			 rmpl_bytes(e->limit, limit));
		return;
	case RMPOOL_REASON_DMABUF_REFUSED:
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): it is, since glibc 2.32 */
		snprintf(out, size, "%s: %s", text, strerror((int)e->need));
		return;
	case RMPOOL_REASON_DMABUF_PAGES:
		snprintf(out, size, "%s (from byte %" PRIu64 " on)", text,
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_OFFSET_TAKEN:
		snprintf(out, size,
			 "offset %" PRIu64 " overlaps a region of the segment",
			 (uint64_t)e->need);
		return;
	case RMPOOL_REASON_NO_DEVICE:
		snprintf(out, size, "%s; 'rmpool device' says why", text);
		return;
	case RMPOOL_REASON_PEER_UNKNOWN:
		snprintf(out, size, "%s; add it with 'rmpool peer add'", text);
		return;
	case RMPOOL_REASON_REFUSED:
		snprintf(out, size, "%s; is rmpool loaded there?", text);
		return;
	case RMPOOL_REASON_NOT_TRUSTED:
		snprintf(out, size,
			 "%s; add this node there with 'rmpool peer add'", text);
		return;
	default:
		snprintf(out, size, "%s", text);
		return;
	}
}

int rmpl_fail(int err, const struct rmpool_error *detail, const char *why,
	      const char *format, ...)
{
	struct rmpool_error copy = { .reason = RMPOOL_REASON_NONE };
	char reason[256];
	size_t used;
	va_list args;
	int n;

	/* A reason that we do not know counts as none, as the ABI says. */
	if (detail && find_reason(detail->reason))
		copy = *detail;
	last.detail = copy;

	va_start(args, format);
	n = vsnprintf(last.text, sizeof(last.text), format, args);
	va_end(args);
	used = n < 0 ? 0 : (size_t)n;
	if (used >= sizeof(last.text))
		used = sizeof(last.text) - 1;

	if (copy.reason != RMPOOL_REASON_NONE) {
		explain(reason, sizeof(reason), &copy);
		why = reason;
	}
	if (!why)
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): as above */
		why = strerror(err);
	snprintf(last.text + used, sizeof(last.text) - used, ": %s", why);
	return -err;
}
