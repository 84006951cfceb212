"""Search on a server: its paths, their errors, and who may use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from karmada.api.search import ResourceRegistry
from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.apiserver.mount import mount_clusters, mount_registries
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import ConnectionFailed, Transport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import AUTHENTICATED, User
from karmada.kube.server.config import ServerConfig
from karmada.search.service import Options, install
from tests.search.fake_fleet import FakeFleet, FakeMemberTransport, config_map
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi
from tests.support.rights import grant, user
from tests.support.running import run_server
from tests.support.wire import Http

SEARCH = "/apis/search.karmada.io/v1alpha1/search"
CACHE = f"{SEARCH}/cache"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Plane(FakeFleet):
    """Real API server, fake members."""

    def __init__(self, server: ApiServer) -> None:
        self.clock = FakeClock()
        self.server = server
        self.client = server.client()
        self.members: dict[str, FakeApi] = {}
        self.search = install(server, Options(), open_way=self._open)
        self.caches = self.search.caches
        self.http: Http

    def _open(self, config: RestConfig, _before: Transport | None) -> Transport:
        return FakeMemberTransport(self.member(config.server.removeprefix("https://")))

    async def get(self, path: str, code: int = 200) -> Obj:
        answer = await self.http("GET", CACHE + path)
        assert answer.code == code, answer.body
        found: Obj = answer.json()
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    folder: Path = tmp_path_factory.mktemp("data")
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0))
    mount_clusters(server, server.authorizer)
    mount_registries(server)
    plane = Plane(server)
    async with run_server(server):
        await plane.search.start()
        plane.http = Http(server)
        await plane.client.create(GVR("", "v1", "namespaces"), {"metadata": {"name": "karmada-cluster"}})
        for name in ("m1", "m2"):
            await plane.join(name)
            await plane.set_ready(name, True)
            member = plane.client_of(name)
            await member.create(CONFIG_MAPS, {**config_map("settings"), "metadata": {**META, "labels": {"of": name}}})
            await member.create(CONFIG_MAPS, config_map(f"only-{name}", "other"))
        await plane.register("r", ("ConfigMap", ""))
        await eventually(lambda: plane.names("m1") and plane.names("m2"))
        yield plane
        await plane.http.close()


META = {"name": "settings", "namespace": "default", "managedFields": [{"manager": "x"}]}


def found(listed: Obj) -> list[tuple[str, str]]:
    return [(i["metadata"]["annotations"][CACHED_FROM_CLUSTER], i["metadata"]["name"]) for i in listed["items"]]


@cases(
    ("/api/v1/configmaps", [("m1", "settings"), ("m1", "only-m1"), ("m2", "settings"), ("m2", "only-m2")]),
    ("/api/v1/namespaces/default/configmaps", [("m1", "settings"), ("m2", "settings")]),
    ("/api/v1/namespaces/default/configmaps/settings", [("m1", "settings"), ("m2", "settings")]),
    ("/api/v1/namespaces/other/configmaps/only-m2", [("m2", "only-m2")]),
    ("/api/v1/namespaces/other/configmaps/none", []),
    ("/api/v1/configmaps?labelSelector=of=m2", [("m2", "settings")]),
    ("/api/v1/configmaps?limit=1&fieldSelector=metadata.name=none&labelSelector=of%3Dm2", [("m2", "settings")]),
    ("/api/v1/services", []),
    ("/api/v1/namespaces/default", []),
)
async def test_a_path_lists_what_all_clusters_have_of_it(path: str, names: list[tuple[str, str]], plane: Plane) -> None:
    listed = await plane.get(path)
    assert found(listed) == names
    kind = "Service" if "services" in path else "ConfigMap" if "configmaps" in path else "Namespace"
    assert {**listed, "items": []} == {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": []}


async def test_objects_are_complete(plane: Plane) -> None:
    [item] = (await plane.get("/api/v1/configmaps?labelSelector=of=m1"))["items"]
    assert item["metadata"]["managedFields"] == [{"manager": "x"}]
    assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")


@cases("*/*", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io,*/*")
async def test_the_list_is_json_whatever_the_client_takes(accept: str, plane: Plane) -> None:
    answer = await plane.http("GET", f"{CACHE}/api/v1/configmaps", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json()["kind"] == "ConfigMapList"


@cases(
    ("/api/v1", "k8s native Request URL(api/v1) is not a resource request"),
    ("/v1/pods", "k8s native Request URL(v1/pods) is not a resource request"),
    ("", "k8s native Request URL() is not a resource request"),
    ("/apis/apps/v1", "k8s native Request URL(apis/apps/v1) is not a resource request"),
    ("//api/v1/pods", "k8s native Request URL(/api/v1/pods) is not a resource request"),
    ("/%2Fapi/v1/pods", "k8s native Request URL(/api/v1/pods) is not a resource request"),
    (
        "/api/v1/namespaces/a/pods/b/log",
        "invalid request parts([api v1 namespaces a pods b log]) for k8s native request URL",
    ),
)
async def test_a_path_that_names_no_resource_is_an_error(path: str, message: str, plane: Plane) -> None:
    status = await plane.get(path, 500)
    assert (status["kind"], status["message"]) == ("Status", message)


async def test_parameters_and_resources_that_make_no_sense_are_errors_without_a_status(plane: Plane) -> None:
    assert set(await plane.get("/api/v1/pods?labelSelector=a==b==c", 400)) == {"error"}
    assert set(await plane.get("/apis/example.io/v1/gadgets", 500)) == {"error"}


async def test_only_get_is_served_and_only_of_known_categories(plane: Plane) -> None:
    assert (await plane.http("POST", f"{CACHE}/api/v1/pods", {})).code == 405
    assert (await plane.http("GET", SEARCH)).code == 405
    answer = await plane.http("GET", f"{SEARCH}/nothing/api/v1/pods")
    assert (answer.code, answer.json()["message"]) == (500, "connect with unrecognized search category nothing")
    empty = await plane.http("GET", f"{SEARCH}/opensearch/api/v1/pods")
    assert (empty.code, empty.body) == (200, b"")


async def test_the_right_is_that_of_the_category_with_the_next_segment(plane: Plane) -> None:
    rule = {
        "apiGroups": ["search.karmada.io"],
        "resources": ["search/api"],
        "resourceNames": ["cache"],
        "verbs": ["get"],
    }
    await grant(plane.client, "search-core", [rule], user("tom"))
    tom = plane.server.client(User("tom", groups=(AUTHENTICATED,)))
    assert (await tom.raw("GET", f"{CACHE}/api/v1/services"))["items"] == []
    with pytest.raises(Forbidden):
        await tom.raw("GET", f"{CACHE}/apis/apps/v1/deployments")
    with pytest.raises(Forbidden):
        await tom.raw("GET", f"{CACHE}//api/v1/configmaps")
    with pytest.raises(Forbidden, match="in every cluster: m1"):
        await tom.raw("GET", f"{CACHE}/api/v1/configmaps")


async def test_the_registry_reports_what_is_cached(plane: Plane) -> None:
    registry = await plane.client.get(ResourceRegistry.gvr, "r")
    [condition] = registry["status"]["conditions"]
    assert (condition["status"], condition["message"]) == ("True", "clusters cached: m1, m2")


async def test_the_proxy_is_served_beside_it(plane: Plane) -> None:
    answer = await plane.http(
        "GET", "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/configmaps?resourceVersion=0"
    )
    assert len(orjson.loads(answer.body)["items"]) == 4


async def test_metrics_count_what_is_cached(plane: Plane) -> None:
    text = (await plane.http("GET", "/metrics")).body.decode()
    assert 'karmada_search_cached_objects{cluster="m1",resource="configmaps"} 2' in text
    assert 'karmada_search_caches_not_synced{cluster="m2"} 0' in text


async def test_a_cluster_whose_objects_are_not_here_yet_is_named_in_a_warning(plane: Plane) -> None:
    plane.member("m3").fail = lambda _call: ConnectionFailed("it is down")
    await plane.join("m3")
    await plane.set_ready("m3", True)
    await eventually(lambda: plane.caches.cache("m3", CONFIG_MAPS))
    answer = await plane.http("GET", f"{CACHE}/api/v1/configmaps")
    assert len(answer.json()["items"]) == 4
    assert answer.headers["Warning"] == '299 - "clusters whose objects are not here yet: m3"'
    await plane.leave("m3")
    await eventually(lambda: plane.caches.cache("m3", CONFIG_MAPS) is None)
    assert "Warning" not in (await plane.http("GET", f"{CACHE}/api/v1/configmaps")).headers
