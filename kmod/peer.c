// SPDX-License-Identifier: GPL-2.0
/*
 * The peer table: which nodes this one talks to and lets in, and in which trust group each
 * is, for as long as there is anything of it.
 *
 * Locking: rmp_peers_lock (mutex) guards the list, which is kept in order of
 * name; what is in a peer is guarded as session.h says. A peer leaves the list
 * in rmp_peer_del() or rmp_peer_exit(), which mark it removed and let its worker
 * tear the session down, or in rmp_peer_reclaim(), by its worker. Until that of one that
 * was deleted is torn down, it is in rmp_peers_closing, under the same lock, since the
 * removal of a device has to wait for it as well (plug.c).
 *
 * Lifetime: the table has one reference, a session one, each remote segment
 * one, and callers of the find functions theirs. The flow of the data rooms is
 * made with the peer and destroyed with it. The last reference may be given
 * back anywhere, so the release is a work item.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "segment.h"
#include "session.h"

/* Entries that accept=any may add by itself. */
#define RMP_DYNAMIC_MAX		1024

const struct rmp_peer_ops *rmp_peer_ops;

static DEFINE_MUTEX(rmp_peers_lock);
static LIST_HEAD(rmp_peers);
static LIST_HEAD(rmp_peers_closing);
static u32 rmp_nr_peers;
static u32 rmp_nr_dynamic;
static bool rmp_peers_closed;
static atomic_t rmp_peers_alive = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(rmp_peers_wait);

/* --------------------------------------------------------------- life cycle */

/* Nothing of it is left that regions are mapped for. */
static void peer_leave_group(struct rmp_peer *peer)
{
	if (rmp_group_leave(peer->group))
		rmp_peer_ops->group_gone(peer->group);
}

static void peer_free_work(struct work_struct *work)
{
	struct rmp_peer *peer = container_of(work, struct rmp_peer, free_work);

	/* Kicked by somebody who held a reference, it has nothing to do. */
	cancel_delayed_work_sync(&peer->work);
	rmp_peer_ops->flow_destroy(peer->flow);
	peer_leave_group(peer);
	mutex_destroy(&peer->lock);
	mutex_destroy(&peer->rseg_lock);
	kfree(peer);
	if (atomic_dec_and_test(&rmp_peers_alive))
		wake_up_all(&rmp_peers_wait);
}

static void peer_release(struct kref *ref)
{
	struct rmp_peer *peer = container_of(ref, struct rmp_peer, ref);

	queue_work(rmp_wq, &peer->free_work);
}

void rmp_peer_hold(struct rmp_peer *peer)
{
	kref_get(&peer->ref);
}

void rmp_peer_put(struct rmp_peer *peer)
{
	kref_put(&peer->ref, peer_release);
}

void rmp_peer_kick(struct rmp_peer *peer)
{
	mod_delayed_work(rmp_peers_wq, &peer->work, 0);
}

void rmp_peer_qp_failed(struct rmp_rail *rail, struct rmp_conn *conn)
{
	rmp_conn_set_lost(conn);
	rmp_peer_kick(rail->peer);
}

struct rmp_flow *rmp_peer_flow(struct rmp_peer *peer)
{
	return peer->flow;
}

u32 rmp_peer_group(const struct rmp_peer *peer)
{
	return peer->group;
}

void rmp_peer_set_state(struct rmp_peer *peer, u32 state)
{
	lockdep_assert_held(&peer->lock);
	if (peer->state != state)
		peer->changed = true;
	WRITE_ONCE(peer->state, state);
	wake_up_all(&peer->wait);
}

void rmp_peer_unlock(struct rmp_peer *peer)
{
	bool changed = peer->changed;

	peer->changed = false;
	mutex_unlock(&peer->lock);
	if (changed)
		rmp_peer_ops->event(peer, RMPOOL_EVENT_CHANGED);
}

/* ---------------------------------------------------------------- the table */

/* It is off the list: let its worker tear down, and take nothing up any more. */
static void peer_close(struct rmp_peer *peer)
{
	mutex_lock(&peer->lock);
	WRITE_ONCE(peer->removed, true);
	if (peer->connecting)
		rmp_conn_abort(peer->connecting);
	rmp_peer_set_state(peer, RMPOOL_PEER_CLOSING);
	rmp_peer_unlock(peer);
	rmp_peer_kick(peer);
}

