from __future__ import annotations

import pytest

from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.search.proxy.parsing import inner_info, proxied
from karmada.search.proxy.reads import decided_in
from tests.support.cases import cases

PROXY = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"


@cases(
    ("GET", "/api/v1/pods", "", "list", "", ""),
    ("HEAD", "/api/v1/namespaces/a/pods/p", "", "get", "p", ""),
    ("GET", "/api/v1/pods", "watch=true", "watch", "", ""),
    ("GET", "/api/v1/pods", "watch=false", "list", "", ""),
    ("GET", "/api/v1/namespaces/a/pods/p", "watch=true", "get", "p", ""),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dp", "list", "", ""),
    ("GET", "/api/v1/watch/pods", "", "list", "", ""),
    ("GET", "/api/v1/watch/pods", "watch=1", "watch", "", ""),
    ("POST", "/api/v1/namespaces/a/pods", "", "create", "", ""),
    ("POST", "/api/v1/namespaces/a/pods/p/eviction", "", "create", "p", "eviction"),
    ("GET", "/api/v1/namespaces/a/pods/p/log", "", "get", "p", "log"),
    ("PUT", "/apis/apps/v1/namespaces/a/deployments/d", "", "update", "d", ""),
    ("PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", "", "patch", "d", "scale"),
    ("DELETE", "/api/v1/namespaces/a/pods/p", "", "delete", "p", ""),
    ("DELETE", "/api/v1/namespaces/a/pods", "", "deletecollection", "", ""),
    ("DELETE", "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name%3Dp", "deletecollection", "", ""),
)
def test_the_verb_of_the_request_within(
    method: str, path: str, query: str, verb: str, name: str, subresource: str
) -> None:
    info = inner_info(method, path, Query.parse(query))
    assert (info.verb, info.name, info.subresource) == (verb, name, subresource)


@cases("/api", "/apis", "/apis/apps/v1", "/version", "/openapi/v3/api/v1", "/")
def test_other_paths_are_no_resources(path: str) -> None:
    assert not inner_info("GET", path, Query({})).is_resource


def in_process(path: str, query: str = "") -> Request:
    parsed = Query.parse(query)
    return Request("GET", parse_path("GET", path, parsed), parsed, {}, User("tess"))


def test_the_path_behind_the_proxy_is_the_path_of_the_request_within() -> None:
    inner = proxied(in_process(f"{PROXY}/api/v1/namespaces/a/pods", "limit=5"))
    assert (inner.path, inner.query, inner.info.namespace) == ("/api/v1/namespaces/a/pods", "limit=5", "a")


@cases(
    (f"{PROXY}/api/v1/pods", "dryRun=All", "dryRun is not supported"),
    (f"{PROXY}/api/v1/pods", "dryRun=", "dryRun is not supported"),
    (f"{PROXY}{PROXY}/api/v1/pods", "", "the path leads to the proxy itself"),
)
def test_requests_that_the_proxy_cannot_keep_are_refused(path: str, query: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        proxied(in_process(path, query))


@cases(
    ("/api/v1/namespaces/a/pods/p", Kind(GVR("", "v1", "pods"), GVK("", "v1", "Pod"), namespaced=True), "a"),
    ("/api/v1/namespaces/a", Kind(GVR("", "v1", "namespaces"), GVK("", "v1", "Namespace"), namespaced=False), "a"),
    ("/api/v1/namespaces/a/nodes/n", Kind(GVR("", "v1", "nodes"), GVK("", "v1", "Node"), namespaced=False), ""),
)
def test_the_roles_of_a_namespace_count_for_its_objects_and_itself(path: str, kind: Kind, namespace: str) -> None:
    assert decided_in(inner_info("GET", path, Query({})), kind) == namespace
