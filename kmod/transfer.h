/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_TRANSFER_H
#define RMP_TRANSFER_H

#include <linux/rmpool.h>
#include "region.h"
#include "rsegment.h"

struct rmp_ring;

/* Most opened segments of one file. */
#define RMP_OPENS_MAX		4096

/**
 * struct rmp_file - one open file, as chardev.c sees it
 * @mem: its regions
 * @segments: published segments (&struct rmp_segment) by handle
 * @opens: opened segments (&struct rmp_rseg) by handle; RCU look-up
 * @ring: completion ring or NULL; set once
 * @dead: release() has begun
 *
 * Referenced by the open file and by every request in flight.
 */
struct rmp_file {
	struct kref ref;
	struct rmp_memory mem;
	struct xarray segments;
	struct xarray opens;
	struct rmp_ring *ring;
	bool dead;
	/* of transfer.c */
	spinlock_t lock;
	struct list_head requests;
	/* of chardev.c */
	struct mutex setup;
	struct work_struct teardown;
};

/* Data rooms, given to peer.c by main.c; see struct rmp_peer_ops. */
struct rmp_flow *rmp_flow_create(struct rmp_peer *peer);
void rmp_flow_destroy(struct rmp_flow *flow);
void rmp_flow_kick(struct rmp_flow *flow);

int rmp_transfer_init(void);
void rmp_transfer_exit(void);

int rmp_transfer_submit(struct rmp_file *file, struct rmpool_submit *arg);
int rmp_transfer_submit_sync(struct rmp_file *file,
			     struct rmpool_submit_sync *arg);
int rmp_transfer_cancel(struct rmp_file *file, struct rmpool_cancel *arg);
/* From release(): ends everything of the file that is not posted; what is
 * posted ends by itself and reports to nobody. Does not wait.
 */
void rmp_transfer_kill(struct rmp_file *file);

#endif /* RMP_TRANSFER_H */