/* flush_delayed_work() would not do: while somebody else kicks, the work item is in no queue
 * for a moment, and there seems to be nothing to wait for.
 */
void rmp_peer_has_run(struct rmp_peer *peer, u32 begun)
{
	/* Pairs with the release at the end of the worker. */
	wait_event(peer->wait, (s32)(smp_load_acquire(&peer->ended) - begun) > 0);
}

static void peer_run(struct rmp_peer *peer)
{
	u32 begun;

	mutex_lock(&peer->lock);
	begun = peer->begun;
	mutex_unlock(&peer->lock);
	rmp_peer_kick(peer);
	rmp_peer_has_run(peer, begun);
}

/* When that is done, give the table's reference back. */
static void peer_closing_work(struct work_struct *work)
{
	struct rmp_peer *peer = container_of(work, struct rmp_peer, closing);

	peer_run(peer);
	mutex_lock(&rmp_peers_lock);
	list_del_init(&peer->closing_node);
	mutex_unlock(&rmp_peers_lock);
	rmp_peer_ops->event(peer, RMPOOL_EVENT_GONE);
	complete_all(&peer->closed);
	rmp_peer_put(peer);
}

void rmp_peers_wait_closing(void)
{
	struct rmp_peer *peer;

	do {
		mutex_lock(&rmp_peers_lock);
		peer = list_first_entry_or_null(&rmp_peers_closing,
						struct rmp_peer, closing_node);
		if (peer)
			rmp_peer_hold(peer);
		mutex_unlock(&rmp_peers_lock);
		if (peer) {
			wait_for_completion(&peer->closed);
			rmp_peer_put(peer);
		}
	} while (peer);
}

static struct rmp_peer *peer_alloc(const char *name,
				   const struct sockaddr_storage *addr,
				   const char *group)
{
	struct rmp_peer *peer;
	int ret;

	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return ERR_PTR(-ENOMEM);
	ret = rmp_group_join(group ?: RMP_GROUP_DEFAULT_NAME);
	if (ret < 0) {
		kfree(peer);
		return ERR_PTR(ret);
	}
	peer->group = ret;
	kref_init(&peer->ref);
	strscpy(peer->name, name, sizeof(peer->name));
	peer->addr = *addr;
	mutex_init(&peer->lock);
	mutex_init(&peer->rseg_lock);
	spin_lock_init(&peer->dying_lock);
	spin_lock_init(&peer->ways.lock);
	init_waitqueue_head(&peer->wait);
	INIT_LIST_HEAD(&peer->dying);
	INIT_LIST_HEAD(&peer->rsegs);
	INIT_DELAYED_WORK(&peer->work, rmp_session_worker);
	INIT_WORK(&peer->closing, peer_closing_work);
	INIT_LIST_HEAD(&peer->closing_node);
	init_completion(&peer->closed);
	INIT_WORK(&peer->free_work, peer_free_work);
	peer->next_try = jiffies;
	peer->seen = jiffies;
	peer->flow = rmp_peer_ops->flow_create(peer);
	if (IS_ERR_OR_NULL(peer->flow)) {
		peer_leave_group(peer);
		kfree(peer);
		return ERR_PTR(-ENOMEM);
	}
	atomic_inc(&rmp_peers_alive);
	return peer;
}

/* rmp_peers_lock held. Keeps the list in order. */
static int peer_insert(struct rmp_peer *peer)
{
	struct rmp_peer *p;
	struct list_head *before = &rmp_peers;

	if (rmp_peers_closed)
		return -ESHUTDOWN;
	if (peer->dynamic && rmp_nr_dynamic >= RMP_DYNAMIC_MAX)
		return -ENOSPC;
	list_for_each_entry(p, &rmp_peers, node) {
		int cmp = strcmp(p->name, peer->name);

		cond_resched();
		if (!cmp || rmp_endpoint_equal(&p->addr, &peer->addr))
			return -EEXIST;
		if (cmp > 0 && before == &rmp_peers)
			before = &p->node;
	}
	list_add_tail(&peer->node, before);
	rmp_nr_peers++;
	rmp_nr_dynamic += peer->dynamic;
	return 0;
}

