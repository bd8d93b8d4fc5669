// SPDX-License-Identifier: MIT
/*
 * Puts and gets, blocking and through the ring: what the library passes to the
 * module, and what it makes of the answers.
 */
#include "fake_module.h"

#define ENTRIES 8

static int64_t seen_timeout;

/* ---------------------------------------------------------- blocking calls */

static struct rmpool_request seen_request;
static struct rmpool_completion give;
static int sync_error;
static struct rmpool_error sync_detail;

static int run_sync(unsigned long command, void *arg)
{
	struct rmpool_submit_sync *sync = arg;
	struct rmpool_request *requests = (void *)(uintptr_t)sync->requests;
	struct rmpool_completion *results = (void *)(uintptr_t)sync->results;

	assert_int_equal(command, RMPOOL_IOC_SUBMIT_SYNC);
	assert_int_equal(sync->flags | sync->reserved | sync->failed, 0);
	seen_timeout = sync->timeout_ns;
	if (sync->nr > RMPOOL_BATCH_MAX) {
		sync->error = (struct rmpool_error){
			.reason = RMPOOL_REASON_BATCH,
			.limit = RMPOOL_BATCH_MAX,
			.need = sync->nr,
		};
		return -E2BIG;
	}
	if (!sync->nr)
		return -EINVAL;
	seen_request = requests[0];
	if (sync_error != EFAULT)
		for (uint32_t i = 0; i < sync->nr; i++) {
			results[i] = give;
			results[i].cookie = requests[i].cookie;
			sync->failed += give.status != 0;
			sync->error = sync_detail;
		}
	return -sync_error;
}

static void puts_and_gets(void **state)
{
	struct rmpool *pool = open_pool();
	static char memory[100];

	(void)state;
	answer = run_sync;
	give = (struct rmpool_completion){ .bytes = 100 };
	assert_int_equal(rmpool_put(pool, 3, 4096, memory, 100, 2000), 0);
	assert_int_equal(seen_request.op, RMPOOL_OP_PUT);
	assert_int_equal(seen_request.local_addr, (uintptr_t)memory);
	assert_int_equal(seen_request.length, 100);
	assert_int_equal(seen_request.offset, 4096);
	assert_int_equal(seen_request.segment, 3);
	assert_int_equal(seen_request.prio, RMPOOL_CLASS_NORMAL);
	assert_int_equal(seen_request.flags, 0);
	assert_int_equal(seen_request.timeout_ms, 2000);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(seen_request.reserved[i], 0);
	assert_int_equal(seen_timeout, 2000000000);

	assert_int_equal(rmpool_get(pool, 3, 0, memory, 100, 0), 0);
	assert_int_equal(seen_request.op, RMPOOL_OP_GET);
	assert_int_equal(seen_request.timeout_ms, 0);
	assert_true(seen_timeout < 0);
	assert_int_equal(rmpool_get(pool, 3, 0, memory, 100, -1), 0);
	assert_int_equal(seen_request.timeout_ms, UINT32_MAX);
	assert_true(seen_timeout < 0);

	assert_int_equal(rmpool_put_flags(pool, 3, 4096, memory, 100, RMPOOL_REQUEST_REGISTER,
					  2000), 0);
	assert_int_equal(seen_request.op, RMPOOL_OP_PUT);
	assert_int_equal(seen_request.offset, 4096);
	assert_int_equal(seen_request.flags, RMPOOL_REQUEST_REGISTER);
	assert_int_equal(seen_request.timeout_ms, 2000);
	assert_int_equal(rmpool_get_flags(pool, 3, 4096, memory, 100, UINT16_MAX, 2000), 0);
	assert_int_equal(seen_request.op, RMPOOL_OP_GET);
	assert_int_equal(seen_request.flags, UINT16_MAX);
	rmpool_close(pool);
}

