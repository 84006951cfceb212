"""Pages of what is seldom read: from the store, as they would be from memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.handlers import reads
from karmada.kube.server.storage.interface import Page, Stored, StoreDamaged
from karmada.kube.server.watchcache.collection import Collection
from tests.support.cases import cases
from tests.support.running import run_server

EVENTS, NAMESPACES = GVR("", "v1", "events"), GVR("", "v1", "namespaces")
LATER_EVENTS = GVR("events.k8s.io", "v1", "events")


@pytest.fixture(params=["memory:", "sqlite://{}/s.db?sync=off"], ids=["memory", "sqlite"])
async def server(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[ApiServer]:
    storage = request.param.format(tmp_path)
    async with run_server(ApiServer(ServerConfig(data_dir=tmp_path, storage=storage, port=0), FakeClock())) as server:
        yield server


@pytest.fixture
async def client(server: ApiServer) -> Client:
    client = server.client()
    await client.create(NAMESPACES, {"metadata": {"name": "other"}})
    for name in "abcde":
        await write(client, name)
        await write(client, name, "other")
    return client


@pytest.fixture
def events(server: ApiServer) -> Collection:
    return server.cache.collection(GroupResource("", "events"))


async def write(client: Client, name: str, namespace: str = "default") -> None:
    about = {"kind": "Pod", "namespace": namespace, "name": "web"}
    await client.create(EVENTS, {"metadata": {"name": name}, "involvedObject": about}, namespace)


def names(listed: Obj) -> str:
    return "".join(item["metadata"]["name"] for item in listed["items"])


async def pages(client: Client, kind: GVR, namespace: str, limit: int) -> list[tuple[str, str, int]]:
    """Of each page: the names, the resourceVersion and what remains."""
    found: list[tuple[str, str, int]] = []
    token = ""
    while not found or token:
        page = await client.list(kind, namespace, limit=limit, continue_=token)
        metadata = page["metadata"]
        found.append((names(page), metadata["resourceVersion"], metadata.get("remainingItemCount", 0)))
        token = metadata.get("continue", "")
    return found


@pytest.mark.parametrize("kind", [EVENTS, LATER_EVENTS])
@pytest.mark.parametrize("namespace", ["", "other", "missing"])
@pytest.mark.parametrize("limit", [1, 4, 5, 10, 11])
async def test_pages_from_the_store_are_those_from_memory(
    client: Client, events: Collection, kind: GVR, namespace: str, limit: int
) -> None:
    at_rest = await pages(client, kind, namespace, limit)
    assert events.paged is not None, "a page is no reason to load the rest"
    await events.loaded()
    assert at_rest == await pages(client, kind, namespace, limit)


async def test_all_pages_are_of_one_moment(client: Client, events: Collection) -> None:
    first = await client.list(EVENTS, "default", limit=2)
    await write(client, "bb")
    await client.delete(EVENTS, "d", "default")
    second = await client.list(EVENTS, "default", limit=2, continue_=first["metadata"]["continue"])
    assert (names(first), names(second)) == ("ab", "cd")
    assert events.paged is not None
    await events.loaded()
    third = await client.list(EVENTS, "default", limit=2, continue_=second["metadata"]["continue"])
    assert names(third) == "e"
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }


async def test_a_page_of_a_moment_that_is_forgotten_has_expired(client: Client, server: ApiServer) -> None:
    first = await client.list(EVENTS, "default", limit=2)
    await write(client, "f")
    await server.store.compact(server.store.revision)
    with pytest.raises(Expired) as expired:
        await client.list(EVENTS, "default", limit=2, continue_=first["metadata"]["continue"])
    token = (expired.value.status()["metadata"])["continue"]
    assert names(await client.list(EVENTS, "default", limit=2, continue_=token)) == "cd"


async def test_a_token_of_another_list_goes_on_behind_its_key(client: Client, events: Collection) -> None:
    everywhere = await client.list(EVENTS, limit=4)
    token = everywhere["metadata"]["continue"]
    last = await client.list(EVENTS, "default", limit=4, continue_=token)
    assert (names(everywhere), names(last), "continue" in last["metadata"]) == ("abcd", "e", False)
    assert events.paged is not None


async def test_a_list_does_not_end_before_its_objects_do_whatever_the_token_counts(client: Client) -> None:
    token = (await client.list(EVENTS, "default", limit=4))["metadata"]["continue"]
    page = await client.list(EVENTS, limit=2, continue_=token)
    rest = await client.list(EVENTS, limit=5, continue_=page["metadata"]["continue"])
    assert (names(page), names(rest)) == ("ea", "bcde")


async def test_what_cannot_be_read_is_refused_with_its_cause(
    client: Client, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> list[Stored]:
        raise StoreDamaged("this file is damaged")

    async def damaged_page(*_: object, **__: object) -> Page:
        raise StoreDamaged("this file is damaged")

    monkeypatch.setattr(server.store, "scan", damaged)
    monkeypatch.setattr(server.store, "range", damaged_page)
    with pytest.raises(ServiceUnavailable, match="this file is damaged"):
        await client.list(EVENTS, limit=2)


async def test_too_many_to_be_counted_are_loaded(
    client: Client, events: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "_MOST_COUNTED", 10)
    await client.list(EVENTS, limit=2)
    assert events.paged is not None, "there are ten"
    await write(client, "f")
    page = await client.list(EVENTS, limit=2)
    assert (names(page), page["metadata"]["remainingItemCount"]) == ("ab", 9)
    assert events.unloaded is None


@cases({}, {"limit": 1_001}, {"limit": 2, "label_selector": "a"}, {"limit": 2, "resource_version": "0"})
async def test_whoever_needs_all_of_them_has_them_loaded(which: Obj, client: Client, events: Collection) -> None:
    await client.list(EVENTS, **which)
    assert events.unloaded is None
