"""The Spark operator (sparkoperator.k8s.io): applications of a driver and its executors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from karmada.interpreter.native.fields import section
from karmada.interpreter.operations import InterpreterError, Report
from karmada.interpreter.requirements import node_claim
from karmada.interpreter.thirdparty.aggregating import latest, only_status, sums, updated, values
from karmada.interpreter.thirdparty.common import fields_of_status
from karmada.interpreter.thirdparty.kind import Kind, Needs
from karmada.interpreter.thirdparty.values import Number, at, count_or, numeric, quantity
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.quantity import canonical
from karmada.kube.objects.types import Obj

_RANKS = {
    "": 0, "UNKNOWN": 0, "SUBMITTED": 1, "PENDING_RERUN": 1, "COMPLETED": 2, "SUSPENDING": 3, "SUSPENDED": 3,
    "RUNNING": 4, "RESUMING": 4, "SUCCEEDING": 4, "INVALIDATING": 5, "FAILING": 6, "FAILED": 6, "SUBMISSION_FAILED": 6,
}  # fmt: skip
"""When clusters differ, the state of the greatest rank is shown."""
_UNITS = "bkmgtp"
"""Java's units of memory: each is 1024 of the one before it."""
_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:([kmgtp])b?|b)?", re.IGNORECASE)
_JVM_OVERHEAD, _OTHER_OVERHEAD = 0.10, 0.40
_LEAST_OVERHEAD = "384m"


def _healthy(obj: Obj) -> bool:
    return at(obj, "status", "applicationState", "state") not in (None, "FAILED")


def _components(obj: Obj, _: Needs) -> list[Obj]:
    spec = section(obj, "spec")
    factor = _overhead_factor(spec)
    return [
        {"name": "driver", "replicas": 1, "replicaRequirements": _needs(spec, "driver", factor)},
        {"name": "executor", "replicas": _executors(spec), "replicaRequirements": _needs(spec, "executor", factor)},
    ]


def _overhead_factor(spec: Obj) -> Number:
    """Return the share of its memory that an application needs besides; more where it is not all inside a JVM."""
    language = spec.get("type")
    if not isinstance(language, str):
        raise InterpreterError("spec.type: required, one of Java, Scala, Python, R")
    given = numeric(spec.get("memoryOverheadFactor"))
    if given is not None:
        return given
    return _JVM_OVERHEAD if language.lower() in ("java", "scala") else _OTHER_OVERHEAD


def _executors(spec: Obj) -> int:
    count = count_or(1, at(spec, "executor", "instances"))
    allocation = section(spec, "dynamicAllocation")
    if not allocation.get("enabled"):
        return count
    return max(count, *(count_or(1, allocation.get(field)) for field in ("initialExecutors", "minExecutors")))


def _needs(spec: Obj, role: str, factor: Number) -> Obj:
    pod = section(spec, role)
    path = f"spec.{role}"
    request = {
        "cpu": str(quantity(1 if pod.get("cores") is None else pod["cores"], f"{path}.cores")),
        "memory": _memory(pod, factor, path),
    }
    gpu = section(pod, "gpu")
    count = numeric(gpu.get("quantity"))
    if gpu.get("name") and count is not None and count > 0:
        request[gpu["name"]] = str(quantity(count, f"{path}.gpu.quantity"))
    needs: Obj = {"resourceRequest": request, "nodeClaim": node_claim(pod)}
    if pod.get("priorityClassName"):
        needs["priorityClassName"] = pod["priorityClassName"]
    return needs


def _memory(pod: Obj, factor: Number, path: str) -> str:
    """Return its memory and the overhead, in the smaller of their units."""
    memory, unit = _parsed(pod.get("memory") or "1g", f"{path}.memory")
    if pod.get("memoryOverhead"):
        overhead, overhead_unit = _parsed(pod["memoryOverhead"], f"{path}.memoryOverhead")
    else:
        least, least_unit = _parsed(_LEAST_OVERHEAD, path)
        overhead, overhead_unit = max((memory * factor, unit), (least, least_unit))
    smaller = min(unit, overhead_unit)
    return canonical(f"{(memory + overhead) / 1024**smaller:f}{_SUFFIXES[smaller]}")


def _parsed(value: Any, path: str) -> tuple[float, int]:
    """Bytes, and the power of 1024 of the unit they are written in."""
    match = _MEMORY.fullmatch(str(value).strip())
    if match is None:
        raise InterpreterError(f"{path}: expected an amount of memory such as 512m or 2g, got {value!r}")
    unit = _UNITS.index((match[2] or "b").lower())
    return float(match[1]) * 1024**unit, unit


def _status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    if not reports:
        return obj
    single = only_status(obj, reports)
    if single is not None:
        return single
    return updated(
        obj,
        applicationState=max(values(reports, "applicationState"), key=_rank, default=None),
        **sums(reports, ("executionAttempts", "submissionAttempts")),
        lastSubmissionAttemptTime=latest(reports, "lastSubmissionAttemptTime", ""),
        terminationTime=latest(reports, "terminationTime", ""),
        executorState={name: state for states in values(reports, "executorState") for name, state in states.items()},
    )


def _rank(application: Obj) -> int:
    state = application.get("state")
    if state not in _RANKS:
        raise InterpreterError(f"applicationState.state: unknown state {state!r}")
    return _RANKS[state]


KINDS = (
    Kind(
        gvk=GVK("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
        components=_components,
        reflect=fields_of_status(
            "applicationState",
            "driverInfo",
            "executorState",
            "sparkApplicationId",
            "lastSubmissionAttemptTime",
            "submissionAttempts",
            "executionAttempts",
            "submissionID",
            "terminationTime",
        ),
        aggregate=_status,
        healthy=_healthy,
    ),
)
