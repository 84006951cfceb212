"""Scripts alone, compiled and called as controllers call them: CPU time of a call, for ever larger objects.

Seconds are those in which the process had a core, not those on the wall, so that a busy machine measures the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from benchmarks.customizing import customization
from benchmarks.objects import web
from benchmarks.processes import Meter
from benchmarks.scenario import STEPS, Figure, Measurement, Place, Sizes
from karmada.interpreter.lua.layer import Declarative
from karmada.kube.objects.types import Obj

_CALLS: Final = 1_000
_WARM: Final = 50
_SMALL: Final = "small function and object"
_ITEMS: Final = [{"clusterName": f"member{number}", "status": {"readyReplicas": 1}} for number in range(2)]


class Scripts:
    name = "interpreter"
    title = "A call of a script in Lua, with objects of more and more containers"
    counted = "containers"
    sizes = Sizes(quick=1, base=1)
    foreign = False
    figures = (
        Figure(name=_SMALL, unit="µs", goals=dict.fromkeys(STEPS, 60)),
        *(Figure(name=name, unit="µs") for name in (
            "GetReplicas", "GetComponents", "ReviseReplica", "Retain", "ReflectStatus", "AggregateStatus",
            "InterpretHealth", "GetDependencies",
        )),
    )  # fmt: skip

    async def run(self, size: int, place: Place) -> Measurement:  # noqa: ARG002 - nothing is stored
        meter = Meter({"interpreter": os.getpid()})
        layer, obj = Declarative([customization()]), _web(size)
        small = {**obj, "spec": {"replicas": 2}, "status": {"readyReplicas": 2}}
        figures = {
            _SMALL: await _microseconds(layer.interpret_health, small),
            "GetReplicas": await _microseconds(layer.get_replicas, obj),
            "GetComponents": await _microseconds(layer.get_components, obj),
            "ReviseReplica": await _microseconds(layer.revise_replica, obj, 3),
            "Retain": await _microseconds(layer.retain, obj, obj),
            "ReflectStatus": await _microseconds(layer.reflect_status, obj),
            "AggregateStatus": await _microseconds(layer.aggregate_status, obj, _ITEMS),
            "InterpretHealth": await _microseconds(layer.interpret_health, obj),
            "GetDependencies": await _microseconds(layer.get_dependencies, obj),
        }
        costs = {f"{name}, µs": value for name, value in figures.items() if name != _SMALL}
        return Measurement(figures=figures, processes=meter.use(), costs=costs)


def _web(containers: int) -> Obj:
    obj = web("web", "default")
    pod = obj["spec"]["template"]["spec"]
    pod["containers"] = [{**pod["containers"][0], "name": f"web-{number}"} for number in range(containers)]
    return obj


async def _microseconds(call: Callable[..., Awaitable[Any]], *arguments: Any) -> float:
    for _ in range(_WARM):
        await call(*arguments)
    began = time.process_time()
    for _ in range(_CALLS):
        await call(*arguments)
    return (time.process_time() - began) / _CALLS * 1e6
