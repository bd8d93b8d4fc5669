/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time as the test wants it, for rooms that wait. Included before them, it puts
 * a clock in place of jiffies, which stands still until world_advance(), and
 * delayed work and waiting with a limit go by that clock. Work that is due runs
 * on a real workqueue, beside the test, under lockdep's eyes.
 *
 * world_settle() returns when everything that was begun has ended or stands
 * at the gate (peer_world.h), so what comes next finds the same state each time.
 */
#ifndef RMP_PEER_CLOCK_H
#define RMP_PEER_CLOCK_H

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
/* All that the rooms include: nothing of the kernel's is to see the macros. */
#include <crypto/algapi.h>
#include <linux/ctype.h>
#include <linux/inetdevice.h>
#include <linux/maple_tree.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/sched/signal.h>
#include <net/addrconf.h>
#include "export.h"
#include "rsegment.h"
#include "segment.h"
#include "session.h"

#define CLOCK_WORKS	32

struct clock_work {
	struct workqueue_struct *wq;
	struct delayed_work *work;
	unsigned long due;
	bool waits;		/* for the clock */
};

static unsigned long clock_now;
static DEFINE_SPINLOCK(clock_lock);
static struct clock_work clock_works[CLOCK_WORKS];
/* Steps taken anywhere: when it stands still, nothing moves. */
static atomic_t clock_moves;
/* clock_lock is held. The entry of a work, or a new one. */
static struct clock_work *clock_entry(struct delayed_work *work)
{
	struct clock_work *free = NULL;
	int i;

	for (i = 0; i < CLOCK_WORKS; i++) {
		if (clock_works[i].work == work)
			return &clock_works[i];
		if (!clock_works[i].work)
			free = &clock_works[i];
	}
	if (!WARN_ON(!free)) {
		free->work = work;
		free->waits = false;
	}
	return free;
}

static void clock_run(struct clock_work *entry)
{
	entry->waits = false;
	atomic_inc(&clock_moves);
	mod_delayed_work(entry->wq, entry->work, 0);
}

static void clock_mod_work(struct workqueue_struct *wq, struct delayed_work *work,
			   unsigned long delay)
{
	struct clock_work *entry;

	spin_lock(&clock_lock);
	entry = clock_entry(work);
	if (entry)
		entry->wq = wq;
	if (entry && delay) {
		entry->due = clock_now + delay;
		entry->waits = true;
	} else if (entry) {
		clock_run(entry);
	}
	spin_unlock(&clock_lock);
}

static void clock_queue_work(struct workqueue_struct *wq,
			     struct delayed_work *work, unsigned long delay)
{
	struct clock_work *entry;

	spin_lock(&clock_lock);
	entry = clock_entry(work);
	if (entry)
		entry->wq = wq;
	if (entry && !entry->waits && !delayed_work_pending(work)) {
		if (delay) {
			entry->due = clock_now + delay;
			entry->waits = true;
		} else {
			clock_run(entry);
		}
	}
	spin_unlock(&clock_lock);
}

static bool clock_cancel_work(struct delayed_work *work)
{
	struct clock_work *entry;
	bool was;

	/* Once more after the last run: it may have queued itself. */
	was = cancel_delayed_work_sync(work);
	spin_lock(&clock_lock);
	entry = clock_entry(work);
	if (entry) {
		was |= entry->waits;
		entry->work = NULL;
		entry->waits = false;
	}
	spin_unlock(&clock_lock);
	return was;
}

static bool clock_work_pending(struct delayed_work *work)
{
	bool pending;
	int i;

	spin_lock(&clock_lock);
	pending = delayed_work_pending(work);
	for (i = 0; i < CLOCK_WORKS; i++)
		pending |= clock_works[i].work == work && clock_works[i].waits;
	spin_unlock(&clock_lock);
	return pending;
}

/* Work that is not delayed never stands at the gate. */
static bool clock_queue(struct workqueue_struct *wq, struct work_struct *work)
{
	atomic_inc(&clock_moves);
	return queue_work(wq, work);
}

/* As the kernel's, but that the limit is of this clock; it is looked at now and
 * then, since nobody wakes who waits for it.
 */
#define clock_wait(wq, condition, timeout) \
	clock_wait_until(wq, condition, READ_ONCE(clock_now) + \
			 min_t(unsigned long, timeout, MAX_JIFFY_OFFSET))

