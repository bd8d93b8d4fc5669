/* SPDX-License-Identifier: MIT */
/*
 * librmpool - use of the RDMA memory pool from C and C++
 *
 * Part one talks to /dev/rmpool: memory, segments, puts and gets. Part two
 * talks to the netlink family: the node, its devices, its peers, and events.
 * Part three is text: endpoints, addresses, names of numbers.
 *
 * Errors. Every function that can fail returns a negative errno; errno itself
 * is not used. rmpool_error() then has a sentence about it for the calling
 * thread: what failed, which limit was met, what to do.
 *
 * Time-outs are in milliseconds. A negative one waits without limit. A signal
 * ends every wait of part one with -EINTR; that of rmpool_unregister(),
 * rmpool_unregister_many(), rmpool_unpublish() and rmpool_segment_allow() only when it ends
 * the process.
 *
 * Threads. One struct rmpool may be used by any number of threads at once; one
 * may submit while another waits, and several may poll. Only rmpool_close()
 * must be the last call. A struct rmpool_nl is for one thread at a time.
 *
 * Processes. After fork() only the process that opened a struct rmpool can use
 * it; in the other, all calls but rmpool_close() and rmpool_info() give -EPERM,
 * and an arena can only be destroyed.
 */
#ifndef RMPOOL_H
#define RMPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/rmpool.h>
#include <linux/rmpool_netlink.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Some functions have the name of the structure that they are about, as stat()
 * does. That is sound in C++ as well, but -Wshadow remarks on it.
 */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* ------------------------------------------------------------------ errors */

/* The sentence about the last call of this thread that failed. Never NULL;
 * valid until the next call of the library in this thread.
 */
const char *rmpool_error(void);

/* The same as numbers, with reason RMPOOL_REASON_NONE when the module gave no
 * reason. Never NULL; valid as above.
 */
const struct rmpool_error *rmpool_error_detail(void);

/* A short name of an enum rmpool_reason, as "memlock"; "unknown" for others. */
const char *rmpool_reason_name(uint32_t reason);

/* What an enum rmpool_reason means, as a part of a sentence. */
const char *rmpool_strerror(uint32_t reason);

/* What the status of a completion means, as a part of a sentence. */
const char *rmpool_status_text(int status);

/* Version of the library, as "0.1.0". */
const char *rmpool_version(void);

/* ------------------------------------------- part one: the pool and memory */

struct rmpool;

/*
 * Open the pool. @path: the device, or NULL for RMPOOL_DEVICE_PATH. @flags: 0.
 * -ENOENT: the module is not loaded. -EACCES: not in the group of the device.
 */
int rmpool_open(struct rmpool **pool, const char *path, unsigned int flags);

/* Close it: published segments, regions, and what is in flight end. NULL is
 * allowed.
 */
void rmpool_close(struct rmpool *pool);

/* The descriptor, for poll() and epoll: readable while the ring has unread
 * completions. Do not close it.
 */
int rmpool_fd(const struct rmpool *pool);

/* What node and file can do. @size: sizeof(*info). */
int rmpool_info(struct rmpool *pool, struct rmpool_info *info, size_t size);

/* Publish an empty segment under a name that is free on this node. */
int rmpool_publish(struct rmpool *pool, const char *name, uint32_t *segment);

/* Withdraw it; its regions stay registered as local ones. */
int rmpool_unpublish(struct rmpool *pool, uint32_t segment);

/*
 * Say who may open a published segment, and with what access: @nr entries, made by
 * rmpool_allow_parse(), take the place of those before. NULL: everybody, as at first; an
 * array with @nr 0: nobody. What a peer may do with a region is what the region allows as
 * well. Returns when what was withdrawn is gone: how many regions got other keys for that.
 * -ENOSPC: it is gone, but there was no room on a device to give some regions other keys,
 * which are not reached through it any more.
 */
