// SPDX-License-Identifier: MIT
/*
 * users: the limits of what users and the node may register, and that nobody gets
 * around them. As root, with nothing else registered; processes of two ordinary users,
 * who may open the device, do what they are told.
 *
 *	users user		parameter max_user_mib
 *	users node		parameter max_pinned_mib
 *	users locked		RLIMIT_MEMLOCK and CAP_IPC_LOCK
 *	users ends		each way in which a charge ends
 *	users crowd		many processes at the limit at the same time
 *
 * The parameters are as they were afterwards.
 */
#include <rmpool.h>
#include "clock.h"
#include "report.h"
#include "worker.h"

#define ONE	60001U		/* users */
#define OTHER	60002U
#define CROWD	6U
#define PARAMETERS "/sys/module/rmpool/parameters/"

static struct rmpool *pool;	/* root's */

/* Returns what it was. */
static unsigned long parameter(const char *name, unsigned long value)
{
	char path[128], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "r+");
	if (!f || !fgets(text, sizeof(text), f))
		give_up("%s", path);
	if (fseek(f, 0, SEEK_SET) || fprintf(f, "%lu\n", value) < 0 || fclose(f))
		give_up("%s: %s", path, strerror(errno));
	return strtoul(text, NULL, 10);
}

static uint64_t node_pinned(void)
{
	struct rmpool_info info;

	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	return info.node_pinned;
}

/* What ended processes had is given back by a work item. */
static bool node_returns(uint64_t bytes)
{
	double until = now() + patience(PATIENCE);

	while (node_pinned() != bytes) {
		if (now() > until)
			return false;
		pause_ms(5);
	}
	return true;
}

static void expect_given(struct test *t, const char *what, const struct answer *a)
{
	expect(t, !a->ret, "%s: %s", what, a->text);
}

static void expect_refused(struct test *t, const char *what, const struct answer *a,
			   uint32_t reason, uint64_t limit, uint64_t used, uint64_t need)
{
	expect(t, a->ret == -ENOMEM && a->why.reason == reason && a->why.limit == limit &&
	       a->why.used == used && a->why.need == need,
	       "%s: %d, reason %u: %llu of %llu in use, %llu needed", what, a->ret,
	       a->why.reason, (unsigned long long)a->why.used,
	       (unsigned long long)a->why.limit, (unsigned long long)a->why.need);
}

static void expect_text(struct test *t, const struct answer *a, const char *text)
{
	expect(t, strstr(a->text, text) != NULL, "the text is: %s", a->text);
}

static void expect_user(struct test *t, const char *what, const struct answer *a, uint64_t used)
{
	expect(t, a->info.user_pinned == used, "%s: the user has %llu bytes, not %llu", what,
	       (unsigned long long)a->info.user_pinned, (unsigned long long)used);
}

/* -------------------------------------------------------------- the limit of a user */

static void share(void)
{
	const uint32_t limit = RMPOOL_REASON_USER_PINNED;
	struct test t = { .name = "processes of one user share a limit" };
	struct test exact = { .name = "to the last page" };
	struct test beside = { .name = "another user has one of his own" };
	struct test before = { .name = "the limit is told before it is met" };
	struct worker a = start(ONE, 0), b = start(ONE, 0), c = start(OTHER, 0);
	struct answer x;

	x = ask(&a, LOOK, 0);
	expect(&before, x.info.user_limit == 4 * MIB && !x.info.user_pinned &&
	       x.info.node_limit == UINT64_MAX, "%llu of %llu",
	       (unsigned long long)x.info.user_pinned, (unsigned long long)x.info.user_limit);
	test_end(&before);

	x = ask(&a, REGISTER, 3 * MIB);
	expect_given(&t, "3 MiB", &x);
	x = ask(&b, REGISTER, 2 * MIB);
	expect_refused(&t, "2 MiB more", &x, limit, 4 * MIB, 3 * MIB, 2 * MIB);
	expect_text(&t, &x, "one user may register 4 MiB (module parameter max_user_mib), 3 MiB of it in use, 2 MiB needed");
	expect_user(&t, "seen by the second", &x, 3 * MIB);
	expect(&t, !x.info.pinned && !x.vm_pin, "what was refused is charged");
	test_end(&t);

	x = ask(&b, REGISTER, MIB - PAGE);
	expect_given(&exact, "all but a page", &x);
	x = ask(&a, REGISTER, PAGE + 1);
	expect_refused(&exact, "two pages", &x, limit, 4 * MIB, 4 * MIB - PAGE, 2 * PAGE);
	x = ask(&a, REGISTER, 1);
	expect_given(&exact, "a byte of the last page", &x);
	expect_user(&exact, "all of it", &x, 4 * MIB);
	x = ask(&b, REGISTER, 1);
	expect_refused(&exact, "a byte more", &x, limit, 4 * MIB, 4 * MIB, PAGE);
	test_end(&exact);

	x = ask(&c, REGISTER, 4 * MIB);
	expect_given(&beside, "another user", &x);
	expect_user(&beside, "another user", &x, 4 * MIB);
	expect(&beside, x.info.node_pinned == 8 * MIB, "the node has %llu bytes",
	       (unsigned long long)x.info.node_pinned);
	x = ask(&c, REGISTER, PAGE);
	expect_refused(&beside, "more", &x, limit, 4 * MIB, 4 * MIB, PAGE);
	ask(&a, UNREGISTER, 0);
	x = ask(&c, REGISTER, PAGE);
	expect_refused(&beside, "what the first gave back", &x, limit, 4 * MIB, 4 * MIB, PAGE);
	x = ask(&b, REGISTER, PAGE);
	expect_given(&beside, "that is for his other process", &x);
	test_end(&beside);

	worker_end(&a);
	worker_end(&b);
	worker_end(&c);
	if (!node_returns(0))
		give_up("%llu bytes stay", (unsigned long long)node_pinned());
}

