"""Services of a cluster in mode Pull reach others: its agent collects their endpoints, with its own rights only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karmada.api import well_known
from karmada.api.multicluster import ServiceExport
from karmada.api.networking import MultiClusterService
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.networking.endpointslice_dispatch import EndpointSliceDispatch
from karmada.controllers.networking.imported_slices import ImportedSlices
from karmada.controllers.networking.multi_cluster_service import MultiClusterServices
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CRDS, SERVICES, SLICES
from karmada.kube.objects.types import Obj
from tests.support.agents import PullFleet, pull_fleet, pulling_parts
from tests.support.eventually import eventually


def serving_parts(context: Context) -> list[Any]:
    networking = [MultiClusterServices(context), EndpointSliceDispatch(context), ImportedSlices(context)]
    return [*pulling_parts(context), *networking]


def endpoint_slice(*addresses: str) -> Obj:
    labels = {"kubernetes.io/service-name": "serve"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "serve-abcde", "generateName": "serve-", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]} for address in addresses],
        "ports": [{"port": 8080}],
    }


def addresses(found: Obj) -> list[str]:
    return [address for endpoint in found.get("endpoints") or () for address in endpoint["addresses"]]


async def export_in(found: PullFleet, cluster: str) -> None:
    """The kind as the control plane has it, and a ServiceExport that is propagated."""
    crd = await found.client.get(CRDS, f"{ServiceExport.gvr.resource}.{ServiceExport.gvr.group}")
    metadata = {"name": meta.name(crd), "annotations": meta.annotations(crd)}
    head = {"apiVersion": crd["apiVersion"], "kind": crd["kind"]}
    await found.members[cluster].client.create(CRDS, {**head, "metadata": metadata, "spec": crd["spec"]})
    export = {"apiVersion": ServiceExport.gvk.api_version, "kind": "ServiceExport"}
    await found.fleet.propagate(
        ServiceExport.gvr, {**export, "metadata": {"name": "serve", "namespace": "default"}}, {cluster: 1}
    )


async def offer(found: PullFleet) -> None:
    spec = {"ports": [{"port": 80}]}
    metadata = {"name": "serve", "namespace": "default"}
    await found.client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    clusters = {"providerClusters": [{"name": "m1"}], "consumerClusters": [{"name": "m2"}]}
    head = {"apiVersion": MultiClusterService.gvk.api_version, "kind": "MultiClusterService", "metadata": metadata}
    await found.client.create(MultiClusterService.gvr, {**head, "spec": {"types": ["CrossCluster"], **clusters}})


async def test_exported_and_offered_services_of_a_pull_cluster_arrive_elsewhere(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1", "m2", gates="MultiClusterService=true", parts=serving_parts) as found:
        there, elsewhere, plane = found.members["m1"], found.members["m2"], found.fleet.plane
        await there.client.create(SLICES, endpoint_slice("10.1.0.1"))
        await offer(found)
        await export_in(found, "m1")
        await elsewhere.until(SLICES, "m1-serve-abcde", lambda s: addresses(s) == ["10.1.0.1"])
        name = well_known.imported_slice_name("m1", "serve-abcde")
        await eventually(lambda: plane.get(SLICES, name, "default"))

        changed = endpoint_slice("10.1.0.1", "10.1.0.2")
        await there.client.patch(SLICES, "serve-abcde", "default", {"endpoints": changed["endpoints"]})
        await elsewhere.until(SLICES, "m1-serve-abcde", lambda s: addresses(s) == ["10.1.0.1", "10.1.0.2"])

        async def imported() -> bool:
            slices = await plane.get(SLICES, name, "default")
            return slices is not None and addresses(slices) == ["10.1.0.1", "10.1.0.2"]

        await eventually(imported)

        await there.client.delete(SLICES, "serve-abcde", "default")
        await elsewhere.until_gone(SLICES, "m1-serve-abcde")

        async def carriers_are_gone() -> bool:
            works = (await found.client.list_all(Work.gvr, well_known.execution_namespace("m1"))).items
            return not any(well_known.ENDPOINT_SLICE_WORK_MANAGED_BY in meta.labels(work) for work in works)

        await eventually(carriers_are_gone)
        assert await plane.get(SLICES, name, "default") is None
