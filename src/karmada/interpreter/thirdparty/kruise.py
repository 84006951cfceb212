"""OpenKruise (apps.kruise.io): workloads like Kubernetes' own, Jobs on every node, and sidecars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karmada.interpreter.dependencies import pod_dependencies
from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.native.health import VERDICTS
from karmada.interpreter.native.kinds import DAEMON_SET, DEPLOYMENT
from karmada.interpreter.operations import InterpreterError, Replicas, Report
from karmada.interpreter.thirdparty.aggregating import (
    all_conditions,
    last,
    last_text,
    observed_generation,
    sums,
    updated,
    values,
)
from karmada.interpreter.thirdparty.common import (
    dependencies_of_template,
    fields_of_status,
    replicas_at,
    revise_at,
    template_dependencies,
)
from karmada.interpreter.thirdparty.kind import Aggregate, Kind, Needs
from karmada.interpreter.thirdparty.values import amount, at, dense, replaced
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_GROUP = "apps.kruise.io"
_V1ALPHA1 = (_GROUP, "v1alpha1")

_CLONE_SET = (
    "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "updatedReadyReplicas",
    "expectedUpdatedReplicas",
)  # fmt: skip
_DAEMON_SET = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled",
    "numberAvailable", "numberUnavailable",
)  # fmt: skip
_UNITED = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
_STATEFUL_SET = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas",
)  # fmt: skip
_SIDECAR_SET = ("matchedPods", "updatedPods", "readyPods")
_FINISHED = ("Complete", "Failed")


def _rolled_out(obj: Obj) -> bool:
    return VERDICTS[DEPLOYMENT](obj, section(obj, "status"))


def _on_every_node(obj: Obj) -> bool:
    return VERDICTS[DAEMON_SET](obj, section(obj, "status"))


def _counted(counters: Sequence[str], texts: Iterable[str] = (), *, default: Any = "", reset: bool = True) -> Aggregate:
    """Counters are added up, of texts the last one counts; with `reset` texts go back when no cluster is left."""

    def aggregate(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
        found = {field: last_text(reports, field, default) for field in texts} if reports or reset else {}
        return updated(
            obj, observedGeneration=observed_generation(obj, reports), **sums(reports, counters), **found
        )  # fmt: skip

    return aggregate


def _united_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    """Return the status of all clusters; of conditions of the same type the last cluster's counts."""
    by_type = {condition.get("type"): condition for condition in all_conditions(reports)}
    conditions = {"conditions": list(by_type.values())} if by_type else {}
    return updated(
        obj, observedGeneration=observed_generation(obj, reports), **sums(reports, _UNITED), **conditions
    )  # fmt: skip


def _united_healthy(obj: Obj) -> bool:
    return all(obj.get(field) is not None for field in ("status", "metadata", "spec")) and _rolled_out(obj)


def _cron_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    if not reports:
        return obj
    active = [job for jobs in values(reports, "active") for job in jobs]
    return updated(
        obj, active=active, type=last(reports, "type", ""), lastScheduleTime=last(reports, "lastScheduleTime")
    )  # fmt: skip


def _cron_dependencies(obj: Obj) -> list[Obj]:
    """Return the template; it makes Jobs or BroadcastJobs, and that of the latter wins."""
    templates = section(section(obj, "spec"), "template")
    for field in ("broadcastJobTemplate", "jobTemplate"):
        found = at(templates, field, "spec", "template")
        if found is not None:
            return template_dependencies(found, meta.namespace(obj))
    return []


def _broadcast_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    if not reports:
        return obj
    ended = _how_ended(reports)
    failed = [report.cluster for report, end in zip(reports, ended, strict=True) if end == "Failed"]
    conditions = []
    if failed:
        message = f"Job executed failed in member clusters: {', '.join(failed)}"
        conditions.append({"type": "Failed", "status": "True", "reason": "JobFailed", "message": message})
    if all(end == "Complete" for end in ended):
        conditions.append({"type": "Completed", "status": "True", "reason": "Completed", "message": "Job completed"})
    counters = sums(reports, ("active", "succeeded", "failed", "desired"))
    return updated(obj, **counters, phase=last(reports, "phase", ""), conditions=conditions)


def _how_ended(reports: Iterable[Report]) -> list[str]:
    """Return for each cluster whether its Job is Complete or Failed; a silent one counts as the one before it."""
    ended, end = [], ""
    for report in reports:
        conditions = entries(report.status or {}, "conditions")
        finished = [condition for condition in conditions if condition.get("status") == "True"]
        end = next((found["type"] for found in finished if found.get("type") in _FINISHED), end)
        ended.append(end)
    return ended


