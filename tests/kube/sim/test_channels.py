from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.client.pod_streams import ERROR, RESIZE, STDERR, STDIN, STDOUT
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.request import Query
from karmada.kube.sim.kubelet import portforward
from karmada.kube.sim.kubelet.answers import Answers, Http
from karmada.kube.sim.kubelet.channels import Channels, Wanted, check_upgrade, failed, offered, success, unframed
from karmada.kube.sim.kubelet.spdy import (
    DICTIONARY,
    FIN,
    GOAWAY,
    PING,
    RST_STREAM,
    SYN_REPLY,
    SYN_STREAM,
    Connection,
    HeaderReader,
    HeaderWriter,
    SpdyError,
    control_frame,
    data_frame,
)
from karmada.kube.sim.kubelet.terminal import Terminal
from karmada.kube.sim.kubelet.web import page, serve_port
from tests.support.cases import cases

# --- SPDY


class Client:
    """The other side of a Connection: makes frames, and reads those that come back."""

    def __init__(self) -> None:
        self._inbound: asyncio.Queue[bytes] = asyncio.Queue()
        self.sent = b""
        self._headers = HeaderWriter()
        self.connection = Connection(self._inbound.get, self._transmit)

    async def _transmit(self, data: bytes) -> None:
        self.sent += data

    def send(self, data: bytes) -> None:
        self._inbound.put_nowait(data)

    def open(self, number: int, headers: dict[str, str], flags: int = 0) -> None:
        self.send(control_frame(SYN_STREAM, flags, struct.pack(">IIH", number, 0, 0) + self._headers.write(headers)))

    def frames(self) -> Iterator[tuple[int, int, bytes]]:
        """(stream number or control type, flags, payload) of all that came back."""
        at = 0
        while at < len(self.sent):
            first, second = struct.unpack_from(">II", self.sent, at)
            length = second & 0xFFFFFF
            yield first & 0xFFFF, second >> 24, self.sent[at + 8 : at + 8 + length]
            at += 8 + length


def test_the_dictionary_is_the_one_everybody_has() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=10)


