"""One status of a template from the statuses that clusters report.

A rule gets the template and the reports and gives the status, or None to leave it as it is. Reports without a status
are of clusters that have not reported yet; rules that wait for all count them, others skip them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karmada.interpreter.native.aggregation_balancers import ingress_status, service_status
from karmada.interpreter.native.fields import entries, number, numbers, section, text
from karmada.interpreter.native.kinds import (
    AUTOSCALER,
    CLAIM,
    CRON_JOB,
    DISRUPTION_BUDGET,
    INGRESS,
    POD,
    SERVICE,
    VOLUME,
)
from karmada.interpreter.native.workloads import COUNTERS, Counter
from karmada.interpreter.operations import InterpreterError, Report
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

Aggregator = Callable[[Obj, Sequence[Report]], Obj | None]

_POD_PHASES = ("Failed", "Pending", "Running", "Succeeded")
_VOLUME_PHASES = ("Failed", "Pending", "Available", "Bound", "Released")
"""The one that stands first decides when clusters differ."""


def reported(reports: Iterable[Report]) -> list[Obj]:
    """Return the statuses there are."""
    return [report.status for report in reports if report.status is not None]


def total(statuses: Iterable[Obj], field: str) -> int:
    return sum([number(status, field) for status in statuses])


def times(statuses: Iterable[Obj], field: str) -> list[str]:
    """Return the times there are in a field, earliest first."""
    found = [text(status, field) for status in statuses if status.get(field)]
    try:
        return sorted(found, key=parse_time)
    except ValueError as error:
        raise InterpreterError(str(error)) from None


def _workload(counters: tuple[Counter, ...]) -> Aggregator:
    names = tuple(counter.field for counter in counters)
    written = (Counter("observedGeneration"), *counters)

    def aggregate(obj: Obj, reports: Sequence[Report]) -> Obj | None:
        """Counters are added up; the generation is observed when every cluster has observed it."""
        old, statuses, generation = section(obj, "status"), reported(reports), meta.generation(obj)
        current = sum([_is_current(status, generation) for status in statuses])
        observed = generation if current == len(reports) else number(old, "observedGeneration")
        totals = [sum(column) for column in zip(*[numbers(status, names) for status in statuses], strict=True)]
        values = [observed, *(totals or [0] * len(names))]
        if values == numbers(old, ("observedGeneration", *names)):
            return None
        new = {**old}
        for (field, always), value in zip(written, values, strict=True):
            if value or always:
                new[field] = value
            else:
                new.pop(field, None)
        return new

    return aggregate


def _is_current(status: Obj, generation: int) -> bool:
    """Return whether what a cluster counts follows the template as it is now."""
    observed, own, of_template = numbers(status, ("observedGeneration", "generation", "resourceTemplateGeneration"))
    return observed >= own and of_template >= generation


def _cron_job(_: Obj, reports: Sequence[Report]) -> Obj:
    statuses = reported(reports)
    new: Obj = {}
    active = [job for status in statuses for job in entries(status, "active")]
    if active:
        new["active"] = active
    for field in ("lastScheduleTime", "lastSuccessfulTime"):
        found = times(statuses, field)
        if found:
            new[field] = found[-1]
    return new


def _foremost(phases: Sequence[str], order: Sequence[str]) -> Obj:
    for phase in order:
        if phase in phases:
            return {"phase": phase}
    return {}


def _phases(reports: Sequence[Report]) -> list[str]:
    """Return the report of a cluster; one that has not reported yet counts as one where nothing has started."""
    return ["Pending" if report.status is None else text(report.status, "phase") for report in reports]


def _pod(_: Obj, reports: Sequence[Report]) -> Obj | None:
    """Return the phase, and of every container in any cluster whether it is ready and what it does."""
    if not reports:
        return None
    new = _foremost(_phases(reports), _POD_PHASES)
    statuses = reported(reports)
    for field in ("containerStatuses", "initContainerStatuses"):
        containers = [_container(container) for status in statuses for container in entries(status, field)]
        if containers:
            new[field] = containers
    return new


def _container(container: Obj) -> Obj:
    return {
        "name": "",
        "state": section(container, "state"),
        "lastState": {},
        "ready": container.get("ready") is True,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }


def _volume(_: Obj, reports: Sequence[Report]) -> Obj:
    return _foremost(_phases(reports), _VOLUME_PHASES)


def _claim(_: Obj, reports: Sequence[Report]) -> Obj:
    """Bound, unless some cluster says otherwise; lost once lost anywhere."""
    phases = [phase for status in reported(reports) if (phase := text(status, "phase")) != "Bound"]
    if "Lost" in phases:
        return {"phase": "Lost"}
    phase = phases[-1] if phases else "Bound"
    return {"phase": phase} if phase else {}


def _disruption_budget(_: Obj, reports: Sequence[Report]) -> Obj:
    statuses = reported(reports)
    new: Obj = {
        field: total(statuses, field)
        for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    }
    disrupted = {
        f"{report.cluster}/{pod}": moment
        for report in reports
        if report.status is not None
        for pod, moment in section(report.status, "disruptedPods").items()
    }
    if disrupted:
        new["disruptedPods"] = disrupted
    return new


def _autoscaler(_: Obj, reports: Sequence[Report]) -> Obj:
    statuses = reported(reports)
    new: Obj = {"desiredReplicas": total(statuses, "desiredReplicas")}
    current = total(statuses, "currentReplicas")
    return {**new, "currentReplicas": current} if current else new


AGGREGATORS: dict[GVK, Aggregator] = {
    **{kind: _workload(counters) for kind, counters in COUNTERS.items()},
    CRON_JOB: _cron_job,
    SERVICE: service_status,
    INGRESS: ingress_status,
    POD: _pod,
    VOLUME: _volume,
    CLAIM: _claim,
    DISRUPTION_BUDGET: _disruption_budget,
    AUTOSCALER: _autoscaler,
}
"""Aggregators that need no clock; layer.py has the conditions of Deployments and the status of Jobs."""


def with_status(obj: Obj, status: Obj | None) -> Obj:
    """Return the template with a status; the template itself when that changes nothing (a null is nothing)."""
    old = obj.get("status") or {}
    if status is None or old == status or {key: value for key, value in old.items() if value is not None} == status:
        return obj
    return {**obj, "status": status}
