"""The aggregator: group-versions of other servers, as if they were served here.

It is the pipeline's delegate for requests, adds the backends to discovery and OpenAPI, and runs the two controllers
that keep APIServices true: availability and registration. Services and endpoints, of which there may be many and of
which few matter, are followed as a stream of changes; nothing of them is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GroupResource, GroupVersion
from karmada.kube.objects.gvrs import APISERVICES
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.controller import Controller
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.addresses.service_routing import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    SERVICE_NAME,
    SERVICES,
    ServiceRouter,
    Unroutable,
)
from karmada.kube.server.aggregation.availability import RECHECK_SECONDS, Availability
from karmada.kube.server.aggregation.backends import Inside, ServiceName, compile_backends
from karmada.kube.server.aggregation.documents import Documents
from karmada.kube.server.aggregation.proxy import Proxy, unavailable
from karmada.kube.server.aggregation.registration import Registration
from karmada.kube.server.handlers.discovery import RemoteVersion
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result, TakeOver
from karmada.kube.server.outbound.https import BadTrust, Outbound
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.derived import Followed

_STOP_SECONDS = 1.0
_RESUBSCRIBE_SECONDS = 1.0
_LEADING_TO_SERVICES: tuple[tuple[GroupResource, Callable[[Doc], str]], ...] = (
    (SERVICES, lambda entry: entry.name),
    (ENDPOINTS, lambda entry: entry.name),
    (ENDPOINT_SLICES, lambda entry: entry.labels.get(SERVICE_NAME, "")),
)
_log = get_logger("aggregation")


class Aggregator:
    """`front_proxy` is the certificate and key file that backends know this server by."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        registry: Registry,
        *,
        front_proxy: tuple[Path, Path],
        clock: Clock,
    ) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._backends = Followed(cache, APISERVICES.group_resource, compile_backends)
        self._router = ServiceRouter(cache)
        self._outbound = Outbound(front_proxy)
        self._proxy = Proxy(self._outbound)
        self._documents = Documents()
        self.inside: dict[ServiceName, Inside] = {}
        self.availability = Availability(
            client, cache, self._backends.get, self._router, self._outbound, self._documents, clock, self.inside
        )
        self.registration = Registration(client, cache, registry)
        self._informers: Informers | None = None
        self._controllers: list[Controller] = []
        self._followers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._informers = Informers(self._client, clock=self._clock)
        availability = Controller(self.availability, self._informers, back_off=BackOff(0.5, RECHECK_SECONDS))
        self._controllers = [Controller(self.registration, self._informers), availability]
        self._followers = [
            asyncio.create_task(self._follow(resource, service, availability), name=f"aggregation follows {resource}")
            for resource, service in _LEADING_TO_SERVICES
        ]
        for controller in self._controllers:
            await controller.start()

    def reload_certificate(self) -> None:
        """Load the files of the front-proxy certificate again after they have changed."""
        self._outbound.reload()

    async def stop(self) -> None:
        await cancel_and_wait(*self._followers)
        for controller in self._controllers:
            await controller.stop(_STOP_SECONDS)
        self._controllers, self._followers = [], []
        if self._informers is not None:
            await self._informers.stop()
            self._informers = None
        await self._outbound.close()

    async def _follow(self, resource: GroupResource, service: Callable[[Doc], str], check: Controller) -> None:
        """Have those backends checked whose Service or endpoints change; a gap is made up for by the next recheck."""
        while True:
            async for batch in await self._cache.collection(resource).subscribe():
                for change in batch:
                    for key in self.availability.behind(change.entry.namespace, service(change.entry)):
                        check.add(key)
            await self._clock.sleep(_RESUBSCRIBE_SECONDS)

    # requests

    def owns(self, version: GroupVersion) -> bool:
        return version in self._backends.get()

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        backend = self._backends.get()[version]
        if not backend.available:
            return unavailable("service unavailable")
        inside = self.inside.get(backend.service)
        if inside is not None:
            return await inside.handle(request, version)
        try:
            target = await backend.target(self._router, self._outbound)
        except Unroutable as error:
            _log.error("Cannot resolve the service of an API service", error, name=backend.name)
            return unavailable("service unavailable")
        except BadTrust as error:
            return RawResult(f"{error}\n".encode(), "text/plain; charset=utf-8", 500)
        if request.in_process:
            return await self._proxy.call(request, target)

        async def run(raw: Any) -> Any:
            return await self._proxy.forward(request, target, raw)

        return TakeOver(run)

    # documents

    @property
    def generation(self) -> int:
        """Rises when `remote_versions` may have changed."""
        self._backends.get()
        own = self._backends.generation + self._documents.generation
        return own + sum(inside.generation for inside in self.inside.values())

    def remote_versions(self) -> Iterator[RemoteVersion]:
        for version, backend in self._backends.get().items():
            inside = self.inside.get(backend.service)
            resources = inside.resources(version) if inside is not None else self._documents.resources(version)
            resources = resources if backend.available else None
            yield RemoteVersion(version, backend.group_priority, backend.version_priority, resources)

    def openapi_documents(self) -> dict[str, tuple[str, bytes]]:
        """Return the hash and the gzipped document by path below /openapi/v3."""
        backends = self._backends.get()
        return {f"apis/{v}": document for v, document in self._documents.openapi().items() if v in backends}
