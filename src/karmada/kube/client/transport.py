"""What a client uses: calls and streams, over HTTPS or in-process to the embedded server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from karmada.kube.client.limits import OBJECT_BYTES
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj, Parse


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

    `most` is how many bytes its answer may have when it comes over the network. `one_by_one`: who gets a list iterates
    over its items once, so that they need not be parsed before; in the server's process, as `parse` does it.
    `new_first`: their order does not matter, so that a server in this process may begin with what is new, and needs no
    pages for what is parsed one by one.
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
    one_by_one: bool = False
    new_first: bool = False
    parse: Parse | None = None
    retried: bool = True


class Answer(NamedTuple):
    """An answer as it came, whatever its code says; header names are matched without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Socket(Protocol):
    """A WebSocket that carries binary messages."""

    @property
    def protocol(self) -> str:
        """The subprotocol both sides agreed on."""

    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> bytes | None:
        """The next message; None when the other side has closed."""

    async def close(self) -> None: ...


class Transport(Protocol):
    async def call(self, call: Call) -> Any:
        """The parsed answer (lists carry apiVersion and kind in every item); ApiError or ConnectionFailed on failure.

        What comes back may be shared with others and must not be changed.
        """

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        """The events of a watch request until the server ends the stream.

        ApiError when the server refuses or sends an ERROR event, ConnectionFailed when the stream breaks.
        """

    async def close(self) -> None: ...


class AnswerTransport(Transport, Protocol):
    """A transport that also returns raw responses: for health pages, and for pages with an ETag."""

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> Answer:
        """One request that is not retried nor limited; ConnectionFailed when there is no response."""


class StreamTransport(Transport, Protocol):
    """A transport that also carries what is no JSON: logs as they come, and WebSockets (exec, attach, port-forward)."""

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        """The answer's body in pieces, as they arrive."""

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        """A WebSocket with one of the subprotocols, the first being the most wanted."""


class RawTransport(Transport, Protocol):
    """A transport that also returns bodies unparsed: for caches of bytes, which need nothing but the names in them."""

    async def body(self, call: Call) -> bytes:
        """The body of the response to a `call`, with the same retries and errors."""

    def lines(self, call: Call) -> AsyncIterator[bytes]:
        """The events of a `watch` as lines of JSON; an ERROR event is a line, too."""


GROUP_HEADER: Final = "Create-Group"
"""Of a create whose body is a List: its items are created, and the answer is a list of null or a Status for each."""


@runtime_checkable
class GroupTransport(Transport, Protocol):
    """A transport for which many creates at once are less work than one by one: to a server of ours."""

    async def create_all(self, call: Call, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        """Create objects that have their names, by a `call` without a body; the error of each that was refused.

        None, without a change, if the server takes no group of them. The objects must not be used afterwards.
        """
