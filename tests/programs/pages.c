// SPDX-License-Identifier: MIT
/*
 * pages: how much memory takes on devices. Two devices, and nothing else is
 * registered meanwhile.
 *
 *	pages sizes		huge pages beside small ones
 *	pages dealt		each device may have 3 memory regions
 *	pages refused		each device may have 3 memory regions
 *	pages strict		in strict order
 *	pages host NAME		publishes huge pages under that name, says "published",
 *				and at the end of its input whether only they were
 *				written
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define HUGE	(2 * MIB)
#define DEVICES	2
#define SIZE	(64 * MIB)
/* The published range: neither end is that of a page. */
#define LEAD	100UL
#define TAIL	200UL

static struct rmpool *pool;

static uint8_t *map(size_t size, int flags)
{
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (at == MAP_FAILED)
		give_up("mmap of %zu MiB%s: %s", size / MIB,
			(flags & MAP_HUGETLB) ? " of huge pages" : "", strerror(errno));
	return at;
}

static uint8_t *small_pages(size_t size)
{
	uint8_t *at = map(size, 0);

	if (madvise(at, size, MADV_NOHUGEPAGE))
		give_up("madvise: %s", strerror(errno));
	return at;
}

static int see_region(const struct rmpool_nl_region *region, void *arg)
{
	if (region->owner_pid == (uint32_t)getpid())
		*(struct rmpool_nl_region *)arg = *region;
	return 0;
}

static int see_device(const struct rmpool_nl_device *device, void *arg)
{
	struct rmpool_nl_region *sum = arg;

	sum->devices++;
	sum->mrs += device->mrs;
	sum->pages += device->pages;
	return 0;
}

/* What the region takes, and all devices together, which must be the same. */
static struct rmpool_nl_region usage(struct test *t, uint64_t length)
{
	struct rmpool_nl_region region = { .length = 0 }, devices = { .length = 0 };
	struct rmpool_nl *nl;

	if (rmpool_nl_open(&nl) || rmpool_nl_regions(nl, see_region, &region) ||
	    rmpool_nl_devices(nl, see_device, &devices))
		give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
	expect(t, region.length == length, "the region has %llu bytes",
	       (unsigned long long)region.length);
	expect(t, devices.devices == DEVICES && devices.mrs == region.mrs &&
	       devices.pages == region.pages,
	       "devices have %llu memory regions with %llu pages, the region %llu with %llu",
	       (unsigned long long)devices.mrs, (unsigned long long)devices.pages,
	       (unsigned long long)region.mrs, (unsigned long long)region.pages);
	return region;
}

static struct rmpool_nl_region measure(struct test *t, uint8_t *at, size_t length)
{
	struct rmpool_nl_region found;
	uint32_t handle;

	if (rmpool_register(pool, at, length, RMPOOL_ACCESS_ALL, 0, 0, &handle, NULL))
		give_up("%s", rmpool_error());
	found = usage(t, length);
	expect(t, found.devices == DEVICES && found.mrs == (uint64_t)found.chunks * DEVICES,
	       "%u devices, %u chunks, %llu memory regions", found.devices, found.chunks,
	       (unsigned long long)found.mrs);
	if (rmpool_unregister(pool, handle))
		give_up("%s", rmpool_error());
	return found;
}

static void sizes(void)
{
	struct test pages = { .name = "64 MiB of huge pages take a 64th or less of the pages" };
	struct test mrs = { .name = "and few memory regions" };
	struct test odd = { .name = "the same between bytes that are no borders" };
	struct rmpool_nl_region small, huge;
	uint8_t *at;

	at = small_pages(SIZE);
	small = measure(&pages, at, SIZE);
	munmap(at, SIZE);
	at = map(SIZE, MAP_HUGETLB);
	huge = measure(&pages, at, SIZE);
	printf("small pages: %u chunks, %llu pages; huge pages: %u chunks, %llu pages\n",
	       small.chunks, (unsigned long long)small.pages, huge.chunks,
	       (unsigned long long)huge.pages);
	expect(&pages, small.pages >= 64 * huge.pages, "%llu pages, not %llu",
	       (unsigned long long)huge.pages, (unsigned long long)small.pages);
	expect(&pages, huge.pages <= DEVICES * SIZE / HUGE, "%llu pages",
	       (unsigned long long)huge.pages);
	test_end(&pages);
	expect(&mrs, huge.mrs * 16 <= small.mrs, "%llu memory regions, not %llu",
	       (unsigned long long)huge.mrs, (unsigned long long)small.mrs);
	test_end(&mrs);

	huge = measure(&odd, at + PAGE + 5, SIZE - 3 * PAGE);
	expect(&odd, small.pages >= 64 * huge.pages, "%llu pages",
	       (unsigned long long)huge.pages);
	test_end(&odd);
}

