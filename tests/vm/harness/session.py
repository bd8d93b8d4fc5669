# SPDX-License-Identifier: MIT
"""Runs suites in VMs: boots, hands out suites, judges, boots again if needed.

A boot serves one group of suites with the same needs. It ends early when a
machine died, hung or complained in its kernel log; the suites that were not
run then get a fresh boot. A complaint before any suite began is the kernel's
own business: that boot is repeated, three times at most.
"""

import asyncio
import re
import shutil
import tempfile
import time

from . import accel, initramfs
from .channel import Channel
from .hub import Hub
from .kernellog import KernelLog
from .machine import Machine, base_command
from .paths import LOGS, TREE
from .suites import Result, level, seed

# Seconds; limits grow by the factor of the kernel (kernels.py).
BOOT_SECONDS = 240          # a loaded host is slow
BOOT_TRIES = 3
GRACE_SECONDS = 8           # after a fatal line: the rest of the trace
CONSOLE_SECONDS = 20        # until the console has what was printed before a request
NO_ANSWER_SECONDS = 60      # beyond a suite's own limit


class Boot:
    """One start of all machines of a group."""

    def __init__(self, run, suites, number):
        self.run = run
        self.kernel = run.kernel
        self.slow = run.kernel.slow
        self.todo = list(suites)
        self.needs = suites[0]
        self.names = self.needs.vms
        self.logs = run.logs / f"boot{number}"
        self.machines = {}
        self.kernel_logs = {}
        self.channel = Channel(self)
        self.current = None
        self.started = 0.0
        self.results_of_suite = 0
        self.waiting = {}           # VM -> future of its "next"
        self.over = asyncio.Event()
        self.why_over = ""
        self.deadline = 0.0
        self.ready = set()
        self.told = {}              # VM -> in which life it was told the current suite
        self.first_life = {}        # VM -> in which life the current suite found it
        self.complaints = {}        # VM that boots again -> what its log had before
        self.asked = dict.fromkeys(self.names, 0)       # how often for a suite, in this life
        self.printed = dict.fromkeys(self.names, 0)     # how often its console said so
        self.patient = run.patient

    # ---- what the channel asks ----

    def config(self, machine):
        numbers = {n: m.number for n, m in self.machines.items()}
        others = [n for n in self.names if n != machine.name]
        peer = others[0] if others else machine.name
        values = {
            "VM": machine.name, "VM_NUMBER": machine.number, "VMS": " ".join(self.names),
            "PEER": peer, "VM_RAILS": machine.rails, "VM_UDEV": self.needs.udev,
            "VM_RXE": self.needs.rxe, "VM_MODULE": self.needs.module,
            "VM_MODULES": self.kernel.modules, "VM_SHELL": "", "VM_SLOW": self.slow,
            "RMPOOL_LEVEL": level(), "RMPOOL_SEED": seed(),
        }
        values.update(self.run.shell_config(machine))
        for who, prefix in ((machine.name, ""), (peer, "PEER_")):
            for rail in range(machine.rails):
                values[f"{prefix}IP{rail}"] = f"10.77.{rail}.{numbers[who]}"
                values[f"{prefix}IP6{rail}"] = f"fd77:0:0:{rail}::{numbers[who]}"
        return "".join(f"{key}='{value}'\n" for key, value in values.items())

    async def next_suite(self, machine):
        self.asked[machine.name] += 1
        if self.current and self.told[machine.name] != machine.lives:
            return self._suite_for(machine)     # killed in the middle of it, and booted
        self.waiting[machine.name] = asyncio.get_running_loop().create_future()
        mine = self.waiting[machine.name]
        if len(self.waiting) == len(self.names):
            await self._advance()
        return await mine

    async def _advance(self):
        """All machines are idle: judge the last suite, choose the next."""
        await self._consoles()
        if self.current:
            self._judge()
        else:
            bad = [b for log in self.kernel_logs.values() for b in log.bad]
            if bad:
                self.end(f"kernel log before the first suite: {bad[0]}")
        if self.over.is_set():
            return
        if self.run.out_of_time():
            self.run.leave_out(self.todo)
            self.todo = []
        if self.todo:
            self.current = self.todo.pop(0)
            for log in self.kernel_logs.values():
                log.short = bool(self.current.shortage)
            self.results_of_suite = 0
            self.started = time.monotonic()
            limit = self.current.timeout * self.slow
            self.deadline = self.started + limit + NO_ANSWER_SECONDS * self.slow
            await self.channel.suite_begins()
            self.first_life = {name: m.lives for name, m in self.machines.items()}
        else:
            self.end("")
        waiting, self.waiting = self.waiting, {}
        for name, future in waiting.items():
            future.set_result(self._suite_for(self.machines[name]) if self.current else "")

    async def _consoles(self):
        """Waits for what the machines printed before they asked: one that has much to do
        may print it late, and then it would count for the next suite.
        """
        end = time.monotonic() + CONSOLE_SECONDS * self.slow
        while (any(self.printed[n] < self.asked[n] for n in self.names)
               and time.monotonic() < end and not self.over.is_set()):
            await asyncio.sleep(0.02)

    def _suite_for(self, machine):
        """What a machine is told of the current suite; see guest/boot."""
        suite = self.current
        self.told[machine.name] = machine.lives
        life = machine.lives - self.first_life[machine.name] + 1
        left = self.started + suite.timeout * self.slow - time.monotonic()
        return f"{suite.name} {max(round(left), 1)} {life} {suite.path}"

    async def boot(self, machine):
        """Boots a killed machine; what its kernel complains of until it is ready is its own."""
        self.complaints[machine.name] = self.kernel_logs[machine.name].take_bad()
        self.asked[machine.name] = self.printed[machine.name] = 0
        await machine.boot()

    def _judge(self):
        suite, self.current = self.current, None
        complained = False
        for name, log in self.kernel_logs.items():
            bad = log.take_bad()
            if bad:
                complained = True
                self.run.add(suite.name, name, "not ok", "kernel log is clean",
                             f"{len(bad)} lines, the first: {bad[0]}")
        if not self.results_of_suite:
            self.run.add(suite.name, "-", "not ok", "reports something", "no test reported a result")
        self.run.suite_done(suite, time.monotonic() - self.started)
        if complained:
            self.end("kernel log")

    def result(self, machine, status, name, why):
        self.results_of_suite += 1
        suite = self.current.name if self.current else "boot"
        self.run.add(suite, machine.name, status, name, why)

    def say(self, text):
        self.run.say(text)

    # ---- life ----

    def end(self, why):
        if not self.over.is_set():
            self.why_over = why
            self.over.set()

    def _on_mark(self, machine, text):
        if text == "ready":
            self.ready.add(machine.name)
            if machine.name in self.complaints:
                self.kernel_logs[machine.name].bad = self.complaints.pop(machine.name)
        elif text == "next":
            self.printed[machine.name] += 1
        elif text.startswith(("initramfs:", "boot failed:")):
            self.end(f"VM {machine.name}: {text}")

    def _on_fatal(self, machine, line):
        loop = asyncio.get_running_loop()
        loop.call_later(GRACE_SECONDS * self.slow, self.end, f"VM {machine.name}: {line}")

    async def _console(self, machine, reader):
        log = self.kernel_logs[machine.name]
        with open(self.logs / f"{machine.name}.console", "ab", buffering=0) as f:
            async for data in _until_reset(reader.read, 65536):
                f.write(data)
                log.feed(data)

    async def _output(self, machine, reader):
        with open(self.logs / f"{machine.name}.out", "ab", buffering=0) as f:
            async for line in _until_reset(reader.readline):
                f.write(line)
                self.run.output(machine.name, line)

    async def _watch(self, machine):
        await machine.exited.wait()
        while machine.killed:
            await machine.booted.wait()
            await machine.exited.wait()
        if not self.over.is_set():
            await asyncio.sleep(0.5)        # the console's last bytes
            reason = machine.why_not_started() if machine.name not in self.ready else ""
            self.end(f"VM {machine.name} ended: {reason or 'power off, reset or panic'}")

    async def _guard(self):
        while not self.over.is_set():
            if self.patient and self.ready == set(self.names):
                return
            if time.monotonic() > self.deadline:
                what = f"suite {self.current.name}" if self.current else "boot"
                self.end(f"{what}: no answer in time")
            await asyncio.sleep(0.2)

    async def serve(self):
        """Boots and serves until over. Returns the reason ("" if all is done)."""
        self.logs.mkdir(parents=True)
        sockets = tempfile.mkdtemp(prefix="rmpool-vm-")
        hub = Hub(sockets)
        tasks = []
        try:
            # Beside the VMs of another kernel, which want answers and frames meanwhile.
            image = await asyncio.to_thread(initramfs.build, self.kernel)
            chosen = await asyncio.to_thread(accel.choose, self.kernel, image)
            self.deadline = time.monotonic() + BOOT_SECONDS * self.slow
            for number, name in enumerate(self.names, 1):
                self.machines[name] = Machine(name, number, sockets, self.logs, self.run.rails)
            machines = list(self.machines.values())
            for m in machines:
                self.kernel_logs[m.name] = KernelLog(
                    lambda text, m=m: self._on_mark(m, text),
                    lambda line, m=m: self._on_fatal(m, line))
                await m.listen("ctl", self.channel.handler(m))
                await m.listen("con", lambda r, w, m=m: self._console(m, r))
                await m.listen("out", lambda r, w, m=m: self._output(m, r))
            command = base_command(
                self.kernel, image, chosen, self.needs.cpus, self.needs.mem,
                f"{self.run.log_level} rmpool_tree={TREE} {self.kernel.cmdline} {self.needs.append}"
                f" {self.run.cmdline}")
            for m in machines:
                remotes = [self._remote(m, rail, machines, hub) for rail in range(m.rails)]
                await m.start(command, remotes, self.run.interactive(m))
                tasks.append(asyncio.ensure_future(self._watch(m)))
            tasks.append(asyncio.ensure_future(self._guard()))
            await self.over.wait()
            if not self.why_over:
                await self._power_off(machines)
            return self.why_over
        finally:
            for m in self.machines.values():
                await m.end()
            for task in tasks:
                task.cancel()
            hub.close()
            await asyncio.sleep(0)
            shutil.rmtree(sockets, ignore_errors=True)

    @staticmethod
    def _remote(machine, rail, machines, hub):
        others = [m for m in machines if m is not machine]
        if len(others) == 1:
            return others[0].nic_socket(rail)
        return hub.inbox(machine, rail, machines)

    @staticmethod
    async def _power_off(machines):
        try:
            await asyncio.wait_for(asyncio.gather(*(m.exited.wait() for m in machines)), 20)
        except asyncio.TimeoutError:
            pass

    def tail(self, suite, lines=40):
        """The ends of what the machines printed during a suite (None: the boot)."""
        for name in self.names:
            for path, mark in ((self.logs / f"{name}.out", r"^--- (\S+) ---$"),
                               (self.logs / f"{name}.console", r"rmpool-vm: suite (\S+)\s*$")):
                if path.exists():
                    text = path.read_bytes().decode(errors="replace")
                    part = _part(text.splitlines(), mark, suite)
                    if part:
                        yield path, part[-lines:]


