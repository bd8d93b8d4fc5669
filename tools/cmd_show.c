// SPDX-License-Identifier: MIT
/*
 * What there is on this host: the commands info, version and device. They only
 * read. The module may be absent, in another version, or out of reach by
 * permission or network namespace; what can be known is shown all the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <rmpool.h>

#include "command.h"
#include "describe.h"
#include "units.h"

/* What the module says of itself, by whichever door is open. */
struct module {
	bool by_device, by_netlink;
	int device_error, netlink_error;
	struct rmpool_info info;
	/* Copies: the library's live until the next call only. */
	char version[32];
	uint32_t abi;
	json_t *node;
};

static void ask_device(struct module *module)
{
	struct rmpool *pool;

	module->device_error = rmpool_open(&pool, NULL, 0);
	if (module->device_error)
		return;
	module->device_error = rmpool_info(pool, &module->info, sizeof(module->info));
	rmpool_close(pool);
	if (module->device_error)
		return;
	module->by_device = true;
	module->abi = module->info.abi_version;
	snprintf(module->version, sizeof(module->version), "%.31s",
		 module->info.module_version);
}

static void ask_netlink(struct module *module)
{
	const struct rmpool_nl_node *node;
	struct rmpool_nl *nl;

	module->netlink_error = rmpool_nl_open(&nl);
	if (module->netlink_error)
		return;
	module->netlink_error = rmpool_nl_node_get(nl, &node);
	if (!module->netlink_error) {
		module->by_netlink = true;
		module->abi = node->abi;
		snprintf(module->version, sizeof(module->version), "%s", node->version);
		module->node = describe_node(node);
	}
	rmpool_nl_close(nl);
}

/* One sentence when parts of different versions met, else "". */
static const char *mismatch(const struct module *module, char *text, size_t room)
{
	bool loaded = module->by_device || module->by_netlink;

	text[0] = 0;
	if (loaded && module->abi != RMPOOL_ABI_VERSION)
		snprintf(text, room, "the module has ABI %u, this tool was built for ABI %d; "
			 "install the same version of both", module->abi,
			 RMPOOL_ABI_VERSION);
	else if (strcmp(rmpool_version(), RMPOOL_VERSION))
		snprintf(text, room, "the library is %s, the tool %s; install the same "
			 "version of both", rmpool_version(), RMPOOL_VERSION);
	else if (loaded && strcmp(module->version, RMPOOL_VERSION))
		snprintf(text, room, "the module is %s, the tool %s; load the module of "
			 "this version", module->version, RMPOOL_VERSION);
	return text;
}

static json_t *versions_json(const struct module *module, const char *different)
{
	bool loaded = module->by_device || module->by_netlink;

	return need_memory(json_pack("{s:s, s:o, s:o, s:i, s:o, s:o}",
		"tool", RMPOOL_VERSION,
		"library", json_text(rmpool_version()),
		"module", json_text(module->version),
		"tool_abi", RMPOOL_ABI_VERSION,
		"module_abi", loaded ? json_u64(module->abi) : json_null(),
		"mismatch", json_text(different)));
}

static int run_version(int nr, const char *const *operands)
{
	struct module module = { 0 };
	char different[160];

	(void)nr;
	(void)operands;
	/* Nobody who asks for a version wants to hear why there is no RDMA. */
	ask_device(&module);
	ask_netlink(&module);
	mismatch(&module, different, sizeof(different));
	if (output.json) {
		print_json(need_memory(json_pack("{s:o}", "versions",
						 versions_json(&module, different))));
	} else {
		print_field("tool", "%s", RMPOOL_VERSION);
		print_field("library", "%s", rmpool_version());
		print_field("ABI", "%d", RMPOOL_ABI_VERSION);
		if (module.by_device || module.by_netlink)
			print_field("module", "%s, ABI %u", module.version, module.abi);
		else if (module.device_error == -EACCES)
			print_field("module", "loaded");
		else
			print_field("module", "not loaded");
		if (*different)
			warn_text("version", "%s", different);
	}
	json_decref(module.node);
	return EXIT_OK;
}

const struct command command_version = {
	.name = "version",
	.operands = "",
	.summary = "Show the versions of tool, library and module",
	.run = run_version,
};

/* A module of before a limit says 0 for it; that of the node is never 0 else, and came
 * before the one of the cache.
 */
