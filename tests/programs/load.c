// SPDX-License-Identifier: MIT
/*
 * load NODE/SEGMENT AREA SEED SECONDS
 *
 * Eight threads put and get at random, by one descriptor, and compare, while whatever
 * is in between breaks and mends. The other side is a memhost of layout "chaos" that
 * was filled with HOST_SEED. Threads with even numbers use blocking batches, those with
 * odd ones share a completion ring.
 *
 * A request may fail only with an error that says that a process, rail, device or host
 * went; then the bytes of a put are either the old or the new ones. Everything else ends
 * the program with exit status 1: other errors, wrong bytes (also around the place and
 * around the local memory), a completion that comes twice, for nothing, or not within
 * SECONDS (which is the time-out of requests) and as much again.
 *
 * Each thread has places of its own. Each process that follows a killed one has to use
 * another AREA (0 to 3), since requests of the dead may still be on their way. For the
 * same reason a place rests after a failed put, as long as others are there, and is not
 * used any more after a request that ended with RMPOOL_COMPLETION_UNKNOWN.
 *
 * Says "loading" when every thread has put and got; with each SIGUSR1 "going N" when
 * every thread had some more rounds without an error. With SIGUSR2, "strict N": no request
 * may fail at all, until the next one, "lenient N". With SIGTERM it ends: all places
 * must be readable and right, and it prints what became of all requests.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <rmpool.h>
#include "clock.h"
#include "numbers.h"
#include "pattern.h"

enum {
	THREADS = CHAOS_THREADS,
	PLACES = CHAOS_PLACES,		/* of a thread */
	ROUND = 4,			/* requests at once, at most */
	AROUND = 301,			/* bytes looked at before and behind a place */
	RING = 8,			/* too small for all: submit meets a full one */
	ROUNDS = 3,			/* without error, until a thread is said to go on */
	STATUSES = 134,
	HANDLES = 8,
	EDGE_SEED = 99,
};

#define LENGTH	CHAOS_LENGTH
#define ROOM	(LENGTH + 2ULL * AROUND)

/* One place at the peer. Indices are those of its bytes; those of in begin AROUND before. */
struct place_state {
	uint64_t offset;
	uint8_t *out;		/* what is put; registered */
	uint8_t *in;		/* what was got, ROOM bytes between edges; registered */
	uint8_t *is;		/* what must be there, if known */
	uint8_t *may;		/* what may be there instead */
	bool known;
	bool mixed;		/* a put failed: is and may differ */
	bool lost;		/* its memory may still be in use: never touched again */

	struct rmpool_request request;
	struct rmpool_completion result;
	uint64_t at, length;	/* of the put under way */
	_Atomic uint64_t pending;	/* cookie of the request under way, or 0 */
};

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t version;
	atomic_ulong rounds;		/* without an error */
	struct place_state places[PLACES];
	uint32_t number;
	uint32_t epoch;
	uint32_t nr_places;		/* that are not lost */
	uint32_t order[PLACES];		/* the first is used next */
};

static struct rmpool *pool;
static const char *address;
static struct worker workers[THREADS];
static double limit;			/* seconds, of a request */
static atomic_bool over;
static atomic_bool strict;
static atomic_uint counts[STATUSES], unknown;
static atomic_ulong repeated;		/* slices */

/*
 * The opened segment: epoch and handles change under the lock. A handle is closed some
 * epochs later, so that none means another segment while a thread uses it.
 */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t epoch, handles[HANDLES];

static uint64_t rnd(struct worker *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 11) % below;
}

static const char *name_of(int error)
{
	const char *name = error ? strerrorname_np(-error) : "OK";

	return name ? name : "?";
}

/* Errors that are right when something breaks. */
static bool may_fail_with(int error)
{
	switch (-error) {
	case ECONNRESET:	/* the connection broke */
	case ENOTCONN:		/* there is none */
	case ETIMEDOUT:		/* nor did one come */
	case ESTALE:		/* the peer's process or the peer is another one */
	case EREMOTEIO:		/* its memory went while the request was on its way */
	case ENXIO:		/* a new process has not yet registered it */
		return true;
	}
	return false;
}

/* ------------------------------------------------------------------ segment */