async def _until_reset(read, *args):
    """What a port gives, until its machine is gone."""
    try:
        while data := await read(*args):
            yield data
    except ConnectionError:
        pass


def _part(lines, mark, suite):
    """The lines that belong to a suite, whose first line matches `mark`."""
    part, now = [], None
    for line in lines:
        match = re.search(mark, line)
        if match:
            now = match.group(1)
        elif now == suite:
            part.append(line.rstrip("\r"))
    return part


class Run:
    """All suites of one kind, with one kernel."""

    rails = 2
    log_level = "ignore_loglevel"
    patient = False             # no limit after the boot
    no_suite_after = None       # on the clock of time.monotonic()
    quiet = False               # no ends of logs when something fails

    def __init__(self, kernel, name, cmdline="", show=None, printer=print):
        self.kernel = kernel
        self.logs = LOGS / name
        self.cmdline = cmdline
        self.results = []
        self.show = show            # prefix of guest output lines for the terminal
        self.printer = printer
        shutil.rmtree(self.logs, ignore_errors=True)

    def shell_config(self, machine):
        return {}

    def interactive(self, machine):
        return False

    def say(self, text):
        self.printer(text)

    def output(self, name, line):
        if self.show is None:
            return
        text = line.decode(errors="replace").rstrip("\r\n")
        if text.startswith(self.show):
            self.say(text[len(self.show):])

    def add(self, suite, vm, status, name, why):
        result = Result(self.kernel.label, suite, vm, status, name, why)
        self.results.append(result)
        self.say(result.line())

    def out_of_time(self):
        return self.no_suite_after is not None and time.monotonic() > self.no_suite_after

    def leave_out(self, suites):
        for suite in suites:
            self.add(suite.name, "-", "skip", "the suite", "the time for all tests was over")

    def suite_done(self, suite, seconds):
        if self.show is None:
            self.say(f"-- {self.kernel.label} {suite.name}: {seconds:.1f} s")

    async def run(self, suites):
        """Runs one group. Results are in self.results."""
        todo = list(suites)
        number = tries = 0
        while todo:
            if self.out_of_time():
                self.leave_out(todo)
                return
            number += 1
            boot = Boot(self, todo, number)
            before, first_result = len(todo), len(self.results)
            why = await boot.serve()
            todo = boot.todo
            if not why:
                for name, log in boot.kernel_logs.items():
                    for line in log.take_bad():
                        self.add("power-off", name, "not ok", "kernel log is clean", line)
            if boot.current:                # died in the middle of a suite
                bad = [f"{n}: {b}" for n, log in boot.kernel_logs.items() for b in log.take_bad()]
                self.add(boot.current.name, "-", "not ok", "VMs stay alive", bad[0] if bad else why)
            elif len(todo) == before:       # no suite was run
                tries += 1
                self.say(f"-- {self.kernel.label}: boot failed: {why}")
                if tries == BOOT_TRIES:
                    self._print_tail(boot, None)
                    for suite in todo:
                        self.add(suite.name, "-", "not ok", "VMs boot", why)
                    return
                continue
            tries = 0
            failed = (r.suite for r in self.results[first_result:] if r.status == "not ok")
            for suite in dict.fromkeys(failed):
                self._print_tail(boot, suite)

    def _print_tail(self, boot, suite):
        if self.quiet:
            return
        for path, lines in boot.tail(suite):
            shown = path.relative_to(TREE) if path.is_relative_to(TREE) else path
            self.say(f"---- {suite or 'boot'}: end of {shown}")
            for line in lines:
                self.say("  | " + line)
