# SPDX-License-Identifier: MIT
"""Joins the rail sockets of three or more machines (two are joined directly).

A frame that one machine sends on a rail goes to the machine that owns its
destination address (52:54:00:77:RAIL:NUMBER), or to all others.
"""

import asyncio
import socket


class Hub:
    def __init__(self, directory):
        self.dir = directory
        self.sockets = []

    def inbox(self, machine, rail, machines):
        """Makes the socket to which one machine sends, returns its path."""
        path = f"{self.dir}/{machine.name}.hub{rail}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(path)
        sock.setblocking(False)
        others = {m.number: m.nic_socket(rail) for m in machines if m is not machine}
        asyncio.get_running_loop().add_reader(sock, self._forward, sock, others)
        self.sockets.append(sock)
        return path

    @staticmethod
    def _forward(sock, others):
        for _ in range(64):
            try:
                frame = sock.recv(65536)
            except BlockingIOError:
                return
            one = others.get(frame[5]) if frame[:4] == b"\x52\x54\x00\x77" else None
            for path in [one] if one else others.values():
                try:
                    sock.sendto(frame, path)
                except (BlockingIOError, OSError):
                    pass        # not up yet, or its queue is full: a network drops

    def close(self):
        for sock in self.sockets:
            asyncio.get_running_loop().remove_reader(sock)
            sock.close()
