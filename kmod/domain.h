/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_DOMAIN_H
#define RMP_DOMAIN_H

#include "device.h"
#include "group.h"

struct rmp_regqp;

/**
 * struct rmp_domain - what a device has for the peers of one trust group
 * @dev: the device; whoever uses the domain has a reference of it
 * @pd: for regions and data queue pairs
 * @group: index of the group
 * @users: mappings, queue pairs, and for the default group the device; under
 *	&struct rmp_device.domain_lock
 * @regqp: makes memory regions of @pd valid (regqp.c)
 */
struct rmp_domain {
	struct rmp_device *dev;
	struct ib_pd *pd;
	u32 group;
	u32 users;
	struct rmp_regqp *regqp;
};

/* Made when it is not there; -ENOENT: the group has no peer any more. Sleeps. */
struct rmp_domain *rmp_domain_get(struct rmp_device *dev, u32 group);
/* The last one destroys it. Sleeps. */
void rmp_domain_put(struct rmp_domain *domain);

/**
 * rmp_domain_reg_mrs - make mapped MRs valid
 * @domain: used
 * @mrs: MRs of @domain->pd after ib_map_mr_sg(), keys already updated
 * @nr: how many
 * @access: IB_ACCESS_*
 *
 * Posts REG_MR in chains on the domain's registration queue pair and waits.
 * Sleeps; calls on one domain are serialised inside. When it fails, all the
 * MRs are to be deregistered.
 */
int rmp_domain_reg_mrs(struct rmp_domain *domain, struct ib_mr **mrs, u32 nr,
		       int access);

/* By device.c: when nobody has a reference any more; what is left stayed since the device
 * did not let go of something in it.
 */
void rmp_domain_end_all(struct rmp_device *dev);

#endif /* RMP_DOMAIN_H */
