// SPDX-License-Identifier: GPL-2.0
/*
 * Our segments as a peer sees them: opening, telling keys, taking them back.
 *
 * A peer that opened a segment has an export of it in its session, which subscribes to
 * the segment. Changes are told by KEYS_CHANGED, which the peer answers by fetching
 * keys; many changes in a row are told once, with the range of offsets that has all of
 * them. Keys are told in pages, in order of offset, as the peer asks for them, also by
 * a range. A revocation is told by REVOKE and answered by REVOKE_ACK when the peer has
 * nothing in flight that uses the region: see revoke.c. REKEY says that a region has
 * other keys, and WITHDRAWN that the peer may not use the segment any more: both are
 * answered likewise.
 *
 * Locking: s->export_lock (mutex) guards exports, and what is to be told of them.
 * Order: segment->lock, then s->export_lock; segment.c calls us with the former held.
 *
 * What is told of a segment is sent with its lock held: a REVOKE must not
 * overtake the keys it takes back.
 *
 * Lifetime: an export lives from SEGMENT_OPEN to SEGMENT_CLOSE, the end of the
 * segment, or that of the session; it is freed only after it was unsubscribed,
 * which waits for calls from segment.c. They may use its session, which is thus
 * still there.
 */
#define pr_fmt(fmt) "rmpool: " fmt

#include <linux/slab.h>
#include "export.h"
#include "session.h"

/* Segments that one peer may have open. */
#define RMP_EXPORTS_MAX		4096

struct rmp_export {
	struct rmp_subscriber sub;
	struct list_head node;		/* once it is out of the session */
	struct rmp_session *session;
	/* Under the session's export_lock: */
	struct rmp_wire_range changed;	/* since it was told */
	bool withdrawn;
};

/* Out of the session. */
static void exports_free(struct list_head *exports)
{
	struct rmp_export *ex, *next;

	list_for_each_entry_safe(ex, next, exports, node) {
		rmp_segment_unsubscribe(&ex->sub);
		kfree(ex);
		cond_resched();
	}
}

/* s->export_lock held. */
static struct rmp_export *export_take(struct rmp_session *s, unsigned long id)
{
	struct rmp_export *ex = xa_erase(&s->exports, id);

	if (ex)
		s->nr_exports--;
	return ex;
}

/* ------------------------------------------------------- told by segment.c */

void rmp_export_changed(struct rmp_subscriber *sub, u64 from, u64 to)
{
	struct rmp_export *ex = container_of(sub, struct rmp_export, sub);
	struct rmp_session *s = ex->session;

	mutex_lock(&s->export_lock);
	rmp_range_add(&ex->changed, from, to);
	mutex_unlock(&s->export_lock);
	queue_work(rmp_wq, &s->changed_work);
}

static void export_changed_work(struct work_struct *work)
{
	struct rmp_session *s = container_of(work, struct rmp_session,
					     changed_work);
	struct rmp_export *ex;
	struct rmp_msg *msg;
	unsigned long id;
	LIST_HEAD(dead);

	msg = rmp_session_new_msg(s, RMP_MSG_KEYS_CHANGED);
	if (!msg)
		return;
	mutex_lock(&s->export_lock);
	list_splice_init(&s->withdrawn, &dead);
	xa_for_each(&s->exports, id, ex) {
		cond_resched();
		if (!rmp_range_any(&ex->changed))
			continue;
		if (READ_ONCE(ex->sub.segment->dead)) {
			list_add(&export_take(s, id)->node, &dead);
			continue;
		}
		msg->segment.segment = id;
		msg->segment.generation =
			READ_ONCE(ex->sub.segment->generation);
		msg->segment.range = ex->changed;
		ex->changed = RMP_RANGE_NONE;
		rmp_session_send(s, msg);
	}
	mutex_unlock(&s->export_lock);
	kfree(msg);
	exports_free(&dead);
}

