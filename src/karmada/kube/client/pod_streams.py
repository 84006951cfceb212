"""exec, attach and port-forward over WebSocket: many streams in one socket.

Every message starts with a byte that names its channel. exec and attach have stdin 0, stdout 1, stderr 2, error 3 and
resize 4; the error channel ends with a Status with the result of the command, and from v5 on the message (255, n)
closes channel n, which is how stdin ends. A port-forward has two channels per port, 2i for data and 2i+1 for errors;
the first message of each carries the port.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import orjson

from karmada.kube.client.client import resource_path
from karmada.kube.client.transport import ConnectionFailed, Socket, Transport
from karmada.kube.objects.errors import error_from_status
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
FORWARD_PROTOCOLS = ("v4.channel.k8s.io",)


class RemoteCommand:
    """A running command. Read with `output` until it ends, then read `exit_code`."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._status: Obj | None = None
        self._ended = False

    @property
    def can_close_stdin(self) -> bool:
        return self._socket.protocol.startswith("v5.")

    async def write(self, data: bytes) -> None:
        """To its standard input."""
        await self._socket.send(bytes((STDIN,)) + data)

    async def close_stdin(self) -> None:
        """End the input. Before v5 the protocol could not say that, so the whole connection is closed."""
        if self.can_close_stdin:
            await self._socket.send(bytes((CLOSE, STDIN)))
        else:
            await self.close()

    async def resize(self, width: int, height: int) -> None:
        await self._socket.send(bytes((RESIZE,)) + orjson.dumps({"Width": width, "Height": height}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(STDOUT or STDERR, bytes) until the command has ended."""
        while not self._ended:
            message = await self._socket.receive()
            if message is None:
                self._ended = True
                return
            if len(message) < 2 or message[0] == CLOSE:
                continue
            if message[0] == ERROR:
                self._status = orjson.loads(message[1:])
            elif message[0] in (STDOUT, STDERR):
                yield message[0], message[1:]

    async def exit_code(self) -> int:
        """Wait for the end. ApiError when the server could not run the command, ConnectionFailed when it vanished."""
        async for _ in self.output():
            pass
        if self._status is None:
            raise ConnectionFailed("the stream ended without the exit status of the command")
        if self._status.get("status") == "Success":
            return 0
        causes = (self._status.get("details") or {}).get("causes") or ()
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        raise error_from_status(self._status)

    async def close(self) -> None:
        self._ended = True
        await self._socket.close()


def _flags(**flags: bool) -> list[tuple[str, str]]:
    return [(name, "true") for name, on in flags.items() if on]


async def execute(
    transport: Transport,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str = "",
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
) -> RemoteCommand:
    """Start a command in a container. A terminal has no stderr of its own."""
    query = [("command", word) for word in command]
    if container:
        query.append(("container", container))
    query += _flags(stdin=stdin, stdout=stdout, stderr=stderr and not tty, tty=tty)
    path = resource_path(PODS, namespace, pod, "exec")
    return RemoteCommand(await transport.connect(path, query, EXEC_PROTOCOLS))


async def attach(
    transport: Transport,
    namespace: str,
    pod: str,
    *,
    container: str = "",
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
) -> RemoteCommand:
    """Join the container's own process."""
    query = [("container", container)] if container else []
    query += _flags(stdin=stdin, stdout=stdout, stderr=stderr and not tty, tty=tty)
    path = resource_path(PODS, namespace, pod, "attach")
    return RemoteCommand(await transport.connect(path, query, EXEC_PROTOCOLS))


class PortForward:
    """One connection to one port of a pod."""

    def __init__(self, socket: Socket, port: int) -> None:
        self._socket = socket
        self._port = port
        self._greeted: set[int] = set()

    async def send(self, data: bytes) -> None:
        await self._socket.send(b"\0" + data)

    async def receive(self) -> bytes | None:
        """Return the next piece from the pod; None at the end.

        ConnectionFailed with the text of the error channel.
        """
        while True:
            message = await self._socket.receive()
            if message is None:
                return None
            channel, data = message[0], message[1:]
            if channel not in self._greeted:
                self._greeted.add(channel)
                data = self._greeting(data)
            if channel == 1 and data:
                raise ConnectionFailed(f"port {self._port}: {data.decode(errors='replace')}")
            if channel == 0 and data:
                return data

    def _greeting(self, data: bytes) -> bytes:
        if int.from_bytes(data[:2], "little") != self._port:
            raise ConnectionFailed(f"the server responded for another port than {self._port}")
        return data[2:]

    async def close(self) -> None:
        await self._socket.close()


async def forward(transport: Transport, namespace: str, pod: str, port: int) -> PortForward:
    path = resource_path(PODS, namespace, pod, "portforward")
    return PortForward(await transport.connect(path, [("ports", str(port))], FORWARD_PROTOCOLS), port)
