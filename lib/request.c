// SPDX-License-Identifier: MIT
/*
 * Puts and gets: blocking ones, and those that complete through the ring.
 *
 * Blocking calls do not touch the ring and need none. The ring is set up once;
 * has_ring is stored with release order after everything else, so that a call
 * that sees it may use the ring without a lock.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NO_RING "there is no completion ring; make one with rmpool_ring()"

static const char *request_why(int err, uint32_t nr)
{
	switch (err) {
	case EINVAL:
		return nr ? NULL : "there is no request";
	case EFAULT:
		return "the array of requests or results is not in accessible memory";
	case ENXIO:
		return NO_RING;
	case EAGAIN:
		return "the completion ring has no free entry; poll first";
	default:
		return rmpl_ioctl_why(err);
	}
}

static int run_sync(struct rmpool *pool, const struct rmpool_request *requests,
		    uint32_t nr, struct rmpool_completion *results,
		    int timeout_ms, struct rmpool_submit_sync *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->requests = (uintptr_t)requests;
	arg->results = (uintptr_t)results;
	arg->nr = nr;
	arg->timeout_ns = timeout_ms > 0 ? rmpl_timeout(timeout_ms) : -1;
	return rmpl_ioctl(pool, RMPOOL_IOC_SUBMIT_SYNC, arg);
}

/* Of requests that failed since their memory could not be registered, the first tells why. */
static void explain_memory(const struct rmpool_error *error, uint32_t nr)
{
	if (error->reason)
		rmpl_fail(ENOMEM, error, NULL,
			  "memory of one of %" PRIu32 " requests cannot be registered", nr);
}

int rmpool_transfer(struct rmpool *pool, const struct rmpool_request *requests,
		    uint32_t nr, struct rmpool_completion *results,
		    int timeout_ms)
{
	struct rmpool_submit_sync arg;
	int ret;

	ret = run_sync(pool, requests, nr, results, timeout_ms, &arg);
	if (ret == -ETIMEDOUT)
		return rmpl_fail(ETIMEDOUT, &arg.error, NULL,
				 "%" PRIu32 " requests did not all end within %d ms",
				 nr, timeout_ms);
	if (ret)
		return rmpl_fail(-ret, &arg.error, request_why(-ret, nr),
				 "cannot run %" PRIu32 " requests", nr);
	explain_memory(&arg.error, nr);
	return (int)arg.failed;
}

/* What is known beyond the status of a request that failed. */
static void describe(char *out, size_t size, const struct rmpool_completion *c,
		     size_t length)
{
	int n = 0;

#define ADD(...) do { \
	if (n >= 0 && (size_t)n < size) \
		n += snprintf(out + n, size - (size_t)n, __VA_ARGS__); \
} while (0)
	ADD("%s", rmpool_status_text(c->status));
	if (c->bytes)
		ADD("; %" PRIu64 " of %zu bytes moved", (uint64_t)c->bytes,
		    length);
	if (c->rail != RMPOOL_RAIL_NONE)
		ADD("; rail %" PRIu32, c->rail);
	if (c->wc_status)
		ADD("; verbs status %u", (unsigned int)c->wc_status);
	if (c->attempts)
		ADD("; %u retries", (unsigned int)c->attempts);
	if (c->flags & RMPOOL_COMPLETION_UNKNOWN)
		ADD("; a device may still use the memory, unregister it before it is used for something else");
#undef ADD
}

