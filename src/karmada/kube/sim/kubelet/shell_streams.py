"""Where the streams of a command lead: to its user, into a pipe, a file or a variable, or nowhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from karmada.kube.sim.kubelet.filesystem import Refused
from karmada.kube.sim.kubelet.machine import Io, Session
from karmada.kube.sim.kubelet.shell_grammar import Redirection
from karmada.kube.sim.kubelet.shell_words import ScriptError, Values, joined

Source: TypeAlias = Callable[[], Awaitable[bytes]]
Sink: TypeAlias = Callable[[bytes], Awaitable[None]]
_MOST_OUTPUT = 1 << 20


@dataclass(slots=True)
class Streams:
    """An Io whose ends may be elsewhere."""

    base: Io
    read_from: Source
    out_to: Sink
    err_to: Sink
    captured: bool = False
    """True if what is written matters later: it goes into a pipe, a file or a variable."""

    @classmethod
    def over(cls, io: Io) -> Streams:
        return io if isinstance(io, Streams) else cls(io, io.read, io.out, io.err)

    async def read(self) -> bytes:
        return await self.read_from()

    async def out(self, data: bytes) -> None:
        await self.out_to(data)

    async def err(self, data: bytes) -> None:
        await self.err_to(data)

    async def sleep(self, seconds: float) -> None:
        await self.base.sleep(seconds)


async def _nowhere(_data: bytes) -> None:
    return None


def given(data: bytes) -> Source:
    """Input that is there from the start."""
    left = [data]

    async def read() -> bytes:
        return left.pop() if left else b""

    return read


def gathering() -> tuple[bytearray, Sink]:
    gathered = bytearray()

    async def gather(data: bytes) -> None:
        gathered.extend(data)
        if len(gathered) > _MOST_OUTPUT:
            raise ScriptError("too much output")

    return gathered, gather


async def redirected(session: Session, found: list[Redirection], io: Streams, values: Values) -> Streams:
    """Refused when a file cannot be opened."""
    if not found:
        return io
    source, captured = io.read_from, io.captured
    sinks: dict[int, Sink] = {1: io.out_to, 2: io.err_to}
    for redirection in found:
        if isinstance(redirection.target, int):
            sinks[redirection.stream] = sinks[redirection.target]
            continue
        name = await joined(redirection.target, values)
        if redirection.stream == 0:
            source = _input(session, name)
            continue
        standard: dict[str, Sink] = {"/dev/null": _nowhere, "/dev/stdout": io.out_to, "/dev/stderr": io.err_to}
        sinks[redirection.stream] = standard.get(name) or _file(session, name, redirection.append)
        captured = captured or name not in standard
    return Streams(io.base, source, sinks[1], sinks[2], captured)


def _input(session: Session, name: str) -> Source:
    content = b"" if name == "/dev/null" else session.machine.files.read(session.path(name))
    if content is None:
        raise Refused(f"can't open {name}: no such file")
    return given(content)


def _file(session: Session, name: str, append: bool) -> Sink:
    path = session.path(name)

    def write(data: bytes, *, append: bool) -> None:
        try:
            session.machine.files.write(path, data, append=append)
        except Refused as error:
            raise Refused(f"can't create {name}: {error}") from None

    async def sink(data: bytes) -> None:
        write(data, append=True)

    write(b"", append=append)
    return sink
