from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import INGRESSES, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.loadbalancer import RETRY_SECONDS, IngressAddresses, LoadBalancers
from karmada.kube.sim.profile import Profile
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after, settled
from tests.kube.sim.service_objects import service

CLASSES = GVR("networking.k8s.io", "v1", "ingressclasses")
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"


def parts(context: Context) -> list[Reconciler]:
    return [LoadBalancers(context), IngressAddresses(context)]


async def balanced(cluster: Harness, name: str, **spec: Any) -> list[Obj]:
    await cluster.client.create(SERVICES, service(name, type="LoadBalancer", **spec))
    await after(cluster, 0.5)
    return await addresses(cluster, name)


async def addresses(cluster: Harness, name: str) -> list[Obj]:
    found = await cluster.client.get(SERVICES, name, "default")
    result: list[Obj] = found["status"]["loadBalancer"].get("ingress") or []
    return result


async def test_a_load_balancer_gets_its_address_after_a_while(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1")) as cluster:
        await cluster.client.create(SERVICES, service("web", type="LoadBalancer"))
        await after(cluster, 0.4)
        waiting = await cluster.client.get(SERVICES, "web", "default")
        assert waiting["metadata"]["finalizers"] == [FINALIZER]
        assert waiting["status"]["loadBalancer"] == {}
        await after(cluster, 0.1)
        assert await addresses(cluster, "web") == [{"ip": "172.18.255.2", "ipMode": "VIP"}]
        assert await cluster.events("web") == [
            ("Normal", "EnsuringLoadBalancer", "Ensuring load balancer"),
            ("Normal", "EnsuredLoadBalancer", "Ensured load balancer"),
        ]


async def test_addresses_are_unique_and_used_again(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1")) as cluster:
        given = [(await balanced(cluster, name))[0]["ip"] for name in ("a", "b", "c")]
        assert given == ["172.18.255.2", "172.18.255.3", "172.18.255.4"]
        await cluster.client.delete(SERVICES, "b", "default")
        await settled(cluster)
        with pytest.raises(NotFound):
            await cluster.client.get(SERVICES, "b", "default")
        assert (await balanced(cluster, "d"))[0]["ip"] == "172.18.255.3"


async def test_two_services_at_once_get_different_addresses(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        for name in ("a", "b", "c"):
            await cluster.client.create(SERVICES, service(name, type="LoadBalancer"))
        await settled(cluster)
        given = [(await addresses(cluster, name))[0]["ip"] for name in ("a", "b", "c")]
        assert len(set(given)) == 3


async def test_another_type_gives_the_address_back(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1")) as cluster:
        await balanced(cluster, "web")
        await cluster.client.patch(SERVICES, "web", "default", {"spec": {"type": "ClusterIP"}})
        await settled(cluster)
        found = await cluster.client.get(SERVICES, "web", "default")
        assert found["status"]["loadBalancer"] == {}
        assert "finalizers" not in found["metadata"]
        assert [reason for _, reason, _ in await cluster.events("web")][2:] == [
            "DeletingLoadBalancer",
            "DeletedLoadBalancer",
        ]


async def test_a_requested_address_is_allocated_or_refused_until_it_is_free(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1")) as cluster:
        assert (await balanced(cluster, "a", loadBalancerIP="172.18.255.9"))[0]["ip"] == "172.18.255.9"
        assert await balanced(cluster, "b", loadBalancerIP="172.18.255.9") == []
        why = "address 172.18.255.9 is in use by another service"
        message = f"Error syncing load balancer: failed to ensure load balancer: {why}"
        assert ("Warning", "SyncLoadBalancerFailed", message) in await cluster.events("b")
        await cluster.client.delete(SERVICES, "a", "default")
        await after(cluster, RETRY_SECONDS)
        assert (await addresses(cluster, "b"))[0]["ip"] == "172.18.255.9"


async def test_an_empty_pool_is_reported(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1", load_balancer_cidr="172.18.255.0/30")) as cluster:
        assert await balanced(cluster, "a") != []
        assert await balanced(cluster, "b") == []
        assert (await cluster.events("b"))[-1][2].endswith("no free address in 172.18.255.0/30")


async def test_load_balancers_of_a_class_are_somebody_elses(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        assert await balanced(cluster, "web", loadBalancerClass="example.com/lb") == []
        assert "finalizers" not in (await cluster.client.get(SERVICES, "web", "default"))["metadata"]


async def test_a_cluster_may_give_names_or_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "a", parts, profile=Profile("m1", load_balancers="hostname")) as cluster:
        assert await balanced(cluster, "web") == [{"hostname": "web.default.lb.m1.sim.io"}]
    async with running(tmp_path / "b", parts, profile=Profile("m1", load_balancers="never")) as cluster:
        assert await balanced(cluster, "web") == []
        assert await cluster.events("web") == []
        await cluster.client.delete(SERVICES, "web", "default")


# --- ingresses


def ingress(name: str, class_name: str | None = None, **annotations: str) -> Obj:
    spec: Obj = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    spec |= {"ingressClassName": class_name} if class_name else {}
    metadata: Obj = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def ingress_class(default: bool) -> Obj:
    marks = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else {}
    metadata: Obj = {"name": "nginx", "annotations": marks}
    spec = {"controller": "k8s.io/ingress-nginx"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": metadata, "spec": spec}


async def ingress_status(cluster: Harness, name: str) -> Obj:
    found: Obj = (await cluster.client.get(INGRESSES, name, "default"))["status"]["loadBalancer"]
    return found


async def test_an_ingress_with_a_class_gets_an_address(tmp_path: Path) -> None:
    async with running(tmp_path, parts, profile=Profile("m1")) as cluster:
        await cluster.client.create(INGRESSES, ingress("a", "nginx"))
        await cluster.client.create(INGRESSES, ingress("b", **{"kubernetes.io/ingress.class": "nginx"}))
        await after(cluster, 0.4)
        assert await ingress_status(cluster, "a") == {}
        await after(cluster, 0.1)
        assert await ingress_status(cluster, "a") == {"ingress": [{"ip": "172.18.255.1"}]}
        assert await ingress_status(cluster, "b") == {"ingress": [{"ip": "172.18.255.1"}]}


async def test_an_ingress_without_class_waits_for_a_default_class(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(INGRESSES, ingress("a"))
        await cluster.client.create(CLASSES, ingress_class(default=False))
        await settled(cluster)
        assert await ingress_status(cluster, "a") == {}
        marks = ingress_class(default=True)["metadata"]["annotations"]
        await cluster.client.patch(CLASSES, "nginx", "", {"metadata": {"annotations": marks}})
        await settled(cluster)
        assert await ingress_status(cluster, "a") == {"ingress": [{"ip": "172.18.255.1"}]}
        await cluster.client.delete(CLASSES, "nginx")
        await settled(cluster)
        assert await ingress_status(cluster, "a") == {}
