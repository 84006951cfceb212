"""Label and field selectors: grammar, errors, matching and printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.selectors import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    LabelRequirement,
    LabelSelector,
    labels_from,
    labels_from_map,
    parse_fields,
    parse_labels,
)
from tests.support.cases import cases
from tests.support.counting import counted_calls

VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@cases(
    ("", ""), ("a", "a"), ("!a", "!a"), ("a=b", "a=b"), ("a==b", "a==b"), ("a!=b", "a!=b"), ("a=", "a="),
    ("a!=", "a!="),
    ("a=,b", "a=,b"), ("a in (x,y)", "a in (x,y)"), ("a notin (y,x)", "a notin (x,y)"), ("a in (x)", "a in (x)"),
    ("a in (,x)", "a in (,x)"), ("a in (x,)", "a in (,x)"), ("a in (x,,y)", "a in (,x,y)"),
    ("a in (x,x)", "a in (x)"), ("a in ()", "a in ()"), ("a notin ()", "a notin ()"),
    ("a>5", "a>5"), ("a<5", "a<5"), (" a = b , c  in ( x , y ) ,\t!d\n", "a=b,c in (x,y),!d"),
    ("z=1,a=2,m", "a=2,m,z=1"), ("example.com/app=web", "example.com/app=web"),
    ("in in (in,notin)", "in in (in,notin)"),
    ("a=in", "a=in"), ("! a", "!a"), ("a in(x)", "a in (x)"),
)  # fmt: skip
def test_a_label_selector_prints_as_kubernetes_prints_it(text: str, printed: str) -> None:
    assert str(parse_labels(text)) == printed


@cases(
    ("=b", "found '=', expected: !, identifier, or 'end of string'"),
    ("(", "found '(', expected: !, identifier, or 'end of string'"),
    (",a", "found ',', expected: !, identifier, or 'end of string'"),
    ("a,", "found '', expected: identifier after ','"),
    ("a,,b", "found ',', expected: identifier after ','"),
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a in x", "unable to parse requirement: found 'x' expected: '('"),
    ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
    ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
    ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
    ("a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
    ("a>b", 'unable to parse requirement: values[0]: Invalid value: "b": '
     "for 'Gt', 'Lt' operators, the value must be an integer"),
    ("a=(", "unable to parse requirement: found '(', expected: identifier"),
    ("a=-b", f'unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE}'),
    ("a in (b,-c,+)", f'unable to parse requirement: [values[0][a]: Invalid value: "+": {VALUE}, '
     f'values[1][a]: Invalid value: "-c": {VALUE}]'),
    ("-a", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric '
     "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
     "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
)  # fmt: skip
def test_a_bad_label_selector_is_refused_with_kubernetes_text(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_labels(text)
    assert str(caught.value) == message


LABELS = {"app": "web", "tier": "front", "size": "10", "empty": ""}


@cases(
    ("", True), ("app", True), ("nope", False), ("!nope", True), ("!app", False), ("app=web", True),
    ("app==api", False),
    ("app!=api", True), ("nope!=x", True), ("app!=web", False), ("app in (web,api)", True), ("app in (api)", False),
    ("nope in (a)", False), ("nope notin (a)", True), ("app notin (web)", False), ("size>9", True),
    ("size>10", False),
    ("size<11", True), ("app>1", False), ("nope<1", False), ("empty=", True), ("nope=", False),
    ("nope in (,a)", False),
    ("empty in (,a)", True), ("app=web,tier=front", True), ("app=web,tier=back", False),
)  # fmt: skip
def test_label_selectors_match(text: str, matches: bool) -> None:
    assert parse_labels(text).matches(LABELS) is matches


def test_an_object_without_labels_matches_only_requirements_of_absence() -> None:
    assert EVERYTHING.matches(None)
    assert parse_labels("!a").matches(None)
    assert not parse_labels("a").matches(None)
    assert not NOTHING.matches({"a": "b"})


@cases(
    ({}, ""),
    ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}, "a in (x,y)"),
    ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
    ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
    ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
    (
        {"matchLabels": {"b": "2"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]},
        "a in (x),b=2",
    ),
)
def test_a_selector_object_becomes_a_selector(selector: dict[str, Any], printed: str) -> None:
    assert str(labels_from(selector)) == printed


def test_no_selector_object_selects_nothing_and_an_empty_one_everything() -> None:
    assert labels_from(None).nothing
    assert labels_from({}).everything
    assert labels_from_map(None).nothing
    assert labels_from_map({"a": "b"}).matches({"a": "b", "c": "d"})


@cases(
    ({"key": "a", "operator": "Gt", "values": ["1"]}, '"Gt" is not a valid label selector operator'),
    (
        {"key": "a", "operator": "In"},
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    ),
    (
        {"key": "a", "operator": "Exists", "values": ["b"]},
        'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
    ),
)
def test_a_bad_selector_object_is_refused(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        labels_from({"matchExpressions": [expression]})
    assert str(caught.value) == message


keys = st.sampled_from(["a", "b", "c", "example.com/d"])
values = st.sampled_from(["", "x", "y", "z", "1", "2", "30"])
several = (
    st.sets(values, min_size=1, max_size=3).filter(lambda found: found != {""}).map(lambda found: tuple(sorted(found)))
)
one = values.map(lambda value: (value,))
number = st.integers(0, 50).map(lambda value: (str(value),))
requirements = st.one_of(
    st.builds(LabelRequirement, keys, st.sampled_from(["=", "==", "!="]), one),
    st.builds(LabelRequirement, keys, st.sampled_from(["in", "notin"]), several),
    st.builds(LabelRequirement, keys, st.sampled_from(["exists", "!"]), st.just(())),
    st.builds(LabelRequirement, keys, st.sampled_from(["gt", "lt"]), number),
)
selectors = st.lists(requirements, max_size=4).map(LabelSelector)


def naively(requirement: LabelRequirement, labels: dict[str, str]) -> bool:
    key, op, wanted = requirement
    value = labels.get(key)
    if op in ("=", "==", "in"):
        return value is not None and value in wanted
    if op in ("!=", "notin"):
        return value is None or value not in wanted
    if op in ("exists", "!"):
        return (value is not None) is (op == "exists")
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(wanted[0]) if op == "gt" else int(value) < int(wanted[0])


@given(selectors)
def test_a_printed_label_selector_parses_back(selector: LabelSelector) -> None:
    assert parse_labels(str(selector)) == selector


@given(selectors, st.dictionaries(keys, values))
def test_matching_agrees_with_a_naive_reading(selector: LabelSelector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == all(naively(requirement, labels) for requirement in selector.requirements)


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_either_parses_or_is_a_value_error(text: str) -> None:
    try:
        selector = parse_labels(text)
    except ValueError:
        return
    assert parse_labels(str(selector)) == selector


@cases(
    ("", []),
    ("metadata.name=a", [("metadata.name", "=", "a")]),
    ("metadata.name==a", [("metadata.name", "=", "a")]),
    ("status.phase!=Running", [("status.phase", "!=", "Running")]),
    ("spec.nodeName=", [("spec.nodeName", "=", "")]),
    ("b=2,a=1", [("a", "=", "1"), ("b", "=", "2")]),
    (",a=1,", [("a", "=", "1")]),
    (r"a=x\,y\=z\\", [("a", "=", r"x,y=z" + "\\")]),
    ("a=!b", [("a", "=", "!b")]),
)  # fmt: skip
def test_a_field_selector_parses(text: str, requirements: list[tuple[str, str, str]]) -> None:
    assert list(parse_fields(text).requirements) == [FieldRequirement(*each) for each in requirements]


@cases(
    ("a", "invalid selector: 'a'; can't understand 'a'"),
    ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
    ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
    ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
)
def test_a_bad_field_selector_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_fields(text)
    assert str(caught.value) == message


def test_a_field_selector_matches_what_the_reader_returns() -> None:
    pod = {"metadata.name": "web", "spec.nodeName": ""}
    assert parse_fields("spec.nodeName=,metadata.name!=api").matches(pod.__getitem__)
    assert not parse_fields("spec.nodeName!=").matches(pod.__getitem__)
    assert parse_fields("metadata.name=web,spec.nodeName!=x").exact("metadata.name") == "web"
    assert parse_fields("metadata.name!=web").exact("metadata.name") is None


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.sampled_from(["=", "!="]), st.text(max_size=8)), max_size=3)
)
def test_a_printed_field_selector_parses_back(parts: list[tuple[str, str, str]]) -> None:
    text = ",".join(str(FieldRequirement(*part)) for part in parts)
    parsed = parse_fields(text)
    assert sorted(parsed.requirements) == sorted(FieldRequirement(*part) for part in parts)
    assert parse_fields(str(parsed)) == parsed


@cases(parse_labels, parse_fields)
def test_a_selector_has_at_most_64_requirements_and_8_kb(parse: Callable[[str], object]) -> None:
    assert len(parse(",".join(f"a{n}=b" for n in range(64))).requirements) == 64  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="at most 64 are allowed"):
        parse(",".join(f"a{n}=b" for n in range(65)))
    with pytest.raises(ValueError, match="at most 8192 are allowed"):
        parse(",".join(["a=b"] * 3000))


def test_a_selector_that_is_too_long_is_not_read() -> None:
    with counted_calls() as calls, pytest.raises(ValueError, match="too long"):
        parse_labels(",".join(["!a"] * 20_000))
    assert calls.count < 1_000
