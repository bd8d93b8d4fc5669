/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What pure rooms as slice.c, sched.c and rights.c use of the kernel's headers; they also
 * compile in user space, where their unit tests run.
 */
#ifndef RMP_PURE_H
#define RMP_PURE_H

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include "wire_user.h"
#endif

#endif /* RMP_PURE_H */
