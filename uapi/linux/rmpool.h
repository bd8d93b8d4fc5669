/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * rmpool - an RDMA memory pool: the interface of /dev/rmpool.
 *
 * Rules that hold for every ioctl here:
 *
 *  - Structures have no holes, are the same for 32-bit and 64-bit callers, and
 *    grow at their end only. The kernel reads _IOC_SIZE(cmd) bytes: those that
 *    an earlier version did not have count as zero, unknown bytes that are not
 *    zero give E2BIG, less than the first version has gives EINVAL.
 *  - Flags and reserved fields that are not described must be zero (EINVAL).
 *  - The structure is copied back whether the call succeeds or fails, so that
 *    output fields such as &struct rmpool_error can say why it failed.
 *  - Every ioctl but RMPOOL_IOC_INFO is for the process that opened the file
 *    (more exactly, for the address space that did). Others get EPERM.
 *  - Numbers are in host byte order, lengths in bytes, times in nanoseconds
 *    unless a name says otherwise. A negative time-out waits without limit.
 *  - All waits can be interrupted by a signal (EINTR) and leave nothing behind;
 *    those of REGION_DEL, REGION_DEL_MANY, SEGMENT_DELETE and SEGMENT_ALLOW only by one
 *    that ends the process. Calls that do many things keep those that are done.
 *  - All calls may be made from several threads at once.
 */
#ifndef _UAPI_LINUX_RMPOOL_H
#define _UAPI_LINUX_RMPOOL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define RMPOOL_DEVICE_PATH	"/dev/rmpool"
#define RMPOOL_ABI_VERSION	1

/* Names of nodes and segments, with the final NUL. */
#define RMPOOL_NAME_MAX		64
/* Requests in one submit call, regions in one call. */
#define RMPOOL_BATCH_MAX	4096
/* Entries of a completion ring; any power of two between the two. */
#define RMPOOL_RING_MIN		8
#define RMPOOL_RING_MAX		65536
/* Entries of the list of who may open a segment. */
#define RMPOOL_ALLOW_MAX	64
/* As &struct rmpool_region_add.offset: the next free offset of the segment. */
#define RMPOOL_OFFSET_NEXT	(~0ULL)
/* As &struct rmpool_completion.rail: no rail carried any byte. */
#define RMPOOL_RAIL_NONE	(~0U)

/**
 * enum rmpool_reason - what stood behind an error
 *
 * The errno says what kind of error it was, the reason which rule or limit
 * was met. New reasons may be added; treat an unknown one as NONE.
 */
