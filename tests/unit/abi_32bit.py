#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The structures of the ABI are the same for 32-bit and 64-bit programs, without holes.

The compiler is asked for both; no 32-bit C library is needed. Prints TAP.
"""

import re
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
HEADER = TREE / "uapi/linux/rmpool.h"


def structures():
    """(name, fields) of each structure in the header."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE):
        yield name, re.findall(r"(\w+)(?:\[[^]]*\])?;", body)


def layout(found, bits):
    """The numbers of all structures, as the compiler for @bits sees them."""
    lines = ["#include <linux/rmpool.h>", "#define AT(t, f) __builtin_offsetof(struct t, f)"]
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
        number = re.match(r"\s+\.(long|zero)\s+(\d+)", line)
        if number and name:
            value = int(number.group(2))
            result[name] += [value] if number.group(1) == "long" else [0] * (value // 4)
    return result


def main():
    found = list(structures())
    small, large = layout(found, 32), layout(found, 64)
    failed = 0
    for n, (name, fields) in enumerate(found, 1):
        numbers = large[name]
        ends = [numbers[2 * i] + numbers[2 * i + 1] for i in range(len(fields))]
        starts = numbers[2:-1:2] + numbers[-1:]
        good = fields and len(numbers) == 2 * len(fields) + 1 and \
            small[name] == numbers and ends == starts
        failed += not good
        print(f"{'ok' if good else 'not ok'} {n} - struct {name}")
        if not good:
            print(f"# 32 bit: {small[name]}\n# 64 bit: {numbers}")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