/* The ID of the opener counts, as it was when he opened the file. */
static void change_user(void)
{
	const uint32_t limit = RMPOOL_REASON_USER_PINNED;
	const struct order other = { .what = BECOME, .user = OTHER, .effective = OTHER };
	const struct order half = { .what = BECOME, .user = ONE, .effective = OTHER };
	struct test t = { .name = "another user ID moves no charge and makes no room" };
	struct test real = { .name = "the real one counts" };
	struct worker a = start(ONE, 0), c = start(OTHER, 0), w = start(ONE, CHANGES);
	struct answer x;

	x = ask(&a, REGISTER, 3 * MIB);
	expect_given(&t, "3 MiB", &x);
	x = ask(&w, REGISTER, MIB);
	expect_given(&t, "1 MiB", &x);
	tell(&w, &other);
	x = hear(&w);
	expect(&t, !x.ret, "setresuid: %s", strerror(-x.ret));
	expect_user(&t, "the file that was opened before", &x, 4 * MIB);
	x = ask(&w, REGISTER, PAGE);
	expect_refused(&t, "with it", &x, limit, 4 * MIB, 4 * MIB, PAGE);

	/* A file of his new self. */
	x = ask_file(&w, OPEN, 1, 0);
	expect_given(&t, "open", &x);
	expect_user(&t, "the file that was opened afterwards", &x, 0);
	x = ask_file(&w, REGISTER, 1, 2 * MIB);
	expect_given(&t, "with that", &x);
	expect_user(&t, "with that", &x, 2 * MIB);
	x = ask(&c, REGISTER, 3 * MIB);
	expect_refused(&t, "the user he became", &x, limit, 4 * MIB, 2 * MIB, 3 * MIB);
	x = ask(&c, REGISTER, 2 * MIB);
	expect_given(&t, "the rest", &x);
	x = ask_file(&w, REGISTER, 1, PAGE);
	expect_refused(&t, "nor has that one room", &x, limit, 4 * MIB, 4 * MIB, PAGE);

	/* Given back, it is the first user's again. */
	ask_file(&w, UNREGISTER, 1, 0);
	x = ask(&w, UNREGISTER, 0);
	expect_given(&t, "unregister as another", &x);
	expect_user(&t, "afterwards", &x, 3 * MIB);
	x = ask(&a, REGISTER, MIB);
	expect_given(&t, "what is free again", &x);
	test_end(&t);
	worker_end(&w);

	w = start(ONE, CHANGES);
	tell(&w, &half);
	x = hear(&w);
	expect(&real, !x.ret, "setresuid: %s", strerror(-x.ret));
	x = ask_file(&w, OPEN, 1, 0);
	expect_given(&real, "open", &x);
	expect_user(&real, "with another effective ID", &x, 4 * MIB);
	x = ask_file(&w, REGISTER, 1, PAGE);
	expect_refused(&real, "with it", &x, limit, 4 * MIB, 4 * MIB, PAGE);
	test_end(&real);
	worker_end(&w);
	worker_end(&a);
	worker_end(&c);
	if (!node_returns(0))
		give_up("%llu bytes stay", (unsigned long long)node_pinned());
}

