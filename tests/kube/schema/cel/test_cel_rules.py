"""x-kubernetes-validations: which rules a schema may have, and the errors of an object that breaks them."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.schema.cel.declarations import escape
from karmada.kube.schema.cel.rule_check import rule_errors
from karmada.kube.schema.cel.rules import apply_rules
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from karmada.kube.schema.validation import UNCHECKED, validate
from tests.support.cases import cases


def schema(spec: Obj, rules: list[Obj] | None = None) -> Obj:
    made: Obj = {"type": "object", "properties": {"spec": spec}}
    if rules:
        made["x-kubernetes-validations"] = rules
    assert structural_errors(made, "s") == []
    return made


def messages(spec_schema: Obj, spec: Any, old: Any = ..., root_rules: list[Obj] | None = None) -> list[str]:
    node = compile_schema(schema(spec_schema, root_rules))
    assert rule_errors(node, "s") == []
    before = None if old is ... else {"metadata": {"name": "x"}, "spec": old}
    return [str(e) for e in validate(node, {"metadata": {"name": "x"}, "spec": spec}, before)]


def with_rule(rule: str, **more: Any) -> Obj:
    return {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "limit": {"type": "integer"},
            "name": {"type": "string"},
            "ratio": {"type": "number"},
            "since": {"type": "string", "format": "date-time"},
            "every": {"type": "string", "format": "duration"},
            "data": {"type": "string", "format": "byte"},
            "day": {"type": "string", "format": "date"},
            "namespace": {"type": "string"},
            "x-dash": {"type": "string"},
            "a.b": {"type": "string"},
            "c/d": {"type": "string"},
            "e__f": {"type": "string"},
            "port": {"x-kubernetes-int-or-string": True},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "maybe": {"type": "string", "nullable": True},
        },
        "x-kubernetes-validations": [{"rule": rule, **more}],
    }


@cases(
    ("self.replicas <= self.limit", {"replicas": 1, "limit": 2}),
    ("self.ratio > 0.5 && self.ratio == 1.0", {"ratio": 1}),
    ("self.since < timestamp('2030-01-01T00:00:00Z')", {"since": "2020-01-01T00:00:00Z"}),
    ("self.every >= duration('1m')", {"every": "90s"}),
    ("self.data == b'ab'", {"data": "YWI="}),
    ("self.day.getFullYear() == 2024", {"day": "2024-05-06"}),
    ("self.__namespace__ == 'n'", {"namespace": "n"}),
    ("self.x__dash__dash == 'd' && self.a__dot__b == 'b'", {"x-dash": "d", "a.b": "b"}),
    ("self.c__slash__d == 'd' && self.e__underscores__f == 'f'", {"c/d": "d", "e__f": "f"}),
    ("type(self.port) == int ? self.port > 0 : self.port.endsWith('%')", {"port": "5%"}),
    ("self.labels.all(k, self.labels[k] != '')", {"labels": {"a": "b"}}),
    ("self.tags == ['b', 'a']", {"tags": ["a", "b"]}),
    ("has(self.maybe) && self.maybe == null", {"maybe": None}),
    ("!has(self.name)", {}),
    ("quantity(self.name).isLessThan(quantity('2Gi'))", {"name": "1Gi"}),
)
def test_an_object_satisfies_the_rule(rule: str, spec: Obj) -> None:
    assert messages(with_rule(rule), spec) == []


def test_a_broken_rule_names_itself_without_a_message() -> None:
    broken = messages(with_rule("self.replicas <= self.limit"), {"replicas": 3, "limit": 2})
    assert broken == ["spec: Invalid value: failed rule: self.replicas <= self.limit"]


@cases(
    ({"message": "too many"}, "spec: Invalid value: too many"),
    (
        {"message": "x", "messageExpression": "'at most %d'.format([self.limit])"},
        "spec: Invalid value: at most 2",
    ),
    (
        {"message": "fixed", "messageExpression": "string(1 / (self.limit - 2))"},
        "spec: Invalid value: fixed",
    ),
    ({"message": "fixed", "messageExpression": "'  '"}, "spec: Invalid value: fixed"),
    ({"message": "no", "reason": "FieldValueForbidden"}, "spec: Forbidden: no"),
    ({"message": "no", "reason": "FieldValueRequired"}, "spec: Required value: no"),
    ({"message": "no", "reason": "FieldValueDuplicate"}, "spec: Duplicate value"),
    ({"message": "no", "fieldPath": ".replicas"}, "spec.replicas: Invalid value: no"),
    ({"message": "no", "fieldPath": ".labels['a b']"}, "spec.labels[a b]: Invalid value: no"),
)
def test_message_reason_and_field_path_shape_the_error(more: Obj, expected: str) -> None:
    assert messages(with_rule("self.replicas <= self.limit", **more), {"replicas": 3, "limit": 2}) == [expected]


def test_a_rule_on_a_scalar_shows_its_value_and_on_a_list_nothing() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self > 3", "message": "small"}]}
    places = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", **rule},
            "l": {
                "type": "array",
                "items": {"type": "integer", **rule},
                "x-kubernetes-validations": [{"rule": "self.size() < 1"}],
            },
            "m": {"type": "object", "additionalProperties": {"type": "integer", **rule}},
        },
    }
    assert messages(places, {"n": 1, "l": [9, 2], "m": {"k": 0}}) == [
        "spec.n: Invalid value: 1: small",
        "spec.l: Invalid value: failed rule: self.size() < 1",
        "spec.l[1]: Invalid value: 2: small",
        "spec.m.k: Invalid value: 0: small",
    ]


def test_a_rule_at_the_root_sees_name_and_kind_but_no_more_metadata() -> None:
    spec: Obj = {"type": "object", "properties": {}}
    rule = {"rule": "self.metadata.name == 'y'", "message": "wrong name"}
    assert messages(spec, {}, root_rules=[rule]) == ["<nil>: Invalid value: wrong name"]
    node = compile_schema(schema(spec, [{"rule": "has(self.metadata.labels)"}]))
    assert "undefined field 'labels'" in str(rule_errors(node, "s")[0])


def test_an_error_in_a_rule_names_the_rule() -> None:
    assert messages(with_rule("self.replicas > 0"), {}) == [
        'spec: Invalid value: "object": no such key: replicas evaluating rule: self.replicas > 0'
    ]
    assert messages(with_rule("self.port > 0", message="odd port"), {"port": "x"}) == [
        "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, "
        "function or macro signature for rule: odd port"
    ]


def test_a_transition_rule_runs_on_updates_only() -> None:
    frozen = with_rule("self.name == oldSelf.name", message="name is immutable")
    assert messages(frozen, {"name": "a"}) == []
    assert messages(frozen, {"name": "b"}, {"name": "a"}) == ["spec: Invalid value: name is immutable"]
    assert messages(frozen, {"name": "a"}, {"name": "a"}) == []


def test_an_optional_old_self_lets_a_transition_rule_run_on_create() -> None:
    rule = with_rule("oldSelf.hasValue() || self.replicas == 1", optionalOldSelf=True, message="start with one")
    assert messages(rule, {"replicas": 1}) == []
    assert messages(rule, {"replicas": 2}) == ["spec: Invalid value: start with one"]
    assert messages(rule, {"replicas": 2}, {"replicas": 1}) == []


def test_old_items_are_found_by_key_in_map_like_lists() -> None:
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}],
    }
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item}
    spec = {"type": "object", "properties": {"l": listed}}
    old = {"l": [{"name": "a", "v": 5}, {"name": "b", "v": 1}]}
    new = {"l": [{"name": "b", "v": 2}, {"name": "a", "v": 4}, {"name": "c", "v": 0}]}
    assert messages(spec, new, old) == ["spec.l[1]: Invalid value: shrinks"]


def test_rules_about_the_present_are_forgiven_where_nothing_changed() -> None:
    spec = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]},
            "b": {"type": "integer"},
        },
    }
    assert messages(spec, {"a": 1, "b": 2}, {"a": 1, "b": 1}) == []
    assert messages(spec, {"a": 2, "b": 1}, {"a": 1, "b": 1}) == ["spec.a: Invalid value: 2: failed rule: self > 3"]


def test_rules_are_not_run_on_an_object_that_is_basically_wrong() -> None:
    errors = messages(with_rule("self.replicas > 5"), {"replicas": "x"})
    assert errors[0].startswith("spec.replicas: Invalid value")
    assert errors[1:] == [str(UNCHECKED)]


def test_rules_run_beside_errors_that_are_not_basic() -> None:
    spec = with_rule("self.replicas > 5")
    spec["properties"]["replicas"]["minimum"] = 3
    assert len(messages(spec, {"replicas": 1})) == 2


def test_a_rule_that_takes_too_long_ends_validation_with_a_clear_error() -> None:
    spec = {
        "type": "object",
        "properties": {"l": {"type": "array", "maxItems": 100, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [
            {"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"},
            {"rule": "false"},
        ],
    }
    errors = messages(spec, {"l": list(range(80))})
    assert len(errors) == 1
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in errors[0]


def test_many_cheap_rules_share_the_budget_of_the_object() -> None:
    rule = {"rule": "self.l.all(a, self.l.all(b, a + b >= 0))"}
    spec = {
        "type": "object",
        "properties": {"l": {"type": "array", "maxItems": 500, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [rule] * 5,
    }
    errors = messages(spec, {"l": list(range(400))})
    assert errors == [
        'spec: Invalid value: "object": validation failed due to running out of cost budget, '
        "no further validation rules will be run"
    ]


@cases(
    ({"rule": ""}, "rule", "Required value: rule is not specified"),
    ({"rule": "self.nope == 1"}, "rule", "undefined field 'nope'"),
    ({"rule": "self.replicas == 'a'"}, "rule", "found no matching overload for '_==_' applied to '(int, string)'"),
    ({"rule": "self.replicas +"}, "rule", "compilation failed: ERROR: <input>:1:16: Syntax error"),
    ({"rule": "self.replicas"}, "rule", "cel expression must evaluate to a bool"),
    ({"rule": "self.labels['a'] == 1"}, "rule", "(string, int)"),
    ({"rule": "self['replicas'] == 1"}, "rule", "found no matching overload for '_[_]'"),
    ({"rule": "true", "message": " "}, "message", "message must be non-empty if specified"),
    ({"rule": "true", "message": "a\nb"}, "message", "message must not contain line breaks"),
    (
        {"rule": "true &&\ntrue"},
        "message",
        "Required value: message must be specified if rule contains line breaks",
    ),
    ({"rule": "true", "reason": "Because"}, "reason", 'Unsupported value: "Because"'),
    ({"rule": "true", "fieldPath": "replicas"}, "fieldPath", "fieldPath must be a valid path"),
    ({"rule": "true", "fieldPath": ".nope"}, "fieldPath", "does not refer to a valid field: nope"),
    (
        {"rule": "true", "messageExpression": "1"},
        "messageExpression",
        "messageExpression must evaluate to a string",
    ),
    ({"rule": "true", "messageExpression": "self.nope"}, "messageExpression", "undefined field 'nope'"),
    ({"rule": "true", "optionalOldSelf": True}, "optionalOldSelf", "may not be set if oldSelf is not used in rule"),
)
def test_a_schema_with_a_bad_rule_is_refused(rule: Obj, field: str, text: str) -> None:
    node = compile_schema(schema(with_rule(**rule)))
    [error] = rule_errors(node, "s")
    assert error.field == f"s.properties[spec].x-kubernetes-validations[0].{field}"
    assert text in error.body


def test_old_self_below_a_plain_list_is_refused() -> None:
    item = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    node = compile_schema(schema({"type": "array", "items": item}))
    [error] = rule_errors(node, "s")
    assert "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec]" in error.body


def test_places_without_declared_content_are_out_of_sight() -> None:
    spec = {
        "type": "object",
        "properties": {
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
        },
        "x-kubernetes-validations": [{"rule": "has(self.raw.x)"}, {"rule": "has(self.any)"}],
    }
    node = compile_schema(schema(spec))
    first, second = rule_errors(node, "s")
    assert "ERROR: <input>:1:13: undefined field 'x'" in first.body
    assert "ERROR: <input>:1:9: undefined field 'any'" in second.body


def test_rules_of_null_values_are_skipped() -> None:
    spec = {
        "type": "object",
        "properties": {"n": {"type": "integer", "nullable": True, "x-kubernetes-validations": [{"rule": "self > 3"}]}},
    }
    assert messages(spec, {"n": None}) == []


def test_a_value_that_cannot_be_read_as_its_type_is_an_error_of_the_rule() -> None:
    node = compile_schema(schema(with_rule("self.data == b''")))
    assert [str(e) for e in apply_rules(node, {"spec": {"data": "!!"}})] == [
        'spec: Invalid value: "object": field is not valid base64'
    ]


@cases(
    ("a", "a"),
    ("a_b", "a_b"),
    ("a__b", "a__underscores__b"),
    ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
    ("if", "__if__"),
    ("true", "__true__"),
    ("a b", None),
    ("1a", None),
    ("__x", "__underscores__x"),
)
def test_property_names_become_identifiers(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped
