/* SPDX-License-Identifier: MIT */
/*
 * What nl.c (sockets), nlmsg.c (messages) and nlparse.c (attributes) share. The
 * latter two are pure: they read and write buffers, and are tested with those.
 */
#ifndef RMPOOL_LIB_NETLINK_H
#define RMPOOL_LIB_NETLINK_H

#include <libmnl/libmnl.h>

#include "internal.h"

/* Room for every request that is sent here. */
#define RMPL_NL_REQUEST_MAX 1024

/* Attributes that are still to be read. libmnl's own loops do the same, but mix
 * signed and unsigned lengths.
 */
struct rmpl_span {
	const char *pos;
	size_t left;
};

/* Those of a message behind @skip bytes of its payload; those in a nest. */
struct rmpl_span rmpl_message_span(const struct nlmsghdr *nlh, size_t skip);
struct rmpl_span rmpl_nest_span(const struct nlattr *nest);

/* The next whole attribute, or NULL. */
const struct nlattr *rmpl_next_attr(struct rmpl_span *span);

/* Storage of the rails of one peer; grows as needed. */
struct rmpl_rails {
	struct rmpool_nl_rail *array;
	uint32_t room;
};

/* And of those who may open one segment. */
struct rmpl_allowed {
	struct rmpool_nl_allowed *array;
	uint32_t room;
};

/* What came back for one request. */
struct rmpl_nl_reply {
	char *data;		/* messages of the family, one after another */
	size_t length;
	size_t room;
	bool ended;
	bool interrupted;	/* the list changed while it was sent */
	int err;		/* what the kernel said at the end, 0 or errno */
	char text[256];		/* its text about that, or empty */
};

void rmpl_nl_reply_free(struct rmpl_nl_reply *reply);

/* Take in one datagram. Messages for other requests are skipped. Returns 0,
 * -EBADMSG or -ENOMEM.
 */
int rmpl_nl_collect(struct rmpl_nl_reply *reply, const void *datagram,
		    size_t length, uint32_t seq, uint32_t portid);

/* Begin a request in a buffer of RMPL_NL_REQUEST_MAX bytes. */
struct nlmsghdr *rmpl_nl_begin(void *buffer, uint16_t family, uint8_t command,
			       uint16_t flags, uint32_t seq);

/* Add the attributes. -EMSGSIZE: a text is too long. */
int rmpl_nl_build_family(struct nlmsghdr *nlh);
int rmpl_nl_build_settings(struct nlmsghdr *nlh,
			   const struct rmpool_nl_settings *settings);
int rmpl_nl_build_peer(struct nlmsghdr *nlh, const char *name,
		       const char *endpoint, const char *group,
		       bool allow_loopback);

/* Read one message. Returns 0, -EBADMSG or -ENOMEM. What is not in the message
 * becomes 0 or empty; unknown attributes are skipped.
 */
int rmpl_nl_parse_family(const struct nlmsghdr *nlh, uint16_t *family,
			 uint32_t *group);
int rmpl_nl_parse_node(const struct nlmsghdr *nlh, struct rmpool_nl_node *node);
int rmpl_nl_parse_device(const struct nlmsghdr *nlh,
			 struct rmpool_nl_device *device);
int rmpl_nl_parse_peer(const struct nlmsghdr *nlh, struct rmpool_nl_peer *peer,
		       struct rmpl_rails *rails);
int rmpl_nl_parse_segment(const struct nlmsghdr *nlh,
			  struct rmpool_nl_segment *segment,
			  struct rmpl_allowed *allowed);
int rmpl_nl_parse_region(const struct nlmsghdr *nlh,
			 struct rmpool_nl_region *region);

/* Storage of one event. */
struct rmpl_nl_event {
	struct rmpool_nl_event event;
	struct rmpl_rails rails;
	struct rmpl_allowed allowed;
	union {
		struct rmpool_nl_node node;
		struct rmpool_nl_device device;
		struct rmpool_nl_peer peer;
		struct rmpool_nl_segment segment;
	};
};

/* As above; -ENOMSG: not an event that we know. */
int rmpl_nl_parse_event(const struct nlmsghdr *nlh, struct rmpl_nl_event *out);

#endif /* RMPOOL_LIB_NETLINK_H */
