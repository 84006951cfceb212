"""A server of a few kinds of its own, behind an API server that knows the accounts and roles.

It has the same handlers, storage, watches and documents, but nothing of Kubernetes' own: no built-in kinds, no default
objects, no controllers, no certificates for others. Authentication and authorisation are passed in, and so is what
answers for group-versions that are not stored here.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.aggregation.backends import Inside
from karmada.kube.server.auth.interface import Decides, Identifies
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.core import ServerCore
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.handlers.discovery import RemoteVersion
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result


class Unstored:
    """Group-versions that a part of this process answers for; in the order of preference."""

    def __init__(self, inside: Inside, versions: Sequence[GroupVersion]) -> None:
        self._inside = inside
        self._versions = tuple(versions)

    def owns(self, version: GroupVersion) -> bool:
        return version in self._versions

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        return await self._inside.handle(request, version)

    @property
    def generation(self) -> int:
        return self._inside.generation

    def remote_versions(self) -> Iterator[RemoteVersion]:
        for rank, version in enumerate(reversed(self._versions), start=1):
            yield RemoteVersion(version, rank, rank, self._inside.resources(version))


class ExtensionServer(ServerCore):
    """`registry`, `handlers` and `pipeline` are filled before `start`."""

    def __init__(
        self,
        config: ServerConfig,
        callers: Identifies,
        rights: Decides,
        tls: ssl.SSLContext,
        clock: Clock | None = None,
        inside: tuple[Inside, Sequence[GroupVersion]] | None = None,
    ) -> None:
        super().__init__(config, clock)
        self._tls = tls
        self._answer_requests(callers, rights, Chain([]), FlowControl())
        if inside is None:
            self._describe()
            return
        unstored = Unstored(*inside)
        self.pipeline.delegate = unstored
        self._describe(unstored.remote_versions, lambda: unstored.generation)

    async def start(self) -> None:
        await self._open_store()
        self.port = await self.http.start(self.config.host, self.config.port, self._tls)
        self._ready = True

    async def stop(self) -> None:
        self._ready = False
        await self._close()
