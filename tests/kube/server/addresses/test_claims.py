"""Several servers give out one range without giving anything twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Invalid
from karmada.kube.server.addresses.allocator import Allocator
from karmada.kube.server.addresses.claims import CLAIMS, SERVICES, Claims
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.entry import encode_value, storage_key

CIDR = "10.0.0.0/28"


class Fleet:
    """Two servers' allocators over one store; neither sees what the other has in flight but through claims."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.cache = Cache(self.store, self.clock)
        self.claims = Claims(self.cache, self.clock)

    async def start(self) -> None:
        await self.store.open()
        await self.cache.start()

    def server(self) -> Allocator:
        return Allocator(self.cache, CIDR, (30000, 30010), self.claims)


@pytest.fixture
async def fleet() -> Any:
    fleet = Fleet()
    await fleet.start()
    yield fleet
    await fleet.cache.stop()


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    base = {"type": "ClusterIP", "sessionAffinity": "None", "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": base | spec}


async def test_two_servers_never_choose_the_same_address(fleet: Fleet) -> None:
    servers = [fleet.server(), fleet.server()]
    made = [service(f"s{n}") for n in range(12)]
    await asyncio.gather(*(servers[n % 2].reserve(obj, None) for n, obj in enumerate(made)))
    addresses = [obj["spec"]["clusterIP"] for obj in made]
    assert len(set(addresses)) == 12


async def test_an_address_requested_by_name_is_refused_when_another_server_has_it(fleet: Fleet) -> None:
    await fleet.server().reserve(service("first", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"]), None)
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await fleet.server().reserve(service("second", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"]), None)


async def test_a_node_port_requested_by_name_is_refused_and_the_address_given_back(fleet: Fleet) -> None:
    port = {"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30005}
    await fleet.server().reserve(service("first", type="NodePort", ports=[port]), None)
    with pytest.raises(Invalid, match="provided port is already allocated"):
        await fleet.server().reserve(service("second", type="NodePort", ports=[dict(port)]), None)
    claims = fleet.cache.collection(CLAIMS).list()
    assert sorted(entry.object()["owner"][1] for entry in claims) == ["first", "first"]


async def test_a_claim_without_its_service_is_free_again_after_a_while(fleet: Fleet) -> None:
    await fleet.server().reserve(service("lost", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"]), None)
    await fleet.clock.advance(minutes=3)
    again = service("again", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"])
    assert await fleet.server().reserve(again, None) is not None


async def test_sweeping_removes_only_what_nobody_has(fleet: Fleet) -> None:
    kept, lost = service("kept"), service("lost")
    for obj in (kept, lost):
        await fleet.server().reserve(obj, None)
    key = storage_key(SERVICES, "default", "kept")
    await fleet.store.write(key, encode_value(kept), expected=0)
    await fleet.claims.sweep()
    assert len(fleet.cache.collection(CLAIMS).list()) == 2
    await fleet.clock.advance(minutes=3)
    await fleet.claims.sweep()
    assert [entry.object()["owner"][1] for entry in fleet.cache.collection(CLAIMS).list()] == ["kept"]