enum rmpool_reason {
	RMPOOL_REASON_NONE = 0,
	/* limits: &struct rmpool_error.limit, .used and .need are set */
	RMPOOL_REASON_MEMLOCK = 1,	/* RLIMIT_MEMLOCK, bytes */
	RMPOOL_REASON_REGIONS = 2,	/* regions of one file */
	RMPOOL_REASON_SEGMENTS = 3,	/* published segments of one file */
	RMPOOL_REASON_OPENS = 4,	/* opened segments of one file, or of one peer */
	RMPOOL_REASON_BATCH = 5,	/* requests or regions of one call */
	RMPOOL_REASON_RING = 6,		/* entries of the completion ring */
	RMPOOL_REASON_DEVICE_MRS = 7,	/* memory regions of a device */
	RMPOOL_REASON_REMOTE_KEYS = 8,	/* keys kept for one remote segment */
	RMPOOL_REASON_USER_PINNED = 9,	/* registered by one user, bytes */
	RMPOOL_REASON_NODE_PINNED = 10,	/* registered by all, bytes */
	RMPOOL_REASON_DEVICE_PAGES = 11, /* pages of memory regions of a device */
	RMPOOL_REASON_CACHE = 12,	/* registered for requests of one file, bytes */
	/* registration: .need is the address or length at fault */
	RMPOOL_REASON_LENGTH_ZERO = 16,
	RMPOOL_REASON_RANGE_WRAPS = 17,
	RMPOOL_REASON_UNMAPPED = 18,	/* a page is missing or may not be used so */
	RMPOOL_REASON_OFFSET_TAKEN = 19, /* overlaps a region of the segment */
	RMPOOL_REASON_NAME_TAKEN = 20,	/* segment name in use on this node */
	RMPOOL_REASON_NAME_BAD = 21,	/* empty, not terminated, or bad character */
	RMPOOL_REASON_NO_DEVICE = 22,	/* no usable RDMA device */
	RMPOOL_REASON_ORDERING = 23,	/* all devices force relaxed ordering */
	RMPOOL_REASON_DEVICE_MAPPING = 24, /* memory of a device is mapped there */
	RMPOOL_REASON_FILE_MAPPING = 25, /* a file whose file system forbids it */
	/* of a dma-buf; what .need is stands with each */
	RMPOOL_REASON_DMABUF_FD = 26,	/* not the descriptor of one: the descriptor */
	RMPOOL_REASON_DMABUF_RANGE = 27, /* ends beyond it (.limit, its size): where */
	RMPOOL_REASON_DMABUF_REFUSED = 28, /* exporter refused all devices: an errno */
	RMPOOL_REASON_DMABUF_PAGES = 29, /* no memory to a software device: where */
	RMPOOL_REASON_DMABUF_NONE = 30,	/* this kernel has no dma-bufs: 0 */
	/* connections */
	RMPOOL_REASON_PEER_UNKNOWN = 32, /* no such entry in the peer table */
	RMPOOL_REASON_PEER_SELF = 33,	/* the address is this node's own */
	RMPOOL_REASON_NO_ROUTE = 34,	/* address or route not resolved */
	RMPOOL_REASON_REFUSED = 35,	/* nobody listens at that address */
	RMPOOL_REASON_UNREACHABLE = 36,	/* no answer to the connect request */
	RMPOOL_REASON_SILENT = 37,	/* connected, but no answer in time */
	RMPOOL_REASON_VERSION = 38,	/* peer speaks another protocol version */
	RMPOOL_REASON_NOT_TRUSTED = 39,	/* peer does not have us in its table */
	RMPOOL_REASON_PEER_GONE = 40,	/* connection was lost meanwhile */
	RMPOOL_REASON_IDENTITY = 41,	/* another node answered than expected */
	RMPOOL_REASON_NO_RAIL = 42,	/* connected, but no data path came up */
	RMPOOL_REASON_SEGMENT_UNKNOWN = 43, /* peer has no segment of that name */
	RMPOOL_REASON_PROTOCOL = 44,	/* peer sent something malformed */
	RMPOOL_REASON_NOT_ALLOWED = 45,	/* peer does not let us open that segment */
};

/**
 * struct rmpool_error - detail of a failed call
 * @reason: one of &enum rmpool_reason
 * @reserved: zero
 * @limit: the limit that was met
 * @used: how much of it was in use before the call
 * @need: how much the call would have needed, or the value at fault
 */
struct rmpool_error {
	__u32 reason;
	__u32 reserved;
	__u64 limit;
	__u64 used;
	__u64 need;
};

/**
 * struct rmpool_info - what this node and file can do
 * @abi_version: RMPOOL_ABI_VERSION of the module
 * @nr_devices: usable RDMA devices now
 * @nr_peers: entries of the peer table now
 * @batch_max: requests in one submit call, regions in one call
 * @ring_max: most entries of a completion ring
 * @regions_max: regions of one file
 * @segments_max: published segments of one file
 * @opens_max: opened segments of one file
 * @features: none defined yet
 * @pinned: bytes pinned by this file now, dma-bufs among them
 * @memlock: RLIMIT_MEMLOCK of the caller, ~0 for none or with CAP_IPC_LOCK
 * @uuid: identity of this life of the node; new whenever the module is loaded
 * @node_name: name of this node
 * @module_version: version of the module, as text
 * @user_pinned: bytes pinned by all files of the user who opened this one
 * @user_limit: most bytes that one user may pin, ~0 for no limit
 * @node_pinned: bytes pinned by all files
 * @node_limit: most bytes that all may pin, ~0 for no limit
 * @cache_limit: most bytes that one file may have registered for requests with
 *	RMPOOL_REQUEST_REGISTER, 0: such requests fail, unless they are copied
 * @cache_bytes: registered for requests of this file now; part of @pinned
 * @cache_hits: requests of this file that found their memory registered so
 * @cache_misses: requests for which memory was to be registered, whether it
 *	succeeded or not
 * @cache_evictions: registrations given up to make room for others
 * @cache_invalidations: those given up since the owner let go of the memory
 * @staging_limit: bytes of the largest request with RMPOOL_REQUEST_REGISTER whose memory
 *	is copied instead of being registered, 0: none is
 * @staging_requests: requests of this file that were copied
 * @staging_bytes: of those
 * @staging_fallbacks: requests of this file that were small enough, and for which there
 *	was no room: their memory was registered
 */
