// SPDX-License-Identifier: GPL-2.0
/*
 * The registration queue pair of a domain: makes fast-registration MRs valid.
 *
 * REG_MR is a work request and needs a queue pair that is ready to send, also
 * when no peer is known yet. So each domain (domain.c) has one that is connected to
 * itself, with plain verbs: that of the default group as soon as a port of the device has
 * an address, others when they are first used. An MR registered through it serves all
 * queue pairs of the same PD.
 *
 * A REG_MR that fails puts the queue pair into the error state. It is then
 * drained and destroyed, and the next call makes a new one: data queue pairs
 * never notice.
 *
 * Locking: rmp_regqp.lock serialises all use and guards @qp and @cq. Nothing
 * else is taken inside but what the verbs take. Callers sleep.
 *
 * Lifetime: that of the domain.
 *
 * iWARP devices cannot be connected to themselves with ib_modify_qp() (the
 * connection is a TCP one). rmp_regqp_bring_up() is the place where another
 * way to connect has to branch off; until then they stay unusable, and say so.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "regqp.h"

/* REG_MR requests in one chain. */
#define RMP_REGQP_CHAIN		64
/* A local operation takes microseconds; this is for hardware that is dead. */
#define RMP_REGQP_TIMEOUT	(10 * HZ)

/**
 * struct rmp_regqp - the queue pair and what it needs to post
 * @lock: guards all below, and its use
 * @cq: its completion queue
 * @qp: or NULL while it is not connected
 * @cqe: of all requests but the last: completes only when one fails
 * @last: of the last request of a chain
 * @done: the last request completed
 * @status: of the first request that failed
 * @wrs: one chain
 */
struct rmp_regqp {
	struct mutex lock;	/* of all below */
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_cqe cqe;
	struct ib_cqe last;
	struct completion done;
	enum ib_wc_status status;
	struct ib_reg_wr wrs[RMP_REGQP_CHAIN];
};

static void rmp_regqp_note(struct rmp_regqp *rq, struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS && rq->status == IB_WC_SUCCESS)
		rq->status = wc->status;
}

static void rmp_regqp_done(struct ib_cq *cq, struct ib_wc *wc)
{
	rmp_regqp_note(container_of(wc->wr_cqe, struct rmp_regqp, cqe), wc);
}

static void rmp_regqp_last(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rmp_regqp *rq = container_of(wc->wr_cqe, struct rmp_regqp, last);

	rmp_regqp_note(rq, wc);
	complete(&rq->done);
}

static int rmp_regqp_to_init(struct ib_qp *qp, u32 port)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.pkey_index = 0,
		.port_num = port,
		.qp_access_flags = 0,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

/* The path of a port to itself. */
static int rmp_regqp_path(struct ib_device *ibdev, const struct rmp_port *port,
			  struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr attr;
	union ib_gid dgid = port->gid;
	int err;

	ah->type = rdma_ah_find_type(ibdev, port->num);
	rdma_ah_set_port_num(ah, port->num);

	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {
		err = ib_query_port(ibdev, port->num, &attr);
		if (err)
			return err;
		if (!attr.lid)
			return -ENOTCONN;
		rdma_ah_set_dlid(ah, attr.lid);
		rdma_ah_set_sl(ah, attr.sm_sl);
		return 0;
	}

	rdma_ah_set_grh(ah, &dgid, 0, port->gid_index, 64, 0);
	gid = rdma_get_gid_attr(ibdev, port->num, port->gid_index);
	if (IS_ERR(gid))
		return -ENOTCONN;
	/* The entry may be another one by now; an event then comes. */
	err = -ENOTCONN;
	if (!memcmp(&gid->gid, &port->gid, sizeof(gid->gid)))
		err = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
	rdma_put_gid_attr(gid);
	return err;
}

static int rmp_regqp_to_rtr(struct ib_qp *qp, const struct rmp_port *port)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = port->mtu,
		.dest_qp_num = qp->qp_num,
		.rq_psn = 0,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	int err;

	err = rmp_regqp_path(qp->device, port, &attr.ah_attr);
	if (err)
		return err;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int rmp_regqp_to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 6,
		.sq_psn = 0,
		.max_rd_atomic = 1,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

static void rmp_regqp_tear_down(struct rmp_regqp *rq)
{
	if (!rq->qp)
		return;
	ib_drain_qp(rq->qp);
	ib_destroy_qp(rq->qp);
	rq->qp = NULL;
	ib_free_cq(rq->cq);
	rq->cq = NULL;
}

