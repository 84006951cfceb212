"""What holds for every third-party kind, whatever its objects are like."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import OPERATIONS, InterpreterError
from karmada.interpreter.thirdparty.layer import ThirdParty
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.interpreter.thirdparty.cases import finished
from tests.interpreter.thirdparty.samples import SAMPLES, template

KINDS = pytest.mark.parametrize("gvk", SAMPLES, ids=lambda gvk: f"{gvk.group}/{gvk.kind}")
GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    0.5,
    "",
    "x",
    "inf",
    [],
    [None],
    [3],
    {},
    {"x": 3},
    [{}],
    [{"type": 3}],
)
CALLS = {
    "InterpretReplica": lambda layer, obj: layer.get_replicas(obj),
    "InterpretComponent": lambda layer, obj: layer.get_components(obj),
    "ReviseReplica": lambda layer, obj: layer.revise_replica(obj, 3),
    "Retain": lambda layer, obj: layer.retain(obj, obj),
    "AggregateStatus": lambda layer, obj: layer.aggregate_status(obj, reports(obj, obj)),
    "InterpretDependency": lambda layer, obj: layer.get_dependencies(obj),
    "InterpretStatus": lambda layer, obj: layer.reflect_status(obj),
    "InterpretHealth": lambda layer, obj: layer.interpret_health(obj),
}


def reports(*copies: Obj) -> list[Obj]:
    return [{"clusterName": f"m{index}", "status": copy.get("status")} for index, copy in enumerate(copies, start=1)]


def copies(gvk: GVK) -> list[Obj]:
    """The sample as it is in each member."""
    return [{**template(gvk), "status": status} for status in SAMPLES[gvk]["members"].values()]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from paths(item, (*path, key))


def spoilt(obj: Obj, path: tuple[str | int, ...], value: Any) -> Obj:
    made: Any = copy_json(obj)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = copy_json(value)
    return dict(made)


@KINDS
def test_garbage_in_an_object_is_an_error_of_the_interpreter_and_no_other(gvk: GVK) -> None:
    layer = ThirdParty(FakeClock())
    operations = [operation for operation in OPERATIONS if layer.enabled(gvk, operation)]
    for original in copies(gvk):
        for path in [path for path in paths(original) if path[0] not in ("apiVersion", "kind")]:
            for value in GARBAGE:
                obj = spoilt(original, path, value)
                for operation in operations:
                    with contextlib.suppress(InterpreterError):
                        finished(CALLS[operation](layer, obj))


@KINDS
def test_aggregating_the_same_reports_later_changes_nothing(gvk: GVK) -> None:
    clock = FakeClock()
    interpreter = Interpreter(layers=[ThirdParty(clock)])
    if not interpreter.enabled(gvk, "AggregateStatus"):
        return
    obj, items = template(gvk), reports(*copies(gvk))
    once = finished(interpreter.aggregate_status(obj, items))
    clock.skip_to(clock.now() + 3600)
    assert finished(interpreter.aggregate_status(once, items)) == once


@KINDS
def test_nothing_that_is_passed_in_is_changed(gvk: GVK) -> None:
    layer = ThirdParty(FakeClock())
    for original in copies(gvk):
        obj = copy_json(original)
        for operation in OPERATIONS:
            if layer.enabled(gvk, operation):
                finished(CALLS[operation](layer, obj))
                assert obj == original, operation
