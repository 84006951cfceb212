"""From types to schemas: one rule at a time, on types of the test's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from karmada.api.common import (
    ATOMIC,
    Condition,
    Int32,
    IntOrString,
    LabelSelector,
    Quantity,
    Raw,
    ResourceList,
    Struct,
    Time,
    builtin,
    default,
    keyed_by,
    keywords,
)
from karmada.api.schema import definition, place_schema, struct_schema
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from karmada.kube.schema.validation import validate
from tests.support.cases import cases

EITHER = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Inner(Struct):
    """Something inside."""

    name: str


class Base(Struct):
    """What others build on."""

    shared_field: str = ""
    """Described in
    the base.

    In two paragraphs."""


class Outer(Base, kw_only=True):
    """The whole."""

    needed: Inner
    """Described here."""
    other: Inner | None = None
    mode: Literal["Slow", "Fast"] = "Slow"
    count: Annotated[Int32, default(0)] = 0
    limit: int | None = 5
    proxy_url: str = field(default="", name="proxyURL")
    words: list[str] = field(default_factory=list)
    on: Annotated[bool, default(False)] = False


class Ruled(Struct):
    """With a rule."""

    low: Annotated[int, keywords(**{"x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "be even"}]})] = 0


@cases(
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (Int32, {"type": "integer", "format": "int32"}),
    (Time, {"type": "string", "format": "date-time"}),
    (str | None, {"type": "string"}),
    (Any, {"x-kubernetes-preserve-unknown-fields": True}),
    (Raw, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
    (IntOrString, EITHER),
    (IntOrString | None, EITHER),
    (Annotated[int, Meta(ge=0, le=9)], {"type": "integer", "minimum": 0, "maximum": 9}),
    (
        Annotated[str, Meta(min_length=1, max_length=2, pattern="^a")],
        {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "^a"},
    ),
    (
        Annotated[list[str], Meta(min_length=1, max_length=2)],
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    ),
    (
        Annotated[dict[str, str], Meta(min_length=1)],
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    ),
    (
        Annotated[list[str], ATOMIC],
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    ),
    (Annotated[Int32, Meta(ge=1)] | None, {"type": "integer", "format": "int32", "minimum": 1}),
)
def test_a_type_has_the_schema_that_says_the_same(hint: Any, expected: Obj) -> None:
    assert place_schema(hint) == expected


@cases(int | bool, object, bytes)
def test_a_type_that_no_schema_can_say_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError, match="no schema for"):
        place_schema(hint)


def test_a_list_merged_by_keys_names_them() -> None:
    schema = place_schema(Annotated[list[Condition], keyed_by("type")])
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["type"]


def test_fields_without_a_default_are_required() -> None:
    assert struct_schema(Outer)["required"] == ["needed"]
    assert "required" not in struct_schema(Base)


def test_a_default_is_filled_in_unless_it_is_empty() -> None:
    properties = struct_schema(Outer)["properties"]
    given = {name: place["default"] for name, place in properties.items() if "default" in place}
    assert given == {"mode": "Slow", "count": 0, "limit": 5, "on": False}


def test_names_are_camel_case_unless_given() -> None:
    assert set(struct_schema(Outer)["properties"]) == {
        "sharedField", "needed", "other", "mode", "count", "limit", "proxyURL", "words", "on",
    }  # fmt: skip


def test_descriptions_come_from_the_strings_below_fields_and_from_classes() -> None:
    schema = struct_schema(Outer)
    assert schema["description"] == "The whole."
    assert schema["properties"]["needed"]["description"] == "Described here."
    assert schema["properties"]["other"]["description"] == "Something inside."
    assert schema["properties"]["sharedField"]["description"] == "Described in the base.\n\nIn two paragraphs."
    assert "description" not in schema["properties"]["words"]


def test_a_place_with_its_own_description_leaves_the_shared_schema_alone() -> None:
    struct_schema(Outer)
    assert struct_schema(Inner)["description"] == "Something inside."


def test_rules_in_cel_are_kept_and_hold() -> None:
    node = compile_schema(struct_schema(Ruled))
    assert validate(node, {"low": 2}) == []
    assert [error.field for error in validate(node, {"low": 3})] == ["low"]


def test_quantities_are_numbers_or_text_in_the_form_of_quantities() -> None:
    node = compile_schema({"type": "object", "properties": {"of": place_schema(ResourceList)}})
    assert validate(node, {"of": {"cpu": 2, "memory": "1.5Gi", "a": "1e3", "b": "-5m"}}) == []
    assert [error.field for error in validate(node, {"of": {"cpu": "two"}})] == ["of.cpu"]
    assert place_schema(Quantity)["x-kubernetes-int-or-string"] is True


def test_built_in_types_come_whole_and_structural() -> None:
    schema = place_schema(LabelSelector)
    assert schema["x-kubernetes-map-type"] == "atomic"
    assert schema["properties"]["matchExpressions"]["items"]["required"] == ["key", "operator"]
    metric = definition("io.k8s.api.autoscaling.v2.MetricSpec")
    assert metric["properties"]["resource"]["properties"]["target"]["properties"]["averageValue"]["anyOf"]
    root = {"type": "object", "properties": {"metric": metric, "selector": schema}}
    assert structural_errors(root, "") == []


def test_an_unknown_built_in_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        place_schema(Annotated[Obj, builtin("io.k8s.api.core.v1.Nothing")])


def test_a_view_made_of_defaulted_data_equals_one_made_of_nothing() -> None:
    node = compile_schema(struct_schema(Outer))
    obj: Obj = {"needed": {"name": "a"}}
    apply_defaults(node, obj)
    assert obj == {"needed": {"name": "a"}, "mode": "Slow", "count": 0, "limit": 5, "on": False}
    assert Outer.of(obj) == Outer(needed=Inner(name="a"))


def test_what_a_view_writes_is_what_its_schema_knows() -> None:
    view = Outer(needed=Inner(name="a"), proxy_url="http://proxy", words=["x"], count=3, mode="Fast")
    written = view.to_obj()
    assert written == {
        "needed": {"name": "a"}, "proxyURL": "http://proxy", "words": ["x"], "count": 3, "mode": "Fast",
    }  # fmt: skip
    assert prune(compile_schema(struct_schema(Outer)), dict(written)) == []
    assert Outer.of(written) == view