static void tells_why_a_put_failed(void **state)
{
	struct rmpool *pool = open_pool();
	static char memory[65536];

	(void)state;
	answer = run_sync;
	give = (struct rmpool_completion){
		.status = -ERANGE, .rail = RMPOOL_RAIL_NONE,
	};
	assert_int_equal(rmpool_put(pool, 3, 5, memory, 65536, 0), -ERANGE);
	assert_string_equal(rmpool_error(),
			    "put of 64 KiB at offset 5 of segment 3: it runs past the end of the local or the remote region");
	give = (struct rmpool_completion){
		.status = -ECONNRESET, .rail = 1, .wc_status = 12,
		.attempts = 2, .bytes = 4096,
		.flags = RMPOOL_COMPLETION_UNKNOWN,
	};
	assert_int_equal(rmpool_get(pool, 3, 5, memory, 65536, 0), -ECONNRESET);
	assert_string_equal(rmpool_error(),
			    "get of 64 KiB at offset 5 of segment 3: the connection to the peer broke; 4096 of 65536 bytes moved; rail 1; verbs status 12; 2 retries; a device may still use the memory, unregister it before it is used for something else");

	/* The wait ends, but a device still has slices. */
	sync_error = ETIMEDOUT;
	give = (struct rmpool_completion){
		.status = -ETIMEDOUT, .rail = RMPOOL_RAIL_NONE,
		.flags = RMPOOL_COMPLETION_UNKNOWN,
	};
	assert_int_equal(rmpool_put(pool, 3, 5, memory, 65536, 10), -ETIMEDOUT);
	says("not finished in time");
	says("may still use the memory");
	give.flags = 0;
	assert_int_equal(rmpool_put(pool, 3, 5, memory, 65536, 10), -ETIMEDOUT);
	says("not finished in time");
	assert_null(strstr(rmpool_error(), "may still use"));
	sync_error = EINTR;
	assert_int_equal(rmpool_put(pool, 3, 5, memory, 65536, 10), -EINTR);
	says("signal");
	/* Nothing was started, so nothing was filled in. */
	sync_error = EFAULT;
	assert_int_equal(rmpool_put(pool, 3, 5, memory, 65536, 10), -EFAULT);
	assert_null(strstr(rmpool_error(), "may still use"));
	sync_error = 0;
	rmpool_close(pool);
}

/* Why memory could not be registered for a request is in the call. */
static void tells_why_memory_was_not_registered(void **state)
{
	struct rmpool *pool = open_pool();

	(void)state;
	answer = run_sync;
	give = (struct rmpool_completion){
		.status = -EFAULT, .rail = RMPOOL_RAIL_NONE,
	};
	sync_detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_UNMAPPED, .need = 0xabc005,
	};
	assert_int_equal(rmpool_put_flags(pool, 3, 5, (void *)0xabc005, 4096,
					  RMPOOL_REQUEST_REGISTER, 0), -EFAULT);
	assert_string_equal(rmpool_error(),
			    "put of 4 KiB at offset 5 of segment 3: the page at 0xabc005 is not mapped or may not be accessed so");
	assert_int_equal(rmpool_error_detail()->reason, RMPOOL_REASON_UNMAPPED);
	sync_detail = (struct rmpool_error){ .reason = RMPOOL_REASON_NONE };
	rmpool_close(pool);
}

static void transfers(void **state)
{
	static struct rmpool_request requests[RMPOOL_BATCH_MAX + 1];
	static struct rmpool_completion results[RMPOOL_BATCH_MAX + 1];
	struct rmpool *pool = open_pool();

	(void)state;
	answer = run_sync;
	give = (struct rmpool_completion){ .status = 0 };
	for (uint32_t i = 0; i <= RMPOOL_BATCH_MAX; i++)
		rmpool_prepare_put(&requests[i], 3, i, requests, 1, i + 100);
	assert_int_equal(rmpool_transfer(pool, requests, RMPOOL_BATCH_MAX,
					 results, -1), 0);
	for (uint32_t i = 0; i < RMPOOL_BATCH_MAX; i++)
		assert_int_equal(results[i].cookie, i + 100);
	give.status = -EIO;
	assert_int_equal(rmpool_transfer(pool, requests, 2, results, 0), 2);
	give.status = -EFAULT;
	sync_detail = (struct rmpool_error){ .reason = RMPOOL_REASON_UNMAPPED, .need = 0x5000 };
	assert_int_equal(rmpool_transfer(pool, requests, 2, results, 0), 2);
	says("memory of one of 2 requests cannot be registered: the page at 0x5000 is not mapped");
	sync_detail = (struct rmpool_error){ .reason = RMPOOL_REASON_NONE };

	assert_int_equal(rmpool_transfer(pool, requests, RMPOOL_BATCH_MAX + 1,
					 results, -1), -E2BIG);
	assert_string_equal(rmpool_error(),
			    "cannot run 4097 requests: one call takes at most 4096 requests, regions or entries, these are 4097");
	assert_int_equal(rmpool_error_detail()->limit, 4096);
	assert_int_equal(rmpool_transfer(pool, requests, 0, results, -1),
			 -EINVAL);
	says("there is no request");
	sync_error = ETIMEDOUT;
	assert_int_equal(rmpool_transfer(pool, requests, 2, results, 30),
			 -ETIMEDOUT);
	says("2 requests did not all end within 30 ms");
	sync_error = 0;
	rmpool_close(pool);
}

/* ------------------------------------------------------------------ the ring */

static int ring_error;
static int seen_eventfd;

