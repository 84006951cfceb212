"""What of an object's status in a cluster is reported to the control plane.

For most kinds that is the whole status. For those that run Pods it is their counters and two generations more: the
object's own, to be compared with the one its controller has observed, and that of the template it was made from, which
stands in an annotation. Together they show whether what is counted already follows the template as it is now.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from karmada.api.well_known import TEMPLATE_GENERATION
from karmada.interpreter.native.fields import entries, number, numbers, section
from karmada.interpreter.native.kinds import AUTOSCALER, DISRUPTION_BUDGET, JOB, SERVICE
from karmada.interpreter.native.workloads import COUNTERS, Counter
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

Reflector = Callable[[Obj, Obj], Obj | None]

_INTEGER = re.compile("[+-]?[0-9]+", re.ASCII)


def whole_status(obj: Obj) -> Obj | None:
    status = obj.get("status")
    if status is None or status.__class__ is dict:
        return status
    raise InterpreterError(f"status: expected an object, got {status!r}")


def template_generation(obj: Obj) -> int:
    """Return the generation of the template that an object in a cluster was made from."""
    written = meta.annotations(obj).get(TEMPLATE_GENERATION) or ""
    if _INTEGER.fullmatch(written) is None:
        raise InterpreterError(f'strconv.ParseInt: parsing "{written}": invalid syntax')
    generation = int(written)
    if not -(2**63) <= generation < 2**63:
        raise InterpreterError(f'strconv.ParseInt: parsing "{written}": value out of range')
    return generation


def _workload(counters: tuple[Counter, ...]) -> Reflector:
    fields = (Counter("observedGeneration"), *counters)
    names = tuple(counter.field for counter in fields)

    def reflect(obj: Obj, status: Obj) -> Obj | None:
        reported: Obj = {}
        generation = meta.generation(obj)
        if generation:
            reported["generation"] = generation
        template = template_generation(obj)
        if template:
            reported["resourceTemplateGeneration"] = template
        for (field, always), value in zip(fields, numbers(status, names), strict=True):
            if value or always:
                reported[field] = value
        return reported or None

    return reflect


def _job(_: Obj, status: Obj) -> Obj:
    reported: Obj = {}
    for field in ("active", "succeeded", "failed"):
        if number(status, field):
            reported[field] = status[field]
    if entries(status, "conditions"):
        reported["conditions"] = status["conditions"]
    for field in ("startTime", "completionTime"):
        if status.get(field) is not None:
            reported[field] = status[field]
    return reported


def _service(obj: Obj, status: Obj) -> Obj | None:
    """Only a load balancer's address differs from what the template says."""
    if section(obj, "spec").get("type") != "LoadBalancer":
        return None
    return {"loadBalancer": section(status, "loadBalancer")}


def _disruption_budget(_: Obj, status: Obj) -> Obj:
    reported: Obj = {
        field: number(status, field)
        for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    }
    if section(status, "disruptedPods"):
        reported["disruptedPods"] = status["disruptedPods"]
    return reported


def _autoscaler(_: Obj, status: Obj) -> Obj:
    reported: Obj = {"desiredReplicas": number(status, "desiredReplicas"), "currentMetrics": None}
    if number(status, "currentReplicas"):
        reported["currentReplicas"] = status["currentReplicas"]
    return reported


REFLECTORS: dict[GVK, Reflector] = {
    **{kind: _workload(counters) for kind, counters in COUNTERS.items()},
    JOB: _job,
    SERVICE: _service,
    DISRUPTION_BUDGET: _disruption_budget,
    AUTOSCALER: _autoscaler,
}
"""From an object and its status, which it has, to what is reported; kinds that are not here report all of it."""
