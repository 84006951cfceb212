"""Objects as bytes: parsed on demand, shared while somebody holds them, and squeezed."""

from __future__ import annotations

import gc
import os
import random
import weakref

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.codec import ZlibDictionary
from karmada.kube.objects.doc import Compressor, Doc, SharedObject, assert_unmutated, parse_custom
from karmada.kube.objects.meta import without_managed_fields
from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object


def deployment(number: int) -> Obj:
    container = {"name": "web", "image": "nginx:1.27", "env": [{"name": f"V{n}", "value": "x" * n} for n in range(20)]}
    return kube_object(
        "apps/v1", "Deployment", f"web-{number}", uid=f"0000-{number:06d}", labels={"app": f"web-{number}"}
    ) | {"spec": {"replicas": number, "template": {"spec": {"containers": [container]}}}}


def packed(obj: Obj) -> Doc:
    return Doc("", "", "", 0, orjson.dumps(obj))


def test_all_who_hold_an_object_at_the_same_time_hold_the_same() -> None:
    one = packed(deployment(1))
    assert one.object() is one.object()
    assert one.object() == deployment(1)


def test_an_object_that_nobody_holds_is_parsed_again() -> None:
    one = packed(deployment(1))
    first = weakref.ref(one.object())
    gc.collect()
    assert first() is None
    assert one.object() == deployment(1)


def test_a_shared_object_is_kept_by_the_bytes_it_came_from() -> None:
    one = packed(deployment(1))
    assert Doc.of(one.object()) is one


def test_a_plain_object_gets_bytes_of_its_own() -> None:
    assert Doc.of(deployment(2)).object() == deployment(2)


def test_what_resembles_the_sample_becomes_a_small_difference() -> None:
    one = packed(deployment(2))
    assert one.compress(ZlibDictionary(orjson.dumps(deployment(1))))
    assert one.size < len(one.raw) // 8
    assert one.raw == orjson.dumps(deployment(2))
    assert one.object() == deployment(2)


def test_squeezing_twice_changes_nothing() -> None:
    one = packed(deployment(2))
    one.compress(ZlibDictionary(orjson.dumps(deployment(1))))
    one.compress(ZlibDictionary(orjson.dumps(deployment(3))))
    assert one.raw == orjson.dumps(deployment(2))


def test_what_cannot_be_made_smaller_stays_as_it_is() -> None:
    raw = orjson.dumps({"data": os.urandom(2_000).hex()})
    one = Doc("", "", "", 0, b"\xff" + os.urandom(4_000))
    assert not one.compress(ZlibDictionary(raw))
    assert not one.is_packed


@given(st.lists(st.binary(max_size=3_000), min_size=1, max_size=30), st.integers(1, 5))
def test_a_press_loses_nothing(raws: list[bytes], recent: int) -> None:
    compressor: Compressor = Compressor(recent)
    kept = [Doc("", "", "", 0, raw) for raw in raws]
    for one in kept:
        compressor.add(one)
    assert [one.raw for one in kept] == raws


def test_the_most_recent_are_left_alone() -> None:
    compressor: Compressor = Compressor(10)
    kept = [packed(deployment(number)) for number in range(50)]
    for one in kept:
        compressor.add(one)
    assert [one.is_packed for one in kept] == [False] + [True] * 39 + [False] * 10  # the first is the sample


def test_fewer_are_left_alone_of_large_ones() -> None:
    kept = [packed(deployment(number)) for number in range(50)]
    compressor: Compressor = Compressor(1_000, most_bytes=10 * max(one.size for one in kept))
    for one in kept:
        compressor.add(one)
    assert [one.is_packed for one in kept] == [False] + [True] * 39 + [False] * 10


def test_a_press_keeps_nothing_alive() -> None:
    compressor: Compressor = Compressor(10)
    compressor.add(packed(deployment(1)))
    gc.collect()
    assert compressor._recent[0]() is None


def test_a_sample_of_the_past_gives_way_to_one_that_fits() -> None:
    compressor: Compressor = Compressor(0)
    compressor.add(packed(deployment(1)))
    common = random.Random(1).randbytes(1_000).hex()
    others = [Doc("", "", "", 0, orjson.dumps({"text": common, "x": number})) for number in range(600)]
    for one in others:
        compressor.add(one)
    assert others[-1].size < len(others[-1].raw) // 8
    assert len({id(one._packing) for one in others}) <= 3, "a sample stays as long as what was squeezed with it"


def test_shared_objects_can_be_written() -> None:
    assert isinstance(packed(deployment(1)).object(), SharedObject)
    assert orjson.loads(orjson.dumps(packed(deployment(1)).object())) == deployment(1)
    with pytest.raises(orjson.JSONDecodeError):
        Doc("", "", "", 0, b"{").object()


def test_what_is_not_worth_it_is_not_squeezed() -> None:
    kept = [packed(deployment(number)) for number in range(20)]
    compressor: Compressor = Compressor(2, worth=lambda one: one is not kept[5])
    for one in kept:
        compressor.add(one)
    assert not kept[5].is_packed
    assert kept[6].is_packed


def test_an_adopted_object_is_the_one_that_is_shared() -> None:
    one = packed(deployment(1))
    shared = one.adopt(deployment(1))
    assert one.object() is shared
    assert shared.source is one


def test_another_order_of_keys_is_no_mutation_and_a_change_after_it_is_reported_once() -> None:
    shared = Doc("", "", "", 0, b'{"a":1,"b":{"c":2}}').adopt({"b": {"c": 2}, "a": 1})
    assert_unmutated()
    assert_unmutated()
    shared["b"]["c"] = 3
    with pytest.raises(AssertionError, match='"c":3'):
        assert_unmutated()
    assert_unmutated()


def test_metadata_is_parsed_alone_unless_somebody_holds_the_object() -> None:
    packed = Doc("", "", "", 0, b'{"metadata":{"name":"web"},"spec":{"replicas":1}}')
    assert packed.metadata() == {"name": "web"}
    assert packed.alive() is None
    held = packed.object()
    assert packed.metadata() is held["metadata"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_METADATA = st.dictionaries(
    st.sampled_from([
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
        "generateName", "selfLink",
    ]),
    _VALUES,
)  # fmt: skip


@given(metadata=_METADATA, rest=st.dictionaries(st.sampled_from(["apiVersion", "kind", "spec", "status"]), _VALUES))
def test_a_custom_object_is_parsed_to_all_of_it_but_managed_fields(metadata: Obj, rest: Obj) -> None:
    obj = {**rest, "metadata": metadata}
    assert parse_custom(orjson.dumps(obj)) == without_managed_fields(obj)


def test_a_view_is_made_once_and_watched_over() -> None:
    shared = Doc("", "", "", 0, orjson.dumps({"metadata": {"name": "a", "managedFields": []}})).object()
    view = shared.viewed(without_managed_fields)
    assert view == {"metadata": {"name": "a"}}
    assert shared.viewed(without_managed_fields) is view
    assert shared.viewed(dict) == shared
    changed = shared.viewed(without_managed_fields)
    changed["spec"] = {}
    with pytest.raises(AssertionError, match="the view is"):
        assert_unmutated()
    assert_unmutated()


def test_an_object_that_is_its_own_view_dies_with_its_last_user() -> None:
    packed = Doc("", "", "", 0, orjson.dumps({"metadata": {"name": "a"}}))
    shared = packed.object()
    assert shared.viewed(without_managed_fields) is shared
    del shared
    assert packed.alive() is None
