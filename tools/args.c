// SPDX-License-Identifier: MIT
/*
 * Reading a command line by tables; see args.h. Options may stand anywhere
 * before "--", as --name VALUE, --name=VALUE, -n VALUE or -nVALUE, and letters
 * without a value may be joined. State is in struct args and in the variables
 * that the tables point to; one thread.
 */
#include <stdarg.h>
#include <string.h>

#include "args.h"
#include "units.h"

enum { TABLES = 2, CANDIDATES_MAX = 32, HELP_COLUMN = 26 };

void args_init(struct args *args, int argc, char **argv,
	       const struct option_def *options)
{
	memset(args, 0, sizeof(*args));
	args->argc = argc;
	args->argv = argv;
	args->next = 1;
	args->tables[0] = options;
}

static int __attribute__((format(printf, 2, 3)))
wrong(struct args *args, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(args->wrong, sizeof(args->wrong), format, list);
	va_end(list);
	return -1;
}

static const struct option_def *find_name(const struct args *args, const char *name,
					  size_t length)
{
	const struct option_def *option;
	int i;

	for (i = 0; i < TABLES; i++) {
		for (option = args->tables[i]; option && option->name; option++) {
			if (strlen(option->name) == length &&
			    !memcmp(option->name, name, length))
				return option;
		}
	}
	return NULL;
}

static const struct option_def *find_letter(const struct args *args, char letter)
{
	const struct option_def *option;
	int i;

	for (i = 0; i < TABLES; i++) {
		for (option = args->tables[i]; option && option->name; option++) {
			if (option->letter == letter)
				return option;
		}
	}
	return NULL;
}

static int unknown_name(struct args *args, const char *name, size_t length)
{
	const char *candidates[CANDIDATES_MAX + 1];
	const struct option_def *option;
	const char *nearest;
	char word[32];
	int i, nr = 0;

	for (i = 0; i < TABLES; i++) {
		for (option = args->tables[i]; option && option->name; option++) {
			if (nr < CANDIDATES_MAX)
				candidates[nr++] = option->name;
		}
	}
	candidates[nr] = NULL;
	if (length >= sizeof(word))
		return wrong(args, "unknown option --%.*s", (int)length, name);
	memcpy(word, name, length);
	word[length] = 0;
	nearest = nearest_word(word, candidates);
	if (nearest)
		return wrong(args, "unknown option --%s; did you mean --%s?", word, nearest);
	return wrong(args, "unknown option --%s", word);
}

static int take_value(struct args *args, const struct option_def *option,
		      const char *text)
{
	struct option_texts *texts = option->value;
	const char *bad = NULL;

	switch (option->kind) {
	case OPTION_SIZE:
		bad = parse_size(text, option->value);
		break;
	case OPTION_SECONDS:
		bad = parse_seconds(text, option->value);
		break;
	case OPTION_TEXTS:
		if (texts->nr == OPTION_TEXTS_MAX)
			return wrong(args, "--%s is given more than %d times", option->name,
				     OPTION_TEXTS_MAX);
		texts->text[texts->nr++] = text;
		break;
	default:
		*(const char **)option->value = text;
		break;
	}
	return bad ? wrong(args, "--%s %s: %s", option->name, text, bad) : 0;
}

static int needs_value(struct args *args, const struct option_def *option)
{
	return wrong(args, "--%s needs a value: %s", option->name, option->operand);
}

static int take_long(struct args *args, const char *name)
{
	const char *equals = strchrnul(name, '=');
	size_t length = (size_t)(equals - name);
	const struct option_def *option = find_name(args, name, length);

	if (!option)
		return unknown_name(args, name, length);
	if (option->kind == OPTION_FLAG) {
		if (*equals)
			return wrong(args, "--%s takes no value", option->name);
		*(bool *)option->value = true;
		return 0;
	}
	if (*equals)
		return take_value(args, option, equals + 1);
	if (args->next == args->argc)
		return needs_value(args, option);
	return take_value(args, option, args->argv[args->next++]);
}

static int take_letter(struct args *args)
{
	char letter = *args->letters++;
	const struct option_def *option = find_letter(args, letter);
	const char *text = args->letters;

	if (!*args->letters)
		args->letters = NULL;
	if (!option)
		return wrong(args, "unknown option -%c", letter);
	if (option->kind == OPTION_FLAG) {
		*(bool *)option->value = true;
		return 0;
	}
	if (!args->letters) {
		if (args->next == args->argc)
			return needs_value(args, option);
		text = args->argv[args->next++];
	}
	args->letters = NULL;
	return take_value(args, option, text);
}

int args_operand(struct args *args, const char **operand)
{
	const char *word;

	for (;;) {
		if (args->letters) {
			if (take_letter(args))
				return -1;
			continue;
		}
		if (args->next == args->argc)
			return 0;
		word = args->argv[args->next++];
		/* A lone dash is an operand: standard input or output. */
		if (args->operands_only || word[0] != '-' || !word[1]) {
			*operand = word;
			return 1;
		}
		if (word[1] != '-') {
			args->letters = word + 1;
		} else if (!word[2]) {
			args->operands_only = true;
		} else if (take_long(args, word + 2)) {
			return -1;
		}
	}
}

void args_help(FILE *to, const struct option_def *options)
{
	const struct option_def *option;
	const char *line, *end;
	int used;

	for (option = options; option->name; option++) {
		used = option->letter ? fprintf(to, "  -%c, --%s", option->letter, option->name) :
					fprintf(to, "      --%s", option->name);
		if (option->operand)
			used += fprintf(to, " %s", option->operand);
		if (used > HELP_COLUMN - 2) {
			fputc('\n', to);
			used = 0;
		}
		for (line = option->help; ; line = end + 1) {
			end = strchrnul(line, '\n');
			fprintf(to, "%*s%.*s\n", HELP_COLUMN - used, "", (int)(end - line), line);
			used = 0;
			if (!*end)
				break;
		}
	}
}
