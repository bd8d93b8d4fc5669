// SPDX-License-Identifier: MIT
/*
 * What the tool says; see output.h. One thread; a table belongs to its caller
 * until it is printed. Running out of memory for a few lines of text ends the
 * program: nothing it holds outlives it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <rmpool.h>

#include "output.h"

struct output output;

void *need_memory(void *memory)
{
	if (!memory) {
		fputs("rmpool: out of memory\n", stderr);
		exit(EXIT_FAILED);
	}
	return memory;
}

static char *format_text(const char *format, va_list list)
{
	char *text;

	if (vasprintf(&text, format, list) < 0)
		text = NULL;
	return need_memory(text);
}

/* Replaces what could move a terminal's cursor; keeps valid UTF-8. */
static char *printable(char *text)
{
	mbstate_t state;
	wchar_t wide;
	size_t length;
	char *at;

	memset(&state, 0, sizeof(state));
	for (at = text; *at; at += length) {
		length = mbrtowc(&wide, at, strlen(at), &state);
		if (length >= (size_t)-2) {
			memset(&state, 0, sizeof(state));
			length = 1;
			*at = '?';
		} else if (wide < 0x20 || (wide >= 0x7f && wide < 0xa0)) {
			memset(at, '?', length);
		}
	}
	return text;
}

/* Columns that a text takes on a terminal. */
static int columns(const char *text)
{
	mbstate_t state;
	const char *at = text;
	size_t length;

	memset(&state, 0, sizeof(state));
	length = mbsrtowcs(NULL, &at, 0, &state);
	return (int)(length == (size_t)-1 ? strlen(text) : length);
}

enum exit_code exit_code_of(int error)
{
	switch (-error) {
	case 0:
		return EXIT_OK;
	case ENODEV:
		return EXIT_UNAVAILABLE;
	case EACCES:
	case EPERM:
		return EXIT_DENIED;
	case ETIMEDOUT:
	case ETIME:
	case ECONNREFUSED:
	case ECONNRESET:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENOTCONN:
		return EXIT_UNREACHED;
	default:
		return EXIT_FAILED;
	}
}

static json_t *error_object(const char *what, const char *why, int error, int code)
{
	json_t *object = need_memory(json_object());
	const char *name = error ? strerrorname_np(-error) : NULL;

	json_object_set_new(object, "what", json_text(what));
	json_object_set_new(object, "why", json_text(why));
	json_object_set_new(object, "errno", json_text(name ? name : ""));
	json_object_set_new(object, "exit_code", json_integer(code));
	return object;
}

void wipe_progress(void)
{
	if (output.unfinished)
		fputs("\r\033[K", stderr);
	output.unfinished = false;
}

static int complain(char *what, char *why, json_t *error, int code)
{
	printable(what);
	printable(why);
	fflush(stdout);
	wipe_progress();
	fprintf(stderr, "rmpool: %s: %s\n", what, why);
	if (output.json)
		print_json_line(json_pack("{s:o}", "error", error));
	free(what);
	free(why);
	return code;
}

static int library_failed(int error, enum exit_code code)
{
	const struct rmpool_error detail = *rmpool_error_detail();
	char *what = need_memory(strdup(output.command));
	char *why = need_memory(strdup(rmpool_error()));
	json_t *object = NULL;

	if (output.json) {
		object = error_object(what, why, error, (int)code);
		if (detail.reason) {
			json_object_set_new(object, "reason",
					    json_text(rmpool_reason_name(detail.reason)));
			json_object_set_new(object, "limit", json_u64(detail.limit));
			json_object_set_new(object, "used", json_u64(detail.used));
			json_object_set_new(object, "need", json_u64(detail.need));
		}
	}
	return complain(what, why, object, (int)code);
}

int fail_library(int error)
{
	return library_failed(error, exit_code_of(error));
}

int fail_open(int error)
{
	bool absent = error == -ENOENT || error == -ENXIO;

	return library_failed(error, absent ? EXIT_UNAVAILABLE : exit_code_of(error));
}

static int number_failed(int number, const char *why, const char *what, va_list list)
{
	enum exit_code code = exit_code_of(-number);
	char *text = format_text(what, list);
	json_t *object = NULL;

	if (output.json)
		object = error_object(text, why, -number, (int)code);
	return complain(text, need_memory(strdup(why)), object, (int)code);
}

int fail_system(int number, const char *what, ...)
{
	va_list list;
	int code;

	va_start(list, what);
	code = number_failed(number, strerror(number), what, list);
	va_end(list);
	return code;
}

int fail_why(int number, const char *why, const char *what, ...)
{
	va_list list;
	int code;

	va_start(list, what);
	code = number_failed(number, why, what, list);
	va_end(list);
	return code;
}

int fail_text(enum exit_code code, const char *what, const char *why, ...)
{
	json_t *object = NULL;
	va_list list;
	char *text;

	va_start(list, why);
	text = format_text(why, list);
	va_end(list);
	if (output.json)
		object = error_object(what, text, 0, (int)code);
	return complain(need_memory(strdup(what)), text, object, (int)code);
}

int fail_signal(int signal)
{
	return fail_text((enum exit_code)(EXIT_SIGNAL + signal), output.command, "interrupted");
}

void warn_text(const char *what, const char *why, ...)
{
	va_list list;
	char *text;

	va_start(list, why);
	text = printable(format_text(why, list));
	va_end(list);
	wipe_progress();
	fprintf(stderr, "rmpool: %s: %s\n", what, text);
	free(text);
}

