from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import RequestEntityTooLarge
from karmada.kube.patch.jsonpatch import (
    MAX_OPERATIONS,
    Dialect,
    JsonPatchError,
    apply_json_patch,
    check_size,
    diff,
    json_equal,
)
from tests.support.cases import cases

keys = st.sampled_from(["a", "b", "c", "a/b", "m~n", ""])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "y"])
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@pytest.mark.parametrize(
    ("doc", "ops", "result"),
    [
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/-2", "value": 9}], {"a": [9, 2]}),
        ({"a": {"b": 1}}, [{"op": "remove", "path": "/a/b"}], {"a": {}}),
        ({"a": {"b": 1}}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
        ({"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
        ({"a": {"x": 1}, "b": {}}, [{"op": "move", "from": "/a/x", "path": "/b/y"}], {"a": {}, "b": {"y": 1}}),
        ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
        ({"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}),
        (
            {"a": {"x": 1}},
            [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/x", "value": 2}],
            {"a": {"x": 1}, "b": {"x": 2}},
        ),
        ({"a": {"x": [1, {"y": None}]}}, [{"op": "test", "path": "/a", "value": {"x": [1.0, {"y": None}]}}], None),
        ({"a": {}}, [{"op": "test", "path": "/a/b", "value": None}], None),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_operations_do_what_the_standard_says(doc: Any, ops: list[Any], result: Any, dialect: Dialect) -> None:
    assert apply_json_patch(doc, ops, dialect) == (doc if result is None else result)


@pytest.mark.parametrize(
    "op",
    [
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": "/list/5"},
        {"op": "remove", "path": "/list/-3"},
        {"op": "remove", "path": "/list/0x1"},
        {"op": "add", "path": "/null/x", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/missing/x", "value": 1},
        {"op": "add", "path": "/scalar/x", "value": 1},
        {"op": "add", "path": "scalar", "value": 1},
        {"op": "add", "value": 1},
        {"op": "remove", "path": ""},
        {"op": "move", "from": "/map", "path": "/map/b"},
        {"op": "copy", "from": "/missing/x", "path": "/b"},
        {"op": "test", "path": "/scalar", "value": True},
        {"op": "test", "path": "/scalar", "value": "1"},
        {"op": "test", "path": "/list/9", "value": None},
        {"op": "merge", "path": "/scalar", "value": 1},
        {"path": "/scalar"},
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_a_failing_operation_refuses_the_whole_patch_and_changes_nothing(op: Any, dialect: Dialect) -> None:
    doc = {"scalar": 1, "list": [1, 2], "map": {"a": 1}, "null": None}
    before = copy_json(doc)
    with pytest.raises(JsonPatchError) as error:
        apply_json_patch(doc, [{"op": "add", "path": "/new", "value": 1}, op], dialect)
    assert doc == before
    status = error.value.status()
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == "the server rejected our request due to an error in our request"
    assert status["details"] == {}


@cases(
    ({"op": "replace", "path": "/missing", "value": 1}, {"missing": 1}),
    ({"op": "replace", "path": "/map/missing", "value": 1}, {"map": {"a": 1, "missing": 1}}),
    ({"op": "copy", "from": "/map/missing", "path": "/copied"}, {"copied": None}),
    ({"op": "add", "path": "/added"}, {"added": None}),
    ({"op": "replace", "path": "/map"}, {"map": None}),
    ({"op": "replace", "path": "/list/00", "value": 9}, {"list": [9, 2]}),
    ({"op": "remove", "path": "/list/+1"}, {"list": [1]}),
    ({"op": "add", "path": "ignored/map/b", "value": 2}, {"map": {"a": 1, "b": 2}}),
    ({"op": "test", "path": "ignored/map/missing", "value": None}, {}),
    ({"op": "test", "path": "/map/missing"}, {}),
    ({"op": "replace", "path": "", "value": "scalar"}, {}),
)
def test_an_absent_member_reads_as_null_only_leniently(op: Any, result: Any) -> None:
    doc = {"map": {"a": 1}, "list": [1, 2]}
    assert apply_json_patch(doc, [op], Dialect.LENIENT) == {**doc, **result}
    assert op == {"op": "test", "path": "/map/missing"} or _refused(doc, op, Dialect.STRICT) or op["path"] == ""


@cases(
    {"op": "add", "path": "", "value": {}},
    {"op": "copy", "from": "", "path": "/a"},
    {"op": "move", "from": "", "path": "/a"},
    {"op": "add", "path": "map", "value": 1},
    {"op": "move", "from": "/missing", "path": "/a"},
    {"op": "replace", "path": "/missing/a", "value": 1},
)
def test_the_document_itself_and_absent_parents_are_refused_leniently_too(op: Any) -> None:
    assert _refused({"map": {"a": 1}}, op, Dialect.LENIENT)


def _refused(doc: Any, op: Any, dialect: Dialect) -> bool:
    try:
        apply_json_patch(doc, [op], dialect)
    except JsonPatchError:
        return True
    return False


@cases({}, None, "x", [1], [[]], [{"op": "test", "path": "", "value": 1}, 2])
def test_what_is_no_list_of_objects_is_malformed(ops: Any) -> None:
    with pytest.raises(ValueError, match="array of objects"):
        apply_json_patch({}, ops, Dialect.LENIENT)


def test_a_patch_may_not_have_more_operations_than_the_limit() -> None:
    check_size([{}] * MAX_OPERATIONS)
    with pytest.raises(RequestEntityTooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        check_size([{}] * (MAX_OPERATIONS + 1))


def test_copies_of_copies_cannot_blow_the_document_up() -> None:
    ops = [{"op": "copy", "from": "/a", "path": f"/{number}"} for number in range(40)]
    with pytest.raises(RequestEntityTooLarge, match="accumulated size increase of copy"):
        apply_json_patch({"a": "x" * 100_000}, ops, Dialect.LENIENT)


@cases(
    ({"a": 1}, {"a": 1}, []),
    ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ({"a": 1, "b": 2}, {"b": 2}, [{"op": "remove", "path": "/a"}]),
    ({}, {"a/b": {}}, [{"op": "add", "path": "/a~1b", "value": {}}]),
    ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
    ([1, 3], [1, 2, 3], [{"op": "add", "path": "/1", "value": 2}]),
    ({"l": [{"n": 1}]}, {"l": [{"n": 2}]}, [{"op": "replace", "path": "/l/0/n", "value": 2}]),
)
def test_a_difference_names_the_smallest_part(a: Any, b: Any, ops: list[Any]) -> None:
    assert diff(a, b) == ops


@given(documents, documents)
def test_applying_the_difference_gives_the_other_document(a: Any, b: Any) -> None:
    before = orjson.dumps(a)
    assert json_equal(apply_json_patch(a, diff(a, b), Dialect.STRICT), b)
    assert orjson.dumps(a) == before
    assert diff(a, a) == []
