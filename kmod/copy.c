// SPDX-License-Identifier: GPL-2.0
/*
 * Copying between memory of a process and that of the module.
 *
 * In the call of its owner, memory is read as any system call does it. From a work item,
 * pages are looked up and held for a moment. So it can be told what is written: a
 * gate is looked at when the pages are already held. Who closes the gate before the
 * owner's pages are unmapped knows that what is mapped there next is not written; and
 * who closes it when a request is reported waits for one page, never for a fault.
 *
 * Locking: rmp_gate.lock, a leaf, for one page at a time; the mmap_lock of the other
 * process while pages are looked up. Lifetime: the caller's. Context: process.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "compat.h"
#include "copy.h"

/* Pages held at once. */
#define RMP_COPY_STEP	16UL

void rmp_gate_init(struct rmp_gate *gate)
{
	spin_lock_init(&gate->lock);
	gate->closed = 0;
}

void rmp_gate_close(struct rmp_gate *gate, s32 why)
{
	spin_lock(&gate->lock);
	if (!gate->closed)
		gate->closed = why;
	spin_unlock(&gate->lock);
}

static unsigned long pages_of(u64 addr, u64 length)
{
	return min_t(u64, DIV_ROUND_UP(offset_in_page(addr) + length, PAGE_SIZE), RMP_COPY_STEP);
}

/* ------------------------------------------------------- in the owner's context */

static long probe_pages(u64 addr, unsigned long nr)
{
	struct page *pages[RMP_COPY_STEP];
	long n;

	n = pin_user_pages_fast(addr, nr, FOLL_WRITE, pages);
	if (n > 0)
		unpin_user_pages(pages, n);
	return n;
}

/* Nor is mmap_lock waited for, which others of the process may hold for as long as they
 * like: what waits for the caller is not theirs alone.
 */
static long probe_pages_there(u64 addr, unsigned long nr)
{
	struct page *pages[RMP_COPY_STEP];
	long n, i;

	n = get_user_pages_fast_only(addr, nr, FOLL_WRITE, pages);
	for (i = 0; i < n; i++)
		put_page(pages[i]);
	return n;
}

/* Shared pages of private mappings become the owner's now, not while others wait. */
static int probe_write(u64 addr, u64 length, bool fault)
{
	u64 end = addr + length;
	unsigned long nr;
	long n;

	for (; addr < end; addr = (addr & PAGE_MASK) + n * PAGE_SIZE) {
		nr = pages_of(addr, end - addr);
		n = fault ? probe_pages(addr & PAGE_MASK, nr) :
			    probe_pages_there(addr & PAGE_MASK, nr);
		if (n <= 0)
			return n == -EINTR || n == -ERESTARTSYS ? -EINTR : -EFAULT;
	}
	return 0;
}

static int probe_read(u64 addr, u64 length, bool fault)
{
	size_t left;

	if (!fault)
		pagefault_disable();
	left = fault_in_readable(u64_to_user_ptr(addr), length);
	if (!fault)
		pagefault_enable();
	if (!left)
		return 0;
	return fatal_signal_pending(current) ? -EINTR : -EFAULT;
}

int rmp_copy_probe(u64 addr, u64 length, bool write, bool fault)
{
	int err;

	if (!access_ok(u64_to_user_ptr(addr), length))
		err = -EFAULT;
	else if (write)
		err = probe_write(addr, length, fault);
	else
		err = probe_read(addr, length, fault);
	return err && !fault ? -EAGAIN : err;
}

u64 rmp_copy_in(void *to, u64 addr, u64 length, bool fault)
{
	const void __user *from = u64_to_user_ptr(addr);

	if (!fault)
		return copy_from_user_nofault(to, from, length) ? length : 0;
	return copy_from_user(to, from, length);
}

/* --------------------------------------------------------------- by a work item */

/* Holds the next pages; how many, or an error. Who must not fault does not wait for
 * mmap_lock either.
 */
static long hold_pages(struct mm_struct *mm, u64 addr, u64 length, unsigned int flags,
		       struct page **pages)
{
	long n;

	if (!(flags & FOLL_NOFAULT))
		mmap_read_lock(mm);
	else if (!mmap_read_trylock(mm))
		return -EAGAIN;
	n = rmp_pin_pages_of(mm, addr & PAGE_MASK, pages_of(addr, length), flags, pages);
	mmap_read_unlock(mm);
	return n ?: -EFAULT;
}

int rmp_copy_in_beside(struct mm_struct *mm, void *to, u64 addr, u64 length)
{
	struct page *pages[RMP_COPY_STEP];
	size_t offset, bytes;
	long n, i;

	while (length) {
		n = hold_pages(mm, addr, length, FOLL_NOFAULT, pages);
		if (n < 0)
			return -EAGAIN;
		for (i = 0; i < n; i++) {
			offset = offset_in_page(addr);
			bytes = min_t(u64, length, PAGE_SIZE - offset);
			memcpy_from_page(to, pages[i], offset, bytes);
			to += bytes;
			addr += bytes;
			length -= bytes;
		}
		unpin_user_pages(pages, n);
		cond_resched();
	}
	return 0;
}

/* What the gate says; nothing is written unless that is 0. */
static int write_page(struct page *page, size_t offset, const void *from, size_t bytes,
		      struct rmp_gate *gate)
{
	int err;

	spin_lock(&gate->lock);
	err = gate->closed;
	if (!err)
		memcpy_to_page(page, offset, from, bytes);
	spin_unlock(&gate->lock);
	return err;
}

static int copy_out(struct mm_struct *mm, u64 addr, const void *from, u64 length,
		    struct rmp_gate *gate)
{
	struct page *pages[RMP_COPY_STEP];
	size_t offset, bytes;
	int err = 0;
	long n, i;

	while (length && !err) {
		n = hold_pages(mm, addr, length, FOLL_WRITE, pages);
		if (n < 0) {
			/* If it is known why, that is the better word. */
			err = READ_ONCE(gate->closed) ?: n == -ENOMEM ? -ENOMEM : -EFAULT;
			break;
		}
		for (i = 0; i < n && !err; i++) {
			offset = offset_in_page(addr);
			bytes = min_t(u64, length, PAGE_SIZE - offset);
			err = write_page(pages[i], offset, from, bytes, gate);
			from += bytes;
			addr += bytes;
			length -= bytes;
		}
		unpin_user_pages_dirty_lock(pages, n, true);
		cond_resched();
	}
	return err;
}

int rmp_copy_out(struct mm_struct *mm, u64 addr, const void *from, u64 length,
		 struct rmp_gate *gate)
{
	int err;

	if (!mmget_not_zero(mm))
		return -ECANCELED;
	err = copy_out(mm, addr, from, length, gate);
	mmput(mm);
	return err;
}