int rmpool_segment_allow(struct rmpool *pool, uint32_t segment,
			 const struct rmpool_allow_entry *entries, uint32_t nr);

/*
 * Read "peer", "peer:rw" (the same), "peer:ro" (may get), "peer:wo" (may put) or
 * "peer:no"; the peer is an entry of the peer table, "@" and a trust group: those of it that
 * are not named, or "*": all others. -EINVAL: malformed, and nothing is written.
 */
int rmpool_allow_parse(const char *text, struct rmpool_allow_entry *entry);

/*
 * Register memory. @access: RMPOOL_ACCESS_*. @segment: from rmpool_publish(),
 * or 0 for memory that only own requests use. @offset: where in the segment,
 * or RMPOOL_OFFSET_NEXT; 0 without a segment. @region: out: handle. @placed:
 * out: the offset taken; may be NULL.
 *
 * The bytes are pinned and charged to RLIMIT_MEMLOCK until they are
 * unregistered, whole or not at all.
 */
int rmpool_register(struct rmpool *pool, void *addr, size_t length,
		    uint32_t access, uint32_t segment, uint64_t offset,
		    uint32_t *region, uint64_t *placed);
/* The same with RMPOOL_REGION_* in @flags. */
int rmpool_register_flags(struct rmpool *pool, void *addr, size_t length,
			  uint32_t access, uint32_t flags, uint32_t segment,
			  uint64_t offset, uint32_t *region, uint64_t *placed);

/*
 * Register @length bytes of the dma-buf behind @fd, from @start on; @fd may be closed
 * afterwards. Requests call the first of them @addr, which need not be mapped: the
 * address that it has on a GPU, for instance. @flags: 0 or
 * RMPOOL_REGION_STRICT_ORDER. The rest as for rmpool_register(), but it is not
 * charged to RLIMIT_MEMLOCK.
 */
int rmpool_register_dmabuf(struct rmpool *pool, int fd, uint64_t start, void *addr,
			   size_t length, uint32_t access, uint32_t flags,
			   uint32_t segment, uint64_t offset, uint32_t *region,
			   uint64_t *placed);

/*
 * Returns when no peer and no device uses the memory any more, and it is unpinned. A peer
 * that does not let go of it in the module's revoke_wait_ms has its queue pairs closed.
 */
int rmpool_unregister(struct rmpool *pool, uint32_t region);

/*
 * Register up to RMPOOL_BATCH_MAX ranges with one call, each for itself. @regions:
 * @nr entries, made by rmpool_prepare_region(). @size: sizeof(*regions). Returns
 * how many were tried, from the first on: all, or fewer when a signal came. Each of
 * those has its status (0 or a negative errno), and its handle and offset, or an
 * error. If one failed, rmpool_error() is about the first of them. -EINTR: a signal
 * came before any.
 */
int rmpool_register_many(struct rmpool *pool, struct rmpool_region_add *regions,
			 uint32_t nr, size_t size);

/* Fill in a range for rmpool_register_many(), as the arguments of
 * rmpool_register().
 */
static inline void rmpool_prepare_region(struct rmpool_region_add *range, void *addr,
					 uint64_t length, uint32_t access,
					 uint32_t segment, uint64_t offset)
{
	memset(range, 0, sizeof(*range));
	range->addr = (uint64_t)(uintptr_t)addr;
	range->length = length;
	range->access = access;
	range->segment = segment;
	range->offset = offset;
}

/*
 * Unregister up to RMPOOL_BATCH_MAX regions; as rmpool_unregister() for each, but
 * peers and devices are waited for once. @status: @nr entries, 0 or -ENOENT each;
 * may be NULL. Returns how many there were not.
 */
int rmpool_unregister_many(struct rmpool *pool, const uint32_t *regions, uint32_t nr,
			   int32_t *status);

/* What rmpool_segment_open() found; reserved is for growth. */
struct rmpool_segment_info {
	uint64_t size;		/* end of the last region */
	uint64_t generation;	/* counts changes of the regions, as they come to be known here */
	uint32_t nr_regions;
	uint32_t reserved[11];
};

