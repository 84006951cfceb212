"""A transport whose way to the server can be changed under its users.

Clients and informers hold this one for as long as their cluster exists. When credentials or address change, new calls
take the new way at once; the old connections are closed, which ends open watches, and their informers resume.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import (
    Answer,
    AnswerTransport,
    Call,
    RawTransport,
    Socket,
    StreamTransport,
    WatchEvent,
)


class MemberTransport(AnswerTransport, StreamTransport, RawTransport, Protocol):
    """The way to one member: a connection over the network, unless the member is in this process."""

    config: RestConfig


Open: TypeAlias = Callable[[RestConfig, MemberTransport | None], MemberTransport]
"""The way by these settings; the one that was used before, if any, is known to have learnt the member's pace."""


def over_network(config: RestConfig, before: MemberTransport | None) -> MemberTransport:
    limiter = before.limiter if isinstance(before, HttpTransport) else None
    return HttpTransport(config, limiter=limiter)


class SwitchingTransport:
    def __init__(self, config: RestConfig, open_way: Open = over_network) -> None:
        self._open = open_way
        self._current = open_way(config, None)
        self._closed = False

    @property
    def config(self) -> RestConfig:
        return self._current.config

    def switch(self, config: RestConfig) -> MemberTransport | None:
        """From now on this way. The old one is the caller's to close; None when everything is closed already."""
        if self._closed:
            return None
        old, self._current = self._current, self._open(config, self._current)
        return old

    def call(self, call: Call) -> Coroutine[Any, Any, Any]:
        return self._current.call(call)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._current.answer(call, headers)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._current.watch(call)

    async def body(self, call: Call) -> bytes:
        return await self._current.body(call)

    def lines(self, call: Call) -> AsyncIterator[bytes]:
        return self._current.lines(call)

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        return self._current.stream(call)

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        return await self._current.connect(path, query, protocols)

    async def close(self) -> None:
        self._closed = True
        await self._current.close()