static void export_tell(struct rmp_export *ex, u8 type, u64 region_id,
			struct rmp_revocation *rev)
{
	struct rmp_session *s = ex->session;
	int ret;

	ret = rmp_revoke_send(s, type, ex->sub.segment->id, region_id, rev);
	/* It must let go all the same: end the session. */
	if (ret == -ENOSPC) {
		pr_warn_ratelimited("peer %s leaves %u revocations unanswered\n",
				    s->peer->name, RMP_REVOKES_MAX);
		rmp_session_break(s, -ETIMEDOUT, RMPOOL_REASON_SILENT);
	} else if (ret == -ENOTCONN) {
		/* It ends already. */
		rmp_session_break(s, -ECONNRESET, RMPOOL_REASON_PEER_GONE);
	} else if (ret) {
		rmp_session_break(s, ret, RMPOOL_REASON_NONE);
	}
}

void rmp_export_revoke(struct rmp_subscriber *sub, u64 region_id,
		       struct rmp_revocation *rev)
{
	struct rmp_export *ex = container_of(sub, struct rmp_export, sub);

	export_tell(ex, RMP_MSG_REVOKE, region_id, rev);
	/* A deleted segment is of no use to the peer: let go of it. */
	if (READ_ONCE(sub->segment->dead))
		rmp_export_changed(sub, 0, U64_MAX);
}

void rmp_export_rekey(struct rmp_subscriber *sub, u64 region_id,
		      struct rmp_revocation *rev)
{
	struct rmp_export *ex = container_of(sub, struct rmp_export, sub);
	struct rmp_session *s = ex->session;

	if (region_id) {
		export_tell(ex, RMP_MSG_REKEY, region_id, rev);
		return;
	}
	export_tell(ex, RMP_MSG_WITHDRAWN, 0, rev);
	/* Out at once: the peer may get its right back, and open the segment anew. */
	mutex_lock(&s->export_lock);
	ex->withdrawn = true;
	if (xa_load(&s->exports, sub->segment->id) == ex)
		list_add(&export_take(s, sub->segment->id)->node, &s->withdrawn);
	mutex_unlock(&s->export_lock);
	queue_work(rmp_wq, &s->changed_work);
}

/* ----------------------------------------------------------- open and close */

/* Subscribes; *@out is the segment, referenced. */
static int export_add(struct rmp_session *s, const char *name,
		      struct rmp_segment **out)
{
	struct rmp_segment *seg;
	struct rmp_export *ex;
	int ret;

	ex = kzalloc(sizeof(*ex), GFP_KERNEL);
	if (!ex)
		return -ENOMEM;
	ex->session = s;
	ex->changed = RMP_RANGE_NONE;
	ex->sub.peer = s->peer->name;
	ex->sub.group = s->peer->group;
	ret = rmp_segment_subscribe(name, &ex->sub);
	if (ret) {
		kfree(ex);
		return ret;
	}
	seg = ex->sub.segment;
	kref_get(&seg->ref);
	mutex_lock(&s->export_lock);
	if (xa_load(&s->exports, seg->id)) {
		ret = 0;
	} else if (ex->withdrawn) {
		ret = -EACCES;
	} else if (s->nr_exports >= RMP_EXPORTS_MAX) {
		ret = -ENOSPC;
	} else {
		ret = xa_insert(&s->exports, seg->id, ex, GFP_KERNEL);
		if (!ret) {
			s->nr_exports++;
			ex = NULL;
		}
	}
	mutex_unlock(&s->export_lock);
	if (ex) {
		rmp_segment_unsubscribe(&ex->sub);
		kfree(ex);
	}
	if (ret)
		rmp_segment_put(seg);
	else
		*out = seg;
	return ret;
}

static bool export_there(struct rmp_session *s, u32 segment)
{
	bool there;

	mutex_lock(&s->export_lock);
	there = xa_load(&s->exports, segment);
	mutex_unlock(&s->export_lock);
	return there;
}

