"""exec and attach against a server that records every message: the protocol, the terminal, what breaks."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner, Result

from karmada.cli.commands.attach import attach
from karmada.cli.commands.exec import exec_
from tests.support.cases import cases
from tests.support.karmadactl import said
from tests.support.objects import kube_object
from tests.support.terminals import TerminalSession

SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}
POD = kube_object("v1", "Pod", "p", "default") | {
    "spec": {"containers": [{"name": "c", "tty": True, "stdin": True}], "restartPolicy": "Never"},
    "status": {"phase": "Running"},
}
Talk = Callable[[web.WebSocketResponse], Awaitable[None]]


def failed(**status: object) -> dict[str, object]:
    return {"metadata": {}, "status": "Failure", **status}


def exit_code(code: int) -> dict[str, object]:
    cause = {"reason": "ExitCode", "message": str(code)}
    return failed(message="command terminated", reason="NonZeroExitCode", details={"causes": [cause]})


@dataclass
class Server:
    """One pod; `talk` is what happens after a socket was opened."""

    kubeconfig: Path
    protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")
    talk: Talk | None = None
    refusal: tuple[int, object] | None = None
    queries: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def pod(self, _request: web.Request) -> web.Response:
        return web.json_response(POD)

    async def socket(self, request: web.Request) -> web.StreamResponse:
        self.queries.append((request.path.rpartition("/")[2], list(request.query.items())))
        if self.refusal is not None:
            code, body = self.refusal
            text = body if isinstance(body, str) else json.dumps(body)
            return web.Response(status=code, text=text)
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        assert self.talk is not None
        await self.talk(socket)
        await socket.close()
        return socket

    async def receive(self, socket: web.WebSocketResponse, until: bytes) -> None:
        """Take messages until this one came."""
        async for message in socket:
            self.messages.append(message.data)
            self.came.set()
            if message.data == until:
                return

    async def run(self, *words: str, stdin: str = "") -> Result:
        command = exec_ if words[0] == "exec" else attach
        line = ["--kubeconfig", str(self.kubeconfig), *words[1:]]
        return await asyncio.to_thread(CliRunner().invoke, command, line, input=stdin)

    def terminal(self, *words: str, width: int = 80, height: int = 24) -> TerminalSession:
        command = [sys.executable, "-m", "karmada.cli.karmadactl", "--kubeconfig", str(self.kubeconfig), *words]
        return TerminalSession(command, width=width, height=height)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    stub = Server(tmp_path / "config")
    app = web.Application()
    place = "/api/v1/namespaces/default/pods/p"
    app.add_routes(
        [web.get(place, stub.pod), web.get(f"{place}/exec", stub.socket), web.get(f"{place}/attach", stub.socket)]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    named = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    stub.kubeconfig.write_text(yaml.safe_dump(named))
    yield stub
    await runner.cleanup()


async def end(socket: web.WebSocketResponse, status: dict[str, object]) -> None:
    await socket.send_bytes(b"\x03" + json.dumps(status).encode())


async def test_outputs_stay_apart_and_the_exit_code_comes_back(server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        for message in (b"\x01", b"\x02", b"\x01out ", b"\x02err\n", b"\x01more\n"):
            await socket.send_bytes(message)
        await end(socket, exit_code(42))

    server.talk = talk
    result = await server.run("exec", "p", "--", "ls", "-l", "--", "-c")
    assert said(result) == (42, "out more\n", "err\ncommand terminated with exit code 42\n")
    flags = [("container", "c"), ("stdout", "true"), ("stderr", "true")]
    assert server.queries == [("exec", [*(("command", word) for word in ("ls", "-l", "--", "-c")), *flags])]


async def test_input_is_sent_and_ended(server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await server.receive(socket, b"\xff\x00")
        await end(socket, SUCCESS)

    server.talk = talk
    result = await server.run("exec", "p", "-i", "--", "cat", stdin="hello")
    assert said(result) == (0, "", "")
    assert server.messages == [b"\x00hello", b"\xff\x00"]


async def test_a_server_that_knows_no_end_of_input_is_not_hung_up_on(server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await server.receive(socket, b"\x00hello")
        await socket.send_bytes(b"\x01late\n")
        await end(socket, SUCCESS)

    server.protocols = ("v4.channel.k8s.io",)
    server.talk = talk
    result = await server.run("exec", "p", "-i", "--", "head", stdin="hello")
    assert (result.exit_code, result.stdout) == (0, "late\n")
    assert result.stderr in (
        "",
        "warning: this server does not support half-close; the command does not see the end of its input\n",
    )


@cases(
    (failed(message="no such thing", reason="InternalError", code=500), "no such thing"),
    (None, "the stream ended without the exit status of the command"),
)
async def test_what_did_not_even_run_is_reported(
    status: dict[str, object] | None, message: str, server: Server
) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01some\n")
        if status is not None:
            await end(socket, status)

    server.talk = talk
    assert said(await server.run("exec", "p", "--", "ls")) == (1, "some\n", f"error: {message}\n")


@cases(
    ((500, 'container not found ("c")'), 'error: unable to upgrade connection: container not found ("c")\n'),
    (
        (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not you"}),
        "Error from server (Forbidden): not you\n",
    ),
    ((404, ""), "Error from server (NotFound): the server could not find the requested resource\n"),
    ((200, "a page"), "error: unable to upgrade connection: a page\n"),
)
async def test_what_a_server_says_instead_of_opening_a_socket(
    refusal: tuple[int, object], message: str, server: Server
) -> None:
    server.refusal = refusal
    assert said(await server.run("exec", "p", "--", "ls")) == (1, "", message)
    assert said(await server.run("attach", "p", "-q")) == (1, "", message)


# terminals


async def test_the_size_of_the_window_goes_over_and_its_changes_too(server: Server) -> None:
    first, second = b'\x04{"Width":100,"Height":40}', b'\x04{"Width":50,"Height":20}'

    async def talk(socket: web.WebSocketResponse) -> None:
        await server.receive(socket, first)
        await socket.send_bytes(b"\x01ready\r\n")
        await server.receive(socket, second)
        await server.receive(socket, b"\x00\x03")
        await end(socket, exit_code(5))

    server.talk = talk
    with server.terminal("exec", "-it", "p", "--", "sh", width=100, height=40) as terminal:
        await asyncio.to_thread(terminal.until, "ready")
        assert terminal.is_raw
        terminal.resize(50, 20)
        while second not in server.messages:
            await server.came.wait()
            server.came.clear()
        terminal.press("\x03")  # a key like any other
        assert await asyncio.to_thread(terminal.end) == 5
        assert terminal.is_as_before
    assert server.queries[0][1][-3:] == [("stdin", "true"), ("stdout", "true"), ("tty", "true")]


async def test_attach_makes_the_other_side_draw_its_screen_anew(server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await server.receive(socket, b'\x04{"Width":80,"Height":24}')
        await socket.send_bytes(b"\x01drawn\r\n")
        await server.receive(socket, b"\x00x")
        await end(socket, SUCCESS)

    server.talk = talk
    with server.terminal("attach", "-it", "p") as terminal:
        await asyncio.to_thread(terminal.until, "drawn")
        terminal.press("x")
        assert await asyncio.to_thread(terminal.end) == 0
        assert terminal.is_as_before
    assert server.messages[0] == b'\x04{"Width":81,"Height":25}'


async def test_a_connection_that_breaks_leaves_the_terminal_as_it_was(server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01ready\r\n")
        await server.receive(socket, b"\x00x")
        assert socket._req is not None
        assert socket._req.transport is not None
        socket._req.transport.abort()

    server.talk = talk
    with server.terminal("exec", "-it", "p", "--", "sh") as terminal:
        await asyncio.to_thread(terminal.until, "ready")
        terminal.press("x")
        await asyncio.to_thread(terminal.until, "error: ")
        assert await asyncio.to_thread(terminal.end) == 1
        assert terminal.is_as_before


@cases(signal.SIGTERM, signal.SIGQUIT)
async def test_a_signal_from_outside_leaves_the_terminal_as_it_was(number: signal.Signals, server: Server) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01ready\r\n")
        await server.receive(socket, b"never")

    server.talk = talk
    with server.terminal("exec", "-it", "p", "--", "sh") as terminal:
        await asyncio.to_thread(terminal.until, "ready")
        terminal.process.send_signal(number)
        assert await asyncio.to_thread(terminal.end) == 128 + number
        assert terminal.is_as_before
