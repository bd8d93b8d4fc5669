/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RMP_COPY_H
#define RMP_COPY_H

#include <linux/mm_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* Part of the staging room. */

/**
 * struct rmp_gate - whether memory of an owner may be written
 * @lock: guards @closed, and is held while a page is written; a leaf
 * @closed: 0, or why not: an error
 */
struct rmp_gate {
	spinlock_t lock;	/* see above */
	s32 closed;
};

void rmp_gate_init(struct rmp_gate *gate);
/* After this no byte is written. The first who closes it says why. Process context;
 * waits for one page at most.
 */
void rmp_gate_close(struct rmp_gate *gate, s32 why);

/**
 * rmp_copy_probe - whether memory of the caller can be copied
 * @addr: first byte
 * @length: bytes
 * @write: to it, else from it
 * @fault: pages that are missing are brought in
 *
 * Changes no byte. 0, -EFAULT, -EINTR; without @fault -EAGAIN for all of them, and it
 * waits for nobody.
 */
int rmp_copy_probe(u64 addr, u64 length, bool write, bool fault);

/* From memory of the caller. Returns how many bytes from the end on were not copied; without
 * @fault, which brings missing pages in, all or none.
 */
u64 rmp_copy_in(void *to, u64 addr, u64 length, bool fault);

/* The same by another, in whose time nothing is faulted in, nor waited for; the owner of
 * @mm waits for it, whatever signals come. 0 or -EAGAIN.
 */
int rmp_copy_in_beside(struct mm_struct *mm, void *to, u64 addr, u64 length);

/**
 * rmp_copy_out - write to memory of another process
 * @mm: whose; may be gone (mmgrab'ed)
 * @addr: first byte
 * @from: bytes
 * @length: how many
 * @gate: closes it
 *
 * What is unmapped while this runs is not written, nor what is mapped there then, if
 * who sees that closes @gate. 0, -EFAULT, -ECANCELED when the process ends, or what
 * @gate says. Process context; faults pages in.
 */
int rmp_copy_out(struct mm_struct *mm, u64 addr, const void *from, u64 length,
		 struct rmp_gate *gate);

#endif /* RMP_COPY_H */
