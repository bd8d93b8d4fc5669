# SPDX-License-Identifier: MIT
"""Finds what must not be in a kernel log, and only that."""

import re

# Any of these makes the run fail.
BAD = re.compile(
    r"\bBUG\b|\bWARNING\b|KASAN|KCSAN|UBSAN|kmemleak:.*new suspected|"
    r"possible circular locking|possible recursive locking|possible deadlock|"
    r"inconsistent lock state|possible irq lock inversion|lock held when returning|"
    r"suspicious RCU|INFO: task .* blocked|blocked for more than|hung_task|"
    r"general protection|\bOops\b|Call Trace|soft lockup|hard LOCKUP|"
    r"rcu.*detected.*stall|self-detected stall|rcu: .*stall|"
    r"Kernel panic|unable to handle|refcount_t:|list_(?:add|del) corruption|"
    r"scheduling while atomic|sleeping function called|bad page state|"
    r"double free|Out of memory: Killed"
)

# After these there is little to wait for: what ran is dead, perhaps with locks held.
FATAL = re.compile(
    r"\bOops\b|general protection|Kernel panic|unable to handle|BUG: (?:kernel NULL|spinlock|rwlock)")

# Whole, known lines of stock kernels that match BAD by their words only.
NOISE = [re.compile(p) for p in (
    r"speed is unknown, defaulting to \d+$",
    r"make_send_cqe: non-flush error status = \d+$",
    r"Spectre V2 : WARNING: Unprivileged eBPF is enabled",
    r"RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable",
    r"TAA: .*|MDS: .*|MMIO Stale Data: .*",
)]

# The kernel's notice that it has no memory, with a trace. Right where there is to be none.
SHORTAGE = re.compile(r"page allocation failure: order:|vmalloc error: size")
TRACE = re.compile(r"\] Call Trace:$")

# Mistakes of stock drivers that rmpool meets and does not cause; docs/testing.md says
# how. Their traces go with them.
KNOWN = [re.compile(p) for p in (
    r"WARNING: .* at drivers/infiniband/sw/rxe/rxe_comp\.c:\d+ rxe_completer\+",
)]

MARK = re.compile(r"rmpool-vm: (.*)$")


class KernelLog:
    """Lines of one VM's kernel log, as they come; keeps the bad ones."""

    def __init__(self, on_mark=None, on_fatal=None):
        self.rest = b""
        self.bad = []           # lines that nobody took yet
        self.marks = []
        self.on_mark = on_mark
        self.on_fatal = on_fatal
        self.short = False      # shortage is what the suite is for
        self.notice = False     # a trace that goes with one, or with what is known, is to come

    def feed(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._line(line.decode(errors="replace").rstrip("\r"))

    def _line(self, line):
        mark = MARK.search(line)
        if mark:
            self.marks.append(mark.group(1))
            if self.on_mark:
                self.on_mark(mark.group(1))
            return
        if self.short and SHORTAGE.search(line):
            self.notice = True
        elif any(k.search(line) for k in KNOWN):
            self.notice = True
            return
        elif self.notice and TRACE.search(line):
            self.notice = False
            return
        if not BAD.search(line) or any(n.search(line) for n in NOISE):
            return
        self.bad.append(line)
        if FATAL.search(line) and self.on_fatal:
            self.on_fatal(line)

    def take_bad(self):
        bad, self.bad = self.bad, []
        return bad
