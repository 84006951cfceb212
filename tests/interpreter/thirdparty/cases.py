"""Tables of what the third-party layer returns: a case is a sentence, an operation, arguments and the result."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, NamedTuple

import yaml

from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.thirdparty.layer import ThirdParty
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj

NOW = "2023-11-14T22:13:20Z"
"""The time of the fake clock."""


class Case(NamedTuple):
    sentence: str
    operation: str
    """A method of the layer."""
    arguments: tuple[Any, ...]
    expected: Any

    def __str__(self) -> str:
        return self.sentence.replace(" ", "-")


def load(text: str) -> Any:
    return yaml.safe_load(text)


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the layer waits for something")


def result(operation: str, *arguments: Any) -> Any:
    """What an interpreter with only the built-in layers returns; nothing it is given may change."""
    before = copy_json(arguments)
    interpreter = Interpreter(layers=[ThirdParty(FakeClock())])
    made = finished(getattr(interpreter, operation)(*arguments))
    assert copy_json(arguments) == before, f"{operation} changed what it was given"
    return made


def check(case: Case) -> None:
    assert result(case.operation, *case.arguments) == case.expected


def items(text: str) -> list[Obj]:
    """Items of aggregatedStatus from `{cluster: status}`; a null status is one that is not reported."""
    reported: dict[str, Any] = load(text)
    return [
        {"clusterName": cluster} if status is None else {"clusterName": cluster, "status": status}
        for cluster, status in reported.items()
    ]


class Maker:
    """Makes objects of one kind, and cases of it."""

    def __init__(self, api_version: str, kind: str, *, namespace: str = "shop") -> None:
        metadata = {"name": "web", "namespace": namespace} if namespace else {"name": "web"}
        self.head: Obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def make(self, text: str = "{}") -> Obj:
        """`generation` and `annotations` in the text go into the metadata."""
        fields = load(text) or {}
        metadata = {**self.head["metadata"]}
        metadata |= {field: fields.pop(field) for field in ("generation", "annotations") if field in fields}
        return {**self.head, "metadata": metadata, **fields}

    def healthy(self, sentence: str, text: str, expected: bool) -> Case:
        return Case(f"{self._kind} {sentence}", "interpret_health", (self.make(text),), expected)

    def replicas(self, sentence: str, text: str, count: int, requirements: str = "null") -> Case:
        return Case(f"{self._kind} {sentence}", "get_replicas", (self.make(text),), (count, load(requirements)))

    def components(self, sentence: str, text: str, expected: str) -> Case:
        return Case(f"{self._kind} {sentence}", "get_components", (self.make(text),), load(expected))

    def revised(self, sentence: str, text: str, replicas: int, expected: str) -> Case:
        return Case(f"{self._kind} {sentence}", "revise_replica", (self.make(text), replicas), self.make(expected))

    def retained(self, sentence: str, desired: str, observed: str, expected: str) -> Case:
        return Case(
            f"{self._kind} {sentence}", "retain", (self.make(desired), self.make(observed)), self.make(expected)
        )  # fmt: skip

    def reflected(self, sentence: str, text: str, expected: str) -> Case:
        return Case(f"{self._kind} {sentence}", "reflect_status", (self.make(text),), load(expected))

    def aggregated(self, sentence: str, text: str, reported: str, expected: str) -> Case:
        """`expected` is the whole object, as made of this text."""
        given = (self.make(text), items(reported))
        return Case(f"{self._kind} {sentence}", "aggregate_status", given, self.make(expected))

    def depends(self, sentence: str, text: str, *expected: str) -> Case:
        """`expected` are references to core kinds: `Kind/name`."""
        namespace = self.head["metadata"].get("namespace")
        head = {"apiVersion": "v1"} if namespace is None else {"apiVersion": "v1", "namespace": namespace}
        found = [{**head, "kind": kind, "name": name} for kind, name in (text.split("/") for text in expected)]
        return Case(f"{self._kind} {sentence}", "get_dependencies", (self.make(text),), found)

    @property
    def _kind(self) -> str:
        return str(self.head["kind"])
