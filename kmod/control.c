// SPDX-License-Identifier: GPL-2.0
/*
 * The control channel of two nodes: messages over one RC queue pair, with
 * credits, so that a receiver always has a buffer for what comes.
 *
 * Both sides post RMP_CONTROL_RECV receive buffers before the connection is
 * up, which is the credit each begins with. A message costs one; the receiver
 * gives it back, in the header of whatever it sends next, after the message
 * was handled and the buffer posted again. The last credit is kept for
 * messages that give credits back, and a CREDIT message is sent when half of
 * them are owed and nothing else goes that way: so neither side can be left
 * waiting for the other.
 *
 * Sending never waits: messages are queued (RMP_CONTROL_BACKLOG at most; a
 * peer that does not drain is cut off) and posted as credits and buffers
 * allow. A message that cannot be queued for want of memory breaks the channel:
 * as long as it lives, what was sent arrives. Received messages are handled in
 * order by one work item.
 *
 * Locking: ctl->lock (BH) guards the lists, credits and posting. Completions
 * run in a workqueue. The ops are called without it.
 *
 * Lifetime: buffers live from rmp_conn_ops.setup until rmp_control_destroy(),
 * which drains the queue pair first.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "control.h"

/* Messages are small, and any Ethernet takes this: a link whose MTU is lowered
 * later then does not stop the channel.
 */
#define RMP_CONTROL_MTU		IB_MTU_1024

/* A queued message, encoded. */
struct rmp_control_msg {
	struct list_head node;
	u16 len;
	u8 type;
	u8 data[];
};

/* A registered buffer, for sending or receiving. */
struct rmp_control_buf {
	struct list_head node;
	struct rmp_control *ctl;
	struct ib_cqe cqe;
	void *data;
	u64 dma;
	u32 len;
};

static void control_break(struct rmp_control *ctl)
{
	bool tell;

	spin_lock_bh(&ctl->lock);
	tell = !ctl->dead && ctl->started;
	ctl->dead = true;
	spin_unlock_bh(&ctl->lock);
	wake_up_all(&ctl->idle);
	if (tell)
		ctl->ops->broken(ctl);
}

static void control_lost(struct rmp_conn *conn)
{
	control_break(container_of(conn, struct rmp_control, conn));
}

/* ---------------------------------------------------------------- sending */

/* Called with ctl->lock held. */
static int control_post(struct rmp_control *ctl, struct rmp_control_buf *buf)
{
	struct ib_device *ibdev = ctl->conn.dev->ibdev;
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = buf->len,
		.lkey = ctl->conn.dev->ctrl_pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &buf->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	rmp_wire_set_credits(buf->data, ctl->give);
	ctl->give = 0;
	ctl->credits--;
	ib_dma_sync_single_for_device(ibdev, buf->dma, buf->len, DMA_TO_DEVICE);
	return ib_post_send(ctl->conn.qp, &wr, NULL);
}

/* Posts what can be posted. */
static void control_pump(struct rmp_control *ctl)
{
	struct rmp_control_buf *buf;
	struct rmp_control_msg *msg;
	int ret = 0;

	spin_lock_bh(&ctl->lock);
	while (ctl->started && !ctl->dead && ctl->credits &&
	       !list_empty(&ctl->free)) {
		struct rmp_msg credit = { .type = RMP_MSG_CREDIT };

		if (ctl->credits == 1 && !ctl->give)
			break;
		buf = list_first_entry(&ctl->free, struct rmp_control_buf, node);
		msg = list_first_entry_or_null(&ctl->queue,
					       struct rmp_control_msg, node);
		if (msg) {
			memcpy(buf->data, msg->data, msg->len);
			buf->len = msg->len;
			list_del(&msg->node);
			ctl->backlog -= msg->len;
			kfree(msg);
		} else if (ctl->give >= RMP_CONTROL_RECV / 2) {
			ret = rmp_wire_encode(buf->data, RMP_WIRE_MSG_MAX,
					      &credit);
			if (ret < 0)
				break;
			buf->len = ret;
		} else {
			break;
		}
		list_del(&buf->node);
		ret = control_post(ctl, buf);
		if (ret) {
			list_add(&buf->node, &ctl->free);
			break;
		}
	}
	spin_unlock_bh(&ctl->lock);
	if (ret < 0)
		control_break(ctl);
}

