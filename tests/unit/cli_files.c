// SPDX-License-Identifier: MIT
/* See cli_files.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include "cli_fake.h"
#include "cli_files.h"

char folder[] = "/tmp/rmpool-test-XXXXXX";
char source[64], target[64], other[64];

int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(source, sizeof(source), "%s/source", folder);
	snprintf(target, sizeof(target), "%s/target", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int teardown(void **state)
{
	(void)state;
	unlink(source);
	unlink(target);
	unlink(other);
	if (rmdir(folder) || mkdir(folder, 0700))
		return -1;
	return fake->opened || fake->registered || fake->pinned ? -1 : 0;
}
