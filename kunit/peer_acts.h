/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test of peers does: begin and end a world, be another node, call what
 * blocks. Part of peer_world.h.
 */

/* Something that another thread does has happened. */
#define until(test, condition) \
do { \
	int left_ = PATIENCE / HZ * 1000; \
	bool met_; \
	for (;;) { \
		met_ = (condition); \
		if (met_ || !--left_) \
			break; \
		usleep_range(500, 1000); \
	} \
	KUNIT_ASSERT_TRUE_MSG(test, met_, "never: " #condition); \
} while (0)

/* The node that is tested has uuid 100; so some are smaller, some are not. */
#define HERE		100

static inline void uuid_of(u8 uuid[RMP_WIRE_UUID], u8 n)
{
	memset(uuid, n, RMP_WIRE_UUID);
}

static inline struct sockaddr_storage address(u8 n)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 | n);
	in->sin_port = htons(RMP_WIRE_PORT);
	return addr;
}

/* ------------------------------------------------------------ begin and end */

static inline void open_gate(void)
{
	WRITE_ONCE(world.hold, false);
	WRITE_ONCE(world.hold_accept, false);
	WRITE_ONCE(clock_nobody_dies, false);
	wake_up_all(&world.gate);
}

static inline void device_come(u32 index)
{
	struct rmp_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (WARN_ON(!dev))
		return;
	kref_init(&dev->ref);
	init_completion(&dev->released);
	dev->ibdev = world.ibdev;
	dev->index = index;
	dev->read_limit = 16;
	world.port[index] = (struct rmp_port){
		.num = 1, .state = IB_PORT_ACTIVE, .has_gid = true,
		.addr = address(200 + index), .mtu = IB_MTU_4096,
		.max_msg = 1U << 30, .speed_mbps = 100000,
	};
	rmp_endpoint_set_port(&world.port[index].addr, 0);
	world.dev[index] = dev;
}

/* As device.c does it: no new reference, then all are to be given back. */
static inline void device_go(struct kunit *test, u32 index)
{
	struct rmp_device *dev = world.dev[index];

	WRITE_ONCE(dev->going, true);
	world.dev[index] = NULL;
	rmp_peer_device_removed(dev);
	world_settle(test);
	rmp_device_put(dev);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&dev->released,
							    PATIENCE));
	kfree(dev);
}

static inline int world_begin(struct kunit *test)
{
	u32 i;

	suite_case(test);
	memset(&world, 0, sizeof(world));
	memset(clock_works, 0, sizeof(clock_works));
	spin_lock_init(&world.lock);
	init_waitqueue_head(&world.gate);
	/* The clock begins just before it wraps. */
	clock_now = 0UL - 5 * HZ;
	rmp_wq = alloc_workqueue("rmp_test", WQ_UNBOUND, WQ_MAX_ACTIVE);
	rmp_peers_wq = alloc_workqueue("rmp_test_peers", WQ_UNBOUND,
				       WQ_MAX_ACTIVE);
	KUNIT_ASSERT_TRUE(test, rmp_wq && rmp_peers_wq);
	memset(&rmp_uuid, HERE, sizeof(rmp_uuid));
	uuid_of(world.uuid, 1);
	world.ibdev = kzalloc(sizeof(*world.ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world.ibdev);
	strscpy(world.ibdev->name, "played", sizeof(world.ibdev->name));
	for (i = 0; i < 2; i++)
		device_come(i);
	KUNIT_ASSERT_EQ(test, rmp_segment_init(&world_segment_ops), 0);
	rmp_peers_closed = false;
	KUNIT_ASSERT_EQ(test, rmp_peer_init(&world_peer_ops), 0);
	return 0;
}

/* Whatever a test did: everything comes to an end, and nothing is left. */
static inline void world_end(struct kunit *test)
{
	u32 i;

	open_gate();
	for (i = 0; i < world.nr_peers; i++)
		rmp_peer_put(world.peers[i]);
	rmp_peer_exit();
	rmp_segment_exit();
	KUNIT_EXPECT_EQ(test, atomic_read(&world.flows), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world.qps), 0);
	destroy_workqueue(rmp_peers_wq);
	destroy_workqueue(rmp_wq);
	rcu_barrier();
	for (i = 0; i < WORLD_DEVICES; i++) {
		if (world.dev[i])
			KUNIT_EXPECT_EQ(test, kref_read(&world.dev[i]->ref), 1);
		kfree(world.dev[i]);
	}
	kfree(world.ibdev);
}

/* ------------------------------------------------------------------- callers */

