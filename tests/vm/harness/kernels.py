# SPDX-License-Identifier: MIT
"""Kernels that a VM can boot: installed packages by version, the test kernel, or any image."""

import re
from pathlib import Path

from .testkernel import TestKernel, TestKernelError

# The test kernel checks itself at every step: all time limits of the harness and of
# lib.sh are so many times as long there.
TEST_KERNEL_SLOW = 5


class KernelError(Exception):
    pass


class Kernel:
    """An image, its modules, its full version, and what to expect of it."""

    def __init__(self, label, version, image, modules, slow=1, cmdline=""):
        self.label = label          # what the user called it: "6.1"
        self.version = version      # "6.1.0-57-amd64"
        self.image = Path(image)
        self.modules = Path(modules)
        self.slow = slow            # factor for time limits
        self.cmdline = cmdline

    @property
    def headers(self):
        return self.modules / "build"


def _version_key(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def installed(label, root=Path("/")):
    """The newest installed kernel of a series ("6.1") or of a full version."""
    found = []
    for modules in (root / "lib/modules").glob("*"):
        version = modules.name
        if version != label:
            # Other flavours (cloud, rt) have no soft-RoCE or are not what users run.
            if not version.startswith(label + ".") or not version.endswith("-amd64"):
                continue
            if "-cloud-" in version or "-rt-" in version:
                continue
        image = root / "boot" / f"vmlinuz-{version}"
        if image.exists() and (modules / "modules.dep").exists():
            found.append(Kernel(label, version, image, modules))
    if not found:
        raise KernelError(f"no kernel {label} is installed (make deps installs those of the tests)")
    return max(found, key=lambda k: _version_key(k.version))


def test_kernel(label):
    """The test kernel, "test" or "test-VARIANT", as tests/kernel/build left it."""
    try:
        kernel = TestKernel(label[len("test-"):])
        # Each report, not only KASAN's first: one may come before the module is loaded.
        # KUNIT_DEFAULT_ENABLED is not in the option file: suites of the kernel itself would run.
        # What a stock kernel takes for a lockup takes longer as well (its default is 10).
        return Kernel(label, kernel.modules.name, kernel.image, kernel.modules, TEST_KERNEL_SLOW,
                      f"kasan_multi_shot kunit.enable=1 watchdog_thresh={10 * TEST_KERNEL_SLOW}")
    except TestKernelError as why:
        raise KernelError(why) from None


def find(text):
    """A series, a version, "test", "test-VARIANT", or "IMAGE:MODULES" (a modules
    directory of a built kernel)."""
    if text == "test" or text.startswith("test-"):
        return test_kernel(text)
    if ":" not in text:
        return installed(text)
    image, modules = (Path(p).resolve() for p in text.split(":", 1))
    if not image.exists():
        raise KernelError(f"no kernel image {image}")
    if not (modules / "modules.dep").exists():
        raise KernelError(f"no modules.dep in {modules}")
    return Kernel(modules.name, modules.name, image, modules)
