"""The network of process pods, as far as it is relayed: connections that faults can cut.

A relayed connection belongs to a pod and leads to, or comes from, a peer. While a fault isolates the pod from the peer
the connection either hangs, as if packets were lost, and goes on when the fault is healed, or is reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.faults.kinds import Isolated

_CHUNK = 1 << 16
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Network:
    def __init__(self) -> None:
        self._faults: tuple[Isolated, ...] = ()
        self._changed = asyncio.Event()
        self._open: dict[Connection, asyncio.Task[None]] = {}

    def isolate(self, faults: Iterable[Isolated]) -> None:
        """Exactly these faults hold from now on."""
        self._faults = tuple(faults)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for connection, task in self._open.items():
            if self._fault(connection, "refuse"):
                task.cancel()

    def _fault(self, connection: Connection, how: str) -> bool:
        return any(fault.how == how and fault.matches(connection.pod, connection.peer) for fault in self._faults)

    def is_refused(self, connection: Connection) -> bool:
        return self._fault(connection, "refuse")

    async def passable(self, connection: Connection) -> None:
        """Wait while a fault makes the connection hang."""
        while self._faults and self._fault(connection, "hang"):
            await self._changed.wait()

    @contextmanager
    def relaying(self, connection: Connection) -> Iterator[None]:
        """While the current task relays it; a fault that resets it cancels the task."""
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self._open[connection] = task
        try:
            yield
        finally:
            del self._open[connection]

    async def relay(self, connection: Connection, one: Ends, other: Ends) -> None:
        """Copy both ways until both have ended; `other` is closed then."""
        with self.relaying(connection):
            try:
                await asyncio.gather(self._copy(connection, one[0], other[1]), self._copy(connection, other[0], one[1]))
            finally:
                other[1].close()

    async def _copy(self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy from one side to the other; a side that is gone ends both directions."""
        try:
            while data := await reader.read(_CHUNK):
                await self.passable(connection)
                await send(writer, data)
            if not writer.is_closing() and writer.can_write_eof():
                writer.write_eof()
        except OSError:
            writer.close()


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """OSError when the other side is gone."""
    if writer.is_closing():
        raise ConnectionResetError("the connection is closed")
    writer.write(data)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other side gets an error, not an end; nothing if it has ended by itself."""
    connection = writer.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Connection:
    """`pod` is the one whose connection it is, if known; `peer` is the host and port on the other side, or empty."""

    def __init__(self, pod: Obj | None, peer: str = "") -> None:
        self.pod = pod
        self.peer = peer


class Listener:
    """A listening address; each connection is served by a task of its own and closed with it."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self, address: str, port: int) -> int:
        """Return the port that is listened on: another one where this user may not use that; OSError."""
        try:
            self._server = await asyncio.start_server(self._accept, address, port)
        except PermissionError:
            self._server = await asyncio.start_server(self._accept, address, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Reset connections under way, also those that were accepted and not served yet."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        await cancel_and_wait(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            _reset(writer)
            return
        task = asyncio.create_task(self._run(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._ended(ended, writer))

    def _ended(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Close here, not in the task: one that is cancelled before it runs has no end of its own."""
        self._tasks.discard(task)
        if task.cancelled():
            _reset(writer)
        else:
            writer.close()

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # the client is gone
            await self._serve(reader, writer)
