# SPDX-License-Identifier: MIT
"""The host's end of vmctl: results, barriers, values, control of machines.

One request a line, one answer a line (see guest/vmctl.c). Waits end when their
condition comes true, when their time is up, or as soon as another VM has left
the suite so that it cannot come true any more.
"""

import asyncio
from urllib.parse import quote, unquote

from .machine import MachineError

WAIT_SECONDS = 120


class Refused(Exception):
    """The answer to a request is a failure with this text."""


class Channel:
    """Shared by the machines of one boot. `session` decides what runs next."""

    def __init__(self, session):
        self.session = session
        self.changed = asyncio.Condition()
        self.values = {}
        self.arrived = {}           # barrier -> set of VM names
        self.passed = {}            # barrier -> number of times it opened
        self.left = set()           # VMs that are done with the current suite
        self.altered = {}           # VM -> undo functions of what it did to machines

    # ---- life of a suite ----

    async def suite_begins(self):
        async with self.changed:
            self.values.clear()
            self.arrived.clear()
            self.left.clear()
            self.changed.notify_all()

    async def leaves(self, vm):
        """A VM is done with the current suite: undo what it did to machines."""
        undo = self.altered.pop(vm, {})
        for function in undo.values():
            try:
                await function()
            except (MachineError, asyncio.TimeoutError):
                pass
        async with self.changed:
            self.left.add(vm)
            self.changed.notify_all()

    # ---- connections ----

    def handler(self, machine):
        async def serve(reader, writer):
            pending = None
            while True:
                try:
                    line = await reader.readline()
                except ConnectionError:
                    line = b""
                # A port has one user at a time: who asked before is gone.
                if pending:
                    pending.cancel()
                if not line:
                    return
                words = line.decode(errors="replace").rstrip("\r\n").split(" ")
                if len(words) >= 3 and words[0] == "Q":
                    pending = asyncio.ensure_future(self._request(machine, words, writer))
        return serve

    async def _request(self, machine, words, writer):
        args = [unquote(w, errors="surrogateescape") for w in words[2:]]
        status, text = await self._answer(machine, args)
        text = quote(text, safe="/:,+=@ ", errors="surrogateescape")
        writer.write(f"R {words[1]} {status} {text}\n".encode())
        try:
            await writer.drain()
        except ConnectionError:
            pass        # the machine has ended

    async def _answer(self, machine, args):
        command = getattr(self, "do_" + args[0], None)
        if not command:
            return 125, f"vmctl: unknown command {args[0]}\n"
        try:
            return 0, await command(machine, *args[1:]) or ""
        except Refused as why:
            return 1, f"{why}\n" if str(why) else ""
        except (TypeError, ValueError) as why:
            return 125, f"vmctl {args[0]}: {why}\n"

    # ---- commands ----

    async def do_config(self, machine):
        return self.session.config(machine)

    async def do_next(self, machine):
        return await self.session.next_suite(machine)

    async def do_left(self, machine):
        """The suite ended here; returns when it has ended everywhere."""
        await self.leaves(machine.name)
        everyone = set(self.session.names)
        async with self.changed:
            await self.changed.wait_for(lambda: self.left == everyone)

    async def do_ok(self, machine, name):
        self.session.result(machine, "ok", name, "")

    async def do_not_ok(self, machine, name, why="no reason given"):
        self.session.result(machine, "not ok", name, why)

    async def do_skip(self, machine, name, why="no reason given"):
        self.session.result(machine, "skip", name, why)

    async def do_log(self, machine, *words):
        self.session.say(f"{machine.name}: {' '.join(words)}")

    async def do_barrier(self, machine, name, seconds=WAIT_SECONDS):
        everyone = set(self.session.names)
        async with self.changed:
            here = self.arrived.setdefault(name, set())
            here.add(machine.name)
            turn = self.passed.get(name, 0)
            if here == everyone:
                self.passed[name] = turn + 1
                del self.arrived[name]
                self.changed.notify_all()
                return
            try:
                await self._until(lambda: self.passed.get(name, 0) != turn, machine, seconds)
            except (Refused, asyncio.CancelledError):
                here.discard(machine.name)
                raise

    async def do_put(self, machine, key, value):
        async with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    async def do_get(self, machine, key, seconds=WAIT_SECONDS):
        async with self.changed:
            await self._until(lambda: key in self.values, machine, seconds)
            return self.values[key] + "\n"

    async def _until(self, condition, machine, seconds):
        """Waits under the lock of `changed`."""
        others = set(self.session.names) - {machine.name}

        def over():
            return condition() or (others and others <= self.left)
        try:
            await asyncio.wait_for(self.changed.wait_for(over),
                                   float(seconds) * self.session.slow)
        except asyncio.TimeoutError:
            raise Refused("") from None
        if not condition():
            raise Refused("")

    async def do_qmp(self, machine, name, verb, *args):
        target = self.session.machines.get(name)
        if not target:
            raise Refused(f"no VM {name}")
        undo = self.altered.setdefault(machine.name, {})
        try:
            if verb == "stop":
                undo[name, "cpu"] = target.thaw
                await target.freeze()
            elif verb == "cont":
                await target.thaw()
                undo.pop((name, "cpu"), None)
            elif verb == "kill":
                undo[name, "power"] = lambda: self._left_dead(name)
                await target.kill()
            elif verb == "boot":
                await self.session.boot(target)
                undo.pop((name, "power"), None)
            elif verb == "link":
                rail, state = int(args[0]), {"on": True, "off": False}[args[1]]
                undo[name, rail] = lambda: target.link(rail, True)
                await target.link(rail, state)
            else:
                raise Refused(f"qmp {verb}: not known")
        except (MachineError, asyncio.TimeoutError, KeyError, IndexError) as why:
            raise Refused(f"qmp {verb}: {why}") from None

    async def _left_dead(self, name):
        self.session.end(f"VM {name} was killed and not booted again")

    async def do_upload(self, machine, name, offset, data):
        if "/" in name or name.startswith("."):
            raise Refused(f"bad file name {name}")
        path = self.session.logs / f"{machine.name}.{name}"
        with open(path, "ab" if int(offset) else "wb") as f:
            f.write(data.encode(errors="surrogateescape"))
