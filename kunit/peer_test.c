// SPDX-License-Identifier: GPL-2.0
#include "peer_world.h"
static void test_x(struct kunit *test)
{
	struct rmp_peer *peer = peer_make(test, "b", 1);
	go_ready(test, peer, 2);
	rmp_peer_put(peer);
}
static struct kunit_case peer_cases[] = { KUNIT_CASE(test_x), {} };
static struct kunit_suite peer_suite = {
	.name = "rmp_peer",
	.suite_init = suite_begin,
	.init = world_begin,
	.exit = world_end,
	.test_cases = peer_cases,
};
kunit_test_suites(&peer_suite);
MODULE_LICENSE("GPL");
