// SPDX-License-Identifier: MIT
/*
 * Files to and from the memory of peers: the commands put and get. The range is
 * checked against the regions of the segment before anything moves, and cut at
 * their borders, since one request stays within one region. A file that is got
 * appears under its name only when it is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <rmpool.h>

#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "pipeline.h"
#include "progress.h"
#include "units.h"

enum { CONNECT_MS = 30000 };	/* without --timeout */

struct transfer {
	const char *verb;	/* "put" or "get" */
	const char *address;	/* as it was given */
	const char *file;
	struct rmpool_address place;
	uint32_t access;	/* needed at the peer */
	struct rmpool_region_desc *regions;
	uint32_t nr_regions;
	uint64_t size;		/* of the segment: where its last region ends */
	struct pipeline pipe;
	struct progress progress;
	uint64_t total;		/* bytes to move, UINT64_MAX: until the file ends */
	uint64_t done;
	double seconds;
};

/* The error of something that a signal may have ended. */
static int fail_or_signal(const struct transfer *transfer, int error)
{
	char done[UNITS_TEXT_MAX];
	int signal = interrupted();

	if (error != -EINTR || !signal)
		return fail_library(error);
	return fail_text((enum exit_code)(EXIT_SIGNAL + signal), output.command,
			 "interrupted after %s",
			 format_bytes(done, sizeof(done), transfer->done));
}

static int fail_file(const struct transfer *transfer, int error)
{
	const char *name = transfer->file;

	if (error == -EINTR && interrupted())
		return fail_or_signal(transfer, error);
	if (!strcmp(name, "-"))
		name = transfer->access == RMPOOL_ACCESS_REMOTE_READ ? "standard output" :
								       "standard input";
	return fail_system(-error, "%s", name);
}

/* What the end of the segment is too early for. */
static void say_beyond(const struct transfer *transfer, uint64_t offset, char *why, size_t room)
{
	const char *lacks = transfer->access == RMPOOL_ACCESS_REMOTE_READ ? "it has no" :
									    "no room for";
	int used = snprintf(why, room, "the segment ends at %" PRIu64 ": %s ", transfer->size,
			    lacks);

	why += used;
	room -= (size_t)used;
	if (transfer->total && transfer->total != UINT64_MAX)
		snprintf(why, room, "%" PRIu64 " bytes from offset %" PRIu64 " on",
			 transfer->total, transfer->place.offset);
	else
		snprintf(why, room, "more bytes at offset %" PRIu64, offset);
}

/* The memory after a hole begins there; a hole is not at the end. */
static uint64_t hole_end(const struct transfer *transfer, uint64_t offset)
{
	uint32_t i = 0;

	while (transfer->regions[i].offset < offset)
		i++;
	return transfer->regions[i].offset;
}

/* The range is not as it must be at @offset, for the reason @number. */
static int fail_range(const struct transfer *transfer, uint64_t offset, int number)
{
	char why[160];

	if (number == ERANGE)
		say_beyond(transfer, offset, why, sizeof(why));
	else if (number == ENXIO)
		snprintf(why, sizeof(why), "the segment has no memory at offset %" PRIu64
			 ", the next begins at %" PRIu64, offset, hole_end(transfer, offset));
	else
		snprintf(why, sizeof(why), "peers may not %s at offset %" PRIu64,
			 transfer->access == RMPOOL_ACCESS_REMOTE_READ ? "read" : "write",
			 offset);
	return fail_why(number, why, "%s", transfer->address);
}

/* Opens pool and segment; an exit code. */
static int open_segment(struct transfer *transfer)
{
	struct pipeline *pipe = &transfer->pipe;
	const struct rmpool_region_desc *last;
	int error;

	error = rmpool_open(&pipe->pool, NULL, 0);
	if (error)
		return fail_open(error);
	error = rmpool_segment_open(pipe->pool, transfer->place.node,
				    transfer->place.segment,
				    timeout_ms ? timeout_ms : CONNECT_MS,
				    &pipe->segment, NULL);
	if (!error)
		error = rmpool_segment_regions(pipe->pool, pipe->segment,
					       &transfer->regions,
					       &transfer->nr_regions, NULL);
	if (error)
		return fail_or_signal(transfer, error);
	if (transfer->nr_regions) {
		last = &transfer->regions[transfer->nr_regions - 1];
		transfer->size = last->offset + last->length;
	}
	return EXIT_OK;
}

/* Checks the range and makes the buffers; an exit code. */
static int prepare(struct transfer *transfer)
{
	struct pipeline *pipe = &transfer->pipe;
	uint64_t reach;
	int number, error;

	if (transfer->total != UINT64_MAX) {
		reach = region_reach(transfer->regions, transfer->nr_regions,
				     transfer->place.offset, transfer->total,
				     transfer->access, &number);
		if (number)
			return fail_range(transfer, reach, number);
	}
	if (!transfer->total)
		return EXIT_OK;
	pipe->timeout_ms = timeout_ms < 0 ? UINT32_MAX : (uint32_t)timeout_ms;
	error = pipeline_open(pipe, transfer->total);
	return error ? fail_or_signal(transfer, error) : EXIT_OK;
}

