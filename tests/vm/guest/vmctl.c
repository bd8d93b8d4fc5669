// SPDX-License-Identifier: MIT
/*
 * vmctl - a test in a VM talks to the harness on the host.
 *
 * One command, one answer, over a virtio-serial port. A port can be opened by
 * one process at a time, so the harness provides several ("rmpool.ctl.N") and
 * each call takes the first free one for its life. Text frames, one a line:
 *
 *   Q ID COMMAND ARG...		from here, arguments %-escaped
 *   R ID STATUS TEXT			answer: exit status and text for stdout
 *
 * The id is new for each call: what an earlier, killed caller left unread on
 * the port does not match and is skipped. A request is written with a single
 * write() below 32 KiB, which the port driver takes whole.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#define FRAME_MAX	(24 * 1024)
#define UPLOAD_BLOCK	7168	/* times three, escaped, still fits a frame */
#define PORTS		"/sys/class/virtio-ports"
#define PORT_NAME	"rmpool.ctl."

static _Noreturn void die(const char *fmt, ...)
{
	va_list ap;

	fputs("vmctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(125);
}

static const char usage[] =
	"usage: vmctl COMMAND [ARG...]\n"
	"  ok NAME | not_ok NAME WHY | skip NAME WHY   report one test\n"
	"  barrier NAME [SECONDS]    wait until each VM of this run is here\n"
	"  put KEY VALUE             tell a value to all VMs\n"
	"  get KEY [SECONDS]         wait for a value and print it\n"
	"  qmp VM stop|cont          freeze a VM, let it go on\n"
	"  qmp VM kill|boot          power off without a warning, and on again\n"
	"  qmp VM link RAIL on|off   carrier of a VM's network card\n"
	"  log TEXT                  a line for the person at the terminal\n"
	"  upload NAME               keep stdin as a file beside the logs\n"
	"Exit status 0, 1 if it failed or time ran out, 125 for a broken channel.\n";

/* Opens the first free control port, or returns -1 if all are in use. */
static int try_ports(void)
{
	char path[600], name[64];
	struct dirent *e;
	int fd = -1, seen = 0;
	DIR *dir;

	dir = opendir(PORTS);
	if (!dir)
		die("no %s: not in a test VM?", PORTS);
	/* cppcheck-suppress readdirCalled ; only readdir() of one stream is shared */
	while (fd < 0 && (e = readdir(dir))) {
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), PORTS "/%s/name", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (!fgets(name, sizeof(name), f))
			name[0] = 0;
		fclose(f);
		if (strncmp(name, PORT_NAME, strlen(PORT_NAME)))
			continue;
		seen++;
		snprintf(path, sizeof(path), "/dev/%s", e->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno != EBUSY)
			die("%s: %s", path, strerror(errno));
	}
	closedir(dir);
	if (!seen)
		die("no control port: not in a test VM?");
	return fd;
}

static size_t escape(char *out, size_t room, const char *in, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)in[i];

		if (n + 4 > room)
			die("arguments too long");
		if (isalnum(c) || strchr("-_./:,+=@", c)) {
			out[n++] = (char)c;
		} else {
			out[n++] = '%';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		}
	}
	return n;
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static void print_unescaped(const char *s)
{
	for (; *s; s++) {
		if (*s == '%' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
			putchar(digit(s[1]) << 4 | digit(s[2]));
			s += 2;
		} else {
			putchar(*s);
		}
	}
}

/* Reads one line; the answer to a long wait may take long, so no limit here. */
static ssize_t read_line(int fd, char *line, size_t room)
{
	static char buf[4096];
	static size_t have, at;
	size_t n = 0;

	for (;;) {
		if (at == have) {
			ssize_t got = read(fd, buf, sizeof(buf));

			if (got < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (got <= 0)
				return -1;
			have = (size_t)got;
			at = 0;
		}
		if (buf[at] == '\n') {
			at++;
			line[n] = 0;
			return (ssize_t)n;
		}
		if (n + 1 < room)
			line[n++] = buf[at];
		at++;
	}
}

struct arg {
	const char *text;
	size_t len;
};

static int call(int fd, int argc, const struct arg *argv)
{
	static char frame[FRAME_MAX], line[64 * 1024];
	char id[17], *text;
	uint64_t rnd;
	size_t n;
	int status;

	if (getrandom(&rnd, sizeof(rnd), GRND_NONBLOCK) != sizeof(rnd))
		rnd = (uint64_t)getpid() << 32 | (uint64_t)argc;
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)rnd);
	n = (size_t)snprintf(frame, sizeof(frame), "Q %s", id);
	for (int i = 0; i < argc; i++) {
		frame[n++] = ' ';
		n += escape(frame + n, sizeof(frame) - n - 2, argv[i].text, argv[i].len);
	}
	frame[n++] = '\n';
	if (write(fd, frame, n) != (ssize_t)n)
		die("cannot write to the harness: %s", strerror(errno));

	while (read_line(fd, line, sizeof(line)) >= 0) {
		if (strncmp(line, "R ", 2) || strncmp(line + 2, id, 16))
			continue;
		status = (int)strtol(line + 18, &text, 10);
		if (text == line + 18)
			die("answer not understood: %s", line);
		print_unescaped(text + strspn(text, " "));
		fflush(stdout);
		return status;
	}
	die("the harness is gone");
}

static int upload(int fd, const char *name)
{
	static char block[UPLOAD_BLOCK];
	char offset[24];
	struct arg args[4] = { { "upload", 6 }, { name, strlen(name) }, { offset, 0 }, { block, 0 } };
	size_t total = 0;
	int status = 0;

	do {
		size_t got = fread(block, 1, sizeof(block), stdin);

		args[2].len = (size_t)snprintf(offset, sizeof(offset), "%zu", total);
		args[3].len = got;
		status = call(fd, 4, args);
		total += got;
	} while (!status && !feof(stdin) && !ferror(stdin));
	return status;
}

int main(int argc, char **argv)
{
	struct arg args[32];
	int fd;

	if (argc < 2 || !strcmp(argv[1], "--help")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 125 : 0;
	}
	if (argc > 32)
		die("too many arguments");
	while ((fd = try_ports()) < 0)
		poll(NULL, 0, 20);	/* all in use: their owners will end */
	if (!strcmp(argv[1], "upload") && argc == 3)
		return upload(fd, argv[2]);
	for (int i = 1; i < argc; i++) {
		args[i - 1].text = argv[i];
		args[i - 1].len = strlen(argv[i]);
	}
	return call(fd, argc - 1, args);
}
