// SPDX-License-Identifier: MIT
/*
 * This node and the nodes it knows: the commands node show|set and peer
 * add|del|list. All go through netlink; what changes something needs
 * CAP_NET_ADMIN, which the module checks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rmpool.h>

#include "command.h"
#include "describe.h"
#include "units.h"

static bool allow_loopback;

static const struct option_def loopback_options[] = {
	{ "allow-loopback", 0, OPTION_FLAG, &allow_loopback, NULL,
	  "A loopback address (127.0.0.1, ::1) is meant" },
	{ 0 },
};

static int run_node_show(int nr, const char *const *operands)
{
	const struct rmpool_nl_node *node;
	struct rmpool_nl *nl;
	char uuid[UNITS_TEXT_MAX];
	int error, code = EXIT_OK;

	(void)nr;
	(void)operands;
	error = rmpool_nl_open(&nl);
	if (error)
		return fail_open(error);
	error = rmpool_nl_node_get(nl, &node);
	if (error) {
		code = fail_library(error);
	} else if (output.json) {
		print_json(json_pack("{s:o}", "node", describe_node(node)));
	} else {
		print_field("node", "%s", node->name);
		print_field("uuid", "%s", node->uuid ?
			    format_uuid(uuid, sizeof(uuid), node->uuid) : "");
		print_field("listen", "%s", node->listen);
		print_field("advertise", "%s", node->advertise);
		print_field("accept", "%s", node->accept_any ? "any" : "table");
	}
	rmpool_nl_close(nl);
	return code;
}

const struct command command_node_show = {
	.name = "node show",
	.operands = "",
	.summary = "Show the settings of this node",
	.run = run_node_show,
};

/* KEY=VALUE; what is wrong is reported. */
static int read_setting(struct rmpool_nl_settings *settings, const char *text)
{
	static const char *const keys[] = { "name", "listen", "advertise", "accept", NULL };
	const char *equals = strchr(text, '=');
	char key[32];
	const char *value, *near;

	if (!equals)
		return fail_text(EXIT_USAGE, text, "a setting has the form KEY=VALUE");
	value = equals + 1;
	snprintf(key, sizeof(key), "%.*s", (int)(equals - text), text);
	if (!strcmp(key, "name")) {
		settings->name = value;
	} else if (!strcmp(key, "listen")) {
		settings->listen = value;
	} else if (!strcmp(key, "advertise")) {
		settings->advertise = value;
	} else if (strcmp(key, "accept")) {
		near = nearest_word(key, keys);
		return fail_text(EXIT_USAGE, key, near ? "unknown setting; did you mean %s?" :
				 "unknown setting; there are name, listen, advertise, accept",
				 near);
	} else if (!strcmp(value, "any")) {
		settings->accept = RMPOOL_NL_ACCEPT_ANY;
	} else if (!strcmp(value, "table")) {
		settings->accept = RMPOOL_NL_ACCEPT_TABLE;
	} else {
		return fail_text(EXIT_USAGE, text, "accept is any or table");
	}
	/* Without a value: back to what the node finds out by itself. */
	if (!*value && value != settings->advertise)
		return fail_text(EXIT_USAGE, key, "the value is empty");
	return EXIT_OK;
}

static int run_node_set(int nr, const char *const *operands)
{
	struct rmpool_nl_settings settings = { 0 };
	struct rmpool_nl *nl;
	int i, code, error;

	for (i = 0; i < nr; i++) {
		code = read_setting(&settings, operands[i]);
		if (code)
			return code;
	}
	settings.allow_loopback = allow_loopback;
	error = rmpool_nl_open(&nl);
	if (error)
		return fail_open(error);
	error = rmpool_nl_node_set(nl, &settings);
	code = error ? fail_library(error) : EXIT_OK;
	rmpool_nl_close(nl);
	if (code)
		return code;
	/* What it is now says more than that it is done. */
	return output.quiet ? EXIT_OK : run_node_show(0, NULL);
}

const struct command command_node_set = {
	.name = "node set",
	.operands = "KEY=VALUE...",
	.summary = "Change settings of this node, all or none",
	.detail =
	"  name=NAME           what this node calls itself\n"
	"  listen=ENDPOINT     where it listens for peers\n"
	"  advertise=ENDPOINT  where peers find it, if that differs; without a\n"
	"                      value: found out by the node again\n"
	"  accept=table|any    who may connect: the peers in the table, or anyone\n"
	"An endpoint is v1:HOST:PORT, an IPv6 address stands in brackets.\n",
	.options = loopback_options,
	.min = 1,
	.max = 4,
	.run = run_node_set,
};

static const char *group;

static const struct option_def peer_add_options[] = {
	{ "allow-loopback", 0, OPTION_FLAG, &allow_loopback, NULL,
	  "A loopback address (127.0.0.1, ::1) is meant" },
	{ "group", 'g', OPTION_TEXT, &group, "NAME",
	  "Put it in this trust group (default: default)" },
	{ 0 },
};

