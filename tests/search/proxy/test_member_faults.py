"""Members with the faults of simulated clusters, behind the proxy of a control plane: real servers over HTTPS."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.apiserver.mount import mount_clusters, mount_registries
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import CONFIG_MAPS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.delegated import ACCESS_REVIEWS
from karmada.kube.server.config import ServerConfig
from karmada.kube.sim.faults.gate import FaultGate
from karmada.kube.sim.faults.kinds import BlackHole, Errors, Fault, Watches
from karmada.search.proxy.live import AT_ONCE
from karmada.search.service import Options, Search, install
from tests.support.eventually import LIMIT, eventually
from tests.support.wire import Http

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATH = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/namespaces/default/configmaps"
TOKEN = "a-long-secret"


class Member:
    def __init__(self, name: str, folder: Path, tokens: Path) -> None:
        self.name = name
        config = ServerConfig(data_dir=folder, storage="memory://", port=0, token_file=tokens, controllers=False)
        self.server = ApiServer(config)
        self.gate = self.server.http.gate = FaultGate(RealClock(), Random(1))
        self._made = 0

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="tests")

    async def put(self) -> str:
        """A new object, and its name."""
        self._made += 1
        name = f"{self.name}-{self._made}"
        await self.client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}})
        return name

    def fail(self, *faults: Fault) -> None:
        self.gate.set(faults)

    async def down(self) -> None:
        await self.server.http.refuse()

    async def up(self) -> None:
        await self.server.http.start(self.server.config.host, self.server.port, self.server.tls())


class Faulty:
    def __init__(self, server: ApiServer, search: Search, members: dict[str, Member]) -> None:
        self.server = server
        self.search = search
        self.members = members
        self.http = Http(server)

    async def join(self, member: Member) -> None:
        client = self.server.client(user_agent="tests")
        encoded = {
            "token": base64.b64encode(TOKEN.encode()).decode(),
            "caBundle": base64.b64encode(member.server.credentials.root_pem).decode(),
        }
        await client.create(SECRETS, {"metadata": {"name": member.name, "namespace": "default"}, "data": encoded})
        ref = {"namespace": "default", "name": member.name}
        spec: Obj = {"syncMode": "Push", "apiEndpoint": member.server.url}
        spec |= {"secretRef": ref, "impersonatorSecretRef": ref}
        await client.create(Cluster.gvr, {"metadata": {"name": member.name}, "spec": spec})
        ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        await client.patch(Cluster.gvr, member.name, "", {"status": ready}, subresource="status")

    async def names(self, query: str = "") -> list[str]:
        answer = await self.http("GET", PATH + query)
        assert answer.code == 200, answer.body
        marked = [item["metadata"] for item in answer.json()["items"]]
        return [each["name"] for each in marked if each["name"].startswith(each["annotations"][CACHED_FROM_CLUSTER])]

    async def version(self) -> str:
        version: str = (await self.http("GET", f"{PATH}?resourceVersion=0")).json()["metadata"]["resourceVersion"]
        return version


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Faulty]:
    folder = tmp_path_factory.mktemp("faulty")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n')
    server = ApiServer(ServerConfig(data_dir=folder / "plane", storage="memory://", port=0))
    mount_clusters(server, server.authorizer)
    mount_registries(server)
    search = install(server, Options())
    async with AsyncExitStack() as stack:
        members = {name: Member(name, folder / name, tokens) for name in ("m1", "m2")}
        for each in (*(member.server for member in members.values()), server):
            await each.start()
            stack.push_async_callback(each.stop)
        await search.start()
        faulty = Faulty(server, search, members)
        stack.push_async_callback(faulty.http.close)
        for member in members.values():
            await faulty.join(member)
        selectors = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        registry = {"metadata": {"name": "r"}, "spec": {"targetCluster": {}, "resourceSelectors": selectors}}
        await server.client(user_agent="tests").create(ResourceRegistry.gvr, registry)
        await eventually(lambda: search.caches.synced and search.caches.clusters(CONFIG_MAPS) == ["m1", "m2"])
        yield faulty


@pytest.fixture
async def faulty(running: Faulty) -> AsyncIterator[Faulty]:
    yield running
    for member in running.members.values():
        member.fail()


async def next_name(response: aiohttp.ClientResponse) -> str:
    async with asyncio.timeout(LIMIT):
        event: Any = orjson.loads(await response.content.readline())
    name: str = event["object"]["metadata"]["name"]
    return name


async def test_a_watch_goes_on_while_a_member_restarts(faulty: Faulty) -> None:
    m1, m2 = faulty.members.values()
    async with faulty.http.stream(f"{PATH}?watch=true&resourceVersion={await faulty.version()}") as response:
        await m2.down()
        missed = await m2.put()
        seen = await m1.put()
        assert await next_name(response) == seen
        await m2.up()
        assert await next_name(response) == missed


async def test_a_watch_goes_on_when_the_watches_of_a_member_are_cut(faulty: Faulty) -> None:
    m2 = faulty.members["m2"]
    async with faulty.http.stream(f"{PATH}?watch=true&resourceVersion={await faulty.version()}") as response:
        m2.fail(Watches(how="cut"))
        cut = await m2.put()
        m2.fail()
        assert await next_name(response) == cut


async def test_a_member_that_cannot_resume_ends_the_watch_and_the_client_lists_again(faulty: Faulty) -> None:
    m2 = faulty.members["m2"]
    version = await faulty.version()
    async with faulty.http.stream(f"{PATH}?watch=true&resourceVersion={version}") as response:
        m2.fail(Watches(how="expire"))
        m2.server.http.responses.cut(lambda request: request.info.verb == "watch")
        missed = await m2.put()
        async with asyncio.timeout(LIMIT):
            rest = await response.content.read()
        assert rest == b""  # it ended, without an error
    m2.fail()
    again = await faulty.http("GET", f"{PATH}?watch=true&resourceVersion={version}")
    assert again.code == 410
    assert missed in await faulty.names("?resourceVersion=0")


async def test_a_member_that_does_not_respond_holds_up_live_lists_only(faulty: Faulty) -> None:
    m1, m2 = faulty.members.values()
    name = await m1.put()
    m2.fail(BlackHole(verbs=("list",)))
    live = asyncio.create_task(faulty.names())
    await eventually(lambda: faulty.names("?resourceVersion=0"))
    assert (await faulty.http("GET", f"{PATH}/{name}")).code == 200
    assert (await faulty.http("DELETE", f"{PATH}/{name}")).code == 200
    assert not live.done()
    m2.fail()
    async with asyncio.timeout(LIMIT):
        assert {found[:2] for found in await live} == {"m1", "m2"}


async def test_reads_that_wait_for_a_member_hold_up_no_review_of_rights(faulty: Faulty) -> None:
    m2 = faulty.members["m2"]
    m2.fail(BlackHole(verbs=("list",)))
    waiting = [asyncio.create_task(faulty.names()) for _ in range(40)]
    wanted = {"user": "tess", "resourceAttributes": {"verb": "list", "resource": "pods"}}
    try:
        await eventually(lambda: m2.server.http._in_flight >= AT_ONCE)
        async with asyncio.timeout(LIMIT):
            review = await faulty.search.caches.client("m2").create(ACCESS_REVIEWS, {"metadata": {}, "spec": wanted})
        assert review["status"]["allowed"] is False
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_client_that_gives_up_leaves_nothing_behind(faulty: Faulty) -> None:
    m2 = faulty.members["m2"]
    m2.fail(BlackHole(verbs=("list",)))
    waiting = asyncio.create_task(faulty.names())
    await eventually(lambda: m2.server.http._in_flight)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await eventually(lambda: not m2.server.http._in_flight)


@pytest.mark.parametrize("query", ["", "?limit=1000"])
async def test_the_error_of_a_member_is_that_of_the_list(faulty: Faulty, query: str) -> None:
    await faulty.members["m1"].put()
    faulty.members["m2"].fail(Errors(code=503, verbs=("list",)))
    answer = await faulty.http("GET", PATH + query)
    assert (answer.code, answer.json()["reason"]) == (503, "ServiceUnavailable")
    assert await faulty.names("?resourceVersion=0")


async def test_a_member_that_requests_a_retry_requests_it_from_the_client(faulty: Faulty) -> None:
    faulty.members["m2"].fail(Errors(code=429, retry_after=1000, verbs=("list",)))
    async with asyncio.timeout(LIMIT):
        answer = await faulty.http("GET", PATH)
    assert (answer.code, answer.headers["Retry-After"]) == (429, "1000")


async def test_a_member_that_is_down_is_named(faulty: Faulty) -> None:
    m2 = faulty.members["m2"]
    await m2.down()
    try:
        answer = await faulty.http("GET", PATH)
        assert answer.code == 500
        assert answer.json()["message"].startswith("cluster m2 cannot be read: ")
    finally:
        await m2.up()
    await eventually(lambda: faulty.names())
