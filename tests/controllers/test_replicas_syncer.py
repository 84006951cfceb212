"""Replicas that autoscalers in member clusters have set come back to the template."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.controllers.replicas_syncer import DeploymentReplicasSyncer, is_collected, is_divided
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.control_plane import running
from tests.support.objects import kube_object
from tests.support.propagation import BINDINGS, Propagation, deployment

MARK = {"resourcetemplate.karmada.io/retain-replicas": "true"}
DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, lambda context: [DeploymentReplicasSyncer(context)]) as control_plane:
        yield Propagation(control_plane)


def binding(*, replicas: int = 2, clusters: int = 2, placement: Obj | None = None) -> Obj:
    return kube_object("work.karmada.io/v1alpha2", "ResourceBinding", "nginx-deployment", "default") | {
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            "replicas": replicas,
            "clusters": [{"name": f"m{number}", "replicas": 1} for number in range(clusters)],
            "placement": DIVIDED if placement is None else placement,
        },
    }


def reports(*replicas: int, generation: int = 1) -> Obj:
    items = [
        {"clusterName": f"m{number}", "applied": True, "status": {"replicas": count} if count else {}}
        for number, count in enumerate(replicas)
    ]
    return {"status": {"schedulerObservedGeneration": generation, "aggregatedStatus": items}}


async def report(plane: Propagation, kind: Any, name: str, status: Obj) -> None:
    await plane.client.patch(kind, name, "default", status, subresource="status")
    await plane.rest()


async def replicas(plane: Propagation) -> int:
    found: int = (await plane.get(DEPLOYMENTS, "nginx"))["spec"]["replicas"]
    return found


async def test_the_spec_follows_the_status_once_all_clusters_have_reported(plane: Propagation) -> None:
    await plane.apply(deployment(labels=MARK), binding())
    await report(plane, DEPLOYMENTS, "nginx", {"status": {"replicas": 5}})
    assert await replicas(plane) == 2
    await report(plane, BINDINGS, "nginx-deployment", reports(2, 3))
    await plane.rest(2)
    assert await replicas(plane) == 5
    assert plane.writes == ["PATCH deployments nginx"]


@cases({}, {"resourcetemplate.karmada.io/retain-replicas": "false"})
async def test_what_is_not_marked_is_left_alone(labels: dict[str, str], plane: Propagation) -> None:
    await plane.apply(deployment(labels=labels), binding())
    await report(plane, BINDINGS, "nginx-deployment", reports(2, 3))
    await report(plane, DEPLOYMENTS, "nginx", {"status": {"replicas": 5}})
    assert plane.writes == []
    await plane.change(DEPLOYMENTS, "nginx", {"metadata": {"labels": MARK}})
    assert await replicas(plane) == 5


async def test_what_is_duplicated_or_not_bound_is_left_alone(plane: Propagation) -> None:
    await plane.apply(deployment(labels=MARK))
    await report(plane, DEPLOYMENTS, "nginx", {"status": {"replicas": 5}})
    await plane.apply(binding(placement={}))
    await report(plane, BINDINGS, "nginx-deployment", reports(2, 3))
    await report(plane, DEPLOYMENTS, "nginx", {"status": {"replicas": 5, "readyReplicas": 5}})
    assert plane.writes == []


@cases(
    (None, False),
    ({}, False),
    ({"replicaScheduling": {}}, True),
    (DIVIDED, True),
    ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, False),
)
def test_what_is_divided(placement: Obj | None, divided: bool) -> None:
    assert is_divided({"spec": {"placement": placement}}) is divided


@cases(
    ({}, reports(2, 3), True),
    ({"replicas": 3}, reports(2, 3), False),
    ({}, reports(2, 3, generation=0), False),
    ({}, reports(5), False),
    ({}, reports(5, 0), False),
    ({}, reports(2, 2), False),
    ({"clusters": 3}, reports(2, 3), False),
)
def test_when_a_status_counts(changes: Any, status: Obj, collected: bool) -> None:
    found = {**binding(**changes), **status}
    found["metadata"] = {**found["metadata"], "generation": 1}
    assert is_collected({**deployment(), "status": {"replicas": 5}}, found) is collected
