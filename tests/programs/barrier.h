/* SPDX-License-Identifier: MIT */
/*
 * For test programs with a part on each host: waits until the other is there, too; and a
 * main() for both.
 */
#ifndef BARRIER_H
#define BARRIER_H

#include <rmpool.h>
#include "report.h"

static inline void barrier(const char *name)
{
	char command[64];

	snprintf(command, sizeof(command), "vmctl barrier %s 150", name);
	/* NOLINTNEXTLINE(cert-env33-c): the words are the program's own */
	if (system(command))
		give_up("barrier %s: the other host did not come", name);
}

/* Host b is the owner of the memory, host a comes to it. */
static inline int two_parts(const char *host, struct rmpool **pool, void (*owner)(void),
			    void (*other)(void))
{
	if (rmpool_open(pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (host[0] == 'b')
		owner();
	else
		other();
	rmpool_close(*pool);
	return report_failed != 0;
}

#endif /* BARRIER_H */
