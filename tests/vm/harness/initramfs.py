# SPDX-License-Identifier: MIT
"""The initramfs of a VM: busybox, guest/init and the modules to reach the root.

Written here, in the "newc" format, so that neither root nor cpio is needed.
Cached by kernel version and by a digest of all that goes into it.
"""

import hashlib
import lzma
import os
import shutil
import stat

from .paths import GUEST, VM_BUILD

# What the guest's init needs before it has the host's /lib/modules.
WANTED = ["virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay", "virtio_net"]


class InitramfsError(Exception):
    pass


class Archive:
    def __init__(self):
        self.parts = []
        self.inode = 1
        self.size = 0

    def _put(self, data):
        self.parts.append(data)
        self.size += len(data)

    def _pad(self):
        self._put(b"\0" * (-self.size % 4))

    def add(self, name, mode, data=b"", device=(0, 0)):
        encoded = name.encode() + b"\0"
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0]
        self.inode += 1
        self._put(b"070701" + b"".join(b"%08x" % f for f in fields) + encoded)
        self._pad()
        self._put(data)
        self._pad()

    def directory(self, name):
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        self.add(name, stat.S_IFREG | mode, data)

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def _module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def load_order(kernel):
    """Paths (below the modules directory) of WANTED and all they need, in order."""
    needs, path_of = {}, {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, _, deps = line.partition(":")
        needs[path] = deps.split()
        path_of[_module_name(path)] = path
    builtin_file = kernel.modules / "modules.builtin"
    builtin = {_module_name(p) for p in builtin_file.read_text().split()}

    order = []

    def visit(path):
        if path not in order:
            for dep in needs[path]:
                visit(dep)
            order.append(path)

    for name in WANTED:
        if name in path_of:
            visit(path_of[name])
        elif name not in builtin:
            raise InitramfsError(f"kernel {kernel.version} has no {name}")
    return order


def _plain(path):
    """A module's content, uncompressed: init's insmod cannot do more."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix != ".ko":
        raise InitramfsError(f"{path}: compression not known")
    return data


def build(kernel):
    """Returns the path of the initramfs for a kernel, making it if necessary."""
    busybox = shutil.which("busybox", path="/bin:/usr/bin")
    if not busybox:
        raise InitramfsError("no busybox (make deps installs it)")
    busybox_data = open(busybox, "rb").read()
    init = (GUEST / "init").read_bytes()
    order = load_order(kernel)

    digest = hashlib.sha256(busybox_data + init + open(__file__, "rb").read())
    for path in order:
        st = (kernel.modules / path).stat()
        digest.update(f"{path} {st.st_size} {st.st_mtime_ns}\n".encode())
    target = VM_BUILD / f"initramfs-{kernel.version}-{digest.hexdigest()[:12]}.cpio"
    if target.exists():
        return target

    archive = Archive()
    for name in ("bin", "dev", "proc", "sys", "lower", "rw", "root", "modules"):
        archive.directory(name)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.file("bin/busybox", busybox_data, 0o755)
    archive.file("init", init, 0o755)
    names = []
    for path in order:
        name = _module_name(path) + ".ko"
        names.append(name)
        archive.file("modules/" + name, _plain(kernel.modules / path))
    archive.file("modules/order", "".join(f"{name}\n" for name in names).encode())

    VM_BUILD.mkdir(parents=True, exist_ok=True)
    for old in VM_BUILD.glob(f"initramfs-{kernel.version}-*.cpio"):
        old.unlink(missing_ok=True)
    scratch = target.with_suffix(f".{os.getpid()}")
    scratch.write_bytes(archive.bytes())
    scratch.rename(target)
    return target
