// SPDX-License-Identifier: MIT
/*
 * execs: a process that has published memory and becomes another program.
 *
 *	execs host NAME open|closed|busy
 *		publishes a region and says "published". With a line of input it becomes
 *		the next one: with the descriptor of the pool, without it, or while
 *		another thread of it registers much.
 *	execs after NAME FD BEGAN
 *		says "after" and what it has of its former life; with a line of input it
 *		publishes the name anew, other bytes under it. Ends with its input.
 *	execs peer NODE/SEGMENT
 *		gets until it fails; says "opened" before
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rmpool.h>
#include "big.h"
#include "clock.h"
#include "pattern.h"
#include "report.h"

#define LENGTH	300001UL
#define OLD	1U			/* seeds */
#define NEW	2U
#define BUSY	(512UL << 20)
#define PATIENCE 60			/* seconds */

static struct rmpool *pool;

static uint8_t *memory(void)
{
	uint8_t *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	if (at == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return at;
}

/* The one before may still be going. */
static void publish(const char *name, uint32_t seed)
{
	double end = now() + patience(PATIENCE);
	uint32_t segment, region;
	uint8_t *at = memory();
	int ret;

	pattern_fill(at, LENGTH, seed, 0);
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	do
		ret = rmpool_publish(pool, name, &segment);
	while (ret == -EEXIST && now() < end);
	if (ret || rmpool_register(pool, at, LENGTH, RMPOOL_ACCESS_ALL, segment, 0, &region, NULL))
		give_up("%s", rmpool_error());
	puts("published");
	fflush(stdout);
}

/* Again and again: who looks may miss one. */
static void *register_much(void *arg)
{
	uint32_t region;

	while (!rmpool_register(pool, arg, BUSY, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL) &&
	       !rmpool_unregister(pool, region))
		big_forget(arg, BUSY);
	return NULL;
}

static int see(const struct rmpool_nl_region *r, void *arg)
{
	*(bool *)arg |= r->owner_pid == (uint32_t)getpid() && r->percent >= 5 &&
			r->state == RMPOOL_REGION_STATE_REGISTERING;
	return 0;
}

/* Another thread is in the middle of it. */
static void be_busy(void)
{
	double end = now() + patience(PATIENCE);
	struct rmpool_nl *nl;
	bool busy = false;
	pthread_t thread;

	if (rmpool_nl_open(&nl) || pthread_create(&thread, NULL, register_much, big_map(BUSY)))
		give_up("cannot be busy");
	while (!busy)
		if (now() > end || rmpool_nl_regions(nl, see, &busy))
			give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
}

static void host(const char *name, const char *way)
{
	char number[16] = "-", began[32], line[64];

	publish(name, OLD);
	if (!fgets(line, sizeof(line), stdin))
		return;
	if (!strcmp(way, "open")) {
		snprintf(number, sizeof(number), "%d", rmpool_fd(pool));
		if (fcntl(rmpool_fd(pool), F_SETFD, 0))
			give_up("fcntl: %s", strerror(errno));
	} else if (!strcmp(way, "busy")) {
		be_busy();
	}
	snprintf(began, sizeof(began), "%.6f", now());
	execl("/proc/self/exe", "execs", "after", name, number, began, NULL);
	give_up("exec: %s", strerror(errno));
}

static void after(const char *name, const char *number, const char *began)
{
	struct rmpool_info info = { .abi_version = 0 };
	struct rmpool_wait wait = { .min = 0 };
	double took = now() - strtod(began, NULL);
	char line[64];
	int fd;

	if (took > patience(15))
		printf("after too long: %.2f s\n", took);
	else if (status_value("VmPin"))
		printf("after, with %ld kB\n", status_value("VmPin"));
	else if (*number == '-')
		puts("after");
	else {
		fd = (int)argument(number, 3, 1000);
		if (ioctl(fd, RMPOOL_IOC_INFO, &info) ||
		    ioctl(fd, RMPOOL_IOC_WAIT, &wait) != -1 || errno != EPERM)
			printf("after, with a descriptor: %s\n", strerror(errno));
		else
			puts("after");
	}
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		publish(name, NEW);
}

static void peer(const char *name)
{
	struct test t = { .name = "a peer of who execs: right bytes, then ESTALE" };
	double end = now() + patience(PATIENCE * 2);
	uint8_t *at = memory();
	uint32_t segment, region;
	char why[128] = "";
	uint64_t good = 0;
	int ret = 0;

	if (rmpool_open(&pool, NULL, 0) ||
	    rmpool_register(pool, at, LENGTH, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &region, NULL) ||
	    rmpool_segment_open(pool, name, NULL, 60000, &segment, NULL))
		give_up("%s", rmpool_error());
	while (!ret && now() < end) {
		memset(at, 0, LENGTH);
		ret = rmpool_get(pool, segment, 0, at, LENGTH, 60000);
		if (ret)
			break;
		expect(&t, pattern_check(at, LENGTH, OLD, 0, "got", why, sizeof(why)), "%s", why);
		if (!good++) {
			puts("opened");
			fflush(stdout);
		}
	}
	printf("%llu gets went well\n", (unsigned long long)good);
	expect(&t, good && ret == -ESTALE, "at the end: %s", ret ? rmpool_error() : "still there");
	ret = rmpool_put(pool, segment, 0, at, LENGTH, 60000);
	expect(&t, ret == -ESTALE, "put: %d", ret);
	test_end(&t);

	rmpool_close(pool);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "host") && argc == 4)
		host(argv[2], argv[3]);
	else if (!strcmp(what, "after") && argc == 5)
		after(argv[2], argv[3], argv[4]);
	else if (!strcmp(what, "peer"))
		peer(argv[2]);
	else
		give_up("execs host NAME open|closed|busy | peer NODE/SEGMENT");
	return report_failed != 0;
}
