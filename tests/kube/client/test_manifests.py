from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.client.manifests import load_manifests, load_yaml, load_yaml_all


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("80:80", "80:80"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("-5", -5),
        ("+5", 5),
        ("1_000", 1000),
        ("100m", "100m"),
        ("1.2.3", "1.2.3"),
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("n", "n"),
        ("~", None),
        ("null", None),
        ("'true'", "true"),
        ('"5"', "5"),
        ("9007199254740993", 9007199254740993),
        ("{1: a, true: b}", {"1": "a", "true": "b"}),
        ("=", "="),
        ("!!str 5", "5"),
    ],
)
def test_a_scalar_means_what_it_means_to_kubernetes(text: str, value: Any) -> None:
    found = load_yaml(text)
    assert found == value
    assert type(found) is type(value)


def test_merge_keys_merge_and_own_keys_win() -> None:
    assert load_yaml("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize("text", ["a: 1\na: 2", "a: [", "a: .inf", "a: .nan", "? [1]\n: 2", "a: 1e999"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="error parsing YAML"):
        load_yaml(text)


def test_a_manifest_file_gives_its_objects_and_those_of_its_lists() -> None:
    text = """
# a comment only
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
"""
    assert [obj["kind"] for obj in load_manifests(text)] == ["ConfigMap", "Secret"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: 1", "'Kind' is missing"), ("kind: X", "apiVersion not set"), ("[1]", "not a Kubernetes object")],
)
def test_a_document_that_is_no_object_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_manifests(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_what_was_dumped_as_yaml_is_read_back(value: Any) -> None:
    assert list(load_yaml_all(yaml.safe_dump(value))) == [value]