/*
 * Open a segment of a peer. @node: name in the peer table. @name: of the
 * segment, or NULL when @node is "node/segment". @segment: out: handle for
 * requests. @info: out; may be NULL.
 */
int rmpool_segment_open(struct rmpool *pool, const char *node, const char *name,
			int timeout_ms, uint32_t *segment,
			struct rmpool_segment_info *info);

/* Close it; later requests to it end with -EBADF. */
int rmpool_segment_close(struct rmpool *pool, uint32_t segment);

/*
 * The regions of an opened segment in order of offset. @regions: out: an array
 * that the caller frees with free(); NULL when there are none. @nr: out: its
 * length. @generation: out: the state it shows; may be NULL.
 */
int rmpool_segment_regions(struct rmpool *pool, uint32_t segment,
			   struct rmpool_region_desc **regions, uint32_t *nr,
			   uint64_t *generation);

/*
 * Put @length bytes at @addr to @offset of an opened segment, or get them from
 * there, and wait for the end. The memory must lie in one registered region.
 * @timeout_ms 0: the module's default for requests. Where rmpool_error() says
 * so after a failure, a device may still use the memory: unregister it before
 * it is used for something else.
 */
int rmpool_put(struct rmpool *pool, uint32_t segment, uint64_t offset,
	       const void *addr, size_t length, int timeout_ms);
int rmpool_get(struct rmpool *pool, uint32_t segment, uint64_t offset,
	       void *addr, size_t length, int timeout_ms);
/*
 * The same with RMPOOL_REQUEST_* in @flags. With RMPOOL_REQUEST_REGISTER the memory
 * need not be registered: the module copies a few bytes, and registers more, which it
 * keeps registered for further requests with this flag, up to a limit of the pool
 * (rmpool_info()).
 */
int rmpool_put_flags(struct rmpool *pool, uint32_t segment, uint64_t offset,
		     const void *addr, size_t length, uint16_t flags,
		     int timeout_ms);
int rmpool_get_flags(struct rmpool *pool, uint32_t segment, uint64_t offset,
		     void *addr, size_t length, uint16_t flags, int timeout_ms);

/*
 * Run up to RMPOOL_BATCH_MAX requests and wait for all of them. @results: @nr
 * entries, filled in order of the requests. Returns how many have a status
 * other than 0, or a negative errno: with -EINTR and -ETIMEDOUT the results
 * are filled in as far as they are known, with others nothing was started.
 * @timeout_ms 0 or negative: only the time-outs in the requests count. When memory
 * could not be registered for a request, rmpool_error() tells why of the first.
 */
int rmpool_transfer(struct rmpool *pool, const struct rmpool_request *requests,
		    uint32_t nr, struct rmpool_completion *results,
		    int timeout_ms);

/* Fill in a request; what is not an argument becomes 0. Its flags may be set
 * afterwards.
 */
static inline void rmpool_prepare_put(struct rmpool_request *request,
				      uint32_t segment, uint64_t offset,
				      const void *addr, uint64_t length,
				      uint64_t cookie)
{
	memset(request, 0, sizeof(*request));
	request->op = RMPOOL_OP_PUT;
	request->segment = segment;
	request->offset = offset;
	request->local_addr = (uint64_t)(uintptr_t)addr;
	request->length = length;
	request->cookie = cookie;
}

static inline void rmpool_prepare_get(struct rmpool_request *request,
				      uint32_t segment, uint64_t offset,
				      void *addr, uint64_t length,
				      uint64_t cookie)
{
	rmpool_prepare_put(request, segment, offset, addr, length, cookie);
	request->op = RMPOOL_OP_GET;
}

/*
 * Create the completion ring, once. @entries: a power of two from
 * RMPOOL_RING_MIN to RMPOOL_RING_MAX. @eventfd: signalled when completions are
 * added, or -1.
 */