/* Waits for the oldest piece, which must have gone well; an exit code. */
static int finish_oldest(struct transfer *transfer, struct slot **slot)
{
	int error = pipeline_oldest(&transfer->pipe, slot);
	int status;

	if (error)
		return fail_or_signal(transfer, error);
	status = (*slot)->end.status;
	if (status)
		return fail_why(-status, rmpool_status_text(status),
				"%s %zu bytes at %s/%s+%" PRIu64, transfer->verb,
				(*slot)->length, transfer->place.node,
				transfer->place.segment, (*slot)->offset);
	return EXIT_OK;
}

static void count(struct transfer *transfer, const struct slot *slot)
{
	transfer->done += slot->length;
	progress_update(&transfer->progress, transfer->done);
}

/* How much of the segment the next piece may take, or 0 and an exit code. */
static size_t next_piece(const struct transfer *transfer, uint64_t offset,
			 uint64_t left, int *code)
{
	int number;
	uint64_t span = region_span(transfer->regions, transfer->nr_regions, offset,
				    transfer->access, &number);

	if (!span) {
		*code = fail_range(transfer, offset, number);
		return 0;
	}
	if (span > left)
		span = left;
	return span < transfer->pipe.buffer ? (size_t)span : transfer->pipe.buffer;
}

/* Whether a file that fills the segment up to its end has more; or negative. */
static ssize_t read_more(struct transfer *transfer, int fd, uint64_t offset, int *code)
{
	struct slot *slot = pipeline_free_slot(&transfer->pipe);
	char byte;
	ssize_t got;
	size_t room;

	if (offset == transfer->size) {
		got = read_full(fd, &byte, 1);
		if (got > 0)
			*code = fail_range(transfer, offset, ERANGE);
	} else {
		room = next_piece(transfer, offset, UINT64_MAX, code);
		if (!room)
			return -1;
		got = read_full(fd, slot->memory, room);
		slot->offset = offset;
		slot->length = got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		*code = fail_file(transfer, (int)got);
	return got;
}

static int put_all(struct transfer *transfer, int fd)
{
	uint64_t offset = transfer->place.offset;
	struct pipeline *pipe = &transfer->pipe;
	int error, code = EXIT_OK;
	bool ended = false;
	struct slot *slot;
	ssize_t got;

	while (!ended || pipe->used) {
		/* What has gone wrong need not wait until all slots are full. */
		if (!ended && pipeline_free_slot(pipe) && !pipeline_ready(pipe)) {
			got = read_more(transfer, fd, offset, &code);
			if (code)
				return code;
			ended = !got;
			if (ended)
				continue;
			offset += (uint64_t)got;
			error = pipeline_submit(pipe);
			if (error)
				return fail_or_signal(transfer, error);
			continue;
		}
		code = finish_oldest(transfer, &slot);
		if (code)
			return code;
		count(transfer, slot);
		pipeline_release(pipe);
	}
	return EXIT_OK;
}

static int get_all(struct transfer *transfer, int fd)
{
	uint64_t offset = transfer->place.offset;
	uint64_t left = transfer->total;
	struct pipeline *pipe = &transfer->pipe;
	int error, code = EXIT_OK;
	struct slot *slot;

	while (left || pipe->used) {
		slot = pipeline_free_slot(pipe);
		if (left && slot) {
			slot->offset = offset;
			slot->length = next_piece(transfer, offset, left, &code);
			if (code)
				return code;
			offset += slot->length;
			left -= slot->length;
			error = pipeline_submit(pipe);
			if (error)
				return fail_or_signal(transfer, error);
			continue;
		}
		code = finish_oldest(transfer, &slot);
		if (code)
			return code;
		error = write_full(fd, slot->memory, slot->length);
		if (error)
			return fail_file(transfer, error);
		count(transfer, slot);
		pipeline_release(pipe);
	}
	return EXIT_OK;
}

/* Moves it all, with progress and time; an exit code. */
static int move(struct transfer *transfer, int fd,
		int (*all)(struct transfer *transfer, int fd))
{
	int code;

	progress_start(&transfer->progress, transfer->verb,
		       transfer->total == UINT64_MAX ? 0 : transfer->total, output.quiet);
	code = all(transfer, fd);
	transfer->seconds = clock_seconds() - transfer->progress.start;
	wipe_progress();
	return code;
}

static void close_transfer(struct transfer *transfer)
{
	/* What ended the transfer must not end its clearing up as well. */
	interrupt_settle();
	pipeline_close(&transfer->pipe);
	free(transfer->regions);
	rmpool_close(transfer->pipe.pool);
}

static void report(const struct transfer *transfer, const char *preposition, FILE *to)
{
	char size[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX];
	double rate = transfer->done ? (double)transfer->done / transfer->seconds : 0;

	if (output.json) {
		print_json(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f}",
			"operation", transfer->verb,
			"file", json_text(transfer->file),
			"node", json_text(transfer->place.node),
			"segment", json_text(transfer->place.segment),
			"offset", json_u64(transfer->place.offset),
			"bytes", json_u64(transfer->done),
			"seconds", transfer->seconds,
			"MB_per_s", rate / 1e6));
		return;
	}
	if (output.quiet)
		return;
	format_exact(size, sizeof(size), transfer->done);
	format_rate(speed, sizeof(speed), rate);
	fprintf(to, "%s %s %s %s in %.3f s, %s\n", transfer->verb, size, preposition,
		transfer->address, transfer->seconds, speed);
}

