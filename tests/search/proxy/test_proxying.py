"""The proxy on the wire, over members in memory: what clients get, and what reaches the members."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.apiserver.members import Members, plain
from karmada.apiserver.mount import mount_clusters
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import Expired
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.schema.protobuf import decode
from karmada.kube.server.app import ApiServer
from karmada.kube.server.audit.config import AuditConfig
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.http.negotiation import PROTOBUF
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.outbound.https import Outbound
from karmada.search.proxy.control_plane import LocalControlPlane
from karmada.search.proxy.mounting import mount_proxy
from karmada.search.proxy.versions import Versions
from tests.search.proxy.fakes import FakeCache, FakeCaches, FakeReading, FakeReads
from tests.support.cases import cases
from tests.support.eventually import LIMIT
from tests.support.fake_member import FakeMember, fake_member, register
from tests.support.rights import grant, user
from tests.support.wire import Answer, Http

pytestmark = pytest.mark.asyncio(loop_scope="module")
PROXY = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
PODS = f"{PROXY}/api/v1/namespaces/default/pods"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


class Plane:
    """A control plane whose members m1 and m2 record what they get."""

    def __init__(self, server: ApiServer, http: Http, members: dict[str, FakeMember]) -> None:
        self.server = server
        self.http = http
        self.members = members
        self.caches = FakeCaches()
        self.reading = FakeReading()

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="tests")

    def reset(self) -> None:
        self.caches.by_cluster = {"m1": FakeCache("m1", "ab", revision=100), "m2": FakeCache("m2", "bc", revision=200)}
        self.reading.refusing.clear()
        self.reading.wanted.clear()
        for member in self.members.values():
            member.reply = None
            member.requests.clear()
            member.headers.clear()
            member.bodies.clear()

    def cache(self, cluster: str) -> FakeCache:
        return self.caches.by_cluster[cluster]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    folder: Path = tmp_path_factory.mktemp("data")
    audit = AuditConfig(log_path=folder / "audit.log")
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0, audit=audit))
    mount_clusters(server, server.authorizer, allow_insecure=True)
    outbound = Outbound()
    server.closing.append(outbound.close)

    async def secret(namespace: str, name: str) -> Obj | None:
        return server.cache.get(SECRETS.group_resource, namespace, name)

    async with fake_member() as m1, fake_member() as m2:
        plane = Plane(server, None, {"m1": m1, "m2": m2})  # type: ignore[arg-type]
        members = Members(server.cache, secret, outbound, allow_insecure=True)
        mount_proxy(
            server, plane.caches, plane.reading, members, LocalControlPlane(server.http.rerouted),
            live=FakeReads(), served=server.registry.get,
        )  # fmt: skip
        await server.start()
        plane.http = Http(server)
        for name, member in plane.members.items():
            await register(plane.client, name, member.url)
        yield plane
        await plane.http.close()
        await server.stop()


@pytest.fixture
def plane(running: Plane) -> Plane:
    running.reset()
    return running


def names(answer: Answer) -> list[str]:
    assert answer.code == 200, answer.body
    return [item["metadata"]["name"] for item in answer.json()["items"]]


# --- get


async def test_an_object_comes_from_the_one_cluster_that_has_it(plane: Plane) -> None:
    pod = (await plane.http("GET", f"{PODS}/a")).json()
    assert pod["metadata"]["annotations"] == {CACHED_FROM_CLUSTER: "m1"}
    assert pod["metadata"]["resourceVersion"] == Versions({"m1": "101"}).encode()
    assert plane.cache("m1").requests == [{"name": "a", "resourceVersion": ""}]


async def test_any_state_of_an_object_comes_from_the_cache(plane: Plane) -> None:
    plane.cache("m1").down = plain("down")
    assert (await plane.http("GET", f"{PODS}/a?resourceVersion=0")).code == 200
    assert (await plane.http("GET", f"{PODS}/a")).code == 500


async def test_an_object_in_no_cluster_is_not_found(plane: Plane) -> None:
    answer = await plane.http("GET", f"{PODS}/z")
    assert (answer.code, answer.json()["message"]) == (404, 'pods "z" not found')


async def test_a_namespace_that_no_registry_selects_has_no_objects(plane: Plane) -> None:
    plane.cache("m1").namespaces = frozenset({"other"})
    for method in ("GET", "DELETE"):
        assert (await plane.http(method, f"{PODS}/a")).code == 404
    assert plane.members["m1"].requests == []


async def test_the_word_before_the_proxy_does_not_matter_and_a_named_get_is_no_watch(plane: Plane) -> None:
    other = PODS.replace("/karmada/", "/anything/")
    assert (await plane.http("GET", f"{other}/a?watch=true")).json()["metadata"]["name"] == "a"


async def test_another_version_of_a_registered_kind_is_the_control_planes(plane: Plane) -> None:
    answer = await plane.http("GET", PODS.replace("/api/v1/", "/api/v2/") + "/a")
    assert (answer.code, answer.json()["message"]) == (404, "the server could not find the requested resource")


async def test_an_object_in_two_clusters_is_a_conflict(plane: Plane) -> None:
    for method in ("GET", "DELETE"):
        answer = await plane.http(method, f"{PODS}/b")
        assert answer.code == 409
        why = "ambiguous objects in clusters [m1, m2]"
        assert answer.json()["message"] == f'Operation cannot be fulfilled on pods "b": {why}'
        assert answer.json()["reason"] == "Conflict"


async def test_a_cache_that_has_not_synced_is_bypassed_to_find_an_object(plane: Plane) -> None:
    plane.cache("m2").synced = False
    assert (await plane.http("GET", f"{PODS}/c")).code == 200
    plane.cache("m2").down = plain("no route")
    answer = await plane.http("GET", f"{PODS}/a")
    assert (answer.code, answer.json()["message"]) == (500, "fail to get default a from m2: no route")


async def test_kubectl_sees_the_columns_of_pods(plane: Plane) -> None:
    for path in (PODS, f"{PODS}/a", f"{PROXY}/api/v1/pods?resourceVersion=0"):
        table = (await plane.http("GET", path, headers=TABLE)).json()
        assert [column["name"] for column in table["columnDefinitions"]][:4] == ["Name", "Ready", "Status", "Restarts"]
        assert table["rows"][0]["cells"][0] == "a"


async def test_yaml_is_served(plane: Plane) -> None:
    answer = await plane.http("GET", f"{PODS}/a", headers={"Accept": "application/yaml"})
    assert answer.headers["Content-Type"] == "application/yaml"
    assert b"cached-from-cluster: m1" in answer.body


# --- list and watch


async def test_a_list_has_the_objects_of_all_clusters(plane: Plane) -> None:
    for query in ("", "?resourceVersion=0", "?limit=10"):
        assert names(await plane.http("GET", PODS + query)) == ["a", "b", "b", "c"]


async def test_a_list_is_paged_over_clusters(plane: Plane) -> None:
    first = await plane.http("GET", f"{PODS}?limit=3")
    assert names(first) == ["a", "b", "b"]
    token = first.json()["metadata"]["continue"]
    assert names(await plane.http("GET", f"{PODS}?limit=3&continue={token}")) == ["c"]


async def test_an_error_of_a_member_is_the_response(plane: Plane) -> None:
    plane.cache("m2").down = Expired("the token is too old")
    answer = await plane.http("GET", f"{PODS}?limit=10")
    assert (answer.code, answer.json()["message"]) == (410, "the token is too old")


@cases(("spec.other%3Dx", "field label not supported: spec.other"), ("a", "invalid selector"))
async def test_selectors_are_checked(selector: str, why: str, plane: Plane) -> None:
    answer = await plane.http("GET", f"{PODS}?fieldSelector={selector}")
    assert answer.code == 400
    assert answer.json()["message"].startswith(why)


async def test_a_watch_has_the_changes_of_all_clusters(plane: Plane) -> None:
    version = Versions({"m1": "102", "m2": "202"}).encode()
    async with asyncio.timeout(LIMIT), plane.http.stream(f"{PODS}?watch=true&resourceVersion={version}") as response:
        assert response.headers["Content-Type"] == "application/json"
        plane.cache("m2").put("d")
        event = orjson.loads(await response.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "d")
        assert event["object"]["metadata"]["resourceVersion"] == Versions({"m1": "102", "m2": "203"}).encode()
        plane.caches.add(FakeCache("m3"))
        assert await response.content.read() == b""


async def test_a_watch_that_is_too_old_is_refused(plane: Plane) -> None:
    plane.cache("m1").compact()
    version = Versions({"m1": "1", "m2": "202"}).encode()
    assert (await plane.http("GET", f"{PODS}?watch=true&resourceVersion={version}")).code == 410
    gone = Versions({"m9": "1"}).encode()
    assert (await plane.http("GET", f"{PODS}?watch=true&resourceVersion={gone}")).code == 410


async def test_the_deprecated_watch_path_is_a_list(plane: Plane) -> None:
    assert names(await plane.http("GET", f"{PROXY}/api/v1/watch/pods")) == ["a", "b", "b", "c"]


# --- rights in members


async def test_a_cluster_that_refuses_is_left_out_with_a_warning(plane: Plane) -> None:
    plane.reading.refusing = {"m2"}
    answer = await plane.http("GET", PODS)
    assert names(answer) == ["a", "b"]
    assert len(answer.warnings) == 1
    assert "m2" in answer.warnings[0]
    assert (await plane.http("GET", f"{PODS}/b")).json()["metadata"]["annotations"] == {CACHED_FROM_CLUSTER: "m1"}
    assert (await plane.http("GET", f"{PODS}/c")).code == 404
    assert {wanted.verb for wanted in plane.reading.wanted} == {"list", "get"}


async def test_when_all_clusters_refuse_the_request_is_forbidden(plane: Plane) -> None:
    plane.reading.refusing = {"m1", "m2"}
    for path in (PODS, f"{PODS}/a", f"{PODS}/z", f"{PODS}?watch=true"):
        assert (await plane.http("GET", path)).code == 403


async def test_a_list_of_one_name_is_a_question_about_that_object(plane: Plane) -> None:
    await plane.http("GET", f"{PODS}?fieldSelector=metadata.name%3Da")
    assert [(wanted.verb, wanted.namespace, wanted.name) for wanted in plane.reading.wanted] == [
        ("list", "default", "a")
    ]


# --- writes and subresources


async def test_requests_reach_the_member_as_the_caller(plane: Plane) -> None:
    m1, m2 = plane.members["m1"], plane.members["m2"]
    answer = await plane.http("DELETE", f"{PODS}/a?gracePeriodSeconds=3", b'{"x": 1}')
    assert answer.json() == {"path": "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=3"}
    assert (m1.requests, m2.requests) == ([("DELETE", "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=3")], [])
    assert m1.headers[0]["Authorization"] == "bearer sesame"
    assert m1.headers[0]["Impersonate-User"] == "system:admin"
    assert m1.headers[0].getall("Impersonate-Group") == ["system:masters"]
    assert m1.bodies == [b'{"x": 1}']


@cases(
    ("GET", "/c/log?follow=true"),
    ("GET", "/c/status"),
    ("PATCH", "/c"),
    ("PATCH", "/c/scale"),
    ("POST", "/c/eviction"),
    ("POST", "/c/exec?command=ls"),
)
async def test_everything_below_an_object_reaches_its_member(method: str, path: str, plane: Plane) -> None:
    await plane.http(method, PODS + path, None if method == "GET" else b"{}")
    assert plane.members["m2"].requests == [(method, f"/api/v1/namespaces/default/pods{path}")]


async def test_errors_of_the_member_come_back_as_they_are(plane: Plane) -> None:
    async def refuse(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": "no"}, status=403)

    plane.members["m1"].reply = refuse
    answer = await plane.http("DELETE", f"{PODS}/a")
    assert (answer.code, answer.json()) == (403, {"kind": "Status", "message": "no"})


@cases(("PUT", "application/json"), ("PATCH", "application/strategic-merge-patch+json"))
async def test_what_was_read_is_sent_in_the_words_of_the_member(method: str, media: str, plane: Plane) -> None:
    pod = (await plane.http("GET", f"{PODS}/a")).json()
    await plane.http(method, f"{PODS}/a", pod, content_type=media)
    [body] = plane.members["m1"].bodies
    assert orjson.loads(body)["metadata"] == {"name": "a", "namespace": "default", "resourceVersion": "101"}


async def test_an_update_in_protobuf_stays_in_protobuf(plane: Plane) -> None:
    definitions = plane.server.definitions
    pod = {**(await plane.http("GET", f"{PODS}/a")).json(), "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await plane.http("PUT", f"{PODS}/a", ProtobufForm(definitions).object(pod), content_type=PROTOBUF)
    [body] = plane.members["m1"].bodies
    _, _, sent = decode(body, definitions)
    assert sent["metadata"] == {"name": "a", "namespace": "default", "resourceVersion": "101"}
    assert plane.members["m1"].headers[0]["Content-Type"] == PROTOBUF


async def test_a_compressed_update_is_read(plane: Plane) -> None:
    pod = orjson.dumps((await plane.http("GET", f"{PODS}/a")).json())
    await plane.http("PUT", f"{PODS}/a", gzip.compress(pod), headers={"Content-Encoding": "gzip"})
    [body] = plane.members["m1"].bodies
    assert orjson.loads(body)["metadata"]["resourceVersion"] == "101"
    assert "Content-Encoding" not in plane.members["m1"].headers[0]


async def test_a_new_object_has_no_cluster(plane: Plane) -> None:
    answer = await plane.http("POST", PODS, {"metadata": {"name": "n"}})
    assert (answer.code, answer.json()["reason"]) == (405, "MethodNotAllowed")
    assert answer.json()["message"] == 'create is not supported on resources of kind "pods"'


async def test_a_collection_cannot_be_deleted(plane: Plane) -> None:
    answer = await plane.http("DELETE", f"{PODS}?fieldSelector=metadata.name%3Da")
    assert answer.code == 500
    assert answer.json()["message"] == "fail to get default  from m1: Name parameter required."
    plane.caches.by_cluster.clear()
    assert (await plane.http("DELETE", PODS)).code == 404


async def test_of_several_clusters_the_one_in_which_the_caller_has_the_right_is_meant(plane: Plane) -> None:
    plane.reading.refusing = {"m2"}
    await plane.http("DELETE", f"{PODS}/b")
    assert (len(plane.members["m1"].requests), len(plane.members["m2"].requests)) == (1, 0)
    assert [(w.verb, w.resource, w.subresource, w.name) for w in plane.reading.wanted] == [("delete", "pods", "", "b")]


@pytest.mark.parametrize(("method", "below"), [("DELETE", ""), ("PATCH", ""), ("GET", "/log"), ("POST", "/exec")])
@pytest.mark.parametrize(("refusing", "code"), [(("m2",), 404), (("m1", "m2"), 403)])
async def test_a_caller_without_the_right_does_not_learn_whether_there_is_such_an_object(
    plane: Plane, method: str, below: str, refusing: tuple[str, ...], code: int
) -> None:
    plane.reading.refusing = set(refusing)
    there, nowhere = [await plane.http(method, f"{PODS}/{name}{below}") for name in "cz"]
    assert there.code == nowhere.code == code
    assert there.json()["message"].replace('"c"', '"z"') == nowhere.json()["message"]
    assert there.warnings == nowhere.warnings
    assert plane.members["m2"].requests == []


async def test_an_upgrade_becomes_a_pipe_to_the_member(plane: Plane) -> None:
    async def upgrade(request: web.BaseRequest) -> web.StreamResponse:
        assert request.headers["Upgrade"] == "SPDY/3.1"
        transport = request.transport
        assert transport is not None
        transport.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello")
        transport.close()
        return web.Response()

    plane.members["m1"].reply = upgrade
    async with plane.http.stream(f"{PODS}/a/exec?command=ls", headers=UPGRADE) as response:
        assert response.status == 101
        connection = response.connection
        assert connection is not None
    assert plane.members["m1"].requests == [("GET", "/api/v1/namespaces/default/pods/a/exec?command=ls")]


# --- the control plane


async def test_what_is_not_registered_is_the_control_planes(plane: Plane) -> None:
    path = f"{PROXY}/api/v1/namespaces/default/configmaps"
    made = await plane.http("POST", path, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    assert made.code == 201, made.body
    assert "c" in names(await plane.http("GET", path))
    table = (await plane.http("GET", path, headers=TABLE)).json()
    assert table["kind"] == "Table"
    assert (await plane.http("DELETE", f"{path}/c")).code == 200


async def test_what_is_done_in_the_control_plane_is_in_its_audit_log(plane: Plane) -> None:
    log = plane.server.config.data_dir / "audit.log"
    written = log.stat().st_size
    await plane.http("POST", f"{PROXY}/api/v1/namespaces/default/configmaps?fieldManager=me", {"kind": "Pod"})
    events = [orjson.loads(line) for line in log.read_bytes()[written:].splitlines()]
    within, around = [event for event in events if event["userAgent"] == "tests/1"]
    assert within["objectRef"]["resource"] == "configmaps"
    assert (within["verb"], within["requestURI"]) == ("create", "/api/v1/namespaces/default/configmaps?fieldManager=me")
    assert (within["user"]["username"], within["responseStatus"]["code"]) == ("system:admin", 400)
    assert around["objectRef"]["resource"] == "proxying"


@cases("/api", "/apis", "/version", "/healthz", "/openapi/v3", "/apis/apps/v1")
async def test_other_paths_are_the_control_planes(path: str, plane: Plane) -> None:
    through, direct = await plane.http("GET", PROXY + path), await plane.http("GET", path)
    assert (through.code, through.body) == (direct.code, direct.body)


async def test_a_proxy_of_a_cluster_is_reached_through_the_proxy(plane: Plane) -> None:
    answer = await plane.http("GET", f"{PROXY}/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/nodes?limit=5")
    assert answer.json() == {"path": "/api/v1/nodes?limit=5"}


async def test_the_control_plane_is_reached_with_the_rights_of_the_caller(plane: Plane) -> None:
    as_tess = {"Impersonate-User": "tess"}
    assert (await plane.http("GET", PODS, headers=as_tess)).code == 403
    rule = {"apiGroups": ["search.karmada.io"], "resources": ["proxying/proxy"], "verbs": ["*"]}
    await grant(plane.client, "proxying", [rule], user("tess"))
    assert names(await plane.http("GET", PODS, headers=as_tess)) == ["a", "b", "b", "c"]
    assert (await plane.http("GET", f"{PROXY}/api/v1/secrets", headers=as_tess)).code == 403
    made = await plane.http("POST", f"{PROXY}/api/v1/namespaces/default/configmaps", {}, headers=as_tess)
    assert made.code == 403
    assert (await plane.http("GET", f"{PROXY}/version", headers=as_tess)).code == 200


async def test_callers_in_the_process_use_it_as_well(plane: Plane) -> None:
    listed = await plane.client.raw("GET", PODS)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "b", "c"]
    assert await plane.client.raw("DELETE", f"{PODS}/a") == {"path": "/api/v1/namespaces/default/pods/a"}
    assert (await plane.client.raw("GET", f"{PROXY}/version"))["major"] == "1"
