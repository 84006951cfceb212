"""Bindings from one version to the other and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.api import work, work_v1alpha1
from karmada.api.schema import kind_schema
from karmada.api.work import V1ALPHA1, V1ALPHA2
from karmada.api.work_v1alpha1 import convert, convert_all
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import prune
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.validation import validate
from tests.support.objects import kube_object

OLD = compile_schema(kind_schema(work_v1alpha1.ResourceBinding))
NEW = compile_schema(kind_schema(work.ResourceBinding))

words = st.text("abc-", min_size=1, max_size=5)
numbers = st.integers(0, 9)
quantities = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "500m", "2Gi", 3]))


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Obj]:
    return st.fixed_dictionaries(required, optional=optional)


condition = some(
    {
        "type": st.sampled_from(["Scheduled", "FullyApplied"]),
        "status": st.sampled_from(["True", "False"]),
        "reason": st.just("Because"),
        "message": words,
        "lastTransitionTime": st.just("2024-05-01T10:00:00Z"),
    },
    {},
)
clusters = st.lists(some({"name": words}, {"replicas": numbers}), max_size=3)
item = {"status": st.dictionaries(words, numbers), "applied": st.booleans(), "appliedMessage": words}
identity = {"apiVersion": words, "kind": words, "name": words}
located = {"namespace": words, "resourceVersion": words}
metadata = some({"name": words}, {"labels": st.dictionaries(words, words), "finalizers": st.lists(words)})


def bindings(api_version: str, spec: st.SearchStrategy[Obj], status: st.SearchStrategy[Obj]) -> st.SearchStrategy[Obj]:
    return some(
        {
            "apiVersion": st.just(api_version),
            "kind": st.sampled_from(["ResourceBinding", "ClusterResourceBinding"]),
            "metadata": metadata,
            "spec": spec,
        },
        {"status": status},
    )


old_bindings = bindings(
    V1ALPHA1,
    some(
        {"resource": some(identity, {**located, "replicas": numbers, "resourcePerReplicas": quantities})},
        {"clusters": clusters},
    ),
    some(
        {},
        {
            "conditions": st.lists(condition, max_size=2),
            "aggregatedStatus": st.lists(some({"clusterName": words}, item), max_size=2),
        },
    ),
)
new_bindings = bindings(
    V1ALPHA2,
    some(
        {"resource": some(identity, {**located, "uid": words})},
        {
            "clusters": clusters,
            "replicas": numbers,
            "replicaRequirements": some({}, {"resourceRequest": quantities, "priorityClassName": words}),
            "placement": st.just({"clusterAffinity": {"clusterNames": ["a"]}}),
            "propagateDeps": st.booleans(),
        },
    ),
    some(
        {},
        {
            "conditions": st.lists(condition, max_size=2),
            "schedulerObservedGeneration": numbers,
            "aggregatedStatus": st.lists(
                some({"clusterName": words}, {**item, "health": st.just("Healthy")}), max_size=2
            ),
        },
    ),
)


@given(old_bindings)
def test_the_first_version_survives_the_way_up_and_down(binding: Obj) -> None:
    assert convert(convert(binding, V1ALPHA2), V1ALPHA1) == binding


@given(new_bindings)
def test_what_comes_down_once_loses_nothing_more_the_second_time(binding: Obj) -> None:
    down = convert(binding, V1ALPHA1)
    assert convert(convert(down, V1ALPHA2), V1ALPHA1) == down


@given(old_bindings, new_bindings)
def test_what_comes_out_fits_the_other_schema(old: Obj, new: Obj) -> None:
    for binding, version, node in ((old, V1ALPHA2, NEW), (new, V1ALPHA1, OLD)):
        converted = copy_json(convert(binding, version))
        assert prune(node, converted) == []
        assert validate(node, converted) == []


@given(st.one_of(old_bindings, new_bindings))
def test_the_given_object_is_not_changed(binding: Obj) -> None:
    before = copy_json(binding)
    convert(binding, V1ALPHA1)
    convert(binding, V1ALPHA2)
    assert binding == before


def test_replicas_and_requests_change_their_place() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    old = kube_object(V1ALPHA1, "ResourceBinding", "web-deployment") | {
        "spec": {"resource": {**reference, "replicas": 3, "resourcePerReplicas": {"cpu": "1"}}}
    }
    assert convert(old, V1ALPHA2) == {
        "apiVersion": V1ALPHA2,
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment"},
        "spec": {
            "resource": reference,
            "replicas": 3,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
        },
    }


def test_what_the_first_version_cannot_say_is_lost() -> None:
    new = kube_object(V1ALPHA2, "ResourceBinding", "a") | {
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"},
            "placement": {},
            "schedulerName": "default-scheduler",
        },
        "status": {
            "schedulerObservedGeneration": 2,
            "aggregatedStatus": [{"clusterName": "m1", "applied": True, "health": "Healthy"}],
        },
    }
    assert convert(new, V1ALPHA1) == {
        "apiVersion": V1ALPHA1,
        "kind": "ResourceBinding",
        "metadata": {"name": "a"},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}},
        "status": {"aggregatedStatus": [{"clusterName": "m1", "applied": True}]},
    }


async def test_objects_already_in_the_version_stay_themselves() -> None:
    obj: Obj = {"apiVersion": V1ALPHA2, "kind": "ResourceBinding", "metadata": {}, "spec": {}}
    assert (await convert_all([obj], V1ALPHA2))[0] is obj


@pytest.mark.parametrize(("source", "target"), [(V1ALPHA1, "work.karmada.io/v1"), ("v1", V1ALPHA2), ("v1", "v1")])
def test_other_versions_are_refused(source: str, target: str) -> None:
    with pytest.raises(ValueError, match="cannot convert"):
        convert({"apiVersion": source, "kind": "ResourceBinding"}, target)
