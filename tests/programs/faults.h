/* SPDX-License-Identifier: MIT */
/*
 * For test programs: failures of allocations below functions of rmpool, at this
 * node and at a peer.
 *
 * A fault is one of these:
 *	task	one in the calling thread, of whatever kind, copies from and to its
 *		memory among them: /proc/thread-self/fail-nth
 *	slab	one of a slab cache, in any context: debugfs, failslab
 *	page	one of pages, in any context: debugfs, fail_page_alloc
 *	slabs, pages	several in a row, so that second tries fail, too
 *
 * What happens below rmpool is told by its functions in the stack. For "slab" and
 * "page" the n-th allocation is meant, but the kernel knows no such thing. It has
 * "interval", and fails when the count of all allocations that it ever looked at
 * with an interval above 1 can be divided by it. A count is 0 after the boot. So
 * after a fault it is what "interval" says, and "interval" + n means the n-th one
 * from there: the kernel keeps it from program to program, and the suite has a boot
 * of its own. What was armed and did not come must come before the next is armed:
 * fault_drain() lets it hit somebody who does not mind.
 *
 * For "slabs" and "pages" it is "space": the fault comes after that many bytes, or
 * pages, were had.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/rmpool.h>
#include "report.h"

#define DEBUG	"/sys/kernel/debug/"
#define BURST	4	/* faults in a row: no second or third try succeeds */
#define SPACE	1000000000L

enum fault_kind { FAULT_TASK, FAULT_SLAB, FAULT_PAGE, FAULT_SLABS, FAULT_PAGES };

static const char * const fault_names[] = {
	"task", "slab", "page", "slabs", "pages",
};

#define NR_FAULTS	(sizeof(fault_names) / sizeof(fault_names[0]))

static inline bool fault_of_slab(enum fault_kind kind)
{
	return kind == FAULT_SLAB || kind == FAULT_SLABS;
}

static inline const char *fault_dir(enum fault_kind kind)
{
	return fault_of_slab(kind) ? DEBUG "failslab" : DEBUG "fail_page_alloc";
}

static inline bool fault_in_a_row(enum fault_kind kind)
{
	return kind == FAULT_SLABS || kind == FAULT_PAGES;
}

static inline void file_set(const char *dir, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		give_up("%s: %s", path, strerror(errno));
	close(fd);
}

static inline void file_set_number(const char *dir, const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	file_set(dir, name, text);
}

static inline long file_number(const char *dir, const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		give_up("%s: %s", path, strerror(errno));
	close(fd);
	return strtol(text, NULL, 0);
}

/* From the first function of the module to the end of the last one's page. */
static inline void module_text(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512];

	if (!f)
		give_up("no /proc/kallsyms");
	*start = ~0UL;
	*end = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long at = strtoul(line, NULL, 16);
		const char *type = strchr(line, ' ');

		if (!at || !type || !strchr("tT", type[1]) ||
		    !strstr(line, "[rmpool]"))
			continue;
		*start = at < *start ? at : *start;
		*end = at > *end ? at : *end;
	}
	fclose(f);
	if (!*end)
		give_up("no functions of rmpool in /proc/kallsyms");
	*end = (*end | 4095) + 1;
}

/* FAULT_VERBOSE=2 in the environment has the kernel say where each fault was: a
 * trace, which the harness takes for a complaint.
 */
static inline void faults_setup(void)
{
	static const char * const dirs[] = {
		DEBUG "failslab", DEBUG "fail_page_alloc", DEBUG "fail_usercopy",
	};
	const char *verbose = getenv("FAULT_VERBOSE");
	unsigned long start, end;
	size_t i;

	module_text(&start, &end);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char text[32];

		file_set(dirs[i], "times", "0");
		file_set(dirs[i], "probability", "100");
		file_set(dirs[i], "verbose", verbose ? verbose : "0");
		snprintf(text, sizeof(text), "0x%lx", start);
		file_set(dirs[i], "require-start", text);
		snprintf(text, sizeof(text), "0x%lx", end);
		file_set(dirs[i], "require-end", text);
	}
	file_set(DEBUG "failslab", "ignore-gfp-wait", "N");
	file_set(DEBUG "fail_page_alloc", "ignore-gfp-wait", "N");
	file_set(DEBUG "fail_page_alloc", "ignore-gfp-highmem", "N");
	file_set(DEBUG "fail_page_alloc", "min-order", "0");
}

