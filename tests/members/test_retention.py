"""What of a member's object stays when it is applied again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.admission.work import record
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.members.retention import carries, in_place, is_managed, released, retained, version_of

MANAGED_ANNOTATIONS = "resourcetemplate.karmada.io/managed-annotations"
MANAGED_LABELS = "resourcetemplate.karmada.io/managed-labels"

marks = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12"), max_size=6)


def obj(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **more: Any) -> Obj:
    metadata: Obj = {"name": "x", "namespace": "n"}
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, **more}, "data": {"k": "v"}}


def test_what_the_server_over_there_needs_is_taken_from_its_object() -> None:
    observed = obj(resourceVersion="7", finalizers=["f"], ownerReferences=[{"uid": "o"}], uid="u", generation=3)
    wanted = retained(obj(finalizers=["ours"]), observed)
    assert wanted["metadata"] == {
        "name": "x",
        "namespace": "n",
        "resourceVersion": "7",
        "finalizers": ["f"],
        "ownerReferences": [{"uid": "o"}],
    }


def test_keys_that_came_from_here_and_were_removed_here_go() -> None:
    observed = obj(
        {"gone": "1", "theirs": "1", "both": "old"},
        {"gone": "1", "theirs": "1", MANAGED_LABELS: "gone,both", MANAGED_ANNOTATIONS: f"gone,{MANAGED_LABELS}"},
    )
    wanted = retained(obj({"both": "new"}, {"new": "1"}), observed)
    assert wanted["metadata"]["labels"] == {"theirs": "1", "both": "new"}
    assert wanted["metadata"]["annotations"] == {
        "theirs": "1",
        "new": "1",
        MANAGED_ANNOTATIONS: f"gone,{MANAGED_LABELS}",
    }


@given(ours=marks, before=marks, theirs=marks, notes=marks)
def test_applying_twice_is_applying_once(ours: Any, before: Any, theirs: Any, notes: Any) -> None:
    applied = obj(dict(before), dict(before))
    record(applied, "id")
    observed = copy_json(applied)
    observed["metadata"] |= {"resourceVersion": "7", "uid": "u", "creationTimestamp": "t"}
    observed["metadata"]["labels"] = {**theirs, **observed["metadata"]["labels"]}
    observed["metadata"]["annotations"] = {**notes, **observed["metadata"]["annotations"]}
    desired = obj(dict(ours), dict(ours))
    record(desired, "id")
    once = retained(desired, observed)
    assert carries(once, desired)
    for field in ("labels", "annotations"):
        foreign = (theirs if field == "labels" else notes).keys() - before.keys()
        assert all(key in once["metadata"][field] for key in foreign)
        assert (
            not (before.keys() - ours.keys() - (theirs if field == "labels" else notes).keys())
            & once["metadata"][field].keys()
        )
    stored = {**once, "metadata": {**once["metadata"], "uid": "u", "creationTimestamp": "t"}}
    assert in_place(retained(desired, stored), stored)


def test_an_object_with_more_than_its_server_adds_is_not_in_place() -> None:
    observed = obj({"a": "1"}, resourceVersion="7")
    assert in_place(retained(obj({"a": "1"}), observed), observed)
    assert in_place(retained(obj({"a": "1"}), observed), {**observed, "status": {"x": 1}})
    other = {**observed, "data": {"k": "v", "more": "x"}}
    assert not in_place(retained(obj({"a": "1"}), other), other)


def test_nothing_is_changed_in_place() -> None:
    desired, observed = obj({"a": "1"}, {}), obj({"b": "1"}, {"c": "1"}, finalizers=["f"])
    before = copy_json([desired, observed])
    retained(desired, observed)
    released(desired)
    in_place(desired, observed)
    assert [desired, observed] == before


def test_a_version_is_the_generation_where_there_is_one() -> None:
    assert version_of(obj(generation=3, resourceVersion="7")) == "gen:3"
    assert version_of(obj(resourceVersion="7")) == "rv:7"


def test_only_the_exact_mark_means_managed() -> None:
    assert is_managed(obj({"karmada.io/managed": "true"}))
    assert not is_managed(obj({"karmada.io/managed": "yes"}))
    assert not is_managed(obj())


def test_releasing_takes_off_our_marks_and_those_of_the_kind_of_policy() -> None:
    marked = {
        "propagationpolicy.karmada.io/permanent-id": "1",
        "clusterpropagationpolicy.karmada.io/permanent-id": "1",
        "resourcebinding.karmada.io/permanent-id": "1",
        "clusterresourcebinding.karmada.io/permanent-id": "1",
        "work.karmada.io/permanent-id": "1",
        "karmada.io/managed": "true",
        "own": "1",
    }
    with_namespace = released(obj(marked))["metadata"]["labels"]
    assert with_namespace.keys() == {
        "own",
        "clusterpropagationpolicy.karmada.io/permanent-id",
        "clusterresourcebinding.karmada.io/permanent-id",
    }
    without = released(obj(marked, namespace=""))["metadata"]["labels"]
    assert without.keys() == {
        "own",
        "propagationpolicy.karmada.io/permanent-id",
        "clusterresourcebinding.karmada.io/permanent-id",
    }
