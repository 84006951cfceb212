"""ObjectMeta: names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.metadata import MAX_ANNOTATIONS, metadata_errors, metadata_update_errors
from karmada.kube.objects import names
from tests.support.cases import cases

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u1"}


def texts(meta: dict[str, Any], **kwargs: Any) -> list[str]:
    kwargs.setdefault("namespaced", True)
    return [str(error) for error in metadata_errors({"metadata": {"namespace": "ns", **meta}}, **kwargs)]


def test_an_ordinary_object_passes() -> None:
    meta = {
        "name": "web",
        "labels": {"app": "web", "app.kubernetes.io/name": ""},
        "annotations": {"example.com/Note": "ü" * 10},
        "ownerReferences": [OWNER],
        "finalizers": ["example.com/hold", "orphan"],
    }
    assert texts(meta, builtin=True) == []


@cases(
    ({}, "metadata.name: Required value: name or generateName is required"),
    ({"name": "A"}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of'),
    ({"name": "a", "generateName": "A-"}, 'metadata.generateName: Invalid value: "A-": a lowercase RFC 1123'),
    ({"name": "a", "labels": {"a b": "x"}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
    ({"name": "a", "labels": {"a": "x y"}}, 'metadata.labels: Invalid value: "x y": a valid label must be'),
    ({"name": "a", "annotations": {"a b": ""}}, 'metadata.annotations: Invalid value: "a b": name part must'),
    (
        {"name": "a", "annotations": {"a": "x" * MAX_ANNOTATIONS}},
        "metadata.annotations: Too long: may not be more than 262144 bytes",
    ),
    (
        {"name": "a", "ownerReferences": [{**OWNER, "uid": ""}]},
        'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
    ),
    (
        {"name": "a", "ownerReferences": [{**OWNER, "apiVersion": ""}]},
        'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
    ),
    (
        {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]},
        "finalizer orphan and foregroundDeletion cannot be both set",
    ),
    ({"name": "a", "finalizers": ["x/a b"]}, 'metadata.finalizers: Invalid value: "x/a b": name part must'),
    (
        {"name": "a", "finalizers": ["plain"]},
        'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it '
        "fully qualified",
    ),
    ({"name": "a", "namespace": ""}, "metadata.namespace: Required value"),
)
def test_what_is_wrong_is_reported(meta: dict[str, Any], wanted: str) -> None:
    found = texts(meta, builtin=True)
    assert len(found) == 1
    assert wanted in found[0]


def test_only_one_owner_controls() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "name": "other", "uid": "u2", "controller": True}]
    [error] = texts({"name": "a", "ownerReferences": owners})
    assert 'Found "true" in references for rs and other' in error


def test_custom_resources_may_have_plain_finalizers() -> None:
    assert texts({"name": "a", "finalizers": ["plain"]}) == []


def test_cluster_scoped_objects_have_no_namespace() -> None:
    assert texts({"name": "a"}, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_prefix_may_end_in_a_dash() -> None:
    assert texts({"name": "web-abcde", "generateName": "web-"}) == []


def test_a_kind_may_have_its_own_rule_for_names() -> None:
    assert texts({"name": "system:node"}, name_errors=names.path_segment) == []


def test_names_of_existing_objects_are_not_judged_again() -> None:
    assert texts({"name": "Old_Name"}, existing=True) == []


def test_annotations_are_counted_in_bytes() -> None:
    nearly = "ü" * (MAX_ANNOTATIONS // 2 - 1)
    assert texts({"name": "a", "annotations": {"a": nearly}}) == []
    assert texts({"name": "a", "annotations": {"a": nearly + "ü"}}) != []


BEFORE = {"name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "t", "generation": 3}


def test_no_finalizers_are_added_to_what_is_being_deleted() -> None:
    old = {"metadata": {**BEFORE, "deletionTimestamp": "t", "finalizers": ["a/b"]}}
    new = {"metadata": {**old["metadata"], "finalizers": ["a/b", "c/d"]}}
    [error] = metadata_update_errors(new, old)
    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"c/d"}'
    )
    assert metadata_update_errors({"metadata": {**old["metadata"], "finalizers": []}}, old) == []


@cases("name", "namespace", "uid", "creationTimestamp")
def test_identity_does_not_change(key: str) -> None:
    [error] = metadata_update_errors({"metadata": {**BEFORE, key: "x"}}, {"metadata": BEFORE})
    assert str(error) == f'metadata.{key}: Invalid value: "x": field is immutable'


def test_generation_does_not_go_back() -> None:
    [error] = metadata_update_errors({"metadata": {**BEFORE, "generation": 2}}, {"metadata": BEFORE})
    assert "must not be decremented" in str(error)
