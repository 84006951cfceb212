from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.patch.jsonpatch import json_equal
from karmada.kube.patch.mergepatch import apply_merge_patch, create_merge_patch
from tests.support.cases import cases

scalars = st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"])
keys = st.sampled_from(["a", "b", "c", "d"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=10
)
objects = st.dictionaries(keys, values, max_size=4)


@cases(
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": 1}, ["c"], ["c"]),
)
def test_a_merge_patch_does_what_the_standard_says(doc: Any, patch: Any, result: Any) -> None:
    before = copy_json(doc)
    assert apply_merge_patch(doc, patch) == result
    assert doc == before


def test_a_created_patch_holds_only_what_differs() -> None:
    a = {"same": {"x": [1]}, "gone": 1, "deep": {"a": 1, "b": 2}, "type": 1}
    b = {"same": {"x": [1]}, "deep": {"a": 1, "b": 3}, "new": {"y": 1}, "type": True}
    assert create_merge_patch(a, b) == {"gone": None, "deep": {"b": 3}, "new": {"y": 1}, "type": True}


@given(objects, objects)
def test_applying_a_created_patch_gives_the_other_object(a: Any, b: Any) -> None:
    assert json_equal(apply_merge_patch(a, create_merge_patch(a, b)), b)
    assert create_merge_patch(a, a) == {}
