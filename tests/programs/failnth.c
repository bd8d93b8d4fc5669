// SPDX-License-Identifier: MIT
/*
 * Allocations fail, one after the other, at every place of an operation.
 *
 *	failnth serve
 * is the side of the peer: it listens at port 7700, publishes segments and has
 * faults come, as it is told by
 *
 *	failnth run HOST WHERE FAULT STEP SEED OPERATION...
 * which runs each operation with a fault at the first allocation, at the second, and
 * so on, until it went through without one. WHERE the faults come: "here" or "there",
 * at the peer HOST. FAULT: see faults.h. Each operation must end well or with an
 * error, in time, and the same again without a fault must end well. With a STEP above
 * 1 only each so manieth allocation fails, the first one chosen by SEED; faults in
 * a row come at STEP places that SEED chooses.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <rmpool.h>
#include "clock.h"
#include "faults.h"
#include "pattern.h"

enum {
	PORT = 7700,
	SERVED = 256 << 10,	/* bytes of a region that is served */
	MEMORY = 3 << 20,	/* more than one chunk */
	COLD = 8,		/* pages of it that are not there yet */
	BATCH = 40,		/* more than one block of requests */
	PIECE = 5000,
	ERRORS = 12,
};

static const char *host;
static bool there;
static enum fault_kind kind;
static FILE *agent;
static int slow = 1;		/* factor of this kernel for time limits */

static struct rmpool *pool;
static struct rmpool_nl *nl;
static uint8_t *memory;
static uint32_t segment, region, opened;
static bool have_segment, have_region, have_opened, have_peer;
static int tick = -1;
static char served[RMPOOL_NAME_MAX];

/* ------------------------------------------------------------- of the peer */

struct publication {
	struct publication *next;
	char name[RMPOOL_NAME_MAX];
	struct rmpool *pool;
	uint32_t segment;
	bool published;
	uint8_t *memory;
};

static struct publication *publications;

static int publication_extend(struct publication *p)
{
	uint32_t id;

	return rmpool_register(p->pool, p->memory, SERVED, RMPOOL_ACCESS_ALL,
			       p->segment, RMPOOL_OFFSET_NEXT, &id, NULL);
}

static int serve_publish(const char *name)
{
	struct publication *p = need_memory(calloc(1, sizeof(*p)));
	int ret;

	snprintf(p->name, sizeof(p->name), "%s", name);
	p->memory = need_memory(mmap(NULL, SERVED, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	ret = rmpool_open(&p->pool, NULL, 0);
	if (!ret)
		ret = rmpool_publish(p->pool, name, &p->segment);
	p->published = !ret;
	if (!ret)
		ret = publication_extend(p);
	p->next = publications;
	publications = p;
	return ret;
}

static struct publication **publication(const char *name)
{
	struct publication **p = &publications;

	while (*p && strcmp((*p)->name, name))
		p = &(*p)->next;
	return p;
}

static int serve_withdraw(const char *name)
{
	struct publication **at = publication(name), *p = *at;
	int ret = 0;

	if (!p)
		return -ENOENT;
	if (p->published)
		ret = rmpool_unpublish(p->pool, p->segment);
	rmpool_close(p->pool);
	munmap(p->memory, SERVED);
	*at = p->next;
	free(p);
	return ret;
}

static int serve_extend(const char *name)
{
	struct publication *p = *publication(name);

	return p ? publication_extend(p) : -ENOENT;
}

static enum fault_kind fault_named(const char *name)
{
	size_t i;

	for (i = 0; i < NR_FAULTS; i++)
		if (!strcmp(name, fault_names[i]))
			return (enum fault_kind)i;
	give_up("no fault %s", name);
}

/* "COMMAND NAME NUMBER"; the answer is two numbers. */
static void serve_one(FILE *f, const char *line)
{
	char command[16] = "", name[RMPOOL_NAME_MAX] = "";
	long number, left = 0;
	int ret = 0, end = 0;

	if (sscanf(line, "%15s %63s %n", command, name, &end) < 2 || !end)
		give_up("asked for: %s", line);
	number = strtol(line + end, NULL, 10);
	if (!strcmp(command, "arm"))
		fault_arm(fault_named(name), number);
	else if (!strcmp(command, "came"))
		ret = fault_came(fault_named(name), &left);
	else if (!strcmp(command, "drain"))
		fault_drain(fault_named(name), number);
	else if (!strcmp(command, "publish"))
		ret = serve_publish(name);
	else if (!strcmp(command, "extend"))
		ret = serve_extend(name);
	else if (!strcmp(command, "withdraw"))
		ret = serve_withdraw(name);
	else
		give_up("asked for: %s", line);
	fprintf(f, "%d %ld\n", ret, left);
	fflush(f);
}

static void serve(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
	};
	char line[256];
	int fd, on = 1;
	FILE *in, *out;

	faults_setup();
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 4))
		give_up("listen: %s", strerror(errno));
	if (serve_publish("fault"))
		give_up("publish: %s", rmpool_error());
	puts("ready");
	fflush(stdout);
	for (;;) {
		int c = accept(fd, NULL, NULL);

		in = c < 0 ? NULL : fdopen(c, "r");
		out = c < 0 ? NULL : fdopen(dup(c), "w");
		if (!in || !out)
			give_up("accept: %s", strerror(errno));
		while (fgets(line, sizeof(line), in))
			serve_one(out, line);
		fclose(in);
		fclose(out);
	}
}

