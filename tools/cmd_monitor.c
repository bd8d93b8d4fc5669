// SPDX-License-Identifier: MIT
/*
 * What changes: the command monitor. One line per event, flushed. When events
 * came faster than they were read, some are lost; then it says so and shows
 * what is there now, so that a reader who keeps a picture can put it right.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include <rmpool.h>

#include "command.h"
#include "describe.h"
#include "interrupt.h"
#include "progress.h"
#include "units.h"

static void print_time(void)
{
	struct timespec now;
	struct tm local;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	printf("%02d:%02d:%02d.%03ld  ", local.tm_hour, local.tm_min, local.tm_sec,
	       now.tv_nsec / 1000000);
}

/* A line of JSON: the time, what happened, and one more member. */
static void json_line(const char *event, const char *kind, json_t *object)
{
	char stamp[UNITS_TEXT_MAX];
	struct timespec now;
	struct tm utc;
	size_t used;
	json_t *root;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	used = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(stamp + used, sizeof(stamp) - used, ".%03ldZ", now.tv_nsec / 1000000);
	root = need_memory(json_pack("{s:s, s:s}", "time", stamp, "event", event));
	if (kind) {
		json_object_set_new(root, "kind", json_text(kind));
		json_object_set_new(root, kind, object);
	}
	print_json_line(root);
}

static void show_node(const char *event, const struct rmpool_nl_node *node)
{
	if (output.json) {
		json_line(event, "node", describe_node(node));
		return;
	}
	print_time();
	print_line("node %s %s: listens at %s, accepts %s", node->name, event,
		   *node->listen ? node->listen : "no address",
		   node->accept_any ? "any" : "table");
}

static void show_device(const char *event, const struct rmpool_nl_device *device)
{
	char speed[UNITS_TEXT_MAX];

	if (output.json) {
		json_line(event, "device", describe_device(device));
		return;
	}
	print_time();
	print_line("device %s/%u %s: %s%s%s%s%s%s%s", device->name, device->port, event,
		   rmpool_port_state_name(device->state), *device->address ? ", " : "",
		   device->address, device->speed ? ", " : "",
		   speed_text(device->speed, speed, sizeof(speed)),
		   device->usable ? "" : ", not usable: ", device->usable ? "" : device->why);
}

static void show_peer(const char *event, const struct rmpool_nl_peer *peer)
{
	const struct rmpool_nl_rail *rail;
	unsigned int up = 0;

	if (output.json) {
		json_line(event, "peer", describe_peer(peer));
		return;
	}
	for (rail = peer->rails; rail; rail = rail->next)
		up += rail->state == RMPOOL_RAIL_UP;
	print_time();
	print_line("peer %s %s: %s, %s, %u of %u rails up%s%s", peer->name, event,
		   rmpool_peer_state_name(peer->state), peer->endpoint, up, peer->nr_rails,
		   peer->reason ? ", last failure: " : "",
		   peer->reason ? rmpool_strerror(peer->reason) : "");
}

static void show_segment(const char *event, const struct rmpool_nl_segment *segment)
{
	char size[UNITS_TEXT_MAX];

	if (output.json) {
		json_line(event, "segment", describe_segment(segment));
		return;
	}
	print_time();
	print_line("segment %s %s: %s, %u region%s, generation %" PRIu64 ", process %u",
		   segment->name, event, format_bytes(size, sizeof(size), segment->size),
		   segment->regions, segment->regions == 1 ? "" : "s", segment->generation,
		   segment->owner_pid);
}

static int list_device(const struct rmpool_nl_device *device, void *arg)
{
	(void)arg;
	show_device("now", device);
	return 0;
}

static int list_peer(const struct rmpool_nl_peer *peer, void *arg)
{
	(void)arg;
	show_peer("now", peer);
	return 0;
}

static int list_segment(const struct rmpool_nl_segment *segment, void *arg)
{
	(void)arg;
	show_segment("now", segment);
	return 0;
}

/*
 * Shows all there is. @nl is a second handle: the one with the events must not
 * have answers between them.
 */
