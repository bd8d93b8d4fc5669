// SPDX-License-Identifier: GPL-2.0
/*
 * Suite of kmod/kind.c: which mappings are taken and which are refused, with which
 * reason and address, wherever in the range they are. The mappings of the process are
 * played.
 */
#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "suite.h"

static struct vm_area_struct *play_lookup(unsigned long addr);
static int play_lock(void);
static void play_unlock(void);
static bool play_signal(void);
static bool play_is_fsdax(struct vm_area_struct *vma);

/* As inode_to_bdi() and IS_DAX() would find out. */
struct played_file {
	struct file file;
	struct address_space mapping;
	bool writes_back;
	bool dax;
};

#define played(f)	container_of(f, struct played_file, file)

#define vma_lookup(mm, addr)		((void)(mm), play_lookup(addr))
#define mmap_read_lock_killable(mm)	((void)(mm), play_lock())
#define mmap_read_unlock(mm)		((void)(mm), play_unlock())
#define signal_pending(task)		((void)(task), play_signal())
#define vma_is_fsdax			play_is_fsdax
#define mapping_can_writeback(m)	\
	(container_of(m, struct played_file, mapping)->writes_back)
#include "kind.c"

#define BASE	0x7000000UL
#define MANY	1000

static struct {
	struct vm_area_struct *vmas;	/* MANY, one page each, from BASE on */
	struct played_file file;
	bool hole[MANY];
	u32 locks;
	int locked;
	u32 kill_at;		/* the lock is not taken any more */
	u32 signal_at;
	u32 looks;		/* since the lock was taken */
	u32 most;
} world;

static struct vm_area_struct *play_lookup(unsigned long addr)
{
	unsigned long i = (addr - BASE) >> PAGE_SHIFT;

	if (!world.locked)
		return NULL;
	world.looks++;
	world.most = max(world.most, world.looks);
	return addr >= BASE && i < MANY && !world.hole[i] ? &world.vmas[i] : NULL;
}

static int play_lock(void)
{
	if (++world.locks == world.kill_at)
		return -EINTR;
	world.locked++;
	world.looks = 0;
	return 0;
}

static void play_unlock(void)
{
	world.locked--;
}

static bool play_signal(void)
{
	return world.signal_at && world.locks + 1 >= world.signal_at;
}

static bool play_is_fsdax(struct vm_area_struct *vma)
{
	return vma->vm_file && played(vma->vm_file)->dax;
}

static const struct vm_operations_struct no_ops;

static vm_fault_t play_mkwrite(struct vm_fault *fault)
{
	return 0;
}

static const struct vm_operations_struct page_ops = { .page_mkwrite = play_mkwrite };
static const struct vm_operations_struct pfn_ops = { .pfn_mkwrite = play_mkwrite };

static void set_flags(struct vm_area_struct *vma, vm_flags_t flags)
{
	/* Where they are constant for all but functions that take locks. */
	*(vm_flags_t *)&vma->vm_flags = flags;
}

static int kind_init(struct kunit *test)
{
	u32 i;

	memset(&world, 0, sizeof(world));
	world.vmas = kunit_kcalloc(test, MANY, sizeof(*world.vmas), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world.vmas);
	world.file.file.f_mapping = &world.file.mapping;
	for (i = 0; i < MANY; i++) {
		world.vmas[i].vm_start = BASE + i * PAGE_SIZE;
		world.vmas[i].vm_end = BASE + (i + 1) * PAGE_SIZE;
	}
	suite_case(test);
	return 0;
}

static int check(unsigned long from, unsigned long length, bool write,
		 struct rmpool_error *error)
{
	memset(error, 0, sizeof(*error));
	world.locks = 0;
	world.most = 0;
	return rmp_kind_check(BASE + from, length, write, error);
}

