from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.pod_streams import STDERR, STDOUT, attach, execute, forward
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, Forbidden

Connect = Callable[..., Awaitable[HttpTransport]]
SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}
EXIT_3: dict[str, Any] = {
    "metadata": {},
    "status": "Failure",
    "reason": "NonZeroExitCode",
    "message": "command terminated with non-zero exit code: 3",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}


class Pod:
    """The other end: echoes stdin to stdout, says something on stderr, ends with a Status."""

    def __init__(self, status: dict[str, object] | None, protocols: tuple[str, ...] = ("v5.channel.k8s.io",)) -> None:
        self.status, self.protocols = status, protocols
        self.queries: list[list[tuple[str, str]]] = []
        self.sizes: list[object] = []

    async def run(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(list(request.query.items()))
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        for channel in (1, 2, 3):
            await socket.send_bytes(bytes((channel,)))
        await socket.send_bytes(b"\x02warning")
        if request.query.get("stdin"):
            async for message in socket:
                if message.type is not WSMsgType.BINARY or message.data == bytes((255, 0)):
                    break
                if message.data[0] == 4:
                    self.sizes.append(json.loads(message.data[1:]))
                elif message.data[0] == 0:
                    await socket.send_bytes(b"\x01" + message.data[1:])
        if self.status is not None and not socket.closed:
            await socket.send_bytes(b"\x03" + json.dumps(self.status).encode())
        await socket.close()
        return socket


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    closing: list[TestServer | HttpTransport] = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> HttpTransport:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        server = TestServer(app)
        await server.start_server()
        transport = HttpTransport(RestConfig(server=str(server.make_url("/"))))
        closing.extend((server, transport))
        return transport

    yield start
    for item in reversed(closing):
        await item.close()


async def test_a_command_gets_its_input_and_gives_its_output_and_exit_code(connect: Connect) -> None:
    pod = Pod(EXIT_3)
    transport = await connect(pod.run)
    command = await execute(transport, "ns", "p", ["sh", "-c", "exit 3"], container="c", stdin=True)
    await command.resize(80, 24)
    await command.write(b"hello")
    await command.close_stdin()
    output = [piece async for piece in command.output()]
    assert output == [(STDERR, b"warning"), (STDOUT, b"hello")]
    assert await command.exit_code() == 3
    assert pod.sizes == [{"Width": 80, "Height": 24}]
    assert pod.queries == [
        [
            ("command", "sh"),
            ("command", "-c"),
            ("command", "exit 3"),
            ("container", "c"),
            ("stdin", "true"),
            ("stdout", "true"),
            ("stderr", "true"),
        ]
    ]
    await command.close()


async def test_success_is_exit_code_zero_and_a_terminal_has_no_stderr(connect: Connect) -> None:
    pod = Pod(SUCCESS)
    command = await attach(await connect(pod.run), "ns", "p", container="c", tty=True)
    assert await command.exit_code() == 0
    assert pod.queries == [[("container", "c"), ("stdout", "true"), ("tty", "true")]]


async def test_before_v5_the_end_of_input_ends_the_connection(connect: Connect) -> None:
    pod = Pod(SUCCESS, ("v4.channel.k8s.io",))
    command = await execute(await connect(pod.run), "ns", "p", ["cat"], stdin=True)
    assert not command.can_close_stdin
    await command.close_stdin()
    with pytest.raises(ConnectionFailed):
        await command.exit_code()


async def test_a_server_that_could_not_run_it_is_an_api_error(connect: Connect) -> None:
    status = {"status": "Failure", "reason": "InternalError", "message": "no runtime", "code": 500}
    command = await execute(await connect(Pod(status).run), "ns", "p", ["x"])
    with pytest.raises(ApiError, match="no runtime"):
        await command.exit_code()


async def test_a_stream_that_ends_without_a_status_is_a_failed_connection(connect: Connect) -> None:
    command = await execute(await connect(Pod(None).run), "ns", "p", ["x"])
    with pytest.raises(ConnectionFailed, match="without the exit status"):
        await command.exit_code()


async def test_a_refused_upgrade_is_a_typed_error(connect: Connect) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.json_response(Forbidden("no").status(), status=403)

    with pytest.raises(Forbidden):
        await execute(await connect(refuse), "ns", "p", ["x"])


def forwarder(port: int, error: bytes = b"") -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def run(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes((channel,)) + port.to_bytes(2, "little"))
        if error:
            await socket.send_bytes(b"\x01" + error)
        message = await socket.receive()
        if message.type is WSMsgType.BINARY:
            await socket.send_bytes(b"\x00" + message.data[1:].upper())
        await socket.close()
        return socket

    return run


async def test_a_forwarded_port_carries_bytes_both_ways(connect: Connect) -> None:
    connection = await forward(await connect(forwarder(8080)), "ns", "p", 8080)
    await connection.send(b"get")
    assert await connection.receive() == b"GET"
    assert await connection.receive() is None
    await connection.close()


async def test_a_port_nobody_listens_on_says_so(connect: Connect) -> None:
    connection = await forward(await connect(forwarder(1, b"connection refused")), "ns", "p", 1)
    with pytest.raises(ConnectionFailed, match="port 1: connection refused"):
        await connection.receive()
    await connection.close()


async def test_an_answer_for_another_port_is_refused(connect: Connect) -> None:
    connection = await forward(await connect(forwarder(99)), "ns", "p", 80)
    with pytest.raises(ConnectionFailed, match="another port"):
        await connection.receive()
    await connection.close()
