"""The layer of scripts: ResourceInterpreterCustomizations by the kind they speak of.

Several may speak of one kind: ordered by their names, the first that has a script for an operation answers. Only for
dependencies all of them are run, and their results are merged. `load` replaces everything at once.

A script that has been quick runs right here; one that was never run, or was slow, runs in a thread, so that even an
endless loop keeps nobody waiting but its caller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from karmada.api.interpreter_context import Operation
from karmada.interpreter import operations
from karmada.interpreter.dependencies import united
from karmada.interpreter.lua import functions
from karmada.interpreter.lua.library import Library
from karmada.interpreter.lua.pool import Pool
from karmada.interpreter.lua.rules import RULES, script_of, target_of
from karmada.interpreter.lua.script import LuaScript
from karmada.interpreter.operations import Replicas
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj

T = TypeVar("T")
_QUICK = 0.01


class Declarative:
    """A Layer. Each operation on a kind it is not enabled for is a KeyError."""

    remote = False

    def __init__(
        self, customizations: Iterable[Obj] = (), *, library: Library | None = None, pool: Pool | None = None
    ) -> None:
        self._library = library
        self._pool = pool
        self._scripts: dict[tuple[GVK, Operation], list[LuaScript]] = {}
        self._quick: set[str] = set()
        self.load(customizations)

    def load(self, customizations: Iterable[Obj]) -> None:
        """Use these customizations, and no others."""
        scripts: dict[tuple[GVK, Operation], list[LuaScript]] = {}
        for customization in sorted(customizations, key=lambda obj: str(obj["metadata"].get("name") or "")):
            gvk = target_of(customization)
            for operation in RULES:
                text = script_of(customization, operation)
                if text:
                    script = LuaScript(text, library=self._library, pool=self._pool)
                    scripts.setdefault((gvk, operation), []).append(script)
        self._quick &= {script.source for found in scripts.values() for script in found}
        self._scripts = scripts

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        return (gvk, operation) in self._scripts

    async def get_replicas(self, obj: Obj) -> Replicas:
        return await self._call(obj, operations.INTERPRET_REPLICA, functions.get_replicas, obj)

    async def get_components(self, obj: Obj) -> list[Obj]:
        return await self._call(obj, operations.INTERPRET_COMPONENT, functions.get_components, obj)

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        return await self._call(obj, operations.REVISE_REPLICA, functions.revise_replica, obj, replicas)

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        return await self._call(desired, operations.RETAIN, functions.retain, desired, observed)

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        return await self._call(obj, operations.AGGREGATE_STATUS, functions.aggregate_status, obj, items)

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        found: list[Obj] = []
        for script in self._scripts[gvk_of(obj), operations.INTERPRET_DEPENDENCY]:
            found += await self._run(script, functions.get_dependencies, obj)
        return united(found)

    async def reflect_status(self, obj: Obj) -> Obj | None:
        return await self._call(obj, operations.INTERPRET_STATUS, functions.reflect_status, obj)

    async def interpret_health(self, obj: Obj) -> bool:
        return await self._call(obj, operations.INTERPRET_HEALTH, functions.interpret_health, obj)

    async def _call(self, obj: Obj, operation: Operation, function: Callable[..., T], *arguments: Any) -> T:
        return await self._run(self._scripts[gvk_of(obj), operation][0], function, *arguments)

    async def _run(self, script: LuaScript, function: Callable[..., T], *arguments: Any) -> T:
        call = partial(self._timed, script, function, *arguments)
        return call() if script.source in self._quick else await asyncio.to_thread(call)

    def _timed(self, script: LuaScript, function: Callable[..., T], *arguments: Any) -> T:
        """Yield, and measure the processor's time whatever the outcome: a thread that waited its turn is not slow."""
        began = time.thread_time()
        try:
            return function(script, *arguments)
        finally:
            if time.thread_time() - began < _QUICK:
                self._quick.add(script.source)
            else:
                self._quick.discard(script.source)