/* Each kind, to be read and to be written. */
static void test_kinds(struct kunit *test)
{
	static const struct {
		const char *name;
		vm_flags_t flags;
		const struct vm_operations_struct *ops;
		bool file, writes_back, dax;
		u32 to_read, to_write;
	} kinds[] = {
		{ "anonymous", 0, NULL, false, false, false, 0, 0 },
		{ "shared anonymous", VM_SHARED, &no_ops, true, false, false, 0, 0 },
		{ "shared, of a driver", VM_SHARED, NULL, true, false, false, 0, 0 },
		{ "private file", 0, &page_ops, true, true, false, 0, 0 },
		{ "file opened to be read", VM_MAYSHARE, &page_ops, true, true, false, 0, 0 },
		{ "shared file", VM_SHARED, &page_ops, true, true, false,
		  0, RMPOOL_REASON_FILE_MAPPING },
		{ "shared file in memory", VM_SHARED, &page_ops, true, false, false,
		  0, RMPOOL_REASON_FILE_MAPPING },
		{ "pfn_mkwrite", VM_SHARED, &pfn_ops, true, false, false,
		  0, RMPOOL_REASON_FILE_MAPPING },
		{ "writes back untold", VM_SHARED, &no_ops, true, true, false,
		  0, RMPOOL_REASON_FILE_MAPPING },
		{ "without operations", VM_SHARED, NULL, true, true, false,
		  0, RMPOOL_REASON_FILE_MAPPING },
		{ "private, DAX", 0, &page_ops, true, true, true,
		  RMPOOL_REASON_FILE_MAPPING, RMPOOL_REASON_FILE_MAPPING },
		{ "VM_IO", VM_SHARED | VM_IO, &no_ops, true, false, false,
		  RMPOOL_REASON_DEVICE_MAPPING, RMPOOL_REASON_DEVICE_MAPPING },
		{ "VM_PFNMAP", VM_SHARED | VM_PFNMAP, &page_ops, true, true, false,
		  RMPOOL_REASON_DEVICE_MAPPING, RMPOOL_REASON_DEVICE_MAPPING },
		{ "no file, VM_PFNMAP", VM_PFNMAP, NULL, false, false, false,
		  RMPOOL_REASON_DEVICE_MAPPING, RMPOOL_REASON_DEVICE_MAPPING },
	};
	struct rmpool_error error;
	u32 i, write, reason;
	int ret;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		set_flags(&world.vmas[1], kinds[i].flags);
		world.vmas[1].vm_ops = kinds[i].ops;
		world.vmas[1].vm_file = kinds[i].file ? &world.file.file : NULL;
		world.file.writes_back = kinds[i].writes_back;
		world.file.dax = kinds[i].dax;
		for (write = 0; write < 2; write++) {
			ret = check(0, 3 * PAGE_SIZE, write, &error);
			reason = write ? kinds[i].to_write : kinds[i].to_read;
			KUNIT_EXPECT_EQ_MSG(test, ret, reason ? -EOPNOTSUPP : 0,
					    "%s", kinds[i].name);
			KUNIT_EXPECT_EQ_MSG(test, error.reason, reason, "%s",
					    kinds[i].name);
			KUNIT_EXPECT_EQ(test, error.need,
					reason ? BASE + PAGE_SIZE : 0);
			KUNIT_EXPECT_EQ(test, world.locked, 0);
		}
	}
}

/* The first mapping at fault is told, at any place; what is outside is not looked at. */
static void test_places(struct kunit *test)
{
	unsigned long from, length, at;
	struct rmpool_error error;
	u32 i, first, last, bad;
	bool hole;
	int ret;

	for (i = 0; i < 2000; i++) {
		bad = below(MANY);
		hole = below(2);
		world.hole[bad] = hole;
		if (!hole)
			set_flags(&world.vmas[bad], VM_IO);
		from = below(MANY * PAGE_SIZE - 1);
		length = 1 + below(MANY * PAGE_SIZE - from);
		first = from >> PAGE_SHIFT;
		last = (from + length - 1) >> PAGE_SHIFT;

		ret = check(from, length, false, &error);
		KUNIT_EXPECT_EQ(test, world.locked, 0);
		KUNIT_EXPECT_LE(test, world.most, RMP_KIND_STEP);
		if (bad < first || bad > last) {
			KUNIT_EXPECT_EQ(test, ret, 0);
			KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
		} else {
			at = max(from, bad * PAGE_SIZE);
			KUNIT_EXPECT_EQ(test, ret, hole ? -EFAULT : -EOPNOTSUPP);
			KUNIT_EXPECT_EQ(test, error.reason,
					hole ? RMPOOL_REASON_UNMAPPED :
					       RMPOOL_REASON_DEVICE_MAPPING);
			KUNIT_EXPECT_EQ(test, error.need, BASE + at);
		}
		world.hole[bad] = false;
		set_flags(&world.vmas[bad], 0);
	}
}

/* Many mappings are looked at in steps, and between them one can be interrupted. */
static void test_steps(struct kunit *test)
{
	struct rmpool_error error;

	KUNIT_EXPECT_EQ(test, check(0, MANY * PAGE_SIZE, true, &error), 0);
	KUNIT_EXPECT_EQ(test, world.locks, DIV_ROUND_UP(MANY, RMP_KIND_STEP));
	KUNIT_EXPECT_EQ(test, check(0, RMP_KIND_STEP * PAGE_SIZE, true, &error), 0);
	KUNIT_EXPECT_EQ(test, world.locks, 1);

	world.kill_at = 3;
	KUNIT_EXPECT_EQ(test, check(0, MANY * PAGE_SIZE, true, &error), -EINTR);
	KUNIT_EXPECT_EQ(test, world.locks, 3);
	KUNIT_EXPECT_EQ(test, world.locked, 0);
	world.kill_at = 0;
	world.signal_at = 2;
	KUNIT_EXPECT_EQ(test, check(0, MANY * PAGE_SIZE, true, &error), -EINTR);
	KUNIT_EXPECT_EQ(test, world.locks, 1);
	KUNIT_EXPECT_EQ(test, error.reason, RMPOOL_REASON_NONE);
}

static struct kunit_case kind_cases[] = {
	KUNIT_CASE(test_kinds),
	KUNIT_CASE(test_places),
	KUNIT_CASE(test_steps),
	{}
};

static struct kunit_suite kind_suite = {
	.name = "rmp_kind",
	.suite_init = suite_begin,
	.init = kind_init,
	.test_cases = kind_cases,
};

kunit_test_suites(&kind_suite);

MODULE_DESCRIPTION("KUnit suite of kinds of memory");
MODULE_LICENSE("GPL");