static FILE *agent_in;

static void agent_connect(void)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *to;
	int fd;

	if (getaddrinfo(host, "7700", &hints, &to))
		give_up("%s: no address", host);
	fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
		give_up("%s: %s", host, strerror(errno));
	freeaddrinfo(to);
	agent_in = fdopen(fd, "r");
	agent = fdopen(dup(fd), "w");
	if (!agent_in || !agent)
		give_up("%s: %s", host, strerror(errno));
}

static int ask(const char *command, const char *name, long number, long *left)
{
	char line[64];
	long long got[2];

	fprintf(agent, "%s %s %ld\n", command, name, number);
	if (fflush(agent) || !fgets(line, sizeof(line), agent_in) ||
	    numbers(line, got, 2) != 2)
		give_up("no answer to %s %s", command, name);
	if (left)
		*left = (long)got[1];
	return (int)got[0];
}

/* --------------------------------------------------------------- operations */

static int open_ms(void)
{
	return 30000 * slow;
}

/* What cannot be made ready for an operation, without any fault. */
static void need(int ret, const char *what)
{
	if (ret < 0)
		give_up("%s: %s", what, rmpool_error());
}

static void take_pool(void)
{
	need(rmpool_open(&pool, NULL, 0), "open");
}

static void drop_pool(void)
{
	rmpool_close(pool);
	pool = NULL;
	have_segment = false;
	have_region = false;
	have_opened = false;
}

static void take_nl(void)
{
	need(rmpool_nl_open(&nl), "netlink");
}

static void drop_nl(void)
{
	rmpool_nl_close(nl);
	nl = NULL;
}

