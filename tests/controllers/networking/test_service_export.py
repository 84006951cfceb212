"""A Service exported from one cluster answers in another by its derived name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.api import well_known
from karmada.api.multicluster import ServiceExport, ServiceImport
from karmada.api.policy import PropagationPolicy
from karmada.api.work import Work
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, SERVICES, SLICES
from karmada.rehearsal.network import State
from tests.controllers.networking.exporting import ServingFleet, export
from tests.support.played_fleet import cleared, started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingFleet]:
    yield from started(ServingFleet(tmp_path_factory.mktemp("serving")))


@pytest.fixture
def fleet(shared: ServingFleet) -> Iterator[ServingFleet]:
    yield from cleared(shared)
    assert not shared.slices("derived-serve")
    for cluster in shared.fleet.members:
        assert not shared.carriers(cluster)
        assert not shared.slices("derived-serve", cluster)
        assert "derived-serve" not in shared.stored(SERVICES, member=cluster)


def test_the_derived_service_has_the_endpoints_of_the_exporting_cluster(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        there = fleet.addresses("serve", "m1")
        assert len(there) == 2
        assert fleet.addresses("derived-serve", "m2") == there
        derived = fleet.stored(SERVICES, member="m2")["derived-serve"]
        assert [port["port"] for port in derived["spec"]["ports"]] == [80]
        assert "selector" not in derived["spec"]
        assert not fleet.addresses("derived-serve", "m3")

    fleet.play(scenario())


def test_a_carrier_and_the_imported_slice_have_the_names_and_labels_of_the_original(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        (name,) = fleet.slices("serve", "m1")
        ((work_name, work),) = fleet.carriers("m1").items()
        assert work_name == well_known.work_name("EndpointSlice", name, "default")
        labels = meta.labels(work)
        assert {key: labels[key] for key in labels if "endpointslice" in key} == {
            "endpointslice.karmada.io/namespace": "default",
            "endpointslice.karmada.io/name": "serve",
            "endpointslice.karmada.io/managed-by": "ServiceExport",
        }
        assert meta.finalizers(work) == ["karmada.io/endpointslice-controller"]
        imported = fleet.stored(SLICES)[f"imported-m1-{name}"]
        assert meta.labels(imported) == {
            "work.karmada.io/permanent-id": labels["work.karmada.io/permanent-id"],
            "kubernetes.io/service-name": "derived-serve",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
        }

    fleet.play(scenario())


def test_endpoints_follow_pods_that_come_and_go(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1", replicas=1)
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        for replicas in (3, 0, 2):
            await fleet.client.patch(DEPLOYMENTS, "serve", "default", {"spec": {"replicas": replicas}})
            await fleet.run()
            there = fleet.addresses("serve", "m1")
            assert len(there) == replicas
            assert fleet.addresses("derived-serve", "m2") == there

    fleet.play(scenario())


def test_endpoints_of_several_exporting_clusters_come_together(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1", "m2", replicas=1)
        await fleet.export_from("m1", "m2")
        await fleet.import_to("m3")
        assert len(fleet.slices("derived-serve", "m3")) == 2
        assert fleet.addresses("derived-serve", "m3") == fleet.addresses("serve", "m1") | fleet.addresses("serve", "m2")

    fleet.play(scenario())


@pytest.mark.parametrize("gone", ["export", "policy of the export", "service"])
def test_nothing_is_left_when_the_export_ends(fleet: ServingFleet, gone: str) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        if gone == "export":
            await fleet.client.delete(ServiceExport.gvr, "serve", "default")
        elif gone == "service":
            await fleet.client.delete(SERVICES, "serve", "default")
        else:
            await fleet.client.patch(ServiceExport.gvr, "serve", "default", {"metadata": {"labels": None}})
            await fleet.client.delete(ServiceExport.gvr, "serve", "default")
        await fleet.run(seconds=40)
        assert not fleet.carriers("m1")
        assert not fleet.slices("derived-serve")
        assert not fleet.addresses("derived-serve", "m2")

    fleet.play(scenario())


def test_the_derived_service_goes_with_its_import(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        await fleet.client.delete(ServiceImport.gvr, "serve", "default")
        await fleet.run(seconds=40)
        assert "derived-serve" not in fleet.stored(SERVICES)
        assert "derived-serve" not in fleet.stored(SERVICES, member="m2")
        assert fleet.carriers("m1")

    fleet.play(scenario())


def test_addresses_that_the_server_refuses_are_an_event(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.import_to("m2", ips=["10.0.0.9"])
        assert "derived-serve" in fleet.stored(SERVICES)
        reasons = {
            event["reason"]
            for event in fleet.stored(EVENTS).values()
            if event["involvedObject"]["kind"] == "ServiceImport"
        }
        assert "SyncDerivedServiceFailed" in reasons

    fleet.play(scenario())


def test_a_headless_import_has_no_derived_service(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.import_to("m2", type="Headless")
        assert "derived-serve" not in fleet.stored(SERVICES)

    fleet.play(scenario())


def test_ports_of_the_import_are_followed(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.import_to("m2")
        before = fleet.stored(SERVICES)["derived-serve"]["spec"]["clusterIP"]
        ports = [{"port": 81, "protocol": "TCP", "name": "other"}]
        await fleet.client.patch(ServiceImport.gvr, "serve", "default", {"spec": {"ports": ports}})
        await fleet.run()
        spec = fleet.stored(SERVICES)["derived-serve"]["spec"]
        assert [(port["name"], port["port"]) for port in spec["ports"]] == [("other", 81)]
        assert spec["clusterIP"] == before

    fleet.play(scenario())


def test_an_export_that_a_member_has_of_its_own_counts(fleet: ServingFleet) -> None:
    """From the moment on at which anything of the control plane is exported there."""

    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.serve_in("m1", name="own")
        await fleet.export_from("m1")
        await fleet.fleet.members["m1"].client.create(ServiceExport.gvr, export("own"))
        await fleet.run()
        assert len(fleet.slices("derived-own")) == 1
        await fleet.fleet.members["m1"].client.delete(ServiceExport.gvr, "own", "default")
        await fleet.run()
        assert not fleet.slices("derived-own")

    fleet.play(scenario())


def test_a_carrier_that_somebody_deletes_comes_back(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        (name,) = fleet.carriers("m1")
        await fleet.client.delete(Work.gvr, name, "karmada-es-m1")
        await fleet.run()
        assert set(fleet.carriers("m1")) == {name}
        assert fleet.slices("derived-serve")

    fleet.play(scenario())


def test_what_changed_during_a_restart_and_an_outage_is_made_up_for(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        await fleet.fleet.stop_controllers()
        pods = fleet.fleet.members["m1"].client
        await pods.patch(DEPLOYMENTS, "serve", "default", {"spec": {"replicas": 1}})
        fleet.fleet.change_network("m1", State.DOWN)
        await fleet.fleet.start_controllers()
        await fleet.run()
        fleet.fleet.change_network("m1", State.UP)
        await fleet.run(seconds=90)
        assert fleet.addresses("derived-serve", "m2") == fleet.addresses("serve", "m1")

    fleet.play(scenario())


def test_nothing_is_written_without_change(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        await fleet.import_to("m2")
        await fleet.run(seconds=60)
        before = fleet.fleet.server.store.revision
        await fleet.fleet.stop_controllers()
        await fleet.fleet.start_controllers()
        await fleet.run(seconds=5)
        changed = fleet.fleet.server.store.revision - before
        assert changed <= 6  # leases and the status of clusters

    fleet.play(scenario())


@pytest.mark.parametrize("how", ["suspended", "not applied"])
def test_an_export_that_cannot_be_applied_for_a_while_keeps_its_endpoints(fleet: ServingFleet, how: str) -> None:
    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        name = well_known.work_name("ServiceExport", "serve", "default")
        before = fleet.carriers("m1")
        if how == "suspended":
            suspended = {"spec": {"suspension": {"dispatching": True}}}
            await fleet.client.patch(PropagationPolicy.gvr, "serve-export", "default", suspended)
        else:
            await fleet.fleet.stop_controllers()
            work = fleet.stored(Work.gvr, "karmada-es-m1")[name]
            failed = {"type": "Applied", "status": "False", "reason": "AppliedFailed", "message": ""}
            conditions = meta.set_condition(work["status"]["conditions"], failed, fleet.fleet.clock.now())
            await fleet.client.update_status(Work.gvr, {**work, "status": {**work["status"], "conditions": conditions}})
            fleet.fleet.change_network("m1", State.DOWN)
            await fleet.fleet.start_controllers()
        await fleet.run()
        assert fleet.carriers("m1").keys() == before.keys()
        assert fleet.slices("derived-serve")

    fleet.play(scenario())


def test_an_imported_slice_whose_carrier_is_gone_is_removed(fleet: ServingFleet) -> None:
    """As a crash between two writes leaves it."""

    async def scenario() -> None:
        await fleet.serve_in("m1")
        await fleet.export_from("m1")
        (found,) = (s for n, s in fleet.stored(SLICES).items() if n.startswith("imported-"))
        annotations = {**meta.annotations(found), well_known.WORK_NAME: "gone"}
        labels = {**meta.labels(found), well_known.WORK_ID: "gone"}
        metadata = {"name": "imported-m1-gone", "namespace": "default", "labels": labels, "annotations": annotations}
        await fleet.client.create(SLICES, {**found, "metadata": metadata})
        await fleet.run()
        assert set(fleet.slices("derived-serve")) == {meta.name(found)}

    fleet.play(scenario())


def test_a_derived_service_that_somebody_deletes_comes_back(fleet: ServingFleet) -> None:
    async def scenario() -> None:
        await fleet.import_to("m2")
        await fleet.client.delete(SERVICES, "derived-serve", "default")
        await fleet.run()
        assert "derived-serve" in fleet.stored(SERVICES)
        assert "derived-serve" in fleet.stored(SERVICES, member="m2")

    fleet.play(scenario())