static void control_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rmp_control_buf *buf = container_of(wc->wr_cqe,
						   struct rmp_control_buf, cqe);
	struct rmp_control *ctl = buf->ctl;

	spin_lock_bh(&ctl->lock);
	list_add(&buf->node, &ctl->free);
	spin_unlock_bh(&ctl->lock);
	if (wc->status != IB_WC_SUCCESS)
		control_break(ctl);
	else
		control_pump(ctl);
	wake_up_all(&ctl->idle);
}

static int control_queue(struct rmp_control *ctl, struct rmp_control_msg *msg)
{
	bool full;

	spin_lock_bh(&ctl->lock);
	if (ctl->dead) {
		spin_unlock_bh(&ctl->lock);
		kfree(msg);
		return -ENOTCONN;
	}
	ctl->backlog += msg->len;
	full = ctl->backlog > RMP_CONTROL_BACKLOG;
	list_add_tail(&msg->node, &ctl->queue);
	spin_unlock_bh(&ctl->lock);
	if (full) {
		pr_warn_ratelimited("peer does not take control messages\n");
		control_break(ctl);
		return -ENOTCONN;
	}
	control_pump(ctl);
	return 0;
}

int rmp_control_send_raw(struct rmp_control *ctl, const void *buf, size_t len)
{
	struct rmp_control_msg *msg;

	if (len > RMP_WIRE_MSG_MAX)
		return -EMSGSIZE;
	msg = kmalloc(struct_size(msg, data, len), GFP_KERNEL);
	if (!msg) {
		control_break(ctl);
		return -ENOMEM;
	}
	memcpy(msg->data, buf, len);
	msg->len = len;
	return control_queue(ctl, msg);
}

int rmp_control_send(struct rmp_control *ctl, const struct rmp_msg *msg)
{
	void *buf;
	int ret;

	buf = kmalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	if (!buf) {
		control_break(ctl);
		return -ENOMEM;
	}
	ret = rmp_wire_encode(buf, RMP_WIRE_MSG_MAX, msg);
	if (ret > 0)
		ret = rmp_control_send_raw(ctl, buf, ret);
	kfree(buf);
	return ret;
}

static bool control_is_idle(struct rmp_control *ctl)
{
	struct rmp_control_buf *buf;
	u32 nr = 0;
	bool idle;

	spin_lock_bh(&ctl->lock);
	list_for_each_entry(buf, &ctl->free, node)
		nr++;
	idle = ctl->dead ||
	       (list_empty(&ctl->queue) && nr == RMP_CONTROL_SEND);
	spin_unlock_bh(&ctl->lock);
	return idle;
}

void rmp_control_flush(struct rmp_control *ctl, long timeout)
{
	wait_event_timeout(ctl->idle, control_is_idle(ctl), timeout);
}

/* -------------------------------------------------------------- receiving */

static int control_post_recv(struct rmp_control *ctl,
			     struct rmp_control_buf *buf)
{
	struct ib_sge sge = {
		.addr = buf->dma,
		.length = RMP_WIRE_MSG_MAX,
		.lkey = ctl->conn.dev->ctrl_pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &buf->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(ctl->conn.dev->ibdev, buf->dma,
				      RMP_WIRE_MSG_MAX, DMA_FROM_DEVICE);
	return ib_post_recv(ctl->conn.qp, &wr, NULL);
}

static void control_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rmp_control_buf *buf = container_of(wc->wr_cqe,
						   struct rmp_control_buf, cqe);
	struct rmp_control *ctl = buf->ctl;

