"""What propagated autoscalers scale is marked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.controllers.hpa_scale_target_marker import HpaScaleTargetMarker
from karmada.kube.objects.gvrs import AUTOSCALERS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.control_plane import running
from tests.support.objects import kube_object
from tests.support.propagation import POLICY_ID, Propagation, deployment

MARK = "resourcetemplate.karmada.io/retain-replicas"
CLAIM = {POLICY_ID: "i"}
CLUSTER_CLAIM = {"clusterpropagationpolicy.karmada.io/permanent-id": "i"}


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, lambda context: [HpaScaleTargetMarker(context)]) as control_plane:
        yield Propagation(control_plane)


def target(name: str, kind: str = "Deployment", api_version: str = "apps/v1") -> Obj:
    return {"apiVersion": api_version, "kind": kind, "name": name}


def autoscaler(name: str = "hpa", *, labels: dict[str, str] | None = None, scales: Obj | None = None) -> Obj:
    return kube_object("autoscaling/v2", "HorizontalPodAutoscaler", name, "default", labels=labels or {}) | {
        "spec": {"scaleTargetRef": scales or target("a"), "minReplicas": 1, "maxReplicas": 3}
    }


async def create(plane: Propagation, found: Obj) -> None:
    await plane.client.create(AUTOSCALERS, found)
    await plane.rest()


async def mark(plane: Propagation, name: str = "a") -> str | None:
    labels: dict[str, str] = (await plane.get(DEPLOYMENTS, name))["metadata"].get("labels") or {}
    return labels.get(MARK)


@pytest.mark.parametrize(("labels", "marked"), [(CLAIM, "true"), (CLUSTER_CLAIM, "true"), ({}, None)])
async def test_only_propagated_autoscalers_mark(plane: Propagation, labels: dict[str, str], marked: str | None) -> None:
    await plane.apply(deployment("a"))
    await create(plane, autoscaler(labels=labels))
    assert await mark(plane) == marked
    assert plane.writes == (["PATCH deployments a"] if marked else [])


async def test_one_that_is_claimed_later_marks_then(plane: Propagation) -> None:
    await plane.apply(deployment("a"))
    await create(plane, autoscaler())
    await plane.change(AUTOSCALERS, "hpa", {"metadata": {"labels": CLAIM}})
    assert await mark(plane) == "true"
    await plane.change(AUTOSCALERS, "hpa", {"metadata": {"labels": {POLICY_ID: None}}})
    assert await mark(plane) == "true"


async def test_the_mark_moves_with_the_target(plane: Propagation) -> None:
    await plane.apply(deployment("a"), deployment("b"))
    await create(plane, autoscaler(labels=CLAIM))
    await plane.change(AUTOSCALERS, "hpa", {"spec": {"scaleTargetRef": target("b")}})
    assert (await mark(plane, "a"), await mark(plane, "b")) == (None, "true")


@pytest.mark.parametrize("labels", [CLAIM, {}])
async def test_the_mark_goes_with_the_autoscaler(plane: Propagation, labels: dict[str, str]) -> None:
    await plane.apply(deployment("a", labels={MARK: "true"}))
    await create(plane, autoscaler(labels=labels))
    assert await mark(plane) == "true"
    await plane.delete(AUTOSCALERS, "hpa")
    assert await mark(plane) is None


async def test_a_target_that_is_not_there_is_nothing_to_mark(plane: Propagation) -> None:
    await create(plane, autoscaler(labels=CLAIM))
    assert plane.writes == []


async def test_an_unknown_kind_is_reported_and_retried(plane: Propagation, caplog: pytest.LogCaptureFixture) -> None:
    await create(plane, autoscaler(labels=CLAIM, scales=target("a", "Nothing", "nowhere.io/v1")))
    failures = [record for record in caplog.records if record.getMessage() == "Reconcile failed"]
    assert len(failures) > 1
    assert failures[0].pairs["err"].startswith("unable to recognize scale ref resource, ")  # type: ignore[attr-defined]
