"""A transport whose way to the server can be changed under its users.

Clients and informers hold this one for as long as their cluster exists. When credentials or address change, new calls
take the new way at once; the old connections are closed, which ends open watches, and their informers resume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Transport, TransportDecorator

Open: TypeAlias = Callable[[RestConfig, Transport | None], Transport]
"""The way by these settings; the one that was used before, if any, is known to have learnt the member's pace."""


def over_network(config: RestConfig, before: Transport | None) -> Transport:
    limiter = before.limiter if isinstance(before, HttpTransport) else None
    return HttpTransport(config, limiter=limiter)


class SwitchingTransport(TransportDecorator):
    def __init__(self, config: RestConfig, open_way: Open = over_network) -> None:
        super().__init__(open_way(config, None))
        self.config = config
        self._open = open_way
        self._closed = False

    def switch(self, config: RestConfig) -> Transport | None:
        """Use this way from now on. The old one is the caller's to close; None when everything is closed already."""
        if self._closed:
            return None
        old, self.below, self.config = self.below, self._open(config, self.below), config
        return old

    async def close(self) -> None:
        self._closed = True
        await super().close()