static void dealt(void)
{
	struct test t = { .name = "chunks are dealt to devices that have no room for all" };
	struct rmpool_nl_region found;
	uint8_t *at = small_pages(8 * MIB);
	uint32_t handle;

	if (!expect(&t, !rmpool_register(pool, at, 8 * MIB, RMPOOL_ACCESS_ALL, 0, 0, &handle,
					 NULL), "%s", rmpool_error()))
		goto out;
	found = usage(&t, 8 * MIB);
	expect(&t, found.devices == DEVICES && found.chunks > 3 && found.mrs == found.chunks,
	       "%u devices, %u chunks, %llu memory regions", found.devices, found.chunks,
	       (unsigned long long)found.mrs);
	rmpool_unregister(pool, handle);
out:
	test_end(&t);
}

static void refused(void)
{
	struct test t = { .name = "what no device has room for is refused" };
	struct test again = { .name = "and nothing stays of it" };
	const struct rmpool_error *why;
	uint8_t *at = small_pages(64 * MIB);
	struct rmpool_info info;
	uint32_t handle;
	int ret;

	ret = rmpool_register(pool, at, 64 * MIB, 0, 0, 0, &handle, NULL);
	why = rmpool_error_detail();
	expect(&t, ret == -ENOMEM, "%d", ret);
	expect(&t, why->reason == RMPOOL_REASON_DEVICE_MRS && why->limit == 3 && !why->used &&
	       why->need >= 32, "reason %u, limit %llu, used %llu, needed %llu", why->reason,
	       (unsigned long long)why->limit, (unsigned long long)why->used,
	       (unsigned long long)why->need);
	puts(rmpool_error());
	test_end(&t);
	if (rmpool_info(pool, &info, sizeof(info)))
		give_up("%s", rmpool_error());
	expect(&again, !info.pinned && !info.user_pinned && !info.node_pinned,
	       "%llu, %llu, %llu bytes pinned", (unsigned long long)info.pinned,
	       (unsigned long long)info.user_pinned, (unsigned long long)info.node_pinned);
	measure(&again, at, MIB);
	test_end(&again);
}

static void strict(void)
{
	struct test t = { .name = "strict order" };
	uint8_t *at = small_pages(MIB);
	uint32_t handle;
	int ret;

	ret = rmpool_register_flags(pool, at, MIB, RMPOOL_ACCESS_ALL,
				    RMPOOL_REGION_STRICT_ORDER, 0, 0, &handle, NULL);
	if (expect(&t, !ret, "%s", rmpool_error()))
		expect(&t, usage(&t, MIB).devices == DEVICES, "not on both devices");
	ret = rmpool_register_flags(pool, at, MIB, RMPOOL_ACCESS_ALL,
				    RMPOOL_REGION_STRICT_ORDER << 1, 0, 0, &handle, NULL);
	expect(&t, ret == -EINVAL, "a flag that is none: %d", ret);
	test_end(&t);
}

static void host(const char *name)
{
	uint8_t *at = map(SIZE, MAP_HUGETLB);
	uint32_t segment, region;
	bool good = true;
	size_t i;

	memset(at, 0x5a, SIZE);
	if (rmpool_publish(pool, name, &segment) ||
	    rmpool_register(pool, at + LEAD, SIZE - LEAD - TAIL, RMPOOL_ACCESS_ALL, segment, 0,
			    &region, NULL))
		give_up("%s", rmpool_error());
	puts("published");
	fflush(stdout);
	while (getchar() != EOF)
		;
	for (i = 0; i < LEAD; i++)
		good = good && at[i] == 0x5a;
	for (i = SIZE - TAIL; i < SIZE; i++)
		good = good && at[i] == 0x5a;
	if (rmpool_unregister(pool, region))
		give_up("%s", rmpool_error());
	if (!good)
		give_up("bytes beside the region were written");
}

int main(int argc, char **argv)
{
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (argc == 2 && !strcmp(argv[1], "sizes"))
		sizes();
	else if (argc == 2 && !strcmp(argv[1], "dealt"))
		dealt();
	else if (argc == 2 && !strcmp(argv[1], "refused"))
		refused();
	else if (argc == 2 && !strcmp(argv[1], "strict"))
		strict();
	else if (argc == 3 && !strcmp(argv[1], "host"))
		host(argv[2]);
	else
		give_up("see the top of pages.c");
	rmpool_close(pool);
	return report_failed != 0;
}