static int show_all(struct rmpool_nl *nl)
{
	const struct rmpool_nl_node *node;
	int error = rmpool_nl_node_get(nl, &node);

	if (!error) {
		show_node("now", node);
		error = rmpool_nl_devices(nl, list_device, NULL);
	}
	if (!error)
		error = rmpool_nl_peers(nl, list_peer, NULL);
	if (!error)
		error = rmpool_nl_segments(nl, list_segment, NULL);
	return error;
}

static void show_event(const struct rmpool_nl_event *event)
{
	const char *change = rmpool_event_name(event->change);

	switch (event->kind) {
	case RMPOOL_NL_NODE:
		show_node(change, event->node);
		break;
	case RMPOOL_NL_DEVICE:
		show_device(change, event->device);
		break;
	case RMPOOL_NL_PEER:
		show_peer(change, event->peer);
		break;
	case RMPOOL_NL_SEGMENT:
		show_segment(change, event->segment);
		break;
	}
}

static int resync(struct rmpool_nl *events, struct rmpool_nl *nl)
{
	const struct rmpool_nl_event *event;
	int error;

	/* What still waits is older than the lists that follow. */
	do
		error = rmpool_nl_event(events, &event);
	while ((error > 0 || error == -ENOBUFS) && !interrupted());
	if (error < 0 && error != -ENOBUFS)
		return error;
	if (output.json) {
		json_line("overrun", NULL, NULL);
	} else {
		print_time();
		print_line("overrun, resynced");
	}
	return show_all(nl);
}

/* Shows what has come. */
static int drain(struct rmpool_nl *events, struct rmpool_nl *nl)
{
	const struct rmpool_nl_event *event;
	int error = 1;

	while (error > 0 && !interrupted()) {
		error = rmpool_nl_event(events, &event);
		if (error > 0) {
			show_event(event);
		} else if (error == -ENOBUFS) {
			error = resync(events, nl);
			if (!error)
				error = 1;
		}
	}
	return error > 0 || error == -EINTR ? 0 : error;
}

/* Until a signal, --timeout or an error; the exit code. */
static int watch(struct rmpool_nl *events, struct rmpool_nl *nl, int fd)
{
	double end = clock_seconds() + timeout_ms / 1000.0;
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int error, wait = -1;

	while (!interrupted()) {
		if (timeout_ms > 0) {
			double left = end - clock_seconds();

			if (left <= 0)
				return EXIT_OK;
			wait = (int)(left * 1000) + 1;
		}
		if (poll(&poll_fd, 1, wait) <= 0)
			continue;
		error = drain(events, nl);
		if (error)
			return fail_library(error);
		if (ferror(stdout))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int run_monitor(int nr, const char *const *operands)
{
	struct rmpool_nl *events, *nl;
	const struct rmpool_nl_node *node;
	int error, fd, code;

	(void)nr;
	(void)operands;
	error = rmpool_nl_open(&events);
	if (error)
		return fail_open(error);
	fd = rmpool_nl_subscribe(events);
	if (fd < 0) {
		code = fail_library(fd);
		goto out_events;
	}
	error = rmpool_nl_open(&nl);
	if (error) {
		code = fail_open(error);
		goto out_events;
	}
	error = rmpool_nl_node_get(nl, &node);
	if (error) {
		code = fail_library(error);
		goto out;
	}
	interrupt_setup();
	/* From here on nothing is missed; whoever waits for that can go on. */
	if (output.json)
		json_line("monitoring", "node", describe_node(node));
	say("monitoring node %s; Ctrl-C ends", node->name);
	code = watch(events, nl, fd);
	interrupt_settle();
out:
	rmpool_nl_close(nl);
out_events:
	rmpool_nl_close(events);
	return code;
}

const struct command command_monitor = {
	.name = "monitor",
	.operands = "",
	.summary = "Show what changes: node, devices, peers, segments",
	.detail =
	"One line per event: the time, what it is about, and new, changed or gone.\n"
	"When events came too fast to be read, the line \"overrun, resynced\" is\n"
	"followed by all there is now. Needs CAP_NET_ADMIN. Ends with Ctrl-C or\n"
	"after --timeout. A rail that comes or fails while others of its peer are up is\n"
	"no event; see rmpool peer list.\n",
	.run = run_monitor,
};
