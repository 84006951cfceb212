"""The fields of a ResourceInterpreterCustomization: its kind, and its script for each operation."""

from __future__ import annotations

from karmada.api.interpreter_context import Operation
from karmada.interpreter import operations
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

RULES: dict[Operation, str] = {
    operations.RETAIN: "retention",
    operations.INTERPRET_REPLICA: "replicaResource",
    operations.INTERPRET_COMPONENT: "componentResource",
    operations.REVISE_REPLICA: "replicaRevision",
    operations.INTERPRET_STATUS: "statusReflection",
    operations.AGGREGATE_STATUS: "statusAggregation",
    operations.INTERPRET_HEALTH: "healthInterpretation",
    operations.INTERPRET_DEPENDENCY: "dependencyInterpretation",
}
"""The field of a customization for each operation, in the order in which people are shown them."""


def script_of(customization: Obj, operation: Operation) -> str:
    """Return the text of a customization for an operation, "" when it has none."""
    rules = (customization.get("spec") or {}).get("customizations") or {}
    return (rules.get(RULES[operation]) or {}).get("luaScript") or ""


def target_of(customization: Obj) -> GVK:
    target = (customization.get("spec") or {}).get("target") or {}
    return GVK.parse(target.get("apiVersion") or "", target.get("kind") or "")
