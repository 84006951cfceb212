"""Interpreters in Python that other packages provide: the same eight operations, as plain functions.

A package names one by an entry point in the group `karmada.interpreters`: a module, or an object with the same
attributes. `api_version` and `kind` say what it is about; of the functions it has those that it wants:

    get_replicas(obj) -> int | (int, requirements)     revise_replica(obj, replicas) -> obj
    get_components(obj) -> [component]                 retain(desired, observed) -> obj
    get_dependencies(obj) -> [reference]               aggregate_status(obj, items) -> obj
    reflect_status(obj) -> status | None               interpret_health(obj) -> bool

They may be coroutines, and may change what they are given: it is a copy. An exception fails the operation, and its
text is what users see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from karmada.api.interpreter_context import Operation
from karmada.interpreter import operations
from karmada.interpreter.dependencies import verify_dependencies
from karmada.interpreter.operations import InterpreterError, Replicas
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.loading import entry_points

GROUP: Final = "karmada.interpreters"
FUNCTIONS: Final[dict[Operation, str]] = {
    operations.INTERPRET_REPLICA: "get_replicas",
    operations.INTERPRET_COMPONENT: "get_components",
    operations.REVISE_REPLICA: "revise_replica",
    operations.RETAIN: "retain",
    operations.AGGREGATE_STATUS: "aggregate_status",
    operations.INTERPRET_DEPENDENCY: "get_dependencies",
    operations.INTERPRET_STATUS: "reflect_status",
    operations.INTERPRET_HEALTH: "interpret_health",
}


class PluginError(ValueError):
    """An interpreter that cannot be used."""


def installed() -> list[Any]:
    """Return the interpreters that installed packages provide, by name; PluginError for one that cannot be imported."""
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:
            raise PluginError(f"the interpreter {point.name} cannot be imported: {error}") from error
    return found


class Plugins:
    """A Layer."""

    remote = False

    def __init__(self, plugins: Iterable[Any]) -> None:
        self._functions: dict[tuple[GVK, Operation], Callable[..., Any]] = {}
        for plugin in plugins:
            self._add(plugin)

    def _add(self, plugin: Any) -> None:
        name = getattr(plugin, "__name__", type(plugin).__name__)
        api_version, kind = getattr(plugin, "api_version", None), getattr(plugin, "kind", None)
        if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
            raise PluginError(f"the interpreter {name} must say what it is about: api_version and kind")
        gvk = GVK.parse(api_version, kind)
        functions = {operation: getattr(plugin, function, None) for operation, function in FUNCTIONS.items()}
        if not any(functions.values()):
            raise PluginError(f"the interpreter {name} has none of the functions {', '.join(FUNCTIONS.values())}")
        for operation, function in functions.items():
            if function is None:
                continue
            if (gvk, operation) in self._functions:
                raise PluginError(f"two interpreters have {FUNCTIONS[operation]} for {kind} ({api_version})")
            self._functions[gvk, operation] = function

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        return (gvk, operation) in self._functions

    async def get_replicas(self, obj: Obj) -> Replicas:
        found = await self._call(obj, operations.INTERPRET_REPLICA, obj)
        count, requirements = found if isinstance(found, tuple) else (found, None)
        if isinstance(count, bool) or not isinstance(count, int):
            raise self._wrong(operations.INTERPRET_REPLICA, "a number of replicas", count)
        return Replicas(count, requirements or None)

    async def get_components(self, obj: Obj) -> list[Obj]:
        return self._list(operations.INTERPRET_COMPONENT, await self._call(obj, operations.INTERPRET_COMPONENT, obj))

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        return self._object(operations.REVISE_REPLICA, await self._call(obj, operations.REVISE_REPLICA, obj, replicas))

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        return self._object(operations.RETAIN, await self._call(desired, operations.RETAIN, desired, observed))

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        return self._object(
            operations.AGGREGATE_STATUS, await self._call(obj, operations.AGGREGATE_STATUS, obj, list(items))
        )

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        found = self._list(operations.INTERPRET_DEPENDENCY, await self._call(obj, operations.INTERPRET_DEPENDENCY, obj))
        verify_dependencies(found)
        return found

    async def reflect_status(self, obj: Obj) -> Obj | None:
        found = await self._call(obj, operations.INTERPRET_STATUS, obj)
        if found is not None and not isinstance(found, dict):
            raise self._wrong(operations.INTERPRET_STATUS, "a status", found)
        return found

    async def interpret_health(self, obj: Obj) -> bool:
        found = await self._call(obj, operations.INTERPRET_HEALTH, obj)
        if not isinstance(found, bool):
            raise self._wrong(operations.INTERPRET_HEALTH, "True or False", found)
        return found

    async def _call(self, obj: Obj, operation: Operation, *arguments: Any) -> Any:
        function = self._functions[gvk_of(obj), operation]
        try:
            found = function(*(copy_json(argument) for argument in arguments))
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            raise InterpreterError(f"{FUNCTIONS[operation]} of {obj['kind']}: {error}") from error

    def _object(self, operation: Operation, found: Any) -> Obj:
        if not isinstance(found, dict) or not found.get("kind"):
            raise self._wrong(operation, "an object", found)
        return found

    def _list(self, operation: Operation, found: Any) -> list[Obj]:
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._wrong(operation, "a list of objects", found)
        return found

    @staticmethod
    def _wrong(operation: Operation, wanted: str, found: Any) -> InterpreterError:
        return InterpreterError(f"{FUNCTIONS[operation]} must return {wanted}, not {type(found).__name__}")
