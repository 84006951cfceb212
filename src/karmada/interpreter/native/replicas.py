"""How many replicas a template has, which Pod they run, and the same template with another number of them."""

from __future__ import annotations

from collections.abc import Callable

from karmada.interpreter.native.fields import number, section
from karmada.interpreter.native.kinds import DEPLOYMENT, JOB, POD, REPLICA_SET, STATEFUL_SET
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

FIELDS: dict[GVK, str] = {
    DEPLOYMENT: "replicas",
    REPLICA_SET: "replicas",
    STATEFUL_SET: "replicas",
    JOB: "parallelism",
}
"""The field of the spec that holds the number."""


def _replicas(spec: Obj) -> tuple[int, Obj]:
    return number(spec, "replicas"), section(section(spec, "template"), "spec")


def _parallelism(spec: Obj) -> tuple[int, Obj]:
    """Return how many Pods a Job runs at once: never more than it needs in all."""
    count = number(spec, "parallelism")
    if spec.get("completions") is not None:
        count = min(count, number(spec, "completions"))
    return count, section(section(spec, "template"), "spec")


def _itself(spec: Obj) -> tuple[int, Obj]:
    return 1, spec


COUNTS: dict[GVK, Callable[[Obj], tuple[int, Obj]]] = {
    DEPLOYMENT: _replicas,
    REPLICA_SET: _replicas,
    STATEFUL_SET: _replicas,
    JOB: _parallelism,
    POD: _itself,
}
"""From a spec to the number of replicas and the spec of their Pod."""


def revised(obj: Obj, field: str, replicas: int) -> Obj:
    """Return the template with another number; one that leaves the number to the server is left alone."""
    spec = section(obj, "spec")
    if field not in spec:
        return obj
    if spec[field].__class__ is not int:
        raise InterpreterError(f"spec.{field}: expected a whole number, got {spec[field]!r}")
    return obj if spec[field] == replicas else {**obj, "spec": {**spec, field: replicas}}
