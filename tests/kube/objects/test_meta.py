"""Metadata access, owner references, conditions and copies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "labels": {"a": "b"}},
}


def test_metadata_is_read() -> None:
    assert (meta.name(DEPLOYMENT), meta.namespace(DEPLOYMENT), meta.uid(DEPLOYMENT)) == ("web", "shop", "u-1")
    assert (meta.resource_version(DEPLOYMENT), meta.labels(DEPLOYMENT)) == ("7", {"a": "b"})
    assert meta.key(DEPLOYMENT) == ("shop", "web")
    assert not meta.is_deleting(DEPLOYMENT)
    assert meta.is_deleting({"metadata": {"deletionTimestamp": "2023-11-14T22:13:20Z"}})


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {}}])
def test_absent_metadata_reads_as_empty(obj: dict[str, Any]) -> None:
    read = (meta.name, meta.namespace, meta.uid, meta.resource_version, meta.labels, meta.annotations, meta.finalizers)
    assert not any(each(obj) for each in read)
    assert meta.owner_references(obj) == []
    assert meta.controller_of(obj) is None


def test_an_owner_reference_leads_back_to_its_owner() -> None:
    child = {"metadata": {"ownerReferences": [{"uid": "other"}, meta.make_owner(DEPLOYMENT)]}}
    assert meta.controller_of(child) == {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    assert meta.is_owned_by(child, DEPLOYMENT)
    plain = meta.make_owner(DEPLOYMENT, controller=False)
    assert "controller" not in plain
    assert meta.controller_of({"metadata": {"ownerReferences": [plain]}}) is None


def test_a_condition_moves_its_transition_time_only_with_its_status() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Up"}
    first = meta.set_condition(None, ready, 0)
    assert first == [{**ready, "lastTransitionTime": "1970-01-01T00:00:00Z"}]
    second = meta.set_condition(first, {**ready, "reason": "StillUp"}, 60)
    assert second == [{**ready, "reason": "StillUp", "lastTransitionTime": "1970-01-01T00:00:00Z"}]
    third = meta.set_condition(second, {**ready, "status": "False"}, 120)
    assert third[0]["lastTransitionTime"] == "1970-01-01T00:02:00Z"
    assert first[0]["reason"] == "Up", "the lists given are never changed"


def test_conditions_keep_their_order() -> None:
    conditions = meta.set_condition([], {"type": "A", "status": "True"}, 0)
    conditions = meta.set_condition(conditions, {"type": "B", "status": "True"}, 0)
    conditions = meta.set_condition(conditions, {"type": "A", "status": "False"}, 0)
    assert [condition["type"] for condition in conditions] == ["A", "B"]
    assert meta.has_condition(conditions, "B")
    assert not meta.has_condition(conditions, "A")
    assert meta.get_condition(None, "A") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def containers(value: Any) -> set[int]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = {id(value)} if isinstance(value, (dict, list)) else set()
    return own.union(*(containers(each) for each in inner))


@given(json_values)
def test_a_copy_is_equal_and_shares_no_container(value: Any) -> None:
    copied = copy_json(value)
    assert copied == value
    assert not containers(copied) & containers(value)
