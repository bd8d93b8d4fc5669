// SPDX-License-Identifier: MIT
/*
 * The header in C++: included alone and first, without warnings, and linked
 * with the library, so that a function without C linkage would be missed.
 */
#include <rmpool.h>

#include <cstdio>

int main()
{
	struct rmpool_region_add region;
	struct rmpool_request request;
	struct rmpool_address address;
	struct rmpool_nl_settings settings = {};
	struct rmpool *pool = nullptr;
	char memory[8];

	rmpool_prepare_get(&request, 1, 2, memory, sizeof(memory), 3);
	if (request.op != RMPOOL_OP_GET || request.cookie != 3 ||
	    request.prio != RMPOOL_CLASS_NORMAL)
		return 1;
	rmpool_prepare_region(&region, memory, sizeof(memory), RMPOOL_ACCESS_ALL, 1, 2);
	if (region.length != sizeof(memory) || region.segment != 1 || region.offset != 2)
		return 1;
	if (rmpool_address_parse("node/segment+16", &address) ||
	    address.offset != 16)
		return 1;
	if (settings.accept != RMPOOL_NL_ACCEPT_KEEP)
		return 1;
	if (rmpool_open(&pool, "/nonexistent", 0) >= 0 || pool)
		return 1;
	/* The structure of the ABI beside the function of the same name. */
	const struct rmpool_error *detail = rmpool_error_detail();

	std::printf("%s (%s)\n", rmpool_error(),
		    rmpool_reason_name(detail->reason));
	return 0;
}
