"""Which schemas are structural, and the errors of the others."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors

STRING: Obj = {"type": "string"}


def root(**properties: Any) -> Obj:
    return {"type": "object", "properties": properties}


GOOD: list[Obj] = [
    {"type": "object"},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    root(a={"x-kubernetes-int-or-string": True}),
    root(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^.*$"}),
    root(
        a={
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}],
        }
    ),
    root(metadata={"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}),
    root(a=STRING, b=STRING) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    root(a=STRING) | {"anyOf": [{"properties": {"a": {"enum": ["x"]}}}, {"not": {"required": ["a"]}}]},
    root(a={"type": "object", "additionalProperties": True}),
    root(t={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
    root(
        l={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "p"],
            "items": root(k=STRING, p={"type": "string", "default": "TCP"}) | {"required": ["k"]},
        }
    ),
]


@pytest.mark.parametrize("schema", GOOD)
def test_a_structural_schema_has_no_errors_and_compiles(schema: Obj) -> None:
    assert structural_errors(schema, "s") == []
    assert compile_schema(schema).properties.keys() >= {"apiVersion", "kind", "metadata"}


BAD: list[tuple[Obj, str, str]] = [
    ({}, "s.type", "Required value: must not be empty at the root"),
    ({"type": "array", "items": STRING}, "s.type", 'Invalid value: "array": must be object at the root'),
    (root(a={}), "s.properties[a].type", "Required value: must not be empty for specified object fields"),
    (
        root(a={"type": "object", "additionalProperties": {}}),
        "s.properties[a].additionalProperties.type",
        "Required value: must not be empty for specified object fields",
    ),
    (
        root(a={"type": "array", "items": {}}),
        "s.properties[a].items.type",
        "Required value: must not be empty for specified array items",
    ),
    (root(a={"type": "array"}), "s.properties[a].items", "Required value: must be specified"),
    (
        root(a={"type": "array", "items": [STRING]}),
        "s.properties[a].items",
        "Forbidden: items must be a schema object and not an array",
    ),
    (
        root(a={"type": "null"}),
        "s.properties[a].type",
        "Forbidden: type cannot be set to null, use nullable as an alternative",
    ),
    (
        root(a={"type": "text"}),
        "s.properties[a].type",
        'Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ),
    (root(a={"type": "string", "$ref": "#/x"}), "s.properties[a].$ref", "Forbidden: $ref is not supported"),
    (
        root(a={"type": "array", "items": STRING, "uniqueItems": True}),
        "s.properties[a].uniqueItems",
        "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ),
    (
        root(a=STRING) | {"additionalProperties": STRING},
        "s.additionalProperties",
        "Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    (
        root(a={"type": "object", "additionalProperties": False}),
        "s.properties[a].additionalProperties",
        "Forbidden: additionalProperties cannot be set to false",
    ),
    (
        root(a={"type": "string", "pattern": "("}),
        "s.properties[a].pattern",
        'Invalid value: "(": must be a valid regular expression, but isn\'t: ',
    ),
    (
        root(metadata={"type": "object", "properties": {"labels": {"type": "object"}}}),
        "s.properties[metadata]",
        "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
    ),
    (root(metadata={"type": "string"}), "s.properties[metadata].type", 'Invalid value: "string": must be object'),
    (root(kind={"type": "integer"}), "s.properties[kind].type", 'Invalid value: "integer": must be string'),
    (
        root(a={"type": "string", "x-kubernetes-int-or-string": True}),
        "s.properties[a].type",
        'Invalid value: "string": must be empty if x-kubernetes-int-or-string is true',
    ),
    (
        root(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
        "s.properties[a].x-kubernetes-preserve-unknown-fields",
        "Invalid value: false: must be true or undefined",
    ),
    (
        root(a={"type": "object", "x-kubernetes-embedded-resource": True}),
        "s.properties[a].properties",
        "Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",  # noqa: E501
    ),
    (
        root(a={"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
        "s.properties[a].type",
        "Required value: must be object if x-kubernetes-embedded-resource is true",
    ),
    (
        root(a={"type": "string", "x-kubernetes-map-type": "atomic"}),
        "s.properties[a].type",
        'Invalid value: "string": must be object if x-kubernetes-map-type is specified',
    ),
    (
        root(a={"type": "object", "x-kubernetes-map-type": "odd"}),
        "s.properties[a].x-kubernetes-map-type",
        'Unsupported value: "odd": supported values: "atomic", "granular"',
    ),
    (
        root(a={"type": "array", "items": STRING, "x-kubernetes-list-type": "odd"}),
        "s.properties[a].x-kubernetes-list-type",
        'Unsupported value: "odd": supported values: "atomic", "map", "set"',
    ),
    (
        root(a={"type": "array", "items": root(), "x-kubernetes-list-type": "map"}),
        "s.properties[a].x-kubernetes-list-map-keys",
        "Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    (
        root(a={"type": "array", "items": STRING, "x-kubernetes-list-map-keys": ["k"]}),
        "s.properties[a].x-kubernetes-list-type",
        "Invalid value: null: must be map if x-kubernetes-list-map-keys is non-empty",
    ),
    (
        root(
            a={
                "type": "array",
                "items": root(k=STRING),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            }
        ),
        "s.properties[a].items.properties[k].default",
        "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",  # noqa: E501
    ),
    (
        root(
            a={"type": "array", "items": root(), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
        ),
        "s.properties[a].x-kubernetes-list-map-keys",
        'Invalid value: ["k"]: entries must all be names of item properties',
    ),
    (
        root(a={"type": "array", "items": root(), "x-kubernetes-list-type": "set"}),
        "s.properties[a].items.x-kubernetes-map-type",
        "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
    ),
    (
        root(a={"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"}),
        "s.properties[a].items.nullable",
        "Forbidden: cannot be nullable when x-kubernetes-list-type is set",
    ),
    (root(a=STRING) | {"allOf": [{"type": "object"}]}, "s.allOf[0].type", "Forbidden: must be empty to be structural"),
    (
        root(a=STRING) | {"anyOf": [{"properties": {"a": {"default": "x"}}}]},
        "s.anyOf[0].properties[a].default",
        "Forbidden: must be undefined to be structural",
    ),
    (
        root(a=STRING) | {"oneOf": [{"nullable": True}]},
        "s.oneOf[0].nullable",
        "Forbidden: must be false to be structural",
    ),
    (
        root(a=STRING) | {"not": {"properties": {"metadata": {}}}},
        "s.not.properties[metadata]",
        "Forbidden: must not be specified in a nested context",
    ),
    (
        root(a=STRING) | {"allOf": [{"properties": {"b": {"minLength": 1}}}]},
        "s.properties[b]",
        "Required value: because it is defined in allOf[0].properties[b]",
    ),
    (
        root(a={"type": "integer", "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        "s.properties[a].anyOf[0].type",
        "Forbidden: must be empty to be structural",
    ),
]


@pytest.mark.parametrize(("schema", "field", "body"), BAD)
def test_a_schema_that_is_not_structural_is_reported_with_path_and_cause(schema: Obj, field: str, body: str) -> None:
    errors = structural_errors(schema, "s")
    assert any(e.field == field and e.body.startswith(body) for e in errors), [str(e) for e in errors]


def test_compiling_keeps_topology_nullability_and_defaults() -> None:
    node = compile_schema(
        root(
            l={
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": root(k=STRING) | {"required": ["k"]},
            },
            m={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}},
            n={"type": "string", "nullable": True, "default": "d"},
            p={"x-kubernetes-int-or-string": True},
            f={"x-kubernetes-preserve-unknown-fields": True},
        )
    )
    listed, mapped, text = (node.properties[name] for name in "lmn")
    assert (listed.list_type, listed.list_keys, listed.atomic) == ("map", ("k",), False)
    assert mapped.values is not None
    assert (mapped.map_type, mapped.values.type, mapped.atomic) == ("atomic", "integer", True)
    assert (text.nullable, text.default) == (True, "d")
    assert node.properties["p"].special == "int-or-string"
    assert node.properties["f"].preserve
    assert node.properties["l"].default is UNSET
    assert node.checks.has_defaults
    assert not listed.checks.has_defaults


def test_the_root_gets_the_metadata_of_every_object() -> None:
    metadata = compile_schema({"type": "object"}).properties["metadata"]
    assert {"name", "labels", "ownerReferences", "finalizers"} <= metadata.properties.keys()


def test_an_embedded_resource_gets_identity_fields() -> None:
    node = compile_schema(
        root(t={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": STRING}})
    )
    assert node.properties["t"].properties.keys() == {"spec", "apiVersion", "kind", "metadata"}


@pytest.mark.parametrize("keyword", [{"$ref": "#/x"}, {"type": "array", "items": [STRING]}])
def test_a_keyword_that_structural_schemas_lack_hides_what_else_is_not_structural(keyword: Obj) -> None:
    others = {"p": {"type": "string", "pattern": "["}, "u": {"type": "array", "items": STRING, "uniqueItems": True}}
    alone = [error.field for error in structural_errors(root(**others), "s")]
    assert alone == ["s.properties[p].pattern", "s.properties[u].uniqueItems"]
    hidden = [error.field for error in structural_errors(root(**others, r=keyword), "s")]
    assert "s.properties[u].uniqueItems" in hidden
    assert len(hidden) == 2
    assert not {"s.properties[p].pattern", "s.properties[r].type"} & set(hidden)
