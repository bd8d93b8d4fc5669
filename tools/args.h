/* SPDX-License-Identifier: MIT */
/*
 * Reading a command line by tables: what an option is called, takes and means
 * stands in one place, from which both the parser and --help work.
 */
#ifndef RMPOOL_TOOL_ARGS_H
#define RMPOOL_TOOL_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
	OPTION_FLAG,	/* bool */
	OPTION_TEXT,	/* const char * */
	OPTION_SIZE,	/* uint64_t, bytes */
	OPTION_SECONDS,	/* int, milliseconds */
	OPTION_TEXTS,	/* struct option_texts: may be given several times */
};

enum { OPTION_TEXTS_MAX = 64 };

struct option_texts {
	const char *text[OPTION_TEXTS_MAX];
	unsigned int nr;
};

/* One option; a table of them ends with one that has no name. */
struct option_def {
	const char *name;	/* without the dashes */
	char letter;		/* or 0 */
	enum option_kind kind;
	void *value;		/* where it goes, of the kind's type */
	const char *operand;	/* how --help names the value; NULL for a flag */
	const char *help;
};

struct args {
	int argc;
	char **argv;
	int next;		/* index of the next word */
	const char *letters;	/* the rest of a word like -jq, or NULL */
	bool operands_only;	/* -- was seen */
	/* Options that are known now; the second is NULL until a command is. */
	const struct option_def *tables[2];
	char wrong[256];	/* what is wrong, when a call says so */
};

void args_init(struct args *args, int argc, char **argv,
	       const struct option_def *options);

/*
 * Takes options up to and with the next operand. 1: there is one; 0: the words
 * are used up; -1: something is wrong, and args->wrong says what.
 */
int args_operand(struct args *args, const char **operand);

/* Lists the options of a table, aligned. */
void args_help(FILE *to, const struct option_def *options);

#endif
