// SPDX-License-Identifier: MIT
/*
 * Names and addresses of segments, who may open them, and names of numbers.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

bool rmpl_name_copy(char field[RMPOOL_NAME_MAX], const char *name)
{
	size_t length = strnlen(name, RMPOOL_NAME_MAX);

	if (!length || length == RMPOOL_NAME_MAX)
		return false;
	memset(field, 0, RMPOOL_NAME_MAX);
	memcpy(field, name, length);
	return true;
}

static int fail(const char *text, const char *why)
{
	return rmpl_fail(EINVAL, NULL, why, "address '%.150s'", text);
}

/* One of the two names, from @text on; false when it is not one. */
static bool parse_name(const char *text, size_t length,
		       char name[RMPOOL_NAME_MAX])
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";

	if (!length || length >= RMPOOL_NAME_MAX ||
	    strspn(text, allowed) < length)
		return false;
	memcpy(name, text, length);
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool parse_offset(const char *text, uint64_t *offset)
{
	static const char units[] = "KMGT";
	unsigned int base = 10, shift;
	const char *unit;
	uint64_t n = 0;
	int d;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (digit(*text) >= (int)base)
		return false;
	for (; (d = digit(*text)) < (int)base; text++)
		if (__builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)d, &n))
			return false;
	if (*text) {
		unit = strchr(units, *text);
		if (!unit || text[1])
			return false;
		shift = 10 * (unsigned int)(unit - units + 1);
		if (n > UINT64_MAX >> shift)
			return false;
		n <<= shift;
	}
	*offset = n;
	return true;
}

int rmpool_address_parse(const char *text, struct rmpool_address *address)
{
	struct rmpool_address out = { .offset = 0 };
	const char *slash = strchr(text, '/');
	const char *segment, *plus;
	size_t length;

	if (!slash)
		return fail(text, "it must have the form node/segment");
	segment = slash + 1;
	plus = strchr(segment, '+');
	length = plus ? (size_t)(plus - segment) : strlen(segment);

	if (!parse_name(text, (size_t)(slash - text), out.node))
		return fail(text,
			    "the node must be 1 to 63 characters out of letters, digits and ._:@-");
	if (!parse_name(segment, length, out.segment))
		return fail(text,
			    "the segment must be 1 to 63 characters out of letters, digits and ._:@-");
	if (plus && !parse_offset(plus + 1, &out.offset))
		return fail(text,
			    "the offset is not a number of bytes (as 4096, 0x1000, 4K)");
	*address = out;
	return 0;
}

int rmpool_allow_parse(const char *text, struct rmpool_allow_entry *entry)
{
	static const struct {
		const char *suffix;
		uint32_t access;
	} known[] = {
		{ ":ro", RMPOOL_ACCESS_REMOTE_READ },
		{ ":wo", RMPOOL_ACCESS_REMOTE_WRITE },
		{ ":rw", RMPOOL_ACCESS_REMOTE_READ | RMPOOL_ACCESS_REMOTE_WRITE },
		{ ":no", 0 },
	};
	struct rmpool_allow_entry out = { .access = known[2].access };
	size_t length = strlen(text);

	/* A name may have colons as well, so only the end counts. */
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (length > 3 && !strcmp(text + length - 3, known[i].suffix)) {
			out.access = known[i].access;
			length -= 3;
			break;
		}
	}
	if (length == 1 && *text == '*')
		out.peer[0] = '*';
	else if (!parse_name(text, length, out.peer))
		return rmpl_fail(EINVAL, NULL,
				 "it must be the name of a peer, @ and a trust group, or *, and :ro, :wo, :rw or :no perhaps",
				 "'%.150s'", text);
	*entry = out;
	return 0;
}

#define NAME_OF(table, number) \
	((number) < sizeof(table) / sizeof((table)[0]) && (table)[number] ? \
	 (table)[number] : "unknown")

const char *rmpool_event_name(uint32_t change)
{
	static const char *const names[] = {
		[RMPOOL_EVENT_NEW] = "new",
		[RMPOOL_EVENT_CHANGED] = "changed",
		[RMPOOL_EVENT_GONE] = "gone",
	};

	return NAME_OF(names, change);
}

const char *rmpool_peer_state_name(uint32_t state)
{
	static const char *const names[] = {
		[RMPOOL_PEER_IDLE] = "idle",
		[RMPOOL_PEER_CONNECTING] = "connecting",
		[RMPOOL_PEER_CONNECTED] = "connected",
		[RMPOOL_PEER_READY] = "ready",
		[RMPOOL_PEER_BACKOFF] = "backoff",
		[RMPOOL_PEER_CLOSING] = "closing",
	};

	return NAME_OF(names, state);
}

const char *rmpool_rail_state_name(uint32_t state)
{
	static const char *const names[] = {
		[RMPOOL_RAIL_DOWN] = "down",
		[RMPOOL_RAIL_CONNECTING] = "connecting",
		[RMPOOL_RAIL_UP] = "up",
	};

	return NAME_OF(names, state);
}

const char *rmpool_region_state_name(uint32_t state)
{
	static const char *const names[] = {
		[RMPOOL_REGION_STATE_ACTIVE] = "active",
		[RMPOOL_REGION_STATE_SUSPECT] = "suspect",
		[RMPOOL_REGION_STATE_STALE] = "stale",
		[RMPOOL_REGION_STATE_REGISTERING] = "registering",
	};

	return NAME_OF(names, state);
}

const char *rmpool_port_state_name(uint32_t state)
{
	/* enum ib_port_state of the kernel */
	static const char *const names[] = {
		[1] = "down",
		[2] = "init",
		[3] = "armed",
		[4] = "active",
		[5] = "active-defer",
	};

	return NAME_OF(names, state);
}

const char *rmpool_ordering_name(uint32_t ordering)
{
	static const char *const names[] = {
		[RMPOOL_ORDERING_UNSUPPORTED] = "not supported",
		[RMPOOL_ORDERING_OFF] = "off",
		[RMPOOL_ORDERING_ON] = "on",
		[RMPOOL_ORDERING_FORCED] = "forced by the driver",
	};

	return NAME_OF(names, ordering);
}
