// SPDX-License-Identifier: MIT
/*
 * rmpool, the command line tool: finds the command, reads the command line by
 * the command's tables, and runs it. One thread; signals as in interrupt.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "units.h"

int timeout_ms;

static bool want_help, want_version;

static const struct option_def common_options[] = {
	{ "json", 'j', OPTION_FLAG, &output.json, NULL,
	  "JSON instead of text, errors as well" },
	{ "quiet", 'q', OPTION_FLAG, &output.quiet, NULL,
	  "Only errors and what was asked for" },
	{ "timeout", 't', OPTION_SECONDS, &timeout_ms, "SECONDS",
	  "Give up waiting after that time; none: never" },
	{ "help", 'h', OPTION_FLAG, &want_help, NULL, "Show this help" },
	{ "version", 'V', OPTION_FLAG, &want_version, NULL, "Show the version of the tool" },
	{ 0 },
};

static const struct command *const commands[] = {
	&command_info, &command_device,
	&command_node_show, &command_node_set,
	&command_peer_list, &command_peer_add, &command_peer_del,
	&command_segment_list, &command_region_list,
	&command_serve, &command_put, &command_get,
	&command_monitor, &command_version,
};

enum { NR_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Length of the first word of a command's name. */
static size_t group_length(const struct command *command)
{
	return strcspn(command->name, " ");
}

static bool in_group(const struct command *command, const char *group)
{
	size_t length = group_length(command);

	return strlen(group) == length && !memcmp(command->name, group, length);
}

/* "add" of "peer add", "" of "put". */
static const char *second_word(const struct command *command)
{
	const char *rest = command->name + group_length(command);

	return *rest ? rest + 1 : rest;
}

static void print_commands(FILE *to, const char *group)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (!group || in_group(commands[i], group))
			fprintf(to, "  %-14s%s\n", commands[i]->name, commands[i]->summary);
	}
}

static void print_help(FILE *to, const char *group)
{
	if (group)
		fprintf(to, "Usage: rmpool %s COMMAND [OPTIONS]\n", group);
	else
		fputs("Usage: rmpool COMMAND [OPERANDS] [OPTIONS]\n"
		      "Memory of many hosts as one pool, over RDMA.\n", to);
	fputs("\nCommands\n", to);
	print_commands(to, group);
	fputs("\nOptions\n", to);
	args_help(to, common_options);
	fprintf(to, "\nrmpool %s%sCOMMAND --help tells more of a command; so does rmpool(1).\n",
		group ? group : "", group ? " " : "");
}

static void print_command_help(const struct command *command)
{
	printf("Usage: rmpool %s%s%s%s\n%s.\n", command->name,
	       *command->operands ? " " : "", command->operands, " [OPTIONS]",
	       command->summary);
	if (command->detail)
		printf("\n%s", command->detail);
	puts("\nOptions");
	if (command->options)
		args_help(stdout, command->options);
	args_help(stdout, common_options);
}

static int unknown_command(const char *group, const char *word)
{
	const char *candidates[NR_COMMANDS + 2];
	char first[NR_COMMANDS][16];
	size_t i, nr = 0;
	const char *near;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (group && !in_group(commands[i], group))
			continue;
		snprintf(first[i], sizeof(first[i]), "%.*s", (int)group_length(commands[i]),
			 commands[i]->name);
		candidates[nr++] = group ? second_word(commands[i]) : first[i];
	}
	if (!group)
		candidates[nr++] = "help";
	candidates[nr] = NULL;
	near = nearest_word(word, candidates);
	if (near)
		return fail_text(EXIT_USAGE, group ? group : word,
				 "unknown command%s%s; did you mean %s?", group ? " " : "",
				 group ? word : "", near);
	return fail_text(EXIT_USAGE, group ? group : word,
			 "unknown command%s%s; rmpool --help lists them", group ? " " : "",
			 group ? word : "");
}

static int wrong_usage(const struct args *args)
{
	return fail_text(EXIT_USAGE, output.command, "%s", args->wrong);
}

