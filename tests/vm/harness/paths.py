# SPDX-License-Identifier: MIT
"""Where things are: the source tree, what is built, what is logged."""

import os
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
BUILD = TREE / "build"
VM_BUILD = BUILD / "vm"                 # vmctl, initramfs cache, accelerator cache
LOGS = Path(os.environ.get("RMPOOL_LOGS", BUILD / "logs"))
GUEST = TREE / "tests" / "vm" / "guest"
