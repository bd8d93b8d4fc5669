// SPDX-License-Identifier: MIT
/*
 * A pool in memory, and the tool run against it; see cli_fake.h. The functions
 * of the library that are here win over those of the static library, which is
 * linked for the rest.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cli_fake.h"

/* Of the library, within: sets the text of an error. */
int rmpl_fail(int err, const struct rmpool_error *detail, const char *why,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* main() of the tool, compiled under another name. */
int rmpool_tool_main(int argc, char **argv);

struct fake *fake;

void fake_reset(void)
{
	if (!fake)
		fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fake == MAP_FAILED)
		abort();
	memset(fake, 0, sizeof(*fake));
	fake->nr_regions = 1;
	fake->regions[0] = (struct rmpool_region_desc){
		.length = FAKE_MEMORY,
		.access = RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE,
	};
	fake->memlock = UINT64_MAX;
}

int setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

/* ----------------------------------------------------------- the library */

enum { HANDLE_SEGMENT = 7, HANDLE_PUBLISHED = 9, HANDLE_REGION = 11, QUEUE = 8 };

struct rmpool {
	char *local;
	size_t local_length;
	uint32_t local_access;
	bool ring;
	struct rmpool_request queue[QUEUE];
	uint32_t queued;
	uint32_t numbers[QUEUE];	/* of the requests in the queue, from 1 on */
	struct rmpool_completion done[QUEUE];
	uint32_t nr_done;
};

static void __attribute__((format(printf, 1, 2))) misused(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "the tool misused the library: ");
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	_exit(99);
}

const char *rmpool_version(void)
{
	return "0.1.0";
}

int rmpool_open(struct rmpool **pool, const char *path, unsigned int flags)
{
	(void)path;
	(void)flags;
	if (fake->absent)
		return rmpl_fail(ENOENT, NULL, "the module is not loaded", "cannot open");
	if (fake->denied)
		return rmpl_fail(EACCES, NULL, "not in group rmpool", "cannot open");
	*pool = calloc(1, sizeof(**pool));
	fake->opened++;
	return 0;
}

void rmpool_close(struct rmpool *pool)
{
	if (!pool)
		return;
	if (pool->local) {
		fake->registered--;
		fake->pinned -= pool->local_length;
	}
	fake->opened--;
	free(pool);
}

int rmpool_info(struct rmpool *pool, struct rmpool_info *info, size_t size)
{
	(void)pool;
	memset(info, 0, size);
	info->abi_version = RMPOOL_ABI_VERSION;
	info->nr_devices = 2;
	info->nr_peers = 1;
	info->batch_max = RMPOOL_BATCH_MAX;
	info->ring_max = RMPOOL_RING_MAX;
	info->regions_max = 65536;
	info->segments_max = 1024;
	info->opens_max = 512;
	info->memlock = fake->memlock;
	info->user_pinned = fake->pinned;
	info->user_limit = UINT64_MAX;
	info->node_pinned = fake->pinned;
	info->node_limit = 64ull << 30;
	info->cache_limit = fake->cache_limit;
	info->staging_limit = fake->staging_limit;
	strcpy(info->node_name, "a");
	strcpy(info->module_version, "0.1.0");
	return 0;
}

int rmpool_publish(struct rmpool *pool, const char *name, uint32_t *segment)
{
	static const struct rmpool_error taken = { .reason = RMPOOL_REASON_NAME_TAKEN };

	(void)pool;
	if (!strcmp(name, "taken"))
		return rmpl_fail(EEXIST, &taken, NULL, "publish %s", name);
	*segment = HANDLE_PUBLISHED;
	return 0;
}

int rmpool_segment_allow(struct rmpool *pool, uint32_t segment,
			 const struct rmpool_allow_entry *entries, uint32_t nr)
{
	if (segment != HANDLE_PUBLISHED || pool->local || nr > RMPOOL_ALLOW_MAX)
		misused("allow %u for %u", nr, segment);
	fake->nr_allowed = nr;
	memcpy(fake->allowed, entries, nr * sizeof(*entries));
	return 0;
}

int rmpool_unpublish(struct rmpool *pool, uint32_t segment)
{
	(void)pool;
	if (segment != HANDLE_PUBLISHED)
		misused("unpublish of %u", segment);
	return 0;
}

