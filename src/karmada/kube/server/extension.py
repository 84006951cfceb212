"""A server of a few kinds of its own, behind an API server that knows the accounts and roles.

It has the same handlers, storage, watches and documents, but nothing of Kubernetes' own: no built-in kinds, no default
objects, no controllers, no certificates for others. Authentication and authorisation are passed in.
"""

from __future__ import annotations

import ssl

from karmada.kube.objects.clock import Clock
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.auth.interface import Decides, Identifies
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.core import ServerCore
from karmada.kube.server.flowcontrol.control import FlowControl


class ExtensionServer(ServerCore):
    """`registry`, `handlers` and `pipeline` are filled before `start`."""

    def __init__(
        self,
        config: ServerConfig,
        callers: Identifies,
        rights: Decides,
        tls: ssl.SSLContext,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(config, clock)
        self._tls = tls
        self._answer_requests(callers, rights, Chain([]), FlowControl())
        self._describe()

    async def start(self) -> None:
        await self._open_store()
        self.port = await self.http.start(self.config.host, self.config.port, self._tls)
        self._ready = True

    async def stop(self) -> None:
        self._ready = False
        await self._close()
