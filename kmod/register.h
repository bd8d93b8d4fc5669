/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_REGISTER_H
#define RMP_REGISTER_H

#include <linux/rmpool.h>

struct rmp_file;

/* Size of the first version of struct rmpool_region_add. */
#define RMP_REGION_ADD_MIN	offsetof(struct rmpool_region_add, dmabuf_offset)

/* The calls of /dev/rmpool about regions, see the structures in the uapi header.
 * Process context of the owner of the file.
 */
int rmp_register(struct rmp_file *file, struct rmpool_region_add *add);
int rmp_register_many(struct rmp_file *file, struct rmpool_region_add_many *arg);
int rmp_unregister(struct rmp_file *file, u32 handle);
int rmp_unregister_many(struct rmp_file *file,
			struct rmpool_region_del_many *arg);

#endif /* RMP_REGISTER_H */
