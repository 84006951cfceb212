"""The third-party layer: looks up what is known of a kind, and makes its results what every layer's are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

import msgspec

from karmada.api.interpreter_context import DependentObjectReference, Operation
from karmada.api.work import Component, ReplicaRequirements
from karmada.features import default_gates
from karmada.interpreter.dependencies import united, verify_dependencies
from karmada.interpreter.native.fields import section
from karmada.interpreter.native.reflection import whole_status
from karmada.interpreter.operations import (
    AGGREGATE_STATUS,
    INTERPRET_COMPONENT,
    INTERPRET_DEPENDENCY,
    INTERPRET_HEALTH,
    INTERPRET_REPLICA,
    INTERPRET_STATUS,
    RETAIN,
    REVISE_REPLICA,
    InterpreterError,
    Replicas,
    report_of,
)
from karmada.interpreter.requirements import pod_requirements
from karmada.interpreter.thirdparty import argo, flink, flux, kruise, kubeflow, kyverno, ray, spark, volcano
from karmada.interpreter.thirdparty.kind import Kind
from karmada.interpreter.thirdparty.values import dense
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates

_MODULES: Final = (kruise, argo, volcano, flink, flux, kubeflow, kyverno, ray, spark)
KINDS: Final[tuple[Kind, ...]] = tuple(kind for module in _MODULES for kind in module.KINDS)

_OPERATIONS: Final[dict[str, Operation]] = {
    "replicas": INTERPRET_REPLICA,
    "components": INTERPRET_COMPONENT,
    "revise": REVISE_REPLICA,
    "retain": RETAIN,
    "reflect": INTERPRET_STATUS,
    "aggregate": AGGREGATE_STATUS,
    "healthy": INTERPRET_HEALTH,
    "dependencies": INTERPRET_DEPENDENCY,
}
"""The operation that each function of a Kind is for."""

_FUNCTIONS: Final[dict[tuple[GVK, Operation], Callable[..., Any]]] = {
    (kind.gvk, _OPERATIONS[field.name]): getattr(kind, field.name)
    for kind in KINDS
    for field in fields(kind)
    if field.name in _OPERATIONS and getattr(kind, field.name) is not None
}


class ThirdParty:
    """A Layer. An operation on a kind that it is not enabled for is a KeyError."""

    remote = False

    def __init__(self, clock: Clock = SYSTEM, gates: FeatureGates | None = None) -> None:
        self._clock = clock
        self._gates = gates or default_gates()

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        return (gvk, operation) in _FUNCTIONS

    async def get_replicas(self, obj: Obj) -> Replicas:
        count, needs = _call(INTERPRET_REPLICA, obj, self._needs)
        return Replicas(count, None if needs is None else _checked(needs, ReplicaRequirements, "replicaRequirements"))

    async def get_components(self, obj: Obj) -> list[Obj]:
        found = [dense(component) for component in _call(INTERPRET_COMPONENT, obj, self._needs)]
        return [_checked(component, Component, f"components[{index}]") for index, component in enumerate(found)]

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        revised: Obj = _call(REVISE_REPLICA, obj, replicas)
        return revised

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        retained: Obj = _call(RETAIN, desired, observed)
        return retained

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        reports = [report_of(item) for item in items]
        aggregated: Obj = _call(AGGREGATE_STATUS, obj, reports, rfc3339(self._clock.now()))
        return aggregated

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        found = _call(INTERPRET_DEPENDENCY, obj)
        for index, dependency in enumerate(found):
            _checked(dependency, DependentObjectReference, f"dependencies[{index}]")
        merged = united(found)
        verify_dependencies(merged)
        return merged

    async def reflect_status(self, obj: Obj) -> Obj | None:
        status = whole_status(obj)
        reflected: Obj = {} if status is None else dense(_call(INTERPRET_STATUS, obj, status))
        return reflected

    async def interpret_health(self, obj: Obj) -> bool:
        healthy: bool = _call(INTERPRET_HEALTH, obj)
        return healthy

    def _needs(self, template: Obj | None) -> Obj | None:
        if not isinstance(template, dict):
            raise InterpreterError(f"template: expected an object, got {template!r}")
        return pod_requirements(
            section(template, "spec"), priority_class=self._gates.enabled("ResourceQuotaEstimate")
        )  # fmt: skip


def _checked(value: Obj, shape: type[msgspec.Struct], path: str) -> Obj:
    """Return the value, which must have this shape: what users wrote into an object may have none."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise InterpreterError(f"{path}: {error}") from error
    return value


def _call(operation: Operation, obj: Obj, *arguments: Any) -> Any:
    """Return the result of the kind's function; what it raises for an object of another shape is its error."""
    function = _FUNCTIONS[gvk_of(obj), operation]
    try:
        return function(obj, *arguments)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InterpreterError(f"{obj.get('kind')}: {operation}: {error}") from error
