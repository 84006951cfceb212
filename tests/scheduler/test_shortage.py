"""Why a cluster has no room for a replica."""

from __future__ import annotations

from typing import Any

from karmada.scheduler.estimators.shortage import shortage
from tests.support.cases import cases

MODELS = [
    {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "1"}, {"name": "memory", "min": "0", "max": "4Gi"}]},
    {"grade": 1, "ranges": [{"name": "cpu", "min": "1", "max": "2"}, {"name": "memory", "min": "4Gi", "max": "16Gi"}]},
]


def cluster(allocatable: dict[str, str], allocated: dict[str, str] | None = None, *counts: int) -> dict[str, Any]:
    summary: dict[str, Any] = {"allocatable": allocatable, "allocated": allocated or {}}
    if counts:
        summary["allocatableModelings"] = [{"grade": grade, "count": count} for grade, count in enumerate(counts)]
    return {"spec": {"resourceModels": MODELS} if counts else {}, "status": {"resourceSummary": summary}}


def requires(**request: str) -> dict[str, Any]:
    return {"resourceRequest": request}


@cases(
    ({}, None, "the cluster reports no resourceSummary"),
    (cluster({"cpu": "1"}), None, "the cluster reports no allocatable pods"),
    (cluster({"pods": "10"}, {"pods": "10"}), None, "none of its 10 pods is left"),
    (cluster({"pods": "10"}), None, ""),
    (
        cluster({"pods": "10", "cpu": "4"}, {"cpu": "3"}),
        requires(cpu="1500m"),
        "a replica requests cpu: 1500m, and 1 of 4 is left",
    ),
    (cluster({"pods": "10", "cpu": "4"}, {"cpu": "2"}), requires(cpu="1500m"), ""),
    (
        cluster({"pods": "10", "cpu": "12", "memory": "48Gi"}, None, 0, 3),
        requires(cpu="1500m"),
        "a replica requests cpu: 1500m, and the 3 node(s) of the highest grade in use (grade 1 of "
        "spec.resourceModels) count with that grade's minimum, cpu: 1",
    ),
    (cluster({"pods": "10", "cpu": "12", "memory": "48Gi"}, None, 0, 3), requires(cpu="1"), ""),
    (cluster({"pods": "10"}, None, 0, 0), requires(cpu="1"), "no node is in any grade of spec.resourceModels"),
    (
        cluster({"pods": "10", "x.io/gpu": "1"}, None, 2),
        requires(**{"x.io/gpu": "1"}),
        "a replica requests x.io/gpu: 1, and the 2 node(s) of the highest grade in use (grade 0 of "
        "spec.resourceModels) count with that grade's minimum, no x.io/gpu",
    ),
)
def test_the_cause_is_named(found: dict[str, Any], requirements: dict[str, Any] | None, cause: str) -> None:
    assert shortage(found, requirements) == cause
