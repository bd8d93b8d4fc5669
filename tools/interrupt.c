// SPDX-License-Identifier: MIT
/*
 * Ending early; see interrupt.h. A signal that comes between the look at the
 * flag and the system call that blocks would be lost. So the first one starts
 * a timer that interrupts again and again, until interrupt_settle().
 *
 * The handlers touch a sig_atomic_t variable and setitimer(), which is only a
 * system call.
 */
#include <stdbool.h>
#include <sys/time.h>

#include "interrupt.h"

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
enum { NR_ENDING = sizeof(ending) / sizeof(ending[0]) };

static volatile sig_atomic_t signal_seen;

static void set_timer(bool on)
{
	const struct itimerval every = {
		.it_interval.tv_usec = on ? 50000 : 0,
		.it_value.tv_usec = on ? 50000 : 0,
	};

	setitimer(ITIMER_REAL, &every, NULL);
}

static void on_signal(int number)
{
	signal_seen = number;
	set_timer(true);
}

static void on_timer(int number)
{
	(void)number;
}

void interrupt_setup(void)
{
	/* Without SA_RESTART: that is the point. */
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction now;
	int i;

	for (i = 0; i < NR_ENDING; i++) {
		/* Ignored by who started us, as nohup does: stays so. */
		sigaction(ending[i], NULL, &now);
		if (now.sa_handler != SIG_IGN || ending[i] == SIGTERM)
			sigaction(ending[i], &action, NULL);
	}
	action.sa_handler = on_timer;
	sigaction(SIGALRM, &action, NULL);
}

int interrupted(void)
{
	return signal_seen;
}

void interrupt_settle(void)
{
	set_timer(false);
	signal_seen = 0;
}

void interrupt_set(sigset_t *set)
{
	int i;

	sigemptyset(set);
	for (i = 0; i < NR_ENDING; i++)
		sigaddset(set, ending[i]);
}
