"""Pseudo terminals, for `exec -t` into processes: the kernel echoes keys, edits lines and makes Ctrl-C a signal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from pathlib import Path

from karmada.kube.client.pod_streams import STDOUT
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.kubelet.channels import Channels
from karmada.kube.sim.processes import spawning

_CHUNK = 1 << 16
_END_OF_INPUT = b"\x04"
TERM = "xterm"
"""TERM of a program in a terminal, unless its container sets another."""


class PseudoTerminal:
    """Our side of one; programs have the other, `path`. A context manager: the block's end hangs up."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        self.path = Path(os.ttyname(self._theirs))
        os.set_blocking(self._ours, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.handed_over()
        os.close(self._ours)

    @property
    def other_side(self) -> int:
        return self._theirs

    def handed_over(self) -> None:
        """Close our copy of the other side, which a program has now: it ends when the last one closes it."""
        if self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height & 0xFFFF, width & 0xFFFF, 0, 0))

    async def read(self) -> bytes:
        """Return what programs write; nothing at the end."""
        while True:
            try:
                return os.read(self._ours, _CHUNK)
            except BlockingIOError:
                await self._readable()
            except OSError:  # EIO: the other side is closed
                return b""

    async def write(self, data: bytes) -> None:
        """Keys for programs; OSError when there are none any more."""
        while data:
            try:
                data = data[os.write(self._ours, data) :]
            except BlockingIOError:
                await self._writable()

    async def _readable(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._ours, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._ours)

    async def _writable(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(self._ours, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._ours)


async def attended(process: asyncio.subprocess.Process, terminal: PseudoTerminal, streams: Channels) -> int:
    """Connect a program at a terminal with the streams of a client until it ends; its exit code."""

    async def show() -> None:
        while data := await terminal.read():
            await streams.write(STDOUT, data)

    async def feed() -> None:
        with contextlib.suppress(OSError):
            while data := await streams.stdin.read():
                await terminal.write(data)
            await terminal.write(_END_OF_INPUT)

    streams.when_resized(terminal.resize)
    showing = asyncio.create_task(show())
    feeding = [asyncio.create_task(feed())] if streams.wanted.stdin else []
    try:
        code = spawning.exit_code(await spawning.finished(process))
        await asyncio.wait({showing}, timeout=spawning.KILL_SECONDS)
        return code
    finally:
        streams.when_resized(None)
        await cancel_and_wait(showing, *feeding)
