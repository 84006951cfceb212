"""The ports of simulated pods: a web server with one response, or a real address.

Proxied requests arrive as requests, forwarded ports as bytes; for the latter this implements the minimum of HTTP/1.1.
Where a port is forwarded to a real address, bytes are passed on unchanged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.predicted_runs import serves_hostname

_MOST_HEAD = 64 * 1024
_CHUNK = 1 << 16
_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")

Read = Callable[[], Awaitable[bytes]]
"""The next bytes from the client; none at the end."""
Write = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Page:
    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_type(self) -> str:
        named = {name.lower(): value for name, value in self.headers.items()}
        return named.get("content-type", "text/plain; charset=utf-8")

    def other_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() != "content-type"}


def page(answers: Answers, pod: Obj, port: int, path: str) -> Page:
    answer = answers.http(pod, port, path)
    if answer is None:
        name = meta.name(pod)
        return Page((name if serves_hostname(pod) else f"ok from {name}").encode())
    return Page(answer.body.encode(), answer.status, answer.headers)


async def serve_port(answers: Answers, pod: Obj, port: int, read: Read, write: Write) -> str:
    """Serve one connection to a port until it is closed; the error, or nothing."""
    forward = answers.forward(pod, port)
    if forward is not None:
        return await pass_on(forward.address(), port, read, write)
    stream = _Bytes(read)
    while (head := await stream.head()) is not None:
        method, path, headers = head
        if headers.get("expect", "").lower() == "100-continue":
            await write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not await stream.skip_body(headers):
            break
        keep = headers.get("connection", "").lower() != "close"
        await write(_encoded(page(answers, pod, port, path), head_only=method == "HEAD", keep=keep))
        if not keep:
            break
    return ""


def _encoded(answer: Page, *, head_only: bool, keep: bool) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = {
        **answer.other_headers(),
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "Connection": "keep-alive" if keep else "close",
    }
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head_only else answer.body)


class _Bytes:
    """Requests out of a stream of bytes."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._buffer = b""

    async def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._buffer:
            data = await self._read() if len(self._buffer) < _MOST_HEAD else b""
            if not data:
                return None
            self._buffer += data
        taken, _, self._buffer = self._buffer.partition(mark)
        return taken

    async def head(self) -> tuple[str, str, dict[str, str]] | None:
        """Return method, path and headers of the next request; None at the end, or at what is no HTTP."""
        block = await self._until(b"\r\n\r\n")
        first, *lines = (block or b"").decode("latin-1").lstrip("\r\n").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return None
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if words[2] == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return words[0], words[1], headers

    async def skip_body(self, headers: Mapping[str, str]) -> bool:
        """Return whether the body was there in full."""
        if headers.get("transfer-encoding", "").lower() != "chunked":
            length = headers.get("content-length", "0")
            return length.isdigit() and await self._skip(int(length))
        while (line := await self._until(b"\r\n")) is not None:
            size = line.split(b";")[0].strip()
            if not _HEX.fullmatch(size) or not await self._skip(int(size, 16) + 2):
                return False
            if not int(size, 16):
                return True
        return False

    async def _skip(self, size: int) -> bool:
        while size > len(self._buffer):
            size -= len(self._buffer)
            self._buffer = await self._read()
            if not self._buffer:
                return False
        self._buffer = self._buffer[size:]
        return True


async def pass_on(address: tuple[str, int], port: int, read: Read, write: Write) -> str:
    """Bytes to a real address and back; the error, or nothing."""
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return f"failed to connect to localhost:{port}: dial tcp4 127.0.0.1:{port}: connect: connection refused"

    async def inward() -> None:
        while data := await read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def outward() -> None:
        while data := await reader.read(_CHUNK):
            await write(data)

    sending = asyncio.create_task(inward())
    try:
        await outward()
    except OSError as error:
        return f"error copying from remote stream to local connection: {error}"
    finally:
        await cancel_and_wait(sending)
        writer.close()
    return ""
