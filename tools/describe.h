/* SPDX-License-Identifier: MIT */
/*
 * The library's objects as JSON, the same in lists and in events.
 */
#ifndef RMPOOL_TOOL_DESCRIBE_H
#define RMPOOL_TOOL_DESCRIBE_H

#include <jansson.h>
#include <rmpool.h>

json_t *describe_node(const struct rmpool_nl_node *node);
json_t *describe_device(const struct rmpool_nl_device *device);
json_t *describe_peer(const struct rmpool_nl_peer *peer);
json_t *describe_segment(const struct rmpool_nl_segment *segment);
json_t *describe_region(const struct rmpool_nl_region *region);
json_t *describe_access(uint32_t access);
/* "ro", "wo", "rw" or "no", as --allow takes it. */
const char *right_name(uint32_t access);

/* The name of the program that a process runs, or "" when it cannot be known,
 * as in another process namespace.
 */
const char *command_of(uint32_t pid, char *text, size_t room);
/* The name of a user, or the number as text. */
const char *user_name(uint32_t uid, char *text, size_t room);
const char *gid_text(const uint8_t *gid, char *text, size_t room);
const char *speed_text(uint64_t mbit, char *text, size_t room);

#endif
