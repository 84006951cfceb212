"""The fields of a ResourceInterpreterCustomization: its kind, and its script for each operation."""

from __future__ import annotations

from karmada.api.interpreter_context import Operation
from karmada.interpreter.operations import (
    AGGREGATE_STATUS,
    INTERPRET_COMPONENT,
    INTERPRET_DEPENDENCY,
    INTERPRET_HEALTH,
    INTERPRET_REPLICA,
    INTERPRET_STATUS,
    RETAIN,
    REVISE_REPLICA,
)
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

RULES: dict[Operation, str] = {
    RETAIN: "retention",
    INTERPRET_REPLICA: "replicaResource",
    INTERPRET_COMPONENT: "componentResource",
    REVISE_REPLICA: "replicaRevision",
    INTERPRET_STATUS: "statusReflection",
    AGGREGATE_STATUS: "statusAggregation",
    INTERPRET_HEALTH: "healthInterpretation",
    INTERPRET_DEPENDENCY: "dependencyInterpretation",
}
"""The field of a customization for each operation, in the order in which people are shown them."""


def script_of(customization: Obj, operation: Operation) -> str:
    """The text of a customization for an operation, "" when it has none."""
    rules = (customization.get("spec") or {}).get("customizations") or {}
    return (rules.get(RULES[operation]) or {}).get("luaScript") or ""


def target_of(customization: Obj) -> GVK:
    target = (customization.get("spec") or {}).get("target") or {}
    return GVK.parse(target.get("apiVersion") or "", target.get("kind") or "")