static void fork_files(void)
{
	const uint32_t limit = RMPOOL_REASON_USER_PINNED;
	struct test t = { .name = "children and further files make no room" };
	struct test lower = { .name = "a limit below what is in use: nothing more" };
	struct worker a = start(ONE, 0);
	struct answer x;

	x = ask(&a, REGISTER, 3 * MIB);
	expect_given(&t, "3 MiB", &x);
	x = ask(&a, FORK, 2 * MIB);
	expect_refused(&t, "a child", &x, limit, 4 * MIB, 3 * MIB, 2 * MIB);
	x = ask(&a, FORK, MIB);
	expect_given(&t, "a child, the rest", &x);
	expect_user(&t, "with the child's", &x, 4 * MIB);
	expect(&t, node_returns(3 * MIB), "what the child had stays");
	ask_file(&a, OPEN, 1, 0);
	x = ask_file(&a, REGISTER, 1, 2 * MIB);
	expect_refused(&t, "a second file", &x, limit, 4 * MIB, 3 * MIB, 2 * MIB);
	test_end(&t);

	parameter("max_user_mib", 2);
	x = ask(&a, REGISTER, PAGE);
	expect_refused(&lower, "more", &x, limit, 2 * MIB, 3 * MIB, PAGE);
	expect(&lower, x.info.user_limit == 2 * MIB && x.info.user_pinned == 3 * MIB,
	       "%llu of %llu", (unsigned long long)x.info.user_pinned,
	       (unsigned long long)x.info.user_limit);
	ask(&a, UNREGISTER, 0);
	x = ask(&a, REGISTER, 2 * MIB);
	expect_given(&lower, "as much as it is now", &x);
	parameter("max_user_mib", 0);
	x = ask(&a, REGISTER, 4 * MIB);
	expect_given(&lower, "without a limit", &x);
	expect(&lower, x.info.user_limit == UINT64_MAX && x.info.user_pinned == 6 * MIB,
	       "%llu of %llu", (unsigned long long)x.info.user_pinned,
	       (unsigned long long)x.info.user_limit);
	test_end(&lower);
	worker_end(&a);
	if (!node_returns(0))
		give_up("%llu bytes stay", (unsigned long long)node_pinned());
}

/* --------------------------------------------------------------- that of the node */

static int root_registers(uint64_t bytes)
{
	static _Alignas(4096) uint8_t memory[2 * MIB];
	uint32_t handle;
	int ret;

	ret = rmpool_register(pool, memory, bytes, RMPOOL_ACCESS_ALL, 0, 0, &handle, NULL);
	return ret ? ret : rmpool_unregister(pool, handle);
}

static void node(void)
{
	const uint32_t limit = RMPOOL_REASON_NODE_PINNED;
	struct test t = { .name = "all users share the node's limit" };
	struct test both = { .name = "the stricter of two limits counts" };
	struct worker a = start(ONE, 0), c = start(OTHER, LOCKS);
	struct answer x;
	int ret;

	x = ask(&c, LOOK, 0);
	expect(&t, x.info.node_limit == 4 * MIB && !x.info.node_pinned,
	       "told before: %llu of %llu", (unsigned long long)x.info.node_pinned,
	       (unsigned long long)x.info.node_limit);
	x = ask(&a, REGISTER, 3 * MIB);
	expect_given(&t, "3 MiB", &x);
	x = ask(&c, REGISTER, 2 * MIB);
	expect_refused(&t, "another user, 2 MiB", &x, limit, 4 * MIB, 3 * MIB, 2 * MIB);
	expect_text(&t, &x, "4 MiB may be registered on this node (module parameter max_pinned_mib), 3 MiB of it in use, 2 MiB needed");
	expect_user(&t, "another user", &x, 0);
	ret = root_registers(2 * MIB);
	expect(&t, ret == -ENOMEM && rmpool_error_detail()->reason == limit, "root: %d: %s", ret,
	       rmpool_error());
	expect(&t, !root_registers(MIB), "root, 1 MiB: %s", rmpool_error());
	x = ask(&c, REGISTER, MIB);
	expect_given(&t, "another user, the rest", &x);
	expect(&t, root_registers(PAGE) == -ENOMEM, "root was given more");
	test_end(&t);

	parameter("max_user_mib", 1);
	x = ask(&c, REGISTER, PAGE);
	expect_refused(&both, "both are met", &x, RMPOOL_REASON_USER_PINNED, MIB, MIB, PAGE);
	parameter("max_user_mib", 2);
	x = ask(&c, REGISTER, PAGE);
	expect_refused(&both, "the node's is met", &x, limit, 4 * MIB, 4 * MIB, PAGE);
	ask(&a, UNREGISTER, 0);
	x = ask(&c, REGISTER, MIB + PAGE);
	expect_refused(&both, "the user's is met", &x, RMPOOL_REASON_USER_PINNED, 2 * MIB, MIB,
		       MIB + PAGE);
	test_end(&both);
	parameter("max_user_mib", 0);
	worker_end(&a);
	worker_end(&c);
}