/* Somebody who calls what blocks. */
struct caller {
	int (*call)(struct caller *c);
	struct rmp_peer *peer;
	char node[RMPOOL_NAME_MAX];
	char segment[RMPOOL_NAME_MAX];
	long timeout;
	struct rmp_rseg *rseg;
	struct rmpool_error err;
	int result;
	struct task_struct *task;
	struct completion done;
};

static inline int caller_run(void *arg)
{
	struct caller *c = arg;

	allow_signal(SIGUSR1);
	c->result = c->call(c);
	kthread_complete_and_exit(&c->done, 0);
}

static inline void caller_start(struct kunit *test, struct caller *c)
{
	init_completion(&c->done);
	memset(&c->err, 0, sizeof(c->err));
	c->task = kthread_run(caller_run, c, "rmp_caller");
	KUNIT_ASSERT_FALSE(test, IS_ERR(c->task));
}

static inline bool caller_waits(struct caller *c)
{
	return !completion_done(&c->done);
}

/* Somebody has looked at the clock and sleeps: time may go on. */
static inline void until_asleep(struct kunit *test, struct rmp_peer *peer)
{
	until(test, wq_has_sleeper(&peer->wait));
}

/* It must return by itself. */
static inline int caller_end(struct kunit *test, struct caller *c)
{
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&c->done, PATIENCE));
	return c->result;
}

static inline int call_ready(struct caller *c)
{
	return rmp_peer_wait_ready(c->peer, READ_ONCE(clock_now) + c->timeout,
				   c->timeout == MAX_SCHEDULE_TIMEOUT, &c->err);
}

static inline int call_open(struct caller *c)
{
	return rmp_rseg_open(c->node, c->segment, c->timeout, &c->rseg, &c->err);
}

/* ------------------------------------------------------------ another node */

/* In the table; the test may look at it to its end. */
static inline struct rmp_peer *peer_keep(struct kunit *test, const char *name)
{
	struct rmp_peer *peer = rmp_peer_find(name);

	KUNIT_ASSERT_NOT_NULL(test, peer);
	world.peers[world.nr_peers++] = peer;
	KUNIT_ASSERT_LT(test, world.nr_peers, ARRAY_SIZE(world.peers));
	return peer;
}

static inline struct rmp_peer *peer_make(struct kunit *test, const char *name, u8 n)
{
	struct sockaddr_storage addr = address(n);

	KUNIT_ASSERT_EQ(test, rmp_peer_add(name, &addr, NULL), 0);
	return peer_keep(test, name);
}

/* Somebody wants it, as whoever opened a segment does. */
static inline void want(struct kunit *test, struct rmp_peer *peer)
{
	atomic_inc(&peer->users);
	rmp_peer_kick(peer);
	world_settle(test);
}

static inline void want_no_more(struct rmp_peer *peer)
{
	atomic_dec(&peer->users);
}

static inline struct rmp_session *session_of(struct rmp_peer *peer)
{
	struct rmp_session *s;

	mutex_lock(&peer->lock);
	s = peer->session;
	if (s)
		kref_get(&s->ref);
	mutex_unlock(&peer->lock);
	return s;
}

/* A message of the other node, as control.c hands it in. */
static inline int say_raw(struct kunit *test, struct rmp_peer *peer, void *buf, size_t len)
{
	struct rmp_session *s = session_of(peer);
	struct rmp_msg *msg;
	int ret = -ENOTCONN;

	if (!s)
		return ret;
	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	if (s->ctl.started && !READ_ONCE(s->ctl.closed) && !s->ctl.dead) {
		WRITE_ONCE(s->ctl.last_rx, clock_now);
		ret = rmp_wire_decode(buf, len, msg);
		if (!ret)
			ret = s->ctl.ops->message(&s->ctl, msg, buf, len);
		if (ret < 0) {
			spin_lock(&world.lock);
			s->ctl.dead = true;
			spin_unlock(&world.lock);
			s->ctl.ops->broken(&s->ctl);
		}
	}
	kfree(msg);
	rmp_session_put(s);
	world_settle(test);
	return ret;
}

static inline int say(struct kunit *test, struct rmp_peer *peer, const struct rmp_msg *msg)
{
	void *buf = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	ret = rmp_wire_encode(buf, RMP_WIRE_MSG_MAX, msg);
	KUNIT_EXPECT_GT(test, ret, 0);
	if (ret > 0)
		ret = say_raw(test, peer, buf, ret);
	kfree(buf);
	return ret;
}

static inline int say_hello(struct kunit *test, struct rmp_peer *peer, u8 n)
{
	struct rmp_msg msg = { .type = RMP_MSG_HELLO };

	uuid_of(msg.hello.uuid, n);
	strscpy(msg.hello.name, "there", sizeof(msg.hello.name));
	return say(test, peer, &msg);
}