static int export_open(struct rmp_session *s,
		       const struct rmp_msg_segment_open *m)
{
	struct rmp_msg_segment_info *info;
	struct rmp_segment *seg = NULL;
	struct rmp_msg *msg;
	int ret;

	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	msg->type = RMP_MSG_SEGMENT_INFO;
	info = &msg->segment_info;
	info->cookie = m->cookie;
	ret = export_add(s, m->name, &seg);
	if (ret == -ENOMEM) {
		/* Not told: it would be final for whoever has the segment open.
		 * The session ends, and the next one asks again.
		 */
		kfree(msg);
		return ret;
	}
	if (seg) {
		mutex_lock(&seg->lock);
		if (seg->dead) {
			/* Perhaps before the export was on the list. */
			queue_work(rmp_wq, &s->changed_work);
			ret = -ENOENT;
		} else if (!export_there(s, seg->id)) {
			/* Withdrawn since, and the peer did not know of it yet. */
			ret = -EACCES;
		}
	}
	if (ret == -ENOENT) {
		info->status = RMPOOL_REASON_SEGMENT_UNKNOWN;
	} else if (ret == -EACCES) {
		info->status = RMPOOL_REASON_NOT_ALLOWED;
	} else if (ret) {
		info->status = RMPOOL_REASON_OPENS;
	} else {
		info->segment = seg->id;
		info->nr_regions = seg->nr_regions;
		info->generation = seg->generation;
		info->size = seg->size;
	}
	rmp_session_send(s, msg);
	if (seg) {
		mutex_unlock(&seg->lock);
		rmp_segment_put(seg);
	}
	kfree(msg);
	return 0;
}

static void export_close(struct rmp_session *s, u32 segment)
{
	struct rmp_export *ex;

	mutex_lock(&s->export_lock);
	ex = export_take(s, segment);
	mutex_unlock(&s->export_lock);
	if (!ex)
		return;
	rmp_segment_unsubscribe(&ex->sub);
	kfree(ex);
}

/* --------------------------------------------------------------------- keys */

/* A region that is mapped nowhere, or may not be reached, is told too, so that
 * the peer can tell "no right" and "no path" from "no region".
 */
static bool keys_write_bare(struct rmp_keys_writer *w, struct rmp_wire_keys *run)
{
	run->device = 0;
	run->first = 0;
	run->nr = 0;
	return rmp_keys_open(w, run) > 0;
}

/* Writes the keys of one region from the cursor on, for a peer of a trust group with
 * @right. True: all written.
 */
static bool keys_write_region(struct rmp_keys_writer *w,
			      struct rmp_region *region, u32 group, u32 right,
			      struct rmp_wire_cursor *at)
{
	struct rmp_wire_keys run = {
		.region = region->id,
		.offset = region->offset,
		.length = region->length,
		.iova = region->iova,
		.iova_base = region->iova_base,
		.access = region->access & right,
		.chunk_shift = region->chunk_shift,
	};
	bool any = at->device || at->chunk;
	u32 i, room;

	/* One that has become stale in the middle is told anew in the next walk. */
	if (!any && rmp_region_stale(region)) {
		run.access |= RMP_WIRE_STALE;
		return keys_write_bare(w, &run);
	}
	for (; at->device < RMP_DEVICES_MAX; at->device++, at->chunk = 0) {
		if (!run.access || !rmp_region_has_rkeys(region, group, at->device))
			continue;
		any = true;
		while (at->chunk < region->nr_chunks) {
			run.device = at->device;
			run.first = at->chunk;
			run.nr = region->nr_chunks - at->chunk;
			room = rmp_keys_open(w, &run);
			if (!room)
				return false;
			room = min(room, run.nr);
			region->told = true;
			for (i = 0; i < room; i++)
				rmp_keys_add(w, rmp_region_rkey(region, group,
								at->device,
								at->chunk + i));
			at->chunk += room;
		}
	}
	at->device = 0;
	at->chunk = 0;
	return any || keys_write_bare(w, &run);
}

