#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The structures of the ABI are the same for 32-bit and 64-bit programs, without holes,
and are what they were: structures grow at their end only, and ioctls keep their numbers.

The compiler is asked for both; no 32-bit C library is needed. Prints TAP.
"""

import re
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
HEADER = TREE / "uapi/linux/rmpool.h"

# Of version 1 of the ABI. These never become smaller; what stands in them does not move.
SIZES = {
    "rmpool_error": 32, "rmpool_info": 168, "rmpool_ring_setup": 72,
    "rmpool_segment_create": 104, "rmpool_handle": 8, "rmpool_region_add": 80,
    "rmpool_segment_open": 200, "rmpool_region_desc": 24, "rmpool_segment_list": 40,
    "rmpool_request": 64, "rmpool_completion": 32, "rmpool_submit": 56,
    "rmpool_submit_sync": 72, "rmpool_wait": 24, "rmpool_cancel": 16,
    "rmpool_region_add_many": 64, "rmpool_region_del_many": 64,
    "rmpool_allow_entry": 72, "rmpool_segment_allow": 64,
}
# Stand in arrays or in others, so they cannot grow at all.
FIXED = ["rmpool_error", "rmpool_region_desc", "rmpool_request", "rmpool_completion"]
CALLS = ["INFO", "RING_SETUP", "SEGMENT_CREATE", "SEGMENT_DELETE", "REGION_ADD", "REGION_DEL",
         "SEGMENT_OPEN", "SEGMENT_CLOSE", "SEGMENT_LIST", "SUBMIT", "SUBMIT_SYNC", "WAIT",
         "CANCEL", "REGION_ADD_MANY", "REGION_DEL_MANY", "SEGMENT_ALLOW"]


def structures():
    """(name, fields) of each structure in the header."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE):
        yield name, re.findall(r"(\w+)(?:\[[^]]*\])?;", body)


def layout(found, bits):
    """The numbers of all structures, as the compiler for @bits sees them."""
    lines = ["#include <linux/rmpool.h>", "#define AT(t, f) __builtin_offsetof(struct t, f)"]
    calls = ", ".join(f"RMPOOL_IOC_{c} & ~((unsigned)_IOC_SIZEMASK << _IOC_SIZESHIFT)"
                      for c in CALLS)
    lines.append(f"const unsigned int calls_[] = {{ {calls} }};")
    for name, fields in found:
        numbers = [f"AT({name}, {f}), sizeof(((struct {name} *)0)->{f})" for f in fields]
        numbers.append(f"sizeof(struct {name})")
        lines.append(f"const unsigned int {name}_[] = {{ {', '.join(numbers)} }};")
    arch = subprocess.run(["cc", "-print-multiarch"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()
    asm = subprocess.run(["cc", f"-m{bits}", "-S", "-x", "c", "-o", "-", "-", f"-I{TREE}/uapi",
                          "-idirafter", f"/usr/include/{arch}"],
                         input="\n".join(lines), stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    result, name = {}, None
    for line in asm.splitlines():
        label = re.match(r"(\w+)_:$", line)
        if label:
            name = label.group(1)
            result[name] = []
        number = re.match(r"\s+\.(long|zero)\s+(-?\d+)", line)
        if number and name:
            value = int(number.group(2)) & 0xffffffff
            result[name] += [value] if number.group(1) == "long" else [0] * (value // 4)
    return result


def main():
    found = list(structures())
    small, large = layout(found, 32), layout(found, 64)
    failed = 0

    def tell(n, good, name, why):
        nonlocal failed
        failed += not good
        print(f"{'ok' if good else 'not ok'} {n} - {name}")
        if not good:
            print(f"# {why}")

    for n, (name, fields) in enumerate(found, 1):
        numbers = large[name]
        ends = [numbers[2 * i] + numbers[2 * i + 1] for i in range(len(fields))]
        starts = numbers[2:-1:2] + numbers[-1:]
        good = fields and len(numbers) == 2 * len(fields) + 1 and \
            small[name] == numbers and ends == starts
        tell(n, good, f"struct {name}", f"32 bit: {small[name]}\n# 64 bit: {numbers}")
    sizes = {name: large[name][-1] for name, _ in found}
    wrong = {name: size for name, size in SIZES.items() if sizes.get(name, 0) < size or
             (name in FIXED and sizes[name] != size)}
    tell(len(found) + 1, not wrong, "no structure has become smaller", wrong)
    # _IOWR(0xBD, number, ...) without the size
    wanted = [0xc000bd00 + n for n in range(len(CALLS))]
    tell(len(found) + 2, large["calls"] == wanted and small["calls"] == wanted,
         "ioctls have their numbers", [hex(n) for n in large["calls"]])
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