int rmpool_ring(struct rmpool *pool, uint32_t entries, int eventfd);

/*
 * Submit up to RMPOOL_BATCH_MAX requests. Returns how many were accepted, from
 * the first on, which may be fewer than @nr; each of those gets exactly one
 * completion. -EAGAIN: the ring has no free entry; poll first. When memory could
 * not be registered for a request, rmpool_error() tells why of the first.
 */
int rmpool_submit(struct rmpool *pool, const struct rmpool_request *requests,
		  uint32_t nr);

/*
 * Take up to @max completions off the ring, without a system call and without
 * waiting. Returns how many.
 */
int rmpool_poll(struct rmpool *pool, struct rmpool_completion *completions,
		uint32_t max);

/*
 * Wait until at least @min completions are unread; returns how many are.
 * @timeout_ms 0: only look. -ETIME: fewer than @min came in time.
 */
int rmpool_wait(struct rmpool *pool, uint32_t min, int timeout_ms);

/* End requests of a cookie, or all of them, early. Returns how many will end
 * with -ECANCELED.
 */
int rmpool_cancel(struct rmpool *pool, uint64_t cookie);
int rmpool_cancel_all(struct rmpool *pool);

/* ------------------------------------------------- part one: arenas of memory */

/*
 * An arena gives out registered memory for buffers of own requests, which name
 * it by its address like any other. Buffers are not given back one by one, but
 * all at once. Address space is reserved for all of an arena; memory is used,
 * pinned and charged to RLIMIT_MEMLOCK step by step, as buffers are given out.
 * All memory begins as zeros and may be written by gets.
 */
struct rmpool_arena;

/* How an arena is to be. Zero the whole; reserved is for growth. */
struct rmpool_arena_options {
	uint64_t size;			/* bytes, rounded up to whole steps */
	uint64_t step;			/* bytes that are registered at once, a power
					 * of two from the page size on; 0: 16 MiB
					 */
	uint64_t reserved[6];
};

/*
 * Create an arena. No memory is registered yet. It belongs to the pool: destroy
 * it before rmpool_close(). -EINVAL: no size, a bad step, a reserved field that
 * is not zero. -ENOMEM: so much address space is not free.
 */
int rmpool_arena_create(struct rmpool *pool,
			const struct rmpool_arena_options *options,
			struct rmpool_arena **arena);

/*
 * Give out @length bytes at a multiple of @align, a power of two; 0: 64. They
 * lie in one region and belong to the caller until rmpool_arena_reset() or
 * rmpool_arena_destroy(). Any number of threads may call this at once; it takes
 * no lock and makes no system call but for the first buffer of a step.
 *
 * When the arena is full, when @length or @align is larger than a step, or when
 * the next step meets a limit, the buffer gets memory and a registration of its
 * own, at the cost of rmpool_register().
 *
 * -EINVAL: no length, or @align is no power of two. Others as rmpool_register()
 * has them, -ENOMEM in particular. After an error nothing has changed.
 */
int rmpool_arena_alloc(struct rmpool_arena *arena, size_t length, size_t align,
		       void **memory);

/*
 * Take all buffers back. Steps stay registered, and give their memory out anew
 * with what is in it; what had a registration of its own is unregistered and
 * unmapped. No other call with @arena may run, and no request may use its
 * memory. After a completion with RMPOOL_COMPLETION_UNKNOWN destroy the arena
 * instead.
 */
void rmpool_arena_reset(struct rmpool_arena *arena);

/*
 * Unregister and unmap all memory of an arena, and end it. Returns when no
 * device uses the memory any more. No other call with @arena may run or follow.
 * NULL is allowed.
 */
void rmpool_arena_destroy(struct rmpool_arena *arena);