int rmpool_register(struct rmpool *pool, void *addr, size_t length, uint32_t access,
		    uint32_t segment, uint64_t offset, uint32_t *region, uint64_t *placed)
{
	struct rmpool_error limit = {
		.reason = RMPOOL_REASON_MEMLOCK,
		.limit = fake->memlock,
		.need = length,
	};

	if (pool->local || !length)
		misused("register of %zu bytes", length);
	if (length > fake->memlock)
		return rmpl_fail(ENOMEM, &limit, NULL, "register %zu bytes", length);
	pool->local = addr;
	pool->local_length = length;
	pool->local_access = access;
	fake->registered++;
	fake->pinned += length;
	*region = HANDLE_REGION;
	if (placed)
		*placed = offset;
	if (segment) {
		fake->serve_access = access;
		fake->serve_offset = offset;
	}
	return 0;
}

int rmpool_unregister(struct rmpool *pool, uint32_t region)
{
	if (region != HANDLE_REGION || !pool->local)
		misused("unregister of %u", region);
	fake->registered--;
	fake->pinned -= pool->local_length;
	pool->local = NULL;
	return 0;
}

int rmpool_segment_open(struct rmpool *pool, const char *node, const char *name,
			int timeout_ms, uint32_t *segment,
			struct rmpool_segment_info *info)
{
	static const struct rmpool_error unknown = { .reason = RMPOOL_REASON_PEER_UNKNOWN };
	static const struct rmpool_error silent = { .reason = RMPOOL_REASON_SILENT };
	static const struct rmpool_error stranger = { .reason = RMPOOL_REASON_NOT_TRUSTED };

	(void)pool;
	(void)info;
	fake->timeout_ms = timeout_ms;
	if (!strcmp(node, "silent"))
		return rmpl_fail(ETIMEDOUT, &silent, NULL, "open %s/%s", node, name);
	if (!strcmp(node, "stranger"))
		return rmpl_fail(EACCES, &stranger, NULL, "open %s/%s", node, name);
	if (strcmp(node, "b") || strcmp(name, "kv"))
		return rmpl_fail(ENOENT, &unknown, NULL, "open %s/%s", node, name);
	*segment = HANDLE_SEGMENT;
	return 0;
}

/* NOLINTBEGIN(readability-non-const-parameter): as the library has it */
int rmpool_segment_regions(struct rmpool *pool, uint32_t segment,
			   struct rmpool_region_desc **regions, uint32_t *nr,
			   uint64_t *generation)
/* NOLINTEND(readability-non-const-parameter) */
{
	size_t size = fake->nr_regions * sizeof(**regions);

	(void)pool;
	(void)generation;
	if (segment != HANDLE_SEGMENT)
		misused("regions of %u", segment);
	*regions = size ? malloc(size) : NULL;
	*nr = fake->nr_regions;
	if (size)
		memcpy(*regions, fake->regions, size);
	return 0;
}

int rmpool_ring(struct rmpool *pool, uint32_t entries, int eventfd)
{
	if (pool->ring || entries != QUEUE || eventfd != -1)
		misused("ring of %u", entries);
	pool->ring = true;
	return 0;
}

static void check_request(const struct rmpool *pool, const struct rmpool_request *request)
{
	char *local = (char *)(uintptr_t)request->local_addr;
	uint32_t need = request->op == RMPOOL_OP_PUT ? RMPOOL_ACCESS_REMOTE_WRITE :
						       RMPOOL_ACCESS_REMOTE_READ;
	uint32_t i;

	if (request->segment != HANDLE_SEGMENT)
		misused("request to %u", request->segment);
	if (!pool->local || local < pool->local ||
	    request->length > pool->local_length - (size_t)(local - pool->local))
		misused("request outside of registered memory");
	if (request->op == RMPOOL_OP_GET && !(pool->local_access & RMPOOL_ACCESS_LOCAL_WRITE))
		misused("get into memory that is not registered for it");
	for (i = 0; i < fake->nr_regions; i++) {
		const struct rmpool_region_desc *region = &fake->regions[i];

		if (region->access & need && request->offset >= region->offset &&
		    request->length <= region->length &&
		    request->offset - region->offset <= region->length - request->length)
			return;
	}
	misused("request at %llu, %llu bytes, is not in one region",
		(unsigned long long)request->offset, (unsigned long long)request->length);
}

int rmpool_submit(struct rmpool *pool, const struct rmpool_request *requests, uint32_t nr)
{
	if (nr != 1 || !pool->ring || pool->queued + pool->nr_done == QUEUE)
		misused("submit of %u", nr);
	check_request(pool, requests);
	if (requests->length > fake->longest)
		fake->longest = requests->length;
	pool->numbers[pool->queued] = ++fake->requests;
	pool->queue[pool->queued++] = *requests;
	if (++fake->in_flight > fake->most_in_flight)
		fake->most_in_flight = fake->in_flight;
	return 1;
}

