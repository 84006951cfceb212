"""Which resources of which clusters go to which OpenSearch."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.search.opensearch.routes import Destination, Route, routes
from karmada.search.pending import Source
from karmada.search.registries import ALL
from tests.support.cached import KINDS
from tests.support.cases import cases

BY_GVK = {kind.gvk: kind for kind in KINDS.values()}
FIRST = Destination(("http://one:9200",), "karmada-system", "login")
CLUSTERS: list[Obj] = [{"metadata": {"name": name}} for name in ("member1", "member2")]


def registry(*selectors: Obj, clusters: tuple[str, ...] = (), store: Any = FIRST) -> Obj:
    spec: Obj = {"targetCluster": {"clusterNames": list(clusters)}, "resourceSelectors": list(selectors)}
    if store is not None:
        secret = {"namespace": store.secret_namespace, "name": store.secret_name}
        spec["backendStore"] = {"openSearch": {"addresses": list(store.addresses), "secretRef": secret}}
    return {"metadata": {"name": "r"}, "spec": spec}


def pods(namespace: str = "") -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace}


@cases(
    ([], {}),
    ([registry(pods(), store=None)], {}),
    ([registry(pods(), store=Destination((), "", ""))], {}),
    ([registry(pods(), clusters=("member1",))], {Source("member1", PODS): Route("Pod", ALL)}),
    (
        [registry(pods("a"), pods("b"), clusters=("member2",))],
        {Source("member2", PODS): Route("Pod", frozenset(("a", "b")))},
    ),
    (
        [registry(pods("a"), clusters=("member1",)), registry(pods(), clusters=("member1",))],
        {Source("member1", PODS): Route("Pod", ALL)},
    ),
    (
        [registry(pods("a"), clusters=("member1",)), registry(pods(), clusters=("member1",), store=None)],
        {Source("member1", PODS): Route("Pod", frozenset(("a",)))},
    ),
    (
        [registry({"apiVersion": "v1", "kind": "Node", "namespace": "a"}, clusters=("member1",))],
        {Source("member1", NODES): Route("Node", ALL)},
    ),
    ([registry({"apiVersion": "v1", "kind": "Unknown"})], {}),
)
def test_what_registries_with_an_opensearch_select_goes_there(
    registries: list[Obj], expected: dict[Source, Route]
) -> None:
    assert routes(registries, CLUSTERS, BY_GVK) == ({FIRST: expected} if expected else {})


def test_a_cluster_that_is_being_deleted_is_routed_nowhere() -> None:
    leaving: Obj = {"metadata": {"name": "member1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert routes([registry(pods())], [leaving], BY_GVK) == {}


def test_a_destination_is_named_without_credentials() -> None:
    given = Destination(("https://admin:hunter2@one:9200/x", "http://two:9200"), "", "")
    assert str(given) == "https://one:9200,http://two:9200"