/* What an arena is, and what became of it; reserved is for growth. */
struct rmpool_arena_info {
	uint64_t size;			/* bytes of the whole */
	uint64_t step;			/* bytes that are registered at once */
	uint64_t used;			/* bytes given out, with gaps before them */
	uint64_t registered;		/* bytes, used and ready for use */
	uint64_t fallbacks;		/* buffers with a registration of their own */
	uint64_t fallback_bytes;	/* bytes of these, whole pages */
	uint64_t reserved[6];
};

/* The numbers need not be of one moment when other threads allocate. Those of
 * fallbacks count since the last reset.
 */
void rmpool_arena_info(struct rmpool_arena *arena,
		       struct rmpool_arena_info *info);

/* ------------------------------------------------------- part two: netlink */

/*
 * Structures of this part are made by the library, valid during the callback
 * (or until the next call with the handle), and may grow at their end. Texts
 * are never NULL, but empty when they are not known. A uuid or gid points to
 * 16 bytes, or is NULL when it is not known.
 */
struct rmpool_nl;

struct rmpool_nl_node {
	const char *name;
	const uint8_t *uuid;
	const char *listen;		/* endpoint */
	const char *advertise;		/* endpoint */
	const char *version;		/* of the module */
	uint32_t abi;
	uint32_t accept_any;		/* 1: peers not in the table may connect */
	/* of requests with RMPOOL_REQUEST_REGISTER of all processes */
	uint64_t cache_bytes;		/* registered for them now */
	uint64_t cache_hits;		/* that found their memory registered */
	uint64_t cache_misses;		/* for which it was to be registered */
	uint64_t cache_evictions;	/* registrations given up for others */
	uint64_t cache_invalidations;	/* whose owner let go of the memory */
	/* of those of them that are copied instead */
	uint64_t staging_pool;		/* bytes of memory for that */
	uint64_t staging_requests;
	uint64_t staging_bytes;		/* of those */
	uint64_t staging_fallbacks;	/* small ones that found no room */
};

struct rmpool_nl_device {
	const char *name;
	uint32_t index;
	uint32_t port;
	uint32_t state;			/* 4: active; rmpool_port_state_name() */
	uint32_t gid_index;
	const uint8_t *gid;
	const char *address;		/* IP address of the gid */
	const char *netdev;
	int32_t numa;			/* -1: not known */
	uint32_t mtu;			/* bytes */
	uint64_t speed;			/* Mbit/s */
	uint64_t max_msg;		/* bytes */
	uint64_t chunk;			/* bytes */
	uint64_t max_mr;
	uint64_t mrs;			/* in use by rmpool */
	uint32_t usable;
	uint32_t reserved;
	const char *why;		/* it is not usable */
	uint64_t pages;			/* of its memory regions in use by rmpool */
	uint64_t max_pages;		/* 0: no limit */
	uint64_t page_sizes;		/* bytes; all of them or'ed */
	uint32_t ordering;		/* enum rmpool_ordering */
	uint32_t reserved2;
};

struct rmpool_nl_rail {
	const struct rmpool_nl_rail *next;
	uint32_t index;
	uint32_t state;			/* enum rmpool_rail_state */
	const char *local;		/* device/port */
	const char *local_address;
	const char *remote_address;
	uint32_t qps;			/* that are up */
	uint32_t reserved;
	uint64_t put_bytes;
	uint64_t get_bytes;
	uint64_t slices;
	uint64_t errors;
	uint64_t outstanding;		/* bytes */
};

struct rmpool_nl_peer {
	const char *name;
	const char *endpoint;
	const char *remote_name;	/* what it calls itself */
	const uint8_t *uuid;
	uint32_t state;			/* enum rmpool_peer_state */
	uint32_t reason;		/* enum rmpool_reason of the last failure */
	int32_t error;			/* negative errno of the last failure */
	uint32_t dynamic;		/* 1: entry made by accept-any */
	uint32_t nr_rails;
	uint32_t reserved;
	const struct rmpool_nl_rail *rails;
	const char *group;		/* its trust group */
};