static void finish(struct rmpool *pool, uint32_t index, int status)
{
	struct rmpool_request request = pool->queue[index];
	char *local = (char *)(uintptr_t)request.local_addr;

	if (!status && pool->numbers[index] == fake->fail_at)
		status = fake->fail_status;
	if (!status && request.op == RMPOOL_OP_PUT)
		memcpy(fake->memory + request.offset, local, request.length);
	else if (!status)
		memcpy(local, fake->memory + request.offset, request.length);
	pool->done[pool->nr_done++] = (struct rmpool_completion){
		.cookie = request.cookie,
		.bytes = status ? 0 : request.length,
		.status = status,
	};
	pool->queued--;
	memmove(pool->queue + index, pool->queue + index + 1,
		(pool->queued - index) * sizeof(pool->queue[0]));
	memmove(pool->numbers + index, pool->numbers + index + 1,
		(pool->queued - index) * sizeof(pool->numbers[0]));
	fake->in_flight--;
}

int rmpool_poll(struct rmpool *pool, struct rmpool_completion *completions, uint32_t max)
{
	uint32_t nr = pool->nr_done < max ? pool->nr_done : max;

	memcpy(completions, pool->done, nr * sizeof(*completions));
	pool->nr_done -= nr;
	memmove(pool->done, pool->done + nr, pool->nr_done * sizeof(*completions));
	return (int)nr;
}

int rmpool_wait(struct rmpool *pool, uint32_t min, int timeout_ms)
{
	uint32_t index;

	while (pool->nr_done < min) {
		if (!pool->queued)
			misused("wait for nothing");
		index = fake->newest_first ? pool->queued - 1 : 0;
		if (fake->hang_at && pool->numbers[index] >= fake->hang_at) {
			if (fake->hang_signal)
				raise(fake->hang_signal);
			if (poll(NULL, 0, timeout_ms) < 0 || fake->hang_signal)
				return rmpl_fail(EINTR, NULL, NULL, "wait");
			return rmpl_fail(ETIME, NULL, NULL, "wait");
		}
		finish(pool, index, 0);
	}
	return (int)pool->nr_done;
}

int rmpool_cancel_all(struct rmpool *pool)
{
	uint32_t nr = pool->queued;

	while (pool->queued)
		finish(pool, 0, -ECANCELED);
	fake->cancelled += nr;
	return (int)nr;
}

/* ------------------------------------------------------------- netlink */

struct rmpool_nl {
	int events[2];
	uint32_t next;
};

static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

static const struct rmpool_nl_node this_node = {
	.name = "a", .uuid = uuid, .listen = "v1:[::]:13579",
	.advertise = "v1:10.77.0.1:13579", .version = "0.1.0", .abi = RMPOOL_ABI_VERSION,
	.cache_bytes = 8 << 20, .cache_hits = 77, .cache_misses = 5, .cache_evictions = 3,
	.cache_invalidations = 2, .staging_pool = 8 << 20, .staging_requests = 21,
	.staging_bytes = 5 << 20, .staging_fallbacks = 4,
};

static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };

static const struct rmpool_nl_device devices[] = {
	{ .name = "rxe0", .index = 1, .port = 1, .state = 4, .gid_index = 1, .gid = gid,
	  .address = "10.77.0.1", .netdev = "data0", .numa = -1, .mtu = 4096, .speed = 2500,
	  .max_msg = 1 << 30, .chunk = 2 << 20, .max_mr = 4096, .mrs = 3, .usable = 1,
	  .why = "", .pages = 70, .max_pages = 1000, .page_sizes = 0x201000,
	  .ordering = RMPOOL_ORDERING_FORCED },
	{ .name = "rxe1", .index = 2, .port = 1, .state = 1, .address = "", .netdev = "data1",
	  .numa = 0, .chunk = 2 << 20, .max_mr = 4096, .why = "no link" },
};

static const struct rmpool_nl_rail rails[] = {
	{ .next = &rails[1], .index = 0, .state = RMPOOL_RAIL_UP, .local = "rxe0/1",
	  .local_address = "10.77.0.1", .remote_address = "10.77.0.2", .qps = 2,
	  .put_bytes = 8 << 20, .get_bytes = 1000, .slices = 9 },
	{ .index = 1, .state = RMPOOL_RAIL_DOWN, .local = "rxe1/1", .local_address = "",
	  .remote_address = "", .errors = 1 },
};