/* Opens it again, whatever the peer is doing, until that works. */
static void open_again(uint32_t seen)
{
	double end = now() + 20 * limit;
	int ret = -ENOTCONN;
	uint32_t handle;

	pthread_mutex_lock(&open_lock);
	if (epoch == seen) {
		while (!atomic_load(&over)) {
			ret = rmpool_segment_open(pool, address, NULL, 1000, &handle, NULL);
			if (!ret)
				break;
			if (now() > end)
				die("the segment does not come back: %s", rmpool_error());
			pause_ms(20);
		}
		if (!ret) {
			uint32_t *place = &handles[++epoch % HANDLES];

			if (epoch > HANDLES && rmpool_segment_close(pool, *place))
				die("close: %s", rmpool_error());
			*place = handle;
		}
	}
	pthread_mutex_unlock(&open_lock);
}

/* Uses the segment as it is now; another life of it has other bytes. */
static uint32_t segment_now(struct worker *w)
{
	uint32_t handle, i;

	pthread_mutex_lock(&open_lock);
	handle = handles[epoch % HANDLES];
	if (w->epoch != epoch) {
		w->epoch = epoch;
		for (i = 0; i < PLACES; i++)
			w->places[i].known = w->places[i].mixed = false;
	}
	pthread_mutex_unlock(&open_lock);
	return handle;
}

/* ------------------------------------------------------------------- places */

static void prepare(struct worker *w, struct place_state *p, uint32_t handle)
{
	uint64_t cookie = ++w->version * THREADS * PLACES +
			  (uint64_t)w->number * PLACES + (uint64_t)(p - w->places);

	if (p->known && !p->mixed && rnd(w, 3)) {
		p->at = rnd(w, LENGTH);
		/* Short ones, and long ones of many slices. */
		p->length = 1 + rnd(w, rnd(w, 2) ? LENGTH - p->at : 1 + (LENGTH - p->at) / 100);
		pattern_fill(p->out + p->at, p->length, cookie, p->offset + p->at);
		rmpool_prepare_put(&p->request, handle, p->offset + p->at, p->out + p->at,
				   p->length, cookie);
	} else {
		memset(p->in, 0x55, ROOM);
		rmpool_prepare_get(&p->request, handle, p->offset - AROUND, p->in, ROOM, cookie);
	}
	p->request.timeout_ms = (uint32_t)(limit * 1e3);
}

static void must_be(const void *mem, uint64_t length, uint64_t seed, uint64_t pos,
		    const char *what)
{
	char why[160];

	if (!pattern_check(mem, length, seed, pos, what, why, sizeof(why)))
		die("%s", why);
}

/* The bytes of the place are right, and so are those around it, here and there. */
static void compare(struct place_state *p)
{
	const uint8_t *in = p->in + AROUND;
	uint64_t i;

	must_be(p->in, AROUND, HOST_SEED, p->offset - AROUND, "before a place");
	must_be(in + LENGTH, AROUND, HOST_SEED, p->offset + LENGTH, "behind a place");
	must_be(p->in - AROUND, AROUND, EDGE_SEED, 0, "before local memory");
	must_be(p->in + ROOM, AROUND, EDGE_SEED, 0, "behind local memory");
	for (i = 0; p->known && i < LENGTH; i++)
		if (in[i] != p->is[i] && in[i] != p->may[i])
			die("offset %llu: byte %llu of a place is %#x instead of %#x or %#x",
			    (unsigned long long)p->offset, (unsigned long long)i, in[i],
			    p->is[i], p->may[i]);
	memcpy(p->is, in, LENGTH);
	memcpy(p->may, in, LENGTH);
	p->known = true;
	p->mixed = false;
}

/* Returns whether it went well. */
static bool settle(struct place_state *p)
{
	const struct rmpool_completion *c = &p->result;
	bool put = p->request.op == RMPOOL_OP_PUT;

	if (c->cookie != p->request.cookie)
		die("the result of another request");
	atomic_fetch_add(&counts[-c->status < STATUSES ? -c->status : STATUSES - 1], 1);
	atomic_fetch_add(&repeated, c->attempts);
	if (!c->status) {
		if (c->bytes != p->request.length || c->flags)
			die("%llu bytes of %llu, flags %#x", (unsigned long long)c->bytes,
			    (unsigned long long)p->request.length, c->flags);
		if (put) {
			memcpy(p->is + p->at, p->out + p->at, p->length);
			memcpy(p->may + p->at, p->out + p->at, p->length);
		} else {
			compare(p);
		}
		return true;
	}
	if (!may_fail_with(c->status) || atomic_load(&strict))
		die("a request ended: %s, %s, verbs status %u, rail %u", name_of(c->status),
		    rmpool_status_text(c->status), c->wc_status, c->rail);
	if (c->flags & RMPOOL_COMPLETION_UNKNOWN) {
		atomic_fetch_add(&unknown, 1);
		p->lost = true;
	} else if (put) {
		memcpy(p->may + p->at, p->out + p->at, p->length);
		p->mixed = true;
	}
	return false;
}

