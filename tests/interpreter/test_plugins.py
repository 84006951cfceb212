"""Interpreters in Python: what they return, what they may not, and where they stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.lua.layer import Declarative
from karmada.interpreter.operations import (
    INTERPRET_HEALTH,
    INTERPRET_REPLICA,
    OPERATIONS,
    InterpreterError,
    Replicas,
)
from karmada.interpreter.plugins import FUNCTIONS, PluginError, Plugins
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

FARM = GVK("example.com", "v1", "Farm")


def farm(**spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "f"}, "spec": spec}


def plugin(**functions: Any) -> SimpleNamespace:
    return SimpleNamespace(api_version="example.com/v1", kind="Farm", **functions)


def changing(obj: Obj, replicas: int) -> Obj:
    obj["spec"]["workers"] = replicas
    return obj


async def later(_obj: Obj) -> bool:
    return True


COMPLETE = plugin(
    get_replicas=lambda obj: (obj["spec"]["workers"], {"resourceRequest": {"cpu": "1"}}),
    get_components=lambda _obj: [{"name": "main", "replicas": 1}],
    revise_replica=changing,
    retain=lambda desired, observed: {**desired, "spec": observed["spec"]},
    aggregate_status=lambda obj, items: {**obj, "status": {"clusters": len(items)}},
    get_dependencies=lambda _obj: [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}],
    reflect_status=lambda obj: obj.get("status"),
    interpret_health=later,
)


async def test_all_eight_operations_are_plain_functions() -> None:
    layer = Plugins([COMPLETE])
    assert all(layer.enabled(FARM, operation) for operation in OPERATIONS)
    assert set(FUNCTIONS) == set(OPERATIONS)
    obj = farm(workers=3)
    assert await layer.get_replicas(obj) == Replicas(3, {"resourceRequest": {"cpu": "1"}})
    assert await layer.get_components(obj) == [{"name": "main", "replicas": 1}]
    assert (await layer.revise_replica(obj, 7))["spec"] == {"workers": 7}
    assert obj["spec"] == {"workers": 3}, "what is passed in stays as it is"
    assert (await layer.retain(obj, farm(workers=9)))["spec"] == {"workers": 9}
    assert (await layer.aggregate_status(obj, [{}, {}]))["status"] == {"clusters": 2}
    assert await layer.get_dependencies(obj) == [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}]
    assert await layer.reflect_status(obj) is None
    assert await layer.interpret_health(obj) is True


async def test_only_what_a_plugin_has_is_its_own() -> None:
    layer = Plugins([plugin(get_replicas=lambda _obj: 2)])
    assert layer.enabled(FARM, INTERPRET_REPLICA)
    assert not layer.enabled(FARM, INTERPRET_HEALTH)
    assert not layer.enabled(GVK("example.com", "v2", "Farm"), INTERPRET_REPLICA)
    assert await layer.get_replicas(farm()) == Replicas(2, None)


async def test_a_customization_has_precedence() -> None:
    script = "function GetReplicas(obj) return 5, nil end"
    spec = {
        "target": {"apiVersion": "example.com/v1", "kind": "Farm"},
        "customizations": {"replicaResource": {"luaScript": script}},
    }
    declared = Declarative([{"metadata": {"name": "farm"}, "spec": spec}])
    interpreter = Interpreter([declared, Plugins([COMPLETE])])
    assert (await interpreter.get_replicas(farm(workers=3))).replicas == 5
    assert await interpreter.interpret_health(farm()) is True


def failing(_obj: Obj) -> int:
    raise ValueError("no workers")


@cases(
    ("get_replicas", failing, "get_replicas of Farm: no workers"),
    ("get_replicas", lambda _obj: "3", "get_replicas must return a number of replicas, not str"),
    ("interpret_health", lambda _obj: None, "interpret_health must return True or False, not NoneType"),
    ("reflect_status", lambda _obj: [], "reflect_status must return a status, not list"),
    ("get_components", lambda _obj: {}, "get_components must return a list of objects, not dict"),
    ("get_dependencies", lambda _obj: [{"kind": "ConfigMap"}], "missing required apiVersion"),
)
async def test_what_goes_wrong_fails_the_operation(function: str, given: Any, problem: str) -> None:
    layer = Plugins([plugin(**{function: given})])
    with pytest.raises(InterpreterError, match=problem):
        await getattr(layer, function)(farm())


@cases(
    ([SimpleNamespace(kind="Farm", get_replicas=failing)], "must say what it is about: api_version and kind"),
    ([plugin()], "has none of the functions"),
    ([plugin(get_replicas=failing), plugin(get_replicas=failing)], r"two interpreters have get_replicas for Farm"),
)
def test_a_plugin_that_cannot_be_used_is_refused(plugins: list[Any], problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        Plugins(plugins)