/* Reads NODE/SEGMENT[+OFFSET]; an exit code. */
static int read_place(struct transfer *transfer, const char *text)
{
	transfer->address = text;
	if (rmpool_address_parse(text, &transfer->place))
		return fail_text(EXIT_USAGE, output.command, "%s", rmpool_error());
	return EXIT_OK;
}

static int run_put(int nr, const char *const *operands)
{
	struct transfer transfer = {
		.verb = "put",
		.file = operands[0],
		.access = RMPOOL_ACCESS_REMOTE_WRITE,
		.pipe.op = RMPOOL_OP_PUT,
		.total = UINT64_MAX,
	};
	struct stat stat;
	int fd, code;

	(void)nr;
	code = read_place(&transfer, operands[1]);
	if (code)
		return code;
	interrupt_setup();
	if (!strcmp(transfer.file, "-"))
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		fd = open(transfer.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		return fail_file(&transfer, -errno);
	if (S_ISREG(stat.st_mode)) {
		off_t at = lseek(fd, 0, SEEK_CUR);

		/* Standard input may have been read in part; and files in /proc
		 * have no size, but text.
		 */
		if (stat.st_size > at)
			transfer.total = (uint64_t)(stat.st_size - at);
	}
	code = open_segment(&transfer);
	if (!code)
		code = prepare(&transfer);
	if (!code)
		code = move(&transfer, fd, put_all);
	close_transfer(&transfer);
	close(fd);
	if (!code)
		report(&transfer, "to", stdout);
	return code;
}

const struct command command_put = {
	.name = "put",
	.operands = "FILE NODE/SEGMENT[+OFFSET]",
	.summary = "Write a file into the memory of a peer",
	.detail =
	"FILE may be - for standard input. NODE is a name of the peer table. OFFSET\n"
	"is a number of bytes, decimal or 0x..., with K, M, G or T for powers of 1024.\n"
	"--timeout is for connecting (30 seconds if not given) and for each piece of\n"
	"at most 4 MiB. MB/s are 1000000 bytes per second.\n",
	.min = 2,
	.max = 2,
	.run = run_put,
};

/* LENGTH, once the size of the segment is known; an exit code. */
static int find_total(struct transfer *transfer, const char *text)
{
	if (strcmp(text, "all"))
		return EXIT_OK;
	if (transfer->place.offset > transfer->size)
		return fail_range(transfer, transfer->place.offset, ERANGE);
	transfer->total = transfer->size - transfer->place.offset;
	return EXIT_OK;
}

static int get_file(struct transfer *transfer)
{
	struct new_file file;
	int error, code;

	error = new_file_begin(&file, transfer->file);
	if (error)
		return fail_file(transfer, error);
	code = move(transfer, file.fd, get_all);
	if (code) {
		new_file_abort(&file);
		return code;
	}
	error = new_file_commit(&file);
	return error ? fail_file(transfer, error) : EXIT_OK;
}

static int run_get(int nr, const char *const *operands)
{
	struct transfer transfer = {
		.verb = "get",
		.file = operands[2],
		.access = RMPOOL_ACCESS_REMOTE_READ,
		.pipe.op = RMPOOL_OP_GET,
	};
	bool to_stdout = !strcmp(transfer.file, "-");
	const char *wrong = NULL;
	int code;

	(void)nr;
	code = read_place(&transfer, operands[0]);
	if (code)
		return code;
	if (strcmp(operands[1], "all"))
		wrong = parse_size(operands[1], &transfer.total);
	if (wrong)
		return fail_text(EXIT_USAGE, operands[1], "%s, and not 'all'", wrong);
	if (to_stdout && output.json)
		return fail_text(EXIT_USAGE, "get",
				 "standard output cannot have both the data and JSON");
	interrupt_setup();
	code = open_segment(&transfer);
	if (!code)
		code = find_total(&transfer, operands[1]);
	if (!code)
		code = prepare(&transfer);
	if (!code)
		code = get_file(&transfer);
	close_transfer(&transfer);
	if (!code)
		report(&transfer, "from", to_stdout ? stderr : stdout);
	return code;
}

const struct command command_get = {
	.name = "get",
	.operands = "NODE/SEGMENT[+OFFSET] LENGTH FILE",
	.summary = "Read the memory of a peer into a file",
	.detail =
	"LENGTH is a number of bytes as OFFSET is, or all: up to the end of the\n"
	"segment. FILE may be - for standard output; another file is replaced only\n"
	"when all bytes are there, and stays as it was otherwise. NODE, OFFSET and\n"
	"--timeout as for put. MB/s are 1000000 bytes per second.\n",
	.min = 3,
	.max = 3,
	.run = run_get,
};
