"""Three-way merges: the file's word counts where it says something, everybody else's where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.patch.strategic import apply_strategic_merge_patch
from karmada.kube.patch.threeway import PatchConflict, three_way_merge_patch, three_way_strategic_patch
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node
from tests.support.cases import cases

POD = Definitions.load().node_for(GVK("", "v1", "Pod"))
BUDGET = Definitions.load().node_for(GVK("policy", "v1", "PodDisruptionBudget"))
DEPLOYMENT = Definitions.load().node_for(GVK("apps", "v1", "Deployment"))

NAMES = st.sampled_from("abcd")
VALUES = st.integers(0, 3)
MAPS = st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
OBJECTS = st.dictionaries(NAMES, MAPS | st.lists(VALUES, max_size=2), max_size=4)


def named(kind: str) -> Any:
    return st.lists(
        st.fixed_dictionaries({"name": NAMES}, optional={"value": st.sampled_from("xy"), kind: st.sampled_from("pq")}),
        max_size=4,
        unique_by=lambda item: item["name"],
    )


PODS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"labels": st.dictionaries(NAMES, st.sampled_from("xy"), max_size=3)})},
    optional={
        "spec": st.fixed_dictionaries(
            {
                "containers": st.lists(
                    st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES, "env": named("extra")}),
                    max_size=3,
                    unique_by=lambda item: item["name"],
                )
            },
            optional={"nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2)},
        )
    },
)


def holds(whole: Any, part: Any) -> bool:
    """Whether all that the part says is in the whole; lists of named items by name, other lists as they are."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and holds(whole[key], value) for key, value in part.items())
    if isinstance(part, list) and part and all(isinstance(item, dict) and "name" in item for item in part):
        found = {item["name"]: item for item in whole}
        return all(item["name"] in found and holds(found[item["name"]], item) for item in part)
    return (isinstance(part, list) and not part) or whole == part


@given(OBJECTS, OBJECTS, OBJECTS)
def test_after_a_merge_patch_the_file_is_obeyed(original: Any, modified: Any, current: Any) -> None:
    before = copy_json([original, modified, current])
    patch = three_way_merge_patch(original, modified, current)
    result = apply_merge_patch(current, patch)
    assert [original, modified, current] == before
    assert holds(result, modified)
    assert all(key not in result for key in original if key not in modified)
    assert all(
        result.get(key) == value for key, value in current.items() if key not in original and key not in modified
    )
    assert three_way_merge_patch(modified, modified, result) == {}


@given(PODS, PODS, PODS)
def test_after_a_strategic_patch_the_file_is_obeyed(original: Any, modified: Any, current: Any) -> None:
    before = copy_json([original, modified, current])
    patch = three_way_strategic_patch(original, modified, current, POD)
    result = apply_strategic_merge_patch(current, patch, POD)
    assert [original, modified, current] == before
    assert holds(result, modified)
    for old, new, place in _places(original, modified, result):
        gone = {item["name"] for item in old} - {item["name"] for item in new}
        assert gone.isdisjoint({item["name"] for item in place})
    again = three_way_strategic_patch(modified, modified, result, POD)
    assert apply_strategic_merge_patch(result, again, POD) == result


def _places(original: Any, modified: Any, result: Any) -> list[tuple[list[Any], list[Any], list[Any]]]:
    """The containers of all three, if the file still has any."""
    if "spec" not in original or "spec" not in modified:
        return []
    lists = [obj["spec"]["containers"] for obj in (original, modified, result)]
    return [(lists[0], lists[1], lists[2])]


@given(PODS, PODS)
def test_an_object_nobody_else_touched_becomes_what_the_file_says(original: Any, modified: Any) -> None:
    patch = three_way_strategic_patch(original, modified, original, POD)
    assert apply_strategic_merge_patch(original, patch, POD) == modified


def pod(*containers: Any, **spec: Any) -> Any:
    return {"spec": {"containers": list(containers), **spec}}


@cases(
    ({}, {"a": 1}, {"a": 1, "b": 2}, {}, POD),
    ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 3}, {"b": None}, POD),
    ({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, {"b": None}, POD),
    (
        pod({"name": "a", "image": "1"}, {"name": "b"}),
        pod({"name": "a", "image": "2"}),
        pod({"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "a"}],
                "containers": [{"name": "a", "image": "2"}, {"$patch": "delete", "name": "b"}],
            }
        },
        POD,
    ),
    (
        pod({"name": "a"}),
        pod({"name": "a"}),
        pod({"name": "sidecar"}, {"name": "a"}),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}]}},
        POD,
    ),
    (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["c", "b"]}},
        {"metadata": {"finalizers": ["a", "b", "x"]}},
        {
            "metadata": {
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["c", "b"],
                "finalizers": ["c"],
            }
        },
        POD,
    ),
    (
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
        pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
        {
            "spec": {
                "$setElementOrder/volumes": [{"name": "v"}],
                "volumes": [
                    {"$retainKeys": ["hostPath", "name"], "emptyDir": None, "hostPath": {"path": "/"}, "name": "v"}
                ],
            }
        },
        POD,
    ),
    (
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        BUDGET,
    ),
    (
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": None, "type": "Recreate"}}},
        DEPLOYMENT,
    ),
)
def test_strategic_patches(original: Any, modified: Any, current: Any, patch: Any, node: Node) -> None:
    assert three_way_strategic_patch(original, modified, current, node) == patch


def test_conflicts_are_reported_when_nothing_may_be_overwritten() -> None:
    with pytest.raises(PatchConflict) as refusal:
        three_way_strategic_patch({"data": {"a": 1}}, {"data": {"a": 2}}, {"data": {"a": 3}}, None, overwrite=False)
    assert (refusal.value.patch, refusal.value.changes) == ({"data": {"a": 2}}, {"data": {"a": 3}})
    patch = three_way_strategic_patch(
        {"data": {"a": 1}}, {"data": {"a": 2}}, {"data": {"a": 1, "b": 1}}, None, overwrite=False
    )
    assert patch == {"data": {"a": 2}}


def test_nulls_of_a_file_take_away() -> None:
    patch = three_way_strategic_patch({}, {"data": {"a": None}}, {"data": {"a": 1, "b": 2}}, None)
    assert apply_strategic_merge_patch({"data": {"a": 1, "b": 2}}, patch, None) == {"data": {"b": 2}}