/* Devices 5, 6, ... at 10.0.0.50, 51, ... */
static inline int say_devices(struct kunit *test, struct rmp_peer *peer, u32 nr)
{
	struct rmp_msg msg = { .type = RMP_MSG_DEVICES, .devices.nr = nr };
	u32 i;

	for (i = 0; i < nr; i++)
		msg.devices.dev[i] = (struct rmp_wire_device){
			.index = 5 + i, .mtu = 5, .family = 4, .read_limit = 8,
			.speed_mbps = 50000, .addr = { 10, 0, 0, 50 + i },
		};
	return say(test, peer, &msg);
}

static inline int say_tokens(struct kunit *test, struct rmp_peer *peer, u8 rail, u8 nr,
			     u8 status)
{
	struct rmp_msg msg = {
		.type = RMP_MSG_RAIL_TOKENS,
		.rail_tokens = { .rail = rail, .status = status, .nr = nr },
	};

	memset(msg.rail_tokens.token, 7, nr * RMP_WIRE_TOKEN);
	return say(test, peer, &msg);
}

/* Takes the first message of a type out of what was sent. */
static inline bool was_sent(u8 type, struct rmp_msg *msg)
{
	bool found = false;
	u32 i;

	spin_lock(&world.lock);
	for (i = 0; i < world.nr_sent && !found; i++) {
		if (world.sent[i].msg.type != type)
			continue;
		found = true;
		if (msg)
			*msg = world.sent[i].msg;
		world.nr_sent--;
		memmove(&world.sent[i], &world.sent[i + 1],
			(world.nr_sent - i) * sizeof(world.sent[0]));
	}
	spin_unlock(&world.lock);
	return found;
}

static inline void forget_sent(void)
{
	spin_lock(&world.lock);
	world.nr_sent = 0;
	spin_unlock(&world.lock);
}

/* A connect request of node @n at address @from. */
static inline int knock_with(u8 from, u8 n, const struct rmp_wire_req *req)
{
	struct world_request *r = kzalloc(sizeof(*r), GFP_KERNEL);
	int result = -1;

	if (!r)
		return result;
	r->cm.src = address(from);
	rmp_endpoint_set_port(&r->cm.src, 40000);
	r->cm.req = *req;
	uuid_of(r->cm.req.uuid, n);
	r->result = -1;
	rmp_session_incoming(&r->cm);
	result = r->result;
	kfree(r);
	return result;
}

/* For the control channel. */
static inline int knock_now(u8 from, u8 n)
{
	return knock_with(from, n, &(struct rmp_wire_req){ .kind = RMP_WIRE_CONTROL });
}

static inline int knock(struct kunit *test, u8 from, u8 n)
{
	int result = knock_now(from, n);

	world_settle(test);
	return result;
}

/* @timeout: who knocks, and from where. */
static inline int call_knock(struct caller *c)
{
	return knock_now(c->timeout, c->timeout);
}

/* The same for a data queue pair. */
static inline int knock_data_now(u8 from, u8 n, u8 rail, u8 qp, const u8 *token)
{
	struct rmp_wire_req req = { .kind = RMP_WIRE_DATA, .rail = rail, .qp = qp };

	memcpy(req.token, token, sizeof(req.token));
	return knock_with(from, n, &req);
}

static inline int knock_data_from(struct kunit *test, u8 from, u8 n, u8 rail, u8 qp,
				  const u8 *token)
{
	int result = knock_data_now(from, n, rail, qp, token);

	world_settle(test);
	return result;
}

/* Node 1 knocks from its first device, at rail 0, and waits. */
struct knocker {
	struct caller c;
	u8 qp;
	u8 token[RMP_WIRE_TOKEN];
};

static inline int call_data(struct caller *c)
{
	const struct knocker *k = container_of(c, struct knocker, c);

	return knock_data_now(50, 1, 0, k->qp, k->token);
}

/* From the device of node @n that the rail is of, where say_devices() told it. */
static inline int knock_data(struct kunit *test, u8 n, u8 rail, u8 qp, const u8 *token)
{
	struct rmp_peer *peer;
	u8 uuid[RMP_WIRE_UUID];
	u8 from = 50;

	uuid_of(uuid, n);
	peer = rmp_peer_find_uuid(uuid);
	if (peer) {
		mutex_lock(&peer->lock);
		if (peer->session && rail < RMP_RAILS_MAX && peer->session->rails[rail])
			from += peer->session->rails[rail]->remote_dev - 5;
		mutex_unlock(&peer->lock);
		rmp_peer_put(peer);
	}
	return knock_data_from(test, from, n, rail, qp, token);
}

/* The gate opens, with that result for the work item that stands there. */
static inline void let_go(struct kunit *test, int result, u32 reason)
{
	world.result = result;
	world.reason = reason;
	open_gate();
	world_settle(test);
	world.result = 0;
}

