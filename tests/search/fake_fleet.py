"""A control plane and members that are fakes in this process, with the caches of search between them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.discovery import RESTMapper
from karmada.kube.client.transport import Transport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, EVENTS, NODES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.search.caches import MemberCaches
from tests.search.recording_sink import RecordingSink
from tests.support.eventually import eventually
from tests.support.fake_api import KINDS, FakeApi, FakeTransport

_PLANE = {
    **KINDS,
    SECRETS: ("Secret", True, ()),
    Cluster.gvr: ("Cluster", False, ()),
    ResourceRegistry.gvr: ("ResourceRegistry", False, ()),
}
CACHED = {"ConfigMap": CONFIG_MAPS, "Node": NODES}


class FakeMemberTransport(FakeTransport):
    async def close(self) -> None:
        self.api.break_watches()


class FakeFleet:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.plane = FakeApi(_PLANE)
        transport = FakeTransport(self.plane)
        self.client = Client(transport, mapper=RESTMapper(transport, clock=clock))
        self.members: dict[str, FakeApi] = {}
        """By the host of their address."""
        self.sink = RecordingSink()
        self.caches = self._caches()

    def _caches(self) -> MemberCaches:
        caches = MemberCaches(self.client, self.client, self.clock, open_way=self._open)
        caches.add_sink(self.sink)
        return caches

    async def restart(self) -> None:
        """The process of search."""
        await self.caches.close()
        self.sink = RecordingSink()
        self.caches = self._caches()
        await self.caches.start()

    def _open(self, config: RestConfig, _before: Transport | None) -> Transport:
        return FakeMemberTransport(self.member(config.server.removeprefix("https://")))

    def member(self, host: str) -> FakeApi:
        return self.members.setdefault(host, FakeApi())

    def client_of(self, host: str) -> Client:
        return Client(FakeTransport(self.member(host)))

    # clusters

    async def join(self, name: str, *, host: str = "", secret: bool = True, labels: Obj | None = None) -> None:
        if secret:
            await self.make_secret(name)
        spec: Obj = {"syncMode": "Push", "apiEndpoint": f"https://{host or name}", "insecureSkipTLSVerification": True}
        ref = {"namespace": "karmada-cluster", "name": name}
        cluster = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {**spec, "secretRef": ref},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        await self.client.create(Cluster.gvr, cluster)

    async def make_secret(self, name: str) -> None:
        data = {"token": base64.b64encode(b"token").decode()}
        metadata = {"name": name, "namespace": "karmada-cluster"}
        await self.client.create(SECRETS, {"metadata": metadata, "data": data})

    async def leave(self, name: str) -> None:
        await self.client.delete(Cluster.gvr, name)
        await self.client.delete(SECRETS, name, "karmada-cluster")

    async def set_ready(self, name: str, ready: bool) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        await self.client.patch(Cluster.gvr, name, "", {"status": status}, subresource="status")

    async def move(self, name: str, host: str) -> None:
        await self.client.patch(Cluster.gvr, name, "", {"spec": {"apiEndpoint": f"https://{host}"}})

    # registries

    async def register(self, name: str, *selectors: tuple[str, str], clusters: Sequence[str] = ()) -> None:
        """Selectors are (kind of v1, namespace); made or changed."""
        named = [{"apiVersion": "v1", "kind": kind, "namespace": namespace} for kind, namespace in selectors]
        spec = {"targetCluster": {"clusterNames": list(clusters)}, "resourceSelectors": named}
        try:
            await self.client.patch(ResourceRegistry.gvr, name, "", {"spec": spec})
        except NotFound:
            await self.client.create(ResourceRegistry.gvr, {"metadata": {"name": name}, "spec": spec})

    def registry(self, name: str) -> Obj:
        return self.plane.objects[ResourceRegistry.gvr, "", name]

    def condition(self, name: str) -> Obj:
        conditions = (self.registry(name).get("status") or {}).get("conditions") or [{}]
        return dict(conditions[0])

    def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["message"]) for event in self.plane.listed(EVENTS)]

    # what is cached

    def names(self, cluster: str, gvr: GVR = CONFIG_MAPS) -> list[str] | None:
        """None: it is not cached."""
        cache = self.caches.cache(cluster, gvr)
        return [obj.name for obj in cache.list()] if cache is not None and cache.synced else None

    async def until(self, condition: Callable[[], Any], show: Callable[[], Any] | None = None) -> None:
        """Time passes until the condition holds."""

        async def met() -> Any:
            held = condition()
            if not held:
                await self.clock.advance(1)
            return held

        await eventually(met, show=show)


@asynccontextmanager
async def running(clock: FakeClock) -> AsyncIterator[FakeFleet]:
    fleet = FakeFleet(clock)
    await fleet.caches.start()
    try:
        yield fleet
    finally:
        await fleet.caches.close()


def config_map(name: str, namespace: str = "default", text: str = "") -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
