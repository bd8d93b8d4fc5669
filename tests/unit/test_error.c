// SPDX-License-Identifier: MIT
/*
 * Texts of errors: every reason has a name and a text, limits come with their
 * numbers, and each thread has its own.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"

static const uint32_t reasons[] = {
	RMPOOL_REASON_MEMLOCK, RMPOOL_REASON_REGIONS, RMPOOL_REASON_SEGMENTS,
	RMPOOL_REASON_OPENS, RMPOOL_REASON_BATCH, RMPOOL_REASON_RING,
	RMPOOL_REASON_DEVICE_MRS, RMPOOL_REASON_REMOTE_KEYS,
	RMPOOL_REASON_USER_PINNED, RMPOOL_REASON_NODE_PINNED,
	RMPOOL_REASON_DEVICE_PAGES, RMPOOL_REASON_CACHE, RMPOOL_REASON_ORDERING,
	RMPOOL_REASON_LENGTH_ZERO, RMPOOL_REASON_RANGE_WRAPS,
	RMPOOL_REASON_UNMAPPED, RMPOOL_REASON_OFFSET_TAKEN,
	RMPOOL_REASON_NAME_TAKEN, RMPOOL_REASON_NAME_BAD,
	RMPOOL_REASON_NO_DEVICE, RMPOOL_REASON_DEVICE_MAPPING,
	RMPOOL_REASON_FILE_MAPPING, RMPOOL_REASON_DMABUF_FD,
	RMPOOL_REASON_DMABUF_RANGE, RMPOOL_REASON_DMABUF_REFUSED,
	RMPOOL_REASON_DMABUF_PAGES, RMPOOL_REASON_DMABUF_NONE,
	RMPOOL_REASON_PEER_UNKNOWN,
	RMPOOL_REASON_PEER_SELF, RMPOOL_REASON_NO_ROUTE, RMPOOL_REASON_REFUSED,
	RMPOOL_REASON_UNREACHABLE, RMPOOL_REASON_SILENT, RMPOOL_REASON_VERSION,
	RMPOOL_REASON_NOT_TRUSTED, RMPOOL_REASON_PEER_GONE,
	RMPOOL_REASON_IDENTITY, RMPOOL_REASON_NO_RAIL,
	RMPOOL_REASON_SEGMENT_UNKNOWN, RMPOOL_REASON_PROTOCOL,
};

#define NR (sizeof(reasons) / sizeof(reasons[0]))

static void every_reason_has_its_own_text(void **state)
{
	struct rmpool_error detail = { .limit = 111, .used = 55, .need = 222 };
	char texts[NR][512];

	(void)state;
	for (size_t i = 0; i < NR; i++) {
		detail.reason = reasons[i];
		assert_int_equal(rmpl_fail(EINVAL, &detail, "stand-in", "what %d", 5),
				 -EINVAL);
		assert_string_not_equal(rmpool_reason_name(reasons[i]),
					"unknown");
		assert_int_equal(strncmp(rmpool_error(), "what 5: ", 8), 0);
		/* The reason is told, not what stands in for it. */
		assert_null(strstr(rmpool_error(), "stand-in"));
		assert_null(strstr(rmpool_error(), strerror(EINVAL)));
		assert_memory_equal(rmpool_error_detail(), &detail,
				    sizeof(detail));
		snprintf(texts[i], sizeof(texts[i]), "%s", rmpool_error());
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(texts[i], texts[j]);
			assert_string_not_equal(rmpool_reason_name(reasons[i]),
						rmpool_reason_name(reasons[j]));
			assert_string_not_equal(rmpool_strerror(reasons[i]),
						rmpool_strerror(reasons[j]));
		}
	}
}

/* Where the ABI promises limit, used and need, the text has numbers and says
 * what to do.
 */
