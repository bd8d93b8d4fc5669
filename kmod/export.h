/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_EXPORT_H
#define RMP_EXPORT_H

#include "segment.h"

/* For &struct rmp_segment_ops, given to segment.c by main.c. */
void rmp_export_changed(struct rmp_subscriber *sub, u64 from, u64 to);
void rmp_export_revoke(struct rmp_subscriber *sub, u64 region_id,
		       struct rmp_revocation *rev);
void rmp_export_rekey(struct rmp_subscriber *sub, u64 region_id,
		      struct rmp_revocation *rev);

#endif /* RMP_EXPORT_H */
