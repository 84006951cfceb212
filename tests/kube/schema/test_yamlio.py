"""YAML is read as Kubernetes reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.schema.yamlio import dump_yaml, load_all, load_strict, load_yaml, resolve_plain
from tests.support.cases import cases
from tests.support.counting import counted_calls


@cases(
    ("abc", "abc"),
    ("~", None),
    ("null", None),
    ("true", True),
    ("yes", True),
    ("y", True),
    ("On", True),
    ("off", False),
    ("N", False),
    ("truE", "truE"),
    ("5", 5),
    ("-5", -5),
    ("+5", 5),
    ("010", 8),
    ("0o17", 15),
    ("09", 9),
    ("0x1F", 31),
    ("0b101", 5),
    ("1_000", 1000),
    ("9223372036854775807", 2**63 - 1),
    ("18446744073709551615", 2**64 - 1),
    ("1.5", 1.5),
    (".5", 0.5),
    ("1.0", 1),
    ("1e3", 1000),
    ("1E-2", 0.01),
    ("1.2.3", "1.2.3"),
    ("22:22", "22:22"),
    ("1:30:00", "1:30:00"),
    ("2026-01-02", "2026-01-02"),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ("100m", "100m"),
    ("-", "-"),
    (".", "."),
    ("0x", "0x"),
)
def test_plain_scalars_mean_what_they_mean_in_go(text: str, value: Any) -> None:
    result = resolve_plain(text)
    assert result == value
    assert type(result) is type(value)


@cases("'5'", '"5"', "!!str 5", "|-\n  5", ">-\n  5")
def test_quoted_and_tagged_scalars_are_text(text: str) -> None:
    assert load_yaml(f"a: {text}\n") == {"a": "5"}


def test_keys_become_text() -> None:
    assert load_yaml("1: a\ntrue: b\n1.5: c\n'2': d\nno: e\n") == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "2": "d",
        "false": "e",
    }


@cases("~: a", "? [x]\n: a", "? {x: 1}\n: a")
def test_other_keys_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="error converting YAML to JSON: unsupported map key of type: "):
        load_yaml(text)


def test_merge_keys_and_aliases_are_followed_and_give_data_of_their_own() -> None:
    document = load_yaml("a: &x {p: 1, q: {z: 2}}\nb: {<<: *x, p: 3}\nc: [*x, *x]\nd: {<<: [{p: 5}, *x]}\n")
    assert document == {
        "a": {"p": 1, "q": {"z": 2}},
        "b": {"p": 3, "q": {"z": 2}},
        "c": [{"p": 1, "q": {"z": 2}}, {"p": 1, "q": {"z": 2}}],
        "d": {"p": 5, "q": {"z": 2}},
    }
    assert document["c"][0] is not document["c"][1]
    assert document["a"]["q"] is not document["b"]["q"]


def test_repeated_keys_are_reported_with_their_line_and_the_last_wins() -> None:
    document, errors = load_strict("a:\n  b: 1\n  b: 2\nc: 1\nc: 3\n")
    assert document == {"a": {"b": 2}, "c": 3}
    assert errors == [
        'yaml: unmarshal errors:\n  line 3: key "b" already set in map\n  line 5: key "c" already set in map'
    ]


def test_repeated_keys_of_a_json_body_are_reported_too() -> None:
    assert load_strict(b'{"a":1,\n"a":2}') == (
        {"a": 2},
        ['yaml: unmarshal errors:\n  line 2: key "a" already set in map'],
    )
    assert load_strict(b' {"a":1}') == ({"a": 1}, [])


def test_a_body_is_its_first_document() -> None:
    assert load_yaml(b"---\na: 1\n---\nb: 2\n") == {"a": 1}
    assert load_yaml(b"") is None
    assert load_yaml(b"# nothing\n") is None


def test_a_manifest_is_all_its_documents_that_are_not_empty() -> None:
    assert load_all('# head\n---\na: 1\n---\n---\n# no\n---\n{"b": 2}\n...\n') == [{"a": 1}, {"b": 2}]


@cases(
    ("a: b: c", "yaml: mapping values are not allowed in this context"),
    ("a:\n\t- x", "yaml: line 2: found character that cannot start any token"),
    ("a: &x [*x]", "yaml: anchor value contains itself"),
    ("a: .inf", "json: unsupported value: .inf"),
    ("a: {<<: 5}", "yaml: map merge requires map or sequence of maps as the value"),
)
def test_bad_documents_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        load_yaml(text)
    assert str(caught.value) == f"error converting YAML to JSON: {problem}"


def test_a_document_of_aliases_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with counted_calls() as calls, pytest.raises(ValueError, match="excessive aliasing"):
        load_yaml("\n".join(lines))
    assert calls.count < 500_000


def merging(keys: int, times: int) -> str:
    """A mapping that merges a large one many times."""
    return f"a: &a {{{', '.join(f'k{n}: 1' for n in range(keys))}}}\nx: {{{', '.join(['<<: *a'] * times)}}}\n"


def test_what_aliases_add_is_bounded_by_the_document() -> None:
    assert load_yaml(merging(5500, 3))["x"]["k5499"] == 1
    assert load_yaml(merging(50, 150))["x"]["k49"] == 1
    with counted_calls() as once:
        load_yaml(merging(5500, 1))
    with counted_calls() as calls, pytest.raises(ValueError, match="excessive aliasing"):
        load_yaml(merging(5500, 70))
    assert calls.count < 8 * once.count


@cases("*b", "{{c{n}: 1}}")
def test_merging_costs_by_what_is_merged_not_by_what_was_before(source: str) -> None:
    def calls_of(times: int) -> int:
        """Each merge adds one key: with what it finds copied for each, this would grow with the square."""
        sources = ", ".join(source.format(n=n) for n in range(times))
        text = f"b: &b {{z: 1}}\nx: {{<<: [{sources}]}}\n"
        with counted_calls() as calls:
            load_yaml(text)
        return calls.count

    assert calls_of(2000) < 2.2 * calls_of(1000)


def test_merging_twice_in_one_mapping_is_reported() -> None:
    document, errors = load_strict("a: &a {p: 1}\nb:\n  <<: *a\n  <<: {q: 2}\n")
    assert document["b"] == {"p": 1, "q": 2}
    assert errors == ['yaml: unmarshal errors:\n  line 4: key "<<" already set in map']


def test_bottomless_nesting_is_refused() -> None:
    with pytest.raises(ValueError, match="error converting YAML to JSON"):
        load_yaml("[" * 5000 + "]" * 5000)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda child: st.lists(child, max_size=4) | st.dictionaries(st.text("abcyn01.:-", max_size=5), child, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_is_yaml(value: Any) -> None:
    """Also through the YAML parser, which a leading comment forces."""
    text = json.dumps(value, ensure_ascii=False)
    assert load_yaml(text) == value
    assert load_yaml(f"# comment\n{text}") == value


@given(JSON)
def test_what_pyyaml_writes_with_quotes_is_read_back(value: Any) -> None:
    assert load_yaml(yaml.safe_dump(value, default_style='"', allow_unicode=True)) == value


@given(
    JSON
    | st.sampled_from(["y", "1e3", "0o17", "22:22", "yes", "", "~", "<<", "2026-01-02", ".inf", "0x1F", "a\nb", " x"])
)
def test_what_is_written_is_read_back_here_and_by_pyyaml(value: Any) -> None:
    text = dump_yaml({"a": value})
    assert load_yaml(text) == {"a": value}
    assert yaml.safe_load(text) == {"a": value}


def test_written_objects_look_like_those_of_kubectl() -> None:
    shared = {"x": 1.0}
    obj = {
        "kind": "A",
        "apiVersion": "v1",
        "spec": {"args": ["a", "5"], "one": shared, "two": shared, "t": "2026-01-02T03:04:05Z"},
    }
    assert dump_yaml(obj).decode() == (
        "apiVersion: v1\nkind: A\nspec:\n  args:\n  - a\n  - '5'\n  one:\n    x: 1.0\n  t: '2026-01-02T03:04:05Z'\n"
        "  two:\n    x: 1.0\n"
    )


@cases(
    ("0xffffffffffffffff", 2**64 - 1),
    ("0x1ffffffffffffffff", "0x1ffffffffffffffff"),
    ("0x" + "f" * 100_000, "0x" + "f" * 100_000),
    ("1" + "0" * 30, 1e30),
    ("1" * 5000, "1" * 5000),
    ("-9223372036854775809", -9223372036854775809.0),
)
def test_integers_beyond_64_bits_are_floats_if_decimal_and_else_text(text: str, value: object) -> None:
    result = load_yaml(text)
    assert result == value
    assert type(result) is type(value)