/* From the region on that has the offset asked for in it, or is the next one. seg->lock
 * held.
 */
static void keys_write(struct rmp_keys_writer *w, struct rmp_segment *seg,
		       u32 group, u32 right, const struct rmp_msg_keys_get *m,
		       struct rmp_msg_keys *keys)
{
	struct rmp_wire_cursor at = m->from;
	unsigned long index = at.region;
	struct rmp_region *region;

	keys->last = 1;
	keys->generation = seg->generation;
	mt_for_each(&seg->regions, region, index, m->to) {
		if (region->offset != m->from.region) {
			at.device = 0;
			at.chunk = 0;
		}
		if (!keys_write_region(w, region, group, right, &at)) {
			keys->last = 0;
			keys->next = at;
			/* The cursor's region is an offset of the segment. */
			keys->next.region = region->offset;
			break;
		}
	}
}

static int export_keys(struct rmp_session *s, const struct rmp_msg_keys_get *m)
{
	struct rmp_keys_writer w;
	struct rmp_msg_keys keys = { .segment = m->segment };
	struct rmp_segment *seg = NULL;
	struct rmp_export *ex;
	void *buf;
	u32 right;
	int ret;

	buf = kzalloc(RMP_WIRE_MSG_MAX, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	/* The export may go as soon as the lock is dropped; the segment not. */
	mutex_lock(&s->export_lock);
	ex = xa_load(&s->exports, m->segment);
	if (ex) {
		seg = ex->sub.segment;
		kref_get(&seg->ref);
	}
	mutex_unlock(&s->export_lock);

	ret = rmp_keys_begin(&w, buf, RMP_WIRE_MSG_MAX);
	if (ret)
		goto out;
	keys.last = 1;
	if (seg) {
		mutex_lock(&seg->lock);
		/* None: it is told so just now, and this is as if it had not opened it. */
		right = rmp_rights_of(seg->rights, s->peer->name,
				      rmp_group_name(s->peer->group));
		if (right)
			keys_write(&w, seg, s->peer->group, right, m, &keys);
	}
	ret = rmp_keys_end(&w, 0, &keys);
	if (ret > 0) {
		rmp_control_send_raw(&s->ctl, buf, ret);
		ret = 0;
	}
	if (seg)
		mutex_unlock(&seg->lock);
out:
	if (seg)
		rmp_segment_put(seg);
	kfree(buf);
	return ret;
}

/* --------------------------------------------------------------- life cycle */

int rmp_export_message(struct rmp_session *s, const struct rmp_msg *msg)
{
	switch (msg->type) {
	case RMP_MSG_SEGMENT_OPEN:
		return export_open(s, &msg->segment_open);
	case RMP_MSG_SEGMENT_CLOSE:
		export_close(s, msg->segment.segment);
		return 0;
	case RMP_MSG_KEYS_GET:
		return export_keys(s, &msg->keys_get);
	case RMP_MSG_REVOKE_ACK:
		rmp_revoke_acked(s, msg->revoke.id);
		return 0;
	}
	return -EPROTO;
}

void rmp_export_init(struct rmp_session *s)
{
	mutex_init(&s->export_lock);
	xa_init(&s->exports);
	INIT_LIST_HEAD(&s->withdrawn);
	rmp_revoke_init(s);
	INIT_WORK(&s->changed_work, export_changed_work);
}

void rmp_export_destroy(struct rmp_session *s)
{
	struct rmp_export *ex;
	LIST_HEAD(exports);
	unsigned long id;

	mutex_lock(&s->export_lock);
	list_splice_init(&s->withdrawn, &exports);
	xa_for_each(&s->exports, id, ex) {
		list_add(&export_take(s, id)->node, &exports);
		cond_resched();
	}
	mutex_unlock(&s->export_lock);
	exports_free(&exports);
	cancel_work_sync(&s->changed_work);
	rmp_revoke_end(s);
	xa_destroy(&s->exports);
}