static void limits_are_told_with_numbers(void **state)
{
	static const struct {
		uint32_t reason;
		const char *text;
	} expect[] = {
		{ RMPOOL_REASON_REGIONS,
		  "x: one open file may have 111 regions, 55 in use; unregister some or register larger ones" },
		{ RMPOOL_REASON_SEGMENTS,
		  "x: one open file may publish 111 segments, 55 in use; unpublish some" },
		{ RMPOOL_REASON_OPENS,
		  "x: 111 segments may be open, of one open file or of one peer, 55 in use; close some" },
		{ RMPOOL_REASON_BATCH,
		  "x: one call takes at most 111 requests, regions or entries, these are 222" },
		{ RMPOOL_REASON_RING,
		  "x: a ring has a power of two from 8 to 111 entries, not 222" },
		{ RMPOOL_REASON_DEVICE_MRS,
		  "x: an RDMA device has room for 111 memory regions of rmpool, 55 in use, 222 needed; unregister memory first" },
		{ RMPOOL_REASON_REMOTE_KEYS,
		  "x: the remote segment needs 222 keys, 111 are kept for one segment; spread its memory over several segments" },
		{ RMPOOL_REASON_USER_PINNED,
		  "x: one user may register 111 bytes (module parameter max_user_mib), 55 bytes of it in use, 222 bytes needed" },
		{ RMPOOL_REASON_NODE_PINNED,
		  "x: 111 bytes may be registered on this node (module parameter max_pinned_mib), 55 bytes of it in use, 222 bytes needed" },
		{ RMPOOL_REASON_DEVICE_PAGES,
		  "x: an RDMA device may have 111 pages (module parameter max_device_pages), 55 in use, 222 needed; huge pages need fewer" },
		{ RMPOOL_REASON_CACHE,
		  "x: one open file may have 111 bytes registered for requests (module parameter cache_mib), 55 bytes of it in use, 222 bytes needed; register memory before it is used" },
		{ RMPOOL_REASON_UNMAPPED,
		  "x: the page at 0xde is not mapped or may not be accessed so" },
		{ RMPOOL_REASON_DEVICE_MAPPING,
		  "x: what is mapped at 0xde is of a device, not memory; it cannot be registered" },
		{ RMPOOL_REASON_FILE_MAPPING,
		  "x: the file system of the file at 0xde must know who writes; map it MAP_PRIVATE, register it to be read only, or use a memfd, tmpfs or hugetlbfs" },
		{ RMPOOL_REASON_DMABUF_FD,
		  "x: descriptor 222 is not one of a dma-buf" },
		{ RMPOOL_REASON_DMABUF_RANGE, "x: the dma-buf has 111 bytes" },
		{ RMPOOL_REASON_DMABUF_REFUSED,
		  "x: its exporter lets no RDMA device here reach the dma-buf: Unknown error 222" },
		{ RMPOOL_REASON_DMABUF_PAGES,
		  "x: the dma-buf is not memory that a software RDMA device can reach (from byte 222 on)" },
		{ RMPOOL_REASON_OFFSET_TAKEN,
		  "x: offset 222 overlaps a region of the segment" },
	};
	struct rmpool_error detail = { .limit = 111, .used = 55, .need = 222 };

	(void)state;
	for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
		detail.reason = expect[i].reason;
		rmpl_fail(ENOMEM, &detail, NULL, "x");
		assert_string_equal(rmpool_error(), expect[i].text);
	}
	detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_MEMLOCK,
		.limit = 64u << 20, .used = 32u << 20, .need = 128u << 20,
	};
	rmpl_fail(ENOMEM, &detail, NULL, "x");
	assert_string_equal(rmpool_error(),
			    "x: RLIMIT_MEMLOCK is 64 MiB, 32 MiB of it in use, 128 MiB needed; raise it with ulimit -l or give CAP_IPC_LOCK");
	detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_DMABUF_FD, .need = UINT32_MAX,
	};
	rmpl_fail(EBADF, &detail, NULL, "x");
	assert_string_equal(rmpool_error(),
			    "x: descriptor -1 is not one of a dma-buf");
	/* A ring that is full is another thing than one that cannot be made. */
	detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_RING,
		.limit = 16, .used = 16, .need = 5,
	};
	rmpl_fail(EAGAIN, &detail, NULL, "x");
	assert_string_equal(rmpool_error(),
			    "x: the completion ring has no free entry, all 16 are taken; poll first");
}

/* A limit of a peer comes without numbers: none are made up. */
static void limits_without_numbers(void **state)
{
	struct rmpool_error detail = { .reason = RMPOOL_REASON_REMOTE_KEYS };

	(void)state;
	rmpl_fail(ENOSPC, &detail, NULL, "x");
	assert_string_equal(rmpool_error(),
			    "x: the remote segment has more keys than are kept for one segment");
	/* a limit of 0 is one all the same */
	detail = (struct rmpool_error){
		.reason = RMPOOL_REASON_MEMLOCK, .need = 4096,
	};
	rmpl_fail(ENOMEM, &detail, NULL, "x");
	assert_non_null(strstr(rmpool_error(), "RLIMIT_MEMLOCK is 0 bytes, 0 bytes of it in use, 4 KiB needed"));
	detail.reason = RMPOOL_REASON_CACHE;
	rmpl_fail(EOPNOTSUPP, &detail, NULL, "x");
	assert_string_equal(rmpool_error(),
			    "x: no memory is registered for requests (module parameter cache_mib is 0); register it first");
}