	if (wc->status != IB_WC_SUCCESS) {
		control_break(ctl);
		return;
	}
	buf->len = min_t(u32, wc->byte_len, RMP_WIRE_MSG_MAX);
	WRITE_ONCE(ctl->last_rx, jiffies);
	spin_lock_bh(&ctl->lock);
	list_add_tail(&buf->node, &ctl->received);
	if (ctl->started && !ctl->closed)
		queue_work(rmp_wq, &ctl->rx_work);
	spin_unlock_bh(&ctl->lock);
}

static int control_handle(struct rmp_control *ctl, struct rmp_control_buf *buf)
{
	struct rmp_msg *msg;
	int ret;

	msg = kmalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	ib_dma_sync_single_for_cpu(ctl->conn.dev->ibdev, buf->dma, buf->len,
				   DMA_FROM_DEVICE);
	ret = rmp_wire_decode(buf->data, buf->len, msg);
	if (ret >= 0 || ret == -ENOMSG) {
		spin_lock_bh(&ctl->lock);
		/* More than there are buffers would be a lie. */
		ctl->credits = min_t(u32, ctl->credits + msg->credits,
				     RMP_CONTROL_RECV);
		spin_unlock_bh(&ctl->lock);
	}
	if (ret >= 0 && msg->type != RMP_MSG_CREDIT)
		ret = ctl->ops->message(ctl, msg, buf->data, buf->len);
	kfree(msg);
	if (ret == -ENOMSG)		/* a type of a later version */
		ret = 0;
	return ret;
}

static void control_rx_work(struct work_struct *work)
{
	struct rmp_control *ctl = container_of(work, struct rmp_control,
					       rx_work);
	struct rmp_control_buf *buf;
	int ret;

	for (;;) {
		spin_lock_bh(&ctl->lock);
		buf = list_first_entry_or_null(&ctl->received,
					       struct rmp_control_buf, node);
		if (buf && (ctl->closed || ctl->dead))
			buf = NULL;
		if (buf)
			list_del_init(&buf->node);
		spin_unlock_bh(&ctl->lock);
		if (!buf)
			break;
		ret = control_handle(ctl, buf);
		if (ret < 0)
			pr_warn_ratelimited("control message refused (%d)\n",
					    ret);
		if (ret >= 0)
			ret = control_post_recv(ctl, buf);
		if (ret < 0) {
			control_break(ctl);
			break;
		}
		spin_lock_bh(&ctl->lock);
		ctl->give++;
		spin_unlock_bh(&ctl->lock);
		control_pump(ctl);
		cond_resched();
	}
}

/* -------------------------------------------------------------- life cycle */

static void control_free_bufs(struct rmp_control *ctl)
{
	struct rmp_control_buf *buf;
	int i;

	if (!ctl->bufs)
		return;
	for (i = 0; i < RMP_CONTROL_SEND + RMP_CONTROL_RECV; i++) {
		buf = &ctl->bufs[i];
		if (!buf->data)
			break;
		ib_dma_unmap_single(ctl->conn.dev->ibdev, buf->dma,
				    RMP_WIRE_MSG_MAX, i < RMP_CONTROL_SEND ?
				    DMA_TO_DEVICE : DMA_FROM_DEVICE);
		kfree(buf->data);
	}
	kvfree(ctl->bufs);
	ctl->bufs = NULL;
}

static int control_alloc_buf(struct rmp_control *ctl, int i)
{
	struct ib_device *ibdev = ctl->conn.dev->ibdev;
	struct rmp_control_buf *buf = &ctl->bufs[i];
	bool send = i < RMP_CONTROL_SEND;
	void *data;

	data = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	buf->dma = ib_dma_map_single(ibdev, data, RMP_WIRE_MSG_MAX,
				     send ? DMA_TO_DEVICE : DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(ibdev, buf->dma)) {
		kfree(data);
		return -ENOMEM;
	}
	buf->ctl = ctl;
	buf->data = data;
	INIT_LIST_HEAD(&buf->node);
	buf->cqe.done = send ? control_send_done : control_recv_done;
	if (send)
		list_add_tail(&buf->node, &ctl->free);
	return 0;
}

