"""Who answers: layers in their order, then the native one, and nobody for the rest."""

# ruff: noqa: ARG002 (a fake needs the names of what it stands for)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.native import kinds
from karmada.interpreter.native.layer import Native
from karmada.interpreter.operations import OPERATIONS, InterpreterError, Replicas
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

# Columns: Replica, Revise, Retain, Aggregate, Health, Dependency.
MATRIX = {
    kinds.DEPLOYMENT: "xxxxxx",
    kinds.REPLICA_SET: "xx-xxx",
    kinds.STATEFUL_SET: "xx-xxx",
    kinds.DAEMON_SET: "---xxx",
    kinds.JOB: "xxxx-x",
    kinds.CRON_JOB: "---x-x",
    kinds.POD: "x-xxxx",
    kinds.SERVICE: "--xxx-",
    kinds.INGRESS: "---xxx",
    kinds.CLAIM: "--xxx-",
    kinds.VOLUME: "--xx--",
    kinds.DISRUPTION_BUDGET: "---xx-",
    kinds.AUTOSCALER: "---x--",
    kinds.SERVICE_ACCOUNT: "--x---",
    kinds.SECRET: "--x---",
    kinds.SERVICE_IMPORT: "-----x",
    GVK("", "v1", "ConfigMap"): "------",
    GVK("networking.k8s.io", "v1", "IngressClass"): "------",
    GVK("autoscaling", "v1", "HorizontalPodAutoscaler"): "------",
    GVK("batch", "v1beta1", "CronJob"): "------",
    GVK("apps", "v1beta1", "Deployment"): "------",
    GVK("example.io", "v1", "Deployment"): "------",
}
COLUMNS = (
    "InterpretReplica", "ReviseReplica", "Retain", "AggregateStatus", "InterpretHealth", "InterpretDependency",
)  # fmt: skip


class Fake:
    """A layer that answers everything with its own name."""

    def __init__(self, name: str, *operations: str, fails: bool = False, remote: bool = False) -> None:
        self.name = name
        self.remote = remote
        self._operations = operations
        self._fails = fails

    def enabled(self, gvk: GVK, operation: str) -> bool:
        return gvk == kinds.DEPLOYMENT and ("*" in self._operations or operation in self._operations)

    def _answer(self) -> Obj:
        if self._fails:
            raise InterpreterError(f"{self.name} fails")
        return {"by": self.name}

    async def get_replicas(self, obj: Obj) -> Replicas:
        return Replicas(0, self._answer())

    async def get_components(self, obj: Obj) -> list[Obj]:
        return [self._answer()]

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        return self._answer()

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        return self._answer()

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        return self._answer()

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        return [self._answer()]

    async def reflect_status(self, obj: Obj) -> Obj | None:
        return self._answer()

    async def interpret_health(self, obj: Obj) -> bool:
        return bool(self._answer())


def thing(gvk: GVK = kinds.DEPLOYMENT, **fields: Any) -> Obj:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "web"}, **fields}


async def everything(interpreter: Interpreter, obj: Obj) -> dict[str, Any]:
    return {
        "InterpretReplica": (await interpreter.get_replicas(obj)).requirements,
        "ReviseReplica": await interpreter.revise_replica(obj, 3),
        "Retain": await interpreter.retain(obj, obj),
        "AggregateStatus": await interpreter.aggregate_status(obj, []),
        "InterpretDependency": await interpreter.get_dependencies(obj),
        "InterpretStatus": await interpreter.reflect_status(obj),
        "InterpretHealth": await interpreter.interpret_health(obj),
    }


@pytest.mark.parametrize("gvk", MATRIX, ids=str)
def test_the_native_layer_knows_exactly_these_kinds(gvk: GVK) -> None:
    native = Native()
    refusal = "".join("x" if native.enabled(gvk, operation) else "-" for operation in COLUMNS)  # type: ignore[arg-type]
    assert refusal == MATRIX[gvk]
    assert native.enabled(gvk, "InterpretStatus")
    assert not native.enabled(gvk, "InterpretComponent")


async def test_the_first_enabled_layer_answers_and_the_native_one_is_the_last() -> None:
    interpreter = Interpreter([Fake("lua", "InterpretHealth"), Fake("webhook", "*")])
    assert await interpreter.reflect_status(thing(status={})) == {"by": "webhook"}
    lua = Interpreter([Fake("lua", "InterpretStatus"), Fake("webhook", "*")])
    assert await lua.reflect_status(thing(status={})) == {"by": "lua"}
    assert await lua.retain(thing(), thing()) == {"by": "webhook"}
    without = Interpreter([Fake("lua", "InterpretStatus")])
    assert await without.retain(thing(), thing()) == thing()


