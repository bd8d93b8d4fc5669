/* SPDX-License-Identifier: MIT */
/*
 * For test programs: how the node shows regions of dma-bufs, and devices that go.
 */
#ifndef DMABUF_H
#define DMABUF_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rmpool.h>
#include "report.h"

/* Own regions of dma-bufs, as the node shows them. */
struct seen {
	uint32_t nr;
	uint32_t fewest;	/* devices, of any of them */
	uint32_t most;
	uint64_t length;
	uint32_t state;
};

static inline int see_region(const struct rmpool_nl_region *region, void *arg)
{
	struct seen *seen = arg;

	if (region->owner_pid != (uint32_t)getpid() || !region->dmabuf)
		return 0;
	if (!seen->nr || region->devices < seen->fewest)
		seen->fewest = region->devices;
	if (region->devices > seen->most)
		seen->most = region->devices;
	seen->nr++;
	seen->length += region->length;
	seen->state |= region->state;
	return 0;
}

static inline struct seen see_regions(void)
{
	struct seen seen = { .nr = 0 };
	struct rmpool_nl *nl;

	if (rmpool_nl_open(&nl) || rmpool_nl_regions(nl, see_region, &seen))
		give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
	return seen;
}

/* An RDMA device goes or comes: words for rdma link. */
static inline void device(const char *what)
{
	char command[64];

	snprintf(command, sizeof(command), "rdma link %s", what);
	/* NOLINTNEXTLINE(cert-env33-c): the words are the program's own */
	if (system(command))
		give_up("%s", command);
}

#endif /* DMABUF_H */