/*
 * Finds the command that starts with @word, reading its second word if it has
 * one. NULL: there is none, and *code says how to end; *group is the first word
 * if it is one of several commands.
 */
static const struct command *find_command(struct args *args, const char *word,
					  const char **group, int *code)
{
	const struct command *first = NULL;
	const char *second;
	size_t i;

	*group = NULL;
	for (i = 0; i < NR_COMMANDS && !first; i++) {
		if (in_group(commands[i], word))
			first = commands[i];
	}
	if (!first) {
		*code = unknown_command(NULL, word);
		return NULL;
	}
	if (!*second_word(first))
		return first;
	*group = word;
	output.command = word;
	switch (args_operand(args, &second)) {
	case 0:
		/* The first of a group shows what there is. */
		return first;
	case 1:
		break;
	default:
		*code = wrong_usage(args);
		return NULL;
	}
	for (i = 0; i < NR_COMMANDS; i++) {
		if (in_group(commands[i], word) && !strcmp(second_word(commands[i]), second)) {
			*group = NULL;
			return commands[i];
		}
	}
	*code = unknown_command(word, second);
	return NULL;
}

static int run_command(struct args *args, const struct command *command,
		       const char *group)
{
	const char *operands[OPERANDS_MAX];
	const char *operand;
	int found, nr = 0;

	output.command = command->name;
	args->tables[1] = command->options;
	while ((found = args_operand(args, &operand)) > 0) {
		if (nr == command->max && !want_help)
			return fail_text(EXIT_USAGE, command->name,
					 "%s is one operand too many; see rmpool %s --help",
					 operand, command->name);
		if (nr < command->max)
			operands[nr++] = operand;
	}
	if (found < 0)
		return wrong_usage(args);
	if (want_help) {
		if (group)
			print_help(stdout, group);
		else
			print_command_help(command);
		return EXIT_OK;
	}
	if (nr < command->min)
		return fail_text(EXIT_USAGE, command->name,
				 "the operands are %s; see rmpool %s --help",
				 command->operands, command->name);
	return command->run(nr, operands);
}

static int run(int argc, char **argv)
{
	const struct command *command;
	const char *word, *group;
	struct args args;
	int found, code = EXIT_USAGE;

	output.command = "usage";
	args_init(&args, argc, argv, common_options);
	found = args_operand(&args, &word);
	if (found < 0)
		return wrong_usage(&args);
	if (want_version) {
		puts("rmpool " RMPOOL_VERSION);
		return EXIT_OK;
	}
	if (found && !strcmp(word, "help")) {
		want_help = true;
		found = args_operand(&args, &word);
		if (found < 0)
			return wrong_usage(&args);
	}
	if (!found && want_help) {
		print_help(stdout, NULL);
		return EXIT_OK;
	}
	if (!found) {
		if (!output.json)
			print_help(stderr, NULL);
		else
			fail_text(EXIT_USAGE, "usage", "no command; see rmpool --help");
		return EXIT_USAGE;
	}
	command = find_command(&args, word, &group, &code);
	return command ? run_command(&args, command, group) : code;
}

/* A file must not be opened as the standard error that we complain to. */
static void fill_standard_files(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			/* cppcheck-suppress leakReturnValNotUsed ; it stays open */
			open("/dev/null", O_RDWR);
	}
}

/* What is wrong with the command line shall be said as JSON if that is on it. */
static bool has_json(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json"))
			return true;
		if (argv[i][0] == '-' && argv[i][1] && strchr(argv[i], 'j') &&
		    strspn(argv[i] + 1, "jqhV") == strlen(argv[i] + 1))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	int code;

	fill_standard_files();
	/* Names are UTF-8 or ASCII, whatever the terminal's language is. */
	setlocale(LC_CTYPE, "C.UTF-8");
	output.json = has_json(argc, argv);
	code = run(argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "rmpool: standard output: %s\n", strerror(errno));
		if (!code)
			code = EXIT_FAILED;
	}
	return code;
}
