from __future__ import annotations

from pathlib import Path

from karmada.kube.objects.gvrs import NODES, PODS, SERVICES, SLICES
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.endpointslice import EndpointSlices
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after, settled
from tests.kube.sim.service_objects import COALESCED, pod, running_pod, service, slices
from tests.support.objects import kube_object


def parts(context: Context) -> list[Reconciler]:
    return [EndpointSlices(context)]


async def test_a_service_without_pods_has_one_empty_slice(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        made = await cluster.client.create(SERVICES, service())
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        meta = found["metadata"]
        assert meta["generateName"] == "web-"
        assert meta["labels"] == {
            "team": "a",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        [owner] = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Service", made["metadata"]["uid"], True)
        assert meta["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"] == "2023-11-14T22:13:20Z"
        assert found["addressType"] == "IPv4"
        assert not found.get("endpoints")
        assert meta["managedFields"][0]["manager"] == "kube-controller-manager"


async def test_an_endpoint_refers_to_its_pod(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        node = {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}
        await cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", **node})
        await cluster.client.create(SERVICES, service())
        await after(cluster, COALESCED)
        [empty] = await slices(cluster)
        made = await running_pod(cluster, "p1", "10.244.1.7")
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert found["metadata"]["name"] == empty["metadata"]["name"]
        assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
        assert found["endpoints"] == [
            {
                "addresses": ["10.244.1.7"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": made["metadata"]["uid"]},
                "nodeName": "n1",
                "zone": "z1",
            }
        ]


async def conditions(cluster: Harness) -> list[tuple[bool, bool, bool]]:
    await after(cluster, COALESCED)
    [found] = await slices(cluster)
    listed = [endpoint["conditions"] for endpoint in found.get("endpoints") or ()]
    return [(c["ready"], c["serving"], c["terminating"]) for c in listed]


async def test_the_conditions_follow_the_pod(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        made = await running_pod(cluster, "p1", "10.244.1.7", ready=False)
        assert await conditions(cluster) == [(False, False, False)]
        await cluster.make_ready(made)
        assert await conditions(cluster) == [(True, True, False)]
        await cluster.client.delete(PODS, "p1", "default")
        assert await conditions(cluster) == [(False, True, True)]
        await cluster.client.delete(PODS, "p1", "default", grace_period=0)
        assert await conditions(cluster) == []


async def test_pods_that_ended_or_have_no_address_are_left_out(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await cluster.client.create(PODS, pod("waiting"))
        await cluster.client.create(PODS, pod("other", app="db"))
        made = await running_pod(cluster, "p1", "10.244.1.7")
        assert await conditions(cluster) == [(True, True, False)]
        await cluster.set_pod_status(made, {"phase": "Succeeded"})
        assert await conditions(cluster) == []


async def test_a_service_may_publish_pods_that_are_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(publishNotReadyAddresses=True))
        await running_pod(cluster, "p1", "10.244.1.7", ready=False)
        assert await conditions(cluster) == [(True, False, False)]


async def test_pods_of_a_headless_service_have_host_names(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(clusterIP="None"))
        await running_pod(cluster, "web-0", "10.244.1.7", hostname="web-0", subdomain="web")
        await running_pod(cluster, "web-1", "10.244.1.8", hostname="web-1", subdomain="elsewhere")
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        assert [endpoint.get("hostname") for endpoint in found["endpoints"]] == ["web-0", None]


async def test_named_ports_are_looked_up_in_each_pod(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        wanted = service(ports=[{"name": "w", "port": 80, "targetPort": "http", "appProtocol": "http"}])
        await cluster.client.create(SERVICES, wanted)
        other = {"name": "c", "image": "nginx", "ports": [{"name": "http", "containerPort": 9090}]}
        await running_pod(cluster, "p1", "10.244.1.7")
        await running_pod(cluster, "p2", "10.244.1.8", containers=[other])
        await after(cluster, COALESCED)
        found = await slices(cluster)
        ports = {s["endpoints"][0]["addresses"][0]: s["ports"] for s in found}
        assert ports == {
            "10.244.1.7": [{"name": "w", "port": 8080, "protocol": "TCP", "appProtocol": "http"}],
            "10.244.1.8": [{"name": "w", "port": 9090, "protocol": "TCP", "appProtocol": "http"}],
        }


async def test_changes_within_ten_milliseconds_are_one_write(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await after(cluster, COALESCED)
        [empty] = await slices(cluster)
        for number in range(20):
            await running_pod(cluster, f"p{number}", f"10.244.1.{number + 1}")
        await settled(cluster)
        assert (await slices(cluster))[0]["metadata"]["generation"] == empty["metadata"]["generation"]
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert len(found["endpoints"]) == 20
        assert found["metadata"]["generation"] == empty["metadata"]["generation"] + 1


async def test_more_than_a_hundred_endpoints_are_spread_over_slices(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        for number in range(103):
            await running_pod(cluster, f"p{number}", f"10.244.1.{number + 1}", ready=False)
        await after(cluster, COALESCED)
        found = await slices(cluster)
        assert sorted(len(s["endpoints"]) for s in found) == [3, 100]


async def test_slices_of_other_managers_are_left_alone(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        labels = {"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "karmada"}
        foreign = kube_object("discovery.k8s.io/v1", "EndpointSlice", "member2-web", "default", labels=labels) | {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.10.0.1"]}],
        }
        made = await cluster.client.create(SLICES, foreign)
        await cluster.client.create(SERVICES, service())
        await running_pod(cluster, "p1", "10.244.1.7")
        await after(cluster, COALESCED)
        found = await slices(cluster)
        assert len(found) == 2
        assert found[0]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_what_someone_else_changed_or_removed_is_mended(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service())
        await running_pod(cluster, "p1", "10.244.1.7")
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        await cluster.client.patch(SLICES, found["metadata"]["name"], "default", {"endpoints": []})
        assert await conditions(cluster) == [(True, True, False)]
        await cluster.client.delete(SLICES, found["metadata"]["name"], "default")
        assert await conditions(cluster) == [(True, True, False)]


async def test_services_without_selector_get_no_slices(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(selector=None))
        external = service("out", type="ExternalName", externalName="example.com", ports=None)
        await cluster.client.create(SERVICES, external)
        await after(cluster, COALESCED)
        assert await slices(cluster) == []
        assert await slices(cluster, "out") == []


async def test_a_new_zone_or_selector_or_label_changes_the_slices(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(SERVICES, service(trafficDistribution="PreferClose"))
        await running_pod(cluster, "p1", "10.244.1.7")
        await running_pod(cluster, "d1", "10.244.1.8", app="db")
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert "zone" not in found["endpoints"][0]
        node = {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z2"}}}
        await cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", **node})
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert found["endpoints"][0]["zone"] == "z2"
        assert found["endpoints"][0]["hints"] == {"forZones": [{"name": "z2"}]}
        change = {"metadata": {"labels": {"team": "b"}}, "spec": {"selector": {"app": "db"}}}
        await cluster.client.patch(SERVICES, "web", "default", change)
        await after(cluster, COALESCED)
        [found] = await slices(cluster)
        assert found["metadata"]["labels"]["team"] == "b"
        assert [endpoint["addresses"] for endpoint in found["endpoints"]] == [["10.244.1.8"]]
