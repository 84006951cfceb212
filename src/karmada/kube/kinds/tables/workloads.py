"""How workloads, autoscalers and disruption budgets look in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada.kube.kinds.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    Printer,
    ago,
    containers_of,
    count,
    dig,
    field,
    labels_text,
    moment,
    number,
    of,
    quantity_text,
    selector_column,
    with_more,
)
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.times import human_duration
from karmada.kube.objects.types import Obj

_TEMPLATE = containers_of("spec.template.spec")


def _ready_of_desired(obj: Obj) -> str:
    return f"{dig(obj, 'status', 'readyReplicas') or 0}/{dig(obj, 'spec', 'replicas') or 0}"


_READY = Column("Ready", of(_ready_of_desired), "How many of the wanted pods are ready")

DEPLOYMENT = Printer([
    NAME,
    _READY,
    Column("Up-to-date", number("status.updatedReplicas"), "Pods that run the current template"),
    Column("Available", number("status.availableReplicas"), "Pods that have been ready for long enough"),
    AGE,
    *_TEMPLATE,
    selector_column(),
])  # fmt: skip


def _replicas(selector: Column) -> Printer:
    return Printer([
        NAME,
        Column("Desired", number("spec.replicas"), "Pods that are wanted", type="integer"),
        Column("Current", number("status.replicas"), "Pods that exist", type="integer"),
        Column("Ready", number("status.readyReplicas"), "Pods that are ready", type="integer"),
        AGE,
        *_TEMPLATE,
        selector,
    ])  # fmt: skip


REPLICA_SET = _replicas(selector_column())
REPLICATION_CONTROLLER = _replicas(
    Column("Selector", of(lambda o: labels_text(dig(o, "spec", "selector"))), "The labels of its pods", wide=True)
)
STATEFUL_SET = Printer([NAME, _READY, AGE, *_TEMPLATE])
DAEMON_SET = Printer([
    NAME,
    Column("Desired", number("status.desiredNumberScheduled"), "Nodes that should run the pod", type="integer"),
    Column("Current", number("status.currentNumberScheduled"), "Nodes that should and do run the pod", type="integer"),
    Column("Ready", number("status.numberReady"), "Nodes on which the pod is ready", type="integer"),
    Column("Up-to-date", number("status.updatedNumberScheduled"), "Nodes with the current template", type="integer"),
    Column("Available", number("status.numberAvailable"), "Nodes on which the pod is available", type="integer"),
    Column(
        "Node Selector",
        of(lambda o: labels_text(dig(o, "spec", "template", "spec", "nodeSelector"))),
        "The labels of the nodes that run the pod",
    ),
    AGE,
    *_TEMPLATE,
    selector_column(),
])  # fmt: skip


# --- jobs ------------------------------------------------------------------------------------------------------------

_JOB_STATES: list[tuple[str, Callable[[Obj], bool]]] = [
    ("Complete", lambda job: _job_has(job, "Complete")),
    ("Failed", lambda job: _job_has(job, "Failed")),
    ("Terminating", meta.is_deleting),
    ("Suspended", lambda job: _job_has(job, "Suspended")),
    ("FailureTarget", lambda job: _job_has(job, "FailureTarget")),
    ("SuccessCriteriaMet", lambda job: _job_has(job, "SuccessCriteriaMet")),
]


def _job_has(job: Obj, condition: str) -> bool:
    return meta.has_condition(dig(job, "status", "conditions"), condition)


def _job_status(job: Obj) -> str:
    return next((state for state, holds in _JOB_STATES if holds(job)), "Running")


def _completions(job: Obj) -> str:
    spec: Obj = job.get("spec") or {}
    succeeded = dig(job, "status", "succeeded") or 0
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Obj, now: float) -> str:
    started = moment(dig(job, "status", "startTime"))
    completed = moment(dig(job, "status", "completionTime"))
    if started is None:
        return ""
    return human_duration((now if completed is None else completed) - started)


JOB = Printer([
    NAME,
    Column("Status", of(_job_status), "The state of the job"),
    Column("Completions", of(_completions), "How many of the wanted pods have succeeded"),
    Column("Duration", _job_duration, "How long the job has run, or ran"),
    AGE,
    *_TEMPLATE,
    selector_column(),
])  # fmt: skip

_JOB_TEMPLATE = "spec.jobTemplate.spec"


def _suspend(cron_job: Obj) -> str:
    suspend = dig(cron_job, "spec", "suspend")
    return UNSET if suspend is None else str(bool(suspend))


CRON_JOB = Printer([
    NAME,
    Column("Schedule", field("spec.schedule"), "When jobs are made, in cron's form"),
    Column("Timezone", field("spec.timeZone", NONE), "The time zone of the schedule"),
    Column("Suspend", of(_suspend), "Whether no new jobs are made"),
    Column("Active", count("status.active"), "Jobs that are running", type="integer"),
    Column("Last Schedule", ago("status.lastScheduleTime", NONE), "The time since a job was last made"),
    AGE,
    *containers_of(f"{_JOB_TEMPLATE}.template.spec"),
    selector_column(f"{_JOB_TEMPLATE}.selector"),
])  # fmt: skip


# --- autoscaling and disruption --------------------------------------------------------------------------------------

_METRIC_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metric(metric: Obj, status: Obj) -> str:
    """current/target, as the kind of metric shows them."""
    source = _METRIC_SOURCES.get(metric.get("type") or "")
    if source is None:
        return "<unknown type>"
    spec: Obj = metric.get(source) or {}
    target: Obj = spec.get("target") or {}
    current: Obj = dig(status, source, "current") or {}
    average = "averageValue" in target
    if source in ("resource", "containerResource"):
        pair = _amounts(current, target, "averageValue") if average else _utilization(current, target)
        return f"{spec.get('name', '')}: {pair}"
    if source == "pods":
        return _amounts(current, target, "averageValue")
    return f"{_amounts(current, target, 'averageValue')} (avg)" if average else _amounts(current, target, "value")


def _amounts(current: Obj, target: Obj, key: str) -> str:
    now = current.get(key)
    return f"{UNKNOWN if now is None else quantity_text(now)}/{quantity_text(target.get(key))}"


def _utilization(current: Obj, target: Obj) -> str:
    now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    return f"{UNKNOWN if now is None else f'{now}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _metrics(hpa: Obj) -> tuple[list[Obj], list[Obj]]:
    """Metrics and their states; autoscaling/v1 has fields for CPU alone, which become a metric here."""
    spec: Obj = hpa.get("spec") or {}
    status: Obj = hpa.get("status") or {}
    cpu = spec.get("targetCPUUtilizationPercentage")
    if cpu is None:
        return spec.get("metrics") or [], status.get("currentMetrics") or []
    metric: Obj = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": cpu}}}
    current: Any = status.get("currentCPUUtilizationPercentage")
    return [metric], [{"resource": {"current": {"averageUtilization": current}}}]


def _targets(hpa: Obj) -> str:
    metrics, states = _metrics(hpa)
    texts = [_metric(metric, states[at] if at < len(states) else {}) for at, metric in enumerate(metrics)]
    return with_more(texts, 2, separator=", ", empty=NONE)


def _scale_target(hpa: Obj) -> str:
    target: Obj = dig(hpa, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _min_pods(hpa: Obj) -> str:
    return str(field("spec.minReplicas", UNSET)(hpa, 0))


HORIZONTAL_POD_AUTOSCALER = Printer([
    NAME,
    Column("Reference", of(_scale_target), "What is scaled"),
    Column("Targets", of(_targets), "The metrics: current value and target"),
    Column("MinPods", of(_min_pods), "The fewest pods"),
    Column("MaxPods", number("spec.maxReplicas"), "The most pods"),
    Column("Replicas", number("status.currentReplicas"), "The pods there are"),
    AGE,
])  # fmt: skip


def _bound(name: str) -> Callable[[Obj], str]:
    return lambda budget: str(field(f"spec.{name}", "N/A")(budget, 0))


POD_DISRUPTION_BUDGET = Printer([
    NAME,
    Column("Min Available", of(_bound("minAvailable")), "The pods that must stay available"),
    Column("Max Unavailable", of(_bound("maxUnavailable")), "The pods that may be unavailable"),
    Column(
        "Allowed Disruptions", number("status.disruptionsAllowed"), "Pods that may be evicted now", type="integer"
    ),
    AGE,
])  # fmt: skip


# --- the rest --------------------------------------------------------------------------------------------------------


def _controller(revision: Obj) -> str:
    owner = meta.controller_of(revision)
    if owner is None:
        return NONE
    group = GroupVersion.parse(owner.get("apiVersion", "")).group
    kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
    return f"{kind.lower()}/{owner.get('name', '')}"


CONTROLLER_REVISION = Printer([
    NAME,
    Column("Controller", of(_controller), "The object whose template this is a revision of"),
    Column("Revision", number("revision"), "The number of the revision"),
    AGE,
])  # fmt: skip

POD_TEMPLATE = Printer([
    NAME,
    *(
        Column(column.name, column.cell, column.description)
        for column in containers_of("template.spec")
    ),
    Column("Pod Labels", of(lambda o: labels_text(dig(o, "template", "metadata", "labels"))), "The labels of its pods"),
])  # fmt: skip

SCALE = Printer([
    NAME,
    Column("Desired", number("spec.replicas"), "Pods that are wanted", type="integer"),
    Column("Available", number("status.replicas"), "Pods that exist", type="integer"),
    AGE,
])  # fmt: skip

PRINTERS = {
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("", "ReplicationController"): REPLICATION_CONTROLLER,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("apps", "DaemonSet"): DAEMON_SET,
    ("apps", "ControllerRevision"): CONTROLLER_REVISION,
    ("batch", "Job"): JOB,
    ("batch", "CronJob"): CRON_JOB,
    ("autoscaling", "HorizontalPodAutoscaler"): HORIZONTAL_POD_AUTOSCALER,
    ("autoscaling", "Scale"): SCALE,
    ("policy", "PodDisruptionBudget"): POD_DISRUPTION_BUDGET,
    ("", "PodTemplate"): POD_TEMPLATE,
}
