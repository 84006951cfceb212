"""clusters/*/proxy on the wire: one request to all members."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from karmada.kube.client.client import Client
from tests.support.cases import cases
from tests.support.fake_member import FakeMember, Handler, fake_member, register
from tests.support.wire import Http

ALL = "/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def members(client: Client) -> AsyncIterator[list[FakeMember]]:
    """m1, m2 and m3, which know of nothing; m4 is not there at all."""
    async with fake_member() as one, fake_member() as two, fake_member() as three:
        for number, member in enumerate((one, two, three), start=1):
            member.reply = knowing()
            await register(client, f"m{number}", member.url)
        await register(client, "m4", "http://127.0.0.1:1")
        yield [one, two, three]


def knowing(*names: str, version: str = "7") -> Handler:
    """A cluster with these pods in namespace default."""

    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == PODS and request.method == "GET":
            items = [{"metadata": {"name": name}} for name in names]
            return web.json_response(
                {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items}
            )
        if any(path == f"{PODS}/{name}" or path.startswith(f"{PODS}/{name}/") for name in names):
            return web.json_response({"kind": "Pod", "path": request.raw_path, "method": request.method})
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    return reply


async def test_lists_are_put_together(http: Http, members: list[FakeMember]) -> None:
    members[0].reply = knowing("a", "b", version="1")
    members[1].reply = knowing("c", version="2")
    answer = await http("GET", f"{ALL}{PODS}?limit=5&labelSelector=x%3Dy", headers={"Accept": "application/x, */*"})
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    listed = answer.json()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    assert listed["kind"] == "PodList"
    assert listed["metadata"] == {}, "no version is everybody's"
    assert members[0].requests == [("GET", f"{PODS}?labelSelector=x%3Dy")], "pages are nobody's"
    assert "Accept" not in members[0].headers[0], "every member answers in its own words: JSON"
    assert members[0].headers[0]["Impersonate-User"] == "system:admin"


async def test_members_that_refuse_or_fail_are_left_out(http: Http, members: list[FakeMember]) -> None:
    async def refuse(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status"}, status=403)

    async def nonsense(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"<html>", content_type="text/html")

    members[0].reply = refuse
    members[1].reply = knowing("c")
    members[2].reply = nonsense
    answer = await http("GET", f"{ALL}{PODS}")
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["c"]


async def test_when_no_member_has_a_list_there_is_none(http: Http, members: list[FakeMember]) -> None:
    answer = await http("GET", f"{ALL}/api/v1/nonsense")
    assert (answer.code, answer.body) == (404, b"not found\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@cases(("GET", "?watch=true", "watch"), ("POST", "", "create"), ("DELETE", "", "deletecollection"))
async def test_collections_are_only_listed(
    method: str, query: str, verb: str, http: Http, members: list[FakeMember]
) -> None:
    answer = await http(method, f"{ALL}{PODS}{query}")
    assert (answer.code, answer.body) == (405, f"Request verb {verb} is not support\n".encode())
    assert all(member.requests == [] for member in members)


@cases("GET", "PUT", "PATCH", "DELETE")
async def test_a_named_object_is_requested_from_the_member_that_has_it(
    method: str, http: Http, members: list[FakeMember]
) -> None:
    members[1].reply = knowing("web")
    answer = await http(method, f"{ALL}{PODS}/web?a=b", b"{}" if method != "GET" else None)
    assert answer.json() == {"kind": "Pod", "path": f"{PODS}/web?a=b", "method": method}
    assert members[1].requests == [("GET", f"{PODS}/web"), (method, f"{PODS}/web?a=b")]
    assert members[0].requests == [("GET", f"{PODS}/web")]


@cases("log", "exec", "attach", "portforward", "status")
async def test_subresources_are_requested_from_the_member_that_has_the_object(
    subresource: str, http: Http, members: list[FakeMember]
) -> None:
    members[2].reply = knowing("web")
    answer = await http("GET", f"{ALL}{PODS}/web/{subresource}?follow=true")
    assert answer.json()["path"] == f"{PODS}/web/{subresource}?follow=true"
    probe = f"{PODS}/web/status" if subresource == "status" else f"{PODS}/web"
    assert members[0].requests == [("GET", probe)]


async def test_a_list_or_watch_of_one_name_goes_where_the_object_is(http: Http, members: list[FakeMember]) -> None:
    members[1].reply = knowing("web")
    query = "?fieldSelector=metadata.name%3Dweb&watch=true"
    answer = await http("GET", f"{ALL}{PODS}{query}")
    assert answer.json()["kind"] == "PodList"
    assert members[1].requests == [("GET", f"{PODS}/web"), ("GET", f"{PODS}{query}")]


async def test_an_object_that_no_member_or_more_than_one_has(http: Http, members: list[FakeMember]) -> None:
    answer = await http("GET", f"{ALL}{PODS}/web")
    assert (answer.code, answer.body) == (404, b"resource not found or don't have permission to get it\n")
    members[0].reply = members[1].reply = knowing("web")
    answer = await http("DELETE", f"{ALL}{PODS}/web")
    assert answer.code == 409
    assert answer.body == b"conflict resource, exist in more than one cluster: m1,m2\n"
    assert ("DELETE", f"{PODS}/web") not in members[0].requests + members[1].requests


async def test_what_is_no_resource_is_answered_here(http: Http, members: list[FakeMember]) -> None:
    versions = (await http("GET", f"{ALL}/api")).json()
    assert versions["versions"] == ["v1"]
    groups = [group["name"] for group in (await http("GET", f"{ALL}/apis")).json()["groups"]]
    assert {"apps", "cluster.karmada.io"} <= set(groups)
    listed = (await http("GET", f"{ALL}/api/v1")).json()
    assert listed["kind"] == "APIResourceList"
    assert (await http("GET", f"{ALL}/version")).json()["gitVersion"]
    assert (await http("GET", f"{ALL}/openapi/v3")).json()["paths"]
    assert all(member.requests == [] for member in members)


async def test_callers_in_the_process_get_lists_as_well(client: Client, members: list[FakeMember]) -> None:
    members[0].reply = knowing("a")
    assert [i["metadata"]["name"] for i in (await client.raw("GET", f"{ALL}{PODS}"))["items"]] == ["a"]