/* rmp_peers_lock held. */
static void peer_take(struct rmp_peer *peer)
{
	list_del_init(&peer->node);
	rmp_nr_peers--;
	rmp_nr_dynamic -= peer->dynamic;
}

static struct rmp_peer *peer_add(const char *name,
				 const struct sockaddr_storage *addr,
				 const char *group, bool dynamic)
{
	struct rmp_peer *peer;
	int ret;

	peer = peer_alloc(name, addr, group);
	if (IS_ERR(peer))
		return peer;
	peer->dynamic = dynamic;
	mutex_lock(&rmp_peers_lock);
	ret = peer_insert(peer);
	if (!ret)
		rmp_peer_hold(peer);
	mutex_unlock(&rmp_peers_lock);
	if (ret) {
		rmp_peer_put(peer);
		return ERR_PTR(ret);
	}
	rmp_peer_ops->event(peer, RMPOOL_EVENT_NEW);
	return peer;
}

int rmp_peer_add(const char *name, const struct sockaddr_storage *addr,
		 const char *group)
{
	struct rmp_peer *peer;

	peer = peer_add(name, addr, group, false);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	rmp_peer_put(peer);
	return 0;
}

int rmp_peer_del(const char *name)
{
	struct rmp_peer *peer, *found = NULL;
	int ret;

	mutex_lock(&rmp_peers_lock);
	list_for_each_entry(peer, &rmp_peers, node) {
		cond_resched();
		if (!strcmp(peer->name, name)) {
			found = peer;
			peer_take(peer);
			list_add_tail(&peer->closing_node, &rmp_peers_closing);
			break;
		}
	}
	mutex_unlock(&rmp_peers_lock);
	if (!found)
		return -ENOENT;
	rmp_peer_hold(found);
	peer_close(found);
	/* By a work item: a device may take long, and who asked may go away. */
	queue_work(rmp_wq, &found->closing);
	ret = wait_for_completion_interruptible(&found->closed) ? -EINTR : 0;
	rmp_peer_put(found);
	return ret;
}

unsigned long rmp_peer_reclaim(struct rmp_peer *peer, unsigned long idle)
{
	bool gone = false;
	long left = 0;

	mutex_lock(&rmp_peers_lock);
	mutex_lock(&peer->lock);
	if (!rmp_peers_closed && !list_empty(&peer->node) && !peer->session &&
	    !peer->incoming && !atomic_read(&peer->users)) {
		left = peer->seen + idle - jiffies;
		gone = left <= 0;
	}
	if (gone) {
		peer_take(peer);
		WRITE_ONCE(peer->removed, true);
		/* Who begins to wait for it just now is told. */
		rmp_peer_set_state(peer, RMPOOL_PEER_CLOSING);
	}
	mutex_unlock(&rmp_peers_lock);
	rmp_peer_unlock(peer);
	if (!gone)
		return left;
	rmp_peer_ops->event(peer, RMPOOL_EVENT_GONE);
	rmp_peer_put(peer);
	return 0;
}

struct rmp_peer *rmp_peer_find(const char *name)
{
	struct rmp_peer *peer, *found = NULL;

	mutex_lock(&rmp_peers_lock);
	list_for_each_entry(peer, &rmp_peers, node) {
		cond_resched();
		if (!strcmp(peer->name, name)) {
			found = peer;
			rmp_peer_hold(peer);
			break;
		}
	}
	mutex_unlock(&rmp_peers_lock);
	return found;
}

static struct rmp_peer *peer_add_dynamic(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage endpoint = *addr;
	char name[RMPOOL_NAME_MAX] = { };

	rmp_endpoint_set_port(&endpoint, RMP_WIRE_PORT);
	if (rmp_endpoint_format_host(name, sizeof(name), addr) < 0 ||
	    !rmp_name_valid(name))
		return ERR_PTR(-EINVAL);
	return peer_add(name, &endpoint, NULL, true);
}

static struct rmp_peer *peer_find_host(const struct sockaddr_storage *addr)
{
	struct rmp_peer *peer, *found = NULL;

