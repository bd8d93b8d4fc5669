/* SPDX-License-Identifier: MIT */
/*
 * Files of a test of the command line tool, in a folder that is empty before and
 * after each test.
 */
#ifndef RMPOOL_TEST_CLI_FILES_H
#define RMPOOL_TEST_CLI_FILES_H

extern char folder[];
/* Paths in it; a test makes the files that it needs. */
extern char source[64], target[64], other[64];

/* Of a group of tests. */
int make_folder(void **state);
int remove_folder(void **state);
/* Of one: files that should not have been left make it fail. */
int teardown(void **state);

#endif
