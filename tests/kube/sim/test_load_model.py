from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS, REPLICA_SETS
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Component
from karmada.kube.sim.context import Context
from karmada.kube.sim.metrics.amounts import Demand, Series, annotated, demand_of, nano_at, parse_words
from karmada.kube.sim.metrics.load import LoadModel, Setting
from karmada.kube.sim.metrics.reading import Reading
from karmada.kube.sim.profile import INSTANT, Profile
from tests.kube.sim.harness import Harness, running
from tests.support.cases import cases

# --- amounts


def nano(text: str) -> int:
    return Quantity.parse(text).nano


@cases(
    ("cpu=250m,memory=128Mi", Demand({"cpu": "250m", "memory": "128Mi"})),
    ("total-cpu=4", Demand({}, {"cpu": "4"})),
    ("requests=80%", Demand({"cpu": "80%", "memory": "80%"})),
    ("requests=80%,cpu=1", Demand({"cpu": "1", "memory": "80%"})),
    (" http_requests = 50 , container=app ", Demand({"http_requests": "50"}, {}, "app")),
    ("total-http_requests=500,jitter=10%", Demand({}, {"http_requests": "500"}, "", 0.1)),
    ("", Demand()),
)
def test_annotations_are_read_as_words(text: str, demand: Demand) -> None:
    assert annotated(text) == demand


@cases("cpu", "cpu=", "=3", "cpu=lots", "cpu=-1", "requests=3", "http_requests=5%", "total-cpu=50%", "jitter=2")
def test_what_makes_no_sense_is_refused_and_in_an_annotation_ignored(text: str) -> None:
    with pytest.raises(ValueError):
        demand_of(parse_words(text))
    assert annotated(text) == Demand()


RAMP = Series(((0, "100m"), (60, "1"), (120, "200m")))


@cases(
    (RAMP, 0, "100m"),
    (RAMP, 30, "550m"),
    (RAMP, 60, "1"),
    (RAMP, 500, "200m"),
    (Series(RAMP.points, repeat=True), 150, "550m"),
    (Series(RAMP.points, steps=True), 59, "100m"),
    (Series(RAMP.points, steps=True), 60, "1"),
    (Series(((10, "2"),)), 0, "2"),
)
def test_a_series_gives_the_amount_of_a_moment(series: Series, elapsed: float, expected: str) -> None:
    assert nano_at(series, elapsed) == nano(expected)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 1000)), min_size=1), st.floats(0, 1e7), st.booleans())
def test_a_series_never_leaves_the_range_of_its_points(
    points: list[tuple[float, int]], elapsed: float, repeat: bool
) -> None:
    points.sort()
    series = Series(tuple((at, f"{value}m") for at, value in points), repeat=repeat)
    values = [nano(f"{value}m") for _, value in points]
    assert min(values) <= nano_at(series, elapsed) <= max(values)


def test_points_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="ascending order"):
        demand_of({"cpu": Series(((5, "1"), (0, "2")))})


# --- readings


class Load:
    def __init__(self) -> None:
        self.model: LoadModel

    def parts(self, context: Context) -> list[Component]:
        self.model = LoadModel(context)
        return []


async def put(
    cluster: Harness,
    name: str,
    *,
    annotations: dict[str, str] | None = None,
    owner: Obj | None = None,
    labels: dict[str, str] | None = None,
    containers: list[Obj] | None = None,
    ready: bool = True,
    node: str = "n1",
) -> Obj:
    """A pod that has been running for a minute."""
    meta: Obj = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        meta["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    requests = {"requests": {"cpu": "200m", "memory": "100Mi"}}
    spec = {"nodeName": node, "containers": containers or [{"name": "c", "image": "nginx", "resources": requests}]}
    made = await cluster.client.create(
        PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "default"
    )
    started = rfc3339(cluster.clock.now() - 60)
    statuses = [
        {"name": c["name"], "image": "nginx", "imageID": "", "ready": ready, "restartCount": 0,
         "state": {"running": {"startedAt": started}}}
        for c in spec["containers"]
    ]  # fmt: skip
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": started}
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": statuses}
    return await cluster.set_pod_status(made, status)


async def workload(cluster: Harness, gvr: GVR, kind: str, name: str, **meta: object) -> Obj:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}
    return await cluster.client.create(gvr, body, "default")


