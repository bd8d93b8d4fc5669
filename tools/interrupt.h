/* SPDX-License-Identifier: MIT */
/*
 * Ending early: SIGINT, SIGTERM and SIGHUP set a flag instead of killing, so
 * that whoever waits can leave nothing behind.
 */
#ifndef RMPOOL_TOOL_INTERRUPT_H
#define RMPOOL_TOOL_INTERRUPT_H

#include <signal.h>

/* From now on signals interrupt every blocking call with EINTR. */
void interrupt_setup(void);
/* The signal that came, or 0. */
int interrupted(void);
/*
 * The signal is dealt with: interrupted() is 0, and what cleans up may block,
 * until another signal comes.
 */
void interrupt_settle(void);
/* The signals meant, for sigprocmask(). */
void interrupt_set(sigset_t *set);

#endif
