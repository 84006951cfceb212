"""The terminal of a command that was given one: what a pseudo terminal does between a person's keys and a program.

Keys are echoed and gathered into lines; Backspace takes one back, Ctrl-U the whole line, Ctrl-C interrupts what runs,
Ctrl-D on an empty line is the end of input. Line ends that go out get a carriage return.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from karmada.kube.client.pod_streams import STDERR, STDOUT
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.kubelet.channels import Channels
from karmada.kube.sim.kubelet.machine import INTERRUPTED

_INTERRUPT, _END, _KILL = 0x03, 0x04, 0x15
_ERASE = (0x7F, 0x08)
_RETURN = (0x0D, 0x0A)


class Terminal:
    """Use as an async context manager: it listens to the keys while the block lasts."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._line = bytearray()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._ended = False
        self._running: asyncio.Future[int] | None = None
        self._keys: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Terminal:
        self._keys = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._keys is not None:
            await cancel_and_wait(self._keys)

    async def read(self) -> bytes:
        if self._ended and self._lines.empty():
            return b""
        return await self._lines.get()

    async def out(self, data: bytes) -> None:
        await self._channels.write(STDOUT, data.replace(b"\n", b"\r\n"))

    err = out

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def attend(self, work: Awaitable[int]) -> int:
        self._running = asyncio.ensure_future(work)
        try:
            await asyncio.wait({self._running})
            return INTERRUPTED if self._running.cancelled() else self._running.result()
        finally:
            self._running.cancel()
            self._running = None

    async def _listen(self) -> None:
        while data := await self._channels.stdin.read():
            for key in data:
                await self._key(key)
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._lines.put_nowait(b"")

    async def _key(self, key: int) -> None:
        if key in _RETURN:
            await self.out(b"\n")
            self._lines.put_nowait(bytes(self._line) + b"\n")
            self._line.clear()
        elif key == _INTERRUPT:
            await self.out(b"^C\n")
            self._line.clear()
            if self._running is not None:
                self._running.cancel()
            else:
                self._lines.put_nowait(b"\n")
        elif key == _END:
            if not self._line:
                self._end()
        elif key in _ERASE:
            await self._erase(1)
        elif key == _KILL:
            await self._erase(len(self._line))
        elif key >= 0x20:
            self._line.append(key)
            await self.out(bytes((key,)))

    async def _erase(self, count: int) -> None:
        for _ in range(min(count, len(self._line))):
            self._line.pop()
            await self.out(b"\b \b")


class Plain:
    """The ends of a command without a terminal."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock

    async def read(self) -> bytes:
        return await self._channels.stdin.read()

    async def out(self, data: bytes) -> None:
        await self._channels.write(STDOUT, data)

    async def err(self, data: bytes) -> None:
        await self._channels.write(STDERR, data)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