static void unknown_reason_counts_as_none(void **state)
{
	const struct rmpool_error detail = { .reason = 999, .limit = 5 };

	(void)state;
	assert_string_equal(rmpool_reason_name(999), "unknown");
	assert_string_equal(rmpool_reason_name(RMPOOL_REASON_NONE), "none");
	assert_non_null(rmpool_strerror(999));
	assert_int_equal(rmpl_fail(ENOMEM, &detail, NULL, "x"), -ENOMEM);
	assert_int_equal(rmpool_error_detail()->reason, RMPOOL_REASON_NONE);
	assert_int_equal(rmpool_error_detail()->limit, 0);
	assert_string_equal(rmpool_error(), "x: Cannot allocate memory");
	rmpl_fail(ENOMEM, &detail, "so it is", "x");
	assert_string_equal(rmpool_error(), "x: so it is");
}

static void long_texts_are_cut(void **state)
{
	char name[2000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(rmpl_fail(EIO, NULL, name, "%s", name), -EIO);
	assert_int_equal(strlen(rmpool_error()), 511);
	assert_int_equal(rmpl_fail(EIO, NULL, name, "x"), -EIO);
	assert_int_equal(strlen(rmpool_error()), 511);
}

static void bytes_are_exact(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} expect[] = {
		{ 0, "0 bytes" }, { 1, "1 byte" }, { 1023, "1023 bytes" },
		{ 1024, "1 KiB" }, { 1025, "1025 bytes" }, { 65537, "65537 bytes" },
		{ 3u << 20, "3 MiB" }, { (3u << 20) + 4096, "3076 KiB" },
		{ 16ull << 30, "16 GiB" }, { 1ull << 63, "8 EiB" },
		{ UINT64_MAX, "18446744073709551615 bytes" },
	};
	char text[RMPL_QUANTITY_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++)
		assert_string_equal(rmpl_bytes(expect[i].bytes, text),
				    expect[i].text);
}

static void statuses_have_texts(void **state)
{
	static const int known[] = {
		0, EINVAL, EBADF, EFAULT, ERANGE, ENXIO, EACCES, ESTALE,
		ETIMEDOUT, ECANCELED, ENOTCONN, EREMOTEIO, ECONNRESET, EIO,
		ENOMEM, EOPNOTSUPP, ENODEV, ENETUNREACH
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		/* in our own words, not those of the C library */
		assert_string_not_equal(rmpool_status_text(-known[i]),
					strerror(known[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rmpool_status_text(-known[i]),
						rmpool_status_text(-known[j]));
	}
	assert_string_equal(rmpool_status_text(-ENOSPC), strerror(ENOSPC));
}

static void names_of_numbers(void **state)
{
	(void)state;
	assert_string_equal(rmpool_event_name(RMPOOL_EVENT_NEW), "new");
	assert_string_equal(rmpool_event_name(RMPOOL_EVENT_GONE), "gone");
	assert_string_equal(rmpool_event_name(0), "unknown");
	assert_string_equal(rmpool_event_name(UINT32_MAX), "unknown");
	assert_string_equal(rmpool_peer_state_name(RMPOOL_PEER_IDLE), "idle");
	assert_string_equal(rmpool_peer_state_name(RMPOOL_PEER_CLOSING),
			    "closing");
	assert_string_equal(rmpool_peer_state_name(RMPOOL_PEER_CLOSING + 1),
			    "unknown");
	assert_string_equal(rmpool_rail_state_name(RMPOOL_RAIL_UP), "up");
	assert_string_equal(rmpool_rail_state_name(RMPOOL_RAIL_UP + 1),
			    "unknown");
	assert_string_equal(rmpool_region_state_name(RMPOOL_REGION_STATE_ACTIVE), "active");
	assert_string_equal(rmpool_region_state_name(RMPOOL_REGION_STATE_STALE), "stale");
	assert_string_equal(rmpool_region_state_name(RMPOOL_REGION_STATE_REGISTERING + 1),
			    "unknown");
	assert_string_equal(rmpool_port_state_name(4), "active");
	assert_string_equal(rmpool_port_state_name(0), "unknown");
}

static void *other_thread(void *arg)
{
	(void)arg;
	if (strcmp(rmpool_error(), "no error") ||
	    rmpool_error_detail()->reason != RMPOOL_REASON_NONE)
		return (void *)1;
	rmpl_fail(EIO, NULL, NULL, "theirs");
	return NULL;
}

static void threads_do_not_share(void **state)
{
	const struct rmpool_error detail = { .reason = RMPOOL_REASON_REFUSED };
	pthread_t thread;
	void *result;

	(void)state;
	rmpl_fail(ECONNREFUSED, &detail, NULL, "ours");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	assert_int_equal(strncmp(rmpool_error(), "ours: ", 6), 0);
	assert_int_equal(rmpool_error_detail()->reason, RMPOOL_REASON_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_its_own_text),
		cmocka_unit_test(limits_are_told_with_numbers),
		cmocka_unit_test(limits_without_numbers),
		cmocka_unit_test(unknown_reason_counts_as_none),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(bytes_are_exact),
		cmocka_unit_test(statuses_have_texts),
		cmocka_unit_test(names_of_numbers),
		cmocka_unit_test(threads_do_not_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
