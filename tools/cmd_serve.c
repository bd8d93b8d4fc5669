// SPDX-License-Identifier: MIT
/*
 * Memory for others: the command serve. It publishes a segment with one region
 * and holds it until a signal. The region is anonymous memory, so nothing but
 * this process and its peers changes it. Peers write it while this process
 * looks at it, for SIGUSR1 or --save: what such a look shows is of one piece
 * only if they pause.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <rmpool.h>

#include "command.h"
#include "describe.h"
#include "digest.h"
#include "files.h"
#include "interrupt.h"
#include "units.h"

static uint64_t size_wanted, offset_wanted;
static const char *file_name, *save_name;
static bool read_only;
static struct option_texts allow;

static const struct option_def serve_options[] = {
	{ "size", 's', OPTION_SIZE, &size_wanted, "SIZE",
	  "How much memory, zeros but for the file" },
	{ "file", 'f', OPTION_TEXT, &file_name, "FILE",
	  "What is in it at the beginning" },
	{ "offset", 'o', OPTION_SIZE, &offset_wanted, "OFFSET",
	  "Where in the segment it begins (default 0)" },
	{ "read-only", 'r', OPTION_FLAG, &read_only, NULL,
	  "Peers may get, but not put" },
	{ "allow", 'a', OPTION_TEXTS, &allow, "PEER[:ro|:wo|:rw|:no]",
	  "Only this peer may open it; may be given several\ntimes (@GROUP: those of a trust group, *: others)" },
	{ "save", 0, OPTION_TEXT, &save_name, "FILE",
	  "At the end, write what is in it then" },
	{ 0 },
};

struct served {
	const char *name;
	char address[2 * RMPOOL_NAME_MAX + 1];	/* node/segment */
	void *memory;
	size_t length;
	uint64_t offset;
	uint32_t segment, region;
	struct rmpool_allow_entry allowed[OPTION_TEXTS_MAX];
};

static volatile sig_atomic_t digest_wanted;

static void on_digest(int number)
{
	(void)number;
	digest_wanted = 1;
}

/* Fills @served->memory from the file; an exit code. */
static int load(struct served *served, int fd)
{
	ssize_t got = read_full(fd, served->memory, served->length);
	char more;

	if (got == -EINTR)
		return fail_signal(interrupted());
	if (got < 0)
		return fail_system((int)-got, "%s", file_name);
	if ((size_t)got < served->length || read_full(fd, &more, 1) <= 0)
		return EXIT_OK;
	if (!size_wanted)
		return fail_text(EXIT_FAILED, file_name, "the file grew while it was read");
	return fail_text(EXIT_USAGE, file_name,
			 "the file is larger than --size, %zu bytes", served->length);
}

/* How much memory: of --size, else of the file; an exit code. */
static int find_length(int fd, size_t *length)
{
	struct stat stat;
	uint64_t size = size_wanted;

	if (!size && fd >= 0) {
		if (fstat(fd, &stat))
			return fail_system(errno, "%s", file_name);
		if (S_ISDIR(stat.st_mode))
			return fail_system(EISDIR, "%s", file_name);
		if (!S_ISREG(stat.st_mode))
			return fail_text(EXIT_USAGE, file_name,
					 "not a regular file; say with --size how much to read");
		size = (uint64_t)stat.st_size;
		if (!size)
			return fail_text(EXIT_USAGE, file_name,
					 "the file is empty; give a --size as well");
	}
	if (size > SIZE_MAX)
		return fail_system(ENOMEM, "serve");
	if (offset_wanted > UINT64_MAX - size)
		return fail_text(EXIT_USAGE, "serve", "offset %" PRIu64 " and %" PRIu64
				 " bytes are more than 64 bits hold", offset_wanted, size);
	*length = (size_t)size;
	return EXIT_OK;
}