/* Answers a probe, if there is one. */
static inline void answer_probe(struct kunit *test, struct rmp_peer *peer)
{
	struct rmp_msg msg;

	if (!was_sent(RMP_MSG_PROBE, &msg))
		return;
	msg.type = RMP_MSG_PROBE_ACK;
	KUNIT_EXPECT_EQ(test, say(test, peer, &msg), 0);
}

/* ---------------------------------------------------- states of a peer, made */

/* What holds in every state, when nothing moves. */
static inline void check_peer(struct kunit *test, struct rmp_peer *peer)
{
	struct rmp_session *s;
	bool live;

	mutex_lock(&peer->lock);
	s = peer->session;
	live = s && s->live;
	KUNIT_EXPECT_EQ(test, live, peer->state == RMPOOL_PEER_CONNECTED ||
			peer->state == RMPOOL_PEER_READY);
	KUNIT_EXPECT_EQ(test, live && rmp_rails_up(s),
			peer->state == RMPOOL_PEER_READY);
	if (peer->state == RMPOOL_PEER_IDLE || peer->state == RMPOOL_PEER_BACKOFF)
		KUNIT_EXPECT_NULL(test, s);
	if (s) {
		KUNIT_EXPECT_FALSE(test, s->closing);
		/* Unless its worker stands at the gate. */
		KUNIT_EXPECT_FALSE(test, s->broken && !peer->connecting);
		KUNIT_EXPECT_FALSE(test, s->live && !s->got_hello);
	}
	if (peer->removed) {
		KUNIT_EXPECT_NULL(test, s);
		KUNIT_EXPECT_NULL(test, peer->connecting);
	}
	KUNIT_EXPECT_FALSE(test, peer->changed);
	mutex_unlock(&peer->lock);
}

/* We connected; nothing was said yet. */
static inline void go_connected(struct kunit *test, struct rmp_peer *peer)
{
	want(test, peer);
	KUNIT_ASSERT_NOT_NULL(test, peer->session);
	KUNIT_ASSERT_TRUE(test, peer->session->initiator);
}

static inline void go_live(struct kunit *test, struct rmp_peer *peer, u32 devices)
{
	go_connected(test, peer);
	KUNIT_ASSERT_EQ(test, say_hello(test, peer, world.uuid[0]), 0);
	KUNIT_ASSERT_EQ(test, say_devices(test, peer, devices), 0);
	KUNIT_ASSERT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
}

/* One rail for each of @devices, of two queue pairs. */
static inline void go_ready(struct kunit *test, struct rmp_peer *peer, u32 devices)
{
	struct rmp_msg msg;
	u32 i;

	go_live(test, peer, devices);
	for (i = 0; i < devices; i++) {
		KUNIT_ASSERT_TRUE(test, was_sent(RMP_MSG_RAIL_REQUEST, &msg));
		KUNIT_ASSERT_EQ(test, say_tokens(test, peer,
						 msg.rail_request.rail, 2, 0), 0);
	}
	/* One queue pair is made after the other. */
	world_advance_ms(test, 50);
	KUNIT_ASSERT_EQ(test, peer->state, RMPOOL_PEER_READY);
	KUNIT_ASSERT_EQ(test, rmp_rails_up(peer->session), 2 * devices);
}

/* It connected to us and is live; we are the passive side. */
static inline void go_passive(struct kunit *test, struct rmp_peer *peer, u8 from,
			      u32 devices)
{
	KUNIT_ASSERT_EQ(test, knock(test, from, world.uuid[0]), 0);
	KUNIT_ASSERT_EQ(test, say_hello(test, peer, world.uuid[0]), 0);
	KUNIT_ASSERT_EQ(test, say_devices(test, peer, devices), 0);
	KUNIT_ASSERT_EQ(test, peer->state, RMPOOL_PEER_CONNECTED);
}

static inline struct rmp_rail *rail_of(struct rmp_peer *peer, u32 index)
{
	return peer->session ? peer->session->rails[index] : NULL;
}

/* Queue pairs of all rails. */
static inline u32 qps_up(struct rmp_peer *peer)
{
	u32 nr = 0;

	mutex_lock(&peer->lock);
	if (peer->session)
		nr = rmp_rails_up(peer->session);
	mutex_unlock(&peer->lock);
	return nr;
}

/* A queue pair fails. */
static inline void fail_qp(struct kunit *test, struct rmp_peer *peer, u32 rail, u32 qp)
{
	mutex_lock(&peer->lock);
	rmp_peer_qp_failed(rail_of(peer, rail), rail_of(peer, rail)->conns[qp]);
	mutex_unlock(&peer->lock);
	world_settle(test);
}
