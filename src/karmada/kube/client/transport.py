"""What a client uses: calls and streams, over the network or in-process to the embedded server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import orjson

from karmada.kube.client.limits import OBJECT_BYTES
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.objects.types import Obj


class ConnectionFailed(Exception):
    """The server could not be reached, or the connection broke before a response: what happened is unknown."""


class UpgradeRefused(ApiError):
    """No WebSocket was opened; the message is the body of the response, which is no Status."""


_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


class WatchEvent(NamedTuple):
    """type is ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR event is raised as an ApiError instead."""

    type: str
    object: Obj


class Call(NamedTuple):
    """One API request: `path` unescaped and without query, `body` a JSON value or None, never changed by the callee.

    `most` is how many bytes its answer may have when it comes over the network. A server in this process parses only
    what `shape` needs of a list's items, and with `new_first`, as their order does not matter, begins with what is new.
    `retried`: it is sent again when the server requests that (Retry-After); a request for a caller who can do so itself
    is not.
    """

    method: str
    path: str
    query: Mapping[str, str] = _NO_QUERY
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    most: int = OBJECT_BYTES
    new_first: bool = False
    shape: Shape = WHOLE
    retried: bool = True


GROUP_HEADER: Final = "Create-Group"
"""Header of a create whose body is a List: its items are created; the response lists null or a Status for each."""


class RawResponse(NamedTuple):
    """A response as it came, whatever its code says; header names are matched without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Socket(Protocol):
    """A WebSocket that carries binary messages."""

    @property
    def protocol(self) -> str:
        """Return the subprotocol both sides agreed on."""

    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> bytes | None:
        """Return the next message; None when the other side has closed."""

    async def close(self) -> None: ...


class Transport(ABC):
    """A way to one server: over the network, within the process, or around another transport.

    What comes back may be shared with others and must not be changed.
    """

    @abstractmethod
    async def call(self, call: Call) -> Any:
        """Return the parsed response; ApiError or ConnectionFailed.

        Items of a list carry apiVersion and kind. They are a sequence that a server in this process parses on access.
        """

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        """Yield the events of a watch request until the server ends the stream.

        ApiError when the server refuses or sends an ERROR event, ConnectionFailed when the stream breaks.
        """
        raise NotImplementedError(f"{call.path}: no watches here")

    async def close(self) -> None:  # noqa: B027 - most hold nothing open
        """End what is open."""

    async def body(self, call: Call) -> bytes:
        """Return the response to a `call` as bytes, for caches of bytes, with the same retries and errors."""
        return orjson.dumps(await self.call(call))

    async def lines(self, call: Call) -> AsyncIterator[bytes]:
        """Yield the events of a `watch` as lines of JSON; an ERROR event may be a line, too."""
        async for kind, obj in self.watch(call):
            yield orjson.dumps({"type": kind, "object": obj})

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> RawResponse:
        """Return the response as it comes, after one request that is neither limited nor repeated.

        For health pages, and pages with an ETag; ConnectionFailed when there is no response.
        """
        raise NotImplementedError(f"{call.path}: no raw responses here")

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        """Yield the body of a response in pieces, as they arrive: a log that is followed."""
        raise NotImplementedError(f"{call.path}: no streams here")

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        """Open a WebSocket with one of the subprotocols, the first being the most wanted (exec, port-forward)."""
        raise NotImplementedError(f"{path}: no sockets here")

    async def create_all(
        self,
        call: Call,  # noqa: ARG002
        objects: Sequence[Obj],  # noqa: ARG002
    ) -> list[ApiError | None] | None:
        """Create objects that have their names, by a `call` without a body; the error of each that was refused.

        None, without a change, if the server takes no group of them, as only one of ours does. The objects must not be
        used afterwards.
        """
        return None


class TransportDecorator(Transport):
    """Passes everything on to the transport `below`."""

    def __init__(self, below: Transport) -> None:
        self.below = below

    def call(self, call: Call) -> Coroutine[Any, Any, Any]:
        return self.below.call(call)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self.below.watch(call)

    async def close(self) -> None:
        await self.below.close()

    async def body(self, call: Call) -> bytes:
        return await self.below.body(call)

    def lines(self, call: Call) -> AsyncIterator[bytes]:
        return self.below.lines(call)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> RawResponse:
        return await self.below.answer(call, headers)

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        return self.below.stream(call)

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        return await self.below.connect(path, query, protocols)

    async def create_all(self, call: Call, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        return await self.below.create_all(call, objects)