/* Who may open a segment. */
struct rmpool_nl_allowed {
	const struct rmpool_nl_allowed *next;
	const char *peer;		/* or "@" and a trust group, or "*": all others */
	uint32_t access;		/* RMPOOL_ACCESS_REMOTE_* */
	uint32_t reserved;
};

struct rmpool_nl_segment {
	const char *name;
	uint32_t id;
	uint32_t regions;
	uint64_t generation;
	uint64_t size;			/* end of the last region */
	uint32_t owner_pid;
	uint32_t owner_uid;
	uint32_t restricted;		/* 1: only those may open it who are allowed */
	uint32_t nr_allowed;
	const struct rmpool_nl_allowed *allowed;
};

struct rmpool_nl_region {
	uint64_t id;
	uint64_t offset;
	uint64_t length;
	uint32_t access;		/* RMPOOL_ACCESS_* */
	uint32_t chunks;
	uint32_t devices;
	uint32_t segment_id;		/* 0: local region */
	const char *segment_name;
	uint32_t owner_pid;
	uint32_t owner_uid;
	uint64_t mrs;			/* memory regions of all its devices */
	uint64_t pages;			/* of those */
	uint32_t state;			/* enum rmpool_region_state */
	uint32_t dmabuf;		/* 1: of a dma-buf */
	uint32_t cached;		/* 1: made for requests of its owner */
	uint32_t percent;		/* how far registering it is; 100: done */
};

enum rmpool_nl_kind {
	RMPOOL_NL_NODE = 1,
	RMPOOL_NL_DEVICE = 2,
	RMPOOL_NL_PEER = 3,
	RMPOOL_NL_SEGMENT = 4
};

struct rmpool_nl_event {
	uint32_t kind;			/* enum rmpool_nl_kind */
	uint32_t change;		/* enum rmpool_event */
	/* The one of that kind is set, the others are NULL. */
	const struct rmpool_nl_node *node;
	const struct rmpool_nl_device *device;
	const struct rmpool_nl_peer *peer;
	const struct rmpool_nl_segment *segment;
};

/* Open the netlink family. -ENOENT: the module is not loaded, or this is not
 * the initial network namespace.
 */
int rmpool_nl_open(struct rmpool_nl **nl);
void rmpool_nl_close(struct rmpool_nl *nl);

/* This node, valid until the next call with @nl. */
int rmpool_nl_node_get(struct rmpool_nl *nl, const struct rmpool_nl_node **node);

enum rmpool_nl_accept {
	RMPOOL_NL_ACCEPT_KEEP = 0,
	RMPOOL_NL_ACCEPT_TABLE = 1,
	RMPOOL_NL_ACCEPT_ANY = 2
};

/* What to change; NULL and 0 leave a setting as it is. Zero the whole. */
struct rmpool_nl_settings {
	const char *name;
	const char *listen;		/* endpoint */
	const char *advertise;		/* endpoint; "": found out by the node */
	uint32_t accept;		/* enum rmpool_nl_accept */
	uint32_t allow_loopback;	/* 1: a loopback address is meant */
	uint64_t reserved[4];
};

/* Change the node, all or nothing. Needs CAP_NET_ADMIN. */
int rmpool_nl_node_set(struct rmpool_nl *nl,
		       const struct rmpool_nl_settings *settings);

/* Add a peer: an endpoint with an IP address, see rmpool_endpoint_resolve().
 * Needs CAP_NET_ADMIN.
 */
int rmpool_nl_peer_add(struct rmpool_nl *nl, const char *name,
		       const char *endpoint, int allow_loopback);
/* The same in a trust group, which is made if there is none of that name; NULL: in the
 * default one. -ENOSPC: there are 16 already.
 */
int rmpool_nl_peer_add_group(struct rmpool_nl *nl, const char *name,
			     const char *endpoint, const char *group,
			     int allow_loopback);
int rmpool_nl_peer_del(struct rmpool_nl *nl, const char *name);

