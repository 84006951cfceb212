"""Listeners of relays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.kube.sim.processes.network import Listener
from tests.support.eventually import eventually


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())


async def test_a_port_that_this_user_may_not_use_is_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    start = asyncio.start_server

    async def unprivileged(serve: Any, host: str, port: int) -> asyncio.Server:
        if 0 < port < 1024:
            raise PermissionError(13, "Permission denied")
        return await start(serve, host, port)

    monkeypatch.setattr(asyncio, "start_server", unprivileged)
    listener = Listener(echo)
    port = await listener.open("127.0.0.1", 443)
    assert port >= 1024
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    assert await reader.read() == b"hello\n"
    writer.close()
    await listener.close()


async def test_closing_a_listener_ends_its_connections() -> None:
    listener = Listener(echo)
    port = await listener.open("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"no end of line")
    await writer.drain()
    await eventually(lambda: listener._tasks)
    await listener.close()
    with pytest.raises(ConnectionResetError):
        await reader.readexactly(1)
    writer.close()


async def test_a_connection_that_was_accepted_when_the_listener_closes_is_reset() -> None:
    """Its task is cancelled before it has run at all."""

    async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise AssertionError("not served any more")

    listener = Listener(serve)
    port = await listener.open("127.0.0.1", 0)
    accept, accepted = listener._accept, asyncio.Event()

    def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accept(reader, writer)
        accepted.set()
        for task in listener._tasks:
            task.cancel()

    listener._server.close()
    listener._server = await asyncio.start_server(noted, "127.0.0.1", port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await accepted.wait()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    await listener.close()


async def test_a_connection_that_has_ended_by_itself_is_no_trouble_when_the_listener_closes() -> None:
    """Its other side may still be relayed, so that its task goes on."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    ended = asyncio.Event()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        await writer.wait_closed()
        ended.set()
        await asyncio.Event().wait()

    listener = Listener(serve)
    port = await listener.open("127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    await ended.wait()
    await listener.close()
    await asyncio.sleep(0)
    writer.close()
    assert not reported