#define clock_wait_until(wq, condition, end) \
({ \
	unsigned long end_ = (end); \
	wait_queue_head_t *wq_ = &(wq); \
	DEFINE_WAIT(wait_); \
	bool met_, over_; \
	for (;;) { \
		prepare_to_wait(wq_, &wait_, TASK_INTERRUPTIBLE); \
		over_ = time_after_eq(READ_ONCE(clock_now), end_); \
		met_ = (condition); \
		if (met_ || over_ || signal_pending(current)) \
			break; \
		schedule_timeout(HZ / 100 + 1); \
	} \
	finish_wait(wq_, &wait_); \
	met_ ? max(1L, (long)(end_ - READ_ONCE(clock_now))) : \
	over_ ? 0L : -ERESTARTSYS; \
})

/* Work items that stand at the gate, and will while nothing else happens; and
 * the first time before @limit at which one of them gives up (peer_world.h).
 */
static int clock_gated(void);
static unsigned long clock_gate_due(unsigned long limit);

static bool clock_quiet(void)
{
	unsigned int state;
	int busy = 0, i;

	spin_lock(&clock_lock);
	for (i = 0; i < CLOCK_WORKS; i++) {
		if (!clock_works[i].work)
			continue;
		/* Once: it may begin to run between two looks. */
		state = work_busy(&clock_works[i].work->work);
		busy += !!(state & WORK_BUSY_RUNNING);
		/* What is pending and not running will run. */
		if (state == WORK_BUSY_PENDING)
			busy += CLOCK_WORKS;
	}
	spin_unlock(&clock_lock);
	return busy <= clock_gated();
}

/* Of segment.c and dying.c. */
static struct workqueue_struct *rmp_reach_wq;
static struct workqueue_struct *rmp_dying_wq;

/* No queue pair is destroyed, until the gate is opened; nor is that waited for. */
static bool clock_nobody_dies;

static void world_settle(struct kunit *test)
{
	unsigned long limit = jiffies + PATIENCE;
	int moves;

	do {
		moves = atomic_read(&clock_moves);
		flush_workqueue(rmp_wq);
		flush_workqueue(rmp_reach_wq);
		if (!READ_ONCE(clock_nobody_dies))
			flush_workqueue(rmp_dying_wq);
		while (!clock_quiet()) {
			KUNIT_ASSERT_TRUE(test, time_before(jiffies, limit));
			usleep_range(200, 500);
		}
	} while (moves != atomic_read(&clock_moves));
}

/* Lets time go by, from one thing that is due to the next. */
static void world_advance(struct kunit *test, unsigned long time)
{
	unsigned long end = clock_now + time, next;
	int i;

	world_settle(test);
	while (clock_now != end) {
		next = clock_gate_due(end);
		spin_lock(&clock_lock);
		for (i = 0; i < CLOCK_WORKS; i++) {
			if (clock_works[i].work && clock_works[i].waits &&
			    time_before(clock_works[i].due, next))
				next = clock_works[i].due;
		}
		/* Something may be overdue already. */
		if (time_after(next, clock_now))
			WRITE_ONCE(clock_now, next);
		for (i = 0; i < CLOCK_WORKS; i++) {
			if (clock_works[i].work && clock_works[i].waits &&
			    time_after_eq(clock_now, clock_works[i].due))
				clock_run(&clock_works[i]);
		}
		spin_unlock(&clock_lock);
		atomic_inc(&clock_moves);
		world_settle(test);
	}
}

static void world_advance_ms(struct kunit *test, unsigned int ms)
{
	world_advance(test, msecs_to_jiffies(ms));
}

#undef jiffies
#define jiffies					READ_ONCE(clock_now)
#undef wait_event_interruptible_timeout
#define wait_event_interruptible_timeout	clock_wait
#define mod_delayed_work(wq, work, delay)	clock_mod_work(wq, work, delay)
#define queue_delayed_work(wq, work, delay)	clock_queue_work(wq, work, delay)
#define cancel_delayed_work_sync(work)		clock_cancel_work(work)
#undef delayed_work_pending
#define delayed_work_pending(work)		clock_work_pending(work)
#define queue_work(wq, work)			clock_queue(wq, work)

#endif /* RMP_PEER_CLOCK_H */