static void print_list(const char *format, va_list list)
{
	char *text = printable(format_text(format, list));

	puts(text);
	fflush(stdout);
	free(text);
}

void print_line(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	print_list(format, list);
	va_end(list);
}

void say(const char *format, ...)
{
	va_list list;

	if (output.quiet || output.json)
		return;
	va_start(list, format);
	print_list(format, list);
	va_end(list);
}

void print_field(const char *name, const char *value, ...)
{
	va_list list;
	char *text;

	va_start(list, value);
	text = printable(format_text(value, list));
	va_end(list);
	printf("%-12s  %s\n", name, *text ? text : "-");
	free(text);
}

static void dump_json(json_t *root, size_t flags)
{
	need_memory(root);
	json_dumpf(root, stdout, flags | JSON_REAL_PRECISION(9));
	putchar('\n');
	fflush(stdout);
	json_decref(root);
}

void print_json(json_t *root)
{
	dump_json(root, JSON_INDENT(2));
}

void print_json_line(json_t *root)
{
	dump_json(root, JSON_COMPACT);
}

json_t *json_text(const char *text)
{
	json_t *string;
	char *copy;

	if (!*text)
		return json_null();
	copy = printable(need_memory(strdup(text)));
	string = need_memory(json_string(copy));
	free(copy);
	return string;
}

json_t *json_u64(uint64_t value)
{
	/* What JSON readers cannot hold as an integer is "no limit" here. */
	return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

struct table {
	const char *const *titles;
	size_t nr_columns;
	char **cells;		/* row by row; a note is a row with one cell */
	size_t nr_cells;
	size_t *notes;		/* numbers of the cells that are notes */
	size_t nr_notes;
};

struct table *table_new(const char *const *titles)
{
	struct table *table = need_memory(calloc(1, sizeof(*table)));

	table->titles = titles;
	while (titles[table->nr_columns])
		table->nr_columns++;
	return table;
}

static void add_cell(struct table *table, char *text)
{
	size_t room = (table->nr_cells + 1) * sizeof(*table->cells);

	table->cells = need_memory(realloc(table->cells, room));
	table->cells[table->nr_cells++] = printable(text);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list list;
	char *text;

	va_start(list, format);
	text = format_text(format, list);
	va_end(list);
	/* An empty cell would look like a hole. */
	if (!*text) {
		free(text);
		text = need_memory(strdup("-"));
	}
	add_cell(table, text);
}

void table_note(struct table *table, const char *format, ...)
{
	size_t room = (table->nr_notes + 1) * sizeof(*table->notes);
	va_list list;

	table->notes = need_memory(realloc(table->notes, room));
	table->notes[table->nr_notes++] = table->nr_cells;
	va_start(list, format);
	add_cell(table, format_text(format, list));
	va_end(list);
}

static bool is_note(const struct table *table, size_t *note, size_t cell)
{
	if (*note == table->nr_notes || table->notes[*note] != cell)
		return false;
	(*note)++;
	return true;
}

static void print_cell(const struct table *table, size_t column, int width,
		       const char *text)
{
	int pad = width - columns(text);

	if (column)
		fputs("  ", stdout);
	if (table->titles[column][0] == '>')
		printf("%*s%s", pad, "", text);
	else if (column + 1 < table->nr_columns)
		printf("%s%*s", text, pad, "");
	else
		fputs(text, stdout);
}

static const char *title(const struct table *table, size_t column)
{
	return table->titles[column] + (table->titles[column][0] == '>');
}

void table_print(const struct table *table)
{
	int *widths = need_memory(calloc(table->nr_columns, sizeof(*widths)));
	size_t column, cell, note;

	for (column = 0; column < table->nr_columns; column++)
		widths[column] = columns(title(table, column));
	for (cell = note = column = 0; cell < table->nr_cells; cell++) {
		if (is_note(table, &note, cell))
			continue;
		if (columns(table->cells[cell]) > widths[column])
			widths[column] = columns(table->cells[cell]);
		column = (column + 1) % table->nr_columns;
	}

	for (column = 0; column < table->nr_columns; column++)
		print_cell(table, column, widths[column], title(table, column));
	putchar('\n');
	for (cell = note = column = 0; cell < table->nr_cells; cell++) {
		if (is_note(table, &note, cell)) {
			printf("  %s\n", table->cells[cell]);
			continue;
		}
		print_cell(table, column, widths[column], table->cells[cell]);
		column = (column + 1) % table->nr_columns;
		if (!column)
			putchar('\n');
	}
	free(widths);
}

void table_free(struct table *table)
{
	size_t cell;

	if (!table)
		return;
	for (cell = 0; cell < table->nr_cells; cell++)
		free(table->cells[cell]);
	free(table->cells);
	free(table->notes);
	free(table);
}

int run_list(const char *const *titles, int (*ask)(struct rmpool_nl *nl, struct list *list),
	     const char *key, const char *empty)
{
	struct rmpool_nl *nl;
	struct list list;
	int error, code;

	error = rmpool_nl_open(&nl);
	if (error)
		return fail_open(error);
	list.array = output.json ? need_memory(json_array()) : NULL;
	list.table = output.json ? NULL : table_new(titles);
	error = ask(nl, &list);
	code = error ? fail_library(error) : EXIT_OK;
	rmpool_nl_close(nl);
	if (code == EXIT_OK && output.json)
		print_json(json_pack("{s:O}", key, list.array));
	else if (code == EXIT_OK && list.table->nr_cells)
		table_print(list.table);
	else if (code == EXIT_OK)
		say("%s", empty);
	json_decref(list.array);
	table_free(list.table);
	return code;
}