async def seen(cluster: Harness, model: LoadModel, *objects: Obj) -> None:
    informers = {"Pod": model.pods, **model.workloads}
    for obj in objects:
        await cluster.context.until_seen(informers[obj["kind"]], [obj])


def cpu(model: LoadModel, pod: Obj) -> int:
    found = model.pods.get(Key("default", pod["metadata"]["name"]))
    assert found is not None
    measured = Reading(model).containers(found)
    assert measured is not None
    return sum(one.cpu for one in measured)


async def test_an_idle_pod_uses_a_little_and_always_the_same(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        pod = await put(cluster, "p")
        await seen(cluster, load.model, pod)
        first = cpu(load.model, pod)
        assert nano("500u") < first < nano("5m")
        assert cpu(load.model, pod) == first


async def test_a_total_is_divided_among_the_ready_pods_of_the_workload(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        top = await workload(cluster, DEPLOYMENTS, "Deployment", "web", annotations={"sim.io/load": "total-cpu=4"})
        sets = [
            await workload(cluster, REPLICA_SETS, "ReplicaSet", name, ownerReferences=[
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": top["metadata"]["uid"],
                 "controller": True}])
            for name in ("web-1", "web-2")
        ]  # fmt: skip
        pods = [await put(cluster, f"p{i}", owner=sets[i % 2]) for i in range(4)]
        late = await put(cluster, "late", owner=sets[0], ready=False)
        await seen(cluster, load.model, top, *sets, *pods, late)
        assert [cpu(load.model, pod) for pod in pods] == [nano("1")] * 4
        assert cpu(load.model, late) == 0
        ready = await cluster.make_ready(late)
        await seen(cluster, load.model, ready)
        assert cpu(load.model, pods[0]) == nano("800m")


async def test_a_percentage_is_that_part_of_what_the_pod_requests(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        pod = await put(cluster, "p", annotations={"sim.io/load": "requests=80%"})
        await seen(cluster, load.model, pod)
        found = load.model.pods.get(Key("default", "p"))
        assert found is not None
        [measured] = Reading(load.model).containers(found) or []
        assert (measured.cpu, measured.memory) == (nano("160m"), nano("80Mi"))


async def test_settings_go_before_annotations_and_the_more_exact_and_younger_before_others(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        owner = await workload(cluster, REPLICA_SETS, "ReplicaSet", "web")
        pod = await put(cluster, "p", owner=owner, labels={"app": "web"}, annotations={"sim.io/load": "cpu=1m"})
        await seen(cluster, load.model, owner, pod)
        model = load.model
        assert cpu(model, pod) == nano("1m")
        steps = {
            "everyone": Setting(load={"cpu": "2m"}),
            "labelled": Setting(selector="app=web", load={"cpu": "3m"}),
            "owned": Setting(namespace="default", kind="ReplicaSet", name="web", load={"cpu": "4m"}),
            "itself": Setting(kind="Pod", name="p", load={"cpu": "5m"}),
            "again": Setting(kind="Pod", name="p", load={"cpu": "6m"}),
            "elsewhere": Setting(namespace="other", kind="Pod", name="p", load={"cpu": "7m"}),
            "of memory": Setting(kind="Pod", name="p", load={"memory": "1Gi"}),
        }
        used = []
        for name, setting in steps.items():
            model.set(name, setting)
            used.append(cpu(model, pod) // nano("1m"))
        assert used == [2, 3, 4, 5, 6, 6, 6]
        assert model.remove("again")
        assert not model.remove("again")
        assert cpu(model, pod) == nano("5m")


async def test_owners_in_a_circle_do_no_harm(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        own = await workload(cluster, REPLICA_SETS, "ReplicaSet", "own", annotations={"sim.io/load": "total-cpu=2"})
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "own", "controller": True}
        patch = {"metadata": {"ownerReferences": [{**reference, "uid": own["metadata"]["uid"]}]}}
        own = await cluster.client.patch(REPLICA_SETS, "own", "default", patch, type="merge")
        pod = await put(cluster, "p", owner=own)
        await seen(cluster, load.model, own, pod)
        assert 0 < cpu(load.model, pod) <= nano("2")


async def test_a_series_runs_from_the_moment_it_was_set(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        pod = await put(cluster, "p")
        await seen(cluster, load.model, pod)
        load.model.set("ramp", Setting(kind="Pod", name="p", load={"cpu": RAMP}))
        assert cpu(load.model, pod) == nano("100m")
        await cluster.clock.advance(30)
        assert cpu(load.model, pod) == nano("550m")


async def test_load_is_divided_among_containers_by_their_requests_or_goes_to_the_one_named(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        containers = [
            {"name": name, "image": "nginx", "resources": {"requests": {"cpu": amount}}}
            for name, amount in (("big", "300m"), ("small", "100m"))
        ]
        pod = await put(cluster, "p", containers=containers, annotations={"sim.io/load": "cpu=1"})
        named = await put(cluster, "q", containers=containers, annotations={"sim.io/load": "cpu=1,container=small"})
        await seen(cluster, load.model, pod, named)
        used = {
            name: {one.name: one.cpu for one in Reading(load.model).containers(found) or []}
            for name in ("p", "q")
            if (found := load.model.pods.get(Key("default", name)))
        }
        assert used["p"] == {"big": nano("750m"), "small": nano("250m")}
        assert used["q"]["small"] == nano("1")
        assert used["q"]["big"] < nano("5m")


async def test_nobody_measures_a_pod_that_just_started_or_whose_node_is_lost(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts) as cluster:
        lost = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gone"}}
        node = await cluster.client.create(NODES, lost)
        unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        node = await cluster.client.patch(NODES, "gone", "", unknown, type="merge", subresource="status")
        away = await put(cluster, "away", node="gone")
        young = await put(cluster, "young")
        [status] = young["status"]["containerStatuses"]
        started = {"running": {"startedAt": rfc3339(cluster.clock.now())}}
        young = await cluster.set_pod_status(young, {"containerStatuses": [{**status, "state": started}]})
        await seen(cluster, load.model, away, young)
        await cluster.context.until_seen(load.model.nodes, [node])

        def measured(pod: Obj) -> object:
            return Reading(load.model).containers(load.model.pods.get(Key("default", pod["metadata"]["name"])) or {})

        assert measured(away) is None
        assert Reading(load.model).node(node) is None
        assert measured(young) is None
        await cluster.clock.advance(15)
        assert measured(young) is not None


async def test_the_profile_says_when_a_container_is_measured_for_the_first_time(tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts, profile=Profile("test", latencies=INSTANT, first_sample=90)) as cluster:
        pod = await put(cluster, "p")  # for a minute by now
        await seen(cluster, load.model, pod)
        assert Reading(load.model).containers(pod) is None
        await cluster.clock.advance(30)
        assert Reading(load.model).containers(pod) is not None


@cases(Setting(load={"cpu": "x"}), Setting(selector="=!"), Setting(external={"q": "5%"}), Setting(object={"a": "x"}))
async def test_a_setting_that_makes_no_sense_is_refused_and_changes_nothing(setting: Setting, tmp_path: Path) -> None:
    load = Load()
    async with running(tmp_path, load.parts):
        with pytest.raises(ValueError):
            load.model.set("bad", setting)
        assert load.model.settings() == {}