static int control_setup(struct rmp_conn *conn)
{
	struct rmp_control *ctl = container_of(conn, struct rmp_control, conn);
	int i, ret;

	conn->mtu = min_t(u32, conn->mtu, RMP_CONTROL_MTU);
	ctl->bufs = kvcalloc(RMP_CONTROL_SEND + RMP_CONTROL_RECV,
			     sizeof(*ctl->bufs), GFP_KERNEL);
	if (!ctl->bufs)
		return -ENOMEM;
	for (i = 0; i < RMP_CONTROL_SEND + RMP_CONTROL_RECV; i++) {
		ret = control_alloc_buf(ctl, i);
		if (ret)
			return ret;
	}
	return rmp_conn_create_qp(conn, conn->dev->ctrl_pd, RMP_CONTROL_SEND,
				  RMP_CONTROL_RECV, IB_POLL_WORKQUEUE, 0);
}

static int control_ready(struct rmp_conn *conn)
{
	struct rmp_control *ctl = container_of(conn, struct rmp_control, conn);
	int i, ret = 0;

	for (i = 0; i < RMP_CONTROL_RECV && !ret; i++)
		ret = control_post_recv(ctl, &ctl->bufs[RMP_CONTROL_SEND + i]);
	return ret;
}

static const struct rmp_conn_ops control_conn_ops = {
	.setup = control_setup,
	.ready = control_ready,
	.lost = control_lost,
};

int rmp_control_init(struct rmp_control *ctl, const struct rmp_control_ops *ops)
{
	memset(ctl, 0, sizeof(*ctl));
	rmp_conn_init(&ctl->conn, &control_conn_ops, 0);
	ctl->ops = ops;
	ctl->credits = RMP_CONTROL_RECV;
	spin_lock_init(&ctl->lock);
	INIT_LIST_HEAD(&ctl->queue);
	INIT_LIST_HEAD(&ctl->free);
	INIT_LIST_HEAD(&ctl->received);
	INIT_WORK(&ctl->rx_work, control_rx_work);
	init_waitqueue_head(&ctl->idle);
	return 0;
}

void rmp_control_start(struct rmp_control *ctl)
{
	bool dead;

	WRITE_ONCE(ctl->last_rx, jiffies);
	spin_lock_bh(&ctl->lock);
	ctl->started = true;
	dead = ctl->dead;
	if (!list_empty(&ctl->received))
		queue_work(rmp_wq, &ctl->rx_work);
	spin_unlock_bh(&ctl->lock);
	if (dead)
		ctl->ops->broken(ctl);
	else
		control_pump(ctl);
}

void rmp_control_stop(struct rmp_control *ctl)
{
	spin_lock_bh(&ctl->lock);
	ctl->closed = true;
	spin_unlock_bh(&ctl->lock);
	cancel_work_sync(&ctl->rx_work);
}

void rmp_control_destroy(struct rmp_control *ctl)
{
	struct rmp_control_msg *msg, *next;
	struct rmp_device *dev = ctl->conn.dev;

	rmp_control_stop(ctl);
	/* Whoever still has the owner may go on sending: refused from here on. */
	spin_lock_bh(&ctl->lock);
	ctl->dead = true;
	spin_unlock_bh(&ctl->lock);
	/* The buffers are mapped on the device: keep it beyond the conn. */
	if (dev)
		rmp_device_hold(dev);
	rmp_conn_destroy(&ctl->conn);
	ctl->conn.dev = dev;
	control_free_bufs(ctl);
	ctl->conn.dev = NULL;
	if (dev)
		rmp_device_put(dev);
	list_for_each_entry_safe(msg, next, &ctl->queue, node)
		kfree(msg);
}
