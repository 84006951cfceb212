"""How objects become bytes, keys and watch frames, and how parsed objects are shared."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects import doc as shared
from karmada.kube.objects.codec import ZlibDictionary, with_revision
from karmada.kube.objects.doc import NOBODY, Doc
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.storage.interface import Event, Stored
from karmada.kube.server.storage.packing import PACKED, pack
from karmada.kube.server.watchcache.entry import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    change_of,
    doc_of,
    encode_value,
    prefix,
    split_key,
    storage_key,
    stored_doc,
    written_doc,
)
from tests.support.cases import cases

PODS = GroupResource("", "pods")
ROLES = GroupResource("rbac.authorization.k8s.io", "clusterroles")


def pod(**metadata: Any) -> dict[str, Any]:
    return {"kind": "Pod", "spec": {"x": 1}, "metadata": {"name": "p", **metadata}, "apiVersion": "v1"}


def entry(revision: int = 7, **metadata: Any) -> Doc:
    return doc_of("core/pods/a/p", encode_value(pod(**metadata)), revision)


@cases(
    (PODS, "a", "p", "core/pods/a/p"),
    (ROLES, "", "system:node", "rbac.authorization.k8s.io/clusterroles/system:node"),
)
def test_a_key_names_group_resource_namespace_and_name(
    resource: GroupResource, namespace: str, name: str, key: str
) -> None:
    assert storage_key(resource, namespace, name) == key
    assert key.startswith(prefix(resource, namespace))
    assert split_key(key) == (resource, namespace, name)


def test_a_value_starts_with_its_type_and_has_no_resource_version() -> None:
    obj = pod(resourceVersion="5", labels={"a": "b"})
    before = orjson.dumps(obj)
    value = encode_value(obj)
    assert value == b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"x":1}}'
    assert orjson.dumps(obj) == before


def test_the_revision_is_spliced_in_behind_metadata() -> None:
    assert with_revision(b'{"metadata":{"name":"p"},"x":{"metadata":{}}}', 12) == (
        b'{"metadata":{"resourceVersion":"12","name":"p"},"x":{"metadata":{}}}'
    )
    assert with_revision(b'{"metadata":{}}', 3) == b'{"metadata":{"resourceVersion":"3"}}'
    tricky = encode_value(pod(annotations={"x": '"metadata":{', '"metadata":{': "y"}) | {"kind": '"metadata":{'})
    parsed = orjson.loads(with_revision(tricky, 9))
    assert parsed["metadata"]["resourceVersion"] == "9"
    assert parsed["kind"] == '"metadata":{'


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), _json, max_size=4), st.dictionaries(st.text(), _json, max_size=4), st.integers(1, 2**63)
)
def test_encoding_and_splicing_change_nothing_but_the_resource_version(
    body: dict[str, Any], metadata: dict[str, Any], revision: int
) -> None:
    metadata.pop("labels", None)
    obj = {**body, "apiVersion": "v1", "kind": "X", "metadata": metadata}
    found = doc_of("core/xs/n", encode_value(obj), revision)
    assert found.object() == {**obj, "metadata": {**metadata, "resourceVersion": str(revision)}}
    later = found.at(revision + 1)
    assert later.object() == {**obj, "metadata": {**metadata, "resourceVersion": str(revision + 1)}}


def test_readers_share_one_parsed_object_while_one_of_them_holds_it() -> None:
    e = entry()
    first = e.object()
    assert e.object() is first
    marker = id(first["spec"])
    del first
    gc.collect()
    assert e.alive is NOBODY, "nothing is left of it"
    kept = e.object()
    assert kept["metadata"]["resourceVersion"] == "7"
    assert orjson.dumps(kept) == e.raw
    assert marker  # the old one is gone; the new one is equal, not the same


@cases("core/nodes/n", "core/pods/a/p", "apps/deployments/a-b/c.d")
def test_the_key_is_made_of_strings_that_entries_share(key: str) -> None:
    one, other = (doc_of(key, encode_value(pod()), revision) for revision in (1, 2))
    assert one.key == other.key == key
    assert one.name is other.name
    assert one.namespace is other.namespace
    assert one._start is other._start


def test_labels_are_kept_only_while_the_object_is_not_compressed() -> None:
    raw = encode_value({**pod(labels={"a": "b"}), "spec": {"text": "x" * 1_000}})
    e = doc_of("core/pods/a/p", raw, 1)
    assert e.labels is e.labels
    e.compress(ZlibDictionary(raw))
    assert e._labels is None
    assert e.labels == {"a": "b"}
    assert e._labels is None


@cases(
    ({"labels": {"a": "b"}}, {"a": "b"}),
    ({}, {}),
    ({"labels": None}, {}),
    ({"annotations": {"labels": "x"}}, {}),
)
def test_labels_are_read_without_the_rest(metadata: dict[str, Any], labels: dict[str, str]) -> None:
    e = doc_of("core/pods/a/p", encode_value({**pod(**metadata), "spec": {"metadata": {"labels": {"not": "mine"}}}}), 1)
    assert dict(e.labels) == labels
    assert e.alive is NOBODY


def test_a_change_is_encoded_once_for_all() -> None:
    old, new = entry(7), entry(8, labels={"x": "y"})
    change = Change(MODIFIED, new, old)
    assert change.frame() is change.frame()
    assert orjson.loads(change.frame()) == {"type": "MODIFIED", "object": new.object()}
    assert change.frame().endswith(b"}\n")
    assert change.disappearance() is change.disappearance()
    assert orjson.loads(change.disappearance().frame()) == {"type": "DELETED", "object": old.at(8).object()}
    assert orjson.loads(change.appearance().frame()) == {"type": "ADDED", "object": new.object()}


def test_a_deletion_carries_the_last_content_under_its_own_revision() -> None:
    old = entry(7, labels={"x": "y"})
    change = change_of(old.key, None, 9, old)
    assert (change.type, change.revision, change.previous) == (DELETED, 9, old)
    assert change.entry.object() == {**old.object(), "metadata": {**old.object()["metadata"], "resourceVersion": "9"}}
    assert change_of("core/pods/a/p", entry(1), 1, None).type == ADDED
    with pytest.raises(ValueError, match="did not exist"):
        change_of("core/pods/a/p", None, 1, None)


@pytest.fixture
def detector() -> Iterator[None]:
    shared.detect_mutations()
    yield
    shared.detect_mutations(False)


@pytest.mark.usefixtures("detector")
def test_the_detector_finds_who_changed_a_shared_object() -> None:
    held = entry(labels={"a": "b"}).object()
    shared.assert_unmutated()
    held["metadata"]["labels"]["a"] = "c"
    with pytest.raises(AssertionError, match="shared objects were changed"):
        shared.assert_unmutated()
    shared.assert_unmutated()  # reported once
    held["spec"] = {}
    del held
    with pytest.raises(AssertionError, match=r'"spec":\{\}'):
        shared.assert_unmutated()


@pytest.mark.usefixtures("detector")
def test_the_detector_finds_changes_of_objects_that_are_gone() -> None:
    held = entry().object()
    held["metadata"].pop("name")
    del held
    gc.collect()
    with pytest.raises(AssertionError, match='"name":"p"'):
        shared.assert_unmutated()
    entry().object()
    shared.assert_unmutated()


@cases(0, 300)
def test_an_object_is_stored_only_if_lists_and_reviews_can_be_written_around_it(siblings: int) -> None:
    def deep(levels: int) -> dict[str, Any]:
        value: Any = {}
        for _ in range(levels - 2):
            value = [value]
        return {**pod(), "spec": value, "others": [{}] * siblings}

    storable = 254 - 50
    assert orjson.loads(encode_value(deep(storable)))["others"] == [{}] * siblings
    with pytest.raises(BadRequest, match="cannot be stored"):
        encode_value(deep(storable + 1))


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=300), max_size=8), st.booleans())
def test_an_entry_becomes_what_the_store_has_packed_and_stays_the_same(annotations: dict[str, str], held: bool) -> None:
    value = encode_value(pod(labels={"app": "web"}, annotations=annotations))
    event = Event("core/pods/a/p", value, 7, None, pack(value), orjson.loads(value))
    found = written_doc(event, split_key(event.key))
    assert found is not None
    raw, parsed = found.raw, orjson.loads(found.raw)
    reader = found.object() if held else None
    assert found._json is not None
    assert found.is_packed == pack(value).startswith(PACKED)
    found.drop_json()
    assert (found._json is not None) != found.is_packed
    assert found.raw == raw
    assert found.object() == parsed
    assert reader is None or found.object() is reader
    assert (found.labels, found.key, found.at(8).raw) == ({"app": "web"}, "core/pods/a/p", with_revision(value, 8))
    assert found.size == len(pack(value)) or not pack(value).startswith(PACKED)
    other = written_doc(event._replace(obj=None), split_key(event.key))
    assert other is not None
    assert (other.raw, other.size) == (raw, found.size)


@cases(orjson.loads, shared.parse_custom)
def test_what_is_parsed_of_packed_bytes_has_the_resource_version(parse: Any) -> None:
    value = encode_value(pod(annotations={"text": "a" * 600}))
    for stored in (value, pack(value)):
        entry = stored_doc(Stored("core/pods/n/p", stored, 7))
        assert entry.parsed(parse) == parse(entry.raw)
        assert entry.parsed(parse)["metadata"]["resourceVersion"] == "7"
