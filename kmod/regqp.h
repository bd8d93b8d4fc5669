/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REGQP_H
#define RMP_REGQP_H

#include "device.h"

/* Part of the device room: not for others. */
int rmp_regqp_create(struct rmp_device *dev);
void rmp_regqp_destroy(struct rmp_device *dev);
/* Connects it when it is not; -ENOTCONN while no port has an address yet. */
int rmp_regqp_connect(struct rmp_device *dev);

#endif /* RMP_REGQP_H */
