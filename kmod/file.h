/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_FILE_H
#define RMP_FILE_H

#include <linux/mmu_notifier.h>
#include "region.h"
#include "rsegment.h"

struct rmp_ring;

/* Most opened segments of one file. */
#define RMP_OPENS_MAX		4096

/**
 * struct rmp_file - one open file
 * @ref: the open file, its teardown and every request
 * @mem: its regions
 * @segments: published segments (&struct rmp_segment) by handle
 * @opens: opened segments (&struct rmp_rseg) by handle
 * @handles: guards @segments and @opens; read-held while requests are resolved
 * @ring: completion ring or NULL; set once, with release order
 * @lock: guards @requests
 * @requests: all requests of the file
 * @setup: serialises the set-up of the ring
 * @owner: tells of the end of the address space
 * @ended: the teardown has begun
 */
struct rmp_file {
	struct kref ref;
	struct rmp_memory mem;
	struct xarray segments;
	struct xarray opens;
	struct rw_semaphore handles;
	struct rmp_ring *ring;
	spinlock_t lock;	/* of requests */
	struct list_head requests;
	struct mutex setup;	/* of ring */
	struct mmu_interval_notifier owner;
	atomic_t ended;
	struct work_struct work;
};

int rmp_files_init(void);
/* Nobody can open one any more; waits for teardowns. */
void rmp_files_exit(void);

/**
 * rmp_file_make - a file of the calling process
 *
 * Returns it with a reference, which is the open file's; -ENOMEM, or what
 * mmu_interval_notifier_insert() says. Sleeps.
 */
struct rmp_file *rmp_file_make(void);
/* No call of the owner runs now, and none comes any more: begins the teardown, if it has
 * not begun. Does not wait.
 */
void rmp_file_end(struct rmp_file *file);
/* Any context. */
void rmp_file_put(struct rmp_file *file);

#endif /* RMP_FILE_H */
