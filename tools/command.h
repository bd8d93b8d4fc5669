/* SPDX-License-Identifier: MIT */
/*
 * The commands of the tool. main.c finds one, reads its options and operands,
 * and runs it; each file cmd_*.c has some.
 */
#ifndef RMPOOL_TOOL_COMMAND_H
#define RMPOOL_TOOL_COMMAND_H

#include "args.h"
#include "output.h"

#ifndef RMPOOL_VERSION
#define RMPOOL_VERSION "0.1.0"
#endif

struct command {
	const char *name;	/* one word, or two: "peer add" */
	const char *operands;	/* as --help shows them, or "" */
	const char *summary;	/* half a line */
	const char *detail;	/* lines for --help, or NULL */
	const struct option_def *options; /* or NULL */
	int min, max;		/* operands, at most OPERANDS_MAX */
	int (*run)(int nr, const char *const *operands); /* the exit code */
};

enum { OPERANDS_MAX = 8 };

/* --timeout in milliseconds; 0 when it was not given, -1 for no limit. */
extern int timeout_ms;

extern const struct command command_info, command_version, command_device;
extern const struct command command_node_show, command_node_set;
extern const struct command command_peer_list, command_peer_add, command_peer_del;
extern const struct command command_segment_list, command_region_list;
extern const struct command command_serve, command_put, command_get;
extern const struct command command_monitor;

#endif
