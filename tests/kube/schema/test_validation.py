"""Validation of objects against a schema: the exact errors, and what an update is forgiven."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.errors import Invalid
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.types import Obj
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from karmada.kube.schema.validation import UNCHECKED, validate
from tests.support.cases import cases


def compiled(spec: Obj) -> Any:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    assert structural_errors(schema, "s") == []
    return compile_schema(schema)


def errors(field: Obj, value: Any) -> list[str]:
    return [str(e) for e in validate(compiled({"x": field}), {"spec": {"x": value}})]


VECTORS: list[tuple[Obj, Any, list[str]]] = [
    ({"type": "integer"}, "a", ['spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"']),
    ({"type": "integer"}, 1.5, ['spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"']),
    (
        {"type": "integer"},
        True,
        ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean"'],
    ),
    ({"type": "integer"}, 2.0, []),
    ({"type": "number"}, 1, []),
    ({"type": "string"}, None, ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"']),
    ({"type": "string", "nullable": True}, None, []),
    ({"type": "string", "nullable": True, "enum": ["a"]}, None, []),
    ({"type": "object"}, [], ['spec.x: Invalid value: "array": spec.x in body must be of type object: "array"']),
    (
        {"type": "array", "items": {"type": "string"}},
        {},
        ['spec.x: Invalid value: "object": spec.x in body must be of type array: "object"'],
    ),
    (
        {"type": "array", "items": {"type": "string"}},
        ["a", 1],
        ['spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "boolean"}},
        {"k": 1},
        ['spec.x.k: Invalid value: "integer": spec.x.k in body must be of type boolean: "integer"'],
    ),
    ({"x-kubernetes-int-or-string": True}, "5%", []),
    ({"x-kubernetes-int-or-string": True}, 5, []),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
    ),
    (
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%$",
        },
        "x",
        ["spec.x: Invalid value: \"x\": spec.x in body should match '^[0-9]+%$'"],
    ),
    ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}], []),
    (
        {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        {"a": ""},
        ["spec.x.b: Required value"],
    ),
    ({"type": "string", "enum": ["a", "b"]}, "c", ['spec.x: Unsupported value: "c": supported values: "a", "b"']),
    ({"type": "integer", "enum": [1, 2]}, 3, ['spec.x: Unsupported value: 3: supported values: "1", "2"']),
    (
        {"type": "string", "pattern": "^[a-z]+$"},
        "A",
        ["spec.x: Invalid value: \"A\": spec.x in body should match '^[a-z]+$'"],
    ),
    ({"type": "string", "pattern": "b"}, "abc", []),
    ({"type": "string", "maxLength": 5}, "éééééé", ["spec.x: Too long: may not be more than 5 bytes"]),
    ({"type": "string", "maxLength": 5}, "ééééé", []),
    (
        {"type": "string", "minLength": 2},
        "a",
        ['spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long'],
    ),
    (
        {"type": "integer", "minimum": 1},
        0,
        ["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
    ),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
    ),
    (
        {"type": "integer", "maximum": 1},
        2,
        ["spec.x: Invalid value: 2: spec.x in body should be less than or equal to 1"],
    ),
    (
        {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
        1.5,
        ["spec.x: Invalid value: 1.5: spec.x in body should be less than 1.5"],
    ),
    ({"type": "integer", "multipleOf": 5}, 7, ["spec.x: Invalid value: 7: spec.x in body should be a multiple of 5"]),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    (
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        [1, 2, 3],
        ["spec.x: Too many: 3: must have at most 2 items"],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        [1],
        ["spec.x: Invalid value: 1: spec.x in body should have at least 2 items"],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
        {"a": "", "b": ""},
        ["spec.x: Too many: 2: must have at most 1 items"],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        {},
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
    ),
    (
        {"type": "string", "format": "date-time"},
        "now",
        ['spec.x: Invalid value: "now": spec.x in body must be of type date-time: "now"'],
    ),
    ({"type": "string", "format": "unheard-of"}, "now", []),
    (
        {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 9}]},
        1,
        [
            "spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 3",
            'spec.x: Invalid value: "": "spec.x" must validate all the schemas (allOf)',
        ],
    ),
    (
        {"type": "integer", "anyOf": [{"minimum": 3}, {"maximum": 0}]},
        1,
        [
            'spec.x: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
            "spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 3",
        ],
    ),
    (
        {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 5}]},
        4,
        [
            'spec.x: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives'  # noqa: E501
        ],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        {},
        [
            'spec.x: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid',
            "spec.x.a: Required value",
        ],
    ),
    (
        {"type": "integer", "not": {"minimum": 3}},
        4,
        ['spec.x: Invalid value: "": "spec.x" must not validate the schema (not)'],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        ["a", "b", "a"],
        ['spec.x[2]: Duplicate value: "a"'],
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
        [{"name": "a", "v": 1}, {"name": "a", "v": 2}],
        ['spec.x[1]: Duplicate value: {"name":"a"}'],
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        [{}],
        ["spec.x[0].name: Required value"],
    ),
]


@pytest.mark.parametrize(("field", "value", "expected"), VECTORS)
def test_a_value_is_judged_with_kubernetes_words(field: Obj, value: Any, expected: list[str]) -> None:
    assert errors(field, value) == expected


def test_a_type_error_is_a_type_error_for_clients_too() -> None:
    [error] = validate(compiled({"x": {"type": "integer"}}), {"spec": {"x": "a"}})
    assert error.reason == "FieldValueTypeInvalid"


def test_the_name_of_an_object_may_be_restricted() -> None:
    node = compile_schema(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}},
        }
    )
    assert validate(node, {"metadata": {"name": "abc", "labels": {"x": "y"}}}) == []
    assert [str(e) for e in validate(node, {"metadata": {"name": "b"}})] == [
        "metadata.name: Invalid value: \"b\": metadata.name in body should match '^a'"
    ]


@cases(
    ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "labels": {"a": "b"}}}, []),
    ({"kind": "Pod"}, ["spec.x.apiVersion: Required value"]),
    ({"apiVersion": "v1"}, ["spec.x.kind: Required value"]),
    (
        {"apiVersion": "a/b/c", "kind": "Pod"},
        ['spec.x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
    ),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}},
        ["spec.x.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": 3},
        ['spec.x.metadata: Invalid value: "integer": spec.x.metadata in body must be of type object: "integer"'],
    ),
)
def test_an_embedded_resource_needs_an_identity(embedded: Obj, expected: list[str]) -> None:
    field = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    assert errors(field, embedded) == expected


TIGHT = compiled(
    {
        "a": {"type": "integer", "minimum": 5},
        "b": {"type": "string"},
        "deep": {"type": "object", "properties": {"c": {"type": "integer", "minimum": 5}, "d": {"type": "string"}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}},
            },
        },
        "plain": {"type": "array", "items": {"type": "integer", "minimum": 5}},
        "flag": {"type": "boolean"},
    }
)


@cases(
    ({"a": 1}, {"a": 1, "b": "new"}, []),
    ({"a": 1}, {"a": 2}, ["spec.a"]),
    ({"deep": {"c": 1}}, {"deep": {"c": 1, "d": "x"}}, []),
    ({"keyed": [{"k": "x", "v": 1}]}, {"keyed": [{"k": "y", "v": 9}, {"k": "x", "v": 1}]}, []),
    ({"keyed": [{"k": "x", "v": 1}]}, {"keyed": [{"k": "x", "v": 2}]}, ["spec.keyed[0].v"]),
    ({"plain": [1]}, {"plain": [1], "b": "x"}, []),
    ({"plain": [1]}, {"plain": [1, 9]}, ["spec.plain[0]"]),
    ({"set": ["a", "a"]}, {"set": ["a", "a", "b"]}, []),
    ({"set": ["a"]}, {"set": ["a", "a"]}, ["spec.set[1]"]),
    ({"flag": True}, {"flag": 1}, ["spec.flag"]),
)
def test_an_update_is_forgiven_what_it_did_not_change(old: Obj, new: Obj, fields: list[str]) -> None:
    assert [e.field for e in validate(TIGHT, {"spec": new}, {"spec": old})] == fields


def test_a_schema_without_rules_never_speaks_of_unchecked_rules() -> None:
    assert UNCHECKED not in validate(TIGHT, {"spec": {"a": "x"}})


def test_a_shared_object_of_its_own_class_is_an_object_like_any_other() -> None:
    class Shared(dict[str, Any]):
        pass

    shared = Shared({"spec": {"a": 1}})
    assert [e.field for e in validate(TIGHT, shared)] == ["spec.a"]
    assert validate(TIGHT, {"spec": {"a": 1}}, shared) == []


def judged(field: Obj, value: Any) -> Invalid:
    return Invalid.of(GroupKind("example.com", "Widget"), "w", validate(compiled({"x": field}), {"spec": {"x": value}}))


def test_a_bad_value_repeated_does_not_repeat_the_enum_without_end() -> None:
    """15 kB of body, each of whose values was answered with all 1,500 values of the enum, took gigabytes."""
    field = {"type": "array", "items": {"type": "string", "enum": [f"v{n}" for n in range(1500)]}}
    error = judged(field, ["bad"] * 3000)
    assert len(error.message) < 100_000
    assert error.message.endswith(", and more errors]")


def test_items_under_a_huge_key_do_not_each_carry_it() -> None:
    field = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}
    errors = validate(compiled({"x": field}), {"spec": {"x": {"k" * 1_000_000: ["a"] * 10_000}}})
    assert len(errors) == 1000
    assert max(len(error.field) for error in errors) < 1100


def test_nested_alternatives_are_each_tried_once() -> None:
    """Each level was tried twice when nothing fitted: forty levels would never end."""
    inner: Obj = {"type": "string", "oneOf": [{"enum": ["a"]}]}
    for _ in range(40):
        inner = {"oneOf": [{key: value for key, value in inner.items() if key != "type"}], "type": "string"}
    assert len(errors(inner, "b")) == 42


@cases((1, True), (True, False), (1.0, False), ({"b": 2, "a": 1}, True), (3, False))
def test_an_enum_compares_json_values(value: Any, fits: bool) -> None:
    field = {"x-kubernetes-preserve-unknown-fields": True, "enum": [1, {"a": 1, "b": 2}]}
    assert (not errors(field, value)) is fits


EMBEDDED: Obj = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def test_embedded_objects_are_reported_after_what_the_schema_refuses() -> None:
    node = compiled({"inner": EMBEDDED, "list": {"type": "array", "items": EMBEDDED}, "size": {"type": "integer"}})
    spec = {"inner": {}, "list": [{"apiVersion": "v1"}], "size": "x"}
    found = [error.field for error in validate(node, {"spec": spec})]
    assert found == ["spec.size", "spec.inner.apiVersion", "spec.inner.kind", "spec.list[0].kind"]


def test_an_embedded_object_that_did_not_change_is_forgiven() -> None:
    node = compiled({"inner": EMBEDDED, "size": {"type": "integer"}})
    old = {"spec": {"inner": {"kind": "X"}, "size": 1}}
    assert validate(node, {"spec": {"inner": {"kind": "X"}, "size": 2}}, old) == []
    changed = validate(node, {"spec": {"inner": {"kind": "Y"}, "size": 2}}, old)
    assert [error.field for error in changed] == ["spec.inner.apiVersion"]
