from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS
from karmada.kube.objects.meta import get_condition, make_owner
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.disruption import DisruptionBudgets, still_disrupted
from tests.kube.sim.harness import Harness, running
from tests.support.cases import cases
from tests.support.eventually import eventually

CONTAINERS: Obj = {"containers": [{"name": "c", "image": "nginx"}]}
LABELS = {"app": "web"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running(tmp_path, lambda context: [DisruptionBudgets(context)]) as harness:
        yield harness


async def workload(cluster: Harness, gvr: GVR, kind: str, name: str, replicas: int, owner: Obj | None = None) -> Obj:
    meta: Obj = {"name": name, "namespace": "default"}
    if owner is not None:
        meta["ownerReferences"] = [make_owner(owner)]
    template = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return await cluster.client.create(gvr, {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})


async def pods(cluster: Harness, count: int, ready: int, owner: Obj | None = None) -> list[Obj]:
    made = []
    for number in range(count):
        meta: Obj = {"name": f"web-{number}", "namespace": "default", "labels": LABELS}
        if owner is not None:
            meta["ownerReferences"] = [make_owner(owner)]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**CONTAINERS, "nodeName": "n"}}
        pod = await cluster.client.create(PODS, pod)
        made.append(await cluster.make_ready(pod) if number < ready else pod)
    return made


async def budget(cluster: Harness, **spec: Any) -> Obj:
    meta = {"name": "b", "namespace": "default"}
    body = {"selector": {"matchLabels": LABELS}, **spec}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": body}
    return await cluster.client.create(BUDGETS, made)


def status(cluster: Harness) -> Obj:
    found = cluster.context.informers.of(BUDGETS).get(Key("default", "b")) or {}
    return found.get("status") or {}


def counts(cluster: Harness) -> tuple[int, ...]:
    """Healthy, needed, expected, and how many may go."""
    found = status(cluster)
    return tuple(found.get(k) for k in ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"))  # type: ignore[misc]


async def until(cluster: Harness, expected: tuple[int, ...]) -> None:
    def reached() -> bool:
        return counts(cluster) == expected and status(cluster).get("observedGeneration") is not None

    await eventually(reached, show=lambda: status(cluster))


async def test_a_number_of_available_pods_needs_no_owner(cluster: Harness) -> None:
    await pods(cluster, 4, 3)
    await budget(cluster, minAvailable=2)
    await until(cluster, (3, 2, 4, 1))
    condition = get_condition(status(cluster)["conditions"], "DisruptionAllowed")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", "SufficientPods")
    assert status(cluster)["observedGeneration"] == 1


@cases(
    ({"maxUnavailable": 1}, (3, 4, 5, 0)),
    ({"maxUnavailable": "50%"}, (3, 2, 5, 1)),
    ({"minAvailable": "50%"}, (3, 3, 5, 0)),
    ({"maxUnavailable": 9}, (3, 0, 5, 3)),
)
async def test_shares_are_shares_of_what_the_owners_want(
    spec: Obj, expected: tuple[int, ...], cluster: Harness
) -> None:
    deployment = await workload(cluster, DEPLOYMENTS, "Deployment", "web", 5)
    replica_set = await workload(cluster, REPLICA_SETS, "ReplicaSet", "web-1", 3, deployment)
    await pods(cluster, 3, 3, replica_set)
    await budget(cluster, **spec)
    await until(cluster, expected)


async def test_the_status_follows_the_pods(cluster: Harness) -> None:
    await budget(cluster, minAvailable=2)
    await until(cluster, (0, 2, 0, 0))
    made = await pods(cluster, 3, 2)
    await until(cluster, (2, 2, 3, 0))
    condition = get_condition(status(cluster)["conditions"], "DisruptionAllowed")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
    await cluster.make_ready(made[2])
    await until(cluster, (3, 2, 3, 1))
    await cluster.client.delete(PODS, "web-0", "default", grace_period=30)
    await until(cluster, (2, 2, 3, 0))
    assert ("Normal", "NoPods", "No matching pods found") in await cluster.events("b")


async def test_an_eviction_takes_from_the_budget_and_the_next_must_wait(cluster: Harness) -> None:
    made = await pods(cluster, 3, 3)
    await budget(cluster, minAvailable=2)
    await until(cluster, (3, 2, 3, 1))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0", "namespace": "default"}}
    await cluster.client.create_subresource(PODS, "web-0", "default", "eviction", eviction)
    eviction = {**eviction, "metadata": {"name": "web-1", "namespace": "default"}}
    with pytest.raises(TooManyRequests):
        await cluster.client.create_subresource(PODS, "web-1", "default", "eviction", eviction)
    await until(cluster, (2, 2, 3, 0))
    await eventually(lambda: "disruptedPods" not in status(cluster), show=lambda: status(cluster))
    assert made


async def test_a_pod_that_was_evicted_but_stays_counts_again_after_two_minutes(cluster: Harness) -> None:
    await pods(cluster, 3, 3)
    await budget(cluster, minAvailable=2)
    await until(cluster, (3, 2, 3, 1))
    taken = {"disruptedPods": {"web-0": "2023-11-14T22:13:20Z"}, "disruptionsAllowed": 0}
    await cluster.client.patch(BUDGETS, "b", "default", {"status": taken}, subresource="status")
    await until(cluster, (2, 2, 3, 0))
    assert status(cluster)["disruptedPods"] == taken["disruptedPods"]
    await cluster.clock.advance(121)
    await until(cluster, (3, 2, 3, 1))
    assert "disruptedPods" not in status(cluster)
    message = "Pod was expected by PDB default/b to be deleted but it wasn't"
    assert ("Warning", "NotDeleted", message) in await cluster.events("web-0")


async def test_what_cannot_be_calculated_allows_nothing(cluster: Harness) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "u"}}
    await pods(cluster, 1, 1, job)
    await budget(cluster, maxUnavailable=1)
    await eventually(lambda: status(cluster).get("conditions"), show=lambda: status(cluster))
    [condition] = status(cluster)["conditions"]
    why = "jobs.batch does not implement the scale subresource"
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SyncFailed", why)
    assert status(cluster)["disruptionsAllowed"] == 0
    emitted = f"Failed to calculate the number of expected pods: {why}"
    assert ("Warning", "CalculateExpectedPodCountFailed", emitted) in await cluster.events("b")


async def test_pods_without_an_owner_are_reported(cluster: Harness) -> None:
    await pods(cluster, 2, 2)
    await budget(cluster, maxUnavailable=1)
    await until(cluster, (2, 0, 0, 0))
    [emitted] = [event for event in await cluster.events("b") if event[1] == "UnmanagedPods"]
    assert "(selector: app=web)" in emitted[2]


async def test_an_empty_selector_selects_every_pod_of_the_namespace(cluster: Harness) -> None:
    await pods(cluster, 2, 2)
    await budget(cluster, minAvailable=1, selector={})
    await until(cluster, (2, 1, 2, 1))


def test_disrupted_pods_are_forgotten_when_they_go_or_stay_too_long() -> None:
    def pod(name: str, **meta: str) -> Obj:
        return {"metadata": {"name": name, **meta}}

    recorded = dict.fromkeys(("going", "staying", "gone"), "1970-01-01T00:00:00Z") | {"new": "1970-01-01T00:01:40Z"}
    present = [pod("going", deletionTimestamp="x"), pod("staying"), pod("new"), pod("other")]
    found = still_disrupted(recorded, present, 130.0)
    assert found.pending == {"new": "1970-01-01T00:01:40Z"}
    assert found.staying == [pod("staying")]
    assert found.recheck == 220.0
