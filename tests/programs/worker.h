/* SPDX-License-Identifier: MIT */
/*
 * For test programs that are root: processes of ordinary users, who open the device and
 * do what they are told, one thing after the other.
 */
#ifndef WORKER_H
#define WORKER_H

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmpool.h>
#include "clock.h"
#include "report.h"

#define PAGE	4096UL
#define KIB	1024UL
#define MIB	(1024UL * KIB)
#define GROUP	65534U
#define FILES	2U		/* that a process may have open */
#define REGIONS	64U		/* that a process may have */
#define ROUNDS	40
#define PATIENCE 30		/* seconds */

/* What a process can be told to do. */
enum {
	OPEN,			/* the file @file */
	REGISTER,		/* @bytes of new memory with the file @file */
	HOLE,			/* the same, with a page missing at the end */
	UNREGISTER,		/* what was registered last */
	LOOK,			/* only answer */
	BECOME,			/* @user, whose effective user is @effective */
	FORK,			/* a child opens a file and registers @bytes with it */
	LOCKABLE,		/* RLIMIT_MEMLOCK becomes @bytes */
	PRESS,			/* registers @bytes and unregisters them, ROUNDS times */
	LEAVE,			/* exits, with all that is registered */
};

struct order {
	uint32_t what;
	uint32_t file;
	uint32_t user;
	uint32_t effective;
	uint64_t bytes;
};

struct answer {
	int ret;
	struct rmpool_error why;
	char text[300];
	struct rmpool_info info;	/* of the file */
	long vm_pin;
};

/* How a process is. */
#define CHANGES		1U	/* it may become somebody else */
#define LOCKS		2U	/* it has CAP_IPC_LOCK */

struct worker {
	pid_t pid;
	int to;
};

/* ------------------------------------------------------------------ the processes */

static struct {
	struct rmpool *pools[FILES];
	struct {
		uint32_t handle, file;
		void *at;
		uint64_t bytes;
	} regions[REGIONS];
	uint32_t nr;
} mine;

static inline int register_bytes(uint32_t file, uint64_t bytes, bool hole)
{
	uint32_t handle;
	void *at;
	int ret;

	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || mine.nr == REGIONS)
		give_up("no memory");
	if (hole)
		munmap((uint8_t *)at + bytes - PAGE, PAGE);
	ret = rmpool_register(mine.pools[file], at, bytes, RMPOOL_ACCESS_ALL, 0, 0, &handle,
			      NULL);
	if (ret) {
		munmap(at, bytes - (hole ? PAGE : 0));
		return ret;
	}
	mine.regions[mine.nr].handle = handle;
	mine.regions[mine.nr].file = file;
	mine.regions[mine.nr].at = at;
	mine.regions[mine.nr].bytes = bytes;
	mine.nr++;
	return 0;
}

static inline int unregister_last(void)
{
	int ret;

	if (!mine.nr)
		return -ENOENT;
	mine.nr--;
	ret = rmpool_unregister(mine.pools[mine.regions[mine.nr].file],
				mine.regions[mine.nr].handle);
	munmap(mine.regions[mine.nr].at, mine.regions[mine.nr].bytes);
	return ret;
}

/* Who may become root again does so in between. */
static inline int become(const struct order *order)
{
	if (seteuid(0) || setresuid(order->user, order->effective, 0))
		return -errno;
	return 0;
}

/* How often it was refused; then it tries again, so each round is done at last. Other
 * errors are in no order.
 */
static inline int press(uint64_t bytes)
{
	double until = now() + patience(PATIENCE * 2);
	int refused = 0, ret, i;

	for (i = 0; i < ROUNDS; i++) {
		for (;;) {
			ret = register_bytes(0, bytes, false);
			if (ret != -ENOMEM || now() > until ||
			    rmpool_error_detail()->reason != RMPOOL_REASON_USER_PINNED)
				break;
			refused++;
			pause_ms(1);
		}
		if (!ret)
			ret = unregister_last();
		if (ret)
			return ret;
	}
	return refused;
}

