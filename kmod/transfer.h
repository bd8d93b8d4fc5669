/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_TRANSFER_H
#define RMP_TRANSFER_H

#include <linux/rmpool.h>
#include "file.h"

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
/* Ends what is queued and uses a region that is dead: that is about to be
 * unregistered.
 */
void rmp_transfer_cancel_dead(struct rmp_file *file);
/* Whether a call may name so many requests or regions. */
int rmp_transfer_check_nr(u32 nr, struct rmpool_error *error);
/* When the file ends: ends everything of the file that is not posted; what is
 * posted ends by itself and reports to nobody. Does not wait for it.
 */
void rmp_transfer_kill(struct rmp_file *file);

#endif /* RMP_TRANSFER_H */
