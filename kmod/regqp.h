/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REGQP_H
#define RMP_REGQP_H

#include "domain.h"

/* Part of the device room: not for others. */
int rmp_regqp_create(struct rmp_domain *domain);
void rmp_regqp_destroy(struct rmp_domain *domain);
/* Connects it when it is not; -ENOTCONN while no port has an address yet. */
int rmp_regqp_connect(struct rmp_domain *domain);

#endif /* RMP_REGQP_H */
