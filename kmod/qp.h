/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_QP_H
#define RMP_QP_H

#include "peer.h"

/* Given to peer.c by main.c; see struct rmp_peer_ops. */
struct rmp_conn *rmp_qp_create(struct rmp_rail *rail, u32 index);
void rmp_qp_start(struct rmp_conn *conn);
void rmp_qp_drain(struct rmp_conn *conn);
void rmp_qp_destroy(struct rmp_conn *conn);

#endif /* RMP_QP_H */