async def test_every_operation_reaches_a_layer() -> None:
    answers = await everything(Interpreter([Fake("one", "*")]), thing())
    one = {"by": "one"}
    assert answers == {
        "InterpretReplica": one, "ReviseReplica": one, "Retain": one, "AggregateStatus": one,
        "InterpretDependency": [one], "InterpretStatus": one, "InterpretHealth": True,
    }  # fmt: skip
    assert await Interpreter([Fake("one", "*")]).get_components(thing()) == [one]


async def test_every_operation_reaches_the_native_layer() -> None:
    template = thing(spec={"replicas": 1, "template": {"spec": {"nodeSelector": {"a": "b"}}}})
    answers = await everything(Interpreter([Fake("one")]), template)
    assert answers == {
        "InterpretReplica": {"nodeClaim": {"nodeSelector": {"a": "b"}}},
        "ReviseReplica": {**template, "spec": {**template["spec"], "replicas": 3}},
        "Retain": template, "AggregateStatus": template, "InterpretDependency": [], "InterpretStatus": None,
        "InterpretHealth": False,
    }  # fmt: skip


async def test_a_layer_that_fails_ends_the_call() -> None:
    interpreter = Interpreter([Fake("lua", "InterpretHealth", fails=True), Fake("webhook", "*")])
    with pytest.raises(InterpreterError, match="lua fails"):
        await interpreter.interpret_health(thing())


async def test_layers_are_called_for_their_kinds_only() -> None:
    pod = thing(kinds.POD, status={"phase": "Running"})
    assert await Interpreter([Fake("one", "*")]).reflect_status(pod) == {"phase": "Running"}


def test_anybody_who_answers_enables_an_operation() -> None:
    interpreter = Interpreter([Fake("lua", "InterpretComponent")])
    assert interpreter.enabled(kinds.DEPLOYMENT, "InterpretComponent")
    assert interpreter.enabled(kinds.DEPLOYMENT, "InterpretHealth")
    assert not interpreter.enabled(kinds.POD, "InterpretComponent")
    assert not interpreter.enabled(kinds.CRON_JOB, "InterpretHealth")
    assert all(Interpreter([Fake("lua", "*")]).enabled(kinds.DEPLOYMENT, operation) for operation in OPERATIONS)


async def test_of_an_unknown_kind_only_the_status_is_interpreted() -> None:
    interpreter, obj = Interpreter(), thing(GVK("", "v1", "ConfigMap"))
    calls = {
        "InterpretReplica": interpreter.get_replicas(obj),
        "ReviseReplica": interpreter.revise_replica(obj, 1),
        "Retain": interpreter.retain(obj, obj),
        "AggregateStatus": interpreter.aggregate_status(obj, []),
        "InterpretHealth": interpreter.interpret_health(obj),
    }
    for operation, call in calls.items():
        with pytest.raises(InterpreterError) as caught:
            await call
        assert str(caught.value) == f'default {operation} interpreter for "/v1, Kind=ConfigMap" not found'
    with pytest.raises(InterpreterError, match=r"^default interpreter for operation InterpretDependency not found$"):
        await interpreter.get_dependencies(obj)
    assert await interpreter.reflect_status(obj) is None
    assert await interpreter.reflect_status({**obj, "status": {"a": [1]}}) == {"a": [1]}


async def test_components_are_never_native() -> None:
    with pytest.raises(InterpreterError, match=r"^interface GetComponents not implemented yet$"):
        await Interpreter().get_components(thing())
    with pytest.raises(InterpreterError, match=r"^nil object$"):
        await Interpreter().get_components(None)


def test_a_kind_is_read_from_its_object() -> None:
    assert gvk_of(thing(kinds.INGRESS)) == kinds.INGRESS
    assert gvk_of(thing(kinds.POD)) == kinds.POD
    assert gvk_of({}) == GVK("", "", "")


@cases(
    ([], False),
    ([Fake("lua", "*")], False),
    ([Fake("webhook", "*", remote=True)], True),
    ([Fake("lua", "InterpretStatus"), Fake("webhook", "InterpretHealth", remote=True)], True),
    ([Fake("lua", "InterpretHealth"), Fake("webhook", "InterpretHealth", remote=True)], False),
    ([Fake("webhook", "InterpretReplica", remote=True)], False),
)
def test_an_operation_is_remote_if_the_layer_that_answers_it_is(layers: list[Fake], remote: bool) -> None:
    assert Interpreter(layers).remote(thing(), ("InterpretStatus", "InterpretHealth")) is remote
    assert Interpreter(layers).remote(thing(kinds.POD), ("InterpretStatus", "InterpretHealth")) is False