static int make_ring(unsigned long command, void *arg)
{
	struct rmpool_ring_setup *setup = arg;

	assert_int_equal(command, RMPOOL_IOC_RING_SETUP);
	assert_int_equal(setup->flags, 0);
	seen_eventfd = setup->eventfd;
	if (ring_error == EINVAL) {
		setup->error = (struct rmpool_error){
			.reason = RMPOOL_REASON_RING,
			.limit = RMPOOL_RING_MAX,
			.need = setup->entries,
		};
	}
	if (ring_error)
		return -ring_error;
	setup->head_offset = 0;
	setup->tail_offset = 64;
	setup->entries_offset = 128;
	setup->mmap_offset = RING_PAGE;
	setup->mmap_size = RING_PAGE;
	return 0;
}

static int make_bad_ring(unsigned long command, void *arg)
{
	make_ring(command, arg);
	((struct rmpool_ring_setup *)arg)->entries_offset = RING_PAGE - 8;
	return 0;
}

static int no_call(unsigned long command, void *arg)
{
	(void)arg;
	fail_msg("unexpected ioctl 0x%lx", command);
	return -EINVAL;
}

static int wait_ring(unsigned long command, void *arg)
{
	struct rmpool_wait *wait = arg;

	assert_int_equal(command, RMPOOL_IOC_WAIT);
	assert_int_equal(wait->flags, 0);
	seen_timeout = wait->timeout_ns;
	if (wait->min > ENTRIES || !wait->min)
		return -EINVAL;
	wait->available = 3;
	return wait->min > 3 ? -ETIME : 0;
}

/* The ring as the kernel sees it, through a mapping of its own. */
struct kernel_ring {
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
	_Alignas(64) struct rmpool_completion entries[ENTRIES];
};

static void uses_a_ring(void **state)
{
	struct rmpool_completion out[ENTRIES];
	struct rmpool *pool = open_pool();
	struct kernel_ring *kernel;

	(void)state;
	kernel = mmap(NULL, RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      memory_file, RING_PAGE);
	assert_true(kernel != MAP_FAILED);
	memset(kernel, 0, RING_PAGE);

	answer = no_call;
	assert_int_equal(rmpool_poll(pool, out, ENTRIES), -ENXIO);
	says("rmpool_ring()");

	answer = make_ring;
	assert_int_equal(rmpool_ring(pool, ENTRIES, 55), 0);
	assert_int_equal(seen_eventfd, 55);

	/* neither polling nor waiting for what is there needs a system call */
	answer = no_call;
	assert_int_equal(rmpool_poll(pool, out, ENTRIES), 0);
	for (uint32_t i = 0; i < 3; i++)
		kernel->entries[i].cookie = 70 + i;
	kernel->tail = 3;
	assert_int_equal(rmpool_wait(pool, 1, -1), 3);
	assert_int_equal(rmpool_wait(pool, 3, 0), 3);
	assert_int_equal(rmpool_poll(pool, out, 2), 2);
	assert_int_equal(out[0].cookie, 70);
	assert_int_equal(out[1].cookie, 71);
	assert_int_equal(kernel->head, 2);
	assert_int_equal(rmpool_poll(pool, out, ENTRIES), 1);
	assert_int_equal(out[0].cookie, 72);
	assert_int_equal(kernel->head, 3);

	answer = wait_ring;
	assert_int_equal(rmpool_wait(pool, 2, 20), 3);
	assert_int_equal(seen_timeout, 20000000);
	assert_int_equal(rmpool_wait(pool, 4, 20), -ETIME);
	assert_string_equal(rmpool_error(),
			    "waiting for 4 completions: 3 came within 20 ms");
	assert_int_equal(rmpool_wait(pool, 0, 20), -EINVAL);
	assert_int_equal(rmpool_wait(pool, ENTRIES + 1, 20), -EINVAL);

	/* somebody wrote over the counter */
	kernel->tail = 3 + ENTRIES + 1;
	assert_int_equal(rmpool_poll(pool, out, ENTRIES), -EIO);
	says("written over");
	munmap(kernel, RING_PAGE);
	rmpool_close(pool);
}

static void tells_why_there_is_no_ring(void **state)
{
	struct rmpool_completion out;
	struct rmpool *pool = open_pool();

	(void)state;
	answer = make_ring;
	ring_error = EINVAL;
	assert_int_equal(rmpool_ring(pool, 9, -1), -EINVAL);
	assert_string_equal(rmpool_error(),
			    "cannot make a completion ring of 9 entries: a ring has a power of two from 8 to 65536 entries, not 9");
	ring_error = EBUSY;
	assert_int_equal(rmpool_ring(pool, 8, -1), -EBUSY);
	says("has one already");
	ring_error = EBADF;
	assert_int_equal(rmpool_ring(pool, 8, 1), -EBADF);
	says("eventfd");
	ring_error = 0;
	answer = make_bad_ring;
	assert_int_equal(rmpool_ring(pool, 8, -1), -EPROTO);
	answer = no_call;
	assert_int_equal(rmpool_poll(pool, &out, 1), -ENXIO);
	rmpool_close(pool);
}