struct rmpool_info {
	__u32 abi_version;
	__u32 nr_devices;
	__u32 nr_peers;
	__u32 batch_max;
	__u32 ring_max;
	__u32 regions_max;
	__u32 segments_max;
	__u32 opens_max;
	__u64 features;
	__u64 pinned;
	__u64 memlock;
	__u8 uuid[16];
	char node_name[RMPOOL_NAME_MAX];
	char module_version[32];
	__u64 user_pinned;
	__u64 user_limit;
	__u64 node_pinned;
	__u64 node_limit;
	__u64 cache_limit;
	__u64 cache_bytes;
	__u64 cache_hits;
	__u64 cache_misses;
	__u64 cache_evictions;
	__u64 cache_invalidations;
	__u64 staging_limit;
	__u64 staging_requests;
	__u64 staging_bytes;
	__u64 staging_fallbacks;
};

/**
 * struct rmpool_ring_setup - create the completion ring of a file, once
 * @entries: power of two from RMPOOL_RING_MIN to RMPOOL_RING_MAX
 * @flags: zero
 * @eventfd: signalled when completions are added, or -1
 * @head_offset: out: where in the mapping the reader's u32 counter is
 * @tail_offset: out: where in the mapping the writer's u32 counter is
 * @entries_offset: out: where in the mapping the entries begin
 * @mmap_offset: out: offset for mmap()
 * @mmap_size: out: length for mmap(), with PROT_READ | PROT_WRITE, MAP_SHARED
 *
 * Entry n is at index n & (entries - 1). The kernel writes entries and then
 * the tail with release order; the reader loads the tail with acquire order,
 * reads entries, and then stores the head with release order. Both count up
 * and wrap at 2^32. A file has at most one ring (EBUSY).
 */
struct rmpool_ring_setup {
	__u32 entries;
	__u32 flags;
	__s32 eventfd;
	__u32 head_offset;
	__u32 tail_offset;
	__u32 entries_offset;
	__u64 mmap_offset;
	__u64 mmap_size;
	struct rmpool_error error;
};

/* What may be done with the memory of a region. */
#define RMPOOL_ACCESS_LOCAL_WRITE	0x1U	/* own gets may write it */
#define RMPOOL_ACCESS_REMOTE_READ	0x2U	/* peers may get from it */
#define RMPOOL_ACCESS_REMOTE_WRITE	0x4U	/* peers may put to it */
#define RMPOOL_ACCESS_ALL		(RMPOOL_ACCESS_LOCAL_WRITE | \
					 RMPOOL_ACCESS_REMOTE_READ | \
					 RMPOOL_ACCESS_REMOTE_WRITE)

/* As &struct rmpool_region_add.flags: no relaxed ordering. For memory that is
 * polled for what a peer puts, in place of waiting for word of it: then the bytes
 * of a put must show up in order.
 */
#define RMPOOL_REGION_STRICT_ORDER	0x1U
/* And: a range of the dma-buf behind &struct rmpool_region_add.dmabuf_fd. */
#define RMPOOL_REGION_DMABUF		0x2U

/**
 * struct rmpool_segment_create - publish a segment under a name
 * @name: 1 to 63 characters out of letters, digits and ``._:@-``, NUL-padded
 * @flags: zero
 * @handle: out: the segment, for REGION_ADD and SEGMENT_DELETE; never 0
 * @error: out
 *
 * The name must be free on this node (EEXIST). The segment begins empty, and everybody
 * who may connect may open it: see SEGMENT_ALLOW.
 */
struct rmpool_segment_create {
	char name[RMPOOL_NAME_MAX];
	__u32 flags;
	__u32 handle;
	struct rmpool_error error;
};

/**
 * struct rmpool_handle - names one object of a file
 * @handle: the object
 * @flags: zero
 *
 * Used by SEGMENT_DELETE (its regions become local ones), REGION_DEL and
 * SEGMENT_CLOSE. An unknown handle gives ENOENT.
 */
struct rmpool_handle {
	__u32 handle;
	__u32 flags;
};

