"""Clusters, placements and bindings for tests, in a few words each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import Profile, schedule
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request

EVEN_UID, ODD_UID = "uid-2", "uid-1"
KINDS = [
    {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]},
    {"groupVersion": "v1", "resources": [{"kind": "ConfigMap", "name": "configmaps"}]},
]


def cluster(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    region: str = "",
    zones: Sequence[str] = (),
    provider: str = "",
    taints: Sequence[str] = (),
    kinds: Sequence[Obj] = tuple(KINDS),
    summary: Obj | None = None,
    models: Sequence[Obj] = (),
    deleting: bool = False,
) -> Obj:
    """Taints as key=value:effect."""
    spec: Obj = {}
    if region:
        spec["region"] = region
    if zones:
        spec["zones"] = list(zones)
    if provider:
        spec["provider"] = provider
    if taints:
        spec["taints"] = [_taint(text) for text in taints]
    if models:
        spec["resourceModels"] = list(models)
    status: Obj = {"apiEnablements": list(kinds)}
    if summary is not None:
        status["resourceSummary"] = summary
    metadata: Obj = {"name": name, "uid": name, "labels": dict(labels or {})}
    if deleting:
        metadata["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec, "status": status}


def _taint(text: str) -> Obj:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def pods(count: int) -> Obj:
    """A resource summary with capacity for so many Pods."""
    return {"allocatable": {"pods": str(count)}}


DYNAMIC: Obj = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED: Obj = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
WEIGHTED: Obj = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DUPLICATED: Obj = {"replicaSchedulingType": "Duplicated"}


def static(*rules: tuple[str, int]) -> Obj:
    """By static weights, given as names and weights."""
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in rules]
    return {**WEIGHTED, "weightPreference": {"staticWeightList": weights}}


def spread(field: str, least: int, most: int | None = None) -> Obj:
    constraint: Obj = {"minGroups": least}
    constraint["spreadByLabel" if field.startswith("label/") else "spreadByField"] = field.removeprefix("label/")
    return constraint if most is None else {**constraint, "maxGroups": most}


def placement(scheduling: Obj | None = None, *constraints: Obj, **other: Any) -> Obj:
    found: Obj = dict(other)
    if scheduling is not None:
        found["replicaScheduling"] = scheduling
    if constraints:
        found["spreadConstraints"] = list(constraints)
    return found


def deployment(
    replicas: int, where: Obj, *, uid: str = "", previous: Mapping[str, int] | None = None, **more: Any
) -> Obj:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": uid}
    spec: Obj = {"resource": resource, "replicas": replicas, "placement": where, **more}
    if previous:
        spec["clusters"] = [{"name": name, "replicas": count} for name, count in previous.items()]
    return spec


def config_map(where: Obj, **more: Any) -> Obj:
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "settings"}
    return {"resource": resource, "placement": where, **more}


class Fixed:
    """An estimator with fixed results."""

    name = "fixed"

    def __init__(self, answers: Mapping[str, int]) -> None:
        self.answers = answers

    def estimate(self, request: EstimateRequest) -> Ints:
        return np.array([self.answers.get(name, UNKNOWN) for name in request.names()], np.int64)


def run(
    spec: Obj,
    clusters: Sequence[Obj],
    room: Mapping[str, int] | None = None,
    *,
    profile: Profile | None = None,
    **how: Any,
) -> Decision:
    return schedule(Request(spec, **how), Fleet.of(clusters), [Fixed(room)] if room is not None else [], profile)


def shown(decision: Decision) -> dict[str, int] | str:
    """The targets, or the text of the failure."""
    if decision.failure is not None:
        return decision.failure.text
    return {target["name"]: target.get("replicas", 0) for target in decision.targets}