static json_t *limits_json(const struct rmpool_info *info)
{
	return need_memory(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"memlock_bytes", json_u64(info->memlock),
		"user_bytes", info->user_limit ? json_u64(info->user_limit) : json_null(),
		"user_bytes_used", json_u64(info->user_pinned),
		"node_bytes", info->node_limit ? json_u64(info->node_limit) : json_null(),
		"node_bytes_used", json_u64(info->node_pinned),
		"batch_requests", json_u64(info->batch_max),
		"ring_entries", json_u64(info->ring_max),
		"regions", json_u64(info->regions_max),
		"segments", json_u64(info->segments_max),
		"opened_segments", json_u64(info->opens_max),
		"cache_bytes", info->node_limit ? json_u64(info->cache_limit) : json_null(),
		"staging_bytes", json_u64(info->staging_limit)));
}

static const char *node_text(const json_t *node, const char *key)
{
	const char *text = json_string_value(json_object_get(node, key));

	return text ? text : "";
}

/* A module of before this limit says 0 for it, and that nothing is used. */
static void print_pinned(const char *name, uint64_t limit, uint64_t used, const char *parameter)
{
	char size[UNITS_TEXT_MAX], in_use[UNITS_TEXT_MAX];

	format_exact(in_use, sizeof(in_use), used);
	if (limit == UINT64_MAX || !limit)
		print_field(name, "none, %s in use", in_use);
	else
		print_field(name, "%s, %s in use, parameter %s",
			    format_exact(size, sizeof(size), limit), in_use, parameter);
}

/* What is registered for requests whose memory was not. */
static void print_cache(const json_t *cache)
{
	static const char *const counts[] = {
		"hits", "misses", "evictions", "invalidations",
	};
	char text[160], size[UNITS_TEXT_MAX];
	size_t used = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 ", %" JSON_INTEGER_FORMAT " %s",
					 json_integer_value(json_object_get(cache, counts[i])),
					 counts[i]);
	format_exact(size, sizeof(size),
		     (uint64_t)json_integer_value(json_object_get(cache, "bytes")));
	print_field("cached", "%s%s", size, text);
}

/* What was copied of such requests. */
static void print_staging(const json_t *staging)
{
	char bytes[UNITS_TEXT_MAX], pool[UNITS_TEXT_MAX];

	format_exact(bytes, sizeof(bytes),
		     (uint64_t)json_integer_value(json_object_get(staging, "bytes")));
	format_exact(pool, sizeof(pool),
		     (uint64_t)json_integer_value(json_object_get(staging, "pool")));
	print_field("copied", "%s of %" JSON_INTEGER_FORMAT " requests, %" JSON_INTEGER_FORMAT
		    " without room, pool of %s", bytes,
		    json_integer_value(json_object_get(staging, "requests")),
		    json_integer_value(json_object_get(staging, "fallbacks")), pool);
}

static void print_limits(const struct rmpool_info *info)
{
	char size[UNITS_TEXT_MAX];

	puts("\nLimits");
	if (info->memlock == UINT64_MAX)
		print_field("memlock", "none");
	else
		print_field("memlock", "%s, RLIMIT_MEMLOCK",
			    format_exact(size, sizeof(size), info->memlock));
	print_pinned("user", info->user_limit, info->user_pinned, "max_user_mib");
	print_pinned("node", info->node_limit, info->node_pinned, "max_pinned_mib");
	if (info->cache_limit)
		print_field("cache", "%s registered for requests, parameter cache_mib",
			    format_exact(size, sizeof(size), info->cache_limit));
	else if (info->node_limit)
		print_field("cache", "off, parameter cache_mib");
	if (info->staging_limit)
		print_field("staging", "%s copied for a request, parameter staging_max",
			    format_exact(size, sizeof(size), info->staging_limit));
	print_field("batch", "%u requests in one call", info->batch_max);
	print_field("ring", "%u completions", info->ring_max);
	print_field("regions", "%u", info->regions_max);
	print_field("segments", "%u published, %u opened", info->segments_max,
		    info->opens_max);
}

static void print_info(const struct module *module)
{
	const struct rmpool_info *info = &module->info;
	char uuid[UNITS_TEXT_MAX];

	if (module->node) {
		print_field("node", "%s", node_text(module->node, "name"));
		print_field("uuid", "%s", node_text(module->node, "uuid"));
		print_field("listen", "%s", node_text(module->node, "listen"));
		print_field("advertise", "%s", node_text(module->node, "advertise"));
		print_field("accept", "%s", strcmp(node_text(module->node, "accept"), "any") ?
			    "table (peers in the table)" : "any (whoever connects)");
		print_cache(json_object_get(module->node, "cache"));
		print_staging(json_object_get(module->node, "staging"));
	} else {
		print_field("node", "%.63s", info->node_name);
		print_field("uuid", "%s", format_uuid(uuid, sizeof(uuid), info->uuid));
	}
	if (module->by_device) {
		print_field("peers", "%u", info->nr_peers);
		print_field("devices", "%u usable", info->nr_devices);
	}
	print_field("versions", "tool %s, library %s, module %s, ABI %u", RMPOOL_VERSION,
		    rmpool_version(), module->version, module->abi);
	if (module->by_device)
		print_limits(info);
}

