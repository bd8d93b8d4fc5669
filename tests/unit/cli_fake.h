/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the command line tool share: a pool that exists in memory
 * only, in place of the library's calls of the device and of netlink, and a way
 * to run the tool in a child process against it.
 *
 * The pool knows this node "a", one peer "b", and one segment "b/kv" with some
 * regions. It checks what the tool asks for as strictly as the module would: a
 * request that is not in registered memory, or not in one region, ends the
 * child with a message. Its state is shared with the child.
 */
#ifndef RMPOOL_TEST_CLI_FAKE_H
#define RMPOOL_TEST_CLI_FAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rmpool.h>

enum {
	FAKE_MEMORY = 24 << 20,
	FAKE_REGIONS = 8,
};

struct fake {
	/* as a test wants it */
	bool absent;			/* the module is not loaded */
	bool denied;			/* ... is, but not for us */
	uint32_t nr_regions;
	struct rmpool_region_desc regions[FAKE_REGIONS];
	uint64_t memlock;
	uint64_t cache_limit;
	uint64_t staging_limit;
	uint32_t fail_at;		/* that request, from 1 on, ends so: */
	int fail_status;
	uint32_t hang_at;		/* from that request on, none ends, and */
	int hang_signal;		/* who waits for it gets this signal */
	bool newest_first;		/* completions in reverse order */
	bool overrun;			/* the first event is that some were lost */

	/* as the tool left it */
	uint32_t opened, registered, requests, in_flight, most_in_flight, cancelled;
	uint64_t pinned, longest;
	int timeout_ms;			/* of the last segment that was opened */
	char peer_name[RMPOOL_NAME_MAX];
	char peer_endpoint[RMPOOL_ENDPOINT_MAX];
	char peer_group[64];
	struct { char name[RMPOOL_NAME_MAX]; uint32_t accept; } set;
	uint32_t serve_access;
	uint64_t serve_offset;
	uint32_t nr_allowed;
	struct rmpool_allow_entry allowed[RMPOOL_ALLOW_MAX];

	/* what "b/kv" holds: offset n of it is byte n here */
	unsigned char memory[FAKE_MEMORY];
};

extern struct fake *fake;

/* Fresh: one region for all of the memory. Call it first in every test. */
void fake_reset(void);

/* A tool that runs. */
struct tool {
	pid_t pid;
	int out, err;		/* to read what it says */
};

/* What a tool that ended has left. */
struct result {
	int code;		/* as the shell counts: 128 + signal */
	char out[65536];
	char err[65536];
};

/* Words of the command line, without the name of the tool; ends with NULL. */
struct tool tool_start(int input, const char *const *words);
struct result *tool_end(struct tool tool);
struct result *tool_run_words(int input, const char *const *words);
/* The next line of a tool that runs, without its end. */
void tool_line(struct tool tool, char *line, size_t room);

#define tool_run(...) \
	tool_run_words(-1, (const char *const[]){ __VA_ARGS__, NULL })

/* Before each test: fake_reset(). */
int setup(void **state);
void assert_has(const char *text, const char *part);

#endif