/*
 * Lists. The whole list is received first, so what the callback sees is of one
 * piece, and it may use @nl. A result other than 0 ends the list and is
 * returned.
 */
int rmpool_nl_devices(struct rmpool_nl *nl,
		      int (*cb)(const struct rmpool_nl_device *, void *),
		      void *arg);
int rmpool_nl_peers(struct rmpool_nl *nl,
		    int (*cb)(const struct rmpool_nl_peer *, void *),
		    void *arg);
int rmpool_nl_segments(struct rmpool_nl *nl,
		       int (*cb)(const struct rmpool_nl_segment *, void *),
		       void *arg);
int rmpool_nl_regions(struct rmpool_nl *nl,
		      int (*cb)(const struct rmpool_nl_region *, void *),
		      void *arg);

/* Ask for events from now on. Returns a descriptor for poll(), which belongs
 * to @nl. Needs CAP_NET_ADMIN.
 */
int rmpool_nl_subscribe(struct rmpool_nl *nl);

/*
 * Take the next event without waiting; valid until the next call of this
 * function. Returns 1, or 0 when there is none now. -ENOBUFS: events were
 * lost; list what matters again, then go on.
 */
int rmpool_nl_event(struct rmpool_nl *nl, const struct rmpool_nl_event **event);

/* --------------------------------------------------------- part three: text */

#define RMPOOL_HOST_MAX		256	/* longest host, with the final NUL */
#define RMPOOL_ENDPOINT_MAX	272	/* longest endpoint, with the final NUL */

#define RMPOOL_ENDPOINT_LOOPBACK (1U << 0) /* a loopback address is meant */
#define RMPOOL_ENDPOINT_LISTEN	(1U << 1) /* "0.0.0.0" and "[::]" are meant */

/*
 * host: an IP address in its usual form, without brackets, a link-local one
 * with "%" and the interface number where that matters; or a name.
 */
struct rmpool_endpoint {
	char host[RMPOOL_HOST_MAX];
	uint16_t port;			/* 1 to 65535 */
	uint16_t family;		/* AF_INET, AF_INET6; AF_UNSPEC: a name */
};

/*
 * Read "v1:<host>:<port>"; without "v1:" it is read as version 1, an IPv6
 * address stands in brackets. The kernel takes the same, but for names, which
 * rmpool_endpoint_resolve() replaces. -EINVAL: malformed. -EPROTONOSUPPORT:
 * another version. -EADDRNOTAVAIL: an address that only @flags would allow.
 * Nothing is written on error.
 */
int rmpool_endpoint_parse(const char *text, unsigned int flags,
			  struct rmpool_endpoint *endpoint);

/* Write it, with "v1:". Returns its length, -ENOSPC when @size is too small. */
int rmpool_endpoint_format(const struct rmpool_endpoint *endpoint, char *text,
			   size_t size);

/* Replace a name by its first IP address that @flags allow; may ask a name
 * server, and wait for it.
 */
int rmpool_endpoint_resolve(struct rmpool_endpoint *endpoint,
			    unsigned int flags);

struct rmpool_address {
	char node[RMPOOL_NAME_MAX];
	char segment[RMPOOL_NAME_MAX];
	uint64_t offset;
};

/* Read "node/segment" or "node/segment+offset", the offset decimal or with
 * 0x, and with K, M, G or T for powers of 1024. -EINVAL: malformed.
 */
int rmpool_address_parse(const char *text, struct rmpool_address *address);

/* Names of numbers; "unknown" for values that have none. */
const char *rmpool_event_name(uint32_t change);
const char *rmpool_peer_state_name(uint32_t state);
const char *rmpool_rail_state_name(uint32_t state);
const char *rmpool_region_state_name(uint32_t state);
const char *rmpool_port_state_name(uint32_t state);
const char *rmpool_ordering_name(uint32_t ordering);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* RMPOOL_H */