/* --------------------------------------------------------------------- ring */

static struct place_state *place_of(uint64_t cookie)
{
	uint64_t n = cookie % ((uint64_t)THREADS * PLACES);

	return &workers[n / PLACES].places[n % PLACES];
}

/* Takes what is there, whoever submitted it. */
static void reap(void)
{
	struct rmpool_completion c[4];
	struct place_state *p;
	int n, i;

	n = rmpool_wait(pool, 1, 20);
	if (n < 0 && n != -ETIME && n != -EINTR)
		die("wait: %s", rmpool_error());
	n = rmpool_poll(pool, c, 4);
	if (n < 0)
		die("poll: %s", rmpool_error());
	for (i = 0; i < n; i++) {
		p = place_of(c[i].cookie);
		if (atomic_load(&p->pending) != c[i].cookie)
			die("a completion for %llu, but %llu is under way",
			    (unsigned long long)c[i].cookie,
			    (unsigned long long)atomic_load(&p->pending));
		p->result = c[i];
		atomic_store(&p->pending, 0);
	}
}

static void by_ring(struct place_state **chosen, uint32_t nr)
{
	double end = now() + 2 * limit;
	struct rmpool_request r[ROUND];
	uint32_t i, done = 0;
	int ret;

	for (i = 0; i < nr; i++) {
		r[i] = chosen[i]->request;
		atomic_store(&chosen[i]->pending, r[i].cookie);
	}
	while (done < nr) {
		ret = rmpool_submit(pool, r + done, nr - done);
		if (ret < 0 && ret != -EAGAIN && ret != -EINTR)
			die("submit: %s", rmpool_error());
		if (ret > 0)
			done += (uint32_t)ret;
		else if (now() > end)
			die("no room in the ring for %.0f s", 2 * limit);
		else
			reap();
	}
	end = now() + 2 * limit;
	for (i = 0; i < nr; i++)
		while (atomic_load(&chosen[i]->pending)) {
			if (now() > end)
				die("request %llu has not ended after %.0f s",
				    (unsigned long long)r[i].cookie, 2 * limit);
			reap();
		}
}

static void by_batch(struct place_state **chosen, uint32_t nr)
{
	struct rmpool_completion results[ROUND];
	struct rmpool_request r[ROUND];
	double start = now();
	uint32_t i;
	int ret;

	for (i = 0; i < nr; i++)
		r[i] = chosen[i]->request;
	ret = rmpool_transfer(pool, r, nr, results, -1);
	if (ret < 0)
		die("transfer: %s", rmpool_error());
	if (now() > start + 2 * limit)
		die("a batch ended after %.0f s", now() - start);
	for (i = 0; i < nr; i++)
		chosen[i]->result = results[i];
}

/* ------------------------------------------------------------------ workers */

/* One round; returns whether all of it went well. */
static bool one_round(struct worker *w)
{
	uint32_t nr = 1 + (uint32_t)rnd(w, ROUND), i, handle;
	struct place_state *chosen[ROUND];
	bool good = true, stale = false;

	if (nr > w->nr_places)
		nr = w->nr_places;
	if (!nr)
		die("thread %u has no place left", w->number);
	handle = segment_now(w);
	for (i = 0; i < nr; i++) {
		chosen[i] = &w->places[w->order[i]];
		prepare(w, chosen[i], handle);
	}
	w->nr_places -= nr;
	memmove(w->order, w->order + nr, w->nr_places * sizeof(w->order[0]));
	if (w->number & 1)
		by_ring(chosen, nr);
	else
		by_batch(chosen, nr);
	for (i = 0; i < nr; i++) {
		if (!settle(chosen[i]))
			good = false;
		if (chosen[i]->result.status == -ESTALE)
			stale = true;
		if (!chosen[i]->lost)
			w->order[w->nr_places++] = (uint32_t)(chosen[i] - w->places);
	}
	if (stale)
		open_again(w->epoch);
	else if (!good)
		pause_ms(10);
	return good;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&over))
		if (one_round(w))
			atomic_fetch_add(&w->rounds, 1);
	return NULL;
}

