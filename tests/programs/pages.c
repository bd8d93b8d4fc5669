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
 *	pages spread NAME	publishes 4 chunks of 1 MiB, each on one of two devices,
 *				says "published", and ends with its input
 *	pages pairs NODE/NAME	puts from such chunks to those of a peer; no rail may be
 *				made that does not join the first devices, or the second
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define MIB	(1024UL * 1024)
#define HUGE	(2 * MIB)
#define DEVICES	2
#define SIZE	(64 * MIB)
#define SPREAD	(4 * MIB)
#define PIECE	(64UL * 1024)
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

/* Registered so that each chunk is on one device. */
static uint8_t *spread_memory(uint32_t segment)
{
	struct rmpool_nl_region found = { .length = 0 };
	uint8_t *at = small_pages(SPREAD);
	struct rmpool_nl *nl;
	uint32_t handle;

	if (rmpool_register(pool, at, SPREAD, RMPOOL_ACCESS_ALL, segment, 0, &handle, NULL) ||
	    rmpool_nl_open(&nl) || rmpool_nl_regions(nl, see_region, &found))
		give_up("%s", rmpool_error());
	rmpool_nl_close(nl);
	if (found.devices != DEVICES || found.chunks != 4 || found.mrs != 4)
		give_up("%u devices, %u chunks, %llu memory regions", found.devices,
			found.chunks, (unsigned long long)found.mrs);
	return at;
}

static void spread(const char *name)
{
	uint32_t segment;
	uint8_t *at;

	if (rmpool_publish(pool, name, &segment))
		give_up("%s", rmpool_error());
	at = spread_memory(segment);
	puts("published");
	fflush(stdout);
	while (getchar() != EOF)
		;
	munmap(at, SPREAD);
}

/* How it ended, with what moved, and the seconds it took. */
static struct rmpool_completion put_one(uint32_t segment, uint64_t offset, const uint8_t *at,
					size_t length, double *took)
{
	struct rmpool_completion done = { .status = -EPROTO };
	struct rmpool_request request;
	double began = now();

	rmpool_prepare_put(&request, segment, offset, at, length, 1);
	if (rmpool_transfer(pool, &request, 1, &done, (int)(1000 * patience(60))) < 0)
		give_up("%s", rmpool_error());
	*took = now() - began;
	printf("put %zu KiB to %llu KiB: %d (%s), %llu bytes after %.3f s\n", length / 1024,
	       (unsigned long long)offset / 1024, done.status, rmpool_status_text(done.status),
	       (unsigned long long)done.bytes, *took);
	fflush(stdout);
	return done;
}

static bool is_there(uint32_t segment, uint64_t offset, const uint8_t *at, size_t length)
{
	uint8_t *got = small_pages(length);
	uint32_t handle;
	bool same;

	if (rmpool_register(pool, got, length, RMPOOL_ACCESS_LOCAL_WRITE, 0, 0, &handle, NULL))
		give_up("%s", rmpool_error());
	same = !rmpool_get(pool, segment, offset, got, length, (int)(1000 * patience(60))) &&
	       !memcmp(got, at, length);
	if (rmpool_unregister(pool, handle))
		give_up("%s", rmpool_error());
	munmap(got, length);
	return same;
}

/* Chunks go to the two devices in turn, on both sides. So each chunk here meets a rail to
 * every second one there.
 */
static void put_pairs(const char *from)
{
	struct test impossible = { .name = "what no rail can carry is refused" };
	struct test again = { .name = "at once, when that is known" };
	struct test good = { .name = "where there are rails, all of it arrives" };
	struct test border = { .name = "what is before the border of a chunk arrives" };
	struct rmpool_completion one[2], done;
	uint32_t segment, which;
	uint8_t *at;
	double took;
	size_t i;

	at = spread_memory(0);
	for (i = 0; i < SPREAD; i++)
		at[i] = (uint8_t)(i * 7 + i / PAGE + (size_t)getpid());
	if (rmpool_segment_open(pool, from, NULL, (int)(1000 * patience(20)), &segment, NULL))
		give_up("%s", rmpool_error());
	one[0] = put_one(segment, 0, at, PIECE, &took);
	one[1] = put_one(segment, MIB, at, PIECE, &took);
	which = one[0].status ? 1 : 0;
	expect(&impossible, !one[which].status && one[!which].status == -ENETUNREACH &&
	       !one[!which].bytes && !(one[!which].flags & RMPOOL_COMPLETION_UNKNOWN),
	       "status %d and %d", one[0].status, one[1].status);
	test_end(&impossible);
	done = put_one(segment, which ? 0 : MIB, at, PIECE, &took);
	expect(&again, done.status == -ENETUNREACH && took < patience(1), "status %d after %.3f s",
	       done.status, took);
	test_end(&again);

	done = put_one(segment, which * MIB, at, 3 * MIB, &took);
	expect(&good, !done.status && done.bytes == 3 * MIB, "status %d, %llu bytes", done.status,
	       (unsigned long long)done.bytes);
	for (i = 0; i < 3; i++)
		expect(&good, is_there(segment, (which + i) * MIB, at + i * MIB, PIECE),
		       "MiB %zu is not there", i);
	test_end(&good);

	/* From the middle of a chunk here to the begin of one there. */
	done = put_one(segment, which * MIB, at + MIB / 2, MIB, &took);
	expect(&border, done.status == -ENETUNREACH && done.bytes == MIB / 2,
	       "status %d, %llu bytes", done.status, (unsigned long long)done.bytes);
	expect(&border, is_there(segment, which * MIB, at + MIB / 2, MIB / 2), "it is not there");
	test_end(&border);
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
	else if (argc == 3 && !strcmp(argv[1], "spread"))
		spread(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "pairs"))
		put_pairs(argv[2]);
	else
		give_up("see the top of pages.c");
	rmpool_close(pool);
	return report_failed != 0;
}
