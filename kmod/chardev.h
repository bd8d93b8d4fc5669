/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_CHARDEV_H
#define RMP_CHARDEV_H

int rmp_chardev_init(void);
/* All files are closed by then (they hold the module); waits for teardowns. */
void rmp_chardev_exit(void);

#endif /* RMP_CHARDEV_H */
