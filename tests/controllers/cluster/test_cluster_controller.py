"""Clusters come and go, in a real control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.controllers.cluster.controller import Clusters
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import EVENTS, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import remove_finalizer
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.objects import kube_object

FINALIZER = "karmada.io/cluster-controller"
NOT_READY, UNREACHABLE = "cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable"
CREATED = ("Normal", "CreateExecutionSpaceSucceed", "Created execution space(karmada-es-m1) for cluster(m1).")
REMOVED = ("Normal", "RemoveExecutionSpaceSucceed", "Removed execution space for cluster(m1).")
TAINTED = (
    "Normal",
    "TaintClusterSucceed",
    f"Taint cluster succeed: cluster now has taints([{{Key:{NOT_READY},Effect:NoSchedule}}]).",
)


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda context: [Clusters(context)]) as plane:
        yield plane


def cached(plane: ControlPlane, name: str = "m1") -> Obj | None:
    return plane.context.informers.of(Cluster.gvr).get(Key("", name))


def taints(plane: ControlPlane) -> list[tuple[str, str]]:
    cluster = cached(plane)
    return [(t["key"], t["effect"]) for t in (cluster or {"spec": {}})["spec"].get("taints") or ()]


async def settled(plane: ControlPlane, name: str = "m1") -> Obj:
    """A cluster that has everything it gets while nobody says that it is ready."""

    def done() -> Obj | None:
        found = cached(plane, name)
        return found if found and found["metadata"].get("finalizers") and found["spec"].get("taints") else None

    cluster: Obj = await eventually(done)
    return cluster


async def gone(plane: ControlPlane) -> None:
    """The Cluster goes long before the next fixed look; the server empties namespaces in steps of its own."""
    await plane.until(lambda: cached(plane) is None)


def idle(plane: ControlPlane) -> bool:
    return plane.manager.controllers["cluster-controller"].queue.idle


def work(name: str = "w", **metadata: object) -> Obj:
    return {
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": {
            "namespace": "karmada-es-m1",
            "name": name,
            "finalizers": ["karmada.io/execution-controller"],
            **metadata,
        },
        "spec": {"workload": {"manifests": []}},
    }


def binding(kind: str = "ResourceBinding", *clusters: str, **spec: object) -> Obj:
    obj: Obj = kube_object("work.karmada.io/v1alpha2", kind, "web-deployment") | {
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "web"},
            "clusters": [{"name": name} for name in clusters],
            **spec,
        },
    }
    if kind == "ResourceBinding":
        obj["metadata"]["namespace"] = "default"
    return obj


async def test_a_new_cluster_gets_a_namespace_a_taint_and_a_finalizer(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    cluster = await settled(plane)
    namespace = await plane.client.get(NAMESPACES, "karmada-es-m1")
    assert namespace["metadata"]["labels"]["karmada.io/system"] == "true"
    assert cluster["metadata"]["finalizers"] == [FINALIZER]
    assert cluster["spec"]["taints"] == [
        {"key": NOT_READY, "effect": "NoSchedule", "timeAdded": "2023-11-14T22:13:20Z"}
    ]
    assert await plane.events("m1") == [CREATED, TAINTED]


async def test_events_come_from_the_cluster_controller(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    await plane.events("m1")
    emitted = (await plane.client.list_all(EVENTS, "default")).items
    assert {event["source"]["component"] for event in emitted} == {"cluster-controller"}


async def test_taints_follow_what_is_said_of_the_cluster(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", taints=[{"key": "mine", "value": "yes", "effect": "NoExecute"}])
    await eventually(lambda: taints(plane) == [("mine", "NoExecute"), (NOT_READY, "NoSchedule")])
    await plane.set_ready("m1", "True")
    await eventually(lambda: taints(plane) == [("mine", "NoExecute")])
    await plane.set_ready("m1", "Unknown")
    await eventually(lambda: taints(plane) == [("mine", "NoExecute"), (UNREACHABLE, "NoSchedule")])
    await plane.set_ready("m1", "False")
    await eventually(lambda: taints(plane) == [("mine", "NoExecute"), (NOT_READY, "NoSchedule")])
    messages = {message for _, reason, message in await plane.events("m1") if reason == "TaintClusterSucceed"}
    mine = "{Key:mine,Value:yes,Effect:NoExecute}"
    assert messages == {
        f"Taint cluster succeed: cluster now has taints([{mine}]).",
        f"Taint cluster succeed: cluster now has taints([{mine},{{Key:{NOT_READY},Effect:NoSchedule}}]).",
        f"Taint cluster succeed: cluster now has taints([{mine},{{Key:{UNREACHABLE},Effect:NoSchedule}}]).",
    }


async def test_a_cluster_without_taints_is_reported_as_such(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    await plane.set_ready("m1", "True")
    await eventually(lambda: taints(plane) == [])
    none = "Taint cluster succeed: cluster now does not have taints."
    assert (await plane.events("m1"))[-1] == ("Normal", "TaintClusterSucceed", none)


async def test_nothing_is_written_when_nothing_changes(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    version = (await settled(plane))["metadata"]["resourceVersion"]
    plane.manager.controllers["cluster-controller"].add(Key("", "m1"))
    await eventually(lambda: idle(plane))
    assert (await plane.client.get(Cluster.gvr, "m1"))["metadata"]["resourceVersion"] == version


async def test_a_namespace_that_somebody_deletes_comes_back(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    before = (await plane.client.get(NAMESPACES, "karmada-es-m1"))["metadata"]["uid"]
    await plane.client.delete(NAMESPACES, "karmada-es-m1")
    namespaces = plane.context.informers.of(NAMESPACES)

    def another() -> bool:
        found = namespaces.get(Key("", "karmada-es-m1"))
        return found is not None and found["metadata"]["uid"] != before

    await eventually(another)


async def test_a_namespace_that_cannot_be_made_is_reported_and_retried(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = plane.context.client
    create = client.create
    refused = Forbidden.of(GroupResource("", "namespaces"), "karmada-es-m1", "not today")

    async def refuse(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if obj["kind"] == "Namespace":
            raise refused
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "create", refuse)
    await plane.add_cluster("m1")
    controller = plane.manager.controllers["cluster-controller"]
    await eventually(lambda: controller.queue.retries(Key("", "m1")))
    assert await plane.events("m1") == [("Warning", "CreateExecutionSpaceFailed", refused.message)]
    assert not (await plane.client.get(Cluster.gvr, "m1"))["metadata"].get("finalizers")
    monkeypatch.setattr(client, "create", create)
    assert isinstance(plane.clock, FakeClock)
    await plane.clock.advance(1)
    await settled(plane)


async def test_taints_that_cannot_be_written_are_reported(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Forbidden.of(GroupResource("cluster.karmada.io", "clusters"), "m1", "not today")

    async def refuse(*_args: object, **_kwargs: object) -> Obj:
        raise refused

    monkeypatch.setattr(plane.context.client, "update", refuse)
    await plane.add_cluster("m1")
    controller = plane.manager.controllers["cluster-controller"]
    await eventually(lambda: controller.queue.retries(Key("", "m1")))
    assert set(await plane.events("m1")) == {CREATED, ("Warning", "TaintClusterFailed", refused.message)}


# leaving


async def test_a_cluster_goes_as_soon_as_its_namespace_is_gone(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    await plane.client.delete(Cluster.gvr, "m1")
    await gone(plane)
    assert await plane.get(NAMESPACES, "karmada-es-m1") is None
    assert (await plane.events("m1"))[-1] == REMOVED


async def test_a_cluster_waits_for_its_works(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    await plane.client.create(Work.gvr, work())
    await plane.client.delete(Cluster.gvr, "m1")
    works = plane.context.informers.of(Work.gvr)
    await eventually(lambda: [w for w in works.list() if w["metadata"].get("deletionTimestamp")])
    await eventually(lambda: idle(plane))
    assert cached(plane) is not None
    await plane.client.patch(Work.gvr, "w", "karmada-es-m1", {"metadata": {"finalizers": None}})
    await gone(plane)


@pytest.mark.parametrize("kind", [ResourceBinding, ClusterResourceBinding])
async def test_a_cluster_waits_until_no_binding_names_it(plane: ControlPlane, kind: type[ResourceBinding]) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    obj = binding(kind.gvk.kind, "m1", "m2")
    await plane.client.create(kind.gvr, obj)
    await eventually(lambda: len(plane.context.informers.of(kind.gvr)))
    await plane.client.delete(Cluster.gvr, "m1")
    namespaces = plane.context.informers.of(NAMESPACES)
    await plane.until(lambda: namespaces.get(Key("", "karmada-es-m1")) is None and idle(plane))
    assert cached(plane) is not None
    away = {"spec": {"clusters": [{"name": "m2"}]}}
    await plane.client.patch(kind.gvr, "web-deployment", obj["metadata"].get("namespace", ""), away)
    await gone(plane)


async def test_an_eviction_task_does_not_hold_a_cluster(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    task = {"fromCluster": "m1", "reason": "TaintUntolerated", "producer": "TaintManager"}
    await plane.client.create(ResourceBinding.gvr, binding("ResourceBinding", "m2", gracefulEvictionTasks=[task]))
    await eventually(lambda: len(plane.context.informers.of(ResourceBinding.gvr)))
    await plane.client.delete(Cluster.gvr, "m1")
    await gone(plane)


async def test_a_cluster_that_is_being_deleted_is_reconciled_every_ten_seconds(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await settled(plane)
    await plane.client.create(Work.gvr, work())
    await plane.client.delete(Cluster.gvr, "m1")
    controller = plane.manager.controllers["cluster-controller"]
    await eventually(lambda: controller.queue.idle and controller.queue.delayed)
    seen: list[Key] = []
    reconcile = controller.reconciler.reconcile

    async def count(key: Key) -> object:
        seen.append(key)
        return await reconcile(key)

    controller.reconciler.reconcile = count  # type: ignore[method-assign, assignment]
    assert isinstance(plane.clock, FakeClock)
    await plane.clock.advance(9)
    assert seen == []
    await plane.clock.advance(2)
    await eventually(lambda: seen == [Key("", "m1")])


async def test_works_of_a_pull_cluster_that_is_not_ready_are_released(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await settled(plane)
    await plane.set_ready("m1", "Unknown")
    for name in ("w1", "w2"):
        await plane.client.create(Work.gvr, work(name))
    await eventually(lambda: len(plane.context.informers.of(Work.gvr)) == 2)
    await plane.client.delete(Cluster.gvr, "m1")
    await gone(plane)


async def delete_ready_pull_cluster(plane: ControlPlane) -> Obj:
    """Return its one Work, which waits for the agent."""
    await plane.add_cluster("m1", "Pull")
    await settled(plane)
    await plane.set_ready("m1", "True")
    await plane.client.create(Work.gvr, work())
    works = plane.context.informers.of(Work.gvr)
    await eventually(lambda: len(works) and taints(plane) == [])
    await plane.client.delete(Cluster.gvr, "m1")
    await eventually(lambda: [w for w in works.list() if w["metadata"].get("deletionTimestamp")] and idle(plane))
    (left,) = works.list()
    return left


async def test_works_of_a_pull_cluster_that_is_ready_wait_for_its_agent(plane: ControlPlane) -> None:
    await delete_ready_pull_cluster(plane)
    assert cached(plane) is not None
    await plane.set_ready("m1", "False")  # the agent is gone for good
    await gone(plane)


async def test_the_namespace_of_a_ready_pull_cluster_outlives_its_works(plane: ControlPlane) -> None:
    """The agent's right to the Works is a Role there."""
    left = await delete_ready_pull_cluster(plane)
    namespace = await plane.client.get(NAMESPACES, "karmada-es-m1")
    assert "deletionTimestamp" not in namespace["metadata"]
    await remove_finalizer(plane.client, Work.gvr, left, "karmada.io/execution-controller")  # as the agent does
    await gone(plane)
    assert await plane.get(NAMESPACES, "karmada-es-m1") is None


async def test_works_that_cannot_be_released_are_reported(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    await plane.add_cluster("m1", "Pull")
    await settled(plane)
    for name in ("w1", "w2"):
        await plane.client.create(Work.gvr, work(name))
    await eventually(lambda: len(plane.context.informers.of(Work.gvr)) == 2)
    client = plane.context.client
    patch = client.patch

    async def refuse(kind: object, name: str, *args: object, **kwargs: object) -> Obj:
        if kind == Work.gvr:
            raise Forbidden(f"no {name}")
        return await patch(kind, name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "patch", refuse)
    await plane.client.delete(Cluster.gvr, "m1")
    controller = plane.manager.controllers["cluster-controller"]
    await eventually(lambda: controller.queue.retries(Key("", "m1")))
    assert (await plane.events("m1"))[-1] == ("Warning", "RemoveExecutionSpaceFailed", "[no w1, no w2]")
    assert await plane.get(NAMESPACES, "karmada-es-m1") is not None