/* Memory of all, in one region. */
static void setup(uint32_t area, uint64_t seed)
{
	uint64_t each = LENGTH + ROOM + 2ULL * AROUND, total = each * THREADS * PLACES;
	struct layout l = layout_named("chaos");
	uint32_t t, i, region;
	uint8_t *mem;

	mem = need_memory(mmap(NULL, total, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (rmpool_open(&pool, NULL, 0) || rmpool_ring(pool, RING, -1) ||
	    rmpool_register(pool, mem, total, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL))
		die("%s", rmpool_error());
	for (t = 0; t < THREADS; t++) {
		struct worker *w = &workers[t];

		w->number = t;
		w->nr_places = PLACES;
		w->random = (seed * 0x9e3779b97f4a7c15ULL ^ (t + 1) * 0xd6e8feb86659fd93ULL) | 1;
		w->version = seed % 1000000 * 1000000;
		for (i = 0; i < PLACES; i++) {
			struct place_state *p = &w->places[i];

			p->offset = l.places[(area * THREADS + t) * PLACES + i].offset;
			p->out = mem;
			p->in = mem + LENGTH + AROUND;
			pattern_fill(p->in - AROUND, AROUND, EDGE_SEED, 0);
			pattern_fill(p->in + ROOM, AROUND, EDGE_SEED, 0);
			p->is = need_memory(malloc(LENGTH));
			p->may = need_memory(malloc(LENGTH));
			w->order[i] = i;
			mem += each;
		}
	}
}

/* Whether each thread has gone on since, or with @from none, has begun. */
static bool all_went(const unsigned long *from)
{
	uint32_t t;

	for (t = 0; t < THREADS; t++)
		if (atomic_load(&workers[t].rounds) < (from ? from[t] : 0) + ROUNDS)
			return false;
	return true;
}

/* What signals ask for, until the end. */
static void attend(const sigset_t *signals)
{
	const struct timespec look = { .tv_nsec = 20000000 };
	unsigned long from[THREADS];
	bool asked = false, loading = false, on;
	unsigned int answers = 0, turns = 0;
	uint32_t t;
	int got;

	while ((got = sigtimedwait(signals, NULL, &look)) != SIGTERM) {
		if (got == SIGUSR1) {
			for (t = 0; t < THREADS; t++)
				from[t] = atomic_load(&workers[t].rounds);
			asked = true;
		}
		if (got == SIGUSR2) {
			on = ++turns % 2;
			atomic_store(&strict, on);
			printf("%s %u\n", on ? "strict" : "lenient", turns);
		}
		if (!loading && all_went(NULL)) {
			loading = true;
			puts("loading");
		}
		if (asked && all_went(from)) {
			asked = false;
			printf("going %u\n", ++answers);
		}
		fflush(stdout);
	}
}

static void look_at_all(void)
{
	struct place_state *chosen[1];
	uint32_t t, i, handle;

	for (t = 0; t < THREADS; t++)
		for (i = 0; i < PLACES; i++) {
			chosen[0] = &workers[t].places[i];
			if (chosen[0]->lost)
				continue;
			handle = segment_now(&workers[t]);
			/* To be read, not to be put to. */
			chosen[0]->mixed = true;
			prepare(&workers[t], chosen[0], handle);
			by_batch(chosen, 1);
			if (!settle(chosen[0]))
				die("cannot be read at the end: %s",
				    name_of(chosen[0]->result.status));
		}
}

int main(int argc, char **argv)
{
	sigset_t signals;
	uint64_t seed;
	uint32_t t, i;

	if (argc != 5) {
		fprintf(stderr, "usage: load NODE/SEGMENT AREA SEED SECONDS\n");
		return 2;
	}
	address = argv[1];
	seed = argument(argv[3], 0, ~0ULL);
	limit = (double)argument(argv[4], 1, 3600);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);

	setup((uint32_t)argument(argv[2], 0, CHAOS_AREAS - 1), seed);
	open_again(0);
	for (t = 0; t < THREADS; t++)
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			die("no thread");
	attend(&signals);
	atomic_store(&over, true);
	for (t = 0; t < THREADS; t++)
		pthread_join(workers[t].thread, NULL);
	look_at_all();
	for (i = 0; i < STATUSES; i++)
		if (atomic_load(&counts[i]))
			printf("%s=%u ", name_of(-(int)i), atomic_load(&counts[i]));
	printf("unknown=%u opened=%u repeated=%lu\n", atomic_load(&unknown), epoch,
	       atomic_load(&repeated));
	rmpool_close(pool);
	return 0;
}
