"""WebSockets of the client: what a server may send, and what it gets."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import WSMsgType, web

from karmada.kube.client import websocket
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call, ConnectionFailed, Socket, UpgradeRefused
from karmada.kube.objects.errors import ApiError
from tests.kube.client.test_http1 import Talk, listening, saying
from tests.support.cases import cases
from tests.support.eventually import eventually

Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpTransport]
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
NINE_MB = b"\x7f" + (9 << 20).to_bytes(8, "big") + bytes(9 << 20)
PING, CLOSED = b"\x89\x02hi", b"\x88\x02\x03\xe8"


def opening(*frames: bytes, protocol: bytes = b"v4.channel.k8s.io", got: bytearray | None = None) -> Talk:
    """A server that accepts, sends these bytes, and keeps what comes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accepted = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n"
        writer.write(upgrade + b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: %b\r\n\r\n" % (accepted, protocol))
        for frame in frames:
            writer.write(frame)
        while data := await reader.read(1 << 16):
            if got is not None:
                got.extend(data)

    return talk


async def dial(transport: HttpTransport) -> Socket:
    return await transport.connect("/x", (("a", "b c"),), PROTOCOLS)


async def test_messages_go_both_ways_until_one_side_closes(serve: Serve, connect: Open) -> None:
    ended = asyncio.Event()

    async def echo(request: web.Request) -> web.StreamResponse:
        assert request.query["a"] == "b c"
        socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=0)
        await socket.prepare(request)
        await socket.send_str("text, too")
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            await socket.send_bytes(message.data)
        assert socket.close_code == 1000
        ended.set()
        return socket

    socket = await dial(connect(await serve(echo)))
    assert socket.protocol in PROTOCOLS
    assert await socket.receive() == b"text, too"
    for message in (b"", b"short", bytes(range(256)) * 4096):
        await socket.send(message)
        assert await socket.receive() == message
    waiting = asyncio.ensure_future(socket.receive())
    await asyncio.sleep(0)
    await socket.close()
    assert await waiting is None, "closing ends it for who waits"
    await asyncio.wait_for(ended.wait(), 60)
    with pytest.raises(ConnectionFailed):
        await socket.send(b"late")


async def test_all_that_was_sent_arrives_before_the_end(serve: Serve, connect: Open) -> None:
    sizes: list[int] = []
    ended = asyncio.Event()

    async def sink(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        sizes.extend([len(message.data) async for message in socket])
        ended.set()
        return socket

    socket = await connect(await serve(sink)).connect("/x", (), ())
    for _ in range(20):
        await socket.send(bytes(100_000))
    await socket.close()
    await asyncio.wait_for(ended.wait(), 60)
    assert sizes == [100_000] * 20


async def test_pings_are_answered_and_pieces_put_together(connect: Open) -> None:
    got = bytearray()
    async with listening(opening(b"\x02\x02ab", PING, b"\x80\x01c", CLOSED, got=got)) as here:
        socket = await dial(connect(here.url))
        assert await socket.receive() == b"abc"
        assert await socket.receive() is None
        assert await socket.receive() is None
        await socket.close()
        await eventually(lambda: got[:1] == b"\x8a")  # a pong


@cases(
    ((b"\x02" + NINE_MB, b"\x80" + NINE_MB), "a message is larger than 16 MB"),
    ((b"\x82\x7f" + (1 << 40).to_bytes(8, "big"), bytes(17 << 20)), "a message is larger than 16 MB"),
    ((b"\xf2\x01a",), "broke"),
    ((b"\x80\x01a",), "broke"),
    ((b"\x81\x02\xff\xfe",), "broke"),
    ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "broke"),
)
async def test_what_is_no_message_breaks_the_socket(frames: tuple[bytes, ...], error: str, connect: Open) -> None:
    async with listening(opening(*frames)) as here:
        socket = await dial(connect(here.url))
        with pytest.raises(ConnectionFailed, match=error):
            await socket.receive()
        await socket.close()


async def test_an_end_without_a_word_is_an_end(connect: Open) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepting = asyncio.ensure_future(opening(b"\x82\x01a")(reader, writer))
        await heard.wait()
        accepting.cancel()

    heard = asyncio.Event()
    async with listening(talk) as here:
        socket = await dial(connect(here.url))
        assert await socket.receive() == b"a"
        heard.set()
        assert await socket.receive() is None
        await socket.close()


UPGRADE = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"


@cases(UPGRADE + b"\r\n", UPGRADE + b"Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
async def test_an_upgrade_to_something_else_is_refused(response: bytes, connect: Open) -> None:
    async with listening(saying(response)) as here:
        with pytest.raises(ConnectionFailed, match="something else than a WebSocket"):
            await dial(connect(here.url))


async def test_a_subprotocol_that_was_not_offered_is_refused(connect: Open) -> None:
    async with listening(opening(protocol=b"v1.channel.k8s.io")) as here:
        with pytest.raises(ConnectionFailed, match="was not offered"):
            await dial(connect(here.url))


async def test_words_instead_of_a_socket_are_reported(serve: Serve, connect: Open) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(status=400, text="you must specify at least 1 of stdin, stdout, stderr\n")

    with pytest.raises(UpgradeRefused, match=r"^you must specify at least 1 of stdin, stdout, stderr$") as caught:
        await dial(connect(await serve(refuse)))
    assert caught.value.http_code == 400


async def test_a_switch_that_nobody_wanted_is_no_response(connect: Open) -> None:
    async with listening(saying(UPGRADE + b"\r\n")) as here:
        with pytest.raises((ApiError, ConnectionFailed)):
            await connect(here.url).call(Call("GET", "/x"))


async def test_a_silent_socket_is_pinged_and_then_given_up(connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_PING_SECONDS", 0.01)
    got = bytearray()
    async with listening(opening(got=got)) as here:
        socket = await dial(connect(here.url))
        with pytest.raises(ConnectionFailed, match="went silent"):
            await socket.receive()
        await socket.close()
        await eventually(lambda: got[:1] == b"\x89")  # a ping


async def test_a_socket_whose_server_answers_pings_stays(
    serve: Serve, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_PING_SECONDS", 1.0)
    pings = 0

    async def patient(request: web.Request) -> web.StreamResponse:
        nonlocal pings
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        while pings < 3:
            message = await socket.receive()
            assert message.type is WSMsgType.PING
            pings += 1
            await socket.pong(message.data)
        await socket.send_bytes(b"still here")
        await socket.close()
        return socket

    socket = await connect(await serve(patient)).connect("/x", (), ())
    assert await socket.receive() == b"still here"
    await socket.close()


async def test_closing_the_transport_ends_its_sockets(connect: Open) -> None:
    async with listening(opening()) as here:
        transport = connect(here.url)
        socket = await dial(transport)
        waiting = asyncio.ensure_future(socket.receive())
        await asyncio.sleep(0)
        await transport.close()
        assert await asyncio.wait_for(waiting, 60) is None
        await socket.close()
