"""ResourceInterpreterCustomization: one script for each operation of a kind, in Lua that compiles.

Only dependencies may be declared by several objects: they are added up.
"""

from __future__ import annotations

from karmada.admission.context import Context, Refusal
from karmada.api.config import ResourceInterpreterCustomization
from karmada.kube.objects.errors import ApiError, FieldError
from karmada.kube.objects.types import Obj

OPERATIONS = {
    "retention": "Retain",
    "replicaResource": "InterpretReplica",
    "componentResource": "InterpretComponent",
    "replicaRevision": "ReviseReplica",
    "statusReflection": "InterpretStatus",
    "statusAggregation": "AggregateStatus",
    "healthInterpretation": "InterpretHealth",
    "dependencyInterpretation": "InterpretDependency",
}
"""The operations of a customization, in the order in which they are checked."""
SHARED = "dependencyInterpretation"
_UNCHECKED = "Lua scripts were not checked: this server has no Lua"


async def validate(customization: Obj, _old: Obj | None, context: Context) -> list[FieldError]:
    try:
        others = await context.list(ResourceInterpreterCustomization.gvr)
    except ApiError as error:
        raise Refusal.failure(error.message) from error
    for other in others:
        _check_conflict(customization, other)
    for name, operation in OPERATIONS.items():
        script = _script(customization, name)
        if script:
            _check_script(script, operation, context)
    return []


def _check_conflict(customization: Obj, other: Obj) -> None:
    name = other["metadata"]["name"]
    if name == customization["metadata"].get("name") or _target(other) != _target(customization):
        return
    for rule, operation in OPERATIONS.items():
        if rule != SHARED and _script(customization, rule) and _script(other, rule):
            existing = f"existing ResourceInterpreterCustomization({name})"
            raise Refusal(f"conflicting with InterpreterOperation({operation}) of {existing}")


def _check_script(script: str, operation: str, context: Context) -> None:
    wrong = context.settings.lua_problem(script)
    if wrong is None:
        context.warn(_UNCHECKED)
    elif wrong:
        raise Refusal(f"InterpreterOperation({operation}) Lua script error: {wrong}")


def _target(customization: Obj) -> tuple[str, str]:
    target = customization["spec"].get("target") or {}
    return target.get("apiVersion") or "", target.get("kind") or ""


def _script(customization: Obj, rule: str) -> str:
    rules = customization["spec"].get("customizations") or {}
    script: str = (rules.get(rule) or {}).get("luaScript") or ""
    return script