/**
 * struct rmpool_allow_entry - what one peer may do with a segment
 * @peer: name of an entry of the peer table, there or not, NUL-padded; "@" and the name of a
 *	trust group: who is in it and not named; or "*": the others
 * @access: RMPOOL_ACCESS_REMOTE_READ, RMPOOL_ACCESS_REMOTE_WRITE, both, or 0: nothing
 * @reserved: zero
 */
struct rmpool_allow_entry {
	char peer[RMPOOL_NAME_MAX];
	__u32 access;
	__u32 reserved;
};

/* As &struct rmpool_segment_allow.flags: there is a list. Without, everybody may open the
 * segment.
 */
#define RMPOOL_ALLOW_LIST		0x1U

/**
 * struct rmpool_segment_allow - say who may open a segment
 * @entries: address of an array of @nr &struct rmpool_allow_entry, each name once
 * @handle: a published segment of this file
 * @nr: how many, 0 to RMPOOL_ALLOW_MAX; with RMPOOL_ALLOW_LIST and 0, nobody may
 * @size: sizeof(struct rmpool_allow_entry) of the caller, the distance of elements
 * @flags: 0 or RMPOOL_ALLOW_LIST; without it, @nr is 0
 * @rekeyed: out: regions that got other keys, since peers had those of before
 * @lost: out: how many of these are not on all their devices any more
 * @error: out: the entry at fault in @error.need; or, if regions were lost, the limit
 *
 * The list takes the place of the one before. What a peer may do with a region is what
 * both the list and the access of the region allow; where it is nothing at all, it cannot
 * open the segment (EACCES there), and loses it if it has it open: its requests end with
 * EACCES.
 *
 * When it returns, what was withdrawn is gone. A peer may remember keys that it was told,
 * so all regions that it could reach so have got other ones; those who still may were
 * told these, and go on with their requests. Peers that do not let go of the old keys in
 * time (module parameter revoke_wait_ms, as for REGION_DEL) lose their queue pairs. Devices
 * check the access of the region; that a peer only uses the part that the list allows is
 * up to its own module.
 *
 * Errors: EINVAL (malformed entry, among others), EEXIST (a name twice), E2BIG (@nr above
 * the limit), EFAULT, ENOENT (no such segment), ENOMEM: nothing was changed. ENOSPC: the
 * list holds, but there was no room on a device to give some regions other keys; peers
 * reach these through the other devices that they are on, if any, as own requests do. EINTR: the
 * list holds, and the rest happens in the background. If the structure cannot be written
 * at the end, EFAULT, the list holds as well.
 */
struct rmpool_segment_allow {
	__u64 entries;
	__u32 handle;
	__u32 nr;
	__u32 size;
	__u32 flags;
	__u32 rekeyed;
	__u32 lost;
	struct rmpool_error error;
};

/**
 * struct rmpool_region_add - register memory of the caller
 * @addr: start, of any alignment
 * @length: bytes, not 0
 * @offset: where in the segment: a value, or RMPOOL_OFFSET_NEXT; out: the
 *	offset taken. Must be 0 when @segment is 0.
 * @segment: a published segment of this file, or 0 for a local region
 * @access: RMPOOL_ACCESS_*. The pages must be writable only if LOCAL_WRITE or
 *	REMOTE_WRITE is asked for; REMOTE_WRITE includes LOCAL_WRITE.
 * @flags: RMPOOL_REGION_*. With STRICT_ORDER, devices that force relaxed ordering
 *	are not used for it
 * @dmabuf_fd: with RMPOOL_REGION_DMABUF: of the dma-buf; zero else
 * @handle: out: the region, for REGION_DEL; never 0. 0 when it failed
 * @status: out: 0, or the negative errno of this region
 * @error: out
 * @dmabuf_offset: with RMPOOL_REGION_DMABUF: where in the dma-buf, of any
 *	alignment; zero else
 *
 * Registers exactly the bytes asked for, whole or not at all. The pages are
 * pinned and charged once, however many devices there are: to RLIMIT_MEMLOCK, to
 * the user who opened the file, and to the node.
 *
 * A region is those pages. When the caller lets go of one of them (munmap(),
 * mremap(), MADV_DONTNEED, a hole punched, a file truncated), the region is stale:
 * requests that use it, here and at peers, get ESTALE, whatever is mapped there
 * then, and the pages stay pinned until it is unregistered.
 *
 * Memory is what has pages: anonymous, of a memfd, in tmpfs or hugetlbfs, a file
 * mapped privately. A shared mapping of a file in another file system can be read
 * (FILE_MAPPING else, or with DAX), a mapping of a device not at all
 * (DEVICE_MAPPING): both give EOPNOTSUPP, before anything is changed.
 *
 * A dma-buf is registered by its descriptor, which may be closed afterwards. @addr
 * is then no more than the name of the first byte in requests, any range that does
 * not wrap: the address that the buffer has on a GPU, or where it is mapped. It is
 * charged to the user and the node, not to RLIMIT_MEMLOCK: its exporter has the
 * memory. What becomes of the mappings of the process does not matter to it; it is
 * stale when its exporter takes it back. Devices that the exporter refuses are not
 * used for it.
 *
 * Errors: EINVAL (among others: @dmabuf_fd is of something else), EBADF
 * (@dmabuf_fd), ERANGE (past the end of the dma-buf), ESTALE (its exporter took it
 * back meanwhile), EFAULT (a page is missing or not writable), EOPNOTSUPP (of a kind
 * that cannot be registered, no device has strict order, or none reaches the dma-buf,
 * or there are no dma-bufs), ENOMEM (limit named in
 * @error, or out of memory), EEXIST (offset taken), ENOENT (no such segment), ENODEV
 * (no usable device), EINTR.
 */
