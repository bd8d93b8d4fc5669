#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make coverage: runs suites that were built with --coverage and prints, for the
file of kmod/ that each is about, how many of its lines were run, and which were
not. Exits 1 when a file is below the least wanted, or a suite fails.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent


def lines_run(program, source):
    """{line: how often}, of one source file, by what the program left behind."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", f"{program}.gcda"], cwd=TREE,
                          stdout=subprocess.PIPE, check=True)
    counts = {}
    for text in done.stdout.splitlines():
        for file in json.loads(text)["files"]:
            if not file["file"].endswith(source):
                continue
            for line in file["lines"]:
                number = line["line_number"]
                counts[number] = counts.get(number, 0) + line["count"]
    return counts


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3, 7"."""
    out = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=float, default=90, help="percent of the lines")
    parser.add_argument("programs", nargs="+", help="NAME is about kmod/NAME.c")
    args = parser.parse_args()
    status = 0
    for program in args.programs:
        source = f"kmod/{Path(program).name}.c"
        Path(f"{program}.gcda").unlink(missing_ok=True)
        done = subprocess.run([program], cwd=TREE, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(done.stdout)
            print(f"not ok coverage of {source}: its suite failed")
            status = 1
            continue
        counts = lines_run(program, source)
        missed = sorted(n for n, count in counts.items() if not count)
        percent = 100 * (len(counts) - len(missed)) / len(counts) if counts else 0
        text = f"coverage of {source}: {percent:.1f} % of {len(counts)} lines"
        if missed:
            text += f", without {ranges(missed)}"
        if percent < args.least:
            print(f"not ok {text}: less than {args.least:g} %", flush=True)
            status = 1
        else:
            print(f"ok {text}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