static inline void answer(int to, int ret, uint32_t file)
{
	struct answer a = { .ret = ret, .vm_pin = status_value("VmPin") };

	if (ret < 0) {
		a.why = *rmpool_error_detail();
		snprintf(a.text, sizeof(a.text), "%s", rmpool_error());
	}
	if (mine.pools[file] && rmpool_info(mine.pools[file], &a.info, sizeof(a.info)))
		give_up("%s", rmpool_error());
	if (send(to, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
		_exit(2);
}

/* The child answers. What it inherited is of no use to it. */
static inline void fork_and_register(int to, const struct order *order)
{
	pid_t child = fork();
	int ret;

	if (!child) {
		ret = register_bytes(order->file, PAGE, false);
		if (ret != -EPERM)
			give_up("with an inherited file: %d", ret);
		if (rmpool_open(&mine.pools[order->file], NULL, 0))
			give_up("%s", rmpool_error());
		answer(to, register_bytes(order->file, order->bytes, false), order->file);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		give_up("fork: %s", strerror(errno));
}

static inline void obey(int to, const struct order *order)
{
	const struct rlimit lockable = { .rlim_cur = order->bytes, .rlim_max = order->bytes };
	int ret = 0;

	switch (order->what) {
	case OPEN:
		ret = rmpool_open(&mine.pools[order->file], NULL, 0);
		break;
	case REGISTER:
	case HOLE:
		ret = register_bytes(order->file, order->bytes, order->what == HOLE);
		break;
	case UNREGISTER:
		ret = unregister_last();
		break;
	case BECOME:
		ret = become(order);
		break;
	case FORK:
		fork_and_register(to, order);
		return;
	case LOCKABLE:
		if (setrlimit(RLIMIT_MEMLOCK, &lockable))
			ret = -errno;
		break;
	case PRESS:
		ret = press(order->bytes);
		break;
	}
	answer(to, ret, order->file);
	if (order->what == LEAVE)
		exit(0);
}

/* CAP_IPC_LOCK and nothing else. */
static inline void keep_lock_only(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1U << CAP_IPC_LOCK } };

	data[0].permitted = data[0].effective;
	if (syscall(SYS_capset, &head, data))
		give_up("capset: %s", strerror(errno));
}

/* The group of the device, so that everybody here may open it. */
static inline void be_user(uint32_t user, uint32_t how)
{
	const struct rlimit none = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	struct stat device;
	gid_t group;

	if (stat(RMPOOL_DEVICE_PATH, &device))
		give_up("%s: %s", RMPOOL_DEVICE_PATH, strerror(errno));
	group = device.st_gid;
	if (setrlimit(RLIMIT_MEMLOCK, &none) || setgroups(1, &group) ||
	    setresgid(GROUP, GROUP, GROUP) || prctl(PR_SET_KEEPCAPS, how & LOCKS ? 1 : 0) ||
	    setresuid(user, user, how & CHANGES ? 0 : user))
		give_up("user %u: %s", user, strerror(errno));
	if (how & LOCKS)
		keep_lock_only();
}

static inline void work(int to, uint32_t user, uint32_t how)
{
	struct order order;

	be_user(user, how);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(to, &order, sizeof(order), 0) == (ssize_t)sizeof(order))
		obey(to, &order);
	_exit(0);
}

/* ------------------------------------------------------------- who tells them what */

static inline struct answer hear(const struct worker *w)
{
	struct answer a;

	if (recv(w->to, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
		give_up("a process does not answer");
	return a;
}

static inline void tell(const struct worker *w, const struct order *order)
{
	if (send(w->to, order, sizeof(*order), 0) != (ssize_t)sizeof(*order))
		give_up("a process is gone");
}

static inline struct answer ask_file(const struct worker *w, uint32_t what, uint32_t file,
			      uint64_t bytes)
{
	const struct order order = { .what = what, .file = file, .bytes = bytes };

	tell(w, &order);
	return hear(w);
}

static inline struct answer ask(const struct worker *w, uint32_t what, uint64_t bytes)
{
	return ask_file(w, what, 0, bytes);
}

/* A process of a user, with a file open. */
static inline struct worker start(uint32_t user, uint32_t how)
{
	struct worker w;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		give_up("socketpair: %s", strerror(errno));
	fflush(stdout);
	w.pid = fork();
	if (w.pid < 0)
		give_up("fork: %s", strerror(errno));
	if (!w.pid) {
		close(pair[0]);
		work(pair[1], user, how);
	}
	close(pair[1]);
	w.to = pair[0];
	if (ask(&w, OPEN, 0).ret)
		give_up("user %u cannot open the device", user);
	return w;
}

static inline void worker_end(struct worker *w)
{
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	close(w->to);
}

#endif /* WORKER_H */