struct rmpool_region_add {
	__u64 addr;
	__u64 length;
	__u64 offset;
	__u32 segment;
	__u32 access;
	__u32 flags;
	__s32 dmabuf_fd;
	__u32 handle;
	__s32 status;
	struct rmpool_error error;
	__u64 dmabuf_offset;
};

/**
 * struct rmpool_region_add_many - register many ranges, each for itself
 * @regions: address of an array of @nr &struct rmpool_region_add, read and written
 *	back by the same rules, one after the other
 * @nr: how many, 1 to RMPOOL_BATCH_MAX
 * @size: sizeof(struct rmpool_region_add) of the caller, the distance of elements
 * @flags: zero
 * @tried: out: how many were tried, from the first on; status, handle, offset and
 *	error of each of those are set, of the others nothing is
 * @failed: out: how many of those have a status other than 0
 * @reserved: zero
 * @error: out: why the call failed, not why an element did
 *
 * One that fails does not keep the next ones from being tried. A signal does, as
 * does an element that cannot be read or written (it is undone then): the call
 * succeeds if any was tried before, and the one for the rest fails.
 *
 * Errors: EINVAL, E2BIG (@nr above the limit; in elements, as for structures),
 * EFAULT, EINTR. If this structure cannot be written at the end, EFAULT, the
 * regions in the array are registered all the same.
 */
struct rmpool_region_add_many {
	__u64 regions;
	__u32 nr;
	__u32 size;
	__u32 flags;
	__u32 tried;
	__u32 failed;
	__u32 reserved;
	struct rmpool_error error;
};

/**
 * struct rmpool_region_del_many - unregister many regions
 * @handles: address of an array of @nr __u32
 * @status: address of an array of @nr __s32, for 0 or -ENOENT each; 0: not wanted
 * @nr: how many, 1 to RMPOOL_BATCH_MAX
 * @flags: zero
 * @tried: out: how many are done, from the first on, also when the call fails
 * @failed: out: how many of those are unknown
 * @error: out
 *
 * As REGION_DEL for each, but peers and devices are waited for together, and a
 * silent peer is waited for once.
 *
 * Errors: EINVAL, E2BIG (@nr above the limit), EFAULT, ENOMEM, EINTR.
 */
struct rmpool_region_del_many {
	__u64 handles;
	__u64 status;
	__u32 nr;
	__u32 flags;
	__u32 tried;
	__u32 failed;
	struct rmpool_error error;
};

/**
 * struct rmpool_segment_open - open a segment of a peer
 * @node: name of an entry of the peer table, NUL-padded
 * @name: name of the segment there, NUL-padded
 * @timeout_ns: how long to try, connecting included; negative: no limit
 * @flags: zero
 * @handle: out: for requests, SEGMENT_LIST and SEGMENT_CLOSE; never 0
 * @nr_regions: out: regions it has now
 * @reserved: zero
 * @size: out: end of its last region, in bytes
 * @generation: out: counts changes of its regions, as this node learns of them; another
 *	number for the same handle: SEGMENT_LIST tells something else
 * @error: out
 *
 * Errors: EINVAL, ENOENT (peer or segment unknown), ETIMEDOUT, ECONNREFUSED,
 * EHOSTUNREACH, EACCES (not trusted, or not allowed to open that segment), EPROTONOSUPPORT
 * (version), EPROTO
 * (malformed answer), ELOOP (the peer is this node), EADDRINUSE (it is connected
 * under another name), ESTALE (it came back as another node meanwhile), ENODEV
 * (no usable device), EMFILE (too many opened segments, of the file or of the
 * peer), ENOSPC (the peer lets us open no more, or it has too many keys), ENOMEM,
 * EINTR; @error has the reason.
 */
