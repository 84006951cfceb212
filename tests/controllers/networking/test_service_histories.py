"""Whatever happens to services, pods, clusters and controllers: at rest consumers have what providers have, no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.api.multicluster import ServiceExport
from karmada.api.networking import MultiClusterService
from karmada.controllers.networking.carriers import is_ours
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, SLICES
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.rehearsal.network import State
from tests.controllers.networking.exporting import MEMBERS, ServingFleet, export, service
from tests.controllers.networking.test_multi_cluster_service import made_for_services, offered, retire
from tests.support.played_fleet import started
from tests.support.propagation import deployment, placed, policy, selecting

SERVICE = MultiClusterService.gvr
clusters = st.sampled_from(MEMBERS)
some_clusters = st.lists(clusters, max_size=3, unique=True).map(tuple)
step = st.one_of(
    st.tuples(st.just("scale"), st.integers(0, 3)),
    st.tuples(st.just("offer"), some_clusters, some_clusters),
    st.tuples(st.just("withdraw")),
    st.tuples(st.just("export")),
    st.tuples(st.just("end export")),
    st.tuples(st.just("network"), clusters, st.sampled_from([State.DOWN, State.UP])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash"), st.integers(0, 12)),
)
pause = st.sampled_from([0.0, 0.0, 0.2, 5.0, 40.0])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingFleet]:
    yield from started(ServingFleet(tmp_path_factory.mktemp("histories"), gates="MultiClusterService=true"))


async def crash(fleet: ServingFleet, writes: int) -> None:
    """The control plane ends after so many more writes, and starts again with what is stored."""
    store: Any = fleet.fleet.server.store
    write, left = store.write, writes

    async def limited(*given: Any, **named: Any) -> int:
        nonlocal left
        if left <= 0:
            raise StoreUnavailable("crashed")
        left -= 1
        found: int = await write(*given, **named)
        return found

    store.write = limited
    try:
        await fleet.run(seconds=2)
        await fleet.fleet.stop_controllers()
    finally:
        del store.write
    await fleet.fleet.start_controllers()


async def perform(fleet: ServingFleet, what: str, *how: Any) -> None:
    there = fleet.stored(SERVICE)
    if what == "scale":
        await fleet.client.patch(DEPLOYMENTS, "serve", "default", {"spec": {"replicas": how[0]}})
    elif what == "offer" and "serve" not in there:
        await fleet.create(offered(*how))
    elif what == "offer":
        await fleet.client.patch(SERVICE, "serve", "default", {"spec": offered(*how)["spec"] | _cleared(*how)})
    elif what == "withdraw" and "serve" in there and not meta.is_deleting(there["serve"]):
        await fleet.client.delete(SERVICE, "serve", "default")
    elif what == "export" and "serve" not in fleet.stored(ServiceExport.gvr):
        await fleet.create(export())
    elif what == "end export" and "serve" in fleet.stored(ServiceExport.gvr):
        await fleet.client.delete(ServiceExport.gvr, "serve", "default")
    elif what == "network":
        fleet.fleet.change_network(*how)
    elif what == "restart":
        await fleet.fleet.stop_controllers()
        await fleet.fleet.start_controllers()
    elif what == "crash":
        await crash(fleet, *how)


def _cleared(providers: tuple[str, ...], consumers: tuple[str, ...]) -> dict[str, None]:
    lists = {"providerClusters": providers, "consumerClusters": consumers}
    return {field: None for field, names in lists.items() if not names}


def own(fleet: ServingFleet, member: str) -> dict[str, set[str]]:
    """The EndpointSlices that a cluster has of its own pods."""
    made = {name for name, found in fleet.stored(SLICES, member=member).items() if is_ours(found)}
    return {name: found for name, found in fleet.slices("serve", member).items() if name not in made}


def check(fleet: ServingFleet) -> None:
    offer = fleet.stored(SERVICE).get("serve")
    spec = offer["spec"] if offer is not None else {}
    providers = [c["name"] for c in spec.get("providerClusters") or ()] or list(MEMBERS)
    consumers = [c["name"] for c in spec.get("consumerClusters") or ()] or list(MEMBERS)
    for member in MEMBERS:
        seen = {n: a for n, a in fleet.slices("serve", member).items() if n not in own(fleet, member)}
        sources = [p for p in providers if p != member] if offer is not None and member in consumers else []
        assert seen == {f"{p}-{name}": found for p in sources for name, found in own(fleet, p).items()}, member
    exporting = ["m1", "m2"] if "serve" in fleet.stored(ServiceExport.gvr) else []
    imported = {f"imported-{c}-{name}": found for c in exporting for name, found in own(fleet, c).items()}
    assert fleet.slices("derived-serve", "m3") == imported


@settings(max_examples=4, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.tuples(step, pause), min_size=3, max_size=10))
def test_at_rest_consumers_have_what_providers_have(fleet: ServingFleet, history: list[Any]) -> None:
    async def scenario() -> None:
        await fleet.create(
            policy("serve-pods", selecting(name="serve"), placement=placed("m1", "m2")),
            policy("serve", selecting("Service", name="serve"), placement=placed("m1", "m2")),
            policy("serve-export", _of_services("ServiceExport"), placement=placed("m1", "m2")),
            deployment("serve", replicas=1),
            service(),
        )
        await fleet.import_to("m3")
        for (what, *how), seconds in history:
            await perform(fleet, what, *how)
            await fleet.run(seconds=seconds)
        for member in MEMBERS:
            fleet.fleet.change_network(member, State.UP)
        await fleet.run(seconds=240)
        check(fleet)
        await retire(fleet)
        for member in MEMBERS:
            assert not fleet.carriers(member)
            assert not made_for_services(fleet, member)
            assert not fleet.slices("derived-serve", member)
            assert not fleet.slices("serve", member)

    fleet.play(scenario())


def _of_services(kind: str) -> dict[str, Any]:
    return {**selecting(kind, name="serve"), "apiVersion": ServiceExport.gvk.api_version}
