"""Affinities against clusters, selectors against resources, kinds against what a cluster serves."""

from __future__ import annotations

from typing import Any

from karmada.api.matching import (
    ResourceSelector,
    ResourceSelectors,
    api_enablement,
    cluster_matches,
    selector_priority,
    selectors_priority,
)
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object


def cluster(name: str = "m1", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def by_field(*expressions: tuple[str, str, list[str]]) -> Obj:
    return {
        "fieldSelector": {
            "matchExpressions": [dict(zip(("key", "operator", "values"), e, strict=True)) for e in expressions]
        }
    }


@cases(
    ({}, cluster(), True),
    ({"clusterNames": ["m1"]}, cluster(), True),
    ({"clusterNames": ["m2"]}, cluster(), False),
    ({"clusterNames": []}, cluster(), True),
    ({"exclude": ["m1"]}, cluster(), False),
    ({"exclude": ["m1"], "clusterNames": ["m1"]}, cluster(), False),
    ({"labelSelector": {}}, cluster(), True),
    ({"labelSelector": {"matchLabels": {"a": "b"}}}, cluster(labels={"a": "b"}), True),
    ({"labelSelector": {"matchLabels": {"a": "b"}}}, cluster(), False),
    ({"labelSelector": {"matchLabels": {"a": "b"}}, "clusterNames": ["m2"]}, cluster(labels={"a": "b"}), False),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, cluster(), False),
    (by_field(), cluster(), True),
    (by_field(("zone", "In", ["a"])), cluster(zones=["a", "b"]), True),
    (by_field(("zone", "In", ["c"])), cluster(zones=["a", "b"]), False),
    (by_field(("zone", "In", ["a"])), cluster(), False),
    (by_field(("zone", "NotIn", ["a"])), cluster(zones=["a", "b"]), False),
    (by_field(("zone", "NotIn", ["c"])), cluster(zones=["a", "b"]), True),
    (by_field(("zone", "NotIn", ["c"])), cluster(), True),
    (by_field(("zone", "Exists", [])), cluster(zones=["a"]), True),
    (by_field(("zone", "Exists", [])), cluster(), False),
    (by_field(("zone", "DoesNotExist", [])), cluster(), True),
    (by_field(("zone", "Gt", ["1"])), cluster(zones=["2"]), False),
    (by_field(("region", "In", ["eu"])), cluster(region="eu"), True),
    (by_field(("region", "In", ["eu"])), cluster(region="us"), False),
    (by_field(("region", "In", ["eu"])), cluster(), False),
    (by_field(("region", "NotIn", ["eu"])), cluster(region=""), True),
    (by_field(("provider", "In", ["x"]), ("region", "In", ["eu"])), cluster(provider="x", region="eu"), True),
    (by_field(("provider", "In", ["x"]), ("region", "In", ["eu"])), cluster(provider="x", region="us"), False),
    (by_field(("provider", "In", ["x"]), ("zone", "In", ["a"])), cluster(provider="x", zones=["b"]), False),
)
def test_an_affinity_selects(affinity: Obj, given: Obj, matches: bool) -> None:
    assert cluster_matches(affinity, given) is matches


DEPLOYMENT = kube_object("apps/v1", "Deployment", "web", "default", labels={"app": "web"})


@cases(
    ({}, 1),
    ({"kind": "StatefulSet"}, 0),
    ({"apiVersion": "apps/v1beta1"}, 0),
    ({"namespace": "default"}, 1),
    ({"namespace": "other"}, 0),
    ({"name": "web"}, 3),
    ({"name": "other"}, 0),
    ({"labelSelector": {"matchLabels": {"app": "web"}}}, 2),
    ({"labelSelector": {"matchLabels": {"app": "db"}}}, 0),
    ({"labelSelector": {}}, 2),
    ({"name": "web", "labelSelector": {"matchLabels": {"app": "db"}}}, 3),
)
def test_a_selector_selects_more_or_less_precisely(more: Obj, priority: int) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", **more}
    assert selector_priority(selector, DEPLOYMENT) == ResourceSelector(selector).priority(DEPLOYMENT) == priority


def test_of_several_selectors_the_most_precise_counts() -> None:
    by_kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert selectors_priority([by_kind, {**by_kind, "name": "web"}, {**by_kind, "name": "x"}], DEPLOYMENT) == 3
    assert selectors_priority([], DEPLOYMENT) == ResourceSelectors.of([]).priority(DEPLOYMENT) == 0


@cases(
    ("True", GVK("apps", "v1", "Deployment"), "APIEnabled"),
    ("False", GVK("apps", "v1", "Deployment"), "APIEnabled"),
    ("True", GVK("apps", "v1", "StatefulSet"), "APIDisabled"),
    ("False", GVK("apps", "v1", "StatefulSet"), "APIUnknown"),
    ("True", GVK("batch", "v1", "Job"), "APIDisabled"),
)
def test_a_kind_is_served_or_not_or_nobody_knows(complete: str, gvk: GVK, expected: str) -> None:
    enablements = [
        {"groupVersion": "v1"},
        {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]},
    ]
    conditions = [{"type": "CompleteAPIEnablements", "status": complete}]
    assert api_enablement({"status": {"apiEnablements": enablements, "conditions": conditions}}, gvk) == expected


def test_nothing_is_known_of_a_cluster_without_a_status() -> None:
    assert api_enablement({}, GVK("apps", "v1", "Deployment")) == "APIUnknown"
