"""What HttpTransport does by itself: connections that are kept and shared, and HTTP that is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from karmada.kube.client import http1
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.errors import Fenced
from tests.support.cases import cases
from tests.support.eventually import LIMIT

GET = Call("GET", "/x")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Listening:
    def __init__(self) -> None:
        self.connections = 0
        self.url = ""


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[Listening]:
    here = Listening()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here.connections += 1
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        here.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield here


def saying(*answers: bytes, then_close: bool = True) -> Talk:
    """One answer for each request."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        if not then_close:
            await reader.read()

    return talk


async def send(url: str, call: Call = GET) -> object:
    transport = HttpTransport(RestConfig(server=url, timeout=LIMIT))
    try:
        return await transport.call(call)
    finally:
        await transport.close()


@cases(
    (OK + b"Content-Length: 7\r\n\r\n" + b'{"a":1}', {"a": 1}),
    (OK + b"\r\n" + b'{"a":1}', {"a": 1}),
    (OK + b'transfer-encoding: chunked\r\n\r\n3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\nX: y\r\n\r\n', {"a": 1}),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}", {}),
    (b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nok", "ok"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", None),
    (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", None),
)
async def test_an_answer_is_understood_however_it_is_framed(answer: bytes, value: object) -> None:
    async with listening(saying(answer)) as here:
        assert await send(here.url) == value


