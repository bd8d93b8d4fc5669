/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_ALLOW_H
#define RMP_ALLOW_H

#include <linux/rmpool.h>

struct rmp_file;
struct rmp_rights;
struct rmp_segment;

/* The call of /dev/rmpool about who may open a segment, see the structure in the uapi
 * header. Process context of the owner of the file.
 */
int rmp_allow(struct rmp_file *file, struct rmpool_segment_allow *arg);
/* The same with a list that was read; @rights is taken over. Killable. */
int rmp_segment_allow(struct rmp_segment *segment, struct rmp_rights *rights,
		      struct rmpool_segment_allow *arg);

#endif /* RMP_ALLOW_H */