static int rmp_regqp_bring_up(struct rmp_domain *domain,
			      const struct rmp_port *port)
{
	struct rmp_regqp *rq = domain->regqp;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			/* draining posts one more to each queue */
			.max_send_wr = RMP_REGQP_CHAIN + 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_cq *cq;
	struct ib_qp *qp;
	int err;

	cq = ib_alloc_cq_any(domain->dev->ibdev, rq, RMP_REGQP_CHAIN + 4,
			     IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);

	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(domain->pd, &init);
	if (IS_ERR(qp)) {
		err = PTR_ERR(qp);
		goto err_cq;
	}

	err = rmp_regqp_to_init(qp, port->num);
	if (!err)
		err = rmp_regqp_to_rtr(qp, port);
	if (!err)
		err = rmp_regqp_to_rts(qp);
	if (err)
		goto err_qp;

	rq->cq = cq;
	rq->qp = qp;
	return 0;

err_qp:
	ib_destroy_qp(qp);
err_cq:
	ib_free_cq(cq);
	return err;
}

static int rmp_regqp_connect_locked(struct rmp_domain *domain)
{
	struct rmp_device *dev = domain->dev;
	struct rmp_port port;
	int err = -ENOTCONN;
	u32 i;

	if (domain->regqp->qp)
		return 0;

	/* REG_MR never leaves the device: the link may be down. */
	for (i = 1; i <= dev->nr_ports; i++) {
		if (rmp_device_port(dev, i, &port) || !port.has_gid)
			continue;
		err = rmp_regqp_bring_up(domain, &port);
		if (!err)
			break;
	}
	return err;
}

int rmp_regqp_connect(struct rmp_domain *domain)
{
	int err;

	mutex_lock(&domain->regqp->lock);
	err = rmp_regqp_connect_locked(domain);
	mutex_unlock(&domain->regqp->lock);
	return err;
}

/* Posts the first @nr requests and waits for them. */
static int rmp_regqp_post(struct rmp_regqp *rq, u32 nr)
{
	const struct ib_send_wr *bad;
	int err;

	reinit_completion(&rq->done);
	rq->status = IB_WC_SUCCESS;

	/* Software devices then do the work here and not in a kernel thread. */
	local_bh_disable();
	err = ib_post_send(rq->qp, &rq->wrs[0].wr, &bad);
	local_bh_enable();
	if (err)
		return err;

	if (!wait_for_completion_timeout(&rq->done, RMP_REGQP_TIMEOUT))
		return -ETIMEDOUT;
	return rq->status == IB_WC_SUCCESS ? 0 : -EIO;
}

static int rmp_regqp_chain(struct rmp_domain *domain, struct ib_mr **mrs, u32 nr,
			   int access)
{
	struct rmp_regqp *rq = domain->regqp;
	struct ib_reg_wr *wr;
	int err;
	u32 i;

	err = rmp_regqp_connect_locked(domain);
	if (err)
		return err;

	for (i = 0; i < nr; i++) {
		bool last = i == nr - 1;

		wr = &rq->wrs[i];
		memset(wr, 0, sizeof(*wr));
		wr->wr.next = last ? NULL : &rq->wrs[i + 1].wr;
		wr->wr.wr_cqe = last ? &rq->last : &rq->cqe;
		wr->wr.opcode = IB_WR_REG_MR;
		wr->wr.send_flags = last ? IB_SEND_SIGNALED : 0;
		wr->mr = mrs[i];
		wr->key = mrs[i]->rkey;
		wr->access = access;
	}

	err = rmp_regqp_post(rq, nr);
	if (err) {
		pr_warn_ratelimited("%s: registration failed: error %d, status %s\n",
				    dev_name(&domain->dev->ibdev->dev), err,
				    ib_wc_status_msg(rq->status));
		rmp_regqp_tear_down(rq);
	}
	return err;
}

int rmp_domain_reg_mrs(struct rmp_domain *domain, struct ib_mr **mrs, u32 nr,
		       int access)
{
	int err = 0;

	while (nr && !err) {
		u32 n = min_t(u32, nr, RMP_REGQP_CHAIN);

		mutex_lock(&domain->regqp->lock);
		err = rmp_regqp_chain(domain, mrs, n, access);
		mutex_unlock(&domain->regqp->lock);
		mrs += n;
		nr -= n;
	}
	return err;
}

int rmp_regqp_create(struct rmp_domain *domain)
{
	struct rmp_regqp *rq;

	rq = kzalloc(sizeof(*rq), GFP_KERNEL);
	if (!rq)
		return -ENOMEM;
	mutex_init(&rq->lock);
	init_completion(&rq->done);
	rq->cqe.done = rmp_regqp_done;
	rq->last.done = rmp_regqp_last;
	domain->regqp = rq;
	return 0;
}

void rmp_regqp_destroy(struct rmp_domain *domain)
{
	rmp_regqp_tear_down(domain->regqp);
	mutex_destroy(&domain->regqp->lock);
	kfree(domain->regqp);
	domain->regqp = NULL;
}
