// SPDX-License-Identifier: MIT
/*
 * The library's objects as JSON; see describe.h. No state, no locking; what is
 * returned belongs to the caller.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "describe.h"
#include "output.h"
#include "units.h"

/* The kernel's fixed number of the initial pid namespace. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

const char *command_of(uint32_t pid, char *text, size_t room)
{
	char path[64], space[64];
	ssize_t length = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
	FILE *file;

	text[0] = 0;
	/* Elsewhere the same number is another process. */
	if (length < 0)
		return text;
	space[length] = 0;
	if (strcmp(space, INITIAL_PID_NAMESPACE))
		return text;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return text;
	if (fgets(text, (int)room, file))
		text[strcspn(text, "\n")] = 0;
	fclose(file);
	return text;
}

const char *user_name(uint32_t uid, char *text, size_t room)
{
	/* cppcheck-suppress getpwuidCalled ; the tool has one thread */
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, room, "%s", user->pw_name);
	else
		snprintf(text, room, "%" PRIu32, uid);
	return text;
}

const char *gid_text(const uint8_t *gid, char *text, size_t room)
{
	/* A GID is written like the IPv6 address that it looks like. */
	if (!gid || !inet_ntop(AF_INET6, gid, text, (socklen_t)room))
		text[0] = 0;
	return text;
}

const char *speed_text(uint64_t mbit, char *text, size_t room)
{
	if (!mbit)
		text[0] = 0;
	else if (mbit % 1000)
		snprintf(text, room, "%" PRIu64 ".%" PRIu64 " Gbit/s", mbit / 1000,
			 mbit % 1000 / 100);
	else
		snprintf(text, room, "%" PRIu64 " Gbit/s", mbit / 1000);
	return text;
}

static json_t *uuid_json(const uint8_t *uuid)
{
	char text[UNITS_TEXT_MAX];

	if (!uuid)
		return json_null();
	return json_text(format_uuid(text, sizeof(text), uuid));
}

json_t *describe_access(uint32_t access)
{
	json_t *list = need_memory(json_array());

	if (access & RMPOOL_ACCESS_LOCAL_WRITE)
		json_array_append_new(list, json_text("local-write"));
	if (access & RMPOOL_ACCESS_REMOTE_READ)
		json_array_append_new(list, json_text("read"));
	if (access & RMPOOL_ACCESS_REMOTE_WRITE)
		json_array_append_new(list, json_text("write"));
	return list;
}

const char *right_name(uint32_t access)
{
	static const char *const names[] = { "no", "ro", "wo", "rw" };

	return names[access / RMPOOL_ACCESS_REMOTE_READ % 4];
}

/* Who may open it: a list, or null, everybody. */
static json_t *describe_allowed(const struct rmpool_nl_segment *segment)
{
	const struct rmpool_nl_allowed *entry;
	json_t *list;

	if (!segment->restricted)
		return json_null();
	list = need_memory(json_array());
	for (entry = segment->allowed; entry; entry = entry->next)
		json_array_append_new(list, need_memory(json_pack("{s:o, s:o}",
			"peer", json_text(entry->peer),
			"access", describe_access(entry->access))));
	return list;
}

json_t *describe_node(const struct rmpool_nl_node *node)
{
	return need_memory(json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o}",
		"name", json_text(node->name),
		"uuid", uuid_json(node->uuid),
		"listen", json_text(node->listen),
		"advertise", json_text(node->advertise),
		"accept", node->accept_any ? "any" : "table",
		"cache", json_pack("{s:o, s:o, s:o, s:o, s:o}",
			"bytes", json_u64(node->cache_bytes),
			"hits", json_u64(node->cache_hits),
			"misses", json_u64(node->cache_misses),
			"evictions", json_u64(node->cache_evictions),
			"invalidations", json_u64(node->cache_invalidations)),
		"staging", json_pack("{s:o, s:o, s:o, s:o}",
			"pool", json_u64(node->staging_pool),
			"requests", json_u64(node->staging_requests),
			"bytes", json_u64(node->staging_bytes),
			"fallbacks", json_u64(node->staging_fallbacks))));
}

static json_t *describe_sizes(uint64_t sizes)
{
	json_t *list = need_memory(json_array());

	for (unsigned int bit = 0; bit < 63; bit++) {
		if (sizes & (UINT64_C(1) << bit))
			json_array_append_new(list, json_u64(UINT64_C(1) << bit));
	}
	return list;
}

