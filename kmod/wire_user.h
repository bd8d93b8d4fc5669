/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What wire.c, private.c and endpoint.c use of the kernel's headers, for building them in
 * user space, where they are unit-tested and fuzzed. Nothing of this is in the
 * module. Needs -I of this folder and of uapi/.
 */
#ifndef RMP_WIRE_USER_H
#define RMP_WIRE_USER_H

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/types.h>
#include <linux/rmpool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)
#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)

#endif /* RMP_WIRE_USER_H */