struct rmpool_segment_open {
	char node[RMPOOL_NAME_MAX];
	char name[RMPOOL_NAME_MAX];
	__s64 timeout_ns;
	__u32 flags;
	__u32 handle;
	__u32 nr_regions;
	__u32 reserved;
	__u64 size;
	__u64 generation;
	struct rmpool_error error;
};

/* Its owner let go of the memory: put and get give ESTALE. */
#define RMPOOL_REGION_DESC_STALE	0x1U

/**
 * struct rmpool_region_desc - one region of an opened segment
 * @offset: where it begins in the segment
 * @length: bytes
 * @access: RMPOOL_ACCESS_REMOTE_READ, RMPOOL_ACCESS_REMOTE_WRITE
 * @flags: RMPOOL_REGION_DESC_*
 */
struct rmpool_region_desc {
	__u64 offset;
	__u64 length;
	__u32 access;
	__u32 flags;
};

/**
 * struct rmpool_segment_list - the regions of an opened segment
 * @handle: from SEGMENT_OPEN
 * @flags: zero
 * @regions: address of an array of &struct rmpool_region_desc
 * @first: how many regions to skip
 * @nr: in: room in the array; out: entries written, in order of offset; fewer than there
 *	is room for when the regions change meanwhile
 * @generation: out: as in &struct rmpool_segment_open
 * @total: out: regions in all
 * @reserved: zero
 */
struct rmpool_segment_list {
	__u32 handle;
	__u32 flags;
	__u64 regions;
	__u32 first;
	__u32 nr;
	__u64 generation;
	__u32 total;
	__u32 reserved;
};

/* Operations of a request. */
#define RMPOOL_OP_PUT		1	/* local memory to the segment */
#define RMPOOL_OP_GET		2	/* the segment to local memory */

/* Classes of a request. */
#define RMPOOL_CLASS_NORMAL	0
#define RMPOOL_CLASS_HIGH	1
#define RMPOOL_CLASS_BULK	2

/* As &struct rmpool_request.flags: if no region of the caller allows it, copy the bytes
 * through memory of the module, if they are few; else register the
 * memory now, and keep it registered for further requests with this flag, until room
 * is needed for others or the caller lets go of the memory. It is charged as any other.
 */
#define RMPOOL_REQUEST_REGISTER		0x1U

/**
 * struct rmpool_request - one put or get
 * @cookie: comes back in the completion
 * @local_addr: within one registered region of this file, unless @flags has
 *	RMPOOL_REQUEST_REGISTER
 * @length: bytes; the range must lie within one local region and within one
 *	region of the segment. A request of 0 bytes moves nothing and succeeds:
 *	@segment must be an opened one, @local_addr and @offset are not looked at
 * @offset: in the segment
 * @segment: handle from SEGMENT_OPEN
 * @op: RMPOOL_OP_PUT or RMPOOL_OP_GET
 * @prio: RMPOOL_CLASS_*
 * @flags: 0 or RMPOOL_REQUEST_REGISTER
 * @timeout_ms: after that many milliseconds the request ends with ETIMEDOUT
 *	at the latest; 0: the module's default
 * @reserved: zero
 *
 * The memory must not be reused before the completion is there, nor, where
 * RMPOOL_COMPLETION_UNKNOWN is set in it, before the region is unregistered, or, if it
 * was registered for the request, before it is unmapped; if it was copied, it may be
 * reused then. Requests of one batch run in any order.
 *
 * With RMPOOL_REQUEST_REGISTER, memory that lies in no region may be copied: up to
 * &struct rmpool_info.staging_limit bytes, if there is room. Then nothing is registered.
 * What a put moves is what was there during the call that submits, whatever becomes of the
 * memory afterwards. A get writes to the memory before its completion is there, and never
 * afterwards, also with RMPOOL_COMPLETION_UNKNOWN; what is unmapped meanwhile is not
 * written, nor what is mapped there then: it ends with ESTALE, or with EFAULT if nothing is.
 *
 * Otherwise whole pages are registered, of any kind that REGION_ADD
 * takes: only to be read for a put, to be written for a get. That happens in the call
 * that submits; it may wait for other requests to end when these use up
 * &struct rmpool_info.cache_limit. Memory that lies in a stale region is not registered
 * again: unregister the region.
 */
