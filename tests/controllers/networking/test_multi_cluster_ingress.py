"""A MultiClusterIngress is an Ingress where its backends are, and has the addresses of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.networking import MultiClusterIngress, MultiClusterService
from karmada.api.policy import PropagationPolicy
from karmada.controllers.networking.multi_cluster_ingress import backends_of
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import INGRESSES
from karmada.kube.objects.types import Obj
from tests.controllers.networking.exporting import ServingFleet, service
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.played_fleet import started
from tests.support.propagation import placed, policy, selecting

MCI = MultiClusterIngress.gvr


def path_to(name: str, path: str = "/") -> Obj:
    backend = {"service": {"name": name, "port": {"number": 80}}}
    return {"path": path, "pathType": "Prefix", "backend": backend}


def rules(*names: str) -> list[Obj]:
    return [{"host": "web.example.com", "http": {"paths": [path_to(name, f"/{name}") for name in names]}}]


def ingress(**spec: Any) -> Obj:
    return kube_object(
        MultiClusterIngress.gvk.api_version, "MultiClusterIngress", "web", "default", annotations={"example.com/a": "b"}
    ) | {"spec": spec}


@cases(
    ({"rules": rules("a", "b", "a")}, ["a", "b"]),
    ({"template": {"spec": {"rules": rules("a")}}}, ["a"]),
    ({"defaultBackend": {"service": {"name": "d"}}, "rules": rules("a")}, ["d", "a"]),
    ({"defaultBackend": {"resource": {"kind": "Bucket", "name": "x"}}}, []),
    ({}, []),
)
def test_backends_are_the_services_of_either_form(spec: Obj, names: list[str]) -> None:
    assert backends_of(ingress(**spec)) == names


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingFleet]:
    yield from started(ServingFleet(tmp_path_factory.mktemp("serving"), gates="MultiClusterService=true"))


@pytest.fixture
def fleet(shared: ServingFleet) -> Iterator[ServingFleet]:
    yield shared
    shared.play(retire(shared))
    for cluster in shared.fleet.members:
        assert not shared.stored(INGRESSES, member=cluster)


async def retire(fleet: ServingFleet) -> None:
    for gvr in (MCI, MultiClusterService.gvr):
        for name in fleet.stored(gvr):
            await fleet.client.delete(gvr, name, "default")
    for name in fleet.fleet.members:
        await fleet.client.patch(Cluster.gvr, name, "", {"status": {"remedyActions": None}}, subresource="status")
    await fleet.run()
    await fleet.clear()


async def services_in(fleet: ServingFleet, **places: tuple[str, ...]) -> None:
    for name, clusters in places.items():
        await fleet.create(service(name), policy(name, selecting("Service", name=name), placement=placed(*clusters)))
    await fleet.run()


def where(fleet: ServingFleet) -> list[str]:
    return [name for name in fleet.fleet.members if "web" in fleet.stored(INGRESSES, member=name)]


def status(fleet: ServingFleet) -> Obj:
    found: Obj = fleet.stored(MCI)["web"].get("status") or {}
    return found


def condition(fleet: ServingFleet) -> tuple[str, str]:
    (found,) = status(fleet)["conditions"]
    return found["status"], found["reason"]


@cases("spec", "template")
def test_the_ingress_is_where_its_backends_are(form: str, fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await services_in(fleet, front=("m1", "m2"))
        spec: Obj = {"rules": rules("front")}
        await fleet.create(ingress(**(spec if form == "spec" else {"template": {"spec": spec}})))
        await fleet.run()
        assert where(fleet) == ["m1", "m2"]
        there = fleet.stored(INGRESSES, member="m1")["web"]
        assert there["spec"]["rules"] == rules("front")
        assert meta.annotations(there)["example.com/a"] == "b"
        assert status(fleet)["serviceLocations"] == [{"name": "front", "clusters": ["m1", "m2"]}]
        assert condition(fleet) == ("True", "BackendsFound")
        await fleet.client.patch(PropagationPolicy.gvr, "front", "default", {"spec": {"placement": placed("m2", "m3")}})
        await fleet.run(seconds=40)
        assert where(fleet) == ["m2", "m3"]

    fleet.play(scenario())


def test_addresses_of_all_load_balancers_come_together(fleet: ServingFleet) -> None:
    """Those of members come from their ingress controllers, which the simulator has, too."""

    async def scenario() -> None:
        await services_in(fleet, front=("m1", "m2"))
        await fleet.create(ingress(rules=rules("front"), ingressClassName="nginx"))
        await fleet.run(seconds=60)
        there = [fleet.stored(INGRESSES, member=name)["web"]["status"]["loadBalancer"] for name in ("m1", "m2")]
        expected = {address["ip"] for balancer in there for address in balancer["ingress"]}
        assert expected
        assert {address["ip"] for address in status(fleet)["loadBalancer"]["ingress"]} == expected

    fleet.play(scenario())


def test_a_backend_that_is_not_there_is_a_condition(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.create(ingress(rules=rules("front", "back")))
        await services_in(fleet, front=("m1", "m2"))
        assert condition(fleet) == ("False", "BackendNotFound")
        (found,) = status(fleet)["conditions"]
        assert "back" in found["message"]
        assert where(fleet) == ["m1", "m2"]
        await services_in(fleet, back=("m2", "m3"))
        assert where(fleet) == ["m2"]
        assert condition(fleet) == ("True", "BackendsFound")

    fleet.play(scenario())


def test_backends_that_no_cluster_has_together_are_a_condition(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await services_in(fleet, front=("m1",), back=("m2",))
        await fleet.create(ingress(rules=rules("front", "back")))
        await fleet.run()
        assert condition(fleet) == ("False", "BackendsApart")
        assert where(fleet) == ["m1", "m2"]

    fleet.play(scenario())


def test_a_backend_may_be_shared_by_a_multi_cluster_service(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        sharing = kube_object(MultiClusterService.gvk.api_version, "MultiClusterService", "front", "default") | {
            "spec": {
                "types": ["CrossCluster"],
                "providerClusters": [{"name": "m1"}],
                "consumerClusters": [{"name": "m3"}],
            },
        }
        await fleet.create(service("front"), sharing, ingress(rules=rules("front")))
        await fleet.run()
        assert where(fleet) == ["m1", "m3"]

    fleet.play(scenario())


def test_no_traffic_goes_to_a_cluster_that_a_remedy_blocks(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await services_in(fleet, front=("m1", "m2"))
        await fleet.create(ingress(rules=rules("front")))
        await block(fleet, "m1")
        assert where(fleet) == ["m2"]
        assert status(fleet)["trafficBlockClusters"] == ["m1"]
        await block(fleet, "m2")
        assert where(fleet) == ["m1", "m2"], "with all of them blocked, somebody has to answer"

    async def block(fleet: ServingFleet, name: str) -> None:
        remedy = kube_object("remedy.karmada.io/v1alpha1", "Remedy", name) | {
            "spec": {"clusterAffinity": {"clusterNames": [name]}, "actions": ["TrafficControl"]}
        }
        await fleet.create(remedy)
        await fleet.run()

    fleet.play(scenario())
    for name in ("m1", "m2"):
        fleet.play(fleet.client.delete(GVR("remedy.karmada.io", "v1alpha1", "remedies"), name))
