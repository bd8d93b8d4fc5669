// SPDX-License-Identifier: GPL-2.0
/*
 * The protection domains of a device: one for each trust group that needs it there.
 *
 * Memory regions and queue pairs of different domains have nothing to do with each other,
 * which the device sees to. A domain has a queue pair that makes memory regions valid
 * (regqp.c), since one serves its own domain only. Both are made when the first mapping or
 * data queue pair of the group is, and go with the last. That of the default group is
 * there as long as the device.
 *
 * Locking: rmp_device.domain_lock (mutex) guards the table and the counts of users. What
 * the verbs take is taken within.
 */
#include <linux/slab.h>
#include "domain.h"
#include "regqp.h"

static struct rmp_domain *domain_make(struct rmp_device *dev, u32 group)
{
	struct rmp_domain *domain;
	int err = -ENOMEM;

	if (!rmp_group_use(group))
		return ERR_PTR(-ENOENT);
	domain = kzalloc(sizeof(*domain), GFP_KERNEL);
	if (!domain)
		goto err_group;
	domain->dev = dev;
	domain->group = group;
	domain->pd = ib_alloc_pd(dev->ibdev, 0);
	if (IS_ERR(domain->pd)) {
		err = PTR_ERR(domain->pd);
		goto err_free;
	}
	err = rmp_regqp_create(domain);
	if (err)
		goto err_pd;
	return domain;

err_pd:
	ib_dealloc_pd(domain->pd);
err_free:
	kfree(domain);
err_group:
	rmp_group_unuse(group);
	return ERR_PTR(err);
}

static void domain_end(struct rmp_domain *domain)
{
	rmp_regqp_destroy(domain);
	ib_dealloc_pd(domain->pd);
	rmp_group_unuse(domain->group);
	kfree(domain);
}

struct rmp_domain *rmp_domain_get(struct rmp_device *dev, u32 group)
{
	struct rmp_domain *domain;

	mutex_lock(&dev->domain_lock);
	domain = dev->domains[group];
	if (!domain) {
		domain = domain_make(dev, group);
		if (!IS_ERR(domain))
			dev->domains[group] = domain;
	}
	if (!IS_ERR(domain))
		domain->users++;
	mutex_unlock(&dev->domain_lock);
	return domain;
}

void rmp_domain_put(struct rmp_domain *domain)
{
	struct rmp_device *dev = domain->dev;

	mutex_lock(&dev->domain_lock);
	if (!--domain->users) {
		dev->domains[domain->group] = NULL;
		domain_end(domain);
	}
	mutex_unlock(&dev->domain_lock);
}

void rmp_domain_end_all(struct rmp_device *dev)
{
	u32 i;

	for (i = 0; i < RMP_GROUPS_MAX; i++) {
		if (dev->domains[i])
			domain_end(dev->domains[i]);
	}
	mutex_destroy(&dev->domain_lock);
}