struct rmpool_request {
	__u64 cookie;
	__u64 local_addr;
	__u64 length;
	__u64 offset;
	__u32 segment;
	__u8 op;
	__u8 prio;
	__u16 flags;
	__u32 timeout_ms;
	__u32 reserved[5];
};

/* Some slices were still with the device when the request was reported, or, of a put,
 * on a queue pair that died, and the peer had not confirmed that its end is dead, too:
 * their bytes may yet be written (put: at the peer, get: in local memory).
 */
#define RMPOOL_COMPLETION_UNKNOWN	0x1U

/**
 * struct rmpool_completion - how one request ended
 * @cookie: of the request
 * @bytes: known to be moved; not necessarily the first ones unless all are
 * @status: 0, or a negative errno:
 *	EINVAL (malformed), EBADF (no such handle), EFAULT (local address not
 *	in a region, or nothing that can be registered), ERANGE (past the end
 *	of a local or remote region), ENXIO
 *	(no region at that offset of the segment), EACCES (no right, or withdrawn
 *	before all was posted), ESTALE
 *	(region or segment gone, or the owner of the memory let go of it),
 *	ETIMEDOUT, ECANCELED, ENOTCONN (no rail), ENETUNREACH (no rail can be
 *	connected between the devices that have the next bytes here and those
 *	that have them there; what is before these may have moved),
 *	EREMOTEIO (peer refused the access), ECONNRESET (connection broke, or rails
 *	did more often than the parameter max_failover allows), EIO;
 *	with RMPOOL_REQUEST_REGISTER, or when local memory is to be mapped for the
 *	trust group of the peer, also ENOMEM (a limit, or out of memory),
 *	EOPNOTSUPP (of a kind that cannot be registered, or the limit for such
 *	requests is 0), ENODEV (no usable device) and E2BIG (no such chunks there)
 * @flags: RMPOOL_COMPLETION_*
 * @wc_status: the verbs' status of the first slice that failed, or 0; a request that
 *	succeeded has one if that slice was posted again
 * @attempts: how many times a slice of it was posted again, since its queue pair
 *	died; stays at 255 when there are more
 * @rail: index of the rail that failed or of the last one used
 * @elapsed_us: from submit to the end; stays at ~0 when it is longer
 */
struct rmpool_completion {
	__u64 cookie;
	__u64 bytes;
	__s32 status;
	__u16 flags;
	__u8 wc_status;
	__u8 attempts;
	__u32 rail;
	__u32 elapsed_us;
};

/**
 * struct rmpool_submit - submit requests; completions go to the ring
 * @requests: address of an array of &struct rmpool_request
 * @nr: how many, 1 to RMPOOL_BATCH_MAX
 * @flags: zero
 * @accepted: out: how many were taken, from the first on; each of those has
 *	exactly one completion, the bad ones among them as well
 * @reserved: zero
 * @error: out: why the call failed, or, if it did not, why memory could not be
 *	registered for the first of the requests for which that failed
 *
 * A completion slot is reserved for each request. When the ring has room for
 * a part only, that part is taken; when it has none, EAGAIN.
 *
 * Errors: EINVAL, E2BIG (@nr above the limit), EFAULT, EAGAIN, ENXIO (no
 * ring), ENOMEM.
 */
struct rmpool_submit {
	__u64 requests;
	__u32 nr;
	__u32 flags;
	__u32 accepted;
	__u32 reserved;
	struct rmpool_error error;
};

/**
 * struct rmpool_submit_sync - submit requests and wait for all of them
 * @requests: address of an array of &struct rmpool_request
 * @results: address of an array of @nr &struct rmpool_completion, filled in
 *	order of the requests
 * @nr: how many, 1 to RMPOOL_BATCH_MAX
 * @flags: zero
 * @timeout_ns: ends the whole batch; negative: no limit
 * @failed: out: how many of them have a status other than 0
 * @reserved: zero
 * @error: out: as in &struct rmpool_submit
 *
 * Needs no ring and does not touch it. When a signal or the time-out ends the
 * wait, what was not posted is cancelled, the results are filled in as far as
 * they are known, and the call fails with EINTR or ETIMEDOUT.
 */
