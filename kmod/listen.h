/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_LISTEN_H
#define RMP_LISTEN_H

#include <linux/workqueue.h>
#include "cm.h"

/**
 * struct rmp_cm_request - a connect request that came in
 * @src: where it came from
 * @req: its private data, decoded
 *
 * Belongs to whom it was handed to, who must pass it to rmp_conn_accept() or
 * rmp_cm_reject() once; either consumes it.
 */
struct rmp_cm_request {
	struct sockaddr_storage src;
	struct rmp_wire_req req;
	/* the rest belongs to listen.c and cm.c */
	struct work_struct work;
	struct rdma_cm_id *id;
	u8 responder_resources;
	u8 initiator_depth;
	u8 data_len;
	u8 data[RMP_WIRE_REQ_MAX];
};

struct rmp_listener;

/* @incoming is called on rmp_peers_wq for each well-formed request; may sleep. */
int rmp_cm_init(void (*incoming)(struct rmp_cm_request *req));
/* All listeners must be closed before. Waits for @incoming to return. */
void rmp_cm_exit(void);
/* @addr: port 0 chooses one; @addr is updated. */
int rmp_cm_listen(struct sockaddr_storage *addr, struct rmp_listener **out);
/* False once the device that it was bound to was removed. */
bool rmp_cm_listening(const struct rmp_listener *listener);
/* Requests that came in before may still be on their way to @incoming. */
void rmp_cm_unlisten(struct rmp_listener *listener);

/* @quiet: an expected reject, not logged. */
void rmp_cm_reject(struct rmp_cm_request *req, enum rmp_wire_reject why,
		   bool quiet);
/* By rmp_conn_accept(), which has taken the cm_id over. */
void rmp_cm_request_free(struct rmp_cm_request *req);

#endif /* RMP_LISTEN_H */
