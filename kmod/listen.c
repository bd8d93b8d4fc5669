// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners, and the connect requests that come in, until they are accepted
 * (cm.c) or rejected.
 *
 * The handlers of the CM copy a request and queue it: what it says is looked at
 * on rmp_peers_wq, by the function given to rmp_cm_init(). No more than
 * RMP_REQUESTS_MAX are under way.
 *
 * Locking: rmp_listener_lock guards a listener's cm_id, which either the CM
 * destroys, when its device is removed, or rmp_cm_unlisten().
 *
 * Lifetime: a cm_id of a connect request belongs to its rmp_cm_request (context
 * NULL: its events are ignored) until it is accepted or rejected.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "endpoint.h"
#include "listen.h"

/* Requests being worked on; more are rejected at once. */
#define RMP_REQUESTS_MAX	256

/* @id is NULL when its device was removed; guarded by rmp_listener_lock. */
struct rmp_listener {
	struct rdma_cm_id *id;
};

static void (*rmp_incoming)(struct rmp_cm_request *req);
static atomic_t rmp_requests = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(rmp_requests_wait);
static DEFINE_SPINLOCK(rmp_listener_lock);

static const char * const rmp_reject_texts[] = {
	[RMP_REJECT_VERSION] = "another protocol version",
	[RMP_REJECT_MALFORMED] = "malformed private data",
	[RMP_REJECT_NOT_TRUSTED] = "not in the peer table",
	[RMP_REJECT_SELF] = "it is this node itself",
	[RMP_REJECT_CROSSED] = "own request goes first",
	[RMP_REJECT_RETRY] = "an older connection is being probed",
	[RMP_REJECT_TOKEN] = "no valid token",
	[RMP_REJECT_NO_PEER] = "no control connection",
	[RMP_REJECT_RESOURCES] = "out of resources",
	[RMP_REJECT_IN_USE] = "that peer is connected already",
	[RMP_REJECT_CLOSING] = "closing",
};

static const char *rmp_cm_reject_text(enum rmp_wire_reject why)
{
	if (why < ARRAY_SIZE(rmp_reject_texts) && rmp_reject_texts[why])
		return rmp_reject_texts[why];
	return "unknown reason";
}

/* ---------------------------------------------------------------- requests */

void rmp_cm_request_free(struct rmp_cm_request *req)
{
	kfree(req);
	if (atomic_dec_and_test(&rmp_requests))
		wake_up_all(&rmp_requests_wait);
}

void rmp_cm_reject(struct rmp_cm_request *req, enum rmp_wire_reject why,
		   bool quiet)
{
	struct rmp_wire_reply reply = {
		.version = RMP_WIRE_VERSION,
		.reject = why,
	};
	u8 data[RMP_WIRE_REPLY_MAX];
	int len;

	if (!quiet)
		pr_warn_ratelimited("connect request from %pISpc rejected: %s\n",
				    &req->src, rmp_cm_reject_text(why));
	memcpy(reply.uuid, &rmp_uuid, sizeof(reply.uuid));
	len = rmp_wire_put_reply(data, sizeof(data), &reply);
	if (len > 0)
		rdma_reject(req->id, data, len, IB_CM_REJ_CONSUMER_DEFINED);
	rdma_destroy_id(req->id);
	rmp_cm_request_free(req);
}

static void rmp_cm_request_work(struct work_struct *work)
{
	struct rmp_cm_request *req = container_of(work, struct rmp_cm_request,
						  work);
	int ret;

	ret = rmp_wire_get_req(req->data, req->data_len, &req->req);
	if (ret == -EPROTONOSUPPORT)
		rmp_cm_reject(req, RMP_REJECT_VERSION, false);
	else if (ret < 0)
		rmp_cm_reject(req, RMP_REJECT_MALFORMED, false);
	else if (!memcmp(req->req.uuid, &rmp_uuid, sizeof(rmp_uuid)))
		rmp_cm_reject(req, RMP_REJECT_SELF, false);
	else
		rmp_incoming(req);
}

static int rmp_cm_take_request(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rmp_cm_request *req;

	/* It inherited those of the listener. */
	id->event_handler = rmp_cm_handler;
	id->context = NULL;
	if (atomic_inc_return(&rmp_requests) > RMP_REQUESTS_MAX)
		goto refuse;
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req)
		goto refuse;
	INIT_WORK(&req->work, rmp_cm_request_work);
	req->id = id;
	req->src = id->route.addr.dst_addr;
	req->responder_resources = event->param.conn.responder_resources;
	req->initiator_depth = event->param.conn.initiator_depth;
	req->data_len = min_t(u8, event->param.conn.private_data_len,
			      sizeof(req->data));
	if (event->param.conn.private_data)
		memcpy(req->data, event->param.conn.private_data, req->data_len);
	else
		req->data_len = 0;
	queue_work(rmp_peers_wq, &req->work);
	return 0;

refuse:
	if (atomic_dec_and_test(&rmp_requests))
		wake_up_all(&rmp_requests_wait);
	return -ENOMEM;		/* the CM rejects it and destroys the id */
}

/* --------------------------------------------------------------- listening */

/* A listener at an address belongs to the device that has it, whose removal
 * waits until the cm_id is destroyed: leave that to the CM.
 */
static int rmp_listen_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rmp_listener *listener = id->context;
	bool ours;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return rmp_cm_take_request(id, event);
	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	spin_lock(&rmp_listener_lock);
	ours = listener->id;
	listener->id = NULL;
	spin_unlock(&rmp_listener_lock);
	return ours ? -ENODEV : 0;
}

int rmp_cm_listen(struct sockaddr_storage *addr, struct rmp_listener **out)
{
	struct rmp_listener *listener;
	struct rdma_cm_id *id;
	int ret;

	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return -ENOMEM;
	id = rdma_create_id(&init_net, rmp_listen_handler, listener,
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kfree(listener);
		return PTR_ERR(id);
	}
	listener->id = id;
	/* IPv4 as well, whatever net.ipv6.bindv6only says. */
	ret = 0;
	if (addr->ss_family == AF_INET6 && rmp_endpoint_is_any(addr))
		ret = rdma_set_afonly(id, 0);
	if (!ret)
		ret = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (!ret)
		ret = rdma_listen(id, 128);
	/* What it says when any address is asked for and the port is taken. */
	if (ret == -EADDRNOTAVAIL && rmp_endpoint_is_any(addr))
		ret = -EADDRINUSE;
	if (ret) {
		rmp_cm_unlisten(listener);
		return ret;
	}
	rmp_endpoint_set_port(addr,
			      rmp_endpoint_port(&id->route.addr.src_addr));
	*out = listener;
	return 0;
}

bool rmp_cm_listening(const struct rmp_listener *listener)
{
	return listener && READ_ONCE(listener->id);
}

void rmp_cm_unlisten(struct rmp_listener *listener)
{
	struct rdma_cm_id *id;

	if (!listener)
		return;
	spin_lock(&rmp_listener_lock);
	id = listener->id;
	listener->id = NULL;
	spin_unlock(&rmp_listener_lock);
	if (id)
		rdma_destroy_id(id);
	kfree(listener);
}

int rmp_cm_init(void (*incoming)(struct rmp_cm_request *req))
{
	rmp_incoming = incoming;
	return 0;
}

void rmp_cm_exit(void)
{
	wait_event(rmp_requests_wait, !atomic_read(&rmp_requests));
}
