"""What registries and clusters make of each other."""

from __future__ import annotations

from typing import Any

from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.search.registries import ALL, Upstream, covers, named_kinds, upstream, what
from tests.support.cases import cases

KINDS = {
    kind.gvk: kind
    for kind in (
        Kind(PODS, GVK("", "v1", "Pod"), True),
        Kind(NODES, GVK("", "v1", "Node"), False),
        Kind(DEPLOYMENTS, GVK("apps", "v1", "Deployment"), True),
    )
}


def registry(name: str, *selectors: tuple[str, ...], clusters: list[str] | None = None, **target: Any) -> Obj:
    """Selectors are (apiVersion, kind[, namespace])."""
    named = [dict(zip(("apiVersion", "kind", "namespace"), selector, strict=False)) for selector in selectors]
    target = {"clusterNames": clusters, **target} if clusters else target
    return {"metadata": {"name": name}, "spec": {"targetCluster": target, "resourceSelectors": named}}


def cluster(name: str, *, ready: bool = True, secret: bool = True, serves: str = "", deleting: bool = False) -> Obj:
    """`serves`: the only kind of v1 that it has; unknown when empty."""
    metadata: Obj = {"name": name, **({"deletionTimestamp": "2024-01-01T00:00:00Z"} if deleting else {})}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status: Obj = {"conditions": conditions}
    if serves:
        conditions.append({"type": "CompleteAPIEnablements", "status": "True"})
        status["apiEnablements"] = [{"groupVersion": "v1", "resources": [{"kind": serves}]}]
    spec = {"secretRef": {"namespace": "karmada-cluster", "name": name}} if secret else {}
    return {"metadata": metadata, "spec": spec, "status": status}


POD, NODE = ("v1", "Pod"), ("v1", "Node")


@cases(
    ([registry("a", POD)], ["m1", "m2"], {"m1": {PODS: ALL}, "m2": {PODS: ALL}}),
    ([registry("a", POD, clusters=["m2"])], ["m1", "m2"], {"m2": {PODS: ALL}}),
    ([registry("a", (*POD, "foo"))], ["m1"], {"m1": {PODS: frozenset({"foo"})}}),
    ([registry("a", (*POD, "foo"), (*POD, "bar"))], ["m1"], {"m1": {PODS: frozenset({"foo", "bar"})}}),
    ([registry("a", (*POD, "foo")), registry("b", POD)], ["m1"], {"m1": {PODS: ALL}}),
    ([registry("a", POD), registry("b", (*POD, "foo"))], ["m1"], {"m1": {PODS: ALL}}),
    (
        [registry("a", (*POD, "foo"), clusters=["m1"]), registry("b", (*POD, "bar"))],
        ["m1", "m2"],
        {"m1": {PODS: frozenset({"foo", "bar"})}, "m2": {PODS: frozenset({"bar"})}},
    ),
    ([registry("a", (*NODE, "foo"))], ["m1"], {"m1": {NODES: ALL}}),
    ([registry("a", ("example.io/v1", "Unknown"))], ["m1"], {"m1": {}}),
    ([registry("a", POD, exclude=["m1"])], ["m1"], {}),
    ([], ["m1"], {}),
)
def test_a_resource_is_cached_once_with_the_union_of_its_namespaces(
    registries: list[Obj], clusters: list[str], wanted: Obj
) -> None:
    assert what(registries, [cluster(name) for name in clusters], KINDS).by_cluster == wanted


def test_only_clusters_that_can_be_read_are_cached_and_the_others_are_named_with_the_reason() -> None:
    clusters = [
        cluster("good"), cluster("down", ready=False), cluster("pull", secret=False), cluster("going", deleting=True),
    ]  # fmt: skip
    found = what([registry("a", POD)], clusters, KINDS)
    assert set(found.by_cluster) == {"good"}
    coverage = found.coverage["a"]
    assert coverage.cached == ("good",)
    assert set(coverage.left_out) == {"down", "pull"}
    assert coverage.left_out["down"] == "it is not Ready"
    assert "spec.secretRef" in coverage.left_out["pull"]


@cases(("Pod", {PODS: ALL}), ("Node", {}), ("", {PODS: ALL}))
def test_a_kind_that_a_cluster_is_known_not_to_serve_is_left_out_there(serves: str, cached: Any) -> None:
    assert what([registry("a", POD)], [cluster("m1", serves=serves)], KINDS).by_cluster == {"m1": cached}


def test_a_kind_is_registered_also_where_no_cluster_is_selected() -> None:
    found = what([registry("a", POD, ("apps/v1", "Deployment"), clusters=["none"])], [cluster("m1")], KINDS)
    assert found.registered == {PODS, DEPLOYMENTS}
    assert found.by_cluster == {}


def test_kinds_that_nobody_serves_are_reported() -> None:
    found = what([registry("a", POD, ("example.io/v1", "Unknown"))], [cluster("m1")], KINDS)
    assert found.coverage["a"].unknown == (GVK("example.io", "v1", "Unknown"),)


def test_kinds_of_all_selectors_are_named_once() -> None:
    assert named_kinds([registry("a", POD, (*POD, "foo")), registry("b", NODE, POD)]) == [
        GVK("", "v1", "Pod"),
        GVK("", "v1", "Node"),
    ]


@cases(
    (ALL, Upstream("", False), ["foo", ""], []),
    (frozenset({"foo"}), Upstream("foo", False), ["foo"], ["bar", ""]),
    (frozenset({"foo", "bar"}), Upstream("", True), ["foo", "bar"], ["baz", ""]),
)
def test_one_namespace_is_read_alone_and_several_as_all(
    namespaces: frozenset[str], read: Upstream, covered: list[str], uncovered: list[str]
) -> None:
    assert upstream(namespaces) == read
    assert all(covers(namespaces, namespace) for namespace in covered)
    assert not any(covers(namespaces, namespace) for namespace in uncovered)