static int run_info(int nr, const char *const *operands)
{
	struct module module = { 0 };
	char different[160];
	json_t *root;

	(void)nr;
	(void)operands;
	ask_netlink(&module);
	ask_device(&module);
	if (!module.by_device && !module.by_netlink)
		return fail_open(module.device_error);
	if (!module.by_device)
		/* The text of the last call, which was to the device. */
		warn_text("limits are not shown", "%s", rmpool_error());
	mismatch(&module, different, sizeof(different));
	if (output.json) {
		root = need_memory(json_pack("{s:o, s:o, s:o, s:o, s:o}",
			"node", module.node ? json_incref(module.node) :
				json_pack("{s:o}", "name", json_text(module.info.node_name)),
			"versions", versions_json(&module, different),
			"peers", module.by_device ? json_u64(module.info.nr_peers) : json_null(),
			"usable_devices", module.by_device ? json_u64(module.info.nr_devices) :
							     json_null(),
			"limits", module.by_device ? limits_json(&module.info) : json_null()));
		print_json(root);
	} else {
		print_info(&module);
	}
	if (*different)
		warn_text("info", "%s", different);
	json_decref(module.node);
	return EXIT_OK;
}

const struct command command_info = {
	.name = "info",
	.operands = "",
	.summary = "Show this node, its limits and versions",
	.run = run_info,
};

static void add_used(struct table *table, uint64_t used, uint64_t limit)
{
	if (limit)
		table_cell(table, "%" PRIu64 " of %" PRIu64, used, limit);
	else
		table_cell(table, "%" PRIu64, used);
}

static int add_device(const struct rmpool_nl_device *device, void *arg)
{
	char gid[INET6_ADDRSTRLEN], speed[UNITS_TEXT_MAX], chunk[UNITS_TEXT_MAX];
	struct list *list = arg;

	if (list->array) {
		json_array_append_new(list->array, describe_device(device));
		return 0;
	}
	table_cell(list->table, "%s/%u", device->name, device->port);
	table_cell(list->table, "%s", rmpool_port_state_name(device->state));
	table_cell(list->table, "%s", device->address);
	if (device->gid)
		table_cell(list->table, "%u: %s", device->gid_index,
			   gid_text(device->gid, gid, sizeof(gid)));
	else
		table_cell(list->table, "none");
	table_cell(list->table, "%s", device->netdev);
	if (device->numa < 0)
		table_cell(list->table, "-");
	else
		table_cell(list->table, "%d", device->numa);
	if (device->mtu)
		table_cell(list->table, "%u", device->mtu);
	else
		table_cell(list->table, "-");
	table_cell(list->table, "%s", speed_text(device->speed, speed, sizeof(speed)));
	table_cell(list->table, "%s", format_bytes(chunk, sizeof(chunk), device->chunk));
	add_used(list->table, device->mrs, device->max_mr);
	add_used(list->table, device->pages, device->max_pages);
	table_cell(list->table, "%s", rmpool_ordering_name(device->ordering));
	if (device->usable)
		table_cell(list->table, "yes");
	else
		table_cell(list->table, "no: %s", *device->why ? device->why : "unknown reason");
	return 0;
}

static int ask_devices(struct rmpool_nl *nl, struct list *list)
{
	return rmpool_nl_devices(nl, add_device, list);
}

static int run_device(int nr, const char *const *operands)
{
	static const char *const titles[] = {
		"DEVICE", "STATE", "ADDRESS", "GID", "NETDEV", ">NUMA", ">MTU", ">SPEED",
		">CHUNK", ">MRS", ">PAGES", "RELAXED ORDERING", "USABLE", NULL,
	};

	(void)nr;
	(void)operands;
	return run_list(titles, ask_devices, "devices", "no RDMA device on this host");
}

const struct command command_device = {
	.name = "device",
	.operands = "",
	.summary = "List the RDMA devices, one line per port",
	.detail =
	"CHUNK is how much one memory region of the device covers when pages are\n"
	"small, MRS how many of its memory regions rmpool has in use, and PAGES how\n"
	"many pages these have together: huge pages need fewer of both. RELAXED\n"
	"ORDERING is on, off (parameter relaxed_ordering), forced by the driver or\n"
	"not supported. GID is the address that was chosen among those of the port,\n"
	"with its index: a routable one where there is one.\n",
	.run = run_device,
};