struct rmpool_submit_sync {
	__u64 requests;
	__u64 results;
	__u32 nr;
	__u32 flags;
	__s64 timeout_ns;
	__u32 failed;
	__u32 reserved;
	struct rmpool_error error;
};

/**
 * struct rmpool_wait - wait until the ring holds completions
 * @min: return when so many are unread; 1 to the size of the ring
 * @flags: zero
 * @timeout_ns: negative: no limit; 0: only look. Out: what is left of it
 * @available: out: unread completions now
 * @reserved: zero
 *
 * Errors: EINVAL, ENXIO (no ring), ETIME (fewer than @min came in time), EINTR.
 */
struct rmpool_wait {
	__u32 min;
	__u32 flags;
	__s64 timeout_ns;
	__u32 available;
	__u32 reserved;
};

#define RMPOOL_CANCEL_ALL	0x1U	/* all requests of the file */

/**
 * struct rmpool_cancel - end requests early
 * @cookie: which ones; ignored with RMPOOL_CANCEL_ALL
 * @flags: 0 or RMPOOL_CANCEL_ALL
 * @cancelled: out: how many requests will end with ECANCELED
 *
 * What is queued is not posted any more; slices that are with the device
 * finish first, and then the request ends with ECANCELED. A request that ends
 * in the same moment keeps its own status.
 */
struct rmpool_cancel {
	__u64 cookie;
	__u32 flags;
	__u32 cancelled;
};

#define RMPOOL_IOC_MAGIC	0xBD

#define RMPOOL_IOC_INFO		_IOWR(RMPOOL_IOC_MAGIC, 0x00, struct rmpool_info)
#define RMPOOL_IOC_RING_SETUP	_IOWR(RMPOOL_IOC_MAGIC, 0x01, struct rmpool_ring_setup)
#define RMPOOL_IOC_SEGMENT_CREATE _IOWR(RMPOOL_IOC_MAGIC, 0x02, struct rmpool_segment_create)
#define RMPOOL_IOC_SEGMENT_DELETE _IOWR(RMPOOL_IOC_MAGIC, 0x03, struct rmpool_handle)
#define RMPOOL_IOC_REGION_ADD	_IOWR(RMPOOL_IOC_MAGIC, 0x04, struct rmpool_region_add)
#define RMPOOL_IOC_REGION_DEL	_IOWR(RMPOOL_IOC_MAGIC, 0x05, struct rmpool_handle)
#define RMPOOL_IOC_SEGMENT_OPEN	_IOWR(RMPOOL_IOC_MAGIC, 0x06, struct rmpool_segment_open)
#define RMPOOL_IOC_SEGMENT_CLOSE _IOWR(RMPOOL_IOC_MAGIC, 0x07, struct rmpool_handle)
#define RMPOOL_IOC_SEGMENT_LIST	_IOWR(RMPOOL_IOC_MAGIC, 0x08, struct rmpool_segment_list)
#define RMPOOL_IOC_SUBMIT	_IOWR(RMPOOL_IOC_MAGIC, 0x09, struct rmpool_submit)
#define RMPOOL_IOC_SUBMIT_SYNC	_IOWR(RMPOOL_IOC_MAGIC, 0x0a, struct rmpool_submit_sync)
#define RMPOOL_IOC_WAIT		_IOWR(RMPOOL_IOC_MAGIC, 0x0b, struct rmpool_wait)
#define RMPOOL_IOC_CANCEL	_IOWR(RMPOOL_IOC_MAGIC, 0x0c, struct rmpool_cancel)
#define RMPOOL_IOC_REGION_ADD_MANY _IOWR(RMPOOL_IOC_MAGIC, 0x0d, struct rmpool_region_add_many)
#define RMPOOL_IOC_REGION_DEL_MANY _IOWR(RMPOOL_IOC_MAGIC, 0x0e, struct rmpool_region_del_many)
#define RMPOOL_IOC_SEGMENT_ALLOW _IOWR(RMPOOL_IOC_MAGIC, 0x0f, struct rmpool_segment_allow)

#endif /* _UAPI_LINUX_RMPOOL_H */
