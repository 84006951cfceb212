"""The control plane behind the proxy of another process: requests are sent there, impersonating their callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import orjson
import pytest
import pytest_asyncio

from karmada.apiserver.members import Members
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.outbound.https import Outbound
from karmada.search.proxy.control_plane import RemoteControlPlane
from karmada.search.proxy.mounting import mount_proxy
from tests.search.proxy.fakes import FakeCaches, FakeReading, FakeReads
from tests.support.eventually import LIMIT
from tests.support.ports import free_port
from tests.support.rights import grant, group
from tests.support.wire import Http

pytestmark = pytest.mark.asyncio(loop_scope="module")
PROXY = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "rbac.authorization.k8s.io"
TESS = {"Impersonate-User": "tess", "Impersonate-Group": "readers"}


async def no_secret(_namespace: str, _name: str) -> Obj | None:
    return None


class Apart:
    """A control plane, and the server of another process in front of it."""

    def __init__(self, plane: ApiServer, front: ApiServer) -> None:
        self.plane = plane
        self.front = front
        self.client: Client = plane.client(user_agent="tests")
        self.http = Http(front)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def apart(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Apart]:
    plane = ApiServer(ServerConfig(data_dir=tmp_path_factory.mktemp("plane"), storage="memory://", port=0))
    front = ApiServer(ServerConfig(data_dir=tmp_path_factory.mktemp("front"), storage="memory://", port=0))
    await plane.start()
    outbound = Outbound()
    remote = RemoteControlPlane(load_config(plane.kubeconfig), RealClock())
    front.closing += [outbound.close, remote.close]
    mount_proxy(front, FakeCaches(), FakeReading(), Members(front.cache, no_secret, outbound), remote, live=FakeReads())
    await front.start()
    apart = Apart(plane, front)
    reading = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    proxying = {"apiGroups": ["search.karmada.io"], "resources": ["proxying/proxy"], "verbs": ["*"]}
    for server, rule in ((plane, reading), (front, proxying)):
        await grant(server.client(user_agent="tests"), "readers", [rule], group("readers"))
    yield apart
    await apart.http.close()
    await front.stop()
    await plane.stop()


async def test_objects_are_written_and_read_in_the_control_plane(apart: Apart) -> None:
    made = await apart.http("POST", PROXY + CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert made.code == 201
    assert (await apart.client.get(GVR("", "v1", "configmaps"), "a", "default"))["data"] == {"k": "v"}
    assert (await apart.http("DELETE", f"{PROXY}{CONFIG_MAPS}/a?gracePeriodSeconds=0")).code == 200


async def test_the_caller_has_its_own_rights_there_and_no_others(apart: Apart) -> None:
    assert (await apart.http("GET", PROXY + CONFIG_MAPS, headers=TESS)).code == 200
    refused = await apart.http("POST", PROXY + CONFIG_MAPS, {"metadata": {"name": "b"}}, headers=TESS)
    assert refused.code == 403
    assert 'User "tess" cannot create resource "configmaps"' in refused.json()["message"]


async def test_a_watch_is_streamed(apart: Apart) -> None:
    path = f"{PROXY}{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dw"
    async with asyncio.timeout(LIMIT), apart.http.stream(path, headers=TESS) as response:
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "default"}}
        await apart.client.create(GVR("", "v1", "configmaps"), obj)
        event = orjson.loads(await response.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "w")


@pytest.mark.parametrize("path", ["/version", "/apis", "/openapi/v3"])
async def test_what_is_no_resource_is_the_control_planes(apart: Apart, path: str) -> None:
    through = await apart.http("GET", PROXY + path, headers={"Accept-Encoding": "identity"})
    assert through.code == 200
    assert through.json() == await apart.client.raw("GET", path)


async def test_callers_in_the_process_use_it_as_well(apart: Apart) -> None:
    client = apart.front.client(user_agent="tests")
    assert (await client.raw("GET", f"{PROXY}/version"))["major"] == "1"


async def test_a_control_plane_that_is_away_is_reported(apart: Apart, tmp_path_factory: pytest.TempPathFactory) -> None:
    config = replace(load_config(apart.plane.kubeconfig), server=f"https://127.0.0.1:{free_port()}")
    remote = RemoteControlPlane(config, RealClock())
    front = ApiServer(ServerConfig(data_dir=tmp_path_factory.mktemp("alone"), storage="memory://", port=0))
    outbound = Outbound()
    front.closing += [outbound.close, remote.close]
    mount_proxy(front, FakeCaches(), FakeReading(), Members(front.cache, no_secret, outbound), remote, live=FakeReads())
    await front.start()
    http = Http(front)
    try:
        answer = await http("GET", PROXY + CONFIG_MAPS)
        assert answer.code == 503
        assert answer.json()["message"].startswith("error trying to reach service: dial tcp 127.0.0.1:")
    finally:
        await http.close()
        await front.stop()