static int run_peer_add(int nr, const char *const *operands)
{
	const char *name = operands[0];
	char text[RMPOOL_ENDPOINT_MAX];
	unsigned int flags = allow_loopback ? RMPOOL_ENDPOINT_LOOPBACK : 0;
	struct rmpool_endpoint endpoint;
	struct rmpool_nl *nl;
	int error, code;

	(void)nr;
	error = rmpool_endpoint_parse(operands[1], flags, &endpoint);
	if (error)
		return fail_text(EXIT_USAGE, output.command, "%s", rmpool_error());
	/* The module knows no name server. */
	error = rmpool_endpoint_resolve(&endpoint, flags);
	if (!error)
		error = rmpool_endpoint_format(&endpoint, text, sizeof(text));
	if (error < 0)
		return fail_library(error);
	error = rmpool_nl_open(&nl);
	if (error)
		return fail_open(error);
	error = rmpool_nl_peer_add_group(nl, name, text, group, allow_loopback);
	code = error ? fail_library(error) : EXIT_OK;
	rmpool_nl_close(nl);
	if (code)
		return code;
	if (output.json)
		print_json(json_pack("{s:{s:o, s:o, s:o}}", "added",
				     "name", json_text(name), "endpoint", json_text(text),
				     "group", json_text(group ? group : "default")));
	say("peer %s added at %s", name, text);
	return EXIT_OK;
}

const struct command command_peer_add = {
	.name = "peer add",
	.operands = "NAME ENDPOINT",
	.summary = "Add a node to the peer table",
	.detail =
	"ENDPOINT is v1:HOST:PORT; v1: may be left out, an IPv6 address stands in\n"
	"brackets. A host name is resolved once, now. The peer is connected when a\n"
	"segment of it is first opened.\n"
	"Peers of a trust group can make use of each other's keys, if they get hold of\n"
	"any, and of nobody else's. A group is made with its first peer; there may be\n"
	"16, default among them. To put a peer in another one, remove it and add it\n"
	"again.\n",
	.options = peer_add_options,
	.min = 2,
	.max = 2,
	.run = run_peer_add,
};

static int run_peer_del(int nr, const char *const *operands)
{
	struct rmpool_nl *nl;
	int error, code;

	(void)nr;
	error = rmpool_nl_open(&nl);
	if (error)
		return fail_open(error);
	error = rmpool_nl_peer_del(nl, operands[0]);
	code = error ? fail_library(error) : EXIT_OK;
	rmpool_nl_close(nl);
	if (code)
		return code;
	if (output.json)
		print_json(json_pack("{s:{s:o}}", "removed", "name", json_text(operands[0])));
	say("peer %s removed", operands[0]);
	return EXIT_OK;
}

const struct command command_peer_del = {
	.name = "peer del",
	.operands = "NAME",
	.summary = "Remove a node from the peer table",
	.detail =
	"Its connection is closed; segments of it that processes have opened turn\n"
	"stale, and their requests fail.\n",
	.min = 1,
	.max = 1,
	.run = run_peer_del,
};

static void add_rail(struct table *table, const struct rmpool_nl_rail *rail)
{
	char put[UNITS_TEXT_MAX], got[UNITS_TEXT_MAX], flight[UNITS_TEXT_MAX];

	table_note(table, "rail %-2u  %-9s  %-10s  %u QP%s  put %-10s  got %-10s  "
		   "in flight %-10s  %" PRIu64 " error%s  %s -> %s",
		   rail->index, rail->local, rmpool_rail_state_name(rail->state),
		   rail->qps, rail->qps == 1 ? " " : "s",
		   format_bytes(put, sizeof(put), rail->put_bytes),
		   format_bytes(got, sizeof(got), rail->get_bytes),
		   format_bytes(flight, sizeof(flight), rail->outstanding),
		   rail->errors, rail->errors == 1 ? " " : "s",
		   *rail->local_address ? rail->local_address : "?",
		   *rail->remote_address ? rail->remote_address : "?");
}

static int add_peer(const struct rmpool_nl_peer *peer, void *arg)
{
	const struct rmpool_nl_rail *rail;
	struct list *list = arg;

	if (list->array) {
		json_array_append_new(list->array, describe_peer(peer));
		return 0;
	}
	table_cell(list->table, "%s", peer->name);
	table_cell(list->table, "%s", peer->endpoint);
	table_cell(list->table, "%s", rmpool_peer_state_name(peer->state));
	table_cell(list->table, "%s", peer->remote_name);
	table_cell(list->table, "%s", peer->group);
	table_cell(list->table, "%s", peer->dynamic ? "accepted" : "table");
	if (peer->reason)
		table_cell(list->table, "%s", rmpool_strerror(peer->reason));
	else
		table_cell(list->table, "%s", peer->error ? strerror(-peer->error) : "");
	for (rail = peer->rails; rail; rail = rail->next)
		add_rail(list->table, rail);
	return 0;
}

static int ask_peers(struct rmpool_nl *nl, struct list *list)
{
	return rmpool_nl_peers(nl, add_peer, list);
}

static int run_peer_list(int nr, const char *const *operands)
{
	static const char *const titles[] = {
		"PEER", "ENDPOINT", "STATE", "CALLS ITSELF", "GROUP", "ENTRY", "LAST FAILURE", NULL,
	};

	(void)nr;
	(void)operands;
	return run_list(titles, ask_peers, "peers",
			"the peer table is empty; rmpool peer add NAME ENDPOINT adds one");
}

const struct command command_peer_list = {
	.name = "peer list",
	.operands = "",
	.summary = "List the peers with their rails and bytes",
	.detail =
	"A rail is a pair of a local and a remote port. Bytes count from the time\n"
	"the rail was made; put is what this node put there, got what it got.\n",
	.run = run_peer_list,
};