json_t *describe_device(const struct rmpool_nl_device *device)
{
	char gid[INET6_ADDRSTRLEN];

	return need_memory(json_pack(
		"{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
		" s:o, s:o, s:o, s:s, s:b, s:o}",
		"name", json_text(device->name),
		"port", json_u64(device->port),
		"index", json_u64(device->index),
		"state", rmpool_port_state_name(device->state),
		"address", json_text(device->address),
		"gid", json_text(gid_text(device->gid, gid, sizeof(gid))),
		"gid_index", device->gid ? json_u64(device->gid_index) : json_null(),
		"netdev", json_text(device->netdev),
		"numa_node", device->numa < 0 ? json_null() : json_integer(device->numa),
		"mtu_bytes", json_u64(device->mtu),
		"speed_mbit_per_s", json_u64(device->speed),
		"max_message_bytes", json_u64(device->max_msg),
		"chunk_bytes", json_u64(device->chunk),
		"memory_regions_max", json_u64(device->max_mr),
		"memory_regions_used", json_u64(device->mrs),
		"pages_max", device->max_pages ? json_u64(device->max_pages) : json_null(),
		"pages_used", json_u64(device->pages),
		"page_sizes", describe_sizes(device->page_sizes),
		"relaxed_ordering", rmpool_ordering_name(device->ordering),
		"usable", (int)!!device->usable,
		"why", json_text(device->why)));
}

static json_t *describe_rail(const struct rmpool_nl_rail *rail)
{
	return need_memory(json_pack(
		"{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"index", json_u64(rail->index),
		"state", rmpool_rail_state_name(rail->state),
		"local", json_text(rail->local),
		"local_address", json_text(rail->local_address),
		"remote_address", json_text(rail->remote_address),
		"qps", json_u64(rail->qps),
		"put_bytes", json_u64(rail->put_bytes),
		"get_bytes", json_u64(rail->get_bytes),
		"slices", json_u64(rail->slices),
		"errors", json_u64(rail->errors),
		"outstanding_bytes", json_u64(rail->outstanding)));
}

json_t *describe_peer(const struct rmpool_nl_peer *peer)
{
	json_t *rails = need_memory(json_array());
	const struct rmpool_nl_rail *rail;
	const char *error = peer->error ? strerrorname_np(-peer->error) : NULL;

	for (rail = peer->rails; rail; rail = rail->next)
		json_array_append_new(rails, describe_rail(rail));
	return need_memory(json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o}",
		"name", json_text(peer->name),
		"endpoint", json_text(peer->endpoint),
		"state", rmpool_peer_state_name(peer->state),
		"remote_name", json_text(peer->remote_name),
		"uuid", uuid_json(peer->uuid),
		"group", json_text(peer->group),
		"dynamic", (int)!!peer->dynamic,
		"last_error", json_text(error ? error : ""),
		"last_reason", peer->reason ? json_text(rmpool_reason_name(peer->reason)) :
					      json_null(),
		"rails", rails));
}

static void describe_owner(json_t *object, uint32_t pid, uint32_t uid)
{
	char command[32];

	json_object_set_new(object, "pid", json_u64(pid));
	json_object_set_new(object, "uid", json_u64(uid));
	json_object_set_new(object, "command",
			    json_text(command_of(pid, command, sizeof(command))));
}

json_t *describe_segment(const struct rmpool_nl_segment *segment)
{
	json_t *object = need_memory(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
		"name", json_text(segment->name),
		"id", json_u64(segment->id),
		"bytes", json_u64(segment->size),
		"regions", json_u64(segment->regions),
		"generation", json_u64(segment->generation),
		"allowed", describe_allowed(segment)));

	describe_owner(object, segment->owner_pid, segment->owner_uid);
	return object;
}

json_t *describe_region(const struct rmpool_nl_region *region)
{
	json_t *object = need_memory(json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:b, s:o}",
		"id", json_u64(region->id),
		"segment", json_text(region->segment_name),
		"segment_id", region->segment_id ? json_u64(region->segment_id) : json_null(),
		"offset", region->segment_id && region->percent == 100 ?
			  json_u64(region->offset) : json_null(),
		"bytes", json_u64(region->length),
		"access", describe_access(region->access),
		"chunks", json_u64(region->chunks),
		"devices", json_u64(region->devices),
		"memory_regions", json_u64(region->mrs),
		"pages", json_u64(region->pages),
		"dmabuf", (int)!!region->dmabuf,
		"state", json_text(rmpool_region_state_name(region->state)),
		"cached", (int)!!region->cached,
		"percent", json_u64(region->percent)));

	describe_owner(object, region->owner_pid, region->owner_uid);
	return object;
}
