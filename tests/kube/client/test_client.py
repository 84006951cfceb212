"""The verbs, over both transports: every case runs in-process and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import Client, resource_path
from karmada.kube.client.config import RestConfig
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Transport
from karmada.kube.objects.errors import AlreadyExists, Conflict, Expired, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES, PODS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport, application


@pytest.fixture(params=["in-process", "http"])
async def api(request: pytest.FixtureRequest, fake: FakeApi) -> AsyncIterator[Transport]:
    if request.param == "in-process":
        yield FakeTransport(fake)
        return
    from aiohttp.test_utils import TestServer

    server = TestServer(application(fake))
    await server.start_server()
    transport = HttpTransport(RestConfig(server=str(server.make_url("/"))))
    yield transport
    await transport.close()
    await server.close()


def config_map(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}, "data": data}


@cases(
    ((PODS,), "/api/v1/pods"),
    ((PODS, "ns"), "/api/v1/namespaces/ns/pods"),
    ((PODS, "ns", "p", "log"), "/api/v1/namespaces/ns/pods/p/log"),
    ((NODES, "", "n"), "/api/v1/nodes/n"),
    ((GVR("apps", "v1", "deployments"), "ns", "d"), "/apis/apps/v1/namespaces/ns/deployments/d"),
)
def test_a_resource_has_its_path(arguments: tuple[Any, ...], path: str) -> None:
    assert resource_path(*arguments) == path


async def test_an_object_lives_through_every_verb(client: Client, fake: FakeApi) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a", x="1"))
    assert created["metadata"]["uid"]
    assert await client.get(CONFIG_MAPS, "a", "ns") == created
    updated = await client.update(CONFIG_MAPS, {**created, "data": {"x": "2"}})
    patched = await client.patch(CONFIG_MAPS, "a", "ns", {"data": {"y": "3"}})
    assert patched["data"] == {"x": "2", "y": "3"}
    assert int(patched["metadata"]["resourceVersion"]) > int(updated["metadata"]["resourceVersion"])
    status = await client.update_status(CONFIG_MAPS, {**patched, "status": {"ok": True}})
    assert status["status"] == {"ok": True}
    await client.delete(CONFIG_MAPS, "a", "ns", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", "ns")
    assert fake.calls[-2].body["preconditions"] == {"uid": created["metadata"]["uid"]}


async def test_failures_are_typed_by_the_reason_of_their_status(client: Client) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, config_map("a"))
    await client.patch(CONFIG_MAPS, "a", "ns", {"data": {"x": "1"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(CONFIG_MAPS, created)
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await client.list(GVR("nowhere.io", "v1", "things"))


async def test_list_items_carry_their_kind(client: Client) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    items = (await client.list(CONFIG_MAPS, "ns"))["items"]
    assert [(i["apiVersion"], i["kind"]) for i in items] == [("v1", "ConfigMap")]


async def test_a_long_list_comes_page_by_page(client: Client, fake: FakeApi) -> None:
    for number in range(7):
        await client.create(CONFIG_MAPS, config_map(f"c{number}"))
    fake.calls.clear()
    items, version = await client.list_all(CONFIG_MAPS, page_size=3)
    assert [i["metadata"]["name"] for i in items] == [f"c{n}" for n in range(7)]
    assert version == str(fake.revision)
    assert [call.query.get("limit") for call in fake.calls] == ["3", "3", "3"]


async def test_a_list_whose_snapshot_expires_between_pages_is_taken_in_one_piece(client: Client, fake: FakeApi) -> None:
    for number in range(7):
        await client.create(CONFIG_MAPS, config_map(f"c{number}"))
    fake.fail = lambda call: Expired("too old") if call.query.get("continue") else None
    items, _ = await client.list_all(CONFIG_MAPS, page_size=3)
    assert len(items) == 7


async def test_a_list_not_older_than_a_version_has_no_limit(client: Client, fake: FakeApi) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    await client.list_all(CONFIG_MAPS, resource_version="11", page_size=3)
    assert dict(fake.calls[-1].query) == {"resourceVersion": "11"}


async def test_selectors_reach_the_server(client: Client) -> None:
    labelled = config_map("a")
    labelled["metadata"]["labels"] = {"app": "web"}
    await client.create(CONFIG_MAPS, labelled)
    await client.create(CONFIG_MAPS, config_map("b"))
    assert len((await client.list(CONFIG_MAPS, label_selector="app in (web, db)"))["items"]) == 1
    assert len((await client.list(CONFIG_MAPS, field_selector="metadata.name=b"))["items"]) == 1
    await client.delete_collection(CONFIG_MAPS, "ns", label_selector="app=web")
    assert len((await client.list(CONFIG_MAPS))["items"]) == 1


async def test_a_watch_sends_every_change_in_order(client: Client) -> None:
    version = (await client.list(CONFIG_MAPS))["metadata"]["resourceVersion"]
    stream = await client.watch(CONFIG_MAPS, "ns", resource_version=version)
    a = await client.create(CONFIG_MAPS, config_map("a", text="ä" * 100_000))
    await client.update(CONFIG_MAPS, {**a, "data": {}})
    await client.delete(CONFIG_MAPS, "a", "ns")
    seen = []
    async for event in stream:
        seen.append((event.type, event.object["metadata"]["name"]))
        if len(seen) == 3:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_an_error_event_is_raised(client: Client, fake: FakeApi) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    fake.compact()
    stream = await client.watch(CONFIG_MAPS, resource_version="5")
    with pytest.raises(Expired, match="too old resource version"):
        await anext(stream)


async def test_a_watch_ends_when_the_server_ends_it(client: Client, fake: FakeApi) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    count = 0
    async for _ in await client.watch(CONFIG_MAPS, resource_version="10"):
        count += 1
        fake.break_watches(cleanly=True)
    assert count == 1


async def test_writes_name_their_field_manager(client: Client, fake: FakeApi) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), dry_run=True)
    assert dict(fake.calls[-1].query) == {"fieldManager": "tests", "dryRun": "All"}
    await client.apply(CONFIG_MAPS, config_map("a", x="1"), field_manager="other", force=True)
    assert dict(fake.calls[-1].query) == {"fieldManager": "other", "force": "true"}
    assert fake.calls[-1].content_type == "application/apply-patch+yaml"


async def test_a_kind_is_as_good_as_a_resource(client: Client) -> None:
    await client.create(GVK("", "v1", "ConfigMap"), config_map("a"))
    assert (await client.get(CONFIG_MAPS, "a", "ns"))["kind"] == "ConfigMap"
    assert await client.resource_of(config_map("a")) == CONFIG_MAPS
    with pytest.raises(NoMatch, match="Kind=Nothing"):
        await client.get(GVK("", "v1", "Nothing"), "a", "ns")


async def test_a_subresource_can_be_created(client: Client, fake: FakeApi) -> None:
    await client.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}})
    answer = await client.create_subresource(PODS, "p", "ns", "eviction", {"kind": "Eviction"})
    assert answer["status"] == "Success"
    assert fake.calls[-1].path == "/api/v1/namespaces/ns/pods/p/eviction"


async def test_names_with_unusual_characters_survive_the_url(client: Client) -> None:
    odd = config_map("system:node:a%b c")
    await client.create(CONFIG_MAPS, odd)
    assert (await client.get(CONFIG_MAPS, "system:node:a%b c", "ns"))["metadata"]["name"] == "system:node:a%b c"


async def test_other_paths_can_be_requested(client: Client) -> None:
    assert (await client.raw("GET", "/version"))["gitVersion"] == "v1.36.0"