static const struct rmpool_nl_peer peers[] = {
	{ .name = "b", .endpoint = "v1:10.77.0.2:13579", .remote_name = "b\033[2Jx",
	  .uuid = uuid, .state = RMPOOL_PEER_READY, .nr_rails = 2, .rails = rails,
	  .group = "lab" },
	{ .name = "gone", .endpoint = "v1:[fd00::9]:13579", .remote_name = "",
	  .state = RMPOOL_PEER_BACKOFF, .reason = RMPOOL_REASON_REFUSED,
	  .error = -ECONNREFUSED, .group = "default" },
};

static const struct rmpool_nl_allowed allowed[] = {
	{ .next = &allowed[1], .peer = "b", .access = RMPOOL_ACCESS_REMOTE_READ },
	{ .next = &allowed[2], .peer = "c",
	  .access = RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE },
	{ .next = &allowed[3], .peer = "d", .access = RMPOOL_ACCESS_REMOTE_WRITE },
	{ .next = &allowed[4], .peer = "e", .access = 0 },
	{ .peer = "*", .access = RMPOOL_ACCESS_REMOTE_READ },
};

static const struct rmpool_nl_segment segments[] = {
	{ .name = "kv", .id = 5, .regions = 1, .generation = 2, .size = 8 << 20,
	  .owner_pid = 0x7ffffff0, .owner_uid = 0 },
	{ .name = "some", .id = 6, .owner_pid = 0x7ffffff0, .restricted = 1, .nr_allowed = 5,
	  .allowed = allowed },
	{ .name = "none", .id = 7, .owner_pid = 0x7ffffff0, .restricted = 1 },
};

