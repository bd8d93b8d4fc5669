// SPDX-License-Identifier: MIT
/*
 * What processes of this node have registered: the commands segment list and
 * region list. Without CAP_NET_ADMIN the module shows those of the own user.
 */
#include <inttypes.h>
#include <stdio.h>

#include <rmpool.h>

#include "command.h"
#include "describe.h"
#include "units.h"

static void add_owner(struct table *table, uint32_t pid, uint32_t uid)
{
	char command[32], user[UNITS_TEXT_MAX];

	table_cell(table, "%u", pid);
	table_cell(table, "%s", user_name(uid, user, sizeof(user)));
	table_cell(table, "%s", command_of(pid, command, sizeof(command)));
}

/* Below its segment, so many to a line. */
static void add_allowed(struct table *table, const struct rmpool_nl_segment *segment)
{
	const struct rmpool_nl_allowed *entry = segment->allowed;
	char line[4 * (RMPOOL_NAME_MAX + 8)];
	size_t used, n;

	if (!entry)
		table_note(table, "nobody may open it");
	while (entry) {
		for (used = 0, n = 0; entry && n < 4; n++, entry = entry->next)
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.63s:%s",
						 n ? "  " : "", entry->peer,
						 right_name(entry->access));
		table_note(table, "may open it: %s", line);
	}
}

static int add_segment(const struct rmpool_nl_segment *segment, void *arg)
{
	char size[UNITS_TEXT_MAX];
	struct list *list = arg;

	if (list->array) {
		json_array_append_new(list->array, describe_segment(segment));
		return 0;
	}
	table_cell(list->table, "%s", segment->name);
	table_cell(list->table, "%u", segment->id);
	table_cell(list->table, "%s", format_bytes(size, sizeof(size), segment->size));
	table_cell(list->table, "%u", segment->regions);
	table_cell(list->table, "%" PRIu64, segment->generation);
	add_owner(list->table, segment->owner_pid, segment->owner_uid);
	if (segment->restricted)
		add_allowed(list->table, segment);
	return 0;
}

static int ask_segments(struct rmpool_nl *nl, struct list *list)
{
	return rmpool_nl_segments(nl, add_segment, list);
}

static int run_segment_list(int nr, const char *const *operands)
{
	static const char *const titles[] = {
		"SEGMENT", ">ID", ">SIZE", ">REGIONS", ">GENERATION", ">PID", "USER",
		"COMMAND", NULL,
	};

	(void)nr;
	(void)operands;
	return run_list(titles, ask_segments, "segments", "no segment is published here");
}

const struct command command_segment_list = {
	.name = "segment list",
	.operands = "",
	.summary = "List the segments that processes here publish",
	.detail =
	"SIZE is where its last region ends: there may be holes before. GENERATION\n"
	"counts the changes of a segment's regions. Below a segment that not everybody\n"
	"may open stands who may: ro read, wo write, rw both, no nothing. Without\n"
	"CAP_NET_ADMIN only your own segments are shown.\n",
	.run = run_segment_list,
};

static int add_region(const struct rmpool_nl_region *region, void *arg)
{
	char size[UNITS_TEXT_MAX];
	struct list *list = arg;

	if (list->array) {
		json_array_append_new(list->array, describe_region(region));
		return 0;
	}
	table_cell(list->table, "%" PRIu64, region->id);
	table_cell(list->table, "%s", region->cached ? "(for requests)" :
						       region->segment_name);
	if (region->segment_id && region->percent == 100)
		table_cell(list->table, "0x%" PRIx64, region->offset);
	else
		table_cell(list->table, "-");
	table_cell(list->table, "%s", format_bytes(size, sizeof(size), region->length));
	table_cell(list->table, "%s", format_access(region->access));
	table_cell(list->table, "%u", region->chunks);
	table_cell(list->table, "%u", region->devices);
	table_cell(list->table, "%" PRIu64, region->mrs);
	table_cell(list->table, "%" PRIu64, region->pages);
	table_cell(list->table, "%s", region->dmabuf ? "dma-buf" : "memory");
	if (region->percent < 100)
		table_cell(list->table, "%s %u%%", rmpool_region_state_name(region->state),
			   region->percent);
	else
		table_cell(list->table, "%s", rmpool_region_state_name(region->state));
	add_owner(list->table, region->owner_pid, region->owner_uid);
	return 0;
}

static int ask_regions(struct rmpool_nl *nl, struct list *list)
{
	return rmpool_nl_regions(nl, add_region, list);
}

static int run_region_list(int nr, const char *const *operands)
{
	static const char *const titles[] = {
		">REGION", "SEGMENT", ">OFFSET", ">SIZE", "PEERS MAY", ">CHUNKS", ">DEVICES",
		">MRS", ">PAGES", "KIND", "STATE", ">PID", "USER", "COMMAND", NULL,
	};

	(void)nr;
	(void)operands;
	return run_list(titles, ask_regions, "regions", "no memory is registered here");
}

const struct command command_region_list = {
	.name = "region list",
	.operands = "",
	.summary = "List the memory that processes here have registered",
	.detail =
	"A region without a segment is local: only requests of its own process use\n"
	"it; the module made some of these for requests whose memory was not\n"
	"registered, and gives them up when it needs room for others. MRS are the\n"
	"memory regions that it takes on all its devices, PAGES the pages of those: a\n"
	"device has all chunks of a region, or, when it has no room for that, some of\n"
	"them. While a region is being registered, STATE tells how far that is. KIND\n"
	"is memory of the process, or a dma-buf that it has from an exporter. A region\n"
	"is stale when its process let go of the memory, by munmap() for instance: put\n"
	"and get fail with ESTALE, and its pages stay pinned until it is unregistered.\n"
	"One that is suspect is being looked at.\n"
	"Without CAP_NET_ADMIN only your own regions are shown.\n",
	.run = run_region_list,
};
