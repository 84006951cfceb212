"""Pull clusters that fall silent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster.monitor import ClusterMonitor, Health, observe
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually

READY = {"type": "Ready", "status": "True"}
NEVER = ("Unknown", "ClusterStatusNeverUpdated", "Cluster status controller never posted cluster status.")
SILENT = ("Unknown", "ClusterStatusUnknown", "Cluster status controller stopped posting cluster status.")


def lease(renewed: str) -> Obj:
    return {"spec": {"renewTime": renewed}}


T1, T2 = "2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:30.000000Z"


@cases(
    (None, None, None, Health(50.0)),
    (Health(70.0, READY, T1), None, None, Health(70.0, None, T1)),
    (None, None, lease(T1), Health(100.0, None, T1)),
    (None, READY, None, Health(100.0, READY)),
    (Health(70.0, READY), READY, None, Health(70.0, READY)),
    (Health(70.0, {**READY, "status": "False"}, T1), READY, None, Health(100.0, READY)),
    (Health(70.0, READY, T1), READY, lease(T1), Health(70.0, READY, T1)),
    (Health(70.0, READY, T1), READY, lease(T2), Health(100.0, READY, T2)),
    (Health(70.0, READY, T2), READY, lease(T1), Health(100.0, READY, T1)),
    (Health(70.0, READY), READY, lease(T1), Health(100.0, READY, T1)),
    (Health(70.0, READY, T1), READY, {"spec": {}}, Health(70.0, READY, T1)),
)
def test_a_sign_of_life_is_a_new_condition_or_a_renewed_lease(
    health: Health | None, ready: Obj | None, seen: Obj | None, after: Health
) -> None:
    assert observe(health, ready, seen, now=100.0, created=50.0) == after


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda context: [Clusters(context), ClusterMonitor(context)]) as plane:
        yield plane


def clock(plane: ControlPlane) -> FakeClock:
    assert isinstance(plane.clock, FakeClock)
    return plane.clock


def ready(plane: ControlPlane) -> Obj | None:
    cluster = plane.context.informers.of(Cluster.gvr).get(Key("", "m1"))
    conditions = ((cluster or {}).get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == "Ready"), None)


def said(plane: ControlPlane) -> tuple[str, str, str] | None:
    condition = ready(plane)
    return None if condition is None else (condition["status"], condition["reason"], condition["message"])


async def looked(plane: ControlPlane) -> None:
    queue = plane.manager.controllers["cluster-monitor"].queue
    await eventually(lambda: queue.idle and queue.delayed)


async def renew(plane: ControlPlane) -> None:
    body = {"holderIdentity": "m1", "leaseDurationSeconds": 40, "renewTime": micro_time(plane.clock.now())}
    leases = plane.context.informers.of(LEASES, "karmada-cluster")
    if await plane.get(LEASES, "m1", "karmada-cluster") is None:
        obj = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": body}
        await plane.client.create(LEASES, {**obj, "metadata": {"namespace": "karmada-cluster", "name": "m1"}})
    else:
        await plane.client.patch(LEASES, "m1", "karmada-cluster", {"spec": body})

    def known() -> bool:
        found = leases.get(Key("karmada-cluster", "m1"))
        return found is not None and found["spec"]["renewTime"] == body["renewTime"]

    await eventually(known)
    await looked(plane)


async def posted(plane: ControlPlane, status: str) -> None:
    await plane.set_ready("m1", status)
    await eventually(lambda: (ready(plane) or {}).get("status") == status)
    await looked(plane)


async def test_a_cluster_that_never_said_anything_becomes_unknown_after_a_minute(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await looked(plane)
    await clock(plane).advance(59)
    assert said(plane) is None
    await clock(plane).advance(2)
    await eventually(lambda: said(plane) == NEVER)


async def test_a_cluster_that_falls_silent_becomes_unknown_and_gets_its_taint(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await posted(plane, "True")
    await renew(plane)
    before = ready(plane)
    await clock(plane).advance(39)
    assert ready(plane) == before
    await clock(plane).advance(2)
    await eventually(lambda: said(plane) == SILENT)
    condition = ready(plane)
    assert condition is not None
    assert condition["lastTransitionTime"] == "2023-11-14T22:14:00Z"
    clusters = plane.context.informers.of(Cluster.gvr)

    def keys() -> list[str]:
        cluster = clusters.get(Key("", "m1"))
        return [taint["key"] for taint in (cluster or {"spec": {}})["spec"].get("taints") or ()]

    await eventually(lambda: keys() == ["cluster.karmada.io/unreachable"])


async def test_a_cluster_that_is_not_ready_becomes_unknown_as_well(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await posted(plane, "False")
    await clock(plane).advance(41)
    await eventually(lambda: said(plane) == SILENT)


async def test_renewing_the_lease_is_enough(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await posted(plane, "True")
    for _ in range(10):
        await clock(plane).advance(30)
        await renew(plane)
    assert (ready(plane) or {})["status"] == "True"
    await clock(plane).advance(41)
    await eventually(lambda: said(plane) == SILENT)


async def test_leases_alone_keep_a_cluster_that_never_said_anything(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    for _ in range(4):
        await clock(plane).advance(50)
        await renew(plane)
    assert said(plane) is None


async def test_a_new_condition_is_enough(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    for status in ("True", "False", "True"):
        await posted(plane, status)
        await clock(plane).advance(30)
        assert (ready(plane) or {})["status"] == status


async def test_a_cluster_that_comes_back_is_watched_again(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await looked(plane)
    await clock(plane).advance(61)
    await eventually(lambda: said(plane) == NEVER)
    await posted(plane, "True")
    await clock(plane).advance(41)
    await eventually(lambda: said(plane) == SILENT)


async def test_push_clusters_are_left_alone(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Push")
    await plane.set_ready("m1", "True")
    await eventually(lambda: ready(plane))
    await clock(plane).advance(minutes=10)
    assert (ready(plane) or {})["status"] == "True"
    assert plane.manager.controllers["cluster-monitor"].queue.delayed == 0


async def test_after_a_restart_every_cluster_has_the_full_time(folder: Path) -> None:
    async with running(folder, lambda context: [Clusters(context)]) as plane:
        await plane.add_cluster("m1", "Pull")
        await plane.set_ready("m1", "True")
        await clock(plane).advance(minutes=10)
        controller = plane.manager.add(ClusterMonitor(plane.context))
        await controller.start()
        await looked(plane)
        await clock(plane).advance(39)
        assert (ready(plane) or {})["status"] == "True"
        await clock(plane).advance(2)
        await eventually(lambda: said(plane) == SILENT)
        await controller.stop()


async def test_a_cluster_that_is_gone_costs_nothing(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await posted(plane, "True")
    monitor = plane.manager.controllers["cluster-monitor"].reconciler
    assert isinstance(monitor, ClusterMonitor)
    assert monitor.known == {"m1"}
    await plane.client.delete(Cluster.gvr, "m1")
    await plane.until(lambda: not monitor.known)


@cases(3600.0, -3600.0, -365 * 86400.0)
async def test_an_agent_whose_time_of_day_is_set_stays_known(jump: float, plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    await posted(plane, "True")
    await renew(plane)
    clock(plane).jump(jump)
    for _ in range(6):
        await renew(plane)
        await clock(plane).advance(30)
        await looked(plane)
    assert (ready(plane) or {})["status"] == "True"
    await clock(plane).advance(41)
    await eventually(lambda: said(plane) == SILENT)
