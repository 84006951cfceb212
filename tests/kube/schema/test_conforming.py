"""What is found conforming needs nothing: no pruning, no default, no complaint. The rest may be anything."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.schema.conforming import conforming
from karmada.kube.schema.decode import normalize
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from karmada.kube.schema.validation import validate
from tests.support.cases import cases

PRESERVE = "x-kubernetes-preserve-unknown-fields"
SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
                "mode": {"type": "string", "enum": ["One", "Two"], "default": "One"},
                "count": {"type": "integer", "minimum": 0},
                "share": {"type": "number"},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {PRESERVE: True},
                "half": {"type": "object", PRESERVE: True, "properties": {"known": {"type": "boolean"}}},
                "manifest": {"type": "object", PRESERVE: True, "x-kubernetes-embedded-resource": True},
                "nothing": {"type": "object", "nullable": True},
                "words": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "items": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "size": {"type": "integer", "default": 1}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}},
    },
}
NODE = compile_schema(SCHEMA)
GOOD: Obj = {
    "name": "abc", "mode": "Two", "count": 3, "share": 0.5, "port": "http", "labels": {"a": "b"}, "words": ["x", "y"],
    "free": {"x": [None, {"y": 1}]}, "half": {"known": True, "other": None}, "items": [{"key": "k", "size": 2}],
}  # fmt: skip


def test_the_schema_is_one_that_a_server_takes() -> None:
    assert structural_errors(SCHEMA, "schema") == []


def test_what_is_complete_and_right_conforms() -> None:
    obj = {"spec": GOOD, "status": {"at": "2026-01-02T03:04:05Z"}, "metadata": {"name": "x"}, "more": 1}
    assert conforming(NODE, obj) == {"spec", "status"}


@cases(
    {"name": None}, {"name": "abcd"}, {"name": "A"}, {"mode": "Three"}, {"count": -1}, {"count": True},
    {"count": 1.5}, {"share": "1"}, {"port": 1.5}, {"labels": {"a": 1}}, {"labels": {"a": None}}, {"labels": []},
    {"free": None}, {"half": {"known": 1}}, {"nothing": {"x": 1}}, {"nothing": None}, {"unknown": 1},
    {"words": ["x", "x"]}, {"words": [None]}, {"words": "x"}, {"items": [{"size": 1}]}, {"items": [{"key": "k"}]},
    {"items": [{"key": "k", "size": 1}, {"key": "k", "size": 2}]}, {"items": [{"key": "k", "size": 1, "x": 1}]},
    {"items": [{"key": str(number), "size": 1} for number in range(4)]}, {"items": [None]},
    {"manifest": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}},
    ids=str,
)  # fmt: skip
def test_nothing_is_vouched_for_that_is_wrong_incomplete_or_another_object(change: Obj) -> None:
    assert conforming(NODE, {"spec": GOOD | change}) == frozenset()


@cases("name", "mode")
def test_what_is_required_or_has_a_default_must_be_there(missing: str) -> None:
    assert conforming(NODE, {"spec": {key: GOOD[key] for key in GOOD if key != missing}}) == frozenset()


def test_what_cannot_be_written_as_it_is_conforms_to_nothing() -> None:
    assert conforming(NODE, {"spec": GOOD | {"share": float("nan")}}) == frozenset()
    assert conforming(NODE, {"spec": GOOD | {"free": float("inf")}}) == frozenset()
    assert conforming(NODE, {"spec": GOOD | {"free": {"x": object()}}}) == frozenset()


def test_what_was_right_a_moment_ago_is_known_again_and_what_was_changed_since_is_not() -> None:
    spec = copy.deepcopy(GOOD)
    for number in range(100):
        spec["count"] = number
        assert conforming(NODE, {"spec": spec}) == {"spec"}
    assert conforming(NODE, {"spec": copy.deepcopy(spec)}) == {"spec"}
    spec["count"] = -1
    assert conforming(NODE, {"spec": spec}) == frozenset()


def test_a_large_part_is_known_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    def looked(_checks: Any, value: Any) -> bool:
        looks.append(value)
        return True

    monkeypatch.setattr("karmada.kube.schema.conforming.satisfies", looked)
    names = {"type": "array", "items": {"type": "string", "maxLength": 40}}
    schema = {"type": "object", "properties": {"all": names}}
    node = compile_schema({"type": "object", "properties": {"status": schema}})
    status = {"all": [f"member{number:030}" for number in range(1_000)]}
    for _ in range(3):
        assert conforming(node, {"status": copy.deepcopy(status)}) == {"status"}
    assert len(looks) == 1_000
    status["all"][7] = "another"
    assert conforming(node, {"status": status}) == {"status"}
    assert len(looks) == 2_000


_scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from([0.5, 2.0, "a", "One", "abcd", "B", "k"])
_names = st.sampled_from([*SCHEMA["properties"]["spec"]["properties"], "key", "size", "known", "x"])
_values = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4))


@st.composite
def _specs(draw: st.DrawFn) -> Obj:
    """Mostly right."""
    spec = copy.deepcopy(GOOD)
    for name in draw(st.lists(_names, max_size=3)):
        spec[name] = draw(_values)
    for name in draw(st.lists(st.sampled_from([*GOOD]), max_size=2)):
        spec.pop(name, None)
    return spec


@settings(max_examples=400)
@given(_specs() | _values, st.none() | _values)
def test_to_what_conforms_nothing_happens(spec: Any, status: Any) -> None:
    obj = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec, "status": status}
    for part in conforming(NODE, obj):
        alone = {"metadata": {"name": "x"}, part: copy.deepcopy(obj[part])}
        assert prune(NODE, alone, nulls=True) == []
        apply_defaults(NODE, alone)
        assert alone[part] == obj[part]
        assert [error for error in validate(NODE, alone) if error.field.startswith(part)] == []


@settings(max_examples=400)
@given(_specs() | _values)
def test_with_and_without_it_everything_comes_out_the_same(spec: Any) -> None:
    quick = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
    slow = copy.deepcopy(quick)
    unknown = normalize(NODE, quick, custom=True)
    assert set(prune(NODE, slow)) >= set(unknown)
    settled = conforming(NODE, quick)
    prune(NODE, quick, nulls=True, settled=settled)
    apply_defaults(NODE, quick, settled)
    prune(NODE, slow, nulls=True)
    apply_defaults(NODE, slow)
    assert quick == slow
    assert validate(NODE, quick, None, conforming(NODE, quick)) == validate(NODE, slow)


def test_texts_that_were_right_a_moment_ago_are_known_again_by_their_place_alone() -> None:
    for number in range(200):
        at = f"2026-01-02T03:{number // 60:02d}:{number % 60:02d}Z"
        assert conforming(NODE, {"status": {"at": at}}) == {"status"}
        assert conforming(NODE, {"spec": GOOD | {"name": "abc"}, "status": {"at": "abc"}}) == {"spec"}
        assert conforming(NODE, {"spec": GOOD | {"name": at}, "status": {"at": at}}) == {"status"}