static int make_memory(struct served *served)
{
	int fd = -1, code;

	if (file_name) {
		fd = open(file_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return errno == EINTR ? fail_signal(interrupted()) :
						fail_system(errno, "%s", file_name);
	}
	code = find_length(fd, &served->length);
	if (code)
		goto out;
	served->memory = mmap(NULL, served->length, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (served->memory == MAP_FAILED) {
		served->memory = NULL;
		code = fail_system(errno, "%zu bytes of memory", served->length);
		goto out;
	}
	/* Fewer and larger pages are fewer entries of a device's tables. */
	madvise(served->memory, served->length, MADV_HUGEPAGE);
	if (fd >= 0)
		code = load(served, fd);
out:
	if (fd >= 0)
		close(fd);
	return code;
}

static int publish(struct rmpool *pool, struct served *served)
{
	uint32_t access = RMPOOL_ACCESS_REMOTE_READ;
	struct rmpool_info info;
	int error;

	if (!read_only)
		access |= RMPOOL_ACCESS_REMOTE_WRITE;
	error = rmpool_info(pool, &info, sizeof(info));
	if (!error)
		error = rmpool_publish(pool, served->name, &served->segment);
	/* Before there is anything to be had. */
	if (!error && allow.nr)
		error = rmpool_segment_allow(pool, served->segment, served->allowed, allow.nr);
	if (error >= 0)
		error = rmpool_register(pool, served->memory, served->length, access,
					served->segment, offset_wanted, &served->region,
					&served->offset);
	if (error == -EINTR && interrupted())
		return fail_signal(interrupted());
	if (error)
		return fail_library(error);
	snprintf(served->address, sizeof(served->address), "%.63s/%.63s", info.node_name,
		 served->name);
	return EXIT_OK;
}

static json_t *event_json(const char *event, const struct served *served)
{
	return need_memory(json_pack("{s:s, s:o, s:o, s:o, s:o, s:i}",
		"event", event,
		"address", json_text(served->address),
		"segment", json_text(served->name),
		"offset", json_u64(served->offset),
		"bytes", json_u64(served->length),
		"pid", (int)getpid()));
}

static void tell_ready(const struct served *served)
{
	char size[UNITS_TEXT_MAX];
	json_t *event;

	if (output.json) {
		event = event_json("ready", served);
		json_object_set_new(event, "access", describe_access(
			RMPOOL_ACCESS_REMOTE_READ |
			(read_only ? 0 : RMPOOL_ACCESS_REMOTE_WRITE)));
		print_json_line(event);
		return;
	}
	say("ready: %s+%" PRIu64 ", %s, %s may %s; Ctrl-C ends", served->address,
	    served->offset, format_exact(size, sizeof(size), served->length),
	    allow.nr ? "peers that are allowed" : "peers",
	    read_only ? "read" : "read and write");
}

static void tell_digest(const struct served *served)
{
	char text[DIGEST_TEXT_MAX];
	int error = digest_memory(served->memory, served->length, text);
	json_t *event;

	if (error == -EINTR)
		return;
	if (error) {
		fail_system(-error, "sha256sum");
	} else if (output.json) {
		event = event_json("sha256", served);
		json_object_set_new(event, "sha256", json_text(text));
		print_json_line(event);
	} else {
		/* Asked for, so also with --quiet; as sha256sum(1) writes it. */
		print_line("%s  %s", text, served->address);
	}
}

/* Returns when a signal ends it. */
static void hold(const struct served *served)
{
	sigset_t watched, before;

	interrupt_set(&watched);
	sigaddset(&watched, SIGUSR1);
	/* Blocked but in sigsuspend(), so none comes between look and sleep. */
	sigprocmask(SIG_BLOCK, &watched, &before);
	while (!interrupted()) {
		if (!digest_wanted) {
			sigsuspend(&before);
			continue;
		}
		digest_wanted = 0;
		sigprocmask(SIG_SETMASK, &before, NULL);
		tell_digest(served);
		sigprocmask(SIG_BLOCK, &watched, NULL);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/*
 * A mistake in the name is to show before there is something to lose. What is no
 * regular file is not opened: a reader at its other end would take notice.
 */
static int check_save(void)
{
	struct new_file file;
	struct stat there;
	int error;

	if (!strcmp(save_name, "-"))
		return EXIT_OK;
	if (!stat(save_name, &there) && !S_ISREG(there.st_mode)) {
		error = S_ISDIR(there.st_mode) ? -EISDIR :
			access(save_name, W_OK) ? -errno : 0;
	} else {
		error = new_file_begin(&file, save_name);
		if (!error)
			new_file_abort(&file);
	}
	return error ? fail_system(-error, "%s", save_name) : EXIT_OK;
}

static int save(const struct served *served)
{
	struct new_file file;
	int error = new_file_begin(&file, save_name);

	if (!error) {
		error = write_full(file.fd, served->memory, served->length);
		if (error)
			new_file_abort(&file);
		else
			error = new_file_commit(&file);
	}
	return error ? fail_system(-error, "%s", save_name) : EXIT_OK;
}

/* Takes it back, so that nobody changes it any more; an exit code. */
static int withdraw(struct rmpool *pool, const struct served *served)
{
	int error = rmpool_unregister(pool, served->region);

	if (!error)
		error = rmpool_unpublish(pool, served->segment);
	if (error)
		return fail_library(error);
	return save_name ? save(served) : EXIT_OK;
}

static int read_allowed(struct served *served)
{
	for (unsigned int i = 0; i < allow.nr; i++) {
		if (rmpool_allow_parse(allow.text[i], &served->allowed[i]))
			return fail_text(EXIT_USAGE, "--allow", "%s", rmpool_error());
	}
	return EXIT_OK;
}

static int run_serve(int nr, const char *const *operands)
{
	struct sigaction action = { .sa_handler = on_digest };
	struct served served = { .name = operands[0] };
	struct rmpool *pool;
	int error, code;

	(void)nr;
	if (!size_wanted && !file_name)
		return fail_text(EXIT_USAGE, "serve",
				 "give a --size above 0 or a --file, or both");
	code = read_allowed(&served);
	if (!code && save_name)
		code = check_save();
	if (code)
		return code;
	/* Before the ready line, since whoever reads it may send it at once. */
	sigaction(SIGUSR1, &action, NULL);
	/* A reader of our lines, or sha256sum, may go without us. */
	signal(SIGPIPE, SIG_IGN);
	interrupt_setup();

	error = rmpool_open(&pool, NULL, 0);
	if (error)
		return fail_open(error);
	code = make_memory(&served);
	if (!code)
		code = publish(pool, &served);
	if (!code) {
		tell_ready(&served);
		hold(&served);
		/* The first signal ends it well, the next one cuts it short. */
		interrupt_settle();
		code = withdraw(pool, &served);
	}
	if (!code) {
		if (output.json)
			print_json_line(event_json("withdrawn", &served));
		say("withdrawn: %s", served.address);
	}
	rmpool_close(pool);
	if (served.memory)
		munmap(served.memory, served.length);
	return code;
}

const struct command command_serve = {
	.name = "serve",
	.operands = "NAME",
	.summary = "Publish memory under a name and hold it",
	.detail =
	"Memory of --size bytes, of the size of --file, or both, is locked and can be\n"
	"reached by peers as NODE/NAME until SIGINT (Ctrl-C) or SIGTERM: by all, or by\n"
	"those that --allow names, as the peer table here calls them. ro lets a peer\n"
	"read, wo write, rw both, as with nothing behind the name, and no nothing.\n"
	"The first line of output says that it is ready. SIGUSR1 prints the SHA-256 of\n"
	"what is in it now. Locked memory counts against RLIMIT_MEMLOCK (ulimit -l).\n",
	.options = serve_options,
	.min = 1,
	.max = 1,
	.run = run_serve,
};
