"""APIServices with a service: which group-versions another server answers for, and how to reach it.

A backend usually is somewhere else. One that lives in this process (`Inside`) is registered under the Service that its
APIServices name; to clients it looks like any other.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.meta import has_condition
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import MASTERS, User
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.kube.server.outbound.https import Outbound, Target, Trust
from karmada.kube.server.outbound.webhooks import Router

AGGREGATOR = User("system:kube-aggregator", groups=(MASTERS,))
"""The user of the server's own requests to backends."""


class ServiceName(NamedTuple):
    namespace: str
    name: str


class Inside(Protocol):
    """A server behind an APIService that lives in this process: it is called, not dialled."""

    @property
    def generation(self) -> int:
        """Rises when `resources` may have changed."""

    def resources(self, version: GroupVersion) -> tuple[Obj, ...]:
        """Return the entries of its APIResourceList."""

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        """Answer a request that is authorised already."""


@dataclass(frozen=True, slots=True)
class Backend:
    name: str
    version: GroupVersion
    service: ServiceName
    port: int
    trust: Trust
    group_priority: int
    version_priority: int
    available: bool

    @property
    def path(self) -> str:
        return f"/apis/{self.version}"

    async def target(self, router: Router, outbound: Outbound) -> Target:
        """Return where to connect now; raises Unroutable or BadTrust."""
        outbound.tls(self.trust)
        address = await router.resolve(*self.service, self.port)
        return Target(address, f"{self.service.name}.{self.service.namespace}.svc", self.trust)


def version_of(name: str) -> GroupVersion:
    """Return the group-version that an APIService of this name is about."""
    version, _, group = name.partition(".")
    return GroupVersion(group, version)


def backend_of(obj: Obj) -> Backend | None:
    """Return None for an APIService that is served here."""
    spec = obj.get("spec") or {}
    service = spec.get("service")
    if service is None:
        return None
    conditions = (obj.get("status") or {}).get("conditions")
    return Backend(
        name=obj["metadata"]["name"],
        version=GroupVersion(spec.get("group") or "", spec.get("version") or ""),
        service=ServiceName(service.get("namespace") or "", service.get("name") or ""),
        port=service.get("port") or 443,
        trust=Trust(_bundle(spec.get("caBundle") or ""), bool(spec.get("insecureSkipTLSVerify"))),
        group_priority=spec.get("groupPriorityMinimum") or 0,
        version_priority=spec.get("versionPriority") or 0,
        available=has_condition(conditions, "Available"),
    )


def _bundle(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return text.encode()  # no certificates either; the connection will say so


def compile_backends(objects: Iterable[Obj]) -> dict[GroupVersion, Backend]:
    found = (backend_of(obj) for obj in objects)
    return {backend.version: backend for backend in found if backend is not None}
