"""The metrics of all members through the control plane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.api.well_known import QUERY_FROM_CLUSTER
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import APISERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.metrics.load import Setting
from karmada.rehearsal.network import State
from tests.metricsadapter.measured_fleet import MeasuredFleet
from tests.support.played_fleet import cleared, started

METRICS = "/apis/metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredFleet]:
    yield from started(MeasuredFleet(tmp_path_factory.mktemp("measured")))


@pytest.fixture
def fleet(shared: MeasuredFleet) -> Iterator[MeasuredFleet]:
    yield from cleared(shared)


def places(answer: Obj) -> list[tuple[str, str]]:
    """(pod, cluster) of each item."""
    return [(meta.name(item), meta.annotations(item)[QUERY_FROM_CLUSTER]) for item in answer["items"]]


def values(answer: Obj) -> dict[str, str]:
    return {item["describedObject"]["name"]: item["value"] for item in answer["items"]}


def test_the_api_services_are_available(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        services = {meta.name(s): s for s in (await fleet.client.list_all(APISERVICES)).items}
        for name, priorities in {
            "v1beta1.metrics.k8s.io": (2000, 10),
            "v1beta1.custom.metrics.k8s.io": (100, 100),
            "v1beta2.custom.metrics.k8s.io": (100, 200),
        }.items():
            spec = services[name]["spec"]
            assert (spec["groupPriorityMinimum"], spec["versionPriority"]) == priorities
            assert meta.has_condition(services[name]["status"]["conditions"], "Available")
        assert "v1beta1.external.metrics.k8s.io" not in services

    fleet.play(scenario())


def test_pods_of_all_clusters_are_listed_with_their_cluster(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        await fleet.run_pods("m2", "b", "web-0")
        await fleet.run_pods("m1", "a", "web-0")
        await fleet.run_pods("m1", "z", namespace="kube-public")
        expected = [("a", "m1"), ("b", "m2"), ("web-0", "m1"), ("web-0", "m2")]
        assert places(await fleet.get(f"{METRICS}/namespaces/default/pods")) == expected
        assert places(await fleet.get(f"{METRICS}/pods")) == [*expected, ("z", "m1")]
        (item,) = (await fleet.get(f"{METRICS}/namespaces/kube-public/pods"))["items"]
        assert [(c["name"], c["usage"]["cpu"], set(c["usage"])) for c in item["containers"]] == [
            ("c", "100m", {"cpu", "memory"})
        ]
        assert {"timestamp", "window"} <= set(item)

    fleet.play(scenario())


def test_selectors_reach_the_clusters(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        await fleet.run_pods("m1", "a", "b")
        path = f"{METRICS}/namespaces/default/pods"
        assert places(await fleet.get(path, {"labelSelector": "app=web"})) == [("a", "m1"), ("b", "m1")]
        assert places(await fleet.get(path, {"labelSelector": "app!=web"})) == []
        assert places(await fleet.get(path, {"fieldSelector": "metadata.name=b"})) == [("b", "m1")]
        with pytest.raises(BadRequest):
            await fleet.get(path, {"labelSelector": "a in"})

    fleet.play(scenario())


def test_one_pod_is_found_in_its_cluster(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        await fleet.run_pods("m1", "web-0", "a")
        await fleet.run_pods("m2", "web-0")
        found = await fleet.get(f"{METRICS}/namespaces/default/pods/a")
        assert meta.annotations(found)[QUERY_FROM_CLUSTER] == "m1"
        with pytest.raises(ApiError, match=r"the pod\(web-0\) found in more than one clusters") as twice:
            await fleet.get(f"{METRICS}/namespaces/default/pods/web-0")
        assert twice.value.http_code == 500
        with pytest.raises(NotFound, match='pods "gone" not found'):
            await fleet.get(f"{METRICS}/namespaces/default/pods/gone")

    fleet.play(scenario())


def test_nodes_are_listed_and_found(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        listed = await fleet.get(f"{METRICS}/nodes")
        assert [cluster for _, cluster in places(listed)] == ["m1", "m2"]
        name = meta.name(listed["items"][0])
        assert meta.name(await fleet.get(f"{METRICS}/nodes/{name}")) == name

    fleet.play(scenario())


def test_a_cluster_that_hangs_is_left_out_after_a_while_and_then_at_once(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        await fleet.run_pods("m1", "a")
        await fleet.run_pods("m2", "b")
        path = f"{METRICS}/namespaces/default/pods"
        fleet.fleet.change_network("m2", State.HANGING)
        began = fleet.fleet.clock.now()
        assert places(await fleet.get(path)) == [("a", "m1")]
        assert 4 < fleet.fleet.clock.now() - began < 6
        began = fleet.fleet.clock.now()
        assert places(await fleet.get(path)) == [("a", "m1")]
        assert fleet.fleet.clock.now() - began < 1
        fleet.fleet.change_network("m2", State.UP)
        await fleet.fleet.run(40)
        assert places(await fleet.get(path)) == [("a", "m1"), ("b", "m2")]

    fleet.play(scenario())


def test_only_reading_is_served(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        with pytest.raises(MethodNotAllowed):
            await fleet.client.raw("DELETE", f"{METRICS}/namespaces/default/pods/a")
        for path in ("deployments", "pods/a/log"):
            with pytest.raises(NotFound):
                await fleet.get(f"{METRICS}/namespaces/default/{path}")

    fleet.play(scenario())


@pytest.mark.parametrize("path", ["namespaces/default/pods/..", "namespaces/../pods/a"])
def test_no_name_leads_to_another_path(fleet: MeasuredFleet, path: str) -> None:
    with pytest.raises(NotFound):
        fleet.play(fleet.get(f"{METRICS}/{path}"))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_custom_metrics_of_selected_pods_are_added_up_by_name(fleet: MeasuredFleet, version: str) -> None:
    async def scenario() -> None:
        await fleet.run_pods("m1", "p1", load="requests_seen=1")
        await fleet.run_pods("m1", "p2", load="requests_seen=2")
        await fleet.run_pods("m2", "p2", load="requests_seen=3")
        path = f"{CUSTOM}/{version}/namespaces/default/pods/*/requests_seen"
        answer = await fleet.get(path, {"labelSelector": "app=web"})
        assert values(answer) == {"p1": "1", "p2": "5"}
        assert (answer["kind"], answer["apiVersion"]) == ("MetricValueList", f"custom.metrics.k8s.io/{version}")
        item = answer["items"][0]
        if version == "v1beta1":
            assert item["metricName"] == "requests_seen"
            assert "window" in item
        else:
            assert item["metric"]["name"] == "requests_seen"
            assert "windowSeconds" in item
        assert item["describedObject"]["kind"] == "Pod"

    fleet.play(scenario())


def test_a_custom_metric_of_an_object_is_the_sum_over_the_clusters(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        services = GVR("", "v1", "services")
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        for name, amount in (("m1", "100"), ("m2", "50")):
            await fleet.fleet.members[name].client.create(services, service, "default")
            fleet.put_load(name, Setting(namespace="default", kind="Service", name="s", object={"hits": amount}))
        path = f"{CUSTOM}/v1beta2/namespaces/default/services/s/hits"
        assert values(await fleet.get(path)) == {"s": "150"}
        fleet.fleet.change_network("m2", State.DOWN)
        assert values(await fleet.get(path)) == {"s": "100"}
        for name in fleet.fleet.members:
            await fleet.fleet.members[name].client.delete(services, "s", "default")

    fleet.play(scenario())


def test_a_metric_that_no_cluster_has_is_not_found(fleet: MeasuredFleet) -> None:
    with pytest.raises(NotFound, match="the server could not find the metric gone for pods"):
        fleet.play(fleet.get(f"{CUSTOM}/v1beta2/namespaces/default/pods/*/gone"))


def test_discovery_lists_what_any_cluster_has_once(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        for name in ("m1", "m2"):
            await fleet.run_pods(name, "p", load="seen=1")
        await fleet.fleet.run(60)
        listed = await fleet.get(f"{CUSTOM}/v1beta2")
        assert [r["name"] for r in listed["resources"]].count("pods/seen") == 1
        assert {r["kind"] for r in listed["resources"]} == {"MetricValueList"}

    fleet.play(scenario())