static int submit_answer;

static int submit(unsigned long command, void *arg)
{
	struct rmpool_submit *s = arg;

	assert_int_equal(command, RMPOOL_IOC_SUBMIT);
	assert_int_equal(s->flags | s->reserved | s->accepted, 0);
	assert_true(s->requests != 0);
	if (submit_answer < 0) {
		if (submit_answer == -E2BIG)
			s->error = (struct rmpool_error){
				.reason = RMPOOL_REASON_BATCH,
				.limit = RMPOOL_BATCH_MAX,
				.need = s->nr,
			};
		if (submit_answer == -EAGAIN)
			s->error = (struct rmpool_error){
				.reason = RMPOOL_REASON_RING,
				.limit = 16,
				.used = 16,
				.need = s->nr,
			};
		return submit_answer;
	}
	s->error = sync_detail;
	s->accepted = (uint32_t)submit_answer;
	return 0;
}

static void submits(void **state)
{
	struct rmpool_request requests[2] = { { .cookie = 1 } };
	struct rmpool *pool = open_pool();

	(void)state;
	answer = submit;
	submit_answer = 2;
	assert_int_equal(rmpool_submit(pool, requests, 2), 2);
	submit_answer = 1;
	assert_int_equal(rmpool_submit(pool, requests, 2), 1);
	sync_detail = (struct rmpool_error){ .reason = RMPOOL_REASON_UNMAPPED, .need = 0x6000 };
	assert_int_equal(rmpool_submit(pool, requests, 2), 1);
	says("memory of one of 2 requests cannot be registered: the page at 0x6000 is not mapped");
	sync_detail = (struct rmpool_error){ .reason = RMPOOL_REASON_NONE };
	submit_answer = -EAGAIN;
	assert_int_equal(rmpool_submit(pool, requests, 2), -EAGAIN);
	says("no free entry, all 16 are taken; poll first");
	submit_answer = -ENXIO;
	assert_int_equal(rmpool_submit(pool, requests, 2), -ENXIO);
	says("rmpool_ring()");
	submit_answer = -E2BIG;
	assert_int_equal(rmpool_submit(pool, requests, 4097), -E2BIG);
	says("at most 4096 requests, regions or entries, these are 4097");
	/* without a reason it is about the structure, not about the number */
	submit_answer = -EPERM;
	assert_int_equal(rmpool_submit(pool, requests, 2), -EPERM);
	says("only the process that opened");
	rmpool_close(pool);
}

static int cancel(unsigned long command, void *arg)
{
	struct rmpool_cancel *c = arg;

	assert_int_equal(command, RMPOOL_IOC_CANCEL);
	if (c->flags == RMPOOL_CANCEL_ALL) {
		c->cancelled = 12;
		return 0;
	}
	assert_int_equal(c->flags, 0);
	if (c->cookie != 0x1234567890)
		return -EPERM;
	c->cancelled = 1;
	return 0;
}

static void cancels(void **state)
{
	struct rmpool *pool = open_pool();

	(void)state;
	answer = cancel;
	assert_int_equal(rmpool_cancel(pool, 0x1234567890), 1);
	assert_int_equal(rmpool_cancel_all(pool), 12);
	assert_int_equal(rmpool_cancel(pool, 0xab), -EPERM);
	says("cookie 0xab");
	rmpool_close(pool);
}

static int fail_call(unsigned long command, void *arg)
{
	(void)command;
	(void)arg;
	return -EIO;
}

/* The header promises that errno is not touched. */
static void leaves_errno_alone(void **state)
{
	struct rmpool *pool = open_pool(), *other;

	(void)state;
	answer = fail_call;
	errno = 77;
	assert_int_equal(rmpool_cancel_all(pool), -EIO);
	assert_int_equal(errno, 77);
	assert_int_equal(rmpool_open(&other, "/nonexistent", 0), -ENOENT);
	assert_int_equal(errno, 77);
	rmpool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_and_gets),
		cmocka_unit_test(tells_why_a_put_failed),
		cmocka_unit_test(tells_why_memory_was_not_registered),
		cmocka_unit_test(transfers),
		cmocka_unit_test(uses_a_ring),
		cmocka_unit_test(tells_why_there_is_no_ring),
		cmocka_unit_test(submits),
		cmocka_unit_test(cancels),
		cmocka_unit_test(leaves_errno_alone),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