@cases(
    (b"", "the server closed the connection without a response"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "the server does not speak HTTP/1.1"),
    (b"HTTP/1.1 200 OK\r\nContent-Le", "the response ended within its head"),
    (b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", "the head of the response makes no sense"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", "the head of the response is too large"),
    (OK + b"Content-Length: 9\r\n\r\n{}", "the connection broke within the response"),
    (OK + b"Content-Length: -1\r\n\r\n{}", "a length that makes no sense"),
    (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "a length that makes no sense"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "a piece without a size"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n", "a piece without a size"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n", "a piece of another size"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}", "the connection broke within the response"),
    (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "encoded as gzip, chunked"),
    (OK + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", "packed as br"),
    (OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "cannot be unpacked"),
)
async def test_what_is_no_answer_is_a_failed_connection(answer: bytes, error: str) -> None:
    async with listening(saying(answer)) as here:
        with pytest.raises(ConnectionFailed, match=error):
            await send(here.url)


async def test_connections_are_kept_and_shared_by_users_of_the_same_place() -> None:
    answer = OK + b"Content-Length: 2\r\n\r\n{}"
    async with listening(saying(answer, answer, answer)) as here:
        one, other = (HttpTransport(RestConfig(server=f"{here.url}{path}")) for path in ("", "/proxy"))
        await one.call(GET)
        await one.call(GET)
        await other.call(GET)
        assert here.connections == 1
        await one.close()
        await other.close()


async def test_a_kept_connection_that_has_ended_is_replaced() -> None:
    async with listening(saying(OK + b"Content-Length: 2\r\n\r\n{}")) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        assert await transport.call(GET) == {}
        assert await transport.call(GET) == {}
        assert here.connections == 2
        await transport.close()


async def test_a_connection_is_not_kept_when_the_server_says_so_or_the_body_was_not_read() -> None:
    closing = OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
    async with listening(saying(closing, then_close=False)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        await transport.call(GET)
        await transport.call(GET)
        assert here.connections == 2
        await transport.close()
    endless = OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    async with listening(saying(endless, then_close=False)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        for _ in range(2):
            stream = transport.stream(GET)
            assert await anext(stream) == b"x"
            await stream.aclose()  # type: ignore[attr-defined]
        assert here.connections == 2
        await transport.close()


async def test_a_connection_that_waited_too_long_or_said_something_unasked_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = OK + b"Content-Length: 2\r\n\r\n{}"
    async with listening(saying(answer + b"HTTP/1.1 200 OK\r\n", then_close=False)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        await transport.call(GET)
        await transport.call(GET)
        assert here.connections == 2
        await transport.close()
    async with listening(saying(answer, then_close=False)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        await transport.call(GET)
        monkeypatch.setattr(http1, "_IDLE_SECONDS", -1.0)
        await transport.call(GET)
        assert here.connections == 2
        await transport.close()


async def test_with_the_last_user_of_a_place_its_connections_end() -> None:
    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await saying(OK + b"Content-Length: 2\r\n\r\n{}", then_close=False)(reader, writer)
        ended.set()

    async with listening(talk) as here:
        staying = HttpTransport(RestConfig(server="http://127.0.0.1:1"))
        leaving = HttpTransport(RestConfig(server=here.url))
        with pytest.raises(ConnectionFailed):
            await staying.call(GET)
        await leaving.call(GET)
        await leaving.close()
        async with asyncio.timeout(LIMIT):
            await ended.wait()
        await staying.close()


async def test_large_bodies_come_whole_however_slowly_they_are_read_and_sent() -> None:
    size = 3_000_000

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sent = await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(sent) + sent)
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"y" * size)
        await writer.drain()

    async with listening(talk) as here:
        transport = HttpTransport(RestConfig(server=here.url, timeout=LIMIT))
        assert await transport.call(Call("POST", "/x", body="x" * size)) == f'"{"x" * size}"'
        pieces = [piece async for piece in transport.stream(GET)]
        assert b"".join(pieces) == b"y" * size
        assert here.connections == 1
        await transport.close()


async def test_a_server_that_opens_no_connection_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as here:
        way = RestConfig(server=here.url.replace("http", "https"), insecure=True, timeout=30, connect_timeout=0.05)
        transport = HttpTransport(way)
        with pytest.raises(ConnectionFailed, match=r"no connection within 0\.05s"):
            await transport.call(GET)
        await transport.close()
        transport = HttpTransport(RestConfig(server=here.url, timeout=0.05))
        with pytest.raises(ConnectionFailed, match=r"no response within 0\.05s"):
            await transport.call(GET)
        await transport.close()


async def test_each_request_on_a_connection_has_its_own_time() -> None:
    answer = OK + b"Content-Length: 2\r\n\r\n{}"
    async with listening(saying(answer, answer, then_close=False)) as here:
        transport = HttpTransport(RestConfig(server=here.url, timeout=LIMIT))
        now = asyncio.get_running_loop().time
        for _ in range(2):
            await transport.call(GET)
        transport.config = replace(transport.config, timeout=0.2)
        began = now()
        with pytest.raises(ConnectionFailed, match=r"no response within 0\.2s"):
            await transport.call(GET)
        assert 0.19 < now() - began < LIMIT
        assert here.connections == 1
        await transport.close()


async def test_users_of_a_connection_have_different_times() -> None:
    answer = OK + b"Content-Length: 2\r\n\r\n{}"
    async with listening(saying(answer, answer, then_close=False)) as here:
        hurried = HttpTransport(RestConfig(server=here.url, timeout=2))
        patient = HttpTransport(RestConfig(server=here.url, timeout=LIMIT))
        await hurried.call(GET)
        await asyncio.sleep(2.1)
        await patient.call(GET)
        with pytest.raises(ConnectionFailed, match="no response within 2s"):
            await hurried.call(GET)
        assert here.connections == 1
        await hurried.close()
        await patient.close()


async def test_a_stream_ends_when_its_time_is_over() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"1\r\n\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with listening(trickle) as here:
        transport = HttpTransport(RestConfig(server=here.url, timeout=30))
        with pytest.raises(ConnectionFailed, match="the stream went silent"):
            async for _ in transport._chunks(GET, 0.1):
                pass
        await transport.close()


async def test_warnings_are_reported() -> None:
    answer = OK + b'Warning: 299 - "old \\"x\\""\r\nWarning: 299 - "older"\r\nContent-Length: 2\r\n\r\n{}'
    async with listening(saying(answer)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        refusal: list[str] = []
        transport.on_warning = refusal.append
        await transport.call(GET)
        assert refusal == ['old "x"', "older"]
        await transport.close()


class _Guard:
    """One whose Lease ends at once, or is over."""

    def __init__(self, *, over: bool = False) -> None:
        self._over = over

    def check(self) -> dict[str, str]:
        if self._over:
            raise Fenced("over")
        return {"Fencing-Lease": "a/b/c/1"}

    def was_refused(self) -> None: ...

    def seconds_left(self) -> float:
        return 0.01


async def test_a_guarded_write_ends_with_the_lease_it_is_sent_under() -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as here:
        transport = HttpTransport(RestConfig(server=here.url, timeout=60))
        transport.guard = _Guard()
        with pytest.raises(ConnectionFailed, match="while the sender's Lease was valid"):
            await transport.call(Call("POST", "/x", body={}))
        await transport.close()


async def test_a_write_whose_lease_is_over_is_not_sent_and_a_read_is() -> None:
    async with listening(saying(OK + b"Content-Length: 2\r\n\r\n{}")) as here:
        transport = HttpTransport(RestConfig(server=here.url, timeout=LIMIT))
        transport.guard = _Guard(over=True)
        with pytest.raises(Fenced):
            await transport.call(Call("POST", "/x", body={}))
        assert here.connections == 0
        assert await transport.call(GET) == {}
        await transport.close()