@given(st.lists(st.dictionaries(names, st.text(max_size=50)), min_size=1))
def test_headers_survive_compression_one_block_after_another(blocks: list[dict[str, str]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.read(writer.write(block)) for block in blocks] == blocks


def test_headers_that_make_no_sense_or_are_huge_are_refused() -> None:
    with pytest.raises(SpdyError, match="cannot be read"):
        HeaderReader().read(b"no zlib")
    with pytest.raises(SpdyError, match="too long"):
        HeaderReader().read(HeaderWriter().write({"a": "x" * 100_000}))


async def test_a_stream_is_answered_carries_bytes_both_ways_and_ends() -> None:
    client = Client()
    task = asyncio.create_task(client.connection.run())
    client.open(1, {"streamType": "stdin"})
    stream = await client.connection.accept()
    assert stream is not None
    assert stream.headers == {"streamtype": "stdin"}
    frame = data_frame(1, 0, b"hello ") + data_frame(1, FIN, b"world")
    client.send(frame[:5])
    client.send(frame[5:])
    assert [await stream.read(), await stream.read(), await stream.read()] == [b"hello ", b"world", b""]
    await stream.write(b"answer")
    await stream.close()
    await stream.write(b"too late")
    client.send(b"")
    await task
    assert await client.connection.accept() is None
    frames = list(client.frames())
    assert [frame[:2] for frame in frames] == [(SYN_REPLY, 0), (1, 0), (1, FIN)]
    assert frames[1][2] == b"answer"


async def test_pings_come_back_and_resets_end_a_stream() -> None:
    client = Client()
    task = asyncio.create_task(client.connection.run())
    client.open(1, {})
    stream = await client.connection.accept()
    assert stream is not None
    client.send(control_frame(PING, 0, b"\0\0\0\7"))
    client.send(control_frame(RST_STREAM, 0, struct.pack(">II", 1, 5)))
    assert await stream.read() == b""
    client.send(data_frame(1, 0, b"nobody listens"))
    client.send(control_frame(GOAWAY, 0, b"\0" * 8))
    await task
    assert (PING, 0, b"\0\0\0\7") in list(client.frames())


async def test_a_client_that_leaves_ends_its_streams() -> None:
    client = Client()
    task = asyncio.create_task(client.connection.run())
    client.open(1, {})
    stream = await client.connection.accept()
    assert stream is not None
    client.send(b"\0\0\0")
    client.send(b"")
    await task
    assert await stream.read() == b""


@cases(b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\1\xff\xff\xff\xff")
async def test_nonsense_is_an_error(junk: bytes) -> None:
    client = Client()
    client.send(junk)
    client.send(b"")
    with pytest.raises(SpdyError):
        await client.connection.run()


async def test_a_stream_opened_twice_is_an_error() -> None:
    client = Client()
    client.open(1, {})
    client.open(1, {})
    with pytest.raises(SpdyError, match="twice"):
        await client.connection.run()


# --- channels


class Sent:
    def __init__(self) -> None:
        self.messages: list[tuple[int, bytes]] = []

    async def __call__(self, channel: int, data: bytes) -> None:
        self.messages.append((channel, data))

    def text(self) -> bytes:
        return b"".join(data for _, data in self.messages)


async def test_what_the_client_does_not_want_is_dropped_and_a_terminal_has_one_output() -> None:
    sent = Sent()
    channels = Channels(Wanted(stdout=True), "v4.channel.k8s.io", sent)
    await channels.write(STDOUT, b"a")
    await channels.write(STDERR, b"b")
    terminal = Channels(Wanted(stdin=True, stdout=True, stderr=True, tty=True), "v5.channel.k8s.io", sent)
    await terminal.write(STDERR, b"c")
    assert sent.messages == [(STDOUT, b"a"), (STDOUT, b"c")]
    assert await channels.stdin.read() == b""
    assert Wanted(stdin=True, stdout=True, tty=True).channels() == {STDIN, STDOUT, ERROR, RESIZE}


@cases(
    ("v4.channel.k8s.io", success(), b'{"metadata":{},"status":"Success"}'),
    ("channel.k8s.io", success(), b""),
    ("v2.channel.k8s.io", failed(3, ["x"]), failed(3, ["x"])["message"].encode()),
)
async def test_the_error_channel_reports_how_it_ended(protocol: str, status: Obj, said: bytes) -> None:
    sent = Sent()
    await Channels(Wanted(stdout=True), protocol, sent).finish(status)
    assert sent.text() == said


def test_a_failure_carries_the_exit_code_as_a_cause() -> None:
    status = failed(3, ["sh", "-c", "exit 3"])
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["message"].startswith("command terminated with non-zero exit code: ")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_sizes_are_noted_and_nonsense_is_not() -> None:
    channels = Channels(Wanted(stdout=True, tty=True), "v5.channel.k8s.io", Sent())
    channels.resized(b'{"Width":80,"Height":24}')
    channels.resized(b"wide")
    channels.resized(b"[]")
    assert channels.size == (80, 24)


@cases((b"\0hi", (0, b"hi")), ("0aGk=", (0, b"hi")), ("x", (-1, b"")), ("0!!", (-1, b"")), (b"\xff\0", (255, b"\0")))
def test_messages_are_taken_apart(message: str | bytes, expected: tuple[int, bytes]) -> None:
    assert unframed(message) == expected


WEBSOCKET = {"Connection": "Upgrade", "Upgrade": "websocket"}


@cases(
    {},
    {"Connection": "Upgrade", "Upgrade": "h2c"},
    {**WEBSOCKET, "Sec-WebSocket-Protocol": "v9.channel.k8s.io"},
)
def test_without_a_common_language_the_request_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        check_upgrade(headers)


def test_tokens_among_the_subprotocols_are_no_protocols() -> None:
    token = "base64url.bearer.authorization.k8s.io.abc"
    headers = {**WEBSOCKET, "Sec-WebSocket-Protocol": f"{token}, v5.channel.k8s.io"}
    assert offered(headers) == ["v5.channel.k8s.io"]
    check_upgrade(headers)


# --- terminals


async def typed(*keys: bytes) -> tuple[list[bytes], bytes]:
    """The lines that come of these keys, and what the screen shows."""
    sent = Sent()
    channels = Channels(Wanted(stdin=True, stdout=True, tty=True), "v5.channel.k8s.io", sent)
    for key in keys:
        await channels.stdin.put(key)
    channels.stdin.end()
    lines = []
    async with Terminal(channels, FakeClock()) as terminal:
        while line := await terminal.read():
            lines.append(line)
    return lines, sent.text()


@cases(
    ([b"hi\r"], [b"hi\n"], b"hi\r\n"),
    ([b"hx\x7fi", b"\r"], [b"hi\n"], b"hx\b \bi\r\n"),
    ([b"ab\x15c\r"], [b"c\n"], b"ab\b \b\b \bc\r\n"),
    ([b"ab\x03c\r"], [b"\n", b"c\n"], b"ab^C\r\nc\r\n"),
    ([b"\x04never\r"], [], b""),
    ([b"a\x04b\r"], [b"ab\n"], b"ab\r\n"),
)
async def test_keys_become_lines_and_are_echoed(keys: list[bytes], lines: list[bytes], screen: bytes) -> None:
    got, shown = await typed(*keys)
    assert got == lines
    assert shown.startswith(screen)


async def test_control_c_interrupts_what_runs() -> None:
    channels = Channels(Wanted(stdin=True, stdout=True, tty=True), "v5.channel.k8s.io", Sent())
    async with Terminal(channels, FakeClock()) as terminal:

        async def forever() -> int:
            await channels.stdin.put(b"\x03")
            await asyncio.get_running_loop().create_future()
            return 0

        assert await terminal.attend(forever()) == 130


# --- forwarded ports


def talk(*pieces: bytes, answers: Answers | None = None) -> tuple[bytes, str]:
    """What a pod's port says to these bytes."""

    async def both() -> tuple[bytes, str]:
        inbound, out = [*pieces, b""], bytearray()

        async def read() -> bytes:
            return inbound.pop(0) if inbound else b""

        async def write(data: bytes) -> None:
            out.extend(data)

        pod = {"metadata": {"name": "web", "namespace": "default"}}
        wrong = await serve_port(answers or Answers(), pod, 80, read, write)
        return bytes(out), wrong

    return asyncio.run(both())


def test_http_is_answered_by_the_pods_name_request_after_request() -> None:
    said, wrong = talk(b"GET /a HT", b"TP/1.1\r\nHost: x\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n")
    assert wrong == ""
    assert said.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert said.count(b"ok from web") == 1


def test_serve_hostname_answers_with_the_pods_name() -> None:
    serving = {"containers": [{"name": "c", "image": "agnhost", "args": ["serve-hostname"]}]}
    pod = {"metadata": {"name": "web-1", "namespace": "default"}, "spec": serving}
    assert page(Answers(), pod, 9376, "/").body == b"web-1"


def test_bodies_are_drained_and_old_clients_are_disconnected() -> None:
    posted = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    old = b"GET / HTTP/1.0\r\n\r\n"
    said, _ = talk(posted + chunked + old + b"GET /never HTTP/1.1\r\n\r\n")
    assert said.count(b"ok from web") == 3
    assert b"Connection: close" in said


@cases(b"\x16\x03\x01\x02", b"hello\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
def test_what_is_no_http_gets_no_answer(junk: bytes) -> None:
    assert talk(junk) == (b"", "")


def test_ports_return_the_configured_response() -> None:
    answers = Answers()
    answers.set(
        "down", Http(port=80, path="^/health", status=503, body="{}", headers={"Content-Type": "application/json"})
    )
    said, _ = talk(b"GET /healthz HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", answers=answers)
    assert said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"Content-Type: application/json\r\n" in said
    assert said.endswith(b"ok from web")
    assert answers.remove("down")


@cases({}, {"ports": "0"}, {"ports": "80,x"}, {"ports": "70000"})
def test_ports_must_be_ports(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        portforward.ports_of(Query.of(query))
    with pytest.raises(BadRequest):
        portforward.check_request(WEBSOCKET, Query.of(query))


def test_several_ports_may_be_requested() -> None:
    assert portforward.ports_of(Query.parse("ports=80,443&ports=8080")) == [80, 443, 8080]
