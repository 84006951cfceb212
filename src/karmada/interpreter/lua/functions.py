"""The function a script has for each operation: what it is given, and what its answer must look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import orjson

from karmada.api.interpreter_context import DependentObjectReference, Operation
from karmada.api.work import Component, ReplicaRequirements
from karmada.interpreter import operations
from karmada.interpreter.dependencies import verify_dependencies
from karmada.interpreter.lua.empties import References, resolved
from karmada.interpreter.lua.script import LuaScript
from karmada.interpreter.lua.vm import LuaError
from karmada.interpreter.operations import Replicas
from karmada.interpreter.requirements import with_canonical_quantities
from karmada.kube.objects.types import Obj

T = TypeVar("T")
FUNCTIONS: dict[Operation, str] = {
    operations.INTERPRET_REPLICA: "GetReplicas",
    operations.INTERPRET_COMPONENT: "GetComponents",
    operations.REVISE_REPLICA: "ReviseReplica",
    operations.RETAIN: "Retain",
    operations.INTERPRET_STATUS: "ReflectStatus",
    operations.AGGREGATE_STATUS: "AggregateStatus",
    operations.INTERPRET_HEALTH: "InterpretHealth",
    operations.INTERPRET_DEPENDENCY: "GetDependencies",
}
_OLD_COUNT = "ReplicasCount"
"""An older function instead of GetReplicas, which returns only the number."""
_INT32 = 2**32


def get_replicas(script: LuaScript, obj: Obj) -> Replicas:
    is_old = _OLD_COUNT in script.source and "GetReplicas" not in script.source
    kinds, values = script.call(_OLD_COUNT if is_old else "GetReplicas", obj, results=2)
    if kinds[0] != "number":
        raise LuaError(f"expect the returned replica type is number but got {kinds[0]}")
    if is_old or values[1] is None:
        return Replicas(_int32(values[0]), None)
    if kinds[1] != "table":
        raise _not_a_table(kinds[1])
    return Replicas(_int32(values[0]), _shaped(_with_texts(resolved(values[1])), ReplicaRequirements))


def get_components(script: LuaScript, obj: Obj) -> list[Obj]:
    [kind], [value] = script.call("GetComponents", obj)
    if kind not in ("table", "nil"):
        raise LuaError(f"expected result type 'table' or 'nil' from GetComponents, but got '{kind}'")
    found = _list(resolved([] if value is None else value, is_list=True))
    for component in found:
        needs = component.get("replicaRequirements")
        if needs:
            component["replicaRequirements"] = _with_texts(needs)
    return [_shaped(component, Component) for component in found]


def revise_replica(script: LuaScript, obj: Obj, replicas: int) -> Obj:
    return _object(script, "ReviseReplica", (obj, replicas), References((obj,)))


def retain(script: LuaScript, desired: Obj, observed: Obj) -> Obj:
    return _object(script, "Retain", (desired, observed), References((desired, observed)))


def aggregate_status(script: LuaScript, obj: Obj, items: Sequence[Obj]) -> Obj:
    return _object(script, "AggregateStatus", (obj, list(items) or None), References())


def interpret_health(script: LuaScript, obj: Obj) -> bool:
    [kind], [value] = script.call("InterpretHealth", obj)
    if kind != "boolean":
        raise LuaError(f"expect the returned health type is bool but got {kind}")
    return bool(value)


def reflect_status(script: LuaScript, obj: Obj) -> Obj:
    [kind], [value] = script.call("ReflectStatus", obj)
    if kind != "table":
        raise LuaError(f"expect the returned replica type is table but got {kind}")
    status: Obj = resolved(value)
    return status


def get_dependencies(script: LuaScript, obj: Obj) -> list[Obj]:
    [kind], [value] = script.call("GetDependencies", obj)
    if kind != "table":
        raise _not_a_table(kind)
    found = [_shaped(item, DependentObjectReference) for item in _list(resolved(value, is_list=True))]
    verify_dependencies(found)
    return found


# answers


def _not_a_table(kind: str) -> LuaError:
    return LuaError(f"expect the returned requires type is table but got {kind}")


def _object(script: LuaScript, function: str, arguments: tuple[Any, ...], references: References) -> Obj:
    [kind], [value] = script.call(function, *arguments)
    if kind != "table":
        raise _not_a_table(kind)
    result = resolved(value, references)
    if not isinstance(result, dict) or not result.get("kind"):
        raise LuaError(f"Object 'Kind' is missing in '{orjson.dumps(result).decode()}'")
    return result


def _list(value: Any) -> list[Obj]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LuaError("expect the returned table is an array of tables")
    return value


def _int32(number: float) -> int:
    """As a conversion in C would cut it."""
    wrapped = int(number) % _INT32
    return wrapped - _INT32 if wrapped >= _INT32 // 2 else wrapped


def _with_texts(requirements: Any) -> Any:
    """Return requirements whose quantities are text: scripts may give numbers."""
    try:
        return with_canonical_quantities(requirements) if isinstance(requirements, dict) else requirements
    except ValueError as error:
        raise LuaError(str(error)) from error


def _shaped(value: Any, shape: type[T]) -> Obj:
    """Return the value if it has the shape, without what the shape does not know."""
    try:
        made: Obj = msgspec.to_builtins(msgspec.convert(value, shape))
    except msgspec.ValidationError as error:
        raise LuaError(str(error)) from error
    return made
