from __future__ import annotations

from pathlib import Path
from typing import Any

from karmada.kube.objects.gvrs import ENDPOINTS, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.endpointslice import EndpointSlices
from karmada.kube.sim.controllers.mirroring import EndpointMirroring
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after
from tests.kube.sim.service_objects import COALESCED, service, slices
from tests.support.cases import cases


def parts(context: Context) -> list[Reconciler]:
    return [EndpointMirroring(context), EndpointSlices(context)]


def endpoints(*ips: str, unready: tuple[str, ...] = (), **metadata: Any) -> Obj:
    subset: Obj = {"ports": [{"name": "db", "port": 5432, "protocol": "TCP"}]}
    subset |= {"addresses": [{"ip": ip} for ip in ips]} if ips else {}
    subset |= {"notReadyAddresses": [{"ip": ip} for ip in unready]} if unready else {}
    made: Obj = {"apiVersion": "v1", "kind": "Endpoints", "subsets": [subset]}
    return {**made, "metadata": {"name": "web", "namespace": "default", **metadata}}


async def mirrored(cluster: Harness) -> list[Obj]:
    await after(cluster, COALESCED)
    return await slices(cluster)


async def test_hand_made_endpoints_are_reported_in_slices(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(selector=None))
        annotations = {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
        wanted = endpoints("192.0.2.1", unready=("192.0.2.2",), labels={"a": "b"}, annotations=annotations)
        made = await cluster.client.create(ENDPOINTS, wanted)
        [found] = await mirrored(cluster)
        meta = found["metadata"]
        assert meta["labels"] == {
            "a": "b",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        assert meta["annotations"] == {"note": "x"}
        assert [(o["kind"], o["uid"]) for o in meta["ownerReferences"]] == [("Endpoints", made["metadata"]["uid"])]
        assert found["ports"] == [{"name": "db", "port": 5432, "protocol": "TCP"}]
        assert found["endpoints"] == [
            {"addresses": ["192.0.2.1"], "conditions": {"ready": True}},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
        ]


async def test_each_family_has_slices_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(selector=None))
        await cluster.client.create(ENDPOINTS, endpoints("192.0.2.1", "2001:db8::1"))
        found = await mirrored(cluster)
        assert sorted(s["addressType"] for s in found) == ["IPv4", "IPv6"]


async def test_the_slices_follow_the_endpoints_and_go_with_them(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(selector=None))
        await cluster.client.create(ENDPOINTS, endpoints("192.0.2.1"))
        [first] = await mirrored(cluster)
        changed = endpoints("192.0.2.1", "192.0.2.9")
        await cluster.client.patch(ENDPOINTS, "web", "default", {"subsets": changed["subsets"]})
        [found] = await mirrored(cluster)
        assert found["metadata"]["name"] == first["metadata"]["name"]
        assert len(found["endpoints"]) == 2
        await cluster.client.delete(ENDPOINTS, "web", "default")
        assert await mirrored(cluster) == []


@cases(
    {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
    {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
)
async def test_some_endpoints_are_not_mirrored(metadata: Obj, tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(selector=None))
        await cluster.client.create(ENDPOINTS, endpoints("192.0.2.1"))
        assert len(await mirrored(cluster)) == 1
        await cluster.client.patch(ENDPOINTS, "web", "default", {"metadata": metadata})
        assert await mirrored(cluster) == []


async def test_a_service_that_gets_a_selector_is_not_mirrored_any_more(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(ENDPOINTS, endpoints("192.0.2.1"))
        assert await mirrored(cluster) == []
        await cluster.client.create(SERVICES, service(selector=None))
        assert len(await mirrored(cluster)) == 1
        await cluster.client.patch(SERVICES, "web", "default", {"spec": {"selector": {"app": "web"}}})
        [found] = await mirrored(cluster)
        manager = found["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
        assert manager == "endpointslice-controller.k8s.io"
