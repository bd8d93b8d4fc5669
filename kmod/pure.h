/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types of the pure rooms slice.c and sched.c, which also compile in user
 * space, where their unit tests run.
 */
#ifndef RMP_PURE_H
#define RMP_PURE_H

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/types.h>
#else
#include "wire_user.h"
#endif

#endif /* RMP_PURE_H */
