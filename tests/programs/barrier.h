/* SPDX-License-Identifier: MIT */
/*
 * For test programs with a part on each host: waits until the other is there, too.
 */
#ifndef BARRIER_H
#define BARRIER_H

#include "report.h"

static inline void barrier(const char *name)
{
	char command[64];

	snprintf(command, sizeof(command), "vmctl barrier %s 150", name);
	/* NOLINTNEXTLINE(cert-env33-c): the words are the program's own */
	if (system(command))
		give_up("barrier %s: the other host did not come", name);
}

#endif /* BARRIER_H */
