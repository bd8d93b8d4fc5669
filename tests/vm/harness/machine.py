# SPDX-License-Identifier: MIT
"""One QEMU process: its command line, its ports, its control socket.

QEMU connects to sockets that the harness listens on, all in one private
directory: the serial console, the output port, the control ports (several, so
that several processes of a guest can wait at the same time) and QMP.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import subprocess

QEMU = "qemu-system-x86_64"
CONTROL_PORTS = 8
LINE_LIMIT = 1 << 20
MTU = 4200              # gives an RDMA MTU of 4096
# Emulated, these make a guest slower: a fifth page table level, "fast" string
# moves of single bytes, and carry-less multiplication for rxe's checksums (the
# kernel's AES code uses it without asking: so no AES either). And QEMU before 8.0
# leaves wrong flags behind cmpxchg16b: an interrupt right after it, most likely
# in the slab allocator of newer kernels, ends in a double fault now and then.
TCG_CPU = "max,-la57,-erms,-fsrm,-pclmulqdq,-vpclmulqdq,-aes,-vaes,-cx16"

# QEMU before 9.1 waits for ever for a guest's word of free buffers, now and then, when
# frames may be merged of several: then the card takes in nothing any more. Without
# offloads a buffer that holds a whole frame is small.
CARD = ("mrg_rxbuf=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,"
        "rx_queue_size=1024")
AWAY = ".away"
QMP_SECONDS = 120       # to an answer: QEMU may have no processor for a while


class MachineError(Exception):
    pass


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)     # PR_SET_PDEATHSIG
    os.setsid()


def base_command(kernel, initramfs, accel, cpus, memory, cmdline):
    tcg = "tcg,thread=multi,tb-size=256"
    return [
        QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-machine", "pc", "-accel", tcg if accel == "tcg" else accel,
        "-cpu", TCG_CPU if accel == "tcg" else "host",
        "-smp", str(cpus), "-m", str(memory),
        "-kernel", str(kernel.image), "-initrd", str(initramfs),
        # On a busy host the kernel sees no timer interrupt in time, and panics.
        "-append", "console=ttyS0 panic=-1 net.ifnames=0 mitigations=off no_timer_check "
        + cmdline,
    ]


class Machine:
    def __init__(self, name, number, directory, logs, rails):
        self.name = name
        self.number = number
        self.dir = directory        # for sockets
        self.logs = logs
        self.rails = rails
        self.process = None
        self.command = None
        self.interactive = False
        self.lives = 0              # how often it was booted
        self.killed = False         # on purpose
        self.qmp_ready = asyncio.Event()
        self.qmp_lock = asyncio.Lock()
        self.qmp_reader = self.qmp_writer = None
        self.qmp_asked = 0          # number of the last request
        self.servers = []
        self.exited = asyncio.Event()
        self.booted = asyncio.Event()   # after a kill

    def _socket(self, what):
        return f"{self.dir}/{self.name}.{what}"

    def nic_socket(self, rail):
        return self._socket(f"rail{rail}")

    async def listen(self, what, handler):
        """handler(reader, writer) for each connection of QEMU to port `what`."""
        self.servers.append(await asyncio.start_unix_server(
            handler, self._socket(what), limit=LINE_LIMIT))

    async def start(self, command, remotes, interactive=False):
        """remotes[rail]: the socket that gets what this machine sends on a rail."""
        await self.listen("qmp", self._qmp_connected)
        args = list(command) + ["-name", f"rmpool-{self.name}"]

        def port(ident, what):
            return ["-chardev", f"socket,id={ident},path={self._socket(what)}"]

        args += port("qmp", "qmp") + ["-mon", "chardev=qmp,mode=control"]
        if interactive:
            args += ["-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con"]
        else:
            args += port("con", "con") + ["-serial", "chardev:con"]
        args += ["-device", f"virtio-serial-pci,max_ports={CONTROL_PORTS + 2}"]
        args += port("out", "out") + ["-device", "virtserialport,chardev=out,name=rmpool.out"]
        for i in range(CONTROL_PORTS):
            args += port(f"ctl{i}", "ctl")
            args += ["-device", f"virtserialport,chardev=ctl{i},name=rmpool.ctl.{i}"]
        args += [
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
        ]
        for rail in range(self.rails):
            mac = f"52:54:00:77:{rail:02x}:{self.number:02x}"
            args += [
                "-netdev",
                f"dgram,id=rail{rail},local.type=unix,local.path={self.nic_socket(rail)},"
                f"remote.type=unix,remote.path={remotes[rail]}",
                "-device",
                f"virtio-net-pci,id=nic{rail},netdev=rail{rail},mac={mac},host_mtu={MTU},"
                + CARD,
            ]
        self.command = args
        self.interactive = interactive
        await self._run()

    async def _run(self):
        shown = self.interactive
        log = open(self.logs / f"{self.name}.qemu", "ab")
        try:
            self.process = await asyncio.create_subprocess_exec(
                *self.command, stdin=None if shown else subprocess.DEVNULL,
                stdout=None if shown else log, stderr=log,
                preexec_fn=None if shown else _die_with_parent)
        except FileNotFoundError:
            raise MachineError(f"no {QEMU} (make deps installs it)") from None
        finally:
            log.close()
        self.lives += 1
        asyncio.ensure_future(self._watch())

    async def _watch(self):
        await self.process.wait()
        self.exited.set()

    # ---- QMP ----

    async def _qmp_connected(self, reader, writer):
        self.qmp_reader, self.qmp_writer = reader, writer
        await reader.readline()         # greeting
        await self._qmp("qmp_capabilities", {})
        self.qmp_ready.set()

    async def _qmp(self, command, arguments):
        self.qmp_asked += 1
        request = {"execute": command, "arguments": arguments, "id": self.qmp_asked}
        self.qmp_writer.write(json.dumps(request).encode() + b"\n")
        while True:
            line = await self.qmp_reader.readline()
            if not line:
                raise MachineError(f"{self.name}: the machine is gone")
            answer = json.loads(line)
            # An event, or late: nobody waits for that any more.
            if answer.get("id") != self.qmp_asked:
                continue
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise MachineError(f"{command}: {answer['error'].get('desc')}")

    async def qmp(self, command, **arguments):
        await asyncio.wait_for(self.qmp_ready.wait(), QMP_SECONDS)
        async with self.qmp_lock:
            return await asyncio.wait_for(self._qmp(command, arguments), QMP_SECONDS)

    async def freeze(self):
        """What is sent to it meanwhile is lost, as in a network: the senders do not find
        its sockets. It must not wait in line there, since cards wait with it.
        """
        for rail in range(self.rails):
            self._move(self.nic_socket(rail), self.nic_socket(rail) + AWAY)
        await self.qmp("stop")

    async def thaw(self):
        for rail in range(self.rails):
            self._move(self.nic_socket(rail) + AWAY, self.nic_socket(rail))
        await self.qmp("cont")

    @staticmethod
    def _move(path, to):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, to)

    async def link(self, rail, up):
        # Of the far end of the cable, which takes the card with it.
        await self.qmp("set_link", name=f"rail{rail}", up=up)

    # ---- loss of power ----

    async def kill(self):
        """It is gone at once, as without power, until boot()."""
        if self.killed:
            raise MachineError(f"{self.name}: was killed before")
        self.killed = True
        self.booted.clear()
        self.process.kill()
        await self.exited.wait()
        for rail in range(self.rails):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.nic_socket(rail) + AWAY)

    async def boot(self):
        if not self.killed:
            raise MachineError(f"{self.name}: is running")
        self.exited.clear()
        self.qmp_ready.clear()
        self.qmp_lock = asyncio.Lock()
        self.killed = False
        await self._run()
        self.booted.set()

    # ---- end ----

    async def end(self):
        """Ends the machine if it still runs, and closes its ports."""
        if self.process and self.process.returncode is None:
            self.process.kill()
        if self.process:
            await self.exited.wait()
        for server in self.servers:
            server.close()

    def why_not_started(self):
        text = (self.logs / f"{self.name}.qemu").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else ""
