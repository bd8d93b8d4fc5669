# SPDX-License-Identifier: MIT
"""Test suites: files, what they need, and what they said.

The name of a file tells how many VMs it wants: NN-name.pair.sh runs on two at
once, NN-name.single.sh on one. A comment line "# vm: key=value ..." near its
top changes the defaults:

  timeout=SECONDS  limit of the suite (120)
  cpus=N mem=MiB   of each VM (1 for pairs, 2 for one VM; 2048)
  udev=1           udevd runs
  rxe=0            no rxe devices
  module=0         rmpool is not loaded before the suite
  alone=1          a boot of its own
  shortage=1       the kernel may say that it has no memory, with a trace
  append=WORD      a word more for the kernel's command line, each time it is there
  kernels=6.1,...  only with these
  level=LEVEL      only at this level or a higher one (check)
  KERNEL=LEVEL     the same with one kernel: test=long, where all is slow; 6.1=long
  LEVEL=SECONDS    limit at this level: all=600 long=7200

Levels are check, all and long: how much is done, as in make check, check-all, check-long.
"""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = ["check", "all", "long"]
KERNELS = ["6.1", "6.12", "test"]
VMS = {"single": ["a"], "pair": ["a", "b"], "three": ["a", "b", "c"]}


def is_kernel(label, name):
    """Whether a kernel is meant: "test" stands for its variants, too."""
    return label == name or label.startswith((name + ".", name + "-"))


@dataclass
class Suite:
    path: Path
    name: str
    vms: list
    timeout: int = 120
    cpus: int = 1
    mem: int = 2048
    udev: int = 0
    rxe: int = 1
    module: int = 1
    alone: int = 0
    shortage: int = 0
    append: str = ""
    kernels: list = field(default_factory=list)
    level: str = "check"
    least: dict = field(default_factory=dict)   # level by kernel

    def runs_on(self, label):
        """Whether it is for a kernel."""
        return not self.kernels or any(is_kernel(label, k) for k in self.kernels)

    def is_of(self, wanted, label):
        """Whether it is run at a level with a kernel."""
        least = [self.level] + [v for k, v in self.least.items() if is_kernel(label, k)]
        return max(map(LEVELS.index, least)) <= LEVELS.index(wanted)

    @property
    def needs(self):
        """Suites with the same needs share a boot."""
        own = self.name if self.alone else ""
        return (tuple(self.vms), self.cpus, self.mem, self.udev, self.rxe, self.module,
                self.append, own)


class SuiteError(Exception):
    pass


def level():
    """The level of this run."""
    wanted = os.environ.get("RMPOOL_LEVEL") or LEVELS[0]
    if wanted not in LEVELS:
        raise SuiteError(f"RMPOOL_LEVEL={wanted}: not one of {' '.join(LEVELS)}")
    return wanted


def seed():
    """The number by which all that is random in this run can be had again."""
    given = os.environ.setdefault("RMPOOL_SEED", str(random.randrange(1, 1 << 31)))
    if not given.isdecimal():
        raise SuiteError(f"RMPOOL_SEED={given}: not a number")
    return given


def load(path, vms=None):
    path = Path(path).resolve()
    limits = {}
    parts = path.name.split(".")
    kind = next((p for p in parts[1:] if p in VMS), None)
    if vms is None:
        if not kind:
            raise SuiteError(f"{path.name}: the name must contain one of .{' .'.join(VMS)}")
        vms = VMS[kind]
    suite = Suite(path, parts[0], vms, cpus=2 if len(vms) == 1 else 1)
    with open(path, errors="replace") as f:
        head = [next(f, "") for _ in range(30)]
    for line in head:
        if not line.startswith("# vm:"):
            continue
        for word in line[5:].split():
            key, _, value = word.partition("=")
            if key == "kernels":
                suite.kernels = value.split(",")
            elif key == "level" and value in LEVELS:
                suite.level = value
            elif key in KERNELS and value in LEVELS:
                suite.least[key] = value
            elif key in LEVELS:
                limits[key] = int(value)
            elif key in ("timeout", "cpus", "mem", "udev", "rxe", "module", "alone", "shortage"):
                setattr(suite, key, int(value))
            elif key == "append":
                suite.append = f"{suite.append} {value}".strip()
            else:
                raise SuiteError(f"{path.name}: '# vm: {word}' is not known")
    # A higher level has the limit of the one below unless it has its own.
    for name in LEVELS[:LEVELS.index(level()) + 1]:
        suite.timeout = limits.get(name, suite.timeout)
    return suite


def groups(suites):
    """Lists of suites that can share a boot, in the order of the files."""
    found = {}
    for suite in suites:
        found.setdefault(suite.needs, []).append(suite)
    return list(found.values())


@dataclass
class Result:
    kernel: str
    suite: str
    vm: str
    status: str         # "ok", "not ok", "skip"
    name: str
    why: str

    def line(self):
        where = f"{self.kernel} {self.suite}/{self.vm}"
        text = f"{self.status} {where}: {self.name}"
        return f"{text}: {self.why}" if self.why else text


def count(results):
    """(passed, failed, skipped)"""
    states = [r.status for r in results]
    return states.count("ok"), states.count("not ok"), states.count("skip")


def closing_line(passed, failed, skipped):
    text = f"{passed} passed, {failed} failed"
    return f"{text}, {skipped} skipped" if skipped else text