static inline int fail_nth_file(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fd < 0)
		give_up("fail-nth: %s", strerror(errno));
	return fd;
}

static inline void fail_nth(long nth)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%ld", nth);

	if (pwrite(fail_nth_file(), text, (size_t)n, 0) != n)
		give_up("fail-nth: %s", strerror(errno));
}

/* What the kernel's count is now, as it was left in "interval"; see above. */
static inline long *fault_count(enum fault_kind kind)
{
	static long counts[2] = { -1, -1 };
	long *count = &counts[fault_of_slab(kind)];

	if (*count < 0)
		*count = file_number(fault_dir(kind), "interval");
	if (*count == 1)	/* that counts nothing */
		*count = 0;
	return count;
}

/* The @nth allocation from now on is to fail; with FAULT_SLABS and FAULT_PAGES some
 * after so many bytes or pages.
 */
static inline void fault_arm(enum fault_kind kind, long nth)
{
	const char *dir = fault_dir(kind);
	bool row = fault_in_a_row(kind);

	if (kind == FAULT_TASK) {
		fail_nth(nth);
		return;
	}
	file_set_number(dir, "interval", row ? 1 : *fault_count(kind) + nth);
	file_set_number(dir, "space", row ? nth : 0);
	file_set_number(dir, "times", row ? BURST : 1);
}

static inline void fault_disarm(enum fault_kind kind)
{
	const char *dir = fault_dir(kind);

	file_set_number(dir, "times", 0);
	file_set_number(dir, "interval", *fault_count(kind) ? *fault_count(kind) : 1);
}

/* Whether it came. If not, one of "slab" and "page" stays armed, since its count is
 * not known any more. @left: of the bytes or pages before it.
 */
static inline bool fault_came(enum fault_kind kind, long *left)
{
	const char *dir = fault_dir(kind);
	char text[32] = "";
	bool hit;

	*left = 0;
	if (kind == FAULT_TASK) {
		if (pread(fail_nth_file(), text, sizeof(text) - 1, 0) <= 0)
			give_up("fail-nth: %s", strerror(errno));
		fail_nth(0);
		return !strtol(text, NULL, 10);
	}
	if (!fault_in_a_row(kind)) {
		hit = !file_number(dir, "times");
		if (hit)
			*fault_count(kind) = file_number(dir, "interval");
		return hit;
	}
	hit = file_number(dir, "times") < BURST;
	*left = file_number(dir, "space");
	fault_disarm(kind);
	return hit;
}

/* Has what was armed and did not come hit a file with a ring, which takes slabs and
 * pages: at most @nth of them, unless the count is beyond. It is when somebody was
 * held up in the middle of being looked at, and counted when the fault before was
 * over. Then it comes at a count that is surely ahead.
 */
static inline void fault_drain(enum fault_kind kind, long nth)
{
	struct rmpool_ring_setup ring = { .entries = 64, .eventfd = -1 };
	long ahead = 100 * (nth + 1), tries = 0, left;

	while (!fault_came(kind, &left)) {
		int fd = open(RMPOOL_DEVICE_PATH, O_RDWR);

		if (fd >= 0) {
			/* It may fail: that is what it is for. */
			(void)!ioctl(fd, RMPOOL_IOC_RING_SETUP, &ring);
			close(fd);
		}
		if (++tries == nth + 1)
			file_set_number(fault_dir(kind), "interval",
					*fault_count(kind) + nth + ahead);
		if (tries > nth + 1 + ahead)
			give_up("%s: the fault does not come", fault_names[kind]);
	}
}

#endif /* FAULTS_H */
