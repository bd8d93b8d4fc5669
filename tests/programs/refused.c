// SPDX-License-Identifier: MIT
/*
 * refused: registers what cannot be registered, in the same ways on all kernels, and
 * sees that nothing is left of it.
 *
 *	refused
 *
 * It finds file systems in ext4 and ram (ramfs) of its current directory; what is not
 * mounted is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "kinds.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define READ	RMPOOL_ACCESS_REMOTE_READ
#define ALL	RMPOOL_ACCESS_ALL

static struct rmpool *pool;
static long at_rest;		/* pages that are pinned when nothing is registered here */

static uint32_t add(void *addr, size_t length, uint32_t access)
{
	uint32_t region;

	if (rmpool_register(pool, addr, length, access, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	return region;
}

/* Refused as it should be, and nothing stays of it. */
static void refused(struct test *t, void *at, size_t length, uint32_t access, int err,
		    uint32_t reason, const void *where)
{
	const struct rmpool_error *detail;
	double end = now() + patience(20);
	uint32_t region = 77;
	int ret;

	ret = rmpool_register(pool, at, length, access, 0, 0, &region, NULL);
	if (!ret)
		rmpool_unregister(pool, region);
	detail = rmpool_error_detail();
	if (!expect(t, ret == err && detail->reason == reason &&
		    detail->need == (uintptr_t)where, "access %u: %d, %s, 0x%llx, not 0x%llx",
		    access, ret, rmpool_reason_name(detail->reason),
		    (unsigned long long)detail->need, (unsigned long long)(uintptr_t)where))
		return;
	expect(t, region == 77, "handle %u", region);
	while (pinned_pages() != at_rest && now() < end)
		pause_ms(1);
	expect(t, pinned_pages() == at_rest && !status_value("VmPin"),
	       "%ld pages pinned, %ld before; VmPin is %ld kB", pinned_pages(), at_rest,
	       status_value("VmPin"));
}

/* A range of small pages with another mapping in the middle, which is told as such. */
static void refused_within(struct test *t, int prot, int fd, off_t pos, uint32_t access,
			   uint32_t reason)
{
	const size_t nr = 600, which = 300;
	uint8_t *at = anonymous(nr * PAGE), *in;

	memset(at, 1, nr * PAGE);
	in = mmap(at + which * PAGE, PAGE, prot, MAP_SHARED | MAP_FIXED, fd, pos);
	if (in != at + which * PAGE)
		give_up("mmap: %s", strerror(errno));
	refused(t, at + 9, (nr - 1) * PAGE, access, -EOPNOTSUPP, reason, in);
	/* one byte of it, and none */
	refused(t, at + 9, which * PAGE - 8, access, -EOPNOTSUPP, reason, in);
	rmpool_unregister(pool, add(at + 9, which * PAGE - 9, access));
	munmap(at, nr * PAGE);
}

static void good_again(struct test *t)
{
	uint8_t *at = anonymous(PAGE);

	rmpool_unregister(pool, add(at + 1, PAGE - 1, ALL));
	munmap(at, PAGE);
	test_end(t);
}

/* What is not there is skipped. */
static bool there(struct test *t, const void *what, const char *why)
{
	if (!what)
		report_skip(t->name, why);
	return what;
}

static uint8_t *vvar(void)
{
	unsigned long at = 0;
	char line[256];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && !at && fgets(line, sizeof(line), f))
		if (strstr(line, "[vvar]"))
			at = strtoul(line, NULL, 16);
	if (f)
		fclose(f);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the file has numbers */
	return (uint8_t *)at;
}

/* Memory of some PCI device that can be mapped; those that a driver has may not. */
static uint8_t *pci_memory(void)
{
	uint8_t *at = NULL;
	glob_t found;
	struct stat s;

	if (glob("/sys/bus/pci/devices/*/resource[0-5]", 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !at; i++) {
		int fd = open(found.gl_pathv[i], O_RDWR);

		if (fd < 0)
			continue;
		if (!fstat(fd, &s) && s.st_size >= (off_t)PAGE)
			at = try_map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		close(fd);
	}
	globfree(&found);
	return at;
}

static void refuse_devices(void)
{
	struct test kernel = { .name = "device mapping: the kernel's clock: refused" };
	struct test rom = { .name = "device mapping: /dev/mem: refused" };
	struct test pci = { .name = "device mapping: a PCI device: refused" };
	const off_t bios = 0xf0000;
	const uint32_t why = RMPOOL_REASON_DEVICE_MAPPING;
	int fd = open("/dev/mem", O_RDONLY);
	uint8_t *at = vvar();

	if (there(&kernel, at, "this kernel shows none")) {
		refused(&kernel, at + 5, 1, 0, -EOPNOTSUPP, why, at + 5);
		refused(&kernel, at, PAGE, READ, -EOPNOTSUPP, why, at);
		refused(&kernel, at, PAGE, ALL, -EOPNOTSUPP, why, at);
		expect(&kernel, strstr(rmpool_error(), "is of a device") != NULL, "the text is: %s",
		       rmpool_error());
		good_again(&kernel);
	}
	at = NULL;
	if (fd >= 0) {
		at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, bios);
		at = at == MAP_FAILED ? NULL : at;
	}
	if (there(&rom, at, "the ROM cannot be mapped")) {
		refused(&rom, at, PAGE, 0, -EOPNOTSUPP, why, at);
		refused_within(&rom, PROT_READ, fd, bios, 0, why);
		refused_within(&rom, PROT_READ, fd, bios, ALL, why);
		good_again(&rom);
	}
	if (fd >= 0)
		close(fd);
	at = pci_memory();
	if (there(&pci, at, "none can be mapped")) {
		refused(&pci, at + 1, PAGE - 1, 0, -EOPNOTSUPP, why, at + 1);
		refused(&pci, at, PAGE, ALL, -EOPNOTSUPP, why, at);
		good_again(&pci);
	}
}

static void refuse_file(const char *name, const char *dir, unsigned long magic)
{
	static const uint32_t writes[] = {
		RMPOOL_ACCESS_LOCAL_WRITE, RMPOOL_ACCESS_REMOTE_WRITE, ALL,
	};
	const uint32_t why = RMPOOL_REASON_FILE_MAPPING;
	struct test t = { .name = name };
	char path[64];
	uint8_t *at;
	struct stat s;
	int fd, reader;

	if (!is_of(dir, magic)) {
		report_skip(name, "this kernel has no such file system");
		return;
	}
	fd = file_in(dir, MIB);
	at = map(MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	for (size_t i = 0; i < 3; i++) {
		refused(&t, at + 3, MIB - 7, writes[i], -EOPNOTSUPP, why, at + 3);
		refused_within(&t, PROT_READ | PROT_WRITE, fd, 0, writes[i], why);
	}
	expect(&t, strstr(rmpool_error(), "file system") != NULL, "the text is: %s",
	       rmpool_error());
	expect(&t, !fstat(fd, &s) && !s.st_blocks, "the file has %lld blocks",
	       (long long)s.st_blocks);
	/* to be read it can be registered, and private as one likes */
	rmpool_unregister(pool, add(at + 3, MIB - 7, 0));
	rmpool_unregister(pool, add(at + 3, MIB - 7, READ));
	munmap(at, MIB);
	at = map(MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	rmpool_unregister(pool, add(at + 3, MIB - 7, ALL));
	munmap(at, MIB);

	at = map(MIB, PROT_READ, MAP_SHARED, fd);
	refused(&t, at, MIB, ALL, -EOPNOTSUPP, why, at);
	munmap(at, MIB);
	/* Who opened it to read only has no right to write in the first place. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY);
	at = map(MIB, PROT_READ, MAP_SHARED, reader);
	refused(&t, at + 1, MIB - 1, ALL, -EFAULT, RMPOOL_REASON_UNMAPPED, at + 1);
	munmap(at, MIB);
	close(reader);
	close(fd);
	good_again(&t);
}

static void refuse_secret(void)
{
	struct test t = { .name = "memfd_secret: refused" };
	int fd = (int)syscall(SYS_memfd_secret, 0);
	uint8_t *at;

	if (fd < 0) {
		report_skip(t.name, strerror(errno));
		return;
	}
	if (ftruncate(fd, (off_t)PAGE))
		give_up("memfd_secret: %s", strerror(errno));
	at = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	at[0] = 1;
	refused(&t, at, PAGE, 0, -EFAULT, RMPOOL_REASON_UNMAPPED, at);
	refused(&t, at + 1, PAGE - 1, ALL, -EFAULT, RMPOOL_REASON_UNMAPPED, at + 1);
	munmap(at, PAGE);
	close(fd);
	good_again(&t);
}

int main(void)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	at_rest = pinned_pages();
	refuse_devices();
	refuse_file("shared file on a disk, to write: refused", "ext4", EXT4_SUPER_MAGIC);
	refuse_file("shared file in ramfs, to write: refused", "ram", RAMFS_MAGIC);
	refuse_secret();
	rmpool_close(pool);
	return report_failed != 0;
}
