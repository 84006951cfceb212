from __future__ import annotations

from typing import Any, cast

import pytest

from karmada.admission.context import Context, Settings
from karmada.admission.interpreter import OPERATIONS, validate
from karmada.admission.lua import lua_problem
from karmada.kube.client.client import Client, Listing
from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

PATH = "validate-resourceinterpretercustomization"


def customization(name: str, api_version: str = "apps/v1", **scripts: str) -> Obj:
    return kube_object("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", name) | {
        "spec": {
            "target": {"apiVersion": api_version, "kind": "Deployment"},
            "customizations": {rule: {"luaScript": script} for rule, script in scripts.items()},
        },
    }


class Stored:
    def __init__(self, *objects: Obj, failure: ApiError | None = None) -> None:
        self.objects = list(objects)
        self.failure = failure

    async def list_all(self, kind: Any, _namespace: str = "") -> Listing:
        assert kind.resource == "resourceinterpretercustomizations"
        if self.failure:
            raise self.failure
        return Listing(self.objects, "1")


def fine(_script: str) -> str:
    return ""


@pytest.mark.parametrize(("rule", "operation"), list(OPERATIONS.items()))
async def test_a_question_is_answered_by_one_object(rule: str, operation: str, refused: Any) -> None:
    stored = Stored(customization("first", **{rule: "x"}))
    text = await refused(PATH, customization("second", **{rule: "y"}), client=stored, lua_problem=fine)
    if rule == "dependencyInterpretation":
        assert text == ""
    else:
        existing = "existing ResourceInterpreterCustomization(first)"
        assert text == f"conflicting with InterpreterOperation({operation}) of {existing}"


@cases(
    customization("mine", retention="x"),
    customization("first", "apps/v2", retention="x"),
    customization("first", replicaRevision="x"),
    customization("first", retention=""),
    ids=["itself", "another kind", "another operation", "no script"],
)
async def test_others_do_not_conflict(other: Obj, refused: Any) -> None:
    mine = customization("mine", retention="y")
    assert await refused(PATH, mine, client=Stored(other), lua_problem=fine) == ""


async def test_scripts_must_compile(refused: Any) -> None:
    def problem(script: str) -> str:
        return "1: unexpected symbol" if script == "bad" else ""

    obj = customization("mine", statusReflection="bad", replicaResource="good")
    assert await refused(PATH, obj, lua_problem=problem) == (
        "InterpreterOperation(InterpretStatus) Lua script error: 1: unexpected symbol"
    )


async def test_a_list_that_fails_is_a_failure(refused: Any) -> None:
    stored = Stored(failure=Forbidden("no lists today"))
    assert await refused(PATH, customization("mine"), client=stored) == "no lists today"


async def test_scripts_that_nobody_can_check_are_accepted_with_a_warning() -> None:
    settings = Settings(client=cast(Client, Stored()), lua_problem=lambda _: None)
    context = Context(settings)
    assert await validate(customization("mine", retention="x"), None, context) == []
    assert context.warnings == ["Lua scripts were not checked: this server has no Lua"]


def test_lua_is_compiled_and_not_run() -> None:
    pytest.importorskip("lupa")
    assert lua_problem("function GetReplicas(obj) return 1 end") == ""
    assert lua_problem("error('this would be noticed')") == ""
    assert "near" in (lua_problem("function GetReplicas(") or "")


def test_bytecode_is_no_script() -> None:
    assert lua_problem("\x1bLuaQ") == "compiled chunks are not accepted, only source"
