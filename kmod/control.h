/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CONTROL_H
#define RMP_CONTROL_H

#include "cm.h"
#include "wire.h"

/* Receive buffers of a channel; both sides begin with that many credits. */
#define RMP_CONTROL_RECV	32
#define RMP_CONTROL_SEND	16
/* Bytes that may wait for credits before the peer counts as broken: enough for
 * one small message about each segment that one side may have open.
 */
#define RMP_CONTROL_BACKLOG	(4U << 20)

struct rmp_control;
struct rmp_control_buf;

/**
 * struct rmp_control_ops - the owner of a channel
 * @message: a decoded message, in order, from a work item; may sleep, must not
 *	wait for the peer. @buf and @len are the encoded form. A negative result
 *	breaks the channel.
 * @broken: the channel failed. Once at most, any context but hard interrupt:
 *	may queue work, nothing more.
 */
struct rmp_control_ops {
	int (*message)(struct rmp_control *ctl, const struct rmp_msg *msg,
		       const void *buf, size_t len);
	void (*broken)(struct rmp_control *ctl);
};

/**
 * struct rmp_control - the control channel to a peer: one queue pair
 * @conn: connect or accept it between init and start
 * @last_rx: jiffies of the last message received
 */
struct rmp_control {
	struct rmp_conn conn;
	const struct rmp_control_ops *ops;
	unsigned long last_rx;
	/* the rest belongs to control.c */
	spinlock_t lock;
	u32 credits;
	u32 give;
	u32 seq;
	u32 backlog;
	bool started;
	bool dead;
	bool closed;
	struct list_head queue;
	struct list_head free;
	struct list_head received;
	struct work_struct rx_work;
	struct rmp_control_buf *bufs;
	wait_queue_head_t idle;
};

int rmp_control_init(struct rmp_control *ctl, const struct rmp_control_ops *ops);
/* The connection is up: messages may be sent, and those received are handed
 * out from now on.
 */
void rmp_control_start(struct rmp_control *ctl);

/* Queues a message; sleeps for memory only. -ENOTCONN when broken, -ENOMEM, which
 * breaks it.
 */
int rmp_control_send(struct rmp_control *ctl, const struct rmp_msg *msg);
/* The same for an encoded message (KEYS); @buf is copied. */
int rmp_control_send_raw(struct rmp_control *ctl, const void *buf, size_t len);
/* Waits a bounded time until all that was queued is sent. */
void rmp_control_flush(struct rmp_control *ctl, long timeout);

/* No message is handed out after this. */
void rmp_control_stop(struct rmp_control *ctl);
/* Disconnects and frees all. */
void rmp_control_destroy(struct rmp_control *ctl);

#endif /* RMP_CONTROL_H */
