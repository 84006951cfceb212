"""Pruning, dropping nulls and filling in defaults."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.structural import compile_schema
from tests.support.cases import cases

SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "default": {},
            "properties": {
                "a": {"type": "string", "default": "A"},
                "n": {"type": "string", "nullable": True},
                "nd": {"type": "string", "nullable": True, "default": "N"},
                "plain": {"type": "integer"},
                "deep": {
                    "type": "object",
                    "properties": {"x": {"type": "integer", "default": 0}, "y": {"type": "boolean", "default": False}},
                },
                "list": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}},
                },
                "map": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"q": {"type": "integer", "default": 1}}},
                },
                "words": {"type": "object", "additionalProperties": {"type": "string", "default": "w"}},
                "raw": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "object", "properties": {"k": {"type": "string"}}}},
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object", "properties": {"z": {"type": "string"}}}},
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
NODE = compile_schema(SCHEMA)


def defaulted(obj: Obj) -> Obj:
    made = copy_json(obj)
    apply_defaults(NODE, made)
    return made


@cases(
    ({}, {"a": "A", "nd": "N"}),
    ({"a": "x", "nd": "y"}, {"a": "x", "nd": "y"}),
    ({"a": None, "nd": None}, {"a": "A", "nd": None}),
    ({"deep": {}}, {"a": "A", "nd": "N", "deep": {"x": 0, "y": False}}),
    ({"deep": {"x": 5}}, {"a": "A", "nd": "N", "deep": {"x": 5, "y": False}}),
    ({"list": [{}, {"p": "UDP"}]}, {"a": "A", "nd": "N", "list": [{"p": "TCP"}, {"p": "UDP"}]}),
    ({"map": {"k": {}}}, {"a": "A", "nd": "N", "map": {"k": {"q": 1}}}),
    ({"words": {"k": None, "l": "x"}}, {"a": "A", "nd": "N", "words": {"k": "w", "l": "x"}}),
)
def test_defaults_fill_in_what_is_absent_or_null(given_spec: Obj, expected: Obj) -> None:
    assert defaulted({"spec": given_spec}) == {"spec": expected}


def test_a_default_gets_the_defaults_below_it() -> None:
    assert defaulted({}) == {"spec": {"a": "A", "nd": "N"}}


def test_a_default_is_not_shared_between_objects() -> None:
    node = compile_schema(
        {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}, "default": ["x"]}}}
    )
    first: Obj = {}
    second: Obj = {}
    apply_defaults(node, first)
    apply_defaults(node, second)
    first["l"].append("y")
    assert second == {"l": ["x"]}


def test_a_schema_without_defaults_leaves_the_object_alone() -> None:
    node = compile_schema({"type": "object", "properties": {"a": {"type": "string"}}})
    obj: Obj = {"a": None}
    apply_defaults(node, obj)
    assert obj == {"a": None}


def test_nulls_go_unless_the_field_is_nullable_or_has_a_default() -> None:
    obj: Obj = {
        "spec": {
            "a": None,
            "n": None,
            "plain": None,
            "raw": {"u": None},
            "deep": {"z": None, "x": None},
            "map": {"k": None},
        }
    }
    assert prune(NODE, obj, nulls=True) == ["spec.deep.z"]
    assert obj == {"spec": {"a": None, "n": None, "raw": {"u": None}, "deep": {"x": None}, "map": {}}}


@cases(
    ({"x": 1, "spec": {"a": "1"}}, {"spec": {"a": "1"}}, ["x"]),
    (
        {"apiVersion": "v", "kind": "k", "metadata": {"whatever": 1}},
        {"apiVersion": "v", "kind": "k", "metadata": {"whatever": 1}},
        [],
    ),
    ({"spec": {"list": [{"p": "1", "u": 2}]}}, {"spec": {"list": [{"p": "1"}]}}, ["spec.list[0].u"]),
    ({"spec": {"map": {"any": {"q": 1, "u": 2}}}}, {"spec": {"map": {"any": {"q": 1}}}}, ["spec.map.any.u"]),
    (
        {"spec": {"raw": {"u": {"v": 1}, "known": {"k": "1", "u": 1}}}},
        {"spec": {"raw": {"u": {"v": 1}, "known": {"k": "1"}}}},
        ["spec.raw.known.u"],
    ),
    (
        {
            "spec": {
                "template": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "n", "odd": 1},
                    "spec": {"z": "1", "u": 1},
                    "data": 1,
                }
            }
        },
        {"spec": {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": {"z": "1"}}}},
        ["spec.template.metadata.odd", "spec.template.spec.u", "spec.template.data"],
    ),
    ({"spec": {"deep": [{"u": 1}]}}, {"spec": {"deep": [{}]}}, ["spec.deep[0].u"]),
)
def test_pruning_removes_what_the_schema_does_not_know(obj: Obj, expected: Obj, unknown: list[str]) -> None:
    made = copy_json(obj)
    assert prune(NODE, made) == unknown
    assert made == expected


def test_a_root_that_preserves_unknown_fields_keeps_them() -> None:
    node = compile_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    obj: Obj = {"anything": {"at": ["all"]}}
    assert prune(node, obj) == []
    assert obj == {"anything": {"at": ["all"]}}


_names = st.sampled_from(
    [
        "spec",
        "status",
        "a",
        "n",
        "nd",
        "plain",
        "deep",
        "x",
        "list",
        "p",
        "map",
        "raw",
        "known",
        "template",
        "metadata",
        "u",
    ]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "v"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)
_objects = st.dictionaries(_names, _values, max_size=4)


@given(_objects)
def test_pruning_twice_is_pruning_once(obj: Obj) -> None:
    prune(NODE, obj)
    once = copy_json(obj)
    assert prune(NODE, obj) == []
    assert obj == once


@given(_objects)
def test_defaulting_twice_is_defaulting_once(obj: Obj) -> None:
    once = defaulted(obj)
    assert defaulted(once) == once


@given(_objects)
def test_defaults_survive_pruning_and_null_dropping(obj: Obj) -> None:
    prune(NODE, obj, nulls=True)
    full = defaulted(obj)
    again = copy_json(full)
    assert prune(NODE, again, nulls=True) == []
    assert again == full


@given(_objects)
def test_pruning_with_nulls_removes_the_same_fields_and_all_nulls_that_count_as_absent(obj: Obj) -> None:
    without, together = copy_json(obj), copy_json(obj)
    unknown = prune(NODE, without)
    assert prune(NODE, together, nulls=True) == unknown
    assert prune(NODE, without, nulls=True) == []
    assert together == without