/* ------------------------------------------------------- that of locked memory */

static void locked(void)
{
	const uint32_t limit = RMPOOL_REASON_MEMLOCK;
	struct test t = { .name = "RLIMIT_MEMLOCK is a limit of a process" };
	struct test able = { .name = "CAP_IPC_LOCK lifts it, and no other" };
	struct test none = { .name = "a limit of 0: not a byte" };
	struct worker a = start(ONE, 0), b = start(ONE, 0), c = start(ONE, LOCKS);
	struct answer x;

	x = ask(&a, LOOK, 0);
	expect(&t, x.info.memlock == UINT64_MAX, "no limit is told as %llu",
	       (unsigned long long)x.info.memlock);
	ask(&a, LOCKABLE, 2 * MIB);
	ask(&b, LOCKABLE, 2 * MIB);
	x = ask(&c, LOCKABLE, 2 * MIB);
	expect(&able, !x.ret && x.info.memlock == UINT64_MAX, "it is told as %llu",
	       (unsigned long long)x.info.memlock);
	x = ask(&a, LOOK, 0);
	expect(&t, x.info.memlock == 2 * MIB, "it is told as %llu",
	       (unsigned long long)x.info.memlock);
	x = ask(&a, REGISTER, MIB + 1);
	expect_given(&t, "1 MiB and a byte", &x);
	expect(&t, x.vm_pin == (long)((MIB + PAGE) / KIB), "VmPin is %ld kB", x.vm_pin);
	x = ask(&a, REGISTER, MIB);
	expect_refused(&t, "1 MiB more", &x, limit, 2 * MIB, MIB + PAGE, MIB);
	expect_text(&t, &x, "RLIMIT_MEMLOCK is 2 MiB, 1028 KiB of it in use, 1 MiB needed");
	expect(&t, x.vm_pin == (long)((MIB + PAGE) / KIB), "then VmPin is %ld kB", x.vm_pin);
	expect_user(&t, "what was refused", &x, MIB + PAGE);
	/* A second file of the process has no limit of its own, a second process has. */
	ask_file(&a, OPEN, 1, 0);
	x = ask_file(&a, REGISTER, 1, MIB);
	expect_refused(&t, "by another file", &x, limit, 2 * MIB, MIB + PAGE, MIB);
	x = ask(&b, REGISTER, 2 * MIB);
	expect_given(&t, "another process", &x);
	expect_user(&t, "both", &x, 3 * MIB + PAGE);
	test_end(&t);

	x = ask(&c, REGISTER, 3 * MIB);
	expect_given(&able, "above the limit", &x);
	expect(&able, x.vm_pin == (long)(3 * MIB / KIB), "VmPin is %ld kB", x.vm_pin);
	parameter("max_user_mib", 8);
	x = ask(&c, REGISTER, 3 * MIB);
	expect_refused(&able, "the user's limit", &x, RMPOOL_REASON_USER_PINNED, 8 * MIB,
		       6 * MIB + PAGE, 3 * MIB);
	parameter("max_user_mib", 0);
	test_end(&able);

	ask(&b, UNREGISTER, 0);
	ask(&b, LOCKABLE, 0);
	x = ask(&b, REGISTER, 1);
	expect_refused(&none, "a byte", &x, limit, 0, 0, PAGE);
	test_end(&none);
	worker_end(&a);
	worker_end(&b);
	worker_end(&c);
}

/* ---------------------------------------------------------------- how charges end */

