from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import ENDPOINTS, PODS, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.endpoints import LegacyEndpoints, truncate
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after
from tests.kube.sim.service_objects import COALESCED, running_pod, service
from tests.support.cases import cases


def parts(context: Context) -> list[Reconciler]:
    return [LegacyEndpoints(context)]


async def endpoints(cluster: Harness, name: str = "web") -> Obj:
    await after(cluster, COALESCED)
    return await cluster.client.get(ENDPOINTS, name, "default")


async def test_endpoints_have_the_services_name_and_labels(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(clusterIP="None"))
        found = await endpoints(cluster)
        assert found["metadata"]["labels"] == {
            "team": "a",
            "service.kubernetes.io/headless": "",
            "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        }
        assert not found.get("subsets")


async def test_addresses_follow_readiness(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        ready = await running_pod(cluster, "p1", "10.244.1.7")
        unready = await running_pod(cluster, "p2", "10.244.1.8", ready=False)
        [subset] = (await endpoints(cluster))["subsets"]
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        assert subset["addresses"] == [
            {
                "ip": "10.244.1.7",
                "nodeName": "n1",
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": ready["metadata"]["uid"]},
            }
        ]
        assert [address["ip"] for address in subset["notReadyAddresses"]] == ["10.244.1.8"]
        await cluster.make_ready(unready)
        [subset] = (await endpoints(cluster))["subsets"]
        assert [address["ip"] for address in subset["addresses"]] == ["10.244.1.7", "10.244.1.8"]
        assert "notReadyAddresses" not in subset


async def test_terminating_pods_are_left_out(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await running_pod(cluster, "p1", "10.244.1.7")
        await cluster.client.delete(PODS, "p1", "default")
        assert not (await endpoints(cluster)).get("subsets")


async def test_pods_with_other_ports_are_another_subset(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(ports=[{"port": 80, "targetPort": "http"}]))
        other = {"name": "c", "image": "nginx", "ports": [{"name": "http", "containerPort": 9090}]}
        none = {"name": "c", "image": "nginx"}
        await running_pod(cluster, "p1", "10.244.1.7")
        await running_pod(cluster, "p2", "10.244.1.8", containers=[other])
        await running_pod(cluster, "p3", "10.244.1.9", containers=[none])
        found = (await endpoints(cluster))["subsets"]
        assert [(s["ports"][0]["port"], s["addresses"][0]["ip"]) for s in found] == [
            (8080, "10.244.1.7"),
            (9090, "10.244.1.8"),
        ]


async def test_deleting_the_service_deletes_its_endpoints(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await endpoints(cluster)
        await cluster.client.delete(SERVICES, "web", "default")
        with pytest.raises(NotFound):
            await endpoints(cluster)


async def test_endpoints_without_a_service_are_their_makers_own(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        own: Obj = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "mine", "namespace": "default"}}
        made = await cluster.client.create(ENDPOINTS, own)
        await cluster.client.create(SERVICES, service("manual", selector=None))
        manual = {**own, "metadata": {"name": "manual", "namespace": "default"}}
        await cluster.client.create(ENDPOINTS, manual)
        assert (await endpoints(cluster, "mine"))["metadata"]["uid"] == made["metadata"]["uid"]
        assert "labels" not in (await endpoints(cluster, "manual"))["metadata"]
        await cluster.client.delete(SERVICES, "manual", "default")
        with pytest.raises(NotFound):
            await endpoints(cluster, "manual")


async def test_changed_endpoints_are_mended(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await running_pod(cluster, "p1", "10.244.1.7")
        await endpoints(cluster)
        await cluster.client.patch(ENDPOINTS, "web", "default", {"subsets": None})
        assert len((await endpoints(cluster))["subsets"]) == 1


def addresses(count: int) -> list[Any]:
    return [{"ip": f"10.0.0.{number}"} for number in range(count)]


@cases(
    ((3,), (2,), [(3, 2)]),
    ((4, 4), (5, 0), [(4, 2), (4, 0)]),
    ((11, 3), (1, 1), [(10, 0)]),
    ((0,), (12,), [(0, 10)]),
)
def test_ready_addresses_are_kept_first(ready: tuple[int, ...], unready: tuple[int, ...], kept: list[Any]) -> None:
    subsets = [
        {"addresses": addresses(one), "notReadyAddresses": addresses(two), "ports": []}
        for one, two in zip(ready, unready, strict=True)
    ]
    found, cut = truncate(subsets, 10)
    assert [(len(s.get("addresses", ())), len(s.get("notReadyAddresses", ()))) for s in found] == kept
    assert cut == (sum(ready) + sum(unready) > 10)