/* Touched, but for some pages in the middle. */
static void take_memory(void)
{
	memory = need_memory(mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	madvise(memory, MEMORY, MADV_NOHUGEPAGE);
	memset(memory, 1, MEMORY);
	madvise(memory + (1 << 20), COLD * 4096UL, MADV_DONTNEED);
}

static void drop_memory(void)
{
	munmap(memory, MEMORY);
}

static int open_run(void)
{
	return rmpool_open(&pool, NULL, 0);
}

static int ring_run(void)
{
	return rmpool_ring(pool, 256, tick);
}

static void ring_ready(void)
{
	take_pool();
	tick = eventfd(0, EFD_CLOEXEC);
}

static void ring_undo(void)
{
	drop_pool();
	close(tick);
}

static int publish_run(void)
{
	int ret = rmpool_publish(pool, "faulty", &segment);

	have_segment = !ret;
	return ret;
}

/* What failed in telling its result has been done. */
static int gone(int ret)
{
	return ret == -ENOENT ? 0 : ret;
}

static void publish_undo(void)
{
	if (have_segment)
		need(gone(rmpool_unpublish(pool, segment)), "unpublish");
	have_segment = false;
}

static int unpublish_run(void)
{
	int ret = rmpool_unpublish(pool, segment);

	have_segment = ret && have_segment;
	return ret;
}

/* A file that was closed gives its names back a moment later. */
static void publish_ready(void)
{
	double end = now() + 30 * slow;
	int ret;

	while ((ret = publish_run()) == -EEXIST && now() < end)
		pause_ms(10);
	need(ret, "publish");
}

static int register_run(void)
{
	int ret = rmpool_register(pool, memory, MEMORY, RMPOOL_ACCESS_ALL,
				  segment, segment ? RMPOOL_OFFSET_NEXT : 0,
				  &region, NULL);

	have_region = !ret;
	return ret;
}

static void register_setup(void)
{
	take_pool();
	publish_ready();
}

static void register_undo(void)
{
	if (have_region)
		need(gone(rmpool_unregister(pool, region)), "unregister");
	have_region = false;
	drop_memory();
}

static void unregister_ready(void)
{
	take_memory();
	need(register_run(), "register");
}

static int unregister_run(void)
{
	int ret = rmpool_unregister(pool, region);

	have_region = ret && have_region;
	return ret;
}

/* Nobody answers there; events are listened to. */
static void events_setup(void)
{
	take_nl();
	need(rmpool_nl_subscribe(nl), "subscribe");
}

static int peer_run(void)
{
	int ret = rmpool_nl_peer_add(nl, "nobody", "v1:10.77.0.99:13579", 0);

	have_peer = !ret;
	if (!ret)
		ret = rmpool_nl_peer_del(nl, "nobody");
	have_peer = ret && have_peer;
	return ret;
}

static void peer_undo(void)
{
	const struct rmpool_nl_event *event;
	int ret;

	if (have_peer)
		need(rmpool_nl_peer_del(nl, "nobody"), "peer del");
	have_peer = false;
	do {
		ret = rmpool_nl_event(nl, &event);
	} while (ret > 0 || ret == -ENOBUFS);
}

static int node_run(void)
{
	const struct rmpool_nl_settings settings = { .name = "a" };
	const struct rmpool_nl_node *node;
	int ret;

	ret = rmpool_nl_node_get(nl, &node);
	return ret ? ret : rmpool_nl_node_set(nl, &settings);
}

static int any_device(const struct rmpool_nl_device *d, void *arg)
{
	(void)d;
	(void)arg;
	return 0;
}

static int any_segment(const struct rmpool_nl_segment *s, void *arg)
{
	(void)s;
	(void)arg;
	return 0;
}

static int any_region(const struct rmpool_nl_region *r, void *arg)
{
	(void)r;
	(void)arg;
	return 0;
}

/* Of the peer "b", the rails that are up. */
static int count_rails(const struct rmpool_nl_peer *peer, void *arg)
{
	const struct rmpool_nl_rail *rail;
	int *nr = arg;

	for (rail = peer->rails; rail && !strcmp(peer->name, "b"); rail = rail->next)
		*nr += rail->state == RMPOOL_RAIL_UP;
	return 0;
}

static int lists_run(void)
{
	int ret, nr = 0;

	ret = rmpool_nl_devices(nl, any_device, NULL);
	if (!ret)
		ret = rmpool_nl_peers(nl, count_rails, &nr);
	if (!ret)
		ret = rmpool_nl_segments(nl, any_segment, NULL);
	if (!ret)
		ret = rmpool_nl_regions(nl, any_region, NULL);
	return ret;
}

static void lists_setup(void)
{
	register_setup();
	take_memory();
	need(register_run(), "register");
	take_nl();
}

static void lists_teardown(void)
{
	drop_nl();
	drop_pool();
	drop_memory();
}

/* A rail that is missing is not told to anybody: look. */
static int rails_wait(void)
{
	double end = now() + 30 * slow;
	int nr;

	do {
		nr = 0;
		need(rmpool_nl_peers(nl, count_rails, &nr), "peers");
		if (nr == 2)
			return 0;
		pause_ms(20);
	} while (now() < end);
	return nr ? -ENOLINK : -ENOTCONN;
}

static void peer_take(void)
{
	char endpoint[RMPOOL_ENDPOINT_MAX];

	snprintf(endpoint, sizeof(endpoint), "v1:%s:13579", host);
	need(rmpool_nl_peer_add(nl, "b", endpoint, 0), "peer add");
}

static void peer_drop(void)
{
	need(rmpool_nl_peer_del(nl, "b"), "peer del");
}

static int open_segment(const char *name)
{
	int ret = rmpool_segment_open(pool, "b", name, open_ms(), &opened, NULL);

	have_opened = !ret;
	return ret;
}

static void close_segment(void)
{
	if (have_opened)
		need(rmpool_segment_close(pool, opened), "close");
	have_opened = false;
}

static void connect_setup(void)
{
	take_pool();
	take_nl();
}

static void connect_teardown(void)
{
	drop_pool();
	drop_nl();
}

static int connect_run(void)
{
	return open_segment("fault");
}

static void connect_undo(void)
{
	close_segment();
	peer_drop();
}

static void warm_setup(void)
{
	connect_setup();
	peer_take();
	need(open_segment("fault"), "open");
	need(rails_wait(), "rails");
	close_segment();
}

static void warm_teardown(void)
{
	drop_pool();
	peer_drop();
	drop_nl();
}

/* A segment that was never opened before. */
static void segment_ready(void)
{
	static int nr;

	snprintf(served, sizeof(served), "fault.%d", ++nr);
	if (ask("publish", served, 0, NULL))
		give_up("%s is not published", served);
}

static int segment_run(void)
{
	return open_segment(served);
}

static void segment_undo(void)
{
	close_segment();
	ask("withdraw", served, 0, NULL);
}

static void opened_ready(void)
{
	segment_ready();
	need(segment_run(), "open");
}

static int withdraw_run(void)
{
	return ask("withdraw", served, 0, NULL);
}

/* The second region is found, though the peer told of it only now. */
static int extend_run(void)
{
	int ret = ask("extend", served, 0, NULL);

	if (!ret)
		ret = rmpool_put(pool, opened, SERVED, memory, 100, open_ms());
	return ret;
}

static void extend_ready(void)
{
	close_segment();
	opened_ready();
}

static int list_run(void)
{
	struct rmpool_region_desc *list = NULL;
	uint32_t nr;
	int ret;

	ret = rmpool_segment_regions(pool, opened, &list, &nr, NULL);
	free(list);
	return ret;
}

static void data_setup(void)
{
	warm_setup();
	segment = 0;
	take_memory();
	need(register_run(), "register");
	need(rmpool_ring(pool, 64, -1), "ring");
	need(connect_run(), "open");
}

static void data_teardown(void)
{
	warm_teardown();
	drop_memory();
}

/* Gets from where BATCH pieces were put; they must be the same bytes. */
static uint64_t data_seed;

static void data_fill(struct rmpool_request *req, bool put)
{
	uint32_t i;

	if (put)
		pattern_fill(memory, (size_t)BATCH * PIECE, ++data_seed, 0);
	else
		memset(memory, 0, (size_t)BATCH * PIECE);
	for (i = 0; i < BATCH; i++) {
		uint64_t at = (uint64_t)i * PIECE;

		rmpool_prepare_put(&req[i], opened, at, memory + at, PIECE, i);
		req[i].timeout_ms = (uint32_t)open_ms();
		if (!put)
			req[i].op = RMPOOL_OP_GET;
	}
}

static int data_check_of(size_t length)
{
	char why[128];

	if (pattern_check(memory, length, data_seed, 0, "got", why, sizeof(why)))
		return 0;
	fprintf(stderr, "%s\n", why);
	return -EILSEQ;
}

static int data_check(void)
{
	return data_check_of((size_t)BATCH * PIECE);
}

static int status_of(const struct rmpool_completion *c, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (c[i].status)
			return c[i].status;
	return 0;
}

static int sync_half(bool put)
{
	struct rmpool_request req[BATCH];
	struct rmpool_completion c[BATCH];
	int ret;

	data_fill(req, put);
	ret = rmpool_transfer(pool, req, BATCH, c, 2 * open_ms());
	return ret > 0 ? status_of(c, BATCH) : ret;
}

static int sync_run(void)
{
	int ret = sync_half(true);

	if (!ret)
		ret = sync_half(false);
	return ret ? ret : data_check();
}

/* Each request that was taken ends, whatever becomes of the call. How many were is not
 * told when the answer finds no room: no more end once none did for a while.
 */
static int ring_half(bool put)
{
	struct rmpool_request req[BATCH];
	struct rmpool_completion c[BATCH];
	int ret, error = 0, taken = 0, n = 0;

	data_fill(req, put);
	while (taken < BATCH && !error) {
		ret = rmpool_submit(pool, req + taken, (uint32_t)(BATCH - taken));
		if (ret < 0)
			error = ret;
		else
			taken += ret;
	}
	while (n < taken || (error == -EFAULT && n < BATCH)) {
		ret = rmpool_wait(pool, 1, n < taken ? 2 * open_ms() : 1000 * slow);
		if (ret > 0)
			ret = rmpool_poll(pool, c + n, (uint32_t)(BATCH - n));
		if (ret == -ETIME && n >= taken)
			break;
		if (ret == -ETIME)
			return -ETIME;	/* a completion was lost */
		if (ret < 0)
			error = ret;
		else
			n += ret;
	}
	return error ? error : status_of(c, n);
}

static int async_run(void)
{
	int ret = ring_half(true);

	if (!ret)
		ret = ring_half(false);
	return ret ? ret : data_check();
}

static void cached_setup(void)
{
	warm_setup();
	need(connect_run(), "open");
}

/* Memory of each run is new, at an address where other memory was before. */
static int unregistered_run(size_t length)
{
	const uint16_t flags = RMPOOL_REQUEST_REGISTER;
	int ret;

	pattern_fill(memory, length, ++data_seed, 0);
	ret = rmpool_put_flags(pool, opened, 0, memory, length, flags, open_ms());
	memset(memory, 0, length);
	if (!ret)
		ret = rmpool_get_flags(pool, opened, 0, memory, length, flags, open_ms());
	return ret ? ret : data_check_of(length);
}

/* More than is copied. */
static int cached_run(void)
{
	return unregistered_run((size_t)BATCH * PIECE);
}

/* Copied, in several pieces; or registered, if that fails. */
static int staged_run(void)
{
	return unregistered_run((size_t)10 * PIECE);
}

/*
 * @setup, @teardown: around all of it. @ready, @undo: around each run. @run: what may
 * fail; must it not, @sure is set. @after: must be so after a run that went well.
 */
struct operation {
	const char *name;
	void (*setup)(void);
	void (*ready)(void);
	int (*run)(void);
	int (*after)(void);
	void (*undo)(void);
	void (*teardown)(void);
	bool sure;
};

static const struct operation operations[] = {
	{ "open", NULL, NULL, open_run, NULL, drop_pool, NULL, false },
	{ "ring", NULL, ring_ready, ring_run, NULL, ring_undo, NULL, false },
	{ "publish", take_pool, NULL, publish_run, NULL, publish_undo, drop_pool, false },
	{ "unpublish", take_pool, publish_ready, unpublish_run, NULL, publish_undo,
	  drop_pool, true },
	{ "register", register_setup, take_memory, register_run, NULL, register_undo,
	  drop_pool, false },
	{ "unregister", register_setup, unregister_ready, unregister_run, NULL,
	  register_undo, drop_pool, true },
	{ "peer", events_setup, NULL, peer_run, NULL, peer_undo, drop_nl, false },
	{ "node", take_nl, NULL, node_run, NULL, NULL, drop_nl, false },
	{ "lists", lists_setup, NULL, lists_run, NULL, NULL, lists_teardown, false },
	{ "connect", connect_setup, peer_take, connect_run, rails_wait, connect_undo,
	  connect_teardown, false },
	{ "segment", warm_setup, segment_ready, segment_run, rails_wait, segment_undo,
	  warm_teardown, false },
	{ "list", data_setup, NULL, list_run, NULL, NULL, data_teardown, false },
	{ "withdraw", warm_setup, opened_ready, withdraw_run, rails_wait, segment_undo,
	  warm_teardown, true },
	{ "extend", data_setup, extend_ready, extend_run, rails_wait, segment_undo,
	  data_teardown, false },
	{ "sync", data_setup, NULL, sync_run, rails_wait, NULL, data_teardown, false },
	{ "async", data_setup, NULL, async_run, rails_wait, NULL, data_teardown, false },
	{ "cached", cached_setup, take_memory, cached_run, rails_wait, drop_memory,
	  warm_teardown, false },
	{ "staged", cached_setup, take_memory, staged_run, rails_wait, drop_memory,
	  warm_teardown, false },
};

static const struct operation *operation_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(name, operations[i].name))
			return &operations[i];
	give_up("no operation %s", name);
}

