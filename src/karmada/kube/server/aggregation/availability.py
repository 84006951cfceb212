"""Availability: whether the server behind an APIService responds; its Available condition says so, and why not.

Checked when the APIService changes, when its Service or endpoints do, and every half minute; one that does not respond
sooner, after a pause that doubles up to that: nothing reports that the host of an ExternalName responds now. The check
that the backend answers is the request for its list of resources, so what it answers is kept for discovery, and its
OpenAPI document is requested along the way. Every server of a control plane checks for itself: each needs documents;
the condition is written only when it changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

import aiohttp
import orjson

from karmada.kube.client.client import Client
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.gvrs import APISERVICES
from karmada.kube.objects.meta import get_condition, set_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.addresses.service_routing import (
    SERVICES,
    ServiceRouter,
    Unroutable,
    ready_addresses,
    service_port,
)
from karmada.kube.server.aggregation.backends import AGGREGATOR, Backend, ServiceName, backend_of, version_of
from karmada.kube.server.aggregation.documents import Documents, listed_resources
from karmada.kube.server.auth.frontproxy import remote_headers
from karmada.kube.server.outbound.https import BadTrust, Outbound, Target, why

RECHECK_SECONDS = 30.0
CHECK_SECONDS = 5.0
TRIES = 5
_HEADERS = (("Accept", "application/json"), ("User-Agent", "kube-aggregator"), *remote_headers(AGGREGATOR))
_log = get_logger("aggregation")


class Finding(NamedTuple):
    available: bool
    reason: str
    message: str

    def condition(self) -> Obj:
        status = "True" if self.available else "False"
        return {"type": "Available", "status": status, "reason": self.reason, "message": self.message}


LOCAL = Finding(True, "Local", "Local APIServices are always available")
PASSED = Finding(True, "Passed", "all checks passed")


class _Unanswered(Exception):
    """The backend did not answer as it should."""


class Availability(Reconciler):
    name = "apiservice-availability"
    workers = 4
    options = ControllerOptions(needs_leader=False)
    watches = (Watch(APISERVICES, changed=("spec",)),)

    def __init__(
        self,
        client: Client,
        reader: Reader,
        backends: Callable[[], Mapping[GroupVersion, Backend]],
        router: ServiceRouter,
        outbound: Outbound,
        documents: Documents,
        clock: Clock,
        inside: Container[ServiceName] = (),
    ) -> None:
        """Backends `inside` this process answer whenever their Service is there."""
        self._client = client
        self._reader = reader
        self._router = router
        self._outbound = outbound
        self._documents = documents
        self._clock = clock
        self._backends = backends
        self._inside = inside

    def behind(self, namespace: str, service: str) -> Iterator[Key]:
        """Yield the APIServices whose backend is this Service."""
        for backend in self._backends().values():
            if backend.service == (namespace, service):
                yield Key("", backend.name)

    async def reconcile(self, key: Key) -> Result:
        obj = self._reader.get(APISERVICES.group_resource, "", key.name)
        backend = backend_of(obj) if obj is not None else None
        if obj is None or backend is None:
            self._documents.forget(version_of(key.name))
            if obj is not None:
                await self._write(obj, LOCAL)
            return Done
        finding = await self.examine(backend)
        if not finding.available:
            self._documents.learn(backend.version, None)
        await self._write(obj, finding)
        if backend.service in self._inside:
            return Done
        return requeue(RECHECK_SECONDS) if finding.available else Retry

    async def _write(self, obj: Obj, finding: Finding) -> None:
        conditions = (obj.get("status") or {}).get("conditions")
        known = get_condition(conditions, "Available") or {}
        wanted = finding.condition()
        if all(known.get(key) == value for key, value in wanted.items()):
            return
        patch = {"status": {"conditions": set_condition(conditions, wanted, self._clock.now())}}
        name = obj["metadata"]["name"]
        try:
            await self._client.patch(APISERVICES, name, "", patch, subresource="status")
        except NotFound:
            return
        if not finding.available:
            _log.info("API service is not available", name=name, reason=finding.reason, detail=finding.message)

    # the checks

    async def examine(self, backend: Backend) -> Finding:
        return await self._routed(backend) or await self._answered(backend)

    async def _routed(self, backend: Backend) -> Finding | None:
        """Return what is known from the Service and its endpoints alone; None: the backend has to be probed."""
        what = f'service/{backend.service.name} in "{backend.service.namespace}"'
        service = self._reader.get(SERVICES, *backend.service)
        if service is None:
            return Finding(False, "ServiceNotFound", f"{what} is not present")
        if backend.service in self._inside:
            return PASSED
        if ((service.get("spec") or {}).get("type") or "ClusterIP") != "ClusterIP":
            return None
        port = service_port(service, backend.port)
        if port is None:
            return Finding(False, "ServicePortError", f"{what} is not listening on port {backend.port}")
        subsets = await self._router.subsets(*backend.service)
        if not subsets:
            return Finding(False, "EndpointsNotFound", f"cannot find endpointslices for {what}")
        name = port.get("name") or ""
        if next(ready_addresses(subsets, name), None) is None:
            return Finding(False, "MissingEndpoints", f'endpoints for {what} have no addresses with port name "{name}"')
        return None

    async def _answered(self, backend: Backend) -> Finding:
        try:
            target = await backend.target(self._router, self._outbound)
        except (Unroutable, BadTrust) as error:
            name = f"{backend.service.name}.{backend.service.namespace}.svc"
            url = f"https://{name}:{backend.port}{backend.path}"
            return _failed(url, str(error))
        url = f"https://{target.address}{backend.path}"
        text = "no answer"
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                for _ in range(TRIES):
                    try:
                        await self._discover(backend, target, url)
                    except _Unanswered as error:
                        text = str(error)
                        continue
                    await self._fetch_openapi(backend, target)
                    return PASSED
        except TimeoutError:
            text = f'Get "{url}": context deadline exceeded'
        return _failed(url, text)

    async def _discover(self, backend: Backend, target: Target, url: str) -> None:
        status, body, _ = await self._get(target, backend.path)
        if not 200 <= status < 300:
            raise _Unanswered(f"bad status from {url}: {status}")
        try:
            resources = listed_resources(orjson.loads(body))
        except orjson.JSONDecodeError:
            resources = None
        self._documents.learn(backend.version, resources)

    async def _fetch_openapi(self, backend: Backend, target: Target) -> None:
        """Backends without OpenAPI are as good as any other."""
        known = self._documents.openapi_tag(backend.version)
        also = (("If-None-Match", f'"{known}"'),) if known else ()
        try:
            status, body, tag = await self._get(target, f"/openapi/v3{backend.path}", also)
        except _Unanswered as error:
            _log.v(1).info("Cannot fetch OpenAPI", name=backend.name, err=str(error))
            return
        if status == 200 and body[:1] == b"{":
            self._documents.learn_openapi(backend.version, tag, body)
        elif status != 304:
            self._documents.forget_openapi(backend.version)

    async def _get(self, target: Target, path: str, also: tuple[tuple[str, str], ...] = ()) -> tuple[int, bytes, str]:
        headers = (*_HEADERS, *also, ("Host", target.server_name))
        try:
            async with self._outbound.request("GET", target, path, headers=headers) as response:
                body = await response.read()
                return response.status, body, response.headers.get("ETag", "").strip('"')
        except (aiohttp.ClientError, ConnectionError) as error:
            raise _Unanswered(f'Get "https://{target.address}{path}": {why(error, target)}') from error


def _failed(url: str, text: str) -> Finding:
    return Finding(False, "FailedDiscoveryCheck", f"failing or missing response from {url}: {text}")
