/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_PORT_H
#define RMP_PORT_H

#include "device.h"

/* Part of the device room: takes a snapshot of a port; @old is the one before.
 * Sleeps, and takes the RTNL: neither under it nor under anything that its
 * holders wait for.
 */
void rmp_port_read(struct ib_device *ibdev, u32 num, const struct rmp_port *old,
		   struct rmp_port *port);

#endif /* RMP_PORT_H */
