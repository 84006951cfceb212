"""search/query: parameters, rights, pages, statuses, watches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import BadRequest, Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.kube.server.http.results import RawResult, TakeOver
from karmada.search.index.api import QueryApi
from karmada.search.index.results import result
from karmada.search.index.searching import Hit
from karmada.search.index.service import SearchIndex
from karmada.search.pending import Source
from tests.support.cached import EverythingAllowed, HeldCaches, pod
from tests.support.cases import cases
from tests.support.eventually import eventually

PATH = "/apis/search.karmada.io/v1alpha1/search/query"
USER = User("somebody")


class Plane:
    def __init__(self, refuses: Callable[[str, str, str], bool] = lambda *_: False) -> None:
        self.caches = HeldCaches()
        self.index = SearchIndex(self.caches)
        self.caches.add_sink(self.index)
        self.api = QueryApi(self.caches, self.index, EverythingAllowed(refuses), FakeClock(1_767_225_660.0))

    def request(self, query: str, raw: Any = None) -> Request:
        parameters = Query.parse(query)
        return Request(
            "GET", parse_path("GET", PATH, parameters), parameters, {}, USER, raw=raw, in_process=raw is None
        )

    async def get(self, query: str) -> Obj:
        found = await self.api.handle(self.request(query))
        assert isinstance(found, RawResult)
        return orjson.loads(found.body)

    async def names(self, query: str) -> list[str]:
        return [f"{item['cluster']}/{item['name']}" for item in (await self.get(query))["items"]]


@asynccontextmanager
async def plane(refuses: Callable[[str, str, str], bool] = lambda *_: False) -> AsyncIterator[Plane]:
    made = Plane(refuses)
    caches = made.caches
    for cluster in ("member1", "member2"):
        caches.put(cluster, PODS, pod("web-1", "shop"))
        caches.put(cluster, PODS, pod("web-2", "private"))
    caches.put("member1", DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}})
    caches.put("member1", NODES, {"metadata": {"name": "node-1"}})
    await eventually(lambda: not made.index.indexing)
    yield made
    await made.index.stop()


async def test_a_result_says_where_an_object_is_and_how_it_is() -> None:
    async with plane() as made:
        found = await made.get("q=web-1&cluster=member1")
        assert found["kind"] == "SearchResultList"
        assert found["indexing"] is False
        assert found["items"] == [
            {
                "cluster": "member1",
                "apiVersion": "v1",
                "kind": "Pod",
                "resource": "pods",
                "namespace": "shop",
                "name": "web-1",
                "status": "Running",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "details": "Ready: 1/1, Restarts: 0, Node: node-1",
            }
        ]
        registered = {(each["kind"], tuple(each["clusters"])) for each in found["registered"]}
        assert registered == {("Pod", ("member1", "member2")), ("Deployment", ("member1",)), ("Node", ("member1",))}


@cases(
    ("kind=Deployment", ["member1/web"]),
    ("kind=deployments.apps&kind=nodes", ["member1/web", "member1/node-1"]),
    ("kind=deploy,node", ["member1/web", "member1/node-1"]),
    ("kind=Pod&namespace=shop", ["member1/web-1", "member2/web-1"]),
    ("kind=Pod&cluster=member2", ["member2/web-2", "member2/web-1"]),
    ("fieldSelector=metadata.name%3Dnode-1", ["member1/node-1"]),
    ("kind=Service", []),
)
async def test_kinds_clusters_and_namespaces_limit_a_search(query: str, expected: list[str]) -> None:
    async with plane() as made:
        assert await made.names(query) == expected


async def test_a_cache_that_is_being_filled_shows_in_the_response() -> None:
    async with plane() as made:
        cache = made.caches.cache("member2", PODS)
        assert cache is not None
        cache.synced = False
        assert (await made.get("q=web"))["indexing"] is True


async def test_pages_follow_one_another() -> None:
    async with plane() as made:
        first = await made.get("kind=Pod&limit=3")
        assert len(first["items"]) == 3
        rest = await made.get(f"kind=Pod&limit=3&continue={first['metadata']['continue']}")
        assert [(i["cluster"], i["name"]) for i in rest["items"]] == [("member2", "web-1")]
        assert rest["metadata"] == {}


async def test_whole_objects_come_when_requested() -> None:
    async with plane() as made:
        (item,) = (await made.get("q=web-1&cluster=member1&objects=true"))["items"]
        assert item["object"]["spec"]["nodeName"] == "node-1"
        assert item["object"]["metadata"]["annotations"] == {"resource.karmada.io/cached-from-cluster": "member1"}


async def test_kinds_that_no_registry_selects_are_named() -> None:
    async with plane() as made:
        assert (await made.get("kind=po,services,Ingress"))["unregistered"] == ["ingress", "services"]
        assert (await made.get(""))["unregistered"] == []


async def test_the_kind_of_an_owner_may_be_a_short_name() -> None:
    async with plane() as made:
        made.caches.put("member2", PODS, pod("web-9", ownerReferences=[{"kind": "Deployment", "name": "web"}]))
        await eventually(lambda: not made.index.indexing)
        assert await made.names("owner=deploy/web") == ["member2/web-9"]


@cases(
    ("limit=0", 'limit: "0" must be a number from 1 to 500'),
    ("limit=many", "limit: "),
    ("continue=x", "continue: it was not returned by a search"),
    ("owner=web", 'owner: "web" must be KIND/NAME'),
    ("labelSelector=a%3D%3D%3Db", "labelSelector: "),
    ("fieldSelector=x", "fieldSelector: "),
    ("fieldSelector=data.key%3Dx", 'query: "data.key" cannot be searched'),
)
async def test_a_bad_parameter_is_named(query: str, error: str) -> None:
    with pytest.raises(BadRequest, match=error):
        await Plane().get(query)


def only_shop(cluster: str, resource: str, namespace: str) -> bool:
    """As of a user with a RoleBinding in one namespace of one cluster."""
    return not (cluster == "member1" and resource == "pods" and namespace == "shop")


async def test_only_what_the_caller_may_list_in_its_member_is_found() -> None:
    async with plane(only_shop) as made:
        assert await made.names("") == ["member1/web-1"]
        assert await made.names("namespace=shop") == ["member1/web-1"]
        request = made.request("q=web")
        await made.api.handle(request)
        (warning,) = request.warnings
        assert warning.endswith(": nodes in member1; pods in member2; deployments in member1")


async def test_a_caller_who_may_list_nothing_is_refused() -> None:
    async with plane(lambda *_: True) as made:
        with pytest.raises(Forbidden, match=r'User "somebody" cannot list .*pods in member1, member2'):
            await made.get("q=web")


async def test_clusters_that_are_not_cached_any_more_need_no_rights() -> None:
    async with plane(lambda cluster, *_: cluster == "member2") as made:
        made.caches.drop("member2", PODS)
        await eventually(lambda: not made.index.indexing)
        request = made.request("q=web")
        await made.api.handle(request)
        assert not request.warnings


async def test_an_empty_index_is_searched_without_a_thread() -> None:
    found = await Plane().get("q=web")
    assert (found["items"], found["indexing"]) == ([], False)


# statuses


@cases(
    (PODS, "Pod", pod("a", phase="Failed"), "Failed"),
    (PODS, "Pod", pod("a", deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
    (DEPLOYMENTS, "Deployment", {"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}, "2/3"),
    (
        GVR("apps", "v1", "daemonsets"),
        "DaemonSet",
        {"status": {"numberReady": 1, "desiredNumberScheduled": 4}},
        "1/4",
    ),
    (GVR("", "v1", "configmaps"), "ConfigMap", {"metadata": {"deletionTimestamp": "x"}}, "Terminating"),
    (GVR("", "v1", "configmaps"), "ConfigMap", {"data": {}}, ""),
    (GVR("x.io", "v1", "things"), "Thing", {"status": {"phase": "Broken"}}, "Broken"),
    (
        GVR("x.io", "v1", "things"),
        "Thing",
        {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Why"}]}},
        "NotReady (Why)",
    ),
    (
        GVR("x.io", "v1", "things"),
        "Thing",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        "Ready",
    ),
    (GVR("x.io", "v1", "things"), "Thing", {"status": "odd"}, ""),
)
def test_a_status_is_what_kubectl_get_shows(gvr: GVR, kind: str, obj: Obj, status: str) -> None:
    obj = {"apiVersion": gvr.api_version, "kind": kind, "metadata": {"name": "a"}, **obj}
    assert result(Hit(1, Source("m", gvr), kind, "", "a"), obj, 0.0)["status"] == status


# watches


@asynccontextmanager
async def watching(made: Plane, query: str) -> AsyncIterator[Callable[[], Any]]:
    async def handle(raw: web.BaseRequest) -> web.StreamResponse:
        found = await made.api.handle(made.request(raw.query_string, raw))
        assert isinstance(found, TakeOver)
        return await found.run(raw)

    app = web.Application()
    app.router.add_get("/", handle)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        session.get(server.make_url("/?watch=true&" + query)) as response,
    ):

        async def event() -> tuple[str, str]:
            line = orjson.loads(await response.content.readline())
            return line["type"], f"{line['object']['cluster']}/{line['object']['name']}"

        yield event


async def test_a_watch_begins_with_what_is_there_and_follows_what_matches() -> None:
    async with plane() as made, watching(made, "q=web&kind=Pod&fieldSelector=status.phase%3DFailed") as event:
        made.caches.put("member1", PODS, pod("web-1", "shop", phase="Failed"))
        assert await event() == ("ADDED", "member1/web-1")
        made.caches.put("member1", PODS, pod("web-1", "shop", phase="Failed", labels={"a": "b"}))
        assert await event() == ("MODIFIED", "member1/web-1")
        made.caches.put("member2", PODS, pod("web-1", "shop", phase="Running"))
        made.caches.put("member1", PODS, pod("web-1", "shop", phase="Running"))
        assert await event() == ("DELETED", "member1/web-1")
        made.caches.put("member3", PODS, pod("web-9", "shop", phase="Failed"))
        assert await event() == ("ADDED", "member3/web-9")
        made.caches.drop("member3", PODS)
        assert await event() == ("DELETED", "member3/web-9")


async def test_a_watch_shows_nothing_that_the_caller_may_not_see() -> None:
    async with plane(only_shop) as made, watching(made, "q=web") as event:
        assert await event() == ("ADDED", "member1/web-1")
        made.caches.put("member2", PODS, pod("web-3", "shop"))
        made.caches.put("member1", PODS, pod("web-3", "private"))
        made.caches.put("member1", PODS, pod("web-3", "shop"))
        assert await event() == ("ADDED", "member1/web-3")


async def test_a_watch_that_ends_is_forgotten() -> None:
    async with plane() as made:
        async with watching(made, "q=web-1&cluster=member1") as event:
            await event()
            assert len(made.index.changed) == 1
        await eventually(lambda: not made.index.changed)