	mutex_lock(&rmp_peers_lock);
	list_for_each_entry(peer, &rmp_peers, node) {
		cond_resched();
		if (rmp_endpoint_same_host(&peer->addr, addr)) {
			found = peer;
			rmp_peer_hold(peer);
			break;
		}
	}
	mutex_unlock(&rmp_peers_lock);
	return found;
}

struct rmp_peer *rmp_peer_find_host(const struct sockaddr_storage *addr)
{
	struct rmp_peer *peer = peer_find_host(addr);

	if (peer)
		return peer;
	if (!rmp_node_accepts_any())
		return ERR_PTR(-EACCES);
	peer = peer_add_dynamic(addr);
	/* Perhaps another request of it was faster. */
	if (peer == ERR_PTR(-EEXIST))
		peer = peer_find_host(addr) ?: peer;
	return peer;
}

struct rmp_peer *rmp_peer_find_uuid(const u8 uuid[RMP_WIRE_UUID])
{
	struct rmp_peer *peer, *found = NULL;

	mutex_lock(&rmp_peers_lock);
	list_for_each_entry(peer, &rmp_peers, node) {
		cond_resched();
		mutex_lock(&peer->lock);
		if (peer->session && !peer->session->closing &&
		    peer->session->got_hello &&
		    !memcmp(peer->session->uuid, uuid, RMP_WIRE_UUID)) {
			found = peer;
			rmp_peer_hold(peer);
		}
		mutex_unlock(&peer->lock);
		if (found)
			break;
	}
	mutex_unlock(&rmp_peers_lock);
	return found;
}

void rmp_peer_kick_flows(void)
{
	struct rmp_peer *peer;

	mutex_lock(&rmp_peers_lock);
	list_for_each_entry(peer, &rmp_peers, node) {
		rmp_peer_ops->flow_kick(peer->flow);
		cond_resched();
	}
	mutex_unlock(&rmp_peers_lock);
}

u32 rmp_peer_count(void)
{
	return READ_ONCE(rmp_nr_peers);
}

int rmp_peer_walk(const char *after,
		  int (*fn)(struct rmp_peer *peer, void *arg), void *arg)
{
	char name[RMPOOL_NAME_MAX];
	struct rmp_peer *peer;
	int ret = 0;

	strscpy(name, after, sizeof(name));
	while (!ret) {
		bool found = false;

		mutex_lock(&rmp_peers_lock);
		list_for_each_entry(peer, &rmp_peers, node) {
			cond_resched();
			if (strcmp(peer->name, name) > 0) {
				found = true;
				rmp_peer_hold(peer);
				break;
			}
		}
		mutex_unlock(&rmp_peers_lock);
		if (!found)
			break;
		strscpy(name, peer->name, sizeof(name));
		ret = fn(peer, arg);
		rmp_peer_put(peer);
	}
	return ret;
}

/* -------------------------------------------------------------- load, unload */

int rmp_peer_init(const struct rmp_peer_ops *ops)
{
	int ret;

	rmp_peer_ops = ops;
	ret = rmp_dying_init();
	if (ret)
		return ret;
	ret = rmp_cm_init(rmp_session_incoming);
	if (ret)
		goto dying;
	ret = rmp_node_init();
	if (ret)
		goto cm;
	return 0;

cm:
	rmp_cm_exit();
dying:
	rmp_dying_exit();
	return ret;
}

void rmp_peer_exit(void)
{
	struct rmp_peer *peer, *next;
	LIST_HEAD(all);

	rmp_node_exit();
	mutex_lock(&rmp_peers_lock);
	rmp_peers_closed = true;
	list_splice_init(&rmp_peers, &all);
	rmp_nr_peers = 0;
	rmp_nr_dynamic = 0;
	mutex_unlock(&rmp_peers_lock);

	/* All at once, then one after the other. */
	list_for_each_entry(peer, &all, node) {
		cond_resched();
		peer_close(peer);
	}
	list_for_each_entry_safe(peer, next, &all, node) {
		list_del_init(&peer->node);
		peer_closing_work(&peer->closing);
	}
	rmp_cm_exit();
	wait_event(rmp_peers_wait, !atomic_read(&rmp_peers_alive));
	rmp_dying_exit();
}