def _broadcast_healthy(obj: Obj) -> bool:
    status = section(obj, "status")
    if status.get("desired") == 0 or status.get("failed") != 0:
        return False
    return not (status.get("succeeded") == 0 and status.get("active") == 0)


def _retain_labels(desired: Obj, observed: Obj) -> Obj:
    """Retain the labels by which a Job knows its Pods."""
    path = ("spec", "template", "metadata", "labels")
    labels = at(observed, *path)
    return desired if labels is None else replaced(desired, path, labels)


def _sidecar_replicas(_obj: Obj, _needs: Needs) -> Replicas:
    return Replicas(0, None)


def _sidecar_reflected(_: Obj, status: Obj) -> Obj:
    return {field: amount(status, field) for field in _SIDECAR_SET}


def _sidecar_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    """Return a new object around the sums: nothing else of the template is returned."""
    if not reports:
        raise InterpreterError("SidecarSet: no cluster reports a status to aggregate")
    head: Obj = {field: obj[field] for field in ("apiVersion", "kind", "metadata") if field in obj}
    return {**head, "status": dense(sums(reports, _SIDECAR_SET))}


def _sidecar_healthy(obj: Obj) -> bool:
    status = obj.get("status")
    if status is None:
        return False
    matched = amount(status, "matchedPods")
    return matched == 0 or amount(status, "updatedPods") == matched


def _sidecar_dependencies(obj: Obj) -> list[Obj]:
    """ConfigMaps and Secrets of its containers and volumes; nothing else of a Pod is in its spec."""
    spec = section(obj, "spec")
    volumes = [
        {source: volume[source] for source in ("configMap", "secret", "projected") if source in volume}
        for volume in entries(spec, "volumes")
    ]
    return pod_dependencies({"containers": entries(spec, "containers"), "volumes": volumes}, meta.namespace(obj))


def _retain_nothing(desired: Obj, _observed: Obj) -> Obj:
    return desired


KINDS = (
    Kind(
        gvk=GVK(*_V1ALPHA1, "AdvancedCronJob"),
        aggregate=_cron_status,
        dependencies=_cron_dependencies,
    ),
    Kind(
        gvk=GVK(*_V1ALPHA1, "BroadcastJob"),
        replicas=replicas_at("parallelism", 1),
        revise=revise_at("parallelism"),
        retain=_retain_labels,
        reflect=fields_of_status(
            "conditions", "startTime", "completionTime", "active", "succeeded", "failed", "desired", "phase"
        ),
        aggregate=_broadcast_status,
        healthy=_broadcast_healthy,
        dependencies=dependencies_of_template,
    ),
    Kind(
        gvk=GVK(*_V1ALPHA1, "CloneSet"),
        replicas=replicas_at("replicas"),
        revise=revise_at("replicas"),
        reflect=fields_of_status(
            *_CLONE_SET, "updateRevision", "currentRevision", "observedGeneration", "labelSelector", generations=True
        ),
        aggregate=_counted(_CLONE_SET, ("updateRevision", "currentRevision", "labelSelector"), reset=False),
        healthy=_rolled_out,
        dependencies=dependencies_of_template,
    ),
    Kind(
        gvk=GVK(*_V1ALPHA1, "DaemonSet"),
        reflect=fields_of_status("observedGeneration", *_DAEMON_SET, "daemonSetHash", generations=True),
        aggregate=_counted(_DAEMON_SET, ("daemonSetHash",), default=0),
        healthy=_on_every_node,
        dependencies=dependencies_of_template,
    ),
    Kind(
        gvk=GVK(*_V1ALPHA1, "SidecarSet"),
        replicas=_sidecar_replicas,
        retain=_retain_nothing,
        reflect=_sidecar_reflected,
        aggregate=_sidecar_status,
        healthy=_sidecar_healthy,
        dependencies=_sidecar_dependencies,
    ),
    Kind(
        gvk=GVK(*_V1ALPHA1, "UnitedDeployment"),
        replicas=replicas_at("replicas"),
        revise=revise_at("replicas"),
        reflect=fields_of_status(*_UNITED, "observedGeneration", "conditions", generations=True),
        aggregate=_united_status,
        healthy=_united_healthy,
        dependencies=dependencies_of_template,
    ),
    Kind(
        gvk=GVK(_GROUP, "v1beta1", "StatefulSet"),
        replicas=replicas_at("replicas"),
        revise=revise_at("replicas"),
        reflect=fields_of_status(
            *_STATEFUL_SET, "updateRevision", "currentRevision", "observedGeneration", generations=True
        ),
        aggregate=_counted(_STATEFUL_SET, ("updateRevision", "currentRevision")),
        healthy=_rolled_out,
        dependencies=dependencies_of_template,
    ),
)
