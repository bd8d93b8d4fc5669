// SPDX-License-Identifier: MIT
/* "hello": publish a megabyte and show it. "hello NODE": put a text into it. */
#include <stdio.h>

#include <rmpool.h>

static char memory[1 << 20];

static int fails(int result)
{
	if (result < 0)
		fprintf(stderr, "hello: %s\n", rmpool_error());
	return result < 0;
}

int main(int argc, char **argv)
{
	struct rmpool_completion done;
	struct rmpool_request request;
	uint32_t segment = 0, region;
	struct rmpool *pool;

	if (fails(rmpool_open(&pool, NULL, 0)) ||
	    (argc < 2 && fails(rmpool_publish(pool, "hello", &segment))) ||
	    fails(rmpool_register(pool, memory, sizeof(memory), RMPOOL_ACCESS_ALL,
				  segment, 0, &region, NULL)))
		return 1;
	if (argc < 2) {
		printf("published; press Enter when the other side is done\n");
		getchar();
		return printf("here is: %s\n", memory) < 0;
	}
	snprintf(memory, sizeof(memory), "hello, pool");
	if (fails(rmpool_segment_open(pool, argv[1], "hello", 5000, &segment, NULL)) ||
	    fails(rmpool_ring(pool, 8, -1)))
		return 1;
	rmpool_prepare_put(&request, segment, 0, memory, 12, 1);
	if (fails(rmpool_submit(pool, &request, 1)) ||
	    fails(rmpool_wait(pool, 1, 5000)) || fails(rmpool_poll(pool, &done, 1)))
		return 1;
	printf("put %u bytes: %s\n", (unsigned int)done.bytes, rmpool_status_text(done.status));
	rmpool_close(pool);
	return done.status != 0;
}
