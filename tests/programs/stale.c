// SPDX-License-Identifier: MIT
/*
 * stale: memory that its owner lets go of while it is registered, and memory to which
 * things happen that look alike. Host b publishes it; host a puts and gets all the time.
 *
 *	stale a|b
 *	stale many N	N regions of one page, all unmapped at once; on one host
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "barrier.h"
#include "clock.h"
#include "pattern.h"
#include "report.h"

#define PAGE	4096UL
#define HUGE	(2 * MIB)
#define SIZE	(128 * 1024UL)	/* of a region */
#define ALL	RMPOOL_ACCESS_ALL
#define FRESH	0xaa		/* what is there now where something was let go of */
#define PATIENCE 60		/* seconds */

/* What the kernel's headers of the C library do not know yet. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

enum {
	/* let go of */
	UNMAPPED,
	UNMAPPED_PART,		/* one page in the middle */
	MOVED,
	DISCARDED,		/* MADV_DONTNEED of private memory, one page */
	MAPPED_OVER,		/* a memfd */
	PUNCHED,		/* a memfd */
	CUT_OFF,		/* the half of a memfd */
	PUNCHED_BY_OTHER,	/* in /dev/shm, by another process */
	PUNCHED_HUGE,		/* hugetlbfs */
	/* kept; fork() would split the huge page, too */
	SPLIT,			/* one half of a huge page that is split */
	FORKED,
	PROTECTED,
	BALANCED,		/* NUMA balancing */
	COMPACTED,
	COMPACTED_SHM,
	COLLAPSED,		/* small pages that khugepaged would like to make one */
	DISCARDED_SHARED,	/* MADV_DONTNEED of a memfd */
	DISCARDED_HUGE,		/* of a shared huge page */
	PAGED_OUT,		/* MADV_PAGEOUT of a memfd */
	SOFT_DIRTY,
	PLACES,
	LOST = SPLIT,		/* how many are let go of */
};

static const char *const names[PLACES] = {
	"munmap", "munmap of one page", "mremap", "MADV_DONTNEED", "mmap over it",
	"hole in a memfd", "memfd cut off", "hole in /dev/shm by another process",
	"hole in hugetlbfs",
	"split of a huge page", "fork, the child writes", "mprotect", "NUMA balancing", "compaction",
	"compaction of shared memory", "collapse of small pages",
	"MADV_DONTNEED of shared memory", "MADV_DONTNEED of a shared huge page", "MADV_PAGEOUT of shared memory", "soft-dirty",
};

#define PLACE(which)	((uint64_t)(which) * 16 * MIB)
#define CONTROL		PLACE(PLACES)

/* A page of b's that tells both how far the other is. */
struct control {
	uint64_t phase;		/* b's, got by a */
	uint64_t round;		/* a's, put by it when all of a round was put */
};

static struct rmpool *pool;

static uint64_t seed_of(uint64_t round, uint32_t which)
{
	return round * 100 + which;
}

static uint8_t *map(size_t size, int flags, int fd)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	return at;
}

