// SPDX-License-Identifier: MIT
/*
 * Netlink messages: building requests and collecting replies.
 *
 * No sockets here, and no state. Lengths are checked before anything is read,
 * although the kernel is trusted: a mismatch of versions must give an error.
 */
#include "netlink.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t align4(size_t length)
{
	return (length + 3) & ~(size_t)3;
}

struct rmpl_span rmpl_message_span(const struct nlmsghdr *nlh, size_t skip)
{
	size_t length = mnl_nlmsg_get_payload_len(nlh);
	const char *payload = mnl_nlmsg_get_payload(nlh);

	if (skip > length)
		skip = length;
	return (struct rmpl_span){ payload + skip, length - skip };
}

struct rmpl_span rmpl_nest_span(const struct nlattr *nest)
{
	return (struct rmpl_span){ mnl_attr_get_payload(nest),
				   mnl_attr_get_payload_len(nest) };
}

const struct nlattr *rmpl_next_attr(struct rmpl_span *span)
{
	const struct nlattr *attr = (const void *)span->pos;
	size_t step;

	if (span->left < sizeof(*attr) || attr->nla_len < sizeof(*attr) ||
	    attr->nla_len > span->left)
		return NULL;
	step = align4(attr->nla_len);
	if (step > span->left)
		step = span->left;
	span->pos += step;
	span->left -= step;
	return attr;
}

/* ------------------------------------------------------------ requests */

struct nlmsghdr *rmpl_nl_begin(void *buffer, uint16_t family, uint8_t command,
			       uint16_t flags, uint32_t seq)
{
	struct genlmsghdr *genl;
	struct nlmsghdr *nlh;

	/* libmnl does not clear what it leaves between attributes. */
	memset(buffer, 0, RMPL_NL_REQUEST_MAX);
	nlh = mnl_nlmsg_put_header(buffer);
	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = command;
	/* NOLINTNEXTLINE(bugprone-branch-clone): two versions, equal by chance */
	genl->version = family == GENL_ID_CTRL ? 1 : RMPOOL_GENL_VERSION;
	return nlh;
}

static int put_text(struct nlmsghdr *nlh, uint16_t type, const char *text)
{
	if (text && !mnl_attr_put_strz_check(nlh, RMPL_NL_REQUEST_MAX, type,
					     text))
		return -EMSGSIZE;
	return 0;
}

static int put_flag(struct nlmsghdr *nlh, uint16_t type)
{
	return mnl_attr_put_check(nlh, RMPL_NL_REQUEST_MAX, type, 0, NULL) ?
	       0 : -EMSGSIZE;
}

int rmpl_nl_build_family(struct nlmsghdr *nlh)
{
	return put_text(nlh, CTRL_ATTR_FAMILY_NAME, RMPOOL_GENL_NAME);
}

int rmpl_nl_build_settings(struct nlmsghdr *nlh,
			   const struct rmpool_nl_settings *settings)
{
	int ret;

	ret = put_text(nlh, RMPOOL_A_NODE_NAME, settings->name);
	if (!ret)
		ret = put_text(nlh, RMPOOL_A_NODE_LISTEN, settings->listen);
	if (!ret)
		ret = put_text(nlh, RMPOOL_A_NODE_ADVERTISE,
			       settings->advertise);
	if (!ret && settings->accept != RMPOOL_NL_ACCEPT_KEEP &&
	    !mnl_attr_put_u8_check(nlh, RMPL_NL_REQUEST_MAX,
				   RMPOOL_A_NODE_ACCEPT_ANY,
				   settings->accept == RMPOOL_NL_ACCEPT_ANY))
		ret = -EMSGSIZE;
	if (!ret && settings->allow_loopback)
		ret = put_flag(nlh, RMPOOL_A_ALLOW_LOOPBACK);
	return ret;
}

int rmpl_nl_build_peer(struct nlmsghdr *nlh, const char *name,
		       const char *endpoint, const char *group,
		       bool allow_loopback)
{
	int ret;

	ret = put_text(nlh, RMPOOL_A_PEER_NAME, name);
	if (!ret)
		ret = put_text(nlh, RMPOOL_A_PEER_ENDPOINT, endpoint);
	if (!ret)
		ret = put_text(nlh, RMPOOL_A_PEER_GROUP, group);
	if (!ret && allow_loopback)
		ret = put_flag(nlh, RMPOOL_A_ALLOW_LOOPBACK);
	return ret;
}

/* ------------------------------------------------------------- replies */

void rmpl_nl_reply_free(struct rmpl_nl_reply *reply)
{
	free(reply->data);
	memset(reply, 0, sizeof(*reply));
}

static int keep(struct rmpl_nl_reply *reply, const struct nlmsghdr *nlh)
{
	size_t need = reply->length + align4(nlh->nlmsg_len);
	size_t room = reply->room ? reply->room : 4096;
	char *larger;

	while (room < need)
		room *= 2;
	if (room != reply->room) {
		larger = realloc(reply->data, room);
		if (!larger)
			return -ENOMEM;
		reply->data = larger;
		reply->room = room;
	}
	memset(reply->data + reply->length, 0, need - reply->length);
	memcpy(reply->data + reply->length, nlh, nlh->nlmsg_len);
	reply->length = need;
	return 0;
}

/* Find the kernel's text behind the first @skip bytes of the payload. */
static void find_text(struct rmpl_nl_reply *reply, const struct nlmsghdr *nlh,
		      size_t skip)
{
	struct rmpl_span span = rmpl_message_span(nlh, skip);
	const struct nlattr *attr;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	while ((attr = rmpl_next_attr(&span))) {
		if (mnl_attr_get_type(attr) != NLMSGERR_ATTR_MSG ||
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) < 0)
			continue;
		snprintf(reply->text, sizeof(reply->text), "%s",
			 mnl_attr_get_str(attr));
	}
}

static int end_by_error(struct rmpl_nl_reply *reply, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*e);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*e) || e->error > 0)
		return -EBADMSG;
	/* The request comes back behind the header, unless it was left out. */
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED)) {
		if (e->msg.nlmsg_len < sizeof(e->msg))
			return -EBADMSG;
		skip += align4(e->msg.nlmsg_len) - sizeof(e->msg);
	}
	find_text(reply, nlh, skip);
	reply->err = -e->error;
	reply->ended = true;
	return 0;
}

static int end_by_done(struct rmpl_nl_reply *reply, const struct nlmsghdr *nlh)
{
	int error = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(error)) {
		memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
		find_text(reply, nlh, sizeof(error));
	}
	reply->err = error < 0 ? -error : 0;
	reply->ended = true;
	return 0;
}

int rmpl_nl_collect(struct rmpl_nl_reply *reply, const void *datagram,
		    size_t length, uint32_t seq, uint32_t portid)
{
	const struct nlmsghdr *nlh = datagram;
	int left = (int)length;
	int ret = 0;

	for (; !ret && !reply->ended && mnl_nlmsg_ok(nlh, left);
	     nlh = mnl_nlmsg_next(nlh, &left)) {
		if (!mnl_nlmsg_seq_ok(nlh, seq) ||
		    !mnl_nlmsg_portid_ok(nlh, portid))
			continue;
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			reply->interrupted = true;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			ret = end_by_error(reply, nlh);
		else if (nlh->nlmsg_type == NLMSG_DONE)
			ret = end_by_done(reply, nlh);
		else if (nlh->nlmsg_type >= NLMSG_MIN_TYPE)
			ret = keep(reply, nlh);
	}
	if (!ret && !reply->ended && left > 0)
		ret = -EBADMSG;		/* the rest is not a whole message */
	return ret;
}