/* ------------------------------------------------------------------ sweeps */

static struct {
	struct {
		int error;
		uint32_t nr;
	} seen[ERRORS];
	uint32_t errors;
	uint32_t faults;
} tally;

static void count_error(int error)
{
	int i = 0;

	tally.errors++;
	while (i < ERRORS - 1 && tally.seen[i].nr && tally.seen[i].error != error)
		i++;
	tally.seen[i].error = error;
	tally.seen[i].nr++;
}

static const char *error_name(int error)
{
	const char *name = error ? strerrorname_np(-error) : "OK";

	return name ? name : "?";
}

/* What runs, for who looks at a run that hangs. */
static char running[128];

static void on_alarm(int number)
{
	static const char text[] = " does not end\n";

	(void)number;
	if (write(1, "not ok ", 7) < 0 || write(1, running, strlen(running)) < 0 ||
	    write(1, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(1);
}

static void arm(long nth)
{
	if (there)
		ask("arm", fault_names[kind], nth, NULL);
	else
		fault_arm(kind, nth);
}

static void drain(long nth)
{
	if (there)
		ask("drain", fault_names[kind], nth, NULL);
	else
		fault_drain(kind, nth);
}

static bool came(long *left)
{
	if (there)
		return ask("came", fault_names[kind], 0, left) > 0;
	return fault_came(kind, left);
}

/* Runs it once. @nth: with that fault, 0: with none. */
static int run_once(const struct operation *op, long nth, bool *did_come, long *left)
{
	int ret;

	alarm((unsigned int)(300 * slow));
	if (op->ready)
		op->ready();
	if (nth)
		arm(nth);
	ret = op->run();
	if (did_come)
		*did_come = came(left);
	return ret;
}

static void run_end(const struct operation *op)
{
	if (op->undo)
		op->undo();
	alarm(0);
}

static int run_plain(const struct operation *op)
{
	int ret = run_once(op, 0, NULL, NULL);

	if (!ret && op->after)
		ret = op->after();
	run_end(op);
	return ret;
}

/* One fault. False: it did not come, or all makes no sense any more. */
static bool run_faulty(struct test *t, const struct operation *op, long nth)
{
	bool did_come = false;
	long left = 0;
	int ret, again, rails = 0;

	ret = run_once(op, nth, &did_come, &left);
	if (!did_come && !fault_in_a_row(kind) && kind != FAULT_TASK)
		drain(nth);		/* see faults.h */
	if (!ret && op->after)
		rails = op->after();
	run_end(op);
	tally.faults += did_come;
	if (ret)
		count_error(ret);
	expect(t, !ret || did_come, "fault %ld did not come, but %s: %s", nth,
	       error_name(ret), rmpool_error());
	/* But for copies from and to the memory of the caller. */
	expect(t, !ret || !op->sure || (kind == FAULT_TASK && ret == -EFAULT),
	       "with fault %ld: %s: %s", nth, error_name(ret), rmpool_error());
	expect(t, ret != -EILSEQ && ret != -ETIME, "with fault %ld: %s", nth,
	       error_name(ret));
	expect(t, !rails, "with fault %ld: well, but then %s", nth, error_name(rails));
	again = run_plain(op);
	expect(t, !again, "after fault %ld, which gave %s: %s: %s", nth,
	       error_name(ret), error_name(again), rmpool_error());
	return did_come && !t->failed;
}

static uint64_t random_state;

static long random_below(long limit)
{
	random_state += 0x9e3779b97f4a7c15ULL;
	return (long)(pattern_word(random_state, 0) % (uint64_t)limit);
}

/* How many bytes or pages it takes. */
static long space_of(struct test *t, const struct operation *op)
{
	bool did_come;
	long left;
	int ret;

	ret = run_once(op, SPACE, &did_come, &left);
	run_end(op);
	expect(t, !ret, "without a fault: %s: %s", error_name(ret), rmpool_error());
	return SPACE - left;
}

static void sweep(const struct operation *op, long step)
{
	struct test t = { .name = op->name };
	long nth, all, i;
	int ret;

	memset(&tally, 0, sizeof(tally));
	snprintf(running, sizeof(running), "%s:", op->name);
	if (op->setup)
		op->setup();
	ret = run_plain(op);
	expect(&t, !ret, "without a fault: %s: %s", error_name(ret), rmpool_error());
	if (fault_in_a_row(kind)) {
		all = t.failed ? 0 : space_of(&t, op);
		printf("%s: %ld %s\n", op->name, all,
		       fault_of_slab(kind) ? "bytes" : "pages");
		/* What is not there is not asked for. */
		for (i = 0; i < step && all && !t.failed; i++)
			run_faulty(&t, op, random_below(all));
	} else {
		nth = 1 + random_below(step);
		while (!t.failed && run_faulty(&t, op, nth))
			nth += step;
	}
	if (op->teardown)
		op->teardown();
	printf("%s: %u faults, %u errors:", op->name, tally.faults, tally.errors);
	for (i = 0; i < ERRORS && tally.seen[i].nr; i++)
		printf(" %s %u", error_name(tally.seen[i].error), tally.seen[i].nr);
	putchar('\n');
	test_end(&t);
}

int main(int argc, char **argv)
{
	const char *factor = getenv("VM_SLOW");
	long step;
	int i;

	if (factor)
		slow = (int)argument(factor, 1, 100);
	if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	if (argc < 8 || strcmp(argv[1], "run") ||
	    (strcmp(argv[3], "here") && strcmp(argv[3], "there")))
		give_up("usage: failnth run HOST here|there FAULT STEP SEED OPERATION...");
	host = argv[2];
	there = !strcmp(argv[3], "there");
	kind = fault_named(argv[4]);
	step = (long)argument(argv[5], 1, 1000000);
	random_state = argument(argv[6], 0, UINT64_MAX);
	signal(SIGALRM, on_alarm);
	faults_setup();
	if (strcmp(host, "-"))
		agent_connect();
	for (i = 7; i < argc; i++)
		sweep(operation_named(argv[i]), step);
	return report_failed ? 1 : 0;
}