static uint8_t *anonymous(size_t size)
{
	return map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Aligned as a huge page is. */
static uint8_t *aligned(size_t size)
{
	uint8_t *at = anonymous(size + HUGE);

	return at + (HUGE - (uintptr_t)at % HUGE) % HUGE;
}

static uint32_t add(void *addr, size_t length, uint32_t segment, uint64_t offset)
{
	uint32_t region;

	if (rmpool_register(pool, addr, length, ALL, segment, offset, &region, NULL))
		give_up("%s", rmpool_error());
	return region;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Whether what was let go of is as it was written anew. */
static void all_fresh(struct test *t, const uint8_t *at, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if (!expect(t, at[i] == FRESH, "byte %llu is 0x%02x",
			    (unsigned long long)i, at[i]))
			return;
}

/* ------------------------------------------------------------------- the owner */

static struct {
	uint32_t segment;
	uint8_t *at[PLACES];
	int fd[PLACES];			/* of those that are of a file */
	uint32_t region[PLACES];
	uint8_t *fresh[LOST];		/* memory that is new where it was let go of */
	uint64_t fresh_length[LOST];
	uint8_t *moved;
	volatile struct control *control;
	uint8_t *huge;			/* the two of which PUNCHED_HUGE has an end each */
	bool have_huge;
	bool have_thp;
} b;

static int file_of(uint32_t which)
{
	char name[] = "/dev/shm/stale.XXXXXX";
	off_t size = SIZE;
	int fd;

	if (which == PUNCHED_BY_OTHER) {
		fd = mkstemp(name);
		unlink(name);
	} else if (which == PUNCHED_HUGE || which == DISCARDED_HUGE) {
		size = which == PUNCHED_HUGE ? 2 * HUGE : HUGE;
		fd = memfd_create("stale", MFD_HUGETLB);
	} else {
		fd = memfd_create("stale", 0);
	}
	if (fd < 0 || ftruncate(fd, size))
		give_up("%s: %s", names[which], strerror(errno));
	return fd;
}

static void make(uint32_t which)
{
	long before;

	b.fd[which] = -1;
	switch (which) {
	case MAPPED_OVER:
	case PUNCHED:
	case CUT_OFF:
	case PUNCHED_BY_OTHER:
	case COMPACTED_SHM:
	case DISCARDED_SHARED:
	case PAGED_OUT:
		b.fd[which] = file_of(which);
		b.at[which] = map(SIZE, MAP_SHARED, b.fd[which]);
		break;
	case PUNCHED_HUGE:
		if (b.have_huge) {
			b.fd[which] = file_of(which);
			b.huge = map(2 * HUGE, MAP_SHARED, b.fd[which]);
		} else {
			b.huge = aligned(2 * HUGE);
		}
		b.at[which] = b.huge + HUGE - SIZE / 2;
		break;
	case DISCARDED_HUGE:
		if (b.have_huge)
			b.fd[which] = file_of(which);
		b.at[which] = b.have_huge ? map(HUGE, MAP_SHARED, b.fd[which]) : anonymous(SIZE);
		break;
	case COLLAPSED:
		b.at[which] = aligned(HUGE);
		madvise(b.at[which], HUGE, MADV_NOHUGEPAGE);
		memset(b.at[which], 1, HUGE);
		break;
	case SPLIT:
		b.at[which] = aligned(HUGE);
		madvise(b.at[which], HUGE, MADV_HUGEPAGE);
		before = vmstat("thp_fault_alloc");
		memset(b.at[which], 1, HUGE);
		b.have_thp = before >= 0 && vmstat("thp_fault_alloc") > before;
		break;
	default:
		b.at[which] = anonymous(SIZE);
		break;
	}
	pattern_fill(b.at[which], SIZE, seed_of(0, which), 0);
	b.region[which] = add(b.at[which], SIZE, b.segment, PLACE(which));
}

/* Waits until the other has put all of a round that began later than now. */
static void let_rounds_pass(void)
{
	uint64_t from = b.control->round;
	double end = now() + patience(PATIENCE * 5);

	while (b.control->round < from + 2) {
		if (now() > end)
			give_up("the other host does nothing");
		pause_ms(1);
	}
}

static void *touch(void *arg)
{
	const volatile uint8_t *at = b.at[BALANCED];
	const volatile bool *stop = arg;
	unsigned int sum = 0;

	while (!*stop) {
		for (uint64_t i = 0; i < SIZE; i += PAGE)
			sum += at[i];
		pause_ms(1);
	}
	return (void *)(uintptr_t)(sum & 1);
}

static void fork_and_write(struct test *t)
{
	int status;
	pid_t child = fork();

	if (!child) {
		memset(b.at[FORKED], 0x77, SIZE);
		_exit(b.at[FORKED][SIZE / 2] == 0x77 ? 0 : 1);
	}
	expect(t, waitpid(child, &status, 0) == child && !status, "the child failed");
}

static void protect(struct test *t)
{
	static const int rights[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	for (int i = 0; i < 3; i++) {
		expect(t, !mprotect(b.at[PROTECTED], SIZE, rights[i]), "%s",
		       strerror(errno));
		let_rounds_pass();
	}
}

/* Two threads: what one alone uses is left alone where it is. */
static bool balance(struct test *t)
{
	long before = vmstat("numa_pte_updates");
	volatile bool stop = false;
	double end = now() + patience(PATIENCE * 2);
	pthread_t thread;

	if (before < 0 || !write_text("/proc/sys/kernel/numa_balancing", "1"))
		return false;
	if (pthread_create(&thread, NULL, touch, (void *)&stop))
		give_up("no thread");
	while (vmstat("numa_pte_updates") < before + 200 && now() < end) {
		for (uint64_t i = 0; i < SIZE; i += PAGE)
			(void)*(volatile uint8_t *)&b.at[BALANCED][i];
	}
	stop = true;
	pthread_join(thread, NULL);
	write_text("/proc/sys/kernel/numa_balancing", "0");
	expect(t, vmstat("numa_pte_updates") >= before + 200, "%ld entries marked",
	       vmstat("numa_pte_updates") - before);
	return true;
}

static void compact(struct test *t)
{
	long before = vmstat("compact_migrate_scanned");

	expect(t, write_text("/proc/sys/vm/compact_memory", "1"), "%s", strerror(errno));
	expect(t, vmstat("compact_migrate_scanned") > before, "nothing was looked at");
}

/* At once, and by khugepaged. Neither can: the pages are pinned. */
static bool collapse(struct test *t)
{
	static const char dir[] = "/sys/kernel/mm/transparent_hugepage/khugepaged/";
	char path[128], text[32] = "";
	long from = -1, full = -1;
	double end = now() + patience(PATIENCE * 2);
	FILE *f;

	snprintf(path, sizeof(path), "%sscan_sleep_millisecs", dir);
	if (!write_text(path, "1"))
		return false;
	expect(t, !madvise(b.at[COLLAPSED], HUGE, MADV_HUGEPAGE), "%s", strerror(errno));
	/* That somebody holds the pages is what it stumbles over, and nothing before that. */
	expect(t, madvise(b.at[COLLAPSED], HUGE, MADV_COLLAPSE) && errno == EAGAIN,
	       "MADV_COLLAPSE did not come as far as the pins: %s", strerror(errno));
	snprintf(path, sizeof(path), "%sfull_scans", dir);
	while (now() < end && (from < 0 || full < from + 3)) {
		f = fopen(path, "r");
		if (f && fgets(text, sizeof(text), f))
			full = strtol(text, NULL, 10);
		if (f)
			fclose(f);
		if (from < 0)
			from = full;
		pause_ms(5);
	}
	expect(t, from >= 0 && full >= from + 3, "khugepaged does not come round");
	snprintf(path, sizeof(path), "%sscan_sleep_millisecs", dir);
	write_text(path, "10000");
	return true;
}

/* The other half, which is not registered, goes: the entries of both are cleared. */
static void split(struct test *t)
{
	long before = vmstat("thp_split_pmd");

	expect(t, !madvise(b.at[SPLIT] + HUGE / 2, PAGE, MADV_DONTNEED), "%s",
	       strerror(errno));
	expect(t, vmstat("thp_split_pmd") > before, "it was none");
	expect(t, !munmap(b.at[SPLIT] + HUGE / 2 + PAGE, HUGE / 2 - PAGE), "%s",
	       strerror(errno));
}

/* What happens to memory that is kept. Returns why it cannot, or NULL. */
static const char *happen(uint32_t which, struct test *t)
{
	switch (which) {
	case FORKED:
		fork_and_write(t);
		break;
	case PROTECTED:
		protect(t);
		break;
	case BALANCED:
		return balance(t) ? NULL : "this kernel has none";
	case COMPACTED:
	case COMPACTED_SHM:
		compact(t);
		break;
	case COLLAPSED:
		return collapse(t) ? NULL : "this kernel has no khugepaged";
	case SPLIT:
		if (!b.have_thp)
			return "there was no huge page to be had";
		split(t);
		break;
	case DISCARDED_SHARED:
		expect(t, !madvise(b.at[which], SIZE, MADV_DONTNEED), "%s", strerror(errno));
		break;
	case DISCARDED_HUGE:
		if (!b.have_huge)
			return "no huge pages";
		expect(t, !madvise(b.at[which], HUGE, MADV_DONTNEED), "%s", strerror(errno));
		break;
	case PAGED_OUT:
		expect(t, !madvise(b.at[which], SIZE, MADV_PAGEOUT), "%s", strerror(errno));
		break;
	case SOFT_DIRTY:
		expect(t, write_text("/proc/self/clear_refs", "4"), "%s", strerror(errno));
		break;
	}
	return NULL;
}

/* New memory in place of what was let go of. */
static void map_fresh(uint32_t which, uint8_t *at, uint64_t length)
{
	/* cppcheck-suppress leakReturnValNotUsed ; it is known by its address */
	if (mmap(at, length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		give_up("%s: mmap: %s", names[which], strerror(errno));
}

static void punch(uint32_t which, uint64_t from, uint64_t length)
{
	if (fallocate(b.fd[which], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
		      (off_t)length))
		give_up("%s: %s", names[which], strerror(errno));
}

static void let_go(uint32_t which)
{
	uint8_t *at = b.at[which], *part = at + SIZE / 2;
	uint64_t length = PAGE;
	int status = 0;
	pid_t child;

	switch (which) {
	case UNMAPPED:
		part = at;
		length = SIZE;
		munmap(at, SIZE);
		map_fresh(which, at, SIZE);
		break;
	case UNMAPPED_PART:
		munmap(part, PAGE);
		map_fresh(which, part, PAGE);
		break;
	case MOVED:
		part = at;
		length = SIZE;
		b.moved = anonymous(SIZE);
		if (mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, b.moved) != b.moved)
			give_up("mremap: %s", strerror(errno));
		map_fresh(which, at, SIZE);
		break;
	case DISCARDED:
		if (madvise(part, PAGE, MADV_DONTNEED))
			give_up("MADV_DONTNEED: %s", strerror(errno));
		break;
	case MAPPED_OVER:
		part = at;
		length = SIZE;
		map_fresh(which, at, SIZE);
		break;
	case PUNCHED:
		punch(which, SIZE / 2, PAGE);
		break;
	case CUT_OFF:
		length = SIZE / 2;
		if (ftruncate(b.fd[which], SIZE / 2) || ftruncate(b.fd[which], SIZE))
			give_up("ftruncate: %s", strerror(errno));
		break;
	case PUNCHED_BY_OTHER:
		child = fork();
		if (!child) {
			punch(which, SIZE / 2, PAGE);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			give_up("%s failed", names[which]);
		break;
	case PUNCHED_HUGE:
		length = SIZE / 2;
		if (b.have_huge) {
			punch(which, HUGE, HUGE);
		} else {
			munmap(part, length);
			map_fresh(which, part, length);
		}
		break;
	}
	memset(part, FRESH, length);
	b.fresh[which] = part;
	b.fresh_length[which] = length;
}

static int note_state(const struct rmpool_nl_region *region, void *arg)
{
	uint32_t *states = arg;

	if (region->segment_id && region->offset < CONTROL && !(region->offset % PLACE(1)))
		states[region->offset / PLACE(1)] = region->state;
	return 0;
}

static void expect_states(struct test *t, uint32_t lost)
{
	uint32_t states[PLACES], suspect, i;
	double end = now() + patience(PATIENCE);
	struct rmpool_nl *nl;

	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	do {
		memset(states, 0xff, sizeof(states));
		if (rmpool_nl_regions(nl, note_state, states))
			give_up("%s", rmpool_error());
		for (i = 0, suspect = 0; i < PLACES; i++)
			suspect += states[i] == RMPOOL_REGION_STATE_SUSPECT;
	} while (suspect && now() < end);
	rmpool_nl_close(nl);
	for (i = 0; i < PLACES; i++)
		expect(t, states[i] == (i < lost ? RMPOOL_REGION_STATE_STALE :
						   RMPOOL_REGION_STATE_ACTIVE),
		       "%s: %s", names[i], rmpool_region_state_name(states[i]));
}

/* As the source and as the target of its own requests. */
static void owner_uses_stale(uint32_t segment)
{
	struct test t = { .name = "the owner's own requests: ESTALE" };
	struct test again = { .name = "registered anew at the same address: moves bytes" };
	char why[128] = "";
	uint32_t i, region;
	int ret;

	for (i = 0; i < LOST; i++) {
		ret = rmpool_put(pool, segment, 0, b.at[i], SIZE, 60000);
		expect(&t, ret == -ESTALE, "%s: put: %d", names[i], ret);
		ret = rmpool_get(pool, segment, 0, b.at[i], SIZE, 60000);
		expect(&t, ret == -ESTALE, "%s: get: %d", names[i], ret);
	}
	test_end(&t);

	region = add(b.at[UNMAPPED], SIZE, 0, 0);
	ret = rmpool_get(pool, segment, 0, b.at[UNMAPPED], SIZE, 60000);
	expect(&again, !ret, "%s", rmpool_error());
	expect(&again, pattern_check(b.at[UNMAPPED], SIZE, 1, 0, "there", why, sizeof(why)),
	       "%s", why);
	rmpool_unregister(pool, region);
	test_end(&again);
}

#define GETS	64
#define PIECE	(32 * 1024UL)
#define ROOM	(GETS * PIECE)

enum { BY_MUNMAP, BY_MREMAP, BY_MADVISE, BY_HOLE, WAYS };

static const char *const ways[WAYS] = {
	"munmap", "mremap", "MADV_DONTNEED", "hole in a memfd",
};

/* All of it; what is there then is new. */
static void take_away(uint32_t way, uint8_t *at, int fd)
{
	uint8_t *moved;
	bool gone = true;

	switch (way) {
	case BY_MUNMAP:
		gone = !munmap(at, ROOM);
		break;
	case BY_MREMAP:
		moved = anonymous(ROOM);
		gone = mremap(at, ROOM, ROOM, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved;
		munmap(moved, ROOM);
		break;
	case BY_MADVISE:
		gone = !madvise(at, ROOM, MADV_DONTNEED);
		break;
	case BY_HOLE:
		gone = !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				  (off_t)ROOM);
		break;
	}
	if (!gone)
		give_up("%s: %s", ways[way], strerror(errno));
	if (way == BY_MUNMAP || way == BY_MREMAP)
		map_fresh(UNMAPPED, at, ROOM);
	memset(at, FRESH, ROOM);
}

/* Memory goes while gets into it are under way. */
static void gets_in_flight(uint32_t segment)
{
	struct test t = { .name = "let go of in the middle of gets: each ends, what is new stays" };
	uint32_t region, waiting = 0, done, stale[WAYS] = { 0 }, way, i, round = 0;
	double end = now() + patience(PATIENCE);
	struct rmpool_completion c[GETS];
	struct rmpool_request req;
	uint8_t *at;
	int n, ret, fd;

	if (rmpool_ring(pool, 2 * GETS, -1))
		give_up("%s", rmpool_error());
	/* This thread may be late, when all have ended. It has to be early once for each of the two
	 * ways; the others are known as such only when the pages were looked at.
	 */
	while (!t.failed && (round < 2 * WAYS ||
			     (now() < end && !(stale[BY_MUNMAP] && stale[BY_MREMAP])))) {
		way = round % WAYS;
		fd = memfd_create("gets", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)ROOM))
			give_up("memfd: %s", strerror(errno));
		at = way == BY_HOLE ? map(ROOM, MAP_SHARED, fd) : anonymous(ROOM);
		memset(at, 1, ROOM);
		region = add(at, ROOM, 0, 0);
		for (i = 0; i < GETS; i++) {
			rmpool_prepare_get(&req, segment, 0, at + i * PIECE, PIECE, i);
			ret = rmpool_submit(pool, &req, 1);
			if (ret != 1)
				give_up("submit: %s", rmpool_error());
			waiting++;
		}
		rmpool_wait(pool, 1 + 5 * (round % (2 * WAYS)), 60000);
		take_away(way, at, fd);
		done = 0;
		while (waiting) {
			ret = rmpool_wait(pool, 1, 120000);
			if (!expect(&t, ret >= 0, "%u do not end", waiting))
				break;
			n = rmpool_poll(pool, c, GETS);
			for (i = 0; n > 0 && i < (uint32_t)n; i++) {
				waiting--;
				done += !c[i].status;
				stale[way] += c[i].status == -ESTALE;
				expect(&t, !c[i].status || c[i].status == -ESTALE,
				       "%s: status %d", ways[way], c[i].status);
			}
		}
		printf("%s: %u gets were done, %u more came too late\n", ways[way], done,
		       GETS - done - waiting);
		all_fresh(&t, at, ROOM);
		ret = rmpool_get(pool, segment, 0, at, PIECE, 60000);
		expect(&t, ret == -ESTALE, "%s: afterwards: %d", ways[way], ret);
		rmpool_unregister(pool, region);
		munmap(at, ROOM);
		close(fd);
		round++;
	}
	for (way = BY_MUNMAP; way <= BY_MREMAP; way++)
		expect(&t, stale[way], "%s: nothing was under way any more", ways[way]);
	test_end(&t);
}

static void owner(void)
{
	struct test states = { .name = "kept regions are active" };
	struct test gone = { .name = "regions that were let go of are stale, others not" };
	struct test pinned = { .name = "stale regions stay pinned until unregistered" };
	const char *skip[PLACES] = { NULL };
	struct test kept[PLACES];
	char why[128] = "";
	uint32_t buffer, i;
	void *huge;
	long pins;

	huge = mmap(NULL, 3 * HUGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	b.have_huge = huge != MAP_FAILED;
	if (b.have_huge)
		munmap(huge, 3 * HUGE);
	if (rmpool_publish(pool, "stale", &b.segment))
		give_up("%s", rmpool_error());
	b.control = (struct control *)anonymous(PAGE);
	add((void *)b.control, PAGE, b.segment, CONTROL);
	for (i = 0; i < PLACES; i++)
		make(i);
	barrier("published");

	for (i = LOST; i < PLACES; i++) {
		kept[i] = (struct test){ .name = names[i] };
		let_rounds_pass();
		skip[i] = happen(i, &kept[i]);
	}
	let_rounds_pass();
	b.control->phase = 1;
	barrier("kept");
	for (i = LOST; i < PLACES; i++) {
		expect(&kept[i], pattern_check(b.at[i], SIZE, seed_of(b.control->round, i),
					       0, "there", why, sizeof(why)), "%s", why);
		if (skip[i] && !kept[i].failed)
			report_skip(names[i], skip[i]);
		else
			test_end(&kept[i]);
	}
	expect_states(&states, 0);
	test_end(&states);

	pins = status_value("VmPin");
	barrier("going");
	for (i = 0; i < LOST; i++) {
		let_rounds_pass();
		let_go(i);
	}
	b.control->phase = 2;
	barrier("lost");
	expect_states(&gone, LOST);
	test_end(&gone);
	for (i = 0; i < LOST; i++) {
		struct test t = { .name = names[i] };

		all_fresh(&t, b.fresh[i], b.fresh_length[i]);
		if (i == PUNCHED_HUGE && !b.have_huge)
			report_skip(names[i], "no huge pages");
		else
			test_end(&t);
	}
	expect(&pinned, status_value("VmPin") == pins, "VmPin is %ld, not %ld kB",
	       status_value("VmPin"), pins);

	if (rmpool_segment_open(pool, "a", "buffer", 60000, &buffer, NULL))
		give_up("%s", rmpool_error());
	owner_uses_stale(buffer);
	gets_in_flight(buffer);
	for (i = 0; i < LOST; i++) {
		expect(&pinned, !rmpool_unregister(pool, b.region[i]), "%s", rmpool_error());
		pins -= (long)(SIZE / 1024);
	}
	expect(&pinned, status_value("VmPin") == pins, "afterwards VmPin is %ld, not %ld kB",
	       status_value("VmPin"), pins);
	test_end(&pinned);
	barrier("unregistered");
	barrier("done");
}

/* ------------------------------------------------------------------- the other */

static struct {
	uint32_t segment;
	uint8_t *out, *in;	/* registered */
	struct control *control;
	uint64_t round;
} a;

/* Puts to a place and gets it back; the first status that is not 0. */
static int exchange(uint32_t which, struct test *t)
{
	int ret;

	pattern_fill(a.out, SIZE, seed_of(a.round, which), 0);
	ret = rmpool_put(pool, a.segment, PLACE(which), a.out, SIZE, 120000);
	if (ret)
		return ret;
	memset(a.in, 0, SIZE);
	ret = rmpool_get(pool, a.segment, PLACE(which), a.in, SIZE, 120000);
	if (!ret)
		expect(t, !memcmp(a.in, a.out, SIZE), "%s: other bytes came back",
		       names[which]);
	return ret;
}

/* A round is over; which phase the owner is in. */
static uint64_t end_round(void)
{
	a.control->round = a.round;
	if (rmpool_put(pool, a.segment, CONTROL + offsetof(struct control, round),
		       &a.control->round, sizeof(a.control->round), 120000) ||
	    rmpool_get(pool, a.segment, CONTROL, &a.control->phase, sizeof(a.control->phase),
		       120000))
		give_up("%s", rmpool_error());
	return a.control->phase;
}

static void exchange_kept(struct test *t)
{
	uint32_t i;
	int ret;

	a.round++;
	for (i = LOST; i < PLACES; i++) {
		ret = exchange(i, t);
		expect(t, !ret, "%s: %s", names[i], rmpool_error());
	}
}

static void other(void)
{
	struct test kept = { .name = "puts and gets of what is kept go on" };
	struct test lost = { .name = "what is let go of gives ESTALE, soon and for good" };
	struct test beside = { .name = "other regions are as before" };
	struct test listed = { .name = "the list of regions says which are stale" };
	struct test gone = { .name = "unregistered: ENXIO" };
	bool stale[LOST] = { false };
	struct rmpool_region_desc *desc;
	uint32_t mine, nr = 0, i, left;
	double end = 0;
	int ret;

	if (rmpool_publish(pool, "buffer", &mine))
		give_up("%s", rmpool_error());
	a.out = anonymous(SIZE);
	a.in = anonymous(SIZE);
	a.control = (struct control *)anonymous(PAGE);
	pattern_fill(a.out, SIZE, 1, 0);
	add(a.out, SIZE, 0, 0);
	add(a.in, SIZE, 0, 0);
	add(a.control, PAGE, 0, 0);
	barrier("published");
	if (rmpool_segment_open(pool, "b", "stale", 60000, &a.segment, NULL))
		give_up("%s", rmpool_error());

	do
		exchange_kept(&kept);
	while (end_round() < 1);
	test_end(&kept);
	barrier("kept");

	barrier("going");
	do {
		a.round++;
		for (i = 0, left = 0; i < LOST; i++) {
			ret = exchange(i, &lost);
			expect(&lost, ret == -ESTALE || (!ret && !stale[i]), "%s: %d",
			       names[i], ret);
			stale[i] |= ret == -ESTALE;
			left += !stale[i];
		}
		if (end_round() == 2 && end == 0)
			end = now() + patience(PATIENCE);
	} while ((left || end == 0) && (end == 0 || now() < end));
	for (i = 0; i < LOST; i++) {
		expect(&lost, stale[i], "%s: still there", names[i]);
		ret = rmpool_get(pool, a.segment, PLACE(i), a.in, PAGE, 60000);
		expect(&lost, ret == -ESTALE, "%s: get: %d", names[i], ret);
		ret = rmpool_put(pool, a.segment, PLACE(i) + SIZE / 2, a.in, 1, 60000);
		expect(&lost, ret == -ESTALE, "%s: put: %d", names[i], ret);
	}
	test_end(&lost);
	exchange_kept(&beside);
	test_end(&beside);

	if (rmpool_segment_regions(pool, a.segment, &desc, &nr, NULL))
		give_up("%s", rmpool_error());
	expect(&listed, nr == PLACES + 1, "%u regions", nr);
	for (i = 0; i < nr; i++)
		expect(&listed, desc[i].flags == (i < LOST ? RMPOOL_REGION_DESC_STALE : 0U),
		       "region %u: 0x%x", i, desc[i].flags);
	free(desc);
	test_end(&listed);

	pattern_fill(a.out, SIZE, 1, 0);
	add(a.out, SIZE, mine, 0);
	barrier("lost");
	barrier("unregistered");
	for (i = 0; i < LOST; i++) {
		ret = rmpool_get(pool, a.segment, PLACE(i), a.in, PAGE, 60000);
		expect(&gone, ret == -ENXIO, "%s: %d", names[i], ret);
	}
	test_end(&gone);
	barrier("done");
}

/* -------------------------------------------------------------------- very many */

static int count_stale(const struct rmpool_nl_region *region, void *arg)
{
	*(uint32_t *)arg += region->state == RMPOOL_REGION_STATE_STALE;
	return 0;
}

static void many(uint32_t nr)
{
	struct test flat = { .name = "many regions: the last are registered like the first" };
	struct test all = { .name = "many regions: unmapped at once, all are stale" };
	double first = 0, last = 0, began, end;
	uint32_t *region = calloc(nr, sizeof(*region)), i, stale;
	uint8_t *at = anonymous(nr * PAGE);
	struct rmpool_nl *nl;

	memset(at, 1, nr * PAGE);
	for (i = 0; i < nr; i++) {
		began = now();
		region[i] = add(at + i * PAGE, PAGE, 0, 0);
		if (i < nr / 10)
			first += now() - began;
		if (i >= nr - nr / 10)
			last += now() - began;
	}
	printf("%u regions: the first tenth took %.3f s, the last %.3f s\n", nr, first, last);
	expect(&flat, last < 4 * first + 1, "%.3f and %.3f s", first, last);
	test_end(&flat);

	munmap(at, nr * PAGE);
	if (rmpool_nl_open(&nl))
		give_up("%s", rmpool_error());
	end = now() + patience(PATIENCE * 2);
	do {
		stale = 0;
		if (rmpool_nl_regions(nl, count_stale, &stale))
			give_up("%s", rmpool_error());
	} while (stale < nr && now() < end);
	expect(&all, stale == nr, "%u of %u", stale, nr);
	rmpool_nl_close(nl);
	for (i = 0; i < nr; i++)
		expect(&all, !rmpool_unregister(pool, region[i]), "%s", rmpool_error());
	expect(&all, !status_value("VmPin"), "VmPin is %ld kB", status_value("VmPin"));
	test_end(&all);
	free(region);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		give_up("stale a|b, or stale many N");
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (!strcmp(argv[1], "many") && argc == 3)
		many((uint32_t)argument(argv[2], 10, 1000000));
	else if (argv[1][0] == 'b')
		owner();
	else
		other();
	rmpool_close(pool);
	return report_failed != 0;
}