static const struct rmpool_nl_region regions[] = {
	{ .id = 1, .offset = 4096, .length = 8 << 20, .access = RMPOOL_ACCESS_ALL,
	  .chunks = 4, .devices = 2, .segment_id = 5, .segment_name = "kv", .mrs = 8, .pages = 4096,
	  .percent = 100, .owner_pid = 0x7ffffff0, .owner_uid = 0 },
	{ .id = 2, .length = 12345, .chunks = 1, .devices = 2, .segment_name = "", .dmabuf = 1,
	  .percent = 100, .owner_pid = 0x7ffffff0, .owner_uid = 0 },
	{ .id = 3, .length = 4096, .chunks = 1, .devices = 2, .segment_name = "", .cached = 1,
	  .percent = 100, .owner_pid = 0x7ffffff0, .owner_uid = 0 },
	{ .id = 4, .length = 1 << 30, .devices = 1, .segment_id = 5, .segment_name = "kv",
	  .state = RMPOOL_REGION_STATE_REGISTERING, .percent = 62,
	  .owner_pid = 0x7ffffff0, .owner_uid = 0 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int rmpool_nl_open(struct rmpool_nl **nl)
{
	if (fake->absent)
		return rmpl_fail(ENOENT, NULL, "the module is not loaded", "netlink");
	*nl = calloc(1, sizeof(**nl));
	fake->opened++;
	return 0;
}

void rmpool_nl_close(struct rmpool_nl *nl)
{
	if (nl->events[1]) {
		close(nl->events[0]);
		close(nl->events[1]);
	}
	fake->opened--;
	free(nl);
}

int rmpool_nl_node_get(struct rmpool_nl *nl, const struct rmpool_nl_node **node)
{
	(void)nl;
	*node = &this_node;
	return 0;
}

int rmpool_nl_node_set(struct rmpool_nl *nl, const struct rmpool_nl_settings *settings)
{
	(void)nl;
	if (fake->denied)
		return rmpl_fail(EPERM, NULL, "needs CAP_NET_ADMIN", "change the node");
	snprintf(fake->set.name, sizeof(fake->set.name), "%s",
		 settings->name ? settings->name : "");
	fake->set.accept = settings->accept;
	return 0;
}

int rmpool_nl_peer_add_group(struct rmpool_nl *nl, const char *name,
			     const char *endpoint, const char *group, int allow_loopback)
{
	(void)nl;
	(void)allow_loopback;
	snprintf(fake->peer_name, sizeof(fake->peer_name), "%s", name);
	snprintf(fake->peer_endpoint, sizeof(fake->peer_endpoint), "%s", endpoint);
	snprintf(fake->peer_group, sizeof(fake->peer_group), "%s", group ? group : "");
	return 0;
}

int rmpool_nl_peer_del(struct rmpool_nl *nl, const char *name)
{
	(void)nl;
	return strcmp(name, "b") ? rmpl_fail(ENOENT, NULL, NULL, "remove %s", name) : 0;
}

#define LIST(what, type, array)							\
int rmpool_nl_##what(struct rmpool_nl *nl,					\
		     int (*cb)(const struct type *, void *), void *arg)	\
{										\
	size_t i;								\
	int error = 0;								\
										\
	(void)nl;								\
	for (i = 0; i < COUNT(array) && !error; i++)				\
		error = cb(&(array)[i], arg);					\
	return error;								\
}

LIST(devices, rmpool_nl_device, devices)
LIST(peers, rmpool_nl_peer, peers)
LIST(segments, rmpool_nl_segment, segments)
LIST(regions, rmpool_nl_region, regions)

int rmpool_nl_subscribe(struct rmpool_nl *nl)
{
	if (fake->denied)
		return rmpl_fail(EPERM, NULL, "needs CAP_NET_ADMIN", "subscribe");
	/* Readable from the start: all events are there. */
	if (pipe(nl->events) || write(nl->events[1], "", 1) != 1)
		abort();
	return nl->events[0];
}

int rmpool_nl_event(struct rmpool_nl *nl, const struct rmpool_nl_event **event)
{
	static const struct rmpool_nl_event events[] = {
		{ .kind = RMPOOL_NL_SEGMENT, .change = RMPOOL_EVENT_GONE,
		  .segment = &segments[0] },
		{ .kind = RMPOOL_NL_PEER, .change = RMPOOL_EVENT_CHANGED, .peer = &peers[0] },
		{ .kind = RMPOOL_NL_DEVICE, .change = RMPOOL_EVENT_NEW,
		  .device = &devices[1] },
		{ .kind = RMPOOL_NL_NODE, .change = RMPOOL_EVENT_CHANGED, .node = &this_node },
	};
	char byte;

	if (fake->overrun && nl->next == 2) {
		fake->overrun = false;
		return rmpl_fail(ENOBUFS, NULL, NULL, "events");
	}
	if (nl->next < COUNT(events)) {
		*event = &events[nl->next++];
		return 1;
	}
	if (nl->next++ == COUNT(events) && read(nl->events[0], &byte, 1) != 1)
		abort();
	return 0;
}

/* ------------------------------------------------------------ the tool */

struct tool tool_start(int input, const char *const *words)
{
	int out[2], err[2], argc = 1;
	struct tool tool;
	char *argv[16] = { (char *)(uintptr_t)"rmpool" };

	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	if (pipe(out) || pipe(err))
		abort();
	fflush(NULL);
	tool.pid = fork();
	if (tool.pid < 0)
		abort();
	if (!tool.pid) {
		if (input >= 0)
			dup2(input, 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		close(out[0]);
		close(out[1]);
		close(err[0]);
		close(err[1]);
		exit(rmpool_tool_main(argc, argv));
	}
	close(out[1]);
	close(err[1]);
	tool.out = out[0];
	tool.err = err[0];
	return tool;
}

/* Both at once, so that a tool that says much blocks in neither. */
static void read_both(struct tool tool, struct result *result)
{
	struct pollfd fds[2] = {
		{ .fd = tool.out, .events = POLLIN }, { .fd = tool.err, .events = POLLIN },
	};
	char *texts[2] = { result->out, result->err };
	size_t used[2] = { 0, 0 };
	int i, open = 2;

	while (open) {
		if (poll(fds, 2, -1) < 0)
			continue;
		for (i = 0; i < 2; i++) {
			ssize_t got;

			if (!fds[i].revents)
				continue;
			got = read(fds[i].fd, texts[i] + used[i],
				   sizeof(result->out) - 1 - used[i]);
			if (got > 0) {
				used[i] += (size_t)got;
				continue;
			}
			fds[i].fd = -1;
			open--;
		}
	}
	texts[0][used[0]] = 0;
	texts[1][used[1]] = 0;
}

struct result *tool_end(struct tool tool)
{
	static struct result result;
	int status;

	read_both(tool, &result);
	close(tool.out);
	close(tool.err);
	while (waitpid(tool.pid, &status, 0) < 0)
		;
	result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return &result;
}

struct result *tool_run_words(int input, const char *const *words)
{
	return tool_end(tool_start(input, words));
}

void tool_line(struct tool tool, char *line, size_t room)
{
	size_t used = 0;

	while (used + 1 < room && read(tool.out, line + used, 1) == 1 && line[used] != '\n')
		used++;
	line[used] = 0;
}
