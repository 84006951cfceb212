from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.patch.fieldset import (
    LEAF,
    FieldSet,
    all_of,
    difference,
    intersection,
    item_key,
    member_key,
    paths,
    text,
    union,
    valid,
    within,
    without,
)
from tests.support.cases import cases

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
many_paths = st.frozensets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)


def from_paths(*many: tuple[str, ...]) -> FieldSet:
    tree: FieldSet = {}
    for path in many:
        one: FieldSet = LEAF
        for element in reversed(path):
            one = {element: one}
        tree = union(tree, one)
    return tree


def as_set(fields: FieldSet) -> frozenset[tuple[str, ...]]:
    return frozenset(paths(fields))


@given(many_paths, many_paths)
def test_the_algebra_is_that_of_sets_of_paths(one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]]) -> None:
    a, b = from_paths(*one), from_paths(*two)
    assert as_set(a) == one
    assert as_set(union(a, b)) == one | two
    assert as_set(difference(a, b)) == one - two
    assert as_set(intersection(a, b)) == one & two
    assert all(valid(result) for result in (a, union(a, b), difference(a, b), intersection(a, b)))


@given(many_paths, many_paths)
def test_whole_subtrees_are_taken_away_or_kept(
    one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]]
) -> None:
    a, b = from_paths(*one), from_paths(*two)
    below = {path for path in one if any(path[: len(top)] == top for top in two)}
    assert as_set(without(a, b)) == one - below
    assert as_set(within(a, b)) == below


@given(many_paths, many_paths, many_paths)
def test_sets_have_one_form_however_they_were_made(
    one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]], three: frozenset[tuple[str, ...]]
) -> None:
    a, b, c = from_paths(*one), from_paths(*two), from_paths(*three)
    assert union(a, b) == union(b, a)
    assert union(union(a, b), c) == union(a, union(b, c)) == all_of([c, b, a])
    assert intersection(a, union(b, c)) == union(intersection(a, b), intersection(a, c))
    assert difference(difference(a, b), c) == difference(a, union(b, c))
    assert union(difference(a, b), intersection(a, b)) == a
    assert without(a, b) == from_paths(*as_set(without(a, b)))


@given(many_paths, many_paths)
def test_a_result_that_equals_its_argument_is_that_argument(
    one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]]
) -> None:
    a, b = from_paths(*one), from_paths(*two)
    if not one & two:
        assert difference(a, b) is a
    if one and two <= one:
        assert union(a, b) is a


@cases(
    (("f:spec", "f:containers", 'k:{"name":"c"}', "f:image"), '.spec.containers[name="c"].image'),
    (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
    (("f:metadata", "f:finalizers", 'v:"a/b"'), '.metadata.finalizers[="a/b"]'),
    (("f:x", "i:3"), ".x[3]"),
    (("f:metadata", "f:labels", "f:app.kubernetes.io/name"), ".metadata.labels.app.kubernetes.io/name"),
    (("f:x", "v:true"), ".x[=true]"),
)
def test_paths_read_as_kubernetes_shows_them(path: tuple[str, ...], shown: str) -> None:
    assert text(path) == shown


def test_elements_of_items_have_sorted_keys_and_no_spaces() -> None:
    assert item_key({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert member_key("a") == 'v:"a"'


def test_paths_come_sorted_and_owned_elements_before_what_is_below() -> None:
    fields: FieldSet = {"f:b": {}, "f:a": {".": {}, "f:z": {}, "i:10": {}, "i:9": {}}, 'k:{"n":1}': {"f:x": {}}}
    assert [text(path) for path in paths(fields)] == [".a", ".b", ".a.z", ".a[9]", ".a[10]", "[n=1].x"]


@cases(None, [], "x", {"x": {}}, {"f:a": None}, {"f:a": {".": {"f:b": {}}}}, {"k:[]": {}}, {"v:nope": {}}, {"i:x": {}})
def test_what_is_no_field_set_is_reported(fields: object) -> None:
    assert not valid(fields)