static void ends(void)
{
	struct test t = { .name = "failed, unregistered, exited, killed: nothing stays charged" };
	struct worker a, watch = start(ONE, 0);
	struct answer x;

	a = start(ONE, 0);
	x = ask(&a, HOLE, MIB);
	expect(&t, x.ret == -EFAULT && !x.info.user_pinned && !x.info.pinned && !x.vm_pin,
	       "a hole: %d, %llu bytes, VmPin %ld kB", x.ret,
	       (unsigned long long)x.info.user_pinned, x.vm_pin);
	ask(&a, REGISTER, MIB);
	x = ask(&a, REGISTER, MIB);
	expect_user(&t, "registered", &x, 2 * MIB);
	ask(&a, UNREGISTER, 0);
	x = ask(&a, UNREGISTER, 0);
	expect_user(&t, "unregistered", &x, 0);
	expect(&t, !x.info.pinned && !x.vm_pin, "VmPin is %ld kB", x.vm_pin);

	ask(&a, REGISTER, MIB);
	ask(&a, LEAVE, 0);
	expect(&t, waitpid(a.pid, NULL, 0) == a.pid && node_returns(0), "exit: %llu bytes stay",
	       (unsigned long long)node_pinned());
	close(a.to);
	x = ask(&watch, LOOK, 0);
	expect_user(&t, "exit", &x, 0);

	a = start(ONE, 0);
	x = ask(&a, REGISTER, MIB);
	expect_user(&t, "registered anew", &x, MIB);
	worker_end(&a);
	expect(&t, node_returns(0), "kill: %llu bytes stay", (unsigned long long)node_pinned());
	x = ask(&watch, LOOK, 0);
	expect_user(&t, "kill", &x, 0);
	test_end(&t);
	worker_end(&watch);
}

/* ---------------------------------------------------------------- all at the same time */

/* Once; returns how many of them ended, and what was registered at most. */
static uint32_t press_all(struct test *t, const struct worker *w, double until, uint64_t *most)
{
	const struct order order = { .what = PRESS, .bytes = 256 * KIB };
	bool heard[CROWD] = { false };
	uint32_t done = 0, i;
	struct answer x;
	uint64_t pinned;

	for (i = 0; i < CROWD; i++)
		tell(&w[i], &order);
	while (done < CROWD && now() < until) {
		pinned = node_pinned();
		if (pinned > *most)
			*most = pinned;
		for (i = 0; i < CROWD; i++) {
			if (heard[i] ||
			    recv(w[i].to, &x, sizeof(x), MSG_DONTWAIT) != (ssize_t)sizeof(x))
				continue;
			heard[i] = true;
			done++;
			expect(t, x.ret >= 0, "process %u: %d: %s", i, x.ret, x.text);
			printf("process %u was refused %d times\n", i, x.ret);
		}
	}
	return done;
}

static void crowd(void)
{
	struct test t = { .name = "many at the limit at once: never above it, none left out" };
	double until = now() + patience(PATIENCE * 3);
	struct worker w[CROWD];
	uint64_t most = 0;
	uint32_t done, i;

	for (i = 0; i < CROWD; i++)
		w[i] = start(ONE, 0);
	/* They may have the processors until all is over. */
	do
		done = press_all(&t, w, until, &most);
	while (!most && done == CROWD && !t.failed && now() < until);
	expect(&t, done == CROWD, "%u of %u ended", done, CROWD);
	expect(&t, most <= MIB, "%llu bytes at once", (unsigned long long)most);
	expect(&t, most > 0, "nothing was registered");
	for (i = 0; i < CROWD; i++)
		worker_end(&w[i]);
	expect(&t, node_returns(0), "%llu bytes stay", (unsigned long long)node_pinned());
	test_end(&t);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	unsigned long user, all;

	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	/* Those who were here before may have ended a moment ago. */
	if (!node_returns(0))
		give_up("%llu bytes are registered already", (unsigned long long)node_pinned());
	user = parameter("max_user_mib", 0);
	all = parameter("max_pinned_mib", 0);
	if (!strcmp(what, "user")) {
		parameter("max_user_mib", 4);
		share();
		change_user();
		fork_files();
	} else if (!strcmp(what, "node")) {
		parameter("max_pinned_mib", 4);
		node();
	} else if (!strcmp(what, "locked")) {
		locked();
	} else if (!strcmp(what, "ends")) {
		ends();
	} else if (!strcmp(what, "crowd")) {
		parameter("max_user_mib", 1);
		crowd();
	} else {
		give_up("users user | node | locked | ends | crowd");
	}
	parameter("max_user_mib", user);
	parameter("max_pinned_mib", all);
	rmpool_close(pool);
	return report_failed != 0;
}
