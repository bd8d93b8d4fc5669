// SPDX-License-Identifier: MIT
// LIBS: -libverbs
/*
 * regspeed DEVICE MIB ROUNDS
 *
 * How fast memory is registered: rmpool, on all devices that it has, beside
 * ibv_reg_mr() on the RDMA device DEVICE, for pages of 4 KiB and huge ones. Both
 * take turns on the same memory, all of which is there before; told is the median.
 * One line for each kind of page, in MiB/s:
 *
 *	PAGE-SIZE RMPOOL RMPOOL-BACK VERBS VERBS-BACK
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>
#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define MIB		(1024UL * 1024)
#define ROUNDS_MAX	101

enum { RMPOOL, RMPOOL_BACK, VERBS, VERBS_BACK, KINDS };

static struct rmpool *pool;
static struct ibv_pd *pd;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *of, size_t nr)
{
	qsort(of, nr, sizeof(*of), by_value);
	return of[nr / 2];
}

static void run_rmpool(void *at, size_t size, double *there, double *back)
{
	uint32_t region;
	double began = now();

	if (rmpool_register(pool, at, size, RMPOOL_ACCESS_ALL, 0, 0, &region, NULL))
		give_up("%s", rmpool_error());
	*there = now() - began;
	began = now();
	if (rmpool_unregister(pool, region))
		give_up("%s", rmpool_error());
	*back = now() - began;
}

static void run_verbs(void *at, size_t size, double *there, double *back)
{
	double began = now();
	struct ibv_mr *mr = ibv_reg_mr(pd, at, size, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);

	if (!mr)
		give_up("ibv_reg_mr: %s", strerror(errno));
	*there = now() - began;
	began = now();
	if (ibv_dereg_mr(mr))
		give_up("ibv_dereg_mr: %s", strerror(errno));
	*back = now() - began;
}

/* False when there is no such memory. */
static bool measure(size_t page, size_t mib, unsigned int rounds)
{
	static double took[KINDS][ROUNDS_MAX];
	size_t size = mib * MIB;
	unsigned int i, k;
	void *at;

	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		  (page > 4096 ? MAP_HUGETLB : 0), -1, 0);
	if (at == MAP_FAILED)
		return false;
	if (page == 4096 && madvise(at, size, MADV_NOHUGEPAGE))
		give_up("madvise: %s", strerror(errno));
	memset(at, 1, size);
	/* The first round is for caches and allocators. */
	for (i = 0; i <= rounds; i++) {
		k = i ? i - 1 : 0;
		run_rmpool(at, size, &took[RMPOOL][k], &took[RMPOOL_BACK][k]);
		run_verbs(at, size, &took[VERBS][k], &took[VERBS_BACK][k]);
	}
	printf("%zu", page);
	for (k = 0; k < KINDS; k++)
		printf(" %.1f", (double)mib / median(took[k], rounds));
	putchar('\n');
	munmap(at, size);
	return true;
}

static struct ibv_context *device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		give_up("%s: no such device", name);
	ibv_free_device_list(list);
	return context;
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	unsigned int rounds;
	size_t mib;

	if (argc != 4)
		give_up("regspeed DEVICE MIB ROUNDS");
	mib = argument(argv[2], 2, 1 << 20) / 2 * 2;
	rounds = (unsigned int)argument(argv[3], 1, ROUNDS_MAX);
	context = device(argv[1]);
	pd = ibv_alloc_pd(context);
	if (!pd)
		give_up("ibv_alloc_pd: %s", strerror(errno));
	if (rmpool_open(&pool, NULL, 0))
		give_up("%s", rmpool_error());
	if (!measure(4096, mib, rounds))
		give_up("no memory");
	if (!measure(2 * MIB, mib, rounds))
		printf("%lu none\n", 2 * MIB);
	rmpool_close(pool);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