static int move(struct rmpool *pool, const struct rmpool_request *request,
		int timeout_ms)
{
	/* A status that no request has: whatever was not filled in stays so. */
	struct rmpool_completion result = {
		.status = 1,
		.rail = RMPOOL_RAIL_NONE,
	};
	const char *what = request->op == RMPOOL_OP_PUT ? "put" : "get";
	struct rmpool_submit_sync arg;
	char bytes[RMPL_QUANTITY_MAX], why[320];
	int ret;

	ret = run_sync(pool, request, 1, &result, timeout_ms, &arg);
	if (ret) {
		/* A wait that was cut short can have left work behind. */
		if (result.status <= 0 &&
		    (result.flags & RMPOOL_COMPLETION_UNKNOWN)) {
			result.status = ret;
			describe(why, sizeof(why), &result, request->length);
			return rmpl_fail(-ret, NULL, why,
					 "%s of %s at offset %" PRIu64 " of segment %" PRIu32,
					 what, rmpl_bytes(request->length, bytes),
					 (uint64_t)request->offset,
					 request->segment);
		}
		return rmpl_fail(-ret, &arg.error,
				 ret == -ETIMEDOUT ? rmpool_status_text(ret) :
						     request_why(-ret, 1),
				 "%s of %s at offset %" PRIu64 " of segment %" PRIu32,
				 what, rmpl_bytes(request->length, bytes),
				 (uint64_t)request->offset, request->segment);
	}
	if (!result.status)
		return 0;
	if (result.status > 0)
		return rmpl_fail(EPROTO, NULL, "the module gave no result",
				 "%s to or from segment %" PRIu32, what,
				 request->segment);
	describe(why, sizeof(why), &result, request->length);
	return rmpl_fail(-result.status, &arg.error, why,
			 "%s of %s at offset %" PRIu64 " of segment %" PRIu32,
			 what, rmpl_bytes(request->length, bytes),
			 (uint64_t)request->offset, request->segment);
}

/* For "no limit" the request itself needs one all the same: 49 days. */
static uint32_t request_timeout(int timeout_ms)
{
	return timeout_ms < 0 ? UINT32_MAX : (uint32_t)timeout_ms;
}

int rmpool_put_flags(struct rmpool *pool, uint32_t segment, uint64_t offset,
		     const void *addr, size_t length, uint16_t flags,
		     int timeout_ms)
{
	struct rmpool_request request;

	rmpool_prepare_put(&request, segment, offset, addr, length, 0);
	request.flags = flags;
	request.timeout_ms = request_timeout(timeout_ms);
	return move(pool, &request, timeout_ms);
}

int rmpool_get_flags(struct rmpool *pool, uint32_t segment, uint64_t offset,
		     void *addr, size_t length, uint16_t flags, int timeout_ms)
{
	struct rmpool_request request;

	rmpool_prepare_get(&request, segment, offset, addr, length, 0);
	request.flags = flags;
	request.timeout_ms = request_timeout(timeout_ms);
	return move(pool, &request, timeout_ms);
}

int rmpool_put(struct rmpool *pool, uint32_t segment, uint64_t offset,
	       const void *addr, size_t length, int timeout_ms)
{
	return rmpool_put_flags(pool, segment, offset, addr, length, 0,
				timeout_ms);
}

int rmpool_get(struct rmpool *pool, uint32_t segment, uint64_t offset,
	       void *addr, size_t length, int timeout_ms)
{
	return rmpool_get_flags(pool, segment, offset, addr, length, 0,
				timeout_ms);
}

static bool has_ring(const struct rmpool *pool)
{
	return atomic_load_explicit(&pool->has_ring, memory_order_acquire);
}

static int fail_ring(uint32_t entries, int err, const struct rmpool_error *detail,
		     const char *why)
{
	return rmpl_fail(err, detail, why,
			 "cannot make a completion ring of %" PRIu32 " entries",
			 entries);
}

