# SPDX-License-Identifier: MIT
"""Which accelerator works: found by a trial boot, never by looking at /dev/kvm.

A KVM device may exist and open, and a stock kernel still hang under it.
"""

import json
import os
import subprocess

from .machine import QEMU, base_command
from .paths import VM_BUILD

TRIAL_SECONDS = 8


def _trial(kernel, initramfs):
    command = base_command(kernel, initramfs, "kvm", 1, 512, "ignore_loglevel rmpool_trial=1")
    try:
        done = subprocess.run(
            command + ["-serial", "stdio"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
            timeout=TRIAL_SECONDS * kernel.slow)
    except subprocess.TimeoutExpired:
        return False
    except FileNotFoundError:
        return False
    return b"rmpool-vm: user space" in done.stdout


def choose(kernel, initramfs):
    """"kvm" or "tcg"; the answer is kept for this host kernel, guest kernel and QEMU."""
    forced = os.environ.get("RMPOOL_ACCEL")
    if forced:
        return forced
    qemu = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout
    key = f"{os.uname().release} {kernel.version} {qemu.splitlines()[0] if qemu else ''}"
    cache = VM_BUILD / f"accel-{kernel.version}.json"
    try:
        known = json.loads(cache.read_text())
        if known["for"] == key:
            return known["accel"]
    except (OSError, ValueError, KeyError):
        pass
    accel = "kvm" if _trial(kernel, initramfs) else "tcg"
    VM_BUILD.mkdir(parents=True, exist_ok=True)
    scratch = cache.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps({"for": key, "accel": accel}))
    scratch.rename(cache)
    return accel
