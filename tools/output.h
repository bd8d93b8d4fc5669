/* SPDX-License-Identifier: MIT */
/*
 * What the tool says: tables and lines on standard output, or JSON there with
 * -j, and errors. Everything that others may have chosen (names, commands,
 * texts of peers) is made printable on its way out.
 */
#ifndef RMPOOL_TOOL_OUTPUT_H
#define RMPOOL_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Exit codes; the man page has the same list. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNAVAILABLE = 3,	/* no module, no usable RDMA device */
	EXIT_DENIED = 4,	/* no permission here, or not trusted there */
	EXIT_UNREACHED = 5,	/* the peer did not answer, or went away */
	EXIT_SIGNAL = 128,	/* and the number of the signal */
};

/* Set by main() from the options that all commands have. */
struct output {
	bool json;
	bool quiet;
	const char *command;	/* that runs, for messages */
	bool unfinished;	/* a line of progress is on standard error */
};

extern struct output output;

/*
 * Errors: "rmpool: WHAT: WHY" on standard error, and with -j an object with
 * the key "error" on standard output as well. They return the exit code.
 */

/* A library call failed with @error, a negative errno; WHAT is the command, its
 * text the WHY.
 */
int fail_library(int error);
/* The same for rmpool_open() and rmpool_nl_open(): nothing there means that
 * the module is not loaded.
 */
int fail_open(int error);
/* A system call failed with the errno @number. */
int fail_system(int number, const char *what, ...)
	__attribute__((format(printf, 2, 3)));
/* The same with a text of its own. */
int fail_why(int number, const char *why, const char *what, ...)
	__attribute__((format(printf, 3, 4)));
/* Something is not as it must be. */
int fail_text(enum exit_code code, const char *what, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
int fail_signal(int signal);
/* The exit code that stands for a negative errno. */
enum exit_code exit_code_of(int error);

/* "rmpool: WHAT: WHY" without failing. */
void warn_text(const char *what, const char *why, ...)
	__attribute__((format(printf, 2, 3)));
/* Wipes the line of progress, so that what follows stands alone. */
void wipe_progress(void);
/* A line on standard output. */
void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Something for the person at the terminal, not with -q or -j. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line "name  value" of a list of such lines. */
void print_field(const char *name, const char *value, ...)
	__attribute__((format(printf, 2, 3)));

/* JSON. These take over the reference. print_json() is for commands with one
 * result, print_json_line() for those with many: one line each, flushed.
 */
void print_json(json_t *root);
void print_json_line(json_t *root);
/* A text, "" as null, bytes that are not UTF-8 or not printable as '?'. */
json_t *json_text(const char *text);
json_t *json_u64(uint64_t value);

/*
 * A table: columns as wide as their longest cell, two blanks between. Make one,
 * give it rows cell by cell, print it or not, free it.
 */
struct table;

/* @titles: ends with NULL; one that begins with '>' is of numbers, set right. */
struct table *table_new(const char *const *titles);
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A line of its own below the last row, indented. */
void table_note(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(const struct table *table);
void table_free(struct table *table);

struct rmpool_nl;

/* What a command lists: an array with -j, else a table; the other is NULL. */
struct list {
	struct table *table;
	json_t *array;
};

/*
 * All of a command that lists what the module has: @ask adds it to the list, which
 * is printed as {"@key": [...]}, or as the sentence @empty where it has no row and
 * is not for programs. Returns an exit code.
 */
int run_list(const char *const *titles, int (*ask)(struct rmpool_nl *nl, struct list *list),
	     const char *key, const char *empty);

/* Memory that there must be: ends the program when there is none. */
void *need_memory(void *memory);

#endif