static int setup_ring(struct rmpool *pool, uint32_t entries, int eventfd)
{
	struct rmpool_ring_setup arg = {
		.entries = entries,
		.eventfd = eventfd,
	};
	int saved = errno;
	int ret, err;
	void *map;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_RING_SETUP, &arg);
	if (ret == -EBUSY)
		return fail_ring(entries, EBUSY, &arg.error,
				 "the pool has one already");
	if (ret == -EBADF)
		return fail_ring(entries, EBADF, &arg.error,
				 "the descriptor for events is not an eventfd");
	if (ret)
		return fail_ring(entries, -ret, &arg.error,
				 rmpl_ioctl_why(-ret));
	if (arg.mmap_size > SIZE_MAX || arg.mmap_offset > INT64_MAX)
		return fail_ring(entries, EPROTO, NULL, NULL);

	map = mmap(NULL, (size_t)arg.mmap_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, pool->fd, (off_t)arg.mmap_offset);
	if (map == MAP_FAILED) {
		err = errno;
		errno = saved;
		return fail_ring(entries, err, NULL, NULL);
	}
	if (rmpl_ring_init(&pool->ring, map, &arg)) {
		munmap(map, (size_t)arg.mmap_size);
		return fail_ring(entries, EPROTO, NULL,
				 "the module described it wrongly");
	}
	pool->map = map;
	pool->map_size = (size_t)arg.mmap_size;
	atomic_store_explicit(&pool->has_ring, true, memory_order_release);
	return 0;
}

int rmpool_ring(struct rmpool *pool, uint32_t entries, int eventfd)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = setup_ring(pool, entries, eventfd);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

int rmpool_submit(struct rmpool *pool, const struct rmpool_request *requests,
		  uint32_t nr)
{
	struct rmpool_submit arg = {
		.requests = (uintptr_t)requests,
		.nr = nr,
	};
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_SUBMIT, &arg);
	if (ret)
		return rmpl_fail(-ret, &arg.error, request_why(-ret, nr),
				 "cannot submit %" PRIu32 " requests", nr);
	explain_memory(&arg.error, nr);
	return (int)arg.accepted;
}

int rmpool_poll(struct rmpool *pool, struct rmpool_completion *completions,
		uint32_t max)
{
	int ret;

	if (!has_ring(pool))
		return rmpl_fail(ENXIO, NULL, NO_RING, "cannot poll");
	ret = rmpl_ring_take(&pool->ring, completions, max);
	if (ret < 0)
		return rmpl_fail(-ret, NULL,
				 "its counters are broken; was the mapping written over?",
				 "cannot poll the completion ring");
	return ret;
}

int rmpool_wait(struct rmpool *pool, uint32_t min, int timeout_ms)
{
	struct rmpool_wait arg = {
		.min = min,
		.timeout_ns = rmpl_timeout(timeout_ms),
	};
	const char *why;
	char text[64];
	uint32_t unread;
	int ret;

	if (min && has_ring(pool)) {
		unread = rmpl_ring_unread(&pool->ring);
		if (unread >= min)
			return (int)unread;
	}
	ret = rmpl_ioctl(pool, RMPOOL_IOC_WAIT, &arg);
	if (!ret)
		return (int)arg.available;

	why = request_why(-ret, 1);
	if (ret == -ETIME) {
		snprintf(text, sizeof(text), "%" PRIu32 " came within %d ms",
			 arg.available, timeout_ms);
		why = text;
	} else if (ret == -EINVAL) {
		why = "the number must be from 1 to that of the ring's entries";
	}
	return rmpl_fail(-ret, NULL, why,
			 "waiting for %" PRIu32 " completions", min);
}

static int cancel(struct rmpool *pool, uint64_t cookie, uint32_t flags)
{
	struct rmpool_cancel arg = {
		.cookie = cookie,
		.flags = flags,
	};
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_CANCEL, &arg);
	if (ret && flags)
		return rmpl_fail(-ret, NULL, rmpl_ioctl_why(-ret),
				 "cannot cancel all requests");
	if (ret)
		return rmpl_fail(-ret, NULL, rmpl_ioctl_why(-ret),
				 "cannot cancel requests with cookie 0x%" PRIx64,
				 cookie);
	return arg.cancelled > INT32_MAX ? INT32_MAX : (int)arg.cancelled;
}

int rmpool_cancel(struct rmpool *pool, uint64_t cookie)
{
	return cancel(pool, cookie, 0);
}

int rmpool_cancel_all(struct rmpool *pool)
{
	return cancel(pool, 0, RMPOOL_CANCEL_ALL);
}
