/* SPDX-License-Identifier: MIT */
/*
 * For test programs: all ioctls of /dev/rmpool, as a table. ioctl_abuse fails
 * when the module knows a number that is not in it, so a new one is not
 * forgotten here.
 */
#ifndef CALLS_H
#define CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/rmpool.h>

/* A field that must hold none of these bits. */
struct zero_field {
	size_t offset;
	size_t size;		/* 4 or 8 */
	uint32_t allowed;
};

#define ZERO_FIELDS_MAX	6

struct call {
	const char *name;
	unsigned int cmd;
	ssize_t error;		/* where its struct rmpool_error is, or -1 */
	struct zero_field zero[ZERO_FIELDS_MAX];
};

#define ZERO(type, member) \
	{ offsetof(struct type, member), \
	  sizeof(((struct type *)NULL)->member), 0 }
#define ZERO_BUT(type, member, allowed) \
	{ offsetof(struct type, member), \
	  sizeof(((struct type *)NULL)->member), allowed }
#define ERROR_OF(type)	(ssize_t)offsetof(struct type, error)

/* Size of the first version of the structure of a call; only some have grown. */
static inline size_t first_size(unsigned int cmd)
{
	if (cmd == RMPOOL_IOC_INFO)
		return offsetof(struct rmpool_info, user_pinned);
	if (cmd == RMPOOL_IOC_REGION_ADD)
		return offsetof(struct rmpool_region_add, dmabuf_offset);
	return _IOC_SIZE(cmd);
}

static const struct call calls[] = {
	{ "INFO", RMPOOL_IOC_INFO, -1, { { 0, 0, 0 } } },
	{ "RING_SETUP", RMPOOL_IOC_RING_SETUP, ERROR_OF(rmpool_ring_setup),
	  { ZERO(rmpool_ring_setup, flags) } },
	{ "SEGMENT_CREATE", RMPOOL_IOC_SEGMENT_CREATE,
	  ERROR_OF(rmpool_segment_create),
	  { ZERO(rmpool_segment_create, flags) } },
	{ "SEGMENT_DELETE", RMPOOL_IOC_SEGMENT_DELETE, -1,
	  { ZERO(rmpool_handle, flags) } },
	{ "REGION_ADD", RMPOOL_IOC_REGION_ADD, ERROR_OF(rmpool_region_add),
	  { ZERO_BUT(rmpool_region_add, flags,
		     RMPOOL_REGION_STRICT_ORDER | RMPOOL_REGION_DMABUF),
	    ZERO(rmpool_region_add, dmabuf_fd),
	    ZERO(rmpool_region_add, dmabuf_offset),
	    ZERO_BUT(rmpool_region_add, access, RMPOOL_ACCESS_ALL) } },
	{ "REGION_DEL", RMPOOL_IOC_REGION_DEL, -1,
	  { ZERO(rmpool_handle, flags) } },
	{ "SEGMENT_OPEN", RMPOOL_IOC_SEGMENT_OPEN,
	  ERROR_OF(rmpool_segment_open),
	  { ZERO(rmpool_segment_open, flags),
	    ZERO(rmpool_segment_open, reserved) } },
	{ "SEGMENT_CLOSE", RMPOOL_IOC_SEGMENT_CLOSE, -1,
	  { ZERO(rmpool_handle, flags) } },
	{ "SEGMENT_LIST", RMPOOL_IOC_SEGMENT_LIST, -1,
	  { ZERO(rmpool_segment_list, flags),
	    ZERO(rmpool_segment_list, reserved) } },
	{ "SUBMIT", RMPOOL_IOC_SUBMIT, ERROR_OF(rmpool_submit),
	  { ZERO(rmpool_submit, flags), ZERO(rmpool_submit, reserved) } },
	{ "SUBMIT_SYNC", RMPOOL_IOC_SUBMIT_SYNC, ERROR_OF(rmpool_submit_sync),
	  { ZERO(rmpool_submit_sync, flags),
	    ZERO(rmpool_submit_sync, reserved) } },
	{ "WAIT", RMPOOL_IOC_WAIT, -1,
	  { ZERO(rmpool_wait, flags), ZERO(rmpool_wait, reserved) } },
	{ "CANCEL", RMPOOL_IOC_CANCEL, -1,
	  { ZERO_BUT(rmpool_cancel, flags, RMPOOL_CANCEL_ALL) } },
	{ "REGION_ADD_MANY", RMPOOL_IOC_REGION_ADD_MANY,
	  ERROR_OF(rmpool_region_add_many),
	  { ZERO(rmpool_region_add_many, flags),
	    ZERO(rmpool_region_add_many, reserved) } },
	{ "REGION_DEL_MANY", RMPOOL_IOC_REGION_DEL_MANY,
	  ERROR_OF(rmpool_region_del_many),
	  { ZERO(rmpool_region_del_many, flags) } },
	{ "SEGMENT_ALLOW", RMPOOL_IOC_SEGMENT_ALLOW,
	  ERROR_OF(rmpool_segment_allow),
	  { ZERO_BUT(rmpool_segment_allow, flags, RMPOOL_ALLOW_LIST) } },
};

#define NR_CALLS	(sizeof(calls) / sizeof(calls[0]))

#endif /* CALLS_H */
