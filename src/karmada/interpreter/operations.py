"""The operations of the interpreter on a resource, and the shapes of their results.

The texts of the operations are what customizations and webhooks call them; methods have Python's names for the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.api.interpreter_context import Operation
from karmada.kube.objects.types import Obj

INTERPRET_REPLICA: Final = "InterpretReplica"
INTERPRET_COMPONENT: Final = "InterpretComponent"
REVISE_REPLICA: Final = "ReviseReplica"
RETAIN: Final = "Retain"
AGGREGATE_STATUS: Final = "AggregateStatus"
INTERPRET_DEPENDENCY: Final = "InterpretDependency"
INTERPRET_STATUS: Final = "InterpretStatus"
INTERPRET_HEALTH: Final = "InterpretHealth"

OPERATIONS: Final[tuple[Operation, ...]] = (
    INTERPRET_REPLICA, INTERPRET_COMPONENT, REVISE_REPLICA, RETAIN, AGGREGATE_STATUS, INTERPRET_DEPENDENCY,
    INTERPRET_STATUS, INTERPRET_HEALTH,
)  # fmt: skip


class InterpreterError(Exception):
    """An operation failed: no layer implements it for the kind, or the object cannot be read."""


class Replicas(NamedTuple):
    """How many replicas a resource has, and what one of them needs (in the form of ReplicaRequirements)."""

    replicas: int
    requirements: Obj | None


class Report(NamedTuple):
    """The report of a cluster on a resource: an item of a binding's aggregatedStatus, already checked."""

    cluster: str
    status: Obj | None


def report_of(item: Obj) -> Report:
    status = item.get("status")
    if status is not None and status.__class__ is not dict:
        raise InterpreterError(f"status of cluster {item.get('clusterName')}: expected an object, got {status!r}")
    return Report(item.get("clusterName") or "", status)
