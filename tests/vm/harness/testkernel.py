# SPDX-License-Identifier: MIT
"""The test kernel: which configuration it has, and where it is kept once built.

tests/kernel/build makes it. It is named by all that decides what it is: the
version of Debian's source package, the options, the compiler.
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from .paths import TREE

FRAGMENTS = TREE / "tests" / "kernel"
PACKAGE = "linux-source-6.12"
LAYOUT = 1          # of what is kept: raise it when that changes

OPTION = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=(.+)| is not set)$")


class TestKernelError(Exception):
    pass


def options(text):
    """{option: its line} of a configuration. Of two lines, the later one holds."""
    found = {}
    for line in text.splitlines():
        match = OPTION.match(line)
        if match:
            found[match.group(1)] = line
        elif line and (line[0] != "#" or line.startswith("# CONFIG_")):
            raise TestKernelError(f"not an option: {line}")
    return found


def dropped(wanted, config):
    """What a configuration has otherwise than `wanted`, one text each."""
    got = options(config)
    found = []
    for name, line in wanted.items():
        have = got.get(name, f"# {name} is not set")
        if have != line:
            found.append(f"{line}, but it became: {have}")
    return found


def variants():
    """Names of the fragments that can be laid over test.config."""
    return sorted(p.stem for p in FRAGMENTS.glob("*.config") if p.stem != "test")


def _source_version():
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode or not done.stdout:
        raise TestKernelError(f"{PACKAGE} is not installed (tests/deps.sh --test-kernel does it)")
    return done.stdout


class TestKernel:
    """One variant ("" is the plain one) and its place in the cache."""

    def __init__(self, variant=""):
        if variant and variant not in variants():
            raise TestKernelError(
                f"no variant {variant} of the test kernel (there are: {' '.join(variants())})")
        self.label = f"test-{variant}" if variant else "test"
        self.options = {}
        for name in ["test"] + ([variant] if variant else []):
            self.options.update(options((FRAGMENTS / f"{name}.config").read_text()))
        source = _source_version()
        compiler = subprocess.run(["gcc", "--version"], check=True, stdout=subprocess.PIPE, text=True)
        key = "\n".join([str(LAYOUT), source, compiler.stdout.splitlines()[0],
                         *self.options.values()])
        self.digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        # Part of the kernel's own name: whatever is named by that is never stale.
        self.local_version = f"-{self.label}-{self.digest}"
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.cache = Path(base) / "rmpool" / "test-kernel"
        self.dir = self.cache / (re.sub(r"[^\w.+-]", "_", source) + self.local_version)
        self.image = self.dir / "vmlinux"

    @property
    def modules(self):
        """The modules directory, with the build directory in it."""
        found = list(self.dir.glob(f"lib/modules/*{self.local_version}"))
        if len(found) != 1 or not self.image.exists():
            how = f" VARIANT={self.label[5:]}" if self.label != "test" else ""
            raise TestKernelError(f"the kernel {self.label} is not built (make test-kernel{how})")
        return found[0]
