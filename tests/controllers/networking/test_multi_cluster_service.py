"""A MultiClusterService makes the endpoints of its providers known to its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.networking import MultiClusterService
from karmada.api.work import ResourceBinding, Work
from karmada.controllers.networking.load_balancer_status import LOAD_BALANCER_STATUS
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, SECRETS, SERVICES, SLICES
from karmada.kube.objects.types import Obj
from karmada.rehearsal.network import State
from tests.controllers.networking.exporting import ServingFleet, service
from tests.support.objects import kube_object
from tests.support.played_fleet import started
from tests.support.propagation import deployment, placed, policy, selecting

SERVICE = MultiClusterService.gvr


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingFleet]:
    yield from started(ServingFleet(tmp_path_factory.mktemp("serving"), gates="MultiClusterService=true"))


@pytest.fixture
def fleet(shared: ServingFleet) -> Iterator[ServingFleet]:
    yield shared
    shared.play(retire(shared))
    for cluster in shared.fleet.members:
        assert not shared.carriers(cluster)
        assert not made_for_services(shared, cluster)


async def retire(fleet: ServingFleet) -> None:
    for name in fleet.stored(SERVICE):
        await fleet.client.delete(SERVICE, name, "default")
    await fleet.run()
    await fleet.clear()


def made_for_services(fleet: ServingFleet, cluster: str) -> list[str]:
    works = fleet.stored(Work.gvr, well_known.execution_namespace(cluster))
    return [name for name, work in works.items() if well_known.MULTICLUSTER_SERVICE_NAME in meta.labels(work)]


def offered(providers: tuple[str, ...] = (), consumers: tuple[str, ...] = (), **spec: Any) -> Obj:
    named = {"providerClusters": providers, "consumerClusters": consumers}
    return kube_object(MultiClusterService.gvk.api_version, "MultiClusterService", "serve", "default") | {
        "spec": {
            "types": ["CrossCluster"],
            **{field: [{"name": name} for name in names] for field, names in named.items() if names},
            **spec,
        },
    }


async def pods_in(fleet: ServingFleet, *clusters: str, replicas: int = 2) -> None:
    """A Deployment there; its Service is in the control plane only."""
    selector = selecting(name="serve")
    await fleet.create(
        policy("serve-pods", selector, placement=placed(*clusters)), deployment("serve", replicas=replicas), service()
    )
    await fleet.run()


def of_clusters(fleet: ServingFleet, member: str) -> set[str]:
    """Addresses of the service in a member that come from other clusters."""
    return set().union(
        *(
            addresses
            for name, addresses in fleet.slices("serve", member).items()
            if name.startswith(("m1-", "m2-", "m3-"))
        )
    )


def providers_seen(fleet: ServingFleet, member: str) -> set[str]:
    """The clusters of which a member has endpoints."""
    return {name.partition("-")[0] for name, found in fleet.slices("serve", member).items() if name[0] == "m" and found}


def conditions(fleet: ServingFleet) -> dict[str, tuple[str, str]]:
    found = (fleet.stored(SERVICE)["serve"].get("status") or {}).get("conditions") or ()
    return {c["type"]: (c["status"], c["reason"]) for c in found}


def reasons(fleet: ServingFleet) -> set[str]:
    events = fleet.stored(EVENTS).values()
    return {event["reason"] for event in events if event["involvedObject"]["kind"] == "MultiClusterService"}


def test_consumers_have_the_endpoints_of_providers(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        there = fleet.addresses("serve", "m1")
        assert len(there) == 2
        assert of_clusters(fleet, "m2") == there
        assert "serve" in fleet.stored(SERVICES, member="m2")
        assert "serve" not in fleet.stored(SERVICES, member="m3")
        assert not of_clusters(fleet, "m1")
        assert conditions(fleet) == {
            "ServiceApplied": ("True", "ServiceAppliedSucceed"),
            "EndpointSliceDispatched": ("True", "EndpointSliceDispatchedSucceed"),
        }
        assert {"SyncServiceSucceed", "DispatchEndpointSliceSucceed"} <= reasons(fleet)

    fleet.play(scenario())


def test_names_labels_and_the_binding_are_those_of_the_original(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        (name,) = (name for name in fleet.slices("serve", "m1") if not name.startswith("m"))
        marker = fleet.stored(Work.gvr, "karmada-es-m1")[
            well_known.work_name("MultiClusterService", "serve", "default")
        ]
        assert marker["spec"]["suspendDispatching"]
        assert meta.finalizers(marker) == []
        carrier = fleet.carriers("m1")[well_known.work_name("EndpointSlice", name, "default")]
        assert meta.finalizers(carrier) == ["karmada.io/mcs-endpointslice-dispatch-controller"]
        sent = fleet.stored(Work.gvr, "karmada-es-m2")[meta.name(carrier)]
        assert meta.annotations(sent)["endpointslice.karmada.io/provision-cluster"] == "m1"
        binding = fleet.stored(ResourceBinding.gvr)["serve-service"]
        assert meta.labels(binding)["binding.karmada.io/managed-by"] == "MultiClusterService"
        assert binding["spec"]["placement"] == {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
        assert binding["spec"]["conflictResolution"] == "Overwrite"
        claimed = fleet.stored(SERVICES)["serve"]
        assert meta.labels(claimed)["resourcetemplate.karmada.io/claimed-by"] == "MultiClusterService"
        assert f"m1-{name}" in fleet.slices("serve", "m2")

    fleet.play(scenario())


def test_without_names_all_clusters_provide_and_consume(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1", "m2", replicas=1)
        await fleet.create(offered())
        await fleet.run()
        own = {name: fleet.addresses("serve", name) - of_clusters(fleet, name) for name in ("m1", "m2")}
        assert of_clusters(fleet, "m3") == own["m1"] | own["m2"]
        assert of_clusters(fleet, "m1") == own["m2"]
        assert of_clusters(fleet, "m2") == own["m1"]

    fleet.play(scenario())


def test_changes_of_pods_and_of_clusters_are_followed(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        await fleet.client.patch(DEPLOYMENTS, "serve", "default", {"spec": {"replicas": 4}})
        await fleet.run()
        assert of_clusters(fleet, "m2") == fleet.addresses("serve", "m1")
        assert len(of_clusters(fleet, "m2")) == 4
        await fleet.client.patch(SERVICE, "serve", "default", {"spec": {"consumerClusters": [{"name": "m3"}]}})
        await fleet.run()
        assert not of_clusters(fleet, "m2")
        assert of_clusters(fleet, "m3") == fleet.addresses("serve", "m1")
        await fleet.client.patch(SERVICE, "serve", "default", {"spec": {"providerClusters": [{"name": "m2"}]}})
        await fleet.run()
        assert not of_clusters(fleet, "m3")
        assert not fleet.carriers("m1")

    fleet.play(scenario())


def test_each_change_is_one_write_for_each_consumer(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2", "m3")))
        await fleet.run(seconds=60)
        before = {name: version(fleet, name) for name in ("m2", "m3")}
        await fleet.run(seconds=120)
        assert {name: version(fleet, name) for name in ("m2", "m3")} == before

    def version(fleet: ServingFleet, cluster: str) -> list[int]:
        works = fleet.stored(Work.gvr, well_known.execution_namespace(cluster))
        return [works[name]["metadata"]["generation"] for name in made_for_services(fleet, cluster)]

    fleet.play(scenario())


def test_when_it_is_deleted_the_service_is_left_to_policies(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        await fleet.client.delete(SERVICE, "serve", "default")
        await fleet.run(seconds=40)
        assert "serve" not in fleet.stored(SERVICE)
        labels = meta.labels(fleet.stored(SERVICES)["serve"])
        assert "resourcetemplate.karmada.io/claimed-by" not in labels
        binding = fleet.stored(ResourceBinding.gvr)["serve-service"]
        assert "binding.karmada.io/managed-by" not in meta.labels(binding)
        assert not of_clusters(fleet, "m2")
        assert not fleet.carriers("m1")
        assert "serve" in fleet.stored(SERVICES, member="m2")

    fleet.play(scenario())


def test_a_service_that_is_not_there_is_a_condition(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        assert conditions(fleet)["ServiceApplied"] == ("False", "ServiceAppliedFailed")
        await fleet.create(service())
        await fleet.run()
        assert conditions(fleet)["ServiceApplied"] == ("True", "ServiceAppliedSucceed")

    fleet.play(scenario())


def test_clusters_that_cannot_take_part_are_left_out_with_an_event(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1", "gone"), ("m2", "away")))
        await fleet.run()
        assert of_clusters(fleet, "m2") == fleet.addresses("serve", "m1")
        assert "ClusterNotFound" in reasons(fleet)

    fleet.play(scenario())


def test_endpoints_of_a_cluster_that_died_are_not_used_while_others_serve(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1", "m2", replicas=1)
        await fleet.create(offered(("m1", "m2"), ("m3",)))
        await fleet.run()
        assert set(used(fleet, "m3")) == {"m1", "m2"}
        fleet.fleet.change_network("m1", State.DOWN)
        await fleet.run(seconds=120)
        dead = fleet.fleet.server.cache.get(Cluster.gvr.group_resource, "", "m1")
        assert dead is not None
        assert not meta.has_condition(dead["status"]["conditions"], "Ready")
        assert set(used(fleet, "m3")) == {"m2"}
        fleet.fleet.change_network("m2", State.DOWN)
        await fleet.run(seconds=120)
        assert set(used(fleet, "m3")) == {"m1", "m2"}
        for name in ("m1", "m2"):
            fleet.fleet.change_network(name, State.UP)
        await fleet.run(seconds=120)
        assert set(used(fleet, "m3")) == {"m1", "m2"}

    def used(fleet: ServingFleet, member: str) -> list[str]:
        """The clusters whose endpoints are ready there."""
        return [
            meta.annotations(found)[well_known.PROVISION_CLUSTER]
            for found in fleet.stored(SLICES, member=member).values()
            if well_known.PROVISION_CLUSTER in meta.annotations(found)
            and all((endpoint.get("conditions") or {}).get("ready") for endpoint in found["endpoints"])
        ]

    fleet.play(scenario())


def test_one_slice_may_be_exported_and_offered(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.export_from("m1")
        ((_, carrier),) = fleet.carriers("m1").items()
        assert set(meta.labels(carrier)["endpointslice.karmada.io/managed-by"].split(".")) == {
            "MultiClusterService",
            "ServiceExport",
        }
        await fleet.client.delete(SERVICE, "serve", "default")
        await fleet.run(seconds=40)
        ((_, carrier),) = fleet.carriers("m1").items()
        assert meta.labels(carrier)["endpointslice.karmada.io/managed-by"] == "ServiceExport"
        assert fleet.slices("derived-serve")
        assert not of_clusters(fleet, "m2")

    fleet.play(scenario())


def hand_made(address: str, of: str = "serve") -> Obj:
    """An EndpointSlice that somebody wrote, with a name that every cluster may have."""
    return kube_object(
        "discovery.k8s.io/v1", "EndpointSlice", "by-hand", "default", labels={"kubernetes.io/service-name": of}
    ) | {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"port": 8080}],
    }


def test_slices_of_the_same_name_in_several_clusters_are_kept_apart(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.create(service(), offered())
        for name, address in (("m1", "10.9.0.1"), ("m2", "10.9.0.2")):
            await fleet.fleet.members[name].client.create(SLICES, hand_made(address))
        await fleet.run()
        assert of_clusters(fleet, "m3") == {"10.9.0.1", "10.9.0.2"}
        assert of_clusters(fleet, "m1") == {"10.9.0.2"}
        assert of_clusters(fleet, "m2") == {"10.9.0.1"}
        before = fleet.fleet.server.store.revision
        await fleet.run(seconds=5)
        assert fleet.fleet.server.store.revision - before <= 6  # leases and the status of clusters
        for name in ("m1", "m2"):
            await fleet.fleet.members[name].client.delete(SLICES, "by-hand", "default")
        await fleet.run()
        assert not of_clusters(fleet, "m3")

    fleet.play(scenario())


def test_a_slice_that_changes_its_service_goes_with_it(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.create(service(), service("other"), offered(("m1",), ("m2",)))
        await fleet.create(offered(("m1",), ("m2",)) | {"metadata": {"name": "other", "namespace": "default"}})
        there = fleet.fleet.members["m1"].client
        await there.create(SLICES, hand_made("10.9.0.1"))
        await fleet.run()
        assert "m1-by-hand" in fleet.slices("serve", "m2")
        await there.patch(
            SLICES, "by-hand", "default", {"metadata": {"labels": {"kubernetes.io/service-name": "other"}}}
        )
        await fleet.run()
        assert "m1-by-hand" in fleet.slices("other", "m2")
        assert "m1-by-hand" not in fleet.slices("serve", "m2")
        await there.delete(SLICES, "by-hand", "default")

    fleet.play(scenario())


def test_labels_that_others_set_on_a_carrier_stay(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2",)))
        await fleet.run()
        ((name, _),) = fleet.carriers("m1").items()
        await fleet.client.patch(Work.gvr, name, "karmada-es-m1", {"metadata": {"labels": {"team": "blue"}}})
        await fleet.client.patch(DEPLOYMENTS, "serve", "default", {"spec": {"replicas": 3}})
        await fleet.run()
        assert meta.labels(fleet.carriers("m1")[name])["team"] == "blue"
        assert of_clusters(fleet, "m2") == fleet.addresses("serve", "m1")

    fleet.play(scenario())


@pytest.mark.parametrize("down", ["m1", "m2"])
def test_a_service_is_deleted_while_a_cluster_is_down(fleet: ServingFleet, down: str) -> None:
    """What the cluster has of it goes away once it is back; the control plane does not wait for that."""

    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2", "m3")))
        await fleet.run()
        fleet.fleet.change_network(down, State.DOWN)
        await fleet.run(seconds=60)
        await fleet.client.delete(SERVICE, "serve", "default")
        await fleet.run(seconds=60)
        assert "serve" not in fleet.stored(SERVICE)
        assert not fleet.carriers("m1")
        assert not of_clusters(fleet, "m3")
        fleet.fleet.change_network(down, State.UP)
        await fleet.run(seconds=120)
        assert not of_clusters(fleet, "m2")
        assert not made_for_services(fleet, "m2")

    fleet.play(scenario())


def left_over(work: Obj, slice_name: str = "") -> Obj:
    """A Work like this one in m3; with another EndpointSlice, if named."""
    metadata = {field: work["metadata"].get(field) or {} for field in ("labels", "annotations")}
    metadata |= {"name": f"{meta.name(work)}-left", "namespace": "karmada-es-m3"}
    (manifest,) = work["spec"]["workload"]["manifests"]
    if slice_name:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "name": slice_name}}
    spec = {**work["spec"], "workload": {"manifests": [manifest]}}
    return {"apiVersion": work["apiVersion"], "kind": "Work", "metadata": metadata, "spec": spec}


def test_what_is_left_of_an_interrupted_write_is_removed(fleet: ServingFleet) -> None:
    """The copy of a carrier that is gone, and the marker of a provider that is none, as a crash may leave them."""

    async def scenario() -> None:
        await pods_in(fleet, "m1")
        await fleet.create(offered(("m1",), ("m2", "m3")))
        await fleet.run()
        await fleet.fleet.stop_controllers()
        marker = fleet.stored(Work.gvr, "karmada-es-m1")[
            well_known.work_name("MultiClusterService", "serve", "default")
        ]
        (name,) = made_for_services(fleet, "m2")
        copy = fleet.stored(Work.gvr, "karmada-es-m2")[name]
        for left in (left_over(marker), left_over(copy, "m1-gone")):
            await fleet.client.create(Work.gvr, left)
        assert len(made_for_services(fleet, "m3")) == 3
        await fleet.fleet.start_controllers()
        await fleet.run()
        assert made_for_services(fleet, "m3") == [name]
        assert of_clusters(fleet, "m3") == fleet.addresses("serve", "m1")

    fleet.play(scenario())


def test_a_provider_that_leaves_takes_its_endpoints_along(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await pods_in(fleet, "m1", "m3", replicas=1)
        await fleet.create(offered((), ("m2",)))
        await fleet.run()
        assert providers_seen(fleet, "m2") == {"m1", "m3"}
        await fleet.client.delete(Cluster.gvr, "m3")
        await fleet.run(seconds=120)
        assert "m3" not in fleet.stored(Cluster.gvr, "")
        assert providers_seen(fleet, "m2") == {"m1"}
        assert conditions(fleet)["ServiceApplied"] == ("True", "ServiceAppliedSucceed")
        await fleet.client.delete(SECRETS, "m3", "karmada-cluster")
        await fleet.fleet.join("m3")
        await fleet.run(seconds=60)

    fleet.play(scenario())


def test_a_balanced_service_has_the_addresses_of_all_clusters(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        balanced = service()
        balanced["spec"]["type"] = "LoadBalancer"
        selector = selecting("Service", name="serve")
        await fleet.create(policy("serve-service", selector, placement=placed("m1", "m2")), balanced)
        await fleet.create(offered(types=["LoadBalancer"]))
        await fleet.run(seconds=60)
        there = [fleet.stored(SERVICES, member=name)["serve"]["status"]["loadBalancer"] for name in ("m1", "m2")]
        expected = {address["ip"] for balancer in there for address in balancer["ingress"]}
        assert expected
        assert addresses() == expected
        await set_address("192.0.2.9", LOAD_BALANCER_STATUS)
        assert addresses() == expected, "what we wrote ourselves, before a restart too, is brought up to date"
        await set_address("192.0.2.1", "another-load-balancer")
        assert addresses() == {"192.0.2.1"}, "somebody else's load balancer stays"

    async def set_address(ip: str, manager: str) -> None:
        status = {"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}
        await fleet.client.patch(SERVICE, "serve", "default", status, subresource="status", field_manager=manager)
        await fleet.client.patch(SERVICES, "serve", "default", {"metadata": {"labels": {"touched": ip}}})
        await fleet.run()

    def addresses() -> set[str]:
        status = fleet.stored(SERVICE)["serve"]["status"]
        return {address["ip"] for address in status["loadBalancer"].get("ingress") or ()}

    fleet.play(scenario())
