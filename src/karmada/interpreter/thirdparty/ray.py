"""KubeRay (ray.io): clusters of a head and groups of workers, and jobs and services that run in one of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from karmada.interpreter.dependencies import pod_dependencies
from karmada.interpreter.native.aggregation import reported
from karmada.interpreter.native.fields import entries, section, text
from karmada.interpreter.operations import Replicas, Report
from karmada.interpreter.thirdparty.aggregating import (
    all_conditions,
    latest,
    only_status,
    sums,
    updated,
    values,
)
from karmada.interpreter.thirdparty.common import has_condition
from karmada.interpreter.thirdparty.kind import Aggregate, Components, Find, Kind, Needs
from karmada.interpreter.thirdparty.values import amount, at, count_or, numeric, quantity, whole
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.quantity import ZERO
from karmada.kube.objects.types import Obj

_WORKERS = (
    "readyWorkerReplicas", "availableWorkerReplicas", "maxWorkerReplicas", "minWorkerReplicas", "desiredWorkerReplicas",
)  # fmt: skip
_DEPLOYMENT_RANKS = {
    "": 0, "Initializing": 1, "Waiting": 2, "Suspending": 3, "Suspended": 3, "Retrying": 4, "Running": 5, "Complete": 6,
    "ValidationFailed": 7, "Failed": 8,
}  # fmt: skip
_JOB_RANKS = {"PENDING": 1, "RUNNING": 2, "SUCCEEDED": 3, "STOPPED": 4, "FAILED": 5}
_APPLICATION_RANKS = {
    "RUNNING": 0, "NOT_STARTED": 1, "DEPLOYING": 2, "DELETING": 3, "UNHEALTHY": 4, "DEPLOY_FAILED": 5,
}  # fmt: skip
"""When clusters differ, the greatest rank is shown."""


def _groups(cluster: Obj) -> list[Obj]:
    return entries(cluster, "workerGroupSpecs")


def _cluster_at(*path: str) -> Callable[[Obj], Obj]:
    """Return where a kind has the spec of a cluster."""

    def find(obj: Obj) -> Obj:
        for field in path:
            obj = section(obj, field)
        return obj

    return find


# what all have in common


def _components(cluster_of: Callable[[Obj], Obj]) -> Components:
    def components(obj: Obj, needs: Needs) -> list[Obj]:
        cluster = cluster_of(obj)
        found: list[Obj] = []
        head = at(cluster, "headGroupSpec", "template")
        if head is not None:
            found.append({"name": "ray-head", "replicas": 1, "replicaRequirements": needs(head)})
        for index, group in enumerate(_groups(cluster), start=1):
            template = group.get("template")
            found.append(
                {
                    "name": group.get("groupName") or f"worker-{index}",
                    "replicas": count_or(0, group.get("replicas")),
                    "replicaRequirements": None if template is None else needs(template),
                }
            )
        return found

    return components


def _dependencies(cluster_of: Callable[[Obj], Obj], *more: str) -> Find:
    """Return what the Pods of a cluster refer to, and those of templates in more fields of the spec."""

    def find(obj: Obj) -> list[Obj]:
        cluster = cluster_of(obj)
        templates = [at(cluster, "headGroupSpec", "template")]
        templates += [group.get("template") for group in _groups(cluster)]
        templates += [at(obj, "spec", field) for field in more]
        return [
            found
            for template in templates
            if template is not None
            for found in pod_dependencies(_plain_pod(section(template, "spec")), meta.namespace(obj))
        ]

    return find


def _plain_pod(pod: Obj) -> Obj:
    """Without ephemeral containers; a volume of several sources counts as several volumes."""
    volumes = [{source: found} for volume in entries(pod, "volumes") for source, found in volume.items()]
    return {**pod, "ephemeralContainers": [], "volumes": volumes}


def _without_spec(aggregate: Callable[[Obj, Sequence[Report]], Obj]) -> Aggregate:
    """Return the status of several clusters, or of a single one as it is; nothing but the status is of interest."""

    def aggregated(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
        if not reports:
            return obj
        head = {field: value for field, value in obj.items() if field != "spec"}
        return only_status(head, reports) or aggregate(head, reports)

    return aggregated


def _first(reports: Iterable[Report], field: str) -> Any:
    return next(iter(values(reports, field)), None)


# RayCluster


def _cluster_healthy(obj: Obj) -> bool:
    return (
        has_condition(obj, "HeadPodReady")
        and has_condition(obj, "RayClusterProvisioned")
        and not has_condition(obj, "RayClusterReplicaFailure")
    )


def _cluster_status(obj: Obj, reports: Sequence[Report]) -> Obj:
    amounts = {field: _total(reports, field) for field in ("desiredCPU", "desiredMemory")}
    devices = {field: _count(reports, field) for field in ("desiredGPU", "desiredTPU")}
    stated: Obj = next((status for status in reported(reports) if status.get("state") is not None), {})
    former = section(obj, "status")
    return updated(
        obj,
        conditions=all_conditions(reports),
        **sums(reports, _WORKERS),
        **amounts,
        **devices,
        lastUpdateTime=latest(reports, "lastUpdateTime", former.get("lastUpdateTime")),
        endpoints=_first(reports, "endpoints"),
        head=_first(reports, "head"),
        state=stated.get("state"),
        stateTransitionTimes=stated.get("stateTransitionTimes"),
    )


def _total(reports: Iterable[Report], field: str) -> str:
    return str(sum([quantity(value, field) for value in values(reports, field)], ZERO))


def _count(reports: Iterable[Report], field: str) -> str:
    return str(whole(sum([numeric(value) or 0 for value in values(reports, field)])))


# RayJob


def _job_healthy(obj: Obj) -> bool:
    status = section(obj, "status")
    deployment = status.get("jobDeploymentStatus")
    return deployment == "Running" or (deployment == "Complete" and status.get("jobStatus") == "SUCCEEDED")


def _job_status(obj: Obj, reports: Sequence[Report]) -> Obj:
    statuses = reported(reports)
    if not statuses:
        return obj
    worst = _worst(statuses, "jobDeploymentStatus", _DEPLOYMENT_RANKS)
    shown = {field: worst.get(field) for field in ("jobDeploymentStatus", "reason", "message")}
    return updated(obj, **shown, jobStatus=_worst(statuses, "jobStatus", _JOB_RANKS).get("jobStatus"))


def _worst(found: Iterable[Obj], field: str, ranks: Mapping[str, int]) -> Obj:
    """Return the one with the greatest rank in a field, the first of several; what is not known has the least."""
    return max(found, key=lambda status: ranks.get(text(status, field), 0))


# RayService


_service_cluster = _cluster_at("spec", "rayClusterConfig")


def _service_replicas(obj: Obj, needs: Needs) -> Replicas:
    """Head and workers, each as large as the largest of them."""
    cluster = _service_cluster(obj)
    head = at(cluster, "headGroupSpec", "template")
    if head is None:
        return Replicas(0, None)
    groups = _groups(cluster)
    count = 1 + sum([count_or(0, group.get("replicas")) for group in groups])
    wanted = needs(head)
    if wanted is None:
        return Replicas(count, None)
    templates = [group["template"] for group in groups if group.get("template") is not None]
    requests = [section(found or {}, "resourceRequest") for found in (wanted, *map(needs, templates))]
    largest = {name: _largest(requests, name) for name in ("cpu", "memory")}
    request = {**requests[0], **{name: value for name, value in largest.items() if value is not None}}
    return Replicas(count, {**wanted, "resourceRequest": request} if request else wanted)


def _largest(requests: Iterable[Obj], name: str) -> str | None:
    amounts = [quantity(request[name], name) for request in requests if name in request]
    return str(max(amounts)) if amounts else None


def _service_revised(obj: Obj, replicas: int) -> Obj:
    """Return the service with these replicas: one is the head, the others are divided as the workers are now."""
    groups = _groups(_service_cluster(obj))
    if not groups:
        return obj
    counts = _divided(max(0, replicas - 1), [count_or(0, group.get("replicas")) for group in groups])
    revised = [{**group, "replicas": count} for group, count in zip(groups, counts, strict=True)]
    cluster = {**obj["spec"]["rayClusterConfig"], "workerGroupSpecs": revised}
    return {**obj, "spec": {**obj["spec"], "rayClusterConfig": cluster}}


def _divided(workers: int, current: Sequence[int]) -> list[int]:
    """In proportion, each rounded; the last group gets what is left. Equally when there are no workers yet."""
    total = sum(current)
    if total == 0:
        share, more = divmod(workers, len(current))
        counts = [share + (index < more) for index in range(len(current))]
    else:
        counts = [math.floor(workers * count / total + 0.5) for count in current]
    return [*counts[:-1], workers - sum(counts[:-1])]


def _service_healthy(obj: Obj) -> bool:
    return has_condition(obj, "Ready")


def _service_status(obj: Obj, reports: Sequence[Report]) -> Obj:
    former = section(obj, "status")
    generations = [amount(status, "observedGeneration") for status in reported(reports)]
    return updated(
        obj,
        conditions=all_conditions(reports),
        **sums(reports, ("numServeEndpoints",)),
        lastUpdateTime=latest(reports, "lastUpdateTime", former.get("lastUpdateTime")),
        observedGeneration=max(generations, default=0),
        serviceStatus="" if "" in values(reports, "serviceStatus") else "Running",
        activeServiceStatus=_active(reports),
        pendingServiceStatus=_first(reports, "pendingServiceStatus"),
    )


def _active(reports: Sequence[Report]) -> Obj | None:
    """Return the first cluster's, with the worst state that each application has anywhere."""
    found = values(reports, "activeServiceStatus")
    if not found:
        return None
    worst: dict[str, Obj] = {}
    for active in found:
        for name, application in section(active, "applicationStatuses").items():
            known = worst.setdefault(name, application)
            worst[name] = _worst((known, application), "status", _APPLICATION_RANKS)
    return {**found[0], "applicationStatuses": worst}


_cluster_itself = _cluster_at("spec")
_job_cluster = _cluster_at("spec", "rayClusterSpec")

KINDS = (
    Kind(
        gvk=GVK("ray.io", "v1", "RayCluster"),
        components=_components(_cluster_itself),
        aggregate=_without_spec(_cluster_status),
        healthy=_cluster_healthy,
    ),
    Kind(
        gvk=GVK("ray.io", "v1", "RayJob"),
        components=_components(_job_cluster),
        aggregate=_without_spec(_job_status),
        healthy=_job_healthy,
        dependencies=_dependencies(_job_cluster, "submitterPodTemplate"),
    ),
    Kind(
        gvk=GVK("ray.io", "v1", "RayService"),
        replicas=_service_replicas,
        revise=_service_revised,
        aggregate=_without_spec(_service_status),
        healthy=_service_healthy,
        dependencies=_dependencies(_service_cluster),
    ),
)
