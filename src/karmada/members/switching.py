"""A transport whose way to the server can be changed under its users.

Clients and informers hold this one for as long as their cluster exists. When credentials or address change, new calls
take the new way at once; the old connections are closed, which ends open watches, and their informers resume.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from karmada.kube.client.config import RestConfig
from karmada.kube.client.https import HttpsTransport
from karmada.kube.client.light import LightTransport, transport_for
from karmada.kube.client.transport import Answer, Call, Socket, WatchEvent


class SwitchingTransport:
    def __init__(self, config: RestConfig) -> None:
        self._current = transport_for(config)
        self._closed = False

    @property
    def config(self) -> RestConfig:
        return self._current.config

    def switch(self, config: RestConfig) -> LightTransport | HttpsTransport | None:
        """From now on this way. The old one is the caller's to close; None when everything is closed already."""
        if self._closed:
            return None
        old, self._current = self._current, transport_for(config, limiter=self._current.limiter)
        return old

    async def call(self, call: Call) -> Any:
        return await self._current.call(call)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._current.answer(call, headers)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._current.watch(call)

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        return self._current.stream(call)

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        return await self._current.connect(path, query, protocols)

    async def close(self) -> None:
        self._closed = True
        await self._current.close()
